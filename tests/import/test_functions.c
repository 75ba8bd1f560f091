/* The model's own functions, inlined: with the real operators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/import/operators.h"

/* x [2,4] → y = call of `domain`.`op` */
static Onnx__NodeProto *calls(struct model_test *t, const char *domain, const char *op)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	Onnx__NodeProto *n = model_node(t, op, "call", "x", "y");
	n->domain = arena_strdup(t->arena, domain);
	model_output(t, "y");
	return n;
}

static void refer(
	struct model_test *t, Onnx__NodeProto *n, const char *name, int type, const char *outer)
{
	model_attribute(t, n, name, type)->ref_attr_name = arena_strdup(t->arena, outer);
}

/* Functions in functions; names get the calls' for a prefix. */
static void inlined(void **state)
{
	struct model_test *t = *state;
	calls(t, "my", "Outer");
	model_node(t, "Outer", "again", "y", "z")->domain = "my";
	model_output(t, "z");
	model_function(t, "my", "Outer", "a", "b", "");
	model_node(t, "Relu", "", "h", "b"); /* not in order */
	model_node(t, "Inner", "in", "a", "h")->domain = "my";
	model_function(t, "my", "Inner", "a", "b", "");
	model_node(t, "Tanh", "tanh", "a", "b");
	model_accepted(t);
	assert_int_equal(t->g->nnode, 4);
	assert_string_equal(t->g->node[0]->name, "call/in/tanh");
	assert_string_equal(t->g->node[0]->out[0]->name, "call/h");
	assert_string_equal(t->g->node[1]->name, "call/Relu_0");
	assert_string_equal(t->g->node[1]->out[0]->name, "y");
	assert_ptr_equal(t->g->node[2]->in[0], t->g->output[0]);
	assert_string_equal(t->g->node[3]->name, "again/Relu_0");
	/* the same name elsewhere is another function, and a record goes before a function */
	model_function(t, "", "Tanh", "a", "b", "");
	model_function(t, "other", "Inner", "a", "b", "");
	model_accepted(t);
	assert_int_equal(t->g->nnode, 4);
	model_function(t, "my", "Inner", "a", "b", "");
	model_refused(t, ST_INVALID, "Inner (function): stands twice");
}

static void attributes(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *call = calls(t, "my", "Outer");
	model_function(t, "my", "Outer", "a", "b", "slope,inner");
	Onnx__NodeProto *in = model_node(t, "Leaky", "in", "a", "b");
	in->domain = "my";
	refer(t, in, "alpha", ATTRIBUTE_TYPE(FLOAT), "slope");
	Onnx__FunctionProto *f = model_function(t, "my", "Leaky", "a", "b", "alpha");
	Onnx__NodeProto *leaky = model_node(t, "LeakyRelu", "leaky", "a", "b");
	refer(t, leaky, "alpha", ATTRIBUTE_TYPE(FLOAT), "alpha");
	model_outside(t);
	model_accepted(t); /* given by none: LeakyRelu's own */
	assert_null(node_attr(t->g->node[0], "alpha"));
	Onnx__AttributeProto other = ONNX__ATTRIBUTE_PROTO__INIT;
	other.name = "alpha";
	other.has_type = other.has_f = 1;
	other.type = ATTRIBUTE_TYPE(FLOAT);
	other.f = 0.25f;
	model_default(t, f, &other);
	f->n_attribute = 0;
	model_accepted(t);
	assert_true(node_float(t->g->node[0], "alpha", 0) == 0.25);
	Onnx__AttributeProto *slope = model_attribute(t, call, "slope", ATTRIBUTE_TYPE(FLOAT));
	slope->has_f = 1;
	slope->f = 0.5f;
	model_accepted(t);
	assert_true(node_float(t->g->node[0], "alpha", 0) == 0.5);
	leaky->attribute[0]->ref_attr_name = "beta";
	model_refused(t, ST_INVALID,
		"call/in/leaky (LeakyRelu): attribute 'alpha' refers to an attribute that its "
		"function does not have");
}

