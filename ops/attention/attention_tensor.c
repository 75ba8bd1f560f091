/* Attention's kernels for a GPU's tensor cores, in bf16 and fp16: which shapes, how the work is
 * cut, and the launches. The functions are kernels/attention_tensor.cuh's: FlashAttention-2 (Dao,
 * "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023, arXiv
 * 2307.08691).
 *
 * Products are mma.m16n8k16's with float sums; probabilities and the gradients of scores are
 * rounded to the narrow type where they are an operand. docs/explanation/attention-on-a-gpu.md has
 * the arithmetic: shared memory, registers, operations for each byte. */
#include <math.h>
#include <stdio.h>

#include "ops/attention/attention_op.h"
#include "ops/product/gemm_op.h"

enum {
	STRIP = 16,   /* rows that a warp does at a time */
	WIDEST = 128, /* head that registers have room for */
	VECTOR = 8,   /* elements that are copied at a time: 16 bytes */
	NARROW_ENOUGH = 80,
	MOST = 1 << 29 /* tokens and heads are counted in ints */
};

/* Whether axis k (batch, head, token) of a tensor leads to multiples of 16 bytes. */
static bool aligned(const struct attention *p, int which, int k)
{
	const bool of_keys = which == ATTENTION_K || which == ATTENTION_V;
	const int64_t count[3] = {
		p->batch, of_keys ? p->heads / p->group : p->heads, of_keys ? p->tk : p->tq};
	return count[k] <= 1 || p->stride[which][k] % VECTOR == 0;
}

/* Narrow operands, heads of at most 128 elements, and rows that begin and end at multiples of 16
 * bytes (the arena's places are multiples of 256). */
bool attention_tensor_takes(const struct attention *p, const struct tensor *t)
{
	bool takes = dtype_is_narrow(t->dtype) && p->d > 0 && p->dv > 0 && p->tk > 0 &&
		     p->d % VECTOR == 0 && p->dv % VECTOR == 0 && p->d <= WIDEST &&
		     p->dv <= WIDEST &&
		     max64(max64(p->tq, p->tk), max64(p->batch, p->heads)) < MOST;
	for (int i = 0; i < ATTENTION_TENSORS; i++)
		for (int k = 0; k < 3; k++)
			takes = takes && aligned(p, i, k);
	for (int i = 0; i < ATTENTION_OUT; i++)
		takes = takes && p->offset[i] % VECTOR == 0;
	return takes;
}

/* The wider of both heads, as mma has it. */
static int64_t width_of(const struct attention *p)
{
	return round_up(max64(p->d, p->dv), STRIP);
}

/* Rows of a tile: two pairs of tiles are within 48 KiB. */
static int columns_of(const struct attention *p)
{
	return width_of(p) <= NARROW_ENOUGH ? 64 : 32;
}

/* Scores need nothing but the scale, which keeps their order, and bounds. */
static bool is_plain(const struct attention *p)
{
	return !p->masked && !p->mask_bool && !(p->softcap > 0) && p->scale > 0;
}

enum { SHAPE_MORE = 10 };

/* What the tensor cores' kernels want to know besides: their warps have `strips` strips each. */
static void add_more(const struct attention *p, int strips, int threads, int step,
	struct attention_tiles *t, struct call_field more[SHAPE_MORE])
{
	t->parts = 1;
	t->rows = threads / 32 * strips * STRIP;
	const struct call_field list[SHAPE_MORE] = {{"rows", ARG_INT(t->rows)},
		{"columns", ARG_INT(columns_of(p))}, {"threads", ARG_INT(threads)},
		{"strips", ARG_INT(strips)}, {"step", ARG_INT(step)},
		{"pitch", ARG_INT(width_of(p) + VECTOR)},
		{"kwidth", ARG_INT(round_up(p->d, STRIP))},
		{"vwidth", ARG_INT(round_up(p->dv, STRIP))}, {"plain", ARG_INT(is_plain(p))},
		{"power", ARG_REAL(p->scale * M_LOG2E)}};
	memcpy(more, list, sizeof list);
	t->more = more;
	t->nmore = SHAPE_MORE;
}

