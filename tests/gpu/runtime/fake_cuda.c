/* A stand-in for libcuda.so.1: one device whose memory is the host's, so that the sanitizers watch
 * it, and whose kernels are the few below. It keeps the driver's rules as far as
 * runtime/stint_gpu*.c relies on them: a context must be current, captured work runs only in
 * replays, arguments are copied when a kernel is launched, streams that joined a capture must be
 * waited for. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "fake_kernels.h"
#include "fake_later.h"
#include "runtime/stint_gpu_api.h"

#define GPU_PROTOTYPE(type, name, parameters) type name parameters;
GPU_DRIVER(GPU_PROTOTYPE)
GPU_DRIVER_NEWER(GPU_PROTOTYPE)

enum {
	INVALID = 1,
	NO_DEVICE = 100,
	NO_CONTEXT = 201,
	NOT_FOUND = 500,
	UNJOINED = 904,
	UNIT = 2 << 20,
	MAX_ARGS = 40,
	MAX_KERNELS = 512
};

struct fake fake = {.devices = 1, .major = 9, .version = 13000, .context = 256 << 20, .unit = UNIT};
static const size_t memory = (size_t)8 << 30;

/* --- Rules --- */

/* Counts a call that may fail; 0: go on. */
static int may(void)
{
	return ++fake.calls == fake.fail_at ? FAKE_ERROR : 0;
}

static int may_in_context(void)
{
	return fake.depth < 1 ? NO_CONTEXT : may();
}

static void *object(size_t bytes)
{
	fake.live++;
	return calloc(1, bytes);
}

static int release(void *p)
{
	if (p)
		fake.live--;
	free(p);
	return p ? 0 : INVALID;
}

/* --- Work: what streams are given --- */

enum op { PUT, GET, COPY, FILL, LAUNCH, CALL };

struct work {
	struct work *next;
	enum op op;
	void *to;
	const void *from;
	size_t bytes;
	unsigned char byte;
	const char *kernel;
	unsigned grid[3], block[3], shared;
	int nargs;
	uint64_t arg[MAX_ARGS];
	void (*call)(void *);
	_Alignas(16) unsigned char data[FAKE_CALL];
};

struct graph {
	struct work *first, **end;
	size_t nodes;
};

struct stream {
	int id;
	struct graph *into; /* capturing */
	size_t done;        /* work given so far */
};

struct event {
	struct stream *of;
	size_t done;
	int captured;
};

struct kernel {
	char name[64];
	int dynamic; /* bytes of shared memory allowed */
};

struct library {
	size_t bytes;
	char *code;
	struct kernel kernel[MAX_KERNELS];
	int nkernel;
};

/* axpy(float *y, const float *x, float a, int n): y += a x
 * reverse(float *x, int n): one block, n floats in dynamic shared memory */
static const struct {
	const char *name;
	int narg, size[MAX_ARGS];
} kernels[] = {{"axpy", 4, {8, 8, 4, 4}}, {"reverse", 2, {8, 4}}};

static void run_axpy(const struct work *w)
{
	float *y, a;
	const float *x;
	int n;
	memcpy(&y, &w->arg[0], sizeof y);
	memcpy(&x, &w->arg[1], sizeof x);
	memcpy(&a, &w->arg[2], sizeof a);
	memcpy(&n, &w->arg[3], sizeof n);
	const size_t threads = (size_t)w->grid[0] * w->block[0];
	for (size_t i = 0; i < threads && i < (size_t)n; i++)
		y[i] += a * x[i];
}

static void run_reverse(const struct work *w)
{
	float *x;
	int n;
	memcpy(&x, &w->arg[0], sizeof x);
	memcpy(&n, &w->arg[1], sizeof n);
	if ((size_t)n * sizeof *x > w->shared)
		abort(); /* a bug of the test */
	for (int i = 0; i < n / 2; i++) {
		const float t = x[i];
		x[i] = x[n - 1 - i];
		x[n - 1 - i] = t;
	}
}

static void run_other(const struct work *w)
{
	uint64_t value[MAX_ARGS];
	void *args[MAX_ARGS];
	memcpy(value, w->arg, sizeof value);
	for (int i = 0; i < w->nargs; i++)
		args[i] = &value[i];
	fake_kernel_run(w->kernel, w->grid, w->block, w->nargs, args);
}

static void run_call(const struct work *w)
{
	_Alignas(16) unsigned char data[FAKE_CALL];
	memcpy(data, w->data, sizeof data);
	w->call(data);
}

