/* What the kernels of all cells share: recurrent weights packed once, blocks of samples that
 * threads take through time on their own, and functions over one row of hidden units. No sum
 * depends on how samples are cut into blocks. */
#include <stdio.h>

#include "ops/gemm.h"
#include "ops/recurrent.h"

bool recurrent_has(const struct node *n, int input)
{
	return n->nin > input && n->in[input];
}

/* --- Workspace: packed weights, then for each thread its rows and a packed operand --- */

/* Samples in a block: as many blocks as threads, but no less than a tile's rows are worth. */
static int64_t block_rows(const struct recurrent *p, int threads)
{
	const int64_t blocks = div_up(threads, p->directions);
	return min64(p->batch, round_up(div_up(p->batch, blocks), 4));
}

/* A matrix of k rows, n columns, packed. */
static int64_t packed_elements(int64_t k, int64_t n)
{
	return round_up(n, GEMM_COL_UNIT) * k;
}

/* GRU without linear_before_reset has a product of its own for the hidden gate. */
bool recurrent_split(const struct recurrent *p)
{
	return p->cell == CELL_GRU && !p->reset_after;
}

int64_t recurrent_second(const struct recurrent *p, bool grad)
{
	return grad ? packed_elements(2 * p->hidden, p->hidden)
		    : packed_elements(p->hidden, 2 * p->hidden);
}

int64_t recurrent_state_row(const struct recurrent *p)
{
	return p->batch_first ? p->directions * p->hidden : p->hidden;
}

static int64_t weight_elements(const struct recurrent *p, bool grad)
{
	const int64_t h = p->hidden, first = recurrent_split(p) ? 2 * h : p->gates * h;
	const int64_t rest = p->gates * h - first;
	if (grad)
		return packed_elements(first, h) + packed_elements(rest, h);
	return packed_elements(h, first) + packed_elements(h, rest);
}

/* Elements of a block's buffers: z, one more like it for GRU, and three rows. */
static int64_t buffer_elements(const struct recurrent *p, int64_t rows)
{
	return (p->cell == CELL_GRU ? 2 : 1) * rows * p->gates * p->hidden + 3 * p->hidden;
}

static int64_t thread_elements(const struct recurrent *p, int64_t rows, bool grad)
{
	const int64_t terms = min64(GEMM_KC, grad ? p->gates * p->hidden : p->hidden);
	const int64_t packed = round_up(min64(rows, GEMM_MC), GEMM_ROW_UNIT) * terms;
	return round_up(buffer_elements(p, rows) + packed, 16);
}

static int64_t workspace(const struct node *n, const struct target *t, bool grad)
{
	const struct recurrent *p = n->param;
	const int64_t weights = p->directions * weight_elements(p, grad);
	return (round_up(weights, 16) +
		       t->threads * thread_elements(p, block_rows(p, t->threads), grad)) *
	       dtype_bytes(n->in[D_R]->dtype);
}

int64_t recurrent_workspace(const struct node *n, const struct target *t)
{
	if (recurrent_cuda_fits(t, n->param))
		return recurrent_cuda_workspace(n);
	return workspace(n, t, false);
}

int64_t recurrent_grad_workspace(const struct node *n, const struct target *t)
{
	if (recurrent_cuda_fits(t, n->param))
		return recurrent_grad_cuda_workspace(n);
	return workspace(n, t, true);
}

/* --- Helpers --- */

/* clang-format off */
static const char pack_text[] =
"/* A matrix of k rows and n columns for recurrent_product. */\n"
"static void recurrent_pack(int64_t k, int64_t n, const real *b, int64_t rs, int64_t cs, real *w)\n"
"{\n"
"	for (int64_t k0 = 0; k0 < k; k0 += GEMM_KC)\n"
"		gemm_pack_b(k - k0 < GEMM_KC ? k - k0 : GEMM_KC, n, b + k0 * rs, rs, cs, w + k0 * ((n + 31) / 32 * 32));\n"
"}\n";

