/* test_groups FOLDER RUNTIME: steps with parameter groups, gradients clipped by value and by norm,
 * and averages of the parameters, on the loss Σ w·p², compared with PyTorch's numbers
 * (groups_torch.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/graphs.h"
#include "tests/ops/groups_torch.h"
#include "tests/ops/ops_test.h"
#include "tests/ops/trials.h"

enum { TRIALS = sizeof torch_settings / sizeof *torch_settings, LARGEST = 35 };

static const struct {
	const char *name;
	int rank;
	int64_t dim[3];
} shapes[PARAMETERS] = {{"fc.bias", 1, {5}}, {"fc.weight", 2, {5, 7}}, {"head.weight", 2, {3, 2}},
	{"conv.weight", 3, {2, 3, 4}}};

struct trial {
	struct trial_step step;
	const struct known_settings *known;
	bool tight;
};

/* Σ w·p² of parameter i. */
static struct tensor *part_of_loss(struct trial *t, struct graph *g, int i)
{
	const struct attr all = ATTR_I("keepdims", 0);
	const char *mul = op_by_role(g->table, ROLE_MUL)->name;
	struct tensor *x = graph_tensor(g, shapes[i].name, DT_F64, shapes[i].rank, shapes[i].dim);
	double *p = ARENA_ARRAY(t->step.arena, double, x->numel),
	       *w = ARENA_ARRAY(t->step.arena, double, x->numel);
	for (int64_t k = 0; k < x->numel; k++) {
		p[k] = 2 * case_draw(8 + (uint64_t)i, (uint64_t)k) - 1;
		w[k] = 0.5 + case_draw(20 + (uint64_t)i, (uint64_t)k);
	}
	x->role = TR_PARAMETER;
	x->data = p;
	struct tensor *y = OP2(
		g, mul, OP2(g, mul, x, x), graph_constant(g, "w", DT_F64, x->rank, x->dim, w));
	return graph_op(g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, &y, 1, &all);
}

static struct graph *new_graph(struct trial *t, struct diag *d, const struct target *target)
{
	struct graph *g = graph_new(t->step.arena, d, "groups", ops_table(), target, DT_F64);
	struct tensor *sum = part_of_loss(t, g, 0);
	for (int i = 1; i < PARAMETERS; i++)
		sum = OP2(g, op_by_role(g->table, ROLE_ADD)->name, sum, part_of_loss(t, g, i));
	g->output = ARENA_ARRAY(t->step.arena, struct tensor *, 1);
	g->output[g->noutput++] = sum;
	return g;
}

static enum status read_settings(struct trial *t, struct optimizer_spec *o, struct diag *d)
{
	const struct known_settings *k = t->known;
	struct param_group *group = ARENA_ARRAY(t->step.arena, struct param_group, GROUPS);
	TRY(optimizer_parse(t->step.arena, ops_table(), k->spec, o, d));
	o->clip_value = k->clip_value;
	o->clip_norm = k->clip_norm;
	o->ema = k->ema;
	o->group = group;
	for (; k->group[o->ngroup]; o->ngroup++) {
		const char *text = k->group[o->ngroup];
		if (!strcmp(text, "--no-decay-1d"))
			TRY(group_no_decay(t->step.arena, o, &group[o->ngroup], d));
		else
			TRY(group_parse(t->step.arena, o, text, &group[o->ngroup], d));
	}
	return ST_OK;
}

static enum status build(struct trial *t)
{
	struct diag diag = trial_diag(&t->step), *d = &diag;
	static const struct target target = {.portable = true, .threads = 2};
	const struct graph *model = new_graph(t, d, &target);
	struct graph *train, *eval;
	struct optimizer_spec optimizer;
	const struct graph_options o = {
		.optimizer = &optimizer, .attach = trial_attach_loss, .fuse = true};
	TRY(read_settings(t, &optimizer, d));
	TRY(graphs_train(model, &o, &train));
	TRY(graphs_forward(model, &o, LOWER_EVAL, &eval));
	return step_write(t->step.arena, d, t->step.symbol, train, eval, t->tight,
		t->step.of->folder, &t->step.train, &t->step.eval);
}

