/* Pointwise nodes fused into one (graph_fuse). */
#ifndef STINT_GRAPH_FUSED_H
#define STINT_GRAPH_FUSED_H

#include "graph/op.h"

/* The last stage makes the node's output, the others values that only later stages read. */
enum { FUSED_INPUTS = 16, FUSED_STAGES = 32 };

/* Where an operand of a stage is: in the node's input `slot`, or, where slot is -1 or the node as
 * it is run lacks that input, made by an earlier stage. Both -1: the operand is absent. */
struct fused_operand {
	int slot, stage;
};
struct fused_stage {
	const struct node *node; /* as it was: its record, attributes, types; in no graph */
	struct fused_operand in[POINTWISE_INPUTS];
};
struct fused {
	int nstage;
	const struct fused_stage *stage;
};
/* NULL: n is not such a node. */
const struct fused *node_fused(const struct node *n);
/* live[FUSED_STAGES]: the stages that the node as it is run needs. */
void fused_live(const struct node *n, const struct fused *f, bool *live);
static inline bool fused_reads_slot(const struct node *n, struct fused_operand o)
{
	return o.slot >= 0 && n->in[o.slot];
}

#endif
