/* What a sequence needs at every step: lifetimes, in-place pairs, live bytes.
 * Requires: ways of which each op's inputs are made by the ways of their producers.
 * Floating updates are placed right behind the latest production of what they read and the last
 * read of what they replace, so that gradients die as soon as they can, or behind x->later. */
#include "planner/search/solver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool grow(void **p, int *cap, int n, size_t size)
{
	if (n <= *cap)
		return true;
	int c = n + n / 2 + 16;
	void *q = realloc(*p, (size_t)c * size);
	if (!q)
		return false;
	*p = q;
	*cap = c;
	return true;
}

#define GROW(ptr, cap, n) grow((void **)&(ptr), &(cap), (n), sizeof *(ptr))

static bool grow_steps(struct sim *s, int n)
{
	if (n <= s->cap_step)
		return true;
	int cap = 0;
	bool ok = GROW(s->step, cap, n);
	cap = 0;
	ok = GROW(s->core, cap, n) && ok;
	cap = 0;
	ok = GROW(s->life_at, cap, n) && ok;
	cap = 0;
	ok = GROW(s->mem, cap, n) && ok;
	cap = 0;
	ok = GROW(s->change, cap, n) && ok;
	if (ok)
		s->cap_step = cap;
	return ok;
}

void sim_free(struct sim *s)
{
	free(s->step);
	free(s->core);
	free(s->life);
	free(s->life_at);
	free(s->pair);
	free(s->last);
	free(s->mem);
	free(s->change);
	*s = (struct sim){0};
}

bool search_init(struct search *x, struct arena *a, const struct inst *in)
{
	*x = (struct search){.in = in, .a = a, .rng = SEARCH_SEED, .limit = 1e18};
	size_t n = (size_t)in->n + 1, m = (size_t)in->m + 1;
	x->lastprod = ARENA_ARRAY(a, int, m);
	x->lastread = ARENA_ARRAY(a, int, m);
	x->trigger = ARENA_ARRAY(a, int, n);
	x->next = ARENA_ARRAY(a, int, n);
	x->count = ARENA_ARRAY(a, int, n);
	x->mark = ARENA_ARRAY(a, int, n);
	x->killed = ARENA_ARRAY(a, bool, m);
	x->s.last = malloc(m * sizeof(int));
	bool ok = x->lastprod && x->lastread && x->trigger && x->next && x->count && x->mark &&
		  x->killed && x->s.last;
	x->nomem = !ok;
	return ok;
}

void search_free(struct search *x)
{
	sim_free(&x->s);
	free(x->head);
	seq_free(&x->tmp);
	seq_free(&x->list);
}

bool search_done(struct search *x)
{
	if (x->nomem || x->work > x->limit || onlooker_stops(x->in->onlooker))
		return true;
	if (x->until > 0) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec > x->until;
	}
	return false;
}

