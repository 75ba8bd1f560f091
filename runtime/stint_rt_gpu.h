/* The runtime core on a GPU: what stint_rt.c does for an arena in the host's memory, for one in a
 * device's. Private to the runtime. */
#ifndef STINT_RT_GPU_H
#define STINT_RT_GPU_H

#include "stint_rt.h"

/* Opens the first device, compiles the model's kernels, plans its library calls and records both
 * steps as graphs; the arena, all zeros, is at `arena` on the device, or allocated there (NULL). On
 * failure the reason is in s->message, and stint_free releases what was made. */
int stint_rt_gpu_init(stint_step *s, void *arena);

#endif
