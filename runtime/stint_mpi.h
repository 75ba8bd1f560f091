/* SPDX-License-Identifier: MIT-0 */
/* Several processes train one model together, over MPI: `make MPI=1` beside a step compiled with
 * --micro-batch S builds this in, with mpicc.
 *
 *	MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
 *	stint_init(&s, &stint_model_net, NULL, 0);
 *	stint_load(s, "weights.safetensors");
 *	if (stint_init_ranks(s, MPI_COMM_WORLD)) ... stint_message(s) ...
 *	stint_set, stint_train, ...          // in every process, as for one alone
 *	stint_free_ranks(s); stint_free(s); MPI_Finalize();
 *
 * Of the S micro-batches each process does its share, one behind the other: at most S processes.
 * Each sets the whole batch, or its own shards' rows of inputs that are `by_shards` (stint_rt.h).
 * Compiled with --ranks N, they are N, and each has a piece of the optimizer's states: a file that
 * has them is loaded behind stint_init_ranks.
 * Of a step for GPUs each has one, and compiled with --ranks: what is added goes from GPU to GPU by
 * NCCL, which stint_init_ranks loads; MPI carries the rest.
 * Gradients travel while the step goes on: a thread that stint_init_ranks starts calls MPI then,
 * and no other may until the step is done. Where MPI gives less than MPI_THREAD_SERIALIZED there is
 * none, and the step waits for each gradient. A step that fails in one of several processes
 * (STINT_BAD_DATA and the like) ends it for all: what comes next is STINT_LOST.
 * Gradients are added along the tree of stint_tree.h, whoever has which part of it: parameters and
 * losses have the same bits in every process, on any number of them. */
#ifndef STINT_MPI_H
#define STINT_MPI_H

#include <mpi.h>

#include "stint_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* s belongs to the processes of `comm` from now on (of a copy of it). Called by all of them at
 * once, after their weights are loaded; refuses steps, weights or states that differ, and more
 * ranks than micro-batches: in all processes, STINT_BAD_DATA. Returns STINT_OK, or a failure with
 * its message in s. */
int stint_init_ranks(stint_step *s, MPI_Comm comm);
void stint_free_ranks(stint_step *s);
/* How long one may wait for another before STINT_LOST; default 60 s, 0: forever. */
void stint_ranks_patience(stint_step *s, double seconds);
/* Whether sums are MPI's own reductions from now on, which add in whichever order is fastest: the
 * last bits are then those of this number of processes and of this MPI. The same in all of them. */
void stint_ranks_fast(stint_step *s, int fast);
/* Whether all processes have the same parameters, statistics and states, bit for bit;
 * STINT_BAD_DATA in all of them if not. By all at once. */
int stint_check_ranks(stint_step *s);

/* For stint, which opens this file as a library and knows nothing of MPI. The world's: */
int stint_ranks_start(int *rank, int *n, char message[256]);
int stint_init_world(stint_step *s);
/* The largest of all ranks' values, into *value. */
int stint_ranks_most(stint_step *s, int64_t *value);
/* Each of n numbers: its sum over all ranks. Each byte, which is zero in all ranks but one: to all.
 */
int stint_ranks_add(stint_step *s, int64_t *x, size_t n);
int stint_ranks_merge(stint_step *s, void *data, size_t bytes);
/* What is between the ranks, by all at once, of the slowest pair that the first rank is in: bytes a
 * microsecond that a rank sends and gets at the same time, microseconds that a message is on its
 * way, and those that one of many takes of who sends and gets it. 0, or 1 with a message. */
int stint_ranks_measure(double link[3], char message[256]);
/* Ends: without an error for all, or at once for everybody. */
void stint_ranks_end(void);
void stint_ranks_abort(int code);

#ifdef __cplusplus
}
#endif
#endif
