/* Recurrent nets on a GPU: how one step is given to blocks.
 *
 * Each step is a launch of its own, which waits for the one before: the tile of the recurrent
 * product that a block makes has all gates of some hidden units for some samples, so that the same
 * block goes on to the gates, the cells and the new state, and the step's weights are spread over
 * the whole device, whose second-level cache keeps them from step to step (a product per step with
 * the pointwise part fused: Appleyard, Kocisky and Blunsom, "Optimizing Performance of Recurrent
 * Neural Networks on GPUs", 2016, 2.1; weights in registers, as in Diamos et al., "Persistent RNNs:
 * Stashing Recurrent Weights On-Chip", 2016, would need blocks that wait for each other). States
 * are read where the step before has left them: in Y, in the cells, in dXW. */
#include <stdarg.h>

#include "ops/gemm.h"
#include "ops/recurrent_cuda.h"
#include "ops/recurrent_cuda_text.h"
#include "ops/rows.h"

bool recurrent_cuda_fits(const struct target *t, const struct recurrent *p)
{
	return t->cuda && p->steps > 0 && p->batch > 0;
}

/* --- Tiles --- */

enum { THREADS = 256, DEVICE = 128 /* blocks that keep a device busy */ };

struct tile {
	int rows, cols, chunk,
		units; /* samples, columns of the product, terms at once, hidden units */
	int64_t row_tiles, unit_tiles, tasks;
};

static struct tile tile_of(const struct recurrent *p, int rows, int cols, int64_t gates)
{
	struct tile t = {.rows = rows, .cols = cols, .units = (int)(cols / gates)};
	t.chunk = rows + cols > 80 ? 64 : 128;
	t.row_tiles = div_up(p->batch, rows);
	t.unit_tiles = div_up(p->hidden, t.units);
	t.tasks = p->directions * t.row_tiles * t.unit_tiles;
	return t;
}

/* What a multiprocessor does for one term: numbers that come through its cache, about 10 in a
 * clock, and products, 64. By shapes alone: which tile it is decides the order of sums. */
static double tile_cost(const struct tile *t)
{
	return (double)div_up(t->tasks, DEVICE) *
	       (6.4 * (t->rows + t->cols) + (double)t->rows * t->cols);
}

static struct tile best_tile(const struct recurrent *p, int64_t gates)
{
	struct tile best = tile_of(p, 8, 16, gates);
	for (int rows = 8; rows <= 64; rows *= 2)
		for (int cols = 16; cols <= 64; cols *= 2) {
			const struct tile t = tile_of(p, rows, cols, gates);
			if (tile_cost(&t) < tile_cost(&best))
				best = t;
		}
	return best;
}

/* --- The frame --- */

static void add_helpers(struct emit *e)
{
	emit_packs(e);
	emit_helper(e, "recurrent_tile", recurrent_tile_text);
}

static void emit_shape(struct emit *e, const struct recurrent *p, const struct tile *t,
	const struct step_product *x)
{
	emit(e,
		"\tstruct shape {\n\t\tenum : int64_t { TERMS = %" PRId64 ", WIDTH = %" PRId64
		" };\n\t\tenum { ROWS = %d, COLS = %d, CHUNK = %d, GATES = %" PRId64
		", UNITS = %d, ACROSS = %d, PACKED = %d };\n\t};\n",
		x->terms, p->hidden, t->rows, t->cols, t->chunk, x->gates, t->units, x->across,
		p->hidden % 4 == 0);
	emit(e, "\t__shared__ pack<real, 4> packs[recurrent_tile<shape>::ROOM];\n"
		"\t__shared__ const real *row[shape::ROWS];\n"
		"\treal *const room = packs[0].of;\n");
}

static void open_tasks(struct emit *e, const struct recurrent *p, const struct tile *t)
{
	emit(e, "\tfor (int64_t task = blockIdx.x; task < %" PRId64 "; task += gridDim.x) {\n",
		t->tasks);
	emit(e,
		"\t\tconst int64_t j0 = task %% %" PRId64 " * %d, b0 = task / %" PRId64
		" %% %" PRId64 " * %d;\n",
		t->unit_tiles, t->units, t->unit_tiles, t->row_tiles, t->rows);
	if (p->directions == 2)
		emit(e, "\t\tconst int64_t d = task / %" PRId64 ";\n",
			t->unit_tiles * t->row_tiles);
	else
		emit(e, "\t\tconst int64_t d = 0;\n");
}

