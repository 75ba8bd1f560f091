/* SPDX-License-Identifier: MIT-0 */
/* Attention and its gradients on a GPU, in single precision.
 *
 * A block takes tasks: 64 queries (or keys) of one head, against all keys (or queries) that they
 * see, 64 at a time. Wide heads are cut into parts, which compute the same probabilities; a task
 * has the sums of one part. The gradient computes them again from lse, once for dq and once for dk
 * and dv: no two blocks write one element, and no order depends on the launch. */
#ifndef STINT_KERNELS_ATTENTION_CUH
#define STINT_KERNELS_ATTENTION_CUH

#include "attention_given.cuh"

/* Attention. A block of 256 threads has tiles of 64 rows and 64 columns: thread (x, y) of 16 x 16
 * has rows 4 y to 4 y + 3 and columns 4 x to 4 x + 3, and of wider sums columns x, x + 16, ...
 * Operands come through shared memory 16 of the summed axis at a time. One thread has each sum,
 * from its first term to its last: the order never changes. */
enum { ATTENTION_TILE = 64, ATTENTION_STEP = 16, ATTENTION_SHORT = 68, ATTENTION_LONG = 132 };
struct __align__(16) attention_tile
{
	real a[ATTENTION_STEP][ATTENTION_SHORT], b[ATTENTION_STEP][ATTENTION_LONG];
	real p[ATTENTION_TILE][ATTENTION_SHORT]; /* by column: what the next product sums over */
	real lse[ATTENTION_TILE], shift[ATTENTION_TILE]; /* of a tile's queries */
};
#define ATTENTION_X ((int)threadIdx.x % 16)
#define ATTENTION_Y ((int)threadIdx.x / 16)

/* Columns [from, from + 16) of `rows` rows of x, turned; zeros behind its ends. */
template <int N, class T>
static __device__ __forceinline__ void attention_load_turned(
	real (*to)[N], const T *x, int64_t stride, int rows, int from, int width, real scale)
{
	const int row = (int)threadIdx.x / 4, first = (int)threadIdx.x % 4 * 4;
	for (int k = 0; k < 4; k++) {
		const int c = first + k;
		to[c][row] = row < rows && from + c < width
				     ? get_value(x[row * stride + from + c]) * scale
				     : 0;
	}
}

/* The inner products of the rows of x and of y. */
template <class T>
static __device__ __forceinline__ void attention_dots(real acc[4][4], attention_tile &s, const T *x,
	int64_t xstride, int xrows, real xscale, const T *y, int64_t ystride, int yrows,
	real yscale, int width)
{
	UNROLL
	for (int r = 0; r < 4; r++)
		UNROLL
	for (int c = 0; c < 4; c++)
		acc[r][c] = 0;
	for (int from = 0; from < width; from += ATTENTION_STEP) {
		__syncthreads();
		attention_load_turned(s.a, x, xstride, xrows, from, width, xscale);
		attention_load_turned(s.b, y, ystride, yrows, from, width, yscale);
		__syncthreads();
		for (int k = 0; k < ATTENTION_STEP; k++) {
			const real *a = &s.a[k][4 * ATTENTION_Y], *b = &s.b[k][4 * ATTENTION_X];
			UNROLL
			for (int r = 0; r < 4; r++)
				UNROLL
			for (int c = 0; c < 4; c++)
				acc[r][c] = __fmaf_rn(a[r], b[c], acc[r][c]);
		}
	}
}

/* s.p = the tile, turned, for attention_sum. */
static __device__ __forceinline__ void attention_keep(attention_tile &s, const real acc[4][4])
{
	__syncthreads();
	UNROLL
	for (int c = 0; c < 4; c++)
		UNROLL
	for (int r = 0; r < 4; r++)
		s.p[4 * ATTENTION_X + c][4 * ATTENTION_Y + r] = acc[r][c];
}

/* acc += s.p times columns [from, from + 16 N) of `rows` rows of x. */
template <int N, class T>
static __device__ __forceinline__ void attention_sum(real acc[4][N], attention_tile &s, const T *x,
	int64_t stride, int rows, int from, int width)
{
	for (int row = 0; row < rows; row += ATTENTION_STEP) {
		__syncthreads();
		for (int n = (int)threadIdx.x; n < ATTENTION_STEP * 16 * N; n += 256) {
			const int k = n / (16 * N), c = n % (16 * N);
			s.b[k][c] = row + k < rows && from + c < width
					    ? get_value(x[(row + k) * stride + from + c])
					    : 0;
		}
		__syncthreads();
		for (int k = 0; k < ATTENTION_STEP; k++) {
			const real *p = &s.p[row + k][4 * ATTENTION_Y], *b = &s.b[k][ATTENTION_X];
			UNROLL
			for (int c = 0; c < N; c++)
				UNROLL
			for (int r = 0; r < 4; r++)
				acc[r][c] = __fmaf_rn(p[r], b[16 * c], acc[r][c]);
		}
	}
}

