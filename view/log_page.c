/* The page about trainings: page.css and log.css, a picture for each curve, a table of the runs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/safe.h"
#include "view/page.h"

enum { CURVES = 64 };

/* What curves of these names are called. */
static const struct known {
	const char *name, *title, *note;
} known[] = {
	{"loss", "Loss",
		"Solid: the batches of training, neighbours as their mean. Dashed: held-out data."},
	{"eval_loss", "Loss on held-out data", NULL},
	{"lr", "Learning rate", NULL},
	{"seconds", "Time of an epoch",
		"Seconds, evaluation and all. Dashed: those that went for data."},
	{"data_seconds", "Time for data", NULL},
};

static const struct known *known_as(const char *name)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].name, name))
			return &known[i];
	return NULL;
}

static bool has(const struct view_run *run, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		const struct view_curve *c = view_curve_of(&run[i], name);
		if (c && c->n)
			return true;
	}
	return false;
}

static void put_panel(
	struct text *t, const struct view_run *run, int n, const char *name, const char *also)
{
	const struct known *k = known_as(name);
	const bool wide = strstr(name, "loss") != NULL;
	if (!has(run, n, name))
		return;
	text_add(
		t, "<section class=\"panel plot%s\"><div class=\"row\"><h2>", wide ? " whole" : "");
	text_html(t, k ? k->title : name);
	text_puts(t, "</h2>");
	if (k && k->note && also)
		text_add(t, "<p class=\"note\">%s</p>", k->note);
	text_puts(t, "</div>\n");
	curves_draw(t, run, n, name, also, wide);
	text_puts(t, "</section>\n");
}

/* The names of metrics, each once, in the order in which the runs have them. */
static int list_metrics(const struct view_run *run, int n, const char *name[CURVES])
{
	int count = 0;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < run[i].ncurve; k++) {
			int j = 0;
			while (j < count && strcmp(name[j], run[i].curve[k].name) != 0)
				j++;
			if (j == count && count < CURVES && !known_as(run[i].curve[k].name))
				name[count++] = run[i].curve[k].name;
		}
	return count;
}

/* --- The table --- */

static double last_of(const struct view_curve *c)
{
	return c && c->n ? c->y[c->n - 1] : NAN;
}

static double sum_of(const struct view_curve *c)
{
	double sum = 0;
	for (int i = 0; c && i < c->n; i++)
		sum += isfinite(c->y[i]) ? c->y[i] : 0;
	return c && c->n ? sum : NAN;
}

/* The mean of the last tenth: single batches differ too much. */
static double end_of(const struct view_curve *c)
{
	const int from = c ? c->n - (c->n + 9) / 10 : 0;
	double sum = 0;
	for (int i = from; c && i < c->n; i++)
		sum += c->y[i];
	return c && c->n ? sum / (c->n - from) : NAN;
}

static void put_number(struct text *t, const char *before, double v, const char *unit)
{
	if (isfinite(v))
		text_add(t, "%s%.4g%s", before, v, unit);
	else
		text_add(t, "%s–", before);
}

/* The last value; in small the least of all, where it is another. */
static void put_losses(struct text *t, const struct view_curve *c)
{
	double least = INFINITY;
	for (int i = 0; c && i < c->n; i++)
		least = fmin(least, c->y[i]);
	put_number(t, "<td>", last_of(c), "");
	if (isfinite(least) && least < last_of(c))
		put_number(t, " <small>least ", least, "</small>");
	text_puts(t, "</td>");
}

static void put_table(
	struct text *t, const struct view_run *run, int n, const char *const *metric, int nmetric)
{
	text_puts(t, "<section class=\"panel wide\"><h2>Runs</h2>\n<table class=\"runs\"><thead>"
		     "<tr><th>log</th><th>epochs</th><th>steps</th><th>loss, last tenth</th>"
		     "<th>held-out loss</th>");
	for (int k = 0; k < nmetric; k++) {
		text_puts(t, "<th>");
		text_html(t, metric[k]);
		text_puts(t, "</th>");
	}
	text_puts(t, "<th>seconds</th><th>of them for data</th></tr></thead>\n<tbody>\n");
	for (int i = 0; i < n; i++) {
		const struct view_run *r = &run[i];
		text_add(t, "<tr><td><span class=\"swatch r%d\"></span>", i);
		text_html(t, r->name);
		text_add(t, "</td><td>%" PRId64 "</td><td>%" PRId64 "</td>", r->epochs, r->steps);
		put_number(t, "<td>", end_of(view_curve_of(r, "loss")), "</td>");
		put_losses(t, view_curve_of(r, "eval_loss"));
		for (int k = 0; k < nmetric; k++)
			put_number(t, "<td>", last_of(view_curve_of(r, metric[k])), "</td>");
		put_number(t, "<td>", sum_of(view_curve_of(r, "seconds")), "</td>");
		put_number(t, "<td>", sum_of(view_curve_of(r, "data_seconds")), "</td></tr>\n");
	}
	text_puts(t, "</tbody></table>\n</section>\n");
}

/* --- The page --- */

enum status view_log_html(struct text *out, const struct view_run *run, int n, struct diag *d)
{
	const char *metric[CURVES];
	const int nmetric = list_metrics(run, n, metric);
	const bool held_out = has(run, n, "eval_loss"), trained = has(run, n, "loss");
	char title[64];
	snprintf(title, sizeof title, "%d trainings", n);
	TRY(page_head(out, n == 1 ? run->name : title, "curves of training", "log.css", d));
	text_puts(out, "</div><ul class=\"legend\">");
	for (int i = 0; n > 1 && i < n; i++) {
		text_add(out, "<li><span class=\"swatch r%d\"></span>", i);
		text_html(out, run[i].name);
		text_puts(out, "</li>");
	}
	text_puts(out, "</ul></header>\n<main>\n<div class=\"curves\">\n");
	if (trained)
		put_panel(out, run, n, "loss", held_out ? "eval_loss" : NULL);
	else
		put_panel(out, run, n, "eval_loss", NULL);
	for (int k = 0; k < nmetric; k++)
		put_panel(out, run, n, metric[k], NULL);
	put_panel(out, run, n, "lr", NULL);
	put_panel(out, run, n, "seconds", "data_seconds");
	text_puts(out, "</div>\n");
	put_table(out, run, n, metric, nmetric);
	text_puts(out, "</main>\n</body>\n</html>\n");
	return out->failed ? diag_nomem(d) : ST_OK;
}
