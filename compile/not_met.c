#include "compile/not_met.h"

#include <inttypes.h>

#include "graph/loop.h"

#include "planner/problem/transfer.h"

/* Would the budget be met if the planner could choose how products are computed? */
static enum status free_would_do(struct pipeline *p, bool *would)
{
	struct graph_problem train = {0}, eval = {0};
	int64_t known, proven;
	bool outputs;
	*would = false;
	if (p->target.math != MATH_FIXED || p->target.portable)
		return ST_OK;
	struct graph *g[] = {p->train, p->eval};
	for (int i = 0; i < 2; i++)
		if (g[i])
			graph_choose(g[i], MATH_FREE);
	TRY(problems_from_graphs(p->arena, p->name, p->train, p->eval,
		p->longest ? pipeline_problem_shown(p->longest) : NULL, &train, &eval));
	TRY(plan_pair_minimum(p->arena,
		&(struct plan_pair){.train = train.problem, .eval = eval.problem}, &p->plan_options,
		&known, &proven, &outputs, p->diag));
	for (int i = 0; i < 2; i++)
		if (g[i])
			graph_choose(g[i], p->target.math);
	*would = known <= p->plans.budget;
	return ST_OK;
}

/* A loop that is one node gives up less than its turns one by one, where a plan of these is made
 * soon. */
enum { UNROLLED_NODES = 3000 };

/* What --unroll makes nodes of all loops' turns, where these would be few enough; 0: no loops, or
 * too many nodes. */
static int64_t turns_to_unroll(const struct pipeline *p)
{
	int64_t most = 0, nodes = 0;
	for (int i = 0; p->train && i < p->train->nnode; i++) {
		const struct loop *l = node_loop(p->train->node[i]);
		for (int b = 0; l && b < l->nbody; b++)
			nodes += loop_runs(l, b) * l->body[b].graph->nnode;
		most = l && l->turns > most ? l->turns : most;
	}
	return nodes <= UNROLLED_NODES ? most : 0;
}

/* Would the budget be met if all turns were nodes of the plan? *turns: so many; 0: no. */
static enum status unrolled_would_do(struct pipeline *p, int64_t *turns)
{
	struct diag quiet = {.put = NULL};
	struct compile_options o = *p->o;
	struct pipeline trial = {.arena = arena_new(), .diag = &quiet, .o = &o, .parts = p->parts};
	int64_t known, proven;
	bool outputs;
	*turns = o.unroll = turns_to_unroll(p);
	if (!trial.arena)
		return diag_nomem(p->diag);
	enum status st = o.unroll ? pipeline_import(&trial) : ST_INVALID;
	if (st == ST_OK)
		st = pipeline_graphs(&trial);
	if (st == ST_OK)
		st = pipeline_problems(&trial);
	if (st == ST_OK)
		st = plan_pair_minimum(trial.arena,
			&(struct plan_pair){.train = trial.train_problem.problem,
				.eval = trial.eval_problem.problem},
			&p->plan_options, &known, &proven, &outputs, &quiet);
	if (st != ST_OK || known > p->plans.budget)
		*turns = 0;
	arena_free(trial.arena);
	return quiet.out_of_memory ? diag_nomem(p->diag) : onlooker_check(o.onlooker, p->diag);
}

static int64_t least_workspace(const struct problem_op *op)
{
	int64_t least = op->choice[0].workspace;
	for (int k = 1; k < op->nchoice; k++)
		if (op->choice[k].workspace < least)
			least = op->choice[k].workspace;
	return least;
}

/* Bytes that lie in the arena whatever is planned. */
struct resident {
	int64_t parameters, state;
	int64_t large; /* of these, in tensors that --offload disk takes unless it is told another
			  size */
};

static struct resident residents(const struct problem *problem)
{
	struct resident r = {0};
	for (int i = 0; i < problem->ntensor; i++) {
		const struct problem_tensor *t = &problem->tensor[i];
		const bool lasts = t->kind == TK_PARAMETER || t->kind == TK_STATE;
		r.parameters += t->kind == TK_PARAMETER ? t->bytes : 0;
		r.state += t->kind == TK_STATE ? t->bytes : 0;
		r.large += lasts && t->bytes >= TRANSFER_BYTES ? t->bytes : 0;
	}
	return r;
}

