/* Ruin and recreate: delete some recomputations, move some ops, choose other ways, make the
 * sequence fit again, keep the result when it is cheaper or (less and less often) a little dearer.
 */
#include "planner/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE = 300, WINDOW_OPS = 1500, WINDOW_SLOTS = 4000 };

struct improver {
	struct search *x;
	struct state *s;
	struct seq best;
	int *best_way; /* [n] */
	double best_cost;
	int *extra, nextra, cap_extra; /* runs of ops that run several times, but the first of each;
					* fetches */
	int *several, nseveral;        /* ops with more than one way */
	int from, to;                  /* the slots at hand */
};

/* A window of a long sequence, all of a short one. */
static void pick_window(struct improver *m)
{
	m->from = 0;
	m->to = m->s->nslot - 1;
	if (m->x->in->n <= WINDOW_OPS)
		return;
	int width = WINDOW_SLOTS * (m->s->nslot / (4 * m->x->in->n) + 1);
	m->from = search_below(m->x, m->to - width / 2);
	if (m->from + width < m->to)
		m->to = m->from + width;
}

static bool find_extras(struct improver *m)
{
	const struct state *s = m->s;
	if (m->to - m->from + 1 > m->cap_extra) {
		int cap = (m->to - m->from + 1) * 2;
		int *e = realloc(m->extra, (size_t)cap * sizeof *e);
		if (!e) {
			m->x->nomem = true;
			return false;
		}
		m->extra = e;
		m->cap_extra = cap;
	}
	m->nextra = 0;
	for (int i = m->from; i <= m->to; i++) {
		int r = s->at[i], o = r < 0 ? -1 : s->run[r].op;
		const bool fetches = o >= 0 && s->in->p->op[o].fetches;
		if (o < 0 || (s->count[o] < 2 && !fetches))
			continue;
		bool first = !fetches;
		for (int k = s->first[o]; k >= 0 && first; k = s->run[k].next)
			first = s->run[k].key >= s->run[r].key;
		if (!first)
			m->extra[m->nextra++] = r;
	}
	m->x->work += 0.1 * (m->to - m->from);
	return true;
}

/* Take away the extra runs from .. to with the given chance. */
static void ruin(struct improver *m, int from, int to, double chance)
{
	for (int i = from; i < to && i < m->nextra; i++)
		if (chance >= 1 || search_uniform(m->x) < chance) {
			int r = m->extra[i];
			m->extra[i] = -1;
			if (r >= 0)
				state_take(m->s, r);
		}
}

/* Which of the extra runs go. */
static void ruin_runs(struct improver *m)
{
	struct search *x = m->x;
	double z = search_uniform(x);
	if (m->nextra == 0)
		return;
	int c = search_below(x, m->nextra);
	if (z < 0.4) {
		int most = m->nextra / 3 < 30 ? m->nextra / 3 : 30;
		ruin(m, c, c + 1 + search_below(x, most > 1 ? most : 1), 1);
	} else if (z < 0.6) {
		double u = search_uniform(x), p = 0.02 + 0.25 * u * u;
		ruin(m, 0, m->nextra, m->nextra > 400 ? p * 400 / m->nextra : p);
	} else if (z < 0.75) {
		int o = m->s->run[m->extra[c]].op, near = 1 + search_below(x, 8);
		for (int i = 0; i < m->nextra; i++)
			if (abs(m->s->run[m->extra[i]].op - o) < near)
				ruin(m, i, i + 1, 1);
	} else if (z < 0.76) {
		ruin(m, 0, m->nextra, m->nextra > 400 ? 400.0 / m->nextra : 1);
	} else {
		for (int k = search_below(x, 3); k >= 0; k--) {
			int i = search_below(x, m->nextra);
			ruin(m, i, i + 1, 1);
		}
	}
}

static int random_run(struct improver *m)
{
	for (int i = 0; i < 64; i++) {
		int slot = m->from + search_below(m->x, m->to - m->from + 1);
		int r = slot < m->s->nslot ? m->s->at[slot] : -1;
		if (r >= 0 && m->s->run[r].op >= 0)
			return r;
	}
	return -1;
}

