/* Curves of training over its steps. Where a curve has more points than the drawing has room for,
 * neighbours are drawn as their mean; a run alone on a band from the least to the largest of them.
 */
#include <math.h>
#include <string.h>

#include "base/safe.h"
#include "view/page.h"

enum {
	NARROW = 640,
	WIDE = 1294,
	HEIGHT = 300,
	LEFT = 64,
	RIGHT = 14,
	TOP = 14,
	BOTTOM = 40,
	PARTS = 240
};

struct axes {
	int width;
	double x1;     /* steps at the right edge; 0 at the left */
	double y0, y1; /* at the bottom and the top; of their logarithms where `log` */
	bool log;
};

/* Neighbours as one: of `n` points that are finite. */
struct part {
	int n;
	double x, mean, low, high;
};

struct parts {
	int n;
	struct part item[PARTS];
};

const struct view_curve *view_curve_of(const struct view_run *r, const char *name)
{
	for (int i = 0; i < r->ncurve; i++)
		if (!strcmp(r->curve[i].name, name))
			return &r->curve[i];
	return NULL;
}

/* What is not finite is left out: the curve goes on where it is again. */
static struct parts join(const struct view_curve *c)
{
	struct parts p = {.n = c->n < PARTS ? c->n : PARTS};
	for (int k = 0; k < p.n; k++) {
		struct part *t = &p.item[k];
		const int to = (int)((int64_t)(k + 1) * c->n / p.n);
		for (int i = (int)((int64_t)k * c->n / p.n); i < to; i++) {
			const double y = c->y[i];
			if (!isfinite(y))
				continue;
			t->low = t->n ? fmin(t->low, y) : y;
			t->high = t->n ? fmax(t->high, y) : y;
			t->mean += (y - t->mean) / ++t->n;
			t->x = c->x[i];
		}
	}
	return p;
}

/* --- Axes --- */

static double x_of(const struct axes *g, double step)
{
	return LEFT + step / g->x1 * (g->width - LEFT - RIGHT);
}

