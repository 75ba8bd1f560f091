/* What people want to know about a plan. */
#include "planner/plan.h"

#include <stdlib.h>

#include "planner/problem/moves.h"

static bool has(const int *list, int n, int x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

struct reading {
	const struct problem *p;
	const struct plan *plan;
	struct plan_facts *f;
	/* buffers by last and by first step: heads [nstep], links [nbuffer]; -1 ends */
	int *ending_at, *next_ending, *starting_at, *next_starting;
};

/* Whether the buffer begins in the place of an input of its op that ends there. */
static bool takes_place(const struct reading *r, const struct plan_buffer *b)
{
	const struct problem_op *op = &r->p->op[r->plan->step[b->first_step].op];
	for (int k = r->ending_at[b->first_step]; k >= 0; k = r->next_ending[k]) {
		const struct plan_buffer *in = &r->plan->buffer[k];
		if (in->tensor < 0 || in->offset != b->offset)
			continue;
		for (int i = 0; i < op->npair; i++)
			if (op->pair[i].out == b->tensor && op->pair[i].in == in->tensor)
				return true;
	}
	return false;
}

static void chain_buffers(struct reading *r)
{
	const struct plan *plan = r->plan;
	for (int s = 0; s < plan->nstep; s++)
		r->ending_at[s] = r->starting_at[s] = -1;
	for (int i = plan->nbuffer - 1; i >= 0; i--) {
		const struct plan_buffer *b = &plan->buffer[i];
		r->next_ending[i] = r->ending_at[b->last_step];
		r->ending_at[b->last_step] = i;
		r->next_starting[i] = r->starting_at[b->first_step];
		r->starting_at[b->first_step] = i;
	}
}

static void read_live(struct reading *r)
{
	const struct plan *plan = r->plan;
	struct plan_facts *f = r->f;
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		f->in_place[i] = b->tensor >= 0 && takes_place(r, b);
		if (f->in_place[i]) {
			f->overwritten++;
			f->overwritten_bytes += b->bytes;
		}
		f->live[b->first_step + (f->in_place[i] ? 1 : 0)] += b->bytes;
		f->live[b->last_step + 1] -= b->bytes;
	}
	for (int s = 0; s < plan->nstep; s++) {
		f->live[s] += s > 0 ? f->live[s - 1] : 0;
		if (f->live[s] > f->live[f->peak_step])
			f->peak_step = s;
	}
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		if (b->first_step + (f->in_place[i] ? 1 : 0) > f->peak_step ||
			b->last_step < f->peak_step)
			continue;
		if (b->tensor >= 0)
			f->at_peak[r->p->tensor[b->tensor].kind] += b->bytes;
		else
			f->workspace_at_peak += b->bytes;
	}
}

/* Lifetimes of activations that begin at a forward op and that a backward op reads. */
static void count_kept(struct reading *r, int *open)
{
	const struct plan *plan = r->plan;
	for (int t = 0; t < r->p->ntensor; t++)
		open[t] = -1;
	for (int s = 0; s < plan->nstep; s++) {
		const struct problem_op *op = &r->p->op[plan->step[s].op];
		const struct problem_choice *w = &op->choice[plan->step[s].choice];
		for (int i = 0; op->phase == PHASE_BACKWARD && i < w->nin; i++) {
			int b = op->fetches ? -1 : open[w->in[i]];
			if (b < 0 || plan->step[plan->buffer[b].first_step].run > 0)
				continue;
			r->f->kept_buffer[r->f->kept++] = b;
			r->f->kept_bytes += plan->buffer[b].bytes;
			open[w->in[i]] = -1;
		}
		if (op->phase != PHASE_FORWARD && !op->fetches)
			continue;
		for (int i = 0; i < w->nout; i++)
			open[w->out[i]] = -1;
		if (op->fetches)
			continue;
		for (int k = r->starting_at[s]; k >= 0; k = r->next_starting[k])
			if (plan->buffer[k].tensor >= 0 &&
				has(w->out, w->nout, plan->buffer[k].tensor))
				open[plan->buffer[k].tensor] = k;
	}
}

struct kept {
	int64_t bytes;
	int buffer;
};

