/* Plans: accepted by the checker, never below the bound, never below the true optimum. */
#include "problems.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct shape middle = {.nop = 40,
	.nparam = 6,
	.inplace = true,
	.workspace = true,
	.several = true,
	.once = true,
	.optional = true,
	.choices = true,
	.unit = 50,
	.most = 20};

static void assert_plan(const struct problem *p, const struct plan *plan)
{
	struct heard h;
	struct diag d = listen(&h);
	if (plan_check(p, plan, 64, "plan", &d) != ST_OK)
		fail_msg("%s", h.last);
	assert_true(plan->lower_bound >= 0);
	assert_true(plan->lower_bound <= plan->cost_total * (1 + 1e-9));
	assert_true(plan->cost_total >= plan->cost_once * (1 - 1e-9));
}

static void random_problems(void **state)
{
	(void)state;
	int met = 0, refused = 0;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = random_problem(a, seed, &middle);
		struct plan_options o = {.alignment = 64, .effort = 0.02, .budget = INT64_MAX};
		int64_t resident, keep_all, known, proven;
		assert_int_equal(plan_range(a, p, &o, &resident, &keep_all, &d), ST_OK);
		assert_int_equal(plan_minimum(a, p, &o, &known, &proven, &d), ST_OK);
		assert_true(proven <= known && known <= keep_all);
		for (int f = 10; f >= 0; f -= 2) {
			struct plan *plan;
			o.budget = resident + (keep_all - resident) * f / 10;
			enum status st = plan_make(a, p, &o, &plan, &d);
			assert_int_equal(st, o.budget >= known ? ST_OK : ST_BUDGET);
			if (st == ST_OK) {
				assert_plan(p, plan);
				met++;
			} else {
				assert_false(plan->feasible);
				assert_true(plan->min_bytes_known == known);
				assert_true(plan->min_bytes_proven == proven);
				refused++;
			}
		}
		struct plan *plan;
		o.budget = known;
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
		assert_plan(p, plan);
		o.budget = known - 1;
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_BUDGET);
		assert_int_equal(h.n, 0);
		arena_free(a);
	}
	assert_true(met > 12 && refused > 0);
}

/* --- The true optimum of tiny problems, for live bytes: shortest path over what is live and what
 * has run. --- */

enum { OPS = 6, TENSORS = 12 };

struct exact {
	const struct problem *p;
	int64_t budget, resident;
	int choice[OPS + 4];
	int bit[64]; /* of non-resident tensors, -1 for residents */
	int nbit;
	double *dist;
	int *heap, nheap, cap;
};

static bool has(const int *list, int n, int t)
{
	for (int i = 0; i < n; i++)
		if (list[i] == t)
			return true;
	return false;
}

/* Bytes and what is gone of the live set when op o runs, over all subsets of its pairs; calls relax
 * for each. */
static void relax(struct exact *e, unsigned live, unsigned ran, double dist)
{
	size_t at = (size_t)ran << e->nbit | live;
	if (dist >= e->dist[at])
		return;
	e->dist[at] = dist;
	if (e->nheap == e->cap) {
		e->cap = e->cap * 2 + 1024;
		e->heap = realloc(e->heap, (size_t)e->cap * sizeof *e->heap);
	}
	e->heap[e->nheap++] = (int)at;
}

/* Residents' bytes after the updates in `ran`: a replaced resident's place holds its output. */
static bool reads_replaced(
	const struct exact *e, int o, const struct problem_choice *c, unsigned ran)
{
	for (int u = 0; u < e->p->nop; u++)
		for (int i = 0; (ran >> u & 1) && i < e->p->op[u].npair; i++) {
			int w = e->p->op[u].pair[i].in;
			if (tensor_kind_resident(e->p->tensor[w].kind) && u != o &&
				has(c->in, c->nin, w))
				return true;
		}
	return false;
}

static int64_t bytes_of(const struct exact *e, unsigned live)
{
	int64_t sum = 0;
	for (int t = 0; t < e->p->ntensor; t++) {
		if (e->bit[t] < 0 || !(live >> e->bit[t] & 1))
			continue;
		const struct problem_op *op = &e->p->op[e->p->tensor[t].producer];
		bool home = false;
		for (int i = 0; i < op->npair; i++)
			home = home ||
			       (op->pair[i].out == t &&
				       tensor_kind_resident(e->p->tensor[op->pair[i].in].kind));
		sum += home ? 0 : e->p->tensor[t].bytes;
	}
	return sum;
}

