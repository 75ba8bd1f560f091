/* What goes on by itself, outside of the plan's ops, is begun as soon as it can be and waited for
 * late: ops that wait (problem_op.waits), and what is to be done with what comes, move back over
 * ops that run meanwhile. The plan costs the same; only places and the order change.
 *
 * Each wait moves in turn over one op more, until those that it has passed take so much of a step's
 * cost, or until what it holds would not fit beside what is live there: in the arena that the plan
 * has, or where that is too small for some in the budget; without a budget in one that is a
 * sixteenth larger. */
#include "planner/search/plan_make.h"

#include <string.h>

enum { TRIES = 4 };
/* Of the arena, how much more it may be where there is no budget. */
enum { MORE = 16 };
/* Of the step's cost, how much a wait may let pass. More would leave what hangs on them to the end.
 */
static const double REACH = 0.25;

struct overlap {
	struct planner *pl;
	struct inst in; /* where all that begins, and waits, is placed by the rule for updates */
	const int *way;
	struct seq q;
	bool *pulled;  /* [n] pull has been there */
	int *later;    /* [n] */
	int *until;    /* [n] the last position behind which an op may stand */
	int64_t *most; /* [q.n + 2] by position: live bytes in front of the op there, and at it */
	int64_t *idle; /* [q.n + 2] in front of it alone */
	bool is_short; /* some wait found no room */
	bool is_far;   /* waits are as far as they pay */
};

static const struct way *way_of(const struct overlap *v, int o)
{
	return &v->in.way[o][v->way[o]];
}

/* --- Which ops are placed by the rule: those that wait, and the updates that these wait for --- */

static void pull(struct overlap *v, int o)
{
	const struct problem_op *op = &v->in.p->op[o];
	if (v->pulled[o] || op->phase != PHASE_UPDATE || op->optional || op->nchoice != 1)
		return;
	v->pulled[o] = v->in.floating[o] = true;
	for (int k = 0; k < v->in.way[o][0].nin; k++)
		pull(v, v->in.p->tensor[v->in.way[o][0].in[k]].producer);
}

static bool allocate(struct overlap *v, const struct solution *from)
{
	struct arena *a = v->pl->tmp;
	const size_t n = (size_t)v->in.n;
	v->in.floating = arena_memdup(a, v->in.floating, n, sizeof *v->in.floating);
	v->in.floats = ARENA_ARRAY(a, int, v->in.n + 1);
	v->pulled = ARENA_ARRAY(a, bool, v->in.n + 1);
	v->later = ARENA_ARRAY(a, int, v->in.n + 1);
	v->until = ARENA_ARRAY(a, int, v->in.n + 1);
	v->most = ARENA_ARRAY(a, int64_t, from->q.n + 2);
	v->idle = ARENA_ARRAY(a, int64_t, from->q.n + 2);
	return v->in.floating && v->in.floats && v->pulled && v->later && v->until && v->most &&
	       v->idle && seq_reserve(&v->q, from->q.n + 1);
}

static void make_sequence(struct overlap *v, const struct seq *from)
{
	v->in.nfloat = 0;
	for (int o = 0; o < v->in.n; o++)
		if (v->in.p->op[o].waits)
			pull(v, o);
	for (int o = 0; o < v->in.n; o++)
		if (v->in.floating[o])
			v->in.floats[v->in.nfloat++] = o;
	for (int i = 0; i < from->n; i++)
		if (!v->in.floating[from->op[i]])
			v->q.op[v->q.n++] = from->op[i];
}

/* Who reads what waits make stands where it stood. */
static bool find_ends(struct overlap *v)
{
	int *first = ARENA_ARRAY(v->pl->tmp, int, v->in.m + 1);
	if (!first)
		return false;
	for (int t = 0; t < v->in.m; t++)
		first[t] = v->q.n;
	for (int i = v->q.n - 1; i >= 0; i--)
		for (int k = 0; k < way_of(v, v->q.op[i])->nin; k++)
			first[way_of(v, v->q.op[i])->in[k]] = i;
	for (int i = v->in.nfloat - 1; i >= 0; i--) {
		const int o = v->in.floats[i];
		const struct way *w = way_of(v, o);
		v->until[o] = v->q.n - 1;
		for (int k = 0; k < w->nout; k++)
			if (first[w->out[k]] - 1 < v->until[o])
				v->until[o] = first[w->out[k]] - 1;
		for (int k = 0; k < w->nin; k++)
			if (v->until[o] + 1 < first[w->in[k]])
				first[w->in[k]] = v->until[o] + 1;
	}
	return true;
}

/* --- How far --- */

