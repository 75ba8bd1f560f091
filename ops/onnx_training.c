/* ONNX's operators of training, domain ai.onnx.preview.training: optimizers as functions of their
 * inputs. Each takes (R, T, then for every tensor of a group its value X, its gradient G and its
 * states), all X first, and gives the new values, all X first. They come to element-wise nodes, as
 * the pseudo code of the standard spells them. */
#include "ops/data.h"

enum { RATE, TIME, FIRST };
enum { STATES_MAX = 2 };
enum { ADAGRAD, ADAM, MOMENTUM }; /* variants */

/* X, G and the states V, H or one of them. */
static int groups(const struct node *n)
{
	return n->op->variant == ADAM ? 4 : 3;
}

/* Tensors of each group. */
static int members(const struct node *n)
{
	return (n->nin - FIRST) / groups(n);
}

static enum status training_infer(struct graph *g, struct node *n)
{
	const int count = members(n);
	if (count < 1 || (n->nin - FIRST) % groups(n) || n->nout > count * (groups(n) - 1))
		return node_fail(g, n, NULL, "has %d inputs and %d outputs, no whole groups of %d",
			n->nin, n->nout, groups(n));
	if (n->in[RATE]->numel != 1 || n->in[TIME]->numel != 1)
		return node_fail(g, n, NULL, "R and T are no single numbers");
	const char *mode = node_string(n, "mode", "standard");
	if (strcmp(mode, "standard") != 0 && strcmp(mode, "nesterov") != 0)
		return node_fail(g, n, NULL, "mode is '%s'; standard and nesterov are known", mode);
	for (int i = FIRST; i < n->nin; i++)
		if (!n->in[i] || !tensor_same_shape(n->in[i], n->in[FIRST + (i - FIRST) % count]))
			return node_fail(g, n, NULL, "input %d has not the shape of its tensor", i);
	for (int k = 0; k < n->nout; k++) {
		const struct tensor *x = n->in[FIRST + k % count];
		TRY(data_output(g, n, k, x->dtype, x->rank, x->dim));
	}
	return ST_OK;
}

/* One tensor's update while it is built. */
struct update {
	struct graph *g;
	const struct node *n;
	struct tensor *rate, *time; /* scalars, real */
	struct tensor *x, *gradient, *state[STATES_MAX];
};

static struct tensor *option(const struct update *u, const char *name)
{
	return graph_scalar(u->g, node_option(u->n, name));
}

static struct tensor *scaled(const struct update *u, double k, struct tensor *x)
{
	return k == 1 ? x : OP2(u->g, "Mul", x, graph_scalar(u->g, k));
}

static struct tensor *add(const struct update *u, struct tensor *a, struct tensor *b)
{
	return OP2(u->g, "Add", a, b);
}

/* old · k + new · l */
static struct tensor *blend(
	const struct update *u, double k, struct tensor *old, double l, struct tensor *new)
{
	return add(u, scaled(u, k, old), scaled(u, l, new));
}

/* x − rate · d */
static struct tensor *step(const struct update *u, struct tensor *rate, struct tensor *d)
{
	return OP2(u->g, "Sub", u->x, OP2(u->g, "Mul", rate, d));
}

/* T > 0 ? a : b */
static struct tensor *after_first(const struct update *u, struct tensor *a, struct tensor *b)
{
	return OP3(u->g, "Where", OP2(u->g, "Greater", u->time, graph_scalar(u->g, 0)), a, b);
}

static struct tensor *square(const struct update *u, struct tensor *x)
{
	return OP2(u->g, "Mul", x, x);
}

static void adagrad(struct update *u)
{
	struct tensor *late = OP2(u->g, "Mul", u->time, option(u, "decay_factor"));
	struct tensor *rate = OP2(u->g, "Div", u->rate, add(u, graph_scalar(u->g, 1), late));
	u->state[0] = add(u, u->state[0], square(u, u->gradient));
	struct tensor *root = add(u, OP1(u->g, "Sqrt", u->state[0]), option(u, "epsilon"));
	u->x = step(u, rate, OP2(u->g, "Div", u->gradient, root));
}

/* 1 − k^T, with T = 1 where it is 0 and the result is not taken */
static struct tensor *bias(const struct update *u, double k)
{
	struct tensor *t = OP2(u->g, "Max", u->time, graph_scalar(u->g, 1));
	return OP2(u->g, "Sub", graph_scalar(u->g, 1), OP2(u->g, "Pow", graph_scalar(u->g, k), t));
}