static const char product_text[] =
"/* c[m][n] = (add: c +) a[m][k] times packed weights. */\n"
"static void recurrent_product(int64_t m, int64_t n, int64_t k, const real *a, int64_t lda, const real *w, real *c,\n"
"	int64_t ldc, int add, real *pa)\n"
"{\n"
"	for (int64_t k0 = 0; k0 < k; k0 += GEMM_KC)\n"
"		for (int64_t i0 = 0; i0 < m; i0 += GEMM_MC) {\n"
"			const int64_t mc = m - i0 < GEMM_MC ? m - i0 : GEMM_MC;\n"
"			const int64_t kc = k - k0 < GEMM_KC ? k - k0 : GEMM_KC;\n"
"			gemm_pack_a(mc, kc, a + i0 * lda + k0, lda, 1, pa);\n"
"			gemm_macro(mc, n, kc, pa, w + k0 * ((n + 31) / 32 * 32), c + i0 * ldc, ldc, add || k0 > 0);\n"
"		}\n"
"}\n";

#define ROW(name, params, statement) \
	{name, "static void " name "(int64_t n, " params ")\n{\n\tfor (int64_t i = 0; i < n; i++)\n\t\t" statement "\n}\n"}

static const struct row_text {
	const char *name, *text;
} row_texts[] = {
	ROW("zero_row", "real *y", "y[i] = 0;"),
	ROW("copy_row", "const real *a, real *restrict y", "y[i] = a[i];"),
	ROW("sum_row", "const real *a, const real *b, real *restrict y", "y[i] = a[i] + b[i];"),
	ROW("add_row", "const real *a, real *restrict y", "y[i] += a[i];"),
	ROW("scale_row", "const real *a, real *restrict y", "y[i] *= a[i];"),
	ROW("product_row", "const real *a, const real *b, real *restrict y", "y[i] = a[i] * b[i];"),
	ROW("add_product_row", "const real *a, const real *b, real *restrict y", "y[i] += a[i] * b[i];"),
	ROW("biased_row", "const real *a, const real *b, const real *c, real *restrict y", "y[i] = a[i] + (b[i] + c[i]);"),
	ROW("rest_row", "const real *a, real *restrict y", "y[i] = 1 - a[i];"),
	ROW("difference_product_row", "const real *s, const real *a, const real *b, real *restrict y",
		"y[i] = s[i] * (a[i] - b[i]);"),
	ROW("rest_product_row", "const real *s, const real *a, real *restrict y", "y[i] = s[i] * (1 - a[i]);"),
	ROW("mix_row", "const real *z, const real *a, real *restrict h", "h[i] = (1 - z[i]) * a[i] + z[i] * h[i];"),
};
/* clang-format on */

void recurrent_use(struct emit *e, const char *name)
{
	for (size_t i = 0; i < sizeof row_texts / sizeof *row_texts; i++)
		if (!strcmp(row_texts[i].name, name))
			emit_helper(e, name, row_texts[i].text);
}

static void use_products(struct emit *e)
{
	gemm_emit(e);
	emit_helper(e, "recurrent_pack", pack_text);
	emit_helper(e, "recurrent_product", product_text);
}

/* --- The frame --- */

/* One matrix packed for every direction: rows [from, from + count) of R as they lie, or (forward)
 * as columns. */
static void pack(struct emit *e, const struct recurrent *p, bool grad, int64_t from, int64_t count,
	int64_t at, int64_t each)
{
	const int64_t h = p->hidden, k = grad ? count : h, n = grad ? h : count;
	emit(e, "\t\trecurrent_pack(%" PRId64 ", %" PRId64 ", x1 + d * %" PRId64, k, n,
		p->gates * h * h);
	if (from)
		emit(e, " + %" PRId64, from * h);
	emit(e, ", %" PRId64 ", %" PRId64 ", (real *)ws + d * %" PRId64, grad ? h : 1, grad ? 1 : h,
		each);
	emit(e, at ? " + %" PRId64 ");\n" : ");\n", at);
}

