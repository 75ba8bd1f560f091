/* Everything runtime/stint_gpu.h offers, on a real device: memory, kernels, a graph with two
 * streams, products and convolutions against plain loops, and what all that takes outside the
 * arena. Also a few rates.
 *
 *	device [--quick]
 *
 * Exit 77, "no CUDA device", where there is none; 1 when something is wrong. Builds with nothing
 * but a compiler: cc -std=c11 -D_GNU_SOURCE -I. -Iruntime tests/gpu/device*.c runtime/stint_gpu*.c
 * -ldl -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { QUICK = 64, LONG = 4096 };

static const char text[] =
	"extern \"C\" __global__ void axpy(float *y, const float *x, float a, int n)\n"
	"{\n"
	"	const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	if (i < n)\n"
	"		y[i] = y[i] + a * x[i];\n"
	"}\n"
	"extern \"C\" __global__ void reverse(float *x, int n)\n"
	"{\n"
	"	extern __shared__ float turned[];\n"
	"	for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
	"		turned[n - 1 - i] = x[i];\n"
	"	__syncthreads();\n"
	"	for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
	"		x[i] = turned[i];\n"
	"}\n";

/* --- The device and its kernels --- */

static void device_show(struct device *t)
{
	const struct stint_gpu_facts *f = stint_gpu_facts_of(t->g);
	char line[192];
	printf("device: %s\n", stint_gpu_identity(t->g, line));
	printf("compute capability %d.%d, code for sm_%d, %d SMs at %d MHz, %.1f GiB, %.0f GB/s, "
	       "L2 %d KiB, shared %d KiB a block and %d KiB an SM, %d registers and %d threads "
	       "an SM\n",
		f->major, f->minor, f->arch, f->sm, f->clock_khz / 1000,
		(double)f->memory / 1024 / MIB, f->bandwidth / 1e9, f->l2_bytes >> 10,
		f->shared_block >> 10, f->shared_sm >> 10, f->registers_sm, f->threads_sm);
	for (int i = 0; i < STINT_GPU_LIBRARIES; i++)
		if (!stint_gpu_need(t->g, (enum stint_gpu_library)i))
			printf("library: %s version %d\n",
				stint_gpu_library_path(t->g, (enum stint_gpu_library)i),
				stint_gpu_library_version(t->g, (enum stint_gpu_library)i));
		else
			printf("library: %s\n", stint_gpu_message(t->g));
}

static int kernels_make(struct device *t)
{
	struct stint_gpu_code code;
	int module = -1;
	if (device_tried(t, stint_gpu_compile(t->g, text, 0, NULL, 0, &code), "compile"))
		return -1;
	const int rc = stint_gpu_load(t->g, &code, &module);
	stint_gpu_code_free(&code);
	return device_tried(t, rc, "load") ||
	       device_tried(t, stint_gpu_kernel_find(t->g, module, "axpy", 0, &t->axpy), "axpy") ||
	       /* more than a launch gets without asking */
	       device_tried(t,
		       stint_gpu_kernel_find(t->g, module, "reverse", 96 << 10, &t->reverse),
		       "reverse");
}

static int axpy(struct device *t, int stream, stint_gpu_ptr y, stint_gpu_ptr x, float a, int n)
{
	const unsigned grid[3] = {(unsigned)(n + 255) / 256, 1, 1}, block[3] = {256, 1, 1};
	void *args[] = {&y, &x, &a, &n};
	return device_tried(
		t, stint_gpu_launch(t->g, stream, &t->axpy, grid, block, args), "launch");
}

static int reverse(struct device *t, int stream, stint_gpu_ptr x, int n)
{
	const unsigned grid[3] = {1, 1, 1}, block[3] = {256, 1, 1};
	void *args[] = {&x, &n};
	return device_tried(
		t, stint_gpu_launch(t->g, stream, &t->reverse, grid, block, args), "launch");
}

static void kernels_run(struct device *t)
{
	enum { N = 20000 };
	static float x[N], y[N], got[N];
	const stint_gpu_ptr dx = t->arena, dy = t->arena + MIB;
	device_random(x, N, 1);
	device_random(y, N, 2);
	if (device_tried(t, stint_gpu_put(t->g, 0, dx, x, sizeof x), "put") ||
		device_tried(t, stint_gpu_put(t->g, 0, dy, y, sizeof y), "put") ||
		axpy(t, 0, dy, dx, 0.5F, N) || reverse(t, 0, dy, N) ||
		device_tried(t, stint_gpu_get(t->g, 0, got, dy, sizeof got), "get") ||
		device_tried(t, stint_gpu_sync(t->g, 0), "sync"))
		return;
	for (int i = 0; i < N; i++)
		if (got[N - 1 - i] != y[i] + 0.5F * x[i]) {
			device_wrong(t, "a kernel's result");
			return;
		}
	printf("kernels: right; axpy has %d registers, reverse asks for %zu bytes of shared "
	       "memory\n",
		t->axpy.registers, t->reverse.shared);
}

