/* AdamW with states in 8 bits (kernels/adam8.h) against bitsandbytes' on a CPU (adam8_bnb.h): the
 * same codes, the same parameters; turns cut anywhere give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kernels/adam8_bnb.h"

#include "kernels/adam8.h"

enum { BLOCKS = (N + 255) / 256, CASES = sizeof bnb_steps / sizeof *bnb_steps };

struct state {
	real p[N], m_top[BLOCKS], v_top[BLOCKS];
	unsigned char m[N], v[N];
};

/* case_draw of tests/ops/example.c, draw of tests/oracle/optimizers.py. */
static double draw(uint64_t key, uint64_t i)
{
	uint64_t z = key * 0x9E3779B97F4A7C15u + (i + 1) * 0xD1342543DE82EF95u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return (double)((z ^ (z >> 31)) >> 40) / (1 << 24);
}

static void run(const struct known_steps *k, int64_t cut, struct state *s)
{
	static real w[N], g[N];
	const struct update u = {.decoupled = true, .decay = k->decay};
	const struct adam o = {k->beta1, k->beta2, (real)k->beta1, (real)(1 - k->beta1),
		(real)k->beta2, (real)(1 - k->beta2), (real)k->eps};
	*s = (struct state){.m = {0}};
	for (int i = 0; i < N; i++) {
		s->p[i] = (real)(2 * draw(8, (uint64_t)i) - 1);
		w[i] = (real)((0.5 + draw(7, (uint64_t)i)) * (i < 256 ? 0.001 : 1));
	}
	for (int step = 1; step <= STEPS; step++) {
		const int64_t control[4] = {1, step - 1};
		const real lr = (real)(0.1 / step);
		for (int i = 0; i < N; i++)
			g[i] = 2 * w[i] * s->p[i];
		const struct adam_bias bias = adam_bias(&lr, control, &o);
		for (int64_t from = 0; from < BLOCKS; from += cut)
			adam8(s->p, s->m, s->v, s->m_top, s->v_top, s->p, g, NULL, NULL, N, &lr,
				control, s->m, s->v, s->m_top, s->v_top, &u, &o, bias, from,
				MIN(from + cut, BLOCKS));
	}
}

static void close_to(double x, double known)
{
	assert_true(fabs(x - known) <= 2e-6 * (fabs(known) + 0.1));
}

static void as_bitsandbytes(void **state)
{
	static const int begin[] = {0, 300, N - SHOWN};
	static struct state s;
	(void)state;
	for (size_t c = 0; c < CASES; c++) {
		const struct known_steps *k = &bnb_steps[c];
		run(k, BLOCKS, &s);
		for (int part = 0; part < 3; part++)
			for (int j = 0; j < SHOWN; j++) {
				const int i = begin[part] + j, at = part * SHOWN + j;
				close_to(s.p[i], k->p[at]);
				assert_int_equal(s.m[i], k->m[at]);
				assert_int_equal(s.v[i], k->v[at]);
			}
		for (int end = 0; end < 2; end++) {
			const int b = end ? BLOCKS - 1 : 0;
			assert_true(fabs(s.m_top[b] / k->m_top[end] - 1) < 2e-6);
			assert_true(fabs(s.v_top[b] / k->v_top[end] - 1) < 2e-6);
		}
	}
}

static void cut_anywhere(void **state)
{
	static struct state whole, parts;
	(void)state;
	run(&bnb_steps[1], BLOCKS, &whole);
	for (int64_t cut = 1; cut < 8; cut += 3) {
		run(&bnb_steps[1], cut, &parts);
		assert_memory_equal(&whole, &parts, sizeof whole);
	}
}

/* What is no number is not lost: all of its block is none from then on. */
static void no_numbers_show(void **state)
{
	static struct state s;
	const real lr = R(0.1), g[256] = {[7] = NAN};
	const int64_t control[4] = {0};
	const struct update u = {.decoupled = true};
	const struct adam o = {0.9, 0.999, R(0.9), R(0.1), R(0.999), R(0.001), R(1e-8)};
	(void)state;
	s = (struct state){.m = {0}};
	adam8(s.p, s.m, s.v, s.m_top, s.v_top, s.p, g, NULL, NULL, 256, &lr, control, s.m, s.v,
		s.m_top, s.v_top, &u, &o, adam_bias(&lr, control, &o), 0, 1);
	assert_true(isnan(s.p[7]) && isnan(s.m_top[0]) && isnan(s.v_top[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(as_bitsandbytes),
		cmocka_unit_test(cut_anywhere), cmocka_unit_test(no_numbers_show)};
	return cmocka_run_group_tests_name("adam8", tests, NULL, NULL);
}
