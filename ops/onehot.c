/* Tensors of two values: OneHot, told by indices, and EyeLike, told by a shape. */
#include <inttypes.h>

#include "codegen/call.h"
#include "ops/data.h"

/* --- OneHot(indices, depth, [off, on]) --- */

static enum status onehot_infer(struct graph *g, struct node *n)
{
	const struct tensor *at = n->in[0], *depth = n->nin > 2 ? n->in[1] : NULL;
	struct tensor *values = n->in[n->nin - 1];
	int axis;
	int64_t dim[RANK_MAX];
	if (depth && (depth->role != TR_CONSTANT || depth->numel != 1))
		return node_fail(g, n, graph_unknown_hint(g, depth),
			"the depth ('%s') is not a constant number", depth->name);
	int64_t size = depth ? tensor_int(depth, 0) : node_int(n, "depth", -1);
	if (size < 0 || !values || values->rank != 1 || values->dim[0] != 2)
		return node_fail(g, n, NULL, "needs a depth and two values, off and on");
	if (at->rank == RANK_MAX)
		return node_fail(g, n, NULL, "more than %d axes", RANK_MAX);
	TRY(node_axis(g, n, node_int(n, "axis", -1), at->rank + 1, &axis));
	for (int i = 0; i <= at->rank; i++)
		dim[i] = i < axis ? at->dim[i] : i == axis ? size : at->dim[i - 1];
	const struct attr attr[] = {ATTR_I("axis", axis), ATTR_I("depth", size)};
	n->in[1] = values;
	TRY(data_settle(g, n, 2, 2, attr));
	return data_output(g, n, 0, values->dtype, at->rank + 1, dim);
}

/* The output as [outer, depth, inner]. */
static int64_t inner_of(const struct node *n)
{
	int64_t inner = 1;
	for (int i = (int)node_int(n, "axis", 0); i < n->in[0]->rank; i++)
		inner *= n->in[0]->dim[i];
	return inner;
}

static enum status onehot_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *at = n->in[0], *values = n->in[1], *y = n->out[0];
	const int64_t depth = node_int(n, "depth", 0), inner = inner_of(n);
	const size_t size = (size_t)dtype_bytes(y->dtype);
	for (int64_t i = 0; i < y->numel; i++) {
		int64_t place = i / inner % depth, k = i / inner / depth * inner + i % inner;
		double v = tensor_real(at, k);
		bool on = v == (double)place || v + (double)depth == (double)place;
		memcpy((char *)out[0] + (size_t)i * size,
			(const char *)values->data + (on ? size : 0), size);
	}
	return ST_OK;
}

/* Σ dy where it is off, and where it is on. */
static enum status onehot_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	static const double value[2][2] = {{1, 0}, {0, 1}};
	struct tensor *sum[2];
	const struct attr axis = ATTR_I("axis", 0);
	const struct tensor one = {.rank = 1, .dim = {1}, .numel = 1};
	if (!want[1])
		return ST_OK;
	for (int k = 0; k < 2; k++) {
		char *data = arena_alloc(g->arena, 2, (size_t)dtype_bytes(g->real));
		if (!data)
			return diag_nomem(g->diag);
		value_set(g->real, data, 0, value[k][0]);
		value_set(g->real, data, 1, value[k][1]);
		struct tensor *v = graph_constant(g, "one-hot", g->real, 1, (int64_t[]){2}, data);
		struct tensor *mask = graph_op(
			g, n->op->name, 2, (struct tensor *[]){n->in[0], v}, n->nattr, n->attr);
		struct tensor *part = OP2(g, "Mul", dy[0], mask);
		sum[k] = part && part->rank == 1 && part->dim[0] == 1
				 ? part
				 : graph_unbroadcast(g, part, &one);
	}
	dx[1] = graph_op(g, "Concat", 2, sum, 1, &axis);
	return g->failed;
}

static enum status onehot_emit(struct emit *e, const struct node *n)
{
	const struct tensor *at = n->in[0], *y = n->out[0];
	const int64_t depth = node_int(n, "depth", 0), inner = inner_of(n);
	return call_kernel(e, &(struct kernel_call){.file = "onehot.h",
				      .function = "onehot",
				      .ntype = 2,
				      .type = {at, y},
				      .turns = y->numel ? y->numel / inner : 0,
				      .work = (double)y->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1),
					      ARG_SIZE(depth), ARG_SIZE(inner))});
}

/* --- EyeLike: ones on a diagonal; a constant --- */

static enum status eye_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	enum dtype t = x->dtype;
	int64_t k = node_int(n, "k", 0), type = node_int(n, "dtype", 0);
	if (type && !data_element_type(type, g->real, &t))
		return node_fail(g, n, NULL, "element type %" PRId64 " is not supported", type);
	if (x->rank != 2)
		return node_fail(g, n, NULL, "needs a matrix, has %d axes", x->rank);
	char *data = graph_known(g, n, x->numel, dtype_bytes(t));
	if (!data)
		return g->failed;
	for (int64_t i = 0; i < x->dim[0]; i++)
		if (k > -x->dim[0] && k < x->dim[1] && i + k >= 0 && i + k < x->dim[1])
			value_set(t, data, i * x->dim[1] + i + k, 1);
	n->out[0] = graph_constant(g, "", t, 2, x->dim, data);
	return n->out[0] ? ST_OK : g->failed;
}

const struct op_def ops_onehot[] = {
	{.name = "OneHot",
		.since = 9,
		.min_in = 2,
		.max_in = 3,
		.known = 6, /* depth, values */
		.infer = onehot_infer,
		.fold = onehot_fold,
		.grad = onehot_grad,
		.cost = data_move_cost,
		.emit_c = onehot_emit,
		.example = EXAMPLES({.in = "a,b:i64<5 =5 2"},
			{.in = "a,b:i64<7 =5 2", .attr = "axis=1"},
			{.in = "a,b:i64<4 =[4] 2", .attr = "axis=0"},
			{.in = "=[0,-1,-5,5,-6,3] =5 2"}, {.in = "a:i64<3 =3 2:i64<9"},
			{.in = "a:i64<3 =3 2:bool"}, {.in = "5 =f3.0 2", .low = 0, .high = 3})},
	{.name = "EyeLike",
		.since = 9,
		.min_in = 1,
		.traits = OP_STOP,
		.infer = eye_infer,
		.example = EXAMPLES({.in = "3,5"}, {.in = "5,3", .attr = "k=-1 dtype=7"},
			{.in = "3,4", .attr = "k=2 dtype=9"}, {.in = "3,4:i64<3", .attr = "k=99"})},
	{.name = NULL},
};
