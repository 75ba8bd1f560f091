#include "api/frontier_parts.h"

#include <inttypes.h>
#include <math.h>

/* All parts together should take no more than a few frontiers. */
static const double PARTS_EFFORT = 0.25;
enum { STEP = 10 }; /* per cent, where nobody says how many points */

struct curve {
	struct pipeline *p;
	struct plan_options options;
	int64_t shards; /* of the whole: what p->o fixes */
	bool has_least;
	int n; /* budgets; with has_least the last of them is the smallest met */
	int64_t *budget;
	struct view_point *point;
	struct frontier_part *part;
};

/* What the whole batch's curve says of a budget: what meets less meets it. */
static void take_whole(struct curve *c, const struct view_frontier *f, int i)
{
	struct view_point *point = &c->point[i];
	*point = (struct view_point){.budget = c->budget[i], .bound = -1};
	for (int k = 0; k < f->npoint; k++) {
		const struct view_point *x = &f->point[k];
		if (x->feasible && x->arena <= point->budget &&
			(!point->feasible || x->cost < point->cost)) {
			*point = *x;
			point->budget = c->budget[i];
		}
	}
	c->part[i] = (struct frontier_part){
		{.shards = c->shards}, point->feasible ? point->cost : -1};
}

/* Steps of the whole batch's curve, down to what is resident, which no plan meets. */
static enum status begin(struct curve *c, const struct view_frontier *f, int npoint)
{
	const double least = frontier_percent(f, f->known_bytes);
	const double step = npoint > 1 ? (100 - least) / (npoint - 1) : npoint ? 100 : STEP;
	const int steps = step > 0 ? (int)ceil(100 / step) : 1;
	struct arena *a = c->p->arena;
	c->has_least = npoint != 1;
	c->n = steps + c->has_least;
	c->budget = ARENA_ARRAY(a, int64_t, c->n);
	c->point = ARENA_ARRAY(a, struct view_point, c->n);
	c->part = ARENA_ARRAY(a, struct frontier_part, c->n);
	if (!c->budget || !c->point || !c->part)
		return diag_nomem(c->p->diag);
	for (int i = 0; i < c->n; i++) {
		c->budget[i] = i == 0      ? f->keep_all
			       : i < steps ? frontier_bytes(f, 100 - i * step)
					   : f->known_bytes;
		take_whole(c, f, i);
	}
	return ST_OK;
}

/* Budgets above the smallest one, by falling bytes, and that. */
static int budgets_of(const struct curve *c, int64_t *budget)
{
	const int64_t least = c->has_least ? c->budget[c->n - 1] : 0;
	int n = 0;
	for (int i = 0; i < c->n - c->has_least && c->budget[i] > least; i++)
		budget[n++] = c->budget[i];
	if (c->has_least)
		budget[n++] = least;
	return n;
}

static bool is_better(const struct view_point *x, const struct plan *plan)
{
	return plan && (!x->feasible || plan->cost_total < x->cost);
}

/* `plan` meets budget[i] of budgets_of. */
static void take(struct curve *c, int i, int n, const struct plan *plan, const struct parts *parts)
{
	const int k = c->has_least && i == n - 1 ? c->n - 1 : i;
	if (!is_better(&c->point[k], plan))
		return;
	c->point[k] = (struct view_point){
		c->budget[k], true, plan->arena_bytes, plan->cost_total, plan->lower_bound};
	c->part[k].parts = *parts;
}

static enum status plan_all(
	struct curve *c, struct arena *a, const struct problem *problem, const struct parts *parts)
{
	int64_t *budget = ARENA_ARRAY(a, int64_t, c->n);
	struct plan **plan = ARENA_ARRAY(a, struct plan *, c->n);
	if (!budget || !plan)
		return diag_nomem(c->p->diag);
	const int n = budgets_of(c, budget);
	TRY(plan_frontier(a, problem, &c->options, budget, n, plan, c->p->diag));
	for (int i = 0; i < n; i++) {
		if (plan[i])
			TRY(plan_own_check(
				problem, plan[i], c->options.alignment, "plan", c->p->diag));
		take(c, i, n, plan[i], parts);
	}
	return ST_OK;
}