/* Move a few runs where that leaves a sequence that can run. */
static void ruin_order(struct improver *m)
{
	struct search *x = m->x;
	struct state *s = m->s;
	for (int k = search_below(x, 4); k >= 0; k--) {
		int r = random_run(m), far = search_uniform(x) < 0.7 ? 20 : 200;
		if (r < 0)
			return;
		int mark = state_mark(s), bad = s->bad, o = s->run[r].op, to = slot_of(s, r);
		bool back = search_below(x, 2);
		for (int i = search_below(x, far); i >= 0 && to >= 0; i--) {
			if (back)
				to = slot_before(s, to);
			else
				while (to < s->nslot - 2 && s->at[++to] < 0)
					;
		}
		if (to == slot_of(s, r) || (to >= 0 && (s->at[to] < 0 || s->run[s->at[to]].op < 0)))
			continue;
		state_take(s, r);
		if (!state_put(s, to, &o, 1) || s->bad > bad)
			state_undo(s, mark);
	}
}

static void ruin_ways(struct improver *m)
{
	struct search *x = m->x;
	struct state *s = m->s;
	for (int k = search_below(x, 3); k >= 0; k--) {
		int o = m->several[search_below(x, m->nseveral)];
		int mark = state_mark(s), bad = s->bad, way = search_below(x, x->in->nway[o]);
		if (way == s->way[o])
			continue;
		state_set_way(s, o, way);
		if (!state_complete(s, o) || s->bad > bad)
			state_undo(s, mark);
	}
}

static bool remember(struct improver *m)
{
	m->best_cost = m->s->cost;
	memcpy(m->best_way, m->s->way, (size_t)m->x->in->n * sizeof *m->best_way);
	if (!state_store(m->s, &m->best))
		m->x->nomem = true;
	m->x->work += 0.5 * m->s->nslot;
	if (m->x->found)
		m->x->found(m->x->user, m->best_cost);
	return true;
}

static bool round_of(struct improver *m, double heat)
{
	struct search *x = m->x;
	struct state *s = m->s;
	int n = x->in->n, slots = s->nslot;
	double before = s->cost, above = before - x->in->once_cost;
	pick_window(m);
	if (!find_extras(m))
		return false;
	ruin_runs(m);
	if (m->nseveral && search_uniform(x) < 0.3)
		ruin_ways(m);
	if (search_uniform(x) < 0.25)
		ruin_order(m);
	int effort = n > 1500 ? 3 : n > 400 ? 5 : 8;
	bool ok = repair(x, s, before + 0.05 * above + 1e-9 * before, effort, true);
	if (ok && (search_uniform(x) < 0.5 || s->cost < before * 1.002))
		polish(x, s, (int)((int64_t)m->from * s->nslot / slots),
			(int)((int64_t)m->to * s->nslot / slots) + 1);
	if (!ok || s->cost >= before - heat * log(search_uniform(x) + 1e-300)) {
		state_undo(s, 0);
		return false;
	}
	state_commit(s);
	return s->cost < m->best_cost * (1 - 1e-12) && remember(m);
}

/* Back to the best, with slots spread evenly. */
static void reload(struct improver *m)
{
	if (!state_load(m->s, &m->best, m->best_way, m->s->target))
		m->x->nomem = true;
}

static void anneal(struct improver *m, double stop_cost)
{
	struct search *x = m->x;
	double start = x->work, span = x->limit - x->work;
	int since = 0;
	while (!search_done(x) && m->best_cost > stop_cost) {
		double left = 1 - (x->work - start) / span;
		double heat = (m->s->cost - x->in->once_cost) * 0.01 * (left > 0 ? left : 0) +
			      1e-15 * m->s->cost;
		since = round_of(m, heat) ? 0 : since + 1;
		x->nomem = x->nomem || m->s->nomem;
		if (since >= PATIENCE && m->s->cost > m->best_cost) {
			reload(m);
			since = 0;
		}
		if (m->s->nslot > 24 * (m->s->runs.n + 8) && state_store(m->s, &x->tmp) &&
			!state_load(m->s, &x->tmp, m->s->way, m->s->target))
			x->nomem = true;
	}
	reload(m);
}

void improve(struct search *x, struct state *s, double stop_cost)
{
	struct improver m = {.x = x, .s = s};
	size_t n = (size_t)x->in->n + 1;
	m.best_way = malloc(n * sizeof(int));
	m.several = malloc(n * sizeof(int));
	if (!m.best_way || !m.several) {
		x->nomem = true;
	} else if (state_fits(s)) {
		state_commit(s);
		remember(&m);
		for (int o = 0; o < x->in->n; o++)
			if (x->in->nway[o] > 1)
				m.several[m.nseveral++] = o;
		anneal(&m, stop_cost);
	}
	free(m.best_way);
	free(m.several);
	free(m.extra);
	seq_free(&m.best);
}
