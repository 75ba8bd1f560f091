/* `make` in a folder that stint wrote. */
#ifndef STINT_API_MAKE_H
#define STINT_API_MAKE_H

#include "base/onlooker.h"

/* Makes `target` in `work` by the rules in `makefile` there; debug information and messages call
 * the folder `dir`. */
struct make_target {
	const char *work, *dir, *makefile, *target;
	const char *objects; /* a folder in `work` for objects, and how many it comes to have, of
				which the onlooker is told; NULL */
	int nobject;
};
enum status make_target(
	struct arena *a, const struct make_target *what, struct onlooker *onlooker, struct diag *d);

/* Builds step.so in `work`, so. Both: ST_INTERRUPTED, without a message and with nothing of make
 * left running, when `onlooker` (or NULL) says so; ST_IO with the compiler's words. */
enum status make_step(struct arena *a, const char *work, const char *dir, struct onlooker *onlooker,
	struct diag *d);

#endif
