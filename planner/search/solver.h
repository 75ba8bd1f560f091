/* The solver's shared parts: the problem in the form the search works on, sequences, and the
 * simulation of one. Private to planner/. All sizes here are rounded up to the alignment. */
#ifndef STINT_PLANNER_SOLVER_H
#define STINT_PLANNER_SOLVER_H

#include "planner/plan.h"

/* One way to execute an op. */
struct way {
	int choice; /* its number in the problem */
	double cost;
	int64_t ws;
	int nin, nout, nres, npair, nkill;
	int *in;                   /* inputs that are not resident, each once */
	int *out;                  /* outputs */
	int *res;                  /* residents read */
	struct problem_pair *pair; /* in place over an input that is not resident */
	int *kill;                 /* residents replaced */
};

struct inst {
	const struct problem *p;
	int n, m; /* ops, tensors */
	int64_t align;
	int64_t resident;    /* bytes of all residents */
	int64_t held;        /* of these, what is never free again, whatever replaces them */
	int64_t slack;       /* the most that rounding up adds to one buffer */
	int64_t *size;       /* [m]; 0 for residents and for what lies in a resident's place */
	int *forced;         /* [m] the resident in whose place this tensor lies, or -1 */
	bool *res, *keep;    /* [m] */
	int *nway;           /* [n] ≥ 1 */
	struct way **way;    /* [n] */
	bool *once;          /* [n] may run once only */
	bool *optional;      /* [n] */
	bool *transfer;      /* [n] moves a tensor to the host or back: in no start of a search */
	int *fetch, *away;   /* [m] the ops that move the tensor back, and there; -1: none */
	bool transfers;      /* there are any */
	bool *floating;      /* [n] an update that the simulation places by itself */
	int nfloat, *floats; /* floating ops in listed order */
	int *usable;         /* [n] the way of each op by default */
	struct onlooker *onlooker; /* of whoever waits, or NULL */
	double once_cost;          /* sum of the cheapest costs of ops that must run */
};

/* Builds in `a`. The problem must be valid. */
enum status inst_make(
	struct arena *a, const struct problem *p, int64_t align, struct inst **out, struct diag *d);

/* Ops in order of execution, with repeats; floating updates are not in it. */
struct seq {
	int *op;
	int n, cap;
};
bool seq_reserve(struct seq *q, int n);
bool seq_copy(struct seq *to, const struct seq *from);
void seq_free(struct seq *q);

/* One lifetime of one tensor. Kept tensors end one step after the last. */
struct life {
	int tensor, start, end;
	int nuse;
	int64_t size;
};

struct life_pair {
	int out, in; /* lifetimes */
};

struct sim {
	int n;     /* steps */
	int *step; /* [n] op; floating updates in place */
	int *core; /* [n] position in the sequence; for a floating update, the one after it */
	int nlife;
	struct life *life;
	int *life_at; /* [n + 1] the lifetimes that start at step s are life_at[s] .. life_at[s+1]
		       */
	int npair;
	struct life_pair *pair; /* taken in-place pairs */
	int *last;              /* [m] the tensor's last lifetime, or -1 */
	int64_t *mem;           /* [n] live bytes */
	int64_t *change;        /* scratch */
	int64_t peak;
	double area, cost; /* area: bytes, summed over steps */
	/* room */
	int cap_step, cap_life, cap_pair;
};
void sim_free(struct sim *s);

