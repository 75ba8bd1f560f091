/* `match` hooks of activations in spelled-out form. */
#ifndef STINT_OPS_SPELLED_H
#define STINT_OPS_SPELLED_H

#include "ops/match.h"

/* n = x · f(x) where f is made by the operator `op`: returns x. */
struct tensor *spelled_times_itself(const struct node *n, const char *op, const struct node **f);

enum status spelled_softplus(struct graph *g, const struct node *n, struct tensor **replace);
enum status spelled_hard_sigmoid(struct graph *g, const struct node *n, struct tensor **replace);
enum status spelled_hard_swish(struct graph *g, const struct node *n, struct tensor **replace);
enum status spelled_mish(struct graph *g, const struct node *n, struct tensor **replace);

#endif
