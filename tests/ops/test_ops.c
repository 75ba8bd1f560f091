/* test_ops FAMILY FOLDER RUNTIME [OPERATOR | SCRIPT first|all]: the examples of the FAMILY-th list
 * of the table, or of one operator; sources and objects go to FOLDER; RUNTIME holds the headers
 * that generated code includes. Texts are compiled by CC, or cc; where STINT_TEST_CC names a faster
 * compiler (tcc), by that one where it can: all but the first draw of an example's sizes, whose
 * text is the same but for sizes, or with STINT_TEST_CC_FIRST=1 all but each record's first
 * example. With SCRIPT, for a GPU: `SCRIPT FOLDER` makes step.so and
 * kernels.so of its sources (tests/gpu/ops.sh), of each record the first example or all. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/ops/ops_test.h"

struct family {
	const char *folder, *runtime, *script, *only;
	bool first; /* of each record the first example alone, in one draw */
	int ncase;
	struct test_case *test;
	const char *fast; /* a compiler for values alone; NULL */
	bool *quick;      /* of each case: compiled by it */
	void *object, *quick_object;
};

static int add_cases(struct family *f, const struct op_def *list)
{
	int n = 0;
	for (const struct op_def *op = list; op->name; op++)
		for (const struct op_example *ex = op->example; ex && ex->in; ex++)
			for (int draw = 0; draw < example_draws(ex); draw++) {
				if ((f->first && (draw > 0 || ex != op->example)) ||
					(f->only && strcmp(op->name, f->only) != 0))
					continue;
				if (f->test)
					f->test[n] = (struct test_case){
						.op = op, .example = ex, .draw = draw};
				n++;
			}
	return n;
}

/* All variants' sources of case i, appended to a command. */
static int add_sources(const struct family *f, int i, struct text *command)
{
	int n = 0;
	for (int v = 0; v < VAR_COUNT; v++) {
		if (*f->test[i].error || !f->test[i].variant[v].built || variant_is_cuda(v))
			continue;
		text_add(command, " %s/%s/step.c", f->folder, f->test[i].variant[v].symbol);
		n++;
	}
	return n;
}

/* One call of the compiler for the cases from first on, those that are `quick` or the others: a
 * process for each would take most of the time. Nothing to compile is no success. */
static bool compile_some(const struct family *f, int first, int end, bool quick, const char *out)
{
	struct text command = {0};
	int n = 0;
	text_add(&command, "%s %s -I%s -shared -o %s/%s", quick ? f->fast : "${CC:-cc}",
		STEP_CFLAGS, f->runtime, f->folder, out);
	for (int i = first; i < end; i++)
		if (f->quick[i] == quick)
			n += add_sources(f, i, &command);
	text_puts(&command, " -lm >/dev/null 2>&1");
	bool ok = n > 0 && !command.failed && system(command.s) == 0;
	text_free(&command);
	return ok;
}

static bool compile_all(const struct family *f)
{
	return compile_some(f, 0, f->ncase, false, "all.so");
}

/* Whether the compiler that promises to warn and to optimize must see a case: the first draw of
 * its sizes, or with STINT_TEST_CC_FIRST a record's first example alone. */
static bool needs_cc(const struct test_case *c)
{
	const char *first = getenv("STINT_TEST_CC_FIRST");
	return c->draw == 0 && (c->example == c->op->example || !first || strcmp(first, "1") != 0);
}

/* What the faster compiler can do; the rest stays for the other one. */
static void compile_quick(struct family *f)
{
	int n = 0;
	for (int i = 0; i < f->ncase; i++)
		n += f->quick[i] = !needs_cc(&f->test[i]);
	if (n > 0 && !compile_some(f, 0, f->ncase, true, "quick.so")) {
		n = 0;
		for (int i = 0; i < f->ncase; i++)
			n += f->quick[i] = f->quick[i] && compile_some(f, i, i + 1, true, "one.so");
		if (n > 0 && !compile_some(f, 0, f->ncase, true, "quick.so"))
			n = 0;
	}
	if (n == 0)
		memset(f->quick, 0, (size_t)f->ncase * sizeof *f->quick);
	print_message("%d of %d cases by %s\n", n, f->ncase, f->fast);
}

/* The first message of a compiler's log. */
static void quote_log(struct test_case *c, const char *path)
{
	char line[400] = "its C text does not compile";
	FILE *log = fopen(path, "r");
	while (log && fgets(line, sizeof line, log))
		if (strstr(line, "error:"))
			break;
	if (log)
		fclose(log);
	case_error(c, "%s", line);
}

/* Find out whose text does not compile, and why. */
static void compile_each(struct family *f)
{
	char log[4096];
	for (int i = 0; i < f->ncase; i++) {
		struct text command = {0};
		text_add(&command, "${CC:-cc} %s -I%s -fsyntax-only", STEP_CFLAGS, f->runtime);
		int n = add_sources(f, i, &command);
		snprintf(log, sizeof log, "%s/case%d.log", f->folder, i);
		text_add(&command, " 2>%s", log);
		if (n > 0 && !command.failed && system(command.s) != 0)
			quote_log(&f->test[i], log);
		text_free(&command);
	}
}

