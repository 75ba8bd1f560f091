/* Files with a million of something: built, or refused, within 256 MiB beyond the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/import/operators.h"

enum { MILLION = 1000000 };

/* --- Files written by hand: as messages they would take a gigabyte --- */

static void put_number(struct text *t, size_t v)
{
	for (; v > 127; v >>= 7)
		text_write(t, (const char[]){(char)(v | 128)}, 1);
	text_write(t, (const char[]){(char)v}, 1);
}

static void put_field(struct text *t, int field, const void *data, size_t len)
{
	put_number(t, (size_t)field << 3 | 2);
	put_number(t, len);
	text_write(t, data, len);
}

static void put_text(struct text *t, int field, const char *s)
{
	put_field(t, field, s, strlen(s));
}

static void put_node(struct text *graph, const char *op, const char *in, const char *out)
{
	struct text node = {0};
	put_text(&node, 1, in);
	put_text(&node, 2, out);
	put_text(&node, 4, op);
	put_field(graph, 1, node.s, node.len);
	text_free(&node);
}

/* Around the nodes: an input "v0" of 2 by 4, an output, opset 17. */
static void finish(struct model_test *t, struct text *graph, const char *output)
{
	static const uint8_t type[] = {
		0x0a, 0x0c, 0x08, 0x01, 0x12, 0x08, 0x0a, 0x02, 0x08, 0x02, 0x0a, 0x02, 0x08, 0x04};
	struct text value = {0}, model = {0};
	put_text(&value, 1, "v0");
	put_field(&value, 2, type, sizeof type);
	put_field(graph, 11, value.s, value.len);
	text_free(&value);
	put_text(&value, 1, output);
	put_field(graph, 12, value.s, value.len);
	text_free(&value);
	put_field(&model, 7, graph->s, graph->len);
	put_field(&model, 8, "\x10\x11", 2);
	assert_false(model.failed || graph->failed);
	test_write(t, "model.onnx", model.s, model.len);
	text_free(&model);
	text_free(graph);
}

/* --- Importing with little memory --- */

static size_t pages(void)
{
	size_t n = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu", &n), 1);
	fclose(f);
	return n;
}

/* In a process of its own, with address space for the file and `mib` more. Its messages come back
 * in t->said. */
static enum status import_within(struct model_test *t, size_t mib)
{
	int pipes[2], code;
	char *bytes;
	size_t len, have = pages() * (size_t)sysconf(_SC_PAGESIZE);
	struct diag quiet = {0};
	const char *path = test_path(t, "model.onnx");
	assert_int_equal(file_read(t->arena, path, &bytes, &len, &quiet), ST_OK);
	have += len; /* this copy of it */
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
#ifdef __SANITIZE_ADDRESS__
		(void)mib; /* its shadow takes terabytes of addresses */
#else
		struct rlimit limit = {have + len + (mib << 20), have + len + (mib << 20)};
		setrlimit(RLIMIT_AS, &limit);
#endif
		enum status st = test_import(t, path);
		const char *said = t->said.s ? t->said.s : "";
		size_t n = strlen(said) < 60000 ? strlen(said) : 60000; /* a pipe holds 64 KiB */
		_exit(write(pipes[1], said, n) == (ssize_t)n ? (int)st : 99);
	}
	close(pipes[1]);
	assert_int_equal(waitpid(child, &code, 0), child);
	char *said = arena_alloc(t->arena, 65536, 1);
	ssize_t n = read(pipes[0], said, 65535);
	close(pipes[0]);
	text_free(&t->said);
	text_write(&t->said, said, n > 0 ? (size_t)n : 0);
	assert_true(WIFEXITED(code));
	return (enum status)WEXITSTATUS(code);
}

static void refused(struct model_test *t, const char *text)
{
	assert_int_equal(import_within(t, 256), ST_INVALID);
	test_said(t, text);
}

static const char *nth(int n, char buf[static 16])
{
	snprintf(buf, 16, "v%d", n);
	return buf;
}

/* --- The files --- */

static void empty_nodes(void **state)
{
	struct model_test *t = *state;
	struct text graph = {0};
	for (int i = 0; i < MILLION; i++)
		put_field(&graph, 1, "", 0);
	finish(t, &graph, "v0");
	refused(t, "operator '' is not supported at opset 17; used 1000000 times");
}

static void unknown_operators(void **state)
{
	struct model_test *t = *state;
	struct text graph = {0};
	char op[16], a[16], b[16];
	for (int i = 0; i < MILLION; i++) {
		snprintf(op, sizeof op, "Op%d", i);
		put_node(&graph, op, nth(i, a), nth(i + 1, b));
	}
	finish(t, &graph, "v1000000");
	refused(t, "operator Op99 is not supported");
}

static void makers_missing(void **state)
{
	struct model_test *t = *state;
	struct text graph = {0};
	char a[16], b[16];
	for (int i = 0; i < MILLION; i++)
		put_node(&graph, "Relu", nth(i + 2 * MILLION, a), nth(i + 1, b));
	finish(t, &graph, "v1000000");
	refused(t, "reads 'v2000099', which nothing makes");
}

static void one_cycle(void **state)
{
	struct model_test *t = *state;
	struct text graph = {0};
	char a[16], b[16];
	for (int i = 1; i <= MILLION; i++)
		put_node(&graph, "Relu", nth(i < MILLION ? i + 1 : 1, a), nth(i, b));
	finish(t, &graph, "v1");
	refused(t, "lies on a cycle through 'v");
}

static void one_name(void **state)
{
	struct model_test *t = *state;
	struct text graph = {0};
	for (int i = 0; i < MILLION; i++)
		put_node(&graph, "Relu", "v0", "y");
	finish(t, &graph, "y");
	refused(t, "makes 'y', which is made already");
}

/* Backwards in the file. */
static void a_long_chain(void **state)
{
	struct model_test *t = *state;
	struct text graph = {0};
	char a[16], b[16];
	for (int i = MILLION; i > 0; i--)
		put_node(&graph, "Identity", nth(i - 1, a), nth(i, b));
	finish(t, &graph, "v1000000");
	assert_int_equal(test_import(t, test_path(t, "model.onnx")), ST_OK);
	assert_int_equal(t->g->nnode, MILLION);
	assert_ptr_equal(tensor_storage(t->g->output[0]), t->g->input[0]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {
		TEST(empty_nodes),
		TEST(unknown_operators),
		TEST(makers_missing),
		TEST(one_cycle),
		TEST(one_name),
		TEST(a_long_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
