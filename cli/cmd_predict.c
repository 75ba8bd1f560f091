/* stint predict DIR --input [NAME=]FILE ... -o [NAME=]OUT ... */
#include <inttypes.h>
#include <string.h>

#include "api/safe_put.h"
#include "api/weights.h"
#include "base/marked.h"
#include "cli/cli.h"
#include "cli/feed.h"
#include "cli/interrupt.h"
#include "cli/training_note.h"
#include "data/array_stream.h"

struct predict_args {
	const char *dir, *checkpoint, *file;
	struct weights weights;
	struct arg_list input, out;
	struct data_options data;
};

/* A file, and which outputs go into it. */
struct sink {
	const char *path;
	int n;
	int *output;
	struct array_stream *stream;
};

struct prediction {
	struct arena *a;
	struct loaded l;         /* as it was compiled */
	struct stint_model bare; /* without its target: nobody has to give one */
	struct loaded without;   /* the same step, seen so */
	struct feed f;
	int nsink;
	struct sink sink[ARGS_MAX];
	struct diag *d;
};

/* The target's place stays as it is, of zeros: a loss that is made of it is not looked at. */
static enum status leave_target_out(struct prediction *p)
{
	const struct stint_model *m = p->l.model;
	p->without = p->l;
	if (m->target < 0)
		return ST_OK;
	struct stint_tensor *all = arena_memdup(
		p->a, m->resident, (size_t)m->nresident, sizeof *m->resident);
	if (!all)
		return diag_nomem(p->d);
	all[m->target].kind = STINT_CONTROL;
	p->bare = *m;
	p->bare.resident = all;
	p->bare.target = -1;
	p->without.model = &p->bare;
	return ST_OK;
}

/* --- Files --- */

/* Rows of an output that a sample gives, or 0: it has no axis of samples. */
static int64_t rows_of(const struct prediction *p, int output)
{
	const struct stint_output *o = &p->l.model->output[output];
	if (o->rank == 0)
		return 0;
	if (p->f.whole)
		return o->dim[0];
	return o->dim[0] == feed_evaluated(&p->f) ? 1 : 0;
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

static enum status find_output(struct prediction *p, const char *name, int *out)
{
	const struct stint_model *m = p->l.model;
	const char *all = "";
	for (int i = 0; i < m->noutput; i++) {
		if (!strcmp(m->output[i].name, name)) {
			*out = i;
			return ST_OK;
		}
		all = all ? arena_printf(p->a, "%s%s'%s'", all, i ? ", " : "", m->output[i].name)
			  : NULL;
	}
	return !all ? diag_nomem(p->d)
		    : diag_fail(p->d, ST_USAGE, NULL, arena_printf(p->a, "it has %s", all),
			      "the model has no output '%s'", name);
}

/* "[NAME=]FILE": one output, or, of a .safetensors, all that have an axis of samples. */
static enum status choose(struct prediction *p, const char *text, struct sink *s)
{
	const struct stint_model *m = p->l.model;
	const char *eq = marked_first(text, "=");
	s->path = eq ? eq + 1 : text;
	s->output = ARENA_ARRAY(p->a, int, m->noutput);
	char *name = eq ? marked_name(p->a, text, (size_t)(eq - text)) : NULL;
	if (!s->output || (eq && !name))
		return diag_nomem(p->d);
	if (eq)
		TRY(find_output(p, name, &s->output[s->n++]));
	else if (m->noutput == 1)
		s->output[s->n++] = 0;
	else if (ends_with(s->path, ".safetensors"))
		for (int i = 0; i < m->noutput; i++)
			if (rows_of(p, i))
				s->output[s->n++] = i;
	if (!s->n && m->noutput != 1)
		return diag_fail(p->d, ST_USAGE, NULL,
			"-o NAME=OUT.npy writes one, -o OUT.safetensors all",
			"the model has %d outputs", m->noutput);
	for (int i = 0; i < s->n; i++)
		if (!rows_of(p, s->output[i]))
			return diag_fail(p->d, ST_USAGE, NULL, NULL,
				"output '%s' has no axis of samples", m->output[s->output[i]].name);
	return ST_OK;
}

static enum status open_sink(struct prediction *p, struct sink *s)
{
	char message[256];
	struct safetensors_entry *entry = ARENA_ARRAY(p->a, struct safetensors_entry, s->n);
	if (!entry)
		return diag_nomem(p->d);
	for (int i = 0; i < s->n; i++) {
		const struct stint_output *o = &p->l.model->output[s->output[i]];
		int64_t *dim = arena_memdup(p->a, o->dim, (size_t)o->rank, sizeof *dim);
		if (!dim)
			return diag_nomem(p->d);
		if (!size_mul(p->f.samples, rows_of(p, s->output[i]), &dim[0]))
			return diag_fail(p->d, ST_INVALID, NULL, NULL, "too many samples");
		entry[i] = (struct safetensors_entry){
			.name = o->name, .dtype = o->dtype, .rank = o->rank, .dim = dim};
	}
	if (array_stream_open(&s->stream, s->path, entry, s->n, NULL, 0, message))
		return diag_fail(p->d, ST_IO, NULL, NULL, "%s", message);
	return ST_OK;
}

/* The first `n` samples of a batch. */
static enum status put(struct prediction *p, const struct sink *s, int64_t n)
{
	char message[256];
	for (int i = 0; i < s->n; i++) {
		const struct stint_output *o = &p->l.model->output[s->output[i]];
		const void *y = load_output(&p->l, s->output[i]);
		if (!y)
			return load_lost(&p->l, "prediction", p->d);
		const size_t bytes = o->bytes / (size_t)feed_evaluated(&p->f) * (size_t)n;
		if (array_stream_put(s->stream, i, y, bytes, message))
			return diag_fail(p->d, ST_IO, NULL, NULL, "%s", message);
	}
	return ST_OK;
}

/* --- The walk --- */

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
		TRY(feed_batch(f, index, n, p->d));
		const int rc = p->l.eval(p->l.step, n * f->rows, NULL);
		if (rc)
			return load_fail(&p->l, rc, "prediction", p->d);
		for (int i = 0; i < p->nsink; i++)
			TRY(put(p, &p->sink[i], n));
	}
	return ST_OK;
}

