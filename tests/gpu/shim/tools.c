#include "tests/gpu/shim/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void run_both(struct shim *text, struct shim_launch *l)
{
	void *before[8], *forward[8];
	assert_true(l->nranges <= 8);
	for (int i = 0; i < l->nranges; i++) {
		before[i] = malloc(l->ranges[i].bytes);
		forward[i] = malloc(l->ranges[i].bytes);
		assert_non_null(before[i]);
		assert_non_null(forward[i]);
		memcpy(before[i], l->ranges[i].at, l->ranges[i].bytes);
	}
	for (int order = 0; order < 2; order++) {
		l->order = order ? SHIM_REVERSE : SHIM_FORWARD;
		const char *error = shim_launch(text, l);
		if (error)
			fail_msg("%s", error);
		for (int i = 0; i < l->nranges; i++) {
			void *at = (void *)(uintptr_t)l->ranges[i].at;
			if (order)
				assert_memory_equal(at, forward[i], l->ranges[i].bytes);
			else
				memcpy(forward[i], at, l->ranges[i].bytes);
			if (!order && l->ranges[i].writable)
				memcpy(at, before[i], l->ranges[i].bytes);
		}
	}
	for (int i = 0; i < l->nranges; i++) {
		free(before[i]);
		free(forward[i]);
	}
}
