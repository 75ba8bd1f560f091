/* test_random FOLDER RUNTIME: random numbers through training and evaluation steps: their
 * distributions, that steps and seeds differ, that a plan which draws them again gets the same
 * bits, and that dropout spelled out is dropout. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "compile/graphs.h"
#include "tests/ops/ops_test.h"

enum { ROWS = 100, COLUMNS = 1000, N = ROWS * COLUMNS, OUTPUTS = 4 };
enum { NORMAL, UNIFORM, BERNOULLI, DROPPED };

static const double KEEP = 0.7, SHARE = 0.3;

/* The same model under two plans. */
struct world {
	struct arena *arena;
	struct graph_problem train[2], eval[2];
	stint_step *step[2];
	void *object;
	char error[400];
};

/* What one step gave. */
struct drawn {
	float output[OUTPUTS][N], gradient[N];
	int64_t count[N]; /* BERNOULLI's are whole numbers */
};

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct world *t = user;
	(void)hint;
	if (level == DIAG_ERROR && !*t->error)
		snprintf(t->error, sizeof t->error, "%s: %s", w && w->op ? w->op : "", message);
}

static struct tensor *op(
	struct graph *g, const char *name, struct tensor *x, int nattr, const struct attr *attr)
{
	return graph_op(g, name, x ? 1 : 0, x ? &x : NULL, nattr, attr);
}

static struct tensor *constant(struct graph *g, double value)
{
	const int64_t dim[] = {ROWS, COLUMNS};
	float *data = ARENA_ARRAY(g->arena, float, N);
	for (int i = 0; data && i < N; i++)
		data[i] = (float)value;
	return data ? graph_constant(g, "x", DT_F32, 2, dim, data) : NULL;
}

/* Outputs as enumerated above; the loss is the sum of exp(dropped) * normal, whose gradient needs
 * all that was drawn for it once more. */
static struct graph *model(struct world *w, struct diag *d, const struct target *target)
{
	static const int64_t dim[] = {ROWS, COLUMNS};
	const struct attr normal[] = {
		ATTR_IS("shape", 2, dim), ATTR_F("mean", -1), ATTR_F("scale", 2)};
	const struct attr uniform[] = {
		ATTR_IS("shape", 2, dim), ATTR_F("low", -3), ATTR_F("high", -1.5)};
	const struct attr whole = ATTR_I("dtype", 7), real = ATTR_I("to", 1);
	struct graph *g = graph_new(w->arena, d, "random", ops_table(), target, DT_F32);
	struct tensor *x = constant(g, 1);
	x->role = TR_PARAMETER;
	g->output = ARENA_ARRAY(w->arena, struct tensor *, OUTPUTS);
	g->output[NORMAL] = op(g, "RandomNormal", NULL, 3, normal);
	g->output[UNIFORM] = op(g, "RandomUniform", NULL, 3, uniform);
	g->output[BERNOULLI] = op(g, "Bernoulli", constant(g, SHARE), 1, &whole);
	struct tensor *keep = graph_scalar(g, KEEP);
	struct tensor *less = OP2(g, "Less", OP1(g, "RandomUniformLike", x), keep);
	g->output[DROPPED] = OP2(g, "Mul", x, OP2(g, "Div", op(g, "Cast", less, 1, &real), keep));
	g->noutput = OUTPUTS;
	return g->failed == ST_OK ? g : NULL;
}

static enum status attach_loss(void *user, struct graph *g)
{
	(void)user;
	static const int64_t axes[] = {0, 1};
	const struct attr attr[] = {ATTR_IS("axes", 2, axes), ATTR_I("keepdims", 0)};
	struct tensor *p = OP2(g, "Mul", OP1(g, "Exp", g->output[DROPPED]), g->output[NORMAL]);
	g->loss = op(g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, p, 2, attr);
	return g->failed;
}

static enum status build(struct world *w, bool tight, const char *folder)
{
	static const struct target target = {.portable = true, .threads = 2};
	struct diag d = {.put = put, .user = w};
	const struct graph *imported = model(w, &d, &target);
	struct graph *train, *eval;
	struct optimizer_spec sgd;
	const struct graph_options o = {.optimizer = &sgd, .attach = attach_loss};
	if (!imported)
		return ST_INTERNAL;
	TRY(optimizer_parse(w->arena, ops_table(), "sgd:lr=0.1", &sgd, &d));
	TRY(graphs_train(imported, &o, &train));
	TRY(graphs_forward(imported, &o, LOWER_EVAL, &eval));
	return step_write(w->arena, &d, tight ? "tight" : "kept", train, eval, tight, folder,
		&w->train[tight], &w->eval[tight]);
}

