/* SPDX-License-Identifier: MIT-0 */
/* The inputs of a step on a GPU: set for the next step while one is running. Private to the
 * runtime.
 *
 * An input lies in the arena twice. What is set goes, through page-locked memory and on a stream of
 * its own, to the second place; before a step begins the main stream copies it to the first, which
 * the step reads. Seen from outside, the second place is the input. */
#ifndef STINT_RT_GPU_FEED_H
#define STINT_RT_GPU_FEED_H

#include "stint_gpu.h"
#include "stint_rt_gpu_step.h"

struct stint_feed;

/* The reason of a failure is in stint_gpu_message(g), here and below. */
int stint_feed_new(
	struct stint_feed **out, stint_gpu *g, const struct stint_model *m, stint_gpu_ptr arena);
void stint_feed_free(struct stint_feed *f);
/* Whether these bytes of the arena are an input's, or part of one. The next two are for such. */
int stint_feed_has(const struct stint_feed *f, size_t offset, size_t bytes);
/* Returns when data is no longer needed; the bytes are on their way. */
int stint_feed_put(struct stint_feed *f, size_t offset, const void *data, size_t bytes);
int stint_feed_get(struct stint_feed *f, size_t offset, void *data, size_t bytes);
/* What was set is what the work put on the main stream from now on reads. */
int stint_feed_take(struct stint_feed *f);

#endif
