/* SPDX-License-Identifier: MIT-0 */
/* Cross-entropy (crossentropy.h) and its gradient on a GPU, by blocks of 256 threads. A row of
 * scores is a warp's, or where there are many classes a block's, which read it in packs wherever it
 * begins: once for the loss, and once for the gradient, each of whose elements needs its own score,
 * the row's log-sum-exp and its label, so that it may go over the scores. Where classes are no
 * neighbours, threads side by side have columns side by side.
 *
 * Where both are wanted, of labels, one kernel reads a row once, keeps it in registers, and writes
 * the gradient.
 *
 * N threads have a row, in packs of V elements; GROUPS threads a column. `aim`: probabilities, or
 * NULL where labels are aimed at. */
#ifndef STINT_KERNELS_CROSSENTROPY_CUH
#define STINT_KERNELS_CROSSENTROPY_CUH

#include "entropy.h"
#include "exponentials.cuh"
#include "lanes.h"
#include "math_double.h"
#include "primitives.cuh"

/* Of a row's threads, or of a column's. */
struct wide_row_parts {
	double part[BLOCK_WARPS];
};
struct wide_column_parts {
	double part[256];
};

/* The classes of a row of N threads, neighbours, or of a column of GROUPS, `inner` apart: those
 * that a thread has, where they are, and the sum over the threads. */
template <int N> struct row_classes {
	int64_t at;
	__device__ __forceinline__ int64_t first() const
	{
		return row_thread<N>();
	}
	__device__ __forceinline__ int64_t end(const targets *t) const
	{
		return t->classes;
	}
	__device__ __forceinline__ int64_t step() const
	{
		return N;
	}
	__device__ __forceinline__ int64_t place(int64_t c, const targets *) const
	{
		return at + c;
	}
	template <class T> __device__ __forceinline__ T sum(T x, T (&part)[BLOCK_WARPS]) const
	{
		return row_sum<N>(x, part);
	}
};
template <int GROUPS> struct column_classes {
	int64_t at;
	bool inside;
	__device__ __forceinline__ int64_t first() const
	{
		return column_group<GROUPS>();
	}
	__device__ __forceinline__ int64_t end(const targets *t) const
	{
		return inside ? t->classes : 0;
	}
	__device__ __forceinline__ int64_t step() const
	{
		return GROUPS;
	}
	__device__ __forceinline__ int64_t place(int64_t c, const targets *t) const
	{
		return at + c * t->inner;
	}
	template <class T> __device__ __forceinline__ T sum(T x, T (&part)[256]) const
	{
		return column_sum<GROUPS>(x, part);
	}
};

/* --- The loss --- */

/* Of row r, whose exponentials are s; all of its threads call, the first writes. */
template <class C, class X, class P>
static __device__ __forceinline__ void entropy_row_loss(C classes, exponentials s, double *loss,
	real *lse, const X *x, const real *aim, const targets *t, int64_t r, P &part)
{
	double all = 0, other = 0; /* the mass that is aimed at, or the weights' sum */
	const bool some = aim || is_smooth(t);
	for (int64_t c = classes.first(); some && c < classes.end(t); c += classes.step()) {
		const int64_t i = classes.place(c, t);
		const real score = get_value(x[i]);
		if (aim) {
			const double part_of = (double)entropy_aim(t, c, aim[i]);
			other += part_of;
			all += part_of * (double)score;
		} else if (t->weight) {
			other += (double)t->weight[c];
			all += (double)(t->weight[c] * score);
		} else {
			all += (double)score;
		}
	}
	if (some)
		all = classes.sum(all, part);
	if (aim || (some && t->weight))
		other = classes.sum(other, part);
	if (classes.first() != 0 || classes.end(t) == 0)
		return;
	const double sum = (double)s.most + log_double((double)s.sum);
	if (lse)
		lse[r] = (real)sum;
	loss[r] = 0;
	if (!row_counts(t, r, valid_rows(t)))
		return;
	if (aim)
		loss[r] = sum * other - all;
	else
		loss[r] = entropy_of_label(
			t, r, sum, (double)get_value(x[classes.place(t->label[r], t)]), all, other);
}

