/* The training and evaluation functions: the schedule's rows, and what happens between them. */
#include <inttypes.h>
#include <string.h>

#include "codegen/parts.h"

const char *schedule_word(const struct schedule *s)
{
	return s->letter == 'T' ? "train" : "eval";
}

/* --- Rows, twice --- */

static void include_rows(
	const struct schedule *s, const char *type, const char *suffix, struct text *t)
{
	if (s && s->plan->nstep > 0)
		text_add(t, "static const %s %s_%s[] = {\n#include \"step_%s.h\"\n};\n", type,
			schedule_word(s), suffix, schedule_word(s));
}

static void print_words(const struct kernels *ks, struct text *t)
{
	text_puts(t, "\n/* --- The schedule: a line of step_train.h or step_eval.h for each step "
		     "--- */\n\n");
	text_puts(t, ks->graph->target->bare
			     ? "enum { ALWAYS = STINT_ALWAYS, LAST = STINT_LAST, BRANCH = "
			       "STINT_BRANCH };\n"
			     : "enum { ALWAYS = STINT_ALWAYS, LAST = STINT_LAST, UPDATED = "
			       "STINT_UPDATED, TOGETHER = STINT_TOGETHER,\n\tASIDE = STINT_ASIDE, "
			       "BRANCH = STINT_BRANCH, PAUSE = STINT_PAUSE };\n");
	text_puts(t, "enum { NOTHING = 0 /* the place of what has no bytes */ };\n");
}

void print_schedules(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, struct text *t)
{
	print_words(ks, t);
	text_puts(t, "\n/* For who goes through it: kernel and places. */\n"
		     "#define STEP(phase, node, op, run, flops, bytes, when, kernel, ...) \\\n"
		     "\tSTINT_ROW(K_##kernel, when), __VA_ARGS__,\n");
	if (ks->ngroup)
		text_puts(t, "#define GO(when, kernel, ...) STINT_ROW(K_##kernel, when), "
			     "__VA_ARGS__,\n");
	include_rows(train, "size_t", "rows", t);
	include_rows(eval, "size_t", "rows", t);
	if (ks->graph->target->bare)
		return;
	text_puts(t,
		"\n/* For who looks on, and for people. */\n#undef STEP\n"
		"#define STEP(phase, node, op, run, flops, bytes, when, kernel, ...) \\\n"
		"\t{node, op, &kernels[K_##kernel].name, STINT_##phase, run, flops, bytes},\n");
	if (ks->ngroup)
		text_puts(t, "#undef GO\n#define GO(when, kernel, ...)\n");
	include_rows(train, "struct stint_step_info", "info", t);
	include_rows(eval, "struct stint_step_info", "info", t);
}

/* --- What onlookers are shown --- */

static void print_shown_gradient(const struct schedule *s, int step, struct text *t)
{
	const struct call *c = &s->call[step];
	const struct node *n = &c->node;
	const struct tensor *x = n->in[n->op->role == ROLE_PIECE ? 0 : 1];
	if (c->updates < 0)
		return;
	if (n->in[1]) {
		text_add(t, "\t{%d, STINT_GRADIENT, %d, %s, %s, %" PRId64 ", 0, 0},\n", step,
			c->updates, dtype_text(x->dtype),
			s->place[c->in[x == n->in[0] ? 0 : 1]].name, tensor_bytes(x));
		return;
	}
	const int column = n->nin - 2, row = n->nin - 1;
	const int64_t numel = n->in[column]->numel * n->in[row]->numel;
	const enum dtype real = s->gp->graph->real;
	text_add(t, "\t{%d, STINT_PRODUCT, %d, %s, %s, %" PRId64 ", %s, %" PRId64 "},\n", step,
		c->updates, dtype_text(real), s->place[c->in[column]].name,
		numel * dtype_bytes(real), s->place[c->in[row]].name, n->in[row]->numel);
}

static void print_shown_outputs(const struct schedule *s, int step, struct text *t)
{
	const struct graph *g = s->gp->graph;
	for (int i = 0; i < g->noutput; i++) {
		if (s->output_step[i] != step)
			continue;
		const int tensor = s->gp->index[g->output[i]->id];
		int b = buffer_at(s, tensor, step < 0 ? 0 : step);
		if (b < 0)
			b = s->head[tensor];
		text_add(t, "\t{%d, STINT_OUTPUT, %d, %s, %s, %" PRId64 ", 0, 0}, /* ", step, i,
			dtype_text(g->output[i]->dtype), s->place[b].name,
			tensor_bytes(g->output[i]));
		text_comment(t, g->output[i]->name);
		text_puts(t, " */\n");
	}
}

