/* Who calls kernels as rows of a schedule want it: by number, with places. */
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"

/* --- One kernel --- */

static void add_argument(struct text *t, size_t *line, const char *argument)
{
	enum { WIDTH = 88 };
	if (t->len && t->s[t->len - 1] != '(') {
		const bool wrap = t->len - *line + strlen(argument) > WIDTH;
		if (wrap)
			*line = t->len;
		text_puts(t, wrap ? ",\n\t\t" : ", ");
	}
	text_puts(t, argument);
}

static void print_arguments(const struct kernel *k, struct text *t)
{
	char place[24];
	size_t line = t->len - strlen(k->name);
	if (kernel_fails(k))
		add_argument(t, &line, "f->step");
	for (int i = 0; i < k->narg; i++) {
		snprintf(place, sizeof place, "AT(%d)", i);
		add_argument(t, &line, place);
	}
	if (k->checked)
		add_argument(t, &line, k->launched ? "BAD" : "&f->bad");
	for (int i = 0; i < k->nsize; i++)
		add_argument(t, &line, k->size[i]);
}

static void print_caller(const struct kernel *k, struct text *t)
{
	const bool code = k->checked || kernel_fails(k);
	text_add(t, "\nstatic int call_%s(struct stint_frame *f)\n{\n\t", k->caller);
	if (!code && k->narg == 0)
		text_puts(t, "(void)f;\n\t");
	text_add(t, "%s%s(", code ? "return " : "", k->name);
	print_arguments(k, t);
	text_puts(t, code ? ");\n}\n" : ");\n\treturn 0;\n}\n");
}

/* --- Places --- */

static void print_at(const struct schedule *s, const struct codegen_input *in, struct text *t)
{
	bool any = false;
	if (!s->gp->graph->target->bare) {
		text_puts(t, "#define AT(i) ((void *)(f->base + f->at[i]))\n");
		return;
	}
	text_puts(t, "#define AT(i) f->at[i]\n");
	for (int i = 0; i < s->nresident; i++) {
		if (!resident_in_value(s, i))
			continue;
		text_puts(t, any ? ",\n\t"
				 : "\n/* What is read where its value is. */\n"
				   "static const void *const values[] = {\n\t");
		any = true;
		print_value_name(in, i, t);
	}
	text_puts(t, any ? "};\n" : "");
}

/* Where kernels on a GPU say which index was out of range: behind the control numbers. */
static void print_bad(const struct schedule *s, const struct kernels *ks, struct text *t)
{
	const struct tensor *control = s->gp->graph->control;
	for (int i = 0; i < ks->n && control; i++)
		if (ks->kernel[i].launched && ks->kernel[i].checked) {
			text_add(t, "#define BAD ((int64_t *)(void *)(f->step->arena + %s) + 3)\n",
				s->place[s->head[s->gp->index[control->id]]].name);
			return;
		}
}

/* --- All --- */

static bool has_copies(const struct schedule *s)
{
	return s && s->ncopy > 0;
}

static void print_numbers(const struct kernels *ks, bool copies, struct text *t)
{
	enum { WIDTH = 90 };
	text_puts(t, "\n/* Their numbers. */\nenum {\n\t");
	size_t line = t->len;
	const char *comma = "";
	for (int i = 0; i < ks->n + ks->nupdate_text + copies; i++) {
		if (*comma && t->len - line > WIDTH) {
			line = t->len;
			comma = ",\n\t";
		}
		text_add(t, "%sK_%s", comma,
			i < ks->n                      ? ks->kernel[i].caller
			: i < ks->n + ks->nupdate_text ? ks->update_text[i - ks->n].name
						       : "copy");
		comma = ", ";
	}
	text_puts(t, "\n};\n");
}

static const char *fails_text(const struct kernel *k)
{
	return k->runtime        ? "STINT_SAID"
	       : kernel_fails(k) ? "STINT_CODE"
	       : k->checked      ? "STINT_INDEX"
				 : "STINT_NEVER";
}

static void print_callee(const struct kernels *ks, int i, struct text *t)
{
	const struct kernel *k = &ks->kernel[i];
	if (ks->graph->target->bare) {
		text_add(t, "\t{call_%s, %d},\n", k->caller, kernel_places(k));
		return;
	}
	text_puts(t, "\t{\"");
	kernel_print_title(ks, i, t);
	text_add(t, "\", call_%s, %d, %s},\n", k->caller, kernel_places(k), fails_text(k));
}

static void print_callees(const struct kernels *ks, bool copies, struct text *t)
{
	text_puts(t,
		ks->graph->target->bare
			? "\n/* Who calls, and how many places that takes. */\n"
			: "\n/* Name, who calls it, how many places that takes, what it returns. "
			  "*/\n");
	text_puts(t, "static const struct stint_callee kernels[] = {\n");
	for (int i = 0; i < ks->n; i++)
		print_callee(ks, i, t);
	for (int i = 0; i < ks->nupdate_text; i++)
		text_add(t, "\t{\"%s\", call_%s, %d, STINT_CODE},\n", ks->update_text[i].name,
			ks->update_text[i].name, ks->update_text[i].nargs);
	if (copies)
		text_puts(t, "\t{\"\", NULL, 1, STINT_NEVER},\n");
	text_puts(t, "};\n");
}

int kernel_places(const struct kernel *k)
{
	return k->narg ? k->narg : 1;
}

void print_callers(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	const bool copies = has_copies(train) || has_copies(eval);
	text_puts(t, "\n/* --- Calls --- */\n\n"
		     "/* The places of arguments are a row's (below), counted from 0. */\n");
	print_at(train ? train : eval, in, t);
	print_bad(train ? train : eval, ks, t);
	for (int i = 0; i < ks->n; i++)
		print_caller(&ks->kernel[i], t);
	print_group_callers(ks, t);
	if (ks->n + copies == 0)
		return;
	print_numbers(ks, copies, t);
	print_callees(ks, copies, t);
}
