#include "compile/loop_slots.h"

#include <inttypes.h>
#include <string.h>

#include "graph/loop.h"
#include "kernels/revolve.h"

/* Ways are compared by plans that take less time to find than the one that counts. */
static const double TRIAL_EFFORT = 0.25;
/* With fewer slots a step would take too long for anybody. With more, its turns would be nested
 * deeper than a stack is, for nothing: so many make any loop run twice at most. */
enum { REPEATS_MOST = 16, SLOTS_MOST = 4096 };
/* Turns are planned within the least memory where what one needs is more than this part of all. */
static const double TURN_SHARE = 1.0 / 8;

/* What the loops keep, by loop, and whether their turns are planned within the least memory. */
struct way {
	int64_t *slots;
	bool tight;
};

struct search {
	struct pipeline *p;
	struct plan_budget budget; /* in bytes, or "min" */
	int n;
	struct loop **loop; /* of the imported graph, that whose turns take longest first */
	int64_t turns;      /* of the longest loop */
	struct way here;    /* what p's graphs and problems are */
	struct way tried;   /* what is to be */
	struct way best;    /* of those that meet the budget the cheapest, else the smallest */
	bool met;
	double cost;
	int64_t bytes;
};

/* --- Loops --- */

/* What a loop's turns take, in the training. */
static double turns_cost(const struct graph *train, const char *name)
{
	for (int i = 0; train && i < train->nnode; i++) {
		const struct node *n = train->node[i];
		if (n->op->role == ROLE_LOOP && !strcmp(n->name, name))
			return node_loop(n)->planned->cost;
	}
	return 0;
}

static bool is_trained(const struct graph *train, const char *name)
{
	for (int i = 0; train && i < train->nnode; i++)
		if (train->node[i]->op->role == ROLE_LOOP_GRADIENT &&
			!strcmp(train->node[i]->name, name))
			return true;
	return false;
}

static bool way_new(struct arena *a, int n, struct way *w)
{
	w->slots = ARENA_ARRAY(a, int64_t, n);
	for (int i = 0; w->slots && i < n; i++)
		w->slots[i] = LOOP_SLOTS_INSIDE;
	return w->slots != NULL;
}

static void way_set(const struct search *s, struct way *to, const struct way *from)
{
	memcpy(to->slots, from->slots, (size_t)s->n * sizeof *to->slots);
	to->tight = from->tight;
}

static bool way_same(const struct search *s, const struct way *a, const struct way *b)
{
	return a->tight == b->tight && !memcmp(a->slots, b->slots, (size_t)s->n * sizeof *a->slots);
}

/* Loops [from, to) keep that. */
static void way_fill(struct way *w, int from, int to, int64_t slots)
{
	for (int i = from; i < to; i++)
		w->slots[i] = slots;
}

static enum status search_begin(struct search *s, struct pipeline *p)
{
	const struct graph *g = p->imported;
	double *cost = ARENA_ARRAY(p->arena, double, g->nnode + 1);
	*s = (struct search){.p = p, .bytes = -1};
	s->loop = ARENA_ARRAY(p->arena, struct loop *, g->nnode + 1);
	if (!cost || !s->loop)
		return diag_nomem(p->diag);
	for (int i = 0; i < g->nnode; i++) {
		struct loop *l = node_loop(g->node[i]);
		if (!l || !is_trained(p->train, g->node[i]->name))
			continue;
		const double c = turns_cost(p->train, g->node[i]->name);
		int at = s->n++;
		for (; at > 0 && cost[at - 1] < c; at--) {
			cost[at] = cost[at - 1];
			s->loop[at] = s->loop[at - 1];
		}
		cost[at] = c;
		s->loop[at] = l;
		s->turns = l->turns > s->turns ? l->turns : s->turns;
	}
	return way_new(p->arena, s->n, &s->here) && way_new(p->arena, s->n, &s->tried) &&
			       way_new(p->arena, s->n, &s->best)
		       ? ST_OK
		       : diag_nomem(p->diag);
}

/* --- One way --- */

