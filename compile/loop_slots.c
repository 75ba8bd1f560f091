#include "compile/loop_slots.h"

#include <inttypes.h>

#include "graph/loop.h"
#include "kernels/revolve.h"

/* Ways are compared by plans that take less time to find than the one that counts. */
static const double TRIAL_EFFORT = 0.25;
/* With fewer slots a step would take too long for anybody. With more, its turns would be nested
 * deeper than a stack is, for nothing: so many make any loop run twice at most. */
enum { REPEATS_MOST = 16, SLOTS_MOST = 4096 };

struct search {
	struct pipeline *p;
	struct plan_budget budget; /* in bytes, or "min" */
	int64_t turns;             /* of the longest loop */
	int64_t here;              /* what p's graphs keep */
	int64_t best; /* of those that meet the budget the cheapest, else the smallest */
	bool met;
	double cost;
	int64_t bytes;
};

static int64_t most_turns(const struct graph *g)
{
	int64_t most = 0;
	for (int i = 0; g && i < g->nnode; i++) {
		const struct loop *l = node_loop(g->node[i]);
		if (l && g->node[i]->op->role == ROLE_LOOP_GRADIENT && l->turns > most)
			most = l->turns;
	}
	return most;
}

/* The graphs and problems once more, without a word. */
static enum status keep(struct search *s, int64_t slots)
{
	struct pipeline *p = s->p;
	const struct diag outer = *p->diag;
	if (slots == s->here)
		return ST_OK;
	p->diag->put = NULL;
	p->imported->loop_slots = slots;
	enum status st = pipeline_graphs(p);
	if (st == ST_OK)
		st = pipeline_problems(p);
	const bool nomem = p->diag->out_of_memory;
	*p->diag = outer;
	p->diag->out_of_memory = nomem;
	s->here = slots;
	return st;
}

/* Plans what p's graphs keep; *met: within the budget. */
static enum status try_plan(struct search *s, bool *met)
{
	struct pipeline *p = s->p;
	struct diag quiet = {.put = NULL};
	struct plan_options o = pipeline_options(p->o);
	struct plan_pair pair = {
		.train = p->train_problem.problem, .eval = p->eval_problem.problem};
	o.effort *= TRIAL_EFFORT;
	int64_t bytes, proven;
	bool eval;
	*met = false;
	if (s->budget.kind == BUDGET_MIN) {
		TRY(plan_pair_minimum(p->arena, &pair, &o, &bytes, &proven, &eval, p->diag));
	} else {
		const enum status st = plan_pair_make(p->arena, &pair, &s->budget, &o, &quiet);
		if (st != ST_OK && st != ST_BUDGET)
			return diag_fail(p->diag, st, NULL, NULL, "a loop cannot be planned");
		*met = st == ST_OK;
		bytes = *met ? pair.arena_bytes : plan_pair_least(&pair);
	}
	const double cost = *met ? pair.train_plan->cost_total : 0;
	if (*met ? !s->met || cost < s->cost : !s->met && (s->bytes < 0 || bytes < s->bytes)) {
		s->best = s->here;
		s->cost = cost;
		s->bytes = bytes;
		s->met = *met;
	}
	return ST_OK;
}

static enum status try_slots(struct search *s, int64_t slots, bool *met)
{
	TRY(keep(s, slots));
	return try_plan(s, met);
}

static int64_t fewest_slots(int64_t turns)
{
	int64_t slots = 0;
	while (revolve_repeats(turns, slots + 1) > REPEATS_MOST)
		slots++;
	return slots;
}

/* The most slots within the budget: more take more, and make fewer turns again. */
static enum status try_fewer(struct search *s)
{
	const int64_t most = s->turns - 1 < SLOTS_MOST ? s->turns - 1 : SLOTS_MOST;
	int64_t low = fewest_slots(s->turns), high = most; /* high: not met */
	bool met;
	if (low >= high)
		return ST_OK;
	TRY(try_slots(s, low, &met));
	while (met && high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		bool fits;
		TRY(try_slots(s, middle, &fits));
		*(fits ? &low : &high) = middle;
	}
	return ST_OK;
}

/* "70%" is of keeping everything. */
static enum status settle_budget(struct search *s)
{
	struct pipeline *p = s->p;
	const struct plan_options o = pipeline_options(p->o);
	s->budget = p->o->budget;
	if (s->budget.kind != BUDGET_PERCENT)
		return ST_OK;
	s->budget.kind = BUDGET_BYTES;
	TRY(plan_budget_bytes(
		p->arena, p->train_problem.problem, &o, &p->o->budget, &s->budget.bytes, p->diag));
	p->budget = s->budget;
	p->budget_settled = true;
	return ST_OK;
}

static enum status choose(struct pipeline *p)
{
	struct search s = {.p = p,
		.turns = most_turns(p->train),
		.here = LOOP_SLOTS_INSIDE,
		.best = LOOP_SLOTS_INSIDE,
		.bytes = -1};
	bool met;
	if (!s.turns || p->o->budget.kind == BUDGET_NONE)
		return ST_OK;
	TRY(settle_budget(&s));
	TRY(try_plan(&s, &met));
	/* none is faster than one that runs all once */
	if (met && s.cost <= problem_one_pass(p->train_problem.problem))
		return ST_OK;
	TRY(try_slots(&s, LOOP_SLOTS_ALL, &met));
	if (!met)
		TRY(try_fewer(&s));
	return keep(&s, s.best);
}

static void tell(const struct pipeline *p)
{
	const struct graph *g = p->train ? p->train : p->eval;
	const enum op_role role = p->train ? ROLE_LOOP_GRADIENT : ROLE_LOOP;
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		const struct loop *l = node_loop(n);
		const struct where w = {.file = g->file, .node = n->name};
		if (l && n->op->role == role)
			diag_note(p->diag, &w, NULL, "its %" PRId64 " turns stay a loop%s%s",
				l->turns, p->train ? "; kept for the backward pass: " : "",
				p->train ? loop_keeps(p->arena, l) : "");
	}
}

enum status loop_slots_choose(struct pipeline *p)
{
	TRY(choose(p));
	tell(p);
	return ST_OK;
}
