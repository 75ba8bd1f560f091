/* What no plan can cost less than.
 *
 * Take the step at which an op runs for the first time. All its ancestors have run before;
 * all its descendants run later. What those read of the ancestors' tensors is live at that step or
 * is made again later, by runs that come on top of the first ones. With x = stored and y = run
 * again this is: minimise the cost of y, with (x or y) for all that is read later, y implies (x or
 * y) for its inputs, and the bytes of x within what the op itself leaves of the budget. For each
 * multiplier on that last condition it is a minimum cut (Lagrange), and each multiplier gives a
 * bound.
 *
 * A tensor that may be fetched from the host can instead be that, for the cost of both transfers:
 * they come on top of the first runs too. So its price is at most that cost.
 *
 * Where an op has several ways, only what all of them read counts, at the cheapest cost; optional
 * ops need not run. A feasible flow is a lower bound of the cut, so rounding errs on the safe side.
 */
#include "planner/bounds/bounds.h"
#include "planner/bounds/mincut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool way_reads(const struct way *w, int t)
{
	for (int k = 0; k < w->nin; k++)
		if (w->in[k] == t)
			return true;
	return false;
}

/* Whether every way of o reads the k-th input of its first way. */
bool bound_always_reads(const struct inst *in, int o, int k)
{
	for (int c = 1; c < in->nway[o]; c++)
		if (!way_reads(&in->way[o][c], in->way[o][0].in[k]))
			return false;
	return true;
}

bool bound_reads(const struct inst *in, int o, int t)
{
	for (int c = 0; c < in->nway[o]; c++)
		if (way_reads(&in->way[o][c], t))
			return true;
	return false;
}

/* Bytes for inputs, outputs and workspace of o, at least. */
int64_t bound_own_bytes(const struct inst *in, int o)
{
	int64_t least = INT64_MAX;
	for (int c = 0; c < in->nway[o]; c++) {
		const struct way *w = &in->way[o][c];
		int64_t sum = w->ws;
		for (int k = 0; k < w->nin; k++)
			sum += in->size[w->in[k]];
		for (int k = 0; k < w->nout; k++) {
			bool pair = false;
			for (int i = 0; i < w->npair; i++)
				pair = pair || w->pair[i].out == w->out[k];
			sum += pair ? 0 : in->size[w->out[k]];
		}
		least = sum < least ? sum : least;
	}
	return least;
}

double bound_room(const struct inst *in, int o, int64_t budget)
{
	/* the buffer at the top needs not be rounded up */
	return (double)(budget - in->held - bound_own_bytes(in, o) + in->slack);
}

int64_t bound_survive(const struct inst *in, int o, int t)
{
	const struct way *w = &in->way[o][0];
	int64_t sum = 0;
	if (in->nway[o] > 1)
		return 0;
	for (int k = 0; k < w->nout; k++) {
		bool here = false, elsewhere = false;
		for (int i = 0; i < w->npair; i++) {
			here = here || (w->pair[i].out == w->out[k] && w->pair[i].in == t);
			elsewhere = elsewhere ||
				    (w->pair[i].out == w->out[k] && w->pair[i].in != t);
		}
		sum += here && !elsewhere ? in->size[w->out[k]] : 0;
	}
	return sum;
}

struct bounder {
	const struct inst *in;
	bool *before, *after; /* [n] ancestors, descendants of the op at hand */
	bool *needed;         /* [m] */
	bool *own;            /* [m] inputs of the op: there for free */
	int *node;            /* [n] and, from n on, [m]: nodes of the cut */
	int *run;             /* [n] each op's node, or -1 */
	struct mincut cut;
	int source, sink;
	bool *again; /* [n] what the last solution that fits runs again */
	bool fits;
	/* out */
	int best_op;
	struct arena *a;
	struct bound_seed *seed;
	int nseed;
};

