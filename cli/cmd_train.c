/* stint train DIR --input [NAME=]FILE ... --target FILE [--eval-input ... --eval-target ...]
 * --epochs N */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "api/safe_put.h"
#include "cli/class_names.h"
#include "cli/cli.h"
#include "cli/data_columns.h"
#include "cli/data_forms.h"
#include "cli/interrupt.h"
#include "cli/json_only.h"
#include "cli/lr_find.h"
#include "cli/training.h"
#include "cli/training_note.h"
#include "cli/whole_path.h"

/* --anew: the checkpoints of an earlier run stay, in a folder beside. */
static enum status move_aside(const struct training *t, const char *folder)
{
	enum { MOST = 1000 };
	struct stat st;
	for (int i = 1; i <= MOST; i++) {
		const char *to = arena_printf(t->arena, "%s.%d", folder, i);
		if (!to)
			return diag_nomem(t->diag);
		if (lstat(to, &st) == 0)
			continue;
		if (rename(folder, to) != 0)
			break;
		diag_note(t->diag, &(struct where){.file = to}, NULL,
			"holds the checkpoints of the run before");
		return ST_OK;
	}
	return diag_fail(t->diag, ST_IO, &(struct where){.file = folder},
		"remove it, or name another by --checkpoint FOLDER", "cannot be moved aside: %s",
		strerror(errno));
}

/* A new run into an old run's folder would replace its checkpoints. */
static enum status begin_anew(struct training *t)
{
	char path[512], message[256];
	const char *folder = whole_path(t->arena, t->o->folder);
	if (!folder)
		return diag_nomem(t->diag);
	if (checkpoint_newest(folder, path, message))
		return diag_fail(t->diag, ST_IO, NULL, NULL, "%s", message);
	if (!*path)
		return ST_OK;
	if (t->o->anew)
		return t->ranks.rank == 0 ? move_aside(t, folder) : ST_OK;
	return diag_fail(t->diag, ST_USAGE, &(struct where){.file = t->o->folder},
		"go on with --resume, begin anew with --anew (they are kept beside), or save "
		"elsewhere: --checkpoint FOLDER",
		"holds checkpoints of an earlier run");
}

static enum status resume(struct training *t)
{
	char used[512], message[256];
	int found;
	if (!t->o->resume)
		return t->o->folder ? begin_anew(t) : ST_OK;
	if (checkpoint_load(t->o->folder, t->l.step, &t->place, &found, used, message))
		return diag_fail(t->diag, ST_INVALID, NULL, NULL, "%s", message);
	if (!found) {
		diag_note(t->diag, NULL, NULL, "no checkpoint in %s yet: starting anew",
			t->o->folder);
		return ST_OK;
	}
	if (t->place.seed != t->o->seed)
		return diag_fail(t->diag, ST_USAGE, NULL, NULL,
			"the checkpoint was made with --seed %" PRId64, t->place.seed);
	struct finite_lost lost;
	TRY(training_lost(t, &lost));
	if (lost.tensors && !t->o->keep_going)
		return diag_fail(t->diag, ST_DIVERGED, &(struct where){.file = used},
			"remove it to go on from the one before, with a smaller --lr",
			"training had diverged: %s", finite_text(t->arena, &lost));
	TRY(follow_resume(t, used));
	if (!lost.tensors)
		snprintf(t->good, sizeof t->good, "%s", used);
	printf("resumed from ");
	safe_put(stdout, used);
	printf(": step %" PRId64 ", epoch %" PRId64 "\n", t->place.step, t->place.epoch + 1);
	if (t->place.epoch >= t->o->epochs)
		diag_note(t->diag, NULL, "a larger --epochs goes on",
			"all %lld epochs are done: nothing is left to train", t->o->epochs);
	return ST_OK;
}

