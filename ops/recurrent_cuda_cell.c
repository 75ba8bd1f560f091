/* One step of LSTM, GRU and the plain recurrent net on a GPU, forward and backward: what a thread
 * does for one hidden unit of one sample. recurrent_cell.c has the same by rows. */
#include <stdio.h>

#include "ops/recurrent_cuda.h"

static const char tabs[] = "\t\t\t";

static const char *given(struct emit *e, const struct node *n, int input)
{
	if (!recurrent_has(n, input))
		return "0";
	return step_at_state(e, n->param, emit_text(e, "x%d", input));
}

static const char *over(const struct node *n, int lengths)
{
	return recurrent_has(n, lengths) ? "s >= len" : NULL;
}

static const char *last(const struct node *n, int lengths, const char *known)
{
	return recurrent_has(n, lengths) ? "s == len - 1" : known;
}

/* Activation k, and its slope from the value, of one number. */
static void activate(struct emit *e, const struct node *n, int k, const char *x)
{
	emit_activation(e, n->param, k, tabs, "1", emit_text(e, "&%s", x));
}

static void slope(struct emit *e, const struct node *n, int k, const char *value, const char *x)
{
	emit_slope(e, n->param, k, tabs, "1", emit_text(e, "&%s", value), emit_text(e, "&%s", x));
}

/* "x += peephole * y": P holds those of i, o and f. */
static void peep(
	struct emit *e, const struct node *n, int input, int gate, const char *y, const char *x)
{
	const int64_t h = ((const struct recurrent *)n->param)->hidden;
	if (recurrent_has(n, input))
		step_line(e, "%s += x%d[d * %" PRId64 " + %" PRId64 " + j] * %s;", x, input, 3 * h,
			gate * h, y);
}

/* --- Forward --- */

/* Where the state before this step lies, row or element. */
static const char *state_row(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	char y[160], first[160];
	recurrent_place_y(p, recurrent_before(p), y);
	if (!recurrent_has(n, F_H0))
		return emit_text(e, "y0 + %s", y);
	return emit_text(e, "s > 0 ? y0 + %s : x%d + %s", y, F_H0, recurrent_place_state(p, first));
}

static void open_states(struct emit *e, const struct node *n, const struct step_product *x)
{
	const bool known = !recurrent_has(n, F_LEN), first = recurrent_has(n, F_H0);
	const struct step_rows rows = {
		.when = first ? (known ? NULL : "s < len") : (known ? "s > 0" : "s > 0 && s < len"),
		.at = state_row(e, n),
		.later = !first};
	step_open(e, n, x, &rows, false);
}

/* Input k's part of gate k: XW and the biases, or (`both` false) the input's alone. */
static const char *gate_input(struct emit *e, const struct node *n, int k, bool both)
{
	const struct recurrent *p = n->param;
	const int64_t wide = p->gates * p->hidden, at = k * p->hidden;
	const char *x = step_at(e, p, "x0", "t", p->gates, k);
	if (!recurrent_has(n, F_B))
		return x;
	if (!both)
		return emit_text(
			e, "%s + x%d[d * %" PRId64 " + %" PRId64 " + j]", x, F_B, 2 * wide, at);
	return emit_text(e,
		"%s + (x%d[d * %" PRId64 " + %" PRId64 " + j] + x%d[d * %" PRId64 " + %" PRId64
		" + j])",
		x, F_B, 2 * wide, at, F_B, 2 * wide, wide + at);
}

static void store(
	struct emit *e, const struct node *n, int out, int64_t gates, int k, const char *value)
{
	if (n->out[out])
		step_line(e, "%s = %s;",
			step_at(e, n->param, emit_text(e, "y%d", out), "t", gates, k), value);
}

/* The step's state h. */
static void store_state(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	step_line(e, "%s = h;", step_at_y(e, p, "y0", "t"));
	step_line(e, "if (%s)", last(n, F_LEN, "turn == TURNS - 1"));
	step_line(e, "\t%s = h;", step_at_state(e, p, "y1"));
}

