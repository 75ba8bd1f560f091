/* What an exporter has brought into another shape is trained, or named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "tests/import/notes.h"
#include "tests/import/operators.h"

static const float some[] = {.3F, -.2F, .7F, -.1F, .45F, .9F, -.6F, .15F, -.35F, .8F, -.05F, .55F,
	.21F, -.77F, .61F, .12F};

static void numbers(struct model_test *t, const char *name, const char *shape, size_t n)
{
	model_raw(model_tensor(t, name, TENSOR_TYPE(FLOAT), shape), some, n * sizeof *some);
}

/* A convolution of x [N,2,3,3], what scales its 4 channels, and what is added to all of it. */
static void scaled(struct model_test *t, const char *shape)
{
	t->model.producer_name = "pytorch";
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,2,2,2");
	numbers(t, "onnx::Mul_1", "1,2,1,1", 2);
	numbers(t, "conv.weight", "4,2,1,1", 8);
	numbers(t, "onnx::Mul_40", shape, 4);
	numbers(t, "onnx::Add_41", "1,4,2,2", 16);
	model_node(t, "Mul", "mean", "x,onnx::Mul_1", "xm");
	model_node(t, "Conv", "c", "xm,conv.weight", "a");
	model_node(t, "Mul", "gamma", "a,onnx::Mul_40", "b");
	model_node(t, "Add", "position", "b,onnx::Add_41", "y");
	model_output(t, "y");
}

static void of_channels(void **state)
{
	struct model_test *t = *state;
	scaled(t, "1,4,1,1");
	model_accepted(t);
	notes_reads(t, "gamma", 1, "onnx::Mul_40");
	notes_not_trained(t, "onnx::Mul_1", "made by the exporter"); /* the data's own */
	notes_not_trained(t, "onnx::Add_41", "made by the exporter");
	test_said(
		t, "may have made them of parameters: 'onnx::Mul_1', 'onnx::Add_41' | --train '*'");
	t->options.train_pattern = (const char *const[]){"*", NULL};
	model_accepted(t);
	notes_reads(t, "position", 1, "onnx::Add_41");
}

static void bias(void **state)
{
	struct model_test *t = *state;
	t->model.producer_name = "pytorch";
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	numbers(t, "onnx::MatMul_1", "4,3", 12);
	numbers(t, "onnx::Add_2", "3", 3);
	model_number(t, "unused", 1);
	model_node(t, "MatMul", "m", "x,onnx::MatMul_1", "a");
	model_node(t, "Add", "b", "a,onnx::Add_2", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "b", 1, "onnx::Add_2");
	assert_int_equal(t->diag.warnings, 0);
}

/* A layer of the older exporter's, whose bias has the module's name. */
static void layer(struct model_test *t, const char *node, const char *weights, const char *bias)
{
	const bool conv = !strcmp(node, "Conv");
	char in[40];
	t->model.producer_name = "pytorch";
	model_input(t, "x", TENSOR_TYPE(FLOAT), conv ? "2,4,2,2" : "2,4");
	numbers(t, weights, conv ? "3,4,1,1" : "4,3", 12);
	numbers(t, bias, "3", 3);
	snprintf(in, sizeof in, "x,%s,%s", weights, bias);
	model_node(t, node, "layer", in, "y");
	model_output(t, "y");
	model_accepted(t);
}

/* weight_norm: what the exporter computed of the parameters is trained, and said to be. */
static void computed_weights(void **state)
{
	struct model_test *t = *state;
	layer(t, "Gemm", "onnx::Gemm_18", "0.bias");
	test_said(t,
		"onnx::Gemm_18 (initializer): seems to be computed from parameters by the "
		"exporter: "
		"it is trained in their place | export with dynamo=True, optimize=False, or with "
		"do_constant_folding=False, which keep parameters");
}

static void computed_kernel(void **state)
{
	struct model_test *t = *state;
	layer(t, "Conv", "onnx::Conv_18", "0.bias");
	test_said(t, "onnx::Conv_18 (initializer): seems to be computed from parameters by the "
		     "exporter");
}

static void kept_weights(void **state)
{
	struct model_test *t = *state;
	layer(t, "Conv", "0.weight", "0.bias");
	assert_int_equal(t->diag.warnings, 0);
}

/* With the bias: a batch norm is in them. */
static void weights_with_bias(void **state)
{
	struct model_test *t = *state;
	layer(t, "Conv", "onnx::Conv_18", "onnx::Conv_19");
	test_said(t,
		"its batch-norms seem to be folded into other layers ('onnx::Conv_18' tells): what "
		"is trained is a model without them");
}

/* The newer exporter keeps names; the layer gives what the batch norm gave. (onnxsim drops what the
 * file says besides.) */
static void result_of_a_norm(void **state)
{
	struct model_test *t = *state;
	t->model.producer_name = "pytorch";
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4,2,2");
	numbers(t, "0.weight", "3,4,1,1", 12);
	numbers(t, "0.bias", "3", 3);
	model_node(t, "Conv", "node_Conv_18", "x,0.weight,0.bias", "getitem_3");
	model_node(t, "Relu", "node_relu", "getitem_3", "relu");
	model_output(t, "relu");
	model_accepted(t);
	test_said(t, "its batch-norms seem to be folded into other layers ('0.weight' tells)");
}

/* Evenly spaced: computed, and nobody's parameter. */
static void progression(void **state)
{
	static const float even[] = {0, .25F, .5F, .75F, 1, 1.25F, 1.5F, 1.75F};
	struct model_test *t = *state;
	t->model.producer_name = "pytorch";
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	numbers(t, "w", "4,4", 16);
	model_raw(model_tensor(t, "onnx::Add_2", TENSOR_TYPE(FLOAT), "2,4"), even, sizeof even);
	model_node(t, "MatMul", "m", "x,w", "a");
	model_node(t, "Add", "b", "a,onnx::Add_2", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_not_trained(t, "onnx::Add_2", "made by the exporter");
	assert_int_equal(t->diag.warnings, 0);
}

/* Some rows of an embedding are infinite: what stands there is not attended to. */
static void infinite_rows(void **state)
{
	const float rows[] = {-INFINITY, -INFINITY, .3F, -.2F, .7F, -.1F},
		    mask[] = {0, -INFINITY, 0, 0, -INFINITY, -INFINITY};
	struct model_test *t = *state;
	model_input(t, "ids", TENSOR_TYPE(INT64), "4");
	model_raw(model_tensor(t, "table", TENSOR_TYPE(FLOAT), "3,2"), rows, sizeof rows);
	model_raw(model_tensor(t, "causal", TENSOR_TYPE(FLOAT), "3,2"), mask, sizeof mask);
	model_node(t, "Gather", "g", "table,ids", "a");
	model_node(t, "Gather", "h", "causal,ids", "b");
	model_node(t, "Add", "s", "a,b", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "g", 0, "table");
	notes_not_trained(t, "causal", "a mask");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(of_channels), T(bias), T(computed_weights),
		T(computed_kernel), T(kept_weights), T(weights_with_bias), T(result_of_a_norm),
		T(progression), T(infinite_rows)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
