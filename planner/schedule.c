/* From a problem to the cheapest plan found within a budget. */
#include "planner/solver.h"

#include <stdlib.h>
#include <string.h>

enum { TIGHTEN_MAX = 12 };

static enum status plan_at(struct search *x, struct arena *a, const struct plan_options *o,
	struct seq *q, int *way, struct plan **out, struct diag *d)
{
	x->target = o->budget;
	*out = NULL;
	for (int i = 0; i < TIGHTEN_MAX; i++) {
		struct seq trial = {0};
		if (!seq_copy(&trial, q))
			return diag_nomem(d);
		bool fits = repair(x, &trial, way, 1e300, 8, false);
		struct plan *plan = NULL;
		enum status st = ST_OK;
		if (fits) {
			polish(x, &trial, way);
			st = emit_plan(x, a, &trial, way, o->budget, &plan, d);
		}
		seq_free(&trial);
		if (st != ST_OK || !fits)
			return st;
		if (plan->arena_bytes <= o->budget) {
			*out = plan;
			return ST_OK;
		}
		x->target -= plan->arena_bytes - o->budget;
	}
	return ST_OK;
}

enum status plan_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	struct plan **out, struct diag *d)
{
	struct inst *in;
	struct search x;
	struct seq q = {0};
	TRY(inst_make(a, p, o->alignment, &in, d));
	int *way = ARENA_ARRAY(a, int, in->n + 1);
	enum status st = ST_OK;
	if (!search_init(&x, a, in) || !way)
		st = diag_nomem(d);
	if (st == ST_OK) {
		pick_ways(&x, way);
		order_listed(&x, way, &q);
		st = plan_at(&x, a, o, &q, way, out, d);
	}
	if (st == ST_OK && !*out) {
		struct plan *plan = *out = ARENA_NEW(a, struct plan);
		if (!plan) {
			st = diag_nomem(d);
		} else {
			plan->graph = p->name;
			plan->budget_bytes = o->budget;
			st = ST_BUDGET;
		}
	}
	seq_free(&q);
	search_free(&x);
	return st;
}
