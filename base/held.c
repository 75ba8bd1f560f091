#include "base/held.h"

struct held_message {
	enum diag_level level;
	struct where w;
	const char *message, *hint;
	struct held_message *next;
};

static const char *copy(struct arena *a, const char *s)
{
	return s ? arena_strdup(a, s) : NULL;
}

static void hold(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct held *h = user;
	struct held_message *m = ARENA_NEW(h->a, struct held_message);
	const char *words = m ? arena_strdup(h->a, message) : NULL;
	if (!words) /* the status alone says it */
		return;
	*m = (struct held_message){level,
		{copy(h->a, w->file), copy(h->a, w->node), copy(h->a, w->op)}, words,
		copy(h->a, hint), NULL};
	*h->end = m;
	h->end = &m->next;
}

void held_begin(struct held *h, struct arena *a)
{
	*h = (struct held){.a = a};
	h->diag = (struct diag){.put = hold, .user = h};
	h->end = &h->first;
}

void held_tell(const struct held *h, struct diag *d)
{
	for (const struct held_message *m = h->first; d->put && m; m = m->next)
		d->put(d->user, m->level, &m->w, m->message, m->hint);
	if (!d->errors)
		d->worst = h->diag.worst;
	d->errors += h->diag.errors;
	d->warnings += h->diag.warnings;
	d->out_of_memory |= h->diag.out_of_memory;
}
