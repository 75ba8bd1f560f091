/* Small kernels of the recurrent operators' gradients: what the products for dR and dP read. */
#include <stdio.h>

#include "ops/gemm.h"
#include "ops/recurrent.h"

/* A tensor [directions, rows, width]. */
static enum status rows_output(struct graph *g, struct node *n, int64_t width)
{
	const struct recurrent *p = n->param;
	const int64_t dim[3] = {p->directions, p->steps * p->batch, width};
	return data_output(g, n, 0, g->real, 3, dim);
}

/* --- stint.RecurrentPrev(Y, h0?, lengths?): the state that each step began with --- */

enum status recurrent_prev_infer(struct graph *g, struct node *n)
{
	return rows_output(g, n, ((const struct recurrent *)n->param)->hidden);
}

/* Opens, behind the head of a loop over samples b, the one over their steps: s, t. */
static void open_walk(struct emit *e, const struct node *n, int lengths, const char *tabs)
{
	const struct recurrent *p = n->param;
	const bool known = !recurrent_has(n, lengths);
	char len[24];
	snprintf(len, sizeof len, "%" PRId64, p->steps);
	emit(e, " {\n%s\tconst int64_t len = %s;\n", tabs,
		known ? len : recurrent_length(e, p, lengths));
	emit(e, "%s\tfor (int64_t s = 0; s < len; s++) {\n", tabs);
	emit(e, "%s\t\tconst int64_t t = %s;\n", tabs,
		p->directions == 2 ? "d ? len - 1 - s : s"
		: p->reverse       ? "len - 1 - s"
				   : "s");
}

/* A GPU's threads go by elements, not by rows: number i is unit j of a row. */
static void open_elements(struct emit *e, int64_t numel, int64_t width)
{
	emit_loops(e, (double)numel, 1, &(struct emit_loop){"i", numel, 1});
	emit(e, " {\n\t\tconst int64_t j = i %% %" PRId64 ";\n", width);
}

/* The step t and the sample b of row number `row`, as they lie in XW. */
static void emit_row(struct emit *e, const struct recurrent *p, const char *row, const char *tabs)
{
	const int64_t first = p->batch_first ? p->batch : p->steps;
	const int64_t second = p->batch_first ? p->steps : p->batch;
	const char *const name = p->batch_first ? "bt" : "tb";
	emit(e, "%sconst int64_t %c = %s %% %" PRId64 ", %c = %s / %" PRId64 " %% %" PRId64 ";\n",
		tabs, name[1], row, second, name[0], row, second, first);
}

static const char *place_in_walk(const struct recurrent *p)
{
	return p->directions == 2 ? "d ? len - 1 - t : t" : p->reverse ? "len - 1 - t" : "t";
}

static void prev_by_elements(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	char from[160], first[160] = "0";
	open_elements(e, n->out[0]->numel, h);
	emit_row(e, p, emit_text(e, "(i / %" PRId64 ")", h), "\t\t");
	emit(e, "\t\tconst int64_t d = i / %" PRId64 ";\n", p->steps * p->batch * h);
	if (recurrent_has(n, 2))
		emit(e, "\t\tconst int64_t len = %s;\n", recurrent_length(e, p, 2));
	else
		emit(e, "\t\tconst int64_t len = %" PRId64 ";\n", p->steps);
	emit(e, "\t\tconst int64_t s = %s;\n", place_in_walk(p));
	emit(e, "\t\ty0[i] = t >= len ? 0 : s > 0 ? x0[%s + j] : ",
		recurrent_place_y(p, recurrent_before(p), from));
	if (recurrent_has(n, 1))
		emit(e, "x1[%s + j];\n\t}\n", recurrent_place_state(p, first));
	else
		emit(e, "0;\n\t}\n");
}

enum status recurrent_prev_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	char to[160], from[160], first[160];
	if (recurrent_cuda_fits(e->g->target, p)) {
		prev_by_elements(e, n);
		return ST_OK;
	}
	recurrent_use(e, "copy_row");
	const struct emit_loop loop[] = {{"d", p->directions, 1}, {"b", p->batch, 1}};
	emit_loops(e, (double)n->out[0]->numel, 2, loop);
	open_walk(e, n, 2, "\t\t");
	recurrent_place(p, "t", h, to);
	recurrent_place_y(p, recurrent_before(p), from);
	if (recurrent_has(n, 1)) {
		emit(e, "\t\t\t\tcopy_row(%" PRId64 ", s > 0 ? x0 + %s : x1 + %s, y0 + %s);\n", h,
			from, recurrent_place_state(p, first), to);
	} else {
		recurrent_use(e, "zero_row");
		emit(e, "\t\t\t\tif (s > 0)\n");
		emit(e, "\t\t\t\t\tcopy_row(%" PRId64 ", x0 + %s, y0 + %s);\n", h, from, to);
		emit(e, "\t\t\t\telse\n\t\t\t\t\tzero_row(%" PRId64 ", y0 + %s);\n", h, to);
	}
	emit(e, "\t\t\t}\n");
	if (recurrent_has(n, 2)) {
		recurrent_use(e, "zero_row");
		emit(e, "\t\t\tfor (int64_t t = len; t < %" PRId64 "; t++)\n", p->steps);
		emit(e, "\t\t\t\tzero_row(%" PRId64 ", y0 + %s);\n", h, to);
	}
	emit(e, "\t\t}\n");
	return ST_OK;
}

