/* Weights that come in small whole numbers with scales: DequantizeLinear of constants, and ONNX
 * Runtime's MatMulNBits. To all that reads them they are real constants; where they can be stored
 * as they came (graph/frozen.c), they are. */
#include <inttypes.h>

#include "graph/expansion.h"
#include "ops/fakequant_op.h"

/* Real numbers in the graph's type; s NULL: they cannot be stored small. */
static struct tensor *real_constant(struct graph *g, const char *name, int rank, const int64_t *dim,
	const void *data, const struct stored *s)
{
	struct tensor *t = graph_constant(g, name, g->real, rank, dim, data);
	if (!t)
		return NULL;
	t->from_model = t->weight = true;
	t->why = !s                       ? "whole numbers with scales"
		 : s->form == STORED_INT8 ? "int8 with scales"
					  : "int4 with scales";
	t->stored = g->real == DT_F32 ? s : NULL;
	return t;
}

static bool is_known(const struct tensor *t, bool real)
{
	return !t || (t->role == TR_CONSTANT && t->data && dtype_is_real(t->dtype) == real);
}

/* --- DequantizeLinear: (x - zero) * scale --- */

enum { X, SCALE, ZERO };

/* x as [outer, length, inner] around the axis. */
struct dequantize {
	const struct tensor *x, *scale, *zero;
	int64_t outer, length, inner;
	int64_t block; /* along the axis that have one scale; 0: all of x has */
	int64_t blocks;
	bool each; /* scales for each of outer and inner, too */
};

static int64_t scale_of(const struct dequantize *q, int64_t i)
{
	const int64_t place = i / q->inner % q->length;
	if (!q->block)
		return 0;
	if (!q->each)
		return place;
	return (i / q->inner / q->length * q->blocks + place / q->block) * q->inner + i % q->inner;
}

static enum status dequantize_shapes(struct graph *g, const struct node *n, struct dequantize *q)
{
	const struct tensor *x = n->in[X], *scale = n->in[SCALE];
	const int64_t block = node_int(n, "block_size", 0);
	int axis = 0;
	*q = (struct dequantize){x, scale, node_input(n, ZERO), 1, 1, 1, 0, 1, false};
	if (q->zero && q->zero->numel != scale->numel)
		return node_fail(g, n, NULL, "has %" PRId64 " zero points and %" PRId64 " scales",
			q->zero->numel, scale->numel);
	if (scale->numel == 1 && scale->rank <= 1 && block == 0) {
		q->inner = x->numel;
		return ST_OK;
	}
	TRY(node_axis(g, n, node_int(n, "axis", 1), x->rank, &axis));
	for (int i = 0; i < x->rank; i++)
		*(i < axis ? &q->outer : i == axis ? &q->length : &q->inner) *= x->dim[i];
	q->each = block > 0;
	q->block = q->each ? block : 1;
	q->blocks = q->block < q->length ? div_up(q->length, q->block) : q->length > 0;
	bool fits = block >= 0 && scale->rank == (q->each ? x->rank : 1);
	for (int i = 0; fits && i < scale->rank; i++)
		fits = scale->dim[i] == (i == axis || !q->each ? q->blocks : x->dim[i]);
	return fits ? ST_OK
		    : node_fail(g, n, NULL, "its scales do not fit the shape of '%s'", x->name);
}

/* How many bits hold all numbers and zeros, and what is to be taken off them first; 0: more than 8.
 */
static int bits_of(const struct dequantize *q, int *off)
{
	int64_t low = 0, high = 0, zero = 0;
	for (int64_t i = 0; i < q->x->numel; i++) {
		low = min64(low, tensor_int(q->x, i));
		high = max64(high, tensor_int(q->x, i));
	}
	const int bits = (low >= -8 && high <= 7) || (low >= 0 && high <= 15) ? 4 : 8;
	*off = bits == 4 ? (low < 0 ? -8 : 0) : high > 127 ? 128 : 0;
	for (int64_t i = 0; q->zero && i < q->zero->numel; i++) {
		zero = tensor_int(q->zero, i) - *off;
		if (zero < -128 || zero > 127)
			return 0;
	}
	return low < (*off > 0 ? 0 : -128) || high > 255 ? 0 : bits;
}

/* Which matrix they are, and where its scales are. */
static bool layout_of(const struct dequantize *q, struct stored *s)
{
	const struct tensor *x = q->x;
	bool turned = false;
	s->row_block = s->column_block = 1;
	if (!q->block) {
		s->rows = x->rank > 1 ? x->dim[0] : 1;
		s->column_block = x->numel / s->rows;
	} else if (q->inner == 1) {
		s->rows = q->outer;
		s->column_block = q->block;
		s->column_scale = 1;
		s->row_scale = q->each ? q->blocks : 0;
		turned = x->rank == 2 && !q->each;
	} else if (!q->each) {
		s->rows = q->outer * q->length;
		s->row_scale = 1;
		s->column_block = q->inner;
	} else {
		s->rows = q->outer * q->length;
		s->row_block = q->block;
		s->row_scale = q->inner;
		s->column_scale = 1;
		turned = x->rank == 2;
		if (q->outer > 1 && q->length % q->block != 0)
			return false;
	}
	s->columns = x->numel / s->rows;
	s->row = turned ? 1 : s->columns;
	s->column = turned ? s->rows : 1;
	/* beside an axis in the middle, each row has its own */
	s->scales = q->block && !q->each && q->inner > 1 ? s->rows : q->scale->numel;
	return true;
}

