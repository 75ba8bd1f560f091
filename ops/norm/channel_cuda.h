/* Sums over all values of a channel, on a GPU. In a first stage blocks sum parts of x, in a last
 * one the parts' sums meet in their order. Private to ops/. */
#ifndef STINT_OPS_CHANNEL_CUDA_H
#define STINT_OPS_CHANNEL_CUDA_H

#include "codegen/call.h"
#include "ops/data.h"

/* The call of the last stage: `c` but for its launch and its shared memory. */
enum status channel_last_stage(struct emit *e, int64_t channels, struct kernel_call c);

/* Struct norm's and struct batchnorm's nodes. */
/* The gradients of scale and bias become outputs number `first` and the next. */
enum status norm_scale_cuda_stages(struct emit *e, const struct node *n, int first);
int64_t norm_scale_cuda_workspace(const struct node *n, const struct target *t);
enum status batchnorm_stats_cuda_emit(struct emit *e, const struct node *n);
enum status batchnorm_sums_cuda_emit(struct emit *e, const struct node *n);
int64_t batchnorm_cuda_workspace(const struct node *n, const struct target *t);

#endif
