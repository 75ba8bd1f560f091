/* Offsets below a capacity by ejection: an item that fits nowhere takes the place that costs least,
 * and those that it pushes out wait for theirs, the tallest first. An item costs more each time
 * that it did not fit.
 * After the guided ejection search of Nagata and Bräysy, "A powerful route minimization heuristic
 * for the vehicle routing problem with time windows" (Operations Research Letters 37, 2009). */
#include "planner/placement/packing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What it costs to push out a fixed item: so many of them, and all others, add up to less than
 * 2^63. */
enum { DIGIT = 10, BLOCK = 16 };
static const int64_t FIXED = (int64_t)1 << 40;

struct mark {
	int64_t at;
	int64_t change; /* of the cost */
};

struct eject {
	const struct packing *p;
	int64_t capacity, *offset;
	bool *placed;
	int64_t *weight;        /* [n] what it costs to push the item out */
	int64_t *hard;          /* [n] what its weight starts at and grows by */
	int *heap, nheap;       /* items left over, the tallest first */
	struct pack_seg *by_lo; /* [nseg] segments by their first section */
	int *max_hi;            /* [2 * leaves] over blocks of by_lo */
	int leaves;
	const struct pack_seg **met; /* [nseg] segments placed that meet one */
	int nmet;
	struct mark *mark, *sorted; /* [2 * cap_mark]: sorting goes to and fro */
	int nmark, cap_mark;
	uint64_t rng;
	double work;
	bool nomem;
};

static uint64_t next_random(struct eject *e)
{
	e->rng ^= e->rng << 13;
	e->rng ^= e->rng >> 7;
	e->rng ^= e->rng << 17;
	return e->rng;
}

/* --- what meets a segment in time --- */

static bool index_segments(struct eject *e)
{
	const struct packing *p = e->p;
	int *count = calloc((size_t)p->nsection + 2, sizeof *count);
	if (!count)
		return false;
	for (int s = 0; s < p->nseg; s++)
		count[p->seg[s].lo + 1]++;
	for (int t = 0; t < p->nsection; t++)
		count[t + 1] += count[t];
	for (int s = 0; s < p->nseg; s++)
		e->by_lo[count[p->seg[s].lo]++] = p->seg[s];
	free(count);
	for (int k = 0; k < p->nseg; k++) {
		int *most = &e->max_hi[e->leaves + k / BLOCK];
		*most = e->by_lo[k].hi > *most ? e->by_lo[k].hi : *most;
	}
	for (int v = e->leaves - 1; v > 0; v--)
		e->max_hi[v] = e->max_hi[2 * v] > e->max_hi[2 * v + 1] ? e->max_hi[2 * v]
								       : e->max_hi[2 * v + 1];
	return true;
}

/* Those of node v, which stands for the blocks [from, to). */
static void meet(struct eject *e, int v, int from, int to, const struct pack_seg *s)
{
	if (e->max_hi[v] <= s->lo || e->by_lo[(int64_t)from * BLOCK].lo >= s->hi)
		return;
	if (to - from > 1) {
		int mid = from + (to - from) / 2;
		meet(e, 2 * v, from, mid, s);
		if ((int64_t)mid * BLOCK < e->p->nseg)
			meet(e, 2 * v + 1, mid, to, s);
		return;
	}
	int end = e->p->nseg - from * BLOCK < BLOCK ? e->p->nseg : from * BLOCK + BLOCK;
	e->work += BLOCK / 2;
	for (int k = from * BLOCK; k < end && e->by_lo[k].lo < s->hi; k++)
		if (e->by_lo[k].hi > s->lo && e->placed[e->by_lo[k].item] &&
			e->by_lo[k].item != s->item)
			e->met[e->nmet++] = &e->by_lo[k];
}

static void list_met(struct eject *e, const struct pack_seg *s)
{
	e->nmet = 0;
	meet(e, 1, 0, e->leaves, s);
}

/* --- what each offset costs --- */

static bool mark_add(struct eject *e, int64_t at, int64_t change)
{
	if (e->nmark == e->cap_mark) {
		int cap = e->cap_mark * 2 + 256;
		struct mark *m = realloc(e->mark, 2 * (size_t)cap * sizeof *m);
		if (!m)
			return false;
		e->mark = m;
		e->cap_mark = cap;
	}
	e->mark[e->nmark++] = (struct mark){at, change};
	return true;
}

