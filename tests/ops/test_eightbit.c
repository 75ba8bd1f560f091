/* test_eightbit FOLDER RUNTIME: steps of AdamW with states in 8 bits on the loss Σ w·p², compared
 * with bitsandbytes' on a CPU (adam8_bnb.h): the same codes, the same parameters. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "compile/graphs.h"
#include "tests/ops/adam8_bnb.h"
#include "tests/ops/ops_test.h"

enum { BLOCKS = (N + 255) / 256, CASES = sizeof bnb_steps / sizeof *bnb_steps, TRIALS = CASES + 1 };

static struct trial {
	const struct known_steps *known; /* NULL: the last gradient is NaN */
	struct arena *arena;
	struct graph_problem train, eval;
	char symbol[32], error[400];
} trials[TRIALS];
static void *object;

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct trial *t = user;
	(void)w;
	(void)hint;
	if (level == DIAG_ERROR && !*t->error)
		snprintf(t->error, sizeof t->error, "%s", message);
}

/* As tests/oracle/eight_bit.py has it. */
static struct graph *new_graph(struct trial *t, struct diag *d, const struct target *target)
{
	const int64_t n = N;
	const struct attr all = ATTR_I("keepdims", 0);
	struct graph *g = graph_new(t->arena, d, "eightbit", ops_table(), target, DT_F32);
	float *p = ARENA_ARRAY(t->arena, float, N), *w = ARENA_ARRAY(t->arena, float, N);
	for (int i = 0; i < N; i++) {
		p[i] = (float)(2 * case_draw(8, (uint64_t)i) - 1);
		w[i] = (float)((0.5 + case_draw(7, (uint64_t)i)) * (i < 256 ? 0.001 : 1));
	}
	if (!t->known)
		w[N - 1] = NAN;
	const char *mul = op_by_role(g->table, ROLE_MUL)->name;
	struct tensor *x = graph_tensor(g, "p", DT_F32, 1, &n);
	x->role = TR_PARAMETER;
	x->data = p;
	struct tensor *y = OP2(g, mul, OP2(g, mul, x, x), graph_constant(g, "w", DT_F32, 1, &n, w));
	g->output = ARENA_ARRAY(t->arena, struct tensor *, 1);
	g->output[g->noutput++] = graph_op(
		g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, &y, 1, &all);
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
	const struct known_steps *k = t->known ? t->known : bnb_steps;
	const struct graph *model = new_graph(t, d, &target);
	struct graph *train, *eval;
	struct optimizer_spec optimizer;
	const struct graph_options o = {.optimizer = &optimizer, .attach = attach_loss};
	char spec[200];
	snprintf(spec, sizeof spec, "adamw8bit:beta1=%g,beta2=%g,eps=%g,weight_decay=%g", k->beta1,
		k->beta2, k->eps, k->decay);
	TRY(optimizer_parse(t->arena, ops_table(), spec, &optimizer, d));
	TRY(graphs_train(model, &o, &train));
	TRY(graphs_forward(model, &o, LOWER_EVAL, &eval));
	return step_write(t->arena, d, t->symbol, train, eval, false, folder, &t->train, &t->eval);
}

struct state {
	float p[N], m_top[BLOCKS], v_top[BLOCKS];
	unsigned char m[N], v[N];
};

static void run(const struct trial *t, struct state *to)
{
	char name[64];
	stint_step *s = NULL;
	if (*t->error)
		fail_msg("%s", t->error);
	snprintf(name, sizeof name, "stint_model_%s", t->symbol);
	const struct stint_model *model = object ? dlsym(object, name) : NULL;
	assert_non_null(model);
	assert_int_equal(stint_init(&s, model, NULL, 0), STINT_OK);
	for (int i = 0; i < model->nresident; i++) {
		const struct tensor *x = t->train.tensor[i];
		if (x->data)
			assert_int_equal(stint_set(s, t->train.problem->tensor[i].name, x->data,
						 (size_t)tensor_bytes(x)),
				STINT_OK);
	}
	for (int k = 1; k <= STEPS; k++)
		assert_int_equal(stint_train(s, 0.1 / k), STINT_OK);
	const struct {
		const char *name;
		void *to;
		size_t bytes;
	} gets[] = {{"p", to->p, sizeof to->p}, {"state/exp_avg/p", to->m, sizeof to->m},
		{"state/exp_avg_sq/p", to->v, sizeof to->v},
		{"state/exp_avg_absmax/p", to->m_top, sizeof to->m_top},
		{"state/exp_avg_sq_absmax/p", to->v_top, sizeof to->v_top}};
	for (size_t i = 0; i < sizeof gets / sizeof *gets; i++)
		assert_int_equal(stint_get(s, gets[i].name, gets[i].to, gets[i].bytes), STINT_OK);
	stint_free(s);
}

static void close_to(double x, double known)
{
	assert_true(fabs(x - known) <= 2e-6 * (fabs(known) + 0.1));
}

static void as_bitsandbytes(void **state)
{
	static const int begin[] = {0, 300, N - SHOWN};
	static struct state s;
	const struct trial *t = *state;
	const struct known_steps *k = t->known;
	run(t, &s);
	for (int part = 0; part < 3; part++)
		for (int j = 0; j < SHOWN; j++) {
			const int i = begin[part] + j, at = part * SHOWN + j;
			close_to((double)s.p[i], k->p[at]);
			assert_int_equal(s.m[i], k->m[at]);
			assert_int_equal(s.v[i], k->v[at]);
		}
	for (int end = 0; end < 2; end++) {
		const int b = end ? BLOCKS - 1 : 0;
		assert_true(fabs((double)s.m_top[b] / k->m_top[end] - 1) < 2e-6);
		assert_true(fabs((double)s.v_top[b] / k->v_top[end] - 1) < 2e-6);
	}
}

/* What is no number is not lost: all of its block is none from then on. */
static void no_numbers_show(void **state)
{
	static struct state s;
	run(*state, &s);
	assert_true(isnan(s.p[N - 1]) && isnan(s.m_top[BLOCKS - 1]) && isnan(s.v_top[BLOCKS - 1]));
	assert_true(isfinite(s.p[0]) && isfinite(s.m_top[0]));
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[TRIALS];
	struct text command = {0};
	char path[4096];
	if (argc != 3)
		return 2;
	mkdir(argv[1], 0777);
	text_add(&command, "${CC:-cc} %s -I%s -shared -o %s/all.so", STEP_CFLAGS, argv[2], argv[1]);
	for (int i = 0; i < TRIALS; i++) {
		struct trial *t = &trials[i];
		struct diag d = {.put = put, .user = t};
		t->known = i < CASES ? &bnb_steps[i] : NULL;
		snprintf(t->symbol, sizeof t->symbol, "eightbit%d", i);
		t->arena = arena_new();
		if (!t->arena || build(t, &d, argv[1]) != ST_OK)
			snprintf(t->error + strlen(t->error), 2, ".");
		else
			text_add(&command, " %s/%s/step.c", argv[1], t->symbol);
		tests[i] = (struct CMUnitTest){t->known ? "as bitsandbytes" : "no numbers",
			t->known ? as_bitsandbytes : no_numbers_show, NULL, NULL, t};
	}
	text_puts(&command, " -lm");
	snprintf(path, sizeof path, "%s/all.so", argv[1]);
	if (!command.failed && system(command.s) == 0)
		object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	text_free(&command);
	int failed = _cmocka_run_group_tests("eightbit", tests, TRIALS, NULL, NULL);
	for (int i = 0; i < TRIALS; i++)
		arena_free(trials[i].arena);
	if (object)
		dlclose(object);
	return failed != 0;
}
