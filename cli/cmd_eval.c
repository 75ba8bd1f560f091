/* stint eval DIR --input [NAME=]FILE ... --target FILE [--metric NAME[:OPTIONS]] ... */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/safe_put.h"
#include "api/weights.h"
#include "cli/class_names.h"
#include "cli/cli.h"
#include "cli/data_forms.h"
#include "cli/evaluate.h"
#include "cli/interrupt.h"
#include "cli/training_note.h"

struct eval_args {
	const char *dir, *checkpoint, *file;
	struct weights weights;
	struct arg_list input, target, metric;
	struct data_options data;
	long long ranks;
	int json;
};

/* --- The table --- */

static int width_of(int64_t n)
{
	return snprintf(NULL, 0, "%" PRId64, n);
}

/* A class by its name, or its number where it has none. */
static void put_class(const struct class_names *names, int64_t c, FILE *f)
{
	if (c < names->n)
		safe_put(f, names->name[c]);
	else
		fprintf(f, "%" PRId64, c);
}

/* How many columns that takes. */
static int class_width(const struct class_names *names, int64_t c)
{
	char shown[SAFE_MAX];
	int width = 0, columns;
	if (c >= names->n)
		return width_of(c);
	for (const char *p = names->name[c]; *p; width += columns)
		p += safe_char(p, shown, &columns);
	return width;
}

static int widest_class(const struct class_names *names, int64_t n)
{
	enum { LEAST = 8 };
	int widest = LEAST;
	for (int64_t c = 0; c < n; c++) {
		const int width = class_width(names, c);
		widest = width > widest ? width : widest;
	}
	return widest;
}

static void print_class(const struct class_names *names, int64_t c, int width)
{
	printf("%*s", width - class_width(names, c), "");
	put_class(names, c, stdout);
}

static void print_classes(const struct metrics *m, const struct class_names *names)
{
	const int64_t n = metrics_classes(m);
	bool any = false;
	for (int i = 0; i < m->n; i++)
		any |= metrics_per_class(m, i) && m->item[i].which != METRIC_ACCURACY;
	if (!any)
		return;
	const int width = widest_class(names, n);
	printf("%*s", width, "class");
	for (int i = 0; i < m->n; i++)
		if (metrics_per_class(m, i))
			printf("  %10.10s", m->item[i].text);
	printf("  %10s\n", "labels");
	for (int64_t c = 0; c < n; c++) {
		print_class(names, c, width);
		for (int i = 0; i < m->n; i++)
			if (metrics_per_class(m, i))
				printf("  %10.4f", metrics_class_value(m, i, c));
		printf("  %10" PRId64 "\n", m->were[c]);
	}
}

/* Rows have the names, and columns the numbers, by which rows are counted, too. */
static void print_confusion(const struct metrics *m, const struct class_names *names)
{
	const int64_t n = metrics_classes(m);
	const int number = names->n ? width_of(n - 1) + 1 : 0, named = widest_class(names, n);
	int width = width_of(n - 1);
	for (int64_t i = 0; i < n * n; i++)
		width = width_of(m->confusion[i]) > width ? width_of(m->confusion[i]) : width;
	printf("confusion: a row is a label, a column what was answered\n%*s", number + named, "");
	for (int64_t c = 0; c < n; c++)
		printf(" %*" PRId64, width, c);
	putchar('\n');
	for (int64_t r = 0; r < n; r++) {
		if (number && r >= names->n)
			printf("%*s", named, "");
		else
			print_class(names, r, named);
		if (number)
			printf(" %*" PRId64, number - 1, r);
		for (int64_t c = 0; c < n; c++)
			printf(" %*" PRId64, width, m->confusion[r * n + c]);
		putchar('\n');
	}
}

/* The first loss that compares with labels of classes; NULL: none does. */
static const struct metrics *classes_of(const struct evaluation *e)
{
	for (int k = 0; k < e->n; k++)
		if (e->scored[k].metrics.task.kind == METRIC_CLASSES)
			return &e->scored[k].metrics;
	return NULL;
}

static void print_line(const char *name, const char *value)
{
	printf("  ");
	safe_put(stdout, name);
	printf("%*s %s\n", strlen(name) < 12 ? (int)(12 - strlen(name)) : 0, "", value);
}

/* Tables of one of several losses stand below its name. */
static void print_tables(const struct evaluation *e, int k, const struct class_names *names)
{
	const struct metrics *m = &e->scored[k].metrics;
	bool any = m->confusion != NULL;
	for (int i = 0; i < m->n; i++)
		any |= metrics_per_class(m, i) && m->item[i].which != METRIC_ACCURACY;
	if (any && e->n > 1) {
		safe_put(stdout, e->l->model->loss[k].name);
		printf(":\n");
	}
	print_classes(m, names);
	if (m->confusion)
		print_confusion(m, names);
}

