/* Memory as a launch sees it. In a checked library every access comes here: it must lie in a
 * variable, in a range of the launch or on a stack, and no two accesses of which one writes may be
 * without order between them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/shim/parts.h"

static long variables_size(const struct shim *s)
{
	return s->library.shared_end - s->library.shared;
}

long shim_shared_offset(const struct shim *s, const void *at)
{
	const char *p = at;
	if (p >= s->library.shared && p < s->library.shared_end)
		return p - s->library.shared;
	if (s->launch && p >= s->dynamic && p < s->dynamic + s->launch->dynamic)
		return variables_size(s) + (p - s->dynamic);
	return -1;
}

/* Word by word and volatile: over AddressSanitizer's zones between variables too. */
__attribute__((no_sanitize("address"))) static void fill(char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((volatile char *)at)[i] = (char)0xFF;
}

void shim_poison(struct shim *s)
{
	for (int i = 0; i < s->library.nvariables; i++) {
		const struct variable *v = &s->library.variable[i];
		if (!v->owner || strcmp(v->owner, s->launch->kernel) == 0)
			fill(v->at, v->bytes);
	}
	if (s->launch->dynamic)
		memset(s->dynamic, 0xFF, s->launch->dynamic);
}

/* --- Which access came before --- */

struct accessor {
	const char *at;
	size_t bytes;
	enum shim_access how;
	const void *pc;
};

static bool ordered(const struct shim *s, const struct trace *r, bool shared)
{
	const struct thread *t = s->current;
	if (r->serial < s->first_serial)
		return true;
	if (r->serial != s->serial)
		return shared;
	if (r->warp == MANY_BLOCKS)
		return false;
	if (r->epoch < s->epoch)
		return true;
	if (r->warp != t->number / WARP)
		return false;
	for (int i = 0; i < WARP; i++)
		if (r->lanes >> i & 1 && i != t->number % WARP && t->seen[i] < r->time)
			return false;
	return true;
}

static void note(const struct shim *s, struct trace *r, const struct accessor *a, bool shared)
{
	const struct thread *t = s->current;
	struct trace now = {.serial = s->serial,
		.pc = (uint32_t)((const char *)a->pc - s->library.base),
		.epoch = s->epoch,
		.time = t->seen[t->number % WARP],
		.lanes = 1u << t->number % WARP,
		.warp = (uint16_t)(t->number / WARP),
		.thread = (uint16_t)t->number};
	/* Reads with no order between them are kept together. One that came before this one needs
	 * no keeping: what comes behind this one comes behind both (Flanagan, Freund, "FastTrack",
	 * PLDI 2009, section 3). */
	if (a->how == SHIM_READ && r->serial && !ordered(s, r, shared)) {
		if (r->serial != s->serial || r->warp == MANY_BLOCKS)
			now.warp = MANY_BLOCKS;
		else if (r->warp != now.warp)
			now.warp = MANY_WARPS;
		now.lanes |= r->lanes;
		if (now.time < r->time)
			now.time = r->time;
	}
	*r = now;
}

static void place(const struct shim *s, const char *at, char *out, size_t room)
{
	for (int i = 0; i < s->library.nvariables; i++) {
		const struct variable *v = &s->library.variable[i];
		if (v->owner && strcmp(v->owner, s->launch->kernel) != 0)
			continue;
		if (at >= v->at && at < v->at + v->bytes) {
			snprintf(out, room, "byte %ld of shared %s", (long)(at - v->at), v->name);
			return;
		}
	}
	if (at >= s->dynamic && at < s->dynamic + s->launch->dynamic) {
		snprintf(out, room, "byte %ld of dynamic shared memory", (long)(at - s->dynamic));
		return;
	}
	for (int i = 0; i < s->launch->nranges; i++) {
		const struct shim_range *r = &s->launch->ranges[i];
		const char *from = r->at;
		if (at >= from && at < from + r->bytes) {
			snprintf(out, room, "byte %ld of %s", (long)(at - from), r->name);
			return;
		}
	}
	snprintf(out, room, "no memory of the launch");
}

static const char *const verb[] = {"read", "write", "atomic operation"};

static void fail_line(struct shim *s, const struct accessor *a, const char *what)
{
	char line[256];
	library_line(&s->library, (uintptr_t)((const char *)a->pc - s->library.base), line);
	const struct shim_site site = {line, -1};
	shim_fail(s, &site, "%s of %zu bytes %s", verb[a->how], a->bytes, what);
}