/* Libraries of the variants for a GPU, each with kernels of its own. */
static void compile_cuda(const struct family *f, struct test_case *c)
{
	for (int v = 0; v < VAR_COUNT; v++) {
		struct text command = {0};
		if (*c->error || !c->variant[v].built || !variant_is_cuda(v))
			continue;
		text_add(&command, "sh %s %s/%s >%s/cuda.log 2>&1", f->script, f->folder,
			c->variant[v].symbol, f->folder);
		if (command.failed || system(command.s) != 0) {
			char log[4096];
			snprintf(log, sizeof log, "%s/cuda.log", f->folder);
			quote_log(c, log);
		}
		text_free(&command);
	}
}

static void set_up(struct family *f)
{
	char path[4096];
	mkdir(f->folder, 0777);
	for (const char *const *old = (const char *const[]){"all.so", "quick.so", NULL}; *old;
		old++) {
		snprintf(path, sizeof path, "%s/%s", f->folder, *old);
		remove(path); /* what an earlier run left is not this one's */
	}
	for (int i = 0; i < f->ncase; i++)
		if (case_parse(&f->test[i]))
			case_build(&f->test[i], i, f->folder, f->script != NULL);
	if (f->fast)
		compile_quick(f);
	if (!compile_all(f)) {
		compile_each(f);
		compile_all(f);
	}
	for (int i = 0; i < f->ncase && f->script; i++)
		compile_cuda(f, &f->test[i]);
	snprintf(path, sizeof path, "%s/all.so", f->folder);
	f->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!f->object)
		print_message("%s\n", dlerror());
	snprintf(path, sizeof path, "%s/quick.so", f->folder);
	f->quick_object = f->fast ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void tear_down(struct family *f)
{
	for (int i = 0; i < f->ncase; i++)
		case_free(&f->test[i]);
	if (f->object)
		dlclose(f->object);
	if (f->quick_object)
		dlclose(f->quick_object);
	free(f->quick);
}

struct one {
	struct family *family;
	struct test_case *test;
};

/* What the faster compiler fails counts only where the other one fails as well: the fault may be
 * its own. It stays open, steps refer to it. */
static bool check_again(struct family *f, int i, char *why, size_t size)
{
	char name[40], path[4096];
	for (int v = 0; v < VAR_COUNT; v++) {
		stint_free(f->test[i].variant[v].step);
		f->test[i].variant[v].step = NULL;
	}
	f->quick[i] = false;
	print_message("by %s: %s\n", f->fast, why);
	snprintf(name, sizeof name, "again%d.so", i);
	snprintf(path, sizeof path, "%s/%s", f->folder, name);
	bool ok = compile_some(f, i, i + 1, false, name);
	void *object = ok ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	return object && case_check(&f->test[i], object, f->folder, why, size);
}

static void test_example(void **state)
{
	const struct one *one = *state;
	char why[1000] = "";
	if (*one->test->error)
		fail_msg("%s", one->test->error);
	struct family *f = one->family;
	const int i = (int)(one->test - f->test);
	void *object = f->quick[i] ? f->quick_object : f->object;
	if (!object)
		fail_msg("no shared object");
	if (!case_check(one->test, object, f->folder, why, sizeof why) &&
		!(f->quick[i] && check_again(f, i, why, sizeof why)))
		fail_msg("%s", why);
}

int main(int argc, char **argv)
{
	const struct op_table *t = ops_table();
	const int k = argc >= 4 && argc <= 6 ? atoi(argv[1]) : -1;
	const bool first = argc == 6 && !strcmp(argv[5], "first");
	if (k < 0 || k >= t->nfamily || (argc == 6 && !first && strcmp(argv[5], "all") != 0)) {
		fprintf(stderr,
			"usage: test_ops FAMILY FOLDER RUNTIME [OPERATOR | SCRIPT first|all]\n");
		return 2;
	}
	struct family f = {.folder = argv[2],
		.runtime = argv[3],
		.script = argc == 6 ? argv[4] : NULL,
		.only = argc == 5 ? argv[4] : NULL,
		.first = first};
	const char *fast = getenv("STINT_TEST_CC");
	f.fast = fast && *fast && !f.script ? fast : NULL;
	f.ncase = add_cases(&f, t->family[k]);
	f.test = calloc((size_t)f.ncase + 1, sizeof *f.test);
	f.quick = calloc((size_t)f.ncase + 1, sizeof *f.quick);
	struct CMUnitTest *tests = calloc((size_t)f.ncase + 1, sizeof *tests);
	struct one *ones = calloc((size_t)f.ncase + 1, sizeof *ones);
	if (!f.test || !f.quick || !tests || !ones)
		return 1;
	add_cases(&f, t->family[k]);
	set_up(&f);
	for (int i = 0; i < f.ncase; i++) {
		ones[i] = (struct one){&f, &f.test[i]};
		tests[i] = (struct CMUnitTest){f.test[i].name, test_example, NULL, NULL, &ones[i]};
	}
	int failed = _cmocka_run_group_tests("operators", tests, (size_t)f.ncase, NULL, NULL);
	tear_down(&f);
	free(ones);
	free(tests);
	free(f.test);
	return failed != 0 || f.ncase == 0;
}
