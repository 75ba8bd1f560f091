#include "cli/plan_ranks.h"

#include <inttypes.h>
#include <stdio.h>

#include "bridge/ranks_work.h"
#include "compile/batch_parts.h"
#include "planner/problem/json_text.h"
#include "planner/problem/roofline.h"

enum { ROWS_MAX = 64 };

const double PLAN_RANKS_EFFORT = 0.25;

struct row {
	struct ranks_cost cost;
	int64_t memory, state; /* bytes of a rank's arena; of states in it */
	bool met;              /* the budget; or it would be by `memory`, and there is no cost */
};

struct table {
	const struct pipeline *p;
	const struct plan_ranks *asked;
	int n;
	const struct row *first, *fastest; /* of those that are met */
	struct row alone;                  /* one process's, of what is for so many */
	struct row row[ROWS_MAX];
};

static double step_us(const struct row *x)
{
	return x->cost.compute + x->cost.exposed;
}

/* Of a plan for so many ranks, or for any number; not met: what is known of it. */
static enum status take_plan(
	const struct table *t, const struct pipeline *p, int64_t ranks, struct row *x)
{
	struct ranks_work work;
	int64_t whole;
	parts_held(p->train, TR_STATE, &x->state, &whole);
	x->memory = plan_pair_least(&p->plans);
	x->met = x->memory == 0;
	x->cost = (struct ranks_cost){.ranks = (int)ranks, .shards = shards_of_process(p->train)};
	if (!x->met)
		return ST_OK;
	x->memory = p->plans.arena_bytes;
	TRY(ranks_work_of(p->arena, &p->train_problem, p->plans.train_plan,
		roofline_of(p->o->arch)->bytes, &work, p->diag));
	ranks_cost(&work, &t->asked->link, (int)ranks, &x->cost);
	return ST_OK;
}

/* As `compile --ranks` plans it. What it has to say is said of the last row's plan. */
static enum status plan_row(struct table *t, int64_t ranks, struct row *x)
{
	struct diag quiet = {.put = NULL};
	struct compile_options o = *t->p->o;
	struct pipeline p = {.arena = arena_new(), .diag = &quiet, .o = &o};
	struct problem *problem;
	o.ranks = ranks;
	if (!p.arena)
		return diag_nomem(t->p->diag);
	enum status st = pipeline_problem(&p, &problem);
	if (st == ST_OK)
		st = pipeline_plan_quietly(&p);
	if (st == ST_OK || st == ST_BUDGET)
		st = take_plan(t, &p, ranks, x);
	arena_free(p.arena);
	if (st != ST_OK && !quiet.out_of_memory)
		return diag_fail(t->p->diag, st, NULL, NULL,
			"%" PRId64 " ranks: no plan could be made", ranks);
	return st == ST_OK ? ST_OK : diag_nomem(t->p->diag);
}

static enum status fill(struct table *t)
{
	const int64_t most = t->asked->ranks;
	const struct compile_options *o = t->p->o;
	for (int64_t n = 1; n < most && !t->asked->only; n *= 2) {
		if (o->micro_batch != MICRO_BATCH_AUTO && !parts_go_round(o, t->p->parts.shards, n))
			continue;
		struct row *x = &t->row[t->n++];
		TRY(t->asked->each ? plan_row(t, n, x) : take_plan(t, t->p, n, x));
	}
	TRY(take_plan(t, t->p, most, &t->row[t->n++]));
	for (int i = t->n - 1; i >= 0; i--) {
		const struct row *x = &t->row[i];
		if (x->met)
			t->first = x;
		if (x->met && (!t->fastest || step_us(x) <= step_us(t->fastest)))
			t->fastest = x;
	}
	if (!t->asked->only)
		return ST_OK;
	t->first = &t->alone;
	return take_plan(t, t->p, 1, &t->alone);
}

/* --- For people --- */

static void print_row(const struct table *t, const struct row *x)
{
	char memory[24], sent[24];
	const struct ranks_cost *c = &x->cost;
	printf("%6d %12" PRId64 " %10s", c->ranks, c->shards, bytes_human(x->memory, memory));
	if (!x->met) {
		printf(" at least: over the budget\n");
		return;
	}
	const double us = step_us(x), faster = step_us(t->first) / us;
	printf(" %11.4g %10s %9.3g %9.4g %10.4g %7.1f %% %9.4g %8.4g %9.1f %%\n", c->compute / 1e3,
		bytes_human((int64_t)c->bytes, sent), c->messages, c->communication / 1e3,
		c->exposed / 1e3, 100 * c->exposed / us, us / 1e3, faster,
		100 * faster * t->first->cost.ranks / c->ranks);
}

