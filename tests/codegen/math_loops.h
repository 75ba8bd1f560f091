/* Loops over the single-precision functions of generated code, for the tests of their errors
 * (test_math.c, math_table.c) and of their bits (math_bits.c). */
#ifndef TESTS_CODEGEN_MATH_LOOPS_H
#define TESTS_CODEGEN_MATH_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

/* X(capital, name, largest error in units of the last place, rounded up): what the comments and
 * docs/explanation/determinism.md promise. */
#define MATH_FUNCTIONS(X)                                                                          \
	X(EXP, exp, 1.0)                                                                           \
	X(TANH, tanh, 1.6)                                                                         \
	X(ERF, erf, 1.6)                                                                           \
	X(LOG, log, 1.0)                                                                           \
	X(LOG1P, log1p, 1.6)                                                                       \
	X(SIN, sin, 1.6)                                                                           \
	X(COS, cos, 1.6)                                                                           \
	X(TAN, tan, 0.6)                                                                           \
	X(SINH, sinh, 0.6)                                                                         \
	X(COSH, cosh, 0.6)                                                                         \
	X(ASIN, asin, 0.6)                                                                         \
	X(ACOS, acos, 0.6)                                                                         \
	X(ATAN, atan, 0.6)                                                                         \
	X(ASINH, asinh, 0.6)                                                                       \
	X(ACOSH, acosh, 0.6)                                                                       \
	X(ATANH, atanh, 0.6)
#define MATH_POW_MOST 0.6

/* y[i] = f(x[i]), compiled: v_exp, ...; v_pow takes the exponents too. */
typedef void math_loop(int64_t n, const float *restrict x, float *restrict y);
typedef void math_loop2(
	int64_t n, const float *restrict a, const float *restrict b, float *restrict y);

/* The narrow types: n_wide_bf16, n_wide_fp16; n_narrow_bf16, n_narrow_fp16. */
typedef void wide_loop(int64_t n, const uint16_t *restrict x, float *restrict y);
typedef void narrow_loop(int64_t n, const float *restrict x, uint16_t *restrict y);

/* Writes the loops' C text to a file; false: could not. */
bool math_loops_write(const char *path);
/* The same compiled, in `folder`, with a step's flags and `more`; NULL: could not. For dlsym. */
void *math_loops_open(const char *folder, const char *more);

/* How far `got` is from `want`, in units of the last place of a float at `want`; infinite where one
 * is a NaN, or a zero has the wrong sign. Infinities count as 2^128. */
double math_distance(float got, double want);

#endif
