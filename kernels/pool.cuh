/* SPDX-License-Identifier: MIT-0 */
/* Pools on a GPU: a thread makes one element, of the output or of the gradient, whose neighbours in
 * memory are made by its neighbours. A gradient is gathered from the windows that see its place, in
 * their order: nothing is added to what others write.
 *
 * The template parameter S is the node's shape, as ops/pool/pool_cuda.c fills it in. Tensors are
 * [planes, three axes, step]: with channels last, `step` of them stand behind the axes, else 1. */
#ifndef STINT_KERNELS_POOL_CUH
#define STINT_KERNELS_POOL_CUH

#include "elements.cuh"

/* S's numbers, most of which are for 32 bits. */
template <class S> struct pool_window {
	enum : int {
		kernel0 = S::kernel0,
		kernel1 = S::kernel1,
		kernel2 = S::kernel2,
		stride0 = S::stride0,
		stride1 = S::stride1,
		stride2 = S::stride2,
		dilation0 = S::dilation0,
		dilation1 = S::dilation1,
		dilation2 = S::dilation2,
		before0 = S::before0,
		before1 = S::before1,
		before2 = S::before2,
		size0 = S::size0,
		size1 = S::size1,
		size2 = S::size2,
		out0 = S::out0,
		out1 = S::out1,
		out2 = S::out2,
		end0 = S::end0,
		end1 = S::end1,
		end2 = S::end2,
		sums = S::sums,
		pad = S::pad
	};
	enum : int64_t {
		step = S::step,
		plane = S::size0 * S::size1 * S::size2,
		out = S::out0 * S::out1 * S::out2
	};
};

/* An element's plane (or image), place, and channel behind the axes. */
struct pool_element {
	int64_t plane, channel;
	int i, j, k;
};

/* Element number `turn` of a tensor of these sizes; U: what holds all numbers, as a division of 32
 * bits is several times as fast. */
template <class U, int64_t N0, int64_t N1, int64_t N2, int64_t STEP>
static __device__ __forceinline__ pool_element pool_split(int64_t turn)
{
	const U channel = (U)turn % (U)STEP, place = (U)turn / (U)STEP;
	const U k = place % (U)N2, rows = place / (U)N2;
	const U j = rows % (U)N1, i = rows / (U)N1 % (U)N0;
	return {(int64_t)(rows / (U)N1 / (U)N0), (int64_t)channel, (int)i, (int)j, (int)k};
}

template <bool BRIEF> struct pool_number {
	typedef int64_t type;
};
template <> struct pool_number<true> {
	typedef uint32_t type;
};

template <class S, bool OUTPUT>
static __device__ __forceinline__ pool_element pool_element_of(int64_t turn)
{
	using U = typename pool_number<S::brief>::type;
	if constexpr (OUTPUT)
		return pool_split<U, S::out0, S::out1, S::out2, S::step>(turn);
	else
		return pool_split<U, S::size0, S::size1, S::size2, S::step>(turn);
}

/* see(i, j, k) of each place of a patch. */
template <int P0, int P1, int P2, class F> static __device__ __forceinline__ void pool_each(F see)
{
	UNROLL
	for (int i = 0; i < P0; i++)
		UNROLL
	for (int j = 0; j < P1; j++)
		UNROLL
	for (int k = 0; k < P2; k++)
		see(i, j, k);
}

/* The place in an image that output (a, b, c) sees under tap (t0, t1, t2); -1: padding. */
template <class W>
static __device__ __forceinline__ int pool_place(int a, int b, int c, int t0, int t1, int t2)
{
	const int i = a * W::stride0 + t0 * W::dilation0 - W::before0;
	const int j = b * W::stride1 + t1 * W::dilation1 - W::before1;
	const int k = c * W::stride2 + t2 * W::dilation2 - W::before2;
	const bool inside = i >= 0 && i < W::size0 && j >= 0 && j < W::size1 && k >= 0 &&
			    k < W::size2;
	return inside ? (i * W::size1 + j) * W::size2 + k : -1;
}

/* see(at) of each place in an image that an output sees, in their order. */
template <class W, class F> static __device__ __forceinline__ void pool_seen(pool_element of, F see)
{
	for (int t0 = 0; t0 < W::kernel0; t0++)
		for (int t1 = 0; t1 < W::kernel1; t1++)
			for (int t2 = 0; t2 < W::kernel2; t2++) {
				const int at = pool_place<W>(of.i, of.j, of.k, t0, t1, t2);
				if (at >= 0)
					see(at);
			}
}

/* The output whose window begins at a place along an axis, padding counted; -1: none does. */
template <int STRIDE, int OUT> static __device__ __forceinline__ int pool_output(int at)
{
	return at >= 0 && at % STRIDE == 0 && at / STRIDE < OUT ? at / STRIDE : -1;
}

/* see(a, b, c, at) of each output (a, b, c), element `at` of its plane, that sees a place, in their
 * order. */