/* --- GRU: one gate's part of rows times r. stint.GruResetPrev(prev, gates): r prev, what the
 * hidden gate's weights saw. stint.GruResetGrad(dXW, gates): with linear_before_reset, the gradient
 * of what the recurrent product gave. --- */

enum status gru_part_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, g->real, n->in[0]->rank, n->in[0]->dim);
}

enum status gru_reset_prev_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	const int64_t numel = n->out[0]->numel;
	if (e->g->target->cuda) {
		open_elements(e, numel, h);
		emit(e,
			"\t\ty0[i] = x0[i] * x1[i / %" PRId64 " * %" PRId64 " + %" PRId64
			" + j];\n\t}\n",
			h, 3 * h, h);
		return ST_OK;
	}
	emit_loops(e, (double)numel, 1, &(struct emit_loop){"r", numel / h, 1});
	emit(e, "\n\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n", h);
	emit(e,
		"\t\t\ty0[r * %" PRId64 " + i] = x0[r * %" PRId64 " + i] * x1[r * %" PRId64
		" + %" PRId64 " + i];\n",
		h, h, 3 * h, h);
	return ST_OK;
}

enum status gru_reset_grad_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	const int64_t numel = n->out[0]->numel;
	if (e->g->target->cuda) {
		open_elements(e, numel, 3 * h);
		emit(e, "\t\ty0[i] = j < %" PRId64 " ? x0[i] : x0[i] * x1[i - %" PRId64 "];\n\t}\n",
			2 * h, h);
		return ST_OK;
	}
	emit_loops(e, (double)numel, 1, &(struct emit_loop){"r", numel / (3 * h), 1});
	emit(e, " {\n\t\tconst real *const dx = x0 + r * %" PRId64 ";\n", 3 * h);
	emit(e, "\t\treal *const y = y0 + r * %" PRId64 ";\n", 3 * h);
	if (e->in_place[0] < 0) {
		emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n", 2 * h);
		emit(e, "\t\t\ty[i] = dx[i];\n");
	}
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n", h);
	emit(e,
		"\t\t\ty[%" PRId64 " + i] = dx[%" PRId64 " + i] * x1[r * %" PRId64 " + %" PRId64
		" + i];\n",
		2 * h, 2 * h, 3 * h, h);
	emit(e, "\t}\n");
	return ST_OK;
}

/* --- stint.LstmPeepholeGrad(dXW, cells, c0?, lengths?): sums over all steps of a gate's gradient
 * times the cell that it saw --- */

/* Hidden units that one thread sums up; on a GPU, rows that it does, where there are no more than
 * PEEPHOLE_PARTS times as many. */
enum { PEEPHOLE_PIECE = 64, PEEPHOLE_ROWS = 64, PEEPHOLE_PARTS = 256 };

enum status recurrent_peephole_infer(struct graph *g, struct node *n)
{
	const struct recurrent *p = n->param;
	return data_output(g, n, 0, g->real, 2, (int64_t[]){p->directions, 3 * p->hidden});
}

static int64_t part_rows(const struct recurrent *p)
{
	return max64(PEEPHOLE_ROWS, div_up(p->steps * p->batch, PEEPHOLE_PARTS));
}

int64_t recurrent_peephole_workspace(const struct node *n, const struct target *t)
{
	const struct recurrent *p = n->param;
	if (!recurrent_cuda_fits(t, p))
		return 0;
	return div_up(p->steps * p->batch, part_rows(p)) * n->out[0]->numel *
	       (int64_t)sizeof(float);
}

