/* The training and evaluation functions: the schedule, one call a step. */
#include <inttypes.h>
#include <string.h>

#include "codegen/parts.h"

static const char *accessor(enum dtype t)
{
	return t == DT_I64    ? "INT"
	       : t == DT_BOOL ? "BOOL"
	       : t == DT_BF16 ? "BF16"
	       : t == DT_F16  ? "FP16"
	       : t == DT_I8   ? "I8"
	       : t == DT_U8   ? "U8"
			      : "REAL";
}

/* clang-format off */
static const char looked_at_product[] =
"\n/* The same of a gradient that no step stores: the product of a column and a row. */\n"
"static int looked_at_product(const struct stint_probe *probe, int parameter, const real *column,\n"
"	int64_t rows, const real *row, int64_t columns)\n"
"{\n"
"	const size_t bytes = (size_t)rows * (size_t)columns * sizeof(real);\n"
"	if (!probe || !probe->gradient)\n"
"		return 0;\n"
"	real *gradient = malloc(bytes); /* outside the arena, for this look only */\n"
"	for (int64_t r = 0; gradient && r < rows; r++)\n"
"		for (int64_t i = 0; i < columns; i++)\n"
"			gradient[r * columns + i] = 0 + column[r] * row[i];\n"
"	probe->gradient(probe->user, parameter, gradient, gradient ? bytes : 0);\n"
"	free(gradient);\n"
"	return 1;\n"
"}\n";

static const char looked_at_device_product[] =
"\n/* The same of a gradient that no step stores: the product of a column and a row. */\n"
"static int looked_at_product(stint_step *s, const struct stint_probe *probe, int parameter,\n"
"	size_t column, size_t rows, size_t row, size_t columns)\n"
"{\n"
"	const size_t bytes = rows * columns * sizeof(real);\n"
"	if (!probe || !probe->gradient)\n"
"		return 0;\n"
"	real *gradient = malloc(bytes); /* outside the arena, for this look only */\n"
"	real *x = malloc((rows + columns) * sizeof(real));\n"
"	const int seen = gradient && x && !stint_read(s, column, x, rows * sizeof(real)) &&\n"
"			 !stint_read(s, row, x + rows, columns * sizeof(real));\n"
"	for (size_t r = 0; seen && r < rows; r++)\n"
"		for (size_t i = 0; i < columns; i++)\n"
"			gradient[r * columns + i] = 0 + x[r] * x[rows + i];\n"
"	probe->gradient(probe->user, parameter, seen ? gradient : NULL, seen ? bytes : 0);\n"
"	free(x);\n"
"	free(gradient);\n"
"	return 1;\n"
"}\n";
/* clang-format on */

