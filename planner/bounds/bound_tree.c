/* Branch and bound: all variables of the program are 0 or 1 for a plan, so that its bound is at
 * least the least over the two halves in which one variable is fixed. Best first: the least bound
 * of what is still open only rises, the slower the longer it takes. */
#include "planner/bounds/bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 20000 };
/* Where twice the work closes less than this share of what is left, what follows closes little. */
static const double WORK_FIRST = 4e6, SLOW = 0.05;

struct node {
	double bound;
	int parent, col;
	double value;
};

struct tree {
	struct path *p;
	struct node *node;
	int nnode, cap;
	int *heap, nheap;
	double *leaf; /* the best solution in whole numbers */
	bool failed;
	double begun, look, seen; /* work left at the start; how much is spent, and the bound, at
				   * the next look at how it rises, and at the last one */
};

static bool less(const struct tree *t, int a, int b)
{
	if (t->node[a].bound != t->node[b].bound)
		return t->node[a].bound < t->node[b].bound;
	return a > b; /* the younger: its parent was solved last */
}

static void push(struct tree *t, struct node x)
{
	if (t->nnode == t->cap) {
		int cap = t->cap * 2 + 256;
		struct node *node = realloc(t->node, (size_t)cap * sizeof *node);
		t->node = node ? node : t->node;
		int *heap = realloc(t->heap, (size_t)cap * sizeof *heap);
		t->heap = heap ? heap : t->heap;
		if (!node || !heap) {
			t->failed = true;
			return;
		}
		t->cap = cap;
	}
	t->node[t->nnode] = x;
	int k = t->nheap++;
	for (; k > 0 && less(t, t->nnode, t->heap[(k - 1) / 2]); k = (k - 1) / 2)
		t->heap[k] = t->heap[(k - 1) / 2];
	t->heap[k] = t->nnode++;
}

static int pop(struct tree *t)
{
	int top = t->heap[0], last = t->heap[--t->nheap], k = 0;
	for (;;) {
		int c = 2 * k + 1;
		if (c + 1 < t->nheap && less(t, t->heap[c + 1], t->heap[c]))
			c++;
		if (c >= t->nheap || !less(t, t->heap[c], last))
			break;
		t->heap[k] = t->heap[c];
		k = c;
	}
	t->heap[k] = last;
	return top;
}

static void fix_all(struct tree *t, int at, bool on)
{
	for (int k = at; k >= 0 && t->node[k].col >= 0; k = t->node[k].parent)
		lp_fix(&t->p->lp, t->node[k].col, on ? t->node[k].value : 0,
			on ? t->node[k].value : 1);
}

/* The column to branch on, or -1 when all are 0 or 1. */
static int pick(const struct path *p)
{
	int best = -1;
	double most = 0;
	for (int j = 0; j < p->lp.ncol; j++) {
		double v = p->lp.x[j], f = v < 0.5 ? v : 1 - v;
		double score = f > 1e-6 ? f * (1 + p->weight[j]) : 0;
		if (score > most) {
			most = score;
			best = j;
		}
	}
	return best;
}

/* Whether the least bound of what is open rises too slowly to go on. */
static bool stalls(struct tree *t, double target)
{
	const double spent = t->begun - t->p->work, bound = t->node[t->heap[0]].bound;
	if (spent < t->look)
		return false;
	const bool slow = t->look > WORK_FIRST && bound - t->seen < SLOW * (target - bound);
	t->look = 2 * spent;
	t->seen = bound;
	return slow;
}

double tree_bound(struct path *p, double target, bool *solved)
{
	struct tree t = {.p = p,
		.leaf = malloc(((size_t)p->lp.ncol + 1) * sizeof(double)),
		.begun = p->work,
		.look = WORK_FIRST};
	double closed = INFINITY; /* the least bound of what needs no more branching */
	bool whole = false;
	t.failed = !t.leaf;
	push(&t, (struct node){p->lp.base, -1, -1, 0});
	while (t.nheap > 0 && !t.failed && p->work > 0 && !onlooker_stops(p->in->onlooker)) {
		int at = t.heap[0];
		if (t.node[at].bound >= target || t.node[at].bound >= closed || stalls(&t, target))
			break;
		fix_all(&t, at, true);
		lp_solve(&p->lp, STEPS_MAX);
		fix_all(&t, at, false);
		p->work -= (p->lp.effort + 20) * p->lp.nrow;
		pop(&t);
		double b = bound_round(p->in, p->lp.bound);
		b = b > t.node[at].bound ? b : t.node[at].bound;
		int col = p->lp.solved ? pick(p) : -1;
		if (b < INFINITY && col >= 0) {
			push(&t, (struct node){b, at, col, 0});
			push(&t, (struct node){b, at, col, 1});
		} else if (b < closed) {
			closed = b;
			memcpy(t.leaf, p->lp.x, (size_t)p->lp.ncol * sizeof *t.leaf);
			whole = p->lp.solved;
		}
	}
	double bound = t.nheap > 0 && t.node[t.heap[0]].bound < closed ? t.node[t.heap[0]].bound
								       : closed;
	*solved = whole && bound == closed && !t.failed;
	if (*solved)
		memcpy(p->lp.x, t.leaf, (size_t)p->lp.ncol * sizeof *t.leaf);
	free(t.leaf);
	free(t.node);
	free(t.heap);
	p->failed = p->failed || t.failed;
	return bound < target ? bound : target;
}
