/* The generated step: its text against a committed golden file, and what it computes, built with
 * each compiler at hand. STINT_GOLDEN_UPDATE=1 rewrites the golden files. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/embedded.h"
#include "runtime/stint_rt.h"
#include "tests/codegen/tiny.h"

static const char hostile[] = "*/ /* \" %s %n ?\?/ \\\n\t\001 \377 \342\200\256 \303\251 // \\";

struct files {
	struct step_texts texts;
	struct source_files kernels;
};

static struct files generate(const struct tiny_options *o)
{
	struct tiny t;
	struct files f = {0};
	assert_int_equal(tiny_make(&t, o), ST_OK);
	assert_int_equal(codegen_step(&t.in, &f.texts, &f.kernels, &t.diag), ST_OK);
	assert_int_equal(t.diag.errors, 0);
	tiny_free(&t);
	return f;
}

static void free_files(struct files *f)
{
	step_texts_free(&f->texts);
}

static int spawn(const char *const *argv)
{
	pid_t pid = fork();
	if (pid == 0) {
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	int status = -1;
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void save(const struct text *t, const char *dir, const char *name)
{
	char path[300];
	struct diag d = {0};
	snprintf(path, sizeof path, "%s/%s", dir, name);
	assert_int_equal(text_save(t, path, &d), ST_OK);
}

static void save_texts(struct files *f, const char *dir)
{
	for (const struct step_file *x = step_files; x->name; x++)
		if (step_text(&f->texts, x)->len > 0)
			save(step_text(&f->texts, x), dir, x->name);
}

static bool have(const char *compiler)
{
	const char *const argv[] = {compiler, "--version", NULL};
	int out = dup(1);
	assert_non_null(freopen("/dev/null", "w", stdout));
	int rc = spawn(argv);
	fflush(stdout);
	dup2(out, 1);
	close(out);
	return rc == 0;
}

/* Build the step with tests/codegen/driver.c and run it. */
static void build_and_run(const struct tiny_options *o, const char *compiler, const char *extra)
{
	char dir[] = "codegen_XXXXXX", include[64], step[64], run[64];
	assert_non_null(mkdtemp(dir));
	snprintf(include, sizeof include, "-I%s", dir);
	snprintf(step, sizeof step, "%s/step.c", dir);
	snprintf(run, sizeof run, "./%s/run", dir);
	struct files f = generate(o);
	save_texts(&f, dir);
	free_files(&f);
	const char *const cc[] = {compiler, "-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror",
		"-ffp-contract=off",
		o->real == DT_F32 ? "-DDRIVER_REAL=float" : "-DDRIVER_REAL=double", include,
		"-I" STINT_SOURCE "/runtime", "-I" STINT_SOURCE, extra, step,
		STINT_SOURCE "/runtime/stint_schedule.c", STINT_SOURCE "/tests/codegen/driver.c",
		"-o", run, "-lm", NULL};
	assert_int_equal(spawn(cc), 0);
	assert_int_equal(spawn((const char *const[]){run, o->prefix, NULL}), 0);
	assert_int_equal(spawn((const char *const[]){"rm", "-r", dir, NULL}), 0);
}

static void all_ways(const char *compiler, const char *extra)
{
	if (!have(compiler))
		skip();
	for (int way = 0; way < 8; way++)
		build_and_run(&(struct tiny_options){.prefix = way == 0 ? "" : "layer1/",
				      .in_place = (way & 1) != 0,
				      .recompute = (way & 2) != 0,
				      .alternative = (way & 4) != 0,
				      .real = way == 5 ? DT_F64 : DT_F32,
				      .threads = 2},
			compiler, extra);
}

static void runs_with_gcc(void **state)
{
	(void)state;
	all_ways("gcc", "-O3");
}

static void runs_with_clang(void **state)
{
	(void)state;
	all_ways("clang", "-O2");
}

/* Bytes that hold nothing are poisoned: a read of them ends the run. */
static void debug_arena_is_clean(void **state)
{
	(void)state;
	if (!have("gcc"))
		skip();
	for (int way = 0; way < 4; way++)
		build_and_run(&(struct tiny_options){.prefix = "",
				      .in_place = (way & 1) != 0,
				      .recompute = (way & 2) != 0,
				      .debug_arena = true,
				      .real = DT_F32,
				      .threads = 1},
			"gcc", "-fsanitize=address,undefined");
}

