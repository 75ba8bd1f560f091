/* test_samples LIBRARY: the sample kernels against plain loops, forwards and backwards with equal
 * bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/samples/reference.h"
#include "tests/gpu/shim/tools.h"

enum { N = 3000 };

static void pointwise_bits(void **state)
{
	(void)state;
	static float x[N], bias[40], want[N];
	static _Alignas(16) float y[N], x4[N], y4[N];
	int64_t n = N, columns = 40;
	float *py = y, *px = x, *pbias = bias, *px4 = x4, *py4 = y4;
	fill(x, N, 1);
	fill(bias, 40, 2);
	fill(x4, N, 3);
	for (int i = 0; i < N; i++)
		x4[i] *= 20;
	const struct shim_range gelu[] = {RANGE(y, sizeof y, true), RANGE(x, sizeof x, false),
		RANGE(bias, sizeof bias, false)};
	run_both(&(struct shim_launch){.kernel = "k_gelu",
		.grid = {5},
		.block = {256},
		.nargs = 5,
		.args = (void *[]){&py, &px, &pbias, &n, &columns},
		.nranges = 3,
		.ranges = gelu});
	ref_gelu(want, x, bias, N, 40);
	assert_memory_equal(y, want, sizeof y);
	const struct shim_range functions[] = {
		RANGE(y4, sizeof y4, true), RANGE(x4, sizeof x4, false)};
	run_both(&(struct shim_launch){.kernel = "k_functions",
		.grid = {2},
		.block = {256},
		.nargs = 3,
		.args = (void *[]){&py4, &px4, &n},
		.nranges = 2,
		.ranges = functions});
	ref_functions(want, x4, N);
	assert_memory_equal(y4, want, sizeof y4);
}

static void wide_bits(void **state)
{
	(void)state;
	static float x[N], y[3 * N], want[3 * N];
	float *py = y, *px = x;
	int64_t n = N;
	fill(x, N, 15);
	for (int i = 0; i < N; i++)
		x[i] *= 20;
	const struct shim_range ranges[] = {RANGE(y, sizeof y, true), RANGE(x, sizeof x, false)};
	run_both(&(struct shim_launch){.kernel = "k_wide",
		.grid = {3},
		.block = {256},
		.nargs = 3,
		.args = (void *[]){&py, &px, &n},
		.nranges = 2,
		.ranges = ranges});
	ref_wide(want, x, N);
	for (int i = 0; i < 3 * N; i++)
		assert_true(y[i] == y[i]);
	assert_memory_equal(y, want, sizeof y);
}

static void bf16_bits(void **state)
{
	(void)state;
	static _Alignas(16) uint16_t x[N], y[N], want[N];
	uint16_t *px = x, *py = y;
	float scale = 0.3f;
	int64_t n = N;
	for (unsigned i = 0; i < N; i++)
		x[i] = (uint16_t)(i * 977 % 0x7F80 | (i & 1) << 15);
	const struct shim_range ranges[] = {RANGE(y, sizeof y, true), RANGE(x, sizeof x, false)};
	run_both(&(struct shim_launch){.kernel = "k_scale_bf16",
		.block = {256},
		.nargs = 4,
		.args = (void *[]){&py, &px, &scale, &n},
		.nranges = 2,
		.ranges = ranges});
	ref_scale_bf16(want, x, scale, N);
	assert_memory_equal(y, want, sizeof y);
}

static void adamw_bits(void **state)
{
	(void)state;
	static float w[N], m[N], v[N], g[N], w2[N], m2[N], v2[N];
	float rate[3] = {1e-3f, 0.271f, 0.002997f};
	int skip[1] = {0};
	int64_t n = N;
	fill(w, N, 4);
	fill(m, N, 5);
	fill(v, N, 6);
	fill(g, N, 7);
	for (int i = 0; i < N; i++)
		v[i] = fabsf(v[i]);
	memcpy(w2, w, sizeof w);
	memcpy(m2, m, sizeof m);
	memcpy(v2, v, sizeof v);
	const struct shim_range ranges[] = {RANGE(w, sizeof w, true), RANGE(m, sizeof m, true),
		RANGE(v, sizeof v, true), RANGE(g, sizeof g, false),
		RANGE(rate, sizeof rate, false), RANGE(skip, sizeof skip, false)};
	float *p[5] = {w, m, v, g, rate};
	int *pskip = skip;
	struct shim_launch l = {.kernel = "k_adamw",
		.grid = {3},
		.block = {256},
		.nargs = 7,
		.args = (void *[]){&p[0], &p[1], &p[2], &p[3], &p[4], &pskip, &n},
		.nranges = 6,
		.ranges = ranges};
	run_both(&l);
	ref_adamw(w2, m2, v2, g, rate, N);
	assert_memory_equal(w, w2, sizeof w);
	assert_memory_equal(m, m2, sizeof m);
	assert_memory_equal(v, v2, sizeof v);
	skip[0] = 1;
	run_both(&l);
	assert_memory_equal(w, w2, sizeof w);
}

static void finite_check(void **state)
{
	(void)state;
	static float x[N];
	int bad[1] = {0}, *pbad = bad;
	float *px = x;
	int64_t n = N;
	fill(x, N, 8);
	const struct shim_range ranges[] = {
		RANGE(bad, sizeof bad, true), RANGE(x, sizeof x, false)};
	struct shim_launch l = {.kernel = "k_finite",
		.grid = {4},
		.block = {256},
		.nargs = 3,
		.args = (void *[]){&pbad, &px, &n},
		.nranges = 2,
		.ranges = ranges};
	run_both(&l);
	assert_int_equal(bad[0], 0);
	x[N - 1] = NAN;
	run_both(&l);
	assert_int_equal(bad[0], 1);
}

enum { ROWS = 5, COLUMNS = 300 };

static void rows_near(void **state)
{
	(void)state;
	static float x[ROWS * COLUMNS], y[ROWS * COLUMNS], scale[COLUMNS], bias[COLUMNS];
	static double want[ROWS * COLUMNS];
	float mean[ROWS], deviation[ROWS];
	float *px = x, *py = y, *pmean = mean, *pdeviation = deviation, *pscale = scale,
	      *pbias = bias;
	int n = COLUMNS;
	fill(x, ROWS * COLUMNS, 9);
	fill(scale, COLUMNS, 10);
	fill(bias, COLUMNS, 11);
	const struct shim_range ranges[] = {RANGE(y, sizeof y, true), RANGE(x, sizeof x, false),
		RANGE(mean, sizeof mean, true), RANGE(deviation, sizeof deviation, true),
		RANGE(scale, sizeof scale, false), RANGE(bias, sizeof bias, false)};
	run_both(&(struct shim_launch){.kernel = "k_softmax",
		.grid = {ROWS},
		.block = {256},
		.nargs = 3,
		.args = (void *[]){&py, &px, &n},
		.nranges = 2,
		.ranges = ranges});
	ref_softmax(want, x, ROWS, COLUMNS);
	assert_true(distance(y, want, ROWS * COLUMNS) < 1e-6);
	run_both(&(struct shim_launch){.kernel = "k_layernorm",
		.grid = {ROWS},
		.block = {256},
		.dynamic = COLUMNS * sizeof(float),
		.nargs = 7,
		.args = (void *[]){&py, &pmean, &pdeviation, &px, &pscale, &pbias, &n},
		.nranges = 6,
		.ranges = ranges});
	ref_layernorm(want, x, scale, bias, ROWS, COLUMNS);
	assert_true(distance(y, want, ROWS * COLUMNS) < 1e-6);
}

/* Of blocks of one warp, of three and of eight: every thread has the same bits. */
static void block_sums_near(void **state)
{
	(void)state;
	static const unsigned sizes[] = {32, 96, 256};
	static _Alignas(16) float x[256], y1[1536];
	static double y0[768];
	float *px = x, *py1 = y1;
	double *py0 = y0;
	for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) {
		const int n = (int)sizes[size], taken = n - 3;
		double sum = 0, squares = 0;
		float most = -INFINITY;
		fill(x, 256, 16);
		x[n - 7] = 9;
		for (int i = 0; i < n; i++) {
			sum += (double)x[i];
			squares += (double)x[i] * (double)x[i];
			most = fmaxf(most, x[i]);
		}
		memset(y1, 0, sizeof y1);
		const struct shim_range ranges[] = {RANGE(y0, sizeof y0, true),
			RANGE(y1, sizeof y1, true), RANGE(x, sizeof x, false)};
		struct shim_launch l = {.kernel = "k_block",
			.block = {sizes[size]},
			.nargs = 4,
			.args = (void *[]){&py0, &py1, &px, (void *)(uintptr_t)&taken},
			.nranges = 3,
			.ranges = ranges};
		run_both(&l);
		assert_true(fabs(y0[0] - sum) < 1e-12 && fabs(y0[2] - squares) < 1e-12);
		assert_true(fabs((double)y1[0] - sum) < 1e-4);
		for (int i = 0; i < n; i++) {
			assert_true(y0[3 * i] == y0[0] && y0[3 * i + 2] == y0[2]);
			assert_true(y0[3 * i + 1] == (double)most && y1[2 * i] == y1[0]);
			assert_true(y1[2 * i + 1] == most);
			assert_true(y1[512 + i] == (i < taken / 4 * 4 ? x[i] : 0));
			assert_true(y1[1024 + i] == (i < taken ? x[i] : 0));
		}
		x[n / 2] = NAN;
		run_both(&l);
		assert_true(y0[1] != y0[1] && y1[0] != y1[0] && y1[1] != y1[1]);
	}
}

