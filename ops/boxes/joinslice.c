/* stint.JoinSlice: rows of a tensor that comes slice by slice (graph/slice_by_slice.c), written in
 * place over what has come before. */
#include "codegen/call.h"
#include "ops/data.h"

enum { SLICE, OTHERS };

static enum status join_infer(struct graph *g, struct node *n)
{
	const struct tensor *slice = n->in[SLICE], *others = node_input(n, OTHERS);
	const int64_t at = node_int(n, "at", 0), rows = node_int(n, "rows", 0);
	int64_t dim[RANK_MAX];
	if (slice->rank == 0 || at < 0 || at > rows || slice->dim[0] > rows - at)
		return node_fail(g, n, NULL, "the slice lies outside the rows");
	memcpy(dim, slice->dim, sizeof dim);
	dim[0] = rows;
	TRY(data_output(g, n, 0, slice->dtype, slice->rank, dim));
	if (others && (others->dtype != slice->dtype || !tensor_same_shape(others, n->out[0])))
		return node_fail(g, n, NULL, "the others have another shape");
	return ST_OK;
}

/* In place, as it nearly always is. */
static struct op_cost join_cost(const struct node *n)
{
	return (struct op_cost){0, 2 * (double)tensor_bytes(n->in[SLICE])};
}

static enum status join_emit(struct emit *e, const struct node *n)
{
	const struct tensor *slice = n->in[SLICE], *y = n->out[0];
	const int64_t rows = node_int(n, "rows", 0);
	const int64_t begin = rows ? y->numel / rows * node_int(n, "at", 0) : 0;
	TRY(call_kernel(e, &(struct kernel_call){.file = "join_slice.h",
				   .function = "join_slice",
				   .ntype = 1,
				   .type = {y},
				   .turns = slice->numel,
				   .work = (double)slice->numel,
				   .args = CALL_ARGS(ARG_Y_AT(0, begin), ARG_X(SLICE))}));
	if (n->nin == 1)
		return ST_OK;
	return call_kernel(e, &(struct kernel_call){.file = "join_slice.h",
				      .function = "join_others",
				      .ntype = 1,
				      .type = {y},
				      .turns = y->numel,
				      .work = 0,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(OTHERS), ARG_SIZE(begin),
					      ARG_SIZE(begin + slice->numel))});
}

const struct op_def ops_joinslice[] = {
	{.name = "stint.JoinSlice",
		.role = ROLE_JOIN,
		.min_in = 1,
		.max_in = 2,
		.traits = OP_STOP,
		.infer = join_infer,
		.cost = join_cost,
		.npair = 1,
		.pair = {{0, OTHERS}},
		.emit_c = join_emit,
		.example = EXAMPLES({.in = "3,5:data", .attr = "at=0 rows=3"},
			{.in = "2,5:data 7,5:data", .attr = "at=3 rows=7"},
			{.in = "2:i64<9 5:i64<9", .attr = "at=3 rows=5"})},
	{.name = NULL},
};
