#include "base/nearest.h"

#include "base/base.h"

#include <limits.h>
#include <string.h>

enum { MOST = 63 };

static int least(int a, int b)
{
	return a < b ? a : b;
}

int edit_distance(const char *a, const char *b)
{
	const int n = (int)strnlen(a, MOST), m = (int)strnlen(b, MOST);
	int d[MOST + 1][MOST + 1];
	for (int i = 0; i <= n; i++)
		for (int k = 0; k <= m; k++) {
			if (i == 0 || k == 0) {
				d[i][k] = i + k;
				continue;
			}
			d[i][k] = least(d[i - 1][k - 1] + (a[i - 1] != b[k - 1]),
				least(d[i - 1][k], d[i][k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				d[i][k] = least(d[i][k], d[i - 2][k - 2] + 1);
		}
	return d[n][m];
}

const char *nearest(const char *word, const char *best, const char *candidate)
{
	const int far = (int)(strnlen(word, MOST) + 2) / 3, found = edit_distance(word, candidate);
	if (found > far || found >= (int)strnlen(candidate, MOST))
		return best;
	return best && edit_distance(word, best) <= found ? best : candidate;
}

const char *did_you_mean(struct arena *a, const char *word, const char *const *known, int n)
{
	const char *meant = NULL;
	for (int i = 0; i < n; i++)
		meant = nearest(word, meant, known[i]);
	return meant ? arena_printf(a, "did you mean %s?", meant) : NULL;
}

const char *nearest_names(struct arena *a, const char *pattern, const char *const *name, int n)
{
	enum { SHOWN = 3 };
	const char *near[SHOWN] = {NULL}, *text = "";
	int far[SHOWN] = {INT_MAX, INT_MAX, INT_MAX};
	for (int i = 0; i < n; i++) {
		const int d = text_distance(name[i], pattern);
		int at = SHOWN;
		while (at > 0 && d < far[at - 1])
			at--;
		for (int k = SHOWN - 1; k > at; k--) {
			far[k] = far[k - 1];
			near[k] = near[k - 1];
		}
		if (at < SHOWN) {
			far[at] = d;
			near[at] = name[i];
		}
	}
	for (int k = 0; k < SHOWN && near[k] && text; k++)
		text = arena_printf(a, "%s%s'%s'", text, k ? ", " : "", near[k]);
	return text;
}
