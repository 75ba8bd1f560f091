/* Random problems of every kind, five budgets each: what a plan promises holds.
 *
 *	test_planner_random                    a few hundred, for every day
 *	test_planner_random COUNT [FIRST [DIR]]  the campaign: seeds FIRST .. FIRST + COUNT - 1; a
 * line for each broken promise, and its problem to DIR */
#include "brute.h"
#include "problems.h"

#include "planner/problem/transfer.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Keep-everything's arena, 70 % and 40 % of the way to it from the least that is met, that, and 64
 * bytes less. */
enum { BUDGETS = 5 };

struct tally {
	int problems, plans, refused, tiny, optimal, broken;
	int moving; /* plans that move something to the host */
};

/* One problem being looked at. */
struct trial {
	struct arena *a;
	struct problem *p;
	struct diag d;
	struct heard heard;
	struct plan_options o;
	int64_t resident, keep_all, known, proven, budget[BUDGETS];
	struct plan *plan[BUDGETS]; /* NULL where refused */
	bool tiny, moves;           /* has transfers */
	struct tally *tally;
	char why[400]; /* of the first broken promise */
};

static bool broken(struct trial *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool broken(struct trial *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(t->why, sizeof t->why, fmt, ap);
	va_end(ap);
	return false;
}

/* Shapes by seed: everything is on for some, each thing alone for others. */
static struct shape shape_of(uint64_t seed, bool tiny)
{
	struct dice d = {seed * 0x2545f4914f6cdd1du + 99};
	for (int i = 0; i < 8; i++)
		roll(&d, 2);
	struct shape s = {.nop = tiny ? 2 + roll(&d, BRUTE_OPS - 1) : 7 + roll(&d, 30),
		.nparam = tiny ? roll(&d, 2) : roll(&d, 7),
		.inplace = roll(&d, 3) > 0,
		.workspace = roll(&d, 2) == 0,
		.several = roll(&d, 3) == 0,
		.once = roll(&d, 3) == 0,
		.optional = roll(&d, 4) == 0,
		.choices = roll(&d, 3) == 0,
		.unit = tiny || roll(&d, 2) ? 64 : 1 + roll(&d, 200),
		.most = 1 + roll(&d, 30)};
	return s;
}

static bool plan_holds(struct trial *t, const struct plan *plan, int64_t budget)
{
	if (plan_check(t->p, plan, 64, "plan", &t->d) != ST_OK)
		return broken(t, "refused by the checker: %.300s", t->heard.last);
	if (plan->arena_bytes > budget || plan->peak_bytes > plan->arena_bytes)
		return broken(t, "arena %" PRId64 " over the budget of %" PRId64, plan->arena_bytes,
			budget);
	if (plan->budget_bytes != budget)
		return broken(t, "says another budget");
	if (plan->lower_bound > plan->cost_total * (1 + 1e-9))
		return broken(
			t, "bound %.12g over the cost %.12g", plan->lower_bound, plan->cost_total);
	if (plan->cost_total < plan->cost_once * (1 - 1e-9))
		return broken(t, "cost %.12g below one pass", plan->cost_total);
	return true;
}

/* Written and read again, it is the same plan. */
static bool reads_back(struct trial *t, const struct plan *plan)
{
	struct text s = {0}, u = {0};
	struct plan *again;
	plan_print(t->p, plan, &s);
	bool ok = plan_parse(t->a, t->p, s.s, s.len, "plan", &again, &t->d) == ST_OK;
	if (ok)
		plan_print(t->p, again, &u);
	ok = ok && s.len == u.len && memcmp(s.s, u.s, s.len) == 0;
	text_free(&s);
	text_free(&u);
	return ok || broken(t, "does not read back: %.200s", t->heard.last);
}

static bool try_budget(struct trial *t, int i)
{
	struct plan *plan;
	t->o.budget = t->budget[i];
	enum status st = plan_make(t->a, t->p, &t->o, &plan, &t->d);
	bool met = t->budget[i] >= t->known;
	if (st != (met ? ST_OK : ST_BUDGET))
		return broken(t, "budget %" PRId64 ": status %d, known %" PRId64 " %s",
			t->budget[i], (int)st, t->known, t->heard.last);
	t->plan[i] = met ? plan : NULL;
	t->tally->plans += met;
	for (int s = 0; met && s < plan->nstep; s++)
		if (t->p->op[plan->step[s].op].fetches) {
			t->tally->moving++;
			break;
		}
	t->tally->refused += !met;
	if (met)
		return plan_holds(t, plan, t->budget[i]) && (i != 1 || reads_back(t, plan));
	if (plan->feasible || plan->min_bytes_known != t->known ||
		plan->min_bytes_proven != t->proven)
		return broken(t,
			"refused with %" PRId64 " and %" PRId64 ", but %" PRId64 " and %" PRId64
			" are the minimum",
			plan->min_bytes_known, plan->min_bytes_proven, t->known, t->proven);
	return true;
}

/* The frontier's plans hold too, and cost no less where there is less room. */
static bool frontier_falls(struct trial *t)
{
	struct plan *plan[BUDGETS];
	const int64_t *budget = t->budget;
	if (plan_frontier(t->a, t->p, &t->o, budget, BUDGETS, plan, &t->d) != ST_OK)
		return broken(t, "no frontier: %.300s", t->heard.last);
	for (int i = 0; i < BUDGETS; i++) {
		if (!plan[i] != (budget[i] < t->known))
			return broken(t, "frontier at %" PRId64 ": %s, known %" PRId64, budget[i],
				plan[i] ? "met" : "not met", t->known);
		if (plan[i] && !plan_holds(t, plan[i], plan[i]->budget_bytes))
			return false;
		if (plan[i] && (plan[i]->arena_bytes > budget[i] ||
				       (i > 0 && plan[i - 1] &&
					       plan[i - 1]->cost_total >
						       plan[i]->cost_total * (1 + 1e-9))))
			return broken(t, "the frontier rises before %" PRId64 " bytes", budget[i]);
	}
	return true;
}

/* Bounds are at most the true optimum, costs at least. */
static bool brute_agrees(struct trial *t)
{
	if (t->proven > 0 && !isinf(brute_optimum(t->p, t->proven - 1)))
		return broken(t, "%" PRId64 " bytes proven, but less will do", t->proven);
	for (int i = 0; i < BUDGETS; i++) {
		if (!t->plan[i])
			continue;
		double best = brute_optimum(t->p, t->budget[i]), cost = t->plan[i]->cost_total;
		if (t->plan[i]->lower_bound > best * (1 + 1e-9) || cost < best * (1 - 1e-9))
			return broken(t,
				"budget %" PRId64 ": bound %.12g, optimum %.12g, cost %.12g",
				t->budget[i], t->plan[i]->lower_bound, best, cost);
		t->tally->tiny++;
		t->tally->optimal += cost <= best * (1 + 1e-9);
	}
	return true;
}

static bool promises_kept(struct trial *t)
{
	if (problem_validate(t->p, "random", &t->d) != ST_OK)
		return broken(t, "not valid: %.300s", t->heard.last);
	if (plan_range(t->a, t->p, &t->o, &t->resident, &t->keep_all, &t->d) != ST_OK ||
		plan_minimum(t->a, t->p, &t->o, &t->known, &t->proven, &t->d) != ST_OK)
		return broken(t, "no range: %.300s", t->heard.last);
	if (t->proven > t->known || t->known > t->keep_all || t->resident > t->known)
		return broken(t,
			"resident %" PRId64 ", proven %" PRId64 ", known %" PRId64 ", all %" PRId64,
			t->resident, t->proven, t->known, t->keep_all);
	int64_t more = t->keep_all - t->known;
	t->budget[0] = t->keep_all;
	t->budget[1] = t->known + more * 7 / 10;
	t->budget[2] = t->known + more * 4 / 10;
	t->budget[3] = t->known;
	t->budget[4] = t->known - 64;
	for (int i = 0; i < BUDGETS; i++)
		if (t->budget[i] >= 0 && !try_budget(t, i))
			return false;
	return (t->budget[4] < 0 || frontier_falls(t)) && (!t->tiny || brute_agrees(t));
}

/* Some tensors may wait on the host; of a tiny problem's only as many as can be tried out. */
static bool add_transfers(struct trial *t, uint64_t seed)
{
	struct dice d = {seed * 0x9e3779b97f4a7c15u + 5};
	struct problem plain = *t->p;
	int64_t least = 1;
	int moving = 0;
	for (int i = 0; i < plain.ntensor; i++)
		moving += !tensor_kind_resident(plain.tensor[i].kind);
	for (; t->p->nop == plain.nop && least < 1 << 20; least += 64) {
		*t->p = plain;
		if (transfers_add(t->a, t->p, least, 25e3, &t->d) != ST_OK)
			return false;
		const int pairs = t->p->ntensor - plain.ntensor;
		if (t->tiny && plain.nop + moving + 3 * pairs > 17)
			*t->p = plain;
	}
	for (int o = plain.nop; o < t->p->nop; o++) {
		struct problem_choice *c = arena_memdup(t->a, t->p->op[o].choice, 1, sizeof *c);
		c->cost = roll(&d, 5);
		t->p->op[o].choice = c;
	}
	return true;
}

static void dump(const struct trial *t, const char *folder, uint64_t seed)
{
	char path[300];
	struct text s = {0};
	struct diag d = {0};
	snprintf(path, sizeof path, "%s/random-%" PRIu64 ".json", folder, seed);
	problem_print(t->p, &s);
	text_save(&s, path, &d);
	text_free(&s);
}

/* False, and a line on stdout, where a promise is broken. */
static bool try_seed(uint64_t seed, const char *folder, struct tally *tally)
{
	struct trial t = {.a = arena_new(),
		.o = {.alignment = 64, .effort = 0.02},
		.tiny = seed % 2 == 0,
		.moves = seed % 5 < 2,
		.tally = tally};
	struct shape shape = shape_of(seed, t.tiny);
	if (!t.a)
		return false;
	if (t.tiny && t.moves && shape.nop > 5) /* room for transfers */
		shape.nop = 5;
	t.d = listen(&t.heard);
	t.p = random_problem(t.a, seed, &shape);
	for (int i = 0; t.tiny && i < t.p->ntensor; i++) /* so that live bytes are what counts */
		t.p->tensor[i].bytes = (t.p->tensor[i].bytes + 63) / 64 * 64;
	for (int i = 0; seed % 3 == 0 && i < t.p->nop; i++) /* what is late holds as well */
		t.p->op[i].waits = t.p->op[i].phase == PHASE_UPDATE;
	bool ok = (!t.moves || add_transfers(&t, seed)) && promises_kept(&t);
	tally->problems++;
	tally->broken += !ok;
	if (!ok) {
		printf("seed %" PRIu64 ": %s\n", seed, t.why);
		fflush(stdout);
	}
	if (!ok && folder)
		dump(&t, folder, seed);
	arena_free(t.a);
	return ok;
}

static void say(const struct tally *t)
{
	printf("%d problems, %d plans, %d refused; %d of %d of the tiny ones' plans optimal; %d "
	       "plans move something to the host; %d problems with a broken promise\n",
		t->problems, t->plans, t->refused, t->optimal, t->tiny, t->moving, t->broken);
}

static void every_day(void **state)
{
	struct tally t = {0};
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++)
		if (seed % 2 == 0 || seed <= 80)
			try_seed(seed, NULL, &t);
	say(&t);
	assert_int_equal(t.broken, 0);
	assert_true(t.plans > 400 && t.refused > 100 && t.tiny > 200);
	assert_true(t.optimal >= t.tiny * 95 / 100);
	assert_true(t.moving > 10);
}

static int campaign(int argc, char **argv)
{
	uint64_t count = strtoull(argv[1], NULL, 10);
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	struct tally t = {0};
	for (uint64_t seed = first; seed < first + count; seed++)
		try_seed(seed, argc > 3 ? argv[3] : NULL, &t);
	say(&t);
	return t.broken || count == 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_day)};
	if (argc > 1)
		return campaign(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
