/* What training in micro-batches takes (graph/shard.c): a shard's rows of the whole batch, and sums
 * over the shards. */
#include <inttypes.h>

#include "codegen/call.h"
#include "ops/data.h"

static enum status shard_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	const int64_t shards = node_int(n, "shards", 1);
	int64_t dim[RANK_MAX];
	if (x->rank == 0 || shards < 1 || x->dim[0] % shards)
		return node_fail(g, n, NULL, "its rows are no multiple of %" PRId64, shards);
	memcpy(dim, x->dim, sizeof dim);
	dim[0] /= shards;
	return data_output(g, n, 0, x->dtype, x->rank, dim);
}

static enum status shard_emit(struct emit *e, const struct node *n)
{
	const int64_t count = n->out[0]->numel;
	return call_kernel(
		e, &(struct kernel_call){.file = "shard.h",
			   .function = "shard_rows",
			   .ntype = 1,
			   .type = {n->out[0]},
			   .turns = count,
			   .work = (double)count,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(count))});
}

enum { ADDEND, CONTROL, SUMS };

static enum status accumulate_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[ADDEND], *sums = n->in[SUMS];
	if (sums->rank != 2 || sums->dim[1] != x->numel)
		return node_fail(g, n, NULL, "its sums have another shape");
	TRY(data_output(g, n, 0, x->dtype, x->rank, x->dim));
	return data_output(g, n, 1, sums->dtype, sums->rank, sums->dim);
}

/* Two of three shards are added to one sum on average. */
static struct op_cost accumulate_cost(const struct node *n)
{
	const double k = (double)n->in[ADDEND]->numel,
		     size = (double)dtype_bytes(n->in[ADDEND]->dtype);
	return (struct op_cost){k, 3 * k * size};
}

static enum status accumulate_emit(struct emit *e, const struct node *n)
{
	const int64_t count = n->in[ADDEND]->numel;
	return call_kernel(e,
		&(struct kernel_call){.file = "accumulate.h",
			.function = "accumulate",
			.turns = count,
			.work = (double)count,
			.args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(ADDEND), ARG_X(CONTROL),
				ARG_X(SUMS), ARG_SIZE(count), ARG_SIZE(node_int(n, "shards", 1)))});
}

const struct op_def ops_shard[] = {
	{.name = "stint.Shard",
		.role = ROLE_SHARD,
		.min_in = 2,
		.traits = OP_STOP,
		.infer = shard_infer,
		.cost = data_move_cost,
		.emit_c = shard_emit},
	{.name = "stint.Accumulate",
		.role = ROLE_ACCUMULATE,
		.min_in = 3,
		.min_out = 2,
		.max_out = 2,
		.traits = OP_UPDATE,
		.infer = accumulate_infer,
		.cost = accumulate_cost,
		.npair = 2,
		.pair = {{0, ADDEND}, {1, SUMS}},
		.emit_c = accumulate_emit},
	{0},
};
