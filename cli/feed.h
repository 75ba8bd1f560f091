/* Data files bound to a compiled model's inputs and target. */
#ifndef STINT_CLI_FEED_H
#define STINT_CLI_FEED_H

#include "api/load.h"
#include "cli/ahead.h"
#include "cli/args.h"
#include "cli/bad_samples.h"
#include "cli/data_options.h"
#include "data/shuffle.h"

enum { FEED_MAX = 32 };

/* What changes while data are read; the thread's while it reads. */
struct feed_tally {
	struct ahead *ahead;             /* NULL: none yet */
	unsigned char *staged[FEED_MAX]; /* where it reads to */
	double waited;                   /* seconds, the caller's */
	struct bad_samples bad;
	int64_t longest; /* tokens of the longest row that was fed last; INT64_MAX: not padded */
};

struct feed {
	const struct loaded *l;
	const struct data_options *o;
	int n;
	struct {
		int resident;
		struct dataset data;
		bool mapped; /* a real input */
		struct dataset_map map;
		/* Of a target: the first loss that compares with it; NULL: an input. And where it
		 * has labels, how many classes, and the label that counts nowhere; 0: it has none.
		 */
		const struct stint_loss_term *loss;
		int64_t classes, ignore;
	} bound[FEED_MAX];
	int64_t samples; /* in every file, or of those that --hold-out leaves this feed */
	int64_t batch;   /* samples of a step: the first axis of the model's inputs */
	/* Where these differ in it (a graph's nodes and edges, a sequence and a first state) a
	 * sample is all that one step takes: `batch` is 1, and each file holds as many rows of its
	 * input for every sample. */
	bool whole;
	int64_t rows;   /* of a sample, for the loss: 1, or the first axis of the largest target */
	int64_t *index; /* of rows in the files, of what is read */
	int target;     /* the first loss's, an index in bound, or -1 */
	int padded;     /* the index in bound of rows of tokens, and 1; 0: none */
	int64_t token;  /* that fills their ends */
	int64_t first, end; /* rows of a batch that this rank's shards have; end 0: all */
	struct shuffle order;
	struct shuffle drawn;     /* --hold-out: places of all samples in the files */
	int64_t from;             /* the first of them that is this feed's */
	int64_t *place, *swapped; /* a batch's */
	int64_t bad;              /* so many samples may be bad */
	/* Of each sample of a batch what is wrong with it, or "": it stays, of zeros. NULL: the
	 * next one in the files takes a bad one's place. */
	char (*why)[BAD_TEXT];
	struct feed_tally *tally;
};

/* Open the files of `inputs` and `targets` ("[NAME=]FILE": without a NAME they bind in the model's
 * order, or the losses'). Shapes and types must fit, axis 0 counting samples (a file may hold
 * any number of them); labels must be in range. */
enum status feed_open(struct arena *a, const struct loaded *l, const struct arg_list *inputs,
	const struct arg_list *targets, const struct data_options *o, struct feed *out,
	struct diag *d);
void feed_close(struct feed *f);
/* Warns where the last samples of an evaluation do not fill its batch, in which `what` depends on
 * others: `why`. NULL: it does not. */
void feed_tell_filled(const struct feed *f, const char *what, const char *why, struct diag *d);
/* Fails where the files hold none. */
enum status feed_wants_samples(const struct feed *f, struct diag *d);

/* Samples index[0..n), n ≤ batch, into the arena; missing rows repeat the last one. */
enum status feed_batch(const struct feed *f, const int64_t *index, int64_t n, struct diag *d);
/* Input `bound` of bound[] is rows of tokens, [N, T], whose ends are filled with `token`. */
void feed_pad(struct feed *f, int bound, int64_t token);
/* Of inputs whose rows shards alone want (stint_tensor.by_shards), feed_batch reads those of rank
 * `rank` of n from now on, or with n 1 all. With --skip-bad all of them, always: who does not read
 * a sample does not find out that another takes its place. */
void feed_share(struct feed *f, int rank, int n);
/* Read this batch while something else is done; feed_batch of it then finds it, and of any other
 * forgets it. `f` stays where it is until feed_close. */
void feed_ahead(struct feed *f, const int64_t *index, int64_t n);
/* Seconds that feed_batch has taken since this was last asked. */
double feed_waited(const struct feed *f);
/* --skip-bad: warnings, where there were bad samples. */
void feed_tell_skipped(const struct feed *f, struct diag *d);
/* Of data that ranks share, by all of them at once, when each has read its part: bad samples of all
 * are known to all, and may be too many together. */
enum status feed_join_skipped(struct arena *a, const struct feed *f, struct ranks *r,
	const struct loaded *l, struct diag *d);

/* Shuffle for an epoch; then the samples of its batch, until it is called again. */
enum status feed_epoch(struct feed *f, int64_t seed, int64_t epoch, struct diag *d);
const int64_t *feed_place(const struct feed *f, int64_t batch);
/* How many samples that one has: all of a batch, but for an incomplete last one. */
int64_t feed_size(const struct feed *f, int64_t batch);

static inline const struct stint_tensor *feed_tensor(const struct feed *f, int i)
{
	return &f->l->model->resident[f->bound[i].resident];
}

/* A scalar belongs to no sample: its file holds the one number that every step takes. */
static inline bool feed_is_scalar(const struct feed *f, int i)
{
	return feed_tensor(f, i)->rank == 0;
}

/* Samples that an evaluation takes: of a batch in micro-batches the first part. */
int64_t feed_evaluated(const struct feed *f);

/* A loss's target holds labels of classes. */
bool feed_has_labels(const struct stint_model *m, const struct stint_loss_term *loss);
/* The output whose classes these labels number; NULL: not known. */
const struct stint_output *feed_scored_output(
	const struct stint_model *m, const struct stint_loss_term *loss);
/* Fails where an evaluation computes the loss alone (compile --no-outputs): `what` wants outputs.
 */
enum status feed_wants_outputs(const struct loaded *l, const char *what, struct diag *d);
/* A loss is a sum over the batch's samples. */
bool feed_sums_loss(const struct stint_loss_term *loss);
/* A number of a loss's option ("ignore_index"), or `def`. */
double feed_loss_option(const struct stint_loss_term *loss, const char *name, double def);

#endif
