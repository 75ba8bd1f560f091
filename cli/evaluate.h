/* The evaluation plan over a whole data set: every sample counts. */
#ifndef STINT_CLI_EVALUATE_H
#define STINT_CLI_EVALUATE_H

#include "cli/feed.h"

struct score {
	int64_t samples;
	double loss;
	bool has_accuracy; /* cross-entropy */
	double accuracy;   /* share of labels that count, 0 to 1 */
	bool stopped;      /* by a signal (cli/interrupt.h): the rest says nothing */
};

enum status evaluate(struct arena *a, const struct loaded *l, const struct feed *f,
	struct score *out, struct diag *d);

#endif
