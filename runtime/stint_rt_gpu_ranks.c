/* SPDX-License-Identifier: MIT-0 */
/* What processes with a GPU each do together (stint_sums.h), as work of their devices: recorded
 * with the step, on a stream beside its kernels. MPI carries what the hosts have to say to each
 * other (stint_mpi.c); NCCL, and a kernel of the step's that adds, carry and make the sums. */
#include <stdlib.h>
#include <string.h>

#include "stint_rt_gpu.h"
#include "stint_sums.h"

struct stint_gpu_ranks {
	struct stint_sums sums;
	stint_step *s;
	stint_gpu *g;
	const struct stint_kernel *add;
	const struct stint_gpu_kernel *adds;
	struct parcels {
		struct stint_gpu_parcel *at;
		int n;
	} lane[LANES];
	/* What was begun since the schedule's begin, each with its mark, from `mark` on. */
	const void **begun;
	int nbegun, most, mark;
	int lost;
};

static struct stint_gpu_ranks *ranks_of(const stint_step *s)
{
	return stint_rt_gpu_ranks_of(s);
}

/* --- What carries sums --- */

static void carry(struct stint_sums *s, int lane, int rank, int takes, const void *at, size_t bytes)
{
	struct stint_gpu_ranks *r = s->user;
	struct parcels *p = &r->lane[lane];
	p->at[p->n++] = (struct stint_gpu_parcel){rank, takes, gpu_address(at), bytes};
}

/* NCCL tells messages apart by their order alone, which is one on both sides: a lane has messages
 * of one tag at a time. */
static void send_to(
	struct stint_sums *s, int lane, int rank, int tag, const void *data, size_t bytes)
{
	(void)tag;
	carry(s, lane, rank, 0, data, bytes);
}

static void take_from(struct stint_sums *s, int lane, int rank, int tag, void *data, size_t bytes)
{
	(void)tag;
	carry(s, lane, rank, 1, data, bytes);
}

static int through(struct stint_sums *s, int lane)
{
	struct stint_gpu_ranks *r = s->user;
	struct parcels *p = &r->lane[lane];
	const int n = p->n;
	p->n = 0;
	return stint_gpu_exchange(r->g, p->at, n);
}

static int copy(struct stint_sums *s, void *to, const void *from, size_t bytes)
{
	struct stint_gpu_ranks *r = s->user;
	return bytes ? stint_gpu_copy(
			       r->g, STINT_GPU_RANKS, gpu_address(to), gpu_address(from), bytes)
		     : STINT_OK;
}

static int add(struct stint_sums *s, void *to, const void *other, int64_t n, size_t size)
{
	struct stint_gpu_ranks *r = s->user;
	(void)size; /* the step's own type */
	const int64_t blocks = (n + r->add->threads - 1) / r->add->threads;
	const unsigned grid[3] = {
		(unsigned)(blocks < r->add->blocks ? blocks : r->add->blocks), 1, 1};
	const unsigned block[3] = {(unsigned)r->add->threads, 1, 1};
	void *args[] = {&to, &other, &n};
	return n ? stint_gpu_launch(r->g, STINT_GPU_RANKS, r->adds, grid, block, args) : STINT_OK;
}

static const struct stint_carrier by_nccl = {send_to, take_from, through, copy, add};

/* --- What a step asks for --- */

/* The schedule names the step, and the device's words follow. */
static int told(stint_step *s, int rc)
{
	return rc ? stint_rt_fail(s, rc, "%s", "between the ranks") : STINT_OK;
}

static int add_fast(struct stint_gpu_ranks *r, const struct stint_job *j)
{
	const int rc = stint_sums_add_own(&r->sums, j);
	return rc ? rc
		  : stint_gpu_reduce(
			    r->g, gpu_address(j->y), (size_t)j->n, j->size == sizeof(double));
}

/* Behind what the step has done so far, and behind what goes to the host from where it may write.
 */
static int begin(stint_step *s, const struct stint_job *j)
{
	struct stint_gpu_ranks *r = ranks_of(s);
	const int sum = j->kind == JOB_SUM || j->kind == JOB_SCATTER;
	if (r->nbegun == r->most)
		return stint_rt_fail(s, STINT_LOST, "%s", "more is begun than a step has");
	int rc = stint_gpu_behind(r->g, STINT_GPU_RANKS, STINT_GPU_MAIN);
	if (!rc && stint_rt_gpu_has_stored(s))
		rc = stint_gpu_behind(r->g, STINT_GPU_RANKS, STINT_GPU_SIDE);
	if (!rc)
		rc = sum && s->ranks->fast ? add_fast(r, j) : stint_sums_do(&r->sums, j);
	if (!rc)
		rc = stint_gpu_mark(r->g, STINT_GPU_RANKS, r->mark + r->nbegun);
	r->begun[r->nbegun++] = j->y;
	return told(s, rc);
}

