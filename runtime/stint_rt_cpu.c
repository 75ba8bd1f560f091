/* SPDX-License-Identifier: MIT-0 */
/* A step on the processor: the arena is in the host's memory, and a step is done when start
 * returns. See stint_rt.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* madvise */
#endif
#include "stint_rt_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

/* --- Address space --- */

enum {
	SPARE = 16 << 20, /* for data and files, beside all that is asked for */
	STACK = 8 << 20,  /* a thread's, where no limit is set */
	STACK_MAX = 1 << 30
};

int stint_rt_room(size_t bytes)
{
#ifdef __linux__
	if (!bytes)
		return 1;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p != MAP_FAILED && !munmap(p, bytes);
#else
	(void)bytes;
	return 1;
#endif
}

/* Bytes that the process has. */
static size_t in_use(void)
{
	size_t pages = 0;
#ifdef __linux__
	FILE *f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%zu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	pages *= (size_t)sysconf(_SC_PAGESIZE);
#endif
	return pages;
}

static int has_limit(void)
{
#ifdef __linux__
	struct rlimit limit;
	return !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
#else
	return 0;
#endif
}

int stint_rt_no_room(stint_step *s, const char *what, size_t bytes, size_t later)
{
	const size_t mib = (bytes + (1 << 20) - 1) >> 20,
		     kib = (in_use() + bytes + later + SPARE) >> 10;
	if (has_limit())
		snprintf(s->message, sizeof s->message,
			"out of address space: %s may take %zu MiB more; the step fits in `ulimit "
			"-v %zu`",
			what, mib, kib);
	else
		snprintf(s->message, sizeof s->message, "out of memory: %s may take %zu MiB more",
			what, mib);
	return STINT_NO_MEMORY;
}

/* The stacks of a step's threads but for the first. */
static size_t stacks(int threads)
{
	size_t one = STACK;
#ifdef __linux__
	struct rlimit limit;
	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < STACK_MAX)
		one = (size_t)limit.rlim_cur;
#endif
	return threads > 1 ? (one + (1 << 16)) * (size_t)(threads - 1) : 0;
}

/* --- The arena --- */

enum { HUGE_PAGE = 1 << 21 };

/* Large pages for the whole ones among the arena's bytes; the rest of the last one stays small, so
 * that the arena takes no more memory than planned. Hints: failure is fine. */
static void advise(unsigned char *p, size_t bytes)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE) && defined(MADV_NOHUGEPAGE)
	size_t large = bytes / HUGE_PAGE * HUGE_PAGE;
	if (large)
		(void)madvise(p, large, MADV_HUGEPAGE);
	if (large && bytes > large)
		(void)madvise(p + large, HUGE_PAGE, MADV_NOHUGEPAGE);
#else
	(void)p, (void)bytes;
#endif
}

static void *arena_new(size_t bytes, size_t alignment)
{
	size_t align = bytes >= HUGE_PAGE && alignment < HUGE_PAGE ? HUGE_PAGE : alignment;
	if (bytes > SIZE_MAX - align)
		return NULL;
	size_t whole = (bytes + align - 1) / align * align; /* as C11 wants it; not touched */
	void *p = aligned_alloc(align, whole ? whole : align);
	if (p && align == HUGE_PAGE)
		advise(p, bytes);
	return p;
}

/* Zeros: states start so, and every page is there before the first step. The step's threads share
 * the work, most of which is the system's; and here they begin. */
static void arena_clear(unsigned char *p, size_t bytes, int threads)
{
	const int64_t pages = (int64_t)(bytes / HUGE_PAGE);
	(void)threads;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(threads)
#endif
	for (int64_t i = 0; i <= pages; i++)
		memset(p + i * HUGE_PAGE, 0, i < pages ? HUGE_PAGE : bytes % HUGE_PAGE);
}

/* --- Memory --- */

/* Bytes that begin behind the arena's end are the file's. */
static int in_file(const stint_step *s, size_t offset)
{
	return s->model->disk && offset >= s->model->arena_bytes;
}

static void *at(const stint_step *s, size_t offset)
{
	return in_file(s, offset) ? NULL : s->arena + offset;
}

/* What hold gave of the arena is there already. */
static int put(stint_step *s, size_t offset, const void *data, size_t bytes)
{
	if (in_file(s, offset))
		return s->model->disk->write(s, offset, data, bytes);
	if (data != s->arena + offset)
		memcpy(s->arena + offset, data, bytes);
	return STINT_OK;
}