/* What cannot be written is told before the first step, not after hours. */
static enum status try_files(struct training *t)
{
	char message[256];
	const struct train_log_start start = {.to = &t->o->log,
		.append = t->o->resume != 0,
		.step = t->place.step,
		.m = t->l.model,
		.e = t->has_eval ? &t->evaluation : NULL};
	const char *folder = t->o->folder ? whole_path(t->arena, t->o->folder) : "";
	if (!folder)
		return diag_nomem(t->diag);
	if (*folder && t->place.epoch < t->o->epochs && checkpoint_try(folder, message))
		return diag_fail(t->diag, ST_IO, NULL,
			"--checkpoint FOLDER saves elsewhere, --no-save not at all", "%s", message);
	return train_log_open(&t->log, t->arena, &start, t->diag);
}

/* --last: where the step takes fewer samples, an epoch's last batch is what is left of them. */
static enum status count_batches(struct training *t)
{
	const struct feed *f = &t->train;
	const int64_t left = f->n ? f->samples % f->batch : 0;
	const struct where w = {.file = t->o->dir};
	const char *whole = left ? t->l.model->whole_batch : NULL;
	const bool drop = t->o->last && !strcmp(t->o->last, "drop");
	t->batches = f->n ? f->samples / f->batch : 0;
	if (whole && t->o->last && !drop)
		return diag_fail(t->diag, ST_USAGE, &w, "--last drop leaves them out",
			"--last keep: the last %" PRId64 " of %" PRId64
			" samples cannot be a step of their own: %s",
			left, f->samples, whole);
	if (whole && t->batches && !drop && t->ranks.rank == 0)
		diag_note(t->diag, &w, "--last drop says that this is meant",
			"each epoch leaves out %" PRId64 " of %" PRId64 " samples: %s", left,
			f->samples, whole);
	t->batches += left && !whole && !drop;
	TRY(feed_wants_samples(f, t->diag));
	if (t->batches == 0)
		return diag_fail(t->diag, ST_INVALID, NULL, "compile with a smaller --batch",
			"%" PRId64 " samples do not fill one batch of %" PRId64 "%s%s", f->samples,
			f->batch, whole ? ": " : "", whole ? whole : "");
	return ST_OK;
}

/* Classes that no sample has are learned, too: never to be answered. */
static enum status tell_fewer_classes(const struct training *t)
{
	const struct feed *f = &t->train;
	struct class_names names;
	TRY(class_names_split(t->arena, t->data.classes, &names, t->diag));
	const bool alone = f->target >= 0 && feed_tensor(f, f->target)->rank == 1;
	const int64_t classes = alone ? f->bound[f->target].classes : 0;
	if (!alone || !names.n || names.n >= classes || t->ranks.rank != 0)
		return ST_OK;
	diag_note(t->diag, &(struct where){.file = t->o->dir},
		arena_printf(
			t->arena, "compile with --replace-head %" PRId64 " for as many", names.n),
		"the data have %" PRId64 " classes, and the model tells %" PRId64 " apart", names.n,
		classes);
	return ST_OK;
}

/* What is drawn is drawn of pictures. */
static enum status check_augment(const struct training *t)
{
	int resize, crop;
	for (int i = 0; t->data.augment && i < t->train.n; i++)
		if (dataset_sizes(&t->train.bound[i].data, &resize, &crop))
			return ST_OK;
	return t->data.augment ? diag_fail(t->diag, ST_USAGE, NULL,
					 "pictures are a FOLDER of them, or images:SIZE:FOLDER",
					 "--augment changes pictures, and no input is such")
			       : ST_OK;
}

/* Held-out data have the columns that are trained, and words there the same numbers. */
static enum status know_columns(struct training *t)
{
	struct text note = {0};
	if (t->data.note)
		return ST_OK;
	columns_note(&note, &t->train);
	t->data.note = note.failed ? NULL : arena_strdup(t->arena, note.s ? note.s : "");
	text_free(&note);
	return t->data.note ? ST_OK : diag_nomem(t->diag);
}

