/* Bytes that no plan can do with less of.
 *
 * Each op needs its inputs, outputs and workspace at once, less what may be in place; and at the
 * end there is all that is kept. Further back: let all tensors of a set L be live at one moment,
 * and let p be the op that ran last, before it, among those that made the copies in L. When p ran,
 * the rest of L was live already, beside what p itself needs; an input of p that is in L stays, so
 * that outputs that could have lain in nothing but its place need their own. And just before, the
 * inputs of p and the rest of L were live: again such a set. Which op of L ran last is unknown: any
 * of their makers. So a plan needs at least the least, over all choices, of the most met on the way
 * back. A tensor that can be fetched has two makers, and a fetch needs nothing but its result. The
 * way back ends where nothing but residents is left; where we give up, we count nothing.
 *
 * Of ops with several ways only what all ways read counts. */
#include "planner/bounds/bounds.h"

#include <string.h>

enum { LIVE_MAX = 48, DEPTH_MAX = 40, STEPS_MAX = 400 };

struct live {
	int t[LIVE_MAX], n;
};

struct search_back {
	const struct inst *in;
	int64_t enough; /* what is proven already: less is of no interest */
	int steps;
};

static bool live_has(const struct live *l, int t)
{
	for (int i = 0; i < l->n; i++)
		if (l->t[i] == t)
			return true;
	return false;
}

/* False when the set is too large. */
static bool live_add(const struct inst *in, struct live *l, int t)
{
	if (in->res[t] || in->size[t] == 0 || live_has(l, t))
		return true;
	if (l->n == LIVE_MAX)
		return false;
	l->t[l->n++] = t;
	return true;
}

static bool live_add_inputs(const struct inst *in, struct live *l, int o)
{
	for (int k = 0; k < in->way[o][0].nin; k++)
		if (bound_always_reads(in, o, k) && !live_add(in, l, in->way[o][0].in[k]))
			return false;
	return true;
}

/* Bytes live when p runs and makes what it makes of `l`, the rest of which is there. */
static int64_t bytes_at(const struct inst *in, const struct live *l, int p)
{
	int64_t sum = bound_own_bytes(in, p);
	for (int i = 0; i < l->n; i++) {
		int t = l->t[i];
		if (bound_makes(in, p, t))
			continue;
		sum += bound_reads(in, p, t) ? bound_survive(in, p, t) : in->size[t];
	}
	return sum;
}

static int64_t least_back(struct search_back *s, const struct live *l, int depth)
{
	const struct inst *in = s->in;
	int64_t best = INT64_MAX;
	int tried[2 * LIVE_MAX], ntried = 0;
	if (l->n == 0 || depth == 0 || s->steps <= 0)
		return 0;
	s->steps--;
	while (best > s->enough) {
		/* the maker that needs least, first */
		int pick = -1;
		int64_t least = best;
		for (int i = 0; i < 2 * l->n; i++) {
			int t = l->t[i / 2], p = i % 2 ? in->fetch[t] : bound_producer(in, t);
			bool done = p < 0;
			for (int k = 0; k < ntried; k++)
				done = done || tried[k] == p;
			int64_t need = done ? INT64_MAX : bytes_at(in, l, p);
			if (need < least) {
				least = need;
				pick = p;
			}
		}
		if (pick < 0)
			break;
		tried[ntried++] = pick;
		struct live next = {.n = 0};
		for (int i = 0; i < l->n; i++)
			if (!bound_makes(in, pick, l->t[i]))
				next.t[next.n++] = l->t[i];
		int64_t v = live_add_inputs(in, &next, pick) ? least_back(s, &next, depth - 1) : 0;
		v = v > least ? v : least;
		best = v < best ? v : best;
	}
	return best == INT64_MAX ? 0 : best;
}

/* Raise `most` to what is needed for all tensors of `l` to be live. */
static int64_t raise(const struct inst *in, const struct live *l, int64_t most)
{
	struct search_back s = {.in = in, .enough = most, .steps = STEPS_MAX};
	int64_t v = least_back(&s, l, DEPTH_MAX);
	return v > most ? v : most;
}

int64_t bound_bytes(const struct inst *in)
{
	int64_t most = 0, kept = 0;
	for (int o = 0; o < in->n; o++) {
		int64_t own = in->optional[o] ? 0 : bound_own_bytes(in, o);
		most = own > most ? own : most;
	}
	for (int t = 0; t < in->m; t++)
		kept += in->keep[t] ? in->size[t] : 0;
	most = kept > most ? kept : most;
	for (int o = 0; o < in->n; o++) {
		struct live l = {.n = 0};
		if (!in->optional[o] && live_add_inputs(in, &l, o))
			most = raise(in, &l, most);
	}
	struct live l = {.n = 0};
	bool fits = true;
	for (int t = 0; t < in->m; t++)
		fits = fits && (!in->keep[t] || live_add(in, &l, t));
	most = fits ? raise(in, &l, most) : most;
	/* the buffer at the top needs not be rounded up */
	return most + in->held - in->slack;
}
