/* Making a sequence fit: at the step with the most live bytes, take a tensor that lies idle there
 * and produce it again (or only then) before its next use, with as much of what that needs as is no
 * longer there; or run its consumer earlier. The candidate that costs the least per byte of excess
 * removed wins; candidates are ranked by an estimate and the best of them simulated. */
#include "planner/solver.h"

#include <stdlib.h>
#include <string.h>

enum { CLOSURE_MAX = 600, DEPTH_MAX = 400, CANDIDATES_MAX = 96, FAILS_MAX = 6 };

/* How a closure treats an input that is no longer live where it is needed. */
enum reach {
	REACH_PEAK, /* produce it again if it was dead at the peak, otherwise keep it longer */
	REACH_ALL,  /* produce it again */
	REACH_ONE,  /* keep it longer */
	REACH_RANDOM,
};

struct candidate {
	int life, use,
		prev; /* lifetime; the next step that reads it; the last that did, or its start */
	double score; /* lower is better */
};

struct closure {
	struct search *x;
	const struct sim *s;
	const int *way;
	int at, use; /* the peak step, the step before which the closure runs */
	enum reach reach;
	double again; /* REACH_RANDOM: probability of producing again */
	double cost;
};

static bool gather(struct closure *c, int o, int depth)
{
	struct search *x = c->x;
	if (x->in->once[o])
		return false;
	if (x->mark[o] == x->stamp)
		return true;
	x->mark[o] = x->stamp;
	if (depth > DEPTH_MAX || x->list.n >= CLOSURE_MAX)
		return false;
	const struct way *w = &x->in->way[o][c->way[o]];
	for (int k = 0; k < w->nin; k++) {
		int l = sim_life_before(c->s, w->in[k], c->use);
		if (l < 0)
			return false;
		if (c->s->life[l].end >= c->use)
			continue;
		int p = x->in->p->tensor[w->in[k]].producer;
		bool again = c->reach == REACH_ALL ||
			     (c->reach == REACH_PEAK && c->s->life[l].end < c->at) ||
			     (c->reach == REACH_RANDOM && search_uniform(x) < c->again);
		if (again && !x->in->once[p] && !gather(c, p, depth + 1))
			return false;
	}
	if (!seq_reserve(&x->list, x->list.n + 1)) {
		x->nomem = true;
		return false;
	}
	x->list.op[x->list.n++] = o;
	c->cost += w->cost;
	return true;
}

static bool closure(struct closure *c, int tensor)
{
	c->x->stamp++;
	c->x->list.n = 0;
	c->cost = 0;
	return gather(c, c->x->in->p->tensor[tensor].producer, 0);
}

static double overflow(const struct search *x, const struct sim *s, int from, int to, int64_t size)
{
	double sum = 0;
	for (int at = from; at < to; at++) {
		int64_t over = s->mem[at] - x->target;
		if (over > 0)
			sum += (double)(over < size ? over : size);
	}
	return sum;
}

struct repairer {
	struct search *x;
	int *way;
	struct candidate *cand;
	int ncand, cap_cand;
	int *next, *prev; /* by lifetime */
	int cap_life;
	struct seq best;
	int best_op, best_way; /* the op that changes its way, or -1 */
	double best_score;
	double excess, cost; /* of the sequence as it is */
};

static bool room(struct repairer *r, int nlife)
{
	if (nlife <= r->cap_life)
		return true;
	int cap = nlife * 2 + 64;
	int *next = realloc(r->next, (size_t)cap * sizeof *next);
	r->next = next ? next : r->next;
	int *prev = realloc(r->prev, (size_t)cap * sizeof *prev);
	r->prev = prev ? prev : r->prev;
	struct candidate *cand = realloc(r->cand, (size_t)cap * sizeof *cand);
	r->cand = cand ? cand : r->cand;
	if (!next || !prev || !cand)
		return false;
	r->cap_life = cap;
	return true;
}

/* The first read of each lifetime after step `at` and the last before, -1 where there is none; -2
 * for lifetimes in use at `at` itself. */
static void find_uses(struct repairer *r, const struct sim *s, int at)
{
	for (int l = 0; l < s->life_at[at]; l++) {
		r->next[l] = -1;
		r->prev[l] = s->life[l].start;
	}
	int known = s->life_at[at];
	for (int t = 0; t <= at; t++)
		for (int k = s->use_at[t]; k < s->use_at[t + 1]; k++)
			r->prev[s->use[k]] = t;
	for (int t = s->n - 1; t > at; t--)
		for (int k = s->use_at[t]; k < s->use_at[t + 1]; k++)
			if (s->use[k] < known)
				r->next[s->use[k]] = t;
	for (int k = s->use_at[at]; k < s->use_at[at + 1]; k++)
		r->next[s->use[k]] = -2;
}

