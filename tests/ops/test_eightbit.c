/* test_eightbit FOLDER RUNTIME: steps of AdamW with states in 8 bits on the loss Σ w·p², compared
 * with bitsandbytes' on a CPU (adam8_bnb.h): the same codes, the same parameters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/graphs.h"
#include "tests/ops/adam8_bnb.h"
#include "tests/ops/ops_test.h"
#include "tests/ops/trials.h"

enum { BLOCKS = (N + 255) / 256, CASES = sizeof bnb_steps / sizeof *bnb_steps, TRIALS = CASES + 1 };

static struct trial {
	struct trial_step step;
	const struct known_steps *known; /* NULL: the last gradient is NaN */
} trials[TRIALS];

/* As tests/oracle/eight_bit.py has it. */
static struct graph *new_graph(struct trial *t, struct diag *d, const struct target *target)
{
	const int64_t n = N;
	const struct attr all = ATTR_I("keepdims", 0);
	struct graph *g = graph_new(t->step.arena, d, "eightbit", ops_table(), target, DT_F32);
	float *p = ARENA_ARRAY(t->step.arena, float, N), *w = ARENA_ARRAY(t->step.arena, float, N);
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
	g->output = ARENA_ARRAY(t->step.arena, struct tensor *, 1);
	g->output[g->noutput++] = graph_op(
		g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, &y, 1, &all);
	return g;
}

static enum status build(struct trial *t)
{
	struct diag diag = trial_diag(&t->step), *d = &diag;
	static const struct target target = {.portable = true, .threads = 2};
	const struct known_steps *k = t->known ? t->known : bnb_steps;
	const struct graph *model = new_graph(t, d, &target);
	struct graph *train, *eval;
	struct optimizer_spec optimizer;
	const struct graph_options o = {.optimizer = &optimizer, .attach = trial_attach_loss};
	char spec[200];
	snprintf(spec, sizeof spec, "adamw8bit:beta1=%g,beta2=%g,eps=%g,weight_decay=%g", k->beta1,
		k->beta2, k->eps, k->decay);
	TRY(optimizer_parse(t->step.arena, ops_table(), spec, &optimizer, d));
	TRY(graphs_train(model, &o, &train));
	TRY(graphs_forward(model, &o, LOWER_EVAL, &eval));
	return step_write(t->step.arena, d, t->step.symbol, train, eval, false, t->step.of->folder,
		&t->step.train, &t->step.eval);
}

struct state {
	float p[N], m_top[BLOCKS], v_top[BLOCKS];
	unsigned char m[N], v[N];
};

static void run(const struct trial *t, struct state *to)
{
	stint_step *s = trial_start(&t->step);
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
	struct trials all;
	if (argc != 3)
		return 2;
	trials_begin(&all, argv[1], argv[2]);
	for (int i = 0; i < TRIALS; i++) {
		struct trial *t = &trials[i];
		t->known = i < CASES ? &bnb_steps[i] : NULL;
		trial_built(&t->step,
			trial_begin(&all, &t->step, "eightbit", i) ? build(t) : ST_INTERNAL);
		tests[i] = (struct CMUnitTest){t->known ? "as bitsandbytes" : "no numbers",
			t->known ? as_bitsandbytes : no_numbers_show, NULL, NULL, t};
	}
	trials_open(&all);
	int failed = _cmocka_run_group_tests("eightbit", tests, TRIALS, NULL, NULL);
	for (int i = 0; i < TRIALS; i++)
		trial_end(&trials[i].step);
	trials_end(&all);
	return failed != 0;
}
