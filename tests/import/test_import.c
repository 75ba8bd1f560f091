/* Models that are accepted: what becomes of inputs, initializers, nodes, outputs and options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/import/model.h"

static void small_model(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	assert_int_equal(model_import(t), ST_OK);
	const struct graph *g = t->g;
	assert_int_equal(g->nnode, 2);
	assert_string_equal(g->node[0]->name, "sum");
	assert_string_equal(g->node[1]->op->name, "Relu");
	assert_int_equal(g->ninput, 1);
	assert_int_equal(g->input[0]->role, TR_INPUT);
	assert_int_equal(g->input[0]->dim[0], 2);
	assert_int_equal(g->input[0]->dim[1], 4);
	assert_int_equal(g->noutput, 1);
	assert_string_equal(g->output[0]->name, "y");
	assert_ptr_equal(g->output[0]->maker, g->node[1]);
	assert_ptr_equal(g->node[0]->in[1], test_tensor(t, "w"));
	assert_int_equal(g->opset, OPSET_LATEST);
}

static void roles(void **state)
{
	struct model_test *t = *state;
	static const int64_t ints[] = {1, 2, 3, 4};
	model_small(t);
	model_weights(t, "layer1.weight", "2,2");
	model_weights(t, "layer1.bias", "2");
	model_weights(t, "layer2.weight", "2,2");
	model_weights(t, "scale", "");
	model_raw(model_tensor(t, "shape", TENSOR_TYPE(INT64), "4"), ints, sizeof ints);
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(test_tensor(t, "layer1.weight")->role, TR_PARAMETER);
	assert_int_equal(test_tensor(t, "scale")->role, TR_CONSTANT);
	assert_int_equal(test_tensor(t, "shape")->role, TR_CONSTANT);
	assert_int_equal(test_tensor(t, "shape")->dtype, DT_I64);
	assert_int_equal(tensor_int(test_tensor(t, "shape"), 3), 4);
	assert_true(test_tensor(t, "w")->from_model);

	t->options.freeze_pattern = (const char *const[]){"layer1.*", NULL};
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(test_tensor(t, "layer1.bias")->role, TR_CONSTANT);
	assert_int_equal(tensor_real(test_tensor(t, "layer1.weight"), 3), 3);
	assert_int_equal(test_tensor(t, "layer2.weight")->role, TR_PARAMETER);

	t->options.train_pattern = (const char *const[]){"*.weight", NULL};
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(test_tensor(t, "layer2.weight")->role, TR_PARAMETER);
	assert_int_equal(test_tensor(t, "layer1.weight")->role, TR_CONSTANT);
	assert_int_equal(test_tensor(t, "w")->role, TR_CONSTANT);
	assert_int_equal(t->diag.warnings, 0);

	t->options.freeze_pattern = (const char *const[]){"layre1.*", NULL};
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(t->diag.warnings, 1);
	test_said(t, "--freeze 'layre1.*' fits no initializer");
}

static void initializer_among_inputs(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	model_input(t, "w", TENSOR_TYPE(FLOAT), "4");
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(t->g->ninput, 1);
	assert_int_equal(test_tensor(t, "w")->role, TR_PARAMETER);
	/* what files of old versions have to say is no default that somebody may overlook */
	assert_null(t->said.len ? strstr(t->said.s, "is an initializer too") : NULL);
	t->model.has_ir_version = 1;
	t->model.ir_version = 8;
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(t->g->ninput, 1);
	test_said(t, "w (input): is an initializer too: the file's values are taken");
}

static void sizes_by_name(void **state)
{
	struct model_test *t = *state;
	model_input(t, "ids", TENSOR_TYPE(INT64), "batch,seq");
	model_input(t, "mask", TENSOR_TYPE(BOOL), "seq,seq");
	model_input(t, "extra", TENSOR_TYPE(FLOAT16), "seq,batch");
	model_node(t, "Relu", "", "extra", "y");
	model_output(t, "y");
	t->options.ndim = 2;
	t->options.dim = (const struct import_dim[]){{"seq", 5}, {"batch", 3}};
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(t->g->input[0]->dim[0], 3);
	assert_int_equal(t->g->input[0]->dim[1], 5);
	assert_int_equal(t->g->input[0]->dtype, DT_I64);
	assert_int_equal(t->g->input[1]->dtype, DT_BOOL);
	assert_int_equal(t->g->input[2]->dtype, DT_F32);
	assert_int_equal(t->g->input[2]->dim[1], 3);
	assert_string_equal(t->g->node[0]->name, "Relu_0");
}

