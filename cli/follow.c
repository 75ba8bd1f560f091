#include "cli/follow.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/data_columns.h"
#include "cli/training.h"
#include "cli/training_note.h"
#include "runtime/safetensors.h"

static double first_rate(const struct training *t)
{
	return isnan(t->o->lr) ? t->l.model->lr_default : t->o->lr;
}

enum status follow_start(struct training *t)
{
	struct follow *f = &t->follow;
	const struct train_args *o = t->o;
	f->name = o->keep_best ? o->keep_best : "loss";
	f->metric = f->loss = -1;
	f->best = (struct improvement){.falls = true, .best = NAN};
	TRY(schedule_parse(t->arena, o->schedule, &f->schedule, t->diag));
	if (f->schedule.which == SCHEDULE_ONE_CYCLE && o->warmup)
		return diag_fail(t->diag, ST_USAGE, NULL, NULL,
			"--schedule one-cycle rises by itself: leave --warmup out");
	if (f->schedule.which == SCHEDULE_PLATEAU && o->swa_lr)
		return diag_fail(t->diag, ST_USAGE, NULL, "leave --swa-lr out",
			"--swa-lr does not go with --schedule plateau, which follows the loss");
	const bool follows = o->keep_best || o->early_stop || o->eval_every ||
			     f->schedule.which == SCHEDULE_PLATEAU;
	if (follows && !t->has_eval)
		return diag_fail(t->diag, ST_USAGE, NULL, HELD_OUT_HINT,
			"--keep-best, --early-stop, --eval-every and --schedule plateau want "
			"held-out data");
	if (!strcmp(f->name, "loss"))
		return ST_OK;
	const struct evaluation *e = &t->evaluation;
	for (int k = 0; !strncmp(f->name, "loss/", 5) && k < e->n; k++)
		if (!strcmp(f->name + 5, t->l.model->loss[k].name))
			f->loss = k;
	if (f->loss >= 0)
		return ST_OK;
	f->metric = evaluation_find(e, f->name);
	if (f->metric < 0 || evaluation_metric(e, f->metric)->which == METRIC_CONFUSION)
		return diag_fail(t->diag, ST_USAGE, NULL,
			arena_printf(t->arena, "--metric %s", f->name),
			"--keep-best %s: it is not measured", f->name);
	f->best.falls = metric_falls(evaluation_metric(e, f->metric));
	return ST_OK;
}

double follow_rate(const struct training *t)
{
	const struct swa *swa = &t->swa;
	struct schedule_at at = {.step = t->place.step,
		.epoch = t->place.epoch,
		.steps = t->o->epochs * t->batches,
		.epochs = t->o->epochs,
		.warmup = t->o->warmup};
	if (!swa->start || isnan(swa->rate.lr) || at.epoch < swa->start)
		return schedule_rate(&t->follow.schedule, first_rate(t), &at);
	/* from where the schedule was in the first averaged epoch */
	at.epoch = swa->start - 1;
	at.step = swa->start * t->batches - 1;
	return swa_rate_at(&swa->rate, schedule_rate(&t->follow.schedule, first_rate(t), &at),
		t->place.epoch - at.epoch);
}

static double followed(const struct training *t)
{
	const struct follow *f = &t->follow;
	const struct evaluation *e = &t->evaluation;
	return f->metric >= 0 ? evaluation_value(e, f->metric)
	       : f->loss >= 0 ? e->scored[f->loss].loss
			      : e->loss;
}

void follow_score(struct training *t, bool *best)
{
	*best = improvement_told(&t->follow.best, followed(t));
	t->follow.step = t->place.step;
}

void follow_epoch(struct training *t)
{
	struct follow *f = &t->follow;
	schedule_told(&f->schedule, first_rate(t), followed(t), f->best.falls);
}

bool follow_is_over(const struct training *t)
{
	return t->o->early_stop && t->follow.best.since >= t->o->early_stop;
}

void follow_end(struct follow *f)
{
	text_free(&f->note);
}

/* --- The note: lines of a name and a value --- */

static void put_number(struct text *note, const char *name, double v)
{
	text_add(note, "%s %a\n", name, v);
}

static void put_whole(struct text *note, const char *name, int64_t v)
{
	text_add(note, "%s %" PRId64 "\n", name, v);
}

static void put_files(struct text *note, const char *name, const struct arg_list *list)
{
	struct text all = {0};
	for (int i = 0; i < list->n; i++)
		text_add(&all, "%s%s", i ? " " : "", list->value[i]);
	note_put(note, name, all.s ? all.s : "");
	note->failed |= all.failed;
	text_free(&all);
}

/* What is made of pictures, of any size, before they are held out or trained on. */
static void put_sizes(struct text *note, const struct feed *f)
{
	int resize, crop;
	for (int i = 0; i < f->n; i++)
		if (dataset_sizes(&f->bound[i].data, &resize, &crop)) {
			put_whole(note, "--resize", resize);
			put_whole(note, "--crop", crop);
			note_put(note, "colours", f->bound[i].data.dim[1] == 1 ? "gray" : "rgb");
			return;
		}
}

