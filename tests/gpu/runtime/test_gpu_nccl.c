/* The stand-in for NCCL: what arrives, captured and not, and how it ends when a rank does not do
 * its part. Each rank is a process, which tells how it went by its exit status. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_tools.h"

enum { MAX_RANKS = 3, REMOTE_ERROR = 6, BAD_ARGUMENT = 4, BAD_USAGE = 5, CUDA_ERROR = 1 };

/* --- Ranks --- */

struct rank {
	stint_gpu *g;
	int n, rank;
	void *comm, *stream;
	stint_gpu_ptr at;
};

static int late[2]; /* a pipe from one rank to another, beside NCCL */

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "rank %d: line %d: %s\n", r->rank, __LINE__, #condition);  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void rank_open(struct rank *r, int n, int rank, ncclUniqueId id, size_t bytes)
{
	r->n = n;
	r->rank = rank;
	CHECK(!stint_gpu_new(&r->g, FAKES));
	CHECK(!stint_gpu_cache(r->g, NULL));
	CHECK(!stint_gpu_open(r->g, 0));
	CHECK(!stint_gpu_arena(r->g, 0, bytes, &r->at));
	CHECK(!stint_gpu_need(r->g, STINT_GPU_NCCL));
	CHECK(stint_gpu_library_version(r->g, STINT_GPU_NCCL) == 22703);
	CHECK(r->g->nccl.ncclCommInitRank(&r->comm, n, id, rank) == CUDA_ERROR);
	CHECK(!stint_gpu_enter(r->g)); /* until the end */
	CHECK(!r->g->nccl.ncclCommInitRank(&r->comm, n, id, rank));
	r->stream = r->g->stream[STINT_GPU_MAIN];
}

static void rank_close(struct rank *r)
{
	struct fake *f = stint_gpu_symbol(r->g, STINT_GPU_DRIVER, "fake");
	CHECK(!r->g->nccl.ncclCommDestroy(r->comm));
	CHECK(r->g->nccl.ncclCommDestroy(r->comm) == BAD_ARGUMENT);
	stint_gpu_leave(r->g, 0);
	stint_gpu_free(r->g);
	CHECK(f->live == 0);
}

typedef void rank_function(struct rank *r);

/* The function in n processes; `died`: the one that a signal has to end, or -1. */
static void ranks_run(int n, size_t bytes, rank_function *function, int died)
{
	stint_gpu *g;
	ncclUniqueId id;
	pid_t pid[MAX_RANKS];
	assert_int_equal(stint_gpu_new(&g, FAKES), STINT_OK);
	assert_int_equal(stint_gpu_need(g, STINT_GPU_NCCL), STINT_OK);
	assert_int_equal(g->nccl.ncclGetUniqueId(&id), 0);
	stint_gpu_free(g);
	assert_int_equal(pipe(late), 0);
	for (int i = 0; i < n; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i])
			continue;
		struct rank r = {0};
		alarm(120);
		rank_open(&r, n, i, id, bytes);
		function(&r);
		_exit(0);
	}
	close(late[0]);
	close(late[1]);
	for (int i = 0; i < n; i++) {
		int status = -1;
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		if (i == died)
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		else
			assert_int_equal(status, 0);
	}
	assert_int_not_equal(access(id.internal, F_OK), 0); /* the folder is gone */
}

static float *floats(const struct rank *r, size_t at)
{
	return (float *)(uintptr_t)r->at + at;
}

static int value_of(int from, int to, int round, int i)
{
	return 1000 * (3 * from + to + 1) + 100 * round + i;
}

/* --- Messages --- */

enum { COUNT = 50, ROW = 64 };

/* To and from everyone, oneself too: rows 0 to n - 1 go, the others come. */
static int exchange(struct rank *r)
{
	const struct gpu_nccl *nccl = &r->g->nccl;
	int rc = nccl->ncclGroupStart();
	for (int i = 0; i < r->n; i++) {
		void *const to = floats(r, (size_t)((r->n + i) * ROW));
		rc = rc ? rc : nccl->ncclRecv(to, COUNT, GPU_NCCL_FLOAT, i, r->comm, r->stream);
	}
	for (int i = 0; i < r->n; i++) {
		const void *const from = floats(r, (size_t)(i * ROW));
		rc = rc ? rc : nccl->ncclSend(from, COUNT, GPU_NCCL_FLOAT, i, r->comm, r->stream);
	}
	const int ended = nccl->ncclGroupEnd();
	return rc ? rc : ended;
}

