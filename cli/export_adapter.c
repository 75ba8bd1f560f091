/* Adapters as PEFT saves them, and added to their weights. */
#include "cli/export_adapter.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "compile/adapters.h"
#include "planner/problem/json_text.h"
#include "runtime/stint_rt.h"

/* A, B, and with dora the rows' lengths. */
static int parts_of(const struct adapter_read *x)
{
	return x->spec.dora ? 3 : 2;
}

/* Their ends of names, by kind. */
static const char *part_of(enum adapter_kind kind, int which)
{
	static const char *const plain[] = {"lora_A.weight", "lora_B.weight",
		"lora_magnitude_vector"},
				 *const embedding[] = {"lora_embedding_A", "lora_embedding_B",
					 "lora_magnitude_vector"};
	return (kind == ADAPTER_EMBEDDING ? embedding : plain)[which];
}

/* NULL: no memory. */
static const char *name_of(struct values *v, const struct adapter_read *x, int which)
{
	const char *name = arena_printf(
		v->a, ADAPTER_PREFIX "%s.%s", x->module, part_of(x->kind, which));
	v->failed |= !name;
	return name;
}

static const struct safetensors_entry *entry_of(
	struct values *v, const struct adapter_read *x, int which)
{
	const char *name = name_of(v, x, which);
	return name ? values_find(v, name) : NULL;
}

enum status adapters_check(struct values *v, struct diag *d)
{
	for (int i = 0; i < v->adapters.n; i++)
		for (int which = 0; which < parts_of(&v->adapters.adapter[i]); which++) {
			const struct adapter_read *x = &v->adapters.adapter[i];
			const struct safetensors_entry *e = entry_of(v, x, which);
			if (!e || (which < 2 && (e->rank < 2 || e->dim[which] != x->spec.rank)))
				return v->failed ? diag_nomem(d)
						 : diag_fail(d, ST_INVALID,
							   &(struct where){.node = x->module},
							   "is it a checkpoint of this step?",
							   "its adapter is not among the values");
		}
	return ST_OK;
}

/* --- Merged --- */

/* B A times the scale, [rows, columns], each sum in double precision; `turned`: columns first. */
static const float *product(struct values *v, const struct adapter_read *x, const float *a,
	const float *b, int64_t rows, int64_t columns, bool turned)
{
	const int64_t r = x->spec.rank;
	const double scale = adapter_scale(&x->spec);
	float *out = ARENA_ARRAY(v->a, float, rows *columns);
	double *row = ARENA_ARRAY(v->a, double, columns);
	v->failed |= !out || !row;
	for (int64_t i = 0; !v->failed && i < rows; i++) {
		memset(row, 0, (size_t)columns * sizeof *row);
		for (int64_t k = 0; k < r; k++)
			for (int64_t j = 0; j < columns; j++)
				row[j] += (double)b[i * r + k] * (double)a[k * columns + j];
		for (int64_t j = 0; j < columns; j++)
			out[turned ? j * rows + i : i * columns + j] = (float)(scale * row[j]);
	}
	return v->failed ? NULL : out;
}

/* The one beside a weight; NULL: it has none. */
static struct adapter_read *adapter_of(const struct values *v, const char *name)
{
	struct adapter_read *x = v->adapters.adapter, *end = x + v->adapters.n;
	while (x < end && strcmp(x->weight, name) != 0)
		x++;
	return x == end ? NULL : x;
}

/* Its weight's second axis is the outputs. */
static bool is_turned(const struct adapter_read *x)
{
	return x->kind == ADAPTER_EMBEDDING || (x->kind == ADAPTER_LINEAR && !x->turned);
}

static const float *delta(void *user, const char *name, int rank, const int64_t *dim, int64_t numel)
{
	struct values *v = user;
	struct adapter_read *x = adapter_of(v, name);
	if (!x || rank < 2)
		return NULL;
	const bool turned = is_turned(x);
	const int64_t rows = turned ? dim[1] : dim[0], columns = rows ? numel / rows : 0;
	const struct safetensors_entry *a = entry_of(v, x, 0), *b = entry_of(v, x, 1);
	const float *va = a ? values_floats(v, a) : NULL, *vb = b ? values_floats(v, b) : NULL;
	const size_t each = a && a->dtype == STINT_F64 ? 8 : 4;
	if (!va || !vb || a->bytes != (size_t)(x->spec.rank * columns) * each ||
		b->bytes != (size_t)(x->spec.rank * rows) * each)
		return NULL;
	v->replaced++;
	x->merged = true;
	return product(v, x, va, vb, rows, columns, turned);
}

