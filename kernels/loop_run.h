/* SPDX-License-Identifier: MIT-0 */
/* The turns of a loop that is one node: which body runs next, and where its tensors are. */
#ifndef STINT_KERNELS_LOOP_RUN_H
#define STINT_KERNELS_LOOP_RUN_H

#include <stddef.h>
#include <string.h>

#include "revolve.h"
#include "which_body.h"
#include "words.h"

/* One turn of a body: the step, the body's arena, and its operands. Returns the step's status. */
typedef int loop_turn(void *step, unsigned char *arena, unsigned char *const *operand);

/* Where an operand is: the same in every turn; the turn's slice, `bytes` each, the slices in the
 * order of the turns or backwards, `shift` turns on; carry k before the turn, or after it; the
 * gradient of that after the turn, or before it. */
enum loop_where {
	LOOP_SAME,
	LOOP_SLICE,
	LOOP_SLICE_BACKWARDS,
	LOOP_BEFORE,
	LOOP_AFTER,
	LOOP_GRADIENT_AFTER,
	LOOP_GRADIENT_BEFORE
};
struct loop_operand {
	enum loop_where where;
	int k, shift;
	const void *at;
	int64_t bytes;
};

/* A step of a turn whose kernel may fail: by a code that the runtime has explained (SAID), the
 * library's, or an index that is out of range. */
#define LOOP_SAID(call)                                                                            \
	do {                                                                                       \
		const int error = (call);                                                          \
		if (error)                                                                         \
			return error;                                                              \
	} while (0)
#define LOOP_CALL(number, node_, op_, call)                                                        \
	do {                                                                                       \
		const int error = (call);                                                          \
		if (error)                                                                         \
			return stint_bad_call(s, number, error,                                    \
				&(const struct stint_step_info){.node = node_, .op = op_});        \
	} while (0)
#define LOOP_INDEX(number, node_, op_, call)                                                       \
	do {                                                                                       \
		if (call)                                                                          \
			return stint_bad_index(s, number, bad,                                     \
				&(const struct stint_step_info){.node = node_, .op = op_});        \
	} while (0)

struct loop_body {
	loop_turn *turn;
	int n;
	const struct loop_operand *operand;
	/* Behind a turn, so many bytes go from where they were made to their place: sums. */
	int ncopy;
	const struct loop_copy {
		void *to;
		const void *from;
		int64_t bytes;
	} * copy;
};

/* A carry: before the first turn; after turns, where that is kept (NULL: it is not); after the
 * last; what it is between turns, in two places in turn where it is not kept, else in one, for the
 * gradient that of its two where the carry's gradient is not at the time; and for that, in turn. */
struct loop_carry {
	int64_t bytes;
	const void *first, *kept;
	void *last, *spare[2], *gradient[2];
};

/* Carries are kept after all turns, or, where slots is not -1, in so many slots, and, behind these,
 * before the last turn, if all are run. */
struct loop {
	void *step;
	unsigned char *arena, **operand; /* operand: room for the most that a body has */
	int64_t turns, slots;
	/* Where data end it: whether it goes on, which a turn makes; of the loop, where to tell how
	 * often it ran, and of the gradient, where that is told. NULL: all turns are run. */
	const unsigned char *go;
	int64_t *ran;
	const int64_t *has_run;
	int lead, cycle, last, advance; /* bodies, as in graph/loop.h; -1: none */
	const struct loop_body *body;
	const struct loop_carry *carry;
};

/* --- Where carries are --- */

enum { STATE_SPARE = -1 }; /* the first spare place; the second one is one less */

/* The carry before turn t: in a slot, in one of the spare places, or where the loop has put it. */
static inline const unsigned char *loop_state(
	const struct loop *l, const struct loop_carry *c, int64_t t, int64_t slot)
{
	const unsigned char *places = (const unsigned char *)c->kept;
	if (t == 0)
		return (const unsigned char *)c->first;
	if (t == l->turns && (!places || l->slots >= 0))
		return (const unsigned char *)c->last;
	if (slot >= 0 && places)
		return places + slot * c->bytes;
	return (const unsigned char *)c->spare[places ? STATE_SPARE - slot : t & 1];
}

/* --- Turns --- */

static inline const unsigned char *loop_place(
	const struct loop *l, const struct loop_operand *o, int64_t t, int64_t slot, int64_t next)
{
	const unsigned char *at = (const unsigned char *)o->at;
	const int64_t run = l->turns - 1 - t;
	switch (o->where) {
	case LOOP_SLICE:
		return at + (t + o->shift) * o->bytes;
	case LOOP_SLICE_BACKWARDS:
		return at + (run - o->shift) * o->bytes;
	case LOOP_BEFORE:
		return loop_state(l, &l->carry[o->k], t, slot);
	case LOOP_AFTER:
		return loop_state(l, &l->carry[o->k], t + 1, next);
	case LOOP_GRADIENT_AFTER:
		return (const unsigned char *)l->carry[o->k].gradient[run & 1];
	case LOOP_GRADIENT_BEFORE:
		return (const unsigned char *)l->carry[o->k].gradient[(run + 1) & 1];
	default:
		return at;
	}
}

