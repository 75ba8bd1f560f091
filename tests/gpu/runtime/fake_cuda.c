/* A stand-in for libcuda.so.1: one device whose memory is the host's, so that the sanitizers watch
 * it, and whose kernels are the few below. It keeps the driver's rules as far as
 * runtime/stint_gpu*.c relies on them: a context must be current, arguments are copied when a
 * kernel is launched, page-locked memory is read and written when its turn comes (fake_streams.c).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake.h"
#include "fake_kernels.h"
#include "fake_streams.h"
#include "runtime/stint_gpu_api.h"

#define GPU_PROTOTYPE(type, name, parameters) type name parameters;
GPU_DRIVER(GPU_PROTOTYPE)
GPU_DRIVER_NEWER(GPU_PROTOTYPE)

enum {
	INVALID = FAKE_INVALID,
	NO_DEVICE = 100,
	NO_CONTEXT = 201,
	NOT_FOUND = 500,
	UNIT = 2 << 20,
	MAX_KERNELS = 512
};

struct fake fake = {.devices = 1, .major = 9, .version = 13000, .context = 256 << 20, .unit = UNIT};
static const size_t memory = (size_t)8 << 30;

/* --- Rules --- */

/* Counts a call that may fail; 0: go on. */
int fake_may(void)
{
	return ++fake.calls == fake.fail_at ? FAKE_ERROR : 0;
}

int fake_may_in_context(void)
{
	return fake.depth < 1 ? NO_CONTEXT : fake_may();
}

void *fake_object(size_t bytes)
{
	fake.live++;
	return calloc(1, bytes);
}

int fake_release(void *p)
{
	if (p)
		fake.live--;
	free(p);
	return p ? 0 : INVALID;
}

/* --- Kernels' work --- */

struct library {
	size_t bytes;
	char *code;
	struct fake_kernel kernel[MAX_KERNELS];
	int nkernel;
};

/* axpy(float *y, const float *x, float a, int n): y += a x
 * reverse(float *x, int n): one block, n floats in dynamic shared memory */
static const struct {
	const char *name;
	int narg, size[FAKE_ARGS];
} kernels[] = {{"axpy", 4, {8, 8, 4, 4}}, {"reverse", 2, {8, 4}}};

static void run_axpy(const struct fake_work *w)
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

static void run_reverse(const struct fake_work *w)
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

static void run_other(const struct fake_work *w)
{
	uint64_t value[FAKE_ARGS];
	void *args[FAKE_ARGS];
	memcpy(value, w->arg, sizeof value);
	for (int i = 0; i < w->nargs; i++)
		args[i] = &value[i];
	fake_kernel_run(w->kernel, w->grid, w->block, w->nargs, args);
}

static void run_call(const struct fake_work *w)
{
	_Alignas(16) unsigned char data[FAKE_CALL];
	memcpy(data, w->data, sizeof data);
	w->call(data);
}

void fake_run(const struct fake_work *w)
{
	if (w->op == FAKE_FILL)
		memset(w->to, w->byte, w->bytes);
	else if (w->op == FAKE_WORK)
		run_call(w);
	else if (w->op != FAKE_LAUNCH)
		memmove(w->to, w->kept ? w->kept : w->from, w->bytes);
	else if (!strcmp(w->kernel, "axpy"))
		run_axpy(w);
	else if (!strcmp(w->kernel, "reverse"))
		run_reverse(w);
	else
		run_other(w);
	fake.launches += w->op == FAKE_LAUNCH;
}

static int give(void *stream, const struct fake_work *w)
{
	const int error = fake_may_in_context();
	return error ? error : fake_give(stream, w);
}

/* --- The driver --- */

int cuInit(unsigned flags)
{
	if (getenv("STINT_FAKE_EARLY"))
		fake.early = 1;
	const char *who = getenv("STINT_FAKE_FAIL");
	if (who && !strcmp(who, "cuda"))
		return NO_DEVICE;
	return flags ? INVALID : fake.devices ? fake_may() : NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
	const char *other = getenv("STINT_FAKE_DRIVER");
	*version = other ? atoi(other) : fake.version;
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
	return fake_may();
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return fake_may();
}

int cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	snprintf(name, (size_t)size, "Stand-in");
	return fake_may();
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
	return fake_may();
}

int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	(void)device;
	snprintf(id, (size_t)size, "0000:00:00.0");
	return FAKE_ERROR; /* this device is not one that the driver's other library knows */
}

int cuDevicePrimaryCtxRetain(void **out, int device)
{
	const int error = fake_may();
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
	const int error = context == &fake ? fake_may() : INVALID;
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
	return fake_may_in_context();
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
	const int error = fake_may_in_context();
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
	fake_finish();
	fake_not_hung("cuMemFree");
	struct block *b = block_of(at);
	fake.used -= (b->bytes + fake.unit - 1) / fake.unit * fake.unit;
	b->bytes = 0;
	return fake_release((void *)(uintptr_t)at);
}

