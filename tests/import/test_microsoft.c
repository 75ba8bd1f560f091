/* ONNX Runtime's own operators: which of their initializers are trained, and what is refused, with
 * what helps. Their numbers are onnx.microsoft's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/import/notes.h"
#include "tests/import/operators.h"

static const int real = TENSOR_TYPE(FLOAT), whole = TENSOR_TYPE(INT64);

static void text_attribute(
	struct model_test *t, Onnx__NodeProto *n, const char *name, const char *text)
{
	Onnx__AttributeProto *a = model_attribute(t, n, name, ATTRIBUTE_TYPE(STRING));
	a->has_s = 1;
	a->s.data = (uint8_t *)arena_strdup(t->arena, text);
	a->s.len = strlen(text);
}

/* Names that tools make say nothing: where the operators read them does. */
static void weights_and_tables(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", real, "2,3,4");
	model_input(t, "place", whole, "2,3");
	model_weights(t, "onnx::Add_7", "4");
	model_weights(t, "onnx::Mul_8", "4");
	model_weights(t, "onnx::Add_9", "4");
	model_weights(t, "cos_cache", "9,1");
	model_weights(t, "sin_cache", "9,1");
	model_custom(t, "com.microsoft.BiasGelu", "gelu", "x,onnx::Add_7", "a");
	model_custom(t, "com.microsoft.SkipLayerNormalization", "norm",
		"a,x,onnx::Mul_8,onnx::Add_9", "b");
	model_custom(
		t, "com.microsoft.RotaryEmbedding", "turn", "b,place,cos_cache,sin_cache", "y");
	model_output(t, "y");
	model_accepted(t);
	assert_int_equal(test_tensor(t, "onnx::Add_7")->role, TR_PARAMETER);
	assert_int_equal(test_tensor(t, "onnx::Mul_8")->role, TR_PARAMETER);
	assert_int_equal(test_tensor(t, "onnx::Add_9")->role, TR_PARAMETER);
	assert_int_equal(test_tensor(t, "cos_cache")->role, TR_CONSTANT);
	assert_int_equal(test_tensor(t, "sin_cache")->role, TR_CONSTANT);
}

/* Outputs are counted along the axis that transB says. */
static void a_turned_head(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", real, "2,4");
	model_weights(t, "w", "3,4");
	Onnx__NodeProto *n = model_custom(t, "com.microsoft.FusedMatMul", "fc", "x,w", "y");
	model_int(t, n, "transB", 1);
	model_output(t, "y");
	t->options.head = 5;
	model_accepted(t);
	assert_int_equal(test_tensor(t, "w")->dim[0], 5);
	assert_int_equal(test_tensor(t, "w")->dim[1], 4);
	assert_int_equal(test_tensor(t, "y")->dim[1], 5);
}

static void activations(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", real, "2,4");
	model_weights(t, "w", "4,3");
	Onnx__NodeProto *n = model_custom(t, "com.microsoft.FusedGemm", "fc", "x,w", "y");
	model_output(t, "y");
	text_attribute(t, n, "activation", "LeakyRelu");
	model_refused(
		t, ST_INVALID, "fc (com.microsoft.FusedGemm): its activation LeakyRelu lacks");
	n->attribute[0]->s = (ProtobufCBinaryData){4, (uint8_t *)(uintptr_t) "Mish"};
	model_refused(t, ST_INVALID, "its activation 'Mish' is not known");
	test_said(t, "export the model without ONNX Runtime's fusions");
}

/* A node of attention that reads x [2,3,8], w, and more. */
static Onnx__NodeProto *attention(struct model_test *t, const char *op, const char *inputs)
{
	model_input(t, "x", real, "2,3,8");
	model_weights(t, "w", "8,24");
	Onnx__NodeProto *n = model_custom(t, op, "att", inputs, "y");
	model_int(t, n, "num_heads", 2);
	model_output(t, "y");
	return n;
}