/* A step that updates something. */
static enum status check_updates(const struct training *t)
{
	const struct stint_model *m = t->l.model;
	int updated = 0;
	for (int i = 0; i < m->nresident; i++)
		updated += m->resident[i].trainable;
	for (int i = 0; i < m->nkept; i++)
		updated -= m->resident[m->kept[i].resident].trainable;
	return updated ? ST_OK
		       : diag_fail(t->diag, ST_USAGE, &(struct where){.file = t->o->dir},
				 "compile with an optimizer: --optimizer adamw",
				 "updates no parameter, and nothing would be learned");
}

static enum status prepare(struct training *t)
{
	const struct train_args *o = t->o;
	TRY(ranks_start(t->arena, o->dir, &t->ranks, t->diag));
	TRY(load_step(t->arena, o->dir, &t->l, t->diag));
	if (!t->l.model->train)
		return diag_fail(t->diag, ST_USAGE, &(struct where){.file = o->dir},
			"compile with a loss and an optimizer", "was compiled with --loss none");
	TRY(check_updates(t));
	t->part = ARENA_ARRAY(t->arena, double, t->l.model->nloss);
	t->part_mean = ARENA_ARRAY(t->arena, double, t->l.model->nloss);
	if (!t->part || !t->part_mean)
		return diag_nomem(t->diag);
	TRY(ranks_take(t->arena, o->dir, &t->ranks, &t->l, t->diag));
	TRY(ranks_reduce(&t->ranks, &t->l, o->reduce && !strcmp(o->reduce, "fast"), t->diag));
	TRY(load_weights(t->arena, o->dir, &o->weights, &t->l, t->diag));
	const bool held = o->data.hold_out != NULL;
	if (held && (o->eval_input.n || o->eval_target.n))
		return diag_fail(t->diag, ST_USAGE, NULL, "choose one",
			"--hold-out takes held-out data out of --input, and --eval-input gives "
			"others");
	if (o->eval_input.n > 0 && !o->eval_target.n && load_target(t->l.model, 0) >= 0)
		return diag_fail(t->diag, ST_USAGE, NULL, "--eval-target FILE",
			"--eval-input without --eval-target: the loss on held-out data needs "
			"targets");
	if (o->eval_target.n && !o->eval_input.n && o->input.n)
		return diag_fail(t->diag, ST_USAGE, NULL, "--eval-input [NAME=]FILE",
			"--eval-target without --eval-input: there is nothing to evaluate");
	t->data = o->data;
	if (o->resume)
		TRY(note_words(t->arena, o->folder, &t->data, t->diag));
	TRY(feed_open(t->arena, &t->l, &o->input, &o->target, &t->data, &t->train, t->diag));
	TRY(check_augment(t));
	if (!t->data.classes && t->train.target >= 0)
		t->data.classes = dataset_classes(&t->train.bound[t->train.target].data);
	TRY(tell_fewer_classes(t));
	TRY(know_columns(t));
	t->has_eval = held || o->eval_input.n > 0 || o->eval_target.n > 0;
	if (t->has_eval) {
		t->held = t->data;
		t->held.augment = NULL;
		t->held.held = held;
		t->held.with = held ? &t->train : NULL;
		TRY(feed_open(t->arena, &t->l, held ? &o->input : &o->eval_input,
			held ? &o->target : &o->eval_target, &t->held, &t->eval, t->diag));
		TRY(evaluation_start(
			t->arena, &t->l, &t->eval, &o->metric, &t->evaluation, t->diag));
		if (t->ranks.rank == 0)
			feed_tell_filled(&t->eval, "what is told of held-out data",
				t->l.model->whole_batch, t->diag);
		t->evaluation.ranks = &t->ranks;
		t->evaluation.lengths = &t->lengths;
	}
	TRY(lengths_open(
		t->arena, o->dir, o->pad, &t->l, &t->train, &t->eval, &t->lengths, t->diag));
	if (t->lengths.n && t->ranks.n > 1)
		return diag_fail(t->diag, ST_USAGE, &(struct where){.file = o->dir},
			"compile it for one length",
			"--pad: steps for several lengths are one process's");
	TRY(follow_start(t));
	TRY(count_batches(t));
	t->place.seed = o->seed;
	t->l.seed(t->l.step, o->seed);
	TRY(watch_start(t->arena, &t->l, &t->watch, t->diag));
	TRY(swa_begin(t));
	TRY(resume(t));
	if (o->check_finite)
		TRY(watch_keep(&t->watch));
	if (t->ranks.rank == 0)
		TRY(try_files(t));
	TRY(ranks_same(&t->ranks, &t->l, o->rank_timeout, t->diag));
	feed_share(&t->train, t->ranks.rank, t->ranks.n);
	return ST_OK;
}

