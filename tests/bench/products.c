/* Products of matrices (kernels/gemm.h), as a share of what this processor multiplies and adds at
 * its best, beside OpenBLAS and oneDNN where they are installed (opened when asked for, never
 * linked). Not a test: prints times.
 *
 *	products_avx2 [ROUNDS]
 *
 * is compiled for AVX2, products_avx512 for AVX-512, products for any x86-64 or what else this is,
 * as a --portable step is. One thread, and its own processor time, so that a busy machine tells the
 * truth more often. For each shape and form all take turns; the medians over the rounds are
 *printed. OPENBLAS_CORETYPE=Haswell and DNNL_MAX_CPU_ISA=AVX2 keep the others to AVX2. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { STINT_THREADS = 1 };
#include "kernels/gemm.h"
#include "roof.h"

enum { OURS, BLAS, DNNL, CONTENDERS, ROUNDS_MAX = 101 };

/* --- Contenders --- */

struct product {
	int m, n, k, ta, tb;
	const float *a, *b;
	float *c, *w;
};

typedef void cblas_sgemm_function(int order, int ta, int tb, int m, int n, int k, float alpha,
	const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef int dnnl_sgemm_function(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha,
	const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
	int64_t ldc);
static cblas_sgemm_function *blas;
static dnnl_sgemm_function *dnnl;

static void find_others(void)
{
	setenv("OMP_NUM_THREADS", "1", 1);
	void *const openblas = dlopen("libopenblas.so.0", RTLD_NOW);
	void *const onednn = dlopen("libdnnl.so.2", RTLD_NOW);
	if (openblas) {
		void (*const threads)(int) = (void (*)(int))dlsym(
			openblas, "openblas_set_num_threads");
		blas = (cblas_sgemm_function *)dlsym(openblas, "cblas_sgemm");
		threads(1);
	}
	if (onednn)
		dnnl = (dnnl_sgemm_function *)dlsym(onednn, "dnnl_sgemm");
}

static void multiply(int who, const struct product *p)
{
	enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112 };
	const int lda = p->ta ? p->m : p->k, ldb = p->tb ? p->k : p->n;
	if (who == OURS)
		gemm_block(p->m, p->n, p->k, p->a, p->ta ? 1 : p->k, p->ta ? p->m : 1, p->b,
			p->tb ? 1 : p->n, p->tb ? p->k : 1, p->c, p->n, 0, p->w);
	else if (who == BLAS)
		blas(ROW_MAJOR, p->ta ? TURNED : PLAIN, p->tb ? TURNED : PLAIN, p->m, p->n, p->k, 1,
			p->a, lda, p->b, ldb, 0, p->c, p->n);
	else
		dnnl(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', p->m, p->n, p->k, 1, p->a, lda, p->b,
			ldb, 0, p->c, p->n);
}

static int smaller(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *x, int n)
{
	qsort(x, (size_t)n, sizeof *x, smaller);
	return x[n / 2];
}

static double timed(int who, const struct product *p, int times)
{
	const double from = thread_seconds();
	for (int i = 0; i < times; i++)
		multiply(who, p);
	return (thread_seconds() - from) / times;
}

static void compare(const struct product *p, int rounds, double peak)
{
	static double t[CONTENDERS][ROUNDS_MAX];
	const int there[CONTENDERS] = {1, blas != NULL, dnnl != NULL};
	const double flops = 2.0 * p->m * p->n * p->k;
	for (int r = -1; r < rounds; r++) /* the first is for the caches */
		for (int who = 0; who < CONTENDERS; who++)
			if (there[who])
				t[who][r < 0 ? 0 : r] = timed(who, p, 1 + (int)(4e7 / flops));
	printf("| %d | %d | %d | %s%s |", p->m, p->n, p->k, p->ta ? "Aᵀ·B" : "A·B",
		p->tb ? "ᵀ" : "");
	for (int who = 0; who < CONTENDERS; who++) {
		const double rate = there[who] ? flops / median(t[who], rounds) * 1e-9 : 0;
		printf(" %.1f | %.0f %% |", rate, 100 * rate / peak);
	}
	printf("\n");
	fflush(stdout);
}

static float *room(int64_t n)
{
	float *const x = aligned_alloc(64, (size_t)(n + 16) / 16 * 64);
	if (!x)
		exit(1);
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)(i % 1009) / 1009 - 0.5f;
	return x;
}

int main(int argc, char **argv)
{
	/* squares; a layer of ResNet-18 as a product, each way; GPT's; an MLP's; skinny ones */
	static const int shape[][3] = {{128, 128, 128}, {256, 256, 256}, {512, 512, 512},
		{768, 768, 768}, {1024, 1024, 1024}, {2048, 2048, 2048}, {64, 3136, 576},
		{128, 784, 1152}, {256, 196, 2304}, {512, 49, 4608}, {64, 576, 3136},
		{512, 4608, 49}, {1024, 1152, 384}, {1024, 1536, 384}, {1024, 384, 1536},
		{384, 1536, 1024}, {128, 1024, 784}, {128, 10, 512}, {8, 1024, 1024},
		{1000, 8, 512}, {64, 64, 64}, {197, 197, 64}};
	const int wanted = argc > 1 ? atoi(argv[1]) : 15;
	const int rounds = wanted < 1 ? 1 : wanted > ROUNDS_MAX ? ROUNDS_MAX : wanted;
	const int64_t most = 2048 * 2048 + 4096;
	struct product p = {.a = room(most), .b = room(most), .c = room(most), .w = room(most)};
	find_others();
	printf("| m | n | k | | stint, GFLOP/s | | OpenBLAS | | oneDNN | |\n"
	       "|---|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
		for (int form = 0; form < 3; form++) {
			p.m = shape[i][0];
			p.n = shape[i][1];
			p.k = shape[i][2];
			p.ta = form == 1;
			p.tb = form == 2;
			compare(&p, rounds, roof());
		}
	printf("\nThe roof: %.1f GFLOP/s.\n", roof());
	return 0;
}
