/* Drawing numbers, adding nodes, and the walk that makes a model of blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/random/random.h"

/* --- Drawing --- */

/* splitmix64 */
static uint64_t draw(struct generator *g)
{
	uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

double draw_uniform(struct generator *g)
{
	return (double)(draw(g) >> 11) * 0x1p-53;
}

int64_t draw_below(struct generator *g, int64_t n)
{
	return (int64_t)(draw_uniform(g) * (double)n);
}

int64_t draw_range(struct generator *g, int64_t low, int64_t high)
{
	return low + draw_below(g, high - low + 1);
}

bool draw_chance(struct generator *g, double p)
{
	return draw_uniform(g) < p;
}

double draw_normal(struct generator *g)
{
	double r = sqrt(-2 * log(1 - draw_uniform(g)));
	return r * cos(2 * acos(-1.0) * draw_uniform(g));
}

const char *draw_name(struct generator *g, const char *const *names, size_t n)
{
	return names[draw_below(g, (int64_t)n)];
}

/* --- Values --- */

int64_t wire_count(const struct wire *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= v->dim[i];
	return n;
}

struct wire wire_of(const char *name, int rank, const int64_t *dim)
{
	struct wire v = {.name = name, .rank = rank};
	memcpy(v.dim, dim, (size_t)rank * sizeof *dim);
	return v;
}

bool wire_same_shape(const struct wire *a, const struct wire *b)
{
	return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

const char *format(struct generator *g, const char *fmt, ...)
{
	char s[600];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s, sizeof s, fmt, ap);
	va_end(ap);
	return arena_strdup(g->t->arena, s);
}

static const char *shape_text(struct generator *g, const struct wire *v)
{
	char s[200] = "";
	for (int i = 0, n = 0; i < v->rank; i++)
		n += snprintf(
			s + n, sizeof s - (size_t)n, "%s%lld", i ? "," : "", (long long)v->dim[i]);
	return arena_strdup(g->t->arena, s);
}

/* --- Nodes --- */

struct wire add_node(
	struct generator *g, const char *op, const struct wire *shape, const char *inputs)
{
	struct wire y = *shape;
	y.name = format(g, "v%d", g->ntensor++);
	g->node = model_node(g->t, op, format(g, "%s_%d", op, g->nnode++), inputs, y.name);
	return y;
}

struct wire add_same(struct generator *g, const char *op, struct wire x)
{
	return add_node(g, op, &x, x.name);
}

struct wire add_two(struct generator *g, const char *op, struct wire a, struct wire b)
{
	struct wire y = a.rank >= b.rank ? a : b;
	for (int i = 1; i <= a.rank && i <= b.rank; i++) {
		int64_t p = a.dim[a.rank - i], q = b.dim[b.rank - i];
		y.dim[y.rank - i] = p > q ? p : q;
	}
	return add_node(g, op, &y, format(g, "%s,%s", a.name, b.name));
}

void add_int(struct generator *g, const char *name, int64_t v)
{
	model_int(g->t, g->node, name, v);
}

void add_float(struct generator *g, const char *name, double v)
{
	Onnx__AttributeProto *a = model_attribute(g->t, g->node, name, ATTRIBUTE_TYPE(FLOAT));
	a->has_f = 1;
	a->f = (float)v;
}

void add_text(struct generator *g, const char *name, const char *v)
{
	Onnx__AttributeProto *a = model_attribute(g->t, g->node, name, ATTRIBUTE_TYPE(STRING));
	a->has_s = 1;
	a->s = (ProtobufCBinaryData){strlen(v), (uint8_t *)arena_strdup(g->t->arena, v)};
}

void add_ints(struct generator *g, const char *name, int n, const int64_t *v)
{
	Onnx__AttributeProto *a = model_attribute(g->t, g->node, name, ATTRIBUTE_TYPE(INTS));
	a->n_ints = (size_t)n;
	a->ints = arena_memdup(g->t->arena, v, (size_t)n, sizeof *v);
}

struct wire add_output(struct generator *g, const struct wire *shape)
{
	struct wire y = *shape;
	y.name = format(g, "v%d", g->ntensor++);
	char **wider = ARENA_ARRAY(g->t->arena, char *, g->node->n_output + 1);
	memcpy(wider, g->node->output, g->node->n_output * sizeof *wider);
	wider[g->node->n_output++] = arena_strdup(g->t->arena, y.name);
	g->node->output = wider;
	return y;
}

/* --- Initializers and inputs --- */

static struct wire add_reals(
	struct generator *g, const char *name, double mean, double scale, const struct wire *shape)
{
	struct wire v = *shape;
	int64_t n = wire_count(shape);
	float *data = ARENA_ARRAY(g->t->arena, float, n + 1);
	for (int64_t i = 0; i < n; i++)
		data[i] = (float)(mean + scale * draw_normal(g));
	v.name = name;
	model_raw(model_tensor(g->t, name, TENSOR_TYPE(FLOAT), shape_text(g, shape)), data,
		(size_t)n * sizeof *data);
	return v;
}

struct wire add_constant(struct generator *g, double mean, double scale, const struct wire *shape)
{
	return add_reals(g, format(g, "c%d", g->ntensor++), mean, scale, shape);
}

struct wire add_scalar(struct generator *g, double v)
{
	const struct wire scalar = {.rank = 0};
	return add_constant(g, v, 0, &scalar);
}

/* A new one; what is `uniform` has mean everywhere. */
static struct wire new_weight(
	struct generator *g, double mean, double scale, const struct wire *shape, bool uniform)
{
	const char *kind = draw_chance(g, 0.1) ? "frozen" : "p";
	return add_reals(
		g, format(g, "%s%d", kind, g->ntensor++), mean, uniform ? 0 : scale, shape);
}

/* The next one of the tape, where it plays and the block drawn is still the one that was recorded.
 */
static bool tape_next(struct generator *g, const struct wire *shape, struct wire *v)
{
	struct tape *tape = &g->tape;
	if (tape->mode != TAPE_PLAYS || tape->at == tape->n ||
		!wire_same_shape(&tape->weight[tape->at].v, shape))
		return false;
	g->state = tape->weight[tape->at].after;
	*v = tape->weight[tape->at++].v;
	return true;
}

static struct wire taped(struct generator *g, struct wire v)
{
	struct tape *tape = &g->tape;
	if (tape->mode == TAPE_RECORDS && tape->n < WEIGHTS)
		tape->weight[tape->n++] = (struct taped){v, g->state};
	return v;
}

struct wire add_weight(struct generator *g, double mean, double scale, const struct wire *shape)
{
	struct wire v;
	if (tape_next(g, shape, &v))
		return v;
	for (int i = 0; i < g->nweight; i++) {
		double d = fabs(g->weight[i].scale - scale);
		if (wire_same_shape(&g->weight[i].v, shape) && d < 0.01 && draw_chance(g, 0.2))
			return taped(g, g->weight[i].v);
	}
	v = new_weight(g, mean, scale, shape, false);
	/* one drawn around another mean is none to use elsewhere: a scale of 1, say */
	if (g->nweight < WEIGHTS && mean == 0)
		g->weight[g->nweight++] = (struct weight){v, scale};
	return taped(g, v);
}

/* None of these is used elsewhere: a product with zeros or equal columns has ties, where no slope
 * is. */
static struct wire add_fresh(
	struct generator *g, double mean, double scale, const struct wire *shape)
{
	struct wire v;
	if (tape_next(g, shape, &v))
		return v;
	return taped(g, new_weight(g, mean, scale, shape, draw_chance(g, 0.4)));
}

struct wire add_bias(struct generator *g, double scale, const struct wire *shape)
{
	return add_fresh(g, 0, scale, shape);
}

struct wire add_gain(struct generator *g, double scale, const struct wire *shape)
{
	return add_fresh(g, 1, scale, shape);
}

const char *add_numbers(struct generator *g, int n, const int64_t *v)
{
	const char *name = format(g, "n%d", g->ntensor++);
	model_raw(model_tensor(g->t, name, TENSOR_TYPE(INT64), format(g, "%d", n)),
		arena_memdup(g->t->arena, v, (size_t)n, sizeof *v), (size_t)n * sizeof *v);
	return name;
}

const char *add_indices(struct generator *g, const struct wire *shape, int64_t range, bool fed)
{
	if (fed && g->nfeed < FEEDS) {
		const char *name = format(g, "ids%d", g->ntensor++);
		model_input(g->t, name, TENSOR_TYPE(INT64), shape_text(g, shape));
		g->feed[g->nfeed++] = (struct feed){name, range};
		return name;
	}
	const char *name = format(g, "n%d", g->ntensor++);
	int64_t n = wire_count(shape), *v = ARENA_ARRAY(g->t->arena, int64_t, n + 1);
	for (int64_t i = 0; i < n; i++)
		v[i] = draw_below(g, range);
	model_raw(model_tensor(g->t, name, TENSOR_TYPE(INT64), shape_text(g, shape)), v,
		(size_t)n * sizeof *v);
	return name;
}

struct wire add_input(struct generator *g, const struct wire *shape)
{
	if (g->nfeed == FEEDS)
		return add_constant(g, 0, 1, shape);
	struct wire v = *shape;
	v.name = format(g, "x%d", g->ntensor++);
	model_input(g->t, v.name, TENSOR_TYPE(FLOAT), shape_text(g, shape));
	g->feed[g->nfeed++] = (struct feed){v.name, 0};
	return v;
}

struct wire add_reduce(
	struct generator *g, const char *op, struct wire x, int n, const int64_t *axes)
{
	struct wire y = x;
	for (int i = 0; i < n; i++)
		y.dim[axes[i]] = 1;
	if (g->opset >= 18 || !strcmp(op, "ReduceSum"))
		return add_node(g, op, &y, format(g, "%s,%s", x.name, add_numbers(g, n, axes)));
	y = add_node(g, op, &y, x.name);
	add_ints(g, "axes", n, axes);
	return y;
}

struct wire add_reshape(struct generator *g, struct wire x, const struct wire *shape)
{
	const char *to = add_numbers(g, shape->rank, shape->dim);
	return add_node(g, "Reshape", shape, format(g, "%s,%s", x.name, to));
}

/* --- Models --- */

/* The block that number `at` of the chances of all that fit falls on; NULL: *sum of them. */
static const struct block_def *block_at(int rank, int64_t at, int64_t *sum)
{
	const struct block_def *const lists[] = {blocks_simple, blocks_layers, blocks_index,
		blocks_nested, blocks_shared, blocks_whole};
	*sum = 0;
	for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
		for (const struct block_def *b = lists[l]; b->make; b++) {
			if (rank < b->rank_least || rank > b->rank_most)
				continue;
			*sum += b->chance;
			if (at < *sum)
				return b;
		}
	return NULL;
}

struct wire add_block(struct generator *g, struct wire x)
{
	int64_t sum, dummy;
	block_at(x.rank, INT64_MAX, &sum);
	for (int tries = 0; tries < 20; tries++) {
		struct wire y = block_at(x.rank, draw_below(g, sum), &dummy)->make(g, x);
		if (y.name != x.name)
			return y;
	}
	return add_activation(g, x);
}

struct wire add_branch(struct generator *g, struct wire x)
{
	struct wire y = add_block(g, x);
	int64_t axes[RANK_MAX];
	int n = 0;
	for (int i = 0; i < y.rank; i++)
		if (y.rank != x.rank || (y.dim[i] != x.dim[i] && y.dim[i] != 1))
			axes[n++] = i;
	if (n)
		y = add_reduce(g, "ReduceMean", y, n, axes);
	if (y.rank > x.rank) { /* all ones */
		const struct wire one = SHAPE(1);
		y = add_reshape(g, y, &one);
	}
	return y;
}

static struct wire first_value(struct generator *g)
{
	struct wire shape;
	switch (draw_below(g, 4)) {
	case 0:
		shape = SHAPE(draw_range(g, 2, 8), draw_range(g, 3, 24));
		return add_input(g, &shape);
	case 1:
		shape = SHAPE(draw_range(g, 2, 4), draw_range(g, 3, 9), draw_range(g, 4, 12));
		return add_input(g, &shape);
	case 2: { /* an embedding */
		const struct wire table = SHAPE(draw_range(g, 5, 20), draw_range(g, 4, 12));
		const struct wire ids = SHAPE(draw_range(g, 2, 4), draw_range(g, 3, 9));
		shape = SHAPE(ids.dim[0], ids.dim[1], table.dim[1]);
		struct wire w = add_weight(g, 0, 1, &table);
		const char *id = add_indices(g, &ids, table.dim[0], true);
		return add_node(g, "Gather", &shape, format(g, "%s,%s", w.name, id));
	}
	default:
		shape = SHAPE(draw_range(g, 2, 3), draw_range(g, 2, 6), draw_range(g, 5, 10),
			draw_range(g, 5, 10));
		return add_input(g, &shape);
	}
}

void generate_model(struct generator *g, struct model_test *t, uint64_t seed)
{
	static const int opsets[] = {13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
	static const char *const trained[] = {"p*", NULL};
	*g = (struct generator){.t = t, .state = seed * UINT64_C(0xd1342543de82ef95) + 1};
	g->opset = opsets[draw_below(g, sizeof opsets / sizeof *opsets)];
	t->model.opset_import[0]->version = g->opset;
	t->options.train_pattern = trained;
	/* others' uniform values that several nodes read are taken for merged ones */
	t->model.producer_name = arena_strdup(t->arena, "pytorch");
	struct wire x = first_value(g), side[3];
	double u = draw_uniform(g);
	int64_t size = 6 + (int64_t)(34 * u * u),
		nside = draw_below(g, 3); /* small ones as a rule */
	for (int k = 0; g->nnode < size; k++) {
		x = add_block(g, x);
		if (draw_chance(g, 0.4))
			x = add_tamed(g, x);
		side[k % 3] = x;
		nside = k < nside ? k : nside;
	}
	x = add_tamed(g, x);
	struct wire w = SHAPE(x.rank ? x.dim[x.rank - 1] : 1);
	if (!x.rank)
		x = add_reshape(g, x, &w);
	/* whatever happened before: something is trained */
	struct wire p = add_reals(g, format(g, "p%d", g->ntensor++), 1, 0.3, &w);
	x = add_two(g, "Mul", x, p);
	add_loss(g, x, (int)nside, side);
	for (int k = 0; k < nside; k++)
		if (strcmp(side[k].name, x.name) != 0)
			model_output(t, side[k].name);
	add_poison(g);
}
