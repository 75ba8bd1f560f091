/* test_bugs plain|check|asan LIBRARY: that each planted bug of samples/bugs.cu is seen, and how. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/shim/tools.h"

static const char *mode;

enum { N = 64 };
static _Alignas(16) float x[N];
/* In the launches' eyes half as long; AddressSanitizer's bugs go past all of it. */
static _Alignas(16) float y[2 * N];

/* What gives a bug away where no message does: DIFFERS, forwards and backwards; NANS, in what comes
 * out. UNSEEN: nothing, in this mode. */
#define DIFFERS "<differs>"
#define NANS "<nans>"
#define UNSEEN "<unseen>"

/* The message, or a part of it, by mode. */
struct bug {
	const char *kernel, *plain, *check, *asan;
	unsigned grid, block;
	int number; /* the last argument, where there is one */
	size_t dynamic;
};

static const struct bug bugs[] = {
	{"bug_missing_barrier", DIFFERS, "a race with the", DIFFERS, 1, 64, 0, 0},
	{"bug_missing_second_barrier", DIFFERS, "a race with the", DIFFERS, 1, 64, 0, 0},
	{"bug_missing_syncwarp", UNSEEN, "a race with the", UNSEEN, 1, 32, 0, 0},
	{"bug_missing_wait", NANS, "an asynchronous copy has not been waited for", NANS, 1, 32, 0,
		0},
	{"bug_wait_without_barrier", DIFFERS, "a race with the", DIFFERS, 1, 32, 0, 0},
	{"bug_never_waits", "1 asynchronous copies not waited for",
		"1 asynchronous copies not waited for", "1 asynchronous copies not waited for", 1,
		32, 0, 0},
	{"bug_shared_bounds", UNSEEN, "out of bounds: byte 256 of shared tile, which has 256 bytes",
		"global-buffer-overflow", 1, 64, 1, 0},
	{"bug_dynamic_bounds", UNSEEN,
		"out of bounds: byte 256 of dynamic shared memory, which has 256 bytes",
		"heap-buffer-overflow", 1, 64, 1, 256},
	{"bug_global_bounds", UNSEEN, "out of bounds: byte 256 of y, which has 256 bytes", UNSEEN,
		1, 64, 1, 0},
	{"bug_read_only", UNSEEN, "which is only to be read", UNSEEN, 1, 64, 0, 0},
	{"bug_misaligned", UNSEEN, "misaligned access to 'const struct float4'",
		"misaligned address", 1, 32, 1, 0},
	{"bug_divergent_shuffle", "waits in __shfl_down_sync(0xffffffff), and not all lanes come",
		"waits in __shfl_down_sync(0xffffffff), and not all lanes come",
		"waits in __shfl_down_sync(0xffffffff), and not all lanes come", 1, 64, 0, 0},
	{"bug_shuffle_outside", "takes the value of lane 16, which is not in mask 0x0000ffff",
		"takes the value of lane 16, which is not in mask 0x0000ffff",
		"takes the value of lane 16, which is not in mask 0x0000ffff", 1, 32, 0, 0},
	{"bug_divergent_barrier", "waits in __syncthreads, and not all threads come",
		"waits in __syncthreads, and not all threads come",
		"waits in __syncthreads, and not all threads come", 1, 64, 0, 0},
	{"bug_two_barriers", "divergent __syncthreads", "divergent __syncthreads",
		"divergent __syncthreads", 1, 64, 0, 0},
	{"bug_blocks_race", DIFFERS, "a race with the write by another block", DIFFERS, 2, 32, 0,
		0},
	{"bug_blocks_read_write", DIFFERS, "by another block at", DIFFERS, 2, 32, 0, 0},
	{"bug_stale_shared", NANS, UNSEEN, NANS, 2, 32, 0, 0},
	{"bug_endless", "stopped after 1 seconds", "stopped after 1 seconds", NULL, 1, 32, 0, 0},
	{"bug_wild", "no memory", "out of bounds", NULL, 1, 32, 0, 0},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

static const char *expected(const struct bug *b)
{
	return strcmp(mode, "plain") == 0   ? b->plain
	       : strcmp(mode, "check") == 0 ? b->check
					    : b->asan;
}

/* The error, or NULL. */
static const char *launch(const struct bug *b, enum shim_order order)
{
	static const struct shim_range ranges[] = {
		{y, N * sizeof *y, true, "y"}, {x, sizeof x, false, "x"}};
	float *py = y, *px = x;
	int number = b->number;
	/* past all of y */
	if (strcmp(mode, "asan") == 0 && strcmp(b->kernel, "bug_global_bounds") == 0)
		number += N;
	int64_t far = (int64_t)1 << 44;
	void *third = &number, *only_x[] = {&px}, *all[] = {&py, &px, third}, *wild[] = {&py, &far};
	struct shim_launch l = {.kernel = b->kernel,
		.grid = {b->grid},
		.block = {b->block},
		.dynamic = b->dynamic,
		.nargs = b->number ? 3 : 2,
		.args = all,
		.nranges = 2,
		.ranges = ranges,
		.order = order,
		.seconds = 1};
	if (strcmp(b->kernel, "bug_never_waits") == 0) {
		l.nargs = 1;
		l.args = only_x;
	} else if (strcmp(b->kernel, "bug_endless") == 0) {
		l.nargs = 1;
	} else if (strcmp(b->kernel, "bug_wild") == 0) {
		l.args = wild;
	}
	for (int i = 0; i < N; i++) {
		x[i] = (float)(i + 1);
		y[i] = 0;
	}
	return shim_launch(text, &l);
}

static void check_result(const struct bug *b, const char *want)
{
	float forward[N];
	int nans = 0;
	const char *error = launch(b, SHIM_FORWARD);
	if (error)
		fail_msg("%s: %s", b->kernel, error);
	memcpy(forward, y, sizeof forward);
	for (int i = 0; i < N; i++)
		nans += y[i] != y[i];
	error = launch(b, SHIM_REVERSE);
	if (error)
		fail_msg("%s: %s", b->kernel, error);
	if (strcmp(want, DIFFERS) == 0)
		assert_memory_not_equal(forward, y, sizeof forward);
	else if (strcmp(want, NANS) == 0)
		assert_true(nans > 0);
}

static void check_message(const struct bug *b, const char *want)
{
	for (int order = 0; order < 2; order++) {
		const char *error = launch(b, order ? SHIM_REVERSE : SHIM_FORWARD);
		if (!error) {
			fail_msg("%s is not seen", b->kernel);
			return;
		}
		if (!order)
			print_message("%s\n", error);
		if (!strstr(error, want))
			fail_msg("%s: '%s', not '%s'", b->kernel, error, want);
		/* the bug stands in the text, and so does its place in the message */
		if (strcmp(b->kernel, "bug_never_waits") != 0 &&
			strcmp(b->kernel, "bug_endless") != 0 && strcmp(b->kernel, "bug_wild") != 0)
			assert_non_null(strstr(error, "bugs.cu:"));
	}
}

/* The sanitizers end the program, so another one runs it. */
static void check_report(const struct bug *b, const char *want)
{
	char report[1 << 14];
	size_t n = 0;
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(ends[1], 2);
		close(ends[0]);
		const char *error = launch(b, SHIM_FORWARD);
		if (error)
			fprintf(stderr, "%s\n", error);
		_exit(error ? 1 : 0);
	}
	close(ends[1]);
	for (ssize_t got; n < sizeof report - 1 &&
			  (got = read(ends[0], report + n, sizeof report - 1 - n)) > 0;)
		n += (size_t)got;
	report[n] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	if (!strstr(report, want))
		fail_msg("%s: '%s', not '%s'", b->kernel, report, want);
}

