/* stint export DIR [--checkpoint FOLDER] [--merge] -o trained.onnx, or --adapter FOLDER */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "api/safe_put.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/export_adapter.h"
#include "cli/training_note.h"
#include "import/import.h"
#include "runtime/finite.h"
#include "runtime/safetensors.h"
#include "runtime/stint_rt.h"

const float *values_floats(struct values *v, const struct safetensors_entry *e)
{
	if (e->dtype == STINT_F32)
		return e->data;
	if (e->dtype != STINT_F64)
		return NULL;
	const int64_t numel = (int64_t)(e->bytes / sizeof(double));
	float *out = ARENA_ARRAY(v->a, float, numel);
	v->failed |= !out;
	for (int64_t i = 0; out && i < numel; i++)
		out[i] = (float)((const double *)e->data)[i];
	return out;
}

const struct safetensors_entry *values_find(struct values *v, const char *name)
{
	return weights_find(v->a, v->file, name, v->average, &v->failed);
}

/* A frozen one, where the model had it. */
static const float *linked(const struct values *v, const char *name, int64_t numel)
{
	for (int i = 0; i < v->linked.n; i++) {
		const struct linked_value *l = &v->linked.item[i];
		if (!strcmp(l->name, name) && l->bytes == (size_t)numel * sizeof(float))
			return l->data;
	}
	return NULL;
}

/* The trained value of an initializer, or NULL. */
static const void *lookup(void *user, const char *name, int64_t numel, enum dtype *type)
{
	struct values *v = user;
	const struct safetensors_entry *e = values_find(v, name);
	if (!e)
		return linked(v, name, numel);
	if ((e->dtype != STINT_F32 && e->dtype != STINT_F64) ||
		e->bytes != (size_t)numel * (e->dtype == STINT_F32 ? 4 : 8))
		return NULL;
	v->replaced++;
	*type = e->dtype == STINT_F64 ? DT_F64 : DT_F32;
	return e->data;
}

/* Parameters and running statistics: what an exported model takes. */
static bool exported(const char *name)
{
	return strncmp(name, "state/", 6) != 0 && strncmp(name, "constant/", 9) != 0;
}

/* Of an entry's values; `narrow`: as floats. */
static struct finite_count count(const struct safetensors_entry *e, bool narrow)
{
	struct finite_count c = {0};
	finite_count(e->dtype, e->data, e->bytes, &c);
	for (size_t i = 0; narrow && e->dtype == STINT_F64 && i < e->bytes / sizeof(double); i++) {
		const double x = ((const double *)e->data)[i];
		c.inf += isfinite(x) && isinf((float)x);
	}
	return c;
}

/* NaN, and infinities that the model did not begin with (masks of attention are made of them), are
 * told tensor by tensor. */
static enum status check_finite(const char *path, struct values *v, const struct safetensors *begun,
	bool narrow, struct diag *d)
{
	enum { TOLD = 8 };
	int bad = 0;
	for (int i = 0; i < safetensors_count(v->file); i++) {
		const struct safetensors_entry *e = safetensors_at(v->file, i);
		const char *of = weights_averaged(e->name, v->average), *name = of ? of : e->name;
		const struct safetensors_entry *first = safetensors_find(begun, name);
		const struct finite_count c = count(e, narrow),
					  was = first ? count(first, narrow)
						      : (struct finite_count){0};
		if (!exported(name) ||
			weights_find(v->a, v->file, name, v->average, &v->failed) != e ||
			(!c.nan && c.inf <= was.inf))
			continue;
		const struct where at = {.file = path, .node = e->name, .op = "tensor"};
		if (bad++ < TOLD)
			diag_fail(d, ST_INVALID, &at, NULL,
				"%" PRId64 " of its values are NaN, %" PRId64 " infinite", c.nan,
				c.inf);
	}
	if (!bad)
		return ST_OK;
	return diag_fail(d, ST_INVALID, &(struct where){.file = path},
		"--allow-nonfinite exports them",
		"%d tensor%s hold%s values that are not finite: nothing exported", bad,
		bad == 1 ? "" : "s", bad == 1 ? "s" : "");
}

struct export_args {
	const char *dir, *folder, *out, *adapter;
	int allow, json, average, merge;
};

