/* Edits, and taking them back. */
#include "planner/search/state.h"

#include <stdlib.h>
#include <string.h>

static void note(struct state *s, struct edit e)
{
	if (s->nlog == s->cap_log) {
		int cap = s->cap_log * 2 + 64;
		struct edit *p = realloc(s->log, (size_t)cap * sizeof *p);
		if (!p) {
			s->nomem = true;
			return;
		}
		s->log = p;
		s->cap_log = cap;
	}
	s->log[s->nlog++] = e;
}

static int counted_bad(const struct state *s, int o)
{
	return s->count[o] == 0 ? !s->in->optional[o] : s->in->once[o] && s->count[o] > 1;
}

/* `after`: the run of the op that it follows in the op's list, -1 for none. */
static void put(struct state *s, int op, int slot, int after)
{
	int r = state_new_run(s);
	if (r < 0)
		return;
	s->bad -= counted_bad(s, op);
	s->count[op]++;
	s->bad += counted_bad(s, op);
	int *from = after >= 0 ? &s->run[after].next : &s->first[op];
	s->run[r] = (struct run){
		.op = op, .key = 2 * slot, .next = *from, .prev = after, .life = -1, .use = -1};
	if (*from >= 0)
		s->run[*from].prev = r;
	*from = r;
	state_link(s, r);
	state_settle(s, op);
}

static void take(struct state *s, int r)
{
	int op = s->run[r].op;
	s->bad -= counted_bad(s, op);
	s->count[op]--;
	s->bad += counted_bad(s, op);
	state_unlink(s, r);
	if (s->run[r].prev >= 0)
		s->run[s->run[r].prev].next = s->run[r].next;
	else
		s->first[op] = s->run[r].next;
	if (s->run[r].next >= 0)
		s->run[s->run[r].next].prev = s->run[r].prev;
	state_free_run(s, r);
	state_settle(s, op);
}

static void set_way(struct state *s, int op, int way)
{
	int last = -1;
	for (int r = s->first[op]; r >= 0; r = s->run[r].next) {
		state_unlink(s, r);
		last = r;
	}
	s->way[op] = way;
	for (int r = last; r >= 0; r = s->run[r].prev)
		state_link(s, r);
	state_settle(s, op);
}

void state_take(struct state *s, int run)
{
	if (s->nomem)
		return;
	note(s, (struct edit){EDIT_TAKE, s->run[run].op, slot_of(s, run), s->run[run].prev});
	take(s, run);
}

void state_set_way(struct state *s, int op, int way)
{
	if (s->nomem)
		return;
	note(s, (struct edit){.kind = EDIT_WAY, .op = op, .slot = s->way[op]});
	set_way(s, op, way);
}

void state_undo(struct state *s, int mark)
{
	while (s->nlog > mark && !s->nomem) {
		struct edit e = s->log[--s->nlog];
		if (e.kind == EDIT_PUT)
			take(s, s->at[e.slot]);
		else if (e.kind == EDIT_TAKE)
			put(s, e.op, e.slot, e.after);
		else
			set_way(s, e.op, e.slot);
	}
	s->nsuspect = 0;
}

void state_commit(struct state *s)
{
	s->nlog = 0;
	s->nsuspect = 0;
}

static bool is_dead(const struct state *s, int r)
{
	int o = s->run[r].op;
	if (o < 0 || s->in->floating[o] || !(s->count[o] > 1 || s->in->optional[o]))
		return false;
	for (int l = s->run[r].life; l >= 0; l = s->life[l].sibling)
		if (s->life[l].nuse > 0)
			return false;
	return s->count[o] > 1 || s->run[r].life >= 0;
}

void state_clean(struct state *s)
{
	while (s->nsuspect > 0 && !s->nomem) {
		int r = s->suspect[--s->nsuspect];
		if (is_dead(s, r))
			state_take(s, r);
	}
}

