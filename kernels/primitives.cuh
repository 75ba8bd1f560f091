/* SPDX-License-Identifier: MIT-0 */
/* What a GPU does in one instruction and C++ has no word for. Where STINT_SHIM is defined,
 * tests/gpu/shim/primitives.h has the same functions for a CPU. Layouts: PTX ISA 9.1, 9.7.14.5.7
 * (m16n8k8), 9.7.14.5.8 (m16n8k16), 9.7.14.5.15 (ldmatrix), and "cp.async". */
#ifndef STINT_KERNELS_PRIMITIVES_CUH
#define STINT_KERNELS_PRIMITIVES_CUH

#include "device.cuh"

#ifndef STINT_SHIM
/* The shared memory whose size the launch gives, as elements of a type. */
#define DYNAMIC_SHARED(type, name)                                                                 \
	extern __shared__ __align__(128) unsigned char dynamic_shared_[];                          \
	type *const name = (type *)dynamic_shared_

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
	return (unsigned)__cvta_generic_to_shared(p);
}

/* d += a b for a of 16 x 16 and b of 16 x 8 bf16, d of 16 x 8 floats, spread over a warp: with g =
 * lane / 4 and t = lane % 4, a[] holds two of a row each: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g +
 * 8, 2t + 8); b[] two of a column each: (2t, g), (2t + 8, g); d[] (g, 2t), (g, 2t + 1), (g + 8,
 * 2t), (g + 8, 2t + 1). */
static __device__ __forceinline__ void mma_bf16(float *d, const unsigned *a, const unsigned *b)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
		     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* d += a b for a of 16 x 16 and b of 16 x 8 f16, d of 16 x 8 floats, spread over a warp: with g =
 * lane / 4 and t = lane % 4, a[] holds two of a row each: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g +
 * 8, 2t + 8); b[] two of a column each: (2t, g), (2t + 8, g); d[] (g, 2t), (g, 2t + 1), (g + 8,
 * 2t), (g + 8, 2t + 1). */
static __device__ __forceinline__ void mma_f16(float *d, const unsigned *a, const unsigned *b)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
		     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* d += a b for a of 16 x 8 and b of 8 x 8 tf32 (round_tf32 makes them), d of 16 x 8 floats: with g
 * = lane / 4 and t = lane % 4, a[] holds (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b[] (t,
 * g), (t + 4, g); d[] as mma_bf16's. */
static __device__ __forceinline__ void mma_tf32(float *d, const unsigned *a, const unsigned *b)
{
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
		     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* A float to 10 bits of fraction, ties away from zero. */
static __device__ __forceinline__ unsigned round_tf32(float x)
{
	unsigned y;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
	return y;
}

/* Four matrices of 8 x 8 elements of 16 bits from shared memory: lane 8 m + i says where row i of
 * matrix m is (16 bytes, aligned), and gets in r[m] elements (lane / 4, 2 (lane % 4)) and the next
 * of matrix m. */
static __device__ __forceinline__ void ldmatrix_x4(unsigned *r, const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(shared_address(row))
		     : "memory");
}

/* The same, of each matrix's transpose. */
static __device__ __forceinline__ void ldmatrix_x4_trans(unsigned *r, const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(shared_address(row))
		     : "memory");
}

/* Starts a copy of 4 bytes (both aligned to it) from global to shared memory, the first `have` of
 * them, then zeros. It is there once cp_async_wait says so, for others behind the next barrier. */
static __device__ __forceinline__ void cp_async_4(void *shared, const void *global, int have)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
		     :
		     : "r"(shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(have)
		     : "memory");
}

/* Starts a copy of 8 bytes (both aligned to it) from global to shared memory, the first `have` of
 * them, then zeros. It is there once cp_async_wait says so, for others behind the next barrier. */
static __device__ __forceinline__ void cp_async_8(void *shared, const void *global, int have)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
		     :
		     : "r"(shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(have)
		     : "memory");
}

/* Starts a copy of 16 bytes (both aligned to it) from global to shared memory, the first `have` of
 * them, then zeros. It is there once cp_async_wait says so, for others behind the next barrier. */
static __device__ __forceinline__ void cp_async_16(void *shared, const void *global, int have)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
		     :
		     : "r"(shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(have)
		     : "memory");
}

/* What this thread has started since the last one is a group. */
static __device__ __forceinline__ void cp_async_commit()
{
	asm volatile("cp.async.commit_group;" : : : "memory");
}

/* Until all but the last n of this thread's groups are there. */
template <int n> static __device__ __forceinline__ void cp_async_wait()
{
	asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory");
}

/* Two floats as bf16, to the nearest, ties to even: the first in the lower half. */
static __device__ __forceinline__ unsigned pack_bf16(float low, float high)
{
	unsigned y;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
	return y;
}

/* Two floats as f16, to the nearest, ties to even: the first in the lower half. */
static __device__ __forceinline__ unsigned pack_f16(float low, float high)
{
	unsigned y;
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
	return y;
}

/* The float that an f16 is. */
static __device__ __forceinline__ float wide_f16(unsigned short x)
{
	float y;
	asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
	return y;
}

/* 2 to the x, within 2^-22 of it; what would be subnormal is 0. For what is rounded to 16 bits or
 * summed by mma: devices may differ in its last bits. */
static __device__ __forceinline__ float exp2_near(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* x / y, within 2 units of the last place. For what is rounded to 16 bits. */
static __device__ __forceinline__ float divide_near(float x, float y)
{
	float q;
	asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(x), "f"(y));
	return q;
}
#endif

/* e to the x, as near as x times log2 e is in single precision. For what is rounded to 16 bits. */
static __device__ __forceinline__ float exp_near(float x)
{
	return exp2_near(x * 1.44269504f);
}

#endif
