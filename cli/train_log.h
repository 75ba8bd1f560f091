/* --log: one JSON object a line, there when the next step begins (docs/reference/formats.md). */
#ifndef STINT_CLI_TRAIN_LOG_H
#define STINT_CLI_TRAIN_LOG_H

#include <stdio.h>

#include "cli/evaluate.h"
#include "runtime/checkpoint.h"

struct train_log {
	const char *path;
	FILE *file; /* NULL: no log is wanted */
	bool lost;  /* a line could not be written, and that was said */
	struct diag *diag;
};

/* Fails where it cannot be written to. `path` NULL: no log. */
enum status train_log_open(struct train_log *log, const char *path, bool append, struct diag *d);
/* A step's line; `at` counts it already. */
void train_log_step(
	struct train_log *log, const struct checkpoint_place *at, double lr, double loss);
void train_log_score(
	struct train_log *log, const struct checkpoint_place *at, const struct evaluation *e);
/* Fails where a line was lost, unless `st` is a failure already. */
enum status train_log_close(struct train_log *log, enum status st);

#endif
