/* Arrays that are written bit by bit: read back by the readers of the formats. */
#include "scratch.h"

#include <string.h>
#include <unistd.h>

#include "data/array_stream.h"
#include "data/dataset.h"
#include "runtime/stint_rt.h"

static const int64_t dim[] = {3, 2};
static const float x[6] = {1, 2, 3, 4, 5, 6};
static const int64_t y[3] = {7, 8, 9};
static char message[256];

static void npy_in_parts(void **state)
{
	(void)state;
	const struct safetensors_entry e = {.name = "x", .dtype = STINT_F32, .rank = 2, .dim = dim};
	struct array_stream *s;
	assert_int_equal(array_stream_open(&s, "x.npy", 0, &e, 1, NULL, 0, message), 0);
	assert_int_equal(array_stream_put(s, 0, x, 8, message), 0);
	assert_int_equal(access("x.npy", F_OK), -1); /* not yet */
	assert_int_equal(array_stream_put(s, 0, x + 2, 16, message), 0);
	assert_int_equal(array_stream_end(s, message), 0);
	array_stream_close(s);
	struct dataset d;
	assert_int_equal(dataset_open(&d, "x.npy", message), 0);
	assert_int_equal(d.type, DATASET_F32);
	assert_int_equal(d.rank, 2);
	assert_memory_equal(d.dim, dim, sizeof dim);
	const int64_t rows[] = {0, 1, 2};
	float read[6];
	int64_t done;
	assert_int_equal(dataset_read(&d, rows, 3, DATASET_AS_F32, NULL, read, &done, message), 0);
	assert_memory_equal(read, x, sizeof x);
	dataset_close(&d);
}

static void safetensors_in_turn(void **state)
{
	(void)state;
	const struct safetensors_entry e[] = {
		{.name = "x", .dtype = STINT_F32, .rank = 2, .dim = dim},
		{.name = "y", .dtype = STINT_I64, .rank = 1, .dim = dim}};
	const struct safetensors_note note = {"k", "v"};
	struct array_stream *s;
	assert_int_equal(array_stream_open(&s, "b.safetensors", 1, e, 2, &note, 1, message), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(array_stream_put(s, 0, x + 2 * i, 8, message), 0);
		assert_int_equal(array_stream_put(s, 1, y + i, 8, message), 0);
	}
	assert_int_equal(array_stream_end(s, message), 0);
	array_stream_close(s);
	struct safetensors *f;
	assert_int_equal(safetensors_open(&f, "b.safetensors", message), 0);
	assert_int_equal(safetensors_count(f), 2);
	assert_memory_equal(safetensors_find(f, "x")->data, x, sizeof x);
	assert_memory_equal(safetensors_find(f, "y")->data, y, sizeof y);
	assert_string_equal(safetensors_note(f, "k"), "v");
	safetensors_close(f);
}

static void nothing_half_written(void **state)
{
	(void)state;
	const struct safetensors_entry e = {.name = "x", .dtype = STINT_F32, .rank = 2, .dim = dim};
	const struct safetensors_entry two[] = {e, {.name = "z", .dtype = STINT_F32}};
	struct array_stream *s;
	assert_int_equal(array_stream_open(&s, "part.npy", 0, &e, 1, NULL, 0, message), 0);
	assert_int_equal(array_stream_put(s, 0, x, 8, message), 0);
	assert_int_equal(array_stream_end(s, message), 1); /* values are missing */
	assert_non_null(strstr(message, "part.npy"));
	array_stream_close(s);
	assert_int_equal(array_stream_open(&s, "part.npy", 0, &e, 1, NULL, 0, message), 0);
	assert_int_equal(array_stream_put(s, 0, x, 24, message), 0);
	assert_int_equal(array_stream_put(s, 0, x, 4, message), 1); /* one too many */
	array_stream_close(s);
	assert_int_equal(array_stream_open(&s, "part.npy", 0, two, 2, NULL, 0, message), 1);
	array_stream_close(s);
	assert_int_equal(array_stream_open(&s, "no/folder.npy", 0, &e, 1, NULL, 0, message), 1);
	array_stream_close(s);
	assert_int_equal(access("part.npy", F_OK), -1);
	char work[64];
	snprintf(work, sizeof work, "part.npy.tmp%ld", (long)getpid());
	assert_int_equal(access(work, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(npy_in_parts),
		cmocka_unit_test(safetensors_in_turn),
		cmocka_unit_test(nothing_half_written),
	};
	unlink("x.npy");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