static void exchange_fill(struct rank *r, int round)
{
	for (int to = 0; to < r->n; to++)
		for (int i = 0; i < COUNT; i++)
			floats(r, (size_t)(to * ROW))[i] = (float)value_of(r->rank, to, round, i);
}

static void exchange_check(struct rank *r, int round)
{
	for (int from = 0; from < r->n; from++)
		for (int i = 0; i < COUNT; i++)
			CHECK(floats(r, (size_t)((r->n + from) * ROW))[i] ==
				(float)value_of(from, r->rank, round, i));
}

static void rank_exchanges(struct rank *r)
{
	struct stint_gpu_graph *graph;
	exchange_fill(r, 0);
	CHECK(!exchange(r));
	CHECK(!stint_gpu_sync(r->g, STINT_GPU_MAIN));
	exchange_check(r, 0);
	CHECK(!stint_gpu_capture_begin(r->g));
	CHECK(!exchange(r));
	CHECK(!exchange(r)); /* one behind the other */
	CHECK(!stint_gpu_capture_end(r->g, &graph));
	CHECK(stint_gpu_graph_nodes(graph) == 2);
	for (int round = 1; round < 3; round++) {
		exchange_fill(r, round);
		CHECK(!stint_gpu_replay(r->g, graph));
		CHECK(r->g->cu.cuStreamQuery(r->stream) == 0);
		exchange_check(r, round);
	}
	stint_gpu_graph_free(r->g, graph);
	rank_close(r);
}

static void test_exchange(void **state)
{
	(void)state;
	for (int n = 1; n <= MAX_RANKS; n++)
		ranks_run(n, 64 * KIB, rank_exchanges, -1);
}

/* Between one pair in order; groups need not be the same on both sides. */
static void rank_orders(struct rank *r)
{
	const struct gpu_nccl *nccl = &r->g->nccl;
	unsigned char *const p = (unsigned char *)(uintptr_t)r->at;
	for (unsigned char i = 0; i < 10; i++)
		memset(p + 100 * i, r->rank ? 99 : i, 100);
	CHECK(!nccl->ncclGroupStart());
	CHECK(!nccl->ncclGroupStart()); /* one group, all the same */
	for (size_t i = 0; i < 10; i++)
		if (r->rank)
			CHECK(!nccl->ncclRecv(
				p + 100 * i, 10 * i, GPU_NCCL_UINT8, 0, r->comm, r->stream));
	CHECK(!nccl->ncclGroupEnd());
	CHECK(p[900] == 9 + 90 * r->rank);
	CHECK(!nccl->ncclGroupEnd());
	for (size_t i = 0; i < 10; i++)
		if (!r->rank)
			CHECK(!nccl->ncclSend(
				p + 100 * i, 10 * i, GPU_NCCL_UINT8, 1, r->comm, r->stream));
	CHECK(!stint_gpu_sync(r->g, STINT_GPU_MAIN));
	for (size_t i = 0; i < 1000; i++)
		CHECK(p[i] == (r->rank && i % 100 >= i / 100 * 10 ? 99 : i / 100));
	rank_close(r);
}

static void test_order(void **state)
{
	(void)state;
	ranks_run(2, 1000, rank_orders, -1);
}

enum { LARGE = 64 * MIB };

