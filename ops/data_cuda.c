/* Copies of boxes on a GPU: turns are shared over elements, or over packs of them where all that is
 * copied lies at multiples of a pack, so that neighbouring threads read and write neighbours. A
 * transposition goes through tiles in shared memory. */
#include <inttypes.h>

#include "ops/data.h"
#include "ops/turns.h"

enum { TILE = 32, ROWS = TURNS_THREADS / TILE, LEAST_TILE = 12, PACK_BYTES = 16 };

static int64_t count_of(const struct box *b)
{
	int64_t n = 1;
	for (int k = 0; k < b->rank; k++)
		n *= b->dim[k];
	return n;
}

/* --- Packs --- */

static bool divides(int64_t n, const struct box *b)
{
	const int m = b->rank - 1;
	bool all = b->dim[m] % n == 0 && b->xoff % n == 0 && b->yoff % n == 0;
	for (int k = 0; k < m; k++)
		all = all && b->xs[k] % n == 0 && b->ys[k] % n == 0;
	return all;
}

/* The same box over packs of n elements, as many as fit 16 bytes and divide all of its numbers. */
static struct box packed(const struct box *b, int64_t size, int64_t *n)
{
	struct box p = *b;
	const int m = b->rank - 1;
	*n = PACK_BYTES / size;
	if (m < 0 || b->xs[m] != 1 || b->ys[m] != 1)
		*n = 1;
	while (*n > 1 && !divides(*n, b))
		*n /= 2;
	if (*n == 1)
		return p;
	p.dim[m] /= *n;
	p.xoff /= *n;
	p.yoff /= *n;
	for (int k = 0; k < m; k++) {
		p.xs[k] /= *n;
		p.ys[k] /= *n;
	}
	return p;
}

/* "x0", or "((const uint4 *)x0)" for packs of 16 bytes. */
static const char *as_packs(
	struct emit *e, const char *name, bool reads, const struct tensor *t, int64_t n)
{
	const int64_t bytes = n * dtype_bytes(t->dtype);
	const char *type = bytes == 16  ? "uint4"
			   : bytes == 8 ? "uint2"
			   : bytes == 4 ? "uint32_t"
					: "uint16_t";
	return n == 1 ? name : emit_text(e, "((%s%s *)%s)", reads ? "const " : "", type, name);
}

/* --- Turns --- */

static void emit_turns(struct emit *e, const struct box *b)
{
	struct emit_loop loop[BOX_RANK];
	for (int k = 0; k < b->rank; k++)
		loop[k] = (struct emit_loop){emit_text(e, "i%d", k), b->dim[k], 1};
	turns_emit(e, b->rank, loop);
}

static void emit_copy(
	struct emit *e, const struct box *b, const struct tensor *t, const char *y, const char *x)
{
	int64_t n;
	const struct box p = packed(b, dtype_bytes(t->dtype), &n);
	emit_turns(e, &p);
	emit(e, "\t\t%s[", as_packs(e, y, false, t, n));
	box_emit_place(e, p.yoff, p.rank, p.ys);
	emit(e, "] = %s[", as_packs(e, x, true, t, n));
	box_emit_place(e, p.xoff, p.rank, p.xs);
	emit(e, "];\n\t}\n");
}

/* --- Tiles: y is contiguous along the last axis, x along axis t --- */

static bool wants_tiles(const struct box *b, int *t)
{
	const int m = b->rank - 1;
	for (*t = 0; *t < m; ++*t)
		if (b->ys[m] == 1 && b->xs[*t] == 1 && b->xs[m] != 0 && b->dim[*t] >= LEAST_TILE &&
			b->dim[m] >= LEAST_TILE)
			return true;
	return false;
}

