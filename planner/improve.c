/* Ruin and recreate: delete some recomputations, move some ops, choose other ways, make the
 * sequence fit again, keep the result when it is cheaper or (less and less often) a little dearer.
 */
#include "planner/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct improver {
	struct search *x;
	struct seq best, cur, q;
	int *best_way, *cur_way, *way;
	double best_cost, cur_cost;
	int *extra, nextra; /* positions of runs after the first of their op */
	int cap_extra;
	bool *seen;             /* [n] */
	int *several, nseveral; /* ops with more than one way */
	int start, moves;
};

static bool find_extras(struct improver *m)
{
	struct search *x = m->x;
	if (m->q.n > m->cap_extra) {
		int cap = m->q.n * 2;
		int *e = realloc(m->extra, (size_t)cap * sizeof *e);
		if (!e) {
			x->nomem = true;
			return false;
		}
		m->extra = e;
		m->cap_extra = cap;
	}
	memset(m->seen, 0, (size_t)x->in->n * sizeof *m->seen);
	m->nextra = 0;
	for (int i = 0; i < m->q.n; i++) {
		if (m->seen[m->q.op[i]])
			m->extra[m->nextra++] = i;
		m->seen[m->q.op[i]] = true;
	}
	return true;
}

/* Which of the extra runs go; marks them -1 in the sequence. */
static void ruin_runs(struct improver *m)
{
	struct search *x = m->x;
	int *op = m->q.op;
	double z = search_uniform(x);
	if (m->nextra == 0)
		return;
	int c = search_below(x, m->nextra);
	if (z < 0.4) {
		int most = m->nextra / 3 < 30 ? m->nextra / 3 : 30;
		int k = 1 + search_below(x, most > 1 ? most : 1);
		for (int i = c; i < m->nextra && i < c + k; i++)
			op[m->extra[i]] = -1;
	} else if (z < 0.6) {
		double u = search_uniform(x), p = 0.02 + 0.25 * u * u;
		for (int i = 0; i < m->nextra; i++)
			if (search_uniform(x) < p)
				op[m->extra[i]] = -1;
	} else if (z < 0.75) {
		int o = op[m->extra[c]], near = 1 + search_below(x, 8);
		for (int i = 0; i < m->nextra; i++)
			if (abs(op[m->extra[i]] - o) < near)
				op[m->extra[i]] = -1;
	} else if (z < 0.76) {
		for (int i = 0; i < m->nextra; i++)
			op[m->extra[i]] = -1;
	} else {
		for (int k = search_below(x, 3); k >= 0; k--)
			op[m->extra[search_below(x, m->nextra)]] = -1;
	}
	int n = 0;
	for (int i = 0; i < m->q.n; i++)
		if (op[i] >= 0)
			op[n++] = op[i];
	m->q.n = n;
}

/* Move a few runs where that leaves a sequence that can run. */
static void ruin_order(struct improver *m)
{
	struct search *x = m->x;
	for (int k = search_below(x, 4); k >= 0; k--) {
		int from = search_below(x, m->q.n);
		int far = search_uniform(x) < 0.7 ? 20 : 200;
		int to = from + search_below(x, 2 * far + 1) - far;
		to = to < 0 ? 0 : to >= m->q.n ? m->q.n - 1 : to;
		if (!seq_copy(&x->tmp, &m->q))
			return;
		int o = x->tmp.op[from];
		seq_erase(&x->tmp, from);
		seq_insert(&x->tmp, to, &o, 1);
		if (simulate(x, &x->tmp, m->way, &x->s2))
			seq_copy(&m->q, &x->tmp);
	}
}

static void ruin_ways(struct improver *m)
{
	struct search *x = m->x;
	for (int k = search_below(x, 3); k >= 0; k--) {
		int o = m->several[search_below(x, m->nseveral)];
		int old = m->way[o];
		m->way[o] = search_below(x, x->in->nway[o]);
		if (m->way[o] == old)
			continue;
		if (!seq_copy(&x->tmp, &m->q) || !order_complete(x, m->way, &x->tmp) ||
			!simulate_clean(x, &x->tmp, m->way, &x->s2))
			m->way[o] = old;
		else
			seq_copy(&m->q, &x->tmp);
	}
}

