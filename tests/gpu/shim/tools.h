/* What the shim's tests share. */
#ifndef STINT_SHIM_TOOLS_H
#define STINT_SHIM_TOOLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gpu/shim/shim.h"

/* The library of kernels under test: a program sets its name; what opens and closes it goes before
 * and behind the tests. */
extern const char *text_library;
extern struct shim *text;
int text_open(void **state);
int text_close(void **state);
/* Floats from -2 to 2, the same each time. */
void fill(float *x, size_t n, unsigned seed);
#define RANGE(array, bytes, writable)                                                              \
	{                                                                                          \
		array, bytes, writable, #array                                                     \
	}
/* Runs forwards, keeps what stands in the ranges to be written, runs backwards from the same start:
 * with equal bits. */
void run_both(struct shim_launch *l);
/* The largest distance, relative to the largest value; infinite where y has a NaN. */
double distance(const float *y, const double *want, int n);

#endif
