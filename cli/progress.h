/* Progress of long work: a bar on a terminal, a plain line now and then elsewhere. On stderr. */
#ifndef STINT_CLI_PROGRESS_H
#define STINT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct progress {
	const char *label; /* "epoch 1/3" */
	int64_t total, done, reported;
	bool terminal;
	struct timespec start, shown;
};

void progress_start(struct progress *p, const char *label, int64_t total);
/* One more done; `loss` is shown beside it. */
void progress_step(struct progress *p, double loss);
/* Clears the bar. */
void progress_end(struct progress *p);
double progress_seconds(const struct progress *p);

#endif
