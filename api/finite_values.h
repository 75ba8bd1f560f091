/* Values of a step that have ceased to be finite. */
#ifndef STINT_API_FINITE_VALUES_H
#define STINT_API_FINITE_VALUES_H

#include "api/load.h"
#include "runtime/finite.h"

/* Infinities that were there when training began (masks of attention are made of them) are no harm:
 * what counts is what came later. */
struct finite_values {
	struct arena *a;
	const struct loaded *l;
	struct finite_count *begun; /* of each resident */
};

/* Parameters, running statistics and optimizer state that are not finite any more. */
struct finite_lost {
	int tensors;
	const char *name; /* the first's, in the model's order; NULL: another rank's */
	int64_t numbers, of;
};

/* Look at the values as they are. NaN among them is warned of. */
enum status finite_begin(
	struct arena *a, const struct loaded *l, struct finite_values *out, struct diag *d);
/* What is lost by now: a pass over all values. */
enum status finite_lost(const struct finite_values *v, struct finite_lost *out, struct diag *d);
/* How many numbers a tensor has. */
int64_t finite_numbers(const struct stint_tensor *t);
/* "1 of 12 values of 'w' are not finite, and 3 more tensors hold such" */
const char *finite_text(struct arena *a, const struct finite_lost *lost);

#endif
