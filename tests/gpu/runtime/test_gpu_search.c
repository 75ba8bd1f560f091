/* Where libraries are looked for, and that those of NVIDIA that are here have what is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/stint_gpu_api.h"

/* Under the sanitizer: NVIDIA's library loses what it took when it finds no device. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libcublasLt.so\nleak:libcudnn";
}

/* Makes the folders of a path and an empty file there. */
static void file_make(const char *path)
{
	char part[1024];
	snprintf(part, sizeof part, "%s", path);
	for (char *p = part + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			mkdir(part, 0777);
			*p = '/';
		}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(path, 0777), 0);
}

/* Which paths come in this order, by their endings. */
static void expect(
	const stint_gpu *g, enum stint_gpu_library library, int where, const char *const *ends)
{
	char *places = stint_gpu_places(g, library, where);
	const char *p = places;
	assert_non_null(places);
	for (; *ends; ends++) {
		while (*p && (strlen(p) < strlen(*ends) ||
				     strcmp(p + strlen(p) - strlen(*ends), *ends) != 0))
			p += strlen(p) + 1;
		if (!*p)
			fail_msg("%s is not there, or not in order", *ends);
	}
	free(places);
}

static void test_given(void **state)
{
	static const char *const ends[] = {"b*d/libnvrtc.so.13.2", "b*d/libnvrtc.so.13",
		"b*d/libnvrtc.so.9", "a/libnvrtc.so.12", NULL};
	static const char *const none[] = {NULL};
	stint_gpu *g;
	(void)state;
	file_make("given/a/libnvrtc.so.12");
	file_make("given/b*d/libnvrtc.so.13");
	file_make("given/b*d/libnvrtc.so.9");
	file_make("given/b*d/libnvrtc.so.13.2");
	file_make("given/b*d/libnvrtc.so"); /* no version: for linking */
	file_make("given/b*d/libnvrtc-builtins.so.13.2");
	assert_int_equal(stint_gpu_new(&g, "given/none::given/b*d:given/a"), STINT_OK);
	expect(g, STINT_GPU_NVRTC, 0, ends);
	expect(g, STINT_GPU_CUBLASLT, 0, none);
	char *places = stint_gpu_places(g, STINT_GPU_CUBLASLT, 0);
	assert_non_null(places);
	assert_string_equal(places, "");
	free(places);
	stint_gpu_free(g);
	setenv("STINT_CUDA_LIBS", "given/b*d:given/a", 1);
	assert_int_equal(stint_gpu_new(&g, NULL), STINT_OK);
	expect(g, STINT_GPU_NVRTC, 0, ends);
	stint_gpu_free(g);
	unsetenv("STINT_CUDA_LIBS");
}

