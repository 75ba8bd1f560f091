/* Loops that are one node: Revolve's numbers against every way to keep states, by brute force; and
 * that the turns of a loop and of its gradient find the carries that they should, running as often
 * as that says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STINT_THREADS = 1 };
#include "kernels/loop_run.h"

enum { STEPS = 120, SLOTS = 12 };

/* least[l][slots]: forward steps for reversing l steps; by trying every step to store behind. */
static int64_t least[STEPS + 1][SLOTS + 1];

static void try_all(void)
{
	for (int64_t l = 2; l <= STEPS; l++)
		for (int s = 0; s <= SLOTS; s++) {
			least[l][s] = l * (l - 1) / 2;
			for (int64_t m = 1; m < l && s > 0; m++) {
				const int64_t n = m + least[l - m][s - 1] + least[m][s];
				least[l][s] = n < least[l][s] ? n : least[l][s];
			}
		}
}

static void no_way_is_shorter(void **state)
{
	(void)state;
	try_all();
	for (int64_t l = 1; l <= STEPS; l++)
		for (int s = 0; s <= SLOTS; s++)
			assert_int_equal(revolve_forward(l, s), least[l][s]);
}

/* A carry that counts the turns, of which there are so many. */
struct counted {
	int64_t forward, back, expected, turns;
	unsigned char goes_on;
};

static int forward(void *step, unsigned char *arena, unsigned char *const *operand)
{
	struct counted *c = step;
	(void)arena;
	const int64_t turn = *(const int64_t *)(const void *)operand[0] + 1;
	*(int64_t *)(void *)operand[1] = turn;
	c->forward++;
	c->goes_on = turn < c->turns;
	return 0;
}

static int back(void *step, unsigned char *arena, unsigned char *const *operand)
{
	struct counted *c = step;
	(void)arena;
	assert_int_equal(*(const int64_t *)(const void *)operand[0], --c->expected);
	if (c->back++ > 0)
		assert_int_equal(*(const int64_t *)(const void *)operand[1], 1000 + c->expected);
	*(int64_t *)(void *)operand[2] = 999 + c->expected;
	return 0;
}

/* Of at most so many turns, `turns`; as many: all. The carry has a place of its own between turns
 * in the loop, and in the gradient what its gradient, which counts too, does not take. */
static void run(int64_t most, int64_t slots, int64_t turns)
{
	static int64_t kept[STEPS + 1], spare, gradient[2], first, last, ran;
	unsigned char *operand[3];
	struct counted c = {0, 0, turns, turns, true};
	const struct loop_operand before[] = {
		{LOOP_BEFORE, 0, 0, NULL, 8}, {LOOP_AFTER, 0, 0, NULL, 8}};
	const struct loop_operand backward[] = {{LOOP_BEFORE, 0, 0, NULL, 8},
		{LOOP_GRADIENT_AFTER, 0, 0, NULL, 8}, {LOOP_GRADIENT_BEFORE, 0, 0, NULL, 8}};
	const struct loop_body bodies[] = {
		{back, 3, backward, 0, NULL}, {forward, 2, before, 0, NULL}};
	const struct loop_body one = {forward, 2, before, 0, NULL};
	struct loop_carry carry = {8, &first, kept, &last, {&spare, NULL}, {NULL, NULL}};
	const struct loop loop = {.step = &c,
		.operand = operand,
		.turns = most,
		.slots = slots,
		.go = turns < most ? &c.goes_on : NULL,
		.ran = turns < most ? &ran : NULL,
		.cycle = 1,
		.last = -1,
		.advance = -1,
		.body = &one,
		.carry = &carry};
	struct loop reversed = loop;
	reversed.body = bodies;
	reversed.go = NULL;
	reversed.has_run = turns < most ? &ran : NULL;
	reversed.advance = slots < 0 ? -1 : 1;
	memset(kept, 0x55, sizeof kept);
	last = -1;
	assert_int_equal(loop_forward(&loop, 1), 0);
	assert_int_equal(last, turns);
	assert_int_equal(c.forward, turns);
	for (int i = 0; i < 2; i++)
		carry.spare[i] = carry.gradient[i] = &gradient[i];
	carry.last = NULL;
	assert_int_equal(loop_backward(&reversed), 0);
	assert_int_equal(c.back, turns);
	/* an end that nobody knew of takes no more turns again than the end that was known */
	const int64_t again = slots < 0 ? 0 : least[most][slots] - (most - 1);
	if (turns == most)
		assert_int_equal(c.forward - turns, again);
	assert_true(c.forward - turns <= again);
}

static void turns_find_their_carries(void **state)
{
	(void)state;
	try_all();
	for (int64_t turns = 1; turns <= STEPS; turns++)
		for (int64_t slots = -1; slots <= SLOTS; slots++)
			if (slots < turns - 1)
				run(turns, slots, turns);
}

static void turns_find_their_carries_before_the_last(void **state)
{
	(void)state;
	try_all();
	for (int64_t most = 2; most <= STEPS; most += most < 20 ? 1 : 19)
		for (int64_t turns = 1; turns < most; turns++)
			for (int64_t slots = -1; slots <= SLOTS; slots++)
				if (slots < most - 1)
					run(most, slots, turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_way_is_shorter),
		cmocka_unit_test(turns_find_their_carries),
		cmocka_unit_test(turns_find_their_carries_before_the_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
