/* SPDX-License-Identifier: MIT-0 */
/* A step on a GPU. See stint_rt_gpu.h.
 *
 * A step is a graph: recorded once, from the same schedule that runs it kernel by kernel where
 * somebody looks on, and replayed. What changes from step to step (seed, step count, valid rows,
 * learning rate) is copied into the arena before, and what the step tells (its loss, an index out
 * of range) out of it behind, through page-locked memory; the host waits in finish. */
#include "stint_rt_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stint_gpu.h"
#include "stint_rt_gpu_feed.h"

/* Page-locked. */
struct numbers {
	int64_t control[STINT_CONTROLS], bad;
	double lr64, loss64;
	float lr32, loss32;
};

struct own {
	stint_step *s;
	stint_gpu *g;
	stint_gpu_ptr arena;
	struct stint_gpu_kernel *kernel;
	/* Of the evaluation, of training, and of a micro-batch before the step's last. */
	struct stint_gpu_graph *graph[3];
	struct numbers *numbers;
	unsigned char *host; /* what waits there; NULL: nothing does */
	int mark;            /* of copy 0: where it is over */
	struct stint_feed *feed;
	int stored;                    /* the schedule has put copies to the host on their stream */
	struct stint_gpu_ranks *ranks; /* with whom steps are shared; NULL: nobody */
	int recorded;                  /* as what: alone, ... */
};
enum { NOT_RECORDED, FOR_ONE, FOR_RANKS, FOR_RANKS_FAST };

/* stint_free_ranks may have ended it. */
static int shared(const struct own *o)
{
	return o->s->ranks && o->ranks;
}

int stint_rt_gpu_told(stint_step *s, stint_gpu *g, int rc)
{
	if (rc)
		snprintf(s->message, sizeof s->message, "%s", stint_gpu_message(g));
	return rc;
}

static int told(struct own *o, int rc)
{
	return stint_rt_gpu_told(o->s, o->g, rc);
}

/* --- Memory --- */

static int put(stint_step *s, size_t offset, const void *data, size_t bytes)
{
	struct own *o = s->gpu;
	if (stint_feed_has(o->feed, offset, bytes))
		return told(o, stint_feed_put(o->feed, offset, data, bytes));
	int rc = bytes ? stint_gpu_put(o->g, STINT_GPU_MAIN, o->arena + offset, data, bytes) : 0;
	if (!rc)
		rc = stint_gpu_sync(o->g, STINT_GPU_MAIN);
	return told(o, rc);
}

static int get(const stint_step *s, size_t offset, void *data, size_t bytes)
{
	struct own *o = s->gpu;
	if (stint_feed_has(o->feed, offset, bytes))
		return told(o, stint_feed_get(o->feed, offset, data, bytes));
	int rc = bytes ? stint_gpu_get(o->g, STINT_GPU_MAIN, data, o->arena + offset, bytes) : 0;
	if (!rc)
		rc = stint_gpu_sync(o->g, STINT_GPU_MAIN);
	return told(o, rc);
}

static void *at(const stint_step *s, size_t offset)
{
	(void)s, (void)offset;
	return NULL;
}

static void *hold(const stint_step *s, size_t offset, size_t bytes, int filled)
{
	void *copy = filled ? malloc(bytes + 1) : calloc(bytes + 1, 1);
	if (copy && filled && get(s, offset, copy, bytes)) {
		free(copy);
		copy = NULL;
	}
	return copy;
}

static void let(const stint_step *s, void *held)
{
	(void)s;
	free(held);
}

static int copy(stint_step *s, void *to, const void *from, size_t bytes)
{
	struct own *o = s->gpu;
	const stint_gpu_ptr y = gpu_address(to), x = gpu_address(from);
	const size_t apart = (size_t)(x - y); /* of two that overlap, as many bytes at once */
	const size_t most = y < x && apart < bytes ? apart : bytes;
	int rc = STINT_OK;
	for (size_t at = 0; at < bytes && y != x && !rc; at += most)
		rc = stint_gpu_copy(o->g, STINT_GPU_MAIN, y + at, x + at,
			bytes - at < most ? bytes - at : most);
	return told(o, rc);
}

static int zero(stint_step *s, void *to, size_t bytes)
{
	struct own *o = s->gpu;
	return told(o, stint_gpu_fill(o->g, STINT_GPU_MAIN, gpu_address(to), 0, bytes));
}

/* --- Kernels --- */

