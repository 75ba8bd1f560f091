/* Layer normalisation over a tail of axes (Ba, Kiros and Hinton, "Layer Normalization"), as one
 * operator and in the spelled-out form of exports below opset 17. */
#include <inttypes.h>

#include "ops/data.h"
#include "ops/lanes.h"

struct layernorm {
	double epsilon;
	int64_t rows, width;
};

static enum status layernorm_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int axis;
	TRY(node_axis(g, n, node_int(n, "axis", -1), x->rank, &axis));
	struct layernorm *p = ARENA_NEW(g->arena, struct layernorm);
	if (!p)
		return diag_nomem(g->diag);
	*p = (struct layernorm){node_float(n, "epsilon", 1e-5), 1, 1};
	int64_t dim[RANK_MAX];
	for (int i = 0; i < x->rank; i++) {
		*(i < axis ? &p->rows : &p->width) *= x->dim[i];
		dim[i] = i < axis ? x->dim[i] : 1;
	}
	for (int i = 1; i < n->nin; i++)
		if (n->in[i] && n->in[i]->numel != p->width)
			return node_fail(g, n, NULL,
				"input %d has %" PRId64 " values, not the %" PRId64
				" of the normalised axes",
				i, n->in[i]->numel, p->width);
	n->param = p;
	TRY(data_output(g, n, 0, x->dtype, x->rank, x->dim));
	for (int k = 1; k < n->nout; k++)
		TRY(data_output(g, n, k, x->dtype, x->rank, dim));
	return ST_OK;
}

static enum status layernorm_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	struct node *m = graph_op_node(g, "stint.LayerNorm", n->nin, in, n->nattr, n->attr, NULL);
	for (int k = 0; m && k < n->nout; k++)
		out[k] = m->out[k];
	return g->failed;
}

static bool has(const struct node *n, int input)
{
	return n->nin > input && n->in[input];
}

static enum status layernorm_emit(struct emit *e, const struct node *n)
{
	const struct layernorm *p = n->param;
	emit_helper(e, "squares_lanes", squares_lanes);
	emit_parallel(e, (double)(p->rows * p->width) * 4, 1);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", p->rows);
	emit(e, "\t\tconst real *x = x0 + r * %" PRId64 ";\n\t\treal *y = y0 + r * %" PRId64 ";\n",
		p->width, p->width);
	emit(e, "\t\tconst real mean = sum_lanes(x, %" PRId64 ") / %" PRId64 ";\n", p->width,
		p->width);
	emit(e,
		"\t\tconst real invstd = (real)(1 / sqrt((double)squares_lanes(x, mean, %" PRId64
		") / %" PRId64 " + %.17g));\n",
		p->width, p->width, p->epsilon);
	emit(e, "\t\ty1[r] = mean;\n\t\ty2[r] = invstd;\n");
	emit(e,
		"\t\tfor (int64_t i = 0; i < %" PRId64
		"; i++)\n\t\t\ty[i] = (x[i] - mean) * invstd%s%s;\n\t}\n",
		p->width, has(n, 1) ? " * x1[i]" : "", has(n, 2) ? " + x2[i]" : "");
	return ST_OK;
}

static enum status layernorm_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (!dy[0] || dy[1] || dy[2])
		return node_fail(
			g, n, NULL, "gradients through its mean or deviation are not supported");
	if (want[0]) {
		struct tensor *scale = has(n, 1) ? n->in[1] : NULL;
		struct node *m = graph_op_node(g, "stint.LayerNormGrad", scale ? 5 : 4,
			(struct tensor *[]){dy[0], n->in[0], n->out[1], n->out[2], scale}, 0, NULL,
			n->param);
		dx[0] = m ? m->out[0] : NULL;
	}
	bool scale = has(n, 1) && want[1], bias = has(n, 2) && want[2];
	if (scale || bias) {
		struct node *m = graph_op_node(g, "stint.LayerNormGradScale", 4,
			(struct tensor *[]){dy[0], n->in[0], n->out[1], n->out[2]}, 0, NULL,
			n->param);
		if (m && scale)
			dx[1] = graph_reshape(g, m->out[0], n->in[1]->rank, n->in[1]->dim);
		if (m && bias)
			dx[2] = graph_reshape(g, m->out[1], n->in[2]->rank, n->in[2]->dim);
	}
	return g->failed;
}

static enum status grad_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
}