/* splitmix64 (Steele, Lea, Flood 2014) */
uint64_t search_random(struct search *x)
{
	uint64_t z = (x->rng += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

double search_uniform(struct search *x)
{
	return (double)(search_random(x) >> 11) * 0x1p-53;
}

int search_below(struct search *x, int n)
{
	return n > 0 ? (int)(search_random(x) % (uint64_t)n) : 0;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

/* Where each floating update goes: x->trigger[o] is the position it follows, -1 for the start. */
static bool place_floats(struct search *x, const struct seq *q, const int *way)
{
	const struct inst *in = x->in;
	for (int t = 0; t < in->m; t++)
		x->lastprod[t] = x->lastread[t] = -1;
	for (int i = 0; i < q->n; i++) {
		const struct way *w = &in->way[q->op[i]][way[q->op[i]]];
		for (int k = 0; k < w->nout; k++)
			x->lastprod[w->out[k]] = i;
		for (int k = 0; k < w->nres; k++)
			x->lastread[w->res[k]] = i;
	}
	for (int i = 0; i <= q->n; i++)
		x->head[i] = -1;
	for (int f = 0; f < in->nfloat; f++) {
		int o = in->floats[f], at = -1;
		const struct way *w = &in->way[o][0];
		for (int k = 0; k < w->nin; k++) {
			int p = in->p->tensor[w->in[k]].producer;
			int made = in->floating[p] ? x->trigger[p] : x->lastprod[w->in[k]];
			if (made < 0 && !in->floating[p])
				return false;
			at = max_int(at, made);
		}
		for (int k = 0; k < w->nkill; k++)
			at = max_int(at, x->lastread[w->kill[k]]);
		at = x->later ? max_int(at, x->later[o]) : at;
		for (int k = 0; k < w->nres; k++)
			x->lastread[w->res[k]] = max_int(x->lastread[w->res[k]], at);
		x->trigger[o] = at;
	}
	for (int f = in->nfloat - 1; f >= 0; f--) {
		int o = in->floats[f];
		x->next[o] = x->head[x->trigger[o] + 1];
		x->head[x->trigger[o] + 1] = o;
	}
	return true;
}

static void expand(struct search *x, const struct seq *q, struct sim *s)
{
	int n = 0;
	for (int i = 0; i <= q->n; i++) {
		for (int o = x->head[i]; o >= 0; o = x->next[o]) {
			s->step[n] = o;
			s->core[n++] = i;
		}
		if (i < q->n) {
			s->step[n] = q->op[i];
			s->core[n++] = i;
		}
	}
	s->n = n;
}

/* One step: bind its reads, end its inputs, start its outputs. */
static bool run_step(struct search *x, struct sim *s, int at, const struct way *w)
{
	const struct inst *in = x->in;
	if (!GROW(s->life, s->cap_life, s->nlife + w->nout) ||
		!GROW(s->pair, s->cap_pair, s->npair + w->npair)) {
		x->nomem = true;
		return false;
	}
	for (int k = 0; k < w->nres; k++)
		if (x->killed[w->res[k]])
			return false;
	for (int k = 0; k < w->nin; k++) {
		int l = s->last[w->in[k]];
		if (l < 0)
			return false;
		s->life[l].end = at;
		s->life[l].nuse++;
	}
	for (int k = 0; k < w->nkill; k++)
		x->killed[w->kill[k]] = true;
	for (int k = 0; k < w->npair; k++) {
		/* the output's lifetime is found when ends are known */
		s->pair[s->npair].in = s->last[w->pair[k].in];
		s->pair[s->npair++].out = w->pair[k].out;
	}
	for (int k = 0; k < w->nout; k++) {
		int t = w->out[k];
		s->life[s->nlife] = (struct life){
			.tensor = t, .start = at, .end = at, .size = in->size[t]};
		s->last[t] = s->nlife++;
	}
	s->mem[at] += w->ws;
	return true;
}

/* Of the pairs offered at each step take those whose input is read there for the last time. */
static void take_pairs(struct search *x, struct sim *s, const int *way)
{
	int offered = 0, taken = 0;
	int *life = x->lastprod, *paired = x->lastread; /* done with: by output, by tensor */
	for (int t = 0; t < x->in->m; t++)
		paired[t] = -1;
	for (int at = 0; at < s->n; at++) {
		const struct way *w = &x->in->way[s->step[at]][way[s->step[at]]];
		for (int k = 0; k < w->nout && w->npair > 0; k++)
			life[w->out[k]] = s->life_at[at] + k;
		for (int k = 0; k < w->npair; k++) {
			struct life_pair pr = s->pair[offered++];
			int in = s->life[pr.in].tensor;
			if (s->life[pr.in].end != at || paired[in] == at || paired[pr.out] == at)
				continue;
			paired[in] = paired[pr.out] = at;
			s->pair[taken++] = (struct life_pair){.out = life[pr.out], .in = pr.in};
			s->mem[at] -= s->life[life[pr.out]].size;
		}
	}
	s->npair = taken;
}

/* Turns what steps need for themselves (in s->mem) into what is live at each. */
static void sum_memory(struct search *x, struct sim *s, int64_t *change)
{
	for (int at = 0; at <= s->n + 1; at++)
		change[at] = 0;
	for (int l = 0; l < s->nlife; l++) {
		change[s->life[l].start] += s->life[l].size;
		change[s->life[l].end + 1] -= s->life[l].size;
	}
	s->peak = 0;
	s->area = 0;
	int64_t live = x->in->resident;
	for (int at = 0; at < s->n; at++) {
		live += change[at];
		s->mem[at] += live;
		s->peak = s->mem[at] > s->peak ? s->mem[at] : s->peak;
		s->area += (double)s->mem[at];
	}
}

bool simulate(struct search *x, const struct seq *q, const int *way, struct sim *s)
{
	const struct inst *in = x->in;
	int n = q->n + in->nfloat;
	x->work += 2.5 * (n + 1);
	if (!grow_steps(s, n + 3) || !GROW(x->head, x->cap_head, q->n + 2)) {
		x->nomem = true;
		return false;
	}
	if (!place_floats(x, q, way))
		return false;
	expand(x, q, s);
	memset(s->mem, 0, (size_t)(n + 2) * sizeof *s->mem);
	memset(x->killed, 0, (size_t)in->m * sizeof *x->killed);
	for (int t = 0; t < in->m; t++)
		s->last[t] = -1;
	s->nlife = s->npair = 0;
	s->cost = 0;
	for (int at = 0; at < n; at++) {
		const struct way *w = &in->way[s->step[at]][way[s->step[at]]];
		s->life_at[at] = s->nlife;
		s->cost += w->cost;
		if (!run_step(x, s, at, w))
			return false;
	}
	s->life_at[n] = s->nlife;
	for (int t = 0; t < in->m; t++)
		if (in->keep[t]) {
			if (s->last[t] < 0)
				return false;
			s->life[s->last[t]].end = n;
			s->life[s->last[t]].nuse++;
		}
	take_pairs(x, s, way);
	sum_memory(x, s, s->change);
	return true;
}

/* Mark the runs that something reads from; true when some can go. */
static bool find_dead(struct search *x, struct seq *q, const struct sim *s)
{
	const struct inst *in = x->in;
	bool any = false;
	memset(x->count, 0, (size_t)in->n * sizeof *x->count);
	for (int i = 0; i < q->n; i++)
		x->count[q->op[i]]++;
	for (int at = 0; at < s->n; at++) {
		int o = s->step[at];
		if (in->floating[o])
			continue;
		bool used = s->life_at[at] == s->life_at[at + 1];
		for (int l = s->life_at[at]; l < s->life_at[at + 1]; l++)
			used = used || s->life[l].nuse > 0;
		if (!used && (x->count[o] >= 2 || in->optional[o])) {
			x->count[o]--;
			q->op[s->core[at]] = -1;
			any = true;
		} else if (x->count[o] >= 2 && s->life_at[at] == s->life_at[at + 1]) {
			x->count[o]--;
			q->op[s->core[at]] = -1;
			any = true;
		}
	}
	return any;
}

bool simulate_clean(struct search *x, struct seq *q, const int *way, struct sim *s)
{
	for (;;) {
		if (!simulate(x, q, way, s))
			return false;
		if (!find_dead(x, q, s))
			return true;
		int n = 0;
		for (int i = 0; i < q->n; i++)
			if (q->op[i] >= 0)
				q->op[n++] = q->op[i];
		q->n = n;
	}
}