static enum status train(struct training *t)
{
	TRY(prepare(t));
	interrupt_listen();
	printf("training %s: %" PRId64 " samples in batches of %" PRId64, t->l.model->name,
		t->train.samples, t->train.batch);
	if (t->data.hold_out)
		printf(", %" PRId64 " held out", t->eval.samples);
	if (t->ranks.n > 1)
		printf(", %d ranks", t->ranks.n);
	if (load_on_gpu(&t->l))
		printf(t->ranks.n > 1 ? ", with a GPU each\n" : ", on a GPU\n");
	else
		printf(", %d thread%s\n", t->l.model->threads, t->l.model->threads == 1 ? "" : "s");
	fflush(stdout);
	if (t->o->lr_find)
		return ST_OK; /* run does it, which prints */
	TRY(training_run(t));
	return t->has_eval ? feed_join_skipped(t->arena, &t->eval, &t->ranks, &t->l, t->diag)
			   : ST_OK;
}

/* --no-save, and what wants a folder. */
static enum status check_unsaved(const struct train_args *o, struct diag *d)
{
	const char *wants = o->folder      ? "--checkpoint"
			    : o->resume    ? "--resume"
			    : o->anew      ? "--anew"
			    : o->keep_best ? "--keep-best"
			    : o->swa_start ? "--swa-start"
			    : o->restart   ? "--restart"
			    : o->max_time  ? "--max-time"
					   : NULL;
	return wants ? diag_fail(d, ST_USAGE, NULL, "leave one of them away",
			       "%s is about what is saved, and --no-save saves nothing", wants)
		     : ST_OK;
}

