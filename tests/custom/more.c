/* test.ops.Blend(x, w): z = x w over the last axis, and the sums of z's rows. What its string
 * attribute `how` names goes wrong, or differs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "stint_op.h"

static bool how(const struct stint_call *c, const char *what)
{
	return !strcmp(stint_string(c, "how", ""), what);
}

static int blend_shape(struct stint_call *c, struct stint_op_tensor *out)
{
	const struct stint_op_tensor *x = &c->in[0], *w = &c->in[1];
	if (how(c, "fail"))
		return stint_fail(c, "no %s with %d inputs", "way", c->nin);
	if (how(c, "silent"))
		return 7;
	if (x->rank < 1 || w->rank != 1 || w->dim[0] != x->dim[x->rank - 1])
		return stint_fail(c, "its weight has not one element a column");
	out[0] = *x;
	out[1] = *x;
	out[1].rank--;
	c->scratch = how(c, "ws") ? 0 : x->dim[x->rank - 1] * c->real_bytes;
	c->flops = how(c, "flops") ? (double)NAN : 2.0 * (double)stint_count(x);
	if (how(c, "type"))
		out[0].type = STINT_TYPE_ABSENT;
	if (how(c, "rank"))
		out[0].rank = 9;
	if (how(c, "size"))
		out[1].dim[0] = -4;
	if (how(c, "huge"))
		out[0].dim[0] = out[0].dim[1] = INT64_MAX / 2;
	if (how(c, "scratch"))
		c->scratch = -1;
	if (how(c, "build"))
		return stint_op1(c, "Neg", stint_input(c, 0));
	if (how(c, "print"))
		stint_print(c, "x");
	return stint_failed(c);
}

/* One node for both: what a row's sums hand on is left out, since no test asks for it. */
static int blend_gradient(
	struct stint_call *c, const stint_value *dy, const bool *want, stint_value *dx)
{
	const stint_value in[] = {dy[0], stint_input(c, 0), stint_input(c, 1)};
	stint_value out[2];
	struct stint_op_tensor type;
	if (how(c, "handle"))
		dx[1] = 12345;
	if (how(c, "handle"))
		return 0;
	if (how(c, "operator"))
		stint_op1(c, "Nonsense", dy[0]);
	if (how(c, "own"))
		stint_op2(c, "stint.ReluGrad", dy[0], dy[0]);
	if (how(c, "missing"))
		stint_op2(c, "Mul", dy[0], 0);
	if (how(c, "outputs"))
		stint_node(c, "Neg", 1, in, 2, out, 0, NULL);
	if (how(c, "attribute"))
		stint_node(c, "Neg", 1, in, 1, out, 1, &(struct stint_attribute){.name = NULL});
	if (how(c, "input"))
		stint_input(c, -1);
	if (how(c, "output"))
		stint_output(c, 5);
	if (how(c, "list"))
		stint_node(c, "Neg", 1, NULL, 1, out, 0, NULL);
	if (how(c, "ints"))
		stint_ints(c, 3, NULL);
	if (how(c, "sum"))
		stint_sum_to(c, in[2], &c->in[0]);
	if (how(c, "whole")) {
		stint_node(c, "Cast", 1, &in[2], 1, &dx[1], 1,
			&(struct stint_attribute){
				.name = "to", .kind = STINT_ATTRIBUTE_INT, .i = 7});
		return stint_failed(c);
	}
	if (stint_node(c, "test.ops.BlendGrad", 3, in, 2, out, 0, NULL))
		return stint_failed(c);
	if (stint_describe(c, out[1], &type) || type.rank != c->in[0].rank)
		return stint_fail(c, "its gradient came out wrong");
	if (want[0])
		dx[0] = out[0];
	if (want[1])
		dx[1] = how(c, "shape") ? out[1] : stint_sum_to(c, out[1], &c->in[1]);
	return stint_failed(c);
}

static int blend_body(struct stint_call *c)
{
	int64_t n = stint_count(&c->out[1]), columns = c->in[1].dim[0];
	if (how(c, "nothing"))
		return 0;
	if (how(c, "text"))
		stint_print(c, "\tthis is no C;");
	if (how(c, "outside"))
		stint_helper(c, "test.ops.outside", "double test_outside(double x);\n");
	stint_print(c, "\treal *row = ws;\n");
	stint_print(c, "\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", n);
	stint_print(c, "\t\tfor (int64_t j = 0; j < %" PRId64 "; j++)\n", columns);
	stint_print(c, "\t\t\trow[j] = %s(x0[i * %" PRId64 " + j] * x1[j]);\n",
		how(c, "outside") ? "(real)test_outside" : "", columns);
	stint_print(c, "\t\ty1[i] = sum_lanes(row, %" PRId64 ");\n", columns);
	stint_print(c, "\t\tmemcpy(y0 + i * %" PRId64 ", row, %" PRId64 " * sizeof *row);\n\t}",
		columns, columns);
	return stint_failed(c);
}

static int grad_shape(struct stint_call *c, struct stint_op_tensor *out)
{
	out[0] = out[1] = c->in[1];
	return 0;
}

static int grad_body(struct stint_call *c)
{
	int64_t n = stint_count(&c->out[0]), columns = c->in[2].dim[0];
	stint_parallel(c, (double)n * 2, 1);
	stint_print(c, "\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", n);
	stint_print(c, "\t\ty1[i] = x0[i] * x1[i];\n");
	stint_print(c, "\t\ty0[i] = times(x0[i], x2[i %% %" PRId64 "]);\n\t}\n", columns);
	return stint_failed(c);
}

const struct stint_op stint_ops[] = {
	{.name = "test.ops.Blend",
		.min_in = 2,
		.max_in = 2,
		.nout = 2,
		.npair = 1,
		.pair = {{0, 0}},
		.shape = blend_shape,
		.gradient = blend_gradient,
		.body = blend_body},
	{.name = "test.ops.BlendGrad",
		.min_in = 3,
		.max_in = 3,
		.nout = 2,
		.npair = 2,
		/* the second never fits: a row of weights is shorter */
		.pair = {{0, 0}, {1, 2}},
		.flags = STINT_STOPS_GRADIENT,
		.shape = grad_shape,
		.body = grad_body,
		.helper = "static real times(real a, real b)\n{\n\treturn a * b;\n}"},
	{.name = NULL},
};
const int stint_ops_version = STINT_OPS_VERSION;
