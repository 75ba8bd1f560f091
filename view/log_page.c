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
	{"eval_loss", "Held-out loss", NULL},
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
	/* a drawing that is made smaller cannot be read */
	curves_draw(t, run, n, name, also, wide);
	if (wide)
		curves_draw(t, run, n, name, also, false);
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

/* What a cell is of, where the table has no room for columns. */
static void put_cell(struct text *t, const char *of)
{
	text_puts(t, "<td data-of=\"");
	text_html(t, of);
	text_puts(t, "\">");
}

static void put_number(struct text *t, const char *of, double v)
{
	put_cell(t, of);
	if (isfinite(v))
		text_add(t, "%.4g</td>", v);
	else
		text_puts(t, "–</td>");
}

/* The last value; in small the least of all, where it is another. */
static void put_losses(struct text *t, const struct view_curve *c)
{
	double least = INFINITY;
	for (int i = 0; c && i < c->n; i++)
		least = fmin(least, c->y[i]);
	put_cell(t, "held-out loss");
	if (isfinite(last_of(c)))
		text_add(t, "%.4g", last_of(c));
	else
		text_puts(t, "–");
	if (isfinite(least) && least < last_of(c))
		text_add(t, " <small>least %.4g</small>", least);
	text_puts(t, "</td>");
}

/* A column of the table: what no run has is none. */
struct column {
	const char *title, *curve;
	double (*of)(const struct view_curve *c); /* NULL: put_losses */
};

static void put_row(struct text *t, const struct view_run *r, int number,
	const struct column *column, int ncolumn)
{
	char count[24];
	text_add(t, "<tr><td><span class=\"swatch r%d\"></span>", number);
	text_html(t, r->name);
	text_puts(t, "</td>");
	for (int i = 0; i < 2; i++) {
		snprintf(count, sizeof count, "%" PRId64, i ? r->steps : r->epochs);
		put_cell(t, i ? "steps" : "epochs");
		text_add(t, "%s</td>", count);
	}
	for (int k = 0; k < ncolumn; k++) {
		const struct view_curve *c = view_curve_of(r, column[k].curve);
		if (column[k].of)
			put_number(t, column[k].title, column[k].of(c));
		else
			put_losses(t, c);
	}
	text_puts(t, "</tr>\n");
}

static void put_table(
	struct text *t, const struct view_run *run, int n, const char *const *metric, int nmetric)
{
	struct column column[CURVES + 4];
	int ncolumn = 0;
	const struct column before[] = {
		{"loss, last tenth", "loss", end_of}, {"held-out loss", "eval_loss", NULL}};
	const struct column after[] = {
		{"seconds", "seconds", sum_of}, {"of them for data", "data_seconds", sum_of}};
	for (int k = 0; k < 2; k++)
		if (has(run, n, before[k].curve))
			column[ncolumn++] = before[k];
	for (int k = 0; k < nmetric; k++)
		column[ncolumn++] = (struct column){metric[k], metric[k], last_of};
	for (int k = 0; k < 2; k++)
		if (has(run, n, after[k].curve))
			column[ncolumn++] = after[k];
	text_puts(t, "<section class=\"panel wide\"><h2>Runs</h2>\n<table class=\"runs\"><thead>"
		     "<tr><th>log</th><th>epochs</th><th>steps</th>");
	for (int k = 0; k < ncolumn; k++) {
		text_puts(t, "<th>");
		text_html(t, column[k].title);
		text_puts(t, "</th>");
	}
	text_puts(t, "</tr></thead>\n<tbody>\n");
	for (int i = 0; i < n; i++)
		put_row(t, &run[i], i, column, ncolumn);
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
