/* The walk from model to step, one stage after the other. */
#ifndef STINT_CLI_PIPELINE_H
#define STINT_CLI_PIPELINE_H

#include "cli/options.h"
#include "codegen/step.h"
#include "planner/problem/costs.h"

struct pipeline {
	struct arena *arena;
	struct diag *diag;
	const struct options *o;
	const struct op_table *table; /* stint's operators and those of --ops */
	enum dtype real;
	struct target target;
	struct loss_spec loss;
	struct optimizer_spec optimizer;
	struct graph *imported, *train, *eval; /* train NULL: forward only */
	int nparam;
	struct tensor **param, **grad;
	struct graph_problem train_problem, eval_problem;
	struct costs *costs;                 /* --costs, read on first use */
	struct plan_options plan_options;    /* the resolved budget inside */
	struct plan *train_plan, *eval_plan; /* train_plan NULL: forward only */
	int64_t arena_bytes;                 /* max of both plans' */
	const char *name;                    /* C identifier made from the model's file name */
};

/* p->arena, diag and o are set by the caller. Each stage requires the ones before it. */
enum status pipeline_import(struct pipeline *p);
enum status pipeline_graphs(struct pipeline *p);
enum status pipeline_problems(struct pipeline *p);
enum status pipeline_plan(struct pipeline *p);
/* All of the above. */
enum status pipeline_run(struct pipeline *p);

/* What --costs says, in place of the problem's own costs: a note tells how many ops were measured.
 * Nothing without --costs. For problems that do not come from pipeline_problems. */
enum status pipeline_costs(struct pipeline *p, struct problem *problem);

/* The problem of the model's training step (of its evaluation, with --loss none), or of --graph;
 * with what --costs and --no-recompute say about it. */
enum status pipeline_problem(struct pipeline *p, struct problem **out);
/* What the options say about planning; the budget: none. */
struct plan_options pipeline_options(const struct options *o);
/* The budget as written, in bytes, into options->budget. */
enum status pipeline_budget(struct arena *a, const struct problem *problem, const struct options *o,
	struct plan_options *options, struct diag *d);

/* plan_check of a plan that stint made: a breach is ST_INTERNAL, no fault of the model. */
enum status plan_own_check(const struct problem *problem, const struct plan *plan,
	int64_t alignment, const char *file, struct diag *d);

/* Plan `problem` under `o->budget` as written, for --graph: sets *options' budget and *plan. */
enum status plan_under(struct arena *a, const struct problem *problem, const struct options *o,
	struct plan_options *options, struct plan **plan, struct diag *d);

/* Write DIR and build it unless --no-build: all of it or nothing (folder.h). */
enum status output_write(struct pipeline *p, const char *dir);

#endif
