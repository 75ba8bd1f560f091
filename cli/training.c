#include "cli/training.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "api/safe_put.h"
#include "api/terminal.h"
#include "cli/clock.h"
#include "cli/interrupt.h"

enum status training_feed(struct training *t, int64_t batch)
{
	return feed_batch(
		&t->train, feed_place(&t->train, batch), feed_size(&t->train, batch), t->diag);
}

/* The batch to the step; the one behind it is read while that works. */
static enum status feed(struct training *t, int64_t batch)
{
	TRY(training_feed(t, batch));
	if (batch + 1 < t->batches)
		feed_ahead(&t->train, feed_place(&t->train, batch + 1),
			feed_size(&t->train, batch + 1));
	return ST_OK;
}

enum status training_rows(struct training *t, const struct loaded *step, int64_t batch)
{
	const int64_t rows = feed_size(&t->train, batch);
	const int rc = rows < t->train.batch ? step->rows(step->step, rows) : 0;
	return rc ? load_fail(step, rc, "training", t->diag) : ST_OK;
}

/* --eval-every: whether held-out data are evaluated behind this step, within its epoch. */
static bool scores_behind(const struct training *t, int64_t step, int64_t batch)
{
	return t->o->eval_every && step % t->o->eval_every == 0 && batch && batch < t->batches;
}

/* While a GPU works, the epoch's next batch is made and sent, unless an evaluation's comes first.
 * *there: this batch is, and then the next one. */
static enum status one_batch(struct training *t, bool *there, double lr, double *loss)
{
	enum status fed = ST_OK;
	const struct loaded *l;
	const int64_t next = t->place.batch + 1;
	const bool more = next < t->batches && !scores_behind(t, t->place.step + 1, next);
	if (!*there)
		TRY(feed(t, t->place.batch));
	*there = more;
	TRY(lengths_take(&t->lengths, &t->train, &l, t->diag));
	TRY(training_rows(t, l, t->place.batch));
	int rc = l->train_start(l->step, lr);
	if (!rc && more)
		fed = feed(t, next);
	if (!rc)
		rc = l->train_finish(l->step);
	if (rc)
		return load_fail(l, rc, "training", t->diag);
	*loss = l->loss(l->step);
	for (int k = 0; k < l->model->nloss; k++)
		t->part[k] = l->loss_part(l->step, k);
	t->place.step++;
	t->place.batch++;
	train_log_step(&t->log, &t->place, lr, *loss, t->part);
	chart_add(&t->losses, *loss);
	return fed;
}

/* --- Values that are not finite --- */

enum status training_lost(const struct training *t, struct finite_lost *lost)
{
	TRY(finite_lost(&t->watch.values, lost, t->diag));
	if (!t->l.model->npiece)
		return ST_OK;
	int64_t any = lost->tensors;
	TRY(ranks_most(&t->ranks, &t->l, &any, t->diag));
	if (any && !lost->tensors)
		*lost = (struct finite_lost){.tensors = (int)any};
	return ST_OK;
}

/* How to go on from here. */
static const char *way_out(const struct training *t, bool data)
{
	const double lr = isnan(t->o->lr) ? t->l.model->lr_default : t->o->lr;
	const char *from = "no checkpoint was saved before this: start again";
	if (*t->good)
		from = arena_printf(
			t->arena, "go on from the last good checkpoint, %s, by --resume", t->good);
	if (from && data)
		return arena_printf(t->arena, "mend the data, then %s", from);
	return !from ? NULL
		     : arena_printf(t->arena, "%s with an --lr below %g%s", from, lr,
			       t->o->check_finite ? ""
						  : "; --check-finite tells where it begins, "
						    "--keep-going trains on");
}

/* `what` happened, and `where` it began (NULL: not known; `data`: there). Nothing is saved. */
static enum status diverged(struct training *t, const char *what, const char *where, bool data,
	const struct finite_lost *lost)
{
	progress_end(&t->bar);
	t->ranks.agreed = true; /* all find it, at the same step */
	return diag_fail(t->diag, ST_DIVERGED, NULL, way_out(t, data),
		"training diverged: %s%s%s%s%s", what ? what : "", where ? "; it begins with " : "",
		where ? where : "", lost->tensors ? "; " : "",
		lost->tensors ? finite_text(t->arena, lost) : "");
}

