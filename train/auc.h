/* The area under the ROC curve of scores, one class against the rest. */
#ifndef STINT_TRAIN_AUC_H
#define STINT_TRAIN_AUC_H

#include "train/metrics.h"

/* Exact curves keep every score, up to so many; beyond that, and where they are asked for, scores
 * are counted between equally spaced thresholds. */
enum { AUC_SCORES = 1 << 26, AUC_THRESHOLDS = 1000 };

/* For `most` elements of `classes` scores; thresholds 0: exact. NULL: no memory. */
struct metric_curve *auc_new(struct arena *a, int64_t classes, int64_t most, int64_t thresholds);
void auc_clear(struct metric_curve *c);
/* An element's scores, [classes] from 0 to 1 (exact: of any size), and which class it is; of one
 * class: 1 where it is. */
void auc_add(struct metric_curve *c, const double *score, int64_t label);
/* Several processes: these many elements are another one's; what all have added
 * (train/metrics.h). */
void auc_pass_over(struct metric_curve *c, int64_t elements);
enum status auc_join(struct metric_curve *c, const struct metric_join *join, struct diag *d);
/* 0 where a class, or what is not it, does not occur, as in torchmetrics. */
double auc_value(const struct metric_curve *c, int64_t which);

#endif
