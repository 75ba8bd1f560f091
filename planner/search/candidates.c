/* The sequences every search starts from. */
#include "planner/search/plan_make.h"

#include <stdlib.h>
#include <string.h>

enum { ORDERS = 4, CANDIDATES_MAX = 400 };

/* Takes q over when it is worth keeping; x.s holds its simulation. */
static void add(struct planner *pl, struct seq *q)
{
	struct candidate_seq c = {.q = *q, .cost = pl->x.s.cost, .peak = pl->x.s.peak};
	*q = (struct seq){0};
	bool worse = pl->ncand >= CANDIDATES_MAX;
	for (int i = 0; i < pl->ncand && !worse; i++)
		worse = pl->cand[i].cost <= c.cost && pl->cand[i].peak <= c.peak;
	if (worse) {
		seq_free(&c.q);
		return;
	}
	int n = pl->ncand < ORDERS ? pl->ncand : ORDERS;
	for (int i = n; i < pl->ncand; i++) {
		if (pl->cand[i].cost >= c.cost && pl->cand[i].peak >= c.peak)
			seq_free(&pl->cand[i].q);
		else
			pl->cand[n++] = pl->cand[i];
	}
	pl->cand[n] = c;
	pl->ncand = n + 1;
}

static void add_segments(struct planner *pl, const struct segments *g, const int *border, int n)
{
	struct seq q = {0};
	if (n > 0 && segments_sequence(&pl->x, g, pl->way, border, n, &q))
		add(pl, &q);
	seq_free(&q);
}

static int next_count(int k)
{
	return k < 40 ? k + 1 : k + k / 8;
}

enum status candidates_make(struct planner *pl)
{
	struct search *x = &pl->x;
	struct seq q = {0};
	pl->cand = ARENA_ARRAY(pl->tmp, struct candidate_seq, CANDIDATES_MAX + 1);
	if (!pl->cand)
		return diag_nomem(pl->d);
	if (!order_listed(x, pl->way, &q)) {
		seq_free(&q);
		return x->nomem ? diag_nomem(pl->d)
				: diag_fail(pl->d, ST_INTERNAL, NULL, NULL,
					  "the listed order of ops cannot run");
	}
	pl->cand[pl->ncand++] = (struct candidate_seq){
		.q = q, .cost = x->s.cost, .peak = x->s.peak};
	q = (struct seq){0};
	for (int v = 0; v < ORDERS - 1; v++) {
		if (order_greedy(x, pl->way, v, &q))
			add(pl, &q);
		seq_free(&q);
	}
	struct segments g;
	int *border = ARENA_ARRAY(pl->tmp, int, pl->in->n + 2);
	if (!segments_init(x, pl->way, &g) || !border)
		return diag_nomem(pl->d);
	for (int k = 2; k <= g.nforward && k < 1000; k = next_count(k)) {
		add_segments(pl, &g, border, segments_equal(&g, k, border));
		add_segments(pl, &g, border, segments_snapped(&g, k, border));
	}
	for (int level = 0; level < 3; level++)
		for (int group = 1; group <= 64; group = group < 8 ? group + 1 : group * 3 / 2)
			add_segments(pl, &g, border, segments_blocks(&g, level, group, border));
	return x->nomem ? diag_nomem(pl->d) : ST_OK;
}

/* Run again what the seed says, each op right before the first use that needs it. */
static void write_seed(
	struct planner *pl, const struct bound_seed *seed, bool *left, bool *want, struct seq *q)
{
	const struct inst *in = pl->in;
	memcpy(left, seed->again, (size_t)in->n * sizeof *left);
	q->n = 0;
	for (int o = 0; o < in->n; o++) {
		if (in->floating[o] || in->transfer[o])
			continue;
		int first = o, last = -1;
		for (int u = o; o > seed->at && u >= first; u--) {
			const struct way *w = &in->way[u][pl->way[u]];
			for (int k = 0; (u == o || want[u]) && k < w->nin; k++) {
				int p = in->p->tensor[w->in[k]].producer;
				if (!left[p] || in->once[p])
					continue;
				left[p] = false;
				want[p] = true;
				first = p < first ? p : first;
				last = p > last ? p : last;
			}
		}
		for (int p = first; p <= last; p++)
			if (want[p]) {
				q->op[q->n++] = p;
				want[p] = false;
			}
		q->op[q->n++] = o;
	}
}

enum status candidates_seed(struct planner *pl, const struct bound_seed *seed, int nseed)
{
	struct seq q = {0};
	bool *left = ARENA_ARRAY(pl->tmp, bool, pl->in->n + 1);
	bool *want = ARENA_ARRAY(pl->tmp, bool, pl->in->n + 1);
	if (!left || !want)
		return diag_nomem(pl->d);
	for (int i = 0; i < nseed && !pl->x.nomem; i++) {
		if (!seq_reserve(&q, 2 * pl->in->n + 2)) {
			pl->x.nomem = true;
			break;
		}
		write_seed(pl, &seed[i], left, want, &q);
		if (simulate_clean(&pl->x, &q, pl->way, &pl->x.s))
			add(pl, &q);
	}
	seq_free(&q);
	return pl->x.nomem ? diag_nomem(pl->d) : ST_OK;
}

enum status candidates_fixed(struct planner *pl, struct seq *q)
{
	struct search *x = &pl->x;
	struct segments g;
	bool ok;
	bool blocks = pl->o->mode == PLAN_BLOCKS;
	if (blocks || (pl->o->mode == PLAN_SEGMENTS && pl->o->segments > 1)) {
		int *border = ARENA_ARRAY(pl->tmp, int, pl->in->n + 2), n = 0;
		ok = border && segments_init(x, pl->way, &g);
		if (ok && blocks)
			n = segments_blocks(&g, 2, 1, border);
		if (ok && blocks && n < 2) /* skips cross every border: the narrowest places */
			n = segments_blocks(&g, 1, 1, border);
		if (ok && !blocks)
			n = segments_equal(&g, pl->o->segments, border);
		ok = ok && segments_sequence(x, &g, pl->way, border, n, q);
	} else {
		ok = order_listed(x, pl->way, q);
	}
	if (!ok)
		return x->nomem ? diag_nomem(pl->d)
				: diag_fail(pl->d, ST_INTERNAL, NULL, NULL,
					  "the listed order of ops cannot run");
	return ST_OK;
}