/* Constants of all kinds, from references too. */
static void constants(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *call = calls(t, "my", "Values");
	call->n_input = 0;
	call->output[0] = "i";
	model_function(t, "my", "Values", "", "i,is", "v,vs");
	refer(t, model_node(t, "Constant", "", "", "i"), "value_int", ATTRIBUTE_TYPE(INT), "v");
	Onnx__NodeProto *n = model_node(t, "Constant", "", "", "is");
	refer(t, n, "value_ints", ATTRIBUTE_TYPE(INTS), "vs");
	model_outside(t);
	call->n_output = 2;
	call->output = (char *[]){"y", "is"};
	model_output(t, "is");
	model_int(t, call, "v", 7);
	Onnx__AttributeProto *vs = model_attribute(t, call, "vs", ATTRIBUTE_TYPE(INTS));
	vs->n_ints = 2;
	vs->ints = (int64_t[]){3, -4};
	model_accepted(t);
	test_known(t, "y", ": 7");
	test_known(t, "is", "2: 3 -4");
}

static void constant_kinds(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2");
	Onnx__NodeProto *n = model_node(t, "Constant", "k", "", "y");
	model_output(t, "y");
	Onnx__AttributeProto *a = model_attribute(t, n, "value_float", ATTRIBUTE_TYPE(FLOAT));
	a->has_f = 1;
	a->f = 1.5f;
	model_accepted(t);
	test_known(t, "y", ": 1.5");
	a->name = "value_floats";
	a->type = ATTRIBUTE_TYPE(FLOATS);
	a->n_floats = 2;
	a->floats = (float[]){0.5f, 2};
	model_accepted(t);
	test_known(t, "y", "2: 0.5 2");
	a->name = "value_string";
	a->type = ATTRIBUTE_TYPE(STRING);
	a->has_s = 1;
	a->s = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "s"};
	model_refused(t, ST_INVALID, "k (Constant): needs one attribute of value");
	a->name = "sparse_value";
	a->type = ATTRIBUTE_TYPE(SPARSE_TENSOR);
	model_refused(t, ST_INVALID,
		"k (Constant): attribute 'sparse_value' holds a sparse tensor, which is not");
}

/* A function reads what its call leaves out as absent, and gives what is asked for. */
static void optional_inputs_and_outputs(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *call = calls(t, "my", "F");
	model_function(t, "my", "F", "a,low,high", "b,c", "");
	model_node(t, "Clip", "clip", "a,low,high", "b");
	model_node(t, "Relu", "other", "a", "c");
	model_outside(t);
	model_raw(model_tensor(t, "one", TENSOR_TYPE(FLOAT), ""), "\0\0\x80\x3f", 4);
	model_accepted(t);
	assert_int_equal(t->g->node[0]->nin, 1);
	call->n_input = 3;
	call->input = (char *[]){"x", "", "one"};
	model_accepted(t);
	assert_null(t->g->node[0]->in[1]);
	assert_non_null(t->g->node[0]->in[2]);
	call->n_input = 4;
	call->input = (char *[]){"x", "", "one", "one"};
	model_refused(
		t, ST_INVALID, "call (F): has 4 inputs and 1 outputs; the function has 3 and 2");
}

/* The function's input is its output. */
static void hands_on(void **state)
{
	struct model_test *t = *state;
	calls(t, "my", "Same");
	model_function(t, "my", "Same", "a", "a", "");
	model_outside(t);
	model_accepted(t);
	assert_string_equal(t->g->output[0]->name, "y");
	assert_string_equal(t->g->input[0]->name, "x");
	t->model.functions[0]->output[0] = "c";
	model_refused(t, ST_INVALID, "Same (): its output 'c' is made by nothing");
}

/* A function's operators are those of its own opset. */
static void own_opset(void **state)
{
	struct model_test *t = *state;
	calls(t, "my", "Sum");
	Onnx__FunctionProto *f = model_function(t, "my", "Sum", "a", "b", "");
	Onnx__NodeProto *n = model_node(t, "Squeeze", "", "a", "b");
	Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
	opset.has_version = 1;
	opset.version = 26;
	f->opset_import = (Onnx__OperatorSetIdProto *[]){&opset};
	f->n_opset_import = 1;
	model_refused(t, ST_INVALID, "Sum (): is written for opset 26");
	opset.version = 12;
	n->op_type = "LayerNormalization"; /* 17 and later */
	model_refused(t, ST_INVALID,
		"operator LayerNormalization is not supported at opset 12; used 1 time, first here "
		"in function 'Sum'");
	f->n_opset_import = 0;
	n->op_type = "Squeeze";
	model_accepted(t);
}

static void overloads(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *call = calls(t, "my", "F");
	Onnx__FunctionProto *f = model_function(t, "my", "F", "a", "b", "");
	model_node(t, "Relu", "", "a", "b");
	model_unknown(t, &f->base, 13, "one", 3);
	f = model_function(t, "my", "F", "a", "b", "");
	model_node(t, "Tanh", "", "a", "b");
	model_unknown(t, &f->base, 13, "two", 3);
	model_refused(t, ST_INVALID, "call (my.F): operator my.F is not supported");
	model_unknown(t, &call->base, 8, "two", 3);
	model_accepted(t);
	assert_string_equal(t->g->node[0]->op->name, "Tanh");
}

