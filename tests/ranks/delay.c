/* Between a step and its MPI, by LD_PRELOAD: messages start late, each by a chance of its own that
 * STINT_DELAY_SEED repeats, up to STINT_DELAY_US microseconds. Sends may so overtake receives of
 * other ranks, and ranks each other. With STINT_LINK_BYTES_US what a rank sends takes as long as
 * over a link of so many bytes a microsecond, one message behind the other. With STINT_ONE_THREAD
 * MPI is one that a single thread may call. With STINT_SENT each rank writes to FILE.RANK how many
 * messages and bytes it has sent. With STINT_ROWS_FIRST rank 0's first message of a sum is
 * not through before it sends a row. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "stint_mpi_inside.h"

static int64_t messages, sent;
static const MPI_Request *held;

static void wait_us(double us)
{
	const int64_t ns = (int64_t)(us * 1000);
	nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

/* The link is free again when what was sent has left; a wait that was too long is made up for. */
static void send_over_link(int count, double bytes_us)
{
	enum { MADE_UP_FOR_US = 200 };
	static double free_at;
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	const double now = 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
	if (free_at < now - MADE_UP_FOR_US)
		free_at = now - MADE_UP_FOR_US;
	free_at += count / bytes_us;
	if (free_at > now)
		wait_us(free_at - now);
}

static void late(int count)
{
	static uint64_t state;
	const char *seed = getenv("STINT_DELAY_SEED"), *most = getenv("STINT_DELAY_US");
	const char *link = getenv("STINT_LINK_BYTES_US");
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
	if (link && count)
		send_over_link(count, atof(link));
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	MPI_Request *request)
{
	static int once;
	int rank;
	messages++;
	sent += count;
	late(count);
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
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
	late(0);
	return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Testall(int n, MPI_Request request[], int *done, MPI_Status status[])
{
	for (int i = 0; i < n; i++)
		if (&request[i] == held) {
			*done = 0;
			return MPI_SUCCESS;
		}
	return PMPI_Testall(n, request, done, status);
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
