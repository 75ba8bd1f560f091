/* A stand-in for libnccl.so.2: one process for each rank, joined by sockets (fake_links.c). A group
 * is one piece of work on the stand-in driver's streams, and all of its messages go at once. What a
 * real NCCL would do something undefined about ends the program. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_later.h"
#include "fake_links.h"
#include "runtime/stint_gpu_api.h"

#define GPU_PROTOTYPE(type, name, parameters) type name parameters;
GPU_NCCL(GPU_PROTOTYPE)

enum { CUDA_ERROR = 1, SYSTEM_ERROR, INTERNAL_ERROR, BAD_ARGUMENT, BAD_USAGE, REMOTE_ERROR };

enum { VERSION = 22703, LATE_MS = 20000 };

enum op_kind { SEND, RECEIVE, SUM };

struct op {
	enum op_kind kind;
	const char *from;
	char *to;
	size_t bytes;
	int type, peer;
};

struct group {
	struct group *next;
	int n;
	struct op op[];
};

/* Never freed: graphs may outlive it. Its groups are kept as long as it lives, for their replays.
 */
struct comm {
	struct comm *next;
	enum { LIVE, DESTROYED, ABORTED } state;
	int n, rank, *fd;
	int hung, async;
	struct group *groups;
};

static struct comm *comms;
static char last[256];

/* What has begun with ncclGroupStart; one thread calls at a time, as with the other stand-ins. */
static struct {
	int depth, error, n;
	struct comm *comm;
	void *stream;
	struct op *op;
} open_group;

static int refuse(int result, const char *why)
{
	snprintf(last, sizeof last, "%s", why);
	if (open_group.depth > 0 && !open_group.error)
		open_group.error = result;
	return result;
}

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "stand-in for NCCL: %s\n", why);
	abort();
}

int ncclGetVersion(int *version)
{
	*version = VERSION;
	return 0;
}

const char *ncclGetErrorString(int result)
{
	static const char *const text[] = {"no error", "unhandled cuda error",
		"unhandled system error", "internal error", "invalid argument", "invalid usage",
		"remote process exited or there was a network error", "NCCL operation in progress"};
	return result >= 0 && result < (int)(sizeof text / sizeof *text) ? text[result]
									 : "unknown result code";
}

const char *ncclGetLastError(void *comm)
{
	(void)comm;
	return last;
}

/* --- Work --- */

static size_t bytes_of(int type)
{
	return type == GPU_NCCL_UINT8    ? 1
	       : type == GPU_NCCL_FLOAT  ? sizeof(float)
	       : type == GPU_NCCL_DOUBLE ? sizeof(double)
					 : 0;
}

struct moves {
	int n;
	struct links_move *list;
	char **parts; /* of a sum: what each rank has, in the ranks' order */
};

static void move_add(struct moves *m, const struct op *op, int peer, int out, void *data)
{
	m->list[m->n++] = (struct links_move){.peer = peer,
		.out = out,
		.kind = op->kind == SUM,
		.data = data,
		.bytes = op->bytes};
}

/* Each rank's part goes to all others. The sum may stand in the place of the own one. */
static void sum_begin(const struct comm *c, struct moves *m, const struct op *op, char **parts)
{
	*parts = malloc(op->bytes * (size_t)c->n + 1);
	memcpy(*parts + (size_t)c->rank * op->bytes, op->from, op->bytes);
	memset(op->to, 0xff, op->bytes);
	for (int i = 0; i < c->n; i++)
		if (i != c->rank) {
			move_add(m, op, i, 1, *parts + (size_t)c->rank * op->bytes);
			move_add(m, op, i, 0, *parts + (size_t)i * op->bytes);
		}
}

static void sum_end(const struct comm *c, const struct op *op, const char *parts)
{
	const size_t unit = bytes_of(op->type);
	for (size_t at = 0; at < op->bytes; at += unit) {
		double d = 0, x;
		float f = 0, y;
		for (int i = 0; i < c->n; i++)
			if (op->type == GPU_NCCL_DOUBLE) {
				memcpy(&x, parts + (size_t)i * op->bytes + at, sizeof x);
				d = i ? d + x : x;
			} else {
				memcpy(&y, parts + (size_t)i * op->bytes + at, sizeof y);
				f = i ? f + y : y;
			}
		if (op->type == GPU_NCCL_DOUBLE)
			memcpy(op->to + at, &d, sizeof d);
		else
			memcpy(op->to + at, &f, sizeof f);
	}
}

/* The receive of a group that belongs to a send to oneself: as many before it. */
static const struct op *own_receive(const struct comm *c, const struct group *g, int nth)
{
	for (int i = 0; i < g->n; i++)
		if (g->op[i].kind == RECEIVE && g->op[i].peer == c->rank && nth-- == 0)
			return &g->op[i];
	return NULL;
}

static void own_copies(const struct comm *c, const struct group *g)
{
	int nth = 0;
	for (int i = 0; i < g->n; i++) {
		const struct op *op = &g->op[i];
		if (op->kind != SEND || op->peer != c->rank)
			continue;
		const struct op *to = own_receive(c, g, nth++);
		if (to->bytes > 0)
			memcpy(to->to, op->from, to->bytes);
	}
}

