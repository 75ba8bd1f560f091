/* SPDX-License-Identifier: MIT-0 */
/* The micro-kernel, which all time of products and convolutions goes to: a template of gemm.h's
 * own, included once for each instruction set that a step may meet.
 *
 * A tile of GEMM_ROWS by GEMM_VECTORS vectors of c stays in registers while k terms pass; each term
 * is a column of a's panel times a row of b's, an outer product (Goto and van de Geijn, "Anatomy of
 * High-Performance Matrix Multiplication", 2008, section 5; Van Zee and van de Geijn, "BLIS", 2015,
 * section 4):
 *
 *	             b: GEMM_VECTORS vectors
 *	             +--------+--------+
 *	    a: one   |        |        |
 *	    number   | s[0][0]  s[0][1]|
 *	    a row    |  ...      ...   |     s[i][j] = FUSED(a[i], b[j], s[i][j])
 *	             +--------+--------+
 *
 * What bounds it: a processor of today starts two fused multiply-adds a cycle and ends each four
 * cycles later, so that at least 8 sums must be on their way; a tile has 12 or 24. A term of it
 * loads GEMM_VECTORS vectors and repeats GEMM_ROWS numbers of a over a vector, each a load too, of
 * which there are two a cycle as well: 8 loads for 12 multiply-adds with AVX2, 14 for 24 with
 * AVX-512. The tile has to fit: AVX2's 16 registers hold 12 sums, 2 of b and 1 of a, the 32 of
 * AVX-512 24 and 2 and 1, NEON's 32 24 and 4 and 2.
 *
 * An element's sum is one chain over k in its order, from zero, then added to c where `add` says
 * so, whatever the tile and the vectors: the bits depend on neither.
 *
 * Takes GEMM_ISA(f), the name that f gets; GEMM_BYTES of a vector; GEMM_ROWS, which divides
 * GEMM_MR; GEMM_VECTORS; GEMM_HOW, the functions' attributes; GEMM_SOFT where the processor has no
 * such instruction (madd.h). */
#define GEMM_LANES (GEMM_BYTES / (int)sizeof(real))
#define GEMM_WIDE (GEMM_VECTORS * GEMM_LANES)
#define GEMM_TILE GEMM_ISA(gemm_tile)
#define GEMM_WHOLE GEMM_ISA(gemm_whole)
#define GEMM_HALF GEMM_ISA(gemm_half)

typedef real GEMM_ISA(gemm_vec)
	__attribute__((vector_size(GEMM_BYTES), aligned(sizeof(real)), may_alias));

/* c[rows][vectors], of row stride ldc, = (add: c +) k terms of a panel of a and of b. A term's row
 * of b is the next of its panel, whose vectors are `gap` apart, or lies at its number of `off`. */
GEMM_HOW static inline __attribute__((always_inline)) void GEMM_TILE(int rows, int vectors,
	int64_t k, const real *restrict a, const real *restrict b, const int32_t *restrict off,
	int64_t gap, real *restrict c, int64_t ldc, int add)
{
	GEMM_CONTRACT
	typedef GEMM_ISA(gemm_vec) vec;
	vec s[GEMM_ROWS][GEMM_VECTORS] = {{{0}}};
	for (int i = 0; off && i < rows; i++) { /* where the sums go is here when they are */
		PREFETCH(c + i * ldc, 1);
		PREFETCH(c + i * ldc + vectors * GEMM_LANES - 1, 1);
	}
	for (int64_t p = 0; p < k; p++, a += GEMM_MR) {
		const real *const row = b + (off ? off[p] : p * GEMM_NR);
		GEMM_UNROLL
		for (int i = 0; i < rows; i++) {
			GEMM_UNROLL
			for (int j = 0; j < vectors; j++) {
#ifdef GEMM_SOFT
				real *const to = (real *)&s[i][j];
				for (int l = 0; l < GEMM_LANES; l++)
					to[l] = FUSED(a[i], row[j * gap + l], to[l]);
#else
				s[i][j] += a[i] * *(const vec *)(row + j * gap);
#endif
			}
		}
	}
	GEMM_UNROLL
	for (int i = 0; i < rows; i++) {
		GEMM_UNROLL
		for (int j = 0; j < vectors; j++) {
			vec *const to = (vec *)(c + i * ldc + j * GEMM_LANES);
			if (add)
				s[i][j] = *to + s[i][j];
			*to = s[i][j];
		}
	}
}

/* A whole tile, and one of half its width. */
GEMM_HOW KERNEL_PART __attribute__((noinline)) void GEMM_WHOLE(
	int64_t k, const real *a, const real *b, int64_t gap, real *c, int64_t ldc, int add)
{
	GEMM_TILE(GEMM_ROWS, GEMM_VECTORS, k, a, b, NULL, gap, c, ldc, add);
}

