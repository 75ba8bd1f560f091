#include "api/length_folders.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "planner/problem/json_text.h"

char *length_folder(struct arena *a, const char *dir, int64_t length)
{
	return arena_printf(a, "%s/" LENGTH_FOLDER "%" PRId64, dir, length);
}

static int64_t longest_of(const struct compile_options *o)
{
	int64_t longest = 0;
	for (int i = 0; i < o->import.ndim; i++)
		if (!strcmp(o->import.dim[i].name, o->lengths.dim))
			longest = o->import.dim[i].size;
	return longest;
}

void length_folders_print(const struct pipeline *p, struct text *out)
{
	text_puts(out, "{\"format\":\"stint-lengths-1\",\"dim\":");
	json_text_string(out, p->o->lengths.dim);
	text_add(out, ",\"longest\":%" PRId64 ",\"shorter\":[", longest_of(p->o));
	for (int i = 0; i < p->nlength; i++)
		text_add(out, "%s%" PRId64, i ? "," : "", p->length[i].length);
	text_puts(out, "]}\n");
}

static bool take(struct arena *a, const json_t *o, struct length_folders *out)
{
	const char *format = json_string_value(json_object_get(o, "format"));
	const char *dim = json_string_value(json_object_get(o, "dim"));
	const json_t *shorter = json_object_get(o, "shorter");
	const int n = (int)json_array_size(shorter);
	if (!format || strcmp(format, "stint-lengths-1") != 0 || !dim || n < 1)
		return false;
	*out = (struct length_folders){.dim = arena_strdup(a, dim),
		.longest = json_integer_value(json_object_get(o, "longest")),
		.length = ARENA_ARRAY(a, int64_t, n)};
	if (!out->dim || !out->length)
		return false;
	for (; out->n < n; out->n++)
		out->length[out->n] = json_integer_value(json_array_get(shorter, (size_t)out->n));
	return true;
}

enum status length_folders_read(
	struct arena *a, const char *dir, struct length_folders *out, struct diag *d)
{
	json_error_t e;
	char *path = arena_printf(a, "%s/" LENGTHS_FILE, dir);
	*out = (struct length_folders){0};
	if (!path)
		return diag_nomem(d);
	if (access(path, F_OK) != 0)
		return ST_OK;
	json_t *o = json_load_file(path, 0, &e);
	const bool ok = o && take(a, o, out);
	json_decref(o);
	return ok ? ST_OK
		  : diag_fail(d, ST_INVALID, &(struct where){.file = path}, "compile it again",
			    "is no list of lengths");
}
