/* SPDX-License-Identifier: MIT-0 */
/* What attention's kernels share. Scores are held transposed, in panels of GEMM_NR queries,
 * panel[key][query], so that a row's maximum and sum run along lanes and a panel is an operand of
 * the next product as it is. Keys come in blocks of ATTENTION_KEYS, whatever the threads: the order
 * of every sum is fixed. */
#ifndef STINT_KERNELS_ATTENTION_SCORES_H
#define STINT_KERNELS_ATTENTION_SCORES_H

#include "gemm.h"
#include "lanes.h"
#include "math.h"
#include "philox.h"

enum { ATTENTION_KEYS = 96, ATTENTION_TURN = 128, ATTENTION_KEYS_TASK = 4 * ATTENTION_KEYS };
struct attention {
	int64_t batch, heads, group,
		block; /* query heads; those that share keys; queries of a task */
	int64_t tq, tk, d, dv;
	int64_t q[3], k[3], v[3], o[3];    /* strides of batch, head and token */
	int64_t mask[4], dmask[2], period; /* batch b takes the mask of b % period */
	int64_t lower, upper;              /* query i sees keys j with lower <= j - i <= upper */
	real scale, cap;
	int empty;    /* rows without keys: 0 NaN, 1 zeros; 2: any row of NaN is zeros */
	int64_t node; /* dropout: whose random numbers, from which of 2^24 on they keep, and the
			 factor then */
	uint32_t keep_from;
	real keep;
	bool shard; /* one of control[4] others */
};

/* Fills a panel with the factors of dropout. */
typedef void attention_noise_function(const struct attention *a, const int64_t *control, int64_t b,
	int64_t h, int64_t i0, int64_t j0, int64_t keys, real *noise);

/* The scores of a panel, from the products of q (scaled before) and k; `tanhs` NULL or the soft
 * cap's; `tile`, where there is a mask of reals, is scratch of a panel's size. */
KERNEL_PART void attention_scores(const struct attention *a, const real *mask,
	const unsigned char *allow, int64_t b, int64_t h, int64_t i0, int64_t j0, int64_t keys,
	real *s, real *tanhs, real *restrict tile)
{
	const int64_t n = keys * GEMM_NR, width = MIN(a->tq - i0, GEMM_NR);
	const int64_t at = b % a->period * a->mask[0] + h * a->mask[1] + i0 * a->mask[2] +
			   j0 * a->mask[3];
	if (a->cap > 0) {
		real *t = tanhs ? tanhs : s;
		for (int64_t i = 0; i < n; i++)
			t[i] = TANH(s[i] / a->cap);
		for (int64_t i = 0; i < n; i++)
			s[i] = a->cap * t[i];
	}
	for (int64_t j = 0; mask && a->mask[2] == 0 && j < keys; j++)
		for (int i = 0; i < GEMM_NR; i++)
			s[j * GEMM_NR + i] += mask[at + j * a->mask[3]];
	if (mask && a->mask[2] != 0) {
		gemm_pack_b(keys, width, mask + at, a->mask[3], a->mask[2], tile);
		for (int64_t i = 0; i < n; i++)
			s[i] += tile[i];
	}
	for (int64_t j = 0; allow && j < keys; j++)
		for (int64_t i = 0; i < width; i++)
			if (!allow[at + i * a->mask[2] + j * a->mask[3]])
				s[j * GEMM_NR + i] = -INFINITY;
	if (j0 + keys - 1 - i0 <= a->upper && j0 - (i0 + width - 1) >= a->lower)
		return;
	for (int64_t j = 0; j < keys; j++) {
		const int64_t ahead = j0 + j - i0, from = MIN(ahead - a->upper, GEMM_NR);
		for (int64_t i = 0; i < from; i++)
			s[j * GEMM_NR + i] = -INFINITY;
		for (int64_t i = MAX(ahead - a->lower + 1, 0); i < GEMM_NR; i++)
			s[j * GEMM_NR + i] = -INFINITY;
	}
}

/* The keys [*from, *to) that any of the queries [i0, i1) sees; *from begins a block. */
KERNEL_PART void attention_range(
	const struct attention *a, int64_t i0, int64_t i1, int64_t *from, int64_t *to)
{
	const int64_t first = MAX(i0 + a->lower, 0), end = i1 + a->upper;
	*from = first / ATTENTION_KEYS * ATTENTION_KEYS;
	*to = MIN(end, a->tk);
}

/* Of the keys [j, j + keys): how many from j on a panel of queries sees, in whole panels of keys.
 * The probabilities of the others are zeros, whose sums need not be computed. */
KERNEL_PART int64_t attention_seen(const struct attention *a, int64_t i0, int64_t j, int64_t keys)
{
	const int64_t seen = i0 + GEMM_NR + a->upper - j;
	return MIN((seen + GEMM_MR - 1) / GEMM_MR * GEMM_MR, keys);
}

static inline void attention_scale(int64_t n, real scale, real *x)
{
	for (int64_t i = 0; i < n; i++)
		x[i] *= scale;
}

/* Dropout's factors for a panel: the numbers that the whole matrix of probabilities would get. */
KERNEL_PART void attention_noise(const struct attention *a, const int64_t *control, int64_t b,
	int64_t h, int64_t i0, int64_t j0, int64_t keys, real *noise)
{
	const int64_t all = a->batch * a->heads * a->tq * a->tk;
	const int64_t first = philox_shard(a->shard ? control : NULL, all);
	for (int64_t i = 0; i < GEMM_NR; i++) {
		const int64_t at = first + ((b * a->heads + h) * a->tq + i0 + i) * a->tk + j0;
		uint32_t word[128];
		philox_lanes(control[0], control[1], a->node, at & ~(int64_t)3, word);
		for (int64_t j = 0; j < keys; j++)
			noise[j * GEMM_NR + i] = word[(at & 3) + j] >> 8 >= a->keep_from ? a->keep
											 : 0;
	}
}

/* The columns of a panel of d rows as rows of y, `stride` apart. */
KERNEL_PART void attention_rows_real(
	int64_t d, int64_t width, const real *panel, real *y, int64_t stride)
{
	int64_t c = 0;
	for (; c + 4 <= d; c += 4)
		gemm_turn(width, panel + c * GEMM_NR, GEMM_NR, y + c, stride);
	for (int64_t left = d & 3; left > 0; left--, c++)
		for (int64_t i = 0; i < width; i++)
			y[i * stride + c] = panel[c * GEMM_NR + i];
}

/* The columns of a panel of d rows as rows of y, `stride` apart. */
KERNEL_PART void attention_rows_narrow(
	int64_t d, int64_t width, const real *panel, narrow *y, int64_t stride)
{
	for (int64_t i = 0; i < width; i++)
		for (int64_t c = 0; c < d; c++)
			STORE(y[i * stride + c], panel[c * GEMM_NR + i]);
}

#define attention_rows(d, width, panel, y, stride)                                                 \
	_Generic(*(y), narrow                                                                      \
		 : attention_rows_narrow, real                                                     \
		 : attention_rows_real)(d, width, panel, y, stride)

#endif
