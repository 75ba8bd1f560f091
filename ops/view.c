/* Operators that only give a tensor another shape: never executed, users read the source. And the
 * copy that is executed, where core code needs a tensor of its own. */
#include <inttypes.h>

#include "graph/expansion.h"
#include "ops/data.h"

static enum status view_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0] && dy[0])
		dx[0] = graph_reshape(g, dy[0], n->in[0]->rank, n->in[0]->dim);
	return g->failed;
}

/* Output 0 in the shape `dim`, whose element count must be the input's. */
static enum status view_output(struct graph *g, struct node *n, int rank, const int64_t *dim)
{
	const struct tensor *x = n->in[0];
	TRY(data_output(g, n, 0, x->dtype, rank, dim));
	if (n->out[0]->numel == x->numel)
		return ST_OK;
	char a[200], b[200];
	return node_fail(g, n, graph_view_hint(g, x), "cannot view %s as %s",
		tensor_shape_text(x, a), tensor_shape_text(n->out[0], b));
}

static enum status shape_for(
	struct graph *g, const struct node *n, int rank, const int64_t *v, int64_t *dim)
{
	const struct tensor *x = n->in[0];
	bool allowzero = node_int(n, "allowzero", 0) != 0;
	int unknown = -1;
	int64_t known = 1;
	for (int i = 0; i < rank; i++) {
		dim[i] = v[i];
		if (v[i] == 0 && !allowzero) {
			if (i >= x->rank)
				return node_fail(g, n, NULL,
					"size 0 at axis %d copies an axis that the input of %d "
					"axes "
					"does not have",
					i, x->rank);
			dim[i] = x->dim[i];
		}
		if (v[i] == -1 && unknown >= 0)
			return node_fail(g, n, NULL, "the shape has more than one -1");
		if (v[i] == -1)
			unknown = i;
		else if (!size_mul(known, dim[i], &known))
			return node_fail(
				g, n, NULL, "size %" PRId64 " at axis %d is invalid", v[i], i);
	}
	if (unknown < 0)
		return ST_OK;
	if (known == 0 || x->numel % known) {
		char text[200];
		return node_fail(g, n, graph_view_hint(g, x),
			"%s does not divide by the known sizes' product, %" PRId64,
			tensor_shape_text(x, text), known);
	}
	dim[unknown] = x->numel / known;
	return ST_OK;
}

static enum status reshape_infer(struct graph *g, struct node *n)
{
	int rank;
	const int64_t *v;
	int64_t dim[RANK_MAX];
	TRY(node_ints(g, n, "shape", 1, &rank, &v));
	if (!v)
		return node_fail(g, n, NULL, "has no shape");
	if (rank > RANK_MAX)
		return node_fail(g, n, NULL, "%d axes; stint handles up to %d", rank, RANK_MAX);
	TRY(shape_for(g, n, rank, v, dim));
	return view_output(g, n, rank, dim);
}

static enum status flatten_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t axis = node_int(n, "axis", 1);
	int64_t dim[2] = {1, 1};
	if (axis < -x->rank || axis > x->rank)
		return node_fail(
			g, n, NULL, "axis %" PRId64 " is out of range for %d axes", axis, x->rank);
	if (axis < 0)
		axis += x->rank;
	for (int i = 0; i < x->rank; i++)
		dim[i >= axis] *= x->dim[i];
	return view_output(g, n, 2, dim);
}

/* Set marked[axis] for every listed axis of `rank`. */
static enum status mark_axes(
	struct graph *g, const struct node *n, int len, const int64_t *axes, int rank, bool *marked)
{
	for (int i = 0; i < len; i++) {
		int k;
		TRY(node_axis(g, n, axes[i], rank, &k));
		if (marked[k])
			return node_fail(g, n, NULL, "axis %d is listed twice", k);
		marked[k] = true;
	}
	return ST_OK;
}

