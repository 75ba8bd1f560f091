/* SPDX-License-Identifier: MIT-0 */
/* LSTM, GRU and the plain recurrent net on a GPU; recurrent.h has the same by rows.
 *
 * Each step is a launch of its own, which waits for the one before: the tile of the recurrent
 * product that a block makes has all gates of some hidden units for some samples, so that the same
 * block goes on to the gates, the cells and the new state, and the step's weights are spread over
 * the whole device, whose second-level cache keeps them from step to step (a product per step with
 * the pointwise part fused: Appleyard, Kocisky and Blunsom, "Optimizing Performance of Recurrent
 * Neural Networks on GPUs", 2016, 2.1; weights in registers, as in Diamos et al., "Persistent RNNs:
 * Stashing Recurrent Weights On-Chip", 2016, would need blocks that wait for each other). States
 * are read where the step before has left them: in y, in the cells, in dxw.
 *
 * A is the tile (recurrent_tile.cuh), of which A::tasks cover a step: A::row_tiles for the samples
 * times A::unit_tiles for the hidden units of each direction. Weights begin with row A::from of a
 * direction's. */
#ifndef STINT_KERNELS_RECURRENT_CUH
#define STINT_KERNELS_RECURRENT_CUH

#include "recurrent_net.h"
#include "recurrent_tile.cuh"

/* Shared memory of a block. */
template <class A> struct recurrent_room {
	pack<real, 4> packs[recurrent_tile<A>::PACKS];
	const real *row[recurrent_tile<A>::ROWS];
};

/* Hidden unit j of sample b in turn s of a sequence: its step, and where it lies in y, in rows of
 * hidden units, in states and in a direction's biases or peepholes. */
struct recurrent_unit {
	int64_t d, b, j, s, t, length, y, row, state;
};

FORM struct recurrent_unit recurrent_unit_at(const struct recurrent *p, const int64_t *length,
	int64_t d, int64_t b, int64_t j, int64_t s)
{
	const struct steps *const of = &p->steps;
	struct recurrent_unit u = {d, b, j, s};
	u.length = steps_length(of, length, b);
	u.t = s < u.length ? steps_turn(of, d, s, u.length) : s;
	u.y = steps_place_y(of, d, u.t, b) + j;
	u.row = steps_place(of, d, u.t, b, of->hidden) + j;
	u.state = steps_place_state(of, d, b) + j;
	return u;
}

/* Behind the end of the sample's sequence. */
FORM bool recurrent_over(const struct recurrent_unit *u)
{
	return u->s >= u->length;
}
/* In its last step. */
FORM bool recurrent_last(const struct recurrent_unit *u)
{
	return u->s == u->length - 1;
}

/* Where gate k's element of the unit lies, in rows of `gates` times hidden units. */
FORM int64_t recurrent_gate(const struct recurrent *p, const struct recurrent_unit *u, int64_t k)
{
	const int64_t h = p->steps.hidden;
	return (u->row - u->j) * p->cell.gates + k * h + u->j;
}

/* The unit's element of an optional state. */
FORM real recurrent_given(const real *state, const struct recurrent_unit *u)
{
	return state ? state[u->state] : 0;
}

/* Activation k of the unit's direction; which directions have in common is known. */
FORM struct activation recurrent_activation(
	const struct recurrent *p, const struct recurrent_unit *u, int k)
{
	return p->steps.directions == 2 && u->d ? p->act[3 + k] : p->act[k];
}
FORM real recurrent_activate(
	const struct recurrent *p, const struct recurrent_unit *u, int k, real x)
{
	const struct activation f = recurrent_activation(p, u, k);
	return activation_clipped(&f, p->cell.clip, x);
}

/* A block's share of turn s. What Step says of the net: whether the product's rows are other than
 * zeros (`some`), where a sample's is (`row`, NULL: zeros), and what becomes of a unit, given its
 * gates' sums (`unit`). */
template <class A, class Step, class Tensors>
static __device__ __forceinline__ void recurrent_tasks(recurrent_room<A> &room,
	const struct recurrent *p, Step, const Tensors *x, const real *r, void *scratch, int64_t s)
{
	typedef recurrent_tile<A> T;
	const int64_t batch = p->steps.batch, h = p->steps.hidden;
	real *const sums = room.packs[0].of;
	for (int64_t task = blockIdx.x; task < A::tasks; task += gridDim.x) {
		const int64_t j0 = task % A::unit_tiles * T::UNITS;
		const int64_t b0 = task / A::unit_tiles % A::row_tiles * T::ROWS;
		const int64_t d = p->steps.directions == 2 ? task / (A::unit_tiles * A::row_tiles)
							   : 0;
		if (threadIdx.x < T::ROWS) {
			const int64_t b = b0 + threadIdx.x;
			room.row[threadIdx.x] = NULL;
			if (b < batch) {
				const struct recurrent_unit u = recurrent_unit_at(
					p, x->length, d, b, 0, s);
				room.row[threadIdx.x] = Step::row(p, x, &u, (real *)scratch);
			}
		}
		__syncthreads();
		recurrent_product<A>(sums, room.row, r + d * p->cell.gates * h * h + A::from * h,
			j0, Step::some(p, x, s) ? (int64_t)A::terms : 0);
		__syncthreads();
		for (int i = (int)threadIdx.x; i < T::ROWS * T::UNITS; i += (int)blockDim.x) {
			const int64_t b = b0 + i / T::UNITS, j = j0 + i % T::UNITS;
			real sum[T::GATES];
			if (b >= batch || j >= h)
				continue;
			UNROLL
			for (int k = 0; k < T::GATES; k++)
				sum[k] = recurrent_sum<A>(sums, i, k);
			const struct recurrent_unit u = recurrent_unit_at(p, x->length, d, b, j, s);
			Step::unit(p, x, &u, sum, (real *)scratch);
		}
		__syncthreads();
	}
}