static void run(const struct work *w)
{
	if (w->op == FILL)
		memset(w->to, w->byte, w->bytes);
	else if (w->op == CALL)
		run_call(w);
	else if (w->op != LAUNCH)
		memmove(w->to, w->from, w->bytes);
	else if (!strcmp(w->kernel, "axpy"))
		run_axpy(w);
	else if (!strcmp(w->kernel, "reverse"))
		run_reverse(w);
	else
		run_other(w);
	fake.launches += w->op == LAUNCH;
}

static int queue(struct stream *s, const struct work *w)
{
	s->done++;
	if (!s->into) {
		run(w);
		return 0;
	}
	struct work *copy = malloc(sizeof *copy);
	*copy = *w;
	copy->next = NULL;
	*s->into->end = copy;
	s->into->end = &copy->next;
	s->into->nodes++;
	return 0;
}

static int give(void *stream, const struct work *w)
{
	const int error = may_in_context();
	return error ? error : queue(stream, w);
}

/* What other stand-ins put on a stream: they have failures of their own. */
fake_call_function fake_call;

int fake_call(void *stream, void (*work)(void *), const void *data, size_t bytes)
{
	struct work w = {.op = CALL, .call = work};
	if (bytes > FAKE_CALL)
		return INVALID;
	memcpy(w.data, data, bytes);
	return queue(stream, &w);
}

/* --- The driver --- */

int cuInit(unsigned flags)
{
	return flags ? INVALID : fake.devices ? may() : NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
	*version = fake.version;
	return 0;
}

int cuGetErrorName(int error, const char **out)
{
	*out = error == FAKE_ERROR  ? "FAKE_ERROR"
	       : error == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
				    : "?";
	return 0;
}

int cuGetErrorString(int error, const char **out)
{
	*out = error == NO_DEVICE ? "no CUDA-capable device is detected" : "a made up failure";
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = fake.devices;
	return may();
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return may();
}

int cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	snprintf(name, (size_t)size, "Stand-in");
	return may();
}

int cuDeviceGetAttribute(int *out, int what, int device)
{
	(void)device;
	*out = what == GPU_CU_MAJOR          ? fake.major
	       : what == GPU_CU_MINOR        ? fake.minor
	       : what == GPU_CU_SHARED_BLOCK ? 227 << 10
	       : what == GPU_CU_MEMORY_CLOCK ? 1000000
	       : what == GPU_CU_BUS          ? 4096
					     : what;
	return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	(void)device;
	*bytes = memory;
	return may();
}

int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	(void)device;
	snprintf(id, (size_t)size, "0000:00:00.0");
	return FAKE_ERROR; /* this device is not one that the driver's other library knows */
}

int cuDevicePrimaryCtxRetain(void **out, int device)
{
	const int error = may();
	(void)device;
	if (error)
		return error;
	*out = &fake;
	fake.live++;
	fake.used += fake.context;
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	fake.live--;
	fake.used -= fake.context;
	return 0;
}

int cuCtxPushCurrent_v2(void *context)
{
	const int error = context == &fake ? may() : INVALID;
	fake.depth += !error;
	return error;
}

int cuCtxPopCurrent_v2(void **context)
{
	*context = &fake;
	return fake.depth-- > 0 ? 0 : NO_CONTEXT;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	*total = memory;
	*free_bytes = memory - fake.used;
	return may_in_context();
}

/* What is allocated, in order to answer for addresses inside of it. */
static struct block {
	unsigned long long at;
	size_t bytes;
} blocks[16];

static struct block *block_of(unsigned long long at)
{
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		if (blocks[i].at <= at && at - blocks[i].at < blocks[i].bytes)
			return &blocks[i];
	return NULL;
}

int cuMemAlloc_v2(unsigned long long *out, size_t bytes)
{
	const int error = may_in_context();
	const size_t whole = (bytes + fake.unit - 1) / fake.unit * fake.unit;
	if (error)
		return error;
	if (whole > memory - fake.used)
		return GPU_CU_OUT_OF_MEMORY;
	struct block *b = blocks;
	while (b->bytes > 0)
		b++; /* tests make fewer */
	b->at = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
	b->bytes = bytes;
	fake.used += whole;
	fake.live++;
	*out = b->at;
	return 0;
}

int cuMemFree_v2(unsigned long long at)
{
	struct block *b = block_of(at);
	fake.used -= (b->bytes + fake.unit - 1) / fake.unit * fake.unit;
	b->bytes = 0;
	return release((void *)(uintptr_t)at);
}

int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
	const int error = flags ? INVALID : may_in_context();
	if (!error)
		*out = object(bytes);
	return error;
}

