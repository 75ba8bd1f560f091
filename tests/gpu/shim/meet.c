/* Threads that wait for one another: lanes of a warp, a block at its barrier; and what is said when
 * they wait in vain. */
#include <stdio.h>
#include <string.h>

#include "tests/gpu/shim/parts.h"

static bool same_site(const struct shim_site *a, const struct shim_site *b)
{
	return a->line == b->line && (a->file == b->file || strcmp(a->file, b->file) == 0);
}

static bool waits_with(const struct thread *t, const struct thread *other)
{
	return other->state == IN_WARP && other->mask == t->mask && other->what == t->what &&
	       same_site(&other->at, &t->at);
}

/* What each wrote before is seen by all: the times meet. */
static void join(struct thread *lane, int n, unsigned mask)
{
	uint32_t seen[WARP] = {0};
	for (int i = 0; i < n; i++)
		for (int k = 0; mask >> i & 1 && k < WARP; k++)
			if (seen[k] < lane[i].seen[k])
				seen[k] = lane[i].seen[k];
	for (int i = 0; i < n; i++)
		if (mask >> i & 1) {
			memcpy(lane[i].seen, seen, sizeof seen);
			lane[i].seen[i]++;
		}
}

void shim_meet(struct shim *s, const char *what, unsigned mask, int orders_memory, void *io,
	shim_together *together, struct shim_site at)
{
	struct thread *t = s->current, *warp = &s->thread[t->number / WARP * WARP];
	const int left = s->nthreads - (int)(warp - s->thread), n = left < WARP ? left : WARP;
	void *ios[WARP] = {NULL};
	shim_settle(s);
	if (!(mask >> (t->number % WARP) & 1))
		shim_fail(s, &at, "%s: the calling thread is lane %d, which is not in mask 0x%08x",
			what, t->number % WARP, mask);
	if (n < WARP && mask >> n)
		shim_fail(s, &at, "%s: mask 0x%08x names lanes beyond the block's end", what, mask);
	t->what = what;
	t->mask = mask;
	t->io = io;
	t->at = at;
	t->state = IN_WARP;
	/* the lane whose turn is next first: mostly it is missing */
	const int step = s->launch->order == SHIM_FORWARD ? 1 : WARP - 1;
	for (int k = 1, i = t->number % WARP; k <= WARP; k++) {
		i = (i + step) % WARP;
		if (!(mask >> i & 1))
			continue;
		if (!waits_with(t, &warp[i])) {
			shim_yield(s);
			return;
		}
		ios[i] = warp[i].io;
	}
	if (together)
		together(ios, mask);
	if (orders_memory)
		join(warp, n, mask);
	for (int i = 0; i < n; i++)
		if (mask >> i & 1)
			warp[i].state = READY;
}

int shim_barrier(struct shim *s, enum shim_barrier kind, int value, struct shim_site at)
{
	static const char *const name[] = {
		"__syncthreads", "__syncthreads_count", "__syncthreads_or", "__syncthreads_and"};
	struct thread *t = s->current;
	t->what = name[kind];
	t->mask = (unsigned)kind;
	t->at = at;
	t->value = value != 0;
	t->state = IN_BLOCK;
	shim_yield(s);
	return s->result;
}

void shim_barrier_open(struct shim *s)
{
	const struct thread *first = &s->thread[0];
	char a[80], b[80];
	int count = 0;
	for (int i = 0; i < s->nthreads; i++) {
		const struct thread *t = &s->thread[i];
		count += t->value;
		if (t->what == first->what && same_site(&t->at, &first->at))
			continue;
		shim_fail(s, &first->at, "divergent %s: %s waits there, %s in %s at %s:%d",
			first->what, shim_name_thread(s, 0, a), shim_name_thread(s, i, b), t->what,
			shim_file(t->at.file), t->at.line);
		return;
	}
	const enum shim_barrier kind = (enum shim_barrier)first->mask;
	s->result = kind == SHIM_OR ? count != 0 : kind == SHIM_AND ? count == s->nthreads : count;
	s->epoch++;
	for (int i = 0; i < s->nthreads; i++)
		s->thread[i].state = READY;
}

/* "lane 3 has ended" */
static size_t describe(const struct shim *s, int number, char *out, size_t room)
{
	const struct thread *t = &s->thread[number];
	char name[80];
	int n = snprintf(out, room, "\n\t%s ", shim_name_thread(s, number, name));
	if (n < 0 || (size_t)n >= room)
		return 0;
	out += n;
	room -= (size_t)n;
	int m = t->state == DONE      ? snprintf(out, room, "has ended")
		: t->state == IN_WARP ? snprintf(out, room, "waits in %s(0x%08x) at %s:%d", t->what,
						t->mask, shim_file(t->at.file), t->at.line)
				      : snprintf(out, room, "waits in %s at %s:%d", t->what,
						shim_file(t->at.file), t->at.line);
	return m < 0 || (size_t)m >= room ? 0 : (size_t)(n + m);
}

/* Those that `t` waits for and that do not come; at most 4 are named. */
static void describe_missing(struct shim *s, const struct thread *t, char *out, size_t room)
{
	const int first = t->state == IN_WARP ? t->number / WARP * WARP : 0;
	const int n = t->state == IN_WARP ? WARP : s->nthreads;
	int named = 0, missing = 0;
	for (int i = first; i < first + n && i < s->nthreads; i++) {
		const struct thread *o = &s->thread[i];
		if (t->state == IN_WARP ? !(t->mask >> (i - first) & 1) || waits_with(t, o)
					: o->state == IN_BLOCK)
			continue;
		missing++;
		if (named < 4) {
			const size_t used = describe(s, i, out, room);
			out += used;
			room -= used;
			named++;
		}
	}
	if (missing > named)
		snprintf(out, room, "\n\tand %d more", missing - named);
}

void shim_deadlock(struct shim *s)
{
	char missing[1024] = "", name[80];
	const struct thread *t = NULL;
	/* a warp's first: a block's barrier that misses threads is often its consequence */
	for (int i = 0; i < s->nthreads && !t; i++)
		if (s->thread[i].state == IN_WARP)
			t = &s->thread[i];
	for (int i = 0; i < s->nthreads && !t; i++)
		if (s->thread[i].state == IN_BLOCK)
			t = &s->thread[i];
	describe_missing(s, t, missing, sizeof missing);
	if (t->state == IN_WARP)
		shim_fail(s, &t->at, "deadlock: %s waits in %s(0x%08x), and not all lanes come:%s",
			shim_name_thread(s, t->number, name), t->what, t->mask, missing);
	else
		shim_fail(s, &t->at, "deadlock: %s waits in %s, and not all threads come:%s",
			shim_name_thread(s, t->number, name), t->what, missing);
}
