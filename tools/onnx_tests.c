#include "tools/onnx_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Reading --- */

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *s = NULL;
	long size = -1;
	if (f && fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	if (size >= 0 && fseek(f, 0, SEEK_SET) == 0)
		s = calloc((size_t)size + 1, 1);
	if (s && fread(s, 1, (size_t)size, f) != (size_t)size) {
		free(s);
		s = NULL;
	}
	if (f)
		fclose(f);
	return s;
}

/* The text up to `end`, which is cut off; *s moves behind it. */
static char *cut(char **s, char end)
{
	char *start = *s, *at = strchr(start, end);
	*s = at ? at + 1 : start + strlen(start);
	if (at)
		*at = 0;
	return start;
}

static bool has_passed(const char *result)
{
	return !strcmp(result, "passed") || !strcmp(result, "folded");
}

bool onnx_tests_read(const char *path, struct onnx_tests *out)
{
	size_t lines = 0;
	*out = (struct onnx_tests){.text = read_text(path)};
	for (const char *s = out->text; s && *s; s++)
		lines += *s == '\n';
	out->test = out->text ? calloc(lines + 1, sizeof *out->test) : NULL;
	for (char *s = out->text; out->test && *s;) {
		char *line = cut(&s, '\n');
		struct onnx_test *t = &out->test[out->n++];
		t->name = cut(&line, '\t');
		t->op = cut(&line, '\t');
		t->result = cut(&line, '\t');
		t->reason = line;
		t->passed = has_passed(t->result);
	}
	return out->test != NULL;
}

void onnx_tests_free(struct onnx_tests *t)
{
	free(t->test);
	free(t->text);
}

void onnx_tests_count(const struct onnx_tests *t, const char *op, int *passed, int *all)
{
	*passed = *all = 0;
	for (int i = 0; i < t->n; i++)
		if (!strcmp(t->test[i].op, op)) {
			++*all;
			*passed += t->test[i].passed;
		}
}

/* --- What did not pass --- */

enum group { OPERATORS, ELEMENTS, SEQUENCES, DIFFERENT, OTHER, GROUPS };

struct line {
	enum group group;
	char what[400];
	int count;
};

/* The word behind `before` in s, up to `end`; false: it is not there. */
static bool word(const char *s, const char *before, const char *end, char *out, size_t size)
{
	const char *at = strstr(s, before);
	if (!at)
		return false;
	at += strlen(before);
	snprintf(out, size, "%.*s", (int)strcspn(at, end), at);
	return true;
}

/* TensorProto.DataType, those that a Cast may name and stint has not. */
static const char *type_name(int type)
{
	static const char *const name[] = {[8] = "string",
		[14] = "complex64",
		[15] = "complex128",
		[17] = "float8e4m3fn",
		[18] = "float8e4m3fnuz",
		[19] = "float8e5m2",
		[20] = "float8e5m2fnuz",
		[21] = "uint4",
		[22] = "int4",
		[23] = "float4e2m1"};
	const int n = (int)(sizeof name / sizeof *name);
	return type >= 0 && type < n && name[type] ? name[type] : "unknown";
}

static struct line line_of(const struct onnx_test *t)
{
	struct line l = {.count = 1};
	char type[40];
	l.group = DIFFERENT;
	snprintf(l.what, sizeof l.what, "%s: %s", t->op, t->reason);
	if (strcmp(t->result, "skipped") != 0)
		return l;
	l.group = OPERATORS;
	if (strstr(t->reason, " is not supported at opset ") &&
		word(t->reason, "operator ", " ", l.what, sizeof l.what))
		return l;
	l.group = ELEMENTS;
	if (word(t->reason, "has elements of type ", ",", l.what, sizeof l.what))
		return l;
	if (word(t->reason, "casting to element type ", " ", type, sizeof type)) {
		snprintf(l.what, sizeof l.what, "%s", type_name(atoi(type)));
		return l;
	}
	l.group = SEQUENCES;
	if (strstr(t->reason, "is no tensor")) {
		snprintf(l.what, sizeof l.what, "%s", t->op);
		return l;
	}
	l.group = OTHER;
	snprintf(l.what, sizeof l.what, "%s", t->reason);
	return l;
}

static int by_group(const void *x, const void *y)
{
	const struct line *a = x, *b = y;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->count != b->count ? (a->count > b->count ? -1 : 1) : strcmp(a->what, b->what);
}

static int add_line(struct line *list, int n, const struct line *l)
{
	for (int i = 0; i < n; i++)
		if (list[i].group == l->group && !strcmp(list[i].what, l->what)) {
			list[i].count++;
			return n;
		}
	list[n] = *l;
	return n + 1;
}

static void print_groups(const struct line *list, int n)
{
	static const char *const title[GROUPS] = {"Operators that stint does not have",
		"Element types that stint does not have",
		"Sequences and optional values as inputs or outputs of the model", "Other results",
		"What is not known when compiling, and the like"};
	for (int i = 0; i < n; i++) {
		if (i == 0 || list[i].group != list[i - 1].group) {
			int sum = 0;
			for (int k = i; k < n && list[k].group == list[i].group; k++)
				sum += list[k].count;
			printf("\n**%s** (%d):\n\n", title[list[i].group], sum);
		}
		printf("- %s (%d)\n", list[i].what, list[i].count);
	}
}

void onnx_tests_print(const struct onnx_tests *t)
{
	struct line *list = calloc((size_t)t->n + 1, sizeof *list);
	int n = 0, passed = 0, folded = 0;
	for (int i = 0; list && i < t->n; i++) {
		passed += t->test[i].passed;
		folded += !strcmp(t->test[i].result, "folded");
		if (t->test[i].passed)
			continue;
		const struct line l = line_of(&t->test[i]);
		n = add_line(list, n, &l);
	}
	if (n)
		qsort(list, (size_t)n, sizeof *list, by_group);
	printf("\n## ONNX's own tests\n\n"
	       "Of the %d node tests of onnx 1.16.2, %d pass, with library calls and in plain C: "
	       "the "
	       "model goes\nthrough the whole pipeline, and the compiled code's outputs are those "
	       "that come with the test (integers\nexactly, reals to 0.001). The column above has "
	       "them by operator; a test of an operator that is spelled\nout as a function "
	       "(`_expanded`) counts for that operator. In %d of them all inputs are settings, "
	       "and\n"
	       "the compiler computes the outputs. Opsets 1 to 6 are let through for these tests. "
	       "`tests/ops/onnx_sets.sh`\nrepeats it; `tests/ops/onnx-results.txt` has each test. "
	       "What does not pass:\n",
		t->n, passed, folded);
	if (list)
		print_groups(list, n);
	free(list);
}
