/* Time cut into sections, sizes into units; which gaps are left. */
#include "planner/placement/packing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The sections of each segment, and the most that is live in one. */
static bool find_sections(struct packing *p, const struct place_seg *seg, int nseg, const int *of)
{
	int *lo = malloc(((size_t)nseg + 1) * sizeof *lo);
	int *hi = malloc(((size_t)nseg + 1) * sizeof *hi);
	bool ok = lo && hi && place_sections(seg, nseg, lo, hi, &p->nsection);
	int64_t *change = ok ? calloc((size_t)p->nsection + 1, sizeof *change) : NULL;
	int64_t live = 0, most = 0;
	ok = ok && change;
	for (int k = 0; ok && k < p->nseg; k++) {
		struct pack_seg *s = &p->seg[k];
		s->lo = lo[of[k]];
		s->hi = hi[of[k]];
		change[s->lo] += s->size;
		change[s->hi] -= s->size;
	}
	for (int i = 0; ok && i < p->nsection; i++) {
		live += change[i];
		most = live > most ? live : most;
	}
	p->load = p->base + most;
	free(change);
	free(hi);
	free(lo);
	return ok;
}

bool packing_init(struct packing *p, const struct place_seg *seg, int nseg,
	const struct place_item *item, int n, int64_t align, int64_t base)
{
	size_t m = (size_t)n + 1;
	int *of = malloc(((size_t)nseg + 1) * sizeof *of);
	*p = (struct packing){
		.n = n, .align = align, .base = (base + align - 1) / align, .least = INT64_MAX};
	p->at = calloc(m, sizeof *p->at);
	p->seg = calloc((size_t)nseg + 1, sizeof *p->seg);
	p->tall = calloc(m, sizeof *p->tall);
	p->life = calloc(m, sizeof *p->life);
	p->area = calloc(m, sizeof *p->area);
	p->fixed = calloc(m, sizeof *p->fixed);
	p->given = calloc(m, sizeof *p->given);
	bool ok = of && p->at && p->seg && p->tall && p->life && p->area && p->fixed && p->given;
	for (int i = 0; i < n && ok; i++) {
		p->at[i] = p->nseg;
		p->fixed[i] = item[i].fixed;
		p->given[i] = item[i].fixed ? item[i].offset / align : p->base;
		p->any_fixed = p->any_fixed || item[i].fixed;
		/* a fixed offset between units takes a part of one unit more */
		int64_t more = item[i].fixed ? item[i].offset % align : 0;
		for (int s = item[i].seg; s < item[i].seg + item[i].nseg; s++) {
			if (seg[s].size == 0 || seg[s].lower >= seg[s].upper)
				continue;
			int64_t size = (seg[s].size + more + align - 1) / align;
			double len = (double)(seg[s].upper - seg[s].lower);
			of[p->nseg] = s;
			p->seg[p->nseg++] = (struct pack_seg){.item = i, .size = size};
			p->tall[i] = size > p->tall[i] ? size : p->tall[i];
			p->least = size < p->least ? size : p->least;
			p->life[i] += len;
			p->area[i] += len * (double)size;
		}
		p->at[i + 1] = p->nseg;
	}
	ok = ok && find_sections(p, seg, nseg, of);
	free(of);
	return ok;
}

void packing_free(struct packing *p)
{
	free(p->at);
	free(p->seg);
	free(p->tall);
	free(p->life);
	free(p->area);
	free(p->fixed);
	free(p->given);
}

int64_t packing_height(const struct packing *p, const int64_t *offset)
{
	int64_t height = p->base;
	for (int i = 0; i < p->n; i++)
		if (p->tall[i] && offset[i] + p->tall[i] > height)
			height = offset[i] + p->tall[i];
	return height;
}

/* --- gaps --- */

bool gaps_init(struct gaps *g, const struct packing *p)
{
	*g = (struct gaps){.p = p, .leaves = 1, .limit = INFINITY};
	while (g->leaves < p->nsection)
		g->leaves *= 2;
	g->whole = calloc(2 * (size_t)g->leaves, sizeof *g->whole);
	g->any = calloc(2 * (size_t)g->leaves, sizeof *g->any);
	return g->whole && g->any;
}

void gaps_free(struct gaps *g)
{
	for (int v = 0; v < 2 * g->leaves && g->whole && g->any; v++) {
		free(g->whole[v].s);
		free(g->any[v].s);
	}
	free(g->whole);
	free(g->any);
	free(g->list);
}

void gaps_clear(struct gaps *g)
{
	for (int v = 0; v < 2 * g->leaves; v++)
		g->whole[v].n = g->any[v].n = 0;
}