/* One side of the copy: lanes run along `along`, rows of threads along `across`. */
static void emit_tile_side(struct emit *e, const struct box *b, int across, int along, bool loads)
{
	const int64_t *stride = loads ? b->xs : b->ys;
	emit(e,
		"\t\tfor (int64_t i%d = from%d + row; i%d < MIN(from%d + %d, %" PRId64
		"); i%d += %d)\n",
		across, across, across, across, TILE, b->dim[across], across, ROWS);
	emit(e, "\t\t\tif (from%d + lane < %" PRId64 ") {\n", along, b->dim[along]);
	emit(e, "\t\t\t\tconst int64_t i%d = from%d + lane;\n\t\t\t\t", along, along);
	const char *place = loads ? "tile[i%d - from%d][lane] = x0[" : "y0[";
	emit(e, place, across, across);
	box_emit_place(e, loads ? b->xoff : b->yoff, b->rank, stride);
	if (loads)
		emit(e, "];\n");
	else
		emit(e, "] = tile[lane][i%d - from%d];\n", across, across);
	emit(e, "\t\t\t}\n");
}

static void emit_tiles(struct emit *e, const struct box *b, int t, const struct tensor *type)
{
	const int m = b->rank - 1;
	int64_t dim[BOX_RANK], tasks = 1;
	for (int k = 0; k < b->rank; k++) {
		dim[k] = k == t || k == m ? (b->dim[k] + TILE - 1) / TILE : b->dim[k];
		tasks *= dim[k];
	}
	emit(e, "\t__shared__ %s tile[%d][%d];\n", emit_type(type), TILE, TILE + 1);
	emit(e, "\tconst int lane = (int)threadIdx.x %% %d, row = (int)threadIdx.x / %d;\n", TILE,
		TILE);
	emit(e, "\tfor (int64_t task = blockIdx.x; task < %" PRId64 "; task += gridDim.x) {\n",
		tasks);
	int64_t inner = tasks;
	const char *number = tasks <= INT32_MAX ? "(uint32_t)task" : "task";
	for (int k = 0; k < b->rank; k++) {
		const bool tiled = k == t || k == m;
		inner /= dim[k];
		emit(e, "\t\tconst int64_t %s%d = %s / %" PRId64 " %% %" PRId64 "%s;\n",
			tiled ? "from" : "i", k, number, inner, dim[k], tiled ? " * 32" : "");
	}
	emit_tile_side(e, b, m, t, true);
	emit(e, "\t\t__syncthreads();\n");
	emit_tile_side(e, b, t, m, false);
	emit(e, "\t\t__syncthreads();\n\t}\n");
	emit_launch(e, tasks, TURNS_THREADS);
}

/* --- A whole body --- */

void boxes_cuda_emit(struct emit *e, int n, const struct box_copy *copy, const struct tensor *type)
{
	int t;
	for (int i = 0; i < n; i++) {
		const struct box b = box_simplified(&copy[i].box);
		if (count_of(&b) == 0)
			emit(e, "\t(void)%s, (void)%s; /* nothing to copy */\n", copy[i].y,
				copy[i].x);
		else if (n == 1 && wants_tiles(&b, &t))
			emit_tiles(e, &b, t, type);
		else
			emit_copy(e, &b, type, copy[i].y, copy[i].x);
	}
}

/* --- A box in the middle of something else --- */

/* Along each axis of y, what of x an element shows: x's (i - start) / step where i is in the box.
 * `y.dim`: all of y. */
struct inset {
	struct box x; /* dim, xs, xoff: of the box in x */
	struct box y; /* dim, ys: all of y */
	int64_t start[BOX_RANK], step[BOX_RANK];
};

static struct inset inset_of(const struct box *b, const struct tensor *y)
{
	struct inset s = {.x = {.xoff = b->xoff}};
	int64_t left = b->yoff, stride[RANK_MAX];
	int r = 0;
	box_strides(y->rank, y->dim, stride);
	for (int k = 0; k < y->rank; k++) {
		const int64_t start = left / stride[k], step = b->ys[k] / stride[k];
		const bool whole = start == 0 && step == 1 && b->dim[k] == y->dim[k];
		left -= start * stride[k];
		/* an axis that is all there lengthens the one before it */
		if (r > 0 && whole && s.step[r - 1] == 1 && s.x.xs[r - 1] == b->xs[k] * b->dim[k]) {
			s.x.dim[r - 1] *= b->dim[k];
			s.y.dim[r - 1] *= b->dim[k];
			s.start[r - 1] *= b->dim[k];
			s.x.xs[r - 1] = b->xs[k];
			continue;
		}
		s.x.dim[r] = b->dim[k];
		s.x.xs[r] = b->xs[k];
		s.y.dim[r] = y->dim[k];
		s.start[r] = start;
		s.step[r++] = step;
	}
	s.x.rank = s.y.rank = r;
	return s;
}