/* On a GPU: a thread's part of the rows for one unit, then the parts, in their order. */
static void peephole_by_parts(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, rows = p->steps * p->batch, each = part_rows(p);
	const int64_t parts = div_up(rows, each), all = n->out[0]->numel;
	const int64_t tasks = parts * p->directions * h;
	char gates[160], cell[160], before[160], first[160];
	recurrent_place(p, "t", 4 * h, gates);
	recurrent_place(p, "t", h, cell);
	recurrent_place(p, recurrent_before(p), h, before);
	open_elements(e, tasks, h);
	emit(e, "\t\tconst int64_t d = i / %" PRId64 " %% %" PRId64 ", part = i / %" PRId64 ";\n",
		h, p->directions, h * p->directions);
	emit(e, "\t\treal sum[3] = {0, 0, 0};\n");
	emit(e,
		"\t\tfor (int64_t r = part * %" PRId64 "; r < MIN((part + 1) * %" PRId64
		", %" PRId64 "); r++) {\n",
		each, each, rows);
	emit_row(e, p, "r", "\t\t\t");
	if (recurrent_has(n, 3))
		emit(e, "\t\t\tconst int64_t len = %s;\n", recurrent_length(e, p, 3));
	else
		emit(e, "\t\t\tconst int64_t len = %" PRId64 ";\n", p->steps);
	emit(e, "\t\t\tconst int64_t s = %s;\n", place_in_walk(p));
	emit(e, "\t\t\tif (t >= len)\n\t\t\t\tcontinue;\n");
	emit(e, "\t\t\tconst real *const dx = x0 + %s + j;\n", gates);
	emit(e, "\t\t\tconst real before = s > 0 ? x1[%s + j] : ", before);
	if (recurrent_has(n, 2))
		emit(e, "x2[%s + j];\n", recurrent_place_state(p, first));
	else
		emit(e, "0;\n");
	emit(e, "\t\t\tsum[0] += dx[0] * before;\n");
	emit(e, "\t\t\tsum[1] += dx[%" PRId64 "] * x1[%s + j];\n", h, cell);
	emit(e, "\t\t\tsum[2] += dx[%" PRId64 "] * before;\n\t\t}\n", 2 * h);
	emit(e,
		"\t\tfor (int k = 0; k < 3; k++)\n\t\t\t((real *)ws)[part * %" PRId64
		" + d * %" PRId64 " + k * %" PRId64 " + j] = sum[k];\n\t}\n",
		all, 3 * h, h);
	emit_stage(e);
	emit_loops(e, (double)all, 1, &(struct emit_loop){"i", all, 1});
	emit(e, " {\n\t\treal sum = 0;\n\t\tfor (int64_t part = 0; part < %" PRId64 "; part++)\n",
		parts);
	emit(e, "\t\t\tsum += ((const real *)ws)[part * %" PRId64 " + i];\n\t\ty0[i] = sum;\n\t}\n",
		all);
}

enum status recurrent_peephole_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	if (recurrent_cuda_fits(e->g->target, p)) {
		peephole_by_parts(e, n);
		return ST_OK;
	}
	const int64_t h = p->hidden;
	char gates[160], cell[160], before[160], first[160];
	recurrent_use(e, "zero_row");
	recurrent_use(e, "add_product_row");
	recurrent_place(p, "t", 4 * h, gates);
	recurrent_place(p, "t", h, cell);
	recurrent_place(p, recurrent_before(p), h, before);
	const struct emit_loop loop[] = {{"d", p->directions, 1}, {"j", h, PEEPHOLE_PIECE}};
	emit_loops(e, 6.0 * (double)n->in[1]->numel, 2, loop);
	emit(e, " {\n\t\t\tconst int64_t n = MIN(%" PRId64 " - j, %d);\n", h, PEEPHOLE_PIECE);
	emit(e, "\t\t\treal *const y = y0 + d * %" PRId64 " + j;\n", 3 * h);
	for (int k = 0; k < 3; k++)
		emit(e, "\t\t\tzero_row(n, y + %" PRId64 ");\n", k * h);
	emit(e, "\t\t\tfor (int64_t b = 0; b < %" PRId64 "; b++)", p->batch);
	open_walk(e, n, 3, "\t\t\t");
	emit(e, "\t\t\t\t\tconst real *const dx = x0 + %s + j;\n", gates);
	emit(e, "\t\t\t\t\tadd_product_row(n, dx + %" PRId64 ", x1 + %s + j, y + %" PRId64 ");\n",
		h, cell, h);
	if (recurrent_has(n, 2)) {
		emit(e, "\t\t\t\t\tconst real *const before = s > 0 ? x1 + %s + j : x2 + %s + j;\n",
			before, recurrent_place_state(p, first));
	} else {
		emit(e, "\t\t\t\t\tif (s == 0)\n\t\t\t\t\t\tcontinue;\n");
		emit(e, "\t\t\t\t\tconst real *const before = x1 + %s + j;\n", before);
	}
	emit(e, "\t\t\t\t\tadd_product_row(n, dx, before, y);\n");
	emit(e, "\t\t\t\t\tadd_product_row(n, dx + %" PRId64 ", before, y + %" PRId64 ");\n", 2 * h,
		2 * h);
	emit(e, "\t\t\t\t}\n\t\t\t}\n\t\t}\n");
	return ST_OK;
}