static void print_table(const struct evaluation *e, bool has_loss, const struct class_names *names)
{
	const struct class_names none = {0};
	const struct metrics *labels = classes_of(e);
	char value[32];
	printf("%" PRId64 " samples", e->samples);
	if (e->n == 1 && labels && labels->counted != e->samples)
		printf(", %" PRId64 " labels", labels->counted);
	putchar('\n');
	if (has_loss)
		printf("  %-12s %.6g\n", "loss", e->loss);
	for (int k = 0; e->n > 1 && k < e->n; k++) {
		snprintf(value, sizeof value, "%.6g", e->scored[k].loss);
		print_line(e->l->model->loss[k].name, value);
	}
	for (int i = 0; i < e->nmetric; i++) {
		if (evaluation_metric(e, i)->which == METRIC_CONFUSION)
			continue;
		evaluation_print(e, i, value);
		print_line(evaluation_metric(e, i)->label, value);
	}
	for (int k = 0; k < e->n; k++)
		print_tables(e, k, &e->scored[k].metrics == labels ? names : &none);
}

/* --- JSON --- */

static void put_number(double v)
{
	if (isfinite(v))
		printf("%.9g", v);
	else
		fputs("null", stdout);
}

static void json_metrics(const struct evaluation *e)
{
	const char *comma = "";
	printf("\"metrics\":{");
	for (int i = 0; i < e->nmetric; i++) {
		if (evaluation_metric(e, i)->which == METRIC_CONFUSION)
			continue;
		fputs(comma, stdout);
		safe_json(stdout, evaluation_metric(e, i)->label);
		putchar(':');
		put_number(evaluation_value(e, i));
		comma = ",";
	}
	printf("},\"per_class\":{");
	comma = "";
	for (int i = 0; i < e->nmetric; i++) {
		const struct metrics *m = &e->scored[e->metric[i].loss].metrics;
		const int item = e->metric[i].item;
		if (!metrics_per_class(m, item))
			continue;
		fputs(comma, stdout);
		safe_json(stdout, m->item[item].label);
		putchar(':');
		for (int64_t c = 0; c < metrics_classes(m); c++) {
			putchar(c ? ',' : '[');
			put_number(metrics_class_value(m, item, c));
		}
		putchar(']');
		comma = ",";
	}
	putchar('}');
}

/* What lists by class are in the order of. */
static void json_classes(const struct metrics *m, const struct class_names *names)
{
	if (!m || !names->n)
		return;
	printf(",\"classes\":");
	for (int64_t c = 0; c < metrics_classes(m); c++) {
		putchar(c ? ',' : '[');
		if (c < names->n)
			safe_json(stdout, names->name[c]);
		else
			printf("\"%" PRId64 "\"", c);
	}
	putchar(']');
}

/* The matrix of the only loss, or of several each one's that was asked for. */
static void json_confusion(const struct metrics *m)
{
	const int64_t n = metrics_classes(m);
	for (int64_t r = 0; r < n; r++) {
		fputs(r ? ",[" : "[[", stdout);
		for (int64_t c = 0; c < n; c++)
			printf("%s%" PRId64, c ? "," : "", m->confusion[r * n + c]);
		fputs(r + 1 == n ? "]]" : "]", stdout);
	}
}

static void json_confusions(const struct evaluation *e)
{
	const char *comma = ",\"confusion\":{";
	if (e->n == 1) {
		if (e->scored[0].metrics.confusion) {
			fputs(",\"confusion\":", stdout);
			json_confusion(&e->scored[0].metrics);
		}
		return;
	}
	for (int k = 0; k < e->n; k++) {
		if (!e->scored[k].metrics.confusion)
			continue;
		fputs(comma, stdout);
		safe_json(stdout, e->l->model->loss[k].name);
		putchar(':');
		json_confusion(&e->scored[k].metrics);
		comma = ",";
	}
	fputs(*comma && comma[1] ? "" : "}", stdout);
}

static void json_losses(const struct evaluation *e)
{
	for (int k = 0; k < e->n; k++) {
		fputs(k ? "," : "\"losses\":{", stdout);
		safe_json(stdout, e->l->model->loss[k].name);
		putchar(':');
		put_number(e->scored[k].loss);
	}
	fputs("},", stdout);
}

static void print_json(const struct evaluation *e, bool has_loss, const struct class_names *names)
{
	const struct metrics *labels = classes_of(e);
	printf("{\"samples\":%" PRId64 ",\"labels\":%" PRId64 ",\"loss\":", e->samples,
		labels ? labels->counted : e->scored[0].metrics.counted);
	put_number(has_loss ? e->loss : NAN);
	putchar(',');
	if (e->n > 1)
		json_losses(e);
	json_metrics(e);
	json_classes(labels, names);
	json_confusions(e);
	if (e->f->o->skip_bad) {
		fputs(",\"bad\":", stdout);
		bad_json(&e->f->tally->bad, stdout);
	}
	puts("}");
}

/* --- The command --- */

