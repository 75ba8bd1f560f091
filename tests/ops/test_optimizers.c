/* test_optimizers FOLDER RUNTIME [NAME]: steps of every optimizer, or of NAME, on the loss Σ w·p²,
 * compared with what PyTorch does (optimizers_torch.h), and those with clipped gradients with the
 * formulas of PyTorch's documentation (torch.optim.SGD, Adam, AdamW), written here a second time.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/graphs.h"
#include "tests/ops/ops_test.h"
#include "tests/ops/optimizers_torch.h"
#include "tests/ops/trials.h"

enum { N = 37 };

struct trial {
	struct trial_step step;
	const char *spec;
	double momentum, dampening, decay, beta1, beta2, eps, clip;
	bool nesterov, adam, decoupled;
	bool tight;
	const double *listed; /* what PyTorch comes to; NULL: the formulas below */
};

static const struct trial own[] = {
	{.spec = "sgd:lr=0.1"},
	{.spec = "sgd:lr=0.1,weight_decay=0.2", .decay = 0.2},
	{.spec = "sgd:lr=0.1,momentum=0.9", .momentum = 0.9},
	{.spec = "sgd:lr=0.1,momentum=0.8,dampening=0.3,weight_decay=0.01",
		.momentum = 0.8,
		.dampening = 0.3,
		.decay = 0.01},
	{.spec = "sgd:lr=0.1,momentum=0.9,nesterov=1", .momentum = 0.9, .nesterov = true},
	{.spec = "sgd:lr=0.1", .clip = 0.5},
	{.spec = "sgd:lr=0.1", .clip = 1e6},
	{.spec = "adam", .adam = true, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
	{.spec = "adam:beta1=0.7,beta2=0.9,eps=0.01,weight_decay=0.1",
		.adam = true,
		.beta1 = 0.7,
		.beta2 = 0.9,
		.eps = 0.01,
		.decay = 0.1},
	{.spec = "adamw",
		.adam = true,
		.decoupled = true,
		.beta1 = 0.9,
		.beta2 = 0.999,
		.eps = 1e-8,
		.decay = 0.01},
	{.spec = "adamw:weight_decay=0.5,beta1=0.5",
		.adam = true,
		.decoupled = true,
		.beta1 = 0.5,
		.beta2 = 0.999,
		.eps = 1e-8,
		.decay = 0.5,
		.clip = 0.5,
		.tight = true},
};
enum {
	OWN = sizeof own / sizeof *own,
	LISTED = sizeof torch_steps / sizeof *torch_steps,
	TRIALS = OWN + LISTED
};

static struct trial trials[TRIALS];

static double weight(int i)
{
	return 0.5 + case_draw(7, (uint64_t)i);
}

static double start(int i)
{
	return 2 * case_draw(8, (uint64_t)i) - 1;
}

static struct graph *new_graph(struct trial *t, struct diag *d, const struct target *target)
{
	const int64_t n = N, axis = 0;
	struct graph *g = graph_new(t->step.arena, d, "optimizer", ops_table(), target, DT_F64);
	double *p = ARENA_ARRAY(t->step.arena, double, N),
	       *w = ARENA_ARRAY(t->step.arena, double, N);
	for (int i = 0; i < N; i++) {
		p[i] = start(i);
		/* one gradient is NaN: of an element that is not listed */
		w[i] = t->listed && i == N - 1 ? NAN : weight(i);
	}
	const struct attr attr[] = {
		ATTR_IS("axes", 1, arena_memdup(t->step.arena, &axis, 1, sizeof axis)),
		ATTR_I("keepdims", 0)};
	const char *mul = op_by_role(g->table, ROLE_MUL)->name;
	struct tensor *x = graph_tensor(g, "p", DT_F64, 1, &n);
	x->role = TR_PARAMETER;
	x->data = p;
	struct tensor *y = OP2(g, mul, OP2(g, mul, x, x), graph_constant(g, "w", DT_F64, 1, &n, w));
	g->output = ARENA_ARRAY(t->step.arena, struct tensor *, 1);
	g->output[g->noutput++] = graph_op(
		g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, &y, 2, attr);
	return g;
}

static enum status build(struct trial *t)
{
	struct diag diag = trial_diag(&t->step), *d = &diag;
	static const struct target target = {.portable = true, .threads = 2};
	const struct graph *model = new_graph(t, d, &target);
	struct graph *train, *eval;
	struct optimizer_spec optimizer;
	const struct graph_options o = {.optimizer = &optimizer, .attach = trial_attach_loss};
	TRY(optimizer_parse(t->step.arena, ops_table(), t->spec, &optimizer, d));
	optimizer.clip_norm = t->clip;
	TRY(graphs_train(model, &o, &train));
	TRY(graphs_forward(model, &o, LOWER_EVAL, &eval));
	return step_write(t->step.arena, d, t->step.symbol, train, eval, t->tight,
		t->step.of->folder, &t->step.train, &t->step.eval);
}

/* The formulas, one step; s is the number of the step from 1. */
static void reference(const struct trial *t, double lr, int s, double *p, double *m, double *v)
{
	double g[N], norm = 0;
	for (int i = 0; i < N; i++) {
		g[i] = 2 * weight(i) * p[i];
		norm += g[i] * g[i];
	}
	double scale = t->clip > 0 ? fmin(1, t->clip / (sqrt(norm) + 1e-6)) : 1;
	for (int i = 0; i < N; i++) {
		double d = g[i] * scale;
		if (t->decoupled)
			p[i] -= lr * t->decay * p[i];
		else
			d += t->decay * p[i];
		if (t->adam) {
			m[i] = t->beta1 * m[i] + (1 - t->beta1) * d;
			v[i] = t->beta2 * v[i] + (1 - t->beta2) * d * d;
			double mh = m[i] / (1 - pow(t->beta1, s));
			double vh = v[i] / (1 - pow(t->beta2, s));
			p[i] -= lr * mh / (sqrt(vh) + t->eps);
			continue;
		}
		if (t->momentum != 0) {
			m[i] = s == 1 ? d : t->momentum * m[i] + (1 - t->dampening) * d;
			d = t->nesterov ? d + t->momentum * m[i] : m[i];
		}
		p[i] -= lr * d;
	}
}

static void compare(const double *got, const double *want, int n, int step)
{
	for (int i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= 1e-12))
			fail_msg("step %d, element %d: %.17g, should be %.17g", step, i, got[i],
				want[i]);
}

