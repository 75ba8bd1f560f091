/* Arrays in archives and files of tokens. */
#include "scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "data/array_stream.h"
#include "data/dataset.h"

/* --- A zip archive, as zipfile writes it --- */

struct bytes {
	unsigned char at[1 << 16];
	size_t n;
};

static void put(struct bytes *b, const void *p, size_t n)
{
	assert_true(b->n + n <= sizeof b->at);
	memcpy(b->at + b->n, p, n);
	b->n += n;
}

static void put_number(struct bytes *b, uint64_t v, int width)
{
	for (int i = 0; i < width; i++, v >>= 8)
		put(b, &(unsigned char){(unsigned char)v}, 1);
}

struct member {
	const char *name;
	int deflated, zip64;
	unsigned char data[4096];
	size_t n;
};

static void npy_of(struct member *m, const char *type, int rank, const int64_t *dim,
	const void *data, size_t bytes)
{
	char header[NPY_HEADER];
	const size_t head = npy_header(type, rank, dim, header);
	assert_true(head + bytes <= sizeof m->data);
	memcpy(m->data, header, head);
	memcpy(m->data + head, data, bytes);
	m->n = head + bytes;
}

static size_t packed(const struct member *m, unsigned char *out, size_t room)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)m->data,
		.avail_in = (unsigned)m->n,
		.next_out = out,
		.avail_out = (unsigned)room};
	if (!m->deflated) {
		memcpy(out, m->data, m->n);
		return m->n;
	}
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(deflateEnd(&z), Z_OK);
	return room - z.avail_out;
}

static void write_zip(const char *path, const struct member *m, int n, struct bytes *zip)
{
	struct bytes list = {.n = 0};
	zip->n = 0;
	for (int i = 0; i < n; i++) {
		unsigned char data[8192];
		const size_t size = packed(&m[i], data, sizeof data), name = strlen(m[i].name);
		const uint64_t sum = crc32(0, m[i].data, (unsigned)m[i].n), at = zip->n;
		put_number(zip, 0x04034b50, 4);
		put_number(zip, 20, 2);
		put_number(zip, 0, 2);
		put_number(zip, m[i].deflated ? 8 : 0, 2);
		put_number(zip, 0, 4);
		put_number(zip, sum, 4);
		put_number(zip, size, 4);
		put_number(zip, m[i].n, 4);
		put_number(zip, name, 2);
		put_number(zip, 5, 2);
		put(zip, m[i].name, name);
		put(zip, "\1\2\1\0x", 5); /* an extra field of somebody's */
		put(zip, data, size);
		put_number(&list, 0x02014b50, 4);
		put_number(&list, 20, 2);
		put_number(&list, 20, 2);
		put_number(&list, 0, 2);
		put_number(&list, m[i].deflated ? 8 : 0, 2);
		put_number(&list, 0, 4);
		put_number(&list, sum, 4);
		put_number(&list, m[i].zip64 ? UINT32_MAX : size, 4);
		put_number(&list, m[i].zip64 ? UINT32_MAX : m[i].n, 4);
		put_number(&list, name, 2);
		put_number(&list, m[i].zip64 ? 20 : 0, 2);
		put_number(&list, 0, 2);
		put_number(&list, 0, 8);
		put_number(&list, at, 4);
		put(&list, m[i].name, name);
		if (m[i].zip64) {
			put_number(&list, 1, 2);
			put_number(&list, 16, 2);
			put_number(&list, m[i].n, 8);
			put_number(&list, size, 8);
		}
	}
	const size_t at = zip->n;
	put(zip, list.at, list.n);
	put_number(zip, 0x06054b50, 4);
	put_number(zip, 0, 4);
	put_number(zip, (uint64_t)n, 2);
	put_number(zip, (uint64_t)n, 2);
	put_number(zip, list.n, 4);
	put_number(zip, at, 4);
	put_number(zip, 7, 2);
	put(zip, "comment", 7);
	scratch_write(path, zip->at, zip->n);
}

/* --- */

static void holds(const char *path, int rank, const int64_t *dim, const int64_t *want)
{
	char message[256] = "";
	struct dataset d;
	int64_t done, value[64], index[16];
	if (dataset_open(&d, path, message))
		fail_msg("%s", message);
	assert_int_equal(d.rank, rank);
	for (int k = 0; k < rank; k++)
		assert_int_equal(d.dim[k], dim[k]);
	const int64_t n = d.dim[0];
	for (int64_t i = 0; i < n; i++)
		index[i] = n - 1 - i; /* not in their order */
	assert_int_equal(
		dataset_read(&d, index, n, DATASET_AS_I64, NULL, value, &done, message), 0);
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < d.row; k++)
			assert_int_equal(value[i * d.row + k], want[(n - 1 - i) * d.row + k]);
	dataset_close(&d);
}

