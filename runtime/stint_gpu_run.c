/* SPDX-License-Identifier: MIT-0 */
/* Running on the device: the arena, copies, kernels, marks and graphs. */
#include <stdlib.h>
#include <string.h>

#include "stint_gpu_api.h"

enum { ALIGNMENT = 256, SHARED_PLAIN = 48 << 10, MAX_MARKS = 1 << 20 };

/* --- Memory --- */

/* The caller's memory: on this device, and all of it there. */
static int arena_check(stint_gpu *g, stint_gpu_ptr given, size_t bytes)
{
	int type = 0, ordinal = -1;
	unsigned long long start = 0;
	size_t size = 0;
	const struct {
		int what;
		void *out;
	} list[] = {{GPU_CU_POINTER_MEMORY, &type}, {GPU_CU_POINTER_ORDINAL, &ordinal},
		{GPU_CU_POINTER_START, &start}, {GPU_CU_POINTER_BYTES, &size}};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		int rc = stint_gpu_check(g,
			g->cu.cuPointerGetAttribute(list[i].out, list[i].what, given), "the arena");
		if (rc)
			return rc;
	}
	if (type != GPU_CU_ON_DEVICE || ordinal != g->device)
		return stint_gpu_fail(
			g, STINT_BAD_DATA, "the arena handed in is not memory of this device");
	if (given % ALIGNMENT)
		return stint_gpu_fail(g, STINT_BAD_DATA,
			"the arena handed in is not at a multiple of %d", ALIGNMENT);
	if (given < start || bytes > size || given - start > size - bytes)
		return stint_gpu_fail(g, STINT_BAD_DATA, "the arena handed in is too small");
	return STINT_OK;
}

int stint_gpu_arena(stint_gpu *g, stint_gpu_ptr given, size_t bytes, stint_gpu_ptr *out)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	if (g->arena)
		rc = stint_gpu_fail(g, STINT_BAD_DATA, "there is an arena already");
	else if (given)
		rc = arena_check(g, given, bytes);
	else {
		rc = stint_gpu_check(
			g, g->cu.cuMemAlloc_v2(&g->owned, bytes ? bytes : 1), "the arena");
		if (rc)
			g->owned = 0;
		if (!rc)
			rc = stint_gpu_measure(g, "arena rounding", bytes);
	}
	if (!rc)
		*out = g->arena = given ? given : g->owned;
	return stint_gpu_leave(g, rc);
}

int stint_gpu_pinned(stint_gpu *g, size_t bytes, void **out)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	void **place = stint_gpu_grow(&g->pinned, &g->npinned);
	if (!place)
		return stint_gpu_leave(g, stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory"));
	rc = stint_gpu_check(
		g, g->cu.cuMemHostAlloc(place, bytes ? bytes : 1, 0), "page-locked memory");
	if (rc)
		*place = NULL;
	else
		*out = *place;
	return stint_gpu_leave(g, rc);
}

int stint_gpu_put(stint_gpu *g, int stream, stint_gpu_ptr to, const void *from, size_t bytes)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(g,
		stint_gpu_check(g, g->cu.cuMemcpyHtoDAsync_v2(to, from, bytes, g->stream[stream]),
			"a copy to the device"));
}

int stint_gpu_get(stint_gpu *g, int stream, void *to, stint_gpu_ptr from, size_t bytes)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(g,
		stint_gpu_check(g, g->cu.cuMemcpyDtoHAsync_v2(to, from, bytes, g->stream[stream]),
			"a copy from the device"));
}

int stint_gpu_copy(stint_gpu *g, int stream, stint_gpu_ptr to, stint_gpu_ptr from, size_t bytes)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(g,
		stint_gpu_check(g, g->cu.cuMemcpyDtoDAsync_v2(to, from, bytes, g->stream[stream]),
			"a copy on the device"));
}

int stint_gpu_fill(stint_gpu *g, int stream, stint_gpu_ptr to, unsigned char byte, size_t bytes)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(
		g, stint_gpu_check(g, g->cu.cuMemsetD8Async(to, byte, bytes, g->stream[stream]),
			   "a fill on the device"));
}

/* --- Kernels --- */

int stint_gpu_load(stint_gpu *g, const struct stint_gpu_code *code, int *module)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	void **place = stint_gpu_grow(&g->module, &g->nmodule);
	if (!place)
		return stint_gpu_leave(g, stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory"));
	rc = stint_gpu_check(g,
		g->cu.cuLibraryLoadData(place, code->data, NULL, NULL, 0, NULL, NULL, 0),
		"loading kernels");
	if (rc)
		*place = NULL;
	if (!rc)
		rc = stint_gpu_measure(g, "kernels", 0);
	if (!rc)
		*module = g->nmodule - 1;
	return stint_gpu_leave(g, rc);
}

