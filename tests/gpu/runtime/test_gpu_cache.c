/* Compiling and remembering: six architectures, hits and misses, files torn, foreign and
 * unwritable, several processes at once. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_tools.h"

static const char text[] =
	"extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n";

/* Entries; with `path`, the last one's. */
static int folder_count(const char *folder, char path[4096])
{
	DIR *d = opendir(folder);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.') {
			n++;
			if (path)
				snprintf(path, 4096, "%s/%s", folder, e->d_name);
		}
	if (d)
		closedir(d);
	return n;
}

static stint_gpu *gpu_caching(const char *folder)
{
	stint_gpu *g;
	assert_int_equal(stint_gpu_new(&g, NULL), STINT_OK);
	assert_int_equal(stint_gpu_cache(g, folder), STINT_OK);
	return g;
}

/* 0, 1: compiled, from the cache. */
static int compile(stint_gpu *g, const char *source, int arch, const char *option)
{
	struct stint_gpu_code code;
	assert_int_equal(
		stint_gpu_compile(g, source, arch, &option, option != NULL, &code), STINT_OK);
	assert_true(code.bytes > 64);
	assert_memory_equal(code.data, "\177ELF", 4);
	const int cached = code.cached;
	stint_gpu_code_free(&code);
	return cached;
}

static void need_compiler(stint_gpu *g)
{
	if (stint_gpu_need(g, STINT_GPU_NVRTC)) {
		stint_gpu_free(g);
		skip();
	}
}

