/* SPDX-License-Identifier: MIT-0 */
/* Attention's forward kernel: y = softmax(scale q k^T + mask) v for every batch and head, and lse,
 * the logarithms of its rows' sums, without the matrix of scores (Dao et al., "FlashAttention",
 * 2022; Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). Elements of q,
 * k, v and y are X. */
#include "attention_scores.h"

/* One block of keys for one panel of queries: m, l and o are the largest score so far, the sum of
 * the exponentials relative to it, and the sum of values weighted with them, and with `noise`. */
KERNEL_PART void NAMED(attention_step)(const struct attention *a, int64_t keys, const real *pv,
	int64_t packed, real *restrict s, const real *noise, real *restrict m, real *restrict l,
	real *restrict o)
{
	real top[GEMM_NR], fade[GEMM_NR], sum[GEMM_NR] = {0};
	for (int i = 0; i < GEMM_NR; i++)
		top[i] = m[i];
	for (int64_t j = 0; j < keys; j++)
		for (int i = 0; i < GEMM_NR; i++)
			top[i] = MAX(s[j * GEMM_NR + i], top[i]);
	for (int i = 0; i < GEMM_NR; i++) {
		const real base = top[i] > -INFINITY ? top[i] : 0;
		fade[i] = m[i] - base;
		m[i] = top[i];
		top[i] = base;
	}
	for (int i = 0; i < GEMM_NR; i++)
		fade[i] = EXP(fade[i]);
	for (int64_t j = 0; j < keys; j++)
		for (int i = 0; i < GEMM_NR; i++)
			s[j * GEMM_NR + i] -= top[i];
	for (int64_t i = 0; i < keys * GEMM_NR; i++)
		s[i] = EXP(s[i]);
	for (int64_t j = 0; j < keys; j++)
		for (int i = 0; i < GEMM_NR; i++)
			sum[i] += s[j * GEMM_NR + i];
	for (int i = 0; i < GEMM_NR; i++)
		l[i] = l[i] * fade[i] + sum[i];
	for (int64_t i = 0; noise && i < keys * GEMM_NR; i++)
		s[i] *= noise[i];
	for (int64_t c = 0; c < a->dv; c++)
		for (int i = 0; i < GEMM_NR; i++)
			o[c * GEMM_NR + i] *= fade[i];
	gemm_part(a->dv, GEMM_NR, keys, pv, packed, s, keys, o, GEMM_NR, 1);
}

/* A panel's rows of the output, and the logarithms of their sums. */
KERNEL_PART void NAMED(attention_finish)(const struct attention *a, int64_t width, const real *m,
	const real *l, real *o, X *y, real *lse)
{
	for (int64_t c = 0; c < a->dv; c++)
		for (int i = 0; i < GEMM_NR; i++)
			o[c * GEMM_NR + i] /= l[i];
	for (int64_t i = 0; i < width; i++) {
		const int none = a->empty == 1 ? l[i] == 0 : a->empty == 2 ? !(l[i] > 0) : 0;
		for (int64_t c = 0; none && c < a->dv; c++)
			o[c * GEMM_NR + i] = 0;
		lse[i] = none ? 0 : m[i] + LOG(l[i]);
	}
	attention_rows(a->dv, width, o, y, a->o[2]);
}

/* A block of queries, from i0 on, of one head. */
KERNEL_PART void NAMED(attention_block)(const struct attention *a, const X *q, const X *k,
	const X *v, const real *mask, const unsigned char *allow, const int64_t *control,
	attention_noise_function *draw, X *y, real *lse, int64_t b, int64_t h, int64_t i0, real *w)
{
	const int64_t rows = MIN(a->tq - i0, a->block), panels = (rows + GEMM_NR - 1) / GEMM_NR;
	const int64_t n = panels * GEMM_NR;
	real *m = w, *l = m + n, *o = l + n, *pq = o + n * a->dv, *s = pq + n * a->d;
	real *tile = s + ATTENTION_KEYS * GEMM_NR, *noise = draw ? tile : NULL;
	real *pk = tile + (draw || mask ? ATTENTION_KEYS * GEMM_NR : 0),
	     *pv = pk + ATTENTION_KEYS * a->d;
	int64_t from, to;
	q += b * a->q[0] + h * a->q[1] + i0 * a->q[2];
	k += b * a->k[0] + h / a->group * a->k[1];
	v += b * a->v[0] + h / a->group * a->v[1];
	gemm_pack_b(a->d, rows, q, 1, a->q[2], pq);
	for (int64_t i = 0; i < n; i++)
		m[i] = -INFINITY;
	for (int64_t i = 0; i < n * (1 + a->dv); i++)
		l[i] = 0;
	attention_scale(n * a->d, a->scale, pq); /* here, where what was written last is not read */
	attention_range(a, i0, i0 + rows, &from, &to);
	for (int64_t j = from; j < to; j += ATTENTION_KEYS) {
		const int64_t keys = MIN(a->tk - j, ATTENTION_KEYS);
		gemm_pack_a(keys, a->d, k + j * a->k[2], a->k[2], 1, pk);
		gemm_pack_a(a->dv, keys, v + j * a->v[2], 1, a->v[2], pv);
		for (int64_t p = 0; p < n; p += GEMM_NR) {
			if (j - (i0 + p + GEMM_NR - 1) > a->upper ||
				j + keys - 1 - (i0 + p) < a->lower)
				continue;
			const int64_t seen = attention_seen(a, i0 + p, j, keys);
			gemm_macro(seen, GEMM_NR, a->d, pk, pq + p * a->d, s, GEMM_NR, 0);
			attention_scores(a, mask, allow, b, h, i0 + p, j, seen, s, NULL, tile);
			if (draw)
				draw(a, control, b, h, i0 + p, j, seen, noise);
			NAMED(attention_step)
			(a, seen, pv, keys, s, noise, m + p, l + p, o + p * a->dv);
		}
	}
	y += b * a->o[0] + h * a->o[1] + i0 * a->o[2];
	lse += (b * a->heads + h) * a->tq + i0;
	for (int64_t p = 0; p < n; p += GEMM_NR)
		NAMED(attention_finish)
	(a, MIN(rows - p, GEMM_NR), m + p, l + p, o + p * a->dv, y + p * a->o[2], lse + p);
}

/* A turn is a block of queries of one head. `draw`, where there is dropout: attention_noise. ws: of
 * this worker. */
static inline void NAMED(attention)(const struct attention *a, X *y, real *lse, const X *q,
	const X *k, const X *v, const real *mask, const unsigned char *allow,
	const int64_t *control, attention_noise_function *draw, real *ws, int64_t from, int64_t to)
{
	const int64_t blocks = (a->tq + a->block - 1) / a->block;
	for (int64_t turn = from; turn < to; turn++)
		NAMED(attention_block)
	(a, q, k, v, mask, allow, control, draw, y, lse, turn / blocks / a->heads,
		turn / blocks % a->heads, turn % blocks * a->block, ws);
}