/* With h = dy·scale: dx = invstd (h − mean(h) − x̂ mean(h x̂)). */
static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct layernorm *p = n->param;
	const char *scale = has(n, 4) ? "[i + k] * x4[i + k]" : "[i + k]";
	int64_t w = p->width, whole = w / 16 * 16;
	emit_parallel(e, (double)(p->rows * w) * 6, 1);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", p->rows);
	emit(e, "\t\tconst real *dy = x0 + r * %" PRId64 ", *x = x1 + r * %" PRId64 ";\n", w, w);
	emit(e, "\t\treal *dx = y0 + r * %" PRId64 ", sum[16] = {0}, dot[16] = {0};\n", w);
	emit(e, "\t\tconst real mean = x2[r], invstd = x3[r];\n");
	for (int tail = 0; tail < 2; tail++) {
		if (tail ? whole == w : whole == 0)
			continue;
		if (tail)
			emit(e, "\t\tfor (int64_t i = %" PRId64 ", k = 0; k < %d; k++) {\n", whole,
				(int)(w - whole));
		else
			emit(e,
				"\t\tfor (int64_t i = 0; i < %" PRId64
				"; i += 16)\n\t\t\tfor (int k = 0; k < 16; k++) {\n",
				whole);
		const char *tabs = tail ? "\t\t\t" : "\t\t\t\t";
		emit(e, "%sconst real h = dy%s;\n%ssum[k] += h;\n", tabs, scale, tabs);
		emit(e, "%sdot[k] += h * (x[i + k] - mean);\n%.*s}\n", tabs, tail ? 2 : 3, tabs);
	}
	emit(e, "\t\tfor (int half = 8; half > 0; half /= 2)\n");
	emit(e, "\t\t\tfor (int k = 0; k < half; k++) {\n\t\t\t\tsum[k] += sum[k + half];\n");
	emit(e, "\t\t\t\tdot[k] += dot[k + half];\n\t\t\t}\n");
	emit(e, "\t\tconst real level = sum[0] / %" PRId64, w);
	emit(e, ", slope = dot[0] * invstd * invstd / %" PRId64 ";\n", w);
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n", w);
	emit(e, "\t\t\tdx[i] = invstd * (dy[i]%s - level - (x[i] - mean) * slope);\n\t}\n",
		has(n, 4) ? " * x4[i]" : "");
	return ST_OK;
}

static enum status scale_infer(struct graph *g, struct node *n)
{
	const struct layernorm *p = n->param;
	TRY(data_output(g, n, 0, n->in[0]->dtype, 1, &p->width));
	return data_output(g, n, 1, n->in[0]->dtype, 1, &p->width);
}

/* Column sums, 64 columns at a time, rows in order in parts of 128. */
static enum status scale_emit(struct emit *e, const struct node *n)
{
	const struct layernorm *p = n->param;
	emit_parallel(e, (double)(p->rows * p->width) * 4, 1);
	emit(e, "\tfor (int64_t c0 = 0; c0 < %" PRId64 "; c0 += 64) {\n", p->width);
	emit(e, "\t\tint64_t width = %" PRId64 " - c0 < 64 ? %" PRId64 " - c0 : 64;\n", p->width,
		p->width);
	emit(e, "\t\treal scale[64] = {0}, bias[64] = {0};\n");
	emit(e, "\t\tfor (int64_t r0 = 0; r0 < %" PRId64 "; r0 += 128) {\n", p->rows);
	emit(e, "\t\t\treal part[64] = {0}, sum[64] = {0};\n");
	emit(e, "\t\t\tint64_t end = %" PRId64 " - r0 < 128 ? %" PRId64 " : r0 + 128;\n", p->rows,
		p->rows);
	emit(e, "\t\t\tfor (int64_t r = r0; r < end; r++) {\n\t\t\t\tconst real mean = x2[r], "
		"invstd = x3[r];\n");
	emit(e,
		"\t\t\t\tconst real *dy = x0 + r * %" PRId64 " + c0, *x = x1 + r * %" PRId64
		" + c0;\n",
		p->width, p->width);
	emit(e, "\t\t\t\tfor (int64_t c = 0; c < width; c++) {\n");
	emit(e, "\t\t\t\t\tpart[c] += dy[c] * ((x[c] - mean) * invstd);\n\t\t\t\t\tsum[c] += "
		"dy[c];\n\t\t\t\t}\n\t\t\t}\n");
	emit(e, "\t\t\tfor (int64_t c = 0; c < width; c++) {\n\t\t\t\tscale[c] += "
		"part[c];\n\t\t\t\tbias[c] += sum[c];\n\t\t\t}\n\t\t}\n");
	emit(e, "\t\tfor (int64_t c = 0; c < width; c++) {\n\t\t\ty0[c0 + c] = "
		"scale[c];\n\t\t\ty1[c0 + c] = bias[c];\n\t\t}\n\t}\n");
	return ST_OK;
}

/* --- Recognition: (x − mean) / √(mean((x − mean)²) + ε) · scale (+ bias) --- */

static const struct node *made_by(const struct tensor *t, const char *op)
{
	return t->maker && !strcmp(t->maker->op->name, op) ? t->maker : NULL;
}

/* A mean over the axes from *axis on, which stay as axes of size 1: returns of what. */
static struct tensor *mean_of(const struct tensor *t, int *axis)
{
	const struct node *n = made_by(t, "ReduceMean");
	const struct attr *axes = n ? node_attr(n, "axes") : NULL;
	if (!axes || axes->n == 0 || !node_int(n, "keepdims", 1))
		return NULL;
	*axis = n->in[0]->rank - axes->n;
	return axes->ints[0] == *axis ? n->in[0] : NULL; /* infer has sorted them */
}