/* Turn t, the carries before it in `slot`, those after it in `next`. */
static inline int loop_once(
	const struct loop *l, const struct loop_body *b, int64_t t, int64_t slot, int64_t next)
{
	for (int i = 0; i < b->n; i++)
		l->operand[i] = (unsigned char *)loop_place(l, &b->operand[i], t, slot, next);
	const int status = b->turn(l->step, l->arena, l->operand);
	for (int i = 0; i < b->ncopy && !status; i++)
		memcpy(b->copy[i].to, b->copy[i].from, (size_t)b->copy[i].bytes);
	return status;
}

/* From turn *at on, up to `to` or where data end it, the carries before these in *slot and `next`,
 * between turns there and in `other`. *at, *slot: where it has come. */
static inline int loop_advance(const struct loop *l, const struct loop_body *b, int64_t *at,
	int64_t *slot, int64_t to, int64_t next, int64_t other)
{
	int status = 0;
	bool goes_on = true;
	while (*at < to && goes_on && !status) {
		const int64_t after = ((to - *at) & 1) ? next : other;
		status = loop_once(l, b, *at, *slot, after);
		++*at;
		*slot = after;
		goes_on = !l->go || *l->go;
	}
	return status;
}

/* The loop itself: what its gradient wants kept stays. */
static inline int loop_forward(const struct loop *l, int carries)
{
	int64_t at = 0, slot = STATE_SPARE, used = 0;
	int status = 0;
	do {
		int64_t to = at + 1, next = at; /* between all turns, in order */
		if (l->slots >= 0) {
			const int64_t rest = l->turns - at;
			const bool free_slot = rest > 1 && used < l->slots;
			next = free_slot ? used : l->slots;
			to = free_slot  ? at + revolve_next(rest, l->slots - used)
			     : rest > 1 ? l->turns - 1
					: l->turns;
			used += free_slot;
		}
		status = loop_advance(l, l->body, &at, &slot, to, next, STATE_SPARE);
	} while (at < l->turns && !status && (!l->go || *l->go));
	if (l->ran)
		*l->ran = at;
	for (int i = 0; i < carries; i++) {
		const struct loop_carry *c = &l->carry[i];
		const unsigned char *end = loop_state(l, c, at, slot);
		if (c->last && end != c->last)
			memcpy(c->last, end, (size_t)c->bytes);
	}
	return status;
}

static inline int loop_turn_back(const struct loop *l, int64_t t, int64_t slot)
{
	const int b = which_body(t == 0, l->turns - 1 - t, l->lead, l->cycle, l->last, l->has_run);
	return loop_once(l, &l->body[b], t, slot, STATE_SPARE);
}

/* Forward again, from the carries before turn `from` in `slot` to those before turn `to`; turn
 * `back` is the next to go back, so that where it puts a carry's gradient is free. */
static inline int loop_again(
	const struct loop *l, int64_t from, int64_t slot, int64_t to, int64_t next, int64_t back)
{
	const int64_t other = STATE_SPARE - ((l->turns - back) & 1);
	return loop_advance(l, &l->body[l->advance], &from, &slot, to, next, other);
}

/* Turns [from, to) back, the carries before the first in `slot`; slots from `used` on are free, and
 * what is behind them, once the last turn is back. most: what the loop has stored itself is there,
 * that of a loop of so many turns up to `to`; 0: it is not. */
static inline int loop_reverse(
	const struct loop *l, int64_t from, int64_t slot, int64_t to, int64_t used, int64_t most)
{
	int status = 0;
	for (; to - from > 1 && used < l->slots && !status; most = 0) {
		int64_t m = from + revolve_next((most ? most : to) - from, l->slots - used);
		if (m >= to) { /* it ended before there */
			most = 0;
			m = from + revolve_next(to - from, l->slots - used);
		}
		if (!most)
			status = loop_again(l, from, slot, m, used, to - 1);
		if (!status)
			status = loop_reverse(l, m, used, to, used + 1, most);
		to = m;
	}
	for (int64_t t = to - 1; t >= from && !status; t--, most = 0) {
		const bool there = most == to && t > from;
		if (t > from && !there)
			status = loop_again(l, from, slot, t, l->slots, t);
		if (!status)
			status = loop_turn_back(l, t, t == from ? slot : l->slots);
	}
	return status;
}

static inline int loop_backward(const struct loop *all)
{
	struct loop run = *all;
	const struct loop *l = &run;
	int status = 0;
	run.turns = all->has_run ? *all->has_run : all->turns;
	if (l->advance >= 0)
		return loop_reverse(l, 0, STATE_SPARE, l->turns, 0, all->turns);
	for (int64_t t = l->turns - 1; t >= 0 && !status; t--)
		status = loop_turn_back(l, t, t - 1);
	return status;
}

#endif
