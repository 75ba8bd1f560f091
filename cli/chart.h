/* Small charts in a terminal. */
#ifndef STINT_CLI_CHART_H
#define STINT_CLI_CHART_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A curve that is being made: means of neighbours, of twice as many whenever it is full. */
enum { CHART_POINTS = 1024 };
struct chart_curve {
	int n;
	int64_t each, count; /* values of a point; of the last one so far */
	double y[CHART_POINTS];
};
/* What is not finite is left out. */
void chart_add(struct chart_curve *c, double y);

/* Whether the locale's characters are UTF-8: braille; else a chart is plain ASCII. */
bool chart_utf8(void);
/* "title  2.3 -> 0.41" and the curve below, `columns` wide in all, the largest value at its top,
 * the least at its bottom; points lie evenly. Nothing where there are fewer than two that are
 * finite. */
void chart_draw(FILE *f, const char *title, const double *y, int n, int columns, bool utf8);

#endif