static void find_memory(struct overlap *v, const struct sim *s)
{
	memset(v->most, 0, (size_t)(v->q.n + 2) * sizeof *v->most);
	memset(v->idle, 0, (size_t)(v->q.n + 2) * sizeof *v->idle);
	for (int at = 0; at < s->n; at++) {
		const int i = s->core[at];
		if (s->mem[at] > v->most[i])
			v->most[i] = s->mem[at];
		if (v->in.floating[s->step[at]] && s->mem[at] > v->idle[i])
			v->idle[i] = s->mem[at];
	}
}

/* What is held for wait `o` at position i that would be free without: what it takes, less what it
 * makes where that is live there anyway. */
static int64_t held(const struct overlap *v, const struct sim *s, int o, int i)
{
	const struct way *w = way_of(v, o);
	int64_t bytes = 0;
	for (int k = 0; k < w->nin; k++)
		bytes += v->in.size[w->in[k]];
	for (int k = 0; k < w->nout; k++) {
		const int end = s->life[s->last[w->out[k]]].end;
		if (end >= s->n || s->core[end] > i)
			bytes -= v->in.size[w->out[k]];
	}
	return bytes > 0 ? bytes : 0;
}

/* Wait `o` over the op behind which it stands now. */
static bool move_one(struct overlap *v, const struct sim *s, int o, double *left, int64_t limit)
{
	const int i = v->later[o] + 1;
	if (i > v->until[o] || *left <= 0)
		return false;
	const int64_t bytes = held(v, s, o, i);
	if (v->most[i] + bytes > limit || v->idle[i + 1] + bytes > limit) {
		v->is_short = true;
		*left = 0;
		return false;
	}
	v->most[i] += bytes;
	v->idle[i] += bytes;
	v->later[o] = i;
	*left -= way_of(v, v->q.op[i])->cost;
	return true;
}

static bool move_all(struct overlap *v, double reach, int64_t limit)
{
	struct search *x = &v->pl->x;
	double *left = ARENA_ARRAY(v->pl->tmp, double, v->in.n + 1);
	for (int o = 0; o < v->in.n; o++)
		v->later[o] = -1;
	if (!left || !simulate(x, &v->q, v->way, &x->s))
		return false;
	find_memory(v, &x->s);
	for (int i = 0; i < v->in.nfloat; i++) {
		const int o = v->in.floats[i];
		left[o] = v->in.p->op[o].waits ? reach : 0;
		v->later[o] = x->trigger[o];
	}
	v->is_short = false;
	for (bool moves = true; moves;) {
		moves = false;
		for (int i = 0; i < v->in.nfloat; i++) {
			const int o = v->in.floats[i];
			moves |= move_one(v, &x->s, o, &left[o], limit);
		}
	}
	return true;
}

static enum status move_within(
	struct overlap *v, int64_t limit, const struct plan *plan, struct plan **out)
{
	double reach = REACH * v->in.once_cost;
	*out = NULL;
	for (int k = 0; k < TRIES && !*out; k++, reach = k + 1 < TRIES ? reach / 4 : 0) {
		struct plan *tried;
		if (!move_all(v, reach, limit))
			return ST_OK;
		TRY(emit_plan(&v->pl->x, v->pl->a, &v->q, v->way, limit, &tried, v->pl->d));
		tried->budget_bytes = plan->budget_bytes;
		v->is_far = k == 0;
		if (tried->arena_bytes <= limit)
			*out = tried;
	}
	return ST_OK;
}

enum status overlap(struct planner *pl, const struct solution *from, struct plan **plan)
{
	struct overlap v = {.pl = pl, .in = *pl->in, .way = from->way};
	struct plan *made = NULL, *wide = NULL;
	bool waits = false;
	for (int o = 0; o < pl->in->n; o++)
		waits |= pl->in->p->op[o].waits;
	if (!waits || pl->in->transfers)
		return ST_OK;
	if (!allocate(&v, from))
		return diag_nomem(pl->d);
	make_sequence(&v, &from->q);
	pl->x.in = &v.in;
	pl->x.later = v.later;
	enum status st = find_ends(&v) ? move_within(&v, (*plan)->arena_bytes, *plan, &made)
				       : diag_nomem(pl->d);
	const int64_t arena = (*plan)->arena_bytes;
	const int64_t limit = pl->o->budget < INT64_MAX ? pl->o->budget : arena + arena / MORE;
	const bool is_wanted = !made || v.is_short || !v.is_far;
	if (st == ST_OK && is_wanted && limit > arena)
		st = move_within(&v, limit, *plan, &wide);
	pl->x.in = pl->in;
	pl->x.later = NULL;
	seq_free(&v.q);
	*plan = wide ? wide : made ? made : *plan;
	return st;
}