/* What the steps are written with. */
void print_step_macros(
	const struct kernels *ks, bool updates, bool products, bool outputs, struct text *t)
{
	text_puts(t, "\n/* --- The schedule --- */\n\n"
		     "#define REAL(place) ((real *)(arena + (place)))\n"
		     "#define INT(place) ((int64_t *)(arena + (place)))\n"
		     "#define BOOL(place) (arena + (place))\n");
	if (ks->bf16)
		text_puts(t, "#define BF16(place) ((bf16 *)(arena + (place)))\n");
	if (ks->fp16)
		text_puts(t, "#define FP16(place) ((fp16 *)(arena + (place)))\n");
	if (ks->i8)
		text_puts(t, "#define I8(place) ((int8_t *)(arena + (place)))\n");
	if (ks->u8)
		text_puts(t, "#define U8(place) ((uint8_t *)(arena + (place)))\n");
	if (ks->graph->target->bare) /* nobody looks on */
		return;
	text_puts(t, "\n/* Whoever looks on may want the step once more. */\n"
		     "static int wanted_again(const struct stint_probe *probe, int step)\n"
		     "{\n"
		     "\tif (probe->tick)\n"
		     "\t\tprobe->tick(probe->user, step);\n"
		     "\treturn probe->again && probe->again(probe->user, step);\n"
		     "}\n"
		     "#define DONE(step)                                   \\\n"
		     "\tdo {                                         \\\n"
		     "\t\tif (probe && wanted_again(probe, (step) - 1)) \\\n"
		     "\t\t\tgoto step_##step;            \\\n"
		     "\t} while (0)\n");
	if (outputs)
		text_puts(t, "#define OUTPUT(k, type, data, bytes)                            \\\n"
			     "\t(probe && probe->output ? probe->output(probe->user, k, type, "
			     "data, bytes) : (void)0)\n");
	if (updates)
		text_puts(t,
			"\n/* Hands a finished gradient to whoever looks on, in the place of "
			"its update. */\n"
			"static int looked_at(\n"
			"\tconst struct stint_probe *probe, int parameter, const void *gradient, "
			"size_t bytes)\n"
			"{\n"
			"\tif (!probe || !probe->gradient)\n"
			"\t\treturn 0;\n"
			"\tprobe->gradient(probe->user, parameter, gradient, bytes);\n"
			"\treturn 1;\n"
			"}\n");
	print_group_macros(ks, t);
	if (products)
		text_puts(
			t, ks->graph->target->cuda ? looked_at_device_product : looked_at_product);
	if (ks->nlib || ks->graph->target->cuda)
		text_puts(t,
			"\nstatic int library_failed(stint_step *s, int step, int code, const "
			"struct "
			"stint_step_info *info)\n"
			"{\n"
			"\tsnprintf(s->message, sizeof s->message, \"step %d (%s %s): the library "
			"returned %d\", step + 1,\n"
			"\t\tinfo->op, info->node, code);\n"
			"\treturn STINT_BAD_MACHINE;\n"
			"}\n");
}

/* --- One step --- */

/* People count steps from 1, as `stint show` does. */
static void print_label(int step, struct text *t)
{
	text_add(t, "step_%d", step + 1);
}

/* `label`: somebody may go there. */
static void print_comment(
	const struct schedule *s, const struct kernels *ks, int step, bool label, struct text *t)
{
	const struct call *c = &s->call[step];
	int digits = s->plan->nstep > 999  ? 4
		     : s->plan->nstep > 99 ? 3
		     : s->plan->nstep > 9  ? 2
					   : 1;
	if (label)
		print_label(step, t);
	text_add(t, "%s/* %*d %-8s  ", label ? ": " : "\t", digits, step + 1, phase_of(s, step));
	text_comment(t, c->node.name);
	struct text title = {0};
	node_title(&c->node, &title);
	text_puts(t, " (");
	text_comment(t, title.s ? title.s : "");
	text_puts(t, ")");
	t->failed |= title.failed;
	text_free(&title);
	if (c->run > 0)
		text_add(t, ", recompute of step %d", c->first + 1);
	const struct update_group *g = group_at(s, ks, step);
	if (g && g->step[g->n - 1] == step)
		text_add(t, ", %d updates in one launch", g->n);
	else if (g)
		text_add(t, ", launched with step %d", g->step[g->n - 1] + 1);
	text_puts(t, " */\n");
}

static void add_argument(struct text *line, const char *argument, int *column)
{
	enum { WIDTH = 96 };
	int len = (int)strlen(argument);
	if (line->s[line->len - 1] != '(') {
		bool wrap = *column + len + 3 > WIDTH;
		text_puts(line, wrap ? ",\n\t\t" : ", ");
		*column = wrap ? 16 : *column + 2;
	}
	text_puts(line, argument);
	*column += len;
}

/* The array that a resident is read in; "" for one that has a place, and for all others. */
static void print_value(
	const struct schedule *s, const struct codegen_input *in, int buffer, struct text *t)
{
	const int tensor = buffer < 0 ? -1 : s->plan->buffer[buffer].tensor;
	if (tensor >= 0 && tensor < s->nresident && resident_in_value(s, tensor))
		print_value_name(in, tensor, t);
}

