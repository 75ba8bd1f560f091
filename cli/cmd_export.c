/* stint export DIR [--checkpoint FOLDER] -o trained.onnx */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/links.h"
#include "api/safe_put.h"
#include "api/weights.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "import/import.h"
#include "runtime/finite.h"
#include "runtime/safetensors.h"
#include "runtime/stint_rt.h"

struct values {
	struct arena *a;
	struct safetensors *file;
	struct linked_values linked;
	int average; /* enum weights_average */
	int replaced;
	bool failed;
};

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

/* The trained value of an initializer as floats, or NULL. */
static const float *lookup(void *user, const char *name, int64_t numel)
{
	struct values *v = user;
	const struct safetensors_entry *e = weights_find(
		v->a, v->file, name, v->average, &v->failed);
	if (!e)
		return linked(v, name, numel);
	if (e->dtype != STINT_F32 && e->dtype != STINT_F64)
		return NULL;
	size_t width = e->dtype == STINT_F32 ? 4 : 8;
	if (e->bytes != (size_t)numel * width)
		return NULL;
	v->replaced++;
	if (width == 4)
		return e->data;
	float *out = ARENA_ARRAY(v->a, float, numel);
	v->failed |= !out;
	for (int64_t i = 0; out && i < numel; i++)
		out[i] = (float)((const double *)e->data)[i];
	return out;
}

/* Parameters and running statistics: what an exported model takes. */
static bool exported(const char *name)
{
	return strncmp(name, "state/", 6) != 0 && strncmp(name, "constant/", 9) != 0;
}

/* Of an entry's values as floats. */
static struct finite_count count(const struct safetensors_entry *e)
{
	struct finite_count c = {0};
	finite_count(e->dtype, e->data, e->bytes, &c);
	for (size_t i = 0; e->dtype == STINT_F64 && i < e->bytes / sizeof(double); i++) {
		const double x = ((const double *)e->data)[i];
		c.inf += isfinite(x) && isinf((float)x);
	}
	return c;
}

/* NaN, and infinities that the model did not begin with (masks of attention are made of them), are
 * told tensor by tensor. */
static enum status check_finite(
	const char *path, struct values *v, const struct safetensors *begun, struct diag *d)
{
	enum { TOLD = 8 };
	int bad = 0;
	for (int i = 0; i < safetensors_count(v->file); i++) {
		const struct safetensors_entry *e = safetensors_at(v->file, i);
		const char *of = weights_averaged(e->name, v->average), *name = of ? of : e->name;
		const struct safetensors_entry *first = safetensors_find(begun, name);
		const struct finite_count c = count(e),
					  was = first ? count(first) : (struct finite_count){0};
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
	const char *dir, *folder, *out;
	int allow, json, average;
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
	const enum status st = check_finite(path, v, begun, d);
	safetensors_close(begun);
	return st;
}

static enum status write_model(struct arena *a, const struct export_args *o, struct diag *d)
{
	struct values v = {.a = a, .average = o->average};
	char message[SAFETENSORS_MESSAGE];
	const char *path;
	char *model = arena_printf(a, "%s/model.onnx", o->dir);
	char *weights = arena_printf(a, "%s/weights.safetensors", o->dir);
	if (!model || !weights)
		return diag_nomem(d);
	if (!o->out)
		return diag_fail(d, ST_USAGE, NULL, NULL, "no -o FILE.onnx given");
	if (o->average && !o->folder)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--%s needs --checkpoint FOLDER: averages are made in training",
			o->average == WEIGHTS_EMA ? "ema" : "swa");
	path = weights;
	if (o->folder)
		TRY(weights_of_checkpoint(a, o->folder, &path, d));
	if (safetensors_open(&v.file, path, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	enum status st = check_values(o, path, &v, weights, d);
	if (st == ST_OK)
		st = links_read(a, weights, true, &v.linked, d);
	if (st == ST_OK)
		st = export_onnx(model, o->out, lookup, &v, d);
	safetensors_close(v.file);
	if (st == ST_OK && v.failed)
		st = diag_nomem(d);
	if (st == ST_OK && o->json) {
		printf("{\"file\":");
		safe_json(stdout, o->out);
		printf(",\"initializers\":%d,\"from\":", v.replaced);
		safe_json(stdout, path);
		printf("}\n");
	} else if (st == ST_OK) {
		printf("%s: %d initializers from %s%s\n", o->out, v.replaced, path,
			o->average ? ", averages" : "");
	}
	return st;
}

enum status cmd_export(int argc, const char **argv, struct diag *d)
{
	char *folder = NULL, *out = NULL;
	struct export_args o = {0};
	struct poptOption table[] = {{"checkpoint", 0, POPT_ARG_STRING, &folder, 0,
					     "take the newest checkpoint's values", "FOLDER"},
		AVERAGE_OPTIONS(o.average),
		{"allow-nonfinite", 0, POPT_ARG_NONE, &o.allow, 0, "export NaN and infinities, too",
			NULL},
		{"output", 'o', POPT_ARG_STRING, &out, 0, "the model to write", "FILE.onnx"},
		{"json", 0, POPT_ARG_NONE, &o.json, 0, "print JSON for programs", NULL},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table, "DIR [--checkpoint FOLDER] -o FILE.onnx",
		1, 1, NULL, &args, d);
	if (st == ST_OK && !args.help) {
		o.dir = args.positional[0];
		o.folder = folder;
		o.out = out;
		st = write_model(a, &o, d);
	}
	free(folder);
	free(out);
	arena_free(a);
	return st;
}