static void refused(const char *path, const char *why)
{
	char message[256] = "";
	struct dataset d;
	assert_int_equal(dataset_open(&d, path, message), 1);
	if (!strstr(message, why))
		fail_msg("'%s' does not say '%s'", message, why);
}

static struct member members[3] = {{.name = "images.npy"}, {.name = "labels.npy", .deflated = 1},
	{.name = "far.npy", .deflated = 1, .zip64 = 1}};
static const int32_t small[6] = {1, -2, 3, 4, 5, 600000};
static const int64_t small_want[6] = {1, -2, 3, 4, 5, 600000}, shape[2] = {3, 2};

static void make_members(void)
{
	npy_of(&members[0], "<i4", 2, shape, small, sizeof small);
	npy_of(&members[1], "<i4", 1, (int64_t[]){6}, small, sizeof small);
	npy_of(&members[2], "<i4", 2, shape, small, sizeof small);
}

static void arrays_of_an_archive(void **state)
{
	(void)state;
	static struct bytes zip;
	make_members();
	write_zip("a.npz", members, 3, &zip);
	holds("a.npz:images", 2, shape, small_want);
	holds("a.npz:images.npy", 2, shape, small_want);
	holds("a.npz:labels", 1, (int64_t[]){6}, small_want);
	holds("a.npz:far", 2, shape, small_want);
	refused("a.npz:image", "has no array 'image'; its first is 'images.npy'");
	refused("a.npz", "name one of its arrays");
	refused("none.npz:x", "cannot open");
	write_zip("empty.npz", members, 0, &zip);
	refused("empty.npz:x", "has no arrays");
}

/* Cut, or with a byte changed, it is refused or gives what was there; memory is never misused. */
static void damaged_archives(void **state)
{
	(void)state;
	static struct bytes zip;
	char message[256];
	make_members();
	write_zip("a.npz", members, 3, &zip);
	for (size_t cut = 0; cut < zip.n; cut += 7) {
		scratch_write("cut.npz", zip.at, cut);
		refused("cut.npz:labels", "");
	}
	for (size_t i = 0; i < zip.n; i++) {
		struct dataset d;
		int64_t done, value[64];
		zip.at[i] ^= 0x55;
		scratch_write("cut.npz", zip.at, zip.n);
		zip.at[i] ^= 0x55;
		if (dataset_open(&d, "cut.npz:labels", message))
			continue;
		assert_true(d.rank == 1 && d.dim[0] == 6);
		(void)dataset_read(&d, (int64_t[]){0, 1, 2, 3, 4, 5}, 6, DATASET_AS_I64, NULL,
			value, &done, message);
		assert_memory_equal(value, small_want, sizeof small_want);
		dataset_close(&d);
	}
	memcpy(strstr((char *)members[0].data + 10, "<i4"), "|O ", 3);
	write_zip("b.npz", members, 1, &zip);
	refused("b.npz:images", "are not read");
}

/* What is wrong with an archive of one array, by what stands where: its name is 10 bytes, what
 * stands before it in the list 46, and the end is 22 and a comment of 7. */
static void archives_say_what_is_wrong(void **state)
{
	(void)state;
	static struct bytes zip;
	enum { END = -29, LISTED = END - 56 };
	static const struct {
		long at; /* from the end, where it is negative */
		unsigned char byte;
		const char *why;
	} bad[] = {{LISTED + 8, 1, "is encrypted"},
		{LISTED + 10, 12, "is packed by method 12; stored and deflated are read"},
		{LISTED, 0, "a damaged archive"}, {0, 0, "a damaged archive"},
		{END, 0, "no .npz: the archive's end is missing"},
		{45, 'X', "is no .npy in the archive"}};
	make_members();
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_zip("c.npz", members, 1, &zip);
		zip.at[bad[i].at < 0 ? (long)zip.n + bad[i].at : bad[i].at] = bad[i].byte;
		scratch_write("c.npz", zip.at, zip.n);
		refused("c.npz:images", bad[i].why);
	}
	scratch_write("d.npz", "\x1f\x8b\x08", 3);
	refused("d.npz:images", "no .npz, but compressed by gzip");
	write_zip("c.npz", &members[1], 1, &zip);
	zip.at[zip.n - 29 - 56 + 16] ^= 1;
	scratch_write("c.npz", zip.at, zip.n);
	refused("c.npz:labels", "its compression is damaged: the sum");
	for (size_t i = 45; i < 60; i++)
		zip.at[i] = 0xff;
	scratch_write("c.npz", zip.at, zip.n);
	refused("c.npz:labels", "its compression is damaged: invalid block type");
}

