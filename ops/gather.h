/* Slices by indices: what the records (gather.c) and their CUDA text (gather_cuda.c) share. */
#ifndef STINT_OPS_GATHER_H
#define STINT_OPS_GATHER_H

#include "ops/data.h"

/* The data as [outer, size, inner] around the gathered axis, with `count` indices. `padding`: the
 * place along the axis to which no gradient goes; NO_PADDING: none. */
struct picks {
	int64_t outer, size, inner, count, padding;
};
enum { NO_PADDING = -1 };

/* Bodies in CUDA; there are elements, and indices. */
void gather_cuda_emit(struct emit *e, const struct node *n, const struct picks *p);
int64_t scatter_cuda_workspace(const struct picks *p);
void scatter_cuda_emit(struct emit *e, const struct node *n, const struct picks *p);

#endif
