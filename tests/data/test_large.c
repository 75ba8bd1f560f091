/* Data of any size: 6 GiB, in a file with holes, shuffled and read in small memory. */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/array_stream.h"
#include "data/dataset.h"
#include "data/shuffle.h"

enum { ROW = 1024, BATCH = 64, BATCHES = 64, MOST_KIB = 64 << 10 };

/* KiB of this process that no file holds. */
static long anonymous(void)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		(void)sscanf(line, "RssAnon: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

static void six_gibibytes(void **state)
{
	(void)state;
	const int64_t samples = ((int64_t)6 << 30) / (ROW * 4), dim[2] = {samples, ROW};
	char header[NPY_HEADER], message[256] = "";
	const size_t head = npy_header("<f4", 2, dim, header);
	static float batch[BATCH * ROW];
	struct shuffle order = {.n = 0};
	struct dataset d;
	scratch_write("large.npy", header, head);
	if (anonymous() < 0 ||
		truncate("large.npy", (off_t)((int64_t)head + samples * ROW * 4)) != 0) {
		(void)unlink("large.npy");
		print_message("no files with holes here, or no /proc\n");
		skip();
	}
	const long before = anonymous();
	assert_int_equal(dataset_open(&d, "large.npy", message), 0);
	assert_int_equal(shuffle_open(&order, samples), 0);
	shuffle_begin(&order, 1, 0);
	for (int64_t b = 0; b < BATCHES; b++) {
		int64_t index[BATCH], done;
		for (int64_t i = 0; i < BATCH; i++)
			index[i] = shuffle_at(&order, b * (samples / BATCHES) + i);
		assert_int_equal(
			dataset_read(&d, index, BATCH, DATASET_AS_F32, NULL, batch, &done, message),
			0);
		assert_int_equal(done, BATCH);
	}
	const long grown = anonymous() - before;
	print_message("%ld KiB for 6 GiB\n", grown);
	assert_true(grown <= MOST_KIB);
	shuffle_close(&order);
	dataset_close(&d);
	(void)unlink("large.npy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(six_gibibytes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