static bool round_of(struct improver *m, double heat)
{
	struct search *x = m->x;
	int n = x->in->n;
	if (!seq_copy(&m->q, &m->cur))
		return false;
	memcpy(m->way, m->cur_way, (size_t)n * sizeof *m->way);
	if (!find_extras(m))
		return false;
	ruin_runs(m);
	if (m->nseveral && search_uniform(x) < 0.3)
		ruin_ways(m);
	if (search_uniform(x) < 0.25)
		ruin_order(m);
	double above = m->cur_cost - x->in->once_cost;
	int effort = n > 1500 ? 3 : n > 400 ? 5 : 8;
	if (!repair(x, &m->q, m->way, m->cur_cost + 0.05 * above + 1e-9 * m->cur_cost, effort,
		    true))
		return false;
	if (search_uniform(x) < 0.5 || x->s.cost < m->cur_cost * 1.002)
		polish(x, &m->q, m->way);
	if (!x->s.ok || x->s.excess > 0)
		return false;
	double cost = x->s.cost;
	if (cost < m->cur_cost - heat * log(search_uniform(x) + 1e-300)) {
		seq_copy(&m->cur, &m->q);
		memcpy(m->cur_way, m->way, (size_t)n * sizeof *m->way);
		m->cur_cost = cost;
	}
	if (cost < m->best_cost * (1 - 1e-12)) {
		seq_copy(&m->best, &m->q);
		memcpy(m->best_way, m->way, (size_t)n * sizeof *m->way);
		m->best_cost = cost;
		return true;
	}
	return false;
}

static void anneal(struct improver *m, double stop_cost)
{
	struct search *x = m->x;
	double start = x->work, span = x->limit - x->work;
	int since = 0;
	for (int i = 1; !search_done(x) && m->best_cost > stop_cost; i++) {
		double left = 1 - (x->work - start) / span;
		double heat = (m->cur_cost - x->in->once_cost) * 0.01 * (left > 0 ? left : 0) +
			      1e-15 * m->cur_cost;
		since = round_of(m, heat) ? 0 : since + 1;
		if (since >= 300 && m->cur_cost > m->best_cost) {
			seq_copy(&m->cur, &m->best);
			memcpy(m->cur_way, m->best_way, (size_t)x->in->n * sizeof(int));
			m->cur_cost = m->best_cost;
			since = 0;
		}
	}
}

void improve(struct search *x, struct seq *q, int *way, double stop_cost)
{
	struct improver m = {.x = x};
	size_t n = (size_t)x->in->n + 1;
	m.best_way = malloc(n * sizeof(int));
	m.cur_way = malloc(n * sizeof(int));
	m.way = malloc(n * sizeof(int));
	m.seen = malloc(n * sizeof(bool));
	m.several = malloc(n * sizeof(int));
	if (!m.best_way || !m.cur_way || !m.way || !m.seen || !m.several || !seq_copy(&m.best, q) ||
		!seq_copy(&m.cur, q)) {
		x->nomem = true;
	} else if (simulate(x, q, way, &x->s) && x->s.excess <= 0) {
		memcpy(m.best_way, way, (n - 1) * sizeof(int));
		memcpy(m.cur_way, way, (n - 1) * sizeof(int));
		m.best_cost = m.cur_cost = x->s.cost;
		for (int o = 0; o < x->in->n; o++)
			if (x->in->nway[o] > 1)
				m.several[m.nseveral++] = o;
		anneal(&m, stop_cost);
		if (!x->nomem) {
			seq_copy(q, &m.best);
			memcpy(way, m.best_way, (n - 1) * sizeof(int));
		}
	}
	free(m.best_way);
	free(m.cur_way);
	free(m.way);
	free(m.seen);
	free(m.several);
	free(m.extra);
	seq_free(&m.best);
	seq_free(&m.cur);
	seq_free(&m.q);
}
