/* stint run DIR --input [NAME=]FILE.npy ... --target FILE.npy -o OUT.safetensors: train's very
 * step, looked into. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/safe_put.h"
#include "api/weights.h"
#include "cli/cli.h"
#include "cli/data_forms.h"
#include "cli/feed.h"
#include "runtime/safetensors.h"

struct result {
	struct arena *a;
	const struct loaded *l;
	int n, cap;
	struct safetensors_entry *entry;
	int64_t batch, samples; /* of the step, and given */
	void **whole;           /* of each output whose micro-batches come one by one */
	int part;               /* how many have */
	bool failed;
};

/* Copy a tensor out, under a name with a prefix. */
static void keep(struct result *r, const char *prefix, const char *name, int dtype, int rank,
	const int64_t *dim, const void *data, size_t bytes)
{
	void *copy = arena_memdup(r->a, data, bytes, 1);
	char *full = arena_printf(r->a, "%s%s", prefix, name);
	if (!copy || !full || r->n == r->cap) {
		r->failed = true;
		return;
	}
	r->entry[r->n++] = (struct safetensors_entry){.name = full,
		.dtype = dtype,
		.rank = rank,
		.dim = dim,
		.data = copy,
		.bytes = bytes};
}

/* Gradients come as the plan makes them: the file is not to differ for that. */
static int by_name(const void *x, const void *y)
{
	const struct safetensors_entry *a = x, *b = y;
	return strcmp(a->name, b->name);
}

static void on_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	struct result *r = user;
	const struct stint_tensor *t = &r->l->model->resident[parameter];
	if (!data)
		r->failed = true;
	else
		keep(r, "grad/", t->name, t->dtype, t->rank, t->dim, data, bytes);
}

/* Values of a narrow type as floats; NULL when out of memory. */
static float *widened(struct arena *a, int dtype, const uint16_t *half, size_t n)
{
	float *whole = ARENA_ARRAY(a, float, n);
	for (size_t i = 0; whole && i < n; i++) {
		const uint32_t bits = (uint32_t)half[i] << 16;
		if (dtype == STINT_F16)
			whole[i] = (float)dataset_half(half[i]);
		else
			memcpy(&whole[i], &bits, sizeof bits);
	}
	return whole;
}

/* An output of so many times o's rows: those of the samples given, if a sample has one. */
static void keep_output(
	struct result *r, const struct stint_output *o, int64_t times, const void *data)
{
	int64_t *dim = ARENA_ARRAY(r->a, int64_t, o->rank + 1);
	if (!dim) {
		r->failed = true;
		return;
	}
	dim[0] = times;
	for (int i = 0; i < o->rank; i++)
		dim[i] = o->dim[i] * (i ? 1 : times);
	const int64_t shards = r->l->model->train ? r->l->model->shards : 1;
	size_t bytes = (size_t)times * o->bytes;
	if (o->rank && o->dim[0] * shards == r->batch && dim[0] > r->samples) {
		bytes = bytes / (size_t)dim[0] * (size_t)r->samples;
		dim[0] = r->samples;
	}
	keep(r, "output/", o->name, o->dtype, o->rank || times == 1 ? o->rank : 1, dim, data,
		bytes);
}

/* A micro-batch's part of output o, which comes as often as the step has them. */
static void keep_part(
	struct result *r, const struct stint_output *o, const void *data, size_t bytes)
{
	const int64_t shards = r->l->model->shards;
	const int at = r->part / r->l->model->noutput;
	if (!r->whole || (!at && !(r->whole[o - r->l->model->output] = arena_alloc(
					   r->a, (size_t)shards, bytes)))) {
		r->failed = true;
		return;
	}
	unsigned char *whole = r->whole[o - r->l->model->output];
	memcpy(whole + (size_t)at * bytes, data, bytes);
	r->part++;
	if (at + 1 == shards)
		keep_output(r, o, shards, whole);
}

static void on_output(void *user, int output, int dtype, const void *data, size_t bytes)
{
	struct result *r = user;
	const struct stint_output *o = &r->l->model->output[output];
	if (dtype != o->dtype) {
		data = widened(r->a, dtype, data, bytes / sizeof(uint16_t));
		bytes = o->bytes;
		r->failed |= !data;
		if (!data)
			return;
	}
	if (r->l->model->train && r->l->model->shards > 1)
		keep_part(r, o, data, bytes);
	else
		keep_output(r, o, 1, data);
}

static void keep_loss(struct result *r, const char *prefix, const char *name, double loss)
{
	const float single = (float)loss;
	const bool wide = r->l->model->loss_dtype == STINT_F64;
	keep(r, prefix, name, wide ? STINT_F64 : STINT_F32, 0, NULL,
		wide ? (const void *)&loss : (const void *)&single,
		wide ? sizeof loss : sizeof single);
}

