/* step_train.h and step_eval.h: a schedule for people and for the compiler, one step a line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"
#include "graph/cost.h"
#include "graph/fused.h"

/* Columns' widths. What is longer than most of them may be pushes the rest aside. */
struct columns {
	int step, node, op, kernel;
};

/* --- Cells --- */

static const char *caller_at(const struct schedule *s, const struct kernels *ks, int step)
{
	const int kernel = s->call[step].kernel;
	return kernel < 0 ? "copy" : ks->kernel[kernel].caller;
}

/* "LAST | UPDATED" */
static void print_when(
	const struct schedule *s, const struct kernels *ks, int step, bool aside, struct text *t)
{
	const struct call *c = &s->call[step];
	const bool bare = ks->graph->target->bare;
	const struct {
		bool on;
		const char *word;
	} when[] = {{c->node.last, "LAST"},
		{!bare && c->updates < 0 && hands_on(&c->node), "UPDATED"},
		{!aside && group_at(s, ks, step), "TOGETHER"}, {aside, "ASIDE"},
		{!aside && c->when >= 0, "BRANCH"}, {c->node.op->role == ROLE_OUTSIDE, "PAUSE"}};
	const char *before = "";
	for (size_t i = 0; i < sizeof when / sizeof *when; i++)
		if (when[i].on) {
			text_add(t, "%s%s", before, when[i].word);
			before = " | ";
		}
	if (!*before)
		text_puts(t, "ALWAYS");
}

/* The name of a buffer's place. */
static const char *place_at(const struct schedule *s, int b)
{
	const int tensor = b < 0 ? -1 : s->plan->buffer[b].tensor;
	const bool value = tensor >= 0 && tensor < s->nresident && resident_in_value(s, tensor);
	return value || (b >= 0 && s->plan->buffer[b].bytes > 0) ? s->place[b].name : "NOTHING";
}

static int buffer_of(const struct call *c, struct kernel_arg a)
{
	return a.kind == 'w' ? c->workspace : a.kind == 'y' ? c->out[a.k] : c->in[a.k];
}

static void print_row_places(
	const struct schedule *s, const struct kernels *ks, const struct call *c, struct text *t)
{
	const struct kernel *k = c->kernel < 0 ? NULL : &ks->kernel[c->kernel];
	if (c->when >= 0)
		text_add(t, "%s, ", place_at(s, c->when));
	if (!k || k->narg == 0)
		text_puts(t, "NOTHING");
	for (int i = 0; k && i < k->narg; i++)
		text_add(t, "%s%s", i ? ", " : "", place_at(s, buffer_of(c, k->arg[i])));
}

/* What is no column: whose steps these were, and with which they go. */
static void print_remark(
	const struct schedule *s, const struct kernels *ks, int step, struct text *t)
{
	const struct call *c = &s->call[step];
	const struct update_group *g = group_at(s, ks, step);
	struct text title = {0};
	const char *comma = "";
	if (node_fused(&c->node)) {
		node_title(&c->node, &title);
		text_puts(t, " /* ");
		text_comment(t, title.s ? title.s : "");
		comma = ", ";
	}
	if (c->when >= 0) {
		text_add(t, "%sif %s", *comma ? comma : " /* ", place_at(s, c->when));
		comma = ", ";
	}
	if (c->run > 0) {
		text_add(t, "%srecompute of step %d", *comma ? comma : " /* ", c->first + 1);
		comma = ", ";
	}
	if (g && g->step[g->n - 1] != step) {
		text_add(t, "%slaunched with step %d", *comma ? comma : " /* ",
			g->step[g->n - 1] + 1);
		comma = ", ";
	}
	text_puts(t, *comma ? " */" : "");
	t->failed |= title.failed;
	text_free(&title);
}

/* --- Rows --- */

/* A cell that begins at `from` and is so wide. */
static void pad(struct text *t, size_t from, int width)
{
	const int len = (int)(t->len - from);
	if (!t->failed && len < width)
		text_add(t, "%*s", width - len, "");
}

static void print_row(const struct schedule *s, const struct kernels *ks,
	const struct columns *wide, int step, struct text *t)
{
	static const char *const phase[] = {"FORWARD, ", "BACKWARD,", "UPDATE,  "};
	const struct call *c = &s->call[step];
	const struct op_cost cost = c->kernel >= 0
					    ? node_cost(&c->node)
					    : (struct op_cost){.bytes = node_bytes(&c->node)};
	text_add(t, "/* %*d */ STEP(%s ", wide->step, step + 1,
		phase[s->gp->problem->op[c->op].phase]);
	size_t cell = t->len;
	text_literal(t, c->node.name);
	text_puts(t, ",");
	pad(t, cell, wide->node + 1);
	text_puts(t, " ");
	cell = t->len;
	text_literal(t, c->node.op->name);
	text_puts(t, ",");
	pad(t, cell, wide->op + 1);
	text_add(t, " %d, ", c->run);
	cell = t->len;
	text_add(t, "%.9g, %.9g, ", cost.flops, cost.bytes);
	pad(t, cell, 18);
	print_when(s, ks, step, false, t);
	text_puts(t, ", ");
	cell = t->len;
	text_add(t, "%s,", caller_at(s, ks, step));
	pad(t, cell, wide->kernel + 1);
	text_puts(t, " ");
	print_row_places(s, ks, c, t);
	text_puts(t, ")");
	print_remark(s, ks, step, t);
	text_puts(t, "\n");
}

/* --- All --- */

static int wider(int width, size_t len)
{
	enum { MOST = 40 };
	return len <= MOST && (int)len > width ? (int)len : width;
}

static struct columns columns_of(const struct schedule *s, const struct kernels *ks)
{
	struct columns w = {.step = snprintf(NULL, 0, "%d", s->plan->nstep)};
	for (int i = 0; i < s->plan->nstep; i++) {
		const struct node *n = &s->call[i].node;
		w.node = wider(w.node, strlen(n->name ? n->name : "") + 2);
		w.op = wider(w.op, strlen(n->op->name) + 2);
		w.kernel = wider(w.kernel, strlen(caller_at(s, ks, i)));
	}
	return w;
}

void print_rows(const struct schedule *s, const struct kernels *ks, struct text *t)
{
	const struct columns wide = columns_of(s, ks);
	text_add(t,
		"/* The steps of %s, one a line: phase, node, operator, how often it was run "
		"before,\n"
		" * operations, bytes, when, kernel, and the places of what that writes, reads and "
		"works "
		"in\n * (step_arena.h). A part of step.c. */\n",
		s->title);
	for (int step = 0; step < s->plan->nstep; step++) {
		const struct update_group *g = group_at(s, ks, step);
		print_row(s, ks, &wide, step, t);
		if (!g || g->step[g->n - 1] != step)
			continue;
		text_add(t, "/* the last %d of those updates in one launch */ GO(", g->n);
		print_when(s, ks, step, true, t);
		text_add(t, ", %s", ks->update_text[g->text].name);
		for (int i = 0; i < g->n; i++) {
			text_puts(t, ",\n\t");
			print_row_places(s, ks, &s->call[g->step[i]], t);
		}
		text_puts(t, ")\n");
	}
}
