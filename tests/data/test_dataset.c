/* Data files: every type, every order, and malformed headers. */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/dataset.h"

static const int64_t rows[] = {0, 1, 2, 3};

static void reals(const struct dataset *d, const int64_t *index, int64_t n, enum dataset_as as,
	double scale, double shift, void *out)
{
	const struct dataset_map map = {.channels = 1, .scale = {scale}, .shift = {shift}};
	char message[256];
	int64_t done;
	if (dataset_read(d, index, n, as, &map, out, &done, message))
		fail_msg("%s", message);
	assert_int_equal(done, n);
}

static int whole_numbers(
	const struct dataset *d, const int64_t *index, int64_t n, int64_t *out, char message[256])
{
	int64_t done;
	return dataset_read(d, index, n, DATASET_AS_I64, NULL, out, &done, message);
}

static int64_t outside(
	const struct dataset *d, int64_t low, int64_t high, int64_t except, int64_t *value)
{
	char message[256];
	int64_t where = -2;
	assert_int_equal(dataset_outside(d, low, high, except, &where, value, message), 0);
	return where;
}

/* A version 1 .npy file of this dictionary and data; `major` 2 and 3 have a longer length. */
static void write_npy(
	const char *path, int major, const char *dictionary, const void *data, size_t n)
{
	unsigned char all[1024] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)major, 0};
	size_t len = strlen(dictionary), at = major == 1 ? 10 : 12;
	assert_true(at + len + n <= sizeof all);
	all[8] = (unsigned char)len, all[9] = (unsigned char)(len >> 8);
	memcpy(all + at, dictionary, len);
	memcpy(all + at + len, data, n);
	scratch_write(path, all, at + len + n);
}

static void write_gz(const char *path, const void *data, size_t n)
{
	gzFile f = gzopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(gzwrite(f, data, (unsigned)n), n);
	assert_int_equal(gzclose(f), Z_OK);
}

static void every_npy_type_is_read(void **state)
{
	(void)state;
	static const struct {
		const char *descr;
		unsigned char bytes[16];
		size_t n;
		double v[2];
	} t[] = {
		{"<f2", {0x00, 0x3e, 0x01, 0x80}, 4, {1.5, -0x1p-24}},
		{">f4", {0x3f, 0xc0, 0, 0, 0xc1, 0x20, 0, 0}, 8, {1.5, -10}},
		{"<f4", {0, 0, 0xc0, 0x3f, 0, 0, 0x20, 0xc1}, 8, {1.5, -10}},
		{"<f8", {0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x80}, 16, {1.5, -0.0}},
		{"|i1", {0x80, 0x7f}, 2, {-128, 127}},
		{"<i2", {0xfe, 0xff, 2, 1}, 4, {-2, 258}},
		{">i4", {0xff, 0xff, 0xff, 0xfe, 0, 0, 1, 2}, 8, {-2, 258}},
		{">i8", {255, 255, 255, 255, 255, 255, 255, 254, 0, 0, 0, 0, 0, 0, 1, 2}, 16,
			{-2, 258}},
		{"<u1", {0, 255}, 2, {0, 255}},
		{">u2", {1, 2, 255, 255}, 4, {258, 65535}},
		{"<u4", {2, 1, 0, 0, 255, 255, 255, 255}, 8, {258, 4294967295.0}},
		{"<u8", {2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, 16, {258, 0x1p32}},
		{"|b1", {0, 2}, 2, {0, 1}},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		for (int major = 1; major <= 3; major++) {
			char dictionary[128], message[256];
			struct dataset d;
			double v[2];
			float f[2];
			int64_t whole[2];
			unsigned char b[2];
			snprintf(dictionary, sizeof dictionary,
				"{'descr': '%s', 'fortran_order': False, 'shape': (2,), }   \n",
				t[i].descr);
			write_npy("t.npy", major, dictionary, t[i].bytes, t[i].n);
			if (dataset_open(&d, "t.npy", message))
				fail_msg("%s", message);
			assert_true(d.rank == 1 && d.dim[0] == 2 && d.row == 1);
			reals(&d, rows, 2, DATASET_AS_F64, 1, 0, v);
			reals(&d, rows, 2, DATASET_AS_F32, 1, 0, f);
			reals(&d, rows, 2, DATASET_AS_BOOL, 1, 0, b);
			assert_memory_equal(v, t[i].v, sizeof v); /* the sign of zero too */
			for (int k = 0; k < 2; k++) {
				assert_true(f[k] == (float)t[i].v[k]);
				assert_int_equal(b[k], t[i].v[k] != 0);
			}
			if (i > 3) {
				assert_int_equal(whole_numbers(&d, rows, 2, whole, message), 0);
				assert_true((double)whole[0] == v[0] && (double)whole[1] == v[1]);
			}
			dataset_close(&d);
		}
}

static void halves_have_their_special_values(void **state)
{
	(void)state;
	const uint16_t h[] = {0x7c00, 0xfc00, 0x7e00, 0x7bff, 0x0400, 0x03ff};
	char message[256];
	struct dataset d;
	double v[6];
	write_npy("h.npy", 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 6)}", h,
		sizeof h);
	assert_int_equal(dataset_open(&d, "h.npy", message), 0);
	reals(&d, rows, 1, DATASET_AS_F64, 1, 0, v);
	assert_true(isinf(v[0]) && v[0] > 0 && isinf(v[1]) && v[1] < 0 && isnan(v[2]));
	assert_true(v[3] == 65504 && v[4] == 0x1p-14 && v[5] == 1023 * 0x1p-24);
	dataset_close(&d);
}

