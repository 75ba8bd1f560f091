/* Stretches of time that no item spans are placed one by one. */
#include <stdlib.h>

#include "planner/placement/packing.h"

struct span_of {
	int64_t lower, upper;
	int item;
};

static int span_cmp(const void *a, const void *b)
{
	const struct span_of *x = a, *y = b;
	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

struct splitter {
	const struct place_seg *seg;
	struct place_item *item;
	struct span_of *span; /* [n] of the items that have any size, by start */
	int n;
	struct place_seg *some_seg; /* those of one stretch */
	struct place_item *some;
	struct place_goal goal;
	double work;
	int64_t height;
};

static void list_spans(struct splitter *s, int n)
{
	for (int i = 0; i < n; i++) {
		const struct place_item *it = &s->item[i];
		struct span_of x = {INT64_MAX, INT64_MIN, i};
		for (int k = it->seg; k < it->seg + it->nseg; k++) {
			const struct place_seg *g = &s->seg[k];
			if (g->size == 0 || g->lower >= g->upper)
				continue;
			x.lower = g->lower < x.lower ? g->lower : x.lower;
			x.upper = g->upper > x.upper ? g->upper : x.upper;
		}
		if (x.lower < x.upper)
			s->span[s->n++] = x;
		else if (!it->fixed)
			s->item[i].offset = (s->goal.base + s->goal.align - 1) / s->goal.align *
					    s->goal.align;
	}
	qsort(s->span, (size_t)s->n, sizeof *s->span, span_cmp);
}

/* Place the items of span[from .. to - 1]. */
static bool place_stretch(struct splitter *s, int from, int to)
{
	int n = 0, nseg = 0;
	int64_t height;
	for (int k = from; k < to; k++) {
		struct place_item it = s->item[s->span[k].item];
		int first = nseg;
		for (int g = it.seg; g < it.seg + it.nseg; g++)
			s->some_seg[nseg++] = s->seg[g];
		it.seg = first;
		s->some[n++] = it;
	}
	if (!place_part(s->some_seg, nseg, s->some, n, s->goal, &s->work, &height))
		return false;
	for (int k = from; k < to; k++)
		s->item[s->span[k].item].offset = s->some[k - from].offset;
	s->height = height > s->height ? height : s->height;
	/* no stretch needs to be lower than another is */
	s->goal.aim = s->height > s->goal.aim ? s->height : s->goal.aim;
	return true;
}

enum status place_items(const struct place_seg *seg, int nseg, struct place_item *item, int n,
	int64_t align, int64_t base, int64_t aim, double work, int64_t *height, int64_t *load,
	struct diag *d)
{
	struct packing p;
	struct splitter s = {.seg = seg, .item = item, .work = work};
	bool ok = packing_init(&p, seg, nseg, item, n, align, base);
	*load = p.load * align;
	s.goal = (struct place_goal){align, base, aim > *load ? aim : *load, aim < *load, false};
	s.span = malloc(((size_t)n + 1) * sizeof *s.span);
	s.some = malloc(((size_t)n + 1) * sizeof *s.some);
	s.some_seg = malloc(((size_t)nseg + 1) * sizeof *s.some_seg);
	ok = ok && s.span && s.some && s.some_seg;
	if (ok) {
		s.height = p.base * align;
		list_spans(&s, n);
	}
	packing_free(&p);
	for (int from = 0, to; from < s.n && ok; from = to) {
		int64_t end = s.span[from].upper;
		for (to = from + 1; to < s.n && s.span[to].lower < end; to++)
			end = s.span[to].upper > end ? s.span[to].upper : end;
		ok = place_stretch(&s, from, to);
	}
	*height = s.height;
	free(s.span);
	free(s.some);
	free(s.some_seg);
	return ok ? ST_OK : diag_nomem(d);
}
