#include "cli/evaluate.h"

#include <stdio.h>
#include <string.h>

#include "cli/interrupt.h"
#include "runtime/stint_tree.h"

static int64_t elements(int rank, const int64_t *dim, int from)
{
	int64_t n = 1;
	for (int i = from; i < rank; i++)
		n *= dim[i];
	return n;
}

/* The output that the loss reads, as [rows, classes, inner] against labels. */
static struct metric_task task_of_labels(
	const struct stint_model *m, const struct stint_loss_term *loss, struct scored *s)
{
	struct metric_task task = {.kind = METRIC_NOTHING};
	const struct stint_tensor *t = &m->resident[loss->target];
	const struct stint_output *o = feed_scored_output(m, loss);
	if (!o)
		return task;
	int axis = (int)feed_loss_option(loss, "axis", o->rank == 3 ? 2 : 1);
	axis += axis < 0 ? o->rank : 0;
	task = (struct metric_task){.kind = METRIC_CLASSES,
		.classes = o->dim[axis],
		.inner = elements(o->rank, o->dim, axis + 1),
		.ignore = (int64_t)feed_loss_option(loss, "ignore_index", -100),
		.wide = o->dtype == STINT_F64};
	s->output = (int)(o - m->output);
	s->labels = elements(t->rank, t->dim, 1);
	return task;
}

/* An output of the target's size, element by element. Of a batch in micro-batches the evaluation
 * takes one, and the target is the whole batch's. */
static struct metric_task task_of_values(
	const struct stint_model *m, const struct stint_loss_term *loss, struct scored *s)
{
	const struct stint_tensor *t = &m->resident[loss->target];
	const struct stint_output *o = loss->output < 0 ? NULL : &m->output[loss->output];
	const int64_t shards = m->shards > 1 ? m->shards : 1;
	const bool focal = !strcmp(loss->kind, "sigmoid-focal"),
		   binary = focal || !strncmp(loss->kind, "bce", 3);
	const bool compares = !strcmp(loss->kind, "cosine-embedding") ||
			      !strcmp(loss->kind, "margin-ranking");
	if (!o || (t->dtype != STINT_F32 && t->dtype != STINT_F64) || compares ||
		(o->dtype != STINT_F32 && o->dtype != STINT_F64) ||
		elements(o->rank, o->dim, 0) * shards != elements(t->rank, t->dim, 0))
		return (struct metric_task){.kind = METRIC_NOTHING};
	s->output = loss->output;
	return (struct metric_task){.kind = binary ? METRIC_BINARY : METRIC_VALUES,
		.classes = 1,
		.inner = elements(t->rank, t->dim, 1),
		.logits = focal || !strcmp(loss->kind, "bce-with-logits"),
		.wide = o->dtype == STINT_F64,
		.wide_target = t->dtype == STINT_F64};
}

struct metric_task evaluation_task(
	const struct stint_model *m, const struct stint_loss_term *loss, struct scored *s)
{
	s->output = -1;
	if (feed_has_labels(m, loss))
		return task_of_labels(m, loss, s);
	if (loss->target >= 0 && loss->kind)
		return task_of_values(m, loss, s);
	return (struct metric_task){.kind = METRIC_NOTHING};
}

/* --- Metrics --- */

const struct metric *evaluation_metric(const struct evaluation *e, int i)
{
	return &e->scored[e->metric[i].loss].metrics.item[e->metric[i].item];
}

double evaluation_value(const struct evaluation *e, int i)
{
	return metrics_value(&e->scored[e->metric[i].loss].metrics, e->metric[i].item);
}

int evaluation_find(const struct evaluation *e, const char *name)
{
	for (int i = 0; i < e->nmetric; i++)
		if (e->metric[i].item == metrics_find(&e->scored[e->metric[i].loss].metrics, name))
			return i;
	return -1;
}

