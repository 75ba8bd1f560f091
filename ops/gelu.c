/* GELU, as one operator and in the exporters' spelled-out forms (Hendrycks and Gimpel, "Gaussian
 * Error Linear Units", section 2): x Φ(x), and the tanh approximation. */
#include "ops/match.h"

POINTWISE(gelu, a *NORMAL_CDF(a))
POINTWISE(gelu_grad, a *(NORMAL_CDF(b) + b * R(0.3989422804014327) * EXP(R(-0.5) * b * b)))

/* With u = k (x + c x³), ½ (1 + tanh u) is the logistic function σ(2u), and its derivative by 2u is
 * σ (1 − σ). The gradient dy (σ + x σ (1 − σ) 2 k (1 + 3 c x²)) is written with e^−|2u| in `c`, so
 * that nothing large is computed and no 1 − σ loses its digits. */
POINTWISE(gelu_tanh, a / (1 + EXP(R(-1.5957691216057308) * a * (1 + R(0.044715) * a * a))))
POINTWISE(gelu_tanh_inner, EXP(R(-1.5957691216057308) * FABS(a) * (1 + R(0.044715) * a * a)))
POINTWISE(gelu_tanh_grad,
	a *(1 / (1 + c)) * ((b < 0 ? c : 1) + b * c * (1 / (1 + c)) * R(1.5957691216057308) *
						      (1 + R(0.134145) * b * b)))

static enum status gelu_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = OP2(g, "stint.GeluGrad", dy[0], n->in[0]);
	return g->failed;
}

static enum status gelu_tanh_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct tensor *t = OP1(g, "stint.GeluTanhInner", n->in[0]);
	dx[0] = OP3(g, "stint.GeluTanhGrad", dy[0], n->in[0], t);
	return g->failed;
}

/* --- ONNX's own operator --- */

static enum status gelu_infer(struct graph *g, struct node *n)
{
	const char *kind = node_string(n, "approximate", "none");
	if (strcmp(kind, "none") != 0 && strcmp(kind, "tanh") != 0)
		return node_fail(g, n, NULL, "approximate is '%s'; none and tanh are known", kind);
	return data_output(g, n, 0, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
}

static enum status gelu_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	bool exact = !strcmp(node_string(n, "approximate", "none"), "none");
	out[0] = OP1(g, exact ? "stint.Gelu" : "stint.GeluTanh", in[0]);
	return g->failed;
}

/* --- Recognition --- */

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-4 * fabs(b);
}

/* A product as a coefficient times powers of x and of phi. */
struct product {
	const struct tensor *x, *phi;
	double coefficient;
	int nx, nphi;
};

static bool factor(const struct tensor *factored, struct product *p, int depth)
{
	const struct tensor *t = match_source((struct tensor *)(uintptr_t)factored);
	double v;
	const struct node *n;
	if (t == p->x) {
		p->nx++;
		return true;
	}
	if (t == p->phi) {
		p->nphi++;
		return true;
	}
	if (match_number(t, &v)) {
		p->coefficient *= v;
		return true;
	}
	if (depth == 0)
		return false;
	if ((n = match_node(t, "Mul")))
		return factor(n->in[0], p, depth - 1) && factor(n->in[1], p, depth - 1);
	if ((n = match_node(t, "Div")) && match_number(n->in[1], &v)) {
		p->coefficient /= v;
		return factor(n->in[0], p, depth - 1);
	}
	if ((n = match_node(t, "Pow")) && match_source(n->in[0]) == p->x &&
		match_number(n->in[1], &v) && v >= 1 && v <= 4 && v == floor(v)) {
		p->nx += (int)v;
		return true;
	}
	return false;
}

/* "1 + f(z)" where f is the operator `function`: sets *z. */
static bool one_plus(const struct tensor *t, const char *function, struct tensor **z)
{
	const struct node *add = match_node(t, "Add");
	for (int i = 0; add && i < 2; i++) {
		double v;
		const struct node *f = match_node(add->in[i], function);
		if (f && match_number(add->in[1 - i], &v) && v == 1) {
			*z = match_source(f->in[0]);
			return true;
		}
	}
	return false;
}