/* With dora each output's row gets the length that was trained. */
static void settle(void *user, const char *name, const int64_t *dim, float *sum)
{
	struct values *v = user;
	const struct adapter_read *x = adapter_of(v, name);
	const struct safetensors_entry *e = x->spec.dora ? entry_of(v, x, 2) : NULL;
	const float *length = e ? values_floats(v, e) : NULL;
	const bool turned = is_turned(x);
	const struct safetensors_entry *a = length ? entry_of(v, x, 0) : NULL;
	const int64_t rows = dim[turned];
	const int64_t columns = a ? (int64_t)a->bytes / safetensors_width(a->dtype) / x->spec.rank
				  : 0;
	const int64_t step = turned ? rows : 1, next = turned ? 1 : columns;
	for (int64_t i = 0; length && i < rows; i++) {
		double squares = 0;
		for (int64_t j = 0; j < columns; j++)
			squares += (double)sum[i * next + j * step] *
				   (double)sum[i * next + j * step];
		for (int64_t j = 0; j < columns; j++)
			sum[i * next + j * step] *= (float)((double)length[i] / sqrt(squares));
	}
}

const struct export_merge adapter_merge = {delta, settle};

enum status adapters_merged(void *user, struct diag *d)
{
	const struct values *v = user;
	for (int i = 0; i < v->adapters.n && !v->failed; i++)
		if (!v->adapters.adapter[i].merged)
			return diag_fail(d, ST_INVALID,
				&(struct where){.node = v->adapters.adapter[i].module},
				"compile the step again",
				"the model has no weight '%s' of its adapter's sizes",
				v->adapters.adapter[i].weight);
	return v->failed ? diag_nomem(d) : ST_OK;
}

/* --- In PEFT's form --- */

static enum status put(struct values *v, const struct safetensors_entry *e, const char *name,
	struct safetensors_entry *out, struct diag *d)
{
	const float *data = e ? values_floats(v, e) : NULL;
	if (!data || !name)
		return v->failed || !name ? diag_nomem(d)
					  : diag_fail(d, ST_INVALID,
						    &(struct where){.node = name, .op = "tensor"},
						    "is it a checkpoint of this step?",
						    "is not among the values");
	*out = (struct safetensors_entry){
		.name = name, .dtype = STINT_F32, .rank = e->rank, .dim = e->dim, .data = data};
	return ST_OK;
}

static enum status list_tensors(
	struct values *v, int *count, struct safetensors_entry **out, struct diag *d)
{
	const struct adapters_read *all = &v->adapters;
	int n = 0;
	struct safetensors_entry *entry = *out = ARENA_ARRAY(
		v->a, struct safetensors_entry, 3 * all->n + all->ntrained);
	if (!entry)
		return diag_nomem(d);
	for (int i = 0; i < all->n; i++)
		for (int k = 0; k < parts_of(&all->adapter[i]); k++) {
			const struct adapter_read *x = &all->adapter[i];
			TRY(put(v, entry_of(v, x, k), name_of(v, x, k), &entry[n++], d));
		}
	for (int i = 0; i < all->ntrained; i++)
		TRY(put(v, values_find(v, all->trained[i]),
			arena_printf(v->a, ADAPTER_PREFIX "%s", all->trained[i]), &entry[n++], d));
	*count = n;
	return ST_OK;
}

