/* The walk from model to step, one stage after the other. */
#ifndef STINT_COMPILE_PIPELINE_H
#define STINT_COMPILE_PIPELINE_H

#include "codegen/step.h"
#include "compile/compile_options.h"
#include "compile/gpu_ask.h"
#include "compile/graphs.h"
#include "graph/adapt.h"
#include "graph/slices.h"
#include "planner/problem/costs.h"

/* How a batch is taken apart: micro-batches of a step, and slices of each in a region. */
struct parts {
	int64_t shards;
	struct graph_region region; /* slices 0: there is none */
	const char *until;          /* the region's last node */
};

/* Parts that were tried. */
struct trial {
	struct parts parts;
	enum {
		TRIAL_PLANNED, /* `arena_bytes` at `cost`; under --budget min the cost of one pass
				*/
		TRIAL_SLOWER,  /* `cost`, which no plan is below, is above another's: not planned */
		TRIAL_NOT_MET, /* no plan within the budget; within `arena_bytes` there is */
		TRIAL_FAILED   /* the model does not go in such parts */
	} state;
	int64_t arena_bytes;
	double cost;
};

/* What a shorter length's step came to, in the longest one's arena. */
struct length_planned {
	int64_t length, peak_bytes;
	double cost, once; /* once: of one pass */
};

struct pipeline {
	/* Set by the caller: */
	struct arena *arena;
	struct diag *diag;
	const struct compile_options *o;
	void (*dump)(void *user, enum stage stage, const struct graph *g); /* NULL: none */
	void *user;
	const struct pipeline *longest; /* the step whose arena this one's runs in
					   (compile/other_lengths.h); NULL */
	int64_t length_here;            /* with that: this one's length */
	/* Set by the stages: */
	struct target target;
	struct gpu_asked asked;
	/* Of the batch. A region that the caller has set, with o->split 0, is taken. */
	struct parts parts;
	/* Where it was needed for finding them: the model, read with one micro-batch's rows, and
	 * what a slice's of it are. NULL: to be read. The caller may set them. */
	struct graph *whole;
	const struct graph_apart *apart;
	/* What MICRO_BATCH_AUTO and o->split have looked at, for what o->budget is in bytes. */
	int ntrial;
	struct plan_budget budget;
	bool budget_settled; /* or loops have looked at (compile/loop_slots.h) */
	struct trial *trial;
	const struct trial *chosen;
	const char *name;             /* from the model's file name: the end of a C identifier */
	const struct op_table *table; /* stint's operators and those of o->ops */
	struct loss_list losses;
	bool forward; /* --loss none: nothing is trained */
	struct optimizer_spec optimizer;
	int nadapter; /* that o->lora and o->adapter have added to what is imported */
	struct adapter *adapter;
	struct import_options import;          /* how the model was read */
	const char *base_hash;                 /* of the weights that these stand beside */
	struct graph *imported, *train, *eval; /* train NULL: forward only */
	struct graph_problem train_problem, eval_problem;
	bool tight_turns;         /* one turn of a loop is planned in the least memory */
	struct body_plan *bodies; /* turns that are planned (bridge/loop_plans.h) */
	struct costs *costs;      /* o->costs, read on first use */
	struct plan_options plan_options;
	struct plan_pair plans; /* of both problems */
	/* Set by who builds the step: its kernels, and how many of them were kept; 0: not known. */
	int kernels, kernels_kept;
	/* What compile/other_lengths.h has planned beside this one. */
	int nlength;
	struct length_planned *length;
};

/* What is done with each trial's training problem, in the place of a plan for the budget: sets
 * x->state and what belongs to it. */
struct trial_visitor {
	enum status (*visit)(void *user, const struct problem *problem, struct trial *x);
	/* The best so far for some budget: other numbers of slices are tried in its region. */
	bool (*stands)(void *user, const struct trial *x);
	void *user;
};

/* Each stage requires the ones before it. */
enum status pipeline_import(struct pipeline *p);
/* Of that: the model with so many rows in a batch; 0: as many as the file says. Weights are in
 * p->arena. */
enum status pipeline_read(struct pipeline *p, int64_t rows, struct diag *d, struct graph **out);
enum status pipeline_graphs(struct pipeline *p);
/* Of that, what the options say of the optimizer alone. --no-decay-1d gives way to groups. */
enum status pipeline_optimizer(struct pipeline *p);
enum status pipeline_problems(struct pipeline *p);
/* ST_BUDGET, with what would help, where the budget is not met; what pipeline_plan_shown gives is
 * then not feasible, with the bounds. */
enum status pipeline_plan(struct pipeline *p);
/* The same, without that message. */
enum status pipeline_plan_quietly(struct pipeline *p);
/* The sources: those that codegen_step makes. The texts are the caller's, also on failure. */
enum status pipeline_texts(
	struct pipeline *p, struct step_texts *texts, struct source_files *kernels);
/* All but the last. */
enum status pipeline_run(struct pipeline *p);

/* What people are shown: training's, and without it the evaluation's. */
const struct graph_problem *pipeline_problem_shown(const struct pipeline *p);
struct plan *pipeline_plan_shown(const struct pipeline *p);
/* What the model calls the initializer that constant t is; NULL: it is none of the model's. */
const char *pipeline_name(const struct pipeline *p, const struct tensor *t);

/* The problem of a model's training step (of its evaluation, with the loss "none"), or o->graph's;
 * with what o->costs and o->insist say about it. Runs the stages that this takes. */
enum status pipeline_problem(struct pipeline *p, struct problem **out);
/* Calls `v` for all parts that p->o lets a budget choose from. Requires nothing. */
enum status pipeline_each(struct pipeline *p, const struct trial_visitor *v);
/* What the options say about lowering; the mode: training. */
struct lower_options pipeline_lowering(const struct compile_options *o);
/* The budget, where parts were tried in bytes. */
const struct plan_budget *pipeline_budget(const struct pipeline *p);
/* What the options say about planning; the budget: none. */
struct plan_options pipeline_options(const struct compile_options *o);

#endif
