/* --replace-head: which weight that is, in which types, and that it is trained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/import/notes.h"
#include "tests/import/operators.h"

static const float some[] = {.3F, -.2F, .7F, -.1F, .45F, .9F, -.6F, .15F, -.35F, .8F, -.05F, .55F};

static void weight(struct model_test *t, const char *name, const char *shape)
{
	model_raw(model_tensor(t, name, TENSOR_TYPE(FLOAT), shape), some, sizeof some);
}

/* x [2,4] through w1 [4,3] and w2 [3,4]. */
static void two_layers(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	weight(t, "w1", "4,3");
	weight(t, "w2", "3,4");
	model_node(t, "MatMul", "m1", "x,w1", "a");
	model_node(t, "Relu", "r", "a", "b");
	model_node(t, "MatMul", "m2", "b,w2", "y");
	model_output(t, "y");
	t->options.head = 5;
}

static void trained_whatever_is_said(void **state)
{
	struct model_test *t = *state;
	two_layers(t);
	t->options.train_pattern = (const char *const[]){"w1", NULL};
	model_accepted(t);
	notes_reads(t, "m2", 1, "w2");
	assert_true(test_tensor(t, "w2")->drawn);
	assert_false(test_tensor(t, "w1")->drawn);
	assert_int_equal(test_tensor(t, "w2")->dim[1], 5);
	t->options.train_pattern = NULL;
	t->options.freeze_pattern = (const char *const[]){"w2", NULL};
	model_refused(
		t, ST_USAGE, "w2 (tensor): --freeze would leave the new head as it was drawn");
	weight(t, "bias", "4");
	model_node(t, "Add", "sum", "y,bias", "z");
	t->graph.output[0]->name = arena_strdup(t->arena, "z");
	t->options.freeze_pattern = (const char *const[]){"b*", NULL};
	model_refused(t, ST_USAGE, "bias (tensor): --freeze would leave the new head");
}

static void in_a_constant(void **state)
{
	struct model_test *t = *state;
	two_layers(t);
	Onnx__TensorProto *w = t->graph.initializer[--t->graph.n_initializer];
	Onnx__NodeProto *n = model_node(t, "Constant", "", "", "w2");
	static const float other[12] = {
		.1F, .8F, -.3F, .25F, -.7F, .6F, .05F, -.4F, .9F, -.15F, .5F};
	model_raw(w, other, sizeof other); /* else it is w1 in another shape (folded.c) */
	model_attribute(t, n, "value", ATTRIBUTE_TYPE(TENSOR))->t = w;
	n->n_input = 0;
	model_accepted(t);
	assert_int_equal(test_tensor(t, "w2")->dim[1], 5);
	assert_int_equal(test_tensor(t, "w1")->dim[1], 3);
	/* a value of the forward pass's is none, nor is what lies before it */
	t->model.producer_name = "pytorch";
	n->output[0] = "/Constant_output_0";
	t->graph.node[2]->input[1] = "/Constant_output_0";
	model_refused(t, ST_INVALID,
		"/Constant_output_0 (constant): --replace-head: the last product's weight is a "
		"Constant node");
}

static void of_several(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	weight(t, "w1", "4,3");
	weight(t, "w2", "4,3");
	model_node(t, "MatMul", "m1", "x,w1", "a");
	model_node(t, "MatMul", "m2", "x,w2", "b");
	model_node(t, "Add", "sum", "a,b", "y");
	model_output(t, "y");
	t->options.head = 5;
	model_refused(t, ST_INVALID, "'w1' and 'w2' are as near to it");
	model_output(t, "b");
	t->options.output = (const char *const[]){"b", NULL};
	t->graph.node[2]->op_type = "MatMul"; /* of which 'a' is no part */
	t->graph.node[2]->input[0] = "x";
	t->graph.node[2]->input[1] = "w1";
	model_accepted(t);
	assert_int_equal(test_tensor(t, "w2")->dim[1], 5);
}

/* A view of as many as there were: the head is what does not fit, where it is behind. */
static void of_a_view(void **state)
{
	struct model_test *t = *state;
	static const int64_t shape[] = {-1, 6};
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	weight(t, "w1", "4,3");
	model_raw(model_tensor(t, "rows", TENSOR_TYPE(INT64), "2"), shape, sizeof shape);
	model_node(t, "MatMul", "m1", "x,w1", "a");
	model_node(t, "Reshape", "view", "a,rows", "y");
	model_output(t, "y");
	t->options.head = 5;
	model_refused(t, ST_INVALID, "[2, 5] does not divide by the known sizes' product, 6");
	test_said(t, "what lies behind the head wants as many as there were");
	t->graph.node[1]->input[0] = "x";
	model_output(t, "a");
	t->options.output = (const char *const[]){"a", NULL};
	model_refused(t, ST_INVALID, "[2, 4] does not divide by the known sizes' product, 6");
	test_said(t, "a batch size fixed by the exporter? give --batch its value");
}

