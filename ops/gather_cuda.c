/* Slices by indices, and the gradients of tables, as CUDA text.
 *
 * A table's gradient sorts the indices by row, stably, and adds up what belongs to a row in the
 * order of its places. The sorted list is cut into chunks, so that a token that is everywhere keeps
 * the whole device busy: a chunk's sums, then, for rows that several chunks have, the chunks'. The
 * cuts go by the number of indices alone. */
#include <inttypes.h>

#include "ops/gather.h"
#include "ops/gather_cuda_text.h"
#include "ops/gemm.h"
#include "ops/rows.h"

enum { THREADS = 256, AT_ONCE = 16 /* bytes */, BUSY = 2048 /* blocks */ };

static bool is_checked(const struct node *n)
{
	return n->in[1]->role != TR_CONSTANT;
}

void gather_cuda_emit(struct emit *e, const struct node *n, const struct picks *p)
{
	const struct tensor *x = n->in[0];
	int pack = AT_ONCE / (int)dtype_bytes(x->dtype);
	while (p->inner % pack)
		pack /= 2;
	const int64_t slice = p->inner / pack, all = p->outer * p->count * slice;
	emit_packs(e);
	emit_helper(e, "gather_check", gather_check_text);
	emit_launch(e, div_up(all, 2 * THREADS) + 1, THREADS);
	if (is_checked(n)) {
		emit(e, "\t__shared__ int first;\n\tif (blockIdx.x == 0) {\n");
		emit(e,
			"\t\tconst int bad_place = first_out_of_range(x1, 0, %" PRId64 ", %" PRId64
			", first);\n",
			p->count, p->size);
		emit(e, "\t\tif (bad_place != NO_PLACE && threadIdx.x == 0)\n");
		emit(e, "\t\t\treturn BAD_INDEX(x1[bad_place]);\n\t}\n");
	}
	emit(e, "\tconst pack<%s, %d> *const from = (const pack<%s, %d> *)x0;\n", emit_type(x),
		pack, emit_type(x), pack);
	emit(e, "\tpack<%s, %d> *const to = (pack<%s, %d> *)y0;\n", emit_type(x), pack,
		emit_type(x), pack);
	emit(e, "\tfor (int64_t i = THREAD; i < %" PRId64 "; i += THREADS) {\n", all);
	emit(e, "\t\tconst int64_t m = i / %" PRId64 " %% %" PRId64 ", o = i / %" PRId64 ";\n",
		slice, p->count, slice * p->count);
	emit(e, "\t\tconst int64_t v = x1[m] < 0 ? x1[m] + %" PRId64 " : x1[m];\n", p->size);
	if (is_checked(n))
		emit(e, "\t\tif (v >= 0 && v < %" PRId64 ")\n\t", p->size);
	emit(e,
		"\t\tto[i] = from[(o * %" PRId64 " + v) * %" PRId64 " + i %% %" PRId64
		"];\n\t}\n\treturn 0;\n",
		p->size, slice, slice);
}

/* --- The gradient --- */

enum { MOST_BITS = 9, LEAST_BITS = 5, MOST_TILES = 128, WARPS = 8, WARP = 32, STEP = WARPS * WARP };

/* How the indices are sorted, and cut. */
struct sorting {
	int bits, passes; /* of a digit; digits */
	int64_t tile, tiles, chunk, chunks;
};

static struct sorting sorting_of(const struct picks *p)
{
	struct sorting s = {.tile = 4 * STEP};
	int bits = 1;
	while (bits < 62 &&
		(p->size >> bits) > 0) /* `size` itself stands for what is out of range */
		bits++;
	s.passes = (int)div_up(bits, MOST_BITS);
	s.bits = (int)max64(div_up(bits, s.passes), LEAST_BITS);
	s.tile = round_up(max64(s.tile, div_up(p->count, MOST_TILES)), STEP);
	s.tiles = div_up(p->count, s.tile);
	s.chunk = p->count >= 16 * s.tile ? 128 : 32;
	s.chunks = div_up(p->count, s.chunk);
	return s;
}

/* Scratch: two lists of entries, the tiles' counts and first bad places, the chunks' rests. */
struct scratch {
	int64_t counts, bad, rests, end;
};

