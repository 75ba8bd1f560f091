#include "bridge/by_name.h"

#include <string.h>

static size_t bucket(const struct by_name *m, const char *name)
{
	return (size_t)hash_bytes(HASH_BEGIN, name, strlen(name)) & m->mask;
}

bool by_name_begin(struct arena *a, struct by_name *m, int n)
{
	size_t buckets = 16;
	while (buckets < (size_t)n)
		buckets *= 2;
	m->mask = buckets - 1;
	m->first = ARENA_ARRAY(a, int, buckets);
	m->last = ARENA_ARRAY(a, int, buckets);
	m->next = ARENA_ARRAY(a, int, n);
	if (!m->first || !m->last || !m->next)
		return false;
	for (size_t i = 0; i < buckets; i++)
		m->first[i] = m->last[i] = -1;
	return true;
}

void by_name_add(struct by_name *m, const char *name, int number)
{
	const size_t b = bucket(m, name);
	if (m->first[b] < 0)
		m->first[b] = number;
	else
		m->next[m->last[b]] = number;
	m->last[b] = number;
	m->next[number] = -1;
}

int by_name_first(const struct by_name *m, const char *name)
{
	return m->first[bucket(m, name)];
}
