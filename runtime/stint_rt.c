/* The runtime core. See stint_rt.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* madvise */
#endif
#include "stint_rt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef STINT_WITH_LIB
#include "stint_lib.h"
#endif
#ifdef STINT_WITH_GPU
#include "stint_rt_gpu.h"
#endif

#include "safetensors.h"

static int fail(stint_step *s, int rc, const char *what, const char *name)
{
	snprintf(s->message, sizeof s->message, what, name);
	return rc;
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
 * the work, most of which is the system's. */
static void arena_clear(unsigned char *p, size_t bytes, int threads)
{
	const int64_t pages = (int64_t)(bytes / HUGE_PAGE);
	(void)threads;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(threads) if (pages > 8)
#endif
	for (int64_t i = 0; i <= pages; i++)
		memset(p + i * HUGE_PAGE, 0, i < pages ? HUGE_PAGE : bytes % HUGE_PAGE);
}

/* --- Library primitives --- */

#ifdef STINT_WITH_LIB
static int make_library(stint_step *s)
{
	const struct stint_model *m = s->model;
	s->lib = calloc((size_t)m->nlib + 1, sizeof *s->lib);
	if (!s->lib)
		return fail(s, STINT_NO_MEMORY, "%s", "out of memory");
	for (int i = 0; i < m->nlib; i++) {
		int64_t bytes = stint_lib_workspace(m->lib[i].kind, m->lib[i].p, m->threads);
		if (bytes < 0 || (size_t)bytes > m->lib[i].workspace)
			return fail(s, STINT_BAD_MACHINE,
				"the library wants another workspace for %s than was planned: "
				"compile the model here",
				m->lib[i].kind);
		s->lib[i] = stint_lib_new(m->lib[i].kind, m->lib[i].p, m->threads, s->message);
		if (!s->lib[i])
			return STINT_BAD_MACHINE;
	}
	return STINT_OK;
}

static void free_library(stint_step *s)
{
	for (int i = 0; s->lib && i < s->model->nlib; i++)
		if (s->lib[i])
			stint_lib_free(s->lib[i]);
	free(s->lib);
}
#else
static int make_library(stint_step *s)
{
	return s->model->nlib ? fail(s, STINT_BAD_MACHINE, "%s",
					"the runtime was built without -DSTINT_WITH_LIB")
			      : STINT_OK;
}

static void free_library(stint_step *s)
{
	(void)s;
}
#endif

/* --- Init and free --- */

static int setup(stint_step *s, void *arena, size_t arena_bytes)
{
	const struct stint_model *m = s->model;
	if (m->version != STINT_RT_VERSION)
		return fail(s, STINT_BAD_MACHINE, "the step '%s' was generated for another runtime",
			m->name);
	if (m->machine_check) {
		int rc = m->machine_check(s);
		if (rc)
			return rc;
	}
	if (arena && arena_bytes < m->arena_bytes)
		return fail(
			s, STINT_BAD_DATA, "the arena handed in is too small for '%s'", m->name);
	if (arena && (uintptr_t)arena % m->alignment)
		return fail(s, STINT_BAD_DATA,
			"the arena handed in is not aligned as '%s' wants it", m->name);
#ifdef STINT_WITH_GPU
	if (m->kernel)
		return stint_rt_gpu_init(s, arena);
#endif
	s->owned = arena ? NULL : arena_new(m->arena_bytes, m->alignment);
	s->arena = arena ? arena : s->owned;
	if (!s->arena)
		return fail(s, STINT_NO_MEMORY, "%s", "out of memory for the arena");
	arena_clear(s->arena, m->arena_bytes, m->threads);
	return make_library(s);
}

int stint_init(stint_step **out, const struct stint_model *model, void *arena, size_t arena_bytes)
{
	stint_step *s = calloc(1, sizeof *s);
	*out = s;
	if (!s)
		return STINT_NO_MEMORY;
	s->model = model;
	s->loss = NAN;
	return setup(s, arena, arena_bytes);
}

void stint_free(stint_step *s)
{
	if (!s)
		return;
	if (s->device)
		s->device->free(s);
	else
		free_library(s);
	free(s->owned);
	free(s);
}

/* --- Residents --- */

int stint_find(const stint_step *s, const char *name)
{
	for (int i = 0; i < s->model->nresident; i++)
		if (!strcmp(s->model->resident[i].name, name))
			return i;
	return -1;
}

void *stint_at(stint_step *s, const char *name)
{
	int i = stint_find(s, name);
	return i < 0 || s->device ? NULL : s->arena + s->model->resident[i].offset;
}

static int inside(const stint_step *s, size_t offset, size_t bytes)
{
	return bytes <= s->model->arena_bytes && offset <= s->model->arena_bytes - bytes;
}

int stint_write(stint_step *s, size_t offset, const void *data, size_t bytes)
{
	if (!inside(s, offset, bytes))
		return fail(s, STINT_BAD_DATA, "%s", "outside of the arena");
	if (s->device)
		return s->device->put(s, offset, data, bytes);
	memcpy(s->arena + offset, data, bytes);
	return STINT_OK;
}

int stint_read(const stint_step *s, size_t offset, void *data, size_t bytes)
{
	if (!inside(s, offset, bytes))
		return STINT_BAD_DATA;
	if (s->device)
		return s->device->get(s, offset, data, bytes);
	memcpy(data, s->arena + offset, bytes);
	return STINT_OK;
}

int stint_set(stint_step *s, const char *name, const void *data, size_t bytes)
{
	int i = stint_find(s, name);
	if (i < 0)
		return fail(s, STINT_BAD_DATA, "the model has no tensor '%.100s'", name);
	if (s->model->resident[i].bytes != bytes)
		return fail(s, STINT_BAD_DATA, "'%.100s' has another size", name);
	return stint_write(s, s->model->resident[i].offset, data, bytes);
}

int stint_get(const stint_step *s, const char *name, void *data, size_t bytes)
{
	int i = stint_find(s, name);
	if (i < 0 || s->model->resident[i].bytes != bytes)
		return STINT_BAD_DATA;
	return stint_read(s, s->model->resident[i].offset, data, bytes);
}

/* Whether resident t is what a file holds; the rest is set before each step. */
static int stored(const struct stint_tensor *t)
{
	return t->kind != STINT_INPUT && t->kind != STINT_CONTROL;
}

/* Checks all tensors before the first is replaced: a file that does not fit changes nothing. */
static int check_file(stint_step *s, const struct safetensors *f, const char *path)
{
	int found = 0, wanted = 0;
	for (int i = 0; i < s->model->nresident; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		const struct safetensors_entry *e = stored(t) ? safetensors_find(f, t->name) : NULL;
		wanted += stored(t);
		if (e && (e->dtype != t->dtype || e->bytes != t->bytes))
			return fail(s, STINT_BAD_FILE,
				"'%.100s' has another type or shape in the weights file", t->name);
		found += e != NULL;
	}
	if (wanted && !found)
		return fail(s, STINT_BAD_FILE, "%.150s holds no tensor of this model", path);
	return STINT_OK;
}

/* Into the arena: straight, or to a device by parts. */
static int read_entry(stint_step *s, struct safetensors *f, const struct safetensors_entry *e,
	size_t offset, const char *path)
{
	enum { PART = 16 << 20 };
	int rc = 0;
	if (!s->device) {
		if (safetensors_read(f, e, 0, e->bytes, s->arena + offset))
			return fail(s, STINT_BAD_FILE, "cannot read %.150s", path);
		return STINT_OK;
	}
	unsigned char *part = malloc(e->bytes < PART ? e->bytes + 1 : PART);
	if (!part)
		return fail(s, STINT_NO_MEMORY, "%s", "out of memory");
	for (size_t at = 0; at < e->bytes && !rc; at += PART) {
		const size_t n = e->bytes - at < PART ? e->bytes - at : PART;
		rc = safetensors_read(f, e, at, n, part)
			     ? fail(s, STINT_BAD_FILE, "cannot read %.150s", path)
			     : stint_write(s, offset + at, part, n);
	}
	free(part);
	return rc;
}

int stint_load(stint_step *s, const char *path)
{
	struct safetensors *f;
	if (safetensors_open_header(&f, path, s->message))
		return STINT_BAD_FILE;
	int rc = check_file(s, f, path);
	for (int i = 0; i < s->model->nresident && !rc; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		const struct safetensors_entry *e = stored(t) ? safetensors_find(f, t->name) : NULL;
		if (e)
			rc = read_entry(s, f, e, t->offset, path);
	}
	safetensors_close(f);
	return rc;
}

/* --- Steps --- */

void stint_seed(stint_step *s, int64_t seed)
{
	s->seed = seed;
}

static void write_control(stint_step *s, const int64_t control[4], double lr)
{
	const struct stint_model *m = s->model;
	if (m->control >= 0)
		memcpy(s->arena + m->resident[m->control].offset, control, 4 * sizeof *control);
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

static int start(
	stint_step *s, int train, int64_t valid, double lr, const struct stint_probe *probe)
{
	const struct stint_model *m = s->model;
	const int64_t control[4] = {s->seed, s->count, valid, 0};
	if (s->running)
		return fail(s, STINT_BAD_DATA, "a step of '%s' is running", m->name);
	s->loss = NAN; /* a step that fails has none */
	if (s->device)
		return s->device->start(s, train, control, lr, probe);
	write_control(s, control, lr);
	return run_here(s, train ? m->train : m->eval, probe);
}

static int finish(stint_step *s, int train)
{
	const struct stint_model *m = s->model;
	if (s->device)
		return s->device->finish(s, train);
	read_loss(s, train ? m->loss_offset_train : m->loss_offset_eval);
	return STINT_OK;
}

static int train_start(stint_step *s, double lr, const struct stint_probe *probe)
{
	if (!s->model->train)
		return fail(s, STINT_BAD_DATA,
			"'%s' was compiled with --loss none: it has no training step",
			s->model->name);
	int rc = start(s, 1, INT64_MAX, lr, probe);
	if (!rc)
		s->running = 1;
	return rc;
}

int stint_train_start(stint_step *s, double lr)
{
	return train_start(s, lr, NULL);
}

int stint_train_finish(stint_step *s)
{
	if (!s->running)
		return fail(s, STINT_BAD_DATA, "no step of '%s' is running", s->model->name);
	s->running = 0;
	int rc = finish(s, 1);
	s->count += !rc;
	return rc;
}

int stint_train_probed(stint_step *s, double lr, const struct stint_probe *probe)
{
	int rc = train_start(s, lr, probe);
	return rc ? rc : stint_train_finish(s);
}

int stint_train(stint_step *s, double lr)
{
	return stint_train_probed(s, lr, NULL);
}

int stint_eval_probed(stint_step *s, int64_t valid, const struct stint_probe *probe)
{
	int rc = start(s, 0, valid > 0 ? valid : INT64_MAX, 0, probe);
	return rc ? rc : finish(s, 0);
}

int stint_eval(stint_step *s, int64_t valid)
{
	return stint_eval_probed(s, valid, NULL);
}

double stint_loss(const stint_step *s)
{
	return s->loss;
}

const char *stint_message(const stint_step *s)
{
	return s->message;
}

int stint_bad_index(stint_step *s, int step, int64_t value, const struct stint_step_info *info)
{
	snprintf(s->message, sizeof s->message,
		"step %d, node '%.80s' (%.40s): index or label %lld is out of range", step + 1,
		info->node, info->op, (long long)value);
	return STINT_BAD_DATA;
}
