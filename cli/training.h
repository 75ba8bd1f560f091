/* Training a compiled model: what `stint train` has prepared, and the walk over it. */
#ifndef STINT_CLI_TRAINING_H
#define STINT_CLI_TRAINING_H

#include "api/weights.h"
#include "cli/chart.h"
#include "cli/evaluate.h"
#include "cli/follow.h"
#include "cli/pace.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/swa.h"
#include "cli/train_lengths.h"
#include "cli/train_log.h"
#include "cli/watch.h"

#define HELD_OUT_HINT "--eval-input and --eval-target, or --hold-out 10%"

struct train_args {
	const char *dir, *schedule, *folder, *keep_best, *swa_lr, *last, *reduce, *pad, *save_every,
		*max_time;
	struct weights weights;
	struct arg_list input, target, eval_input, eval_target, metric, log;
	long long epochs, warmup, seed, keep, early_stop, eval_every, swa_start, check_ranks, ranks,
		restart;
	double rank_timeout;
	struct data_options data;
	double lr; /* NAN: the optimizer's, as compiled */
	int json, resume, anew, no_save, keep_going, check_finite, lr_find;
};

struct training {
	const struct train_args *o;
	struct arena *arena;
	struct diag *diag;
	struct loaded l;
	struct ranks ranks;
	struct data_options data; /* o->data, and the classes' names */
	struct data_options held; /* of held-out data: nothing is drawn */
	struct feed train, eval;
	struct lengths lengths;
	bool has_eval;
	struct evaluation evaluation; /* where there is */
	struct follow follow;
	struct train_log log;
	int64_t batches;
	struct checkpoint_place place;
	double mean;              /* the loss over the last epoch; NAN: none */
	double *part, *part_mean; /* of several losses each one: of the last step, over the epoch */
	bool best;                /* --keep-best: the epoch that ends is */
	struct progress bar;
	struct chart_curve losses, held_out; /* drawn at the end */
	struct watch watch;
	struct swa swa;
	struct pace save_every, max_time;
	double began, saved;    /* clock_seconds: this run, and its last checkpoint */
	bool over;              /* --max-time: it is */
	char good[512];         /* the last good checkpoint; "": none yet */
	int64_t odd, first_odd; /* losses of the epoch that were not finite, and the first's step */
};

/* Values that are not finite, here or in another rank. */
enum status training_lost(const struct training *t, struct finite_lost *lost);
/* The samples of the epoch's batch of this number to the step; and the next run of `step`, the one
 * that takes them, takes so many. */
enum status training_feed(struct training *t, int64_t batch);
enum status training_rows(struct training *t, const struct loaded *step, int64_t batch);

/* Epoch by epoch from t->place to the end, with a checkpoint after each and where a signal ends it
 * (ST_INTERRUPTED), and none of values that are not finite: with those, or a loss that is not,
 * training has diverged (ST_DIVERGED). */
enum status training_run(struct training *t);

#endif
