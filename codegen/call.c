/* Calls of kernels, printed (codegen/call.h). */
#include "codegen/call.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"

/* --- Arguments --- */

static void print_pointer(struct emit *e, const struct call_arg *a)
{
	if (a->kind == CALL_X) {
		emit_input(e, a->k);
	} else {
		emit(e, "y%d", a->k);
		use_output(e, a->k);
	}
	if (a->i)
		emit(e, " + %" PRId64, a->i);
}

static void print_ints(struct emit *e, const struct call_arg *a)
{
	for (int i = 0; i < a->k; i++) {
		emit(e, i ? ", " : "{");
		if (a->kind == CALL_SIZES)
			emit_size(e, a->ints[i]);
		else
			emit(e, "%" PRId64, a->ints[i]);
	}
	emit(e, "}");
}

static void print_double(struct emit *e, double v)
{
	char buf[LITERAL_TEXT];
	emit(e, "%s", literal_text(v, false, buf));
}

static void print_arg(struct emit *e, const struct call_arg *a)
{
	char buf[40];
	switch (a->kind) {
	case CALL_X:
	case CALL_Y:
		print_pointer(e, a);
		break;
	case CALL_INT:
		emit(e, "%" PRId64, a->i);
		break;
	case CALL_SIZE:
		emit_size(e, a->i);
		break;
	case CALL_REAL:
		emit(e, "%s", emit_real(e, a->v, buf));
		break;
	case CALL_DOUBLE:
		print_double(e, a->v);
		break;
	case CALL_SCRATCH:
		use_scratch(e);
		if (a->i)
			emit(e, "SCRATCH(ws, %" PRId64 ")", a->i);
		else
			emit(e, "ws");
		break;
	case CALL_OWN:
		use_scratch(e);
		emit(e, "OWN_SCRATCH(ws, %" PRId64 ", %" PRId64 ")", a->i, a->bytes);
		break;
	case CALL_NULL:
		emit(e, "NULL");
		break;
	case CALL_INTS:
	case CALL_SIZES:
		print_ints(e, a);
		break;
	case CALL_NAME:
		emit(e, "%s", a->name);
		break;
	case CALL_STRUCT:
		emit(e, "&%s", a->of->name);
		break;
	case CALL_TABLE:
		emit(e, "%s", a->table->name);
		break;
	case CALL_LOCAL:
		emit(e, "%s", a->local->name);
		break;
	case CALL_NUMBERS:
		emit(e, "%s", a->numbers->name);
		break;
	case CALL_NONE:
	case CALL_END:
		break;
	}
}

/* --- Calls --- */

static bool is_pointer(const struct call_arg *a)
{
	return a->kind == CALL_X || a->kind == CALL_Y || a->kind == CALL_SCRATCH;
}

/* The word that is left out where a function has numbers for parameters. */
static void emit_static(struct emit *e)
{
	const size_t at = e->out.len;
	emit(e, "static ");
	note_number(e, at, WORD_STATIC);
}

static void print_struct(struct emit *e, const struct call_struct *s)
{
	enum { WIDTH = 56 };
	bool constant = true;
	for (const struct call_field *f = s->field; f->name; f++)
		constant = constant && !is_pointer(&f->value);
	emit(e, "\t");
	if (constant)
		emit_static(e);
	emit(e, "const %s %s = {", s->type, s->name);
	size_t line = e->out.len;
	const char *comma = "";
	for (const struct call_field *f = s->field; f->name; f++) {
		if (f->value.kind == CALL_NONE)
			continue;
		const bool wrap = e->out.len - line > WIDTH;
		emit(e, "%s%s", comma, wrap ? "\n\t\t" : *comma ? " " : "");
		comma = ",";
		if (wrap)
			line = e->out.len;
		emit(e, ".%s = ", f->name);
		print_arg(e, &f->value);
	}
	emit(e, "};\n");
}

