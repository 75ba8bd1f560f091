/* PEFT's folders, read. */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <string.h>

#include "compile/adapters.h"
#include "runtime/safetensors.h"

struct reading {
	struct arena *a;
	struct adapter_folder *out;
	const char *config; /* its path */
	json_t *json;
	struct diag *d;
};

static enum status not_read(const struct reading *r, const char *key, const char *what)
{
	return diag_fail(r->d, ST_INVALID, &(struct where){.file = r->config},
		"LoRA of PEFT's plain kind is read", "\"%s\" %s", key, what);
}

/* NULL where it is not there; no JSON is a failure. */
static enum status load(const struct reading *r, const char *path, json_t **out)
{
	json_error_t error;
	char *text;
	size_t length;
	TRY(file_read(r->a, path, &text, &length, r->d));
	*out = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	return json_is_object(*out) ? ST_OK
				    : diag_fail(r->d, ST_INVALID, &(struct where){.file = path},
					      NULL, "is no JSON object: %s", error.text);
}

/* --- What the config says --- */

/* `\d` and the like of Python's that POSIX does not have. */
static bool is_foreign(const char *key)
{
	for (const char *c = strchr(key, '\\'); c && c[1]; c = strchr(c + 2, '\\'))
		if (isalnum((unsigned char)c[1]))
			return true;
	return false;
}

/* Does a key of a pattern match a module, as PEFT matches: to its end, from a dot or its start? */
static enum status matches(const struct reading *r, const char *key, const char *module, bool *out)
{
	regex_t re;
	const char *text = arena_printf(r->a, "^(.*\\.)?(%s)$", key);
	if (!text)
		return diag_nomem(r->d);
	if (is_foreign(key) || regcomp(&re, text, REG_EXTENDED | REG_NOSUB) != 0)
		return not_read(r, key, "is no regular expression as POSIX has them");
	*out = regexec(&re, module, 0, NULL, 0) == 0;
	regfree(&re);
	return ST_OK;
}

/* A module's value: that of the first key that matches. */
static enum status of_module(
	const struct reading *r, const char *pattern, const char *module, double *value)
{
	const char *key;
	json_t *v;
	json_object_foreach(json_object_get(r->json, pattern), key, v)
	{
		bool found = false;
		TRY(matches(r, key, module, &found));
		if (!found)
			continue;
		*value = json_number_value(v);
		break;
	}
	return ST_OK;
}

static bool is_pattern(json_t *x)
{
	const char *key;
	json_t *value;
	json_object_foreach(x, key, value) if (!json_is_number(value)) return false;
	return json_is_object(x);
}

static enum status check_types(const struct reading *r)
{
	static const char *const truths[] = {"use_rslora", "use_dora", "lora_bias", "use_qalora"},
				 *const patterns[] = {"alpha_pattern", "rank_pattern"};
	for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
		const json_t *x = json_object_get(r->json, truths[i]);
		if (x && !json_is_null(x) && !json_is_boolean(x))
			return not_read(r, truths[i], "is neither true nor false");
	}
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		json_t *x = json_object_get(r->json, patterns[i]);
		if (x && !json_is_null(x) && !is_pattern(x))
			return not_read(r, patterns[i], "is no object of numbers");
	}
	const json_t *dropout = json_object_get(r->json, "lora_dropout");
	return !dropout || json_is_number(dropout) ? ST_OK
						   : not_read(r, "lora_dropout", "is no number");
}

static enum status check_kind(const struct reading *r)
{
	static const char *const off[] = {"lora_bias", "use_qalora"};
	const char *type = json_string_value(json_object_get(r->json, "peft_type"));
	const json_t *bias = json_object_get(r->json, "bias");
	if (!type || strcmp(type, "LORA") != 0)
		return not_read(r, "peft_type", "is not \"LORA\"");
	if (bias && !json_is_null(bias) &&
		!(json_is_string(bias) && !strcmp(json_string_value(bias), "none")))
		return not_read(r, "bias", "is not \"none\"");
	TRY(check_types(r));
	for (size_t i = 0; i < sizeof off / sizeof *off; i++)
		if (json_is_true(json_object_get(r->json, off[i])))
			return not_read(r, off[i], "is true");
	return ST_OK;
}

/* --- What there is of tensors --- */

