/* Batch normalisation. In training: a recomputable op that gives y, mean and inverse deviation, and
 * an update of the running statistics that runs once. The file may hold any of ONNX's forms; all
 * mean the layer. */
#include <inttypes.h>

#include "ops/data.h"
#include "ops/lanes.h"

enum { X, SCALE, BIAS, MEAN, VAR };

/* x as [rows, channels, inner]. */
struct layout {
	int64_t rows, channels, inner;
};

struct batchnorm {
	double epsilon, momentum;
	int64_t count;   /* values behind each mean */
	bool population; /* running variances divide by count, not by count - 1 */
};

static struct layout layout_of(const struct tensor *x)
{
	struct layout l = {x->dim[0], x->dim[1], 1};
	for (int i = 2; i < x->rank; i++)
		l.inner *= x->dim[i];
	return l;
}

static enum status check_channels(struct graph *g, const struct node *n, int from)
{
	const struct tensor *x = n->in[from];
	if (x->rank < 2)
		return node_fail(g, n, NULL, "its input has %d axes; it needs 2 or more", x->rank);
	for (int i = 1; i < n->nin - from; i++)
		if (n->in[from + i]->rank != 1 || n->in[from + i]->dim[0] != x->dim[1])
			return node_fail(g, n, NULL,
				"input %d does not have one value per channel (%" PRId64 ")",
				from + i, x->dim[1]);
	return ST_OK;
}

/* One layer that is called several times (a tower for both images of a pair) is several nodes, of
 * which the first alone writes to the layer's statistics. */
static void warn_of_calls(struct graph *g, const struct node *n, const struct tensor *mean)
{
	for (int k = 0; n->in[SCALE]->role == TR_PARAMETER && k < g->nnode; k++) {
		const struct node *m = g->node[k];
		if (m == n || m->op != n->op || m->in[SCALE] != n->in[SCALE] || m->in[MEAN] != mean)
			continue;
		diag_warn(g->diag, &(struct where){g->file, n->name, n->op->name},
			"gradients are as PyTorch's; evaluation after training is not, but with "
			"--bn frozen",
			"is the layer of '%s', called again: it keeps running statistics of its "
			"own, where PyTorch has one for both",
			m->name);
		return;
	}
}

/* Input i as a buffer of this node's own. Exporters store equal initializers once, and hand them on
 * through Identity: freshly made running statistics come as another layer's, or as its scale. */
static enum status own_buffer(struct graph *g, struct node *n, int i)
{
	struct tensor *given = n->in[i], *source = tensor_storage(given);
	if (source->maker || !source->data)
		return node_fail(g, n, NULL, "its running statistics are not initializers");
	if (given == source && given->role != TR_BUFFER && given != n->in[SCALE] &&
		given != n->in[BIAS]) {
		given->role = TR_BUFFER;
		return ST_OK;
	}
	if (i == MEAN)
		warn_of_calls(g, n, source);
	const char *name = given != source ? given->name
					   : arena_printf(g->arena, "%s.running_%s", n->name,
						     i == MEAN ? "mean" : "var");
	n->in[i] = name ? graph_tensor(g, name, given->dtype, given->rank, given->dim) : NULL;
	if (!n->in[i])
		return name ? g->failed : diag_nomem(g->diag);
	n->in[i]->role = TR_BUFFER;
	n->in[i]->data = source->data;
	return ST_OK;
}

static enum status batchnorm_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[X];
	TRY(check_channels(g, n, 0));
	struct batchnorm *p = ARENA_NEW(g->arena, struct batchnorm);
	if (!p)
		return diag_nomem(g->diag);
	struct layout l = layout_of(x);
	*p = (struct batchnorm){.epsilon = node_float(n, "epsilon", 1e-5),
		.momentum = node_float(n, "momentum", 0.9),
		.count = l.rows * l.inner};
	n->param = p;
	TRY(own_buffer(g, n, MEAN));
	TRY(own_buffer(g, n, VAR));
	TRY(data_output(g, n, 0, x->dtype, x->rank, x->dim));
	for (int k = 1; k < n->nout;
		k++) /* the running statistics as outputs: nothing may read them */
		TRY(data_output(g, n, k, x->dtype, 1, &l.channels));
	return ST_OK;
}

