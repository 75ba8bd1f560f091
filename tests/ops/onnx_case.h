/* One of ONNX's node tests: a folder with a model, inputs and what must come out. */
#ifndef STINT_TESTS_ONNX_CASE_H
#define STINT_TESTS_ONNX_CASE_H

#include "tests/ops/onnx_read.h"
#include "tests/ops/ops_test.h"

/* Which inputs are known at compile time: the tests give as inputs what models hold as constants
 * (shapes, axes, pads). The first way that builds is taken. */
enum onnx_ways { KNOWN_NONE, KNOWN_WHOLE, KNOWN_ALL_BUT_FIRST, KNOWN_ALL, KNOWN_WAYS };

enum onnx_target { ONNX_LIBRARY, ONNX_PORTABLE, ONNX_TARGETS };

struct onnx_variant {
	bool built, same; /* same: nothing in the graph calls a library; the first stands for it */
	bool passed;
	char symbol[40]; /* of the model, and the folder of its source */
	struct graph *graph;
	struct graph_problem problem;
};

struct onnx_case {
	char name[200];
	const char *dir; /* the test's folder */
	char why[600];   /* not built, or not passed; "" */
	struct arena *arena;
	struct onnx_model model;
	struct onnx_tensor *in, *want; /* in[i].type NULL: no such file */
	bool folded; /* the compiler computed all outputs: it did not take other inputs */
	struct onnx_variant variant[ONNX_TARGETS];
};

/* Read, import, lower, plan, and write the sources into `folder`; sets variant[].built or why.
 * `index` makes the symbols. */
void onnx_case_build(struct onnx_case *c, int index, const char *dir, const char *folder);
/* Run a variant found in the shared object `object` and compare what comes out; sets passed or why.
 */
void onnx_case_run(struct onnx_case *c, enum onnx_target target, void *object);
void onnx_case_free(struct onnx_case *c);

#endif
