/* SPDX-License-Identifier: MIT-0 */
/* A stint_gpu from beginning to end: the device, its facts, and memory outside the arena. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stint_gpu_api.h"

double stint_gpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

int stint_gpu_new(stint_gpu **out, const char *folders)
{
	stint_gpu *g = *out = calloc(1, sizeof *g);
	if (!g)
		return STINT_NO_MEMORY;
	g->ms_last = stint_gpu_ms();
	if (folders && !(g->folders = strdup(folders)))
		return stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory");
	char path[1024];
	stint_cache_folder(path, sizeof path);
	return stint_gpu_cache(g, path);
}

int stint_gpu_cache(stint_gpu *g, const char *folder)
{
	char *copy = folder && *folder ? strdup(folder) : NULL;
	free(g->cache);
	g->cache = copy;
	if (folder && *folder && !copy)
		return stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory");
	return STINT_OK;
}

const char *stint_gpu_cache_folder(const stint_gpu *g)
{
	return g->cache ? g->cache : "";
}

static void release_device(stint_gpu *g)
{
	stint_gpu_world_end(g, 0);
	if (stint_gpu_enter(g))
		return;
	for (int i = 0; i < GPU_STREAMS; i++)
		if (g->stream[i]) {
			g->cu.cuStreamSynchronize(g->stream[i]);
			g->cu.cuStreamDestroy_v2(g->stream[i]);
		}
	for (int i = 0; i < GPU_STREAMS; i++)
		if (g->turn[i])
			g->cu.cuEventDestroy_v2(g->turn[i]);
	for (int i = 0; i < g->nevent; i++)
		if (g->event[i])
			g->cu.cuEventDestroy_v2(g->event[i]);
	if (g->lt_handle)
		g->lt.cublasLtDestroy(g->lt_handle);
	if (g->dnn_handle)
		g->dnn.cudnnDestroy(g->dnn_handle);
	for (int i = 0; i < g->nmodule; i++)
		if (g->module[i])
			g->cu.cuLibraryUnload(g->module[i]);
	for (int i = 0; i < g->npinned; i++)
		if (g->pinned[i])
			g->cu.cuMemFreeHost(g->pinned[i]);
	if (g->owned)
		g->cu.cuMemFree_v2(g->owned);
	stint_gpu_leave(g, 0);
	g->cu.cuDevicePrimaryCtxRelease_v2(g->device);
}

void stint_gpu_free(stint_gpu *g)
{
	if (!g)
		return;
	if (g->open)
		release_device(g);
	if (g->dnn_paper)
		g->dnn.cudnnBackendDestroyDescriptor(g->dnn_paper);
	for (int i = 0; i < STINT_GPU_LIBRARIES; i++)
		free(g->library[i].path); /* the libraries stay: see stint_gpu.h */
	free(g->module);
	free(g->event);
	free(g->pinned);
	free(g->log);
	free(g->folders);
	free(g->cache);
	free(g);
}

/* --- The device --- */

static int no_device(stint_gpu *g, int result)
{
	const char *name = NULL, *text = NULL;
	g->cu.cuGetErrorName(result, &name);
	g->cu.cuGetErrorString(result, &text);
	return stint_gpu_fail(g, STINT_NO_DEVICE, "no CUDA device: %s (%s)",
		text ? text : "the driver does not start", name ? name : "?");
}

int stint_gpu_count(stint_gpu *g, int *count)
{
	int n = 0;
	int rc = stint_gpu_need(g, STINT_GPU_DRIVER);
	if (rc)
		return rc;
	int result = g->cu.cuInit(0);
	if (!result)
		result = g->cu.cuDeviceGetCount(&n);
	if (result)
		return no_device(g, result);
	if (n < 1)
		return stint_gpu_fail(g, STINT_NO_DEVICE, "no CUDA device: the driver shows none");
	*count = n;
	return STINT_OK;
}

int stint_gpu_arch(int major, int minor)
{
	/* code for one minor version runs on later ones of the same major version */
	static const int arch[] = {120, 100, 90, 89, 86, 80};
	for (size_t i = 0; i < sizeof arch / sizeof *arch; i++)
		if (arch[i] / 10 == major && arch[i] % 10 <= minor)
			return arch[i];
	return 0;
}

