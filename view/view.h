/* What people look at: pages and files drawn from a problem and its plan, for browsers and viewers.
 * Everything is text appended to `out`; nothing is read from disk or the network, then or later.
 * Same problem and plan, same bytes. Plans must be feasible and have passed plan_check. */
#ifndef STINT_VIEW_H
#define STINT_VIEW_H

#include "base/base.h"
#include "planner/plan.h"

/* Cost against budget: points by descending budget. */
struct view_point {
	int64_t budget;     /* bytes */
	bool feasible;      /* false: only budget and bound hold */
	int64_t arena;      /* bytes */
	double cost, bound; /* in the problem's unit; bound negative when none is known */
};
struct view_frontier {
	int64_t resident, keep_all;        /* bytes: what "0%" and "100%" stand for */
	int64_t known_bytes, proven_bytes; /* smallest budget met; none can be below the second */
	double once;                       /* cost of everything once */
	int npoint;
	const struct view_point *point;
	int npart; /* the same with the batch in parts: another curve. 0: there is none */
	const struct view_point *part;
};

/* A whole page: style, script and data in one file. `keep_all` (for comparison) and `frontier` may
 * be NULL. */
enum status view_html(struct text *out, struct arena *a, const struct problem *p,
	const struct plan *plan, const struct plan *keep_all, const struct view_frontier *frontier,
	struct diag *d);

/* Chrome's trace event format (JSON object form), for Perfetto and chrome://tracing: steps as
 * slices, live bytes and the arena's top in use as counters. Time is predicted cost. */
enum status view_trace(struct text *out, struct arena *a, const struct problem *p,
	const struct plan *plan, struct diag *d);

/* The frontier as a stand-alone SVG drawing; the page shows the same one. */
enum status view_frontier_svg(struct text *out, const struct view_frontier *f, struct diag *d);

/* A step's kernels, timed, over all their calls (`stint bench`). */
struct view_kernel {
	const char *words;   /* function, operator, shapes */
	int calls, phase;    /* phase: enum phase */
	double ms, alone_ms; /* among the others; repeated on its own, 0: not known */
	double flops, bytes; /* of all calls */
	double roof_ms;      /* the least that the machine allows */
	double predicted_ms; /* negative: not known */
};
struct view_bench {
	const char *name;
	int nfact;
	const char *const *fact; /* what there is to say of the whole, a line each */
	double gflops;           /* the machine's peak */
	int nlevel;
	const struct view_level { /* bandwidth by working set, the last is memory's */
		double bytes, gb_s;
	} * level;
	int nkernel;
	const struct view_kernel *kernel; /* [nkernel] the slowest first */
};
/* A whole page without a script: the kernels under the roofline, and a table. */
enum status view_bench_html(struct text *out, const struct view_bench *b, struct diag *d);

/* What a training's log holds (`stint train --log`): by ascending step; what is not
 * finite is left out, the rest is at most 1e100. */
struct view_curve {
	const char *name; /* "loss", "eval_loss", "lr", "seconds", a metric's */
	int n;
	const double *x, *y;
};
struct view_run {
	const char *name;
	int64_t steps, epochs;
	int ncurve;
	const struct view_curve *curve;
};
enum { VIEW_RUNS = 8 };
/* NULL: the run has no such curve. */
const struct view_curve *view_curve_of(const struct view_run *r, const char *name);

/* A whole page without a script: the curves of up to VIEW_RUNS runs over each other, and a table.
 */
enum status view_log_html(struct text *out, const struct view_run *run, int n, struct diag *d);

#endif
