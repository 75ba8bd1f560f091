/* What there is to say when stint itself has erred. */
#ifndef STINT_CLI_INTERNAL_H
#define STINT_CLI_INTERNAL_H

#include "base/base.h"

/* After a command failed with ST_INTERNAL and its message was told: whose error it is, what may
 * help meanwhile, and what to report. arg[]: the command line, from the command's name on. Out of
 * memory is nobody's error: then what helps alone. */
void internal_tell(int narg, char *const *arg, struct diag *d);

#endif
