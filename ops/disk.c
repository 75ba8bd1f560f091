/* What lies in a file between its uses (graph/away.c): the runtime's to bring and to take away
 * (runtime/stint_rt_disk.c). In a schedule these are copies, and no kernels (codegen/copies.c). */
#include "ops/boxes/boxes_op.h"

/* The planner counts what is moved: by the disk's rate (bridge/from_graph.c). */
static struct op_cost no_cost(const struct node *n)
{
	(void)n;
	return (struct op_cost){0, 0};
}

enum { HOME, VALUE, WHOLE };

/* How many elements of it; 0: it is whole. */
static int64_t count_of(const struct node *n)
{
	return node_int(n, "count", 0);
}

static bool is_inside(const struct node *n, const struct tensor *t)
{
	const int64_t from = node_int(n, "from", 0);
	return from >= 0 && count_of(n) <= t->numel - from;
}

static enum status fetch_infer(struct graph *g, struct node *n)
{
	const int64_t count = count_of(n);
	if (!is_inside(n, n->in[HOME]))
		return node_fail(g, n, NULL, "what it fetches is not there");
	return count ? data_output(g, n, 0, n->in[HOME]->dtype, 1, &count) : data_infer_like(g, n);
}

/* What is left in memory of it: nothing. */
static enum status store_infer(struct graph *g, struct node *n)
{
	const int64_t none = 0, count = count_of(n);
	const struct tensor *home = n->in[count ? WHOLE : HOME];
	if ((count ? !is_inside(n, home) || n->in[VALUE]->numel != count
		   : !tensor_same_shape(home, n->in[VALUE])) ||
		home->dtype != n->in[VALUE]->dtype)
		return node_fail(g, n, NULL, "what it stores has another shape");
	return data_output(g, n, 0, home->dtype, 1, &none);
}

static enum status piece_infer(struct graph *g, struct node *n)
{
	const int64_t count = count_of(n);
	if (!is_inside(n, n->in[0]))
		return node_fail(g, n, NULL, "what it takes is not there");
	TRY(data_output(g, n, 0, n->in[0]->dtype, 1, &count));
	n->out[0]->is_gradient = true;
	return box_settle(g, n,
		(struct box){.rank = 1,
			.dim = {count},
			.xs = {1},
			.ys = {1},
			.xoff = node_int(n, "from", 0)});
}

const struct op_def ops_disk[] = {
	{.name = "stint.Fetch",
		.role = ROLE_FETCH,
		.min_in = 1,
		.max_in = 18,
		.traits = OP_STOP,
		.infer = fetch_infer,
		.cost = no_cost},
	{.name = "stint.Store",
		.role = ROLE_STORE,
		.min_in = 2,
		.max_in = 3,
		.traits = OP_UPDATE,
		.infer = store_infer,
		.cost = no_cost,
		.npair = 1,
		.pair = {{0, HOME}}},
	{.name = "stint.Piece",
		.role = ROLE_PIECE,
		.min_in = 2,
		.traits = OP_STOP,
		.infer = piece_infer,
		.cost = data_move_cost,
		.emit_c = box_emit},
	{0},
};