/* --- Running --- */

static void take_output(void *user, int output, int dtype, const void *data, size_t bytes)
{
	struct drawn *r = user;
	assert_int_equal(dtype, output == BERNOULLI ? STINT_I64 : STINT_F32);
	if (output == BERNOULLI)
		memcpy(r->count, data, bytes);
	else
		memcpy(r->output[output], data, bytes);
}

static void take_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	struct drawn *r = user;
	(void)parameter;
	memcpy(r->gradient, data, bytes);
}

/* Step `count` of a run with this seed; NULL `eval`: of training. */
static struct drawn *draw(struct world *w, int plan, int64_t seed, int64_t count, bool eval)
{
	struct drawn *r = calloc(1, sizeof *r);
	const struct stint_probe probe = {
		.user = r, .output = take_output, .gradient = take_gradient};
	stint_step *s = w->step[plan];
	assert_non_null(r);
	stint_seed(s, seed);
	s->count = count;
	assert_int_equal(eval ? stint_eval_probed(s, 0, &probe) : stint_train_probed(s, 0, &probe),
		STINT_OK);
	return r;
}

struct moments {
	double mean, variance, fourth, neighbours, low, high;
};

static struct moments moments_of(const float *v)
{
	struct moments m = {.low = INFINITY, .high = -INFINITY};
	for (int i = 0; i < N; i++) {
		m.mean += v[i] / (double)N;
		m.low = v[i] < m.low ? v[i] : m.low;
		m.high = v[i] > m.high ? v[i] : m.high;
	}
	for (int i = 0; i < N; i++) {
		double c = v[i] - m.mean;
		m.variance += c * c / N;
		m.fourth += c * c * c * c / N;
		if (i % 2)
			m.neighbours += 2 * c * (v[i - 1] - m.mean) / N;
	}
	return m;
}

/* Within five standard deviations of what N draws give. */
static void near(const char *what, double got, double want, double deviation)
{
	if (!(fabs(got - want) <= 5 * deviation / sqrt(N)))
		fail_msg("%s is %g, should be about %g", what, got, want);
}

static void test_distributions(void **state)
{
	struct drawn *r = draw(*state, 0, 7, 3, false);
	struct moments m = moments_of(r->output[NORMAL]);
	near("normal: mean", m.mean, -1, 2);
	near("normal: variance", m.variance, 4, 4 * sqrt(2));
	near("normal: fourth moment", m.fourth, 48, 16 * sqrt(96));
	near("normal: product of neighbours", m.neighbours, 0, 4 * sqrt(2));
	assert_true(m.low > -1 - 2 * 6.8 && m.low < -1 - 2 * 3);
	assert_true(m.high < -1 + 2 * 6.8 && m.high > -1 + 2 * 3);
	m = moments_of(r->output[UNIFORM]);
	near("uniform: mean", m.mean, -2.25, 1.5 / sqrt(12));
	near("uniform: variance", m.variance, 2.25 / 12, 2.25 / sqrt(180));
	assert_true(m.low >= -3 && m.low < -2.999 && m.high <= -1.5 && m.high > -1.501);
	double ones = 0, kept = 0;
	for (int i = 0; i < N; i++) {
		assert_true(r->count[i] == 0 || r->count[i] == 1);
		ones += (double)r->count[i] / N;
		float y = r->output[DROPPED][i];
		assert_true(y == 0 || y == 1 / (float)KEEP);
		kept += (y != 0) / (double)N;
	}
	near("share of ones", ones, SHARE, sqrt(SHARE * (1 - SHARE)));
	near("share kept", kept, KEEP, sqrt(KEEP * (1 - KEEP)));
	free(r);
}

/* How many elements of an output two draws have in common, as a share. */
static double common(const struct drawn *a, const struct drawn *b, int output)
{
	double n = 0;
	for (int i = 0; i < N; i++)
		n += output == BERNOULLI ? a->count[i] == b->count[i]
					 : a->output[output][i] == b->output[output][i];
	return n / N;
}

