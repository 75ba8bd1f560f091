#include "tests/gpu/shim/tools.h"

#include <stdio.h>

struct shim *open_text(const char *library)
{
	char error[SHIM_TEXT];
	struct shim *s = shim_open(library, error);
	if (!s)
		fail_msg("%s", error);
	return s;
}

void fill(float *x, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		x[i] = (float)(seed >> 8) / (float)(1 << 22) - 2;
	}
}
