/* Softmax spelled out, as tf2onnx writes JAX's: exponentials, of what may have its largest taken
 * away before, divided by their sum. What is taken away is the same along the axis, which changes
 * nothing; the kernel takes the largest away by itself. */
#include "ops/match.h"
#include "ops/softmax/softmax_op.h"

/* The shape of `whole` with 1 in the place of `axis`. */
static bool is_row(const struct tensor *t, const struct tensor *whole, int axis)
{
	if (t->rank != whole->rank)
		return false;
	for (int i = 0; i < t->rank; i++)
		if (t->dim[i] != (i == axis ? 1 : whole->dim[i]))
			return false;
	return true;
}

/* One number along the axis for all of `whole`, broadcast by itself or by Expand: that; or NULL. */
static const struct tensor *row_of(const struct tensor *t, const struct tensor *whole, int axis)
{
	const struct node *expand = match_node(t, "Expand");
	if (expand && tensor_same_shape(t, whole))
		t = expand->in[0];
	return is_row(t, whole, axis) ? t : NULL;
}

/* t before what gives an axis its place back, or broadcasts along one. */
static const struct tensor *before_shapes(const struct tensor *t)
{
	static const char *const shape[] = {"Expand", "Reshape", "Unsqueeze", "Squeeze"};
	for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
		const struct node *n = match_node(t, shape[i]);
		if (n)
			return before_shapes(n->in[0]);
	}
	return t;
}

enum status softmax_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	if (!node_is(n, "Div"))
		return ST_OK;
	struct tensor *e = match_source(n->in[0]);
	const struct node *power = match_node(e, "Exp");
	const struct node *sum = match_node(before_shapes(n->in[1]), "ReduceSum");
	const int axis = power && sum && match_source(sum->in[0]) == e ? match_axis(g, sum) : -1;
	if (axis < 0 || !row_of(n->in[1], e, axis))
		return ST_OK;
	struct tensor *x = match_source(power->in[0]);
	const struct node *less = match_node(x, "Sub");
	if (less && tensor_same_shape(less->in[0], x) && row_of(less->in[1], x, axis))
		x = less->in[0];
	const struct attr attr = ATTR_I("axis", axis);
	*replace = graph_op(g, "Softmax", 1, &x, 1, &attr);
	return g->failed;
}
