/* A number that is looked at after each epoch: the best so far, and since when it has not been
 * better. */
#ifndef STINT_TRAIN_IMPROVEMENT_H
#define STINT_TRAIN_IMPROVEMENT_H

#include "base/base.h"

struct improvement {
	bool falls;    /* less is better */
	double best;   /* NAN: none yet */
	int64_t since; /* epochs without a better one */
};

/* Whether it is the best so far: what is not a number never is. */
bool improvement_told(struct improvement *i, double value);

#endif
