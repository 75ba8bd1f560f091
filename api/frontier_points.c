#include "api/frontier_parts.h"

#include <inttypes.h>
#include <math.h>

#include "planner/problem/json_text.h"

enum { MOST = 14 }; /* points, where nobody says how many */

double frontier_percent(const struct view_frontier *f, int64_t budget)
{
	double span = (double)(f->keep_all - f->resident);
	return span > 0 ? 100 * (double)(budget - f->resident) / span : 100;
}

int64_t frontier_bytes(const struct view_frontier *f, double percent)
{
	return f->resident + (int64_t)ceil((double)(f->keep_all - f->resident) * (percent / 100));
}

/* The finest steps in round per cent that give few points. */
static double round_step(double least)
{
	static const double step[] = {1, 2, 5, 10};
	int i = 0;
	while (i < 3 && (100 - least) / step[i] > MOST - 2)
		i++;
	return step[i];
}

static int choose_budgets(const struct view_frontier *f, int npoint, int64_t *budget)
{
	double least = frontier_percent(f, f->known_bytes);
	double step = npoint > 1 ? (100 - least) / (npoint - 1) : round_step(least);
	int n = 0;
	budget[n++] = f->keep_all;
	for (int i = 1; npoint ? i < npoint - 1 : n < MOST - 1; i++) {
		int64_t b = frontier_bytes(f, 100 - i * step);
		if (b <= f->known_bytes)
			break;
		if (b < budget[n - 1])
			budget[n++] = b;
	}
	if (npoint != 1 && f->known_bytes < budget[n - 1])
		budget[n++] = f->known_bytes;
	return n;
}

static const char *at_budgets(struct arena *a, int n)
{
	const char *s = arena_printf(a, "planning for %d budgets", n);
	return s ? s : "planning";
}

enum status frontier_options_check(const struct options *o, struct diag *d)
{
	const struct compile_options *c = &o->compile;
	if (c->budget.kind != BUDGET_NONE || c->keep_all || c->segments)
		return diag_fail(d, ST_USAGE, NULL, "--points N says how many",
			"the budgets are frontier's own: no --budget, --keep-all or --segments");
	if (o->points < 0 || o->points > 1000)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--points wants 1 to 1000");
	return ST_OK;
}

/* The smallest budget that some way meets, and the bound that holds for all. */
static enum status find_least(struct arena *a, const struct loop_ways *ways,
	const struct plan_options *o, struct view_frontier *f, struct diag *d)
{
	for (int w = 0; w < ways->n; w++) {
		int64_t known, proven;
		TRY(plan_minimum(a, ways->way[w].problem, o, &known, &proven, d));
		f->known_bytes = w == 0 || known < f->known_bytes ? known : f->known_bytes;
		f->proven_bytes = w == 0 || proven < f->proven_bytes ? proven : f->proven_bytes;
	}
	return ST_OK;
}

struct points {
	int n;
	int64_t *budget;
	struct plan **plan;
	const struct loop_way **way;
	struct view_point *point;
};

/* Where this way's plans are cheaper, they stand. */
static enum status add_way(struct arena *a, const struct loop_way *w, const struct plan_options *o,
	struct points *to, struct diag *d)
{
	struct plan **plan = ARENA_ARRAY(a, struct plan *, to->n);
	if (!plan)
		return diag_nomem(d);
	TRY(plan_frontier(a, w->problem, o, to->budget, to->n, plan, d));
	for (int i = 0; i < to->n; i++) {
		struct view_point *x = &to->point[i];
		if (!plan[i])
			continue;
		TRY(plan_own_check(w->problem, plan[i], o->alignment, "plan", d));
		if (!x->feasible || plan[i]->lower_bound < x->bound)
			x->bound = plan[i]->lower_bound;
		if (x->feasible && plan[i]->cost_total >= x->cost)
			continue;
		x->feasible = true;
		x->arena = plan[i]->arena_bytes;
		x->cost = plan[i]->cost_total;
		to->plan[i] = plan[i];
		to->way[i] = w;
	}
	return ST_OK;
}

