/* A state under random edits agrees with the simulation of the sequence that it holds. */
#include "tests/planner/problems.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "planner/search/state.h"

static const struct shape shapes[] = {
	{.nop = 12, .nparam = 3, .unit = 64, .most = 9},
	{.nop = 14, .nparam = 3, .inplace = true, .workspace = true, .unit = 64, .most = 9},
	{.nop = 16,
		.nparam = 4,
		.inplace = true,
		.workspace = true,
		.several = true,
		.once = true,
		.optional = true,
		.choices = true,
		.unit = 40,
		.most = 90},
};

struct bench {
	struct arena *a;
	struct inst *in;
	struct state s;
	struct search x;
	struct seq q;
	struct dice dice;
	bool exact; /* no placed update needs bytes of its own */
};

static void setup(struct bench *b, struct arena *a, const struct problem *p, uint64_t seed)
{
	struct heard heard = {0};
	struct diag d = listen(&heard);
	*b = (struct bench){.a = a, .dice = {seed * 77 + 1}, .exact = true};
	assert_int_equal(inst_make(b->a, p, 64, &b->in, &d), ST_OK);
	assert_true(search_init(&b->x, b->a, b->in));
	assert_true(state_init(&b->s, b->a, b->in, &b->x.work));
	for (int i = 0; i < b->in->nfloat; i++) {
		const struct way *w = &b->in->way[b->in->floats[i]][0];
		b->exact = b->exact && w->ws == 0 && w->npair == 0;
		for (int k = 0; k < w->nout; k++)
			b->exact = b->exact && b->in->size[w->out[k]] == 0;
	}
	b->x.target = b->in->resident + 64 * roll(&b->dice, 40);
	assert_true(order_listed(&b->x, b->in->usable, &b->q));
	assert_true(state_load(&b->s, &b->q, b->in->usable, b->x.target));
}

static void teardown(struct bench *b)
{
	seq_free(&b->q);
	state_free(&b->s);
	search_free(&b->x);
	arena_free(b->a);
}

/* Cost, validity and bytes at every step. */
static void agree(struct bench *b)
{
	struct state *s = &b->s;
	const int64_t base = s->target / 64 * 64;
	assert_true(state_store(s, &b->q));
	for (int i = 0; i < s->nslot - 1; i++)
		if (s->at[i] >= 0)
			assert_int_equal(s->run[s->at[i]].saved, state_saved(s, s->at[i]));
	bool ok = simulate(&b->x, &b->q, s->way, &b->x.s);
	for (int o = 0; o < b->in->n; o++)
		if (s->count[o] > 1 ? b->in->once[o] : s->count[o] == 0 && !b->in->optional[o])
			ok = false;
	assert_int_equal(ok, s->bad == 0);
	if (!ok)
		return;
	const struct sim *sim = &b->x.s;
	assert_true(fabs(sim->cost - s->cost) <= 1e-9 * sim->cost);
	int64_t peak = profile_at(&s->over, profile_worst(&s->over)) * 64 + base;
	if (b->exact)
		assert_int_equal(peak, sim->peak);
	else
		assert_true(peak >= sim->peak);
	int slot = -1;
	for (int i = 0; i < sim->n; i++) {
		if (b->in->floating[sim->step[i]])
			continue;
		do
			slot++;
		while (s->at[slot] < 0);
		assert_int_equal(s->run[s->at[slot]].op, sim->step[i]);
		int64_t bytes = profile_at(&s->over, slot) * 64 + base;
		assert_true(b->exact ? bytes == sim->mem[i] : bytes >= sim->mem[i]);
	}
	assert_int_equal(profile_over(&s->over) == 0, peak <= s->target);
}

static void edit(struct bench *b)
{
	struct state *s = &b->s;
	int slot = roll(&b->dice, s->nslot - 1), what = roll(&b->dice, 10);
	while (slot >= 0 && s->at[slot] < 0)
		slot--;
	if (what < 5) {
		int op[3], n = 1 + roll(&b->dice, 3), k = 0;
		for (int i = 0; i < n; i++) {
			op[k] = roll(&b->dice, b->in->n);
			k += !b->in->floating[op[k]];
		}
		assert_true(state_put(s, slot, op, k));
	} else if (what < 8) {
		if (slot >= 0)
			state_take(s, s->at[slot]);
	} else {
		int o = roll(&b->dice, b->in->n);
		if (!b->in->floating[o])
			state_set_way(s, o, roll(&b->dice, b->in->nway[o]));
	}
	if (roll(&b->dice, 4) == 0)
		state_clean(s);
}

