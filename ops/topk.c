/* The largest and smallest elements along an axis, and where they are: TopK, ArgMax, ArgMin. Of
 * equal elements the first comes first. NaN counts as the largest number in TopK, as in PyTorch;
 * ArgMax and ArgMin both find it, as NumPy's do. */
#include <inttypes.h>

#include "codegen/call.h"
#include "ops/data.h"

/* x as [outer, n, inner], looked through along n. */
struct sweep {
	int64_t outer, n, inner;
};

static struct sweep sweep_of(const struct node *n)
{
	const struct tensor *x = n->in[0];
	int axis = (int)node_int(n, "axis", 0);
	struct sweep s = {1, x->dim[axis], 1};
	for (int i = 0; i < axis; i++)
		s.outer *= x->dim[i];
	for (int i = axis + 1; i < x->rank; i++)
		s.inner *= x->dim[i];
	return s;
}

/* --- TopK --- */

static enum status topk_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int axis, len;
	const int64_t *k;
	int64_t dim[RANK_MAX];
	TRY(node_axis(g, n, node_int(n, "axis", -1), x->rank, &axis));
	TRY(node_ints(g, n, "k", 1, &len, &k));
	if (len != 1 || k[0] < 0 || k[0] > x->dim[axis])
		return node_fail(
			g, n, NULL, "k must be one number in [0, %" PRId64 "]", x->dim[axis]);
	if (x->dtype == DT_BOOL)
		return node_fail(g, n, NULL, "needs numbers");
	memcpy(dim, x->dim, sizeof dim);
	dim[axis] = k[0];
	const struct attr attr[] = {ATTR_I("axis", axis), ATTR_I("k", k[0]),
		ATTR_I("largest", node_int(n, "largest", 1) != 0)};
	TRY(data_settle(g, n, 1, 3, attr));
	TRY(data_output(g, n, 0, x->dtype, x->rank, dim));
	return n->nout < 2 ? ST_OK : data_output(g, n, 1, DT_I64, x->rank, dim);
}

/* a comes before b, whatever their places. */
static bool before(const struct tensor *x, bool largest, int64_t a, int64_t b)
{
	if (x->dtype == DT_I64)
		return largest ? tensor_int(x, a) > tensor_int(x, b)
			       : tensor_int(x, a) < tensor_int(x, b);
	double u = tensor_real(x, a), v = tensor_real(x, b);
	return largest ? u > v || (isnan(u) && !isnan(v)) : u < v || (isnan(v) && !isnan(u));
}

/* By looking for the next one, k times. */
static enum status topk_fold(struct graph *g, const struct node *n, void *const *out)
{
	const struct tensor *x = n->in[0];
	const struct sweep s = sweep_of(n);
	const bool largest = node_int(n, "largest", 1) != 0;
	const int64_t k = node_int(n, "k", 0);
	const size_t size = (size_t)dtype_bytes(x->dtype);
	bool *taken = ARENA_ARRAY(g->arena, bool, s.n);
	if (!taken)
		return diag_nomem(g->diag);
	for (int64_t line = 0; line < s.outer * s.inner; line++) {
		int64_t from = line / s.inner * s.n * s.inner + line % s.inner;
		int64_t to = line / s.inner * k * s.inner + line % s.inner;
		memset(taken, 0, (size_t)s.n);
		for (int64_t j = 0; j < k; j++) {
			int64_t best = -1;
			for (int64_t i = 0; i < s.n; i++)
				if (!taken[i] && (best < 0 || before(x, largest, from + i * s.inner,
								      from + best * s.inner)))
					best = i;
			taken[best] = true;
			memcpy((char *)out[0] + (size_t)(to + j * s.inner) * size,
				(const char *)x->data + (size_t)(from + best * s.inner) * size,
				size);
			if (n->nout > 1)
				((int64_t *)out[1])[to + j * s.inner] = best;
		}
	}
	return ST_OK;
}

static enum status topk_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct tensor *x = n->in[0];
	const struct attr shape = data_ints(g, "shape", x->rank, x->dim);
	const struct attr axis = ATTR_I("axis", node_int(n, "axis", 0));
	if (!want[0] || !dy[0])
		return ST_OK;
	struct tensor *in[] = {graph_op(g, "stint.Zeros", 0, NULL, 1, &shape), n->out[1], dy[0]};
	dx[0] = graph_op(g, "ScatterElements", 3, in, 1, &axis);
	return g->failed;
}

/* The places are asked for always: the gradient needs them. */
static enum status topk_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct node *m = graph_op_node(g, n->op->name, n->nin, in, n->nattr, n->attr, NULL);
	for (int k = 0; m && k < n->nout; k++)
		out[k] = m->out[k];
	return g->failed;
}

/* Each element is compared with the last of those found; a few pass on into the heap. */
static struct op_cost topk_cost(const struct node *n)
{
	struct op_cost c = {6 * (double)n->in[0]->numel, (double)tensor_bytes(n->in[0])};
	c.flops += 20 * (double)n->out[0]->numel * log2(2 + (double)node_int(n, "k", 0));
	for (int k = 0; k < n->nout; k++)
		c.bytes += n->out[k] ? (double)tensor_bytes(n->out[k]) : 0;
	return c;
}