enum status frontier_make(struct arena *a, const struct loop_ways *ways,
	const struct plan_options *o, int npoint, struct frontier *out, struct diag *d)
{
	struct view_frontier *f = &out->view;
	const struct problem *p = ways->way[0].problem;
	*out = (struct frontier){0};
	TRY(plan_range(a, p, o, &f->resident, &f->keep_all, d));
	onlooker_now(o->onlooker, "planning for the smallest budget");
	TRY(find_least(a, ways, o, f, d));
	int room = npoint > MOST ? npoint : MOST;
	struct points to = {.budget = ARENA_ARRAY(a, int64_t, room),
		.plan = ARENA_ARRAY(a, struct plan *, room),
		.way = ARENA_ARRAY(a, const struct loop_way *, room),
		.point = ARENA_ARRAY(a, struct view_point, room)};
	if (!to.budget || !to.plan || !to.way || !to.point)
		return diag_nomem(d);
	to.n = f->npoint = choose_budgets(f, npoint, to.budget);
	for (int i = 0; i < to.n; i++)
		to.point[i] = (struct view_point){.budget = to.budget[i], .bound = -1};
	onlooker_now(o->onlooker, at_budgets(a, f->npoint));
	for (int w = 0; w < ways->n; w++)
		TRY(add_way(a, &ways->way[w], o, &to, d));
	f->once = problem_one_pass(p);
	f->point = to.point;
	out->problem = p;
	out->plan = to.plan;
	out->way = to.way;
	out->loops = ways->n > 1;
	return ST_OK;
}

void frontier_again(const struct problem *p, const struct plan *plan, int *ops, int *runs)
{
	*ops = *runs = 0;
	for (int s = 0; s < plan->nstep; s++) {
		const struct plan_step *st = &plan->step[s];
		*ops += plan_step_again(p, st) && st->run == (p->op[st->op].repeats ? 0 : 1);
		*runs += plan_step_again(p, st);
	}
}

static void write_point(const struct frontier *f, int i, struct text *t)
{
	const struct view_point *x = &f->view.point[i];
	int ops, runs;
	text_add(t, "%s\n{\"budget_bytes\":%" PRId64 ",\"percent\":", i ? "," : "", x->budget);
	json_text_double(t, frontier_percent(&f->view, x->budget));
	text_add(t, ",\"feasible\":%s", x->feasible ? "true" : "false");
	if (x->feasible) {
		frontier_again(f->way[i]->problem, f->plan[i], &ops, &runs);
		text_add(t, ",\"arena_bytes\":%" PRId64 ",\"peak_bytes\":%" PRId64 ",\"cost\":",
			x->arena, f->plan[i]->peak_bytes);
		json_text_double(t, x->cost);
		text_puts(t, ",\"lower_bound\":");
		if (x->bound >= 0)
			json_text_double(t, x->bound);
		else
			text_puts(t, "null");
		text_add(t, ",\"recomputed_ops\":%d,\"recomputed_runs\":%d", ops, runs);
		if (f->loops)
			text_add(t, ",\"loops_keep\":\"%s\"", f->way[i]->keeps);
	}
	text_puts(t, "}");
}

static void write_part(const struct frontier *f, int i, struct text *t)
{
	const struct view_point *x = &f->view.part[i];
	const struct frontier_part *part = &f->part[i];
	text_add(t, "%s\n{\"budget_bytes\":%" PRId64 ",\"percent\":", i ? "," : "", x->budget);
	json_text_double(t, frontier_percent(&f->view, x->budget));
	text_add(t, ",\"micro_batches\":%" PRId64 ",\"slices\":%" PRId64 ",\"until\":",
		part->parts.shards, part->parts.region.slices ? part->parts.region.slices : 1);
	if (part->parts.until)
		json_text_string(t, part->parts.until);
	else
		text_puts(t, "null");
	text_add(t, ",\"arena_bytes\":%" PRId64 ",\"cost\":", x->arena);
	json_text_double(t, x->cost);
	text_puts(t, ",\"whole_batch_cost\":");
	if (part->alone >= 0)
		json_text_double(t, part->alone);
	else
		text_puts(t, "null");
	text_puts(t, "}");
}

void frontier_json(const struct frontier *f, struct text *t)
{
	const struct problem *p = f->problem;
	text_puts(t, "{\"format\":\"stint-frontier-1\",\"graph\":");
	json_text_string(t, p->name);
	if (p->costs) {
		text_puts(t, ",\"costs\":");
		json_text_string(t, p->costs);
	}
	text_add(t,
		",\n\"resident_bytes\":%" PRId64 ",\"keep_all_bytes\":%" PRId64
		",\"min_bytes_known\":%" PRId64 ",\"min_bytes_proven\":%" PRId64 ",\"once\":",
		f->view.resident, f->view.keep_all, f->view.known_bytes, f->view.proven_bytes);
	json_text_double(t, f->view.once);
	text_puts(t, ",\n\"points\":[");
	for (int i = 0; i < f->view.npoint; i++)
		write_point(f, i, t);
	if (f->view.npart)
		text_puts(t, "],\n\"parts\":[");
	for (int i = 0; i < f->view.npart; i++)
		write_part(f, i, t);
	text_puts(t, "]}\n");
}