/* A run-time length that is out of range is refused before anything is written. */
static void check_lengths(struct emit *e, const struct recurrent *p)
{
	emit(e, "\tfor (int64_t b = 0; b < %" PRId64 "; b++)\n", p->batch);
	emit(e, "\t\tif (x%d[b] < 0 || x%d[b] > %" PRId64 ")\n", F_LEN, F_LEN, p->steps);
	emit(e, "\t\t\treturn BAD_INDEX(x%d[b]);\n", F_LEN);
}

/* `name`: the block's rows of state output y`out`, begun with input x`in` or with zeros. */
static void open_state(struct emit *e, const struct node *n, const char *name, int out, int in)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, row = recurrent_state_row(p);
	emit(e, "\t\t\treal *const %s = y%d + at_state;\n", name, out);
	emit(e, "\t\t\tfor (int64_t r = 0; r < m; r++)\n");
	if (recurrent_has(n, in)) {
		recurrent_use(e, "copy_row");
		emit(e,
			"\t\t\t\tcopy_row(%" PRId64 ", x%d + at_state + r * %" PRId64
			", %s + r * %" PRId64 ");\n",
			h, in, row, name, row);
	} else {
		recurrent_use(e, "zero_row");
		emit(e, "\t\t\t\tzero_row(%" PRId64 ", %s + r * %" PRId64 ");\n", h, name, row);
	}
}

/* Buffers beside z that the cell's text reads. */
static void open_spare(struct emit *e, const struct node *n, bool grad, int64_t rows)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, spare = buffer_elements(p, rows) - 3 * h;
	if (p->cell == CELL_GRU && !(grad && p->reset_after))
		emit(e, "\t\t\treal *const u = z + %" PRId64 ";\n", rows * p->gates * h);
	if (!grad || p->cell == CELL_RNN)
		return;
	if (!recurrent_has(n, p->cell == CELL_LSTM ? D_C0 : D_H0)) {
		recurrent_use(e, "zero_row");
		emit(e, "\t\t\treal *const none = z + %" PRId64 ";\n", spare);
		emit(e, "\t\t\tzero_row(%" PRId64 ", none);\n", h);
	}
	if (p->cell == CELL_GRU && p->reset_after)
		emit(e, "\t\t\treal *const reset = z + %" PRId64 ";\n", spare + h);
	if (p->cell == CELL_LSTM) {
		emit(e, "\t\t\treal *const hc = z + %" PRId64 ";\n", spare + h);
		emit(e, "\t\t\treal *const v = z + %" PRId64 ";\n", spare + 2 * h);
	}
}

void recurrent_open(struct emit *e, const struct node *n, bool grad)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, b = p->batch, g = p->gates, each = weight_elements(p, grad);
	const int64_t rows = block_rows(p, e->g->target->threads);
	const int64_t first = recurrent_split(p) ? 2 * h : g * h;
	use_products(e);
	if (!grad && recurrent_has(n, F_LEN))
		check_lengths(e, p);
	emit(e, "\tfor (int64_t d = 0; d < %" PRId64 "; d++) {\n", p->directions);
	pack(e, p, grad, 0, first, 0, each);
	if (recurrent_split(p))
		pack(e, p, grad, first, h, recurrent_second(p, grad), each);
	emit(e, "\t}\n");
	const struct emit_loop loop[] = {{"d", p->directions, 1}, {"b0", b, rows}};
	emit_loops(e, 2.0 * (double)(p->steps * p->directions * b * g * h) * (double)(h + 10), 2,
		loop);
	emit(e,
		" {\n\t\t\tconst int64_t m = %" PRId64 " - b0 < %" PRId64 " ? %" PRId64
		" - b0 : %" PRId64 ";\n",
		b, rows, b, rows);
	emit(e, "\t\t\treal *const w = (real *)ws + d * %" PRId64 ";\n", each);
	emit(e, "\t\t\treal *const z = (real *)ws + %" PRId64 " + thread_index() * %" PRId64 ";\n",
		round_up(p->directions * each, 16), thread_elements(p, rows, grad));
	emit(e, "\t\t\treal *const pa = z + %" PRId64 ";\n", buffer_elements(p, rows));
	open_spare(e, n, grad, rows);
	if (p->batch_first)
		emit(e, "\t\t\tconst int64_t at_state = (b0 * %" PRId64 " + d) * %" PRId64 ";\n",
			p->directions, h);
	else
		emit(e, "\t\t\tconst int64_t at_state = (d * %" PRId64 " + b0) * %" PRId64 ";\n", b,
			h);
	open_state(e, n, grad ? "dh" : "h", 1, grad ? D_DYH : F_H0);
	if (p->cell == CELL_LSTM)
		open_state(e, n, grad ? "dc" : "c", 2, grad ? D_DYC : F_C0);
}

