/* From two graphs to the sources of a step. */
#include <errno.h>
#include <sys/stat.h>

#include "runtime/stint_lib.h"
#include "tests/ops/ops_test.h"

/* `share`: as in step_write_share; `effort`: of the search. */
static enum status make_plan(
	struct arena *a, struct diag *d, struct plan_pair *pair, double share, double effort)
{
	const struct plan_options o = {
		.alignment = 64, .mode = share < 1 ? PLAN_AUTO : PLAN_KEEP_ALL, .effort = effort};
	struct plan_budget budget = {.kind = share >= 1  ? BUDGET_NONE
					     : share > 0 ? BUDGET_PERCENT
							 : BUDGET_MIN,
		.percent = 100 * share};
	enum status st = plan_pair_make(a, pair, &budget, &o, d);
	if (st != ST_BUDGET)
		return st;
	budget.kind = BUDGET_MIN;
	return plan_pair_make(a, pair, &budget, &o, d);
}

enum status step_save(struct arena *a, struct diag *d, const char *folder, const char *name,
	struct step_texts *texts)
{
	const char *dir = arena_printf(a, "%s/%s", folder, name);
	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return diag_fail(d, ST_IO, NULL, NULL, "cannot make %s", dir);
	for (const struct step_file *f = step_files; f->name; f++)
		if (step_text(texts, f)->len > 0)
			TRY(text_save(
				step_text(texts, f), arena_printf(a, "%s/%s", dir, f->name), d));
	return ST_OK;
}

enum status step_write(struct arena *a, struct diag *d, const char *symbol,
	const struct graph *train, const struct graph *eval, bool tight, const char *folder,
	struct graph_problem *train_problem, struct graph_problem *eval_problem)
{
	return step_write_share(
		a, d, symbol, train, eval, tight ? 0 : 1, 1, folder, train_problem, eval_problem);
}

enum status step_write_share(struct arena *a, struct diag *d, const char *symbol,
	const struct graph *train, const struct graph *eval, double share, double effort,
	const char *folder, struct graph_problem *train_problem, struct graph_problem *eval_problem)
{
	const struct target *target = eval->target;
	char identity[96];
	struct codegen_input in = {.name = symbol,
		.model_file = "example",
		.library_identity = target->portable
					    ? NULL
					    : stint_lib_identity(target->threads, identity),
		.isa_flags = "",
		.debug_arena = true};
	TRY(problems_from_graphs(a, symbol, train, eval, NULL, train_problem, eval_problem));
	in.eval = *eval_problem;
	/* each as tight as it can be; between the extremes the training's plan is the one of
	 * interest */
	struct plan_pair alone = {.eval = in.eval.problem};
	TRY(make_plan(a, d, &alone, share > 0 ? 1 : 0, effort));
	in.eval_plan = alone.eval_plan;
	in.arena_bytes = alone.arena_bytes;
	if (train) {
		in.train = *train_problem;
		struct plan_pair other = {.train = in.train.problem};
		TRY(make_plan(a, d, &other, share, effort));
		in.train_plan = other.train_plan;
		if (other.arena_bytes > in.arena_bytes)
			in.arena_bytes = other.arena_bytes;
	}
	struct source_files files; /* found in the source tree */
	struct step_texts texts = {0};
	enum status st = codegen_step(&in, &texts, &files, d);
	if (st == ST_OK)
		st = step_save(a, d, folder, symbol, &texts);
	step_texts_free(&texts);
	return st;
}
