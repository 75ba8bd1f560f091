/* The ways of the library's convolutions, measured: the rule in ops/conv/conv.c is made from this.
 *
 * For each shape and each of the three convolutions of a layer: the time of the direct way, and how
 * many times as fast Winograd's is, whole and in halves, with the scratch as a multiple of the
 * tensors. Ways take turns; of each the least time counts. Usage: ways [ROUNDS]
 * `ways errors`: what each way loses against double precision instead. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stint_lib.h"

enum { WAYS = 3, THREADS = 2 };

static double milliseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *room(int64_t bytes)
{
	void *p = aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
	if (!p)
		exit(1);
	memset(p, 0, (size_t)bytes);
	return p;
}

/* n images of c by size by size to k channels in blocks, 3 by 3, padded. */
static struct stint_lib_call call_of(
	int kind, int64_t n, int64_t c, int64_t size, int64_t k, int way)
{
	return (struct stint_lib_call){.kind = (enum stint_call_kind)kind,
		.conv = {.axes = 2,
			.n = n,
			.c = c,
			.k = k,
			.groups = 1,
			.size = {size, size},
			.kernel = {3, 3},
			.stride = {1, 1},
			.dilation = {1, 1},
			.before = {1, 1},
			.out = {size, size},
			.x_blocked = 1,
			.y_blocked = 1,
			.way = (enum stint_conv_way)way}};
}

static void measure(int kind, int64_t n, int64_t c, int64_t size, int64_t k, int rounds)
{
	const struct stint_lib_call first = call_of(kind, n, c, size, k, 0);
	const int64_t image = n * size * size * 4, weight = c * k * 9 * 4;
	const int data = kind == STINT_CALL_CONV_DATA, dw = kind == STINT_CALL_CONV_WEIGHT;
	double best[WAYS];
	int64_t scratch[WAYS];
	struct stint_lib *call[WAYS] = {NULL};
	void *x = room(image * c), *y = room(image * k), *w = room(weight), *ws[WAYS] = {NULL};
	for (int way = 0; way < WAYS; way++) {
		const struct stint_lib_call what = call_of(kind, n, c, size, k, way);
		char message[256];
		best[way] = 1e30;
		scratch[way] = stint_lib_workspace(&what, THREADS);
		if (scratch[way] < 0)
			continue;
		ws[way] = room(scratch[way]);
		(void)stint_lib_new(&call[way], &what, THREADS, message);
	}
	for (int r = 0; r <= rounds; r++)
		for (int way = 0; way < WAYS; way++) {
			const void *in[] = {data ? y : x, dw ? y : w};
			void *out[] = {dw ? w : data ? x : y};
			const double start = milliseconds();
			if (!call[way] || stint_lib_run(call[way], in, out, ws[way]))
				continue;
			const double time = milliseconds() - start;
			if (r > 0 && time < best[way])
				best[way] = time;
		}
	printf("%-12s n%-3lld c%-4lld %3lldx%-3lld k%-4lld %9.2f ms", stint_lib_call_name(&first),
		(long long)n, (long long)c, (long long)size, (long long)size, (long long)k,
		best[0]);
	for (int way = 1; way < WAYS; way++)
		if (call[way])
			printf("   %5.2f x, scratch %5.2f x", best[0] / best[way],
				(double)scratch[way] / (double)(image * (c + k) + weight));
	printf("\n");
	for (int way = 0; way < WAYS; way++) {
		stint_lib_free(call[way]);
		free(ws[way]);
	}
	free(x);
	free(y);
	free(w);
}

/* --- Errors: random tensors of one image, against sums in double precision --- */

enum { SIZE = 28, C = 64, K = 64, PLANE = SIZE * SIZE };

static void fill(float *p, int n)
{
	static uint32_t state = 1;
	for (int i = 0; i < n; i++) {
		state = state * 1664525u + 1013904223u;
		p[i] = (float)(state >> 8) / 8388608.0f - 1;
	}
}

/* Element c, i of an image in blocks. */
static int at(int block, int c, int i)
{
	return (c / block * PLANE + i) * block + c % block;
}