static void print_shown(const struct schedule *s, struct text *t)
{
	text_add(t,
		"\n/* What onlookers are shown: behind which step, or in its place; of its "
		"product, the other one. */\nstatic const struct stint_shown %s_shown[] = {\n",
		schedule_word(s));
	for (int step = -1; step < s->plan->nstep; step++) {
		if (step >= 0)
			print_shown_gradient(s, step, t);
		print_shown_outputs(s, step, t);
	}
	text_puts(t, "\t{.step = STINT_NO_STEP},\n};\n");
}

/* --- --debug-arena --- */

/* Buffer b starts in the bytes of an input, or an output takes its bytes over. */
static bool shares(const struct schedule *s, int step, int b, bool as_output)
{
	const struct call *c = &s->call[step];
	int n = as_output ? c->node.nin : c->node.nout;
	const int *other = as_output ? c->in : c->out;
	for (int i = 0; i < n; i++)
		if (other[i] >= 0 && other[i] != b && s->plan->buffer[other[i]].bytes > 0 &&
			s->plan->buffer[other[i]].offset == s->plan->buffer[b].offset)
			return true;
	return false;
}

static void print_lives(const struct schedule *s, bool begin, struct text *t)
{
	text_add(t, "static const struct stint_life %s_%s[] = {\n", schedule_word(s),
		begin ? "begin" : "end");
	for (int step = 0; step < s->plan->nstep; step++)
		for (int b = 0; b < s->plan->nbuffer; b++) {
			const struct plan_buffer *x = &s->plan->buffer[b];
			const bool now = begin ? x->first_step == step
					       : x->last_step == step && step < s->plan->nstep - 1;
			if (now && x->bytes > 0 && s->place[b].name[0] != 'R' &&
				!shares(s, step, b, begin))
				text_add(t, "\t{%d, %s, %" PRId64 "},\n", step, s->place[b].name,
					x->bytes);
		}
	text_puts(t, "\t{.step = STINT_NO_STEP},\n};\n");
}

/* And what leaves the arena clean on every way out. */
static void print_debug(const struct schedule *s, struct text *t)
{
	int64_t fixed = 0;
	for (int i = 0; i < s->nresident; i++) {
		const struct plan_buffer *b = &s->plan->buffer[s->head[i]];
		if (b->offset + b->bytes > fixed)
			fixed = b->offset + b->bytes;
	}
	text_puts(t, "\n/* When bytes of the arena begin to hold something, and cease to. */\n");
	print_lives(s, true, t);
	print_lives(s, false, t);
	text_add(t,
		"static const struct stint_lives %s_lives = {%" PRId64 ", %" PRId64
		", %s_begin, %s_end};\n",
		schedule_word(s), fixed, s->plan->arena_bytes - fixed, schedule_word(s),
		schedule_word(s));
}

/* --- The function --- */

static void print_function(const struct schedule *s, const struct kernels *ks,
	const struct codegen_input *in, struct text *t)
{
	const char *word = schedule_word(s);
	const bool bare = ks->graph->target->bare;
	int rows = s->plan->nstep;
	for (int i = 0; s->letter == 'T' && i < ks->ngroup; i++)
		rows++;
	text_add(t, "\nstatic const struct stint_schedule %s = {\n\t.rows = %d,\n", word, rows);
	if (s->plan->nstep > 0)
		text_add(t, "\t.row = %s_rows,\n\t.callee = kernels,\n", word);
	if (bare && value_number(s, s->nresident) > 0)
		text_puts(t, "\t.value = values,\n");
	if (s->plan->nstep > 0 && !bare)
		text_add(t, "\t.info = %s_info,\n", word);
	if (!bare)
		text_add(t, "\t.shown = %s_shown,\n", word);
	if (s->ncopy > 0)
		text_add(t, "\t.move = %s_moves,\n\t.copy = %s_copies,\n", word, word);
	if (in->debug_arena)
		text_add(t, "\t.lives = &%s_lives,\n", word);
	text_puts(t, "};\n");
	if (bare)
		text_add(t,
			"\nstatic int %s(stint_step *s)\n{\n\treturn stint_run(s, &%s, "
			"s->arena);\n}\n",
			s->function, word);
	else
		text_add(t,
			"\nstatic int %s(stint_step *s, const struct stint_probe *probe)\n{\n"
			"\treturn stint_run(s, &%s, s->arena, probe);\n}\n",
			s->function, word);
}

void print_schedule(const struct schedule *s, const struct kernels *ks,
	const struct codegen_input *in, struct text *t)
{
	if (!ks->graph->target->bare)
		print_shown(s, t);
	if (s->ncopy > 0)
		print_copies(s, t);
	if (in->debug_arena)
		print_debug(s, t);
	print_function(s, ks, in, t);
}
