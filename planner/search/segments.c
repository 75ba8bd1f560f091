/* Checkpointing by segments: what existing tools do, as starting sequences for the search. */
#include "planner/search/solver.h"

#include <stdlib.h>
#include <string.h>

bool segments_init(struct search *x, const int *way, struct segments *g)
{
	const struct inst *in = x->in;
	g->nforward = 0;
	g->forward = ARENA_ARRAY(x->a, int, in->n + 1);
	g->across = ARENA_ARRAY(x->a, int64_t, in->n + 2);
	g->wide = ARENA_ARRAY(x->a, int, in->n + 2);
	g->place = ARENA_ARRAY(x->a, int, in->n + 1);
	int *last = ARENA_ARRAY(x->a, int, in->m + 1);
	if (!g->forward || !g->across || !g->wide || !g->place || !last) {
		x->nomem = true;
		return false;
	}
	for (int o = 0; o < in->n; o++) {
		g->place[o] = -1;
		if (in->p->op[o].phase == PHASE_FORWARD && !in->floating[o] && !in->transfer[o]) {
			g->place[o] = g->nforward;
			g->forward[g->nforward++] = o;
		}
	}
	for (int i = 0; i < g->nforward; i++) {
		const struct way *w = &in->way[g->forward[i]][way[g->forward[i]]];
		for (int k = 0; k < w->nin; k++)
			last[w->in[k]] = i;
	}
	/* a tensor made at i and last read going forward at j crosses the borders i + 1 .. j */
	for (int i = 0; i < g->nforward; i++) {
		const struct way *w = &in->way[g->forward[i]][way[g->forward[i]]];
		for (int k = 0; k < w->nout; k++) {
			int j = last[w->out[k]];
			if (j <= i)
				continue;
			g->across[i + 1] += in->size[w->out[k]];
			g->across[j + 1] -= in->size[w->out[k]];
			g->wide[i + 1]++;
			g->wide[j + 1]--;
		}
	}
	for (int i = 1; i <= g->nforward; i++) {
		g->across[i] += g->across[i - 1];
		g->wide[i] += g->wide[i - 1];
	}
	return true;
}

struct cutter {
	const struct inst *in;
	const struct segments *g;
	const int *way;
	int *segment;  /* [n] of each forward op, -1 for others */
	bool *again;   /* [n] must run again for the backward ops */
	bool *crosses; /* [m] kept from its first production on */
	int last;      /* the last segment */
};

static int producer(const struct cutter *c, int t)
{
	return c->in->p->tensor[t].producer;
}

static void mark(struct cutter *c, const int *border, int nborder)
{
	const struct segments *g = c->g;
	for (int o = 0; o < c->in->n; o++)
		c->segment[o] = -1;
	for (int i = 0, k = 0; i < g->nforward; i++) {
		while (k < nborder && border[k] <= i)
			k++;
		c->segment[g->forward[i]] = k;
	}
	c->last = nborder;
	for (int i = 0; i < g->nforward; i++) {
		const struct way *w = &c->in->way[g->forward[i]][c->way[g->forward[i]]];
		for (int k = 0; k < w->nin; k++)
			if (c->segment[producer(c, w->in[k])] != c->segment[g->forward[i]])
				c->crosses[w->in[k]] = true;
	}
}

static bool made_again(const struct cutter *c, int t)
{
	int p = producer(c, t);
	return c->segment[p] >= 0 && c->segment[p] < c->last && !c->crosses[t] && !c->in->once[p];
}

/* The ops that some backward op, or an op that runs again, needs again. */
static void mark_again(struct cutter *c)
{
	for (int o = c->in->n - 1; o >= 0; o--) {
		if (c->in->transfer[o] || (c->segment[o] >= 0 && !c->again[o]))
			continue;
		const struct way *w = &c->in->way[o][c->way[o]];
		for (int k = 0; k < w->nin; k++)
			if (made_again(c, w->in[k]))
				c->again[producer(c, w->in[k])] = true;
	}
}

static void write_sequence(struct cutter *c, struct seq *q, bool *done)
{
	const struct segments *g = c->g;
	q->n = 0;
	for (int o = 0; o < c->in->n; o++) {
		if (c->in->floating[o] || c->in->transfer[o])
			continue;
		const struct way *w = &c->in->way[o][c->way[o]];
		for (int k = 0; k < w->nin && c->segment[o] < 0; k++) {
			if (!made_again(c, w->in[k]))
				continue;
			int s = c->segment[producer(c, w->in[k])];
			if (done[s])
				continue;
			done[s] = true;
			int i = g->place[producer(c, w->in[k])];
			while (i > 0 && c->segment[g->forward[i - 1]] == s)
				i--;
			for (; i < g->nforward && c->segment[g->forward[i]] == s; i++)
				if (c->again[g->forward[i]])
					q->op[q->n++] = g->forward[i];
		}
		q->op[q->n++] = o;
	}
}

bool segments_sequence(struct search *x, const struct segments *g, const int *way,
	const int *border, int nborder, struct seq *q)
{
	size_t n = (size_t)x->in->n + 2;
	struct cutter c = {.in = x->in, .g = g, .way = way};
	c.segment = calloc(n, sizeof *c.segment);
	c.again = calloc(n, sizeof *c.again);
	c.crosses = calloc((size_t)x->in->m + 1, sizeof *c.crosses);
	bool *done = calloc(n, sizeof *done);
	bool ok = c.segment && c.again && c.crosses && done && seq_reserve(q, 2 * x->in->n + 2);
	if (ok) {
		mark(&c, border, nborder);
		mark_again(&c);
		write_sequence(&c, q, done);
	} else {
		x->nomem = true;
	}
	free(c.segment);
	free(c.again);
	free(c.crosses);
	free(done);
	return ok && simulate_clean(x, q, way, &x->s);
}

int segments_equal(const struct segments *g, int k, int *border)
{
	int size = k > 0 ? g->nforward / k : 0, n = 0;
	for (int i = 1; i < k && size > 0; i++)
		border[n++] = i * size;
	return n;
}

int segments_snapped(const struct segments *g, int k, int *border)
{
	int n = 0;
	for (int i = 1; i < k; i++) {
		int mid = (int)((int64_t)i * g->nforward / k), reach = g->nforward / (3 * k);
		int best = mid;
		for (int j = mid - reach; j <= mid + reach; j++)
			if (j > 0 && j < g->nforward && g->across[j] < g->across[best])
				best = j;
		if (best > 0 && best < g->nforward && (n == 0 || best > border[n - 1]))
			border[n++] = best;
	}
	return n;
}

int segments_blocks(const struct segments *g, int level, int group, int *border)
{
	int n = 0, seen = 0;
	for (int i = 1; i < g->nforward; i++) {
		bool low = g->across[i] < g->across[i - 1] && g->across[i] <= g->across[i + 1];
		bool narrow = g->wide[i] == 1;
		if (!(level == 0 ? narrow : level == 1 ? low : low && narrow))
			continue;
		if (++seen % group == 0)
			border[n++] = i;
	}
	return n;
}
