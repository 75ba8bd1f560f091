/* A product of a vector and a matrix in generated C: as fast as the matrix is read. Both texts go
 * through the matrix row by row; a sum is the same whatever the threads. */
#include "ops/gemm.h"

/* clang-format off */
static const char dots_text[] =
"/* sum[r] = the inner product of x and row r of w for four rows of n numbers: each in 16 lanes, which meet in\n"
" * a fixed tree. Four rows at a time, since each addition waits for the one before. */\n"
"typedef real lanes __attribute__((vector_size(16 * sizeof(real)), aligned(sizeof(real)), may_alias));\n"
"static inline void dot_rows(int64_t n, const real *restrict x, const real *restrict w, real sum[4])\n"
"{\n"
"	const int64_t whole = n - n % 16;\n"
"	lanes s[4] = {{0}};\n"
"	for (int64_t i = 0; i < whole; i += 16)\n"
"		for (int r = 0; r < 4; r++)\n"
"			s[r] += *(const lanes *)(x + i) * *(const lanes *)(w + r * n + i);\n"
"	for (int r = 0; r < 4; r++) {\n"
"		real lane[16];\n"
"		for (int k = 0; k < 16; k++)\n"
"			lane[k] = s[r][k];\n"
"		for (int64_t i = whole; i < n; i++)\n"
"			lane[i - whole] += x[i] * w[r * n + i];\n"
"		for (int half = 8; half > 0; half /= 2)\n"
"			for (int k = 0; k < half; k++)\n"
"				lane[k] += lane[k + half];\n"
"		sum[r] = lane[0];\n"
"	}\n"
"}\n";

static const char rows_text[] =
"/* y[j] = y[j] + x[0] w[0][j] + ... + x[7] w[7][j], in this order, of rows that are ld apart. */\n"
"static inline void add_rows(int64_t n, int64_t ld, const real *restrict x, const real *restrict w, real *restrict y)\n"
"{\n"
"	for (int64_t j = 0; j < n; j++) {\n"
"		real s = y[j];\n"
"		for (int r = 0; r < 8; r++)\n"
"			s += x[r] * w[r * ld + j];\n"
"		y[j] = s;\n"
"	}\n"
"}\n";
/* clang-format on */

/* The matrix's rows are summed over: sum[j] = bias[j] + x . w[j]. */
static void emit_dots(struct emit *e, const struct matvec *v)
{
	const long long n = v->n, k = v->k;
	if (!e->g->target->cuda)
		emit_helper(e, "dot_rows", dots_text);
	emit_loops(e, 2.0 * (double)n * (double)k, 1, &(struct emit_loop){"j", n, 4});
	emit(e, " {\n\t\treal sum[4];\n");
	if (n % 4) {
		emit(e, "\t\tconst int64_t rows = MIN(%lld - j, 4);\n", n);
		emit(e, "\t\tif (rows < 4)\n");
		emit(e, "\t\t\tfor (int64_t r = 0; r < rows; r++)\n");
		emit(e, "\t\t\t\tsum[r] = dot_lanes(%s, %s + (j + r) * %lld, %lld);\n", v->x, v->w,
			k, k);
		emit(e, "\t\telse\n\t");
	}
	if (e->g->target->cuda) { /* a thread has no vectors: the same sums */
		emit(e, "\t\tfor (int64_t r = 0; r < 4; r++)\n\t");
		emit(e, "\t\tsum[r] = dot_lanes(%s, %s + (j + r) * %lld, %lld);\n", v->x, v->w, k,
			k);
	} else {
		emit(e, "\t\tdot_rows(%lld, %s, %s + j * %lld, sum);\n", k, v->x, v->w, k);
	}
	emit(e, "\t\tfor (int64_t r = 0; r < %s; r++)\n", n % 4 ? "rows" : "4");
	emit(e, "\t\t\ty0[j + r] = %s%ssum[r];\n", v->bias ? v->bias : "",
		v->bias ? "[j + r] + " : "");
	emit(e, "\t}\n");
}

/* Its columns: y = bias + x[0] w[0] + x[1] w[1] + ... Threads share the columns. */
static void emit_rows(struct emit *e, const struct matvec *v)
{
	const int64_t block = max64(64, round_up(div_up(v->n, e->g->target->threads), 16));
	const long long n = v->n, k = v->k, nb = min64(block, v->n);
	emit_helper(e, "add_rows", rows_text);
	emit_loops(e, 2.0 * (double)n * (double)k, 1, &(struct emit_loop){"j", n, nb});
	emit(e, " {\n\t\tconst int64_t columns = MIN(%lld - j, %lld);\n", n, nb);
	emit(e, "\t\tfor (int64_t q = j; q < j + columns; q++)\n");
	emit(e, "\t\t\ty0[q] = %s%s;\n", v->bias ? v->bias : "0", v->bias ? "[q]" : "");
	emit(e, "\t\tfor (int64_t r = 0; r < %lld; r += 8)\n", k - k % 8);
	emit(e, "\t\t\tadd_rows(columns, %lld, %s + r, %s + r * %lld + j, y0 + j);\n", n, v->x,
		v->w, n);
	if (k % 8) {
		emit(e, "\t\tfor (int64_t r = %lld; r < %lld; r++)\n", k - k % 8, k);
		emit(e, "\t\t\tfor (int64_t q = j; q < j + columns; q++)\n");
		emit(e, "\t\t\t\ty0[q] += %s[r] * %s[r * %lld + q];\n", v->x, v->w, n);
	}
	emit(e, "\t}\n");
}

void matvec_emit(struct emit *e, const struct matvec *v)
{
	if (v->transposed)
		emit_dots(e, v);
	else
		emit_rows(e, v);
}
