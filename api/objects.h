/* A step built of objects that earlier builds have compiled. Its folder stays as it is: step.c and
 * the Makefile there build the same step by themselves (docs/adr/0024-kept-objects.md). */
#ifndef STINT_API_OBJECTS_H
#define STINT_API_OBJECTS_H

#include "base/onlooker.h"

/* What came of it. */
struct objects_built {
	bool made;         /* there is a step.so */
	int kernels, kept; /* of the step; of them not compiled now */
};

/* Builds step.so in `work`, as make_step does, of what is kept in the cache's folder `cache` and of
 * what is missing there, which is kept then. Where that does not go, for want of a linker that can
 * or with flags whose objects depend on where they are made, `made` is false and nothing was
 * reported: make_step tells. */
enum status objects_make(struct arena *a, const char *cache, const char *work, const char *dir,
	struct onlooker *onlooker, struct objects_built *built, struct diag *d);

#endif
