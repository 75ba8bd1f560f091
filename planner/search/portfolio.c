/* A race of starts: each is made to fit and improved for a while; the best few go on, then the best
 * one. Starts that differ end in places that differ; where many end at the least cost, it is over.
 */
#include "planner/search/plan_make.h"

#include <math.h>

enum { STARTS = 14, SECOND = 4, EFFORT = 8, AGREE = 5 };
/* Shares of the work. */
static const double FIRST_SHARE = 0.4, SECOND_SHARE = 0.35;
static const double RAISE_EFFORT = 0.3;

struct race {
	struct planner *pl;
	struct proof *proof;
	struct solution *runner;
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
	return r->nrunner > 0 && r->runner[0].cost <= proof_meets(r->proof);
}

/* So many starts ended at the least cost that what another one finds is likely to be that. */
static bool agree(const struct race *r)
{
	int n = 0;
	while (n < r->nrunner && r->runner[n].cost <= r->runner[0].cost * (1 + 1e-9))
		n++;
	return n >= AGREE;
}

/* The state joins the runners, which stay sorted by cost. */
static void join(struct race *r)
{
	struct solution s = r->runner[r->nrunner];
	if (!solution_take(r->pl, &s))
		return;
	int i = r->nrunner++;
	for (; i > 0 && r->runner[i - 1].cost > s.cost; i--)
		r->runner[i] = r->runner[i - 1];
	r->runner[i] = s;
}

/* To whoever waits: a runner's cost, or a lower one of before. */
static void tell(void *user, double cost)
{
	const struct race *r = user;
	if (r->nrunner && r->runner[0].cost < cost)
		cost = r->runner[0].cost;
	if (cost < INFINITY)
		proof_tell(r->pl, cost, r->proof, (r->pl->x.work - r->begun) / r->work);
}

static void start(struct race *r, const struct seq *from, const int *way, bool noisy, double until)
{
	struct planner *pl = r->pl;
	struct search *x = &pl->x;
	double limit = x->limit, most = r->nrunner ? r->runner[0].cost * 1.2 : 1e300;
	x->limit = until < limit ? until : limit;
	if (solution_load(pl, from, way) && repair(x, &pl->s, most, EFFORT, noisy)) {
		state_commit(&pl->s);
		polish(x, &pl->s, 0, pl->s.nslot - 1);
		improve(x, &pl->s, proof_meets(r->proof));
		join(r);
	}
	tell(r, INFINITY);
	x->limit = limit;
}

static void go_on(struct race *r, int i, double until)
{
	struct planner *pl = r->pl;
	double limit = pl->x.limit;
	pl->x.limit = until < limit ? until : limit;
	if (solution_load(pl, &r->runner[i].q, r->runner[i].way)) {
		improve(&pl->x, &pl->s, proof_meets(r->proof));
		if (pl->s.cost < r->runner[i].cost)
			solution_take(pl, &r->runner[i]);
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

/* The listed order, then by promise; every third start is a noisy repair of the listed order. */
static void first_stage(struct race *r, const struct solution *from, bool *used, double work)
{
	struct planner *pl = r->pl;
	int n = pl->in->n > 20000 ? 2 : pl->in->n > 4000 ? 5 : STARTS;
	double begin = pl->x.work;
	if (from->found)
		start(r, &from->q, from->way, false, begin + work / n);
	for (int k = from->found; k < n && !is_solved(r) && !agree(r) && !pl->x.nomem; k++) {
		bool noisy = k % 3 == 2;
		int i = k == 0 ? 0 : noisy ? 0 : next_candidate(pl, used);
		used[0] = true;
		if (i >= 0)
			start(r, &pl->cand[i].q, pl->way, noisy, begin + work * (k + 1) / n);
	}
}

static void later_stages(struct race *r, double second, double last)
{
	struct search *x = &r->pl->x;
	int n = r->nrunner < SECOND ? r->nrunner : SECOND;
	double begin = x->work;
	for (int i = 0; i < n && !is_solved(r); i++)
		go_on(r, i, begin + second * (i + 1) / n);
	int best = 0;
	for (int i = 1; i < r->nrunner; i++)
		if (r->runner[i].cost < r->runner[best].cost)
			best = i;
	if (r->nrunner > 0 && r->runner[best].cost > proof_meets(r->proof))
		go_on(r, best, begin + second + last);
	if (best > 0) {
		struct solution s = r->runner[0];
		r->runner[0] = r->runner[best];
		r->runner[best] = s;
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
	return bound_raise(pl->in, pl->o->budget, r->runner[0].cost, RAISE_EFFORT * pl->effort,
		&proof->bound, &proof->more, pl->d);
}

static enum status run(struct race *r, const struct solution *from, bool *used, double work)
{
	struct search *x = &r->pl->x;
	const double begin = x->work;
	first_stage(r, from, used, FIRST_SHARE * work);
	TRY(raise(r));
	if (agree(r) && !is_solved(r)) /* as much work again finds better, or that was all */
		go_on(r, 0, 2 * x->work - begin);
	if (!agree(r))
		later_stages(r, SECOND_SHARE * work, (1 - FIRST_SHARE - SECOND_SHARE) * work);
	return ST_OK;
}

enum status portfolio(struct planner *pl, struct proof *proof, double work, struct solution *best)
{
	struct race r = {.pl = pl, .proof = proof, .begun = pl->x.work, .work = work};
	r.runner = ARENA_ARRAY(pl->tmp, struct solution, STARTS + 2);
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
		solution_set(pl, best, &r.runner[0].q, r.runner[0].way, r.runner[0].cost);
	/* a candidate that fits as it stands is never lost, whatever work is left */
	for (int i = 0; i < pl->ncand; i++) {
		const struct candidate_seq *c = &pl->cand[i];
		if (c->peak <= pl->x.target && (!best->found || cost_below(c->cost, best->cost)))
			solution_set(pl, best, &c->q, pl->way, c->cost);
	}
	for (int i = 0; i < r.nrunner; i++)
		seq_free(&r.runner[i].q);
	return st == ST_OK && pl->x.nomem ? diag_nomem(pl->d) : st;
}
