/* Orders to place items in. */
#include "planner/placement/place_orders.h"

#include <stdlib.h>
#include <string.h>

/* What to place first, larger is earlier. */
static double key_of(const struct packing *p, int i, int rule)
{
	switch (rule) {
	case 0:
		return p->area[i];
	case 1:
		return p->life[i];
	case 2:
		return (double)p->tall[i];
	case 3:
		return p->at[i] < p->at[i + 1] ? -(double)p->seg[p->at[i]].lo : 0;
	case 4:
		return (double)p->tall[i] * p->area[i];
	default:
		return p->area[i] * p->life[i];
	}
}

struct sorting {
	double key;
	int index;
};

static int sorting_cmp(const void *a, const void *b)
{
	const struct sorting *x = a, *y = b;
	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

bool order_sort(const struct packing *p, int rule, int *order)
{
	struct sorting *s = malloc(((size_t)p->n + 1) * sizeof *s);
	if (!s)
		return false;
	for (int i = 0; i < p->n; i++)
		s[i] = (struct sorting){key_of(p, i, rule), i};
	qsort(s, (size_t)p->n, sizeof *s, sorting_cmp);
	for (int i = 0; i < p->n; i++)
		order[i] = s[i].index;
	free(s);
	return true;
}

static bool meet(const struct packing *p, int i, int j)
{
	for (int s = p->at[i]; s < p->at[i + 1]; s++)
		for (int t = p->at[j]; t < p->at[j + 1]; t++)
			if (p->seg[s].lo < p->seg[t].hi && p->seg[t].lo < p->seg[s].hi)
				return true;
	return false;
}

bool order_skyline(const struct packing *p, int rule, int *order)
{
	size_t n = (size_t)p->n + 1;
	double *key = malloc(n * sizeof *key);
	int64_t *floor = malloc(n * sizeof *floor);
	int *left = malloc(n * sizeof *left), nleft = 0, placed = 0;
	bool ok = key && floor && left;
	for (int i = 0; i < p->n && ok; i++) {
		key[i] = key_of(p, i, rule);
		floor[i] = p->base;
		left[nleft++] = i;
	}
	while (nleft > 0) {
		int best = 0;
		for (int k = 1; k < nleft; k++) {
			int i = left[k], j = left[best];
			if (floor[i] < floor[j] || (floor[i] == floor[j] && key[i] > key[j]))
				best = k;
		}
		int i = left[best];
		int64_t top = floor[i] + p->tall[i];
		order[placed++] = i;
		memmove(left + best, left + best + 1, (size_t)(nleft - best - 1) * sizeof *left);
		nleft--;
		for (int k = 0; k < nleft; k++)
			if (floor[left[k]] < top && meet(p, i, left[k]))
				floor[left[k]] = top;
	}
	free(key);
	free(floor);
	free(left);
	return ok;
}
