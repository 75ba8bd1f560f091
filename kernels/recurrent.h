/* SPDX-License-Identifier: MIT-0 */
/* LSTM (Hochreiter and Schmidhuber, "Long Short-Term Memory"; peepholes: Gers, Schraudolph and
 * Schmidhuber), GRU (Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder") and
 * the plain recurrent net. Blocks of samples go through time on their own: every step is a few
 * products over a block's samples with recurrent weights that are packed once, and functions over
 * rows of hidden units. No sum depends on how samples are cut into blocks.
 */
#ifndef STINT_KERNELS_RECURRENT_H
#define STINT_KERNELS_RECURRENT_H

#include <string.h>

#include "gemm.h"
#include "recurrent_net.h"

/* How samples are cut into blocks. */
struct recurrent_blocks {
	int64_t rows;            /* samples of a block */
	int64_t weights, second; /* a direction's packed weights; where their second part begins */
	int64_t spare, packed;   /* in a block's scratch behind z and u: rows of hidden units, and
				  * where operands are packed */
};

/* What a block of m samples from b0 on has: its packed weights; z and u, rows of gates; rows of
 * hidden units, and room to pack an operand. */
struct recurrent_block {
	int64_t d, b0, m, state; /* state: where its samples' states begin */
	const struct activation *act;
	const real *w;
	int64_t second;
	real *z, *u, *spare, *packed;
};

FORM struct recurrent_block recurrent_block(const struct recurrent *p,
	const struct recurrent_blocks *by, const real *weights, real *scratch, int64_t turn)
{
	const struct steps *const s = &p->steps;
	const int64_t blocks = (s->batch + by->rows - 1) / by->rows;
	struct recurrent_block k = {.d = turn / blocks, .b0 = turn % blocks * by->rows};
	k.m = MIN(s->batch - k.b0, by->rows);
	k.state = steps_place_state(s, k.d, k.b0);
	k.act = p->act + 3 * k.d;
	k.w = weights + k.d * by->weights;
	k.second = by->second;
	k.z = scratch;
	k.u = scratch + by->rows * p->cell.gates * s->hidden;
	k.spare = scratch + by->spare;
	k.packed = scratch + by->packed;
	return k;
}

/* From a sample's state to the next one's. */
FORM int64_t recurrent_stride(const struct recurrent *p)
{
	return p->steps.batch_first ? p->steps.directions * p->steps.hidden : p->steps.hidden;
}

/* --- Products --- */

/* Columns of packed weights: whole tiles of any instruction set. */
FORM int64_t recurrent_columns(int64_t n)
{
	return (n + 31) / 32 * 32;
}

/* Rows [begin, begin + count) of each direction's R [gates, hidden], as they lie or, forward, as
 * columns. */
static inline void recurrent_pack(const struct steps *p, const struct recurrent_cell *cell,
	const struct recurrent_blocks *by, real *weights, const real *r, bool forward,
	int64_t begin, int64_t count, int64_t at)
{
	const int64_t h = p->hidden, k = forward ? h : count, n = forward ? count : h;
	const int64_t rs = forward ? 1 : h, cs = forward ? h : 1;
	for (int64_t d = 0; d < p->directions; d++) {
		const real *const of = r + d * cell->gates * h * h + begin * h;
		real *const to = weights + d * by->weights + at;
		for (int64_t k0 = 0; k0 < k; k0 += GEMM_KC)
			gemm_pack_b(MIN(k - k0, GEMM_KC), n, of + k0 * rs, rs, cs,
				to + k0 * recurrent_columns(n));
	}
}

/* c [m][n] += (or, `first`, =) a [m][k] times packed weights. */
KERNEL_PART void recurrent_product(const struct recurrent_block *b, int64_t n, int64_t k,
	const real *a, int64_t lda, int64_t at, real *c, int64_t ldc, bool first)
{
	for (int64_t k0 = 0; k0 < k; k0 += GEMM_KC)
		for (int64_t i0 = 0; i0 < b->m; i0 += GEMM_MC) {
			const int64_t mc = MIN(b->m - i0, GEMM_MC), kc = MIN(k - k0, GEMM_KC);
			gemm_pack_a(mc, kc, a + i0 * lda + k0, lda, 1, b->packed);
			gemm_macro(mc, n, kc, b->packed, b->w + at + k0 * recurrent_columns(n),
				c + i0 * ldc, ldc, !first || k0 > 0);
		}
}

/* --- Rows --- */

