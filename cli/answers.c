#include "cli/answers.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/evaluate.h"

static int64_t product(const int64_t *dim, int n)
{
	int64_t all = 1;
	for (int i = 0; i < n; i++)
		all *= dim[i];
	return all;
}

/* Which axis counts the classes; -1: the output is none of them. *make: probabilities. */
static int class_axis(const struct loaded *l, const struct answer_options *o, struct answer *w)
{
	const struct stint_model *m = l->model;
	const struct stint_loss_term *loss = NULL;
	struct metric_task task = {.kind = METRIC_NOTHING};
	struct scored s = {.output = -1};
	for (int i = 0; i < m->nloss && s.output != w->output; i++) {
		loss = &m->loss[i];
		task = evaluation_task(m, loss, &s);
	}
	if (s.output == w->output && task.kind == METRIC_BINARY) {
		w->yes_no = true;
		w->make = task.logits ? ANSWER_SIGMOID : ANSWER_AS_IS;
	}
	if (s.output == w->output && task.kind == METRIC_CLASSES) {
		int axis = w->o->rank - 1;
		while (axis > 0 &&
			(w->o->dim[axis] != task.classes ||
				product(w->o->dim + axis + 1, w->o->rank - axis - 1) < task.inner))
			axis--;
		w->make = !strcmp(loss->kind, "nll") ? ANSWER_EXP : ANSWER_SOFTMAX;
		return axis;
	}
	/* of a step without a loss: names tell what it is, or the user does */
	const bool none = task.kind == METRIC_NOTHING && w->o->rank == 2 && w->o->dim[1] > 1;
	return none && (o->top || o->classes.n == w->o->dim[1]) ? 1 : -1;
}

enum status answer_of(struct arena *a, const struct loaded *l, bool whole, int output,
	const struct answer_options *o, struct answer *out, struct diag *d)
{
	const struct stint_output *y = &l->model->output[output];
	const int first = !whole;
	*out = (struct answer){.o = y, .output = output};
	const int axis = class_axis(l, o, out);
	out->elements = product(y->dim + first, y->rank - first);
	out->classes = axis >= first;
	out->n = out->classes ? y->dim[axis] : 0;
	out->inner = out->classes ? product(y->dim + axis + 1, y->rank - axis - 1) : 1;
	for (int k = first; k < y->rank; k++)
		if (!out->classes || k != axis)
			out->dim[out->rank++] = y->dim[k];
	out->places = product(out->dim, out->rank);
	if (o->raw)
		out->make = ANSWER_AS_IS;
	out->score = ARENA_ARRAY(a, double, out->n);
	if (!out->score)
		return diag_nomem(d);
	if (out->classes && o->top > out->n)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--top %" PRId64 ": '%s' has %" PRId64 " classes", o->top, y->name, out->n);
	return ST_OK;
}

static double stored(int dtype, const void *y, int64_t i)
{
	return dtype == STINT_F32   ? (double)((const float *)y)[i]
	       : dtype == STINT_F64 ? ((const double *)y)[i]
	       : dtype == STINT_I64 ? (double)((const int64_t *)y)[i]
				    : (double)((const unsigned char *)y)[i];
}

double answer_number(const struct answer *w, const void *y, int64_t i)
{
	const double v = y ? stored(w->o->dtype, y, i) : (double)NAN;
	return w->make == ANSWER_SIGMOID ? 1 / (1 + exp(-v)) : w->make == ANSWER_EXP ? exp(v) : v;
}

static void softmax(double *v, int64_t n)
{
	double most = v[0], sum = 0;
	for (int64_t c = 1; c < n; c++)
		most = v[c] > most ? v[c] : most;
	for (int64_t c = 0; c < n; c++)
		sum += v[c] = exp(v[c] - most);
	for (int64_t c = 0; c < n; c++)
		v[c] /= sum;
}

void answer_best(const struct answer *w, const void *y, int64_t place, int64_t top, int64_t *best)
{
	const int64_t from = place / w->inner * w->n * w->inner + place % w->inner;
	for (int64_t c = 0; c < w->n; c++)
		w->score[c] = answer_number(w, y, from + c * w->inner);
	if (w->make == ANSWER_SOFTMAX)
		softmax(w->score, w->n);
	for (int64_t k = 0; k < top; k++) {
		best[k] = -1;
		for (int64_t c = 0; c < w->n; c++) {
			bool taken = false;
			for (int64_t j = 0; j < k && !taken; j++)
				taken = best[j] == c;
			if (!taken && (best[k] < 0 || w->score[c] > w->score[best[k]]))
				best[k] = c;
		}
	}
}
