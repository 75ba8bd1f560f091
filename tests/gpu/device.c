/* Everything runtime/stint_gpu.h offers, on a real device: memory, kernels, a graph with two
 *streams, products against plain loops, and what all that takes outside the arena. Also a table of
 *rates.
 *
 *	device [--quick]
 *
 * Exit 77, "no CUDA device", where there is none; 1 with the first thing that is wrong. Builds with
 * nothing but a compiler: cc -std=c11 -D_GNU_SOURCE -I. -Iruntime tests/gpu/device.c
 * runtime/stint_gpu*.c -ldl -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/stint_gpu.h"

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

enum { MIB = 1 << 20, QUICK = 64, LONG = 4096 };

struct all {
	stint_gpu *g;
	stint_gpu_ptr arena;
	size_t arena_bytes;
	struct stint_gpu_kernel axpy, reverse;
	int quick, wrong;
};

static void wrong(struct all *t, const char *what)
{
	printf("WRONG: %s\n", what);
	t->wrong++;
}

/* A call that has to succeed; 0: it did. */
static int tried(struct all *t, int rc, const char *what)
{
	if (!rc)
		return 0;
	printf("WRONG: %s: code %d: %s\n", what, rc, stint_gpu_message(t->g));
	t->wrong++;
	return 1;
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Small integers over 8: products and their sums are exact in fp32, in tf32 and in bf16. */
static void fill_random(float *x, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((int)(next_random(&seed) >> 16) % 9 - 4) / 8;
}

/* --- The device and its kernels --- */

static void device_show(struct all *t)
{
	const struct stint_gpu_facts *f = stint_gpu_facts_of(t->g);
	char line[192];
	printf("device: %s\n", stint_gpu_identity(t->g, line));
	printf("compute capability %d.%d, code for sm_%d, %d SMs at %d MHz, %.1f GiB, %.0f GB/s, "
	       "L2 "
	       "%d KiB, shared %d KiB a block and %d KiB an SM, %d registers and %d threads an "
	       "SM\n",
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

static int kernels_make(struct all *t)
{
	struct stint_gpu_code code;
	int module = -1;
	if (tried(t, stint_gpu_compile(t->g, text, 0, NULL, 0, &code), "compile"))
		return -1;
	const int rc = stint_gpu_load(t->g, &code, &module);
	stint_gpu_code_free(&code);
	return tried(t, rc, "load") ||
	       tried(t, stint_gpu_kernel_find(t->g, module, "axpy", 0, &t->axpy), "axpy") ||
	       /* more than a launch gets without asking */
	       tried(t, stint_gpu_kernel_find(t->g, module, "reverse", 96 << 10, &t->reverse),
		       "reverse");
}

static int axpy(struct all *t, int stream, stint_gpu_ptr y, stint_gpu_ptr x, float a, int n)
{
	const unsigned grid[3] = {(unsigned)(n + 255) / 256, 1, 1}, block[3] = {256, 1, 1};
	void *args[] = {&y, &x, &a, &n};
	return tried(t, stint_gpu_launch(t->g, stream, &t->axpy, grid, block, args), "launch");
}

static int reverse(struct all *t, int stream, stint_gpu_ptr x, int n)
{
	const unsigned grid[3] = {1, 1, 1}, block[3] = {256, 1, 1};
	void *args[] = {&x, &n};
	return tried(t, stint_gpu_launch(t->g, stream, &t->reverse, grid, block, args), "launch");
}

static void kernels_run(struct all *t)
{
	enum { N = 20000 };
	static float x[N], y[N], got[N];
	const stint_gpu_ptr dx = t->arena, dy = t->arena + MIB;
	fill_random(x, N, 1);
	fill_random(y, N, 2);
	if (tried(t, stint_gpu_put(t->g, 0, dx, x, sizeof x), "put") ||
		tried(t, stint_gpu_put(t->g, 0, dy, y, sizeof y), "put") ||
		axpy(t, 0, dy, dx, 0.5F, N) || reverse(t, 0, dy, N) ||
		tried(t, stint_gpu_get(t->g, 0, got, dy, sizeof got), "get") ||
		tried(t, stint_gpu_sync(t->g, 0), "sync"))
		return;
	for (int i = 0; i < N; i++)
		if (got[N - 1 - i] != y[i] + 0.5F * x[i]) {
			wrong(t, "a kernel's result");
			return;
		}
	printf("kernels: right; axpy has %d registers, reverse asks for %zu bytes of shared "
	       "memory\n",
		t->axpy.registers, t->reverse.shared);
}

/* --- A graph: the side stream saves y to the host and brings it back --- */

enum { GRAPH_N = 100000 };

static int graph_record(struct all *t, float *host, struct stint_gpu_graph **graph)
{
	stint_gpu *g = t->g;
	const stint_gpu_ptr x = t->arena, y = t->arena + MIB, z = t->arena + 2 * MIB;
	const size_t bytes = GRAPH_N * sizeof(float);
	if (tried(t, stint_gpu_capture_begin(g), "begin"))
		return -1;
	int rc = axpy(t, STINT_GPU_MAIN, y, x, 1, GRAPH_N); /* y += x */
	rc = rc || tried(t, stint_gpu_mark(g, STINT_GPU_MAIN, 0), "mark");
	rc = rc || tried(t, stint_gpu_wait(g, STINT_GPU_SIDE, 0), "wait");
	rc = rc || tried(t, stint_gpu_get(g, STINT_GPU_SIDE, host, y, bytes), "offload");
	rc = rc || tried(t, stint_gpu_mark(g, STINT_GPU_SIDE, 1), "mark");
	rc = rc || axpy(t, STINT_GPU_MAIN, z, x, 2, GRAPH_N); /* z += 2 x, meanwhile */
	rc = rc || tried(t, stint_gpu_wait(g, STINT_GPU_MAIN, 1), "wait");
	rc = rc || tried(t, stint_gpu_fill(g, STINT_GPU_MAIN, y, 0xff, bytes), "fill");
	rc = rc || tried(t, stint_gpu_mark(g, STINT_GPU_MAIN, 2), "mark");
	rc = rc || tried(t, stint_gpu_wait(g, STINT_GPU_SIDE, 2), "wait");
	rc = rc || tried(t, stint_gpu_put(g, STINT_GPU_SIDE, y, host, bytes), "fetch");
	rc = rc || tried(t, stint_gpu_mark(g, STINT_GPU_SIDE, 3), "mark");
	rc = rc || tried(t, stint_gpu_wait(g, STINT_GPU_MAIN, 3), "wait");
	rc = rc || axpy(t, STINT_GPU_MAIN, z, y, 1, GRAPH_N); /* z += y */
	/* also after a failure: a stream that records forever is of no use */
	return tried(t, stint_gpu_capture_end(g, graph), "end") || rc;
}

static void graph_run(struct all *t)
{
	enum { TIMES = 5 };
	const stint_gpu_ptr x = t->arena, z = t->arena + 2 * MIB;
	const size_t bytes = GRAPH_N * sizeof(float);
	struct stint_gpu_graph *graph = NULL;
	void *pinned[3];
	for (int i = 0; i < 3; i++)
		if (tried(t, stint_gpu_pinned(t->g, bytes, &pinned[i]), "pinned"))
			return;
	float *from = pinned[0], *got = pinned[1];
	if (graph_record(t, pinned[2], &graph))
		return;
	fill_random(from, GRAPH_N, 3);
	int rc = tried(t, stint_gpu_put(t->g, 0, x, from, bytes), "put");
	rc = rc || tried(t, stint_gpu_fill(t->g, 0, t->arena + MIB, 0, 2 * MIB), "fill");
	for (int i = 0; !rc && i < TIMES; i++)
		rc = tried(t, stint_gpu_replay(t->g, graph), "replay");
	rc = rc || tried(t, stint_gpu_get(t->g, 0, got, z, bytes), "get");
	rc = rc || tried(t, stint_gpu_sync(t->g, 0), "sync");
	/* y is k x after the k-th replay; z is 2 x k and the sum of the y's so far */
	for (int i = 0; !rc && i < GRAPH_N; i++)
		if (got[i] != from[i] * (2 * TIMES + TIMES * (TIMES + 1) / 2)) {
			wrong(t, "a replayed graph's result");
			rc = 1;
		}
	if (!rc)
		printf("graph: right after %d replays of %zu nodes\n", TIMES,
			stint_gpu_graph_nodes(graph));
	stint_gpu_graph_free(t->g, graph);
}

/* --- Products --- */

static uint16_t narrow(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen(uint16_t h)
{
	const uint32_t bits = (uint32_t)h << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

/* On the host: operands, what should come, what came. Places in the arena, in operand order, the
 * workspace last. */
struct product {
	struct stint_gpu_product p;
	size_t n[4]; /* elements of x0, x1, y, extra */
	float *x[4], *want[4];
	stint_gpu_ptr at[5];
};

static void product_free(struct product *q)
{
	for (int i = 0; i < 4; i++) {
		free(q->x[i]);
		free(q->want[i]);
	}
}

static float element(const struct product *q, int operand, int64_t b, int64_t row, int64_t col)
{
	const struct stint_gpu_product *p = &q->p;
	const int64_t step = operand ? p->step1 : p->step0;
	const int64_t rows = operand ? p->k : p->m, cols = operand ? p->n : p->k;
	const int turned = operand ? p->t1 : p->t0;
	return q->x[operand][b * step + (turned ? col * rows + row : row * cols + col)];
}

static void product_expect(struct product *q)
{
	const struct stint_gpu_product *p = &q->p;
	for (int64_t b = 0; b < p->batch; b++)
		for (int64_t i = 0; i < p->m; i++)
			for (int64_t j = 0; j < p->n; j++) {
				double sum = p->epilogue == STINT_GPU_BIAS ? (double)q->x[3][j] : 0;
				for (int64_t l = 0; l < p->k; l++)
					sum += (double)element(q, 0, b, i, l) *
					       (double)element(q, 1, b, l, j);
				const size_t at = (size_t)((b * p->m + i) * p->n + j);
				q->want[2][at] = (float)sum + (p->accumulate ? q->x[2][at] : 0);
			}
	for (size_t i = 0; i < q->n[3]; i++) {
		double sum = 0;
		for (int64_t l = 0; l < p->k; l++)
			sum += p->epilogue == STINT_GPU_SUM0
				       ? (double)element(q, 0, 0, (int64_t)i, l)
				       : (double)element(q, 1, 0, l, (int64_t)i);
		q->want[3][i] = p->epilogue == STINT_GPU_BIAS ? q->x[3][i] : (float)sum;
	}
}

static int product_fill(struct product *q)
{
	const struct stint_gpu_product *p = &q->p;
	q->n[0] = (size_t)(p->step0 ? p->batch : 1) * (size_t)(p->m * p->k);
	q->n[1] = (size_t)(p->step1 ? p->batch : 1) * (size_t)(p->k * p->n);
	q->n[2] = (size_t)(p->batch * p->m * p->n);
	q->n[3] = p->epilogue == STINT_GPU_PLAIN
			  ? 0
			  : (size_t)(p->epilogue == STINT_GPU_SUM0 ? p->m : p->n);
	for (int i = 0; i < 4; i++) {
		q->x[i] = malloc((q->n[i] + 1) * sizeof(float));
		q->want[i] = malloc((q->n[i] + 1) * sizeof(float));
		if (!q->x[i] || !q->want[i])
			return -1;
		fill_random(q->x[i], q->n[i], (uint32_t)i + 7);
	}
	product_expect(q);
	return 0;
}

/* Between the host's floats and the device's type; `buffer` is pinned or plain host memory. */
static int transfer(struct all *t, int to_device, enum stint_gpu_type type, stint_gpu_ptr at,
	float *x, size_t n)
{
	const size_t bytes = n * (type == STINT_GPU_F32 ? 4 : 2);
	uint16_t *half = malloc(bytes + 1);
	int rc = !half;
	if (!rc && type == STINT_GPU_F32)
		rc = to_device ? stint_gpu_put(t->g, 0, at, x, bytes)
			       : stint_gpu_get(t->g, 0, x, at, bytes);
	for (size_t i = 0; !rc && to_device && type != STINT_GPU_F32 && i < n; i++)
		half[i] = narrow(x[i]);
	if (!rc && type != STINT_GPU_F32)
		rc = to_device ? stint_gpu_put(t->g, 0, at, half, bytes)
			       : stint_gpu_get(t->g, 0, half, at, bytes);
	rc = tried(t, rc ? rc : stint_gpu_sync(t->g, 0), "transfer");
	for (size_t i = 0; !rc && !to_device && type != STINT_GPU_F32 && i < n; i++)
		x[i] = widen(half[i]);
	free(half);
	return rc;
}

static void product_place(struct all *t, struct product *q)
{
	stint_gpu_ptr at = t->arena;
	for (int i = 0; i < 4; i++) {
		q->at[i] = at;
		at += (q->n[i] * 4 + 511) / 256 * 256;
	}
	q->at[4] = at;
}

static int product_once(
	struct all *t, struct product *q, struct stint_gpu_matmul *m, float *y, float *extra)
{
	const struct stint_gpu_product *p = &q->p;
	for (int i = 0; i < 4; i++)
		if (transfer(t, 1, i < 2 ? p->in : p->out, q->at[i], q->x[i], q->n[i]))
			return -1;
	return tried(t,
		       stint_gpu_matmul_run(
			       t->g, 0, m, q->at[0], q->at[1], q->at[2], q->at[3], q->at[4]),
		       "product") ||
	       transfer(t, 0, p->out, q->at[2], y, q->n[2]) ||
	       transfer(t, 0, p->out, q->at[3], extra, q->n[3]);
}

/* Sums of these numbers are exact, so that only a bf16 result is rounded, by half a unit. */
static int close_to(const float *got, const float *want, size_t n, enum stint_gpu_type type)
{
	for (size_t i = 0; i < n; i++) {
		const float room = type == STINT_GPU_F32 ? 0 : fabsf(want[i]) / 256;
		if (!(fabsf(got[i] - want[i]) <= room))
			return 0;
	}
	return 1;
}

static void product_compare(struct all *t, struct product *q, struct stint_gpu_matmul *m)
{
	float *y = malloc((q->n[2] + 1) * sizeof *y), *again = malloc((q->n[2] + 1) * sizeof *y);
	float *extra = malloc((q->n[3] + 1) * sizeof *y),
	      *extra2 = malloc((q->n[3] + 1) * sizeof *y);
	if (!y || !again || !extra || !extra2 || product_once(t, q, m, y, extra)) {
		wrong(t, "a product could not be run");
	} else {
		if (!close_to(y, q->want[2], q->n[2], q->p.out))
			wrong(t, "a product's values");
		if (!close_to(extra, q->want[3], q->n[3], q->p.out))
			wrong(t, "a product's bias or sums");
		for (int i = 0; i < (t->quick ? 2 : 20) && !t->wrong; i++)
			if (product_once(t, q, m, again, extra2) ||
				memcmp(y, again, q->n[2] * sizeof *y) != 0 ||
				memcmp(extra, extra2, q->n[3] * sizeof *y) != 0)
				wrong(t, "a repeated product's bits");
	}
	free(y);
	free(again);
	free(extra);
	free(extra2);
}

static void product_try(struct all *t, const struct stint_gpu_product *p)
{
	struct product q = {.p = *p};
	struct stint_gpu_matmul *m = NULL, *same = NULL;
	unsigned char first[STINT_GPU_ALGO], second[STINT_GPU_ALGO];
	const int rc = stint_gpu_matmul_new(t->g, p, &m);
	printf("product %lld x %lld x %lld x %lld t %d%d types %d%d epilogue %d%s%s: ",
		(long long)p->batch, (long long)p->m, (long long)p->n, (long long)p->k, p->t0,
		p->t1, (int)p->in, (int)p->out, (int)p->epilogue, p->tf32 ? " tf32" : "",
		p->accumulate ? " accumulated" : "");
	if (rc) /* which epilogues a device has for which types is one of the things to find out */
		printf("none: %s\n", stint_gpu_message(t->g));
	if (rc && p->epilogue == STINT_GPU_PLAIN)
		wrong(t, "a plain product has to be there");
	if (rc)
		return;
	stint_gpu_matmul_algo(m, first);
	if (!stint_gpu_matmul_new(t->g, p, &same)) {
		stint_gpu_matmul_algo(same, second);
		if (memcmp(first, second, sizeof first) != 0)
			wrong(t, "asking again gave another algorithm");
	} else
		wrong(t, "asking again failed");
	if (product_fill(&q))
		wrong(t, "no memory");
	else {
		product_place(t, &q);
		product_compare(t, &q, m);
	}
	printf("workspace %zu of %zu bytes\n", stint_gpu_matmul_workspace(m), p->cap);
	product_free(&q);
	stint_gpu_matmul_free(same);
	stint_gpu_matmul_free(m);
}

static void products_try(struct all *t)
{
	static const int64_t shape[][4] = {{1, 64, 96, 128}, {1, 33, 17, 45}, {3, 40, 24, 56},
		{1, 8, 8, 8192}, {1, 1, 100, 300}};
	static const char *const kind[] = {"matmul", "matmul_bias", "matmul_sum0", "matmul_sum1"};
	for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
		for (int how = 0; how < 4 * 4 * 4; how++) {
			/* types: f32, f32 as tf32, bf16 to bf16, bf16 to f32 */
			const int turned = how % 4, e = how / 4 % 4, type = how / 16;
			const int64_t *n = shape[s];
			const int64_t p[24] = {n[0], n[1], n[2], n[3], turned & 1, turned >> 1, 1,
				n[0] > 1 && turned < 2 ? 0 : 1,
				type < 2    ? 0
				: type == 2 ? 7
					    : 3};
			struct stint_gpu_product product;
			if (e > 1 && n[0] > 1)
				continue;
			if (stint_gpu_product_of(kind[e], p, STINT_GPU_BF16,
				    stint_gpu_facts_of(t->g)->arch, &product)) {
				wrong(t, "a product's numbers");
				continue;
			}
			product.tf32 = type == 1;
			product_try(t, &product);
			product.accumulate = 1;
			if (e == 0)
				product_try(t, &product);
		}
}

/* --- Convolutions --- */

static int64_t product_of(const int64_t *n, int count)
{
	int64_t all = 1;
	for (int i = 0; i < count; i++)
		all *= n[i];
	return all;
}

/* Where element (a, b, spatial...) of a tensor lies: a batch or outputs, b channels. */
static int64_t conv_at(const struct stint_gpu_convolution *c, const int64_t *axis, int64_t channels,
	int64_t a, int64_t b, const int64_t *i)
{
	int64_t at = 0;
	for (int s = 0; s < c->axes; s++)
		at = at * axis[s] + i[s];
	const int64_t all = product_of(axis, c->axes);
	return c->last ? (a * all + at) * channels + b : (a * channels + b) * all + at;
}

/* Counts i up to n; 0 after the last. */
static int conv_next(const int64_t *n, int axes, int64_t *i)
{
	for (int a = axes - 1; a >= 0; a--) {
		if (++i[a] < n[a])
			return 1;
		i[a] = 0;
	}
	return 0;
}

/* Adds what output (b, k, o) has to do with channel c of its group to the sums of one of the three.
 */
static void conv_terms(const struct stint_gpu_convolution *v, float *const t[3], double *sum,
	int64_t b, int64_t k, int64_t c, const int64_t *o)
{
	const int64_t width = v->c / v->groups, group = k / (v->k / v->groups);
	const int64_t y = conv_at(v, v->y, v->k, b, k, o);
	int64_t f[3] = {0};
	do {
		int64_t i[3] = {0};
		int inside = 1;
		for (int a = 0; a < v->axes; a++) {
			i[a] = o[a] * v->stride[a] + f[a] * v->dilation[a] - v->before[a];
			inside = inside && i[a] >= 0 && i[a] < v->x[a];
		}
		if (!inside)
			continue;
		const int64_t x = conv_at(v, v->x, v->c, b, group * width + c, i);
		const int64_t w = conv_at(v, v->w, width, k, c, f);
		if (v->kind == STINT_GPU_CONV_FORWARD)
			sum[y] += (double)t[0][x] * (double)t[1][w];
		else if (v->kind == STINT_GPU_CONV_DATA)
			sum[x] += (double)t[1][w] * (double)t[2][y];
		else
			sum[w] += (double)t[0][x] * (double)t[2][y];
	} while (conv_next(v->w, v->axes, f));
}

static void conv_expect(const struct stint_gpu_convolution *v, float *const t[3], double *sum)
{
	for (int64_t b = 0; b < v->n; b++)
		for (int64_t k = 0; k < v->k; k++)
			for (int64_t c = 0; c < v->c / v->groups; c++) {
				int64_t o[3] = {0};
				do {
					conv_terms(v, t, sum, b, k, c, o);
				} while (conv_next(v->y, v->axes, o));
			}
}

/* Winograd's way rounds on the way: half a percent of the largest value. */
static int conv_close(const float *got, const double *want, size_t n)
{
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(want[i]));
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double)got[i] - want[i]) <= most / 200))
			return 0;
	return 1;
}

