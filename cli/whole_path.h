/* A path as it is called from anywhere. */
#ifndef STINT_CLI_WHOLE_PATH_H
#define STINT_CLI_WHOLE_PATH_H

#include "base/base.h"

/* `path` itself where it begins at the root, or where it cannot be told where we are; NULL: no
 * memory. */
const char *whole_path(struct arena *a, const char *path);

#endif
