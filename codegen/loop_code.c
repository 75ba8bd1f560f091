/* Loops that are one node: a function for each body, which does one turn, and the node's, which
 * says where the operands of each are (kernels/loop_run.h). */
#include "graph/loop.h"

#include <inttypes.h>
#include <string.h>

#include "codegen/call.h"
#include "codegen/parts.h"

struct loop_code {
	const struct loop *loop;
	int number; /* from 1 */
	struct schedule *body;
	struct loop_code *before;
};

/* --- Bodies, resolved --- */

static struct loop_code *find_code(const struct kernels *ks, const struct loop *l)
{
	struct loop_code *c = ks->loop;
	while (c && c->loop != l)
		c = c->before;
	return c;
}

static enum status make_code(struct kernels *ks, const struct loop *l, struct loop_code **out)
{
	struct loop_code *c = ARENA_NEW(ks->arena, struct loop_code);
	struct schedule *body = ARENA_ARRAY(ks->arena, struct schedule, l->nbody);
	if (!c || !body)
		return diag_nomem(ks->diag);
	for (int b = 0; b < l->nbody; b++)
		TRY(schedule_make(
			ks, l->planned->problem[b], l->planned->plan[b], false, false, &body[b]));
	*c = (struct loop_code){.loop = l,
		.number = ks->loop ? ks->loop->number + 1 : 1,
		.body = body,
		.before = ks->loop};
	*out = ks->loop = c;
	return ST_OK;
}

/* --- The node's function --- */

static const char *where_text(const struct loop_place *p, bool output)
{
	switch (p->kind) {
	case LOOP_SLICE:
		return p->backwards ? "LOOP_SLICE_BACKWARDS" : "LOOP_SLICE";
	case LOOP_CARRY:
		return output ? "LOOP_AFTER" : "LOOP_BEFORE";
	case LOOP_GRADIENT:
		return output ? "LOOP_GRADIENT_BEFORE" : "LOOP_GRADIENT_AFTER";
	default:
		return "LOOP_SAME";
	}
}

/* "x3", "y0": an operand of the node's; "NULL" where it is absent or has no bytes. */
static void emit_operand(struct emit *e, const struct node *n, int k, bool output)
{
	const struct tensor *t = output ? n->out[k] : n->in[k];
	if (!t || t->numel == 0) {
		emit(e, "NULL");
	} else if (output) {
		emit(e, "y%d", k);
		use_output(e, k);
	} else {
		emit_input(e, k);
	}
}

static void emit_place(struct emit *e, const struct node *n, const struct loop_scratch *ws,
	const struct loop_body *b, int i, bool output)
{
	const struct loop_place *p = output ? &b->out[i] : &b->in[i];
	const struct tensor *t = output ? b->graph->output[i] : b->graph->input[i];
	emit(e, "\n\t\t{%s, %d, %d, ", where_text(p, output), p->k, p->shift);
	if (p->kind > LOOP_SLICE)
		emit(e, "NULL");
	else if (output && loop_makes_sum(b, i) && !t->over)
		emit(e, "SCRATCH(ws, %" PRId64 ")", ws->sum);
	else
		emit_operand(e, n, p->k, p->output);
	emit(e, ", %" PRId64 "},", tensor_bytes(t));
}

/* Of sums that are made beside their places. All share one scratch: each is copied at once. */
static int emit_copies(struct emit *e, const struct node *n, const struct loop_scratch *ws,
	const struct loop_body *b, int number)
{
	int copies = 0;
	for (int i = 0; i < b->graph->noutput; i++) {
		const struct tensor *t = b->graph->output[i];
		if (!loop_makes_sum(b, i) || t->over)
			continue;
		if (copies++ == 0)
			emit(e, "\tconst struct loop_copy c%d[] = {", number);
		emit(e, "\n\t\t{");
		emit_operand(e, n, b->out[i].k, true);
		emit(e, ", SCRATCH(ws, %" PRId64 "), %" PRId64 "},", ws->sum, tensor_bytes(t));
	}
	if (copies)
		emit(e, "\n\t};\n");
	return copies;
}

static int operands_of(const struct loop_body *b)
{
	return b->graph->ninput + b->graph->noutput;
}

