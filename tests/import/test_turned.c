/* Weights of linear layers that exporters store transposed under names of their own are the
 * module's again (import/turned.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/import/notes.h"
#include "tests/import/operators.h"

static const char linear[] = "aten.linear.default";

static Onnx__NodeProto *product(
	struct model_test *t, const char *name, const char *reads, const char *makes)
{
	return model_node(t, "MatMul", name, reads, makes);
}

/* The parameter whose transpose a node reads. */
static const struct tensor *turned(const struct model_test *t, const char *node)
{
	const struct tensor *x = notes_input(t, node, 1);
	assert_non_null(x->maker);
	assert_string_equal(x->maker->op->name, "Transpose");
	assert_int_equal(x->maker->in[0]->role, TR_PARAMETER);
	return x->maker->in[0];
}

static void reads_turned(const struct model_test *t, const char *node, const char *name)
{
	assert_string_equal(turned(t, node)->name, name);
}

/* x [2, 4] and a signature of two layers. */
static void begin(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_signature(t,
		"p_a_w: PARAMETER target='a.weight'\np_b_w: PARAMETER target='b.weight'\n"
		"x: USER_INPUT\n");
}

/* Node `name`, a layer whose weight is `parameter`, reads x and the weight: "x,val_0". */
static void layer(struct model_test *t, const char *name, const char *parameter, const char *reads,
	const char *makes)
{
	notes_call(t, name, linear, arena_printf(t->arena, "%%x, %%%s", parameter),
		product(t, name, reads, makes));
}

/* One layer after the other, of the parameters of these names, which read these weights. */
static void layers(
	struct model_test *t, const char *const parameter[2], const char *const weight[2])
{
	layer(t, "n0", parameter[0], arena_printf(t->arena, "x,%s", weight[0]), "v");
	layer(t, "n1", parameter[1], arena_printf(t->arena, "v,%s", weight[1]), "y");
	model_output(t, "y");
	model_accepted(t);
}

static const char *const first_twice[] = {"p_a_w", "p_a_w"}, *const each[] = {"p_a_w", "p_b_w"},
			 *const own[] = {"val_0", "val_1"}, *const shared[] = {"val_0", "val_0"};

static void by_calls(void **state)
{
	struct model_test *t = *state;
	begin(t);
	model_weights(t, "val_0", "4,6");
	layer(t, "n0", "p_a_w", "x,val_0", "y");
	model_output(t, "y");
	model_accepted(t);
	reads_turned(t, "n0", "a.weight");
	const struct tensor *w = turned(t, "n0");
	assert_int_equal(w->dim[0], 6);
	assert_int_equal(w->dim[1], 4);
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < 4; k++)
			assert_true(tensor_real(w, i * 4 + k) == k * 6 + i);
	assert_string_equal(w->why, "parameter of the module, turned: val_0");
	assert_int_equal(t->diag.warnings, 0);
	t->options.freeze_pattern = (const char *const[]){"a.*", NULL};
	model_accepted(t);
	notes_not_trained(t, "a.weight", "--freeze");
}

/* Values beside the model; 130 rows are more than are turned at a time. */
static void from_a_file(void **state)
{
	struct model_test *t = *state;
	float values[4 * 130];
	for (int i = 0; i < 4 * 130; i++)
		values[i] = (float)i;
	begin(t);
	test_write(t, "weights", values, sizeof values);
	model_external(
		t, model_tensor(t, "val_0", TENSOR_TYPE(FLOAT), "4,130"), "weights", "0", "2080");
	layer(t, "n0", "p_a_w", "x,val_0", "y");
	model_output(t, "y");
	model_accepted(t);
	const struct tensor *w = turned(t, "n0");
	for (int i = 0; i < 130; i++)
		for (int k = 0; k < 4; k++)
			assert_true(tensor_real(w, i * 4 + k) == k * 130 + i);
}

/* Fresh layers of equal weights, which the exporter merged: each has its own. */
static void merged(void **state)
{
	struct model_test *t = *state;
	begin(t);
	notes_filled(t, "val_0", "4,4", 16, 2);
	layers(t, each, shared);
	reads_turned(t, "n0", "a.weight");
	reads_turned(t, "n1", "b.weight");
}

/* One layer called twice, its weight folded twice: one parameter, whose gradients add up. */
static void called_twice(void **state)
{
	struct model_test *t = *state;
	begin(t);
	model_weights(t, "val_0", "4,4");
	model_weights(t, "val_1", "4,4");
	layers(t, first_twice, own);
	assert_ptr_equal(turned(t, "n0"), turned(t, "n1"));
	reads_turned(t, "n0", "a.weight");
}

