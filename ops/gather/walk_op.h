/* Picking elements or rows of a tensor by a tensor of indices, and putting them back: what
 * GatherElements, GatherND, ScatterElements, ScatterND and TensorScatter have in common. */
#ifndef STINT_OPS_WALK_OP_H
#define STINT_OPS_WALK_OP_H

#include "ops/boxes/boxes_op.h"

/* Where the picks lie. A pick is told by its line, i_0.. < dim[0..lines), and its number
 * m < count on it:
 *
 *	in the picked list (updates): Σ i·us + m·um
 *	its index: `parts` numbers from Σ i·is + m·im on
 *	in the data: Σ i·ds + Σ_c index_c·step[c], where a negative index_c counts from size[c]
 *
 * No two lines meet in the data, so that lines may run side by side; the picks of one line are
 * taken in the order of m. Where the last line's ds and us are 1, it is a row of neighbours. */
struct walk {
	int lines, parts;
	int64_t dim[RANK_MAX], ds[RANK_MAX], us[RANK_MAX], is[RANK_MAX];
	int64_t count, um, im;
	int64_t size[RANK_MAX], step[RANK_MAX];
	int data_rank, list_rank; /* the tensors' shapes */
	int64_t data_dim[RANK_MAX], list_dim[RANK_MAX];
};

/* The walks of the operators, for data `x` and indices `at`; NULL after a message. Indices known at
 * compile time are checked. */
const struct walk *walk_elements(struct graph *g, const struct node *n, const struct tensor *x,
	const struct tensor *at, int64_t axis);
const struct walk *walk_rows(struct graph *g, const struct node *n, const struct tensor *x,
	const struct tensor *at, int64_t batch_dims);
/* Index [batch, m]: the place along `axis` of x for element m of `list`. */
const struct walk *walk_along(struct graph *g, const struct node *n, const struct tensor *x,
	const struct tensor *at, const struct tensor *list, int axis);

/* How many picks there are; where pick t lies in the data and in the list. Picks that meet come in
 * the order of t. */
int64_t walk_total(const struct walk *w);
void walk_place(
	const struct walk *w, const struct tensor *at, int64_t t, int64_t *data, int64_t *list);

/* The kernels' struct "walk". */
enum { WALK_FIELDS = 16 };
struct call_struct walk_struct(const struct walk *w, struct call_field field[WALK_FIELDS]);
/* Pieces of rows, of each line or of each pick. */
int64_t walk_turns(const struct walk *w, bool each_pick, int64_t piece);
/* A body's first call: an index out of range in input k of n is refused. */
enum status walk_check_call(struct emit *e, const struct node *n, const struct walk *w, int k);

#endif
