/* Which library calls may do each node: one by a rule that no budget enters into, or all. */
#include "graph/cost.h"
#include "graph/pass.h"

/* Scratch is in proportion up to so many times the bytes of the node's own tensors, for each time
 * that the way saves: one that is twice as fast may have 5 times as much. */
static const double PROPORTION = 5;

/* All ways that the library can go, the fixed one first. */
static void choose(const struct graph *g, struct node *n, enum math math)
{
	const double own = node_bytes(n);
	double fastest = 0;
	int best = 0, found = 0, way[WAYS_MAX];
	for (int w = 0; w < WAYS_MAX; w++) {
		struct lib_call call;
		int64_t workspace;
		struct node v = *n;
		v.nway = 1;
		v.way[0] = w;
		if (!n->op->library(n, w, &call))
			continue;
		if ((call.rough && math == MATH_STRICT) ||
			!node_uses_library(g, &v, &call, &workspace))
			continue;
		way[found++] = w;
		const double most = PROPORTION * (call.speed - 1) * own;
		const bool fixed = w == 0 || (double)workspace <= most;
		if (fixed && call.speed > fastest) {
			fastest = call.speed;
			best = found - 1;
		}
	}
	n->nway = found;
	for (int i = 0; i < found; i++)
		n->way[i] = way[(best + i) % found];
	if (found > 1 && math != MATH_FREE)
		n->nway = 1;
}

void graph_choose(struct graph *g, enum math math)
{
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->op->library)
			choose(g, g->node[i], math);
}
