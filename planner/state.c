#include "planner/state.h"

#include <stdlib.h>
#include <string.h>

static const struct way *way_of(const struct state *s, int op)
{
	return &s->in->way[op][s->way[op]];
}

/* --- Pools: numbers are given back in the reverse order of taking, so that undoing an edit gives
 * every run, lifetime and read the number it had. --- */

static bool pool_room(struct state *s, struct pool *p, void **list, size_t size)
{
	if (p->free >= 0 || p->n < p->cap)
		return true;
	int cap = p->cap + p->cap / 2 + 64;
	void *q = realloc(*list, (size_t)cap * size);
	if (!q) {
		s->nomem = true;
		return false;
	}
	*list = q;
	p->cap = cap;
	return true;
}

static int new_run(struct state *s)
{
	if (!pool_room(s, &s->runs, (void **)&s->run, sizeof *s->run))
		return -1;
	int r = s->runs.free;
	if (r < 0)
		return s->runs.n++;
	s->runs.free = s->run[r].next;
	return r;
}

static int new_life(struct state *s)
{
	if (!pool_room(s, &s->lives, (void **)&s->life, sizeof *s->life))
		return -1;
	int l = s->lives.free;
	if (l < 0)
		return s->lives.n++;
	s->lives.free = s->life[l].next;
	return l;
}

static int new_use(struct state *s)
{
	if (!pool_room(s, &s->uses, (void **)&s->use, sizeof *s->use))
		return -1;
	int u = s->uses.free;
	if (u < 0)
		return s->uses.n++;
	s->uses.free = s->use[u].next;
	return u;
}

static void free_run(struct state *s, int r)
{
	s->run[r].next = s->runs.free;
	s->run[r].op = -1;
	s->runs.free = r;
}

static void free_life(struct state *s, int l)
{
	s->life[l].next = s->lives.free;
	s->life[l].run = -1;
	s->lives.free = l;
}

static void free_use(struct state *s, int u)
{
	s->use[u].next = s->uses.free;
	s->uses.free = u;
}

/* --- Units --- */

static void add_units(struct state *s, int from, int to, int64_t units)
{
	if (s->loading)
		return;
	*s->work += 2 + (to - from) * 0.004;
	profile_add(&s->over, from, to, units);
}

/* What the run's in-place pairs save: each input and output once, of inputs that end with it. */
int64_t state_saved(const struct state *s, int r)
{
	const struct way *w = way_of(s, s->run[r].op);
	int in[16], out[16], n = 0;
	int64_t sum = 0;
	for (int k = 0; k < w->npair && n < 16; k++) {
		int l = state_life(s, w->pair[k].in, s->run[r].key);
		bool take = s->life[l].end == s->run[r].key && s->life[l].run >= 0;
		for (int i = 0; i < n; i++)
			take = take && in[i] != w->pair[k].in && out[i] != w->pair[k].out;
		if (!take)
			continue;
		in[n] = w->pair[k].in;
		out[n++] = w->pair[k].out;
		sum += s->size[w->pair[k].out];
	}
	return sum;
}

static void save_at(struct state *s, int key)
{
	int r = s->at[key >> 1];
	if (s->loading || r < 0 || s->run[r].op < 0 || !s->pairs[s->run[r].op])
		return;
	int64_t now = state_saved(s, r);
	if (now != s->run[r].saved)
		add_units(s, key >> 1, key >> 1, s->run[r].saved - now);
	s->run[r].saved = now;
}

static void set_end(struct state *s, int l, int key)
{
	struct lifetime *f = &s->life[l];
	int old = f->end;
	if (key == old)
		return;
	f->end = key;
	int64_t size = s->size[f->tensor];
	if (f->run < 0 || size == 0)
		return;
	if (key >> 1 > old >> 1)
		add_units(s, (old >> 1) + 1, key >> 1, size);
	else
		add_units(s, (key >> 1) + 1, old >> 1, -size);
	save_at(s, old);
	save_at(s, key);
}