/* Parameters and states are about all of the budget: what makes them less, of what was not asked
 * for. */
static const char *resident_helps(struct pipeline *p, const struct resident *r)
{
	const struct compile_options *o = p->o;
	const bool disk = r->large && !o->disk.folder && o->target == TARGET_C && !o->bare &&
			  !o->ranks;
	const bool own = r->state && p->parts.shards == 1; /* else sums of gradients are among it */
	char x[24];
	return arena_printf(p->arena,
		"parameters%s alone take %s: ask for the first of these numbers or more%s%s%s",
		r->state ? " and state" : "", bytes_human(r->parameters + r->state, x),
		own ? ", or take an --optimizer with less state" : "",
		own && r->parameters < p->plans.budget && !o->lora && !o->adapter
			? ", or train adapters alone: --lora r=8"
			: "",
		disk ? ", or let them lie in a file: --offload disk:FOLDER" : "");
}

/* What to do about a budget below `known`, the smallest that is met; unroll: the turns that, as
 * nodes, meet it; 0: they do not. */
static const char *what_helps(struct pipeline *p, int64_t known, int64_t unroll)
{
	if (unroll)
		return arena_printf(p->arena,
			"--unroll %" PRId64 " meets it: the plan then chooses among the values of "
			"all turns of its loops",
			unroll);
	const struct problem *problem = pipeline_problem_shown(p)->problem;
	const struct problem_op *most = NULL;
	int64_t bytes = known / 2;
	for (int o = 0; o < problem->nop; o++)
		if (least_workspace(&problem->op[o]) > bytes) {
			most = &problem->op[o];
			bytes = least_workspace(most);
		}
	char x[24];
	if (most)
		return arena_printf(p->arena,
			"ask for the first of these numbers or more: %s of it are the "
			"workspace of node '%s', which %s",
			bytes_human(bytes, x), most->name,
			most->loop ? "holds one turn of its loop"
				   : "shapes and the machine settle");
	const struct resident r = residents(problem);
	if (r.parameters + r.state > p->plans.budget - p->plans.budget / 8)
		return resident_helps(p, &r);
	const bool whole = p->o->import.batch > 1 && p->parts.shards == 1 && p->train;
	const bool parts = whole && !p->o->micro_batch, slices = whole && !p->o->split;
	return arena_printf(p->arena, "ask for the first of these numbers or more%s%s%s%s",
		parts    ? ", or take the batch in parts: --micro-batch auto"
		: slices ? ", or the first layers by slices of the batch: --split auto"
			 : "",
		parts && slices ? ", or its first layers: --split auto" : "",
		!parts && !slices && p->o->import.batch > 1 ? ", or give a smaller --batch" : "",
		!parts && !slices && r.state && p->parts.shards == 1
			? ", or an --optimizer with less state"
			: "");
}

enum status budget_not_met(struct pipeline *p)
{
	int64_t known, proven;
	bool would, outputs;
	int64_t unroll;
	TRY(plan_pair_minimum(
		p->arena, &p->plans, &p->plan_options, &known, &proven, &outputs, p->diag));
	TRY(free_would_do(p, &would));
	TRY(unrolled_would_do(p, &unroll));
	/* what is written says the same, also when only the evaluation's plan is missing */
	struct plan *plan = pipeline_plan_shown(p);
	if (plan) {
		plan->feasible = false;
		plan->min_bytes_known = known;
		plan->min_bytes_proven = proven;
	}
	char x[24], y[24], z[24];
	return diag_fail(p->diag, ST_BUDGET, &(struct where){.file = p->o->model},
		would ? "--math free meets it: the budget then decides how products are computed"
		: outputs && !p->o->no_outputs
			? "training needs less: with --no-outputs evaluation computes the loss "
			  "alone"
			: what_helps(p, known, unroll),
		"no plan found within %lld bytes (%s); smallest budget met: %lld bytes (%s); "
		"proven lower bound: %lld bytes (%s)",
		(long long)p->plans.budget, bytes_human(p->plans.budget, x), (long long)known,
		bytes_human(known, y), (long long)proven, bytes_human(proven, z));
}
