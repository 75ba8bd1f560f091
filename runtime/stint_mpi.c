/* SPDX-License-Identifier: MIT-0 */
/* Several processes that train one model (stint_mpi.h): how they find each other, what a step asks
 * of them, and whether they have the same. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* what pthread.h wants */
#endif
#include "stint_mpi_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stint_mix.h"

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

/* What came of a job, or of messages. */
static int told(stint_step *s, int rc)
{
	return rc ? fail(s, rc, ranks_of(s)->message) : STINT_OK;
}

static int wait_for_all(stint_step *s)
{
	struct mpi_ranks *r = ranks_of(s);
	r->queue.awaited = 1;
	const int rc = stint_mpi_through(r);
	r->queue.awaited = 0;
	return told(s, rc);
}

/* --- What a step asks for --- */

static int begin(stint_step *s, const struct stint_job *j)
{
	return told(s, stint_mpi_begin(ranks_of(s), j));
}

static int await(stint_step *s, const void *y)
{
	return told(s, stint_mpi_await(ranks_of(s), y));
}

static int finish(stint_step *s, int failed)
{
	struct mpi_ranks *r = ranks_of(s);
	if (!failed)
		return told(s, stint_mpi_await(r, NULL));
	if (!stint_mpi_queue_skip(r))
		stint_mpi_queue_give_up(r);
	return failed;
}

/* Requests are of the step, and its message. */
static stint_step *waiting(const stint_step *s)
{
	return (stint_step *)(uintptr_t)s;
}

static int merge(const stint_step *s, void *data, size_t bytes)
{
	return stint_ranks_merge(waiting(s), data, bytes);
}

/* Those that are there come to this at about the same time, each waiting for one that is not. */
static int missing(stint_step *s)
{
	enum { ANSWER_S = 10 };
	struct mpi_ranks *r = ranks_of(s);
	int64_t here = 1;
	if (r->face.patience <= 0 || r->face.patience > ANSWER_S)
		r->face.patience = ANSWER_S;
	(void)stint_ranks_most(s, &here);
	return STINT_LOST;
}

/* A rank that lends waits for { offset, bytes } of its arena; without bytes there is no more. */
static int borrow(const stint_step *s, int rank, size_t offset, void *data, size_t bytes)
{
	struct mpi_ranks *r = ranks_of(s);
	const uint64_t ask[2] = {offset, bytes};
	stint_mpi_send(r, rank, TAG_ASK, ask, sizeof ask);
	if (bytes)
		stint_mpi_take(r, rank, TAG_LEND, data, bytes);
	return wait_for_all(waiting(s));
}

static int lend(const stint_step *s)
{
	struct mpi_ranks *r = ranks_of(s);
	uint64_t ask[2];
	int rc;
	do {
		stint_mpi_take(r, 0, TAG_ASK, ask, sizeof ask);
		rc = wait_for_all(waiting(s));
		if (!rc && ask[1]) {
			void *data = s->device->hold(s, ask[0], ask[1], 1);
			if (!data)
				return fail(waiting(s), STINT_NO_MEMORY, "no memory to lend");
			stint_mpi_send(r, 0, TAG_LEND, data, ask[1]);
			rc = wait_for_all(waiting(s));
			s->device->let(s, data);
		}
	} while (!rc && ask[1]);
	return rc;
}

/* --- The same step, the same values --- */

static uint64_t mix_text(uint64_t h, const char *text)
{
	return text ? stint_mix(h, text, strlen(text) + 1) : stint_mix(h, "", 1);
}

