#include "compile/other_lengths.h"

#include <inttypes.h>
#include <string.h>

/* What a length's own diagnostics go through: errors, with the length. */
struct through {
	struct diag *to;
	struct arena *arena;
	const char *dim;
	int64_t length;
};

static void put_error(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	const struct through *t = user;
	if (level != DIAG_ERROR || !t->to->put)
		return;
	const char *told = arena_printf(
		t->arena, "with %s=%" PRId64 ": %s", t->dim, t->length, message);
	t->to->put(t->to->user, level, w, told ? told : message, hint);
}

static void take_counts(struct diag *to, const struct diag *from)
{
	to->errors += from->errors;
	to->out_of_memory |= from->out_of_memory;
	if (to->worst == ST_OK)
		to->worst = from->worst;
}

/* The longest one's options with another length: as many micro-batches, and the arena so far. */
static enum status options_for(
	const struct pipeline *longest, int64_t length, struct arena *a, struct compile_options *o)
{
	const struct import_options *i = &longest->o->import;
	struct import_dim *dim = ARENA_ARRAY(a, struct import_dim, i->ndim);
	if (!dim)
		return diag_nomem(longest->diag);
	for (int k = 0; k < i->ndim; k++) {
		dim[k] = i->dim[k];
		if (!strcmp(dim[k].name, longest->o->lengths.dim))
			dim[k].size = length;
	}
	*o = *longest->o;
	o->import.dim = dim;
	o->lengths = (struct length_options){0};
	o->micro_batch = longest->parts.shards > 1 ? i->batch / longest->parts.shards : 0;
	o->budget = (struct plan_budget){BUDGET_BYTES, longest->plans.arena_bytes, 0};
	return ST_OK;
}

static void note_planned(struct pipeline *longest, struct pipeline *p, int64_t length)
{
	const struct plan *plan = pipeline_plan_shown(p);
	longest->length[longest->nlength++] = (struct length_planned){length, plan->peak_bytes,
		plan->cost_total, problem_one_pass(pipeline_problem_shown(p)->problem)};
}

/* In the arena as it is; where that has no room for the length's own inputs (its peak is an update,
 * say, that no length changes), as the budget has it, and the arena grows. */
static enum status plan_within(
	struct pipeline *longest, struct pipeline *p, struct compile_options *o)
{
	enum status st = pipeline_plan_quietly(p);
	if (st == ST_BUDGET) {
		o->budget = *pipeline_budget(longest);
		st = pipeline_plan(p);
	}
	if (st == ST_OK && p->plans.arena_bytes > longest->plans.arena_bytes)
		longest->plans.arena_bytes = p->plans.arena_bytes;
	return st;
}

static enum status one_length(
	struct pipeline *longest, int64_t length, const struct length_visitor *v, struct arena *a)
{
	struct compile_options o;
	struct through through = {longest->diag, a, longest->o->lengths.dim, length};
	struct diag d = {.put = put_error, .user = &through};
	TRY(options_for(longest, length, a, &o));
	struct pipeline p = {
		.arena = a, .diag = &d, .o = &o, .longest = longest, .length_here = length};
	struct problem *problem;
	enum status st = pipeline_problem(&p, &problem);
	if (st == ST_OK)
		st = plan_within(longest, &p, &o);
	if (st == ST_OK)
		note_planned(longest, &p, length);
	if (st == ST_OK && v)
		st = v->visit(v->user, &p, length);
	take_counts(longest->diag, &d);
	return st;
}

enum status lengths_each(struct pipeline *longest, const struct length_visitor *v)
{
	const struct length_options *l = &longest->o->lengths;
	longest->nlength = 0;
	longest->length = ARENA_ARRAY(longest->arena, struct length_planned, l->n);
	if (l->n && !longest->length)
		return diag_nomem(longest->diag);
	for (int i = 0; i < l->n; i++) {
		struct arena *a = arena_new();
		if (!a)
			return diag_nomem(longest->diag);
		const enum status st = one_length(longest, l->length[i], v, a);
		arena_free(a);
		TRY(st);
	}
	return ST_OK;
}

enum status lengths_agree(const struct pipeline *p)
{
	const struct graph_problem *gp = pipeline_problem_shown(p);
	const struct where w = {.file = p->o->model};
	const int n = residents_of(gp);
	for (int i = residents_of(pipeline_problem_shown(p->longest)); i < n; i++) {
		const struct tensor *t = gp->tensor[i];
		if (t->role != TR_INPUT && t->role != TR_CONSTANT)
			return diag_fail(p->diag, ST_INVALID, &w, "compile it for one length",
				"'%s' lasts over steps and is another for the longest inputs",
				t->name);
	}
	return ST_OK;
}
