/* Best fit in several orders, then ejection and exact search below a capacity. Stops by a count of
 * work. */
#include "planner/placement/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/placement/packing.h"
#include "planner/placement/place_join.h"
#include "planner/placement/place_orders.h"

enum { EXACT_MAX = 2000, JOIN_MIN = 8, TRIES = 10 };
/* Limits on work, some for each item. */
static const double WORK_ORDERS = 2e8, WORK_NEAR = 3e7, WORK_TURN = 1e4, WORK_BRIEF = 3e4,
		    WORK_LEAST = 100, WORK_SMALL = 2e5, WORK_LARGE = 1e6;

struct placer {
	struct packing p;
	struct gaps g;
	const struct place_seg *seg; /* sizes rounded up */
	const struct place_item *item;
	int nseg;
	int64_t aim;            /* in units, at least the load */
	int64_t *offset, *best; /* [n] */
	int64_t best_height;
	int *order, *best_order;
	double limit;
	double spent; /* of the limit, in vain */
	bool below;   /* the aim given is below the load */
	bool joined;  /* the items are joined ones */
	bool nomem;
};

static bool done(const struct placer *p)
{
	return p->nomem || p->best_height <= p->aim;
}

static void remember(struct placer *p)
{
	int64_t height = packing_height(&p->p, p->offset);
	if (height >= p->best_height)
		return;
	p->best_height = height;
	memcpy(p->best, p->offset, (size_t)p->p.n * sizeof *p->best);
}

/* Place all in p->order; remember the result when it is the best. */
static void place_all(struct placer *p, bool first)
{
	const struct packing *k = &p->p;
	gaps_clear(&p->g);
	for (int i = 0; i < k->n; i++) {
		p->offset[i] = k->given[i];
		if (k->fixed[i] && k->tall[i] && !gaps_take(&p->g, i, k->given[i]))
			p->nomem = true;
	}
	for (int at = 0; at < k->n && !p->nomem; at++) {
		int i = p->order[at];
		if (k->fixed[i] || k->tall[i] == 0)
			continue;
		p->offset[i] = gaps_find(&p->g, i, first);
		if (p->offset[i] < 0 || !gaps_take(&p->g, i, p->offset[i]))
			p->nomem = true;
		else if (p->offset[i] + k->tall[i] >= p->best_height)
			return;
	}
	if (p->nomem)
		return;
	remember(p);
	memcpy(p->best_order, p->order, (size_t)k->n * sizeof *p->order);
}

/* First fit, then best fit, which takes longer, by each rule. What is long first leaves the fewest
 * gaps. */
static void try_orders(struct placer *p, double limit)
{
	static const int rule[ORDERS] = {1, 0, 2, 5, 4, 3};
	for (int k = 0; k < 2 * ORDERS && !done(p) && p->g.work <= limit; k++) {
		p->g.limit = k == 0 ? limit : p->g.work + limit / 4;
		p->nomem = !order_sort(&p->p, rule[k % ORDERS], p->order);
		if (!done(p))
			place_all(p, k < ORDERS);
	}
	p->g.limit = INFINITY;
}

static void try_skylines(struct placer *p)
{
	for (int rule = 0; rule < ORDERS && !done(p); rule++) {
		p->nomem = !order_skyline(&p->p, rule, p->order);
		if (!done(p))
			place_all(p, true);
		if (!done(p))
			place_all(p, false);
	}
}

static bool try_eject(
	struct placer *p, const int *order, int64_t capacity, int variant, double work)
{
	enum place_result r = place_eject(&p->p, order, capacity, variant, work, p->offset);
	p->nomem = p->nomem || r == PLACE_NOMEM;
	if (!p->nomem)
		remember(p);
	p->spent += r == PLACE_FOUND ? 0 : work;
	return r == PLACE_FOUND;
}

/* Variants in turn, longer and longer, from the order by area or the best one. */
static void eject_in_turn(struct placer *p, double work)
{
	double each = WORK_TURN * p->p.n;
	if (done(p))
		return;
	p->nomem = p->nomem || !order_sort(&p->p, 0, p->order);
	for (int turn = 0; !done(p) && work > 0; turn++) {
		double w = fmin(work, each * (1 + turn / 4));
		try_eject(p, turn / 2 % 2 ? p->best_order : p->order, p->aim, turn, w);
		work -= w;
	}
}