/* What is planned and how: residents and their places, the schedule, the threads. */
static uint64_t hash_of_plan(const struct stint_model *m)
{
	const int64_t number[] = {m->version, (int64_t)m->arena_bytes, m->threads, m->shards,
		m->ranks, m->nresident, m->ntrain_steps, m->neval_steps, m->nlib, m->loss_dtype,
		(int64_t)m->loss_offset_train};
	uint64_t h = stint_mix(1, number, sizeof number);
	h = mix_text(h, m->name);
	for (int i = 0; i < m->nloss; i++)
		h = mix_text(mix_text(h, m->loss[i].name), m->loss[i].text);
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *t = &m->resident[i];
		const int64_t of[] = {t->kind, t->dtype, (int64_t)t->bytes, (int64_t)t->offset};
		h = stint_mix(mix_text(h, t->name), of, sizeof of);
	}
	for (int i = 0; i < m->ntrain_steps; i++) {
		const struct stint_step_info *step = &m->train_info[i];
		h = mix_text(mix_text(mix_text(h, step->node), step->op), *step->kernel);
	}
	return h;
}

static int is_piece(const struct stint_model *m, int resident)
{
	for (int i = 0; i < m->npiece; i++)
		if (m->piece[i].resident == resident)
			return 1;
	return 0;
}

/* What checkpoints hold, and the constants; of pieces, of which each rank has another, what file
 * they are from. */
static int hash_of_values(stint_step *s, uint64_t *hash)
{
	uint64_t h = stint_mix(2, &s->count, sizeof s->count);
	for (int i = 0; i < s->model->nresident; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		if ((t->kind == STINT_PARAMETER || t->kind == STINT_BUFFER ||
			    t->kind == STINT_STATE || t->kind == STINT_CONSTANT) &&
			!is_piece(s->model, i)) {
			void *data = s->device->hold(s, t->offset, t->bytes, 1);
			if (!data)
				return fail(s, STINT_NO_MEMORY, "no memory to look at values");
			h = stint_mix(h, data, t->bytes);
			s->device->let(s, data);
		}
	}
	h = stint_mix(h, &s->shared, sizeof s->shared);
	*hash = stint_mix(h, &s->seed, sizeof s->seed);
	return STINT_OK;
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
			stint_mpi_take(r, k, TAG_CHECK, &other, sizeof other);
			stint_mpi_send(r, k, TAG_CHECK, &hash, sizeof hash);
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
	uint64_t hash = 0;
	int odd = -1, rc = hash_of_values(s, &hash);
	if (!rc)
		rc = compare(s, hash, &odd);
	if (!rc && odd >= 0)
		rc = fail_of(s, STINT_BAD_DATA,
			"rank %d has other parameters or states than rank 0", odd);
	return rc;
}

/* --- Set-up --- */

static int allocate_requests(struct mpi_requests *q, int cap)
{
	q->request = malloc((size_t)cap * sizeof *q->request);
	q->partner = malloc((size_t)cap * sizeof *q->partner);
	q->takes = malloc((size_t)cap);
	return q->request && q->partner && q->takes;
}

static void free_requests(struct mpi_requests *q)
{
	free(q->request);
	free(q->partner);
	free(q->takes);
}

