/* The activation functions that ONNX lists for LSTM, GRU and RNN. A slope is computed from the
 * function's value, so that nothing else has to be kept. */
#include <stdio.h>
#include <strings.h>

#include "ops/recurrent_op.h"

POINTWISE(sigmoid, 1 / (1 + EXP(-a)))
POINTWISE(tanh, TANH(a))
POINTWISE(relu, a <= 0 ? 0 : a)
POINTWISE_OPT2(affine, alpha, beta, alpha *a + beta)
POINTWISE_OPT1(leaky, alpha, a >= 0 ? a : alpha * a)
POINTWISE_OPT1(thresholded, alpha, a < alpha ? 0 : a)
POINTWISE_OPT2(scaled_tanh, alpha, beta, alpha *TANH(beta *a))
POINTWISE_OPT2(hard_sigmoid, alpha, beta, MAX(0, MIN(1, alpha *a + beta)))
POINTWISE_OPT1(elu, alpha, a >= 0 ? a : alpha * (EXP(a) - 1))
POINTWISE(softsign, a / (1 + FABS(a)))
POINTWISE(softplus, MAX(a, 0) + LOG1P(EXP(-FABS(a))))

struct activation_kind {
	const char *name, *id;
	int noption;
	double option[2];  /* defaults: those of the ONNX operator of that name */
	double least;      /* of alpha: below it the value does not tell the slope */
	const char *expr;  /* of a */
	const char *slope; /* of the value a */
	double (*ref)(const double *in, const double *option);
};

static const struct activation_kind kinds[] = {
	{"Sigmoid", "sigmoid", 0, {0, 0}, 0, sigmoid_expr, "a * (1 - a)", sigmoid_ref},
	{"Tanh", "tanh", 0, {0, 0}, 0, tanh_expr, "1 - a * a", tanh_ref},
	{"Relu", "relu", 0, {0, 0}, 0, relu_expr, "a <= 0 ? 0 : 1", relu_ref},
	{"Affine", "affine", 2, {1, 0}, -INFINITY, affine_expr, "alpha", affine_ref},
	{"LeakyRelu", "leaky_relu", 1, {0.01, 0}, 0, leaky_expr, "a > 0 ? 1 : alpha", leaky_ref},
	{"ThresholdedRelu", "thresholded_relu", 1, {1, 0}, -INFINITY, thresholded_expr,
		"a != 0 ? 1 : 0", thresholded_ref},
	{"ScaledTanh", "scaled_tanh", 2, {1, 1}, -INFINITY, scaled_tanh_expr,
		"beta * (alpha - a * a / alpha)", scaled_tanh_ref},
	{"HardSigmoid", "hard_sigmoid", 2, {0.2, 0.5}, -INFINITY, hard_sigmoid_expr,
		"a > 0 && a < 1 ? alpha : 0", hard_sigmoid_ref},
	{"Elu", "elu", 1, {1, 0}, 0, elu_expr, "a <= 0 ? a + alpha : 1", elu_ref},
	{"Softsign", "softsign", 0, {0, 0}, 0, softsign_expr, "(1 - FABS(a)) * (1 - FABS(a))",
		softsign_ref},
	{"Softplus", "softplus", 0, {0, 0}, 0, softplus_expr, "1 - EXP(-a)", softplus_ref},
};

double activation_value(const struct activation *a, double x)
{
	return a->kind->ref((const double[POINTWISE_INPUTS]){x}, a->option);
}

/* --- Attributes --- */

/* How many names there are: a list of texts, or (in examples) one text with commas. */
static int count_names(const struct attr *a)
{
	if (a->kind == ATTR_STRINGS)
		return a->n;
	int n = *a->s != 0;
	for (const char *s = a->s; *s; s++)
		n += *s == ',';
	return n;
}

enum { LONGEST = 24 };

/* Name number i of `count`; "" where it is too long to be a function's. */
static void name_at(const struct attr *a, int i, char name[static LONGEST])
{
	const char *s = a->kind == ATTR_STRINGS ? a->strings[i] : a->s;
	for (; a->kind != ATTR_STRINGS && i > 0; i--)
		s += strcspn(s, ",") + 1;
	const size_t len = a->kind == ATTR_STRINGS ? strlen(s) : strcspn(s, ",");
	*name = 0;
	if (len < LONGEST) {
		memcpy(name, s, len);
		name[len] = 0;
	}
}

/* Element i of a list of reals; `def` past its end. */
static double real_at(const struct attr *a, int i, double def)
{
	if (a && a->kind == ATTR_FLOATS)
		return i < a->n ? a->floats[i] : def;
	return a && a->kind == ATTR_FLOAT && i == 0 ? a->f : def;
}