static bool can_help(const struct curve *c, double once)
{
	for (int i = 0; i < c->n; i++)
		if (!c->point[i].feasible || once < c->point[i].cost)
			return true;
	return false;
}

/* What meets less than all before it starts the last point anew. */
static enum status plan_parts(
	struct curve *c, struct arena *a, const struct problem *problem, struct trial *x)
{
	const int last = c->n - 1;
	const struct view_point point = c->point[last];
	const struct frontier_part part = c->part[last];
	int64_t proven;
	TRY(plan_minimum(a, problem, &c->options, &x->arena_bytes, &proven, c->p->diag));
	if (c->has_least && x->arena_bytes < c->budget[last]) {
		c->budget[last] = x->arena_bytes;
		c->point[last] = (struct view_point){.budget = x->arena_bytes, .bound = -1};
		c->part[last].alone = -1;
	}
	x->state = can_help(c, x->cost) ? TRIAL_PLANNED : TRIAL_SLOWER;
	if (x->state == TRIAL_PLANNED)
		TRY(plan_all(c, a, problem, &x->parts));
	if (!c->point[last].feasible && point.feasible) {
		c->budget[last] = point.budget;
		c->point[last] = point;
		c->part[last] = part;
	}
	return ST_OK;
}

static const char *what(const struct parts *x, struct arena *a)
{
	const int64_t n = x->region.slices ? x->region.slices : x->shards;
	const char *s = arena_printf(
		a, "planning for %" PRId64 " %s", n, x->region.slices ? "slices" : "micro-batches");
	return s ? s : "planning";
}

static enum status visit(void *user, const struct problem *problem, struct trial *x)
{
	struct curve *c = user;
	x->cost = problem_one_pass(problem);
	x->state = TRIAL_SLOWER;
	if (!x->parts.region.slices && x->parts.shards == c->shards)
		return ST_OK; /* the whole */
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(c->p->diag);
	onlooker_now(c->options.onlooker, what(&x->parts, c->p->arena));
	const enum status st = plan_parts(c, a, problem, x);
	arena_free(a);
	return st;
}

static bool stands(void *user, const struct trial *x)
{
	const struct curve *c = user;
	for (int i = 0; i < c->n; i++)
		if (c->point[i].feasible &&
			c->part[i].parts.region.slices == x->parts.region.slices &&
			c->part[i].parts.region.to == x->parts.region.to)
			return true;
	return false;
}

/* What meets a smaller budget meets this one. */
static void fall(struct curve *c)
{
	for (int i = c->n - 2; i >= 0; i--) {
		const struct view_point *less = &c->point[i + 1];
		if (!less->feasible || (c->point[i].feasible && c->point[i].cost <= less->cost))
			continue;
		const int64_t budget = c->point[i].budget;
		c->point[i] = *less;
		c->point[i].budget = budget;
		c->part[i].parts = c->part[i + 1].parts;
	}
}

/* Leaves the points that are met, by falling budgets. */
static void close_gaps(struct curve *c)
{
	const int64_t least = c->has_least ? c->budget[c->n - 1] : 0;
	int n = 0;
	for (int i = 0; i < c->n; i++) {
		const bool last = c->has_least && i == c->n - 1;
		if (!c->point[i].feasible || (!last && c->budget[i] <= least))
			continue;
		c->point[n] = c->point[i];
		c->part[n++] = c->part[i];
	}
	c->n = n;
}

enum status frontier_parts(struct pipeline *p, int npoint, struct frontier *f)
{
	struct curve c = {.p = p, .options = pipeline_options(p->o)};
	const int64_t rows = p->o->micro_batch;
	c.options.effort *= PARTS_EFFORT;
	c.shards = rows > 0 ? p->o->import.batch / rows : 1;
	TRY(begin(&c, &f->view, npoint));
	TRY(pipeline_each(p, &(struct trial_visitor){visit, stands, &c}));
	close_gaps(&c);
	fall(&c);
	f->view.part = c.point;
	f->view.npart = c.n;
	f->part = c.part;
	return ST_OK;
}
