/* Reading and writing safetensors, malformed files above all. */
#include "scratch.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/safetensors.h"
#include "runtime/stint_rt.h"

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

static void reads_what_it_wrote(void **state)
{
	(void)state;
	const float f[6] = {1, 2, 3, 4, 5, 6};
	const double d = -0.5;
	const int64_t i[2] = {INT64_MIN, 7}, two_three[] = {2, 3}, two[] = {2}, none[] = {3, 0};
	const unsigned char b[2] = {1, 0};
	const char *const odd = "layer\"0\\/\n\x01\xc3\xa9";
	char message[256];
	const struct safetensors_entry entry[] = {
		{.name = odd, .dtype = STINT_F32, .rank = 2, .dim = two_three, .data = f},
		{.name = "scalar", .dtype = STINT_F64, .rank = 0, .data = &d},
		{.name = "mask", .dtype = STINT_BOOL, .rank = 1, .dim = two, .data = b},
		{.name = "empty", .dtype = STINT_F32, .rank = 2, .dim = none},
		{.name = "i", .dtype = STINT_I64, .rank = 1, .dim = two, .data = i}};
	const struct safetensors_note note[] = {{"step", "12"}, {"a \"key\"", "line\ntwo"}};
	assert_int_equal(safetensors_write("all", entry, 5, note, 2, message), 0);

	struct safetensors *f2;
	assert_int_equal(safetensors_open(&f2, "all", message), 0);
	assert_int_equal(safetensors_count(f2), 5);
	for (int k = 0; k < 5; k++) {
		const struct safetensors_entry *e = safetensors_find(f2, entry[k].name);
		assert_non_null(e);
		assert_int_equal(e->dtype, entry[k].dtype);
		assert_int_equal(e->rank, entry[k].rank);
		if (e->rank)
			assert_memory_equal(e->dim, entry[k].dim, (size_t)e->rank * 8);
		if (e->bytes)
			assert_memory_equal(e->data, entry[k].data, e->bytes);
	}
	assert_int_equal(safetensors_find(f2, "empty")->bytes, 0);
	assert_int_equal(safetensors_find(f2, odd)->bytes, 24);
	assert_string_equal(safetensors_note(f2, "step"), "12");
	assert_string_equal(safetensors_note(f2, "a \"key\""), "line\ntwo");
	assert_null(safetensors_note(f2, "other"));
	assert_null(safetensors_find(f2, "other"));
	for (int k = 1; k < 5; k++)
		assert_true(
			strcmp(safetensors_at(f2, k - 1)->name, safetensors_at(f2, k)->name) < 0);
	safetensors_close(f2);
}

static void same_tensors_same_bytes_and_aligned(void **state)
{
	(void)state;
	const float f[3] = {1, 2, 3};
	const int64_t three[] = {3};
	char message[256], name[] = "n";
	size_t n, n2;
	for (int len = 0; len < 9; len++) { /* names of every length keep the data aligned */
		char longer[16] = "nnnnnnnnnnnn";
		longer[len + 1] = '\0';
		const struct safetensors_entry e = {
			.name = longer, .dtype = STINT_F32, .rank = 1, .dim = three, .data = f};
		assert_int_equal(safetensors_write("one", &e, 1, NULL, 0, message), 0);
		unsigned char *p = scratch_read("one", &n);
		assert_int_equal(p[0] % 8, 0);
		assert_int_equal(8 + p[0] + 256 * p[1] + 12, n);
		free(p);
	}
	const struct safetensors_entry e = {
		.name = name, .dtype = STINT_F32, .rank = 1, .dim = three, .data = f};
	assert_int_equal(safetensors_write("one", &e, 1, NULL, 0, message), 0);
	assert_int_equal(safetensors_write("two", &e, 1, NULL, 0, message), 0);
	unsigned char *p = scratch_read("one", &n), *q = scratch_read("two", &n2);
	assert_int_equal(n, n2);
	assert_memory_equal(p, q, n);
	free(p);
	free(q);
}

static void reads_a_tensor_straight_from_the_file(void **state)
{
	(void)state;
	const float f[4] = {1, 2, 3, 4};
	float part[2] = {0};
	const int64_t four[] = {4};
	char message[256];
	const struct safetensors_entry e = {
		.name = "f", .dtype = STINT_F32, .rank = 1, .dim = four, .data = f};
	struct safetensors *g;
	assert_int_equal(safetensors_write("f", &e, 1, NULL, 0, message), 0);
	assert_int_equal(safetensors_open_header(&g, "f", message), 0);
	const struct safetensors_entry *found = safetensors_find(g, "f");
	assert_null(found->data);
	assert_int_equal(safetensors_read(g, found, 4, 8, part), 0);
	assert_true(part[0] == 2 && part[1] == 3);
	assert_int_equal(safetensors_read(g, found, 12, 8, part), 1);
	assert_int_equal(safetensors_read(g, found, 17, 0, part), 1);
	scratch_truncate("f", 16);
	assert_int_equal(safetensors_read(g, found, 8, 8, part), 1);
	safetensors_close(g);
}

