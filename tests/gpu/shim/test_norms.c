/* test_norms LIBRARY: the kernels of samples/norms.cu against sums in double precision, forwards
 * and backwards with equal bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/shim/tools.h"

enum { MOST = 27008, ARGS = 8 };

/* A launch's arguments: pointers, each a range. */
struct args {
	struct shim_range range[ARGS];
	void *at[ARGS];
	void *args[ARGS];
	int n;
};

static void add(struct args *a, const void *at, size_t bytes, bool writable)
{
	a->at[a->n] = (void *)(uintptr_t)at;
	a->args[a->n] = &a->at[a->n];
	a->range[a->n++] = (struct shim_range){at, bytes, writable, "an argument"};
}

static void launch(const char *kind, const char *shape, const char *suffix, unsigned blocks,
	unsigned threads, struct args *a)
{
	char name[64];
	snprintf(name, sizeof name, "k_%s_%s%s", kind, shape, suffix);
	run_both(&(struct shim_launch){.kernel = name,
		.grid = {blocks},
		.block = {threads},
		.nargs = a->n,
		.args = a->args,
		.nranges = a->n,
		.ranges = a->range});
	a->n = 0;
}

static void assert_near(const float *y, const double *want, int n, double tolerance)
{
	const double far = distance(y, want, n);
	if (!(far <= tolerance))
		fail_msg("%g off", far);
}

static _Alignas(64) float x[MOST], dy[MOST], y[MOST], scale[MOST], bias[MOST], out[4][MOST];
static _Alignas(64) double sums[MOST];
static double want[MOST], want_dx[MOST], want_scale[MOST], want_bias[MOST];

/* --- Rows --- */

struct rows {
	const char *name;
	int rows, groups, channels, inner;
	bool centred;
	unsigned blocks, threads; /* fewer blocks than tasks */
	int parts, all;           /* of the gradients of all; 0: no such kernel */
};

static const struct rows shapes[] = {
	{"short", 37, 1, 130, 1, true, 3, 128, 3, 2},
	{"block", 11, 1, 1032, 1, true, 7, 96, 2, 1},
	{"long", 3, 1, 9001, 1, false, 2, 256, 0, 0},
	{"group", 6, 3, 5, 12, true, 2, 64, 0, 0},
};

/* One row in double; mean and invstd as the kernel rounded them. */
static void reference_row(const struct rows *s, int r, float mean, float invstd)
{
	const int width = s->channels * s->inner;
	double level = 0, slope = 0;
	for (int i = 0; i < width; i++) {
		const int c = r % s->groups * s->channels + i / s->inner, at = r * width + i;
		const double d = (double)x[at] - (double)mean,
			     h = (double)dy[at] * (double)scale[c];
		want[at] = d * (double)invstd * (double)scale[c] +
			   (s->centred ? (double)bias[c] : 0);
		level += s->centred ? h / width : 0;
		slope += h * d / width;
		want_scale[c] += (double)dy[at] * d * (double)invstd;
		want_bias[c] += (double)dy[at];
	}
	for (int i = 0; i < width; i++) {
		const int c = r % s->groups * s->channels + i / s->inner, at = r * width + i;
		const double d = (double)x[at] - (double)mean, v = (double)invstd;
		want_dx[at] = v * ((double)dy[at] * (double)scale[c] - level - d * slope * v * v);
	}
}

static void check_statistics(const struct rows *s, int r, float mean, float invstd)
{
	const int width = s->channels * s->inner;
	double sum = 0, squares = 0;
	for (int i = 0; s->centred && i < width; i++)
		sum += (double)x[r * width + i] / width;
	for (int i = 0; i < width; i++)
		squares += pow((double)x[r * width + i] - sum, 2) / width;
	assert_true(!s->centred || fabs((double)mean - sum) < 1e-6);
	assert_true(fabs((double)invstd * sqrt(squares + 1e-5) - 1) < 1e-6);
}

static void check_all(const struct rows *s, float *mean, float *invstd)
{
	const int n = s->rows * s->channels;
	struct args a = {.n = 0};
	memset(out, 0xff, sizeof out);
	memset(sums, 0xff, sizeof sums);
	add(&a, out[0], sizeof out[0], true);
	add(&a, sums, sizeof sums, true);
	add(&a, dy, (size_t)n * sizeof *dy, false);
	add(&a, x, (size_t)n * sizeof *x, false);
	add(&a, mean, (size_t)s->rows * sizeof *mean, false);
	add(&a, invstd, (size_t)s->rows * sizeof *invstd, false);
	add(&a, scale, (size_t)s->channels * sizeof *scale, false);
	launch("all", s->name, "", (unsigned)s->all, s->threads, &a);
	add(&a, out[1], (size_t)s->channels * sizeof(float), true);
	add(&a, out[2], (size_t)s->channels * sizeof(float), true);
	add(&a, sums, (size_t)(s->parts * 2 * s->channels) * sizeof(float), false);
	launch("all", s->name, "_2", 5, 256, &a);
	assert_near(out[0], want_dx, n, 1e-6);
	assert_near(out[1], want_scale, s->channels, 1e-6);
	assert_near(out[2], want_bias, s->channels, 1e-6);
}

