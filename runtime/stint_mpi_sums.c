/* SPDX-License-Identifier: MIT-0 */
/* What MPI carries of sums over processes (stint_sums.h), point to point. Allreduce would promise
 * no more than that all get the same result: not which order it is added in. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime, sched_yield */
#endif
#include "stint_mpi_inside.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- Messages --- */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One more; nothing, until MPI makes it something. */
static MPI_Request *request(struct mpi_requests *q, int partner, int takes)
{
	q->partner[q->n] = partner;
	q->takes[q->n] = (char)takes;
	q->request[q->n] = MPI_REQUEST_NULL;
	return &q->request[q->n++];
}

MPI_Request *stint_mpi_request(struct mpi_ranks *r, int rank)
{
	return request(&r->lane[LANE_OWN], rank, 0);
}

static void send(struct mpi_ranks *r, struct mpi_requests *q, int rank, int tag, const void *data,
	size_t bytes)
{
	MPI_Isend(data, (int)bytes, MPI_BYTE, rank, tag, r->comm, request(q, rank, 0));
}

static void take(
	struct mpi_ranks *r, struct mpi_requests *q, int rank, int tag, void *data, size_t bytes)
{
	MPI_Irecv(data, (int)bytes, MPI_BYTE, rank, tag, r->comm, request(q, rank, 1));
}

void stint_mpi_send(struct mpi_ranks *r, int rank, int tag, const void *data, size_t bytes)
{
	send(r, &r->lane[LANE_OWN], rank, tag, data, bytes);
}

void stint_mpi_take(struct mpi_ranks *r, int rank, int tag, void *data, size_t bytes)
{
	take(r, &r->lane[LANE_OWN], rank, tag, data, bytes);
}

/* For whom we wait: the first whose message is not through. */
static int missing(const struct mpi_requests *q)
{
	for (int i = 0; i < q->n; i++) {
		int done = 1;
		if (q->request[i] != MPI_REQUEST_NULL)
			MPI_Request_get_status(q->request[i], &done, MPI_STATUS_IGNORE);
		if (!done)
			return q->partner[i];
	}
	return -1;
}

/* What is not through is given up: nothing comes into memory any more that may be another's soon. A
 * message that is half here may come to its end first. */