/* Two of other values cannot be one parameter: both stay what they are. */
static void disputed(void **state)
{
	struct model_test *t = *state;
	begin(t);
	model_weights(t, "val_0", "4,4");
	notes_filled(t, "val_1", "4,4", 16, 2);
	layers(t, first_twice, own);
	notes_reads(t, "n0", 1, "val_0");
	notes_reads(t, "n1", 1, "val_1");
}

/* A call whose weight is computed, a product of the module's own, one that multiplies from the
 * left: nobody's transpose. */
static void of_nobody(void **state)
{
	struct model_test *t = *state;
	begin(t);
	model_weights(t, "val_0", "4,4");
	model_weights(t, "val_1", "4,4");
	model_weights(t, "val_2", "2,2");
	layer(t, "n0", "mul", "x,val_0", "u");
	notes_call(
		t, "matmul", "aten.matmul.default", "%u, %p_b_w", product(t, "n1", "u,val_1", "v"));
	layer(t, "n2", "p_a_w", "val_2,v", "y");
	model_output(t, "y");
	model_accepted(t);
	for (int i = 0; i < 3; i++) {
		static const char *const node[] = {"n0", "n1", "n2"}, *const name[] = {"val_0",
									      "val_1", "val_2"};
		assert_string_equal(notes_input(t, node[i], i < 2)->name, name[i]);
	}
}

/* What is a parameter's transpose for all that the file tells, and may be half of it: a decomposed
 * export, and the older exporter's. */
static void not_for_certain(void **state)
{
	struct model_test *t = *state;
	begin(t);
	model_weights(t, "permute_3", "4,6");
	model_weights(t, "onnx::MatMul_96", "4,6");
	notes_call(t, "addmm", "aten.mm.default", "%x, %permute_3",
		notes_from(t, "a", product(t, "n0", "x,permute_3", "y")));
	product(t, "/b/MatMul", "x,onnx::MatMul_96", "z");
	model_output(t, "y");
	model_output(t, "z");
	model_accepted(t);
	notes_reads(t, "n0", 1, "permute_3");
	assert_string_equal(notes_input(t, "/b/MatMul", 1)->name, "onnx::MatMul_96");
}

/* A node makes what the module calls its weight. */
static void name_taken(void **state)
{
	struct model_test *t = *state;
	begin(t);
	model_weights(t, "val_0", "4,4");
	model_node(t, "Relu", "r", "x", "a.weight");
	layer(t, "n0", "p_a_w", "a.weight,val_0", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "n0", 1, "val_0");
}

/* --tie knows them by their new names. */
static void tied_as_asked(void **state)
{
	static const struct import_tie tie[] = {{"a.weight", "b.weight"}};
	struct model_test *t = *state;
	begin(t);
	model_weights(t, "val_0", "4,4");
	notes_filled(t, "val_1", "4,4", 16, 2);
	t->options.tie = tie;
	t->options.ntie = 1;
	layers(t, each, own);
	reads_turned(t, "n0", "a.weight");
	reads_turned(t, "n1", "a.weight");
	for (int i = 0; i < t->g->ntensor; i++)
		assert_string_not_equal(t->g->tensor[i]->name, "b.weight");
}

static void left_as_asked(void **state)
{
	struct model_test *t = *state;
	begin(t);
	model_weights(t, "val_0", "4,4");
	layer(t, "n0", "p_a_w", "x,val_0", "y");
	model_output(t, "y");
	t->options.untie_pattern = (const char *const[]){"val_0", NULL};
	model_accepted(t);
	notes_reads(t, "n0", 1, "val_0");
}

/* A weight repeated for each of a batch would be trained as so many. */
static void repeated(void **state)
{
	struct model_test *t = *state;
	float values[3 * 2 * 4];
	for (int i = 0; i < 3 * 2 * 4; i++)
		values[i] = (float)(i % 8);
	model_input(t, "x", TENSOR_TYPE(FLOAT), "3,5,2");
	model_raw(model_tensor(t, "view_1", TENSOR_TYPE(FLOAT), "3,2,4"), values, sizeof values);
	notes_signature(t, "p_a_w: PARAMETER target='a.weight'\n");
	notes_call(t, "bmm", "aten.bmm.default", "%x, %view_1", product(t, "n0", "x,view_1", "y"));
	model_output(t, "y");
	model_accepted(t);
	notes_not_trained(t, "view_1", "one weight, which the exporter repeated");
	assert_int_equal(t->diag.warnings, 1);
	test_said(t, "what the exporter computed: 'view_1'");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(by_calls), T(from_a_file), T(merged), T(called_twice),
		T(disputed), T(of_nobody), T(not_for_certain), T(name_taken), T(tied_as_asked),
		T(left_as_asked), T(repeated)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
