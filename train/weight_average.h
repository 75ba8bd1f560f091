/* Stochastic weight averaging, by the formulas of torch.optim.swa_utils: the equal average of what
 * the parameters were after each epoch (AveragedModel with get_swa_avg_fn), and the learning rate
 * meanwhile (SWALR). */
#ifndef STINT_TRAIN_WEIGHT_AVERAGE_H
#define STINT_TRAIN_WEIGHT_AVERAGE_H

#include "base/base.h"

struct swa_rate {
	double lr;             /* NAN: the schedule's goes on */
	int64_t anneal_epochs; /* over which it comes to that */
	bool straight;         /* anneal_strategy=linear; else cos */
};

/* "0.05", "0.05:anneal_epochs=10,anneal_strategy=cos"; NULL: none. */
enum status swa_rate_parse(struct arena *a, const char *text, struct swa_rate *out, struct diag *d);
/* The rate after `epochs` averaged ones, `before` being the one that the schedule came to. */
double swa_rate_at(const struct swa_rate *r, double before, int64_t epochs);

/* One more into the mean of `count` so far: n numbers each, in their own precision. */
void swa_add_floats(float *mean, const float *x, size_t n, int64_t count);
void swa_add_doubles(double *mean, const double *x, size_t n, int64_t count);

#endif
