/* Best fit in several orders, then an iterated search over orders: what sticks out at the top moves
 * forward. Stops by a count of work. */
#include "planner/place.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024, ORDERS = 6, SKYLINE_MAX = 4000 };
static const double WORK_ORDERS = 2e9, WORK_SEARCH = 1e8, WORK_EACH = 3e5, WORK_NEAR = 3e7;

struct range {
	int64_t lo, hi; /* an offset x is taken when lo < x < hi */
};

struct bucket {
	int *seg, n, cap;
};

struct placer {
	const struct place_seg *seg; /* sizes rounded up */
	struct place_item *item;
	int n, nseg;
	int64_t align, base, aim, load;
	int64_t t0, width; /* buckets of time */
	struct bucket bucket[BUCKETS];
	int *item_of;      /* [nseg] */
	int *stamp, round; /* [nseg] */
	struct range *range;
	int nrange, cap_range;
	int64_t *offset, *best; /* [n] */
	int64_t best_height;
	int *order, *best_order;
	double work, exact;
	uint64_t rng;
	bool nomem;
};

static int64_t round_up(int64_t x, int64_t align)
{
	return (x + align - 1) / align * align;
}

static int bucket_of(const struct placer *p, int64_t t)
{
	return (int)((t - p->t0) / p->width);
}

static bool bucket_add(struct bucket *b, int seg)
{
	if (b->n == b->cap) {
		int cap = b->cap * 2 + 16;
		int *s = realloc(b->seg, (size_t)cap * sizeof *s);
		if (!s)
			return false;
		b->seg = s;
		b->cap = cap;
	}
	b->seg[b->n++] = seg;
	return true;
}

static bool range_add(struct placer *p, int64_t lo, int64_t hi)
{
	if (p->nrange == p->cap_range) {
		int cap = p->cap_range * 2 + 64;
		struct range *r = realloc(p->range, (size_t)cap * sizeof *r);
		if (!r)
			return false;
		p->range = r;
		p->cap_range = cap;
	}
	p->range[p->nrange++] = (struct range){lo, hi};
	return true;
}

static int range_cmp(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return (x->hi > y->hi) - (x->hi < y->hi);
}

/* The offsets that placed segments deny to segment s. */
static bool collect(struct placer *p, int s)
{
	const struct place_seg *a = &p->seg[s];
	int last = bucket_of(p, a->upper - 1);
	p->round++;
	for (int k = bucket_of(p, a->lower); k <= last; k++) {
		const struct bucket *b = &p->bucket[k];
		p->work += b->n;
		for (int i = 0; i < b->n; i++) {
			int j = b->seg[i];
			const struct place_seg *c = &p->seg[j];
			if (p->stamp[j] == p->round || c->lower >= a->upper || a->lower >= c->upper)
				continue;
			p->stamp[j] = p->round;
			int64_t at = p->offset[p->item_of[j]];
			if (!range_add(p, at - a->size, at + c->size))
				return false;
		}
	}
	return true;
}

static bool settle(struct placer *p, int i, int64_t offset)
{
	const struct place_item *it = &p->item[i];
	p->offset[i] = offset;
	for (int s = it->seg; s < it->seg + it->nseg; s++) {
		if (p->seg[s].size == 0)
			continue;
		int last = bucket_of(p, p->seg[s].upper - 1);
		for (int k = bucket_of(p, p->seg[s].lower); k <= last; k++)
			if (!bucket_add(&p->bucket[k], s))
				return false;
	}
	return true;
}

/* The lowest offset of the tightest gap that holds item i. */
static int64_t find_gap(struct placer *p, bool first_fit)
{
	int64_t c = p->base, best = -1, slack = INT64_MAX;
	for (int k = 0; k < p->nrange; k++) {
		const struct range *r = &p->range[k];
		if (r->lo >= c && r->lo - c < slack) {
			best = c;
			slack = r->lo - c;
			if (first_fit)
				break;
		}
		if (r->hi > c)
			c = round_up(r->hi, p->align);
	}
	return best >= 0 ? best : c;
}

