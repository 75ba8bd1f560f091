/* Sequences and optional values, resolved while a model is read: with the real operators. Where
 * everything is known the outputs are too, and are compared; what is computed then has bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/pass.h"
#include "tests/import/operators.h"

static void three(struct model_test *t)
{
	model_numbers(t, "a", "1,2");
	model_numbers(t, "b", "3");
	model_numbers(t, "c", "4,5,6");
	model_node(t, "SequenceConstruct", "seq", "a,b,c", "s");
}

static void sequences_join(void **state)
{
	struct model_test *t = *state;
	three(t);
	model_number(t, "one", 1);
	model_number(t, "back", -1);
	model_node(t, "SequenceLength", "", "s", "n");
	model_node(t, "SequenceAt", "", "s,back", "last");
	model_node(t, "SequenceErase", "", "s,one", "ac");
	model_node(t, "SequenceInsert", "", "ac,b", "acb");
	model_node(t, "SequenceInsert", "", "acb,a,back", "acab");
	model_node(t, "Identity", "", "acab", "same");
	model_int(t, model_node(t, "ConcatFromSequence", "", "same", "all"), "axis", 0);
	model_node(t, "SequenceEmpty", "", "", "none");
	model_node(t, "SequenceLength", "", "none", "zero");
	model_node(t, "SequenceErase", "", "s", "ab");
	model_node(t, "SequenceLength", "", "ab", "two");
	for (const char *const *o = (const char *const[]){"n", "last", "all", "zero", "two", NULL};
		*o; o++)
		model_output(t, *o);
	model_accepted(t);
	test_known(t, "n", ": 3");
	test_known(t, "last", "3: 4 5 6");
	test_known(t, "all", "8: 1 2 4 5 6 1 2 3");
	test_known(t, "zero", ": 0");
	test_known(t, "two", ": 2");
}

static void sequences_split(void **state)
{
	struct model_test *t = *state;
	model_numbers(t, "x", "1,2,3,4,5");
	model_numbers(t, "sizes", "1,4");
	model_number(t, "two", 2);
	model_number(t, "at", 1);
	model_node(t, "SplitToSequence", "", "x,two", "pairs");
	model_node(t, "SequenceAt", "", "pairs,at", "pair");
	model_node(t, "SplitToSequence", "", "x,sizes", "parts");
	model_node(t, "SequenceAt", "", "parts,at", "part");
	model_int(t, model_node(t, "SplitToSequence", "", "x", "scalars"), "keepdims", 0);
	model_node(t, "SequenceAt", "", "scalars,at", "scalar");
	Onnx__NodeProto *stack = model_node(t, "ConcatFromSequence", "", "scalars", "stacked");
	model_int(t, stack, "axis", 0);
	model_int(t, stack, "new_axis", 1);
	model_node(t, "SplitToSequence", "", "x", "ones");
	model_node(t, "SequenceAt", "", "ones,at", "one");
	for (const char *const *o =
			(const char *const[]){"pair", "part", "scalar", "stacked", "one", NULL};
		*o; o++)
		model_output(t, *o);
	model_accepted(t);
	test_known(t, "pair", "2: 3 4");
	test_known(t, "part", "4: 2 3 4 5");
	test_known(t, "scalar", ": 2");
	test_known(t, "stacked", "5: 1 2 3 4 5");
	test_known(t, "one", "1: 2");
}

/* What fuzzing found: the first three add up, what follows lay outside. */
static void pieces_that_do_not_fit(void **state)
{
	struct model_test *t = *state;
	model_numbers(t, "x", "1,2,3,4,5");
	model_numbers(t, "sizes", "1,2,2,60676,5");
	Onnx__NodeProto *n = model_node(t, "SplitToSequence", "cut", "x,sizes", "s");
	model_node(t, "SequenceLength", "", "s", "y");
	model_output(t, "y");
	model_refused(t, ST_INVALID, "the parts do not add up to axis 0 of size 5");
	n->op_type = "Split";
	n->n_output = 5;
	n->output = (char *[]){"a", "b", "c", "d", "y"};
	t->graph.n_node = 1;
	model_refused(t, ST_INVALID, "cut (Split): the parts do not add up to axis 0 of size 5");
}

