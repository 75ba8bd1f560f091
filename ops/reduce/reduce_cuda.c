/* Which kernels a reduction calls on a GPU (kernels/reduce.cuh). All of it goes by the shape alone,
 * so that the order of a sum never changes. */
#include "ops/product/gemm_op.h"
#include "ops/reduce/reduce_op.h"
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

int64_t reduce_cuda_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	if (!reduce_has_cuda(n))
		return 0;
	const struct plan p = plan_of(n);
	return p.parts > 1 ? p.outputs * p.parts * (int64_t)sizeof(double) : 0;
}

/* --- Calls --- */

static struct call_struct cut_of(struct call_field field[4], const struct plan *p)
{
	field[0] = (struct call_field){"outputs", ARG_SIZE(p->outputs)};
	field[1] = (struct call_field){"parts", ARG_SIZE(p->parts)};
	field[2] = (struct call_field){"part", ARG_SIZE(p->part)};
	field[3] = (struct call_field){.name = NULL};
	return (struct call_struct){"struct reduce_cut", "cut", field};
}

/* A launch over x, or, behind another, over what that has left in scratch. */
static enum status stage_call(struct emit *e, const struct plan *p, const struct reduce_shape *s,
	const struct call_struct *how, bool behind, bool other)
{
	const struct call_arg none = {.kind = CALL_NONE};
	struct reduce_groups groups;
	struct call_field field[4];
	const struct call_struct shape = reduce_groups_of(s, &groups), cut = cut_of(field, p);
	const int64_t tiles = div_up(p->width, p->threads * p->pack);
	const bool last = p->parts == 1;
	const char *function = p->rows ? (behind ? "block_join_rows" : "block_reduce_rows")
				       : (behind ? "block_join_columns" : "block_reduce_columns");
	return call_kernel(
		e, &(struct kernel_call){.file = "reduce.cuh",
			   .function = function,
			   .nconstant = 2,
			   .constant = {p->threads, p->pack},
			   .shared = {p->rows ? "reduce_row_room"
					      : emit_text(e, "reduce_column_room<%d>", p->pack)},
			   .tasks = p->rows ? rows_tasks(p->outputs * p->parts,
						      (struct rows_shape){p->threads, p->pack})
					    : p->outputs / p->width * tiles * p->parts,
			   .threads = THREADS,
			   .args = CALL_ARGS(last ? ARG_Y(0) : ARG_NULL,
				   behind ? none
				   : last ? ARG_NULL
					  : ARG_SCRATCH(0),
				   behind ? ARG_SCRATCH(0) : ARG_X(0),
				   behind  ? none
				   : other ? ARG_X(1)
					   : ARG_NULL,
				   ARG_STRUCT(&shape), ARG_STRUCT(how), ARG_STRUCT(&cut))});
}

enum status reduce_cuda_call(struct emit *e, const struct node *n)
{
	const struct reduce_kind *k = reduce_kind_of(n);
	const struct reduce_shape s = reduce_shape_of(n);
	const struct plan p = plan_of(n), behind = plan_behind(&p);
	struct call_field field[REDUCE_FIELDS];
	const struct call_struct how = reduce_how(field, k, s.count);
	TRY(stage_call(e, &p, &s, &how, false, reduce_has_other(k)));
	if (p.parts == 1)
		return ST_OK;
	const struct reduce_group outputs = {p.outputs, p.rows ? p.parts : 1, false};
	const struct reduce_group parts = {p.parts, p.rows ? 1 : p.outputs, true};
	const struct reduce_shape left = {
		.n = 2, .group = {p.rows ? outputs : parts, p.rows ? parts : outputs}};
	return stage_call(e, &behind, &left, &how, true, false);
}