static int make_kernels(struct own *o)
{
	static const char *const option[] = {"--device-as-default-execution-space"};
	const struct stint_model *m = o->s->model;
	struct stint_gpu_code code;
	int n = 0, module;
	while (m->gpu->kernel[n].name)
		n++;
	o->kernel = calloc((size_t)n + 1, sizeof *o->kernel);
	if (!o->kernel)
		return stint_rt_no_memory(o->s);
	if (n == 0)
		return STINT_OK;
	int rc = stint_gpu_compile(o->g, m->gpu->kernels_text, 0, option, 1, &code);
	if (rc)
		return told(o, rc);
	rc = stint_gpu_load(o->g, &code, &module);
	stint_gpu_code_free(&code);
	for (int i = 0; i < n && !rc; i++)
		rc = stint_gpu_kernel_find(o->g, module, m->gpu->kernel[i].name, 0, &o->kernel[i]);
	return told(o, rc);
}

int stint_launch(stint_step *s, int kernel, void **args)
{
	struct own *o = s->gpu;
	const struct stint_kernel *k = &s->model->gpu->kernel[kernel];
	const unsigned grid[3] = {(unsigned)k->blocks, 1, 1};
	const unsigned block[3] = {(unsigned)k->threads, 1, 1};
	return stint_gpu_launch(o->g, STINT_GPU_MAIN, &o->kernel[kernel], grid, block, args);
}

/* --- Copies beside the kernels --- */

/* Once all that was put there before is done. */
int stint_offload(stint_step *s, const struct stint_copy *c)
{
	struct own *o = s->gpu;
	int rc = stint_gpu_behind(o->g, STINT_GPU_SIDE, STINT_GPU_MAIN);
	if (!rc)
		rc = stint_gpu_get(
			o->g, STINT_GPU_SIDE, o->host + c->from, o->arena + c->at, c->bytes);
	o->stored = 1;
	return rc ? rc : stint_gpu_mark(o->g, STINT_GPU_SIDE, o->mark + c->number);
}

/* Behind the copies to the host too: it may go where one of these is still read. */
int stint_fetch(stint_step *s, const struct stint_copy *c)
{
	struct own *o = s->gpu;
	int rc = stint_gpu_behind(o->g, STINT_GPU_BACK, STINT_GPU_MAIN);
	if (!rc)
		rc = stint_gpu_behind(o->g, STINT_GPU_BACK, STINT_GPU_SIDE);
	if (!rc)
		rc = stint_gpu_put(
			o->g, STINT_GPU_BACK, o->arena + c->at, o->host + c->from, c->bytes);
	return rc ? rc : stint_gpu_mark(o->g, STINT_GPU_BACK, o->mark + c->number);
}

/* What is put behind it waits until the copy is over. */
int stint_copied(stint_step *s, const struct stint_copy *c)
{
	struct own *o = s->gpu;
	return stint_gpu_wait(o->g, STINT_GPU_MAIN, o->mark + c->number);
}

static int make_host(struct own *o)
{
	const struct stint_model *m = o->s->model;
	void *host = NULL;
	if (m->gpu->host_bytes == 0)
		return STINT_OK;
	const int rc = stint_gpu_pinned(o->g, m->gpu->host_bytes, &host);
	o->host = host;
	o->mark = stint_gpu_marks(o->g, m->gpu->ncopy);
	return told(o, rc);
}

/* --- Steps --- */

static int (*schedule_of(const struct own *o, int train))(stint_step *, const struct stint_probe *)
{
	return train ? o->s->model->train : o->s->model->eval;
}

static int which_graph(const stint_step *s, int train)
{
	return train && !s->last ? 2 : train;
}

/* The schedule names the step that failed, the device says why. */
static int run_schedule(struct own *o, int train, const struct stint_probe *probe)
{
	char step[128];
	o->stored = 0;
	if (shared(o))
		stint_gpu_ranks_begin(o->ranks);
	int rc = schedule_of(o, train)(o->s, probe);
	if (!rc)
		return shared(o) ? told(o, stint_gpu_ranks_end(o->ranks)) : rc;
	snprintf(step, sizeof step, "%.120s", o->s->message);
	snprintf(o->s->message, sizeof o->s->message, "%s: %.120s", step, stint_gpu_message(o->g));
	return rc;
}

static int record(struct own *o, int train)
{
	struct stint_gpu_graph *graph = NULL;
	if (!schedule_of(o, train))
		return STINT_OK;
	int rc = told(o, stint_gpu_capture_begin(o->g));
	if (rc)
		return rc;
	rc = run_schedule(o, train, NULL);
	int end = stint_gpu_capture_end(o->g, &graph);
	if (rc) { /* the first failure is the one to tell */
		stint_gpu_graph_free(o->g, graph);
		return rc;
	}
	struct stint_gpu_graph **place = &o->graph[which_graph(o->s, train)];
	stint_gpu_graph_free(o->g, *place);
	*place = graph;
	return told(o, end);
}

