/* Shared by the families that move data without computing. */
#ifndef STINT_OPS_DATA_H
#define STINT_OPS_DATA_H

#include "ops/family.h"

/* A record's list of examples, ended. */
#define EXAMPLES(...) ((const struct op_example[]){__VA_ARGS__, {.in = NULL}})

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

/* An infer: output 0 is of input 0's type and shape, or of input 1's. */
enum status data_infer_like(struct graph *g, struct node *n);
enum status data_infer_like_second(struct graph *g, struct node *n);

/* Which of `word`, ended by a NULL, an attribute is; `def` where it is absent. */
enum status data_word(struct graph *g, const struct node *n, const char *name, const char *def,
	const char *const *word, int *out);

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
