/* CUDA's language for a C++ compiler on a CPU: what header-free kernel text may use, and no more.
 * It comes before the text. A float atomicAdd, the fast intrinsics (__expf ...) and warp-level
 * functions without a mask are left out on purpose: their results are not the same each time or
 * everywhere. */
#ifndef STINT_SHIM_DEVICE_H
#define STINT_SHIM_DEVICE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <utility>

#include "tests/gpu/shim/hooks.h"

#define STINT_SHIM 1
#define SHIM_UNTRACED __attribute__((no_sanitize("thread", "address")))
#define SHIM_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* --- The language --- */

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __constant__ static const
#define __shared__ static __attribute__((section(".shim_shared")))
#define DYNAMIC_SHARED(type, name)                                                                 \
	type *const name = static_cast<type *>(shim_hooks.dynamic(shim_hooks.shim))

#define threadIdx (shim_here.thread)
#define blockIdx (shim_here.block)
#define blockDim (shim_here.block_size)
#define gridDim (shim_here.grid_size)
enum { warpSize = 32 };

#define SHIM_VECTOR2(type, of, align)                                                              \
	struct alignas(align) type {                                                               \
		of x, y;                                                                           \
	};                                                                                         \
	static inline type make_##type(of x, of y)                                                 \
	{                                                                                          \
		return {x, y};                                                                     \
	}
#define SHIM_VECTOR4(type, of, align)                                                              \
	struct alignas(align) type {                                                               \
		of x, y, z, w;                                                                     \
	};                                                                                         \
	static inline type make_##type(of x, of y, of z, of w)                                     \
	{                                                                                          \
		return {x, y, z, w};                                                               \
	}
SHIM_VECTOR2(float2, float, 8)
SHIM_VECTOR2(int2, int, 8)
SHIM_VECTOR2(uint2, unsigned, 8)
SHIM_VECTOR2(ushort2, unsigned short, 4)
SHIM_VECTOR2(double2, double, 16)
SHIM_VECTOR4(float4, float, 16)
SHIM_VECTOR4(int4, int, 16)
SHIM_VECTOR4(uint4, unsigned, 16)
SHIM_VECTOR4(ushort4, unsigned short, 8)
SHIM_VECTOR4(uchar4, unsigned char, 4)

/* --- Arithmetic --- */

