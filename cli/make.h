/* `make` in a folder that stint wrote. */
#ifndef STINT_CLI_MAKE_H
#define STINT_CLI_MAKE_H

#include "base/base.h"

/* Builds step.so in `work`, which debug information and messages call `dir`. ST_INTERRUPTED with
 * nothing of make left running, when a signal came (interrupt.h); ST_IO with the compiler's words.
 */
enum status make_step(struct arena *a, const char *work, const char *dir, struct diag *d);

#endif
