/* Cross-entropy: what its calls on a processor (crossentropy.c) and on a GPU (crossentropy_cuda.c)
 * share. */
#ifndef STINT_OPS_CROSSENTROPY_EMIT_H
#define STINT_OPS_CROSSENTROPY_EMIT_H

#include "ops/crossentropy/labels_op.h"

enum { X, TARGET, CONTROL, WEIGHT };                  /* the loss's inputs */
enum { DLOSS, DX, LSE, DTARGET, DCONTROL, DW, DLSE }; /* its gradient's */
enum { BOTH_DLOSS = 2, BOTH_CONTROL };                /* of both in one, behind X and TARGET */

/* Probabilities, not labels. */
bool crossentropy_is_soft(const struct tensor *target);
/* The log-sum-exps, unless nobody asks for them. */
struct call_arg crossentropy_lse(const struct node *n);

/* crossentropy_cuda.c: the rows' losses into scratch, and the gradient. */
bool crossentropy_reads_again(const struct node *n); /* both in one: the scores, being many */
label_rows crossentropy_cuda_rows, crossentropy_grad_cuda, crossentropy_both_cuda;

#endif
