/* What a plan keeps, and what it runs again, why and at what cost. */
#include <inttypes.h>
#include <stdlib.h>

#include "api/report.h"

enum { SHOWN = 10 };

/* An op that runs again: all its extra runs together. */
struct repeated {
	int op, runs;
	double cost;
	int64_t freed_bytes; /* the most at once, */
	int forced_at;       /* and when; -1: never */
};

static int dearest_first(const void *x, const void *y)
{
	const struct repeated *a = x, *b = y;
	return a->cost > b->cost ? -1 : a->cost < b->cost ? 1 : (a->op > b->op) - (a->op < b->op);
}

static int collect(
	const struct problem *p, const struct plan_facts *x, int *place, struct repeated *list)
{
	int n = 0;
	for (int o = 0; o < p->nop; o++)
		place[o] = -1;
	for (int i = 0; i < x->recomputed_runs; i++) {
		const struct plan_again *again = &x->again[i];
		int op = again->op;
		if (place[op] < 0) {
			place[op] = n;
			list[n++] = (struct repeated){.op = op, .forced_at = -1};
		}
		struct repeated *r = &list[place[op]];
		r->runs++;
		r->cost += again->cost;
		if (again->forced_at >= 0 &&
			(r->forced_at < 0 || again->freed_bytes > r->freed_bytes)) {
			r->forced_at = again->forced_at;
			r->freed_bytes = again->freed_bytes;
		}
	}
	qsort(list, (size_t)n, sizeof *list, dearest_first);
	return n;
}

static void print_repeated(
	FILE *f, const struct problem *p, const struct plan *plan, const struct repeated *r)
{
	char b[24];
	double total = plan->cost_total;
	fputs("  ", f);
	name_put(f, p->op[r->op].name, 32, true);
	fprintf(f, " %5d %10.4g %6.2f %%", r->runs, r->cost, total > 0 ? 100 * r->cost / total : 0);
	if (r->forced_at < 0) {
		fputs("  nothing: it was there till then\n", f);
		return;
	}
	const struct problem_op *at = &p->op[plan->step[r->forced_at].op];
	fprintf(f, " %10s  at step %d, ", bytes_human(r->freed_bytes, b), r->forced_at + 1);
	name_put(f, at->name, 22, false);
	fputc('\n', f);
}

static enum status print_again(FILE *f, struct arena *a, const struct problem *p,
	const struct plan *plan, const struct plan_facts *x, struct diag *d)
{
	int *place = ARENA_ARRAY(a, int, p->nop);
	struct repeated *list = ARENA_ARRAY(a, struct repeated, x->recomputed_runs);
	if (!place || !list)
		return diag_nomem(d);
	int n = collect(p, x, place, list);
	if (n == 0)
		return ST_OK;
	fprintf(f, "the most expensive recomputations\n");
	fprintf(f, "  %-32s %5s %10s %8s %10s  %s\n", "node", "extra",
		p->costs ? "cost us" : "cost", "share", "frees", "where the memory is needed");
	for (int i = 0; i < n && i < SHOWN; i++)
		print_repeated(f, p, plan, &list[i]);
	if (n > SHOWN)
		fprintf(f, "  and %d more\n", n - SHOWN);
	return ST_OK;
}

static void print_kept(
	FILE *f, const struct problem *p, const struct plan *plan, const struct plan_facts *x)
{
	if (x->kept == 0)
		return;
	fprintf(f, "the largest that are kept\n");
	for (int i = 0; i < x->kept && i < SHOWN; i++) {
		const struct plan_buffer *b = &plan->buffer[x->kept_buffer[i]];
		char bytes[24];
		fputs("  ", f);
		name_put(f, p->tensor[b->tensor].name, 50, true);
		fprintf(f, " %10s  steps %d to %d\n", bytes_human(b->bytes, bytes),
			b->first_step + 1, b->last_step + 1);
	}
	if (x->kept > SHOWN)
		fprintf(f, "  and %d more\n", x->kept - SHOWN);
}

enum status report_details(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d)
{
	struct plan_facts x;
	TRY(plan_facts_make(a, p, plan, &x, d));
	print_kept(f, p, plan, &x);
	return print_again(f, a, p, plan, &x, d);
}
