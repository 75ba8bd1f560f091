/* From two graphs to the sources of a step: the last stages of cli/pipeline.c. */
#include <errno.h>
#include <sys/stat.h>

#include "runtime/stint_lib.h"
#include "tests/ops/ops_test.h"

/* `effort`: of the search, as in struct plan_options. */
static enum status make_plan(struct arena *a, struct diag *d, const struct problem *p, double share,
	double effort, struct plan **out)
{
	struct plan_options o = {.budget = INT64_MAX,
		.alignment = 64,
		.mode = share < 1 ? PLAN_AUTO : PLAN_KEEP_ALL,
		.effort = effort};
	int64_t resident, keep_all, proven;
	enum status st = ST_BUDGET;
	if (share > 0 && share < 1) {
		TRY(plan_range(a, p, &o, &resident, &keep_all, d));
		o.budget = resident + (int64_t)((double)(keep_all - resident) * share);
	}
	if (share > 0)
		st = plan_make(a, p, &o, out, d);
	if (st == ST_BUDGET) {
		TRY(plan_minimum(a, p, &o, &o.budget, &proven, d));
		st = plan_make(a, p, &o, out, d);
	}
	TRY(st);
	return plan_check(p, *out, o.alignment, "plan", d);
}

static enum status write_sources(
	struct arena *a, struct diag *d, const struct codegen_input *in, const char *folder)
{
	struct source_files files; /* found in the source tree */
	struct step_texts texts = {0};
	const char *dir = arena_printf(a, "%s/%s", folder, in->name);
	enum status st = codegen_step(in, &texts, &files, d);
	if (st == ST_OK && mkdir(dir, 0777) != 0 && errno != EEXIST)
		st = diag_fail(d, ST_IO, NULL, NULL, "cannot make %s", dir);
	for (const struct step_file *f = step_files; f->name; f++)
		if (st == ST_OK && step_text(&texts, f)->len > 0)
			st = text_save(
				step_text(&texts, f), arena_printf(a, "%s/%s", dir, f->name), d);
	step_texts_free(&texts);
	return st;
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
	struct plan *train_plan = NULL, *eval_plan;
	TRY(problem_from_graph(a, eval, symbol, true, NULL, eval_problem));
	if (train) {
		TRY(problem_from_graph(a, train, symbol, false, eval_problem, train_problem));
		TRY(problem_from_graph(a, eval, symbol, true, train_problem, eval_problem));
		TRY(make_plan(a, d, train_problem->problem, share, effort, &train_plan));
		in.train = *train_problem;
	}
	/* between the extremes the training's plan is the one of interest */
	TRY(make_plan(a, d, eval_problem->problem, share > 0 ? 1 : 0, effort, &eval_plan));
	in.eval = *eval_problem;
	in.train_plan = train_plan;
	in.eval_plan = eval_plan;
	return write_sources(a, d, &in, folder);
}
