#include "cli/roof.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/stint_rt_gpu_step.h"

enum { ALIGN = 64, RUNS_MIN = 12, RUNS_MAX = 60 };

/* The compiler makes of it what vectors there are. */
typedef float lanes __attribute__((vector_size(64)));

struct worker {
	float (*chains)(int64_t rounds); /* the peak's turn; NULL: the triad's */
	int64_t rounds;                  /* of the chains, or over the arrays */
	int64_t n, skip;                 /* lanes of each array, from which on */
	lanes *a, *b, *c;                /* this thread's parts */
	float seen;                      /* something of what was computed, lest it be left out */
};

/* --- Multiply-adds: enough chains side by side to hide how long one takes --- */

enum { CHAINS = 12, CHAIN_ROUND = 1000 };
/* So that each chain is a register. */
#define UNROLL _Pragma("GCC unroll 12")

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float chains_512(int64_t rounds)
{
	__m512 x[CHAINS], scale = _mm512_set1_ps(0.999f), more = _mm512_set1_ps(0.001f);
	UNROLL for (int i = 0; i < CHAINS; i++) x[i] = _mm512_set1_ps((float)i);
	for (int64_t k = 0; k < rounds * CHAIN_ROUND; k++)
		UNROLL for (int i = 0; i < CHAINS; i++) x[i] = _mm512_fmadd_ps(x[i], scale, more);
	UNROLL for (int i = 1; i < CHAINS; i++) x[0] = _mm512_add_ps(x[0], x[i]);
	return _mm512_reduce_add_ps(x[0]);
}

__attribute__((target("avx2,fma"))) static float chains_256(int64_t rounds)
{
	__m256 x[CHAINS], scale = _mm256_set1_ps(0.999f), more = _mm256_set1_ps(0.001f);
	float out[8];
	UNROLL for (int i = 0; i < CHAINS; i++) x[i] = _mm256_set1_ps((float)i);
	for (int64_t k = 0; k < rounds * CHAIN_ROUND; k++)
		UNROLL for (int i = 0; i < CHAINS; i++) x[i] = _mm256_fmadd_ps(x[i], scale, more);
	UNROLL for (int i = 1; i < CHAINS; i++) x[0] = _mm256_add_ps(x[0], x[i]);
	_mm256_storeu_ps(out, x[0]);
	return out[0];
}
#endif

/* Vectors of 16 bytes: what every processor of a kind has. */
static float chains_128(int64_t rounds)
{
	typedef float four __attribute__((vector_size(16)));
	four x[CHAINS], scale = {0.999f, 0.999f, 0.999f, 0.999f};
	four more = {0.001f, 0.001f, 0.001f, 0.001f};
	UNROLL for (int i = 0; i < CHAINS; i++) x[i] = (four){(float)i, 1, 2, 3};
	for (int64_t k = 0; k < rounds * CHAIN_ROUND; k++)
		UNROLL for (int i = 0; i < CHAINS; i++) x[i] = x[i] * scale + more;
	UNROLL for (int i = 1; i < CHAINS; i++) x[0] += x[i];
	return x[0][0];
}

/* How many reals a vector has; *run makes the chains. */
static int widest(float (**run)(int64_t))
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f")) {
		*run = chains_512;
		return 16;
	}
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		*run = chains_256;
		return 8;
	}
#endif
	*run = chains_128;
	return 4;
}

/* --- The triad --- */

static inline __attribute__((always_inline)) void triad_body(const struct worker *w)
{
	const lanes two = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
	lanes *restrict a = w->a + w->skip;
	const lanes *restrict b = w->b + w->skip, *restrict c = w->c + w->skip;
	for (int64_t k = 0; k < w->rounds; k++) {
		for (int64_t i = 0; i < w->n; i++)
			a[i] = b[i] + two * c[i];
		__asm__ volatile("" ::: "memory"); /* every round is made */
	}
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void triad_512(const struct worker *w)
{
	triad_body(w);
}

__attribute__((target("avx2"))) static void triad_256(const struct worker *w)
{
	triad_body(w);
}
#endif

static void triad(const struct worker *w)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f")) {
		triad_512(w);
		return;
	}
	if (__builtin_cpu_supports("avx2")) {
		triad_256(w);
		return;
	}
#endif
	triad_body(w);
}

/* --- Threads --- */

/* All threads at once; microseconds from the first that starts to the last that ends. */
static double together(struct worker *w, int threads)
{
	double from = 0, to = 0;
	(void)threads; /* where the compiler knows no OpenMP */
#pragma omp parallel num_threads(threads)
	{
		int i = omp_get_thread_num();
#pragma omp barrier
#pragma omp master
		from = omp_get_wtime();
		if (w[i].chains)
			w[i].seen = w[i].chains(w[i].rounds);
		else
			triad(&w[i]);
#pragma omp barrier
#pragma omp master
		to = omp_get_wtime();
	}
	return 1e6 * (to - from);
}

/* The best of many runs of about RUN_US each: shorter than the turns in which a busy machine gives
 * its cores to programs. `guess`: a rate that a thread of any machine is not far below. Where
 * `slices` is above 1, each run takes the next part of the arrays. */
static double best_rate(
	struct worker *w, int threads, double work_a_round, double guess, int64_t slices)
{
	const double RUN_US = 1500, ALL_US = 60e3;
	double best = 0, all = 0, rounds = fmax(1, RUN_US * guess / work_a_round);
	for (int i = 0; i < RUNS_MIN || (i < RUNS_MAX && all < ALL_US); i++) {
		for (int k = 0; k < threads; k++) {
			w[k].rounds = (int64_t)rounds;
			w[k].skip = i % slices * w[k].n;
		}
		double us = fmax(together(w, threads), 1);
		best = fmax(best, work_a_round * threads * floor(rounds) / us);
		if (us < RUN_US / 2 && slices == 1 && all < ALL_US) {
			rounds = fmax(2 * rounds, rounds * RUN_US / us / 2);
			i = 0; /* too short for a good one */
		}
		all += us;
	}
	return best;
}