static void conv_compare(
	struct all *t, const struct stint_gpu_convolution *v, struct stint_gpu_conv *m)
{
	const int out = v->kind == STINT_GPU_CONV_FORWARD ? 2
			: v->kind == STINT_GPU_CONV_DATA  ? 0
							  : 1;
	const size_t n[3] = {(size_t)(v->n * v->c * product_of(v->x, v->axes)),
		(size_t)(v->k * (v->c / v->groups) * product_of(v->w, v->axes)),
		(size_t)(v->n * v->k * product_of(v->y, v->axes))};
	float *host[3] = {NULL}, *again = malloc(n[out] * sizeof *again);
	double *want = calloc(n[out], sizeof *want);
	stint_gpu_ptr at[4];
	int rc = !again || !want;
	at[0] = t->arena;
	for (int i = 0; i < 3; i++) {
		host[i] = malloc(n[i] * sizeof(float));
		rc = rc || !host[i];
		if (!rc)
			fill_random(host[i], n[i], (uint32_t)i + 11);
		at[i + 1] = at[i] + (n[i] * 4 + 511) / 256 * 256;
		rc = rc || transfer(t, 1, v->type[i], at[i], host[i], n[i]);
	}
	if (!rc)
		conv_expect(v, host, want);
	for (int k = 0; !rc && k < (t->quick ? 2 : 20); k++) {
		rc = tried(t,
			     stint_gpu_fill(
				     t->g, 0, at[out], 0xff, n[out] * (v->type[out] ? 2 : 4)),
			     "fill") ||
		     tried(t, stint_gpu_conv_run(t->g, 0, m, at[0], at[1], at[2], at[3]),
			     "convolution") ||
		     transfer(t, 0, v->type[out], at[out], again, n[out]);
		if (!rc && k == 0 && !conv_close(again, want, n[out]))
			wrong(t, "a convolution's values");
		if (!rc && k > 0 && memcmp(again, host[out], n[out] * sizeof *again) != 0)
			wrong(t, "a repeated convolution's bits");
		if (!rc)
			memcpy(host[out], again, n[out] * sizeof *again);
	}
	if (rc)
		wrong(t, "a convolution could not be run");
	for (int i = 0; i < 3; i++)
		free(host[i]);
	free(again);
	free(want);
}

