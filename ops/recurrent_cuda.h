/* What the recurrent kernels for a GPU share. Private to ops/. */
#ifndef STINT_OPS_RECURRENT_CUDA_H
#define STINT_OPS_RECURRENT_CUDA_H

#include "ops/recurrent_op.h"

/* The recurrent product of one launch: rows of `terms` numbers times rows [from, from + gates H) of
 * R, or (`across`) times rows [from, from + terms) as they lie. */
struct step_product {
	int64_t from, gates, terms;
	bool across;
};

/* Opens a stage: a turn for each step, and one more for the gradient, tasks d, b0, j0, and for the
 * tile's samples `row`, where the product's row is: the text `at`, of d, b, s and t, under the
 * condition `when` (NULL: always), and zeros elsewhere. Then the product, none in turn 0 where
 * `later`, and the loop over elements, three tabs deep: sample b, hidden unit j, place s, step t,
 * and len where the node has lengths. */
struct step_rows {
	const char *when, *at;
	bool later;
};
void step_open(struct emit *e, const struct node *n, const struct step_product *x,
	const struct step_rows *rows, bool grad);
/* Closes what step_open has opened. */
void step_close(struct emit *e);
/* The product's sum for gate `k`: "recurrent_sum<shape>(...)". */
const char *step_sum(struct emit *e, int k);
/* A line of the elements' loop. */
void step_line(struct emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "x0[place + 2 * 512 + j]": element j of gate `k` at step t in XW, gates or aux, rows of `gates`
 * times H. */
const char *step_at(struct emit *e, const struct recurrent *p, const char *name, const char *t,
	int64_t gates, int64_t k);
/* Element j of Y at step t; of a state. */
const char *step_at_y(struct emit *e, const struct recurrent *p, const char *name, const char *t);
const char *step_at_state(struct emit *e, const struct recurrent *p, const char *name);
#endif
