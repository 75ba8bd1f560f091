/* The text of an optimizer's update, made from the lines of its rule (graph/op_optimizer.h): first
 * what depends on the step alone, then one loop over the elements, which reads the parameter, its
 * gradient and the states, does the lines, and stores what they have made of the parameter and the
 * states. `control` says by [1] how many steps were done before, and by [3] to leave all as it is.
 *
 * A gradient is an array, or, where a step does not store it, the product of a column and a row,
 * the last two inputs. States are reals, or bf16 that is rounded by chance (kernels/keep.h), or
 * codes of 8 bits that a block of elements has a scale for (kernels/coded.h). */
#include "codegen/call.h"

#include <string.h>

#include "codegen/parts.h"
#include "graph/expr.h"
#include "graph/op_optimizer.h"

enum {
	PARAM,
	GRAD,
	LR,
	CONTROL,
	STATE0,
	COLUMN = -2, /* from the last input on */
	ROW = -1,
	OPTIONS = 16,
	LINES = 2 * OP_RULE_LINES,
	NAMES = 4 + OP_STATES + LINES
};

/* Names that stand for no line and no state. */
static const char *const given[] = {"lr", "t", "p", "g"};
enum { NAME_LR, NAME_T, NAME_P, NAME_G, GIVEN };

struct state {
	const struct op_state *of;
	int at, key; /* which of the node's it is, and of those that the record's may be narrow */
};

struct line {
	int name; /* among the names */
	bool live, once;
	struct expr tree;
};

struct update {
	const struct node *n;
	int nname, nstate, nline;
	const char *name[NAMES + 1];
	double value[OPTIONS]; /* of the options */
	struct state state[OP_STATES];
	struct line line[LINES];
	bool slow; /* it takes long to work out what depends on the step alone */
	bool decoupled;
	double decay;
};

/* --- The rule --- */

static int name_index(struct update *u, const char *name)
{
	int i = 0;
	while (i < u->nname && strcmp(u->name[i], name) != 0)
		i++;
	if (i == u->nname)
		u->name[u->nname++] = name;
	return i;
}

/* The state of this name; NULL: none. */
static const struct state *state_named(const struct update *u, int name)
{
	for (int k = 0; k < u->nstate; k++)
		if (!strcmp(u->state[k].of->name, u->name[name]))
			return &u->state[k];
	return NULL;
}

static bool is_number(const struct state *s)
{
	return s->of->shape == STATE_NUMBER;
}

static bool line_reads(const struct line *l, int name)
{
	return expr_reads(&l->tree, EXPR_OPERAND, name);
}

/* Whether a live line of the lines [from, nline) reads a name; `once`: of those alone. */
static bool is_read(const struct update *u, int from, bool once, int name)
{
	for (int i = from; i < u->nline; i++)
		if (u->line[i].live && (!once || u->line[i].once) && line_reads(&u->line[i], name))
			return true;
	return false;
}

static int first_each(const struct update *u)
{
	int i = 0;
	while (i < u->nline && u->line[i].once)
		i++;
	return i;
}

/* Whether the loop reads it. */
static bool each_reads(const struct update *u, int name)
{
	return is_read(u, first_each(u), false, name);
}

/* Whether p is shrunk before all else. */
static bool shrinks(const struct update *u)
{
	return u->decoupled && u->decay != 0;
}

static void find_states(struct update *u)
{
	int at = 0, key = 0;
	for (const struct op_state *s = u->n->op->optimizer->state; s->name; s++) {
		name_index(u, s->name);
		if (node_has_state(u->n, s))
			u->state[u->nstate++] = (struct state){s, at++, key};
		key += s->shape == STATE_WHOLE;
	}
}

static bool add_lines(struct update *u, const struct op_line *lines, bool once)
{
	const struct expr_scope scope = {u->n->op->option, u->name, u->value};
	for (const struct op_line *l = lines; l && l->name; l++) {
		struct line *to = &u->line[u->nline++];
		to->once = once;
		if (!expr_parse_in(&to->tree, l->value, &scope))
			return false;
		to->name = name_index(u, l->name);
	}
	return true;
}