static void batch_binds_first_axes(void **state)
{
	struct model_test *t = *state;
	/* `late` names b before the input whose first axis it is */
	model_input(t, "late", TENSOR_TYPE(FLOAT), "?,b");
	model_input(t, "x", TENSOR_TYPE(FLOAT), "b,3");
	model_input(t, "scalar", TENSOR_TYPE(FLOAT), "");
	model_input(t, "z", TENSOR_TYPE(FLOAT), "n,b");
	model_node(t, "Relu", "r", "x", "y");
	model_output(t, "y");
	t->options.batch = 7;
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(t->g->input[0]->dim[0], 7);
	assert_int_equal(t->g->input[0]->dim[1], 7);
	assert_int_equal(t->g->input[1]->dim[0], 7);
	assert_int_equal(t->g->input[2]->rank, 0);
	assert_int_equal(t->g->input[3]->dim[0], 7);
	assert_int_equal(t->g->input[3]->dim[1], 7);
}

static void sizes_refused(void **state)
{
	struct model_test *t = *state;
	model_input(t, "a", TENSOR_TYPE(FLOAT), "N,seq,?");
	model_input(t, "b", TENSOR_TYPE(FLOAT), "4,3");
	model_node(t, "Relu", "r", "b", "y");
	model_output(t, "y");
	model_refused(t, ST_INVALID, "a (input): axis 0 ('N') has no fixed size | give --batch N");
	test_said(t, "a (input): axis 1 ('seq') has no fixed size | give --dim seq=N");
	test_said(t, "a (input): axis 2 ('?') has no fixed size | give --dim a:2=N");
	t->options.batch = 8;
	model_refused(t, ST_INVALID, "b (input): axis 0 is fixed at 4, but --batch says 8");
	t->options.ndim = 1;
	t->options.dim = (const struct import_dim[]){{"N", 9}};
	model_refused(t, ST_USAGE, "axis 0 is 'N': --batch makes it 8, --dim N=9");
	t->options.batch = 0;
	t->options.dim = (const struct import_dim[]){{"sequence", 9}};
	model_refused(t, ST_USAGE, "--dim sequence: no input has an axis of that name");
	t->options.ndim = 2;
	t->options.dim = (const struct import_dim[]){{"N", 9}, {"N", 8}};
	model_refused(t, ST_USAGE, "--dim gives 'N' two sizes: 9 and 8");
}

static void sizes_by_place(void **state)
{
	struct model_test *t = *state;
	model_input(t, "a", TENSOR_TYPE(FLOAT), "N,?,?,seq");
	model_input(t, "b", TENSOR_TYPE(FLOAT), "-1,-1,seq");
	model_node(t, "Relu", "r", "b", "y");
	model_output(t, "y");
	t->options.batch = 2;
	t->options.ndim = 4;
	t->options.dim = (const struct import_dim[]){
		{"a:1", 5}, {"a:2", 6}, {"b:1", 0}, {"a:3", 7}};
	model_accepted(t);
	assert_int_equal(t->g->input[0]->dim[1], 5);
	assert_int_equal(t->g->input[0]->dim[2], 6);
	assert_int_equal(t->g->input[0]->dim[3], 7);
	assert_int_equal(t->g->input[1]->dim[0], 2);
	assert_int_equal(t->g->input[1]->dim[1], 0);
	assert_int_equal(t->g->input[1]->dim[2], 7);
	t->options.ndim = 3;
	model_refused(t, ST_INVALID, "axis 3 ('seq') has no fixed size | give --dim seq=N");
	t->options.ndim = 2;
	t->options.dim = (const struct import_dim[]){{"seq", 5}, {"a:3", 6}};
	model_refused(t, ST_USAGE, "axis 3 is 'seq', which is 5; --dim a:3 makes it 6");
	t->options.dim = (const struct import_dim[]){{"seq", 5}, {"a:4", 6}};
	model_refused(t, ST_USAGE, "--dim a:4: no input has an axis of that name");
}

