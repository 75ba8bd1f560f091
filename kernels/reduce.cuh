/* SPDX-License-Identifier: MIT-0 */
/* Reductions on a GPU. Where elements that are joined are neighbours, a warp or a block has an
 * output; where outputs are, threads side by side have columns side by side, and groups of threads
 * share the rows. Where outputs are few, what each is made of is cut into parts, whose results,
 * doubles, a second launch joins. */
#ifndef STINT_KERNELS_REDUCE_CUH
#define STINT_KERNELS_REDUCE_CUH

#include "reduction.h"
#include "rows.cuh"

/* What an element counts as; what comes from an earlier launch is that already. */
template <class X> FORM double reduce_term_of(const struct reduce_how *how, X x, real other)
{
	return (double)reduce_term(how->term, get_value(x), other);
}
FORM double reduce_term_of(const struct reduce_how *, double x, real)
{
	return x;
}

/* How an output's elements, or rows, are cut: the last launch has one part. */
struct reduce_cut {
	int64_t outputs, parts, part; /* so many parts of so many */
};

struct reduce_row_room {
	double part[BLOCK_WARPS];
};

/* Over a row's threads by a fixed tree; the first has the result. */
template <int THREADS_OF>
FORM double reduce_over_row(reduce_row_room &room, enum reduce_join join, double x)
{
	for (int half = 16; half > 0; half /= 2)
		x = reduce_join(join, x, __shfl_xor_sync(0xFFFFFFFFu, x, half));
	if constexpr (THREADS_OF == ROW_BLOCK) {
		const int lane = (int)threadIdx.x % 32;
		if (lane == 0)
			room.part[threadIdx.x / 32] = x;
		__syncthreads();
		x = room.part[lane % 8];
		for (int half = 4; half > 0; half /= 2)
			x = reduce_join(join, x, __shfl_xor_sync(0xFFFFFFFFu, x, half));
		__syncthreads();
	}
	return x;
}

/* V elements that lie side by side are read at once. */
template <int THREADS_OF, int V, class X>
FORM void block_reduce_rows(reduce_row_room &room, real *y, double *results, const X *x,
	const real *other, const struct reduce_shape *s, const struct reduce_how *how,
	const struct reduce_cut *cut)
{
	const int64_t count = reduce_number(s, s->n, true);
	for (int64_t r = THREAD / THREADS_OF; r < cut->outputs * cut->parts;
		r += THREADS / THREADS_OF) {
		const int64_t o = r / cut->parts, from = r % cut->parts * cut->part;
		const int64_t end = MIN(from + cut->part, count);
		const X *const of = x + reduce_place(s, s->n, false, o);
		double sum = reduce_start(how->join);
		for (int64_t j = from + row_thread<THREADS_OF>() * V; j < end;
			j += THREADS_OF * V) {
			const pack<X, V> p = *(
				const pack<X, V> *)(of + reduce_place(s, s->n, true, j));
			for (int k = 0; k < V; k++)
				sum = reduce_join(how->join, sum,
					reduce_term_of(how, p.of[k], other ? other[o] : 0));
		}
		sum = reduce_over_row<THREADS_OF>(room, how->join, sum);
		if (row_thread<THREADS_OF>() == 0 && results)
			results[r] = sum;
		else if (row_thread<THREADS_OF>() == 0)
			y[o] = reduce_finish(how, sum);
	}
}

template <int V> struct reduce_column_room {
	double part[V][256];
};

/* V columns for each of WIDTH threads side by side; 256 / WIDTH such groups share the rows. */
template <int WIDTH, int V, class X>
FORM void block_reduce_columns(reduce_column_room<V> &room, real *y, double *results, const X *x,
	const real *other, const struct reduce_shape *s, const struct reduce_how *how,
	const struct reduce_cut *cut)
{
	const int last = s->n - 1;
	const int64_t width = s->dim[last], count = reduce_number(s, s->n, true);
	const int64_t tiles = (width + WIDTH * V - 1) / (WIDTH * V);
	const int64_t tasks = cut->outputs / width * tiles * cut->parts;
	const int t = (int)threadIdx.x, group = t / WIDTH;
	for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
		const int64_t part = task % cut->parts, o = task / (cut->parts * tiles);
		const int64_t from = part * cut->part, end = MIN(from + cut->part, count);
		const int64_t c = (task / cut->parts % tiles * WIDTH + t % WIDTH) * V;
		const bool inside = c < width && t < 256 / WIDTH * WIDTH;
		const X *const of = x + reduce_place(s, last, false, o) + c;
		real others[V] = {0};
		double sum[V];
		for (int k = 0; k < V && inside && other; k++)
			others[k] = other[o * width + c + k];
		for (int k = 0; k < V; k++)
			sum[k] = reduce_start(how->join);
		for (int64_t j = from + group; j < end && inside; j += 256 / WIDTH) {
			const pack<X, V> p = *(
				const pack<X, V> *)(of + reduce_place(s, s->n, true, j));
			for (int k = 0; k < V; k++)
				sum[k] = reduce_join(
					how->join, sum[k], reduce_term_of(how, p.of[k], others[k]));
		}
		for (int groups = 256 / WIDTH; groups > 1; groups = (groups + 1) / 2) {
			const int half = (groups + 1) / 2;
			for (int k = 0; k < V; k++)
				room.part[k][t] = sum[k];
			__syncthreads();
			for (int k = 0; k < V && group + half < groups; k++)
				sum[k] = reduce_join(
					how->join, sum[k], room.part[k][t + half * WIDTH]);
			__syncthreads();
		}
		for (int k = 0; k < V && inside && t < WIDTH; k++) {
			if (results)
				results[part * cut->outputs + o * width + c + k] = sum[k];
			else
				y[o * width + c + k] = reduce_finish(how, sum[k]);
		}
	}
}

/* The second launch's, of what the first has left. */
template <int THREADS_OF, int V>
FORM void block_join_rows(reduce_row_room &room, real *y, const double *results,
	const struct reduce_shape *s, const struct reduce_how *how, const struct reduce_cut *cut)
{
	block_reduce_rows<THREADS_OF, V>(room, y, NULL, results, NULL, s, how, cut);
}
template <int WIDTH, int V>
FORM void block_join_columns(reduce_column_room<V> &room, real *y, const double *results,
	const struct reduce_shape *s, const struct reduce_how *how, const struct reduce_cut *cut)
{
	block_reduce_columns<WIDTH, V>(room, y, NULL, results, NULL, s, how, cut);
}

#endif
