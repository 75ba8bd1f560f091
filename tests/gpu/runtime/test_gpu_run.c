/* The glue on stand-ins: what calls the driver gets, what happens when any of them fails, what is
 * measured. Kernels are compiled by the real NVRTC where it is installed. */
#include <string.h>

#include "fake_tools.h"

/* --- Devices --- */

static void test_no_device(void **state)
{
	stint_gpu *g = gpu_new();
	stint_gpu_ptr at;
	struct stint_gpu_graph *graph;
	(void)state;
	fake_of(g)->devices = 0;
	assert_int_equal(stint_gpu_open(g, 0), STINT_NO_DEVICE);
	assert_string_equal(stint_gpu_message(g),
		"no CUDA device: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)");
	/* and nothing else works, or crashes */
	assert_int_equal(stint_gpu_arena(g, 0, 256, &at), STINT_NO_DEVICE);
	assert_int_equal(stint_gpu_sync(g, 0), STINT_NO_DEVICE);
	assert_int_equal(stint_gpu_capture_begin(g), STINT_NO_DEVICE);
	assert_int_equal(stint_gpu_capture_end(g, &graph), STINT_BAD_DATA);
	assert_int_equal(stint_gpu_memory_note(g, "x"), STINT_NO_DEVICE);
	fake_of(g)->devices = 1;
	assert_int_equal(stint_gpu_open(g, 1), STINT_NO_DEVICE);
	assert_string_equal(stint_gpu_message(g), "no CUDA device 1: there is 1");
	gpu_done(g);
}

static void test_architectures(void **state)
{
	static const int list[][3] = {{7, 5, 0}, {8, 0, 80}, {8, 6, 86}, {8, 7, 86}, {8, 9, 89},
		{9, 0, 90}, {10, 0, 100}, {10, 3, 100}, {11, 0, 0}, {12, 0, 120}, {12, 1, 120},
		{13, 0, 0}};
	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		assert_int_equal(stint_gpu_arch(list[i][0], list[i][1]), list[i][2]);
	stint_gpu *g = gpu_new();
	fake_of(g)->major = 7;
	assert_int_equal(stint_gpu_open(g, 0), STINT_BAD_MACHINE);
	assert_non_null(strstr(stint_gpu_message(g), "7.0"));
	gpu_done(g);
}

static void test_facts(void **state)
{
	stint_gpu *g = gpu_new();
	char line[192];
	(void)state;
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_open(g, 0), STINT_BAD_DATA); /* once */
	const struct stint_gpu_facts *f = stint_gpu_facts_of(g);
	assert_string_equal(f->name, "Stand-in");
	assert_int_equal(f->arch, 90);
	assert_int_equal(f->shared_block, 227 * KIB);
	assert_int_equal(f->driver, 13000);
	assert_true(f->bandwidth > 1.0239e12 && f->bandwidth < 1.0241e12);
	assert_string_equal(
		stint_gpu_identity(g, line), "Stand-in sm_90 16 SMs driver 13000 cublasLt 130100");
	gpu_done(g);
}

/* A library newer than the driver is not taken. */
static void test_old_driver(void **state)
{
	stint_gpu *g = gpu_new();
	(void)state;
	fake_of(g)->version = 12040;
	stint_gpu_free(g);
	assert_int_equal(stint_gpu_new(&g, FAKES), STINT_OK);
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	if (stint_gpu_need(g, STINT_GPU_CUBLASLT))
		assert_non_null(strstr(stint_gpu_message(g),
			"libcublasLt.so.13: newer than the driver, which knows CUDA 12.4"));
	else /* another one is installed here */
		assert_null(strstr(stint_gpu_library_path(g, STINT_GPU_CUBLASLT), ".so.13"));
	gpu_done(g);
}

/* --- Memory --- */

static int64_t item_of(const stint_gpu *g, const char *what)
{
	const struct stint_gpu_item *item;
	const int n = stint_gpu_memory(g, &item);
	for (int i = 0; i < n; i++)
		if (!strcmp(item[i].what, what))
			return item[i].bytes;
	return -1;
}

