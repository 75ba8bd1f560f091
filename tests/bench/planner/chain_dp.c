/* The cheapest cost of a chain's training step, by dynamic programming.
 *
 * After Beaumont, Eyraud-Dubois, Hermann, Joly, Shilova: "Optimal checkpointing for heterogeneous
 * chains: how to train deep neural networks with limited memory" (2019), whose recurrence this is,
 * with its ops written as stint-graph-1 has them:
 *
 *	F_i  reads x_{i-1}, makes x_i and perhaps s_i, which only B_i reads
 *	loss reads x_n, makes g_n (one op or two; a scalar loss is kept)
 *	B_i  reads g_i, x_{i-1} and s_i, makes g_{i-1} and perhaps gradients of parameters
 *	U_i  an update right after B_i, all in place
 *
 * back(s, t, m): x_s and g_t are there, g_s is wanted, m bytes beside x_s. The cheapest of
 *	t = s + 1:  F_t again where there is an s_t, then B_t
 *	all:        F_{s+1}, its x and s stay; back(s + 1, t, m - both); B_{s+1}
 *	to k:       F_{s+1} .. F_k, of which only x_k stays; back(k, t, m - x_k); back(s, k, m)
 * and first(s, m) the same before the loss has run.
 *
 * It is the optimum over persistent schedules: what is kept once stays until its gradient is done.
 * Where sizes are equal these are as good as any; where they differ, a plan may cost less. Bytes
 * are live bytes: sizes are multiples of 64, so that no rounding of offsets comes in, but whether
 * the buffers pack into the budget is not asked. Sizes count in units of their greatest common
 * divisor, or, where the budget has more than 4,000 of these, in 4,000ths of it, rounded up: then
 * the number is what one such schedule costs, at least the optimum. */
#include "chain_dp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = CHAIN_MOST, UNITS = 4000 };

/* --- Is it a chain? --- */

static bool reads(const struct problem_op *op, int t)
{
	for (int i = 0; i < op->choice->nin; i++)
		if (op->choice->in[i] == t)
			return true;
	return false;
}

/* How many of the op's inputs have a producer. */
static int made_inputs(const struct problem *p, const struct problem_op *op)
{
	int n = 0;
	for (int i = 0; i < op->choice->nin; i++)
		n += p->tensor[op->choice->in[i]].producer >= 0;
	return n;
}

static int64_t out_bytes(const struct problem *p, const struct problem_op *op)
{
	int64_t sum = op->choice->workspace;
	for (int i = 0; i < op->choice->nout; i++)
		sum += p->tensor[op->choice->out[i]].bytes;
	return sum;
}

static bool take_forward(
	const struct problem *p, const struct problem_op *op, struct chain *c, int *x, int *s)
{
	int i = ++c->n;
	if (i > MOST || op->nchoice != 1 || op->npair || op->choice->nout < 1 ||
		op->choice->nout > 2 || !reads(op, *x) || made_inputs(p, op) != (i > 1))
		return false;
	c->f[i] = op->choice->cost;
	*x = op->choice->out[0];
	c->x[i] = p->tensor[*x].bytes;
	*s = op->choice->nout == 2 ? op->choice->out[1] : -1;
	c->s[i] = *s >= 0 ? p->tensor[*s].bytes : 0;
	c->at_f[i] = out_bytes(p, op);
	return true;
}

static bool take_backward(const struct problem *p, const struct problem_op *op, struct chain *c,
	int i, int x, int s, int *g)
{
	int made = 1 + (i > 1) + (s >= 0);
	if (i < 1 || op->nchoice != 1 || op->npair || !reads(op, *g) || !reads(op, x) ||
		(s >= 0 && !reads(op, s)) || made_inputs(p, op) != made)
		return false;
	c->b[i] = op->choice->cost;
	c->at_b[i] = out_bytes(p, op) + c->s[i];
	*g = op->choice->nout ? op->choice->out[op->choice->nout - 1] : -1;
	c->g[i - 1] = i > 1 ? p->tensor[*g].bytes : 0;
	return true;
}

static bool take_loss(
	const struct problem *p, const struct problem_op *op, struct chain *c, int x, int *g)
{
	if (!reads(op, x) || op->choice->nout != 1)
		return false;
	int t = op->choice->out[0];
	c->loss += op->choice->cost;
	if (p->tensor[t].keep && *g < 0 && p->tensor[t].kind == TK_OUTPUT) {
		c->fixed += p->tensor[t].bytes;
		return true;
	}
	*g = t;
	c->g[c->n] = p->tensor[t].bytes;
	c->at_loss = c->g[c->n] + op->choice->workspace;
	return true;
}

bool chain_read(const struct problem *p, struct chain *c)
{
	int x[MOST + 2], s[MOST + 2], g = -1, o = 0, input = -1;
	for (int t = 0; t < p->ntensor; t++) {
		c->fixed += p->tensor[t].producer < 0 ? p->tensor[t].bytes : 0;
		if (p->tensor[t].kind == TK_INPUT && input < 0)
			input = t;
	}
	for (x[0] = input; o < p->nop && strstr(p->op[o].name, "loss") == NULL; o++) {
		x[o + 1] = x[o];
		if (!take_forward(p, &p->op[o], c, &x[o + 1], &s[o + 1]))
			return false;
	}
	for (; o < p->nop && strstr(p->op[o].name, "loss"); o++)
		if (!take_loss(p, &p->op[o], c, x[c->n], &g))
			return false;
	int i = c->n;
	for (; o < p->nop && g >= 0; o++) {
		if (p->op[o].phase == PHASE_UPDATE)
			c->loss += p->op[o].choice->cost; /* once, wherever */
		else if (!take_backward(p, &p->op[o], c, i, x[i - 1], s[i], &g))
			return false;
		else
			i--;
	}
	return c->n > 0 && i == 0;
}

