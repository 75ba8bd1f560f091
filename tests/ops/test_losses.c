/* test_losses FOLDER RUNTIME: every loss, as the command line names it, and its gradient by the
 * model's output, compared with PyTorch's numbers (losses_torch.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/graphs.h"
#include "tests/ops/losses_torch.h"
#include "tests/ops/ops_test.h"
#include "tests/ops/trials.h"

enum { TRIALS = sizeof torch_losses / sizeof *torch_losses };

struct trial {
	struct trial_step step;
	const struct known_loss *known;
	double gradient[SHOWN];
};

static double drawn(uint64_t key, int64_t i, const double range[2])
{
	return range[0] + (range[1] - range[0]) * case_draw(key, (uint64_t)i);
}

/* The model's outputs: the parameter, or its parts, axis 0 being gone, which are called a, b and c,
 * or its log-softmax. */
static enum status add_outputs(struct trial *t, struct graph *g, struct tensor *x)
{
	static const int64_t ones[] = {1, 1, 1};
	static const char *const name[] = {"a", "b", "c"};
	const struct known_loss *k = t->known;
	const struct attr split[] = {ATTR_I("axis", 0), ATTR_IS("split", k->outputs, ones)};
	struct node *parts = NULL;
	g->output = ARENA_ARRAY(t->step.arena, struct tensor *, k->outputs);
	if (k->outputs > 1)
		TRY(graph_node(g, "Split", NULL, 1, &x, k->outputs, 2, split, NULL, &parts));
	for (int i = 0; i < k->outputs; i++) {
		struct tensor *y = parts ? graph_reshape(g, parts->out[i], k->rank, k->dim) : x;
		if (k->log)
			y = graph_op(g, "LogSoftmax", 1, &y, 0, NULL);
		g->output[g->noutput++] = OP2(
			g, op_by_role(g->table, ROLE_MUL)->name, y, graph_scalar(g, 1));
		TRY(g->failed);
		g->output[i]->name = name[i];
	}
	return g->failed;
}

/* The parameter has an axis more where there are several outputs. */
static enum status new_graph(
	struct trial *t, struct diag *d, const struct target *target, struct graph **out)
{
	const struct known_loss *k = t->known;
	struct graph *g = graph_new(t->step.arena, d, "loss", ops_table(), target, DT_F64);
	int64_t dim[4] = {k->outputs};
	memcpy(dim + (k->outputs > 1), k->dim, sizeof k->dim);
	struct tensor *x = graph_tensor(g, "x", DT_F64, k->rank + (k->outputs > 1), dim);
	double *data = ARENA_ARRAY(t->step.arena, double, x->numel);
	for (int64_t i = 0; i < x->numel; i++)
		data[i] = drawn(8, i, k->x);
	x->role = TR_PARAMETER;
	x->data = data;
	*out = g;
	return add_outputs(t, g, x);
}

static enum status build(struct trial *t)
{
	static const struct target target = {.portable = true, .threads = 2};
	struct graph *model, *train, *eval;
	struct diag diag = trial_diag(&t->step), *d = &diag;
	struct loss_list losses;
	struct optimizer_spec sgd;
	const struct graph_options o = {.losses = &losses, .optimizer = &sgd};
	TRY(new_graph(t, d, &target, &model));
	const char *const spec[] = {t->known->spec, NULL};
	TRY(losses_parse(t->step.arena, ops_table(), spec, &losses, d));
	TRY(optimizer_parse(t->step.arena, ops_table(), "sgd", &sgd, d));
	TRY(graphs_train(model, &o, &train));
	TRY(graphs_forward(model, &o, LOWER_EVAL, &eval));
	return step_write(t->step.arena, d, t->step.symbol, train, eval, false, t->step.of->folder,
		&t->step.train, &t->step.eval);
}

static void take_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	struct trial *t = user;
	(void)parameter;
	const size_t every = bytes / sizeof(double) / SHOWN;
	assert_true(every > 0);
	for (size_t i = 0; i < SHOWN; i++)
		t->gradient[i] = ((const double *)data)[i * every];
}

static void set_target(struct trial *t, stint_step *s)
{
	const struct known_loss *k = t->known;
	const int at = stint_find(s, "target");
	if (k->kind == TARGET_NONE) {
		assert_true(at < 0);
		return;
	}
	const struct stint_tensor *target = &s->model->resident[at];
	int64_t n = 1;
	for (int i = 0; i < target->rank; i++)
		n *= target->dim[i];
	for (int64_t i = 0; i < n; i++) {
		const double v = drawn(7, i, k->target);
		if (k->kind == TARGET_LABELS)
			((int64_t *)stint_at(s, "target"))[i] = (int64_t)v;
		else if (k->kind == TARGET_PADDED)
			((int64_t *)stint_at(s, "target"))[i] = (int64_t)floor(v);
		else
			((double *)stint_at(s, "target"))[i] = k->kind == TARGET_REAL ? v
							       : v < 0                ? -1
										      : 1;
	}
}

static void near(const char *what, double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * fmax(1, fabs(want))))
		fail_msg("%s: %.17g, should be %.17g", what, got, want);
}

static void test_trial(void **state)
{
	struct trial *t = *state;
	const struct stint_probe probe = {.user = t, .gradient = take_gradient};
	stint_step *s = trial_start(&t->step);
	set_target(t, s);
	assert_int_equal(stint_eval(s, 0), STINT_OK);
	near("loss in evaluation", stint_loss(s), t->known->loss);
	assert_int_equal(stint_train_probed(s, 0, &probe), STINT_OK);
	near("loss", stint_loss(s), t->known->loss);
	for (int i = 0; i < SHOWN; i++)
		near("gradient", t->gradient[i], t->known->gradient[i]);
	stint_free(s);
}

int main(int argc, char **argv)
{
	static struct trial trials[TRIALS];
	struct CMUnitTest tests[TRIALS];
	struct trials all;
	if (argc != 3)
		return 2;
	trials_begin(&all, argv[1], argv[2]);
	for (int i = 0; i < TRIALS; i++) {
		struct trial *t = &trials[i];
		t->known = &torch_losses[i];
		trial_built(
			&t->step, trial_begin(&all, &t->step, "loss", i) ? build(t) : ST_INTERNAL);
		tests[i] = (struct CMUnitTest){t->known->spec, test_trial, NULL, NULL, t};
	}
	trials_open(&all);
	int failed = _cmocka_run_group_tests("losses", tests, TRIALS, NULL, NULL);
	for (int i = 0; i < TRIALS; i++)
		trial_end(&trials[i].step);
	trials_end(&all);
	return failed != 0;
}