/* The graphs and problems once more, without a word. */
static enum status keep(struct search *s, const struct way *w)
{
	struct pipeline *p = s->p;
	const struct diag outer = *p->diag;
	if (way_same(s, w, &s->here))
		return ST_OK;
	p->diag->put = NULL;
	for (int i = 0; i < s->n; i++)
		s->loop[i]->asks = w->slots[i];
	p->tight_turns = w->tight;
	enum status st = pipeline_graphs(p);
	if (st == ST_OK)
		st = pipeline_problems(p);
	const bool nomem = p->diag->out_of_memory;
	*p->diag = outer;
	p->diag->out_of_memory = nomem;
	way_set(s, &s->here, w);
	return st;
}

/* Plans what s->tried keeps; *met: within the budget. */
static enum status try_plan(struct search *s, bool *met)
{
	struct pipeline *p = s->p;
	struct diag quiet = {.put = NULL};
	struct plan_options o = pipeline_options(p->o);
	int64_t bytes, proven;
	bool eval;
	*met = false;
	TRY(keep(s, &s->tried));
	struct plan_pair pair = {
		.train = p->train_problem.problem, .eval = p->eval_problem.problem};
	o.effort *= TRIAL_EFFORT;
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
		way_set(s, &s->best, &s->tried);
		s->cost = cost;
		s->bytes = bytes;
		s->met = *met;
	}
	return ST_OK;
}

/* --- All loops the same way --- */

static enum status try_slots(struct search *s, int64_t slots, bool *met)
{
	way_fill(&s->tried, 0, s->n, slots);
	return try_plan(s, met);
}

static int64_t fewest_slots(int64_t turns)
{
	int64_t slots = 0;
	while (revolve_repeats(turns, slots + 1) > REPEATS_MOST)
		slots++;
	return slots;
}

static int64_t most_slots(int64_t turns)
{
	return turns - 1 < SLOTS_MOST ? turns - 1 : SLOTS_MOST;
}

/* The most slots within the budget: more take more, and make fewer turns again. */
static enum status try_fewer(struct search *s)
{
	int64_t low = fewest_slots(s->turns), high = most_slots(s->turns); /* high: not met */
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

/* What one turn needs may be what is too much of `bytes`. */
static bool turns_weigh(const struct search *s, int64_t bytes)
{
	const struct graph *g = s->p->train;
	int64_t most = 0;
	for (int i = 0; i < g->nnode; i++) {
		const struct loop *l = node_loop(g->node[i]);
		most = l && l->planned->arena > most ? l->planned->arena : most;
	}
	return (double)most > TURN_SHARE * (double)bytes;
}

/* --- Each its own --- */

/* From what is best so far on, the most of the loops from number `first` on that may keep that. */
static enum status try_more(struct search *s, struct way *base, int64_t slots, int *first)
{
	int low = *first, high = s->n + 1;
	while (low < s->n && base->slots[low] != slots && high - low > 1) {
		const int middle = low + (high - low) / 2;
		bool fits;
		way_set(s, &s->tried, base);
		way_fill(&s->tried, *first, middle, slots);
		TRY(try_plan(s, &fits));
		*(fits ? &low : &high) = middle;
	}
	way_fill(base, *first, low, slots);
	*first = low;
	return ST_OK;
}

/* The most slots for loop number i, the others as they are. */
static enum status try_slots_of(struct search *s, const struct way *base, int i)
{
	int64_t low = base->slots[i], high = most_slots(s->loop[i]->turns);
	way_set(s, &s->tried, base);
	while (low >= 0 && high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		bool fits;
		s->tried.slots[i] = middle;
		TRY(try_plan(s, &fits));
		*(fits ? &low : &high) = middle;
	}
	return ST_OK;
}

/* What all of them cannot have, some may: the faster ways for as many as fit, those whose turns
 * take longest first, and more places for one. */
static enum status refine(struct search *s)
{
	struct way base;
	int first = 0;
	if (!s->met || s->n < 2)
		return ST_OK;
	if (!way_new(s->p->arena, s->n, &base))
		return diag_nomem(s->p->diag);
	way_set(s, &base, &s->best);
	TRY(try_more(s, &base, LOOP_SLOTS_INSIDE, &first));
	TRY(try_more(s, &base, LOOP_SLOTS_ALL, &first));
	return first < s->n ? try_slots_of(s, &base, first) : ST_OK;
}

/* --- All of it --- */

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
	struct search s;
	bool met;
	if (!p->train || p->o->budget.kind == BUDGET_NONE)
		return ST_OK;
	TRY(search_begin(&s, p));
	if (!s.n)
		return ST_OK;
	TRY(settle_budget(&s));
	TRY(try_plan(&s, &met));
	/* none is faster than one that runs all once */
	if (met && s.cost <= problem_one_pass(p->train_problem.problem))
		return ST_OK;
	for (int tight = 0; tight < 2 && !s.met && (!tight || turns_weigh(&s, s.bytes)); tight++) {
		s.tried.tight = tight;
		met = false;
		if (!tight || s.budget.kind != BUDGET_MIN) /* fewer are less */
			TRY(try_slots(&s, LOOP_SLOTS_ALL, &met));
		if (!met)
			TRY(try_fewer(&s));
	}
	TRY(refine(&s));
	return keep(&s, &s.best);
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
			diag_note(p->diag, &w, NULL, "its %" PRId64 " turns stay a loop%s%s%s",
				l->turns, p->train ? "; kept for the backward pass: " : "",
				p->train ? loop_keeps(p->arena, l) : "",
				p->tight_turns ? "; a turn in the least memory" : "");
	}
}

