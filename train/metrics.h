/* How good a model's answers are, over a whole data set: torchmetrics' definitions. Counts are
 * integers, sums doubles, a batch's in the order of its samples and then the batches' in theirs:
 * the same set gives the same bits, whoever has added which batch.
 *
 *	metrics_parse(a, text, n, &m, d);       // "accuracy", "top-k:k=5", ...
 *	metrics_start(a, &m, &task, d);         // what is scored: memory is taken here only
 *	metrics_clear(&m);                      // before each pass
 *	metrics_add(&m, scores, target, rows);  // a batch
 *	metrics_value(&m, i);
 */
#ifndef STINT_TRAIN_METRICS_H
#define STINT_TRAIN_METRICS_H

#include "base/base.h"

enum { METRICS_MAX = 16 };

enum metric_which {
	METRIC_ACCURACY,
	METRIC_TOP_K,
	METRIC_PRECISION,
	METRIC_RECALL,
	METRIC_F1,
	METRIC_IOU,
	METRIC_PERPLEXITY,
	METRIC_AUC,
	METRIC_CONFUSION,
	METRIC_MAE,
	METRIC_RMSE
};

enum metric_average { METRIC_MACRO, METRIC_MICRO, METRIC_WEIGHTED };

enum metric_task_kind {
	METRIC_NOTHING, /* there is nothing to compare with */
	METRIC_CLASSES, /* scores of classes, [rows, classes, inner], against labels [rows, inner]
			 */
	METRIC_BINARY,  /* scores against targets of 0 and 1, element by element */
	METRIC_VALUES   /* numbers against numbers, element by element */
};

struct metric_task {
	enum metric_task_kind kind;
	int64_t classes, inner; /* of METRIC_CLASSES; `inner` is a row's elements otherwise */
	int64_t ignore;         /* this label counts nowhere */
	bool logits;            /* METRIC_BINARY: positive means yes; else more than 0.5 does */
	bool wide, wide_target; /* scores, targets are doubles; labels are int64 always */
	int64_t rows;           /* of the whole set */
};

struct metric {
	const char *label;  /* as it is printed and logged: "accuracy", "top-5" */
	const char *text;   /* as it was asked for */
	const char *output; /* of the model, that it is of: for the caller; NULL: not said */
	enum metric_which which;
	enum metric_average average;
	int64_t k;          /* top-k; right answers so far in `right` */
	int64_t thresholds; /* AUC: 0 is exact */
	int64_t right;
};

struct metric_curve; /* what an AUC is made of (train/auc.h) */

struct metric_sums {
	double log_loss, absolute, square;
};

/* Several processes that add batches of one set each, and bring together what they have. */
struct metric_join {
	void *user;
	/* Each of the n numbers becomes its sum over all processes. */
	enum status (*counts)(void *user, int64_t *x, int64_t n, struct diag *d);
	/* Each byte is zero in all processes but one; then all have it. */
	enum status (*places)(void *user, void *data, int64_t bytes, struct diag *d);
};

struct metrics {
	int n;
	struct metric item[METRICS_MAX];
	struct metric_task task;
	int64_t counted;            /* elements that count so far */
	int64_t right;              /* the largest score is the label's */
	int64_t *hit, *said, *were; /* per class: rightly, said to be it, it; NULL: not needed */
	int64_t *confusion;         /* [were][said]; NULL: not needed */
	double *row;                /* a row of scores */
	struct metric_sums sums;    /* of the batches' sums, in their order */
	struct metric_sums batch;   /* the last one's */
	bool not_binary;            /* a target was neither 0 nor 1 */
	struct metric_curve *curve[METRICS_MAX];
};

/* "NAME[:OPTION=VALUE,...]", n of them. */
enum status metrics_parse(
	struct arena *a, const char *const *text, int n, struct metrics *out, struct diag *d);
bool metric_suits(const struct metric *m, const struct metric_task *task);
/* Fails where one does not suit the task. */
enum status metrics_start(
	struct arena *a, struct metrics *m, const struct metric_task *task, struct diag *d);
void metrics_clear(struct metrics *m);
/* The first `rows` of a batch. */
void metrics_add(struct metrics *m, const void *scores, const void *target, int64_t rows);
/* These rows, which come next, are another process's to add. */
void metrics_pass_over(struct metrics *m, int64_t rows);
/* When each process has added its batches: all have what one alone would have, except `sums`, which
 * the caller adds again from all batches' in their order (metrics_add_sums from zero). */
enum status metrics_join(struct metrics *m, const struct metric_join *join, struct diag *d);
void metrics_add_sums(struct metric_sums *to, const struct metric_sums *batch);
/* NAN of a confusion matrix, which is no single number. */
double metrics_value(const struct metrics *m, int i);
/* Of one class; requires metrics_per_class. */
bool metrics_per_class(const struct metrics *m, int i);
double metrics_class_value(const struct metrics *m, int i, int64_t c);
int64_t metrics_classes(const struct metrics *m);
/* Less is better. */
bool metric_falls(const struct metric *m);
/* By label or text, or -1. */
int metrics_find(const struct metrics *m, const char *name);

#endif