/* The length of sample b's sequence. A GPU's kernels go on after one that is out of range, which
 * the step tells at its end: they stay within their memory. */
const char *recurrent_length(struct emit *e, const struct recurrent *p, int lengths)
{
	if (!e->g->target->cuda)
		return emit_text(e, "x%d[b]", lengths);
	return emit_text(e, "MIN(MAX(x%d[b], 0), %" PRId64 ")", lengths, p->steps);
}

void recurrent_sample(
	struct emit *e, const struct node *n, int lengths, bool finished, const char *tabs)
{
	const struct recurrent *p = n->param;
	const bool known = !recurrent_has(n, lengths);
	char back[64];
	if (known)
		snprintf(back, sizeof back, "%" PRId64 " - s", p->steps - 1);
	else
		snprintf(back, sizeof back, "s < len ? len - 1 - s : s");
	if (!known && (finished || p->reverse || p->directions == 2))
		emit(e, "%sconst int64_t len = %s;\n", tabs, recurrent_length(e, p, lengths));
	if (p->directions == 2)
		emit(e,
			known ? "%sconst int64_t t = d ? %s : s;\n"
			      : "%sconst int64_t t = d && %s;\n",
			tabs, back);
	else
		emit(e, "%sconst int64_t t = %s;\n", tabs, p->reverse ? back : "s");
}

/* The loop over the block's rows at place s of their walk: sample b, step t of its sequence. */
void recurrent_rows(struct emit *e, const struct node *n, int lengths, bool finished)
{
	emit(e, "\t\t\t\tfor (int64_t r = 0; r < m; r++) {\n");
	emit(e, "\t\t\t\t\tconst int64_t b = b0 + r;\n");
	recurrent_sample(e, n, lengths, finished, "\t\t\t\t\t");
}

/* The step before t in the direction's order. */
const char *recurrent_before(const struct recurrent *p)
{
	return p->directions == 2 ? "(d ? t + 1 : t - 1)" : p->reverse ? "(t + 1)" : "(t - 1)";
}

const char *recurrent_place(
	const struct recurrent *p, const char *t, int64_t width, char out[static 160])
{
	if (p->batch_first)
		snprintf(out, 160, "(d * %" PRId64 " + b * %" PRId64 " + %s) * %" PRId64,
			p->steps * p->batch, p->steps, t, width);
	else
		snprintf(out, 160, "(d * %" PRId64 " + %s * %" PRId64 " + b) * %" PRId64,
			p->steps * p->batch, t, p->batch, width);
	return out;
}

const char *recurrent_place_state(const struct recurrent *p, char out[static 160])
{
	if (p->batch_first)
		snprintf(out, 160, "(b * %" PRId64 " + d) * %" PRId64, p->directions, p->hidden);
	else
		snprintf(out, 160, "(d * %" PRId64 " + b) * %" PRId64, p->batch, p->hidden);
	return out;
}

const char *recurrent_place_y(const struct recurrent *p, const char *t, char out[static 160])
{
	if (p->batch_first)
		snprintf(out, 160, "((b * %" PRId64 " + %s) * %" PRId64 " + d) * %" PRId64,
			p->steps, t, p->directions, p->hidden);
	else
		snprintf(out, 160, "((%s * %" PRId64 " + d) * %" PRId64 " + b) * %" PRId64, t,
			p->directions, p->batch, p->hidden);
	return out;
}
