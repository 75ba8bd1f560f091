/* Dropping recomputations that turn out not to be needed. */
#include "planner/search/search.h"

#include <stdlib.h>

struct extra {
	double cost;
	int run;
};

static int extra_cmp(const void *a, const void *b)
{
	const struct extra *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

/* Something is left without one of the op's runs. */
static bool has_extra(const struct state *s, int o)
{
	return o >= 0 && (s->count[o] > 1 || s->in->p->op[o].fetches);
}

/* The runs of ops that run more than once, and fetches, dearest first. */
static int find_extras(const struct state *s, int from, int to, struct extra *e)
{
	int n = 0;
	for (int i = from; i <= to; i++) {
		int r = s->at[i], o = r < 0 ? -1 : s->run[r].op;
		if (has_extra(s, o))
			e[n++] = (struct extra){s->in->way[o][s->way[o]].cost, r};
	}
	qsort(e, (size_t)n, sizeof *e, extra_cmp);
	return n;
}

/* Without the run the state fits still, and costs no more. */
static bool drop(struct state *s, int run)
{
	int mark = state_mark(s);
	double cost = s->cost;
	state_take(s, run);
	state_clean(s);
	if (state_fits(s) && s->cost <= cost)
		return true;
	state_undo(s, mark);
	return false;
}

void polish(struct search *x, struct state *s, int from, int to)
{
	from = from < 0 ? 0 : from;
	to = to > s->nslot - 1 ? s->nslot - 1 : to;
	struct extra *e = malloc(((size_t)(to - from) + 2) * sizeof *e);
	if (!e) {
		x->nomem = true;
		return;
	}
	for (bool again = true; again && !search_done(x);) {
		again = false;
		int n = find_extras(s, from, to, e);
		x->work += 0.1 * (to - from) + n;
		for (int i = 0; i < n && !search_done(x); i++) {
			int o = s->run[e[i].run].op;
			if (has_extra(s, o))
				again = drop(s, e[i].run) || again;
		}
	}
	free(e);
	x->nomem = x->nomem || s->nomem;
}
