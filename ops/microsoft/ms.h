/* What the files of ONNX Runtime's own operators (domain com.microsoft) share. Each is resolved
 * while the model is read: into operators of ONNX's, which have gradients, adapters and the rest.
 */
#ifndef STINT_OPS_MS_H
#define STINT_OPS_MS_H

#include "ops/unroll.h"

/* Report an input that is given but no tensor. */
enum status ms_check(const struct expansion *x);
/* The same, and one that is absent though bit i of `need` is set: where absent ones stand between
 * others, the record's min_in does not tell. */
enum status ms_need(const struct expansion *x, unsigned need);
/* Output k; nothing where the node does not have it. Returns what g->failed says. */
enum status ms_give(struct expansion *x, int k, struct tensor *t);
/* A node of ONNX's newest opset with `nout` outputs; NULL: failed. */
struct node *ms_node(const struct expansion *x, const char *op, int nin, struct tensor *const *in,
	int nout, int nattr, const struct attr *attr);
/* t with its axes in the order `perm`. */
struct tensor *ms_transpose(struct graph *g, struct tensor *t, const int64_t *perm);
/* a + b; either may be NULL: the other. */
struct tensor *ms_sum(struct graph *g, struct tensor *a, struct tensor *b);
/* Channels last to channels first, and back: no more than moves. */
struct tensor *ms_channels_first(struct graph *g, struct tensor *t);
struct tensor *ms_channels_last(struct graph *g, struct tensor *t);

#endif
