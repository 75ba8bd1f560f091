/* Shared by the families that move data without computing: view, move, slice, shape, gather. */
#ifndef STINT_OPS_DATA_H
#define STINT_OPS_DATA_H

#include "ops/family.h"

/* A record's list of examples, ended. */
#define EXAMPLES(...) ((const struct op_example[]){__VA_ARGS__, {.in = NULL}})

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
/* The copy, now, of elements of `size` bytes. */
void box_run(const struct box *b, size_t size, void *y, const void *x);
/* The copy as C text; `y` and `x` name pointers to elements of C type `type`. */
void box_emit(struct emit *e, const struct box *b, const char *type, const char *y, const char *x);
/* The same copy with as few axes as it takes, outermost first as y lies in memory. */
struct box box_simplified(const struct box *b);
/* "off + i0 * 24 + i1": the place for the loop variables i0, i1, ... */
void box_emit_place(struct emit *e, int64_t off, int rank, const int64_t *stride);

/* Several copies of elements of t's type, which are all of a body: none touches what another
 * writes. */
struct box_copy {
	struct box box;
	const char *y, *x;
};
void boxes_emit(struct emit *e, int n, const struct box_copy *copy, const struct tensor *t);
/* data_cuda.c: the same for a GPU; and a body that makes all of y0: the copy of x0, and elsewhere
 * `fill`, an element (NULL: zeros). */
void boxes_cuda_emit(struct emit *e, int n, const struct box_copy *copy, const struct tensor *t);
void box_cuda_inset(struct emit *e, const struct box *b, const struct tensor *y, const char *fill);
/* y[0..n) = 0 as C text. */
void zero_emit(struct emit *e, int64_t n, const char *y);

/* Cost of moving output 0: its bytes read once and written once. */
struct op_cost data_move_cost(const struct node *n);

/* What infer read from constant inputs becomes attributes: n keeps its first `nin` inputs, so that
 * the step holds no shapes and a copy of the node reads the same. Lists in `attr` are not copied.
 */
enum status data_settle(
	struct graph *g, struct node *n, int nin, int nattr, const struct attr *attr);
/* An attribute with a copy of the list in the arena; out of memory shows as a NULL list, which
 * data_settle reports. */
struct attr data_ints(struct graph *g, const char *name, int n, const int64_t *v);

/* Output k of n: status of making it. */
enum status data_output(
	struct graph *g, struct node *n, int k, enum dtype t, int rank, const int64_t *dim);

/* onnx.TensorProto.DataType → ours; false: not supported. */
bool data_element_type(int64_t onnx, enum dtype real, enum dtype *out);

/* The lowering of a node that turns out to change the shape at most: a view. */
enum status data_lower_to_view(
	struct graph *g, const struct node *n, struct tensor *const *in, struct tensor **out);
/* The fold of a record whose lowering makes nodes that fold. */
enum status data_fold_lowered(struct graph *g, const struct node *n, void *const *out);
/* The lowering of a node that stays as it is. */
enum status data_lower_same(
	struct graph *g, const struct node *n, struct tensor *const *in, struct tensor **out);

#endif