/* What a run was asked for, so that another one can tell what it changes. */
static void put_settings(struct text *note, const struct training *t)
{
	const struct train_args *o = t->o;
	text_add(note, "--lr %.9g\n", first_rate(t));
	note_put(note, "--schedule", o->schedule);
	put_whole(note, "--warmup", o->warmup);
	if (schedule_has_end(&t->follow.schedule))
		put_whole(note, "--epochs", o->epochs);
	put_whole(note, "--batch", t->train.batch);
	put_whole(note, "samples", t->train.samples);
	put_files(note, "--input", &o->input);
	put_files(note, "--target", &o->target);
	note_put(note, "--scale", o->data.scale ? o->data.scale : "1");
	note_put(note, "--shift", o->data.shift ? o->data.shift : "0");
	note_put(note, "--hold-out", o->data.hold_out ? o->data.hold_out : "");
	if (o->data.augment)
		note_put(note, "--augment", o->data.augment);
	put_sizes(note, t->has_eval ? &t->eval : &t->train);
	if (t->data.classes)
		note_put(note, "classes", t->data.classes);
	columns_note(note, &t->train);
	if (o->pad)
		note_put(note, "--pad", o->pad);
	if (o->eval_every)
		put_whole(note, "--eval-every", o->eval_every);
	put_whole(note, "--swa-start", o->swa_start);
	note_put(note, "--swa-lr", o->swa_lr ? o->swa_lr : "");
	note_put(note, "--keep-best", t->has_eval ? t->follow.name : "");
}

const char *follow_note(struct training *t)
{
	const struct follow *f = &t->follow;
	struct text *note = &t->follow.note;
	text_free(note);
	*note = (struct text){0};
	put_settings(note, t);
	put_whole(note, "swa.epochs", t->swa.epochs);
	put_number(note, "best", f->best.best);
	put_whole(note, "since", f->best.since);
	if (t->o->eval_every)
		put_whole(note, "evaluated", f->step);
	if (f->schedule.which == SCHEDULE_PLATEAU) {
		put_number(note, "plateau.factor", f->schedule.factor);
		put_number(note, "plateau.best", f->schedule.best);
		put_whole(note, "plateau.bad", f->schedule.bad);
		put_whole(note, "plateau.cooling", f->schedule.cooling);
	}
	return note->failed ? NULL : note->s;
}

static double number(const char *note, const char *name, double otherwise)
{
	size_t n;
	const char *text = note_find(note, name, strlen(name), &n);
	return text ? strtod(text, NULL) : otherwise;
}

static int64_t whole(const char *note, const char *name)
{
	size_t n;
	const char *text = note_find(note, name, strlen(name), &n);
	return text ? strtoll(text, NULL, 10) : 0;
}

/* A setting that was another. */
static void tell_change(struct training *t, const char *name, const char *was, const char *is)
{
	if (!*is)
		diag_note(t->diag, NULL, NULL,
			"the checkpoint was made with %s %s, now it is without", name, was);
	else if (!*was)
		diag_note(t->diag, NULL, NULL, "the checkpoint was made without %s, now it is %s",
			name, is);
	else
		diag_note(t->diag, NULL, NULL, "the checkpoint was made with %s %s, now it is %s",
			name, was, is);
}

/* Tells each setting that `was` another, and whether --keep-best is the same. */
static enum status tell_changes(
	struct training *t, const char *was, const char *is, bool *same_best)
{
	bool nomem = false;
	for (const char *p = is; *p; p += strcspn(p, "\n") + 1) {
		const char *name = arena_strndup(t->arena, p, strcspn(p, " "));
		const char *old = name ? note_value(t->arena, was, name, &nomem) : NULL,
			   *now = name ? note_value(t->arena, is, name, &nomem) : NULL;
		if (!name || nomem)
			return diag_nomem(t->diag);
		if (old && !strcmp(old, now))
			continue;
		if (!strcmp(name, "--keep-best"))
			*same_best = false;
		else if (old)
			tell_change(t, name, old, now);
	}
	return ST_OK;
}

enum status follow_resume(struct training *t, const char *path)
{
	struct follow *f = &t->follow;
	struct safetensors *file;
	char message[SAFETENSORS_MESSAGE];
	struct text is = {0};
	bool same_best = true;
	if (safetensors_open_header(&file, path, message))
		return diag_fail(t->diag, ST_IO, NULL, NULL, "%s", message);
	const char *was = safetensors_note(file, "training");
	put_settings(&is, t);
	enum status st = is.failed ? diag_nomem(t->diag) : ST_OK;
	if (st == ST_OK && was)
		st = tell_changes(t, was, is.s, &same_best);
	if (st == ST_OK && was) {
		f->best.best = same_best ? number(was, "best", NAN) : NAN;
		f->best.since = same_best ? whole(was, "since") : 0;
		f->step = whole(was, "evaluated");
		f->schedule.factor = number(was, "plateau.factor", 1);
		f->schedule.best = same_best ? number(was, "plateau.best", NAN) : NAN;
		f->schedule.bad = same_best ? whole(was, "plateau.bad") : 0;
		f->schedule.cooling = whole(was, "plateau.cooling");
	}
	if (st == ST_OK)
		st = swa_resume(t, file, whole(was, "swa.epochs"));
	text_free(&is);
	safetensors_close(file);
	return st;
}