/* What rules make at compile time is bounded. */
static void constants_too_large(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2147483647,1");
	Onnx__NodeProto *n = model_node(t, "EyeLike", "eye", "x", "y");
	model_output(t, "y");
	model_refused(t, ST_INVALID, "eye (EyeLike): would need more constants than stint makes");
	model_numbers(t, "shape", "50000000");
	n->op_type = "ConstantOfShape";
	n->input[0] = "shape";
	n->output[0] = "ones";
	model_node(t, "Unique", "unique", "ones", "y");
	model_refused(t, ST_INVALID, "unique (Unique): would take more work at compile time");
}

/* A word that is none of an option's. */
static void unknown_word(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,3");
	model_input(t, "label", TENSOR_TYPE(INT64), "2");
	Onnx__NodeProto *n = model_node(t, "NegativeLogLikelihoodLoss", "loss", "x,label", "y");
	Onnx__AttributeProto *a = model_attribute(t, n, "reduction", ATTRIBUTE_TYPE(STRING));
	a->has_s = 1;
	a->s = (ProtobufCBinaryData){6, (uint8_t *)(uintptr_t) "median"};
	model_output(t, "y");
	model_refused(t, ST_INVALID, "loss (NegativeLogLikelihoodLoss): ");
	a->type = ATTRIBUTE_TYPE(FLOAT);
	a->has_f = 1;
	a->f = 1e12f;
	model_refused(t, ST_INVALID, "loss (NegativeLogLikelihoodLoss): ");
}

static void sequences_mapped(void **state)
{
	struct model_test *t = *state;
	three(t);
	model_number(t, "ten", 10);
	model_number(t, "zero", 0);
	model_number(t, "two", 2);
	t->model.opset_import[0]->version = 18;
	Onnx__NodeProto *n = model_node(t, "SequenceMap", "map", "s,s,ten", "mapped,shapes");
	model_inside(t, n, "body");
	model_input(t, "p", TENSOR_TYPE(INT64), "?");
	model_input(t, "q", TENSOR_TYPE(INT64), "?");
	model_input(t, "r", TENSOR_TYPE(INT64), "");
	model_node(t, "Mul", "", "p,r", "pr");
	model_node(t, "Add", "", "pr,q", "out");
	model_node(t, "Shape", "", "p", "shape");
	model_output(t, "out");
	model_output(t, "shape");
	model_outside(t);
	model_node(t, "SequenceAt", "", "mapped,two", "y");
	model_node(t, "SequenceAt", "", "shapes,two", "z");
	model_output(t, "y");
	model_output(t, "z");
	model_accepted(t);
	test_known(t, "y", "3: 44 55 66");
	test_known(t, "z", "1: 3");
	model_node(t, "SequenceErase", "", "s", "short");
	n->input[1] = "short";
	model_refused(
		t, ST_INVALID, "map (SequenceMap): its sequences have different lengths, 3 and 2");
}

/* A list that a loop carries around, as PyTorch writes it. */
static void sequence_in_a_loop(void **state)
{
	struct model_test *t = *state;
	model_number(t, "four", 4);
	model_node(t, "SequenceEmpty", "", "", "empty");
	Onnx__NodeProto *n = model_node(t, "Loop", "loop", "four,,empty", "filled");
	model_loop_body(t, n, "list", TENSOR_TYPE(INT64), "");
	model_node(t, "Mul", "", "i,i", "square");
	model_node(t, "SequenceInsert", "", "list,square", "longer");
	model_output(t, "go");
	model_output(t, "longer");
	model_outside(t);
	Onnx__NodeProto *stack = model_node(t, "ConcatFromSequence", "", "filled", "y");
	model_int(t, stack, "axis", 0);
	model_int(t, stack, "new_axis", 1);
	model_output(t, "y");
	model_accepted(t);
	test_known(t, "y", "4: 0 1 4 9");
	const int64_t many = 50000; /* 50000 copies of up to 50000 */
	model_raw(t->graph.initializer[0], &many, sizeof many);
	model_refused(t, ST_INVALID, "nodes");
}

static void sequence_in_a_loop_ended_by_data(void **state)
{
	struct model_test *t = *state;
	model_number(t, "two", 2);
	model_input(t, "on", TENSOR_TYPE(BOOL), "");
	model_node(t, "SequenceEmpty", "", "", "empty");
	Onnx__NodeProto *n = model_node(t, "Loop", "loop", "two,,empty", "filled");
	model_loop_body(t, n, "list", TENSOR_TYPE(INT64), "");
	model_node(t, "SequenceInsert", "", "list,i", "longer");
	model_output(t, "on");
	model_output(t, "longer");
	model_outside(t);
	model_node(t, "SequenceLength", "", "filled", "y");
	model_output(t, "y");
	model_refused(t, ST_INVALID,
		"loop (Loop): data end it, and value 0 that goes around is no tensor");
}

