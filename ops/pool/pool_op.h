/* What the families of pools share. Private to ops/. */
#ifndef STINT_OPS_POOL_OP_H
#define STINT_OPS_POOL_OP_H

#include "ops/window_op.h"

/* The parameter of MaxPool, AveragePool, stint.SumPool and their gradients. */
struct pool {
	struct window w;
	int64_t batch, channels;
	bool pad_counts;   /* AveragePool: count_include_pad */
	bool sums;         /* not divided */
	bool column_major; /* MaxPool: the indices' order within a plane */
	bool lanes;        /* the window's last axis is a block of channels */
	int64_t last; /* CUDA: so many channels stand behind the window's axes, [batch, 1, axes...,
			 last], and `channels` is 1; 0: no */
};

/* Of each plane's output elements, for the threads that round them. */
int64_t pool_workspace(const struct node *n, const struct target *t);
struct op_cost pool_cost(const struct node *n);
/* Elements under the window of a global pool. */
int64_t pool_global_count(const struct node *n);

enum status pool_emit_max(struct emit *e, const struct node *n);
enum status pool_emit_max_grad(struct emit *e, const struct node *n);
enum status pool_emit_average(struct emit *e, const struct node *n);
enum status pool_emit_average_grad(struct emit *e, const struct node *n);
enum status pool_emit_global(struct emit *e, const struct node *n);

/* pool_cuda.c: the same for a GPU. */
enum status pool_cuda_max(struct emit *e, const struct node *n);
enum status pool_cuda_max_grad(struct emit *e, const struct node *n);
enum status pool_cuda_average(struct emit *e, const struct node *n);
enum status pool_cuda_average_grad(struct emit *e, const struct node *n);

#endif
