/* SPDX-License-Identifier: MIT-0 */
/* Attention on a GPU's tensor cores, in bf16 and fp16: FlashAttention-2 (Dao, "FlashAttention-2:
 * Faster Attention with Better Parallelism and Work Partitioning", 2023, arXiv 2307.08691).
 * Products are mma.m16n8k16's with float sums; probabilities and the gradients of scores are
 * rounded to the narrow type where they are an operand. docs/explanation/attention-on-a-gpu.md has
 * the arithmetic. */
#ifndef STINT_KERNELS_ATTENTION_TENSOR_CUH
#define STINT_KERNELS_ATTENTION_TENSOR_CUH

#include "attention_given.cuh"
#include "elements.cuh"
#include "primitives.cuh"

#ifdef STINT_FP16
#define flash_mma mma_f16
#else
#define flash_mma mma_bf16
#endif

static __device__ __forceinline__ void flash_put(float *y, float a, float b)
{
	*(float2 *)y = make_float2(a, b);
}
static __device__ __forceinline__ void flash_put(narrow *y, float a, float b)
{
	*(unsigned *)y = pack_narrow(a, b);
}

/* Attention on tensor cores: FlashAttention-2 (Dao, 2023, arXiv 2307.08691, algorithms 1 and 2). A
 * warp has strips of 16 rows, its operands and sums in registers as mma wants them (lane 4 g + t
 * has of 8 columns those at 2 t and 2 t + 1, in rows g and g + 8); the other side's rows come by
 * tiles through shared memory, one pair of tiles in work while the next is under way. What mma
 * gives out for two times 8 columns is, packed, a left operand of 16 columns: probabilities never
 * leave their registers. One thread has each sum from its first term to its last, and no two blocks
 * write one element: the order never changes. */
#define FLASH_WARP ((int)threadIdx.x / 32)
#define FLASH_LANE ((int)threadIdx.x % 32)
#define FLASH_G ((int)threadIdx.x % 32 / 4)
#define FLASH_T ((int)threadIdx.x % 4)

/* Rows are A::pitch = 16 n + 8 elements apart, an odd number of 16 bytes: the 8 rows that a
 * ldmatrix takes at a time lie in 8 different groups of 4 banks, whatever the width. */
template <class A> struct __align__(16) flash_tiles
{
	unsigned short x[2][2][A::columns][A::pitch]; /* by turn and operand */
};

/* Starts to copy `rows` rows of x, at most a tile's; behind them, and up to a multiple of 16
 * columns, zeros. */
template <class A, int WIDTH, class T>
static __device__ __forceinline__ void flash_copy(
	unsigned short (*tile)[A::pitch], const T *x, int64_t stride, int rows)
{
	constexpr int PIECES = (WIDTH + 15) / 16 * 2;
	ATTENTION_ROLL
	for (int n = (int)threadIdx.x; n < A::columns * PIECES; n += A::threads) {
		const int row = n / PIECES, column = n % PIECES * 8;
		const bool is = row < rows && column < WIDTH;
		cp_async_16(&tile[row][column], x + (is ? row * stride + column : 0), is ? 16 : 0);
	}
}

/* The same of the keys from j on, if there are any before `end`, and their values; commits. */
template <class A, class T>
static __device__ __forceinline__ void flash_fetch(
	flash_tiles<A> &tiles, int turn, const T *k, const T *v, int j, int end)
{
	if (j < end) {
		flash_copy<A, A::d>(tiles.x[turn][0], k + j * A::k2, A::k2, A::tk - j);
		flash_copy<A, A::dv>(tiles.x[turn][1], v + j * A::v2, A::v2, A::tk - j);
	}
	cp_async_commit();
}

/* A strip of x as left operand, from memory; zeros behind its rows and columns. */
template <int WIDTH, int K, class T>
static __device__ __forceinline__ void flash_left(
	unsigned (*f)[4], const T *x, int64_t stride, int rows)
{
	UNROLL
	for (int k = 0; k < K; k++)
		UNROLL
	for (int e = 0; e < 4; e++) {
		const int row = FLASH_G + e % 2 * 8, column = 16 * k + e / 2 * 8 + 2 * FLASH_T;
		f[k][e] = row < rows && column < WIDTH
				  ? *(const unsigned *)(x + row * stride + column)
				  : 0;
	}
}