/* Adds what each tap of each pair of channels contributes to the one of x, y, w that is `sum`. */
static void convolve(int kind, int b, const float *x, const float *w, const float *y, double *sum)
{
	for (int k = 0; k < K; k++)
		for (int c = 0; c < C; c++)
			for (int t = 0; t < 9; t++)
				for (int i = 0; i < PLANE; i++) {
					const int row = i / SIZE + t / 3 - 1,
						  col = i % SIZE + t % 3 - 1;
					if (row < 0 || row >= SIZE || col < 0 || col >= SIZE)
						continue;
					const int xi = at(b, c, row * SIZE + col), yi = at(b, k, i);
					const int wi = (k * C + c) * 9 + t;
					if (kind == STINT_CALL_CONV_FORWARD)
						sum[yi] += (double)x[xi] * (double)w[wi];
					else if (kind == STINT_CALL_CONV_DATA)
						sum[xi] += (double)y[yi] * (double)w[wi];
					else
						sum[wi] += (double)x[xi] * (double)y[yi];
				}
}

static void errors(void)
{
	enum { IMAGE = C * PLANE, WEIGHT = C * K * 9 };
	const int b = stint_lib_block();
	float *x = room(IMAGE * 4), *y = room(IMAGE * 4), *w = room(WEIGHT * 4),
	      *out = room(IMAGE * 4);
	double *sum = room(IMAGE * 8);
	fill(x, IMAGE);
	fill(y, IMAGE);
	fill(w, WEIGHT);
	for (int kind = STINT_CALL_CONV_FORWARD; kind <= STINT_CALL_CONV_WEIGHT; kind++)
		for (int way = 0; way < 2; way++) {
			const struct stint_lib_call what = call_of(kind, 1, C, SIZE, K, way);
			const int data = kind == STINT_CALL_CONV_DATA,
				  dw = kind == STINT_CALL_CONV_WEIGHT;
			const int count = dw ? WEIGHT : IMAGE;
			const void *in[] = {data ? y : x, dw ? y : w};
			void *result[] = {out}, *ws = room(stint_lib_workspace(&what, THREADS));
			char message[256];
			struct stint_lib *call;
			double off = 0, all = 0;
			if (stint_lib_new(&call, &what, THREADS, message) ||
				stint_lib_run(call, in, result, ws))
				exit(1);
			memset(sum, 0, IMAGE * 8);
			convolve(kind, b, x, w, y, sum);
			for (int i = 0; i < count; i++) {
				off += ((double)out[i] - sum[i]) * ((double)out[i] - sum[i]);
				all += sum[i] * sum[i];
			}
			printf("%-12s %-8s relative error, root mean square: %.2g\n",
				stint_lib_call_name(&what), way ? "Winograd" : "direct",
				sqrt(off / all));
			stint_lib_free(call);
			free(ws);
		}
	free(x);
	free(y);
	free(w);
	free(out);
	free(sum);
}

int main(int argc, char **argv)
{
	static const int64_t shape[][4] = {{16, 64, 56, 64}, {16, 128, 28, 128}, {16, 256, 14, 256},
		{16, 512, 7, 512}, {8, 64, 224, 64}, {8, 128, 112, 128}, {8, 256, 56, 256},
		{8, 512, 28, 512}, {8, 512, 14, 512}, {8, 128, 56, 128}, {8, 128, 56, 32},
		{8, 128, 28, 32}, {8, 128, 14, 32}, {8, 64, 56, 64}, {8, 256, 14, 256},
		{8, 512, 7, 512}, {4, 64, 128, 64}, {4, 32, 128, 32}, {4, 128, 64, 256},
		{4, 256, 32, 128}, {64, 16, 28, 16}, {64, 32, 14, 32}, {64, 64, 8, 64},
		{1, 64, 56, 64}, {1, 256, 14, 256}, {2, 128, 28, 128}};
	if (argc > 1 && !strcmp(argv[1], "errors")) {
		errors();
		return 0;
	}
	const int rounds = argc > 1 ? atoi(argv[1]) : 5;
	for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
		for (int kind = STINT_CALL_CONV_FORWARD; kind <= STINT_CALL_CONV_WEIGHT; kind++)
			measure(kind, shape[i][0], shape[i][1], shape[i][2], shape[i][3], rounds);
	return 0;
}
