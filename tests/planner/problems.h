/* Problems made for tests, the same on every run. */
#ifndef STINT_TESTS_PLANNER_PROBLEMS_H
#define STINT_TESTS_PLANNER_PROBLEMS_H

#include "planner/plan.h"

struct dice {
	uint64_t s;
};
int roll(struct dice *d, int n); /* in [0, n) */

struct shape {
	int nop;    /* ops before updates */
	int nparam; /* parameters; each that is read gets an update at the end */
	bool inplace, workspace, several, once, optional, choices, branches;
	int unit, most; /* sizes are unit × 1 .. most */
};
/* A valid problem: forward ops, ops of phase backward, updates. */
struct problem *random_problem(struct arena *a, uint64_t seed, const struct shape *shape);
/* n forward ops, a loss, n backward ops, each reading its forward op's input; bytes each. */
struct problem *chain_problem(struct arena *a, int n, int64_t bytes);

/* A sink that counts and remembers the last message. */
struct heard {
	int n;
	char last[1024];
};
struct diag listen(struct heard *h);

#endif