static void print_arguments(const struct schedule *s, const struct codegen_input *in,
	const struct call *c, const struct kernel *k, struct text *t)
{
	struct text argument = {0};
	int column = 24 + (int)strlen(k->name);
	if (kernel_fails(k))
		add_argument(t, "s", &column);
	for (int i = 0; i < k->narg; i++) {
		struct kernel_arg a = k->arg[i];
		int b = a.kind == 'w' ? c->workspace : a.kind == 'y' ? c->out[a.k] : c->in[a.k];
		argument.len = 0;
		print_value(s, in, b, &argument);
		if (argument.len > 0)
			; /* that is it */
		else if (b < 0 || s->plan->buffer[b].bytes == 0)
			text_puts(&argument, "NULL"); /* nothing there: no bytes */
		else if (a.kind == 'w')
			text_add(&argument, "arena + %s", s->place[b].name);
		else
			text_add(&argument, "%s(%s)",
				accessor((a.kind == 'y' ? c->node.out : c->node.in)[a.k]->dtype),
				s->place[b].name);
		if (argument.failed)
			break;
		add_argument(t, argument.s, &column);
	}
	if (k->checked)
		add_argument(t, k->launched ? "BAD" : "&bad", &column);
	for (int i = 0; i < k->nsize; i++)
		add_argument(t, k->size[i], &column);
	t->failed |= argument.failed;
	text_free(&argument);
}

/* The finished gradient, or the column and the row whose product it is, for whoever looks on. */
static void print_look(const struct schedule *s, const struct call *c, bool grouped, struct text *t)
{
	const struct node *n = &c->node;
	const int gradient = n->op->role == ROLE_PIECE ? 0 : 1;
	if (n->in[1]) {
		const struct tensor *x = n->in[gradient];
		text_add(t, "\tif (%s!looked_at(probe, %d, %s(%s), %" PRId64 "))\n\t",
			grouped ? "probe && " : "", c->updates, accessor(x->dtype),
			s->place[c->in[gradient]].name, tensor_bytes(x));
		return;
	}
	const int column = n->nin - 2, row = n->nin - 1;
	if (s->gp->graph->target->cuda) {
		text_add(t,
			"\tif (!looked_at_product(s, probe, %d, %s, %" PRId64 ", %s, %" PRId64
			"))\n\t",
			c->updates, s->place[c->in[column]].name, n->in[column]->numel,
			s->place[c->in[row]].name, n->in[row]->numel);
		return;
	}
	text_add(t,
		"\tif (!looked_at_product(probe, %d, REAL(%s), %" PRId64 ", REAL(%s), %" PRId64
		"))\n\t",
		c->updates, s->place[c->in[column]].name, n->in[column]->numel,
		s->place[c->in[row]].name, n->in[row]->numel);
}

static void print_call(const struct schedule *s, const struct kernels *ks,
	const struct codegen_input *in, int step, const struct kernel *k, const char *info,
	struct text *t)
{
	const bool bare = ks->graph->target->bare;
	const struct call *c = &s->call[step];
	const struct update_group *g = group_at(s, ks, step);
	if (c->updates >= 0 && !bare)
		print_look(s, c, g != NULL, t);
	else if (hands_on(&c->node) && !bare) /* of updates that were done */
		text_puts(t, "\tif (!probe || !probe->gradient)\n\t");
	const bool fails = kernel_fails(k), checks = k->checked && !fails;
	text_puts(t, fails ? "\terror = " : checks ? "\tif (" : "\t");
	if (c->when >= 0) /* a branch's */
		text_add(t,
			fails    ? "!*BOOL(%s) ? 0 : "
			: checks ? "*BOOL(%s) && "
				 : "if (*BOOL(%s))\n\t\t",
			s->place[c->when].name);
	text_add(t, "%s(", k->name);
	print_arguments(s, in, c, k, t);
	if (checks && bare)
		text_add(t, "))\n\t\treturn stint_bad_index(s, %d, bad);\n", step + 1);
	else if (checks)
		text_add(t, "))\n\t\treturn stint_bad_index(s, %d, bad, &%s[%d]);\n", step, info,
			step);
	else
		text_puts(t, ");\n");
	if (g && g->step[g->n - 1] == step)
		print_group(s, ks, g, t);
	if (k->runtime)
		text_puts(t, "\tif (error) /* the runtime has said why */\n\t\treturn error;\n");
	else if (fails)
		text_add(t, "\tif (error)\n\t\treturn library_failed(s, %d, error, &%s[%d]);\n",
			step, info, step);
}

