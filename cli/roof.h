/* What this machine or device can do, measured in about a second: the roofline that kernels are
 * held against. */
#ifndef STINT_CLI_ROOF_H
#define STINT_CLI_ROOF_H

#include "api/load.h"

enum { ROOF_LEVELS = 4 };

struct roof {
	int threads;       /* 0: of a device */
	char device[192];  /* "": the machine's processor */
	long long product; /* of a device: rows and columns of the matrices */
	double flops_us; /* floating-point operations a microsecond, of the model's real type; of a
			    device: in the step's precision */
	int nlevel;
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

/* The same of the device that l's step is on: cuBLASLt's products, and copies. */
enum status roof_device(const struct loaded *l, struct roof *out, struct diag *d);

/* Bandwidth for a working set of so many bytes: between two levels, by its logarithm. */
double roof_bandwidth(const struct roof *r, double bytes);
/* The least time, in microseconds, for so much work on so many bytes. */
double roof_us(const struct roof *r, double flops, double bytes);

/* The bandwidths, level by level: behind the facts of the machine; to standard output, a member of
 * its object. */
void roof_bandwidths(const struct roof *r, struct text *t);
void roof_bandwidths_json(const struct roof *r);

#endif
