/* Copies of boxes, and fills: what moves data is made of. */
#ifndef STINT_OPS_BOXES_OP_H
#define STINT_OPS_BOXES_OP_H

#include "codegen/call.h"
#include "ops/data.h"

/* Tiling and splitting an axis give a box more axes than a tensor has. */
enum { BOX_RANK = 2 * RANK_MAX };

/* A copy: y[yoff + Σ i_k·ys_k] = x[xoff + Σ i_k·xs_k] for all 0 ≤ i_k < dim_k, in elements.
 * No two elements of y coincide; xs may be 0 (repeat) or negative (backwards). */
struct box {
	int rank;
	int64_t dim[BOX_RANK], xs[BOX_RANK], ys[BOX_RANK];
	int64_t xoff, yoff;
};

/* Row-major strides of a dense tensor, in elements. */
void box_strides(int rank, const int64_t *dim, int64_t *stride);
int64_t box_count(const struct box *b);
/* The copy, now, of elements of `size` bytes. */
void box_run(const struct box *b, size_t size, void *y, const void *x);
/* The same copy with as few axes as it takes, outermost first as y lies in memory. */
struct box box_simplified(const struct box *b);

/* Several copies of elements of t's type, none of which touches what another writes. */
struct box_copy {
	struct box box;
	struct call_arg y, x;
};
enum status boxes_call(struct emit *e, int n, const struct box_copy *copy, const struct tensor *t);
/* Records whose nodes copy a box of input 0 into all of output 0: the last step of infer, which
 * makes it the node's param, and hooks. */
enum status box_settle(struct graph *g, struct node *n, struct box b);
enum status box_fold(struct graph *g, const struct node *n, void *const *out);
enum status box_emit(struct emit *e, const struct node *n);
/* Output 0 is `fill` but for the box that is copied from input 0. */
enum status box_inset_call(struct emit *e, const struct node *n, const struct box *b, double fill);
/* All of output k of n is one number: `value`, or what fill_value makes of a double. */
enum status fill_call(struct emit *e, const struct node *n, int k, struct call_arg value);
struct call_arg fill_value(const struct tensor *y, double value);

/* The call of a copy, and what its arguments point at. */
struct box_kernel {
	struct box box;
	struct call_field field[7];
	struct call_struct of;
	struct call_arg args[6]; /* y, x, the box, and more */
	struct kernel_call call;
};
/* The first three arguments of copy `number` of a node, whose box is set. */
void box_kernel_args(struct box_kernel *k, struct emit *e, int number, const struct box_copy *copy);

/* boxes_cuda.c: copy i of n on a GPU, all in one launch; and the inset, where the fill is 0. */
void box_cuda_kernel(struct box_kernel *k, struct emit *e, int i, int n,
	const struct box_copy *copy, const struct tensor *type);
enum status box_cuda_inset(struct emit *e, const struct node *n, const struct box *b);

#endif