/* --- The recurrence, in units. --- */

struct table {
	struct chain c; /* bytes replaced by units */
	int n, room;    /* budget in units, without what is fixed */
	double *first;  /* [s][m] */
	double **back;  /* [s * (n + 1) + t][m] */
};

static double at(const double *row, int64_t m)
{
	return m < 0 ? INFINITY : row[m];
}

/* What the sweep to k needs at most, x_s not counted, on top of what it began with. */
static int64_t sweep_peak(const struct chain *c, int s, int k, int64_t before)
{
	int64_t peak = c->at_f[k] + (k - 1 > s ? c->x[k - 1] : 0);
	return peak > before ? peak : before;
}

static double back_at(const struct table *t, int s, int e, int m)
{
	const struct chain *c = &t->c;
	double best = INFINITY, sweep = 0;
	int64_t g = c->g[e], peak = 0;
	int width = t->n + 1;
	if (e == s + 1) {
		bool again = c->s[e] > 0;
		if (m < g + c->at_b[e] || (again && m < g + c->at_f[e]))
			return INFINITY;
		return c->b[e] + (again ? c->f[e] : 0);
	}
	int i = s + 1;
	if (m >= g + c->at_f[i] && m >= c->g[i] + c->at_b[i])
		best = c->f[i] + at(t->back[i * width + e], m - c->x[i] - c->s[i]) + c->b[i];
	for (int k = s + 1; k < e; k++) {
		sweep += c->f[k];
		peak = sweep_peak(c, s, k, peak);
		if (peak + g > m || sweep >= best)
			break;
		double v = sweep + at(t->back[k * width + e], m - c->x[k]) +
			   t->back[s * width + k][m];
		best = v < best ? v : best;
	}
	return best;
}

static double first_at(const struct table *t, int s, int m)
{
	const struct chain *c = &t->c;
	double best = INFINITY, sweep = 0;
	int64_t peak = 0;
	int width = t->n + 1, i = s + 1;
	if (s == t->n)
		return m >= c->at_loss ? c->loss : INFINITY;
	if (m >= c->at_f[i] && m >= c->g[i] + c->at_b[i])
		best = c->f[i] +
		       at(t->first + (size_t)i * ((size_t)t->room + 1),
			       m - c->x[i] - c->s[i] < 0 ? -1 : m - c->x[i] - c->s[i]) +
		       c->b[i];
	for (int k = s + 1; k <= t->n; k++) {
		sweep += c->f[k];
		peak = sweep_peak(c, s, k, peak);
		if (peak > m || sweep >= best)
			break;
		double v = sweep + at(t->first + (size_t)k * ((size_t)t->room + 1), m - c->x[k]) +
			   t->back[s * width + k][m];
		best = v < best ? v : best;
	}
	return best;
}

static bool fill(struct table *t)
{
	size_t width = (size_t)t->n + 1, room = (size_t)t->room + 1;
	t->first = malloc(width * room * sizeof *t->first);
	t->back = calloc(width * width, sizeof *t->back);
	if (!t->first || !t->back)
		return false;
	for (int length = 1; length <= t->n; length++)
		for (int s = 0; s + length <= t->n; s++) {
			double *row = malloc(room * sizeof *row);
			t->back[(size_t)s * width + (size_t)(s + length)] = row;
			for (int m = 0; row && m <= t->room; m++)
				row[m] = back_at(t, s, s + length, m);
			if (!row)
				return false;
		}
	for (int s = t->n; s >= 0; s--)
		for (int m = 0; m <= t->room; m++)
			t->first[(size_t)s * room + (size_t)m] = first_at(t, s, m);
	return true;
}

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t r = a % b;
		a = b;
		b = r;
	}
	return a;
}

static void each_size(struct chain *c, void (*f)(int64_t *size, int64_t *unit), int64_t *unit)
{
	f(&c->at_loss, unit);
	for (int i = 0; i <= c->n; i++) {
		f(&c->x[i], unit);
		f(&c->s[i], unit);
		f(&c->g[i], unit);
		f(&c->at_f[i], unit);
		f(&c->at_b[i], unit);
	}
}

static void into_gcd(int64_t *size, int64_t *unit)
{
	*unit = gcd(*size, *unit);
}

static void in_units(int64_t *size, int64_t *unit)
{
	*size = (*size + *unit - 1) / *unit;
}

double chain_optimum(const struct chain *c, int64_t budget)
{
	int64_t unit = 0, room = budget - c->fixed;
	struct table t = {.c = *c, .n = c->n};
	if (room < 0)
		return INFINITY;
	each_size(&t.c, into_gcd, &unit);
	if (unit == 0 || room / unit > UNITS)
		unit = room / UNITS + 1;
	each_size(&t.c, in_units, &unit);
	t.room = (int)(room / unit);
	bool ok = fill(&t);
	double cost = ok ? t.first[t.room] : -1;
	for (int i = 0; t.back && i < (c->n + 1) * (c->n + 1); i++)
		free(t.back[i]);
	free(t.back);
	free(t.first);
	return cost;
}
