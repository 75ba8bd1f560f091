#include "cli/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/memory.h"
#include "cli/progress.h"
#include "planner/problem/moves.h"

/* The schedule's steps are watched over so many whole steps at most: more says nothing new. */
enum { SAMPLES_MAX = 1000, TICKS_MAX = 1 << 24 };

struct watch {
	double *tick_us; /* [nop][samples] */
	int nop, samples, sample;
	struct timespec last;
};

static double elapsed_us(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) * 1e6 +
	       (double)(to->tv_nsec - from->tv_nsec) / 1e3;
}

static void on_tick(void *user, int index)
{
	struct watch *w = user;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (index >= 0 && index < w->nop)
		w->tick_us[(size_t)index * (size_t)w->samples + (size_t)w->sample] = elapsed_us(
			&w->last, &now);
	w->last = now;
}

/* A device's own clock. */
static void on_took(void *user, int index, double us)
{
	struct watch *w = user;
	if (index >= 0 && index < w->nop)
		w->tick_us[(size_t)index * (size_t)w->samples + (size_t)w->sample] = us;
}

/* What looking at the clock adds to each op. */
static double cost_of_a_tick(void)
{
	enum { N = 101 };
	double us[N];
	struct watch w = {.tick_us = us, .nop = N, .samples = 1};
	clock_gettime(CLOCK_MONOTONIC, &w.last);
	for (int i = 0; i < N; i++)
		on_tick(&w, i);
	return costs_median(us, N);
}

static int one_step(const struct loaded *l, const struct stint_probe *probe)
{
	return l->model->train ? l->train(l->step, 0, probe) : l->eval(l->step, 0, probe);
}

