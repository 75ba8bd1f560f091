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
#include "stint_mpi.h"

#include "stint_rt_device.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct mpi_ranks {
	struct stint_ranks face;
	MPI_Comm comm;
	double patience;
	int shards, nroot; /* sums that all ranks' shards leave */
	struct root {
		int rank, nth; /* whose; the how manieth of its own */
		int64_t begin, end;
	} * root;
	int nrequest, cap;
	MPI_Request *request;
	int *partner;  /* of each request; -1: all */
	int64_t *told; /* of each rank */
};

static struct mpi_ranks *ranks_of(const stint_step *s)
{
	return (struct mpi_ranks *)s->ranks; /* face is its first member */
}

static int fail(stint_step *s, int rc, const char *message)
{
	snprintf(s->message, sizeof s->message, "%s", message);
	return rc;
}

static int fail_of(stint_step *s, int rc, const char *message, int rank)
{
	snprintf(s->message, sizeof s->message, message, rank);
	return rc;
}

/* --- Messages --- */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { TAG_SUM, TAG_WHOLE, TAG_ROWS, TAG_CHECK };

static void send_to(struct mpi_ranks *r, int rank, int tag, const void *data, size_t bytes)
{
	r->partner[r->nrequest] = rank;
	MPI_Isend(data, (int)bytes, MPI_BYTE, rank, tag, r->comm, &r->request[r->nrequest++]);
}

static void take_from(struct mpi_ranks *r, int rank, int tag, void *data, size_t bytes)
{
	r->partner[r->nrequest] = rank;
	MPI_Irecv(data, (int)bytes, MPI_BYTE, rank, tag, r->comm, &r->request[r->nrequest++]);
}

/* For whom we wait: the first whose message is not through. */
static int missing(const struct mpi_ranks *r)
{
	for (int i = 0; i < r->nrequest; i++) {
		int done = 1;
		if (r->request[i] != MPI_REQUEST_NULL)
			MPI_Request_get_status(r->request[i], &done, MPI_STATUS_IGNORE);
		if (!done)
			return r->partner[i];
	}
	return -1;
}

static int lost(stint_step *s, const char *how)
{
	const int rank = missing(ranks_of(s));
	if (rank < 0)
		snprintf(s->message, sizeof s->message, "a rank %s", how);
	else
		snprintf(s->message, sizeof s->message, "rank %d %s", rank, how);
	return STINT_LOST;
}

