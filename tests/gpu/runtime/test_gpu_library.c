/* Products and convolutions on stand-ins: what their numbers mean, what is chosen and what is
 * remembered. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fake_tools.h"

/* --- Products --- */

static int product_of(const struct stint_lib_call *call, struct stint_gpu_product *out)
{
	return stint_gpu_product_of(call, 80, out);
}

static void test_product_numbers(void **state)
{
	const struct stint_lib_call dense = {
		.product = {.batch = 4, .m = 8, .n = 16, .k = 32, .t1 = 1, .each0 = 1}};
	struct stint_lib_call p = dense;
	struct stint_gpu_product q;
	(void)state;
	/* a batch times one matrix is a single product */
	assert_int_equal(product_of(&dense, &q), STINT_OK);
	assert_int_equal(q.shape.batch, 1);
	assert_int_equal(q.shape.m, 32);
	assert_int_equal(q.ld0, 32);
	assert_int_equal(q.ld1, 32);
	assert_int_equal(q.ldy, 16);
	assert_int_equal(q.cap, 32 * 16 * 4 * 8);
	/* not where the rows are columns, or each has its own matrix */
	p.product.t0 = 1;
	assert_int_equal(product_of(&p, &q), STINT_OK);
	assert_int_equal(q.shape.batch, 4);
	assert_int_equal(q.ld0, 8);
	assert_int_equal(q.step0, 8 * 32);
	assert_int_equal(q.step1, 0);
	p.product.extra = STINT_PRODUCT_SUM1;
	assert_int_equal(product_of(&p, &q), STINT_BAD_DATA);
	p = dense;
	p.types = STINT_X0_NARROW | STINT_X1_NARROW | STINT_Y0_NARROW | STINT_NARROW_IS_FP16;
	assert_int_equal(product_of(&p, &q), STINT_OK);
	assert_int_equal(q.in, STINT_GPU_F16);
	assert_int_equal(q.out, STINT_GPU_F16);
	p.types = STINT_X0_NARROW; /* operands of two types */
	assert_int_equal(product_of(&p, &q), STINT_BAD_DATA);
	p.types = 0;
	p.product.m = (int64_t)1 << 40;
	p.product.k = (int64_t)1 << 40;
	assert_int_equal(product_of(&p, &q), STINT_BAD_DATA);
	p.product.m = 0;
	assert_int_equal(product_of(&p, &q), STINT_BAD_DATA);
	p = dense;
	p.kind = STINT_CALL_CONV_FORWARD;
	assert_int_equal(product_of(&p, &q), STINT_BAD_DATA);
	const struct stint_product large = {.batch = 1, .m = 1 << 20, .n = 1 << 20, .k = 8};
	assert_int_equal(stint_gpu_matmul_cap(89, &large), 4 * MIB);
	assert_int_equal(stint_gpu_matmul_cap(90, &large), 32 * MIB);
}

/* The one entry of a cache's folder. */
static void only_key(const char *folder, unsigned char key[STINT_SHA])
{
	DIR *d = opendir(folder);
	int n = 0;
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		for (int i = 0; e->d_name[0] != '.' && i < STINT_SHA; i++, n++) {
			unsigned byte;
			assert_int_equal(sscanf(e->d_name + 2 * i, "%2x", &byte), 1);
			key[i] = (unsigned char)byte;
		}
	closedir(d);
	assert_int_equal(n, STINT_SHA);
}

/* A choice is remembered, and one that the library does not take is made again. */
static void test_choice(void **state)
{
	const struct stint_lib_call p = {
		.product = {.batch = 1, .m = 4, .n = 5, .k = 6, .each0 = 1, .each1 = 1}};
	stint_gpu *g = gpu_new();
	struct stint_gpu_product product;
	struct stint_gpu_matmul *m;
	unsigned char first[STINT_GPU_ALGO], again[STINT_GPU_ALGO], key[STINT_SHA];
	(void)state;
	folder_empty("choice"); /* of an earlier run */
	mkdir("choice", 0777);
	assert_int_equal(stint_gpu_cache(g, "choice"), STINT_OK);
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_product_of(&p, 90, &product), STINT_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(stint_gpu_matmul_new(g, &product, &m), STINT_OK);
		stint_gpu_matmul_algo(m, i ? again : first);
		assert_int_equal(stint_gpu_matmul_workspace(m), 512);
		stint_gpu_matmul_free(m);
		if (i)
			assert_memory_equal(first, again, sizeof first);
		only_key("choice", key);
		memset(again, 0, sizeof again); /* an algorithm that is not there */
		if (i == 1)
			stint_cache_write(g->cache, key, again, sizeof again);
	}
	folder_empty("choice");
	gpu_done(g);
}

