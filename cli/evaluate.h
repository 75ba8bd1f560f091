/* The evaluation plan over a whole data set: every sample counts, once. Several ranks take whole
 * batches each, and all have the result of one process. */
#ifndef STINT_CLI_EVALUATE_H
#define STINT_CLI_EVALUATE_H

#include "cli/feed.h"
#include "cli/ranks.h"
#include "cli/train_lengths.h"
#include "train/metrics.h"

/* A batch's part in the result. */
struct evaluation_score {
	double loss, weight;
	struct metric_sums sums;
};

struct evaluation {
	const struct loaded *l;
	const struct feed *f;
	const struct ranks *ranks;     /* NULL: this process is alone; set by the caller */
	const struct lengths *lengths; /* NULL: all batches take l's step; set by the caller */
	int64_t batches;
	struct evaluation_score *score; /* of each; zero of those that others do */
	struct metrics metrics;
	int output;      /* that is scored; -1: none */
	int64_t labels;  /* per sample, METRIC_CLASSES */
	int64_t *index;  /* [batch] */
	int64_t samples; /* of the last pass */
	double loss;     /* of the last pass */
	bool stopped;    /* by a signal (cli/interrupt.h), in any rank: the rest says nothing */
};

/* What the loss makes of the model's outputs: which one is compared with the target (e->output, -1:
 * none), as what, and with labels how many of a sample (e->labels). */
struct metric_task evaluation_task(const struct stint_model *m, struct evaluation *e);

/* `metric`: what --metric was given; none: the accuracy, where the loss takes labels. Memory is
 * taken here only. */
enum status evaluation_start(struct arena *a, const struct loaded *l, const struct feed *f,
	const struct arg_list *metric, struct evaluation *out, struct diag *d);
enum status evaluate(struct evaluation *e, struct diag *d);

/* A share is printed as "92.10 %", another number as "0.9210". */
void evaluation_print(const struct metrics *m, int i, char out[32]);

#endif