static enum status batchnorm_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	/* A momentum of 1 never takes anything into the running statistics: it stands for a layer
	 * without them, which normalises by the batch always. */
	struct batchnorm *p = arena_memdup(g->arena, n->param, 1, sizeof *p);
	if (!p)
		return diag_nomem(g->diag);
	p->population = o->bn_population;
	bool always = p->momentum == 1;
	if (!always && (o->mode == LOWER_EVAL || o->bn_frozen)) {
		struct node *m = graph_op_node(g, "stint.BatchNormInfer", 5, in, 0, NULL, n->param);
		out[0] = m ? m->out[0] : NULL;
		return g->failed;
	}
	struct node *m = graph_op_node(g, "stint.BatchNormTrain", 3, in, 0, NULL, p);
	if (!m)
		return g->failed;
	out[0] = m->out[0];
	if (always)
		return ST_OK;
	enum node_phase phase = g->phase;
	g->phase = NODE_UPDATE;
	struct node *u = graph_op_node(g, "stint.BatchNormUpdate", 4,
		(struct tensor *[]){in[MEAN], in[VAR], m->out[1], m->out[2]}, 0, NULL, p);
	g->phase = phase;
	for (int k = 1; u && k < n->nout && k < 3; k++)
		out[k] = n->out[k] ? u->out[k - 1] : NULL;
	return g->failed;
}

/* --- Training --- */

static enum status train_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[X];
	TRY(check_channels(g, n, 0));
	TRY(data_output(g, n, 0, x->dtype, x->rank, x->dim));
	TRY(data_output(g, n, 1, x->dtype, 1, &x->dim[1]));
	return data_output(g, n, 2, x->dtype, 1, &x->dim[1]);
}

static void open_channels(struct emit *e, const struct layout *l)
{
	emit_parallel(e, (double)(l->rows * l->channels * l->inner) * 4, 1);
	emit(e, "\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", l->channels);
}

/* A loop over the rows of channel c, with `at` the place of the row's first element. */
static void open_rows(struct emit *e, const struct layout *l)
{
	emit(e, "\t\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", l->rows);
	emit(e, "\t\t\tint64_t at = (r * %" PRId64 " + c) * %" PRId64 ";\n", l->channels, l->inner);
}

/* Without inner axes: 64 neighbouring channels at a time. `at`, the place of an element, is made of
 * r and k. */
static void open_columns(struct emit *e, const struct layout *l)
{
	emit_parallel(e, (double)(l->rows * l->channels) * 4, 1);
	emit(e, "\tfor (int64_t c = 0; c < %" PRId64 "; c += 64) {\n", l->channels);
	emit(e, "\t\tconst int64_t width = MIN(%" PRId64 " - c, 64);\n", l->channels);
}

static void open_elements(struct emit *e, const struct layout *l)
{
	emit(e, "\t\tfor (int64_t r = 0; r < %" PRId64 "; r++)\n", l->rows);
	emit(e, "\t\t\tfor (int64_t k = 0; k < width; k++) {\n");
	emit(e, "\t\t\t\tconst int64_t at = r * %" PRId64 " + c + k;\n", l->channels);
}

static enum status train_columns(struct emit *e, const struct node *n, const struct layout *l)
{
	const struct batchnorm *p = n->param;
	open_columns(e, l);
	emit(e, "\t\tdouble sum[64] = {0}, squares[64] = {0};\n\t\treal mean[64], scale[64];\n");
	open_elements(e, l);
	emit(e, "\t\t\t\tsum[k] += (double)x0[at];\n\t\t\t}\n");
	emit(e, "\t\tfor (int64_t k = 0; k < width; k++)\n");
	emit(e, "\t\t\tmean[k] = y1[c + k] = (real)(sum[k] / %" PRId64 ");\n", p->count);
	open_elements(e, l);
	emit(e, "\t\t\t\tconst real d = x0[at] - mean[k];\n");
	emit(e, "\t\t\t\tsquares[k] += (double)(d * d);\n\t\t\t}\n");
	emit(e, "\t\tfor (int64_t k = 0; k < width; k++) {\n\t\t\ty2[c + k] = ");
	emit(e, "(real)(1 / sqrt(squares[k] / %" PRId64 " + %.17g));\n", p->count, p->epsilon);
	emit(e, "\t\t\tscale[k] = y2[c + k] * x1[c + k];\n\t\t}\n");
	open_elements(e, l);
	emit(e, "\t\t\t\ty0[at] = (x0[at] - mean[k]) * scale[k] + x2[c + k];\n\t\t\t}\n\t}\n");
	return ST_OK;
}

