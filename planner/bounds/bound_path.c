/* Several moments at once: a linear program whose optimum no plan within the budget can beat.
 *
 * Take ops u_1 .. u_K such that each depends on the one before (through inputs that all its ways
 * read). Whatever the order of the ops and however often they run, the first runs of u_1 .. u_K
 * come in this order; they cut the plan into intervals 0 .. K, where interval i begins with the
 * first run of u_i and ends before that of u_(i+1). For a given plan let
 *   r_i(t) = 1 when a copy of t that is there before the first run of u_i is still there to be read
 *            after it,
 *   x_i(o) = 1 when op o runs in interval i,
 *   F_i(o) = 1 when op o has run by the end of interval i.
 * Then, with p(t) for the op that makes t:
 *  1. what is read in interval i was there at its start or is made in it:
 *     x_i(o) ≤ r_i(t) + x_i(p(t)) for all t that o always reads, but for u_i itself;
 *  2. what u_i reads was there in interval i - 1: 1 ≤ r_(i-1)(t) + x_(i-1)(p(t));
 *  3. r_(i+1)(t) ≤ r_i(t) + x_i(p(t)), and what is to be kept: 1 ≤ r_K(t) + x_K(p(t));
 *  4. at the first run of u_i its inputs, outputs, workspace and all t with r_i(t) = 1 are live at
 *     once: Σ bytes r_i(t) ≤ budget - residents - its own. Its inputs are among its own; but where
 *     an input stays, outputs that could have lain in nothing but its place need theirs;
 *  5. descendants of u_i do not run before interval i; ancestors of u_i have run before it. So the
 *     first run of each op lies in a window lo .. hi of intervals, F_i = 0 before it and 1 from hi
 *     on; F_i ≥ F_(i-1), x_i ≥ F_i - F_(i-1), x_i ≤ F_i, F_i(o) ≤ F_i(p(t)) for t that o always
 *     reads, r_(i+1)(t) ≤ F_i(p(t)); for ops that run once only, x_i ≤ F_i - F_(i-1).
 *  6. since the first run of u_j: with E_j(o) = 1 when o runs in one of the intervals from j on,
 *     E_j(o) ≤ Σ x_i(o) over these, E_j(o) ≥ 1 - F_(j-1)(o), E_j(o) ≤ r_j(t) + E_j(p(t)), and for
 *     what is kept 1 ≤ r_j(t) + E_j(p(t)). (In whole numbers this follows from 1 to 5; in fractions
 *     it does not: the same half of t could serve twice.)
 * A tensor that may be fetched from the host has a second maker: its fetch, as an op that reads
 * nothing, runs on top of others and never before p(t), stands beside p(t) in 1, 2, 3 and 6.
 * The plan costs at least Σ cost x_i(o), at the cheapest way of each op. So the least of that sum
 * over all x, r, F, E in [0, 1] that satisfy 1 to 6 bounds it from below.
 *
 * Left out of the program, as zero does no harm in it: runs whose results nobody wants, and copies
 * that nobody reads later. */
#include "planner/bounds/bounds.h"

#include <stdlib.h>
#include <string.h>

bool path_init(struct path *p, struct arena *a, const struct inst *in, int64_t budget)
{
	int64_t n = in->n, m = in->m, k = BOUND_CUTS + 1;
	*p = (struct path){.in = in, .budget = budget};
	p->lo = ARENA_ARRAY(a, int, n + 1);
	p->hi = ARENA_ARRAY(a, int, n + 1);
	p->must = ARENA_ARRAY(a, bool, n + 1);
	p->x = ARENA_ARRAY(a, int, k *n + 1);
	p->f = ARENA_ARRAY(a, int, k *n + 1);
	p->r = ARENA_ARRAY(a, int, k *m + 1);
	p->want = ARENA_ARRAY(a, bool, k *m + 1);
	p->before = ARENA_ARRAY(a, bool, n + 1);
	p->after = ARENA_ARRAY(a, bool, n + 1);
	p->since = ARENA_ARRAY(a, int, n + 1);
	return p->since && p->lo && p->hi && p->must && p->x && p->f && p->r && p->want &&
	       p->before && p->after;
}

void path_free(struct path *p)
{
	lp_free(&p->lp);
	free(p->weight);
	p->weight = NULL;
}

static int *x_at(const struct path *p, int i, int o)
{
	return &p->x[(size_t)i * (size_t)p->in->n + (size_t)o];
}

static int *f_at(const struct path *p, int i, int o)
{
	return &p->f[(size_t)i * (size_t)p->in->n + (size_t)o];
}

static int *r_at(const struct path *p, int i, int t)
{
	return &p->r[(size_t)i * (size_t)p->in->m + (size_t)t];
}

