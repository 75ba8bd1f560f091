/* stint_lib.h in plain loops with sums in double precision: stands in for the GPU's libraries in
 * steps that run on the CPU. Any shape and type, dense layouts, convolutions channels last too. */
#include "runtime/stint_lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/elements.h"

struct stint_lib {
	struct stint_lib_call call;
};

int64_t stint_lib_workspace(const struct stint_lib_call *call, int threads)
{
	(void)call, (void)threads;
	return 256; /* some, so that the plan has a place for it */
}

int stint_lib_block(void)
{
	return 0;
}

int stint_lib_new(
	struct stint_lib **out, const struct stint_lib_call *call, int threads, char *message)
{
	struct stint_lib *l = *out = calloc(1, sizeof *l);
	(void)threads;
	if (!l) {
		snprintf(message, 256, "out of memory");
		return STINT_NO_MEMORY;
	}
	l->call = *call;
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
static enum element type_of(int types, int bit)
{
	return !(types & bit)                 ? ELEMENT_FLOAT
	       : types & STINT_NARROW_IS_FP16 ? ELEMENT_FP16
					      : ELEMENT_BF16;
}

/* --- Products --- */

static void multiply(const struct stint_product *p, int types, const void *const *in, void *y)
{
	const int64_t m = p->m, n = p->n, k = p->k;
	const enum element type[] = {type_of(types, STINT_X0_NARROW),
		type_of(types, STINT_X1_NARROW), type_of(types, STINT_Y0_NARROW)};
	const int bias = p->extra == STINT_PRODUCT_BIAS, adds = p->extra == STINT_PRODUCT_ADD;
	for (int64_t b = 0; b < p->batch; b++)
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				double sum = bias   ? element_get(in[2], ELEMENT_FLOAT, j)
					     : adds ? element_get(
							      in[2], type[2], (b * m + i) * n + j)
						    : 0;
				for (int64_t r = 0; r < k; r++) {
					const int64_t at0 = p->t0 ? r * m + i : i * k + r;
					const int64_t at1 = p->t1 ? j * k + r : r * n + j;
					sum += element_get(in[0], type[0],
						       (p->each0 ? b * m * k : 0) + at0) *
					       element_get(in[1], type[1],
						       (p->each1 ? b * n * k : 0) + at1);
				}
				element_set(y, type[2], (b * m + i) * n + j, sum);
			}
}

/* --- Convolutions --- */

/* Two axes are the last of three. */
static struct stint_convolution in_three(struct stint_convolution v)
{
	for (; v.axes < 3; v.axes++) {
		int64_t *const list[] = {v.size, v.kernel, v.stride, v.dilation, v.before, v.out};
		for (int i = 0; i < 6; i++) {
			memmove(list[i] + 1, list[i], 2 * sizeof *list[i]);
			list[i][0] = list[i] != v.before;
		}
	}
	return v;
}

static int64_t volume(const int64_t *dim)
{
	return dim[0] * dim[1] * dim[2];
}

/* Place of the element that output position o meets at kernel position f; -1: in the padding. */
static int64_t met(const struct stint_convolution *v, int64_t o, int64_t f)
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
static int64_t element(const struct stint_convolution *v, int64_t a, int64_t b, int64_t channels,
	int64_t i, int64_t places)
{
	return v->last ? (a * places + i) * channels + b : (a * channels + b) * places + i;
}

/* Adds what each pair of elements contributes to the third's sum. */
static void meet_all(const struct stint_convolution *v, int result, const void *const *of,
	const int *type, double *sum)
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
	const struct stint_convolution v = in_three(l->call.conv);
	const int result = l->call.kind == STINT_CALL_CONV_FORWARD ? Y
			   : l->call.kind == STINT_CALL_CONV_DATA  ? X
								   : W;
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
	type[first] = type_of(l->call.types, STINT_X0_NARROW);
	type[second] = type_of(l->call.types, STINT_X1_NARROW);
	type[result] = type_of(l->call.types, STINT_Y0_NARROW);
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
	if (l->call.kind != STINT_CALL_PRODUCT)
		return convolve(l, in, out[0]);
	multiply(&l->call.product, l->call.types, in, out[0]);
	return 0;
}