static void test_arena(void **state)
{
	stint_gpu *g = gpu_new();
	stint_gpu_ptr at = 7, other;
	unsigned char in[300], out[300] = {0};
	(void)state;
	memset(in, 5, sizeof in);
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_arena(g, 0, (size_t)9 << 30, &at), STINT_NO_MEMORY);
	assert_int_equal(at, 7);
	assert_int_equal(stint_gpu_arena(g, 0, 3 * MIB + 1, &at), STINT_OK);
	assert_int_equal(stint_gpu_arena(g, 0, 256, &other), STINT_BAD_DATA); /* one only */
	assert_int_equal(item_of(g, "context"), 256 * MIB);
	assert_int_equal(item_of(g, "arena rounding"), MIB - 1);
	assert_int_equal(stint_gpu_put(g, STINT_GPU_MAIN, at, in, sizeof in), STINT_OK);
	assert_int_equal(stint_gpu_behind(g, STINT_GPU_SIDE, STINT_GPU_MAIN), STINT_OK);
	assert_int_equal(stint_gpu_fill(g, STINT_GPU_SIDE, at + 100, 9, 100), STINT_OK);
	assert_int_equal(stint_gpu_behind(g, STINT_GPU_MAIN, STINT_GPU_SIDE), STINT_OK);
	assert_int_equal(stint_gpu_copy(g, STINT_GPU_MAIN, at + 1000, at, sizeof in), STINT_OK);
	assert_int_equal(stint_gpu_get(g, STINT_GPU_MAIN, out, at + 1000, sizeof out), STINT_OK);
	assert_int_equal(stint_gpu_sync(g, STINT_GPU_MAIN), STINT_OK);
	for (int i = 0; i < 300; i++)
		assert_int_equal(out[i], i >= 100 && i < 200 ? 9 : 5);
	gpu_done(g);
}

static void test_arena_given(void **state)
{
	stint_gpu *owner = gpu_new(), *g;
	stint_gpu_ptr at, out = 0;
	(void)state;
	assert_int_equal(stint_gpu_open(owner, 0), STINT_OK);
	assert_int_equal(stint_gpu_arena(owner, 0, 1000, &at), STINT_OK);
	assert_int_equal(stint_gpu_new(&g, FAKES), STINT_OK);
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_arena(g, at + 64, 100, &out), STINT_BAD_DATA);
	assert_int_equal(stint_gpu_arena(g, at, 1001, &out), STINT_BAD_DATA);
	assert_int_equal(stint_gpu_arena(g, at, SIZE_MAX, &out), STINT_BAD_DATA);
	assert_int_equal(out, 0);
	assert_int_equal(stint_gpu_arena(g, at, 1000, &out), STINT_OK);
	assert_int_equal(out, at);
	stint_gpu_free(g); /* the arena is not its own */
	assert_int_equal(stint_gpu_fill(owner, 0, at, 1, 1000), STINT_OK);
	gpu_done(owner);
}

static void test_notes(void **state)
{
	stint_gpu *g = gpu_new();
	const struct stint_gpu_item *item;
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k",
		"l", "m", "n", "o", "p", "q", "r"};
	int64_t sum = 0;
	(void)state;
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	for (int i = 0; i < 18; i++) { /* more names than there is room for: nothing is lost */
		fake_of(g)->used += 1000;
		assert_int_equal(stint_gpu_memory_note(g, names[i]), STINT_OK);
	}
	fake_of(g)->used -= 18 * 1000;
	const int n = stint_gpu_memory(g, &item);
	for (int i = 0; i < n; i++)
		sum += item[i].bytes;
	assert_int_equal(sum, 256 * MIB + 18 * 1000);
	gpu_done(g);
}

/* --- Kernels, marks, graphs --- */

static const char text[] =
	"extern \"C\" __global__ void axpy(float *y, const float *x, float a, int n)\n"
	"{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += a * x[i]; }\n"
	"extern \"C\" __global__ void reverse(float *x, int n) { x[0] = n; }\n";

/* Skips the test where there is no compiler. */
static struct stint_gpu_code code_make(stint_gpu *g)
{
	struct stint_gpu_code code = {NULL, 0, 0};
	const int rc = stint_gpu_compile(g, text, 90, NULL, 0, &code);
	if (rc == STINT_BAD_MACHINE) {
		stint_gpu_free(g);
		skip();
	}
	assert_int_equal(rc, STINT_OK);
	return code;
}

static int axpy(stint_gpu *g, int stream, const struct stint_gpu_kernel *k, stint_gpu_ptr y,
	stint_gpu_ptr x, float a, int n)
{
	const unsigned grid[3] = {(unsigned)(n + 31) / 32, 1, 1}, block[3] = {32, 1, 1};
	void *args[] = {&y, &x, &a, &n};
	return stint_gpu_launch(g, stream, k, grid, block, args);
}

