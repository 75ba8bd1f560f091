#include "brute.h"

#include <math.h>
#include <stdlib.h>

/* Shortest path over what is live and what has run, for every choice of choices. */

struct exact {
	const struct problem *p;
	int64_t budget, resident;
	int choice[BRUTE_OPS + 6];
	int bit[64]; /* of non-resident tensors, -1 for residents */
	int nbit;
	double *dist; /* by state: ran << nbit | live */
	struct entry {
		double dist;
		size_t at;
	} * heap; /* the least at 0 */
	int nheap, cap;
};

static bool has(const int *list, int n, int t)
{
	for (int i = 0; i < n; i++)
		if (list[i] == t)
			return true;
	return false;
}

static void swap(struct entry *a, struct entry *b)
{
	struct entry e = *a;
	*a = *b;
	*b = e;
}

static void push(struct exact *e, double dist, size_t at)
{
	if (e->nheap == e->cap) {
		e->cap = e->cap * 2 + 1024;
		e->heap = realloc(e->heap, (size_t)e->cap * sizeof *e->heap);
		if (!e->heap)
			abort();
	}
	int i = e->nheap++;
	e->heap[i] = (struct entry){dist, at};
	for (; i > 0 && e->heap[i].dist < e->heap[(i - 1) / 2].dist; i = (i - 1) / 2)
		swap(&e->heap[i], &e->heap[(i - 1) / 2]);
}

static struct entry pop(struct exact *e)
{
	struct entry top = e->heap[0];
	e->heap[0] = e->heap[--e->nheap];
	for (int i = 0, k = 1; k < e->nheap; i = k, k = 2 * k + 1) {
		if (k + 1 < e->nheap && e->heap[k + 1].dist < e->heap[k].dist)
			k++;
		if (e->heap[i].dist <= e->heap[k].dist)
			break;
		swap(&e->heap[i], &e->heap[k]);
	}
	return top;
}

static void relax(struct exact *e, unsigned live, unsigned ran, double dist)
{
	size_t at = (size_t)ran << e->nbit | live;
	if (dist >= e->dist[at])
		return;
	e->dist[at] = dist;
	push(e, dist, at);
}

/* Residents' bytes after the updates in `ran`: a replaced resident's place holds its output. */
static bool reads_replaced(
	const struct exact *e, int o, const struct problem_choice *c, unsigned ran)
{
	for (int u = 0; u < e->p->nop; u++)
		for (int i = 0; (ran >> u & 1) && i < e->p->op[u].npair; i++) {
			int w = e->p->op[u].pair[i].in;
			if (tensor_kind_resident(e->p->tensor[w].kind) && u != o &&
				has(c->in, c->nin, w))
				return true;
		}
	return false;
}

static int64_t bytes_of(const struct exact *e, unsigned live)
{
	int64_t sum = 0;
	for (int t = 0; t < e->p->ntensor; t++) {
		if (e->bit[t] < 0 || !(live >> e->bit[t] & 1))
			continue;
		const struct problem_op *op = &e->p->op[e->p->tensor[t].producer];
		bool home = false;
		for (int i = 0; i < op->npair; i++)
			home = home ||
			       (op->pair[i].out == t &&
				       tensor_kind_resident(e->p->tensor[op->pair[i].in].kind));
		sum += home ? 0 : e->p->tensor[t].bytes;
	}
	return sum;
}

static void run_op(struct exact *e, unsigned live, unsigned ran, double dist, int o)
{
	const struct problem_op *op = &e->p->op[o];
	const struct problem_choice *c = &op->choice[e->choice[o]];
	unsigned out = 0;
	if (((ran >> o & 1) && !op->recomputable) || reads_replaced(e, o, c, ran))
		return;
	for (int i = 0; i < c->nin; i++)
		if (e->bit[c->in[i]] >= 0 && !(live >> e->bit[c->in[i]] & 1))
			return;
	for (int i = 0; i < c->nout; i++)
		out |= 1u << e->bit[c->out[i]];
	for (unsigned take = 0; take < 1u << op->npair; take++) {
		unsigned gone = 0, placed = 0;
		bool ok = true;
		for (int i = 0; i < op->npair; i++) {
			int in = op->pair[i].in, to = op->pair[i].out;
			if (!(take >> i & 1))
				continue;
			ok = ok && e->bit[in] >= 0 && has(c->in, c->nin, in) &&
			     has(c->out, c->nout, to) && !(gone >> e->bit[in] & 1) &&
			     !(placed >> e->bit[to] & 1) && !(live >> e->bit[to] & 1);
			if (!ok)
				break;
			gone |= 1u << e->bit[in];
			placed |= 1u << e->bit[to];
		}
		if (!ok || e->resident + bytes_of(e, (live | out) & ~placed) + c->workspace >
				   e->budget)
			continue;
		relax(e, (live & ~gone) | out, ran | 1u << o, dist + c->cost);
	}
}

static double exact_cost(struct exact *e)
{
	size_t n = (size_t)1 << (e->nbit + e->p->nop);
	unsigned must = 0, keep = 0, all = (1u << e->nbit) - 1;
	double best = INFINITY;
	e->dist = malloc(n * sizeof *e->dist);
	if (!e->dist)
		abort();
	for (size_t i = 0; i < n; i++)
		e->dist[i] = INFINITY;
	for (int o = 0; o < e->p->nop; o++)
		must |= e->p->op[o].optional ? 0 : 1u << o;
	for (int t = 0; t < e->p->ntensor; t++)
		keep |= e->p->tensor[t].keep && e->bit[t] >= 0 ? 1u << e->bit[t] : 0;
	relax(e, 0, 0, 0);
	while (e->nheap > 0 && isinf(best)) {
		struct entry top = pop(e);
		unsigned live = (unsigned)top.at & all, ran = (unsigned)(top.at >> e->nbit);
		if (top.dist > e->dist[top.at])
			continue;
		if ((ran & must) == must && (live & keep) == keep)
			best = top.dist;
		for (int b = 0; b < e->nbit; b++)
			if (live >> b & 1)
				relax(e, live & ~(1u << b), ran, top.dist);
		for (int o = 0; o < e->p->nop; o++)
			run_op(e, live, ran, top.dist, o);
	}
	e->nheap = 0;
	free(e->dist);
	return best;
}

/* Over all choices of all ops. */
double brute_optimum(const struct problem *p, int64_t budget)
{
	struct exact e = {.p = p, .budget = budget};
	double best = INFINITY;
	for (int t = 0; t < p->ntensor; t++) {
		bool resident = tensor_kind_resident(p->tensor[t].kind);
		e.bit[t] = resident ? -1 : e.nbit++;
		e.resident += resident ? p->tensor[t].bytes : 0;
	}
	for (;;) {
		double v = exact_cost(&e);
		best = v < best ? v : best;
		int o = 0;
		while (o < p->nop && ++e.choice[o] == p->op[o].nchoice)
			e.choice[o++] = 0;
		if (o == p->nop)
			break;
	}
	free(e.heap);
	return best;
}
