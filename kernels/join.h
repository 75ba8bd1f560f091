/* SPDX-License-Identifier: MIT-0 */
/* Rows that are joined from parts, each an array of its own. */
#ifndef STINT_KERNELS_JOIN_H
#define STINT_KERNELS_JOIN_H

#include <string.h>

#include "turns.h"

/* Bytes of a row of the result, and where they come from. */
struct join_part {
	const void *from;
	int64_t at, bytes;
};
enum { JOIN_PIECE = 65536 };

/* y is rows of so many bytes: a turn is a piece of a row. */
static inline void join_rows(
	void *y, int64_t bytes, const struct join_part *part, int parts, int64_t from, int64_t to)
{
	const int64_t pieces = (bytes + JOIN_PIECE - 1) / JOIN_PIECE;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t row = turn / pieces, begin = turn % pieces * JOIN_PIECE;
		char *const to_row = (char *)y + row * bytes;
		for (int i = 0; i < parts; i++) {
			const struct join_part *const p = &part[i];
			const int64_t first = MAX(begin, p->at);
			const int64_t end = MIN(MIN(begin + JOIN_PIECE, bytes), p->at + p->bytes);
			if (first < end)
				memcpy(to_row + first,
					(const char *)p->from + row * p->bytes + first - p->at,
					(size_t)(end - first));
		}
	}
}

#endif
