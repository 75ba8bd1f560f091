/* Which kernels do a pool, plane by plane. Sums of a plane stay real: one that is stored narrower
 * is made in a thread's scratch, and rounded from there. */
#include "ops/pool/pool_op.h"

static int64_t planes_of(const struct node *n)
{
	const struct pool *p = n->param;
	return p->batch * p->channels;
}

/* Bytes of a plane of the output, where it is rounded. */
static int64_t scratch_of(const struct node *n)
{
	if (!dtype_is_narrow(n->out[0]->dtype))
		return 0;
	return round_up(n->out[0]->numel / planes_of(n), 16) * (int64_t)sizeof(float);
}

int64_t pool_workspace(const struct node *n, const struct target *t)
{
	return scratch_of(n) * t->threads;
}

/* Room for what is rounded: the last argument of those that add up. */
static struct call_arg sums_of(const struct node *n)
{
	const int64_t bytes = scratch_of(n);
	return bytes ? ARG_OWN(0, bytes) : ARG_NULL;
}

static enum status call_planes(struct emit *e, const struct node *n, struct kernel_call c)
{
	c.turns = planes_of(n);
	c.work = pool_cost(n).flops;
	return call_kernel(e, &c);
}

enum status pool_emit_max(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *const x = n->in[0], *const y = n->out[0];
	const struct call_struct window = WINDOW_STRUCT("w", &p->w);
	TRY(call_planes(e, n,
		(struct kernel_call){.file = p->lanes ? "pool_max_lanes.h" : "pool_max.h",
			.function = p->lanes ? "max_pool_lanes" : "max_pool",
			.ntype = 3,
			.type = {x, x, y},
			.args = CALL_ARGS(ARG_STRUCT(&window), ARG_Y(0), ARG_X(0), sums_of(n))}));
	if (n->nout < 2 || !n->out[1])
		return ST_OK;
	return call_planes(e, n,
		(struct kernel_call){.file = "pool_max.h",
			.function = "max_pool_index",
			.ntype = 3,
			.type = {x, x, y},
			.args = CALL_ARGS(ARG_STRUCT(&window), ARG_INT(p->column_major), ARG_Y(1),
				ARG_X(0))});
}

/* From x, or from the indices. */
enum status pool_emit_max_grad(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *const dy = n->in[0], *const x = n->in[1], *const dx = n->out[0];
	const struct call_struct window = WINDOW_STRUCT("w", &p->w);
	if (x->dtype == DT_I64)
		return call_planes(e, n,
			(struct kernel_call){.file = "pool_scatter.h",
				.function = "max_pool_scatter",
				.ntype = 2,
				.type = {dy, dx},
				.args = CALL_ARGS(ARG_INT(p->w.plane), ARG_INT(p->w.out_plane),
					ARG_Y(0), ARG_X(1), ARG_X(0), sums_of(n))});
	return call_planes(e, n,
		(struct kernel_call){.file = p->lanes ? "pool_max_lanes.h" : "pool_max.h",
			.function = p->lanes ? "max_pool_grad_lanes" : "max_pool_grad",
			.ntype = 3,
			.type = {x, dy, dx},
			.args = CALL_ARGS(
				ARG_STRUCT(&window), ARG_Y(0), ARG_X(1), ARG_X(0), sums_of(n))});
}

static enum status emit_average(
	struct emit *e, const struct node *n, const char *function, const char *of_lanes)
{
	const struct pool *p = n->param;
	const struct call_struct window = WINDOW_STRUCT("w", &p->w);
	return call_planes(e, n,
		(struct kernel_call){.file = p->lanes ? "pool_average_lanes.h" : "pool_average.h",
			.function = p->lanes ? of_lanes : function,
			.ntype = 2,
			.type = {n->in[0], n->out[0]},
			.args = CALL_ARGS(ARG_STRUCT(&window), ARG_INT(p->sums),
				ARG_INT(p->pad_counts), ARG_Y(0), ARG_X(0), sums_of(n))});
}

enum status pool_emit_average(struct emit *e, const struct node *n)
{
	return emit_average(e, n, "average_pool", "average_pool_lanes");
}

enum status pool_emit_average_grad(struct emit *e, const struct node *n)
{
	return emit_average(e, n, "average_pool_grad", "average_pool_grad_lanes");
}

enum status pool_emit_global(struct emit *e, const struct node *n)
{
	return call_kernel(
		e, &(struct kernel_call){.file = "pool_global.h",
			   .function = "average_planes",
			   .ntype = 2,
			   .type = {n->in[0], n->out[0]},
			   .turns = n->out[0]->numel,
			   .work = (double)n->in[0]->numel,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(pool_global_count(n)))});
}
