/* Small kernels of the recurrent operators' gradients: what the products for dR and dP read. */
#include <stdio.h>

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

/* Where the state of sample b in direction d lies. */
static const char *place_state(const struct recurrent *p, char out[static 160])
{
	if (p->batch_first)
		snprintf(out, 160, "(b * %" PRId64 " + d) * %" PRId64, p->directions, p->hidden);
	else
		snprintf(out, 160, "(d * %" PRId64 " + b) * %" PRId64, p->batch, p->hidden);
	return out;
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

enum status recurrent_prev_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	char to[160], from[160], first[160];
	recurrent_use(e, "copy_row");
	const struct emit_loop loop[] = {{"d", p->directions, 1}, {"b", p->batch, 1}};
	emit_loops(e, (double)n->out[0]->numel, 2, loop);
	open_walk(e, n, 2, "\t\t");
	recurrent_place(p, "t", h, to);
	recurrent_place_y(p, recurrent_before(p), from);
	if (recurrent_has(n, 1)) {
		emit(e, "\t\t\t\tcopy_row(%" PRId64 ", s > 0 ? x0 + %s : x1 + %s, y0 + %s);\n", h,
			from, place_state(p, first), to);
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

/* Hidden units that one thread sums up. */
enum { PEEPHOLE_PIECE = 64 };

enum status recurrent_peephole_infer(struct graph *g, struct node *n)
{
	const struct recurrent *p = n->param;
	return data_output(g, n, 0, g->real, 2, (int64_t[]){p->directions, 3 * p->hidden});
}

enum status recurrent_peephole_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
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
			before, place_state(p, first));
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