static enum status check_values(const struct export_args *o, const char *path, struct values *v,
	const char *weights, struct diag *d)
{
	struct safetensors *begun;
	char message[SAFETENSORS_MESSAGE];
	TRY(weights_check_average(v->file, path, v->average, d));
	if (o->allow)
		return ST_OK;
	if (safetensors_open(&begun, weights, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	const enum status st = check_finite(path, v, begun, o->adapter, d);
	safetensors_close(begun);
	return st;
}

/* What is written goes with what the step trains. */
static enum status check_args(
	struct arena *a, const struct export_args *o, struct values *v, struct diag *d)
{
	const char *path = arena_printf(a, "%s/adapter.json", o->dir);
	if (!path)
		return diag_nomem(d);
	if (!o->out && !o->adapter)
		return diag_fail(d, ST_USAGE, NULL, NULL, "no -o FILE.onnx given");
	const bool adapted = access(path, F_OK) == 0;
	if (!adapted && (o->adapter || o->merge))
		return diag_fail(d, ST_USAGE, &(struct where){.file = o->dir},
			"compile with --lora", "--%s: has no adapters",
			o->adapter ? "adapter" : "merge");
	if (adapted && o->out && !o->merge)
		return diag_fail(d, ST_USAGE, &(struct where){.file = o->dir},
			"--merge adds them to the weights; --adapter FOLDER writes them alone",
			"trains adapters, which the model has no place for");
	return adapted ? adapters_read(a, path, &v->adapters, d) : ST_OK;
}

static enum status write_all(
	struct arena *a, const struct export_args *o, struct values *v, struct diag *d)
{
	const char *model = arena_printf(a, "%s/model.onnx", o->dir);
	enum status st = model ? ST_OK : diag_nomem(d);
	if (st == ST_OK && o->merge)
		st = adapters_check(v, d);
	if (st == ST_OK && o->out)
		st = export_onnx(model, o->out,
			&(struct export_values){lookup, o->merge ? &adapter_merge : NULL,
				o->merge ? adapters_merged : NULL, v->note, v, o->allow},
			d);
	if (st == ST_OK && o->adapter)
		st = adapter_write(v, o->dir, o->adapter, d);
	return st == ST_OK && v->failed ? diag_nomem(d) : st;
}

static void tell_one(const char *to, int n, const char *what, const char *from, bool average)
{
	safe_put(stdout, to);
	printf(": %d %s from ", n, what);
	safe_put(stdout, from);
	puts(average ? ", averages" : "");
}

static void tell(const struct export_args *o, const struct values *v, const char *path)
{
	if (!o->json && o->out)
		tell_one(o->out, v->replaced, "initializers", path, o->average);
	if (!o->json && o->adapter)
		tell_one(o->adapter, v->adapters.n, "adapters", path, o->average);
	if (!o->json)
		return;
	printf("{");
	if (o->out) {
		printf("\"file\":");
		safe_json(stdout, o->out);
		printf(",\"initializers\":%d,", v->replaced);
	}
	if (o->adapter) {
		printf("\"adapter\":");
		safe_json(stdout, o->adapter);
		printf(",\"adapters\":%d,", v->adapters.n);
	}
	printf("\"from\":");
	safe_json(stdout, path);
	printf("}\n");
}

/* The checkpoint whose values are exported; *path stays where nothing has been trained. */
static enum status choose(
	struct arena *a, const struct export_args *o, const char **path, struct diag *d)
{
	const char *trained = NULL;
	if (o->folder)
		return weights_of_checkpoint(a, o->folder, path, d);
	TRY(weights_trained(a, o->dir, &trained, d));
	if (!trained && o->average)
		return diag_fail(d, ST_USAGE, &(struct where){.file = o->dir}, "train first",
			"--%s wants a checkpoint: averages are made in training",
			o->average == WEIGHTS_EMA ? "ema" : "swa");
	*path = trained ? trained : *path;
	return ST_OK;
}

static enum status write_model(struct arena *a, const struct export_args *o, struct diag *d)
{
	struct export_note *note = NULL;
	struct values v = {.a = a, .average = o->average};
	char message[SAFETENSORS_MESSAGE];
	char *weights = arena_printf(a, "%s/weights.safetensors", o->dir);
	const char *path = weights;
	if (!weights)
		return diag_nomem(d);
	TRY(check_args(a, o, &v, d));
	TRY(choose(a, o, &path, d));
	if (safetensors_open(&v.file, path, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	enum status st = check_values(o, path, &v, weights, d);
	if (st == ST_OK)
		st = note_of_model(a, path, &note, d);
	v.note = note;
	if (st == ST_OK)
		st = links_read(a, weights, true, &v.linked, d);
	if (st == ST_OK)
		st = write_all(a, o, &v, d);
	safetensors_close(v.file);
	if (st == ST_OK)
		tell(o, &v, path);
	return st;
}

enum status cmd_export(int argc, const char **argv, struct diag *d)
{
	char *folder = NULL, *out = NULL, *adapter = NULL;
	struct export_args o = {0};
	struct poptOption table[] = {
		{"checkpoint", 0, POPT_ARG_STRING, &folder, 0,
			"take the newest checkpoint's values, or this file's (default: "
			"DIR/checkpoints)",
			"FOLDER"},
		AVERAGE_OPTIONS(o.average),
		{"allow-nonfinite", 0, POPT_ARG_NONE, &o.allow, 0, "export NaN and infinities, too",
			NULL},
		{"output", 'o', POPT_ARG_STRING, &out, 0, "the model to write", "FILE.onnx"},
		{"merge", 0, POPT_ARG_NONE, &o.merge, 0,
			"adapters (compile --lora) are added to its weights", NULL},
		{"adapter", 0, POPT_ARG_STRING, &adapter, 0,
			"write the adapters alone, in PEFT's form", "FOLDER"},
		{"json", 0, POPT_ARG_NONE, &o.json, 0, "print JSON for programs", NULL},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table,
		"DIR [--checkpoint FOLDER] -o FILE.onnx | --adapter FOLDER", 1, 1, NULL, &args, d);
	if (st == ST_OK && !args.help) {
		o.dir = args.positional[0];
		o.folder = folder;
		o.out = out;
		o.adapter = adapter;
		st = write_model(a, &o, d);
	}
	free(folder);
	free(out);
	free(adapter);
	arena_free(a);
	return st;
}
