/* A loop of ONNX's that stays one node (graph/loop.h), where it can. */
#ifndef STINT_OPS_KEPT_LOOP_H
#define STINT_OPS_KEPT_LOOP_H

#include "graph/expansion.h"
#include "ops/data.h"

struct kept_loop {
	struct expansion *x;
	const struct body *body;
	int64_t turns;
	int lead;      /* inputs of the body before the carries: 2, the turn's number and a
			  condition that holds; or 0 */
	int condition; /* outputs before the carries: 1, a condition; or 0 */
	int ncarry, nscan, ncollect;
	const struct value *carry; /* before the first turn */
	/* Scanned tensors, along their first axis; and whether from the last slice on. */
	struct tensor **scan;
	const bool *scan_backwards, *collect_backwards;
	/* What it comes to: the carries after the last turn, what is collected. */
	struct tensor **out;
};
/* Whether so many turns are kept as one node at all; then with *done the node is made, or the loop
 * is to be unrolled. */
bool kept_loop_wanted(const struct expansion *x, int64_t turns);
enum status kept_loop_make(struct kept_loop *k, bool *done);

#endif
