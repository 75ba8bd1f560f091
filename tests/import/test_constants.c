/* Weights in Constant nodes and in bodies, which are trained as initializers are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/import/notes.h"
#include "tests/import/operators.h"

/* The last initializer becomes what a Constant node gives. */
static void spell(struct model_test *t)
{
	Onnx__TensorProto *w = t->at->initializer[--t->at->n_initializer];
	Onnx__NodeProto *n = model_node(t, "Constant", "", "", w->name);
	model_attribute(t, n, "value", ATTRIBUTE_TYPE(TENSOR))->t = w;
	n->n_input = 0;
	w->name = "";
}

static void spelled(
	struct model_test *t, const char *name, const char *shape, const float *v, int n)
{
	model_raw(model_tensor(t, name, TENSOR_TYPE(FLOAT), shape), v, (size_t)n * sizeof *v);
	spell(t);
}

static const float some[] = {.3F, -.2F, .7F, -.1F, .45F, .9F, -.6F, .15F, -.35F, .8F, -.05F, .55F};

/* x [2,4] times w [4,3] plus b [3], scaled; what a table of whole numbers adds, and what the data
 * are divided by, is no weight. */
static void constants(struct model_test *t, const char *weight)
{
	static const float whole[] = {1, 5, 2}, scaled[] = {.1F, .7F, .2F, .4F}, half = .5F;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	spelled(t, "std", "4", scaled, 4);
	spelled(t, weight, "4,3", some, 12);
	spelled(t, "fc.b_0", "3", some, 3);
	spelled(t, "grid", "3", whole, 3);
	spelled(t, "half", "1", &half, 1);
	model_node(t, "Mul", "s", "x,std", "xs");
	Onnx__NodeProto *n = model_node(t, "MatMul", "m", "xs,w", "a");
	n->input[1] = (char *)(uintptr_t)weight;
	model_node(t, "Add", "bias", "fc.b_0,a", "b");
	model_node(t, "Add", "shift", "b,grid", "c");
	model_node(t, "Mul", "scale", "c,half", "y");
	model_output(t, "y");
}

static void trained_where_weights_stand(void **state)
{
	struct model_test *t = *state;
	constants(t, "fc.w_0");
	model_accepted(t);
	notes_reads(t, "m", 1, "fc.w_0");
	notes_reads(t, "bias", 0, "fc.b_0");
	notes_not_trained(t, "grid", "a Constant whose values are no weight's");
	assert_int_equal(notes_input(t, "s", 1)->role, TR_CONSTANT);
	assert_int_equal(notes_input(t, "scale", 1)->role, TR_CONSTANT);
	t->options.train_pattern = (const char *const[]){"*", NULL};
	t->options.freeze_pattern = (const char *const[]){"fc.b*", NULL};
	model_accepted(t);
	notes_reads(t, "m", 1, "fc.w_0");
	notes_not_trained(t, "fc.b_0", "--freeze");
	assert_int_equal(notes_input(t, "scale", 1)->role, TR_CONSTANT);
}

/* Values that a forward pass of PyTorch's makes; but of a frozen module all weights are that. */
static void of_pytorch(void **state)
{
	struct model_test *t = *state;
	t->model.producer_name = "pytorch";
	constants(t, "/Constant_1_output_0");
	model_accepted(t);
	notes_reads(t, "m", 1, "/Constant_1_output_0");
	/* other values: what is a parameter's in another shape is made of that again (folded.c) */
	static const float other[12] = {
		.1F, .8F, -.3F, .25F, -.7F, .6F, .05F, -.4F, .9F, -.15F, .5F};
	model_raw(model_tensor(t, "up.weight", TENSOR_TYPE(FLOAT), "3,4"), other, sizeof other);
	model_node(t, "MatMul", "u", "y,up.weight", "z");
	model_output(t, "z");
	model_accepted(t);
	assert_int_equal(notes_input(t, "m", 1)->role, TR_CONSTANT);
	test_said(t, "stands where weights stand, but is a Constant node of a model whose weights");
	t->options.train_pattern = (const char *const[]){"/Const*", NULL};
	model_accepted(t);
	notes_reads(t, "m", 1, "/Constant_1_output_0");
}

