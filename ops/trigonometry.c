/* Trigonometric and hyperbolic functions and their inverses. */
#include "ops/unary.h"

POINTWISE(sin, SIN(a))
SLOPE(sin, "stint.SinGrad", in, a *COS(b))
POINTWISE(cos, COS(a))
SLOPE(cos, "stint.CosGrad", in, -a *SIN(b))
POINTWISE(tan, TAN(a))
SLOPE(tan, "stint.TanGrad", out, a *(1 + b * b))
POINTWISE(asin, ASIN(a))
SLOPE(asin, "stint.AsinGrad", in, a / SQRT(1 - b * b))
POINTWISE(acos, ACOS(a))
SLOPE(acos, "stint.AcosGrad", in, -a / SQRT(1 - b * b))
POINTWISE(atan, ATAN(a))
SLOPE(atan, "stint.AtanGrad", in, a / (1 + b * b))
POINTWISE(sinh, SINH(a))
SLOPE(sinh, "stint.SinhGrad", in, a *COSH(b))
POINTWISE(cosh, COSH(a))
SLOPE(cosh, "stint.CoshGrad", in, a *SINH(b))
POINTWISE(asinh, ASINH(a))
SLOPE(asinh, "stint.AsinhGrad", in, a / SQRT(b * b + 1))
POINTWISE(acosh, ACOSH(a))
SLOPE(acosh, "stint.AcoshGrad", in, a / SQRT(b * b - 1))
POINTWISE(atanh, ATANH(a))
SLOPE(atanh, "stint.AtanhGrad", in, a / (1 - b * b))

#define INSIDE_ONE                                                                                 \
	EXAMPLES({.in = "a,B", .low = -0.9, .high = 0.9}, {.in = "33", .low = -0.5, .high = 0.5})
#define ABOVE_ONE EXAMPLES({.in = "a,B", .low = 1.1, .high = 3}, {.in = "33", .low = 2, .high = 90})

const struct op_def ops_trigonometry[] = {
	UNARY("Sin", 7, sin, .example = ANY),
	UNARY("Cos", 7, cos, .example = ANY),
	UNARY("Tan", 7, tan, .example = ANY),
	UNARY("Asin", 7, asin, .example = INSIDE_ONE),
	UNARY("Acos", 7, acos, .example = INSIDE_ONE),
	UNARY("Atan", 7, atan, .example = ANY),
	UNARY("Sinh", 9, sinh, .example = ANY),
	UNARY("Cosh", 9, cosh, .example = ANY),
	UNARY("Asinh", 9, asinh, .example = ANY),
	UNARY("Acosh", 9, acosh, .example = ABOVE_ONE),
	UNARY("Atanh", 9, atanh, .example = INSIDE_ONE),
	GRADIENT("stint.SinGrad", sin_grad),
	GRADIENT("stint.CosGrad", cos_grad),
	GRADIENT("stint.TanGrad", tan_grad),
	GRADIENT("stint.AsinGrad", asin_grad),
	GRADIENT("stint.AcosGrad", acos_grad),
	GRADIENT("stint.AtanGrad", atan_grad),
	GRADIENT("stint.SinhGrad", sinh_grad),
	GRADIENT("stint.CoshGrad", cosh_grad),
	GRADIENT("stint.AsinhGrad", asinh_grad),
	GRADIENT("stint.AcoshGrad", acosh_grad),
	GRADIENT("stint.AtanhGrad", atanh_grad),
	{0},
};
