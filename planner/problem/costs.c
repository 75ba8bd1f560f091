/* Measured costs in the place of the roofline's. */
#include "planner/problem/costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_key(const void *x, const void *y)
{
	return strcmp(((const struct costs_kernel *)x)->key, ((const struct costs_kernel *)y)->key);
}

bool costs_sort(struct costs *c, const char **twice)
{
	qsort(c->kernel, (size_t)c->n, sizeof *c->kernel, by_key);
	for (int i = 1; i < c->n; i++)
		if (strcmp(c->kernel[i - 1].key, c->kernel[i].key) == 0) {
			*twice = c->kernel[i].key;
			return false;
		}
	return true;
}

const struct costs_kernel *costs_find(const struct costs *c, const char *key)
{
	const struct costs_kernel wanted = {.key = key};
	return c->n ? bsearch(&wanted, c->kernel, (size_t)c->n, sizeof wanted, by_key) : NULL;
}

static int ascending(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

double costs_median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, ascending);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* --- Scaling: what measured / roofline is for an operator --- */

struct scale {
	int n;
	const char **op; /* [n] keys, in their order: those of one operator stand together */
	double *ratio;   /* [n] */
	double *scratch; /* [n] */
	double all;      /* the median of them all; 1 where there are none */
};

static size_t operator_length(const char *key)
{
	return strcspn(key, "(");
}

static bool same_operator(const char *x, const char *y)
{
	size_t n = operator_length(x);
	return n == operator_length(y) && memcmp(x, y, n) == 0;
}

static double median_of(const struct scale *s, int first, int n)
{
	memcpy(s->scratch, s->ratio + first, (size_t)n * sizeof *s->scratch);
	return costs_median(s->scratch, n);
}

/* Of a kernel that the file does not have. Keys are sorted, so an operator's are one range. */
static double scale_of(const struct scale *s, const char *key)
{
	int first = 0, n = 0;
	while (key && first < s->n && !same_operator(key, s->op[first]))
		first++;
	while (key && first + n < s->n && same_operator(key, s->op[first + n]))
		n++;
	return n ? median_of(s, first, n) : s->all;
}

/* A hand-made file need not say the roofline: take it from the problem's op of that key. */
static void find_rooflines(const struct problem *p, const struct costs *c, double *roofline)
{
	for (int i = 0; i < c->n; i++)
		roofline[i] = c->kernel[i].roofline;
	for (int o = 0; o < p->nop; o++)
		for (int k = 0; k < p->op[o].nchoice; k++) {
			const struct problem_choice *x = &p->op[o].choice[k];
			const struct costs_kernel *m = x->kernel ? costs_find(c, x->kernel) : NULL;
			if (m && roofline[m - c->kernel] < 0)
				roofline[m - c->kernel] = x->roofline;
		}
}

static bool scale_make(
	struct arena *a, const struct problem *p, const struct costs *c, struct scale *s)
{
	double *roofline = ARENA_ARRAY(a, double, c->n);
	*s = (struct scale){.op = ARENA_ARRAY(a, const char *, c->n),
		.ratio = ARENA_ARRAY(a, double, c->n),
		.scratch = ARENA_ARRAY(a, double, c->n),
		.all = 1};
	if (!roofline || !s->op || !s->ratio || !s->scratch)
		return false;
	find_rooflines(p, c, roofline);
	for (int i = 0; i < c->n; i++) {
		const struct costs_kernel *m = &c->kernel[i];
		if (m->estimated || !(roofline[i] > 0) || !isfinite(m->us / roofline[i]))
			continue;
		s->op[s->n] = m->key;
		s->ratio[s->n++] = m->us / roofline[i];
	}
	if (s->n)
		s->all = median_of(s, 0, s->n);
	return true;
}

/* --- A problem's ops --- */

/* Whether all ways to run it were measured. */
static bool apply_op(
	struct problem_choice *choice, int n, const struct costs *c, const struct scale *s)
{
	bool measured = true;
	for (int k = 0; k < n; k++) {
		struct problem_choice *x = &choice[k];
		const struct costs_kernel *m = x->kernel ? costs_find(c, x->kernel) : NULL;
		x->cost = m ? m->us : x->roofline * scale_of(s, x->kernel);
		measured &= m && !m->estimated;
	}
	return measured;
}

static const char *costs_in_words(struct arena *a, const struct costs *c)
{
	return arena_printf(a, "%s (%s, %s, %d thread%s, %s)", c->name, c->cpu ? c->cpu : "unknown",
		c->isa ? c->isa : "unknown", c->threads, c->threads == 1 ? "" : "s",
		c->library ? c->library : "unknown");
}

enum status costs_apply(struct arena *a, struct problem *p, const struct costs *c,
	struct costs_use *use, struct diag *d)
{
	struct scale s;
	bool known = p->nop == 0;
	*use = (struct costs_use){0};
	for (int o = 0; o < p->nop && !known; o++)
		known = p->op[o].choice[0].kernel != NULL;
	if (!known)
		return diag_fail(d, ST_INVALID, &(struct where){.file = p->name},
			"give the model instead of --graph, or a graph that --dump-graph wrote",
			"the graph's ops do not say their kernels, so %s has no costs for them",
			c->name);
	const char *words = costs_in_words(a, c);
	if (!words || !scale_make(a, p, c, &s))
		return diag_nomem(d);
	for (int o = 0; o < p->nop; o++) {
		struct problem_op *op = &p->op[o];
		if (problem_op_moves(op)) /* the link's or the disk's, whatever computes */
			continue;
		struct problem_choice *choice = arena_memdup(
			a, op->choice, (size_t)op->nchoice, sizeof *choice);
		if (!choice)
			return diag_nomem(d);
		++*(apply_op(choice, op->nchoice, c, &s) ? &use->measured : &use->scaled);
		op->choice = choice;
	}
	p->costs = words;
	return problem_validate(p, c->name, d); /* sums may overflow */
}
