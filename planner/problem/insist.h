/* What a user who knows better than the search insists on: --no-recompute and --recompute. */
#ifndef STINT_PLANNER_INSIST_H
#define STINT_PLANNER_INSIST_H

#include "planner/problem/problem.h"

/* Shell patterns (fnmatch), ended by NULL; NULL: none. Each must match some op's name or operator:
 * the text of its kernel up to "(", or where that is not known of its name up to ':' or '['. */
struct insist {
	const char *const *once;  /* these ops run once */
	const char *const *again; /* these are not kept from forward to backward */
};

/* Makes the matching ops of `p` not recomputable. ST_USAGE when a pattern matches nothing, with
 * what there is; `file` is for that message, and where it is NULL there is none. */
enum status insist_once(struct arena *a, struct problem *p, const char *const *pattern,
	const char *file, struct diag *d);

/* What the matching forward ops make is not kept for the backward pass: they get twins there
 * (problem_op's `repeats`). *was out, in `a`: by op of the new list the old index, for a twin that
 * of the op it repeats; NULL when there are no patterns. Requires and keeps: p is valid. */
enum status insist_again(struct arena *a, struct problem *p, const char *const *pattern,
	const char *file, int **was, struct diag *d);

/* ST_USAGE: `pattern` matches nothing; the hint tells what there is. */
enum status insist_no_match(struct arena *a, const struct problem *p, const char *option,
	const char *pattern, const char *file, struct diag *d);

/* Whether the op's name or operator matches. */
bool insist_matches(const struct problem_op *op, const char *pattern);

#endif