template <class W, class F>
static __device__ __forceinline__ void pool_seers(pool_element of, F see)
{
	for (int t0 = W::kernel0 - 1; t0 >= 0; t0--)
		for (int t1 = W::kernel1 - 1; t1 >= 0; t1--)
			for (int t2 = W::kernel2 - 1; t2 >= 0; t2--) {
				const int a = pool_output<W::stride0, W::out0>(
					of.i + W::before0 - t0 * W::dilation0);
				const int b = pool_output<W::stride1, W::out1>(
					of.j + W::before1 - t1 * W::dilation1);
				const int c = pool_output<W::stride2, W::out2>(
					of.k + W::before2 - t2 * W::dilation2);
				if (a >= 0 && b >= 0 && c >= 0)
					see(a, b, c, (a * W::out1 + b) * W::out2 + c);
			}
}

/* The largest that an output sees; a NaN stays one. */
template <class W, class X>
static __device__ __forceinline__ real pool_most(const X *x, pool_element of)
{
	real most = -INFINITY;
	pool_seen<W>(of, [&](int at) {
		const real v = get_value(x[at * W::step]);
		most = v > most || v != v ? v : most;
	});
	return most;
}

/* The place of the first of the largest that an output sees; -1: it sees none. */
template <class W, class X>
static __device__ __forceinline__ int pool_where(const X *x, pool_element of)
{
	real most = -INFINITY;
	int where = -1;
	pool_seen<W>(of, [&](int at) {
		const real v = get_value(x[at * W::step]);
		if (v > most || v != v || where < 0) {
			most = v;
			where = at;
		}
	});
	return where;
}

/* Of a plane whose first place is number `first`, as ONNX numbers it. */
template <class W>
static __device__ __forceinline__ int64_t pool_index(int where, int64_t first, bool column_major)
{
	const int i = where / W::size2 / W::size1, j = where / W::size2 % W::size1,
		  k = where % W::size2;
	if (where < 0)
		return -1;
	return first + (column_major ? i + (j + (int64_t)k * W::size1) * W::size0 : where);
}

/* y: the largest elements; index: their places. Either may be NULL. */
template <class S, class Y, class X>
static __device__ __forceinline__ void pool_max(Y *y, int64_t *index, const X *x, int64_t turns)
{
	using W = pool_window<S>;
	for (int64_t turn = THREAD; turn < turns; turn += THREADS) {
		const pool_element of = pool_element_of<S, true>(turn);
		const X *const from = x + of.plane * W::plane * W::step + of.channel;
		if (y)
			put_value(y + turn, pool_most<W>(from, of));
		if (index)
			index[turn] = pool_index<W>(
				pool_where<W>(from, of), of.plane * W::plane, S::column_major);
	}
}

/* The outputs along an axis that see a place of [at, at + PATCH): the first, and the one behind the
 * last. */
template <int PATCH, int KERNEL, int STRIDE, int DILATION, int BEFORE, int OUT>
static __device__ __forceinline__ void pool_seers_along(int at, int &first, int &end)
{
	const int reach = at + BEFORE - (KERNEL - 1) * DILATION;
	const int last = (at + PATCH - 1 + BEFORE) / STRIDE;
	first = reach > 0 ? (reach + STRIDE - 1) / STRIDE : 0;
	end = last < OUT ? last + 1 : OUT;
}

/* The places of the first of the largest that output (a, b, c) sees in each of V channels; -1: it
 * sees none. */
template <class W, int V, class X>
static __device__ __forceinline__ void pool_wheres(int (&where)[V], const X *x, pool_element output)
{
	real most[V];
	UNROLL
	for (int v = 0; v < V; v++) {
		most[v] = -INFINITY;
		where[v] = -1;
	}
	pool_seen<W>(output, [&](int at) {
		real seen[V];
		load_values<1, V>(seen, x, at * W::step, INT64_MAX);
		UNROLL
		for (int v = 0; v < V; v++)
			if (seen[v] > most[v] || seen[v] != seen[v] || where[v] < 0) {
				most[v] = seen[v];
				where[v] = at;
			}
	});
}

/* The sum of the dy of those outputs of which x is the first of the largest, in their order. A
 * thread makes a patch of it in V channels: what the outputs that see the patch take is looked for
 * once. */
