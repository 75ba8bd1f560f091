/* From a sequence to a plan: steps, buffers, offsets.
 * Residents lie first, each in its place for good; a result that replaces one takes its place; all
 * else is placed above, chains of in-place results as one item. */
#include "planner/placement/place.h"
#include "planner/search/solver.h"

#include <stdlib.h>

/* Of the exact search for offsets: at most about a tenth of a second. */
static const double WORK_EXACT = 3e7, WORK_EXACT_ITEM = 3e4;

struct emitter {
	const struct inst *in;
	const struct sim *s;
	const int *way;
	struct plan *plan;
	int64_t *home; /* [m] offset of each resident */
	int *ends;     /* [m] the step at which a resident is replaced, or the last */
	int *next;     /* [nlife] the lifetime that takes this one's place, or -1 */
	bool *follows; /* [nlife] it takes another's place */
	int *of;       /* [nlife + workspaces] its item */
	struct place_seg *seg;
	struct place_item *item;
	int nseg, nitem;
};

static int last_step(const struct emitter *e, const struct life *l)
{
	return l->end < e->s->n ? l->end : e->s->n - 1;
}

static bool emitter_init(struct emitter *e, struct arena *tmp)
{
	size_t n = (size_t)e->s->nlife + (size_t)e->s->n + 1;
	e->home = ARENA_ARRAY(tmp, int64_t, e->in->m + 1);
	e->ends = ARENA_ARRAY(tmp, int, e->in->m + 1);
	e->next = ARENA_ARRAY(tmp, int, n);
	e->follows = ARENA_ARRAY(tmp, bool, n);
	e->of = ARENA_ARRAY(tmp, int, n);
	e->seg = ARENA_ARRAY(tmp, struct place_seg, n);
	e->item = ARENA_ARRAY(tmp, struct place_item, n);
	return e->home && e->ends && e->next && e->follows && e->of && e->seg && e->item;
}

/* Chains of in-place results, then workspaces, as items to place. */
static void make_items(struct emitter *e)
{
	const struct sim *s = e->s;
	for (int l = 0; l < s->nlife; l++)
		e->next[l] = -1;
	for (int i = 0; i < s->npair; i++) {
		e->next[s->pair[i].in] = s->pair[i].out;
		e->follows[s->pair[i].out] = true;
	}
	for (int l = 0; l < s->nlife; l++) {
		if (e->follows[l] || s->life[l].size == 0)
			continue;
		struct place_item *it = &e->item[e->nitem];
		it->seg = e->nseg;
		int from = s->life[l].start;
		for (int k = l; k >= 0; k = e->next[k]) {
			int to = last_step(e, &s->life[k]) + 1;
			e->seg[e->nseg++] = (struct place_seg){from, to, s->life[k].size};
			e->of[k] = e->nitem;
			from = to;
		}
		it->nseg = e->nseg - it->seg;
		e->nitem++;
	}
	for (int at = 0; at < s->n; at++) {
		int64_t ws = e->in->way[s->step[at]][e->way[s->step[at]]].ws;
		if (ws == 0)
			continue;
		e->of[s->nlife + at] = e->nitem;
		e->item[e->nitem++] = (struct place_item){.seg = e->nseg, .nseg = 1};
		e->seg[e->nseg++] = (struct place_seg){at, at + 1, ws};
	}
}

/* Segments of length zero (a chain link that ends where it starts) deny nothing. */
static void drop_empty(struct emitter *e)
{
	int n = 0;
	for (int i = 0; i < e->nitem; i++) {
		struct place_item *it = &e->item[i];
		int first = n;
		for (int k = it->seg; k < it->seg + it->nseg; k++)
			if (e->seg[k].lower < e->seg[k].upper)
				e->seg[n++] = e->seg[k];
		it->seg = first;
		it->nseg = n - first;
	}
	e->nseg = n;
}

static enum status place(struct emitter *e, int64_t aim, struct diag *d)
{
	int64_t at = 0, height, load;
	for (int t = 0; t < e->in->m; t++)
		if (e->in->res[t]) {
			e->home[t] = at;
			at += (e->in->p->tensor[t].bytes + e->in->align - 1) & ~(e->in->align - 1);
		}
	make_items(e);
	drop_empty(e);
	double work = WORK_EXACT_ITEM * e->nitem;
	return place_items(e->seg, e->nseg, e->item, e->nitem, e->in->align, at, aim,
		work < WORK_EXACT ? work : WORK_EXACT, &height, &load, d);
}

static void add_buffer(struct plan *plan, struct plan_buffer b)
{
	plan->buffer[plan->nbuffer++] = b;
	if (b.offset + b.bytes > plan->arena_bytes)
		plan->arena_bytes = b.offset + b.bytes;
}

