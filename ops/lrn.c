/* Local response normalisation over neighbouring channels (Krizhevsky et al., "ImageNet
 * Classification with Deep Convolutional Neural Networks", section 3.3): y = x / d^beta with d =
 * bias + alpha/size · Σ x² over a window of channels. */
#include <inttypes.h>

#include "ops/data.h"

struct lrn {
	double alpha, beta, bias; /* alpha divided by the size */
	int64_t before, after;    /* channels in the window on either side */
	int64_t rows, channels, inner;
};

static enum status lrn_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t size = node_int(n, "size", 0);
	if (size < 1)
		return node_fail(g, n, NULL, "size is not positive");
	if (x->rank < 2 || !dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "its input '%s' has no channels of reals", x->name);
	struct lrn *p = ARENA_NEW(g->arena, struct lrn);
	if (!p)
		return diag_nomem(g->diag);
	*p = (struct lrn){node_float(n, "alpha", 1e-4) / (double)size, node_float(n, "beta", 0.75),
		node_float(n, "bias", 1), (size - 1) / 2, size / 2, x->dim[0], x->dim[1], 1};
	for (int i = 2; i < x->rank; i++)
		p->inner *= x->dim[i];
	n->param = p;
	for (int k = 0; k < n->nout; k++)
		TRY(data_output(g, n, k, x->dtype, x->rank, x->dim));
	return ST_OK;
}

static enum status lrn_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct lrn *p = n->param;
	const struct tensor *x = n->in[0];
	for (int64_t e = 0; e < x->numel; e++) {
		int64_t c = e / p->inner % p->channels;
		double sum = 0;
		for (int64_t k = c - p->before; k <= c + p->after; k++)
			if (k >= 0 && k < p->channels) {
				double v = tensor_real(x, e + (k - c) * p->inner);
				sum += v * v;
			}
		value_set(x->dtype, out[0], e,
			tensor_real(x, e) * pow(p->bias + p->alpha * sum, -p->beta));
	}
	return ST_OK;
}

/* --- C text: 64 neighbouring positions of a channel at a time --- */

/* Opens the loops; `at` is the place of the first position, `width` how many there are; for each,
 * `sum` becomes the sum of `term` (whose index is i) over channels from c − before to c + after. */
static void open_windows(
	struct emit *e, const struct lrn *p, int64_t before, int64_t after, const char *term)
{
	const struct emit_loop loop[] = {{"n", p->rows, 1}, {"c", p->channels, 1}};
	emit_loops(e, (double)(p->rows * p->channels * p->inner) * 20, 2, loop);
	emit(e, " {\n\t\t\tconst int64_t from = MAX(c - %" PRId64 ", 0);\n", before);
	emit(e, "\t\t\tconst int64_t to = MIN(c + %" PRId64 ", %" PRId64 ");\n", after,
		p->channels - 1);
	emit(e, "\t\t\tfor (int64_t i0 = 0; i0 < %" PRId64 "; i0 += 64) {\n", p->inner);
	emit(e, "\t\t\t\tconst int64_t width = MIN(%" PRId64 " - i0, 64);\n", p->inner);
	emit(e, "\t\t\t\tconst int64_t at = (n * %" PRId64 " + c) * %" PRId64 " + i0;\n",
		p->channels, p->inner);
	emit(e, "\t\t\t\treal sum[64] = {0};\n\t\t\t\tfor (int64_t k = from; k <= to; k++)\n");
	emit(e, "\t\t\t\t\tfor (int64_t j = 0; j < width; j++) {\n");
	emit(e, "\t\t\t\t\t\tconst int64_t i = at + (k - c) * %" PRId64 " + j;\n", p->inner);
	emit(e, "\t\t\t\t\t\tsum[j] += %s;\n\t\t\t\t\t}\n", term);
	emit(e, "\t\t\t\tfor (int64_t j = 0; j < width; j++) {\n");
}

/* "const real d = ..., p = d^-beta;": the usual powers are roots. */
static void emit_power(struct emit *e, const struct lrn *p)
{
	char alpha[40], beta[40], bias[40];
	emit(e, "\t\t\t\t\tconst real d = %s + %s * sum[j], p = ", emit_real(e, p->bias, bias),
		emit_real(e, p->alpha, alpha));
	if (p->beta == 0.75)
		emit(e, "1 / (SQRT(d) * SQRT(SQRT(d)));\n");
	else if (p->beta == 0.5)
		emit(e, "1 / SQRT(d);\n");
	else
		emit(e, "POW(d, %s);\n", emit_real(e, -p->beta, beta));
}

