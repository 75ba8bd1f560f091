/* SPDX-License-Identifier: MIT-0 */
/* Goes through a schedule: calls its kernels in order, and does what happens in between. */
#include "stint_schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ARENA_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(ARENA_SANITIZED)
#include <sanitizer/asan_interface.h>
#define POISON(p, bytes) ASAN_POISON_MEMORY_REGION(p, bytes)
#define UNPOISON(p, bytes) ASAN_UNPOISON_MEMORY_REGION(p, bytes)
#else
#define POISON(p, bytes) ((void)(p))
#define UNPOISON(p, bytes) ((void)(p))
#endif

/* A schedule under way. */
struct run {
	const struct stint_schedule *x;
	const struct stint_probe *probe;
	struct stint_frame f;
	int step;
	int passed;   /* it is of a branch that is not taken */
	int eventful; /* something happens between calls */
	/* in their lists, the first that is not before this step */
	const struct stint_shown *shown;
	const struct stint_move *move;
	const struct stint_life *begin, *end;
};

static int failed(struct run *r, int step, enum stint_fails fails, int code)
{
	stint_step *s = r->f.step;
	const struct stint_step_info *info = &r->x->info[step];
	if (fails == STINT_SAID)
		return code;
	if (fails == STINT_INDEX)
		return stint_bad_index(s, step, r->f.bad, info);
	return stint_bad_call(s, step, code, info);
}

/* Of micro-batches only the last does some things, and where somebody takes the gradients nothing
 * was updated. */
static int is_time(const struct run *r, int when)
{
	return !(when & STINT_LAST && !r->f.step->last) &&
	       !(when & STINT_UPDATED && r->probe && r->probe->gradient);
}

/* --- --debug-arena --- */

static void begin_life(unsigned char *p, size_t bytes)
{
	UNPOISON(p, bytes);
	memset(p, 0xff, bytes);
}

static void end_life(unsigned char *p, size_t bytes)
{
	memset(p, 0xff, bytes);
	POISON(p, bytes);
}

static void begin_lives(const struct run *r)
{
	for (const struct stint_life *l = r->begin; l && l->step == r->step; l++)
		begin_life(r->f.base + l->at, l->bytes);
}

static void end_lives(const struct run *r)
{
	for (const struct stint_life *l = r->end; l && l->step == r->step; l++)
		end_life(r->f.base + l->at, l->bytes);
}

/* --- Copies --- */

static int move(struct run *r, const struct stint_move *m)
{
	const struct stint_copy *c = &r->x->copy[m->copy];
	int rc = 0;
	if (m->what != STINT_WAIT && is_time(r, c->when))
		rc = c->begin(r->f.step, c);
	if (!rc && m->what != STINT_BEGIN)
		rc = c->wait(r->f.step, c);
	return rc ? failed(r, c->step, c->fails, rc) : STINT_OK;
}

static int moves(struct run *r, int through)
{
	int rc = STINT_OK;
	for (const struct stint_move *m = r->move; m && !rc && m->step == r->step; m++)
		if ((m->what == STINT_THROUGH) == through)
			rc = move(r, m);
	return rc;
}

/* --- Onlookers --- */

/* A product that no step stores, in memory outside the arena, for this look only; NULL: there was
 * none. */
static void *make_product(const struct run *r, const struct stint_shown *x)
{
	const size_t size = x->dtype == STINT_F64 ? sizeof(double) : sizeof(float);
	const size_t rows = x->bytes / size / x->columns,
		     offset = (size_t)(r->f.base - r->f.step->arena);
	const struct stint_device *d = r->f.step->device;
	unsigned char *y = malloc(x->bytes), *v = malloc((rows + x->columns) * size);
	const int seen = y && v && !d->get(r->f.step, offset + x->at, v, rows * size) &&
			 !d->get(r->f.step, offset + x->row, v + rows * size, x->columns * size);
	for (size_t i = 0; seen && i < rows; i++)
		for (size_t k = 0; k < x->columns; k++)
			if (x->dtype == STINT_F64)
				((double *)(void *)y)[i * x->columns + k] =
					0 +
					((double *)(void *)v)[i] * ((double *)(void *)v)[rows + k];
			else
				((float *)(void *)y)[i * x->columns + k] =
					0 +
					((float *)(void *)v)[i] * ((float *)(void *)v)[rows + k];
	free(v);
	if (!seen)
		free(y);
	return seen ? y : NULL;
}

/* Hands a finished gradient to whoever looks on, in the place of its update. */
static int show_gradient(const struct run *r)
{
	const struct stint_shown *x = r->shown;
	if (!r->probe || !r->probe->gradient || x->step != r->step || x->what == STINT_OUTPUT)
		return 0;
	if (x->what == STINT_GRADIENT) {
		r->probe->gradient(r->probe->user, x->of, r->f.base + x->at, x->bytes);
		return 1;
	}
	void *y = make_product(r, x);
	r->probe->gradient(r->probe->user, x->of, y, y ? x->bytes : 0);
	free(y);
	return 1;
}

