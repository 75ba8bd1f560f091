/* The order in which an epoch takes its samples: a permutation drawn from seed and epoch. */
#ifndef STINT_DATA_SHUFFLE_H
#define STINT_DATA_SHUFFLE_H

#include <stdint.h>

/* Up to SHUFFLE_LISTED samples are shuffled by Fisher and Yates in a list of 32 MiB at most, in
 * which every permutation is as likely. Beyond that the list itself would be what does not fit:
 * there each place is computed when it is asked for. */
enum { SHUFFLE_LISTED = 1 << 22 };

struct shuffle {
	int64_t n, seed, epoch;
	int64_t *list; /* NULL: computed */
	uint64_t side; /* computed: the smallest whose square is n or more */
};

/* 0, or 1: out of memory. Before shuffle_begin it has no epoch. */
int shuffle_open(struct shuffle *o, int64_t n);
void shuffle_close(struct shuffle *o);
void shuffle_begin(struct shuffle *o, int64_t seed, int64_t epoch);
int64_t shuffle_at(const struct shuffle *o, int64_t place);

/* order[0..n) becomes a permutation of 0..n-1 (Philox, Fisher and Yates). */
void shuffle_list(int64_t *order, int64_t n, int64_t seed, int64_t epoch);
/* The place's sample, without a list. */
int64_t shuffle_compute(const struct shuffle *o, int64_t place);

#endif
