#include "cli/pipeline.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/custom_ops.h"
#include "planner/problem/roofline.h"
#include "planner/problem/transfer.h"
#include "runtime/stint_gpu.h"
#include "runtime/stint_lib.h"

static int64_t library_workspace(void *user, const struct lib_call *call)
{
	const struct pipeline *p = user;
	return stint_lib_workspace(&call->call, p->target.threads);
}

/* What a GPU's libraries are planned to use: fixed by shape and architecture. */
static int64_t gpu_workspace(void *user, const struct lib_call *call)
{
	const struct pipeline *p = user;
	struct stint_gpu_product product;
	struct stint_gpu_convolution c;
	if (call->rough) /* ways of the CPU's library */
		return -1;
	if (!stint_gpu_product_of(&call->call, p->o->arch, &product))
		return (int64_t)product.cap;
	if (!stint_gpu_convolution_of(&call->call, &c))
		return (int64_t)c.cap;
	return -1;
}

/* "my-model.onnx" → "my_model" */
static char *identifier(struct arena *a, const char *path)
{
	const char *base = strrchr(path, '/');
	base = base ? base + 1 : path;
	const char *dot = strrchr(base, '.');
	size_t n = dot && dot != base ? (size_t)(dot - base) : strlen(base);
	char *s = arena_strndup(a, base, n > 48 ? 48 : n);
	for (char *c = s; c && *c; c++)
		if (!isalnum((unsigned char)*c) || (unsigned char)*c > 127)
			*c = '_';
	return s && *s ? s : arena_strdup(a, "model");
}

static void dump(const struct pipeline *p, enum stage stage, const struct graph *g)
{
	if (p->o->dump_after != stage)
		return;
	struct text t = {0};
	graph_print(g, &t);
	if (t.s)
		fwrite(t.s, 1, t.len, stdout);
	text_free(&t);
}

enum status pipeline_import(struct pipeline *p)
{
	const struct options *o = p->o;
	if (!o->model)
		return diag_fail(p->diag, ST_USAGE, NULL, "`--help` shows how", "no model given");
	p->real = o->precision == PRECISION_FP64 ? DT_F64 : DT_F32;
	const bool cuda = o->target == TARGET_CUDA;
	p->target = (struct target){.cuda = cuda,
		.arch = cuda ? o->arch : 0,
		.portable = o->portable,
		.tf32 = o->precision == PRECISION_TF32,
		.narrow = o->precision == PRECISION_BF16 || o->precision == PRECISION_FP16,
		.threads = o->threads,
		.math = o->math,
		.block = o->portable ? 0
			 : cuda      ? BLOCK_ALL
				     : stint_lib_block(),
		.library_workspace = o->portable ? NULL
				     : cuda      ? gpu_workspace
						 : library_workspace,
		.user = p};
	p->name = identifier(p->arena, o->model);
	if (!p->name)
		return diag_nomem(p->diag);
	TRY(custom_ops_load(p->arena, o->ops, &p->table, p->diag));
	TRY(import_onnx(p->arena, o->model, &o->import, p->table, &p->target, p->real, p->diag,
		&p->imported));
	dump(p, STAGE_IMPORT, p->imported);
	return ST_OK;
}

/* The loss; what is large in pieces, in training and, without outputs, in evaluation too. */
static enum status attach_loss(struct pipeline *p, bool whole, struct graph **g)
{
	TRY(graph_attach_loss(*g, &p->loss));
	dump(p, STAGE_LOSS, *g);
	if (p->o->no_outputs)
		(*g)->noutput = 0;
	return whole ? ST_OK : graph_split(*g, g);
}

/* Layouts, precision, fusion, and which way each node is computed. */
static enum status kernels_of(struct pipeline *p, bool train, struct graph **g)
{
	if (p->target.block != 0 && p->real == DT_F32) {
		TRY(graph_layout(*g, p->target.block, false, g));
		dump(p, STAGE_LAYOUT, *g);
	}
	const bool half = p->o->precision == PRECISION_FP16;
	if (half || p->o->precision == PRECISION_BF16) {
		TRY(graph_narrow(*g, half ? DT_F16 : DT_BF16, train ? NARROW_OUTPUTS : 0, g));
		dump(p, STAGE_NARROW, *g);
	}
	if (p->o->fuse == FUSE_ON) {
		TRY(graph_fuse(*g));
		dump(p, STAGE_FUSE, *g);
	}
	graph_choose(*g, p->target.math);
	return graph_name_constants(*g);
}

