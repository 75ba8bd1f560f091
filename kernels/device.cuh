/* SPDX-License-Identifier: MIT-0 */
/* What kernels.cu is written with, for NVRTC (--fmad=false --device-as-default-execution-space): it
 * includes nothing, and every function without a word on it is the device's. */
#ifndef STINT_KERNELS_DEVICE_CUH
#define STINT_KERNELS_DEVICE_CUH

/* As stdint.h has them where a `long` has 64 bits; there is no header to include. */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;

#ifndef INFINITY
#define INFINITY __int_as_float(0x7F800000)
#define NAN __int_as_float(0x7FC00000)
#endif
#ifndef INT32_MAX
#define INT32_MAX 0x7FFFFFFF
#endif
#ifndef INT64_MAX
#define INT64_MAX 0x7FFFFFFFFFFFFFFF
#define INT64_MIN (-INT64_MAX - 1)
#endif

typedef float real;

#define restrict __restrict__

/* A loop's turns, shared among all threads of a launch. */
#define THREAD (blockIdx.x * (int64_t)blockDim.x + threadIdx.x)
#define THREADS (gridDim.x * (int64_t)blockDim.x)
#define ONCE(i, value) for (int64_t i = (value), i##_once = 1; i##_once; i##_once = 0)
#define thread_index() ((int)threadIdx.x) /* in a launch of one block */
#ifndef NULL
#define NULL nullptr
#endif
#ifndef INT64_C
#define INT64_C(x) ((int64_t)(x))
#endif

/* Scratch bytes, as elements of the type that is asked for. */
struct scratch {
	void *at;
	template <class T> operator T *() const
	{
		return (T *)at;
	}
};

#endif