/* FIPS 180-4's examples, and a million a's. */
static void test_hash(void **state)
{
	static const struct {
		const char *text;
		int times;
		const char *sum;
	} list[] = {
		{"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"aaaaaaaaaa", 100000,
			"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct stint_sha s;
		unsigned char key[STINT_SHA];
		char hex[2 * STINT_SHA + 1];
		stint_sha_start(&s);
		for (int k = 0; k < list[i].times; k++)
			stint_sha_add(&s, list[i].text, strlen(list[i].text));
		stint_sha_end(&s, key);
		for (int k = 0; k < STINT_SHA; k++)
			snprintf(hex + 2 * k, 3, "%02x", key[k]);
		assert_string_equal(hex, list[i].sum);
	}
}

static void test_architectures(void **state)
{
	static const int arch[] = {80, 86, 89, 90, 100, 120};
	stint_gpu *g = gpu_caching(NULL);
	struct stint_gpu_code code = {NULL, 0, 0};
	(void)state;
	need_compiler(g);
	if (stint_gpu_library_version(g, STINT_GPU_NVRTC) < 12080) {
		stint_gpu_free(g);
		skip(); /* too old for the last two */
	}
	for (size_t i = 0; i < sizeof arch / sizeof *arch; i++)
		assert_int_equal(compile(g, text, arch[i], NULL), 0);
	assert_int_equal(stint_gpu_compile(g, text, 70, NULL, 0, &code), STINT_BAD_DATA);
	assert_int_equal(
		stint_gpu_compile(g, text, 0, NULL, 0, &code), STINT_BAD_DATA); /* no device */
	assert_null(code.data);
	stint_gpu_free(g);
}

/* --fmad=false is there: a product and a sum stay two instructions. Seen in the code's bytes: with
 * fmad they differ. */
static void test_options(void **state)
{
	static const char mad[] =
		"extern \"C\" __global__ void f(float *x) { x[0] = x[1] * x[2] + x[3]; }\n";
	const char *const fmad = "--fmad=true", *const bad = "--no-such-option";
	struct stint_gpu_code a, b;
	stint_gpu *g = gpu_caching(NULL);
	(void)state;
	need_compiler(g);
	assert_int_equal(stint_gpu_compile(g, mad, 80, NULL, 0, &a), STINT_OK);
	assert_int_equal(stint_gpu_compile(g, mad, 80, &fmad, 1, &b), STINT_OK);
	assert_true(a.bytes != b.bytes || memcmp(a.data, b.data, a.bytes) != 0);
	stint_gpu_code_free(&a);
	stint_gpu_code_free(&b);
	assert_int_equal(stint_gpu_compile(g, mad, 80, &bad, 1, &a), STINT_BAD_MACHINE);
	assert_int_equal(stint_gpu_compile(g, mad, 80, &bad, 1000, &a), STINT_BAD_DATA);
	stint_gpu_free(g);
}

static void test_bad_text(void **state)
{
	stint_gpu *g = gpu_caching("bad");
	struct stint_gpu_code code;
	(void)state;
	folder_empty("bad");
	need_compiler(g);
	assert_int_equal(
		stint_gpu_compile(g, "__global__ void f() { undeclared = 1; }", 90, NULL, 0, &code),
		STINT_BAD_DATA);
	assert_non_null(strstr(stint_gpu_log(g), "undeclared"));
	assert_non_null(strstr(stint_gpu_message(g), "undeclared"));
	assert_int_equal(
		stint_gpu_compile(g, "#include <stdio.h>\n", 90, NULL, 0, &code), STINT_BAD_DATA);
	assert_int_equal(folder_count("bad", NULL), 0);
	assert_int_equal(compile(g, text, 90, NULL), 0);
	assert_string_equal(stint_gpu_log(g), "");
	stint_gpu_free(g);
	folder_empty("bad");
}

static void test_hit(void **state)
{
	stint_gpu *g = gpu_caching("made/for/hits");
	struct stint_gpu_code a, b;
	(void)state;
	folder_empty("made/for/hits");
	need_compiler(g);
	assert_int_equal(stint_gpu_compile(g, text, 90, NULL, 0, &a), STINT_OK);
	assert_int_equal(a.cached, 0);
	assert_int_equal(stint_gpu_compile(g, text, 90, NULL, 0, &b), STINT_OK);
	assert_int_equal(b.cached, 1);
	assert_int_equal(a.bytes, b.bytes);
	assert_memory_equal(a.data, b.data, a.bytes);
	stint_gpu_code_free(&a);
	stint_gpu_code_free(&b);
	/* another architecture, option or text is another entry */
	assert_int_equal(compile(g, text, 86, NULL), 0);
	assert_int_equal(compile(g, text, 90, "--maxrregcount=32"), 0);
	assert_int_equal(compile(g, text + 0, 90, "--maxrregcount=32"), 1);
	assert_int_equal(compile(g, "extern \"C\" __global__ void other() {}", 90, NULL), 0);
	assert_int_equal(folder_count("made/for/hits", NULL), 4);
	stint_gpu_free(g);
	g = gpu_caching("made/for/hits"); /* and another program finds them */
	assert_int_equal(compile(g, text, 90, NULL), 1);
	stint_gpu_free(g);
	folder_empty("made/for/hits");
}

/* An entry cut at every length, with any byte turned, or grown: never believed, written anew. */
static void test_damage(void **state)
{
	stint_gpu *g = gpu_caching("damage");
	static const char data[] = "some code that is kept";
	unsigned char key[STINT_SHA] = {1, 2, 3}, whole[4096], other[STINT_SHA] = {4};
	char path[4096];
	size_t bytes = 0;
	(void)state;
	folder_empty("damage");
	stint_cache_write(g->cache, key, data, sizeof data);
	assert_int_equal(folder_count("damage", path), 1);
	int fd = open(path, O_RDONLY);
	const ssize_t n = read(fd, whole, sizeof whole);
	close(fd);
	assert_true(n > (ssize_t)sizeof data);
	for (ssize_t i = 0; i < 2 * n + 1; i++) { /* cut, turned, grown */
		unsigned char copy[4096] = {0};
		memcpy(copy, whole, (size_t)n);
		const ssize_t size = i < n ? i : i < 2 * n ? n : n + 1;
		if (i >= n && i < 2 * n)
			copy[i - n] ^= 0x20;
		fd = open(path, O_WRONLY | O_TRUNC);
		assert_int_equal(write(fd, copy, (size_t)size), size);
		close(fd);
		assert_null(stint_cache_read(g->cache, key, &bytes));
	}
	stint_cache_write(g->cache, key, data, sizeof data);
	void *got = stint_cache_read(g->cache, key, &bytes);
	assert_non_null(got);
	assert_int_equal(bytes, sizeof data);
	assert_memory_equal(got, data, sizeof data);
	free(got);
	assert_null(stint_cache_read(g->cache, other, &bytes));
	unlink(path); /* a folder in its place */
	assert_int_equal(mkdir(path, 0777), 0);
	assert_null(stint_cache_read(g->cache, key, &bytes));
	stint_cache_write(g->cache, key, data, sizeof data);
	rmdir(path);
	assert_int_equal(folder_count("damage", NULL), 0); /* no temporary file stays */
	stint_gpu_free(g);
	folder_empty("damage");
}

/* Nowhere to write: everything works, without the cache. */
static void test_unwritable(void **state)
{
	stint_gpu *g = gpu_caching("/dev/null/no/folder");
	(void)state;
	need_compiler(g);
	assert_int_equal(compile(g, text, 90, NULL), 0);
	assert_int_equal(compile(g, text, 90, NULL), 0);
	assert_int_equal(stint_gpu_cache(g, ""), STINT_OK);
	assert_string_equal(stint_gpu_cache_folder(g), "");
	assert_int_equal(compile(g, text, 90, NULL), 0);
	stint_gpu_free(g);
}

static void test_folder(void **state)
{
	static const char *const list[][4] = {/* STINT_CACHE, XDG_CACHE_HOME, HOME, expected */
		{"here", "/xdg", "/home/me", "here"}, {NULL, "/xdg", "/home/me", "/xdg/stint"},
		{NULL, "", "/home/me", "/home/me/.cache/stint"}, {NULL, NULL, NULL, ""},
		{"", "/xdg", "/home/me", ""}};
	static const char *const names[] = {"STINT_CACHE", "XDG_CACHE_HOME", "HOME"};
	char *before[3];
	(void)state;
	for (int v = 0; v < 3; v++)
		before[v] = getenv(names[v]) ? strdup(getenv(names[v])) : NULL;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		stint_gpu *g;
		for (int v = 0; v < 3; v++)
			if (list[i][v])
				setenv(names[v], list[i][v], 1);
			else
				unsetenv(names[v]);
		assert_int_equal(stint_gpu_new(&g, NULL), STINT_OK);
		assert_string_equal(stint_gpu_cache_folder(g), list[i][3]);
		stint_gpu_free(g);
	}
	for (int v = 0; v < 3; v++) {
		if (before[v])
			setenv(names[v], before[v], 1);
		else
			unsetenv(names[v]);
		free(before[v]);
	}
}

