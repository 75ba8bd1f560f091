/* What resample.c and resample_cuda.c share. */
#ifndef STINT_OPS_RESAMPLE_PARTS_H
#define STINT_OPS_RESAMPLE_PARTS_H

#include "ops/resample.h"

/* An axis of the loops: neighbours that stay as they are make one. */
struct part {
	int64_t in, out, stride;         /* of x, in elements */
	const struct resample_axis *map; /* NULL: stays */
	int64_t each; /* terms of every output; -1: not all have the same number */
	bool one;     /* each is 1, of weight 1 */
	bool gaps;    /* some output has none */
};

struct parts {
	int count;
	struct part part[RANK_MAX];
	bool adds;                 /* some axis before the last has sums */
	const struct tensor *type; /* of an element of x, and of y */
};

struct parts resample_parts(const struct node *n);
/* The tables of axes that change, by the axis's number: from0, where an output's terms begin (where
 * not all have as many), at0, which element, by0, its weight (where not all are 1). */
void resample_emit_tables(struct emit *e, const struct parts *s);
/* "const real *x = x0 + i0 * 256 + i3;": what no term moves, of so many axes. */
void resample_emit_base(struct emit *e, const struct parts *s, int axes);
enum status resample_cuda_emit(struct emit *e, const struct node *n);

#endif
