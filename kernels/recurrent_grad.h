/* SPDX-License-Identifier: MIT-0 */
/* The gradients of recurrent nets (recurrent.h): from the last step on, z becomes the gradient of
 * what goes into the gates. */
#ifndef STINT_KERNELS_RECURRENT_GRAD_H
#define STINT_KERNELS_RECURRENT_GRAD_H

#include "recurrent.h"

/* Where a sample's sequence is over there is no gradient, and the state's waits: false. */
FORM bool recurrent_goes_back(const struct recurrent *p, const struct recurrent_slopes *x,
	const struct recurrent_sample *at, real *z)
{
	const int64_t width = p->cell.gates * p->steps.hidden;
	if (!at->over)
		return true;
	zero_row(width, z);
	zero_row(width, x->dxw + at->gates);
	return false;
}

/* Where the state, or the cell, lies that turn s began with: in y, or in the cells; `none` is a row
 * of zeros. */
FORM const real *recurrent_before(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_sample *at, const real *history, bool cells, const real *initial,
	int64_t s, int64_t r, const real *none)
{
	const struct steps *const of = &p->steps;
	const int64_t t = steps_before(of, k->d, at->t), b = k->b0 + r;
	if (s > 0)
		return history + (cells ? steps_place(of, k->d, t, b, of->hidden)
					: steps_place_y(of, k->d, t, b));
	return initial ? initial + k->state + r * recurrent_stride(p) : none;
}

/* z times the slopes of activation a at the gates' values g. */
FORM void recurrent_slope(const struct recurrent *p, const struct recurrent_block *k, int a,
	int64_t n, const real *g, real *z)
{
	slope_row(n, &k->act[a], p->cell.clip, g, z);
}

FORM void lstm_back(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_slopes *x, int64_t s)
{
	const int64_t h = p->steps.hidden, stride = recurrent_stride(p);
	const real *const peep = x->peephole ? x->peephole + k->d * 3 * h : NULL; /* i, o, f */
	real *const hc = k->spare + h, *const v = k->spare + 2 * h;
	for (int64_t r = 0; r < k->m; r++) {
		const struct recurrent_sample at = recurrent_sample(p, k, x->length, s, r);
		real *const zi = k->z + r * 4 * h, *const zo = zi + h, *const zf = zo + h;
		real *const zg = zf + h;
		real *const dh = x->dh + k->state + r * stride, *const dc = x->dc + k->state +
									    r * stride;
		if (!recurrent_goes_back(p, x, &at, zi))
			continue;
		const real *const i = x->gates + at.gates, *const o = i + h, *const f = o + h;
		const real *const g = f + h;
		const real *const before = recurrent_before(
			p, k, &at, x->aux, true, x->c0, s, r, k->spare);
		if (x->dy)
			add_row(h, x->dy + at.y, dh);
		copy_row(h, x->aux + at.row, hc);
		activate_row(h, &k->act[2], p->cell.clip, hc);
		product_row(h, dh, hc, zo);
		recurrent_slope(p, k, 0, h, o, zo);
		product_row(h, dh, o, v);
		recurrent_slope(p, k, 2, h, hc, v);
		add_row(h, v, dc);
		if (peep)
			add_product_row(h, peep + h, zo, dc);
		if (p->cell.input_forget) {
			for (int64_t j = 0; j < h; j++)
				zi[j] = dc[j] * (g[j] - before[j]);
			zero_row(h, zf);
		} else {
			product_row(h, dc, g, zi);
			product_row(h, dc, before, zf);
			recurrent_slope(p, k, 0, h, f, zf);
		}
		recurrent_slope(p, k, 0, h, i, zi);
		product_row(h, dc, i, zg);
		recurrent_slope(p, k, 1, h, g, zg);
		scale_row(h, f, dc);
		if (peep)
			add_product_row(h, peep, zi, dc);
		if (peep && !p->cell.input_forget)
			add_product_row(h, peep + 2 * h, zf, dc);
		zero_row(h, dh);
		copy_row(4 * h, zi, x->dxw + at.gates);
	}
	recurrent_product(k, h, 4 * h, k->z, 4 * h, 0, x->dh + k->state, stride, false);
}