static enum status train_graph(struct pipeline *p, const struct lower_options *lower)
{
	TRY(graph_lower(p->imported, lower, &p->train));
	dump(p, STAGE_LOWER, p->train);
	if (p->target.cuda && !graph_control(p->train)) /* kernels tell there of bad indices */
		return p->train->failed;
	TRY(attach_loss(p, false, &p->train));
	if (p->o->precision == PRECISION_FP16)
		TRY(graph_scale_loss(p->train));
	TRY(graph_autodiff(p->train, &p->nparam, &p->param, &p->grad));
	dump(p, STAGE_AUTODIFF, p->train);
	TRY(graph_attach_updates(p->train, &p->optimizer, p->nparam, p->param, p->grad));
	dump(p, STAGE_UPDATES, p->train);
	return kernels_of(p, true, &p->train);
}

static enum status eval_graph(struct pipeline *p, struct lower_options *lower)
{
	lower->mode = LOWER_EVAL;
	TRY(graph_lower(p->imported, lower, &p->eval));
	if (p->target.cuda && !graph_control(p->eval))
		return p->eval->failed;
	TRY(attach_loss(p, !p->o->no_outputs, &p->eval));
	TRY(graph_prune(p->eval));
	return kernels_of(p, false, &p->eval);
}

enum status pipeline_graphs(struct pipeline *p)
{
	const struct options *o = p->o;
	if (!o->loss)
		return diag_fail(p->diag, ST_USAGE, NULL, "--loss none plans the forward pass only",
			"no --loss given");
	TRY(loss_parse(p->arena, p->table, o->loss, &p->loss, p->diag));
	struct lower_options lower = {LOWER_TRAIN, o->dropout_off != 0, o->bn == BN_FROZEN,
		o->bn_variance == VARIANCE_POPULATION, o->nratio, o->ratio};
	if (p->loss.none && o->no_outputs)
		return diag_fail(p->diag, ST_USAGE, NULL, NULL,
			"--no-outputs: without a loss there would be nothing to compute");
	if (!p->loss.none) {
		if (!o->optimizer)
			return diag_fail(p->diag, ST_USAGE, NULL,
				"for example --optimizer sgd:lr=0.1", "no --optimizer given");
		TRY(optimizer_parse(p->arena, p->table, o->optimizer, &p->optimizer, p->diag));
		p->optimizer.clip_norm = o->clip_norm;
		TRY(train_graph(p, &lower));
	}
	return eval_graph(p, &lower);
}

/* Times of another number of threads or another library are not this step's. */
static void warn_of_machine(const struct pipeline *p)
{
	const struct costs *c = p->costs;
	const struct where w = {.file = p->o->costs};
	char identity[96];
	if (c->threads && c->threads != p->o->threads)
		diag_warn(p->diag, &w, "measure again: `stint bench DIR --costs-out FILE`",
			"measured with %d thread%s, the step is planned for %d", c->threads,
			c->threads == 1 ? "" : "s", p->o->threads);
	else if (c->library && !p->o->portable &&
		 strcmp(c->library, stint_lib_identity(p->o->threads, identity)) != 0)
		diag_warn(p->diag, &w, "measure again: `stint bench DIR --costs-out FILE`",
			"measured with %s, this is %s", c->library, identity);
}

static enum status apply_costs(struct pipeline *p, struct problem *problem, struct costs_use *use)
{
	if (!p->o->costs)
		return ST_OK;
	if (!p->costs) {
		TRY(costs_read(p->arena, p->o->costs, &p->costs, p->diag));
		warn_of_machine(p);
	}
	return costs_apply(p->arena, problem, p->costs, use, p->diag);
}

enum status pipeline_costs(struct pipeline *p, struct problem *problem)
{
	struct costs_use use = {0};
	TRY(apply_costs(p, problem, &use));
	if (p->costs)
		diag_note(p->diag, &(struct where){.file = p->o->costs}, NULL,
			"%d of %d ops measured; %d scaled from the roofline, by the median of "
			"their "
			"operator or of all",
			use.measured, use.measured + use.scaled, use.scaled);
	return ST_OK;
}

/* `train` stays empty without a training graph. */
static enum status make_problems(
	const struct pipeline *p, struct graph_problem *train, struct graph_problem *eval)
{
	TRY(problem_from_graph(p->arena, p->eval, p->name, true, NULL, eval));
	if (!p->train)
		return ST_OK;
	/* the evaluation's residents that training does not read have their place in both */
	TRY(problem_from_graph(p->arena, p->train, p->name, false, eval, train));
	return problem_from_graph(p->arena, p->eval, p->name, true, train, eval);
}

