/* SPDX-License-Identifier: MIT-0 */
/* The gradients of attention on tensor cores (attention_tensor.cuh). */
#ifndef STINT_KERNELS_ATTENTION_TENSOR_GRAD_CUH
#define STINT_KERNELS_ATTENTION_TENSOR_GRAD_CUH

#include "attention_tensor.cuh"
#include "block.cuh"

/* The products of two neighbours of x and of y, added to sum. */
template <class T>
static __device__ __forceinline__ real flash_two(const T *x, const T *y, real sum)
{
	const unsigned a = *(const unsigned *)x, b = *(const unsigned *)y;
	const T low[2] = {(T)(a & 0xFFFF), (T)(b & 0xFFFF)}, high[2] = {(T)(a >> 16), (T)(b >> 16)};
	sum = __fmaf_rn(get_value(low[0]), get_value(low[1]), sum);
	return __fmaf_rn(get_value(high[0]), get_value(high[1]), sum);
}

/* shift[] = of each query the sum of dy y, less the gradient of lse: a warp a row. */
template <class A, class T, class M>
static __device__ __forceinline__ void flash_shift(real *shift, const attention_given<T, M> *given)
{
	const attention_given<T, M> &g = *given;
	const int64_t rows = A::batch * A::heads * A::tq, warps = A::threads / 32;
	for (int64_t row = blockIdx.x * warps + FLASH_WARP; row < rows; row += gridDim.x * warps) {
		const int64_t i = row % A::tq, head = row / A::tq;
		const int64_t at = head / A::heads * A::o0 + head % A::heads * A::o1 + i * A::o2;
		real sum = 0;
		for (int c = 2 * FLASH_LANE; c < A::dv; c += 64)
			sum = flash_two(g.dy + at + c, g.y + at + c, sum);
		sum = warp_sum(sum);
		if (FLASH_LANE == 0)
			shift[row] = A::shifted ? sum - g.dlse[row] : sum;
	}
}

/* Of a strip and 8 N rows of the other side, the first of them query i and key j: s, the inner
 * products of q and k, become probabilities (times dropout's factors, if any), ds, those of dy and
 * v, the gradients of the scores. KEYS: the strip's rows are keys, and lse and shift are by column;
 * else they are of the lane's two rows. */
template <class A, bool KEYS, int N, class M>
static __device__ __forceinline__ void flash_pairs(real (*s)[4], real (*ds)[4], const real *lse,
	const real *shift, const M *mask, const int64_t *control, int b, int h, int i, int j)
{
	flash_bounds<A, KEYS, N>(s, i, j);
	UNROLL
	for (int n = 0; n < N; n++) {
		unsigned kept = 15;
		if constexpr (A::noisy)
			kept = flash_kept<A, KEYS>(
				control, b, h, i + (KEYS ? 8 * n : 0), j + (KEYS ? 0 : 8 * n));
		UNROLL
		for (int c = 0; c < 4; c++) {
			const int row = FLASH_G + c / 2 * 8, column = 8 * n + 2 * FLASH_T + c % 2,
				  at = KEYS ? column : c / 2;
			real t = 0;
			const real x = flash_score<A>(s[n][c], mask, b, h,
				i + (KEYS ? column : row), j + (KEYS ? row : column), &t);
			const real p = flash_exp<A>(x, lse[at]);
			if constexpr (A::noisy) {
				const real noise = kept >> c & 1 ? A::keep() : 0;
				s[n][c] = p * noise;
				ds[n][c] = p * (ds[n][c] * noise - shift[at]);
			} else {
				s[n][c] = p;
				ds[n][c] = p * (ds[n][c] - shift[at]);
			}
			if constexpr (A::capped)
				ds[n][c] *= 1 - t * t;
		}
	}
}

template <class A, int V> static __device__ __forceinline__ void flash_scale(real (*o)[4])
{
	UNROLL
	for (int n = 0; n < V; n++)
		UNROLL
	for (int c = 0; c < 4; c++)
		o[n][c] *= A::scale();
}

