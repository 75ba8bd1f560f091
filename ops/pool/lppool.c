/* LpPool and GlobalLpPool: the p-th root of the sum of |x|^p. */
#include "ops/data.h"
#include "ops/window_op.h"

/* LpPool 1 had a real p. */
static const struct op_option lp_option[] = {{.name = "p", .value = 2}, {.name = NULL}};

POINTWISE_OPT1(term, p, POW(FABS(a), p))
POINTWISE_OPT1(term_grad, p, a == 0 ? 0 : (a > 0 ? b : -b) * p * POW(FABS(a), p - 1))
POINTWISE_OPT1(root, p, POW(a, 1 / p))
/* of a sum of nothing but zeros: 0, not the infinite slope of the root */
POINTWISE_OPT1(root_grad, p, a <= 0 ? 0 : b * POW(a, 1 / p - 1) / p)

static struct tensor *with_p(
	struct graph *g, const char *op, struct tensor *a, struct tensor *b, double p)
{
	const struct attr attr = ATTR_F("p", p);
	return graph_op(g, op, b ? 2 : 1, (struct tensor *[]){a, b}, 1, &attr);
}

static enum status term_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = with_p(g, "stint.LpTermGrad", n->in[0], dy[0], node_option(n, "p"));
	return g->failed;
}

static enum status root_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = with_p(g, "stint.LpRootGrad", n->in[0], dy[0], node_option(n, "p"));
	return g->failed;
}

/* The attribute, an int or (opset 1) a real. */
static double power_of(const struct node *n)
{
	const struct attr *a = node_attr(n, "p");
	return !a ? 2 : a->kind == ATTR_INT ? (double)a->i : a->f;
}

static enum status pool_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const double p = power_of(n);
	struct tensor *sum = with_p(g, "stint.LpTerm", in[0], NULL, p);
	(void)o;
	if (!sum)
		return g->failed;
	struct node *m = graph_op_node(g, "stint.SumPool", 1, &sum, n->nattr, n->attr, NULL);
	out[0] = m ? with_p(g, "stint.LpRoot", m->out[0], NULL, p) : NULL;
	return g->failed;
}

static enum status global_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const double p = power_of(n);
	int64_t axes[RANK_MAX];
	(void)o;
	for (int i = 2; i < in[0]->rank; i++)
		axes[i - 2] = i;
	const struct attr attr[] = {
		data_ints(g, "axes", in[0]->rank - 2, axes), ATTR_I("keepdims", 1)};
	struct tensor *sum = with_p(g, "stint.LpTerm", in[0], NULL, p);
	sum = sum ? graph_op(g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, &sum, 2, attr)
		  : NULL;
	out[0] = sum ? with_p(g, "stint.LpRoot", sum, NULL, p) : NULL;
	return g->failed;
}

static enum status check_p(struct graph *g, const struct node *n)
{
	if (!(power_of(n) > 0) || !dtype_is_real(n->in[0]->dtype))
		return node_fail(g, n, NULL, "needs real data and a positive p");
	return ST_OK;
}

static enum status pool_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	struct window w;
	TRY(check_p(g, n));
	TRY(window_read(g, n, NULL, &w));
	n->out[0] = window_output(g, &w, x->dim[0], x->dim[1]);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static enum status global_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t dim[RANK_MAX];
	TRY(check_p(g, n));
	if (x->rank < 3)
		return node_fail(g, n, NULL, "needs data with spatial axes");
	for (int i = 0; i < x->rank; i++)
		dim[i] = i < 2 ? x->dim[i] : 1;
	return data_output(g, n, 0, g->real, x->rank, dim);
}

static const struct op_example pool_examples[] = {
	{.in = "a,b,C,D", .attr = "kernel_shape=2,3 strides=2,1", .low = 0.2, .high = 1},
	{.in = "2,2,5,6", .attr = "kernel_shape=3,3 pads=1,1,1,0 p=3", .low = -1, .high = -0.2},
	{.in = "2,2,5,6", .attr = "kernel_shape=2,2 p=1 dilations=2,2", .low = 0.1, .high = 1},
	{.in = "2,2,5,6",
		.attr = "kernel_shape=2,2 strides=2,2 auto_pad=SAME_UPPER",
		.low = 0.1,
		.high = 1},
	{.in = "2,2,5,6",
		.attr = "kernel_shape=2,2 strides=2,2 auto_pad=SAME_LOWER",
		.low = 0.1,
		.high = 1},
	{.in = "2,2,6,7",
		.attr = "kernel_shape=3,2 strides=2,2 ceil_mode=1",
		.low = 0.1,
		.high = 1},
	{.in = "2,2,9", .attr = "kernel_shape=3", .low = 0.1, .high = 1},
	{.in = "1,2,3,4,5", .attr = "kernel_shape=2,2,3 p=4", .low = 0.2, .high = 1},
	{0},
};

static const struct op_example global_examples[] = {
	{.in = "a,b,c,d", .low = 0.1, .high = 1},
	{.in = "2,3,9", .attr = "p=3", .low = -1, .high = -0.1},
	{.in = "2,2,2,3,4", .attr = "p=1", .low = 0.1, .high = 1},
	{0},
};

#define LP(nm, id, count)                                                                          \
	.name = (nm), .min_in = (count), .max_in = (count), .traits = OP_POINTWISE,                \
	.option = lp_option, .expr = id##_expr, .ref = id##_ref

const struct op_def ops_lppool[] = {
	{.name = "LpPool",
		.apart = APART_FIRST,
		.since = 1,
		.min_in = 1,
		.infer = pool_infer,
		.lower = pool_lower,
		.example = pool_examples},
	{.name = "GlobalLpPool",
		.apart = APART_FIRST,
		.since = 1,
		.min_in = 1,
		.infer = global_infer,
		.lower = global_lower,
		.example = global_examples},
	{LP("stint.LpTerm", term, 1), .grad = term_rule},
	{LP("stint.LpRoot", root, 1), .grad = root_rule},
	{LP("stint.LpTermGrad", term_grad, 2)},
	{LP("stint.LpRootGrad", root_grad, 2)},
	{.name = NULL},
};
