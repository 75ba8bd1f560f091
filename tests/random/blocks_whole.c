/* Blocks of whole numbers, which no gradient passes and which say where it goes, and blocks of rank
 * 0. */
#include <math.h>

#include "tests/random/random.h"

/* --- Whole numbers --- */

static struct wire whole_number(struct generator *g, int64_t low, int64_t high)
{
	struct wire v = {.name = format(g, "n%d", g->ntensor++), .rank = 0};
	model_number(g->t, v.name, draw_range(g, low, high));
	return v;
}

/* Bits, counts, places of the largest: [x's axes but the last]. */
static struct wire first_whole(struct generator *g, struct wire x)
{
	struct wire rest = {.rank = x.rank - 1};
	for (int i = 0; i < rest.rank; i++)
		rest.dim[i] = x.dim[i];
	struct wire data = draw_chance(g, 0.7) ? add_input(g, &x) : x, y;
	switch (draw_below(g, 4)) {
	case 0:
		rest.name = add_indices(g, &rest, draw_range(g, 1, 30), true);
		return rest;
	case 1:
		y = add_node(g, draw_chance(g, 0.5) ? "ArgMax" : "ArgMin", &rest, data.name);
		add_int(g, "axis", -1);
		add_int(g, "keepdims", 0);
		return y;
	case 2: { /* how many are above something */
		const int64_t last = x.rank - 1;
		y = add_two(g, "Greater", data, add_scalar(g, 0.1));
		y = add_same(g, "Cast", y);
		add_int(g, "to", TENSOR_TYPE(INT64));
		y = add_node(g, "ReduceSum", &rest,
			format(g, "%s,%s", y.name, add_numbers(g, 1, &last)));
		add_int(g, "keepdims", 0);
		return y;
	}
	default: { /* rounded towards zero, of one column */
		struct wire first = whole_number(g, 0, 0);
		y = add_node(g, "Gather", &rest, format(g, "%s,%s", data.name, first.name));
		add_int(g, "axis", -1);
		y = add_two(g, "Mul", y, add_scalar(g, 4));
		y = add_same(g, "Cast", y);
		add_int(g, "to", TENSOR_TYPE(INT64));
		return y;
	}
	}
}

/* Times a matrix of whole numbers. */
static struct wire whole_product(struct generator *g, struct wire n)
{
	const int64_t d = n.dim[n.rank - 1];
	const struct wire square = SHAPE(d, d);
	const char *w = add_indices(g, &square, 5, draw_chance(g, 0.3));
	return add_node(g, "MatMul", &n, format(g, "%s,%s", n.name, w));
}

