/* The losses of random models: by name, or written out, of one value or of several. */
#include <stdio.h>

#include "tests/random/random.h"

static const struct wire SCALAR = {.rank = 0};

static void named_loss(struct generator *g, const struct wire *y)
{
	const char *kind = "mse";
	if (draw_chance(g, 0.3) && (y->rank == 2 || y->rank == 4) && y->dim[1] > 1)
		kind = "cross-entropy";
	else if (draw_chance(g, 0.2))
		kind = "bce-with-logits";
	snprintf(g->loss, sizeof g->loss, "%s:output=%s", kind, y->name);
	g->loss_output = y->name;
	model_output(g->t, y->name);
}

/* All of x as one number. */
static struct wire total(struct generator *g, const char *op, struct wire x)
{
	struct wire y = add_node(g, op, &SCALAR, x.name);
	add_int(g, "keepdims", 0);
	return y;
}

/* Classes along axis 1, their labels an input or constants. */
static struct wire class_loss(struct generator *g, struct wire x)
{
	struct wire labels = {.rank = x.rank - 1, .dim = {x.dim[0]}};
	for (int i = 1; i < labels.rank; i++)
		labels.dim[i] = x.dim[i + 1];
	const char *name = add_indices(g, &labels, x.dim[1], draw_chance(g, 0.7)),
		   *op = "SoftmaxCrossEntropyLoss";
	if (draw_chance(g, 0.4)) {
		x = add_same(g, "LogSoftmax", x);
		add_int(g, "axis", 1);
		op = "NegativeLogLikelihoodLoss";
	}
	struct wire y = add_node(g, op, &SCALAR, format(g, "%s,%s", x.name, name));
	add_text(g, "reduction", draw_chance(g, 0.7) ? "mean" : "sum");
	return y;
}

/* A term: how far x is from somewhere. */
static struct wire term(struct generator *g, struct wire x)
{
	if (x.rank == 0)
		return add_two(g, "Mul", x, x);
	if (draw_chance(g, 0.4)) /* a head of its own */
		x = add_projection(g, x, draw_range(g, 2, 5));
	if (x.rank >= 2 && x.rank <= 4 && x.dim[1] > 1 && draw_chance(g, 0.4))
		return class_loss(g, x);
	if (draw_chance(g, 0.3))
		return total(g, "ReduceMean", add_same(g, "Abs", x));
	if (draw_chance(g, 0.3))
		return total(g, "ReduceSumSquare", x);
	struct wire off = add_two(g, "Sub", x, add_input(g, &x));
	return total(g, "ReduceMean", add_two(g, "Mul", off, off));
}

/* By how much a term counts: by a constant, or as it learns (exp(-s) * term + s). */
static struct wire weighed(struct generator *g, struct wire y)
{
	if (draw_chance(g, 0.3))
		return y;
	if (draw_chance(g, 0.5))
		return add_two(g, "Mul", y, add_scalar(g, 0.25 + draw_uniform(g)));
	struct wire s = add_bias(g, 0.3, &SCALAR);
	y = add_two(g, "Mul", add_same(g, "Exp", add_same(g, "Neg", s)), y);
	return add_two(g, "Add", y, s);
}

/* The model's own loss: a sum of terms, of rank 0 or [1]. */
static void own_loss(struct generator *g, struct wire x, int nother, const struct wire *other)
{
	const struct wire one = SHAPE(1);
	struct wire sum = weighed(g, term(g, x));
	for (int k = 0; k < nother; k++)
		sum = add_two(g, "Add", sum, weighed(g, term(g, other[k])));
	if (draw_chance(g, 0.3))
		sum = add_reshape(g, sum, &one);
	snprintf(g->loss, sizeof g->loss, "output:%s", sum.name);
	g->loss_output = sum.name;
	model_output(g->t, sum.name);
}

void add_loss(struct generator *g, struct wire x, int nother, const struct wire *other)
{
	if (draw_chance(g, 0.4))
		own_loss(g, x, nother, other);
	else
		named_loss(g, &x);
}