static enum status write_files(struct training *t)
{
	char message[256];
	t->place.training = follow_note(t);
	swa_saved(&t->swa, &t->place.beside, &t->place.nbeside);
	if (!t->place.training)
		return diag_nomem(t->diag);
	int rc = t->best ? checkpoint_save_as(t->o->folder, "best", t->l.step, &t->place, message)
			 : 0;
	if (!rc)
		rc = checkpoint_save(t->o->folder, t->l.step, &t->place, t->o->keep, message);
	if (!rc)
		rc = checkpoint_path(t->o->folder, t->place.step, t->good, message);
	t->ranks.agreed = rc == CHECKPOINT_REFUSED;
	return rc ? diag_fail(
			    t->diag, rc == STINT_LOST ? ST_LOST : ST_IO, NULL, NULL, "%s", message)
		  : ST_OK;
}

/* By all ranks at once, who wait for each other as long as a slow disk may take. */
static enum status write_checkpoint(struct training *t)
{
	enum { PATIENCE = 3600 };
	if (!t->o->folder)
		return ST_OK;
	ranks_wait(&t->ranks, &t->l, PATIENCE);
	const enum status st = write_files(t);
	ranks_wait(&t->ranks, &t->l, 0);
	t->saved = clock_seconds();
	return st;
}

/* Values that are not finite are never saved: the last good checkpoint stays. */
static enum status save(struct training *t, bool *saved)
{
	struct finite_lost lost;
	*saved = false;
	TRY(training_lost(t, &lost));
	if (!lost.tensors) {
		*saved = t->o->folder != NULL;
		return write_checkpoint(t);
	}
	if (!t->o->keep_going)
		return diverged(t, arena_printf(t->arena, "after step %" PRId64, t->place.step),
			NULL, false, &lost);
	diag_warn(t->diag, NULL,
		*t->good ? arena_printf(t->arena, "%s is the last good one", t->good) : NULL,
		"after step %" PRId64 " %s%s", t->place.step, finite_text(t->arena, &lost),
		t->o->folder ? "; no checkpoint saved" : "");
	return ST_OK;
}

/* --check-finite: the step that went wrong once more, from where it began, looking on; and a
 * checkpoint of that. */
static enum status look_back(struct training *t, double lr, const char *what)
{
	const struct finite_lost none = {0};
	bool saved;
	t->place.step--;
	t->place.batch--;
	TRY(watch_bring_back(&t->watch));
	t->l.step->count = t->place.step;
	feed_share(&t->train, 0, 1); /* all ranks look at all of it, and find the same */
	TRY(feed(t, t->place.batch));
	const int64_t *sample = feed_place(&t->train, t->place.batch);
	const char *data = watch_data(&t->watch, &t->train, sample);
	TRY(training_rows(t, &t->l, t->place.batch));
	const char *where = data ? data : watch_step(&t->watch, &t->train, sample, lr);
	if (!where)
		return t->diag->errors ? t->diag->worst : diag_nomem(t->diag);
	TRY(watch_bring_back(&t->watch)); /* running statistics */
	t->l.step->count = t->place.step;
	if (t->place.step)
		TRY(save(t, &saved));
	return diverged(t, what, where, data != NULL, &none);
}

static const char *told_step(const struct training *t, double loss)
{
	if (isfinite(loss))
		return arena_printf(t->arena,
			"step %" PRId64 " (epoch %" PRId64
			") left values that are not finite, with a loss of %g",
			t->place.step, t->place.epoch + 1, loss);
	return arena_printf(t->arena, "the loss of step %" PRId64 " (epoch %" PRId64 ") is %s",
		t->place.step, t->place.epoch + 1, isnan(loss) ? "NaN" : "infinite");
}

