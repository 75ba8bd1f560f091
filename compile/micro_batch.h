/* How a batch is taken in parts. */
#ifndef STINT_COMPILE_MICRO_BATCH_H
#define STINT_COMPILE_MICRO_BATCH_H

#include "compile/pipeline.h"

/* Sets p->shards and *rows, a micro-batch's (the whole batch's, or 0 as given, where it
 * is not taken apart), from p->o; under MICRO_BATCH_AUTO by planning what divides the batch, which
 * fills p->trial. */
enum status micro_batch_set(struct pipeline *p, int64_t *rows);
/* What a user should know of them: a note. Requires the training graph. */
void micro_batch_tell(const struct pipeline *p);

#endif
