/* SPDX-License-Identifier: MIT-0 */
/* What generated code calls of what shards, and processes that share them, have together: sums,
 * rows and pieces of tensors. See stint_rt_device.h. */
#include "stint_schedule.h"
#include "stint_tree.h"

static size_t real_bytes(const stint_step *s)
{
	return s->model->loss_dtype == STINT_F64 ? sizeof(double) : sizeof(float);
}

/* x's n numbers are y's. */
static int move(stint_step *s, void *y, const void *x, int64_t n)
{
	return y == x ? STINT_OK : s->device->copy(s, y, x, (size_t)n * real_bytes(s));
}

int stint_start_sum(stint_step *s, void *y, void *room, const void *x, const void *sums, int64_t n,
	size_t bytes, int whole)
{
	const int rc = move(s, y, x, n);
	const struct stint_job job = {.kind = whole ? JOB_SUM : JOB_SCATTER,
		.y = y,
		.sums = sums,
		.n = n,
		.size = real_bytes(s),
		.room = room,
		.bytes = bytes};
	return !rc && s->ranks ? s->ranks->begin(s, &job) : rc;
}

int stint_sum_ranks(stint_step *s, void *y, const void *x, int64_t n)
{
	const int rc = s->ranks ? s->ranks->await(s, x) : STINT_OK;
	return rc ? rc : move(s, y, x, n);
}

int stint_share_rows(stint_step *s, void *rows, int64_t bytes)
{
	const struct stint_job job = {.kind = JOB_JOIN, .y = rows, .size = (size_t)bytes};
	return s->ranks && s->last ? s->ranks->begin(s, &job) : STINT_OK;
}

int stint_keep_rows(stint_step *s, void *rows, const void *x, int64_t bytes)
{
	unsigned char *row = (unsigned char *)rows + (size_t)s->shard * (size_t)bytes;
	const int rc = s->device->copy(s, row, x, (size_t)bytes);
	return rc ? rc : stint_share_rows(s, rows, bytes);
}

int stint_take_rows(stint_step *s, void *y, const void *rows, int64_t from, int64_t bytes)
{
	const int rc = s->ranks ? s->ranks->await(s, rows) : STINT_OK;
	return rc ? rc : s->device->copy(s, y, (const unsigned char *)rows + from, (size_t)bytes);
}

/* --- Pieces --- */

/* This process's piece of x's n numbers, zeros behind it: y may be x. */
static int take_piece(stint_step *s, void *y, const void *x, int64_t n)
{
	const struct stint_ranks *r = s->ranks;
	const size_t size = real_bytes(s);
	const int64_t from = stint_tree_first(n, r->n, r->rank);
	const size_t here = (size_t)(stint_tree_first(n, r->n, r->rank + 1) - from) * size;
	const size_t largest = (size_t)(n / r->n + (n % r->n != 0)) * size;
	int rc = s->device->copy(s, y, (const unsigned char *)x + (size_t)from * size, here);
	if (!rc && largest > here)
		rc = s->device->zero(s, (unsigned char *)y + here, largest - here);
	return rc;
}

int stint_scatter_sum(stint_step *s, void *y, const void *x, int64_t n)
{
	const int rc = s->ranks->await(s, x);
	return rc ? rc : take_piece(s, y, x, n);
}

int stint_own_piece(stint_step *s, void *y, const void *x, int64_t n)
{
	return take_piece(s, y, x, n);
}

/* y's n numbers, of which `piece` are this process's. */
static int bring_together(stint_step *s, void *y, const void *piece, int64_t n, size_t size)
{
	const struct stint_ranks *r = s->ranks;
	const size_t from = (size_t)stint_tree_first(n, r->n, r->rank) * size;
	const size_t end = (size_t)stint_tree_first(n, r->n, r->rank + 1) * size;
	const int rc = s->device->copy(s, (unsigned char *)y + from, piece, end - from);
	return rc ? rc
		  : r->begin(s,
			    &(struct stint_job){.kind = JOB_GATHER, .y = y, .n = n, .size = size});
}

int stint_gather_pieces(stint_step *s, void *y, const void *piece, int64_t n)
{
	return bring_together(s, y, piece, n, real_bytes(s));
}

int stint_fetch_pieces(stint_step *s, const struct stint_copy *c)
{
	return bring_together(
		s, s->arena + c->at, s->arena + c->from, (int64_t)(c->bytes / c->size), c->size);
}

int stint_await_pieces(stint_step *s, const struct stint_copy *c)
{
	return s->ranks->await(s, s->arena + c->at);
}
