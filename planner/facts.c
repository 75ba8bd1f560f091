/* What people want to know about a plan. */
#include "planner/plan.h"

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
	int *ending_at, *next_ending; /* buffers by last step: heads [nstep], links [nbuffer] */
	bool *rides;                  /* [nbuffer] takes the bytes of an input at its first step */
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

static void read_live(struct reading *r)
{
	const struct plan *plan = r->plan;
	struct plan_facts *f = r->f;
	for (int s = 0; s < plan->nstep; s++)
		r->ending_at[s] = -1;
	for (int i = plan->nbuffer - 1; i >= 0; i--) {
		r->next_ending[i] = r->ending_at[plan->buffer[i].last_step];
		r->ending_at[plan->buffer[i].last_step] = i;
	}
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		r->rides[i] = b->tensor >= 0 && takes_place(r, b);
		if (r->rides[i]) {
			f->overwritten++;
			f->overwritten_bytes += b->bytes;
		}
		f->live[b->first_step + (r->rides[i] ? 1 : 0)] += b->bytes;
		f->live[b->last_step + 1] -= b->bytes;
	}
	for (int s = 0; s < plan->nstep; s++) {
		f->live[s] += s > 0 ? f->live[s - 1] : 0;
		if (f->live[s] > f->live[f->peak_step])
			f->peak_step = s;
	}
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		if (b->first_step + (r->rides[i] ? 1 : 0) > f->peak_step ||
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
	int next = 0;
	for (int s = 0; s < plan->nstep; s++) {
		const struct problem_op *op = &r->p->op[plan->step[s].op];
		const struct problem_choice *w = &op->choice[plan->step[s].choice];
		for (int i = 0; op->phase == PHASE_BACKWARD && i < w->nin; i++) {
			int b = open[w->in[i]];
			if (b < 0 || plan->step[plan->buffer[b].first_step].run > 0)
				continue;
			r->f->kept++;
			r->f->kept_bytes += plan->buffer[b].bytes;
			open[w->in[i]] = -1;
		}
		if (op->phase != PHASE_FORWARD)
			continue;
		for (int i = 0; i < w->nout; i++)
			open[w->out[i]] = -1;
		while (next < plan->nbuffer &&
			(plan->buffer[next].tensor < 0 ||
				tensor_kind_resident(
					r->p->tensor[plan->buffer[next].tensor].kind) ||
				plan->buffer[next].first_step < s))
			next++;
		for (int k = next; k < plan->nbuffer && plan->buffer[k].first_step <= s; k++)
			if (plan->buffer[k].tensor >= 0 && plan->buffer[k].first_step == s &&
				has(w->out, w->nout, plan->buffer[k].tensor))
				open[plan->buffer[k].tensor] = k;
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
	r.rides = ARENA_ARRAY(a, bool, plan->nbuffer + 1);
	int *open = ARENA_ARRAY(a, int, p->ntensor + 1);
	if (!out->runs || !out->live || !r.ending_at || !r.next_ending || !r.rides || !open)
		return diag_nomem(d);
	for (int s = 0; s < plan->nstep; s++)
		out->runs[plan->step[s].op]++;
	for (int o = 0; o < p->nop; o++)
		if (out->runs[o] > 1) {
			out->recomputed_ops++;
			out->recomputed_runs += out->runs[o] - 1;
		}
	if (plan->nstep > 0) {
		read_live(&r);
		count_kept(&r, open);
	}
	return ST_OK;
}
