/* One step of LSTM (Hochreiter and Schmidhuber, "Long Short-Term Memory"; peepholes: Gers,
 * Schraudolph and Schmidhuber), GRU (Cho et al., "Learning Phrase Representations using RNN
 * Encoder-Decoder") and the plain recurrent net, forward and backward. Every step is a few products
 * over a block of samples and functions over rows of hidden units. */
#include <stdarg.h>
#include <stdio.h>

#include "ops/recurrent.h"

/* A call of a row function, five tabs deep: the count, then the arguments. */
static void row(struct emit *e, int64_t count, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void row(struct emit *e, int64_t count, const char *name, const char *fmt, ...)
{
	char args[500];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(args, sizeof args, fmt, ap);
	va_end(ap);
	recurrent_use(e, name);
	emit(e, "\t\t\t\t\t%s(%" PRId64 ", %s);\n", name, count, args);
}

static void activate(struct emit *e, const struct recurrent *p, int k, int64_t count,
	const char *base, int64_t at)
{
	char n[24], to[40];
	snprintf(n, sizeof n, "%" PRId64, count);
	snprintf(to, sizeof to, "%s + %" PRId64, base, at);
	emit_activation(e, p, k, "\t\t\t\t\t", n, at ? to : base);
}

/* Multiply zr by the slope of activation k, for gates [at, at + count) whose values are in g. */
static void slope(struct emit *e, const struct recurrent *p, int k, int64_t count, int64_t at)
{
	char n[24], from[40], to[40];
	snprintf(n, sizeof n, "%" PRId64, count);
	snprintf(from, sizeof from, "g + %" PRId64, at);
	snprintf(to, sizeof to, "zr + %" PRId64, at);
	emit_slope(e, p, k, "\t\t\t\t\t", n, at ? from : "g", at ? to : "zr");
}

static void product(struct emit *e, int64_t n, int64_t k, const char *a, int64_t lda, int64_t w,
	const char *c, int64_t ldc, bool add)
{
	emit(e, "\t\t\t\trecurrent_product(m, %" PRId64 ", %" PRId64 ", %s, %" PRId64 ", w", n, k,
		a, lda);
	if (w)
		emit(e, " + %" PRId64, w);
	emit(e, ", %s, %" PRId64 ", %d, pa);\n", c, ldc, add);
}

/* The rows z (the gates') and `h` (a state's), as zr and hr. */
static void open_row(struct emit *e, const struct recurrent *p, const char *state)
{
	emit(e, "\t\t\t\t\treal *const zr = z + r * %" PRId64 ";\n", p->gates * p->hidden);
	if (state)
		emit(e, "\t\t\t\t\treal *const %sr = %s + r * %" PRId64 ";\n", state, state,
			recurrent_state_row(p));
}

static void close_rows(struct emit *e)
{
	emit(e, "\t\t\t\t}\n");
}

static int64_t output_width(const struct recurrent *p, int out)
{
	return out == F_GATES ? p->gates * p->hidden : p->hidden;
}

static void store(struct emit *e, const struct node *n, int out, const char *from)
{
	const struct recurrent *p = n->param;
	const int64_t width = output_width(p, out);
	char place[160];
	if (n->out[out])
		row(e, width, "copy_row", "%s, y%d + %s", from, out,
			out == F_Y ? recurrent_place_y(p, "t", place)
				   : recurrent_place(p, "t", width, place));
}

/* Where a sample's sequence is over: zeros, and the state stays. */
static void finish(struct emit *e, const struct node *n)
{
	static const int each[] = {F_Y, F_GATES, F_AUX};
	const struct recurrent *p = n->param;
	char place[160];
	if (!recurrent_has(n, F_LEN))
		return;
	recurrent_use(e, "zero_row");
	emit(e, "\t\t\t\t\tif (s >= len) {\n");
	for (int i = 0; i < 3; i++)
		if (n->out[each[i]])
			emit(e, "\t\t\t\t\t\tzero_row(%" PRId64 ", y%d + %s);\n",
				output_width(p, each[i]), each[i],
				each[i] == F_Y
					? recurrent_place_y(p, "t", place)
					: recurrent_place(p, "t", output_width(p, each[i]), place));
	emit(e, "\t\t\t\t\t\tcontinue;\n\t\t\t\t\t}\n");
}

/* z = XW + bias; for linear_before_reset the recurrent bias begins u. */
static void gather(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t width = p->gates * p->hidden;
	const bool apart = p->cell == CELL_GRU && p->reset_after;
	char x[160], b[40] = "x2";
	recurrent_rows(e, n, F_LEN, false);
	recurrent_place(p, "t", width, x);
	if (p->directions == 2)
		snprintf(b, sizeof b, "x2 + d * %" PRId64, 2 * width);
	if (!recurrent_has(n, F_B))
		row(e, width, "copy_row", "x0 + %s, z + r * %" PRId64, x, width);
	else if (apart)
		row(e, width, "sum_row", "x0 + %s, %s, z + r * %" PRId64, x, b, width);
	else
		row(e, width, "biased_row", "x0 + %s, %s, %s + %" PRId64 ", z + r * %" PRId64, x, b,
			b, width, width);
	if (apart && recurrent_has(n, F_B))
		row(e, width, "copy_row", "%s + %" PRId64 ", u + r * %" PRId64, b, width, width);
	else if (apart)
		row(e, width, "zero_row", "u + r * %" PRId64, width);
	close_rows(e);
}

/* The peephole from the cell to gate `at` of zr: P holds those of i, o and f. */
static void peep(struct emit *e, const struct node *n, int p_input, int gate, const char *cell,
	const char *to, int64_t at)
{
	const struct recurrent *p = n->param;
	if (recurrent_has(n, p_input))
		row(e, p->hidden, "add_product_row",
			"x%d + d * %" PRId64 " + %" PRId64 ", %s, %s + %" PRId64, p_input,
			3 * p->hidden, gate * p->hidden, cell, to, at);
}

static void lstm_step(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, i = 0, o = h, f = 2 * h, c = 3 * h;
	const bool apart = recurrent_has(n, F_P) || p->input_forget;
	gather(e, n);
	product(e, 4 * h, h, "h", recurrent_state_row(p), 0, "z", 4 * h, true);
	recurrent_rows(e, n, F_LEN, true);
	finish(e, n);
	open_row(e, p, "h");
	emit(e, "\t\t\t\t\treal *const cr = c + r * %" PRId64 ";\n", recurrent_state_row(p));
	peep(e, n, F_P, 0, "cr", "zr", i);
	if (!p->input_forget)
		peep(e, n, F_P, 2, "cr", "zr", f);
	activate(e, p, 0, apart ? h : 3 * h, "zr", i);
	if (p->input_forget)
		row(e, h, "rest_row", "zr, zr + %" PRId64, f);
	else if (apart)
		activate(e, p, 0, h, "zr", f);
	activate(e, p, 1, h, "zr", c);
	row(e, h, "scale_row", "zr + %" PRId64 ", cr", f);
	row(e, h, "add_product_row", "zr, zr + %" PRId64 ", cr", c);
	peep(e, n, F_P, 1, "cr", "zr", o);
	if (apart)
		activate(e, p, 0, h, "zr", o);
	row(e, h, "copy_row", "cr, hr");
	activate(e, p, 2, h, "hr", 0);
	row(e, h, "scale_row", "zr + %" PRId64 ", hr", o);
	store(e, n, F_Y, "hr");
	store(e, n, F_GATES, "zr");
	store(e, n, F_AUX, "cr");
	close_rows(e);
}

/* The first half of a GRU step with linear_before_reset false: gates z and r, and r h. */
static void gru_reset(struct emit *e, const struct recurrent *p)
{
	const int64_t h = p->hidden;
	char hidden[40];
	product(e, 2 * h, h, "h", recurrent_state_row(p), 0, "z", 3 * h, true);
	emit(e, "\t\t\t\tfor (int64_t r = 0; r < m; r++) {\n");
	open_row(e, p, NULL);
	activate(e, p, 0, 2 * h, "zr", 0);
	row(e, h, "product_row", "zr + %" PRId64 ", h + r * %" PRId64 ", u + r * %" PRId64, h,
		recurrent_state_row(p), h);
	close_rows(e);
	snprintf(hidden, sizeof hidden, "z + %" PRId64, 2 * h);
	product(e, h, h, "u", h, recurrent_second(p, false), hidden, 3 * h, true);
}

static void gru_step(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	char hidden[40];
	gather(e, n);
	if (p->reset_after)
		product(e, 3 * h, h, "h", recurrent_state_row(p), 0, "u", 3 * h, true);
	else
		gru_reset(e, p);
	recurrent_rows(e, n, F_LEN, true);
	finish(e, n);
	open_row(e, p, "h");
	if (p->reset_after) {
		emit(e, "\t\t\t\t\tconst real *const ur = u + r * %" PRId64 ";\n", 3 * h);
		row(e, 2 * h, "add_row", "ur, zr");
		activate(e, p, 0, 2 * h, "zr", 0);
		row(e, h, "add_product_row", "zr + %" PRId64 ", ur + %" PRId64 ", zr + %" PRId64, h,
			2 * h, 2 * h);
	}
	activate(e, p, 1, h, "zr", 2 * h);
	row(e, h, "mix_row", "zr, zr + %" PRId64 ", hr", 2 * h);
	store(e, n, F_Y, "hr");
	store(e, n, F_GATES, "zr");
	snprintf(hidden, sizeof hidden, "ur + %" PRId64, 2 * h);
	store(e, n, F_AUX, hidden);
	close_rows(e);
}

static void rnn_step(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	gather(e, n);
	product(e, h, h, "h", recurrent_state_row(p), 0, "z", h, true);
	recurrent_rows(e, n, F_LEN, true);
	finish(e, n);
	open_row(e, p, "h");
	activate(e, p, 0, h, "zr", 0);
	row(e, h, "copy_row", "zr, hr");
	store(e, n, F_Y, "hr");
	close_rows(e);
}

enum status recurrent_emit(struct emit *e, const struct node *n)
{
	static void (*const step[])(struct emit *, const struct node *) = {
		lstm_step, gru_step, rnn_step};
	const struct recurrent *p = n->param;
	if (recurrent_cuda_fits(e->g->target, p))
		return recurrent_cuda_emit(e, n);
	recurrent_open(e, n, false);
	emit(e, "\t\t\tfor (int64_t s = 0; s < %" PRId64 "; s++) {\n", p->steps);
	step[p->cell](e, n);
	emit(e, "\t\t\t}\n\t\t}\n\treturn 0;\n");
	return ST_OK;
}

/* --- Backward: from the last step, z becomes the gradient of what goes into the gates --- */

/* Where a sample's sequence is over there is no gradient, and the state's waits. */
static void finish_grad(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t width = p->gates * p->hidden;
	char place[160];
	if (!recurrent_has(n, D_LEN))
		return;
	recurrent_use(e, "zero_row");
	recurrent_place(p, "t", width, place);
	emit(e, "\t\t\t\t\tif (s >= len) {\n");
	emit(e, "\t\t\t\t\t\tzero_row(%" PRId64 ", z + r * %" PRId64 ");\n", width, width);
	emit(e, "\t\t\t\t\t\tzero_row(%" PRId64 ", y0 + %s);\n", width, place);
	emit(e, "\t\t\t\t\t\tcontinue;\n\t\t\t\t\t}\n");
}

/* `before`: the state's row before step t, from the history `from` (Y, or cells). */
static void open_before(struct emit *e, const struct node *n, int from, int initial)
{
	const struct recurrent *p = n->param;
	const char *t = recurrent_before(p);
	char place[160], first[80] = "none";
	if (recurrent_has(n, initial))
		snprintf(first, sizeof first, "x%d + at_state + r * %" PRId64, initial,
			recurrent_state_row(p));
	emit(e, "\t\t\t\t\tconst real *const before = s > 0 ? x%d + %s : %s;\n", from,
		from == D_Y ? recurrent_place_y(p, t, place)
			    : recurrent_place(p, t, p->hidden, place),
		first);
}

static void open_gates(struct emit *e, const struct recurrent *p)
{
	char place[160];
	emit(e, "\t\t\t\t\tconst real *const g = x%d + %s;\n", D_GATES,
		p->cell == CELL_RNN ? recurrent_place_y(p, "t", place)
				    : recurrent_place(p, "t", p->gates * p->hidden, place));
}

/* Opens the loop over rows with zr, dhr (dY added) and the gates g. */
static void open_grad_rows(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	char place[160];
	recurrent_rows(e, n, D_LEN, true);
	finish_grad(e, n);
	open_row(e, p, "dh");
	open_gates(e, p);
	if (recurrent_has(n, D_DY))
		row(e, p->hidden, "add_row", "x%d + %s, dhr", D_DY,
			recurrent_place_y(p, "t", place));
}

static void store_grad(struct emit *e, const struct recurrent *p)
{
	char place[160];
	row(e, p->gates * p->hidden, "copy_row", "zr, y0 + %s",
		recurrent_place(p, "t", p->gates * p->hidden, place));
}

/* The gradient at the output gate and, through it, at the cell. */
static void lstm_output_grad(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, o = h;
	char count[24], place[160];
	snprintf(count, sizeof count, "%" PRId64, h);
	row(e, h, "copy_row", "x%d + %s, hc", D_AUX, recurrent_place(p, "t", h, place));
	activate(e, p, 2, h, "hc", 0);
	row(e, h, "product_row", "dhr, hc, zr + %" PRId64, o);
	slope(e, p, 0, h, o);
	row(e, h, "product_row", "dhr, g + %" PRId64 ", v", o);
	emit_slope(e, p, 2, "\t\t\t\t\t", count, "hc", "v");
	row(e, h, "add_row", "v, dcr");
	snprintf(place, sizeof place, "zr + %" PRId64, o);
	peep(e, n, D_P, 1, place, "dcr", 0);
}

static void lstm_back(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, f = 2 * h, c = 3 * h;
	char at_f[40];
	open_grad_rows(e, n);
	open_before(e, n, D_AUX, D_C0);
	emit(e, "\t\t\t\t\treal *const dcr = dc + r * %" PRId64 ";\n", recurrent_state_row(p));
	lstm_output_grad(e, n);
	if (p->input_forget) {
		row(e, h, "difference_product_row", "dcr, g + %" PRId64 ", before, zr", c);
		row(e, h, "zero_row", "zr + %" PRId64, f);
	} else {
		row(e, h, "product_row", "dcr, g + %" PRId64 ", zr", c);
		row(e, h, "product_row", "dcr, before, zr + %" PRId64, f);
		slope(e, p, 0, h, f);
	}
	slope(e, p, 0, h, 0);
	row(e, h, "product_row", "dcr, g, zr + %" PRId64, c);
	slope(e, p, 1, h, c);
	row(e, h, "scale_row", "g + %" PRId64 ", dcr", f);
	peep(e, n, D_P, 0, "zr", "dcr", 0);
	snprintf(at_f, sizeof at_f, "zr + %" PRId64, f);
	if (!p->input_forget)
		peep(e, n, D_P, 2, at_f, "dcr", 0);
	row(e, h, "zero_row", "dhr");
	store_grad(e, p);
	close_rows(e);
	product(e, h, 4 * h, "z", 4 * h, 0, "dh", recurrent_state_row(p), true);
}

/* With linear_before_reset false the hidden gate's gradient reaches r and h through a product: u.
 */
static void gru_reset_grad(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	char at_hidden[40];
	row(e, h, "scale_row", "g, dhr");
	close_rows(e);
	snprintf(at_hidden, sizeof at_hidden, "z + %" PRId64, 2 * h);
	product(e, h, h, at_hidden, 3 * h, recurrent_second(p, true), "u", h, false);
	recurrent_rows(e, n, D_LEN, true);
	if (recurrent_has(n, D_LEN))
		emit(e, "\t\t\t\t\tif (s >= len)\n\t\t\t\t\t\tcontinue;\n");
	open_row(e, p, "dh");
	open_gates(e, p);
	open_before(e, n, D_Y, D_H0);
	row(e, h, "product_row", "u + r * %" PRId64 ", before, zr + %" PRId64, h, h);
	slope(e, p, 0, h, h);
	row(e, h, "add_product_row", "u + r * %" PRId64 ", g + %" PRId64 ", dhr", h, h);
	store_grad(e, p);
	close_rows(e);
	product(e, h, 2 * h, "z", 3 * h, 0, "dh", recurrent_state_row(p), true);
}

static void gru_back(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	char place[160];
	open_grad_rows(e, n);
	open_before(e, n, D_Y, D_H0);
	row(e, h, "difference_product_row", "dhr, before, g + %" PRId64 ", zr", 2 * h);
	row(e, h, "rest_product_row", "dhr, g, zr + %" PRId64, 2 * h);
	slope(e, p, 1, h, 2 * h);
	if (!p->reset_after) {
		slope(e, p, 0, h, 0);
		gru_reset_grad(e, n);
		return;
	}
	row(e, h, "product_row", "zr + %" PRId64 ", x%d + %s, zr + %" PRId64, 2 * h, D_AUX,
		recurrent_place(p, "t", h, place), h);
	slope(e, p, 0, 2 * h, 0);
	row(e, h, "scale_row", "g, dhr");
	/* the gates may lie where dXW goes: r is read before; it stands between the product and
	 * the hidden gate */
	row(e, h, "copy_row", "g + %" PRId64 ", reset", h);
	store_grad(e, p);
	row(e, h, "scale_row", "reset, zr + %" PRId64, 2 * h);
	close_rows(e);
	product(e, h, 3 * h, "z", 3 * h, 0, "dh", recurrent_state_row(p), true);
}

static void rnn_back(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	open_grad_rows(e, n);
	row(e, h, "copy_row", "dhr, zr");
	slope(e, p, 0, h, 0);
	row(e, h, "zero_row", "dhr");
	store_grad(e, p);
	close_rows(e);
	product(e, h, h, "z", h, 0, "dh", recurrent_state_row(p), true);
}

enum status recurrent_grad_emit(struct emit *e, const struct node *n)
{
	static void (*const back[])(struct emit *, const struct node *) = {
		lstm_back, gru_back, rnn_back};
	static const int activations[] = {3, 2, 1};
	const struct recurrent *p = n->param;
	if (recurrent_cuda_fits(e->g->target, p))
		return recurrent_grad_cuda_emit(e, n);
	recurrent_open(e, n, true);
	emit_edges(e, p, activations[p->cell], "\t\t\t");
	emit(e, "\t\t\tfor (int64_t s = %" PRId64 "; s >= 0; s--) {\n", p->steps - 1);
	back[p->cell](e, n);
	emit(e, "\t\t\t}\n\t\t}\n");
	return ST_OK;
}
