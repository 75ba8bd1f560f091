/* The page's data: a plan and its problem as JSON, one array per column. */
#include "base/safe.h"
#include "view/page.h"

#include <inttypes.h>

#include "planner/problem/loop_facts.h"

static void put_int(struct text *t, int i, int64_t v)
{
	text_add(t, "%s%" PRId64, i ? "," : "", v);
}

static void put_real(struct text *t, const char *key, double v)
{
	text_add(t, ",\"%s\":%.17g", key, v);
}

static void put_known(struct text *t, const char *key, bool known, int64_t v)
{
	if (known)
		text_add(t, ",\"%s\":%" PRId64, key, v);
	else
		text_add(t, ",\"%s\":null", key);
}

static void put_summary(struct text *t, const struct problem *p, const struct plan *plan,
	const struct plan_facts *f)
{
	text_puts(t, "{\"name\":");
	text_json_shown(t, p->name);
	/* where the costs come from; without, their unit is not known */
	text_puts(t, ",\"costs\":");
	if (p->costs)
		text_json_shown(t, p->costs);
	else
		text_puts(t, "null");
	put_known(t, "budget", plan->budget_bytes != INT64_MAX, plan->budget_bytes);
	put_known(t, "arena", true, plan->arena_bytes);
	put_known(t, "peak", true, plan->peak_bytes);
	put_known(t, "peakStep", true, f->peak_step);
	put_real(t, "once", plan->cost_once);
	put_real(t, "total", plan->cost_total);
	if (plan->lower_bound >= 0)
		put_real(t, "bound", plan->lower_bound);
	else
		text_puts(t, ",\"bound\":null");
	put_known(t, "recomputedOps", true, f->recomputed_ops);
	put_known(t, "recomputedRuns", true, f->recomputed_runs);
	put_known(t, "kept", true, f->kept);
	put_known(t, "keptBytes", true, f->kept_bytes);
	put_known(t, "overwritten", true, f->overwritten);
	put_known(t, "overwrittenBytes", true, f->overwritten_bytes);
	put_known(t, "offloads", true, f->offloads);
	put_known(t, "fetches", true, f->fetches);
	put_known(t, "hostBytes", true, f->host_bytes);
	text_puts(t, ",\"atPeak\":[");
	for (int k = 0; k < 6; k++)
		put_int(t, k, f->at_peak[k]);
	put_int(t, 6, f->workspace_at_peak);
	text_puts(t, "]");
}

/* "key":[...] of n values; the value of element i is an expression of i. */
#define COLUMN(t, key, n, value)                                                                   \
	do {                                                                                       \
		text_puts(t, "\"" key "\":[");                                                     \
		for (int i = 0; i < (n); i++)                                                      \
			put_int(t, i, value);                                                      \
		text_puts(t, "]");                                                                 \
	} while (0)

static void put_tensors(struct text *t, const struct problem *p)
{
	text_puts(t, ",\n\"tensor\":{\"name\":[");
	for (int i = 0; i < p->ntensor; i++) {
		text_puts(t, i ? "," : "");
		text_json_shown(t, p->tensor[i].name);
	}
	text_puts(t, "],\n");
	COLUMN(t, "kind", p->ntensor, p->tensor[i].kind);
	text_puts(t, ",\n");
	COLUMN(t, "bytes", p->ntensor, p->tensor[i].bytes);
	text_puts(t, ",\n");
	COLUMN(t, "producer", p->ntensor, p->tensor[i].producer);
	text_puts(t, "}");
}

/* What each op reads, in the form that the plan chose: counts, then all lists in one. */
static void put_ops(struct text *t, const struct problem *p, const int *choice)
{
	text_puts(t, ",\n\"op\":{\"name\":[");
	for (int i = 0; i < p->nop; i++) {
		text_puts(t, i ? "," : "");
		text_json_shown(t, p->op[i].name);
	}
	text_puts(t, "],\n");
	COLUMN(t, "phase", p->nop, p->op[i].phase);
	text_puts(t, ",\n");
	COLUMN(t, "reads", p->nop, p->op[i].choice[choice[i]].nin);
	text_puts(t, ",\n\"read\":[");
	for (int i = 0, n = 0; i < p->nop; i++)
		for (int k = 0; k < p->op[i].choice[choice[i]].nin; k++)
			put_int(t, n++, p->op[i].choice[choice[i]].in[k]);
	text_puts(t, "],\n\"cost\":[");
	for (int i = 0; i < p->nop; i++)
		text_add(t, "%s%.6g", i ? "," : "", p->op[i].choice[choice[i]].cost);
	text_puts(t, "],\n");
	/* 1 + the tensor that says whether it runs; 0: it always does */
	COLUMN(t, "when", p->nop, p->op[i].when);
	text_puts(t, "},\n\"copyOps\":[");
	for (int i = 0, n = 0; i < p->nop; i++)
		if (problem_op_transfers(&p->op[i]))
			put_int(t, n++, i);
	text_puts(t, "]");
}