template <int N, int V, class X>
static __device__ __forceinline__ void entropy_rows(row_parts &shared, wide_row_parts &wide,
	double *loss, real *lse, const X *x, const real *aim, const targets *t)
{
	for (int64_t r = THREAD / N; r < t->rows; r += THREADS / N) {
		const int64_t from = r * t->classes, end = from + t->classes;
		const exponentials s = row_exponentials<N, V>(x, from, end, shared.part);
		entropy_row_loss(row_classes<N>{from}, s, loss, lse, x, aim, t, r, wide.part);
	}
}

template <int GROUPS, class X>
static __device__ __forceinline__ void entropy_columns(column_parts &shared,
	wide_column_parts &wide, double *loss, real *lse, const X *x, const real *aim,
	const targets *t)
{
	for (int64_t tile = blockIdx.x; tile < column_tiles<GROUPS>(t->rows); tile += gridDim.x) {
		const int64_t column = column_number<GROUPS>(tile);
		const bool inside = column < t->rows;
		const int64_t at = inside ? column_start(column, t->classes, t->inner) : 0;
		const exponentials s = column_exponentials<GROUPS>(
			x + at, t->inner, t->classes, inside, shared.part);
		entropy_row_loss(column_classes<GROUPS>{at, inside}, s, loss, lse, x, aim, t,
			column, wide.part);
	}
}

/* --- The gradient --- */

static __device__ __forceinline__ aimed_parts aims_of(const targets *t)
{
	double heavy = 0;
	if (t->weight && is_smooth(t))
		heavy = sum_wide(t->weight, t->classes);
	return entropy_aims(t, heavy);
}

/* What the log-sum-exp's own gradient adds, where a class of row r has the probability p. */
static __device__ __forceinline__ real with_lse(real slope, const real *dlse, int64_t r, real p)
{
	return dlse ? slope + p * dlse[r] : slope;
}

template <int N, int V, class Y, class X>
static __device__ __forceinline__ void entropy_grad_rows(Y *dx, const X *x, const real *dloss,
	const real *lse, const real *dlse, const targets *t, reduction how, const double *counted)
{
	const loss_factor scale = loss_scale(dloss, t, how, counted);
	const struct aimed_parts a = aims_of(t);
	const int64_t valid = valid_rows(t);
	for (int64_t r = THREAD / N; r < t->rows; r += THREADS / N) {
		const int64_t from = r * t->classes, end = from + t->classes;
		const int counts = row_counts(t, r, valid);
		const real k = counts ? row_scale(scale, r) : 0, from_lse = lse[r];
		struct aimed_row row = entropy_row(t, a, r, counts);
		row.label = counts ? row.label : -1;
		for (int64_t i = row_start<N, V>(from); i < end; i += N * V) {
			real v[V];
			load_span(v, x, i, from, end, 0);
			for (int j = 0; j < V; j++) {
				const real p = row_exp(v[j] - from_lse);
				const real slope = entropy_slope(t, a, row, i + j - from, p);
				v[j] = with_lse(k * slope, dlse, r, p);
			}
			store_span(dx, v, i, from, end);
		}
	}
}

/* --- The loss and its gradient in one reading --- */

/* Compilers take a number that was made before over one that is made again, and would hold what
 * they made of each score, for which there are no registers. So a row's scores are read again
 * through a 0 that they cannot know. */
struct score_parts {
	real part[BLOCK_WARPS];
	unsigned zero;
};

/* A row's scores as a thread has them: its K packs in registers, as words, or, of rows that are too
 * long for that (K is 0), in memory, to be read again. WHOLE: rows are multiples of V. */