static int last_read(const struct state *s, int l)
{
	int end = s->life[l].key;
	for (int u = s->life[l].use; u >= 0; u = s->use[u].next)
		if (s->run[s->use[u].run].key > end)
			end = s->run[s->use[u].run].key;
	return end;
}

/* --- Reads --- */

static void attach(struct state *s, int u, int l)
{
	struct lifetime *f = &s->life[l];
	s->use[u].life = l;
	s->use[u].prev = -1;
	s->use[u].next = f->use;
	if (f->use >= 0)
		s->use[f->use].prev = u;
	f->use = u;
	f->nuse++;
	s->bad += l < s->in->m;
}

static void detach(struct state *s, int u)
{
	struct use *k = &s->use[u];
	struct lifetime *f = &s->life[k->life];
	if (k->prev >= 0)
		s->use[k->prev].next = k->next;
	else
		f->use = k->next;
	if (k->next >= 0)
		s->use[k->next].prev = k->prev;
	f->nuse--;
	s->bad -= k->life < s->in->m;
}

static void suspect(struct state *s, int run)
{
	if (s->nsuspect == s->cap_suspect) {
		int cap = s->cap_suspect * 2 + 64;
		int *p = realloc(s->suspect, (size_t)cap * sizeof *p);
		if (!p) {
			s->nomem = true;
			return;
		}
		s->suspect = p;
		s->cap_suspect = cap;
	}
	s->suspect[s->nsuspect++] = run;
}

void state_bind(struct state *s, int r, int t)
{
	int u = new_use(s), key = s->run[r].key;
	if (u < 0)
		return;
	/* placed updates read what the op of their slot makes, and what earlier ones there make */
	int l = state_life(s, t, key & 1 ? key + 1 : key);
	s->use[u].run = r;
	s->use[u].sibling = s->run[r].use;
	s->run[r].use = u;
	attach(s, u, l);
	if (key > s->life[l].end)
		set_end(s, l, key);
}

static void unbind(struct state *s, int u)
{
	int l = s->use[u].life;
	detach(s, u);
	if (s->run[s->use[u].run].key == s->life[l].end)
		set_end(s, l, last_read(s, l));
	if (s->life[l].nuse == 0 && s->life[l].run >= 0)
		suspect(s, s->life[l].run);
	free_use(s, u);
}

/* --- Outputs --- */

/* Reads of `from` after `key` become reads of `to`; `to` and `from` get their ends. */
static void hand_over(struct state *s, int from, int to, int key)
{
	if (s->loading) /* runs come in order: nothing is read later */
		return;
	int next, end = s->life[to].end;
	for (int u = s->life[from].use; u >= 0; u = next) {
		next = s->use[u].next;
		int k = s->run[s->use[u].run].key;
		if (k < key || (k == key && !(key & 1))) /* placed updates read earlier ones */
			continue;
		detach(s, u);
		attach(s, u, to);
		end = k > end ? k : end;
	}
	set_end(s, to, end);
	if (s->life[from].nuse == 0 && s->life[from].run >= 0)
		suspect(s, s->life[from].run);
	set_end(s, from, last_read(s, from));
}

static void start_life(struct state *s, int r, int t)
{
	int l = new_life(s), key = s->run[r].key;
	if (l < 0)
		return;
	int before = state_life(s, t, key);
	struct lifetime *f = &s->life[l];
	*f = (struct lifetime){.tensor = t,
		.run = r,
		.key = key,
		.end = key,
		.prev = before,
		.next = s->life[before].next,
		.sibling = s->run[r].life,
		.use = -1};
	s->life[before].next = l;
	if (f->next >= 0)
		s->life[f->next].prev = l;
	else
		s->last[t] = l;
	s->run[r].life = l;
	if (s->size[t] > 0)
		add_units(s, key >> 1, key >> 1, s->size[t]);
	hand_over(s, before, l, key);
}

