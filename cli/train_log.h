/* --log: JSON lines, CSV or TensorBoard's event files; a line is there when the next step begins
 * (docs/reference/formats.md). */
#ifndef STINT_CLI_TRAIN_LOG_H
#define STINT_CLI_TRAIN_LOG_H

#include <stdio.h>

#include "cli/evaluate.h"
#include "runtime/checkpoint.h"

struct train_log {
	int n; /* 0: no log is wanted */
	struct log_sink *sink;
	const struct stint_model *m;
	const struct evaluation *e; /* NULL: nothing is held out */
	struct diag *diag;
};

/* What the logs that are asked for begin with. */
struct train_log_start {
	const struct arg_list *to; /* "FILE.jsonl", "FILE.csv", "tensorboard:DIR", "DIR/" */
	bool append;               /* what is there goes on, after `step` steps */
	int64_t step;
	const struct stint_model *m;
	const struct evaluation
		*e; /* whose metrics are logged, while the log is open; NULL: none */
};

/* Fails where one cannot be written to. */
enum status train_log_open(struct train_log *log, struct arena *a,
	const struct train_log_start *start, struct diag *d);
/* A step's line; `at` counts it already. `part`: of several losses each one. */
void train_log_step(struct train_log *log, const struct checkpoint_place *at, double lr,
	double loss, const double *part);
/* What was held out has been evaluated; `within` an epoch: no line of that follows. */
void train_log_score(struct train_log *log, const struct checkpoint_place *at, bool within);
/* The epoch is over, and took so long. */
void train_log_epoch(struct train_log *log, const struct checkpoint_place *at, double seconds,
	double data_seconds);
/* Fails where a line was lost, unless `st` is a failure already. */
enum status train_log_close(struct train_log *log, enum status st);

#endif
