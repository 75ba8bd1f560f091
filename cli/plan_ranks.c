#include "cli/plan_ranks.h"

#include <inttypes.h>
#include <stdio.h>

#include "bridge/ranks_work.h"
#include "planner/problem/json_text.h"
#include "planner/problem/roofline.h"

enum { ROWS_MAX = 64 };

struct table {
	const struct pipeline *p;
	struct ranks_link link;
	struct ranks_work work;
	double alone;   /* microseconds of a step that one process does */
	int n, fastest; /* row */
	struct ranks_cost row[ROWS_MAX];
};

static double step_us(const struct ranks_cost *c)
{
	return c->compute + c->exposed;
}

static void fill(struct table *t, int64_t ranks)
{
	struct ranks_cost one;
	ranks_cost(&t->work, &t->link, 1, &one);
	t->alone = step_us(&one);
	/* of what is for so many ranks there is one row */
	for (int64_t n = t->p->o->ranks ? ranks : 1; n < ranks; n *= 2)
		ranks_cost(&t->work, &t->link, (int)n, &t->row[t->n++]);
	ranks_cost(&t->work, &t->link, (int)ranks, &t->row[t->n++]);
	for (int i = 1; i < t->n; i++)
		if (step_us(&t->row[i]) < step_us(&t->row[t->fastest]))
			t->fastest = i;
}

/* --- For people --- */

static void print_row(const struct table *t, const struct ranks_cost *c)
{
	char memory[24], sent[24];
	const double us = step_us(c), faster = t->alone / us;
	printf("%6d %12" PRId64
	       " %10s %11.4g %10s %9.3g %9.4g %10.4g %7.1f %% %9.4g %8.4g %9.1f %%\n",
		c->ranks, c->shards, bytes_human(t->p->plans.train_plan->arena_bytes, memory),
		c->compute / 1e3, bytes_human((int64_t)c->bytes, sent), c->messages,
		c->communication / 1e3, c->exposed / 1e3, 100 * c->exposed / us, us / 1e3, faster,
		100 * faster / c->ranks);
}

static void print_table(const struct table *t)
{
	const struct ranks_cost *best = &t->row[t->fastest];
	printf("%6s %12s %10s %11s %10s %9s %9s %10s %9s %9s %8s %11s\n", "ranks", "micro-batches",
		"memory", "compute ms", "sent", "messages", "link ms", "exposed ms", "share",
		"step ms", "faster", "efficiency");
	for (int i = 0; i < t->n; i++)
		print_row(t, &t->row[i]);
	printf("a rank's, at most; over %.4g GB/s, %.4g us, %.4g us a message\n",
		t->link.bytes / 1e3, t->link.latency, t->link.message);
	if (t->p->o->ranks)
		return;
	if (t->fastest + 1 < t->n)
		printf("more than %d rank%s do not pay: %d take longer\n", best->ranks,
			best->ranks == 1 ? "" : "s", t->row[t->fastest + 1].ranks);
	else
		printf("more ranks pay up to %d\n", best->ranks);
}

/* --- For programs --- */

static void add_number(struct text *t, const char *key, double v)
{
	text_add(t, ",\"%s\":", key);
	json_text_double(t, v);
}

static void write_json(const struct table *t, struct text *out)
{
	text_puts(out, "{\"format\":\"stint-ranks-1\",\"graph\":");
	json_text_string(out, t->p->train_problem.problem->name);
	text_add(out, ",\"micro_batches\":%" PRId64, t->work.shards);
	add_number(out, "link_bytes_us", t->link.bytes);
	add_number(out, "latency_us", t->link.latency);
	add_number(out, "message_us", t->link.message);
	text_add(out, ",\"fastest\":%d,\n\"rows\":[", t->row[t->fastest].ranks);
	for (int i = 0; i < t->n; i++) {
		const struct ranks_cost *c = &t->row[i];
		text_add(out,
			"%s\n{\"ranks\":%d,\"micro_batches\":%" PRId64 ",\"arena_bytes\":%" PRId64,
			i ? "," : "", c->ranks, c->shards, t->p->plans.train_plan->arena_bytes);
		add_number(out, "compute_us", c->compute);
		add_number(out, "link_us", c->communication);
		add_number(out, "exposed_us", c->exposed);
		add_number(out, "step_us", step_us(c));
		add_number(out, "messages", c->messages);
		add_number(out, "sent_bytes", c->bytes);
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
	const int64_t shards = p->train ? p->train->shards : 0;
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
			"%" PRId64 " ranks for %" PRId64 " micro-batch%s", ranks,
			shards > 1 ? shards : 1, shards > 1 ? "es" : "");
	return ST_OK;
}

enum status plan_ranks_print(
	const struct pipeline *p, int64_t ranks, const struct ranks_link *link, bool json)
{
	struct table t = {.p = p, .link = *link};
	TRY(refuse(p, ranks));
	TRY(ranks_work_of(p->arena, &p->train_problem, p->plans.train_plan,
		roofline_of(p->o->arch)->bytes, &t.work, p->diag));
	fill(&t, ranks);
	if (json)
		return print_json(&t);
	print_table(&t);
	return ST_OK;
}