/* Everything a search holds; one per call of plan_make. */
struct search {
	const struct inst *in;
	struct arena *a; /* for fixed-size tables only */
	int64_t target;
	struct sim s;
	uint64_t rng;
	double work, limit; /* done, allowed; about 10 ns a unit */
	double until;       /* CLOCK_MONOTONIC seconds; 0: no clock */
	bool nomem;
	/* Of a sequence that fits, at a cost: NULL, or called whenever a cheaper one is found. */
	void (*found)(void *user, double cost);
	void *user;
	/* scratch */
	int *lastprod, *lastread, *trigger, *head, *next; /* [m], [m], [n], by position */
	int cap_head;
	int *count;       /* [n] */
	bool *killed;     /* [m] */
	int *mark, stamp; /* [n] */
	/* [n] positions behind which floating updates are placed at least (overlap.c); NULL: none
	 */
	const int *later;
	struct seq tmp, list;
};
#define SEARCH_SEED UINT64_C(0x5851f42d4c957f2d)
bool search_init(struct search *x, struct arena *a, const struct inst *in);
void search_free(struct search *x);
/* True when the work or the time is used up, or memory ran out. */
bool search_done(struct search *x);
uint64_t search_random(struct search *x);
double search_uniform(struct search *x);   /* in [0, 1) */
int search_below(struct search *x, int n); /* in [0, n) */

/* Simulate `q` under the ways `way` into `s`. False when it cannot run. */
bool simulate(struct search *x, const struct seq *q, const int *way, struct sim *s);
/* Delete runs of which nothing is read, then simulate. */
bool simulate_clean(struct search *x, struct seq *q, const int *way, struct sim *s);

/* Everything once, in the listed order. */
bool order_listed(struct search *x, const int *way, struct seq *q);
/* Everything once, choosing among the ready ops the one that leaves the least live; `variant` picks
 * a rule. */
bool order_greedy(struct search *x, const int *way, int variant, struct seq *q);
/* Pick among ways of equal or lower cost those that leave the least live. */
void pick_ways(struct search *x, int *way);

/* Segments of the forward ops: the borders are positions in the list of forward ops. */
struct segments {
	int nforward;
	int *forward;    /* forward ops in listed order, without floating ones */
	int64_t *across; /* [nforward + 1] bytes that cross the border before forward op i */
	int *wide;       /* [nforward + 1] tensors that do */
	int *place;      /* [n] position of an op in `forward`, or -1 */
};
bool segments_init(struct search *x, const int *way, struct segments *g);
/* The sequence that keeps only what crosses the borders, and recomputes each segment but the last
 * before its backward ops. `border` ascends, without 0 and nforward. */
bool segments_sequence(struct search *x, const struct segments *g, const int *way,
	const int *border, int nborder, struct seq *q);
/* K equal segments, as PyTorch's checkpoint_sequential cuts them. */
int segments_equal(const struct segments *g, int k, int *border);
/* K segments whose borders move a little, to where the fewest bytes cross. */
int segments_snapped(const struct segments *g, int k, int *border);
/* Every `group`-th border of those where one tensor crosses (level 0), where the bytes that cross
 * have a local minimum (level 1), or both (level 2). */
int segments_blocks(const struct segments *g, int level, int group, int *border);

/* A plan with offsets from a sequence. */
enum status emit_plan(struct search *x, struct arena *a, const struct seq *q, const int *way,
	int64_t budget, struct plan **out, struct diag *d);

/* Lower bounds (planner/bounds/bounds.c). */
/* No plan can need less. */
int64_t bound_bytes(const struct inst *in);
/* What a bound's solution does: the ops that it runs again after the first run of op `at`. */
struct bound_seed {
	int at;
	bool *again; /* [n] */
};
enum { BOUND_SEEDS = 12 };

/* No plan within the budget can cost less, in whatever order and however often ops run. Room for
 * BOUND_SEEDS seeds, allocated in `a`; *nseed out. */
enum status bound_cost(const struct inst *in, int64_t budget, double *bound, struct arena *a,
	struct bound_seed *seed, int *nseed, struct diag *d);
/* Raise *bound by looking at several moments at once, until it reaches `target`: the cost of a plan
 * at hand, beyond which there is nothing to prove. Work, which is counted, is at most in proportion
 * to `effort`: it ends where it achieves little. *more out: it ended for want of work, and more
 * would start anew. */
enum status bound_raise(const struct inst *in, int64_t budget, double target, double effort,
	double *bound, bool *more, struct diag *d);

#endif
