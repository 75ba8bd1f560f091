#include "cli/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/safe_put.h"

enum { ROWS = 6, LABEL = 10, MOST = 200, WIDE = 2 * MOST, HIGH = 4 * ROWS };

void chart_add(struct chart_curve *c, double y)
{
	if (!(fabs(y) < 1e100)) /* sums of them must not overflow */
		return;
	if (c->n == CHART_POINTS && c->count == c->each) {
		for (int i = 0; i < CHART_POINTS / 2; i++)
			c->y[i] = c->y[2 * i] / 2 + c->y[2 * i + 1] / 2;
		c->n = CHART_POINTS / 2;
		c->each *= 2;
		c->count = c->each;
	}
	if (!c->n || c->count == c->each) {
		c->each = c->n ? c->each : 1;
		c->y[c->n++] = 0;
		c->count = 0;
	}
	c->count++;
	c->y[c->n - 1] += (y - c->y[c->n - 1]) / (double)c->count;
}

bool chart_utf8(void)
{
	static const char *const by_rank[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (int i = 0; i < 3; i++) {
		const char *said = getenv(by_rank[i]);
		if (said && *said)
			return strstr(said, "UTF-8") || strstr(said, "utf8") ||
			       strstr(said, "UTF8") || strstr(said, "utf-8");
	}
	return false;
}

/* Dots of a cell: two across and four down in braille, one across and three down elsewhere. */
struct canvas {
	int wide, high;
	bool dot[WIDE][HIGH];
};

/* A line from the column before to this one. */
static void join(struct canvas *c, int x, int from, int to)
{
	const int step = to < from ? -1 : 1;
	for (int y = from; y != to; y += step)
		c->dot[abs(y - from) * 2 < abs(to - from) ? x - 1 : x][y] = true;
	c->dot[x][to] = true;
}

/* Over column x: the mean of the points there, or, where they are fewer than columns, between its
 * neighbours; NAN: none is finite. */
static double column_of(const double *y, int n, int wide, int x)
{
	double sum = 0;
	int count = 0;
	if (n < wide) {
		const double at = (double)x * (n - 1) / (wide - 1);
		const int left = (int)at, right = left + 1 < n ? left + 1 : left;
		return y[left] + (y[right] - y[left]) * (at - left);
	}
	const int from = (int)((int64_t)x * n / wide), to = (int)((int64_t)(x + 1) * n / wide);
	for (int i = from; i < to; i++)
		if (isfinite(y[i])) {
			sum += y[i];
			count++;
		}
	return count ? sum / count : NAN;
}

static void fill(struct canvas *c, const double *y, int n, double low, double high)
{
	int before = -1;
	for (int x = 0; x < c->wide; x++) {
		const double v = column_of(y, n, c->wide, x);
		if (!isfinite(v)) {
			before = -1;
			continue;
		}
		const double share = high > low ? (high - v) / (high - low) : 0.5;
		int at = (int)(share * (c->high - 1) + 0.5);
		at = at < 0 ? 0 : at >= c->high ? c->high - 1 : at;
		if (x)
			join(c, x, before < 0 ? at : before, at);
		else
			c->dot[x][at] = true;
		before = at;
	}
}

/* U+2800 and a bit for each dot. */
static void put_braille(FILE *f, const struct canvas *c, int column, int row)
{
	static const unsigned char bit[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
	unsigned cell = 0;
	for (int x = 0; x < 2; x++)
		for (int y = 0; y < 4; y++)
			if (c->dot[2 * column + x][4 * row + y])
				cell |= bit[x][y];
	fprintf(f, "\xe2%c%c", (int)(0xa0 | cell >> 6), (int)(0x80 | (cell & 0x3f)));
}

static void put_ascii(FILE *f, const struct canvas *c, int column, int row)
{
	const bool *dot = &c->dot[column][3 * row];
	fputc(dot[0] && dot[2] ? '|' : dot[0] ? '\'' : dot[1] ? '-' : dot[2] ? '.' : ' ', f);
}

static void put_label(FILE *f, bool first, bool last, double low, double high)
{
	if (first || last)
		fprintf(f, "%*.4g ", LABEL - 1, first ? high : low);
	else
		fprintf(f, "%*s", LABEL, "");
}

void chart_draw(FILE *f, const char *title, const double *y, int n, int columns, bool utf8)
{
	static const struct canvas blank;
	struct canvas c = blank;
	double low = INFINITY, high = -INFINITY, first = NAN, last = NAN;
	int cells = columns - 1 - LABEL, finite = 0;
	cells = cells < 8 ? 8 : cells > MOST ? MOST : cells;
	c.wide = utf8 ? 2 * cells : cells;
	c.high = utf8 ? 4 * ROWS : 3 * ROWS;
	for (int x = 0; x < c.wide; x++) {
		const double v = n ? column_of(y, n, c.wide, x) : NAN;
		if (!isfinite(v))
			continue;
		low = fmin(low, v);
		high = fmax(high, v);
	}
	for (int i = 0; i < n; i++)
		if (isfinite(y[i])) {
			first = finite++ ? first : y[i];
			last = y[i];
		}
	if (finite < 2)
		return;
	fill(&c, y, n, low, high);
	safe_put(f, title);
	fprintf(f, "  %.4g %s %.4g\n", first, utf8 ? "→" : "->", last);
	for (int row = 0; row < ROWS; row++) {
		put_label(f, row == 0, row == ROWS - 1, low, high);
		for (int i = 0; i < cells; i++)
			(utf8 ? put_braille : put_ascii)(f, &c, i, row);
		fputc('\n', f);
	}
}
