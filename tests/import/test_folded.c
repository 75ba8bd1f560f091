/* Constants that are functions of parameters by their values (import/folded.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tests/import/notes.h"
#include "tests/import/operators.h"

static const float m[6] = {.31F, -.2F, .77F, -.13F, .45F, .9F};

/* y = (x + m) * c, where the exporter made c; m is a parameter of the module. */
static void with(struct model_test *t, const char *shape, const float *c, size_t n)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,6");
	notes_signature(t, "p_m: PARAMETER target='m'\nx: USER_INPUT\n");
	model_raw(model_tensor(t, "m", TENSOR_TYPE(FLOAT), "6"), m, sizeof m);
	model_raw(model_tensor(t, "c", TENSOR_TYPE(FLOAT), shape), c, n * sizeof *c);
	model_node(t, "Add", "n0", "x,m", "a");
	model_node(t, "Mul", "n1", "a,c", "y");
	model_output(t, "y");
	model_accepted(t);
}

/* Node n1 reads what is made of m. */
static void made(const struct model_test *t)
{
	const struct tensor *c = notes_input(t, "n1", 1);
	assert_string_equal(c->name, "c");
	while (c->maker)
		c = c->maker->in[0];
	assert_string_equal(c->name, "m");
	assert_int_equal(c->role, TR_PARAMETER);
}

static void kept(const struct model_test *t)
{
	assert_int_equal(notes_input(t, "n1", 1)->role, TR_CONSTANT);
	assert_int_equal(t->diag.warnings, 0);
}

static void one_less(void **state)
{
	struct model_test *t = *state;
	float c[6];
	for (int i = 0; i < 6; i++)
		c[i] = 1 - m[i];
	with(t, "6", c, 6);
	made(t);
	test_said(t, "what the exporter computed of parameters is computed again, so that their "
		     "gradients are whole: 'c' = 1 - 'm'");
	t->options.untie_pattern = (const char *const[]){"c", NULL};
	model_accepted(t);
	kept(t);
}

static void squared_and_repeated(void **state)
{
	struct model_test *t = *state;
	float c[12];
	for (int i = 0; i < 12; i++)
		c[i] = 2 * (m[i % 6] * m[i % 6]);
	with(t, "2,6", c, 12);
	made(t);
	test_said(t, "'c' = 2 * 'm' squared, repeated");
}

static void a_function_of_the_table(void **state)
{
	struct model_test *t = *state;
	float c[6];
	for (int i = 0; i < 6; i++)
		c[i] = -expf(m[i]);
	with(t, "6", c, 6);
	made(t);
	test_said(t, "'c' = -Exp('m')");
}

/* Near it, in one place. */
static void no_function(void **state)
{
	struct model_test *t = *state;
	float c[6];
	for (int i = 0; i < 6; i++)
		c[i] = 1 - m[i];
	c[3] += 1e-4F;
	with(t, "6", c, 6);
	kept(t);
}

static void plain_numbers_say_nothing(void **state)
{
	static const float c[4][6] = {
		{0}, {1, 1, 1, 1, 1, 1}, {0, 1, 0, 1, .5F, 0}, {.1F, .2F, .3F, .4F, .5F, .6F}};
	for (int i = 0; i < 4; i++) {
		struct model_test *t;
		model_teardown(state);
		model_setup_operators(state);
		t = *state;
		with(t, "6", c[i], 6);
		kept(t);
	}
}

/* Where every function is a straight line: told, not guessed. */
static void near_zero_is_told(void **state)
{
	struct model_test *t = *state;
	float w[6], c[6];
	for (int i = 0; i < 6; i++) {
		w[i] = m[i] * 1e-4F;
		c[i] = .5F * w[i];
	}
	with(t, "6", c, 6);
	model_raw(t->graph.initializer[0], w, sizeof w);
	model_accepted(t);
	assert_int_equal(notes_input(t, "n1", 1)->role, TR_CONSTANT);
	test_said(t, "seems to be computed of parameters by the exporter");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(one_less), T(squared_and_repeated),
		T(a_function_of_the_table), T(no_function), T(plain_numbers_say_nothing),
		T(near_zero_is_told)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
