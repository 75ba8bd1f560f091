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
"/* c[GEMM_MR][GEMM_NR], of row stride ldc, = (add: c +) a panel of k columns times a panel of k rows. */\n"
"GEMM_CONTRACT static void gemm_tile(int64_t k, const real *restrict a, const real *restrict b, real *restrict c,\n"
"	int64_t ldc, int add)\n"
"{\n"
"#ifdef __clang__\n"
"#pragma clang fp contract(fast)\n"
"#endif\n"
"	const gemm_vec zero = {0};\n"
"	gemm_vec s[GEMM_MR][2];\n"
"	for (int i = 0; i < GEMM_MR; i++)\n"
"		s[i][0] = s[i][1] = zero;\n"
"	for (int64_t p = 0; p < k; p++)\n"
"		for (int i = 0; i < GEMM_MR; i++)\n"
"			for (int j = 0; j < 2; j++)\n"
"				s[i][j] += a[p * GEMM_MR + i] * *(const gemm_vec *)(b + p * GEMM_NR + j * GEMM_LANES);\n"
"	for (int i = 0; add && i < GEMM_MR; i++)\n"
"		for (int j = 0; j < 2; j++)\n"
"			s[i][j] = *(gemm_vec *)(c + i * ldc + j * GEMM_LANES) + s[i][j];\n"
"	for (int i = 0; i < GEMM_MR; i++)\n"
"		for (int j = 0; j < 2; j++)\n"
"			*(gemm_vec *)(c + i * ldc + j * GEMM_LANES) = s[i][j];\n"
"}\n";

static const char four_text[] =
"/* Squares of four are transposed in registers. */\n"
"typedef real gemm_four __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));\n"
"#ifdef __clang__\n"
"#define GEMM_PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)\n"
"#else\n"
"typedef __typeof__(__builtin_choose_expr(sizeof(real) == 4, (int32_t)0, (int64_t)0)) gemm_int;\n"
"typedef gemm_int gemm_places __attribute__((vector_size(4 * sizeof(real))));\n"
"#define GEMM_PICK(x, y, ...) __builtin_shuffle(x, y, (gemm_places){__VA_ARGS__})\n"
"#endif\n"
;

static const char turn_load_text[] =
"#define @name(x) (*(const gemm_four *)(x))\n";

static const char turn_load_narrow_text[] =
"#define @name(x) ((gemm_four){WIDE((x)[0]), WIDE((x)[1]), WIDE((x)[2]), WIDE((x)[3])})\n";

static const char turn_text[] =
"/* p[j][i] = x[i][j] for four i and n j; the rows of x are xs apart, those of p ps. */\n"
"static inline void @name(int64_t n, const @0 *restrict x, int64_t xs, real *restrict p, int64_t ps)\n"
"{\n"
"	const int64_t whole = n - n % 4;\n"
"	for (int64_t j = 0; j < whole; j += 4) {\n"
"		const gemm_four a = gemm_load@suffix(x + j), b = gemm_load@suffix(x + xs + j);\n"
"		const gemm_four c = gemm_load@suffix(x + 2 * xs + j), d = gemm_load@suffix(x + 3 * xs + j);\n"
"		const gemm_four low = GEMM_PICK(a, b, 0, 4, 1, 5), low2 = GEMM_PICK(c, d, 0, 4, 1, 5);\n"
"		const gemm_four high = GEMM_PICK(a, b, 2, 6, 3, 7), high2 = GEMM_PICK(c, d, 2, 6, 3, 7);\n"
"		*(gemm_four *)(p + j * ps) = GEMM_PICK(low, low2, 0, 1, 4, 5);\n"
"		*(gemm_four *)(p + (j + 1) * ps) = GEMM_PICK(low, low2, 2, 3, 6, 7);\n"
"		*(gemm_four *)(p + (j + 2) * ps) = GEMM_PICK(high, high2, 0, 1, 4, 5);\n"
"		*(gemm_four *)(p + (j + 3) * ps) = GEMM_PICK(high, high2, 2, 3, 6, 7);\n"
"	}\n"
"	for (int64_t j = whole; j < n; j++)\n"
"		for (int i = 0; i < 4; i++)\n"
"			p[j * ps + i] = @value0(x[i * xs + j]);\n"
"}\n";

static const char pack_a_text[] =
"/* Rows of a (row stride rs, column stride cs) as panels of GEMM_MR rows, filled up with zeros. */\n"
"static void @name(int64_t m, int64_t k, const @0 *a, int64_t rs, int64_t cs, real *restrict p)\n"
"{\n"
"	for (int64_t i0 = 0; i0 < m; i0 += GEMM_MR, p += k * GEMM_MR) {\n"
"		const int64_t mr = m - i0 < GEMM_MR ? m - i0 : GEMM_MR;\n"
"		const @0 *s = a + i0 * rs;\n"
"		if (rs == 1 && mr == GEMM_MR) {\n"
"			for (int64_t q = 0; q < k; q++)\n"
"				for (int i = 0; i < GEMM_MR; i++)\n"
"					p[q * GEMM_MR + i] = @value0(s[q * cs + i]);\n"
"			continue;\n"
"		}\n"
"		int64_t turned = 0;\n"
"		for (int64_t q = 0; mr < GEMM_MR && q < k * GEMM_MR; q++)\n"
"			p[q] = 0;\n"
"		for (; cs == 1 && turned + 4 <= mr; turned += 4)\n"
"			gemm_turn@suffix(k, s + turned * rs, rs, p + turned, GEMM_MR);\n"
"		if (turned && turned < mr) /* the last four, some of them again */\n"
"			gemm_turn@suffix(k, s + (mr - 4) * rs, rs, p + mr - 4, GEMM_MR);\n"
"		for (int64_t i = 0; !turned && i < mr; i++)\n"
"			for (int64_t q = 0; q < k; q++)\n"
"				p[q * GEMM_MR + i] = @value0(s[i * rs + q * cs]);\n"
"	}\n"
"}\n";

