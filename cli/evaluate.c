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
static struct metric_task task_of_labels(const struct stint_model *m, struct evaluation *e)
{
	struct metric_task task = {.kind = METRIC_NOTHING};
	const struct stint_tensor *t = &m->resident[m->target];
	const struct stint_output *o = feed_scored_output(m);
	if (!o)
		return task;
	int axis = (int)feed_loss_option(m, "axis", o->rank == 3 ? 2 : 1);
	axis += axis < 0 ? o->rank : 0;
	task = (struct metric_task){.kind = METRIC_CLASSES,
		.classes = o->dim[axis],
		.inner = elements(o->rank, o->dim, axis + 1),
		.ignore = (int64_t)feed_loss_option(m, "ignore_index", -100),
		.wide = o->dtype == STINT_F64};
	e->output = (int)(o - m->output);
	e->labels = elements(t->rank, t->dim, 1);
	return task;
}

/* An output of the target's size, element by element: the one that the loss names, or the first. Of
 * a batch in micro-batches the evaluation takes one, and the target is the whole batch's. */
static struct metric_task task_of_values(const struct stint_model *m, struct evaluation *e)
{
	const struct stint_tensor *t = &m->resident[m->target];
	const int64_t shards = m->shards > 1 ? m->shards : 1;
	const bool focal = !strcmp(m->loss_name, "sigmoid-focal"),
		   binary = focal || !strncmp(m->loss_name, "bce", 3);
	struct metric_task task = {.kind = METRIC_NOTHING};
	const bool compares = !strcmp(m->loss_name, "cosine-embedding") ||
			      !strcmp(m->loss_name, "margin-ranking");
	if ((t->dtype != STINT_F32 && t->dtype != STINT_F64) || compares)
		return task;
	for (int i = 0; i < m->noutput && e->output < 0; i++) {
		const struct stint_output *o = &m->output[i];
		if (!feed_scores(m, o) || (o->dtype != STINT_F32 && o->dtype != STINT_F64) ||
			elements(o->rank, o->dim, 0) * shards != elements(t->rank, t->dim, 0))
			continue;
		e->output = i;
		task = (struct metric_task){.kind = binary ? METRIC_BINARY : METRIC_VALUES,
			.classes = 1,
			.inner = elements(t->rank, t->dim, 1),
			.logits = focal || !strcmp(m->loss_name, "bce-with-logits"),
			.wide = o->dtype == STINT_F64,
			.wide_target = t->dtype == STINT_F64};
	}
	return task;
}

struct metric_task evaluation_task(const struct stint_model *m, struct evaluation *e)
{
	e->output = -1;
	if (feed_has_labels(m))
		return task_of_labels(m, e);
	if (m->target >= 0 && m->loss_name)
		return task_of_values(m, e);
	return (struct metric_task){.kind = METRIC_NOTHING};
}

enum status evaluation_start(struct arena *a, const struct loaded *l, const struct feed *f,
	const struct arg_list *metric, struct evaluation *out, struct diag *d)
{
	const struct stint_model *m = l->model;
	*out = (struct evaluation){.l = l, .f = f};
	if (metric->n)
		TRY(feed_wants_outputs(l, "--metric", d));
	struct metric_task task = evaluation_task(m, out);
	static const char *const usual = "accuracy";
	const bool by_itself = !metric->n && task.kind == METRIC_CLASSES;
	TRY(metrics_parse(a, by_itself ? &usual : metric->value, by_itself ? 1 : metric->n,
		&out->metrics, d));
	task.rows = f->samples * f->rows;
	if (task.kind == METRIC_CLASSES)
		task.rows = task.rows * out->labels / task.inner;
	TRY(metrics_start(a, &out->metrics, &task, d));
	out->batches = (f->samples + feed_evaluated(f) - 1) / feed_evaluated(f);
	out->index = ARENA_ARRAY(a, int64_t, f->batch);
	out->score = ARENA_ARRAY(a, struct evaluation_score, out->batches);
	return out->index && out->score ? ST_OK : diag_nomem(d);
}