static void in_a_body(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_truth(t, "c", true);
	weight(t, "w", "4,3");
	Onnx__NodeProto *n = model_node(t, "If", "choice", "c", "y");
	for (int i = 0; i < 2; i++) {
		model_inside(t, n, i ? "else_branch" : "then_branch");
		model_node(t, "MatMul", "", "x,w", i ? "b" : "a");
		model_output(t, i ? "b" : "a");
		model_outside(t);
	}
	model_output(t, "y");
	t->options.head = 5;
	model_refused(
		t, ST_INVALID, "choice (If): --replace-head: the output is made in its bodies");
}

/* The last product's weight is none that could get another size, and a layer before it is not taken
 * in its place: its outputs may be as many. */
static void of_another_kind(void **state)
{
	static const char refused[] =
		"m2 (MatMul): --replace-head: its weights are the nearest to the output";
	struct model_test *t = *state;
	two_layers(t);
	t->options.head = 3; /* as many as w1 has */
	model_accepted(t);
	assert_true(test_tensor(t, "w2")->drawn);
	weight(t, "g", "1,4");
	model_node(t, "Mul", "norm", "w2,g", "w");
	Onnx__NodeProto *m2 = t->graph.node[2];
	m2->input[1] = arena_strdup(t->arena, "w");
	model_refused(t, ST_INVALID, refused);
	weight(t, "left", "4,2");
	m2->input[0] = arena_strdup(t->arena, "left");
	m2->input[1] = arena_strdup(t->arena, "b");
	model_refused(t, ST_INVALID, refused);
	weight(t, "vector", "3");
	m2->input[0] = arena_strdup(t->arena, "b");
	m2->input[1] = arena_strdup(t->arena, "vector");
	model_refused(t, ST_INVALID, refused);
}

/* As files have it that keep weights in halves and compute in floats. */
static void behind_a_cast(void **state)
{
	static const uint16_t half[12] = {0x3c00, 0x3555, 0x3001, 0x03ff, 0x7bff, 0x8000};
	struct model_test *t = *state;
	two_layers(t);
	model_raw(model_tensor(t, "h", TENSOR_TYPE(FLOAT16), "3,4"), half, sizeof half);
	model_raw(model_tensor(t, "hb", TENSOR_TYPE(FLOAT16), "4"), half, 4 * sizeof *half);
	Onnx__NodeProto *cast[3];
	for (int i = 0; i < 3; i++) {
		cast[i] = model_node(t, i == 1 ? "Identity" : "Cast", "",
			(const char *const[]){"h", "hw", "hb"}[i],
			(const char *const[]){"hw", "same", "bias"}[i]);
		if (i != 1)
			model_int(t, cast[i], "to", TENSOR_TYPE(FLOAT));
	}
	t->graph.node[2]->input[1] = arena_strdup(t->arena, "same");
	model_node(t, "Add", "sum", "y,bias", "z");
	t->graph.output[0]->name = arena_strdup(t->arena, "z");
	t->graph.n_initializer = 4;
	model_accepted(t);
	assert_true(test_tensor(t, "h")->drawn && test_tensor(t, "hb")->drawn);
	assert_int_equal(test_tensor(t, "h")->dim[1], 5);
	assert_int_equal(test_tensor(t, "hb")->dim[0], 5);
	assert_int_equal(test_tensor(t, "h")->element, TENSOR_TYPE(FLOAT16));
	/* read twice, if not itself */
	model_node(t, "MatMul", "again", "b,hw", "other");
	model_output(t, "other");
	model_refused(t, ST_INVALID, "h (tensor): --replace-head: another node reads it");
}