static void test_steps_and_seeds(void **state)
{
	struct drawn *r = draw(*state, 0, 7, 3, false), *again = draw(*state, 0, 7, 3, false);
	assert_memory_equal(r, again, sizeof *r);
	struct drawn *other[] = {draw(*state, 0, 7, 4, false), draw(*state, 0, 8, 3, false)};
	for (int k = 0; k < 2; k++) {
		assert_true(common(r, other[k], NORMAL) < 1e-3);
		assert_true(common(r, other[k], UNIFORM) < 1e-3);
		near("Bernoulli: share in common", common(r, other[k], BERNOULLI),
			SHARE * SHARE + (1 - SHARE) * (1 - SHARE), 0.5);
		near("dropout: share in common", common(r, other[k], DROPPED),
			KEEP * KEEP + (1 - KEEP) * (1 - KEEP), 0.5);
		free(other[k]);
	}
	free(r);
	free(again);
}

static void test_drawn_again(void **state)
{
	struct world *w = *state;
	assert_true(w->step[1]->model->ntrain_steps > w->step[0]->model->ntrain_steps);
	for (int count = 0; count < 2; count++) {
		struct drawn *kept = draw(w, 0, 7, count, false);
		struct drawn *tight = draw(w, 1, 7, count, false);
		assert_memory_equal(kept, tight, sizeof *kept);
		for (int i = 0; i < N; i++) /* where it dropped, no gradient passes */
			assert_true((kept->output[DROPPED][i] == 0) == (kept->gradient[i] == 0));
		free(kept);
		free(tight);
	}
}

/* In evaluation dropout is off, and what the model draws for itself is drawn. */
static void test_evaluation(void **state)
{
	struct drawn *train = draw(*state, 0, 7, 3, false), *eval = draw(*state, 0, 7, 3, true);
	for (int i = 0; i < N; i++)
		assert_true(eval->output[DROPPED][i] == 1);
	assert_memory_equal(
		train->output[NORMAL], eval->output[NORMAL], sizeof eval->output[NORMAL]);
	free(train);
	free(eval);
}

/* What is dropped is a product with 0, which NaN makes NaN, as in PyTorch. */
static void test_no_number(void **state)
{
	struct world *w = *state;
	static float x[N];
	for (int i = 0; i < N; i++)
		x[i] = NAN;
	assert_int_equal(stint_set(w->step[0], "x", x, sizeof x), STINT_OK);
	struct drawn *r = draw(w, 0, 7, 3, false);
	for (int i = 0; i < N; i++)
		assert_true(isnan(r->output[DROPPED][i]));
	free(r);
}

static bool open_step(struct world *w, int plan)
{
	const char *name = plan ? "stint_model_tight" : "stint_model_kept";
	const struct stint_model *m = w->object ? dlsym(w->object, name) : NULL;
	const struct graph_problem *gp = &w->train[plan];
	if (!m || stint_init(&w->step[plan], m, NULL, 0) != STINT_OK)
		return false;
	for (int i = 0; i < m->nresident; i++)
		if (gp->tensor[i]->data &&
			stint_set(w->step[plan], gp->problem->tensor[i].name, gp->tensor[i]->data,
				(size_t)tensor_bytes(gp->tensor[i])) != STINT_OK)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	static struct world w;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_distributions, &w),
		cmocka_unit_test_prestate(test_steps_and_seeds, &w),
		cmocka_unit_test_prestate(test_drawn_again, &w),
		cmocka_unit_test_prestate(test_evaluation, &w),
		cmocka_unit_test_prestate(test_no_number, &w),
	};
	char command[9000], path[4200];
	if (argc != 3)
		return 2;
	mkdir(argv[1], 0777);
	w.arena = arena_new();
	bool ok = w.arena && build(&w, false, argv[1]) == ST_OK &&
		  build(&w, true, argv[1]) == ST_OK;
	snprintf(command, sizeof command,
		VALUES_CC " %s -I%.2000s -shared -o %.2000s/all.so %.2000s/kept/step.c "
			  "%.2000s/tight/step.c -lm",
		STEP_CFLAGS, argv[2], argv[1], argv[1], argv[1]);
	snprintf(path, sizeof path, "%.4000s/all.so", argv[1]);
	if (ok && system(command) == 0)
		w.object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ok = ok && open_step(&w, 0) && open_step(&w, 1);
	if (!ok)
		printf("the model cannot be built: %s\n", w.error);
	int failed = ok ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	for (int plan = 0; plan < 2; plan++)
		stint_free(w.step[plan]);
	arena_free(w.arena);
	if (w.object)
		dlclose(w.object);
	return failed != 0;
}
