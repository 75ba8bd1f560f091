/* Blocks whose weights are read in uncommon ways: a block applied twice, values that are learned
 * and come from no data. */
#include <math.h>

#include "tests/random/random.h"

/* A block drawn, and the same one of the same weights once more: on another value, or on its own
 * result. */
static struct wire block_twice(struct generator *g, struct wire x)
{
	static const char *const names[] = {"Add", "Sub", "Mul"};
	if (g->tape.mode != TAPE_OFF) /* one tape */
		return x;
	const uint64_t start = g->state;
	g->tape = (struct tape){.mode = TAPE_RECORDS};
	struct wire y = add_branch(g, x);
	g->tape.mode = TAPE_OFF;
	struct wire other = wire_same_shape(&y, &x) && draw_chance(g, 0.5) ? y
									   : add_activation(g, x);
	const uint64_t end = g->state;
	g->state = start;
	g->tape.mode = TAPE_PLAYS;
	struct wire z = add_branch(g, other);
	g->tape.mode = TAPE_OFF;
	g->state = end;
	return other.name == y.name ? z : add_tamed(g, add_two(g, DRAW_NAME(g, names), y, z));
}

/* Attention pooling: learned queries [n, m] look at data [b, s, d]; [b, n, m]. */
static struct wire block_queries(struct generator *g, struct wire x)
{
	const int64_t b = x.dim[0], s = x.dim[1], n = draw_range(g, 1, 4), m = draw_range(g, 2, 8);
	const struct wire queries = SHAPE(n, m), turned = SHAPE(b, m, s), scores = SHAPE(b, n, s);
	const struct wire result = SHAPE(b, n, m), row = SHAPE(b, m);
	const int64_t perm[] = {0, 2, 1}, one = 1;
	if (x.dim[2] > 100 || b * s * m > ELEMENTS_MAX)
		return x;
	struct wire q = add_weight(g, 0, 1, &queries);
	if (draw_chance(g, 0.6))
		q = add_projection(g, q, m);
	struct wire k = add_projection(g, x, m),
		    v = draw_chance(g, 0.7) ? add_projection(g, x, m) : k;
	k = add_node(g, "Transpose", &turned, k.name);
	add_ints(g, "perm", 3, perm);
	struct wire p = add_node(g, "MatMul", &scores, format(g, "%s,%s", q.name, k.name));
	p = add_same(g, "Softmax", add_two(g, "Mul", p, add_scalar(g, 1 / sqrt((double)m))));
	add_int(g, "axis", -1);
	struct wire y = add_node(g, "MatMul", &result, format(g, "%s,%s", p.name, v.name));
	if (draw_chance(g, 0.3))
		y = add_two(g, "Add", y, q);
	if (n > 1 || draw_chance(g, 0.5))
		return y;
	return add_node(g, "Squeeze", &row, format(g, "%s,%s", y.name, add_numbers(g, 1, &one)));
}

const struct block_def blocks_shared[] = {
	{block_twice, 1, 4, 6},
	{block_queries, 3, 3, 5},
	{.make = NULL},
};
