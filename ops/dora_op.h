/* DoRA: an adapter beside a node whose weight has rows, one for each output, with trained lengths.
 */
#ifndef STINT_OPS_DORA_OP_H
#define STINT_OPS_DORA_OP_H

#include "graph/op.h"

struct dora {
	struct tensor *a, *b;        /* [r, in], [out, r] */
	struct tensor *a_on_weight;  /* A W^T, [r, out], W's rows being [in] */
	struct tensor *base, *delta; /* what the node makes of the weight alone, of x with its
				      * dropout, and what A and B add to it */
	int rank;                    /* of the lengths, as PEFT has them: out in all, which... */
	const int64_t *dim;          /* ... broadcast to base */
};
/* What is added to the node's output, as PEFT has it: (f - 1) base + f delta, f being the trained
 * length by the one that a row has. NULL: failed. */
struct tensor *dora_added(struct adapting *x, const struct dora *of);

#endif
