/* Undoing cuts: two items with the same lifetime lie on top of each other as one, an item that ends
 * where another of its size starts goes on as that one. The load stays the same at all times. */
#include "planner/placement/place_join.h"

#include <stdlib.h>

enum { ROUNDS = 200 };

struct edge {
	int64_t a, b; /* what has to be the same */
	int node;
};

static int edge_cmp(const void *x, const void *y)
{
	const struct edge *e = x, *f = y;
	if (e->a != f->a)
		return e->a < f->a ? -1 : 1;
	if (e->b != f->b)
		return e->b < f->b ? -1 : 1;
	return (e->node > f->node) - (e->node < f->node);
}

static int join(struct joined *j, int a, int b, bool above)
{
	struct join_node *x = &j->node[a], *y = &j->node[b];
	j->node[j->nnode] = (struct join_node){.size = above ? x->size + y->size : x->size,
		.lo = x->lo,
		.hi = above ? x->hi : y->hi,
		.kid = {a, b},
		.above = above};
	x->part = y->part = true;
	j->n--;
	return j->nnode++;
}

/* All of the same lifetime. */
static bool join_above(struct joined *j, struct edge *e)
{
	int n = 0, before = j->n;
	for (int i = 0; i < j->nnode; i++)
		if (!j->node[i].part)
			e[n++] = (struct edge){j->node[i].lo, j->node[i].hi, i};
	qsort(e, (size_t)n, sizeof *e, edge_cmp);
	for (int k = 0, next; k < n; k = next) {
		int node = e[k].node;
		for (next = k + 1; next < n && e[next].a == e[k].a && e[next].b == e[k].b; next++)
			node = join(j, node, e[next].node, true);
	}
	return j->n < before;
}

/* What ends where another of its size starts. */
static bool join_after(struct joined *j, struct edge *end, struct edge *start, int *next)
{
	int n = 0, before = j->n, known = j->nnode;
	for (int i = 0; i < known; i++) {
		next[i] = -1;
		if (j->node[i].part)
			continue;
		end[n] = (struct edge){j->node[i].hi, j->node[i].size, i};
		start[n++] = (struct edge){j->node[i].lo, j->node[i].size, i};
	}
	qsort(end, (size_t)n, sizeof *end, edge_cmp);
	qsort(start, (size_t)n, sizeof *start, edge_cmp);
	for (int k = 0, m = 0; k < n && m < n;) {
		struct edge s = {start[m].a, start[m].b, end[k].node};
		int c = edge_cmp(&end[k], &s);
		if (c == 0)
			next[end[k++].node] = start[m++].node;
		else if (c < 0)
			k++;
		else
			m++;
	}
	/* by start: what begins a chain comes before what goes on with it */
	for (int k = 0; k < n; k++) {
		int node = start[k].node, to = next[node];
		if (j->node[node].part)
			continue;
		for (int after; to >= 0; to = after) {
			after = next[to];
			node = join(j, node, to, false);
		}
	}
	return j->n < before;
}

static bool list_left(struct joined *j)
{
	size_t n = (size_t)j->n + 1;
	int k = 0;
	j->seg = calloc(n, sizeof *j->seg);
	j->item = calloc(n, sizeof *j->item);
	j->of = calloc(n, sizeof *j->of);
	if (!j->seg || !j->item || !j->of)
		return false;
	for (int i = 0; i < j->nnode; i++) {
		const struct join_node *x = &j->node[i];
		if (x->part)
			continue;
		j->seg[k] = (struct place_seg){x->lo, x->hi, x->size};
		j->item[k] = (struct place_item){.seg = k, .nseg = 1};
		j->of[k++] = i;
	}
	return true;
}

bool join_items(const struct packing *p, struct joined *j)
{
	size_t n = 2 * (size_t)p->n + 1;
	*j = (struct joined){.n = p->n + 1};
	/* only plain items */
	for (int i = 0; i < p->n; i++)
		if (p->fixed[i] || p->at[i + 1] != p->at[i] + 1)
			return true;
	j->node = calloc(n, sizeof *j->node);
	struct edge *end = calloc(n, sizeof *end), *start = calloc(n, sizeof *start);
	int *next = calloc(n, sizeof *next);
	bool ok = j->node && end && start && next;
	j->n = j->nnode = p->n;
	for (int i = 0; i < p->n && ok; i++) {
		const struct pack_seg *s = &p->seg[p->at[i]];
		j->node[i] = (struct join_node){
			.size = s->size, .lo = s->lo, .hi = s->hi, .kid = {-1, -1}};
	}
	for (int round = 0; round < ROUNDS && ok; round++) {
		bool some = join_above(j, end);
		if (!join_after(j, end, start, next) && !some)
			break;
	}
	ok = ok && list_left(j);
	free(end);
	free(start);
	free(next);
	return ok;
}

void join_offsets(const struct packing *p, struct joined *j, int64_t *offset)
{
	for (int k = 0; k < j->n; k++)
		j->node[j->of[k]].at = j->item[k].offset;
	for (int v = j->nnode - 1; v >= 0; v--) {
		const struct join_node *x = &j->node[v];
		if (v < p->n) {
			offset[v] = x->at;
			continue;
		}
		struct join_node *a = &j->node[x->kid[0]], *b = &j->node[x->kid[1]];
		a->at = x->at;
		b->at = x->above ? x->at + a->size : x->at;
	}
}

void join_free(struct joined *j)
{
	free(j->node);
	free(j->seg);
	free(j->item);
	free(j->of);
}