static void one_number_fills(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "N,3");
	model_input(t, "past", TENSOR_TYPE(FLOAT), "N,P");
	model_node(t, "Relu", "r", "past", "y");
	model_node(t, "Relu", "s", "x", "z");
	model_output(t, "y");
	model_output(t, "z");
	const struct import_fix fix = {"past", "2", NULL};
	t->options.nfix = 1;
	t->options.fix = &fix;
	t->options.batch = 2;
	model_refused(t, ST_USAGE, "--fix past=2 does not fit it");
	t->options.ndim = 1;
	t->options.dim = &(const struct import_dim){"P", 3};
	model_accepted(t);
	assert_int_equal(t->g->ninput, 1);
	test_known(t, "y", "2,3: 2 2 2 2 2 2");
	t->options.dim = &(const struct import_dim){"P", 0};
	model_accepted(t);
	test_known(t, "y", "2,0:");
}

static void sorts_nodes(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2");
	model_node(t, "Add", "last", "p,q", "y");
	model_node(t, "Relu", "first", "x", "p");
	model_node(t, "Relu", "second", "p", "q");
	model_output(t, "y");
	assert_int_equal(model_import(t), ST_OK);
	assert_string_equal(t->g->node[0]->name, "first");
	assert_string_equal(t->g->node[1]->name, "second");
	assert_string_equal(t->g->node[2]->name, "last");
}

static void optional_outputs(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2");
	model_node(t, "Split", "parts", "x,,", "a,,c");
	model_node(t, "Split", "part", "a,,c", "y,,");
	model_output(t, "y");
	model_output(t, "c");
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(t->g->node[0]->nin, 1);
	assert_int_equal(t->g->node[0]->nout, 3);
	assert_string_equal(t->g->node[0]->out[2]->name, "c");
	assert_int_equal(t->g->node[1]->nin, 3);
	assert_null(t->g->node[1]->in[1]);
	assert_int_equal(t->g->node[1]->nout, 1);
	assert_ptr_equal(t->g->output[1], t->g->node[0]->out[2]);
}

static void attributes(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	Onnx__NodeProto *n = t->graph.node[0];
	Onnx__AttributeProto *a = model_attribute(t, n, "f", ATTRIBUTE_TYPE(FLOAT));
	a->has_f = 1;
	a->f = 0.5f;
	a = model_attribute(t, n, "i", ATTRIBUTE_TYPE(INT));
	a->has_i = 1;
	a->i = -3;
	a = model_attribute(t, n, "s", ATTRIBUTE_TYPE(STRING));
	a->has_s = 1;
	a->s = (ProtobufCBinaryData){4, (uint8_t *)(uintptr_t) "text"};
	a = model_attribute(t, n, "ints", ATTRIBUTE_TYPE(UNDEFINED)); /* as old files have it */
	a->n_ints = 2;
	a->ints = (int64_t[]){5, 6};
	a = model_attribute(t, n, "floats", ATTRIBUTE_TYPE(FLOATS));
	a->n_floats = 1;
	a->floats = (float[]){1.5f};
	a = model_attribute(t, n, "empty", ATTRIBUTE_TYPE(STRING));
	a->has_s = 1;
	a = model_attribute(t, n, "strings", ATTRIBUTE_TYPE(STRINGS));
	a->n_strings = 2;
	a->strings = (ProtobufCBinaryData[]){{3, (uint8_t *)(uintptr_t) "one"}, {0, NULL}};
	a = model_attribute(t, n, "type", ATTRIBUTE_TYPE(TYPE_PROTO));
	assert_int_equal(model_import(t), ST_OK);
	const struct node *m = t->g->node[0];
	assert_true(node_float(m, "f", 0) == 0.5);
	assert_int_equal(node_int(m, "i", 0), -3);
	assert_string_equal(node_string(m, "s", ""), "text");
	assert_string_equal(node_string(m, "empty", "x"), "");
	assert_int_equal(node_attr(m, "ints")->n, 2);
	assert_int_equal(node_attr(m, "ints")->ints[1], 6);
	assert_true(node_attr(m, "floats")->floats[0] == 1.5);
	assert_int_equal(node_attr(m, "strings")->n, 2);
	assert_string_equal(node_attr(m, "strings")->strings[0], "one");
	assert_string_equal(node_attr(m, "strings")->strings[1], "");
	assert_int_equal(node_attr(m, "type")->kind, ATTR_OTHER);
}

