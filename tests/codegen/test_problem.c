/* A graph as the planner sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/tiny.h"

static struct tiny tiny;

static int setup(void **state)
{
	(void)state;
	return tiny_make(&tiny,
		       &(struct tiny_options){.prefix = "", .real = DT_F32, .threads = 1}) != ST_OK;
}

static int teardown(void **state)
{
	(void)state;
	tiny_free(&tiny);
	return 0;
}

static const struct problem_op *op_named(const struct problem *p, const char *name)
{
	for (int i = 0; i < p->nop; i++)
		if (!strcmp(p->op[i].name, name))
			return &p->op[i];
	fail_msg("no op %s", name);
	return NULL;
}

static bool pairs(const struct problem *p, const struct problem_op *op, const char *in)
{
	for (int i = 0; i < op->npair; i++)
		if (!strcmp(p->tensor[op->pair[i].in].name, in))
			return true;
	return false;
}

static void problems_are_valid(void **state)
{
	(void)state;
	struct diag d = {0};
	assert_int_equal(problem_validate(tiny.train_problem.problem, "train", &d), ST_OK);
	assert_int_equal(problem_validate(tiny.eval_problem.problem, "eval", &d), ST_OK);
}

static void residents_agree(void **state)
{
	(void)state;
	static const char *const order[] = {"x", "index", "lr", "w"};
	const struct problem *t = tiny.train_problem.problem, *e = tiny.eval_problem.problem;
	for (int i = 0; i < 4; i++) {
		assert_true(tensor_kind_resident(t->tensor[i].kind));
		assert_true(tensor_kind_resident(e->tensor[i].kind));
		assert_string_equal(t->tensor[i].name, order[i]);
		assert_string_equal(e->tensor[i].name, order[i]);
	}
	assert_false(tensor_kind_resident(t->tensor[4].kind));
	assert_false(tensor_kind_resident(e->tensor[4].kind));
}

static void views_vanish(void **state)
{
	(void)state;
	const struct graph_problem *gp = &tiny.train_problem;
	assert_int_equal(gp->problem->nop, tiny.train->nnode - 1);
	for (int i = 0; i < tiny.train->ntensor; i++) {
		struct tensor *t = tiny.train->tensor[i];
		assert_int_equal(gp->index[i], gp->index[tensor_storage(t)->id]);
	}
}

/* A pair holds only where no other input of the op reads the same bytes in another way. */
static void pairs_are_those_that_hold(void **state)
{
	(void)state;
	const struct problem *p = tiny.train_problem.problem;
	assert_true(pairs(p, op_named(p, "scale"), "mul"));
	assert_false(pairs(p, op_named(p, "mul"), "x")); /* a resident, and no update */
	assert_false(pairs(p, op_named(p, "mul"), "w"));
	assert_int_equal(op_named(p, "above")->npair, 0); /* another element type */
	assert_true(pairs(p, op_named(p, "product"), "where"));
	assert_true(pairs(p, op_named(p, "product"), "scale"));
	assert_true(pairs(p, &p->op[p->nop - 1], "w"));
}

static void kept_after_the_step(void **state)
{
	(void)state;
	const struct problem *t = tiny.train_problem.problem, *e = tiny.eval_problem.problem;
	int kept = 0;
	for (int i = 0; i < t->ntensor; i++)
		kept += t->tensor[i].keep;
	assert_int_equal(kept, 2); /* the loss and the new w */
	assert_true(t->tensor[op_named(t, "total")->choice[0].out[0]].keep);
	assert_true(e->tensor[op_named(e, "total")->choice[0].out[0]].keep);
	assert_true(e->tensor[op_named(e, "pick")->choice[0].out[0]].keep);
}

static void phases_choices_workspace(void **state)
{
	(void)state;
	const struct problem *p = tiny.train_problem.problem;
	const struct problem_op *where = op_named(p, "where"), *update = &p->op[p->nop - 1];
	assert_true(where->has_choices);
	assert_int_equal(where->nchoice, 2);
	assert_int_equal(where->phase, PHASE_BACKWARD);
	assert_true(where->recomputable);
	assert_int_equal(update->phase, PHASE_UPDATE);
	assert_false(update->recomputable);
	assert_false(update->has_choices);
	assert_int_equal(op_named(p, "columns")->choice[0].workspace, 32);
	assert_true(op_named(p, "mul")->choice[0].cost > 0);
}

/* What runs, in words: the same for alike nodes; with attributes, constants and who does it. */
static void kernels_in_words(void **state)
{
	(void)state;
	const struct problem *p = tiny.train_problem.problem;
	assert_string_equal(p->costs, "roofline");
	for (int o = 0; o < p->nop; o++)
		for (int k = 0; k < p->op[o].nchoice; k++) {
			const struct problem_choice *c = &p->op[o].choice[k];
			assert_non_null(c->kernel);
			assert_true(c->roofline == c->cost);
		}
	assert_string_equal(op_named(p, "mul")->choice[0].kernel,
		"t.mul(f32[4,8], f32[8]) -> f32[4,8]; portable C");
	assert_string_equal(op_named(p, "above")->choice[0].kernel,
		"t.above(f32[4,8], f32[4,8]) -> bool[4,8]; portable C");
	assert_string_equal(op_named(p, "where")->choice[1].kernel,
		"t.where(bool[4,8], f32[4,8], f32[4,8]) -> f32[4,8]; portable C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(problems_are_valid),
		cmocka_unit_test(residents_agree), cmocka_unit_test(views_vanish),
		cmocka_unit_test(pairs_are_those_that_hold), cmocka_unit_test(kept_after_the_step),
		cmocka_unit_test(phases_choices_workspace), cmocka_unit_test(kernels_in_words)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