/* Page-locked memory. */
static struct block pinned[16];

static int is_pinned(const void *p)
{
	for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
		if (pinned[i].at <= (uintptr_t)p && (uintptr_t)p - pinned[i].at < pinned[i].bytes)
			return 1;
	return 0;
}

int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
	const int error = flags ? INVALID : fake_may_in_context();
	if (error)
		return error;
	struct block *b = pinned;
	while (b->bytes > 0)
		b++; /* tests make fewer */
	*out = fake_object(bytes);
	*b = (struct block){(uintptr_t)*out, bytes};
	return 0;
}

int cuMemFreeHost(void *p)
{
	fake_finish();
	fake_not_hung("cuMemFreeHost");
	for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
		if (pinned[i].at == (uintptr_t)p)
			pinned[i].bytes = 0;
	return fake_release(p);
}

int cuPointerGetAttribute(void *out, int what, unsigned long long p)
{
	const int on_device = GPU_CU_ON_DEVICE, ordinal = 0;
	const struct block *b = block_of(p);
	const int error = b ? fake_may_in_context() : INVALID;
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

static int transfer(struct fake_work w, const void *host, void *stream)
{
	const int error = fake_may_in_context();
	if (error)
		return error;
	if (!host || is_pinned(host))
		return fake_give(stream, &w);
	if (fake_recording(stream)) /* we promise page-locked memory there */
		return INVALID;
	if (w.op == FAKE_PUT && w.bytes) { /* the driver copies it before it returns */
		w.kept = malloc(w.bytes);
		memcpy(w.kept, w.from, w.bytes);
	}
	fake_give(stream, &w);
	if (w.op == FAKE_GET) {
		fake_finish_stream(stream);
		fake_not_hung("cuMemcpyDtoHAsync");
	}
	return 0;
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream)
{
	const struct fake_work w = {
		.op = FAKE_PUT, .to = (void *)(uintptr_t)to, .from = from, .bytes = bytes};
	return transfer(w, from, stream);
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
	const struct fake_work w = {
		.op = FAKE_GET, .to = to, .from = (void *)(uintptr_t)from, .bytes = bytes};
	return transfer(w, to, stream);
}

int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream)
{
	const struct fake_work w = {.op = FAKE_COPY,
		.to = (void *)(uintptr_t)to,
		.from = (void *)(uintptr_t)from,
		.bytes = bytes};
	return transfer(w, NULL, stream);
}

int cuMemsetD8Async(unsigned long long to, unsigned char byte, size_t bytes, void *stream)
{
	const struct fake_work w = {
		.op = FAKE_FILL, .to = (void *)(uintptr_t)to, .byte = byte, .bytes = bytes};
	return give(stream, &w);
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
			    : fake_may_in_context();
	if (error)
		return error;
	struct library *l = *out = fake_object(sizeof *l);
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
	return fake_release(l);
}

int cuLibraryGetKernel(void **out, void *library, const char *name)
{
	struct library *l = library;
	const int error = fake_may_in_context();
	if (error)
		return error;
	if (!memmem(l->code, l->bytes, name, strlen(name) + 1) || l->nkernel == MAX_KERNELS)
		return NOT_FOUND;
	struct fake_kernel *k = &l->kernel[l->nkernel++];
	snprintf(k->name, sizeof k->name, "%s", name);
	k->dynamic = 48 << 10;
	fake.used += fake.unit;
	*out = k;
	return 0;
}

int cuKernelGetFunction(void **out, void *kernel)
{
	*out = kernel;
	return fake_may_in_context();
}

int cuFuncLoad(void *function)
{
	(void)function;
	return fake_may_in_context();
}

int cuFuncGetAttribute(int *out, int what, void *function)
{
	(void)function;
	*out = what == GPU_CU_FUNC_MAX_THREADS ? 1024 : what == GPU_CU_FUNC_REGISTERS ? 32 : 0;
	return fake_may_in_context();
}

int cuFuncSetAttribute(void *function, int what, int value)
{
	const int error = what == GPU_CU_FUNC_DYNAMIC ? fake_may_in_context() : INVALID;
	if (!error)
		((struct fake_kernel *)function)->dynamic = value;
	return error;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
	const struct fake_kernel *k = function;
	struct fake_work w = {
		.op = FAKE_LAUNCH, .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared};
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
	if (w.nargs < 0 || w.nargs > FAKE_ARGS)
		return NOT_FOUND;
	w.kernel = k->name;
	for (int a = 0; a < w.nargs; a++)
		memcpy(&w.arg[a], args[a], sizeof w.arg[a]);
	return give(stream, &w);
}
