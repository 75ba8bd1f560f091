/* SPDX-License-Identifier: MIT-0 */
/* MPI's start and end, and how fast its messages are, for stint, which opens this with stint_mpi.c
 * as a library (stint_mpi.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime */
#endif
#include "stint_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int stint_ranks_start(int *rank, int *n, char message[256])
{
	int given;
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS) {
		snprintf(message, 256, "MPI does not start");
		return 1;
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	MPI_Comm_size(MPI_COMM_WORLD, n);
	return 0;
}

int stint_init_world(stint_step *s)
{
	return stint_init_ranks(s, MPI_COMM_WORLD);
}

/* --- How fast messages are --- */

enum { MOST_BYTES = 4 << 20, MANY = 256, REPEATED = 50 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* One after the other, there and back. */
static double there(int first, int other, unsigned char *data)
{
	const double start = now();
	for (int i = 0; i < 2; i++)
		if (i == !first)
			MPI_Send(data, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(data, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return (now() - start) / 2;
}

/* `n` messages each way at once. */
static double exchanged(int other, int n, int bytes, unsigned char *data)
{
	MPI_Request request[2 * MANY];
	const double start = now();
	for (int i = 0; i < n; i++) {
		MPI_Irecv(data + (size_t)i * 8, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD,
			&request[i]);
		MPI_Isend(data + MOST_BYTES, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD,
			&request[n + i]);
	}
	MPI_Waitall(2 * n, request, MPI_STATUSES_IGNORE);
	return now() - start;
}

static int smaller_first(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Medians of the same done many times, between the first rank and `other`. */
static void measure_pair(int rank, int other, unsigned char *data, double link[3])
{
	double way[REPEATED], large[REPEATED], many[REPEATED];
	const int first = rank == 0, partner = first ? other : 0;
	for (int i = 0; i < REPEATED; i++) {
		way[i] = there(first, partner, data);
		large[i] = exchanged(partner, 1, MOST_BYTES, data);
		many[i] = exchanged(partner, MANY, 8, data);
	}
	qsort(way, REPEATED, sizeof *way, smaller_first);
	qsort(large, REPEATED, sizeof *large, smaller_first);
	qsort(many, REPEATED, sizeof *many, smaller_first);
	const double latency = way[REPEATED / 2], most = large[REPEATED / 2] - latency;
	const double bytes = MOST_BYTES / (most > 1 ? most : 1),
		     message = many[REPEATED / 2] / MANY;
	link[0] = link[0] == 0 || bytes < link[0] ? bytes : link[0];
	link[1] = latency > link[1] ? latency : link[1];
	link[2] = message > link[2] ? message : link[2];
}

int stint_ranks_measure(double link[3], char message[256])
{
	int rank, n;
	unsigned char *data = calloc(2, MOST_BYTES);
	link[0] = link[1] = link[2] = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	if (!data) {
		snprintf(message, 256, "out of memory");
		return 1;
	}
	for (int other = 1; other < n; other++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0 || rank == other)
			measure_pair(rank, other, data, link);
	}
	free(data);
	return 0;
}

void stint_ranks_end(void)
{
	MPI_Finalize();
}

void stint_ranks_abort(int code)
{
	MPI_Abort(MPI_COMM_WORLD, code);
}
