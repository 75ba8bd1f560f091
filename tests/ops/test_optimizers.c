/* test_optimizers FOLDER RUNTIME [NAME]: steps of every optimizer, or of NAME, on the loss Σ w·p²,
 * compared with what PyTorch does (optimizers_torch.h), and those with clipped gradients with the
 * formulas of PyTorch's documentation (torch.optim.SGD, Adam, AdamW), written here a second time.
 */
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
#include "tests/ops/optimizers_torch.h"

enum { N = 37 };

struct trial {
	const char *spec;
	double momentum, dampening, decay, beta1, beta2, eps, clip;
	bool nesterov, adam, decoupled;
	bool tight;
	const double *listed; /* what PyTorch comes to; NULL: the formulas below */
	struct arena *arena;
	struct graph_problem train, eval;
	char symbol[32], error[400];
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

struct opened {
	struct trial *trial;
	void **object;
};

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct trial *t = user;
	(void)w;
	(void)hint;
	if (level == DIAG_ERROR && !*t->error)
		snprintf(t->error, sizeof t->error, "%s", message);
}

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
	struct graph *g = graph_new(t->arena, d, "optimizer", ops_table(), target, DT_F64);
	double *p = ARENA_ARRAY(t->arena, double, N), *w = ARENA_ARRAY(t->arena, double, N);
	for (int i = 0; i < N; i++) {
		p[i] = start(i);
		/* one gradient is NaN: of an element that is not listed */
		w[i] = t->listed && i == N - 1 ? NAN : weight(i);
	}
	const struct attr attr[] = {
		ATTR_IS("axes", 1, arena_memdup(t->arena, &axis, 1, sizeof axis)),
		ATTR_I("keepdims", 0)};
	const char *mul = op_by_role(g->table, ROLE_MUL)->name;
	struct tensor *x = graph_tensor(g, "p", DT_F64, 1, &n);
	x->role = TR_PARAMETER;
	x->data = p;
	struct tensor *y = OP2(g, mul, OP2(g, mul, x, x), graph_constant(g, "w", DT_F64, 1, &n, w));
	g->output = ARENA_ARRAY(t->arena, struct tensor *, 1);
	g->output[g->noutput++] = graph_op(
		g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, &y, 2, attr);
	return g;
}

static enum status attach_loss(void *user, struct graph *g)
{
	(void)user;
	g->loss = g->output[0];
	return ST_OK;
}

static enum status build(struct trial *t, struct diag *d, const char *folder)
{
	static const struct target target = {.portable = true, .threads = 2};
	const struct graph *model = new_graph(t, d, &target);
	struct graph *train, *eval;
	struct optimizer_spec optimizer;
	const struct graph_options o = {.optimizer = &optimizer, .attach = attach_loss};
	TRY(optimizer_parse(t->arena, ops_table(), t->spec, &optimizer, d));
	optimizer.clip_norm = t->clip;
	TRY(graphs_train(model, &o, &train));
	TRY(graphs_forward(model, &o, LOWER_EVAL, &eval));
	return step_write(
		t->arena, d, t->symbol, train, eval, t->tight, folder, &t->train, &t->eval);
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
	const struct opened *o = *state;
	struct trial *t = o->trial;
	if (*t->error)
		fail_msg("%s", t->error);
	char name[64];
	double p[N], m[N] = {0}, v[N] = {0}, got[N];
	stint_step *s = NULL;
	snprintf(name, sizeof name, "stint_model_%s", t->symbol);
	const struct stint_model *model = *o->object ? dlsym(*o->object, name) : NULL;
	assert_non_null(model);
	assert_int_equal(stint_init(&s, model, NULL, 0), STINT_OK);
	for (int i = 0; i < model->nresident; i++) {
		const struct tensor *x = t->train.tensor[i];
		if (x->data)
			assert_int_equal(stint_set(s, t->train.problem->tensor[i].name, x->data,
						 (size_t)tensor_bytes(x)),
				STINT_OK);
	}
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
	struct opened opened[TRIALS];
	struct text command = {0};
	char path[4096];
	int n = 0;
	if (argc != 3 && argc != 4)
		return 2;
	mkdir(argv[1], 0777);
	text_add(&command, "${CC:-cc} %s -I%s -shared -o %s/all.so", STEP_CFLAGS, argv[2], argv[1]);
	void *object = NULL;
	for (int i = 0; i < TRIALS; i++) {
		struct trial *t = &trials[i];
		*t = i < OWN ? own[i]
			     : (struct trial){.spec = torch_steps[i - OWN].spec,
				       .listed = torch_steps[i - OWN].p,
				       .tight = i % 2};
		struct diag d = {.put = put, .user = t};
		if (argc == 4 && strncmp(t->spec, argv[3], strlen(argv[3])) != 0)
			continue;
		snprintf(t->symbol, sizeof t->symbol, "trial%d", i);
		t->arena = arena_new();
		if (!t->arena || build(t, &d, argv[1]) != ST_OK)
			snprintf(t->error + strlen(t->error), 2, ".");
		else
			text_add(&command, " %s/%s/step.c", argv[1], t->symbol);
		opened[i] = (struct opened){t, &object};
		tests[n++] = (struct CMUnitTest){t->spec, test_trial, NULL, NULL, &opened[i]};
	}
	text_puts(&command, " -lm");
	snprintf(path, sizeof path, "%s/all.so", argv[1]);
	if (!command.failed && system(command.s) == 0)
		object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	text_free(&command);
	int failed = _cmocka_run_group_tests("optimizers", tests, (size_t)n, NULL, NULL);
	for (int i = 0; i < TRIALS; i++)
		if (trials[i].arena)
			arena_free(trials[i].arena);
	if (object)
		dlclose(object);
	return failed != 0;
}
