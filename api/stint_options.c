#include "api/stint_options.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/nearest.h"

static enum status make(struct stint_options **out, const char *model)
{
	struct stint_options *o = *out = calloc(1, sizeof *o);
	if (!o || !told_begin(&o->told) || !(o->arena = arena_new())) {
		stint_options_free(o);
		*out = NULL;
		return ST_INTERNAL;
	}
	o->users = 1;
	options_begin(&o->options);
	if (!model)
		return ST_OK;
	o->options.compile.model = arena_strdup(o->arena, model);
	return o->options.compile.model ? ST_OK : diag_nomem(&o->told.diag);
}

int stint_options_new(struct stint_options **out, const char *model)
{
	return (int)make(out, model);
}

void stint_options_free(struct stint_options *o)
{
	if (!o || atomic_fetch_sub(&o->users, 1) > 1)
		return;
	arena_free(o->arena);
	told_end(&o->told);
	free(o);
}

struct stint_options *options_share(const struct stint_options *o)
{
	struct stint_options *shared = (void *)(uintptr_t)o;
	atomic_fetch_add(&shared->users, 1);
	return shared;
}

static enum status unknown(const char *name, struct diag *d)
{
	const struct option *x;
	const char *meant = NULL;
	char hint[64];
	for (int i = 0; (x = option_at(i)); i++)
		if (x->commands & PROGRAM)
			meant = nearest(name, meant, x->name);
	snprintf(hint, sizeof hint, "did you mean %s?", meant ? meant : "");
	return diag_fail(d, ST_USAGE, NULL, meant ? hint : NULL, "there is no option '%s'", name);
}

static enum status set(struct stint_options *o, const char *name, const char *value)
{
	struct diag *d = &o->told.diag;
	const int i = option_find(PROGRAM, name);
	if (i < 0)
		return unknown(name, d);
	const bool flag = option_at(i)->type == OPTION_FLAG;
	if (flag != !value)
		return diag_fail(
			d, ST_USAGE, NULL, NULL, "--%s takes %s value", name, flag ? "no" : "a");
	char *text = arena_strdup(o->arena, value ? value : "");
	return text ? options_set(o->arena, &o->options, i, text, d) : diag_nomem(d);
}

int stint_options_set(struct stint_options *o, const char *name, const char *value)
{
	return (int)set(o, name, value);
}

const struct stint_diagnostic *stint_options_diagnostic(const struct stint_options *o, size_t index)
{
	return told_at(&o->told, index);
}

int stint_option_at(size_t index, struct stint_option *out)
{
	const struct option *x;
	for (int i = 0; (x = option_at(i)); i++) {
		if (!(x->commands & PROGRAM) || index-- > 0)
			continue;
		*out = (struct stint_option){.name = x->name,
			.value = x->arg,
			.help = x->help,
			.words = x->type == OPTION_WORD ? x->word : NULL};
		return 1;
	}
	return 0;
}
