/* Convolutions of our own, each pass of 40 shapes alone, as a share of what this processor does at
 * its best, beside oneDNN's. Not a test: prints times.
 *
 *	convolutions_avx2 [ROUNDS [SHAPE ...]]
 *
 * is compiled for AVX2, convolutions_avx512 for AVX-512, convolutions for any x86-64 or what else
 * this is, as a --portable step is. ONEDNN_MAX_CPU_ISA=AVX2 keeps oneDNN to AVX2. SHAPE: only those
 * whose names have it in them.
 *
 * One thread and two. In each round both take a turn of some calls; the least time of a call counts
 * as what it takes, the median is there to say how busy the machine was. Time is the processor time
 * of the thread that works longest, since these machines are others' as well: it has all that a
 *call takes but the waiting of threads for one another. oneDNN gets its tensors with their channels
 *in blocks where it takes them so, as a step gives them to it, and turns weights itself.
 *
 * The roof is 12 chains of fused multiply-adds (roof.h). A depthwise convolution is bounded by
 * memory instead: its roof is a loop that copies as many bytes, or for the weight's gradient, which
 * writes next to nothing, one that adds them up. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int threads = 1;
#define STINT_THREADS threads
#include "kernels/conv_depth.h"
#include "kernels/conv_direct.h"
#include "kernels/conv_forward.h"
#include "kernels/conv_grad_w.h"
#include "kernels/conv_grad_x.h"
#include "kernels/turns.h"

#include "convolution_jobs.h"
#include "roof.h"
#include "stint_lib.h"

enum { ROUNDS_MAX = 101, PASSES = 3, MOST_THREADS = 2 };
enum { OURS, LIBRARY, MEMORY, CONTENDERS };
static const double turn_seconds = 2e-3;

/* --- Shapes --- */

struct shape {
	const char *name;
	int64_t n, c, k, groups;
	int64_t size[3], kernel, stride, before, dilation; /* a size of 0: the axis is not there */
};

