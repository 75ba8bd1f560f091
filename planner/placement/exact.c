/* Offsets below a given height, by depth-first search: Moffitt, "MiniMalloc: A Lightweight Memory
 * Allocator for Hardware-Accelerated Machine Learning" (ASPLOS 2023), for items whose size may step
 * down over time.
 *
 * Time is cut into sections, at each of which a largest set of items is live. Items are placed from
 * the bottom up, each on top of what it meets (a skyline), so that each layout is met in one order
 * only: by offset, then by rank. A branch ends where in some section what is left does not fit
 * above the lowest place that any of it can have, or where a gap opens that an item left over would
 * have fitted into. Where no item left over spans a border between sections, both sides are solved
 * apart. Several ranks take turns, each with twice the nodes of the turn before. */
#include "planner/placement/exact.h"

#include <stdlib.h>
#include <string.h>

enum { ITEMS_MAX = 2000, RANKS = 6, HEIGHTS = 5 };
static const double WORK_TURN = 2000;

/* Sections [lo, hi) and the entries of their items in the pool. */
struct part {
	int lo, hi, first, n;
};

static enum place_result search(struct exact *e, struct part p, int64_t least, int rank);

/* --- the order of trial --- */

struct key {
	double key[3];
	int item;
};

static int key_cmp(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	for (int i = 0; i < 3; i++)
		if (x->key[i] != y->key[i])
			return x->key[i] > y->key[i] ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

/* The most bytes left in a section of item i. */
static double crowd(const struct exact *e, int i)
{
	int64_t most = 0;
	for (int s = e->lo[i]; s < e->hi[i]; s++)
		most = e->left[s] > most ? e->left[s] : most;
	return (double)most;
}

static struct key make_key(const struct exact *e, int i)
{
	double area = e->area[i], life = e->life[i], total = crowd(e, i);
	double size = (double)e->tallest[i];
	switch (e->ranking) {
	case 0:
		return (struct key){{life, area, total}, i};
	case 1:
		return (struct key){{total, area, life}, i};
	case 2:
		return (struct key){{total, life, area}, i};
	case 3:
		return (struct key){{area, total, life}, i};
	case 4:
		return (struct key){{total, size, life}, i};
	default:
		return (struct key){{size, life, total}, i};
	}
}

static bool pool_room(struct exact *e, int n)
{
	if (e->npool + n <= e->cap_pool)
		return true;
	int cap = (e->npool + n) * 2;
	struct entry *pool = realloc(e->pool, (size_t)cap * sizeof *pool);
	if (!pool) {
		e->nomem = true;
		return false;
	}
	e->pool = pool;
	e->cap_pool = cap;
	return true;
}

/* Rank the items of the part, whose entries lie at the pool's end, and search. */
static enum place_result solve_part(struct exact *e, struct part p)
{
	struct key *key = malloc(((size_t)p.n + 1) * sizeof *key);
	if (!key) {
		e->nomem = true;
		return PLACE_GAVE_UP;
	}
	for (int k = 0; k < p.n; k++)
		key[k] = make_key(e, e->pool[p.first + k].item);
	qsort(key, (size_t)p.n, sizeof *key, key_cmp);
	for (int k = 0; k < p.n; k++)
		e->pool[p.first + k] = (struct entry){e->at[key[k].item], k, key[k].item};
	free(key);
	return search(e, p, e->base, 0);
}

/* --- one placement, and taking it back --- */

static bool place(struct exact *e, int i, int64_t at)
{
	int n = e->meet_at[i + 1] - e->meet_at[i];
	if (e->ntrail + n > e->cap_trail) {
		int cap = (e->ntrail + n) * 2;
		struct change *trail = realloc(e->trail, (size_t)cap * sizeof *trail);
		if (!trail) {
			e->nomem = true;
			return false;
		}
		e->trail = trail;
		e->cap_trail = cap;
	}
	e->placed[i] = true;
	e->offset[i] = at;
	for (int k = e->meet_at[i]; k < e->meet_at[i + 1]; k++) {
		int j = e->meet[k];
		int64_t top = at + e->meet_height[k];
		if (e->placed[j] || e->at[j] >= top)
			continue;
		e->trail[e->ntrail++] = (struct change){j, e->at[j]};
		e->at[j] = top;
	}
	for (int s = e->lo[i]; s < e->hi[i]; s++)
		e->left[s] -= e->height[e->height_at[i] + (size_t)(s - e->lo[i])];
	for (int s = e->lo[i]; s + 1 < e->hi[i]; s++)
		e->cut[s]--;
	e->work += n + 1;
	return true;
}

static void take_back(struct exact *e, int i, int ntrail)
{
	while (e->ntrail > ntrail) {
		struct change c = e->trail[--e->ntrail];
		e->at[c.item] = c.at;
	}
	for (int s = e->lo[i]; s < e->hi[i]; s++)
		e->left[s] += e->height[e->height_at[i] + (size_t)(s - e->lo[i])];
	for (int s = e->lo[i]; s + 1 < e->hi[i]; s++)
		e->cut[s]++;
	e->placed[i] = false;
}

/* Whether what is left of the part fits in each section above the lowest place of any of it; none
 * may lie below `floor`. */
static bool check(struct exact *e, struct part p, int64_t floor)
{
	for (int s = p.lo; s < p.hi; s++)
		e->lowest[s] = INT64_MAX;
	for (int k = p.first; k < p.first + p.n; k++) {
		int i = e->pool[k].item;
		if (e->placed[i])
			continue;
		int64_t at = e->at[i] > floor ? e->at[i] : floor;
		for (int s = e->lo[i]; s < e->hi[i]; s++)
			e->lowest[s] = at < e->lowest[s] ? at : e->lowest[s];
		e->work += (e->hi[i] - e->lo[i]) * 0.25;
	}
	for (int s = p.lo; s < p.hi; s++)
		if (e->lowest[s] < INT64_MAX && e->lowest[s] + e->left[s] > e->capacity)
			return false;
	return true;
}

/* The part's items that lie within [lo, hi), solved apart. */
static enum place_result solve_within(struct exact *e, struct part p, int lo, int hi)
{
	struct part q = {lo, hi, e->npool, 0};
	if (!pool_room(e, p.n))
		return PLACE_GAVE_UP;
	for (int k = p.first; k < p.first + p.n; k++) {
		int i = e->pool[k].item;
		if (!e->placed[i] && e->lo[i] >= lo && e->hi[i] <= hi)
			e->pool[q.first + q.n++] = e->pool[k];
	}
	e->npool += q.n;
	enum place_result r = q.n > 0 ? solve_part(e, q) : PLACE_FOUND;
	e->npool = q.first;
	return r;
}

/* Go on after item i was placed: in parts, where nothing left spans a border that it spanned. */
static enum place_result descend(struct exact *e, struct part p, int i, int64_t at, int rank)
{
	int from = p.lo;
	for (int s = e->lo[i]; s + 1 < e->hi[i]; s++) {
		if (e->cut[s] > 0)
			continue;
		enum place_result r = solve_within(e, p, from, s + 1);
		if (r != PLACE_FOUND)
			return r;
		from = s + 1;
	}
	return from == p.lo ? search(e, p, at, rank) : solve_within(e, p, from, p.hi);
}

/* The entries of what is left, by offset and rank, at the pool's end. */
static bool list_left(struct exact *e, struct part p, struct part *q)
{
	*q = (struct part){p.lo, p.hi, e->npool, 0};
	if (!pool_room(e, p.n))
		return false;
	struct entry *list = e->pool + q->first;
	for (int k = 0; k < p.n; k++) {
		struct entry x = e->pool[p.first + k];
		if (e->placed[x.item])
			continue;
		x.at = e->at[x.item];
		int to = q->n++;
		for (; to > 0 && (list[to - 1].at > x.at ||
					 (list[to - 1].at == x.at && list[to - 1].rank > x.rank));
			to--)
			list[to] = list[to - 1];
		list[to] = x;
	}
	e->npool += q->n;
	e->work += 2 * p.n;
	return true;
}

/* All that is left of the part, at or above (least, rank) in the order by offset and rank. */
static enum place_result search(struct exact *e, struct part p, int64_t least, int rank)
{
	struct part q;
	enum place_result r = PLACE_NONE;
	if (e->work > e->limit || !list_left(e, p, &q))
		return PLACE_GAVE_UP;
	int64_t lid = INT64_MAX;
	for (int k = q.first; k < q.first + q.n; k++) {
		int64_t top = e->pool[k].at + e->tallest[e->pool[k].item];
		lid = top < lid ? top : lid;
	}
	if (q.n == 0)
		r = PLACE_FOUND;
	for (int k = q.first; k < q.first + q.n && r == PLACE_NONE; k++) {
		struct entry x = e->pool[k];
		if (x.at >= lid)
			break; /* a gap that one of the others would fit into */
		if (x.at < least || (x.at == least && x.rank < rank))
			continue;
		int ntrail = e->ntrail;
		if (!place(e, x.item, x.at))
			r = PLACE_GAVE_UP;
		else if (check(e, q, x.at))
			r = descend(e, q, x.item, x.at, x.rank);
		take_back(e, x.item, ntrail);
	}
	e->npool = q.first;
	return r;
}

/* One stretch of sections that no item leaves: all rankings in turn, longer and longer. */
static enum place_result solve_stretch(struct exact *e, int lo, int hi, double stop)
{
	struct part p = {lo, hi, 0, 0};
	enum place_result r = PLACE_GAVE_UP;
	if (!pool_room(e, e->n))
		return r;
	for (int i = 0; i < e->n; i++)
		if (e->lo[i] < e->hi[i] && e->lo[i] >= lo && e->hi[i] <= hi)
			e->pool[p.n++].item = i;
	e->npool = p.n;
	if (!check(e, p, e->base))
		return PLACE_NONE;
	for (double turn = WORK_TURN * p.n; r == PLACE_GAVE_UP && e->work < stop; turn *= 2)
		for (e->ranking = 0;
			e->ranking < RANKS && r == PLACE_GAVE_UP && !e->nomem && e->work < stop;
			e->ranking++) {
			e->limit = e->work + turn < stop ? e->work + turn : stop;
			r = solve_part(e, p);
		}
	return r;
}

static enum place_result place_exact(const struct place_seg *seg, int nseg,
	const struct place_item *item, int n, int64_t base, int64_t capacity, double work,
	int64_t *offset)
{
	struct exact e = {.seg = seg,
		.item = item,
		.n = n,
		.base = base,
		.capacity = capacity,
		.offset = offset};
	enum place_result r = PLACE_GAVE_UP;
	if (n <= ITEMS_MAX && exact_init(&e, nseg)) {
		int from = 0;
		r = PLACE_FOUND;
		for (int i = 0; i < n; i++)
			e.at[i] = offset[i] = base;
		for (int s = 0; s < e.nsection && r == PLACE_FOUND; s++)
			if (e.cut[s] == 0) {
				r = solve_stretch(&e, from, s + 1, work);
				from = s + 1;
			}
	}
	if (e.nomem)
		r = PLACE_NOMEM;
	exact_free(&e);
	return r;
}

enum place_result place_lower(const struct place_seg *seg, int nseg, const struct place_item *item,
	int n, int64_t align, int64_t base, int64_t load, int64_t aim, double work, int64_t *height,
	int64_t *offset)
{
	int64_t low = (aim > load ? aim : load) / align * align, high = *height;
	int64_t *trial = malloc(((size_t)n + 1) * sizeof *trial);
	enum place_result r = trial ? PLACE_GAVE_UP : PLACE_NOMEM, some = r;
	int64_t capacity = low;
	for (int k = 0; k < HEIGHTS && r != PLACE_NOMEM && capacity < high; k++) {
		r = place_exact(
			seg, nseg, item, n, base, capacity, k == 0 ? work : work / 8, trial);
		if (r == PLACE_FOUND) {
			memcpy(offset, trial, (size_t)n * sizeof *offset);
			*height = high = capacity;
			some = r;
		} else {
			low = capacity + align;
		}
		capacity = (low + (high - low) / 2) / align * align;
	}
	free(trial);
	return r == PLACE_NOMEM ? r : some;
}
