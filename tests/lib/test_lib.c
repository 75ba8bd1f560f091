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
static int run_and_compare(const char *kind, const int64_t *p, const float *const *in, int64_t nout,
	const double *want, const char *what)
{
	char message[256] = "";
	const int64_t bytes = stint_lib_workspace(kind, p, THREADS);
	if (bytes < 0)
		return 0;
	assert_int_equal(bytes % 64, 0);
	assert_int_equal(stint_lib_workspace(kind, p, THREADS), bytes);
	struct stint_lib *l;
	if (stint_lib_new(&l, kind, p, THREADS, message))
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

static int matmul_case(const int64_t *p, int bias)
{
	const int64_t b = p[0], m = p[1], n = p[2], k = p[3];
	float *x = tensor((p[6] ? b : 1) * m * k, 1), *w = tensor((p[7] ? b : 1) * k * n, 1);
	float *c = tensor(n, 1);
	double *want = calloc((size_t)(b * m * n), sizeof *want);
	for (int64_t q = 0; q < b; q++)
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				const float *xq = x + (p[6] ? q * m * k : 0);
				const float *wq = w + (p[7] ? q * k * n : 0);
				double s = bias ? (double)c[j] : 0;
				for (int64_t t = 0; t < k; t++)
					s += (double)(p[4] ? xq[t * m + i] : xq[i * k + t]) *
					     (double)(p[5] ? wq[j * k + t] : wq[t * n + j]);
				want[(q * m + i) * n + j] = s;
			}
	char what[160];
	snprintf(what, sizeof what, "matmul %lldx%lldx%lldx%lld ta%lld tb%lld sa%lld sb%lld",
		(long long)b, (long long)m, (long long)n, (long long)k, (long long)p[4],
		(long long)p[5], (long long)p[6], (long long)p[7]);
	const int done = run_and_compare(bias ? "matmul_bias" : "matmul", p,
		(const float *const[]){x, w, c}, b * m * n, want, what);
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
		for (int flags = 0; flags < 8; flags++)
			done += matmul_case((int64_t[24]){1, size[i][0], size[i][1], size[i][2],
						    flags & 1, flags >> 1 & 1},
				flags >> 2);
	for (int flags = 0; flags < 32; flags++)
		if (flags >> 3) /* at least one operand has the batch */
			done += matmul_case((int64_t[24]){3, 17, 20, 9, flags & 1, flags >> 1 & 1,
						    flags >> 3 & 1, flags >> 4 & 1},
				flags >> 2 & 1);
	char identity[96];
	if (strstr(stint_lib_identity(THREADS, identity), "avx512"))
		assert_int_equal(done, 8 * 8 + 24);
	else
		print_message("matmul: %d cases taken by the library\n", done);
}

/* --- convolution --- */

struct conv_case {
	int n, c, d0, d1, k, g, k0, k1, s0, s1, l0, l1, pb0, pb1, pe0, pe1;
};

static void conv_naive(const int64_t *p, const float *x, const float *w, const float *dy, double *y,
	double *dx, double *dw)
{
	const int64_t n = p[0], c = p[1], d0 = p[2], d1 = p[3], k = p[4], g = p[5], k0 = p[6],
		      k1 = p[7], cg = c / g, kg = k / g, o0 = p[16], o1 = p[17];
	for (int64_t i = 0; i < n * k * o0 * o1 * cg * k0 * k1; i++) {
		int64_t r = i;
		const int64_t t1 = r % k1, t0 = (r /= k1) % k0, ci = (r /= k0) % cg,
			      q1 = (r /= cg) % o1, q0 = (r /= o1) % o0, ki = (r /= o0) % k,
			      b = r / k;
		const int64_t i0 = q0 * p[8] - p[12] + t0 * p[10];
		const int64_t i1 = q1 * p[9] - p[13] + t1 * p[11];
		if (i0 < 0 || i0 >= d0 || i1 < 0 || i1 >= d1)
			continue;
		const int64_t xi = ((b * c + ki / kg * cg + ci) * d0 + i0) * d1 + i1;
		const int64_t wi = ((ki * cg + ci) * k0 + t0) * k1 + t1;
		const int64_t yi = ((b * k + ki) * o0 + q0) * o1 + q1;
		y[yi] += (double)x[xi] * (double)w[wi];
		dx[xi] += (double)dy[yi] * (double)w[wi];
		dw[wi] += (double)dy[yi] * (double)x[xi];
	}
}