static void in_attention(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = attention(t, "com.microsoft.Attention", "x,w,,mask");
	model_input(t, "mask", whole, "2,1,3,3");
	model_refused(t, ST_INVALID,
		"att (com.microsoft.Attention): its mask [2, 1, 3, 3] is not of the forms that are "
		"known");
	test_said(t, "export the mask as [batch, keys]");
	model_int(t, n, "do_rotary", 1);
	model_refused(t, ST_INVALID, "a rotation inside of it (do_rotary) is not supported");
	test_said(t, "export with RotaryEmbedding and MultiHeadAttention");
}

static void in_several_heads(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = attention(t, "com.microsoft.MultiHeadAttention", "x,k,k,,,,,,length");
	model_input(t, "k", real, "2,5,8");
	model_input(t, "length", whole, "1");
	model_refused(t, ST_INVALID,
		"att (com.microsoft.MultiHeadAttention): a past in a buffer of its own");
	test_said(t, "export the model without a cache (use_cache=False)");
	n->n_input = 3;
	model_int(t, n, "unidirectional", 1);
	model_refused(t, ST_INVALID, "unidirectional with fewer queries than keys");
	test_said(t, "give the mask as the addend of the scores");
	n->n_input = 2;
	model_refused(t, ST_INVALID, "q must be [batch,tokens,width]");
}

static void in_groups(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = attention(
		t, "com.microsoft.GroupQueryAttention", "x,x,x,past,past,lengths,total");
	model_int(t, n, "kv_num_heads", 2);
	model_input(t, "past", real, "2,2,5,4");
	model_input(t, "lengths", whole, "2");
	model_input(t, "total", whole, "1");
	model_refused(t, ST_INVALID,
		"how many tokens there are in all, 'total', is not known at compile time");
	test_said(t, "or with a past of no tokens");
	t->graph.input[1]->type->tensor_type->shape->dim[2]->dim_value = 0;
	model_int(t, n, "sliding_window_cache", 1);
	model_refused(t, ST_INVALID, "a past of a window's size is not supported");
	n->attribute[n->n_attribute - 1]->i = 0;
	text_attribute(t, n, "k_quant_type", "PER_TENSOR");
	model_refused(t, ST_INVALID, "a past in whole numbers is not supported");
	n->n_attribute--;
	model_accepted(t);
}

/* Whole numbers beside what the loss reads go with a note; in its way they are refused, with what
 * trains. */
static void whole_numbers(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", real, "2,4");
	model_weights(t, "w", "4,4");
	model_node(t, "MatMul", "fc", "x,w", "y");
	model_node(t, "DynamicQuantizeLinear", "round", "y", "q,s,z");
	model_output(t, "y");
	model_output(t, "q");
	t->options.read = IMPORT_READ_OUTPUTS;
	t->options.output = (const char *const[]){"y", NULL};
	model_accepted(t);
	test_said(t, "not read by the loss and left out: 'round' (DynamicQuantizeLinear)");
	test_said(t, "train the model as it was before quantize_dynamic");
	t->options.read = IMPORT_READ_ALL;
	model_refused(
		t, ST_INVALID, "round (DynamicQuantizeLinear): operator DynamicQuantizeLinear");
	test_said(t, "train the model as it was before quantize_dynamic");
}

/* What ONNX Runtime's level "all" writes says what to write instead. */
static void in_blocks(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", real, "1,8,4,4");
	model_node(t, "Relu", "act", "x", "y");
	Onnx__NodeProto *n = model_node(t, "MaxPool", "pool", "y", "z");
	n->domain = "com.microsoft.nchwc";
	model_output(t, "z");
	model_refused(t, ST_INVALID,
		"pool (com.microsoft.nchwc.MaxPool): operator com.microsoft.nchwc.MaxPool is not "
		"supported");
	test_said(t, "ONNX Runtime's optimization level \"all\" wrote it");
	test_said(t, "write the model at \"extended\"");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {TEST(weights_and_tables), TEST(a_turned_head),
		TEST(activations), TEST(in_attention), TEST(in_several_heads), TEST(in_groups),
		TEST(whole_numbers), TEST(in_blocks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