/* Numbers at their places: bytes, or the first of two in the upper half. */
static void put(const struct stored *s, unsigned char *small, int64_t at, int64_t v)
{
	if (s->form == STORED_INT8)
		small[at] = (unsigned char)v;
	else
		small[at / 2] |= (unsigned char)(at % 2 ? v : v << 4);
}

/* *out NULL: they cannot. */
static enum status store(struct graph *g, const struct dequantize *q, struct stored **out)
{
	struct stored *s = ARENA_NEW(g->arena, struct stored);
	int off;
	const int bits = q->x->numel ? bits_of(q, &off) : 0;
	*out = NULL;
	if (!s)
		return diag_nomem(g->diag);
	if (!bits || !layout_of(q, s))
		return ST_OK;
	s->form = bits == 4 ? STORED_INT4 : STORED_INT8;
	s->middle = -off;
	unsigned char *small = arena_alloc(g->arena, (size_t)stored_small_bytes(s), 1);
	float *scale = arena_alloc(g->arena, (size_t)s->scales, sizeof *scale);
	signed char *zero = q->zero ? arena_alloc(g->arena, (size_t)s->scales, 1) : NULL;
	if (!small || !scale || !zero != !q->zero)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < q->x->numel; i++)
		put(s, small, i / s->columns * s->row + i % s->columns * s->column,
			tensor_int(q->x, i) - off);
	for (int64_t i = 0; i < s->scales; i++) {
		scale[i] = (float)tensor_real(q->scale, i % q->scale->numel);
		if (zero)
			zero[i] = (signed char)(tensor_int(q->zero, i % q->scale->numel) - off);
	}
	s->small = small;
	s->scale = scale;
	s->zero = zero;
	*out = s;
	return ST_OK;
}

/* A constant's. */
static enum status dequantize_known(struct graph *g, const struct node *n, struct tensor **out)
{
	struct dequantize q;
	struct stored *s;
	TRY(dequantize_shapes(g, n, &q));
	TRY(store(g, &q, &s));
	void *data = arena_alloc(g->arena, (size_t)q.x->numel, (size_t)dtype_bytes(g->real));
	if (!data)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < q.x->numel; i++) {
		const int64_t of = scale_of(&q, i), zero = q.zero ? tensor_int(q.zero, of) : 0;
		const double v = (double)(float)(tensor_int(q.x, i) - zero);
		value_set(g->real, data, i, v * tensor_real(q.scale, of));
	}
	*out = real_constant(g, q.x->name, q.x->rank, q.x->dim, data, s);
	return *out ? ST_OK : ST_INVALID;
}

static enum status dequantize_expand(struct expansion *e)
{
	const struct node *n = e->node;
	struct tensor *y = NULL;
	for (int i = 0; i < n->nin; i++)
		if (i < ZERO && !n->in[i])
			return node_fail(e->g, n, NULL, "has no input %d", i);
	if (is_known(n->in[X], false) && is_known(n->in[SCALE], true) &&
		is_known(node_input(n, ZERO), false)) {
		TRY(dequantize_known(e->g, n, &y));
	} else if (e->g->straight_through && dtype_is_real(n->in[X]->dtype)) {
		y = dequantized(e->g, n);
		if (!y)
			return e->g->failed != ST_OK ? e->g->failed : e->g->diag->worst;
	} else {
		return node_fail(e->g, n, "export the model with its weights quantised only",
			"'%s' is no weight in whole numbers, nor made by QuantizeLinear",
			n->in[X]->name);
	}
	e->out[0] = (struct value){.kind = VALUE_TENSOR, .tensor = y};
	return ST_OK;
}

/* --- com.microsoft.MatMulNBits(a, b, scales, zeros, group, bias): a [.., K] times the transpose of
 * b [N, K], each row of which is in blocks of 4 or 8 bits --- */

struct nbits {
	const struct tensor *b, *scale, *zero;
	int64_t n, k, block, blocks, bits;
};

/* Number i of a row of bytes, in whole numbers; the first in the lower half. */
static int64_t number_of(const struct tensor *t, int64_t bits, int64_t row, int64_t i)
{
	const int64_t v = tensor_int(t, bits == 4 ? row + i / 2 : row + i);
	return bits == 8 ? v & 255 : v >> (i % 2 * 4) & 15;
}

