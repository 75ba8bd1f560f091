/* Training steps of fewer samples than the batch has: an epoch's last. They fill the batch up with
 * others, which the loss leaves out (control's third number). That comes to the same as a batch of
 * those alone, in outputs, loss and gradients, where the model treats samples apart, or takes those
 * together that count, as batch norm does. */
#ifndef STINT_COMPILE_SHORT_BATCH_H
#define STINT_COMPILE_SHORT_BATCH_H

#include "compile/pipeline.h"

/* *why: what a training step wants its whole batch for, to follow "...: "; NULL: it does not.
 * Requires the training graph; reads the model for twice the samples. */
enum status short_batch_find(const struct pipeline *p, const char **why);

#endif
