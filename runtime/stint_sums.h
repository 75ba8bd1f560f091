/* SPDX-License-Identifier: MIT-0 */
/* What the processes do together that share a step's shards, whoever carries their messages: MPI
 * (stint_mpi.h), or NCCL from GPU to GPU (stint_rt_gpu_ranks.c).
 *
 * Each process owns a piece of every sum. The sums that others' shards have left come to it, are
 * added along the tree (stint_tree.h), and the whole goes back to all. Pieces are worked off in
 * rounds of as much as the scratch that the plan has given holds; all processes are in the same
 * round. So the bits depend on the number of shards alone. */
#ifndef STINT_SUMS_H
#define STINT_SUMS_H

#include "stint_rt_device.h"

/* Messages that may be on their way at the same time: a round's, the next one's, rows. */
enum stint_lane { LANE_OWN, LANE_AHEAD, LANE_ROWS, LANES };
enum stint_tag { TAG_SUM, TAG_WHOLE, TAG_ROWS };

struct stint_sums;
struct stint_carrier {
	/* Messages of one tag between two processes come in the order in which they are sent. */
	void (*send)(
		struct stint_sums *s, int lane, int rank, int tag, const void *data, size_t bytes);
	void (*take)(struct stint_sums *s, int lane, int rank, int tag, void *data, size_t bytes);
	/* What is behind it finds all that was sent and asked for in this lane done. These return
	 * STINT_OK or what went wrong. */
	int (*through)(struct stint_sums *s, int lane);
	int (*copy)(struct stint_sums *s, void *to, const void *from, size_t bytes);
	/* to = to + other, n numbers of `size` bytes: float or double. */
	int (*add)(struct stint_sums *s, void *to, const void *other, int64_t n, size_t size);
};

struct stint_sums {
	int rank, n, shards;
	int nroot; /* sums that all processes' shards leave */
	struct stint_root {
		int rank, nth; /* whose; the how manieth of its own */
		int64_t begin, end;
	} * root;
	const struct stint_carrier *by;
	void *user; /* the carrier's */
};

/* For rank, n and shards as they are in s; freed by stint_sums_free. STINT_OK or STINT_NO_MEMORY.
 */
int stint_sums_new(struct stint_sums *s);
void stint_sums_free(struct stint_sums *s);
/* Messages of a lane at most. */
size_t stint_sums_messages(const struct stint_sums *s);
/* Does all of a job. */
int stint_sums_do(struct stint_sums *s, const struct stint_job *j);
/* A JOB_JOIN's messages, in this lane. */
void stint_sums_exchange(struct stint_sums *s, const struct stint_job *j, int lane);
/* Of its own shards' sums, one in the end: in the job's y. */
int stint_sums_add_own(struct stint_sums *s, const struct stint_job *j);

#endif