/* --- Forward --- */

/* Where the state that the unit's step began with lies, which some step has left in y. */
FORM int64_t recurrent_before(const struct recurrent *p, const struct recurrent_unit *u)
{
	return steps_place_y(&p->steps, u->d, steps_before(&p->steps, u->d, u->t), u->b) + u->j;
}

/* What most steps' products read: the state. */
struct recurrent_from_state {
	static __device__ __forceinline__ bool some(
		const struct recurrent *, const struct recurrent_tensors *x, int64_t s)
	{
		return x->h0 || s > 0;
	}
	static __device__ __forceinline__ const real *row(const struct recurrent *p,
		const struct recurrent_tensors *x, const struct recurrent_unit *u, real *)
	{
		if (recurrent_over(u))
			return NULL;
		if (u->s > 0)
			return x->y + recurrent_before(p, u);
		return x->h0 ? x->h0 + u->state : NULL;
	}
};

FORM real recurrent_state(const struct recurrent *p, const struct recurrent_tensors *x,
	const struct recurrent_unit *u)
{
	return u->s > 0 ? x->y[recurrent_before(p, u)] : recurrent_given(x->h0, u);
}

/* The input's part of gate k with its bias, and with the recurrent one (`both`). */
FORM real recurrent_input(const struct recurrent *p, const struct recurrent_tensors *x,
	const struct recurrent_unit *u, int k, bool both)
{
	const int64_t h = p->steps.hidden, width = p->cell.gates * h;
	const real in = x->xw[recurrent_gate(p, u, k)];
	if (!x->bias)
		return in;
	const real *const b = x->bias + u->d * 2 * width + k * h + u->j;
	return both ? in + (b[0] + b[width]) : in + b[0];
}

FORM void recurrent_store_state(
	const struct recurrent_tensors *x, const struct recurrent_unit *u, real h)
{
	x->y[u->y] = h;
	if (recurrent_last(u))
		x->h[u->state] = h;
}

/* Where a sample's sequence is over: zeros, and the state stays; then true. */
FORM bool recurrent_ends(const struct recurrent *p, const struct recurrent_tensors *x,
	const struct recurrent_unit *u)
{
	if (!x->length || !recurrent_over(u))
		return false;
	x->y[u->y] = 0;
	for (int k = 0; k < p->cell.gates && x->gates; k++)
		x->gates[recurrent_gate(p, u, k)] = 0;
	if (x->aux)
		x->aux[u->row] = 0;
	if (u->s == 0)
		x->h[u->state] = recurrent_given(x->h0, u);
	if (u->s == 0 && x->c)
		x->c[u->state] = recurrent_given(x->c0, u);
	return true;
}

FORM void recurrent_store_gates(const struct recurrent *p, const struct recurrent_tensors *x,
	const struct recurrent_unit *u, int first, int n, const real *value)
{
	for (int k = 0; k < n && x->gates; k++)
		x->gates[recurrent_gate(p, u, first + k)] = value[k];
}

struct lstm_step : recurrent_from_state {
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_tensors *x, const struct recurrent_unit *u, const real *sum,
		real *)
	{
		const int64_t h = p->steps.hidden;
		const real *const peep = x->peephole ? x->peephole + u->d * 3 * h + u->j : NULL;
		real z[4]; /* i, o, f, the candidate */
		if (recurrent_ends(p, x, u))
			return;
		for (int k = 0; k < 4; k++)
			z[k] = sum[k] + recurrent_input(p, x, u, k, true);
		real c = u->s > 0 ? x->c[u->state] : recurrent_given(x->c0, u);
		if (peep)
			z[0] += peep[0] * c;
		z[0] = recurrent_activate(p, u, 0, z[0]);
		if (peep && !p->cell.input_forget)
			z[2] += peep[2 * h] * c;
		z[2] = p->cell.input_forget ? 1 - z[0] : recurrent_activate(p, u, 0, z[2]);
		z[3] = recurrent_activate(p, u, 1, z[3]);
		c = z[2] * c + z[0] * z[3];
		if (peep)
			z[1] += peep[h] * c;
		z[1] = recurrent_activate(p, u, 0, z[1]);
		recurrent_store_gates(p, x, u, 0, 4, z);
		if (x->aux)
			x->aux[u->row] = c;
		x->c[u->state] = c;
		recurrent_store_state(x, u, recurrent_activate(p, u, 2, c) * z[1]);
	}
};

