/* What a step in shards takes when several ranks share it, on paper: each rank's shards, and the
 * messages of runtime/stint_mpi.c by their number and size. Plain numbers; tests/planner compares
 * with a simulation that knows messages alone. */
#ifndef STINT_PLANNER_RANKS_COST_H
#define STINT_PLANNER_RANKS_COST_H

#include "base/base.h"

/* What all ranks do together: a sum, of which each gets all or (RANKS_SCATTER) its piece; pieces,
 * of which all get all; or a row of each shard, to all. */
struct ranks_job {
	enum { RANKS_SUM, RANKS_SCATTER, RANKS_GATHER, RANKS_JOIN } kind;
	int64_t numbers, size; /* size: bytes of a number, or of RANKS_JOIN's row */
	int64_t scratch;       /* of sums, which go in rounds of as much as that holds: bytes */
};

/* In the last shard, when `at` microseconds of it are done: job number `of` begins, or is waited
 * for. `each`: in the others too, when `at_each` are. */
struct ranks_event {
	double at, at_each;
	int of;
	bool waits, each;
};

struct ranks_work {
	int64_t shards;
	double each, last; /* microseconds: a shard's, and what the last one does besides */
	double bytes;      /* that a rank's memory moves in a microsecond */
	int njob;
	struct ranks_job *job; /* in the order in which they begin */
	int nevent;            /* 0: nothing goes on while ranks compute */
	struct ranks_event *event;
	double *done; /* [njob] for ranks_cost */
};

/* Between any two ranks; a rank sends and takes at once. */
struct ranks_link {
	double bytes;   /* in a microsecond, out of a rank or into it */
	double latency; /* microseconds from the last byte's leaving to its arrival */
	double message; /* microseconds that a message takes of its sender, and of its receiver */
};

struct ranks_cost {
	int ranks;
	int64_t shards;                /* that the rank with the most has */
	double compute, communication; /* microseconds of a step, one behind the other */
	double exposed;                /* of communication, what is waited for */
	double messages, bytes;        /* that a rank sends in a step, at most */
};

/* "25GB/s,2us" or "25GB/s,2us,0.5us": bandwidth, latency, and a message's own time, without which
 * it is the latency: as if a rank's messages had to wait for one another. */
enum status ranks_link_parse(const char *text, struct ranks_link *out, struct diag *d);

/* Requires 1 <= ranks <= work->shards. */
void ranks_cost(const struct ranks_work *work, const struct ranks_link *link, int ranks,
	struct ranks_cost *out);

#endif
