/* What kernels take on this machine, measured once (`stint doctor --calibrate`), so that times told
 * to people are this machine's. Plans never depend on it: they are made of committed constants, or
 * of --costs. Kept where compiled kernels are (runtime/stint_cache.h), for this processor, library
 * and number of threads. */
#ifndef STINT_CLI_CALIBRATION_H
#define STINT_CLI_CALIBRATION_H

#include "planner/plan.h"
#include "planner/problem/costs.h"

/* Whether anything can be kept: ST_IO where not. To be asked before it is measured. */
enum status calibration_try(struct diag *d);
/* What was measured of c->threads threads. ST_IO where it cannot be kept. */
enum status calibration_keep(struct arena *a, struct costs *c, struct diag *d);
/* What a step of the plan takes here, in microseconds, with so many threads; negative: nothing was
 * measured, or the plan was not made of the constants for a processor. */
enum status calibration_us(struct arena *a, const struct problem *p, const struct plan *plan,
	int threads, double *us, struct diag *d);
/* A line of that to standard output, where there is something to say. */
enum status calibration_tell(struct arena *a, const struct problem *p, const struct plan *plan,
	int threads, struct diag *d);

#endif
