/* Normalisations of rows (norm_op.h) on a GPU: how rows are given to threads. The functions are
 * kernels/norm.cuh's; sums over rows alone are channel_cuda.c's. */
#include <string.h>

#include "ops/norm/channel_cuda.h"
#include "ops/norm/norm_cuda.h"
#include "ops/norm/norm_op.h"

/* A row up to SHORT is a warp's, and what a thread keeps of one is at most KEEP. Rows of a part
 * whose sums over rows one block makes, at the least, and parts at the most: part of what makes
 * results repeat. */
enum { WARP = 32, THREADS = 256, SHORT = 1024, KEEP = 32, TAKE = 16, PARTS = 256, FEW = 528 };

struct team {
	int pack, packs;     /* elements of a pack; packs of a chunk that a thread has */
	int threads;         /* of a row */
	int teams;           /* of a block */
	int64_t chunks;      /* of a row */
	int64_t take, parts; /* where rows are summed: of a part; of all rows */
};

static struct team team_of(const struct norm *p, bool narrow)
{
	struct team t = {.pack = narrow ? 8 : 4, .teams = 1, .chunks = 1};
	const int64_t packs = div_up(norm_width(p), t.pack);
	if (norm_width(p) <= SHORT) {
		t.threads = WARP;
		t.teams = (int)clamp64(p->rows / (FEW / 2), 1, THREADS / WARP);
	} else {
		const int64_t each = p->rows < FEW ? 1 : KEEP / 2 / t.pack;
		t.threads = (int)clamp64(
			div_up(div_up(packs, each), WARP) * WARP, 2 * WARP, THREADS);
	}
	t.packs = (int)clamp64(div_up(packs, t.threads), 1, KEEP / t.pack);
	t.chunks = div_up(packs, (int64_t)t.threads * t.packs);
	const int64_t most = PARTS * (t.threads > WARP && t.threads <= THREADS / 2 ? 2 : 1);
	t.take = clamp64(div_up(p->rows, most), t.threads > WARP ? TAKE / 2 : TAKE, p->rows);
	t.parts = div_up(p->rows, t.take);
	return t;
}

static bool any_narrow(const struct node *n)
{
	return dtype_is_narrow(n->in[0]->dtype) ||
	       (node_input(n, 1) && dtype_is_narrow(n->in[1]->dtype)) ||
	       dtype_is_narrow(n->out[0]->dtype);
}

static bool fits(const struct node *n)
{
	const struct norm *p = n->param;
	return p->rows > 0 && norm_width(p) > 0 && norm_width(p) < INT32_MAX;
}

bool norm_adds(const struct graph *g, const struct node *n)
{
	return g->target->cuda && fits(n);
}

/* Shape, the kernels' template parameter. `adds`: a bias, or of a gradient another one. */
struct traits {
	struct call_field field[17];
	struct call_struct s;
};

static const struct call_struct *shape_of(
	const struct norm *p, const struct team *t, bool scaled, bool adds, struct traits *out)
{
	const struct call_field field[] = {{"rows", ARG_INT(p->rows)},
		{"width", ARG_INT(norm_width(p))}, {"inner", ARG_INT(p->inner)},
		{"groups", ARG_INT(p->groups)}, {"channels", ARG_INT(p->channels)},
		{"team", ARG_INT(t->threads)}, {"teams", ARG_INT(t->teams)},
		{"chunks", ARG_INT(t->chunks)}, {"N", ARG_INT(t->packs)}, {"V", ARG_INT(t->pack)},
		{"PACKED", ARG_INT(norm_width(p) % t->pack == 0)}, {"centred", ARG_INT(p->centred)},
		{"scaled", ARG_INT(scaled)}, {"adds", ARG_INT(adds)}, {"take", ARG_INT(t->take)},
		{"parts", ARG_INT(t->parts)}, {.name = NULL}};
	memcpy(out->field, field, sizeof field);
	out->s = (struct call_struct){"struct", "shape", out->field};
	return &out->s;
}

static const struct call_arg none = {.kind = CALL_NAME, .name = "(real *)0"};