static int64_t top_of(const struct placer *p, int i)
{
	int64_t size = 0;
	for (int s = p->item[i].seg; s < p->item[i].seg + p->item[i].nseg; s++)
		if (p->seg[s].size > size)
			size = p->seg[s].size;
	return p->offset[i] + size;
}

/* Place all in p->order; remember the result when it is the best. Returns its height, -1 when out
 * of memory or when it cannot become the best. */
static int64_t place_all(struct placer *p, bool first_fit)
{
	int64_t height = p->base;
	for (int k = 0; k < BUCKETS; k++)
		p->bucket[k].n = 0;
	for (int i = 0; i < p->n; i++)
		if (p->item[i].fixed) {
			if (!settle(p, i, p->item[i].offset))
				goto nomem;
			int64_t top = top_of(p, i);
			height = top > height ? top : height;
		}
	for (int k = 0; k < p->n; k++) {
		int i = p->order[k];
		const struct place_item *it = &p->item[i];
		if (it->fixed)
			continue;
		p->nrange = 0;
		for (int s = it->seg; s < it->seg + it->nseg; s++)
			if (p->seg[s].size > 0 && !collect(p, s))
				goto nomem;
		if (p->nrange > 1)
			qsort(p->range, (size_t)p->nrange, sizeof *p->range, range_cmp);
		p->work += p->nrange * 4 + 4;
		if (!settle(p, i, find_gap(p, first_fit)))
			goto nomem;
		int64_t top = top_of(p, i);
		height = top > height ? top : height;
		if (height > p->best_height)
			return -1;
	}
	if (height <= p->best_height) {
		p->best_height = height;
		memcpy(p->best, p->offset, (size_t)p->n * sizeof *p->best);
		memcpy(p->best_order, p->order, (size_t)p->n * sizeof *p->order);
	}
	return height;
nomem:
	p->nomem = true;
	return -1;
}

