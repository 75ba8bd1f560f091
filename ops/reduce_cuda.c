/* Reductions as CUDA text. Where elements that are joined are neighbours, a warp or a block has an
 * output; where outputs are, threads side by side have columns side by side, and groups of threads
 * share the rows. Where outputs are few, what each is made of is cut into parts, whose results a
 * second stage joins. All of it goes by the shape alone, so that the order of a sum never changes.
 * Sums are made in double. */
#include <inttypes.h>

#include "ops/gemm.h"
#include "ops/reduce.h"
#include "ops/reduce_cuda_text.h"
#include "ops/rows.h"

enum { THREADS = 256, WARP = 32, BUSY = 1024 /* blocks that keep a device busy */ };

struct plan {
	bool rows;           /* elements that are joined are neighbours */
	int64_t outputs;     /* in all */
	int64_t count;       /* elements, or rows, that become one */
	int64_t width;       /* columns; rows: 1 */
	int64_t parts, part; /* how many, and of how many elements or rows */
	int threads;         /* of a row, or side by side */
	int pack;
};

static int pack_of(int64_t n, int most)
{
	while (n % most)
		most /= 2;
	return most;
}

static int64_t clamp(int64_t v, int64_t least, int64_t most)
{
	return v < least ? least : v > most ? most : v;
}

/* `blocks` there are without parts; one part has at least `least`. */
static void choose_parts(struct plan *p, int64_t blocks, int64_t least, int unit)
{
	p->parts = clamp(p->count / least, 1, clamp(BUSY / blocks, 1, THREADS));
	p->part = round_up(div_up(p->count, p->parts), unit);
	p->parts = div_up(p->count, p->part);
}

static struct plan plan_of_rows(int64_t outputs, int64_t count, int pack)
{
	struct plan p = {
		.rows = true, .outputs = outputs, .count = count, .width = 1, .pack = pack};
	p.threads = count >= 4 * THREADS || (count >= THREADS && outputs < BUSY) ? THREADS : WARP;
	while (p.pack > 1 && p.pack * p.threads > count)
		p.pack /= 2;
	choose_parts(&p, div_up(outputs * p.threads, THREADS), 16 * THREADS, p.pack);
	return p;
}

static struct plan plan_of_columns(int64_t outer, int64_t width, int64_t count, int pack)
{
	struct plan p = {.outputs = outer * width, .count = count, .width = width, .pack = pack};
	p.threads = (int)clamp(width / pack, 1, WARP);
	choose_parts(&p, outer * div_up(width, p.threads * pack), 8 * (THREADS / p.threads), 1);
	return p;
}

static struct plan plan_of(const struct node *n)
{
	const struct reduce_shape s = reduce_shape_of(n);
	const int64_t last = s.group[s.n - 1].dim, outputs = n->out[0]->numel;
	const bool narrow = dtype_is_narrow(n->in[0]->dtype);
	return s.group[s.n - 1].reduced
		       ? plan_of_rows(outputs, s.count, pack_of(last, narrow ? 8 : 4))
		       : plan_of_columns(outputs / last, last, s.count, pack_of(last, 4));
}

/* The second stage's: over what the first leaves, [outputs][parts] or [parts][outputs]. */
static struct plan plan_behind(const struct plan *p)
{
	struct plan b = p->rows ? plan_of_rows(p->outputs, p->parts, 1)
				: plan_of_columns(1, p->outputs, p->parts, 1);
	b.part = b.count, b.parts = 1;
	return b;
}

bool reduce_has_cuda(const struct node *n)
{
	return n->out[0]->numel > 0 && n->in[0]->numel > 0 && reduce_shape_of(n).count > 1 &&
	       dtype_is_real(n->in[0]->dtype);
}

int64_t reduce_cuda_workspace(const struct node *n)
{
	if (!reduce_has_cuda(n))
		return 0;
	const struct plan p = plan_of(n);
	return p.parts > 1 ? p.outputs * p.parts * (int64_t)sizeof(double) : 0;
}

/* --- Text --- */

/* "(int64_t)((unsigned)j / 49u % 3u) * 147 + ...": where element number `name` of the groups that
 * are reduced, or kept, lies; without the last of them where it is `but_last`. */
