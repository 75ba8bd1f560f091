/* What the parts of the device test share (device.c). */
#ifndef TESTS_GPU_DEVICE_H
#define TESTS_GPU_DEVICE_H

#include "runtime/stint_gpu.h"

enum { MIB = 1 << 20 };

struct device {
	stint_gpu *g;
	stint_gpu_ptr arena;
	size_t arena_bytes;
	struct stint_gpu_kernel axpy, reverse;
	int quick, wrong;
};

/* Prints and counts what is wrong. */
void device_wrong(struct device *t, const char *what);
/* A call that has to succeed; 0: it did. */
int device_tried(struct device *t, int rc, const char *what);
/* Small integers over 8: products and their sums are exact in fp32, in tf32 and in bf16. */
void device_random(float *x, size_t n, uint32_t seed);
/* n floats to or from the device, where they are of `type`. 0: done. */
int device_transfer(struct device *t, int to_device, enum stint_gpu_type type, stint_gpu_ptr at,
	float *x, size_t n);

/* Products (device_products.c) and convolutions (device_convolutions.c) against plain loops. */
void device_products(struct device *t);
void device_convolutions(struct device *t);

#endif