/* --- A graph: the side stream saves y to the host and brings it back --- */

enum { GRAPH_N = 100000 };

static int graph_record(struct device *t, float *host, struct stint_gpu_graph **graph)
{
	stint_gpu *g = t->g;
	const stint_gpu_ptr x = t->arena, y = t->arena + MIB, z = t->arena + 2 * MIB;
	const size_t bytes = GRAPH_N * sizeof(float);
	if (device_tried(t, stint_gpu_capture_begin(g), "begin"))
		return -1;
	int rc = axpy(t, STINT_GPU_MAIN, y, x, 1, GRAPH_N); /* y += x */
	rc = rc || device_tried(t, stint_gpu_mark(g, STINT_GPU_MAIN, 0), "mark");
	rc = rc || device_tried(t, stint_gpu_wait(g, STINT_GPU_SIDE, 0), "wait");
	rc = rc || device_tried(t, stint_gpu_get(g, STINT_GPU_SIDE, host, y, bytes), "offload");
	rc = rc || device_tried(t, stint_gpu_mark(g, STINT_GPU_SIDE, 1), "mark");
	rc = rc || axpy(t, STINT_GPU_MAIN, z, x, 2, GRAPH_N); /* z += 2 x, meanwhile */
	rc = rc || device_tried(t, stint_gpu_wait(g, STINT_GPU_MAIN, 1), "wait");
	rc = rc || device_tried(t, stint_gpu_fill(g, STINT_GPU_MAIN, y, 0xff, bytes), "fill");
	rc = rc || device_tried(t, stint_gpu_mark(g, STINT_GPU_MAIN, 2), "mark");
	rc = rc || device_tried(t, stint_gpu_wait(g, STINT_GPU_SIDE, 2), "wait");
	rc = rc || device_tried(t, stint_gpu_put(g, STINT_GPU_SIDE, y, host, bytes), "fetch");
	rc = rc || device_tried(t, stint_gpu_mark(g, STINT_GPU_SIDE, 3), "mark");
	rc = rc || device_tried(t, stint_gpu_wait(g, STINT_GPU_MAIN, 3), "wait");
	rc = rc || axpy(t, STINT_GPU_MAIN, z, y, 1, GRAPH_N); /* z += y */
	/* also after a failure: a stream that records forever is of no use */
	return device_tried(t, stint_gpu_capture_end(g, graph), "end") || rc;
}

static void graph_run(struct device *t)
{
	enum { TIMES = 5 };
	const stint_gpu_ptr x = t->arena, z = t->arena + 2 * MIB;
	const size_t bytes = GRAPH_N * sizeof(float);
	struct stint_gpu_graph *graph = NULL;
	void *pinned[3];
	for (int i = 0; i < 3; i++)
		if (device_tried(t, stint_gpu_pinned(t->g, bytes, &pinned[i]), "pinned"))
			return;
	float *from = pinned[0], *got = pinned[1];
	if (graph_record(t, pinned[2], &graph))
		return;
	device_random(from, GRAPH_N, 3);
	int rc = device_tried(t, stint_gpu_put(t->g, 0, x, from, bytes), "put");
	rc = rc || device_tried(t, stint_gpu_fill(t->g, 0, t->arena + MIB, 0, 2 * MIB), "fill");
	for (int i = 0; !rc && i < TIMES; i++)
		rc = device_tried(t, stint_gpu_replay(t->g, graph), "replay");
	rc = rc || device_tried(t, stint_gpu_get(t->g, 0, got, z, bytes), "get");
	rc = rc || device_tried(t, stint_gpu_sync(t->g, 0), "sync");
	/* y is k x after the k-th replay; z is 2 x k and the sum of the y's so far */
	for (int i = 0; !rc && i < GRAPH_N; i++)
		if (got[i] != from[i] * (2 * TIMES + TIMES * (TIMES + 1) / 2)) {
			device_wrong(t, "a replayed graph's result");
			rc = 1;
		}
	if (!rc)
		printf("graph: right after %d replays of %zu nodes\n", TIMES,
			stint_gpu_graph_nodes(graph));
	stint_gpu_graph_free(t->g, graph);
}

/* --- Rates --- */

