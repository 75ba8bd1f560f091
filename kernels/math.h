/* SPDX-License-Identifier: MIT-0 */
/* Elementary functions on `real`, in capitals: of single precision our own, of double the C
 * library's. */
#ifndef STINT_KERNELS_MATH_H
#define STINT_KERNELS_MATH_H

#include "words.h"

#ifdef STINT_DOUBLE
#define EXP exp
#define TANH tanh
#define ERF erf
#define NORMAL_CDF(x) (0.5 * erfc((x) * -0.70710678118654752))
#define LOG log
#define LOG1P log1p
#define POW pow
#define SIN sin
#define COS cos
#define TAN tan
#define SINH sinh
#define COSH cosh
#define ASIN asin
#define ACOS acos
#define ATAN atan
#define ASINH asinh
#define ACOSH acosh
#define ATANH atanh
#else
#include "math_f32.h"
#include "math_wide.h"
#endif

#ifdef STINT_BARE
#define WIDER_LOG(x) _Generic((wider)0, float : LOG, double : log_double)(x)
#endif

#endif
