/* Hardmax: 1 for the first of the largest along an axis (a flattened tail before opset 13), which
 * NaN is as for ArgMax, 0 for the others. Its gradient is zero wherever it has one. */
#include "ops/softmax/softmax_op.h"

static enum status hardmax_infer(struct graph *g, struct node *n)
{
	if (!dtype_is_real(n->in[0]->dtype))
		return node_fail(g, n, NULL, "works on real numbers");
	return softmax_infer(g, n);
}

static enum status hardmax_fold(struct graph *g, const struct node *n, void *const *out)
{
	const struct span *s = n->param;
	const struct tensor *x = n->in[0];
	(void)g;
	for (int64_t r = 0; x->numel && r < s->rows * s->inner; r++) {
		int64_t at = r / s->inner * s->n * s->inner + r % s->inner, top = 0;
		for (int64_t i = 0; i < s->n; i++) {
			value_set(x->dtype, out[0], at + i * s->inner, 0);
			const double v = tensor_real(x, at + i * s->inner);
			const double most = tensor_real(x, at + top * s->inner);
			if (v > most || (isnan(v) && !isnan(most)))
				top = i;
		}
		value_set(x->dtype, out[0], at + top * s->inner, 1);
	}
	return ST_OK;
}

static enum status hardmax_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	return call_kernel(e,
		&(struct kernel_call){.file = "hardmax.h",
			.function = "hardmax",
			.turns = n->in[0]->numel ? s->rows * s->inner : 0,
			.work = 2 * (double)n->in[0]->numel,
			.args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(s->n), ARG_SIZE(s->inner))});
}

#define HARDMAX(first, end, ...)                                                                   \
	{                                                                                          \
		.name = "Hardmax", .since = first, .until = end, .min_in = 1, .traits = OP_STOP,   \
		.work = 2, .infer = hardmax_infer, .fold = hardmax_fold, .emit_c = hardmax_emit,   \
		.example = EXAMPLES(__VA_ARGS__)                                                   \
	}

const struct op_def ops_hardmax[] = {
	HARDMAX(13, 0, {.in = "a,B"}, {.in = "a,b,C", .attr = "axis=1"},
		{.in = "a,b", .attr = "axis=-2"}, {.in = "40"}),
	HARDMAX(1, 13, {.in = "a,B"}, {.in = "a,b,C", .attr = "axis=1"},
		{.in = "a,b,C", .attr = "axis=2"}),
	{0},
};
