/* The independent checker: whether a plan does what its problem asks, from the two alone. */
#include "planner/problem/check.h"

#include <math.h>
#include <stdlib.h>

void check_fault(struct checker *c, const char *node, const char *fmt, ...)
{
	struct where w = {.file = c->file, .node = node};
	va_list ap;
	va_start(ap, fmt);
	diag_vfail(c->d, ST_INVALID, &w, NULL, fmt, ap);
	va_end(ap);
	c->bad = true;
}

bool check_has(const int *list, int n, int x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

const struct problem_choice *check_way(const struct checker *c, int s)
{
	const struct plan_step *st = &c->plan->step[s];
	return &c->p->op[st->op].choice[st->choice];
}

int check_buffer_at(const struct checker *c, int t, int s)
{
	int lo = c->first_of[t], hi = c->first_of[t + 1];
	while (lo < hi) { /* the last one that starts at or before s */
		int mid = lo + (hi - lo) / 2;
		if (c->plan->buffer[c->by_tensor[mid]].first_step <= s)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->first_of[t])
		return -1;
	int b = c->by_tensor[lo - 1];
	return c->plan->buffer[b].last_step >= s ? b : -1;
}

/* --- Steps --- */

static bool steps_in_range(struct checker *c)
{
	const struct plan *plan = c->plan;
	if (plan->nstep < 1)
		check_fault(c, NULL, "the plan has no steps");
	for (int s = 0; s < plan->nstep; s++) {
		const struct plan_step *st = &plan->step[s];
		if (st->op < 0 || st->op >= c->p->nop)
			check_fault(c, NULL, "step %d names no op", s);
		else if (st->choice < 0 || st->choice >= c->p->op[st->op].nchoice)
			check_fault(c, c->p->op[st->op].name, "step %d: there is no choice %d", s,
				st->choice);
	}
	return !c->bad;
}

static void check_runs(struct checker *c)
{
	int *runs = calloc((size_t)c->p->nop + 1, sizeof *runs);
	if (!runs) {
		c->bad = true;
		diag_nomem(c->d);
		return;
	}
	for (int s = 0; s < c->plan->nstep; s++) {
		const struct plan_step *st = &c->plan->step[s];
		const char *name = c->p->op[st->op].name;
		if (runs[st->op] == 0)
			c->choice[st->op] = st->choice;
		else if (c->choice[st->op] != st->choice)
			check_fault(c, name, "step %d runs choice %d; an earlier run chose %d", s,
				st->choice, c->choice[st->op]);
		if (st->run != runs[st->op])
			check_fault(c, name, "step %d is run %d of this op, not %d", s,
				runs[st->op], st->run);
		runs[st->op]++;
	}
	for (int o = 0; o < c->p->nop; o++) {
		const struct problem_op *op = &c->p->op[o];
		if (runs[o] == 0 && !op->optional)
			check_fault(c, op->name, "the op never runs");
		if (runs[o] > 1 && (!op->recomputable || op->phase == PHASE_UPDATE))
			check_fault(
				c, op->name, "the op runs %d times; it may run once only", runs[o]);
	}
	free(runs);
}

/* --- Buffers --- */

static bool buffers_in_range(struct checker *c)
{
	const struct plan *plan = c->plan;
	bool before = c->bad;
	c->bad = false;
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		bool tensor = b->tensor >= 0 && b->tensor < c->p->ntensor && b->workspace_of == -1;
		bool space = b->tensor == -1 && b->workspace_of >= 0 && b->workspace_of < c->p->nop;
		if (!tensor && !space) {
			check_fault(c, NULL, "buffer %d names neither a tensor nor an op", i);
			continue;
		}
		const char *name = tensor ? c->p->tensor[b->tensor].name
					  : c->p->op[b->workspace_of].name;
		int64_t end;
		if (b->first_step < 0 || b->last_step < b->first_step ||
			b->last_step >= plan->nstep)
			check_fault(c, name, "buffer %d lives over steps %d to %d of %d", i,
				b->first_step, b->last_step, plan->nstep);
		if (!size_add(b->offset, b->bytes, &end) || end > INT64_MAX / 4)
			check_fault(c, name, "buffer %d has offset %lld and %lld bytes", i,
				(long long)b->offset, (long long)b->bytes);
		if (tensor && b->bytes != c->p->tensor[b->tensor].bytes)
			check_fault(c, name, "buffer %d has %lld bytes, the tensor %lld", i,
				(long long)b->bytes, (long long)c->p->tensor[b->tensor].bytes);
	}
	bool ok = !c->bad;
	c->bad = c->bad || before;
	return ok;
}

