/* What the families that drop out share: dropout and attention. Private to ops/. */
#ifndef STINT_OPS_DROPOUT_OP_H
#define STINT_OPS_DROPOUT_OP_H

#include "ops/family.h"

struct dropout {
	double ratio;
	bool active; /* the file's word, */
	bool silent; /* or, where it says nothing, PyTorch's way */
	int key;     /* the node's number in the model: whose random numbers */
	/* Of a slice of the batch: its first element's place, and elements of all slices. */
	int64_t place, all;
};

/* The param of a Dropout node. */
const struct dropout *dropout_of(const struct node *n);
/* What becomes of the dropout of node `name` in the graph that is built; *ratio 0: it does nothing.
 */
void dropout_settle(const char *name, const struct dropout *given, const struct lower_options *o,
	double *ratio);

/* 24-bit random numbers from this one on keep an element. */
static inline uint32_t dropout_keep_from(double ratio)
{
	return (uint32_t)ceil(ratio * 16777216.0);
}

#endif
