/* When copies run beside a plan's other steps, and what that takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "planner/problem/moves.h"

enum { A, B, X, FETCHED_A, Y, FETCHED_B, Z, STORED, TENSORS, STEPS = 5, SIZE = 64 };

/* a from the file, y of it, b from the file, z of both, and z to the file. */
static struct problem_choice choice[STEPS] = {
	{.cost = 100, .nin = 1, .in = (int[]){A}, .nout = 1, .out = (int[]){FETCHED_A}},
	{.cost = 50, .nin = 2, .in = (int[]){X, FETCHED_A}, .nout = 1, .out = (int[]){Y}},
	{.cost = 80, .nin = 1, .in = (int[]){B}, .nout = 1, .out = (int[]){FETCHED_B}},
	{.cost = 10, .nin = 2, .in = (int[]){Y, FETCHED_B}, .nout = 1, .out = (int[]){Z}},
	{.cost = 70, .nin = 2, .in = (int[]){A, Z}, .nout = 1, .out = (int[]){STORED}}};

static struct problem_tensor tensor[TENSORS] = {[A] = {.kind = TK_PARAMETER},
	[B] = {.kind = TK_PARAMETER},
	[X] = {.kind = TK_INPUT, .bytes = SIZE},
	[FETCHED_A] = {.kind = TK_ACTIVATION, .bytes = SIZE},
	[Y] = {.kind = TK_ACTIVATION, .bytes = SIZE},
	[FETCHED_B] = {.kind = TK_ACTIVATION, .bytes = SIZE},
	[Z] = {.kind = TK_ACTIVATION, .bytes = SIZE},
	[STORED] = {.kind = TK_OUTPUT}};

static struct problem_op op[STEPS] = {{.nchoice = 1, .choice = &choice[0], .from_disk = SIZE},
	{.nchoice = 1, .choice = &choice[1]},
	{.nchoice = 1, .choice = &choice[2], .from_disk = SIZE},
	{.nchoice = 1, .choice = &choice[3]},
	{.nchoice = 1, .choice = &choice[4], .to_disk = SIZE}};

static const struct problem problem = {
	.ntensor = TENSORS, .nop = STEPS, .tensor = tensor, .op = op};

static struct plan_step step[STEPS] = {{.op = 0}, {.op = 1}, {.op = 2}, {.op = 3}, {.op = 4}};

static struct plan_buffer buffer[TENSORS] = {{A, -1, 0, 0, 0, 4}, {B, -1, 0, 0, 0, 4},
	{X, -1, 0, SIZE, 0, 4}, {FETCHED_A, -1, 64, SIZE, 0, 1}, {Y, -1, 128, SIZE, 1, 3},
	{FETCHED_B, -1, 192, SIZE, 2, 3}, {Z, -1, 256, SIZE, 3, 4}, {STORED, -1, 0, 0, 4, 4}};

static const struct plan plan = {
	.cost_total = 310, .nstep = STEPS, .nbuffer = TENSORS, .step = step, .buffer = buffer};

static void check(void **state, const struct plan_move want[3], double cost)
{
	struct diag d = {0};
	struct plan_move *move;
	double found;
	int n;
	assert_int_equal(plan_moves(*state, &problem, &plan, &move, &n, &d), ST_OK);
	assert_int_equal(n, 3);
	for (int i = 0; i < n; i++) {
		assert_int_equal(move[i].step, want[i].step);
		assert_int_equal(move[i].buffer, want[i].buffer);
		assert_int_equal(move[i].away, want[i].away);
		assert_int_equal(move[i].start, want[i].start);
		assert_int_equal(move[i].wait, want[i].wait);
	}
	assert_int_equal(plan_beside(*state, &problem, &plan, &found, &d), ST_OK);
	assert_true(found == cost);
}

/* Both begin at once: y from 100 to 150, z when b is there, from 180 to 190; and it is stored. */
static void places_of_their_own(void **state)
{
	buffer[5].offset = 192;
	check(state,
		(struct plan_move[]){{0, 3, false, 0, 1}, {2, 5, false, 0, 3}, {4, 6, true, 4, 5}},
		260);
}

/* b comes to where a was, when y is there: from 150 to 230. */
static void in_a_place_that_was_another_s(void **state)
{
	buffer[5].offset = 64;
	check(state,
		(struct plan_move[]){{0, 3, false, 0, 1}, {2, 5, false, 2, 3}, {4, 6, true, 4, 5}},
		310);
}

/* b's place is free at the start, but a's, wanted before, is not: b waits its turn. */
static void in_the_order_in_which_they_are_wanted(void **state)
{
	buffer[5].offset = 192;
	buffer[3].offset = 0;
	buffer[3].first_step = 1; /* where x is, and the step after */
	step[0].op = 1;
	step[1].op = 0;
	choice[1].nin = 1;
	choice[3].in = (int[]){FETCHED_A, FETCHED_B};
	buffer[2].last_step = 0;
	buffer[3].last_step = 3;
	buffer[4].first_step = 0;
	check(state,
		(struct plan_move[]){{1, 3, false, 1, 3}, {2, 5, false, 1, 3}, {4, 6, true, 4, 5}},
		310);
}

static int setup(void **state)
{
	*state = arena_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(places_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(in_a_place_that_was_another_s, setup, teardown),
		cmocka_unit_test_setup_teardown(
			in_the_order_in_which_they_are_wanted, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