static void fail_at(struct shim *s, const struct accessor *a, const char *what)
{
	char where[160], text[800];
	place(s, a->at, where, sizeof where);
	snprintf(text, sizeof text, "at %s%s", where, what);
	fail_line(s, a, text);
}

static void fail_bounds(
	struct shim *s, const struct accessor *a, const char *name, const char *from, size_t bytes)
{
	char text[400];
	snprintf(text, sizeof text, "out of bounds: byte %ld of %s, which has %zu bytes",
		(long)(a->at - from), name, bytes);
	fail_line(s, a, text);
}

static void fail_race(struct shim *s, const struct accessor *a, const struct trace *r, bool wrote)
{
	char line[256], name[80], text[512];
	library_line(&s->library, r->pc, line);
	const bool here = r->serial == s->serial && r->warp != MANY_BLOCKS;
	if (here)
		shim_name_thread(s, r->thread, name);
	else
		snprintf(name, sizeof name, "another block");
	snprintf(text, sizeof text, ": a race with the %s by %s at %s, with no %s between",
		wrote ? "write" : "read", name, line, here ? "barrier" : "launch");
	fail_at(s, a, text);
}

/* Of two stores it remembers the first byte's and the values: shim_settle looks at them. */
static void expect_same(struct shim *s, const struct accessor *a, const struct trace *r)
{
	struct store *w = &s->store;
	if (w->at || a->bytes > sizeof w->before) {
		if (!w->at)
			fail_race(s, a, r, true);
		return;
	}
	*w = (struct store){.at = a->at, .bytes = a->bytes, .pc = a->pc, .other = *r};
	memcpy(w->before, a->at, a->bytes);
}

void shim_settle(struct shim *s)
{
	struct store *w = &s->store;
	if (!w->at)
		return;
	const struct accessor a = {.at = w->at, .bytes = w->bytes, .how = SHIM_WRITE, .pc = w->pc};
	w->at = NULL;
	if (memcmp(a.at, w->before, a.bytes) != 0)
		fail_race(s, &a, &w->other, true);
}

static void check_byte(struct shim *s, struct byte_trace *b, const struct accessor *a, bool shared)
{
	if (b->write.serial && !ordered(s, &b->write, shared)) {
		if (a->how == SHIM_WRITE)
			expect_same(s, a, &b->write);
		else
			fail_race(s, a, &b->write, true);
	}
	if (a->how == SHIM_WRITE && b->read.serial && !ordered(s, &b->read, shared))
		fail_race(s, a, &b->read, false);
	note(s, a->how == SHIM_WRITE ? &b->write : &b->read, a, shared);
}

/* --- Where an access may lie --- */

static void check_shared(struct shim *s, const struct accessor *a)
{
	const long at = shim_shared_offset(s, a->at);
	for (size_t i = 0; i < a->bytes; i++) {
		if (s->in_flight[at + (long)i])
			fail_at(s, a, ", where an asynchronous copy has not been waited for");
		if (a->how != SHIM_ATOMIC)
			check_byte(s, &s->shared_trace[at + (long)i], a, true);
	}
}

static void check_variable(struct shim *s, const struct accessor *a)
{
	const struct variable *near = NULL;
	for (int i = 0; i < s->library.nvariables; i++) {
		const struct variable *v = &s->library.variable[i];
		if (v->owner && strcmp(v->owner, s->launch->kernel) != 0)
			continue;
		if (v->at <= a->at && (!near || near->at < v->at))
			near = v;
	}
	if (!near) {
		fail_line(s, a, "out of bounds: before the first shared variable");
		return;
	}
	if (a->at + a->bytes > near->at + near->bytes) {
		char name[200];
		snprintf(name, sizeof name, "shared %s", near->name);
		fail_bounds(s, a, name, near->at, near->bytes);
		return;
	}
	check_shared(s, a);
}

static void check_dynamic(struct shim *s, const struct accessor *a)
{
	if (a->at + a->bytes > s->dynamic + s->launch->dynamic) {
		fail_bounds(s, a, "dynamic shared memory", s->dynamic, s->launch->dynamic);
		return;
	}
	check_shared(s, a);
}

static struct page *find_page(struct shim *s, uintptr_t number)
{
	size_t i = (number * 0x9E3779B97F4A7C15u) & (s->cappages - 1);
	while (s->page[i].byte && s->page[i].number != number)
		i = (i + 1) & (s->cappages - 1);
	return &s->page[i];
}