static void rank_large(struct rank *r)
{
	const struct gpu_nccl *nccl = &r->g->nccl;
	unsigned char *const p = (unsigned char *)(uintptr_t)r->at;
	const int other = 1 - r->rank;
	memset(p, 7 + r->rank, LARGE);
	CHECK(!nccl->ncclGroupStart());
	CHECK(!nccl->ncclSend(p, LARGE, GPU_NCCL_UINT8, other, r->comm, r->stream));
	CHECK(!nccl->ncclRecv(p + LARGE, LARGE, GPU_NCCL_UINT8, other, r->comm, r->stream));
	CHECK(!nccl->ncclGroupEnd());
	CHECK(!stint_gpu_sync(r->g, STINT_GPU_MAIN));
	CHECK(p[LARGE] == 7 + other && !memcmp(p + LARGE, p + LARGE + 1, LARGE - 1));
	rank_close(r);
}

static void test_large(void **state)
{
	(void)state;
	ranks_run(2, (size_t)2 * LARGE, rank_large, -1);
}

static void rank_sums(struct rank *r)
{
	const struct gpu_nccl *nccl = &r->g->nccl;
	float *const x = floats(r, 0), *const y = floats(r, ROW);
	double *const d = (double *)(uintptr_t)(r->at + 4096);
	const int all = r->n * (r->n + 1) / 2;
	for (int i = 0; i < COUNT; i++) {
		x[i] = (float)((r->rank + 1) * i);
		d[i] = 0.125 * (r->rank + 1) * i;
	}
	CHECK(!nccl->ncclGroupStart());
	CHECK(!nccl->ncclAllReduce(x, y, COUNT, GPU_NCCL_FLOAT, GPU_NCCL_SUM, r->comm, r->stream));
	CHECK(!nccl->ncclAllReduce(d, d, COUNT, GPU_NCCL_DOUBLE, GPU_NCCL_SUM, r->comm, r->stream));
	CHECK(!nccl->ncclGroupEnd());
	CHECK(!stint_gpu_sync(r->g, STINT_GPU_MAIN));
	for (int i = 0; i < COUNT; i++) {
		CHECK(x[i] == (float)((r->rank + 1) * i));
		CHECK(y[i] == (float)(all * i));
		CHECK(d[i] == 0.125 * all * i);
	}
	rank_close(r);
}

static void test_sums(void **state)
{
	(void)state;
	for (int n = 1; n <= MAX_RANKS; n++)
		ranks_run(n, 8 * KIB, rank_sums, -1);
}

/* --- Ranks that do not do their part --- */

/* The device hangs, says so, and is there again when the communicator is given up. */
static void hung_check(struct rank *r, int error)
{
	const struct gpu_nccl *nccl = &r->g->nccl;
	const uint32_t *const nan = (const uint32_t *)(uintptr_t)r->at;
	int said = -1;
	for (int i = 0; i < 2; i++)
		CHECK(r->g->cu.cuStreamQuery(r->stream) == GPU_CU_NOT_READY);
	CHECK(*nan == UINT32_MAX);
	CHECK(!nccl->ncclCommGetAsyncError(r->comm, &said) && said == error);
	CHECK(nccl->ncclSend(nan, 1, GPU_NCCL_FLOAT, 1, r->comm, r->stream) == error);
	CHECK(!stint_gpu_fill(r->g, STINT_GPU_MAIN, r->at, 1, 4)); /* dropped */
	CHECK(!nccl->ncclCommAbort(r->comm));
	CHECK(nccl->ncclCommAbort(r->comm) == BAD_ARGUMENT);
	CHECK(r->g->cu.cuStreamQuery(r->stream) == 0);
	CHECK(*nan == UINT32_MAX);
	CHECK(!stint_gpu_fill(r->g, STINT_GPU_MAIN, r->at, 2, 4));
	CHECK(!stint_gpu_sync(r->g, STINT_GPU_MAIN));
	CHECK(*nan == 0x02020202);
}

/* Rank 0 receives from rank 1 into the beginning of the arena. */
static void receive(struct rank *r)
{
	CHECK(!r->g->nccl.ncclRecv(floats(r, 0), 1, GPU_NCCL_FLOAT, 1, r->comm, r->stream));
}

static void rank_dies(struct rank *r)
{
	if (r->rank == 1)
		_exit(0);
	receive(r);
	hung_check(r, REMOTE_ERROR);
	stint_gpu_leave(r->g, 0);
	stint_gpu_free(r->g);
}

