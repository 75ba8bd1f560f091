/* How stint computes a convolution in plain C, asked of ops/ for convolutions.c: which knows the
 * kernels' `struct window`, and not that of ops/. */
#ifndef STINT_BENCH_CONVOLUTION_JOBS_H
#define STINT_BENCH_CONVOLUTION_JOBS_H

#include "runtime/stint_call.h"

/* The kernel and its numbers: the window that it gets and the fields of `struct conv_shape`
 * (kernels/window.h). */
struct convolution_job {
	enum { BY_PRODUCTS, BY_DIRECT_LOOPS, BY_CHANNELS } kernel;
	int64_t kernels[3], stride[3], dilation[3], before[3], size[3], out[3];
	int64_t rows, columns, lines, turn, boxes;
	int64_t turns, bytes; /* of scratch, of each thread */
};
struct convolution_job convolution_job(const struct stint_lib_call *call, int threads);

#endif