/* The first span of the set that ends above x. */
static int span_after(const struct span_set *set, int64_t x)
{
	int lo = 0;
	for (int hi = set->n; lo < hi;) {
		int mid = lo + (hi - lo) / 2;
		if (set->s[mid].hi <= x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Add [lo, hi); gaps too small for any item are closed. */
static bool set_add(struct span_set *set, int64_t lo, int64_t hi, int64_t least)
{
	int i = span_after(set, lo - least), j = i;
	for (; j < set->n && set->s[j].lo < hi + least; j++) {
		lo = set->s[j].lo < lo ? set->s[j].lo : lo;
		hi = set->s[j].hi > hi ? set->s[j].hi : hi;
	}
	if (i == j && set->n == set->cap) {
		int cap = set->cap + set->cap / 2 + 2;
		struct span *s = realloc(set->s, (size_t)cap * sizeof *s);
		if (!s)
			return false;
		set->s = s;
		set->cap = cap;
	}
	memmove(set->s + i + 1, set->s + j, (size_t)(set->n - j) * sizeof *set->s);
	set->s[i] = (struct span){lo, hi};
	set->n += i + 1 - j;
	return true;
}

/* Take a segment's place in node v, which stands for the sections [from, to). */
static bool take(struct gaps *g, int v, int from, int to, const struct pack_seg *s, struct span x)
{
	if (s->lo >= to || from >= s->hi)
		return true;
	if (!set_add(&g->any[v], x.lo, x.hi, g->p->least))
		return false;
	if (s->lo <= from && to <= s->hi)
		return set_add(&g->whole[v], x.lo, x.hi, g->p->least);
	int mid = from + (to - from) / 2;
	return take(g, 2 * v, from, mid, s, x) && take(g, 2 * v + 1, mid, to, s, x);
}

bool gaps_take(struct gaps *g, int item, int64_t offset)
{
	for (int s = g->p->at[item]; s < g->p->at[item + 1]; s++) {
		struct span x = {offset, offset + g->p->seg[s].size};
		if (!take(g, 1, 0, g->leaves, &g->p->seg[s], x))
			return false;
	}
	return true;
}

static bool list_add(struct gaps *g, const struct span_set *set, int64_t size)
{
	if (set->n == 0)
		return true;
	if (g->nlist == g->cap_list) {
		int cap = g->cap_list * 2 + 64;
		struct span_list *l = realloc(g->list, (size_t)cap * sizeof *l);
		if (!l)
			return false;
		g->list = l;
		g->cap_list = cap;
	}
	g->list[g->nlist++] = (struct span_list){set->s, set->n, 0, size};
	return true;
}

/* All that a segment meets: what covers the nodes above its own, and all within its own. */
static bool gather(struct gaps *g, int v, int from, int to, const struct pack_seg *s)
{
	if (s->lo >= to || from >= s->hi || g->any[v].n == 0)
		return true;
	if (s->lo <= from && to <= s->hi)
		return list_add(g, &g->any[v], s->size);
	int mid = from + (to - from) / 2;
	return list_add(g, &g->whole[v], s->size) && gather(g, 2 * v, from, mid, s) &&
	       gather(g, 2 * v + 1, mid, to, s);
}

/* The lowest offset from c on that no list denies. */
static int64_t rise(struct gaps *g, int64_t c)
{
	for (int quiet = 0, i = 0; quiet < g->nlist; i = i + 1 < g->nlist ? i + 1 : 0) {
		struct span_list *l = &g->list[i];
		int64_t before = c;
		/* what ends below is passed in leaps */
		for (int leap = 1; l->k + leap < l->n && l->s[l->k + leap].hi <= c; leap *= 2)
			l->k += leap;
		int from = l->k;
		for (; l->k < l->n && l->s[l->k].lo < c + l->size; l->k++)
			c = l->s[l->k].hi > c ? l->s[l->k].hi : c;
		quiet = c > before ? 1 : quiet + 1;
		g->work += 1 + (l->k - from) * 0.25;
	}
	return c;
}

int64_t gaps_find(struct gaps *g, int item, bool first)
{
	const struct packing *p = g->p;
	int64_t c = p->base, best = -1, slack = INT64_MAX;
	g->nlist = 0;
	for (int s = p->at[item]; s < p->at[item + 1]; s++)
		if (!gather(g, 1, 0, g->leaves, &p->seg[s]))
			return -1;
	if (g->work > g->limit) {
		for (int i = 0; i < g->nlist; i++) {
			const struct span_list *l = &g->list[i];
			c = l->s[l->n - 1].hi > c ? l->s[l->n - 1].hi : c;
		}
		return c;
	}
	for (;;) {
		int64_t ceiling = INT64_MAX;
		c = rise(g, c);
		for (int i = 0; i < g->nlist; i++) {
			const struct span_list *l = &g->list[i];
			if (l->k < l->n && l->s[l->k].lo - l->size < ceiling)
				ceiling = l->s[l->k].lo - l->size;
		}
		g->work += g->nlist;
		if (ceiling - c < slack || best < 0) {
			best = c;
			slack = ceiling - c;
		}
		if (first || ceiling == INT64_MAX)
			return best;
		c = ceiling + 1;
	}
}
