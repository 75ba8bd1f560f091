/* Placing buffers whose size may step down over time (a chain of in-place results). Private. */
#ifndef STINT_PLANNER_PLACE_H
#define STINT_PLANNER_PLACE_H

#include "base/base.h"

/* `size` bytes over the steps [lower, upper). */
struct place_seg {
	int64_t lower, upper, size;
};

/* Segments seg .. seg + nseg - 1, all at one offset. */
struct place_item {
	int seg, nseg;
	int64_t offset;
	bool fixed; /* the offset is given */
};

/* The sections of each segment that is not empty, [lo, hi): a section ends at the first end after a
 * start. False when out of memory. */
bool place_sections(const struct place_seg *seg, int nseg, int *lo, int *hi, int *nsection);

/* Offsets for all items, multiples of `align` at or above `base`. Stops searching as soon as the
 * height is at most `aim` or equals the load; `work` limits the exact part of the search. *height
 * and *load (the most bytes at one time, above `base`, with sizes rounded up) out. Sizes and
 * offsets count in bytes and must sum without overflow. */
enum status place_items(const struct place_seg *seg, int nseg, struct place_item *item, int n,
	int64_t align, int64_t base, int64_t aim, double work, int64_t *height, int64_t *load,
	struct diag *d);

enum place_result { PLACE_FOUND, PLACE_NONE, PLACE_GAVE_UP, PLACE_NOMEM };

/* Offsets with which no item reaches above *height, the lower the better, by a search that is exact
 * until it has done `work`: first at `aim` or the load, whichever is more, then between that and
 * *height. Sizes and `base` are multiples of the alignment; no item may be fixed. PLACE_FOUND:
 * offset[n] and *height are set, the latter to what they stay within. */
enum place_result place_lower(const struct place_seg *seg, int nseg, const struct place_item *item,
	int n, int64_t align, int64_t base, int64_t load, int64_t aim, double work, int64_t *height,
	int64_t *offset);

#endif