static void run_op(struct exact *e, unsigned live, unsigned ran, double dist, int o)
{
	const struct problem_op *op = &e->p->op[o];
	const struct problem_choice *c = &op->choice[e->choice[o]];
	unsigned out = 0;
	if (((ran >> o & 1) && !op->recomputable) || reads_replaced(e, o, c, ran))
		return;
	for (int i = 0; i < c->nin; i++)
		if (e->bit[c->in[i]] >= 0 && !(live >> e->bit[c->in[i]] & 1))
			return;
	for (int i = 0; i < c->nout; i++)
		out |= 1u << e->bit[c->out[i]];
	for (unsigned take = 0; take < 1u << op->npair; take++) {
		unsigned gone = 0, placed = 0;
		bool ok = true;
		for (int i = 0; i < op->npair; i++) {
			int in = op->pair[i].in, to = op->pair[i].out;
			if (!(take >> i & 1))
				continue;
			ok = ok && e->bit[in] >= 0 && has(c->in, c->nin, in) &&
			     has(c->out, c->nout, to) && !(gone >> e->bit[in] & 1) &&
			     !(placed >> e->bit[to] & 1) && !(live >> e->bit[to] & 1);
			if (!ok)
				break;
			gone |= 1u << e->bit[in];
			placed |= 1u << e->bit[to];
		}
		if (!ok || e->resident + bytes_of(e, (live | out) & ~placed) + c->workspace >
				   e->budget)
			continue;
		relax(e, (live & ~gone) | out, ran | 1u << o, dist + c->cost);
	}
}

static double exact_cost(struct exact *e)
{
	size_t n = (size_t)1 << (e->nbit + e->p->nop);
	unsigned must = 0, keep = 0, all = (1u << e->nbit) - 1;
	double best = INFINITY;
	e->dist = malloc(n * sizeof *e->dist);
	for (size_t i = 0; i < n; i++)
		e->dist[i] = INFINITY;
	for (int o = 0; o < e->p->nop; o++)
		must |= e->p->op[o].optional ? 0 : 1u << o;
	for (int t = 0; t < e->p->ntensor; t++)
		keep |= e->p->tensor[t].keep && e->bit[t] >= 0 ? 1u << e->bit[t] : 0;
	relax(e, 0, 0, 0);
	while (e->nheap > 0) { /* label correcting: a queue in any order will do */
		size_t at = (size_t)e->heap[--e->nheap];
		unsigned live = (unsigned)at & all, ran = (unsigned)(at >> e->nbit);
		double dist = e->dist[at];
		if ((ran & must) == must && (live & keep) == keep && dist < best)
			best = dist;
		if (dist >= best)
			continue;
		for (int b = 0; b < e->nbit; b++)
			if (live >> b & 1)
				relax(e, live & ~(1u << b), ran, dist);
		for (int o = 0; o < e->p->nop; o++)
			run_op(e, live, ran, dist, o);
	}
	free(e->dist);
	return best;
}

/* Over all choices of all ops. */
static double optimum(const struct problem *p, int64_t budget)
{
	struct exact e = {.p = p, .budget = budget};
	double best = INFINITY;
	for (int t = 0; t < p->ntensor; t++) {
		bool resident = tensor_kind_resident(p->tensor[t].kind);
		e.bit[t] = resident ? -1 : e.nbit++;
		e.resident += resident ? p->tensor[t].bytes : 0;
	}
	for (;;) {
		double v = exact_cost(&e);
		best = v < best ? v : best;
		int o = 0;
		while (o < p->nop && ++e.choice[o] == p->op[o].nchoice)
			e.choice[o++] = 0;
		if (o == p->nop)
			break;
	}
	free(e.heap);
	return best;
}

