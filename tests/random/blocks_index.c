/* Blocks that pick and put: slices, pads, gathers, scatters. */
#include <string.h>

#include "tests/random/random.h"

static struct wire block_slice(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank), n = x.dim[axis];
	if (n < 4)
		return x;
	struct wire y = x;
	int64_t start = draw_range(g, 0, 1), end = n - draw_range(g, 0, 1), step = 1;
	if (draw_chance(g, 0.3))
		step = 2;
	y.dim[axis] = (end - start + step - 1) / step;
	if (draw_chance(g, 0.2)) { /* backwards, all of it */
		start = n - 1;
		end = -n - 1;
		step = -1;
		y.dim[axis] = n;
	}
	const char *s = add_numbers(g, 1, &start), *e = add_numbers(g, 1, &end);
	const char *a = add_numbers(g, 1, &axis), *by = add_numbers(g, 1, &step);
	return add_node(g, "Slice", &y, format(g, "%s,%s,%s,%s,%s", x.name, s, e, a, by));
}

static struct wire block_pad(struct generator *g, struct wire x)
{
	static const char *const modes[] = {"constant", "reflect", "edge"};
	const char *mode = DRAW_NAME(g, modes);
	int64_t pads[2 * RANK_MAX];
	struct wire y = x;
	for (int i = 0; i < x.rank; i++) {
		bool can = x.dim[i] >= 3;
		pads[i] = can ? draw_below(g, 2) : 0;
		pads[x.rank + i] = can ? draw_below(g, 3) : 0;
		y.dim[i] += pads[i] + pads[x.rank + i];
	}
	if (wire_count(&y) > ELEMENTS_MAX)
		return x;
	y = add_node(g, "Pad", &y, format(g, "%s,%s", x.name, add_numbers(g, 2 * x.rank, pads)));
	add_text(g, "mode", mode);
	return y;
}

static struct wire block_gather(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank);
	struct wire y = x;
	const struct wire ids = SHAPE(draw_range(g, 2, 6));
	y.dim[axis] = ids.dim[0];
	if (wire_count(&y) > ELEMENTS_MAX)
		return x;
	const char *id = add_indices(g, &ids, x.dim[axis], draw_chance(g, 0.5));
	y = add_node(g, "Gather", &y, format(g, "%s,%s", x.name, id));
	add_int(g, "axis", axis);
	return y;
}

static struct wire block_gather_elements(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank);
	struct wire y = x;
	y.dim[axis] = draw_range(g, 1, x.dim[axis] + 1);
	const char *id = add_indices(g, &y, x.dim[axis], draw_chance(g, 0.5));
	y = add_node(g, "GatherElements", &y, format(g, "%s,%s", x.name, id));
	add_int(g, "axis", axis);
	return y;
}

/* Rows of [n, 2]: where to read or write in the two first axes. Without repeats where they must
 * not be. */
static const char *pairs(struct generator *g, const struct wire *x, int64_t n, bool distinct)
{
	const char *name = format(g, "n%d", g->ntensor++);
	int64_t all = x->dim[0] * x->dim[1], *v = ARENA_ARRAY(g->t->arena, int64_t, 2 * n + 1);
	int64_t first = draw_below(g, all);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = distinct ? (first + i) % all : draw_below(g, all);
		v[2 * i] = at / x->dim[1];
		v[2 * i + 1] = at % x->dim[1];
	}
	model_raw(model_tensor(g->t, name, TENSOR_TYPE(INT64), format(g, "%lld,2", (long long)n)),
		v, (size_t)n * 2 * sizeof *v);
	return name;
}

/* [n, ...] of x's axes after the first two. */
static struct wire picked_shape(const struct wire *x, int64_t n)
{
	struct wire y = {.rank = x->rank - 1, .dim = {n}};
	for (int i = 1; i < y.rank; i++)
		y.dim[i] = x->dim[i + 1];
	return y;
}

