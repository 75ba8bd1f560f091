/* The options of compile, plan, frontier and show on the command line: the table of api/options.h,
 * read with popt. */
#include "cli/command_options.h"

#include "cli/args.h"
#include "cli/generate.h"
#include "cli/interrupt.h"
#include "cli/option_groups.h"

/* popt's tables of the command's options: one a group, and `all` of them. popt stores nothing. */
struct tables {
	struct poptOption all[OPTION_GROUPS + 1], group[OPTION_GROUPS][OPTIONS_MAX + 2];
};

static void fill_group(struct poptOption *table, int group, enum command_kind kind)
{
	const struct option *c;
	int n = 0;
	for (int i = 0; (c = option_at(i)); i++) {
		const unsigned how = c->type == OPTION_FLAG    ? POPT_ARG_NONE
				     : c->type == OPTION_COUNT ? POPT_ARG_INT
				     : c->type == OPTION_REAL  ? POPT_ARG_DOUBLE
							       : POPT_ARG_STRING;
		if (c->commands & kind && option_group(c->name) == group)
			table[n++] = (struct poptOption){
				c->name, c->letter, how, NULL, i + 1, c->help, c->arg};
	}
	if (group == OPTION_GROUPS - 1)
		table[n++] = (struct poptOption)ARGS_OPTION_FILE;
	table[n] = (struct poptOption)POPT_TABLEEND;
}

static void fill_tables(struct tables *t, enum command_kind kind)
{
	int n = 0;
	for (int g = 0; g < OPTION_GROUPS; g++) {
		fill_group(t->group[g], g, kind);
		if (t->group[g]->longName)
			t->all[n++] = (struct poptOption){NULL, 0, POPT_ARG_INCLUDE_TABLE,
				t->group[g], 0, option_group_title[g], NULL};
	}
	t->all[n] = (struct poptOption)POPT_TABLEEND;
}

static enum status take(struct arena *a, int option, const char *text, void *user, struct diag *d)
{
	if (option == ARGS_FILE_END)
		options_replaceable(user);
	return option == ARGS_FILE_END ? ST_OK : options_set(a, user, option - 1, text, d);
}

static enum status finish(struct arena *a, poptContext ctx, struct options *o, struct diag *d)
{
	const char *model = poptGetArg(ctx);
	o->compile.model = model ? arena_strdup(a, model) : NULL;
	if (model && !o->compile.model)
		return diag_nomem(d);
	if (poptPeekArg(ctx))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"one model at a time; unexpected argument: '%s'", poptGetArg(ctx));
	return options_check(o, d);
}

enum status options_parse(struct arena *a, enum command_kind kind, int argc, const char **argv,
	struct options *out, struct diag *d)
{
	struct tables *table = ARENA_NEW(a, struct tables);
	if (!table)
		return diag_nomem(d);
	options_begin(out);
	fill_tables(table, kind);
	const bool graph_will_do = kind == COMMAND_PLAN || kind == COMMAND_FRONTIER;
	const char *synopsis = graph_will_do ? "[MODEL.onnx] [OPTIONS]" : "MODEL.onnx [OPTIONS]";
	out->help = generate_options(argc, argv, synopsis, table->all);
	if (out->help)
		return ST_OK;
	poptContext ctx = poptGetContext(NULL, argc, argv, table->all, 0);
	poptSetOtherOptionHelp(ctx, synopsis);
	enum status st = args_options(a, ctx, table->all, take, out, d);
	if (st == ST_OK && out->help)
		poptPrintHelp(ctx, stdout, 0);
	else if (st == ST_OK)
		st = finish(a, ctx, out, d);
	poptFreeContext(ctx);
	return st;
}

/* --dump-after */
static void dump(void *user, enum stage stage, const struct graph *g)
{
	const struct options *o = user;
	if (o->dump_after != stage)
		return;
	struct text t = {0};
	graph_print(g, &t);
	progress_hold();
	if (t.s)
		fwrite(t.s, 1, t.len, stdout);
	fflush(stdout);
	progress_go_on();
	text_free(&t);
}

/* Who waits for a command: a line says what is being done, and Ctrl-C can take what there is. */
struct waiter {
	struct activity at;
	struct onlooker onlooker;
	struct diag *diag;
};

static void now(void *user, const char *what)
{
	struct waiter *w = user;
	activity_now(&w->at, what);
}

static void far(void *user, const char *how, double done)
{
	struct waiter *w = user;
	activity_far(&w->at, how, done);
}

static bool asked(void *user)
{
	(void)user;
	return interrupt_asked();
}

/* Ctrl-C while there is a plan, if a poor one, takes the cheapest so far; before, it ends the
 * program. */
static void keeps(void *user, bool has)
{
	struct waiter *w = user;
	w->onlooker.stop = has ? asked : NULL;
	if (has)
		interrupt_take_int();
	else
		interrupt_release();
	if (!has && interrupt_asked())
		diag_warn(w->diag, NULL, NULL,
			"interrupted: the cheapest plan so far is taken, which another run need "
			"not "
			"find");
}

enum status options_command(
	enum command_kind kind, int argc, const char **argv, struct diag *d, command_run *run)
{
	const bool one_plan = kind == COMMAND_COMPILE || kind == COMMAND_PLAN;
	struct waiter w = {.diag = d,
		.onlooker = {.now = now, .far = far, .keeps = one_plan ? keeps : NULL, .user = &w}};
	struct options o;
	struct pipeline p = {
		.arena = arena_new(), .diag = d, .o = &o.compile, .dump = dump, .user = &o};
	if (!p.arena)
		return diag_nomem(d);
	enum status st = options_parse(p.arena, kind, argc, argv, &o, d);
	o.compile.onlooker = &w.onlooker;
	if (st == ST_OK && !o.help) {
		activity_start(&w.at, kind == COMMAND_SHOW ? "reading" : "planning");
		st = run(&p, &o, &w.at);
		activity_end(&w.at);
	}
	arena_free(p.arena);
	return st;
}