/* Rows that are scored, of so many samples. */
static int64_t scored_rows(const struct evaluation *e, int64_t samples)
{
	const struct metric_task *task = &e->metrics.task;
	const int64_t rows = samples * e->f->rows;
	return task->kind == METRIC_CLASSES ? rows * e->labels / task->inner : rows;
}

/* The batch's first `n` samples have been evaluated; *counted: what the mean loss weighs them by:
 * labels that count. */
static enum status score(
	struct evaluation *e, const struct loaded *l, int64_t n, int64_t *counted, struct diag *d)
{
	struct metrics *m = &e->metrics;
	const bool labels = m->task.kind == METRIC_CLASSES;
	*counted = n;
	if (e->output < 0 || (!labels && !m->n))
		return ST_OK;
	const void *target = load_at(l, l->model->target);
	const void *y = load_output(l, e->output);
	if (!target || !y)
		return load_lost(l, "evaluation", d);
	const int64_t before = m->counted;
	metrics_add(m, y, target, scored_rows(e, n));
	*counted = labels ? m->counted - before : n;
	return ST_OK;
}

static enum status one_batch(struct evaluation *e, int64_t batch, struct diag *d)
{
	const int64_t whole = feed_evaluated(e->f), from = batch * whole;
	const int64_t n = e->f->samples - from < whole ? e->f->samples - from : whole;
	int64_t counted = 0;
	for (int64_t i = 0; i < n; i++)
		e->index[i] = from + i;
	const struct loaded *l = e->l;
	TRY(feed_batch(e->f, e->index, n, d));
	if (e->lengths)
		TRY(lengths_evaluate(e->lengths, e->f, e->output, &l, d));
	const int rc = l->eval(l->step, n * e->f->rows, NULL);
	if (rc)
		return load_fail(l, rc, "evaluation", d);
	TRY(score(e, l, n, &counted, d));
	if (!counted)
		return ST_OK;
	/* a loss that is a sum counts as in a batch of the usual size */
	const bool summed = feed_sums_loss(e->l->model);
	const double w = summed ? (double)n : (double)counted;
	e->score[batch] = (struct evaluation_score){
		.loss = l->loss(l->step) * (summed ? (double)whole : w),
		.weight = w,
		.sums = e->metrics.batch};
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
	TRY(ranks_merge(e->ranks, e->l, e->score, e->batches * (int64_t)sizeof *e->score, d));
	return metrics_join(&e->metrics, &how, d);
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
	metrics_clear(&e->metrics);
	metrics_pass_over(&e->metrics, scored_rows(e, first * feed_evaluated(e->f)));
	for (int64_t b = 0; b < e->batches; b++)
		e->score[b] = (struct evaluation_score){0};
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

enum status evaluate(struct evaluation *e, struct diag *d)
{
	const struct feed *f = e->f;
	double sum = 0, weight = 0;
	TRY(share(e, d));
	if (e->stopped)
		return ST_OK;
	e->metrics.sums = (struct metric_sums){0};
	for (int64_t b = 0; b < e->batches; b++) {
		sum += e->score[b].loss;
		weight += e->score[b].weight;
		metrics_add_sums(&e->metrics.sums, &e->score[b].sums);
	}
	e->samples = f->samples;
	e->loss = weight > 0 ? sum / weight : 0;
	if (e->metrics.not_binary && e->metrics.n)
		return diag_fail(d, ST_INVALID,
			&(struct where){
				.file = f->target < 0 ? NULL : f->bound[f->target].data.path},
			"leave --metric out", "metrics of yes and no want targets of 0 and 1");
	return ST_OK;
}

void evaluation_print(const struct metrics *m, int i, char out[32])
{
	const enum metric_which which = m->item[i].which;
	const double v = metrics_value(m, i);
	if (which == METRIC_ACCURACY || which == METRIC_TOP_K)
		snprintf(out, 32, "%.2f %%", 100 * v);
	else
		snprintf(out, 32, "%.4f", v);
}
