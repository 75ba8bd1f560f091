/* Operators that a user brings along (ops/stint_op.h), as records. */
#ifndef STINT_OPS_CUSTOM_H
#define STINT_OPS_CUSTOM_H

#include "ops/ops.h"

struct stint_op;

/* A table of what `table` has and the records of `user`, ended by one without a name, which stay
 * the caller's and must outlive it. `file` names where they come from, in messages; not copied.
 * ST_INVALID for a record that no node could use, or a name that `table` has already. */
enum status custom_add(struct arena *a, const struct op_table *table, const char *file,
	const struct stint_op *user, const struct op_table **out, struct diag *d);

#endif
