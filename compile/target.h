/* What records are asked about the machine that a step is for. */
#ifndef STINT_COMPILE_TARGET_H
#define STINT_COMPILE_TARGET_H

#include "compile/compile_options.h"
#include "compile/gpu_ask.h"
#include "graph/cost.h"

/* The target that the options ask for. It stays where it is: its `user` is itself, or `asked`,
 * which is for a GPU's convolutions and stays, too. Answers are in arena `a`. */
void target_set(struct target *t, const struct compile_options *o, struct arena *a,
	struct gpu_asked *asked);
/* Scratch bytes of a processor's library calls: struct target's library_workspace where its `user`
 * is itself; -1 and its `no_room` where there is no memory to ask. */
int64_t target_library_workspace(void *target, const struct lib_call *call);

#endif