/* --- Convolutions --- */

static void test_convolution_numbers(void **state)
{
	const struct stint_lib_call dense = {.kind = STINT_CALL_CONV_DATA,
		.conv = {.axes = 2,
			.n = 2,
			.c = 6,
			.k = 4,
			.groups = 2,
			.size = {15, 14},
			.kernel = {3, 5},
			.stride = {2, 1},
			.dilation = {1, 2},
			.before = {1, 3},
			.out = {8, 12}}};
	struct stint_lib_call p = dense;
	struct stint_gpu_convolution c;
	(void)state;
	p.types = STINT_X0_NARROW | STINT_X1_NARROW | STINT_Y0_NARROW | STINT_NARROW_IS_FP16;
	p.conv.way = STINT_CONV_HALVES; /* an algorithm of the other library */
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_OK);
	assert_int_equal(c.kind, STINT_CALL_CONV_DATA);
	assert_true(stint_convolution_same(&c.shape, &p.conv));
	for (int i = 0; i < 3; i++)
		assert_int_equal(c.type[i], STINT_GPU_F16);
	p.types = STINT_X0_NARROW | STINT_X1_NARROW; /* one type in all */
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_BAD_DATA);
	p = dense;
	p.conv.x_blocked = 1;
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_BAD_DATA);
	p = dense;
	p.conv.y_blocked = 1;
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_BAD_DATA);
	p = dense;
	p.conv.bias = 1;
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_BAD_DATA);
	p = dense;
	p.conv.groups = 4; /* that do not divide the channels */
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_BAD_DATA);
	p = dense;
	p.kind = STINT_CALL_PRODUCT;
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_BAD_DATA);
}

/* By the sizes of the tensors, and between two bounds. */
static void test_convolution_caps(void **state)
{
	struct stint_lib_call p = {.kind = STINT_CALL_CONV_DATA,
		.conv = {.axes = 2,
			.n = 2,
			.c = 64,
			.k = 64,
			.groups = 1,
			.size = {28, 28},
			.kernel = {3, 3},
			.stride = {1, 1},
			.dilation = {1, 1},
			.before = {1, 1},
			.out = {28, 28}}};
	struct stint_gpu_convolution c;
	(void)state;
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_OK);
	assert_int_equal(c.cap, 4 << 20);
	p.conv.n = 32; /* 12.25 MiB */
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_OK);
	assert_int_equal(c.cap, 16 << 20);
	p.conv.n = INT64_C(1) << 50;
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_OK);
	assert_int_equal(c.cap, 32 << 20);
}

/* Which of the stand-in's engines is taken: without a note, whatever stands before it. */
static void test_engines(void **state)
{
	const struct stint_lib_call p = {.kind = STINT_CALL_CONV_FORWARD,
		.conv = {.axes = 2,
			.n = 1,
			.c = 2,
			.k = 2,
			.groups = 1,
			.size = {3, 3},
			.kernel = {2, 2},
			.stride = {1, 1},
			.dilation = {1, 1},
			.out = {2, 2},
			.last = 1}};
	stint_gpu *g = gpu_new();
	struct stint_gpu_convolution c;
	(void)state;
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_convolution_of(&p, &c), STINT_OK);
	for (int how = 0; how < 3; how++) { /* as it is, strict, with tf32 */
		struct stint_gpu_conv *m;
		c.strict = how == 1;
		c.tf32 = how == 2;
		assert_int_equal(stint_gpu_conv_new(g, &c, &m), STINT_OK);
		/* the stand-in's Winograd's, plain and tensor-core engines */
		assert_int_equal(stint_gpu_conv_workspace(m), how == 0   ? 1029
							      : how == 1 ? 1030
									 : 1026);
		stint_gpu_conv_free(m);
	}
	struct stint_gpu_conv *none = NULL;
	c.cap = 100;
	assert_int_equal(stint_gpu_conv_new(g, &c, &none), STINT_BAD_MACHINE);
	assert_null(none);
	assert_non_null(strstr(stint_gpu_message(g), "within 100 bytes"));
	gpu_done(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_product_numbers),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_convolution_numbers),
		cmocka_unit_test(test_convolution_caps),
		cmocka_unit_test(test_engines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