/* s += strips f times the transpose of a tile's first 8 N rows. */
template <class A, int S, int N, int K>
static __device__ __forceinline__ void flash_dots(
	real (*s)[N][4], const unsigned (*f)[K][4], const unsigned short (*tile)[A::pitch])
{
	const int lane = FLASH_LANE;
	UNROLL
	for (int k = 0; k < K; k++)
		UNROLL
	for (int n = 0; n < N; n += 2) {
		unsigned b[4];
		ldmatrix_x4(b, &tile[8 * n + lane / 16 * 8 + lane % 8][16 * k + lane / 8 % 2 * 8]);
		UNROLL
		for (int r = 0; r < S; r++) {
			flash_mma(s[r][n], f[r][k], b);
			flash_mma(s[r][n + 1], f[r][k], b + 2);
		}
	}
}

/* o += p, rounded to the narrow type, times a tile's first 8 N rows, 8 V columns of them. */
template <class A, int S, int N, int V>
static __device__ __forceinline__ void flash_sum(
	real (*o)[V][4], const real (*p)[N][4], const unsigned short (*tile)[A::pitch])
{
	const int lane = FLASH_LANE;
	UNROLL
	for (int k = 0; k < N; k += 2) {
		unsigned f[S][4];
		UNROLL
		for (int r = 0; r < S; r++)
			UNROLL
		for (int e = 0; e < 4; e++)
			f[r][e] = pack_narrow(
				p[r][k + e / 2][e % 2 * 2], p[r][k + e / 2][e % 2 * 2 + 1]);
		UNROLL
		for (int n = 0; n < V; n += 2) {
			unsigned b[4];
			ldmatrix_x4_trans(b, &tile[8 * k + lane % 16][8 * n + lane / 16 * 8]);
			UNROLL
			for (int r = 0; r < S; r++) {
				flash_mma(o[r][n], f[r], b);
				flash_mma(o[r][n + 1], f[r], b + 2);
			}
		}
	}
}

/* y = o: a strip, as far as it has `rows` rows of WIDTH columns. */
template <int WIDTH, int V, class Y>
static __device__ __forceinline__ void flash_store(
	const real (*o)[4], Y *y, int64_t stride, int rows)
{
	UNROLL
	for (int n = 0; n < V; n++)
		UNROLL
	for (int e = 0; e < 2; e++) {
		const int row = FLASH_G + 8 * e, column = 8 * n + 2 * FLASH_T;
		if (row < rows && 8 * n < WIDTH)
			flash_put(y + row * stride + column, o[n][2 * e], o[n][2 * e + 1]);
	}
}

/* Of ni queries from i on and nj keys from j on: whether any pair sees each other, and whether all
 * do. */
template <class A> static __device__ __forceinline__ bool flash_any(int i, int ni, int j, int nj)
{
	return i < A::tq && j < A::tk && j + nj - 1 - i >= A::lower && j - (i + ni - 1) <= A::upper;
}
template <class A> static __device__ __forceinline__ bool flash_all(int i, int ni, int j, int nj)
{
	return i + ni <= A::tq && j + nj <= A::tk && j - (i + ni - 1) >= A::lower &&
	       j + nj - 1 - i <= A::upper;
}

/* The score of query i and key j from their inner product. A::plain: as it is, to be scaled in
 * flash_exp; flash_bounds has been there. */
template <class A, class M>
static __device__ __forceinline__ real flash_score(
	real s, const M *mask, int b, int h, int i, int j, real *t)
{
	if constexpr (A::plain)
		return s;
	else
		return attention_score<A>(s * A::scale(), mask, b, h, i, j, t);
}

/* A::plain: nothing but bounds is asked of a pair. Of a strip of 16 rows and 8 N of the other side,
 * the first of them query i and key j, those out of bounds get -INFINITY: once for all, if all are
 * within. KEYS: the strip's rows are keys. */
template <class A, bool KEYS, int N>
static __device__ __forceinline__ void flash_bounds(real (*s)[4], int i, int j)
{
	if (!A::plain || flash_all<A>(i, KEYS ? 8 * N : 16, j, KEYS ? 16 : 8 * N))
		return;
	UNROLL
	for (int n = 0; n < N; n++)
		UNROLL
	for (int c = 0; c < 4; c++) {
		const int row = FLASH_G + c / 2 * 8, column = 8 * n + 2 * FLASH_T + c % 2;
		const int query = i + (KEYS ? column : row), key = j + (KEYS ? row : column);
		if (query >= A::tq || key >= A::tk || key - query < A::lower ||
			key - query > A::upper)
			s[n][c] = -INFINITY;
	}
}

/* A score as a row's base, which is scaled; the exponential of a score less a base. */
template <class A> static __device__ __forceinline__ real flash_base(real s)
{
	if constexpr (A::plain)
		return s * A::scale();
	else
		return s;
}
template <class A> static __device__ __forceinline__ real flash_exp(real s, real base)
{
	if constexpr (A::plain)
		return exp2_near(__fmaf_rn(s, A::power(), -base * 1.44269504f));
	else
		return exp2_near((s - base) * 1.44269504f);
}

