#include "planner/bounds/mincut.h"

#include <stdlib.h>
#include <string.h>

/* Arcs with less room than this share of the sink's capacities count as full. */
static const double FULL = 1e-13;

void mincut_clear(struct mincut *c)
{
	c->narc = c->nnode = 0;
}

void mincut_free(struct mincut *c)
{
	free(c->arc);
	free(c->head);
	free(c->level);
	free(c->at);
	free(c->queue);
	*c = (struct mincut){0};
}

static bool grow_nodes(struct mincut *c)
{
	int cap = c->cap_node * 2 + 64;
	int **list[] = {&c->head, &c->level, &c->at, &c->queue};
	for (int i = 0; i < 4; i++) {
		int *p = realloc(*list[i], (size_t)cap * sizeof *p);
		if (!p)
			return false;
		*list[i] = p;
	}
	c->cap_node = cap;
	return true;
}

int mincut_node(struct mincut *c)
{
	if (c->nnode == c->cap_node && !grow_nodes(c)) {
		c->failed = true;
		return 0;
	}
	c->head[c->nnode] = -1;
	return c->nnode++;
}

static void add_arc(struct mincut *c, int from, int to, double room)
{
	c->arc[c->narc] = (struct mincut_arc){.to = to, .next = c->head[from], .room = room};
	c->head[from] = c->narc++;
}

void mincut_edge(struct mincut *c, int from, int to, double capacity)
{
	if (c->failed)
		return;
	if (c->narc + 2 > c->cap_arc) {
		int cap = c->cap_arc * 2 + 256;
		struct mincut_arc *p = realloc(c->arc, (size_t)cap * sizeof *p);
		if (!p) {
			c->failed = true;
			return;
		}
		c->arc = p;
		c->cap_arc = cap;
	}
	add_arc(c, from, to, capacity);
	add_arc(c, to, from, 0);
}

static bool find_levels(struct mincut *c, int source, int sink, double full)
{
	int n = 0;
	for (int i = 0; i < c->nnode; i++)
		c->level[i] = -1;
	c->level[source] = 0;
	c->queue[n++] = source;
	for (int i = 0; i < n; i++)
		for (int a = c->head[c->queue[i]]; a >= 0; a = c->arc[a].next)
			if (c->arc[a].room > full && c->level[c->arc[a].to] < 0) {
				c->level[c->arc[a].to] = c->level[c->queue[i]] + 1;
				c->queue[n++] = c->arc[a].to;
			}
	return c->level[sink] >= 0;
}

/* One augmenting path at a time along levels, without recursion; queue holds the path's arcs. */
static double augment(struct mincut *c, int source, int sink, double full)
{
	double flow = 0;
	int depth = 0, v = source;
	for (;;) {
		if (v == sink) {
			double least = MINCUT_INFINITE;
			int cut = 0;
			for (int i = depth - 1; i >= 0; i--)
				if (c->arc[c->queue[i]].room <= least) {
					least = c->arc[c->queue[i]].room;
					cut = i;
				}
			for (int i = 0; i < depth; i++) {
				c->arc[c->queue[i]].room -= least;
				c->arc[c->queue[i] ^ 1].room += least;
			}
			flow += least;
			depth = cut;
			v = c->arc[c->queue[cut] ^ 1].to;
			if (flow >= MINCUT_INFINITE / 2)
				return flow;
			continue;
		}
		int a = c->at[v];
		while (a >= 0 &&
			!(c->arc[a].room > full && c->level[c->arc[a].to] == c->level[v] + 1))
			a = c->arc[a].next;
		c->at[v] = a;
		if (a >= 0) {
			c->queue[depth++] = a;
			v = c->arc[a].to;
		} else if (depth > 0) {
			c->level[v] = -1; /* leads nowhere */
			v = c->arc[c->queue[--depth] ^ 1].to;
		} else {
			return flow;
		}
	}
}

double mincut_flow(struct mincut *c, int source, int sink)
{
	double flow = 0, scale = 0;
	if (c->failed)
		return 0;
	for (int a = c->head[sink]; a >= 0; a = c->arc[a].next)
		if (c->arc[a ^ 1].room < MINCUT_INFINITE)
			scale += c->arc[a ^ 1].room;
	while (flow < MINCUT_INFINITE / 2 && find_levels(c, source, sink, scale * FULL)) {
		memcpy(c->at, c->head, (size_t)c->nnode * sizeof *c->at);
		flow += augment(c, source, sink, scale * FULL);
	}
	return flow;
}

bool mincut_side(const struct mincut *c, int node)
{
	return c->level[node] >= 0;
}
