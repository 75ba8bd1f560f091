/* What training in micro-batches takes (graph/shard.c): a shard's rows of the whole batch, how many
 * of its rows count, and sums over the shards, by one process or by several. */
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

static enum status count_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, g->real, 0, NULL);
}

static enum status count_emit(struct emit *e, const struct node *n)
{
	return call_kernel(
		e, &(struct kernel_call){.file = "shard_count.h",
			   .function = "shard_count",
			   .once = true,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(node_int(n, "rows", 1)),
				   ARG_SIZE(node_int(n, "each", 1)))});
}

enum { ADDEND, CONTROL, SUMS };

static enum status keep_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[ADDEND], *all = n->in[SUMS];
	if (x->rank == 0 || all->rank != x->rank || all->dtype != x->dtype ||
		all->numel / node_int(n, "shards", 1) != x->numel)
		return node_fail(g, n, NULL, "its rows have another shape");
	return data_output(g, n, 0, all->dtype, all->rank, all->dim);
}

/* In place. */
static struct op_cost keep_cost(const struct node *n)
{
	return (struct op_cost){0, 2 * (double)tensor_bytes(n->in[ADDEND])};
}

/* Where other processes have rows, the runtime brings them. A GPU's steps of all micro-batches but
 * the last are one graph: which row it is says the control. */
static enum status keep_emit(struct emit *e, const struct node *n)
{
	const int64_t count = n->in[ADDEND]->numel, bytes = tensor_bytes(n->in[ADDEND]);
	const bool ranks = e->g->target->ranks;
	if (ranks && !e->g->target->cuda)
		return call_runtime(
			e, &(struct runtime_call){.function = "stint_keep_rows",
				   .args = CALL_ARGS(ARG_Y(0), ARG_X(ADDEND), ARG_INT(bytes))});
	TRY(call_kernel(e, &(struct kernel_call){.file = "shard.h",
				   .function = "keep_rows",
				   .ntype = 1,
				   .type = {n->out[0]},
				   .turns = count,
				   .work = (double)count,
				   .args = CALL_ARGS(ARG_Y(0), ARG_X(ADDEND), ARG_X(CONTROL),
					   ARG_SIZE(count))}));
	return ranks ? call_runtime(e, &(struct runtime_call){.function = "stint_share_rows",
					       .args = CALL_ARGS(ARG_Y(0), ARG_INT(bytes))})
		     : ST_OK;
}

/* Another process's are beside it when they are taken. */
static enum status share_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t dim[RANK_MAX];
	if (x->rank == 0)
		return node_fail(g, n, NULL, "it has no rows");
	memcpy(dim, x->dim, sizeof dim);
	if (!size_mul(dim[0], node_int(n, "shards", 1), &dim[0]))
		return node_fail(g, n, NULL, "its rows are too many");
	return data_output(g, n, 0, x->dtype, x->rank, dim);
}

static enum status share_emit(struct emit *e, const struct node *n)
{
	return call_runtime(
		e, &(struct runtime_call){.function = "stint_keep_rows",
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_INT(tensor_bytes(n->in[0])))});
}

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
	return call_kernel(e, &(struct kernel_call){.file = "accumulate.h",
				      .function = "accumulate",
				      .turns = count,
				      .work = (double)count,
				      .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(ADDEND),
					      ARG_X(CONTROL), ARG_X(SUMS), ARG_SIZE(count))});
}

static enum status take_infer(struct graph *g, struct node *n)
{
	const struct tensor *rows = n->in[0];
	const int64_t first = node_int(n, "first", 0), count = node_int(n, "count", 0);
	int64_t dim[RANK_MAX];
	if (rows->rank == 0 || first < 0 || count < 1 || count > rows->dim[0] - first)
		return node_fail(g, n, NULL, "there are no such rows");
	memcpy(dim, rows->dim, sizeof dim);
	dim[0] = count;
	return data_output(g, n, 0, rows->dtype, rows->rank, dim);
}

static enum status take_emit(struct emit *e, const struct node *n)
{
	const int64_t row = tensor_bytes(n->in[0]) / n->in[0]->dim[0];
	return call_runtime(e, &(struct runtime_call){.function = "stint_take_rows",
				       .args = CALL_ARGS(ARG_Y(0), ARG_X(0),
					       ARG_INT(node_int(n, "first", 0) * row),
					       ARG_INT(node_int(n, "count", 0) * row))});
}

/* --- Several processes: the runtime's part (runtime/stint_rt.h, struct stint_ranks) --- */

static enum status same_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
}

/* Nothing, where one process does all. */
static struct op_cost no_cost(const struct node *n)
{
	(void)n;
	return (struct op_cost){0, 0};
}

/* What others have summed arrives in pieces, one for each shard at most: of a size that a link
 * between machines, or between GPUs, is mostly busy with, and not with beginning it. */
static int64_t room_bytes(const struct graph *g, const struct node *n)
{
	enum { MOST = 1 << 18, MOST_CUDA = 1 << 24, LEAST = 1 << 12 };
	const int64_t whole = tensor_bytes(n->in[ADDEND]), shards = node_int(n, "shards", 1);
	const int64_t most = g->target->cuda ? MOST_CUDA : MOST;
	const int64_t piece = most / shards < LEAST ? LEAST : most / shards;
	return shards * (whole < piece ? (whole + 63) / 64 * 64 : piece);
}

static enum status start_infer(struct graph *g, struct node *n)
{
	const int64_t room = room_bytes(g, n) / dtype_bytes(n->in[ADDEND]->dtype);
	TRY(same_infer(g, n));
	return data_output(g, n, 1, n->in[ADDEND]->dtype, 1, &room);
}

