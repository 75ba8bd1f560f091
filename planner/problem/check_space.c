/* The checker's second half: where buffers lie. A sweep over the steps keeps the live buffers
 * sorted by offset; a buffer that takes its input's bytes joins them one step later, when the input
 * has left, since until then it lies within the input. */
#include "planner/problem/check.h"

#include <stdlib.h>
#include <string.h>

struct sweep {
	struct checker *c;
	int *live, nlive; /* buffers by offset; pairwise apart */
	int *start, *at;  /* buffers in order of first step; at[s] is where step s begins */
	int *late, nlate; /* to join at the next step */
	int *end, *end_at;
	bool *inside; /* [nbuffer] in `live` */
	bool *taken;  /* [nbuffer] its bytes were taken by a result */
};

static const char *name_of(const struct checker *c, int b)
{
	const struct plan_buffer *x = &c->plan->buffer[b];
	return x->tensor >= 0 ? c->p->tensor[x->tensor].name : c->p->op[x->workspace_of].name;
}

/* Where a buffer with this offset goes. */
static int find(const struct sweep *w, int64_t offset)
{
	int lo = 0, hi = w->nlive;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;
		if (w->c->plan->buffer[w->live[mid]].offset <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void clash(struct sweep *w, int a, int b, int s)
{
	check_fault(
		w->c, name_of(w->c, a), "overlaps %s in memory at step %d", name_of(w->c, b), s);
}

static void join(struct sweep *w, int b, int s)
{
	const struct plan_buffer *buf = w->c->plan->buffer;
	if (buf[b].bytes == 0)
		return;
	int at = find(w, buf[b].offset);
	if (at > 0 && buf[w->live[at - 1]].offset + buf[w->live[at - 1]].bytes > buf[b].offset) {
		clash(w, b, w->live[at - 1], s);
		return;
	}
	if (at < w->nlive && buf[b].offset + buf[b].bytes > buf[w->live[at]].offset) {
		clash(w, b, w->live[at], s);
		return;
	}
	memmove(w->live + at + 1, w->live + at, (size_t)(w->nlive - at) * sizeof *w->live);
	w->live[at] = b;
	w->nlive++;
	w->inside[b] = true;
}

static void leave(struct sweep *w, int b)
{
	if (!w->inside[b])
		return;
	int at = find(w, w->c->plan->buffer[b].offset) - 1;
	memmove(w->live + at, w->live + at + 1, (size_t)(w->nlive - at - 1) * sizeof *w->live);
	w->nlive--;
	w->inside[b] = false;
}

/* The input whose bytes buffer b may take at its first step, or -1. */
static int rides_on(struct sweep *w, int b)
{
	struct checker *c = w->c;
	const struct plan_buffer *out = &c->plan->buffer[b];
	int s = out->first_step;
	const struct problem_op *op = &c->p->op[c->plan->step[s].op];
	const struct problem_choice *way = check_way(c, s);
	if (out->tensor < 0 || !check_has(way->out, way->nout, out->tensor))
		return -1;
	for (int i = 0; i < op->npair; i++) {
		int t = op->pair[i].in;
		if (op->pair[i].out != out->tensor || !check_has(way->in, way->nin, t))
			continue;
		const struct problem_tensor *pt = &c->p->tensor[t];
		int k = check_buffer_at(c, t, s);
		if (k < 0 || w->taken[k] || c->plan->buffer[k].last_step != s ||
			c->plan->buffer[k].offset != out->offset ||
			c->plan->buffer[k].bytes < out->bytes)
			continue;
		if (tensor_kind_resident(pt->kind) ? op->phase != PHASE_UPDATE
						   : c->plan->buffer[k].first_step == s)
			continue;
		if (pt->keep && s == c->plan->nstep - 1)
			continue;
		return k;
	}
	return -1;
}

/* An update's pair with a resident is always taken. */
static void check_updates(struct sweep *w, int s)
{
	struct checker *c = w->c;
	const struct problem_op *op = &c->p->op[c->plan->step[s].op];
	const struct problem_choice *way = check_way(c, s);
	for (int i = 0; i < op->npair; i++) {
		int in = op->pair[i].in, out = op->pair[i].out;
		if (!tensor_kind_resident(c->p->tensor[in].kind) ||
			!check_has(way->in, way->nin, in) || !check_has(way->out, way->nout, out))
			continue;
		int a = check_buffer_at(c, in, s), b = check_buffer_at(c, out, s);
		if (a < 0 || b < 0)
			continue; /* reported already */
		const struct plan_buffer *x = &c->plan->buffer[a], *y = &c->plan->buffer[b];
		if (x->last_step != s || y->first_step != s || x->offset != y->offset)
			check_fault(c, op->name, "step %d: %s does not replace %s in its place", s,
				c->p->tensor[out].name, c->p->tensor[in].name);
	}
}

static void run_step(struct sweep *w, int s)
{
	struct checker *c = w->c;
	if (s > 0)
		for (int k = w->end_at[s - 1]; k < w->end_at[s]; k++)
			leave(w, w->end[k]);
	for (int k = 0; k < w->nlate; k++)
		join(w, w->late[k], s);
	w->nlate = 0;
	for (int k = w->at[s]; k < w->at[s + 1]; k++) {
		int b = w->start[k], in = rides_on(w, b);
		if (in >= 0) {
			w->taken[in] = true;
			c->rides[b] = true;
			if (c->plan->buffer[b].last_step > s)
				w->late[w->nlate++] = b;
		} else {
			join(w, b, s);
		}
	}
	check_updates(w, s);
}

/* Buffers grouped by first or by last step. */
static void group(const struct plan *plan, bool last, int *list, int *at)
{
	for (int i = 0; i < plan->nbuffer; i++)
		at[(last ? plan->buffer[i].last_step : plan->buffer[i].first_step) + 1]++;
	for (int s = 0; s < plan->nstep; s++)
		at[s + 1] += at[s];
	for (int i = plan->nbuffer - 1; i >= 0; i--)
		list[--at[(last ? plan->buffer[i].last_step : plan->buffer[i].first_step) + 1]] = i;
	/* at[s + 1] is now where step s begins */
	for (int s = 0; s < plan->nstep; s++)
		at[s] = at[s + 1];
	at[plan->nstep] = plan->nbuffer;
}

static void check_sums(struct sweep *w, int64_t *change)
{
	struct checker *c = w->c;
	const struct plan *plan = c->plan;
	int64_t arena = 0, live = 0, peak = 0, sum = 0;
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		if (b->offset % c->alignment != 0)
			check_fault(c, name_of(c, i), "offset %lld is not a multiple of %lld",
				(long long)b->offset, (long long)c->alignment);
		arena = b->offset + b->bytes > arena ? b->offset + b->bytes : arena;
		if (!size_add(sum, b->bytes, &sum)) {
			check_fault(c, NULL, "the buffers add up to more than can be counted");
			return;
		}
		change[b->first_step + (c->rides[i] ? 1 : 0)] += b->bytes;
		change[b->last_step + 1] -= b->bytes;
	}
	for (int s = 0; s < plan->nstep; s++) {
		live += change[s];
		peak = live > peak ? live : peak;
	}
	if (arena != plan->arena_bytes)
		check_fault(c, NULL, "arena_bytes is %lld, the buffers reach to %lld",
			(long long)plan->arena_bytes, (long long)arena);
	if (arena > plan->budget_bytes)
		check_fault(c, NULL, "the arena of %lld bytes exceeds the budget of %lld",
			(long long)arena, (long long)plan->budget_bytes);
	if (peak != plan->peak_bytes)
		check_fault(c, NULL, "peak_bytes is %lld, the live bytes reach %lld",
			(long long)plan->peak_bytes, (long long)peak);
}

enum status check_space(struct checker *c)
{
	size_t n = (size_t)c->plan->nbuffer + 1, m = (size_t)c->plan->nstep + 2;
	struct sweep w = {.c = c};
	w.live = calloc(n, sizeof(int));
	w.start = calloc(n, sizeof(int));
	w.end = calloc(n, sizeof(int));
	w.late = calloc(n, sizeof(int));
	w.at = calloc(m, sizeof(int));
	w.end_at = calloc(m, sizeof(int));
	w.inside = calloc(n, sizeof(bool));
	w.taken = calloc(n, sizeof(bool));
	int64_t *change = calloc(m, sizeof *change);
	enum status st = ST_OK;
	if (!w.live || !w.start || !w.end || !w.late || !w.at || !w.end_at || !w.inside ||
		!w.taken || !change) {
		st = diag_nomem(c->d);
	} else {
		group(c->plan, false, w.start, w.at);
		group(c->plan, true, w.end, w.end_at);
		for (int s = 0; s < c->plan->nstep; s++)
			run_step(&w, s);
		check_sums(&w, change);
	}
	free(w.live);
	free(w.start);
	free(w.end);
	free(w.late);
	free(w.at);
	free(w.end_at);
	free(w.inside);
	free(w.taken);
	free(change);
	return st;
}