/* Micro-batches of a step that are done here. */
static int64_t shards_here(const stint_step *s)
{
	const struct stint_ranks *r = s->ranks;
	const int64_t shards = s->model->shards;
	return r ? stint_tree_first(shards, r->n, r->rank + 1) -
			       stint_tree_first(shards, r->n, r->rank)
		 : shards;
}

static int record_as(struct own *o, int as)
{
	stint_step *s = o->s;
	const int last = s->last;
	if (o->recorded == as)
		return STINT_OK;
	const int trains = s->ranks || s->model->ranks < 2; /* nobody has a piece to train */
	int rc = record(o, 0);
	s->last = 1;
	if (!rc && trains)
		rc = record(o, 1);
	s->last = 0;
	if (!rc && trains && shards_here(s) > 1)
		rc = record(o, 1);
	s->last = last;
	o->recorded = rc ? NOT_RECORDED : as;
	return rc;
}

/* What several processes share begins with them. */
static int record_at_first(struct own *o)
{
	return o->s->model->ranks > 1 ? STINT_OK : record_as(o, FOR_ONE);
}

static int put_numbers(struct own *o, const int64_t control[STINT_CONTROLS], double lr)
{
	const struct stint_model *m = o->s->model;
	struct numbers *x = o->numbers;
	int rc = STINT_OK;
	memcpy(x->control, control, sizeof x->control);
	x->lr64 = lr;
	x->lr32 = (float)lr;
	if (m->control >= 0)
		rc = stint_gpu_put(o->g, STINT_GPU_MAIN, o->arena + m->resident[m->control].offset,
			x->control, m->resident[m->control].bytes);
	if (!rc && m->lr >= 0) {
		const int wide = m->resident[m->lr].dtype == STINT_F64;
		rc = stint_gpu_put(o->g, STINT_GPU_MAIN, o->arena + m->resident[m->lr].offset,
			wide ? (void *)&x->lr64 : (void *)&x->lr32,
			wide ? sizeof x->lr64 : sizeof x->lr32);
	}
	return told(o, rc);
}

/* They are on their way behind the step. */
static int get_numbers(struct own *o, size_t loss)
{
	const struct stint_model *m = o->s->model;
	const int wide = m->loss_dtype == STINT_F64;
	struct numbers *x = o->numbers;
	int rc = STINT_OK;
	x->bad = 0;
	if (loss != SIZE_MAX)
		rc = stint_gpu_get(o->g, STINT_GPU_MAIN,
			wide ? (void *)&x->loss64 : (void *)&x->loss32, o->arena + loss,
			wide ? sizeof x->loss64 : sizeof x->loss32);
	if (!rc && m->control >= 0)
		rc = stint_gpu_get(o->g, STINT_GPU_MAIN, &x->bad,
			o->arena + m->resident[m->control].offset + 3 * sizeof x->bad,
			sizeof x->bad);
	return told(o, rc);
}

static size_t loss_of(const struct own *o, int train)
{
	return train ? o->s->model->loss_offset_train : o->s->model->loss_offset_eval;
}

static int finish(stint_step *s, int train)
{
	struct own *o = s->gpu;
	const struct numbers *x = o->numbers;
	const int rc = shared(o) ? stint_gpu_ranks_wait(o->ranks)
				 : told(o, stint_gpu_sync(o->g, STINT_GPU_MAIN));
	if (rc)
		return rc;
	if (x->bad) {
		snprintf(o->s->message, sizeof o->s->message,
			"an index or label %lld is out of range", (long long)x->bad);
		return STINT_BAD_DATA;
	}
	if (loss_of(o, train) != SIZE_MAX)
		s->loss = s->model->loss_dtype == STINT_F64 ? x->loss64 : (double)x->loss32;
	return STINT_OK;
}

/* --- Looking on: what is shown is copied to the host first --- */

struct look {
	struct own *o;
	const struct stint_probe *probe;
	struct stint_gpu_clock clock;
	int rc;
};