/* An Einsum tells which axis counts outputs: the one of a letter that the other operands lack. */
static void of_an_equation(void **state)
{
	static const struct {
		const char *equation, *w;
		int axis; /* -1: refused */
	} example[] = {{"bd,dc->bc", "3,4", 1}, {"bd,cd->bc", "4,3", 0},
		{"...d,dc->...c", "3,4", 1}, {"bd,dc->cb", "3,4", 1}, {"bd,dc", "3,4", 1},
		{"bz,za", "3,4", 1}, {" b d , c d -> b c ", "4,3", 0}, {"bd,d...->b...", "3,4", -1},
		{"bd,dhk->bhk", "3,2,2", -1}, {"bd,dk->bd", "3,4", -1}, {"bd,de->b", "3,4", -1}};
	struct model_test *t = *state;
	two_layers(t);
	for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
		Onnx__NodeProto *n = t->graph.node[2];
		t->graph.n_initializer = 1;
		weight(t, "w2", example[i].w);
		n->op_type = arena_strdup(t->arena, "Einsum");
		n->n_attribute = 0;
		Onnx__AttributeProto *a = model_attribute(t, n, "equation", ATTRIBUTE_TYPE(STRING));
		a->has_s = 1;
		a->s.len = strlen(example[i].equation);
		a->s.data = (uint8_t *)arena_strdup(t->arena, example[i].equation);
		if (example[i].axis < 0) {
			model_refused(t, ST_INVALID,
				"m2 (Einsum): --replace-head: its weights are the nearest to the "
				"output");
			continue;
		}
		model_accepted(t);
		assert_int_equal(test_tensor(t, "w2")->dim[example[i].axis], 5);
		assert_int_equal(test_tensor(t, "w2")->dim[1 - example[i].axis], 3);
	}
}

/* Older files list initializers among the inputs, with their shapes: what is written has the new.
 */
static void among_the_inputs(void **state)
{
	struct model_test *t = *state;
	const char *out = test_path(t, "copy.onnx");
	char *bytes;
	size_t len;
	two_layers(t);
	model_input(t, "w2", TENSOR_TYPE(FLOAT), "3,4");
	model_accepted(t);
	assert_int_equal(import_copy_model(test_path(t, "model.onnx"), out, &t->options, t->table,
				 NULL, NULL, &t->diag),
		ST_OK);
	assert_int_equal(file_read(t->arena, out, &bytes, &len, &t->diag), ST_OK);
	Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, len, (const uint8_t *)bytes);
	assert_non_null(m);
	const Onnx__TensorShapeProto *shape = m->graph->input[1]->type->tensor_type->shape;
	assert_int_equal(shape->dim[0]->dim_value, 3);
	assert_int_equal(shape->dim[1]->dim_value, 5);
	onnx__model_proto__free_unpacked(m, NULL);
}

/* A product of what is computed of the input has no weights: those before it are the nearest. */
static void before_attention(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	weight(t, "wq", "4,3");
	weight(t, "wv", "4,3");
	model_node(t, "MatMul", "q", "x,wq", "a");
	model_node(t, "Transpose", "turn", "a", "at");
	model_node(t, "MatMul", "scores", "a,at", "s");
	model_node(t, "MatMul", "v", "x,wv", "b");
	model_node(t, "MatMul", "mixed", "s,b", "y");
	model_output(t, "y");
	t->options.head = 5;
	model_accepted(t);
	assert_int_equal(test_tensor(t, "wv")->dim[1], 5);
	assert_int_equal(test_tensor(t, "wq")->dim[1], 3);
}

/* In the file's own type: halves, rounded to even, and what is too small or too large for them. */
static void of_halves(void **state)
{
	static const uint16_t half[] = {0x3c00, 0x3555, 0x0001, 0x03ff, 0x7bff, 0x8000, 0xc500,
		0x0400, 0x3800, 0xb400, 0x3900, 0x3a66};
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT16), "2,4");
	model_raw(model_tensor(t, "w", TENSOR_TYPE(FLOAT16), "4,3"), half, sizeof half);
	model_node(t, "MatMul", "m", "x,w", "y");
	model_output(t, "y");
	t->options.head = 4;
	t->options.head_keeps = true;
	model_accepted(t);
	const struct tensor *w = test_tensor(t, "w");
	assert_int_equal(w->element, TENSOR_TYPE(FLOAT16));
	assert_int_equal(w->dim[1], 4);
	assert_true(tensor_real(w, 0) == 1 && tensor_real(w, 2) == 0x1p-24);
	assert_true(tensor_real(w, 4) == 0x1.ff8p-15 && tensor_real(w, 5) == 65504);
	assert_true(tensor_real(w, 8) == -5 && tensor_real(w, 9) == 0x1p-14);
	assert_true(tensor_real(w, 3) != 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(trained_whatever_is_said), T(in_a_constant),
		T(of_several), T(of_a_view), T(in_a_body), T(of_another_kind), T(among_the_inputs),
		T(behind_a_cast), T(of_an_equation), T(before_attention), T(of_halves)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