static int candidate_cmp(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return (x->life > y->life) - (x->life < y->life);
}

/* Idle lifetimes at step `at`, ranked by estimated cost per byte of excess. */
static void find_candidates(struct repairer *r, const struct sim *s, int at, bool noisy)
{
	struct search *x = r->x;
	r->ncand = 0;
	find_uses(r, s, at);
	for (int l = 0; l < s->life_at[at]; l++) {
		const struct life *f = &s->life[l];
		if (f->end <= at || f->size == 0 || r->next[l] < 0)
			continue;
		r->cand[r->ncand++] = (struct candidate){.life = l,
			.use = r->next[l],
			.prev = r->prev[l],
			.score = -(double)f->size};
	}
	if (r->ncand > CANDIDATES_MAX) {
		qsort(r->cand, (size_t)r->ncand, sizeof *r->cand, candidate_cmp);
		r->ncand = CANDIDATES_MAX;
	}
	for (int i = 0; i < r->ncand; i++) {
		struct candidate *c = &r->cand[i];
		const struct life *f = &s->life[c->life];
		struct closure cl = {.x = x,
			.s = s,
			.way = r->way,
			.at = at,
			.use = c->use,
			.reach = REACH_PEAK};
		double cost = closure(&cl, f->tensor) ? cl.cost : 0.1 * x->in->once_cost;
		if (c->prev == f->start)
			cost = 0; /* it can be delayed */
		double gain = overflow(x, s, c->prev + 1, c->use, f->size);
		x->work += (c->use - c->prev) / 8 + x->list.n;
		c->score = (cost + 1e-9 * x->in->once_cost) / (gain + 1e-9);
		if (noisy)
			c->score *= 0.5 + search_uniform(x);
	}
	qsort(r->cand, (size_t)r->ncand, sizeof *r->cand, candidate_cmp);
}

/* Simulate x->tmp; keep it when it is the best so far. */
static void consider(struct repairer *r, bool noisy)
{
	struct search *x = r->x;
	if (!simulate_clean(x, &x->tmp, r->way, &x->s2))
		return;
	double gain = r->excess - x->s2.excess;
	if (gain <= 0)
		return;
	double score = (x->s2.cost - r->cost + 1e-12 * x->in->once_cost) / gain;
	if (score < 0) /* cheaper and smaller at once */
		score *= gain * gain;
	if (noisy)
		score *= 1 + 0.15 * search_uniform(x);
	if (score < r->best_score) {
		r->best_score = score;
		r->best_op = -1;
		if (!seq_copy(&r->best, &x->tmp))
			x->nomem = true;
	}
}

/* The position in the sequence in front of step `at`. */
static int position(const struct sim *s, int at)
{
	return s->core[at];
}

static void try_again(struct repairer *r, const struct seq *q, const struct sim *s, int at,
	const struct candidate *c, enum reach reach, bool noisy)
{
	struct search *x = r->x;
	struct closure cl = {.x = x,
		.s = s,
		.way = r->way,
		.at = at,
		.use = c->use,
		.reach = reach,
		.again = search_uniform(x)};
	if (!closure(&cl, s->life[c->life].tensor))
		return;
	if (!seq_copy(&x->tmp, q) ||
		!seq_insert(&x->tmp, position(s, c->use), x->list.op, x->list.n)) {
		x->nomem = true;
		return;
	}
	consider(r, noisy);
}

/* Run the producer only right before the next use. */
static void try_delay(struct repairer *r, const struct seq *q, const struct sim *s,
	const struct candidate *c, bool noisy)
{
	struct search *x = r->x;
	int start = s->life[c->life].start;
	if (x->in->floating[s->step[start]])
		return;
	int from = position(s, start), to = position(s, c->use);
	if (to - 1 <= from || !seq_copy(&x->tmp, q))
		return;
	int o = x->tmp.op[from];
	seq_erase(&x->tmp, from);
	seq_insert(&x->tmp, to - 1, &o, 1);
	consider(r, noisy);
}

