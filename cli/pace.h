/* How often something is done, or how long: steps ("500"), or time ("90s", "15m", "8h", "2d"). */
#ifndef STINT_CLI_PACE_H
#define STINT_CLI_PACE_H

#include <stdint.h>

#include "base/base.h"

struct pace {
	int64_t steps;  /* 0: not by steps */
	double seconds; /* INFINITY: not by time */
};

/* `text`, of this option; NULL and "0" are never. */
enum status pace_parse(const char *option, const char *text, struct pace *out, struct diag *d);

#endif