enum status pipeline_problems(struct pipeline *p)
{
	struct costs_use use;
	TRY(make_problems(p, &p->train_problem, &p->eval_problem));
	struct problem *main = p->train ? p->train_problem.problem : p->eval_problem.problem;
	TRY(pipeline_costs(p, main));
	TRY(insist_once(p->arena, main, p->o->insist.once, p->o->model, p->diag));
	if (!p->train && p->o->insist.again)
		return diag_fail(p->diag, ST_USAGE, NULL, NULL,
			"--recompute: the forward pass alone keeps nothing for a backward pass");
	if (!p->train)
		return ST_OK;
	TRY(apply_costs(p, p->eval_problem.problem, &use));
	TRY(graph_problem_again(
		p->arena, &p->train_problem, p->o->insist.again, p->o->model, p->diag));
	if (p->o->offload_least)
		TRY(graph_problem_transfers(p->arena, &p->train_problem, p->o->offload_least,
			roofline_of(p->o->arch)->link, p->diag));
	/* what is run once in training is so there too, where it is there */
	return insist_once(p->arena, p->eval_problem.problem, p->o->insist.once, NULL, p->diag);
}

enum status pipeline_problem(struct pipeline *p, struct problem **out)
{
	const struct options *o = p->o;
	if (o->graph && o->model)
		return diag_fail(
			p->diag, ST_USAGE, NULL, NULL, "give a model or --graph, not both");
	if (o->graph) {
		TRY(problem_read(p->arena, o->graph, out, p->diag));
		TRY(pipeline_costs(p, *out));
		TRY(insist_once(p->arena, *out, o->insist.once, o->graph, p->diag));
		int *was;
		TRY(insist_again(p->arena, *out, o->insist.again, o->graph, &was, p->diag));
		struct problem plain;
		return o->offload_least && !transfers_without(*out, &plain)
			       ? transfers_add(p->arena, *out, o->offload_least,
					 roofline_of(o->arch)->link, p->diag)
			       : ST_OK;
	}
	TRY(pipeline_import(p));
	TRY(pipeline_graphs(p));
	TRY(pipeline_problems(p));
	*out = p->train ? p->train_problem.problem : p->eval_problem.problem;
	return ST_OK;
}

enum status pipeline_budget(struct arena *a, const struct problem *problem, const struct options *o,
	struct plan_options *options, struct diag *d)
{
	struct budget b;
	TRY(budget_parse(o->budget, &b, d));
	int64_t resident, keep_all, proven;
	switch (b.kind) {
	case BUDGET_NONE:
	case BUDGET_BYTES:
		options->budget = b.bytes;
		break;
	case BUDGET_PERCENT:
		TRY(plan_range(a, problem, options, &resident, &keep_all, d));
		/* rounded up: 100% is always met */
		options->budget = resident +
				  (int64_t)ceil((double)(keep_all - resident) * (b.percent / 100));
		break;
	case BUDGET_MIN:
		TRY(plan_minimum(a, problem, options, &options->budget, &proven, d));
		break;
	}
	return ST_OK;
}

struct plan_options pipeline_options(const struct options *o)
{
	return (struct plan_options){.budget = INT64_MAX,
		.alignment = o->target == TARGET_CUDA ? 256 : 64,
		.segments = o->segments,
		.seconds = o->seconds,
		.effort = o->effort,
		.mode = o->keep_all   ? PLAN_KEEP_ALL
			: o->segments ? PLAN_SEGMENTS
				      : PLAN_AUTO};
}

enum status plan_own_check(const struct problem *problem, const struct plan *plan,
	int64_t alignment, const char *file, struct diag *d)
{
	const enum status st = plan_check(problem, plan, alignment, file, d);
	return st != ST_INVALID ? st
				: diag_fail(d, ST_INTERNAL, &(struct where){.file = file}, NULL,
					  "the plan that was made breaks the rules of plans");
}

enum status plan_under(struct arena *a, const struct problem *problem, const struct options *o,
	struct plan_options *options, struct plan **plan, struct diag *d)
{
	*options = pipeline_options(o);
	TRY(pipeline_budget(a, problem, o, options, d));
	enum status st = plan_make(a, problem, options, plan, d);
	if (st == ST_OK)
		st = plan_own_check(problem, *plan, options->alignment, "plan", d);
	return st;
}

/* The smallest budget known to be met by both plans, and the proven bound; *outputs: it is more
 * than training's, for the evaluation. */
