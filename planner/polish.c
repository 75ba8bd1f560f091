/* Dropping recomputations that turn out not to be needed. */
#include "planner/solver.h"

#include <stdlib.h>

struct extra {
	double cost;
	int at;
};

static int extra_cmp(const void *a, const void *b)
{
	const struct extra *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The runs of ops that run more than once, dearest first. */
static int find_extras(struct search *x, const struct seq *q, const int *way, struct extra *e)
{
	int n = 0;
	for (int o = 0; o < x->in->n; o++)
		x->count[o] = 0;
	for (int i = 0; i < q->n; i++)
		x->count[q->op[i]]++;
	for (int i = 0; i < q->n; i++)
		if (x->count[q->op[i]] > 1)
			e[n++] = (struct extra){x->in->way[q->op[i]][way[q->op[i]]].cost, i};
	qsort(e, (size_t)n, sizeof *e, extra_cmp);
	return n;
}

static bool runs_again(const struct seq *q, int at)
{
	int n = 0;
	for (int i = 0; i < q->n && n < 2; i++)
		n += q->op[i] == q->op[at];
	return n >= 2;
}

void polish(struct search *x, struct seq *q, const int *way)
{
	struct extra *e = malloc(((size_t)q->n + 1) * sizeof *e);
	if (!e) {
		x->nomem = true;
		return;
	}
	bool again = simulate(x, q, way, &x->s);
	while (again && !search_done(x)) {
		again = false;
		int n = find_extras(x, q, way, e);
		for (int i = 0; i < n && !search_done(x); i++) {
			if (!runs_again(q, e[i].at))
				continue;
			if (!seq_copy(&x->tmp, q))
				break;
			seq_erase(&x->tmp, e[i].at);
			if (!simulate_clean(x, &x->tmp, way, &x->s2) || x->s2.excess > 0)
				continue;
			int gone = q->n - x->tmp.n;
			seq_copy(q, &x->tmp);
			if (gone > 1) { /* positions changed in several places */
				again = true;
				break;
			}
			for (int j = i + 1; j < n; j++)
				e[j].at -= e[j].at > e[i].at;
			again = true;
		}
	}
	free(e);
	simulate(x, q, way, &x->s);
}