static int facts_read(stint_gpu *g)
{
	struct stint_gpu_facts *f = &g->facts;
	const struct {
		int what, *out;
	} list[] = {
		{GPU_CU_MAJOR, &f->major},
		{GPU_CU_MINOR, &f->minor},
		{GPU_CU_SM, &f->sm},
		{GPU_CU_CLOCK, &f->clock_khz},
		{GPU_CU_MEMORY_CLOCK, &f->memory_clock_khz},
		{GPU_CU_BUS, &f->bus_bits},
		{GPU_CU_L2, &f->l2_bytes},
		{GPU_CU_SHARED_BLOCK, &f->shared_block},
		{GPU_CU_SHARED_SM, &f->shared_sm},
		{GPU_CU_REGISTERS_SM, &f->registers_sm},
		{GPU_CU_THREADS_SM, &f->threads_sm},
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (g->cu.cuDeviceGetAttribute(list[i].out, list[i].what, g->device))
			*list[i].out = 0; /* a fact the driver does not tell */
	int rc = stint_gpu_check(
		g, g->cu.cuDeviceGetName(f->name, sizeof f->name, g->device), "the device's name");
	if (!rc)
		rc = stint_gpu_check(
			g, g->cu.cuDeviceTotalMem_v2(&f->memory, g->device), "the device's memory");
	f->driver = g->library[STINT_GPU_DRIVER].version;
	f->arch = stint_gpu_arch(f->major, f->minor);
	/* two transfers a clock */
	f->bandwidth = 2e3 * f->memory_clock_khz * (f->bus_bits / 8);
	if (!rc && !f->arch)
		rc = stint_gpu_fail(g, STINT_BAD_MACHINE,
			"%s has compute capability %d.%d; 8.x, 9.x, 10.x or 12.x is needed",
			f->name, f->major, f->minor);
	return rc;
}

/* Free bytes before there is a context, from the driver's other library; 0: not known. */
static size_t free_before(stint_gpu *g)
{
	struct {
		unsigned long long total, free_bytes, used;
	} memory = {0};
	int (*start)(void) = NULL, (*stop)(void) = NULL;
	int (*by_bus)(const char *, void **) = NULL, (*info)(void *, void *) = NULL;
	const struct {
		const char *name;
		void *function;
	} list[] = {{"nvmlInit_v2", &start}, {"nvmlShutdown", &stop},
		{"nvmlDeviceGetHandleByPciBusId_v2", &by_bus}, {"nvmlDeviceGetMemoryInfo", &info}};
	char bus[64];
	void *device = NULL, *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
	int there = library && !g->cu.cuDeviceGetPCIBusId(bus, sizeof bus, g->device);
	for (size_t i = 0; there && i < sizeof list / sizeof *list; i++) {
		void *p = dlsym(library, list[i].name);
		memcpy(list[i].function, &p, sizeof p);
		there = p != NULL;
	}
	if (there && !start()) {
		if (by_bus(bus, &device) || info(device, &memory))
			memory.free_bytes = 0;
		stop();
	}
	if (library)
		dlclose(library);
	return (size_t)memory.free_bytes;
}

static int context_make(stint_gpu *g)
{
	int rc = facts_read(g);
	if (rc)
		return rc;
	g->free_last = free_before(g);
	if (!g->free_last) /* then others' memory counts as the context's */
		g->free_last = g->facts.memory;
	rc = stint_gpu_check(
		g, g->cu.cuDevicePrimaryCtxRetain(&g->context, g->device), "the device's context");
	if (rc)
		return rc;
	g->open = 1;
	rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	for (int i = 0; !rc && i < GPU_STREAMS; i++)
		rc = stint_gpu_check(
			g, g->cu.cuStreamCreate(&g->stream[i], GPU_CU_STREAM_ALONE), "a stream");
	if (!rc)
		rc = stint_gpu_measure(g, "context", 0);
	return stint_gpu_leave(g, rc);
}

int stint_gpu_open(stint_gpu *g, int ordinal)
{
	int count = 0;
	int rc = stint_gpu_count(g, &count);
	if (rc)
		return rc;
	if (g->open)
		return stint_gpu_fail(g, STINT_BAD_DATA, "a device is open already");
	if (ordinal < 0 || ordinal >= count)
		return stint_gpu_fail(g, STINT_NO_DEVICE, "no CUDA device %d: there %s %d", ordinal,
			count == 1 ? "is" : "are", count);
	rc = stint_gpu_check(g, g->cu.cuDeviceGet(&g->device, ordinal), "the device");
	return rc ? rc : context_make(g);
}

const struct stint_gpu_facts *stint_gpu_facts_of(const stint_gpu *g)
{
	return &g->facts;
}

const char *stint_gpu_identity(stint_gpu *g, char buf[192])
{
	const struct stint_gpu_facts *f = &g->facts;
	(void)stint_gpu_need(g, STINT_GPU_CUBLASLT);
	snprintf(buf, 192, "%s sm_%d%d %d SMs driver %d cublasLt %d", f->name, f->major, f->minor,
		f->sm, f->driver, g->library[STINT_GPU_CUBLASLT].version);
	return buf;
}

/* --- Memory outside the arena --- */

static struct stint_gpu_item *item_of(stint_gpu *g, const char *what)
{
	int i = 0;
	while (i < g->nitem && strcmp(g->item[i].what, what) != 0)
		i++;
	if (i == g->nitem && i == GPU_ITEMS) /* no room: the last item takes it */
		i--;
	if (i == g->nitem)
		g->item[g->nitem++].what = what;
	return &g->item[i];
}

void stint_gpu_time_note(stint_gpu *g, const char *what)
{
	const double now = stint_gpu_ms();
	item_of(g, what)->ms += now - g->ms_last;
	g->ms_last = now;
}

int stint_gpu_measure(stint_gpu *g, const char *what, size_t less)
{
	size_t free_bytes, total;
	int rc = stint_gpu_check(g, g->cu.cuMemGetInfo_v2(&free_bytes, &total), "free memory");
	if (rc)
		return rc;
	const int64_t taken = (int64_t)g->free_last - (int64_t)free_bytes - (int64_t)less;
	g->free_last = free_bytes;
	item_of(g, what)->bytes += taken;
	stint_gpu_time_note(g, what);
	return STINT_OK;
}

int stint_gpu_memory_note(stint_gpu *g, const char *what)
{
	int rc = stint_gpu_enter(g);
	return rc ? rc : stint_gpu_leave(g, stint_gpu_measure(g, what, 0));
}

int stint_gpu_memory(const stint_gpu *g, const struct stint_gpu_item **items)
{
	*items = g->item;
	return g->nitem;
}

int stint_gpu_memory_free(stint_gpu *g, size_t *free_bytes, size_t *total_bytes)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	rc = stint_gpu_check(g, g->cu.cuMemGetInfo_v2(free_bytes, total_bytes), "free memory");
	return stint_gpu_leave(g, rc);
}