/* y = acc: columns [from, from + 16 N) of `rows` rows. */
template <int N, class T>
static __device__ __forceinline__ void attention_store(
	const real acc[4][N], T *y, int64_t stride, int rows, int from, int width)
{
	UNROLL
	for (int r = 0; r < 4; r++)
		UNROLL
	for (int c = 0; c < N; c++) {
		const int row = 4 * ATTENTION_Y + r, at = from + ATTENTION_X + 16 * c;
		if (row < rows && at < width)
			put_value(y + row * stride + at, acc[r][c]);
	}
}

/* Dropout's factors for query i and keys j to j + 3. */
template <class A>
static __device__ __forceinline__ void attention_noise(
	const int64_t *control, int64_t b, int64_t h, int64_t i, int64_t j, real noise[4])
{
	const int64_t at = attention_first<A>(control) + ((b * A::heads + h) * A::tq + i) * A::tk +
			   j;
	uint32_t word[8];
	stint_philox_at(control[0], control[1], A::node, at & ~(int64_t)3, word);
	if (A::tk % 4 != 0) /* then the four may lie in two of Philox's blocks */
		stint_philox_at(control[0], control[1], A::node, (at & ~(int64_t)3) + 4, word + 4);
	for (int k = 0; k < 4; k++) {
		uint32_t w = word[k];
		for (int ahead = 1; A::tk % 4 != 0 && ahead < 4; ahead++)
			w = (at & 3) == ahead ? word[k + ahead] : w;
		noise[k] = w >> 8 >= A::keep_from ? A::keep() : 0;
	}
}

/* The row's scores become exponentials relative to its largest so far, *m; *l is their sum so far.
 * Returns what earlier sums are to be multiplied by. A row's 64 scores are with the 16 threads of
 * half a warp. */
static __device__ __forceinline__ real attention_row(real s[4], real *m, real *l)
{
	real top = MAX(MAX(s[0], s[1]), MAX(s[2], s[3]));
	for (int k = 8; k > 0; k /= 2) {
		const real other = __shfl_xor_sync(0xFFFFFFFFu, top, k);
		top = MAX(top, other);
	}
	top = MAX(top, *m);
	const real base = top > -INFINITY ? top : 0, fade = EXP(*m - base);
	UNROLL
	for (int c = 0; c < 4; c++)
		s[c] = EXP(s[c] - base);
	real sum = (s[0] + s[1]) + (s[2] + s[3]);
	for (int k = 8; k > 0; k /= 2)
		sum += __shfl_xor_sync(0xFFFFFFFFu, sum, k);
	*m = top;
	*l = *l * fade + sum;
	return fade;
}

