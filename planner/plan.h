/* A plan: a schedule and the place of every byte. Plain data; JSON form stint-plan-1. */
#ifndef STINT_PLANNER_PLAN_H
#define STINT_PLANNER_PLAN_H

#include "base/onlooker.h"
#include "planner/problem/problem.h"

struct plan_step {
	int op;
	int choice; /* 0 where the op has no choices */
	int run;    /* 0 for the first run of this op, 1 for its first recomputation, ... */
};

/* One lifetime of one tensor, or one run's workspace. Steps are inclusive. */
struct plan_buffer {
	int tensor;       /* tensor index; -1 for a workspace */
	int workspace_of; /* op index for a workspace; -1 for a tensor */
	int64_t offset, bytes;
	int first_step, last_step;
};

struct plan {
	const char *graph;    /* the problem's name */
	int64_t budget_bytes; /* as asked; INT64_MAX means none was */
	int64_t arena_bytes, peak_bytes;
	double cost_once, cost_total;
	double lower_bound; /* proven for any schedule within the budget; negative when none is
			       known */
	int nstep, nbuffer;
	struct plan_step *step;
	/* Residents first, in tensor order; then in order of first_step. */
	struct plan_buffer *buffer;
	bool feasible;                             /* false: only the two numbers below hold */
	int64_t min_bytes_known, min_bytes_proven; /* set when asked for or when not feasible */
};

/* How to plan. Zero-initialise, then set what differs. */
struct plan_options {
	int64_t budget; /* bytes; INT64_MAX for none */
	bool least;     /* the smallest budget that is known to be met, where that is more */
	bool hasty; /* what that is may be somewhat more, and is found much sooner: nobody asks for
		       it again */
	int64_t alignment; /* of offsets: 64 for C, 256 for CUDA */
	/* PLAN_BLOCKS: a segment ends where one tensor, locally the smallest, is all that the rest
	 * of the forward pass reads; where that never is, at every local minimum of such bytes. */
	enum plan_mode { PLAN_AUTO, PLAN_KEEP_ALL, PLAN_SEGMENTS, PLAN_BLOCKS } mode;
	int segments;  /* PLAN_SEGMENTS: K equal segments, as PyTorch's checkpoint_sequential */
	double effort; /* multiplies the default count of work; 0 stands for 1 */
	double gap; /* a plan proven to cost at most this share more than any other will do: 0.001
		     */
	double seconds; /* wall-clock limit of the search; 0: stop by a count of work (repeatable)
			 */
	struct onlooker *onlooker; /* may end it: ST_INTERRUPTED; NULL */
};

/* Find the cheapest plan within the budget. ST_OK with plan->feasible, or ST_BUDGET with
 * min_bytes_known (the arena of a checked plan: asking for that or more succeeds, for less fails)
 * and min_bytes_proven (no plan can need less). Residents lie first, in tensor order, each rounded
 * up to the alignment, from offset 0: two problems with the same residents agree on their places.
 */
enum status plan_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	struct plan **out, struct diag *d);

/* The smallest budget that plan_make is known to meet, and the proven bound. */
enum status plan_minimum(struct arena *a, const struct problem *p, const struct plan_options *o,
	int64_t *known, int64_t *proven, struct diag *d);

/* The cheapest plans for several budgets, which share the work that does not depend on the budget.
 * budget[n] descends. plans[n] out, in the caller's room: NULL where the budget is not met (that is
 * no error here). A dearer budget never costs more: where a plan for less memory came out cheaper,
 * it stands for the larger budget too. o->budget is not read. */
enum status plan_frontier(struct arena *a, const struct problem *p, const struct plan_options *o,
	const int64_t *budget, int n, struct plan **plans, struct diag *d);

/* Arena of keep-everything, and the bytes of the residents (each rounded up): what "70%" refers to.
 */
enum status plan_range(struct arena *a, const struct problem *p, const struct plan_options *o,
	int64_t *resident, int64_t *keep_all, struct diag *d);

/* --- Budgets as people say them --- */

struct plan_budget {
	enum { BUDGET_NONE, BUDGET_BYTES, BUDGET_PERCENT, BUDGET_MIN } kind;
	int64_t bytes;  /* BUDGET_BYTES; INT64_MAX for BUDGET_NONE */
	double percent; /* of what keeping everything needs beyond the residents */
};
/* "2GiB", "2GB", "1500000", "70%", "min"; NULL gives BUDGET_NONE. ST_USAGE for anything else. */
enum status plan_budget_parse(const char *text, struct plan_budget *out, struct diag *d);
/* In bytes, for this problem. o->budget is not read. */
enum status plan_budget_bytes(struct arena *a, const struct problem *p,
	const struct plan_options *o, const struct plan_budget *budget, int64_t *bytes,
	struct diag *d);

/* --- Training and evaluation, which share an arena --- */

struct plan_pair {
	const struct problem *train, *eval; /* NULL: not that one. The same residents in both */
	/* out: */
	struct plan *train_plan, *eval_plan;
	int64_t budget;      /* in bytes, for both */
	int64_t arena_bytes; /* the larger of the two */
};
/* Both within the budget: shares of it are of the training's, "min" is the least that both meet.
 * The evaluation beside a training, or alone, is planned freely, whatever o->mode says. ST_BUDGET
 * without a message where one of them is not met; that one's plan is not feasible. o->budget is not
 * read. */
