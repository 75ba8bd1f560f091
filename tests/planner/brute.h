/* The true optimum of tiny problems, by trying everything. */
#ifndef STINT_TESTS_PLANNER_BRUTE_H
#define STINT_TESTS_PLANNER_BRUTE_H

#include "planner/problem/problem.h"

enum { BRUTE_OPS = 6 }; /* ops beside updates that a tiny problem has */

/* The least cost with at most `budget` live bytes, offsets not counted; INFINITY where there is no
 * way. For problems of at most BRUTE_OPS + 6 ops and about 20 bits of ops and tensors in all. */
double brute_optimum(const struct problem *p, int64_t budget);

#endif
