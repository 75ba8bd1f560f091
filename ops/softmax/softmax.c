/* Softmax and LogSoftmax: along one axis since opset 13, over a flattened tail before. */
#include "ops/softmax/softmax_op.h"

static bool is_old(const struct node *n)
{
	return n->op->until == 13;
}

enum status softmax_infer(struct graph *g, struct node *n)
{
	int axis;
	struct tensor *x = n->in[0];
	TRY(node_axis(g, n, node_int(n, "axis", is_old(n) ? 1 : -1), x->rank ? x->rank : 1, &axis));
	struct span *s = ARENA_NEW(g->arena, struct span);
	if (!s)
		return diag_nomem(g->diag);
	*s = (struct span){1, 1, 1};
	for (int i = 0; i < x->rank; i++)
		*(i < axis ? &s->rows : i == axis || is_old(n) ? &s->n : &s->inner) *= x->dim[i];
	n->param = s;
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

static enum status softmax_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct span *s = n->param;
	const struct tensor *x = n->in[0];
	for (int64_t r = 0; r < s->rows * s->inner; r++) {
		int64_t at = r / s->inner * s->n * s->inner + r % s->inner;
		double top = -INFINITY, sum = 0;
		for (int64_t i = 0; i < s->n; i++)
			top = fmax(top, tensor_real(x, at + i * s->inner));
		for (int64_t i = 0; i < s->n; i++)
			sum += exp(tensor_real(x, at + i * s->inner) - top);
		for (int64_t i = 0; i < s->n; i++) {
			double z = tensor_real(x, at + i * s->inner) - top;
			value_set(x->dtype, out[0], at + i * s->inner,
				softmax_is_log(n) ? z - log(sum) : exp(z) / sum);
		}
	}
	return ST_OK;
}

/* As kernels/softmax_columns.h has it. */
enum { COLUMNS = 64 };

/* The exponentials stand in y before their sum divides them; where y is stored narrower, in scratch
 * of each worker: so many of them. */
static int64_t terms_of(const struct node *n)
{
	const struct span *s = n->param;
	if (softmax_is_log(n) || n->out[0]->numel == 0 || !dtype_is_narrow(n->out[0]->dtype))
		return 0;
	return round_up(s->inner == 1 ? s->n : s->n * COLUMNS, 16);
}

static int64_t softmax_workspace(const struct node *n, const struct target *t)
{
	return terms_of(n) * (int64_t)sizeof(float) * t->threads;
}

/* Rows, or blocks of columns. */
static int64_t turns_of(const struct span *s)
{
	return s->rows * (s->inner == 1 ? 1 : div_up(s->inner, COLUMNS));
}

static double work_of(const struct span *s)
{
	return (double)(s->rows * s->n * s->inner) * 8;
}

static enum status softmax_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	const int64_t terms = terms_of(n) * (int64_t)sizeof(float);
	const bool log = softmax_is_log(n), rows = s->inner == 1;
	return call_kernel(
		e, &(struct kernel_call){.file = "softmax.h",
			   .function = log    ? rows ? "log_softmax_rows" : "log_softmax_columns"
				       : rows ? "softmax_rows"
					      : "softmax_columns",
			   .ntype = 2,
			   .type = {n->in[0], n->out[0]},
			   .turns = turns_of(s),
			   .work = work_of(s),
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(s->n),
				   ARG_IF(!rows, ARG_SIZE(s->inner)),
				   ARG_IF(!log, terms ? ARG_OWN(0, terms) : ARG_NULL))});
}

/* An exponential counts as 20 operations. */
static struct op_cost softmax_cost(const struct node *n)
{
	return (struct op_cost){25 * (double)n->out[0]->numel, node_bytes(n)};
}

/* The forward node's param gives the rows. */
static enum status softmax_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = graph_param_op(g, softmax_is_log(n) ? "stint.LogSoftmaxGrad" : "stint.SoftmaxGrad",
		2, (struct tensor *[]){dy[0], n->out[0]}, 0, NULL, n->param);
	return g->failed;
}

static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	const bool log = softmax_is_log(n), rows = s->inner == 1;
	return call_kernel(e, &(struct kernel_call){.file = "softmax_grad.h",
				      .function = log    ? rows ? "log_softmax_grad_rows"
								: "log_softmax_grad_columns"
						  : rows ? "softmax_grad_rows"
							 : "softmax_grad_columns",
				      .ntype = 3,
				      .type = {n->in[0], n->in[1], n->out[0]},
				      .turns = turns_of(s),
				      .work = work_of(s),
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1),
					      ARG_SIZE(s->n), ARG_IF(!rows, ARG_SIZE(s->inner)))});
}

#define SPANS                                                                                      \
	EXAMPLES({.in = "a,B"}, {.in = "a,B,c", .attr = "axis=1"},                                 \
		{.in = "2,3,19", .attr = "axis=-1"}, {.in = "7"},                                  \
		{.in = "3,5,70", .attr = "axis=0", .low = -20, .high = 20})
#define FLATTENED                                                                                  \
	EXAMPLES({.in = "3,5"}, {.in = "a,b,C"}, {.in = "2,3,4,5", .attr = "axis=2"},              \
		{.in = "2,3,4", .attr = "axis=-3"})
#define SOFTMAX(onnx, ...)                                                                         \
	{                                                                                          \
		.name = onnx, .apart = APART_BEFORE, .min_in = 1, .infer = softmax_infer,          \
		.fold = softmax_fold, .emit_c = softmax_emit, .emit_cuda = softmax_cuda_emit,      \
		.grad = softmax_rule, .cost = softmax_cost, .workspace = softmax_workspace,        \
		.npair = 1, .pair = {{0, 0}}, .narrow_in = 1, .narrow_out = 1, __VA_ARGS__         \
	}
#define GRADIENT(ours, ...)                                                                        \
	{                                                                                          \
		.name = ours, .min_in = 2, .infer = data_infer_like, .emit_c = grad_emit,          \
		.emit_cuda = softmax_grad_cuda_emit, .npair = 2, .pair = {{0, 0}, {0, 1}},         \
		.narrow_in = 3, .narrow_out = 1, __VA_ARGS__                                       \
	}

/* clang-format off */
const struct op_def ops_softmax[] = {
	SOFTMAX("Softmax", .since = 13, .gives = GIVES_SOFTMAX, .match = softmax_match, .example = SPANS),
	SOFTMAX("LogSoftmax", .variant = SOFTMAX_LOG, .since = 13, .gives = GIVES_LOG_SOFTMAX, .example = SPANS),
	SOFTMAX("Softmax", .since = 1, .until = 13, .gives = GIVES_SOFTMAX, .example = FLATTENED),
	SOFTMAX("LogSoftmax", .variant = SOFTMAX_LOG, .since = 1, .until = 13, .gives = GIVES_LOG_SOFTMAX, .example = FLATTENED),
	GRADIENT("stint.SoftmaxGrad"),
	GRADIENT("stint.LogSoftmaxGrad", .variant = SOFTMAX_LOG, .cost = softmax_cost),
	{0},
};
/* clang-format on */
