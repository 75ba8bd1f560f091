/* Kernels that differ in numbers only become one function that takes the numbers: fewer functions
 * to read and to compile.
 *
 * Requires: all kernels of both schedules, with the numbers that whoever wrote them has named.
 * Produces: kernel.function, and kernel.size where that is shared. What is computed does not depend
 * on it: the same operations on the same values. */
#include <stdlib.h>
#include <string.h>

#include "codegen/parts.h"

enum {
	SHARE_FROM = 16,  /* kernels: fewer stay as they are, which reads better */
	UPDATES_FROM = 2, /* the same of updates: what one does is a page, and none is faster for
			   * knowing how many elements it has */
	SIZES_MAX = 24    /* of one function */
};

/* --- Kernels of one form --- */

/* A kernel's text with its numbers taken out. */
struct form {
	int kernel, n;
	struct number *number;
	char *text; /* arguments and body */
};

static bool make_form(struct arena *a, const struct kernel *k, int index, struct form *f)
{
	struct text t = {0};
	size_t at = 0;
	f->kernel = index;
	f->n = k->nnumber;
	f->number = ARENA_ARRAY(a, struct number, f->n);
	if (!f->number)
		return false;
	if (f->n)
		memcpy(f->number, k->number, (size_t)f->n * sizeof *f->number);
	text_add(&t, "%d%d%d%s", k->checked, k->library, k->runtime, k->then ? k->then : "");
	for (int i = 0; i < k->narg; i++)
		text_add(&t, " %s %c%d", k->arg[i].type, k->arg[i].kind, k->arg[i].k);
	text_puts(&t, "\n");
	for (int i = 0; i < f->n; i++) {
		const struct number *x = &f->number[i];
		text_write(&t, k->body + at, x->at - at);
		text_puts(&t, x->kind == 'i' ? "\1" : x->kind == 'f' ? "\2" : "\3");
		at = x->at + x->len;
	}
	text_puts(&t, k->body + at);
	f->text = t.failed ? NULL : arena_strdup(a, t.s);
	text_free(&t);
	return f->text != NULL;
}

static int by_text(const void *x, const void *y)
{
	const struct form *a = x, *b = y;
	const int c = strcmp(a->text, b->text);
	return c ? c : (a->kernel > b->kernel) - (a->kernel < b->kernel);
}

struct group {
	const struct kernels *ks;
	struct form *form; /* n kernels, the first is first in the schedule */
	int n, parameters;
};

static const char *number_text(const struct group *g, int member, int i)
{
	const struct form *f = &g->form[member];
	return g->ks->kernel[f->kernel].body + f->number[i].at;
}

static bool same_number(const struct group *g, int member, int i, int other, int j)
{
	const size_t len = g->form[member].number[i].len;
	return len == g->form[other].number[j].len &&
	       !strncmp(number_text(g, member, i), number_text(g, other, j), len);
}

static bool varies(const struct group *g, int i)
{
	for (int m = 1; m < g->n; m++)
		if (!same_number(g, 0, i, m, i))
			return true;
	return false;
}

/* Numbers i and j are the same in each kernel. */
static bool go_together(const struct group *g, int i, int j)
{
	if (g->form->number[i].kind != g->form->number[j].kind)
		return false;
	for (int m = 0; m < g->n; m++)
		if (!same_number(g, m, i, m, j))
			return false;
	return true;
}

/* The parameter that stands for number i: an earlier one's, or a new one; 0: all have it alike. */
static int parameter_for(struct group *g, int i)
{
	const struct number *x = g->form->number;
	if (!varies(g, i))
		return 0;
	for (int j = 0; j < i; j++)
		if (x[j].parameter > 0 && go_together(g, i, j))
			return x[j].parameter;
	return ++g->parameters;
}

static bool list_kinds(struct arena *a, const struct group *g, struct kernel *k)
{
	char kind[SIZES_MAX + 1] = {0};
	for (int i = 0; i < g->form->n; i++)
		if (g->form->number[i].parameter > 0)
			kind[g->form->number[i].parameter - 1] = g->form->number[i].kind;
	k->size_kind = arena_strdup(a, kind);
	return k->size_kind != NULL;
}

/* The body with names for numbers. */
static bool write_function(struct arena *a, const struct group *g, struct kernel *k)
{
	const struct form *f = g->form;
	struct text body = {0};
	size_t at = 0;
	int stage = 0;
	for (int i = 0; i < f->n; i++) {
		const struct number *x = &f->number[i];
		if (x->parameter == 0 && x->kind != WORD_STATIC)
			continue;
		for (; stage < k->nstage && k->stage[stage].end <= x->at; stage++)
			k->shared_end[stage] = body.len + k->stage[stage].end - at;
		text_write(&body, k->body + at, x->at - at);
		if (x->kind != WORD_STATIC)
			text_add(&body, "n%d", x->parameter);
		at = x->at + x->len;
	}
	for (; stage < k->nstage; stage++)
		k->shared_end[stage] = body.len + k->stage[stage].end - at;
	text_puts(&body, k->body + at);
	k->shared_body = body.failed ? NULL : arena_strdup(a, body.s);
	text_free(&body);
	return k->shared_body && list_kinds(a, g, k);
}

/* What member m passes. */
static bool write_sizes(struct arena *a, const struct group *g, int m, struct kernel *k)
{
	k->size = ARENA_ARRAY(a, const char *, g->parameters);
	if (!k->size)
		return false;
	k->nsize = g->parameters;
	for (int i = 0; i < g->form->n; i++) {
		const int p = g->form->number[i].parameter;
		if (p <= 0 || k->size[p - 1])
			continue;
		k->size[p - 1] = arena_strndup(a, number_text(g, m, i), g->form[m].number[i].len);
		if (!k->size[p - 1])
			return false;
	}
	return true;
}

static bool share(struct kernels *ks, struct group *g)
{
	struct kernel *first = &ks->kernel[g->form->kernel];
	for (int i = 0; i < g->form->n; i++)
		g->form->number[i].parameter = parameter_for(g, i);
	if (g->parameters > SIZES_MAX)
		return true;
	first->members = g->n;
	for (int m = 0; m < g->n; m++) {
		ks->kernel[g->form[m].kernel].function = g->form->kernel;
		if (!write_sizes(ks->arena, g, m, &ks->kernel[g->form[m].kernel]))
			return false;
	}
	return write_function(ks->arena, g, first);
}

enum status kernels_share(struct kernels *ks)
{
	struct form *form = ARENA_ARRAY(ks->arena, struct form, ks->n);
	if (!form)
		return diag_nomem(ks->diag);
	for (int i = 0; i < ks->n; i++)
		if (!make_form(ks->arena, &ks->kernel[i], i, &form[i]))
			return diag_nomem(ks->diag);
	qsort(form, (size_t)ks->n, sizeof *form, by_text);
	for (int i = 0, n; i < ks->n; i += n) {
		for (n = 1; i + n < ks->n && !strcmp(form[i].text, form[i + n].text);)
			n++;
		struct group g = {.ks = ks, .form = form + i, .n = n};
		const bool update = ks->kernel[form[i].kernel].op->traits & OP_BY_ELEMENT;
		if (n >= (update ? UPDATES_FROM : SHARE_FROM) && !share(ks, &g))
			return diag_nomem(ks->diag);
	}
	return ST_OK;
}
