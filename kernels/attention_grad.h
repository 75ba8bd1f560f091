/* SPDX-License-Identifier: MIT-0 */
/* Attention's gradients, of attention.h's result: probabilities are made again from lse. Elements
 * of q, k, v, y and dy are X, their gradients real. */
#include "attention_scores.h"

/* What the gradient reads and writes; what is not wanted is NULL. */
struct NAMED(attention_grad) {
	const X *dy, *q, *k, *v, *y;
	const real *lse, *mask;
	const unsigned char *allow;
	const real *dlse;
	const int64_t *control;
	attention_noise_function *draw;
	real *dq, *dk, *dv, *dmask;
};

/* The operands that a block of queries is packed into. */
struct NAMED(attention_packed) {
	real *q, *dy;   /* transposed, in panels of queries */
	real *qr, *dyr; /* rows, ATTENTION_TURN at a time */
	real *dq;       /* transposed, in panels of queries: the sum */
	real *lse,
		*shift; /* a query's log of the sum, and what its score gradients are lowered by */
	real *pk, *pv, *kt, *s, *ds, *tanhs, *noise, *turned_s, *turned_ds;
};

KERNEL_PART int64_t NAMED(attention_round)(int64_t n)
{
	return (n + GEMM_NR - 1) / GEMM_NR * GEMM_NR;
}

KERNEL_PART void NAMED(attention_layout)(
	const struct attention *a, struct NAMED(attention_packed) * p, real *w)
{
	const int64_t n = NAMED(attention_round)(MIN(a->block, a->tq)),
		      tile = ATTENTION_KEYS * GEMM_NR;
	p->q = w;
	p->dy = p->q + n * a->d;
	p->qr = p->dy + n * a->dv;
	p->dyr = p->qr + n * NAMED(attention_round)(a->d);
	p->dq = p->dyr + n * NAMED(attention_round)(a->dv);
	p->lse = p->dq + n * a->d;
	p->shift = p->lse + n;
	p->pk = p->shift + n;
	p->pv = p->pk + ATTENTION_KEYS * a->d;
	p->kt = p->pv + ATTENTION_KEYS * a->dv;
	p->s = p->kt + ATTENTION_KEYS * ((a->d + GEMM_MR - 1) / GEMM_MR * GEMM_MR);
	p->ds = p->s + tile;
	p->tanhs = p->ds + tile;
	p->noise = p->tanhs + tile;
	p->turned_s = p->noise + tile;
	p->turned_ds = p->turned_s + ATTENTION_KEYS * ATTENTION_TURN;
}

/* The queries [i0, i0 + rows) of head h. */
KERNEL_PART void NAMED(attention_pack)(const struct attention *a,
	const struct NAMED(attention_grad) * g, const struct NAMED(attention_packed) * p, int64_t b,
	int64_t h, int64_t i0, int64_t rows)
{
	const X *q = g->q + b * a->q[0] + h * a->q[1] + i0 * a->q[2];
	const int64_t at = b * a->o[0] + h * a->o[1] + i0 * a->o[2],
		      n = NAMED(attention_round)(rows);
	const int64_t row = (b * a->heads + h) * a->tq + i0;
	gemm_pack_b(a->d, rows, q, 1, a->q[2], p->q);
	gemm_pack_b(a->dv, rows, g->dy + at, 1, a->o[2], p->dy);
	for (int64_t i = 0; g->dk && i < rows; i += ATTENTION_TURN) {
		const int64_t some = MIN(rows - i, ATTENTION_TURN);
		gemm_pack_b(some, a->d, q + i * a->q[2], a->q[2], 1,
			p->qr + i * NAMED(attention_round)(a->d));
		gemm_pack_b(some, a->dv, g->dy + at + i * a->o[2], a->o[2], 1,
			p->dyr + i * NAMED(attention_round)(a->dv));
	}
	attention_scale(
		n * a->d, a->scale, p->q); /* here, where what was written last is not read */
	if (g->dk)
		attention_scale(rows * NAMED(attention_round)(a->d), a->scale, p->qr);
	for (int64_t i = 0; g->dq && i < n * a->d; i++)
		p->dq[i] = 0;
	for (int64_t i = 0; i < n; i++)
		p->lse[i] = p->shift[i] = 0;
	for (int64_t i = 0; i < rows; i++) {
		p->lse[i] = g->lse[row + i];
		const int64_t row_at = at + i * a->o[2];
		SUM_IN_LANES(p->shift[i], real, j, a->dv,
			VALUE(g->dy[row_at + j]) * VALUE(g->y[row_at + j]));
		if (g->dlse)
			p->shift[i] -= g->dlse[row + i];
	}
}