static enum status check_args(struct arena *a, const struct train_args *o, struct pace *save_every,
	struct pace *max_time, struct diag *d)
{
	struct schedule schedule;
	struct metrics metrics;
	struct swa_rate swa;
	TRY(schedule_parse(a, o->schedule, &schedule, d));
	TRY(metrics_parse(a, o->metric.value, o->metric.n, &metrics, d));
	if (o->epochs < 1 || o->epochs > 1000000000)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--epochs wants 1 or more");
	TRY(data_options_check(&o->data, d));
	if (o->warmup < 0 || isinf(o->lr) || o->lr < 0)
		return diag_fail(
			d, ST_USAGE, NULL, NULL, "--warmup and --lr want finite numbers from 0");
	if (o->last && strcmp(o->last, "keep") != 0 && strcmp(o->last, "drop") != 0)
		return diag_fail(
			d, ST_USAGE, NULL, NULL, "--last '%s' is neither keep nor drop", o->last);
	TRY(pace_parse("--save-every", o->save_every, save_every, d));
	TRY(pace_parse("--max-time", o->max_time, max_time, d));
	if (max_time->steps)
		return diag_fail(d, ST_USAGE, NULL, "8h, for example",
			"--max-time %s wants a time: s, m, h or d behind the number", o->max_time);
	if (o->keep < 0 || o->early_stop < 0 || o->eval_every < 0)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--keep, --early-stop and --eval-every want 0 or more");
	if (o->no_save)
		TRY(check_unsaved(o, d));
	if (o->anew && o->resume && !ranks_started())
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--anew and --resume ask for opposites: choose one");
	if (o->metric.n && !o->eval_input.n && !o->eval_target.n && !o->data.hold_out)
		return diag_fail(d, ST_USAGE, NULL, HELD_OUT_HINT, "--metric wants held-out data");
	TRY(swa_rate_parse(a, o->swa_lr, &swa, d));
	if (o->swa_start < 0)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--swa-start wants an epoch, from 1");
	if (o->swa_start > o->epochs)
		diag_warn(d, NULL, NULL, "--swa-start %lld: no epoch of %lld is averaged",
			o->swa_start, o->epochs);
	if (o->swa_lr && !o->swa_start)
		return diag_fail(d, ST_USAGE, NULL, "--swa-start EPOCH",
			"--swa-lr is the learning rate while weights are averaged");
	if (o->check_ranks < 0 || o->restart < 0 || !(o->rank_timeout >= 0))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--check-ranks, --restart and --rank-timeout want 0 or more");
	if (o->reduce && strcmp(o->reduce, "tree") != 0 && strcmp(o->reduce, "fast") != 0)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--reduce '%s' is neither tree nor fast",
			o->reduce);
	if (o->check_finite && o->keep_going)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--check-finite stops where --keep-going does not: choose one");
	return ST_OK;
}

/* "PREFIXNAME":X */
static void put_named(const char *prefix, const char *name, double x)
{
	struct text key = {0};
	text_add(&key, "%s%s", prefix, name);
	if (key.failed) /* the rest is there all the same */
		return;
	putchar(',');
	safe_json(stdout, key.s);
	printf(isfinite(x) ? ":%.9g" : ":null", x);
	text_free(&key);
}

static void put_number(const char *key, double x)
{
	put_named("", key, x);
}

/* What is left of it all; the log has each step. */
static void print_json(const struct training *t, double seconds)
{
	printf("{\"epochs\":%" PRId64 ",\"steps\":%" PRId64, t->place.epoch, t->place.step);
	const struct stint_model *m = t->l.model;
	const struct evaluation *e = &t->evaluation;
	put_number("loss", t->mean);
	for (int k = 0; m->nloss > 1 && k < m->nloss; k++)
		put_named("loss/", m->loss[k].name, t->part_mean[k]);
	if (t->has_eval)
		put_number("eval_loss", e->loss);
	for (int k = 0; t->has_eval && m->nloss > 1 && k < m->nloss; k++)
		put_named("eval_loss/", m->loss[k].name, e->scored[k].loss);
	for (int i = 0; t->has_eval && i < e->nmetric; i++)
		if (evaluation_metric(e, i)->which != METRIC_CONFUSION)
			put_number(evaluation_metric(e, i)->label, evaluation_value(e, i));
	lengths_json(&t->lengths);
	put_number("seconds", seconds);
	if (t->o->folder) {
		printf(",\"checkpoint\":");
		safe_json(stdout, t->good);
	}
	printf("}\n");
}