static void mark_live(struct update *u)
{
	for (int i = u->nline - 1; i >= 0; i--) {
		struct line *l = &u->line[i];
		l->live = l->name == NAME_P || state_named(u, l->name) ||
			  is_read(u, i + 1, false, l->name);
		u->slow |= l->live && l->once && expr_slow_calls(&l->tree) > 0;
	}
}

/* Whether a line reads the option of that name. */
static bool is_option_read(const struct update *u, const char *name)
{
	const struct op_option *option = u->n->op->option;
	for (int i = 0; option && option[i].name; i++)
		for (int k = 0; k < u->nline && !strcmp(option[i].name, name); k++)
			if (expr_reads(&u->line[k].tree, EXPR_OPTION, i))
				return true;
	return false;
}

static enum status read_rule(const struct emit *e, const struct node *n, struct update *u)
{
	const struct op_optimizer *o = n->op->optimizer;
	int i = 0;
	*u = (struct update){.n = n, .nname = GIVEN, .decay = node_option(n, "weight_decay")};
	memcpy(u->name, given, sizeof given);
	for (const struct op_option *p = n->op->option; p && p->name && i < OPTIONS; p++)
		u->value[i++] = node_option(n, p->name);
	u->decoupled = o->decoupled || node_option(n, "decoupled_weight_decay") != 0;
	find_states(u);
	if (!add_lines(u, o->once, true) || !add_lines(u, o->each, false)) {
		const struct expr *x = &u->line[u->nline - 1].tree;
		return diag_fail(e->g->diag, ST_INTERNAL,
			&(struct where){.node = n->name, .op = n->op->name}, NULL,
			"the record's rule is not understood at \"%s\": %s", x->text + x->at,
			x->wrong);
	}
	if (is_option_read(u, "weight_decay"))
		u->decay = 0;
	mark_live(u);
	return ST_OK;
}

/* --- Once --- */

/* "x3[1]" */
static void emit_element(struct emit *e, int input, const char *index)
{
	emit_input(e, input);
	emit(e, "[%s]", index);
}

static void emit_return(struct emit *e)
{
	emit(e, "\tif (");
	emit_element(e, CONTROL, "3");
	emit(e, ")\n\t\treturn;\n");
}

static void emit_value(struct emit *e, const struct update *u, const struct line *l)
{
	const struct expr_names as = {.wide = l->once, .value = l->once ? NULL : u->value};
	expr_print(&l->tree, &as, &e->out);
}

static bool once_reads_option(const struct update *u, int option)
{
	for (int i = 0; i < u->nline; i++)
		if (u->line[i].live && u->line[i].once &&
			expr_reads(&u->line[i].tree, EXPR_OPTION, option))
			return true;
	return false;
}

/* What the lines read. */
static void emit_once_given(struct emit *e, const struct update *u, const char *tabs)
{
	const struct op_option *option = u->n->op->option;
	char buf[LITERAL_TEXT];
	for (int i = 0; option && option[i].name; i++)
		if (once_reads_option(u, i))
			emit(e, "%sconst double %s = %s;\n", tabs, option[i].name,
				literal_text(u->value[i], false, buf));
	if (is_read(u, 0, true, NAME_LR) || shrinks(u)) {
		emit(e, "%sconst double lr = (double)", tabs);
		emit_element(e, LR, "0");
		emit(e, ";\n");
	}
	if (is_read(u, 0, true, NAME_T)) {
		emit(e, "%sconst double t = (double)(", tabs);
		emit_element(e, CONTROL, "1");
		emit(e, " + 1);\n");
	}
	for (int k = 0; k < u->nstate; k++)
		if (is_number(&u->state[k])) {
			emit(e, "%sdouble %s = (double)", tabs, u->state[k].of->name);
			emit_element(e, STATE0 + u->state[k].at, "0");
			emit(e, ";\n");
		}
}