/* Where a sample's sequence is over: zeros, and the state stays. */
static void finish(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	if (!over(n, F_LEN))
		return;
	step_line(e, "if (%s) {", over(n, F_LEN));
	step_line(e, "%s = 0;", step_at_y(e, p, "y0", "t"));
	for (int k = 0; k < p->gates; k++)
		store(e, n, F_GATES, p->gates, k, "0");
	store(e, n, F_AUX, 1, 0, "0");
	step_line(e, "if (s == 0)");
	step_line(e, "\t%s = %s;", step_at_state(e, p, "y1"), given(e, n, F_H0));
	if (p->cell == CELL_LSTM) {
		step_line(e, "if (s == 0)");
		step_line(e, "\t%s = %s;", step_at_state(e, p, "y2"), given(e, n, F_C0));
	}
	step_line(e, "continue;");
	step_line(e, "}");
}

/* The state before the step, h. */
static void open_state(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	step_line(e, "real h = s > 0 ? %s : %s;", step_at_y(e, p, "y0", recurrent_before(p)),
		given(e, n, F_H0));
}

static void lstm_step(struct emit *e, const struct node *n)
{
	static const char *const z[] = {"zi", "zo", "zf", "zc"};
	const struct recurrent *p = n->param;
	open_states(e, n, &(struct step_product){.gates = 4, .terms = p->hidden});
	finish(e, n);
	for (int k = 0; k < 4; k++)
		step_line(
			e, "real %s = %s + (%s);", z[k], step_sum(e, k), gate_input(e, n, k, true));
	step_line(e, "real c = s > 0 ? %s : %s;", step_at_state(e, p, "y2"), given(e, n, F_C0));
	peep(e, n, F_P, 0, "c", "zi");
	activate(e, n, 0, "zi");
	if (p->input_forget) {
		step_line(e, "zf = 1 - zi;");
	} else {
		peep(e, n, F_P, 2, "c", "zf");
		activate(e, n, 0, "zf");
	}
	activate(e, n, 1, "zc");
	step_line(e, "c = zf * c + zi * zc;");
	peep(e, n, F_P, 1, "c", "zo");
	activate(e, n, 0, "zo");
	step_line(e, "real h = c;");
	activate(e, n, 2, "h");
	step_line(e, "h *= zo;");
	for (int k = 0; k < 4; k++)
		store(e, n, F_GATES, 4, k, z[k]);
	store(e, n, F_AUX, 1, 0, "c");
	step_line(e, "%s = c;", step_at_state(e, p, "y2"));
	store_state(e, n);
	step_close(e);
}

/* h = (1 - z) n + z h */
static void mix(struct emit *e, const struct node *n)
{
	step_line(e, "h = (1 - zz) * zn + zz * h;");
	store_state(e, n);
}

static void gru_after(struct emit *e, const struct node *n)
{
	static const char *const z[] = {"zz", "zr", "zn"};
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, wide = 3 * h;
	open_states(e, n, &(struct step_product){.gates = 3, .terms = h});
	finish(e, n);
	open_state(e, n);
	for (int k = 0; k < 3; k++) {
		const char *name = k < 2 ? z[k] : "u";
		step_line(e, "real %s = %s;", name, step_sum(e, k));
		if (recurrent_has(n, F_B))
			step_line(e, "%s += x%d[d * %" PRId64 " + %" PRId64 " + j];", name, F_B,
				2 * wide, wide + k * h);
	}
	for (int k = 0; k < 2; k++) {
		step_line(e, "%s += %s;", z[k], gate_input(e, n, k, false));
		activate(e, n, 0, z[k]);
	}
	step_line(e, "real zn = (%s) + zr * u;", gate_input(e, n, 2, false));
	activate(e, n, 1, "zn");
	for (int k = 0; k < 3; k++)
		store(e, n, F_GATES, 3, k, z[k]);
	store(e, n, F_AUX, 1, 0, "u");
	mix(e, n);
	step_close(e);
}

/* The hidden gate's product has r h for its rows: a launch for the other gates, one for it. They
 * meet in scratch: r h, then (where gates are not kept) the update gate. */
