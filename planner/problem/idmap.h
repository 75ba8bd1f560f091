/* A map from the ids in a file to indices. Private to planner/. */
#ifndef STINT_PLANNER_IDMAP_H
#define STINT_PLANNER_IDMAP_H

#include "base/base.h"

struct idmap {
	int64_t *key;
	int *value; /* -1: empty slot */
	size_t mask;
};

/* Room for `n` ids; false when out of memory. Freed with idmap_free. */
bool idmap_init(struct idmap *m, int n);
void idmap_free(struct idmap *m);
/* The index of `id`, or -1. */
int idmap_get(const struct idmap *m, int64_t id);
/* False (and nothing changes) when `id` is there already. */
bool idmap_put(struct idmap *m, int64_t id, int value);

#endif
