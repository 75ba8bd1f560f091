/* Buffers to place, made for measuring and tests: the same for the same family, n and seed. */
#ifndef STINT_TESTS_BENCH_PLANNER_LAYOUT_GEN_H
#define STINT_TESTS_BENCH_PLANNER_LAYOUT_GEN_H

#include "planner/plan.h"

enum { LAYOUT_FAMILIES = 11 };

const char *layout_gen_name(int family);
/* n buffers, none fixed. */
void layout_gen_make(int family, int n, uint64_t seed, struct layout_buffer *b);
/* The most bytes live at one time, sizes rounded up to the alignment; -1 when out of memory. */
int64_t layout_gen_load(const struct layout_buffer *b, int n, int64_t alignment);
/* Whether no two of them meet in time and address. */
bool layout_gen_apart(const struct layout_buffer *b, int n);

#endif
