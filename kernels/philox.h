/* SPDX-License-Identifier: MIT-0 */
/* Random numbers that need no state: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel Random
 * Numbers: As Easy as 1, 2, 3", SC 2011, section 3.3 and table 2), keyed by the seed and counted by
 * step, node and element. A recomputed dropout draws the numbers it drew before. */
#ifndef STINT_KERNELS_PHILOX_H
#define STINT_KERNELS_PHILOX_H

#include "words.h"

#define philox_lanes stint_philox_lanes
#define philox_shard stint_philox_shard

/* One block: out = Philox4x32-10(counter, key). */
static inline void stint_philox_block(
	const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0],
		 k1 = key[1];
	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1, c3 = (uint32_t)p0, c0 = n0, c2 = n2;
		k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
	}
	out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* The block of elements i to i + 3 of node `node` at step `step`; i is a multiple of 4. */
static inline void stint_philox_at(
	int64_t seed, int64_t step, int64_t node, int64_t i, uint32_t out[4])
{
	const uint32_t key[2] = {(uint32_t)seed, (uint32_t)((uint64_t)seed >> 32)};
	const uint32_t counter[4] = {(uint32_t)((uint64_t)i >> 2),
		(uint32_t)((uint64_t)i >> 34) ^ (uint32_t)((uint64_t)step >> 32), (uint32_t)step,
		(uint32_t)node};
	stint_philox_block(counter, key, out);
}

/* The blocks of elements i to i + 127, side by side so that the rounds vectorise. */
static inline void stint_philox_lanes(
	int64_t seed, int64_t step, int64_t node, int64_t i, uint32_t out[128])
{
	uint32_t c0[32], c1[32], c2[32], c3[32];
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);
	for (int k = 0; k < 32; k++) {
		const uint64_t block = ((uint64_t)i >> 2) + (uint64_t)k;
		c0[k] = (uint32_t)block;
		c1[k] = (uint32_t)(block >> 32) ^ (uint32_t)((uint64_t)step >> 32);
		c2[k] = (uint32_t)step, c3[k] = (uint32_t)node;
	}
	for (int round = 0; round < 10; round++) {
		for (int k = 0; k < 32; k++) {
			const uint64_t p0 = (uint64_t)0xD2511F53u * c0[k],
				       p1 = (uint64_t)0xCD9E8D57u * c2[k];
			c0[k] = (uint32_t)(p1 >> 32) ^ c1[k] ^ k0;
			c2[k] = (uint32_t)(p0 >> 32) ^ c3[k] ^ k1;
			c1[k] = (uint32_t)p1, c3[k] = (uint32_t)p0;
		}
		k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
	}
	for (int k = 0; k < 32; k++) {
		out[4 * k] = c0[k], out[4 * k + 1] = c1[k];
		out[4 * k + 2] = c2[k], out[4 * k + 3] = c3[k];
	}
}

/* Element i: uniform in [0, 1), 24 bits. */
static inline float stint_philox_uniform(int64_t seed, int64_t step, int64_t node, int64_t i)
{
	uint32_t out[4];
	stint_philox_at(seed, step, node, i & ~(int64_t)3, out);
	return (float)(out[i & 3] >> 8) * (1.0f / 16777216.0f);
}

/* The first element of the shard that control[4] names, of n elements each: those of a whole batch
 * follow one another where n is a multiple of 4, which a block is for. `shard` NULL: 0. */
static inline int64_t stint_philox_shard(const int64_t *shard, int64_t n)
{
	return shard ? shard[4] * ((n + 3) & ~(int64_t)3) : 0;
}

#endif