int cuMemFreeHost(void *p)
{
	return release(p);
}

int cuPointerGetAttribute(void *out, int what, unsigned long long p)
{
	const int on_device = GPU_CU_ON_DEVICE, ordinal = 0;
	const struct block *b = block_of(p);
	const int error = b ? may_in_context() : INVALID;
	if (error)
		return error;
	if (what == GPU_CU_POINTER_MEMORY)
		memcpy(out, &on_device, sizeof on_device);
	else if (what == GPU_CU_POINTER_ORDINAL)
		memcpy(out, &ordinal, sizeof ordinal);
	else if (what == GPU_CU_POINTER_START)
		memcpy(out, &b->at, sizeof b->at);
	else if (what == GPU_CU_POINTER_BYTES)
		memcpy(out, &b->bytes, sizeof b->bytes);
	return 0;
}

static int transfer(enum op op, void *to, const void *from, size_t bytes, void *stream)
{
	const struct work w = {.op = op, .to = to, .from = from, .bytes = bytes};
	return give(stream, &w);
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream)
{
	return transfer(PUT, (void *)(uintptr_t)to, from, bytes, stream);
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
	return transfer(GET, to, (void *)(uintptr_t)from, bytes, stream);
}

int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream)
{
	return transfer(COPY, (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream);
}

int cuMemsetD8Async(unsigned long long to, unsigned char byte, size_t bytes, void *stream)
{
	const struct work w = {
		.op = FILL, .to = (void *)(uintptr_t)to, .byte = byte, .bytes = bytes};
	return give(stream, &w);
}

/* --- Streams, events, graphs --- */

/* The stream whose work a capture's main stream has to wait for: one at most here. */
static struct stream *joined;
static size_t joined_waited;

static void graph_drop(struct graph *g)
{
	for (struct work *w = g->first, *next; w; w = next) {
		next = w->next;
		free(w);
	}
	release(g);
}

int cuStreamCreate(void **out, unsigned flags)
{
	const int error = flags == GPU_CU_STREAM_ALONE ? may_in_context() : INVALID;
	if (!error)
		*out = object(sizeof(struct stream));
	return error;
}

int cuStreamDestroy_v2(void *stream)
{
	struct stream *s = stream;
	if (s == joined) {
		joined = NULL;
	} else if (s->into) { /* a capture that nobody ended */
		graph_drop(s->into);
		if (joined)
			joined->into = NULL;
		joined = NULL;
	}
	return release(stream);
}

int cuStreamSynchronize(void *stream)
{
	return ((struct stream *)stream)->into ? INVALID : may_in_context();
}

int cuEventCreate(void **out, unsigned flags)
{
	const int error = flags == GPU_CU_EVENT_PLAIN ? may_in_context() : INVALID;
	if (!error)
		*out = object(sizeof(struct event));
	return error;
}

int cuEventDestroy_v2(void *event)
{
	return release(event);
}

int cuEventRecord(void *event, void *stream)
{
	struct event *e = event;
	const int error = may_in_context();
	if (error)
		return error;
	e->of = stream;
	e->done = e->of->done;
	e->captured = e->of->into != NULL;
	return 0;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	struct stream *s = stream;
	struct event *e = event;
	const int error = flags || !e->of ? INVALID : may_in_context();
	if (error)
		return error;
	if (e->captured && e->of->into && !s->into) {
		s->into = e->of->into;
		joined = s;
		joined_waited = SIZE_MAX;
	} else if (e->of == joined && s != joined)
		joined_waited = e->done;
	return 0;
}

int cuEventElapsedTime(float *ms, void *from, void *to)
{
	const struct event *a = from, *b = to;
	*ms = 1;
	return a->captured || b->captured ? INVALID : may_in_context();
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	struct stream *s = stream;
	const int error = s->into || mode != GPU_CU_CAPTURE_RELAXED ? INVALID : may_in_context();
	if (error)
		return error;
	s->into = object(sizeof *s->into);
	s->into->end = &s->into->first;
	return 0;
}

int cuStreamEndCapture(void *stream, void **graph)
{
	struct stream *s = stream;
	int error = s->into ? may_in_context() : INVALID;
	if (!error && joined && joined_waited != joined->done)
		error = UNJOINED;
	if (joined)
		joined->into = NULL;
	joined = NULL;
	*graph = error ? NULL : s->into;
	if (error && s->into)
		graph_drop(s->into);
	s->into = NULL;
	return error;
}

int cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
	*count = ((struct graph *)graph)->nodes;
	return nodes ? INVALID : may_in_context();
}

