/* The matrix product of generated C: packed panels, a tile of registers, blocks over threads.
 * The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix
 * Multiplication" (2008). */
#include "ops/gemm.h"

static const char thread_text[] = "#ifdef _OPENMP\n"
				  "#include <omp.h>\n"
				  "#endif\n"
				  "static inline int thread_index(void)\n"
				  "{\n"
				  "#ifdef _OPENMP\n"
				  "	return omp_get_thread_num();\n"
				  "#else\n"
				  "	return 0;\n"
				  "#endif\n"
				  "}\n";

/* clang-format off */
static const char tile_text[] =
"/* Matrix products. A block of c is summed from tiles of GEMM_MR rows and GEMM_NR columns, GEMM_KC\n"
" * terms at a time; an element's terms are added in the same order for any blocks and threads. */\n"
"#if defined(__AVX512F__)\n"
"enum { GEMM_BYTES = 64, GEMM_MR = 8 };\n"
"#elif defined(__AVX__)\n"
"enum { GEMM_BYTES = 32, GEMM_MR = 6 };\n"
"#else\n"
"enum { GEMM_BYTES = 16, GEMM_MR = 6 };\n"
"#endif\n"
"enum {\n"
"	GEMM_LANES = GEMM_BYTES / sizeof(real),\n"
"	GEMM_NR = 2 * GEMM_LANES,\n"
"	GEMM_KC = 256,\n"
"	GEMM_MC = 96,\n"
"	GEMM_NC = 256\n"
"};\n"
"typedef real gemm_vec __attribute__((vector_size(GEMM_BYTES), aligned(sizeof(real)), may_alias));\n"
"\n"
"/* Here, and only here, a product and a sum round once where the machine has such an instruction. */\n"
"#ifdef __clang__\n"
"#define GEMM_CONTRACT\n"
"#else\n"
"#define GEMM_CONTRACT __attribute__((noinline, optimize(\"O3\", \"fp-contract=fast\")))\n"
"#endif\n"
"/* t[GEMM_MR][GEMM_NR] = a panel of k columns times a panel of k rows. */\n"
"GEMM_CONTRACT static void gemm_tile(int64_t k, const real *restrict a, const real *restrict b, real *restrict t)\n"
"{\n"
"#ifdef __clang__\n"
"#pragma clang fp contract(fast)\n"
"#endif\n"
"	gemm_vec s[GEMM_MR][2] = {{{0}}};\n"
"	for (int64_t p = 0; p < k; p++)\n"
"		for (int i = 0; i < GEMM_MR; i++)\n"
"			for (int j = 0; j < 2; j++)\n"
"				s[i][j] += a[p * GEMM_MR + i] * *(const gemm_vec *)(b + p * GEMM_NR + j * GEMM_LANES);\n"
"	for (int i = 0; i < GEMM_MR; i++)\n"
"		for (int j = 0; j < 2; j++)\n"
"			*(gemm_vec *)(t + i * GEMM_NR + j * GEMM_LANES) = s[i][j];\n"
"}\n";

static const char pack_a_text[] =
"/* Rows of a (row stride rs, column stride cs) as panels of GEMM_MR rows, filled up with zeros. */\n"
"static void gemm_pack_a(int64_t m, int64_t k, const real *a, int64_t rs, int64_t cs, real *restrict p)\n"
"{\n"
"	for (int64_t i0 = 0; i0 < m; i0 += GEMM_MR, p += k * GEMM_MR) {\n"
"		const int64_t mr = m - i0 < GEMM_MR ? m - i0 : GEMM_MR;\n"
"		const real *s = a + i0 * rs;\n"
"		if (rs == 1 && mr == GEMM_MR) {\n"
"			for (int64_t q = 0; q < k; q++)\n"
"				for (int i = 0; i < GEMM_MR; i++)\n"
"					p[q * GEMM_MR + i] = s[q * cs + i];\n"
"			continue;\n"
"		}\n"
"		for (int64_t i = 0; i < GEMM_MR; i++)\n"
"			for (int64_t q = 0; q < k; q++)\n"
"				p[q * GEMM_MR + i] = i < mr ? s[i * rs + q * cs] : 0;\n"
"	}\n"
"}\n";

static const char pack_b_text[] =
"/* Columns of b as panels of GEMM_NR columns, filled up with zeros. */\n"
"static void gemm_pack_b(int64_t k, int64_t n, const real *b, int64_t rs, int64_t cs, real *restrict p)\n"
"{\n"
"	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NR, p += k * GEMM_NR) {\n"
"		const int64_t nr = n - j0 < GEMM_NR ? n - j0 : GEMM_NR;\n"
"		const real *s = b + j0 * cs;\n"
"		if (cs == 1 && nr == GEMM_NR) {\n"
"			for (int64_t q = 0; q < k; q++)\n"
"				for (int j = 0; j < GEMM_NR; j++)\n"
"					p[q * GEMM_NR + j] = s[q * rs + j];\n"
"			continue;\n"
"		}\n"
"		for (int64_t j = 0; j < GEMM_NR; j += GEMM_LANES) {\n"
"			if (nr - j >= GEMM_LANES)\n"
"				for (int64_t q = 0; q < k; q++)\n"
"					for (int v = 0; v < GEMM_LANES; v++)\n"
"						p[q * GEMM_NR + j + v] = s[q * rs + (j + v) * cs];\n"
"			else\n"
"				for (int64_t q = 0; q < k; q++)\n"
"					for (int v = 0; v < GEMM_LANES; v++)\n"
"						p[q * GEMM_NR + j + v] = j + v < nr ? s[q * rs + (j + v) * cs] : 0;\n"
"		}\n"
"	}\n"
"}\n";