/* Which loss's output a metric is of; without `output=` the first that it suits. */
static enum status loss_of_metric(const struct evaluation *e, const struct metric *x,
	const struct metric_task *task, int *loss, struct diag *d)
{
	const struct stint_model *m = e->l->model;
	*loss = -1;
	for (int k = 0; k < e->n && *loss < 0; k++) {
		const int o = e->scored[k].output;
		if (x->output ? o >= 0 && !strcmp(m->output[o].name, x->output)
			      : metric_suits(x, &task[k]))
			*loss = k;
	}
	if (x->output && *loss < 0)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--metric %s: no loss compares an output '%s' with a target", x->text,
			x->output);
	*loss = *loss < 0 ? 0 : *loss; /* where it is refused */
	return ST_OK;
}

/* Each metric to the loss whose output it is of. */
static enum status deal_metrics(struct evaluation *e, const struct metrics *asked,
	const struct metric_task *task, struct diag *d)
{
	for (int i = 0; i < asked->n; i++) {
		int loss;
		TRY(loss_of_metric(e, &asked->item[i], task, &loss, d));
		struct metrics *m = &e->scored[loss].metrics;
		e->metric[e->nmetric++] = (struct evaluation_metric){loss, m->n};
		m->item[m->n++] = asked->item[i];
	}
	return ST_OK;
}

/* The accuracy of each output that is compared with labels: by its name, where there are several.
 */
static enum status usual_metrics(struct arena *a, const struct evaluation *e,
	const struct metric_task *task, struct metrics *out, struct diag *d)
{
	const struct stint_model *m = e->l->model;
	const char *text[METRICS_MAX];
	int n = 0;
	for (int k = 0; k < e->n; k++) {
		bool known = task[k].kind != METRIC_CLASSES;
		for (int i = 0; i < k; i++)
			known |= e->scored[i].output == e->scored[k].output;
		if (known || n == METRICS_MAX)
			continue;
		text[n] = arena_printf(
			a, "accuracy:output=%s", m->output[e->scored[k].output].name);
		if (!text[n++])
			return diag_nomem(d);
	}
	static const char *const only = "accuracy";
	return metrics_parse(a, n == 1 ? &only : text, n, out, d);
}

static enum status start_metrics(
	struct arena *a, struct evaluation *e, const struct arg_list *metric, struct diag *d)
{
	const struct stint_model *m = e->l->model;
	struct metrics asked;
	struct metric_task *task = ARENA_ARRAY(a, struct metric_task, e->n);
	if (!task)
		return diag_nomem(d);
	for (int k = 0; k < e->n; k++) {
		task[k] = evaluation_task(m, &m->loss[k], &e->scored[k]);
		e->output[k] = e->scored[k].output;
	}
	if (metric->n)
		TRY(metrics_parse(a, metric->value, metric->n, &asked, d));
	else
		TRY(usual_metrics(a, e, task, &asked, d));
	TRY(deal_metrics(e, &asked, task, d));
	for (int k = 0; k < e->n; k++) {
		task[k].rows = e->f->samples * e->f->rows;
		if (task[k].kind == METRIC_CLASSES)
			task[k].rows = task[k].rows * e->scored[k].labels / task[k].inner;
		TRY(metrics_start(a, &e->scored[k].metrics, &task[k], d));
	}
	return ST_OK;
}

enum status evaluation_start(struct arena *a, const struct loaded *l, const struct feed *f,
	const struct arg_list *metric, struct evaluation *out, struct diag *d)
{
	*out = (struct evaluation){.l = l, .f = f, .n = l->model->nloss};
	if (metric->n)
		TRY(feed_wants_outputs(l, "--metric", d));
	out->scored = ARENA_ARRAY(a, struct scored, out->n);
	out->output = ARENA_ARRAY(a, int, out->n);
	if (!out->scored || !out->output)
		return diag_nomem(d);
	TRY(start_metrics(a, out, metric, d));
	out->batches = (f->samples + feed_evaluated(f) - 1) / feed_evaluated(f);
	out->index = ARENA_ARRAY(a, int64_t, f->batch);
	out->score = arena_alloc(a, (size_t)out->batches, (size_t)out->n * sizeof *out->score);
	return out->index && out->score ? ST_OK : diag_nomem(d);
}

