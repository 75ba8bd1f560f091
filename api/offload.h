/* --offload: what may be elsewhere than in the arena, and how much that is. */
#ifndef STINT_API_OFFLOAD_H
#define STINT_API_OFFLOAD_H

#include "api/options.h"

/* "host", "host:64KiB", "disk:FOLDER", "disk:FOLDER:500MB:64KiB" */
enum status offload_take(struct arena *a, const char *text, struct options *o, struct diag *d);
/* What it goes together with. */
enum status offload_check(struct options *o, struct diag *d);

#endif