/* What undoing must restore: numbers too. */
static uint64_t digest(const struct state *s)
{
	uint64_t h = (uint64_t)s->bad;
	for (int i = 0; i < s->nslot; i++)
		h = h * 1099511628211u + (uint64_t)(s->at[i] + 2) +
		    (uint64_t)profile_at(&s->over, i);
	for (int t = 0; t < s->in->m; t++)
		for (int l = s->last[t]; l >= 0; l = s->life[l].prev)
			h = h * 1099511628211u +
			    (uint64_t)(l + 7 * s->life[l].end + 31 * s->life[l].nuse);
	return h;
}

static void edit_rounds(struct bench *b, int rounds)
{
	agree(b);
	for (int round = 0; round < rounds; round++) {
		int mark = state_mark(&b->s), slots = b->s.nslot;
		uint64_t before = digest(&b->s);
		for (int i = roll(&b->dice, 6); i >= 0; i--)
			edit(b);
		agree(b);
		if (roll(&b->dice, 3) == 0) {
			if (roll(&b->dice, 2) == 0)
				state_commit(&b->s);
			continue;
		}
		state_undo(&b->s, mark);
		agree(b);
		if (b->s.nslot == slots && b->s.bad == 0)
			assert_true(digest(&b->s) == before);
	}
}

static void edits(void **unused)
{
	(void)unused;
	for (uint64_t seed = 0; seed < 240; seed++) {
		struct bench b;
		struct arena *a = arena_new();
		setup(&b, a, random_problem(a, seed, &shapes[seed % 3]), seed);
		edit_rounds(&b, 30);
		teardown(&b);
	}
}

/* An op with many in-place pairs, a long chain of updates of which each reads two results of the
 * one before: what a text of ops and tensors makes. */
static struct problem *wide_and_deep(struct arena *a, int width, int depth)
{
	struct heard heard = {0};
	struct diag d = listen(&heard);
	struct text t = {0}, in = {0}, out = {0}, pair = {0};
	struct problem *p;
	text_puts(&t, "{\"format\":\"stint-graph-1\",\"name\":\"g\",\"tensors\":["
		      "{\"id\":0,\"name\":\"\",\"kind\":\"input\",\"bytes\":64}");
	for (int i = 1; i <= 2 * width; i++)
		text_add(&t, ",{\"id\":%d,\"name\":\"\",\"kind\":\"activation\",\"bytes\":%d}", i,
			64 * (i > width ? 2 * width + 1 - i : i + 1));
	for (int i = 0; i < 3 * depth; i++)
		text_add(&t, ",{\"id\":%d,\"name\":\"\",\"kind\":\"%s\",\"bytes\":%d}", 1000 + i,
			i % 3 ? "activation" : "parameter", i % 3 == 2 ? 0 : 64);
	text_puts(&t, "],\"ops\":[");
	for (int i = 1; i <= width; i++) {
		text_add(&t,
			"{\"id\":%d,\"name\":\"\",\"phase\":\"forward\",\"inputs\":[0],"
			"\"outputs\":[%d],\"cost\":1,\"workspace\":0,\"inplace\":[],"
			"\"recomputable\":true},",
			i, i);
		text_add(&in, "%s%d", i > 1 ? "," : "", i);
		text_add(&out, "%s%d", i > 1 ? "," : "", 2 * width + 1 - i);
		text_add(&pair, "%s[%d,%d]", i > 1 ? "," : "", 2 * width + 1 - i, i);
	}
	text_add(&t,
		"{\"id\":%d,\"name\":\"\",\"phase\":\"backward\",\"inputs\":[%s],"
		"\"outputs\":[%s],\"cost\":1,\"workspace\":0,\"inplace\":[%s],"
		"\"recomputable\":true}",
		width + 1, in.s, out.s, pair.s);
	for (int i = 0; i < depth; i++)
		text_add(&t,
			",{\"id\":%d,\"name\":\"\",\"phase\":\"update\",\"inputs\":[%d,%d,%d],"
			"\"outputs\":[%d,%d],\"cost\":1,\"workspace\":0,"
			"\"inplace\":[[%d,%d]],\"recomputable\":false}",
			1000 + i, 1000 + 3 * i, i ? 998 + 3 * i : width + 1,
			i ? 999 + 3 * i : 2 * width, 1001 + 3 * i, 1002 + 3 * i, 1001 + 3 * i,
			1000 + 3 * i);
	text_add(&t, "],\"keep\":[%d]}", 1000 + 3 * depth - 2);
	assert_int_equal(problem_parse(a, t.s, t.len, "g", &p, &d), ST_OK);
	text_free(&t);
	text_free(&in);
	text_free(&out);
	text_free(&pair);
	return p;
}