/* Rows that are scored for a loss, of so many samples. */
static int64_t scored_rows(const struct evaluation *e, const struct scored *s, int64_t samples)
{
	const struct metric_task *task = &s->metrics.task;
	const int64_t rows = samples * e->f->rows;
	return task->kind == METRIC_CLASSES ? rows * s->labels / task->inner : rows;
}

/* The batch's first `n` samples have been evaluated; *counted: what the k-th loss's mean weighs
 * them by: labels that count. */
static enum status score(struct evaluation *e, const struct loaded *l, int k, int64_t n,
	int64_t *counted, struct diag *d)
{
	struct scored *s = &e->scored[k];
	struct metrics *m = &s->metrics;
	const bool labels = m->task.kind == METRIC_CLASSES;
	*counted = n;
	if (s->output < 0 || (!labels && !m->n))
		return ST_OK;
	const void *target = load_at(l, l->model->loss[k].target);
	const void *y = load_output(l, s->output);
	if (!target || !y)
		return load_lost(l, "evaluation", d);
	const int64_t before = m->counted;
	metrics_add(m, y, target, scored_rows(e, s, n));
	*counted = labels ? m->counted - before : n;
	return ST_OK;
}

/* The k-th loss's part in what the batch of n samples adds to the result. */
static enum status score_loss(struct evaluation *e, const struct loaded *l, int64_t batch, int k,
	int64_t n, struct diag *d)
{
	const double whole = (double)feed_evaluated(e->f);
	int64_t counted = 0;
	TRY(score(e, l, k, n, &counted, d));
	if (!counted)
		return ST_OK;
	/* a loss that is a sum counts as in a batch of the usual size */
	const bool summed = feed_sums_loss(&l->model->loss[k]);
	const double w = summed ? (double)n : (double)counted;
	const double loss = e->n == 1 ? l->loss(l->step) : l->loss_part(l->step, k);
	e->score[batch * e->n + k] = (struct evaluation_score){.loss = loss * (summed ? whole : w),
		.weight = w,
		.sums = e->scored[k].metrics.batch};
	return ST_OK;
}

static enum status one_batch(struct evaluation *e, int64_t batch, struct diag *d)
{
	const int64_t whole = feed_evaluated(e->f), from = batch * whole;
	const int64_t n = e->f->samples - from < whole ? e->f->samples - from : whole;
	for (int64_t i = 0; i < n; i++)
		e->index[i] = from + i;
	const struct loaded *l = e->l;
	TRY(feed_batch(e->f, e->index, n, d));
	if (e->lengths)
		TRY(lengths_evaluate(e->lengths, e->f, e->output, &l, d));
	const int rc = l->eval(l->step, n * e->f->rows, NULL);
	if (rc)
		return load_fail(l, rc, "evaluation", d);
	for (int k = 0; k < e->n; k++)
		TRY(score_loss(e, l, batch, k, n, d));
	return ST_OK;
}

/* --- Several ranks --- */

static enum status join_counts(void *user, int64_t *x, int64_t n, struct diag *d)
{
	const struct evaluation *e = user;
	return ranks_add(e->ranks, e->l, x, n, d);
}

static enum status join_places(void *user, void *data, int64_t bytes, struct diag *d)
{
	const struct evaluation *e = user;
	return ranks_merge(e->ranks, e->l, data, bytes, d);
}

/* This rank has done its batches, or was told to stop. */
static enum status join(struct evaluation *e, struct diag *d)
{
	const struct metric_join how = {e, join_counts, join_places};
	int64_t stopped = e->stopped;
	TRY(ranks_most(e->ranks, e->l, &stopped, d));
	e->stopped = stopped != 0;
	if (e->stopped)
		return ST_OK;
	TRY(ranks_merge(
		e->ranks, e->l, e->score, e->batches * e->n * (int64_t)sizeof *e->score, d));
	for (int k = 0; k < e->n; k++)
		TRY(metrics_join(&e->scored[k].metrics, &how, d));
	return ST_OK;
}