static double product_rate(struct device *t, enum stint_gpu_type type, int tf32)
{
	const int64_t n = t->quick ? QUICK : LONG;
	const struct stint_product shape = {.batch = 1, .m = n, .n = n, .k = n};
	const int arch = stint_gpu_facts_of(t->g)->arch;
	const struct stint_gpu_product product = {.shape = shape,
		.in = type,
		.out = type,
		.tf32 = tf32,
		.cap = stint_gpu_matmul_cap(arch, &shape)};
	const size_t bytes = (size_t)(n * n) * 4;
	const int times = t->quick ? 1 : 20;
	struct stint_gpu_matmul *m;
	double ms = 0;
	if (device_tried(t, stint_gpu_matmul_new(t->g, &product, &m), "product"))
		return 0;
	int rc = device_tried(t, stint_gpu_fill(t->g, 0, t->arena, 0, 3 * bytes), "fill");
	for (int i = -3; !rc && i < times; i++) { /* the first few warm up */
		if (i == 0)
			rc = device_tried(t, stint_gpu_mark(t->g, 0, 10), "mark");
		rc = rc || device_tried(t,
				   stint_gpu_matmul_run(t->g, 0, m, t->arena, t->arena + bytes,
					   t->arena + 2 * bytes, 0, t->arena + 3 * bytes),
				   "product");
	}
	rc = rc || device_tried(t, stint_gpu_mark(t->g, 0, 11), "mark") ||
	     device_tried(t, stint_gpu_sync(t->g, 0), "sync") ||
	     device_tried(t, stint_gpu_elapsed(t->g, 10, 11, &ms), "elapsed");
	stint_gpu_matmul_free(m);
	return rc || ms <= 0 ? 0 : 2 * pow((double)n, 3) * times / ms / 1e9;
}

static double copy_rate(struct device *t)
{
	const size_t half = t->arena_bytes / 2;
	double ms = 0;
	int rc = 0;
	for (int i = -1; !rc && i < 10; i++) {
		if (i == 0)
			rc = device_tried(t, stint_gpu_mark(t->g, 0, 12), "mark");
		rc = rc || device_tried(t, stint_gpu_copy(t->g, 0, t->arena + half, t->arena, half),
				   "copy");
	}
	rc = rc || device_tried(t, stint_gpu_mark(t->g, 0, 13), "mark") ||
	     device_tried(t, stint_gpu_sync(t->g, 0), "sync") ||
	     device_tried(t, stint_gpu_elapsed(t->g, 12, 13, &ms), "elapsed");
	return rc || ms <= 0 ? 0 : 2.0 * 10 * (double)half / ms / 1e6;
}

static void rates_show(struct device *t)
{
	printf("products of %d: f32 %.1f, tf32 %.1f, bf16 %.1f TFLOP/s\n", t->quick ? QUICK : LONG,
		product_rate(t, STINT_GPU_F32, 0), product_rate(t, STINT_GPU_F32, 1),
		product_rate(t, STINT_GPU_BF16, 0));
	printf("copy on the device: %.0f GB/s read and written\n", copy_rate(t));
}

/* --- Memory --- */

static void arena_given(struct device *t)
{
	struct device other = *t;
	stint_gpu_ptr at;
	if (stint_gpu_new(&other.g, NULL) ||
		device_tried(&other, stint_gpu_open(other.g, 0), "open")) {
		device_wrong(t, "a second one on the same device");
	} else {
		if (device_tried(&other, stint_gpu_arena(other.g, t->arena + 256, MIB, &at),
			    "an arena handed in") ||
			at != t->arena + 256)
			device_wrong(t, "an arena handed in");
	}
	stint_gpu_free(other.g);
}

static void memory_show(struct device *t)
{
	const struct stint_gpu_item *item;
	size_t free_bytes, total;
	int64_t outside = 0;
	if (device_tried(t, stint_gpu_memory_note(t->g, "libraries' kernels"), "memory"))
		return;
	const int n = stint_gpu_memory(t->g, &item);
	for (int i = 0; i < n; i++) {
		printf("outside the arena: %-20s %8.2f MiB\n", item[i].what,
			(double)item[i].bytes / MIB);
		outside += item[i].bytes;
	}
	if (device_tried(t, stint_gpu_memory_free(t->g, &free_bytes, &total), "memory"))
		return;
	printf("arena %.2f MiB, outside %.2f MiB, used on the device %.2f MiB\n",
		(double)t->arena_bytes / MIB, (double)outside / MIB,
		(double)(total - free_bytes) / MIB);
}

int main(int argc, char **argv)
{
	struct device t = {.quick = argc > 1 && !strcmp(argv[1], "--quick")};
	t.arena_bytes = (size_t)(t.quick ? 16 : 512) * MIB;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (stint_gpu_new(&t.g, NULL))
		return 1;
	const int rc = stint_gpu_open(t.g, 0);
	if (rc == STINT_NO_DEVICE) {
		printf("%s\n", stint_gpu_message(t.g));
		stint_gpu_free(t.g);
		return 77;
	}
	if (!device_tried(&t, rc, "open") &&
		!device_tried(&t, stint_gpu_arena(t.g, 0, t.arena_bytes, &t.arena), "arena")) {
		device_show(&t);
		if (!kernels_make(&t)) {
			kernels_run(&t);
			graph_run(&t);
		}
		device_products(&t);
		device_convolutions(&t);
		rates_show(&t);
		arena_given(&t);
		memory_show(&t);
	}
	stint_gpu_free(t.g);
	printf(t.wrong ? "%d things are wrong\n" : "all right\n", t.wrong);
	return t.wrong ? 1 : 0;
}
