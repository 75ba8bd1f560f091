/* Plans of less effort, for choosing between ways to take a batch apart. */
#ifndef STINT_COMPILE_TRIALS_H
#define STINT_COMPILE_TRIALS_H

#include "compile/pipeline.h"

/* The shortest step within the budget so far; under --budget min the smallest. */
struct choice {
	struct pipeline *p;
	struct plan_budget budget;
	bool with_region;                    /* others do not count */
	const struct trial *best;            /* NULL: none is within it yet */
	const struct trial_visitor *visitor; /* NULL: trials are planned */
};

enum { TRIALS_MAX = 64 };

/* Makes room for TRIALS_MAX trials in p. */
enum status trials_begin(struct choice *c, struct pipeline *p, const struct trial_visitor *v);
/* Plans one, whose messages nobody reads: what is chosen says them again. `apart` of
 * p->whole, in the region's slices; NULL: to be found. What is
 * tried first says what a budget in percent is in bytes. */
enum status trials_add(
	struct choice *c, const struct parts *parts, const struct graph_apart *apart);
/* The best; where none meets the budget, the one that comes nearest, or else the first. */
const struct trial *trials_end(const struct choice *c);

#endif