static void planted_bugs(void **state)
{
	(void)state;
	for (int i = 0; i < BUGS; i++) {
		const char *want = expected(&bugs[i]);
		if (!want)
			continue;
		if (strcmp(want, UNSEEN) == 0)
			continue;
		/* clang does not look at the alignment of a struct that is copied */
		if (strstr(text_library, "clang") && strcmp(bugs[i].kernel, "bug_misaligned") == 0)
			continue;
		if (want[0] == '<')
			check_result(&bugs[i], want);
		else if (strcmp(mode, "asan") == 0)
			check_report(&bugs[i], want);
		else
			check_message(&bugs[i], want);
	}
}

/* Mistakes of the caller's. */
static void bad_launches(void **state)
{
	(void)state;
	float *py = y;
	void *args[] = {&py, &py};
	struct shim_launch l = {.kernel = "none", .block = {32}, .nargs = 2, .args = args};
	assert_non_null(strstr(shim_launch(text, &l), "no such kernel"));
	l.kernel = "bug_missing_barrier";
	l.nargs = 1;
	assert_non_null(strstr(shim_launch(text, &l), "1 arguments, it takes 2"));
	l.nargs = 2;
	l.block[0] = 128;
	assert_non_null(strstr(shim_launch(text, &l), "its __launch_bounds__ are 64"));
	char error[SHIM_TEXT];
	assert_null(shim_open("/nowhere.so", error));
	assert_non_null(strstr(error, "/nowhere.so"));
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	mode = argv[1];
	text_library = argv[2];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planted_bugs),
		cmocka_unit_test(bad_launches),
	};
	return cmocka_run_group_tests(tests, text_open, text_close);
}
