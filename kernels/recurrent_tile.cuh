/* SPDX-License-Identifier: MIT-0 */
/* A tile of the recurrent product on a GPU: A::rows rows, given by pointers (NULL: a row of zeros),
 * times A::cols columns of weights. 256 threads: each has 4 x 4 sums over some of the terms, in
 * GROUPS groups of threads, whose sums are added in their order. A::chunk terms at a time lie in
 * shared memory, while the next ones are under way. Weights are A::gates matrices of A::width rows
 * of A::terms terms; column c is row j0 + c % UNITS of matrix c / UNITS. A::across: one matrix of
 * A::terms rows of A::width columns, of which j0 is the first. */
#ifndef STINT_KERNELS_RECURRENT_TILE_CUH
#define STINT_KERNELS_RECURRENT_TILE_CUH

#include "elements.cuh"

template <class A> struct recurrent_tile {
	static constexpr int ROWS = A::rows, COLS = A::cols, CHUNK = A::chunk, UNITS = A::units;
	static constexpr int GATES = A::gates, ACROSS = A::across, PACKED = A::width % 4 == 0;
	static constexpr int SPAN = COLS / 4, TEAM = ROWS / 4 * SPAN, GROUPS = 256 / TEAM;
	static constexpr int DEPTH = CHUNK / GROUPS, STRIDE = CHUNK + 4, WEIGHTS = ROWS * STRIDE;
	static constexpr int STAGED = WEIGHTS + (ACROSS ? CHUNK * COLS : COLS * STRIDE),
			     SUMS = 256 * 16;
	static constexpr int PACKS = (STAGED > SUMS ? STAGED : SUMS) /
				     4; /* packs of shared memory */
	static constexpr int APACKS = ROWS * CHUNK / 1024, BPACKS = COLS * CHUNK / 1024;
};
template <class A> struct recurrent_ahead {
	real a[recurrent_tile<A>::APACKS][4], b[recurrent_tile<A>::BPACKS][4];
};
template <class A>
static __device__ __forceinline__ void recurrent_fetch(
	recurrent_ahead<A> &to, const real *const *row, const real *w, int64_t j0, int64_t k0)
{
	typedef recurrent_tile<A> T;
	UNROLL
	for (int i = 0; i < T::APACKS; i++) {
		const int p = i * 256 + (int)threadIdx.x;
		const real *const x = row[p / (T::CHUNK / 4)];
		load_values<T::PACKED>(
			to.a[i], x, k0 + p % (T::CHUNK / 4) * 4, x ? (int64_t)A::terms : 0);
	}
	UNROLL
	for (int i = 0; i < T::BPACKS; i++) {
		const int p = i * 256 + (int)threadIdx.x;
		if constexpr (T::ACROSS) {
			const int64_t k = k0 + p / (T::COLS / 4);
			load_values<T::PACKED>(to.b[i], w + k * A::width,
				j0 + p % (T::COLS / 4) * 4, k < A::terms ? (int64_t)A::width : 0);
		} else {
			const int c = p / (T::CHUNK / 4), gate = c / T::UNITS;
			const int64_t j = j0 + c % T::UNITS;
			load_values<T::PACKED>(to.b[i], w + (gate * A::width + j) * A::terms,
				k0 + p % (T::CHUNK / 4) * 4,
				gate < T::GATES && j < A::width ? (int64_t)A::terms : 0);
		}
	}
}
template <int V>
static __device__ __forceinline__ void recurrent_put(real *to, const real (&from)[V])
{
	pack<real, V> p;
	UNROLL
	for (int k = 0; k < V; k++)
		p.of[k] = from[k];
	*(pack<real, V> *)to = p;
}
template <class A>
static __device__ __forceinline__ void recurrent_stage(const recurrent_ahead<A> &from, real *room)
{
	typedef recurrent_tile<A> T;
	UNROLL
	for (int i = 0; i < T::APACKS; i++) {
		const int p = i * 256 + (int)threadIdx.x;
		recurrent_put(
			room + p / (T::CHUNK / 4) * T::STRIDE + p % (T::CHUNK / 4) * 4, from.a[i]);
	}
	UNROLL
	for (int i = 0; i < T::BPACKS; i++) {
		const int p = i * 256 + (int)threadIdx.x;
		const int at = T::ACROSS ? p * 4
					 : p / (T::CHUNK / 4) * T::STRIDE + p % (T::CHUNK / 4) * 4;
		recurrent_put(room + T::WEIGHTS + at, from.b[i]);
	}
}
/* The terms of one chunk that are this thread's group's. */
template <class A>
static __device__ __forceinline__ void recurrent_terms(
	real (&sum)[4][4], const real *room, int group, int y, int x)
{
	typedef recurrent_tile<A> T;
	for (int k = group * T::DEPTH; k < (group + 1) * T::DEPTH; k += 4) {
		pack<real, 4> a[4], b[4];
		UNROLL
		for (int m = 0; m < 4; m++) {
			a[m] = *(const pack<real, 4> *)(room + (y + m * (T::ROWS / 4)) * T::STRIDE +
							k);
			b[m] = *(const pack<real, 4> *)(room + T::WEIGHTS +
							(T::ACROSS ? (k + m) * T::COLS + x * 4
								   : (x + m * T::SPAN) * T::STRIDE +
										k));
		}
		UNROLL
		for (int i = 0; i < 4; i++)
			UNROLL
		for (int m = 0; m < 4; m++)
			UNROLL
		for (int n = 0; n < 4; n++)
			sum[m][n] = __fmaf_rn(
				a[m].of[i], T::ACROSS ? b[i].of[n] : b[n].of[i], sum[m][n]);
	}
}
/* The sums, for recurrent_sum behind the next barrier. `terms`: A::terms, or 0 where all rows are
 * zeros. All threads of a block call, with a barrier behind what has used `room` before and what
 * has set `row`. */
template <class A>
static __device__ __forceinline__ void recurrent_product(
	real *room, const real *const *row, const real *w, int64_t j0, int64_t terms)
{
	typedef recurrent_tile<A> T;
	const int group = (int)threadIdx.x / T::TEAM, y = (int)threadIdx.x % T::TEAM / T::SPAN;
	const int x = (int)threadIdx.x % T::SPAN;
	real sum[4][4] = {};
	recurrent_ahead<A> next;
	if (terms > 0)
		recurrent_fetch<A>(next, row, w, j0, 0);
	for (int64_t k0 = 0; k0 < terms; k0 += T::CHUNK) {
		recurrent_stage<A>(next, room);
		__syncthreads();
		if (k0 + T::CHUNK < terms)
			recurrent_fetch<A>(next, row, w, j0, k0 + T::CHUNK);
		recurrent_terms<A>(sum, room, group, y, x);
		__syncthreads();
	}
	UNROLL
	for (int m = 0; m < 4; m++)
		UNROLL
	for (int n = 0; n < 4; n++)
		room[(group * T::ROWS + y + m * (T::ROWS / 4)) * T::COLS +
			(T::ACROSS ? x * 4 + n : x + n * T::SPAN)] = sum[m][n];
}
/* Element (i / UNITS, i % UNITS) of matrix `gate`'s part of the tile. */
template <class A>
static __device__ __forceinline__ real recurrent_sum(const real *room, int i, int gate)
{
	typedef recurrent_tile<A> T;
	const real *at = room + i / T::UNITS * T::COLS + gate * T::UNITS + i % T::UNITS;
	real sum = at[0];
	UNROLL
	for (int group = 1; group < T::GROUPS; group++)
		sum += at[group * T::ROWS * T::COLS];
	return sum;
}

#endif
