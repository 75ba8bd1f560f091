/* The evaluation plan over a whole data set: every sample counts, once. Several ranks take whole
 * batches each, and all have the result of one process. */
#ifndef STINT_CLI_EVALUATE_H
#define STINT_CLI_EVALUATE_H

#include "cli/feed.h"
#include "cli/ranks.h"
#include "cli/train_lengths.h"
#include "train/metrics.h"

/* A batch's part in the result, of one loss. */
struct evaluation_score {
	double loss, weight;
	struct metric_sums sums;
};

/* What one of the losses compares, and what is made of that. */
struct scored {
	int output;     /* that it scores; -1: none */
	int64_t labels; /* per sample, METRIC_CLASSES */
	struct metrics metrics;
	double loss; /* of the last pass: before its weight, where there are several */
};

/* A metric that was asked for: the item-th of a loss's. */
struct evaluation_metric {
	int loss, item;
};

struct evaluation {
	const struct loaded *l;
	const struct feed *f;
	const struct ranks *ranks;     /* NULL: this process is alone; set by the caller */
	const struct lengths *lengths; /* NULL: all batches take l's step; set by the caller */
	int64_t batches;
	int n; /* losses */
	struct scored *scored;
	int *output; /* each one's */
	/* Of each batch and, in it, each loss; zero of those that others do. */
	struct evaluation_score *score;
	int nmetric;
	struct evaluation_metric metric[METRICS_MAX];
	int64_t *index;  /* [batch] */
	int64_t samples; /* of the last pass */
	double loss;     /* of the last pass: the sum of all, each times its weight */
	bool stopped;    /* by a signal (cli/interrupt.h), in any rank: the rest says nothing */
};

/* What a loss makes of the model's outputs: which one is compared with its target (s->output, -1:
 * none), as what, and with labels how many of a sample (s->labels). */
struct metric_task evaluation_task(
	const struct stint_model *m, const struct stint_loss_term *loss, struct scored *s);

/* `metric`: what --metric was given, each of the output that it names, or of the first loss's that
 * it suits; none: the accuracy of each output whose loss takes labels. Memory is taken here only.
 */
enum status evaluation_start(struct arena *a, const struct loaded *l, const struct feed *f,
	const struct arg_list *metric, struct evaluation *out, struct diag *d);
enum status evaluate(struct evaluation *e, struct diag *d);

/* The i-th metric and its value; a confusion matrix has none. */
const struct metric *evaluation_metric(const struct evaluation *e, int i);
double evaluation_value(const struct evaluation *e, int i);
/* By label or text, or -1. */
int evaluation_find(const struct evaluation *e, const char *name);
/* A share is printed as "92.10 %", another number as "0.9210". */
void evaluation_print(const struct evaluation *e, int i, char out[32]);

#endif