static void gru_before(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden, all = p->directions * p->batch * h;
	const char *own = emit_text(e, "(d * %" PRId64 " + b) * %" PRId64, p->batch, h);
	const char *kept = n->out[F_GATES]
				   ? step_at(e, p, emit_text(e, "y%d", F_GATES), "t", 3, 0)
				   : emit_text(e, "((real *)ws)[%" PRId64 " + %s + j]", all, own);
	open_states(e, n, &(struct step_product){.gates = 2, .terms = h});
	if (over(n, F_LEN))
		step_line(e, "if (%s)\n%s\tcontinue;", over(n, F_LEN), tabs);
	step_line(e, "real zz = %s + (%s);", step_sum(e, 0), gate_input(e, n, 0, true));
	step_line(e, "real zr = %s + (%s);", step_sum(e, 1), gate_input(e, n, 1, true));
	activate(e, n, 0, "zz");
	activate(e, n, 0, "zr");
	open_state(e, n);
	step_line(e, "((real *)ws)[%s + j] = zr * h;", own);
	step_line(e, "%s = zz;", kept);
	store(e, n, F_GATES, 3, 1, "zr");
	step_close(e);
	emit(e, "\treturn 0;\n");
	emit_stage(e);
	step_open(e, n, &(struct step_product){.from = 2 * h, .gates = 1, .terms = h},
		&(struct step_rows){.when = over(n, F_LEN) ? "s < len" : NULL,
			.at = emit_text(e, "(const real *)ws + %s", own)},
		false);
	finish(e, n);
	step_line(e, "real zn = %s + (%s);", step_sum(e, 0), gate_input(e, n, 2, true));
	activate(e, n, 1, "zn");
	step_line(e, "const real zz = %s;", kept);
	open_state(e, n);
	store(e, n, F_GATES, 3, 2, "zn");
	mix(e, n);
	step_close(e);
}

static void gru_step(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	if (p->reset_after)
		gru_after(e, n);
	else
		gru_before(e, n);
}

static void rnn_step(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	open_states(e, n, &(struct step_product){.gates = 1, .terms = p->hidden});
	finish(e, n);
	step_line(e, "real h = %s + (%s);", step_sum(e, 0), gate_input(e, n, 0, true));
	activate(e, n, 0, "h");
	store_state(e, n);
	step_close(e);
}

int64_t recurrent_cuda_workspace(const struct node *n)
{
	const struct recurrent *p = n->param;
	if (!recurrent_split(p))
		return 0;
	return p->directions * p->batch * p->hidden * (p->keep ? 1 : 2) * (int64_t)sizeof(float);
}

/* Behind all else: nobody waits for the thread that returns. */
static void check_lengths(struct emit *e, const struct recurrent *p)
{
	emit(e, "\tfor (int64_t b = 0; b < %" PRId64 " && turn == 0 && THREAD == 0; b++)\n",
		p->batch);
	emit(e, "\t\tif (x%d[b] < 0 || x%d[b] > %" PRId64 ")\n", F_LEN, F_LEN, p->steps);
	emit(e, "\t\t\treturn BAD_INDEX(x%d[b]);\n", F_LEN);
}

enum status recurrent_cuda_emit(struct emit *e, const struct node *n)
{
	static void (*const step[])(struct emit *, const struct node *) = {
		lstm_step, gru_step, rnn_step};
	const struct recurrent *p = n->param;
	step[p->cell](e, n);
	if (recurrent_has(n, F_LEN))
		check_lengths(e, p);
	emit(e, "\treturn 0;\n");
	return ST_OK;
}

/* --- Backward: the last step first. dXW has what goes into the product of the step before, the
 * states' gradients wait in their outputs; the turn behind the first step's makes dh0. --- */

/* The product with the weights' rows [0, terms) or, where `at` is given, others. */
static void open_grad(
	struct emit *e, const struct node *n, const struct step_product *x, const char *at)
{
	const struct recurrent *p = n->param;
	const char *after = p->directions == 2 ? "(d ? t - 1 : t + 1)"
			    : p->reverse       ? "(t - 1)"
					       : "(t + 1)";
	char place[160];
	recurrent_place(p, after, p->gates * p->hidden, place);
	const struct step_rows rows = {.when = recurrent_has(n, D_LEN) ? "s + 1 < len" : "turn > 0",
		.at = at ? at : emit_text(e, "y0 + %s", place),
		.later = true};
	step_open(e, n, x, &rows, true);
}

static void store_grad(struct emit *e, const struct recurrent *p, int k, const char *value)
{
	step_line(e, "%s = %s;", step_at(e, p, "y0", "t", p->gates, k), value);
}

/* The ends of the walk: dh0 in turn s = -1, and zeros where a sequence is over. `carry`: what waits
 * in dh0 is a part of the gradient. */