static void group_begin(const struct comm *c, const struct group *g, struct moves *m)
{
	const size_t most = (size_t)g->n * 2 * (size_t)c->n;
	m->n = 0;
	m->list = calloc(most, sizeof *m->list);
	m->parts = calloc((size_t)g->n, sizeof *m->parts);
	for (int i = 0; i < g->n; i++) {
		const struct op *op = &g->op[i];
		if (op->kind == SUM)
			sum_begin(c, m, op, &m->parts[i]);
		else if (op->kind == RECEIVE && op->bytes > 0)
			memset(op->to, 0xff, op->bytes); /* NaN until it is there */
		if (op->kind == SEND && op->peer != c->rank) {
			union {
				const char *from;
				void *data;
			} it = {op->from};
			move_add(m, op, op->peer, 1, it.data);
		} else if (op->kind == RECEIVE && op->peer != c->rank)
			move_add(m, op, op->peer, 0, op->to);
	}
}

static void group_end(const struct comm *c, const struct group *g, struct moves *m, int done)
{
	if (done)
		own_copies(c, g);
	for (int i = 0; i < g->n; i++) {
		if (done && g->op[i].kind == SUM)
			sum_end(c, &g->op[i], m->parts[i]);
		free(m->parts[i]);
	}
	free(m->parts);
	free(m->list);
}

struct ticket {
	struct comm *comm;
	const struct group *group;
};

/* When its turn comes. */
static void work(void *data)
{
	struct ticket t;
	struct moves m;
	memcpy(&t, data, sizeof t);
	const char *ms = getenv("STINT_FAKE_NCCL_MS");
	struct comm *c = t.comm;
	if (c->state == ABORTED)
		return;
	if (c->state == DESTROYED)
		die("work of a communicator that was destroyed");
	group_begin(c, t.group, &m);
	const enum links_end end = links_move(
		c->n, c->fd, m.list, m.n, ms && *ms ? atoi(ms) : LATE_MS);
	group_end(c, t.group, &m, end == LINKS_DONE);
	if (end == LINKS_DONE)
		return;
	if (end == LINKS_GONE)
		c->async = REMOTE_ERROR;
	struct fake *driver = fake_driver("fake");
	driver->hung = c->hung = 1;
}

/* --- Groups --- */

static int overlap(const char *a, size_t na, const char *b, size_t nb)
{
	const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
	return na > 0 && nb > 0 && x < y + nb && y < x + na;
}

/* Whether `a` writes what `b` reads or writes; a sum may be in place. */
static int race(const struct op *a, const struct op *b)
{
	if (a->kind == SEND || (a == b && (a->kind != SUM || a->from == a->to)))
		return 0;
	return (b->kind != RECEIVE && overlap(a->to, a->bytes, b->from, b->bytes)) ||
	       (b->kind != SEND && a != b && overlap(a->to, a->bytes, b->to, b->bytes));
}

static void races_look(const struct op *op, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			if (race(&op[i], &op[k]))
				die("a group receives where it sends or receives, too: a race");
}

/* Sends to oneself have a receive each. */
static int own_match(const struct comm *c, const struct group *g)
{
	int nth = 0, receives = 0;
	for (int i = 0; i < g->n; i++) {
		const struct op *op = &g->op[i];
		receives += op->kind == RECEIVE && op->peer == c->rank;
		if (op->kind != SEND || op->peer != c->rank)
			continue;
		const struct op *to = own_receive(c, g, nth++);
		if (!to || to->bytes != op->bytes)
			return 0;
	}
	return nth == receives;
}

static int group_give(struct comm *c, void *stream, const struct op *op, int n)
{
	const size_t bytes = (size_t)n * sizeof *op;
	struct group *g = malloc(sizeof *g + bytes);
	g->n = n;
	memcpy(g->op, op, bytes);
	g->next = c->groups;
	c->groups = g;
	races_look(op, n);
	if (!own_match(c, g))
		return refuse(BAD_USAGE, "a send to oneself without its receive");
	const struct ticket t = {c, g};
	return fake_later(stream, work, &t, sizeof t)
		       ? refuse(CUDA_ERROR, "the stream does not take it")
		       : 0;
}

int ncclGroupStart(void)
{
	open_group.depth++;
	return 0;
}

int ncclGroupEnd(void)
{
	if (open_group.depth < 1)
		return refuse(BAD_USAGE, "ncclGroupEnd without ncclGroupStart");
	if (--open_group.depth > 0)
		return 0;
	int error = open_group.error;
	if (!error && open_group.n > 0)
		error = group_give(open_group.comm, open_group.stream, open_group.op, open_group.n);
	free(open_group.op);
	memset(&open_group, 0, sizeof open_group);
	return error;
}

static int group_add(const struct op *op, struct comm *c, void *stream)
{
	if (open_group.n > 0 && (open_group.comm != c || open_group.stream != stream))
		return refuse(BAD_USAGE, "a group is of one communicator and one stream");
	const size_t bytes = (size_t)(open_group.n + 1) * sizeof *op;
	open_group.op = realloc(open_group.op, bytes);
	open_group.op[open_group.n++] = *op;
	open_group.comm = c;
	open_group.stream = stream;
	return 0;
}

