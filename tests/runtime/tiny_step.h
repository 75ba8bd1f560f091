/* A step written by hand, as small as a model can be: y = w * x, loss = (y - target)^2 / 2 and
 * plain gradient descent with a count of updates as its state. */
#ifndef STINT_TEST_TINY_STEP_H
#define STINT_TEST_TINY_STEP_H

#include "runtime/stint_rt_device.h"

extern const struct stint_model tiny_model;
/* The same in double precision, and one that wants another machine. */
extern const struct stint_model tiny_model_double, tiny_model_elsewhere, tiny_model_forward;
/* The learning rate, control and thread count that the last step saw: behind the arena's residents
 * at this offset, int64_t seed, count, valid, zero, threads. */
enum { TINY_SEEN = 512 };

#endif