/* Queries from i0 on of one head, columns from c0 on of the output. */
template <class A, int N, class T, class M, class Y>
static __device__ __forceinline__ void attention_rows(attention_tile &s, const T *q, const T *k,
	const T *v, const M *mask, const int64_t *control, Y *y, real *lse, int64_t b, int64_t h,
	int64_t i0, int c0)
{
	const int rows = (int)MIN(A::tq - i0, ATTENTION_TILE);
	const int64_t i = i0 + 4 * ATTENTION_Y, end = MIN(i0 + rows + A::upper, A::tk);
	real p[4][4], o[4][N] = {}, m[4], l[4] = {}, unused;
	q += b * A::q0 + h * A::q1 + i0 * A::q2;
	k += b * A::k0 + h / A::group * A::k1;
	v += b * A::v0 + h / A::group * A::v1;
	UNROLL
	for (int r = 0; r < 4; r++)
		m[r] = -INFINITY;
	for (int64_t j0 = MAX(i0 + A::lower, 0) / ATTENTION_TILE * ATTENTION_TILE; j0 < end;
		j0 += ATTENTION_TILE) {
		const int keys = (int)MIN(A::tk - j0, ATTENTION_TILE);
		const int64_t j = j0 + 4 * ATTENTION_X;
		attention_dots(
			p, s, q, A::q2, rows, A::scale(), k + j0 * A::k2, A::k2, keys, 1, A::d);
		UNROLL
		for (int r = 0; r < 4; r++) {
			UNROLL
			for (int c = 0; c < 4; c++)
				p[r][c] = attention_score<A>(
					p[r][c], mask, b, h, i + r, j + c, &unused);
			const real fade = attention_row(p[r], &m[r], &l[r]);
			UNROLL
			for (int c = 0; c < N; c++)
				o[r][c] *= fade;
			if constexpr (A::noisy) {
				real noise[4];
				attention_noise<A>(control, b, h, i + r, j, noise);
				UNROLL
				for (int c = 0; c < 4; c++)
					p[r][c] *= noise[c];
			}
		}
		attention_keep(s, p);
		attention_sum<N>(o, s, v + j0 * A::v2, A::v2, keys, c0, A::dv);
	}
	UNROLL
	for (int r = 0; r < 4; r++) {
		const bool none = A::empty == 1 ? l[r] == 0 : A::empty == 2 ? !(l[r] > 0) : false;
		UNROLL
		for (int c = 0; c < N; c++)
			o[r][c] = none ? 0 : o[r][c] / l[r];
		if (c0 == 0 && ATTENTION_X == 0 && i + r < A::tq)
			lse[(b * A::heads + h) * A::tq + i + r] = none ? 0 : m[r] + LOG(l[r]);
	}
	attention_store<N>(o, y + b * A::o0 + h * A::o1 + i0 * A::o2, A::o2, rows, c0, A::dv);
}

template <class A, int N, class T, class M, class Y>
static __device__ __forceinline__ void attention_forward(attention_tile &s, Y *y, real *lse,
	const T *q, const T *k, const T *v, const M *mask, const int64_t *control)
{
	for (int64_t task = blockIdx.x; task < A::tasks; task += gridDim.x) {
		const int64_t part = task % A::parts, tile = task / A::parts % A::qtiles,
			      head = task / (A::parts * A::qtiles);
		attention_rows<A, N>(s, q, k, v, mask, control, y, lse, head / A::heads,
			head % A::heads, (A::qtiles - 1 - tile) * ATTENTION_TILE,
			(int)part * 16 * N); /* the longest rows first */
	}
}

/* Of the queries from i0 on: s.lse, and in s.shift what the gradients of their scores are lowered
 * by. */
template <class A, class T, class M>
static __device__ __forceinline__ void attention_shift(
	attention_tile &s, const attention_given<T, M> &g, int64_t b, int64_t h, int64_t i0)
{
	const int row = (int)threadIdx.x / 4;
	const bool is = i0 + row < A::tq;
	const int64_t at = b * A::o0 + h * A::o1 + (i0 + row) * A::o2,
		      flat = (b * A::heads + h) * A::tq + i0 + row;
	real sum = 0;
	for (int c = (int)threadIdx.x % 4; is && c < A::dv; c += 4)
		sum = __fmaf_rn(get_value(g.dy[at + c]), get_value(g.y[at + c]), sum);
	sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
	sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
	__syncthreads();
	if (threadIdx.x % 4 == 0) {
		s.lse[row] = is ? g.lse[flat] : 0;
		s.shift[row] = A::shifted && is ? sum - g.dlse[flat] : sum;
	}
	__syncthreads();
}

/* One pair's: *s, its inner product, becomes the probability (times the noise, if any), *ds, the
 * inner product of dy and v, the score's gradient, *dmask the mask's. */
template <class A, class M>
static __device__ __forceinline__ void attention_pair(const attention_tile &tile, const M *mask,
	int64_t b, int64_t h, int64_t i, int64_t j, int row, real noise, real *s, real *ds,
	real *dmask)
{
	real t = 0;
	const real x = attention_score<A>(*s, mask, b, h, i, j, &t);
	const real p = i < A::tq && j < A::tk ? EXP(x - tile.lse[row]) : 0;
	*dmask = p * (A::noisy ? *ds * noise - tile.shift[row] : *ds - tile.shift[row]);
	*ds = A::capped ? *dmask * (1 - t * t) : *dmask;
	*s = A::noisy ? p * noise : p;
}

/* Of rows of queries i0 ... and columns of keys j0 ...: the probabilities and the gradients of the
 * scores. */