/* NULL: no memory, or the device failed. What is not in the arena is the host's already. */
static void *copy_of(struct look *l, const void *data, size_t bytes)
{
	const stint_gpu_ptr at = gpu_address(data), from = l->o->arena;
	const int here = at < from || at - from >= l->o->s->model->arena_bytes;
	void *copy = data ? malloc(bytes + 1) : NULL;
	if (copy && here)
		memcpy(copy, data, bytes);
	else if (copy) {
		const int rc = get(l->o->s, (size_t)(at - from), copy, bytes);
		l->rc = l->rc ? l->rc : rc;
		if (rc) {
			free(copy);
			copy = NULL;
		}
	}
	return copy;
}

static void look_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	struct look *l = user;
	void *copy = copy_of(l, data, bytes);
	l->probe->gradient(l->probe->user, parameter, copy, copy ? bytes : 0);
	free(copy);
}

static void look_output(void *user, int output, int dtype, const void *data, size_t bytes)
{
	struct look *l = user;
	void *copy = copy_of(l, data, bytes);
	if (copy)
		l->probe->output(l->probe->user, output, dtype, copy, bytes);
	else if (!l->rc)
		l->rc = stint_rt_no_memory(l->o->s);
	free(copy);
}

static void look_tick(void *user, int index)
{
	struct look *l = user;
	const int rc = l->probe->took ? stint_gpu_clock_mark(l->o->g, &l->clock, index)
				      : stint_gpu_sync(l->o->g, STINT_GPU_MAIN);
	if (!l->rc)
		l->rc = told(l->o, rc);
	if (l->probe->tick)
		l->probe->tick(l->probe->user, index);
}

static int look_again(void *user, int index)
{
	const struct look *l = user;
	return l->probe->again(l->probe->user, index);
}

static int run_probed(struct own *o, int train, const struct stint_probe *probe)
{
	const struct stint_model *m = o->s->model;
	struct look l = {.o = o, .probe = probe};
	const struct stint_probe mine = {.user = &l,
		.gradient = probe->gradient ? look_gradient : NULL,
		.output = probe->output ? look_output : NULL,
		.tick = probe->tick || probe->took ? look_tick : NULL,
		.again = probe->again ? look_again : NULL};
	int rc = STINT_OK;
	if (probe->took)
		rc = told(o, stint_gpu_clock_start(o->g, &l.clock, o->graph[0],
				     train ? m->ntrain_steps : m->neval_steps));
	if (!rc)
		rc = run_schedule(o, train, &mine);
	rc = rc ? rc : l.rc;
	if (!rc && probe->took)
		rc = told(o, stint_gpu_clock_tell(o->g, &l.clock, probe));
	stint_gpu_clock_free(&l.clock);
	return rc;
}

static int start(stint_step *s, int train, const int64_t control[STINT_CONTROLS], double lr,
	const struct stint_probe *probe)
{
	struct own *o = s->gpu;
	const int as = !shared(o) ? FOR_ONE : s->ranks->fast ? FOR_RANKS_FAST : FOR_RANKS;
	int rc = shared(o) ? stint_gpu_ranks_there(o->ranks) : STINT_OK;
	if (!rc)
		rc = record_as(o, as);
	if (!rc)
		rc = put_numbers(o, control, lr);
	if (!rc)
		rc = told(o, stint_feed_take(o->feed));
	if (!rc)
		rc = probe ? run_probed(o, train, probe)
			   : told(o, stint_gpu_replay(o->g, o->graph[which_graph(s, train)]));
	return rc ? rc : get_numbers(o, loss_of(o, train));
}

/* --- Init and free --- */

stint_gpu *stint_rt_gpu_of(const stint_step *s)
{
	const struct own *o = s->gpu;
	return o->g;
}

static void release(stint_step *s)
{
	struct own *o = s->gpu;
	if (!o)
		return;
	(void)stint_gpu_sync(o->g, STINT_GPU_MAIN); /* of a step that nobody finished */
	for (int i = 0; i < 3; i++)
		if (o->graph[i])
			stint_gpu_graph_free(o->g, o->graph[i]);
	if (s->model->library)
		s->model->library->free(s);
	stint_feed_free(o->feed);
	stint_gpu_ranks_free(o->ranks);
	free(o->kernel);
	stint_gpu_free(o->g);
	free(o);
	s->gpu = NULL;
}

static int memory(stint_step *s, const char *what, struct stint_device_memory *out)
{
	struct own *o = s->gpu;
	return told(o, stint_rt_gpu_memory(o->g, what, out));
}