/* Until all that was sent and asked for is through. Others share the processors, perhaps. */
static int wait_for_all(stint_step *s)
{
	enum { SPINS = 256 };
	struct mpi_ranks *r = ranks_of(s);
	const double start = now();
	for (int64_t spin = 1;; spin++) {
		int done;
		if (MPI_Testall(r->nrequest, r->request, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
			return lost(s, "cannot be reached any more");
		if (done)
			break;
		if (spin % SPINS)
			continue;
		sched_yield();
		if (r->patience > 0 && now() - start > r->patience)
			return lost(s, "has not answered: it is dead, or stuck");
	}
	r->nrequest = 0;
	return STINT_OK;
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

struct job {
	unsigned char *y;
	const unsigned char *x, *sums;
	int64_t n, chunk; /* numbers; of each root in a round */
	size_t size;
	unsigned char *slots;
};

/* Of an owner's piece, what this round has: numbers [from, from + n). */
static int64_t chunk_of(
	const struct mpi_ranks *r, const struct job *j, int owner, int64_t round, int64_t *from)
{
	const int64_t end = stint_tree_first(j->n, r->face.n, owner + 1);
	*from = stint_tree_first(j->n, r->face.n, owner) + round * j->chunk;
	const int64_t left = end - *from;
	return left < 0 ? 0 : left < j->chunk ? left : j->chunk;
}

/* This rank's root number `nth` of so many. */
static const unsigned char *own_root(const struct job *j, int nth, int n)
{
	return nth == n - 1 ? j->x : j->sums + (size_t)nth * (size_t)j->n * j->size;
}

static int own_roots(const struct mpi_ranks *r)
{
	int n = 0;
	for (int i = 0; i < r->nroot; i++)
		n += r->root[i].rank == r->face.rank;
	return n;
}

/* What others have left of this rank's chunk comes here, next to its own; theirs go there. */
static void bring_together(struct mpi_ranks *r, const struct job *j, int64_t round)
{
	const int me = r->face.rank, mine = own_roots(r);
	const size_t stride = (size_t)j->chunk * j->size;
	int64_t from;
	int64_t n = chunk_of(r, j, me, round, &from);
	for (int i = 0; i < r->nroot && n > 0; i++) {
		unsigned char *slot = j->slots + (size_t)i * stride;
		if (r->root[i].rank != me)
			take_from(r, r->root[i].rank, TAG_SUM, slot, (size_t)n * j->size);
		else
			memcpy(slot, own_root(j, r->root[i].nth, mine) + (size_t)from * j->size,
				(size_t)n * j->size);
	}
	for (int k = 1; k < r->face.n; k++) {
		const int owner = (me + k) % r->face.n; /* not all to the same one first */
		n = chunk_of(r, j, owner, round, &from);
		for (int i = 0; i < mine && n > 0; i++)
			send_to(r, owner, TAG_SUM, own_root(j, i, mine) + (size_t)from * j->size,
				(size_t)n * j->size);
	}
}

/* The sums of this round, to all. */
static void hand_out(struct mpi_ranks *r, const struct job *j, int64_t round)
{
	const int me = r->face.rank;
	int64_t from;
	const int64_t mine = chunk_of(r, j, me, round, &from);
	memcpy(j->y + (size_t)from * j->size, j->slots, (size_t)mine * j->size);
	for (int k = 1; k < r->face.n; k++) {
		const int other = (me + k) % r->face.n;
		const int64_t n = chunk_of(r, j, other, round, &from);
		if (n > 0)
			take_from(r, other, TAG_WHOLE, j->y + (size_t)from * j->size,
				(size_t)n * j->size);
		if (mine > 0)
			send_to(r, other, TAG_WHOLE, j->slots, (size_t)mine * j->size);
	}
}

static int sum(stint_step *s, void *y, const void *x, const void *sums, int64_t n, size_t size,
	void *scratch, size_t bytes)
{
	struct mpi_ranks *r = ranks_of(s);
	const struct job j = {.y = y,
		.x = x,
		.sums = sums,
		.n = n,
		.chunk = (int64_t)(bytes / size) / r->nroot,
		.size = size,
		.slots = scratch};
	const int64_t largest = (n + r->face.n - 1) / r->face.n; /* piece */
	int rc = STINT_OK;
	for (int64_t round = 0; round * j.chunk < largest && !rc; round++) {
		int64_t from;
		bring_together(r, &j, round);
		rc = wait_for_all(s);
		if (rc)
			break;
		add_along_tree(r, j.slots, (size_t)j.chunk * size,
			chunk_of(r, &j, r->face.rank, round, &from), size);
		hand_out(r, &j, round);
		rc = wait_for_all(s);
	}
	return rc;
}

static int join(stint_step *s, void *rows, size_t bytes)
{
	struct mpi_ranks *r = ranks_of(s);
	unsigned char *row = rows;
	for (int k = 1; k < r->face.n; k++) {
		const int other = (r->face.rank + k) % r->face.n;
		for (int i = 0; i < 2; i++) {
			const int whose = i ? r->face.rank : other;
			const int64_t begin = stint_tree_first(r->shards, r->face.n, whose);
			const int64_t end = stint_tree_first(r->shards, r->face.n, whose + 1);
			for (int64_t at = begin; at < end; at++)
				(i ? send_to(r, other, TAG_ROWS, row + (size_t)at * bytes, bytes)
				   : take_from(
					     r, other, TAG_ROWS, row + (size_t)at * bytes, bytes));
		}
	}
	return wait_for_all(s);
}

/* --- The same step, the same values --- */

static uint64_t mix(uint64_t h, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	for (; bytes >= 8; p += 8, bytes -= 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; bytes > 0; p++, bytes--)
		h = (h ^ *p) * 0x100000001b3u;
	return h;
}

static uint64_t mix_text(uint64_t h, const char *text)
{
	return text ? mix(h, text, strlen(text) + 1) : mix(h, "", 1);
}

/* What is planned and how: residents and their places, the schedule, the threads. */
static uint64_t hash_of_plan(const struct stint_model *m)
{
	const int64_t number[] = {m->version, (int64_t)m->arena_bytes, m->threads, m->shards,
		m->nresident, m->ntrain_steps, m->neval_steps, m->nlib, m->loss_dtype,
		(int64_t)m->loss_offset_train};
	uint64_t h = mix(1, number, sizeof number);
	h = mix_text(mix_text(mix_text(h, m->name), m->loss_name), m->loss_options);
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *t = &m->resident[i];
		const int64_t of[] = {t->kind, t->dtype, (int64_t)t->bytes, (int64_t)t->offset};
		h = mix(mix_text(h, t->name), of, sizeof of);
	}
	for (int i = 0; i < m->ntrain_steps; i++) {
		const struct stint_step_info *step = &m->train_info[i];
		h = mix_text(mix_text(mix_text(h, step->node), step->op), step->kernel);
	}
	return h;
}

/* What checkpoints hold, and the constants. */
static uint64_t hash_of_values(const stint_step *s)
{
	uint64_t h = mix(2, &s->count, sizeof s->count);
	for (int i = 0; i < s->model->nresident; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		if (t->kind == STINT_PARAMETER || t->kind == STINT_BUFFER ||
			t->kind == STINT_STATE || t->kind == STINT_CONSTANT)
			h = mix(h, s->arena + t->offset, t->bytes);
	}
	return mix(h, &s->seed, sizeof s->seed);
}

/* The first rank whose number is another one than rank 0's; -1: none. */
static int compare(stint_step *s, uint64_t hash, int *odd)
{
	struct mpi_ranks *r = ranks_of(s);
	uint64_t first = hash;
	*odd = -1;
	for (int k = 0; k < r->face.n; k++) { /* each to each: all find the same */
		uint64_t other = hash;
		if (k != r->face.rank) {
			take_from(r, k, TAG_CHECK, &other, sizeof other);
			send_to(r, k, TAG_CHECK, &hash, sizeof hash);
			const int rc = wait_for_all(s);
			if (rc)
				return rc;
		}
		first = k == 0 ? other : first;
		if (*odd < 0 && other != first)
			*odd = k;
	}
	return STINT_OK;
}

int stint_check_ranks(stint_step *s)
{
	int odd, rc = compare(s, hash_of_values(s), &odd);
	if (!rc && odd >= 0)
		rc = fail_of(s, STINT_BAD_DATA,
			"rank %d has other parameters or states than rank 0", odd);
	return rc;
}

/* --- Set-up --- */

static int allocate(struct mpi_ranks *r)
{
	const size_t n = (size_t)r->face.n, shards = (size_t)r->shards;
	/* in a round: every root of others, this one's to every other; or rows, both ways */
	r->cap = (int)(shards + n * (shards < 128 ? shards : 128) + n * (shards + 2));
	r->root = calloc(shards + 1, sizeof *r->root);
	r->request = malloc((size_t)r->cap * sizeof *r->request);
	r->partner = malloc((size_t)r->cap * sizeof *r->partner);
	r->told = malloc(n * sizeof *r->told);
	if (!r->root || !r->request || !r->partner || !r->told)
		return STINT_NO_MEMORY;
	for (int k = 0; k < r->face.n; k++)
		r->nroot += roots_of(r, k, r->root + r->nroot);
	return STINT_OK;
}

static int same_steps(stint_step *s)
{
	int odd, rc = compare(s, hash_of_plan(s->model), &odd);
	if (!rc && odd >= 0)
		return fail_of(s, STINT_BAD_DATA,
			"rank %d has another step than rank 0: compile once, and give all "
			"ranks the same folder",
			odd);
	return rc ? rc : stint_check_ranks(s);
}

int stint_init_ranks(stint_step *s, MPI_Comm comm)
{
	struct mpi_ranks *r = calloc(1, sizeof *r);
	if (!r)
		return fail(s, STINT_NO_MEMORY, "out of memory");
	MPI_Comm_rank(comm, &r->face.rank);
	MPI_Comm_size(comm, &r->face.n);
	r->face.sum = sum;
	r->face.join = join;
	r->comm = MPI_COMM_NULL;
	r->patience = 300; /* who starts late has to load its files first */
	r->shards = s->model->shards;
	s->ranks = &r->face;
	if (s->model->shards < r->face.n) {
		snprintf(s->message, sizeof s->message,
			"%d ranks for %d micro-batch%s: compile with --micro-batch so that there "
			"are "
			"as many as ranks, or more",
			r->face.n, s->model->shards > 1 ? s->model->shards : 1,
			s->model->shards > 1 ? "es" : "");
		stint_free_ranks(s);
		return STINT_BAD_DATA;
	}
	if (MPI_Comm_dup(comm, &r->comm) != MPI_SUCCESS) {
		stint_free_ranks(s);
		return fail(s, STINT_LOST, "the ranks cannot reach each other");
	}
	MPI_Comm_set_errhandler(r->comm, MPI_ERRORS_RETURN);
	int rc = allocate(r);
	if (rc)
		fail(s, rc, "out of memory");
	else
		rc = same_steps(s);
	r->patience = 60;
	if (rc)
		stint_free_ranks(s);
	return rc;
}

void stint_free_ranks(stint_step *s)
{
	struct mpi_ranks *r = s->ranks ? ranks_of(s) : NULL;
	if (!r)
		return;
	if (r->comm != MPI_COMM_NULL && r->nrequest == 0)
		MPI_Comm_free(&r->comm);
	free(r->root);
	free(r->request);
	free(r->partner);
	free(r->told);
	free(r);
	s->ranks = NULL;
}

void stint_ranks_patience(stint_step *s, double seconds)
{
	ranks_of(s)->patience = seconds;
}

/* --- For stint --- */

int stint_ranks_most(stint_step *s, int64_t *value)
{
	struct mpi_ranks *r = ranks_of(s);
	for (int k = 1; k < r->face.n; k++) {
		const int other = (r->face.rank + k) % r->face.n;
		take_from(r, other, TAG_CHECK, &r->told[other], sizeof *r->told);
		send_to(r, other, TAG_CHECK, value, sizeof *value);
	}
	const int rc = wait_for_all(s);
	if (rc)
		return rc;
	for (int k = 0; k < r->face.n; k++)
		if (k != r->face.rank && r->told[k] > *value)
			*value = r->told[k];
	return STINT_OK;
}

/* Whole numbers and bits: whichever order they are joined in, it is the same, so MPI may choose.
 */
static int all_together(
	stint_step *s, void *data, size_t n, MPI_Datatype type, size_t size, MPI_Op op)
{
	enum { PART = 1 << 20 };
	struct mpi_ranks *r = ranks_of(s);
	int rc = STINT_OK;
	for (size_t at = 0; at < n && !rc; at += PART) {
		const size_t part = n - at < PART ? n - at : PART;
		r->partner[r->nrequest] = -1;
		if (MPI_Iallreduce(MPI_IN_PLACE, (unsigned char *)data + at * size, (int)part, type,
			    op, r->comm, &r->request[r->nrequest]) != MPI_SUCCESS)
			return fail(s, STINT_LOST, "the ranks cannot reach each other");
		r->nrequest++;
		rc = wait_for_all(s);
	}
	return rc;
}

int stint_ranks_add(stint_step *s, int64_t *x, size_t n)
{
	return all_together(s, x, n, MPI_INT64_T, sizeof *x, MPI_SUM);
}

int stint_ranks_merge(stint_step *s, void *data, size_t bytes)
{
	return all_together(s, data, bytes, MPI_BYTE, 1, MPI_BOR);
}