static void emit_rows(struct emit *e, const struct node *n, int lengths, const char *batch,
	const struct step_rows *rows)
{
	emit(e, "\t\tif (threadIdx.x < shape::ROWS) {\n"
		"\t\t\tconst int64_t b = b0 + threadIdx.x;\n"
		"\t\t\trow[threadIdx.x] = 0;\n");
	emit(e, "\t\t\tif (b < %s) {\n", batch);
	if (text_mentions(rows->at, "t") || (rows->when && text_mentions(rows->when, "len")))
		recurrent_sample(e, n, lengths, true, "\t\t\t\t");
	if (rows->when)
		emit(e, "\t\t\t\tif (%s)\n\t", rows->when);
	emit(e, "\t\t\t\trow[threadIdx.x] = %s;\n", rows->at);
	emit(e, "\t\t\t}\n\t\t}\n\t\t__syncthreads();\n");
}

void step_open(struct emit *e, const struct node *n, const struct step_product *x,
	const struct step_rows *rows, bool grad)
{
	const struct recurrent *p = n->param;
	const struct tile t = best_tile(p, x->gates);
	const int64_t h = p->hidden;
	const char *batch = emit_text(e, "%" PRId64, p->batch);
	add_helpers(e);
	emit_shape(e, p, &t, x);
	emit_launch(e, t.tasks, THREADS);
	emit_repeat(e, p->steps + grad);
	emit(e, grad ? "\tconst int64_t s = TURNS - 2 - turn;\n" : "\tconst int64_t s = turn;\n");
	open_tasks(e, p, &t);
	emit_rows(e, n, grad ? D_LEN : F_LEN, batch, rows);
	emit(e, "\t\trecurrent_product<shape>(room, row, x1 + d * %" PRId64, p->gates * h * h);
	if (x->from)
		emit(e, " + %" PRId64, x->from * h);
	emit(e, rows->later ? ", j0, turn > 0 ? shape::TERMS : 0);\n" : ", j0, shape::TERMS);\n");
	emit(e, "\t\t__syncthreads();\n");
	emit_edges(e, p, grad ? 3 - (int)p->cell : 0, "\t\t");
	emit(e, "\t\tfor (int i = (int)threadIdx.x; i < shape::ROWS * shape::UNITS; "
		"i += (int)blockDim.x) {\n"
		"\t\t\tconst int64_t b = b0 + i / shape::UNITS, j = j0 + i %% shape::UNITS;\n");
	emit(e, "\t\t\tif (b >= %s || j >= %" PRId64 ")\n\t\t\t\tcontinue;\n", batch, h);
	recurrent_sample(e, n, grad ? D_LEN : F_LEN, true, "\t\t\t");
}

void step_close(struct emit *e)
{
	emit(e, "\t\t}\n\t\t__syncthreads();\n\t}\n");
}

/* --- Pieces of text --- */

const char *step_sum(struct emit *e, int k)
{
	return emit_text(e, "recurrent_sum<shape>(room, i, %d)", k);
}

void step_line(struct emit *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	emit(e, "\t\t\t");
	text_vadd(&e->out, fmt, ap);
	emit(e, "\n");
	va_end(ap);
}

const char *step_at(struct emit *e, const struct recurrent *p, const char *name, const char *t,
	int64_t gates, int64_t k)
{
	char place[160];
	recurrent_place(p, t, gates * p->hidden, place);
	if (k == 0)
		return emit_text(e, "%s[%s + j]", name, place);
	return emit_text(e, "%s[%s + %" PRId64 " + j]", name, place, k * p->hidden);
}

const char *step_at_y(struct emit *e, const struct recurrent *p, const char *name, const char *t)
{
	char place[160];
	return emit_text(e, "%s[%s + j]", name, recurrent_place_y(p, t, place));
}

const char *step_at_state(struct emit *e, const struct recurrent *p, const char *name)
{
	char place[160];
	return emit_text(e, "%s[%s + j]", name, recurrent_place_state(p, place));
}