static void conv_try(struct all *t, const char *kind, const int64_t p[24], int last, int tf32)
{
	struct stint_gpu_convolution v;
	struct stint_gpu_conv *m = NULL;
	if (stint_gpu_convolution_of(kind, p, STINT_GPU_BF16, last, &v)) {
		wrong(t, "a convolution's numbers");
		return;
	}
	v.tf32 = tf32;
	const int rc = stint_gpu_conv_new(t->g, &v, &m);
	printf("%s %lld x %lld (%d axes) to %lld in %lld groups, type %d%s%s: ", kind,
		(long long)v.n, (long long)v.c, v.axes, (long long)v.k, (long long)v.groups,
		(int)v.type[0], last ? ", channels last" : "", tf32 ? ", tf32" : "");
	if (rc) {
		printf("none: %s\n", stint_gpu_message(t->g));
		return;
	}
	printf("workspace %zu\n", stint_gpu_conv_workspace(m));
	conv_compare(t, &v, m);
	stint_gpu_conv_free(m);
}

static void convolutions_try(struct all *t)
{
	/* {N, C, D0, D1, K, G, k0, k1, s0, s1, d0, d1, pb0, pb1, pe0, pe1, O0, O1, bias, form} */
	static const int64_t flat[][18] = {{2, 16, 7, 8, 32, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 7, 8},
		{2, 8, 15, 14, 16, 1, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 8, 7},
		{2, 8, 1, 20, 16, 1, 1, 5, 1, 1, 1, 2, 0, 4, 0, 4, 1, 20},
		{1, 16, 9, 9, 32, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9},
		{1, 3, 20, 20, 8, 1, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 10, 10},
		{1, 8, 10, 10, 8, 8, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, 9, 9}};
	/* {N, C, K, G, D0, D1, D2, k, s, d, pb, O} */
	static const int64_t deep[] = {
		2, 8, 16, 1, 5, 6, 7, 3, 3, 3, 1, 2, 1, 1, 1, 1, 1, 1, 1, 5, 3, 7};
	static const char *const kinds[][3] = {{"conv_forward", "conv_data", "conv_weight"},
		{"conv3_forward", "conv3_data", "conv3_weight"}};
	for (int how = 0; how < 7 * 12; how++) {
		const int shape = how / 12, kind = how % 3, narrow_types = how / 3 % 2,
			  last = how / 6 % 2;
		int64_t p[24] = {0};
		memcpy(p, shape < 6 ? flat[shape] : deep, shape < 6 ? sizeof flat[0] : sizeof deep);
		p[shape < 6 ? 19 : 23] = narrow_types ? 7 * 16 : 0;
		conv_try(t, kinds[shape == 6][kind], p, last, 0);
		if (!narrow_types && shape == 0)
			conv_try(t, kinds[0][kind], p, last, 1);
	}
}

