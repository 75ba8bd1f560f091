/* Starting sequences in which every op runs once, and the choice among ways. */
#include "planner/search/solver.h"

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
		if (!in->floating[o] && !in->transfer[o])
			q->op[q->n++] = o;
	return simulate_clean(x, q, way, &x->s);
}

struct lister {
	const struct inst *in;
	const int *way;
	int *reads;   /* [m] reads still to come, by ops that are not floating */
	int *missing; /* [n] inputs not made yet */
	int *ready, nready;
	int *reader_at, *reader; /* ops that read tensor t */
	bool *used;              /* [n] in the base sequence */
};

static const struct way *way_of(const struct lister *l, int o)
{
	return &l->in->way[o][l->way[o]];
}

/* Bytes live after op o runs now, less those before. */
static double growth(const struct lister *l, int o, int variant)
{
	const struct way *w = way_of(l, o);
	double d = 0;
	for (int k = 0; k < w->nout; k++)
		if (l->reads[w->out[k]] > 0 || l->in->keep[w->out[k]])
			d += (double)l->in->size[w->out[k]];
	for (int k = 0; k < w->nin; k++) {
		int t = w->in[k];
		if (l->reads[t] == 1 && !l->in->keep[t])
			d -= (double)l->in->size[t];
		else if (variant == 2 && l->reads[t] > 1) /* credit for progress towards freeing */
			d -= (double)l->in->size[t] / l->reads[t];
	}
	return d;
}

static int pick_ready(const struct lister *l, int variant)
{
	int best = 0;
	double best_growth = 1e300;
	for (int i = 0; i < l->nready; i++) {
		int o = l->ready[i];
		double g = growth(l, o, variant);
		if (variant == 1 && g < 0) /* whatever frees, in listed order */
			g = -1;
		if (g < best_growth || (g <= best_growth && o < l->ready[best])) {
			best_growth = g;
			best = i;
		}
	}
	return best;
}

static void list_all(struct lister *l, int variant, struct seq *q)
{
	q->n = 0;
	while (l->nready > 0) {
		int i = pick_ready(l, variant);
		int o = l->ready[i];
		l->ready[i] = l->ready[--l->nready];
		q->op[q->n++] = o;
		const struct way *w = way_of(l, o);
		for (int k = 0; k < w->nin; k++)
			l->reads[w->in[k]]--;
		for (int k = 0; k < w->nout; k++) {
			int t = w->out[k];
			for (int j = l->reader_at[t]; j < l->reader_at[t + 1]; j++)
				if (--l->missing[l->reader[j]] == 0)
					l->ready[l->nready++] = l->reader[j];
		}
	}
}

/* --- What depends on residents alone runs right before its first reader --- */

struct sinker {
	const struct inst *in;
	const int *way;
	bool *derived; /* [n] */
	bool *done;    /* [n] */
	struct seq *q;
};

/* Runs what op o reads and is derived, as deep as it goes. */
static void sink_inputs(struct sinker *s, int o)
{
	const struct way *w = &s->in->way[o][s->way[o]];
	for (int k = 0; k < w->nin; k++) {
		const int p = s->in->p->tensor[w->in[k]].producer;
		if (!s->derived[p] || s->done[p])
			continue;
		s->done[p] = true;
		sink_inputs(s, p);
		s->q->op[s->q->n++] = p;
	}
}

/* `q`, a valid order of ops that run once, into `out`. */
static bool sink(struct arena *a, const struct inst *in, const int *way, const struct seq *q,
	struct seq *out)
{
	struct sinker s = {.in = in, .way = way, .q = out};
	s.derived = ARENA_ARRAY(a, bool, in->n + 1);
	s.done = ARENA_ARRAY(a, bool, in->n + 1);
	bool *read = ARENA_ARRAY(a, bool, in->n + 1);
	if (!s.derived || !s.done || !read || !seq_reserve(out, q->n))
		return false;
	for (int i = 0; i < q->n; i++) {
		const int o = q->op[i];
		const struct way *w = &in->way[o][way[o]];
		s.derived[o] = !in->once[o];
		for (int k = 0; k < w->nin; k++) {
			const int p = in->p->tensor[w->in[k]].producer;
			read[p] = true;
			s.derived[o] = s.derived[o] && s.derived[p];
		}
	}
	out->n = 0;
	for (int i = 0; i < q->n; i++) {
		const int o = q->op[i];
		if (s.done[o] || (s.derived[o] && read[o]))
			continue;
		s.done[o] = true;
		sink_inputs(&s, o);
		out->op[out->n++] = o;
	}
	return out->n == q->n;
}

static bool lister_init(struct lister *l, struct arena *a, const struct seq *base)
{
	const struct inst *in = l->in;
	l->reads = ARENA_ARRAY(a, int, in->m + 1);
	l->missing = ARENA_ARRAY(a, int, in->n + 1);
	l->ready = ARENA_ARRAY(a, int, in->n + 1);
	l->reader_at = ARENA_ARRAY(a, int, in->m + 2);
	l->used = ARENA_ARRAY(a, bool, in->n + 1);
	if (!l->reads || !l->missing || !l->ready || !l->reader_at || !l->used)
		return false;
	int64_t total = 0;
	for (int i = 0; i < base->n; i++) {
		const struct way *w = way_of(l, base->op[i]);
		for (int k = 0; k < w->nin; k++)
			l->reads[w->in[k]]++;
		total += w->nin;
	}
	l->reader = ARENA_ARRAY(a, int, total + 1);
	int *fill = ARENA_ARRAY(a, int, in->m + 1);
	if (!l->reader || !fill)
		return false;
	for (int t = 0; t < in->m; t++)
		l->reader_at[t + 1] = l->reader_at[t] + l->reads[t];
	for (int i = 0; i < base->n; i++) {
		int o = base->op[i];
		const struct way *w = way_of(l, o);
		l->missing[o] = w->nin;
		if (w->nin == 0)
			l->ready[l->nready++] = o;
		for (int k = 0; k < w->nin; k++)
			l->reader[l->reader_at[w->in[k]] + fill[w->in[k]]++] = o;
	}
	return true;
}

bool order_greedy(struct search *x, const int *way, int variant, struct seq *q)
{
	struct lister l = {.in = x->in, .way = way};
	struct arena *tmp = arena_new();
	bool ok = tmp && order_listed(x, way, q) && lister_init(&l, tmp, q);
	struct seq listed = {0};
	int n = q->n;
	if (ok) {
		list_all(&l, variant, q);
		ok = q->n == n && seq_copy(&listed, q) && sink(tmp, x->in, way, &listed, q);
	}
	seq_free(&listed);
	arena_free(tmp);
	return ok && simulate_clean(x, q, way, &x->s);
}

void pick_ways(struct search *x, int *way)
{
	const struct inst *in = x->in;
	struct seq q = {0};
	memcpy(way, in->usable, (size_t)in->n * sizeof *way);
	bool any = false;
	for (int o = 0; o < in->n; o++)
		any = any || in->nway[o] > 1;
	if (any && order_listed(x, way, &q)) {
		double cost = x->s.cost, area = x->s.area;
		double stop = x->work + 3e7;
		for (int o = 0; o < in->n && x->work < stop; o++)
			for (int k = 0; k < in->nway[o]; k++) {
				int old = way[o];
				if (k == old)
					continue;
				way[o] = k;
				bool better = order_listed(x, way, &q) &&
					      (x->s.cost < cost ||
						      (x->s.cost <= cost && x->s.area < area));
				if (better) {
					cost = x->s.cost;
					area = x->s.area;
				} else {
					way[o] = old;
				}
			}
	}
	seq_free(&q);
}
