/* --batch where the file fixes another one: the graph is that of the new size, or the node is named
 * that depends on the old one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/import/operators.h"

static void input(struct model_test *t, const char *shape)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), shape);
	model_output(t, "y");
}

static void has_shape(const struct model_test *t, const char *name, const char *want)
{
	char text[200];
	assert_string_equal(tensor_shape_text(test_tensor(t, name), text), want);
}

/* [4,2,4] to [4,8] to [4*2,4] to [8,1,4]: of 4 and 8 some count samples. */
static void in_shapes(void **state)
{
	struct model_test *t = *state;
	input(t, "4,2,4");
	model_numbers(t, "flat", "4,8");
	model_numbers(t, "pairs", "8,4");
	model_numbers(t, "apart", "8,1,4");
	model_node(t, "Reshape", "a", "x,flat", "p");
	model_node(t, "Reshape", "b", "p,pairs", "q");
	model_node(t, "Reshape", "c", "q,apart", "r");
	model_node(t, "Relu", "d", "r", "y");
	t->options.batch = 5;
	model_accepted(t);
	test_said(t, "x (input): the batch of 4 that the exporter fixed is free");
	has_shape(t, "x", "[5, 2, 4]");
	has_shape(t, "p", "[5, 8]");
	has_shape(t, "q", "[10, 4]");
	has_shape(t, "y", "[10, 1, 4]");
	t->options.batch = 1;
	model_accepted(t);
	has_shape(t, "y", "[2, 1, 4]");
	t->options.batch = 0;
	model_accepted(t);
	has_shape(t, "y", "[8, 1, 4]");
	t->options.batch = 4;
	model_accepted(t);
	has_shape(t, "y", "[8, 1, 4]");
	assert_null(strstr(t->said.s ? t->said.s : "", "that the exporter fixed"));
}

