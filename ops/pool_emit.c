/* The C text of pools: a function for a plane, called for each. Sums of a plane stay real: one that
 * is stored narrower is made in a thread's scratch, and rounded from there. */
#include <inttypes.h>

#include "ops/gemm.h"
#include "ops/lanes.h"
#include "ops/pool.h"
#include "ops/pool_text.h"

/* Elements of a plane of output k. */
static int64_t plane_of(const struct node *n, int k)
{
	const struct pool *p = n->param;
	return n->out[k]->numel / (p->batch * p->channels);
}

static int64_t scratch_of(const struct node *n)
{
	return dtype_is_narrow(n->out[0]->dtype) ? round_up(plane_of(n, 0), 16) : 0;
}

int64_t pool_workspace(const struct node *n, const struct target *t)
{
	return t->cuda ? 0 : scratch_of(n) * (int64_t)sizeof(float) * t->threads;
}

/* The loop over planes around one call, which lacks its last argument: where output k's plane is.
 */
static void emit_planes(struct emit *e, const struct node *n, int k, const char *call)
{
	const struct pool *p = n->param;
	const int64_t size = plane_of(n, k);
	const bool rounds = dtype_is_narrow(n->out[k]->dtype);
	emit_loops(e, pool_cost(n).flops, 1, &(struct emit_loop){"p", p->batch * p->channels, 1});
	if (!rounds) {
		emit(e, "\n\t\t%s, y%d + p * %" PRId64 ");\n", call, k, size);
		return;
	}
	emit(e, " {\n\t\treal *plane = (real *)ws + thread_index() * %" PRId64 ";\n",
		scratch_of(n));
	emit(e, "\t\t%s, plane);\n", call);
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n", size);
	emit(e, "\t\t\ty%d[p * %" PRId64 " + i] = %s;\n\t}\n", k, size,
		emit_stored(e, n->out[k], "plane[i]"));
}

/* "x0 + p * 36": the plane of input k. */
static const char *plane(struct emit *e, const struct node *n, int k)
{
	const struct pool *p = n->param;
	return emit_text(e, "x%d + p * %" PRId64, k, n->in[k]->numel / (p->batch * p->channels));
}

/* What the functions of a node read windows with. On blocks of channels these are rows that a tap
 * sees: of t[0], and functions that read one have the suffix of t. Returns their arguments: "&s,
 * 16, ". */
static const char *begin(
	struct emit *e, const struct node *n, bool counts, int count, const struct tensor *const *t)
{
	const struct pool *p = n->param;
	if (!p->lanes)
		window_emit_row(e);
	window_emit(e, &p->w, "s");
	if (counts)
		emit_helper(e, "window_count", count_text);
	if (!p->lanes)
		return "&s, ";
	emit_helper_on(e, "pool_tap", lanes_text, count, t);
	return emit_text(e, "&s, %" PRId64 ", ", p->w.size[2]);
}

enum status pool_emit_max(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *x = n->in[0];
	if (e->g->target->cuda)
		return pool_cuda_max(e, n);
	const char *from = plane(e, n, 0), *window = begin(e, n, false, 1, &x);
	const char *called = emit_helper_on(e, p->lanes ? "max_pool_lanes" : "max_pool",
		p->lanes ? max_lanes_text : max_text, 1, &x);
	emit_planes(e, n, 0, emit_text(e, "%s(%s%s", called, window, from));
	if (n->nout < 2 || !n->out[1])
		return ST_OK;
	emit_helper_on(e, "max_pool_where", where_text, 1, &x);
	called = emit_helper_on(e, "max_pool_index", max_index_text, 1, &x);
	emit_planes(e, n, 1,
		emit_text(e, "%s(%s%d, p * %" PRId64 ", %s", called, window, p->column_major,
			p->w.plane, from));
	return ST_OK;
}

/* From x, or from the indices. */
enum status pool_emit_max_grad(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *const dy = n->in[0], *const x_dy[] = {n->in[1], dy};
	if (e->g->target->cuda)
		return pool_cuda_max_grad(e, n);
	const char *planes = emit_text(e, "%s, %s", plane(e, n, 1), plane(e, n, 0));
	if (n->in[1]->dtype == DT_I64) {
		const char *called = emit_helper_on(
			e, "max_pool_scatter", max_scatter_text, 1, &dy);
		emit_planes(e, n, 0,
			emit_text(e, "%s(%" PRId64 ", %" PRId64 ", p * %" PRId64 ", %s", called,
				p->w.plane, p->w.out_plane, p->w.plane, planes));
		return ST_OK;
	}
	const char *window = begin(e, n, false, 2, x_dy);
	if (!p->lanes)
		emit_helper_on(e, "max_pool_where", where_text, 2, x_dy);
	const char *called = emit_helper_on(e, p->lanes ? "max_pool_grad_lanes" : "max_pool_grad",
		p->lanes ? max_grad_lanes_text : max_grad_text, 2, x_dy);
	emit_planes(e, n, 0, emit_text(e, "%s(%s%s", called, window, planes));
	return ST_OK;
}

enum status pool_emit_average(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *x = n->in[0];
	if (e->g->target->cuda)
		return pool_cuda_average(e, n);
	const char *window = begin(e, n, true, 1, &x);
	const char *called = emit_helper_on(e, p->lanes ? "average_pool_lanes" : "average_pool",
		p->lanes ? average_lanes_text : average_text, 1, &x);
	emit_planes(e, n, 0,
		emit_text(e, "%s(%s%d, %d, %s", called, window, p->sums, p->pad_counts,
			plane(e, n, 0)));
	return ST_OK;
}

enum status pool_emit_average_grad(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *dy = n->in[0];
	const struct tensor real = {.dtype = e->g->real}, *dx = &real; /* not yet rounded */
	if (e->g->target->cuda)
		return pool_cuda_average_grad(e, n);
	const char *window = begin(e, n, true, 1, &dx);
	const char *called = emit_helper_on(e,
		p->lanes ? "average_pool_grad_lanes" : "average_pool_grad",
		p->lanes ? average_grad_lanes_text : average_grad_text, 1, &dy);
	emit_planes(e, n, 0,
		emit_text(e, "%s(%s%d, %d, %s", called, window, p->sums, p->pad_counts,
			plane(e, n, 0)));
	return ST_OK;
}

enum status pool_emit_global(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	const int64_t count = pool_global_count(n);
	const char *sums = real_sum(e, x);
	char literal[40];
	emit_loops(e, (double)x->numel, 1, &(struct emit_loop){"p", n->out[0]->numel, 1});
	const char *y = emit_text(e, "%s(x0 + p * %" PRId64 ", %" PRId64 ") / %s", sums, count,
		count, emit_real(e, (double)count, literal));
	emit(e, "\n\t\ty0[p] = %s;\n", emit_stored(e, n->out[0], y));
	return ST_OK;
}
