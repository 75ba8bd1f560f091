/* Updates that follow a rule; residents read too late. */
#include "planner/search/state.h"

static bool reads(const struct way *w, int resident)
{
	for (int k = 0; k < w->nres; k++)
		if (w->res[k] == resident)
			return true;
	return false;
}

/* The last slot at which the resident is read by an op other than `but`; -1 when none does. */
static int last_reader(const struct state *s, int w, int but)
{
	int slot = -1;
	state_count(s, s->reader_at[w + 1] - s->reader_at[w]);
	for (int i = s->reader_at[w]; i < s->reader_at[w + 1]; i++) {
		int o = s->reader[i];
		if (o == but || !reads(&s->in->way[o][s->way[o]], w))
			continue;
		for (int r = s->first[o]; r >= 0; r = s->run[r].next)
			slot = slot_of(s, r) > slot ? slot_of(s, r) : slot;
	}
	return slot;
}

int state_place(const struct state *s, int f)
{
	const struct way *w = &s->in->way[f][0];
	int slot = 0;
	for (int k = 0; k < w->nin; k++) {
		const struct lifetime *l = &s->life[s->last[w->in[k]]];
		if (l->run >= 0 && l->key >> 1 > slot)
			slot = l->key >> 1;
	}
	for (int k = 0; k < w->nkill; k++) {
		int read = last_reader(s, w->kill[k], f);
		slot = read > slot ? read : slot;
	}
	return slot;
}

void state_guard(struct state *s, int w)
{
	int r = s->first[s->killer[w]];
	bool late = r >= 0 && last_reader(s, w, s->killer[w]) > slot_of(s, r);
	s->bad += late - s->late[w];
	s->late[w] = late;
}

/* --- Updates whose place is to be found anew: the first in listed order on top. --- */

static void push(struct state *s, int f)
{
	if (s->pending[f])
		return;
	s->pending[f] = true;
	int k = s->nheap++;
	for (; k > 0 && s->heap[(k - 1) / 2] > f; k = (k - 1) / 2)
		s->heap[k] = s->heap[(k - 1) / 2];
	s->heap[k] = f;
}

static int pop(struct state *s)
{
	int top = s->heap[0], f = s->heap[--s->nheap], k = 0;
	for (int c = 1; c < s->nheap; c = 2 * k + 1) {
		c += c + 1 < s->nheap && s->heap[c + 1] < s->heap[c];
		if (s->heap[c] >= f)
			break;
		s->heap[k] = s->heap[c];
		k = c;
	}
	s->heap[k] = f;
	s->pending[top] = false;
	return top;
}

/* What op o decides, its runs being where they are now. */
static void decide(struct state *s, int o)
{
	for (int i = s->follow_at[o]; i < s->follow_at[o + 1]; i++)
		push(s, s->follow[i]);
	for (int i = s->guard_at[o]; i < s->guard_at[o + 1]; i++)
		state_guard(s, s->guard[i]);
}

void state_settle(struct state *s, int o)
{
	decide(s, o);
	state_count(s, 8 * s->nheap);
	while (s->nheap > 0) {
		int f = pop(s), r = s->updates[f], slot = state_place(s, f);
		if (slot == slot_of(s, r))
			continue;
		state_unlink(s, r);
		s->run[r].key = 2 * slot + 1;
		state_link(s, r);
		decide(s, f);
	}
}
