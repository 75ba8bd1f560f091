/* A race of starts: each is made to fit and improved for a while; in between the best few go on, in
 * the end the best one. Starts that differ end in places that differ; where many end at the least
 * cost, it is over.
 */
#include "planner/search/plan_make.h"

#include <math.h>

enum { STARTS = 14, SECOND = 4, EFFORT = 8, AGREE = 5 };
/* Shares of the work. */
static const double FIRST_SHARE = 0.4, SECOND_SHARE = 0.35;
static const double RAISE_EFFORT = 0.3;

struct runner {
	struct solution s;
	bool second; /* it has gone on */
};

struct race {
	struct planner *pl;
	struct proof *proof;
	struct runner *runner; /* by cost */
	int nrunner;
	double begun, work; /* what was done before, and may be done */
};

/* The promise of a candidate: its cost, and more the further it is from fitting. */
static double promise(const struct planner *pl, const struct candidate_seq *c)
{
	double room = (double)(pl->x.target - pl->in->resident);
	double over = c->peak > pl->x.target ? (double)(c->peak - pl->x.target) : 0;
	return c->cost / (pl->in->once_cost + 1e-300) + over / (room > 1 ? room : 1);
}

static bool is_solved(const struct race *r)
{
	return r->nrunner > 0 && r->runner[0].s.cost <= proof_meets(r->proof, &r->pl->x);
}

/* So many starts ended at the least cost that what another one finds is likely to be that. */
static bool agree(const struct race *r)
{
	int n = 0;
	while (n < r->nrunner && r->runner[n].s.cost <= r->runner[0].s.cost * (1 + 1e-9))
		n++;
	return n >= AGREE;
}

/* Runners are sorted by cost: the i-th has a new one. */
static void sort_in(struct race *r, int i)
{
	const struct runner one = r->runner[i];
	for (; i > 0 && r->runner[i - 1].s.cost > one.s.cost; i--)
		r->runner[i] = r->runner[i - 1];
	r->runner[i] = one;
}

/* The state joins the runners. */
static void join(struct race *r)
{
	struct runner *last = &r->runner[r->nrunner];
	last->second = false;
	if (solution_take(r->pl, &last->s))
		sort_in(r, r->nrunner++);
}

/* To whoever waits: a runner's cost, or a lower one of before. */
static void tell(void *user, double cost)
{
	const struct race *r = user;
	if (r->nrunner && r->runner[0].s.cost < cost)
		cost = r->runner[0].s.cost;
	if (cost < INFINITY)
		proof_tell(r->pl, cost, r->proof, (r->pl->x.work - r->begun) / r->work);
}

static void start(struct race *r, const struct seq *from, const int *way, bool noisy, double until)
{
	struct planner *pl = r->pl;
	struct search *x = &pl->x;
	double limit = x->limit, most = r->nrunner ? r->runner[0].s.cost * 1.2 : 1e300;
	x->limit = until < limit ? until : limit;
	if (solution_load(pl, from, way) && repair(x, &pl->s, most, EFFORT, noisy)) {
		state_commit(&pl->s);
		polish(x, &pl->s, 0, pl->s.nslot - 1);
		improve(x, &pl->s, proof_meets(r->proof, &r->pl->x));
		join(r);
	}
	tell(r, INFINITY);
	x->limit = limit;
}

static void go_on(struct race *r, int i, double until)
{
	struct planner *pl = r->pl;
	struct runner *one = &r->runner[i];
	double limit = pl->x.limit;
	one->second = true;
	pl->x.limit = until < limit ? until : limit;
	if (solution_load(pl, &one->s.q, one->s.way)) {
		improve(&pl->x, &pl->s, proof_meets(r->proof, &pl->x));
		if (pl->s.cost < one->s.cost && solution_take(pl, &one->s))
			sort_in(r, i);
	}
	tell(r, INFINITY);
	pl->x.limit = limit;
}

