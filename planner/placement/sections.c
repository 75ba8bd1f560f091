/* Time cut into sections, at each of which a largest set of items is live. */
#include "planner/placement/exact.h"

#include <stdlib.h>

enum { OVERLAPS_MAX = 4000000, HEIGHTS_MAX = 4000000 };

/* Heights of the items by section; false when out of memory or too large. */
static bool fill_items(struct exact *e, const int *lo, const int *hi)
{
	size_t total = 0;
	for (int i = 0; i < e->n; i++) {
		const struct place_item *it = &e->item[i];
		bool any = false;
		for (int s = it->seg; s < it->seg + it->nseg; s++) {
			if (lo[s] >= hi[s])
				continue;
			e->lo[i] = !any || lo[s] < e->lo[i] ? lo[s] : e->lo[i];
			e->hi[i] = !any || hi[s] > e->hi[i] ? hi[s] : e->hi[i];
			any = true;
		}
		e->height_at[i] = total;
		total += (size_t)(e->hi[i] - e->lo[i]);
	}
	e->height_at[e->n] = total;
	if (total > HEIGHTS_MAX)
		return false;
	e->height = calloc(total + 1, sizeof *e->height);
	e->left = calloc((size_t)e->nsection + 1, sizeof *e->left);
	e->lowest = calloc((size_t)e->nsection + 1, sizeof *e->lowest);
	e->cut = calloc((size_t)e->nsection + 1, sizeof *e->cut);
	if (!e->height || !e->left || !e->lowest || !e->cut) {
		e->nomem = true;
		return false;
	}
	for (int i = 0; i < e->n; i++) {
		const struct place_item *it = &e->item[i];
		for (int s = it->seg; s < it->seg + it->nseg; s++) {
			double len = (double)(e->seg[s].upper - e->seg[s].lower);
			e->area[i] += len * (double)e->seg[s].size;
			e->life[i] += len;
			e->tallest[i] = e->seg[s].size > e->tallest[i] ? e->seg[s].size
								       : e->tallest[i];
			for (int k = lo[s]; k < hi[s]; k++)
				e->height[e->height_at[i] + (size_t)(k - e->lo[i])] = e->seg[s]
											      .size;
		}
		for (int s = e->lo[i]; s < e->hi[i]; s++)
			e->left[s] += e->height[e->height_at[i] + (size_t)(s - e->lo[i])];
		for (int s = e->lo[i]; s + 1 < e->hi[i]; s++)
			e->cut[s]++;
	}
	return true;
}

/* How high item i stands where it meets item j; 0 where they do not meet. */
static int64_t height_where(const struct exact *e, int i, int j)
{
	int64_t most = 0;
	int lo = e->lo[i] > e->lo[j] ? e->lo[i] : e->lo[j];
	int hi = e->hi[i] < e->hi[j] ? e->hi[i] : e->hi[j];
	for (int s = lo; s < hi; s++) {
		int64_t h = e->height[e->height_at[i] + (size_t)(s - e->lo[i])];
		if (h > most && e->height[e->height_at[j] + (size_t)(s - e->lo[j])] > 0)
			most = h;
	}
	return most;
}

static bool fill_meets(struct exact *e)
{
	int n = 0, cap = 0;
	for (int i = 0; i < e->n; i++) {
		e->meet_at[i] = n;
		for (int j = 0; j < e->n; j++) {
			int64_t h = i != j ? height_where(e, i, j) : 0;
			if (h == 0)
				continue;
			if (n == OVERLAPS_MAX)
				return false;
			if (n == cap) {
				cap = cap * 2 + 1024;
				int *meet = realloc(e->meet, (size_t)cap * sizeof *meet);
				e->meet = meet ? meet : e->meet;
				int64_t *at = realloc(e->meet_height, (size_t)cap * sizeof *at);
				e->meet_height = at ? at : e->meet_height;
				if (!meet || !at) {
					e->nomem = true;
					return false;
				}
			}
			e->meet[n] = j;
			e->meet_height[n++] = h;
		}
	}
	e->meet_at[e->n] = n;
	return true;
}

bool exact_init(struct exact *e, int nseg)
{
	size_t n = (size_t)e->n + 1;
	int *lo = calloc((size_t)nseg + 1, sizeof *lo), *hi = calloc((size_t)nseg + 1, sizeof *hi);
	e->lo = calloc(n, sizeof *e->lo);
	e->hi = calloc(n, sizeof *e->hi);
	e->height_at = calloc(n, sizeof *e->height_at);
	e->tallest = calloc(n, sizeof *e->tallest);
	e->area = calloc(n, sizeof *e->area);
	e->life = calloc(n, sizeof *e->life);
	e->meet_at = calloc(n, sizeof *e->meet_at);
	e->at = calloc(n, sizeof *e->at);
	e->placed = calloc(n, sizeof *e->placed);
	bool ok = lo && hi && e->lo && e->hi && e->height_at && e->tallest && e->area && e->life &&
		  e->meet_at && e->at && e->placed &&
		  place_sections(e->seg, nseg, lo, hi, &e->nsection);
	e->nomem = !ok;
	ok = ok && fill_items(e, lo, hi) && fill_meets(e);
	free(lo);
	free(hi);
	return ok;
}

void exact_free(struct exact *e)
{
	free(e->lo);
	free(e->hi);
	free(e->height_at);
	free(e->height);
	free(e->tallest);
	free(e->area);
	free(e->life);
	free(e->meet_at);
	free(e->meet);
	free(e->meet_height);
	free(e->at);
	free(e->placed);
	free(e->left);
	free(e->lowest);
	free(e->cut);
	free(e->pool);
	free(e->trail);
}