/* A virtual environment, Conda, a python3 in PATH that is neither, and ~/.local. */
static void test_pip(void **state)
{
	static const char *const ends[] = {
		"venv/lib/python3.11/site-packages/nvidia/cu13/lib/libcublasLt.so.13",
		"venv/lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
		"venv/lib/python3.9/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
		"path/lib/python3.12/site-packages/nvidia/cu13/lib/libcublasLt.so.13",
		"home/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libcublasLt.so.13", NULL};
	static const char *const names[] = {"VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "HOME"};
	char *before[4], here[900], value[2048];
	stint_gpu *g;
	(void)state;
	assert_non_null(getcwd(here, sizeof here));
	for (int i = 0; i < 4; i++)
		before[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
	for (int i = 0; ends[i]; i++) {
		snprintf(value, sizeof value, "%s/pip/%s", here, ends[i]);
		file_make(value);
	}
	file_make("pip/path/bin/python3");
	snprintf(value, sizeof value, "%s/pip/venv", here);
	setenv("VIRTUAL_ENV", value, 1);
	unsetenv("CONDA_PREFIX");
	snprintf(value, sizeof value, "%s/pip/none/bin::%s/pip/path/bin:/usr/bin", here, here);
	setenv("PATH", value, 1);
	snprintf(value, sizeof value, "%s/pip/home", here);
	setenv("HOME", value, 1);
	assert_int_equal(stint_gpu_new(&g, NULL), STINT_OK);
	expect(g, STINT_GPU_CUBLASLT, 2, ends);
	stint_gpu_free(g);
	for (int i = 0; i < 4; i++) {
		if (before[i])
			setenv(names[i], before[i], 1);
		else
			unsetenv(names[i]);
		free(before[i]);
	}
}

/* Files that are no libraries are passed over, and the message says so. */
static void test_not_a_library(void **state)
{
	stint_gpu *g;
	(void)state;
	file_make("broken/libcuda.so.1");
	assert_int_equal(stint_gpu_new(&g, "broken"), STINT_OK);
	const int rc = stint_gpu_need(g, STINT_GPU_DRIVER);
	assert_true(rc == STINT_OK || rc == STINT_NO_DEVICE);
	if (rc) {
		assert_memory_equal(stint_gpu_message(g),
			"no CUDA device: libcuda.so.1 was not found (broken/libcuda.so.1: ", 57);
		assert_non_null(strstr(stint_gpu_message(g), "install NVIDIA's driver"));
		assert_int_equal(stint_gpu_open(g, 0), STINT_NO_DEVICE);
	}
	assert_int_equal(stint_gpu_library_version(g, STINT_GPU_NVRTC), 0);
	assert_string_equal(stint_gpu_library_path(g, STINT_GPU_NVRTC), "");
	assert_null(stint_gpu_symbol(g, STINT_GPU_NVRTC, "nvrtcVersion"));
	stint_gpu_free(g);
}

/* NVIDIA's own, where they are installed: stint_gpu_need finds every function or fails. */
static void test_installed(void **state)
{
	stint_gpu *g;
	int found = 0;
	(void)state;
	assert_int_equal(stint_gpu_new(&g, NULL), STINT_OK);
	for (int i = STINT_GPU_NVRTC; i < STINT_GPU_LIBRARIES; i++) {
		const enum stint_gpu_library library = (enum stint_gpu_library)i;
		if (stint_gpu_need(g, library)) {
			assert_null(strstr(stint_gpu_message(g), "has no "));
			assert_non_null(strstr(stint_gpu_message(g), "pip install"));
			continue;
		}
		found++;
		print_message("%s %d\n", stint_gpu_library_path(g, library),
			stint_gpu_library_version(g, library));
		assert_true(stint_gpu_library_version(g, library) >= 9000);
		assert_int_equal(stint_gpu_library_path(g, library)[0], '/');
	}
	stint_gpu_free(g);
	if (!found)
		skip();
}

/* The toolkit's stub of the driver exports what the driver does and fails in every call. */
static void test_stub(void **state)
{
	stint_gpu *g;
	char target[1024];
	(void)state;
	if (access(STUB, R_OK))
		skip();
	assert_int_equal(mkdir("stub", 0777) && access("stub", W_OK), 0);
	snprintf(target, sizeof target, "stub/libcuda.so.1");
	unlink(target);
	assert_int_equal(symlink(STUB, target), 0);
	assert_int_equal(stint_gpu_new(&g, "stub"), STINT_OK);
	assert_int_equal(stint_gpu_need(g, STINT_GPU_DRIVER), STINT_OK);
	assert_non_null(g->cu.cuFuncLoad);
	assert_int_equal(stint_gpu_open(g, 0), STINT_NO_DEVICE);
	assert_memory_equal(stint_gpu_message(g), "no CUDA device: ", 16);
	stint_gpu_free(g);
}

/* The real cuBLASLt takes every description we give it, of all types and epilogues: it fails only
 * where it wants a device. */
static void test_descriptions(void **state)
{
	enum { BF16 = STINT_X0_NARROW | STINT_X1_NARROW | STINT_Y0_NARROW };
	stint_gpu *g;
	(void)state;
	assert_int_equal(stint_gpu_new(&g, FAKES), STINT_OK);
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	free(g->folders);
	g->folders = strdup("nowhere"); /* a stand-in as the driver, but not as the library */
	if (stint_gpu_need(g, STINT_GPU_CUBLASLT)) {
		stint_gpu_free(g);
		skip();
	}
	for (int how = 0; how < 4 * 8; how++) {
		const struct stint_lib_call call = {.types = !(how >> 2 & 1) ? 0
							     : how >> 3 & 1
								     ? BF16 | STINT_NARROW_IS_FP16
								     : BF16,
			.product = {.batch = how % 4 < 2 ? 2 : 1,
				.m = 16,
				.n = 32,
				.k = 64,
				.t0 = 1,
				.t1 = how >> 4 & 1,
				.each0 = 1,
				.each1 = 1,
				.extra = (enum stint_product_extra)(how % 4)}};
		struct stint_gpu_product product;
		struct stint_gpu_matmul *m;
		assert_int_equal(stint_gpu_product_of(&call, 90, &product), STINT_OK);
		product.tf32 = !(how >> 2 & 1) && (how >> 3 & 1);
		assert_int_not_equal(stint_gpu_matmul_new(g, &product, &m), STINT_OK);
		if (!strstr(stint_gpu_message(g), "cuBLASLt: starting: "))
			fail_msg("%s", stint_gpu_message(g));
	}
	stint_gpu_free(g);
}

/* So does the real cuDNN. */
static void test_convolutions(void **state)
{
	static const struct stint_convolution shape[] = {{.axes = 2,
								 .n = 2,
								 .c = 16,
								 .k = 16,
								 .groups = 2,
								 .size = {15, 14},
								 .kernel = {3, 3},
								 .stride = {2, 2},
								 .dilation = {1, 1},
								 .before = {1, 1},
								 .out = {8, 7}},
		{.axes = 3,
			.n = 2,
			.c = 8,
			.k = 16,
			.groups = 1,
			.size = {5, 6, 7},
			.kernel = {3, 3, 3},
			.stride = {1, 2, 1},
			.dilation = {1, 1, 1},
			.before = {1, 1, 1},
			.out = {5, 3, 7}}};
	stint_gpu *g;
	(void)state;
	assert_int_equal(stint_gpu_new(&g, FAKES), STINT_OK);
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	free(g->folders);
	g->folders = strdup("nowhere");
	if (stint_gpu_need(g, STINT_GPU_CUDNN)) {
		stint_gpu_free(g);
		skip();
	}
	for (int how = 0; how < 6 * 4; how++) {
		struct stint_lib_call call = {
			.kind = (enum stint_call_kind)(STINT_CALL_CONV_FORWARD + how % 3),
			.types = how / 6 % 2 ? STINT_X0_NARROW | STINT_X1_NARROW | STINT_Y0_NARROW
					     : 0,
			.conv = shape[how % 6 / 3]};
		struct stint_gpu_convolution c;
		struct stint_gpu_conv *m;
		call.conv.last = how / 12;
		assert_int_equal(stint_gpu_convolution_of(&call, &c), STINT_OK);
		assert_int_not_equal(stint_gpu_conv_new(g, &c, &m), STINT_OK);
		if (!strstr(stint_gpu_message(g), "cuDNN: starting: "))
			fail_msg("%s", stint_gpu_message(g));
	}
	stint_gpu_free(g);
}

/* Of two cuDNN, which have one name, the one for cuBLASLt's CUDA, whichever comes first. */
static void test_mixed(void **state)
{
	static const char *const folders[] = {FAKES "_12:" FAKES, FAKES ":" FAKES "_12"};
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* its libraries cannot be looked at apart */
#endif
	for (int i = 0; i < 2; i++) {
		stint_gpu *g;
		assert_int_equal(stint_gpu_new(&g, folders[i]), STINT_OK);
		assert_int_equal(stint_gpu_need_cudnn(g), STINT_OK);
		assert_string_equal(
			stint_gpu_library_path(g, STINT_GPU_CUDNN), FAKES "/libcudnn.so.9");
		assert_int_equal(g->dnn.cudnnGetCudartVersion(), 13000);
		stint_gpu_free(g);
	}
	/* without cuBLASLt nothing tells which one is wanted: the first */
	stint_gpu *g;
	assert_int_equal(stint_gpu_new(&g, folders[0]), STINT_OK);
	assert_int_equal(stint_gpu_need(g, STINT_GPU_CUDNN), STINT_OK);
	assert_string_equal(stint_gpu_library_path(g, STINT_GPU_CUDNN), FAKES "_12/libcudnn.so.9");
	stint_gpu_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_pip),
		cmocka_unit_test(test_not_a_library),
		cmocka_unit_test(test_installed),
		cmocka_unit_test(test_stub),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_convolutions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