static void of_other_types(void **state)
{
	static const uint16_t half[12] = {0x3800, 0x3400, 0xb800, 0x3a00, 0x3555, 0xb123, 0x3c00,
		0x2e66, 0x3800, 0xb400, 0x3900, 0x3a66};
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT16), "2,4");
	model_raw(model_tensor(t, "w", TENSOR_TYPE(FLOAT16), "4,3"), half, sizeof half);
	spell(t);
	model_node(t, "MatMul", "m", "x,w", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "m", 1, "w");
}

/* Both branches call theirs alike; one of them is an initializer. */
static void in_bodies(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_truth(t, "c", false);
	Onnx__NodeProto *n = model_node(t, "If", "choice", "c", "y");
	static const char *const branch[] = {"then_branch", "else_branch"};
	for (int i = 0; i < 2; i++) {
		model_inside(t, n, branch[i]);
		model_raw(model_tensor(t, "w", TENSOR_TYPE(FLOAT), "4,3"), some, sizeof some);
		if (i)
			spell(t);
		model_node(t, "MatMul", i ? "m2" : "m1", "x,w", i ? "b" : "a");
		model_output(t, i ? "b" : "a");
		model_outside(t);
	}
	model_output(t, "y");
	model_accepted(t);
	assert_int_equal(test_tensor(t, "w@else_branch")->role, TR_PARAMETER);
	assert_int_equal(test_tensor(t, "w@then_branch")->role, TR_PARAMETER);
	t->options.freeze_pattern = (const char *const[]){"w@else*", NULL};
	model_accepted(t);
	notes_not_trained(t, "w@else_branch", "--freeze");
}

/* An initializer of the model that only a body reads stands there. */
static void read_in_bodies(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_truth(t, "c", true);
	model_raw(model_tensor(t, "onnx::MatMul_3", TENSOR_TYPE(FLOAT), "3,4"), some, sizeof some);
	Onnx__NodeProto *n = model_node(t, "If", "choice", "c", "y");
	for (int i = 0; i < 2; i++) {
		model_inside(t, n, i ? "else_branch" : "then_branch");
		model_node(t, "Transpose", "", "onnx::MatMul_3", i ? "u" : "t");
		model_node(t, "MatMul", "", i ? "x,u" : "x,t", i ? "b" : "a");
		model_output(t, i ? "b" : "a");
		model_outside(t);
	}
	model_output(t, "y");
	model_accepted(t);
	assert_int_equal(test_tensor(t, "onnx::MatMul_3")->role, TR_PARAMETER);
}

/* tf2onnx writes scales as initializers with names of their own. */
static void settings(void **state)
{
	struct model_test *t = *state;
	static const float scale[] = {1, 1, 2, 2}, values[] = {0, 1};
	static const struct {
		const char *op, *inputs;
		int opset;
	} nodes[] = {{"Resize", "x,,scales__29", 17}, {"Resize", "x,scales__29", 10},
		{"Upsample", "x,scales__29", 9}};
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,3,4,4");
	model_raw(model_tensor(t, "scales__29", TENSOR_TYPE(FLOAT), "4"), scale, sizeof scale);
	model_output(t, "y");
	for (int i = 0; i < 3; i++) {
		t->graph.n_node = 0;
		t->model.opset_import[0]->version = nodes[i].opset;
		model_node(t, nodes[i].op, "n", nodes[i].inputs, "y");
		model_accepted(t);
		notes_not_trained(t, "scales__29", "a setting of its operator");
	}
	t->graph.n_node = t->graph.n_output = 0;
	t->model.opset_import[0]->version = 17;
	model_number(t, "depth", 4);
	model_raw(model_tensor(t, "off_on", TENSOR_TYPE(FLOAT), "2"), values, sizeof values);
	model_input(t, "kind", TENSOR_TYPE(INT64), "2");
	model_node(t, "OneHot", "hot", "kind,depth,off_on", "z");
	model_output(t, "z");
	model_accepted(t);
	notes_not_trained(t, "off_on", "a setting of its operator");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(trained_where_weights_stand), T(of_pytorch),
		T(of_other_types), T(in_bodies), T(read_in_bodies), T(settings)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
