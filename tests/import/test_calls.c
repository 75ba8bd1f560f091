/* What is taken from the calls that a dynamo file notes: biases that the exporter removed, rows of
 * padding, parameters that are nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/import/notes.h"
#include "tests/import/operators.h"

/* --- Biases --- */

static const char signature[] = "p0: PARAMETER target='c.weight'\np1: PARAMETER target='c.bias'\n"
				"p2: PARAMETER target='t.weight'\np3: PARAMETER target='t.bias'\n"
				"p4: PARAMETER target='l.weight'\np5: PARAMETER target='l.bias'\n"
				"p6: PARAMETER target='m.weight'\np7: PARAMETER target='m.bias'\n"
				"p8: PARAMETER target='free.weight'\n";

/* A convolution that is called twice, a transposed one in groups, a linear layer, and an addmm. */
static void without_biases(struct model_test *t, bool calls)
{
	static const char conv[] = "aten.conv2d.default", turned[] = "aten.convolution.default";
	Onnx__NodeProto *n[5];
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4,5,5");
	model_weights(t, "c.weight", "4,4,1,1");
	model_weights(t, "t.weight", "4,3,1,1");
	model_weights(t, "l.weight", "7,150");
	model_weights(t, "m.weight", "7,9");
	model_weights(t, "free.weight", "9,2");
	model_numbers(t, "flat", "2,150");
	n[0] = model_node(t, "Conv", "n0", "x,c.weight", "a");
	n[1] = model_node(t, "Conv", "n1", "a,c.weight", "b");
	n[2] = model_node(t, "ConvTranspose", "n2", "b,t.weight", "d");
	model_int(t, n[2], "group", 2);
	model_node(t, "Reshape", "r", "d,flat", "e");
	n[3] = model_node(t, "Gemm", "n3", "e,l.weight", "f");
	model_int(t, n[3], "transB", 1);
	n[4] = model_node(t, "Gemm", "n4", "f,m.weight", "g");
	model_node(t, "Gemm", "n5", "g,free.weight", "y");
	static const char *const scope[] = {"c", "c", "t", "l", "m"};
	for (int i = 0; i < 5; i++)
		notes_from(t, scope[i], n[i]);
	if (calls) {
		notes_call(t, "c0", conv, "%x, %p0, %p1", n[0]);
		notes_call(t, "c1", conv, "%c0, %p0, %p1", n[1]);
		notes_call(t, "c2", turned, "%c1, %p2, %p3, [1], [0], [1], True, [0], 2", n[2]);
		notes_call(t, "c3", "aten.linear.default", "%view, %p4, %p5", n[3]);
		notes_call(t, "c4", "aten.addmm.default", "%p7, %c3, %p6", n[4]);
	}
	notes_signature(t, signature);
	model_output(t, "y");
}

static void check_biases(struct model_test *t, bool calls)
{
	static const char *const node[] = {"n0", "n1", "n2", "n3", "n4"};
	static const char *const bias[] = {"c.bias", "c.bias", "t.bias", "l.bias", "m.bias"};
	static const int length[] = {4, 4, 6, 7, 9};
	without_biases(t, calls);
	model_accepted(t);
	assert_int_equal(t->diag.warnings, 1);
	test_said(t, "4 biases of zeros, which the exporter took away, are not trained: 'c.bias', "
		     "'t.bias', 'l.bias', 'm.bias'");
	t->options.restore_biases = true;
	model_accepted(t);
	assert_int_equal(t->diag.warnings, 0);
	for (int i = 0; i < 5; i++) {
		const struct tensor *b = notes_input(t, node[i], 2);
		notes_reads(t, node[i], 2, bias[i]);
		assert_int_equal(b->rank, 1);
		assert_int_equal(b->numel, length[i]);
		assert_true(tensor_real(b, 0) == 0 && tensor_real(b, length[i] - 1) == 0);
	}
	assert_ptr_equal(notes_input(t, "n0", 2), notes_input(t, "n1", 2));
	/* the copy of the model has them */
	const char *copy = test_path(t, "copy.onnx");
	assert_int_equal(import_copy_model(test_path(t, "model.onnx"), copy, &t->options, t->table,
				 NULL, NULL, &t->diag),
		ST_OK);
	t->options.restore_biases = false;
	assert_int_equal(test_import(t, copy), ST_OK);
	assert_int_equal(t->diag.warnings, 0);
	notes_reads(t, "n2", 2, "t.bias");
}

static void biases_by_calls(void **state)
{
	check_biases(*state, true);
}

static void biases_by_names(void **state)
{
	check_biases(*state, false);
}

/* --- Padding --- */

static void lookup(struct model_test *t, const char *padding, const char *unused)
{
	model_input(t, "i", TENSOR_TYPE(INT64), "4");
	model_weights(t, "em.weight", "3,2");
	model_weights(t, "plain.weight", "3,2");
	notes_signature(t, arena_printf(t->arena,
				   "p0: PARAMETER target='em.weight'\n"
				   "p1: PARAMETER target='plain.weight'\n%s",
				   unused));
	notes_call(t, "e0", "aten.embedding.default",
		arena_printf(t->arena, "%%p0, %%i%s", padding),
		model_node(t, "Gather", "n0", "em.weight,i", "a"));
	model_node(t, "Gather", "n1", "plain.weight,i", "b");
	model_node(t, "Add", "sum", "a,b", "y");
	model_output(t, "y");
}