static void wide_and_deep_edits(void **unused)
{
	(void)unused;
	struct bench b;
	struct arena *a = arena_new();
	setup(&b, a, wide_and_deep(a, 40, 100), 1);
	assert_true(b.exact && b.in->nfloat == 100);
	edit_rounds(&b, 60);
	teardown(&b);
}

/* The largest sizes that a problem may have, over many slots: sums do not overflow. */
static void huge(void **unused)
{
	(void)unused;
	struct heard heard = {0};
	struct diag d = listen(&heard);
	struct bench b = {.a = arena_new()};
	const int64_t bytes = ((int64_t)1 << 60) / 4003;
	struct problem *p = chain_problem(b.a, 2000, bytes);
	assert_int_equal(problem_validate(p, "huge", &d), ST_OK);
	assert_int_equal(inst_make(b.a, p, 64, &b.in, &d), ST_OK);
	assert_true(search_init(&b.x, b.a, b.in));
	assert_true(state_init(&b.s, b.a, b.in, &b.x.work));
	assert_true(order_listed(&b.x, b.in->usable, &b.q));
	const int64_t target[] = {0, bytes, 1000 * bytes, b.x.s.peak / 100 * 99};
	for (int i = 0; i < 4; i++) {
		assert_true(state_load(&b.s, &b.q, b.in->usable, target[i]));
		assert_true(profile_over(&b.s.over) > 0);
		assert_false(state_fits(&b.s));
	}
	/* rounding up may cost a little */
	state_aim(&b.s, b.x.s.peak / 99 * 100);
	assert_true(state_fits(&b.s));
	state_aim(&b.s, INT64_MAX);
	assert_true(state_fits(&b.s));
	teardown(&b);
}

static void profiles(void **unused)
{
	(void)unused;
	struct profile p = {0};
	struct dice d = {5};
	int64_t plain[300] = {0};
	int at[300];
	bool on[300];
	assert_true(profile_clear(&p, 300));
	for (int i = 0; i < 300; i++)
		on[i] = (at[i] = roll(&d, 3) - 1) >= 0;
	profile_sum(&p, 0, at, 300);
	for (int round = 0; round < 2000; round++) {
		int from = roll(&d, 300), to = roll(&d, 300), x = roll(&d, 200) - 100;
		profile_add(&p, from, to, x);
		if (round % 7 == 0) {
			profile_switch(&p, from, !on[from]);
			on[from] = !on[from];
		}
		int64_t over = 0, relief = 0, most = INT64_MIN;
		for (int i = 0; i < 300; i++) {
			plain[i] += i >= from && i <= to ? x : 0;
			if (!on[i])
				continue;
			over += plain[i] > 0 ? plain[i] : 0;
			most = plain[i] > most ? plain[i] : most;
			if (i >= from && i <= to && plain[i] > 0)
				relief += plain[i] < 37 ? plain[i] : 37;
		}
		assert_int_equal(profile_over(&p), over);
		assert_int_equal(profile_relief(&p, from, to, 37), relief);
		int64_t highest = -PROFILE_MAX;
		for (int i = from; i <= to; i++)
			highest = on[i] && plain[i] > highest ? plain[i] : highest;
		assert_true(!profile_exceeds(&p, from, to, highest));
		assert_true(highest == -PROFILE_MAX || profile_exceeds(&p, from, to, highest - 1));
		assert_int_equal(profile_at(&p, profile_worst(&p)), most);
	}
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(profiles), cmocka_unit_test(edits),
		cmocka_unit_test(wide_and_deep_edits), cmocka_unit_test(huge)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
