/* How the three passes of a convolution are computed in plain C: by which kernel, in which blocks,
 * with how much scratch. Depends on shape and target only, and changes no bit of the result but by
 * the choice of the kernel. */
#include "ops/conv/conv_op.h"
#include "ops/product/gemm_op.h"

enum {
	/* Groups with fewer rows than this take direct loops: tiles would be mostly padding. */
	DIRECT_ROWS = 3,
	/* Where bytes are dear: elements of dx, and of so many channels, that are computed at once
	 * before they are spread by the stride. */
	BARE_ROWS = 4,
	BARE_COLUMNS = 64,
	/* Elements of a strip, which shares the second cache with the packed weight; columns that a
	 * packed weight should meet at least, and that are closed up at once; rows of a turn. */
	STRIP = 1 << 15,
	MANY_COLUMNS = 768,
	CLOSED = 256,
	ROWS = 256,
	/* Lines of a block (CONV_RUNS of kernels/conv.h), and columns of a tile. */
	LINES = 250,
	TILE = 32,
	/* Rows of dy, and sums of all taps, that a turn of the weight's gradient has. */
	GRADIENT_ROWS = 192,
	GRADIENT_SUMS = 1 << 16,
	FEW_CHANNELS = 12
};

static bool is_pointwise(const struct window *w)
{
	for (int a = 0; a < 3; a++)
		if (w->kernel[a] != 1 || w->stride[a] != 1 || w->out[a] != w->size[a] ||
			w->before[a] != 0)
			return false;
	return true;
}

/* --- By products: forward, and the gradient of x --- */

/* What decides about boxes: of an axis places, the taps that meet one (or one less: phases of the
 * stride differ), how far apart these are, and the stride. */
struct grid {
	int64_t places[3], taps[3], move[3], stride[3];
	bool less[3];
	int64_t groups, images, rows, planes;
};

static int64_t common_divisor(int64_t a, int64_t b)
{
	return b ? common_divisor(b, a % b) : a;
}

static struct grid grid_of(const struct conv *p, const struct window *w, enum conv_pass pass)
{
	const bool x = pass == CONV_GRAD_X;
	struct grid g = {.groups = p->groups,
		.images = p->n,
		.rows = x ? p->cg : p->kg,
		.planes = x ? p->kg : p->cg};
	for (int i = 0; i < 3; i++) {
		const int64_t s = w->stride[i], d = w->dilation[i];
		const int64_t period = x ? s / common_divisor(s, d) : 1;
		g.places[i] = x ? div_up(w->size[i], s) : w->out[i];
		g.taps[i] = div_up(w->kernel[i], period);
		g.less[i] = w->kernel[i] % period && g.taps[i] > 1;
		g.move[i] = x ? period * d / s : d;
		g.stride[i] = x ? 1 : s;
	}
	return g;
}

static int64_t reach(const struct grid *g, int i, int64_t taps)
{
	return g->move[i] * (taps - 1) / g->stride[i];
}

/* Elements of the strip of a box, of all channels that a chain of terms meets: of whichever phase
 * it is largest. */
static int64_t strip_elements(const struct grid *g, int64_t lines, int64_t columns)
{
	const int64_t places[3] = {1, lines, columns};
	int64_t most = 0;
	for (int which = 0; which < 8; which++) {
		int64_t taps = 1, n = 1;
		for (int i = 0; i < 3; i++) {
			const int64_t t = g->taps[i] - (g->less[i] && which >> i & 1);
			const int64_t phases = min64(g->stride[i], g->move[i] * (t - 1) + 1);
			n *= min64(t * places[i], phases * (places[i] + reach(g, i, t)));
			taps *= t;
		}
		most = max64(most, n * min64(div_up(GEMM_KC - 1, taps) + 1, g->planes));
	}
	return most + 2 * TILE;
}

static int64_t boxes_of(const struct grid *g, const struct conv_job *j)
{
	return g->images * g->places[0] * div_up(g->places[1], j->lines) *
	       div_up(g->places[2], j->columns);
}

/* A part of the columns of tiles that are places. */
static double used(double places, double columns)
{
	return places / (ceil(columns / (TILE / 2.0)) * (TILE / 2.0));
}

/* Boxes whose strip has the size that it should have: whole lines, and as many as there is room
 * for. Where lines are so short that much of a tile is between them, several are closed up, which
 * costs as much as some rows of the product. */
