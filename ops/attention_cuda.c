/* Attention's kernels for a GPU: the shape as a type that their functions are compiled for, the
 * tasks, and the launch. The functions are in attention_cuda_text.h.
 *
 * A block takes tasks: 64 queries (or keys) of one head, against all keys (or queries) that they
 * see, 64 at a time. Wide heads are cut into parts, which compute the same probabilities; a task
 * has the sums of one part. The gradient computes them again from lse, once for dq and once for dk
 * and dv: no two blocks write one element, and no order depends on the launch.
 *
 * All products are attention_dots' and attention_sum's, in single precision. What tensor cores can
 * do is attention_tensor.c's. */
#include <stdio.h>

#include "ops/attention.h"
#include "ops/attention_cuda_text.h"
#include "ops/dropout.h"
#include "ops/gemm.h"

enum { TILE = 64, THREADS = 256, WIDEST = 128, LANES = 16 };

/* Parts of an axis of `width`, and how many times 16 columns one has. */
static int64_t parts_of(int64_t width)
{
	return max64(div_up(width, WIDEST), 1);
}

static int columns_of(int64_t width, int64_t parts)
{
	return (int)max64(div_up(width, parts * LANES), 1);
}

static void emit_numbers(struct emit *e, const char *name, const int64_t *v, int n)
{
	for (int i = 0; i < n; i++)
		emit(e, ", %s%d = %lld", name, i, (long long)v[i]);
}

/* What all texts read elements, write loops and make scores with. */
void attention_cuda_helpers(struct emit *e)
{
	emit_packs(e);
	emit_helper(e, "attention_roll", attention_roll_text);
	emit_helper(e, "attention_score", attention_score_text);
}

static void emit_helpers(struct emit *e)
{
	attention_cuda_helpers(e);
	emit_helper(e, "attention_tile", attention_tile_text);
	emit_helper(e, "attention_noise", attention_noise_cuda_text);
}

/* "struct shape", the template parameter A, and the launch. */
void attention_cuda_shape(
	struct emit *e, const struct attention *p, const struct attention_tiles *t)
{
	static const char *const names[ATTENTION_TENSORS] = {"q", "k", "v", "o"};
	char number[40];
	emit(e,
		"\tstruct shape {\n\t\tenum : int64_t { batch = %lld, heads = %lld, group = %lld, "
		"tq = %lld, tk = %lld, d = %lld, dv = %lld",
		(long long)p->batch, (long long)p->heads, (long long)p->group, (long long)p->tq,
		(long long)p->tk, (long long)p->d, (long long)p->dv);
	emit(e, ",\n\t\t\ttasks = %lld, parts = %lld, qtiles = %lld, ktiles = %lld,%s\n\t\t\t",
		(long long)t->tasks, (long long)t->parts, (long long)div_up(p->tq, t->rows),
		(long long)div_up(p->tk, t->rows), t->more);
	for (int i = 0; i < ATTENTION_TENSORS; i++)
		for (int k = 0; k < 3; k++)
			emit(e, "%s%d = %lld, ", names[i], k, (long long)p->stride[i][k]);
	emit(e, "masked = %d, period = %lld, mheads = %lld", p->masked + p->mask_bool,
		(long long)p->mask_dim[0], (long long)(p->mask_dim[1] == 1 ? 1 : p->heads));
	emit_numbers(e, "m", p->mask_stride, 4);
	emit(e,
		",\n\t\t\tlower = %lld, upper = %lld, capped = %d, empty = %d, shifted = %d, "
		"noisy = %d, node = %lld, keep_from = %llu };\n",
		(long long)p->lower, (long long)p->upper, p->softcap > 0, (int)p->empty, t->shifted,
		p->ratio > 0, (long long)p->noise,
		p->ratio > 0 ? (unsigned long long)dropout_keep_from(p->ratio) : 0);
	emit(e, "\t\tstatic constexpr real scale() { return %s; }\n",
		emit_real(e, p->scale, number));
	if (p->softcap > 0)
		emit(e, "\t\tstatic constexpr real cap() { return %s; }\n",
			emit_real(e, p->softcap, number));
	if (p->ratio > 0)
		emit(e, "\t\tstatic constexpr real keep() { return %s; }\n",
			emit_real(e, 1 / (1 - p->ratio), number));
	emit(e, "%s\t};\n", t->members);
	emit_launch(e, t->tasks, t->threads);
}

static void emit_shape(
	struct emit *e, const struct attention *p, int64_t parts, int64_t tasks, bool shifted)
{
	const struct attention_tiles t = {.rows = TILE,
		.threads = THREADS,
		.tasks = tasks,
		.parts = parts,
		.shifted = shifted,
		.more = "",
		.members = ""};
	attention_cuda_shape(e, p, &t);
	emit(e, "\t__shared__ struct attention_tile tile;\n");
}

/* The mask of the template's type, "x6", or a pointer to nothing. */
const char *attention_cuda_mask(struct emit *e, const struct attention *p, int input)
{
	return p->masked ? emit_text(e, "x%d", input) : "(const real *)0";
}