static enum status add_spec(struct reading *r, const char *module, int64_t rank)
{
	if (rank < 1)
		return diag_fail(r->d, ST_INVALID,
			&(struct where){.file = r->out->file, .node = module, .op = "module"}, NULL,
			"has an adapter of rank 0");
	const json_t *rslora = json_object_get(r->json, "use_rslora");
	double alpha = json_number_value(json_object_get(r->json, "lora_alpha"));
	TRY(of_module(r, "alpha_pattern", module, &alpha));
	struct adapter_spec *s = &r->out->spec[r->out->nspec++];
	*s = (struct adapter_spec){.text = r->out->path,
		.module = module,
		.rank = rank,
		.rslora = json_is_true(rslora),
		.dora = json_is_true(json_object_get(r->json, "use_dora")),
		.dropout = json_number_value(json_object_get(r->json, "lora_dropout")),
		.alpha = alpha};
	if (!(s->alpha > 0) || isinf(s->alpha))
		return not_read(r, "lora_alpha", "is no number above 0");
	if (!(s->dropout >= 0 && s->dropout < 1))
		return not_read(r, "lora_dropout", "is not from 0 to below 1");
	return ST_OK;
}

/* What an entry is: an A begins an adapter, a B, a vector of lengths or the base's own weight
 * belongs to one, all else is a parameter. */
static enum status take_entry(struct reading *r, const struct safetensors_entry *e, int *ntrain)
{
	static const char *const end[] = {".lora_A.weight", ".lora_embedding_A", ".lora_B.weight",
		".lora_embedding_B", ".lora_magnitude_vector", ".base_layer.weight"};
	const size_t prefix = sizeof ADAPTER_PREFIX - 1, length = strlen(e->name);
	if (length <= prefix || strncmp(e->name, ADAPTER_PREFIX, prefix) != 0)
		return diag_fail(r->d, ST_INVALID,
			&(struct where){.file = r->out->file, .node = e->name, .op = "tensor"},
			NULL, "has no name that begins with " ADAPTER_PREFIX);
	for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
		const size_t n = strlen(end[i]);
		if (length < prefix + n || strcmp(e->name + length - n, end[i]) != 0)
			continue;
		if (i >= 2)
			return ST_OK;
		const char *module = arena_strndup(r->a, e->name + prefix, length - prefix - n);
		return module ? add_spec(r, module, e->rank ? e->dim[0] : 0) : diag_nomem(r->d);
	}
	const char *name = arena_strdup(r->a, e->name + prefix);
	r->out->train[(*ntrain)++] = name;
	return name ? ST_OK : diag_nomem(r->d);
}

static enum status take_entries(struct reading *r)
{
	const int n = safetensors_count(r->out->tensors);
	int ntrain = 0;
	r->out->spec = ARENA_ARRAY(r->a, struct adapter_spec, n);
	r->out->train = ARENA_ARRAY(r->a, const char *, n + 1);
	if (!r->out->spec || !r->out->train)
		return diag_nomem(r->d);
	for (int i = 0; i < n; i++)
		TRY(take_entry(r, safetensors_at(r->out->tensors, i), &ntrain));
	if (!r->out->nspec)
		return diag_fail(r->d, ST_INVALID, &(struct where){.file = r->out->file}, NULL,
			"holds no adapter");
	return ST_OK;
}

/* stint's own note of the base, where there is one. */
static enum status read_base(struct reading *r)
{
	struct diag quiet = {0};
	struct reading other = *r;
	json_t *json = NULL;
	const char *path = arena_printf(r->a, "%s/stint_adapter.json", r->out->path);
	other.d = &quiet;
	if (!path)
		return diag_nomem(r->d);
	if (load(&other, path, &json) == ST_OK) {
		const char *base = json_string_value(json_object_get(json, "base"));
		r->out->base = base ? arena_strdup(r->a, base) : NULL;
	}
	json_decref(json);
	return quiet.worst == ST_INVALID
		       ? diag_fail(r->d, ST_INVALID, &(struct where){.file = path}, NULL,
				 "is no JSON object")
		       : ST_OK;
}

static enum status read(struct reading *r)
{
	char message[SAFETENSORS_MESSAGE];
	TRY(load(r, r->config, &r->json));
	TRY(check_kind(r));
	TRY(read_base(r));
	if (safetensors_open(&r->out->tensors, r->out->file, message))
		return diag_fail(r->d, ST_IO, NULL, NULL, "%s", message);
	return take_entries(r);
}

enum status adapter_folder_read(
	struct arena *a, const char *path, struct adapter_folder *out, struct diag *d)
{
	*out = (struct adapter_folder){
		.path = path, .file = arena_printf(a, "%s/adapter_model.safetensors", path)};
	struct reading r = {a, out, arena_printf(a, "%s/adapter_config.json", path), NULL, d};
	if (!out->file || !r.config)
		return diag_nomem(d);
	const enum status st = read(&r);
	json_decref(r.json);
	if (st != ST_OK && out->tensors) {
		safetensors_close(out->tensors);
		out->tensors = NULL;
	}
	return st;
}
