/* stint predict DIR --input [NAME=]FILE ... [-o [NAME=]OUT ...] */
#include <inttypes.h>
#include <string.h>

#include "api/weights.h"
#include "cli/cli.h"
#include "cli/data_forms.h"
#include "cli/feed.h"
#include "cli/interrupt.h"
#include "cli/sinks.h"
#include "cli/training_note.h"

struct predict_args {
	const char *dir, *checkpoint, *file;
	struct weights weights;
	struct arg_list input, out;
	struct data_options data;
	const char *format;
	long long top;
	int scores, raw, json;
};

struct prediction {
	struct arena *a;
	struct loaded l;         /* as it was compiled */
	struct stint_model bare; /* without its targets: nobody has to give any */
	struct loaded without;   /* the same step, seen so */
	struct feed f;
	struct sinks sinks;
	struct answer_options answers;
	struct diag *d;
};

/* Targets' places stay as they are, of zeros: losses that are made of them are not looked at. */
static enum status leave_target_out(struct prediction *p)
{
	const struct stint_model *m = p->l.model;
	p->without = p->l;
	if (load_target(m, 0) < 0)
		return ST_OK;
	struct stint_tensor *all = arena_memdup(
		p->a, m->resident, (size_t)m->nresident, sizeof *m->resident);
	if (!all)
		return diag_nomem(p->d);
	for (int k = 0; load_target(m, k) >= 0; k++)
		all[load_target(m, k)].kind = STINT_CONTROL;
	p->bare = *m;
	p->bare.resident = all;
	p->bare.nloss = 0;
	p->without.model = &p->bare;
	return ST_OK;
}

static enum status batches(struct prediction *p)
{
	const struct feed *f = &p->f;
	const int64_t batch = feed_evaluated(f);
	int64_t *index = ARENA_ARRAY(p->a, int64_t, batch);
	if (!index)
		return diag_nomem(p->d);
	for (int64_t from = 0; from < f->samples; from += batch) {
		const int64_t n = f->samples - from < batch ? f->samples - from : batch;
		if (interrupt_asked())
			return diag_fail(p->d, ST_INTERRUPTED, NULL, NULL,
				"interrupted by %s: nothing written", interrupt_name());
		for (int64_t i = 0; i < n; i++)
			index[i] = from + i;
		memset(f->why, 0, (size_t)f->batch * sizeof *f->why);
		TRY(feed_batch(f, index, n, p->d));
		const int rc = p->l.eval(p->l.step, n * f->rows, NULL);
		if (rc)
			return load_fail(&p->l, rc, "prediction", p->d);
		TRY(sinks_put(&p->sinks, from, n));
	}
	return ST_OK;
}

static enum status predict(struct prediction *p, const struct predict_args *o)
{
	TRY(feed_wants_outputs(&p->l, "predict", p->d));
	TRY(leave_target_out(p));
	TRY(feed_open(p->a, &p->without, &o->input, &(struct arg_list){0}, &o->data, &p->f, p->d));
	TRY(feed_wants_samples(&p->f, p->d));
	p->f.why = arena_alloc(p->a, (size_t)p->f.batch, sizeof *p->f.why);
	if (!p->f.why)
		return diag_nomem(p->d);
	TRY(data_options_bad(&o->data, p->f.samples, p->f.samples, &p->f.bad, p->d));
	for (int i = 0; i < o->out.n; i++)
		TRY(sinks_add(&p->sinks, o->out.value[i]));
	if (!o->out.n)
		TRY(sinks_add(&p->sinks, "-"));
	TRY(sinks_open(&p->sinks));
	sinks_tell_filled(&p->sinks);
	interrupt_listen();
	TRY(batches(p));
	return sinks_end(&p->sinks);
}

static enum status run(struct arena *a, struct predict_args *o, struct diag *d)
{
	struct prediction *p = ARENA_NEW(a, struct prediction);
	if (!p)
		return diag_nomem(d);
	if (o->top < 0)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--top wants 1 or more");
	TRY(weights_choose(a, o->dir, o->file, o->checkpoint, &o->weights, d));
	TRY(note_take_data(a, o->weights.path, &o->data, d));
	*p = (struct prediction){
		.a = a, .answers = {.top = o->top, .scores = o->scores, .raw = o->raw}, .d = d};
	TRY(class_names_split(a, o->data.classes, &p->answers.classes, d));
	p->sinks = (struct sinks){.a = a,
		.l = &p->l,
		.f = &p->f,
		.options = &p->answers,
		.format = o->format,
		.json = o->json,
		.d = d};
	enum status st = load_open(a, o->dir, &o->weights, &p->l, d);
	if (st == ST_OK)
		st = predict(p, o);
	sinks_drop(&p->sinks);
	feed_tell_skipped(&p->f, d);
	feed_close(&p->f);
	load_close(&p->l);
	return st;
}

enum status cmd_predict(int argc, const char **argv, struct diag *d)
{
	struct predict_args o = {0};
	struct arg_list list[2] = {0};
	char *text[3] = {NULL};
	struct poptOption table[] = {
		{"input", 0, POPT_ARG_STRING, NULL, 1, "data: " INPUT_FORMS, "[NAME=]FILE"},
		{"output", 'o', POPT_ARG_STRING, NULL, 2,
			"where the answers go: .csv, .jsonl, .json, .npy, .safetensors, a folder "
			"of masks, or - for standard output (default)",
			"[NAME=]OUT"},
		{"format", 0, POPT_ARG_STRING, &text[2], 0,
			"csv, jsonl, json, npy, safetensors or png (default: by OUT's ending)",
			"NAME"},
		{"top", 0, POPT_ARG_LONGLONG, &o.top, 0, "the K best classes (default 1)", "K"},
		{"scores", 0, POPT_ARG_NONE, &o.scores, 0, "the scores of all classes, too", NULL},
		{"raw", 0, POPT_ARG_NONE, &o.raw, 0,
			"the model's own numbers: no probabilities are made of them", NULL},
		{"json", 0, POPT_ARG_NONE, &o.json, 0, "one JSON document on standard output",
			NULL},
		DATA_OPTIONS(o.data),
		{"weights", 0, POPT_ARG_STRING, &text[0], 0, "take these values",
			"FILE.safetensors"},
		WEIGHTS_OPTIONS(o.weights), AVERAGE_OPTIONS(o.weights.average),
		{"checkpoint", 0, POPT_ARG_STRING, &text[1], 0,
			"take the newest checkpoint's values, or this file's (default: "
			"DIR/checkpoints)",
			"FOLDER"},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(
		a, argc, argv, table, "DIR --input FILE ... [-o OUT]", 1, 1, list, &args, d);
	if (st == ST_OK && !args.help) {
		o.dir = args.positional[0];
		o.input = list[0];
		o.out = list[1];
		o.file = text[0];
		o.checkpoint = text[1];
		o.format = text[2];
		st = run(a, &o, d);
	}
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		free(text[i]);
	data_options_free(&o.data);
	arena_free(a);
	return st;
}