static bool emit_nothing(struct emit *e, const struct node *n)
{
	if (n->out[0]->numel == 0)
		emit(e, "\t(void)y0; /* no elements */\n");
	return n->out[0]->numel == 0;
}

/* "x0[i] * x0[i]" */
static const char *square_of(struct emit *e, const struct tensor *x)
{
	const char *v = emit_value(e, x, "x0[i]");
	return emit_text(e, "%s * %s", v, v);
}

/* y[k] = value, at the window's place. */
static void store(struct emit *e, const struct node *n, int k, const char *value)
{
	emit(e, "\t\t\t\t\ty%d[at + j] = %s;\n", k, emit_stored(e, n->out[k], value));
}

static enum status lrn_emit(struct emit *e, const struct node *n)
{
	const struct lrn *p = n->param;
	if (emit_nothing(e, n))
		return ST_OK;
	open_windows(e, p, p->before, p->after, square_of(e, n->in[0]));
	emit_power(e, p);
	store(e, n, 0, emit_text(e, "%s * p", emit_value(e, n->in[0], "x0[at + j]")));
	emit(e, "\t\t\t\t}\n\t\t\t}\n\t\t}\n");
	return ST_OK;
}

/* d^-beta, and x d^(-beta - 1). */
static enum status terms_emit(struct emit *e, const struct node *n)
{
	const struct lrn *p = n->param;
	if (emit_nothing(e, n))
		return ST_OK;
	open_windows(e, p, p->before, p->after, square_of(e, n->in[0]));
	emit_power(e, p);
	store(e, n, 0, "p");
	store(e, n, 1, emit_text(e, "%s * p / d", emit_value(e, n->in[0], "x0[at + j]")));
	emit(e, "\t\t\t\t}\n\t\t\t}\n\t\t}\n");
	return ST_OK;
}

static enum status lrn_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct tensor *x = n->in[0];
	struct node *terms = graph_op_node(g, "stint.LRNTerms", 1, &x, n->nattr, n->attr, n->param);
	if (!terms)
		return g->failed;
	struct tensor *in[] = {dy[0], x, terms->out[0], terms->out[1]};
	struct node *m = graph_op_node(g, "stint.LRNGrad", 4, in, n->nattr, n->attr, n->param);
	dx[0] = m ? m->out[0] : NULL;
	return g->failed;
}

static enum status like_input(struct graph *g, struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		TRY(data_output(g, n, k, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim));
	return ST_OK;
}

/* dx = dy d^-beta − 2 alpha beta x Σ dy x d^(-beta - 1), over the channels whose windows hold this
 * one. */
static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct lrn *p = n->param;
	char factor[40];
	if (emit_nothing(e, n))
		return ST_OK;
	open_windows(e, p, p->after, p->before,
		emit_text(e, "%s * %s", emit_value(e, n->in[0], "x0[i]"),
			emit_value(e, n->in[3], "x3[i]")));
	const char *dx = emit_text(e, "%s * %s - %s * %s * sum[j]",
		emit_value(e, n->in[0], "x0[at + j]"), emit_value(e, n->in[2], "x2[at + j]"),
		emit_real(e, 2 * p->alpha * p->beta, factor),
		emit_value(e, n->in[1], "x1[at + j]"));
	store(e, n, 0, dx);
	emit(e, "\t\t\t\t}\n\t\t\t}\n\t\t}\n");
	return ST_OK;
}

/* clang-format off */
const struct op_def ops_lrn[] = {
	{.name = "LRN", .since = 1, .min_in = 1, .max_in = 1, .infer = lrn_infer, .fold = lrn_fold, .grad = lrn_rule,
		.emit_c = lrn_emit, .work = 30, .narrow_in = 1, .narrow_out = 1,
		.example = EXAMPLES({.in = "a,B,c,d", .attr = "size=3 alpha=0.9"}, {.in = "2,7,3", .attr = "size=4 alpha=0.5 beta=0.5 bias=2.0"},
			{.in = "2,5,70", .attr = "size=2 alpha=0.5 beta=1.3"}, {.in = "2,3", .attr = "size=9 alpha=0.5"}, {.in = "1,6,2,2,2", .attr = "size=1"})},
	{.name = "stint.LRNTerms", .min_in = 1, .max_in = 1, .min_out = 2, .max_out = 2, .infer = like_input,
		.emit_c = terms_emit, .work = 30, .narrow_in = 1, .narrow_out = 3},
	{.name = "stint.LRNGrad", .min_in = 4, .max_in = 4, .infer = like_input, .emit_c = grad_emit, .work = 12,
		.narrow_in = 15, .narrow_out = 1},
	{0},
};
/* clang-format on */