static enum status train_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	struct layout l = layout_of(n->in[X]);
	if (l.inner == 1)
		return train_columns(e, n, &l);
	emit_helper(e, "squares_lanes", squares_lanes);
	open_channels(e, &l);
	emit(e, "\t\tdouble sum = 0, squares = 0;\n");
	open_rows(e, &l);
	emit(e, "\t\t\tsum += sum_wide(x0 + at, %" PRId64 ");\n\t\t}\n", l.inner);
	emit(e, "\t\tconst real mean = (real)(sum / %" PRId64 ");\n", p->count);
	open_rows(e, &l);
	emit(e, "\t\t\tsquares += (double)squares_lanes(x0 + at, mean, %" PRId64 ");\n\t\t}\n",
		l.inner);
	emit(e, "\t\tconst real invstd = (real)(1 / sqrt(squares / %" PRId64 " + %.17g));\n",
		p->count, p->epsilon);
	emit(e, "\t\tconst real scale = invstd * x1[c], shift = x2[c];\n\t\ty1[c] = "
		"mean;\n\t\ty2[c] = invstd;\n");
	open_rows(e, &l);
	emit(e, "\t\t\tfor (int64_t i = at; i < at + %" PRId64 "; i++)\n", l.inner);
	emit(e, "\t\t\t\ty0[i] = (x0[i] - mean) * scale + shift;\n\t\t}\n\t}\n");
	return ST_OK;
}

static enum status train_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct node *m = graph_op_node(g, "stint.BatchNormGrad", 5,
		(struct tensor *[]){dy[0], n->in[X], n->in[SCALE], n->out[1], n->out[2]}, 0, NULL,
		n->param);
	for (int i = 0; m && i < 3; i++)
		dx[i] = m->out[i];
	return g->failed;
}

static enum status grad_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[1];
	TRY(data_output(g, n, 0, x->dtype, x->rank, x->dim));
	TRY(data_output(g, n, 1, x->dtype, 1, &x->dim[1]));
	return data_output(g, n, 2, x->dtype, 1, &x->dim[1]);
}

/* Σ dy and Σ dy (x − mean) of 64 channels. */
static void sum_columns(struct emit *e, const struct layout *l, const char *mean)
{
	open_columns(e, l);
	emit(e, "\t\tdouble sum[64] = {0}, dot[64] = {0};\n");
	open_elements(e, l);
	emit(e, "\t\t\t\tsum[k] += (double)x0[at];\n");
	emit(e, "\t\t\t\tdot[k] += (double)(x0[at] * (x1[at] - %s[c + k]));\n\t\t\t}\n", mean);
}

static enum status grad_columns(struct emit *e, const struct node *n, const struct layout *l)
{
	const struct batchnorm *p = n->param;
	sum_columns(e, l, "x3");
	emit(e, "\t\treal scale[64], mean_dy[64], slope[64];\n");
	emit(e, "\t\tfor (int64_t k = 0; k < width; k++) {\n");
	emit(e, "\t\t\tconst double invstd = (double)x4[c + k];\n");
	emit(e, "\t\t\ty1[c + k] = (real)(dot[k] * invstd);\n\t\t\ty2[c + k] = (real)sum[k];\n");
	emit(e, "\t\t\tscale[k] = x4[c + k] * x2[c + k];\n");
	emit(e, "\t\t\tmean_dy[k] = (real)(sum[k] / %" PRId64 ");\n", p->count);
	emit(e, "\t\t\tslope[k] = (real)(dot[k] * invstd * invstd / %" PRId64 ");\n\t\t}\n",
		p->count);
	open_elements(e, l);
	emit(e, "\t\t\t\tconst real d = (x1[at] - x3[c + k]) * slope[k];\n");
	emit(e, "\t\t\t\ty0[at] = (x0[at] - mean_dy[k] - d) * scale[k];\n\t\t\t}\n\t}\n");
	return ST_OK;
}

/* Ioffe and Szegedy, "Batch Normalization", section 3, rewritten: dx = scale·invstd (dy − mean(dy)
 * − x̂ mean(dy x̂)). */