static enum status topk_emit(struct emit *e, const struct node *n)
{
	const struct sweep s = sweep_of(n);
	return call_kernel(e, &(struct kernel_call){.file = "topk.h",
				      .function = "topk",
				      .ntype = 1,
				      .type = {n->in[0]},
				      .turns = n->out[0]->numel ? s.outer * s.inner : 0,
				      .work = topk_cost(n).flops,
				      .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(0), ARG_SIZE(s.n),
					      ARG_SIZE(node_int(n, "k", 0)), ARG_SIZE(s.inner),
					      ARG_INT(node_int(n, "largest", 1) != 0))});
}

/* --- ArgMax, ArgMin --- */

enum { ARG_MIN, ARG_MAX }; /* variants */

static bool is_max(const struct node *n)
{
	return n->op->variant == ARG_MAX;
}

static enum status arg_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int axis, rank = 0;
	int64_t dim[RANK_MAX];
	bool keep = node_int(n, "keepdims", 1) != 0;
	TRY(node_axis(g, n, node_int(n, "axis", 0), x->rank, &axis));
	if (x->dim[axis] == 0 && x->numel == 0)
		return node_fail(g, n, NULL, "axis %d is empty", axis);
	for (int i = 0; i < x->rank; i++)
		if (i != axis || keep)
			dim[rank++] = i == axis ? 1 : x->dim[i];
	const struct attr attr[] = {ATTR_I("axis", axis), ATTR_I("keepdims", keep),
		ATTR_I("select_last_index", node_int(n, "select_last_index", 0) != 0)};
	TRY(data_settle(g, n, 1, 3, attr));
	return data_output(g, n, 0, DT_I64, rank, dim);
}

static bool takes_over(const struct node *n, int64_t a, int64_t b)
{
	const struct tensor *x = n->in[0];
	const bool last = node_int(n, "select_last_index", 0) != 0;
	if (x->dtype == DT_I64) {
		int64_t u = tensor_int(x, a), v = tensor_int(x, b);
		return (is_max(n) ? u > v : u < v) || (last && u == v);
	}
	double u = tensor_real(x, a), v = tensor_real(x, b);
	return (is_max(n) ? u > v : u < v) || (isnan(u) && (last || !isnan(v))) || (last && u == v);
}

static enum status arg_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct sweep s = sweep_of(n);
	for (int64_t line = 0; line < s.outer * s.inner; line++) {
		int64_t from = line / s.inner * s.n * s.inner + line % s.inner, best = 0;
		for (int64_t i = 1; i < s.n; i++)
			if (takes_over(n, from + i * s.inner, from + best * s.inner))
				best = i;
		((int64_t *)out[0])[line] = best;
	}
	return ST_OK;
}

static enum status arg_emit(struct emit *e, const struct node *n)
{
	const struct sweep s = sweep_of(n);
	return call_kernel(e, &(struct kernel_call){.file = "argmost.h",
				      .function = "argmost",
				      .ntype = 1,
				      .type = {n->in[0]},
				      .turns = n->out[0]->numel,
				      .work = 2 * (double)n->in[0]->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(s.n),
					      ARG_SIZE(s.inner), ARG_INT(is_max(n)),
					      ARG_INT(node_int(n, "select_last_index", 0) != 0))});
}

#define TOPK(first, end, ...)                                                                      \
	{                                                                                          \
		.name = "TopK", .apart = APART_BESIDE, .since = first, .until = end, .min_in = 1,  \
		.max_in = 2, .min_out = 2, .max_out = 2, .infer = topk_infer, .fold = topk_fold,   \
		.lower = topk_lower, .grad = topk_grad, .cost = topk_cost, .emit_c = topk_emit,    \
		.example = EXAMPLES(__VA_ARGS__)                                                   \
	}
#define ARG(onnx, which)                                                                           \
	{                                                                                          \
		.name = onnx, .apart = APART_BESIDE, .variant = which, .since = 1, .min_in = 1,    \
		.traits = OP_STOP, .infer = arg_infer, .fold = arg_fold, .emit_c = arg_emit,       \
		.example = EXAMPLES({.in = "a,b,c"}, {.in = "a,b,c", .attr = "axis=-1"},           \
			{.in = "a,b,c", .attr = "axis=1 keepdims=0"}, {.in = "7"},                 \
			{.in = "4,9:i64<3", .attr = "axis=1 select_last_index=1"},                 \
			{.in = "4,9:i64<3", .attr = "axis=1"},                                     \
			{.in = "4,9:bool", .attr = "axis=1 keepdims=0"},                           \
			{.in = "3,5,2", .attr = "axis=1 select_last_index=1"})                     \
	}

const struct op_def ops_topk[] = {
	TOPK(10, 0, {.in = "a,B =3"}, {.in = "a,B,c =2", .attr = "axis=1"},
		{.in = "a,B =4", .attr = "largest=0"}, {.in = "7 =[7]", .attr = "sorted=0"},
		{.in = "3,40 =17"}, {.in = "3,40,2 =9", .attr = "axis=-2 largest=0 sorted=0"},
		{.in = "3,9:i64<4 =5"}, {.in = "3,9:i64<4 =5", .attr = "largest=0"},
		{.in = "3,4 =0"}, {.in = "3,4 =1", .attr = "axis=0"}),
	TOPK(1, 10, {.in = "a,B", .attr = "k=3"}, {.in = "2,5,3", .attr = "k=2 axis=1"}),
	ARG("ArgMax", ARG_MAX),
	ARG("ArgMin", ARG_MIN),
	{.name = NULL},
};
