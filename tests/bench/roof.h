/* What this processor does at its best, for benchmarks that say how much of it they reach:
 * multiply-adds of vectors, and bytes copied and read. Included behind kernels/gemm.h, whose words
 * for a compiler it takes. */
#ifndef STINT_BENCH_ROOF_H
#define STINT_BENCH_ROOF_H

#include <stdint.h>
#include <time.h>

#ifdef __clang__
#define ROOF_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define ROOF_UNROLLED _Pragma("GCC unroll 12")
#endif

#ifdef __AVX512F__
enum { ROOF_BYTES = 64 };
#elif defined(__AVX__)
enum { ROOF_BYTES = 32 };
#else
enum { ROOF_BYTES = 16 };
#endif
typedef float roof_vec __attribute__((vector_size(ROOF_BYTES), aligned(4), may_alias));
enum { ROOF_CHAINS = 12, ROOF_LINKS = 1 << 18, ROOF_LANES = ROOF_BYTES / 4, ROOF_TRIES = 80 };

/* Of this thread: a machine that others use as well tells the truth more often so. */
static double thread_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* 12 chains of multiply-adds: two may start each cycle, and each takes four or five of them. */
GEMM_FUSING static float roof_chains(void)
{
	GEMM_CONTRACT
	roof_vec x[ROOF_CHAINS], scale = {0}, more = {0};
	scale += 0.999f;
	more += 0.001f;
	for (int i = 0; i < ROOF_CHAINS; i++)
		x[i] = more * (float)i;
	for (int k = 0; k < ROOF_LINKS; k++) {
		ROOF_UNROLLED
		for (int i = 0; i < ROOF_CHAINS; i++)
			x[i] = x[i] * scale + more;
	}
	for (int i = 1; i < ROOF_CHAINS; i++)
		x[0] += x[i];
	return x[0][0];
}

/* GFLOP/s of one thread: the best of many tries. */
static double roof(void)
{
	double best = 1e9;
	volatile float sink;
	for (int i = 0; i < ROOF_TRIES; i++) {
		const double from = thread_seconds();
		sink = roof_chains();
		const double t = thread_seconds() - from;
		best = t < best ? t : best;
	}
	(void)sink;
	return 2e-9 * ROOF_CHAINS * ROOF_LANES * ROOF_LINKS / best;
}

#endif