static void constant_node(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	Onnx__NodeProto *n = model_node(t, "Constant", "", "", "k");
	Onnx__TensorProto *value = model_weights(t, "", "4");
	t->graph.n_initializer--; /* it belongs to the node */
	model_attribute(t, n, "value", ATTRIBUTE_TYPE(TENSOR))->t = value;
	model_node(t, "Add", "more", "y,k", "z");
	model_output(t, "z");
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(t->g->nnode, 3);
	const struct tensor *k = test_tensor(t, "k");
	assert_int_equal(k->role, TR_CONSTANT);
	assert_true(tensor_real(k, 3) == 3);
	assert_string_equal(t->g->output[1]->name, "z");
}

/* Names of any bytes but zero stay as they are. */
static void odd_names(void **state)
{
	struct model_test *t = *state;
	static const char odd[] = "\xff\x01 */ \"%s";
	model_input(t, odd, TENSOR_TYPE(FLOAT), "2");
	model_node(t, "Relu", "\n", odd, "\xc3");
	model_output(t, "\xc3");
	assert_int_equal(model_import(t), ST_OK);
	assert_string_equal(t->g->input[0]->name, odd);
	assert_string_equal(t->g->output[0]->name, "\xc3");
	assert_string_equal(t->g->node[0]->name, "\n");
}

static void other_domains(void **state)
{
	struct model_test *t = *state;
	Onnx__OperatorSetIdProto other = *t->model.opset_import[0];
	other.domain = "com.example";
	other.version = 2;
	t->model.opset_import[t->model.n_opset_import++] = &other;
	model_small(t);
	model_node(t, "Same", "again", "y", "z")->domain = "com.example";
	model_output(t, "z");
	assert_int_equal(model_import(t), ST_OK);
	assert_string_equal(t->g->output[1]->maker->op->name, "com.example.Same");
}

static void a_hundred_thousand_nodes(void **state)
{
	struct model_test *t = *state;
	enum { N = 100000 };
	model_input(t, "v0", TENSOR_TYPE(FLOAT), "2");
	/* all at once: appending one by one is quadratic */
	Onnx__NodeProto **node = ARENA_ARRAY(t->arena, Onnx__NodeProto *, N);
	for (int i = 0; i < N; i++) {
		t->graph.n_node = 0;
		node[N - 1 - i] = model_node(t, "Relu", "", arena_printf(t->arena, "v%d", i),
			arena_printf(t->arena, "v%d", i + 1));
	}
	t->graph.n_node = N;
	t->graph.node = node;
	model_output(t, "v100000");
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(t->g->nnode, N);
	assert_string_equal(t->g->node[0]->out[0]->name, "v1");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup, model_teardown)
	const struct CMUnitTest tests[] = {
		TEST(small_model),
		TEST(roles),
		TEST(initializer_among_inputs),
		TEST(sizes_by_name),
		TEST(batch_binds_first_axes),
		TEST(sizes_refused),
		TEST(sizes_by_place),
		TEST(one_number_fills),
		TEST(sorts_nodes),
		TEST(optional_outputs),
		TEST(attributes),
		TEST(constant_node),
		TEST(odd_names),
		TEST(other_domains),
		TEST(a_hundred_thousand_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