static void print_table(struct emit *e, const struct call_table *t)
{
	emit(e, "\tconst %s %s[] = {", t->type, t->name);
	for (int r = 0; r < t->rows; r++) {
		emit(e, "%s\n\t\t{", r ? "," : "");
		for (int c = 0; c < t->columns; c++) {
			emit(e, c ? ", " : "");
			print_arg(e, &t->value[r * t->columns + c]);
		}
		emit(e, "}");
	}
	emit(e, "};\n");
}

static void print_numbers(struct emit *e, const struct call_numbers *v)
{
	char buf[40];
	emit(e, "\tstatic const %s %s[] = {", v->whole ? "int32_t" : "real", v->name);
	for (int64_t i = 0; i < v->n; i++) {
		emit(e, i == 0 ? "" : i % 8 ? ", " : ",\n\t\t");
		if (v->whole)
			emit(e, "%" PRId32, v->whole[i]);
		else
			emit(e, "%s", emit_real(e, v->real[i], buf));
	}
	emit(e, "};\n");
}

/* "struct shape {\n\t\tenum : int64_t { batch = 2, heads = 4 };" and "static constexpr real scale()
 * ...": types of a function's own have no other constants. */
static void print_traits(struct emit *e, const struct call_struct *s)
{
	enum { WIDTH = 70 };
	const char *comma = "";
	char buf[40];
	emit(e, "\t%s %s {\n\t\tenum : int64_t {", s->type, s->name);
	size_t line = e->out.len;
	for (const struct call_field *f = s->field; f->name; f++) {
		if (f->value.kind != CALL_INT)
			continue;
		const bool wrap = e->out.len - line > WIDTH;
		emit(e, "%s%s%s = %" PRId64, comma, wrap ? "\n\t\t\t" : " ", f->name, f->value.i);
		if (wrap)
			line = e->out.len;
		comma = ",";
	}
	emit(e, " };\n");
	for (const struct call_field *f = s->field; f->name; f++)
		if (f->value.kind == CALL_REAL)
			emit(e, "\t\tstatic constexpr real %s() { return %s; }\n", f->name,
				emit_real(e, f->value.v, buf));
	emit(e, "\t};\n");
}

/* Whether a call before this one has made it: then it is the same. */
static bool is_declared(struct emit *e, const char *name)
{
	struct body_uses *u = e->uses;
	for (int i = 0; i < u->nstruct; i++)
		if (!strcmp(u->name[i], name))
			return true;
	if (u->nstruct < CALL_STRUCTS)
		u->name[u->nstruct++] = name;
	return false;
}

static void print_args(struct emit *e, const struct call_arg *args, const char *comma)
{
	for (const struct call_arg *a = args; a->kind != CALL_END; a++) {
		if (a->kind == CALL_NONE)
			continue;
		emit(e, "%s", comma);
		print_arg(e, a);
		comma = ", ";
	}
}

/* "softmax_rows_real_bf16(y0, x0, 10, from, to)" */
static void print_call(struct emit *e, const struct kernel_call *c, const char *suffix)
{
	const char *comma = "";
	emit(e, "%s%s", c->function, suffix);
	if (c->traits || c->nconstant)
		emit(e, "<%s%s", c->traits ? c->traits->name : "",
			c->traits && c->nconstant ? ", " : "");
	for (int i = 0; i < c->nconstant; i++)
		emit(e, "%s%" PRId64, i ? ", " : "", c->constant[i]);
	emit(e, c->traits || c->nconstant ? ">(" : "(");
	for (int i = 0; i < 2 && c->shared[i]; i++, comma = ", ")
		emit(e, "%sshared%d", comma, i);
	print_args(e, c->args, comma);
	emit(e, "%s%s%s)", c->turns ? ", from, to" : "", c->repeat ? ", turn" : "",
		c->checked ? ", bad" : "");
}

static bool has_own_scratch(const struct kernel_call *c)
{
	for (const struct call_arg *a = c->args; a->kind != CALL_END; a++)
		if (a->kind == CALL_OWN)
			return true;
	return false;
}

