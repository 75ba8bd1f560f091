/* SPDX-License-Identifier: MIT-0 */
/* What the files of stint_mpi.h share: messages, what is done with them, and who does it when. */
#ifndef STINT_MPI_INSIDE_H
#define STINT_MPI_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "stint_mpi.h"
#include "stint_rt_device.h"
#include "stint_sums.h"

struct mpi_job {
	struct stint_job is;
	int is_done;
};

/* Jobs of one step, by a thread that does nothing else, where MPI lets any thread call it; else at
 * once by who brings one. Rows, which the step may wait for in the middle of its work (batch norm's
 * statistics), pass sums, which it wants at the end: each of the two kinds is done in the order in
 * which its jobs came, which is one on all ranks, and neither waits for the other. */
struct mpi_queue {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	int is_running;
	struct mpi_job *job;
	int cap, n, ndone;
	int next[2];         /* of sums, of rows: those before are done, or of the other kind */
	int rc;              /* what ended it */
	_Atomic int awaited; /* somebody waits */
	_Atomic int quit;
};

/* What was sent and asked for. */
struct mpi_requests {
	int n;
	MPI_Request *request;
	int *partner; /* of each request; -1: all */
	char *takes;  /* of each: it writes to memory of ours */
};

struct mpi_ranks {
	struct stint_ranks face;
	MPI_Comm comm;
	struct stint_sums sums;
	int cap; /* messages of a lane */
	struct mpi_requests lane[LANES];
	double rows_since;
	int is_broken; /* some request was never through */
	int64_t *told; /* of each rank */
	int *count;    /* of each rank, for these: numbers of its piece */
	struct mpi_queue queue;
	char message[256]; /* of what failed */
};

static inline struct mpi_ranks *ranks_of(const stint_step *s)
{
	return (struct mpi_ranks *)s->ranks; /* face is its first member */
}

/* --- stint_mpi_sums.c --- */

enum { TAG_CHECK = TAG_ROWS + 1, TAG_ASK, TAG_LEND }; /* behind stint_sums.h's */
extern const struct stint_carrier stint_mpi_carrier;
void stint_mpi_send(struct mpi_ranks *r, int rank, int tag, const void *data, size_t bytes);
void stint_mpi_take(struct mpi_ranks *r, int rank, int tag, void *data, size_t bytes);
/* For a message to `rank`, or (-1) one of all. */
MPI_Request *stint_mpi_request(struct mpi_ranks *r, int rank);
/* Until all that was sent and asked for is through: STINT_OK, or STINT_LOST with r->message. */
int stint_mpi_through(struct mpi_ranks *r);
int stint_mpi_do(struct mpi_ranks *r, const struct stint_job *j);
/* For the thread: begins to exchange the rows of the queue's next such job, or looks whether they
 * are there, and waits for neither. STINT_OK, or STINT_LOST with r->message. */
int stint_mpi_rows(struct mpi_ranks *r);
/* What it leaves is given up. */
void stint_mpi_rows_drop(struct mpi_ranks *r);
/* Others share the processors, perhaps; and nobody may be waiting, but the step be going on: from
 * *ns nanoseconds on, more each time. */
void stint_mpi_rest(struct mpi_ranks *r, long *ns);
enum { STINT_MPI_REST_NS = 5000 };

/* --- stint_mpi_queue.c --- */

/* Room for so many jobs a step. STINT_OK or STINT_NO_MEMORY. */
int stint_mpi_queue_open(struct mpi_ranks *r, int jobs);
/* Gives up what is not done; nothing can be brought any more. */
void stint_mpi_queue_give_up(struct mpi_ranks *r);
/* A step has failed, and the next may begin: of a process that is alone. 0: it is not. */
int stint_mpi_queue_skip(struct mpi_ranks *r);
void stint_mpi_queue_close(struct mpi_ranks *r);
/* Brings a job. What it says of memory holds, and nobody else writes there, until it is done. */
int stint_mpi_begin(struct mpi_ranks *r, const struct stint_job *j);
/* For the thread: the place of the first job that is not done, of sums or (1) rows; -1: none. */
int stint_mpi_next(struct mpi_queue *q, int rows);
void stint_mpi_done(struct mpi_queue *q, int at);
/* For the thread: so long, or until there is a new job, or somebody waits. */
void stint_mpi_nap(struct mpi_queue *q, long ns);
/* Waits for the last job that was brought with this y; NULL: for all, and the next step begins. */
int stint_mpi_await(struct mpi_ranks *r, const void *y);

#endif