static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	struct layout l = layout_of(n->in[1]);
	if (l.inner == 1)
		return grad_columns(e, n, &l);
	emit_helper(e, "centred_lanes", centred_lanes);
	open_channels(e, &l);
	emit(e, "\t\tconst double mean = (double)x3[c], invstd = (double)x4[c];\n");
	emit(e, "\t\tdouble sum = 0, sum_x = 0, dot = 0;\n");
	open_rows(e, &l);
	emit(e, "\t\t\tsum += sum_wide(x0 + at, %" PRId64 ");\n", l.inner);
	emit(e, "\t\t\tsum_x += sum_wide(x1 + at, %" PRId64 ");\n", l.inner);
	emit(e, "\t\t\tdot += centred_lanes(x0 + at, x1 + at, mean, %" PRId64 ");\n\t\t}\n",
		l.inner);
	emit(e, "\t\ty1[c] = (real)(dot * invstd);\n\t\ty2[c] = (real)sum;\n");
	emit(e, "\t\tconst double scale = invstd * (double)x2[c];\n");
	emit(e, "\t\tconst double slope = dot * invstd * invstd / %" PRId64 ";\n", p->count);
	emit(e,
		"\t\tconst double level = sum / %" PRId64 " - (sum_x / %" PRId64
		" - mean) * slope;\n",
		p->count, p->count);
	open_rows(e, &l);
	emit(e, "\t\t\tfor (int64_t i = at; i < at + %" PRId64 "; i++)\n", l.inner);
	emit(e, "\t\t\t\ty0[i] = (real)(((double)x0[i] - level - ((double)x1[i] - mean) * slope) * "
		"scale);\n\t\t}\n\t}\n");
	return ST_OK;
}

/* --- Running statistics: PyTorch's running variance is the unbiased one --- */

static enum status update_infer(struct graph *g, struct node *n)
{
	for (int k = 0; k < 2; k++)
		TRY(data_output(g, n, k, n->in[k]->dtype, 1, n->in[k]->dim));
	return ST_OK;
}

static enum status update_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	char keep[40], take[40];
	double unbiased = p->count > 1 && !p->population ? (double)p->count / (double)(p->count - 1)
							 : 1;
	emit_real(e, p->momentum, keep);
	emit_real(e, 1 - p->momentum, take);
	emit(e, "\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", n->in[0]->dim[0]);
	emit(e, "\t\tdouble deviation = 1 / (double)x3[c];\n");
	emit(e,
		"\t\tdouble biased = deviation * deviation - %.17g; /* rounded: 0 may come out "
		"below */\n",
		p->epsilon);
	emit(e, "\t\treal var = (real)(MAX(biased, 0) * %.17g);\n", unbiased);
	emit(e, "\t\ty0[c] = %s * x0[c] + %s * x2[c];\n", keep, take);
	emit(e, "\t\ty1[c] = %s * x1[c] + %s * var;\n\t}\n", keep, take);
	return ST_OK;
}

/* --- Evaluation, or frozen --- */

static enum status infer_infer(struct graph *g, struct node *n)
{
	TRY(check_channels(g, n, 0));
	return data_output(g, n, 0, n->in[X]->dtype, n->in[X]->rank, n->in[X]->dim);
}

static enum status infer_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	struct layout l = layout_of(n->in[X]);
	char eps[40];
	emit_real(e, p->epsilon, eps);
	if (l.inner == 1) {
		open_columns(e, &l);
		open_elements(e, &l);
		emit(e, "\t\t\t\tconst real scale = x1[c + k] / SQRT(x4[c + k] + %s);\n", eps);
		emit(e, "\t\t\t\ty0[at] = (x0[at] - x3[c + k]) * scale + x2[c + k];\n");
		emit(e, "\t\t\t}\n\t}\n");
		return ST_OK;
	}
	open_channels(e, &l);
	emit(e, "\t\tconst real mean = x3[c], scale = x1[c] / SQRT(x4[c] + %s), shift = x2[c];\n",
		eps);
	open_rows(e, &l);
	emit(e, "\t\t\tfor (int64_t i = at; i < at + %" PRId64 "; i++)\n", l.inner);
	emit(e, "\t\t\t\ty0[i] = (x0[i] - mean) * scale + shift;\n\t\t}\n\t}\n");
	return ST_OK;
}

static enum status infer_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[X]) {
		struct node *m = graph_op_node(g, "stint.BatchNormInferGradX", 3,
			(struct tensor *[]){dy[0], n->in[SCALE], n->in[VAR]}, 0, NULL, n->param);
		dx[X] = m ? m->out[0] : NULL;
	}
	if (want[SCALE] || want[BIAS]) {
		struct node *m = graph_op_node(g, "stint.BatchNormInferGradScale", 4,
			(struct tensor *[]){dy[0], n->in[X], n->in[MEAN], n->in[VAR]}, 0, NULL,
			n->param);
		dx[SCALE] = m ? m->out[0] : NULL;
		dx[BIAS] = m ? m->out[1] : NULL;
	}
	return g->failed;
}

static enum status like_first(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
}