static enum status run(struct train_args *o, struct arena *a, struct diag *d)
{
	bool done;
	struct training t = {.o = o, .arena = a, .diag = d};
	if (!o->schedule)
		o->schedule = "constant";
	int was;
	struct progress whole;
	TRY(check_args(a, o, &t.save_every, &t.max_time, d));
	if (o->lr_find)
		TRY(lr_find_check(o, d));
	o->no_save |= o->lr_find;
	if (!o->folder && !o->no_save && !(o->folder = weights_folder(a, o->dir)))
		return diag_nomem(d);
	TRY(ranks_launch_for(a, o->dir, o->ranks, o->restart, &done, d));
	if (done)
		return ST_OK;
	t.mean = NAN;
	progress_start(&whole, "", 1);
	TRY(json_only_begin(o->json, &was, d));
	enum status st = train_log_close(&t.log, train(&t));
	json_only_end(was);
	if (st == ST_OK && o->lr_find)
		st = lr_find(&t);
	else if (st == ST_OK && o->json && t.ranks.rank == 0)
		print_json(&t, progress_seconds(&whole));
	ranks_end(&t.ranks, &t.l, st, d);
	watch_end(&t.watch);
	if (t.ranks.rank == 0) {
		feed_tell_skipped(&t.train, d);
		feed_tell_skipped(&t.eval, d);
	}
	follow_end(&t.follow);
	feed_close(&t.train);
	feed_close(&t.eval);
	lengths_close(&t.lengths);
	load_close(&t.l);
	return st;
}

