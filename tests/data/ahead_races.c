/* Reading ahead, under ThreadSanitizer: batches that are taken, others that are forgotten, an end
 * while one is being read. The exit code is 0 where all is as read in turn and no race was seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ahead.h"
#include "data/dataset.h"

enum { ROWS = 1000, ROW = 16, BATCH = 8 };

struct reading {
	struct dataset data;
	float staged[BATCH * ROW];
};

static int read_staged(void *user, int64_t *index, int64_t n, char message[256])
{
	struct reading *r = user;
	int64_t done;
	return dataset_read(&r->data, index, n, DATASET_AS_F32, NULL, r->staged, &done, message);
}

int main(int argc, char **argv)
{
	static float value[ROWS * ROW];
	char message[256] = "";
	struct reading r;
	int rc = 0, wrong = 0;
	const char *path = argc > 1 ? argv[1] : "ahead.npy";
	for (int i = 0; i < ROWS * ROW; i++)
		value[i] = (float)i;
	if (dataset_write_npy(path, 0, 2, (int64_t[]){ROWS, ROW}, value, message) ||
		dataset_open(&r.data, path, message)) {
		puts(message);
		return 1;
	}
	for (int round = 0; round < 200; round++) {
		struct ahead *a = ahead_new(read_staged, &r, BATCH);
		if (!a)
			return 1;
		for (int64_t b = 0; b < 5; b++) {
			int64_t index[BATCH], other[BATCH];
			for (int64_t i = 0; i < BATCH; i++) {
				index[i] = (round * 37 + b * BATCH + i) % ROWS;
				other[i] = (index[i] + 1) % ROWS;
			}
			ahead_begin(a, index, BATCH);
			if (b == 3) { /* another one is wanted */
				wrong += ahead_take(a, other, BATCH, &rc, message);
				continue;
			}
			if (b == 4) /* the end comes first */
				break;
			wrong += !ahead_take(a, index, BATCH, &rc, message) || rc;
			for (int i = 0; i < BATCH; i++)
				wrong += memcmp(r.staged + i * ROW, value + index[i] * ROW,
						 ROW * sizeof *value) != 0;
		}
		ahead_free(a);
	}
	dataset_close(&r.data);
	(void)remove(path);
	printf("%d wrong\n", wrong);
	return wrong != 0;
}
