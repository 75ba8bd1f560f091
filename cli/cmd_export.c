/* stint export DIR [--checkpoint FOLDER] -o trained.onnx */
#include <string.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "import/import.h"
#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"
#include "runtime/stint_rt.h"

struct values {
	struct arena *a;
	struct safetensors *file;
	int replaced;
	bool failed;
};

/* The trained value of an initializer as floats, or NULL. */
static const float *lookup(void *user, const char *name, int64_t numel)
{
	struct values *v = user;
	const struct safetensors_entry *e = safetensors_find(v->file, name);
	if (!e || (e->dtype != STINT_F32 && e->dtype != STINT_F64))
		return NULL;
	size_t width = e->dtype == STINT_F32 ? 4 : 8;
	if (e->bytes != (size_t)numel * width)
		return NULL;
	float *out = ARENA_ARRAY(v->a, float, numel);
	if (!out) {
		v->failed = true;
		return NULL;
	}
	for (int64_t i = 0; i < numel; i++)
		out[i] = width == 4 ? ((const float *)e->data)[i]
				    : (float)((const double *)e->data)[i];
	v->replaced++;
	return out;
}

static enum status export(
	struct arena *a, const char *dir, const char *folder, const char *out, struct diag *d) {
	struct values v = {.a = a}; char newest[512] = "", message[256];
	char *model = arena_printf(a, "%s/model.onnx", dir);
	char *weights = arena_printf(a, "%s/weights.safetensors", dir);
	if (!model || !weights) return diag_nomem(d);
	if (!out) return diag_fail(d, ST_USAGE, NULL, NULL, "no -o FILE.onnx given");
	if (folder && checkpoint_newest(folder, newest, message)) return diag_fail(
		d, ST_IO, NULL, NULL, "%s", message);
	if (folder && !*newest) return diag_fail(d, ST_IO, &(struct where){.file = folder},
		"train with --checkpoint FOLDER first", "holds no checkpoint");
	if (safetensors_open(&v.file, folder ? newest : weights, message)) return diag_fail(
		d, ST_IO, NULL, NULL, "%s", message);
	enum status st = export_onnx(model, out, lookup, &v, d);
	safetensors_close(v.file);
	if (st == ST_OK && v.failed) st = diag_nomem(d);
	if (st == ST_OK)
		printf("%s: %d initializers from %s\n", out, v.replaced, folder ? newest : weights);
	return st;
}

enum status cmd_export(int argc, const char **argv, struct diag *d)
{
	char *folder = NULL, *out = NULL;
	struct poptOption table[] = {{"checkpoint", 0, POPT_ARG_STRING, &folder, 0,
					     "take the newest checkpoint's values", "FOLDER"},
		{"output", 'o', POPT_ARG_STRING, &out, 0, "the model to write", "FILE.onnx"},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table, "DIR [--checkpoint FOLDER] -o FILE.onnx",
		1, 1, NULL, &args, d);
	if (st == ST_OK && !args.help)
		st = export(a, args.positional[0], folder, out, d);
	free(folder);
	free(out);
	arena_free(a);
	return st;
}