static double y_of(const struct axes *g, double y)
{
	double share = ((g->log ? log10(fmax(y, 1e-300)) : y) - g->y0) / (g->y1 - g->y0);
	share = share < 0 ? 0 : share > 1 ? 1 : share;
	return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

static void widen(struct axes *g, const struct view_curve *c)
{
	const struct parts p = c ? join(c) : (struct parts){0};
	for (int i = 0; i < p.n; i++) {
		if (!p.item[i].n)
			continue;
		g->x1 = fmax(g->x1, p.item[i].x);
		g->y0 = fmin(g->y0, p.item[i].mean);
		g->y1 = fmax(g->y1, p.item[i].mean);
	}
}

static struct axes measure(
	const struct view_run *run, int n, const char *name, const char *also, bool wide)
{
	enum {
		FAR = 50
	}; /* times the least: a logarithmic axis, but for rates: schedules have shapes */
	struct axes g = {.width = wide ? WIDE : NARROW, .x1 = 1, .y0 = INFINITY, .y1 = -INFINITY};
	for (int i = 0; i < n; i++) {
		widen(&g, view_curve_of(&run[i], name));
		if (also)
			widen(&g, view_curve_of(&run[i], also));
	}
	if (g.y0 > g.y1) /* nothing is finite */
		g.y0 = 0, g.y1 = 1;
	g.log = g.y0 > 0 && g.y1 / g.y0 > FAR && strcmp(name, "lr") != 0;
	if (g.log)
		g.y0 = log10(g.y0), g.y1 = log10(g.y1);
	else if (g.y0 > 0 && g.y0 < 0.5 * g.y1)
		g.y0 = 0;
	/* a line that is as good as level still gets an axis whose ticks differ */
	const double size = fmax(fabs(g.y0), fabs(g.y1));
	const double room = fmax(0.05 * (g.y1 - g.y0),
		fmax(0.01 * size, 1e-30) * (g.y1 - g.y0 < 1e-6 * size || size == 0));
	g.y1 += room;
	g.y0 -= g.y0 == 0 && size > 0 ? 0 : room;
	return g;
}

double page_tick(double span, int most)
{
	const double ten = pow(10, floor(log10(span / most)));
	for (int i = 0; i < 3; i++) {
		const double part = ten * (const double[]){1, 2, 5}[i];
		if (span / part <= most)
			return part;
	}
	return ten * 10;
}

static void put_level(struct text *t, const struct axes *g, double v)
{
	const double y = y_of(g, v);
	text_add(t,
		"<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
		"text-anchor=\"end\">%.4g</text>\n",
		LEFT, y, g->width - RIGHT, LEFT - 8, y + 4, v);
}

static void put_axes(struct text *t, const struct axes *g)
{
	const int bottom = HEIGHT - BOTTOM;
	const double across = page_tick(g->x1, 8), up = page_tick(g->y1 - g->y0, 5);
	if (!g->log)
		for (double v = ceil(g->y0 / up) * up; v <= g->y1; v += up)
			put_level(t, g, fabs(v) < up / 2 ? 0 : v);
	const bool close = g->y1 - g->y0 < 2.5; /* powers of ten alone would be too few */
	const int every = (int)ceil((g->y1 - g->y0) / 8);
	for (int e = (int)floor(g->y0); g->log && e <= (int)floor(g->y1); e += every)
		for (int i = 0; i < (close ? 3 : 1); i++) {
			const double v = pow(10, e) * (const double[]){1, 2, 5}[i];
			if (log10(v) >= g->y0 && log10(v) <= g->y1)
				put_level(t, g, v);
		}
	for (double v = 0; v <= g->x1; v += fmax(across, 1))
		text_add(t,
			"<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
			"text-anchor=\"middle\">%.0f</text>\n",
			x_of(g, v), bottom, bottom + 4, x_of(g, v), bottom + 18, v);
	text_add(t, "<text class=\"strong\" x=\"%d\" y=\"%d\" text-anchor=\"end\">steps%s</text>\n",
		g->width - RIGHT, HEIGHT - 6, g->log ? "; the scale is logarithmic" : "");
}

/* --- Curves --- */

static void put_band(struct text *t, const struct axes *g, const struct parts *p, int run)
{
	char letter = 'M';
	text_add(t, "<path class=\"band r%d\" d=\"", run);
	for (int i = 0; i < p->n; i++)
		if (p->item[i].n) {
			text_add(t, "%c%.1f %.1f", letter, x_of(g, p->item[i].x),
				y_of(g, p->item[i].high));
			letter = 'L';
		}
	for (int i = p->n; i-- > 0;)
		if (p->item[i].n)
			text_add(t, "L%.1f %.1f", x_of(g, p->item[i].x), y_of(g, p->item[i].low));
	text_puts(t, letter == 'L' ? "Z\"/>\n" : "\"/>\n");
}

/* `colour`: the run's number, or another where one run has two curves. */
static void put_curve(struct text *t, const struct axes *g, const struct view_run *r, int colour,
	const char *name, const char *kind, bool band)
{
	enum { DOTS = 60 }; /* more points than that are not told apart */
	const struct view_curve *c = view_curve_of(r, name);
	const struct parts p = c ? join(c) : (struct parts){0};
	char letter = 'M';
	if (!p.n)
		return;
	if (band && c->n > p.n)
		put_band(t, g, &p, colour);
	text_add(t, "<path class=\"%s r%d\" d=\"", kind, colour);
	for (int i = 0; i < p.n; i++)
		if (p.item[i].n) {
			text_add(t, "%c%.1f %.1f", letter, x_of(g, p.item[i].x),
				y_of(g, p.item[i].mean));
			letter = 'L';
		}
	text_puts(t, "\"><title>");
	text_html(t, r->name);
	text_puts(t, ": ");
	text_html(t, name);
	text_puts(t, "</title></path>\n");
	for (int i = 0; i < p.n && c->n <= DOTS; i++)
		if (p.item[i].n) {
			text_add(t, "<circle class=\"dot r%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\">",
				colour, x_of(g, p.item[i].x), y_of(g, p.item[i].mean));
			text_puts(t, "<title>");
			text_html(t, r->name);
			text_add(t, "\nstep %.0f: %.6g</title></circle>\n", p.item[i].x,
				p.item[i].mean);
		}
}

void curves_draw(struct text *out, const struct view_run *run, int n, const char *name,
	const char *also, bool wide)
{
	const struct axes g = measure(run, n, name, also, wide);
	text_add(out, "<svg class=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
		wide ? "large" : "small", g.width, HEIGHT);
	text_html(out, name);
	text_puts(out, " over the steps\">\n");
	put_axes(out, &g);
	for (int i = 0; i < n; i++)
		put_curve(out, &g, &run[i], i, name, "line", n == 1);
	for (int i = 0; also && i < n; i++)
		put_curve(out, &g, &run[i], n == 1 ? 1 : i, also, "line also", n == 1);
	text_puts(out, "</svg>\n");
}
