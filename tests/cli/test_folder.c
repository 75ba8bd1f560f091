/* DIR's files change all together or not at all: each rename and each folder made fails in turn. */
#include "api/folder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int calls_left; /* until a call fails; below 0: none does */

static int fails(void)
{
	if (calls_left < 0 || calls_left-- > 0)
		return 0;
	errno = EIO;
	return 1;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
	return fails() ? -1 : __real_rename(from, to);
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
	return fails() ? -1 : __real_mkdir(path, mode);
}

static void write_file(const char *dir, const char *name, const char *what)
{
	char path[400];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(what, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* `what` NULL: it is not there. */
static void assert_file(const char *dir, const char *name, const char *what)
{
	char path[300], have[100] = "";
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "r");
	if (!what) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	have[fread(have, 1, sizeof have - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(have, what);
}

static const char old_step[] = "/* old as C, written by stint. */";

static void make_ours(const char *dir)
{
	char notes[300];
	assert_int_equal(__real_mkdir(dir, 0777), 0);
	snprintf(notes, sizeof notes, "%s/known", dir);
	assert_int_equal(__real_mkdir(notes, 0777), 0);
	write_file(dir, "known/part.h", "old");
	write_file(dir, "known/notes", "theirs");
	write_file(dir, "step.c", old_step);
	write_file(dir, "step.so", "old");
	write_file(dir, "kernels.cu", "old");
	write_file(dir, "notes", "theirs");
}

static void assert_old(const char *dir)
{
	assert_file(dir, "step.c", old_step);
	assert_file(dir, "step.so", "old");
	assert_file(dir, "kernels.cu", "old");
	assert_file(dir, "notes", "theirs");
	assert_file(dir, "weights.safetensors", NULL);
	assert_file(dir, "known/part.h", "old");
	assert_file(dir, "known/notes", "theirs");
	assert_file(dir, "fresh", NULL);
}

static void assert_new(const char *dir)
{
	assert_file(dir, "step.c", "new");
	assert_file(dir, "step.so", "new");
	assert_file(dir, "kernels.cu", NULL);
	assert_file(dir, "notes", "theirs");
	assert_file(dir, "weights.safetensors", "new");
	assert_file(dir, "known/part.h", "new");
	assert_file(dir, "known/notes", "theirs");
	assert_file(dir, "fresh/part.h", "new");
}

/* A file in a folder of its own. */
static void write_below(const char *dir, const char *folder)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", dir, folder);
	assert_int_equal(__real_mkdir(path, 0777), 0);
	write_file(path, "part.h", "new");
}

static enum status write_new(struct arena *a, const char *dir, struct diag *d)
{
	struct folder f;
	TRY(folder_check(a, dir, false, &f, d));
	enum status st = folder_begin(&f, d);
	if (st == ST_OK) {
		write_file(f.work, "step.c", "new");
		write_file(f.work, "step.so", "new");
		write_file(f.work, "weights.safetensors", "new");
		write_below(f.work, "known");
		write_below(f.work, "fresh");
		st = folder_place(&f, d);
	}
	folder_drop(&f);
	return st;
}

/* The folder of a test, in which there is nothing but what it made. */
static void enter(char dir[static 20])
{
	snprintf(dir, 20, "folder_XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
}

static void leave(const char *dir)
{
	char command[64];
	assert_int_equal(chdir(".."), 0);
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void replaced_or_as_it_was(void **state)
{
	char dir[20];
	(void)state;
	enter(dir);
	make_ours("out");
	int n = 0;
	for (enum status st = ST_IO; st != ST_OK; n++) {
		struct diag d = {0};
		struct arena *a = arena_new();
		calls_left = n;
		st = write_new(a, "out", &d);
		calls_left = -1;
		arena_free(a);
		if (st == ST_OK)
			break;
		assert_int_equal(st, ST_IO);
		assert_int_equal(d.errors, 1);
		assert_old("out");
	}
	assert_true(n > 12); /* four folders, four files out, five in */
	assert_new("out");
	assert_int_equal(system("test $(ls -A out | wc -l) = 6"), 0);
	leave(dir);
}

static void made_or_not(void **state)
{
	char dir[20];
	(void)state;
	enter(dir);
	for (int n = 0; n < 3; n++) {
		struct diag d = {0};
		struct arena *a = arena_new();
		calls_left = n;
		assert_int_equal(write_new(a, "out", &d), n < 2 ? ST_IO : ST_OK);
		calls_left = -1;
		arena_free(a);
		assert_int_equal(access("out", F_OK), n < 2 ? -1 : 0);
		assert_int_equal(
			system(n < 2 ? "test -z \"$(ls -A)\"" : "test \"$(ls -A)\" = out"), 0);
	}
	assert_file("out", "step.so", "new");
	leave(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced_or_as_it_was), cmocka_unit_test(made_or_not)};
	return cmocka_run_group_tests_name("folder", tests, NULL, NULL);
}
