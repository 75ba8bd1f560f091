/* Where another cut would help: at ops whose first run needs more than there is, by what the last
 * solution stores and runs again. */
#include "planner/bounds/bounds.h"

#include <stdlib.h>
#include <string.h>

static double value_at(const struct path *p, const int *list, int stride, int i, int k)
{
	int col = list[(size_t)i * (size_t)stride + (size_t)k];
	return col == PATH_ZERO ? 0 : col == PATH_ONE ? 1 : p->lp.x[col];
}

static void relatives(struct path *p, int at)
{
	const struct inst *in = p->in;
	memset(p->before, 0, (size_t)in->n * sizeof *p->before);
	memset(p->after, 0, (size_t)in->n * sizeof *p->after);
	p->before[at] = p->after[at] = true;
	for (int o = at; o >= 0; o--)
		for (int k = 0; p->before[o] && k < in->way[o][0].nin; k++)
			if (bound_always_reads(in, o, k))
				p->before[bound_producer(in, in->way[o][0].in[k])] = true;
	for (int o = at + 1; o < in->n; o++)
		for (int k = 0; !p->after[o] && k < in->way[o][0].nin; k++)
			if (bound_always_reads(in, o, k) &&
				p->after[bound_producer(in, in->way[o][0].in[k])])
				p->after[o] = true;
	p->before[at] = p->after[at] = false;
}

/* How much of op o, which does not depend on the moment's op, is run again after the moment: what
 * its outputs need, where that takes no more bytes than to hold these. Where its inputs are run
 * again too they take none, if all goes well. */
static double run_later(const struct path *p, int i, int o, enum path_how how, const double *need)
{
	const struct inst *in = p->in;
	double run = value_at(p, p->x, in->n, i, o), most = 0, hold = 0, take = 0;
	if (p->hi[o] >= i || run <= 0)
		return 0;
	for (int c = 0; c < in->nway[o]; c++)
		for (int k = 0; k < in->way[o][c].nout; k++) {
			int t = in->way[o][c].out[k];
			double want = need[t] < run ? need[t] : run;
			most = want > most ? want : most;
			hold += c == 0 ? want * (double)in->size[t] : 0;
		}
	for (int k = 0; k < in->way[o][0].nin; k++) {
		int t = in->way[o][0].in[k], by = bound_producer(in, t);
		double again = p->hi[by] < i ? value_at(p, p->x, in->n, i, by) : 0;
		double more = most - (need[t] > again ? need[t] : again);
		take += more > 0 ? more * (double)in->size[t] : 0;
	}
	return how == PATH_DEEPER || take <= hold ? most : 0;
}

/* Bytes that the solution needs at the first run of v beyond what there is; v lies in interval i.
 * need[] is scratch, [m]. */
static double violation(struct path *p, int v, int i, enum path_how how, double *need)
{
	const struct inst *in = p->in;
	bool deep = how != PATH_PLAIN;
	double sum = 0;
	relatives(p, v);
	for (int t = 0; t < in->m; t++)
		need[t] = i == p->ncut ? (in->keep[t] ? 1 : 0) : value_at(p, p->r, in->m, i + 1, t);
	int next = i < p->ncut ? p->cut[i + 1] : -1;
	for (int o = in->n - 1; o >= 0; o--) {
		double run = o == next     ? 1
			     : p->after[o] ? value_at(p, p->x, in->n, i, o)
			     : deep        ? run_later(p, i, o, how, need)
					   : 0;
		for (int k = 0; run > 0 && k < in->way[o][0].nin; k++) {
			int t = in->way[o][0].in[k];
			if (need[t] < run && bound_always_reads(in, o, k))
				need[t] = run;
		}
		bool less = !p->after[o] && (deep || p->hi[o] < i);
		run = deep ? run : p->hi[o] < i ? value_at(p, p->x, in->n, i, o) : 0;
		for (int k = 0; less && run > 0 && k < in->way[o][0].nout; k++)
			need[in->way[o][0].out[k]] -= run;
	}
	for (int c = 0; c < in->nway[v]; c++)
		for (int k = 0; k < in->way[v][c].nin; k++)
			need[in->way[v][c].in[k]] = 0;
	for (int t = 0; t < in->m; t++)
		if (!in->res[t] && p->before[bound_producer(in, t)] && need[t] > 0)
			sum += need[t] * (double)in->size[t];
	return sum - bound_room(in, v, p->budget);
}

/* Of more ops than these, only some are tried. */
enum { SAMPLES = 1000 };

struct candidate {
	int op;
	double excess;
};

static int candidate_cmp(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->excess != y->excess)
		return x->excess > y->excess ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

static int cut_cmp(const void *a, const void *b)
{
	const int *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

int path_extend(struct path *p, int most, enum path_how how)
{
	const struct inst *in = p->in;
	struct candidate *c = calloc((size_t)in->n + 1, sizeof *c);
	double *need = calloc((size_t)in->m + 1, sizeof *need);
	int step = 1 + in->n / SAMPLES;
	int n = 0, added = 0, first = p->ncut + 1;
	if (!c || !need) {
		p->failed = true;
		most = 0;
	}
	for (int v = 0; v < in->n && most > 0; v += step) {
		int i = p->lo[v];
		if (!p->must[v] || i != p->hi[v] || (i > 0 && p->cut[i] == v))
			continue;
		p->work -= 2.0 * in->n;
		double excess = violation(p, v, i, how, need);
		if (how == PATH_DEEPER || excess > 1e-6 * (double)p->budget)
			c[n++] = (struct candidate){v, excess};
	}
	if (n > 0)
		qsort(c, (size_t)n, sizeof *c, candidate_cmp);
	for (int k = 0; k < n && added < most && p->ncut < BOUND_CUTS; k++) {
		bool ok = true;
		relatives(p, c[k].op);
		for (int i = first; i <= p->ncut; i++)
			ok = ok && (p->before[p->cut[i]] || p->after[p->cut[i]]);
		if (!ok)
			continue;
		p->cut[++p->ncut] = c[k].op;
		added++;
	}
	qsort(p->cut + 1, (size_t)p->ncut, sizeof *p->cut, cut_cmp);
	free(c);
	free(need);
	return added;
}