static bool *want_at(const struct path *p, int i, int t)
{
	return &p->want[(size_t)i * (size_t)p->in->m + (size_t)t];
}

/* Windows of first runs, and which ops run in any case. */
static void find_windows(struct path *p)
{
	const struct inst *in = p->in;
	for (int o = 0; o < in->n; o++) {
		p->lo[o] = 0;
		p->hi[o] = p->ncut;
		p->must[o] = !in->optional[o];
		for (int k = 0; k < in->way[o][0].nin; k++) {
			int by = bound_producer(in, in->way[o][0].in[k]);
			if (bound_always_reads(in, o, k) && p->lo[by] > p->lo[o])
				p->lo[o] = p->lo[by];
		}
		for (int i = 1; i <= p->ncut; i++)
			if (p->cut[i] == o)
				p->lo[o] = i;
	}
	for (int o = in->n - 1; o >= 0; o--) {
		int last = p->hi[o];
		for (int i = 1; i <= p->ncut; i++)
			if (p->cut[i] == o)
				last = i - 1;
		for (int k = 0; k < in->way[o][0].nin; k++) {
			int by = bound_producer(in, in->way[o][0].in[k]);
			if (!bound_always_reads(in, o, k))
				continue;
			p->hi[by] = last < p->hi[by] ? last : p->hi[by];
			p->must[by] = p->must[by] || p->must[o];
		}
	}
}

/* Whether o may have its first run in interval i, and nowhere else for certain. */
static bool sure(const struct path *p, int i, int o)
{
	return p->must[o] && p->lo[o] == i && p->hi[o] == i;
}

static bool some_output_wanted(const struct path *p, int i, int o)
{
	const struct inst *in = p->in;
	for (int c = 0; c < in->nway[o]; c++)
		for (int k = 0; k < in->way[o][c].nout; k++)
			if (*want_at(p, i, in->way[o][c].out[k]))
				return true;
	return false;
}

/* Whether x_i(o) is a variable, for all o and one i, and what interval i wants. */
static void find_wanted(struct path *p, int i)
{
	const struct inst *in = p->in;
	for (int t = 0; t < in->m; t++)
		*want_at(p, i, t) = !in->res[t] &&
				    (i == p->ncut ? in->keep[t] : *want_at(p, i + 1, t));
	if (i < p->ncut) {
		int u = p->cut[i + 1];
		for (int k = 0; k < in->way[u][0].nin; k++)
			if (bound_always_reads(in, u, k))
				*want_at(p, i, in->way[u][0].in[k]) = true;
	}
	for (int o = in->n - 1; o >= 0; o--) {
		if (in->transfer[o])
			continue;
		bool window = i >= p->lo[o] && i <= p->hi[o] && p->must[o];
		bool may = i >= p->lo[o] && (!in->once[o] || i <= p->hi[o]);
		bool run = may && (window || some_output_wanted(p, i, o));
		*x_at(p, i, o) = run ? PATH_ONE : PATH_ZERO; /* columns follow */
		if (!run || (i > 0 && o == p->cut[i]))
			continue;
		for (int k = 0; k < in->way[o][0].nin; k++)
			if (bound_always_reads(in, o, k))
				*want_at(p, i, in->way[o][0].in[k]) = true;
	}
	for (int o = 0; in->transfers && o < in->n; o++) {
		if (!in->transfer[o])
			continue;
		int t = in->p->op[o].fetches - 1;
		bool run = t >= 0 && *want_at(p, i, t) && i >= p->lo[bound_producer(in, t)];
		*x_at(p, i, o) = run ? PATH_ONE : PATH_ZERO;
	}
}

static int new_col(struct path *p, double cost)
{
	return lp_col(&p->lp, cost);
}

static void make_columns(struct path *p)
{
	const struct inst *in = p->in;
	for (int i = p->ncut; i >= 0; i--)
		find_wanted(p, i);
	for (int i = 0; i <= p->ncut; i++) {
		for (int o = 0; o < in->n; o++) {
			if (sure(p, i, o))
				p->lp.base += bound_cheapest(in, o);
			else if (*x_at(p, i, o) == PATH_ONE)
				*x_at(p, i, o) = new_col(p, bound_cheapest(in, o));
			*f_at(p, i, o) = i < p->lo[o] ? PATH_ZERO : PATH_ONE;
			if (p->must[o] && i >= p->lo[o] && i < p->hi[o])
				*f_at(p, i, o) = new_col(p, 0);
		}
		for (int t = 0; t < in->m; t++) {
			bool there = i > 0 && !in->res[t] && *want_at(p, i, t) &&
				     p->lo[bound_producer(in, t)] < i;
			*r_at(p, i, t) = there ? new_col(p, 0) : PATH_ZERO;
		}
	}
}

