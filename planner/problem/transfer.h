/* Tensors that may wait in the host's memory: --offload host.
 *
 * Two ops for each such tensor t: one reads t and makes a token, of no bytes, which stands for the
 * copy on the host; one reads the token and makes t again, as its producer would. Both may never
 * run, the first runs once at most. So a plan that fetches t is valid by the rules for all plans:
 * t is live when it is copied away, its bytes are free while nothing holds it, and who reads t
 * after the fetch reads the bits that were copied. */
#ifndef STINT_PLANNER_TRANSFER_H
#define STINT_PLANNER_TRANSFER_H

#include "planner/problem/problem.h"

/* Smaller tensors stay: a transfer has a fixed cost, and pinned memory its price. */
enum { TRANSFER_BYTES = 1 << 20 };

/* What a transfer costs in a plan is so much of the time that it takes (transfer.c). */
enum { TRANSFER_TIMES_COST = 2 };

/* Adds the two ops to `p` for every activation of the forward pass of at least `least` bytes that
 * is not kept and that the backward pass reads, by a link of so many bytes a microsecond: all
 * behind the other ops, and their tokens behind the other tensors. Requires and keeps: p is valid.
 * Lists live in `a`. */
enum status transfers_add(
	struct arena *a, struct problem *p, int64_t least, double link, struct diag *d);

/* The problem without its transfers, which are its last ops: ops and tensors of the same indices.
 * False: it has none. */
bool transfers_without(const struct problem *p, struct problem *out);

/* Faults of op `o`, which transfers; NULL: none. */
const char *transfer_fault(const struct problem *p, int o);

#endif
