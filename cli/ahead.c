#include "cli/ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct ahead {
	ahead_read *read;
	void *user;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool busy, ready, end;
	/* the thread's while busy, else the caller's */
	int64_t n, *asked, *index;
	int rc;
	char message[256];
};

static void *work(void *user)
{
	struct ahead *a = user;
	pthread_mutex_lock(&a->lock);
	while (!a->end) {
		if (!a->busy) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		a->rc = a->read(a->user, a->index, a->n, a->message);
		pthread_mutex_lock(&a->lock);
		a->busy = false;
		a->ready = true;
		pthread_cond_broadcast(&a->changed);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Signals go to the thread that knows what to do with them. */
static int start(struct ahead *a)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int rc = pthread_create(&a->thread, NULL, work, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void release(struct ahead *a)
{
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a->asked);
	free(a->index);
	free(a);
}

struct ahead *ahead_new(ahead_read *read, void *user, int64_t most)
{
	struct ahead *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->read = read;
	a->user = user;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	a->asked = malloc((size_t)most * sizeof *a->asked);
	a->index = malloc((size_t)most * sizeof *a->index);
	if (a->asked && a->index && !start(a))
		return a;
	release(a);
	return NULL;
}

/* Holds the lock when it returns. */
static void wait_idle(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	while (a->busy)
		pthread_cond_wait(&a->changed, &a->lock);
}

void ahead_free(struct ahead *a)
{
	if (!a)
		return;
	wait_idle(a);
	a->end = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	release(a);
}

void ahead_begin(struct ahead *a, const int64_t *index, int64_t n)
{
	wait_idle(a);
	memcpy(a->asked, index, (size_t)n * sizeof *index);
	memcpy(a->index, index, (size_t)n * sizeof *index);
	a->n = n;
	a->ready = false;
	a->busy = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

bool ahead_take(struct ahead *a, const int64_t *index, int64_t n, int *rc, char message[256])
{
	wait_idle(a);
	const bool taken = a->ready && a->n == n &&
			   !memcmp(a->asked, index, (size_t)n * sizeof *index);
	a->ready = false;
	*rc = a->rc;
	if (taken && a->rc)
		memcpy(message, a->message, sizeof a->message);
	pthread_mutex_unlock(&a->lock);
	return taken;
}