static enum status infer_grad_x_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	struct layout l = layout_of(n->in[0]);
	char eps[40];
	emit_real(e, p->epsilon, eps);
	if (l.inner == 1) {
		open_columns(e, &l);
		open_elements(e, &l);
		emit(e, "\t\t\t\ty0[at] = x0[at] * (x1[c + k] / SQRT(x2[c + k] + %s));\n", eps);
		emit(e, "\t\t\t}\n\t}\n");
		return ST_OK;
	}
	open_channels(e, &l);
	emit(e, "\t\tconst real scale = x1[c] / SQRT(x2[c] + %s);\n", eps);
	open_rows(e, &l);
	emit(e,
		"\t\t\tfor (int64_t i = at; i < at + %" PRId64
		"; i++)\n\t\t\t\ty0[i] = x0[i] * scale;\n\t\t}\n\t}\n",
		l.inner);
	return ST_OK;
}

static enum status infer_grad_scale_infer(struct graph *g, struct node *n)
{
	TRY(data_output(g, n, 0, n->in[0]->dtype, 1, &n->in[0]->dim[1]));
	return data_output(g, n, 1, n->in[0]->dtype, 1, &n->in[0]->dim[1]);
}

static enum status infer_grad_scale_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	struct layout l = layout_of(n->in[0]);
	if (l.inner == 1) {
		sum_columns(e, &l, "x2");
		emit(e, "\t\tfor (int64_t k = 0; k < width; k++) {\n\t\t\ty0[c + k] = ");
		emit(e, "(real)(dot[k] / sqrt((double)x3[c + k] + %.17g));\n", p->epsilon);
		emit(e, "\t\t\ty1[c + k] = (real)sum[k];\n\t\t}\n\t}\n");
		return ST_OK;
	}
	emit_helper(e, "centred_lanes", centred_lanes);
	open_channels(e, &l);
	emit(e, "\t\tdouble sum = 0, dot = 0;\n");
	open_rows(e, &l);
	emit(e, "\t\t\tsum += sum_wide(x0 + at, %" PRId64 ");\n", l.inner);
	emit(e,
		"\t\t\tdot += centred_lanes(x0 + at, x1 + at, (double)x2[c], %" PRId64
		");\n\t\t}\n",
		l.inner);
	emit(e,
		"\t\ty0[c] = (real)(dot / sqrt((double)x3[c] + %.17g));\n\t\ty1[c] = "
		"(real)sum;\n\t}\n",
		p->epsilon);
	return ST_OK;
}

/* clang-format off */
#define FORMS {.in = "a,b,c,D b b b b", .low = 0.2, .high = 1.2}, {.in = "7,5 5 5 5 5", .low = 0.2, .high = 1.2}, {.in = "9,70 70 70 70 70", .low = 0.2, .high = 1.2}, \
	{.in = "3,2,17 2 2 2 2", .attr = "epsilon=0.01 momentum=0.7", .low = 0.2, .high = 1.2}

const struct op_def ops_batchnorm[] = {
	{.name = "BatchNormalization", .weights = 6, .since = 7, .min_in = 5, .max_in = 5, .min_out = 1, .max_out = 5,
		.infer = batchnorm_infer, .lower = batchnorm_lower, .example = EXAMPLES(FORMS)},
	{.name = "stint.BatchNormTrain", .min_in = 3, .max_in = 3, .min_out = 3, .max_out = 3,
		.infer = train_infer, .grad = train_rule, .emit_c = train_emit, .work = 14, .npair = 1, .pair = {{0, 0}}},
	{.name = "stint.BatchNormGrad", .min_in = 5, .max_in = 5, .min_out = 3, .max_out = 3,
		.infer = grad_infer, .emit_c = grad_emit, .work = 25, .npair = 2, .pair = {{0, 0}, {0, 1}}},
	{.name = "stint.BatchNormUpdate", .min_in = 4, .max_in = 4, .min_out = 2, .max_out = 2,
		.traits = OP_UPDATE | OP_ONCE, .infer = update_infer, .emit_c = update_emit, .npair = 2,
		.pair = {{0, 0}, {1, 1}}},
	{.name = "stint.BatchNormInfer", .min_in = 5, .max_in = 5, .infer = infer_infer, .grad = infer_rule,
		.emit_c = infer_emit, .npair = 1, .pair = {{0, 0}}},
	{.name = "stint.BatchNormInferGradX", .min_in = 3, .max_in = 3, .infer = like_first,
		.emit_c = infer_grad_x_emit, .npair = 1, .pair = {{0, 0}}},
	{.name = "stint.BatchNormInferGradScale", .min_in = 4, .max_in = 4, .min_out = 2, .max_out = 2,
		.infer = infer_grad_scale_infer, .emit_c = infer_grad_scale_emit},
	{0},
};
/* clang-format on */