struct starting {
	int first, buffer;
};

static int starting_cmp(const void *a, const void *b)
{
	const struct starting *x = a, *y = b;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* Fill first_of and by_tensor. */
static bool index_buffers(struct checker *c)
{
	const struct plan *plan = c->plan;
	struct starting *order = malloc(((size_t)plan->nbuffer + 1) * sizeof *order);
	int *fill = calloc((size_t)c->p->ntensor + 1, sizeof *fill);
	bool ok = order && fill;
	for (int i = 0; ok && i < plan->nbuffer; i++) {
		order[i] = (struct starting){plan->buffer[i].first_step, i};
		if (plan->buffer[i].tensor >= 0)
			c->first_of[plan->buffer[i].tensor + 1]++;
	}
	if (ok) {
		qsort(order, (size_t)plan->nbuffer, sizeof *order, starting_cmp);
		for (int t = 0; t < c->p->ntensor; t++)
			c->first_of[t + 1] += c->first_of[t];
	}
	for (int i = 0; ok && i < plan->nbuffer; i++) {
		int t = plan->buffer[order[i].buffer].tensor;
		if (t >= 0)
			c->by_tensor[c->first_of[t] + fill[t]++] = order[i].buffer;
	}
	free(order);
	free(fill);
	return ok;
}

static bool runs_output(const struct checker *c, int s, int t)
{
	const struct problem_choice *w = check_way(c, s);
	return check_has(w->out, w->nout, t);
}

static void check_resident(struct checker *c, int t)
{
	const struct problem_tensor *pt = &c->p->tensor[t];
	int n = c->first_of[t + 1] - c->first_of[t];
	if (n != 1) {
		check_fault(c, pt->name, "a resident has one buffer, not %d", n);
		return;
	}
	const struct plan_buffer *b = &c->plan->buffer[c->by_tensor[c->first_of[t]]];
	if (b->first_step != 0)
		check_fault(c, pt->name, "a resident is there from step 0, not %d", b->first_step);
	if (b->last_step == c->plan->nstep - 1)
		return;
	const struct problem_op *op = &c->p->op[c->plan->step[b->last_step].op];
	const struct problem_choice *w = check_way(c, b->last_step);
	for (int i = 0; i < op->npair; i++)
		if (op->pair[i].in == t && op->phase == PHASE_UPDATE &&
			check_has(w->in, w->nin, t) && check_has(w->out, w->nout, op->pair[i].out))
			return;
	check_fault(
		c, pt->name, "a resident ends at step %d, where nothing replaces it", b->last_step);
}

static void check_lifetimes(struct checker *c)
{
	for (int t = 0; t < c->p->ntensor; t++) {
		const struct problem_tensor *pt = &c->p->tensor[t];
		if (tensor_kind_resident(pt->kind)) {
			check_resident(c, t);
		} else {
			int end = -1;
			for (int k = c->first_of[t]; k < c->first_of[t + 1]; k++) {
				const struct plan_buffer *b = &c->plan->buffer[c->by_tensor[k]];
				if (b->first_step <= end)
					check_fault(c, pt->name, "two lifetimes at step %d",
						b->first_step);
				if (!runs_output(c, b->first_step, t))
					check_fault(c, pt->name,
						"a lifetime starts at step %d, which does not make "
						"it",
						b->first_step);
				end = b->last_step > end ? b->last_step : end;
			}
		}
		if (pt->keep && check_buffer_at(c, t, c->plan->nstep - 1) < 0)
			check_fault(c, pt->name, "is to be kept, but not live after the last step");
	}
}

static void check_workspaces(struct checker *c)
{
	const struct plan *plan = c->plan;
	for (int s = 0; s < plan->nstep; s++)
		c->workspace_at[s] = -1;
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		if (b->tensor >= 0)
			continue;
		const char *name = c->p->op[b->workspace_of].name;
		if (b->first_step != b->last_step ||
			plan->step[b->first_step].op != b->workspace_of)
			check_fault(c, name, "workspace %d does not lie at a run of its op", i);
		else if (c->workspace_at[b->first_step] >= 0)
			check_fault(c, name, "step %d has two workspaces", b->first_step);
		else
			c->workspace_at[b->first_step] = i;
	}
	for (int s = 0; s < plan->nstep; s++) {
		int64_t need = check_way(c, s)->workspace;
		int w = c->workspace_at[s];
		int64_t have = w >= 0 ? plan->buffer[w].bytes : 0;
		if (have != need)
			check_fault(c, c->p->op[plan->step[s].op].name,
				"step %d has %lld bytes of workspace and needs %lld", s,
				(long long)have, (long long)need);
	}
}

