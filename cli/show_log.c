#include "cli/show_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/safe_put.h"
#include "api/terminal.h"
#include "cli/args.h"
#include "cli/chart.h"
#include "cli/run_log.h"
#include "planner/problem/json_text.h"

bool show_log_meant(int argc, const char **argv)
{
	for (int i = 1; i < argc; i++)
		if (*argv[i] != '-' && run_log_named(argv[i]))
			return true;
	return false;
}

static enum status write_page(const char *path, const struct view_run *run, int n, struct diag *d)
{
	struct text page = {0};
	enum status st = view_log_html(&page, run, n, d);
	if (st == ST_OK)
		st = text_save(&page, path, d);
	text_free(&page);
	return st;
}

/* The losses and the metrics; rates and times are for the page. */
static void print_charts(const struct view_run *r)
{
	const int columns = terminal_columns(STDOUT_FILENO);
	safe_put(stdout, r->name);
	printf(": %" PRId64 " epoch%s, %" PRId64 " steps\n", r->epochs, r->epochs == 1 ? "" : "s",
		r->steps);
	for (int i = 0; i < r->ncurve; i++) {
		const struct view_curve *c = &r->curve[i];
		if (strcmp(c->name, "lr") != 0 && strcmp(c->name, "seconds") != 0 &&
			strcmp(c->name, "data_seconds") != 0)
			chart_draw(stdout,
				!strcmp(c->name, "eval_loss") ? "held-out loss" : c->name, c->y,
				c->n, columns ? columns : 80, chart_utf8());
	}
}

static void numbers(struct text *t, const char *key, const double *x, int n)
{
	text_add(t, "\"%s\":[", key);
	for (int i = 0; i < n; i++) {
		text_puts(t, i ? "," : "");
		json_text_double(t, x[i]);
	}
	text_puts(t, "]");
}

/* {"logs":[{"file":F,"epochs":N,"steps":N,"curves":{"loss":{"step":[...],"value":[...]},...}},...]}
 */
static enum status print_json(const struct view_run *run, int n, struct diag *d)
{
	struct text t = {0};
	text_puts(&t, "{\"logs\":[");
	for (int i = 0; i < n; i++) {
		text_puts(&t, i ? ",{\"file\":" : "{\"file\":");
		json_text_string(&t, run[i].name);
		text_add(&t, ",\"epochs\":%" PRId64 ",\"steps\":%" PRId64 ",\"curves\":{",
			run[i].epochs, run[i].steps);
		for (int k = 0; k < run[i].ncurve; k++) {
			const struct view_curve *c = &run[i].curve[k];
			text_puts(&t, k ? "," : "");
			json_text_string(&t, c->name);
			text_puts(&t, ":{");
			numbers(&t, "step", c->x, c->n);
			text_puts(&t, ",");
			numbers(&t, "value", c->y, c->n);
			text_puts(&t, "}");
		}
		text_puts(&t, "}}");
	}
	text_puts(&t, "]}\n");
	if (!t.failed)
		fwrite(t.s, 1, t.len, stdout);
	const enum status st = t.failed ? diag_nomem(d) : ST_OK;
	text_free(&t);
	return st;
}

static enum status show(
	struct arena *a, const struct args *args, const char *html, bool json, struct diag *d)
{
	struct view_run run[VIEW_RUNS];
	for (int i = 0; i < args->n; i++)
		TRY(run_log_read(a, args->positional[i], &run[i], d));
	if (html)
		TRY(write_page(html, run, args->n, d));
	if (json)
		return print_json(run, args->n, d);
	for (int i = 0; i < args->n && !html; i++)
		print_charts(&run[i]);
	return ST_OK;
}

enum status show_log(int argc, const char **argv, struct diag *d)
{
	char *html = NULL;
	int json = 0;
	struct poptOption table[] = {{"html", 0, POPT_ARG_STRING, &html, 0,
					     "write a page of all curves to look at", "FILE"},
		{"json", 0, POPT_ARG_NONE, &json, 0, "print JSON for programs", NULL},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table, "LOG.jsonl|LOG.csv ... [--html FILE]", 1,
		VIEW_RUNS, NULL, &args, d);
	if (st == ST_OK && !args.help)
		st = show(a, &args, html, json != 0, d);
	free(html);
	arena_free(a);
	return st;
}
