#include "cli/frontier_points.h"

#include <math.h>

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

enum status frontier_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	int npoint, struct activity *at, struct frontier *out, struct diag *d)
{
	struct view_frontier *f = &out->view;
	*out = (struct frontier){0};
	TRY(plan_range(a, p, o, &f->resident, &f->keep_all, d));
	activity_now(at, "planning for the smallest budget");
	TRY(plan_minimum(a, p, o, &f->known_bytes, &f->proven_bytes, d));
	int room = npoint > MOST ? npoint : MOST;
	int64_t *budget = ARENA_ARRAY(a, int64_t, room);
	struct plan **plan = ARENA_ARRAY(a, struct plan *, room);
	struct view_point *point = ARENA_ARRAY(a, struct view_point, room);
	if (!budget || !plan || !point)
		return diag_nomem(d);
	f->npoint = choose_budgets(f, npoint, budget);
	activity_now(at, at_budgets(a, f->npoint));
	TRY(plan_frontier(a, p, o, budget, f->npoint, plan, d));
	for (int i = 0; i < f->npoint; i++) {
		point[i] = (struct view_point){.budget = budget[i], .bound = -1};
		if (!plan[i])
			continue;
		TRY(plan_own_check(p, plan[i], o->alignment, "plan", d));
		f->once = problem_one_pass(p);
		point[i].feasible = true;
		point[i].arena = plan[i]->arena_bytes;
		point[i].cost = plan[i]->cost_total;
		point[i].bound = plan[i]->lower_bound;
	}
	f->point = point;
	out->plan = plan;
	return ST_OK;
}
