#include "compile/batch_auto.h"

#include <inttypes.h>

static const double EFFORT = 0.05;

static enum status check(const struct pipeline *p)
{
	const struct compile_options *o = p->o;
	const char *other = o->micro_batch ? "--micro-batch"
			    : o->split     ? "--split"
			    : o->ranks     ? "--ranks"
					   : NULL;
	if (other)
		return diag_fail(p->diag, ST_USAGE, NULL, "--batch N, as large as is wanted",
			"--batch auto is for a step that takes its batch whole: %s takes it apart",
			other);
	return o->budget.kind == BUDGET_BYTES
		       ? ST_OK
		       : diag_fail(p->diag, ST_USAGE, NULL, "--budget 2GiB, for example",
				 "--batch auto is the largest batch within a budget in bytes");
}

/* ST_OK in *how: there is a plan; ST_BUDGET: none within the budget; else the model does not take
 * such a batch. */
static enum status try_batch(const struct pipeline *p, int64_t batch, enum status *how)
{
	struct diag quiet = {.put = NULL};
	struct compile_options o = *p->o;
	struct onlooker whole_ones = o.onlooker ? *o.onlooker : (struct onlooker){0};
	struct problem *problem;
	whole_ones.keeps = NULL; /* one that is cut short says nothing of its batch */
	o.onlooker = &whole_ones;
	o.batch_auto = 0;
	o.import.batch = batch;
	o.effort = o.effort < EFFORT ? o.effort : EFFORT;
	struct pipeline trial = {.arena = arena_new(), .diag = &quiet, .o = &o};
	if (!trial.arena)
		return diag_nomem(p->diag);
	*how = pipeline_problem(&trial, &problem);
	if (*how == ST_OK)
		*how = pipeline_plan_quietly(&trial);
	arena_free(trial.arena);
	return onlooker_check(p->o->onlooker, p->diag);
}

/* *most: the largest that has a plan. *refused: one sample, where that has none, or two, which the
 * model does not take; else 0. */
static enum status find(const struct pipeline *p, int64_t *most, int64_t *refused)
{
	int64_t none = 1; /* the least that is known to have no plan */
	enum status how;
	for (*most = *refused = 0; none <= BATCH_AUTO_MOST; *most = none, none *= 2) {
		TRY(try_batch(p, none, &how));
		if (none == 1 ? how != ST_OK : none == 2 && how != ST_OK && how != ST_BUDGET)
			*refused = none;
		if (how != ST_OK)
			break;
	}
	while (none <= BATCH_AUTO_MOST && none - *most > 1) {
		const int64_t middle = *most + (none - *most) / 2;
		TRY(try_batch(p, middle, &how));
		*(how == ST_OK ? most : &none) = middle;
	}
	return ST_OK;
}

enum status batch_auto_choose(struct pipeline *p)
{
	int64_t most, refused;
	char text[24];
	if (!p->o->batch_auto)
		return ST_OK;
	TRY(check(p));
	struct compile_options *o = arena_memdup(p->arena, p->o, 1, sizeof *o);
	if (!o)
		return diag_nomem(p->diag);
	TRY(find(p, &most, &refused));
	o->batch_auto = 0;
	o->import.batch = refused ? refused : most;
	p->o = o;
	if (!refused)
		diag_note(p->diag, &(struct where){.file = o->model},
			most == BATCH_AUTO_MOST ? "larger ones are given by their number" : NULL,
			"--batch auto: a batch of %" PRId64 ", %s within %s", most,
			most == BATCH_AUTO_MOST ? "the most that is tried, is"
						: "the largest that a plan was found for",
			bytes_human(o->budget.bytes, text));
	return ST_OK;
}
