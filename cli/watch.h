/* Whether training still goes well: numbers that are not finite in what it learns. */
#ifndef STINT_CLI_WATCH_H
#define STINT_CLI_WATCH_H

#include "api/finite_values.h"
#include "cli/feed.h"

struct watch {
	struct arena *a;
	const struct loaded *l;
	struct diag *diag;
	struct finite_values values;
	unsigned char *kept; /* watch_keep's */
};

/* Look at the values as they are. NaN among them is warned of. */
enum status watch_start(struct arena *a, const struct loaded *l, struct watch *out, struct diag *d);
void watch_end(struct watch *w);

/* Under --precision fp16: whether the last step, whose loss was not finite, changed nothing but the
 * loss's scale; then that is no harm. And whether the scale has become so small that it cannot be
 * why gradients are not finite. */
bool watch_skipped(const struct watch *w);
bool watch_scale_gone(const struct watch *w, double *scale);

/* Keep a copy of the values, in memory of its own; bring it back. */
enum status watch_keep(struct watch *w);
enum status watch_bring_back(const struct watch *w);

/* What is not finite first in the batch that the arena holds, in words for "the loss of step 7 is
 * nan: ...": a sample of the data (`sample`: the numbers of the batch's); NULL: none is. */
const char *watch_data(const struct watch *w, const struct feed *f, const int64_t *sample);
/* The same of one step on that batch from the values as they are, parameters being left alone: the
 * data, the model's outputs, the loss, the gradients, or else the updates. NULL: out of memory, or
 * the step failed. */
const char *watch_step(
	const struct watch *w, const struct feed *f, const int64_t *sample, double lr);

#endif
