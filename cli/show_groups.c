#include "cli/show_groups.h"

#include <string.h>

#include "api/report.h"
#include "api/safe_put.h"

/* "lr 0.1x, weight_decay 0" */
static void options_text(const struct param_options *o, struct text *t)
{
	text_add(t, "lr %gx", o->rate);
	for (int i = 0; i < o->nattr; i++) {
		const struct attr *a = &o->attr[i];
		if (!strcmp(a->name, "lr") || !strcmp(a->name, OP_AVERAGE))
			continue;
		text_add(t, ", %s ", a->name);
		if (a->kind == ATTR_STRING)
			text_puts(t, a->s);
		else if (a->kind == ATTR_FLOAT)
			text_add(t, "%g", a->f);
		for (int k = 0; k < a->n; k++)
			text_add(t, "%s%g", k ? ";" : "", a->floats[k]);
	}
}

/* The trained ones, and with what each is updated. */
struct trained {
	int n;
	struct tensor **param;
	char **text;
};

static enum status list_trained(
	struct graph *g, const struct optimizer_spec *spec, struct trained *out)
{
	const bool *passes = graph_ways_back(g);
	out->param = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor);
	out->text = ARENA_ARRAY(g->arena, char *, g->ntensor);
	if (!passes || !out->param || !out->text)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->ntensor; i++) {
		struct tensor *t = g->tensor[i];
		struct param_options o;
		struct text text = {0};
		if (t->role != TR_PARAMETER || t->maker || !passes[i])
			continue;
		TRY(param_options_of(g, spec, t, &o));
		options_text(&o, &text);
		out->text[out->n] = text.failed ? NULL : arena_strdup(g->arena, text.s);
		text_free(&text);
		if (!out->text[out->n])
			return diag_nomem(g->diag);
		out->param[out->n++] = t;
	}
	return groups_check(g, spec, out->n, out->param, out->param);
}

enum status show_groups(FILE *f, struct graph *g, const struct optimizer_spec *spec)
{
	struct trained all = {0};
	TRY(list_trained(g, spec, &all));
	fprintf(f, "parameter groups of %s\n", spec->op->optimizer->name);
	for (int i = 0; i < all.n; i++) {
		int first = 0, count = 0;
		int64_t values = 0;
		while (strcmp(all.text[first], all.text[i]) != 0)
			first++;
		if (first < i)
			continue;
		for (int k = i; k < all.n; k++)
			if (!strcmp(all.text[k], all.text[i])) {
				count++;
				values += all.param[k]->numel;
			}
		fputs("  ", f);
		safe_put(f, all.text[i]);
		fprintf(f, ": %d parameter%s, %lld values\n", count, count == 1 ? "" : "s",
			(long long)values);
		for (int k = i; k < all.n; k++)
			if (!strcmp(all.text[k], all.text[i])) {
				fputs("    ", f);
				name_put(f, all.param[k]->name, 76, false);
				fputc('\n', f);
			}
	}
	return ST_OK;
}
