/* Cost against budget as a drawing: what plans reach, what no schedule can. Both are staircases: a
 * plan fits every larger budget, a bound holds for every smaller one. */
#include "view/page.h"

#include <inttypes.h>
#include <math.h>

enum { WIDTH = 520, HEIGHT = 380, LEFT = 60, RIGHT = 18, TOP = 24, BOTTOM = 66 };

struct axes {
	const struct view_frontier *f;
	double x0, x1; /* bytes at the left and right edge */
	double y0, y1; /* times one pass, at the bottom and the top */
};

static double x_of(const struct axes *g, double bytes)
{
	return LEFT + (bytes - g->x0) / (g->x1 - g->x0) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axes *g, double times)
{
	double share = (times - g->y0) / (g->y1 - g->y0);
	share = share < 0 ? 0 : share > 1 ? 1 : share;
	return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

static double times_of(const struct axes *g, double cost)
{
	return g->f->once > 0 ? cost / g->f->once : 1;
}

static void hold(struct axes *g, const struct view_point *point, int n)
{
	for (int i = 0; i < n; i++) {
		g->x0 = fmin(g->x0, (double)point[i].budget);
		g->x1 = fmax(g->x1, (double)point[i].budget);
		if (point[i].feasible)
			g->y1 = fmax(g->y1, times_of(g, point[i].cost));
	}
}

static struct axes measure(const struct view_frontier *f, const struct frontier_mark *mark)
{
	struct axes g = {.f = f, .y0 = 1, .y1 = 1.02};
	g.x0 = (double)(f->proven_bytes > 0 ? f->proven_bytes : f->known_bytes);
	g.x1 = (double)f->keep_all;
	hold(&g, f->point, f->npoint);
	hold(&g, f->part, f->npart);
	const double low = g.x0, high = g.x1 > g.x0 ? g.x1 : g.x0 + 1;
	if (mark)
		g.y1 = fmax(g.y1, times_of(&g, mark->cost));
	g.x0 = fmax(0, low - 0.06 * (high - low));
	g.x1 = high + 0.03 * (high - low);
	g.y1 += 0.08 * (g.y1 - 1);
	g.y0 -= 0.04 * (g.y1 - 1);
	return g;
}

/* A stand-alone drawing has no page to take its colours from. */
static void put_style(struct text *t)
{
	text_puts(t,
		"<style>.sf{--sf-ink:#1b2430;--sf-soft:#5c6878;--sf-grid:#e4e8ee;--sf-bound:#"
		"c9d3e0;"
		"--sf-no:#f3d5d8;--sf-plan:#2f6fd6;--sf-part:#2a8a57;--sf-mark:#c8323f;--sf-back:#"
		"fff;"
		"font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu "
		"Sans\",sans-serif}"
		"@media(prefers-color-scheme:dark){.sf{--sf-ink:#e6ebf2;--sf-soft:#94a1b3;"
		"--sf-grid:#222a34;--sf-bound:#2f3b4a;--sf-no:#43222a;--sf-plan:#5b9bf3;--sf-part:#"
		"4cc38a;"
		"--sf-mark:#ff6b76;--sf-back:#161b22}}"
		".sf text{fill:var(--sf-soft);font-size:13px}.sf .sf-t{fill:var(--sf-ink)}"
		".sf .sf-g{stroke:var(--sf-grid)}.sf .sf-b{fill:var(--sf-bound);opacity:.75}"
		".sf .sf-n{fill:var(--sf-no);opacity:.75}"
		".sf .sf-l{fill:none;stroke:var(--sf-plan);stroke-width:2.25;stroke-linejoin:round}"
		".sf .sf-p{fill:var(--sf-plan);stroke:var(--sf-back);stroke-width:1.5}"
		".sf .sf-k{stroke:var(--sf-part)}.sf .sf-q{fill:var(--sf-part)}"
		".sf .sf-m{fill:none;stroke:var(--sf-mark);stroke-width:2.5}"
		".sf .sf-e{stroke:var(--sf-mark);stroke-dasharray:4 3}"
		".sf .sf-r{fill:var(--sf-back)}</style>\n");
}

static void put_cost_axis(struct text *t, const struct axes *g)
{
	double part = page_tick(g->y1 - g->y0, 6);
	int digits = part >= 0.1 ? 1 : part >= 0.01 ? 2 : 3;
	for (double v = 1; v <= g->y1; v += part)
		text_add(t,
			"<path class=\"sf-g\" d=\"M%d %.1fH%d\"/>"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.*f ×</text>\n",
			LEFT, y_of(g, v), WIDTH - RIGHT, LEFT - 8, y_of(g, v) + 4.5, digits, v);
	text_add(t, "<text x=\"%d\" y=\"13\" class=\"sf-t\">cost, times one pass</text>\n",
		LEFT - 56);
}

/* Bytes in one unit for the whole axis, percentages of what keeping everything adds below. */
static void put_budget_axis(struct text *t, const struct axes *g)
{
	static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
	int u = 0;
	double scale = 1;
	while (u < 5 && g->x1 >= 1024 * scale) {
		scale *= 1024;
		u++;
	}
	double part = page_tick((g->x1 - g->x0) / scale, 6);
	int digits = part >= 1 ? 0 : part >= 0.1 ? 1 : part >= 0.01 ? 2 : 3;
	double bottom = HEIGHT - BOTTOM;
	for (double v = ceil(g->x0 / scale / part) * part; v * scale <= g->x1; v += part)
		text_add(t,
			"<path class=\"sf-g\" d=\"M%.1f %dV%.1f\"/>"
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.*f</text>\n",
			x_of(g, v * scale), TOP, bottom + 5, x_of(g, v * scale), bottom + 20,
			digits, v);
	double from = (double)g->f->resident, span = (double)g->f->keep_all - from;
	for (int percent = 0; span > 0 && percent <= 100; percent += 10) {
		double x = from + span * percent / 100;
		if (x >= g->x0 && x <= g->x1)
			text_add(t,
				"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d%%</text>\n",
				x_of(g, x), bottom + 38, percent);
	}
	text_add(t,
		"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" class=\"sf-t\">budget, %s; and as "
		"a share of what keeping everything adds</text>\n",
		WIDTH - RIGHT, bottom + 56, unit[u]);
}

/* Left of the proven minimum no plan exists; up to the known one none was found. */
static void put_edges(struct text *t, const struct axes *g)
{
	double bottom = HEIGHT - BOTTOM, known = x_of(g, (double)g->f->known_bytes);
	double proven = g->f->proven_bytes > 0 ? x_of(g, (double)g->f->proven_bytes) : LEFT;
	char a[24], b[24];
	bytes_human(g->f->known_bytes, a);
	bytes_human(g->f->proven_bytes, b);
	text_add(t,
		"<rect class=\"sf-n\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%.1f\">"
		"<title>no plan can need less than %s</title></rect>\n",
		LEFT, TOP, fmax(0, proven - LEFT), bottom - TOP, b);
	text_add(t,
		"<path class=\"sf-e\" d=\"M%.1f %dV%.1f\"><title>smallest budget known to be met: "
		"%s; proven bound: %s</title></path>\n",
		known, TOP, bottom, a, b);
}

/* What the colours mean, in the corner that no staircase reaches. */
static void put_key(struct text *t, const struct axes *g)
{
	char known[24], proven[24];
	int right = WIDTH - RIGHT - 10, y = TOP + 18;
	text_add(t,
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\" class=\"sf-t\">smallest budget met: "
		"%s</text>\n",
		right - 20, y, bytes_human(g->f->known_bytes, known));
	text_add(t, "<path class=\"sf-e\" d=\"M%d %dH%d\"/>\n", right - 12, y - 4, right + 4);
	if (g->f->proven_bytes > 0) {
		text_add(t,
			"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%simpossible below "
			"%s</text>\n",
			right - 20, y + 20, g->f->npart ? "whole batch: " : "",
			bytes_human(g->f->proven_bytes, proven));
		text_add(t, "<rect class=\"sf-n\" x=\"%d\" y=\"%d\" width=\"14\" height=\"11\"/>\n",
			right - 11, y + 10);
	}
	text_add(t, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">no schedule costs less</text>\n",
		right - 20, y + 40);
	text_add(t, "<rect class=\"sf-b\" x=\"%d\" y=\"%d\" width=\"14\" height=\"11\"/>\n",
		right - 11, y + 30);
	text_add(t, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">plans%s</text>\n", right - 20,
		y + 60, g->f->npart ? " of the whole batch" : "");
	text_add(t, "<circle class=\"sf-p\" cx=\"%d\" cy=\"%d\" r=\"5\"/>\n", right - 4, y + 56);
	if (!g->f->npart)
		return;
	text_add(t, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">with the batch in parts</text>\n",
		right - 20, y + 80);
	text_add(t, "<circle class=\"sf-p sf-q\" cx=\"%d\" cy=\"%d\" r=\"5\"/>\n", right - 4,
		y + 76);
}

/* Budgets descend: a point's bound holds down to the next one's budget, where a larger one may. */
static void put_bounds(struct text *t, const struct axes *g)
{
	const struct view_frontier *f = g->f;
	double bottom = HEIGHT - BOTTOM, best = 0;
	text_add(t, "<path class=\"sf-b\" d=\"M%.1f %.1f", x_of(g, g->x1), bottom);
	double right = x_of(g, g->x1);
	for (int i = 0; i < f->npoint; i++) {
		double bound = f->point[i].bound, x = x_of(g, (double)f->point[i].budget);
		text_add(t, "L%.1f %.1fL%.1f %.1f", right, y_of(g, best > 0 ? best : 1), x,
			y_of(g, best > 0 ? best : 1));
		right = x;
		if (bound >= 0 && times_of(g, bound) > best)
			best = times_of(g, bound);
	}
	double end = f->proven_bytes > 0 ? x_of(g, (double)f->proven_bytes) : right;
	end = end < right ? end : right;
	text_add(t,
		"L%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"><title>no schedule can cost less</title>"
		"</path>\n",
		right, y_of(g, best > 0 ? best : 1), end, y_of(g, best > 0 ? best : 1), end,
		bottom);
}

static void put_line(struct text *t, const struct axes *g, const struct view_point *point, int n)
{
	double last = -1;
	for (int i = 0; i < n; i++) {
		if (!point[i].feasible)
			continue;
		double x = x_of(g, (double)point[i].budget);
		double y = y_of(g, times_of(g, point[i].cost));
		if (last < 0)
			text_add(t, "M%.1f %.1fH%.1f", x_of(g, g->x1), y, x);
		else
			text_add(t, "V%.1fH%.1f", y, x);
		last = y;
	}
}

static void put_plans(
	struct text *t, const struct axes *g, const struct view_point *point, int n, bool in_parts)
{
	const char *also = in_parts ? " sf-q" : "";
	text_add(t, "<path class=\"sf-l%s\" d=\"", in_parts ? " sf-k" : "");
	put_line(t, g, point, n);
	text_puts(t, "\"/>\n");
	for (int i = 0; i < n; i++) {
		const struct view_point *p = &point[i];
		char b[24];
		if (!p->feasible)
			continue;
		text_add(t,
			"<circle class=\"sf-p%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>budget "
			"%s: "
			"%.4f × one pass",
			also, x_of(g, (double)p->budget), y_of(g, times_of(g, p->cost)),
			bytes_human(p->budget, b), times_of(g, p->cost));
		if (p->bound >= 0)
			text_add(t, ", at least %.4f ×", times_of(g, p->bound));
		text_puts(t, "</title></circle>\n");
	}
}

static void put_mark(struct text *t, const struct axes *g, const struct frontier_mark *mark)
{
	char b[24];
	if (!mark || (double)mark->budget < g->x0 || (double)mark->budget > g->x1)
		return;
	text_add(t,
		"<circle class=\"sf-m\" cx=\"%.1f\" cy=\"%.1f\" r=\"9\"><title>this plan: budget "
		"%s, %.4f × one pass</title></circle>\n",
		x_of(g, (double)mark->budget), y_of(g, times_of(g, mark->cost)),
		bytes_human(mark->budget, b), times_of(g, mark->cost));
}

enum status frontier_draw(struct text *out, const struct view_frontier *f,
	const struct frontier_mark *mark, struct diag *d)
{
	struct axes g = measure(f, mark);
	char known[24], all[24];
	text_add(out,
		"<svg class=\"sf\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
		"role=\"img\" aria-labelledby=\"sf-title sf-desc\">\n"
		"<title id=\"sf-title\">Cost against budget</title>\n"
		"<desc id=\"sf-desc\">Cost in times one pass for %d budgets from %s, the smallest "
		"known to be met, to %s, which keeps everything; grey: no schedule can cost "
		"less.</desc>\n",
		WIDTH, HEIGHT, f->npoint, bytes_human(f->known_bytes, known),
		bytes_human(f->keep_all, all));
	put_style(out);
	text_add(out, "<rect class=\"sf-r\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
	put_cost_axis(out, &g);
	put_budget_axis(out, &g);
	put_bounds(out, &g);
	put_edges(out, &g);
	put_key(out, &g);
	if (f->npart)
		put_plans(out, &g, f->part, f->npart, true);
	put_plans(out, &g, f->point, f->npoint, false);
	put_mark(out, &g, mark);
	text_puts(out, "</svg>\n");
	return out->failed ? diag_nomem(d) : ST_OK;
}

enum status view_frontier_svg(struct text *out, const struct view_frontier *f, struct diag *d)
{
	return frontier_draw(out, f, NULL, d);
}