/* Writers and readers of the same entries at once: what is read is always whole. */
static int hammer(int seed)
{
	stint_gpu *g;
	unsigned char data[20000];
	if (stint_gpu_new(&g, NULL) || stint_gpu_cache(g, "shared"))
		return 1;
	for (int i = 0; i < 200; i++) {
		const int which = (i * 7 + seed) % 3;
		unsigned char key[STINT_SHA] = {(unsigned char)which};
		size_t bytes = 0;
		memset(data, which, sizeof data);
		if (i % 2)
			stint_cache_write(g->cache, key, data, sizeof data - (size_t)which);
		unsigned char *got = stint_cache_read(g->cache, key, &bytes);
		if (got && (bytes != sizeof data - (size_t)which || memcmp(got, data, bytes) != 0))
			return 2;
		free(got);
	}
	stint_gpu_free(g);
	return 0;
}

static void test_processes(void **state)
{
	enum { MANY = 4 };
	pid_t child[MANY];
	(void)state;
	folder_empty("shared");
	for (int i = 0; i < MANY; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (!child[i])
			_exit(hammer(i));
	}
	for (int i = 0; i < MANY; i++) {
		int status;
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	assert_int_equal(folder_count("shared", NULL), 3); /* entries, no leftovers */
	folder_empty("shared");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_architectures),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_hit),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_unwritable),
		cmocka_unit_test(test_folder),
		cmocka_unit_test(test_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
