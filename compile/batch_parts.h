/* How a batch is taken apart: --micro-batch and --split. */
#ifndef STINT_COMPILE_BATCH_PARTS_H
#define STINT_COMPILE_BATCH_PARTS_H

#include "compile/pipeline.h"

/* Sets p->parts from p->o; under MICRO_BATCH_AUTO, and for --split, by planning what there is to
 * choose from, which fills p->trial. Requires p->table and p->target. */
enum status parts_set(struct pipeline *p);
/* Calls `v` for all that parts_set would choose from. Requires p->table and p->target. */
enum status parts_each(struct pipeline *p, const struct trial_visitor *v);
/* Whether so many ranks may share so many micro-batches as `o` asks: who fetch parameters from each
 * other do as many each. */
bool parts_go_round(const struct compile_options *o, int64_t shards, int64_t ranks);
/* Bytes of a training graph's tensors of a role, and of all of those that a process has a piece of.
 */
void parts_held(const struct graph *g, enum tensor_role role, int64_t *here, int64_t *whole);
/* What a user should know of them: notes. Requires the training graph. */
void parts_tell(const struct pipeline *p);

#endif