/* A row a + b + f - c ≥ 0 over columns or constants; none where it always holds. */
static void row_or(struct path *p, int a, int b, int f, int c)
{
	double least = 0;
	if (a == PATH_ONE || b == PATH_ONE || f == PATH_ONE || c == PATH_ZERO)
		return;
	if (c == PATH_ONE)
		least = 1;
	if (a < 0 && b < 0 && f < 0 && c < 0)
		p->impossible = true;
	lp_row(&p->lp, least);
	if (a >= 0)
		lp_term(&p->lp, a, 1);
	if (b >= 0)
		lp_term(&p->lp, b, 1);
	if (f >= 0)
		lp_term(&p->lp, f, 1);
	if (c >= 0)
		lp_term(&p->lp, c, -1);
}

static void row(struct path *p, int a, int b, int c)
{
	row_or(p, a, b, PATH_ZERO, c);
}

/* What reads t in interval i needs it: `reader` is a column or constant. */
static void need_row(struct path *p, int i, int t, int reader)
{
	const int fetch = p->in->fetch[t];
	row_or(p, i > 0 ? *r_at(p, i, t) : PATH_ZERO, *x_at(p, i, bound_producer(p->in, t)),
		fetch >= 0 ? *x_at(p, i, fetch) : PATH_ZERO, reader);
}

static void op_rows(struct path *p, int i, int o)
{
	const struct inst *in = p->in;
	const struct way *w = &in->way[o][0];
	bool cut = i > 0 && p->cut[i] == o;
	if (in->transfer[o])
		return;
	for (int k = 0; k < w->nin; k++) {
		int by = bound_producer(in, w->in[k]);
		if (!bound_always_reads(in, o, k))
			continue;
		if (cut)
			need_row(p, i - 1, w->in[k], PATH_ONE);
		else
			need_row(p, i, w->in[k], *x_at(p, i, o));
		if (p->must[o] && *f_at(p, i, by) >= 0)
			row(p, *f_at(p, i, by), PATH_ZERO, *f_at(p, i, o));
	}
}

/* First runs: F_i ≥ F_(i-1), x_i ≥ F_i - F_(i-1), x_i ≤ F_i. */
static void first_rows(struct path *p, int i, int o)
{
	int now = *f_at(p, i, o), last = i > 0 ? *f_at(p, i - 1, o) : PATH_ZERO;
	int x = *x_at(p, i, o);
	if (!p->must[o] || p->lo[o] == p->hi[o] || i < p->lo[o] || i > p->hi[o])
		return;
	row(p, x, last, now);
	row(p, now, PATH_ZERO, last);
	row(p, now, PATH_ZERO, x);
	if (p->in->once[o] && last >= 0) { /* F_i - F_(i-1) - x_i ≥ 0 */
		lp_row(&p->lp, now == PATH_ONE ? -1 : 0);
		if (now >= 0)
			lp_term(&p->lp, now, 1);
		lp_term(&p->lp, last, -1);
		lp_term(&p->lp, x, -1);
	}
}

static void carry_rows(struct path *p, int i)
{
	const struct inst *in = p->in;
	for (int t = 0; t < in->m; t++) {
		if (in->res[t])
			continue;
		if (i == p->ncut) {
			need_row(p, i, t, in->keep[t] ? PATH_ONE : PATH_ZERO);
			continue;
		}
		int to = *r_at(p, i + 1, t);
		need_row(p, i, t, to);
		if (p->must[bound_producer(in, t)])
			row(p, *f_at(p, i, bound_producer(in, t)), PATH_ZERO, to);
	}
}

static void room_row(struct path *p, int i)
{
	const struct inst *in = p->in;
	int u = p->cut[i];
	double room = bound_room(in, u, p->budget), most = 1;
	if (room < 0) {
		p->impossible = true;
		return;
	}
	for (int c = 0; c < in->nway[u]; c++)
		for (int k = 0; k < in->way[u][c].nin; k++)
			*want_at(p, 0, in->way[u][c].in[k]) = true;
	for (int t = 0; t < in->m; t++)
		if (*r_at(p, i, t) >= 0 && (double)in->size[t] > most)
			most = (double)in->size[t];
	lp_row(&p->lp, -room / most);
	for (int t = 0; t < in->m; t++) {
		if (*r_at(p, i, t) < 0)
			continue;
		bool own = *want_at(p, 0, t);
		int64_t size = own ? bound_survive(in, u, t) : in->size[t];
		if (size > 0)
			lp_term(&p->lp, *r_at(p, i, t), -(double)size / most);
	}
}

