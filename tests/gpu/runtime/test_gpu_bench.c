/* What `stint bench` asks of a device, on stand-ins: which steps the clock tells of, what memory
 * and peaks are made of, and what happens when a call fails. */
#include <stdlib.h>
#include <string.h>

#include "fake_tools.h"
#include "runtime/stint_rt_gpu.h"

/* A device, open, with an arena of 1 MiB. */
static stint_gpu *gpu_open(stint_gpu_ptr *at)
{
	stint_gpu *g = gpu_new();
	assert_int_equal(stint_gpu_open(g, 0), STINT_OK);
	assert_int_equal(stint_gpu_arena(g, 0, MIB, at), STINT_OK);
	return g;
}

/* --- The clock --- */

struct seen {
	int index[8], n;
	double us;
};

static void on_took(void *user, int index, double us)
{
	struct seen *s = user;
	assert_true(s->n < 8 && us >= 0);
	s->index[s->n++] = index;
	s->us += us;
}

/* Copies are recorded as an evaluation; how often it is replayed shows in what it copies. */
static int clock_run(stint_gpu *g, stint_gpu_ptr at, struct seen *s)
{
	static const int index[] = {0, 1, 1, 1, 2};
	const struct stint_probe probe = {.user = s, .took = on_took};
	struct stint_gpu_clock c = {0};
	struct stint_gpu_graph *graph = NULL;
	int rc = stint_gpu_capture_begin(g);
	if (rc)
		return rc;
	rc = stint_gpu_copy(g, STINT_GPU_MAIN, at + 256, at, 256);
	const int end = stint_gpu_capture_end(g, &graph);
	rc = rc ? rc : end;
	rc = rc ? rc : stint_gpu_fill(g, STINT_GPU_MAIN, at, 7, 256);
	rc = rc ? rc : stint_gpu_clock_start(g, &c, graph, 3);
	for (int i = 0; i < 5 && !rc; i++) {
		rc = stint_gpu_fill(g, STINT_GPU_MAIN, at + 512, 1, MIB - 512);
		rc = rc ? rc : stint_gpu_clock_mark(g, &c, index[i]);
	}
	rc = rc ? rc : stint_gpu_clock_tell(g, &c, &probe);
	/* how many calls it took depends on the time they took: the planned failure is not to hit
	 * what follows, which tells none */
	fake_of(g)->fail_at = 0;
	stint_gpu_clock_free(&c);
	stint_gpu_graph_free(g, graph);
	return rc;
}

static void test_clock(void **state)
{
	static const int index[] = {0, 1, 1, 1, 2};
	stint_gpu_ptr at;
	stint_gpu *g = gpu_open(&at);
	unsigned char got = 0;
	struct seen s = {.n = 0};
	(void)state;
	assert_int_equal(clock_run(g, at, &s), STINT_OK);
	assert_int_equal(s.n, 5);
	assert_memory_equal(s.index, index, sizeof index);
	assert_true(s.us > 0);
	/* the evaluation was run before */
	assert_int_equal(stint_gpu_get(g, STINT_GPU_MAIN, &got, at + 256, 1), STINT_OK);
	assert_int_equal(stint_gpu_sync(g, STINT_GPU_MAIN), STINT_OK);
	assert_int_equal(got, 7);
	gpu_done(g);
}

static void test_clock_fails(void **state)
{
	int rc = 1, at = 1;
	(void)state;
	for (; rc && at < 5000; at++) {
		stint_gpu_ptr arena;
		stint_gpu *g = gpu_open(&arena);
		struct seen s = {.n = 0};
		fake_of(g)->calls = 0;
		fake_of(g)->fail_at = at;
		rc = clock_run(g, arena, &s);
		if (rc)
			assert_non_null(strstr(stint_gpu_message(g), "a made up failure"));
		gpu_done(g);
	}
	assert_int_equal(rc, STINT_OK);
	assert_true(at > 60);
}

/* --- Memory --- */

static void test_memory(void **state)
{
	stint_gpu_ptr at;
	stint_gpu *g = gpu_open(&at);
	struct stint_device_memory m;
	int64_t sum = 0;
	(void)state;
	fake_of(g)->used += 3 * MIB; /* somebody takes it */
	assert_int_equal(stint_rt_gpu_memory(g, "steps", &m), STINT_OK);
	for (int i = 0; i < m.nitem; i++)
		sum += m.item[i].bytes;
	assert_string_equal(m.item[0].what, "context");
	assert_int_equal(m.item[0].bytes, 256 * MIB);
	assert_string_equal(m.item[m.nitem - 1].what, "steps");
	assert_int_equal(m.item[m.nitem - 1].bytes, 3 * MIB);
	assert_int_equal(m.used, sum + MIB); /* all but the arena */
	assert_int_equal(m.used, fake_of(g)->used);
	fake_of(g)->used -= 3 * MIB;
	gpu_done(g);
}

/* --- Peaks --- */

static void test_peaks(void **state)
{
	static const enum stint_gpu_type types[] = {STINT_GPU_F32, STINT_GPU_BF16, STINT_GPU_F16};
	char message[256];
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct stint_device_peaks p;
		assert_int_equal(stint_rt_gpu_peaks(types[i], i == 0, &p, message, sizeof message),
			STINT_OK);
		assert_non_null(strstr(p.name, "Stand-in sm_90"));
		assert_true(p.product >= 256 && p.flops_us > 0);
		assert_true(p.level[1].bytes >= 4 * MIB && p.level[1].bytes_us > 0);
		assert_true(p.level[0].bytes <= p.level[1].bytes && p.level[0].bytes_us > 0);
	}
}

static void test_peaks_fail(void **state)
{
	stint_gpu_ptr at;
	stint_gpu *g = gpu_open(&at);
	struct fake *f = fake_of(g);
	int failed = 0;
	(void)state;
	gpu_done(g);
	for (int call = 1, before = 1; call < 2000; call += before, before = call - before) {
		struct stint_device_peaks p;
		char message[256] = "";
		f->calls = 0;
		f->fail_at = call;
		if (stint_rt_gpu_peaks(STINT_GPU_F32, 0, &p, message, sizeof message)) {
			assert_true(strlen(message) > 5);
			failed++;
		}
		f->fail_at = 0;
		assert_int_equal(f->live, 0);
		assert_int_equal(f->depth, 0);
		assert_int_equal(f->used, 0);
	}
	assert_true(failed >= 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_clock),
		cmocka_unit_test(test_clock_fails), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_peaks), cmocka_unit_test(test_peaks_fail)};
	setenv("STINT_CUDA_LIBS", FAKES, 1);
	setenv("STINT_CACHE", "", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
