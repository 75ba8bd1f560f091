/* Looking backwards through an imported graph, for the `match` hooks. Conversions between real
 * types stand in the way of nothing: there is one real type. */
#ifndef STINT_OPS_MATCH_H
#define STINT_OPS_MATCH_H

#include "ops/data.h"

/* `t` before casts from real to real and identities. */
struct tensor *match_source(struct tensor *t);
/* The node `op` that made t, casts aside; NULL when another did. */
const struct node *match_node(const struct tensor *t, const char *op);
/* t is a known real number: *v. */
bool match_number(const struct tensor *t, double *v);
/* Equal up to what single precision and shortened constants lose. */
bool match_near(double a, double b);
/* n is a commutative `op` of a known number and something else: *v and *other. */
bool match_with_number(const struct node *n, const char *op, double *v, struct tensor **other);
/* The one axis that a reduction n reduces; -1: others. */
int match_axis(struct graph *g, const struct node *n);
/* What t is the LogSoftmax of, along `axis`; NULL where it is none. */
struct tensor *match_log_softmax(const struct tensor *t, int axis);

#endif