static inline void zero_row(int64_t n, real *y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = 0;
}
/* y NULL: nobody asks. */
static inline void copy_row(int64_t n, const real *a, real *y)
{
	if (y)
		memcpy(y, a, (size_t)n * sizeof *y);
}
static inline void add_row(int64_t n, const real *a, real *restrict y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] += a[i];
}
static inline void scale_row(int64_t n, const real *a, real *restrict y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] *= a[i];
}
static inline void product_row(int64_t n, const real *a, const real *b, real *restrict y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = a[i] * b[i];
}
static inline void add_product_row(int64_t n, const real *a, const real *b, real *restrict y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] += a[i] * b[i];
}

/* --- Forward --- */

/* Sample r of a block in turn s: its step, and where its rows begin. */
struct recurrent_sample {
	bool over; /* its sequence is */
	int64_t t, y, row, gates;
};
FORM struct recurrent_sample recurrent_sample(const struct recurrent *p,
	const struct recurrent_block *k, const int64_t *length, int64_t s, int64_t r)
{
	const struct steps *const of = &p->steps;
	const int64_t b = k->b0 + r, len = steps_length(of, length, b);
	struct recurrent_sample x = {.over = s >= len};
	x.t = x.over ? s : steps_turn(of, k->d, s, len);
	x.y = steps_place_y(of, k->d, x.t, b);
	x.row = steps_place(of, k->d, x.t, b, of->hidden);
	x.gates = x.row * p->cell.gates;
	return x;
}

FORM void recurrent_begin(const struct recurrent *p, const struct recurrent_block *k, real *state,
	const real *initial)
{
	const int64_t h = p->steps.hidden, stride = recurrent_stride(p);
	for (int64_t r = 0; r < k->m; r++)
		if (initial)
			copy_row(h, initial + k->state + r * stride, state + k->state + r * stride);
		else
			zero_row(h, state + k->state + r * stride);
}

/* z = XW + bias; with reset_after the recurrent bias begins u. */
FORM void recurrent_gather(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_tensors *x, bool apart, int64_t s)
{
	const int64_t width = p->cell.gates * p->steps.hidden;
	const real *const b = x->bias ? x->bias + k->d * 2 * width : NULL;
	for (int64_t r = 0; r < k->m; r++) {
		const real *const xw = x->xw + recurrent_sample(p, k, x->length, s, r).gates;
		real *const z = k->z + r * width, *const u = k->u + r * width;
		for (int64_t i = 0; i < width; i++)
			z[i] = !b ? xw[i] : apart ? xw[i] + b[i] : xw[i] + (b[i] + b[width + i]);
		for (int64_t i = 0; i < width && apart; i++)
			u[i] = b ? b[width + i] : 0;
	}
}

/* What is stored of a sample; zeros behind the end of its sequence, and false. */
FORM bool recurrent_goes_on(const struct recurrent *p, const struct recurrent_tensors *x,
	const struct recurrent_sample *at)
{
	const int64_t h = p->steps.hidden;
	if (!at->over)
		return true;
	if (x->y)
		zero_row(h, x->y + at->y);
	if (x->gates)
		zero_row(p->cell.gates * h, x->gates + at->gates);
	if (x->aux)
		zero_row(h, x->aux + at->row);
	return false;
}

FORM void recurrent_store(const struct recurrent *p, const struct recurrent_tensors *x,
	const struct recurrent_sample *at, const real *y, const real *gates, const real *aux)
{
	const int64_t h = p->steps.hidden;
	copy_row(h, y, x->y ? x->y + at->y : NULL);
	copy_row(p->cell.gates * h, gates, x->gates ? x->gates + at->gates : NULL);
	copy_row(h, aux, x->aux ? x->aux + at->row : NULL);
}