/* What the step that is done has left; *counts: its loss has a part in the epoch's. */
static enum status judge(struct training *t, double lr, double loss, bool *counts)
{
	enum { NOW_AND_THEN = 64 };
	double scale = 0;
	struct finite_lost lost = {0};
	const bool finite = isfinite(loss);
	*counts = finite;
	if (finite && !t->o->check_finite && t->place.step % NOW_AND_THEN)
		return ST_OK;
	if (t->o->keep_going) {
		if (!finite && !watch_skipped(&t->watch) && !t->odd++)
			t->first_odd = t->place.step;
		return ST_OK;
	}
	const bool gone = watch_scale_gone(&t->watch, &scale);
	if (finite && !t->o->check_finite && !gone)
		return ST_OK;
	TRY(training_lost(t, &lost));
	const bool harmless = !lost.tensors && !gone && (finite || watch_skipped(&t->watch));
	if (harmless)
		return t->o->check_finite ? watch_keep(&t->watch) : ST_OK;
	const char *what = gone ? arena_printf(t->arena,
					  "by step %" PRId64
					  " gradients overflowed until the loss's scale was %g",
					  t->place.step, scale)
				: told_step(t, loss);
	if (!what)
		return diag_nomem(t->diag);
	if (t->o->check_finite && !gone)
		return look_back(t, lr, what);
	feed_share(&t->train, 0, 1);
	TRY(feed(t, t->place.batch - 1)); /* the next one may be there */
	const char *data = watch_data(
		&t->watch, &t->train, feed_place(&t->train, t->place.batch - 1));
	return diverged(t, what, data, data != NULL, &lost);
}

static enum status stop_early(struct training *t)
{
	bool saved;
	TRY(save(t, &saved));
	t->ranks.agreed = true;
	return diag_fail(t->diag, ST_INTERRUPTED, NULL, saved ? "go on with --resume" : NULL,
		"interrupted after step %" PRId64 " by %s%s", t->place.step, interrupt_name(),
		saved ? "; checkpoint saved" : "");
}

/* An epoch's line, and where it would be wider than 80 columns another one below. */
struct told_line {
	int columns;
};

static void __attribute__((format(printf, 2, 3)))
tell(struct told_line *line, const char *format, ...)
{
	enum { MOST = 80, INDENT = 8 };
	char piece[128];
	va_list args;
	va_start(args, format);
	const int n = vsnprintf(piece, sizeof piece, format, args);
	va_end(args);
	const bool begins = line->columns == 0, breaks = line->columns + 2 + n > MOST;
	printf("%s%s", begins ? "" : breaks ? "\n        " : "  ", piece);
	line->columns = begins ? n : (breaks ? INDENT : line->columns + 2) + n;
}

/* --precision fp16: the scale of the loss, and what it cost. */
static void report_scale(struct told_line *line, const struct loaded *l)
{
	const int i = load_find(l, "state/loss_scale", STINT_STATE);
	const float *state = i < 0 ? NULL : load_values(l, i); /* scale, updates since, skipped */
	if (!state)
		return;
	if (state[2] > 0)
		tell(line, "loss scale %g (%g step%s skipped)", (double)state[0], (double)state[2],
			state[2] > 1 ? "s" : "");
	else
		tell(line, "loss scale %g", (double)state[0]);
}

/* Of several losses each one by its name, as far as that goes on a line. */
static void tell_losses(struct told_line *line, const struct training *t, bool held_out)
{
	const struct stint_model *m = t->l.model;
	for (int k = 0; m->nloss > 1 && k < m->nloss; k++)
		tell(line, "%s%.60s %.4f", held_out ? "eval " : "", m->loss[k].name,
			held_out ? t->evaluation.scored[k].loss : t->part_mean[k]);
}

static void report_scores(struct told_line *line, const struct training *t)
{
	const struct evaluation *e = &t->evaluation;
	char value[32];
	tell(line, "eval loss %.4f", e->loss);
	tell_losses(line, t, true);
	for (int i = 0; i < e->nmetric; i++) {
		if (evaluation_metric(e, i)->which == METRIC_CONFUSION)
			continue;
		evaluation_print(e, i, value);
		tell(line, "%s %s", evaluation_metric(e, i)->label, value);
	}
}

/* `mean_loss` NULL: resumed behind the epoch's last batch. */
static void report_epoch(
	const struct training *t, const double *mean_loss, double seconds, double data_seconds)
{
	struct told_line line = {0};
	tell(&line, "epoch %" PRId64 "/%lld", t->place.epoch + 1, t->o->epochs);
	if (mean_loss) {
		tell(&line, "loss %.4f", *mean_loss);
		tell_losses(&line, t, false);
	}
	if (t->has_eval)
		report_scores(&line, t);
	report_scale(&line, &t->l);
	if (data_seconds >= 0.05) /* of them for data */
		tell(&line, "%.1f s, data %.1f s", seconds, data_seconds);
	else
		tell(&line, "%.1f s", seconds);
	if (t->best)
		tell(&line, "best");
	putchar('\n');
	fflush(stdout);
}

/* What is to be done behind a step: the later ones before the others. */
enum { GO_ON, SAVE, END, STOP };