template <int N, int V, int K, int WHOLE, class X> struct row_scores {
	enum { WORDS = (V * sizeof(X) + 3) / 4 };
	const X *x;
	int64_t from, end, first; /* its first pack begins there */
	unsigned kept[K ? K : 1][WORDS];

	__device__ __forceinline__ row_scores(const X *of, int64_t begin, int64_t behind)
	    : x(of), from(begin), end(behind), first(row_start<N, V>(begin))
	{
		UNROLL
		for (int k = 0; k < K; k++) {
			const int64_t i = first + k * (N * V);
			const pack<X, V> p = may_reach_out(k)
						     ? stored_span<V>(x, i, from, end, -INFINITY)
						     : *(const pack<X, V> *)(x + i);
			memcpy(kept[k], &p, sizeof p);
		}
	}
	/* Of some thread, pack k of K may be outside of the row, or reach out of it. */
	static __device__ constexpr bool may_reach_out(int k)
	{
		return WHOLE ? k == K - 1 : k == 0 || k >= K - 2;
	}
	/* Calls f(v, i, edge) with the numbers of each pack, which begins at element i; outside of
	 * the row, where an edge may reach, they are -INFINITY. */
	template <class F> __device__ __forceinline__ void each(unsigned zero, F f) const
	{
		real v[V];
		if constexpr (K > 0) {
			UNROLL
			for (int k = 0; k < K; k++) {
				const int64_t i = first + k * (N * V);
				unsigned word[WORDS];
				for (int j = 0; j < WORDS; j++)
					word[j] = kept[k][j] ^ zero;
				values_of_words<X>(v, word);
				f(v, i, may_reach_out(k));
			}
		} else {
			for (int64_t i = first; i < end; i += N * V) {
				load_span(v, x, i, from, end, -INFINITY);
				f(v, i, true);
			}
		}
	}
	/* Whether element i is in one of this thread's packs. */
	__device__ __forceinline__ bool has(int64_t i) const
	{
		return (i / V - first / V) % N == 0 && i >= first;
	}
	/* e^(y - shift); of scores in 16 bits as near as it is worth. (One multiply-add of y and of
	 * shift by the same factor would overflow where both are a mask's largest number.) */
	static __device__ __forceinline__ real power(real y, real shift)
	{
		if constexpr (sizeof(X) < sizeof(real))
			return exp2_near((y - shift) * 1.44269504f);
		else
			return row_exp(y - shift);
	}
	__device__ __forceinline__ exponentials sums(score_parts &shared) const
	{
		real most = -INFINITY, sum = 0;
		if constexpr (K == 0)
			return row_exponentials<N, V>(x, from, end, shared.part);
		each(0, [&](const real(&v)[V], int64_t, bool) {
			for (int j = 0; j < V; j++)
				most = fmaxf(v[j], most);
		});
		most = row_max<N>(most, shared.part);
		const real shift = exponential_shift(most);
		each(shared.zero, [&](const real(&v)[V], int64_t, bool) {
			for (int j = 0; j < V; j++)
				sum += power(v[j], shift);
		});
		return {most, row_sum<N>(sum, shared.part)};
	}
};

/* Of labels without weights. dx may be x: a row's threads have read what others of them write when
 * they begin to. */
template <int N, int V, int K, int WHOLE, class Y, class X>
static __device__ __forceinline__ void entropy_both_rows(score_parts &shared, wide_row_parts &wide,
	double *loss, Y *dx, const X *x, const real *dloss, const targets *t, reduction how,
	const double *counted)
{
	const loss_factor scale = loss_scale(dloss, t, how, counted);
	const struct aimed_parts a = entropy_aims(t, 0);
	const int64_t valid = valid_rows(t);
	shared.zero = 0;
	__syncthreads();
	for (int64_t r = THREAD / N; r < t->rows; r += THREADS / N) {
		const int64_t from = r * t->classes, end = from + t->classes;
		const row_scores<N, V, K, WHOLE, X> scores(x, from, end);
		const int counts = row_counts(t, r, valid);
		const int64_t label = counts ? from + t->label[r] : -1;
		const real hit = counts ? get_value(x[label]) : 0;
		double all = 0;
		for (int64_t i = from + row_thread<N>(); is_smooth(t) && i < end; i += N)
			all += (double)get_value(x[i]);
		if (is_smooth(t))
			all = row_sum<N>(all, wide.part);
		const exponentials s = scores.sums(shared);
		if (row_thread<N>() == 0) {
			const double lse = (double)s.most + log_double((double)s.sum);
			loss[r] = counts ? entropy_of_label(t, r, lse, (double)hit, all, 0) : 0;
		}
		__syncwarp();
		const real k = counts ? row_scale(scale, r) : 0, each = k / s.sum;
		const real shift = exponential_shift(s.most), low = k * a.low;
		scores.each(shared.zero, [&](real(&v)[V], int64_t i, bool edge) {
			for (int j = 0; j < V; j++)
				v[j] = __fmaf_rn(scores.power(v[j], shift), each, -low);
			if (edge)
				store_span(dx, v, i, from, end);
			else
				store_pack(dx, v, i);
		});
		if (counts && scores.has(label))
			put_value(
				dx + label, __fmaf_rn(scores.power(hit, shift), each, -k * a.high));
	}
}