static void column_sum_bits(void **state)
{
	(void)state;
	enum { R = 37, C = 45 };
	static float x[R * C], y[C], want[C];
	float *px = x, *py = y;
	int rows = R, columns = C;
	fill(x, R * C, 12);
	const struct shim_range ranges[] = {RANGE(y, sizeof y, true), RANGE(x, sizeof x, false)};
	run_both(&(struct shim_launch){.kernel = "k_column_sum",
		.grid = {2},
		.block = {32, 16},
		.nargs = 4,
		.args = (void *[]){&py, &px, &rows, &columns},
		.nranges = 2,
		.ranges = ranges});
	ref_column_sum(want, x, R, C);
	assert_memory_equal(y, want, sizeof y);
}

static void pairs(void **state)
{
	(void)state;
	float x[32], y[32], *px = x, *py = y;
	for (int i = 0; i < 32; i++)
		x[i] = (float)i;
	const struct shim_range ranges[] = {RANGE(y, sizeof y, true), RANGE(x, sizeof x, false)};
	run_both(&(struct shim_launch){.kernel = "k_pairs",
		.block = {32},
		.nargs = 2,
		.args = (void *[]){&py, &px},
		.nranges = 2,
		.ranges = ranges});
	for (int i = 0; i < 32; i++)
		assert_int_equal((int)y[i], 8 * (2 * (i & ~1) + 1));
	run_both(&(struct shim_launch){.kernel = "k_same",
		.grid = {2},
		.block = {64},
		.nargs = 2,
		.args = (void *[]){&py, &px},
		.nranges = 2,
		.ranges = ranges});
	assert_int_equal((int)y[1], 2);
}