/* The lines; `shared`: what the loop reads is declared already. */
static void emit_once_lines(struct emit *e, const struct update *u, const char *tabs, bool shared)
{
	char buf[LITERAL_TEXT];
	for (int i = 0; i < u->nline && u->line[i].once; i++) {
		const struct line *l = &u->line[i];
		const bool real = each_reads(u, l->name);
		if (!l->live)
			continue;
		emit(e, "%s%s%s = %s", tabs,
			state_named(u, l->name) || (real && shared) ? ""
			: real                                      ? "const real "
								    : "const double ",
			u->name[l->name], real ? "R(" : "");
		emit_value(e, u, l);
		emit(e, real ? ");\n" : ";\n");
	}
	if (shrinks(u))
		emit(e, "%s%sshrink = R(1 - lr * %s);\n", tabs, shared ? "" : "const real ",
			literal_text(u->decay, false, buf));
}

/* On a GPU one thread of a block works out for all what takes long. */
static void emit_once(struct emit *e, const struct update *u)
{
	const bool shared = e->g->target->cuda && u->slow;
	if (!shared) {
		emit_once_given(e, u, "\t");
		emit_once_lines(e, u, "\t", false);
		return;
	}
	for (int i = 0; i < u->nline && u->line[i].once; i++)
		if (u->line[i].live && each_reads(u, u->line[i].name))
			emit(e, "\t__shared__ real %s;\n", u->name[u->line[i].name]);
	if (shrinks(u))
		emit(e, "\t__shared__ real shrink;\n");
	emit(e, "\tif (threadIdx.x == 0) {\n");
	emit_once_given(e, u, "\t\t");
	emit_once_lines(e, u, "\t\t", true);
	emit(e, "\t}\n\t__syncthreads();\n");
}

/* States that are one number: on a GPU in a launch of its own, as all blocks read what was before,
 * with such lines alone as they need. */
static void emit_numbers(struct emit *e, const struct update *u)
{
	struct update numbers = *u;
	int n = 0;
	for (int k = 0; k < u->nstate; k++)
		n += is_number(&u->state[k]);
	if (n > 0 && e->g->target->cuda) {
		e->stage[e->nstage - 1].end = e->out.len;
		e->stage[e->nstage++] = (struct launch_shape){.blocks = 1, .threads = 1};
		numbers.nline = first_each(u);
		numbers.decay = 0;
		mark_live(&numbers);
		emit_once_given(e, &numbers, "\t");
		emit_once_lines(e, &numbers, "\t", false);
		emit_return(e);
	}
	for (int k = 0; k < u->nstate; k++)
		if (is_number(&u->state[k])) {
			use_output(e, 1 + u->state[k].at);
			emit(e, "\ty%d[0] = R(%s);\n", 1 + u->state[k].at, u->state[k].of->name);
		}
}

/* --- An element --- */

/* A mean of a row's or a column's elements, which a kernel before has made anew. */
static bool is_mean(const struct state *s)
{
	return s->of->shape == STATE_ROWS || s->of->shape == STATE_COLUMNS;
}

/* Elements of a row, where the loop goes by rows; 0: it does not. */
static int64_t row_length(const struct update *u)
{
	const struct node *n = u->n;
	for (int k = 0; k < u->nstate; k++)
		if (is_mean(&u->state[k]))
			return n->in[PARAM]->dim[n->in[PARAM]->rank - 1];
	return n->in[GRAD] ? 0 : n->in[n->nin + ROW]->numel;
}

static bool is_narrow(const struct update *u, const struct state *s)
{
	return dtype_is_narrow(u->n->in[STATE0 + s->at]->dtype);
}

static bool is_coded(const struct state *s)
{
	return s->of->shape == STATE_CODES;
}

/* The scale of a state in codes. */
static int scale_of(const struct update *u, const struct state *s)
{
	int which = 0;
	for (const struct state *k = u->state; k < s; k++)
		which += is_coded(k);
	for (int k = 0; k < u->nstate; k++)
		if (u->state[k].of->shape == STATE_SCALES && which-- == 0)
			return u->state[k].at;
	return -1;
}

static const char *map_of(const struct state *s)
{
	return s->of->positive ? "unsigned_map" : "signed_map";
}

static void emit_column(struct emit *e, const struct update *u)
{
	emit(e, "i - r * ");
	emit_size(e, row_length(u));
}