static void choose_boxes(const struct grid *g, struct conv_job *j)
{
	enum { CLOSING = 14 };
	j->columns = g->places[2];
	while (strip_elements(g, 1, j->columns) > STRIP && j->columns > 2 * TILE)
		j->columns = div_up(j->columns, 2);
	j->lines = min64(g->places[1], LINES);
	while (strip_elements(g, j->lines, j->columns) > STRIP && j->lines > 1)
		j->lines = div_up(j->lines, 2);
	const int64_t lines = min64(j->lines, max64(1, CLOSED / j->columns));
	const int64_t places = lines * j->columns;
	const int64_t all = g->images * g->places[0] * div_up(g->places[1], lines) *
			    div_up(g->places[2], j->columns);
	const int64_t boxes = min64(min64(all, LINES / lines), max64(1, CLOSED / places));
	const double between = (double)(j->lines - 1) * (double)((reach(g, 2, g->taps[2]) + 1) / 2);
	const double open = (double)(j->lines * j->columns);
	const double rows = (double)min64(g->rows, ROWS);
	if (used((double)(boxes * places), (double)(boxes * places)) / (1 + CLOSING / rows) >
		used(open, open + between)) {
		j->lines = lines;
		j->boxes = boxes;
	}
}

/* Turns of many columns, so that a packed weight serves them all; but some for each thread. */
static void choose_turns(const struct grid *g, const struct target *t, struct conv_job *j)
{
	const int64_t all = boxes_of(g, j), step = max64(j->boxes, 1);
	const int64_t products = g->groups * j->phases,
		      wanted = t->threads > 1 ? 4 * t->threads : 1;
	int64_t rows = div_up(g->rows, ROWS);
	j->turn = min64(
		round_up(div_up(MANY_COLUMNS, j->lines * j->columns), step), round_up(all, step));
	while (j->turn > step && products * rows * div_up(all, j->turn) < wanted)
		j->turn = round_up(j->turn / 2, step);
	while (rows < div_up(g->rows, GEMM_ROW_UNIT) &&
		products * rows * div_up(all, j->turn) < t->threads)
		rows++;
	j->rows = round_up(div_up(g->rows, rows), GEMM_ROW_UNIT / 2);
	j->turns = products * div_up(g->rows, j->rows) * div_up(all, j->turn);
}

static void by_products(
	const struct conv *p, enum conv_pass pass, const struct target *t, struct conv_job *j)
{
	const struct grid g = grid_of(p, &j->w, pass);
	if (g.images * g.places[0] * g.places[1] * g.places[2] == 0 || g.rows == 0)
		return;
	choose_boxes(&g, j);
	choose_turns(&g, t, j);
	const int64_t chain = min64(g.planes * g.taps[0] * g.taps[1] * g.taps[2], GEMM_KC);
	const int64_t closed = round_up(j->boxes * j->lines * j->columns + 2 * TILE, TILE);
	j->elements = j->rows * chain + (j->boxes ? closed * chain : 0) +
		      strip_elements(&g, j->lines, j->columns);
}

/* --- By products: the gradient of the weight --- */

/* Elements of the strip that a chain of places sees, for each channel: kernels/conv_grad_w.h. */
static int64_t seen_elements(const struct window *w)
{
	const int64_t chain = min64(w->out_plane, GEMM_KC);
	const bool one = w->out[0] * w->out[1] == 1;
	const int64_t lines = min64(w->out[0] * w->out[1], (chain + w->out[2] - 2) / w->out[2] + 1);
	const int64_t planes = min64(w->out[0], (lines + w->out[1] - 2) / w->out[1] + 1);
	const int64_t slot[2] = {
		w->kernel[1] == 1 ? 1 : w->stride[1], w->kernel[2] == 1 ? 1 : w->stride[2]};
	const int64_t down = (min64(lines, w->out[1]) - 1) * slot[0] +
			     (w->kernel[1] - 1) * w->dilation[1] + 1;
	const int64_t wide = ((one ? chain : w->out[2]) - 1) * slot[1] +
			     (w->kernel[2] - 1) * w->dilation[2] + 1;
	return planes * w->kernel[0] * down * wide;
}

