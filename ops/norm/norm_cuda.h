/* Normalisations of rows by kernels of a GPU's own. Private to ops/. */
#ifndef STINT_OPS_NORM_CUDA_H
#define STINT_OPS_NORM_CUDA_H

#include "ops/norm/norm_op.h"

enum status norm_cuda_emit(struct emit *e, const struct node *n);
enum status norm_grad_cuda_emit(struct emit *e, const struct node *n);
enum status norm_scale_cuda_emit(struct emit *e, const struct node *n);
/* Of a gradient of x: op_def's `adds`. */
bool norm_adds(const struct graph *g, const struct node *n);
enum status norm_all_cuda_emit(struct emit *e, const struct node *n);
int64_t norm_all_cuda_workspace(const struct node *n, const struct target *t);

#endif