static enum status squeeze_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int len, rank = 0;
	const int64_t *axes;
	bool gone[RANK_MAX] = {false};
	int64_t dim[RANK_MAX];
	TRY(node_ints(g, n, "axes", 1, &len, &axes));
	TRY(mark_axes(g, n, len, axes, x->rank, gone));
	for (int i = 0; i < x->rank; i++) {
		if (gone[i] && x->dim[i] != 1)
			return node_fail(g, n, NULL,
				"axis %d has size %" PRId64 ", only axes of size 1 can go", i,
				x->dim[i]);
		if (axes ? !gone[i] : x->dim[i] != 1)
			dim[rank++] = x->dim[i];
	}
	return view_output(g, n, rank, dim);
}

static enum status unsqueeze_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int len;
	const int64_t *axes;
	bool fresh[RANK_MAX] = {false};
	int64_t dim[RANK_MAX];
	TRY(node_ints(g, n, "axes", 1, &len, &axes));
	if (!axes)
		return node_fail(g, n, NULL, "has no axes");
	if (len > RANK_MAX - x->rank)
		return node_fail(g, n, NULL, "more than %d axes", RANK_MAX);
	int rank = x->rank + len;
	TRY(mark_axes(g, n, len, axes, rank, fresh));
	for (int i = 0, k = 0; i < rank; i++)
		dim[i] = fresh[i] ? 1 : x->dim[k++];
	return view_output(g, n, rank, dim);
}

static enum status identity_infer(struct graph *g, struct node *n)
{
	return view_output(g, n, n->in[0]->rank, n->in[0]->dim);
}

/* Of a sequence or an optional value. */
static enum status identity_expand(struct expansion *x)
{
	x->out[0] = x->in[0];
	return ST_OK;
}

POINTWISE(copy, a)

static enum status copy_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)n;
	if (want[0])
		dx[0] = dy[0];
	return g->failed;
}

const struct op_def ops_view[] = {
	{.name = "Reshape",
		.apart = APART_SHAPE,
		.since = 5,
		.min_in = 1,
		.max_in = 2,
		.traits = OP_VIEW,
		.role = ROLE_RESHAPE,
		.infer = reshape_infer,
		.grad = view_grad,
		.example = EXAMPLES({.in = "2,3,4 =[0,-1]"}, {.in = "2,3,4 =[4,1,6]"},
			{.in = "6 =[2,3]", .attr = "allowzero=1"})},
	{.name = "Flatten",
		.apart = APART_SHAPE,
		.since = 1,
		.min_in = 1,
		.traits = OP_VIEW,
		.infer = flatten_infer,
		.grad = view_grad,
		.example = EXAMPLES({.in = "2,3,4"}, {.in = "2,3,4", .attr = "axis=0"},
			{.in = "2,3,4", .attr = "axis=-1"})},
	{.name = "Squeeze",
		.apart = APART_SHAPE,
		.since = 1,
		.min_in = 1,
		.max_in = 2,
		.traits = OP_VIEW,
		.infer = squeeze_infer,
		.grad = view_grad,
		.example = EXAMPLES({.in = "1,3,1,4"}, {.in = "1,3,1,4 =[-2]"},
			{.in = "1,3,1,4", .attr = "axes=0,2"})},
	{.name = "Unsqueeze",
		.apart = APART_SHAPE,
		.since = 1,
		.min_in = 1,
		.max_in = 2,
		.traits = OP_VIEW,
		.infer = unsqueeze_infer,
		.grad = view_grad,
		.example = EXAMPLES({.in = "3,4 =[0,-1]"}, {.in = "3,4", .attr = "axes=1,2"})},
	{.name = "stint.StopGradient",
		.min_in = 1,
		.traits = OP_VIEW | OP_STOP,
		.role = ROLE_STOP,
		.infer = identity_infer},
	{.name = "Identity",
		.apart = APART_SHAPE,
		.role = ROLE_IDENTITY,
		.since = 1,
		.min_in = 1,
		.traits = OP_VIEW,
		.infer = identity_infer,
		.expand = identity_expand,
		.grad = view_grad,
		.example = EXAMPLES({.in = "3,4"}, {.in = "()"})},
	{.name = "stint.Copy",
		.min_in = 1,
		.traits = OP_POINTWISE,
		.role = ROLE_COPY,
		.expr = copy_expr,
		.ref = copy_ref,
		.grad = copy_grad,
		.example = EXAMPLES({.in = "3,40"}, {.in = "()"})},
	{.name = NULL},
};
