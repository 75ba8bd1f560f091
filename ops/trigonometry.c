/* Trigonometric and hyperbolic functions and their inverses. */
#include "ops/unary.h"

POINTWISE(sin, SIN(a))
POINTWISE(sin_grad, a *COS(b))
POINTWISE(cos, COS(a))
POINTWISE(cos_grad, -a *SIN(b))
POINTWISE(tan, TAN(a))
POINTWISE(tan_grad, a *(1 + b * b))
POINTWISE(asin, ASIN(a))
POINTWISE(asin_grad, a / SQRT(1 - b * b))
POINTWISE(acos, ACOS(a))
POINTWISE(acos_grad, -a / SQRT(1 - b * b))
POINTWISE(atan, ATAN(a))
POINTWISE(atan_grad, a / (1 + b * b))
POINTWISE(sinh, SINH(a))
POINTWISE(sinh_grad, a *COSH(b))
POINTWISE(cosh, COSH(a))
POINTWISE(cosh_grad, a *SINH(b))
POINTWISE(asinh, ASINH(a))
POINTWISE(asinh_grad, a / SQRT(b * b + 1))
POINTWISE(acosh, ACOSH(a))
POINTWISE(acosh_grad, a / SQRT(b * b - 1))
POINTWISE(atanh, ATANH(a))
POINTWISE(atanh_grad, a / (1 - b * b))

RULE(sin, "stint.SinGrad", in)
RULE(cos, "stint.CosGrad", in)
RULE(tan, "stint.TanGrad", out)
RULE(asin, "stint.AsinGrad", in)
RULE(acos, "stint.AcosGrad", in)
RULE(atan, "stint.AtanGrad", in)
RULE(sinh, "stint.SinhGrad", in)
RULE(cosh, "stint.CoshGrad", in)
RULE(asinh, "stint.AsinhGrad", in)
RULE(acosh, "stint.AcoshGrad", in)
RULE(atanh, "stint.AtanhGrad", in)

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