/* t was there at cut j, or was made since, where `reader` says so. */
static void made_since_row(struct path *p, int j, int t, int reader)
{
	const int fetch = p->in->fetch[t];
	row_or(p, *r_at(p, j, t), p->since[bound_producer(p->in, t)],
		fetch >= 0 ? p->since[fetch] : PATH_ZERO, reader);
}

/* Op o since cut j. */
static void since_rows(struct path *p, int j, int o)
{
	const struct inst *in = p->in;
	const struct way *w = &in->way[o][0];
	int e = p->since[o];
	if (e == PATH_ZERO)
		return;
	if (e >= 0) { /* e ≤ Σ x_i, e ≥ 1 - F */
		bool free = false;
		for (int i = j; i <= p->ncut; i++)
			free = free || *x_at(p, i, o) == PATH_ONE;
		if (!free) {
			lp_row(&p->lp, 0);
			lp_term(&p->lp, e, -1);
			for (int i = j; i <= p->ncut; i++)
				if (*x_at(p, i, o) >= 0)
					lp_term(&p->lp, *x_at(p, i, o), 1);
		}
		if (p->must[o] && p->hi[o] >= j)
			row(p, e, *f_at(p, j - 1, o), PATH_ONE);
	}
	if (o == p->cut[j] || in->transfer[o])
		return;
	for (int k = 0; k < w->nin; k++)
		if (bound_always_reads(in, o, k))
			made_since_row(p, j, w->in[k], e);
}

/* 6 for cut j: who has run since, what is there or made since. */
static void add_since(struct path *p, int j)
{
	const struct inst *in = p->in;
	bool *want = want_at(p, 1, 0);
	for (int t = 0; t < in->m; t++)
		want[t] = in->keep[t];
	for (int o = in->n - 1; o >= 0; o--) {
		if (in->transfer[o])
			continue;
		bool later = p->must[o] && p->hi[o] >= j, some = later;
		for (int c = 0; c < in->nway[o]; c++)
			for (int k = 0; k < in->way[o][c].nout; k++)
				some = some || want[in->way[o][c].out[k]];
		if (in->once[o] && p->hi[o] < j)
			some = false;
		bool one = p->must[o] && p->lo[o] >= j;
		p->since[o] = !some ? PATH_ZERO : one ? PATH_ONE : lp_col(&p->lp, 0);
		for (int k = 0; some && o != p->cut[j] && k < in->way[o][0].nin; k++)
			if (bound_always_reads(in, o, k))
				want[in->way[o][0].in[k]] = true;
	}
	for (int o = 0; in->transfers && o < in->n; o++) {
		const int t = in->p->op[o].fetches - 1;
		if (in->transfer[o])
			p->since[o] = t >= 0 && want[t] ? lp_col(&p->lp, 0) : PATH_ZERO;
	}
	for (int o = 0; o < in->n; o++)
		since_rows(p, j, o);
	for (int t = 0; t < in->m; t++)
		if (in->keep[t])
			made_since_row(p, j, t, PATH_ONE);
}

static void mark_own(struct path *p, int u, bool value)
{
	const struct inst *in = p->in;
	for (int c = 0; c < in->nway[u]; c++)
		for (int k = 0; k < in->way[u][c].nin; k++)
			*want_at(p, 0, in->way[u][c].in[k]) = value;
}

static bool set_weights(struct path *p)
{
	const struct inst *in = p->in;
	free(p->weight);
	p->weight = calloc((size_t)p->lp.ncol + 1, sizeof *p->weight);
	if (!p->weight)
		return false;
	for (int i = 0; i <= p->ncut; i++)
		for (int t = 0; t < in->m; t++)
			if (*r_at(p, i, t) >= 0)
				p->weight[*r_at(p, i, t)] = (double)in->size[t];
	return true;
}

bool path_build(struct path *p, int most)
{
	const struct inst *in = p->in;
	lp_free(&p->lp);
	p->impossible = false;
	find_windows(p);
	make_columns(p);
	/* `want` has served; its first row marks inputs from here on */
	memset(p->want, 0, (size_t)in->m * sizeof *p->want);
	for (int i = 0; i <= p->ncut && p->lp.nterm <= most; i++) {
		for (int o = 0; o < in->n; o++) {
			if (*x_at(p, i, o) == PATH_ZERO)
				continue;
			op_rows(p, i, o);
			first_rows(p, i, o);
		}
		carry_rows(p, i);
		if (i > 0) {
			room_row(p, i);
			mark_own(p, p->cut[i], false);
		}
	}
	for (int j = 1; j < p->ncut && p->lp.nterm <= most; j++)
		add_since(p, j);
	if (p->lp.failed || !set_weights(p))
		p->failed = true;
	if (p->failed || p->impossible || p->lp.nterm > most)
		return false;
	lp_open(&p->lp);
	p->failed = p->failed || p->lp.failed;
	return !p->failed;
}
