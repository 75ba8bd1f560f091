/* SPDX-License-Identifier: MIT-0 */
/* Operands of products, packed from elements of type T: a template of gemm.h's own, included once
 * for each type; OF_T(f) is the name that f gets. */
#ifdef STINT_NO_VECTORS
/* p[j][i] = x[i][j] for four i and n j; the rows of x are xs apart, those of p ps. */
static inline void OF_T(gemm_turn)(
	int64_t n, const T *restrict x, int64_t xs, real *restrict p, int64_t ps)
{
	for (int64_t j = 0; j < n; j++)
		for (int i = 0; i < 4; i++)
			p[j * ps + i] = VALUE(x[i * xs + j]);
}
#else
/* p[j][i] = x[i][j] for four i and n j; the rows of x are xs apart, those of p ps. */
static inline void OF_T(gemm_turn)(
	int64_t n, const T *restrict x, int64_t xs, real *restrict p, int64_t ps)
{
	const int64_t whole = n - n % 4;
	for (int64_t j = 0; j < whole; j += 4) {
		const gemm_four a = OF_T(GEMM_FOUR)(x + j), b = OF_T(GEMM_FOUR)(x + xs + j);
		const gemm_four c = OF_T(GEMM_FOUR)(x + 2 * xs + j),
				d = OF_T(GEMM_FOUR)(x + 3 * xs + j);
		const gemm_four low = GEMM_PICK(a, b, 0, 4, 1, 5),
				low2 = GEMM_PICK(c, d, 0, 4, 1, 5);
		const gemm_four high = GEMM_PICK(a, b, 2, 6, 3, 7),
				high2 = GEMM_PICK(c, d, 2, 6, 3, 7);
		*(gemm_four *)(p + j * ps) = GEMM_PICK(low, low2, 0, 1, 4, 5);
		*(gemm_four *)(p + (j + 1) * ps) = GEMM_PICK(low, low2, 2, 3, 6, 7);
		*(gemm_four *)(p + (j + 2) * ps) = GEMM_PICK(high, high2, 0, 1, 4, 5);
		*(gemm_four *)(p + (j + 3) * ps) = GEMM_PICK(high, high2, 2, 3, 6, 7);
	}
	for (int64_t j = whole; j < n; j++)
		for (int i = 0; i < 4; i++)
			p[j * ps + i] = VALUE(x[i * xs + j]);
}
#endif

/* Rows of a (row stride rs, column stride cs) as panels of GEMM_MR rows, filled up with zeros. */
KERNEL_PART void OF_T(gemm_pack_a)(
	int64_t m, int64_t k, const T *a, int64_t rs, int64_t cs, real *restrict p)
{
	for (int64_t i0 = 0; i0 < m; i0 += GEMM_MR, p += k * GEMM_MR) {
		const int64_t mr = m - i0 < GEMM_MR ? m - i0 : GEMM_MR;
		const T *s = a + i0 * rs;
		if (rs == 1 && mr == GEMM_MR) {
			for (int64_t q = 0; q < k; q++)
				for (int i = 0; i < GEMM_MR; i++)
					p[q * GEMM_MR + i] = VALUE(s[q * cs + i]);
			continue;
		}
		int64_t turned = 0;
		for (int64_t q = 0; mr < GEMM_MR && q < k * GEMM_MR; q++)
			p[q] = 0;
		for (; cs == 1 && turned + 4 <= mr; turned += 4)
			OF_T(gemm_turn)(k, s + turned * rs, rs, p + turned, GEMM_MR);
		if (turned && turned < mr) /* the last four, some of them again */
			OF_T(gemm_turn)(k, s + (mr - 4) * rs, rs, p + mr - 4, GEMM_MR);
		for (int64_t i = 0; !turned && i < mr; i++)
			for (int64_t q = 0; q < k; q++)
				p[q * GEMM_MR + i] = VALUE(s[i * rs + q * cs]);
	}
}

/* Columns of b as panels of GEMM_NR columns, filled up with zeros. */
KERNEL_PART void OF_T(gemm_pack_b)(
	int64_t k, int64_t n, const T *b, int64_t rs, int64_t cs, real *restrict p)
{
	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NR, p += k * GEMM_NR) {
		const int64_t nr = n - j0 < GEMM_NR ? n - j0 : GEMM_NR;
		const T *s = b + j0 * cs;
		if (cs == 1 && nr == GEMM_NR) {
			for (int64_t q = 0; q < k; q++)
				for (int j = 0; j < GEMM_NR; j++)
					p[q * GEMM_NR + j] = VALUE(s[q * rs + j]);
			continue;
		}
		const int64_t turned = rs == 1 ? nr - nr % 4 : 0;
		for (int64_t q = 0; nr < GEMM_NR && q < k * GEMM_NR; q++)
			p[q] = 0;
		for (int64_t q = 0; turned && q < k; q += 16)
			for (int64_t j = 0; j < turned; j += 4)
				OF_T(gemm_turn)
		(k - q < 16 ? k - q : 16, s + q + j * cs, cs, p + q * GEMM_NR + j, GEMM_NR);
		if (turned && turned < nr) /* the last four, some of them again */
			OF_T(gemm_turn)(k, s + (nr - 4) * cs, cs, p + nr - 4, GEMM_NR);
		for (int64_t q = 0; !turned && q < k; q++)
			for (int64_t j = 0; j < nr; j++)
				p[q * GEMM_NR + j] = VALUE(s[q * rs + j * cs]);
	}
}
