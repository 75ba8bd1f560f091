/* SPDX-License-Identifier: MIT-0 */
/* SHA-256 (FIPS 180-4): of linked weights, and keys of the cache. */
#ifndef STINT_SHA256_H
#define STINT_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { STINT_SHA = 32 };

struct stint_sha {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char block[64];
};
void stint_sha_start(struct stint_sha *s);
void stint_sha_add(struct stint_sha *s, const void *data, size_t bytes);
void stint_sha_end(struct stint_sha *s, unsigned char sum[STINT_SHA]);
/* In lower-case hexadecimal digits. */
void stint_sha_text(const unsigned char sum[STINT_SHA], char text[2 * STINT_SHA + 1]);

#endif
