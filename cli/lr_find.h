/* `stint train --lr-find`: steps at a rate that rises, to see where the loss falls. */
#ifndef STINT_CLI_LR_FIND_H
#define STINT_CLI_LR_FIND_H

#include "cli/training.h"

/* What does not go with it is ST_USAGE. */
enum status lr_find_check(const struct train_args *o, struct diag *d);
/* Up to LR_FIND_STEPS steps of t, prepared, at rates from 1e-7 to 10 (Smith, "Cyclical Learning
 * Rates for Training Neural Networks", WACV 2017, section 3.3; numbers as fastai's lr_find has
 * them: the losses' average of weight 0.98, no further where it is over four times the least).
 * Prints the rate where it falls fastest by the rate's logarithm, and a tenth of where it is least.
 * Nothing is saved. */
enum { LR_FIND_STEPS = 100 };
enum status lr_find(struct training *t);

#endif
