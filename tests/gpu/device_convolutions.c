/* Convolutions of cuDNN on a device, against plain loops: kinds, shapes, types, layouts. */
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t product_of(const int64_t *n, int count)
{
	int64_t all = 1;
	for (int i = 0; i < count; i++)
		all *= n[i];
	return all;
}

/* Where element (a, b, spatial...) of a tensor lies: a batch or outputs, b channels. */
static int64_t conv_at(const struct stint_convolution *c, const int64_t *axis, int64_t channels,
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
static void conv_terms(const struct stint_gpu_convolution *g, float *const t[3], double *sum,
	int64_t b, int64_t k, int64_t c, const int64_t *o)
{
	const struct stint_convolution *v = &g->shape;
	const int64_t width = v->c / v->groups, group = k / (v->k / v->groups);
	const int64_t y = conv_at(v, v->out, v->k, b, k, o);
	int64_t f[3] = {0};
	do {
		int64_t i[3] = {0};
		int inside = 1;
		for (int a = 0; a < v->axes; a++) {
			i[a] = o[a] * v->stride[a] + f[a] * v->dilation[a] - v->before[a];
			inside = inside && i[a] >= 0 && i[a] < v->size[a];
		}
		if (!inside)
			continue;
		const int64_t x = conv_at(v, v->size, v->c, b, group * width + c, i);
		const int64_t w = conv_at(v, v->kernel, width, k, c, f);
		if (g->kind == STINT_CALL_CONV_FORWARD)
			sum[y] += (double)t[0][x] * (double)t[1][w];
		else if (g->kind == STINT_CALL_CONV_DATA)
			sum[x] += (double)t[1][w] * (double)t[2][y];
		else
			sum[w] += (double)t[0][x] * (double)t[2][y];
	} while (conv_next(v->kernel, v->axes, f));
}

static void conv_expect(const struct stint_gpu_convolution *g, float *const t[3], double *sum)
{
	const struct stint_convolution *v = &g->shape;
	for (int64_t b = 0; b < v->n; b++)
		for (int64_t k = 0; k < v->k; k++)
			for (int64_t c = 0; c < v->c / v->groups; c++) {
				int64_t o[3] = {0};
				do {
					conv_terms(g, t, sum, b, k, c, o);
				} while (conv_next(v->out, v->axes, o));
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
	struct device *t, const struct stint_gpu_convolution *v, struct stint_gpu_conv *m)
{
	const int out = v->kind == STINT_CALL_CONV_FORWARD ? 2
			: v->kind == STINT_CALL_CONV_DATA  ? 0
							   : 1;
	const struct stint_convolution *s = &v->shape;
	const size_t n[3] = {(size_t)(s->n * s->c * product_of(s->size, s->axes)),
		(size_t)(s->k * (s->c / s->groups) * product_of(s->kernel, s->axes)),
		(size_t)(s->n * s->k * product_of(s->out, s->axes))};
	float *host[3] = {NULL}, *again = malloc(n[out] * sizeof *again);
	double *want = calloc(n[out], sizeof *want);
	stint_gpu_ptr at[4];
	int rc = !again || !want;
	at[0] = t->arena;
	for (int i = 0; i < 3; i++) {
		host[i] = malloc(n[i] * sizeof(float));
		rc = rc || !host[i];
		if (!rc)
			device_random(host[i], n[i], (uint32_t)i + 11);
		at[i + 1] = at[i] + (n[i] * 4 + 511) / 256 * 256;
		rc = rc || device_transfer(t, 1, v->type[i], at[i], host[i], n[i]);
	}
	if (!rc)
		conv_expect(v, host, want);
	for (int k = 0; !rc && k < (t->quick ? 2 : 20); k++) {
		rc = device_tried(t,
			     stint_gpu_fill(
				     t->g, 0, at[out], 0xff, n[out] * (v->type[out] ? 2 : 4)),
			     "fill") ||
		     device_tried(t, stint_gpu_conv_run(t->g, 0, m, at[0], at[1], at[2], at[3]),
			     "convolution") ||
		     device_transfer(t, 0, v->type[out], at[out], again, n[out]);
		if (!rc && k == 0 && !conv_close(again, want, n[out]))
			device_wrong(t, "a convolution's values");
		if (!rc && k > 0 && memcmp(again, host[out], n[out] * sizeof *again) != 0)
			device_wrong(t, "a repeated convolution's bits");
		if (!rc)
			memcpy(host[out], again, n[out] * sizeof *again);
	}
	if (rc)
		device_wrong(t, "a convolution could not be run");
	for (int i = 0; i < 3; i++)
		free(host[i]);
	free(again);
	free(want);
}

static void conv_try(struct device *t, const struct stint_lib_call *call, int tf32)
{
	const struct stint_convolution *s = &call->conv;
	struct stint_gpu_convolution v;
	struct stint_gpu_conv *m = NULL;
	if (stint_gpu_convolution_of(call, &v)) {
		device_wrong(t, "a convolution's numbers");
		return;
	}
	v.tf32 = tf32;
	const int rc = stint_gpu_conv_new(t->g, &v, &m);
	printf("%s %lld x %lld (%d axes) to %lld in %lld groups, type %d%s%s: ",
		stint_lib_call_name(call), (long long)s->n, (long long)s->c, s->axes,
		(long long)s->k, (long long)s->groups, (int)v.type[0],
		s->last ? ", channels last" : "", tf32 ? ", tf32" : "");
	if (rc) {
		printf("none: %s\n", stint_gpu_message(t->g));
		return;
	}
	printf("workspace %zu\n", stint_gpu_conv_workspace(m));
	conv_compare(t, &v, m);
	stint_gpu_conv_free(m);
}

/* {n, c, k, groups}, then of each axis what the names say */
#define FLAT(n_, c_, k_, groups_, ...)                                                             \
	{                                                                                          \
		.axes = 2, .n = (n_), .c = (c_), .k = (k_), .groups = (groups_), __VA_ARGS__       \
	}

void device_convolutions(struct device *t)
{
	static const struct stint_convolution list[] = {
		FLAT(2, 16, 32, 1, .size = {7, 8}, .kernel = {3, 3}, .stride = {1, 1},
			.dilation = {1, 1}, .before = {1, 1}, .out = {7, 8}),
		FLAT(2, 8, 16, 1, .size = {15, 14}, .kernel = {3, 3}, .stride = {2, 2},
			.dilation = {1, 1}, .before = {1, 1}, .out = {8, 7}),
		FLAT(2, 8, 16, 1, .size = {1, 20}, .kernel = {1, 5}, .stride = {1, 1},
			.dilation = {1, 2}, .before = {0, 4}, .out = {1, 20}),
		FLAT(1, 16, 32, 4, .size = {9, 9}, .kernel = {3, 3}, .stride = {1, 1},
			.dilation = {1, 1}, .before = {1, 1}, .out = {9, 9}),
		FLAT(1, 3, 8, 1, .size = {20, 20}, .kernel = {7, 7}, .stride = {2, 2},
			.dilation = {1, 1}, .before = {3, 3}, .out = {10, 10}),
		FLAT(1, 8, 8, 8, .size = {10, 10}, .kernel = {3, 3}, .stride = {1, 1},
			.dilation = {1, 1}, .before = {0, 0}, .out = {9, 9}),
		{.axes = 3,
			.n = 2,
			.c = 8,
			.k = 16,
			.groups = 1,
			.size = {5, 6, 7},
			.kernel = {3, 3, 3},
			.stride = {1, 2, 1},
			.dilation = {1, 1, 1},
			.before = {1, 1, 1},
			.out = {5, 3, 7}}};
	for (int how = 0; how < 7 * 12; how++) {
		const int shape = how / 12, narrow_types = how / 3 % 2;
		struct stint_lib_call call = {
			.kind = (enum stint_call_kind)(STINT_CALL_CONV_FORWARD + how % 3),
			.types = narrow_types ? STINT_X0_NARROW | STINT_X1_NARROW | STINT_Y0_NARROW
					      : 0,
			.conv = list[shape]};
		call.conv.last = how / 6 % 2;
		conv_try(t, &call, 0);
		if (!narrow_types && shape == 0)
			conv_try(t, &call, 1);
	}
}