static void adam(struct update *u)
{
	const double alpha = node_option(u->n, "alpha"), beta = node_option(u->n, "beta");
	struct tensor *late = OP2(u->g, "Div",
		OP2(u->g, "Mul", u->rate, OP1(u->g, "Sqrt", bias(u, beta))), bias(u, alpha));
	u->state[0] = blend(u, alpha, u->state[0], 1 - alpha, u->gradient);
	u->state[1] = blend(u, beta, u->state[1], 1 - beta, square(u, u->gradient));
	struct tensor *root = add(u, OP1(u->g, "Sqrt", u->state[1]), option(u, "epsilon"));
	u->x = step(u, after_first(u, late, u->rate), OP2(u->g, "Div", u->state[0], root));
	u->x = scaled(u, 1 - node_option(u->n, "norm_coefficient_post"), u->x);
}

static void momentum(struct update *u)
{
	const double alpha = node_option(u->n, "alpha");
	struct tensor *take = after_first(u, option(u, "beta"), graph_scalar(u->g, 1));
	u->state[0] = add(u, scaled(u, alpha, u->state[0]), OP2(u->g, "Mul", take, u->gradient));
	struct tensor *d = u->state[0];
	if (!strcmp(node_string(u->n, "mode", "standard"), "nesterov"))
		d = blend(u, 1, u->gradient, alpha, d);
	u->x = step(u, u->rate, d);
}

static enum status training_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct attr real = ATTR_I("to", 1);
	const int count = members(n), states = groups(n) - 2;
	struct update u = {.g = g, .n = n};
	u.rate = graph_reshape(g, in[RATE], 0, NULL);
	u.time = graph_reshape(g, graph_op(g, "Cast", 1, &in[TIME], 1, &real), 0, NULL);
	for (int i = 0; i < count; i++) {
		const double decay = node_option(n, "norm_coefficient");
		u.x = in[FIRST + i];
		u.gradient = in[FIRST + count + i];
		for (int k = 0; k < states; k++)
			u.state[k] = in[FIRST + (2 + k) * count + i];
		if (decay != 0)
			u.gradient = add(&u, scaled(&u, decay, u.x), u.gradient);
		if (states == 2)
			adam(&u);
		else if (n->op->variant == ADAGRAD)
			adagrad(&u);
		else
			momentum(&u);
		if (i < n->nout)
			out[i] = u.x;
		for (int k = 0; k < states; k++)
			if ((k + 1) * count + i < n->nout)
				out[(k + 1) * count + i] = u.state[k];
	}
	return g->failed;
}

static const struct op_option adagrad_options[] = {{.name = "decay_factor"},
	{.name = "epsilon", .value = 1e-6}, {.name = "norm_coefficient"}, {.name = NULL}};
static const struct op_option adam_options[] = {{.name = "alpha", .value = 0.9},
	{.name = "beta", .value = 0.999}, {.name = "epsilon", .value = 1e-6},
	{.name = "norm_coefficient"}, {.name = "norm_coefficient_post"}, {.name = NULL}};
static const struct op_option momentum_options[] = {
	{.name = "alpha"}, {.name = "beta"}, {.name = "norm_coefficient"}, {.name = NULL}};

#define TRAINING(onnx, which, least, options, ...)                                                 \
	{                                                                                          \
		.name = "ai.onnx.preview.training." onnx, .variant = which, .since = 1,            \
		.min_in = least, .max_in = -1, .min_out = 1, .max_out = -1,                        \
		.infer = training_infer, .lower = training_lower, .option = options,               \
		.example = EXAMPLES(__VA_ARGS__)                                                   \
	}

/* clang-format off */
const struct op_def ops_training[] = {
	TRAINING("Adagrad", ADAGRAD, 5, adagrad_options,
		{.in = "() =3 a,B a,B a,B", .attr = "norm_coefficient=0.1 decay_factor=0.2", .low = 0.2, .high = 1, .nout = 2},
		{.in = "1 =0 2,3 4 2,3 4 2,3 4", .low = 0.2, .high = 1, .nout = 4}),
	TRAINING("Adam", ADAM, 6, adam_options,
		{.in = "() =3 a,B a,B a,B a,B", .attr = "alpha=0.8 norm_coefficient=0.1 norm_coefficient_post=0.2",
			.low = 0.2, .high = 1, .nout = 3},
		{.in = "1 =0 2,3 4 2,3 4 2,3 4 2,3 4", .attr = "beta=0.3 epsilon=0.1", .low = 0.2, .high = 1, .nout = 6}),
	TRAINING("Momentum", MOMENTUM, 5, momentum_options,
		{.in = "() =3 a,B a,B a,B", .attr = "mode=nesterov alpha=0.8 beta=0.7 norm_coefficient=0.1", .nout = 2},
		{.in = "1 =0 2,3 4 2,3 4 2,3 4", .attr = "mode=standard alpha=0.8 beta=0.7 norm_coefficient=0.0", .nout = 4}),
	{0},
};
/* clang-format on */