/* In the middle of a graph, whose communicator then is no more. */
static void rank_dies_captured(struct rank *r)
{
	struct stint_gpu_graph *graph;
	if (r->rank == 1)
		_exit(0);
	CHECK(!stint_gpu_capture_begin(r->g));
	receive(r);
	CHECK(!stint_gpu_fill(r->g, STINT_GPU_MAIN, r->at, 5, 4));
	CHECK(!stint_gpu_capture_end(r->g, &graph));
	CHECK(!stint_gpu_replay(r->g, graph));
	hung_check(r, REMOTE_ERROR);
	CHECK(!stint_gpu_replay(r->g, graph)); /* it receives nothing now */
	CHECK(!stint_gpu_sync(r->g, STINT_GPU_MAIN));
	CHECK(*(const unsigned char *)(uintptr_t)r->at == 5);
	stint_gpu_graph_free(r->g, graph);
	stint_gpu_leave(r->g, 0);
	stint_gpu_free(r->g);
}

static void test_gone(void **state)
{
	(void)state;
	ranks_run(2, 256, rank_dies, -1);
	ranks_run(2, 256, rank_dies_captured, -1);
}

static void rank_late(struct rank *r)
{
	char byte = 0;
	setenv("STINT_FAKE_NCCL_MS", "100", 1);
	if (r->rank == 1) {
		CHECK(read(late[0], &byte, 1) == 1);
		rank_close(r);
		return;
	}
	receive(r);
	hung_check(r, 0);
	CHECK(write(late[1], &byte, 1) == 1);
	stint_gpu_leave(r->g, 0);
	stint_gpu_free(r->g);
}

static void rank_waits(struct rank *r)
{
	char byte;
	setenv("STINT_FAKE_NCCL_MS", "100", 1);
	close(late[1]); /* so that rank 0's end is the pipe's */
	if (r->rank == 1)
		CHECK(read(late[0], &byte, 1) == 0);
	else
		receive(r);
	if (r->rank == 0)
		stint_gpu_sync(r->g, STINT_GPU_MAIN);
}

static void test_late(void **state)
{
	(void)state;
	ranks_run(2, 256, rank_late, -1);
}

/* --- What ends the program --- */

static void end_well(int signal)
{
	(void)signal;
	_exit(0);
}

static void rank_sizes(struct rank *r)
{
	const struct gpu_nccl *nccl = &r->g->nccl;
	signal(SIGABRT, r->rank == 1 ? end_well : SIG_DFL); /* it may find rank 0 gone */
	if (r->rank == 1)
		CHECK(!nccl->ncclSend(floats(r, 0), 2, GPU_NCCL_FLOAT, 0, r->comm, r->stream));
	else
		receive(r);
	stint_gpu_sync(r->g, STINT_GPU_MAIN);
}

/* A receive where the second call of a group sends or receives. */
static void races(struct rank *r, int sends)
{
	const struct gpu_nccl *nccl = &r->g->nccl;
	CHECK(!nccl->ncclGroupStart());
	receive(r);
	if (sends)
		CHECK(!nccl->ncclSend(floats(r, 0), 4, GPU_NCCL_FLOAT, 1, r->comm, r->stream));
	else
		CHECK(!nccl->ncclRecv(floats(r, 0), 4, GPU_NCCL_UINT8, 1, r->comm, r->stream));
	nccl->ncclGroupEnd();
}

static void rank_races(struct rank *r)
{
	if (r->rank == 0)
		races(r, 0);
}

static void rank_races_sending(struct rank *r)
{
	if (r->rank == 0)
		races(r, 1);
}

static void rank_sum_half_in_place(struct rank *r)
{
	(void)r->g->nccl.ncclAllReduce(
		floats(r, 0), floats(r, 1), 2, GPU_NCCL_FLOAT, GPU_NCCL_SUM, r->comm, r->stream);
}

static void test_ends(void **state)
{
	(void)state;
	ranks_run(2, 256, rank_sizes, 0);
	ranks_run(2, 256, rank_races, 0);
	ranks_run(2, 256, rank_races_sending, 0);
	ranks_run(1, 256, rank_sum_half_in_place, 0);
	ranks_run(2, 256, rank_waits, 0);
}