/* Batches are as small as these may be without a picture's end showing: 0.2 to 4 GFLOP a call. */
static const struct shape shapes[] = {
	{"resnet18 first", 2, 3, 64, 1, {224, 224}, 7, 2, 3, 1},
	{"resnet18 1", 4, 64, 64, 1, {56, 56}, 3, 1, 1, 1},
	{"resnet18 2 half", 4, 64, 128, 1, {56, 56}, 3, 2, 1, 1},
	{"resnet18 2", 4, 128, 128, 1, {28, 28}, 3, 1, 1, 1},
	{"resnet18 2 skip", 8, 64, 128, 1, {56, 56}, 1, 2, 0, 1},
	{"resnet18 3 half", 4, 128, 256, 1, {28, 28}, 3, 2, 1, 1},
	{"resnet18 3", 4, 256, 256, 1, {14, 14}, 3, 1, 1, 1},
	{"resnet18 4 half", 8, 256, 512, 1, {14, 14}, 3, 2, 1, 1},
	{"resnet18 4", 8, 512, 512, 1, {7, 7}, 3, 1, 1, 1},
	{"resnet50 1 in", 4, 256, 64, 1, {56, 56}, 1, 1, 0, 1},
	{"resnet50 1 out", 4, 64, 256, 1, {56, 56}, 1, 1, 0, 1},
	{"resnet50 2 in", 4, 512, 128, 1, {28, 28}, 1, 1, 0, 1},
	{"resnet50 2 out", 4, 128, 512, 1, {28, 28}, 1, 1, 0, 1},
	{"resnet50 2 skip", 4, 256, 512, 1, {56, 56}, 1, 2, 0, 1},
	{"resnet50 3 in", 4, 1024, 256, 1, {14, 14}, 1, 1, 0, 1},
	{"resnet50 3 out", 4, 256, 1024, 1, {14, 14}, 1, 1, 0, 1},
	{"resnet50 4 in", 8, 2048, 512, 1, {7, 7}, 1, 1, 0, 1},
	{"resnet50 4 out", 8, 512, 2048, 1, {7, 7}, 1, 1, 0, 1},
	{"vgg16 first", 2, 3, 64, 1, {224, 224}, 3, 1, 1, 1},
	{"vgg16 1", 1, 64, 64, 1, {224, 224}, 3, 1, 1, 1},
	{"vgg16 2", 1, 128, 128, 1, {112, 112}, 3, 1, 1, 1},
	{"vgg16 3", 1, 256, 256, 1, {56, 56}, 3, 1, 1, 1},
	{"vgg16 4", 1, 512, 512, 1, {28, 28}, 3, 1, 1, 1},
	{"vgg16 5", 2, 512, 512, 1, {14, 14}, 3, 1, 1, 1},
	{"unet 1", 4, 32, 32, 1, {112, 112}, 3, 1, 1, 1},
	{"unet 1 up", 2, 64, 32, 1, {112, 112}, 3, 1, 1, 1},
	{"unet 5", 4, 256, 512, 1, {7, 7}, 3, 1, 1, 1},
	{"densenet 1", 8, 128, 32, 1, {56, 56}, 3, 1, 1, 1},
	{"densenet 3", 8, 128, 32, 1, {14, 14}, 3, 1, 1, 1},
	{"densenet 3 in", 8, 512, 128, 1, {14, 14}, 1, 1, 0, 1},
	{"mobilenet depthwise 1", 8, 32, 32, 32, {56, 56}, 3, 1, 1, 1},
	{"mobilenet depthwise 2", 8, 96, 96, 96, {56, 56}, 3, 2, 1, 1},
	{"mobilenet depthwise 6", 8, 576, 576, 576, {7, 7}, 3, 1, 1, 1},
	{"convnext depthwise", 8, 64, 64, 64, {28, 28}, 7, 1, 3, 1},
	{"resnext groups", 4, 128, 128, 32, {56, 56}, 3, 1, 1, 1},
	{"dilated", 2, 256, 256, 1, {28, 28}, 3, 1, 2, 2},
	{"odd 5x5", 4, 37, 61, 1, {33, 47}, 5, 1, 2, 1},
	{"odd stride 3", 4, 50, 100, 1, {59, 61}, 4, 3, 1, 1},
	{"line", 16, 64, 64, 1, {1000}, 9, 1, 4, 1},
	{"volume", 1, 32, 48, 1, {16, 28, 28}, 3, 1, 1, 1},
};

static int axes_of(const struct shape *s)
{
	return s->size[2] ? 3 : s->size[1] ? 2 : 1;
}

/* As the library and ops/ are asked: one axis stands as the last of two. */
static struct stint_lib_call call_of(const struct shape *s, int pass, int blocked)
{
	struct stint_lib_call call = {
		.kind = (enum stint_call_kind)(STINT_CALL_CONV_FORWARD + pass),
		.conv = {.axes = MAX(axes_of(s), 2),
			.n = s->n,
			.c = s->c,
			.k = s->k,
			.groups = s->groups}};
	struct stint_convolution *const c = &call.conv;
	const int block = blocked ? stint_lib_block() : 0;
	for (int i = 0; i < c->axes; i++) {
		const int from = axes_of(s) == 1 ? i - 1 : i;
		const int there = from >= 0;
		c->size[i] = there ? s->size[from] : 1;
		c->kernel[i] = there ? s->kernel : 1;
		c->stride[i] = there ? s->stride : 1;
		c->dilation[i] = there ? s->dilation : 1;
		c->before[i] = there ? s->before : 0;
		c->out[i] = (c->size[i] + 2 * c->before[i] - (c->kernel[i] - 1) * c->dilation[i] -
				    1) /
				    c->stride[i] +
			    1;
	}
	c->x_blocked = block && s->c % block == 0;
	c->y_blocked = block && s->k % block == 0;
	return call;
}

