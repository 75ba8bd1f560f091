/* The oneDNN wrapper against plain loops. The data are small whole numbers, so that every sum is
 * exact in fp32 and results must be equal, not close. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <omp.h>

#include "runtime/stint_lib.h"

enum { GUARD = 4096, THREADS = 2 };

/* --- Allocations during a run. --- */

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
#define COUNTING 0
static size_t counted_bytes, counted_largest;
static int counting;
#else
#define COUNTING 1
static size_t counted_bytes, counted_largest;
static int counting;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t size);
void *__libc_memalign(size_t align, size_t n);

static void count(size_t n)
{
	if (!counting)
		return;
#pragma omp critical(counting)
	{
		counted_bytes += n;
		if (n > counted_largest)
			counted_largest = n;
	}
}

void *malloc(size_t n)
{
	count(n);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	count(n * size);
	return __libc_calloc(n, size);
}

void *memalign(size_t align, size_t n)
{
	count(n);
	return __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	count(n);
	return __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	count(n);
	*p = __libc_memalign(align, n);
	return *p ? 0 : 12;
}
#endif

/* --- Data. --- */

static uint32_t random_state;

static float *tensor(int64_t n, int fill)
{
	float *x = aligned_alloc(64, (size_t)(n * 4 + 63) / 64 * 64 + 64);
	assert_non_null(x);
	for (int64_t i = 0; i < n; i++) {
		random_state = random_state * 1664525u + 1013904223u;
		x[i] = fill ? (float)((int)(random_state >> 24) % 7 - 3) : -1e9f;
	}
	return x;
}

/* Runs a call on workspace between guards, twice, and compares with `want`. False when the library
 * declines. */
static int run_and_compare(const struct stint_lib_call *call, const float *const *in, int64_t nout,
	const double *want, const char *what)
{
	char message[256] = "";
	const int64_t bytes = stint_lib_workspace(call, THREADS);
	if (bytes < 0)
		return 0;
	assert_int_equal(bytes % 64, 0);
	assert_int_equal(stint_lib_workspace(call, THREADS), bytes);
	struct stint_lib *l;
	if (stint_lib_new(&l, call, THREADS, message))
		fail_msg("%s: %s", what, message);
	unsigned char *memory = aligned_alloc(64, (size_t)bytes + 2 * GUARD);
	assert_non_null(memory);
	float *first = tensor(nout, 0), *y = tensor(nout, 0);
	void *out[1] = {y};
	for (int round = 0; round < 2; round++) {
		memset(memory, 0xff - round, (size_t)bytes + 2 * GUARD);
		counted_bytes = counted_largest = 0;
		counting = round;
		const int status = stint_lib_run(l, (const void *const *)in, out, memory + GUARD);
		counting = 0;
		assert_int_equal(status, 0);
		for (int i = 0; i < GUARD; i++)
			if (memory[i] != 0xff - round || memory[GUARD + bytes + i] != 0xff - round)
				fail_msg("%s: wrote outside its workspace", what);
		if (round == 0)
			memcpy(first, y, (size_t)nout * 4);
	}
	if (call->kind == STINT_CALL_PRODUCT && call->product.extra == STINT_PRODUCT_ADD) {
		memcpy(y, in[2], (size_t)nout * 4); /* in the place of what is added */
		assert_int_equal(stint_lib_run(l, (const void *const[]){in[0], in[1], y}, out,
					 memory + GUARD),
			0);
	}
	/* Its table of arguments is not arena memory; a packing buffer would have to be. */
	assert_int_equal(counted_bytes > 0, COUNTING);
	if (counted_largest > 512 || counted_bytes > 16384)
		fail_msg("%s: allocates %zu bytes, %zu at once", what, counted_bytes,
			counted_largest);
	assert_memory_equal(first, y, (size_t)nout * 4);
	for (int64_t i = 0; i < nout; i++)
		if ((double)y[i] != want[i])
			fail_msg("%s: element %lld is %g, not %g", what, (long long)i, (double)y[i],
				want[i]);
	stint_lib_free(l);
	free(first);
	free(y);
	free(memory);
	return 1;
}

/* --- matmul --- */