static void emit_offset(
	struct emit *e, const struct reduce_shape *s, bool reduced, bool but_last, const char *name)
{
	int64_t inner = 1, all = 1;
	const char *plus = "";
	int first = s->n;
	for (int k = s->n - 1; k >= 0; k--)
		if (s->group[k].reduced == reduced) {
			first = k;
			all *= s->group[k].dim;
		}
	const bool small = all < (int64_t)1 << 31;
	for (int k = s->n - 1; k >= 0; k--) {
		if (s->group[k].reduced != reduced || (but_last && k == s->n - 1))
			continue;
		emit(e, "%s(int64_t)(%s%s", plus, small ? "(unsigned)" : "", name);
		if (inner > 1)
			emit(e, " / %" PRId64 "%s", inner, small ? "u" : "");
		if (k != first)
			emit(e, " %% %" PRId64 "%s", s->group[k].dim, small ? "u" : "");
		emit(e, ") * %" PRId64, s->group[k].stride);
		inner *= s->group[k].dim;
		plus = " + ";
	}
	if (!*plus)
		emit(e, "0");
}

/* "struct kind": what an element counts as, how results are joined, the last step. */
static void emit_kind(struct emit *e, const struct reduce_kind *k, const struct reduce_shape *s)
{
	static const char *const joins[] = {[JOIN_SUM] = "a + b",
		[JOIN_PRODUCT] = "a * b",
		[JOIN_MAX] = "b > a || b != b ? b : a",
		[JOIN_MIN] = "b < a || b != b ? b : a"};
	emit(e, "\tstruct kind {\n\t\tstatic real term(real x, real%s) { return %s; }\n",
		reduce_has_other(k) ? " other" : "", reduce_term_text(k));
	emit(e, "\t\tstatic double join(double a, double b) { return %s; }\n", joins[k->join]);
	emit(e, "\t\tstatic double start() { return %s; }\n", reduce_start_text(k));
	emit(e, "\t\tstatic real finish(double sum) { return ");
	reduce_finish(e, k, s, "real", "sum");
	emit(e, "; }\n\t};\n");
}

/* "struct shape": where an output's elements begin, and lie from there. */
static void emit_shape(struct emit *e, const struct reduce_shape *s)
{
	const bool columns = !s->group[s->n - 1].reduced;
	emit(e, "\tstruct shape {\n\t\tstatic int64_t first(int64_t o) { return ");
	emit_offset(e, s, false, columns, "o");
	emit(e, "; }\n\t\tstatic int64_t along(int64_t j) { return ");
	emit_offset(e, s, true, false, "j");
	emit(e, "; }\n\t};\n");
}

static void emit_shape_behind(struct emit *e, const struct plan *first)
{
	emit(e,
		"\tstruct shape {\n\t\tstatic int64_t first(int64_t o) { return o * %" PRId64
		"; }\n",
		first->rows ? first->parts : 0);
	emit(e, "\t\tstatic int64_t along(int64_t j) { return j * %" PRId64 "; }\n\t};\n",
		first->rows ? 1 : first->outputs);
}

/* Of output o: a row, or a part of one. */
static void emit_row_stage(struct emit *e, const struct plan *p, const char *x, const char *other)
{
	const bool last = p->parts == 1;
	rows_open(e, p->outputs * p->parts, (struct rows_shape){p->threads, p->pack}, SUMS_NONE);
	if (last) {
		emit(e, "\t\tconst int64_t o = r, from = 0, end = %" PRId64 ";\n", p->count);
	} else {
		emit(e,
			"\t\tconst int64_t o = r / %" PRId64 ", from = r %% %" PRId64 " * %" PRId64
			";\n",
			p->parts, p->parts, p->part);
		emit(e, "\t\tconst int64_t end = MIN(from + %" PRId64 ", %" PRId64 ");\n", p->part,
			p->count);
	}
	emit(e,
		"\t\tconst double sum = reduce_row<kind, shape, %d, %d>(\n"
		"\t\t\t%s + shape::first(o), from, end, %s, wides);\n",
		p->threads, p->pack, x, other ? emit_text(e, "%s[o]", other) : "0");
	emit(e, "\t\tif (row_thread<%d>() == 0)\n\t\t\t%s;\n\t}\n", p->threads,
		last ? "y0[o] = kind::finish(sum)" : "results[r] = sum");
}

