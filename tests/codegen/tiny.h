/* A hand-built model over a table of a few made-up operators, and plans for it: what the tests of
 * codegen/ generate from. The plans are made here, so that the golden text does not change with the
 * planner. */
#ifndef STINT_TESTS_TINY_H
#define STINT_TESTS_TINY_H

#include "codegen/step.h"

struct tiny {
	struct arena *arena;
	struct diag diag;
	struct target target;
	struct graph *train, *eval;
	struct graph_problem train_problem, eval_problem;
	struct plan *train_plan, *eval_plan;
	struct codegen_input in;
};

struct tiny_options {
	const char *prefix; /* before every name of the model's */
	bool in_place;      /* take every declared pair that the lifetimes allow */
	bool recompute;     /* run "mul" and "scale" again before the backward pass */
	bool alternative;   /* run the nodes that have one in their second way */
	bool debug_arena;
	bool library; /* "columns" is a library call */
	enum dtype real;
	int threads;
};

/* The caller calls tiny_free whatever the status. */
enum status tiny_make(struct tiny *t, const struct tiny_options *o);
void tiny_free(struct tiny *t);

#endif