static int64_t product_of(int n, const int64_t *x)
{
	int64_t all = 1;
	for (int i = 0; i < n; i++)
		all *= x[i];
	return all;
}

/* --- Contenders --- */

struct contest {
	const struct shape *shape;
	int pass;
	struct stint_lib_call call;
	struct convolution_job job;
	struct stint_lib *library;
	float *x, *y, *w;
	int64_t nx, ny, nw;
	void *ours, *theirs; /* scratch */
};

static void *room(int64_t bytes)
{
	float *const p = aligned_alloc(64, ((size_t)bytes + 4096) / 64 * 64);
	if (!p) {
		fprintf(stderr, "no memory for %lld bytes\n", (long long)bytes);
		exit(1);
	}
	for (int64_t i = 0; i < bytes / 4; i++)
		p[i] = (float)(i % 1009) / 1009 - 0.5f;
	return p;
}

static void run_ours(const struct contest *t)
{
	const struct convolution_job *const j = &t->job;
	const struct stint_convolution *const c = &t->call.conv;
	struct window w;
	const struct conv_shape s = {
		c->n, c->c, c->k, c->groups, j->rows, j->columns, j->lines, j->turn, j->boxes};
	memcpy(w.kernel, j->kernels, sizeof w.kernel);
	memcpy(w.stride, j->stride, sizeof w.stride);
	memcpy(w.dilation, j->dilation, sizeof w.dilation);
	memcpy(w.before, j->before, sizeof w.before);
	memcpy(w.after, j->before, sizeof w.after);
	memcpy(w.size, j->size, sizeof w.size);
	memcpy(w.out, j->out, sizeof w.out);
	const int direct = j->kernel == BY_DIRECT_LOOPS;
	void *const ws = t->ours;
#define OWN OWN_SCRATCH(ws, 0, j->bytes)
	if (t->pass == 0 && direct)
		PARALLEL_TURNS(
			j->turns, conv_forward_direct(&w, &s, t->y, t->x, t->w, NULL, from, to));
	else if (t->pass == 0)
		PARALLEL_TURNS(
			j->turns, conv_forward(&w, &s, t->y, t->x, t->w, NULL, OWN, from, to));
	else if (t->pass == 1 && direct)
		PARALLEL_TURNS(j->turns, conv_grad_x_direct(&w, &s, t->x, t->y, t->w, from, to));
	else if (t->pass == 1)
		PARALLEL_TURNS(j->turns, conv_grad_x(&w, &s, t->x, t->y, t->w, OWN, from, to));
	else if (direct)
		PARALLEL_TURNS(j->turns, conv_grad_w_direct(&w, &s, t->w, t->x, t->y, from, to));
	else if (j->kernel == BY_CHANNELS)
		PARALLEL_TURNS(
			j->turns, conv_grad_w_depth(&w, &s, t->w, t->x, t->y, OWN, from, to));
	else
		PARALLEL_TURNS(j->turns, conv_grad_w(&w, &s, t->w, t->x, t->y, OWN, from, to));
}

static void run_library(const struct contest *t)
{
	const void *const in[] = {t->pass == 1 ? t->y : t->x, t->pass == 2 ? t->y : t->w};
	void *const out[] = {t->pass == 0 ? t->y : t->pass == 1 ? t->x : t->w};
	if (stint_lib_run(t->library, in, out, t->theirs))
		exit(1);
}

/* Lanes of a sum, so that adding takes no time beside reading. */
static void add_up(const float *from, int64_t n, float *sum)
{
	roof_vec s[4] = {{0}};
	for (int64_t i = 0; i + 4 * ROOF_LANES <= n; i += 4 * ROOF_LANES)
		for (int k = 0; k < 4; k++)
			s[k] += *(const roof_vec *)(from + i + k * ROOF_LANES);
	*sum = s[0][0] + s[1][0] + s[2][0] + s[3][0];
}

