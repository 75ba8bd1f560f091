/* What every family file includes. */
#ifndef STINT_OPS_FAMILY_H
#define STINT_OPS_FAMILY_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "codegen/call.h"
#include "codegen/emit.h"
#include "graph/cost.h"
#include "graph/lowering.h"
#include "graph/op_example.h"
#include "ops/ops.h"

/* One text for generated C, CUDA, constant folding and the double-precision reference:
 *
 *	POINTWISE(relu, a <= 0 ? 0 : a)
 *	POINTWISE_OPT1(leaky_relu, alpha, a > 0 ? a : alpha * a)
 *
 * define relu_expr (the text) and relu_ref. In the text: a, b, ... h are the inputs, options stand
 * by their names, literals that are not whole numbers are written R(0.5), functions in capitals
 * (EXP, TANH, ...). */
#define POINTWISE_REF(id, text, ...)                                                               \
	static double id##_ref(const double *in, const double *option)                             \
	{                                                                                          \
		const double a = in[0], b = in[1], c = in[2], d = in[3], e = in[4], f = in[5],     \
			     g = in[6], h = in[7];                                                 \
		__VA_ARGS__;                                                                       \
		(void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;            \
		(void)option;                                                                      \
		return (double)(text);                                                             \
	}
/* The text is made here, before the capitals are expanded. */
#define POINTWISE(id, text)                                                                        \
	static const char id##_expr[] = #text;                                                     \
	POINTWISE_REF(id, text, )
#define POINTWISE_OPT1(id, o0, text)                                                               \
	static const char id##_expr[] = #text;                                                     \
	POINTWISE_REF(id, text, const double o0 = option[0])
#define POINTWISE_OPT2(id, o0, o1, text)                                                           \
	static const char id##_expr[] = #text;                                                     \
	POINTWISE_REF(id, text, const double o0 = option[0]; const double o1 = option[1])

/* The same on whole numbers (graph/op.h, int_expr). Sums are made modulo 2^64, by way of uint64_t;
 * what would stop the machine, a division by 0, must have a value. */
#define POINTWISE_INT(id, e)                                                                       \
	static const char id##_int_expr[] = #e;                                                    \
	static int64_t id##_int_ref(const int64_t *in)                                             \
	{                                                                                          \
		const int64_t a = in[0], b = in[1], c = in[2], d = in[3];                          \
		(void)a, (void)b, (void)c, (void)d;                                                \
		return (int64_t)(e);                                                               \
	}

/* Fields of a record that has one. */
#define INT(id) .int_expr = id##_int_expr, .int_ref = id##_int_ref

#define R(x) ((double)(x))
#define EXP exp
#define LOG log
#define LOG1P log1p
#define SQRT sqrt
#define POW pow
#define TANH tanh
#define ERF erf
#define NORMAL_CDF(x) (0.5 * erfc((x) * -0.70710678118654752))
#define FABS fabs
/* As in generated code (codegen/prelude.c), which fmax is not: of a NaN and a number it is y. */
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define FLOOR floor
#define CEIL ceil
#define RINT rint
#define TRUNC trunc
#define TAN tan
#define ASIN asin
#define ACOS acos
#define ATAN atan
#define SINH sinh
#define COSH cosh
#define ASINH asinh
#define ACOSH acosh
#define ATANH atanh
#define SIN sin
#define COS cos
#define FMOD fmod

/* Which tensors of a product are narrow, as its library call has it. */
static inline int product_types(const struct node *n)
{
	const enum dtype type[] = {n->in[0]->dtype, n->in[1]->dtype, n->out[0]->dtype};
	int types = 0;
	for (int i = 0; i < 3; i++) {
		types |= dtype_is_narrow(type[i]) ? STINT_X0_NARROW << i : 0;
		types |= type[i] == DT_F16 ? STINT_NARROW_IS_FP16 : 0;
	}
	return types;
}

static inline int64_t round_up(int64_t v, int64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

static inline int64_t div_up(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static inline int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t clamp64(int64_t x, int64_t least, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

#endif