static int get(const stint_step *s, size_t offset, void *data, size_t bytes)
{
	if (in_file(s, offset))
		return s->model->disk->read((stint_step *)s, offset, data, bytes);
	if (data != s->arena + offset)
		memcpy(data, s->arena + offset, bytes);
	return STINT_OK;
}

static void *hold(const stint_step *s, size_t offset, size_t bytes, int filled)
{
	if (!in_file(s, offset))
		return at(s, offset);
	void *copy = calloc(bytes ? bytes : 1, 1);
	if (copy && filled && get(s, offset, copy, bytes)) {
		free(copy);
		return NULL;
	}
	return copy;
}

static void let(const stint_step *s, void *held)
{
	const uintptr_t p = (uintptr_t)held, arena = (uintptr_t)s->arena;
	if (p < arena || p - arena >= s->model->arena_bytes)
		free(held);
}

/* --- Steps --- */

static void write_control(stint_step *s, const int64_t control[STINT_CONTROLS], double lr)
{
	const struct stint_model *m = s->model;
	if (m->control >= 0)
		memcpy(s->arena + m->resident[m->control].offset, control,
			m->resident[m->control].bytes);
	if (m->lr >= 0) {
		const float single = (float)lr;
		unsigned char *p = s->arena + m->resident[m->lr].offset;
		if (m->resident[m->lr].dtype == STINT_F64)
			memcpy(p, &lr, sizeof lr);
		else
			memcpy(p, &single, sizeof single);
	}
}

static void read_loss(stint_step *s, size_t offset)
{
	float single;
	if (offset == SIZE_MAX)
		return;
	if (s->model->loss_dtype == STINT_F64) {
		memcpy(&s->loss, s->arena + offset, sizeof s->loss);
	} else {
		memcpy(&single, s->arena + offset, sizeof single);
		s->loss = (double)single;
	}
}

/* Run with the model's number of threads, whatever the caller's is. */
static int run_here(stint_step *s, int (*step)(stint_step *, const struct stint_probe *),
	const struct stint_probe *probe)
{
#ifdef _OPENMP
	int before = omp_get_max_threads();
	if (before != s->model->threads)
		omp_set_num_threads(s->model->threads);
	int rc = step(s, probe);
	if (before != s->model->threads)
		omp_set_num_threads(before);
	return rc;
#else
	return step(s, probe);
#endif
}

static int copy(stint_step *s, void *to, const void *from, size_t bytes)
{
	(void)s;
	if (to != from)
		memmove(to, from, bytes);
	return STINT_OK;
}

static int zero(stint_step *s, void *to, size_t bytes)
{
	(void)s;
	memset(to, 0, bytes);
	return STINT_OK;
}

static int start(stint_step *s, int train, const int64_t control[STINT_CONTROLS], double lr,
	const struct stint_probe *probe)
{
	const struct stint_disk *disk = s->model->disk;
	write_control(s, control, lr);
	const int rc = run_here(s, train ? s->model->train : s->model->eval, probe);
	const int copied = disk ? disk->settle(s) : STINT_OK;
	return rc ? rc : copied;
}

static int finish(stint_step *s, int train)
{
	read_loss(s, train ? s->model->loss_offset_train : s->model->loss_offset_eval);
	return STINT_OK;
}

/* --- Open and free --- */

static int open_here(stint_step *s, void *arena)
{
	const struct stint_model *m = s->model;
	const size_t stack = stacks(m->threads),
		     library = m->nlib ? STINT_LIB_ROOM + (size_t)m->nlib * STINT_LIB_KEEPS : 0;
	s->owned = arena ? NULL : arena_new(m->arena_bytes, m->alignment);
	s->arena = arena ? arena : s->owned;
	if (!s->arena)
		return stint_rt_no_room(s, "the arena", m->arena_bytes, stack + library);
	if (!stint_rt_room(stack))
		return stint_rt_no_room(s, "its threads' stacks", stack, library);
	if (!s->longest)
		arena_clear(s->arena, m->arena_bytes, m->threads);
	if (m->disk) {
		const int rc = m->disk->open(s);
		if (rc)
			return rc;
	}
	return m->library ? m->library->make(s) : STINT_OK;
}

static void release(stint_step *s)
{
	if (s->model->library)
		s->model->library->free(s);
	if (s->model->disk)
		s->model->disk->close(s);
	free(s->owned);
}

const struct stint_device stint_rt_cpu = {.open = open_here,
	.free = release,
	.at = at,
	.put = put,
	.get = get,
	.hold = hold,
	.let = let,
	.copy = copy,
	.zero = zero,
	.start = start,
	.finish = finish};
