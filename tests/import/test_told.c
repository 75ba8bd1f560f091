/* What is told of models that are odd, but not worth a test of their own: errors word by word, and
 * what a file does not say of its buffers and constants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "graph/pass.h"
#include "tests/import/notes.h"
#include "tests/import/operators.h"

static const float some[] = {
	.3F, -.2F, .7F, -.1F, .45F, .9F, -.6F, .15F, -.35F, .8F, -.05F, .55F, .25F, -.7F, .6F, .1F};

static void with_values(struct model_test *t, const char *name, const char *shape, size_t n)
{
	model_raw(model_tensor(t, name, TENSOR_TYPE(FLOAT), shape), some, n * sizeof *some);
}

/* --- Errors --- */

static void outputs_twice(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	model_output(t, "y");
	model_refused(t, ST_INVALID, "y (output): stands twice among the outputs");
}

static void tensors_too_large(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	model_tensor(t, "vast", TENSOR_TYPE(FLOAT), "2147483647,2147483647,2147483647");
	model_refused(t, ST_INVALID,
		"vast (tensor): its element count overflows at axis 1 (size 2147483647)");
	t->graph.n_initializer = 1;
	model_tensor(t, "deep", TENSOR_TYPE(FLOAT), "1,1,1,1,1,1,1,1,1");
	model_refused(t, ST_INVALID, "deep (tensor): has 9 axes");
	t->graph.n_initializer = 1;
	t->graph.n_input = 0;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2147483647,2147483647,2147483647");
	model_refused(
		t, ST_INVALID, "x (tensor): element count overflows at axis 1 (size 2147483647)");
}

/* What is wanted when compiling and comes from an input's whole numbers is told by --fix; from the
 * batch's real ones, by nothing. */
static void counts_from_an_input(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	model_input(t, "i", TENSOR_TYPE(INT64), "");
	model_node(t, "Add", "more", "i,i", "j");
	model_node(t, "Slice", "cut", "y,i,j", "z");
	model_output(t, "z");
	model_refused(
		t, ST_INVALID, "cut (Slice): input 1 (starts) is not a constant list of integers");
	test_said(t, "it comes from the input 'i': where that is the same in every step, --fix "
		     "i=NUMBERS says what it is");
}

static void counts_from_the_batch(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	model_int(t, model_node(t, "Cast", "whole", "y", "k"), "to", TENSOR_TYPE(INT64));
	model_node(t, "Slice", "cut", "y,k,k", "z");
	model_output(t, "z");
	model_refused(
		t, ST_INVALID, "cut (Slice): input 1 (starts) is not a constant list of integers");
	test_said(t, "stint resolves this when it compiles: export the model so that data do not "
		     "decide");
}

static void values_of_another_type(void **state)
{
	struct model_test *t = *state;
	static const int64_t whole[] = {1, 2, 3, 4, 5, 6, 7, 8}, dim[] = {2, 4};
	const struct import_data data = {
		.type = DT_I64, .rank = 2, .dim = {dim[0], dim[1]}, .v = whole};
	const struct import_fix fix = {.name = "x", .data = &data};
	model_small(t);
	t->options.nfix = 1;
	t->options.fix = &fix;
	model_refused(t, ST_USAGE, "x (input): the values given for it are of another type");
}

static void filled_with_two(void **state)
{
	struct model_test *t = *state;
	model_numbers(t, "shape", "2,3");
	Onnx__NodeProto *n = model_node(t, "ConstantOfShape", "n", "shape", "y");
	with_values(t, "two", "2", 2);
	model_attribute(t, n, "value", ATTRIBUTE_TYPE(TENSOR))
		->t = t->graph.initializer[--t->graph.n_initializer];
	model_output(t, "y");
	model_refused(t, ST_INVALID,
		"n (ConstantOfShape): attribute 'value' must be a tensor of one element");
}

static void rounded_twice(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(INT64), "2,3");
	notes_filled(t, "scale", "", 1, 0.5F);
	model_node(t, "QuantizeLinear", "n", "x,scale", "y");
	model_output(t, "y");
	t->options.qat = 1;
	model_refused(t, ST_INVALID, "n (QuantizeLinear): what it rounds are no real numbers");
}

static void lengths_of_known_sequences(void **state)
{
	struct model_test *t = *state;
	static const int32_t length[] = {2, 9};
	static const char *const all[] = {"*", NULL};
	with_values(t, "x", "2,2,2", 8);
	with_values(t, "w", "1,4,2", 8);
	with_values(t, "r", "1,4,1", 4);
	model_raw(model_tensor(t, "lens", TENSOR_TYPE(INT32), "2"), length, sizeof length);
	model_int(t, model_node(t, "LSTM", "n", "x,w,r,,lens", "y"), "hidden_size", 1);
	model_output(t, "y");
	t->options.freeze_pattern = all;
	model_refused(t, ST_INVALID, "n (LSTM): sequence_lens has 9, where there are 2 steps");
}

/* --- Control flow --- */