/* Whether ranks evaluate each batch together: each has pieces of what the others read. */
static bool in_step(const struct evaluation *e)
{
	return e->ranks && e->ranks->n > 1 && stint_shares_parameters(e->l->model);
}

/* Before each batch. */
static enum status asked_to_stop(struct evaluation *e, struct diag *d)
{
	int64_t asked = interrupt_asked();
	if (in_step(e))
		TRY(ranks_most(e->ranks, e->l, &asked, d));
	e->stopped = asked != 0;
	return ST_OK;
}

/* Others have a batch more: they want this rank's pieces once more. */
static enum status help_others(struct evaluation *e, struct diag *d)
{
	if (!in_step(e))
		return ST_OK;
	TRY(asked_to_stop(e, d));
	const int rc = e->stopped ? 0 : e->l->eval(e->l->step, 1, NULL);
	return rc ? load_fail(e->l, rc, "evaluation", d) : ST_OK;
}

/* The batches of this process. */
static enum status share(struct evaluation *e, struct diag *d)
{
	const int rank = e->ranks ? e->ranks->rank : 0, n = e->ranks ? e->ranks->n : 1;
	const int64_t first = stint_tree_first(e->batches, n, rank),
		      end = stint_tree_first(e->batches, n, rank + 1);
	for (int k = 0; k < e->n; k++) {
		struct scored *s = &e->scored[k];
		metrics_clear(&s->metrics);
		metrics_pass_over(&s->metrics, scored_rows(e, s, first * feed_evaluated(e->f)));
	}
	for (int64_t i = 0; i < e->batches * e->n; i++)
		e->score[i] = (struct evaluation_score){0};
	e->stopped = false;
	for (int64_t b = first; b < end && !e->stopped; b++) {
		TRY(asked_to_stop(e, d));
		if (!e->stopped)
			TRY(one_batch(e, b, d));
	}
	if (!e->stopped && end - first < (e->batches + n - 1) / n)
		TRY(help_others(e, d));
	return n > 1 ? join(e, d) : ST_OK;
}

/* All batches' parts of the k-th loss, in their order. */
static void add_up(struct evaluation *e, int k)
{
	struct scored *s = &e->scored[k];
	double sum = 0, weight = 0;
	s->metrics.sums = (struct metric_sums){0};
	for (int64_t b = 0; b < e->batches; b++) {
		const struct evaluation_score *score = &e->score[b * e->n + k];
		sum += score->loss;
		weight += score->weight;
		metrics_add_sums(&s->metrics.sums, &score->sums);
	}
	s->loss = weight > 0 ? sum / weight : 0;
}

enum status evaluate(struct evaluation *e, struct diag *d)
{
	const struct feed *f = e->f;
	const struct stint_model *m = e->l->model;
	TRY(share(e, d));
	if (e->stopped)
		return ST_OK;
	e->loss = 0;
	for (int k = 0; k < e->n; k++) {
		add_up(e, k);
		/* the only one's has its weight already */
		e->loss += e->n == 1 ? e->scored[k].loss : m->loss[k].weight * e->scored[k].loss;
	}
	e->samples = f->samples;
	for (int k = 0; k < e->n; k++) {
		const struct metrics *x = &e->scored[k].metrics;
		if (!x->not_binary || !x->n)
			continue;
		const char *file = NULL;
		for (int i = 0; i < f->n; i++)
			if (f->bound[i].resident == m->loss[k].target)
				file = f->bound[i].data.path;
		return diag_fail(d, ST_INVALID, &(struct where){.file = file}, "leave --metric out",
			"metrics of yes and no want targets of 0 and 1");
	}
	return ST_OK;
}

void evaluation_print(const struct evaluation *e, int i, char out[32])
{
	const enum metric_which which = evaluation_metric(e, i)->which;
	const double v = evaluation_value(e, i);
	if (which == METRIC_ACCURACY || which == METRIC_TOP_K)
		snprintf(out, 32, "%.2f %%", 100 * v);
	else
		snprintf(out, 32, "%.4f", v);
}