static void emit_bodies(struct emit *e, const struct node *n, const struct loop_scratch *ws,
	const struct loop_code *c)
{
	const struct loop *l = c->loop;
	int most = 1;
	int *copies = ARENA_ARRAY(e->g->arena, int, l->nbody);
	if (!copies) {
		e->out.failed = true;
		return;
	}
	for (int b = 0; b < l->nbody; b++) {
		const struct loop_body *x = &l->body[b];
		emit(e, "\tconst struct loop_operand o%d[] = {", b);
		for (int i = 0; i < x->graph->ninput; i++)
			emit_place(e, n, ws, x, i, false);
		for (int i = 0; i < x->graph->noutput; i++)
			emit_place(e, n, ws, x, i, true);
		emit(e, "\n\t};\n");
		copies[b] = emit_copies(e, n, ws, x, b);
		most = operands_of(x) > most ? operands_of(x) : most;
	}
	emit(e, "\tconst struct loop_body body[] = {");
	for (int b = 0; b < l->nbody; b++) {
		emit(e, "\n\t\t{loop%d_turn%d, %d, o%d, %d, ", c->number, b + 1,
			operands_of(&l->body[b]), b, copies[b]);
		emit(e, copies[b] ? "c%d}," : "NULL},", b);
	}
	emit(e, "\n\t};\n\tunsigned char *operand[%d];\n", most);
}

static void emit_two(struct emit *e, const struct loop_two *two)
{
	if (two->at[0] < 0)
		emit(e, ", {NULL, NULL}");
	else
		emit(e, ", {SCRATCH(ws, %" PRId64 "), SCRATCH(ws, %" PRId64 ")}", two->at[0],
			two->at[1]);
}

static void emit_carries(
	struct emit *e, const struct node *n, const struct loop_scratch *ws, const struct loop *l)
{
	const bool forward = n->op->role == ROLE_LOOP;
	emit(e, "\tconst struct loop_carry carry[] = {");
	for (int i = 0; i < l->ncarry; i++) {
		emit(e, "\n\t\t{%" PRId64 ", ", loop_carry_bytes(l, i));
		emit_operand(e, n, i, false);
		emit(e, ", ");
		if (l->kept[i] >= 0)
			emit_operand(e, n, l->kept[i], forward);
		else
			emit(e, "NULL");
		emit(e, ", ");
		if (forward)
			emit_operand(e, n, i, true);
		else
			emit(e, "NULL");
		emit_two(e, &ws->spare[i]);
		emit_two(e, &ws->gradient[i]);
		emit(e, "},");
	}
	if (l->ncarry == 0)
		emit(e, "\n\t\t{0, NULL, NULL, NULL, {NULL, NULL}, {NULL, NULL}},");
	emit(e, "\n\t};\n");
}

/* Where data end it: which operands say so. */
static void emit_end(struct emit *e, const struct node *n, const struct loop *l)
{
	if (l->ran < 0)
		return;
	if (n->op->role == ROLE_LOOP) {
		emit(e, "\t\t.go = ");
		emit_operand(e, n, l->go, true);
		emit(e, ",\n\t\t.ran = ");
	} else {
		emit(e, "\t\t.has_run = ");
	}
	emit_operand(e, n, l->ran, n->op->role == ROLE_LOOP);
	emit(e, ",\n");
}

enum status loop_body(
	struct kernels *ks, struct emit *e, const struct node *n, const struct loop_code **loop)
{
	const struct loop *l = node_loop(n);
	struct loop_code *c = find_code(ks, l);
	struct loop_scratch ws;
	if (!c)
		TRY(make_code(ks, l, &c));
	TRY(loop_scratch_find((struct graph *)e->g, n, &ws));
	*loop = c;
	e->uses->runtime = true;
	emit_source(e, "loop_run.h", 0, NULL);
	emit_bodies(e, n, &ws, c);
	emit_carries(e, n, &ws, l);
	if (ws.bytes > 0)
		use_scratch(e);
	emit(e,
		"\treturn loop_%s(&(const struct loop){.step = s,\n"
		"\t\t.arena = %s,\n\t\t.operand = operand,\n"
		"\t\t.turns = %" PRId64 ",\n\t\t.slots = %" PRId64 ",\n"
		"\t\t.lead = %d, .cycle = %d, .last = %d, .advance = %d,\n",
		n->op->role == ROLE_LOOP ? "forward" : "backward", ws.bytes > 0 ? "ws" : "NULL",
		l->turns, l->slots < 0 ? -1 : l->slots, l->lead, l->cycle, l->last, l->advance);
	emit_end(e, n, l);
	emit(e, "\t\t.body = body,\n\t\t.carry = carry}%s);\n",
		n->op->role == ROLE_LOOP ? emit_text(e, ", %d", l->ncarry) : "");
	return ST_OK;
}

/* --- Turns --- */

