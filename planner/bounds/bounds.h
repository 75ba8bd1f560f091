/* What the parts of the lower bound share. Private to planner/. */
#ifndef STINT_PLANNER_BOUNDS_H
#define STINT_PLANNER_BOUNDS_H

#include "planner/bounds/lp.h"
#include "planner/search/solver.h"

enum { BOUND_CUTS = 40 };

/* The op that makes tensor t, and did so first; t is no resident. */
static inline int bound_producer(const struct inst *in, int t)
{
	return in->p->tensor[t].producer;
}
/* Whether op o makes tensor t, be it by fetching it. */
static inline bool bound_makes(const struct inst *in, int o, int t)
{
	return bound_producer(in, t) == o || in->fetch[t] == o;
}
/* Whether every way of o reads the k-th input of its first way. */
bool bound_always_reads(const struct inst *in, int o, int k);
/* Bytes for inputs, outputs and workspace of o, at least; *way out (may be NULL). */
int64_t bound_own_bytes(const struct inst *in, int o);
/* The cheapest of its ways. */
double bound_cheapest(const struct inst *in, int o);
/* Bytes that are left at o's run for what is not its own. */
double bound_room(const struct inst *in, int o, int64_t budget);
/* The bytes that o needs on top of its own when its input t is still read afterwards: those of
 * outputs that could have lain in nothing but t's place. */
int64_t bound_survive(const struct inst *in, int o, int t);

/* Whether a way of o reads t. */
bool bound_reads(const struct inst *in, int o, int t);

/* A linear program over several cuts at once (bound_path.c). */
struct path {
	const struct inst *in;
	int64_t budget;
	int ncut, cut[BOUND_CUTS + 1]; /* cut 1 .. ncut; 0 is the start */
	int *lo, *hi;                  /* [n] the first run lies in these intervals */
	bool *must;                    /* [n] runs in any case */
	int *x, *f;                    /* [(ncut + 1) * n] columns, or PATH_ZERO, PATH_ONE */
	int *r;                        /* [(ncut + 1) * m] likewise; cut 0: nothing is there */
	bool *want;                    /* [(ncut + 1) * m] */
	bool *before, *after;          /* [n] scratch */
	int *since;                    /* [n] scratch: E of one cut */
	double *weight;                /* [ncol] for branching: bytes, or costs */
	struct lp lp;
	double work;             /* left */
	bool failed, impossible; /* out of memory; no plan fits */
};
enum { PATH_ZERO = -1, PATH_ONE = -2 };

bool path_init(struct path *p, struct arena *a, const struct inst *in, int64_t budget);
void path_free(struct path *p);
/* Build the program for the cuts in p->cut, in dependency order. False when p->failed,
 * p->impossible, or it has more than `most` terms. */
bool path_build(struct path *p, int most);
/* Add up to `most` cuts where the last solution needs more than there is; returns their number.
 * What is run again later may read what must be there: not counted, counted where that looks
 * cheaper than to hold the result; or always counted, and then cuts are added where it is tightest
 * even if there is room. (bound_cuts.c) */
enum path_how { PATH_PLAIN, PATH_DEEP, PATH_DEEPER };
int path_extend(struct path *p, int most, enum path_how how);

/* Branch and bound over p->lp until the bound reaches `target` or p->work is used up; returns the
 * bound. *solved: p->lp.x is a solution in whole numbers that attains it. (bound_tree.c) */
double tree_bound(struct path *p, double target, bool *solved);

/* The least sum of costs that is not below `bound`, where all costs are multiples of one number. */
double bound_round(const struct inst *in, double bound);

#endif