/* Ops that are all turns of a loop. */
static void put_loops(struct text *t, const struct problem *p)
{
	int n = 0;
	text_puts(t, ",\n\"loops\":[");
	for (int i = 0; i < p->nop; i++)
		if (p->op[i].loop) {
			text_add(t, "%s{\"op\":%d,", n++ ? ",\n" : "", i);
			loop_print(p->op[i].loop, true, t);
			text_puts(t, "}");
		}
	text_puts(t, "]");
}

static void put_plan(struct text *t, const struct plan *plan, const struct plan_facts *f)
{
	text_puts(t, ",\n\"step\":{");
	COLUMN(t, "op", plan->nstep, plan->step[i].op);
	text_puts(t, ",\n");
	COLUMN(t, "live", plan->nstep, f->live[i]);
	/* why steps repeat others: the moment that forced it (-1: none), and what it frees there */
	text_puts(t, "},\n\"again\":{");
	COLUMN(t, "step", f->recomputed_runs, f->again[i].step);
	text_puts(t, ",\n");
	COLUMN(t, "forced", f->recomputed_runs, f->again[i].forced_at);
	text_puts(t, ",\n");
	COLUMN(t, "freed", f->recomputed_runs, f->again[i].freed_bytes);
	text_puts(t, "},\n\"buffer\":{");
	/* a workspace's op is told as -1 - op */
	COLUMN(t, "of", plan->nbuffer,
		plan->buffer[i].tensor >= 0 ? plan->buffer[i].tensor
					    : -1 - plan->buffer[i].workspace_of);
	text_puts(t, ",\n");
	COLUMN(t, "bytes", plan->nbuffer, plan->buffer[i].bytes);
	text_puts(t, ",\n");
	COLUMN(t, "offset", plan->nbuffer, plan->buffer[i].offset);
	text_puts(t, ",\n");
	COLUMN(t, "first", plan->nbuffer, plan->buffer[i].first_step);
	text_puts(t, ",\n");
	COLUMN(t, "last", plan->nbuffer, plan->buffer[i].last_step);
	text_puts(t, "}");
}

static enum status put_keep_all(struct text *t, struct arena *a, const struct problem *p,
	const struct plan *plan, struct diag *d)
{
	struct plan_facts f;
	if (!plan || !plan->feasible) {
		text_puts(t, ",\n\"keep\":null");
		return ST_OK;
	}
	TRY(plan_facts_make(a, p, plan, &f, d));
	text_add(t, ",\n\"keep\":{\"arena\":%" PRId64 ",\"peak\":%" PRId64 ",", plan->arena_bytes,
		plan->peak_bytes);
	COLUMN(t, "live", plan->nstep, f.live[i]);
	text_puts(t, "}");
	return ST_OK;
}

enum status page_data(struct text *out, struct arena *a, const struct problem *p,
	const struct plan *plan, const struct plan *keep_all, struct diag *d)
{
	struct plan_facts f;
	TRY(plan_facts_make(a, p, plan, &f, d));
	int *choice = ARENA_ARRAY(a, int, p->nop + 1);
	if (!choice)
		return diag_nomem(d);
	for (int s = 0; s < plan->nstep; s++)
		choice[plan->step[s].op] = plan->step[s].choice;
	put_summary(out, p, plan, &f);
	put_tensors(out, p);
	put_ops(out, p, choice);
	put_loops(out, p);
	put_plan(out, plan, &f);
	TRY(put_keep_all(out, a, p, keep_all, d));
	text_puts(out, "}\n");
	return out->failed ? diag_nomem(d) : ST_OK;
}