template <class A, class T, class M>
static __device__ __forceinline__ void attention_by_queries(attention_tile &s,
	const attention_given<T, M> &g, int64_t b, int64_t h, int64_t i0, int64_t j0, real ds[4][4],
	real dmask[4][4])
{
	const int rows = (int)MIN(A::tq - i0, ATTENTION_TILE),
		  keys = (int)MIN(A::tk - j0, ATTENTION_TILE);
	const int64_t i = i0 + 4 * ATTENTION_Y, j = j0 + 4 * ATTENTION_X, kv = h / A::group;
	real p[4][4], noise[4] = {};
	attention_dots(p, s, g.q + b * A::q0 + h * A::q1 + i0 * A::q2, A::q2, rows, A::scale(),
		g.k + b * A::k0 + kv * A::k1 + j0 * A::k2, A::k2, keys, 1, A::d);
	attention_dots(ds, s, g.dy + b * A::o0 + h * A::o1 + i0 * A::o2, A::o2, rows, 1,
		g.v + b * A::v0 + kv * A::v1 + j0 * A::v2, A::v2, keys, 1, A::dv);
	UNROLL
	for (int r = 0; r < 4; r++) {
		if constexpr (A::noisy)
			attention_noise<A>(g.control, b, h, i + r, j, noise);
		UNROLL
		for (int c = 0; c < 4; c++)
			attention_pair<A>(s, g.mask, b, h, i + r, j + c, 4 * ATTENTION_Y + r,
				noise[c], &p[r][c], &ds[r][c], &dmask[r][c]);
	}
}

/* dq of the queries from i0 on, columns from c0 on. */
template <class A, int N, class T, class M, class Y>
static __device__ __forceinline__ void attention_dq(attention_tile &s,
	const attention_given<T, M> &g, Y *dq, int64_t b, int64_t h, int64_t i0, int c0)
{
	const int rows = (int)MIN(A::tq - i0, ATTENTION_TILE);
	const int64_t end = MIN(i0 + rows + A::upper, A::tk);
	real ds[4][4], dmask[4][4], sum[4][N] = {};
	attention_shift<A>(s, g, b, h, i0);
	for (int64_t j0 = MAX(i0 + A::lower, 0) / ATTENTION_TILE * ATTENTION_TILE; j0 < end;
		j0 += ATTENTION_TILE) {
		attention_by_queries<A>(s, g, b, h, i0, j0, ds, dmask);
		attention_keep(s, ds);
		attention_sum<N>(sum, s, g.k + b * A::k0 + h / A::group * A::k1 + j0 * A::k2, A::k2,
			(int)MIN(A::tk - j0, ATTENTION_TILE), c0, A::d);
	}
	UNROLL
	for (int r = 0; r < 4; r++)
		UNROLL
	for (int c = 0; c < N; c++)
		sum[r][c] *= A::scale();
	attention_store<N>(sum, dq + b * A::q0 + h * A::q1 + i0 * A::q2, A::q2, rows, c0, A::d);
}

/* One tile of rows of keys j0 ... and columns of queries i0 ..., in the sums of dk and dv. */
template <class A, int N, int NV, class T, class M>
static __device__ __forceinline__ void attention_by_keys(attention_tile &s,
	const attention_given<T, M> &g, int64_t b, int64_t h, int64_t i0, int64_t j0, int part,
	real dk[4][N], real dv[4][NV])
{
	const int rows = (int)MIN(A::tq - i0, ATTENTION_TILE),
		  keys = (int)MIN(A::tk - j0, ATTENTION_TILE);
	const int64_t i = i0 + 4 * ATTENTION_X, j = j0 + 4 * ATTENTION_Y, kv = h / A::group;
	const T *q = g.q + b * A::q0 + h * A::q1 + i0 * A::q2,
		*dy = g.dy + b * A::o0 + h * A::o1 + i0 * A::o2;
	real p[4][4], ds[4][4], noise[4] = {}, dmask;
	attention_shift<A>(s, g, b, h, i0);
	attention_dots(p, s, g.k + b * A::k0 + kv * A::k1 + j0 * A::k2, A::k2, keys, 1, q, A::q2,
		rows, A::scale(), A::d);
	attention_dots(ds, s, g.v + b * A::v0 + kv * A::v1 + j0 * A::v2, A::v2, keys, 1, dy, A::o2,
		rows, 1, A::dv);
	UNROLL
	for (int c = 0; c < 4; c++) {
		if constexpr (A::noisy)
			attention_noise<A>(g.control, b, h, i + c, j, noise);
		UNROLL
		for (int r = 0; r < 4; r++)
			attention_pair<A>(s, g.mask, b, h, i + c, j + r, 4 * ATTENTION_X + c,
				noise[r], &p[r][c], &ds[r][c], &dmask);
	}
	attention_keep(s, p);
	attention_sum<NV>(dv, s, dy, A::o2, rows, part * 16 * NV, A::dv);
	attention_keep(s, ds);
	attention_sum<N>(dk, s, q, A::q2, rows, part * 16 * N, A::d);
}