/* Over packs, where an inset's last axis and all it begins at are whole numbers of them. */
static int64_t inset_pack(struct inset *s, int64_t size)
{
	const int m = s->x.rank - 1;
	int64_t n = PACK_BYTES / size;
	if (m < 0 || s->x.xs[m] != 1 || s->step[m] != 1)
		return 1;
	struct box rest = s->x; /* all that has to be a multiple */
	memset(rest.ys, 0, sizeof rest.ys);
	rest.yoff = s->start[m];
	while (n > 1 && (!divides(n, &rest) || s->y.dim[m] % n))
		n /= 2;
	s->x.dim[m] /= n;
	s->y.dim[m] /= n;
	s->start[m] /= n;
	s->x.xoff /= n;
	for (int k = 0; k < m; k++)
		s->x.xs[k] /= n;
	return n;
}

static void emit_inside(struct emit *e, const struct inset *s)
{
	const char *and = "";
	for (int k = 0; k < s->x.rank; k++) {
		const int64_t end = s->start[k] + (s->x.dim[k] - 1) * s->step[k] + 1;
		if (s->start[k] > 0)
			emit(e, "%si%d >= %" PRId64, and, k, s->start[k]);
		and = s->start[k] > 0 ? " && " : and;
		if (end < s->y.dim[k])
			emit(e, "%si%d < %" PRId64, and, k, end);
		and = end < s->y.dim[k] ? " && " : and;
		if (s->step[k] > 1)
			emit(e, "%s(i%d - %" PRId64 ") %% %" PRId64 " == 0", and, k, s->start[k],
				s->step[k]);
		and = s->step[k] > 1 ? " && " : and;
	}
	emit(e, *and? "" : "true");
}

static void emit_inset_place(struct emit *e, const struct inset *s)
{
	int64_t off = s->x.xoff;
	struct box b = s->x;
	for (int k = 0; k < b.rank; k++)
		if (s->step[k] == 1)
			off -= s->start[k] * b.xs[k];
		else
			b.xs[k] = 0;
	box_emit_place(e, off, b.rank, b.xs);
	for (int k = 0; k < b.rank; k++)
		if (s->step[k] != 1)
			emit(e, " + (i%d - %" PRId64 ") / %" PRId64 " * %" PRId64, k, s->start[k],
				s->step[k], s->x.xs[k]);
}

void box_cuda_inset(struct emit *e, const struct box *b, const struct tensor *y, const char *fill)
{
	const bool nothing = count_of(b) == 0;
	struct inset s = nothing ? (struct inset){0} : inset_of(b, y);
	const int64_t n = fill || nothing ? 1 : inset_pack(&s, dtype_bytes(y->dtype));
	const int64_t bytes = n * dtype_bytes(y->dtype);
	const char *zero = n == 1        ? emit_stored(e, y, "R(0)")
			   : bytes == 16 ? "uint4{0, 0, 0, 0}"
			   : bytes == 8  ? "uint2{0, 0}"
					 : "0";
	if (y->dtype == DT_I64 || y->dtype == DT_BOOL)
		zero = bytes == 16 ? zero : "0";
	zero = fill ? fill : zero;
	if (y->numel == 0) {
		emit(e, "\t(void)y0, (void)x0;\n");
		return;
	}
	if (nothing) {
		emit(e, "\t(void)x0;\n");
		turns_emit(e, 1, &(struct emit_loop){"i", y->numel, 1});
		emit(e, "\t\ty0[i] = %s;\n\t}\n", zero);
		return;
	}
	emit_turns(e, &s.y);
	emit(e, "\t\tconst bool inside = ");
	emit_inside(e, &s);
	emit(e, ";\n\t\t%s[turn] = inside ? %s[", as_packs(e, "y0", false, y, n),
		as_packs(e, "x0", true, y, n));
	emit_inset_place(e, &s);
	emit(e, "] : %s;\n\t}\n", zero);
}
