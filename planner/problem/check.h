/* The checker's two halves. Private to check*.c, which share no code with the solver. */
#ifndef STINT_PLANNER_CHECK_H
#define STINT_PLANNER_CHECK_H

#include "planner/plan.h"

struct checker {
	const struct problem *p;
	const struct plan *plan;
	int64_t alignment;
	const char *file;
	struct diag *d;
	bool bad;
	int *choice;       /* [nop] the choice of an op's runs, -1 where it never runs */
	int *first_of;     /* [ntensor + 1] buffers of tensor t, by first step: */
	int *by_tensor;    /* by_tensor[first_of[t]] .. by_tensor[first_of[t + 1] - 1] */
	int *workspace_at; /* [nstep] the workspace buffer of a step, or -1 */
	bool *rides;       /* [nbuffer] takes its input's bytes at its first step */
};

void check_fault(struct checker *c, const char *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What the op at step s does; valid choices only. */
const struct problem_choice *check_way(const struct checker *c, int s);
/* The buffer of tensor t that covers step s, or -1. Lifetimes of a tensor must not overlap. */
int check_buffer_at(const struct checker *c, int t, int s);
bool check_has(const int *list, int n, int x);

/* Offsets, overlaps, arena and peak. Requires steps and buffers with valid fields. Out of memory
 * is ST_INTERNAL. */
enum status check_space(struct checker *c);

#endif
