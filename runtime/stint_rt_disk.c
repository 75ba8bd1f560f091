/* SPDX-License-Identifier: MIT-0 */
/* Residents in a file: see struct stint_disk. A thread of its own makes the copies of a step, one
 * after the other as they were begun, while the step goes on. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE */
#endif
#include "safetensors.h"
#include "stint_schedule.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct copy {
	unsigned char *memory;
	size_t bytes;
	int fd; /* the file, and where in it */
	uint64_t from;
	int store;
	int error;   /* an errno; 0: none */
	int waiting; /* begun, and not done yet */
};

/* The file that a resident is read from; fd -1: the step's own. */
struct lender {
	int fd;
	uint64_t at;
};

struct disk {
	int fd;
	struct lender *lender; /* [model->nresident] */
	int locked, threaded;  /* what there is to be undone */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t begun, done;
	int ncopy;            /* the model's, or 1 */
	struct copy *copy;    /* [ncopy] */
	int *queue, first, n; /* a ring of so many places: numbers of copies */
	int quit;
};

/* --- The file --- */

static int failed(stint_step *s, const char *what, int error)
{
	snprintf(s->message, sizeof s->message, "%s the file in %.100s: %s", what,
		s->model->disk_folder, strerror(error));
	return STINT_BAD_FILE;
}

/* Returns an errno. */
static int move(int fd, int store, unsigned char *memory, size_t bytes, uint64_t from)
{
	return store ? safetensors_write_at(fd, memory, bytes, from)
		     : safetensors_read_at(fd, memory, bytes, from);
}

/* Without a name: nobody else finds it, and it ends with the process, however that ends. */
static int open_unnamed(const char *folder)
{
	int fd = -1;
#ifdef O_TMPFILE
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
#endif
	const size_t size = strlen(folder) + sizeof "/stint-XXXXXX";
	char *name = malloc(size);
	if (!name)
		return -1;
	snprintf(name, size, "%s/stint-XXXXXX", folder);
	fd = mkstemp(name);
	if (fd >= 0)
		unlink(name);
	free(name);
	return fd;
}

static int no_room(stint_step *s, int error)
{
	snprintf(s->message, sizeof s->message, "cannot make a file of %zu bytes in %.100s: %s",
		s->model->disk_bytes, s->model->disk_folder, strerror(error));
	return STINT_BAD_FILE;
}

/* Returns an errno. */
static int take_room(const struct disk *d, size_t from, size_t bytes)
{
	return bytes ? posix_fallocate(d->fd, (off_t)from, (off_t)bytes) : 0;
}

static int make_file(stint_step *s, struct disk *d)
{
	const struct stint_model *m = s->model;
	d->fd = open_unnamed(m->disk_folder);
	if (d->fd < 0)
		return failed(s, "cannot make", errno);
	if (ftruncate(d->fd, (off_t)m->disk_bytes) != 0)
		return no_room(s, errno);
	size_t behind = 0; /* what lasts over steps: what waits in a step has its place there */
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *t = &m->resident[i];
		if (t->offset < m->arena_bytes)
			continue;
		const size_t first = t->offset - m->arena_bytes;
		behind = first + t->bytes > behind ? first + t->bytes : behind;
		const int error = stint_rt_lendable(m, t) ? 0 : take_room(d, first, t->bytes);
		if (error)
			return no_room(s, error);
	}
	const int error = take_room(d, behind, m->disk_bytes - behind);
	return error ? no_room(s, error) : STINT_OK;
}

/* Which resident has this byte of the file; -1: none. */
static int resident_at(const stint_step *s, size_t from)
{
	const struct stint_model *m = s->model;
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *t = &m->resident[i];
		const size_t first = t->offset - m->arena_bytes;
		if (t->offset >= m->arena_bytes && from >= first && from - first < t->bytes)
			return i;
	}
	return -1;
}

/* Where that byte is read; the file. */
static int lent_at(const stint_step *s, int resident, uint64_t *from)
{
	const struct disk *d = s->disk;
	if (resident < 0 || d->lender[resident].fd < 0)
		return d->fd;
	const struct lender *l = &d->lender[resident];
	const struct stint_tensor *t = &s->model->resident[resident];
	*from = l->at + (*from - (t->offset - s->model->arena_bytes));
	return l->fd;
}

