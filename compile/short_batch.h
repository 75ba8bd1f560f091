/* Training steps of fewer samples than the batch has: an epoch's last. They fill the batch up with
 * others, which the loss leaves out (control's third number). That comes to the same as a batch of
 * those alone, in outputs, loss and gradients, where the model treats samples apart, or takes those
 * together that count, as batch norm does. */
#ifndef STINT_COMPILE_SHORT_BATCH_H
#define STINT_COMPILE_SHORT_BATCH_H

#include "compile/pipeline.h"

/* What the whole batch is wanted for, to follow "...: "; NULL: it is not. */
struct short_batch {
	const char *training;
	/* By output of the evaluation: of those that are as long as the batch, what makes a row
	 * depend on others. NULL: there are none. */
	const char **output;
};

/* Requires the evaluation's graph, and the training's where there is one; reads the model for twice
 * the samples. */
enum status short_batch_find(const struct pipeline *p, struct short_batch *out);

#endif
