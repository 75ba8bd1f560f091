/* SPDX-License-Identifier: MIT-0 */
/* See stint_sums.h. */
#include "stint_sums.h"

#include <stdlib.h>

/* --- Whose shards leave what --- */

/* The nodes of the tree that a rank's shards come to, from the left. */
static int roots_of(const struct stint_sums *s, int rank, struct stint_root *out)
{
	int64_t from[STINT_TREE_DEPTH + 1];
	const int64_t end = stint_tree_first(s->shards, s->n, rank + 1);
	const int n = stint_tree_roots(s->shards, s->n, rank, from);
	for (int i = 0; i < n; i++)
		out[i] = (struct stint_root){rank, i, from[i], i + 1 < n ? from[i + 1] : end};
	return n;
}

int stint_sums_new(struct stint_sums *s)
{
	s->root = calloc((size_t)s->shards + 1, sizeof *s->root);
	if (!s->root)
		return STINT_NO_MEMORY;
	s->nroot = 0;
	for (int k = 0; k < s->n; k++)
		s->nroot += roots_of(s, k, s->root + s->nroot);
	return STINT_OK;
}

void stint_sums_free(struct stint_sums *s)
{
	free(s->root);
	s->root = NULL;
}

/* In a round: every root of others, this one's to every other; or rows, both ways. */
size_t stint_sums_messages(const struct stint_sums *s)
{
	const size_t n = (size_t)s->n, shards = (size_t)s->shards;
	return shards + n * (shards < 128 ? shards : 128) + n * (shards + 2);
}

static int own_roots(const struct stint_sums *s)
{
	int n = 0;
	for (int i = 0; i < s->nroot; i++)
		n += s->root[i].rank == s->rank;
	return n;
}

/* This rank's root number `nth` of so many. */
static const unsigned char *own_root(const struct stint_job *j, int nth, int n)
{
	return nth == n - 1 ? j->y : j->sums + (size_t)nth * (size_t)j->n * j->size;
}

int stint_sums_add_own(struct stint_sums *s, const struct stint_job *j)
{
	const int mine = own_roots(s);
	int rc = STINT_OK;
	for (int i = mine - 2; i >= 0 && !rc; i--)
		rc = s->by->add(s, j->y, own_root(j, i, mine), j->n, j->size);
	return rc;
}

/* --- Sums --- */

/* All roots' n numbers, one behind the other, `stride` bytes apart: the sum in the first's place.
 */
static int add_along_tree(
	struct stint_sums *s, unsigned char *slots, size_t stride, int64_t n, size_t size)
{
	int at[STINT_TREE_DEPTH + 1], depth = 0; /* slots of sums that wait, from the left */
	int64_t begin[STINT_TREE_DEPTH + 1];
	int rc = STINT_OK;
	for (int i = 0; i < s->nroot && !rc; i++) {
		begin[depth] = s->root[i].begin;
		at[depth++] = i;
		while (depth > 1 && !rc &&
			stint_tree_left(begin[depth - 1], s->root[i].end, s->shards) ==
				begin[depth - 2]) {
			depth--;
			rc = s->by->add(s, slots + (size_t)at[depth - 1] * stride,
				slots + (size_t)at[depth] * stride, n, size);
		}
	}
	return rc;
}

/* A round: of how many numbers of each root, where these are, and which lane its messages have. */
struct round {
	int64_t k, chunk;
	unsigned char *slots;
	int lane;
};

/* Of an owner's piece, what this round has: numbers [from, from + n). */
static int64_t chunk_of(const struct stint_sums *s, const struct stint_job *j,
	const struct round *x, int owner, int64_t *from)
{
	const int64_t end = stint_tree_first(j->n, s->n, owner + 1);
	*from = stint_tree_first(j->n, s->n, owner) + x->k * x->chunk;
	const int64_t left = end - *from;
	return left < 0 ? 0 : left < x->chunk ? left : x->chunk;
}

/* What others have left of this rank's chunk comes here, next to its own; theirs go there. */
static int bring_together(struct stint_sums *s, const struct stint_job *j, const struct round *x)
{
	const int me = s->rank, mine = own_roots(s);
	const size_t stride = (size_t)x->chunk * j->size;
	int64_t from;
	int64_t n = chunk_of(s, j, x, me, &from);
	int rc = STINT_OK;
	for (int i = 0; i < s->nroot && n > 0 && !rc; i++) {
		unsigned char *slot = x->slots + (size_t)i * stride;
		const size_t bytes = (size_t)n * j->size;
		if (s->root[i].rank != me)
			s->by->take(s, x->lane, s->root[i].rank, TAG_SUM, slot, bytes);
		else
			rc = s->by->copy(s, slot,
				own_root(j, s->root[i].nth, mine) + (size_t)from * j->size, bytes);
	}
	for (int k = 1; k < s->n; k++) {
		const int owner = (me + k) % s->n; /* not all to the same one first */
		n = chunk_of(s, j, x, owner, &from);
		for (int i = 0; i < mine && n > 0; i++)
			s->by->send(s, x->lane, owner, TAG_SUM,
				own_root(j, i, mine) + (size_t)from * j->size, (size_t)n * j->size);
	}
	return rc;
}