/* --- The gradient alone: of columns, and of probabilities --- */

/* An element a thread. */
template <class Y, class X>
static __device__ __forceinline__ void entropy_grad_elements(Y *dx, const X *x, const real *dloss,
	const real *lse, const real *dlse, const targets *t, reduction how, const double *counted)
{
	const loss_factor scale = loss_scale(dloss, t, how, counted);
	const struct aimed_parts a = aims_of(t);
	const int64_t valid = valid_rows(t);
	for (int64_t at = THREAD; at < t->rows * t->classes; at += THREADS) {
		const int64_t c = at / t->inner % t->classes;
		const int64_t r = at / t->inner / t->classes * t->inner + at % t->inner;
		const int counts = row_counts(t, r, valid);
		const real k = counts ? row_scale(scale, r) : 0;
		const real p = row_exp(get_value(x[at]) - lse[r]);
		const real slope = entropy_slope(t, a, entropy_row(t, a, r, counts), c, p);
		put_value(dx + at, with_lse(k * slope, dlse, r, p));
	}
}

/* Of probabilities: the sum `mass` of those that are aimed at, then each element. */
template <class C, class Y, class X, class P>
static __device__ __forceinline__ void entropy_aimed_grad(C classes, Y *dx, const X *x,
	const real *aim, real k, real lse, const real *dlse, const targets *t, int64_t r, P &part)
{
	real mass = 0;
	for (int64_t c = classes.first(); c < classes.end(t); c += classes.step())
		mass += entropy_aim(t, c, aim[classes.place(c, t)]);
	mass = classes.sum(mass, part);
	for (int64_t c = classes.first(); c < classes.end(t); c += classes.step()) {
		const int64_t i = classes.place(c, t);
		const real p = row_exp(get_value(x[i]) - lse);
		const real slope = p * mass - entropy_aim(t, c, aim[i]);
		put_value(dx + i, with_lse(k * slope, dlse, r, p));
	}
}

template <int N, class Y, class X>
static __device__ __forceinline__ void entropy_aimed_grad_rows(row_parts &shared, Y *dx, const X *x,
	const real *aim, const real *dloss, const real *lse, const real *dlse, const targets *t,
	reduction how)
{
	const loss_factor scale = loss_scale(dloss, t, how, nullptr);
	const int64_t valid = valid_rows(t);
	for (int64_t r = THREAD / N; r < t->rows; r += THREADS / N) {
		const real k = r < valid ? row_scale(scale, r) : 0;
		entropy_aimed_grad(row_classes<N>{r * t->classes}, dx, x, aim, k, lse[r], dlse, t,
			r, shared.part);
	}
}

template <int GROUPS, class Y, class X>
static __device__ __forceinline__ void entropy_aimed_grad_columns(column_parts &shared, Y *dx,
	const X *x, const real *aim, const real *dloss, const real *lse, const real *dlse,
	const targets *t, reduction how)
{
	const loss_factor scale = loss_scale(dloss, t, how, nullptr);
	const int64_t valid = valid_rows(t);
	for (int64_t tile = blockIdx.x; tile < column_tiles<GROUPS>(t->rows); tile += gridDim.x) {
		const int64_t column = column_number<GROUPS>(tile);
		const bool inside = column < t->rows;
		const int64_t r = inside ? column : 0;
		const int64_t at = inside ? column_start(column, t->classes, t->inner) : 0;
		const real k = r < valid ? row_scale(scale, r) : 0;
		entropy_aimed_grad(column_classes<GROUPS>{at, inside}, dx, x, aim, k, lse[r], dlse,
			t, r, shared.part);
	}
}

#endif