static void copy_vectors(const float *from, float *to, int64_t n)
{
	for (int64_t i = 0; i + ROOF_LANES <= n; i += ROOF_LANES)
		*(roof_vec *)(to + i) = *(const roof_vec *)(from + i);
}

/* As many bytes as x and y have. */
static void run_memory(const struct contest *t)
{
	float *const y = t->y;
	if (t->pass == 2)
		PARALLEL_TURNS(MOST_THREADS, {
			add_up(t->x + t->nx / 2 * from, t->nx / 2 * (to - from), t->w + 16 * from);
			add_up(t->y + t->ny / 2 * from, t->ny / 2 * (to - from), t->w + 16 * from);
		});
	else /* half of them from x, and half to y */
		PARALLEL_TURNS(MOST_THREADS, {
			const int64_t n = (t->nx + t->ny) / 4;
			copy_vectors(t->x + n * from, y + n * from, n * (to - from));
		});
}

static void run(const struct contest *t, int who)
{
	if (who == OURS)
		run_ours(t);
	else if (who == LIBRARY)
		run_library(t);
	else
		run_memory(t);
}

/* --- Times --- */

static int smaller(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static clockid_t clocks[MOST_THREADS];

/* The processor times of a team's threads, which libgomp keeps for the next team. */
static void find_clocks(void)
{
#pragma omp parallel num_threads(MOST_THREADS)
	pthread_getcpuclockid(pthread_self(), &clocks[omp_get_thread_num()]);
}

static double seconds_of(int thread)
{
	struct timespec t;
	clock_gettime(clocks[thread], &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A call's time: that of the thread that works longest. */
static double timed(const struct contest *t, int who, double calls)
{
	double from[MOST_THREADS], most = 0;
	for (int i = 0; i < threads; i++)
		from[i] = seconds_of(i);
	for (int i = 0; i < (int)calls; i++)
		run(t, who);
	for (int i = 0; i < threads; i++)
		most = MAX(most, seconds_of(i) - from[i]);
	return most / (int)calls;
}

struct times {
	double least, median;
};

static void measure(const struct contest *t, int rounds, struct times *of)
{
	static double time[CONTENDERS][ROUNDS_MAX];
	double calls[CONTENDERS];
	for (int who = 0; who < CONTENDERS; who++) { /* the first call is for the caches */
		if (who == LIBRARY && !t->library)
			continue;
		run(t, who);
		calls[who] = MAX(1, turn_seconds / timed(t, who, 1));
	}
	for (int r = 0; r < rounds; r++)
		for (int who = 0; who < CONTENDERS; who++)
			if (who != LIBRARY || t->library)
				time[who][r] = timed(t, who, calls[who]);
	for (int who = 0; who < CONTENDERS; who++) {
		qsort(time[who], (size_t)rounds, sizeof(double), smaller);
		of[who] = (struct times){time[who][0], time[who][rounds / 2]};
	}
}

static void prepare(struct contest *t)
{
	const struct shape *const s = t->shape;
	char message[256];
	const struct stint_lib_call plain = call_of(s, t->pass, 0);
	t->call = call_of(s, t->pass, 1);
	t->job = convolution_job(&plain, threads);
	t->ours = room(t->job.bytes * threads);
	int64_t bytes = stint_lib_workspace(&t->call, threads);
	if (bytes < 0) {
		t->call = plain;
		bytes = stint_lib_workspace(&t->call, threads);
	}
	t->theirs = room(MAX(bytes, 0));
	t->library = NULL;
	if (bytes >= 0 && stint_lib_new(&t->library, &t->call, threads, message))
		t->library = NULL;
}

static const char *pass_name(int pass)
{
	return pass == 0 ? "forward" : pass == 1 ? "by data" : "by weights";
}

/* A contender's cell: its rate, its share of the roof, and that of the median. */
static void print_share(double work, double peak, const struct times *t)
{
	printf(" %.1f | %.0f %% (%.0f) |", work / t->least * 1e-9,
		100 * work / t->least / peak * 1e-9, 100 * work / t->median / peak * 1e-9);
}

static void compare(struct contest *t, int rounds, double peak)
{
	const struct shape *const s = t->shape;
	struct times of[CONTENDERS];
	prepare(t);
	const struct stint_convolution *const c = &t->call.conv;
	const double flops = 2.0 * (double)(s->n * s->k * product_of(c->axes, c->out)) *
			     (double)(s->c / s->groups * product_of(c->axes, c->kernel));
	const int depthwise = s->groups == s->c && s->groups > 1;
	const double bytes = 4.0 * (double)(t->nx + t->ny);
	measure(t, rounds, of);
	const double work = depthwise ? bytes : flops;
	const double most = depthwise ? bytes / of[MEMORY].least * 1e-9 : peak * threads;
	printf("| %s | %s | %d | %s |", s->name, pass_name(t->pass), threads,
		depthwise ? "GB/s" : "GFLOP/s");
	print_share(work, most, &of[OURS]);
	if (t->library) {
		print_share(work, most, &of[LIBRARY]);
		printf(" %.2f |\n", of[LIBRARY].least / of[OURS].least);
	} else
		printf(" | | |\n");
	fflush(stdout);
	stint_lib_free(t->library);
	free(t->ours);
	free(t->theirs);
}

static void compare_passes(const struct shape *s, int rounds, double peak)
{
	const struct stint_lib_call call = call_of(s, 0, 0);
	const struct stint_convolution *const c = &call.conv;
	struct contest t = {.shape = s,
		.nx = s->n * s->c * product_of(c->axes, c->size),
		.ny = s->n * s->k * product_of(c->axes, c->out),
		.nw = s->k * s->c / s->groups * product_of(c->axes, c->kernel)};
	const int64_t most = MAX(t.nx, t.ny); /* the copy's halves may be larger than one of them */
	t.x = room(most * 4);
	t.y = room(most * 4);
	t.w = room(t.nw * 4 + 256);
	for (threads = 1; threads <= MOST_THREADS; threads++)
		for (t.pass = 0; t.pass < PASSES; t.pass++)
			compare(&t, rounds, peak);
	free(t.x);
	free(t.y);
	free(t.w);
}

static int wanted(const struct shape *s, int argc, char **argv)
{
	int any = argc < 3;
	for (int i = 2; i < argc; i++)
		any |= strstr(s->name, argv[i]) != NULL;
	return any;
}

/* Words that /proc/cpuinfo has for this processor. */
static void print_processor(void)
{
	FILE *const f = fopen("/proc/cpuinfo", "r");
	char line[256] = "", identity[96];
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, "model name", 10))
			break;
	if (f)
		fclose(f);
	const char *const name = strchr(line, ':');
	const char *const library = stint_lib_identity(1, identity);
	printf("Processor: %s", name ? name + 2 : "unknown\n");
	printf("Ours is compiled for vectors of %d bytes; beside it: %s.\n", (int)ROOF_BYTES,
		library ? library : "no library");
}

int main(int argc, char **argv)
{
	const int asked = argc > 1 ? atoi(argv[1]) : 15;
	const int rounds = MAX(1, MIN(asked, ROUNDS_MAX));
	if (!getenv("OMP_WAIT_POLICY")) { /* a thread that waits takes no time; read when it starts
					   */
		setenv("OMP_WAIT_POLICY", "passive", 1);
		execv("/proc/self/exe", argv);
	}
	find_clocks();
	const double peak = roof();
	print_processor();
	printf("The roof of a thread: %.1f GFLOP/s. Shares are of the least time, in brackets of "
	       "the "
	       "median of %d rounds; x: times as fast as the library.\n\n",
		peak, rounds);
	printf("| shape | pass | threads | unit | stint | of the roof | library | of the roof | x "
	       "|\n"
	       "|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (wanted(&shapes[i], argc, argv))
			compare_passes(&shapes[i], rounds, peak);
	return 0;
}
