/* An Einsum's equation, read. */
#ifndef STINT_OPS_EINSUM_OP_H
#define STINT_OPS_EINSUM_OP_H

#include "ops/data.h"

/* An axis' label: 0..51 for A..Z, a..z (so that the implicit output is sorted by them), then the
 * axes of the ellipsis, counted from the last. */
enum { LETTERS = 52, LABELS = LETTERS + RANK_MAX };

struct term {
	int n;
	int label[RANK_MAX];
};

struct equation {
	const char *text;
	int nin;
	struct term *in, out;
	int64_t size[LABELS]; /* 1 where no operand is larger */
};

bool term_has(const struct term *t, int label);

/* The record's lowering: the node as transpositions, sums and batched matrix products. */
enum status einsum_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out);

#endif
