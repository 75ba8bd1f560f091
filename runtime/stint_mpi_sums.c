/* SPDX-License-Identifier: MIT-0 */
/* Sums over processes, point to point over MPI (stint_mpi.h). Allreduce would promise no more than
 * that all get the same result: not which order it is added in.
 *
 * Each process owns a piece of every sum. The sums that others' shards have left come to it, are
 * added along the tree, and the whole goes back to all. Pieces are worked off in rounds of as much
 * as the scratch that the plan has given holds; all processes are in the same round. */
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

static void send(struct mpi_ranks *r, struct mpi_requests *q, int rank, int tag, const void *data,
	size_t bytes)
{
	q->partner[q->n] = rank;
	q->takes[q->n] = 0;
	MPI_Isend(data, (int)bytes, MPI_BYTE, rank, tag, r->comm, &q->request[q->n++]);
}

static void take(
	struct mpi_ranks *r, struct mpi_requests *q, int rank, int tag, void *data, size_t bytes)
{
	q->partner[q->n] = rank;
	q->takes[q->n] = 1;
	MPI_Irecv(data, (int)bytes, MPI_BYTE, rank, tag, r->comm, &q->request[q->n++]);
}

void stint_mpi_send(struct mpi_ranks *r, int rank, int tag, const void *data, size_t bytes)
{
	send(r, &r->own, rank, tag, data, bytes);
}

void stint_mpi_take(struct mpi_ranks *r, int rank, int tag, void *data, size_t bytes)
{
	take(r, &r->own, rank, tag, data, bytes);
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
	if (!*done && r->patience > 0 && now() - since > r->patience)
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
	return through(r, &r->own);
}

/* --- Sums --- */

/* The nodes of the tree that a rank's shards come to, from the left. */
static int roots_of(struct mpi_ranks *r, int rank, struct root *out)
{
	int64_t from[STINT_TREE_DEPTH + 1];
	const int64_t end = stint_tree_first(r->shards, r->face.n, rank + 1);
	const int n = stint_tree_roots(r->shards, r->face.n, rank, from);
	for (int i = 0; i < n; i++)
		out[i] = (struct root){rank, i, from[i], i + 1 < n ? from[i + 1] : end};
	return n;
}

/* to = to + other. */
static void add(void *to, const void *other, int64_t n, size_t size)
{
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
}

void stint_mpi_roots(struct mpi_ranks *r)
{
	for (int k = 0; k < r->face.n; k++)
		r->nroot += roots_of(r, k, r->root + r->nroot);
}

/* All roots' n numbers, one behind the other, `stride` bytes apart: the sum in the first's place.
 */
static void add_along_tree(
	const struct mpi_ranks *r, unsigned char *slots, size_t stride, int64_t n, size_t size)
{
	int at[STINT_TREE_DEPTH + 1], depth = 0; /* slots of sums that wait, from the left */
	int64_t begin[STINT_TREE_DEPTH + 1];
	for (int i = 0; i < r->nroot; i++) {
		begin[depth] = r->root[i].begin;
		at[depth++] = i;
		while (depth > 1 && stint_tree_left(begin[depth - 1], r->root[i].end, r->shards) ==
					    begin[depth - 2]) {
			depth--;
			add(slots + (size_t)at[depth - 1] * stride,
				slots + (size_t)at[depth] * stride, n, size);
		}
	}
}

/* Of an owner's piece, what this round has: numbers [from, from + n). */
static int64_t chunk_of(
	const struct mpi_ranks *r, const struct mpi_job *j, int owner, int64_t round, int64_t *from)
{
	const int64_t end = stint_tree_first(j->n, r->face.n, owner + 1);
	*from = stint_tree_first(j->n, r->face.n, owner) + round * j->chunk;
	const int64_t left = end - *from;
	return left < 0 ? 0 : left < j->chunk ? left : j->chunk;
}

/* This rank's root number `nth` of so many. */
static const unsigned char *own_root(const struct mpi_job *j, int nth, int n)
{
	return nth == n - 1 ? j->y : j->sums + (size_t)nth * (size_t)j->n * j->size;
}

static int own_roots(const struct mpi_ranks *r)
{
	int n = 0;
	for (int i = 0; i < r->nroot; i++)
		n += r->root[i].rank == r->face.rank;
	return n;
}

/* A round of a sum: where its chunk is, and what is on its way of it. */
struct round {
	int64_t k;
	unsigned char *slots;
	struct mpi_requests *q;
};