static void check_rows(const struct rows *s)
{
	const int n = s->rows * s->channels * s->inner, channels = s->groups * s->channels;
	float mean[64] = {0}, invstd[64];
	struct args a = {.n = 0};
	memset(y, 0xff, sizeof y);
	add(&a, y, (size_t)n * sizeof *y, true);
	add(&a, mean, (size_t)s->rows * sizeof *mean, true);
	add(&a, invstd, (size_t)s->rows * sizeof *invstd, true);
	add(&a, x, (size_t)n * sizeof *x, false);
	add(&a, scale, (size_t)channels * sizeof *scale, false);
	add(&a, bias, (size_t)channels * sizeof *bias, false);
	launch("norm", s->name, "", s->blocks, s->threads, &a);
	memset(want_scale, 0, sizeof want_scale);
	memset(want_bias, 0, sizeof want_bias);
	for (int r = 0; r < s->rows; r++) {
		check_statistics(s, r, mean[r], invstd[r]);
		reference_row(s, r, mean[r], invstd[r]);
	}
	assert_near(y, want, n, 1e-6);
	add(&a, out[0], (size_t)n * sizeof *y, true);
	add(&a, dy, (size_t)n * sizeof *dy, false);
	add(&a, x, (size_t)n * sizeof *x, false);
	add(&a, mean, (size_t)s->rows * sizeof *mean, false);
	add(&a, invstd, (size_t)s->rows * sizeof *invstd, false);
	add(&a, scale, (size_t)channels * sizeof *scale, false);
	launch("grad", s->name, "", s->blocks, s->threads, &a);
	assert_near(out[0], want_dx, n, 1e-6);
	if (s->parts)
		check_all(s, mean, invstd);
}

/* About 3: so that a mean is to be taken off. */
static void fill_all(void)
{
	fill(x, MOST, 1);
	fill(dy, MOST, 2);
	fill(scale, MOST, 3);
	fill(bias, MOST, 4);
	for (int i = 0; i < MOST; i++)
		x[i] += 3;
}

static void rows(void **state)
{
	(void)state;
	fill_all();
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		check_rows(&shapes[i]);
}

/* --- Channels --- */

struct channels {
	const char *name;
	int images, groups, inner, width;
	unsigned blocks;
	int parts;
	bool scales;
};

static const struct channels cuts[] = {
	{"few", 5, 3, 37, 1, 4, 3, true},
	{"large", 2, 2, 5000, 1, 5, 8, false},
	{"rows", 3, 1, 45, 23, 1, 2, true},
	{"blocks", 3, 2, 45, 8, 3, 2, false},
};

/* The i-th of the values of channel c. */
static int place(const struct channels *s, int c, int i)
{
	const int g = c / s->width, image = i / s->inner;
	return ((image * s->groups + g) * s->inner + i % s->inner) * s->width + c % s->width;
}

/* The parts of the sums, to be written; of dy, where `gradient`, and x. */
static void add_terms(struct args *a, const struct channels *s, bool gradient)
{
	const int channels = s->groups * s->width;
	const size_t n = (size_t)(s->images * s->inner * channels);
	memset(sums, 0xff, sizeof sums);
	add(a, sums, (size_t)(s->parts * 2 * channels) * sizeof *sums, true);
	if (gradient)
		add(a, dy, n * sizeof *dy, false);
	add(a, x, n * sizeof *x, false);
}

static void add_outputs(struct args *a, int n, int channels, const struct channels *s)
{
	memset(out, 0xff, sizeof out);
	for (int k = 0; k < n; k++)
		add(a, out[k], (size_t)channels * sizeof(float), true);
	add(a, sums, (size_t)(s->parts * 2 * channels) * sizeof(double), false);
}