/* Without reset_after the hidden gate's gradient reaches r and h through a product: u. */
FORM void gru_back_split(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_slopes *x, int64_t s)
{
	const int64_t h = p->steps.hidden, stride = recurrent_stride(p);
	recurrent_product(k, h, h, k->z + 2 * h, 3 * h, k->second, k->u, h, true);
	for (int64_t r = 0; r < k->m; r++) {
		const struct recurrent_sample at = recurrent_sample(p, k, x->length, s, r);
		real *const z = k->z + r * 3 * h;
		if (at.over)
			continue;
		const real *const g = x->gates + at.gates, *const u = k->u + r * h;
		const real *const before = recurrent_before(
			p, k, &at, x->y, false, x->h0, s, r, k->spare);
		product_row(h, u, before, z + h);
		recurrent_slope(p, k, 0, h, g + h, z + h);
		add_product_row(h, u, g + h, x->dh + k->state + r * stride);
		copy_row(3 * h, z, x->dxw + at.gates);
	}
	recurrent_product(k, h, 2 * h, k->z, 3 * h, 0, x->dh + k->state, stride, false);
}

FORM void gru_back(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_slopes *x, int64_t s)
{
	const int64_t h = p->steps.hidden, stride = recurrent_stride(p);
	real *const reset = k->spare + h;
	for (int64_t r = 0; r < k->m; r++) {
		const struct recurrent_sample at = recurrent_sample(p, k, x->length, s, r);
		real *const z = k->z + r * 3 * h, *const za = z + 2 * h;
		real *const dh = x->dh + k->state + r * stride;
		if (!recurrent_goes_back(p, x, &at, z))
			continue;
		const real *const g = x->gates + at.gates, *const a = g + 2 * h;
		const real *const before = recurrent_before(
			p, k, &at, x->y, false, x->h0, s, r, k->spare);
		if (x->dy)
			add_row(h, x->dy + at.y, dh);
		for (int64_t i = 0; i < h; i++)
			z[i] = dh[i] * (before[i] - a[i]);
		for (int64_t i = 0; i < h; i++)
			za[i] = dh[i] * (1 - g[i]);
		recurrent_slope(p, k, 1, h, a, za);
		if (p->cell.reset_after) {
			product_row(h, za, x->aux + at.row, z + h);
			recurrent_slope(p, k, 0, 2 * h, g, z);
			scale_row(h, g, dh);
			/* the gates may lie where dXW goes: r is read before; it stands between the
			 * product and the hidden gate */
			copy_row(h, g + h, reset);
			copy_row(3 * h, z, x->dxw + at.gates);
			scale_row(h, reset, za);
		} else {
			recurrent_slope(p, k, 0, h, g, z);
			scale_row(h, g, dh);
		}
	}
	if (p->cell.reset_after)
		recurrent_product(k, h, 3 * h, k->z, 3 * h, 0, x->dh + k->state, stride, false);
	else
		gru_back_split(p, k, x, s);
}

FORM void rnn_back(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_slopes *x, int64_t s)
{
	const int64_t h = p->steps.hidden, stride = recurrent_stride(p);
	for (int64_t r = 0; r < k->m; r++) {
		const struct recurrent_sample at = recurrent_sample(p, k, x->length, s, r);
		real *const z = k->z + r * h, *const dh = x->dh + k->state + r * stride;
		if (!recurrent_goes_back(p, x, &at, z))
			continue;
		if (x->dy)
			add_row(h, x->dy + at.y, dh);
		copy_row(h, dh, z);
		recurrent_slope(p, k, 0, h, x->gates + at.y, z);
		zero_row(h, dh);
		copy_row(h, z, x->dxw + at.gates);
	}
	recurrent_product(k, h, h, k->z, h, 0, x->dh + k->state, stride, false);
}

/* A turn is a block of a direction. dc is NULL but for LSTM. */
typedef void recurrent_step_back(const struct recurrent *p, const struct recurrent_block *k,
	const struct recurrent_slopes *x, int64_t s);
FORM void recurrent_walk_back(const struct steps *steps, const struct recurrent_cell *cell,
	const struct activation *act, const struct recurrent_blocks *by, recurrent_step_back step,
	real *dxw, real *dh, real *dc, const real *gates, const real *dy, const real *dyh,
	const real *dyc, const int64_t *length, const real *aux, const real *h0, const real *c0,
	const real *peephole, const real *y, const real *weights, real *scratch, int64_t from,
	int64_t to)
{
	const struct recurrent net = {*steps, *cell, act}, *const p = &net;
	const struct recurrent_slopes x = {
		dxw, dh, dc, gates, dy, dyh, dyc, length, aux, h0, c0, peephole, y};
	for (int64_t turn = from; turn < to; turn++) {
		const struct recurrent_block k = recurrent_block(p, by, weights, scratch, turn);
		recurrent_begin(p, &k, dh, dyh);
		if (dc)
			recurrent_begin(p, &k, dc, dyc);
		zero_row(p->steps.hidden, k.spare);
		for (int64_t s = p->steps.steps - 1; s >= 0; s--)
			step(p, &k, &x, s);
	}
}

#endif