static void relatives(struct bounder *b, int at)
{
	const struct inst *in = b->in;
	memset(b->before, 0, (size_t)in->n * sizeof *b->before);
	memset(b->after, 0, (size_t)in->n * sizeof *b->after);
	b->before[at] = b->after[at] = true;
	for (int o = at; o >= 0; o--)
		for (int k = 0; b->before[o] && k < in->way[o][0].nin; k++)
			if (bound_always_reads(in, o, k))
				b->before[in->p->tensor[in->way[o][0].in[k]].producer] = true;
	for (int o = at + 1; o < in->n; o++)
		for (int k = 0; !in->optional[o] && k < in->way[o][0].nin; k++)
			if (bound_always_reads(in, o, k) &&
				b->after[in->p->tensor[in->way[o][0].in[k]].producer])
				b->after[o] = true;
	b->before[at] = false;
}

/* What is read after the first run of `at`; returns the bytes of it that are not `at`'s own. */
static double find_needed(struct bounder *b, int at)
{
	const struct inst *in = b->in;
	double bytes = 0;
	memset(b->needed, 0, (size_t)in->m * sizeof *b->needed);
	memset(b->own, 0, (size_t)in->m * sizeof *b->own);
	for (int c = 0; c < in->nway[at]; c++)
		for (int k = 0; k < in->way[at][c].nin; k++)
			b->own[in->way[at][c].in[k]] = true;
	for (int o = at + 1; o < in->n; o++)
		for (int k = 0; b->after[o] && k < in->way[o][0].nin; k++)
			if (bound_always_reads(in, o, k))
				b->needed[in->way[o][0].in[k]] = true;
	for (int t = 0; t < in->m; t++) {
		int p = in->p->tensor[t].producer;
		b->needed[t] = (b->needed[t] || in->keep[t]) && p >= 0 && b->before[p] &&
			       !b->own[t];
		bytes += b->needed[t] ? (double)in->size[t] : 0;
	}
	return bytes;
}

static int tensor_node(struct bounder *b, int t)
{
	int *node = &b->node[b->in->n + t];
	if (*node < 0) {
		*node = mincut_node(&b->cut); /* needed */
		mincut_node(&b->cut);         /* not stored */
	}
	return *node;
}

double bound_cheapest(const struct inst *in, int o)
{
	double least = in->way[o][0].cost;
	for (int c = 1; c < in->nway[o]; c++)
		least = in->way[o][c].cost < least ? in->way[o][c].cost : least;
	return least;
}

/* The network but for the multiplier: capacities of stored tensors are set by set_price. */
static void build(struct bounder *b)
{
	const struct inst *in = b->in;
	mincut_clear(&b->cut);
	for (int i = 0; i < in->n + in->m; i++)
		b->node[i] = -1;
	for (int i = 0; i < in->n; i++)
		b->run[i] = -1;
	b->source = mincut_node(&b->cut);
	b->sink = mincut_node(&b->cut);
	for (int t = 0; t < in->m; t++)
		if (b->needed[t])
			mincut_edge(&b->cut, b->source, tensor_node(b, t), MINCUT_INFINITE);
	/* ops in reverse order: all that reads a tensor comes before its producer */
	for (int o = in->n - 1; o >= 0; o--) {
		const struct way *w = &in->way[o][0];
		if (!b->before[o])
			continue;
		int op = -1;
		for (int c = 0; c < in->nway[o]; c++)
			for (int k = 0; k < in->way[o][c].nout; k++) {
				int t = in->way[o][c].out[k];
				if (b->node[in->n + t] < 0)
					continue;
				if (op < 0) {
					op = b->run[o] = mincut_node(&b->cut);
					mincut_edge(&b->cut, op, b->sink,
						in->once[o] ? MINCUT_INFINITE
							    : bound_cheapest(in, o));
				}
				mincut_edge(&b->cut, b->node[in->n + t] + 1, op, MINCUT_INFINITE);
			}
		for (int k = 0; op >= 0 && !in->once[o] && k < w->nin; k++)
			if (bound_always_reads(in, o, k) && !b->own[w->in[k]])
				mincut_edge(&b->cut, op, tensor_node(b, w->in[k]), MINCUT_INFINITE);
	}
}