/* Inputs live before and at each step, outputs with a place at it. */
static void check_operands(struct checker *c)
{
	const struct plan *plan = c->plan;
	for (int s = 0; s < plan->nstep; s++) {
		const struct problem_choice *w = check_way(c, s);
		const char *name = c->p->op[plan->step[s].op].name;
		for (int i = 0; i < w->nin; i++) {
			int t = w->in[i], b = check_buffer_at(c, t, s);
			bool resident = tensor_kind_resident(c->p->tensor[t].kind);
			if (b < 0 || (!resident && plan->buffer[b].first_step == s))
				check_fault(c, name, "step %d reads %s, which is not live", s,
					c->p->tensor[t].name);
		}
		for (int i = 0; i < w->nout; i++)
			if (check_buffer_at(c, w->out[i], s) < 0)
				check_fault(c, name, "step %d has no place for its output %s", s,
					c->p->tensor[w->out[i]].name);
	}
}

/* --- Costs --- */

static bool close_to(double a, double b)
{
	double scale = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
	return fabs(a - b) <= 1e-9 * scale;
}

static void check_costs(struct checker *c)
{
	const struct plan *plan = c->plan;
	double once = 0, total = 0;
	for (int o = 0; o < c->p->nop; o++) {
		const struct problem_op *op = &c->p->op[o];
		double least = op->choice[0].cost;
		for (int k = 1; k < op->nchoice; k++)
			least = op->choice[k].cost < least ? op->choice[k].cost : least;
		once += op->optional ? 0 : least;
	}
	for (int s = 0; s < plan->nstep; s++)
		total += check_way(c, s)->cost;
	if (!close_to(once, plan->cost_once))
		check_fault(c, NULL, "cost.once is %.17g, the costs add up to %.17g",
			plan->cost_once, once);
	if (!close_to(total, plan->cost_total))
		check_fault(c, NULL, "cost.total is %.17g, the steps add up to %.17g",
			plan->cost_total, total);
	if (!isfinite(plan->lower_bound) || plan->lower_bound > plan->cost_total * (1 + 1e-9))
		check_fault(c, NULL, "cost.lower_bound %.17g is above cost.total %.17g",
			plan->lower_bound, plan->cost_total);
}

static enum status check_all(struct checker *c)
{
	size_t n = (size_t)c->plan->nbuffer + 1;
	c->choice = calloc((size_t)c->p->nop + 1, sizeof *c->choice);
	c->first_of = calloc((size_t)c->p->ntensor + 2, sizeof *c->first_of);
	c->by_tensor = calloc(n, sizeof *c->by_tensor);
	c->rides = calloc(n, sizeof *c->rides);
	c->workspace_at = calloc(
		(size_t)(c->plan->nstep > 0 ? c->plan->nstep : 0) + 1, sizeof(int));
	if (!c->choice || !c->first_of || !c->by_tensor || !c->rides || !c->workspace_at)
		return diag_nomem(c->d);
	if (!steps_in_range(c))
		return ST_INVALID;
	check_runs(c);
	check_costs(c);
	if (!buffers_in_range(c))
		return ST_INVALID;
	if (!index_buffers(c))
		return diag_nomem(c->d);
	check_lifetimes(c);
	check_workspaces(c);
	check_operands(c);
	TRY(check_space(c));
	return c->bad ? ST_INVALID : ST_OK;
}

enum status plan_check(const struct problem *p, const struct plan *plan, int64_t alignment,
	const char *file, struct diag *d)
{
	struct checker c = {.p = p, .plan = plan, .alignment = alignment, .file = file, .d = d};
	if (!plan->feasible) {
		check_fault(&c, NULL, "the file says that no plan was found");
		return ST_INVALID;
	}
	enum status st = check_all(&c);
	free(c.choice);
	free(c.first_of);
	free(c.by_tensor);
	free(c.rides);
	free(c.workspace_at);
	return st;
}