static void sequences_refused(void **state)
{
	struct model_test *t = *state;
	three(t);
	model_number(t, "at", 3);
	model_input(t, "some", TENSOR_TYPE(INT64), "");
	Onnx__NodeProto *n = model_node(t, "SequenceAt", "pick", "s,at", "y");
	model_output(t, "y");
	model_refused(t, ST_INVALID, "pick (SequenceAt): position 3 lies outside a sequence of 3");
	n->input[1] = "some";
	model_refused(t, ST_INVALID, "pick (SequenceAt): the position 'some' is not known");
	n->input[0] = "a";
	model_refused(t, ST_INVALID, "pick (SequenceAt): input 0 is no sequence");
	n->op_type = "Add";
	n->input[0] = "s";
	n->input[1] = "a";
	model_refused(t, ST_INVALID, "pick (Add): reads 's', a sequence, but takes tensors only");
	n->op_type = "SequenceInsert";
	n->input[1] = "s";
	model_refused(t, ST_INVALID, "pick (SequenceInsert): input 1 is no tensor");
	n->input[1] = "a";
	model_refused(t, ST_INVALID, "y (output): is no tensor");
	n->op_type = "ConcatFromSequence";
	n->n_input = 1;
	model_refused(t, ST_INVALID, "has no axis");
	model_int(t, n, "axis", 1);
	model_refused(t, ST_INVALID, "axis 1 is out of range");
	n->op_type = "SequenceErase";
	t->graph.node[0]->op_type = "SequenceEmpty";
	t->graph.node[0]->n_input = 0;
	model_refused(t, ST_INVALID, "erases from an empty sequence");
}

static void optional_values(void **state)
{
	struct model_test *t = *state;
	three(t);
	model_number(t, "at", 0);
	t->model.opset_import[0]->version = 18;
	Onnx__NodeProto *n = model_node(t, "Optional", "", "", "nothing");
	model_attribute(t, n, "type", ATTRIBUTE_TYPE(TYPE_PROTO))->tp = ARENA_NEW(
		t->arena, Onnx__TypeProto);
	onnx__type_proto__init(n->attribute[0]->tp);
	model_node(t, "Optional", "", "s", "some");
	model_node(t, "Identity", "", "nothing", "nothing2");
	model_node(t, "OptionalHasElement", "", "nothing2", "no");
	model_node(t, "OptionalHasElement", "", "some", "yes");
	Onnx__NodeProto *get = model_node(t, "OptionalGetElement", "get", "some", "list");
	model_node(t, "SequenceAt", "", "list,at", "y");
	for (const char *const *o = (const char *const[]){"no", "yes", "y", NULL}; *o; o++)
		model_output(t, *o);
	model_accepted(t);
	test_known(t, "no", ": 0");
	test_known(t, "yes", ": 1");
	test_known(t, "y", "2: 1 2");
	get->input[0] = "nothing";
	model_refused(t, ST_INVALID, "get (OptionalGetElement): required input 0 is missing");
}

/* Whole numbers that no int64 holds wrap round, and have a root and a magnitude all the same. */
static void numbers_too_large(void **state)
{
	struct model_test *t = *state;
	model_numbers(t, "x", "2,3037000500"); /* the square of the second is above 2^63 */
	model_numbers(t, "least", "-9223372036854775808");
	model_node(t, "ReduceL2", "", "x", "root");
	model_node(t, "ReduceL1", "", "least", "magnitude");
	model_output(t, "root");
	model_output(t, "magnitude");
	model_accepted(t);
	test_known(t, "root", "1: 0");
	test_known(t, "magnitude", "1: -9.22337e+18");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {
		TEST(sequences_join),
		TEST(sequences_split),
		TEST(pieces_that_do_not_fit),
		TEST(constants_too_large),
		TEST(unknown_word),
		TEST(sequences_mapped),
		TEST(sequence_in_a_loop),
		TEST(sequence_in_a_loop_ended_by_data),
		TEST(sequences_refused),
		TEST(optional_values),
		TEST(numbers_too_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
