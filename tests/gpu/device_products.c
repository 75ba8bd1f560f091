/* Products of cuBLASLt on a device, against plain loops: shapes, transposes, types, epilogues. */
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	const struct stint_product *p = &q->p.shape;
	const int64_t step = operand ? q->p.step1 : q->p.step0;
	const int64_t rows = operand ? p->k : p->m, cols = operand ? p->n : p->k;
	const int turned = operand ? p->t1 : p->t0;
	return q->x[operand][b * step + (turned ? col * rows + row : row * cols + col)];
}

static void product_expect(struct product *q)
{
	const struct stint_product *p = &q->p.shape;
	const int bias = p->extra == STINT_PRODUCT_BIAS, adds = p->extra == STINT_PRODUCT_ADD;
	for (int64_t b = 0; b < p->batch; b++)
		for (int64_t i = 0; i < p->m; i++)
			for (int64_t j = 0; j < p->n; j++) {
				double sum = bias ? (double)q->x[3][j] : 0;
				for (int64_t l = 0; l < p->k; l++)
					sum += (double)element(q, 0, b, i, l) *
					       (double)element(q, 1, b, l, j);
				const size_t at = (size_t)((b * p->m + i) * p->n + j);
				q->want[2][at] = (float)sum + (adds ? q->x[3][at] : 0);
			}
	for (size_t i = 0; i < q->n[3]; i++) {
		double sum = 0;
		for (int64_t l = 0; l < p->k && p->extra > STINT_PRODUCT_ADD; l++)
			sum += p->extra == STINT_PRODUCT_SUM0
				       ? (double)element(q, 0, 0, (int64_t)i, l)
				       : (double)element(q, 1, 0, l, (int64_t)i);
		q->want[3][i] = bias || adds ? q->x[3][i] : (float)sum;
	}
}

static int product_fill(struct product *q)
{
	const struct stint_product *p = &q->p.shape;
	q->n[0] = (size_t)(p->each0 ? p->batch : 1) * (size_t)(p->m * p->k);
	q->n[1] = (size_t)(p->each1 ? p->batch : 1) * (size_t)(p->k * p->n);
	q->n[2] = (size_t)(p->batch * p->m * p->n);
	q->n[3] = p->extra == STINT_PRODUCT_PLAIN ? 0
		  : p->extra == STINT_PRODUCT_ADD
			  ? q->n[2]
			  : (size_t)(p->extra == STINT_PRODUCT_SUM0 ? p->m : p->n);
	for (int i = 0; i < 4; i++) {
		q->x[i] = malloc((q->n[i] + 1) * sizeof(float));
		q->want[i] = malloc((q->n[i] + 1) * sizeof(float));
		if (!q->x[i] || !q->want[i])
			return -1;
		device_random(q->x[i], q->n[i], (uint32_t)i + 7);
	}
	product_expect(q);
	return 0;
}

static void product_place(struct device *t, struct product *q)
{
	stint_gpu_ptr at = t->arena;
	for (int i = 0; i < 4; i++) {
		q->at[i] = at;
		at += (q->n[i] * 4 + 511) / 256 * 256;
	}
	q->at[4] = at;
}

static int product_once(
	struct device *t, struct product *q, struct stint_gpu_matmul *m, float *y, float *extra)
{
	const struct stint_gpu_product *p = &q->p;
	for (int i = 0; i < 4; i++)
		if (device_transfer(t, 1, i < 2 ? p->in : p->out, q->at[i], q->x[i], q->n[i]))
			return -1;
	return device_tried(t,
		       stint_gpu_matmul_run(
			       t->g, 0, m, q->at[0], q->at[1], q->at[2], q->at[3], q->at[4]),
		       "product") ||
	       device_transfer(t, 0, p->out, q->at[2], y, q->n[2]) ||
	       device_transfer(t, 0, p->out, q->at[3], extra, q->n[3]);
}

/* Sums of these numbers are exact, so that only a bf16 result is rounded, by half a unit. `had`:
 * what was there before. */
static int close_to(
	const float *got, const float *want, const float *had, size_t n, enum stint_gpu_type type)
{
	int wrong = 0;
	for (size_t i = 0; i < n; i++) {
		const float product = had ? want[i] - had[i] : 0;
		const float room = type == STINT_GPU_F32 ? 0
							 : (fabsf(want[i]) + fabsf(product)) / 256;
		if (!(fabsf(got[i] - want[i]) <= room) && wrong++ < 3)
			printf("[%zu] is %.9g, wanted %.9g, had %.9g; ", i, (double)got[i],
				(double)want[i], had ? (double)had[i] : 0);
	}
	if (wrong)
		printf("%d of %zu are off; ", wrong, n);
	return !wrong;
}

