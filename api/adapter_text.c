#include "api/adapter_text.h"

#include <jansson.h>
#include <string.h>

#include "planner/problem/json_text.h"

static const char *const kinds[] = {[ADAPTER_NONE] = "none",
	[ADAPTER_LINEAR] = "linear",
	[ADAPTER_CONV] = "conv",
	[ADAPTER_EMBEDDING] = "embedding"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- Written --- */

static void print_adapter(const struct adapter *x, struct text *out)
{
	text_puts(out, "{\"module\":");
	json_text_string(out, x->module);
	text_puts(out, ",\"weight\":");
	json_text_string(out, x->weight->name);
	text_add(out, ",\"kind\":\"%s\",\"turned\":%s,\"r\":%lld,\"alpha\":", kinds[x->kind],
		x->turned ? "true" : "false", (long long)x->spec->rank);
	json_text_double(out, x->spec->alpha);
	text_puts(out, ",\"dropout\":");
	json_text_double(out, x->spec->dropout);
	text_add(out, ",\"rslora\":%s%s}", x->spec->rslora ? "true" : "false",
		x->spec->dora ? ",\"dora\":true" : "");
}

void adapters_print(const struct pipeline *p, struct text *out)
{
	const struct graph *g = p->imported;
	const char *comma = "";
	text_add(
		out, "{\"format\":\"stint-adapter-1\",\"base\":\"%s\",\"trained\":[", p->base_hash);
	for (int i = 0; i < g->ntensor; i++)
		if (g->tensor[i]->role == TR_PARAMETER && g->tensor[i]->from_model) {
			text_puts(out, comma);
			json_text_string(out, g->tensor[i]->name);
			comma = ",";
		}
	text_puts(out, "],\n\"adapters\":[\n");
	for (int i = 0; i < p->nadapter; i++) {
		print_adapter(&p->adapter[i], out);
		text_puts(out, i + 1 < p->nadapter ? ",\n" : "\n");
	}
	text_puts(out, "]}\n");
}

/* --- Read --- */

static bool read_adapter(struct arena *a, const json_t *o, struct adapter_read *x)
{
	const char *module = json_string_value(json_object_get(o, "module"));
	const char *weight = json_string_value(json_object_get(o, "weight"));
	const char *kind = json_string_value(json_object_get(o, "kind"));
	for (int k = 1; kind && k < KINDS; k++)
		if (!strcmp(kinds[k], kind))
			x->kind = (enum adapter_kind)k;
	x->module = module ? arena_strdup(a, module) : NULL;
	x->weight = weight ? arena_strdup(a, weight) : NULL;
	x->turned = json_is_true(json_object_get(o, "turned"));
	x->spec = (struct adapter_spec){.rank = json_integer_value(json_object_get(o, "r")),
		.alpha = json_number_value(json_object_get(o, "alpha")),
		.dropout = json_number_value(json_object_get(o, "dropout")),
		.rslora = json_is_true(json_object_get(o, "rslora")),
		.dora = json_is_true(json_object_get(o, "dora"))};
	return x->module && x->weight && x->kind && x->spec.rank > 0 && x->spec.alpha > 0;
}

static bool read_all(struct arena *a, const json_t *json, struct adapters_read *out)
{
	const char *format = json_string_value(json_object_get(json, "format"));
	const json_t *list = json_object_get(json, "adapters"),
		     *trained = json_object_get(json, "trained");
	out->n = (int)json_array_size(list);
	out->ntrained = (int)json_array_size(trained);
	out->adapter = ARENA_ARRAY(a, struct adapter_read, out->n);
	out->trained = ARENA_ARRAY(a, const char *, out->ntrained);
	bool ok = format && !strcmp(format, "stint-adapter-1") && out->n > 0 && out->adapter &&
		  out->trained;
	for (int i = 0; ok && i < out->n; i++)
		ok = read_adapter(a, json_array_get(list, (size_t)i), &out->adapter[i]);
	for (int i = 0; ok && i < out->ntrained; i++) {
		const char *name = json_string_value(json_array_get(trained, (size_t)i));
		out->trained[i] = name ? arena_strdup(a, name) : NULL;
		ok = out->trained[i] != NULL;
	}
	return ok;
}

enum status adapters_read(
	struct arena *a, const char *path, struct adapters_read *out, struct diag *d)
{
	char *text;
	size_t length;
	*out = (struct adapters_read){0};
	TRY(file_read(a, path, &text, &length, d));
	json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	const bool ok = read_all(a, json, out);
	json_decref(json);
	return ok ? ST_OK
		  : diag_fail(d, ST_INVALID, &(struct where){.file = path},
			    "compile the step again", "is no stint-adapter-1");
}