static void try_exact(struct placer *p, double work)
{
	int64_t align = p->p.align;
	if (p->p.any_fixed || done(p))
		return;
	int64_t height = p->best_height * align;
	enum place_result r = place_lower(p->seg, p->nseg, p->item, p->p.n, align,
		p->p.base * align, p->p.load * align, p->aim * align, work, &height, p->offset);
	p->nomem = r == PLACE_NOMEM;
	p->spent += r == PLACE_FOUND && height <= p->aim * align ? 0 : work;
	if (r != PLACE_FOUND)
		return;
	for (int i = 0; i < p->p.n; i++)
		p->offset[i] /= align;
	remember(p);
}

/* Heights between the aim and the best known: up while it fails, down again when it succeeds. */
static void approach(struct placer *p, double work)
{
	int64_t low = p->aim, step = (p->best_height - low) / 16 + 1;
	if (done(p) || work / TRIES < WORK_LEAST * p->p.n)
		return;
	p->nomem = p->nomem || !order_sort(&p->p, 0, p->order);
	for (int k = 0; k < TRIES && !done(p) && low + step < p->best_height; k++) {
		if (try_eject(p, p->order, low + step, 0, work / TRIES)) {
			step = (p->best_height - low) / 4 + 1;
		} else {
			low += step;
			step *= 2;
		}
	}
}

/* What fits together without waste as one: few are left where the buffers fill a box. */
static void try_joined(struct placer *p)
{
	struct joined j = {0};
	if (done(p) || p->joined || p->p.n < JOIN_MIN)
		return;
	bool ok = join_items(&p->p, &j);
	if (ok && j.n <= p->p.n / 4) {
		int64_t height;
		double work = p->limit / 4;
		ok = place_part(j.seg, j.n, j.item, j.n,
			(struct place_goal){1, p->p.base, p->aim, p->below, true}, &work, &height);
		if (ok)
			join_offsets(&p->p, &j, p->offset);
		if (ok)
			remember(p);
	}
	p->nomem = !ok;
	join_free(&j);
}

/* Ejection and the exact search each solve much that the other does not. */
static void search(struct placer *p)
{
	/* to come near an aim below the load is worth less than to reach one */
	double work = p->below && p->limit > WORK_NEAR ? WORK_NEAR : p->limit, n = p->p.n;
	bool small = n <= EXACT_MAX;
	try_orders(p, fmin(WORK_ORDERS, 3 * p->limit));
	try_joined(p);
	eject_in_turn(p, fmin(work, n * (small ? WORK_TURN : WORK_LARGE)));
	if (small) {
		try_skylines(p);
		try_exact(p, fmin(work, n * WORK_BRIEF));
		eject_in_turn(p, fmin(work, n * WORK_BRIEF));
		try_exact(p, work);
		eject_in_turn(p, fmin(work / 2, n * WORK_SMALL));
	}
	approach(p, work / 4);
}

static bool prepare(struct placer *p, const struct place_seg *seg, int64_t aim)
{
	size_t n = (size_t)p->p.n + 1;
	p->offset = calloc(n, sizeof *p->offset);
	p->best = calloc(n, sizeof *p->best);
	p->order = calloc(n, sizeof *p->order);
	p->best_order = calloc(n, sizeof *p->best_order);
	struct place_seg *rounded = malloc(((size_t)p->nseg + 1) * sizeof *rounded);
	p->seg = rounded;
	if (!p->offset || !p->best || !p->order || !p->best_order || !rounded)
		return false;
	for (int i = 0; i < p->nseg; i++) {
		rounded[i] = seg[i];
		rounded[i].size = (seg[i].size + p->p.align - 1) / p->p.align * p->p.align;
	}
	p->aim = aim / p->p.align > p->p.load ? aim / p->p.align : p->p.load;
	p->best_height = INT64_MAX;
	return true;
}

bool place_part(const struct place_seg *seg, int nseg, struct place_item *item, int n,
	struct place_goal goal, double *work, int64_t *height)
{
	struct placer p = {.item = item,
		.nseg = nseg,
		.limit = *work,
		.below = goal.below,
		.joined = goal.joined};
	bool ok = packing_init(&p.p, seg, nseg, item, n, goal.align, goal.base) &&
		  gaps_init(&p.g, &p.p) && prepare(&p, seg, goal.aim);
	if (ok)
		search(&p);
	ok = ok && !p.nomem;
	for (int i = 0; i < n && ok; i++)
		if (!item[i].fixed)
			item[i].offset = p.best[i] * goal.align;
	*height = ok ? p.best_height * goal.align : 0;
	*work = p.limit - p.spent > 0 ? p.limit - p.spent : 0;
	free((void *)(uintptr_t)p.seg);
	free(p.offset);
	free(p.best);
	free(p.order);
	free(p.best_order);
	gaps_free(&p.g);
	packing_free(&p.p);
	return ok;
}
