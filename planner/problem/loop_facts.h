/* What a problem's file says of loops that are one op. */
#ifndef STINT_PLANNER_LOOP_FACTS_H
#define STINT_PLANNER_LOOP_FACTS_H

#include "planner/problem/problem.h"

/* Its numbers, by the names they have in files. */
enum { LOOP_NUMBERS = 5 };
extern const char *const loop_number_name[LOOP_NUMBERS];
int64_t *loop_number(struct problem_loop *l, int k);

/* "keeps":"places","turns":1000,... and, where that is wanted, ,"at":[...]. */
void loop_print(const struct problem_loop *l, bool at, struct text *out);
/* What cannot be so of op `o`, which has a loop; NULL: nothing. */
const char *loop_fault(const struct problem *p, int o);

#endif