static void tensors_of_a_file(void **state)
{
	(void)state;
	scratch_safetensors("t.safetensors",
		"{\"a\":{\"dtype\":\"I32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
		"\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[24,28]}}",
		(const char[28]){
			1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0},
		28);
	holds("t.safetensors:a", 2, shape, (int64_t[]){1, 2, 3, 4, 5, 6});
	refused("t.safetensors", "name one of its tensors");
	refused("t.safetensors:b", "BF16 are not read");
	refused("t.safetensors:c", "has no tensor 'c'; its first is 'a'");
	refused("no.safetensors:c", "no.safetensors");
}

static void windows_of_tokens(void **state)
{
	(void)state;
	static const uint16_t plain[11] = {0, 1, 2, 3, 4, 50000, 6, 7, 8, 9, 10};
	static uint32_t headed[256 + 7] = {20240801, 7, 7};
	static uint32_t narrow[256 + 4] = {20240520, 1, 8};
	const int64_t windows[2] = {2, 4}, three[2] = {2, 3}, one[2] = {7, 1};
	scratch_write("plain.bin", plain, sizeof plain);
	holds("tokens:4:plain.bin", 2, windows, (int64_t[]){0, 1, 2, 3, 4, 50000, 6, 7});
	holds("tokens:4+1:plain.bin", 2, windows, (int64_t[]){1, 2, 3, 4, 50000, 6, 7, 8});
	for (uint32_t i = 0; i < 7; i++)
		headed[256 + i] = 100000 + i;
	scratch_write("wide.bin", headed, sizeof headed);
	holds("tokens:3:wide.bin", 2, three,
		(int64_t[]){100000, 100001, 100002, 100003, 100004, 100005});
	holds("tokens:3+1:wide.bin", 2, three,
		(int64_t[]){100001, 100002, 100003, 100004, 100005, 100006});
	memcpy(narrow + 256, plain, 16);
	scratch_write("narrow.bin", narrow, sizeof narrow);
	holds("tokens:1+1:narrow.bin", 2, one, (int64_t[]){1, 2, 3, 4, 50000, 6, 7});
	narrow[2] = 9;
	scratch_write("narrow.bin", narrow, sizeof narrow);
	refused("tokens:1:narrow.bin", "its header says 9 tokens, it has 8");
	scratch_write("odd.bin", plain, 5);
	refused("tokens:1:odd.bin", "within a token");
	scratch_write("raw32.bin", headed + 256, 28);
	holds("tokens:3+1,uint32:raw32.bin", 2, three,
		(int64_t[]){100001, 100002, 100003, 100004, 100005, 100006});
	static const unsigned char letters[] = "a cat";
	scratch_write("text.txt", letters, 5);
	holds("tokens:2,uint8:text.txt", 2, (int64_t[]){2, 2}, (int64_t[]){'a', ' ', 'c', 'a'});
	holds("tokens:2+1,uint8:text.txt", 2, (int64_t[]){2, 2}, (int64_t[]){' ', 'c', 'a', 't'});
	refused("tokens:2:text.txt", "16 bits; a text's bytes are tokens:T,uint8:FILE");
	refused("tokens:11:plain.bin",
		"has 11 tokens, too few for one window of 11 and the token behind it");
	refused("tokens:10+1:none.bin", "cannot open");
	refused("tokens:4:.", "cannot open");
	static const char *const bad[] = {"tokens:plain.bin", "tokens:0:plain.bin",
		"tokens:4:", "tokens:-4:plain.bin", "tokens:4+2:plain.bin",
		"tokens:99999999999999999999:plain.bin", "tokens::plain.bin"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		refused(bad[i], "is written tokens:T[,uint32|,uint8]:FILE");
	/* what is no class is found without reading more than the file */
	char message[256];
	int64_t where, value;
	struct dataset d;
	assert_int_equal(dataset_open(&d, "tokens:4+1:plain.bin", message), 0);
	assert_int_equal(dataset_outside(&d, 0, 49999, -1, &where, &value, message), 0);
	assert_true(where == 1 && value == 50000);
	dataset_close(&d);
}

static void text(const char *path, const char *what)
{
	scratch_write(path, what, strlen(what));
}

static void columns_of_text(void **state)
{
	(void)state;
	const int64_t all[2] = {3, 3}, two[2] = {3, 2};
	text("a.csv", "x,\"the y\",label\r\n1,2,0\r\n\r\n3,\"4\",1\r\n5,6e0,-2");
	holds("csv:a.csv", 2, all, (int64_t[]){1, 2, 0, 3, 4, 1, 5, 6, -2});
	holds("csv:label:a.csv", 1, (int64_t[]){3}, (int64_t[]){0, 1, -2});
	holds("csv:label,x:a.csv", 2, two, (int64_t[]){0, 1, 1, 3, -2, 5});
	holds("csv:the y:a.csv", 1, (int64_t[]){3}, (int64_t[]){2, 4, 6});
	char message[256];
	struct dataset d;
	double v[2];
	int64_t done;
	text("b.csv", "name,v\n\"a, \"\"b\"\"\n\",1.5\nq,-2\n");
	assert_int_equal(dataset_open(&d, "csv:v:b.csv", message), 0);
	assert_true(d.type == DATASET_F64 && d.rank == 1 && d.dim[0] == 2);
	assert_int_equal(
		dataset_read(&d, (int64_t[]){0, 1}, 2, DATASET_AS_F64, NULL, v, &done, message), 0);
	assert_true(v[0] == 1.5 && v[1] == -2);
	dataset_close(&d);
	text("mark.csv", "\xef\xbb\xbfx,y\n1,2\n");
	holds("csv:x:mark.csv", 1, (int64_t[]){1}, (int64_t[]){1});
	text("semi.csv", "x;\"y,z\";label\n1;2;0\n3;4.5;1\n");
	holds("csv:x,label:semi.csv", 2, (int64_t[]){2, 2}, (int64_t[]){1, 0, 3, 1});
	text("tabs.tsv", "x\ty;z\n1\t2\n");
	holds("csv:tabs.tsv", 2, (int64_t[]){1, 2}, (int64_t[]){1, 2});
	text("comma.csv", "x;y,z\n1,2\n");
	holds("csv:z:comma.csv", 1, (int64_t[]){1}, (int64_t[]){2});
	refused("csv:w:b.csv", "has no column 'w'; its first is 'name'");
	refused("csv:none.csv", "cannot open");
	static const struct {
		const char *text, *why;
	} bad[] = {{"", "is empty"}, {"a,b\n1\n", "line 2 has 1 cells for 2 columns"},
		{"a,b\n1,2,3\n", "line 2 has 3 cells"}, {"a,b,a\n1,2,3\n", "has two columns 'a'"},
		{"a\n1\nx\n", "line 3, column 'a': 'x'"},
		{"a,b\n1,\n", "line 2, column 'b': '' is no number"},
		{"a\n\"1\n", "a quote does not end"}, {"a\n\"1\"2\n", "line 2: a quote within"},
		{"a\n1\r2\n", "a carriage return"}, {"a\n1 2\n", "'1 2' is no number"},
		{"a\nx\n1\n", "line 3, column 'a': '1' is a number among words"},
		{"a,b\nx,1\n,2\n", "line 3, column 'a': '' is no word"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		text("bad.csv", bad[i].text);
		refused("csv:bad.csv", bad[i].why);
	}
}

/* Words count in the order of their bytes, or as others have them. */
static void words_of_text(void **state)
{
	(void)state;
	char message[256];
	struct dataset d;
	int64_t v[8], done;
	const int64_t two[2] = {4, 2}, index[4] = {0, 1, 2, 3};
	text("w.csv", "kind,\"a,b:c\",x\nred,n/a,1\nblue,y\\z,2\nred,n/a,3\ngreen,q,4\n");
	holds("csv:kind:w.csv", 1, (int64_t[]){4}, (int64_t[]){2, 0, 2, 1});
	holds("csv:x,kind:w.csv", 2, two, (int64_t[]){1, 2, 2, 0, 3, 2, 4, 1});
	holds("csv:a\\,b\\:c:w.csv", 1, (int64_t[]){4}, (int64_t[]){0, 2, 0, 1});
	assert_int_equal(dataset_open(&d, "csv:kind:w.csv", message), 0);
	assert_string_equal(dataset_classes(&d), "blue/green/red");
	assert_string_equal(dataset_columns(&d), "kind\\/blue\\/green\\/red");
	assert_int_equal(dataset_take_classes(&d, "red/white/green/blue", message), 0);
	assert_int_equal(dataset_take_columns(&d, dataset_columns(&d), message), 0);
	assert_string_equal(dataset_columns(&d), "kind\\/red\\/white\\/green\\/blue");
	assert_int_equal(dataset_read(&d, index, 4, DATASET_AS_I64, NULL, v, &done, message), 0);
	assert_true(v[0] == 0 && v[1] == 3 && v[2] == 0 && v[3] == 2);
	assert_int_equal(dataset_take_classes(&d, "red/white/green", message), 1);
	assert_non_null(strstr(message, "column 'kind' has 'blue', which is none of"));
	dataset_close(&d);
	/* all columns, with marks and slashes in their names and words */
	assert_int_equal(dataset_open(&d, "csv:w.csv", message), 0);
	char *with = dataset_with_columns("csv:other.csv", dataset_columns(&d));
	assert_string_equal(with, "csv:kind,a\\,b\\:c,x:other.csv");
	assert_null(dataset_with_columns(with, dataset_columns(&d)));
	size_t bytes;
	assert_string_equal(dataset_file(with, &bytes), "other.csv");
	free(with);
	assert_null(dataset_classes(&d));
	assert_int_equal(dataset_take_columns(&d, "x\\/one/kind", message), 1);
	assert_non_null(strstr(message, "column 'kind' holds words, and numbers were trained"));
	assert_int_equal(dataset_take_columns(&d, "x\\/one", message), 1);
	assert_non_null(strstr(message, "column 'x' holds numbers, and words were trained"));
	assert_int_equal(
		dataset_take_columns(&d, "a,b:c\\/q\\/y\\\\\\\\z\\/n\\\\\\/a", message), 0);
	int64_t row[12];
	assert_int_equal(dataset_read(&d, index, 4, DATASET_AS_I64, NULL, row, &done, message), 0);
	assert_true(row[1] == 2 && row[4] == 1 && row[7] == 2 && row[10] == 0);
	dataset_close(&d);
}

static void names_of_tokens(void **state)
{
	(void)state;
	char message[256];
	struct dataset d;
	assert_true(mkdir("voc", 0777) == 0 || errno == EEXIST);
	scratch_write("voc/t.bin", "\0\0\1\0\2\0\1\0", 8);
	(void)remove("voc/vocab.txt");
	assert_int_equal(dataset_open(&d, "tokens:3:voc/t.bin", message), 0);
	assert_null(dataset_classes(&d));
	assert_int_equal(dataset_take_classes(&d, "a/b", message), 0);
	dataset_close(&d);
	text("voc/vocab.txt", "a\n/\nthe end");
	assert_int_equal(dataset_open(&d, "tokens:3+1:voc/t.bin", message), 0);
	assert_string_equal(dataset_classes(&d), "a/\\//the end");
	assert_int_equal(dataset_take_columns(&d, dataset_columns(&d), message), 0);
	assert_int_equal(dataset_take_classes(&d, "a/\\//the END", message), 1);
	assert_non_null(strstr(message, "calls token 2 'the end', and what is trained 'the END'"));
	assert_int_equal(dataset_take_classes(&d, "a/\\/", message), 1);
	assert_non_null(strstr(message, "calls token 2 'the end', and what is trained nothing"));
	dataset_close(&d);
	scratch_write("voc/vocab.txt", "a\0b\n", 4);
	refused("tokens:3:voc/t.bin", "line 1 is no text: one token a line");
}

static void frames_of_a_program(void **state)
{
	(void)state;
	struct member m = {.name = ""}, other = {.name = ""};
	npy_of(&m, "<i4", 2, shape, small, sizeof small);
	npy_of(&other, "<i4", 1, (int64_t[]){6}, small, sizeof small);
	scratch_write("frame.npy", m.data, m.n);
	scratch_write("other.npy", other.data, other.n);
	holds("cmd:cat frame.npy frame.npy", 2, (int64_t[]){6, 2},
		(int64_t[]){1, -2, 3, 4, 5, 600000, 1, -2, 3, 4, 5, 600000});
	refused("cmd:cat frame.npy other.npy", "several shapes");
	refused("cmd:cat frame.npy; exit 3", "ended with exit code 3");
	refused("cmd:true", "wrote no .npy");
	refused("cmd:echo not an array at all", "wrote something that is no .npy");
	refused("cmd:yes no array", "no .npy");
	refused("cmd:head -c 100 frame.npy", "ends too early");
	refused("cmd:cat frame.npy; kill -9 $$", "was ended by signal 9");
	refused("cmd:no-such-program 2>/dev/null", "exit code 127");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_of_an_archive),
		cmocka_unit_test(damaged_archives),
		cmocka_unit_test(archives_say_what_is_wrong),
		cmocka_unit_test(tensors_of_a_file),
		cmocka_unit_test(windows_of_tokens),
		cmocka_unit_test(columns_of_text),
		cmocka_unit_test(words_of_text),
		cmocka_unit_test(names_of_tokens),
		cmocka_unit_test(frames_of_a_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
