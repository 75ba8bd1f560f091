/* Shared by control flow and sequences, which are resolved while a model is read: tensors cut up
 * and put together again. */
#ifndef STINT_OPS_UNROLL_H
#define STINT_OPS_UNROLL_H

#include "graph/expansion.h"
#include "ops/data.h"

/* The `n` parts of x along `axis`, of the given sizes; where `squeeze`, all of size 1, the axis
 * goes away. */
enum status unroll_cut(struct expansion *x, struct tensor *whole, int axis, int n,
	const int64_t *size, bool squeeze, struct tensor ***out);
/* The other way round: joined along `axis`, one that the parts have, or (`stack`) a new one. */
enum status unroll_join(struct expansion *x, int n, struct tensor *const *part, int axis,
	bool stack, struct tensor **out);
/* A list of n tensors, of its own, with room for n. */
enum status unroll_list(struct expansion *x, int n, struct tensor *const *item, struct value *out);
/* A known scalar. */
struct tensor *unroll_int(struct graph *g, int64_t v);
struct tensor *unroll_bool(struct graph *g, bool v);
/* "[-rank, rank)" → [0, rank) */
enum status unroll_axis(const struct expansion *x, int64_t axis, int rank, int *out);
/* The list in input i; a message where it is none. */
enum status unroll_input(const struct expansion *x, int i);

#endif