/* "real p = shrink * x0[i];", "real exp_avg = x4[i];" */
static void emit_reads(struct emit *e, const struct update *u, const char *tabs)
{
	emit(e, "%sreal p = %s", tabs, shrinks(u) ? "shrink * " : "");
	emit_element(e, PARAM, "i");
	emit(e, ";\n");
	for (int k = 0; k < u->nstate; k++) {
		const struct state *s = &u->state[k];
		const int at = STATE0 + s->at;
		if (s->of->shape != STATE_WHOLE && !is_coded(s) && !is_mean(s))
			continue;
		emit(e, "%sreal %s = ", tabs, s->of->name);
		if (is_mean(s)) {
			use_output(e, 1 + s->at);
			emit(e, "y%d[", 1 + s->at);
			if (s->of->shape == STATE_COLUMNS)
				emit_column(e, u);
			else
				emit(e, "r");
			emit(e, "];\n");
		} else if (is_coded(s)) {
			emit(e, "(real)%s[", map_of(s));
			emit_element(e, at, "i");
			emit(e, "] * ");
			emit_element(e, STATE0 + scale_of(u, s), "b");
			emit(e, ";\n");
		} else {
			emit(e, is_narrow(u, s) ? "kept_value(" : "");
			emit_element(e, at, "i");
			emit(e, is_narrow(u, s) ? ");\n" : ";\n");
		}
	}
}

/* A product as a sum, never -0. */
static void emit_gradient(struct emit *e, const struct update *u, const char *tabs)
{
	emit(e, "%sconst real g = %s", tabs, node_option(u->n, "maximize") != 0 ? "-" : "");
	if (u->n->in[GRAD]) {
		emit_element(e, GRAD, "i");
	} else {
		emit(e, "(0 + ");
		emit_element(e, u->n->nin + COLUMN, "r");
		emit(e, " * ");
		emit_input(e, u->n->nin + ROW);
		emit(e, "[");
		emit_column(e, u);
		emit(e, "])");
	}
	if (!u->decoupled && u->decay != 0) {
		char buf[LITERAL_TEXT];
		emit(e, " + R(%s) * p", literal_text(u->decay, false, buf));
	}
	emit(e, ";\n");
}

static void emit_stores(struct emit *e, const struct update *u, const char *tabs)
{
	for (int k = 0; k < u->nstate; k++) {
		const struct state *s = &u->state[k];
		const char *name = s->of->name;
		const int y = 1 + s->at;
		if (s->of->shape == STATE_WHOLE || is_coded(s))
			use_output(e, y);
		if (is_coded(s)) {
			emit(e, "%snew_%s[i - begin] = %s;\n", tabs, name, name);
		} else if (s->of->shape == STATE_WHOLE && is_narrow(u, s)) {
			emit(e, "%sKEEP(y%d, i, %s, %d);\n", tabs, y, name, s->key);
		} else if (s->of->shape == STATE_WHOLE) {
			emit(e, "%sy%d[i] = %s;\n", tabs, y, name);
		}
	}
	use_output(e, 0);
	emit(e, "%sy0[i] = p;\n", tabs);
}

static void emit_update_element(struct emit *e, const struct update *u, const char *tabs)
{
	emit_reads(e, u, tabs);
	if (each_reads(u, NAME_G))
		emit_gradient(e, u, tabs);
	for (int i = 0; i < u->nline; i++) {
		const struct line *l = &u->line[i];
		if (!l->live || l->once)
			continue;
		const bool own = l->name != NAME_P && !state_named(u, l->name);
		emit(e, "%s%s%s = ", tabs, own ? "const real " : "", u->name[l->name]);
		emit_value(e, u, l);
		emit(e, ";\n");
	}
	emit_stores(e, u, tabs);
}

/* --- The loops --- */

static void emit_range(struct emit *e, const struct update *u, int64_t turns)
{
	const bool shared = emit_is_shared(e, (double)u->n->out[0]->numel * 4);
	e->uses->threads |= shared;
	emit(e, shared ? "\tPARALLEL_RANGE (" : "\tRANGE (");
	emit_size(e, turns);
	emit(e, ") {\n");
}