static void compare(stint_step *s, const char *name, const double want[SHOWN])
{
	double got[LARGEST];
	const struct stint_model *model = s->model;
	int i = 0;
	while (i < model->nresident && strcmp(model->resident[i].name, name) != 0)
		i++;
	if (i == model->nresident)
		fail_msg("there is no '%s'", name);
	assert_int_equal(stint_get(s, name, got, model->resident[i].bytes), STINT_OK);
	for (int k = 0; k < SHOWN; k++)
		if (!(fabs(got[k] - want[k]) <= 1e-12))
			fail_msg(
				"%s, element %d: %.17g, should be %.17g", name, k, got[k], want[k]);
}

static void test_trial(void **state)
{
	struct trial *t = *state;
	char name[64];
	stint_step *s = trial_start(&t->step);
	for (int k = 1; k <= STEPS; k++)
		assert_int_equal(stint_train(s, 0.1 / k), STINT_OK);
	for (int i = 0; i < PARAMETERS; i++) {
		compare(s, shapes[i].name, t->known->p[i]);
		snprintf(name, sizeof name, "state/ema/%s", shapes[i].name);
		if (t->known->ema > 0)
			compare(s, name, t->known->average[i]);
	}
	stint_free(s);
}

/* What is wrong with a group is said; names are looked for among what is trained. */
static void test_refused(void **state)
{
	static const struct known_settings wrong[] = {{.spec = "sgd", .group = {"*:lr=0.1"}},
		{.spec = "sgd", .group = {"*:lr=-1x"}}, {.spec = "sgd", .group = {"*:lr=1xx"}},
		{.spec = "sgd", .group = {"*:beta1=0.5"}},
		{.spec = "sgd", .group = {"*.wieght:lr=0.1x"}}, {.spec = "sgd", .group = {"*"}},
		{.spec = "sgd", .group = {":lr=0.1x"}}, {.spec = "sgd", .group = {"*:"}}};
	static const char *const said[] = {
		"'*:lr=0.1': a group's lr is a multiple of the optimizer's, not 0.1",
		"'*:lr=-1x': a group's lr is a multiple of the optimizer's, not -1x",
		"'*:lr=1xx': a group's lr is a multiple of the optimizer's, not 1xx",
		"'*:beta1=0.5': unknown option 'beta1'; it takes lr, momentum, dampening, "
		"weight_decay, nesterov, maximize",
		"--group '*.wieght' matches no parameter that is trained",
		"--group wants PATTERN:OPTIONS, not '*'",
		"--group wants PATTERN:OPTIONS, not ':lr=0.1x'",
		"--group wants PATTERN:OPTIONS, not '*:'"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct trial t = {.known = &wrong[i]};
		assert_true(trial_begin(*state, &t.step, "refused", (int)i));
		assert_int_equal(build(&t), ST_USAGE);
		assert_string_equal(t.step.error, said[i]);
		trial_end(&t.step);
	}
}

int main(int argc, char **argv)
{
	static struct trial trials[TRIALS];
	struct CMUnitTest tests[TRIALS + 1];
	struct trials all;
	if (argc != 3)
		return 2;
	trials_begin(&all, argv[1], argv[2]);
	for (int i = 0; i < TRIALS; i++) {
		struct trial *t = &trials[i];
		t->known = &torch_settings[i];
		t->tight = i % 2;
		trial_built(&t->step,
			trial_begin(&all, &t->step, "settings", i) ? build(t) : ST_INTERNAL);
		tests[i] = (struct CMUnitTest){t->known->spec, test_trial, NULL, NULL, t};
	}
	tests[TRIALS] = (struct CMUnitTest){"refused", test_refused, NULL, NULL, &all};
	trials_open(&all);
	int failed = _cmocka_run_group_tests("groups", tests, TRIALS + 1, NULL, NULL);
	for (int i = 0; i < TRIALS; i++)
		trial_end(&trials[i].step);
	trials_end(&all);
	return failed != 0;
}