static const char pack_b_text[] =
"/* Columns of b as panels of GEMM_NR columns, filled up with zeros. */\n"
"static void @name(int64_t k, int64_t n, const @0 *b, int64_t rs, int64_t cs, real *restrict p)\n"
"{\n"
"	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NR, p += k * GEMM_NR) {\n"
"		const int64_t nr = n - j0 < GEMM_NR ? n - j0 : GEMM_NR;\n"
"		const @0 *s = b + j0 * cs;\n"
"		if (cs == 1 && nr == GEMM_NR) {\n"
"			for (int64_t q = 0; q < k; q++)\n"
"				for (int j = 0; j < GEMM_NR; j++)\n"
"					p[q * GEMM_NR + j] = @value0(s[q * rs + j]);\n"
"			continue;\n"
"		}\n"
"		const int64_t turned = rs == 1 ? nr - nr % 4 : 0;\n"
"		for (int64_t q = 0; nr < GEMM_NR && q < k * GEMM_NR; q++)\n"
"			p[q] = 0;\n"
"		for (int64_t q = 0; turned && q < k; q += 16)\n"
"			for (int64_t j = 0; j < turned; j += 4)\n"
"				gemm_turn@suffix(k - q < 16 ? k - q : 16, s + q + j * cs, cs, p + q * GEMM_NR + j, GEMM_NR);\n"
"		if (turned && turned < nr) /* the last four, some of them again */\n"
"			gemm_turn@suffix(k, s + (nr - 4) * cs, cs, p + nr - 4, GEMM_NR);\n"
"		for (int64_t q = 0; !turned && q < k; q++)\n"
"			for (int64_t j = 0; j < nr; j++)\n"
"				p[q * GEMM_NR + j] = @value0(s[q * rs + j * cs]);\n"
"	}\n"
"}\n";

static const char macro_text[] =
"/* c = (add: c +) a product of packed panels, each `as` or `bs` terms long, of which k are added. */\n"
"static void gemm_part(int64_t m, int64_t n, int64_t k, const real *pa, int64_t as, const real *pb, int64_t bs,\n"
"	real *c, int64_t ldc, int add)\n"
"{\n"
"	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NR)\n"
"		for (int64_t i0 = 0; i0 < m; i0 += GEMM_MR) {\n"
"			const int64_t mr = m - i0 < GEMM_MR ? m - i0 : GEMM_MR;\n"
"			const int64_t nr = n - j0 < GEMM_NR ? n - j0 : GEMM_NR;\n"
"			real *to = c + i0 * ldc + j0, t[GEMM_MR * GEMM_NR];\n"
"			if (mr == GEMM_MR && nr == GEMM_NR) {\n"
"				gemm_tile(k, pa + i0 * as, pb + j0 * bs, to, ldc, add);\n"
"				continue;\n"
"			}\n"
"			gemm_tile(k, pa + i0 * as, pb + j0 * bs, t, GEMM_NR, 0);\n"
"			for (int64_t i = 0; i < mr; i++)\n"
"				for (int64_t j = 0; j < nr; j++)\n"
"					to[i * ldc + j] = add ? to[i * ldc + j] + t[i * GEMM_NR + j] : t[i * GEMM_NR + j];\n"
"		}\n"
"}\n"
"\n"
"/* The same of all k terms. */\n"
"static inline void gemm_macro(int64_t m, int64_t n, int64_t k, const real *pa, const real *pb, real *c, int64_t ldc,\n"
"	int add)\n"
"{\n"
"	gemm_part(m, n, k, pa, k, pb, k, c, ldc, add);\n"
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
	if (!e->g->target->cuda)
		emit_helper(e, "thread_index", thread_text);
}

void gemm_emit_macro(struct emit *e)
{
	emit_helper(e, "gemm_tile", tile_text);
	emit_helper(e, "gemm_macro", macro_text);
}

static void emit_turn(struct emit *e, const struct tensor *t)
{
	const bool narrow = dtype_is_narrow(t->dtype);
	emit_helper(e, "gemm_four", four_text);
	emit_helper_on(e, "gemm_load", narrow ? turn_load_narrow_text : turn_load_text, 1, &t);
	emit_helper_on(e, "gemm_turn", turn_text, 1, &t);
}

static const struct tensor *or_real(const struct tensor *t)
{
	static const struct tensor real = {.dtype = DT_F32};
	return t ? t : &real;
}

void gemm_emit_turn(struct emit *e)
{
	emit_turn(e, or_real(NULL));
}

void gemm_emit_pack_a(struct emit *e, const struct tensor *t)
{
	t = or_real(t);
	emit_helper(e, "gemm_tile", tile_text);
	emit_turn(e, t);
	emit_helper_on(e, "gemm_pack_a", pack_a_text, 1, &t);
}

void gemm_emit_pack_b(struct emit *e, const struct tensor *t)
{
	t = or_real(t);
	emit_helper(e, "gemm_tile", tile_text);
	emit_turn(e, t);
	emit_helper_on(e, "gemm_pack_b", pack_b_text, 1, &t);
}

void gemm_emit_block(struct emit *e)
{
	gemm_emit_thread(e);
	gemm_emit_macro(e);
	gemm_emit_pack_a(e, NULL);
	gemm_emit_pack_b(e, NULL);
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
