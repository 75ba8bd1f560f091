#include "tests/gpu/shim/tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *text_library;
struct shim *text;

int text_open(void **state)
{
	char error[SHIM_TEXT];
	(void)state;
	text = shim_open(text_library, error);
	if (!text)
		fail_msg("%s", error);
	return 0;
}

int text_close(void **state)
{
	(void)state;
	shim_close(text);
	return 0;
}

void fill(float *x, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		x[i] = (float)(seed >> 8) / (float)(1 << 22) - 2;
	}
}

void run_both(struct shim_launch *l)
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

double distance(const float *y, const double *want, int n)
{
	double most = 0, far = 0;
	for (int i = 0; i < n; i++) {
		most = fmax(most, fabs(want[i]));
		far = fmax(far, fabs(y[i] - want[i]));
		if (y[i] != y[i])
			return INFINITY;
	}
	return far / most;
}