/* Run the consumer as soon as its other inputs are there. */
static void try_hasten(struct repairer *r, const struct seq *q, const struct sim *s, int at,
	const struct candidate *c, bool noisy)
{
	struct search *x = r->x;
	int o = s->step[c->use], ready = 0;
	if (x->in->floating[o])
		return;
	for (int k = s->use_at[c->use]; k < s->use_at[c->use + 1]; k++)
		if (s->life[s->use[k]].start + 1 > ready)
			ready = s->life[s->use[k]].start + 1;
	if (ready > at || !seq_copy(&x->tmp, q))
		return;
	seq_erase(&x->tmp, position(s, c->use));
	seq_insert(&x->tmp, position(s, ready), &o, 1);
	consider(r, noisy);
}

/* Let the consumer run in another way, one that does not read the tensor. */
static void try_ways(struct repairer *r, const struct seq *q, const struct sim *s,
	const struct candidate *c, bool noisy)
{
	struct search *x = r->x;
	int o = s->step[c->use], t = s->life[c->life].tensor, old = r->way[o];
	for (int k = 0; k < x->in->nway[o]; k++) {
		const struct way *w = &x->in->way[o][k];
		bool reads = k == old;
		for (int i = 0; i < w->nin; i++)
			reads = reads || w->in[i] == t;
		if (reads || !seq_copy(&x->tmp, q))
			continue;
		double before = r->best_score;
		r->way[o] = k;
		if (order_complete(x, r->way, &x->tmp))
			consider(r, noisy);
		r->way[o] = old;
		if (r->best_score < before) {
			r->best_op = o;
			r->best_way = k;
		}
	}
}

static int pick_step(struct search *x, const struct sim *s, bool random)
{
	if (!random)
		return s->worst;
	int pick = s->worst, seen = 0;
	for (int at = 0; at < s->n; at++)
		if (s->mem[at] > x->target && search_below(x, ++seen) == 0)
			pick = at;
	return pick;
}

static bool repair_step(struct repairer *r, struct seq *q, int effort, bool noisy, int fails)
{
	struct search *x = r->x;
	const struct sim *s = &x->s;
	int at = pick_step(x, s, fails > 0 || (noisy && search_uniform(x) < 0.3));
	if (!room(r, s->nlife)) {
		x->nomem = true;
		return false;
	}
	r->excess = s->excess;
	r->cost = s->cost;
	r->best_score = 1e300;
	find_candidates(r, s, at, noisy);
	int top = r->ncand < effort ? r->ncand : effort;
	if (fails > 0 && r->ncand > top)
		top = r->ncand < 3 * effort ? r->ncand : 3 * effort;
	for (int i = 0; i < top && !x->nomem; i++) {
		const struct candidate *c = &r->cand[i];
		bool again = !x->in->once[x->in->p->tensor[s->life[c->life].tensor].producer];
		if (again) {
			try_again(r, q, s, at, c, REACH_PEAK, noisy);
			if (noisy)
				try_again(r, q, s, at, c, REACH_RANDOM, noisy);
			else if (x->list.n > 1 || fails > 0) {
				try_again(r, q, s, at, c, REACH_ALL, noisy);
				try_again(r, q, s, at, c, REACH_ONE, noisy);
			}
		}
		if (c->prev == s->life[c->life].start)
			try_delay(r, q, s, c, noisy);
		try_hasten(r, q, s, at, c, noisy);
		try_ways(r, q, s, c, noisy);
	}
	if (r->best_score >= 1e300)
		return false;
	if (!seq_copy(q, &r->best))
		x->nomem = true;
	if (r->best_op >= 0)
		r->way[r->best_op] = r->best_way;
	return true;
}

bool repair(struct search *x, struct seq *q, int *way, double cost_limit, int effort, bool noisy)
{
	struct repairer r = {.x = x, .way = way};
	int fails = 0;
	bool fits = false;
	if (simulate_clean(x, q, way, &x->s)) {
		for (;;) {
			fits = x->s.excess <= 0;
			if (fits || search_done(x) || x->s.cost > cost_limit ||
				q->n > 8 * x->in->n + 200)
				break;
			if (repair_step(&r, q, effort, noisy, fails))
				fails = 0;
			else if (++fails > FAILS_MAX)
				break;
			if (!simulate(x, q, way, &x->s))
				break;
		}
	}
	free(r.next);
	free(r.prev);
	free(r.cand);
	seq_free(&r.best);
	return fits && x->s.cost <= cost_limit;
}
