/* Normalisations of rows as CUDA text of their own. Private to ops/. */
#ifndef STINT_OPS_NORM_CUDA_H
#define STINT_OPS_NORM_CUDA_H

#include "ops/norm.h"

/* The target is a GPU, and the node has elements: then the texts below are what norm.h's of the
 * same names without "cuda" give. */
bool norm_cuda_fits(const struct emit *e, const struct node *n);
enum status norm_cuda_emit(struct emit *e, const struct node *n);
enum status norm_grad_cuda_emit(struct emit *e, const struct node *n);
enum status norm_all_cuda_emit(struct emit *e, const struct node *n);
int64_t norm_all_cuda_workspace(const struct node *n);

#endif