enum status cmd_train(int argc, const char **argv, struct diag *d)
{
	struct train_args o = {.epochs = 1, .lr = NAN, .keep = 2, .rank_timeout = RANKS_PATIENCE};
	struct arg_list list[6] = {0};
	char *text[10] = {NULL};
	struct poptOption table[] = {{"input", 0, POPT_ARG_STRING, NULL, 1,
					     "training data: " INPUT_FORMS, "[NAME=]FILE"},
		{"target", 0, POPT_ARG_STRING, NULL, ARGS_ANEW | 5,
			"training targets: " TARGET_FORMS, "[NAME=]FILE"},
		{"eval-input", 0, POPT_ARG_STRING, NULL, 2,
			"held-out data, evaluated after each epoch", "[NAME=]FILE"},
		{"eval-target", 0, POPT_ARG_STRING, NULL, ARGS_ANEW | 6, "held-out targets",
			"[NAME=]FILE"},
		HOLD_OUT_OPTION(
			o.data, "of the training data so many, drawn by chance, are held out"),
		{"eval-every", 0, POPT_ARG_LONGLONG, &o.eval_every, 0,
			"evaluate held-out data after so many steps, too", "N"},
		{"metric", 0, POPT_ARG_STRING, NULL, 3,
			"of held-out data, after each epoch: accuracy, f1, ...", "NAME[:OPTIONS]"},
		{"epochs", 0, POPT_ARG_LONGLONG, &o.epochs, 0, "(default 1)", "N"},
		{"lr", 0, POPT_ARG_DOUBLE, &o.lr, 0, "learning rate (default: the optimizer's)",
			"X"},
		{"lr-find", 0, POPT_ARG_NONE, &o.lr_find, 0,
			"train a hundred steps at a rising rate, and say which to take", NULL},
		{"schedule", 0, POPT_ARG_STRING, &text[0], 0,
			"of the learning rate: constant, cosine, step:size=30, ...",
			"NAME[:OPTIONS]"},
		{"warmup", 0, POPT_ARG_LONGLONG, &o.warmup, 0, "steps of rising learning rate",
			"N"},
		DATA_OPTIONS(o.data),
		{"augment", 0, POPT_ARG_STRING, &o.data.augment, 0,
			"change pictures by chance while training: " AUGMENT_WORDS, "WORD[,...]"},
		{"pad", 0, POPT_ARG_STRING, &text[7], 0,
			"fills the ends of samples: a batch takes the shortest step that holds it",
			"[NAME=]TOKEN"},
		{"last", 0, POPT_ARG_STRING, &text[5], 0,
			"an epoch's incomplete last batch (default: keep where that is exact)",
			"keep|drop"},
		{"seed", 0, POPT_ARG_LONGLONG, &o.seed, 0, "of shuffling and dropout (default 0)",
			"N"},
		{"weights", 0, POPT_ARG_STRING, &text[3], 0, "start from these values",
			"FILE.safetensors"},
		WEIGHTS_OPTIONS(o.weights),
		{"checkpoint", 0, POPT_ARG_STRING, &text[1], 0,
			"save here after each epoch and when interrupted (default: "
			"DIR/checkpoints)",
			"FOLDER"},
		{"save-every", 0, POPT_ARG_STRING, &text[8], 0,
			"within an epoch, too: after so many steps, or so long (default 15m; 0: "
			"not)",
			"N|15m|2h"},
		{"max-time", 0, POPT_ARG_STRING, &text[9], 0,
			"save and end after so long; --resume goes on", "8h|2d"},
		{"keep", 0, POPT_ARG_LONGLONG, &o.keep, 0, "checkpoints (default 2; 0: all)", "N"},
		{"keep-best", 0, POPT_ARG_STRING, &text[2], 0,
			"keep the best epoch's values as best.safetensors: by loss or a --metric",
			"NAME"},
		{"swa-start", 0, POPT_ARG_LONGLONG, &o.swa_start, 0,
			"average the weights after each epoch from this one on", "EPOCH"},
		{"swa-lr", 0, POPT_ARG_STRING, &text[4], 0, "learning rate of the epochs behind it",
			"X[:OPTIONS]"},
		{"early-stop", 0, POPT_ARG_LONGLONG, &o.early_stop, 0,
			"end after so many evaluations that were not the best", "N"},
		{"resume", 0, POPT_ARG_NONE, &o.resume, 0, "go on from the newest checkpoint",
			NULL},
		{"anew", 0, POPT_ARG_NONE, &o.anew, 0,
			"begin anew: checkpoints of an earlier run are moved aside", NULL},
		{"no-save", 0, POPT_ARG_NONE, &o.no_save, 0,
			"save nothing: what is trained is lost at the end", NULL},
		{"log", 0, POPT_ARG_STRING, NULL, 4,
			"a line a step: JSON, CSV, or TensorBoard's event files in DIR/",
			"FILE.jsonl|FILE.csv|DIR/"},
		{"json", 0, POPT_ARG_NONE, &o.json, 0, "print JSON for programs at the end", NULL},
		{"ranks", 0, POPT_ARG_LONGLONG, &o.ranks, 0,
			"start so many processes with mpirun, on this machine", "N"},
		{"restart", 0, POPT_ARG_LONGLONG, &o.restart, 0,
			"of these: go on with one fewer where one was lost, so often", "N"},
		{"rank-timeout", 0, POPT_ARG_DOUBLE, &o.rank_timeout, 0,
			"how long a rank waits for another (default 60; 0: forever)", "SECONDS"},
		{"reduce", 0, POPT_ARG_STRING, &text[6], 0,
			"of these: sums along a tree, the same bits on any number (default), or "
			"fast",
			"tree|fast"},
		{"check-ranks", 0, POPT_ARG_LONGLONG, &o.check_ranks, 0,
			"compare the ranks' values after every so many steps", "N"},
		{"keep-going", 0, POPT_ARG_NONE, &o.keep_going, 0,
			"do not stop at a loss that is not finite", NULL},
		{"check-finite", 0, POPT_ARG_NONE, &o.check_finite, 0,
			"look at all values after each step; tell where it went wrong", NULL},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table,
		"DIR --input FILE ... --target FILE --epochs N", 1, 1, list, &args, d);
	if (st == ST_OK && !args.help) {
		o.dir = args.positional[0];
		o.input = list[0];
		o.eval_input = list[1];
		o.metric = list[2];
		o.target = list[4];
		o.eval_target = list[5];
		o.schedule = text[0];
		o.folder = text[1];
		o.log = list[3];
		o.weights.path = text[3];
		o.keep_best = text[2];
		o.swa_lr = text[4];
		o.last = text[5];
		o.reduce = text[6];
		o.pad = text[7];
		o.save_every = text[8] ? text[8] : "15m";
		o.max_time = text[9];
		st = run(&o, a, d);
	}
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		free(text[i]);
	data_options_free(&o.data);
	arena_free(a);
	return st;
}
