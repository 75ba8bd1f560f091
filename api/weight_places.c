#include "api/weight_places.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/safetensors.h"

struct weight_place {
	const char *name; /* the model's */
	struct import_place at;
};

static int by_data(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t)((const struct weight_place *)a)->at.data,
			y = (uintptr_t)((const struct weight_place *)b)->at.data;
	return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(
		((const struct weight_place *)a)->name, ((const struct weight_place *)b)->name);
}

/* The places of the entries in the file. */
static enum status places_in(const char *path, const struct safetensors_entry *entry, int n,
	struct weight_place *place, struct diag *d)
{
	struct safetensors *f;
	char message[SAFETENSORS_MESSAGE];
	if (safetensors_open_header(&f, path, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	for (int i = 0; i < n; i++) {
		const struct safetensors_entry *written = safetensors_find(f, entry[i].name);
		place[i] = (struct weight_place){.at = {.file = WEIGHTS_FILE,
							 .data = entry[i].data,
							 .bytes = written->bytes}};
		safetensors_place(f, written, &place[i].at.offset);
	}
	safetensors_close(f);
	return ST_OK;
}

enum status weight_places_find(struct pipeline *p, const char *dir,
	const struct safetensors_entry *entry, int n, struct weight_places *out)
{
	const struct graph *g = p->imported;
	struct weight_place *all = ARENA_ARRAY(p->arena, struct weight_place, n);
	const char *path = arena_printf(p->arena, "%s/" WEIGHTS_FILE, dir);
	out->n = 0;
	out->item = ARENA_ARRAY(p->arena, struct weight_place, g->ntensor);
	if (!all || !path || !out->item)
		return diag_nomem(p->diag);
	TRY(places_in(path, entry, n, all, p->diag));
	qsort(all, (size_t)n, sizeof *all, by_data);
	for (int i = 0; i < g->ntensor; i++) {
		const struct tensor *t = g->tensor[i];
		const struct weight_place key = {.at.data = t->data}, *one = NULL;
		if (t->from_model && t->data)
			one = bsearch(&key, all, (size_t)n, sizeof *all, by_data);
		if (one)
			out->item[out->n++] = (struct weight_place){t->name, one->at};
	}
	qsort(out->item, (size_t)out->n, sizeof *out->item, by_name);
	return ST_OK;
}

bool weight_places_of(void *user, const char *name, struct import_place *at)
{
	const struct weight_places *places = user;
	const struct weight_place key = {.name = name};
	const struct weight_place *one = bsearch(
		&key, places->item, (size_t)places->n, sizeof key, by_name);
	*at = one ? one->at : (struct import_place){0};
	return one || links_name(places->links, name);
}
