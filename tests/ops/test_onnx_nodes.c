/* test_onnx_nodes DATA FOLDER RUNTIME LEAST [KNOWN [RESULTS]]: ONNX's own node tests. Every model
 * under DATA goes through the whole pipeline, from import to compiled code, for evaluation (the
 * ones about training: for training) in single precision, once with library calls and once in plain
 * C; it is run on the inputs that come with it, and its outputs compared with those that come with
 * it.
 *
 * A model that cannot be built is skipped, with the reason. One that gives something else, or
 * without a file that says what it should give, is a failure, unless the file KNOWN says why ("NAME
 * REASON" by lines, # for comments); fewer than LEAST that pass are a failure too. RESULTS gets a
 * line for each test: name, operator, what came of it, reason, parted by tabs. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/ops/onnx_case.h"

/* Models in one shared object. */
enum { CHUNK = 100 };

struct set {
	int n;
	struct onnx_case *test;
	const char *folder, *runtime;
	char *known; /* the text of the file; NULL */
	int passed[ONNX_TARGETS], folded, failed, expected, skipped;
};

/* --- Compiling and running --- */

static bool compile(const struct set *s, int first, int last, const char *object)
{
	struct text command = {0};
	bool any = false;
	text_add(&command, VALUES_CC " %s -O0 -I%s -shared -o %s", STEP_CFLAGS, s->runtime, object);
	for (int i = first; i < last; i++)
		for (int t = 0; t < ONNX_TARGETS; t++) {
			const struct onnx_variant *v = &s->test[i].variant[t];
			if (!v->built || v->same)
				continue;
			text_add(&command, " %s/%s/step.c", s->folder, v->symbol);
			any = true;
		}
	text_puts(&command, " -lm");
	bool ok = !any || (!command.failed && system(command.s) == 0);
	text_free(&command);
	return ok;
}

static void run_case(struct onnx_case *c, void *object)
{
	for (int t = 0; t < ONNX_TARGETS; t++) {
		struct onnx_variant *v = &c->variant[t];
		if (v->same)
			v->passed = c->variant[0].passed;
		else if (v->built)
			onnx_case_run(c, (enum onnx_target)t, object);
	}
}

static bool run_chunk(const struct set *s, int first, int last)
{
	char path[4600];
	snprintf(path, sizeof path, "%s/chunk%d.so", s->folder, first / CHUNK);
	remove(path);
	if (!compile(s, first, last, path))
		return false;
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* NULL where nothing was built */
	for (int i = first; i < last; i++)
		if (s->test[i].variant[0].built)
			run_case(&s->test[i], object);
	return true;
}

/* --- Results --- */

/* Why this test may fail, up to the line's end; NULL: it may not. */
static const char *known_reason(const struct set *s, const char *name)
{
	size_t n = strlen(name);
	for (const char *line = s->known; line && *line; line += strspn(line, "\n")) {
		if (!strncmp(line, name, n) && line[n] == ' ')
			return line + n + 1;
		line += strcspn(line, "\n");
	}
	return NULL;
}

static const char *count(struct set *s, struct onnx_case *c)
{
	const struct onnx_variant *v = c->variant;
	const char *reason = known_reason(s, c->name);
	for (int t = 0; t < ONNX_TARGETS; t++)
		s->passed[t] += v[t].passed;
	if (!v[0].built) {
		s->skipped++;
		return "skipped";
	}
	if (v[0].passed && v[1].passed) {
		s->folded += c->folded;
		if (!reason || !strncmp(reason, "old data: ", 10))
			return c->folded ? "folded" : "passed";
		snprintf(c->why, sizeof c->why, "passes, against what is said of it");
	} else if (reason) {
		s->expected++;
		snprintf(c->why, sizeof c->why, "%.*s", (int)strcspn(reason, "\n"), reason);
		return "known";
	}
	s->failed++;
	return "FAILED";
}

/* The operator that a test is about: its first node that is no constant; a test whose node is
 * spelled out, as the one it is spelled out from. */
static const char *operator_of(const struct set *s, const struct onnx_case *c)
{
	const char *end = strstr(c->name, "_expanded");
	size_t n = end ? (size_t)(end - c->name) : 0;
	for (int i = 0; n && i < s->n; i++)
		if (strlen(s->test[i].name) == n && !strncmp(s->test[i].name, c->name, n))
			return operator_of(s, &s->test[i]);
	for (int i = 0; i < c->model.nop; i++)
		if (strcmp(c->model.op[i], "Constant") != 0)
			return c->model.op[i];
	return c->model.nop ? "Constant" : "-";
}

static bool report(struct set *s, const char *path, const char *least)
{
	FILE *f = path ? fopen(path, "w") : NULL;
	for (int i = 0; i < s->n; i++) {
		struct onnx_case *c = &s->test[i];
		const char *result = count(s, c);
		printf("%s %s%s%s\n", result, c->name, *c->why ? ": " : "", c->why);
		if (f)
			fprintf(f, "%s\t%s\t%s\t%s\n", c->name, operator_of(s, c), result, c->why);
	}
	printf("%d tests: %d passed with library calls, %d in plain C (at least %s must; %d of "
	       "them folded when compiling), %d failed, %d known to, %d skipped\n",
		s->n, s->passed[0], s->passed[1], least, s->folded, s->failed, s->expected,
		s->skipped);
	bool written = !path || f;
	if (f)
		written = fclose(f) == 0;
	return written && !s->failed && s->passed[0] >= atoi(least) && s->passed[1] >= atoi(least);
}

/* --- The set --- */

static int wanted(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static bool build(struct set *s, const char *data)
{
	struct dirent **entry;
	char path[4600];
	s->n = scandir(data, &entry, wanted, alphasort);
	if (s->n <= 0)
		return false;
	s->test = calloc((size_t)s->n, sizeof *s->test);
	mkdir(s->folder, 0777);
	for (int i = 0; i < s->n; i++) {
		if (s->test) {
			struct onnx_case *c = &s->test[i];
			snprintf(c->name, sizeof c->name, "%.199s", entry[i]->d_name);
			snprintf(path, sizeof path, "%s/%s", data, entry[i]->d_name);
			onnx_case_build(c, i, path, s->folder);
		}
		free(entry[i]);
	}
	free(entry);
	return s->test != NULL;
}

static bool read_known(struct set *s, struct arena *a, const char *path)
{
	struct diag d = {0};
	size_t len;
	return !path || file_read(a, path, &s->known, &len, &d) == ST_OK;
}

int main(int argc, char **argv)
{
	struct set s = {0};
	struct arena *a = arena_new();
	bool ok = a && argc >= 5 && argc <= 7;
	if (ok) {
		s.folder = argv[2];
		s.runtime = argv[3];
		ok = read_known(&s, a, argc > 5 && *argv[5] ? argv[5] : NULL) && build(&s, argv[1]);
	}
	if (!ok) {
		fprintf(stderr,
			"usage: test_onnx_nodes DATA FOLDER RUNTIME LEAST [KNOWN [RESULTS]]\n"
			"DATA comes with Debian's libonnx-testdata: tools/setup.sh tests\n");
		return 2;
	}
	for (int i = 0; ok && i < s.n; i += CHUNK)
		ok = run_chunk(&s, i, i + CHUNK < s.n ? i + CHUNK : s.n);
	ok = report(&s, argc > 6 ? argv[6] : NULL, argv[4]) && ok;
	for (int i = 0; i < s.n; i++)
		onnx_case_free(&s.test[i]);
	free(s.test);
	arena_free(a);
	return !ok;
}
