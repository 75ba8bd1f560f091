/* Pictures of another size, by the numbers of PIL (Pillow's src/libImaging/Resample.c): weights of
 * a triangle as wide as the larger of two pixels, in 22 bits behind the point; first along rows,
 * then along columns, rounded to bytes in between. */
#include "data/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINT = 22 };

/* For each pixel of one axis: the first that it reads, how many, and their weights. */
struct weights {
	int most; /* of one pixel */
	int *first, *count;
	int32_t *weight; /* [pixels][most] */
};

static void weights_free(struct weights *w)
{
	free(w->first);
	free(w->count);
	free(w->weight);
}

/* One pixel's, whose middle is at `middle` of the axis. */
static void weigh(struct weights *w, int i, double middle, double reach, double scale, int length)
{
	const double low = middle - reach + 0.5, high = middle + reach + 0.5;
	const int first = low < 0 ? 0 : (int)low;
	const int end = high > length ? length : (int)high;
	const double part = 1 / scale; /* as PIL does: not a quotient for each */
	double k[1024], sum = 0;
	double *const v = end - first > 1024 ? malloc((size_t)(end - first) * sizeof *v) : k;
	for (int x = first; v && x < end; x++) {
		const double d = fabs(((double)x - middle + 0.5) * part);
		v[x - first] = d < 1 ? 1 - d : 0;
		sum += v[x - first];
	}
	w->first[i] = first;
	w->count[i] = v ? end - first : 0;
	for (int x = 0; x < w->count[i]; x++)
		w->weight[(size_t)i * (size_t)w->most + (size_t)x] =
			(int32_t)(0.5 + (sum > 0 ? v[x] / sum : v[x]) * (1 << POINT));
	if (v != k)
		free(v);
}

/* `out` pixels of the part [from, from + part) of an axis of `length`. */
static int weights_make(struct weights *w, int length, int from, int part, int out)
{
	const double ratio = (double)part / out, scale = ratio < 1 ? 1 : ratio;
	w->most = 2 * (int)ceil(scale) + 1;
	w->first = malloc((size_t)out * sizeof *w->first);
	w->count = malloc((size_t)out * sizeof *w->count);
	w->weight = calloc((size_t)out * (size_t)w->most, sizeof *w->weight);
	if (!w->first || !w->count || !w->weight)
		return 1;
	for (int i = 0; i < out; i++)
		weigh(w, i, from + (i + 0.5) * ratio, scale, scale, length);
	return 0;
}

/* Bytes `step` apart, weighed. */
static unsigned char mix(const unsigned char *p, size_t step, const int32_t *weight, int n)
{
	int64_t sum = 1 << (POINT - 1);
	for (int i = 0; i < n; i++)
		sum += (int64_t)p[(size_t)i * step] * weight[i];
	sum >>= POINT;
	return (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* Rows [top, top + height) of `in` as rows of w's pixels. */
static void along_rows(
	const struct picture *in, int top, const struct weights *w, struct picture *out)
{
	const size_t c = (size_t)in->channels;
	for (int y = 0; y < out->height; y++) {
		const unsigned char *row = in->pixel + (size_t)(top + y) * (size_t)in->width * c;
		unsigned char *to = out->pixel + (size_t)y * (size_t)out->width * c;
		for (int x = 0; x < out->width; x++)
			for (size_t k = 0; k < c; k++)
				*to++ = mix(row + (size_t)w->first[x] * c + k, c,
					w->weight + (size_t)x * (size_t)w->most, w->count[x]);
	}
}

/* Row 0 of `in` is row `top` of what w counts. */
static void along_columns(
	const struct picture *in, int top, const struct weights *w, struct picture *out)
{
	const size_t row = (size_t)in->width * (size_t)in->channels;
	for (int y = 0; y < out->height; y++)
		for (size_t x = 0; x < row; x++)
			out->pixel[(size_t)y * row + x] = mix(
				in->pixel + (size_t)(w->first[y] - top) * row + x, row,
				w->weight + (size_t)y * (size_t)w->most, w->count[y]);
}

static int bilinear(const struct picture *in, const struct picture_box *box, struct picture *out)
{
	struct weights across = {0}, down = {0};
	struct picture half = {.width = out->width, .channels = in->channels};
	int rc = weights_make(&across, in->width, box->left, box->width, out->width) ||
		 weights_make(&down, in->height, box->top, box->height, out->height);
	if (!rc) {
		const int top = down.first[0], last = out->height - 1;
		half.height = down.first[last] + down.count[last] - top;
		half.pixel = malloc(
			(size_t)half.width * (size_t)half.height * (size_t)half.channels + 1);
		rc = !half.pixel;
		if (!rc) {
			along_rows(in, top, &across, &half);
			along_columns(&half, top, &down, out);
		}
	}
	free(half.pixel);
	weights_free(&across);
	weights_free(&down);
	return rc;
}

static void nearest_pixels(
	const struct picture *in, const struct picture_box *box, struct picture *out)
{
	const size_t c = (size_t)in->channels;
	for (int y = 0; y < out->height; y++)
		for (int x = 0; x < out->width; x++) {
			const int fx = box->left + (int)((x + 0.5) * box->width / out->width),
				  fy = box->top + (int)((y + 0.5) * box->height / out->height);
			memcpy(out->pixel + ((size_t)y * (size_t)out->width + (size_t)x) * c,
				in->pixel + ((size_t)fy * (size_t)in->width + (size_t)fx) * c, c);
		}
}

int picture_resize(
	const struct picture *in, const struct picture_box *box, int nearest, struct picture *out)
{
	out->channels = in->channels;
	if (!nearest)
		return bilinear(in, box, out);
	nearest_pixels(in, box, out);
	return 0;
}