static struct call_arg input(bool there, int k)
{
	return there ? ARG_X(k) : none;
}

/* A node too large for these kernels, or without elements, has those of the C face. */
enum status norm_cuda_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const bool scale = node_input(n, NORM_SCALE), bias = node_input(n, NORM_BIAS);
	const struct team t = team_of(p, any_narrow(n));
	struct traits room;
	if (!fits(n))
		return norm_emit(e, n);
	return call_kernel(
		e, &(struct kernel_call){.file = "norm.cuh",
			   .function = "norm_forward",
			   .tasks = div_up(p->rows, t.teams),
			   .threads = t.threads * t.teams,
			   .shared = {"norm_parts"},
			   .traits = shape_of(p, &t, scale, bias, &room),
			   .args = CALL_ARGS(ARG_Y(0), p->centred ? ARG_Y(1) : none,
				   ARG_Y(p->centred ? 2 : 1), ARG_X(0), input(scale, NORM_SCALE),
				   input(bias, NORM_BIAS), ARG_DOUBLE(p->epsilon))});
}

static enum status gradient(struct emit *e, const struct node *n, const struct team *t)
{
	const struct norm *p = n->param;
	const bool scale = node_input(n, 4), adds = node_input(n, NORM_ADDED);
	struct traits room;
	return call_kernel(
		e, &(struct kernel_call){.file = "norm.cuh",
			   .function = "norm_gradient",
			   .tasks = div_up(p->rows, t->teams),
			   .threads = t->threads * t->teams,
			   .shared = {"norm_parts"},
			   .traits = shape_of(p, t, scale, adds, &room),
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), input(p->centred, 2),
				   ARG_X(3), input(scale, 4), input(adds, NORM_ADDED))});
}

enum status norm_grad_cuda_emit(struct emit *e, const struct node *n)
{
	const struct team t = team_of(n->param, any_narrow(n));
	return fits(n) ? gradient(e, n, &t) : norm_grad_emit(e, n);
}

enum status norm_scale_cuda_emit(struct emit *e, const struct node *n)
{
	return fits(n) ? norm_scale_cuda_stages(e, n, 0) : norm_scale_emit(e, n);
}

/* --- The gradients of x, scale and bias at once --- */

int64_t norm_all_cuda_workspace(const struct node *n, const struct target *t)
{
	const struct norm *p = n->param;
	const struct team by = team_of(p, any_narrow(n));
	if (p->rows == 0 || norm_width(p) == 0)
		return 0;
	if (by.chunks > 1)
		return norm_scale_cuda_workspace(n, t);
	return by.parts * p->channels * (p->centred ? 2 : 1) * (int64_t)sizeof(float);
}

/* The sums first: dx may come in the place of dy or x. */
static enum status all_of_long_rows(struct emit *e, const struct node *n, const struct team *t)
{
	TRY(norm_scale_cuda_stages(e, n, 1));
	return gradient(e, n, t);
}

enum status norm_all_cuda_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const struct team t = team_of(p, any_narrow(n));
	const bool adds = node_input(n, NORM_ADDED);
	struct traits room;
	if (!fits(n))
		return norm_all_emit(e, n);
	if (t.chunks > 1)
		return all_of_long_rows(e, n, &t);
	TRY(call_kernel(e, &(struct kernel_call){.file = "norm.cuh",
				   .function = "norm_all",
				   .tasks = t.parts,
				   .threads = t.threads * t.teams,
				   .shared = {"norm_parts", "norm_meeting<shape>"},
				   .traits = shape_of(p, &t, true, adds, &room),
				   .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_X(0), ARG_X(1),
					   input(p->centred, 2), ARG_X(3), ARG_X(4),
					   input(adds, NORM_ADDED))}));
	return channel_last_stage(e, p->channels,
		(struct kernel_call){.file = "channel.cuh",
			.function = "channel_store_reals",
			.nconstant = 1,
			.constant = {p->centred ? 2 : 1},
			.args = CALL_ARGS(ARG_Y(1), p->centred ? ARG_Y(2) : none, ARG_SCRATCH(0),
				ARG_INT(t.parts), ARG_INT(p->channels))});
}
