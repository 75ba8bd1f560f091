/* Planner problems made for measuring and for tests: the same bytes on every run and machine. */
#ifndef STINT_TESTS_BENCH_GRAPHS_H
#define STINT_TESTS_BENCH_GRAPHS_H

#include "planner/problem/problem.h"

struct graph_family {
	const char *name;
	const char *about; /* one line, saying what N is */
	int least, most;   /* of N */
	struct problem *(*make)(struct arena *a, int n, uint64_t seed);
};

extern const struct graph_family graph_families[];
extern const int graph_nfamily;

/* The family of this name, or NULL. */
const struct graph_family *graph_family_find(const char *name);

/* One of them, owned by `a`; NULL when there is no such family, n is out of its range or memory is
 * out. Valid as problem_validate has it. */
struct problem *graph_make(struct arena *a, const char *family, int n, uint64_t seed);

#endif