GEMM_HOW KERNEL_PART __attribute__((noinline)) void GEMM_HALF(
	int64_t k, const real *a, const real *b, int64_t gap, real *c, int64_t ldc, int add)
{
	GEMM_TILE(GEMM_ROWS, GEMM_VECTORS / 2, k, a, b, NULL, gap, c, ldc, add);
}

/* gemm_part. A panel of b that fits the nearest cache meets all of a's, which come from the next;
 * tiles at the ends are computed beside c. */
KERNEL_PART __attribute__((noinline)) void GEMM_ISA(gemm_part)(int64_t m, int64_t n, int64_t k,
	const real *pa, int64_t as, const real *pb, int64_t bs, real *c, int64_t ldc, int add)
{
	const int64_t gap = GEMM_WIDE > GEMM_NR ? GEMM_NR * bs : GEMM_LANES;
	for (int64_t j = 0; j < n; j += GEMM_WIDE)
		for (int64_t i = 0; i < m; i += GEMM_ROWS) {
			const int64_t mr = MIN(m - i, GEMM_ROWS), nr = MIN(n - j, GEMM_WIDE);
			const real *const a = pa + (i - i % GEMM_MR) * as + i % GEMM_MR;
			const real *const b = pb + (j - j % GEMM_NR) * bs + j % GEMM_NR;
			const int half = nr <= GEMM_WIDE / 2;
			const int whole = mr == GEMM_ROWS && nr == GEMM_WIDE >> half;
			real t[GEMM_ROWS * GEMM_WIDE], *const to = c + i * ldc + j;
			(half ? GEMM_HALF : GEMM_WHOLE)(k, a, b, gap, whole ? to : t,
				whole ? ldc : GEMM_WIDE, whole && add);
			if (!whole)
				gemm_end(mr, nr, t, GEMM_WIDE, to, ldc, add);
		}
}

/* Tiles whose rows of b lie anywhere: of GEMM_ROWS or of a part of them, so that the last rows of
 * many cost no more than they are. */
#define GEMM_OFF(name, rows, vectors)                                                              \
	GEMM_HOW KERNEL_PART __attribute__((noinline)) void GEMM_ISA(name)(int64_t k,              \
		const real *a, const real *b, const int32_t *off, real *c, int64_t ldc, int add)   \
	{                                                                                          \
		GEMM_TILE(rows, vectors, k, a, b, off, GEMM_LANES, c, ldc, add);                   \
	}
GEMM_OFF(gemm_off, GEMM_ROWS, GEMM_VECTORS)
GEMM_OFF(gemm_off_low, GEMM_ROWS / 3, GEMM_VECTORS)
GEMM_OFF(gemm_off_mid, GEMM_ROWS * 2 / 3, GEMM_VECTORS)
GEMM_OFF(gemm_off_half, GEMM_ROWS, GEMM_VECTORS / 2)

/* gemm_part_off. */
KERNEL_PART __attribute__((noinline)) void GEMM_ISA(gemm_part_off)(int64_t m, int64_t n, int64_t k,
	const real *pa, int64_t as, const real *b, const int32_t *off, real *c, int64_t ldc,
	int add)
{
	for (int64_t j = 0; j < n; j += GEMM_WIDE)
		for (int64_t i = 0; i < m; i += GEMM_ROWS) {
			const real *const a = pa + (i - i % GEMM_MR) * as + i % GEMM_MR;
			const int64_t mr = MIN(m - i, GEMM_ROWS), nr = MIN(n - j, GEMM_WIDE);
			const int half = nr <= GEMM_WIDE / 2,
				  part = half ? 3 : (int)(mr * 3 + GEMM_ROWS - 1) / GEMM_ROWS;
			const int whole = mr * 3 == GEMM_ROWS * part && nr == GEMM_WIDE >> half;
			real t[GEMM_ROWS * GEMM_WIDE], *const to = c + i * ldc + j;
			(half               ? GEMM_ISA(gemm_off_half)
				: part == 3 ? GEMM_ISA(gemm_off)
				: part == 2 ? GEMM_ISA(gemm_off_mid)
					    : GEMM_ISA(gemm_off_low))(k, a, b + j, off,
				whole ? to : t, whole ? ldc : GEMM_WIDE, whole && add);
			if (!whole)
				gemm_end(mr, nr, t, GEMM_WIDE, to, ldc, add);
		}
}
#undef GEMM_OFF
#undef GEMM_ISA
#undef GEMM_BYTES
#undef GEMM_ROWS
#undef GEMM_VECTORS
#undef GEMM_HOW
#undef GEMM_LANES
#undef GEMM_WIDE
#undef GEMM_TILE
#undef GEMM_WHOLE
#undef GEMM_HALF