/* Dropout: bit c says whether a lane's element c is kept, of 16 x 8 elements whose first row and
 * column are those of query i and key j. KEYS: rows are keys. Where rows of the matrix have a
 * multiple of 4 elements, each of 4 lanes draws 4 words, and they share them. */
template <class A, bool KEYS>
static __device__ __forceinline__ unsigned flash_kept(
	const int64_t *control, int b, int h, int i, int j)
{
	const int64_t first = attention_first<A>(control), head = (b * A::heads + h) * A::tq;
	uint32_t word[4];
	unsigned kept = 0;
	if constexpr (A::tk % 4 == 0) {
		const int r = KEYS ? FLASH_G % 4 : FLASH_T;
		const int64_t query = i + (KEYS ? 2 * FLASH_T + r % 2 : FLASH_G + r / 2 * 8);
		const int64_t key = j + (KEYS ? FLASH_G / 4 * 4 + r / 2 * 8 : r % 2 * 4);
		stint_philox_at(control[0], control[1], A::node,
			first + (head + query) * A::tk + key, word);
		for (int c = 0; c < 4; c++)
			kept |= (unsigned)(word[c] >> 8 >= A::keep_from) << (4 * r + c);
		kept |= __shfl_xor_sync(0xFFFFFFFFu, kept, KEYS ? 4 : 1);
		kept |= __shfl_xor_sync(0xFFFFFFFFu, kept, KEYS ? 8 : 2);
		if constexpr (KEYS)
			return (kept >> r & 1) | (kept >> (3 + r) & 2) | (kept >> (6 + r) & 4) |
			       (kept >> (9 + r) & 8);
		else
			return (kept >> 2 * r & 3) | (kept >> (8 + 2 * r) & 3) << 2;
	} else {
		for (int c = 0; c < 4; c++) {
			const int row = FLASH_G + c / 2 * 8, column = 2 * FLASH_T + c % 2;
			const int64_t at = first + (head + i + (KEYS ? column : row)) * A::tk + j +
					   (KEYS ? row : column);
			stint_philox_at(control[0], control[1], A::node, at & ~(int64_t)3, word);
			const uint32_t w = at & 2 ? (at & 1 ? word[3] : word[2])
						  : (at & 1 ? word[1] : word[0]);
			kept |= (unsigned)(w >> 8 >= A::keep_from) << c;
		}
		return kept;
	}
}

/* A strip's scores become exponentials relative to each row's largest so far, m[]; l[] are the
 * lane's own sums so far, and what came before is to be multiplied by fade[]. A row is with 4
 * lanes. */
template <class A, int N>
static __device__ __forceinline__ void flash_softmax(real (*s)[4], real *m, real *l, real *fade)
{
	UNROLL
	for (int e = 0; e < 2; e++) {
		real top = m[e], sum = 0;
		UNROLL
		for (int n = 0; n < N; n++)
			top = fmaxf(top, fmaxf(s[n][2 * e], s[n][2 * e + 1]));
		top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFu, top, 1));
		top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFu, top, 2));
		const real base = top > -INFINITY ? flash_base<A>(top) : 0;
		fade[e] = flash_exp<A>(m[e], base);
		UNROLL
		for (int n = 0; n < N; n++) {
			s[n][2 * e] = flash_exp<A>(s[n][2 * e], base);
			s[n][2 * e + 1] = flash_exp<A>(s[n][2 * e + 1], base);
			sum += s[n][2 * e] + s[n][2 * e + 1];
		}
		m[e] = top;
		l[e] = l[e] * fade[e] + sum;
	}
}

/* A strip of queries from i on, at keys j ...: scores to probabilities, and o and l as in
 * flash_softmax. */
template <class A, int N, int V, class M>
static __device__ __forceinline__ void flash_strip(real (*s)[4], real (*o)[4], real *m, real *l,
	const M *mask, const int64_t *control, int b, int h, int i, int j)
{
	real fade[2], unused;
	flash_bounds<A, false, N>(s, i, j);
	UNROLL
	for (int n = 0; n < N; n++)
		UNROLL
	for (int c = 0; c < 4; c++)
		s[n][c] = flash_score<A>(s[n][c], mask, b, h, i + FLASH_G + c / 2 * 8,
			j + 8 * n + 2 * FLASH_T + c % 2, &unused);
	flash_softmax<A, N>(s, m, l, fade);
	UNROLL
	for (int n = 0; n < V; n++)
		UNROLL
	for (int c = 0; c < 4; c++)
		o[n][c] *= fade[c / 2];
	if constexpr (A::noisy) {
		UNROLL
		for (int n = 0; n < N; n++) {
			const unsigned kept = flash_kept<A, false>(control, b, h, i, j + 8 * n);
			UNROLL
			for (int c = 0; c < 4; c++)
				s[n][c] *= kept >> c & 1 ? A::keep() : 0;
		}
	}
}

