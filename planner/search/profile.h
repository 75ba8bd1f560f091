/* A row of numbers under additions to ranges: how far each slot of a sequence is above the target.
 * Blocks of slots carry their extremes, so that a range costs a term per block. Private to
 * planner/.
 */
#ifndef STINT_PLANNER_PROFILE_H
#define STINT_PLANNER_PROFILE_H

#include "base/base.h"

enum { PROFILE_BLOCK = 32 };
/* Below every value that is on. Values stay within PROFILE_MAX, their sum below 2^62: the caller
 * chooses its unit so. */
#define PROFILE_OFF (INT64_C(1) << 58)
#define PROFILE_MAX (INT64_C(1) << 50)

struct profile_block {
	int64_t add;      /* to every value of the block */
	int64_t max, min; /* of the values that are on, `add` included; off: -PROFILE_OFF / 2 */
	int64_t over;     /* sum of the values above 0 */
	int on;           /* how many */
	bool stale;       /* max, min, over and on are to be counted anew */
};

struct profile {
	int n, cap;     /* slots, a multiple of PROFILE_BLOCK */
	int64_t *value; /* [n] without the block's `add` */
	struct profile_block *block;
	int64_t over; /* sum of all values above 0 in blocks that are not stale */
	int *stale, nstale;
};

/* All values 0 and off; false when out of memory. */
bool profile_clear(struct profile *p, int n);
void profile_free(struct profile *p);
/* From differences: value[i] becomes the sum of the values up to i, and `start`. at[n] ≥ 0 tells
 * the slots that are on. */
void profile_sum(struct profile *p, int64_t start, const int *at, int n);
void profile_switch(struct profile *p, int slot, bool on);
/* Add x to the slots from .. to, both included. */
void profile_add(struct profile *p, int from, int to, int64_t x);
/* Of a slot that is on. */
int64_t profile_at(const struct profile *p, int slot);
/* The sum of all values above 0. */
int64_t profile_over(struct profile *p);
/* Count stale blocks anew: before p->block is looked at. */
void profile_refresh(struct profile *p);
/* The first slot with the greatest value of those that are on; -1 when all are off. */
int profile_worst(struct profile *p);
/* Whether a value from .. to is above the limit, of slots that are on. */
bool profile_exceeds(struct profile *p, int from, int to, int64_t limit);
/* The sum over from .. to of what `x` would take off the values above 0: min(x, value). */
int64_t profile_relief(struct profile *p, int from, int to, int64_t x);

#endif
