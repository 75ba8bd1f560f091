/* Names to values, by open addressing. Iteration order is never used. */
#include <string.h>

#include "import/import_parts.h"

static struct name_slot *find(const struct names *t, const char *name)
{
	size_t mask = (size_t)t->cap - 1,
	       i = (size_t)hash_bytes(HASH_BEGIN, name, strlen(name)) & mask;
	while (t->slot[i].name && strcmp(t->slot[i].name, name) != 0)
		i = (i + 1) & mask;
	return &t->slot[i];
}

static bool grow(struct names *t)
{
	struct names wider = {.arena = t->arena, .n = t->n, .cap = t->cap ? 2 * t->cap : 16};
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

bool names_reserve(struct names *t, size_t n)
{
	size_t cap = 16;
	while (cap < 2 * n + 2)
		cap *= 2;
	if (t->cap || cap > INT32_MAX)
		return true; /* it grows by itself */
	t->slot = ARENA_ARRAY(t->arena, struct name_slot, cap);
	t->cap = t->slot ? (int)cap : 0;
	return t->slot != NULL;
}

void names_clear(struct names *t)
{
	/* a wide table that held little would be cleared in vain time and again */
	if (t->cap > 64 && t->n < t->cap / 16)
		t->cap = 0;
	if (t->cap && t->n)
		memset(t->slot, 0, (size_t)t->cap * sizeof *t->slot);
	t->n = 0;
}

/* --- Addresses --- */

static struct memo_slot *find_address(const struct memo *t, const void *key)
{
	size_t mask = (size_t)t->cap - 1;
	size_t i = (size_t)(((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;
	while (t->slot[i].key && t->slot[i].key != key)
		i = (i + 1) & mask;
	return &t->slot[i];
}

static bool grow_memo(struct memo *t)
{
	struct memo wider = {.arena = t->arena, .n = t->n, .cap = t->cap ? 2 * t->cap : 64};
	if (wider.cap < t->cap)
		return false;
	wider.slot = ARENA_ARRAY(t->arena, struct memo_slot, wider.cap);
	if (!wider.slot)
		return false;
	for (int i = 0; i < t->cap; i++)
		if (t->slot[i].key)
			*find_address(&wider, t->slot[i].key) = t->slot[i];
	*t = wider;
	return true;
}

void **memo_at(struct memo *t, const void *key)
{
	if (2 * t->n >= t->cap && !grow_memo(t))
		return NULL;
	struct memo_slot *s = find_address(t, key);
	if (!s->key) {
		s->key = key;
		t->n++;
	}
	return &s->value;
}

void *memo_get(const struct memo *t, const void *key)
{
	return t->cap ? find_address(t, key)->value : NULL;
}

const char *name_leaf(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot ? dot + 1 : name;
}