static struct wire block_gather_nd(struct generator *g, struct wire x)
{
	const int64_t n = draw_range(g, 2, 7);
	struct wire y = picked_shape(&x, n);
	return add_node(g, "GatherND", &y, format(g, "%s,%s", x.name, pairs(g, &x, n, false)));
}

static struct wire block_scatter_nd(struct generator *g, struct wire x)
{
	const bool adds = g->opset >= 16 && draw_chance(g, 0.6);
	int64_t n = draw_range(g, 2, 5), most = x.dim[0] * x.dim[1];
	n = n > most ? most : n;
	struct wire shape = picked_shape(&x, n);
	struct wire u = add_activation(g, add_weight(g, 0, 1, &shape));
	struct wire y = add_node(
		g, "ScatterND", &x, format(g, "%s,%s,%s", x.name, pairs(g, &x, n, !adds), u.name));
	if (adds)
		add_text(g, "reduction", "add");
	return y;
}

static struct wire block_scatter(struct generator *g, struct wire x)
{
	static const char *const reductions[] = {"add", "add", "mul", "max", "min"};
	const int64_t axis = draw_below(g, x.rank);
	struct wire shape = x;
	const bool adds = g->opset >= 16;
	const char *how = g->opset >= 18 ? DRAW_NAME(g, reductions) : "add";
	shape.dim[axis] = adds ? draw_range(g, 1, x.dim[axis] + 2) : 1;
	if (wire_count(&shape) > ELEMENTS_MAX)
		return x;
	struct wire u;
	if (draw_chance(g, 0.5)) {
		struct wire w = shape;
		w.dim[draw_below(g, w.rank)] = 1;
		const char *to = add_numbers(g, shape.rank, shape.dim);
		w = add_weight(g, 0, 1, &w);
		u = add_node(g, "Expand", &shape, format(g, "%s,%s", w.name, to));
		/* equal elements would tie under max and min */
		u = add_two(g, "Add", u, add_constant(g, 0, 0.1, &shape));
	} else
		u = add_weight(g, 0, 1, &shape);
	const char *id = add_indices(g, &shape, x.dim[axis], draw_chance(g, 0.5));
	struct wire y = add_node(
		g, "ScatterElements", &x, format(g, "%s,%s,%s", x.name, id, u.name));
	add_int(g, "axis", axis);
	if (adds)
		add_text(g, "reduction", how);
	return add_tamed(g, y);
}

static struct wire block_top(struct generator *g, struct wire x)
{
	const int64_t axis = draw_below(g, x.rank), k = draw_range(g, 1, x.dim[axis]);
	struct wire y = x;
	y.dim[axis] = k;
	y = add_node(g, "TopK", &y, format(g, "%s,%s", x.name, add_numbers(g, 1, &k)));
	add_int(g, "axis", axis);
	add_int(g, "largest", draw_below(g, 2));
	struct wire id = add_output(g, &y);
	if (draw_chance(g, 0.5))
		return y;
	struct wire other = add_activation(g, x);
	struct wire z = add_node(g, "GatherElements", &y, format(g, "%s,%s", other.name, id.name));
	add_int(g, "axis", axis);
	return add_two(g, "Add", y, z);
}

static struct wire block_trilu(struct generator *g, struct wire x)
{
	if (g->opset < 14)
		return x;
	struct wire y = add_same(g, "Trilu", x);
	add_int(g, "upper", draw_below(g, 2));
	return y;
}

const struct block_def blocks_index[] = {
	{block_slice, 1, 5, 3},
	{block_pad, 1, 5, 2},
	{block_gather, 1, 5, 2},
	{block_gather_elements, 1, 5, 2},
	{block_gather_nd, 3, 5, 1},
	{block_scatter_nd, 3, 5, 2},
	{block_scatter, 1, 5, 3},
	{block_top, 1, 5, 2},
	{block_trilu, 2, 5, 1},
	{.make = NULL},
};