/* A panel's probabilities in p->s and the gradients of its scores in p->ds. */
KERNEL_PART void NAMED(attention_panel_grad)(const struct attention *a,
	const struct NAMED(attention_grad) * g, const struct NAMED(attention_packed) * p, int64_t b,
	int64_t h, int64_t i0, int64_t i, int64_t j, int64_t keys)
{
	real *restrict s = p->s, *restrict ds = p->ds;
	const real *lse = p->lse + i, *shift = p->shift + i;
	const int64_t n = keys * GEMM_NR, width = MIN(a->tq - i0 - i, GEMM_NR);
	gemm_macro(keys, GEMM_NR, a->d, p->pk, p->q + i * a->d, s, GEMM_NR, 0);
	attention_scores(a, g->mask, g->allow, b, h, i0 + i, j, keys, s, p->tanhs, p->noise);
	gemm_macro(keys, GEMM_NR, a->dv, p->pv, p->dy + i * a->dv, ds, GEMM_NR, 0);
	for (int64_t r = 0; r < keys; r++)
		for (int c = 0; c < GEMM_NR; c++)
			s[r * GEMM_NR + c] -= lse[c];
	for (int64_t r = 0; r < n; r++)
		s[r] = EXP(s[r]);
	if (g->draw)
		g->draw(a, g->control, b, h, i0 + i, j, keys, p->noise);
	for (int64_t r = 0; g->draw && r < n; r++)
		ds[r] *= p->noise[r];
	for (int64_t r = 0; r < keys; r++)
		for (int c = 0; c < GEMM_NR; c++)
			ds[r * GEMM_NR + c] = s[r * GEMM_NR + c] * (ds[r * GEMM_NR + c] - shift[c]);
	for (int64_t r = 0; g->draw && r < n; r++)
		s[r] *= p->noise[r];
	if (g->dmask) {
		real *y = g->dmask + b % a->period * a->dmask[0] + h * a->dmask[1] +
			  (i0 + i) * a->tk + j;
		real *restrict tile = p->noise;
		attention_rows(keys, width, ds, tile, ATTENTION_KEYS);
		for (int64_t c = 0; c < width; c++)
			for (int64_t r = 0; r < keys; r++)
				y[c * a->tk + r] += tile[c * ATTENTION_KEYS + r];
	}
	for (int64_t r = 0; a->cap > 0 && r < n; r++)
		ds[r] *= 1 - p->tanhs[r] * p->tanhs[r];
}

/* The columns of a panel as columns [at, at + width) of a left operand of `n`. */
KERNEL_PART void NAMED(attention_turn)(
	int64_t keys, int64_t width, const real *s, int64_t n, int64_t at, real *restrict p)
{
	for (int64_t j = 0; j < keys; j += GEMM_MR, p += n * GEMM_MR) {
		int64_t r = 0;
		for (; r + 4 <= MIN(keys - j, GEMM_MR); r += 4)
			gemm_turn(width, s + (j + r) * GEMM_NR, GEMM_NR, p + at * GEMM_MR + r,
				GEMM_MR);
		for (; r < GEMM_MR; r++)
			for (int64_t i = 0; i < width; i++)
				p[(at + i) * GEMM_MR + r] = j + r < keys ? s[(j + r) * GEMM_NR + i]
									 : 0;
	}
}

/* Whether any of the queries [i0, i0 + rows) sees any of the keys. */
KERNEL_PART int NAMED(attention_meets)(
	const struct attention *a, int64_t i0, int64_t rows, int64_t j, int64_t keys)
{
	return j - (i0 + rows - 1) <= a->upper && j + keys - 1 - i0 >= a->lower;
}

/* dk += the sum, over `some` queries from i0 on that see the keys, of turned probabilities (or
 * their gradients) and packed rows of width d. */
KERNEL_PART void NAMED(attention_keys_grad)(const struct attention *a, int64_t i0, int64_t some,
	int64_t j, int64_t keys, int64_t d, const real *turned, const real *rows, real *dk,
	int64_t stride)
{
	for (int64_t r = 0; r < keys; r += GEMM_MR) {
		const int64_t few = MIN(keys - r, GEMM_MR), ahead = j + r - i0;
		const int64_t from = MAX(ahead - a->upper, 0),
			      end = MIN(ahead + few - a->lower, some);
		if (from < end)
			gemm_part(few, d, end - from, turned + r * some + from * GEMM_MR, some,
				rows + from * GEMM_NR, some, dk + r * stride, stride, 1);
	}
}