/* By address, a digit at a time; few of them by insertion. */
static void sort_marks(struct eject *e)
{
	struct mark *from = e->mark, *to = e->mark + e->cap_mark;
	int64_t most = e->capacity;
	int n = e->nmark;
	if (n <= 48) {
		for (int k = 1; k < n; k++) {
			struct mark m = from[k];
			int i = k;
			for (; i > 0 && from[i - 1].at > m.at; i--)
				from[i] = from[i - 1];
			from[i] = m;
		}
		e->sorted = from;
		return;
	}
	for (int shift = 0; shift < 63 && most >> shift > 0; shift += DIGIT) {
		int count[(1 << DIGIT) + 1] = {0};
		for (int k = 0; k < n; k++)
			count[((from[k].at >> shift) & ((1 << DIGIT) - 1)) + 1]++;
		for (int d = 0; d < 1 << DIGIT; d++)
			count[d + 1] += count[d];
		for (int k = 0; k < n; k++)
			to[count[(from[k].at >> shift) & ((1 << DIGIT) - 1)]++] = from[k];
		struct mark *swap = from;
		from = to;
		to = swap;
	}
	e->sorted = from;
}

/* A segment of size s at x meets one of size t at y where y - s < x < y + t. */
static bool mark_all(struct eject *e, int i)
{
	const struct packing *p = e->p;
	int64_t last = e->capacity - p->tall[i];
	e->nmark = 0;
	for (int s = p->at[i]; s < p->at[i + 1]; s++) {
		list_met(e, &p->seg[s]);
		for (int k = 0; k < e->nmet; k++) {
			const struct pack_seg *t = e->met[k];
			int64_t w = e->weight[t->item];
			int64_t at = e->offset[t->item], from = at - p->seg[s].size + 1;
			from = from > p->base ? from : p->base;
			if (at + t->size <= from || from > last)
				continue;
			if (!mark_add(e, from, w) ||
				(at + t->size <= last && !mark_add(e, at + t->size, -w)))
				return false;
		}
	}
	if (e->nomem)
		return false;
	if (e->nmark > 0)
		sort_marks(e);
	e->work += e->nmark * 2;
	return true;
}

/* The offset that costs least: where it costs nothing the end of the tightest gap, else any of
 * them. -1 where there is none. */
static int64_t cheapest(struct eject *e, int i, int64_t *cost)
{
	int64_t last = e->capacity - e->p->tall[i], at = e->p->base, best = -1, slack = INT64_MAX;
	int64_t now = 0, least = FIXED;
	int same = 0;
	for (int k = 0; at <= last;) {
		for (; k < e->nmark && e->sorted[k].at <= at; k++)
			now += e->sorted[k].change;
		int64_t end = k < e->nmark && e->sorted[k].at <= last ? e->sorted[k].at : last + 1;
		if (now == 0 && end - at <= slack) {
			if (end - at < slack || next_random(e) % 2)
				best = at;
			slack = end - at;
			least = 0;
		} else if (now > 0 && now <= least && now < FIXED) {
			same = now < least ? 1 : same + 1;
			if (next_random(e) % (uint64_t)same == 0)
				best = next_random(e) % 2 ? at : end - 1;
			least = now;
		}
		at = end;
	}
	*cost = least;
	return best;
}

/* --- what is left over --- */

static bool taller(const struct eject *e, int i, int j)
{
	int64_t x = e->p->tall[i], y = e->p->tall[j];
	return x != y ? x > y : i < j;
}

static void heap_add(struct eject *e, int i)
{
	int k = e->nheap++;
	for (; k > 0 && taller(e, i, e->heap[(k - 1) / 2]); k = (k - 1) / 2)
		e->heap[k] = e->heap[(k - 1) / 2];
	e->heap[k] = i;
}

static int heap_take(struct eject *e)
{
	int top = e->heap[0], i = e->heap[--e->nheap], k = 0;
	for (int c = 1; c < e->nheap; c = 2 * k + 1) {
		c += c + 1 < e->nheap && taller(e, e->heap[c + 1], e->heap[c]);
		if (!taller(e, e->heap[c], i))
			break;
		e->heap[k] = e->heap[c];
		k = c;
	}
	e->heap[k] = i;
	return top;
}

/* --- the search --- */

static void push_out(struct eject *e, int i, int64_t at)
{
	const struct packing *p = e->p;
	for (int s = p->at[i]; s < p->at[i + 1]; s++) {
		list_met(e, &p->seg[s]);
		for (int k = 0; k < e->nmet; k++) {
			const struct pack_seg *t = e->met[k];
			int j = t->item;
			if (!e->placed[j] || e->offset[j] >= at + p->seg[s].size ||
				at >= e->offset[j] + t->size)
				continue;
			e->placed[j] = false;
			heap_add(e, j);
		}
	}
}