static void show_outputs(const struct run *r)
{
	if (!r->probe || !r->probe->output)
		return;
	for (const struct stint_shown *x = r->shown; x->step == r->step; x++)
		if (x->what == STINT_OUTPUT)
			r->probe->output(
				r->probe->user, x->of, x->dtype, r->f.base + x->at, x->bytes);
}

/* Whoever looks on may want the step once more. */
static int wanted_again(const struct run *r)
{
	const struct stint_probe *p = r->probe;
	if (p && p->tick)
		p->tick(p->user, r->step);
	return p && p->again && p->again(p->user, r->step);
}

/* --- Rows --- */

static int call(struct run *r, int step, const struct stint_callee *k)
{
	const int rc = k->call(&r->f);
	return rc ? failed(r, step, k->fails, rc) : STINT_OK;
}

static int step_once(struct run *r, const struct stint_callee *k, int when)
{
	int rc = STINT_OK;
	begin_lives(r);
	if (!k->call)
		rc = moves(r, 1);
	else if (!show_gradient(r) && !r->passed && is_time(r, when) &&
		 !(when & STINT_TOGETHER && !r->probe))
		rc = call(r, r->step, k);
	if (!rc)
		show_outputs(r);
	return rc;
}

/* Over what belongs to steps before this one. */
static void catch_up(struct run *r)
{
	while (r->shown->step < r->step)
		r->shown++;
	while (r->move && r->move->step < r->step)
		r->move++;
	while (r->begin && r->begin->step < r->step)
		r->begin++;
	while (r->end && r->end->step < r->step)
		r->end++;
}

static int do_step(struct run *r, const struct stint_callee *k, int when)
{
	if (!r->eventful)
		return !r->passed && is_time(r, when) && !(when & STINT_TOGETHER)
			       ? call(r, r->step, k)
			       : STINT_OK;
	catch_up(r);
	int rc = moves(r, 0);
	if (rc || (when & STINT_LAST && !r->f.step->last))
		return rc;
	do
		rc = step_once(r, k, when);
	while (!rc && wanted_again(r));
	if (!rc)
		end_lives(r);
	return rc;
}

static int do_row(struct run *r)
{
	const size_t row = *r->f.at++;
	const int when = (int)(row & ((1 << STINT_WHEN_BITS) - 1));
	const struct stint_callee *k = &r->x->callee[row >> STINT_WHEN_BITS];
	int rc = STINT_OK;
	r->passed = when & STINT_BRANCH && !r->f.base[*r->f.at++];
	if (!(when & STINT_ASIDE)) {
		rc = do_step(r, k, when);
		r->step++;
	} else if (!r->probe && is_time(r, when)) {
		rc = call(r, r->step - 1, k);
	}
	r->f.at += k->places;
	return rc;
}

/* Before row i, which is run when the caller has done its part. What that writes begins to live
 * here. */
static int pause_at(struct run *r, int row)
{
	catch_up(r);
	begin_lives(r);
	r->f.step->pause = (struct stint_pause){
		.waits = 1, .row = row, .step = r->step, .at = (size_t)(r->f.at - r->x->row)};
	return STINT_PAUSED;
}

/* To that row: the first one. */
static int go_on(struct run *r)
{
	struct stint_pause *p = &r->f.step->pause;
	r->step = p->step;
	r->f.at = r->x->row + p->at;
	catch_up(r);
	while (r->begin && r->begin->step <= r->step)
		r->begin++;
	p->waits = 0;
	return p->row;
}

static int do_all(struct run *r)
{
	int rc = STINT_OK, row = 0;
	if (r->f.step->pause.waits) {
		row = go_on(r);
		rc = do_row(r);
		row++;
	} else {
		show_outputs(r);
		r->step = 0;
	}
	for (; !rc && row < r->x->rows; row++)
		rc = *r->f.at & STINT_PAUSE ? pause_at(r, row) : do_row(r);
	if (rc)
		return rc;
	catch_up(r);
	return moves(r, 0);
}

int stint_run(stint_step *s, const struct stint_schedule *x, unsigned char *base,
	const struct stint_probe *probe)
{
	const struct stint_lives *l = x->lives;
	struct run r = {.x = x,
		.probe = probe,
		.f = {.step = s, .base = base, .at = x->row},
		.step = -1,
		.eventful = probe || x->move || l,
		.shown = x->shown,
		.move = x->move,
		.begin = l ? l->begin : NULL,
		.end = l ? l->end : NULL};
	if (l && !s->pause.waits)
		end_life(base + l->at, l->bytes);
	const int rc = do_all(&r);
	if (l)
		UNPOISON(base + l->at, l->bytes);
	return rc;
}