/* dk and dv of the keys from j0 on, of all heads that share them, one after the other. */
template <class A, int N, int NV, class T, class M, class Y, class Z>
static __device__ __forceinline__ void attention_dkv(attention_tile &s,
	const attention_given<T, M> &g, Y *dk, Z *dv, int64_t b, int64_t kv, int64_t j0, int part)
{
	const int keys = (int)MIN(A::tk - j0, ATTENTION_TILE);
	const int64_t end = MIN(j0 + keys - A::lower, A::tq);
	real ksum[4][N] = {}, vsum[4][NV] = {};
	for (int64_t h = kv * A::group; h < (kv + 1) * A::group; h++)
		for (int64_t i0 = MAX(j0 - A::upper, 0) / ATTENTION_TILE * ATTENTION_TILE; i0 < end;
			i0 += ATTENTION_TILE)
			attention_by_keys<A, N, NV>(s, g, b, h, i0, j0, part, ksum, vsum);
	UNROLL
	for (int r = 0; r < 4; r++)
		UNROLL
	for (int c = 0; c < N; c++)
		ksum[r][c] *= A::scale();
	attention_store<N>(
		ksum, dk + b * A::k0 + kv * A::k1 + j0 * A::k2, A::k2, keys, part * 16 * N, A::d);
	attention_store<NV>(
		vsum, dv + b * A::v0 + kv * A::v1 + j0 * A::v2, A::v2, keys, part * 16 * NV, A::dv);
}

/* Tiles of keys, then tiles of queries. */
template <class A, int N, int NV, class T, class M, class X, class Y, class Z>
static __device__ __forceinline__ void attention_grad(
	attention_tile &s, X *dq, Y *dk, Z *dv, const attention_given<T, M> *given)
{
	const attention_given<T, M> &g = *given;
	const int64_t groups = A::heads / A::group,
		      of_keys = A::batch * groups * A::ktiles * A::parts;
	for (int64_t task = blockIdx.x; task < A::tasks; task += gridDim.x) {
		const bool keys = task < of_keys;
		const int64_t at = keys ? task : task - of_keys, part = at % A::parts,
			      tiles = keys ? A::ktiles : A::qtiles;
		const int64_t tile = at / A::parts % tiles, head = at / (A::parts * tiles);
		if (keys)
			attention_dkv<A, N, NV>(s, g, dk, dv, head / groups, head % groups,
				tile * ATTENTION_TILE, (int)part);
		else
			attention_dq<A, N>(s, g, dq, head / A::heads, head % A::heads,
				(tiles - 1 - tile) * ATTENTION_TILE, (int)part * 16 * N);
	}
}

/* The mask's gradient, summed over the batches and heads that share a value. */
template <class A, class T, class M, class Y>
static __device__ __forceinline__ void attention_dmask(
	attention_tile &s, Y *dmask, const attention_given<T, M> *given)
{
	const attention_given<T, M> &g = *given;
	for (int64_t task = blockIdx.x; task < A::tasks; task += gridDim.x) {
		const int64_t j0 = task % A::ktiles * ATTENTION_TILE,
			      i0 = task / A::ktiles % A::qtiles * ATTENTION_TILE;
		const int64_t plane = task / (A::ktiles * A::qtiles), first = plane / A::mheads;
		real sum[4][4] = {}, ds[4][4], one[4][4];
		for (int64_t b = first; b < A::batch; b += A::period)
			for (int64_t h = plane % A::mheads; h < A::heads; h += A::mheads) {
				attention_shift<A>(s, g, b, h, i0);
				attention_by_queries<A>(s, g, b, h, i0, j0, ds, one);
				UNROLL
				for (int r = 0; r < 4; r++)
					UNROLL
				for (int c = 0; c < 4; c++)
					sum[r][c] += one[r][c];
			}
		UNROLL
		for (int r = 0; r < 4; r++)
			UNROLL
		for (int c = 0; c < 4; c++) {
			const int64_t i = i0 + 4 * ATTENTION_Y + r, j = j0 + 4 * ATTENTION_X + c;
			if (i < A::tq && j < A::tk)
				put_value(dmask + (plane * A::tq + i) * A::tk + j, sum[r][c]);
		}
	}
}

#endif