static void eject(struct eject *e, double limit)
{
	while (e->nheap > 0 && e->work < limit && !e->nomem) {
		int i = heap_take(e);
		int64_t cost = 0, at = mark_all(e, i) ? cheapest(e, i, &cost) : -1;
		if (at < 0) {
			heap_add(e, i);
			return;
		}
		if (cost > 0) {
			push_out(e, i, at);
			e->weight[i] += e->hard[i];
		}
		e->offset[i] = at;
		e->placed[i] = true;
	}
}

static void weigh(struct eject *e, bool alike)
{
	const struct packing *p = e->p;
	double most = 1;
	for (int i = 0; i < p->n; i++)
		most = p->area[i] > most ? p->area[i] : most;
	for (int i = 0; i < p->n; i++) {
		e->hard[i] = 1 + (alike ? 0 : (int64_t)(1000 * sqrt(p->area[i] / most)));
		e->weight[i] = p->fixed[i] ? FIXED : e->hard[i];
	}
}

/* Each item of the order where it first fits below the capacity; the others are left over. */
static bool start(struct eject *e, const int *order, double limit)
{
	const struct packing *p = e->p;
	struct gaps g;
	bool ok = gaps_init(&g, p);
	g.limit = limit;
	for (int i = 0; i < p->n && ok; i++) {
		e->offset[i] = p->given[i];
		e->placed[i] = p->fixed[i] && p->tall[i];
		ok = !e->placed[i] || gaps_take(&g, i, e->offset[i]);
	}
	for (int k = 0; k < p->n && ok; k++) {
		int i = order[k];
		if (p->tall[i] == 0 || p->fixed[i])
			continue;
		int64_t at = gaps_find(&g, i, true);
		ok = at >= 0;
		if (ok && at + p->tall[i] > e->capacity) {
			heap_add(e, i);
		} else if (ok) {
			e->offset[i] = at;
			e->placed[i] = true;
			ok = gaps_take(&g, i, at);
		}
	}
	e->work += g.work;
	gaps_free(&g);
	return ok;
}

/* What is left over goes where it fits at all. */
static bool finish(struct eject *e, double limit)
{
	const struct packing *p = e->p;
	struct gaps g;
	bool ok = gaps_init(&g, p);
	g.limit = limit;
	for (int i = 0; i < p->n && ok; i++)
		ok = !e->placed[i] || gaps_take(&g, i, e->offset[i]);
	while (ok && e->nheap > 0) {
		int i = heap_take(e);
		e->offset[i] = gaps_find(&g, i, false);
		ok = e->offset[i] >= 0 && gaps_take(&g, i, e->offset[i]);
	}
	gaps_free(&g);
	return ok;
}

enum place_result place_eject(const struct packing *p, const int *order, int64_t capacity,
	int variant, double work, int64_t *offset)
{
	size_t n = (size_t)p->n + 1;
	struct eject e = {.p = p,
		.capacity = capacity,
		.offset = offset,
		.leaves = 1,
		.rng = 88172645463325252u + (uint64_t)variant};
	while ((int64_t)e.leaves * BLOCK < p->nseg)
		e.leaves *= 2;
	e.placed = calloc(n, sizeof *e.placed);
	e.weight = calloc(n, sizeof *e.weight);
	e.hard = calloc(n, sizeof *e.hard);
	e.heap = calloc(n, sizeof *e.heap);
	e.by_lo = calloc((size_t)p->nseg + 1, sizeof *e.by_lo);
	e.met = calloc((size_t)p->nseg + 1, sizeof *e.met);
	e.max_hi = calloc(2 * (size_t)e.leaves, sizeof *e.max_hi);
	bool ok = e.placed && e.weight && e.hard && e.heap && e.by_lo && e.met && e.max_hi &&
		  index_segments(&e);
	if (ok)
		weigh(&e, variant % 2 == 1);
	ok = ok && start(&e, order, work);
	if (ok)
		eject(&e, work);
	enum place_result r = e.nheap == 0 ? PLACE_FOUND : PLACE_GAVE_UP;
	if (!ok || e.nomem || (r == PLACE_GAVE_UP && !finish(&e, work)))
		r = PLACE_NOMEM;
	free(e.placed);
	free(e.weight);
	free(e.hard);
	free(e.heap);
	free(e.by_lo);
	free(e.max_hi);
	free(e.met);
	free(e.mark);
	return r;
}
