/* Compressed data files: damaged, cut and large ones. */
#include "scratch.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/dataset.h"

static void write_gz(const char *path, const void *data, size_t n)
{
	gzFile f = gzopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(gzwrite(f, data, (unsigned)n), n);
	assert_int_equal(gzclose(f), Z_OK);
}

/* d, of bytes, holds these. */
static void all_are(const struct dataset *d, const unsigned char *want, size_t n)
{
	char message[256];
	int64_t done, samples = dataset_samples(d);
	int64_t *index = malloc((size_t)samples * sizeof *index),
		*value = malloc(n * sizeof *value);
	assert_true(index && value && (size_t)(samples * d->row) == n);
	for (int64_t i = 0; i < samples; i++)
		index[i] = i;
	assert_int_equal(
		dataset_read(d, index, samples, DATASET_AS_I64, NULL, value, &done, message), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(value[i], want[i]);
	free(index);
	free(value);
}

static const unsigned char images[] = {
	0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

static void damaged_gzip_is_refused(void **state)
{
	(void)state;
	char message[256];
	struct dataset d;
	size_t n;
	write_gz("good.gz", images, sizeof images);
	unsigned char *p = scratch_read("good.gz", &n);
	for (size_t cut = 0; cut < n; cut++) {
		scratch_write("cut.gz", p, cut);
		assert_int_equal(dataset_open(&d, "cut.gz", message), 1);
	}
	p[n - 6] ^= 1; /* the sum */
	scratch_write("cut.gz", p, n);
	assert_int_equal(dataset_open(&d, "cut.gz", message), 1);
	free(p);
}

/* More than one piece of a compressed file whose length only its header tells. */
static void large_compressed_files_grow(void **state)
{
	(void)state;
	const size_t n = ((size_t)40 << 20) + 12345;
	unsigned char *all = malloc(n + 8);
	char message[256];
	struct dataset d;
	assert_non_null(all);
	for (size_t i = 0; i < n; i++)
		all[8 + i] = (unsigned char)(i >> 16);
	const unsigned char head[8] = {0, 0, 8, 1, (unsigned char)(n >> 24),
		(unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n};
	memcpy(all, head, 8);
	gzFile f = gzopen("large.gz", "wb1");
	assert_non_null(f);
	assert_int_equal(gzwrite(f, all, (unsigned)(n + 8)), n + 8);
	assert_int_equal(gzclose(f), Z_OK);
	assert_int_equal(dataset_open(&d, "large.gz", message), 0);
	assert_int_equal(d.dim[0], n);
	all_are(&d, all + 8, n);
	dataset_close(&d);
	free(all);
}

/* All data are there, but not the whole of the sum and the length behind them: in data of many
 * lengths that do not compress, zlib's buffers end with the data, before them and after. */
static void a_compressed_files_sum_is_wanted(void **state)
{
	(void)state;
	enum { MOST = 3 << 15 };
	static unsigned char all[MOST];
	uint32_t random = 1;
	char message[256];
	struct dataset d;
	for (size_t i = 8; i < MOST; i++) {
		random = random * 1664525u + 1013904223u; /* Numerical Recipes' generator */
		all[i] = (unsigned char)(random >> 24);
	}
	for (size_t n = (1 << 13) - 8; n <= MOST - 8; n += n % 2 ? (1 << 13) - 1 : 1) {
		size_t whole;
		const unsigned char head[8] = {0, 0, 8, 1, 0, (unsigned char)(n >> 16),
			(unsigned char)(n >> 8), (unsigned char)n};
		memcpy(all, head, 8);
		write_gz("sum.gz", all, n + 8);
		assert_int_equal(dataset_open(&d, "sum.gz", message), 0);
		all_are(&d, all + 8, n);
		dataset_close(&d);
		unsigned char *p = scratch_read("sum.gz", &whole);
		for (size_t cut = 1; cut <= 9; cut++) {
			scratch_write("cut.gz", p, whole - cut);
			assert_int_equal(dataset_open(&d, "cut.gz", message), 1);
			assert_non_null(strstr(message, "too early"));
		}
		p[whole] = 0; /* scratch_read leaves room for a byte */
		scratch_write("cut.gz", p, whole + 1);
		assert_int_equal(dataset_open(&d, "cut.gz", message), 1);
		p[whole - 8] ^= 1;
		scratch_write("cut.gz", p, whole);
		assert_int_equal(dataset_open(&d, "cut.gz", message), 1);
		free(p);
	}
}

/* gzip's format lets files follow each other. */
static void members_are_joined(void **state)
{
	(void)state;
	char message[256];
	struct dataset d;
	size_t n, m;
	write_gz("a.gz", images, 17);
	write_gz("b.gz", images + 17, sizeof images - 17);
	unsigned char *a = scratch_read("a.gz", &n), *b = scratch_read("b.gz", &m);
	a = realloc(a, n + m);
	assert_non_null(a);
	memcpy(a + n, b, m);
	scratch_write("ab.gz", a, n + m);
	assert_int_equal(dataset_open(&d, "ab.gz", message), 0);
	all_are(&d, images + 16, 6);
	dataset_close(&d);
	free(a);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_gzip_is_refused),
		cmocka_unit_test(large_compressed_files_grow),
		cmocka_unit_test(a_compressed_files_sum_is_wanted),
		cmocka_unit_test(members_are_joined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
