/* The table of all operators. */
#ifndef STINT_OPS_OPS_H
#define STINT_OPS_OPS_H

#include "graph/op.h"

const struct op_table *ops_table(void);

#endif
