/* Slices by indices: what the records (gather.c) and a GPU's calls (gather_cuda.c) share. */
#ifndef STINT_OPS_GATHER_OP_H
#define STINT_OPS_GATHER_OP_H

#include "ops/boxes/boxes_op.h"

/* The data as [outer, size, inner] around the gathered axis, with `count` indices. `padding`: the
 * place along the axis to which no gradient goes; NO_PADDING: none. */
struct picks {
	int64_t outer, size, inner, count, padding;
};
enum { NO_PADDING = -1 };

/* The bytes of the slices, twice, and of the indices. */
struct op_cost gather_cost(const struct node *n);

/* There are elements, and indices. */
enum status gather_cuda_call(struct emit *e, const struct node *n, const struct picks *p);
int64_t scatter_cuda_workspace(const struct picks *p);
enum status scatter_cuda_call(struct emit *e, const struct node *n, const struct picks *p);

#endif