static void print_states(const struct table *t)
{
	char few[24], all[24];
	const struct row *last = &t->row[t->n - 1];
	int64_t here, whole;
	parts_held(t->p->train, TR_STATE, &here, &whole);
	if (t->asked->each)
		printf("for each number of ranks a plan of its own, with a quarter of the effort; "
		       "of %s of optimizer state each of %d holds %s\n",
			bytes_human(whole, all), last->cost.ranks, bytes_human(here, few));
	else if (whole)
		printf("one plan for any number of ranks, each with all %s of optimizer state; "
		       "--shard state: in pieces\n",
			bytes_human(whole, all));
}

static void print_table(const struct table *t)
{
	const struct ranks_link *link = &t->asked->link;
	const int best = t->fastest->cost.ranks;
	printf("%6s %12s %10s %11s %10s %9s %9s %10s %9s %9s %8s %11s\n", "ranks", "micro-batches",
		"memory", "compute ms", "sent", "messages", "link ms", "exposed ms", "share",
		"step ms", "faster", "efficiency");
	for (int i = 0; i < t->n; i++)
		print_row(t, &t->row[i]);
	printf("a rank's, at most; over %.4g GB/s, %.4g us, %.4g us a message\n", link->bytes / 1e3,
		link->latency, link->message);
	if (t->asked->only)
		return;
	print_states(t);
	if (t->fastest != &t->row[t->n - 1])
		printf("more than %d rank%s do not pay: %d take longer\n", best,
			best == 1 ? "" : "s", t->fastest[1].cost.ranks);
	else
		printf("more ranks pay up to %d\n", best);
}

/* --- For programs --- */

static void add_number(struct text *t, const char *key, double v)
{
	text_add(t, ",\"%s\":", key);
	json_text_double(t, v);
}

static void write_costs(struct text *out, const struct row *x)
{
	const struct ranks_cost *c = &x->cost;
	add_number(out, "compute_us", c->compute);
	add_number(out, "link_us", c->communication);
	add_number(out, "exposed_us", c->exposed);
	add_number(out, "step_us", step_us(x));
	add_number(out, "messages", c->messages);
	add_number(out, "sent_bytes", c->bytes);
}

static void write_json(const struct table *t, struct text *out)
{
	const struct ranks_link *link = &t->asked->link;
	text_puts(out, "{\"format\":\"stint-ranks-1\",\"graph\":");
	json_text_string(out, t->p->train_problem.problem->name);
	text_add(out, ",\"micro_batches\":%" PRId64, t->p->parts.shards);
	add_number(out, "link_bytes_us", link->bytes);
	add_number(out, "latency_us", link->latency);
	add_number(out, "message_us", link->message);
	text_add(out, ",\"planned\":\"%s\",\"fastest\":%d,\n\"rows\":[",
		t->asked->each ? "each" : "once", t->fastest->cost.ranks);
	for (int i = 0; i < t->n; i++) {
		const struct row *x = &t->row[i];
		text_add(out,
			"%s\n{\"ranks\":%d,\"micro_batches\":%" PRId64 ",\"met\":%s"
			",\"arena_bytes\":%" PRId64 ",\"state_bytes\":%" PRId64,
			i ? "," : "", x->cost.ranks, x->cost.shards, x->met ? "true" : "false",
			x->memory, x->state);
		if (x->met)
			write_costs(out, x);
		text_puts(out, "}");
	}
	text_puts(out, "]}\n");
}

static enum status print_json(const struct table *t)
{
	struct text out = {0};
	write_json(t, &out);
	if (!out.failed)
		fwrite(out.s, 1, out.len, stdout);
	text_free(&out);
	return out.failed ? diag_nomem(t->p->diag) : ST_OK;
}

static enum status refuse(const struct pipeline *p, int64_t ranks)
{
	const int64_t shards = p->parts.shards;
	const struct where w = {.file = p->o->model};
	if (!p->train)
		return diag_fail(p->diag, ST_USAGE, &w, NULL,
			"--ranks share a training step of a model: give one, with a loss");
	if (!p->train->target->ranks)
		return diag_fail(p->diag, ST_USAGE, &w, "--target c",
			"several ranks do not train on GPUs or microcontrollers");
	if (shards < ranks)
		return diag_fail(p->diag, ST_USAGE, &w,
			"--batch and --micro-batch so that there are as many as ranks, or more",
			"%" PRId64 " ranks for %" PRId64 " micro-batch%s", ranks, shards,
			shards > 1 ? "es" : "");
	return ST_OK;
}

enum status plan_ranks_print(
	const struct pipeline *p, const struct plan_ranks *asked, bool json, struct activity *at)
{
	struct table t = {.p = p, .asked = asked};
	TRY(refuse(p, asked->ranks));
	const enum status st = fill(&t);
	activity_end(at);
	TRY(st);
	if (json)
		return print_json(&t);
	print_table(&t);
	return ST_OK;
}
