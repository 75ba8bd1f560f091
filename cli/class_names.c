#include "cli/class_names.h"

#include "data/dataset.h"

enum status class_names_split(
	struct arena *a, const char *classes, struct class_names *out, struct diag *d)
{
	*out = (struct class_names){.n = 0};
	for (const char *rest = classes; rest; rest = dataset_class_next(rest, NULL, NULL))
		out->n++;
	out->name = ARENA_ARRAY(a, const char *, out->n);
	if (!out->name)
		return diag_nomem(d);
	const char *rest = classes;
	for (int64_t i = 0; i < out->n; i++) {
		size_t n;
		(void)dataset_class_next(rest, NULL, &n);
		char *name = ARENA_ARRAY(a, char, n + 1);
		if (!name)
			return diag_nomem(d);
		rest = dataset_class_next(rest, name, &n);
		out->name[i] = name;
	}
	return ST_OK;
}