/* A graph handed to a function as an attribute reads names where it stands. */
static void bodies(void **state)
{
	struct model_test *t = *state;
	model_weights(t, "a", "4");
	model_truth(t, "yes", true);
	Onnx__NodeProto *call = calls(t, "my", "Choose");
	model_inside(t, call, "then");
	model_node(t, "Add", "sum", "x,a", "s");
	model_output(t, "s");
	model_function(t, "my", "Choose", "a", "b", "then");
	model_attribute(t, model_node(t, "Constant", "", "", "c"), "value", ATTRIBUTE_TYPE(TENSOR))
		->t = t->graph.initializer[1];
	Onnx__NodeProto *n = model_node(t, "If", "if", "c", "h");
	refer(t, n, "then_branch", ATTRIBUTE_TYPE(GRAPH), "then");
	Onnx__NodeProto *inner = model_node(t, "If", "if2", "c", "b");
	t->function = NULL;
	model_inside(t, inner, "then_branch");
	model_node(t, "Mul", "", "h,a", "m"); /* the function's a, which is x */
	model_output(t, "m");
	model_outside(t);
	model_accepted(t);
	assert_int_equal(t->g->nnode, 2);
	assert_string_equal(t->g->node[0]->name, "call/if/then/sum");
	assert_ptr_equal(t->g->node[0]->in[1], test_tensor(t, "a"));
	assert_ptr_equal(t->g->node[1]->in[1], t->g->input[0]);
}

static void recursion(void **state)
{
	struct model_test *t = *state;
	calls(t, "my", "Self");
	model_function(t, "my", "Self", "a", "b", "");
	Onnx__NodeProto *n = model_node(t, "Self", "", "a", "b");
	n->domain = "my";
	model_refused(t, ST_INVALID, "Self (function): calls itself");
	n->op_type = "Other";
	model_function(t, "my", "Other", "a", "b", "");
	Onnx__NodeProto *branch = model_node(t, "If", "", "a", "b");
	t->function = NULL;
	model_inside(t, branch, "then_branch");
	model_node(t, "Self", "", "a", "b")->domain = "my";
	model_refused(t, ST_INVALID, "calls itself");
}

/* Each function calls the next one `times` times. */
static void chain(struct model_test *t, int n, int times)
{
	calls(t, "my", "f0");
	for (int i = 0; i < n; i++) {
		model_function(t, "my", arena_printf(t->arena, "f%d", i), "a",
			arena_printf(t->arena, "v%d", times), "");
		for (int k = 0; k < times; k++) {
			Onnx__NodeProto *p = model_node(t,
				i < n - 1 ? arena_printf(t->arena, "f%d", i + 1) : "Relu", "",
				k ? arena_printf(t->arena, "v%d", k) : "a",
				arena_printf(t->arena, "v%d", k + 1));
			p->domain = i < n - 1 ? "my" : "";
		}
	}
	model_outside(t);
}

static void deep_calls(void **state)
{
	struct model_test *t = *state;
	chain(t, 90, 1);
	model_accepted(t);
	assert_int_equal(t->g->nnode, 1);
}

static void too_deep_calls(void **state)
{
	struct model_test *t = *state;
	chain(t, 3000, 1);
	model_refused(t, ST_INVALID, "is called inside more than 100 other functions");
}

/* 2^60 nodes, and 10^90. */
static void function_bombs(void **state)
{
	struct model_test *t = *state;
	chain(t, 60, 2);
	model_refused(t, ST_INVALID, "call (f0): the function comes to ");
	test_said(t, " nodes, 200000 are the limit for all");
}

static void larger_bombs(void **state)
{
	struct model_test *t = *state;
	chain(t, 90, 10);
	model_refused(t, ST_INVALID, "call (f0): the function comes to ");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {
		TEST(inlined),
		TEST(attributes),
		TEST(constants),
		TEST(constant_kinds),
		TEST(optional_inputs_and_outputs),
		TEST(hands_on),
		TEST(own_opset),
		TEST(overloads),
		TEST(bodies),
		TEST(recursion),
		TEST(deep_calls),
		TEST(too_deep_calls),
		TEST(function_bombs),
		TEST(larger_bombs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