static void add_residents(struct emitter *e)
{
	const struct sim *s = e->s;
	for (int t = 0; t < e->in->m; t++)
		e->ends[t] = s->n - 1;
	for (int at = 0; at < s->n; at++) {
		const struct way *w = &e->in->way[s->step[at]][e->way[s->step[at]]];
		for (int k = 0; k < w->nkill; k++)
			e->ends[w->kill[k]] = at;
	}
	for (int t = 0; t < e->in->m; t++)
		if (e->in->res[t])
			add_buffer(e->plan, (struct plan_buffer){.tensor = t,
						    .workspace_of = -1,
						    .offset = e->home[t],
						    .bytes = e->in->p->tensor[t].bytes,
						    .first_step = 0,
						    .last_step = e->ends[t]});
}

static void add_step(struct emitter *e, int at, int *runs)
{
	const struct sim *s = e->s;
	int o = s->step[at];
	const struct way *w = &e->in->way[o][e->way[o]];
	e->plan->step[at] = (struct plan_step){.op = o, .choice = w->choice, .run = runs[o]++};
	for (int l = s->life_at[at]; l < s->life_at[at + 1]; l++) {
		int t = s->life[l].tensor, home = e->in->forced[t];
		int64_t offset = home >= 0             ? e->home[home]
				 : s->life[l].size > 0 ? e->item[e->of[l]].offset
						       : 0;
		add_buffer(e->plan, (struct plan_buffer){.tensor = t,
					    .workspace_of = -1,
					    .offset = offset,
					    .bytes = e->in->p->tensor[t].bytes,
					    .first_step = at,
					    .last_step = last_step(e, &s->life[l])});
	}
	if (w->ws > 0)
		add_buffer(e->plan, (struct plan_buffer){.tensor = -1,
					    .workspace_of = o,
					    .offset = e->item[e->of[s->nlife + at]].offset,
					    .bytes = e->in->p->op[o].choice[w->choice].workspace,
					    .first_step = at,
					    .last_step = at});
}

/* The most raw bytes at once; what takes another's place counts from the step after. */
static int64_t raw_peak(const struct emitter *e, int64_t *change)
{
	const struct sim *s = e->s;
	const struct plan *plan = e->plan;
	for (int i = 0; i < plan->nbuffer; i++) {
		change[plan->buffer[i].first_step] += plan->buffer[i].bytes;
		change[plan->buffer[i].last_step + 1] -= plan->buffer[i].bytes;
	}
	for (int i = 0; i < s->npair; i++) {
		const struct life *l = &s->life[s->pair[i].out];
		change[l->start] -= e->in->p->tensor[l->tensor].bytes;
		change[l->start + 1] += e->in->p->tensor[l->tensor].bytes;
	}
	for (int l = 0; l < s->nlife; l++) {
		int t = s->life[l].tensor;
		if (e->in->forced[t] < 0)
			continue;
		change[s->life[l].start] -= e->in->p->tensor[t].bytes;
		change[s->life[l].start + 1] += e->in->p->tensor[t].bytes;
	}
	int64_t live = 0, peak = 0;
	for (int at = 0; at < s->n; at++) {
		live += change[at];
		peak = live > peak ? live : peak;
	}
	return peak;
}

static enum status emit(
	struct emitter *e, struct arena *a, struct arena *tmp, int64_t budget, struct diag *d)
{
	const struct sim *s = e->s;
	if (!emitter_init(e, tmp))
		return diag_nomem(d);
	TRY(place(e, budget < INT64_MAX ? budget : 0, d));
	struct plan *plan = e->plan = ARENA_NEW(a, struct plan);
	int *runs = ARENA_ARRAY(tmp, int, e->in->n + 1);
	int64_t *change = ARENA_ARRAY(tmp, int64_t, s->n + 2);
	if (!plan || !runs || !change)
		return diag_nomem(d);
	plan->step = ARENA_ARRAY(a, struct plan_step, s->n + 1);
	plan->buffer = ARENA_ARRAY(a, struct plan_buffer, e->in->m + s->nlife + s->n + 1);
	if (!plan->step || !plan->buffer)
		return diag_nomem(d);
	plan->graph = e->in->p->name;
	plan->budget_bytes = budget;
	plan->feasible = true;
	plan->nstep = s->n;
	plan->cost_once = e->in->once_cost;
	plan->cost_total = s->cost;
	plan->lower_bound = -1;
	add_residents(e);
	for (int at = 0; at < s->n; at++)
		add_step(e, at, runs);
	plan->peak_bytes = raw_peak(e, change);
	return ST_OK;
}

enum status emit_plan(struct search *x, struct arena *a, const struct seq *q, const int *way,
	int64_t budget, struct plan **out, struct diag *d)
{
	struct emitter e = {.in = x->in, .s = &x->s, .way = way};
	struct arena *tmp = arena_new();
	enum status st = ST_OK;
	if (!tmp || !simulate(x, q, way, &x->s))
		st = x->nomem || !tmp ? diag_nomem(d)
				      : diag_fail(d, ST_INTERNAL, NULL, NULL,
						"the planner made a sequence that cannot run");
	if (st == ST_OK)
		st = emit(&e, a, tmp, budget, d);
	arena_free(tmp);
	*out = st == ST_OK ? e.plan : NULL;
	return st;
}
