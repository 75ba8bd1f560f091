/* The state of the exact search for offsets. Private to exact.c and sections.c. */
#ifndef STINT_PLANNER_EXACT_H
#define STINT_PLANNER_EXACT_H

#include "planner/placement/place.h"

struct entry {
	int64_t at; /* the lowest offset the item can have */
	int rank, item;
};

struct change {
	int item;
	int64_t at;
};

struct exact {
	const struct place_seg *seg;
	const struct place_item *item;
	int n, nsection;
	int64_t base, capacity;
	int *lo, *hi;      /* [n] sections; lo == hi for items of no size */
	size_t *height_at; /* [n + 1] */
	int64_t *height;   /* by item and section of it */
	int64_t *tallest;  /* [n] */
	double *area, *life;
	int *meet_at, *meet;  /* [n + 1]; items that meet it */
	int64_t *meet_height; /* and how high it stands where they do */
	int64_t *at;          /* [n] the lowest offset each can have */
	bool *placed;
	int64_t *left;   /* [nsection] bytes not placed yet */
	int64_t *lowest; /* [nsection] scratch */
	int *cut;        /* [nsection] items not placed yet that span s and s + 1 */
	int64_t *offset; /* [n] out */
	struct entry *pool;
	int npool, cap_pool;
	struct change *trail;
	int ntrail, cap_trail;
	int ranking;
	double work, limit;
	bool nomem;
};

/* Cut time into sections and find what meets what. False when out of memory (e->nomem) or when
 * there is too much of it. Requires seg, item and n. */
bool exact_init(struct exact *e, int nseg);
void exact_free(struct exact *e);

#endif