static enum status nbits_settle(const struct expansion *x, struct nbits *q)
{
	enum { SMALLEST_BLOCK = 16 };
	struct graph *g = x->g;
	const struct tensor *in[6];
	int64_t elements, all;
	for (int i = 0; i < 6; i++)
		in[i] = i < x->nin && x->in[i].kind == VALUE_TENSOR ? x->in[i].tensor : NULL;
	*q = (struct nbits){.b = in[1],
		.scale = in[2],
		.zero = in[3],
		.n = node_int(x->node, "N", 0),
		.k = node_int(x->node, "K", 0),
		.block = node_int(x->node, "block_size", 0),
		.bits = node_int(x->node, "bits", 4)};
	if (!in[0] || !q->b || !q->scale || !is_known(q->b, false) || !is_known(q->scale, true) ||
		!is_known(q->zero, false))
		return node_fail(g, x->node, NULL,
			"its weight, scales and zero points are not all constants, whole numbers "
			"and real ones");
	if (in[4])
		return node_fail(g, x->node, NULL, "an order of groups (g_idx) is not supported");
	if ((q->bits != 4 && q->bits != 8) || q->block < SMALLEST_BLOCK || q->block % 2 ||
		q->n < 1 || q->k < 1)
		return node_fail(g, x->node, NULL,
			"N, K, bits (4 or 8) or block_size (%d or more) is missing or not "
			"supported",
			SMALLEST_BLOCK);
	q->blocks = (q->k - 1) / q->block + 1;
	if (!size_mul(q->n, q->blocks, &elements) || !size_mul(elements, q->block, &all) ||
		q->b->numel != all / (q->bits == 4 ? 2 : 1) || q->scale->numel != elements ||
		(q->zero &&
			q->zero->numel != q->n * (q->bits == 4 ? div_up(q->blocks, 2) : q->blocks)))
		return node_fail(g, x->node, NULL,
			"its weight, scales or zero points are not of N = %" PRId64 ", K = %" PRId64
			" in blocks of %" PRId64,
			q->n, q->k, q->block);
	return ST_OK;
}

/* The matrix [K, N], in the order of its transpose. */
static struct tensor *nbits_weight(struct graph *g, const struct nbits *q)
{
	const int64_t off = q->bits == 8 ? 128 : 0, row = q->blocks * q->block * q->bits / 8;
	const int64_t zeros = q->bits == 4 ? div_up(q->blocks, 2) : q->blocks;
	const int64_t dim[] = {q->k, q->n};
	struct stored *s = ARENA_NEW(g->arena, struct stored);
	if (!s)
		return NULL;
	*s = (struct stored){.form = q->bits == 4 ? STORED_INT4 : STORED_INT8,
		.rows = q->k,
		.columns = q->n,
		.row = 1,
		.column = q->k,
		.row_block = q->block,
		.row_scale = 1,
		.column_block = 1,
		.column_scale = q->blocks,
		.scales = q->n * q->blocks,
		.middle = q->bits == 4 ? 8 : 0};
	unsigned char *small = arena_alloc(g->arena, (size_t)stored_small_bytes(s), 1);
	float *scale = arena_alloc(g->arena, (size_t)s->scales, sizeof *scale);
	signed char *zero = q->zero ? arena_alloc(g->arena, (size_t)s->scales, 1) : NULL;
	char *data = arena_alloc(
		g->arena, (size_t)q->k, (size_t)q->n * (size_t)dtype_bytes(g->real));
	if (!small || !scale || !zero != !q->zero || !data)
		return NULL;
	for (int64_t i = 0; i < s->scales; i++) {
		const int64_t n = i / q->blocks, block = i % q->blocks;
		scale[i] = (float)tensor_real(q->scale, i);
		if (zero)
			zero[i] = (signed char)(number_of(q->zero, q->bits, n * zeros, block) -
						off);
	}
	for (int64_t n = 0; n < q->n; n++)
		for (int64_t k = 0; k < q->k; k++)
			put(s, small, n * q->k + k, number_of(q->b, q->bits, n * row, k) - off);
	s->small = small;
	s->scale = scale;
	s->zero = zero;
	for (int64_t i = 0; i < q->k * q->n; i++)
		value_set(g->real, data, i, (double)stored_value(s, i));
	return real_constant(g, q->b->name, 2, dim, data, s);
}

static enum status nbits_expand(struct expansion *x)
{
	struct nbits q;
	TRY(nbits_settle(x, &q));
	struct tensor *w = nbits_weight(x->g, &q);
	if (!w)
		return x->g->failed != ST_OK ? x->g->failed : diag_nomem(x->g->diag);
	struct tensor *y = OP2(x->g, "MatMul", x->in[0].tensor, w);
	if (x->nin > 5 && x->in[5].kind == VALUE_TENSOR)
		y = OP2(x->g, "Add", y, x->in[5].tensor);
	x->out[0] = (struct value){.kind = VALUE_TENSOR, .tensor = y};
	return x->g->failed;
}

const struct op_def ops_quantised[] = {
	{.name = "DequantizeLinear",
		.since = 10,
		.min_in = 2,
		.max_in = 3,
		.known = 6,
		.expand = dequantize_expand},
	{.name = "com.microsoft.DequantizeLinear",
		.since = 1,
		.min_in = 2,
		.max_in = 3,
		.known = 6,
		.expand = dequantize_expand},
	{.name = "com.microsoft.MatMulNBits",
		.since = 1,
		.min_in = 3,
		.max_in = 6,
		.known = 14,
		.expand = nbits_expand},
	{.name = NULL},
};
