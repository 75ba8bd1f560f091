/* Names to values, by open addressing. Iteration order is never used. */
#include <string.h>

#include "import/private.h"

static uint64_t hash(const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return h;
}

static struct name_slot *find(const struct names *t, const char *name)
{
	size_t mask = (size_t)t->cap - 1, i = (size_t)hash(name) & mask;
	while (t->slot[i].name && strcmp(t->slot[i].name, name) != 0)
		i = (i + 1) & mask;
	return &t->slot[i];
}

static bool grow(struct names *t)
{
	struct names wider = {.arena = t->arena, .n = t->n, .cap = t->cap ? 2 * t->cap : 64};
	if (wider.cap < t->cap)
		return false;
	wider.slot = ARENA_ARRAY(t->arena, struct name_slot, wider.cap);
	if (!wider.slot)
		return false;
	for (int i = 0; i < t->cap; i++)
		if (t->slot[i].name)
			*find(&wider, t->slot[i].name) = t->slot[i];
	*t = wider;
	return true;
}

void **names_at(struct names *t, const char *name)
{
	if (2 * t->n >= t->cap && !grow(t))
		return NULL;
	struct name_slot *s = find(t, name);
	if (!s->name) {
		s->name = name;
		t->n++;
	}
	return &s->value;
}

void *names_get(const struct names *t, const char *name)
{
	return t->cap ? find(t, name)->value : NULL;
}