static void rows_are_gathered_scaled_and_shifted(void **state)
{
	(void)state;
	const unsigned char u[] = {0, 51, 102, 153, 204, 255};
	const int64_t index[] = {2, 0, 2};
	char message[256];
	struct dataset d;
	float f[6];
	double v[6];
	write_npy("u.npy", 1, "{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (3, 2)}",
		u, 6);
	assert_int_equal(dataset_open(&d, "u.npy", message), 0);
	assert_int_equal(d.type, DATASET_U8);
	assert_string_equal(d.path, "u.npy");
	reals(&d, index, 3, DATASET_AS_F32, 1 / 255.0, -0.5, f);
	reals(&d, index, 3, DATASET_AS_F64, 2, 1, v);
	static const double want[] = {204, 255, 0, 51, 204, 255};
	for (int i = 0; i < 6; i++) {
		double scaled = want[i] * (1 / 255.0);
		assert_true(f[i] == (float)(scaled - 0.5));
		assert_true(v[i] == want[i] * 2 + 1);
	}
	dataset_close(&d);
}

static void fortran_order_is_turned(void **state)
{
	(void)state;
	int16_t stored[24];
	int64_t v[24];
	char message[256];
	struct dataset d;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++)
			for (int k = 0; k < 4; k++)
				stored[i + 2 * (j + 3 * k)] = (int16_t)(100 * i + 10 * j + k);
	write_npy("f.npy", 1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 4), }",
		stored, sizeof stored);
	assert_int_equal(dataset_open(&d, "f.npy", message), 0);
	assert_int_equal(whole_numbers(&d, rows, 2, v, message), 0);
	for (int i = 0; i < 24; i++)
		assert_int_equal(v[i], 100 * (i / 12) + 10 * (i / 4 % 3) + i % 4);
	dataset_close(&d);
	write_npy("f.npy", 1, "{'descr': '<i2', 'fortran_order': True, 'shape': (0, 3), }", "", 0);
	assert_int_equal(dataset_open(&d, "f.npy", message), 0);
	assert_true(d.dim[0] == 0 && d.row == 3);
	dataset_close(&d);
}