static void print_outputs(const struct schedule *s, int step, struct text *t)
{
	const struct graph *g = s->gp->graph;
	for (int i = 0; i < g->noutput; i++) {
		if (s->output_step[i] != step)
			continue;
		int tensor = s->gp->index[g->output[i]->id];
		int b = buffer_at(s, tensor, step < 0 ? 0 : step);
		if (b < 0)
			b = s->head[tensor];
		const enum dtype type = g->output[i]->dtype;
		text_add(t, "\tOUTPUT(%d, %s, %s(%s), %" PRId64 "); /* ", i, dtype_text(type),
			accessor(type), s->place[b].name, tensor_bytes(g->output[i]));
		text_comment(t, g->output[i]->name);
		text_puts(t, " */\n");
	}
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

static void print_lifetimes(const struct schedule *s, int step, bool births, struct text *t)
{
	for (int b = 0; b < s->plan->nbuffer; b++) {
		const struct plan_buffer *x = &s->plan->buffer[b];
		bool now = births ? x->first_step == step
				  : x->last_step == step && step < s->plan->nstep - 1;
		if (now && x->bytes > 0 && s->place[b].name[0] != 'R' &&
			!shares(s, step, b, births))
			text_add(t, "\t%s(%s, %" PRId64 ");\n", births ? "BORN" : "DEAD",
				s->place[b].name, x->bytes);
	}
}

/* A frame around the schedule that leaves the arena clean on every way out. */
static void print_debug_frame(const struct schedule *s, struct text *t)
{
	int64_t fixed = 0;
	for (int i = 0; i < s->nresident; i++) {
		const struct plan_buffer *b = &s->plan->buffer[s->head[i]];
		if (b->offset + b->bytes > fixed)
			fixed = b->offset + b->bytes;
	}
	int64_t rest = s->plan->arena_bytes - fixed;
	text_add(t, "\nstatic int %s(stint_step *s, const struct stint_probe *probe)\n{\n",
		s->function);
	text_puts(t, "\tunsigned char *const arena = s->arena;\n");
	text_add(t, "\tDEAD(%" PRId64 ", %" PRId64 ");\n", fixed, rest);
	text_add(t, "\tint status = %s_schedule(s, probe);\n", s->function);
	text_add(t, "\tUNPOISON(arena + %" PRId64 ", %" PRId64 ");\n\treturn status;\n}\n", fixed,
		rest);
}

/* --- The function --- */

/* NULL: the step is a copy's. */
static const struct kernel *kernel_of(const struct schedule *s, const struct kernels *ks, int step)
{
	return s->call[step].kernel < 0 ? NULL : &ks->kernel[s->call[step].kernel];
}

static void print_locals(const struct schedule *s, const struct kernels *ks, struct text *t)
{
	bool checked = false, fails = false;
	for (int i = 0; i < s->plan->nstep; i++) {
		const struct kernel *k = kernel_of(s, ks, i);
		if (!k) { /* a copy's */
			fails = true;
			continue;
		}
		checked |= k->checked && !k->launched;
		fails |= kernel_fails(k);
	}
	text_puts(t, "\tunsigned char *const arena = s->arena;\n");
	if (checked)
		text_puts(t, "\tint64_t bad = 0;\n");
	if (fails)
		text_puts(t, ks->ngroup ? "\tint error = STINT_OK;\n" : "\tint error;\n");
	if (s->plan->nstep == 0)
		text_puts(t, ks->graph->target->bare ? "\t(void)arena;\n"
						     : "\t(void)arena, (void)probe;\n");
	text_puts(t, "\n");
}

static bool can_fail(const struct schedule *s, const struct kernels *ks)
{
	for (int i = 0; i < s->plan->nstep; i++) {
		const struct kernel *k = kernel_of(s, ks, i);
		if (!k || k->checked || kernel_fails(k))
			return true;
	}
	return false;
}

static bool has_copies(const struct schedule *s, int step)
{
	for (int i = 0; i < s->ncopy && !s->at_once; i++)
		if (s->copy[i].wait == step || s->copy[i].start == step)
			return true;
	return false;
}

/* The steps from `step` on that only the last micro-batch takes end before this one. */
static int rest_from(const struct schedule *s, int step)
{
	do
		step++;
	while (step < s->plan->nstep && s->call[step].node.last && !has_copies(s, step));
	return step;
}

/* Over what only the last micro-batch does. Returns the step that is next. */
static int print_skip(const struct schedule *s, int step, struct text *t)
{
	const int next = rest_from(s, step);
	text_puts(t, "\tif (!s->last) /* the update is the last micro-batch's */\n\t\tgoto ");
	if (has_copies(s, next))
		text_puts(t, "before_");
	print_label(next, t);
	text_puts(t, ";\n");
	return next;
}

/* The copies in front of a step, which somebody may go to. */
static void print_before(
	const struct schedule *s, int step, bool label, const char *info, struct text *t)
{
	if (label && has_copies(s, step)) {
		text_puts(t, "before_");
		print_label(step, t);
		text_puts(t, ":\n");
	}
	print_copies(s, step, info, t);
}

void print_schedule(const struct schedule *s, const struct kernels *ks,
	const struct codegen_input *in, struct text *t)
{
	const char *info = s->letter == 'T' ? "train_info" : "eval_info";
	const bool bare = ks->graph->target->bare;
	if (can_fail(s, ks) && !bare) /* the table itself follows the schedule */
		text_add(
			t, "\nstatic const struct stint_step_info %s[%d];\n", info, s->plan->nstep);
	text_add(t, "\nSCHEDULE int %s%s(stint_step *s%s)\n{\n", s->function,
		in->debug_arena ? "_schedule" : "",
		bare ? "" : ", const struct stint_probe *probe");
	print_locals(s, ks, t);
	if (!bare)
		print_outputs(s, -1, t);
	int next = -1; /* after what is skipped */
	for (int step = 0; step < s->plan->nstep; step++) {
		print_before(s, step, step == next, info, t);
		if (s->call[step].node.last && step >= next)
			next = print_skip(s, step, t);
		print_comment(s, ks, step, !bare || step == next, t);
		if (in->debug_arena)
			print_lifetimes(s, step, true, t);
		if (kernel_of(s, ks, step))
			print_call(s, ks, in, step, kernel_of(s, ks, step), info, t);
		else if (s->at_once)
			print_copy(s, step, t);
		if (!bare) {
			print_outputs(s, step, t);
			text_add(t, "\tDONE(%d);\n", step + 1);
		}
		if (in->debug_arena)
			print_lifetimes(s, step, false, t);
	}
	print_before(s, s->plan->nstep, next == s->plan->nstep, info, t);
	if (next == s->plan->nstep && !has_copies(s, next)) {
		print_label(next, t);
		text_puts(t, ":\n");
	}
	text_puts(t, "\treturn STINT_OK;\n}\n");
	if (in->debug_arena)
		print_debug_frame(s, t);
}