static void product_compare(struct device *t, struct product *q, struct stint_gpu_matmul *m)
{
	float *y = malloc((q->n[2] + 1) * sizeof *y), *again = malloc((q->n[2] + 1) * sizeof *y);
	float *extra = malloc((q->n[3] + 1) * sizeof *y),
	      *extra2 = malloc((q->n[3] + 1) * sizeof *y);
	if (!y || !again || !extra || !extra2 || product_once(t, q, m, y, extra)) {
		device_wrong(t, "a product could not be run");
	} else {
		if (!close_to(y, q->want[2], q->p.shape.extra == STINT_PRODUCT_ADD ? q->x[3] : NULL,
			    q->n[2], q->p.out))
			device_wrong(t, "a product's values");
		if (!close_to(extra, q->want[3], NULL, q->n[3], q->p.out))
			device_wrong(t, "a product's bias or sums");
		for (int i = 0; i < (t->quick ? 2 : 20) && !t->wrong; i++)
			if (product_once(t, q, m, again, extra2) ||
				memcmp(y, again, q->n[2] * sizeof *y) != 0 ||
				memcmp(extra, extra2, q->n[3] * sizeof *y) != 0)
				device_wrong(t, "a repeated product's bits");
	}
	free(y);
	free(again);
	free(extra);
	free(extra2);
}

static void product_try(struct device *t, const struct stint_gpu_product *p)
{
	struct product q = {.p = *p};
	struct stint_gpu_matmul *m = NULL, *same = NULL;
	unsigned char first[STINT_GPU_ALGO], second[STINT_GPU_ALGO];
	const struct stint_product *s = &p->shape;
	const int rc = stint_gpu_matmul_new(t->g, p, &m);
	printf("product %lld x %lld x %lld x %lld t %d%d types %d%d epilogue %d%s: ",
		(long long)s->batch, (long long)s->m, (long long)s->n, (long long)s->k, s->t0,
		s->t1, (int)p->in, (int)p->out, (int)s->extra, p->tf32 ? " tf32" : "");
	if (rc) /* which epilogues a device has for which types is one of the things to find out */
		printf("none: %s\n", stint_gpu_message(t->g));
	if (rc && (s->extra == STINT_PRODUCT_PLAIN || s->extra == STINT_PRODUCT_ADD))
		device_wrong(t, "a plain product, and one that adds, has to be there");
	if (rc)
		return;
	stint_gpu_matmul_algo(m, first);
	if (!stint_gpu_matmul_new(t->g, p, &same)) {
		stint_gpu_matmul_algo(same, second);
		if (memcmp(first, second, sizeof first) != 0)
			device_wrong(t, "asking again gave another algorithm");
	} else
		device_wrong(t, "asking again failed");
	if (product_fill(&q))
		device_wrong(t, "no memory");
	else {
		product_place(t, &q);
		product_compare(t, &q, m);
	}
	printf("workspace %zu of %zu bytes\n", stint_gpu_matmul_workspace(m), p->cap);
	product_free(&q);
	stint_gpu_matmul_free(same);
	stint_gpu_matmul_free(m);
}

void device_products(struct device *t)
{
	static const int64_t shape[][4] = {{1, 64, 96, 128}, {1, 33, 17, 45}, {3, 40, 24, 56},
		{1, 8, 8, 8192}, {1, 1, 100, 300}};
	enum { NARROW = STINT_X0_NARROW | STINT_X1_NARROW };
	for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
		for (int how = 0; how < 4 * 5 * 4; how++) {
			/* types: f32, f32 as tf32, bf16 to bf16, bf16 to f32 */
			const int turned = how % 4, e = how / 4 % 5, type = how / 20;
			const int64_t *n = shape[s];
			const struct stint_lib_call call = {
				.types = type < 2    ? 0
					 : type == 2 ? NARROW | STINT_Y0_NARROW
						     : NARROW,
				.product = {.batch = n[0],
					.m = n[1],
					.n = n[2],
					.k = n[3],
					.t0 = turned & 1,
					.t1 = turned >> 1,
					.each0 = 1,
					.each1 = n[0] == 1 || turned > 1,
					.extra = (enum stint_product_extra)e}};
			struct stint_gpu_product product;
			if (e > STINT_PRODUCT_ADD && n[0] > 1)
				continue;
			if (stint_gpu_product_of(&call, stint_gpu_facts_of(t->g)->arch, &product)) {
				device_wrong(t, "a product's numbers");
				continue;
			}
			product.tf32 = type == 1;
			product_try(t, &product);
		}
}