static bool is_due(const struct pace *p, int64_t step, double seconds)
{
	return (p->steps && step % p->steps == 0) || seconds >= p->seconds;
}

/* All ranks do the same at the same step. */
static enum status agree(struct training *t, int64_t *next)
{
	const double now = clock_seconds();
	const bool saves = t->o->folder &&
			   t->place.batch < t->batches; /* else the epoch's end does */
	*next = GO_ON;
	if (interrupt_asked())
		*next = STOP;
	else if (is_due(&t->max_time, t->place.step, now - t->began))
		*next = END;
	else if (saves && is_due(&t->save_every, t->place.step, now - t->saved))
		*next = SAVE;
	TRY(ranks_most(&t->ranks, &t->l, next, t->diag));
	if (t->o->check_ranks && t->place.step % t->o->check_ranks == 0)
		return ranks_check(&t->ranks, &t->l, t->diag);
	return ST_OK;
}

/* A step's part in the sum over an epoch, of a batch that is `share` of a whole one. */
static double share_of(const struct stint_loss_term *term, double loss, double share)
{
	return feed_sums_loss(term) ? loss : loss * share;
}

static void begin_means(struct training *t)
{
	for (int k = 0; k < t->l.model->nloss; k++)
		t->part_mean[k] = 0;
}

/* What is added to the epoch's sums of several losses, from a step whose loss is finite. */
static void add_parts(struct training *t, double share)
{
	for (int k = 0; k < t->l.model->nloss; k++)
		t->part_mean[k] += share_of(&t->l.model->loss[k], t->part[k], share);
}

/* *mean: of one loss, from its sum; of several each times its weight. */
static void end_means(struct training *t, double sum, double n, double *mean)
{
	const struct stint_model *m = t->l.model;
	*mean = n > 0 ? sum / n : NAN;
	for (int k = 0; k < m->nloss; k++)
		t->part_mean[k] = n > 0 ? t->part_mean[k] / n : NAN;
	for (int k = 0; m->nloss > 1 && k < m->nloss; k++)
		*mean = (k ? *mean : 0) + m->loss[k].weight * t->part_mean[k];
}

/* What is held out is evaluated where training stands. */
static enum status take_score(struct training *t)
{
	TRY(evaluate(&t->evaluation, t->diag));
	if (t->evaluation.stopped)
		return stop_early(t);
	train_log_score(&t->log, &t->place, t->place.batch < t->batches);
	chart_add(&t->held_out, t->evaluation.loss);
	follow_score(t, &t->best);
	t->best &= t->o->keep_best != NULL;
	return ST_OK;
}

/* --eval-every: the step's line; what is the best is saved. A run that goes on from a checkpoint of
 * this very step evaluates where that had not. */
static enum status score_within(struct training *t)
{
	bool saved;
	struct told_line line = {0};
	if (!scores_behind(t, t->place.step, t->place.batch) || t->follow.step == t->place.step)
		return ST_OK;
	TRY(take_score(t));
	progress_hold();
	tell(&line, "step %" PRId64 " of epoch %" PRId64 "/%lld", t->place.step, t->place.epoch + 1,
		t->o->epochs);
	report_scores(&line, t);
	if (t->best)
		tell(&line, "best");
	putchar('\n');
	fflush(stdout);
	progress_go_on();
	const bool best = t->best;
	const enum status st = best ? save(t, &saved) : ST_OK;
	t->best = false;
	return st;
}

/* The epoch's batches; *mean: over the samples of losses that are finite, NAN where none is. */
static enum status batches(struct training *t, double *mean)
{
	double sum = 0, loss = 0, n = 0;
	bool there = false;
	char label[64];
	snprintf(label, sizeof label, "epoch %" PRId64 "/%lld", t->place.epoch + 1, t->o->epochs);
	TRY(feed_epoch(&t->train, t->o->seed, t->place.epoch, t->diag));
	progress_start(&t->bar, label, t->batches - t->place.batch);
	begin_means(t);
	while (t->place.batch < t->batches) {
		bool counts = false;
		enum status st = score_within(t);
		if (st != ST_OK || follow_is_over(t)) {
			progress_end(&t->bar);
			return st;
		}
		const double share = (double)feed_size(&t->train, t->place.batch) /
				     (double)t->train.batch;
		const double lr = follow_rate(t);
		st = one_batch(t, &there, lr, &loss);
		if (st == ST_OK)
			st = judge(t, lr, loss, &counts);
		int64_t next = GO_ON;
		bool saved;
		if (st == ST_OK)
			st = agree(t, &next);
		if (st == ST_OK && (next == SAVE || next == END))
			st = save(t, &saved);
		if (st != ST_OK || next == STOP) {
			progress_end(&t->bar);
			return st != ST_OK ? st : stop_early(t);
		}
		sum += counts ? share_of(t->l.model->loss, loss, share) : 0;
		n += counts ? share : 0;
		if (counts)
			add_parts(t, share);
		if (t->ranks.rank == 0)
			progress_step(&t->bar, loss);
		t->over = next == END;
		if (t->over)
			break;
	}
	progress_end(&t->bar);
	end_means(t, sum, n, mean);
	return ST_OK;
}