static int64_t padding_at(const struct model_test *t, const char *name)
{
	for (int i = 0; i < t->g->nnode; i++)
		if (!strcmp(t->g->node[i]->name, name))
			return node_int(t->g->node[i], "padding_idx", -1);
	fail_msg("no node '%s'", name);
	return 0;
}

static void padding_is_noted(void **state)
{
	struct model_test *t = *state;
	lookup(t, ", 2", "");
	model_accepted(t);
	assert_int_equal(padding_at(t, "n0"), 2);
	assert_int_equal(padding_at(t, "n1"), -1);
}

static void no_padding(void **state)
{
	static const char *const none[] = {"", ", -1", ", None"};
	struct model_test *t = *state;
	for (int i = 0; i < 3; i++) {
		t->graph.n_input = t->graph.n_initializer = t->graph.n_node = 0;
		t->graph.n_output = 0;
		lookup(t, none[i], "");
		model_accepted(t);
		assert_int_equal(padding_at(t, "n0"), -1);
	}
}

static void padding_is_asked_for(void **state)
{
	const struct import_padding padding[] = {{"em.weight", 0}, {"plain.weight", -1}};
	const struct import_padding wrong[] = {{"em.weight", 3}, {"none", 1}};
	struct model_test *t = *state;
	lookup(t, ", 2", "");
	t->options.padding = padding;
	t->options.npadding = 2;
	model_accepted(t);
	assert_int_equal(padding_at(t, "n0"), 0);
	assert_int_equal(padding_at(t, "n1"), 2);
	t->options.padding = wrong;
	t->options.npadding = 1;
	model_refused(t, ST_INVALID, "its padding index 3 is not a row of 'em.weight'");
	t->options.npadding = 2;
	model_refused(t, ST_USAGE, "nothing looks up rows of an initializer 'none'");
}

/* --- Parameters that are nowhere --- */

/* Unused ones and second names are in no call, and no constant could hold them. */
static void unused_ones_are_fine(void **state)
{
	struct model_test *t = *state;
	lookup(t, ", -1", "p2: PARAMETER target='unused.weight'\n");
	model_accepted(t);
	assert_int_equal(t->diag.warnings, 0);
}

/* A class token that was expanded: a call has the result, which no node makes. */
static void folded_ones_are_told(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "w", "4");
	model_weights(t, "expand", "2,4");
	notes_signature(t, "p0: PARAMETER target='w'\np1: PARAMETER target='token'\n");
	notes_call(t, "m", "aten.mul.Tensor", "%x, %p0", model_node(t, "Mul", "n0", "x,w", "a"));
	notes_call(t, "s", "aten.add.Tensor", "%m, %expand",
		model_node(t, "Add", "n1", "a,expand", "y"));
	model_output(t, "y");
	model_accepted(t);
	test_said(t, "1 parameter of the module is nowhere in the file");
	test_said(t, "'token'; what the exporter computed: 'expand'");
}

/* --- Files that do not tell buffers from parameters --- */

static void suspects(struct model_test *t)
{
	static const float shift[] = {0.3f, -1, 0.25f, 7}, eye[] = {1, 0, 0, 1};
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "head.anchors", "4"); /* 0, 1, 2, 3 */
	model_weights(t, "neck.anchors", "4");
	model_raw(model_tensor(t, "bias", TENSOR_TYPE(FLOAT), "4"), shift, sizeof shift);
	notes_filled(t, "scale", "4", 4, 1);
	model_raw(model_tensor(t, "eye", TENSOR_TYPE(FLOAT), "2,2"), eye, sizeof eye);
	model_numbers(t, "pairs", "4,2");
	model_node(t, "Add", "n0", "x,head.anchors", "a");
	model_node(t, "Mul", "n1", "a,neck.anchors", "b");
	model_node(t, "Add", "n2", "b,bias", "c");
	model_node(t, "Mul", "n3", "c,scale", "d");
	model_node(t, "Reshape", "n4", "d,pairs", "e");
	model_node(t, "MatMul", "n5", "e,eye", "y");
	model_output(t, "y");
}

static void suspects_are_noted(void **state)
{
	struct model_test *t = *state;
	suspects(t);
	model_accepted(t);
	notes_reads(t, "n0", 1, "head.anchors");
	test_said(t, "trained by their names, but look like no parameters: 'head.anchors', "
		     "'neck.anchors'; the file does not tell buffers from parameters");
	test_said(t, "--freeze '*.anchors'\n");
	t->options.freeze_pattern = (const char *const[]){"*.anchors", NULL};
	model_accepted(t);
	assert_null(t->said.s);
}

static void no_suspects_where_the_file_tells(void **state)
{
	struct model_test *t = *state;
	suspects(t);
	notes_signature(t, "p0: PARAMETER target='head.anchors'\n");
	model_accepted(t);
	assert_null(t->said.s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(biases_by_calls), T(biases_by_names),
		T(padding_is_noted), T(no_padding), T(padding_is_asked_for),
		T(unused_ones_are_fine), T(folded_ones_are_told), T(suspects_are_noted),
		T(no_suspects_where_the_file_tells)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