static int conv_case(const struct conv_case *v, int bias)
{
	int64_t p[24] = {v->n, v->c, v->d0, v->d1, v->k, v->g, v->k0, v->k1, v->s0, v->s1, v->l0,
		v->l1, v->pb0, v->pb1, v->pe0, v->pe1};
	p[16] = (p[2] + p[12] + p[14] - (p[6] - 1) * p[10] - 1) / p[8] + 1;
	p[17] = (p[3] + p[13] + p[15] - (p[7] - 1) * p[11] - 1) / p[9] + 1;
	p[18] = bias;
	const int64_t nx = p[0] * p[1] * p[2] * p[3], ny = p[0] * p[4] * p[16] * p[17];
	const int64_t nw = p[4] * p[1] / p[5] * p[6] * p[7];
	float *x = tensor(nx, 1), *w = tensor(nw, 1), *dy = tensor(ny, 1), *c = tensor(p[4], 1);
	double *y = calloc((size_t)ny, sizeof *y), *dx = calloc((size_t)nx, sizeof *dx);
	double *dw = calloc((size_t)nw, sizeof *dw);
	conv_naive(p, x, w, dy, y, dx, dw);
	for (int64_t i = 0; bias && i < ny; i++)
		y[i] += (double)c[i / (p[16] * p[17]) % p[4]];
	char what[160];
	snprintf(what, sizeof what, "conv n%d c%d %dx%d k%d g%d kernel %dx%d stride %d dilation %d",
		v->n, v->c, v->d0, v->d1, v->k, v->g, v->k0, v->k1, v->s1, v->l1);
	int done = run_and_compare("conv_forward", p, (const float *const[]){x, w, c}, ny, y, what);
	done += run_and_compare("conv_data", p, (const float *const[]){dy, w}, nx, dx, what);
	done += run_and_compare("conv_weight", p, (const float *const[]){x, dy}, nw, dw, what);
	free(x);
	free(w);
	free(dy);
	free(c);
	free(y);
	free(dx);
	free(dw);
	return done;
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
	const int64_t p[24] = {
		2, 16, 16, 1, 1, 9, 8, 1, 3, 2, 1, 2, 1, 1, 1, 2, 0, 1, 0, 1, 5, 6, 1};
	const int64_t nx = 2 * 16 * 9 * 8, ny = 2 * 16 * 5 * 6, nw = 16 * 16 * 3 * 2;
	const int64_t flat[24] = {2, 16, 9, 8, 16, 1, 3, 2, 2, 1, 1, 2, 1, 0, 1, 0, 5, 6, 1};
	float *x = tensor(nx, 1), *w = tensor(nw, 1), *dy = tensor(ny, 1), *c = tensor(16, 1);
	double *y = calloc((size_t)ny, sizeof *y), *dx = calloc((size_t)nx, sizeof *dx);
	double *dw = calloc((size_t)nw, sizeof *dw);
	(void)state;
	conv_naive(flat, x, w, dy, y, dx, dw);
	for (int64_t i = 0; i < ny; i++)
		y[i] += (double)c[i / 30 % 16];
	int done = run_and_compare(
		"conv3_forward", p, (const float *const[]){x, w, c}, ny, y, "conv3 forward");
	done += run_and_compare(
		"conv3_data", p, (const float *const[]){dy, w}, nx, dx, "conv3 data");
	done += run_and_compare(
		"conv3_weight", p, (const float *const[]){x, dy}, nw, dw, "conv3 weight");
	print_message("convolution over three axes: %d of 3 taken by the library\n", done);
	char identity[96];
	if (strstr(stint_lib_identity(THREADS, identity), "avx512"))
		assert_int_equal(done, 3);
	free(x);
	free(w);
	free(dy);
	free(c);
	free(y);
	free(dx);
	free(dw);
}

static void test_declines(void **state)
{
	char message[256] = "";
	const int64_t p[24] = {1, 2, 3, 4};
	(void)state;
	assert_int_equal(stint_lib_workspace("no such kind", p, 1), -1);
	struct stint_lib *l;
	assert_int_equal(stint_lib_new(&l, "no such kind", p, 1, message), STINT_BAD_MACHINE);
	assert_null(l);
	assert_non_null(strstr(message, "no such kind"));
	/* An output shape that does not follow from the rest. */
	const int64_t bad[24] = {1, 16, 8, 8, 16, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 80, 8};
	assert_int_equal(stint_lib_workspace("conv_forward", bad, 1), -1);
}

static void test_threads_are_put_back(void **state)
{
	const int64_t p[24] = {1, 64, 64, 64};
	(void)state;
	omp_set_num_threads(3);
	stint_lib_workspace("matmul", p, 1);
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
		cmocka_unit_test(test_threads_are_put_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