enum status timing_step(const struct loaded *l, double *us, struct diag *d)
{
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	int rc = one_step(l, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	*us = elapsed_us(&from, &to);
	return rc ? load_fail(l, rc, "bench", d) : ST_OK;
}

/* One round of one side: a whole step, and one that is watched. */
static int one_round(struct timing *t, struct watch *w, int round)
{
	const bool device = load_on_gpu(t->l);
	const struct stint_probe probe = {
		.user = w, .tick = device ? NULL : on_tick, .took = device ? on_took : NULL};
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	int rc = one_step(t->l, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	t->round_us[round] = elapsed_us(&from, &to);
	if (rc || round >= w->samples)
		return rc;
	w->sample = round;
	clock_gettime(CLOCK_MONOTONIC, &w->last);
	return one_step(t->l, &probe);
}

static enum status prepare(
	struct arena *a, const struct loaded *l, int steps, struct timing *t, struct watch *w)
{
	const struct stint_model *m = l->model;
	*t = (struct timing){.l = l, .steps = steps};
	t->nop = m->train ? m->ntrain_steps : m->neval_steps;
	t->info = m->train ? m->train_info : m->eval_info;
	int most = t->nop > TICKS_MAX / SAMPLES_MAX ? TICKS_MAX / t->nop : SAMPLES_MAX;
	*w = (struct watch){.nop = t->nop, .samples = steps < most ? steps : most ? most : 1};
	w->tick_us = arena_alloc(a, (size_t)t->nop, (size_t)w->samples * sizeof *w->tick_us);
	t->op_us = ARENA_ARRAY(a, double, t->nop);
	t->round_us = ARENA_ARRAY(a, double, steps);
	if (!w->tick_us || !t->op_us || !t->round_us)
		return ST_INTERNAL;
	/* there from the start, so that what the steps add can be seen */
	memset(w->tick_us, 0xff, (size_t)t->nop * (size_t)w->samples * sizeof *w->tick_us);
	memset(t->round_us, 0xff, (size_t)steps * sizeof *t->round_us);
	return ST_OK;
}

static enum status summarize(struct arena *a, struct timing *t, const struct watch *w)
{
	double *sorted = arena_memdup(a, t->round_us, (size_t)t->steps, sizeof *sorted);
	if (!sorted)
		return ST_INTERNAL;
	t->step_us = costs_median(sorted, t->steps);
	double tick = load_on_gpu(t->l) ? 0 : cost_of_a_tick();
	for (int i = 0; i < t->nop; i++) {
		double us = costs_median(w->tick_us + (size_t)i * (size_t)w->samples, w->samples);
		t->op_us[i] = us > tick ? us - tick : 0;
	}
	return ST_OK;
}

enum status timing_make(struct arena *a, const struct loaded *const *l, int n, int steps,
	struct timing *t, struct diag *d)
{
	struct watch *w = ARENA_ARRAY(a, struct watch, n);
	if (!w)
		return diag_nomem(d);
	for (int k = 0; k < n; k++) {
		if (prepare(a, l[k], steps, &t[k], &w[k]) != ST_OK)
			return diag_nomem(d);
		int rc = one_step(l[k], NULL); /* warm */
		if (rc)
			return load_fail(l[k], rc, "bench", d);
	}
	const int64_t before = memory_resident();
	struct progress bar;
	progress_start(&bar, n > 1 ? "timing both" : "timing", steps);
	for (int i = 0; i < steps; i++, progress_tick(&bar))
		for (int k = 0; k < n; k++) {
			int rc = one_round(&t[k], &w[k], i);
			if (rc)
				return load_fail(l[k], rc, "bench", d);
		}
	progress_end(&bar);
	const int64_t after = memory_resident();
	for (int k = 0; k < n; k++) {
		t[k].grown = after > before ? after - before : 0;
		if (summarize(a, &t[k], &w[k]) != ST_OK)
			return diag_nomem(d);
	}
	return ST_OK;
}

/* --- Alone --- */

/* An op is repeated till it took so long, so often at least, and so often at most. */
enum { ALONE_US = 1000, ALONE_MIN = 3, ALONE_MAX = 101 };

struct repeats {
	const bool *wanted; /* [nop] */
	const double *op_us;
	double *alone_us; /* [nop] */
	double us[ALONE_MAX];
	double sum;
	int n;  /* runs timed of the op now at work; -1: its run in the step is next */
	int at; /* that op, of a device's step */
	struct timespec last;
};

static int on_again(void *user, int index)
{
	struct repeats *r = user;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (r->n >= 0) {
		r->us[r->n] = elapsed_us(&r->last, &now);
		r->sum += r->us[r->n];
	}
	r->n++;
	if (r->wanted[index] && (r->n < ALONE_MIN || (r->n < ALONE_MAX && r->sum < ALONE_US))) {
		clock_gettime(CLOCK_MONOTONIC, &r->last);
		return 1;
	}
	if (r->n > 0)
		r->alone_us[index] = costs_median(r->us, r->n);
	r->n = -1;
	r->sum = 0;
	return 0;
}

/* A device is not waited for between the runs: how often is to be known before. */
static int on_device_again(void *user, int index)
{
	struct repeats *r = user;
	const double us = r->op_us[index];
	const int most = us * ALONE_MAX > ALONE_US ? (int)(ALONE_US / us) : ALONE_MAX;
	r->n = r->wanted[index] && r->n < most + ALONE_MIN ? r->n + 1 : 0;
	return r->n > 0;
}

/* The first of an op's runs is the step's. */
static void on_device_took(void *user, int index, double us)
{
	struct repeats *r = user;
	if (index != r->at) {
		r->at = index;
		r->n = 0;
		return;
	}
	if (r->n < ALONE_MAX)
		r->us[r->n++] = us;
	r->alone_us[index] = costs_median(r->us, r->n);
}

enum status timing_alone(struct arena *a, struct timing *t, const bool *wanted, struct diag *d)
{
	struct repeats *r = ARENA_NEW(a, struct repeats);
	t->alone_us = ARENA_ARRAY(a, double, t->nop);
	if (!r || !t->alone_us)
		return diag_nomem(d);
	for (int i = 0; i < t->nop; i++)
		t->alone_us[i] = -1;
	const bool device = load_on_gpu(t->l);
	*r = (struct repeats){.wanted = wanted,
		.op_us = t->op_us,
		.alone_us = t->alone_us,
		.n = device ? 0 : -1,
		.at = -1};
	const struct stint_probe probe = {.user = r,
		.again = device ? on_device_again : on_again,
		.took = device ? on_device_took : NULL};
	progress_say("timing each kernel alone");
	int rc = one_step(t->l, &probe);
	progress_clear();
	return rc ? load_fail(t->l, rc, "bench", d) : ST_OK;
}

/* --- What was planned --- */

enum status timing_plan(struct arena *a, const char *dir, struct timing *t, struct diag *d)
{
	char *graph = arena_printf(a, "%s/graph.json", dir);
	char *path = arena_printf(a, "%s/plan.json", dir);
	struct diag silent = {0};
	struct problem *problem;
	struct plan *plan;
	char *text;
	size_t len;
	if (!graph || !path)
		return diag_nomem(d);
	if (problem_read(a, graph, &problem, &silent) == ST_OK &&
		file_read(a, path, &text, &len, &silent) == ST_OK &&
		plan_parse(a, problem, text, len, path, &plan, &silent) == ST_OK &&
		plan->feasible && plan->nstep == t->nop) {
		t->problem = problem;
		t->plan = plan;
		TRY(plan_beside(a, problem, plan, &t->planned_us, d));
	}
	return silent.worst == ST_INTERNAL ? diag_nomem(d) : ST_OK;
}

static const struct problem_choice *way(const struct timing *t, int i)
{
	const struct plan_step *s = &t->plan->step[i];
	return &t->problem->op[s->op].choice[s->choice];
}

double timing_predicted(const struct timing *t, int i)
{
	return way(t, i)->cost;
}

const char *timing_key(const struct timing *t, int i)
{
	return t->plan ? way(t, i)->kernel : NULL;
}

/* --- Costs --- */

/* Where a kernel's runs gather. */
struct runs {
	const char *key;
	double us, roofline;
	int n;
};

static int by_key(const void *x, const void *y)
{
	return strcmp(((const struct runs *)x)->key, ((const struct runs *)y)->key);
}

/* Four digits: more is noise. */
static double rounded(double us)
{
	char text[40];
	snprintf(text, sizeof text, "%.4g", us);
	return strtod(text, NULL);
}

double timing_ops_us(const struct timing *t)
{
	double sum = 0;
	for (int i = 0; i < t->nop; i++)
		sum += t->op_us[i];
	return sum;
}

/* What the ops' medians do not show of a whole step is shared out among them, so that a plan's cost
 * is a step's time: threads that come late to a barrier, interruptions, control and loss. On an
 * idle machine that is up to 7 %. More is other programs' doing, which ops' medians pass over: a
 * step of a hundred ops always has a few that were held up. */
static double share(const struct timing *t, struct diag *d)
{
	const double most = 1.1, busy = 1.3;
	double sum = timing_ops_us(t), part = sum > 0 ? t->step_us / sum : 1;
	if (part > busy)
		diag_warn(d, NULL, "measure again when it is idle, with more --steps",
			"the machine is busy: a step takes %.1f times what its ops take one by one",
			part);
	return part < most ? part : most;
}

/* The mean of its runs' medians: so the kernels' costs add up to the step's. */
static void gather(const struct timing *t, struct runs *r, struct costs *c, struct diag *d)
{
	const double part = share(t, d);
	for (int i = 0; i < t->nop; i++) {
		const struct problem_choice *x = way(t, i);
		r[i] = (struct runs){x->kernel, t->op_us[i], x->roofline, 1};
	}
	qsort(r, (size_t)t->nop, sizeof *r, by_key);
	for (int i = 0; i < t->nop;) {
		struct runs sum = {r[i].key, 0, r[i].roofline, 0};
		for (; i < t->nop && strcmp(r[i].key, sum.key) == 0; i++) {
			sum.us += r[i].us;
			sum.n++;
		}
		c->kernel[c->n++] = (struct costs_kernel){.key = sum.key,
			.us = rounded(part * sum.us / sum.n),
			.roofline = sum.roofline};
	}
}

/* Kernels that the schedule has no use for: other choices. */
static enum status estimate(
	struct arena *a, const struct timing *t, struct costs *c, int room, struct diag *d)
{
	struct problem scaled = *t->problem;
	struct costs_use use;
	int measured = c->n;
	scaled.op = arena_memdup(a, scaled.op, (size_t)scaled.nop, sizeof *scaled.op);
	if (!scaled.op)
		return diag_nomem(d);
	TRY(costs_apply(a, &scaled, c, &use, d));
	for (int o = 0; o < scaled.nop; o++)
		for (int k = 0; k < scaled.op[o].nchoice && c->n < room; k++) {
			const struct problem_choice *x = &scaled.op[o].choice[k];
			const struct costs known = {.n = measured, .kernel = c->kernel};
			bool there = !x->kernel || costs_find(&known, x->kernel) != NULL;
			for (int i = measured; i < c->n && !there; i++)
				there = strcmp(c->kernel[i].key, x->kernel) == 0;
			if (!there)
				c->kernel[c->n++] = (struct costs_kernel){
					x->kernel, rounded(x->cost), x->roofline, true};
		}
	return ST_OK;
}

enum status timing_costs(struct arena *a, const struct timing *t, struct costs *c, struct diag *d)
{
	int room = 0;
	for (int o = 0; t->plan && o < t->problem->nop; o++)
		room += t->problem->op[o].nchoice;
	for (int i = 0; i < (t->plan ? t->nop : 0); i++)
		if (!way(t, i)->kernel)
			room = 0;
	if (room == 0)
		return diag_fail(d, ST_INVALID, NULL, "compile it again",
			"graph.json and plan.json do not tell the step's kernels");
	room += t->nop;
	struct runs *r = ARENA_ARRAY(a, struct runs, t->nop);
	c->kernel = ARENA_ARRAY(a, struct costs_kernel, room);
	if (!r || !c->kernel)
		return diag_nomem(d);
	gather(t, r, c, d);
	TRY(estimate(a, t, c, room, d));
	const char *twice;
	costs_sort(c, &twice);
	return ST_OK;
}
