/* Linear programs over variables in [0, 1], solved by Clp. What Clp answers is not trusted: the
 * bounds here are recomputed from its dual values (weak duality), with rounding against them, and
 * hold for whatever these are. Private to planner/. */
#ifndef STINT_PLANNER_LP_H
#define STINT_PLANNER_LP_H

#include "base/base.h"

struct lp {
	/* minimise base + Σ cost[j] x[j], all rows Σ value x ≥ least */
	double base, *cost;
	int ncol, cap_col;
	double *least;
	int *row_at; /* [nrow + 1] */
	int nrow, cap_row;
	int *col;
	double *value;
	int nterm, cap_term;
	bool failed; /* out of memory; nothing else holds */
	/* once opened */
	void *model;
	double *lo, *hi;      /* [ncol] bounds in force */
	double *x;            /* [ncol] the last solution */
	double *reduced;      /* scratch */
	bool solved;          /* x is a solution, about */
	double bound, effort; /* of the last solve; INFINITY when nothing satisfies the rows */
};

void lp_free(struct lp *l);
int lp_col(struct lp *l, double cost);
/* A row and its terms, which follow it; `value` may repeat a column. */
void lp_row(struct lp *l, double least);
void lp_term(struct lp *l, int col, double value);
/* After the last row: hand it to Clp. */
void lp_open(struct lp *l);
/* lo = 0, hi = 1: free. */
void lp_fix(struct lp *l, int col, double lo, double hi);
/* Solve under the bounds in force, from where the last solve ended, in `most` simplex steps. */
void lp_solve(struct lp *l, int most);

#endif
