/* The cheapest cost of a chain's training step: a yardstick that shares nothing with the planner.
 * chain_dp.c says which schedules it is the optimum of. */
#ifndef STINT_TESTS_BENCH_CHAIN_DP_H
#define STINT_TESTS_BENCH_CHAIN_DP_H

#include "planner/problem/problem.h"

enum { CHAIN_MOST = 120 };

struct chain {
	int n;
	int64_t fixed; /* bytes that are there always */
	double loss;
	int64_t at_loss; /* bytes of g_n and workspace */
	/* by i in 1 .. n; x and g from 0 on: x_0 is resident, its bytes in `fixed` */
	double f[CHAIN_MOST + 1], b[CHAIN_MOST + 1];
	int64_t x[CHAIN_MOST + 1], s[CHAIN_MOST + 1], g[CHAIN_MOST + 1];
	int64_t at_f[CHAIN_MOST + 1]; /* x_i, s_i and workspace */
	int64_t at_b[CHAIN_MOST + 1]; /* s_i, g_{i-1}, gradients of parameters, workspace */
};

/* False when it is none, or longer than CHAIN_MOST. *c zeroed by the caller. */
bool chain_read(const struct problem *p, struct chain *c);
/* The cost within so many bytes; INFINITY where nothing fits, negative when out of memory. */
double chain_optimum(const struct chain *c, int64_t budget);

#endif