static int await(stint_step *s, const void *y)
{
	struct stint_gpu_ranks *r = ranks_of(s);
	int at = r->nbegun - 1;
	while (at >= 0 && r->begun[at] != y)
		at--;
	if (at < 0)
		return stint_rt_fail(s, STINT_LOST, "%s", "what is waited for was never begun");
	return told(s, stint_gpu_wait(r->g, STINT_GPU_MAIN, r->mark + at));
}

/* stint_gpu_ranks_end does it, on the device. */
static int finish(stint_step *s, int failed)
{
	(void)s;
	return failed;
}

void stint_gpu_ranks_begin(struct stint_gpu_ranks *r)
{
	r->nbegun = 0;
	for (int i = 0; i < LANES; i++)
		r->lane[i].n = 0;
}

int stint_gpu_ranks_end(struct stint_gpu_ranks *r)
{
	return r->nbegun ? stint_gpu_behind(r->g, STINT_GPU_MAIN, STINT_GPU_RANKS) : STINT_OK;
}

int stint_gpu_ranks_there(const struct stint_gpu_ranks *r)
{
	return r->lost ? stint_rt_fail(r->s, STINT_LOST, "%s", "another rank was lost before")
		       : STINT_OK;
}

int stint_gpu_ranks_wait(struct stint_gpu_ranks *r)
{
	stint_step *s = r->s;
	const int rc = stint_gpu_world_wait(r->g, STINT_GPU_MAIN, s->ranks->patience);
	r->lost = rc == STINT_LOST;
	(void)stint_rt_gpu_told(s, r->g, rc);
	return r->lost ? s->ranks->missing(s) : rc;
}

/* --- Set-up --- */

void stint_gpu_ranks_free(struct stint_gpu_ranks *r)
{
	if (!r)
		return;
	stint_gpu_world_end(r->g, 0);
	stint_sums_free(&r->sums);
	for (int i = 0; i < LANES; i++)
		free(r->lane[i].at);
	free(r->begun);
	free(r);
}

static int allocate(struct stint_gpu_ranks *r, const struct stint_model *m)
{
	if (stint_sums_new(&r->sums))
		return STINT_NO_MEMORY;
	const size_t messages = stint_sums_messages(&r->sums);
	r->most = m->ntrain_steps > m->neval_steps ? m->ntrain_steps : m->neval_steps;
	r->begun = calloc((size_t)r->most + 1, sizeof *r->begun);
	int all = r->begun != NULL;
	for (int i = 0; i < LANES; i++) {
		r->lane[i].at = calloc(messages, sizeof *r->lane[i].at);
		all = all && r->lane[i].at;
	}
	return all ? STINT_OK : STINT_NO_MEMORY;
}

/* Where the step has no sums there is none. */
static int kernel_that_adds(const struct stint_kernel *k)
{
	int at = 0;
	while (k[at].name && strcmp(k[at].name, "stint_tree_add") != 0)
		at++;
	return at;
}

int stint_gpu_ranks_new(struct stint_gpu_ranks **out, stint_step *s, stint_gpu *g,
	const struct stint_gpu_kernel *kernel, const unsigned char id[STINT_WORLD])
{
	const int adds = kernel_that_adds(s->model->gpu->kernel);
	struct stint_gpu_ranks *r = calloc(1, sizeof *r);
	if (!r)
		return stint_rt_no_memory(s);
	*r = (struct stint_gpu_ranks){
		.s = s, .g = g, .add = &s->model->gpu->kernel[adds], .adds = &kernel[adds]};
	r->sums = (struct stint_sums){.rank = s->ranks->rank,
		.n = s->ranks->n,
		.shards = s->model->shards,
		.by = &by_nccl,
		.user = r};
	int rc = allocate(r, s->model);
	if (rc)
		(void)stint_rt_no_memory(s);
	else
		rc = stint_rt_gpu_told(s, g, stint_gpu_world_join(g, id, r->sums.rank, r->sums.n));
	if (rc) {
		stint_gpu_ranks_free(r);
		return rc;
	}
	r->mark = stint_gpu_marks(g, r->most);
	s->ranks->begin = begin;
	s->ranks->await = await;
	s->ranks->finish = finish;
	*out = r;
	return STINT_OK;
}