/* One step of arithmetic. */
static struct wire next_whole(struct generator *g, struct wire n)
{
	static const char *const binary[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"};
	static const char *const compare[] = {"Equal", "Less", "GreaterOrEqual"};
	switch (draw_below(g, 7)) {
	case 0:
		return add_same(g, draw_chance(g, 0.5) ? "Neg" : "Abs", n);
	case 4:
		return n.rank >= 1 && n.dim[n.rank - 1] <= 20 ? whole_product(g, n) : n;
	case 1: {
		struct wire at = whole_number(g, 0, 3), other = whole_number(g, -3, 9);
		struct wire yes = add_two(g, DRAW_NAME(g, compare), n, at);
		return add_node(
			g, "Where", &n, format(g, "%s,%s,%s", yes.name, n.name, other.name));
	}
	case 2: {
		struct wire y = add_same(g, "Cast", n);
		add_int(g, "to", TENSOR_TYPE(FLOAT));
		y = add_same(g, "Floor", add_two(g, "Mul", y, add_scalar(g, 0.5)));
		y = add_same(g, "Cast", y);
		add_int(g, "to", TENSOR_TYPE(INT64));
		return y;
	}
	case 3: {
		struct wire y = add_two(g, "Mod", n, whole_number(g, 2, 7));
		add_int(g, "fmod", draw_below(g, 2));
		return y;
	}
	default:
		return add_two(g, DRAW_NAME(g, binary), n, whole_number(g, 1, 5));
	}
}

/* A table read at places that are computed. */
static struct wire block_whole(struct generator *g, struct wire x)
{
	const int64_t rows = draw_range(g, 1, 9), d = x.dim[x.rank - 1];
	const struct wire table = SHAPE(rows, d);
	if (wire_count(&table) > ELEMENTS_MAX)
		return x;
	struct wire n = first_whole(g, x);
	for (int64_t steps = draw_below(g, 4); steps > 0; steps--)
		n = next_whole(g, n);
	n = add_two(g, "Mod", n, whole_number(g, rows, rows)); /* of the divisor's sign */
	struct wire w = add_weight(g, 0, 1, &table);
	if (draw_chance(g, 0.3))
		w = add_activation(g, w);
	struct wire y = add_node(g, "Gather", &x, format(g, "%s,%s", w.name, n.name));
	return add_two(g, draw_chance(g, 0.6) ? "Add" : "Mul", x, y);
}

/* Whole numbers among real ones. */
static struct wire block_counted(struct generator *g, struct wire x)
{
	const int64_t last = x.rank - 1;
	struct wire n = first_whole(g, x), y = x;
	for (int64_t steps = draw_below(g, 3); steps > 0; steps--)
		n = next_whole(g, n);
	n = add_same(g, "Cast", n);
	add_int(g, "to", TENSOR_TYPE(FLOAT));
	n = add_same(g, "Tanh", add_two(g, "Mul", n, add_scalar(g, 0.1)));
	y.dim[last] = 1;
	y = add_node(g, "Unsqueeze", &y, format(g, "%s,%s", n.name, add_numbers(g, 1, &last)));
	return add_two(g, draw_chance(g, 0.5) ? "Add" : "Mul", x, y);
}

/* --- Rank 0 --- */

/* All of x, as one number. */
static struct wire one_number(struct generator *g, struct wire x)
{
	static const char *const names[] = {
		"ReduceMean", "ReduceMax", "ReduceMin", "ReduceLogSumExp"};
	const struct wire scalar = {.rank = 0};
	struct wire y;
	switch (draw_below(g, 4)) {
	case 0: /* an element, at a place that may be data */
		while (x.rank > 0) {
			struct wire next = {.rank = x.rank - 1};
			for (int i = 0; i < next.rank; i++)
				next.dim[i] = x.dim[i + 1];
			const char *at = add_indices(g, &scalar, x.dim[0], draw_chance(g, 0.5));
			x = add_node(g, "Gather", &next, format(g, "%s,%s", x.name, at));
		}
		return x;
	case 1:
		return add_input(g, &scalar);
	case 2:
		return add_weight(g, 0, 1, &scalar);
	default:
		y = add_node(g, DRAW_NAME(g, names), &scalar, x.name);
		add_int(g, "keepdims", 0);
		return y;
	}
}

/* Through a few things that are one number too, and back to all of x. */
static struct wire block_number(struct generator *g, struct wire x)
{
	static const char *const names[] = {"Add", "Mul", "Sub", "Max", "Min"};
	const struct wire scalar = {.rank = 0}, one = SHAPE(1);
	struct wire s = one_number(g, x);
	for (int64_t steps = draw_below(g, 4); steps > 0; steps--)
		switch (draw_below(g, 4)) {
		case 0:
			s = add_two(g, DRAW_NAME(g, names), s, add_weight(g, 0, 1, &scalar));
			break;
		case 1:
			s = add_two(g, "Mul", s, add_gain(g, 0.2, &scalar));
			break;
		case 2:
			s = add_reshape(g, add_activation(g, add_reshape(g, s, &one)), &scalar);
			break;
		default:
			s = add_activation(g, s);
		}
	s = add_same(g, draw_chance(g, 0.5) ? "Tanh" : "Sigmoid", s);
	return add_two(g, draw_chance(g, 0.5) ? "Add" : "Mul", x, s);
}

const struct block_def blocks_whole[] = {
	{block_whole, 2, 4, 4},
	{block_counted, 2, 4, 2},
	{block_number, 1, 4, 4},
	{.make = NULL},
};