static void tiny_problems(void **state)
{
	(void)state;
	struct shape tiny = {.nop = OPS, .nparam = 1, .unit = 64, .most = 6};
	int equal = 0, plans = 0, refused = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		tiny.inplace = seed % 2;
		tiny.workspace = seed % 3 == 0;
		tiny.several = seed % 5 == 0;
		tiny.once = seed % 4 == 0;
		tiny.choices = seed % 7 == 0;
		tiny.optional = seed % 6 == 0;
		struct problem *p = random_problem(a, seed, &tiny);
		struct plan_options o = {.alignment = 64, .effort = 0.02, .budget = INT64_MAX};
		int64_t resident, keep_all, known, proven;
		for (int t = 0; t < p->ntensor; t++)
			p->tensor[t].bytes = (p->tensor[t].bytes + 63) / 64 * 64;
		assert_int_equal(problem_validate(p, "tiny", &d), ST_OK);
		assert_int_equal(plan_range(a, p, &o, &resident, &keep_all, &d), ST_OK);
		assert_int_equal(plan_minimum(a, p, &o, &known, &proven, &d), ST_OK);
		if (proven > 0)
			assert_true(isinf(optimum(p, proven - 1)));
		for (int64_t budget = keep_all; budget >= proven && budget > 0;
			budget -= (keep_all - proven) / 4 + 1) {
			struct plan *plan;
			double best = optimum(p, budget);
			o.budget = budget;
			if (plan_make(a, p, &o, &plan, &d) != ST_OK) {
				refused++;
				continue;
			}
			assert_plan(p, plan);
			if (plan->lower_bound > best * (1 + 1e-9) ||
				plan->cost_total < best * (1 - 1e-9))
				fail_msg("seed %d budget %d: bound %g optimum %g cost %g",
					(int)seed, (int)budget, plan->lower_bound, best,
					plan->cost_total);
			plans++;
			equal += plan->cost_total <= best * (1 + 1e-9);
		}
		arena_free(a);
	}
	print_message("%d plans, %d of them optimal, %d refused\n", plans, equal, refused);
	assert_true(plans > 100);
	assert_true(equal >= plans * 95 / 100);
}

/* A chain of n equal ops: with room for k tensors beside the gradients. */
static void chains(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct problem *p = chain_problem(a, 32, 1024);
	struct plan_options o = {.alignment = 64, .effort = 0.02, .budget = INT64_MAX};
	struct plan *plan;
	int64_t resident, keep_all;
	assert_int_equal(plan_range(a, p, &o, &resident, &keep_all, &d), ST_OK);
	assert_true(keep_all == 34 * 1024); /* x0 .. x32 and a gradient */
	double last = 0;
	for (int64_t room = keep_all; room >= 9 * 1024; room -= 1024) {
		o.budget = room;
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
		assert_plan(p, plan);
		assert_true(plan->arena_bytes == plan->peak_bytes);
		assert_true(plan->cost_total >= last - 1e-9);
		last = plan->cost_total;
		/* recomputing the whole chain once is enough for twice the square root of its
		 * length */
		if (room >= 15 * 1024)
			assert_true(plan->cost_total <= 65 + 32);
	}
	arena_free(a);
}

/* No worse than segments, where these fit. */
static void beats_segments(void **state)
{
	(void)state;
	struct shape deep = middle;
	deep.nop = 60;
	deep.optional = deep.choices = false;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = random_problem(a, seed, &deep);
		for (int k = 2; k <= 8; k += 3) {
			struct plan_options o = {.alignment = 64,
				.effort = 0.02,
				.budget = INT64_MAX,
				.mode = PLAN_SEGMENTS,
				.segments = k};
			struct plan *segments, *plan;
			assert_int_equal(plan_make(a, p, &o, &segments, &d), ST_OK);
			assert_plan(p, segments);
			o.mode = PLAN_AUTO;
			o.budget = segments->arena_bytes;
			assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
			assert_plan(p, plan);
			assert_true(plan->cost_total <= segments->cost_total * (1 + 1e-9));
		}
		arena_free(a);
	}
}

static void same_again(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct problem *p = random_problem(a, 5, &middle);
	struct plan_options o = {.alignment = 256, .effort = 0.02, .budget = INT64_MAX};
	struct plan *plan, *again;
	int64_t known, proven;
	assert_int_equal(plan_minimum(a, p, &o, &known, &proven, &d), ST_OK);
	o.budget = known + known / 10;
	struct text s = {0}, t = {0}, u = {0};
	assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
	plan_print(p, plan, &s);
	assert_int_equal(plan_make(a, p, &o, &again, &d), ST_OK);
	plan_print(p, again, &t);
	assert_string_equal(s.s, t.s);
	assert_int_equal(plan_parse(a, p, s.s, s.len, "plan", &again, &d), ST_OK);
	assert_int_equal(plan_check(p, again, 256, "plan", &d), ST_OK);
	plan_print(p, again, &u);
	assert_string_equal(s.s, u.s);
	struct plan_facts f;
	assert_int_equal(plan_facts_make(a, p, plan, &f, &d), ST_OK);
	assert_true(f.live[f.peak_step] == plan->peak_bytes);
	int64_t sum = f.workspace_at_peak;
	for (int k = 0; k < 6; k++)
		sum += f.at_peak[k];
	assert_true(sum == plan->peak_bytes);
	text_free(&s);
	text_free(&t);
	text_free(&u);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_problems),
		cmocka_unit_test(tiny_problems),
		cmocka_unit_test(chains),
		cmocka_unit_test(beats_segments),
		cmocka_unit_test(same_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
