/* stint train DIR --input [NAME=]FILE ... --target FILE [--eval-input ... --eval-target ...]
 * --epochs N */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/evaluate.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/train_log.h"
#include "cli/weights.h"
#include "runtime/checkpoint.h"

struct train_args {
	const char *dir, *target, *eval_target, *schedule, *folder, *log;
	struct weights weights;
	struct arg_list input, eval_input;
	long long epochs, warmup, seed;
	double lr, scale, shift; /* lr NAN: the optimizer's, as compiled */
	int resume;
};

struct training {
	const struct train_args *o;
	struct arena *arena;
	struct diag *diag;
	struct loaded l;
	struct feed train, eval;
	bool has_eval;
	struct train_log log;
	int64_t batches, *order;
	struct checkpoint_place place;
};

static double learning_rate(const struct training *t, int64_t step)
{
	const struct train_args *o = t->o;
	double lr = isnan(o->lr) ? t->l.model->lr_default : o->lr;
	double total = (double)(o->epochs * t->batches), at = (double)step,
	       warmup = (double)o->warmup;
	if (at < warmup)
		return lr * (at + 1) / warmup;
	double share = total > warmup ? (at - warmup) / (total - warmup) : 0;
	if (!strcmp(o->schedule, "linear"))
		return lr * (1 - share);
	if (!strcmp(o->schedule, "cosine"))
		return lr * 0.5 * (1 + cos(3.14159265358979323846 * share));
	return lr;
}

static enum status save(struct training *t)
{
	char message[256];
	if (!t->o->folder)
		return ST_OK;
	if (checkpoint_save(t->o->folder, t->l.step, &t->place, message))
		return diag_fail(t->diag, ST_IO, NULL, NULL, "%s", message);
	return ST_OK;
}

static enum status feed(const struct training *t, int64_t batch)
{
	return feed_batch(&t->train, t->order + batch * t->train.batch, t->train.batch, t->diag);
}

/* While a GPU works, the epoch's next batch is made and sent. `first`: this one is not there yet.
 */
static enum status one_batch(struct training *t, bool first, double *loss)
{
	const double lr = learning_rate(t, t->place.step);
	enum status fed = ST_OK;
	if (first)
		TRY(feed(t, t->place.batch));
	int rc = t->l.train_start(t->l.step, lr);
	if (!rc && t->place.batch + 1 < t->batches)
		fed = feed(t, t->place.batch + 1);
	if (!rc)
		rc = t->l.train_finish(t->l.step);
	if (rc)
		return load_fail(&t->l, rc, "training", t->diag);
	*loss = t->l.loss(t->l.step);
	t->place.step++;
	t->place.batch++;
	train_log_step(&t->log, &t->place, lr, *loss);
	return fed;
}

static enum status stop_early(struct training *t)
{
	TRY(save(t));
	return diag_fail(t->diag, ST_INTERRUPTED, NULL, t->o->folder ? "go on with --resume" : NULL,
		"interrupted after step %" PRId64 " by %s%s", t->place.step, interrupt_name(),
		t->o->folder ? "; checkpoint saved" : "");
}

/* --precision fp16: the scale of the loss, and what it cost. */
static void report_scale(const struct loaded *l)
{
	const int i = load_find(l, "state/loss_scale", STINT_STATE);
	const float *state = i < 0 ? NULL : load_values(l, i); /* scale, updates since, skipped */
	if (!state)
		return;
	printf("  loss scale %g", (double)state[0]);
	if (state[2] > 0)
		printf(" (%g step%s skipped)", (double)state[2], state[2] > 1 ? "s" : "");
}

/* `mean_loss` NULL: resumed behind the epoch's last batch. */
static void report_epoch(
	const struct training *t, const double *mean_loss, double seconds, const struct score *s)
{
	printf("epoch %" PRId64 "/%lld", t->place.epoch + 1, t->o->epochs);
	if (mean_loss)
		printf("  loss %.4f", *mean_loss);
	if (s) {
		printf("  eval loss %.4f", s->loss);
		if (s->has_accuracy)
			printf("  accuracy %.2f %% of %" PRId64, 100 * s->accuracy, s->samples);
	}
	report_scale(&t->l);
	printf("  %.1f s\n", seconds);
	fflush(stdout);
}