static void test_kernels(void **state)
{
	stint_gpu *g = gpu_new();
	struct stint_gpu_code code = code_make(g);
	struct stint_gpu_kernel k = {0};
	int module = -1;
	(void)state;
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_kernel_find(g, 0, "axpy", 0, &k), STINT_BAD_DATA);
	assert_int_equal(stint_gpu_load(g, &code, &module), STINT_OK);
	assert_int_equal(stint_gpu_kernel_find(g, module, "nothing", 0, &k), STINT_BAD_MACHINE);
	assert_int_equal(
		stint_gpu_kernel_find(g, module, "reverse", 228 * KIB, &k), STINT_BAD_MACHINE);
	assert_non_null(strstr(stint_gpu_message(g), "shared memory"));
	assert_null(k.function);
	assert_int_equal(stint_gpu_kernel_find(g, module, "reverse", 227 * KIB, &k), STINT_OK);
	stint_gpu_ptr at;
	int n = 100;
	void *args[] = {&at, &n};
	const unsigned one[3] = {1, 1, 1}, none[3] = {0, 1, 1};
	assert_int_equal(stint_gpu_arena(g, 0, 1000, &at), STINT_OK);
	/* the stand-in refuses more shared memory than was asked for */
	assert_int_equal(stint_gpu_launch(g, STINT_GPU_SIDE, &k, one, one, args), STINT_OK);
	assert_int_equal(
		stint_gpu_launch(g, STINT_GPU_SIDE, &k, none, one, args), STINT_BAD_MACHINE);
	assert_int_equal(fake_of(g)->launches, 0);
	assert_int_equal(stint_gpu_sync(g, STINT_GPU_SIDE), STINT_OK);
	assert_int_equal(fake_of(g)->launches, 1);
	stint_gpu_code_free(&code);
	gpu_done(g);
}

struct scene {
	stint_gpu *g;
	struct stint_gpu_kernel axpy;
	stint_gpu_ptr at;
	struct stint_gpu_graph *graph;
	float *host;
};

/* What is recorded reads its arguments now and runs later, with both streams in order. */
static int scene_record(struct scene *s)
{
	stint_gpu *g = s->g;
	int rc = stint_gpu_capture_begin(g);
	if (rc)
		return rc;
	rc = rc ? rc : axpy(g, STINT_GPU_MAIN, &s->axpy, s->at, s->at + 256, 1, 8);
	rc = rc ? rc : stint_gpu_mark(g, STINT_GPU_MAIN, 0);
	rc = rc ? rc : stint_gpu_wait(g, STINT_GPU_SIDE, 0);
	rc = rc ? rc : stint_gpu_get(g, STINT_GPU_SIDE, s->host, s->at, 32);
	rc = rc ? rc : stint_gpu_mark(g, STINT_GPU_SIDE, 1);
	rc = rc ? rc : stint_gpu_wait(g, STINT_GPU_MAIN, 1);
	const int ended = stint_gpu_capture_end(g, &s->graph);
	return rc ? rc : ended;
}

static int scene_open(struct scene *s, const struct stint_gpu_code *code)
{
	static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	int module;
	void *host;
	int rc = stint_gpu_open(s->g, 0);
	rc = rc ? rc : stint_gpu_arena(s->g, 0, 4096, &s->at);
	rc = rc ? rc : stint_gpu_load(s->g, code, &module);
	rc = rc ? rc : stint_gpu_kernel_find(s->g, module, "axpy", 0, &s->axpy);
	rc = rc ? rc : stint_gpu_pinned(s->g, 32, &host);
	s->host = rc ? NULL : host;
	rc = rc ? rc : stint_gpu_fill(s->g, STINT_GPU_MAIN, s->at, 0, 1024);
	rc = rc ? rc : stint_gpu_put(s->g, STINT_GPU_MAIN, s->at + 256, x, sizeof x);
	return rc;
}

static int scene_play(struct scene *s)
{
	double ms;
	int rc = stint_gpu_mark(s->g, STINT_GPU_MAIN, 2);
	rc = rc ? rc : stint_gpu_replay(s->g, s->graph);
	rc = rc ? rc : stint_gpu_replay(s->g, s->graph);
	rc = rc ? rc : stint_gpu_mark(s->g, STINT_GPU_MAIN, 3);
	rc = rc ? rc : stint_gpu_behind(s->g, STINT_GPU_FEED, STINT_GPU_MAIN);
	rc = rc ? rc : stint_gpu_reach(s->g, 3);
	rc = rc ? rc : stint_gpu_sync(s->g, STINT_GPU_MAIN);
	rc = rc ? rc : stint_gpu_elapsed(s->g, 2, 3, &ms);
	return rc;
}