static enum status step(struct result *r, int64_t valid, struct diag *d)
{
	const struct loaded *l = r->l;
	const struct stint_probe probe = {.user = r, .gradient = on_gradient, .output = on_output};
	int rc = l->model->train && r->samples < r->batch ? l->rows(l->step, r->samples) : 0;
	if (!rc)
		rc = l->model->train ? l->train(l->step, 0, &probe)
				     : l->eval(l->step, valid, &probe);
	if (rc)
		return load_fail(l, rc, "run", d);
	if (l->model->nloss)
		keep_loss(r, "", "loss", l->loss(l->step));
	for (int k = 0; l->model->nloss > 1 && k < l->model->nloss; k++)
		keep_loss(r, "loss/", l->model->loss[k].name, l->loss_part(l->step, k));
	for (int i = 0; i < l->model->nresident; i++) {
		const struct stint_tensor *t = &l->model->resident[i];
		const void *values = t->kind == STINT_BUFFER ? load_values(l, i) : NULL;
		if (values)
			keep(r, "buffer/", t->name, t->dtype, t->rank, t->dim, values, t->bytes);
		else if (t->kind == STINT_BUFFER)
			return load_lost(l, "run", d);
	}
	return r->failed ? diag_nomem(d) : ST_OK;
}

struct run_args {
	const char *dir, *out;
	const struct weights *weights;
	const struct data_options *data;
	const struct arg_list *inputs, *targets;
	int64_t seed;
	bool json;
};

static enum status run_loaded(struct arena *a, const struct loaded *l, const struct run_args *o,
	struct feed *f, struct diag *d)
{
	TRY(feed_open(a, l, o->inputs, o->targets, o->data, f, d));
	if (f->n && (f->samples > f->batch || f->samples < 1))
		return diag_fail(d, ST_INVALID, &(struct where){.file = f->bound[0].data.path},
			"compile with another --batch, or give as many samples",
			"has %lld samples; the step takes %lld", (long long)f->samples,
			(long long)f->batch);
	const int64_t samples = f->n ? f->samples : f->batch;
	int64_t *index = ARENA_ARRAY(a, int64_t, f->batch);
	struct result r = {.a = a,
		.l = l,
		.batch = f->batch,
		.samples = samples,
		.cap = 2 * l->model->nresident + l->model->noutput + 1 + l->model->nloss};
	r.entry = ARENA_ARRAY(a, struct safetensors_entry, r.cap);
	r.whole = ARENA_ARRAY(a, void *, l->model->noutput);
	if (!index || !r.entry)
		return diag_nomem(d);
	for (int64_t i = 0; i < f->batch; i++)
		index[i] = i;
	TRY(feed_batch(f, index, samples, d));
	l->seed(l->step, o->seed);
	TRY(step(&r, f->samples * f->rows, d));
	char message[SAFETENSORS_MESSAGE];
	qsort(r.entry, (size_t)r.n, sizeof *r.entry, by_name);
	if (safetensors_write(o->out, r.entry, r.n, NULL, 0, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	const double loss = l->loss(l->step);
	if (!o->json) {
		safe_put(stdout, o->out);
		printf(": %d tensors; loss %.9g\n", r.n, loss);
		return ST_OK;
	}
	printf("{\"file\":");
	safe_json(stdout, o->out);
	printf(isfinite(loss) ? ",\"tensors\":%d,\"loss\":%.9g}\n"
			      : ",\"tensors\":%d,\"loss\":null}\n",
		r.n, loss);
	return ST_OK;
}

static enum status run(struct arena *a, const struct run_args *o, struct diag *d)
{
	struct loaded l;
	struct feed f = {0};
	if (!o->out)
		return diag_fail(d, ST_USAGE, NULL, NULL, "no -o OUT.safetensors given");
	enum status st = load_open(a, o->dir, o->weights, &l, d);
	if (st == ST_OK)
		st = run_loaded(a, &l, o, &f, d);
	feed_close(&f);
	load_close(&l);
	return st;
}

enum status cmd_run(int argc, const char **argv, struct diag *d)
{
	char *file = NULL, *out = NULL;
	struct weights weights = {0};
	struct data_options data = {0};
	long long seed = 0;
	int json = 0;
	struct arg_list list[2] = {0};
	struct poptOption table[] = {
		{"input", 0, POPT_ARG_STRING, NULL, 1,
			"data for an input, in the model's order or by name: " INPUT_FORMS,
			"[NAME=]FILE"},
		{"target", 0, POPT_ARG_STRING, NULL, ARGS_ANEW | 2,
			"labels or targets of the loss: " TARGET_FORMS, "[NAME=]FILE"},
		{"weights", 0, POPT_ARG_STRING, &file, 0, "start from these values",
			"FILE.safetensors"},
		WEIGHTS_OPTIONS(weights), DATA_OPTIONS(data),
		{"seed", 0, POPT_ARG_LONGLONG, &seed, 0, "of dropout (default 0)", "N"},
		{"output", 'o', POPT_ARG_STRING, &out, 0, "loss, outputs, gradients, statistics",
			"OUT.safetensors"},
		{"json", 0, POPT_ARG_NONE, &json, 0, "print JSON for programs", NULL},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table,
		"DIR --input [NAME=]FILE ... -o OUT.safetensors", 1, 1, list, &args, d);
	if (st == ST_OK && !args.help) {
		weights.path = file;
		const struct run_args o = {args.positional[0], out, &weights, &data, &list[0],
			&list[1], seed, json != 0};
		st = run(a, &o, d);
	}
	data_options_free(&data);
	free(file);
	free(out);
	arena_free(a);
	return st;
}