static enum status write_tensors(
	const char *path, int n, const struct safetensors_entry *entry, struct diag *d)
{
	static const struct safetensors_note format = {"format", "pt"};
	char message[SAFETENSORS_MESSAGE];
	if (safetensors_write(path, entry, n, &format, 1, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	return ST_OK;
}

/* PEFT has one word on rslora for all: by it, others' alpha is another. */
static double alpha_as(const struct adapter_spec *s, bool rslora)
{
	return adapter_scale(s) * (rslora ? sqrt((double)s->rank) : (double)s->rank);
}

/* PEFT reads a key as a regular expression for a module's end, from a dot or its start: would that
 * of this one's name fit another's, or not itself? */
static bool is_ambiguous(const struct adapters_read *all, const char *name)
{
	const size_t n = strlen(name);
	if (strpbrk(name, "\\[]{}()*+?^$|"))
		return true;
	for (int i = 0; i < all->n; i++) {
		const char *other = all->adapter[i].module;
		const size_t length = strlen(other);
		size_t k = 0;
		if (length < n || (length > n && other[length - n - 1] != '.') ||
			!strcmp(other, name))
			continue;
		while (k < n && (name[k] == '.' || name[k] == other[length - n + k]))
			k++;
		if (k == n)
			return true;
	}
	return false;
}

static void print_key(struct values *v, const char *name, struct text *out)
{
	char *key = arena_alloc(v->a, 2 * strlen(name) + 2, 1), *to = key;
	v->failed |= !key;
	if (!key)
		return;
	*to++ = '^';
	for (const char *c = name; *c; *to++ = *c++)
		if (strchr("\\.[]{}()*+?^$|", *c))
			*to++ = '\\';
	*to = '\0';
	json_text_string(out, is_ambiguous(&v->adapters, name) ? key : name);
}

/* "KEY":{module: what differs from the first, ...} */
static void print_pattern(struct values *v, const char *key, bool rank, struct text *out)
{
	const struct adapters_read *all = &v->adapters;
	const struct adapter_spec *first = &all->adapter[0].spec;
	const char *comma = "";
	text_add(out, ",\n\"%s\":{", key);
	for (int i = 1; i < all->n; i++) {
		const struct adapter_spec *s = &all->adapter[i].spec;
		const double alpha = s->rslora == first->rslora ? s->alpha
								: alpha_as(s, first->rslora);
		if (rank ? s->rank == first->rank : alpha == first->alpha)
			continue;
		text_puts(out, comma);
		print_key(v, all->adapter[i].module, out);
		text_puts(out, ":");
		json_text_double(out, rank ? (double)s->rank : alpha);
		comma = ",";
	}
	text_puts(out, "}");
}

/* Modules of other parameters, each once. */
static void print_trained(struct values *v, struct text *out)
{
	const char *before = NULL;
	for (int i = 0; i < v->adapters.ntrained; i++) {
		const char *name = v->adapters.trained[i], *dot = strrchr(name, '.');
		const char *module = arena_strndup(
			v->a, name, dot ? (size_t)(dot - name) : strlen(name));
		v->failed |= !module;
		if (!module || (before && !strcmp(before, module)))
			continue;
		text_puts(out, before ? "," : "");
		json_text_string(out, module);
		before = module;
	}
}

static void print_config(struct values *v, struct text *out)
{
	const struct adapters_read *all = &v->adapters;
	const struct adapter_spec *first = &all->adapter[0].spec;
	text_add(out,
		"{\"peft_type\":\"LORA\",\"task_type\":null,\"base_model_name_or_path\":null,\n"
		"\"inference_mode\":true,\"bias\":\"none\",\"fan_in_fan_out\":false,"
		"\"init_lora_weights\":true,\n\"r\":%lld,\"use_rslora\":%s,\"use_dora\":%s,\"lora_"
		"alpha\":",
		(long long)first->rank, first->rslora ? "true" : "false",
		first->dora ? "true" : "false");
	json_text_double(out, first->alpha);
	text_puts(out, ",\"lora_dropout\":");
	json_text_double(out, first->dropout);
	print_pattern(v, "rank_pattern", true, out);
	print_pattern(v, "alpha_pattern", false, out);
	text_puts(out, ",\n\"target_modules\":[");
	for (int i = 0; i < all->n; i++) {
		text_puts(out, i ? ",\n" : "\n");
		json_text_string(out, all->adapter[i].module);
	}
	text_puts(out, "],\n\"modules_to_save\":");
	text_puts(out, all->ntrained ? "[" : "null");
	print_trained(v, out);
	text_puts(out, all->ntrained ? "]}\n" : "}\n");
}

static enum status copy_note(struct arena *a, const char *dir, const char *folder, struct diag *d)
{
	const char *from = arena_printf(a, "%s/adapter.json", dir),
		   *to = arena_printf(a, "%s/stint_adapter.json", folder);
	struct text t = {0};
	char *s;
	size_t n;
	if (!from || !to)
		return diag_nomem(d);
	TRY(file_read(a, from, &s, &n, d));
	text_write(&t, s, n);
	const enum status st = text_save(&t, to, d);
	text_free(&t);
	return st;
}

/* The tensors come last: there are none without what tells of them. */
enum status adapter_write(struct values *v, const char *dir, const char *folder, struct diag *d)
{
	const char *tensors = arena_printf(v->a, "%s/adapter_model.safetensors", folder),
		   *config = arena_printf(v->a, "%s/adapter_config.json", folder);
	struct safetensors_entry *entry;
	struct text t = {0};
	int n = 0;
	if (!tensors || !config)
		return diag_nomem(d);
	for (int i = 1; i < v->adapters.n; i++)
		if (v->adapters.adapter[i].spec.dora != v->adapters.adapter[0].spec.dora)
			return diag_fail(d, ST_USAGE,
				&(struct where){.node = v->adapters.adapter[i].module},
				"--merge writes them into the model",
				"PEFT has one word on dora for all adapters of a folder");
	TRY(list_tensors(v, &n, &entry, d));
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return diag_fail(d, ST_IO, &(struct where){.file = folder}, NULL,
			"cannot create the folder: %s", strerror(errno));
	TRY(copy_note(v->a, dir, folder, d));
	print_config(v, &t);
	const enum status st = v->failed ? diag_nomem(d) : text_save(&t, config, d);
	text_free(&t);
	return st == ST_OK ? write_tensors(tensors, n, entry, d) : st;
}