template <class S, class Z, class X, class Y>
static __device__ __forceinline__ void pool_max_grad(Z *dx, const X *x, const Y *dy, int64_t turns)
{
	using W = pool_window<S>;
	enum : int { V = S::pack, P0 = S::patch0, P1 = S::patch1, P2 = S::patch2 };
	using U = typename pool_number<S::brief>::type;
	for (int64_t turn = THREAD; turn < turns; turn += THREADS) {
		const pool_element of = pool_split<U, (W::size0 + P0 - 1) / P0,
			(W::size1 + P1 - 1) / P1, (W::size2 + P2 - 1) / P2, W::step / V>(turn);
		const int64_t channel = of.channel * V;
		const int i = of.i * P0, j = of.j * P1, k = of.k * P2;
		const X *const seen = x + of.plane * W::plane * W::step + channel;
		const Y *const given = dy + of.plane * W::out * W::step + channel;
		Z *const made = dx + of.plane * W::plane * W::step + channel;
		int a, b, c, end0, end1, end2, from1, from2;
		real sum[P0][P1][P2][V] = {};
		pool_seers_along<P0, W::kernel0, W::stride0, W::dilation0, W::before0, W::out0>(
			i, a, end0);
		pool_seers_along<P1, W::kernel1, W::stride1, W::dilation1, W::before1, W::out1>(
			j, from1, end1);
		pool_seers_along<P2, W::kernel2, W::stride2, W::dilation2, W::before2, W::out2>(
			k, from2, end2);
		for (; a < end0; a++)
			for (b = from1; b < end1; b++)
				for (c = from2; c < end2; c++) {
					const int at = (a * W::out1 + b) * W::out2 + c;
					int where[V];
					real one[V];
					pool_wheres<W, V>(where, seen, {0, 0, a, b, c});
					load_values<1, V>(one, given, at * W::step, INT64_MAX);
					pool_each<P0, P1, P2>([&](int t0, int t1, int t2) {
						const int me = ((i + t0) * W::size1 + j + t1) *
								       W::size2 +
							       k + t2;
						UNROLL
						for (int v = 0; v < V; v++)
							if (where[v] == me)
								sum[t0][t1][t2][v] += one[v];
					});
				}
		pool_each<P0, P1, P2>([&](int t0, int t1, int t2) {
			const int me = ((i + t0) * W::size1 + j + t1) * W::size2 + k + t2;
			if (i + t0 < W::size0 && j + t1 < W::size1 && k + t2 < W::size2)
				store_values<1, V>(made, sum[t0][t1][t2], me * W::step, INT64_MAX);
		});
	}
}

/* The sum of the dy of those outputs whose index says the place, in their order. */
template <class S, class Y, class X>
static __device__ __forceinline__ void pool_gather(
	Y *dx, const int64_t *index, const X *dy, int64_t turns)
{
	using W = pool_window<S>;
	for (int64_t turn = THREAD; turn < turns; turn += THREADS) {
		const pool_element of = pool_element_of<S, false>(turn);
		const int64_t plane = of.plane * W::out * W::step + of.channel;
		const int64_t first = of.plane * W::plane;
		const int64_t me = first + (of.i * W::size1 + of.j) * W::size2 + of.k;
		real sum = 0;
		pool_seers<W>(of, [&](int, int, int, int at) {
			if (index[plane + at] == me)
				sum += get_value(dy[plane + at]);
		});
		put_value(dx + turn, sum);
	}
}

static __device__ __forceinline__ int pool_count_along(
	int first, int step, int kernel, int end, bool pad)
{
	int n = 0;
	for (int t = 0; t < kernel; t++)
		n += (pad || first + t * step >= 0) && first + t * step < end;
	return n > 0 ? n : 1;
}

/* What the sum over a window is divided by: how many elements it sees; with W::pad, padding counts.
 */
template <class W> static __device__ __forceinline__ real pool_count(int a, int b, int c)
{
	if (W::sums)
		return 1;
	const int n0 = pool_count_along(
		a * W::stride0 - W::before0, W::dilation0, W::kernel0, W::end0, W::pad);
	const int n1 = pool_count_along(
		b * W::stride1 - W::before1, W::dilation1, W::kernel1, W::end1, W::pad);
	const int n2 = pool_count_along(
		c * W::stride2 - W::before2, W::dilation2, W::kernel2, W::end2, W::pad);
	return (real)((int64_t)n0 * n1 * n2);
}

/* The mean of what an output sees. */
template <class S, class Y, class X>
static __device__ __forceinline__ void pool_average(Y *y, const X *x, int64_t turns)
{
	using W = pool_window<S>;
	for (int64_t turn = THREAD; turn < turns; turn += THREADS) {
		const pool_element of = pool_element_of<S, true>(turn);
		const X *const from = x + of.plane * W::plane * W::step + of.channel;
		real sum = 0;
		pool_seen<W>(of, [&](int at) { sum += get_value(from[at * W::step]); });
		put_value(y + turn, W::sums ? sum : sum / pool_count<W>(of.i, of.j, of.k));
	}
}

/* The sum of the shares of dy of the outputs that see a place, in their order. */
template <class S, class Y, class X>
static __device__ __forceinline__ void pool_average_grad(Y *dx, const X *dy, int64_t turns)
{
	using W = pool_window<S>;
	for (int64_t turn = THREAD; turn < turns; turn += THREADS) {
		const pool_element of = pool_element_of<S, false>(turn);
		const X *const from = dy + of.plane * W::out * W::step + of.channel;
		real sum = 0;
		pool_seers<W>(of, [&](int a, int b, int c, int at) {
			const real share = get_value(from[at * W::step]);
			sum += W::sums ? share : share / pool_count<W>(a, b, c);
		});
		put_value(dx + turn, sum);
	}
}

#endif
