/* Softmax and log-softmax: what the records (softmax.c) and their CUDA text (softmax_cuda.c)
 * share. */
#ifndef STINT_OPS_SOFTMAX_OP_H
#define STINT_OPS_SOFTMAX_OP_H

#include "ops/data.h"

/* x as [rows, n, inner], normalised (or, Hardmax, compared) along n: a node's param, by
 * softmax_infer. */
struct span {
	int64_t rows, n, inner;
};

enum status softmax_infer(struct graph *g, struct node *n);
/* In the place of a softmax that is spelled out (softmax_match.c). */
enum status softmax_match(struct graph *g, const struct node *n, struct tensor **replace);

enum { SOFTMAX_PLAIN, SOFTMAX_LOG }; /* variants */

static inline bool softmax_is_log(const struct node *n)
{
	return n->op->variant == SOFTMAX_LOG;
}

/* Bodies in CUDA; there are elements. */
enum status softmax_cuda_emit(struct emit *e, const struct node *n);
enum status softmax_grad_cuda_emit(struct emit *e, const struct node *n);

#endif
