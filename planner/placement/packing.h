/* Buffers to place, in units of the alignment and in sections of time; what the searches for
 * offsets share. Private to the folder. */
#ifndef STINT_PLANNER_PACKING_H
#define STINT_PLANNER_PACKING_H

#include "planner/placement/place.h"

/* One segment: `size` units over the sections [lo, hi). */
struct pack_seg {
	int lo, hi, item;
	int64_t size;
};

/* Items without a segment (of no size) lie anywhere. */
struct packing {
	int n, nseg, nsection;
	int *at;              /* [n + 1] the segments of item i: at[i] .. at[i + 1] - 1 */
	struct pack_seg *seg; /* [nseg] */
	int64_t *tall;        /* [n] the most units */
	double *life, *area;  /* [n] steps, units × steps */
	bool *fixed;
	int64_t *given;                   /* [n] of fixed ones */
	int64_t align, base, load, least; /* load: base included; least: the smallest size */
	bool any_fixed;
};

bool packing_init(struct packing *p, const struct place_seg *seg, int nseg,
	const struct place_item *item, int n, int64_t align, int64_t base);
void packing_free(struct packing *p);
/* The height with these offsets. */
int64_t packing_height(const struct packing *p, const int64_t *offset);

/* --- What is taken, by time: the gaps of a packing that only grows. --- */

struct span {
	int64_t lo, hi;
};

struct span_set {
	struct span *s; /* sorted, apart */
	int n, cap;
};

struct span_list {
	const struct span *s;
	int n, k;
	int64_t size; /* of the segment that it stands in the way of */
};

struct gaps {
	const struct packing *p;
	int leaves; /* a power of two */
	struct span_set *whole,
		*any; /* [2 * leaves]: of what covers all the node's time; any of it */
	struct span_list *list;
	int nlist, cap_list;
	double work, limit; /* past the limit gaps_find looks on top only */
};

/* Without a limit. */
bool gaps_init(struct gaps *g, const struct packing *p);
void gaps_free(struct gaps *g);
void gaps_clear(struct gaps *g);
/* False when out of memory. */
bool gaps_take(struct gaps *g, int item, int64_t offset);
/* The lowest offset of the tightest gap that holds the item, or of the first, or past the limit on
 * top of all that it meets; -1 when out of memory. */
int64_t gaps_find(struct gaps *g, int item, bool first);

/* --- Search for offsets below a capacity. --- */

/* Starts from the order: each item where it fits below the capacity; then by ejection. PLACE_FOUND,
 * PLACE_GAVE_UP after `work`, PLACE_NOMEM. What could not be placed lies where it fits at all, so
 * that offset[n] is a packing in any case. Variants differ in chance, odd ones also in that all
 * items weigh alike. */
enum place_result place_eject(const struct packing *p, const int *order, int64_t capacity,
	int variant, double work, int64_t *offset);

/* --- All means in turn. --- */

struct place_goal {
	int64_t align, base, aim;
	bool below, joined; /* the aim given was below the load; the items were joined */
};

/* Offsets for items that are placed together. Stops at the aim. *work is the limit, and what is
 * left of it. False when out of memory. */
bool place_part(const struct place_seg *seg, int nseg, struct place_item *item, int n,
	struct place_goal goal, double *work, int64_t *height);

#endif