static int matmul_case(const struct stint_product *p)
{
	const int64_t b = p->batch, m = p->m, n = p->n, k = p->k;
	const int bias = p->extra == STINT_PRODUCT_BIAS, adds = p->extra == STINT_PRODUCT_ADD;
	float *x = tensor((p->each0 ? b : 1) * m * k, 1),
	      *w = tensor((p->each1 ? b : 1) * k * n, 1);
	float *c = tensor(adds ? b * m * n : n, 1);
	double *want = calloc((size_t)(b * m * n), sizeof *want);
	for (int64_t q = 0; q < b; q++)
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				const float *xq = x + (p->each0 ? q * m * k : 0);
				const float *wq = w + (p->each1 ? q * k * n : 0);
				double s = bias   ? (double)c[j]
					   : adds ? (double)c[(q * m + i) * n + j]
						  : 0;
				for (int64_t t = 0; t < k; t++)
					s += (double)(p->t0 ? xq[t * m + i] : xq[i * k + t]) *
					     (double)(p->t1 ? wq[j * k + t] : wq[t * n + j]);
				want[(q * m + i) * n + j] = s;
			}
	char what[160];
	snprintf(what, sizeof what, "matmul %lldx%lldx%lldx%lld ta%d tb%d sa%d sb%d", (long long)b,
		(long long)m, (long long)n, (long long)k, p->t0, p->t1, p->each0, p->each1);
	const struct stint_lib_call call = {.product = *p};
	const int done = run_and_compare(
		&call, (const float *const[]){x, w, c}, b * m * n, want, what);
	free(x);
	free(w);
	free(c);
	free(want);
	return done;
}

static void test_matmul(void **state)
{
	static const int64_t size[][3] = {{1, 1, 1}, {3, 5, 7}, {64, 64, 64}, {33, 10, 65},
		{1, 100, 512}, {64, 1, 129}, {100, 51, 1}, {128, 96, 300}};
	int done = 0;
	(void)state;
	for (size_t i = 0; i < sizeof size / sizeof *size; i++)
		for (int flags = 0; flags < 12; flags++)
			done += matmul_case(&(struct stint_product){.batch = 1,
				.m = size[i][0],
				.n = size[i][1],
				.k = size[i][2],
				.t0 = flags & 1,
				.t1 = flags >> 1 & 1,
				.extra = (enum stint_product_extra)(flags >> 2)});
	for (int flags = 0; flags < 48; flags++)
		if (flags % 16 >> 2) /* at least one operand has the batch */
			done += matmul_case(&(struct stint_product){.batch = 3,
				.m = 17,
				.n = 20,
				.k = 9,
				.t0 = flags & 1,
				.t1 = flags >> 1 & 1,
				.each0 = flags >> 2 & 1,
				.each1 = flags >> 3 & 1,
				.extra = (enum stint_product_extra)(flags >> 4)});
	char identity[96];
	if (strstr(stint_lib_identity(THREADS, identity), "avx512"))
		assert_int_equal(done, 8 * 12 + 36);
	else
		print_message("matmul: %d cases taken by the library\n", done);
}

/* --- convolution --- */

struct conv_case {
	int n, c, d0, d1, k, g, k0, k1, s0, s1, l0, l1, pb0, pb1, pe0, pe1;
};

/* Over two axes. */
static void conv_naive(const struct stint_convolution *v, const float *x, const float *w,
	const float *dy, double *y, double *dx, double *dw)
{
	const int64_t d0 = v->size[0], d1 = v->size[1], k0 = v->kernel[0], k1 = v->kernel[1],
		      cg = v->c / v->groups, kg = v->k / v->groups, o0 = v->out[0], o1 = v->out[1];
	for (int64_t i = 0; i < v->n * v->k * o0 * o1 * cg * k0 * k1; i++) {
		int64_t r = i;
		const int64_t t1 = r % k1, t0 = (r /= k1) % k0, ci = (r /= k0) % cg,
			      q1 = (r /= cg) % o1, q0 = (r /= o1) % o0, ki = (r /= o0) % v->k,
			      b = r / v->k;
		const int64_t i0 = q0 * v->stride[0] - v->before[0] + t0 * v->dilation[0];
		const int64_t i1 = q1 * v->stride[1] - v->before[1] + t1 * v->dilation[1];
		if (i0 < 0 || i0 >= d0 || i1 < 0 || i1 >= d1)
			continue;
		const int64_t xi = ((b * v->c + ki / kg * cg + ci) * d0 + i0) * d1 + i1;
		const int64_t wi = ((ki * cg + ci) * k0 + t0) * k1 + t1;
		const int64_t yi = ((b * v->k + ki) * o0 + q0) * o1 + q1;
		y[yi] += (double)x[xi] * (double)w[wi];
		dx[xi] += (double)dy[yi] * (double)w[wi];
		dw[wi] += (double)dy[yi] * (double)x[xi];
	}
}