/* The factor 1 + f(z) in the product that ends in node n. */
static const struct tensor *find_phi(
	const struct node *n, const char *function, struct tensor **z, int depth)
{
	int factors = node_is(n, "Mul") ? 2 : node_is(n, "Div") ? 1 : 0;
	for (int i = 0; i < factors; i++) {
		const struct tensor *t = match_source(n->in[i]);
		if (one_plus(t, function, z))
			return t;
		const struct node *maker = depth ? t->maker : NULL;
		const struct tensor *found = maker ? find_phi(maker, function, z, depth - 1) : NULL;
		if (found)
			return found;
	}
	return NULL;
}

/* n is ½ x phi. */
static bool is_half_x_phi(const struct node *n, const struct tensor *x, const struct tensor *phi)
{
	struct product p = {.x = x, .phi = phi, .coefficient = 1};
	return factor(n->out[0], &p, 4) && p.nx == 1 && p.nphi == 1 && near(p.coefficient, 0.5);
}

/* z = x / √2 */
static struct tensor *argument_of_erf(struct tensor *z)
{
	const struct node *n = z->maker;
	double v;
	if (n && (match_node(z, "Div") || match_node(z, "Mul")))
		for (int i = 0; i < 2; i++)
			if (match_number(n->in[1 - i], &v) &&
				near(match_node(z, "Div") ? (i == 0 ? 1 / v : 0) : v,
					0.7071067811865476))
				return match_source(n->in[i]);
	return NULL;
}

/* z = √(2/π) (x + 0.044715 x³) */
static struct tensor *argument_of_tanh(struct tensor *z)
{
	const struct node *mul = match_node(z, "Mul");
	for (int i = 0; mul && i < 2; i++) {
		double v;
		const struct node *add = match_node(mul->in[i], "Add");
		if (!add || !match_number(mul->in[1 - i], &v) || !near(v, 0.7978845608028654))
			continue;
		for (int k = 0; k < 2; k++) {
			struct tensor *x = match_source(add->in[k]);
			struct product p = {.x = x, .coefficient = 1};
			if (factor(add->in[1 - k], &p, 4) && p.nx == 3 &&
				near(p.coefficient, 0.044715))
				return x;
		}
	}
	return NULL;
}

static enum status match(struct graph *g, const struct node *n, struct tensor **replace,
	const char *function, struct tensor *(*argument)(struct tensor *), const char *op)
{
	struct tensor *z;
	const struct tensor *phi = find_phi(n, function, &z, 2);
	struct tensor *x = phi ? argument(z) : NULL;
	if (!x || !is_half_x_phi(n, x, phi))
		return ST_OK;
	*replace = OP1(g, op, x);
	return g->failed;
}

static enum status gelu_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	return match(g, n, replace, "Erf", argument_of_erf, "stint.Gelu");
}

static enum status gelu_tanh_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	return match(g, n, replace, "Tanh", argument_of_tanh, "stint.GeluTanh");
}

/* clang-format off */
const struct op_def ops_gelu[] = {
	{.name = "Gelu", .apart = APART_BROADCAST, .since = 20, .min_in = 1, .infer = gelu_infer, .lower = gelu_lower,
		.example = EXAMPLES({.in = "3,5"}, {.in = "2,33", .attr = "approximate=tanh", .low = -3, .high = 3})},
	{.name = "stint.Gelu", .min_in = 1, .traits = OP_POINTWISE, .expr = gelu_expr,
		.ref = gelu_ref, .grad = gelu_rule, .match = gelu_match, .example = EXAMPLES({.in = "3,5"})},
	{.name = "stint.GeluTanh", .min_in = 1, .traits = OP_POINTWISE, .expr = gelu_tanh_expr,
		.ref = gelu_tanh_ref, .grad = gelu_tanh_rule, .match = gelu_tanh_match,
		.example = EXAMPLES({.in = "3,5", .low = -3, .high = 3})},
	{.name = "stint.GeluGrad", .min_in = 2, .traits = OP_POINTWISE, .expr = gelu_grad_expr,
		.ref = gelu_grad_ref},
	{.name = "stint.GeluTanhInner", .min_in = 1, .traits = OP_POINTWISE,
		.expr = gelu_tanh_inner_expr, .ref = gelu_tanh_inner_ref},
	{.name = "stint.GeluTanhGrad", .min_in = 3, .traits = OP_POINTWISE,
		.expr = gelu_tanh_grad_expr, .ref = gelu_tanh_grad_ref},
	{0},
};
/* clang-format on */
