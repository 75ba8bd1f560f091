/* Attention's kernels for a GPU's tensor cores, in bf16 and fp16: which shapes, how the work is
 * cut, and the launches. The functions are in attention_tensor_text.h: FlashAttention-2 (Dao,
 * "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023, arXiv
 * 2307.08691).
 *
 * Products are mma.m16n8k16's with float sums; probabilities and the gradients of scores are
 * rounded to the narrow type where they are an operand. docs/explanation/attention-on-a-gpu.md has
 * the arithmetic: shared memory, registers, operations for each byte. */
#include <math.h>
#include <stdio.h>

#include "ops/attention.h"
#include "ops/attention_cuda_text.h"
#include "ops/attention_tensor_grad_text.h"
#include "ops/attention_tensor_text.h"
#include "ops/gemm.h"

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

/* The shape of a kernel whose warps have `strips` strips each. */
static void emit_shape(
	struct emit *e, const struct attention *p, int strips, int step, struct attention_tiles t)
{
	char number[40];
	t.parts = 1;
	t.rows = t.threads / 32 * strips * STRIP;
	t.more = emit_text(e,
		"\n\t\t\trows = %d, columns = %d, threads = %d, strips = %d, step = %d, "
		"pitch = %lld, kwidth = %lld, vwidth = %lld, plain = %d,",
		t.rows, columns_of(p), t.threads, strips, step, (long long)(width_of(p) + VECTOR),
		(long long)round_up(p->d, STRIP), (long long)round_up(p->dv, STRIP), is_plain(p));
	t.members = emit_text(e, "\t\tstatic constexpr real power() { return %s; }\n",
		emit_real(e, p->scale * M_LOG2E, number));
	attention_cuda_shape(e, p, &t);
}

static void emit_helpers(struct emit *e, const struct tensor *t)
{
	attention_cuda_helpers(e);
	emit_helper(e, "attention_tensor_type",
		t->dtype == DT_BF16 ? attention_bf16_text : attention_f16_text);
	emit_helper_on(e, "attention_put_two", attention_put_two_text, 1, &t);
	emit_helper(e, "attention_strips", attention_strips_text);
	emit_helper(e, "attention_kept", attention_kept_text);
}

enum status attention_tensor_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const bool wide = width_of(p) > 64; /* then registers have room for one strip only */
	const int strips = wide ? 1 : 2, threads = wide ? 256 : 128;
	const int64_t rows = threads / 32 * strips * STRIP;
	emit_helpers(e, n->in[IN_Q]);
	emit_helper(e, "attention_flash", attention_flash_text);
	emit_shape(e, p, strips, 32,
		(struct attention_tiles){
			.threads = threads, .tasks = p->batch * p->heads * div_up(p->tq, rows)});
	attention_cuda_offsets(e, p);
	emit(e, "\t__shared__ flash_tiles<shape> tiles;\n");
	emit(e, "\tflash_forward<shape>(tiles, %s, %s, %s, %s, %s, y0, y1);\n",
		attention_cuda_part(e, p, 'x', IN_Q, IN_Q),
		attention_cuda_part(e, p, 'x', IN_K, IN_K),
		attention_cuda_part(e, p, 'x', IN_V, IN_V), attention_cuda_mask(e, p, IN_MASK),
		attention_cuda_control(e, p, IN_CONTROL));
	return ST_OK;
}

int64_t attention_tensor_workspace(const struct node *n)
{
	const struct attention *p = n->param;
	return attention_tensor_takes(p, n->in[GRAD_Q]) ? p->batch * p->heads * p->tq * 4 : 0;
}

/* What stands before the call of a launch over tiles of keys, or queries. */
static void emit_grad_launch(struct emit *e, const struct node *n, int64_t heads, int64_t tokens)
{
	enum { GRAD_THREADS = 128, ROWS = GRAD_THREADS / 32 * STRIP };
	const struct attention *p = n->param;
	emit_shape(e, p, 1, width_of(p) <= 64 ? 32 : 16,
		(struct attention_tiles){.threads = GRAD_THREADS,
			.tasks = p->batch * heads * div_up(tokens, ROWS),
			.shifted = node_has(n, GRAD_DLSE)});
	attention_cuda_offsets(e, p);
	emit(e, "\t__shared__ flash_tiles<shape> tiles;\n");
	attention_cuda_given(e, n);
}

enum status attention_tensor_grad_emit(struct emit *e, const struct node *n)
{
	enum { SHIFT_ROWS = 8 }; /* a block's; it has a warp for each */
	const struct attention *p = n->param;
	emit_helpers(e, n->in[GRAD_Q]);
	emit_helper(e, "attention_given", attention_given_text);
	emit_source(e, "block.cuh", 0, NULL);
	emit_helper(e, "attention_shift", attention_shift_text);
	emit_helper(e, "attention_flash_grad", attention_flash_grad_text);
	emit_shape(e, p, 1, 16,
		(struct attention_tiles){.threads = 32 * SHIFT_ROWS,
			.tasks = div_up(p->batch * p->heads * p->tq, SHIFT_ROWS),
			.shifted = node_has(n, GRAD_DLSE)});
	attention_cuda_offsets(e, p);
	attention_cuda_given(e, n);
	emit(e, "\tflash_shift<shape>(g, ws);\n");
	emit_stage(e);
	emit_grad_launch(e, n, p->heads / p->group, p->tk);
	emit(e, "\t__shared__ flash_numbers<shape> numbers;\n");
	emit(e, "\tflash_grad_keys<shape>(tiles, numbers, g, ws, %s, %s);\n",
		attention_cuda_part(e, p, 'y', p->packed ? 0 : 1, IN_K),
		attention_cuda_part(e, p, 'y', p->packed ? 0 : 2, IN_V));
	emit_stage(e);
	emit_grad_launch(e, n, p->heads, p->tq);
	emit(e, "\tflash_grad_queries<shape>(tiles, g, ws, %s);\n",
		attention_cuda_part(e, p, 'y', 0, IN_Q));
	return ST_OK;
}