enum status loop_slots_choose(struct pipeline *p)
{
	TRY(choose(p));
	tell(p);
	return ST_OK;
}

/* --- Ways, for people --- */

static enum status add_way(struct search *s, int64_t slots, struct loop_ways *out)
{
	struct pipeline *p = s->p;
	char *keeps = arena_printf(p->arena, "%s%s%s",
		slots == LOOP_SLOTS_INSIDE ? "inside"
		: slots == LOOP_SLOTS_ALL  ? "carries"
					   : "",
		slots >= 0 ? arena_printf(p->arena, "%" PRId64 " places", slots + 1) : "",
		s->tried.tight ? ", tight" : "");
	if (!keeps)
		return diag_nomem(p->diag);
	way_fill(&s->tried, 0, s->n, slots);
	TRY(keep(s, &s->tried));
	out->way[out->n++] = (struct loop_way){p->train_problem.problem, keeps};
	return ST_OK;
}

enum status loop_ways_make(struct pipeline *p, const struct problem *problem, struct loop_ways *out)
{
	enum { WAYS_MOST = 80 }; /* two, and slots halved, and again */
	struct search s;
	*out = (struct loop_ways){.way = ARENA_ARRAY(p->arena, struct loop_way, WAYS_MOST)};
	if (!out->way)
		return diag_nomem(p->diag);
	out->way[out->n++].problem = problem;
	if (!p->train)
		return ST_OK;
	TRY(search_begin(&s, p));
	if (!s.n)
		return ST_OK;
	const struct plan_options o = pipeline_options(p->o);
	const int64_t least = fewest_slots(s.turns);
	int64_t resident, keep_all;
	out->n = 0;
	TRY(add_way(&s, LOOP_SLOTS_INSIDE, out));
	TRY(add_way(&s, LOOP_SLOTS_ALL, out));
	for (int64_t slots = most_slots(s.turns) / 2; slots > least; slots /= 2)
		TRY(add_way(&s, slots, out));
	if (least < s.turns - 1)
		TRY(add_way(&s, least, out));
	TRY(plan_range(p->arena, out->way[out->n - 1].problem, &o, &resident, &keep_all, p->diag));
	s.tried.tight = turns_weigh(&s, keep_all);
	if (s.tried.tight)
		TRY(add_way(&s, least < s.turns - 1 ? least : LOOP_SLOTS_ALL, out));
	s.tried.tight = false;
	way_fill(&s.tried, 0, s.n, LOOP_SLOTS_INSIDE);
	return keep(&s, &s.tried);
}
