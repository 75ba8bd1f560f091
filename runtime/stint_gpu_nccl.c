/* SPDX-License-Identifier: MIT-0 */
/* Messages between GPUs, each of another process, by NCCL's sends and receives. Its reductions are
 * used only where somebody asks for them: their order, and so their bits, is NCCL's. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nanosleep */
#endif
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stint_gpu_api.h"

/* NCCL's words for a result, and what it says of its last error besides. */
static int check(stint_gpu *g, int result, const char *what)
{
	if (!result || result == GPU_NCCL_IN_PROGRESS)
		return STINT_OK;
	const char *more = g->nccl.ncclGetLastError(NULL);
	return stint_gpu_fail(g, STINT_BAD_MACHINE, "%s: NCCL: %s%s%s", what,
		g->nccl.ncclGetErrorString(result), more && *more ? ": " : "", more ? more : "");
}

int stint_gpu_world(stint_gpu *g, unsigned char id[STINT_GPU_WORLD])
{
	ncclUniqueId made;
	int rc = stint_gpu_need(g, STINT_GPU_NCCL);
	if (rc || !id)
		return rc;
	rc = check(g, g->nccl.ncclGetUniqueId(&made), "what ranks find each other by");
	if (!rc)
		memcpy(id, &made, sizeof made);
	return rc;
}

static int give(stint_gpu *g, const struct stint_gpu_parcel *p)
{
	void *const stream = g->stream[STINT_GPU_RANKS], *const at = (void *)(uintptr_t)p->at;
	return check(g,
		p->takes
			? g->nccl.ncclRecv(at, p->bytes, GPU_NCCL_UINT8, p->rank, g->world, stream)
			: g->nccl.ncclSend(at, p->bytes, GPU_NCCL_UINT8, p->rank, g->world, stream),
		"a message");
}

/* Between enter and leave. NCCL wants the end of what was begun, also where a message failed. */
static int exchange(stint_gpu *g, const struct stint_gpu_parcel *p, int n)
{
	int rc = check(g, g->nccl.ncclGroupStart(), "messages");
	for (int i = 0; i < n && !rc; i++)
		rc = give(g, &p[i]);
	const int end = check(g, g->nccl.ncclGroupEnd(), "messages");
	return rc ? rc : end;
}

/* A message each way between this rank and each other, so that what NCCL makes for a pair is there,
 * and is itemised, before a step is recorded. */
static int warm(stint_gpu *g, int rank, int n)
{
	enum { BYTES = 256 };
	stint_gpu_ptr room = 0;
	struct stint_gpu_parcel *p = calloc((size_t)n * 2, sizeof *p);
	int rc = p ? stint_gpu_check(g, g->cu.cuMemAlloc_v2(&room, (size_t)n * 2 * BYTES),
			     "memory for messages")
		   : stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory");
	int m = 0;
	for (int k = 0; k < 2 * n && !rc; k++)
		if (k / 2 != rank)
			p[m++] = (struct stint_gpu_parcel){
				k / 2, k % 2, room + (size_t)k * BYTES, BYTES};
	if (!rc)
		rc = exchange(g, p, m);
	if (!rc)
		rc = stint_gpu_check(
			g, g->cu.cuStreamSynchronize(g->stream[STINT_GPU_RANKS]), "messages");
	if (room)
		g->cu.cuMemFree_v2(room);
	free(p);
	return rc;
}

int stint_gpu_world_join(stint_gpu *g, const unsigned char id[STINT_GPU_WORLD], int rank, int n)
{
	ncclUniqueId world;
	int rc = stint_gpu_need(g, STINT_GPU_NCCL);
	if (!rc)
		rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	memcpy(&world, id, sizeof world);
	rc = check(g, g->nccl.ncclCommInitRank(&g->world, n, world, rank),
		"the ranks' GPUs do not find each other");
	if (rc)
		g->world = NULL;
	if (!rc)
		rc = warm(g, rank, n);
	if (!rc)
		rc = stint_gpu_measure(g, "NCCL", 0);
	return stint_gpu_leave(g, rc);
}

void stint_gpu_world_end(stint_gpu *g, int broken)
{
	if (!g->world || stint_gpu_enter(g))
		return;
	if (broken)
		g->nccl.ncclCommAbort(g->world);
	else
		g->nccl.ncclCommDestroy(g->world);
	g->world = NULL;
	stint_gpu_leave(g, 0);
}

int stint_gpu_exchange(stint_gpu *g, const struct stint_gpu_parcel *p, int n)
{
	if (n == 0)
		return STINT_OK;
	const int rc = stint_gpu_enter(g);
	return rc ? rc : stint_gpu_leave(g, exchange(g, p, n));
}

int stint_gpu_reduce(stint_gpu *g, stint_gpu_ptr y, size_t n, int wide)
{
	void *const at = (void *)(uintptr_t)y;
	const int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(
		g, check(g,
			   g->nccl.ncclAllReduce(at, at, n, wide ? GPU_NCCL_DOUBLE : GPU_NCCL_FLOAT,
				   GPU_NCCL_SUM, g->world, g->stream[STINT_GPU_RANKS]),
			   "a sum"));
}

/* --- Waiting for others --- */

/* Of what goes on beside the host. */
static int gone(stint_gpu *g)
{
	int result = 0;
	if (g->nccl.ncclCommGetAsyncError(g->world, &result))
		return STINT_OK; /* it says nothing */
	return check(g, result, "a rank cannot be reached any more");
}

int stint_gpu_world_wait(stint_gpu *g, int stream, double patience)
{
	enum { SPINS = 1000, REST_NS = 50000 };
	const struct timespec rest = {.tv_nsec = REST_NS};
	const double start = stint_gpu_ms();
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	int result = GPU_CU_NOT_READY, lost = 0;
	for (int64_t spin = 0; !lost; spin++) {
		result = g->cu.cuStreamQuery(g->stream[stream]);
		if (result != GPU_CU_NOT_READY)
			break;
		if (spin < SPINS)
			continue;
		lost = gone(g);
		if (!lost && patience > 0 && stint_gpu_ms() - start > 1e3 * patience)
			lost = stint_gpu_fail(
				g, STINT_LOST, "a rank has not answered: it is dead, or stuck");
		nanosleep(&rest, NULL);
	}
	rc = lost ? STINT_LOST : stint_gpu_check(g, result, "the device");
	if (lost)
		stint_gpu_world_end(g, 1);
	return stint_gpu_leave(g, rc);
}