/* A block's gradient of queries from i0 on, of one head. */
template <class A, class T, class M, class Y>
static __device__ __forceinline__ void flash_dq(flash_tiles<A> &tiles,
	const attention_given<T, M> &g, const real *shift, Y *dq, int b, int h, int i0)
{
	constexpr int C = A::columns, N = A::step / 8, K = A::kwidth / 16, V = A::vwidth / 16;
	const int i = i0 + FLASH_WARP * 16, end = MIN(MIN(i0 + A::rows, A::tq) + A::upper, A::tk);
	const T *k = g.k + b * A::k0 + h / A::group * A::k1,
		*v = g.v + b * A::v0 + h / A::group * A::v1;
	unsigned fq[1][K][4], fdy[1][V][4];
	real sum[1][2 * K][4] = {}, lse[2], lowered[2];
	int j = MAX(i0 + A::lower, 0) / C * C;
	int turn = 0;
	__syncthreads(); /* the tiles of the task before have been read */
	flash_fetch<A>(tiles, 0, k, v, j, end);
	flash_left<A::d, K>(fq[0], g.q + b * A::q0 + h * A::q1 + i * A::q2, A::q2, A::tq - i);
	flash_left<A::dv, V>(fdy[0], g.dy + b * A::o0 + h * A::o1 + i * A::o2, A::o2, A::tq - i);
	UNROLL
	for (int e = 0; e < 2; e++) {
		const int row = i + FLASH_G + 8 * e;
		const int64_t flat = (b * A::heads + h) * A::tq + row;
		lse[e] = row < A::tq ? g.lse[flat] : 0;
		lowered[e] = row < A::tq ? shift[flat] : 0;
	}
	for (; j < end; j += C, turn ^= 1) {
		cp_async_wait<0>();
		__syncthreads(); /* this turn's tiles are there for all, and those of the turn
				    before have been read */
		flash_fetch<A>(tiles, turn ^ 1, k, v, j + C, end);
		ATTENTION_ROLL
		for (int c = 0; c < C; c += 8 * N) {
			if (!flash_any<A>(i, 16, j + c, 8 * N))
				continue;
			real s[1][N][4] = {}, ds[1][N][4] = {};
			flash_dots<A, 1, N, K>(s, fq, tiles.x[turn][0] + c);
			flash_dots<A, 1, N, V>(ds, fdy, tiles.x[turn][1] + c);
			flash_pairs<A, false, N>(
				s[0], ds[0], lse, lowered, g.mask, g.control, b, h, i, j + c);
			flash_sum<A, 1, N, 2 * K>(sum, ds, tiles.x[turn][0] + c);
		}
	}
	flash_scale<A, 2 * K>(sum[0]);
	flash_store<A::d, 2 * K>(sum[0], dq + b * A::q0 + h * A::q1 + i * A::q2, A::q2, A::tq - i);
}

/* What goes with tiles of queries. */
template <class A> struct flash_numbers {
	real lse[2][A::columns], shift[2][A::columns];
};

/* Starts to copy a tile of queries from i on and their dy, lse and shift. */
template <class A, class T, class M>
static __device__ __forceinline__ void flash_queries(flash_tiles<A> &tiles,
	flash_numbers<A> &numbers, const attention_given<T, M> &g, const real *shift, int turn,
	int b, int h, int i)
{
	flash_copy<A, A::d>(
		tiles.x[turn][0], g.q + b * A::q0 + h * A::q1 + i * A::q2, A::q2, A::tq - i);
	flash_copy<A, A::dv>(
		tiles.x[turn][1], g.dy + b * A::o0 + h * A::o1 + i * A::o2, A::o2, A::tq - i);
	for (int n = (int)threadIdx.x; n < 2 * A::columns; n += A::threads) {
		const int row = n % A::columns;
		const int64_t at = i + row < A::tq ? (b * A::heads + h) * A::tq + i + row : 0;
		cp_async_4(n < A::columns ? &numbers.lse[turn][row] : &numbers.shift[turn][row],
			(n < A::columns ? g.lse : shift) + at, i + row < A::tq ? 4 : 0);
	}
}

/* A block's gradients of keys and values from j0 on, over all heads of queries that share them, one
 * after the other. */
