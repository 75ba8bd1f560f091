/* SPDX-License-Identifier: MIT-0 */
/* The runtime core on a GPU: what stint_rt.c does for an arena in the host's memory, for one in a
 * device's. Private to the runtime. */
#ifndef STINT_RT_GPU_H
#define STINT_RT_GPU_H

#include "stint_gpu.h"
#include "stint_rt_gpu_step.h"

/* What C's pointers into a device's arena are to the device. */
static inline stint_gpu_ptr gpu_address(const void *p)
{
	return (stint_gpu_ptr)(uintptr_t)p;
}

/* Returns rc; the device's reason, where rc is one, becomes the step's. */
int stint_rt_gpu_told(stint_step *s, stint_gpu *g, int rc);

/* An opened step's device. */
stint_gpu *stint_rt_gpu_of(const stint_step *s);

/* --- stint_rt_gpu_ranks.c: steps that processes with a GPU each share --- */

struct stint_gpu_ranks;
/* s->ranks' from now on; `kernel`: the step's. By all at once. */
int stint_gpu_ranks_new(struct stint_gpu_ranks **out, stint_step *s, stint_gpu *g,
	const struct stint_gpu_kernel *kernel, const unsigned char id[STINT_WORLD]);
void stint_gpu_ranks_free(struct stint_gpu_ranks *r);
/* A schedule begins; it has been put on the streams: the main one goes on when all that it has
 * begun is done. */
void stint_gpu_ranks_begin(struct stint_gpu_ranks *r);
int stint_gpu_ranks_end(struct stint_gpu_ranks *r);
/* STINT_LOST, with a message in s, when another was lost before. */
int stint_gpu_ranks_there(const struct stint_gpu_ranks *r);
/* The host waits for the main stream; STINT_LOST from the first time on that another rank is gone.
 * What went wrong is in s->message. */
int stint_gpu_ranks_wait(struct stint_gpu_ranks *r);
/* An opened step's; NULL: it is alone. And whether the schedule has put copies to the host on their
 * stream. */
struct stint_gpu_ranks *stint_rt_gpu_ranks_of(const stint_step *s);
int stint_rt_gpu_has_stored(const stint_step *s);

/* --- stint_rt_gpu_bench.c: for `stint bench` --- */

/* When the device got where in a step: marks of the main stream, set as the step is put there. */
struct stint_gpu_clock {
	int *index; /* [n] of the step that ends at mark i + 1 */
	int n, room;
};

/* Keeps the device busy with `graph` (NULL: not) for about as long as n launches take the host, and
 * sets the first mark. */
int stint_gpu_clock_start(
	stint_gpu *g, struct stint_gpu_clock *c, const struct stint_gpu_graph *graph, int n);
/* Step `index` has been put there. */
int stint_gpu_clock_mark(stint_gpu *g, struct stint_gpu_clock *c, int index);
/* Waits for the device and tells the probe how long each took. */
int stint_gpu_clock_tell(stint_gpu *g, struct stint_gpu_clock *c, const struct stint_probe *probe);
void stint_gpu_clock_free(struct stint_gpu_clock *c);

int stint_rt_gpu_memory(stint_gpu *g, const char *what, struct stint_device_memory *out);
/* Of the first device, with products of `type` (tf32: whose fp32 may be rounded), through a
 * stint_gpu of its own. On failure the reason is in message. */
int stint_rt_gpu_peaks(enum stint_gpu_type type, int tf32, struct stint_device_peaks *out,
	char *message, size_t room);

#endif