static void test_trial(void **state)
{
	struct trial *t = *state;
	double p[N], m[N] = {0}, v[N] = {0}, got[N];
	stint_step *s = trial_start(&t->step);
	for (int i = 0; i < N; i++)
		p[i] = start(i);
	for (int k = 1; k <= STEPS; k++) {
		double lr = 0.1 / k;
		assert_int_equal(stint_train(s, lr), STINT_OK);
		assert_int_equal(stint_get(s, "p", got, sizeof got), STINT_OK);
		if (!t->listed) {
			reference(t, lr, k, p, m, v);
			compare(got, p, N, k);
		}
	}
	if (t->listed) {
		compare(got, t->listed, SHOWN, STEPS);
		assert_true(isnan(got[N - 1]));
	}
	stint_free(s);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[TRIALS];
	struct trials all;
	int n = 0;
	if (argc != 3 && argc != 4)
		return 2;
	trials_begin(&all, argv[1], argv[2]);
	for (int i = 0; i < TRIALS; i++) {
		struct trial *t = &trials[i];
		*t = i < OWN ? own[i]
			     : (struct trial){.spec = torch_steps[i - OWN].spec,
				       .listed = torch_steps[i - OWN].p,
				       .tight = i % 2};
		if (argc == 4 && strncmp(t->spec, argv[3], strlen(argv[3])) != 0)
			continue;
		trial_built(
			&t->step, trial_begin(&all, &t->step, "trial", i) ? build(t) : ST_INTERNAL);
		tests[n++] = (struct CMUnitTest){t->spec, test_trial, NULL, NULL, t};
	}
	trials_open(&all);
	int failed = _cmocka_run_group_tests("optimizers", tests, (size_t)n, NULL, NULL);
	for (int i = 0; i < TRIALS; i++)
		trial_end(&trials[i].step);
	trials_end(&all);
	return failed != 0;
}