static enum status check_alpha(struct graph *g, const struct node *n, const struct activation *a)
{
	if (a->kind->noption > 0 && !(a->option[0] >= a->kind->least))
		return node_fail(g, n, NULL, "activation %s with alpha %g is not supported",
			a->kind->name, a->option[0]);
	if (!strcmp(a->kind->name, "ScaledTanh") && a->option[0] == 0)
		return node_fail(g, n, NULL, "activation ScaledTanh has alpha 0");
	return ST_OK;
}

/* The function of that name, with the next values of the lists that it has a use for. */
static enum status read_activation(struct graph *g, const struct node *n, const char *name,
	int *nalpha, int *nbeta, struct activation *out)
{
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (!strcasecmp(kinds[k].name, name))
			out->kind = &kinds[k];
	if (!out->kind)
		return node_fail(
			g, n, NULL, "activation '%s' is not a function that ONNX lists", name);
	const double *def = out->kind->option;
	if (out->kind->noption > 0)
		out->option[0] = real_at(node_attr(n, "activation_alpha"), (*nalpha)++, def[0]);
	if (out->kind->noption > 1)
		out->option[1] = real_at(node_attr(n, "activation_beta"), (*nbeta)++, def[1]);
	return check_alpha(g, n, out);
}

enum status recurrent_activations(struct graph *g, const struct node *n, struct recurrent *p)
{
	static const char *const usual[] = {"Sigmoid,Tanh,Tanh", "Sigmoid,Tanh", "Tanh"};
	static const int functions[] = {3, 2, 1};
	const struct attr def = {.kind = ATTR_STRING, .s = usual[p->cell]};
	const struct attr *a = node_attr(n, "activations");
	const int each = functions[p->cell], all = (int)p->directions * each;
	int nalpha = 0, nbeta = 0;
	if (!a || (a->kind != ATTR_STRINGS && a->kind != ATTR_STRING))
		a = &def;
	const int count = count_names(a);
	/* RNN's default names two functions whatever the direction */
	if (count < all && count != each)
		return node_fail(g, n, NULL, "activations has %d names, not %d", count, all);
	for (int i = 0; i < all; i++) {
		char name[LONGEST];
		name_at(a, i < count ? i : i % each, name);
		TRY(read_activation(g, n, name, &nalpha, &nbeta, &p->act[i / each][i % each]));
	}
	return ST_OK;
}

/* --- Calls --- */

int activation_fields(
	struct emit *e, const struct activation *a, int d, int k, struct call_field field[3])
{
	static const char *const word[] = {"ACT_SIGMOID", "ACT_TANH", "ACT_RELU", "ACT_AFFINE",
		"ACT_LEAKY_RELU", "ACT_THRESHOLDED_RELU", "ACT_SCALED_TANH", "ACT_HARD_SIGMOID",
		"ACT_ELU", "ACT_SOFTSIGN", "ACT_SOFTPLUS"}; /* by kind */
	static const char *const option[] = {"alpha", "beta"};
	int n = 0;
	field[n++] = (struct call_field){
		emit_text(e, "act[%d][%d].kind", d, k), ARG_NAME(word[a->kind - kinds])};
	for (int i = 0; i < a->kind->noption; i++)
		field[n++] = (struct call_field){
			emit_text(e, "act[%d][%d].%s", d, k, option[i]), ARG_REAL(a->option[i])};
	return n;
}

/* --- CUDA's text --- */

/* clang-format off */
static const char clip_text[] =
"/* Each of n numbers, brought into [-bound, bound]. */\n"
"static void clip_row(int64_t n, real bound, real *x)\n"
"{\n"
"	for (int64_t i = 0; i < n; i++)\n"
"		x[i] = x[i] < -bound ? -bound : x[i] > bound ? bound : x[i];\n"
"}\n";

static const char clipped_text[] =
"/* d = 0 where a function's value is that of a clipped argument. */\n"
"static void clip_slope_row(int64_t n, const real *edge, const real *y, real *restrict d)\n"
"{\n"
"	for (int64_t i = 0; i < n; i++)\n"
"		d[i] = y[i] == edge[0] || y[i] == edge[1] ? 0 : d[i];\n"
"}\n";
/* clang-format on */