enum status attention_tensor_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	enum { THREADS = 256, STRIPS = 1, ROWS = THREADS / 32 * STRIPS * STRIP };
	/* two blocks: their warps wait for each other's products and loads; wide heads have too
	 * many registers for it */
	const int resident = width_of(p) > 64 ? 0 : 2;
	struct attention_tiles t = {
		.shard = e->g->shards_differ, .tasks = p->batch * p->heads * div_up(p->tq, ROWS)};
	struct call_field more[SHAPE_MORE];
	struct attention_traits traits;
	add_more(p, STRIPS, THREADS, 32, &t, more);
	return attention_cuda_forward(e, n,
		(struct kernel_call){.file = "attention_tensor.cuh",
			.function = "flash_forward",
			.tasks = t.tasks,
			.threads = THREADS,
			.resident = resident,
			.shared = {"flash_tiles<shape>"},
			.traits = attention_cuda_shape(p, &t, &traits)});
}

int64_t attention_tensor_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	const struct attention *p = n->param;
	return attention_tensor_takes(p, n->in[GRAD_Q]) ? p->batch * p->heads * p->tq * 4 : 0;
}

/* One launch of the gradient: by so many threads a block, and so many blocks a multiprocessor (0:
 * any), tasks of so many of its warps' strips. */
static enum status grad_launch(struct emit *e, const struct node *n, const char *function,
	int threads, int resident, int step, int64_t tasks, const char *const shared[2],
	const struct call_arg *args)
{
	const struct attention *p = n->param;
	struct attention_tiles t = {
		.shard = e->g->shards_differ, .tasks = tasks, .shifted = node_input(n, GRAD_DLSE)};
	struct call_field more[SHAPE_MORE];
	struct attention_traits traits;
	add_more(p, 1, threads, step, &t, more);
	return call_kernel(e, &(struct kernel_call){.file = "attention_tensor_grad.cuh",
				      .function = function,
				      .tasks = tasks,
				      .threads = threads,
				      .resident = resident,
				      .shared = {shared[0], shared[1]},
				      .traits = attention_cuda_shape(p, &t, &traits),
				      .args = args});
}

enum status attention_tensor_grad_emit(struct emit *e, const struct node *n)
{
	/* a block has a warp for each of so many rows; and strips of so many keys, or queries */
	enum { SHIFT_ROWS = 8, KEY_THREADS = 128, KEY_ROWS = KEY_THREADS / 32 * STRIP };
	enum { QUERY_THREADS = 256, QUERY_ROWS = QUERY_THREADS / 32 * STRIP };
	const struct attention *p = n->param;
	const bool wide = width_of(p) > 64;
	const int64_t kv = p->heads / p->group;
	static const char *const none[2], *const tiles[2] = {"flash_tiles<shape>"};
	static const char *const with_numbers[2] = {"flash_tiles<shape>", "flash_numbers<shape>"};
	struct attention_given given;
	const struct call_arg g = ARG_STRUCT(attention_cuda_given(n, &given));
	TRY(grad_launch(e, n, "flash_shift", 32 * SHIFT_ROWS, 0, 16,
		div_up(p->batch * p->heads * p->tq, SHIFT_ROWS), none,
		CALL_ARGS(ARG_SCRATCH(0), g)));
	/* steps of 16: registers for three blocks, whose warps wait for each other */
	TRY(grad_launch(e, n, "flash_grad_keys", KEY_THREADS, wide ? 0 : 3, 16,
		p->batch * kv * div_up(p->tk, KEY_ROWS), with_numbers,
		CALL_ARGS(ARG_Y_AT(p->packed ? 0 : 1, p->offset[1]),
			ARG_Y_AT(p->packed ? 0 : 2, p->offset[2]), g, ARG_SCRATCH(0))));
	return grad_launch(e, n, "flash_grad_queries", QUERY_THREADS, wide ? 0 : 2, 16,
		p->batch * p->heads * div_up(p->tq, QUERY_ROWS), tiles,
		CALL_ARGS(ARG_Y_AT(0, p->offset[0]), g, ARG_SCRATCH(0)));
}
