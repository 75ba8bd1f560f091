/* Where steps run, and how they fail. Private to the runtime. */
#ifndef STINT_RT_DEVICE_H
#define STINT_RT_DEVICE_H

#include "stint_rt.h"

extern const struct stint_device stint_rt_cpu;
/* Opens the first device, compiles the model's kernels, plans its library calls and records both
 * steps as graphs. */
extern const struct stint_device stint_rt_gpu;

/* Returns rc, with a reason, in which %s is `name`. */
int stint_rt_fail(stint_step *s, int rc, const char *what, const char *name);
int stint_rt_no_memory(stint_step *s); /* STINT_NO_MEMORY, and says so */

#endif