static void scalars_have_rank_zero(void **state)
{
	(void)state;
	const double x = 2.5;
	double v;
	char message[256];
	struct dataset d;
	write_npy("s.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &x, 8);
	assert_int_equal(dataset_open(&d, "s.npy", message), 0);
	assert_true(d.rank == 0 && d.row == 1);
	reals(&d, rows, 1, DATASET_AS_F64, 1, 0, &v);
	assert_true(v == 2.5);
	dataset_close(&d);
}

static void malformed_npy_is_refused(void **state)
{
	(void)state;
#define HEAD "{'descr': '<f4', 'fortran_order': False, "
	static const char *const bad[] = {"", "[]", "{}", "{'descr': '<f4'}", HEAD "'shape': (2,)",
		HEAD "'shape': (2)}", HEAD "'shape': (2,,)}", HEAD "'shape': (,)}",
		HEAD "'shape': (-2,)}", HEAD "'shape': (2 3)}", HEAD "'shape': [2]}",
		HEAD "'shape': (3,)}", HEAD "'shape': (1,)}", HEAD "'shape': ()}",
		HEAD "'shape': (2,), 'x': 1}", HEAD "'shape': (2,), 'shape': (2,)}",
		HEAD "'shape': (2,)} x", HEAD "'shape': (99999999999999999999,)}",
		HEAD "'shape': (4294967296, 4294967296)}", HEAD "'shape': (1,1,1,1,1,1,1,1,2)}",
		HEAD "'shape': (2305843009213693952,)}", HEAD "'shape': (576460752303423488, 4)}",
		"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
		"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
		"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}",
		"{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '', 'fortran_order': False, 'shape': (2,)}",
		"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
		"{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
		"{'descrdescrdescrdescrdescrdescr': 1}"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char message[256] = "";
		struct dataset d;
		write_npy("bad.npy", 1, bad[i], "12345678", 8);
		if (!dataset_open(&d, "bad.npy", message))
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(strstr(message, "bad.npy: "));
		if (i == 0)
			assert_string_equal(message,
				"bad.npy: malformed .npy header: the dictionary is missing");
		assert_null(d.state);
	}
}

static void cut_and_changed_files_are_survived(void **state)
{
	(void)state;
	static const char other[] = "'\"{}()[],:0 9u<>|\xff";
	char message[256];
	size_t n;
	struct dataset d;
	write_npy("good.npy", 2, HEAD "'shape': (2,), }", "12345678", 8);
	unsigned char *p = scratch_read("good.npy", &n);
	for (size_t cut = 0; cut < n; cut++) {
		scratch_write("cut.npy", p, cut);
		assert_int_equal(dataset_open(&d, "cut.npy", message), 1);
	}
	for (size_t i = 0; i < n - 8; i++)
		for (size_t k = 0; k < sizeof other; k++) {
			unsigned char keep = p[i];
			p[i] = (unsigned char)other[k];
			scratch_write("changed.npy", p, n);
			if (!dataset_open(&d, "changed.npy", message))
				dataset_close(&d);
			p[i] = keep;
		}
	scratch_write("cut.npy", p, n);
	free(p);
	p = scratch_read("cut.npy", &n);
	p[6] = 4; /* a version that is not known */
	scratch_write("cut.npy", p, n);
	assert_int_equal(dataset_open(&d, "cut.npy", message), 1);
	assert_non_null(strstr(message, "version"));
	free(p);
}

static const unsigned char images[] = {
	0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

static void idx_is_read_plain_and_compressed(void **state)
{
	(void)state;
	char message[256];
	struct dataset d;
	int64_t v[6];
	scratch_write("plain", images, sizeof images);
	write_gz("compressed", images, sizeof images);
	static const char *const path[] = {"plain", "compressed"};
	for (int i = 0; i < 2; i++) {
		if (dataset_open(&d, path[i], message))
			fail_msg("%s", message);
		assert_true(d.type == DATASET_U8 && d.rank == 3 && d.dim[0] == 2 && d.dim[1] == 1 &&
			    d.dim[2] == 3 && d.row == 3);
		assert_int_equal(whole_numbers(&d, rows, 2, v, message), 0);
		for (int k = 0; k < 6; k++)
			assert_int_equal(v[k], k + 1);
		dataset_close(&d);
	}
}

static void every_idx_type_is_read(void **state)
{
	(void)state;
	static const struct {
		unsigned char type, bytes[8];
		size_t n;
		double v;
	} t[] = {{8, {200}, 1, 200}, {9, {200}, 1, -56}, {11, {255, 254}, 2, -2},
		{12, {255, 255, 255, 254}, 4, -2}, {13, {0x3f, 0xc0}, 4, 1.5},
		{14, {0x3f, 0xf8}, 8, 1.5}};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		unsigned char all[16] = {0, 0, t[i].type, 1, 0, 0, 0, 1};
		char message[256];
		struct dataset d;
		double v;
		memcpy(all + 8, t[i].bytes, t[i].n);
		scratch_write("t.idx", all, 8 + t[i].n);
		assert_int_equal(dataset_open(&d, "t.idx", message), 0);
		reals(&d, rows, 1, DATASET_AS_F64, 1, 0, &v);
		assert_true(v == t[i].v);
		dataset_close(&d);
	}
}

static void malformed_idx_is_refused(void **state)
{
	(void)state;
	char message[256];
	struct dataset d;
	unsigned char all[sizeof images + 1] = {0};
	for (size_t cut = 0; cut < sizeof images; cut++) {
		scratch_write("bad", images, cut);
		assert_int_equal(dataset_open(&d, "bad", message), 1);
	}
	memcpy(all, images, sizeof images);
	scratch_write("bad", all, sizeof all); /* one byte too many */
	assert_int_equal(dataset_open(&d, "bad", message), 1);
	assert_non_null(strstr(message, "behind"));
	write_gz("bad", all, sizeof all);
	assert_int_equal(dataset_open(&d, "bad", message), 1);
	for (int k = 0; k < 3;
		k++) { /* types and ranks that there are not, and dims past all sizes */
		static const unsigned char at[] = {2, 3, 3}, value[] = {10, 0, 9};
		static const char *const why[] = {"bad: IDX has no element type 0x0a",
			"bad: rank 0; 1 to 8 are read", "bad: rank 9; 1 to 8 are read"};
		memcpy(all, images, sizeof images);
		all[at[k]] = value[k];
		scratch_write("bad", all, sizeof images);
		assert_int_equal(dataset_open(&d, "bad", message), 1);
		assert_string_equal(message, why[k]);
	}
	memset(all, 255, 16);
	all[0] = all[1] = 0, all[2] = 8, all[3] = 3;
	scratch_write("bad", all, sizeof images);
	assert_int_equal(dataset_open(&d, "bad", message), 1);
	write_gz("bad", all, sizeof images);
	assert_int_equal(dataset_open(&d, "bad", message), 1);
	memset(all + 4, 0, 12), all[5] = all[9] = all[13] = 1; /* 2^48 bytes promised, few there */
	write_gz("bad", all, sizeof images);
	assert_int_equal(dataset_open(&d, "bad", message), 1);
	assert_non_null(strstr(message, "too early"));
}

static void other_files_are_named(void **state)
{
	(void)state;
	char message[256];
	struct dataset d;
	assert_int_equal(dataset_open(&d, "not-there", message), 1);
	assert_non_null(strstr(message, "not-there"));
	assert_int_equal(dataset_open(&d, ".", message), 1);
	assert_string_equal(message, ".: no plain file");
	scratch_write("text", "hello world", 11);
	assert_int_equal(dataset_open(&d, "text", message), 1);
	assert_string_equal(message, "text: neither .npy nor IDX (plain or gzip)");
	scratch_write("text", "\x93NUMB ERS", 8);
	assert_int_equal(dataset_open(&d, "text", message), 1);
	assert_string_equal(message, "text: neither .npy nor IDX");
	scratch_write("zip", "PK\3\4xxxxxxxx", 12);
	assert_int_equal(dataset_open(&d, "zip", message), 1);
	assert_non_null(strstr(message, ".npz"));
	scratch_write("empty", "", 0);
	assert_int_equal(dataset_open(&d, "empty", message), 1);
}

/* What goes wrong behind a reader's back: the file shrinks, temporary files have no folder. */
static void circumstances_are_told(void **state)
{
	(void)state;
	const float f[4] = {1, 2, 3, 4};
	float v[4];
	int64_t done;
	char message[256];
	struct dataset d;
	write_npy("short.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", f,
		sizeof f);
	assert_int_equal(dataset_open(&d, "short.npy", message), 0);
	assert_int_equal(truncate("short.npy", 70), 0);
	assert_int_equal(dataset_read(&d, rows, 4, DATASET_AS_F32, NULL, v, &done, message), 1);
	assert_string_equal(message, "short.npy: the file has become shorter since it was opened");
	dataset_close(&d);
	write_gz("compressed", images, sizeof images);
	assert_int_equal(setenv("TMPDIR", "no-such-folder", 1), 0);
	assert_int_equal(dataset_open(&d, "compressed", message), 1);
	assert_int_equal(unsetenv("TMPDIR"), 0);
	assert_string_equal(message, "compressed: cannot make a temporary file in no-such-folder "
				     "($TMPDIR): No such file or directory");
}

static void labels_out_of_range_are_found(void **state)
{
	(void)state;
	const int32_t v[] = {0, 9, -100, 5, 10, 3};
	const float f[] = {1, 2.5f}, large[] = {1, 1e30f};
	const uint64_t u[] = {1, UINT64_MAX};
	int64_t value, out[2];
	char message[256];
	struct dataset d;
	write_npy("l.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2)}", v,
		sizeof v);
	assert_int_equal(dataset_open(&d, "l.npy", message), 0);
	assert_int_equal(outside(&d, 0, 9, -100, &value), 2);
	assert_int_equal(value, 10);
	assert_int_equal(outside(&d, 0, 9, -1, &value), 1);
	assert_int_equal(value, -100);
	assert_int_equal(outside(&d, 0, 10, -100, &value), -1);
	dataset_close(&d);
	const struct {
		const char *descr;
		const void *data;
		size_t n;
	} odd[] = {{"<f4", f, 8}, {"<f4", large, 8}, {"<u8", u, 16}};
	for (int i = 0; i < 3; i++) {
		char dictionary[100];
		snprintf(dictionary, sizeof dictionary,
			"{'descr': '%s', 'fortran_order': False, 'shape': (2,)}", odd[i].descr);
		write_npy("l.npy", 1, dictionary, odd[i].data, odd[i].n);
		assert_int_equal(dataset_open(&d, "l.npy", message), 0);
		assert_int_equal(outside(&d, 0, INT64_MAX, 0, &value), 1);
		assert_int_equal(whole_numbers(&d, rows, 1, out, message), 0);
		assert_int_equal(whole_numbers(&d, rows, 2, out, message), 1);
		assert_non_null(strstr(message, "sample 1"));
		dataset_close(&d);
	}
}

static void written_npy_reads_back(void **state)
{
	(void)state;
	const float f[6] = {1, -2, 3, 4, 5, 6};
	const double x[2] = {0.1, -7};
	float f2[6];
	double x2[2];
	const int64_t dim[] = {2, 3};
	char message[256];
	struct dataset d;
	size_t n;
	assert_int_equal(dataset_write_npy("w.npy", 0, 2, dim, f, message), 0);
	free(scratch_read("w.npy", &n));
	assert_int_equal(n % 64, 24);
	assert_int_equal(dataset_open(&d, "w.npy", message), 0);
	assert_true(d.type == DATASET_F32 && d.rank == 2 && d.dim[0] == 2 && d.dim[1] == 3);
	reals(&d, rows, 2, DATASET_AS_F32, 1, 0, f2);
	assert_memory_equal(f, f2, sizeof f);
	dataset_close(&d);
	assert_int_equal(dataset_write_npy("w.npy", 1, 1, dim, x, message), 0);
	assert_int_equal(dataset_open(&d, "w.npy", message), 0);
	reals(&d, rows, 2, DATASET_AS_F64, 1, 0, x2);
	assert_memory_equal(x, x2, sizeof x);
	dataset_close(&d);
	assert_int_equal(dataset_write_npy("w.npy", 1, 0, NULL, x, message), 0);
	assert_int_equal(dataset_open(&d, "w.npy", message), 0);
	assert_int_equal(d.rank, 0);
	dataset_close(&d);
	assert_int_equal(dataset_write_npy("no/w.npy", 1, 1, dim, x, message), 1);
	assert_int_equal(dataset_write_npy("w.npy", 1, 9, dim, x, message), 1);
	const int64_t negative[] = {2, -3}, large[] = {INT64_MAX / 4, 2};
	assert_int_equal(dataset_write_npy("w.npy", 1, 2, negative, x, message), 1);
	assert_int_equal(dataset_write_npy("w.npy", 1, 2, large, x, message), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_npy_type_is_read),
		cmocka_unit_test(halves_have_their_special_values),
		cmocka_unit_test(rows_are_gathered_scaled_and_shifted),
		cmocka_unit_test(fortran_order_is_turned),
		cmocka_unit_test(scalars_have_rank_zero),
		cmocka_unit_test(malformed_npy_is_refused),
		cmocka_unit_test(cut_and_changed_files_are_survived),
		cmocka_unit_test(idx_is_read_plain_and_compressed),
		cmocka_unit_test(every_idx_type_is_read),
		cmocka_unit_test(malformed_idx_is_refused),
		cmocka_unit_test(other_files_are_named),
		cmocka_unit_test(circumstances_are_told),
		cmocka_unit_test(labels_out_of_range_are_found),
		cmocka_unit_test(written_npy_reads_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