static void library_calls_are_made(void **state)
{
	(void)state;
	const struct tiny_options o = {.prefix = "", .library = true, .real = DT_F32, .threads = 1};
	if (have("gcc"))
		build_and_run(&o, "gcc", "-DLIBRARY");
	if (have("clang"))
		build_and_run(&o, "clang", "-DLIBRARY");
}

static void save_file(const struct embedded_file *f, const char *dir)
{
	struct text t = {0};
	text_write(&t, f->text, f->len);
	save(&t, dir, f->name);
	text_free(&t);
}

/* What `stint compile` writes: the Makefile builds it without stint. */
static void makefile_builds(void **state)
{
	(void)state;
	char dir[] = "codegen_XXXXXX", so[64];
	assert_non_null(mkdtemp(dir));
	struct files f = generate(&(struct tiny_options){
		.prefix = "", .recompute = true, .real = DT_F32, .threads = 2});
	save_texts(&f, dir);
	char kernels[80];
	snprintf(kernels, sizeof kernels, "%s/kernels", dir);
	assert_int_equal(mkdir(kernels, 0777), 0);
	for (int i = 0; i < f.kernels.n; i++)
		save_file(f.kernels.file[i], kernels);
	free_files(&f);
	for (const struct embedded_file *e = embedded_files(); e->name; e++)
		save_file(e, dir);
	assert_int_equal(spawn((const char *const[]){"make", "-s", "-C", dir,
				 "CFLAGS=-O1 -Wall -Wextra -Werror", "step.so", "libstep.a", NULL}),
		0);
	snprintf(so, sizeof so, "./%s/step.so", dir);
	void *handle = dlopen(so, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(handle);
	const struct stint_model *(*get)(void);
	void *symbol = dlsym(handle, "stint_model_get");
	assert_non_null(symbol);
	memcpy(&get, &symbol, sizeof get);
	assert_int_equal(get()->version, STINT_RT_VERSION);
	assert_int_equal(get()->ntrain_steps, 12);
	dlclose(handle);
	assert_int_equal(spawn((const char *const[]){"rm", "-r", dir, NULL}), 0);
}

static void hostile_names_are_harmless(void **state)
{
	(void)state;
	const struct tiny_options o = {.prefix = hostile, .real = DT_F32, .threads = 1};
	if (have("gcc"))
		build_and_run(&o, "gcc", "-Wbidi-chars=any");
	if (have("clang"))
		build_and_run(&o, "clang", "-Wdocumentation");
}

static void same_input_same_bytes(void **state)
{
	(void)state;
	const struct tiny_options o = {
		.prefix = "a/", .in_place = true, .recompute = true, .real = DT_F32, .threads = 2};
	struct files a = generate(&o), b = generate(&o);
	for (const struct step_file *x = step_files; x->name; x++)
		if (step_text(&a.texts, x)->len > 0)
			assert_string_equal(step_text(&a.texts, x)->s, step_text(&b.texts, x)->s);
	free_files(&a);
	free_files(&b);
}

static void compare_golden(const struct text *t, const char *name)
{
	char path[300], *golden;
	size_t len;
	struct diag d = {0};
	snprintf(path, sizeof path, "%s/tests/codegen/golden/%s", STINT_SOURCE, name);
	if (getenv("STINT_GOLDEN_UPDATE"))
		assert_int_equal(text_save(t, path, &d), ST_OK);
	struct arena *a = arena_new();
	assert_int_equal(file_read(a, path, &golden, &len, &d), ST_OK);
	assert_string_equal(t->s, golden);
	arena_free(a);
}

static void text_is_golden(void **state)
{
	(void)state;
	struct files f = generate(&(struct tiny_options){.prefix = "net/",
		.in_place = true,
		.recompute = true,
		.real = DT_F32,
		.threads = 2});
	compare_golden(&f.texts.step, "step.c.txt");
	compare_golden(&f.texts.arena, "step_arena.h.txt");
	compare_golden(&f.texts.train, "step_train.h.txt");
	compare_golden(&f.texts.eval, "step_eval.h.txt");
	compare_golden(&f.texts.tables, "step_tables.h.txt");
	compare_golden(&f.texts.header, "stint_step.h.txt");
	compare_golden(&f.texts.makefile, "Makefile.txt");
	free_files(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(text_is_golden),
		cmocka_unit_test(same_input_same_bytes), cmocka_unit_test(runs_with_gcc),
		cmocka_unit_test(runs_with_clang), cmocka_unit_test(debug_arena_is_clean),
		cmocka_unit_test(library_calls_are_made), cmocka_unit_test(makefile_builds),
		cmocka_unit_test(hostile_names_are_harmless)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