template <class T> static inline T shim_bits(auto x)
{
	static_assert(sizeof(T) == sizeof x);
	T y;
	__builtin_memcpy(&y, &x, sizeof y);
	return y;
}
static inline int __float_as_int(float x)
{
	return shim_bits<int>(x);
}
static inline unsigned __float_as_uint(float x)
{
	return shim_bits<unsigned>(x);
}
static inline float __int_as_float(int x)
{
	return shim_bits<float>(x);
}
static inline float __uint_as_float(unsigned x)
{
	return shim_bits<float>(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
	return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
static inline int __popc(unsigned x)
{
	return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
	return __builtin_ffs(x);
}
static inline int __clz(int x)
{
	return x ? __builtin_clz(static_cast<unsigned>(x)) : 32;
}
static inline float __fadd_rn(float a, float b)
{
	return a + b;
}
static inline float __fsub_rn(float a, float b)
{
	return a - b;
}
static inline float __fmul_rn(float a, float b)
{
	return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
	return a / b;
}
static inline float __fsqrt_rn(float a)
{
	return sqrtf(a);
}
static inline float __fmaf_rn(float a, float b, float c)
{
	return fmaf(a, b, c);
}
static inline float rsqrtf(float x)
{
	return 1 / sqrtf(x);
}
#define SHIM_MIN_MAX(type)                                                                         \
	static inline type min(type a, type b)                                                     \
	{                                                                                          \
		return b < a ? b : a;                                                              \
	}                                                                                          \
	static inline type max(type a, type b)                                                     \
	{                                                                                          \
		return a < b ? b : a;                                                              \
	}
SHIM_MIN_MAX(int)
SHIM_MIN_MAX(unsigned)
SHIM_MIN_MAX(long)
SHIM_MIN_MAX(unsigned long)
template <class T> static inline T __ldg(const T *p)
{
	return *p;
}

/* --- Threads together --- */

/* Warp-level functions are one template each: what a lane brings and takes stands in a struct that
 * the last lane to arrive reads and fills for all. */
template <class T> struct shim_shuffle {
	T value, result;
	int from; /* the lane whose value it takes; -1: not in the warp's part */
	unsigned mask;
	shim_site at;
};
template <class T> SHIM_UNTRACED void shim_shuffle_all(void *const *io, unsigned mask)
{
	for (int lane = 0; lane < 32; lane++) {
		if (!(mask >> lane & 1))
			continue;
		shim_shuffle<T> *to = static_cast<shim_shuffle<T> *>(io[lane]);
		if (!(mask >> to->from & 1))
			shim_hooks.fault(shim_hooks.shim, to->at,
				"shuffle: lane %d takes the value of lane %d, which is not in mask "
				"0x%08x",
				lane, to->from, mask);
		to->result = static_cast<shim_shuffle<T> *>(io[to->from])->value;
	}
}
SHIM_UNTRACED static inline int shim_lane()
{
	const shim_index t = shim_here.thread, n = shim_here.block_size;
	return static_cast<int>((t.x + n.x * (t.y + n.y * t.z)) % 32);
}
template <class T>
SHIM_UNTRACED T shim_take(const char *what, unsigned mask, T value, int from, shim_site at)
{
	shim_shuffle<T> s = {value, value, from, mask, at};
	shim_hooks.meet(shim_hooks.shim, what, mask, 0, &s, shim_shuffle_all<T>, at);
	return s.result;
}
/* Of `width` lanes each: CUDA C++ Programming Guide, "Warp Shuffle Functions". */
template <class T> T __shfl_sync(unsigned mask, T v, int from, int width = 32, SHIM_SITE)
{
	const int lane = shim_lane(), first = lane & -width;
	return shim_take("__shfl_sync", mask, v, first + (from & (width - 1)), {file, line});
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, SHIM_SITE)
{
	const int lane = shim_lane(), from = lane - static_cast<int>(by);
	return shim_take(
		"__shfl_up_sync", mask, v, from < (lane & -width) ? lane : from, {file, line});
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, SHIM_SITE)
{
	const int lane = shim_lane(), from = lane + static_cast<int>(by);
	return shim_take("__shfl_down_sync", mask, v, from >= (lane & -width) + width ? lane : from,
		{file, line});
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32, SHIM_SITE)
{
	const int lane = shim_lane(), from = lane ^ with;
	return shim_take("__shfl_xor_sync", mask, v, from >= (lane & -width) + width ? lane : from,
		{file, line});
}

struct shim_vote {
	int value;
	unsigned ballot, mask;
};
SHIM_UNTRACED static inline void shim_vote_all(void *const *io, unsigned mask)
{
	unsigned ballot = 0;
	for (int lane = 0; lane < 32; lane++)
		if (mask >> lane & 1 && static_cast<shim_vote *>(io[lane])->value)
			ballot |= 1u << lane;
	for (int lane = 0; lane < 32; lane++)
		if (mask >> lane & 1)
			static_cast<shim_vote *>(io[lane])->ballot = ballot;
}
SHIM_UNTRACED static inline unsigned __ballot_sync(unsigned mask, int value, SHIM_SITE)
{
	shim_vote v = {value, 0, mask};
	shim_hooks.meet(shim_hooks.shim, "__ballot_sync", mask, 0, &v, shim_vote_all, {file, line});
	return v.ballot;
}
SHIM_UNTRACED static inline int __any_sync(unsigned mask, int value, SHIM_SITE)
{
	return __ballot_sync(mask, value, file, line) != 0;
}
SHIM_UNTRACED static inline int __all_sync(unsigned mask, int value, SHIM_SITE)
{
	return __ballot_sync(mask, value, file, line) == mask;
}
static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, SHIM_SITE)
{
	shim_hooks.meet(shim_hooks.shim, "__syncwarp", mask, 1, nullptr, nullptr, {file, line});
}
static inline void __syncthreads(SHIM_SITE)
{
	shim_hooks.barrier(shim_hooks.shim, SHIM_PLAIN, 0, {file, line});
}
static inline int __syncthreads_count(int value, SHIM_SITE)
{
	return shim_hooks.barrier(shim_hooks.shim, SHIM_COUNT, value, {file, line});
}
static inline int __syncthreads_or(int value, SHIM_SITE)
{
	return shim_hooks.barrier(shim_hooks.shim, SHIM_OR, value, {file, line});
}
static inline int __syncthreads_and(int value, SHIM_SITE)
{
	return shim_hooks.barrier(shim_hooks.shim, SHIM_AND, value, {file, line});
}
static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
[[noreturn]] static inline void __trap(SHIM_SITE)
{
	shim_hooks.fault(shim_hooks.shim, {file, line}, "__trap()");
	__builtin_unreachable();
}

/* Whole numbers only: their order does not show. */
template <class T> SHIM_UNTRACED T shim_atomic(T *at, T value, const void *pc)
{
	const T old = *at;
	if (shim_checked)
		shim_hooks.access(shim_hooks.shim, at, sizeof *at, SHIM_ATOMIC, pc);
	*at = value;
	return old;
}
#define SHIM_ATOMICS(T)                                                                            \
	SHIM_UNTRACED static inline T atomicAdd(T *p, T v)                                         \
	{                                                                                          \
		return shim_atomic(p, static_cast<T>(*p + v), __builtin_return_address(0));        \
	}                                                                                          \
	SHIM_UNTRACED static inline T atomicOr(T *p, T v)                                          \
	{                                                                                          \
		return shim_atomic(p, static_cast<T>(*p | v), __builtin_return_address(0));        \
	}                                                                                          \
	SHIM_UNTRACED static inline T atomicAnd(T *p, T v)                                         \
	{                                                                                          \
		return shim_atomic(p, static_cast<T>(*p & v), __builtin_return_address(0));        \
	}                                                                                          \
	SHIM_UNTRACED static inline T atomicMax(T *p, T v)                                         \
	{                                                                                          \
		return shim_atomic(p, *p < v ? v : *p, __builtin_return_address(0));               \
	}                                                                                          \
	SHIM_UNTRACED static inline T atomicMin(T *p, T v)                                         \
	{                                                                                          \
		return shim_atomic(p, v < *p ? v : *p, __builtin_return_address(0));               \
	}
SHIM_ATOMICS(int)
SHIM_ATOMICS(unsigned)

/* --- The way in: as cuLaunchKernel passes them, args[i] points to argument i --- */

template <class... A, size_t... i>
SHIM_UNTRACED void shim_apply(void (*f)(A...), void **args, std::index_sequence<i...>)
{
	f(*static_cast<A *>(args[i])...);
}
template <class... A> SHIM_UNTRACED int shim_enter(void (*f)(A...), void **args)
{
	if (args)
		shim_apply(f, args, std::index_sequence_for<A...>());
	return sizeof...(A);
}
/* The number of arguments, whatever args is; NULL does not call it. */
#define SHIM_KERNEL(name, threads)                                                                 \
	extern "C" __attribute__((visibility("default"))) int shim_call_##name(void **args)        \
	{                                                                                          \
		return shim_enter(name, args);                                                     \
	}                                                                                          \
	extern "C" __attribute__((visibility("default"))) const int shim_threads_##name;           \
	extern "C" const int shim_threads_##name = threads;

#include "tests/gpu/shim/primitives.h"

#endif