static int largest_first(const void *x, const void *y)
{
	const struct kept *a = x, *b = y;
	return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes)
				    : (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static enum status sort_kept(struct arena *a, struct reading *r, struct diag *d)
{
	int *list = r->f->kept_buffer, n = r->f->kept;
	struct kept *kept = ARENA_ARRAY(a, struct kept, n);
	if (!kept)
		return diag_nomem(d);
	for (int i = 0; i < n; i++)
		kept[i] = (struct kept){r->plan->buffer[list[i]].bytes, list[i]};
	qsort(kept, (size_t)n, sizeof *kept, largest_first);
	for (int i = 0; i < n; i++)
		list[i] = kept[i].buffer;
	return ST_OK;
}

/* --- Why things run again --- */

/* The step with the most live bytes of each range of 2^k steps: row k of a sparse table. */
struct summits {
	const int64_t *live;
	int n, rows;
	int *at; /* [rows * n] */
};

static int higher(const struct summits *h, int x, int y)
{
	return h->live[y] > h->live[x] ? y : x;
}

static bool summits_make(struct arena *a, const int64_t *live, int n, struct summits *out)
{
	*out = (struct summits){.live = live, .n = n, .rows = 1};
	while (n >> out->rows)
		out->rows++;
	out->at = arena_alloc(a, (size_t)out->rows, (size_t)n * sizeof *out->at);
	if (!out->at)
		return false;
	for (int i = 0; i < n; i++)
		out->at[i] = i;
	for (int k = 1; k < out->rows; k++) {
		const int *half = out->at + (size_t)(k - 1) * (size_t)n;
		int *row = out->at + (size_t)k * (size_t)n;
		for (int i = 0; i + (1 << k) <= n; i++)
			row[i] = higher(out, half[i], half[i + (1 << (k - 1))]);
	}
	return true;
}

/* The highest step of from .. to, the first of equals. */
static int summit(const struct summits *h, int from, int to)
{
	int k = 0;
	while ((2 << k) <= to - from + 1)
		k++;
	const int *row = h->at + (size_t)k * (size_t)h->n;
	return higher(h, row[from], row[to + 1 - (1 << k)]);
}

/* before[t]: the last step where tensor t was; -1: never. */
static void explain(
	const struct reading *r, const struct summits *h, const int *before, struct plan_again *x)
{
	const struct plan *plan = r->plan;
	const struct plan_step *ps = &plan->step[x->step];
	int gone = x->step - 1;
	x->cost = r->p->op[ps->op].choice[ps->choice].cost;
	x->forced_at = -1;
	for (int pass = 0; pass < 2; pass++) {
		for (int k = r->starting_at[x->step]; k >= 0; k = r->next_starting[k]) {
			const struct plan_buffer *b = &plan->buffer[k];
			int t = b->tensor < 0 ? -1 : problem_original(r->p, b->tensor);
			if (t < 0 || before[t] < 0 || b->last_step == x->step)
				continue;
			if (pass == 0 && before[t] < gone)
				gone = before[t];
			if (pass == 1 && before[t] < x->forced_at)
				x->freed_bytes += b->bytes;
		}
		if (pass == 0 && gone + 1 < x->step)
			x->forced_at = summit(h, gone + 1, x->step - 1);
	}
}

static enum status read_again(struct arena *a, struct reading *r, struct diag *d)
{
	const struct plan *plan = r->plan;
	struct plan_facts *f = r->f;
	struct summits h;
	int n = 0, *before = ARENA_ARRAY(a, int, r->p->ntensor + 1);
	f->again = ARENA_ARRAY(a, struct plan_again, f->recomputed_runs);
	if (!before || !f->again || !summits_make(a, f->live, plan->nstep, &h))
		return diag_nomem(d);
	for (int t = 0; t < r->p->ntensor; t++)
		before[t] = -1;
	for (int s = 0; s < plan->nstep; s++) {
		if (plan_step_again(r->p, &plan->step[s])) {
			f->again[n].step = s;
			f->again[n].op = plan_step_op(r->p, &plan->step[s]);
			explain(r, &h, before, &f->again[n]);
			f->recomputed_cost += f->again[n++].cost;
		}
		for (int k = r->starting_at[s]; k >= 0; k = r->next_starting[k])
			if (plan->buffer[k].tensor >= 0)
				before[problem_original(r->p, plan->buffer[k].tensor)] =
					plan->buffer[k].last_step;
	}
	return ST_OK;
}

static void count_transfers(const struct problem *p, const struct plan *plan, struct plan_facts *f)
{
	for (int s = 0; s < plan->nstep; s++) {
		const struct problem_op *op = &p->op[plan->step[s].op];
		f->disk_reads += op->from_disk != 0;
		f->disk_writes += op->to_disk != 0;
		f->from_disk += op->from_disk;
		f->to_disk += op->to_disk;
		f->disk_cost += op->from_disk || op->to_disk ? op->choice->cost : 0;
		f->rank_fetches += op->from_ranks != 0;
		f->from_ranks += op->from_ranks;
		f->ranks_cost += op->from_ranks ? op->choice->cost : 0;
		if (!problem_op_transfers(op))
			continue;
		f->offloads += op->offloads != 0;
		f->fetches += op->fetches != 0;
		f->host_bytes += op->offloads ? p->tensor[op->offloads - 1].bytes : 0;
		f->transfer_cost += op->choice->cost;
	}
}

enum status plan_facts_make(struct arena *a, const struct problem *p, const struct plan *plan,
	struct plan_facts *out, struct diag *d)
{
	*out = (struct plan_facts){0};
	struct reading r = {.p = p, .plan = plan, .f = out};
	out->runs = ARENA_ARRAY(a, int, p->nop + 1);
	out->live = ARENA_ARRAY(a, int64_t, plan->nstep + 2);
	r.ending_at = ARENA_ARRAY(a, int, plan->nstep + 1);
	r.next_ending = ARENA_ARRAY(a, int, plan->nbuffer + 1);
	r.starting_at = ARENA_ARRAY(a, int, plan->nstep + 1);
	r.next_starting = ARENA_ARRAY(a, int, plan->nbuffer + 1);
	out->in_place = ARENA_ARRAY(a, bool, plan->nbuffer + 1);
	out->kept_buffer = ARENA_ARRAY(a, int, plan->nbuffer + 1);
	int *open = ARENA_ARRAY(a, int, p->ntensor + 1);
	if (!out->runs || !out->live || !r.ending_at || !r.next_ending || !r.starting_at ||
		!r.next_starting || !out->in_place || !out->kept_buffer || !open)
		return diag_nomem(d);
	for (int s = 0; s < plan->nstep; s++)
		out->runs[plan_step_op(p, &plan->step[s])]++;
	count_transfers(p, plan, out);
	TRY(plan_beside(a, p, plan, &out->beside, d));
	for (int o = 0; o < p->nop; o++)
		if (out->runs[o] > 1 && !problem_op_moves(&p->op[o])) {
			out->recomputed_ops++;
			out->recomputed_runs += out->runs[o] - 1;
		}
	if (plan->nstep == 0)
		return ST_OK;
	chain_buffers(&r);
	read_live(&r);
	count_kept(&r, open);
	TRY(sort_kept(a, &r, d));
	return read_again(a, &r, d);
}
