/* `make` in a folder that stint wrote. */
#ifndef STINT_API_MAKE_H
#define STINT_API_MAKE_H

#include "base/onlooker.h"

/* Builds step.so in `work`, which debug information and messages call `dir`. ST_INTERRUPTED,
 * without a message and with nothing of make left running, when `onlooker` (or NULL) says so; ST_IO
 * with the compiler's words. */
enum status make_step(struct arena *a, const char *work, const char *dir, struct onlooker *onlooker,
	struct diag *d);

#endif