static void test_graph(void **state)
{
	struct scene s = {.g = gpu_new()};
	struct stint_gpu_code code = code_make(s.g);
	double ms;
	(void)state;
	assert_int_equal(scene_open(&s, &code), STINT_OK);
	assert_int_equal(scene_record(&s), STINT_OK);
	assert_int_equal(fake_of(s.g)->launches, 0);
	assert_int_equal(stint_gpu_graph_nodes(s.graph), 2);
	assert_int_equal(scene_play(&s), STINT_OK);
	assert_int_equal(fake_of(s.g)->launches, 2);
	for (int i = 0; i < 8; i++)
		assert_true(s.host[i] == 2 * (float)(i + 1));
	assert_int_equal(item_of(s.g, "kernels"), 2 * MIB);
	assert_int_equal(item_of(s.g, "graph"), 2 * MIB);
	assert_int_equal(stint_gpu_elapsed(s.g, 2, 99, &ms), STINT_BAD_DATA);
	assert_int_equal(stint_gpu_wait(s.g, 0, 98), STINT_BAD_DATA);
	assert_int_equal(stint_gpu_mark(s.g, 0, -1), STINT_BAD_DATA);
	stint_gpu_graph_free(s.g, s.graph);
	stint_gpu_code_free(&code);
	gpu_done(s.g);
}

/* A side stream that nobody waited for: an error, and recording can start again. */
static void test_unjoined(void **state)
{
	struct scene s = {.g = gpu_new()};
	struct stint_gpu_code code = code_make(s.g);
	(void)state;
	assert_int_equal(scene_open(&s, &code), STINT_OK);
	assert_int_equal(stint_gpu_capture_begin(s.g), STINT_OK);
	assert_int_equal(stint_gpu_mark(s.g, STINT_GPU_MAIN, 0), STINT_OK);
	assert_int_equal(stint_gpu_wait(s.g, STINT_GPU_SIDE, 0), STINT_OK);
	assert_int_equal(stint_gpu_fill(s.g, STINT_GPU_SIDE, s.at, 1, 8), STINT_OK);
	assert_int_equal(stint_gpu_capture_end(s.g, &s.graph), STINT_BAD_MACHINE);
	assert_null(s.graph);
	assert_int_equal(scene_record(&s), STINT_OK);
	assert_int_equal(scene_play(&s), STINT_OK);
	stint_gpu_graph_free(s.g, s.graph);
	stint_gpu_code_free(&code);
	gpu_done(s.g);
}

/* --- Products --- */

static int product_run(stint_gpu *g, stint_gpu_ptr at)
{
	const struct stint_lib_call p = {.product = {.batch = 1,
						 .m = 4,
						 .n = 5,
						 .k = 6,
						 .each0 = 1,
						 .each1 = 1,
						 .extra = STINT_PRODUCT_BIAS}};
	struct stint_gpu_product product;
	struct stint_gpu_matmul *m;
	int rc = stint_gpu_product_of(&p, 90, &product);
	rc = rc ? rc : stint_gpu_matmul_new(g, &product, &m);
	if (rc)
		return rc;
	assert_int_equal(stint_gpu_matmul_workspace(m), 512);
	rc = stint_gpu_matmul_run(g, 0, m, at, at, at + 256, at, at + 512);
	stint_gpu_matmul_free(m);
	return rc;
}

static int convolution_run(stint_gpu *g, stint_gpu_ptr at)
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
	struct stint_gpu_convolution c;
	struct stint_gpu_conv *m;
	int rc = stint_gpu_convolution_of(&p, &c);
	rc = rc ? rc : stint_gpu_conv_new(g, &c, &m);
	if (rc)
		return rc;
	rc = stint_gpu_conv_run(g, 0, m, at, at, at + 256, at + 1024);
	stint_gpu_conv_free(m);
	return rc;
}

/* Every call of the driver failing in turn: an error, the driver's words, nothing kept. */
static void test_every_failure(void **state)
{
	stint_gpu *g = gpu_new();
	struct stint_gpu_code code = code_make(g);
	int at = 1, rc = 1;
	(void)state;
	stint_gpu_free(g);
	for (; rc && at < 1000; at++) {
		struct scene s = {.g = gpu_new()};
		fake_of(s.g)->fail_at = at;
		rc = scene_open(&s, &code);
		rc = rc ? rc : scene_record(&s);
		rc = rc ? rc : scene_play(&s);
		rc = rc ? rc : product_run(s.g, s.at);
		rc = rc ? rc : convolution_run(s.g, s.at);
		if (rc)
			assert_non_null(strstr(stint_gpu_message(s.g), "a made up failure"));
		fake_of(s.g)->fail_at = 0;
		stint_gpu_graph_free(s.g, s.graph);
		gpu_done(s.g);
	}
	assert_int_equal(rc, STINT_OK);
	assert_true(at > 60); /* so many calls there are at least */
	stint_gpu_code_free(&code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_device),
		cmocka_unit_test(test_architectures),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_old_driver),
		cmocka_unit_test(test_arena),
		cmocka_unit_test(test_arena_given),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_unjoined),
		cmocka_unit_test(test_every_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
