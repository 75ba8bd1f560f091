/* The true optimum of tiny problems, for live bytes. */
#ifndef STINT_TESTS_PLANNER_BRUTE_H
#define STINT_TESTS_PLANNER_BRUTE_H

#include "planner/plan.h"

enum { BRUTE_OPS = 6 };

/* The least cost within `budget` over all orders, repeats and choices, or INFINITY. Takes
 * 2 ^ (ops + tensors that are not resident) numbers. */
double brute_optimum(const struct problem *p, int64_t budget);

#endif