/* A strip's sums over all keys, divided and stored, and lse. */
template <class A, int V, class Y>
static __device__ __forceinline__ void flash_finish(
	real (*o)[4], const real *m, real *l, Y *y, real *lse, int b, int h, int i)
{
	UNROLL
	for (int e = 0; e < 2; e++) {
		l[e] += __shfl_xor_sync(0xFFFFFFFFu, l[e], 1);
		l[e] += __shfl_xor_sync(0xFFFFFFFFu, l[e], 2);
		const bool none = A::empty == 1 ? l[e] == 0 : A::empty == 2 ? !(l[e] > 0) : false;
		const real share = none ? 0 : 1 / l[e];
		UNROLL
		for (int n = 0; n < V; n++) {
			o[n][2 * e] = none ? 0 : o[n][2 * e] * share;
			o[n][2 * e + 1] = none ? 0 : o[n][2 * e + 1] * share;
		}
		const int row = i + FLASH_G + 8 * e;
		if (FLASH_T == 0 && row < A::tq)
			lse[(b * A::heads + h) * A::tq + row] = none ? 0
								     : flash_base<A>(m[e]) +
										LOG(l[e]);
	}
	flash_store<A::dv, V>(o, y + b * A::o0 + h * A::o1 + i * A::o2, A::o2, A::tq - i);
}

/* A block's queries, from i0 on, of one head. */
template <class A, class T, class M, class Y>
static __device__ __forceinline__ void flash_rows(flash_tiles<A> &tiles, const T *q, const T *k,
	const T *v, const M *mask, const int64_t *control, Y *y, real *lse, int b, int h, int i0)
{
	constexpr int S = A::strips, C = A::columns, N = A::step / 8, K = A::kwidth / 16,
		      V = A::vwidth / 8;
	const int i = i0 + FLASH_WARP * 16 * S,
		  end = MIN(MIN(i0 + A::rows, A::tq) + A::upper, A::tk);
	unsigned f[S][K][4];
	real o[S][V][4] = {}, m[S][2], l[S][2] = {};
	q += b * A::q0 + h * A::q1;
	k += b * A::k0 + h / A::group * A::k1;
	v += b * A::v0 + h / A::group * A::v1;
	int j = MAX(i0 + A::lower, 0) / C * C;
	int turn = 0;
	__syncthreads(); /* the tiles of the task before have been read */
	flash_fetch<A>(tiles, 0, k, v, j, end);
	UNROLL
	for (int r = 0; r < S; r++) {
		flash_left<A::d, K>(f[r], q + (i + 16 * r) * A::q2, A::q2, A::tq - i - 16 * r);
		m[r][0] = m[r][1] = -INFINITY;
	}
	for (; j < end; j += C, turn ^= 1) {
		cp_async_wait<0>();
		__syncthreads(); /* this turn's tiles are there for all, and those of the turn
				    before have been read */
		flash_fetch<A>(tiles, turn ^ 1, k, v, j + C, end);
		ATTENTION_ROLL
		for (int c = 0; c < C; c += 8 * N) {
			if (!flash_any<A>(i, 16 * S, j + c, 8 * N))
				continue;
			real s[S][N][4] = {};
			flash_dots<A, S, N, K>(s, f, tiles.x[turn][0] + c);
			UNROLL
			for (int r = 0; r < S; r++)
				flash_strip<A, N, V>(s[r], o[r], m[r], l[r], mask, control, b, h,
					i + 16 * r, j + c);
			flash_sum<A, S, N, V>(o, s, tiles.x[turn][1] + c);
		}
	}
	UNROLL
	for (int r = 0; r < S; r++)
		flash_finish<A, V>(o[r], m[r], l[r], y, lse, b, h, i + 16 * r);
}

template <class A, class T, class M, class Y>
static __device__ __forceinline__ void flash_forward(flash_tiles<A> &tiles, Y *y, real *lse,
	const T *q, const T *k, const T *v, const M *mask, const int64_t *control)
{
	for (int task = (int)blockIdx.x; task < A::tasks; task += (int)gridDim.x) {
		const int tile = task % A::qtiles, head = task / A::qtiles;
		flash_rows<A>(tiles, q, k, v, mask, control, y, lse, head / A::heads,
			head % A::heads,
			(A::qtiles - 1 - tile) * A::rows); /* the longest rows first */
	}
}

#endif
