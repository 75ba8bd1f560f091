#include "api/told.h"

#include <string.h>

static const char *copy(struct arena *a, const char *s)
{
	return s ? arena_strdup(a, s) : NULL;
}

static struct stint_diagnostic *one_more(struct told *t)
{
	if (t->n == t->cap) {
		const size_t cap = t->cap ? 2 * t->cap : 8;
		struct stint_diagnostic *item = ARENA_ARRAY(t->arena, struct stint_diagnostic, cap);
		if (!item)
			return NULL;
		if (t->n)
			memcpy(item, t->item, t->n * sizeof *item);
		t->item = item;
		t->cap = cap;
	}
	return &t->item[t->n++];
}

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct told *t = user;
	const char *words = arena_strdup(t->arena, message);
	struct stint_diagnostic *x = words ? one_more(t) : NULL;
	if (x) /* without memory: the status alone says it */
		*x = (struct stint_diagnostic){.level = (enum stint_level)level,
			.file = copy(t->arena, w->file),
			.node = copy(t->arena, w->node),
			.op = copy(t->arena, w->op),
			.message = words,
			.hint = copy(t->arena, hint)};
}

bool told_begin(struct told *t)
{
	*t = (struct told){.arena = arena_new()};
	t->diag = (struct diag){.put = put, .user = t};
	return t->arena != NULL;
}

void told_end(struct told *t)
{
	if (t->arena)
		arena_free(t->arena);
	*t = (struct told){0};
}

bool told_anew(struct told *t)
{
	if (t->arena && t->n == 0)
		return true;
	told_end(t);
	return told_begin(t);
}

const struct stint_diagnostic *told_at(const struct told *t, size_t index)
{
	return index < t->n ? &t->item[index] : NULL;
}

static void now(void *user, const char *what)
{
	const struct stint_onlooker *x = user;
	x->now(x->user, what);
}

static bool stop(void *user)
{
	const struct stint_onlooker *x = user;
	return x->stop(x->user) != 0;
}

struct onlooker told_onlooker(const struct stint_onlooker *from)
{
	if (!from)
		return (struct onlooker){0};
	return (struct onlooker){.now = from->now ? now : NULL,
		.stop = from->stop ? stop : NULL,
		.user = (void *)(uintptr_t)from};
}