static double peak(struct worker *w, int threads)
{
	float (*run)(int64_t);
	int width = widest(&run);
	for (int i = 0; i < threads; i++)
		w[i].chains = run;
	double rate = best_rate(w, threads, 2.0 * width * CHAINS * CHAIN_ROUND, 20e3, 1);
	for (int i = 0; i < threads; i++)
		w[i].chains = NULL;
	return rate;
}

/* Each thread's part of `bytes` in three arrays, of which a run takes a slice. */
static double bandwidth(struct worker *w, int threads, lanes *room, double bytes, int64_t slices)
{
	int64_t n = (int64_t)(bytes / threads / 3 / (double)sizeof *room);
	n = n < slices ? slices : n;
	for (int i = 0; i < threads; i++) {
		w[i].n = n / slices;
		w[i].a = room + 3 * n * i;
		w[i].b = w[i].a + n;
		w[i].c = w[i].b + n;
	}
	return best_rate(w, threads, 3.0 * (double)(n / slices) * (double)sizeof *room,
		slices > 1 ? 0 : 20e3, slices);
}

/* Working sets that lie in the first cache, the second, the third, and in none: the third is often
 * shared with other programs, and memory's must not take what the machine does not have. */
static void choose_sizes(struct roof *r)
{
	const double mib = 1 << 20;
	double l2 = (double)sysconf(_SC_LEVEL2_CACHE_SIZE);
	double l3 = (double)sysconf(_SC_LEVEL3_CACHE_SIZE);
	double most = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 4;
	l2 = l2 > 0 ? l2 : mib / 2;
	l3 = l3 > 0 ? l3 : 16 * mib;
	r->level[0].bytes = 24576.0 * r->threads;
	r->level[1].bytes = fmax(l2 / 2, 65536) * r->threads;
	r->level[2].bytes = fmax(fmin(l3 / 4, 16 * mib), 2 * r->level[1].bytes);
	r->level[3].bytes = fmax(fmin(fmin(3 * l3, 384 * mib), most), 2 * r->level[2].bytes);
}

enum status roof_measure(int threads, bool real_is_double, struct roof *out, struct diag *d)
{
	struct roof r = {.threads = threads < 1 ? 1 : threads, .nlevel = ROOF_LEVELS};
	choose_sizes(&r);
	size_t bytes = (size_t)r.level[ROOF_LEVELS - 1].bytes / ALIGN * ALIGN + ALIGN;
	struct worker *w = calloc((size_t)r.threads, sizeof *w);
	lanes *room = aligned_alloc(ALIGN, bytes);
	if (!w || !room) {
		free(w);
		free(room);
		return diag_nomem(d);
	}
#pragma omp parallel for num_threads(r.threads) schedule(static)
	for (size_t i = 0; i < bytes / sizeof *room; i++)
		room[i] = (lanes){1};
	r.flops_us = peak(w, r.threads) / (real_is_double ? 2 : 1);
	for (int i = 0; i < ROOF_LEVELS; i++)
		r.level[i].bytes_us = bandwidth(
			w, r.threads, room, r.level[i].bytes, i == ROOF_LEVELS - 1 ? 16 : 1);
	free(room);
	free(w);
	*out = r;
	return ST_OK;
}

enum status roof_device(const struct loaded *l, struct roof *out, struct diag *d)
{
	struct stint_device_peaks p;
	const int rc = l->step->device->peaks(l->step, &p);
	if (rc)
		return load_fail(l, rc, "bench", d);
	*out = (struct roof){.flops_us = p.flops_us, .product = p.product, .nlevel = 1};
	memcpy(out->device, p.name, sizeof out->device);
	for (int i = 0; i < 2; i++) { /* a device may have no cache to speak of */
		out->nlevel += i && p.level[1].bytes > p.level[0].bytes;
		out->level[out->nlevel - 1] = (struct roof_level){
			p.level[i].bytes, p.level[i].bytes_us};
	}
	return ST_OK;
}

double roof_bandwidth(const struct roof *r, double bytes)
{
	const struct roof_level *x = r->level;
	if (bytes <= x[0].bytes)
		return x[0].bytes_us;
	for (int i = 1; i < r->nlevel; i++)
		if (bytes < x[i].bytes) {
			double share = log(bytes / x[i - 1].bytes) /
				       log(x[i].bytes / x[i - 1].bytes);
			return x[i - 1].bytes_us + share * (x[i].bytes_us - x[i - 1].bytes_us);
		}
	return x[r->nlevel - 1].bytes_us;
}

double roof_us(const struct roof *r, double flops, double bytes)
{
	return fmax(flops / r->flops_us, bytes / roof_bandwidth(r, bytes));
}

void roof_bandwidths(const struct roof *r, struct text *t)
{
	char size[24];
	text_puts(t, "; GB/s:");
	for (int i = 0; i < r->nlevel; i++)
		text_add(t, "%s %.4g over %s", i ? "," : "", r->level[i].bytes_us / 1e3,
			bytes_human((int64_t)r->level[i].bytes, size));
}

void roof_bandwidths_json(const struct roof *r)
{
	printf(",\"bandwidth\":[");
	for (int i = 0; i < r->nlevel; i++)
		printf("%s{\"bytes\":%.0f,\"gb_s\":%.6g}", i ? "," : "", r->level[i].bytes,
			r->level[i].bytes_us / 1e3);
	printf("]");
}