static void bodies_that_do_not_fit(void **state)
{
	struct model_test *t = *state;
	model_number(t, "three", 3);
	model_number(t, "start", 0);
	Onnx__NodeProto *n = model_node(t, "Loop", "loop", "three,,start", "end,more,most");
	model_loop_body(t, n, "v", TENSOR_TYPE(INT64), "");
	model_node(t, "Add", "", "v,i", "next");
	model_node(t, "SequenceConstruct", "", "v", "list");
	model_output(t, "go");
	model_output(t, "next");
	model_output(t, "list");
	model_outside(t);
	model_output(t, "end");
	model_refused(t, ST_INVALID,
		"loop (Loop): its body has 3 inputs and 3 outputs, which does not fit the node's");
	n->n_output = 2;
	model_refused(
		t, ST_INVALID, "loop (Loop): output 0 of its body is collected, but is no tensor");
}

static void branches_of_sequences(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2");
	model_input(t, "c", TENSOR_TYPE(BOOL), "");
	Onnx__NodeProto *n = model_node(t, "If", "choice", "c", "list");
	for (int i = 0; i < 2; i++) {
		model_inside(t, n, i ? "else_branch" : "then_branch");
		model_node(t, "SequenceConstruct", "", i ? "x,x" : "x", i ? "b" : "a");
		model_output(t, i ? "b" : "a");
		model_outside(t);
	}
	model_number(t, "zero", 0);
	model_node(t, "SequenceAt", "at", "list,zero", "y");
	model_output(t, "y");
	model_refused(t, ST_INVALID,
		"choice (If): output 0 of its branches is a sequence or an optional value");
}

/* --- Parameters, buffers and constants --- */

static void tied_to_what_was_made(void **state)
{
	struct model_test *t = *state;
	static const struct import_tie tie[] = {{"w@n1.1", "v@n2.1"}};
	static const char *const all[] = {"*", NULL};
	model_input(t, "x", TENSOR_TYPE(FLOAT), "4");
	with_values(t, "w", "4", 4);
	with_values(t, "v", "4", 4);
	model_node(t, "Add", "n0", "x,w", "a");
	model_node(t, "Mul", "n1", "a,w", "b");
	model_node(t, "Add", "n3", "b,v", "c");
	model_node(t, "Mul", "n2", "c,v", "y");
	model_output(t, "y");
	t->options.untie_pattern = all;
	t->options.tie = tie;
	t->options.ntie = 1;
	model_refused(t, ST_USAGE, "--tie w@n1.1=v@n2.1: not of one initializer of the file");
}

/* A parameter whose module has what the exporter computed in its place. */
static void folded_parameters(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	with_values(t, "w", "4", 4);
	with_values(t, "val_3", "4", 4);
	notes_signature(t, "p0: PARAMETER target='w'\np1: PARAMETER target='scale'\n");
	notes_call(t, "m", "aten.mul.Tensor", "%x, %p0", model_node(t, "Mul", "n0", "x,w", "a"));
	notes_call(
		t, "s", "aten.mul.Tensor", "%m, %p1", model_node(t, "Mul", "n1", "a,val_3", "y"));
	model_output(t, "y");
	model_accepted(t);
	test_said(t, "1 parameter of the module has been folded into constants: 'scale'");
}

static void left_out(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	with_values(t, "w", "4,4", 16);
	with_values(t, "val_3", "4", 4);
	model_node(t, "MatMul", "fc", "x,w", "a");
	model_node(t, "Mul", "scale", "a,val_3", "y");
	model_output(t, "y");
	model_accepted(t);
	test_said(t,
		"not trained, though it stands where parameters do, and the exporter may have made "
		"it of parameters: 'val_3'");
}

static void buffers_that_pytorch_replaces(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	with_values(t, "fc.weight_orig", "4,4", 16);
	with_values(t, "fc.weight_u", "4", 4);
	model_node(t, "MatMul", "n0", "x,fc.weight_orig", "a");
	model_node(t, "Mul", "n1", "a,fc.weight_u", "y");
	model_output(t, "y");
	model_accepted(t);
	test_said(t, "looks like spectral_norm, whose vectors PyTorch overwrites as it trains; the "
		     "file does not tell the new values: 'fc.weight_u'");
	notes_signature(t, "p0: PARAMETER target='fc.weight_orig'\n"
			   "b0: BUFFER target='fc.weight_u' persistent=True\n"
			   "gone: BUFFER_MUTATION target='fc.weight_u'\n");
	model_accepted(t);
	test_said(t,
		"PyTorch overwrites 1 buffer as it trains; what becomes of it the file does not "
		"tell, and it stays as in the file: 'fc.weight_u'");
	t->graph.n_node = 0;
	model_node(t, "MatMul", "n0", "x,fc.weight_orig", "a");
	model_node(t, "Add", "n2", "fc.weight_u,fc.weight_u", "add");
	model_node(t, "Mul", "n1", "a,add", "y");
	t->graph.base.n_unknown_fields = 0;
	notes_signature(t, "p0: PARAMETER target='fc.weight_orig'\n"
			   "b0: BUFFER target='fc.weight_u' persistent=True\n"
			   "add: BUFFER_MUTATION target='fc.weight_u'\n");
	model_accepted(t);
	test_said(t, "each step overwrites, as PyTorch does: 'fc.weight_u'");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(outputs_twice), T(tensors_too_large),
		T(counts_from_an_input), T(counts_from_the_batch), T(values_of_another_type),
		T(filled_with_two), T(rounded_twice), T(lengths_of_known_sequences),
		T(bodies_that_do_not_fit), T(branches_of_sequences), T(tied_to_what_was_made),
		T(folded_parameters), T(left_out), T(buffers_that_pytorch_replaces)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
