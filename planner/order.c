/* Starting sequences in which every op runs once, and the choice among ways. */
#include "planner/solver.h"

#include <stdlib.h>
#include <string.h>

bool order_listed(struct search *x, const int *way, struct seq *q)
{
	const struct inst *in = x->in;
	if (!seq_reserve(q, in->n + 1)) {
		x->nomem = true;
		return false;
	}
	q->n = 0;
	for (int o = 0; o < in->n; o++)
		if (!in->floating[o])
			q->op[q->n++] = o;
	return simulate_clean(x, q, way, &x->s) && order_complete(x, way, q);
}

bool order_complete(struct search *x, const int *way, struct seq *q)
{
	(void)way;
	(void)q;
	return !x->nomem;
}

void pick_ways(struct search *x, int *way)
{
	const struct inst *in = x->in;
	memcpy(way, in->usable, (size_t)in->n * sizeof *way);
}
