/* SPDX-License-Identifier: MIT-0 */
/* The gradients of recurrent nets on a GPU (recurrent.cuh): the last step first. dxw has what goes
 * into the product of the step before, the states' gradients wait in their outputs; the launch
 * behind the first step's makes dh. */
#ifndef STINT_KERNELS_RECURRENT_GRAD_CUH
#define STINT_KERNELS_RECURRENT_GRAD_CUH

#include "recurrent.cuh"

/* d times the slope of activation k where its value is y. */
FORM real recurrent_slope(
	const struct recurrent *p, const struct recurrent_unit *u, int k, real y, real d)
{
	const struct activation f = recurrent_activation(p, u, k);
	return slope_clipped(&f, p->cell.clip, y, d);
}

/* What most products read: the gradient of the gates in the step behind. */
struct recurrent_from_gates {
	static __device__ __forceinline__ bool some(
		const struct recurrent *p, const struct recurrent_slopes *, int64_t s)
	{
		return s < p->steps.steps - 1;
	}
	static __device__ __forceinline__ bool none(const struct recurrent_unit *u)
	{
		return u->s + 1 >= u->length;
	}
	static __device__ __forceinline__ const real *row(const struct recurrent *p,
		const struct recurrent_slopes *x, const struct recurrent_unit *u, real *)
	{
		const int64_t after = 2 * u->t - steps_before(&p->steps, u->d, u->t);
		const int64_t width = p->cell.gates * p->steps.hidden;
		return none(u) ? NULL : x->dxw + steps_place(&p->steps, u->d, after, u->b, width);
	}
};

/* The ends of the walk: dh behind the first step, and zeros where a sequence is over; then true.
 * `carry`: what waits in dh is a part of the gradient. */
FORM bool recurrent_grad_ends(const struct recurrent *p, const struct recurrent_slopes *x,
	const struct recurrent_unit *u, real sum, bool carry)
{
	if (u->s < 0) {
		const real dh = carry ? sum + x->dh[u->state] : sum;
		x->dh[u->state] = u->length > 0 ? dh : recurrent_given(x->dyh, u);
		if (x->dc && u->length == 0)
			x->dc[u->state] = recurrent_given(x->dyc, u);
		return true;
	}
	if (!recurrent_over(u))
		return false;
	for (int k = 0; k < p->cell.gates; k++)
		x->dxw[recurrent_gate(p, u, k)] = 0;
	return true;
}

/* dh: from the step behind, or from the last state, and from y. */
FORM real recurrent_dh(
	const struct recurrent_slopes *x, const struct recurrent_unit *u, real sum, bool carry)
{
	real dh = recurrent_last(u) ? recurrent_given(x->dyh, u)
		  : carry           ? sum + x->dh[u->state]
				    : sum;
	if (x->dy)
		dh += x->dy[u->y];
	return dh;
}

/* The state that the unit's step began with. */
FORM real recurrent_state_before(
	const struct recurrent *p, const struct recurrent_slopes *x, const struct recurrent_unit *u)
{
	return u->s > 0 ? x->y[recurrent_before(p, u)] : recurrent_given(x->h0, u);
}

struct lstm_back : recurrent_from_gates {
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_slopes *x, const struct recurrent_unit *u, const real *sum,
		real *)
	{
		const struct steps *const of = &p->steps;
		const int64_t h = of->hidden, t = steps_before(of, u->d, u->t);
		const real *const peep = x->peephole ? x->peephole + u->d * 3 * h + u->j : NULL;
		real g[4], z[4]; /* i, o, f, the candidate: gates, and their gradients */
		if (recurrent_grad_ends(p, x, u, sum[0], false))
			return;
		const real dh = recurrent_dh(x, u, sum[0], false);
		for (int k = 0; k < 4; k++)
			g[k] = x->gates[recurrent_gate(p, u, k)];
		real dc = recurrent_last(u) ? recurrent_given(x->dyc, u) : x->dc[u->state];
		const real before = u->s > 0 ? x->aux[steps_place(of, u->d, t, u->b, h) + u->j]
					     : recurrent_given(x->c0, u);
		const real hc = recurrent_activate(p, u, 2, x->aux[u->row]);
		z[1] = recurrent_slope(p, u, 0, g[1], dh * hc);
		dc += recurrent_slope(p, u, 2, hc, dh * g[1]);
		if (peep)
			dc += peep[h] * z[1];
		z[0] = p->cell.input_forget ? dc * (g[3] - before) : dc * g[3];
		z[2] = p->cell.input_forget ? 0 : recurrent_slope(p, u, 0, g[2], dc * before);
		z[0] = recurrent_slope(p, u, 0, g[0], z[0]);
		z[3] = recurrent_slope(p, u, 1, g[3], dc * g[0]);
		dc *= g[2];
		if (peep)
			dc += peep[0] * z[0];
		if (peep && !p->cell.input_forget)
			dc += peep[2 * h] * z[2];
		for (int k = 0; k < 4; k++)
			x->dxw[recurrent_gate(p, u, k)] = z[k];
		x->dc[u->state] = dc;
	}
};

/* With reset_after: what the product reads has the hidden gate's gradient times r, which dxw has
 * not: it lies in scratch, for this step and the one before. */