const char *attention_cuda_control(struct emit *e, const struct attention *p, int input)
{
	return p->ratio > 0 ? emit_text(e, "x%d", input) : "(const int64_t *)0";
}

/* "x0 + 384": where operand `which` begins in a tensor. */
const char *attention_cuda_part(
	struct emit *e, const struct attention *p, char letter, int k, int which)
{
	if (p->offset[which] == 0)
		return emit_text(e, "%c%d", letter, k);
	return emit_text(e, "%c%d + OFFSET%d", letter, k, which);
}

/* The parts' offsets, by name: numbers in a function's text may become its parameters. */
void attention_cuda_offsets(struct emit *e, const struct attention *p)
{
	for (int i = 0; i < ATTENTION_OUT; i++)
		if (p->offset[i] != 0)
			emit(e, "\tenum : int64_t { OFFSET%d = %lld };\n", i,
				(long long)p->offset[i]);
}

enum status attention_cuda_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int64_t parts = parts_of(p->dv);
	if (attention_tensor_takes(p, n->in[IN_Q]))
		return attention_tensor_emit(e, n);
	emit_helpers(e);
	emit_helper(e, "attention_forward", attention_forward_cuda_text);
	emit_shape(e, p, parts, p->batch * p->heads * div_up(p->tq, TILE) * parts, false);
	attention_cuda_offsets(e, p);
	emit(e, "\tenum { COLUMNS = %d };\n", columns_of(p->dv, parts));
	emit(e, "\tattention_forward<shape, COLUMNS>(tile, %s, %s, %s, %s, %s, y0, y1);\n",
		attention_cuda_part(e, p, 'x', IN_Q, IN_Q),
		attention_cuda_part(e, p, 'x', IN_K, IN_K),
		attention_cuda_part(e, p, 'x', IN_V, IN_V), attention_cuda_mask(e, p, IN_MASK),
		attention_cuda_control(e, p, IN_CONTROL));
	return ST_OK;
}

/* Declares `g`, of what a gradient reads. */
void attention_cuda_given(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	emit(e,
		"\tconst struct attention_given<%s, %s> g = {x0, %s, %s, %s, x4, x5, %s, %s, "
		"%s};\n",
		emit_type(n->in[GRAD_Q]), p->mask_bool ? "unsigned char" : "real",
		attention_cuda_part(e, p, 'x', GRAD_Q, IN_Q),
		attention_cuda_part(e, p, 'x', GRAD_K, IN_K),
		attention_cuda_part(e, p, 'x', GRAD_V, IN_V),
		node_has(n, GRAD_DLSE) ? "x8" : "(const real *)0",
		attention_cuda_mask(e, p, GRAD_MASK), attention_cuda_control(e, p, GRAD_CONTROL));
}

enum status attention_grad_cuda_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int64_t parts = parts_of(max64(p->d, p->dv));
	const int64_t keys = p->batch * (p->heads / p->group) * div_up(p->tk, TILE);
	const int64_t queries = p->batch * p->heads * div_up(p->tq, TILE);
	if (attention_tensor_takes(p, n->in[GRAD_Q]))
		return attention_tensor_grad_emit(e, n);
	emit_helpers(e);
	emit_helper(e, "attention_given", attention_given_text);
	emit_helper(e, "attention_grad", attention_grad_cuda_text);
	emit_shape(e, p, parts, (keys + queries) * parts, node_has(n, GRAD_DLSE));
	attention_cuda_offsets(e, p);
	emit(e, "\tenum { COLUMNS = %d, VCOLUMNS = %d };\n", columns_of(p->d, parts),
		columns_of(p->dv, parts));
	attention_cuda_given(e, n);
	emit(e, "\tattention_grad<shape, COLUMNS, VCOLUMNS>(tile, g, %s, %s, %s);\n",
		attention_cuda_part(e, p, 'y', 0, IN_Q),
		attention_cuda_part(e, p, 'y', p->packed ? 0 : 1, IN_K),
		attention_cuda_part(e, p, 'y', p->packed ? 0 : 2, IN_V));
	return ST_OK;
}

enum status attention_mask_cuda_emit(struct emit *e, const struct node *n)
{
	const struct attention *p = n->param;
	const int64_t planes = p->mask_dim[0] * p->mask_dim[1];
	emit_helpers(e);
	emit_helper(e, "attention_given", attention_given_text);
	emit_helper(e, "attention_grad", attention_grad_cuda_text);
	emit_helper(e, "attention_mask", attention_mask_cuda_text);
	emit_shape(e, p, 1, planes * div_up(p->tq, TILE) * div_up(p->tk, TILE),
		node_has(n, GRAD_DLSE));
	attention_cuda_offsets(e, p);
	attention_cuda_given(e, n);
	emit(e, "\tattention_dmask<shape>(tile, g, y0);\n");
	return ST_OK;
}