static void forget(struct lender *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

static int lend(stint_step *s, int resident, int fd, uint64_t at)
{
	struct disk *d = s->disk;
	const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return failed(s, "cannot read beside", errno);
	forget(&d->lender[resident]);
	d->lender[resident] = (struct lender){own, at};
	return STINT_OK;
}

/* Something is written to a part of it: all the rest comes to the step's own file first. */
static int take_back(const stint_step *s, int resident)
{
	enum { PART = 1 << 20 };
	struct disk *d = s->disk;
	const struct stint_tensor *t = &s->model->resident[resident];
	unsigned char *part = malloc(PART);
	int error = part ? 0 : ENOMEM;
	for (size_t at = 0; at < t->bytes && !error; at += PART) {
		const size_t n = t->bytes - at < PART ? t->bytes - at : PART;
		const uint64_t home = t->offset - s->model->arena_bytes + at;
		error = move(d->lender[resident].fd, 0, part, n, d->lender[resident].at + at);
		error = error ? error : move(d->fd, 1, part, n, home);
	}
	free(part);
	if (!error)
		forget(&d->lender[resident]);
	return error;
}

/* --- Copies --- */

static void *copy_all(void *of)
{
	struct disk *d = of;
	pthread_mutex_lock(&d->lock);
	for (;;) {
		while (!d->n && !d->quit)
			pthread_cond_wait(&d->begun, &d->lock);
		if (!d->n)
			break;
		struct copy *c = &d->copy[d->queue[d->first]];
		pthread_mutex_unlock(&d->lock);
		const int error = move(c->fd, c->store, c->memory, c->bytes, c->from);
		pthread_mutex_lock(&d->lock);
		c->error = error;
		c->waiting = 0;
		d->first = (d->first + 1) % d->ncopy;
		d->n--;
		pthread_cond_broadcast(&d->done);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static int await(stint_step *s, struct disk *d, struct copy *c)
{
	pthread_mutex_lock(&d->lock);
	while (c->waiting)
		pthread_cond_wait(&d->done, &d->lock);
	const int error = c->error;
	c->error = 0;
	pthread_mutex_unlock(&d->lock);
	return error ? failed(s, c->store ? "cannot write" : "cannot read", error) : STINT_OK;
}

static int begin(stint_step *s, const struct stint_copy *wanted, int store)
{
	struct disk *d = s->disk;
	struct copy *c = &d->copy[wanted->number];
	uint64_t place = wanted->from;
	const int fd = lent_at(s, resident_at(s, wanted->from), &place);
	const int rc = await(s, d, c); /* as a rule it has been waited for */
	if (rc)
		return rc;
	pthread_mutex_lock(&d->lock);
	*c = (struct copy){s->arena + wanted->at, wanted->bytes, fd, place, store, 0, 1};
	d->queue[(d->first + d->n++) % d->ncopy] = wanted->number;
	pthread_cond_signal(&d->begun);
	pthread_mutex_unlock(&d->lock);
	return STINT_OK;
}

int stint_disk_fetch(stint_step *s, const struct stint_copy *c)
{
	return begin(s, c, 0);
}

int stint_disk_store(stint_step *s, const struct stint_copy *c)
{
	return begin(s, c, 1);
}

int stint_disk_wait(stint_step *s, const struct stint_copy *c)
{
	struct disk *d = s->disk;
	return await(s, d, &d->copy[c->number]);
}

static int settle(stint_step *s)
{
	struct disk *d = s->disk;
	int rc = STINT_OK;
	for (int i = 0; i < s->model->ncopy; i++) {
		const int one = await(s, d, &d->copy[i]);
		rc = rc ? rc : one;
	}
	return rc;
}

/* --- Open and close --- */

/* Signals are for the program's own threads. */
static int start_thread(struct disk *d)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	d->threaded = !pthread_create(&d->thread, NULL, copy_all, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return d->threaded;
}

static int open_here(stint_step *s)
{
	struct disk *d = calloc(1, sizeof *d);
	if (!d)
		return stint_rt_no_memory(s);
	s->disk = d;
	d->fd = -1;
	d->ncopy = s->model->ncopy > 0 ? s->model->ncopy : 1;
	d->copy = calloc((size_t)d->ncopy, sizeof *d->copy);
	d->queue = calloc((size_t)d->ncopy, sizeof *d->queue);
	d->lender = calloc((size_t)s->model->nresident, sizeof *d->lender);
	for (int i = 0; d->lender && i < s->model->nresident; i++)
		d->lender[i].fd = -1;
	if (!d->copy || !d->queue || !d->lender)
		return stint_rt_no_memory(s);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->begun, NULL);
	pthread_cond_init(&d->done, NULL);
	d->locked = 1;
	const int rc = make_file(s, d);
	return rc ? rc : start_thread(d) ? STINT_OK : stint_rt_no_memory(s);
}

static void close_here(stint_step *s)
{
	struct disk *d = s->disk;
	if (!d)
		return;
	if (d->threaded) {
		pthread_mutex_lock(&d->lock);
		d->quit = 1;
		pthread_cond_signal(&d->begun);
		pthread_mutex_unlock(&d->lock);
		pthread_join(d->thread, NULL);
	}
	if (d->locked) {
		pthread_cond_destroy(&d->done);
		pthread_cond_destroy(&d->begun);
		pthread_mutex_destroy(&d->lock);
	}
	if (d->fd >= 0)
		close(d->fd);
	for (int i = 0; d->lender && i < s->model->nresident; i++)
		forget(&d->lender[i]);
	free(d->lender);
	free(d->queue);
	free(d->copy);
	free(d);
	s->disk = NULL;
}

/* Between steps: nothing is on its way then. */
static int move_here(stint_step *s, int store, size_t offset, void *data, size_t bytes)
{
	struct disk *d = s->disk;
	uint64_t from = offset - s->model->arena_bytes;
	if (bytes == 0)
		return STINT_OK;
	const int i = resident_at(s, (size_t)from);
	int error = store && i >= 0 && d->lender[i].fd >= 0 ? take_back(s, i) : 0;
	if (!error) {
		const int fd = store ? d->fd : lent_at(s, i, &from);
		error = move(fd, store, data, bytes, from);
	}
	return error ? failed(s, store ? "cannot write" : "cannot read", error) : STINT_OK;
}

static int read_here(stint_step *s, size_t offset, void *data, size_t bytes)
{
	return move_here(s, 0, offset, data, bytes);
}

static int write_here(stint_step *s, size_t offset, const void *data, size_t bytes)
{
	return move_here(s, 1, offset, (void *)(uintptr_t)data, bytes);
}

const struct stint_disk stint_rt_disk = {.open = open_here,
	.close = close_here,
	.read = read_here,
	.write = write_here,
	.lend = lend,
	.settle = settle};