/* A node that nobody reads, and which cannot be built again as it is: no error. */
static void beside(void **state)
{
	struct model_test *t = *state;
	static int64_t kernel[] = {2, 2};
	input(t, "1,1,2,2");
	model_input(t, "places", TENSOR_TYPE(INT64), "1,1,2,2");
	Onnx__AttributeProto *a = model_attribute(t,
		model_node(t, "MaxUnpool", "idle", "x,places", "n"), "kernel_shape",
		ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
	a->ints = kernel;
	a->n_ints = 2;
	model_node(t, "Relu", "a", "x", "y");
	t->options.batch = 2;
	model_accepted(t);
	has_shape(t, "y", "[2, 1, 2, 2]");
	assert_int_equal(t->diag.errors, 0);
}

/* With one sample any axis of one element may be the one: here the second of three. */
static void of_one_sample(void **state)
{
	struct model_test *t = *state;
	input(t, "1,6,3");
	model_numbers(t, "steps", "6,3");
	model_numbers(t, "back", "6,1,3");
	model_weights(t, "w", "3,3");
	Onnx__NodeProto *n = model_node(t, "Transpose", "a", "x", "p");
	Onnx__AttributeProto *perm = model_attribute(t, n, "perm", ATTRIBUTE_TYPE(INTS));
	static int64_t order[] = {1, 0, 2};
	perm->ints = order;
	perm->n_ints = 3;
	model_node(t, "Reshape", "b", "p,steps", "q");
	model_node(t, "MatMul", "c", "q,w", "r");
	model_node(t, "Reshape", "d", "r,back", "s");
	model_node(t, "Relu", "e", "s", "y");
	t->options.batch = 7;
	model_accepted(t);
	has_shape(t, "q", "[42, 3]");
	has_shape(t, "y", "[6, 7, 3]");
}

/* Rows of all samples, taken apart again: the first axis is theirs, not the second. */
static void of_one_sample_first(void **state)
{
	struct model_test *t = *state;
	input(t, "1,6,3");
	model_numbers(t, "rows", "-1,3");
	model_numbers(t, "back", "1,6,3");
	model_node(t, "Reshape", "a", "x,rows", "p");
	model_node(t, "Reshape", "b", "p,back", "y");
	t->options.batch = 7;
	model_accepted(t);
	has_shape(t, "p", "[42, 3]");
	has_shape(t, "y", "[7, 6, 3]");
}

/* What is made of no samples, for each of them: rows of a table, a token. */
static void of_no_samples(void **state)
{
	struct model_test *t = *state;
	input(t, "3,5,2");
	model_weights(t, "table", "9,2");
	model_weights(t, "token", "1,1,2");
	model_numbers(t, "places", "1,2,3,4,5,1,2,3,4,5,1,2,3,4,5");
	model_numbers(t, "square", "3,5");
	model_numbers(t, "each", "3,1,2");
	model_node(t, "Reshape", "a", "places,square", "index");
	model_node(t, "Gather", "b", "table,index", "rows");
	model_node(t, "Add", "c", "x,rows", "p");
	model_node(t, "Expand", "d", "token,each", "tokens");
	Onnx__NodeProto *n = model_node(t, "Concat", "e", "tokens,p", "y");
	model_int(t, n, "axis", 1);
	t->options.batch = 4;
	model_accepted(t);
	has_shape(t, "rows", "[4, 5, 2]");
	has_shape(t, "y", "[4, 6, 2]");
}

static void depends(struct model_test *t, const char *node)
{
	t->options.batch = 8;
	model_refused(
		t, ST_INVALID, "x (input): axis 0 is fixed at 4, but --batch says 8, and node ");
	test_said(t, node);
	t->options.batch = 4;
	model_accepted(t);
}

/* Other numbers for each sample. */
static void numbered(void **state)
{
	struct model_test *t = *state;
	input(t, "4,3");
	model_numbers(t, "wide", "4,1");
	model_numbers(t, "list", "0,1,2,3");
	Onnx__NodeProto *n = model_node(t, "Cast", "real", "list", "f");
	model_int(t, n, "to", 1);
	model_node(t, "Reshape", "a", "f,wide", "g");
	model_node(t, "Add", "number", "x,g", "y");
	depends(t, "'number' (Add) depends on it");
}

static void together(void **state)
{
	struct model_test *t = *state;
	input(t, "4,3");
	model_node(t, "Transpose", "turn", "x", "p");
	model_node(t, "MatMul", "against", "x,p", "y");
	depends(t, "'against' (MatMul) depends on it");
}

static void halves(void **state)
{
	struct model_test *t = *state;
	input(t, "4,3");
	model_numbers(t, "half", "2,6");
	model_node(t, "Reshape", "pair", "x,half", "y");
	depends(t, "'pair' (Reshape) depends on it");
}

/* --micro-batch helps where the batch is a multiple. */
static void what_helps(void **state)
{
	struct model_test *t = *state;
	together(state);
	t->options.batch = 12;
	model_refused(t, ST_INVALID, "--micro-batch 4 takes the batch in parts of so many");
	t->options.batch = 6;
	model_refused(t, ST_INVALID, "export the model with a dynamic batch axis");
	t->options.batch = 8;
	t->options.read = IMPORT_READ_ANY;
	model_refused(t, ST_INVALID, "export the model with a dynamic batch axis");
}

static void two_sizes(void **state)
{
	struct model_test *t = *state;
	input(t, "4,3");
	model_input(t, "z", TENSOR_TYPE(FLOAT), "2,3");
	model_node(t, "Relu", "a", "x", "y");
	model_node(t, "Relu", "b", "z", "v");
	model_output(t, "v");
	t->options.batch = 8;
	model_refused(t, ST_INVALID, "z (input): axis 0 is fixed at 2, that of 'x' at 4");
}

static void too_many(void **state)
{
	struct model_test *t = *state;
	input(t, "4,65536,1048576");
	model_node(t, "Relu", "a", "x", "y");
	t->options.batch = 1 << 30;
	model_refused(t, ST_INVALID, "element count overflows at axis 0");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(in_shapes), T(beside), T(of_one_sample),
		T(of_one_sample_first), T(of_no_samples), T(numbered), T(together), T(halves),
		T(what_helps), T(two_sizes), T(too_many)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