static int kernel_read(stint_gpu *g, struct stint_gpu_kernel *k)
{
	const struct {
		int what, *out;
	} list[] = {{GPU_CU_FUNC_SHARED, &k->shared_static}, {GPU_CU_FUNC_REGISTERS, &k->registers},
		{GPU_CU_FUNC_LOCAL, &k->local}, {GPU_CU_FUNC_MAX_THREADS, &k->max_threads}};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		int rc = stint_gpu_check(g,
			g->cu.cuFuncGetAttribute(list[i].out, list[i].what, k->function),
			"a kernel's facts");
		if (rc)
			return rc;
	}
	return STINT_OK;
}

/* Between enter and leave. */
static int kernel_make(stint_gpu *g, int module, const char *name, struct stint_gpu_kernel *k)
{
	void *handle = NULL;
	int rc = stint_gpu_check(
		g, g->cu.cuLibraryGetKernel(&handle, g->module[module], name), name);
	if (!rc)
		rc = stint_gpu_check(g, g->cu.cuKernelGetFunction(&k->function, handle), name);
	if (!rc && g->cu.cuFuncLoad) /* under lazy loading the function may not be there yet */
		rc = stint_gpu_check(g, g->cu.cuFuncLoad(k->function), name);
	if (!rc)
		rc = kernel_read(g, k);
	const size_t room = (size_t)g->facts.shared_block;
	if (!rc && (k->shared > room || (size_t)k->shared_static > room - k->shared))
		rc = stint_gpu_fail(g, STINT_BAD_MACHINE,
			"the kernel %s needs %zu bytes of shared memory; a block of this device "
			"may "
			"have %zu",
			name, k->shared + (size_t)k->shared_static, room);
	if (!rc && k->shared + (size_t)k->shared_static > SHARED_PLAIN)
		rc = stint_gpu_check(g,
			g->cu.cuFuncSetAttribute(k->function, GPU_CU_FUNC_DYNAMIC, (int)k->shared),
			name);
	return rc ? rc : stint_gpu_measure(g, "kernels", 0);
}

int stint_gpu_kernel_find(
	stint_gpu *g, int module, const char *name, size_t shared, struct stint_gpu_kernel *out)
{
	struct stint_gpu_kernel k = {NULL, shared, 0, 0, 0, 0};
	if (module < 0 || module >= g->nmodule || !g->module[module])
		return stint_gpu_fail(g, STINT_BAD_DATA, "there is no module %d", module);
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	rc = kernel_make(g, module, name, &k);
	if (!rc)
		*out = k;
	return stint_gpu_leave(g, rc);
}

int stint_gpu_launch(stint_gpu *g, int stream, const struct stint_gpu_kernel *k,
	const unsigned grid[3], const unsigned block[3], void **args)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(
		g, stint_gpu_check(g,
			   g->cu.cuLaunchKernel(k->function, grid[0], grid[1], grid[2], block[0],
				   block[1], block[2], (unsigned)k->shared, g->stream[stream], args,
				   NULL),
			   "launching a kernel"));
}

/* --- Order and time --- */

/* Between enter and leave. */
static int event_of(stint_gpu *g, int mark, void **out)
{
	if (mark < 0 || mark >= MAX_MARKS)
		return stint_gpu_fail(g, STINT_BAD_DATA, "mark %d is out of range", mark);
	while (g->nevent <= mark)
		if (!stint_gpu_grow(&g->event, &g->nevent))
			return stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory");
	if (!g->event[mark]) {
		int rc = stint_gpu_check(
			g, g->cu.cuEventCreate(&g->event[mark], GPU_CU_EVENT_PLAIN), "a mark");
		if (rc) {
			g->event[mark] = NULL;
			return rc;
		}
	}
	*out = g->event[mark];
	return STINT_OK;
}

int stint_gpu_mark(stint_gpu *g, int stream, int mark)
{
	void *event = NULL;
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	rc = event_of(g, mark, &event);
	if (!rc)
		rc = stint_gpu_check(g, g->cu.cuEventRecord(event, g->stream[stream]), "a mark");
	return stint_gpu_leave(g, rc);
}

static int mark_made(stint_gpu *g, int mark)
{
	if (mark >= 0 && mark < g->nevent && g->event[mark])
		return STINT_OK;
	return stint_gpu_fail(g, STINT_BAD_DATA, "mark %d was never set", mark);
}