/* --- Rates --- */

static double product_rate(struct all *t, enum stint_gpu_type type, int tf32)
{
	const int64_t n = t->quick ? QUICK : LONG, p[24] = {1, n, n, n, 0, 0, 1, 1, type ? 7 : 0};
	const size_t bytes = (size_t)(n * n) * 4;
	const int times = t->quick ? 1 : 20;
	struct stint_gpu_product product;
	struct stint_gpu_matmul *m;
	double ms = 0;
	if (stint_gpu_product_of("matmul", p, type, stint_gpu_facts_of(t->g)->arch, &product))
		return 0;
	product.tf32 = tf32;
	if (tried(t, stint_gpu_matmul_new(t->g, &product, &m), "product"))
		return 0;
	int rc = tried(t, stint_gpu_fill(t->g, 0, t->arena, 0, 3 * bytes), "fill");
	for (int i = -3; !rc && i < times; i++) { /* the first few warm up */
		if (i == 0)
			rc = tried(t, stint_gpu_mark(t->g, 0, 10), "mark");
		rc = rc || tried(t,
				   stint_gpu_matmul_run(t->g, 0, m, t->arena, t->arena + bytes,
					   t->arena + 2 * bytes, 0, t->arena + 3 * bytes),
				   "product");
	}
	rc = rc || tried(t, stint_gpu_mark(t->g, 0, 11), "mark") ||
	     tried(t, stint_gpu_sync(t->g, 0), "sync") ||
	     tried(t, stint_gpu_elapsed(t->g, 10, 11, &ms), "elapsed");
	stint_gpu_matmul_free(m);
	return rc || ms <= 0 ? 0 : 2 * pow((double)n, 3) * times / ms / 1e9;
}

