/* Normalisations of rows (norm.h) on a GPU: how rows are given to threads. The functions are in
 * norm_cuda_text.h; sums over rows alone are channel_cuda.c's. */
#include <inttypes.h>

#include "ops/channel_cuda.h"
#include "ops/channel_cuda_text.h"
#include "ops/norm.h"
#include "ops/norm_cuda.h"
#include "ops/norm_cuda_text.h"
#include "ops/rows.h"

/* A row up to SHORT is a warp's, and what a thread keeps of one is at most KEEP. Rows of a part
 * whose sums over rows one block makes, at the least, and parts at the most: part of what makes
 * results repeat. */
enum { WARP = 32, THREADS = 256, SHORT = 1024, KEEP = 32, TAKE = 16, PARTS = 256, FEW = 528 };

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

static int64_t width_of(const struct norm *p)
{
	return p->channels * p->inner;
}

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
	const int64_t packs = divide_up(width_of(p), t.pack);
	if (width_of(p) <= SHORT) {
		t.threads = WARP;
		t.teams = (int)clamp(p->rows / (FEW / 2), 1, THREADS / WARP);
	} else {
		const int64_t each = p->rows < FEW ? 1 : KEEP / 2 / t.pack;
		t.threads = (int)clamp(
			divide_up(divide_up(packs, each), WARP) * WARP, 2 * WARP, THREADS);
	}
	t.packs = (int)clamp(divide_up(packs, t.threads), 1, KEEP / t.pack);
	t.chunks = divide_up(packs, (int64_t)t.threads * t.packs);
	const int64_t most = PARTS * (t.threads > WARP && t.threads <= THREADS / 2 ? 2 : 1);
	t.take = clamp(divide_up(p->rows, most), t.threads > WARP ? TAKE / 2 : TAKE, p->rows);
	t.parts = divide_up(p->rows, t.take);
	return t;
}

static bool any_narrow(const struct node *n)
{
	return dtype_is_narrow(n->in[0]->dtype) ||
	       (n->nin > 1 && n->in[1] && dtype_is_narrow(n->in[1]->dtype)) ||
	       dtype_is_narrow(n->out[0]->dtype);
}

bool norm_cuda_fits(const struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	return e->g->target->cuda && p->rows > 0 && width_of(p) > 0 && width_of(p) < INT32_MAX;
}

static void add_helpers(struct emit *e)
{
	block_sums_helper(e);
	elements_helper(e);
	emit_helper(e, "norm_rows", norm_rows_text);
}

/* "struct shape", the template parameter A, and `part` where blocks sum. */
static void emit_shape(
	struct emit *e, const struct norm *p, const struct team *t, bool scaled, bool biased)
{
	emit(e,
		"\tstruct shape {\n\t\tenum : int64_t { rows = %" PRId64 ", width = %" PRId64
		", inner = %" PRId64 ", groups = %" PRId64 ", channels = %" PRId64 ",\n",
		p->rows, width_of(p), p->inner, p->groups, p->channels);
	emit(e,
		"\t\t\tteam = %d, teams = %d, chunks = %" PRId64
		", N = %d, V = %d, PACKED = %d, centred = %d, scaled = %d, biased = %d,\n",
		t->threads, t->teams, t->chunks, t->packs, t->pack, width_of(p) % t->pack == 0,
		p->centred, scaled, biased);
	emit(e, "\t\t\ttake = %" PRId64 ", parts = %" PRId64 " };\n", t->take, t->parts);
	emit(e, "\t\tstatic constexpr double epsilon() { return %.17g; }\n\t};\n", p->epsilon);
	if (t->threads > WARP)
		emit(e, "\t__shared__ double part[2][BLOCK_WARPS];\n");
	else
		emit(e, "\tdouble (*const part)[BLOCK_WARPS] = 0;\n");
}

static void launch_rows(struct emit *e, const struct norm *p, const struct team *t)
{
	emit_launch(e, divide_up(p->rows, t->teams), t->threads * t->teams);
}

static const char *input(struct emit *e, bool there, int k)
{
	return there ? emit_text(e, "x%d", k) : "(const real *)0";
}

enum status norm_cuda_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const bool scale = norm_has(n, NORM_SCALE), bias = norm_has(n, NORM_BIAS);
	const struct team t = team_of(p, any_narrow(n));
	add_helpers(e);
	emit_helper(e, "norm_forward", norm_forward_text);
	emit_shape(e, p, &t, scale, bias);
	launch_rows(e, p, &t);
	emit(e, "\tnorm_forward<shape>(part, y0, %s, x0, %s, %s);\n",
		p->centred ? "y1, y2" : "(real *)0, y1", input(e, scale, NORM_SCALE),
		input(e, bias, NORM_BIAS));
	return ST_OK;
}

static void emit_gradient(struct emit *e, const struct node *n, const struct team *t)
{
	const struct norm *p = n->param;
	const bool scale = norm_has(n, 4);
	add_helpers(e);
	emit_helper(e, "norm_slopes", norm_slopes_text);
	emit_helper(e, "norm_gradient", norm_gradient_text);
	emit_shape(e, p, t, scale, false);
	launch_rows(e, p, t);
	emit(e, "\tnorm_gradient<shape>(part, y0, x0, x1, %s, x3, %s);\n", input(e, p->centred, 2),
		input(e, scale, 4));
}

enum status norm_grad_cuda_emit(struct emit *e, const struct node *n)
{
	const struct team t = team_of(n->param, any_narrow(n));
	emit_gradient(e, n, &t);
	return ST_OK;
}

/* --- The gradients of x, scale and bias at once --- */

int64_t norm_all_cuda_workspace(const struct node *n)
{
	const struct norm *p = n->param;
	const struct team t = team_of(p, any_narrow(n));
	if (p->rows == 0 || width_of(p) == 0)
		return 0;
	if (t.chunks > 1)
		return norm_scale_cuda_workspace(n);
	return t.parts * p->channels * (p->centred ? 2 : 1) * (int64_t)sizeof(float);
}

/* The sums first: dx may come in the place of dy or x. */
static enum status all_of_long_rows(struct emit *e, const struct node *n, const struct team *t)
{
	TRY(norm_scale_cuda_stages(e, n, 1));
	emit_stage(e);
	emit_gradient(e, n, t);
	return ST_OK;
}

enum status norm_all_cuda_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const struct team t = team_of(p, any_narrow(n));
	const int sums = p->centred ? 2 : 1;
	if (t.chunks > 1)
		return all_of_long_rows(e, n, &t);
	add_helpers(e);
	emit_helper(e, "norm_slopes", norm_slopes_text);
	emit_helper(e, "norm_all", norm_all_text);
	emit_shape(e, p, &t, true, false);
	if (t.teams > 1)
		emit(e, "\t__shared__ real meet[%" PRId64 "];\n", sums * p->channels);
	else
		emit(e, "\treal *const meet = 0;\n");
	emit_launch(e, t.parts, t.threads * t.teams);
	emit(e, "\tnorm_all<shape>(part, meet, y0, (real *)ws, x0, x1, %s, x3, x4);\n",
		input(e, p->centred, 2));
	emit_stage(e);
	emit_helper(e, "channel_totals", channel_totals_text);
	emit(e, "\t__shared__ double room[%d][8 * CHANNEL_TOTALS];\n", sums);
	emit_launch(e, divide_up(p->channels, 8), THREADS);
	emit(e, "\tchannel_store<%d>(room, y1, %s, (const real *)ws, %" PRId64 ", %" PRId64 ");\n",
		sums, p->centred ? "y2" : "(real *)0", t.parts, p->channels);
	return ST_OK;
}
