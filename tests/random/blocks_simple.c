/* Blocks for any shape: element-wise, reductions, shapes. */
#include <string.h>

#include "tests/random/random.h"

struct wire add_activation(struct generator *g, struct wire x)
{
	/* those of later opsets last */
	static const char *const names[] = {"Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Sigmoid",
		"Tanh", "Softplus", "Softsign", "HardSigmoid", "Sin", "Cos", "Erf", "Abs", "Atan",
		"Neg", "HardSwish", "Mish", "Gelu"};
	int64_t n = sizeof names / sizeof *names;
	n -= g->opset < 14 ? 3 : g->opset < 18 ? 2 : g->opset < 20 ? 1 : 0;
	return add_same(g, names[draw_below(g, n)], x);
}

static struct wire block_activation(struct generator *g, struct wire x)
{
	switch (draw_below(g, 6)) {
	case 0: /* written out */
		return add_two(g, "Mul", x, add_same(g, "Sigmoid", x));
	case 1: {
		const struct wire slope = {.rank = 0};
		struct wire s = add_weight(g, 0.2, 0.1, &slope);
		return add_two(g, "PRelu", x, s);
	}
	case 2: {
		struct wire low = add_scalar(g, -0.8), high = add_scalar(g, 1.1);
		return add_node(g, "Clip", &x, format(g, "%s,%s,%s", x.name, low.name, high.name));
	}
	default:
		return add_activation(g, x);
	}
}

struct wire add_tamed(struct generator *g, struct wire x)
{
	if (draw_chance(g, 0.4) && g->opset >= 17 && x.rank && x.dim[x.rank - 1] >= 4) {
		const struct wire last = SHAPE(x.dim[x.rank - 1]);
		struct wire scale = add_gain(g, 0.1, &last), bias;
		bias = add_bias(g, 0.1, &last);
		struct wire y = add_node(g, "LayerNormalization", &x,
			format(g, "%s,%s,%s", x.name, scale.name, bias.name));
		add_int(g, "axis", draw_chance(g, 0.5) ? -1 : x.rank - 1);
		add_float(g, "epsilon", draw_chance(g, 0.5) ? 1e-2 : 1e-5);
		return y;
	}
	return add_same(g, draw_chance(g, 0.5) ? "Tanh" : "Softsign", x);
}

/* A shape that broadcasts to x's. */
static struct wire broadcast_shape(struct generator *g, const struct wire *x)
{
	struct wire s = {.rank = (int)draw_range(g, 0, x->rank)};
	for (int i = 0; i < s.rank; i++)
		s.dim[i] = draw_chance(g, 0.6) ? x->dim[x->rank - s.rank + i] : 1;
	return s;
}

static struct wire block_affine(struct generator *g, struct wire x)
{
	struct wire s = broadcast_shape(g, &x), b = broadcast_shape(g, &x);
	x = add_two(g, draw_chance(g, 0.8) ? "Mul" : "Div", x, add_gain(g, 0.1, &s));
	return add_two(g, draw_chance(g, 0.5) ? "Add" : "Sub", x, add_bias(g, 0.5, &b));
}

/* Functions that are defined for some numbers only, of numbers that suit them. */
static struct wire block_function(struct generator *g, struct wire x)
{
	struct wire square = draw_chance(g, 0.5) ? add_two(g, "Mul", x, x)
						 : add_two(g, "Pow", x, add_scalar(g, 2));
	struct wire y = add_two(g, "Add", square, add_scalar(g, 0.5));
	switch (draw_below(g, 6)) {
	case 0:
		return add_same(g, "Sqrt", y);
	case 1:
		return add_same(g, "Log", y);
	case 2:
		return add_same(g, "Reciprocal", y);
	case 3:
		return add_same(g, "Exp", add_same(g, "Neg", y));
	case 4:
		return add_two(g, "Pow", y, add_scalar(g, -0.7));
	default:
		return add_two(g, "Div", x, add_same(g, "Sqrt", y));
	}
}

/* Two values of one shape. */
static struct wire block_two(struct generator *g, struct wire x)
{
	static const char *const names[] = {"Max", "Min", "Mean", "Sum", "Mul", "Sub"};
	struct wire a = add_activation(g, x), b;
	if (draw_chance(g, 0.3))
		b = add_input(g, &x);
	else {
		struct wire w = broadcast_shape(g, &x);
		b = add_two(g, "Mul", x, add_weight(g, 0, 1, &w));
	}
	if (draw_chance(g, 0.3)) { /* chosen by data, not by what is differentiated */
		struct wire data = add_input(g, &x);
		struct wire mask = add_two(g, draw_chance(g, 0.5) ? "Greater" : "LessOrEqual", data,
			add_scalar(g, 0.2));
		return add_node(g, "Where", &x, format(g, "%s,%s,%s", mask.name, a.name, b.name));
	}
	return add_two(g, DRAW_NAME(g, names), a, b);
}