static enum status one_epoch(struct training *t)
{
	double mean = NAN;
	bool saved;
	const bool any = t->place.batch < t->batches;
	t->odd = 0;
	TRY(batches(t, &mean));
	if (t->over)
		return ST_OK;
	if (t->place.batch < t->batches) /* --early-stop */
		return save(t, &saved);
	if (t->has_eval) {
		TRY(take_score(t));
		follow_epoch(t);
	}
	TRY(swa_epoch(t));
	t->mean = mean;
	const double seconds = progress_seconds(&t->bar), waited = feed_waited(&t->train);
	report_epoch(t, any ? &mean : NULL, seconds, waited);
	train_log_epoch(&t->log, &t->place, seconds, waited);
	if (t->odd)
		diag_warn(t->diag, NULL, "lower the learning rate",
			"%" PRId64 " losses of epoch %" PRId64
			" were not finite, the first at step %" PRId64,
			t->odd, t->place.epoch + 1, t->first_odd);
	t->place.epoch++;
	t->place.batch = 0;
	TRY(save(t, &saved));
	t->best = false;
	if (t->has_eval && !isfinite(t->evaluation.loss))
		diag_warn(t->diag, NULL,
			t->o->keep_going ? NULL : "all parameters are: it may be the data",
			"the loss on held-out data is not finite");
	return ST_OK;
}

/* --swa-start: the average gets running statistics and a score of its own, and the last checkpoint
 * has them. */
static enum status finish_average(struct training *t)
{
	bool stopped, saved;
	if (!swa_is_due(&t->swa) || t->over)
		return ST_OK;
	enum status st = swa_put(t, &stopped);
	if (st == ST_OK && !stopped && t->has_eval) {
		st = evaluate(&t->evaluation, t->diag);
		stopped = t->evaluation.stopped;
	}
	TRY(swa_take_back(t, st == ST_OK && !stopped));
	if (st != ST_OK || stopped)
		return st != ST_OK ? st : stop_early(t);
	struct told_line line = {0};
	tell(&line, "average of %" PRId64 " epoch%s", t->swa.epochs, t->swa.epochs == 1 ? "" : "s");
	if (t->has_eval)
		report_scores(&line, t);
	printf("\n");
	return save(t, &saved);
}

/* On a terminal: what this run's losses did. */
static void draw_losses(const struct training *t)
{
	const int columns = terminal_columns(STDOUT_FILENO);
	if (!columns)
		return;
	chart_draw(stdout, "loss", t->losses.y, t->losses.n, columns, chart_utf8());
	chart_draw(stdout, "held-out loss", t->held_out.y, t->held_out.n, columns, chart_utf8());
}

enum status training_run(struct training *t)
{
	t->began = t->saved = clock_seconds();
	while (t->place.epoch < t->o->epochs && !follow_is_over(t) && !t->over)
		TRY(one_epoch(t));
	if (t->over)
		printf("stopped at step %" PRId64 " of epoch %" PRId64
		       ": --max-time %s is over; --resume goes on\n",
			t->place.step, t->place.epoch + 1, t->o->max_time);
	else if (follow_is_over(t))
		printf("stopped early: %s was best %" PRId64 " %s ago\n", t->follow.name,
			t->follow.best.since, t->o->eval_every ? "evaluations" : "epochs");
	TRY(finish_average(t));
	if (*t->good) {
		printf("saved: ");
		safe_put(stdout, t->good);
		putchar('\n');
	}
	if (t->ranks.rank == 0)
		lengths_print(&t->lengths);
	draw_losses(t);
	return ST_OK;
}