/* All three kinds of a call, against the same over two axes. The number that the library takes. */
static int conv_compare(
	const struct stint_convolution *v, const struct stint_convolution *flat, const char *what)
{
	const int64_t plane = flat->out[0] * flat->out[1], ny = v->n * v->k * plane;
	const int64_t nx = v->n * v->c * flat->size[0] * flat->size[1];
	const int64_t nw = v->k * v->c / v->groups * flat->kernel[0] * flat->kernel[1];
	float *x = tensor(nx, 1), *w = tensor(nw, 1), *dy = tensor(ny, 1), *c = tensor(v->k, 1);
	double *y = calloc((size_t)ny, sizeof *y), *dx = calloc((size_t)nx, sizeof *dx);
	double *dw = calloc((size_t)nw, sizeof *dw);
	conv_naive(flat, x, w, dy, y, dx, dw);
	for (int64_t i = 0; v->bias && i < ny; i++)
		y[i] += (double)c[i / plane % v->k];
	struct stint_lib_call call = {.kind = STINT_CALL_CONV_FORWARD, .conv = *v};
	int done = run_and_compare(&call, (const float *const[]){x, w, c}, ny, y, what);
	call.kind = STINT_CALL_CONV_DATA;
	done += run_and_compare(&call, (const float *const[]){dy, w}, nx, dx, what);
	call.kind = STINT_CALL_CONV_WEIGHT;
	done += run_and_compare(&call, (const float *const[]){x, dy}, nw, dw, what);
	free(x);
	free(w);
	free(dy);
	free(c);
	free(y);
	free(dx);
	free(dw);
	return done;
}

static int conv_case(const struct conv_case *v, int bias)
{
	const int after[2] = {v->pe0, v->pe1};
	struct stint_convolution s = {.axes = 2,
		.n = v->n,
		.c = v->c,
		.k = v->k,
		.groups = v->g,
		.size = {v->d0, v->d1},
		.kernel = {v->k0, v->k1},
		.stride = {v->s0, v->s1},
		.dilation = {v->l0, v->l1},
		.before = {v->pb0, v->pb1},
		.bias = bias};
	for (int i = 0; i < 2; i++)
		s.out[i] = (s.size[i] + s.before[i] + after[i] - (s.kernel[i] - 1) * s.dilation[i] -
				   1) /
				   s.stride[i] +
			   1;
	char what[160];
	snprintf(what, sizeof what, "conv n%d c%d %dx%d k%d g%d kernel %dx%d stride %d dilation %d",
		v->n, v->c, v->d0, v->d1, v->k, v->g, v->k0, v->k1, v->s1, v->l1);
	return conv_compare(&s, &s, what);
}

