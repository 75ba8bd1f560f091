#include "planner/problem/idmap.h"

#include <stdlib.h>

static size_t slot_of(const struct idmap *m, int64_t id)
{
	/* splitmix64's finaliser spreads runs of small ids */
	uint64_t x = (uint64_t)id + 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	size_t i = (size_t)(x ^ (x >> 31)) & m->mask;
	while (m->value[i] >= 0 && m->key[i] != id)
		i = (i + 1) & m->mask;
	return i;
}

bool idmap_init(struct idmap *m, int n)
{
	size_t cap = 16;
	while (cap < (size_t)n * 2 + 2)
		cap *= 2;
	m->mask = cap - 1;
	m->key = malloc(cap * sizeof *m->key);
	m->value = malloc(cap * sizeof *m->value);
	if (!m->key || !m->value) {
		idmap_free(m);
		return false;
	}
	for (size_t i = 0; i < cap; i++)
		m->value[i] = -1;
	return true;
}

void idmap_free(struct idmap *m)
{
	free(m->key);
	free(m->value);
	*m = (struct idmap){0};
}

int idmap_get(const struct idmap *m, int64_t id)
{
	return m->value[slot_of(m, id)];
}

bool idmap_put(struct idmap *m, int64_t id, int value)
{
	size_t i = slot_of(m, id);
	if (m->value[i] >= 0)
		return false;
	m->key[i] = id;
	m->value[i] = value;
	return true;
}
