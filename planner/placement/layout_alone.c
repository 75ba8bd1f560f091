/* Layout alone: plain buffers, no schedule. */
#include "planner/placement/place.h"
#include "planner/plan.h"

#include <stdlib.h>

/* Of the exact search, some seconds. */
static const double WORK_EXACT = 3e9;

enum status layout_place(struct layout_buffer *b, int n, int64_t alignment, int64_t capacity,
	int64_t *height, struct diag *d)
{
	struct place_seg *seg = calloc((size_t)n + 1, sizeof *seg);
	struct place_item *item = calloc((size_t)n + 1, sizeof *item);
	enum status st = ST_OK;
	if (!seg || !item) {
		st = diag_nomem(d);
	} else {
		for (int i = 0; i < n; i++) {
			seg[i] = (struct place_seg){b[i].lower, b[i].upper, b[i].size};
			item[i] = (struct place_item){i, 1, b[i].offset, b[i].fixed};
		}
		int64_t load;
		st = place_items(
			seg, n, item, n, alignment, 0, capacity, WORK_EXACT, height, &load, d);
		/* the height in bytes as given, not rounded up */
		*height = 0;
		for (int i = 0; st == ST_OK && i < n; i++) {
			b[i].offset = item[i].offset;
			if (b[i].offset + b[i].size > *height)
				*height = b[i].offset + b[i].size;
		}
	}
	free(seg);
	free(item);
	return st;
}