static struct scratch scratch_of(const struct picks *p, const struct sorting *s)
{
	struct scratch at;
	at.counts = 2 * p->count * 8;
	at.bad = at.counts + (s->tiles << s->bits) * 4;
	at.rests = at.bad + s->tiles * 4;
	at.end = at.rests + p->outer * s->chunks * p->inner * 4;
	return at;
}

int64_t scatter_cuda_workspace(const struct picks *p)
{
	const struct sorting s = sorting_of(p);
	return p->count > 0 ? scratch_of(p, &s).end : 0;
}

static void emit_shape(struct emit *e, const struct picks *p, const struct sorting *s)
{
	const struct scratch at = scratch_of(p, s);
	emit(e,
		"\tstruct shape {\n\t\tenum : int64_t { size = %" PRId64 ", inner = %" PRId64
		", count = %" PRId64 ", padding = %" PRId64 ",\n\t\t\ttile = %" PRId64
		", tiles = %" PRId64 ",\n",
		p->size, p->inner, p->count, p->padding, s->tile, s->tiles);
	emit(e,
		"\t\t\tchunk = %" PRId64 ", chunks = %" PRId64
		" };\n\t\tenum { bits = %d, digits = %d };\n\t};\n",
		s->chunk, s->chunks, s->bits, 1 << s->bits);
	emit(e, "\tchar *const scratch_at = ws;\n");
	emit(e,
		"\tenum : int64_t { COUNTS = %" PRId64 ", BAD = %" PRId64 ", RESTS = %" PRId64
		" };\n",
		at.counts, at.bad, at.rests);
}

static void emit_list(struct emit *e, const char *name, int which)
{
	emit(e, "\tuint2 *const %s = (uint2 *)%s;\n", name,
		which ? "(scratch_at + COUNTS / 2)" : "scratch_at");
}

/* The first stage also zeroes the gradient, and looks for indices out of range. */
static void emit_zeros(struct emit *e, const struct node *n)
{
	emit(e, "\tfor (int64_t i = THREAD; i < %" PRId64 "; i += THREADS)\n\t\ty0[i] = 0;\n",
		n->out[0]->numel);
}

static void emit_search(struct emit *e, const char *tabs)
{
	emit(e,
		"%sconst int bad_place = first_out_of_range(x1, tile * shape::tile,\n"
		"%s\tMIN((tile + 1) * shape::tile, shape::count), shape::size, first);\n",
		tabs, tabs);
	emit(e, "%sif (threadIdx.x == 0)\n%s\tbad_places[tile] = bad_place;\n", tabs, tabs);
}

/* What the stages that sort have in common; bit i of `lists`: they name list i. */
enum { LIST_0 = 1, LIST_1 = 2, LISTS = 3 };

static void open_sorting(
	struct emit *e, const struct picks *p, const struct sorting *s, int64_t blocks, int lists)
{
	emit_shape(e, p, s);
	for (int which = 0; which < 2; which++)
		if (lists >> which & 1)
			emit_list(e, which ? "list1" : "list0", which);
	emit(e, "\tunsigned *const counts = (unsigned *)(scratch_at + COUNTS);\n");
	emit(e, "\t__shared__ unsigned ranks[8][shape::digits];\n");
	emit_launch(e, blocks, THREADS);
}

static void emit_count(struct emit *e, const char *tabs, int pass)
{
	emit(e, "%sscatter_count<shape, %d>(tile, x1, list%d, counts, ranks);\n", tabs, pass,
		(pass + 1) % 2);
}

static void emit_sort(struct emit *e, const char *tabs, int pass)
{
	emit(e, "%sscatter_sort<shape, %d>(tile, x1, list%d, list%d, counts, places, ranks);\n",
		tabs, pass, (pass + 1) % 2, pass % 2);
}

static void open_first(struct emit *e, const struct node *n, const struct picks *p,
	const struct sorting *s, int lists)
{
	const int64_t zeroing = div_up(n->out[0]->numel, 8 * THREADS);
	open_sorting(e, p, s, max64(s->tiles, zeroing < BUSY ? zeroing : BUSY), lists);
	if (is_checked(n))
		emit(e, "\tint *const bad_places = (int *)(scratch_at + BAD);\n"
			"\t__shared__ int first;\n");
}

