/* Order among streams, on the stand-in driver, which runs streams beside the main one as late as
 * their waits allow, or as early: a wait that is missing shows in one of the two. */
#include <string.h>

#include "fake_tools.h"

enum { BYTES = 256 };

struct scene {
	stint_gpu *g;
	stint_gpu_ptr at;
	unsigned char *in, *out; /* page-locked */
};

static struct scene scene_new(int early)
{
	struct scene s = {.g = gpu_new()};
	void *in = NULL, *out = NULL;
	fake_of(s.g)->early = early;
	assert_int_equal(stint_gpu_open(s.g, 0), STINT_OK);
	assert_int_equal(stint_gpu_arena(s.g, 0, (size_t)4 * BYTES, &s.at), STINT_OK);
	assert_int_equal(stint_gpu_pinned(s.g, BYTES, &in), STINT_OK);
	assert_int_equal(stint_gpu_pinned(s.g, BYTES, &out), STINT_OK);
	s.in = in;
	s.out = out;
	memset(s.in, 7, BYTES);
	memset(s.out, 0, BYTES);
	assert_int_equal(stint_gpu_fill(s.g, STINT_GPU_MAIN, s.at, 1, (size_t)4 * BYTES), STINT_OK);
	assert_int_equal(stint_gpu_sync(s.g, STINT_GPU_MAIN), STINT_OK);
	return s;
}

/* The main stream brings 7s, another one copies them, the main one brings the copy back. What
 * arrives, with or without the wait before and behind. */
static int around(int stream, int early, int before, int behind)
{
	struct scene s = scene_new(early);
	int rc = stint_gpu_put(s.g, STINT_GPU_MAIN, s.at, s.in, BYTES);
	if (before)
		rc |= stint_gpu_behind(s.g, stream, STINT_GPU_MAIN);
	rc |= stint_gpu_copy(s.g, stream, s.at + BYTES, s.at, BYTES);
	if (behind)
		rc |= stint_gpu_behind(s.g, STINT_GPU_MAIN, stream);
	rc |= stint_gpu_get(s.g, STINT_GPU_MAIN, s.out, s.at + BYTES, BYTES);
	rc |= stint_gpu_sync(s.g, STINT_GPU_MAIN);
	assert_int_equal(rc, STINT_OK);
	const int got = s.out[BYTES - 1];
	gpu_done(s.g);
	return got;
}

static void test_behind(void **state)
{
	(void)state;
	for (int stream = STINT_GPU_SIDE; stream <= STINT_GPU_FEED; stream++) {
		for (int early = 0; early < 2; early++)
			assert_int_equal(around(stream, early, 1, 1), 7);
		assert_int_equal(around(stream, 1, 0, 1), 1); /* too early */
		assert_int_equal(around(stream, 0, 1, 0), 1); /* not yet */
	}
}

/* The same in a graph, which another stream joins and leaves. */
static void test_recorded(void **state)
{
	(void)state;
	for (int early = 0; early < 2; early++) {
		struct scene s = scene_new(early);
		struct stint_gpu_graph *graph = NULL;
		int rc = stint_gpu_capture_begin(s.g);
		rc |= stint_gpu_put(s.g, STINT_GPU_MAIN, s.at, s.in, BYTES);
		rc |= stint_gpu_behind(s.g, STINT_GPU_SIDE, STINT_GPU_MAIN);
		rc |= stint_gpu_copy(s.g, STINT_GPU_SIDE, s.at + BYTES, s.at, BYTES);
		rc |= stint_gpu_behind(s.g, STINT_GPU_BACK, STINT_GPU_SIDE);
		rc |= stint_gpu_copy(
			s.g, STINT_GPU_BACK, s.at + (stint_gpu_ptr)2 * BYTES, s.at + BYTES, BYTES);
		rc |= stint_gpu_behind(s.g, STINT_GPU_MAIN, STINT_GPU_BACK);
		rc |= stint_gpu_get(
			s.g, STINT_GPU_MAIN, s.out, s.at + (stint_gpu_ptr)2 * BYTES, BYTES);
		assert_int_equal(rc, STINT_OK);
		assert_int_equal(stint_gpu_capture_end(s.g, &graph), STINT_OK);
		assert_int_equal(stint_gpu_graph_nodes(graph), 4);
		assert_int_equal(s.out[0], 0); /* nothing ran */
		for (int k = 0; k < 2; k++) {
			s.in[0] = (unsigned char)(20 + k);
			assert_int_equal(stint_gpu_replay(s.g, graph), STINT_OK);
			assert_int_equal(stint_gpu_sync(s.g, STINT_GPU_MAIN), STINT_OK);
			assert_int_equal(s.out[0], 20 + k);
		}
		stint_gpu_graph_free(s.g, graph);
		gpu_done(s.g);
	}
}

/* Page-locked memory is read when its turn comes: it may change behind stint_gpu_reach. */
static void test_reach(void **state)
{
	(void)state;
	for (int waits = 0; waits < 2; waits++) {
		struct scene s = scene_new(0);
		const int mark = stint_gpu_marks(s.g, 2);
		assert_int_equal(stint_gpu_marks(s.g, 1), mark + 2);
		assert_int_equal(stint_gpu_reach(s.g, mark), STINT_OK); /* never set */
		int rc = stint_gpu_put(s.g, STINT_GPU_FEED, s.at, s.in, BYTES);
		rc |= stint_gpu_mark(s.g, STINT_GPU_FEED, mark);
		if (waits)
			rc |= stint_gpu_reach(s.g, mark);
		s.in[0] = 9;
		rc |= stint_gpu_behind(s.g, STINT_GPU_MAIN, STINT_GPU_FEED);
		rc |= stint_gpu_get(s.g, STINT_GPU_MAIN, s.out, s.at, BYTES);
		rc |= stint_gpu_sync(s.g, STINT_GPU_MAIN);
		assert_int_equal(rc, STINT_OK);
		assert_int_equal(s.out[0], waits ? 7 : 9);
		gpu_done(s.g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_behind),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_reach),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
