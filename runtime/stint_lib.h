/* SPDX-License-Identifier: MIT-0 */
/* Library products behind a generated step: oneDNN 2.6 primitives with a user-managed scratchpad.
 * Included by step.c unless it was compiled with --portable. What a call is: stint_call.h.
 *
 * The same call gives the same bits every time with the same number of threads. Outside the
 * workspace a run allocates only oneDNN's tables of arguments: a few hundred bytes, freed at
 * once. */
#ifndef STINT_LIB_H
#define STINT_LIB_H

#include "stint_rt_device.h"

/* Scratch bytes the call needs in the arena, its reorders included; -1 when the library cannot do
 * it, or only by allocating tensors of its own (then plain C is generated). A fixed rule over
 * shape, instruction set and threads. */
int64_t stint_lib_workspace(const struct stint_lib_call *call, int threads);
/* Channels that this machine's convolutions like to find side by side; 0: none. */
int stint_lib_block(void);
/* STINT_OK, or a code of stint_rt.h with a reason in message[256]. *out is NULL on failure. */
int stint_lib_new(
	struct stint_lib **out, const struct stint_lib_call *call, int threads, char *message);
void stint_lib_free(struct stint_lib *l);
/* in, out: in the order of the node; ws: 64-aligned. 0, or the library's error code. */
int stint_lib_run(struct stint_lib *l, const void *const *in, void *const *out, void *ws);
/* What plans rely on, printed into the step and compared by init: "oneDNN 2.6.3 avx512_core 2
 * threads". NULL: stint was built without the library, which then cannot do anything. */
const char *stint_lib_identity(int threads, char buf[static 96]);

#endif