int stint_gpu_wait(stint_gpu *g, int stream, int mark)
{
	int rc = mark_made(g, mark);
	if (!rc)
		rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(
		g, stint_gpu_check(g, g->cu.cuStreamWaitEvent(g->stream[stream], g->event[mark], 0),
			   "waiting for a mark"));
}

int stint_gpu_elapsed(stint_gpu *g, int from, int to, double *ms)
{
	float between = 0;
	int rc = mark_made(g, from);
	if (!rc)
		rc = mark_made(g, to);
	if (!rc)
		rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	rc = stint_gpu_check(g, g->cu.cuEventElapsedTime(&between, g->event[from], g->event[to]),
		"the time between marks");
	if (!rc)
		*ms = (double)between;
	return stint_gpu_leave(g, rc);
}

int stint_gpu_sync(stint_gpu *g, int stream)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(
		g, stint_gpu_check(g, g->cu.cuStreamSynchronize(g->stream[stream]), "the device"));
}

/* --- Graphs --- */

struct stint_gpu_graph {
	void *exec;
	size_t nodes;
};

int stint_gpu_capture_begin(stint_gpu *g)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	/* Relaxed: a library may load a kernel of its own when it is first used. */
	rc = stint_gpu_check(g,
		g->cu.cuStreamBeginCapture_v2(g->stream[STINT_GPU_MAIN], GPU_CU_CAPTURE_RELAXED),
		"recording the step");
	if (!rc)
		g->capturing = 1;
	return stint_gpu_leave(g, rc);
}

/* Between enter and leave. */
static int graph_make(stint_gpu *g, void *recorded, struct stint_gpu_graph *graph)
{
	int rc = stint_gpu_check(
		g, g->cu.cuGraphGetNodes(recorded, NULL, &graph->nodes), "the recorded step");
	/* what recording itself took: libraries' kernels */
	if (!rc)
		rc = stint_gpu_measure(g, "kernels", 0);
	if (!rc)
		rc = stint_gpu_check(g,
			g->cu.cuGraphInstantiateWithFlags(&graph->exec, recorded, 0),
			"making the graph");
	if (rc)
		return rc;
	/* now rather than in the first replay, so that it is measured */
	rc = stint_gpu_check(
		g, g->cu.cuGraphUpload(graph->exec, g->stream[STINT_GPU_MAIN]), "making the graph");
	if (!rc)
		rc = stint_gpu_check(g, g->cu.cuStreamSynchronize(g->stream[STINT_GPU_MAIN]),
			"making the graph");
	if (!rc)
		rc = stint_gpu_measure(g, "graph", 0);
	if (rc)
		g->cu.cuGraphExecDestroy(graph->exec);
	return rc;
}

int stint_gpu_capture_end(stint_gpu *g, struct stint_gpu_graph **out)
{
	void *recorded = NULL;
	if (!g->capturing)
		return stint_gpu_fail(g, STINT_BAD_DATA, "nothing is being recorded");
	struct stint_gpu_graph *graph = calloc(1, sizeof *graph);
	int rc = stint_gpu_enter(g);
	if (rc) {
		free(graph);
		return rc;
	}
	g->capturing = 0;
	rc = stint_gpu_check(g, g->cu.cuStreamEndCapture(g->stream[STINT_GPU_MAIN], &recorded),
		"recording the step");
	if (!rc && !graph)
		rc = stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory");
	if (!rc)
		rc = graph_make(g, recorded, graph);
	if (recorded)
		g->cu.cuGraphDestroy(recorded);
	if (rc)
		free(graph);
	else
		*out = graph;
	return stint_gpu_leave(g, rc);
}

int stint_gpu_replay(stint_gpu *g, const struct stint_gpu_graph *graph)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(
		g, stint_gpu_check(g, g->cu.cuGraphLaunch(graph->exec, g->stream[STINT_GPU_MAIN]),
			   "replaying the step"));
}

size_t stint_gpu_graph_nodes(const struct stint_gpu_graph *graph)
{
	return graph->nodes;
}

void stint_gpu_graph_free(stint_gpu *g, struct stint_gpu_graph *graph)
{
	if (!graph)
		return;
	if (!stint_gpu_enter(g)) {
		g->cu.cuGraphExecDestroy(graph->exec);
		(void)stint_gpu_measure(g, "graph", 0); /* what comes back */
		stint_gpu_leave(g, 0);
	}
	free(graph);
}