static int next_candidate(const struct planner *pl, bool *used)
{
	int best = -1;
	for (int i = 0; i < pl->ncand; i++)
		if (!used[i] &&
			(best < 0 || promise(pl, &pl->cand[i]) < promise(pl, &pl->cand[best])))
			best = i;
	if (best >= 0)
		used[best] = true;
	return best;
}

/* The cheapest that has not gone on yet does. */
static void go_on_next(struct race *r, double work)
{
	for (int i = 0; i < r->nrunner && !is_solved(r); i++)
		if (!r->runner[i].second) {
			go_on(r, i, r->pl->x.work + work);
			return;
		}
}

/* The listed order, then by promise; every third start is a noisy repair of the listed order. In
 * between the best go on: where starts end alike, what is cheaper is further away than they get. */
static void first_stages(
	struct race *r, const struct solution *from, bool *used, double first, double second)
{
	struct planner *pl = r->pl;
	const struct search *x = &pl->x;
	int n = pl->in->n > 20000 ? 2 : pl->in->n > 4000 ? 5 : STARTS, gone = 0;
	double begin = x->work;
	if (from->found)
		start(r, &from->q, from->way, false, begin + first / n);
	for (int k = from->found; k < n && !is_solved(r) && !agree(r) && !pl->x.nomem; k++) {
		bool noisy = k % 3 == 2;
		int i = k == 0 ? 0 : noisy ? 0 : next_candidate(pl, used);
		used[0] = true;
		if (i >= 0)
			start(r, &pl->cand[i].q, pl->way, noisy, begin + first * (k + 1) / n);
		const double until_now = x->work;
		for (; gone * n < (k + 1) * SECOND - n / 2; gone++)
			go_on_next(r, second / SECOND);
		begin += x->work - until_now;
	}
}

/* Perhaps the best is known to be the least, and only not yet proven to be. */
static enum status raise(struct race *r)
{
	struct planner *pl = r->pl;
	struct proof *proof = r->proof;
	if (r->nrunner == 0 || is_solved(r) || proof->tried)
		return ST_OK;
	proof->tried = true;
	return bound_raise(pl->in, pl->o->budget, r->runner[0].s.cost, RAISE_EFFORT * pl->effort,
		&proof->bound, &proof->more, pl->d);
}

static enum status run(struct race *r, const struct solution *from, bool *used, double work)
{
	struct search *x = &r->pl->x;
	const double begin = x->work;
	first_stages(r, from, used, FIRST_SHARE * work, SECOND_SHARE * work);
	TRY(raise(r));
	/* where starts agree as much work again finds better, or that was all */
	if (r->nrunner && !is_solved(r))
		go_on(r, 0, agree(r) ? 2 * x->work - begin : begin + work);
	return ST_OK;
}

enum status portfolio(struct planner *pl, struct proof *proof, double work, struct solution *best)
{
	struct race r = {.pl = pl, .proof = proof, .begun = pl->x.work, .work = work};
	r.runner = ARENA_ARRAY(pl->tmp, struct runner, STARTS + 2);
	bool *used = ARENA_ARRAY(pl->tmp, bool, pl->ncand + 1);
	if (!r.runner || !used)
		return diag_nomem(pl->d);
	double limit = pl->x.limit;
	pl->x.limit = pl->x.work + work;
	pl->x.found = tell;
	pl->x.user = &r;
	enum status st = run(&r, best, used, work);
	pl->x.found = NULL;
	pl->x.limit = limit;
	best->found = false;
	if (r.nrunner > 0)
		solution_set(pl, best, &r.runner[0].s.q, r.runner[0].s.way, r.runner[0].s.cost);
	/* a candidate that fits as it stands is never lost, whatever work is left */
	for (int i = 0; i < pl->ncand; i++) {
		const struct candidate_seq *c = &pl->cand[i];
		if (c->peak <= pl->x.target && (!best->found || cost_below(c->cost, best->cost)))
			solution_set(pl, best, &c->q, pl->way, c->cost);
	}
	for (int i = 0; i < r.nrunner; i++)
		seq_free(&r.runner[i].s.q);
	return st == ST_OK && pl->x.nomem ? diag_nomem(pl->d) : st;
}