/* Blocks of elements whose states are codes: they are coded again when all of them are there. */
static void emit_blocks(struct emit *e, const struct update *u, int64_t blocks)
{
	emit_source(e, "coded.h", 0, NULL);
	emit_range(e, u, blocks);
	emit(e, "\t\tfor (int64_t b = from; b < to; b++) {\n"
		"\t\t\tconst int64_t begin = b * CODED_BLOCK, end = MIN(begin + CODED_BLOCK, ");
	emit_size(e, u->n->out[0]->numel);
	emit(e, ");\n");
	for (int k = 0; k < u->nstate; k++)
		if (is_coded(&u->state[k]))
			emit(e, "\t\t\treal new_%s[CODED_BLOCK];\n", u->state[k].of->name);
	emit(e, "\t\t\tfor (int64_t i = begin; i < end; i++) {\n");
	emit_update_element(e, u, "\t\t\t\t");
	emit(e, "\t\t\t}\n");
	for (int k = 0; k < u->nstate; k++) {
		const struct state *s = &u->state[k];
		const int scale = 1 + scale_of(u, s);
		if (!is_coded(s))
			continue;
		use_output(e, scale);
		emit(e, "\t\t\tmap_block(y%d + begin, y%d + b, %s, new_%s, end - begin);\n",
			1 + s->at, scale, map_of(s), s->of->name);
	}
	emit(e, "\t\t}\n\t}\n");
}

/* How many of the states are drawn for, absent ones before the last included. */
static int draws(const struct update *u)
{
	int n = 0;
	for (int k = 0; k < u->nstate; k++)
		if (is_narrow(u, &u->state[k]))
			n = u->state[k].key + 1;
	return n;
}

/* Elements in one loop, or in parts: of a row, where the gradient is a product, and as many as are
 * drawn for side by side. */
static void emit_elements(struct emit *e, const struct update *u)
{
	const int drawn = draws(u);
	const int64_t row = row_length(u);
	const bool parts = drawn || row;
	emit_range(e, u, u->n->out[0]->numel);
	if (row) {
		emit(e, "\t\tIN_ROWS (");
		emit_size(e, row);
		emit(e, ") {\n");
	} else if (parts) {
		emit(e, "\t\tIN_PARTS {\n");
	}
	if (drawn) {
		emit(e, "\t\t\tDRAW(%d, ", drawn);
		emit_input(e, CONTROL);
		emit(e, ", key, begin);\n");
	}
	emit(e, parts ? "\t\t\tEACH\n\t\t\tfor (int64_t i = begin; i < end; i++) {\n"
		      : "\t\tEACH\n\t\tfor (int64_t i = from; i < to; i++) {\n");
	emit_update_element(e, u, parts ? "\t\t\t\t" : "\t\t\t");
	emit(e, parts ? "\t\t\t}\n\t\t}\n\t}\n" : "\t\t}\n\t}\n");
}

/* As keep a device busy: more would each work out what depends on the step, which takes longer than
 * their turns. */
enum { BUSY_BLOCKS = 2048 };

enum status emit_update(struct emit *e, const struct node *n)
{
	struct update u;
	const int64_t numel = n->out[0]->numel;
	int64_t turns = numel;
	TRY(read_rule(e, n, &u));
	emit_source(e, "update.h", 0, NULL);
	emit_once(e, &u);
	if (draws(&u)) {
		emit(e, "\tconst int64_t key = ");
		emit_size(e, op_state_key(n));
		emit(e, ";\n");
	}
	emit_return(e);
	if (u.nstate > 0 && is_coded(&u.state[0])) {
		turns = numel / OP_STATE_BLOCK + (numel % OP_STATE_BLOCK != 0);
		emit_blocks(e, &u, turns);
	} else {
		emit_elements(e, &u);
	}
	if (e->g->target->cuda) {
		e->stage[e->nstage] = launch_of_turns(turns, false, 0);
		if (u.slow && e->stage[e->nstage].blocks > BUSY_BLOCKS)
			e->stage[e->nstage].blocks = BUSY_BLOCKS;
		e->nstage++;
	}
	emit_numbers(e, &u);
	return e->out.failed ? diag_nomem(e->g->diag) : ST_OK;
}