/* What others have left of this rank's chunk comes here, next to its own; theirs go there. */
static void bring_together(struct mpi_ranks *r, const struct mpi_job *j, const struct round *x)
{
	const int me = r->face.rank, mine = own_roots(r);
	const size_t stride = (size_t)j->chunk * j->size;
	int64_t from;
	int64_t n = chunk_of(r, j, me, x->k, &from);
	for (int i = 0; i < r->nroot && n > 0; i++) {
		unsigned char *slot = x->slots + (size_t)i * stride;
		if (r->root[i].rank != me)
			take(r, x->q, r->root[i].rank, TAG_SUM, slot, (size_t)n * j->size);
		else
			memcpy(slot, own_root(j, r->root[i].nth, mine) + (size_t)from * j->size,
				(size_t)n * j->size);
	}
	for (int k = 1; k < r->face.n; k++) {
		const int owner = (me + k) % r->face.n; /* not all to the same one first */
		n = chunk_of(r, j, owner, x->k, &from);
		for (int i = 0; i < mine && n > 0; i++)
			send(r, x->q, owner, TAG_SUM, own_root(j, i, mine) + (size_t)from * j->size,
				(size_t)n * j->size);
	}
}

/* The sums of this round, to all. */
static void hand_out(struct mpi_ranks *r, const struct mpi_job *j, const struct round *x)
{
	const int me = r->face.rank;
	int64_t from;
	const int64_t mine = chunk_of(r, j, me, x->k, &from);
	for (int k = 1; k < r->face.n; k++) {
		const int other = (me + k) % r->face.n;
		const int64_t n = chunk_of(r, j, other, x->k, &from);
		if (n > 0)
			take(r, x->q, other, TAG_WHOLE, j->y + (size_t)from * j->size,
				(size_t)n * j->size);
		if (mine > 0)
			send(r, x->q, other, TAG_WHOLE, x->slots, (size_t)mine * j->size);
	}
}

/* What was brought together, when it is there. */
static int add_round(struct mpi_ranks *r, const struct mpi_job *j, const struct round *x)
{
	int64_t from;
	const int rc = through(r, x->q);
	if (rc)
		return rc;
	const int64_t mine = chunk_of(r, j, r->face.rank, x->k, &from);
	add_along_tree(r, x->slots, (size_t)j->chunk * j->size, mine, j->size);
	memcpy(j->y + (size_t)from * j->size, x->slots, (size_t)mine * j->size);
	if (j->kind == JOB_SUM)
		hand_out(r, j, x);
	return STINT_OK;
}

/* In rounds: over y, to all, or the owner's piece. Where there are several, each has half of the
 * scratch and is on its way while the one before is added and handed out. */
static int add_all(struct mpi_ranks *r, const struct mpi_job *whole)
{
	struct mpi_job j = *whole;
	const int64_t largest = (j.n + r->face.n - 1) / r->face.n; /* piece */
	const int two = largest > j.chunk && j.chunk > 1;
	j.chunk /= 1 + two;
	const size_t half = two ? (size_t)r->nroot * (size_t)j.chunk * j.size : 0;
	struct round x[2] = {{0, j.slots, &r->own}, {0, j.slots + half, two ? &r->ahead : &r->own}};
	int rc = STINT_OK;
	for (int64_t k = 0; (k - two) * j.chunk < largest && !rc; k++) {
		struct round *next = &x[k & 1], *ready = &x[(k - two) & 1];
		if (k * j.chunk < largest) {
			rc = through(r, next->q); /* handed out: its slots are free */
			next->k = k;
			if (!rc)
				bring_together(r, &j, next);
		}
		if (!rc && k >= two)
			rc = add_round(r, &j, ready);
	}
	for (int i = 0; i < 2 && !rc; i++)
		rc = through(r, x[i].q);
	for (int i = 0; i < 2 && rc; i++)
		drop(r, x[i].q);
	return rc;
}

/* --- The same by MPI, which adds in an order of its own --- */

/* What was begun, with rc: until it is through. */
static int by_mpi(struct mpi_ranks *r, int rc)
{
	if (rc != MPI_SUCCESS)
		return lost(r, &r->own, "cannot be reached any more");
	r->own.partner[r->own.n] = -1;
	r->own.takes[r->own.n] = 0;
	r->own.n++;
	return stint_mpi_through(r);
}