/* Which operand of the body tensor x is; -1: it is in the body's arena. */
static int operand_of(const struct graph *g, const struct tensor *x)
{
	for (int i = 0; i < g->ninput; i++)
		if (g->input[i] == x)
			return i;
	for (int i = 0; i < g->noutput; i++)
		if (g->output[i] == x)
			return g->ninput + i;
	return -1;
}

static void print_operand(
	const struct schedule *s, const struct tensor *t, int buffer, bool input, struct text *out)
{
	const struct tensor *x = tensor_storage((struct tensor *)t);
	const struct plan_buffer *b = &s->plan->buffer[buffer];
	const char *type = emit_type(t), *constant = input ? "const " : "";
	if (x->outside && x->numel > 0)
		text_add(out, "(%s%s *)p[%d]", constant, type, operand_of(s->gp->graph, x));
	else if (b->bytes == 0)
		text_puts(out, "NULL");
	else
		text_add(out, "(%s%s *)(arena + %" PRId64 ")", constant, type, b->offset);
}

static void print_arguments(
	const struct schedule *s, const struct call *c, const struct kernel *k, struct text *t)
{
	const char *comma = kernel_fails(k) ? ", " : "";
	text_puts(t, kernel_fails(k) ? "s" : "");
	for (int i = 0; i < k->narg; i++, comma = ", ") {
		const struct kernel_arg a = k->arg[i];
		text_puts(t, comma);
		if (a.kind == 'w')
			text_add(t, "arena + %" PRId64, s->plan->buffer[c->workspace].offset);
		else if (a.kind == 'y')
			print_operand(s, c->node.out[a.k], c->out[a.k], false, t);
		else
			print_operand(s, c->node.in[a.k], c->in[a.k], true, t);
	}
	if (k->checked)
		text_add(t, "%s&bad", comma);
	comma = k->checked ? ", " : comma;
	for (int i = 0; i < k->nsize; i++, comma = ", ")
		text_add(t, "%s%s", comma, k->size[i]);
}

/* One line, which ends the turn where the kernel fails. */
static void print_turn_call(
	const struct schedule *s, const struct kernels *ks, int step, struct text *t)
{
	const struct call *c = &s->call[step];
	const struct kernel *k = &ks->kernel[c->kernel];
	const bool said = k->runtime, fails = kernel_fails(k), checks = k->checked && !fails;
	if (said) {
		text_puts(t, "\tLOOP_SAID(");
	} else if (fails || checks) {
		text_add(t, "\tLOOP_%s(%d, ", fails ? "CALL" : "INDEX", step);
		text_literal(t, c->node.name);
		text_puts(t, ", ");
		text_literal(t, c->node.op->name);
		text_puts(t, ", ");
	} else {
		text_puts(t, "\t");
	}
	text_add(t, "%s(", k->name);
	print_arguments(s, c, k, t);
	text_puts(t, said || fails || checks ? "));" : ");");
	if (said || !(fails || checks)) {
		text_puts(t, " /* ");
		text_comment(t, c->node.name);
		text_puts(t, " (");
		text_comment(t, c->node.op->name);
		text_puts(t, ") */");
	}
	text_puts(t, "\n");
}

static void print_turn(const struct kernels *ks, const struct loop_code *c, int b, struct text *t)
{
	const struct schedule *s = &c->body[b];
	bool fails = false, checked = false;
	for (int i = 0; i < s->plan->nstep; i++) {
		const struct kernel *k = &ks->kernel[s->call[i].kernel];
		fails |= kernel_fails(k);
		checked |= k->checked && !kernel_fails(k);
	}
	text_add(t,
		"\n/* A turn of loop %d%s. */\n"
		"static int loop%d_turn%d(void *step, unsigned char *arena, unsigned char *const "
		"*p)\n{\n",
		c->number, b == c->loop->advance ? ", forward again, for its carries" : "",
		c->number, b + 1);
	if (fails || checked)
		text_puts(t, "\tstint_step *s = step;\n");
	else
		text_puts(t, "\t(void)step;\n");
	if (checked)
		text_puts(t, "\tint64_t bad = 0;\n");
	text_puts(t, "\t(void)arena, (void)p;\n");
	for (int i = 0; i < s->plan->nstep; i++)
		print_turn_call(s, ks, i, t);
	text_puts(t, "\treturn STINT_OK;\n}\n");
}

void print_loop_turns(const struct kernels *ks, const struct loop_code *loop, struct text *t)
{
	for (int b = 0; b < loop->loop->nbody; b++)
		print_turn(ks, loop, b, t);
}
