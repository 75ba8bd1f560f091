/* SPDX-License-Identifier: MIT-0 */
/* A sum by which processes see whether they have the same. C11 and C++. */
#ifndef STINT_MIX_H
#define STINT_MIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* h, and behind it these bytes: of parts of a multiple of 8 bytes the same as of all at once. */
static inline uint64_t stint_mix(uint64_t h, const void *data, size_t bytes)
{
	const unsigned char *p = (const unsigned char *)data;
	for (; bytes >= 8; p += 8, bytes -= 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; bytes > 0; p++, bytes--)
		h = (h ^ *p) * 0x100000001b3u;
	return h;
}

#endif
