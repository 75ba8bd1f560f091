/* Results of ONNX's own node tests, as tests/ops/test_onnx_nodes.c writes them: a line for each
 * test: name, operator, what came of it, reason, parted by tabs. */
#ifndef STINT_TOOLS_ONNX_TESTS_H
#define STINT_TOOLS_ONNX_TESTS_H

#include <stdbool.h>

struct onnx_test {
	const char *name, *op, *result, *reason;
	bool passed;
};

struct onnx_tests {
	int n;
	struct onnx_test *test;
	char *text;
};

/* false: the file cannot be read. */
bool onnx_tests_read(const char *path, struct onnx_tests *out);
void onnx_tests_free(struct onnx_tests *t);
/* Of the tests of an operator, how many there are and how many passed. */
void onnx_tests_count(const struct onnx_tests *t, const char *op, int *passed, int *all);
/* The section about what did not pass, to stdout. */
void onnx_tests_print(const struct onnx_tests *t);

#endif
