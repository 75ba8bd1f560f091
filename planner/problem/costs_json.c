/* stint-costs-1, read and written. */
#include "planner/problem/costs.h"
#include "planner/problem/json_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

struct reader {
	struct arena *a;
	const char *file;
	struct diag *d;
	bool bad, nomem;
};

static void fault(struct reader *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void fault(struct reader *r, const char *key, const char *fmt, ...)
{
	struct where w = {.file = r->file, .node = key, .op = key ? "kernel" : NULL};
	va_list ap;
	va_start(ap, fmt);
	diag_vfail(r->d, ST_INVALID, &w, NULL, fmt, ap);
	va_end(ap);
	r->bad = true;
}

static const char *string(struct reader *r, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	if (v && !json_is_string(v))
		fault(r, NULL, "\"%s\" is not a string", key);
	if (!json_is_string(v))
		return NULL;
	char *s = arena_strdup(r->a, json_string_value(v));
	r->nomem |= !s;
	return s;
}

/* A time in microseconds. JSON itself has no NaN and no infinity. */
static double time_of(struct reader *r, const json_t *o, const char *field, const char *key)
{
	enum { LONGEST = 1000000000 }; /* a quarter of an hour: in what else is this measured? */
	const json_t *v = json_object_get(o, field);
	double us = json_number_value(v);
	if (!json_is_number(v))
		fault(r, key, "\"%s\" is %s", field, v ? "not a number" : "missing");
	else if (!(us >= 0))
		fault(r, key, "\"%s\" is negative: %g", field, us);
	else if (us > LONGEST)
		fault(r, key, "\"%s\" is longer than a quarter of an hour: %g", field, us);
	return us;
}

static void read_kernel(struct reader *r, const json_t *o, int i, struct costs_kernel *k)
{
	k->key = json_is_object(o) ? string(r, o, "key") : NULL;
	k->roofline = -1;
	if (!k->key) {
		fault(r, NULL, "kernel %d has no \"key\"", i);
		k->key = "";
		return;
	}
	k->us = time_of(r, o, "us", k->key);
	if (json_object_get(o, "roofline_us"))
		k->roofline = time_of(r, o, "roofline_us", k->key);
	const json_t *estimated = json_object_get(o, "estimated");
	if (estimated && !json_is_boolean(estimated))
		fault(r, k->key, "\"estimated\" is neither true nor false");
	k->estimated = json_is_true(estimated);
}

static void read_kernels(struct reader *r, const json_t *list, struct costs *c)
{
	if (!json_is_array(list) || json_array_size(list) > INT_MAX / 4) {
		fault(r, NULL, "\"kernels\" is %s", list ? "not a list" : "missing");
		return;
	}
	c->n = (int)json_array_size(list);
	c->kernel = ARENA_ARRAY(r->a, struct costs_kernel, c->n);
	if (!c->kernel) {
		r->nomem = true;
		return;
	}
	for (int i = 0; i < c->n; i++)
		read_kernel(r, json_array_get(list, (size_t)i), i, &c->kernel[i]);
	const char *twice;
	if (!r->bad && !r->nomem && !costs_sort(c, &twice))
		fault(r, twice, "stands there twice");
}

static void read_machine(struct reader *r, const json_t *o, struct costs *c)
{
	if (o && !json_is_object(o))
		fault(r, NULL, "\"machine\" is not an object");
	c->cpu = string(r, o, "cpu");
	c->isa = string(r, o, "isa");
	c->library = string(r, o, "library");
	const json_t *threads = json_object_get(o, "threads");
	if (threads && (!json_is_integer(threads) || json_integer_value(threads) < 1 ||
			       json_integer_value(threads) > 1024))
		fault(r, NULL, "\"threads\" is not a number from 1 to 1024");
	else if (threads)
		c->threads = (int)json_integer_value(threads);
}

static void read_root(struct reader *r, const json_t *root, struct costs *c)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	if (!format || strcmp(format, "stint-costs-1") != 0) {
		fault(r, NULL, "is not a stint-costs-1 file");
		return;
	}
	const char *slash = strrchr(r->file, '/');
	c->name = arena_strdup(r->a, slash ? slash + 1 : r->file);
	r->nomem |= !c->name;
	read_machine(r, json_object_get(root, "machine"), c);
	read_kernels(r, json_object_get(root, "kernels"), c);
}

enum status costs_parse(struct arena *a, const char *text, size_t len, const char *file,
	struct costs **out, struct diag *d)
{
	struct reader r = {.a = a, .file = file, .d = d};
	struct where w = {.file = file};
	json_error_t e;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!root)
		return diag_fail(d, ST_INVALID, &w, "`stint bench DIR --costs-out FILE` writes one",
			"not valid JSON: line %d, column %d: %s", e.line, e.column, e.text);
	struct costs *c = ARENA_NEW(a, struct costs);
	if (c)
		read_root(&r, root, c);
	json_decref(root);
	if (!c || r.nomem)
		return diag_nomem(d);
	if (r.bad)
		return ST_INVALID;
	*out = c;
	return ST_OK;
}

enum status costs_read(struct arena *a, const char *path, struct costs **out, struct diag *d)
{
	char *text;
	size_t len;
	TRY(file_read(a, path, &text, &len, d));
	return costs_parse(a, text, len, path, out, d);
}

/* --- Writing --- */

static void print_word(struct text *out, const char *key, const char *value)
{
	if (!value)
		return;
	text_add(out, "\"%s\":", key);
	json_text_string(out, value);
	text_puts(out, ",");
}

void costs_print(const struct costs *c, struct text *out)
{
	text_puts(out, "{\"format\":\"stint-costs-1\",\n\"machine\":{");
	print_word(out, "cpu", c->cpu);
	print_word(out, "isa", c->isa);
	print_word(out, "library", c->library);
	text_add(out, "\"threads\":%d},\n\"kernels\":[\n", c->threads > 0 ? c->threads : 1);
	for (int i = 0; i < c->n; i++) {
		const struct costs_kernel *k = &c->kernel[i];
		text_puts(out, "{\"key\":");
		json_text_string(out, k->key);
		text_puts(out, ",\"us\":");
		json_text_double(out, k->us);
		if (k->roofline >= 0) {
			text_puts(out, ",\"roofline_us\":");
			json_text_double(out, k->roofline);
		}
		text_puts(out, k->estimated ? ",\"estimated\":true}" : "}");
		text_puts(out, i + 1 < c->n ? ",\n" : "\n");
	}
	text_puts(out, "]}\n");
}