/* t = x − mean(x): returns x. */
static struct tensor *centred(const struct tensor *t, int *axis)
{
	const struct node *sub = made_by(t, "Sub");
	const struct tensor *x = sub ? mean_of(sub->in[1], axis) : NULL;
	return x && x == sub->in[0] ? sub->in[0] : NULL;
}

/* t = (x − mean(x))² */
static bool is_square(const struct tensor *t, const struct tensor *x, int axis)
{
	const struct node *pow = made_by(t, "Pow"), *mul = made_by(t, "Mul");
	int other = 0;
	if (pow && (pow->in[1]->role != TR_CONSTANT || pow->in[1]->numel != 1 ||
			   tensor_real(pow->in[1], 0) != 2))
		return false;
	if (mul && mul->in[0] != mul->in[1])
		return false;
	const struct node *n = pow ? pow : mul;
	return n && centred(n->in[0], &other) == x && other == axis;
}

/* t = √(mean((x − mean(x))²) + ε) */
static bool is_deviation(const struct tensor *t, const struct tensor *x, int axis, double *epsilon)
{
	const struct node *root = made_by(t, "Sqrt"),
			  *add = root ? made_by(root->in[0], "Add") : NULL;
	for (int i = 0; add && i < 2; i++) {
		int other;
		const struct tensor *square = mean_of(add->in[i], &other), *eps = add->in[1 - i];
		if (!square || other != axis || eps->role != TR_CONSTANT || eps->numel != 1)
			continue;
		*epsilon = tensor_real(eps, 0);
		return is_square(square, x, axis);
	}
	return false;
}

/* `t` has the shape of x's axes from `axis` on. */
static bool is_tail(const struct tensor *t, const struct tensor *x, int axis)
{
	return t->rank == x->rank - axis &&
	       !memcmp(t->dim, x->dim + axis, (size_t)t->rank * sizeof t->dim[0]);
}

/* The normalisation without scale and bias: a Div. */
static enum status match_plain(struct graph *g, const struct node *n, struct tensor **replace)
{
	int axis;
	double epsilon;
	struct tensor *x = centred(n->in[0], &axis);
	if (!x || !is_deviation(n->in[1], x, axis, &epsilon))
		return ST_OK;
	const struct attr attr[] = {ATTR_F("epsilon", epsilon), ATTR_I("axis", axis)};
	*replace = graph_op(g, "stint.LayerNorm", 1, &x, 2, attr);
	return g->failed;
}

/* One that was recognised before, times a scale; or with a scale, plus a bias. */
static enum status match_affine(
	struct graph *g, const struct node *n, int have, struct tensor **replace)
{
	for (int i = 0; i < 2; i++) {
		const struct node *norm = made_by(n->in[i], "stint.LayerNorm");
		if (!norm || norm->nin != have || norm->out[0] != n->in[i] ||
			!is_tail(n->in[1 - i], norm->in[0], (int)node_int(norm, "axis", -1)))
			continue;
		struct tensor *in[3] = {norm->in[0], have > 1 ? norm->in[1] : NULL, NULL};
		in[have] = n->in[1 - i];
		*replace = graph_op(g, "stint.LayerNorm", have + 1, in, norm->nattr, norm->attr);
		return g->failed;
	}
	return ST_OK;
}

static enum status layernorm_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	if (!strcmp(n->op->name, "Div"))
		return match_plain(g, n, replace);
	if (!strcmp(n->op->name, "Mul"))
		return match_affine(g, n, 1, replace);
	if (!strcmp(n->op->name, "Add"))
		return match_affine(g, n, 2, replace);
	return ST_OK;
}

/* clang-format off */
const struct op_def ops_layernorm[] = {
	{.name = "LayerNormalization", 		.weights = 6,
.since = 17, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 3,
		.infer = layernorm_infer, .lower = layernorm_lower,
		.example = EXAMPLES({.in = "3,5 5 5"}, {.in = "2,3,37 37 37"}, {.in = "4,3,5 3,5 3,5", .attr = "axis=1"},
			{.in = "3,19 19"})},
	{.name = "stint.LayerNorm", .min_in = 1, .max_in = 3, .min_out = 3, .max_out = 3, .infer = layernorm_infer,
		.match = layernorm_match, .grad = layernorm_rule, .emit_c = layernorm_emit, .work = 14, .npair = 1, .pair = {{0, 0}},},
	{.name = "stint.LayerNormGrad", .min_in = 4, .max_in = 5, .infer = grad_infer, .emit_c = grad_emit,
		.work = 30, .npair = 2, .pair = {{0, 0}, {0, 1}}},
	{.name = "stint.LayerNormGradScale", .min_in = 4, .max_in = 4, .min_out = 2, .max_out = 2,
		.infer = scale_infer, .emit_c = scale_emit},
	{0},
};
/* clang-format on */
