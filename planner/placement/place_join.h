/* Items that fit together without waste, joined into one. Private to the folder. */
#ifndef STINT_PLANNER_PLACE_JOIN_H
#define STINT_PLANNER_PLACE_JOIN_H

#include "planner/placement/packing.h"

struct join_node {
	int64_t size, at; /* at: its offset, once known */
	int lo, hi;
	int kid[2];       /* the second above the first or after it; -1: an item */
	bool above, part; /* it is part of another */
};

struct joined {
	struct join_node *node; /* the items first */
	int nnode;
	struct place_seg *seg; /* [n] in units and sections */
	struct place_item *item;
	int n;   /* left; more than the items where they cannot be joined */
	int *of; /* [n] its node */
};

/* False when out of memory. */
bool join_items(const struct packing *p, struct joined *j);
/* The offsets of p's items from those of j->item. */
void join_offsets(const struct packing *p, struct joined *j, int64_t *offset);
void join_free(struct joined *j);

#endif
