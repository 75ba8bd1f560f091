/* What the shim's tests share. */
#ifndef STINT_SHIM_TOOLS_H
#define STINT_SHIM_TOOLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gpu/shim/shim.h"

/* A library; the test fails where it cannot be opened. */
struct shim *open_text(const char *library);
/* Floats from -2 to 2, the same each time. */
void fill(float *x, size_t n, unsigned seed);
#define RANGE(array, bytes, writable)                                                              \
	{                                                                                          \
		array, bytes, writable, #array                                                     \
	}
/* Runs forwards, keeps what stands in the ranges to be written, runs backwards from the same start:
 * with equal bits. */
void run_both(struct shim *text, struct shim_launch *l);

#endif