static void escapes_and_other_types_are_read(void **state)
{
	(void)state;
	char message[256];
	struct safetensors *f;
	scratch_safetensors("e",
		" {\"\\u00e9\\ud83d\\ude00\\t\\/\" : { \"shape\" : [ 1 , 2 ] "
		",\n\"data_offsets\":[0,4],"
		"\"dtype\":\"I16\"} , \"__metadata__\":{}}  ",
		"abcd", 4);
	assert_int_equal(safetensors_open(&f, "e", message), 0);
	const struct safetensors_entry *e = safetensors_find(f, "\xc3\xa9\xf0\x9f\x98\x80\t/");
	assert_non_null(e);
	assert_int_equal(e->dtype, -1);
	assert_memory_equal(e->data, "abcd", 4);
	safetensors_close(f);
	static const char *const narrow[] = {"BF16", "F16"};
	const int64_t two[] = {2};
	for (int i = 0; i < 2; i++) {
		const struct safetensors_entry half = {.name = "h",
			.dtype = STINT_BF16 + i,
			.rank = 1,
			.dim = two,
			.data = "abcd"};
		assert_int_equal(safetensors_write("e", &half, 1, NULL, 0, message), 0);
		assert_int_equal(safetensors_open(&f, "e", message), 0);
		assert_int_equal(safetensors_find(f, "h")->dtype, STINT_BF16 + i);
		assert_string_equal(safetensors_find(f, "h")->type, narrow[i]);
		assert_memory_equal(safetensors_find(f, "h")->data, "abcd", 4);
		safetensors_close(f);
	}
	scratch_safetensors("e", "{}", NULL, 0);
	assert_int_equal(safetensors_open(&f, "e", message), 0);
	assert_int_equal(safetensors_count(f), 0);
	safetensors_close(f);
}

static void malformed_headers_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *header, *says;
	} bad[] = {
		{"", "JSON"},
		{"[]", "JSON"},
		{"{", "string"},
		{"{" A, "end"},
		{"{" A "} x", "behind"},
		{"{" A ",}", "string"},
		{"{" A ",\"b\"}", "':'"},
		{"{" A "," A "}", "overlap"},
		{"{" A ",\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]}}", "twice"},
		{"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
			"overlap"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "gap"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
			"behind the last"},
		{"{}", "behind the last"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", "outside"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", "fit"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "fit"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", "two numbers"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}", "too long"},
		{"{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", "dtype"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "incomplete"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}",
			"wrong key"},
		{"{\"a\":{\"dtype\":\"F32\",\"size\":[2],\"data_offsets\":[0,8]}}", "wrong key"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "number"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[02],\"data_offsets\":[0,8]}}", "number"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", "list"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]"
		 "}}",
			"large"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,"
		 "8]}}",
			"large"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
			"too long"},
		{"{\"a\":[[[[[[[[[[]]]]]]]]]]}", "description"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", "end"},
		{"{\"\\x\":{}}", "character"},
		{"{\"\\u12\":{}}", "character"},
		{"{\"\\u0000\":{}}", "character"},
		{"{\"\\ud800\":{}}", "character"},
		{"{\"\\ud800\\u0041\":{}}", "character"},
		{"{\"\\udc00\":{}}", "character"},
		{"{\"a\n\":{}}", "character"},
		{"{\"a\\", "string"},
		{"{\"a", "string"},
		{"{\"__metadata__\":[]," A "}", "__metadata__"},
		{"{\"__metadata__\":{\"a\":1}," A "}", "string"},
		{"{\"__metadata__\":{\"a\"}," A "}", "__metadata__"},
		{"{\"__metadata__\":{\"a\":\"b\"},\"__metadata__\":{\"a\":\"b\"}," A "}", "twice"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char message[256] = "";
		struct safetensors *f;
		scratch_safetensors("bad", bad[i].header, "12345678", 8);
		if (!safetensors_open(&f, "bad", message))
			fail_msg("accepted: %s", bad[i].header);
		assert_null(f);
		if (!strstr(message, bad[i].says))
			fail_msg("'%s' for %s", message, bad[i].header);
	}
}

