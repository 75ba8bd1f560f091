/* Minimum cut by Dinic's algorithm, real capacities. Private to planner/. */
#ifndef STINT_PLANNER_MINCUT_H
#define STINT_PLANNER_MINCUT_H

#include "base/base.h"

#define MINCUT_INFINITE 1e200

struct mincut_arc {
	int to, next;
	double room;
};

struct mincut {
	struct mincut_arc *arc; /* arc i ^ 1 is the reverse of arc i */
	int narc, cap_arc;
	int *head, *level, *at, *queue; /* [node] */
	int nnode, cap_node;
	bool failed; /* out of memory; results do not hold */
};

void mincut_clear(struct mincut *c);
void mincut_free(struct mincut *c);
int mincut_node(struct mincut *c);
void mincut_edge(struct mincut *c, int from, int to, double capacity);
/* The greatest flow found; at most the capacity of the least cut. */
double mincut_flow(struct mincut *c, int source, int sink);
/* After mincut_flow: whether the node is on the source's side. */
bool mincut_side(const struct mincut *c, int node);

#endif
