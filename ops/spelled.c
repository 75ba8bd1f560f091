/* Activations that exporters spell out, recognised for the records of ops/activation.c. */
#include "ops/spelled.h"

/* n = x · f(x) where f is the operator `op`: returns x. */
struct tensor *spelled_times_itself(const struct node *n, const char *op, const struct node **f)
{
	for (int i = 0; node_is(n, "Mul") && i < 2; i++) {
		struct tensor *x = match_source(n->in[i]);
		*f = match_node(n->in[1 - i], op);
		if (*f && match_source((*f)->in[0]) == x)
			return x;
	}
	return NULL;
}

/* Log(1 + Exp(x)). The operator is the same function, and does not overflow. */
enum status spelled_softplus(struct graph *g, const struct node *n, struct tensor **replace)
{
	double one;
	struct tensor *e;
	if (!node_is(n, "Log") ||
		!match_with_number(match_source(n->in[0])->maker, "Add", &one, &e) || one != 1)
		return ST_OK;
	const struct node *exponential = match_node(e, "Exp");
	if (exponential && tensor_same_shape(exponential->in[0], n->out[0]))
		*replace = OP1(g, "Softplus", match_source(exponential->in[0]));
	return g->failed;
}

/* n = v / 6 or v · ⅙: returns v. */
static struct tensor *sixth(const struct node *n)
{
	double v;
	struct tensor *other;
	if (node_is(n, "Div") && match_number(n->in[1], &v) && v == 6)
		return match_source(n->in[0]);
	if (match_with_number(n, "Mul", &v, &other) && match_near(v, 1.0 / 6))
		return match_source(other);
	return NULL;
}

/* t = Clip(x + 3, 0, 6): returns x. */
static struct tensor *clipped(const struct tensor *t)
{
	double three;
	struct tensor *x;
	const struct node *clip = match_node(t, "Clip");
	if (!clip || clip->nin != 1 || node_float(clip, "min", -INFINITY) != 0 ||
		node_float(clip, "max", INFINITY) != 6)
		return NULL;
	return match_with_number(match_source(clip->in[0])->maker, "Add", &three, &x) && three == 3
		       ? match_source(x)
		       : NULL;
}

/* Clip(x + 3, 0, 6) / 6 */
enum status spelled_hard_sigmoid(struct graph *g, const struct node *n, struct tensor **replace)
{
	static const struct attr attr[] = {ATTR_F("alpha", 1.0 / 6), ATTR_F("beta", 0.5)};
	struct tensor *v = sixth(n), *x = v ? clipped(v) : NULL;
	if (x && tensor_same_shape(x, n->out[0]))
		*replace = graph_op(g, "HardSigmoid", 1, &x, 2, attr);
	return g->failed;
}

/* x · HardSigmoid(x), or x · Clip(x + 3, 0, 6) / 6 */
enum status spelled_hard_swish(struct graph *g, const struct node *n, struct tensor **replace)
{
	const struct node *f;
	struct tensor *x = spelled_times_itself(n, "HardSigmoid", &f), *v;
	if (x && (!match_near(node_option(f, "alpha"), 1.0 / 6) || node_option(f, "beta") != 0.5))
		x = NULL;
	const struct node *mul = !x && (v = sixth(n)) ? match_node(v, "Mul") : NULL;
	for (int i = 0; mul && i < 2 && !x; i++) {
		x = clipped(mul->in[1 - i]);
		if (x != match_source(mul->in[i]))
			x = NULL;
	}
	if (x && tensor_same_shape(x, n->out[0]))
		*replace = OP1(g, "HardSwish", x);
	return g->failed;
}

/* x · Tanh(Softplus(x)) */
enum status spelled_mish(struct graph *g, const struct node *n, struct tensor **replace)
{
	for (int i = 0; node_is(n, "Mul") && i < 2; i++) {
		const struct node *tanh = match_node(n->in[1 - i], "Tanh");
		const struct node *plus = tanh ? match_node(tanh->in[0], "Softplus") : NULL;
		if (!plus || match_source(plus->in[0]) != match_source(n->in[i]))
			continue;
		*replace = OP1(g, "Mish", match_source(n->in[i]));
		break;
	}
	return g->failed;
}