/* With reset_after: one product for all gates. */
struct gru_step : recurrent_from_state {
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_tensors *x, const struct recurrent_unit *u, const real *sum,
		real *)
	{
		const int64_t h = p->steps.hidden, width = 3 * h;
		const real *const b = x->bias ? x->bias + (u->d * 2 + 1) * width + u->j : NULL;
		real z[3], part[3]; /* update, reset, hidden; their recurrent parts */
		if (recurrent_ends(p, x, u))
			return;
		for (int k = 0; k < 3; k++)
			part[k] = b ? sum[k] + b[k * h] : sum[k];
		for (int k = 0; k < 2; k++)
			z[k] = recurrent_activate(
				p, u, 0, part[k] + recurrent_input(p, x, u, k, false));
		z[2] = recurrent_input(p, x, u, 2, false) + z[1] * part[2];
		z[2] = recurrent_activate(p, u, 1, z[2]);
		recurrent_store_gates(p, x, u, 0, 3, z);
		if (x->aux)
			x->aux[u->row] = part[2];
		recurrent_store_state(x, u, (1 - z[0]) * z[2] + z[0] * recurrent_state(p, x, u));
	}
};

/* Without: the hidden gate's product has r h for its rows: a launch for the other gates, one for
 * it. They meet in scratch: r h, then (where gates are not kept) the update gate. */
FORM int64_t gru_own(const struct recurrent *p, const struct recurrent_unit *u)
{
	return (u->d * p->steps.batch + u->b) * p->steps.hidden + u->j;
}
FORM real *gru_update(const struct recurrent *p, const struct recurrent_tensors *x,
	const struct recurrent_unit *u, real *scratch)
{
	const int64_t all = p->steps.directions * p->steps.batch * p->steps.hidden;
	return x->gates ? x->gates + recurrent_gate(p, u, 0) : scratch + all + gru_own(p, u);
}

struct gru_gates : recurrent_from_state {
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_tensors *x, const struct recurrent_unit *u, const real *sum,
		real *scratch)
	{
		real z[2]; /* update, reset */
		if (recurrent_over(u))
			return;
		for (int k = 0; k < 2; k++)
			z[k] = recurrent_activate(
				p, u, 0, sum[k] + recurrent_input(p, x, u, k, true));
		scratch[gru_own(p, u)] = z[1] * recurrent_state(p, x, u);
		*gru_update(p, x, u, scratch) = z[0];
		recurrent_store_gates(p, x, u, 1, 1, z + 1);
	}
};

struct gru_hidden {
	static __device__ __forceinline__ bool some(
		const struct recurrent *, const struct recurrent_tensors *, int64_t)
	{
		return true;
	}
	static __device__ __forceinline__ const real *row(const struct recurrent *p,
		const struct recurrent_tensors *, const struct recurrent_unit *u, real *scratch)
	{
		return recurrent_over(u) ? NULL : scratch + gru_own(p, u);
	}
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_tensors *x, const struct recurrent_unit *u, const real *sum,
		real *scratch)
	{
		if (recurrent_ends(p, x, u))
			return;
		const real n = recurrent_activate(
			p, u, 1, sum[0] + recurrent_input(p, x, u, 2, true));
		const real z = *gru_update(p, x, u, scratch);
		const real h = recurrent_state(p, x, u);
		recurrent_store_gates(p, x, u, 2, 1, &n);
		recurrent_store_state(x, u, (1 - z) * n + z * h);
	}
};

struct rnn_step : recurrent_from_state {
	static __device__ __forceinline__ void unit(const struct recurrent *p,
		const struct recurrent_tensors *x, const struct recurrent_unit *u, const real *sum,
		real *)
	{
		if (recurrent_ends(p, x, u))
			return;
		recurrent_store_state(x, u,
			recurrent_activate(p, u, 0, sum[0] + recurrent_input(p, x, u, 0, true)));
	}
};

/* Launched for each step. */
template <class A, class Step>
static __device__ __forceinline__ void recurrent_forward(recurrent_room<A> &room,
	const struct steps *steps, const struct recurrent_cell *cell, const struct activation *act,
	Step step, const real *r, void *scratch, real *y, real *h, real *c, real *gates, real *aux,
	const real *xw, const real *bias, const int64_t *length, const real *h0, const real *c0,
	const real *peephole, int64_t turn)
{
	const struct recurrent p = {*steps, *cell, act};
	const struct recurrent_tensors x = {
		y, h, c, gates, aux, xw, bias, length, h0, c0, peephole};
	recurrent_tasks<A>(room, &p, step, &x, r, scratch, turn);
}

#endif