/* The parameters, or with a graph the arguments, that `text` reads. */
static void options_text(const struct emit *e, const struct activation *a, const char *text,
	bool arguments, char out[static 120])
{
	static const char *const name[] = {"alpha", "beta"};
	char literal[40];
	size_t at = 0;
	*out = 0;
	for (int i = 0; i < a->kind->noption; i++)
		if (strstr(text, name[i]))
			at += (size_t)snprintf(out + at, 120 - at, arguments ? ", %s" : ", real %s",
				arguments ? emit_real(e, a->option[i], literal) : name[i]);
}

static void use_value(struct emit *e, const struct activation *a)
{
	char name[64], option[120], text[500];
	snprintf(name, sizeof name, "%s_row", a->kind->id);
	options_text(e, a, a->kind->expr, false, option);
	snprintf(text, sizeof text,
		"static void %s(int64_t n%s, real *x)\n{\n\tfor (int64_t i = 0; i < n; i++) "
		"{\n\t\tconst real a = x[i];\n\t\tx[i] = %s;\n\t}\n}\n",
		name, option, a->kind->expr);
	emit_helper(e, name, text);
}

static void use_slope(struct emit *e, const struct activation *a)
{
	char name[64], option[120], text[500];
	const bool read = strcmp(a->kind->slope, "alpha") != 0;
	snprintf(name, sizeof name, "%s_slope_row", a->kind->id);
	options_text(e, a, a->kind->slope, false, option);
	snprintf(text, sizeof text,
		"static void %s(int64_t n%s%s, real *restrict d)\n{\n\tfor (int64_t i = 0; i < n; "
		"i++) {\n%s\t\td[i] *= %s;\n\t}\n}\n",
		name, option, read ? ", const real *y" : "",
		read ? "\t\tconst real a = y[i];\n" : "", a->kind->slope);
	emit_helper(e, name, text);
}

static bool same_activation(const struct activation *a, const struct activation *b)
{
	return a->kind == b->kind && a->option[0] == b->option[0] && a->option[1] == b->option[1];
}

static void value_call(
	struct emit *e, const struct activation *a, const char *count, const char *at)
{
	char option[120];
	use_value(e, a);
	options_text(e, a, a->kind->expr, true, option);
	emit(e, "%s_row(%s%s, %s);\n", a->kind->id, count, option, at);
}

static void slope_call(struct emit *e, const struct activation *a, const char *count,
	const char *value, const char *at)
{
	char option[120];
	const bool read = strcmp(a->kind->slope, "alpha") != 0;
	use_slope(e, a);
	options_text(e, a, a->kind->slope, true, option);
	emit(e, "%s_slope_row(%s%s%s%s, %s);\n", a->kind->id, count, option, read ? ", " : "",
		read ? value : "", at);
}

void emit_activation(struct emit *e, const struct recurrent *p, int k, const char *tabs,
	const char *count, const char *at)
{
	const bool both = p->directions == 2 && !same_activation(&p->act[0][k], &p->act[1][k]);
	char literal[40];
	if (p->clip > 0) {
		emit_helper(e, "clip_row", clip_text);
		emit(e, "%sclip_row(%s, %s, %s);\n", tabs, count, emit_real(e, p->clip, literal),
			at);
	}
	emit(e, both ? "%sif (d == 0)\n%s\t" : "%s", tabs, tabs);
	value_call(e, &p->act[0][k], count, at);
	if (both) {
		emit(e, "%selse\n%s\t", tabs, tabs);
		value_call(e, &p->act[1][k], count, at);
	}
}

void emit_slope(struct emit *e, const struct recurrent *p, int k, const char *tabs,
	const char *count, const char *value, const char *at)
{
	const bool both = p->directions == 2 && !same_activation(&p->act[0][k], &p->act[1][k]);
	emit(e, both ? "%sif (d == 0)\n%s\t" : "%s", tabs, tabs);
	slope_call(e, &p->act[0][k], count, value, at);
	if (both) {
		emit(e, "%selse\n%s\t", tabs, tabs);
		slope_call(e, &p->act[1][k], count, value, at);
	}
	if (p->clip > 0) {
		emit_helper(e, "clip_slope_row", clipped_text);
		emit(e, "%sclip_slope_row(%s, edge%d, %s, %s);\n", tabs, count, k, value, at);
	}
}

void emit_edges(struct emit *e, const struct recurrent *p, int n, const char *tabs)
{
	char literal[40], name[16];
	for (int k = 0; p->clip > 0 && k < n; k++) {
		emit_real(e, p->clip, literal);
		emit(e, "%sreal edge%d[2] = {-%s, %s};\n", tabs, k, literal, literal);
		snprintf(name, sizeof name, "edge%d", k);
		emit_activation(e, p, k, tabs, "2", name);
	}
}
