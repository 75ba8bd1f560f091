/* Kernels under the roofline (Williams, Waterman, Patterson: "Roofline: an insightful visual
 * performance model for multicore architectures", 2009): how fast each runs, over how many
 * operations it has for a byte; and what the machine allows at that ratio. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/safe.h"
#include "view/page.h"

enum { WIDTH = 1000, NARROW = 560, HEIGHT = 500, LEFT = 62, RIGHT = 20, TOP = 16, BOTTOM = 52 };

enum { LINE = 14 };  /* of a number's text */
enum { LEVELS = 8 }; /* roofs that get a label */

struct axes {
	int width;
	double x0, x1; /* log2 of operations a byte */
	double y0, y1; /* log10 of GFLOP/s */
};

static double x_of(const struct axes *g, double intensity)
{
	double x = (log2(intensity) - g->x0) / (g->x1 - g->x0);
	x = x < 0 ? 0 : x > 1 ? 1 : x;
	return LEFT + x * (g->width - LEFT - RIGHT);
}

static double y_of(const struct axes *g, double gflops)
{
	double y = (log10(gflops) - g->y0) / (g->y1 - g->y0);
	y = y < 0 ? 0 : y > 1 ? 1 : y;
	return HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM);
}

/* A kernel that only moves bytes has no operations: it is drawn at the left edge as if it had this
 * share of one for a byte. */
static const double INTENSITY_MIN = 1.0 / 32;

static double intensity_of(const struct view_kernel *k)
{
	double i = k->bytes > 0 ? k->flops / k->bytes : INTENSITY_MIN;
	return i > INTENSITY_MIN ? i : INTENSITY_MIN;
}

/* GFLOP/s at that intensity; 0: too short to be seen. */
static double speed_of(const struct view_kernel *k, double ms)
{
	return ms > 0 ? intensity_of(k) * k->bytes / ms / 1e6 : 0;
}

static struct axes measure(const struct view_bench *b, int width)
{
	struct axes g = {width, -3, 7, 3, log10(b->gflops * 2)};
	for (int i = 0; i < b->nkernel; i++) {
		const struct view_kernel *k = &b->kernel[i];
		const double x = log2(intensity_of(k)), y = speed_of(k, k->ms);
		g.x0 = fmin(g.x0, floor(x - 0.5));
		g.x1 = fmax(g.x1, ceil(x + 0.5));
		if (y > 0)
			g.y0 = fmin(g.y0, log10(y) - 0.3);
	}
	g.y0 = fmax(fmin(g.y0, g.y1 - 2), g.y1 - 5.5); /* the very slow lie on the edge */
	return g;
}