/* All passes by one block, in one stage. */
static void emit_one_tile(
	struct emit *e, const struct node *n, const struct picks *p, const struct sorting *s)
{
	open_first(e, n, p, s, LISTS);
	emit(e, "\t__shared__ unsigned places[shape::digits];\n");
	emit(e, "\tif (blockIdx.x == 0) {\n\t\tconst int64_t tile = 0;\n");
	if (is_checked(n))
		emit_search(e, "\t\t");
	for (int pass = 0; pass < s->passes; pass++) {
		emit_count(e, "\t\t", pass);
		emit_sort(e, "\t\t", pass);
	}
	emit(e, "\t}\n");
	emit_zeros(e, n);
}

/* Two stages a pass. */
static void emit_tiles(
	struct emit *e, const struct node *n, const struct picks *p, const struct sorting *s)
{
	static const char head[] =
		"\tfor (int64_t tile = blockIdx.x; tile < shape::tiles; tile += gridDim.x)";
	for (int pass = 0; pass < s->passes; pass++) {
		if (pass == 0)
			open_first(e, n, p, s, LIST_1);
		else
			open_sorting(e, p, s, s->tiles, pass % 2 ? LIST_0 : LIST_1);
		emit(e, "%s {\n", head);
		if (pass == 0 && is_checked(n))
			emit_search(e, "\t\t");
		emit_count(e, "\t\t", pass);
		emit(e, "\t}\n");
		if (pass == 0)
			emit_zeros(e, n);
		emit(e, "\treturn 0;\n");
		emit_stage(e);
		open_sorting(e, p, s, s->tiles, LISTS);
		emit(e, "\t__shared__ unsigned places[shape::digits];\n%s\n", head);
		emit_sort(e, "\t\t", pass);
		if (pass + 1 < s->passes) {
			emit(e, "\treturn 0;\n");
			emit_stage(e);
		}
	}
}

/* The head of a loop over the columns of `chunks` chunks; *last of the stages tells what is bad. */
static void open_chunks(struct emit *e, const struct node *n, const struct picks *p,
	const struct sorting *s, int64_t chunks, bool last)
{
	const int64_t all = p->outer * chunks * p->inner;
	emit(e, "\treturn 0;\n");
	emit_stage(e);
	emit_shape(e, p, s);
	emit_list(e, "list", (s->passes + 1) % 2);
	emit_launch(e, div_up(all, THREADS), THREADS);
	if (last && is_checked(n)) {
		emit(e, "\tconst int *const bad_places = (const int *)(scratch_at + BAD);\n");
		emit(e, "\tfor (int64_t t = 0; t < shape::tiles && THREAD == 0; t++)\n");
		emit(e, "\t\tif (bad_places[t] != NO_PLACE)\n");
		emit(e, "\t\t\treturn BAD_INDEX(x1[bad_places[t]]);\n");
	}
	emit(e, "\treal *const rests = (real *)(scratch_at + RESTS);\n");
	emit(e, "\tfor (int64_t i = THREAD; i < %" PRId64 "; i += THREADS) {\n", all);
	emit(e,
		"\t\tconst int64_t column = i %% %" PRId64 ", chunk = i / %" PRId64 " %% %" PRId64
		", o = i / %" PRId64 ";\n",
		p->inner, p->inner, chunks, p->inner * chunks);
}

void scatter_cuda_emit(struct emit *e, const struct node *n, const struct picks *p)
{
	const struct sorting s = sorting_of(p);
	emit_helper(e, "gather_check", gather_check_text);
	emit_helper(e, "scatter_sort", scatter_sort_text);
	emit_helper(e, "scatter_sum", scatter_sum_text);
	if (s.tiles == 1)
		emit_one_tile(e, n, p, &s);
	else
		emit_tiles(e, n, p, &s);
	open_chunks(e, n, p, &s, s.chunks, s.chunks == 1);
	emit(e, "\t\tscatter_chunk<shape>(list, chunk, x0 + o * shape::count * shape::inner + "
		"column,\n"
		"\t\t\ty0 + o * shape::size * shape::inner + column,\n"
		"\t\t\trests + (o * shape::chunks + chunk) * shape::inner + column);\n\t}\n");
	if (s.chunks > 1) {
		emit_helper(e, "scatter_rest", scatter_rest_text);
		open_chunks(e, n, p, &s, s.chunks - 1, true);
		emit(e, "\t\tscatter_rest<shape>(list, chunk, y0 + o * shape::size * shape::inner "
			"+ column,\n"
			"\t\t\trests + o * shape::chunks * shape::inner + column);\n\t}\n");
	}
	emit(e, "\treturn 0;\n");
}