static void ends(struct emit *e, const struct node *n, bool carry)
{
	const struct recurrent *p = n->param;
	const char *dh = step_at_state(e, p, "y1");
	const bool known = !recurrent_has(n, D_LEN);
	step_line(e, "if (s < 0) {");
	step_line(e, carry ? "\tconst real dh = %s + %s;" : "\tconst real dh = %s;", step_sum(e, 0),
		dh);
	if (known)
		step_line(e, "\t%s = dh;", dh);
	else
		step_line(e, "\t%s = len > 0 ? dh : %s;", dh, given(e, n, D_DYH));
	if (!known && p->cell == CELL_LSTM) {
		step_line(e, "\tif (len == 0)");
		step_line(e, "\t\t%s = %s;", step_at_state(e, p, "y2"), given(e, n, D_DYC));
	}
	step_line(e, "\tcontinue;");
	step_line(e, "}");
	if (known)
		return;
	step_line(e, "if (s >= len) {");
	for (int k = 0; k < p->gates; k++)
		store_grad(e, p, k, "0");
	step_line(e, "continue;");
	step_line(e, "}");
}

/* dh: from the step behind, or from Y_h, and from Y. */
static void open_dh(struct emit *e, const struct node *n, bool carry)
{
	const struct recurrent *p = n->param;
	const char *sum = step_sum(e, 0);
	if (carry)
		sum = emit_text(e, "%s + %s", sum, step_at_state(e, p, "y1"));
	step_line(e, "%sreal dh = %s ? %s : %s;", recurrent_has(n, D_DY) ? "" : "const ",
		last(n, D_LEN, "turn == 0"), given(e, n, D_DYH), sum);
	if (recurrent_has(n, D_DY))
		step_line(e, "dh += %s;", step_at_y(e, p, emit_text(e, "x%d", D_DY), "t"));
}

/* Gates as activated, each by its name; they may lie where dXW goes. */
static void open_gates(struct emit *e, const struct recurrent *p, const char *const *name)
{
	for (int k = 0; k < p->gates; k++)
		step_line(e, "const real %s = %s;", name[k], step_at(e, p, "x0", "t", p->gates, k));
}

static void lstm_back(struct emit *e, const struct node *n)
{
	static const char *const g[] = {"gi", "go", "gf", "gc"}, *const z[] = {
									 "zi", "zo", "zf", "zc"};
	const struct recurrent *p = n->param;
	const char *cells = emit_text(e, "x%d", D_AUX);
	open_grad(e, n, &(struct step_product){.gates = 1, .terms = 4 * p->hidden, .across = true},
		NULL);
	ends(e, n, false);
	open_dh(e, n, false);
	open_gates(e, p, g);
	step_line(e, "real dc = %s ? %s : %s;", last(n, D_LEN, "turn == 0"), given(e, n, D_DYC),
		step_at_state(e, p, "y2"));
	step_line(e, "const real before = s > 0 ? %s : %s;",
		step_at(e, p, cells, recurrent_before(p), 1, 0), given(e, n, D_C0));
	step_line(e, "real hc = %s;", step_at(e, p, cells, "t", 1, 0));
	activate(e, n, 2, "hc");
	step_line(e, "real zo = dh * hc, v = dh * go;");
	slope(e, n, 0, "go", "zo");
	slope(e, n, 2, "hc", "v");
	step_line(e, "dc += v;");
	peep(e, n, D_P, 1, "zo", "dc");
	if (p->input_forget) {
		step_line(e, "real zi = dc * (gc - before);");
		step_line(e, "const real zf = 0;");
	} else {
		step_line(e, "real zi = dc * gc, zf = dc * before;");
		slope(e, n, 0, "gf", "zf");
	}
	slope(e, n, 0, "gi", "zi");
	step_line(e, "real zc = dc * gi;");
	slope(e, n, 1, "gc", "zc");
	step_line(e, "dc *= gf;");
	peep(e, n, D_P, 0, "zi", "dc");
	if (!p->input_forget)
		peep(e, n, D_P, 2, "zf", "dc");
	for (int k = 0; k < 4; k++)
		store_grad(e, p, k, z[k]);
	step_line(e, "%s = dc;", step_at_state(e, p, "y2"));
	step_close(e);
}

static void open_before(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	step_line(e, "const real before = s > 0 ? %s : %s;",
		step_at_y(e, p, emit_text(e, "x%d", D_Y), recurrent_before(p)), given(e, n, D_H0));
}

static const char *const gru_gates[] = {"gz", "gr", "gn"};

/* zz and zn, the update and the hidden gate's gradients, before zz meets its slope. */
static void gru_open(struct emit *e, const struct node *n)
{
	open_dh(e, n, true);
	open_before(e, n);
	step_line(e, "real zz = dh * (before - gn), zn = dh * (1 - gz);");
	slope(e, n, 1, "gn", "zn");
	slope(e, n, 0, "gz", "zz");
}