/* ATTENTION_TURN queries from i0 + at on, against one block of keys. */
KERNEL_PART void NAMED(attention_turn_grad)(const struct attention *a,
	const struct NAMED(attention_grad) * g, const struct NAMED(attention_packed) * p, int64_t b,
	int64_t h, int64_t i0, int64_t at, int64_t some, int64_t j, int64_t keys)
{
	for (int64_t i = at; i < at + some; i += GEMM_NR) {
		const int64_t width = MIN(at + some - i, GEMM_NR);
		if (!NAMED(attention_meets)(a, i0 + i, width, j, keys))
			continue;
		const int64_t seen = attention_seen(a, i0 + i, j, keys);
		NAMED(attention_panel_grad)(a, g, p, b, h, i0, i, j, seen);
		if (g->dq)
			gemm_part(a->d, GEMM_NR, seen, p->kt, keys, p->ds, seen, p->dq + i * a->d,
				GEMM_NR, 1);
		if (g->dk) {
			NAMED(attention_turn)(seen, width, p->s, some, i - at, p->turned_s);
			NAMED(attention_turn)(seen, width, p->ds, some, i - at, p->turned_ds);
		}
	}
	if (!g->dk || !NAMED(attention_meets)(a, i0 + at, some, j, keys))
		return;
	const int64_t kv = h / a->group;
	NAMED(attention_keys_grad)
	(a, i0 + at, some, j, keys, a->d, p->turned_ds, p->qr + at * NAMED(attention_round)(a->d),
		g->dk + b * a->k[0] + kv * a->k[1] + j * a->k[2], a->k[2]);
	NAMED(attention_keys_grad)
	(a, i0 + at, some, j, keys, a->dv, p->turned_s, p->dyr + at * NAMED(attention_round)(a->dv),
		g->dv + b * a->v[0] + kv * a->v[1] + j * a->v[2], a->v[2]);
}

/* What the queries from i0 on and the keys [j0, j1) of one head give each other. */
KERNEL_PART void NAMED(attention_block_grad)(const struct attention *a,
	const struct NAMED(attention_grad) * g, int64_t b, int64_t h, int64_t i0, int64_t j0,
	int64_t j1, real *w)
{
	struct NAMED(attention_packed) p;
	const int64_t rows = MIN(a->tq - i0, a->block), kv = h / a->group;
	int64_t from, to;
	NAMED(attention_layout)(a, &p, w);
	NAMED(attention_pack)(a, g, &p, b, h, i0, rows);
	attention_range(a, i0, i0 + rows, &from, &to);
	for (int64_t j = MAX(from, j0); j < MIN(to, j1); j += ATTENTION_KEYS) {
		const int64_t keys = MIN(a->tk - j, ATTENTION_KEYS);
		const X *k = g->k + b * a->k[0] + kv * a->k[1] + j * a->k[2];
		const X *v = g->v + b * a->v[0] + kv * a->v[1] + j * a->v[2];
		gemm_pack_a(keys, a->d, k, a->k[2], 1, p.pk);
		gemm_pack_a(keys, a->dv, v, a->v[2], 1, p.pv);
		if (g->dq)
			gemm_pack_a(a->d, keys, k, 1, a->k[2], p.kt);
		for (int64_t i = 0; i < rows; i += ATTENTION_TURN)
			NAMED(attention_turn_grad)
		(a, g, &p, b, h, i0, i, MIN(rows - i, ATTENTION_TURN), j, keys);
	}
	for (int64_t i = 0; g->dq && i < rows; i += GEMM_NR) {
		real *dq = g->dq + b * a->q[0] + h * a->q[1] + (i0 + i) * a->q[2];
		attention_scale(GEMM_NR * a->d, a->scale, p.dq + i * a->d);
		attention_rows(a->d, MIN(rows - i, GEMM_NR), p.dq + i * a->d, dq, a->q[2]);
	}
}

/* Zeros for the gradients of keys [j0, j1) of head kv of k and v. */
KERNEL_PART void NAMED(attention_clear)(const struct attention *a,
	const struct NAMED(attention_grad) * g, int64_t b, int64_t kv, int64_t j0, int64_t j1)
{
	for (int64_t j = j0; j < j1; j++) {
		real *dk = g->dk + b * a->k[0] + kv * a->k[1] + j * a->k[2];
		real *dv = g->dv + b * a->v[0] + kv * a->v[1] + j * a->v[2];
		for (int64_t c = 0; c < a->d; c++)
			dk[c] = 0;
		for (int64_t c = 0; c < a->dv; c++)
			dv[c] = 0;
	}
}