static enum status finish(struct prediction *p)
{
	char message[256], shape[200];
	for (int i = 0; i < p->nsink; i++)
		if (array_stream_end(p->sink[i].stream, message))
			return diag_fail(p->d, ST_IO, NULL, NULL, "%s", message);
	for (int i = 0; i < p->nsink; i++) {
		const struct sink *s = &p->sink[i];
		safe_put(stdout, s->path);
		putchar(':');
		for (int k = 0; k < s->n; k++) {
			const struct stint_output *o = &p->l.model->output[s->output[k]];
			int64_t dim[SAFETENSORS_RANK];
			memcpy(dim, o->dim, (size_t)o->rank * sizeof *dim);
			dim[0] = p->f.samples * rows_of(p, s->output[k]);
			dims_text(o->rank, dim, shape);
			printf("%s ", k ? "," : "");
			safe_put(stdout, o->name);
			printf(" %s", shape);
		}
		putchar('\n');
	}
	return ST_OK;
}

static enum status predict(struct prediction *p, const struct predict_args *o)
{
	TRY(feed_wants_outputs(&p->l, "predict", p->d));
	TRY(leave_target_out(p));
	TRY(feed_open(p->a, &p->without, &o->input, NULL, &o->data, &p->f, p->d));
	if (!p->f.n || !p->f.samples)
		return diag_fail(p->d, ST_INVALID, NULL, NULL, "there are no samples");
	for (int i = 0; i < o->out.n; i++)
		TRY(choose(p, o->out.value[i], &p->sink[i]));
	for (; p->nsink < o->out.n; p->nsink++)
		TRY(open_sink(p, &p->sink[p->nsink]));
	interrupt_listen();
	TRY(batches(p));
	return finish(p);
}

static enum status run(struct arena *a, struct predict_args *o, struct diag *d)
{
	struct prediction *p = ARENA_NEW(a, struct prediction);
	if (!p)
		return diag_nomem(d);
	*p = (struct prediction){.a = a, .d = d};
	if (!o->out.n)
		return diag_fail(d, ST_USAGE, NULL, NULL, "no -o OUT.npy given");
	TRY(weights_choose(a, o->dir, o->file, o->checkpoint, &o->weights, d));
	TRY(note_take_data(a, o->weights.path, &o->data, d));
	enum status st = load_open(a, o->dir, &o->weights, &p->l, d);
	if (st == ST_OK)
		st = predict(p, o);
	for (int i = 0; i < o->out.n; i++)
		array_stream_close(p->sink[i].stream);
	feed_tell_skipped(&p->f, d);
	feed_close(&p->f);
	load_close(&p->l);
	return st;
}

enum status cmd_predict(int argc, const char **argv, struct diag *d)
{
	struct predict_args o = {0};
	struct arg_list list[2] = {0};
	char *text[2] = {NULL};
	struct poptOption table[] = {
		{"input", 0, POPT_ARG_STRING, NULL, 1, "data, .npy or IDX(.gz)", "[NAME=]FILE"},
		{"output", 'o', POPT_ARG_STRING, NULL, 2, "where the answers go",
			"[NAME=]OUT.npy|.safetensors"},
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
		a, argc, argv, table, "DIR --input FILE ... -o OUT", 1, 1, list, &args, d);
	if (st == ST_OK && !args.help) {
		o.dir = args.positional[0];
		o.input = list[0];
		o.out = list[1];
		o.file = text[0];
		o.checkpoint = text[1];
		st = run(a, &o, d);
	}
	free(text[0]);
	free(text[1]);
	data_options_free(&o.data);
	arena_free(a);
	return st;
}