int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{
	const int error = flags ? INVALID : may_in_context();
	struct graph *from = graph;
	if (error)
		return error;
	struct graph *g = object(sizeof *g);
	*g = *from;
	g->end = &g->first;
	for (const struct work *w = from->first; w; w = w->next) {
		struct work *copy = malloc(sizeof *copy);
		*copy = *w;
		copy->next = NULL;
		*g->end = copy;
		g->end = &copy->next;
	}
	*out = g;
	fake.used += fake.unit;
	return 0;
}

int cuGraphUpload(void *exec, void *stream)
{
	(void)exec, (void)stream;
	return may_in_context();
}

int cuGraphLaunch(void *exec, void *stream)
{
	const int error = ((struct stream *)stream)->into ? INVALID : may_in_context();
	for (const struct work *w = ((struct graph *)exec)->first; !error && w; w = w->next)
		run(w);
	return error;
}

int cuGraphExecDestroy(void *exec)
{
	fake.used -= fake.unit;
	graph_drop(exec);
	return 0;
}

int cuGraphDestroy(void *graph)
{
	graph_drop(graph);
	return 0;
}

/* --- Kernels --- */

/* A cubin is an ELF file whose section headers are its last bytes. */
static size_t elf_bytes(const unsigned char *p)
{
	uint64_t at;
	uint16_t size, count;
	memcpy(&at, p + 40, sizeof at);
	memcpy(&size, p + 58, sizeof size);
	memcpy(&count, p + 60, sizeof count);
	return memcmp(p, "\177ELF", 4) != 0 ? 0 : (size_t)at + (size_t)size * count;
}

int cuLibraryLoadData(void **out, const void *code, CUjit_option *jit, void **jit_values,
	unsigned njit, CUlibraryOption *option, void **values, unsigned noption)
{
	const size_t bytes = elf_bytes(code);
	int error = jit || jit_values || njit || option || values || noption || !bytes
			    ? INVALID
			    : may_in_context();
	if (error)
		return error;
	struct library *l = *out = object(sizeof *l);
	l->code = malloc(bytes);
	memcpy(l->code, code, bytes); /* all of it is there, or the sanitizer says so */
	l->bytes = bytes;
	return 0;
}

int cuLibraryUnload(void *library)
{
	struct library *l = library;
	fake.used -= (size_t)l->nkernel * fake.unit;
	free(l->code);
	return release(l);
}

int cuLibraryGetKernel(void **out, void *library, const char *name)
{
	struct library *l = library;
	const int error = may_in_context();
	if (error)
		return error;
	if (!memmem(l->code, l->bytes, name, strlen(name) + 1) || l->nkernel == MAX_KERNELS)
		return NOT_FOUND;
	struct kernel *k = &l->kernel[l->nkernel++];
	snprintf(k->name, sizeof k->name, "%s", name);
	k->dynamic = 48 << 10;
	fake.used += fake.unit;
	*out = k;
	return 0;
}

int cuKernelGetFunction(void **out, void *kernel)
{
	*out = kernel;
	return may_in_context();
}

int cuFuncLoad(void *function)
{
	(void)function;
	return may_in_context();
}

int cuFuncGetAttribute(int *out, int what, void *function)
{
	(void)function;
	*out = what == GPU_CU_FUNC_MAX_THREADS ? 1024 : what == GPU_CU_FUNC_REGISTERS ? 32 : 0;
	return may_in_context();
}

int cuFuncSetAttribute(void *function, int what, int value)
{
	const int error = what == GPU_CU_FUNC_DYNAMIC ? may_in_context() : INVALID;
	if (!error)
		((struct kernel *)function)->dynamic = value;
	return error;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
	const struct kernel *k = function;
	struct work w = {
		.op = LAUNCH, .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared};
	if (extra || !gx || !gy || !gz || !bx || bx * by * bz > 1024 ||
		shared > (unsigned)k->dynamic)
		return INVALID;
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if (!strcmp(k->name, kernels[i].name)) {
			w.kernel = kernels[i].name;
			for (int a = 0; a < kernels[i].narg; a++)
				memcpy(&w.arg[a], args[a], (size_t)kernels[i].size[a]);
			return give(stream, &w);
		}
	w.nargs = fake_kernel_args(k->name);
	if (w.nargs < 0 || w.nargs > MAX_ARGS)
		return NOT_FOUND;
	w.kernel = k->name;
	for (int a = 0; a < w.nargs; a++)
		memcpy(&w.arg[a], args[a], sizeof w.arg[a]);
	return give(stream, &w);
}