static void test_conv(void **state)
{
	static const struct conv_case list[] = {
		{2, 16, 9, 9, 16, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
		{2, 3, 13, 11, 8, 1, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3},
		{2, 5, 13, 11, 7, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
		{2, 5, 13, 10, 7, 1, 3, 3, 2, 2, 1, 1, 1, 0, 0, 1},
		{3, 32, 8, 8, 48, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
		{3, 32, 8, 8, 48, 1, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0},
		{2, 32, 10, 10, 32, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
		{2, 20, 10, 10, 20, 20, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
		{2, 32, 10, 10, 32, 32, 5, 5, 1, 1, 2, 2, 4, 4, 4, 4},
		{2, 32, 10, 10, 64, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
		{2, 6, 10, 10, 9, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
		{2, 16, 12, 12, 16, 1, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2},
		{2, 16, 12, 12, 32, 1, 3, 3, 3, 2, 2, 1, 2, 1, 0, 2},
		{2, 1, 12, 12, 8, 1, 5, 5, 1, 1, 1, 1, 0, 0, 0, 0},
		{2, 10, 1, 40, 12, 1, 1, 5, 1, 1, 1, 1, 0, 2, 0, 2},
		{2, 16, 1, 40, 16, 1, 1, 3, 1, 2, 1, 3, 0, 0, 0, 1},
		{1, 16, 5, 5, 16, 1, 4, 2, 1, 1, 1, 1, 0, 0, 0, 0},
		/* Large enough to run in parts of the batch. */
		{6, 16, 56, 60, 32, 1, 1, 3, 1, 1, 1, 1, 0, 1, 0, 1},
		{4, 3, 80, 80, 32, 1, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1},
		{5, 32, 70, 70, 32, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
	};
	int done = 0, cases = 0;
	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		for (int bias = 0; bias < 2; bias++, cases += 3)
			done += conv_case(&list[i], bias);
	print_message("convolution: %d of %d cases taken by the library\n", done, cases);
	char identity[96];
	if (strstr(stint_lib_identity(THREADS, identity), "avx512"))
		assert_true(done > cases * 3 / 4);
}

/* A convolution over three axes with nothing along the first is one over two. */
static void test_conv3(void **state)
{
	const struct stint_convolution deep = {.axes = 3,
		.n = 2,
		.c = 16,
		.k = 16,
		.groups = 1,
		.size = {1, 9, 8},
		.kernel = {1, 3, 2},
		.stride = {1, 2, 1},
		.dilation = {1, 1, 2},
		.before = {0, 1, 0},
		.out = {1, 5, 6},
		.bias = 1};
	const struct stint_convolution flat = {.size = {9, 8},
		.n = 2,
		.c = 16,
		.k = 16,
		.groups = 1,
		.kernel = {3, 2},
		.stride = {2, 1},
		.dilation = {1, 2},
		.before = {1, 0},
		.out = {5, 6}};
	(void)state;
	const int done = conv_compare(&deep, &flat, "over three axes");
	print_message("convolution over three axes: %d of 3 taken by the library\n", done);
	char identity[96];
	if (strstr(stint_lib_identity(THREADS, identity), "avx512"))
		assert_int_equal(done, 3);
}

static void test_declines(void **state)
{
	char message[256] = "";
	/* A GPU's libraries do that. */
	struct stint_lib_call call = {
		.product = {.batch = 1, .m = 2, .n = 3, .k = 4, .extra = STINT_PRODUCT_SUM0}};
	(void)state;
	assert_int_equal(stint_lib_workspace(&call, 1), -1);
	struct stint_lib *l;
	assert_int_equal(stint_lib_new(&l, &call, 1, message), STINT_BAD_MACHINE);
	assert_null(l);
	assert_non_null(strstr(message, "matmul_sum0"));
	/* An output shape that does not follow from the rest. */
	call = (struct stint_lib_call){.kind = STINT_CALL_CONV_FORWARD,
		.conv = {.axes = 2,
			.n = 1,
			.c = 16,
			.k = 16,
			.groups = 1,
			.size = {8, 8},
			.kernel = {3, 3},
			.stride = {1, 1},
			.dilation = {1, 1},
			.before = {1, 1},
			.out = {80, 8}}};
	assert_int_equal(stint_lib_workspace(&call, 1), -1);
	call.conv.out[0] = 8;
	assert_true(stint_lib_workspace(&call, 1) >= 0);
	call.conv.last = 1; /* as a GPU's libraries want it */
	assert_int_equal(stint_lib_workspace(&call, 1), -1);
}

/* Two calls are the same when all that counts for their kind is. */
static void test_same(void **state)
{
	struct stint_lib_call a = {.product = {.batch = 1, .m = 2, .n = 3, .k = 4}}, b = a;
	(void)state;
	assert_true(stint_lib_call_same(&a, &b));
	b.product.each1 = 1;
	assert_false(stint_lib_call_same(&a, &b));
	b = a;
	b.types = STINT_X0_NARROW;
	assert_false(stint_lib_call_same(&a, &b));
	memset(&a, 0xff, sizeof a); /* padding, and what is beyond the axes */
	a = (struct stint_lib_call){
		.kind = STINT_CALL_CONV_DATA, .conv = {.axes = 2, .out = {3, 4}}};
	memset(&b, 0, sizeof b);
	b = a;
	assert_true(stint_lib_call_same(&a, &b));
	b.conv.out[1] = 5;
	assert_false(stint_lib_call_same(&a, &b));
	assert_string_equal(stint_lib_call_name(&a), "conv_data");
	a.conv.axes = 3;
	assert_string_equal(stint_lib_call_name(&a), "conv3_data");
}

static void test_threads_are_put_back(void **state)
{
	const struct stint_lib_call call = {.product = {.batch = 1, .m = 64, .n = 64, .k = 64}};
	(void)state;
	omp_set_num_threads(3);
	stint_lib_workspace(&call, 1);
	assert_int_equal(omp_get_max_threads(), 3);
	omp_set_num_threads(THREADS);
}

int main(void)
{
	omp_set_num_threads(THREADS);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matmul),
		cmocka_unit_test(test_conv),
		cmocka_unit_test(test_conv3),
		cmocka_unit_test(test_declines),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_threads_are_put_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