static enum status both_minimum(const struct pipeline *p, const struct graph_problem *train,
	const struct graph_problem *eval, int64_t *known, int64_t *proven, bool *outputs)
{
	const struct problem *problem[] = {train->problem, eval->problem};
	*known = *proven = 0;
	*outputs = false;
	for (int i = 0; i < 2; i++) {
		int64_t k, b;
		if (!problem[i])
			continue;
		TRY(plan_minimum(p->arena, problem[i], &p->plan_options, &k, &b, p->diag));
		*outputs = problem[0] && k > *known;
		*known = k > *known ? k : *known;
		*proven = b > *proven ? b : *proven;
	}
	return ST_OK;
}

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
	TRY(make_problems(p, &train, &eval));
	TRY(both_minimum(p, &train, &eval, &known, &proven, &outputs));
	for (int i = 0; i < 2; i++)
		if (g[i])
			graph_choose(g[i], p->target.math);
	*would = known <= p->plan_options.budget;
	return ST_OK;
}

static int64_t least_workspace(const struct problem_op *op)
{
	int64_t least = op->choice[0].workspace;
	for (int k = 1; k < op->nchoice; k++)
		if (op->choice[k].workspace < least)
			least = op->choice[k].workspace;
	return least;
}

/* What to do about a budget below `known`, the smallest that is met. */
static const char *what_helps(struct pipeline *p, int64_t known)
{
	const struct problem *problem = p->train ? p->train_problem.problem
						 : p->eval_problem.problem;
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
			"workspace of node '%s', which shapes and the machine settle",
			bytes_human(bytes, x), most->name);
	return "ask for the first of these numbers or more, a smaller batch, or an optimizer "
	       "with less state";
}

/* Both plans fit or the message says what would. */
static enum status not_met(struct pipeline *p)
{
	int64_t known, proven;
	bool would, outputs;
	TRY(both_minimum(p, &p->train_problem, &p->eval_problem, &known, &proven, &outputs));
	TRY(free_would_do(p, &would));
	/* what is written says the same, also when only the evaluation's plan is missing */
	struct plan *plan = p->train ? p->train_plan : p->eval_plan;
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
			: what_helps(p, known),
		"no plan found within %lld bytes (%s); smallest budget met: %lld bytes (%s); "
		"proven lower bound: %lld bytes (%s)",
		(long long)p->plan_options.budget, bytes_human(p->plan_options.budget, x),
		(long long)known, bytes_human(known, y), (long long)proven, bytes_human(proven, z));
}

static enum status plan_one(struct pipeline *p, const struct graph_problem *gp,
	const struct plan_options *options, struct plan **plan)
{
	TRY(plan_make(p->arena, gp->problem, options, plan, p->diag));
	return plan_own_check(gp->problem, *plan, options->alignment, p->o->model, p->diag);
}

enum status pipeline_plan(struct pipeline *p)
{
	const struct graph_problem *main = p->train ? &p->train_problem : &p->eval_problem;
	p->plan_options = pipeline_options(p->o);
	TRY(pipeline_budget(p->arena, main->problem, p->o, &p->plan_options, p->diag));
	if (p->train) {
		struct budget b;
		TRY(budget_parse(p->o->budget, &b, p->diag));
		if (b.kind == BUDGET_MIN) { /* the smallest that both plans meet */
			int64_t known, proven;
			TRY(plan_minimum(p->arena, p->eval_problem.problem, &p->plan_options,
				&known, &proven, p->diag));
			if (known > p->plan_options.budget)
				p->plan_options.budget = known;
		}
		enum status st = plan_one(p, &p->train_problem, &p->plan_options, &p->train_plan);
		if (st == ST_BUDGET)
			return not_met(p);
		TRY(st);
	}
	struct plan_options eval = p->plan_options;
	eval.mode = PLAN_AUTO;
	enum status st = plan_one(p, &p->eval_problem, &eval, &p->eval_plan);
	if (st == ST_BUDGET)
		return not_met(p);
	TRY(st);
	p->arena_bytes = p->eval_plan->arena_bytes;
	if (p->train_plan && p->train_plan->arena_bytes > p->arena_bytes)
		p->arena_bytes = p->train_plan->arena_bytes;
	return ST_OK;
}

enum status pipeline_run(struct pipeline *p)
{
	TRY(pipeline_import(p));
	TRY(pipeline_graphs(p));
	TRY(pipeline_problems(p));
	return pipeline_plan(p);
}
