/* ReverseSequence: the first so many steps of each sequence of a batch, backwards. */
#include <inttypes.h>

#include "codegen/call.h"
#include "ops/data.h"

static enum status reverse_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *len = n->in[1];
	int64_t batch = node_int(n, "batch_axis", 1), time = node_int(n, "time_axis", 0);
	if (x->rank < 2 || batch + time != 1 || batch < 0 || batch > 1)
		return node_fail(g, n, NULL, "batch_axis and time_axis must be the first two axes");
	if (len->dtype != DT_I64 || len->rank != 1 || len->dim[0] != x->dim[batch])
		return node_fail(g, n, NULL, "needs a length for each of %" PRId64 " sequences",
			x->dim[batch]);
	for (int64_t b = 0; len->role == TR_CONSTANT && b < len->numel; b++)
		if (tensor_int(len, b) < 0 || tensor_int(len, b) > x->dim[time])
			return node_fail(g, n, NULL,
				"length %" PRId64 " is out of range for %" PRId64 " steps",
				tensor_int(len, b), x->dim[time]);
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

static int64_t inner_of(const struct tensor *x)
{
	int64_t inner = 1;
	for (int i = 2; i < x->rank; i++)
		inner *= x->dim[i];
	return inner;
}

static enum status reverse_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *x = n->in[0];
	const bool batch_first = node_int(n, "batch_axis", 1) == 0;
	const int64_t steps = x->dim[batch_first], batch = x->dim[!batch_first];
	const size_t row = (size_t)(inner_of(x) * dtype_bytes(x->dtype));
	for (int64_t b = 0; b < batch; b++)
		for (int64_t t = 0; t < steps; t++) {
			int64_t len = tensor_int(n->in[1], b), from = t < len ? len - 1 - t : t;
			int64_t y = batch_first ? b * steps + t : t * batch + b;
			int64_t k = batch_first ? b * steps + from : from * batch + b;
			memcpy((char *)out[0] + (size_t)y * row,
				(const char *)x->data + (size_t)k * row, row);
		}
	return ST_OK;
}

/* Twice backwards is forwards. */
static enum status reverse_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_op(
			g, n->op->name, 2, (struct tensor *[]){dy[0], n->in[1]}, n->nattr, n->attr);
	return g->failed;
}

static enum status reverse_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	const bool batch_first = node_int(n, "batch_axis", 1) == 0;
	const int64_t steps = x->dim[batch_first], batch = x->dim[!batch_first];
	const int64_t inner = inner_of(x), bs = batch_first ? steps * inner : inner;
	const int64_t ts = batch_first ? inner : batch * inner;
	if (n->in[1]->role != TR_CONSTANT && batch)
		TRY(call_kernel(
			e, &(struct kernel_call){.file = "lengths.h",
				   .function = "check_lengths",
				   .once = true,
				   .checked = true,
				   .args = CALL_ARGS(ARG_X(1), ARG_SIZE(batch), ARG_SIZE(steps))}));
	return call_kernel(
		e, &(struct kernel_call){.file = "reverse_steps.h",
			   .function = "reverse_steps",
			   .ntype = 1,
			   .type = {x},
			   .turns = x->numel ? batch * steps : 0,
			   .work = (double)x->numel,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(steps),
				   ARG_SIZE(bs), ARG_SIZE(ts), ARG_SIZE(inner))});
}

const struct op_def ops_reverse[] = {
	{.name = "ReverseSequence",
		.since = 10,
		.min_in = 2,
		.traits = OP_CHECKED,
		.infer = reverse_infer,
		.fold = reverse_fold,
		.grad = reverse_grad,
		.cost = data_move_cost,
		.emit_c = reverse_emit,
		.example = EXAMPLES({.in = "6,a,b a:i64<7"},
			{.in = "a,6 a:i64<7", .attr = "batch_axis=0 time_axis=1"},
			{.in = "4,3,2 =[4,1,2]"}, {.in = "4,3:i64<9 =[4,0,2]"})},
	{.name = NULL},
};