FORM real *gru_waiting(
	const struct recurrent *p, const struct recurrent_unit *u, real *scratch, int64_t s)
{
	const int64_t width = 3 * p->steps.hidden;
	const int64_t each = p->steps.directions * p->steps.batch * width;
	return scratch + (s + 2) % 2 * each + (u->d * p->steps.batch + u->b) * width;
}

struct gru_back {
	static __device__ __forceinline__ bool some(
		const struct recurrent *p, const struct recurrent_slopes *, int64_t s)
	{
		return s < p->steps.steps - 1;
	}
	static __device__ __forceinline__ const real *row(const struct recurrent *p,
		const struct recurrent_slopes *, const struct recurrent_unit *u, real *scratch)
	{
		return recurrent_from_gates::none(u) ? NULL : gru_waiting(p, u, scratch, u->s + 1);
	}
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_slopes *x, const struct recurrent_unit *u, const real *sum,
		real *scratch)
	{
		const int64_t h = p->steps.hidden;
		real g[3], z[3]; /* update, reset, hidden: gates, and their gradients */
		if (recurrent_grad_ends(p, x, u, sum[0], true))
			return;
		for (int k = 0; k < 3; k++)
			g[k] = x->gates[recurrent_gate(p, u, k)];
		const real dh = recurrent_dh(x, u, sum[0], true);
		z[2] = recurrent_slope(p, u, 1, g[2], dh * (1 - g[0]));
		z[0] = recurrent_slope(
			p, u, 0, g[0], dh * (recurrent_state_before(p, x, u) - g[2]));
		z[1] = recurrent_slope(p, u, 0, g[1], z[2] * x->aux[u->row]);
		x->dh[u->state] = dh * g[0];
		for (int k = 0; k < 3; k++)
			x->dxw[recurrent_gate(p, u, k)] = z[k];
		real *const to = gru_waiting(p, u, scratch, u->s) + u->j;
		to[0] = z[0];
		to[h] = z[1];
		to[2 * h] = g[1] * z[2];
	}
};

/* Without: the hidden gate's gradient reaches r and h through a product of its own, a second
 * launch. */
struct gru_gates_back : recurrent_from_gates {
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_slopes *x, const struct recurrent_unit *u, const real *sum,
		real *)
	{
		if (recurrent_grad_ends(p, x, u, sum[0], true))
			return;
		const real z = x->gates[recurrent_gate(p, u, 0)];
		const real n = x->gates[recurrent_gate(p, u, 2)];
		const real dh = recurrent_dh(x, u, sum[0], true);
		const real dz = dh * (recurrent_state_before(p, x, u) - n);
		const real dn = dh * (1 - z);
		x->dh[u->state] = dh * z;
		x->dxw[recurrent_gate(p, u, 0)] = recurrent_slope(p, u, 0, z, dz);
		x->dxw[recurrent_gate(p, u, 2)] = recurrent_slope(p, u, 1, n, dn);
	}
};

struct gru_reset_back {
	static __device__ __forceinline__ bool some(
		const struct recurrent *, const struct recurrent_slopes *, int64_t)
	{
		return true;
	}
	static __device__ __forceinline__ const real *row(const struct recurrent *p,
		const struct recurrent_slopes *x, const struct recurrent_unit *u, real *)
	{
		return u->s < 0 || recurrent_over(u) ? NULL : x->dxw + recurrent_gate(p, u, 2);
	}
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_slopes *x, const struct recurrent_unit *u, const real *sum,
		real *)
	{
		if (u->s < 0 || recurrent_over(u))
			return;
		const real r = x->gates[recurrent_gate(p, u, 1)];
		const real dr = sum[0] * recurrent_state_before(p, x, u);
		x->dh[u->state] += sum[0] * r;
		x->dxw[recurrent_gate(p, u, 1)] = recurrent_slope(p, u, 0, r, dr);
	}
};

struct rnn_back : recurrent_from_gates {
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_slopes *x, const struct recurrent_unit *u, const real *sum,
		real *)
	{
		if (recurrent_grad_ends(p, x, u, sum[0], false))
			return;
		const real dh = recurrent_dh(x, u, sum[0], false);
		x->dxw[recurrent_gate(p, u, 0)] = recurrent_slope(p, u, 0, x->gates[u->y], dh);
	}
};

/* Launched once more than there are steps. dc is NULL but for LSTM. */
template <class A, class Step>
static __device__ __forceinline__ void recurrent_backward(recurrent_room<A> &room,
	const struct steps *steps, const struct recurrent_cell *cell, const struct activation *act,
	Step step, const real *r, void *scratch, real *dxw, real *dh, real *dc, const real *gates,
	const real *dy, const real *dyh, const real *dyc, const int64_t *length, const real *aux,
	const real *h0, const real *c0, const real *peephole, const real *y, int64_t turn)
{
	const struct recurrent p = {*steps, *cell, act};
	const struct recurrent_slopes x = {
		dxw, dh, dc, gates, dy, dyh, dyc, length, aux, h0, c0, peephole, y};
	recurrent_tasks<A>(room, &p, step, &x, r, scratch, p.steps.steps - 1 - turn);
}

#endif
