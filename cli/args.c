#include "cli/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/once.h"
#include "cli/generate.h"

static const char *nearest_option(const struct poptOption *table, const char *bad, const char *best)
{
	for (const struct poptOption *o = table; o->longName || o->shortName || o->arg; o++)
		if (o->argInfo == POPT_ARG_INCLUDE_TABLE)
			best = nearest_option(o->arg, bad, best);
		else if (o->longName)
			best = nearest(bad, best, o->longName);
	return best;
}

/* What was not understood, and what may have been meant. */
static enum status bad_option(
	struct arena *a, poptContext ctx, const struct poptOption *table, int rc, struct diag *d)
{
	const char *bad = poptBadOption(ctx, POPT_BADOPTION_NOALIAS), *hint = NULL;
	const char *name = bad + strspn(bad, "-");
	const char *meant = NULL;
	if (rc == POPT_ERROR_BADOPT && !strncmp(bad, "--", 2)) {
		const char *word = arena_strndup(a, name, strcspn(name, "="));
		meant = word ? nearest_option(table, word, NULL) : NULL;
	}
	if (meant)
		hint = arena_printf(a, "did you mean --%s? `--help` lists the options", meant);
	return diag_fail(d, ST_USAGE, NULL, hint ? hint : "`--help` lists the options", "%s: %s",
		bad, poptStrerror(rc));
}

enum status args_options(struct arena *a, poptContext ctx, const struct poptOption *table,
	args_take *take, void *user, struct diag *d)
{
	int rc;
	while ((rc = poptGetNextOpt(ctx)) >= 0) {
		char *arg = poptGetOptArg(ctx);
		char *text = arena_strdup(a, arg ? arg : "");
		free(arg);
		if (!text)
			return diag_nomem(d);
		TRY(take(a, rc, text, user, d));
	}
	return rc < -1 ? bad_option(a, ctx, table, rc, d) : ST_OK;
}

/* A small command's options as they are read. */
struct reading {
	const struct poptOption *table;
	struct arg_list *list;
	struct once given;
	bool filed[ARGS_LISTS]; /* the list has what a file gave, which gives way */
};

static enum status take_listed(
	struct arena *a, int option, const char *text, void *user, struct diag *d)
{
	struct reading *r = user;
	const int k = (option & ~ARGS_ANEW) - 1;
	(void)a;
	if (option == ARGS_FILE_END) {
		r->given.n = 0;
		memset(r->filed, true, sizeof r->filed);
		return ST_OK;
	}
	if (option >= ARGS_ONCE)
		return once_add(&r->given, "--", r->table[option - ARGS_ONCE].longName, text, d);
	struct arg_list *list = r->list ? &r->list[k] : NULL;
	if (list && option & ARGS_ANEW && r->filed[k])
		list->n = 0;
	if (!list || list->n == ARGS_MAX)
		return diag_fail(d, ST_USAGE, NULL, NULL, "too many options like '%s'", text);
	r->filed[k] = false;
	list->value[list->n++] = text;
	return ST_OK;
}

static enum status take_positional(struct arena *a, poptContext ctx, int min, int max,
	const char *synopsis, struct args *out, struct diag *d)
{
	const char *arg;
	while ((arg = poptGetArg(ctx))) {
		if (out->n == max || out->n == ARGS_MAX)
			return diag_fail(d, ST_USAGE, NULL, NULL,
				"unexpected argument '%s'; usage: %s", arg, synopsis);
		if (!(out->positional[out->n++] = arena_strdup(a, arg)))
			return diag_nomem(d);
	}
	if (out->n < min)
		return diag_fail(
			d, ST_USAGE, NULL, NULL, "an argument is missing; usage: %s", synopsis);
	return ST_OK;
}

/* popt takes the next word for the value of an option that may have one: "--name" alone becomes
 * "--name=". */
static const char **end_optional(
	struct arena *a, int argc, const char **argv, const struct poptOption *table)
{
	const char **all = arena_memdup(a, argv, (size_t)argc + 1, sizeof *argv);
	for (const struct poptOption *o = table; o->longName; o++)
		for (int i = 1; all && o->argInfo & POPT_ARGFLAG_OPTIONAL && i < argc; i++)
			if (!strncmp(all[i], "--", 2) && !strcmp(all[i] + 2, o->longName) &&
				!(all[i] = arena_printf(a, "%s=", all[i])))
				return NULL;
	return all;
}

enum status args_parse(struct arena *a, int argc, const char **argv, struct poptOption *table,
	const char *synopsis, int min, int max, struct arg_list *list, struct args *out,
	struct diag *d)
{
	int help = 0;
	struct poptOption all[] = {{NULL, 0, POPT_ARG_INCLUDE_TABLE, table, 0, "Options:", NULL},
		ARGS_OPTION_FILE, {"help", 'h', POPT_ARG_NONE, &help, 0, "show this", NULL},
		POPT_TABLEEND};
	struct reading r = {.table = table, .list = list};
	*out = (struct args){.help = generate_options(argc, argv, synopsis, all)};
	if (out->help)
		return ST_OK;
	if (!(argv = end_optional(a, argc, argv, table)))
		return diag_nomem(d);
	for (int i = 0; table[i].longName; i++)
		if (!table[i].val && table[i].argInfo != POPT_ARG_NONE)
			table[i].val = ARGS_ONCE + i;
	poptContext ctx = poptGetContext(NULL, argc, argv, all, 0);
	poptSetOtherOptionHelp(ctx, synopsis);
	enum status st = args_options(a, ctx, all, take_listed, &r, d);
	if (st == ST_OK && help)
		poptPrintHelp(ctx, stdout, 0);
	else if (st == ST_OK)
		st = take_positional(a, ctx, min, max, synopsis, out, d);
	out->help = help != 0;
	poptFreeContext(ctx);
	return st;
}
