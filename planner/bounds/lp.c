#include "planner/bounds/lp.h"

#include <coin/Clp_C_Interface.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Costs are scaled so that the dearest is this: Clp's tolerances are absolute. */
static const double SCALE = 100;

void lp_free(struct lp *l)
{
	if (l->model)
		Clp_deleteModel(l->model);
	free(l->cost);
	free(l->least);
	free(l->row_at);
	free(l->col);
	free(l->value);
	free(l->lo);
	free(l->x);
	*l = (struct lp){0};
}

static bool grow(void *list, size_t size, int cap)
{
	void *old, *p;
	memcpy(&old, list, sizeof old);
	p = realloc(old, (size_t)cap * size);
	if (p)
		memcpy(list, &p, sizeof p);
	return p != NULL;
}

int lp_col(struct lp *l, double cost)
{
	if (l->ncol == l->cap_col) {
		int cap = l->cap_col * 2 + 256;
		if (!grow(&l->cost, sizeof *l->cost, cap)) {
			l->failed = true;
			return 0;
		}
		l->cap_col = cap;
	}
	l->cost[l->ncol] = cost;
	return l->ncol++;
}

void lp_row(struct lp *l, double least)
{
	if (l->nrow + 1 >= l->cap_row) {
		int cap = l->cap_row * 2 + 256;
		if (!grow(&l->least, sizeof *l->least, cap) ||
			!grow(&l->row_at, sizeof *l->row_at, cap)) {
			l->failed = true;
			return;
		}
		l->cap_row = cap;
	}
	l->least[l->nrow] = least;
	l->row_at[l->nrow++] = l->nterm;
	l->row_at[l->nrow] = l->nterm;
}

void lp_term(struct lp *l, int col, double value)
{
	if (l->failed)
		return;
	for (int k = l->row_at[l->nrow - 1]; k < l->nterm; k++)
		if (l->col[k] == col) {
			l->value[k] += value;
			return;
		}
	if (l->nterm == l->cap_term) {
		int cap = l->cap_term * 2 + 1024;
		if (!grow(&l->col, sizeof *l->col, cap) ||
			!grow(&l->value, sizeof *l->value, cap)) {
			l->failed = true;
			return;
		}
		l->cap_term = cap;
	}
	l->col[l->nterm] = col;
	l->value[l->nterm++] = value;
	l->row_at[l->nrow] = l->nterm;
}

void lp_open(struct lp *l)
{
	size_t n = (size_t)l->ncol;
	double *cost = malloc((n + 1) * sizeof *cost), dearest = 0;
	double *none = malloc(((size_t)l->nrow + 1) * sizeof *none);
	l->lo = malloc((2 * n + 1) * sizeof *l->lo);
	l->x = malloc((2 * n + 1) * sizeof *l->x);
	l->model = Clp_newModel();
	if (!cost || !none || !l->lo || !l->x || !l->model || l->failed) {
		l->failed = true;
		free(cost);
		free(none);
		return;
	}
	l->hi = l->lo + n;
	l->reduced = l->x + n;
	for (int j = 0; j < l->ncol; j++)
		dearest = l->cost[j] > dearest ? l->cost[j] : dearest;
	for (int j = 0; j < l->ncol; j++) {
		cost[j] = dearest > 0 ? l->cost[j] / dearest * SCALE : 0;
		l->lo[j] = l->x[j] = 0;
		l->hi[j] = 1;
	}
	for (int r = 0; r < l->nrow; r++)
		none[r] = 1e30;
	Clp_setLogLevel(l->model, 0);
	Clp_resize(l->model, 0, l->ncol);
	Clp_chgColumnLower(l->model, l->lo);
	Clp_chgColumnUpper(l->model, l->hi);
	Clp_chgObjCoefficients(l->model, cost);
	Clp_addRows(l->model, l->nrow, l->least, none, l->row_at, l->col, l->value);
	free(cost);
	free(none);
}

void lp_fix(struct lp *l, int col, double lo, double hi)
{
	l->lo[col] = lo;
	l->hi[col] = hi;
	Clp_columnLower(l->model)[col] = lo;
	Clp_columnUpper(l->model)[col] = hi;
}

/* min base + cost x, over the box and all x that satisfy the rows, is at least
 * base + y·least + min over the box of (cost - y·rows) x, for whatever y ≥ 0. `share` scales the
 * costs: 0 tells whether y shows that nothing satisfies the rows. */
static double weak_bound(struct lp *l, const double *y, double unit, double share)
{
	long double sum = 0, all = 0;
	for (int j = 0; j < l->ncol; j++)
		l->reduced[j] = l->cost[j] * share;
	for (int r = 0; r < l->nrow; r++) {
		double p = y[r] * unit;
		if (!(p > 0) || !isfinite(p))
			continue;
		sum += p * l->least[r];
		all += fabs(p * l->least[r]);
		for (int k = l->row_at[r]; k < l->row_at[r + 1]; k++) {
			l->reduced[l->col[k]] -= p * l->value[k];
			all += fabs(p * l->value[k]);
		}
	}
	for (int j = 0; j < l->ncol; j++) {
		double at = l->reduced[j] > 0 ? l->lo[j] : l->hi[j];
		sum += l->reduced[j] * at;
		all += fabs(l->reduced[j]);
	}
	return (double)(sum + l->base * share - all * 1e-12);
}

void lp_solve(struct lp *l, int most)
{
	double dearest = 0;
	for (int j = 0; j < l->ncol; j++)
		dearest = l->cost[j] > dearest ? l->cost[j] : dearest;
	Clp_setNumberIterations(l->model, 0);
	Clp_setMaximumIterations(l->model, most);
	Clp_dual(l->model, 0);
	l->effort = Clp_numberIterations(l->model);
	int status = Clp_status(l->model);
	l->solved = status == 0;
	memcpy(l->x, Clp_primalColumnSolution(l->model), (size_t)l->ncol * sizeof *l->x);
	double unit = dearest > 0 ? dearest / SCALE : 1;
	l->bound = weak_bound(l, Clp_dualRowSolution(l->model), unit, 1);
	if (status != 1)
		return;
	double *ray = Clp_infeasibilityRay(l->model);
	if (!ray)
		return;
	bool none = weak_bound(l, ray, 1, 0) > 0;
	for (int r = 0; r < l->nrow && !none; r++)
		ray[r] = -ray[r];
	if (none || weak_bound(l, ray, 1, 0) > 0)
		l->bound = INFINITY;
	Clp_freeRay(l->model, ray);
}