static void end_life(struct state *s, int l)
{
	struct lifetime *f = &s->life[l];
	int before = f->prev, end = s->life[before].end, next;
	for (int u = f->use; u >= 0; u = next) {
		next = s->use[u].next;
		int k = s->run[s->use[u].run].key;
		detach(s, u);
		attach(s, u, before);
		end = k > end ? k : end;
	}
	set_end(s, l, f->key);
	if (s->size[f->tensor] > 0)
		add_units(s, f->key >> 1, f->key >> 1, -s->size[f->tensor]);
	s->life[before].next = f->next;
	if (f->next >= 0)
		s->life[f->next].prev = before;
	else
		s->last[f->tensor] = before;
	free_life(s, l);
	set_end(s, before, end);
}

/* --- Runs --- */

void state_link(struct state *s, int r)
{
	int o = s->run[r].op;
	const struct way *w = way_of(s, o);
	*s->work += 4 + 2 * (w->nin + w->nout);
	s->run[r].life = s->run[r].use = -1;
	s->run[r].saved = 0;
	for (int k = 0; k < w->nin; k++)
		state_bind(s, r, w->in[k]);
	for (int k = 0; k < w->nout; k++)
		start_life(s, r, w->out[k]);
	if (w->ws > 0)
		add_units(s, slot_of(s, r), slot_of(s, r), state_units(s, w->ws));
	s->cost += w->cost;
	if (s->run[r].key & 1)
		return;
	s->at[slot_of(s, r)] = r;
	if (s->loading)
		return;
	profile_switch(&s->over, slot_of(s, r), true);
	save_at(s, s->run[r].key);
}

static void unlink_run(struct state *s, int r)
{
	const struct way *w = way_of(s, s->run[r].op);
	*s->work += 4 + 2 * (w->nin + w->nout);
	s->cost -= w->cost;
	if (w->ws > 0)
		add_units(s, slot_of(s, r), slot_of(s, r), -state_units(s, w->ws));
	if (s->run[r].saved)
		add_units(s, slot_of(s, r), slot_of(s, r), s->run[r].saved);
	s->run[r].saved = 0;
	if (!(s->run[r].key & 1)) {
		s->at[slot_of(s, r)] = -1;
		profile_switch(&s->over, slot_of(s, r), false);
	}
	for (int l = s->run[r].life, next; l >= 0; l = next) {
		next = s->life[l].sibling;
		end_life(s, l);
	}
	for (int u = s->run[r].use, next; u >= 0; u = next) {
		next = s->use[u].sibling;
		unbind(s, u);
	}
}

/* --- Updates that follow a rule, residents read too late --- */

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
	for (int i = s->reader_at[w]; i < s->reader_at[w + 1]; i++) {
		int o = s->reader[i];
		if (o == but || !reads(way_of(s, o), w))
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

static void settle(struct state *s, int o)
{
	for (int i = s->follow_at[o]; i < s->follow_at[o + 1]; i++) {
		int r = s->updates[s->follow[i]], slot = state_place(s, s->follow[i]);
		if (slot == slot_of(s, r))
			continue;
		unlink_run(s, r);
		s->run[r].key = 2 * slot + 1;
		state_link(s, r);
	}
	for (int i = s->guard_at[o]; i < s->guard_at[o + 1]; i++)
		state_guard(s, s->guard[i]);
}

/* --- Edits --- */

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
	int r = new_run(s);
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
	settle(s, op);
}

static void take(struct state *s, int r)
{
	int op = s->run[r].op;
	s->bad -= counted_bad(s, op);
	s->count[op]--;
	s->bad += counted_bad(s, op);
	unlink_run(s, r);
	if (s->run[r].prev >= 0)
		s->run[s->run[r].prev].next = s->run[r].next;
	else
		s->first[op] = s->run[r].next;
	if (s->run[r].next >= 0)
		s->run[s->run[r].next].prev = s->run[r].prev;
	free_run(s, r);
	settle(s, op);
}

static void set_way(struct state *s, int op, int way)
{
	int last = -1;
	for (int r = s->first[op]; r >= 0; r = s->run[r].next) {
		unlink_run(s, r);
		last = r;
	}
	s->way[op] = way;
	for (int r = last; r >= 0; r = s->run[r].prev)
		state_link(s, r);
	settle(s, op);
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
