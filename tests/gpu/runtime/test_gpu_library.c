/* Products and convolutions on stand-ins: what their numbers mean, what is chosen and what is
 * remembered. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fake_tools.h"

/* --- Products --- */

static void test_product_numbers(void **state)
{
	const int64_t dense[24] = {4, 8, 16, 32, 0, 1, 1, 0, 0};
	int64_t p[24];
	struct stint_gpu_product q;
	(void)state;
	/* a batch times one matrix is a single product */
	assert_int_equal(stint_gpu_product_of("matmul", dense, 80, &q), STINT_OK);
	assert_int_equal(q.batch, 1);
	assert_int_equal(q.m, 32);
	assert_int_equal(q.ld0, 32);
	assert_int_equal(q.ld1, 32);
	assert_int_equal(q.ldy, 16);
	assert_int_equal(q.cap, 32 * 16 * 4 * 8);
	/* not where the rows are columns, or each has its own matrix */
	memcpy(p, dense, sizeof p);
	p[4] = 1;
	assert_int_equal(stint_gpu_product_of("matmul", p, 80, &q), STINT_OK);
	assert_int_equal(q.batch, 4);
	assert_int_equal(q.ld0, 8);
	assert_int_equal(q.step0, 8 * 32);
	assert_int_equal(q.step1, 0);
	assert_int_equal(stint_gpu_product_of("matmul_sum1", p, 80, &q), STINT_BAD_DATA);
	memcpy(p, dense, sizeof p);
	p[8] = 15;
	assert_int_equal(stint_gpu_product_of("matmul", p, 80, &q), STINT_OK);
	assert_int_equal(q.in, STINT_GPU_F16);
	assert_int_equal(q.out, STINT_GPU_F16);
	p[8] = 1; /* operands of two types */
	assert_int_equal(stint_gpu_product_of("matmul", p, 80, &q), STINT_BAD_DATA);
	p[8] = 0;
	p[1] = (int64_t)1 << 40;
	p[3] = (int64_t)1 << 40;
	assert_int_equal(stint_gpu_product_of("matmul", p, 80, &q), STINT_BAD_DATA);
	p[1] = 0;
	assert_int_equal(stint_gpu_product_of("matmul", p, 80, &q), STINT_BAD_DATA);
	assert_int_equal(stint_gpu_product_of("conv_forward", dense, 80, &q), STINT_BAD_DATA);
	const struct stint_gpu_product large = {.batch = 1, .m = 1 << 20, .n = 1 << 20, .k = 8};
	assert_int_equal(stint_gpu_matmul_cap(89, &large), 4 * MIB);
	assert_int_equal(stint_gpu_matmul_cap(90, &large), 32 * MIB);
}

/* The one entry of a cache's folder. */
static void only_key(const char *folder, unsigned char key[GPU_KEY])
{
	DIR *d = opendir(folder);
	int n = 0;
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		for (int i = 0; e->d_name[0] != '.' && i < GPU_KEY; i++, n++) {
			unsigned byte;
			assert_int_equal(sscanf(e->d_name + 2 * i, "%2x", &byte), 1);
			key[i] = (unsigned char)byte;
		}
	closedir(d);
	assert_int_equal(n, GPU_KEY);
}

/* A choice is remembered, and one that the library does not take is made again. */
static void test_choice(void **state)
{
	const int64_t p[24] = {1, 4, 5, 6, 0, 0, 1, 1, 0};
	stint_gpu *g = gpu_new();
	struct stint_gpu_product product;
	struct stint_gpu_matmul *m;
	unsigned char first[STINT_GPU_ALGO], again[STINT_GPU_ALGO], key[GPU_KEY];
	(void)state;
	folder_empty("choice"); /* of an earlier run */
	mkdir("choice", 0777);
	assert_int_equal(stint_gpu_cache(g, "choice"), STINT_OK);
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_product_of("matmul", p, 90, &product), STINT_OK);
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
			stint_gpu_cache_write(g, key, again, sizeof again);
	}
	folder_empty("choice");
	gpu_done(g);
}

/* --- Convolutions --- */

static void test_convolution_numbers(void **state)
{
	const int64_t dense[24] = {2, 6, 15, 14, 4, 2, 3, 5, 2, 1, 1, 2, 1, 3, 0, 0, 8, 12};
	int64_t p[24];
	struct stint_gpu_convolution c;
	(void)state;
	memcpy(p, dense, sizeof p);
	p[19] = 16 * (8 + 4) + 8; /* y narrow, an algorithm of the other library */
	assert_int_equal(stint_gpu_convolution_of("conv_data", p, &c), STINT_OK);
	assert_int_equal(c.kind, STINT_GPU_CONV_DATA);
	assert_int_equal(c.axes, 2);
	assert_int_equal(c.k, 4);
	assert_int_equal(c.groups, 2);
	assert_int_equal(c.w[1], 5);
	assert_int_equal(c.stride[0], 2);
	assert_int_equal(c.dilation[1], 2);
	assert_int_equal(c.before[1], 3);
	assert_int_equal(c.y[1], 12);
	/* the call's y0 is the gradient of x */
	assert_int_equal(c.type[0], STINT_GPU_F16);
	assert_int_equal(c.type[1], STINT_GPU_F32);
	assert_int_equal(c.type[2], STINT_GPU_F32);
	assert_int_equal(c.last, 0);
	for (int form = 1; form < 4; form++) { /* one image channels last; both */
		p[19] = form;
		assert_int_equal(stint_gpu_convolution_of("conv_data", p, &c),
			form == 3 ? STINT_OK : STINT_BAD_DATA);
	}
	assert_int_equal(c.last, 1);
	p[19] = 0;
	p[18] = 1; /* a bias */
	assert_int_equal(stint_gpu_convolution_of("conv_forward", p, &c), STINT_BAD_DATA);
	p[18] = 0;
	p[5] = 4; /* groups that do not divide the channels */
	assert_int_equal(stint_gpu_convolution_of("conv_forward", p, &c), STINT_BAD_DATA);
	assert_int_equal(stint_gpu_convolution_of("matmul", dense, &c), STINT_BAD_DATA);
}

/* By the sizes of the tensors, and between two bounds. */
static void test_convolution_caps(void **state)
{
	int64_t p[24] = {2, 64, 28, 28, 64, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 28, 28};
	struct stint_gpu_convolution c;
	(void)state;
	assert_int_equal(stint_gpu_convolution_of("conv_data", p, &c), STINT_OK);
	assert_int_equal(c.cap, 4 << 20);
	p[0] = 32; /* 12.25 MiB */
	assert_int_equal(stint_gpu_convolution_of("conv_data", p, &c), STINT_OK);
	assert_int_equal(c.cap, 16 << 20);
	p[0] = INT64_C(1) << 50;
	assert_int_equal(stint_gpu_convolution_of("conv_data", p, &c), STINT_OK);
	assert_int_equal(c.cap, 32 << 20);
}

/* Which of the stand-in's engines is taken: without a note, whatever stands before it. */
static void test_engines(void **state)
{
	const int64_t p[24] = {1, 2, 3, 3, 2, 1, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 0, 3};
	stint_gpu *g = gpu_new();
	struct stint_gpu_convolution c;
	(void)state;
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_convolution_of("conv_forward", p, &c), STINT_OK);
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
