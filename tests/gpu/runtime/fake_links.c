/* See fake_links.h. Each rank listens at a socket in the folder, named by its number, and connects
 * to those of lower ranks. */
#include "fake_links.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MEET_MS = 60000, RETRY_MS = 2 };

/* --- Meeting --- */

static struct {
	char path[128];
	pid_t maker; /* a fork's end is not this process's */
} made;

__attribute__((destructor)) static void links_end(void)
{
	if (made.path[0] && made.maker == getpid())
		rmdir(made.path);
}

int links_place(char *path, size_t room)
{
	const char *const tmp[] = {getenv("TMPDIR"), "/tmp"};
	const size_t longest = sizeof((struct sockaddr_un *)0)->sun_path - 8; /* "/" and a rank */
	for (int i = 0; i < 2; i++) {
		const int n = tmp[i] ? snprintf(path, room, "%s/stint-nccl.XXXXXX", tmp[i]) : 0;
		if (n <= 0 || (size_t)n >= room || (size_t)n >= longest || !mkdtemp(path))
			continue;
		links_end();
		snprintf(made.path, sizeof made.path, "%s", path);
		made.maker = getpid();
		return 0;
	}
	return -1;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int address_of(const char *place, int rank, struct sockaddr_un *out)
{
	memset(out, 0, sizeof *out);
	out->sun_family = AF_UNIX;
	const int n = snprintf(out->sun_path, sizeof out->sun_path, "%s/%d", place, rank);
	return n > 0 && (size_t)n < sizeof out->sun_path ? 0 : -1;
}

static int socket_new(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int listen_at(const char *place, int n, int rank)
{
	struct sockaddr_un a;
	const int fd = socket_new();
	if (fd >= 0 && !address_of(place, rank, &a) && !bind(fd, (struct sockaddr *)&a, sizeof a) &&
		!listen(fd, n))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Reads do not wait for ever. */
static int all_read(int fd, void *data, size_t bytes)
{
	const struct timeval limit = {MEET_MS / 1000, 0};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	return recv(fd, data, bytes, MSG_WAITALL) == (ssize_t)bytes ? 0 : -1;
}

static int all_write(int fd, const void *data, size_t bytes)
{
	return send(fd, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : -1;
}

static int connect_to(const char *place, int rank, int64_t until)
{
	struct sockaddr_un a;
	const int fd = socket_new();
	int error = fd < 0 || address_of(place, rank, &a);
	while (!error && connect(fd, (struct sockaddr *)&a, sizeof a)) {
		error = (errno != ENOENT && errno != ECONNREFUSED && errno != EINTR) ||
			now_ms() > until;
		poll(NULL, 0, RETRY_MS);
	}
	if (!error)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

struct hello {
	int n, rank;
};

/* One of the ranks above, whichever comes. */
static int accept_one(int at, int n, int rank, int *fd, int64_t until)
{
	struct pollfd p = {.fd = at, .events = POLLIN};
	struct hello h;
	const int64_t left = until - now_ms();
	if (poll(&p, 1, left > 0 ? (int)left : 0) != 1)
		return -1;
	const int other = accept4(at, NULL, NULL, SOCK_CLOEXEC);
	if (other < 0)
		return -1;
	if (!all_read(other, &h, sizeof h) && h.n == n && h.rank > rank && h.rank < n &&
		fd[h.rank] < 0) {
		fd[h.rank] = other;
		return 0;
	}
	close(other);
	return -1;
}

static int join(const char *place, int n, int rank, int *fd, int at)
{
	const int64_t until = now_ms() + MEET_MS;
	const struct hello h = {n, rank};
	for (int i = 0; i < rank; i++) {
		fd[i] = connect_to(place, i, until);
		if (fd[i] < 0 || all_write(fd[i], &h, sizeof h))
			return -1;
	}
	for (int i = rank + 1; i < n; i++)
		if (accept_one(at, n, rank, fd, until))
			return -1;
	return 0;
}

/* Everyone has come, and has removed its own name. */
static int everyone(int n, int rank, const int *fd)
{
	char byte = 1;
	for (int i = 0; i < n; i++)
		if (i != rank && all_write(fd[i], &byte, 1))
			return -1;
	for (int i = 0; i < n; i++)
		if (i != rank && (all_read(fd[i], &byte, 1) || fcntl(fd[i], F_SETFL, O_NONBLOCK)))
			return -1;
	return 0;
}

int links_open(const char *place, int n, int rank, int *fd)
{
	struct sockaddr_un own;
	for (int i = 0; i < n; i++)
		fd[i] = -1;
	const int at = listen_at(place, n, rank);
	int error = at < 0 || join(place, n, rank, fd, at);
	if (at >= 0)
		close(at);
	if (at >= 0 && !address_of(place, rank, &own))
		unlink(own.sun_path);
	error = error || everyone(n, rank, fd);
	if (rank == 0 || error)
		rmdir(place);
	if (error)
		links_close(n, fd);
	if (!strcmp(place, made.path))
		made.path[0] = 0;
	return error ? -1 : 0;
}

void links_close(int n, int *fd)
{
	for (int i = 0; i < n; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

/* --- Messages --- */

static void head_check(const struct links_move *m)
{
	if (m->head.bytes == m->bytes && m->head.kind == (uint64_t)m->kind)
		return;
	fprintf(stderr,
		"stand-in for NCCL: waits for %zu bytes (kind %d) from rank %d, which sent %llu "
		"(kind %llu)\n",
		m->bytes, m->kind, m->peer, (unsigned long long)m->head.bytes,
		(unsigned long long)m->head.kind);
	abort();
}

/* 1: all of it; 0: no more now; -1: the other is gone. */
static int advance(int fd, struct links_move *m)
{
	const size_t head = sizeof m->head;
	while (m->done < head + m->bytes) {
		const int in_head = m->done < head;
		char *const at = in_head ? (char *)&m->head + m->done
					 : (char *)m->data + (m->done - head);
		const size_t left = (in_head ? head : head + m->bytes) - m->done;
		const ssize_t n = m->out ? send(fd, at, left, MSG_NOSIGNAL) : recv(fd, at, left, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n <= 0)
			return -1;
		m->done += (size_t)n;
		if (in_head && m->done == head && !m->out)
			head_check(m);
	}
	return 1;
}

/* What comes next between this rank and a peer, one way. */
static int next_of(const struct links_move *list, int count, int from, int peer, int out)
{
	while (from < count && (list[from].peer != peer || list[from].out != out))
		from++;
	return from;
}

/* What of each way to each peer is next: at[2 peer + out]. */
struct flow {
	int n, count, *at;
	const int *fd;
	struct links_move *list;
	struct pollfd *ask;
};

/* -1: a peer is gone; else so many ways are not done yet. */
static int turn(struct flow *f)
{
	int left = 0;
	for (int way = 0; way < 2 * f->n; way++) {
		const int peer = way / 2, out = way % 2;
		int state = 1;
		while (f->at[way] < f->count && state == 1) {
			state = advance(f->fd[peer], &f->list[f->at[way]]);
			if (state < 0)
				return -1;
			if (state)
				f->at[way] = next_of(f->list, f->count, f->at[way] + 1, peer, out);
		}
		left += f->at[way] < f->count;
	}
	return left;
}

/* Something can come or go, or nothing does for so long. */
static int ready(struct flow *f, int ms)
{
	int n;
	for (int i = 0; i < f->n; i++) {
		const int in = f->at[2 * i] < f->count, out = f->at[2 * i + 1] < f->count;
		f->ask[i].fd = in || out ? f->fd[i] : -1;
		f->ask[i].events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
	}
	do
		n = poll(f->ask, (nfds_t)f->n, ms);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

enum links_end links_move(int n, const int *fd, struct links_move *list, int count, int ms)
{
	struct flow f = {n, count, calloc((size_t)n * 2, sizeof *f.at), fd, list,
		calloc((size_t)n, sizeof *f.ask)};
	int left, late = 0;
	for (int i = 0; i < count; i++)
		if (list[i].out)
			list[i].head = (struct links_head){list[i].bytes, (uint64_t)list[i].kind};
	for (int way = 0; way < 2 * n; way++)
		f.at[way] = next_of(list, count, 0, way / 2, way % 2);
	while ((left = turn(&f)) > 0 && !late)
		late = !ready(&f, ms);
	free(f.at);
	free(f.ask);
	return left < 0 ? LINKS_GONE : late ? LINKS_LATE : LINKS_DONE;
}
