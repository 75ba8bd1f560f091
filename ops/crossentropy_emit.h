/* Cross-entropy: what its C text (crossentropy.c) and its CUDA text (crossentropy_cuda.c) share. */
#ifndef STINT_OPS_CROSSENTROPY_EMIT_H
#define STINT_OPS_CROSSENTROPY_EMIT_H

#include "ops/labels.h"

enum { X, TARGET, CONTROL, WEIGHT };                  /* the loss's inputs */
enum { DLOSS, DX, LSE, DTARGET, DCONTROL, DW, DLSE }; /* its gradient's */

/* Probabilities, not labels. */
bool crossentropy_is_soft(const struct tensor *target);
/* The weighted probability of class c that is aimed at, as an expression of type double or real. */
void crossentropy_aim(struct emit *e, const struct node *n, const struct label_view *v,
	const char *t, const char *weight);
/* What follows once a row's largest score `top` and sum of exp(x - top) `sum` are known, and as far
 * as needed its sum of x `all` (weighted), and the `mass` that is aimed at; `row` is its first
 * score, `r` its number. */
void crossentropy_row_loss(struct emit *e, const struct node *n, const struct label_view *v,
	const char *tabs, const char *index);
/* "TO = k * (VALUE);" */
void crossentropy_gradient(struct emit *e, const struct node *n, const char *to, const char *value);
/* Of labels: `low` and `high`, or with weights `top` and `rest`, what is aimed at. */
void crossentropy_aims(struct emit *e, const struct node *n, const struct label_view *v);
/* "TO = " the gradient of class c in column r of labels, 4 tabs deep. */
void crossentropy_class_gradient(struct emit *e, const struct node *n, const char *to);

/* crossentropy_cuda.c: the stage between emit_labels and emit_reduced, and that behind
 * emit_scale. */
void crossentropy_cuda(struct emit *e, const struct node *n, const struct label_view *v);
void crossentropy_grad_cuda(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale);

#endif