static void lengths_that_lie_are_refused(void **state)
{
	(void)state;
	static const unsigned char huge[16] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
	static const unsigned char longer[16] = {9, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
	char message[256];
	struct safetensors *f;
	for (size_t n = 0; n < 8; n++) {
		scratch_write("short", longer, n);
		assert_int_equal(safetensors_open(&f, "short", message), 1);
	}
	scratch_write("long", longer, sizeof longer);
	assert_int_equal(safetensors_open(&f, "long", message), 1);
	scratch_write("huge", huge, sizeof huge);
	assert_int_equal(safetensors_open(&f, "huge", message), 1);
	assert_non_null(strstr(message, "longer than the file"));
	assert_int_equal(safetensors_open(&f, "missing", message), 1);
	assert_non_null(strstr(message, "missing"));
	assert_int_equal(safetensors_open(&f, ".", message), 1);
	/* a file of more than 100 MB that is all header: a hole on the disk, never read */
	static const unsigned char large[8] = {0, 0xe1, 0xf5, 0x06 + 1, 0, 0, 0, 0};
	scratch_write("large", large, sizeof large);
	scratch_truncate("large", 200000000);
	assert_int_equal(safetensors_open(&f, "large", message), 1);
	assert_non_null(strstr(message, "format allows"));
	scratch_write("large", NULL, 0);
}

/* Every file cut short, and every byte of a header changed: no crash, and a cut is never accepted.
 */
static void damaged_files_are_survived(void **state)
{
	(void)state;
	const float v[4] = {1, 2, 3, 4};
	const int64_t dim[] = {2, 2};
	char message[256];
	size_t n;
	const struct safetensors_entry e = {
		.name = "w\"\xc3\xa9", .dtype = STINT_F32, .rank = 2, .dim = dim, .data = v};
	const struct safetensors_note note = {"step", "1"};
	struct safetensors *f;
	assert_int_equal(safetensors_write("good", &e, 1, &note, 1, message), 0);
	unsigned char *p = scratch_read("good", &n);
	for (size_t cut = 0; cut < n; cut++) {
		scratch_write("cut", p, cut);
		assert_int_equal(safetensors_open(&f, "cut", message), 1);
	}
	static const char other[] = "\"\\{}[],:0 9u\xff";
	for (size_t i = 0; i < n - 16; i++)
		for (size_t k = 0; k < sizeof other; k++) {
			unsigned char keep = p[i];
			p[i] = (unsigned char)other[k];
			scratch_write("changed", p, n);
			if (!safetensors_open(&f, "changed", message))
				safetensors_close(f);
			p[i] = keep;
		}
	free(p);
}

static void the_writer_refuses_what_cannot_be_read(void **state)
{
	(void)state;
	const float v = 1;
	const int64_t dim[] = {1}, negative[] = {-1}, large[] = {INT64_MAX, 2};
	char message[256];
	struct safetensors_entry e[2] = {
		{.name = "a", .dtype = STINT_F32, .rank = 1, .dim = dim, .data = &v},
		{.name = "a", .dtype = STINT_F32, .rank = 1, .dim = dim, .data = &v}};
	assert_int_equal(safetensors_write("no", e, 2, NULL, 0, message), 1);
	assert_non_null(strstr(message, "'a'"));
	e[1].name = "__metadata__";
	assert_int_equal(safetensors_write("no", e, 2, NULL, 0, message), 1);
	e[1].name = "b";
	e[1].dim = negative;
	assert_int_equal(safetensors_write("no", e, 2, NULL, 0, message), 1);
	e[1].dim = large, e[1].rank = 2;
	assert_int_equal(safetensors_write("no", e, 2, NULL, 0, message), 1);
	e[1].dim = dim, e[1].rank = 1, e[1].dtype = STINT_I32;
	assert_int_equal(safetensors_write("no", e, 2, NULL, 0, message), 1);
	assert_false(scratch_exists("no"));
	assert_int_equal(safetensors_write("no/where/x", e, 1, NULL, 0, message), 1);
	assert_non_null(strstr(message, "no/where/x"));
}

/* A disk that is full (a limit on file sizes): the old file stays, and no temporary one. */
static void a_failed_write_leaves_the_old_file(void **state)
{
	(void)state;
	static const float v[4096];
	const int64_t dim[] = {4096};
	char message[256] = "";
	const struct safetensors_entry e = {
		.name = "a", .dtype = STINT_F32, .rank = 1, .dim = dim, .data = v};
	struct rlimit before, small;
	scratch_clear("full");
	assert_int_equal(mkdir("full", 0777), 0);
	scratch_write("full/x", "old", 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int rc = safetensors_write("full/x", &e, 1, NULL, 0, message);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(rc, 1);
	assert_non_null(strstr(message, "full/x"));
	size_t n;
	unsigned char *p = scratch_read("full/x", &n);
	assert_int_equal(n, 3);
	free(p);
	assert_int_equal(unlink("full/x"), 0);
	assert_int_equal(rmdir("full"), 0); /* nothing else is in it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_it_wrote),
		cmocka_unit_test(same_tensors_same_bytes_and_aligned),
		cmocka_unit_test(reads_a_tensor_straight_from_the_file),
		cmocka_unit_test(escapes_and_other_types_are_read),
		cmocka_unit_test(malformed_headers_are_refused),
		cmocka_unit_test(lengths_that_lie_are_refused),
		cmocka_unit_test(damaged_files_are_survived),
		cmocka_unit_test(the_writer_refuses_what_cannot_be_read),
		cmocka_unit_test(a_failed_write_leaves_the_old_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