/* What to place first, larger is earlier. */
static double key_of(const struct placer *p, int i, int rule)
{
	const struct place_item *it = &p->item[i];
	double size = 0, area = 0, life = 0;
	for (int s = it->seg; s < it->seg + it->nseg; s++) {
		double len = (double)(p->seg[s].upper - p->seg[s].lower);
		if ((double)p->seg[s].size > size)
			size = (double)p->seg[s].size;
		area += (double)p->seg[s].size * len;
		life += len;
	}
	switch (rule) {
	case 0:
		return area;
	case 1:
		return life;
	case 2:
		return size;
	case 3:
		return -(double)p->seg[it->seg].lower;
	case 4:
		return size * area;
	default:
		return area * life;
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

static void sort_order(struct placer *p, int rule)
{
	struct sorting *s = malloc(((size_t)p->n + 1) * sizeof *s);
	if (!s) {
		p->nomem = true;
		return;
	}
	for (int i = 0; i < p->n; i++)
		s[i] = (struct sorting){key_of(p, i, rule), i};
	qsort(s, (size_t)p->n, sizeof *s, sorting_cmp);
	for (int i = 0; i < p->n; i++)
		p->order[i] = s[i].index;
	free(s);
}

static bool good_enough(const struct placer *p)
{
	if (p->best_height == INT64_MAX)
		return p->nomem;
	return p->nomem || p->best_height <= p->load || p->best_height <= p->aim;
}

static uint64_t next_random(struct placer *p)
{
	p->rng ^= p->rng << 13;
	p->rng ^= p->rng >> 7;
	p->rng ^= p->rng << 17;
	return p->rng;
}

static bool meet(const struct placer *p, int i, int j)
{
	const struct place_item *a = &p->item[i], *b = &p->item[j];
	for (int s = a->seg; s < a->seg + a->nseg; s++)
		for (int t = b->seg; t < b->seg + b->nseg; t++)
			if (p->seg[s].lower < p->seg[t].upper && p->seg[t].lower < p->seg[s].upper)
				return true;
	return false;
}

static void move_forward(struct placer *p, int from, int to)
{
	int moved = p->order[from];
	memmove(p->order + to + 1, p->order + to, (size_t)(from - to) * sizeof *p->order);
	p->order[to] = moved;
}

/* Move an item that reaches the top in front of one of those, earlier in the order, that it meets
 * in time; sometimes any item instead. */
static void perturb(struct placer *p)
{
	int pick = -1, seen = 0;
	for (int k = 0; k < p->n; k++) {
		int i = p->best_order[k];
		p->offset[i] = p->best[i];
		if (!p->item[i].fixed && top_of(p, i) == p->best_height &&
			next_random(p) % (uint64_t)++seen == 0)
			pick = k;
	}
	memcpy(p->order, p->best_order, (size_t)p->n * sizeof *p->order);
	for (int moves = 1 + (int)(next_random(p) % 3); moves > 0; moves--) {
		if (pick < 0 || next_random(p) % 4 == 0)
			pick = (int)(next_random(p) % (uint64_t)p->n);
		int to = -1;
		seen = 0;
		for (int k = 0; k < pick; k++)
			if (meet(p, p->order[k], p->order[pick]) &&
				next_random(p) % (uint64_t)++seen == 0)
				to = k;
		if (to >= 0)
			move_forward(p, pick, to);
		pick = -1;
	}
}

/* The order in which a skyline grows: always the item that can lie lowest on top of what is there,
 * of several the one with the largest key. */
static void skyline_order(struct placer *p, int rule)
{
	size_t n = (size_t)p->n + 1;
	double *key = malloc(n * sizeof *key);
	int64_t *floor = malloc(n * sizeof *floor);
	int *left = malloc(n * sizeof *left), nleft = 0, placed = 0;
	if (!key || !floor || !left) {
		p->nomem = true;
	} else {
		for (int i = 0; i < p->n; i++) {
			key[i] = key_of(p, i, rule);
			floor[i] = p->base;
			left[nleft++] = i;
		}
		while (nleft > 0) {
			int best = 0;
			for (int k = 1; k < nleft; k++) {
				int i = left[k], j = left[best];
				if (floor[i] < floor[j] ||
					(floor[i] == floor[j] && key[i] > key[j]))
					best = k;
			}
			int i = left[best];
			p->order[placed++] = i;
			memmove(left + best, left + best + 1,
				(size_t)(nleft - best - 1) * sizeof *left);
			nleft--;
			p->offset[i] = floor[i];
			int64_t top = top_of(p, i);
			for (int k = 0; k < nleft; k++)
				if (floor[left[k]] < top && meet(p, i, left[k]))
					floor[left[k]] = top;
			p->work += nleft;
		}
	}
	free(key);
	free(floor);
	free(left);
}

static void search_exact(struct placer *p)
{
	int64_t height = p->best_height;
	for (int i = 0; i < p->n; i++)
		if (p->item[i].fixed)
			return;
	/* to come near an aim below the load is worth less than to reach one */
	double work = p->aim < p->load && p->exact > WORK_NEAR ? WORK_NEAR : p->exact;
	enum place_result r = place_lower(p->seg, p->nseg, p->item, p->n, p->align, p->base,
		p->load, p->aim, work, &height, p->offset);
	p->nomem = p->nomem || r == PLACE_NOMEM;
	if (r == PLACE_FOUND) {
		p->best_height = height;
		memcpy(p->best, p->offset, (size_t)p->n * sizeof *p->best);
	}
}

static void search(struct placer *p)
{
	for (int rule = 0; rule < ORDERS && !good_enough(p) && p->work < WORK_ORDERS; rule++) {
		sort_order(p, rule);
		place_all(p, false);
		if (!good_enough(p) && p->work < WORK_ORDERS)
			place_all(p, true);
	}
	for (int rule = 0; rule < ORDERS && !good_enough(p) && p->n <= SKYLINE_MAX; rule++) {
		skyline_order(p, rule);
		place_all(p, true);
		if (!good_enough(p))
			place_all(p, false);
	}
	if (!good_enough(p))
		search_exact(p);
	double each = WORK_EACH * p->n;
	double stop = p->work + (each < WORK_SEARCH ? each : WORK_SEARCH);
	while (!good_enough(p) && p->work < stop) {
		perturb(p);
		p->work += p->n;
		place_all(p, next_random(p) % 2 == 0);
	}
}

struct event {
	int64_t t, change;
};

static int event_cmp(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return (x->change > y->change) - (x->change < y->change); /* releases first */
}

static bool find_load(struct placer *p)
{
	struct event *e = malloc(((size_t)p->nseg * 2 + 1) * sizeof *e);
	if (!e)
		return false;
	for (int i = 0; i < p->nseg; i++) {
		e[2 * i] = (struct event){p->seg[i].lower, p->seg[i].size};
		e[2 * i + 1] = (struct event){p->seg[i].upper, -p->seg[i].size};
	}
	qsort(e, (size_t)p->nseg * 2, sizeof *e, event_cmp);
	int64_t live = 0, most = 0;
	for (int i = 0; i < 2 * p->nseg; i++) {
		live += e[i].change;
		most = live > most ? live : most;
	}
	p->load = p->base + most;
	p->t0 = p->nseg ? e[0].t : 0;
	int64_t end = p->nseg ? e[2 * p->nseg - 1].t : 1;
	p->width = (end - p->t0) / BUCKETS + 1;
	free(e);
	return true;
}

static bool prepare(struct placer *p, struct place_seg *rounded, const struct place_seg *seg)
{
	size_t n = (size_t)p->n + 1, m = (size_t)p->nseg + 1;
	p->item_of = malloc(m * sizeof(int));
	p->stamp = calloc(m, sizeof(int));
	p->offset = calloc(n, sizeof(int64_t));
	p->best = calloc(n, sizeof(int64_t));
	p->order = calloc(n, sizeof(int));
	p->best_order = calloc(n, sizeof(int));
	if (!rounded || !p->item_of || !p->stamp || !p->offset || !p->best || !p->order ||
		!p->best_order)
		return false;
	for (int i = 0; i < p->nseg; i++) {
		rounded[i] = seg[i];
		rounded[i].size = round_up(seg[i].size, p->align);
	}
	for (int i = 0; i < p->n; i++)
		for (int s = p->item[i].seg; s < p->item[i].seg + p->item[i].nseg; s++)
			p->item_of[s] = i;
	p->seg = rounded;
	return find_load(p);
}

enum status place_items(const struct place_seg *seg, int nseg, struct place_item *item, int n,
	int64_t align, int64_t base, int64_t aim, double work, int64_t *height, int64_t *load,
	struct diag *d)
{
	struct place_seg *rounded = malloc(((size_t)nseg + 1) * sizeof *rounded);
	struct placer *p = calloc(1, sizeof *p);
	enum status st = ST_OK;
	if (p) {
		*p = (struct placer){.item = item,
			.n = n,
			.nseg = nseg,
			.align = align,
			.base = base,
			.aim = aim,
			.exact = work,
			.best_height = INT64_MAX,
			.rng = 88172645463325252u};
		if (prepare(p, rounded, seg) && n > 0)
			search(p);
		else if (n > 0)
			p->nomem = true;
		*height = n > 0 ? p->best_height : base;
		*load = p->load;
		for (int i = 0; i < n && !p->nomem; i++)
			item[i].offset = p->best[i];
	}
	if (!p || p->nomem)
		st = diag_nomem(d);
	if (p) {
		for (int k = 0; k < BUCKETS; k++)
			free(p->bucket[k].seg);
		free(p->item_of);
		free(p->stamp);
		free(p->range);
		free(p->offset);
		free(p->best);
		free(p->order);
		free(p->best_order);
	}
	free(p);
	free(rounded);
	return st;
}