static enum status one_epoch(struct training *t)
{
	struct progress bar;
	char label[64];
	double sum = 0, loss = 0;
	int64_t first = t->place.batch;
	snprintf(label, sizeof label, "epoch %" PRId64 "/%lld", t->place.epoch + 1, t->o->epochs);
	dataset_shuffle(t->order, t->train.samples, t->o->seed, t->place.epoch);
	progress_start(&bar, label, t->batches - first);
	while (t->place.batch < t->batches) {
		enum status st = one_batch(t, t->place.batch == first, &loss);
		if (st != ST_OK || interrupt_asked()) {
			progress_end(&bar);
			return st != ST_OK ? st : stop_early(t);
		}
		sum += loss;
		progress_step(&bar, loss);
	}
	progress_end(&bar);
	double seconds = progress_seconds(&bar);
	if (!isfinite(loss))
		diag_warn(t->diag, NULL, "lower the learning rate",
			"the loss is no longer a finite number");
	struct score score;
	if (t->has_eval) {
		TRY(evaluate(t->arena, &t->l, &t->eval, &score, t->diag));
		if (score.stopped)
			return stop_early(t);
		train_log_score(&t->log, &t->place, &score);
	}
	sum /= (double)(t->batches - first);
	report_epoch(t, first < t->batches ? &sum : NULL, seconds, t->has_eval ? &score : NULL);
	t->place.epoch++;
	t->place.batch = 0;
	return save(t);
}

/* A path as it is called from anywhere. */
static const char *whole_path(const struct training *t, const char *path)
{
	char *here = *path == '/' ? NULL : getcwd(NULL, 0);
	const char *whole = here ? arena_printf(t->arena, "%s/%s", here, path) : path;
	free(here);
	return whole ? whole : path;
}

/* A new run into an old run's folder would replace its checkpoints. */
static enum status refuse_used_folder(struct training *t)
{
	char path[512], message[256];
	if (checkpoint_newest(t->o->folder, path, message))
		return diag_fail(t->diag, ST_IO,
			&(struct where){.file = whole_path(t, t->o->folder)}, NULL, "%s", message);
	if (*path)
		return diag_fail(t->diag, ST_USAGE, &(struct where){.file = t->o->folder},
			"go on with --resume, or name another folder",
			"holds checkpoints of an earlier run");
	return ST_OK;
}

static enum status resume(struct training *t)
{
	char used[512], message[256];
	int found;
	if (!t->o->resume)
		return t->o->folder ? refuse_used_folder(t) : ST_OK;
	if (!t->o->folder)
		return diag_fail(
			t->diag, ST_USAGE, NULL, NULL, "--resume needs --checkpoint FOLDER");
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
	printf("resumed from %s: step %" PRId64 ", epoch %" PRId64 "\n", used, t->place.step,
		t->place.epoch + 1);
	return ST_OK;
}

/* What cannot be written is told before the first step, not after hours. */
static enum status try_files(struct training *t)
{
	char message[256];
	if (t->o->folder && t->place.epoch < t->o->epochs && checkpoint_try(t->o->folder, message))
		return diag_fail(t->diag, ST_IO,
			&(struct where){.file = whole_path(t, t->o->folder)}, NULL, "%s", message);
	const char *log = t->o->log ? whole_path(t, t->o->log) : NULL;
	return train_log_open(&t->log, log, t->o->resume, t->diag);
}

static enum status prepare(struct training *t)
{
	const struct train_args *o = t->o;
	TRY(load_open(t->arena, o->dir, &o->weights, &t->l, t->diag));
	if (!t->l.model->train)
		return diag_fail(t->diag, ST_USAGE, &(struct where){.file = o->dir},
			"compile with a loss and an optimizer", "was compiled with --loss none");
	TRY(feed_open(
		t->arena, &t->l, &o->input, o->target, o->scale, o->shift, &t->train, t->diag));
	t->has_eval = o->eval_input.n > 0 || o->eval_target;
	if (t->has_eval)
		TRY(feed_open(t->arena, &t->l, &o->eval_input, o->eval_target, o->scale, o->shift,
			&t->eval, t->diag));
	t->batches = t->train.n ? t->train.samples / t->train.batch : 0;
	if (t->batches == 0)
		return diag_fail(t->diag, ST_INVALID, NULL, "compile with a smaller --batch",
			"%" PRId64 " samples do not fill one batch of %" PRId64, t->train.samples,
			t->train.batch);
	t->order = ARENA_ARRAY(t->arena, int64_t, t->train.samples);
	if (!t->order)
		return diag_nomem(t->diag);
	t->place.seed = o->seed;
	t->l.seed(t->l.step, o->seed);
	TRY(resume(t));
	return try_files(t);
}

