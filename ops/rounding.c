/* Functions of one number that go by steps, whose gradient is zero wherever they have one:
 * rounding, the sign, and questions about it. */
#include "ops/unary.h"

POINTWISE(floor, FLOOR(a))
POINTWISE(ceil, CEIL(a))
/* Halves to even: the machine's mode unless someone changes it. */
POINTWISE(round, RINT(a))
POINTWISE(sign, a > 0 ? 1 : a < 0 ? -1 : a) /* NaN stays */
POINTWISE_INT(sign, (a > 0) - (a < 0))
POINTWISE(is_nan, a != a)
POINTWISE_OPT2(is_inf, detect_negative, detect_positive,
	(a == INFINITY && detect_positive != 0) || (a == -INFINITY && detect_negative != 0))

static const struct op_option is_inf_options[] = {{.name = "detect_negative", .value = 1},
	{.name = "detect_positive", .value = 1}, {.name = NULL}};

#define STEPS(onnx, first, id, ...)                                                                \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = 1, .traits = OP_POINTWISE | OP_STOP,       \
		.expr = id##_expr, .ref = id##_ref, __VA_ARGS__                                    \
	}
#define ASKS(onnx, first, id, ...)                                                                 \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = 1,                                         \
		.traits = OP_POINTWISE | OP_STOP | OP_BOOL, .expr = id##_expr, .ref = id##_ref,    \
		__VA_ARGS__                                                                        \
	}
#define FAR                                                                                        \
	EXAMPLES({.in = "a,B", .low = -9, .high = 9}, {.in = "33", .low = -90, .high = 90},        \
		{.in = "=f2.5"})

const struct op_def ops_rounding[] = {
	STEPS("Floor", 6, floor, .example = FAR),
	STEPS("Ceil", 6, ceil, .example = FAR),
	STEPS("Round", 11, round, .example = FAR),
	STEPS("Sign", 9, sign, INT(sign),
		.example = EXAMPLES({.in = "a,B"}, {.in = "=[-3,0,5]"}, {.in = "33:i64<3"})),
	ASKS("IsNaN", 9, is_nan, .example = EXAMPLES({.in = "a,B"})),
	ASKS("IsInf", 10, is_inf, .option = is_inf_options,
		.example = EXAMPLES({.in = "a,B"}, {.in = "33", .attr = "detect_negative=0"},
			{.in = "33", .attr = "detect_positive=0"})),
	{0},
};
