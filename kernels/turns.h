/* SPDX-License-Identifier: MIT-0 */
/* How a kernel's turns are shared. The arguments of the call may name `from` and `to`, the turns to
 * do, and `worker`, the number of the thread that does them. */
#ifndef STINT_KERNELS_TURNS_H
#define STINT_KERNELS_TURNS_H

#include "words.h"

#ifdef __cplusplus
/* A loop over [from, to), the turns of this thread: few, and unrolled they take registers. */
#define RANGE(n)                                                                                   \
	NO_UNROLL for (int64_t from = THREAD, to = from + 1; from < (n);                           \
		       from += THREADS, to = from + 1)
#define PARALLEL_RANGE(n) RANGE(n)
/* A GPU's threads, one turn after another each. */
#define TURNS(n, ...)                                                                              \
	for (int64_t from = THREAD; from < (n); from += THREADS) {                                 \
		const int64_t to = from + 1, worker = (int64_t)threadIdx.x;                        \
		(void)worker;                                                                      \
		__VA_ARGS__;                                                                       \
	}
#define PARALLEL_TURNS(n, ...) TURNS(n, __VA_ARGS__)
#define EACH
#else
/* A loop whose turns are shared among threads; the split never changes a sum. _EACH: and no turn
 * reads what another writes. EACH: the same of a loop in one that is shared. clang warns of each
 * loop that it cannot vectorise though it was told to. */
#ifdef _OPENMP
#include <omp.h>
#define PRAGMA(text) _Pragma(#text)
#define PARALLEL_FOR(levels)                                                                       \
	PRAGMA(omp parallel for collapse(levels) schedule(static) num_threads(STINT_THREADS))
#else
#define PARALLEL_FOR(levels)
#endif
#if defined(_OPENMP) && defined(__clang__)
#define PARALLEL_EACH _Pragma("omp parallel for schedule(static) num_threads(STINT_THREADS)")
#define EACH
#elif defined(_OPENMP)
#define PARALLEL_EACH _Pragma("omp parallel for simd schedule(static) num_threads(STINT_THREADS)")
#define EACH _Pragma("omp simd")
#else
#define PARALLEL_EACH
#define EACH
#endif

/* Which thread this is. */
static inline int thread_index(void)
{
#ifdef _OPENMP
	return omp_get_thread_num();
#else
	return 0;
#endif
}

/* [from, to): all turns here, or neighbouring ones to each of STINT_THREADS threads, or of those
 * that there are. What follows is done once with them. */
#define RANGE(n) for (int64_t once = 1, from = 0, to = (n); once; once = 0)
#ifdef _OPENMP
#define PARALLEL_RANGE(n)                                                                          \
	_Pragma("omp parallel num_threads(STINT_THREADS)") for (int64_t once = 1,                  \
								worker = omp_get_thread_num(),     \
								workers = omp_get_num_threads(),   \
								from = (n)*worker / workers,       \
								to = (n) * (worker + 1) / workers; \
								once; once = 0)
#else
#define PARALLEL_RANGE(n) RANGE(n)
#endif

/* All of them here. */
#define TURNS(n, ...)                                                                              \
	do {                                                                                       \
		const int64_t from = 0, to = (n), worker = 0;                                      \
		(void)worker;                                                                      \
		__VA_ARGS__;                                                                       \
	} while (0)
#ifdef _OPENMP
/* Neighbouring turns to each of STINT_THREADS threads, or of those that there are. */
#define PARALLEL_TURNS(n, ...)                                                                     \
	do {                                                                                       \
		_Pragma("omp parallel num_threads(STINT_THREADS)")                                 \
		{                                                                                  \
			const int64_t worker = omp_get_thread_num();                               \
			const int64_t workers = omp_get_num_threads();                             \
			const int64_t from = (n)*worker / workers;                                 \
			const int64_t to = (n) * (worker + 1) / workers;                           \
			__VA_ARGS__;                                                               \
		}                                                                                  \
	} while (0)
#else
#define PARALLEL_TURNS(n, ...) TURNS(n, __VA_ARGS__)
#endif
#endif

/* Scratch: what begins `offset` bytes into ws, and each worker's own piece of `bytes` bytes behind
 * that. */
#ifdef __cplusplus
#define SCRATCH(ws, offset) (scratch{(unsigned char *)(ws) + (offset)})
#else
#define SCRATCH(ws, offset) ((void *)((unsigned char *)(ws) + (offset)))
#endif
#define OWN_SCRATCH(ws, offset, bytes) SCRATCH(ws, (offset) + worker * (bytes))

#endif
