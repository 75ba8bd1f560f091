/* stint_lib.h in plain loops with sums in double precision: stands in for the GPU's libraries in
 * steps that run on the CPU. Any shape and type, dense layouts, convolutions channels last too. */
#include "runtime/stint_lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/elements.h"

struct stint_lib {
	char kind[24];
	int64_t p[24];
};

int64_t stint_lib_workspace(const char *kind, const int64_t p[24], int threads)
{
	(void)kind, (void)p, (void)threads;
	return 256; /* some, so that the plan has a place for it */
}

int stint_lib_block(void)
{
	return 0;
}

int stint_lib_new(
	struct stint_lib **out, const char *kind, const int64_t p[24], int threads, char *message)
{
	struct stint_lib *l = *out = calloc(1, sizeof *l);
	(void)threads;
	if (!l) {
		snprintf(message, 256, "out of memory");
		return STINT_NO_MEMORY;
	}
	snprintf(l->kind, sizeof l->kind, "%s", kind);
	memcpy(l->p, p, sizeof l->p);
	return STINT_OK;
}

void stint_lib_free(struct stint_lib *l)
{
	free(l);
}

const char *stint_lib_identity(int threads, char buf[static 96])
{
	snprintf(buf, 96, "plain loops, %d", threads);
	return buf;
}

/* Of a call's `types`, the one behind `bit`. */
static enum element type_of(int64_t types, int bit)
{
	return !(types & bit) ? ELEMENT_FLOAT : types & 8 ? ELEMENT_FP16 : ELEMENT_BF16;
}

/* --- Products --- */

static void matmul(const int64_t *p, int bias, const void *const *in, void *y)
{
	const int64_t m = p[1], n = p[2], k = p[3];
	for (int64_t b = 0; b < p[0]; b++)
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				double sum = bias ? element_get(in[2], ELEMENT_FLOAT, j) : 0;
				for (int64_t r = 0; r < k; r++) {
					const int64_t at0 = p[4] ? r * m + i : i * k + r;
					const int64_t at1 = p[5] ? j * k + r : r * n + j;
					sum += element_get(in[0], type_of(p[8], 1),
						       (p[6] ? b * m * k : 0) + at0) *
					       element_get(in[1], type_of(p[8], 2),
						       (p[7] ? b * n * k : 0) + at1);
				}
				element_set(y, type_of(p[8], 4), (b * m + i) * n + j, sum);
			}
}

/* --- Convolutions --- */

struct conv {
	int64_t n, c, k, groups, bias, types;
	int last; /* all three tensors have their channels behind the spatial axes */
	int64_t size[3], kernel[3], stride[3], dilation[3], before[3], out[3];
};

/* Two axes are the last of three. */
static struct conv conv_of(const int64_t *p, int axes)
{
	struct conv v = {.n = p[0], .c = p[1]};
	const int two = axes == 2, at = two ? 2 : 4;
	v.k = p[two ? 4 : 2];
	v.groups = p[two ? 5 : 3];
	v.bias = p[two ? 18 : 22];
	v.types = p[two ? 19 : 23] / 16;
	v.last = (p[two ? 19 : 23] & 3) == 3;
	for (int i = 0; i < 3; i++)
		v.size[i] = v.kernel[i] = v.stride[i] = v.dilation[i] = v.out[i] = 1;
	for (int i = 0; i < axes; i++) {
		const int to = 3 - axes + i;
		v.size[to] = p[at + i];
		v.kernel[to] = p[(two ? 6 : 7) + i];
		v.stride[to] = p[(two ? 8 : 10) + i];
		v.dilation[to] = p[(two ? 10 : 13) + i];
		v.before[to] = p[(two ? 12 : 16) + i];
		v.out[to] = p[(two ? 16 : 19) + i];
	}
	return v;
}

static int64_t volume(const int64_t *dim)
{
	return dim[0] * dim[1] * dim[2];
}

/* Place of the element that output position o meets at kernel position f; -1: in the padding. */
static int64_t met(const struct conv *v, int64_t o, int64_t f)
{
	int64_t at = 0, place[3];
	for (int i = 2; i >= 0; i--) {
		place[i] = o % v->out[i] * v->stride[i] + f % v->kernel[i] * v->dilation[i] -
			   v->before[i];
		o /= v->out[i];
		f /= v->kernel[i];
		if (place[i] < 0 || place[i] >= v->size[i])
			return -1;
	}
	for (int i = 0; i < 3; i++)
		at = at * v->size[i] + place[i];
	return at;
}

enum { X, W, Y };

/* Where an element lies: of image or output `a`, channel b of `channels`, place i of `places`. */
static int64_t element(
	const struct conv *v, int64_t a, int64_t b, int64_t channels, int64_t i, int64_t places)
{
	return v->last ? (a * places + i) * channels + b : (a * channels + b) * places + i;
}

/* Adds what each pair of elements contributes to the third's sum. */
static void meet_all(
	const struct conv *v, int result, const void *const *of, const int *type, double *sum)
{
	const int64_t x = volume(v->size), w = volume(v->kernel), y = volume(v->out);
	const int64_t c = v->c / v->groups, k = v->k / v->groups;
	for (int64_t i = 0; i < v->n * v->k * c * y * w; i++) {
		const int64_t f = i % w, o = i / w % y, ci = i / w / y % c;
		const int64_t ko = i / w / y / c % v->k, b = i / w / y / c / v->k;
		const int64_t from = met(v, o, f);
		const int64_t at[] = {element(v, b, ko / k * c + ci, v->c, from, x),
			element(v, ko, ci, c, f, w), element(v, b, ko, v->k, o, y)};
		const int one = result == X ? W : X, other = result == Y ? W : Y;
		if (from >= 0)
			sum[at[result]] += element_get(of[one], type[one], at[one]) *
					   element_get(of[other], type[other], at[other]);
	}
}

/* Operand 0, operand 1 and the result, as each kind has them. */
static int convolve(const struct stint_lib *l, const void *const *in, void *out)
{
	const char *what = strchr(l->kind, '_') + 1;
	const struct conv v = conv_of(l->p, l->kind[4] == '3' ? 3 : 2);
	const int result = !strcmp(what, "forward") ? Y : !strcmp(what, "data") ? X : W;
	const int first = result == X ? Y : X, second = result == W ? Y : W;
	const int64_t numel[] = {v.n * v.c * volume(v.size),
		v.k * v.c / v.groups * volume(v.kernel), v.n * v.k * volume(v.out)};
	const void *of[3] = {NULL};
	int type[3];
	double *sum = calloc((size_t)numel[result] + 1, sizeof *sum);
	if (!sum)
		return 1;
	of[first] = in[0];
	of[second] = in[1];
	type[first] = type_of(v.types, 1);
	type[second] = type_of(v.types, 2);
	type[result] = type_of(v.types, 4);
	for (int64_t i = 0; v.bias && i < numel[Y]; i++)
		sum[i] = element_get(
			in[2], ELEMENT_FLOAT, v.last ? i % v.k : i / volume(v.out) % v.k);
	meet_all(&v, result, of, type, sum);
	for (int64_t i = 0; i < numel[result]; i++)
		element_set(out, type[result], i, sum[i]);
	free(sum);
	return 0;
}

int stint_lib_run(struct stint_lib *l, const void *const *in, void *const *out, void *ws)
{
	(void)ws;
	if (!strncmp(l->kind, "conv", 4))
		return convolve(l, in, out[0]);
	matmul(l->p, !strcmp(l->kind, "matmul_bias"), in, out[0]);
	return 0;
}