static enum status eval_loaded(struct arena *a, const struct eval_args *o, const struct loaded *l,
	struct ranks *r, struct feed *f, struct diag *d)
{
	struct evaluation e;
	struct class_names names;
	const bool has_loss = l->model->loss_offset_eval != SIZE_MAX;
	if (!has_loss)
		return diag_fail(d, ST_USAGE, &(struct where){.file = o->dir},
			"`stint predict` writes what it answers; to compare, compile with a loss",
			"was compiled with --loss none");
	TRY(feed_open(a, l, &o->input, &o->target, &o->data, f, d));
	TRY(feed_wants_samples(f, d));
	TRY(evaluation_start(a, l, f, &o->metric, &e, d));
	/* with values of no checkpoint the data's own */
	const char *classes = o->data.classes  ? o->data.classes
			      : f->target >= 0 ? dataset_classes(&f->bound[f->target].data)
					       : NULL;
	TRY(class_names_split(a, classes, &names, d));
	e.ranks = r;
	if (r->rank == 0)
		feed_tell_filled(f, "the result", l->model->whole_batch, d);
	interrupt_listen();
	TRY(evaluate(&e, d));
	if (e.stopped)
		return diag_fail(
			d, ST_INTERRUPTED, NULL, NULL, "interrupted by %s", interrupt_name());
	TRY(feed_join_skipped(a, f, r, l, d));
	if (o->json)
		print_json(&e, has_loss, &names);
	else
		print_table(&e, has_loss, &names);
	return ST_OK;
}

/* The step, alone or as one of several ranks, and its values. */
static enum status open_step(
	struct arena *a, struct eval_args *o, struct ranks *r, struct loaded *l, struct diag *d)
{
	struct diag quiet = {.put = NULL};
	bool asked;
	/* what was started by no MPI is alone */
	if (ranks_asked(&asked, &quiet) == ST_OK && asked)
		TRY(ranks_start(a, o->dir, r, d));
	TRY(weights_choose(a, o->dir, o->file, o->checkpoint, &o->weights, d));
	TRY(note_take_data(a, o->weights.path, &o->data, d));
	TRY(load_step(a, o->dir, l, d));
	TRY(r->n > 1 ? ranks_take(a, o->dir, r, l, d) : load_alone(o->dir, l, d));
	TRY(load_weights(a, o->dir, &o->weights, l, d));
	return ranks_same(r, l, RANKS_PATIENCE, d);
}

static enum status eval(struct arena *a, struct eval_args *o, struct diag *d)
{
	struct loaded l = {0};
	struct ranks r = {.n = 1};
	struct feed f = {0};
	struct metrics named;
	bool done;
	TRY(metrics_parse(a, o->metric.value, o->metric.n, &named, d));
	TRY(ranks_launch_for(a, o->dir, o->ranks, 0, &done, d));
	if (done)
		return ST_OK;
	enum status st = open_step(a, o, &r, &l, d);
	if (st == ST_OK)
		st = eval_loaded(a, o, &l, &r, &f, d);
	ranks_end(&r, &l, st, d);
	if (r.rank == 0)
		feed_tell_skipped(&f, d);
	feed_close(&f);
	load_close(&l);
	return st;
}

enum status cmd_eval(int argc, const char **argv, struct diag *d)
{
	struct eval_args o = {.data.held = true};
	struct arg_list list[3] = {0};
	char *text[2] = {NULL};
	struct poptOption table[] = {
		{"input", 0, POPT_ARG_STRING, NULL, 1, "data: " INPUT_FORMS, "[NAME=]FILE"},
		{"target", 0, POPT_ARG_STRING, NULL, ARGS_ANEW | 3, "targets: " TARGET_FORMS,
			"[NAME=]FILE"},
		{"metric", 0, POPT_ARG_STRING, NULL, 2, "accuracy, f1, auc, confusion, ...",
			"NAME[:OPTIONS]"},
		HOLD_OUT_OPTION(o.data, "these alone, which a training with it held out"),
		DATA_OPTIONS(o.data),
		{"weights", 0, POPT_ARG_STRING, &text[0], 0, "take these values",
			"FILE.safetensors"},
		WEIGHTS_OPTIONS(o.weights), AVERAGE_OPTIONS(o.weights.average),
		{"checkpoint", 0, POPT_ARG_STRING, &text[1], 0,
			"take the newest checkpoint's values, or this file's (default: "
			"DIR/checkpoints)",
			"FOLDER"},
		{"ranks", 0, POPT_ARG_LONGLONG, &o.ranks, 0,
			"by so many processes, started with mpirun, on this machine", "N"},
		{"json", 0, POPT_ARG_NONE, &o.json, 0, "print JSON", NULL}, POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(
		a, argc, argv, table, "DIR --input FILE ... --target FILE", 1, 1, list, &args, d);
	if (st == ST_OK && !args.help) {
		o.dir = args.positional[0];
		o.input = list[0];
		o.metric = list[1];
		o.target = list[2];
		o.file = text[0];
		o.checkpoint = text[1];
		st = eval(a, &o, d);
	}
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		free(text[i]);
	data_options_free(&o.data);
	arena_free(a);
	return st;
}
