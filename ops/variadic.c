/* Max, Min, Sum, Mean of any number of inputs: one operation of two inputs after the other, from
 * the left. */
#include "ops/data.h"

/* NaN wins over any number. */
POINTWISE(maximum, a > b || a != a ? a : b)
POINTWISE_INT(maximum, a > b ? a : b)
POINTWISE(minimum, a < b || a != a ? a : b)
POINTWISE_INT(minimum, a < b ? a : b)
/* a: dy, b: the input, c: the other one. As torch.maximum, equal inputs get half each. */
POINTWISE(maximum_grad, b < c ? 0 : b == c ? a * R(0.5) : a)
POINTWISE(minimum_grad, b > c ? 0 : b == c ? a * R(0.5) : a)

static enum status pair_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	bool max = node_is(n, "stint.Maximum");
	for (int i = 0; i < 2; i++)
		if (want[i])
			dx[i] = graph_unbroadcast(g,
				OP3(g, max ? "stint.MaximumGrad" : "stint.MinimumGrad", dy[0],
					n->in[i], n->in[1 - i]),
				n->in[i]);
	return g->failed;
}

static enum status variadic_infer(struct graph *g, struct node *n)
{
	enum dtype type = n->in[0]->dtype;
	int rank = 0;
	int64_t dim[RANK_MAX] = {0};
	for (int i = 0; i < n->nin; i++) {
		const struct tensor *x = n->in[i];
		if (!x)
			return node_fail(g, n, NULL, "input %d is missing", i);
		if (x->dtype != type || type == DT_BOOL)
			return node_fail(g, n, NULL, "its inputs must be numbers of one type");
		TRY(node_broadcast(g, n, rank, dim, x->rank, x->dim, &rank, dim));
	}
	return data_output(g, n, 0, type, rank, dim);
}

static enum status variadic_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const char *name = n->op->name;
	const char *op = !strcmp(name, "Max")   ? "stint.Maximum"
			 : !strcmp(name, "Min") ? "stint.Minimum"
						: op_by_role(g->table, ROLE_ADD)->name;
	(void)o;
	out[0] = in[0];
	for (int i = 1; i < n->nin; i++)
		out[0] = OP2(g, op, out[0], in[i]);
	if (!strcmp(name, "Mean") && n->nin > 1)
		out[0] = OP2(g, "Div", out[0], graph_scalar(g, n->nin));
	return g->failed;
}

#define VARIADIC(onnx, first, ...)                                                                 \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = 1, .max_in = -1, .infer = variadic_infer,  \
		.fold = data_fold_lowered, .lower = variadic_lower, __VA_ARGS__                    \
	}
#define PAIR(ours, id)                                                                             \
	{                                                                                          \
		.name = ours, .min_in = 2, .traits = OP_POINTWISE, .expr = id##_expr,              \
		.ref = id##_ref, INT(id), .grad = pair_rule                                        \
	}
#define PAIR_GRAD(ours, id)                                                                        \
	{                                                                                          \
		.name = ours, .min_in = 3, .traits = OP_POINTWISE, .expr = id##_expr,              \
		.ref = id##_ref                                                                    \
	}
#define REALS                                                                                      \
	{.in = "3,40 3,40"}, {.in = "a,b,C b,1 () a,1,C"}, {.in = "a,B"},                          \
	{                                                                                          \
		.in = "3,40 40 =f0.1"                                                              \
	}
#define NUMBERS                                                                                    \
	EXAMPLES(REALS, {.in = "7 7", .low = 0.5, .high = 0.5},                                    \
		{.in = "3,40:i64<9 40:i64<9 3,1:i64<9"}, {.in = "=[-5,3,2] 2,3:i64<5"})

const struct op_def ops_variadic[] = {
	VARIADIC("Max", 6, .example = NUMBERS),
	VARIADIC("Min", 6, .example = NUMBERS),
	VARIADIC("Sum", 6, .example = EXAMPLES(REALS)),
	VARIADIC("Mean", 6, .example = EXAMPLES(REALS)),
	PAIR("stint.Maximum", maximum),
	PAIR("stint.Minimum", minimum),
	PAIR_GRAD("stint.MaximumGrad", maximum_grad),
	PAIR_GRAD("stint.MinimumGrad", minimum_grad),
	{0},
};
