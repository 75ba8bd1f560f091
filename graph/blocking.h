/* Blocked channels (graph/layout.c).
 *
 * A library's convolutions are fastest on tensors [N, C, ...] whose channels come in blocks of B,
 * stored as [N, C/B, ..., B]: to the graph, a tensor of that shape. Channels last is the same with
 * B = C of each tensor: [N, 1, ..., C]. Records that have `block` know how to work on such tensors.
 */
#ifndef STINT_GRAPH_BLOCKING_H
#define STINT_GRAPH_BLOCKING_H

#include "graph/graph.h"

struct layout;
struct blocking {
	struct graph *g;      /* being built: nodes added get the name and phase of n */
	const struct node *n; /* of the graph before */
	bool all;             /* channels last */
	struct layout *layout;
};

/* B, for a tensor [N, C, ...] of the graph before. */
int64_t blocking_channels(const struct blocking *b, const struct tensor *t);
/* The blocked form's shape; its rank, which is one more. */
int blocking_shape(const struct blocking *b, const struct tensor *t, int64_t *dim);
/* Where channels are counted when they are cut and joined: along which axis of the blocked form of
 * `rank` + 1 axes, and how many are 1 there. Blocks: axis 1, B. Channels last: the last axis, 1. */
int blocking_axis(const struct blocking *b, int rank, int64_t *unit);

/* Can stand in blocks: three axes or more, whole blocks of channels. */
bool blocking_fits(const struct blocking *b, const struct tensor *t);
/* Input i can, and does already. */
bool blocking_has(const struct blocking *b, int i);
/* Output k can, and some reader knows what to do with it. */
bool blocking_wanted(const struct blocking *b, int k);
/* Input i in either form, reordered if need be; NULL: absent, or a failure that g remembers. */
struct tensor *blocking_plain(const struct blocking *b, int i);
struct tensor *blocking_blocked(const struct blocking *b, int i);
/* A tensor of the graph before that broadcasts to [N, C, ...] of `rank` axes, so that it broadcasts
 * to the blocked form. */
struct tensor *blocking_beside(const struct blocking *b, const struct tensor *old, int rank);
/* What stands for output k from now on. */
void blocking_give(const struct blocking *b, int k, struct tensor *t, bool in_blocks);

#endif