static void gemm_near(void **state)
{
	(void)state;
	enum { M = 128, W = 64, K = 160 };
	static _Alignas(16) uint16_t a[M * K], b[W * K];
	static _Alignas(16) float c[M * W];
	static double want[M * W];
	static float x[M * K];
	uint16_t *pa = a, *pb = b;
	float *pc = c;
	int n = W, k = K;
	fill(x, M * K, 13);
	for (int i = 0; i < M * K; i++)
		a[i] = (uint16_t)ref_narrow(x[i]);
	fill(x, W * K, 14);
	for (int i = 0; i < W * K; i++)
		b[i] = (uint16_t)ref_narrow(x[i]);
	const struct shim_range ranges[] = {
		RANGE(c, sizeof c, true), RANGE(a, sizeof a, false), RANGE(b, sizeof b, false)};
	run_both(&(struct shim_launch){.kernel = "k_gemm_bf16",
		.grid = {W / 64, M / 64},
		.block = {128},
		.dynamic = 2 * 2 * 64 * 40 * 2,
		.nargs = 5,
		.args = (void *[]){&pc, &pa, &pb, &n, &k},
		.nranges = 3,
		.ranges = ranges});
	ref_gemm_bf16(want, a, b, M, W, K);
	assert_true(distance(c, want, M * W) < 1e-6);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	text_library = argv[1];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointwise_bits),
		cmocka_unit_test(wide_bits),
		cmocka_unit_test(bf16_bits),
		cmocka_unit_test(adamw_bits),
		cmocka_unit_test(finite_check),
		cmocka_unit_test(rows_near),
		cmocka_unit_test(block_sums_near),
		cmocka_unit_test(column_sum_bits),
		cmocka_unit_test(pairs),
		cmocka_unit_test(gemm_near),
	};
	return cmocka_run_group_tests(tests, text_open, text_close);
}
