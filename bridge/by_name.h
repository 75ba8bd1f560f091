/* Numbers found by name, the lowest first, where a walk over all would take too long. */
#ifndef STINT_BRIDGE_BY_NAME_H
#define STINT_BRIDGE_BY_NAME_H

#include "base/base.h"

struct by_name {
	size_t mask;
	int *first, *last; /* by bucket; -1: none */
	int *next;         /* by number: the next one of its bucket, -1: none */
};

/* Room for numbers below n. False when out of memory. */
bool by_name_begin(struct arena *a, struct by_name *m, int n);
/* Numbers are added in rising order, each once. */
void by_name_add(struct by_name *m, const char *name, int number);
/* The first that may have this name (others may have the same bucket), -1: none; m->next has the
 * rest. */
int by_name_first(const struct by_name *m, const char *name);

#endif