/* What it costs to hold t at this price, and at most to fetch it. */
static double hold_price(const struct inst *in, int t, double price)
{
	const double held = price * (double)in->size[t];
	if (in->fetch[t] < 0)
		return held;
	const double moved = in->way[in->fetch[t]][0].cost + in->way[in->away[t]][0].cost;
	return moved < held ? moved : held;
}

/* The bound with `price` a byte; *stored out: the bytes that its solution stores. */
static double price_bound(struct bounder *b, double price, double room, double *stored)
{
	const struct inst *in = b->in;
	build(b);
	for (int t = 0; t < in->m; t++)
		if (b->node[in->n + t] >= 0) {
			int v = b->node[in->n + t];
			mincut_edge(&b->cut, v, v + 1, hold_price(in, t, price));
		}
	double flow = mincut_flow(&b->cut, b->source, b->sink);
	*stored = 0;
	for (int t = 0; t < in->m; t++) {
		int v = b->node[in->n + t];
		if (v >= 0 && mincut_side(&b->cut, v) && !mincut_side(&b->cut, v + 1) &&
			hold_price(in, t, price) >= price * (double)in->size[t])
			*stored += (double)in->size[t];
	}
	return flow - price * room;
}

static void note_solution(struct bounder *b)
{
	for (int o = 0; o < b->in->n; o++)
		b->again[o] = b->run[o] >= 0 && mincut_side(&b->cut, b->run[o]);
	b->fits = true;
}

/* Keep the solution noted for op `at` as a seed, unless there is one like it. */
static void keep_seed(struct bounder *b, int at)
{
	size_t n = (size_t)b->in->n;
	if (!b->fits || b->nseed == BOUND_SEEDS)
		return;
	for (int i = 0; i < b->nseed; i++)
		if (memcmp(b->seed[i].again, b->again, n * sizeof *b->again) == 0)
			return;
	bool *again = ARENA_ARRAY(b->a, bool, b->in->n + 1);
	if (!again) {
		b->cut.failed = true;
		return;
	}
	memcpy(again, b->again, n * sizeof *again);
	b->seed[b->nseed++] = (struct bound_seed){at, again};
}

/* The best bound over multipliers: grow until what is stored fits, then halve between. */
static double op_bound(struct bounder *b, int at, double room)
{
	relatives(b, at);
	double bytes = find_needed(b, at);
	if (bytes <= room || room < 0)
		return 0;
	b->fits = false;
	double lo = 0, hi = 4 * b->in->once_cost / bytes / 100, best = 0, stored = bytes;
	for (int i = 0; i < 30 && stored > room; i++) {
		double v = price_bound(b, hi, room, &stored);
		best = v > best ? v : best;
		if (stored > room) {
			lo = hi;
			hi *= 4;
		} else {
			note_solution(b);
		}
	}
	for (int i = 0; i < 14 && stored < 1e300 && hi - lo > 1e-3 * hi; i++) {
		double mid = lo > 0 ? (lo + hi) / 2 : hi / 4;
		double v = price_bound(b, mid, room, &stored);
		best = v > best ? v : best;
		if (stored > room) {
			lo = mid;
		} else {
			hi = mid;
			note_solution(b);
		}
	}
	return best;
}

/* Beyond SAMPLE_ALL ops only some are looked at. */
enum { SAMPLE_ALL = 1500, SAMPLES = 100, SAMPLES_NEAR = 8 };

struct critical {
	int op;
	double excess;
};