enum status plan_pair_make(struct arena *a, struct plan_pair *pair,
	const struct plan_budget *budget, const struct plan_options *o, struct diag *d);
/* Of a pair whose budget is not met, the smallest that is known to be. */
int64_t plan_pair_least(const struct plan_pair *pair);
/* The smallest budget that both are known to meet, and the proven bound. *eval: the evaluation
 * needs more than the training. */
enum status plan_pair_minimum(struct arena *a, const struct plan_pair *pair,
	const struct plan_options *o, int64_t *known, int64_t *proven, bool *eval, struct diag *d);

/* The independent checker (planner/problem/check.c): every rule of the format, from the problem and
 * the plan alone. Reports each breach; ST_INVALID when any. */
enum status plan_check(const struct problem *p, const struct plan *plan, int64_t alignment,
	const char *file, struct diag *d);
/* The same of a plan that stint made: a breach is ST_INTERNAL, no fault of the model. */
enum status plan_own_check(const struct problem *problem, const struct plan *plan,
	int64_t alignment, const char *file, struct diag *d);

/* stint-plan-1. plan_parse resolves ids against `p`. */
void plan_print(const struct problem *p, const struct plan *plan, struct text *out);
enum status plan_parse(struct arena *a, const struct problem *p, const char *text, size_t len,
	const char *file, struct plan **out, struct diag *d);

/* --- Layout alone: buffers with half-open lifetimes [lower, upper). --- */

struct layout_buffer {
	int64_t lower, upper, size; /* size in bytes, lower < upper */
	int64_t offset;             /* out; give ≥ 0 with `fixed` to pin it */
	bool fixed;
};

/* Place all buffers at multiples of `alignment`, aiming for the least height. *height out.
 * Never fails to place; the caller compares the height with its capacity. */
enum status layout_place(struct layout_buffer *b, int n, int64_t alignment, int64_t capacity,
	int64_t *height, struct diag *d);

/* The CSV form that minimalloc reads: header id,lower,upper,size[,offset] in any order of columns;
 * an offset given pins its buffer. Ids are kept as they stand. */
struct layout_table {
	int n;
	const char **id;         /* [n] */
	struct layout_buffer *b; /* [n] */
};
enum status layout_csv_parse(struct arena *a, const char *text, size_t len, const char *file,
	struct layout_table *out, struct diag *d);
enum status layout_csv_read(
	struct arena *a, const char *path, struct layout_table *out, struct diag *d);
/* With the column offset. */
void layout_csv_print(const struct layout_table *t, struct text *out);

/* --- Facts about a plan for people --- */

/* The op that the step is a run of: not one that repeats it (problem_op). */
static inline int plan_step_op(const struct problem *p, const struct plan_step *s)
{
	return p->op[s->op].repeats ? p->op[s->op].repeats - 1 : s->op;
}
/* Whether that op ran before. A second fetch computes nothing again. */
static inline bool plan_step_again(const struct problem *p, const struct plan_step *s)
{
	return (s->run > 0 && !problem_op_moves(&p->op[s->op])) || p->op[s->op].repeats > 0;
}

/* One run of an op that ran before: what was given up, and for which moment. */
struct plan_again {
	int step, op;        /* op: the one that ran before */
	int forced_at;       /* the step with the most live bytes since the results were last there;
				-1: they were there till now */
	int64_t freed_bytes; /* of the results, not held at that step */
	double cost;
};

struct plan_facts {
	int *runs;     /* [nop] those of an op that repeats another count there */
	int64_t *live; /* [nstep] raw bytes live at each step, workspace included */
	int peak_step;
	int64_t at_peak[6]; /* by tensor_kind, at the peak step */
	int64_t workspace_at_peak;
	int recomputed_ops, recomputed_runs; /* distinct ops run again; extra runs */
	double recomputed_cost;              /* of the extra runs */
	struct plan_again *again;            /* [recomputed_runs] by step */
	int64_t kept_bytes, overwritten_bytes;
	int kept, overwritten; /* activations kept from forward to backward; in-place outputs */
	int *kept_buffer;      /* [kept] the largest first */
	bool *in_place;        /* [nbuffer] lies where an input of its op lay */
	int offloads, fetches; /* steps that move a tensor to the host, and back */
	int64_t host_bytes;    /* of the tensors there */
	double transfer_cost;
	int disk_reads, disk_writes; /* steps that bring something from a file, or take it there */
	int64_t from_disk, to_disk;  /* bytes a step */
	double disk_cost;
	double beside;      /* cost of a step in which copies go on beside the rest (moves.h) */
	int rank_fetches;   /* steps that bring something from other processes */
	int64_t from_ranks; /* bytes a step */
	double ranks_cost;
};

enum status plan_facts_make(struct arena *a, const struct problem *p, const struct plan *plan,
	struct plan_facts *out, struct diag *d);

#endif
