/* stint plan MODEL.onnx ... | --graph G.json [--budget SIZE] [-o PLAN.json] [--dump-graph G.json]
 */
#include "api/report.h"
#include "cli/calibration.h"
#include "cli/cli.h"
#include "cli/command_options.h"
#include "cli/compare_plans.h"
#include "cli/plan_ranks.h"
#include "compile/other_lengths.h"

static enum status save_json(struct text *t, const char *path, struct diag *d)
{
	enum status st = text_save(t, path, d);
	text_free(t);
	return st;
}

/* Which budgets there are. */
struct range {
	int64_t known, proven, all; /* known 0: not looked for */
};

/* Where no budget was asked for. */
static enum status find_range(
	const struct pipeline *p, const struct options *o, struct activity *at, struct range *out)
{
	const struct plan_options options = pipeline_options(p->o);
	bool eval;
	*out = (struct range){.all = p->plans.arena_bytes};
	if (o->json || p->o->graph || p->o->budget.kind != BUDGET_NONE || options.mode != PLAN_AUTO)
		return ST_OK;
	activity_now(at, "planning for the smallest budget");
	return plan_pair_minimum(
		p->arena, &p->plans, &options, &out->known, &out->proven, &eval, p->diag);
}

/* An infeasible answer is written too, as the format says, with the exit code of a budget not met.
 */
static enum status finish(struct pipeline *p, const struct options *o, struct activity *at,
	const struct problem *problem, const struct plan *plan, enum status st)
{
	if (plan && o->out && (st == ST_OK || st == ST_BUDGET)) {
		struct text t = {0};
		plan_print(problem, plan, &t);
		TRY(save_json(&t, o->out, p->diag));
	}
	struct range range = {0};
	if (st == ST_OK)
		st = find_range(p, o, at, &range);
	activity_end(at);
	TRY(st);
	if (o->json)
		return report_json(stdout, p->arena, problem, plan, p, p->diag);
	if (range.known)
		report_budgets(stdout, range.known, range.proven, range.all);
	TRY(report_plan(stdout, p->arena, problem, plan, p->diag));
	TRY(report_kinds(stdout, p->arena, problem, plan, p->diag));
	report_trials(stdout, p);
	report_lengths(stdout, p);
	return p->o->portable ? ST_OK
			      : calibration_tell(p->arena, problem, plan, p->o->threads, p->diag);
}

static enum status dump_graph(
	struct pipeline *p, const struct options *o, const struct problem *problem)
{
	if (!o->dump_graph)
		return ST_OK;
	struct text t = {0};
	problem_print(problem, &t);
	return save_json(&t, o->dump_graph, p->diag);
}

static enum status plan_graph_file(
	struct pipeline *p, struct options *o, const struct problem *problem, struct activity *at)
{
	const struct plan_options options = pipeline_options(p->o);
	struct plan_pair alone = {.train = problem};
	enum status st = plan_pair_make(p->arena, &alone, &p->o->budget, &options, p->diag);
	const struct plan *plan = alone.train_plan;
	if (st == ST_BUDGET && plan) {
		char x[24], y[24];
		diag_fail(p->diag, ST_BUDGET, &(struct where){.file = p->o->graph}, NULL,
			"no plan found within %lld bytes; smallest budget met: %lld bytes (%s); "
			"proven lower bound: %lld bytes (%s)",
			(long long)alone.budget, (long long)plan->min_bytes_known,
			bytes_human(plan->min_bytes_known, x), (long long)plan->min_bytes_proven,
			bytes_human(plan->min_bytes_proven, y));
	}
	return finish(p, o, at, problem, plan, st);
}

static enum status compare(
	struct pipeline *p, struct options *o, const struct problem *problem, struct activity *at)
{
	struct plan_options options = pipeline_options(p->o);
	p->o->onlooker->keeps = NULL; /* a table of what was taken early compares nothing */
	if (o->out || p->o->keep_all || p->o->segments)
		return diag_fail(p->diag, ST_USAGE, NULL, NULL,
			"--compare makes a table of all: no -o, --keep-all or --segments");
	TRY(plan_budget_bytes(
		p->arena, problem, &options, &p->o->budget, &options.budget, p->diag));
	return compare_print(p->arena, problem, &options, o->json, at, p->diag);
}

/* --link. Without --shard the step that is planned is for any number of ranks; or, where they share
 * statistics, for so many. */
static enum status take_link(struct options *o, struct plan_ranks *asked, struct diag *d)
{
	*asked = (struct plan_ranks){.ranks = 0};
	if (!o->link)
		return ST_OK;
	if (o->compare || o->out || o->compile.graph)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--link makes a table of a model's step: no --compare, -o or --graph");
	o->compile.onlooker->keeps = NULL;
	asked->ranks = o->compile.ranks;
	asked->link = o->compile.link;
	asked->only = o->compile.bn == BN_SYNC;
	asked->each = !asked->only && options_given(o, "shard");
	if (asked->each)
		o->compile.effort *= PLAN_RANKS_EFFORT;
	else if (!asked->only)
		o->compile.ranks = 0;
	else if (!options_given(o, "shard"))
		o->compile.share = SHARE_NONE;
	return ST_OK;
}

static enum status plan(struct pipeline *p, struct options *o, struct activity *at)
{
	struct problem *problem;
	struct plan_ranks asked;
	TRY(take_link(o, &asked, p->diag));
	o->compile.guess = 1;
	TRY(pipeline_problem(p, &problem));
	TRY(dump_graph(p, o, problem));
	if (o->compare)
		return compare(p, o, problem, at);
	if (p->o->graph)
		return plan_graph_file(p, o, problem, at);
	enum status st = pipeline_plan(p);
	if (st == ST_OK)
		st = lengths_each(p, NULL);
	if (st == ST_OK && asked.ranks)
		return plan_ranks_print(p, &asked, o->json, at);
	return finish(p, o, at, problem, pipeline_plan_shown(p), st);
}

enum status cmd_plan(int argc, const char **argv, struct diag *d)
{
	return options_command(COMMAND_PLAN, argc, argv, d, plan);
}