static struct wire block_reduce(struct generator *g, struct wire x)
{
	static const char *const names[] = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin",
		"ReduceL2", "ReduceL1", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd"};
	int64_t axes[RANK_MAX];
	int n = 0;
	for (int i = 0; i < x.rank; i++)
		if (draw_chance(g, 0.5))
			axes[n++] = i;
	if (!n)
		axes[n++] = draw_below(g, x.rank);
	struct wire r = add_reduce(g, DRAW_NAME(g, names), x, n, axes);
	r = add_same(g, draw_chance(g, 0.5) ? "Tanh" : "Softsign", r);
	return add_two(g, draw_chance(g, 0.5) ? "Sub" : "Mul", x, r);
}

static struct wire block_softmax(struct generator *g, struct wire x)
{
	struct wire y = add_same(g, draw_chance(g, 0.6) ? "Softmax" : "LogSoftmax", x);
	add_int(g, "axis", draw_range(g, -x.rank, x.rank - 1));
	return draw_chance(g, 0.5) ? add_two(g, "Mul", x, y) : y;
}

static struct wire block_cumsum(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank);
	const char *a = format(g, "n%d", g->ntensor++);
	model_number(g->t, a, axis);
	struct wire y = add_node(g, "CumSum", &x, format(g, "%s,%s", x.name, a));
	add_int(g, "exclusive", draw_below(g, 2));
	add_int(g, "reverse", draw_below(g, 2));
	return add_tamed(g, y);
}

static struct wire block_transpose(struct generator *g, struct wire x)
{
	int64_t perm[RANK_MAX];
	struct wire y = x;
	for (int i = 0; i < x.rank; i++)
		perm[i] = i;
	for (int i = x.rank - 1; i > 0; i--) {
		int64_t k = draw_below(g, i + 1), old = perm[i];
		perm[i] = perm[k];
		perm[k] = old;
	}
	for (int i = 0; i < x.rank; i++)
		y.dim[i] = x.dim[perm[i]];
	y = add_node(g, "Transpose", &y, x.name);
	add_ints(g, "perm", x.rank, perm);
	return y;
}

/* The same elements in another shape of rank 2 to 4. */
static struct wire block_reshape(struct generator *g, struct wire x)
{
	struct wire y = {.rank = (int)draw_range(g, 2, 4)};
	int64_t left = wire_count(&x);
	for (int i = 0; i < y.rank - 1; i++) {
		int64_t d = draw_range(g, 2, 9);
		while (left % d)
			d--;
		y.dim[i] = d;
		left /= d;
	}
	y.dim[y.rank - 1] = left;
	return add_reshape(g, x, &y);
}

static struct wire block_axes(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank + 1);
	struct wire y = x;
	for (int i = y.rank++; i > axis; i--)
		y.dim[i] = y.dim[i - 1];
	y.dim[axis] = 1;
	const char *axes = add_numbers(g, 1, &axis);
	y = add_node(g, "Unsqueeze", &y, format(g, "%s,%s", x.name, axes));
	y = add_activation(g, y);
	if (draw_chance(g, 0.5) && y.rank <= 4)
		return y;
	return add_node(g, "Squeeze", &x, format(g, "%s,%s", y.name, axes));
}

static struct wire block_expand(struct generator *g, struct wire x)
{
	struct wire y = x;
	const int axis = (int)draw_below(g, x.rank);
	const int64_t times = draw_range(g, 2, 3);
	int64_t repeats[RANK_MAX];
	if (wire_count(&x) * times > ELEMENTS_MAX)
		return x;
	for (int i = 0; i < x.rank; i++)
		repeats[i] = i == axis ? times : 1;
	y.dim[axis] *= times;
	bool tile = x.dim[axis] != 1 || draw_chance(g, 0.5);
	const char *n = add_numbers(g, x.rank, tile ? repeats : y.dim);
	return add_node(g, tile ? "Tile" : "Expand", &y, format(g, "%s,%s", x.name, n));
}

static struct wire block_dropout(struct generator *g, struct wire x)
{
	const bool on = true;
	const char *training = format(g, "n%d", g->ntensor++);
	model_truth(g->t, training, on);
	struct wire ratio = add_scalar(g, 0.3);
	return add_node(g, "Dropout", &x, format(g, "%s,%s,%s", x.name, ratio.name, training));
}

const struct block_def blocks_simple[] = {
	{block_activation, 0, 8, 8},
	{block_affine, 1, 8, 5},
	{block_function, 0, 8, 4},
	{block_two, 1, 8, 5},
	{block_reduce, 1, 8, 5},
	{block_softmax, 1, 8, 3},
	{block_cumsum, 1, 8, 1},
	{block_transpose, 2, 5, 3},
	{block_reshape, 1, 8, 3},
	{block_axes, 1, 4, 2},
	{block_expand, 1, 4, 2},
	{block_dropout, 1, 5, 2},
	{.make = NULL},
};
