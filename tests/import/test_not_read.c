/* What the loss does not read and cannot be built is left out, with a note; what it reads must be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/import/operators.h"

/* y = Relu(x + w); z = Relu(Mystery(y)); c is of one shape or of another. */
static void beside(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_input(t, "flag", TENSOR_TYPE(BOOL), "");
	model_weights(t, "w", "4");
	model_node(t, "Add", "sum", "x,w", "s");
	model_node(t, "Relu", "act", "s", "y");
	model_node(t, "Mystery", "m", "y", "q");
	model_node(t, "Relu", "after", "q", "z");
	Onnx__NodeProto *n = model_node(t, "If", "choice", "flag", "c");
	model_inside(t, n, "then_branch");
	model_node(t, "Relu", "", "y", "out");
	model_output(t, "out");
	model_inside(t, n, "else_branch");
	model_output(t, "w");
	model_outside(t);
	model_output(t, "y");
	model_output(t, "z");
	model_output(t, "c");
}

static void read_is(struct model_test *t, enum import_read read, const char *output)
{
	static const char *list[2];
	list[0] = output;
	t->options.read = read;
	t->options.output = output ? list : NULL;
}

static void behind_the_loss(void **state)
{
	struct model_test *t = *state;
	beside(t);
	read_is(t, IMPORT_READ_OUTPUTS, "y");
	model_accepted(t);
	assert_int_equal(t->g->noutput, 1);
	assert_string_equal(t->g->output[0]->name, "y");
	test_said(t, "not read by the loss and left out: 'm' (Mystery): operator Mystery is not");
	test_said(t, "'choice' (If): its output 0 is f32[2, 4] in then_branch and f32[4] in "
		     "else_branch");
	test_said(t, "1 node behind; outputs left out: 'z', 'c'");
	assert_int_equal(t->diag.errors, 0);
}

static void read_by_the_loss(void **state)
{
	struct model_test *t = *state;
	beside(t);
	read_is(t, IMPORT_READ_OUTPUTS, "z");
	model_refused(t, ST_INVALID, "m (Mystery): operator Mystery is not supported");
	read_is(t, IMPORT_READ_OUTPUTS, "c");
	model_refused(t, ST_INVALID, "choice (If): its output 0 is f32[2, 4] in then_branch");
	read_is(t, IMPORT_READ_ALL, NULL);
	model_refused(t, ST_INVALID, "m (Mystery): operator Mystery is not supported");
}

static void as_much_as_can_be(void **state)
{
	struct model_test *t = *state;
	beside(t);
	read_is(t, IMPORT_READ_ANY, NULL);
	model_accepted(t);
	assert_int_equal(t->g->noutput, 1);
	test_said(t, "cannot be built and left out: 'm' (Mystery)");
}

static void nothing_is_left(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_node(t, "Mystery", "m", "x", "y");
	model_output(t, "y");
	read_is(t, IMPORT_READ_ANY, NULL);
	model_refused(t, ST_INVALID, "m (Mystery): operator Mystery is not supported");
	t->options.unbound = 1; /* to look at it */
	model_accepted(t);
	assert_int_equal(t->g->ninput, 1);
}

/* A body that fails half-way leaves the rest as it was. */
static void inside_a_body(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_truth(t, "yes", true);
	Onnx__NodeProto *n = model_node(t, "If", "choice", "yes", "c");
	model_inside(t, n, "then_branch");
	model_node(t, "Relu", "r", "x", "h");
	model_node(t, "Mystery", "m", "h", "out");
	model_output(t, "out");
	model_inside(t, n, "else_branch");
	model_output(t, "x");
	model_outside(t);
	model_node(t, "Relu", "act", "x", "y");
	model_output(t, "c");
	model_output(t, "y");
	read_is(t, IMPORT_READ_OUTPUTS, "y");
	model_accepted(t);
	assert_int_equal(t->g->noutput, 1);
	test_said(t, "outputs left out: 'c'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			behind_the_loss, model_setup_operators, model_teardown),
		cmocka_unit_test_setup_teardown(
			read_by_the_loss, model_setup_operators, model_teardown),
		cmocka_unit_test_setup_teardown(
			as_much_as_can_be, model_setup_operators, model_teardown),
		cmocka_unit_test_setup_teardown(
			nothing_is_left, model_setup_operators, model_teardown),
		cmocka_unit_test_setup_teardown(
			inside_a_body, model_setup_operators, model_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
