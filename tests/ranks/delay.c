/* Between a step and its MPI, by LD_PRELOAD: messages start late, each by a chance of its own that
 * STINT_DELAY_SEED repeats, up to STINT_DELAY_US microseconds. Sends may so overtake receives of
 * other ranks, and ranks each other. With STINT_LINK_BYTES_US what a rank sends takes as long as
 * over a link of so many bytes a microsecond, one message behind the other, while its threads go
 * on, as a network card works: neither side is told before. With STINT_ONE_THREAD MPI is one that a
 * single thread may call. With STINT_SENT each rank writes to FILE.RANK how many messages and bytes
 * it has sent. With STINT_ROWS_FIRST rank 0's first message of a sum is not through before it sends
 * a row. */
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "stint_mpi_inside.h"

static int64_t messages, sent;
static const MPI_Request *held;

static void wait_us(double us)
{
	const int64_t ns = (int64_t)(us * 1000);
	nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

/* --- The link --- */

enum { RANKS = 8, TAGS = 8, TURNS = 4096, PENDING = 4096 };

/* When the messages of a sender to a receiver are there, in nanoseconds, by their place in a row:
 * for all ranks to see. */
static struct link {
	_Atomic int64_t there[RANKS][RANKS][TAGS][TURNS];
} * all;
static int in_row[2][RANKS][TAGS]; /* sends and receives so far */

/* What is not told to be through before `at`. */
static struct pending {
	const MPI_Request *request;
	const _Atomic int64_t *at;
} pending[PENDING];
static int npending;

static int64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct link *link_open(void)
{
	char name[64];
	snprintf(name, sizeof name, "/stint-link-%d", (int)getppid()); /* mpirun's */
	const int f = shm_open(name, O_RDWR | O_CREAT, 0600);
	void *at = MAP_FAILED;
	if (f >= 0 && !ftruncate(f, sizeof *all))
		at = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	if (at == MAP_FAILED) {
		perror("delay: the link");
		abort();
	}
	close(f);
	return at;
}

static void link_close(void)
{
	char name[64];
	snprintf(name, sizeof name, "/stint-link-%d", (int)getppid());
	if (all)
		shm_unlink(name);
}

/* Of the next message from one to the other; `count`: it is sent now, 0: it is to come. */
static void over_link(int from, int to, int tag, int count, const MPI_Request *request)
{
	static int64_t free_at;
	const char *link = getenv("STINT_LINK_BYTES_US");
	int rank;
	if (!link || from >= RANKS || to >= RANKS || tag >= TAGS || npending == PENDING)
		return;
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	all = all ? all : link_open();
	const int mine = from == rank;
	const int turn = in_row[mine][mine ? to : from][tag]++ % TURNS;
	_Atomic int64_t *at = &all->there[from][to][tag][turn];
	if (mine) {
		const int64_t now = clock_ns();
		free_at = (free_at > now ? free_at : now) + (int64_t)(1e3 * count / atof(link));
		*at = free_at;
	}
	pending[npending++] = (struct pending){request, at};
}

/* Whether these requests, which MPI has seen through, would be over the link; forgets them then. */
static int arrived(int n, const MPI_Request *request)
{
	const int64_t now = clock_ns();
	int left = 0;
	for (int i = 0; i < npending; i++)
		if (pending[i].request >= request &&
			pending[i].request<request + n && * pending[i].at> now)
			return 0;
	for (int i = 0; i < npending; i++)
		if (pending[i].request < request || pending[i].request >= request + n)
			pending[left++] = pending[i];
	npending = left;
	return 1;
}

static void hurry(void)
{
	static _Thread_local int asked;
	if (!asked++ && getenv("STINT_LINK_BYTES_US") && gettid() != getpid() &&
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}))
		perror("delay: the thread has no core to itself");
}

/* --- What MPI is asked --- */

static void late(void)
{
	static uint64_t state;
	const char *seed = getenv("STINT_DELAY_SEED"), *most = getenv("STINT_DELAY_US");
	if (state == 0) {
		int rank;
		PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
		state = (seed ? strtoull(seed, NULL, 10) : 1) * 1000003 + (uint64_t)rank * 7919 + 1;
	}
	state ^= state << 13; /* xorshift64 */
	state ^= state >> 7;
	state ^= state << 17;
	if (most && state % 4 == 0)
		wait_us((double)(state >> 8 & 0xffff) / 65536 * atof(most));
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	MPI_Request *request)
{
	static int once;
	int rank;
	messages++;
	sent += count;
	late();
	hurry();
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	over_link(rank, to, tag, count, request);
	if (tag == TAG_SUM && !rank && !once && getenv("STINT_ROWS_FIRST")) {
		held = request;
		once = 1;
	} else if (tag == TAG_ROWS) {
		held = NULL;
	}
	return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	MPI_Request *request)
{
	int rank;
	late();
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	over_link(from, rank, tag, 0, request);
	return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Testall(int n, MPI_Request request[], int *done, MPI_Status status[])
{
	for (int i = 0; i < n; i++)
		if (&request[i] == held) {
			*done = 0;
			return MPI_SUCCESS;
		}
	const int rc = PMPI_Testall(n, request, done, status);
	*done = *done && arrived(n, request); /* asked again, MPI says the same */
	return rc;
}

int MPI_Query_thread(int *given)
{
	const int rc = PMPI_Query_thread(given);
	if (getenv("STINT_ONE_THREAD"))
		*given = MPI_THREAD_FUNNELED;
	return rc;
}

int MPI_Finalize(void)
{
	const char *file = getenv("STINT_SENT");
	char path[4096];
	int rank;
	link_close();
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (file && snprintf(path, sizeof path, "%s.%d", file, rank) < (int)sizeof path) {
		FILE *f = fopen(path, "w");
		if (f) {
			fprintf(f, "%lld %lld\n", (long long)messages, (long long)sent);
			fclose(f);
		}
	}
	return PMPI_Finalize();
}
