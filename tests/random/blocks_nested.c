/* Blocks of blocks: residual, dense, in parts, the same layer twice. */
#include <string.h>

#include "tests/random/random.h"

static struct wire block_residual(struct generator *g, struct wire x)
{
	static const char *const names[] = {"Add", "Sum", "Sub", "Mean"};
	return add_two(g, DRAW_NAME(g, names), x, add_branch(g, x));
}

/* Each layer reads all before it. */
static struct wire block_dense(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank);
	for (int64_t layers = draw_range(g, 1, 3); layers > 0; layers--) {
		struct wire y = add_activation(g, x), all = x;
		all.dim[axis] *= 2;
		if (wire_count(&all) > ELEMENTS_MAX / 2)
			break;
		x = add_node(g, "Concat", &all, format(g, "%s,%s", x.name, y.name));
		add_int(g, "axis", axis);
	}
	return x;
}

/* Split, each part through something of its own, together in another order. */
static struct wire block_parts(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank), n = x.dim[axis];
	if (n < 3)
		return x;
	const int64_t first = draw_range(g, 1, n - 1), sizes[] = {first, n - first};
	struct wire a = x, b = x;
	a.dim[axis] = sizes[0];
	b.dim[axis] = sizes[1];
	a = add_node(g, "Split", &a, format(g, "%s,%s", x.name, add_numbers(g, 2, sizes)));
	add_int(g, "axis", axis);
	b = add_output(g, &b);
	a = add_activation(g, a);
	if (draw_chance(g, 0.5))
		b = add_two(g, "Add", b, add_scalar(g, 0.3));
	struct wire y = add_node(g, "Concat", &x, format(g, "%s,%s", b.name, a.name));
	add_int(g, "axis", axis);
	return y;
}

/* A gate: one branch decides how much of another passes. */
static struct wire block_gate(struct generator *g, struct wire x)
{
	struct wire gate = add_same(g, "Sigmoid", add_branch(g, x));
	return add_two(g, "Mul", add_activation(g, x), gate);
}

/* One layer applied over and over with the same weights. */
static struct wire block_shared(struct generator *g, struct wire x)
{
	const int64_t d = x.dim[x.rank - 1];
	if (d > 40)
		return x;
	const struct wire square = SHAPE(d, d);
	struct wire w = add_weight(g, 0, 0.7, &square);
	for (int64_t times = draw_range(g, 2, 4); times > 0; times--) {
		x = add_node(g, "MatMul", &x, format(g, "%s,%s", x.name, w.name));
		x = add_same(g, "Tanh", x);
	}
	return x;
}

/* Down, something there, up again, with a bridge over it all: a U of one step. */
static struct wire block_bridge(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank);
	if (x.dim[axis] % 2 || x.dim[axis] < 4)
		return x;
	int64_t repeats[RANK_MAX];
	struct wire half = x, low;
	half.dim[axis] /= 2;
	const int64_t zero = 0, end = x.dim[axis], two = 2;
	const char *s = add_numbers(g, 1, &zero), *e = add_numbers(g, 1, &end);
	const char *a = add_numbers(g, 1, &axis), *by = add_numbers(g, 1, &two);
	low = add_node(g, "Slice", &half, format(g, "%s,%s,%s,%s,%s", x.name, s, e, a, by));
	low = add_two(g, "Add", low, add_branch(g, low));
	for (int i = 0; i < x.rank; i++)
		repeats[i] = i == axis ? 2 : 1;
	struct wire up = low;
	up.dim[axis] *= 2;
	up = add_node(
		g, "Tile", &up, format(g, "%s,%s", low.name, add_numbers(g, x.rank, repeats)));
	return wire_same_shape(&up, &x) ? add_two(g, "Add", x, up) : up;
}

const struct block_def blocks_nested[] = {
	{block_residual, 1, 4, 12},
	{block_dense, 1, 5, 4},
	{block_parts, 1, 5, 3},
	{block_gate, 1, 4, 3},
	{block_shared, 2, 5, 3},
	{block_bridge, 1, 4, 3},
	{.make = NULL},
};