static void drop(struct mpi_ranks *r, struct mpi_requests *q)
{
	enum { LONGEST_MS = 200 };
	const double start = now();
	for (int i = 0; i < q->n; i++) {
		int done = q->request[i] == MPI_REQUEST_NULL || !q->takes[i];
		if (!done)
			MPI_Cancel(&q->request[i]);
		while (!done && now() - start < 1e-3 * LONGEST_MS)
			if (MPI_Test(&q->request[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
				break;
	}
	q->n = 0;
	r->is_broken = 1;
}

static int lost(struct mpi_ranks *r, struct mpi_requests *q, const char *how)
{
	const int rank = missing(q);
	if (rank < 0)
		snprintf(r->message, sizeof r->message, "a rank %s", how);
	else
		snprintf(r->message, sizeof r->message, "rank %d %s", rank, how);
	drop(r, q);
	return STINT_LOST;
}

/* Whether all of it is through, which it should be within r's patience from `since` on. */
static int test(struct mpi_ranks *r, struct mpi_requests *q, double since, int *done)
{
	if (MPI_Testall(q->n, q->request, done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
		return lost(r, q, "cannot be reached any more");
	if (!*done && r->face.patience > 0 && now() - since > r->face.patience)
		return lost(r, q, "has not answered: it is dead, or stuck");
	if (*done)
		q->n = 0;
	return STINT_OK;
}

void stint_mpi_rest(struct mpi_ranks *r, long *ns)
{
	enum { LONGEST_NS = 100000 };
	if (!r->queue.is_running || r->queue.awaited) {
		sched_yield();
		return;
	}
	stint_mpi_nap(&r->queue, *ns);
	*ns = *ns < LONGEST_NS ? *ns * 2 : *ns;
}

static int through(struct mpi_ranks *r, struct mpi_requests *q)
{
	enum { SPINS = 256, TESTS = 8 };
	const double start = now();
	long ns = STINT_MPI_REST_NS;
	for (int64_t spin = 1;; spin++) {
		int done = 0, rc = test(r, q, start, &done);
		if (rc || done)
			return rc;
		if (r->queue.is_running && (rc = stint_mpi_rows(r)) != STINT_OK) {
			drop(r, q);
			return rc;
		}
		if (spin % (r->queue.is_running && !r->queue.awaited ? TESTS : SPINS))
			continue;
		stint_mpi_rest(r, &ns);
		if (r->queue.quit) {
			drop(r, q);
			return STINT_LOST;
		}
	}
}

int stint_mpi_through(struct mpi_ranks *r)
{
	return through(r, &r->lane[LANE_OWN]);
}

/* --- What carries the sums of stint_sums.h --- */

static struct mpi_ranks *carried(struct stint_sums *s)
{
	return s->user;
}

static void carry(struct stint_sums *s, int lane, int rank, int tag, const void *data, size_t bytes)
{
	struct mpi_ranks *r = carried(s);
	send(r, &r->lane[lane], rank, tag, data, bytes);
}

static void fetch(struct stint_sums *s, int lane, int rank, int tag, void *data, size_t bytes)
{
	struct mpi_ranks *r = carried(s);
	take(r, &r->lane[lane], rank, tag, data, bytes);
}

static int lane_through(struct stint_sums *s, int lane)
{
	struct mpi_ranks *r = carried(s);
	return through(r, &r->lane[lane]);
}

static int copy(struct stint_sums *s, void *to, const void *from, size_t bytes)
{
	(void)s;
	memcpy(to, from, bytes);
	return STINT_OK;
}

static int add(struct stint_sums *s, void *to, const void *other, int64_t n, size_t size)
{
	(void)s;
	if (size == sizeof(double)) {
		double *a = to;
		const double *b = other;
		for (int64_t i = 0; i < n; i++)
			a[i] = a[i] + b[i];
	} else {
		float *a = to;
		const float *b = other;
		for (int64_t i = 0; i < n; i++)
			a[i] = a[i] + b[i];
	}
	return STINT_OK;
}

const struct stint_carrier stint_mpi_carrier = {carry, fetch, lane_through, copy, add};

/* --- The same by MPI, which adds in an order of its own --- */

/* What was begun, with rc: until it is through. */
static int by_mpi(struct mpi_ranks *r, int rc)
{
	if (rc != MPI_SUCCESS)
		return lost(r, &r->lane[LANE_OWN], "cannot be reached any more");
	return stint_mpi_through(r);
}

static int reduce(struct mpi_ranks *r, const struct stint_job *j, MPI_Datatype type)
{
	enum { PART = 1 << 28 };
	int rc = STINT_OK;
	for (int64_t at = 0; at < j->n && !rc; at += PART)
		rc = by_mpi(r, MPI_Iallreduce(MPI_IN_PLACE, j->y + (size_t)at * j->size,
				       (int)(j->n - at < PART ? j->n - at : PART), type, MPI_SUM,
				       r->comm, stint_mpi_request(r, -1)));
	return rc;
}

/* MPI leaves the piece where the numbers begin. */
static int reduce_pieces(struct mpi_ranks *r, const struct stint_job *j, MPI_Datatype type)
{
	const int64_t from = stint_tree_first(j->n, r->face.n, r->face.rank);
	for (int k = 0; k < r->face.n; k++)
		r->count[k] = (int)(stint_tree_first(j->n, r->face.n, k + 1) -
				    stint_tree_first(j->n, r->face.n, k));
	const int rc = by_mpi(r, MPI_Ireduce_scatter(MPI_IN_PLACE, j->y, r->count, type, MPI_SUM,
					 r->comm, stint_mpi_request(r, -1)));
	if (!rc)
		memmove(j->y + (size_t)from * j->size, j->y,
			(size_t)r->count[r->face.rank] * j->size);
	return rc;
}

static int add_fast(struct mpi_ranks *r, const struct stint_job *j)
{
	const MPI_Datatype type = j->size == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
	const int rc = stint_sums_add_own(&r->sums, j);
	return rc ? rc : j->kind == JOB_SUM ? reduce(r, j, type) : reduce_pieces(r, j, type);
}

/* --- Rows beside sums --- */

int stint_mpi_rows(struct mpi_ranks *r)
{
	const int at = stint_mpi_next(&r->queue, 1);
	int done = 0;
	if (at < 0)
		return STINT_OK;
	if (r->lane[LANE_ROWS].n == 0) {
		stint_sums_exchange(&r->sums, &r->queue.job[at].is, LANE_ROWS);
		r->rows_since = now();
	}
	const int rc = test(r, &r->lane[LANE_ROWS], r->rows_since, &done);
	if (!rc && done)
		stint_mpi_done(&r->queue, at);
	return rc;
}

void stint_mpi_rows_drop(struct mpi_ranks *r)
{
	if (r->lane[LANE_ROWS].n > 0)
		drop(r, &r->lane[LANE_ROWS]);
}

int stint_mpi_do(struct mpi_ranks *r, const struct stint_job *j)
{
	const int sum = j->kind == JOB_SUM || j->kind == JOB_SCATTER;
	const int rc = sum && r->face.fast && j->n <= INT_MAX ? add_fast(r, j)
							      : stint_sums_do(&r->sums, j);
	for (int lane = LANE_OWN; lane <= LANE_AHEAD && rc; lane++)
		drop(r, &r->lane[lane]);
	return rc;
}