/* The chunks of this round to all, each from its owner: its own from `mine`. */
static void hand_out(struct stint_sums *s, const struct stint_job *j, const struct round *x,
	const unsigned char *mine)
{
	int64_t at;
	const int64_t own = chunk_of(s, j, x, s->rank, &at);
	for (int k = 1; k < s->n; k++) {
		const int other = (s->rank + k) % s->n;
		const int64_t n = chunk_of(s, j, x, other, &at);
		if (n > 0)
			s->by->take(s, x->lane, other, TAG_WHOLE, j->y + (size_t)at * j->size,
				(size_t)n * j->size);
		if (own > 0)
			s->by->send(s, x->lane, other, TAG_WHOLE, mine, (size_t)own * j->size);
	}
}

/* What was brought together, when it is there. */
static int add_round(struct stint_sums *s, const struct stint_job *j, const struct round *x)
{
	int64_t from;
	int rc = s->by->through(s, x->lane);
	const int64_t mine = chunk_of(s, j, x, s->rank, &from);
	if (!rc)
		rc = add_along_tree(s, x->slots, (size_t)x->chunk * j->size, mine, j->size);
	if (!rc)
		rc = s->by->copy(
			s, j->y + (size_t)from * j->size, x->slots, (size_t)mine * j->size);
	if (!rc && j->kind == JOB_SUM)
		hand_out(s, j, x, x->slots);
	return rc;
}

/* In rounds: over y, to all, or the owner's piece. Where there are several, each has half of the
 * scratch and is on its way while the one before is added and handed out. */
static int add_all(struct stint_sums *s, const struct stint_job *j)
{
	const int64_t largest = (j->n + s->n - 1) / s->n; /* piece */
	const int64_t holds = (int64_t)(j->bytes / j->size) / s->nroot;
	const int two = largest > holds && holds > 1;
	const int64_t chunk = holds / (1 + two);
	const size_t half = two ? (size_t)s->nroot * (size_t)chunk * j->size : 0;
	struct round x[2] = {{0, chunk, j->room, LANE_OWN},
		{0, chunk, j->room + half, two ? LANE_AHEAD : LANE_OWN}};
	int rc = STINT_OK;
	for (int64_t k = 0; (k - two) * chunk < largest && !rc; k++) {
		struct round *next = &x[k & 1], *ready = &x[(k - two) & 1];
		if (k * chunk < largest) {
			rc = s->by->through(s, next->lane); /* handed out: its slots are free */
			next->k = k;
			if (!rc)
				rc = bring_together(s, j, next);
		}
		if (!rc && k >= two)
			rc = add_round(s, j, ready);
	}
	for (int i = 0; i < 2 && !rc; i++)
		rc = s->by->through(s, x[i].lane);
	return rc;
}

/* --- Pieces and rows --- */

/* In rounds too: a message's bytes are counted by an int. */
static int gather(struct stint_sums *s, const struct stint_job *j)
{
	enum { MOST = 1 << 26 };
	const int64_t largest = (j->n + s->n - 1) / s->n;
	struct round x = {.chunk = MOST, .lane = LANE_OWN};
	int rc = STINT_OK;
	for (; x.k * x.chunk < largest && !rc; x.k++) {
		int64_t from;
		(void)chunk_of(s, j, &x, s->rank, &from);
		hand_out(s, j, &x, j->y + (size_t)from * j->size);
		rc = s->by->through(s, x.lane);
	}
	return rc;
}

void stint_sums_exchange(struct stint_sums *s, const struct stint_job *j, int lane)
{
	for (int k = 1; k < s->n; k++) {
		const int other = (s->rank + k) % s->n;
		for (int i = 0; i < 2; i++) {
			const int whose = i ? s->rank : other;
			const int64_t begin = stint_tree_first(s->shards, s->n, whose);
			const int64_t end = stint_tree_first(s->shards, s->n, whose + 1);
			for (int64_t at = begin; at < end; at++) {
				unsigned char *row = j->y + (size_t)at * j->size;
				if (i)
					s->by->send(s, lane, other, TAG_ROWS, row, j->size);
				else
					s->by->take(s, lane, other, TAG_ROWS, row, j->size);
			}
		}
	}
}

int stint_sums_do(struct stint_sums *s, const struct stint_job *j)
{
	if (j->kind == JOB_SUM || j->kind == JOB_SCATTER)
		return add_all(s, j);
	if (j->kind == JOB_GATHER)
		return gather(s, j);
	stint_sums_exchange(s, j, LANE_OWN);
	return s->by->through(s, LANE_OWN);
}
