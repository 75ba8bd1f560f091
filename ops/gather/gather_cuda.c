/* Slices by indices, and the gradients of tables, on a GPU (kernels/gather.cuh). */
#include "ops/gather/gather_op.h"
#include "ops/product/gemm_op.h"

enum { THREADS = 256, AT_ONCE = 16 /* bytes */, BUSY = 2048 /* blocks */ };

static bool is_checked(const struct node *n)
{
	return n->in[1]->role != TR_CONSTANT;
}

enum status gather_cuda_call(struct emit *e, const struct node *n, const struct picks *p)
{
	const struct tensor *x = n->in[0];
	int pack = AT_ONCE / (int)dtype_bytes(x->dtype);
	while (p->inner % pack)
		pack /= 2;
	const int64_t slice = p->inner / pack, all = p->outer * p->count * slice;
	return call_kernel(
		e, &(struct kernel_call){.file = "gather.cuh",
			   .function = "gather_packs",
			   .nconstant = 2,
			   .constant = {is_checked(n), pack},
			   .shared = {"gather_room"},
			   .checked = true,
			   .tasks = div_up(all, 2 * THREADS) + 1,
			   .threads = THREADS,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(p->outer),
				   ARG_SIZE(p->size), ARG_SIZE(p->count), ARG_SIZE(slice))});
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

enum { SHAPE_FIELDS = 14 };

/* The kernels' template parameter S. */
static struct call_struct shape_of(
	const struct picks *p, const struct sorting *s, struct call_field field[SHAPE_FIELDS])
{
	const struct scratch at = scratch_of(p, s);
	const struct call_field all[SHAPE_FIELDS] = {{"size", ARG_INT(p->size)},
		{"inner", ARG_INT(p->inner)}, {"count", ARG_INT(p->count)},
		{"padding", ARG_INT(p->padding)}, {"tile", ARG_INT(s->tile)},
		{"tiles", ARG_INT(s->tiles)}, {"chunk", ARG_INT(s->chunk)},
		{"chunks", ARG_INT(s->chunks)}, {"bits", ARG_INT(s->bits)},
		{"digits", ARG_INT((int64_t)1 << s->bits)}, {"counts", ARG_INT(at.counts)},
		{"bad", ARG_INT(at.bad)}, {"rests", ARG_INT(at.rests)}, {.name = NULL}};
	memcpy(field, all, sizeof all);
	return (struct call_struct){"struct", "shape", field};
}

/* What the launches that sort have in common. */
static enum status sort_call(struct emit *e, struct kernel_call c, const struct call_struct *shape,
	int64_t blocks, const struct call_arg *args)
{
	c.file = "gather.cuh";
	c.traits = shape;
	c.tasks = blocks;
	c.threads = THREADS;
	c.shared[0] = "scatter_room<shape>";
	c.args = args;
	return call_kernel(e, &c);
}

static enum status sort_calls(struct emit *e, const struct node *n, const struct sorting *s,
	const struct call_struct *shape)
{
	const int64_t elements = n->out[0]->numel, zeroing = div_up(elements, 8 * THREADS);
	const int64_t first = max64(s->tiles, zeroing < BUSY ? zeroing : BUSY);
	const bool checked = is_checked(n);
	const struct call_arg *with_zeros = CALL_ARGS(
		ARG_Y(0), ARG_SCRATCH(0), ARG_X(1), ARG_SIZE(elements));
	if (s->tiles == 1)
		return sort_call(e,
			(struct kernel_call){.function = "scatter_one_tile",
				.nconstant = 2,
				.constant = {checked, s->passes}},
			shape, first, with_zeros);
	for (int pass = 0; pass < s->passes; pass++) {
		TRY(sort_call(e,
			(struct kernel_call){.function = "scatter_count_tiles",
				.nconstant = 2,
				.constant = {checked, pass}},
			shape, pass ? s->tiles : first, with_zeros));
		TRY(sort_call(e,
			(struct kernel_call){.function = "scatter_sort_tiles",
				.nconstant = 1,
				.constant = {pass}},
			shape, s->tiles, CALL_ARGS(ARG_SCRATCH(0), ARG_X(1))));
	}
	return ST_OK;
}

enum status scatter_cuda_call(struct emit *e, const struct node *n, const struct picks *p)
{
	const struct sorting s = sorting_of(p);
	const int list = (s.passes + 1) % 2;
	const bool checked = is_checked(n);
	struct call_field field[SHAPE_FIELDS];
	const struct call_struct shape = shape_of(p, &s, field);
	TRY(sort_calls(e, n, &s, &shape));
	TRY(call_kernel(e, &(struct kernel_call){.file = "gather.cuh",
				   .function = "scatter_chunks",
				   .traits = &shape,
				   .nconstant = 2,
				   .constant = {checked, list},
				   .checked = true,
				   .tasks = div_up(p->outer * s.chunks * p->inner, THREADS),
				   .threads = THREADS,
				   .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_X(0), ARG_X(1),
					   ARG_SIZE(p->outer))}));
	if (s.chunks == 1)
		return ST_OK;
	return call_kernel(e,
		&(struct kernel_call){.file = "gather.cuh",
			.function = "scatter_rests",
			.traits = &shape,
			.nconstant = 2,
			.constant = {checked, list},
			.checked = true,
			.tasks = div_up(p->outer * (s.chunks - 1) * p->inner, THREADS),
			.threads = THREADS,
			.args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_X(1), ARG_SIZE(p->outer))});
}
