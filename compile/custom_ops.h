/* --ops FILE.so: operators of the user's own. */
#ifndef STINT_COMPILE_CUSTOM_OPS_H
#define STINT_COMPILE_CUSTOM_OPS_H

#include "graph/op.h"

/* stint's table with the records of the shared objects in `files` (ended by NULL; NULL: none)
 * behind it. They stay loaded: records are read until the program ends. ST_IO for a file that
 * cannot be read, ST_INVALID for one that holds no records, or wrong ones. */
enum status custom_ops_load(
	struct arena *a, const char *const *files, const struct op_table **out, struct diag *d);

#endif