static void by_gradients(const struct conv *p, const struct target *t, struct conv_job *j)
{
	const struct window *const w = &j->w;
	const int64_t chain = min64(w->out_plane, GEMM_KC);
	if (w->out_plane == 0 || p->kg == 0 || p->cg == 0) {
		j->rows = max64(p->kg, 1);
		j->columns = max64(p->cg, 1);
		j->turns = p->groups * div_up(p->kg, j->rows) * div_up(p->cg, j->columns);
		j->elements = j->rows * j->columns * w->taps + TILE;
		return;
	}
	const int64_t seen = seen_elements(w);
	j->boxes = p->cg < FEW_CHANNELS && w->taps > 1;
	int64_t down = div_up(p->kg, GRADIENT_ROWS), across = 1;
	j->rows = round_up(div_up(p->kg, down), GEMM_ROW_UNIT / 2);
	while (div_up(p->cg, across) > TILE &&
		(div_up(p->cg, across) * max64(j->rows * w->taps, seen) > GRADIENT_SUMS ||
			p->groups * down * across < t->threads))
		across++;
	j->columns = across > 1 ? round_up(div_up(p->cg, across), TILE) : p->cg;
	while (j->rows > GEMM_ROW_UNIT &&
		p->groups * div_up(p->kg, j->rows) * div_up(p->cg, j->columns) < t->threads)
		j->rows = round_up(j->rows / 2, GEMM_ROW_UNIT / 2);
	j->turns = p->groups * div_up(p->kg, j->rows) * div_up(p->cg, j->columns);
	j->elements = round_up(min64(j->rows, p->kg) * j->columns * w->taps, 16) + j->rows * chain +
		      (j->boxes ? chain * w->taps * j->columns + TILE : 0) + seen * j->columns +
		      2 * TILE;
}

/* --- Where bytes are dear --- */

static int64_t lean_bytes(const struct conv *p, enum conv_pass pass, const struct target *t,
	int64_t size, struct conv_job *j)
{
	const struct window *const w = &j->w;
	const int64_t tap_bytes = 32 * (w->taps + 1);
	int64_t rows = p->kg, columns = w->out_plane, batch = p->n * p->groups, elements = 0;
	if (pass == CONV_GRAD_X) {
		rows = p->cg;
		columns = 1;
		for (int a = 0; a < 3; a++)
			columns *= div_up(w->size[a], w->stride[a]);
	} else if (pass == CONV_GRAD_W) {
		columns = p->cg * w->taps;
		batch = p->groups;
	}
	const struct gemm_split all = gemm_split(batch, rows, columns, t);
	j->rows = all.mb;
	j->columns = all.nb;
	if (j->phases > 1) {
		j->rows = BARE_ROWS;
		j->columns = BARE_COLUMNS;
		elements = min64(j->rows, rows) * min64(j->columns, columns);
	}
	j->columns = pass == CONV_GRAD_X ? min64(j->columns, columns) : j->columns;
	j->turns = batch * j->phases * div_up(rows, j->rows) * div_up(columns, j->columns);
	return round_up(elements * size + (pass == CONV_GRAD_W ? 0 : tap_bytes), 64);
}

struct conv_job conv_job_of(
	const struct conv *p, enum conv_pass pass, int64_t size, const struct target *t)
{
	const int64_t rows = pass == CONV_GRAD_X ? p->cg : p->kg;
	struct conv_job j = {.w = p->w, .phases = 1};
	for (int a = 0; pass == CONV_GRAD_X && a < 3; a++)
		j.phases *= p->w.stride[a];
	j.direct = rows < DIRECT_ROWS || (p->groups > 1 && p->kg < DIRECT_ROWS);
	j.lanes = j.direct && pass == CONV_GRAD_W && depth_can(p);
	j.pointwise = !j.direct && pass != CONV_GRAD_W && is_pointwise(&p->w);
	if (j.direct) {
		j.turns = j.lanes                ? p->c / DEPTH_LANES
			  : pass == CONV_FORWARD ? p->n * p->k
			  : pass == CONV_GRAD_X  ? p->n * p->c
						 : p->k * p->cg;
		j.bytes = j.lanes && !t->bare ? depth_elements(p) * size : 0;
		return j;
	}
	if (t->bare) {
		j.bytes = lean_bytes(p, pass, t, size, &j);
		return j;
	}
	if (j.pointwise) { /* a plane is a line */
		j.w.size[0] = j.w.size[1] = j.w.out[0] = j.w.out[1] = 1;
		j.w.size[2] = j.w.out[2] = p->w.plane;
	}
	if (pass == CONV_GRAD_W)
		by_gradients(p, t, &j);
	else
		by_products(p, pass, t, &j);
	j.bytes = round_up(j.elements * size, 64);
	return j;
}