/* --- What is refused --- */

static void rank_arguments(struct rank *r)
{
	const struct gpu_nccl *nccl = &r->g->nccl;
	float *const p = floats(r, 0);
	int said;
	void *comm = NULL;
	ncclUniqueId nobody = {{0}};
	CHECK(nccl->ncclCommInitRank(&comm, 1, nobody, 0) == BAD_ARGUMENT && !comm);
	CHECK(nccl->ncclSend(p, 1, GPU_NCCL_FLOAT, 1, r->comm, r->stream) == BAD_ARGUMENT);
	CHECK(nccl->ncclRecv(p, 1, GPU_NCCL_FLOAT, -1, r->comm, r->stream) == BAD_ARGUMENT);
	CHECK(nccl->ncclSend(p, 1, GPU_NCCL_FLOAT, 0, NULL, r->stream) == BAD_ARGUMENT);
	CHECK(nccl->ncclSend(p, 1, GPU_NCCL_FLOAT, 0, r->comm, NULL) == BAD_ARGUMENT);
	CHECK(nccl->ncclSend(p, 1, 77, 0, r->comm, r->stream) == BAD_ARGUMENT);
	CHECK(nccl->ncclSend(NULL, 1, GPU_NCCL_FLOAT, 0, r->comm, r->stream) == BAD_ARGUMENT);
	CHECK(nccl->ncclAllReduce(p, p, 1, GPU_NCCL_FLOAT, 1, r->comm, r->stream) == BAD_ARGUMENT);
	CHECK(strlen(nccl->ncclGetLastError(r->comm)) > 0);
	CHECK(!strcmp(nccl->ncclGetErrorString(BAD_ARGUMENT), "invalid argument"));
	CHECK(nccl->ncclCommGetAsyncError(NULL, &said) == BAD_ARGUMENT);
	CHECK(nccl->ncclGroupEnd() == BAD_USAGE);
	/* to oneself, without a receive */
	CHECK(nccl->ncclSend(p, 1, GPU_NCCL_FLOAT, 0, r->comm, r->stream) == BAD_USAGE);
	stint_gpu_leave(r->g, 0);
	CHECK(nccl->ncclSend(p, 1, GPU_NCCL_FLOAT, 0, r->comm, r->stream) == CUDA_ERROR);
	CHECK(!stint_gpu_enter(r->g));
	/* a group with an error is not begun, and the next one is another */
	CHECK(!nccl->ncclGroupStart());
	CHECK(!nccl->ncclSend(p, 1, GPU_NCCL_FLOAT, 0, r->comm, r->stream));
	CHECK(nccl->ncclRecv(p + 1, 1, GPU_NCCL_FLOAT, 0, r->comm, r->g->stream[STINT_GPU_SIDE]) ==
		BAD_USAGE);
	CHECK(nccl->ncclGroupEnd() == BAD_USAGE);
	CHECK(!exchange(r));
	rank_close(r);
}

static void test_arguments(void **state)
{
	(void)state;
	ranks_run(1, 64 * KIB, rank_arguments, -1);
}

/* An id that nobody uses leaves nothing either. */
static void test_failure(void **state)
{
	stint_gpu *g;
	ncclUniqueId id;
	(void)state;
	assert_int_equal(stint_gpu_new(&g, FAKES), STINT_OK);
	assert_int_equal(stint_gpu_need(g, STINT_GPU_NCCL), STINT_OK);
	setenv("STINT_FAKE_FAIL", "nccl", 1);
	assert_int_not_equal(g->nccl.ncclGetUniqueId(&id), 0);
	assert_non_null(strstr(g->nccl.ncclGetLastError(NULL), "told to fail"));
	unsetenv("STINT_FAKE_FAIL");
	assert_int_equal(g->nccl.ncclGetUniqueId(&id), 0);
	assert_memory_equal(id.internal, "meet/", 5);
	stint_gpu_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_failure),
	};
	mkdir("meet", 0777);
	setenv("TMPDIR", "meet", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
