/* SPDX-License-Identifier: MIT-0 */
/* What step.c's compiler was told that it may use, by its macros, and whether this machine has it.
 * Included by step.c alone: the compiler's options are its own. */
#ifndef STINT_MACHINE_H
#define STINT_MACHINE_H

#include <stddef.h>

#if defined(__linux__) && (defined(__aarch64__) || defined(__arm__) || defined(__riscv))
#include <sys/auxv.h>
#endif

/* What it lacks, or NULL. */
static inline const char *stint_machine_lacks(void)
{
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define MACHINE_HAS(name) __builtin_cpu_supports(name)
#ifdef __SSE4_2__
	if (!MACHINE_HAS("sse4.2"))
		return "sse4.2";
#endif
#ifdef __AVX__
	if (!MACHINE_HAS("avx"))
		return "avx";
#endif
#ifdef __AVX2__
	if (!MACHINE_HAS("avx2"))
		return "avx2";
#endif
#ifdef __FMA__
	if (!MACHINE_HAS("fma"))
		return "fma";
#endif
#ifdef __AVX512F__
	if (!MACHINE_HAS("avx512f"))
		return "avx512f";
#endif
#ifdef __AVX512VL__
	if (!MACHINE_HAS("avx512vl"))
		return "avx512vl";
#endif
#ifdef __AVX512BW__
	if (!MACHINE_HAS("avx512bw"))
		return "avx512bw";
#endif
#ifdef __AVX512DQ__
	if (!MACHINE_HAS("avx512dq"))
		return "avx512dq";
#endif
#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__) || defined(__riscv))
#define MACHINE_HAS(bit) ((getauxval(AT_HWCAP) & (bit)) != 0)
#if defined(__aarch64__) && defined(__ARM_FEATURE_ATOMICS)
	if (!MACHINE_HAS(HWCAP_ATOMICS))
		return "atomics (armv8.1-a)";
#endif
#if defined(__aarch64__) && defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
	if (!MACHINE_HAS(HWCAP_ASIMDHP))
		return "fp16";
#endif
#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
	if (!MACHINE_HAS(HWCAP_ASIMDDP))
		return "dotprod";
#endif
#if defined(__aarch64__) && defined(__ARM_FEATURE_SVE)
	if (!MACHINE_HAS(HWCAP_SVE))
		return "sve";
#endif
#if defined(__arm__) && defined(__ARM_NEON)
	if (!MACHINE_HAS(1UL << 12))
		return "neon";
#endif
#if defined(__arm__) && defined(__ARM_FEATURE_FMA)
	if (!MACHINE_HAS(1UL << 16))
		return "vfpv4";
#endif
#ifdef __riscv_vector
	if (!MACHINE_HAS(1UL << ('v' - 'a')))
		return "v";
#endif
#endif
	return NULL;
}
#undef MACHINE_HAS

#endif
