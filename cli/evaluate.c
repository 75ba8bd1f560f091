#include "cli/evaluate.h"

#include <string.h>

#include "cli/interrupt.h"
#include "runtime/metrics.h"

/* The output that the loss reads, as [rows, classes, inner] against labels. */
struct classes {
	const struct stint_output *output; /* NULL: no classification */
	int64_t classes, inner;
	int64_t labels; /* per sample */
	int64_t ignore;
};

static struct classes find_classes(const struct stint_model *m)
{
	struct classes c = {.inner = 1, .labels = 1};
	if (!feed_has_labels(m))
		return c;
	const struct stint_tensor *t = &m->resident[m->target];
	c.output = feed_scored_output(m);
	if (!c.output)
		return c;
	int rank = c.output->rank;
	int axis = (int)feed_loss_option(m, "axis", rank == 3 ? 2 : 1);
	axis += axis < 0 ? rank : 0;
	c.classes = c.output->dim[axis];
	for (int i = axis + 1; i < rank; i++)
		c.inner *= c.output->dim[i];
	for (int i = 1; i < t->rank; i++)
		c.labels *= t->dim[i];
	c.ignore = (int64_t)feed_loss_option(m, "ignore_index", -100);
	return c;
}

/* Labels that count among the first `n` samples, and how many of them are met. */
static enum status count_right(const struct classes *c, const struct loaded *l, int64_t n,
	int64_t *out, int64_t *right, struct diag *d)
{
	const int64_t *label = load_at(l, l->model->target);
	const void *y = load_output(l, (int)(c->output - l->model->output));
	int64_t counted, valid = n * c->labels / c->inner;
	if (!label || !y)
		return load_lost(l, "evaluation", d);
	if (c->output->dtype == STINT_F64)
		*right += metrics_correct_f64(
			y, c->classes, c->inner, label, valid, c->ignore, &counted);
	else
		*right += metrics_correct_f32(
			y, c->classes, c->inner, label, valid, c->ignore, &counted);
	*out = counted;
	return ST_OK;
}

enum status evaluate(struct arena *a, const struct loaded *l, const struct feed *f,
	struct score *out, struct diag *d)
{
	/* of a batch in parts the evaluation takes the first */
	const int64_t batch = l->model->shards > 1 ? f->batch / l->model->shards : f->batch;
	struct classes c = find_classes(l->model);
	int64_t *index = ARENA_ARRAY(a, int64_t, f->batch), labels = 0, right = 0;
	double sum = 0, weight = 0;
	/* a loss that is a sum counts as in a batch of the usual size */
	const bool summed = l->model->loss_options &&
			    strstr(l->model->loss_options, "reduction=sum") != NULL;
	if (!index)
		return diag_nomem(d);
	*out = (struct score){.samples = f->samples, .has_accuracy = c.output != NULL};
	for (int64_t from = 0; from < f->samples; from += batch) {
		int64_t n = f->samples - from < batch ? f->samples - from : batch;
		out->stopped = interrupt_asked();
		if (out->stopped)
			return ST_OK;
		for (int64_t i = 0; i < n; i++)
			index[i] = from + i;
		TRY(feed_batch(f, index, n, d));
		int rc = l->eval(l->step, n * f->rows, NULL);
		if (rc)
			return load_fail(l, rc, "evaluation", d);
		int64_t counted = n;
		if (c.output)
			TRY(count_right(&c, l, n * f->rows, &counted, &right, d));
		labels += counted;
		if (counted) {
			const double w = summed ? (double)n : (double)counted;
			sum += l->loss(l->step) * (summed ? (double)batch : w);
			weight += w;
		}
	}
	out->loss = weight > 0 ? sum / weight : 0;
	out->accuracy = labels ? (double)right / (double)labels : 0;
	return ST_OK;
}
