/* Counting right answers. */
#ifndef STINT_METRICS_H
#define STINT_METRICS_H

#include <stdint.h>

/* Logits [outer, classes, inner] against labels [outer, inner]: in how many places of the first
 * `valid` of `outer` the largest logit (the first of equals) is the label's. Places labelled
 * `ignore` are left out; *counted is how many were not. A class axis in last place has inner 1.
 */
int64_t metrics_correct_f32(const float *logits, int64_t classes, int64_t inner,
	const int64_t *label, int64_t valid, int64_t ignore, int64_t *counted);
int64_t metrics_correct_f64(const double *logits, int64_t classes, int64_t inner,
	const int64_t *label, int64_t valid, int64_t ignore, int64_t *counted);

#endif