/* The first column `c` of a thread's, and the rows [from, end) of its block. */
static void open_column_tasks(struct emit *e, const struct plan *p)
{
	const int64_t tiles = div_up(p->width, p->threads * p->pack);
	const int64_t outer = p->outputs / p->width, tasks = outer * tiles * p->parts;
	emit_launch(e, tasks, THREADS);
	emit(e, "\t__shared__ double wides[%d][256];\n", p->pack);
	emit(e, "\tfor (int64_t task = blockIdx.x; task < %" PRId64 "; task += gridDim.x) {\n",
		tasks);
	emit(e,
		"\t\tconst int64_t part = task %% %" PRId64 ", tile = task / %" PRId64
		" %% %" PRId64 ", o = task / %" PRId64 ";\n",
		p->parts, p->parts, tiles, p->parts * tiles);
	emit(e,
		"\t\tconst int64_t from = part * %" PRId64 ", end = MIN(from + %" PRId64
		", %" PRId64 ");\n",
		p->part, p->part, p->count);
	emit(e,
		"\t\tconst int64_t c = (tile * %d + threadIdx.x %% %d) * %d;\n"
		"\t\tconst bool inside = c < %" PRId64 " && threadIdx.x < %d;\n",
		p->threads, p->threads, p->pack, p->width, THREADS / p->threads * p->threads);
}

static void emit_column_stage(
	struct emit *e, const struct plan *p, const char *x, const char *other)
{
	open_column_tasks(e, p);
	emit(e, "\t\treal other[%d] = {0};\n\t\tdouble sum[%d];\n", p->pack, p->pack);
	if (other)
		emit(e,
			"\t\tfor (int k = 0; k < %d && inside; k++)\n"
			"\t\t\tother[k] = %s[o * %" PRId64 " + c + k];\n",
			p->pack, other, p->width);
	emit(e,
		"\t\treduce_columns<kind, shape, %d>(\n"
		"\t\t\tsum, %s + shape::first(o) + c, from, end, inside, other, wides);\n",
		p->threads, x);
	emit(e, "\t\tfor (int k = 0; k < %d && inside && threadIdx.x < %d; k++)\n", p->pack,
		p->threads);
	if (p->parts == 1)
		emit(e, "\t\t\ty0[o * %" PRId64 " + c + k] = kind::finish(sum[k]);\n\t}\n",
			p->width);
	else
		emit(e,
			"\t\t\tresults[part * %" PRId64 " + o * %" PRId64
			" + c + k] = sum[k];\n\t}\n",
			p->outputs, p->width);
}

static void emit_stage_of(struct emit *e, const struct plan *p, const char *x, const char *other)
{
	if (p->rows)
		emit(e, "\t__shared__ double wides[8];\n");
	(p->rows ? emit_row_stage : emit_column_stage)(e, p, x, other);
}

void reduce_cuda_emit(struct emit *e, const struct node *n)
{
	const struct reduce_kind *k = reduce_kind_of(n);
	const struct reduce_shape s = reduce_shape_of(n);
	const struct plan p = plan_of(n), behind = plan_behind(&p);
	block_sums_helper(e);
	emit_packs(e);
	emit_source(e, "rows.cuh", 0, NULL);
	emit_helper(e, "reduce_join", reduce_join_text);
	if (p.rows)
		emit_helper(e, "reduce_row", reduce_row_text);
	else
		emit_helper(e, "reduce_columns", reduce_columns_text);
	emit_kind(e, k, &s);
	emit_shape(e, &s);
	if (p.parts > 1)
		emit(e, "\tdouble *const results = ws;\n");
	emit_stage_of(e, &p, "x0", reduce_has_other(k) ? "x1" : NULL);
	if (p.parts == 1)
		return;
	emit_stage(e);
	emit_kind(e, k, &s);
	emit_shape_behind(e, &p);
	emit(e, "\tconst double *const results = ws;\n");
	emit_stage_of(e, &behind, "results", NULL);
}