static bool grow_pages(struct shim *s)
{
	struct page *old = s->page;
	const size_t n = s->cappages;
	struct page *p = calloc(2 * n, sizeof *p);
	if (!p)
		return false;
	s->page = p;
	s->cappages = 2 * n;
	for (size_t i = 0; i < n; i++)
		if (old[i].byte)
			*find_page(s, old[i].number) = old[i];
	free(old);
	return true;
}

static struct byte_trace *global_trace(struct shim *s, const char *at)
{
	const uintptr_t number = (uintptr_t)at / PAGE;
	struct page *p = find_page(s, number);
	if (!p->byte) {
		if (2 * s->npages >= s->cappages && !grow_pages(s))
			return NULL;
		p = find_page(s, number);
		p->byte = calloc(PAGE, sizeof *p->byte);
		if (!p->byte)
			return NULL;
		p->number = number;
		s->npages++;
	}
	return &p->byte[(uintptr_t)at % PAGE];
}

static bool within(const struct shim_range *r, const struct accessor *a)
{
	const char *from = r->at;
	return a->at >= from && a->at + a->bytes <= from + r->bytes &&
	       (r->writable || a->how == SHIM_READ);
}

static void fail_range(struct shim *s, const struct accessor *a)
{
	const struct shim_range *near = NULL;
	long best = 0;
	for (int i = 0; i < s->launch->nranges; i++) {
		const struct shim_range *r = &s->launch->ranges[i];
		const char *from = r->at, *end = from + r->bytes;
		const long past = a->at < from ? from - a->at : a->at >= end ? a->at - end + 1 : 0;
		if (!near || past < best) {
			near = r;
			best = past;
		}
	}
	const char *from = near->at;
	if (a->at >= from && a->at + a->bytes <= from + near->bytes)
		fail_at(s, a, ", which is only to be read");
	else
		fail_bounds(s, a, near->name, from, near->bytes);
}

static void check_global(struct shim *s, const struct accessor *a)
{
	const struct shim_launch *l = s->launch;
	if (l->nranges && !(s->last_range && within(s->last_range, a))) {
		s->last_range = NULL;
		for (int i = 0; i < l->nranges && !s->last_range; i++)
			if (within(&l->ranges[i], a))
				s->last_range = &l->ranges[i];
		if (!s->last_range) {
			fail_range(s, a);
			return;
		}
	}
	for (size_t i = 0; i < a->bytes && a->how != SHIM_ATOMIC; i++) {
		struct byte_trace *b = global_trace(s, a->at + i);
		if (!b) {
			shim_fail(s, NULL, "out of memory");
			return;
		}
		check_byte(s, b, a, false);
	}
}

void shim_access(struct shim *s, const void *at, size_t bytes, enum shim_access how, const void *pc)
{
	const char *p = at;
	if (s->current)
		shim_settle(s);
	if (!s->current || (p >= s->stacks && p < s->stacks + MAX_THREADS * s->stack_bytes))
		return;
	struct accessor a = {.at = at, .bytes = bytes, .how = how, .pc = pc};
	const bool shared = p >= s->library.shared && p < s->library.shared_end;
	const bool image = p >= s->library.base && p < s->library.end;
	if (image && !shared && how == SHIM_READ)
		return;
	if (shared)
		check_variable(s, &a);
	else if (image)
		fail_line(s, &a, "at a variable that is neither shared nor global memory");
	else if (p >= s->dynamic && p < s->dynamic + s->dynamic_cap)
		check_dynamic(s, &a);
	else
		check_global(s, &a);
}

bool shim_memory_new(struct shim *s)
{
	const size_t shared = (size_t)variables_size(s) + s->launch->dynamic;
	s->dynamic_cap = s->launch->dynamic + (s->checked ? PAGE : 0);
	if (s->dynamic_cap && posix_memalign((void **)&s->dynamic, 128, s->dynamic_cap) != 0)
		s->dynamic = NULL;
	if (s->checked) {
		s->shared_trace = calloc(shared + 1, sizeof *s->shared_trace);
		s->in_flight = calloc(shared + 1, sizeof *s->in_flight);
	}
	if (!s->page) {
		s->cappages = 64;
		s->page = calloc(s->cappages, sizeof *s->page);
	}
	return (s->dynamic || !s->dynamic_cap) && s->page &&
	       (!s->checked || (s->shared_trace && s->in_flight));
}

void shim_memory_free(struct shim *s)
{
	free(s->dynamic);
	free(s->shared_trace);
	free(s->in_flight);
	s->dynamic = NULL;
	s->dynamic_cap = 0;
	s->shared_trace = NULL;
	s->in_flight = NULL;
}
