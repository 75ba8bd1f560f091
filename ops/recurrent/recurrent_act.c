/* The activation functions that ONNX lists for LSTM, GRU and RNN. A slope is computed from the
 * function's value, so that nothing else has to be kept. */
#include <stdio.h>
#include <strings.h>

#include "ops/recurrent/recurrent_op.h"

#define VALUE_OF(id, text)                                                                         \
	POINTWISE_REF(id, text, const double alpha = option[0], beta = option[1]; (void)alpha;     \
		      (void)beta)
VALUE_OF(sigmoid, 1 / (1 + EXP(-a)))
VALUE_OF(tanh, TANH(a))
VALUE_OF(relu, a <= 0 ? 0 : a)
VALUE_OF(affine, alpha *a + beta)
VALUE_OF(leaky, a >= 0 ? a : alpha * a)
VALUE_OF(thresholded, a < alpha ? 0 : a)
VALUE_OF(scaled_tanh, alpha *TANH(beta *a))
VALUE_OF(hard_sigmoid, MAX(0, MIN(1, alpha *a + beta)))
VALUE_OF(elu, a >= 0 ? a : alpha * (EXP(a) - 1))
VALUE_OF(softsign, a / (1 + FABS(a)))
VALUE_OF(softplus, MAX(a, 0) + LOG1P(EXP(-FABS(a))))

struct activation_kind {
	const char *name, *id;
	int noption;
	double option[2]; /* defaults: those of the ONNX operator of that name */
	double least;     /* of alpha: below it the value does not tell the slope */
	double (*ref)(const double *in, const double *option);
};

static const struct activation_kind kinds[] = {
	{"Sigmoid", "sigmoid", 0, {0, 0}, 0, sigmoid_ref},
	{"Tanh", "tanh", 0, {0, 0}, 0, tanh_ref},
	{"Relu", "relu", 0, {0, 0}, 0, relu_ref},
	{"Affine", "affine", 2, {1, 0}, -INFINITY, affine_ref},
	{"LeakyRelu", "leaky_relu", 1, {0.01, 0}, 0, leaky_ref},
	{"ThresholdedRelu", "thresholded_relu", 1, {1, 0}, -INFINITY, thresholded_ref},
	{"ScaledTanh", "scaled_tanh", 2, {1, 1}, -INFINITY, scaled_tanh_ref},
	{"HardSigmoid", "hard_sigmoid", 2, {0.2, 0.5}, -INFINITY, hard_sigmoid_ref},
	{"Elu", "elu", 1, {1, 0}, 0, elu_ref},
	{"Softsign", "softsign", 0, {0, 0}, 0, softsign_ref},
	{"Softplus", "softplus", 0, {0, 0}, 0, softplus_ref},
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

struct call_table activation_table(
	const struct recurrent *p, struct call_arg value[ACTIVATION_VALUES])
{
	static const char *const word[] = {"ACT_SIGMOID", "ACT_TANH", "ACT_RELU", "ACT_AFFINE",
		"ACT_LEAKY_RELU", "ACT_THRESHOLDED_RELU", "ACT_SCALED_TANH", "ACT_HARD_SIGMOID",
		"ACT_ELU", "ACT_SOFTSIGN", "ACT_SOFTPLUS"}; /* by kind */
	const int rows = (int)p->directions * 3;
	for (int i = 0; i < rows; i++) {
		const struct activation *a = &p->act[i / 3][i % 3];
		*value++ = ARG_NAME(word[a->kind ? a->kind - kinds : 0]);
		for (int k = 0; k < 2; k++)
			*value++ = ARG_REAL(a->option[k]);
	}
	return (struct call_table){"struct activation", "act", rows, 3, value - rows * 3};
}
