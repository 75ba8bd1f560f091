/* Measured costs: how long each kernel took on one machine. Plain data; JSON form stint-costs-1
 * (docs/reference/formats.md). */
#ifndef STINT_PLANNER_COSTS_H
#define STINT_PLANNER_COSTS_H

#include "planner/problem/problem.h"

struct costs_kernel {
	const char *key; /* problem_choice's `kernel`: text up to "(" is the operator */
	double us;       /* microseconds: finite, ≥ 0 */
	double roofline; /* the same by the committed constants; negative: not known */
	bool estimated;  /* not measured: scaled from the roofline */
};

struct costs {
	const char *name;                /* for people: the file's, without folders */
	const char *cpu, *isa, *library; /* NULL: not said */
	int threads;                     /* 0: not said */
	int n;
	struct costs_kernel *kernel; /* sorted by key, each once */
};

/* stint-costs-1. Reports every fault of the file; ST_INVALID when any. Objects live in `a`. */
enum status costs_parse(struct arena *a, const char *text, size_t len, const char *file,
	struct costs **out, struct diag *d);
enum status costs_read(struct arena *a, const char *path, struct costs **out, struct diag *d);
void costs_print(const struct costs *c, struct text *out);
/* Sort by key. False where a key stands twice: *twice names it. */
bool costs_sort(struct costs *c, const char **twice);
/* The kernel with this key; NULL: the file does not have it. */
const struct costs_kernel *costs_find(const struct costs *c, const char *key);

/* How the ops of a problem got their costs. */
struct costs_use {
	int measured; /* ops: their kernel stands in the file, in all ways to run them */
	int scaled;   /* the others: roofline × the median of measured / roofline, of the same
			 operator where the file has it, else of all */
};

/* Replace the costs of p's ops. ST_INVALID when p does not say its kernels (a foreign graph). */
enum status costs_apply(struct arena *a, struct problem *p, const struct costs *c,
	struct costs_use *use, struct diag *d);

/* The median of n > 0 values, which it sorts. */
double costs_median(double *v, int n);

#endif