static double copy_rate(struct all *t)
{
	const size_t half = t->arena_bytes / 2;
	double ms = 0;
	int rc = 0;
	for (int i = -1; !rc && i < 10; i++) {
		if (i == 0)
			rc = tried(t, stint_gpu_mark(t->g, 0, 12), "mark");
		rc = rc ||
		     tried(t, stint_gpu_copy(t->g, 0, t->arena + half, t->arena, half), "copy");
	}
	rc = rc || tried(t, stint_gpu_mark(t->g, 0, 13), "mark") ||
	     tried(t, stint_gpu_sync(t->g, 0), "sync") ||
	     tried(t, stint_gpu_elapsed(t->g, 12, 13, &ms), "elapsed");
	return rc || ms <= 0 ? 0 : 2.0 * 10 * (double)half / ms / 1e6;
}

static void rates_show(struct all *t)
{
	printf("products of %d: f32 %.1f, tf32 %.1f, bf16 %.1f TFLOP/s\n", t->quick ? QUICK : LONG,
		product_rate(t, STINT_GPU_F32, 0), product_rate(t, STINT_GPU_F32, 1),
		product_rate(t, STINT_GPU_BF16, 0));
	printf("copy on the device: %.0f GB/s read and written\n", copy_rate(t));
}

/* --- Memory --- */

