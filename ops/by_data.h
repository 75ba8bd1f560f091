/* Shared by what data decide: an If's branches, and when a loop ends. */
#ifndef STINT_OPS_BY_DATA_H
#define STINT_OPS_BY_DATA_H

#include "graph/expansion.h"

/* What runs where the condition holds, and where it does not, as graph/branches.c has it: out[0]
 * and out[1] are when, called `word`. */
enum status by_data_branch(const struct expansion *x, struct tensor *condition,
	const char *const word[2], const struct node **out);
/* Of two values alike, that of the branch which ran. */
enum status by_data_choose(const struct expansion *x, struct tensor *when, struct tensor *one,
	struct tensor *other, struct tensor **out);

#endif