static const char macro_text[] =
"/* c = (add: c +) the product of packed panels. */\n"
"static void gemm_macro(int64_t m, int64_t n, int64_t k, const real *pa, const real *pb, real *c, int64_t ldc, int add)\n"
"{\n"
"	real t[GEMM_MR * GEMM_NR];\n"
"	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NR)\n"
"		for (int64_t i0 = 0; i0 < m; i0 += GEMM_MR) {\n"
"			const int64_t mr = m - i0 < GEMM_MR ? m - i0 : GEMM_MR;\n"
"			const int64_t nr = n - j0 < GEMM_NR ? n - j0 : GEMM_NR;\n"
"			gemm_tile(k, pa + i0 * k, pb + j0 * k, t);\n"
"			for (int64_t i = 0; i < mr; i++) {\n"
"				real *restrict y = c + (i0 + i) * ldc + j0;\n"
"				const real *x = t + i * GEMM_NR;\n"
"				if (add)\n"
"					for (int64_t j = 0; j < nr; j++)\n"
"						y[j] += x[j];\n"
"				else\n"
"					for (int64_t j = 0; j < nr; j++)\n"
"						y[j] = x[j];\n"
"			}\n"
"		}\n"
"}\n";

static const char block_text[] =
"/* c[m][n] = (add: c +) a[m][k] b[k][n] by one thread. */\n"
"static void gemm_block(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars, int64_t acs, const real *b,\n"
"	int64_t brs, int64_t bcs, real *c, int64_t ldc, int add, real *w)\n"
"{\n"
"	for (int64_t i = 0; !add && k == 0 && i < m; i++)\n"
"		for (int64_t j = 0; j < n; j++)\n"
"			c[i * ldc + j] = 0;\n"
"	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NC)\n"
"		for (int64_t k0 = 0; k0 < k; k0 += GEMM_KC) {\n"
"			const int64_t nc = n - j0 < GEMM_NC ? n - j0 : GEMM_NC;\n"
"			const int64_t kc = k - k0 < GEMM_KC ? k - k0 : GEMM_KC;\n"
"			real *pa = w + (nc + GEMM_NR - 1) / GEMM_NR * GEMM_NR * kc;\n"
"			gemm_pack_b(kc, nc, b + k0 * brs + j0 * bcs, brs, bcs, w);\n"
"			for (int64_t i0 = 0; i0 < m; i0 += GEMM_MC) {\n"
"				const int64_t mc = m - i0 < GEMM_MC ? m - i0 : GEMM_MC;\n"
"				gemm_pack_a(mc, kc, a + i0 * ars + k0 * acs, ars, acs, pa);\n"
"				gemm_macro(mc, nc, kc, pa, w, c + i0 * ldc + j0, ldc, add || k0 > 0);\n"
"			}\n"
"		}\n"
"}\n";
/* clang-format on */

void gemm_emit_thread(struct emit *e)
{
	emit_helper(e, "thread_index", thread_text);
}

void gemm_emit_macro(struct emit *e)
{
	emit_helper(e, "gemm_tile", tile_text);
	emit_helper(e, "gemm_macro", macro_text);
}

void gemm_emit_pack_a(struct emit *e)
{
	emit_helper(e, "gemm_tile", tile_text);
	emit_helper(e, "gemm_pack_a", pack_a_text);
}

void gemm_emit_pack_b(struct emit *e)
{
	emit_helper(e, "gemm_tile", tile_text);
	emit_helper(e, "gemm_pack_b", pack_b_text);
}

void gemm_emit_block(struct emit *e)
{
	gemm_emit_thread(e);
	gemm_emit_macro(e);
	gemm_emit_pack_a(e);
	gemm_emit_pack_b(e);
	emit_helper(e, "gemm_block", block_text);
}

struct gemm_split gemm_split(int64_t batch, int64_t m, int64_t n, int threads)
{
	/* Packing an element costs about as much as this many of its products. */
	enum { PACK = 16, MOST = 64 };
	const int64_t t = threads;
	struct gemm_split best = {m, n};
	double best_cost = INFINITY;
	for (int64_t pm = 1; pm <= min64(div_up(m, GEMM_ROW_UNIT), min64(MOST, 4 * t)); pm++)
		for (int64_t pn = 1; pn <= min64(div_up(n, GEMM_COL_UNIT), min64(MOST, 4 * t));
			pn++) {
			const int64_t mb = round_up(div_up(m, pm), GEMM_ROW_UNIT);
			const int64_t nb = round_up(div_up(n, pn), GEMM_COL_UNIT);
			const int64_t blocks = batch * div_up(m, mb) * div_up(n, nb);
			const double rows = (double)min64(mb, m), cols = (double)min64(nb, n);
			const double cost = (double)div_up(blocks, t) *
					    (rows * cols +
						    PACK * (rows * (double)div_up(nb, GEMM_NC) +
								   cols));
			if (cost < best_cost) {
				best_cost = cost;
				best = (struct gemm_split){mb, nb};
			}
		}
	return best;
}

int64_t gemm_block_elements(int64_t mb, int64_t nb, int64_t k)
{
	const int64_t rows = round_up(min64(mb, GEMM_MC), GEMM_ROW_UNIT);
	const int64_t cols = round_up(min64(nb, GEMM_NC), GEMM_COL_UNIT);
	return round_up((rows + cols) * min64(k, GEMM_KC), 16);
}
