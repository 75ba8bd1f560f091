/* Local response normalisation over neighbouring channels (Krizhevsky et al., "ImageNet
 * Classification with Deep Convolutional Neural Networks", section 3.3): y = x / d^beta with d =
 * bias + alpha/size · Σ x² over a window of channels. */
#include "codegen/call.h"
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

/* --- Calls --- */

static enum status call_lrn(struct emit *e, const struct node *n, struct kernel_call c)
{
	const struct lrn *p = n->param;
	const struct call_struct o = {"struct lrn", "o",
		CALL_FIELDS({"alpha", ARG_REAL(p->alpha)}, {"beta", ARG_REAL(p->beta)},
			{"bias", ARG_REAL(p->bias)}, {"slope", ARG_REAL(2 * p->alpha * p->beta)},
			{"channels", ARG_SIZE(p->channels)}, {"inner", ARG_SIZE(p->inner)},
			{"before", ARG_INT(p->before)}, {"after", ARG_INT(p->after)})};
	struct call_arg args[8];
	int count = 0;
	for (int k = 0; k < n->nout; k++)
		args[count++] = ARG_Y(k);
	for (int k = 0; k < n->nin; k++)
		args[count++] = ARG_X(k);
	args[count++] = ARG_STRUCT(&o);
	args[count] = CALL_ARG(.kind = CALL_END);
	c.turns = n->out[0]->numel ? p->rows * p->channels : 0;
	c.work = (double)n->out[0]->numel * 20;
	c.args = args;
	return call_kernel(e, &c);
}

static enum status lrn_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	return call_lrn(e, n,
		(struct kernel_call){
			.file = "lrn.h", .function = "lrn", .ntype = 3, .type = {x, y, y}});
}

static enum status terms_emit(struct emit *e, const struct node *n)
{
	return call_lrn(e, n,
		(struct kernel_call){.file = "lrn.h",
			.function = "lrn_terms",
			.ntype = 3,
			.type = {n->in[0], n->out[0], n->out[1]}});
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
	dx[0] = graph_param_op(g, "stint.LRNGrad", 4, in, n->nattr, n->attr, n->param);
	return g->failed;
}

static enum status like_input(struct graph *g, struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		TRY(data_output(g, n, k, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim));
	return ST_OK;
}

static enum status grad_emit(struct emit *e, const struct node *n)
{
	return call_lrn(e, n,
		(struct kernel_call){.file = "lrn_grad.h",
			.function = "lrn_grad",
			.ntype = 5,
			.type = {n->out[0], n->in[0], n->in[1], n->in[2], n->in[3]}});
}

/* clang-format off */
const struct op_def ops_lrn[] = {
	{.name = "LRN", .apart = APART_FIRST, .since = 1, .min_in = 1, .infer = lrn_infer, .fold = lrn_fold, .grad = lrn_rule,
		.emit_c = lrn_emit, .work = 30, .narrow_in = 1, .narrow_out = 1,
		.example = EXAMPLES({.in = "a,B,c,d", .attr = "size=3 alpha=0.9"}, {.in = "2,7,3", .attr = "size=4 alpha=0.5 beta=0.5 bias=2.0"},
			{.in = "2,5,70", .attr = "size=2 alpha=0.5 beta=1.3"}, {.in = "2,3", .attr = "size=9 alpha=0.5"}, {.in = "1,6,2,2,2", .attr = "size=1"})},
	{.name = "stint.LRNTerms", .min_in = 1, .min_out = 2, .max_out = 2, .infer = like_input,
		.emit_c = terms_emit, .work = 30, .narrow_in = 1, .narrow_out = 3},
	{.name = "stint.LRNGrad", .min_in = 4, .infer = like_input, .emit_c = grad_emit, .work = 12,
		.narrow_in = 15, .narrow_out = 1},
	{0},
};
/* clang-format on */
