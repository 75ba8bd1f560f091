/* SPDX-License-Identifier: MIT-0 */
/* FIPS 180-4, sections 4.1.2, 4.2.2, 5.3.3 and 6.2. */
#include "stint_sha256.h"

#include <string.h>

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static inline void hash_round(const uint32_t *a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e,
	uint32_t f, uint32_t g, uint32_t *h, uint32_t kw)
{
	const uint32_t t1 = *h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) +
			    kw;
	*d += t1;
	*h = t1 + (turn(*a, 2) ^ turn(*a, 13) ^ turn(*a, 22)) + ((*a & b) ^ (*a & c) ^ (b & c));
}

static void hash_block(uint32_t h[8], const unsigned char *p)
{
	/* the first 32 bits of the fractions of the cube roots of the first 64 primes */
	static const uint32_t k[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
		0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
		0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
		0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
		0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
		0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
		0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
		0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
		0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
		0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
	uint32_t w[64], v[8];
	for (int t = 0; t < 16; t++)
		w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 |
		       (uint32_t)p[4 * t + 2] << 8 | p[4 * t + 3];
	for (int t = 16; t < 64; t++) {
		const uint32_t a = w[t - 15], b = w[t - 2];
		w[t] = (turn(b, 17) ^ turn(b, 19) ^ b >> 10) + w[t - 7] +
		       (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 16];
	}
	memcpy(v, h, sizeof v);
	/* eight rounds at a time: what turns by one place a round has its names turned, and stays
	 * in registers */
	for (int t = 0; t < 64; t += 8) {
		hash_round(&v[0], v[1], v[2], &v[3], v[4], v[5], v[6], &v[7], k[t] + w[t]);
		hash_round(&v[7], v[0], v[1], &v[2], v[3], v[4], v[5], &v[6], k[t + 1] + w[t + 1]);
		hash_round(&v[6], v[7], v[0], &v[1], v[2], v[3], v[4], &v[5], k[t + 2] + w[t + 2]);
		hash_round(&v[5], v[6], v[7], &v[0], v[1], v[2], v[3], &v[4], k[t + 3] + w[t + 3]);
		hash_round(&v[4], v[5], v[6], &v[7], v[0], v[1], v[2], &v[3], k[t + 4] + w[t + 4]);
		hash_round(&v[3], v[4], v[5], &v[6], v[7], v[0], v[1], &v[2], k[t + 5] + w[t + 5]);
		hash_round(&v[2], v[3], v[4], &v[5], v[6], v[7], v[0], &v[1], k[t + 6] + w[t + 6]);
		hash_round(&v[1], v[2], v[3], &v[4], v[5], v[6], v[7], &v[0], k[t + 7] + w[t + 7]);
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

void stint_sha_start(struct stint_sha *s)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	memcpy(s->h, start, sizeof start);
	s->bytes = 0;
}

void stint_sha_add(struct stint_sha *s, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	while (bytes > 0) {
		const size_t at = s->bytes % 64, room = 64 - at;
		const size_t n = bytes < room ? bytes : room;
		if (n < 64)
			memcpy(s->block + at, p, n);
		s->bytes += n;
		if (s->bytes % 64 == 0)
			hash_block(s->h, n < 64 ? s->block : p);
		p += n;
		bytes -= n;
	}
}

void stint_sha_end(struct stint_sha *s, unsigned char sum[STINT_SHA])
{
	static const unsigned char one = 0x80, none = 0;
	const uint64_t n = 8 * s->bytes;
	unsigned char bits[8];
	for (int i = 0; i < 8; i++)
		bits[i] = (unsigned char)(n >> (56 - 8 * i));
	stint_sha_add(s, &one, 1);
	while (s->bytes % 64 != 56)
		stint_sha_add(s, &none, 1);
	stint_sha_add(s, bits, sizeof bits);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 4; j++)
			sum[4 * i + j] = (unsigned char)(s->h[i] >> (24 - 8 * j));
}

void stint_sha_text(const unsigned char sum[STINT_SHA], char text[2 * STINT_SHA + 1])
{
	static const char digit[] = "0123456789abcdef";
	for (int i = 0; i < STINT_SHA; i++) {
		text[2 * i] = digit[sum[i] >> 4];
		text[2 * i + 1] = digit[sum[i] & 15];
	}
	text[2 * STINT_SHA] = '\0';
}
