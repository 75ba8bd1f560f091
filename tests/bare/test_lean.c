/* Where nothing is packed, the bits are those of the packing kernels: products and convolutions of
 * random shapes, strides, dilations, paddings and groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/matmul.h"
#include "kernels/window.h"
#include "tests/bare/lean.h"

enum { ROOM = 1 << 18 };
static float x[ROOM], weight[ROOM], dy[ROOM], bias[256], packed[ROOM], lean[ROOM];
static _Alignas(64) unsigned char ws[1 << 24];

static int64_t from_to(int64_t from, int64_t to)
{
	return from + rand() % (to - from + 1);
}

static void fill(float *v, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		v[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

/* NaNs, so that what is not written is seen. */
static void forget(void)
{
	memset(packed, 0xff, sizeof packed);
	memset(lean, 0xff, sizeof lean);
}

static void same(int64_t n)
{
	assert_true(n > 0 && n <= ROOM);
	for (int64_t i = 0; i < n; i++)
		assert_true(packed[i] == packed[i]);
	assert_memory_equal(packed, lean, (size_t)n * sizeof *lean);
}

static void products(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct matmul_shape s = {.batch = from_to(1, 2),
			.m = from_to(1, 37),
			.n = from_to(1, 70),
			.k = from_to(1, 600)};
		const int ta = rand() % 2, tb = rand() % 2;
		s.rows = 24;
		s.columns = 32;
		s.a_step = s.m * s.k;
		s.a_row = ta ? 1 : s.k;
		s.a_column = ta ? s.m : 1;
		s.b_step = s.k * s.n;
		s.b_row = tb ? 1 : s.n;
		s.b_column = tb ? s.k : 1;
		fill(x, s.batch * s.m * s.k);
		fill(weight, s.batch * s.k * s.n);
		fill(bias, s.n);
		forget();
		packed_ways.product(&s, packed, x, weight, i % 2 ? bias : NULL, ws);
		s.rows = s.m;
		s.columns = s.n;
		lean_ways.product(&s, lean, x, weight, i % 2 ? bias : NULL, ws);
		same(s.batch * s.m * s.n);
	}
}

/* A convolution with at least one window on each axis. */
static void random_window(struct window *w, int64_t axes)
{
	*w = (struct window){.kernel = {1, 1, 1},
		.stride = {1, 1, 1},
		.dilation = {1, 1, 1},
		.size = {1, 1, 1},
		.out = {1, 1, 1}};
	for (int64_t a = 3 - axes; a < 3; a++) {
		w->kernel[a] = from_to(1, 4);
		w->stride[a] = from_to(1, 3);
		w->dilation[a] = from_to(1, 2);
		w->before[a] = from_to(0, w->kernel[a] - 1);
		w->after[a] = from_to(0, 2);
		const int64_t seen = (w->kernel[a] - 1) * w->dilation[a] + 1;
		w->size[a] = seen + from_to(0, axes > 2 ? 4 : 14);
		w->out[a] = (w->before[a] + w->size[a] + w->after[a] - seen) / w->stride[a] + 1;
	}
}

static void convolve(const struct window *w, const struct conv_shape *s, const struct ways *way,
	int which, float *y, int with_bias)
{
	switch (which) {
	case 0:
		way->forward(w, s, y, x, weight, with_bias ? bias : NULL, ws);
		break;
	case 1:
		way->grad_x(w, s, y, dy, weight, ws);
		break;
	case 2:
		way->grad_w(w, s, y, x, dy, ws);
		break;
	default:
		way->depth(w, s, y, x, dy, ws);
	}
}

/* All three; of a depthwise one the weight's gradient by lanes. */
static void compare(const struct window *w, struct conv_shape s, int depthwise)
{
	const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2],
		      plane = w->size[0] * w->size[1] * w->size[2],
		      out = w->out[0] * w->out[1] * w->out[2];
	const int64_t nx = s.images * s.channels * plane, ny = s.images * s.filters * out,
		      nw = s.filters * s.channels / s.groups * taps, n[] = {ny, nx, nw, nw};
	fill(x, nx);
	fill(dy, ny);
	fill(weight, nw);
	fill(bias, s.filters);
	for (int which = depthwise ? 3 : 0; which < (depthwise ? 4 : 3); which++) {
		forget();
		s.rows = 12 * from_to(1, 3);
		s.columns = from_to(1, 32);
		s.lines = from_to(1, 8);
		s.turn = from_to(1, 5);
		s.boxes = from_to(0, 3);
		convolve(w, &s, &packed_ways, which, packed, rand() % 2 || !which);
		s.rows = from_to(1, 40);
		s.columns = from_to(1, 300);
		convolve(w, &s, &lean_ways, which, lean, 1);
		same(n[which]);
	}
}

static void convolutions(void **state)
{
	(void)state;
	for (int i = 0; i < 150; i++) {
		struct window w;
		random_window(&w, 1 + i % 3);
		const int64_t groups = i % 5 ? 1 : 2;
		compare(&w,
			(struct conv_shape){.images = from_to(1, 2),
				.channels = groups * from_to(1, i % 7 ? 6 : 40),
				.filters = groups * from_to(1, 13),
				.groups = groups},
			0);
	}
}

static void depthwise(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct window w;
		random_window(&w, 1 + i % 2);
		const int64_t channels = 16 * from_to(1, 2);
		compare(&w,
			(struct conv_shape){.images = from_to(1, 3),
				.channels = channels,
				.filters = channels,
				.groups = channels},
			1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(products),
		cmocka_unit_test(convolutions), cmocka_unit_test(depthwise)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