/* New numbers for all slots, with room between those that hold a run now or by the log, and for
 * `more` behind slot `after`. Others take the number of the one before. Gaps that were widened stay
 * wide until there are too many. *nslot out. */
static int *new_slots(const struct state *s, int after, int more, int *nslot)
{
	int *map = calloc((size_t)s->nslot, sizeof *map), n = after < 0 ? more : 0, last = -1,
	    held = 0;
	if (!map)
		return NULL;
	for (int i = 0; i < s->nlog; i++)
		if (s->log[i].kind != EDIT_WAY)
			map[s->log[i].slot] = 1;
	for (int i = 0; i < s->nslot; i++)
		held += s->at[i] >= 0 || map[i];
	bool narrow = s->nslot > 4 * STATE_GAP * held;
	for (int i = 0; i < s->nslot; i++) {
		if (s->at[i] >= 0 || map[i]) {
			n += narrow || i - last < STATE_GAP ? STATE_GAP : i - last;
			last = i;
		}
		map[i] = n;
		n += i == after ? more : 0;
	}
	*nslot = n + 1;
	return map;
}

static int moved(const int *map, int key)
{
	return key < 0 ? key : 2 * map[key >> 1] + (key & 1);
}

/* Spread the slots evenly, the log's too. */
static bool spread(struct state *s, int after, int more)
{
	int nslot, *map = new_slots(s, after, more, &nslot),
		   *at = map ? malloc((size_t)nslot * sizeof *at) : NULL;
	if (!at) {
		free(map);
		return false;
	}
	for (int i = 0; i < nslot; i++)
		at[i] = -1;
	for (int i = 0; i < s->nslot; i++)
		if (s->at[i] >= 0)
			at[map[i]] = s->at[i];
	for (int i = 0; i < s->nlog; i++)
		if (s->log[i].kind != EDIT_WAY)
			s->log[i].slot = map[s->log[i].slot];
	for (int r = 0; r < s->runs.n; r++)
		if (s->run[r].op >= 0 || r == s->end)
			s->run[r].key = moved(map, s->run[r].key);
	for (int l = 0; l < s->lives.n; l++) {
		struct lifetime *f = &s->life[l];
		if (f->run < 0 && l >= s->in->m)
			continue;
		f->key = moved(map, f->key);
		f->end = moved(map, f->end);
	}
	free(map);
	free(s->at);
	s->at = at;
	s->nslot = s->cap_slot = nslot;
	s->spreads++;
	*s->work += nslot + s->lives.n;
	return state_measure(s);
}

bool state_put(struct state *s, int after, const int *op, int n)
{
	if (s->nomem)
		return false;
	int to = after + 1, mark = after >= 0 ? s->at[after] : -1;
	for (;;) {
		while (s->at[to] < 0)
			to++;
		if (to - after - 1 >= n)
			break;
		if (!spread(s, after, n)) {
			s->nomem = true;
			return false;
		}
		after = mark >= 0 ? slot_of(s, mark) : -1;
		to = after + 1;
	}
	for (int i = 0; i < n && !s->nomem; i++) {
		int slot = after + (int)((int64_t)(to - after) * (i + 1) / (n + 1));
		note(s, (struct edit){.kind = EDIT_PUT, .op = op[i], .slot = slot});
		put(s, op[i], slot, -1);
	}
	return !s->nomem;
}

bool state_complete(struct state *s, int o)
{
	const struct way *w = &s->in->way[o][s->way[o]];
	for (int k = 0; k < w->nin; k++) {
		int p = s->in->p->tensor[w->in[k]].producer, slot = -1;
		if (!s->in->optional[p] || s->count[p] > 0)
			continue;
		const struct way *v = &s->in->way[p][s->way[p]];
		for (int i = 0; i < v->nin; i++) {
			int l = s->life[v->in[i]].next; /* the first that is not empty */
			if (l < 0)
				return false;
			int at = s->life[l].key >> 1;
			slot = at > slot ? at : slot;
		}
		if (!state_put(s, slot, &p, 1))
			return false;
	}
	return true;
}