/* What the product reads has the hidden gate's gradient times r, which dXW has not: it lies in
 * scratch, for this step and the one before. */
static void gru_after_back(struct emit *e, const struct node *n)
{
	static const char *const z[] = {"zz", "zr", "zn"};
	const struct recurrent *p = n->param;
	const int64_t wide = 3 * p->hidden, each = p->directions * p->batch * wide;
	const char *own = emit_text(e, "(d * %" PRId64 " + b) * %" PRId64, p->batch, wide);
	open_grad(e, n, &(struct step_product){.gates = 1, .terms = wide, .across = true},
		emit_text(e, "(const real *)ws + (turn + 1) %% 2 * %" PRId64 " + %s", each, own));
	ends(e, n, true);
	open_gates(e, p, gru_gates);
	gru_open(e, n);
	step_line(e, "real zr = zn * %s;", step_at(e, p, emit_text(e, "x%d", D_AUX), "t", 1, 0));
	slope(e, n, 0, "gr", "zr");
	step_line(e, "%s = dh * gz;", step_at_state(e, p, "y1"));
	for (int k = 0; k < 3; k++)
		store_grad(e, p, k, z[k]);
	step_line(e, "real *const to = (real *)ws + turn %% 2 * %" PRId64 " + %s + j;", each, own);
	for (int k = 0; k < 3; k++)
		step_line(e, "to[%" PRId64 "] = %s;", k * p->hidden, k < 2 ? z[k] : "gr * zn");
	step_close(e);
}

/* The hidden gate's gradient reaches r and h through a product of its own: a second launch. */
static void gru_before_back(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	char place[160];
	open_grad(e, n, &(struct step_product){.gates = 1, .terms = 2 * h, .across = true}, NULL);
	ends(e, n, true);
	step_line(e, "const real gz = %s;", step_at(e, p, "x0", "t", 3, 0));
	step_line(e, "const real gn = %s;", step_at(e, p, "x0", "t", 3, 2));
	gru_open(e, n);
	step_line(e, "%s = dh * gz;", step_at_state(e, p, "y1"));
	store_grad(e, p, 0, "zz");
	store_grad(e, p, 2, "zn");
	step_close(e);
	emit_stage(e);
	recurrent_place(p, "t", 3 * h, place);
	step_open(e, n,
		&(struct step_product){.from = 2 * h, .gates = 1, .terms = h, .across = true},
		&(struct step_rows){
			.when = recurrent_has(n, D_LEN) ? "s >= 0 && s < len" : "s >= 0",
			.at = emit_text(e, "y0 + %s + %" PRId64, place, 2 * h)},
		true);
	step_line(e, recurrent_has(n, D_LEN) ? "if (s < 0 || s >= len)" : "if (s < 0)");
	step_line(e, "\tcontinue;");
	open_before(e, n);
	step_line(e, "const real gr = %s, u = %s;", step_at(e, p, "x0", "t", 3, 1), step_sum(e, 0));
	step_line(e, "real zr = u * before;");
	slope(e, n, 0, "gr", "zr");
	step_line(e, "%s += u * gr;", step_at_state(e, p, "y1"));
	store_grad(e, p, 1, "zr");
	step_close(e);
}

static void gru_back(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	if (p->reset_after)
		gru_after_back(e, n);
	else
		gru_before_back(e, n);
}

static void rnn_back(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	open_grad(
		e, n, &(struct step_product){.gates = 1, .terms = p->hidden, .across = true}, NULL);
	ends(e, n, false);
	open_dh(e, n, false);
	step_line(e, "const real g = %s;", step_at_y(e, p, "x0", "t"));
	step_line(e, "real z = dh;");
	slope(e, n, 0, "g", "z");
	store_grad(e, p, 0, "z");
	step_close(e);
}

int64_t recurrent_grad_cuda_workspace(const struct node *n)
{
	const struct recurrent *p = n->param;
	if (!p->reset_after)
		return 0;
	return 2 * p->directions * p->batch * 3 * p->hidden * (int64_t)sizeof(float);
}

enum status recurrent_grad_cuda_emit(struct emit *e, const struct node *n)
{
	static void (*const back[])(struct emit *, const struct node *) = {
		lstm_back, gru_back, rnn_back};
	const struct recurrent *p = n->param;
	back[p->cell](e, n);
	return ST_OK;
}