static enum status start_emit(struct emit *e, const struct node *n)
{
	if (e->g->target->cuda)
		(void)emit_source(e, "ranks.cuh", 0, NULL);
	return call_runtime(
		e, &(struct runtime_call){.function = "stint_start_sum",
			   .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(ADDEND), ARG_X(SUMS),
				   ARG_INT(n->in[ADDEND]->numel), ARG_INT(tensor_bytes(n->out[1])),
				   ARG_INT(node_int(n, "whole", 1)))});
}

static enum status sum_ranks_emit(struct emit *e, const struct node *n)
{
	return call_runtime(
		e, &(struct runtime_call){.function = "stint_sum_ranks",
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_INT(n->in[0]->numel))});
}

/* --- Pieces: each process has one of so many --- */

static enum status piece_infer(struct graph *g, struct node *n)
{
	const int64_t ranks = node_int(n, "ranks", 1), numel = n->in[0]->numel;
	const int64_t piece = numel / ranks + (numel % ranks != 0);
	return data_output(g, n, 0, n->in[0]->dtype, 1, &piece);
}

static enum status scatter_emit(struct emit *e, const struct node *n)
{
	return call_runtime(
		e, &(struct runtime_call){.function = "stint_scatter_sum",
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_INT(n->in[0]->numel))});
}

static enum status own_piece_emit(struct emit *e, const struct node *n)
{
	return call_runtime(
		e, &(struct runtime_call){.function = "stint_own_piece",
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_INT(n->in[0]->numel))});
}

enum { WHOLE, PIECE };

static enum status gather_infer(struct graph *g, struct node *n)
{
	const int64_t ranks = node_int(n, "ranks", 1), numel = n->in[WHOLE]->numel;
	if (n->in[PIECE]->rank != 1 || n->in[PIECE]->numel != numel / ranks + (numel % ranks != 0))
		return node_fail(g, n, NULL, "its piece has another size");
	return same_infer(g, n);
}

/* What it was is not read. */
static struct op_cost gather_cost(const struct node *n)
{
	return (struct op_cost){0, (double)(tensor_bytes(n->in[PIECE]) + tensor_bytes(n->out[0]))};
}

static enum status gather_emit(struct emit *e, const struct node *n)
{
	return call_runtime(
		e, &(struct runtime_call){.function = "stint_gather_pieces",
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(PIECE), ARG_INT(n->out[0]->numel))});
}

/* In a schedule this is a copy, and no kernel (codegen/copies.c); the planner counts what is sent.
 */
static enum status fetch_infer(struct graph *g, struct node *n)
{
	const struct tensor *piece = n->in[0], *whole = piece->piece_of;
	if (!whole)
		return node_fail(g, n, NULL, "what it fetches is in no pieces");
	return data_output(g, n, 0, piece->dtype, whole->rank, whole->dim);
}

const struct op_def ops_shard[] = {
	{.name = "stint.Shard",
		.role = ROLE_SHARD,
		.min_in = 2,
		.traits = OP_STOP,
		.infer = shard_infer,
		.cost = data_move_cost,
		.emit_c = shard_emit},
	{.name = "stint.CountedRows",
		.min_in = 1,
		.traits = OP_STOP,
		.infer = count_infer,
		.emit_c = count_emit},
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
	{.name = "stint.StartSum",
		.role = ROLE_START_SUM,
		.min_in = 3,
		.min_out = 2,
		.max_out = 2,
		.traits = OP_ONCE,
		.infer = start_infer,
		.cost = no_cost,
		.npair = 1,
		.pair = {{0, ADDEND}},
		.emit_c = start_emit},
	{.name = "stint.SumRanks",
		.role = ROLE_SUM_RANKS,
		.min_in = 2,
		.traits = OP_ONCE | OP_WAITS,
		.infer = same_infer,
		.cost = no_cost,
		.npair = 1,
		.pair = {{0, 0}},
		.emit_c = sum_ranks_emit},
	{.name = "stint.ScatterSum",
		.role = ROLE_SCATTER_SUM,
		.min_in = 2,
		.traits = OP_ONCE | OP_WAITS,
		.infer = piece_infer,
		.npair = 1,
		.pair = {{0, 0}},
		.emit_c = scatter_emit},
	{.name = "stint.OwnPiece",
		.role = ROLE_OWN_PIECE,
		.min_in = 1,
		.max_in = 2,
		.traits = OP_STOP,
		.infer = piece_infer,
		.cost = data_move_cost,
		.emit_c = own_piece_emit},
	{.name = "stint.GatherPieces",
		.role = ROLE_GATHER_PIECES,
		.min_in = 2,
		.traits = OP_UPDATE,
		.infer = gather_infer,
		.cost = gather_cost,
		.npair = 1,
		.pair = {{0, WHOLE}},
		.emit_c = gather_emit},
	{.name = "stint.FetchPieces",
		.role = ROLE_FETCH_PIECES,
		.min_in = 1,
		.traits = OP_STOP,
		.infer = fetch_infer,
		.cost = no_cost},
	{.name = "stint.KeepRows",
		.role = ROLE_KEEP_ROWS,
		.min_in = 3,
		.max_in = 3,
		.traits = OP_UPDATE,
		.infer = keep_infer,
		.cost = keep_cost,
		.npair = 1,
		.pair = {{0, SUMS}},
		.emit_c = keep_emit},
	{.name = "stint.ShareRow",
		.role = ROLE_SHARE_ROW,
		.min_in = 1,
		.traits = OP_ONCE | OP_STOP,
		.infer = share_infer,
		.cost = data_move_cost,
		.emit_c = share_emit},
	{.name = "stint.TakeRows",
		.role = ROLE_TAKE_ROWS,
		.min_in = 1,
		.traits = OP_STOP | OP_WAITS,
		.infer = take_infer,
		.cost = data_move_cost,
		.emit_c = take_emit},
	{0},
};