static int allocate(struct mpi_ranks *r, int steps)
{
	const size_t n = (size_t)r->face.n;
	if (stint_sums_new(&r->sums))
		return STINT_NO_MEMORY;
	r->cap = (int)stint_sums_messages(&r->sums);
	r->told = malloc(n * sizeof *r->told);
	r->count = malloc(n * sizeof *r->count);
	int all = r->told && r->count;
	for (int i = 0; i < LANES; i++)
		all = allocate_requests(&r->lane[i], r->cap) && all;
	if (!all)
		return STINT_NO_MEMORY;
	return stint_mpi_queue_open(r, steps);
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

/* All or none have what they need; the same kind of device, whose results are the same. */
static int meet(stint_step *s, unsigned char id[STINT_WORLD])
{
	char words[192] = "";
	int odd = -1;
	const int mine = s->device->world(s, ranks_of(s)->face.rank ? NULL : id, words);
	int64_t failed = mine != STINT_OK;
	const int asked = stint_ranks_most(s, &failed);
	int rc = mine ? mine : asked;
	if (!rc && failed)
		rc = fail(s, STINT_BAD_MACHINE, "another rank's NCCL does not start");
	if (!rc)
		rc = compare(s, mix_text(3, words), &odd);
	if (!rc && odd >= 0)
		rc = fail_of(s, STINT_BAD_MACHINE,
			"rank %d has another GPU, driver or cuBLASLt than rank 0: its results "
			"would be others",
			odd);
	return rc ? rc : stint_ranks_merge(s, id, STINT_WORLD);
}

static int join_devices(stint_step *s)
{
	unsigned char id[STINT_WORLD] = {0};
	if (!s->device->join)
		return STINT_OK;
	const int rc = meet(s, id);
	return rc ? rc : s->device->join(s, id);
}

int stint_init_ranks(stint_step *s, MPI_Comm comm)
{
	struct mpi_ranks *r = calloc(1, sizeof *r);
	if (!r)
		return fail(s, STINT_NO_MEMORY, "out of memory");
	MPI_Comm_rank(comm, &r->face.rank);
	MPI_Comm_size(comm, &r->face.n);
	r->face.begin = begin;
	r->face.await = await;
	r->face.finish = finish;
	r->face.missing = missing;
	r->face.merge = merge;
	r->face.lend = lend;
	r->face.borrow = borrow;
	r->comm = MPI_COMM_NULL;
	r->face.patience = 300; /* who starts late has to load its files first */
	s->ranks = &r->face;
	r->sums = (struct stint_sums){.rank = r->face.rank,
		.n = r->face.n,
		.shards = s->model->shards,
		.by = &stint_mpi_carrier,
		.user = r};
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
	if (s->model->ranks > 0 && s->model->ranks != r->face.n) {
		snprintf(s->message, sizeof s->message,
			"%d rank%s, but the step was compiled for %d: mpirun -n %d, or compile it "
			"with --ranks %d",
			r->face.n, r->face.n > 1 ? "s" : "", s->model->ranks, s->model->ranks,
			r->face.n);
		stint_free_ranks(s);
		return STINT_BAD_DATA;
	}
	if (MPI_Comm_dup(comm, &r->comm) != MPI_SUCCESS) {
		stint_free_ranks(s);
		return fail(s, STINT_LOST, "the ranks cannot reach each other");
	}
	MPI_Comm_set_errhandler(r->comm, MPI_ERRORS_RETURN);
	const struct stint_model *m = s->model;
	int rc = allocate(r, m->ntrain_steps > m->neval_steps ? m->ntrain_steps : m->neval_steps);
	if (rc)
		fail(s, rc, "out of memory");
	else
		rc = same_steps(s);
	if (!rc)
		rc = join_devices(s);
	r->face.patience = 60;
	if (rc)
		stint_free_ranks(s);
	return rc;
}

void stint_free_ranks(stint_step *s)
{
	struct mpi_ranks *r = s->ranks ? ranks_of(s) : NULL;
	if (!r)
		return;
	stint_mpi_queue_close(r);
	if (r->comm != MPI_COMM_NULL && !r->is_broken)
		MPI_Comm_free(&r->comm);
	stint_sums_free(&r->sums);
	for (int i = 0; i < LANES; i++)
		free_requests(&r->lane[i]);
	free(r->told);
	free(r->count);
	free(r);
	s->ranks = NULL;
}

void stint_ranks_patience(stint_step *s, double seconds)
{
	ranks_of(s)->face.patience = seconds;
}

void stint_ranks_fast(stint_step *s, int fast)
{
	ranks_of(s)->face.fast = fast;
}

/* --- For stint --- */

int stint_ranks_most(stint_step *s, int64_t *value)
{
	struct mpi_ranks *r = ranks_of(s);
	for (int k = 1; k < r->face.n; k++) {
		const int other = (r->face.rank + k) % r->face.n;
		stint_mpi_take(r, other, TAG_CHECK, &r->told[other], sizeof *r->told);
		stint_mpi_send(r, other, TAG_CHECK, value, sizeof *value);
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
		if (MPI_Iallreduce(MPI_IN_PLACE, (unsigned char *)data + at * size, (int)part, type,
			    op, r->comm, stint_mpi_request(r, -1)) != MPI_SUCCESS)
			return fail(s, STINT_LOST, "the ranks cannot reach each other");
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