static int peaks(stint_step *s, struct stint_device_peaks *out)
{
	const struct own *o = s->gpu;
	enum stint_gpu_type type = STINT_GPU_F32; /* the narrowest of the step's products */
	for (int i = 0; i < s->model->nlib; i++) {
		struct stint_gpu_product p;
		if (!stint_gpu_product_of(
			    &s->model->lib[i].call, stint_gpu_facts_of(o->g)->arch, &p) &&
			p.in != STINT_GPU_F32)
			type = p.in;
	}
	return stint_rt_gpu_peaks(type, s->model->gpu->tf32, out, s->message, sizeof s->message);
}

/* Of those that are shared by as many processes, as their launchers number these on each machine.
 */
static int ordinal_of(struct own *o, int *ordinal)
{
	static const char *const number[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
		"MV2_COMM_WORLD_LOCAL_RANK", "PMIX_LOCAL_RANK", "SLURM_LOCALID"};
	const char *mine = NULL;
	int n, rc = o->s->model->ranks > 1 ? stint_gpu_count(o->g, &n) : STINT_OK;
	*ordinal = 0;
	if (rc || o->s->model->ranks < 2)
		return rc;
	for (size_t i = 0; i < sizeof number / sizeof *number && !mine; i++)
		mine = getenv(number[i]);
	*ordinal = mine ? atoi(mine) % n : 0;
	*ordinal = *ordinal < 0 ? 0 : *ordinal;
	return rc;
}

static int open_device(struct own *o, void *arena)
{
	const struct stint_model *m = o->s->model;
	void *pinned = NULL;
	int ordinal, rc = ordinal_of(o, &ordinal);
	if (!rc)
		rc = stint_gpu_open(o->g, ordinal);
	if (!rc)
		rc = stint_gpu_arena(o->g, gpu_address(arena), m->arena_bytes, &o->arena);
	if (!rc)
		rc = stint_gpu_pinned(o->g, sizeof *o->numbers, &pinned);
	o->numbers = pinned;
	o->s->arena = (unsigned char *)(uintptr_t)o->arena;
	return told(o, rc);
}

/* The arena is zeros, and inputs may come. */
static int clear(struct own *o)
{
	const struct stint_model *m = o->s->model;
	int rc = stint_gpu_fill(o->g, STINT_GPU_MAIN, o->arena, 0, m->arena_bytes);
	if (!rc)
		rc = stint_feed_new(&o->feed, o->g, m, o->arena);
	return rc == STINT_NO_MEMORY && !o->feed ? stint_rt_no_memory(o->s) : told(o, rc);
}

static int open_here(stint_step *s, void *arena)
{
	struct own *o = calloc(1, sizeof *o);
	if (!o || stint_gpu_new(&o->g, NULL)) {
		if (o)
			stint_gpu_free(o->g);
		free(o);
		return stint_rt_no_memory(s);
	}
	o->s = s;
	s->gpu = o;
	int rc = open_device(o, arena);
	if (!rc)
		rc = make_kernels(o);
	if (!rc && s->model->library)
		rc = s->model->library->make(s);
	if (!rc)
		rc = clear(o);
	if (!rc)
		rc = make_host(o);
	return rc ? rc : record_at_first(o);
}

/* --- Other processes --- */

struct stint_gpu_ranks *stint_rt_gpu_ranks_of(const stint_step *s)
{
	const struct own *o = s->gpu;
	return o->ranks;
}

int stint_rt_gpu_has_stored(const stint_step *s)
{
	const struct own *o = s->gpu;
	return o->stored;
}

_Static_assert((int)STINT_WORLD == (int)STINT_GPU_WORLD, "one thing, two names");
static int world(stint_step *s, unsigned char id[STINT_WORLD], char words[192])
{
	struct own *o = s->gpu;
	stint_gpu_identity(o->g, words);
	return told(o, stint_gpu_world(o->g, id));
}

static int join(stint_step *s, const unsigned char id[STINT_WORLD])
{
	struct own *o = s->gpu;
	if (s->model->ranks < 2)
		return stint_rt_fail(s, STINT_BAD_DATA,
			"'%s' was compiled for one GPU: compile it with --ranks N", s->model->name);
	stint_gpu_ranks_free(o->ranks); /* of others, before */
	o->ranks = NULL;
	o->recorded = NOT_RECORDED;
	return stint_gpu_ranks_new(&o->ranks, s, o->g, o->kernel, id);
}

const struct stint_device stint_rt_gpu = {.open = open_here,
	.free = release,
	.at = at,
	.put = put,
	.get = get,
	.hold = hold,
	.let = let,
	.copy = copy,
	.zero = zero,
	.world = world,
	.join = join,
	.start = start,
	.finish = finish,
	.memory = memory,
	.peaks = peaks};
