/* What this machine can do, measured in about a second: the roofline that kernels are held
 * against. */
#ifndef STINT_CLI_ROOF_H
#define STINT_CLI_ROOF_H

#include "base/base.h"

enum { ROOF_LEVELS = 4 };

struct roof {
	int threads;
	double flops_us; /* floating-point operations a microsecond, of the model's real type */
	/* Bytes a microsecond that pass through a working set of so many bytes, by rising size; the
	 * last is far from any cache. */
	struct roof_level {
		double bytes, bytes_us;
	} level[ROOF_LEVELS];
};

/* Peak: chains of fused multiply-adds in registers, with the widest vectors that the processor has.
 * Bandwidth: STREAM's triad, a = b + s c, of which each thread has a part. The best of several
 * short runs each. ST_INTERNAL when out of
 * memory. */
enum status roof_measure(int threads, bool real_is_double, struct roof *out, struct diag *d);

/* Bandwidth for a working set of so many bytes: between two levels, by its logarithm. */
double roof_bandwidth(const struct roof *r, double bytes);
/* The least time, in microseconds, for so much work on so many bytes. */
double roof_us(const struct roof *r, double flops, double bytes);

#endif
