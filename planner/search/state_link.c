/* What one run of an op is bound to: the lifetimes it reads, those it starts; live bytes follow. */
#include "planner/search/state.h"

#include <stdlib.h>

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

int state_new_run(struct state *s)
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

void state_free_run(struct state *s, int r)
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
int64_t state_saved(struct state *s, int r)
{
	const struct way *w = way_of(s, s->run[r].op);
	int64_t sum = 0;
	for (int k = 0; k < w->npair; k++) {
		int in = w->pair[k].in, out = w->pair[k].out, l = state_life(s, in, s->run[r].key);
		if (s->life[l].end != s->run[r].key || s->life[l].run < 0 || s->paired[in] ||
			s->paired[out])
			continue;
		s->paired[in] = s->paired[out] = true;
		sum += s->size[out];
	}
	for (int k = 0; k < w->npair; k++)
		s->paired[w->pair[k].in] = s->paired[w->pair[k].out] = false;
	state_count(s, w->npair);
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
	state_count(s, s->life[l].nuse);
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
	state_count(s, s->life[from].nuse);
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

void state_unlink(struct state *s, int r)
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
