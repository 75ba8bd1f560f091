/* The backward pass of a loop while it is made; private to loop_gradient.c and loop_keep.c. */
#ifndef STINT_GRAPH_LOOP_BACKWARD_H
#define STINT_GRAPH_LOOP_BACKWARD_H

#include "graph/graph_parts.h"
#include "graph/loop.h"

struct backward {
	struct graph *g;
	const struct node *n;
	const struct loop *l;
	const struct loop_body *body; /* the loop's */
	struct tensor *const *dy, **sums;
	bool *want;  /* the node's inputs: each tensor once, but for slices */
	bool *wants; /* [nin] the body's */
	int ncollect;
	int at_dy, at_sums; /* operands of the gradient's node, behind the loop's */
	struct loop *out;
	struct reached *end;  /* where data end the loop, by last body: what has a gradient then */
	struct tensor ***map; /* by body: from the tensors of the loop's body */
	/* What is kept: values inside turns, and carries that are read as their turn has made them.
	 */
	int ninside, at_inside;
	struct tensor **inside;
	bool *after;
};

/* Whether some body reads carry k, or its gradient. */
bool loop_reads(const struct loop *l, enum loop_place_kind kind, int k);
/* Requires all bodies. What they read of the turn's own values, and is kept, becomes their input.
 */
enum status loop_cut_bodies(struct backward *b);
/* With slots: a body that goes a turn forward, for the carries that somebody reads. */
enum status loop_add_advance(struct backward *b);
/* What the loop gives besides, and the gradient reads: `in` are the gradient's inputs. */
enum status loop_keep_all(struct backward *b, struct tensor **in);

#endif