/* Of so many images that count. */
static void check_stats(const struct channels *s, int images)
{
	const int channels = s->groups * s->width, count = images * s->inner;
	const int64_t control[4] = {0, 0, images < s->images ? images : INT64_MAX, 0};
	struct args a = {.n = 0};
	add_terms(&a, s, false);
	add(&a, control, sizeof control, false);
	launch("stats", s->name, "", s->blocks, 256, &a);
	add_outputs(&a, 4, channels, s);
	add(&a, scale, (size_t)channels * sizeof *scale, false);
	add(&a, control, sizeof control, false);
	launch("stats", s->name, "_2", 2, 256, &a);
	for (int c = 0; c < channels; c++) {
		double mean = 0, squares = 0;
		for (int i = 0; i < count; i++)
			mean += (double)x[place(s, c, i)] / count;
		for (int i = 0; i < count; i++)
			squares += pow((double)x[place(s, c, i)] - mean, 2) / count;
		const double invstd = 1 / sqrt(squares + 1e-5);
		assert_true(fabs((double)out[0][c] + (double)out[3][c] - mean) < 2e-7);
		assert_true(fabs((double)out[0][c] - mean) <= 6e-8 * mean);
		assert_true(fabs((double)out[1][c] / invstd - 1) < 2e-7);
		assert_true(out[2][c] == out[1][c] * scale[c]);
	}
}

/* mean, invstd and what rounding took off the mean: bias, scale and x. Gradients of images that do
 * not count are 0: the kernels rely on it. */
static void check_sums(const struct channels *s, int images)
{
	const int channels = s->groups * s->width, count = images * s->inner;
	const int64_t control[4] = {0, 0, images < s->images ? images : INT64_MAX, 0};
	struct args a = {.n = 0};
	add_terms(&a, s, true);
	add(&a, bias, (size_t)channels * sizeof *bias, false);
	launch("sums", s->name, "", s->blocks, 256, &a);
	add_outputs(&a, 4, channels, s);
	add(&a, scale, (size_t)channels * sizeof *scale, false);
	add(&a, x, (size_t)channels * sizeof *x, false);
	add(&a, control, sizeof control, false);
	launch("sums", s->name, "_2", 2, 256, &a);
	for (int c = 0; c < channels; c++) {
		double sum = 0, dot = 0;
		for (int i = 0; i < count; i++) {
			const int at = place(s, c, i);
			sum += (double)dy[at];
			dot += (double)dy[at] * ((double)x[at] - (double)bias[c]);
		}
		const double slope = dot * (double)scale[c];
		want_scale[c] = slope;
		want_bias[c] = sum;
		want[c] = slope * (double)scale[c] / count;
		want_dx[c] = sum / count - (double)x[c] * want[c];
	}
	assert_near(out[0], want_scale, channels, 1e-6);
	assert_near(out[1], want_bias, channels, 1e-6);
	assert_near(out[2], want_dx, channels, 1e-6);
	assert_near(out[3], want, channels, 1e-6);
}

/* With a mean and a deviation for each image. */
static void check_scales(const struct channels *s)
{
	const int channels = s->groups * s->width, count = s->images * s->inner;
	const size_t per = (size_t)(s->images * s->inner) * sizeof(float);
	struct args a = {.n = 0};
	add_terms(&a, s, true);
	add(&a, bias, per, false);
	add(&a, scale, per, false);
	launch("scale", s->name, "", s->blocks, 256, &a);
	add_outputs(&a, 2, channels, s);
	launch("scale", s->name, "_2", 2, 256, &a);
	for (int c = 0; c < channels; c++) {
		want_scale[c] = want_bias[c] = 0;
		for (int i = 0; i < count; i++) {
			const int at = place(s, c, i), image = i / s->inner;
			want_bias[c] += (double)dy[at];
			want_scale[c] += (double)dy[at] * ((double)x[at] - (double)bias[image]) *
					 (double)scale[image];
		}
	}
	assert_near(out[0], want_scale, channels, 1e-6);
	assert_near(out[1], want_bias, channels, 1e-6);
}

static void channels(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		const struct channels *s = &cuts[i];
		const int image = s->groups * s->inner * s->width;
		fill_all();
		if (s->scales)
			check_scales(s);
		for (int images = s->images; images > 0; images--) {
			check_stats(s, images);
			check_sums(s, images);
			memset(dy + (images - 1) * image, 0, (size_t)image * sizeof *dy);
		}
	}
}

/* Values that a sum about anything but their mean would lose: all near 1000, and a first that is
 * far from the others. */
static void nothing_cancels(void **state)
{
	(void)state;
	fill_all();
	for (int i = 0; i < MOST; i++)
		x[i] = 1000 + x[i] / 64;
	x[0] = 1004;
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
		check_stats(&cuts[i], cuts[i].images);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	text_library = argv[1];
	const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(channels),
		cmocka_unit_test(nothing_cancels)};
	return cmocka_run_group_tests(tests, text_open, text_close);
}