static void print_turns(struct emit *e, const struct kernel_call *c)
{
	const bool shared = c->turns > 1 && emit_is_shared(e, c->work);
	e->uses->threads |= shared;
	emit(e, "%s(", shared ? "PARALLEL_TURNS" : "TURNS");
	emit_size(e, c->turns);
	emit(e, ", ");
}

/* The launch: by the call's own tasks, or as its turns allow. */
static void add_stage(struct emit *e, const struct kernel_call *c)
{
	struct launch_shape shape = {.blocks = 1, .threads = 1, .turns = c->repeat};
	if (c->tasks) {
		shape.blocks = launch_blocks(c->tasks);
		shape.threads = c->threads;
		shape.resident = c->resident;
	} else if (c->turns) {
		shape = launch_of_turns(c->turns, has_own_scratch(c), e->g->target->threads);
	}
	e->stage[e->nstage++] = shape;
}

int64_t call_piece(const struct emit *e, int64_t n)
{
	return e->g->target->cuda || n < 1 ? 1 : n;
}

static void print_runtime_call(struct emit *e, const struct runtime_call *c)
{
	emit(e, "%s(s", c->function);
	for (const struct call_arg *a = c->args; a->kind != CALL_END; a++) {
		emit(e, ", ");
		print_arg(e, a);
	}
	emit(e, ")");
}

enum status call_runtime(struct emit *e, const struct runtime_call *c)
{
	if (e->nstage > 0) {
		const struct text kernels = e->out;
		e->out = (struct text){0};
		print_runtime_call(e, c);
		e->then = e->out;
		e->out = kernels;
		return ST_OK;
	}
	e->uses->runtime = true;
	emit(e, "\treturn ");
	print_runtime_call(e, c);
	emit(e, ";\n");
	return ST_OK;
}

enum status call_kernel(struct emit *e, const struct kernel_call *c)
{
	const bool cuda = e->g->target->cuda;
	c = cuda && c->cuda ? c->cuda : c;
	const bool stage = cuda && !c->along;
	if (stage && e->nstage == STAGES_MAX)
		return diag_fail(
			e->g->diag, ST_INTERNAL, NULL, NULL, "too many launches: %s", c->function);
	if (stage && e->nstage > 0) {
		if (e->uses->checked)
			emit(e, "\treturn 0;\n");
		e->stage[e->nstage - 1].end = e->out.len;
	}
	if (e->uses->checked && !c->checked && (stage || !e->uses->told))
		emit(e, "\t(void)bad;\n");
	e->uses->told = true;
	if (!c->turns && !c->once && !c->tasks) {
		emit(e, "\t/* no elements */\n");
		if (cuda)
			e->stage[e->nstage++] = (struct launch_shape){.blocks = 1, .threads = 1};
		return ST_OK;
	}
	const char *suffix = emit_source(e, c->file, c->ntype, c->type);
	for (const struct call_arg *a = c->args; a->kind != CALL_END; a++)
		if (a->kind == CALL_STRUCT && (cuda || !is_declared(e, a->of->name)))
			print_struct(e, a->of);
		else if (a->kind == CALL_LOCAL && !is_declared(e, a->local->name))
			emit(e, "\t%s %s[%d];\n", a->local->type, a->local->name, a->local->n);
		else if (a->kind == CALL_TABLE)
			print_table(e, a->table);
		else if (a->kind == CALL_NUMBERS)
			print_numbers(e, a->numbers);
	if (c->traits)
		print_traits(e, c->traits);
	for (int i = 0; i < 2 && c->shared[i]; i++)
		emit(e, "\t__shared__ %s shared%d;\n", c->shared[i], i);
	emit(e, "\t");
	if (c->checked)
		emit(e, "if (");
	else if (c->turns)
		print_turns(e, c);
	print_call(e, c, suffix);
	emit(e, c->checked ? ")\n\t\treturn 1;\n" : c->turns ? ");\n" : ";\n");
	if (stage)
		add_stage(e, c);
	return ST_OK;
}
