/* Time cut into sections, at each of which a largest set of segments is live. */
#include <stdlib.h>

#include "planner/placement/place.h"

struct event {
	int64_t t;
	bool start;
	int seg;
};

static int event_cmp(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	if (x->start != y->start)
		return x->start ? 1 : -1; /* ends first */
	return (x->seg > y->seg) - (x->seg < y->seg);
}

bool place_sections(const struct place_seg *seg, int nseg, int *lo, int *hi, int *nsection)
{
	struct event *v = malloc(((size_t)nseg * 2 + 1) * sizeof *v);
	int n = 0;
	bool grew = false;
	*nsection = 0;
	if (!v)
		return false;
	for (int i = 0; i < nseg; i++)
		if (seg[i].size > 0 && seg[i].lower < seg[i].upper) {
			v[n++] = (struct event){seg[i].lower, true, i};
			v[n++] = (struct event){seg[i].upper, false, i};
		}
	qsort(v, (size_t)n, sizeof *v, event_cmp);
	for (int k = 0; k < n; k++) {
		if (!v[k].start && grew)
			++*nsection;
		grew = v[k].start;
		*(grew ? &lo[v[k].seg] : &hi[v[k].seg]) = *nsection;
	}
	free(v);
	return true;
}
