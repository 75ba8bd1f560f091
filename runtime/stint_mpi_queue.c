/* SPDX-License-Identifier: MIT-0 */
/* Who does what ranks do together, and when: a thread of its own, one job after the other, while
 * the step goes on (stint_mpi_inside.h). Only one thread calls MPI at a time: this one between a
 * job's coming and its being done, the step's own when there are none. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_sigmask, clock_gettime */
#endif
#include "stint_mpi_inside.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int stint_mpi_next(struct mpi_queue *q, int rows)
{
	pthread_mutex_lock(&q->lock);
	int *at = &q->next[rows];
	while (*at < q->n && (q->job[*at].is_done || (q->job[*at].is.kind == JOB_JOIN) != rows))
		(*at)++;
	const int found = *at < q->n ? *at : -1;
	pthread_mutex_unlock(&q->lock);
	return found;
}

void stint_mpi_done(struct mpi_queue *q, int at)
{
	pthread_mutex_lock(&q->lock);
	q->job[at].is_done = 1;
	q->ndone++;
	pthread_cond_signal(&q->done);
	pthread_mutex_unlock(&q->lock);
}

void stint_mpi_nap(struct mpi_queue *q, long ns)
{
	enum { SECOND = 1000000000 };
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += ns;
	end.tv_sec += end.tv_nsec / SECOND;
	end.tv_nsec %= SECOND;
	pthread_mutex_lock(&q->lock);
	if (!q->awaited && !q->quit)
		pthread_cond_timedwait(&q->more, &q->lock, &end);
	pthread_mutex_unlock(&q->lock);
}

/* Sleeps until there is something to do; 0: to end. */
static int wait_for_more(struct mpi_queue *q)
{
	pthread_mutex_lock(&q->lock);
	while (!q->quit && (q->rc || q->ndone == q->n))
		pthread_cond_wait(&q->more, &q->lock);
	const int goes_on = !q->quit;
	pthread_mutex_unlock(&q->lock);
	return goes_on;
}

static void *work(void *user)
{
	struct mpi_ranks *r = user;
	struct mpi_queue *q = &r->queue;
	long ns = STINT_MPI_REST_NS;
	while (wait_for_more(q)) {
		const int at = stint_mpi_next(q, 0);
		const int rc = at >= 0 ? stint_mpi_do(r, &q->job[at].is) : stint_mpi_rows(r);
		if (!rc && at >= 0)
			stint_mpi_done(q, at);
		if (rc) {
			pthread_mutex_lock(&q->lock);
			q->rc = rc;
			pthread_cond_signal(&q->done);
			pthread_mutex_unlock(&q->lock);
		}
		if (at < 0 && stint_mpi_next(q, 1) >= 0)
			stint_mpi_rest(r, &ns);
		else
			ns = STINT_MPI_REST_NS;
	}
	stint_mpi_rows_drop(r);
	return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(struct mpi_ranks *r)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int rc = pthread_create(&r->queue.thread, NULL, work, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0;
}

int stint_mpi_queue_open(struct mpi_ranks *r, int jobs)
{
	struct mpi_queue *q = &r->queue;
	int given = MPI_THREAD_SINGLE;
	q->cap = jobs;
	q->job = calloc((size_t)jobs + 1, sizeof *q->job);
	if (!q->job)
		return STINT_NO_MEMORY;
	pthread_condattr_t steady;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(&q->more, &steady);
	pthread_condattr_destroy(&steady);
	pthread_cond_init(&q->done, NULL);
	MPI_Query_thread(&given);
	q->is_running = r->face.n > 1 && given >= MPI_THREAD_SERIALIZED && start_thread(r);
	return STINT_OK;
}

void stint_mpi_queue_give_up(struct mpi_ranks *r)
{
	struct mpi_queue *q = &r->queue;
	pthread_mutex_lock(&q->lock);
	const int had = q->rc;
	q->quit = 1;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
	if (q->is_running)
		pthread_join(q->thread, NULL);
	q->is_running = 0;
	if (!had)
		snprintf(r->message, sizeof r->message, "a step has failed in this rank");
	q->rc = STINT_LOST;
}

int stint_mpi_queue_skip(struct mpi_ranks *r)
{
	struct mpi_queue *q = &r->queue;
	if (r->face.n > 1 || q->rc)
		return 0;
	q->n = q->ndone = q->next[0] = q->next[1] = 0;
	return 1;
}

void stint_mpi_queue_close(struct mpi_ranks *r)
{
	struct mpi_queue *q = &r->queue;
	if (!q->job)
		return;
	stint_mpi_queue_give_up(r);
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->done);
	pthread_mutex_destroy(&q->lock);
	free(q->job);
	q->job = NULL;
}

int stint_mpi_begin(struct mpi_ranks *r, const struct stint_job *j)
{
	struct mpi_queue *q = &r->queue;
	int rc;
	pthread_mutex_lock(&q->lock);
	rc = q->n < q->cap ? q->rc : STINT_LOST;
	if (!rc)
		q->job[q->n++] = (struct mpi_job){.is = *j};
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
	if (!rc && !q->is_running) {
		rc = q->rc = stint_mpi_do(r, j);
		if (!rc)
			stint_mpi_done(q, q->n - 1);
	}
	return rc;
}

int stint_mpi_await(struct mpi_ranks *r, const void *y)
{
	struct mpi_queue *q = &r->queue;
	pthread_mutex_lock(&q->lock);
	int at = q->n - 1;
	while (y && at >= 0 && q->job[at].is.y != y)
		at--;
	if (y && at < 0 && !q->rc) {
		snprintf(r->message, sizeof r->message, "what is waited for was never begun");
		q->rc = STINT_LOST;
	}
	q->awaited = 1;
	pthread_cond_signal(&q->more);
	while (!q->rc && (y ? !q->job[at].is_done : q->ndone < q->n))
		pthread_cond_wait(&q->done, &q->lock);
	q->awaited = 0;
	const int rc = q->rc;
	if (!y && !rc)
		q->n = q->ndone = q->next[0] = q->next[1] = 0;
	pthread_mutex_unlock(&q->lock);
	return rc;
}