/* --- Calls --- */

static struct comm *live(void *comm)
{
	struct comm *c = comm;
	return c && c->state == LIVE ? c : NULL;
}

static int give(struct op op, size_t count, struct comm *c, void *stream)
{
	const size_t unit = bytes_of(op.type);
	if (!live(c) || !stream)
		return refuse(BAD_ARGUMENT, "no communicator, or no stream");
	if (c->async)
		return refuse(c->async, "another rank is gone");
	if (!fake_in_context())
		return refuse(CUDA_ERROR, "no current context");
	if (op.kind != SUM && (op.peer < 0 || op.peer >= c->n))
		return refuse(BAD_ARGUMENT, "no such rank");
	if (!unit || count > SIZE_MAX / 2 / unit)
		return refuse(BAD_ARGUMENT, "a type or a number that means nothing here");
	if (count && ((op.kind != RECEIVE && !op.from) || (op.kind != SEND && !op.to)))
		return refuse(BAD_ARGUMENT, "no buffer");
	op.bytes = count * unit;
	if (open_group.depth > 0)
		return group_add(&op, c, stream);
	return group_give(c, stream, &op, 1);
}

int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
	const struct op op = {.kind = SEND, .from = from, .type = type, .peer = peer};
	return give(op, count, comm, stream);
}

int ncclRecv(void *to, size_t count, int type, int peer, void *comm, void *stream)
{
	const struct op op = {.kind = RECEIVE, .to = to, .type = type, .peer = peer};
	return give(op, count, comm, stream);
}

int ncclAllReduce(
	const void *from, void *to, size_t count, int type, int how, void *comm, void *stream)
{
	const struct op op = {.kind = SUM, .from = from, .to = to, .type = type, .peer = -1};
	if (how != GPU_NCCL_SUM || type == GPU_NCCL_UINT8)
		return refuse(BAD_ARGUMENT, "sums of float and double, and nothing else");
	return give(op, count, comm, stream);
}

/* --- Communicators --- */

/* "nccl" in STINT_FAKE_FAIL: nothing can be begun. */
static int told_to_fail(void)
{
	const char *who = getenv("STINT_FAKE_FAIL");
	return who && !strcmp(who, "nccl");
}

int ncclGetUniqueId(ncclUniqueId *out)
{
	memset(out, 0, sizeof *out);
	if (told_to_fail())
		return refuse(SYSTEM_ERROR, "the stand-in was told to fail");
	if (links_place(out->internal, sizeof out->internal))
		return refuse(SYSTEM_ERROR, "no folder to meet in");
	return 0;
}

int ncclCommInitRank(void **out, int n, ncclUniqueId id, int rank)
{
	if (!out || n < 1 || rank < 0 || rank >= n || !id.internal[0] ||
		!memchr(id.internal, 0, sizeof id.internal))
		return refuse(BAD_ARGUMENT, "no such rank, or no name of the others");
	if (told_to_fail())
		return refuse(SYSTEM_ERROR, "the stand-in was told to fail");
	if (!fake_in_context())
		return refuse(CUDA_ERROR, "no current context");
	struct comm *c = calloc(1, sizeof *c);
	c->n = n;
	c->rank = rank;
	c->fd = calloc((size_t)n, sizeof *c->fd);
	if (links_open(id.internal, n, rank, c->fd)) {
		free(c->fd);
		free(c);
		return refuse(SYSTEM_ERROR, "the other ranks do not come");
	}
	c->next = comms;
	comms = c;
	*out = c;
	return 0;
}

static void comm_end(struct comm *c, int state)
{
	links_close(c->n, c->fd);
	free(c->fd);
	c->fd = NULL;
	for (struct group *g = c->groups, *next; g; g = next) {
		next = g->next;
		free(g);
	}
	c->groups = NULL;
	c->state = state;
}

static void driver_do(const char *name)
{
	void *const symbol = fake_driver(name);
	void (*function)(void);
	memcpy(&function, &symbol, sizeof function);
	if (symbol)
		function();
}

/* Waits for its work. */
int ncclCommDestroy(void *comm)
{
	struct comm *c = live(comm);
	if (!c)
		return refuse(BAD_ARGUMENT, "no communicator");
	driver_do("fake_finish");
	if (c->hung)
		die("ncclCommDestroy: a wait that never ends");
	comm_end(c, DESTROYED);
	return 0;
}

int ncclCommAbort(void *comm)
{
	struct comm *c = live(comm);
	if (!c)
		return refuse(BAD_ARGUMENT, "no communicator");
	comm_end(c, ABORTED);
	if (c->hung)
		driver_do("fake_drop");
	return 0;
}

int ncclCommGetAsyncError(void *comm, int *out)
{
	const struct comm *c = live(comm);
	if (!c || !out)
		return refuse(BAD_ARGUMENT, "no communicator");
	*out = c->async;
	return 0;
}