static int critical_cmp(const void *a, const void *b)
{
	const struct critical *x = a, *y = b;
	if (x->excess != y->excess)
		return x->excess > y->excess ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

/* By how much op o's moment lacks room; remembered in known[], INFINITY where not looked at. */
static double excess_at(struct bounder *b, int o, int64_t budget, double *known)
{
	if (known[o] == INFINITY) {
		relatives(b, o);
		known[o] = b->in->optional[o] ? -INFINITY
					      : find_needed(b, o) - bound_room(b->in, o, budget);
	}
	return known[o];
}

/* The ops whose moments lack most, worst first: all ops of small problems; of large ones, some at
 * equal distances, then closer and closer to the worst. */
static int find_critical(struct bounder *b, int64_t budget, struct critical *c, double *known)
{
	const struct inst *in = b->in;
	int n = 0, step = in->n <= SAMPLE_ALL ? 1 : in->n / SAMPLES;
	for (int o = 0; o < in->n; o++)
		known[o] = INFINITY;
	for (int o = 0; o < in->n; o += step)
		excess_at(b, o, budget, known);
	for (; step > 1; step = (step + SAMPLES_NEAR - 1) / SAMPLES_NEAR) {
		int near = (step + SAMPLES_NEAR - 1) / SAMPLES_NEAR;
		int worst = 0;
		for (int o = 0; o < in->n; o++)
			if (known[o] < INFINITY && known[o] > known[worst])
				worst = o;
		for (int k = -2 * SAMPLES_NEAR; k <= 2 * SAMPLES_NEAR; k++)
			if (worst + k * near >= 0 && worst + k * near < in->n)
				excess_at(b, worst + k * near, budget, known);
	}
	for (int o = 0; o < in->n; o++)
		if (known[o] < INFINITY && known[o] > 0)
			c[n++] = (struct critical){o, known[o]};
	qsort(c, (size_t)n, sizeof *c, critical_cmp);
	return n;
}

static double best_bound(struct bounder *b, int64_t budget, struct critical *c, double *known)
{
	const struct inst *in = b->in;
	int n = find_critical(b, budget, c, known);
	int most = in->n <= 300 ? 24 : in->n <= 800 ? 12 : in->n <= 3000 ? 4 : 1;
	double best = 0;
	for (int i = 0; i < n && i < most && !b->cut.failed; i++) {
		double v = op_bound(b, c[i].op, bound_room(in, c[i].op, budget));
		if (v > best && v < 1e200) {
			best = v;
			b->best_op = c[i].op;
		}
		keep_seed(b, c[i].op);
	}
	return best;
}

/* The greatest number of which all costs are multiples, nearly; 0 when there is none worth it. */
static double cost_unit(const struct inst *in)
{
	double unit = 0, most = 0;
	for (int o = 0; o < in->n; o++)
		for (int c = 0; c < in->nway[o]; c++) {
			double a = in->way[o][c].cost, b = unit;
			most = a > most ? a : most;
			while (b > 1e-7 * most) {
				double rest = a - floor(a / b + 1e-6) * b;
				a = b;
				b = rest;
			}
			unit = a;
		}
	if (unit > 0)
		unit = most / round(most / unit); /* without the steps' rounding */
	for (int o = 0; o < in->n; o++)
		for (int c = 0; c < in->nway[o]; c++) {
			double k = in->way[o][c].cost / unit;
			if (!(fabs(k - round(k)) <= 1e-10 * k))
				return 0;
		}
	return unit > 1e-6 * in->once_cost ? unit : 0;
}

double bound_round(const struct inst *in, double bound)
{
	double unit = cost_unit(in);
	if (unit <= 0 || !(bound < 1e12 * unit))
		return bound;
	double k = bound / unit, up = ceil(k - 1e-9 * k - 1e-6) * unit * (1 - 1e-9);
	return up > bound ? up : bound;
}

/* Room for a bounder's tables in `tmp`. */
static bool bounder_init(struct bounder *b, struct arena *tmp)
{
	int n = b->in->n, m = b->in->m;
	b->best_op = -1;
	b->before = ARENA_ARRAY(tmp, bool, n + 1);
	b->after = ARENA_ARRAY(tmp, bool, n + 1);
	b->needed = ARENA_ARRAY(tmp, bool, m + 1);
	b->own = ARENA_ARRAY(tmp, bool, m + 1);
	b->run = ARENA_ARRAY(tmp, int, n + 1);
	b->again = ARENA_ARRAY(tmp, bool, n + 1);
	b->node = ARENA_ARRAY(tmp, int, (int64_t)n + m + 1);
	return b->before && b->after && b->needed && b->own && b->run && b->again && b->node;
}

/* *op out: the one whose moment gives the bound, or -1. */
static enum status single_bound(const struct inst *in, int64_t budget, double *bound, int *op,
	struct arena *a, struct bound_seed *seed, int *nseed, struct diag *d)
{
	struct arena *tmp = arena_new();
	struct bounder b = {.in = in, .a = a, .seed = seed, .nseed = a ? 0 : BOUND_SEEDS};
	enum status st = ST_OK;
	*bound = in->once_cost;
	struct critical *c = tmp ? ARENA_ARRAY(tmp, struct critical, in->n + 1) : NULL;
	double *known = tmp ? ARENA_ARRAY(tmp, double, in->n + 1) : NULL;
	if (!c || !known || !bounder_init(&b, tmp))
		st = diag_nomem(d);
	else if (budget < INT64_MAX)
		*bound += best_bound(&b, budget, c, known) * (1 - 1e-9);
	if (b.cut.failed)
		st = diag_nomem(d);
	*nseed = b.nseed;
	*op = b.best_op;
	mincut_free(&b.cut);
	arena_free(tmp);
	return st;
}

enum status bound_cost(const struct inst *in, int64_t budget, double *bound, struct arena *a,
	struct bound_seed *seed, int *nseed, struct diag *d)
{
	int op;
	return single_bound(in, budget, bound, &op, a, seed, nseed, d);
}

enum { CUTS_A_ROUND = 4, SAME_MOST = 3, STEPS_MAX = 20000, TERMS_MAX = 150000 };
static const double WORK_PATH = 1e8;

/* Add cuts while that helps, then branch; where that ends, add what its solution lacks, unless the
 * last additions have not changed where branching ends. */
static void path_bound(struct path *p, double target, double effort, double *bound)
{
	double ended = 0;
	int same = 0;
	p->work = WORK_PATH * effort;
	bool more = path_build(p, TERMS_MAX);
	while (more && p->work > 0 && *bound < target && !onlooker_stops(p->in->onlooker)) {
		lp_solve(&p->lp,
			(int)(p->work / p->lp.nrow < STEPS_MAX ? p->work / p->lp.nrow : STEPS_MAX));
		p->work -= (p->lp.effort + 20) * p->lp.nrow;
		double v = bound_round(p->in, p->lp.bound);
		*bound = v > *bound ? v : *bound;
		if (*bound >= target || !p->lp.solved)
			return;
		more = path_extend(p, CUTS_A_ROUND, PATH_PLAIN) > 0;
		if (!more) {
			v = tree_bound(p, target, &more);
			*bound = v > *bound ? v : *bound;
			same = v > ended * (1 + 1e-9) ? 0 : same + 1;
			more = more && same < SAME_MOST;
			ended = v;
			more = more && (path_extend(p, CUTS_A_ROUND, PATH_DEEP) > 0 ||
					       path_extend(p, CUTS_A_ROUND / 2, PATH_DEEPER) > 0);
		}
		more = more && path_build(p, TERMS_MAX);
	}
}

enum status bound_raise(const struct inst *in, int64_t budget, double target, double effort,
	double *bound, bool *more, struct diag *d)
{
	int op, nseed;
	double single;
	*more = false;
	if (budget == INT64_MAX)
		return ST_OK;
	TRY(single_bound(in, budget, &single, &op, NULL, NULL, &nseed, d));
	*bound = single > *bound ? single : *bound;
	if (op < 0 || *bound >= target)
		return ST_OK;
	struct arena *tmp = arena_new();
	struct path p = {0};
	if (!tmp || !path_init(&p, tmp, in, budget)) {
		arena_free(tmp);
		return diag_nomem(d);
	}
	p.cut[++p.ncut] = op;
	double v = *bound;
	path_bound(&p, target * (1 - 5e-10), effort, &v);
	*more = p.work <= 0;
	enum status st = p.failed ? diag_nomem(d) : ST_OK;
	if (st == ST_OK && v * (1 - 1e-12) > *bound)
		*bound = v * (1 - 1e-12);
	path_free(&p);
	arena_free(tmp);
	return st;
}