static int reduce(struct mpi_ranks *r, const struct mpi_job *j, MPI_Datatype type)
{
	enum { PART = 1 << 28 };
	int rc = STINT_OK;
	for (int64_t at = 0; at < j->n && !rc; at += PART)
		rc = by_mpi(r, MPI_Iallreduce(MPI_IN_PLACE, j->y + (size_t)at * j->size,
				       (int)(j->n - at < PART ? j->n - at : PART), type, MPI_SUM,
				       r->comm, &r->own.request[r->own.n]));
	return rc;
}

/* MPI leaves the piece where the numbers begin. */
static int reduce_pieces(struct mpi_ranks *r, const struct mpi_job *j, MPI_Datatype type)
{
	const int64_t from = stint_tree_first(j->n, r->face.n, r->face.rank);
	for (int k = 0; k < r->face.n; k++)
		r->count[k] = (int)(stint_tree_first(j->n, r->face.n, k + 1) -
				    stint_tree_first(j->n, r->face.n, k));
	const int rc = by_mpi(r, MPI_Ireduce_scatter(MPI_IN_PLACE, j->y, r->count, type, MPI_SUM,
					 r->comm, &r->own.request[r->own.n]));
	if (!rc)
		memmove(j->y + (size_t)from * j->size, j->y,
			(size_t)r->count[r->face.rank] * j->size);
	return rc;
}

static int add_fast(struct mpi_ranks *r, const struct mpi_job *j)
{
	const int mine = own_roots(r);
	const MPI_Datatype type = j->size == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
	for (int i = mine - 2; i >= 0; i--)
		add(j->y, own_root(j, i, mine), j->n, j->size);
	return j->kind == JOB_SUM ? reduce(r, j, type) : reduce_pieces(r, j, type);
}

/* --- Pieces and rows --- */

/* In rounds too: MPI counts a message's bytes by an int. */
static int gather(struct mpi_ranks *r, const struct mpi_job *j)
{
	const int64_t largest = (j->n + r->face.n - 1) / r->face.n;
	const int me = r->face.rank;
	int rc = STINT_OK;
	for (int64_t round = 0; round * j->chunk < largest && !rc; round++) {
		int64_t from, at;
		const int64_t mine = chunk_of(r, j, me, round, &from);
		for (int k = 1; k < r->face.n; k++) {
			const int other = (me + k) % r->face.n;
			const int64_t theirs = chunk_of(r, j, other, round, &at);
			if (theirs > 0)
				stint_mpi_take(r, other, TAG_WHOLE, j->y + (size_t)at * j->size,
					(size_t)theirs * j->size);
			if (mine > 0)
				stint_mpi_send(r, other, TAG_WHOLE, j->y + (size_t)from * j->size,
					(size_t)mine * j->size);
		}
		rc = stint_mpi_through(r);
	}
	return rc;
}

static void exchange_rows(struct mpi_ranks *r, const struct mpi_job *j, struct mpi_requests *q)
{
	for (int k = 1; k < r->face.n; k++) {
		const int other = (r->face.rank + k) % r->face.n;
		for (int i = 0; i < 2; i++) {
			const int whose = i ? r->face.rank : other;
			const int64_t begin = stint_tree_first(r->shards, r->face.n, whose);
			const int64_t end = stint_tree_first(r->shards, r->face.n, whose + 1);
			for (int64_t at = begin; at < end; at++) {
				unsigned char *row = j->y + (size_t)at * j->size;
				if (i)
					send(r, q, other, TAG_ROWS, row, j->size);
				else
					take(r, q, other, TAG_ROWS, row, j->size);
			}
		}
	}
}

static int join(struct mpi_ranks *r, const struct mpi_job *j)
{
	exchange_rows(r, j, &r->own);
	return stint_mpi_through(r);
}

int stint_mpi_rows(struct mpi_ranks *r)
{
	const int at = stint_mpi_next(&r->queue, 1);
	int done = 0;
	if (at < 0)
		return STINT_OK;
	if (r->rows.n == 0) {
		exchange_rows(r, &r->queue.job[at], &r->rows);
		r->rows_since = now();
	}
	const int rc = test(r, &r->rows, r->rows_since, &done);
	if (!rc && done)
		stint_mpi_done(&r->queue, at);
	return rc;
}

void stint_mpi_rows_drop(struct mpi_ranks *r)
{
	if (r->rows.n > 0)
		drop(r, &r->rows);
}

int stint_mpi_do(struct mpi_ranks *r, const struct mpi_job *j)
{
	if (j->kind == JOB_JOIN)
		return join(r, j);
	if (j->kind == JOB_GATHER)
		return gather(r, j);
	return r->fast && j->n <= INT_MAX ? add_fast(r, j) : add_all(r, j);
}