/* What all queries of the heads that share head kv of k and v give each other with its keys [j0,
 * j1). */
static inline void NAMED(attention_head_grad)(const struct attention *a,
	const struct NAMED(attention_grad) * g, int64_t b, int64_t kv, int64_t j0, int64_t j1,
	real *ws)
{
	NAMED(attention_clear)(a, g, b, kv, j0, j1);
	for (int64_t h = kv * a->group; h < (kv + 1) * a->group; h++)
		for (int64_t i = 0; i < a->tq; i += a->block)
			NAMED(attention_block_grad)(a, g, b, h, i, j0, j1, ws);
}

/* A turn is a head of k and v: all it needs is computed once. ws, here and below: of this worker.
 */
static inline void NAMED(attention_grad_heads)(const struct attention *a,
	const struct NAMED(attention_grad) * g, real *ws, int64_t from, int64_t to)
{
	const int64_t heads = a->heads / a->group;
	for (int64_t turn = from; turn < to; turn++)
		NAMED(attention_head_grad)(a, g, turn / heads, turn % heads, 0, a->tk, ws);
}

/* A turn is a block of queries of a head: their gradient. */
static inline void NAMED(attention_grad_queries)(const struct attention *a,
	const struct NAMED(attention_grad) * g, real *ws, int64_t from, int64_t to)
{
	const int64_t blocks = (a->tq + a->block - 1) / a->block;
	for (int64_t turn = from; turn < to; turn++)
		NAMED(attention_block_grad)
	(a, g, turn / blocks / a->heads, turn / blocks % a->heads, turn % blocks * a->block, 0,
		a->tk, ws);
}

/* A turn is ATTENTION_KEYS_TASK keys of a head of k and v: their gradients. */
static inline void NAMED(attention_grad_keys)(const struct attention *a,
	const struct NAMED(attention_grad) * g, real *ws, int64_t from, int64_t to)
{
	const int64_t heads = a->heads / a->group;
	const int64_t tasks = (a->tk + ATTENTION_KEYS_TASK - 1) / ATTENTION_KEYS_TASK;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % tasks * ATTENTION_KEYS_TASK;
		NAMED(attention_head_grad)
		(a, g, turn / tasks / heads, turn / tasks % heads, j,
			MIN(j + ATTENTION_KEYS_TASK, a->tk), ws);
	}
}

/* A turn is what shares a mask: batches c, c + period, ..., and `heads` heads of k and v; its
 * planes of the mask's gradient are summed in the order of attention_mask_grad. */
static inline void NAMED(attention_grad_masks)(const struct attention *a,
	const struct NAMED(attention_grad) * g, int64_t heads, real *ws, int64_t from, int64_t to)
{
	const int64_t parts = a->heads / a->group / heads, plane = a->tq * a->tk;
	const int64_t planes = a->dmask[1] == 0 ? 1 : a->group;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn / parts, r = turn % parts;
		real *const dmask = g->dmask + c * a->dmask[0] + r * planes * plane;
		for (int64_t k = 0; k < planes * plane; k++)
			dmask[k] = 0;
		for (int64_t b = c; b < a->batch; b += a->period)
			for (int64_t kv = r * heads; kv < (r + 1) * heads; kv++)
				NAMED(attention_head_grad)(a, g, b, kv, 0, a->tk, ws);
	}
}

/* The mask's gradient alone, summed over the batches and heads that share a value: a turn is a
 * block of queries of one plane of it, of which there are `planes` to a batch. */
static inline void NAMED(attention_mask_grad)(const struct attention *a,
	const struct NAMED(attention_grad) * g, int64_t planes, real *ws, int64_t from, int64_t to)
{
	const int64_t blocks = (a->tq + a->block - 1) / a->block, plane = a->tq * a->tk;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t i = turn % blocks * a->block, end = MIN(i + a->block, a->tq);
		const int64_t r = turn / blocks % planes, c = turn / blocks / planes;
		real *const dmask = g->dmask + (c * planes + r) * plane;
		for (int64_t k = i * a->tk; k < end * a->tk; k++)
			dmask[k] = 0;
		for (int64_t b = c; b < a->batch; b += a->period)
			for (int64_t h = r; h < a->heads; h += planes == 1 ? 1 : a->heads)
				NAMED(attention_block_grad)(a, g, b, h, i, 0, a->tk, ws);
	}
}