static enum status train(struct training *t)
{
	TRY(prepare(t));
	interrupt_listen();
	printf("training %s: %" PRId64 " samples in batches of %" PRId64, t->l.model->name,
		t->train.samples, t->train.batch);
	if (t->l.step->device)
		printf(", on a GPU\n");
	else
		printf(", %d thread%s\n", t->l.model->threads, t->l.model->threads == 1 ? "" : "s");
	fflush(stdout);
	while (t->place.epoch < t->o->epochs)
		TRY(one_epoch(t));
	return ST_OK;
}

static enum status check_args(const struct train_args *o, struct diag *d)
{
	if (o->epochs < 1 || o->epochs > 1000000000)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--epochs wants 1 or more");
	if (o->warmup < 0 || !isfinite(o->scale) || !isfinite(o->shift) || isinf(o->lr))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--warmup, --lr, --scale and --shift want finite numbers");
	if (strcmp(o->schedule, "constant") != 0 && strcmp(o->schedule, "linear") != 0 &&
		strcmp(o->schedule, "cosine") != 0)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--schedule is constant, linear or cosine, not '%s'", o->schedule);
	return ST_OK;
}

static enum status run(struct train_args *o, struct arena *a, struct diag *d)
{
	struct training t = {.o = o, .arena = a, .diag = d};
	if (!o->schedule)
		o->schedule = "constant";
	TRY(check_args(o, d));
	const enum status st = train_log_close(&t.log, train(&t));
	feed_close(&t.train);
	feed_close(&t.eval);
	load_close(&t.l);
	return st;
}

enum status cmd_train(int argc, const char **argv, struct diag *d)
{
	struct train_args o = {.epochs = 1, .lr = NAN, .scale = 1};
	struct arg_list list[2] = {0};
	char *text[6] = {NULL};
	struct poptOption table[] = {{"input", 0, POPT_ARG_STRING, NULL, 1,
					     "training data, .npy or IDX(.gz)", "[NAME=]FILE"},
		{"target", 0, POPT_ARG_STRING, &text[0], 0, "training targets", "FILE"},
		{"eval-input", 0, POPT_ARG_STRING, NULL, 2,
			"held-out data, evaluated after each epoch", "[NAME=]FILE"},
		{"eval-target", 0, POPT_ARG_STRING, &text[1], 0, "held-out targets", "FILE"},
		{"epochs", 0, POPT_ARG_LONGLONG, &o.epochs, 0, "(default 1)", "N"},
		{"lr", 0, POPT_ARG_DOUBLE, &o.lr, 0, "learning rate (default: the optimizer's)",
			"X"},
		{"schedule", 0, POPT_ARG_STRING, &text[2], 0, "constant, linear or cosine", "NAME"},
		{"warmup", 0, POPT_ARG_LONGLONG, &o.warmup, 0, "steps of rising learning rate",
			"N"},
		{"scale", 0, POPT_ARG_DOUBLE, &o.scale, 0, "real inputs are value * A + B", "A"},
		{"shift", 0, POPT_ARG_DOUBLE, &o.shift, 0, "see --scale", "B"},
		{"seed", 0, POPT_ARG_LONGLONG, &o.seed, 0, "of shuffling and dropout (default 0)",
			"N"},
		{"weights", 0, POPT_ARG_STRING, &text[5], 0, "start from these values",
			"FILE.safetensors"},
		WEIGHTS_OPTIONS(o.weights),
		{"checkpoint", 0, POPT_ARG_STRING, &text[3], 0,
			"save here after each epoch and when interrupted", "FOLDER"},
		{"resume", 0, POPT_ARG_NONE, &o.resume, 0, "go on from the newest checkpoint",
			NULL},
		{"log", 0, POPT_ARG_STRING, &text[4], 0, "one JSON object a step", "FILE.jsonl"},
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
		o.target = text[0];
		o.eval_target = text[1];
		o.schedule = text[2];
		o.folder = text[3];
		o.log = text[4];
		o.weights.path = text[5];
		st = run(&o, a, d);
	}
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		free(text[i]);
	arena_free(a);
	return st;
}
