/* Cross-entropy's larger hooks: for the record (crossentropy.c) only. */
#ifndef STINT_OPS_CROSSENTROPY_OP_H
#define STINT_OPS_CROSSENTROPY_OP_H

#include "ops/family.h"

/* Recognises spelled-out forms (crossentropy_match.c). */
enum status crossentropy_match(struct graph *g, const struct node *n, struct tensor **replace);
/* Scores that a product makes, in chunks of rows (crossentropy_chunk.c). */
enum status crossentropy_chunk(struct graph *g, const struct graph *from, const struct node *n,
	struct tensor *const *in, struct tensor **out);

#endif