static void put_axes(struct text *t, const struct axes *g)
{
	const int bottom = HEIGHT - BOTTOM;
	const int every = g->width > NARROW ? 1 : 2;
	for (int e = (int)ceil(g->x0); e <= (int)floor(g->x1); e += every) {
		double x = x_of(g, exp2(e));
		text_add(t, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", x, TOP, bottom);
		text_add(t, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, bottom + 18);
		if (e < 0)
			text_add(t, "1/%.0f</text>\n", exp2(-e));
		else
			text_add(t, "%.0f</text>\n", exp2(e));
	}
	for (int e = (int)ceil(g->y0); e <= (int)floor(g->y1); e++) {
		double y = y_of(g, pow(10, e));
		text_add(
			t, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, g->width - RIGHT);
		if (y > TOP + LINE) /* not where its unit stands */
			text_add(t, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.*f</text>\n",
				LEFT - 8, y + 4, e < 0 ? -e : 0, pow(10, e));
	}
	text_add(t,
		"<text class=\"strong\" x=\"%d\" y=\"%d\" text-anchor=\"end\">operations a "
		"byte</text>\n<text class=\"strong\" x=\"%d\" y=\"%d\">GFLOP/s</text>\n",
		g->width - RIGHT, HEIGHT - 12, 8, TOP + 4);
}

/* The slope of bytes and the ceiling of operations. */
static void put_roof(struct text *t, const struct axes *g, const struct view_bench *b, int level)
{
	const struct view_level *l = &b->level[level];
	const bool memory = level == b->nlevel - 1;
	const double ridge = b->gflops / l->gb_s;
	const double from = fmax(exp2(g->x0), pow(10, g->y0) / l->gb_s);
	text_add(t, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1fH%d\"/>\n",
		memory ? "roof" : "cache", x_of(g, from), y_of(g, from * l->gb_s), x_of(g, ridge),
		y_of(g, b->gflops), g->width - RIGHT);
}

/* A label along a slope: how far from the slope's beginning, and how long. */
struct label {
	double at, length;
};

/* Where the label does not touch those of the slopes above, as far as the slope has room: false
 * where it has none. */
static bool place_label(const struct axes *g, const struct view_bench *b, int level, double angle,
	double slope, struct label *label)
{
	enum { APART = 16, GAP = 14 };
	struct label *own = &label[level];
	own->at = 8;
	for (int i = 0; i < level; i++) {
		/* how far the slopes are apart: they are parallel */
		const double x = exp2(g->x0),
			     dy = y_of(g, x * b->level[level].gb_s) - y_of(g, x * b->level[i].gb_s);
		const double apart = fabs(dy) * cos(angle), end = label[i].at + label[i].length;
		if (apart < APART && own->at < end + GAP)
			own->at = end + GAP;
	}
	return own->at + own->length < slope;
}

/* What the slope is, along it, and how high the ceiling; on top of the dots. */
static void put_label(struct text *t, const struct axes *g, const struct view_bench *b, int level,
	struct label *label)
{
	static const double LETTER =
		6.9; /* as wide as 12 pixels' letters are on average, and more */
	const struct view_level *l = &b->level[level];
	const bool memory = level == b->nlevel - 1;
	const double ridge = b->gflops / l->gb_s;
	const double from = fmax(exp2(g->x0), pow(10, g->y0) / l->gb_s);
	const double x = x_of(g, from), y = y_of(g, from * l->gb_s);
	const double dx = x_of(g, ridge) - x, dy = y_of(g, b->gflops) - y, angle = atan2(dy, dx);
	char size[24], words[64];
	snprintf(words, sizeof words, "%.4g GB/s %s%s", l->gb_s, memory ? "from memory" : "over ",
		memory ? "" : bytes_human((int64_t)l->bytes, size));
	label[level].length = LETTER * (double)strlen(words);
	if (memory)
		text_add(t,
			"<text class=\"strong\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g "
			"GFLOP/s</text>\n",
			g->width - RIGHT, y_of(g, b->gflops) - 6, b->gflops);
	if (!place_label(g, b, level, angle, hypot(dx, dy), label))
		return; /* the page's head has all of them */
	text_add(t,
		"<text%s transform=\"translate(%.1f %.1f) rotate(%.2f)\" x=\"%.0f\" "
		"y=\"-5\">%s</text>\n",
		memory ? " class=\"strong\"" : "", x, y, angle * 180 / acos(-1), label[level].at,
		words);
}

static void put_kernel(struct text *t, const struct axes *g, const struct view_bench *b, int i)
{
	const struct view_kernel *k = &b->kernel[i];
	const double speed = speed_of(k, k->ms), alone = speed_of(k, k->alone_ms);
	double all = 0;
	for (int n = 0; n < b->nkernel; n++)
		all += b->kernel[n].ms;
	if (!(speed > 0) || !(all > 0))
		return;
	const double x = x_of(g, intensity_of(k)), y = y_of(g, speed);
	text_add(t, "<a href=\"#k%d\">", i);
	if (alone > 0)
		text_add(t, "<path class=\"alone p%d\" d=\"M%.1f %.1fV%.1fM%.1f %.1fH%.1f\"/>",
			k->phase, x, y, y_of(g, alone), x - 4, y_of(g, alone), x + 4);
	text_add(t, "<circle class=\"dot p%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
		k->phase, x, y, 3.5 + 40 * sqrt(k->ms / all / 2));
	text_html(t, k->words);
	text_add(t, "\n%.4g ms in %d call%s, %.1f %% of the step\n", k->ms, k->calls,
		k->calls == 1 ? "" : "s", 100 * k->ms / all);
	if (k->flops > 0)
		text_add(t, "%.4g GFLOP/s, ", k->flops / k->ms / 1e6);
	text_add(t, "%.4g GB/s; %.0f %% of the roof</title></circle></a>\n", k->bytes / k->ms / 1e6,
		100 * k->roof_ms / k->ms);
}

static void draw(struct text *out, const struct view_bench *b, int width)
{
	const struct axes g = measure(b, width);
	struct label label[LEVELS] = {{0}};
	text_add(out,
		"<svg class=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Kernels under "
		"the roofline\">\n",
		width == WIDTH ? "large" : "small", width, HEIGHT);
	put_axes(out, &g);
	for (int i = 0; i < b->nlevel; i++)
		put_roof(out, &g, b, i);
	for (int i = 0; i < b->nkernel; i++) /* small ones on top of large ones */
		put_kernel(out, &g, b, i);
	for (int i = 0; i < b->nlevel && i < LEVELS; i++)
		put_label(out, &g, b, i, label);
	text_puts(out, "</svg>\n");
}

void roofline_draw(struct text *out, const struct view_bench *b)
{
	draw(out, b, WIDTH);
	draw(out, b, NARROW);
}