template <class A, class T, class M, class Y, class Z>
static __device__ __forceinline__ void flash_dkv(flash_tiles<A> &tiles, flash_numbers<A> &numbers,
	const attention_given<T, M> &g, const real *shift, Y *dk, Z *dv, int b, int kv, int j0)
{
	constexpr int C = A::columns, N = A::step / 8, K = A::kwidth / 16, V = A::vwidth / 16;
	const int j = j0 + FLASH_WARP * 16, end = MIN(MIN(j0 + A::rows, A::tk) - A::lower, A::tq);
	const int from = MAX(j0 - A::upper, 0) / C * C;
	unsigned fk[1][K][4], fv[1][V][4];
	real ksum[1][2 * K][4] = {}, vsum[1][2 * V][4] = {};
	int turn = 0, h = kv * A::group, i = from;
	__syncthreads(); /* the tiles of the task before have been read */
	if (from < end)
		flash_queries<A>(tiles, numbers, g, shift, 0, b, h, from);
	cp_async_commit();
	flash_left<A::d, K>(fk[0], g.k + b * A::k0 + kv * A::k1 + j * A::k2, A::k2, A::tk - j);
	flash_left<A::dv, V>(fv[0], g.v + b * A::v0 + kv * A::v1 + j * A::v2, A::v2, A::tk - j);
	for (bool more = from < end; more; turn ^= 1) {
		const bool same = i + C < end, any = flash_any<A>(i, C, j, 16);
		const int next = same ? i + C : from, head = h + !same;
		more = same || head % (int)A::group != 0;
		cp_async_wait<0>();
		__syncthreads(); /* this turn's tiles are there for all, and those of the turn
				    before have been read */
		if (more)
			flash_queries<A>(tiles, numbers, g, shift, turn ^ 1, b, head, next);
		cp_async_commit();
		ATTENTION_ROLL
		for (int c = 0; any && c < C; c += 8 * N) {
			real s[1][N][4] = {}, ds[1][N][4] = {};
			flash_dots<A, 1, N, K>(s, fk, tiles.x[turn][0] + c);
			flash_dots<A, 1, N, V>(ds, fv, tiles.x[turn][1] + c);
			flash_pairs<A, true, N>(s[0], ds[0], numbers.lse[turn] + c,
				numbers.shift[turn] + c, g.mask, g.control, b, h, i + c, j);
			flash_sum<A, 1, N, 2 * V>(vsum, s, tiles.x[turn][1] + c);
			flash_sum<A, 1, N, 2 * K>(ksum, ds, tiles.x[turn][0] + c);
		}
		h = head;
		i = next;
	}
	flash_scale<A, 2 * K>(ksum[0]);
	flash_store<A::d, 2 * K>(
		ksum[0], dk + b * A::k0 + kv * A::k1 + j * A::k2, A::k2, A::tk - j);
	flash_store<A::dv, 2 * V>(
		vsum[0], dv + b * A::v0 + kv * A::v1 + j * A::v2, A::v2, A::tk - j);
}

template <class A, class T, class M, class Y>
static __device__ __forceinline__ void flash_grad_queries(
	flash_tiles<A> &tiles, Y *dq, const attention_given<T, M> *given, const real *shift)
{
	const attention_given<T, M> &g = *given;
	for (int task = (int)blockIdx.x; task < A::tasks; task += (int)gridDim.x) {
		const int tile = task % A::qtiles, head = task / A::qtiles;
		flash_dq<A>(tiles, g, shift, dq, head / A::heads, head % A::heads,
			(A::qtiles - 1 - tile) * A::rows);
	}
}

template <class A, class T, class M, class Y, class Z>
static __device__ __forceinline__ void flash_grad_keys(flash_tiles<A> &tiles,
	flash_numbers<A> &numbers, Y *dk, Z *dv, const attention_given<T, M> *given,
	const real *shift)
{
	const attention_given<T, M> &g = *given;
	constexpr int groups = A::heads / A::group;
	for (int task = (int)blockIdx.x; task < A::tasks; task += (int)gridDim.x) {
		const int tile = task % A::ktiles, head = task / A::ktiles;
		flash_dkv<A>(tiles, numbers, g, shift, dk, dv, head / groups, head % groups,
			tile * A::rows);
	}
}

#endif
