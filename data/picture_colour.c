/* Colours of pictures, changed by the numbers of PIL (Pillow's ImageEnhance.py,
 * src/libImaging/Blend.c and Convert.c), which torchvision's adjust_brightness, adjust_contrast,
 * adjust_saturation and adjust_hue call. */
#include <math.h>

#include "data/picture.h"

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

static size_t pixels(const struct picture *p)
{
	return (size_t)p->width * (size_t)p->height;
}

/* From one number to another, and beyond it, in single precision. */
static unsigned char blend(int from, int to, float part)
{
	const float way = part * (float)(to - from); /* a statement of its own: never contracted */
	const float v = (float)from + way;
	return v <= 0 ? 0 : v >= 255 ? 255 : (unsigned char)v;
}

int picture_luma(const unsigned char *rgb)
{
	return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
}

static int gray_of(const struct picture *p, size_t i)
{
	return p->channels == 3 ? picture_luma(p->pixel + 3 * i) : p->pixel[i];
}

static int mean_gray(const struct picture *p)
{
	int64_t sum = 0;
	for (size_t i = 0; i < pixels(p); i++)
		sum += gray_of(p, i);
	return (int)((double)sum / (double)pixels(p) + 0.5);
}

/* Each pixel's bytes blended with one number: 0, the mean, or its own gray. */
static void enhance(struct picture *p, enum picture_change which, float factor)
{
	const int one = which == PICTURE_CONTRAST ? mean_gray(p) : 0;
	const size_t channels = (size_t)p->channels;
	for (size_t i = 0; i < pixels(p); i++) {
		const int from = which == PICTURE_SATURATION ? gray_of(p, i) : one;
		for (size_t k = 0; k < channels; k++)
			p->pixel[i * channels + k] = blend(
				from, p->pixel[i * channels + k], factor);
	}
}

/* --- Hue --- */

static void to_hsv(const unsigned char *rgb, unsigned char hsv[3])
{
	const int r = rgb[0], g = rgb[1], b = rgb[2];
	const int most = larger(r, larger(g, b)), least = smaller(r, smaller(g, b));
	hsv[0] = hsv[1] = 0;
	hsv[2] = (unsigned char)most;
	if (most == least)
		return;
	const float reach = (float)(most - least), s = reach / (float)most;
	const float rc = (float)(most - r) / reach, gc = (float)(most - g) / reach,
		    bc = (float)(most - b) / reach;
	float h = r == most   ? bc - gc
		  : g == most ? (float)(2.0 + (double)rc - (double)bc)
			      : (float)(4.0 + (double)gc - (double)rc);
	h = (float)fmod((double)h / 6.0 + 1.0, 1.0);
	hsv[0] = (unsigned char)smaller((int)((double)h * 255.0), 255);
	hsv[1] = (unsigned char)smaller((int)((double)s * 255.0), 255);
}

static unsigned char rounded(double v)
{
	return (unsigned char)larger(0, smaller((int)round(v), 255));
}

static void from_hsv(const unsigned char hsv[3], unsigned char *rgb)
{
	static const unsigned char order[6][3] = {/* which of v, p, q, t each channel takes */
		{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
	const double v = hsv[2], turn = hsv[0] * 6.0 / 255.0;
	const int sixth = (int)floor(turn);
	const float f = (float)(turn - sixth), s = (float)(hsv[1] / 255.0);
	const double fs = (double)s, ff = (double)f;
	const unsigned char of[4] = {hsv[2], rounded(v * (1.0 - fs)), rounded(v * (1.0 - fs * ff)),
		rounded(v * (1.0 - fs * (1.0 - ff)))};
	for (int k = 0; k < 3; k++)
		rgb[k] = hsv[1] ? of[order[sixth % 6][k]] : hsv[2];
}

static void turn_hue(struct picture *p, double factor)
{
	const int by = (int)(factor * 255);
	unsigned char hsv[3];
	for (size_t i = 0; p->channels == 3 && i < pixels(p); i++) {
		to_hsv(p->pixel + 3 * i, hsv);
		hsv[0] = (unsigned char)(hsv[0] + by);
		from_hsv(hsv, p->pixel + 3 * i);
	}
}

void picture_change(struct picture *p, enum picture_change which, double factor)
{
	if (which == PICTURE_HUE)
		turn_hue(p, factor);
	else
		enhance(p, which, (float)factor);
}
