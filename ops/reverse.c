/* ReverseSequence: the first so many steps of each sequence of a batch, backwards. */
#include <inttypes.h>

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
	if (n->in[1]->role != TR_CONSTANT && batch) {
		emit(e, "\tfor (int64_t b = 0; b < %" PRId64 "; b++)\n", batch);
		emit(e, "\t\tif (x1[b] < 0 || x1[b] > %" PRId64 ")\n", steps);
		emit(e, "\t\t\treturn BAD_INDEX(x1[b]);\n");
	}
	if (x->numel) {
		const struct emit_loop loop[] = {{"b", batch, 1}, {"t", steps, 1}};
		emit_loops(e, (double)x->numel, 2, loop);
		emit(e, " {\n\t\t\tconst int64_t from = t < x1[b] ? x1[b] - 1 - t : t;\n");
		emit(e,
			"\t\t\tmemcpy(&y0[b * %" PRId64 " + t * %" PRId64 "], &x0[b * %" PRId64
			" + from * %" PRId64 "], %" PRId64 " * sizeof(%s));\n",
			bs, ts, bs, ts, inner, emit_type(x));
		emit(e, "\t\t}\n");
	}
	emit(e, "\treturn 0;\n");
	return ST_OK;
}

const struct op_def ops_reverse[] = {
	{.name = "ReverseSequence",
		.since = 10,
		.min_in = 2,
		.max_in = 2,
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
