/* cp.async, landing late: bytes are there when the thread that started the copy has waited for its
 * group; until then NaNs stand in their place. */
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/shim/parts.h"

static struct copy *copy_add(struct thread *t)
{
	if (t->ncopies == t->capcopies) {
		const int cap = t->capcopies ? 2 * t->capcopies : 16;
		struct copy *p = realloc(t->copies, (size_t)cap * sizeof *p);
		if (!p)
			return NULL;
		t->copies = p;
		t->capcopies = cap;
	}
	return &t->copies[t->ncopies++];
}

static void mark(struct shim *s, const struct copy *c, const struct thread *t, bool in_flight)
{
	const long at = shim_shared_offset(s, c->to);
	for (int i = 0; s->checked && i < c->bytes; i++)
		s->in_flight[at + i] = in_flight ? (uint16_t)(t->number + 1) : 0;
}

void shim_copy_start(
	struct shim *s, void *shared, const void *global, int bytes, int have, struct shim_site at)
{
	struct thread *t = s->current;
	const size_t past = (size_t)bytes - 1;
	if (shim_shared_offset(s, shared) < 0 || shim_shared_offset(s, (char *)shared + past) < 0)
		shim_fail(s, &at, "cp_async_%d: it writes outside of shared memory", bytes);
	if (have > 0 && shim_shared_offset(s, global) >= 0)
		shim_fail(s, &at, "cp_async_%d: it reads shared memory", bytes);
	if ((uintptr_t)shared & past || (uintptr_t)global & past)
		shim_fail(s, &at, "cp_async_%d: an address is no multiple of %d", bytes, bytes);
	if (have < 0 || have > bytes)
		shim_fail(s, &at, "cp_async_%d: %d bytes of it", bytes, have);
	if (s->checked) {
		const void *pc = __builtin_return_address(0);
		if (have)
			shim_access(s, global, (size_t)have, SHIM_READ, pc);
		shim_access(s, shared, (size_t)bytes, SHIM_WRITE, pc);
	}
	struct copy *c = copy_add(t);
	if (!c) {
		shim_fail(s, &at, "out of memory");
		return;
	}
	*c = (struct copy){
		.to = shared, .from = global, .bytes = bytes, .have = have, .group = t->groups};
	if (s->launch->order == SHIM_REVERSE)
		memcpy(c->data, global, (size_t)have);
	memset(shared, 0xFF, (size_t)bytes);
	mark(s, c, t, true);
}

void shim_copy_commit(struct shim *s)
{
	s->current->groups++;
}

void shim_copy_wait(struct shim *s, int n)
{
	struct thread *t = s->current;
	int kept = 0;
	for (int i = 0; i < t->ncopies; i++) {
		const struct copy c = t->copies[i];
		if (c.group >= t->groups - n) {
			t->copies[kept++] = c;
			continue;
		}
		mark(s, &c, t, false);
		/* it lands now, for those that come behind the next barrier */
		if (s->checked)
			shim_access(
				s, c.to, (size_t)c.bytes, SHIM_WRITE, __builtin_return_address(0));
		memset(c.to, 0, (size_t)c.bytes);
		memcpy(c.to, s->launch->order == SHIM_REVERSE ? c.data : c.from, (size_t)c.have);
	}
	t->ncopies = kept;
}
