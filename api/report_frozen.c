/* What rounding did to frozen weights: those that it did most to. */
#include <math.h>
#include <stdlib.h>

#include "api/report.h"

struct rounded {
	const struct tensor *t;
	double mean, largest; /* of |rounded - exact| / |exact|, over the elements that are not 0 */
};

enum { SHOWN = 5 };

static int worst_first(const void *x, const void *y)
{
	const struct rounded *a = x, *b = y;
	return a->mean > b->mean ? -1 : a->mean < b->mean ? 1 : a->t->id - b->t->id;
}

static struct rounded error_of(const struct tensor *t)
{
	struct rounded r = {.t = t};
	int64_t n = 0;
	for (int64_t i = 0; i < t->exact->numel; i++) { /* a number may be half a byte of t */
		const double exact = tensor_real(t->exact, i);
		if (exact == 0 || !isfinite(exact))
			continue;
		const double is = t->stored ? (double)stored_value(t->stored, i)
					    : tensor_real(t, i);
		const double off = fabs((is - exact) / exact);
		r.largest = fmax(r.largest, off);
		r.mean += off;
		n++;
	}
	r.mean /= n ? (double)n : 1;
	return r;
}

const char *report_form(const struct tensor *t)
{
	return t->role != TR_CONSTANT || (!t->stored && !t->exact) ? NULL
	       : t->stored                                         ? stored_name(t->stored->form)
								   : dtype_name(t->dtype);
}

const char *report_weight(const struct pipeline *p, const struct tensor *t)
{
	const char *name = t->exact ? pipeline_name(p, t->exact) : NULL;
	for (int i = 0; !name && !t->exact && i < p->imported->ntensor; i++)
		if (p->imported->tensor[i]->stored == t->stored)
			name = p->imported->tensor[i]->name;
	return name || !t->exact ? name : t->exact->name;
}

/* Those that the model's file has in small numbers. */
static void report_stored(FILE *f, const struct graph_problem *gp, enum stored_form form)
{
	int64_t bytes = 0, before = 0;
	int n = 0;
	char now[24], was[24];
	for (int i = 0; i < gp->problem->ntensor; i++) {
		const struct tensor *t = gp->tensor[i];
		if (t->role != TR_CONSTANT || !t->stored || t->exact || t->stored->form != form)
			continue;
		n++;
		bytes += stored_bytes(t->stored);
		before += t->stored->rows * t->stored->columns * (int64_t)sizeof(float);
	}
	if (n)
		fprintf(f, "weights in %s, as the file has them: %d, %s instead of %s\n",
			stored_name(form), n, bytes_human(bytes, now), bytes_human(before, was));
}

enum status report_frozen(FILE *f, struct pipeline *p)
{
	const struct graph_problem *gp = pipeline_problem_shown(p);
	struct rounded *list = ARENA_ARRAY(p->arena, struct rounded, gp->problem->ntensor);
	char now[24], was[24];
	int64_t bytes = 0, before = 0;
	int n = 0;
	if (!list)
		return diag_nomem(p->diag);
	for (int i = 0; i < gp->problem->ntensor; i++) {
		const struct tensor *t = gp->tensor[i];
		if (t->role != TR_CONSTANT || !t->exact)
			continue;
		list[n++] = error_of(t);
		bytes += t->stored ? stored_bytes(t->stored) : tensor_bytes(t);
		before += tensor_bytes(t->exact);
	}
	report_stored(f, gp, STORED_INT8);
	report_stored(f, gp, STORED_INT4);
	if (!n)
		return ST_OK;
	qsort(list, (size_t)n, sizeof *list, worst_first);
	fprintf(f,
		"frozen weights: %d in %s, %s instead of %s; relative errors, mean and largest:\n",
		n, report_form(list[0].t), bytes_human(bytes, now), bytes_human(before, was));
	for (int i = 0; i < n && i < SHOWN; i++) {
		fputs("  ", f);
		name_put(f, report_weight(p, list[i].t), 48, true);
		fprintf(f, " %.3g  %.3g\n", list[i].mean, list[i].largest);
	}
	return ST_OK;
}
