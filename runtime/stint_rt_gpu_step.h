/* SPDX-License-Identifier: MIT-0 */
/* Inside a step on a GPU: what generated code, the runtime and `stint bench` know of it. A program
 * that uses such steps needs nothing of it. */
#ifndef STINT_RT_GPU_STEP_H
#define STINT_RT_GPU_STEP_H

#include "stint_schedule.h"

/* Where an input that is set for the next step waits while one is running. */
struct stint_next {
	int resident;
	size_t offset;
};

/* A kernel of a GPU's step: its name in kernels.cu, how many blocks of how many threads are
 * launched, and how many arguments it takes. */
struct stint_kernel {
	const char *name;
	int blocks, threads, args;
};

struct stint_gpu_model {
	const struct stint_kernel *kernel; /* ended by a NULL name */
	const char *kernels_text;          /* kernels.cu, where there are any */
	const struct stint_next *next;     /* inputs, ended by resident -1 */
	int tf32;          /* library calls may round single-precision operands to tf32 */
	int strict;        /* convolutions may not go Winograd's or Fourier's way */
	size_t host_bytes; /* page-locked, that the step keeps tensors in; 0: none */
	int ncopy;         /* copies to there and back, in training */
};

/* What a device's memory holds. */
struct stint_device_memory {
	int nitem; /* besides the arena, by what took it (stint_gpu.h, stint_gpu_memory) */
	struct stint_device_item {
		const char *what;
		int64_t bytes;
		double ms;
	} item[16];
	int64_t used, total; /* of the device, by all programs */
};

/* What a device is and does at its best, measured: rates a microsecond. */
struct stint_device_peaks {
	char name[192];
	int64_t product; /* floating-point operations of products of so many rows and columns, in
			    the step's precision */
	double flops_us;
	struct stint_device_level {
		double bytes, bytes_us; /* read and written by copies, over so many in all */
	} level[2];                     /* in the device's cache, in its memory */
};

/* For generated code: put a launch of kernel number `kernel` behind what is already to be
 * done there; args: pointers to its arguments. */
int stint_launch(stint_step *s, int kernel, void **args);

#endif