FORM void lstm_step(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_tensors *x, int64_t s)
{
	const int64_t h = p->steps.hidden, stride = recurrent_stride(p);
	const struct activation *const act = k->act;
	const real *const peep = x->peephole ? x->peephole + k->d * 3 * h : NULL; /* i, o, f */
	recurrent_gather(p, k, x, false, s);
	recurrent_product(k, 4 * h, h, x->h + k->state, stride, 0, k->z, 4 * h, false);
	for (int64_t r = 0; r < k->m; r++) {
		const struct recurrent_sample at = recurrent_sample(p, k, x->length, s, r);
		real *const i = k->z + r * 4 * h, *const o = i + h, *const f = o + h;
		real *const g = f + h, *const hr = x->h + k->state + r * stride;
		real *const c = x->c + k->state + r * stride;
		if (!recurrent_goes_on(p, x, &at))
			continue;
		if (peep)
			add_product_row(h, peep, c, i);
		if (peep && !p->cell.input_forget)
			add_product_row(h, peep + 2 * h, c, f);
		activate_row(h, &act[0], p->cell.clip, i);
		for (int64_t j = 0; j < h && p->cell.input_forget; j++)
			f[j] = 1 - i[j];
		if (!p->cell.input_forget)
			activate_row(h, &act[0], p->cell.clip, f);
		activate_row(h, &act[1], p->cell.clip, g);
		scale_row(h, f, c);
		add_product_row(h, i, g, c);
		if (peep)
			add_product_row(h, peep + h, c, o);
		activate_row(h, &act[0], p->cell.clip, o);
		copy_row(h, c, hr);
		activate_row(h, &act[2], p->cell.clip, hr);
		scale_row(h, o, hr);
		recurrent_store(p, x, &at, hr, i, c);
	}
}

FORM void gru_step(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_tensors *x, int64_t s)
{
	const int64_t h = p->steps.hidden, stride = recurrent_stride(p);
	const struct activation *const act = k->act;
	real *const state = x->h + k->state;
	recurrent_gather(p, k, x, p->cell.reset_after, s);
	if (p->cell.reset_after) {
		recurrent_product(k, 3 * h, h, state, stride, 0, k->u, 3 * h, false);
	} else {
		recurrent_product(k, 2 * h, h, state, stride, 0, k->z, 3 * h, false);
		for (int64_t r = 0; r < k->m; r++) {
			real *const z = k->z + r * 3 * h;
			activate_row(2 * h, &act[0], p->cell.clip, z);
			product_row(h, z + h, state + r * stride, k->u + r * h);
		}
		recurrent_product(k, h, h, k->u, h, k->second, k->z + 2 * h, 3 * h, false);
	}
	for (int64_t r = 0; r < k->m; r++) {
		const struct recurrent_sample at = recurrent_sample(p, k, x->length, s, r);
		real *const z = k->z + r * 3 * h, *const a = z + 2 * h;
		real *const hr = state + r * stride;
		const real *const u = k->u + r * 3 * h;
		if (!recurrent_goes_on(p, x, &at))
			continue;
		if (p->cell.reset_after) {
			add_row(2 * h, u, z);
			activate_row(2 * h, &act[0], p->cell.clip, z);
			add_product_row(h, z + h, u + 2 * h, a);
		}
		activate_row(h, &act[1], p->cell.clip, a);
		for (int64_t i = 0; i < h; i++)
			hr[i] = (1 - z[i]) * a[i] + z[i] * hr[i];
		recurrent_store(p, x, &at, hr, z, u + 2 * h);
	}
}

FORM void rnn_step(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_tensors *x, int64_t s)
{
	const int64_t h = p->steps.hidden, stride = recurrent_stride(p);
	recurrent_gather(p, k, x, false, s);
	recurrent_product(k, h, h, x->h + k->state, stride, 0, k->z, h, false);
	for (int64_t r = 0; r < k->m; r++) {
		const struct recurrent_sample at = recurrent_sample(p, k, x->length, s, r);
		real *const z = k->z + r * h, *const hr = x->h + k->state + r * stride;
		if (!recurrent_goes_on(p, x, &at))
			continue;
		activate_row(h, &k->act[0], p->cell.clip, z);
		copy_row(h, z, hr);
		recurrent_store(p, x, &at, hr, z, z);
	}
}

/* A turn is a block of a direction. c is NULL but for LSTM. */
typedef void recurrent_step(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_tensors *x, int64_t s);
FORM void recurrent_walk(const struct steps *steps, const struct recurrent_cell *cell,
	const struct activation *act, const struct recurrent_blocks *by, recurrent_step step,
	real *y, real *h, real *c, real *gates, real *aux, const real *xw, const real *bias,
	const int64_t *length, const real *h0, const real *c0, const real *peephole,
	const real *weights, real *scratch, int64_t from, int64_t to)
{
	const struct recurrent net = {*steps, *cell, act}, *const p = &net;
	const struct recurrent_tensors x = {
		y, h, c, gates, aux, xw, bias, length, h0, c0, peephole};
	for (int64_t turn = from; turn < to; turn++) {
		const struct recurrent_block k = recurrent_block(p, by, weights, scratch, turn);
		recurrent_begin(p, &k, h, h0);
		if (c)
			recurrent_begin(p, &k, c, c0);
		for (int64_t s = 0; s < p->steps.steps; s++)
			step(p, &k, &x, s);
	}
}

#endif