static void arena_given(struct all *t)
{
	struct all other = *t;
	stint_gpu_ptr at;
	if (stint_gpu_new(&other.g, NULL) || tried(&other, stint_gpu_open(other.g, 0), "open")) {
		wrong(t, "a second one on the same device");
	} else {
		if (tried(&other, stint_gpu_arena(other.g, t->arena + 256, MIB, &at),
			    "an arena handed in") ||
			at != t->arena + 256)
			wrong(t, "an arena handed in");
	}
	stint_gpu_free(other.g);
}

static void memory_show(struct all *t)
{
	const struct stint_gpu_item *item;
	size_t free_bytes, total;
	int64_t outside = 0;
	if (tried(t, stint_gpu_memory_note(t->g, "libraries' kernels"), "memory"))
		return;
	const int n = stint_gpu_memory(t->g, &item);
	for (int i = 0; i < n; i++) {
		printf("outside the arena: %-20s %8.2f MiB\n", item[i].what,
			(double)item[i].bytes / MIB);
		outside += item[i].bytes;
	}
	if (tried(t, stint_gpu_memory_free(t->g, &free_bytes, &total), "memory"))
		return;
	printf("arena %.2f MiB, outside %.2f MiB, used on the device %.2f MiB\n",
		(double)t->arena_bytes / MIB, (double)outside / MIB,
		(double)(total - free_bytes) / MIB);
}

int main(int argc, char **argv)
{
	struct all t = {.quick = argc > 1 && !strcmp(argv[1], "--quick")};
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
	if (!tried(&t, rc, "open") &&
		!tried(&t, stint_gpu_arena(t.g, 0, t.arena_bytes, &t.arena), "arena")) {
		device_show(&t);
		if (!kernels_make(&t)) {
			kernels_run(&t);
			graph_run(&t);
		}
		products_try(&t);
		convolutions_try(&t);
		rates_show(&t);
		arena_given(&t);
		memory_show(&t);
	}
	stint_gpu_free(t.g);
	printf(t.wrong ? "%d things are wrong\n" : "all right\n", t.wrong);
	return t.wrong ? 1 : 0;
}
