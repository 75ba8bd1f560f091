#include "cli/args.h"

#include <stdio.h>
#include <stdlib.h>

enum status args_options(
	struct arena *a, poptContext ctx, args_take *take, void *user, struct diag *d)
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
	if (rc < -1)
		return diag_fail(d, ST_USAGE, NULL, "`--help` lists the options", "%s: %s",
			poptBadOption(ctx, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
	return ST_OK;
}

static enum status take_listed(
	struct arena *a, int option, const char *text, void *user, struct diag *d)
{
	struct arg_list *list = user;
	(void)a;
	if (!list || list[option - 1].n == ARGS_MAX)
		return diag_fail(d, ST_USAGE, NULL, NULL, "too many options like '%s'", text);
	list[option - 1].value[list[option - 1].n++] = text;
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

enum status args_parse(struct arena *a, int argc, const char **argv, struct poptOption *table,
	const char *synopsis, int min, int max, struct arg_list *list, struct args *out,
	struct diag *d)
{
	int help = 0;
	struct poptOption all[] = {{NULL, 0, POPT_ARG_INCLUDE_TABLE, table, 0, "Options:", NULL},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "show this", NULL}, POPT_TABLEEND};
	*out = (struct args){0};
	poptContext ctx = poptGetContext(NULL, argc, argv, all, 0);
	poptSetOtherOptionHelp(ctx, synopsis);
	enum status st = args_options(a, ctx, take_listed, list, d);
	if (st == ST_OK && help)
		poptPrintHelp(ctx, stdout, 0);
	else if (st == ST_OK)
		st = take_positional(a, ctx, min, max, synopsis, out, d);
	out->help = help != 0;
	poptFreeContext(ctx);
	return st;
}
