/* Frozen weights stored in a narrower type than products compute in: --frozen-precision; and those
 * that the model's file has so.
 *
 * A constant of the model's that products alone read, or what takes rows of a table, is rounded
 * once, here, and stands in the arena in the narrow type. Each product reads a copy in the real
 * type that is made right before it: a node like any other, which the planner places, so that of
 * all wide copies those of the products at work are there and no others; the backward pass makes
 * its own. A library that knows products of narrow operands reads the constant itself, under
 * --precision of the same type (graph/narrow.c). Rows of a table are widened after they were taken.
 *
 * In small numbers with scales (int8, nf4: quantise.c) the same, but that a product whose record
 * can (`stored`) reads them itself, a tile at a time, and that rows of a table are taken with the
 * rows of its scales.
 *
 * What anything else reads, too, stays as it is: it would be there twice. And so does what the
 * model has no weight in: masks, tables of angles, and whatever else was computed. */
#include <math.h>
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

enum { SMALLEST = 1024 }; /* elements: below, there is nothing to gain */

struct frozen {
	struct graph_copy copy;
	enum store store;
	enum dtype type; /* STORE_BF16, STORE_F16: that */
	/* By old id: */
	bool *other; /* something reads it that cannot do with less */
	bool *read;
	int *channels;       /* its axis of channels; -1: none is known */
	struct small *small; /* as it is stored */
};

/* One constant of a narrow type, or of small numbers, and their scales and zeros. */
struct small {
	struct tensor *part[3];
	const struct stored *stored; /* NULL: of a narrow type */
};

static bool is_nf4(enum store s)
{
	return s == STORE_NF4 || s == STORE_NF4_DOUBLE;
}

/* --- Rounding, to the nearest, to even where two are as near --- */

/* As kernels/narrow.h does it, for the bits that a step would make of them. */
static uint16_t bf16_of(float v)
{
	uint32_t bits;
	memcpy(&bits, &v, sizeof bits);
	return (uint16_t)(isnan(v) ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t f16_of(float v)
{
	uint32_t bits, tiny;
	memcpy(&bits, &v, sizeof bits);
	const uint32_t sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
	const float least = fabsf(v) + 0.5f; /* rounds to a multiple of 2^-24, the least number */
	memcpy(&tiny, &least, sizeof tiny);
	if (a > 0x7f800000)
		return (uint16_t)(sign | 0x7e00);
	if (a >= 0x47800000)
		return (uint16_t)(sign | 0x7c00);
	return (uint16_t)(sign | (a < 0x38800000 ? tiny - 0x3f000000
						 : (a + 0xc8000fff + (a >> 13 & 1)) >> 13));
}

double narrow_value(enum dtype t, uint16_t bits)
{
	if (t == DT_BF16) {
		const uint32_t wide = (uint32_t)bits << 16;
		float v;
		memcpy(&v, &wide, sizeof v);
		return (double)v;
	}
	const int exponent = bits >> 10 & 31;
	const double fraction = bits & 1023;
	const double v = exponent == 0    ? ldexp(fraction, -24)
			 : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
					  : ldexp(1024 + fraction, exponent - 25);
	return bits & 0x8000 ? -v : v;
}

uint16_t narrow_bits(enum dtype t, float v)
{
	return t == DT_BF16 ? bf16_of(v) : f16_of(v);
}

static struct tensor *rounded(struct frozen *f, const struct tensor *t)
{
	struct graph *g = f->copy.to;
	uint16_t *data = arena_alloc(g->arena, (size_t)t->numel, sizeof *data);
	if (!data) {
		diag_nomem(g->diag);
		return NULL;
	}
	const float *v = t->data;
	for (int64_t i = 0; i < t->numel; i++) {
		data[i] = narrow_bits(f->type, v[i]);
		if (isfinite(v[i]) && !isfinite(narrow_value(f->type, data[i]))) {
			diag_fail(g->diag, ST_INVALID, &(struct where){g->file, t->name, "weight"},
				"--frozen-precision bf16 has the range of single precision",
				"holds %g, which is too large for %s", (double)v[i],
				dtype_name(f->type));
			return NULL;
		}
	}
	return graph_constant(g, t->name, f->type, t->rank, t->dim, data);
}

/* --- Small numbers --- */

static struct tensor *part(struct graph *g, const struct tensor *t, enum dtype type, int64_t rows,
	int64_t all, const void *data)
{
	const int64_t dim[2] = {rows, rows ? all / rows : 0};
	return data ? graph_constant(g, t->name, type, 2, dim, data) : NULL;
}

/* Scales in 8 bits, made real in front of who reads them first. */
static struct tensor *real_scales(
	struct graph *g, const struct tensor *t, const struct stored *s, int64_t rows)
{
	const struct attr offset = ATTR_F("offset", (double)s->offset);
	struct tensor *const when = g->when;
	struct tensor *in[] = {part(g, t, DT_U8, rows, s->scales, s->code),
		part(g, t, DT_F32, 1, stored_coarse(s), s->coarse)};
	g->when = NULL; /* others read them, too */
	struct tensor *y = in[0] && in[1]
				   ? graph_op(g, op_by_role(g->table, ROLE_WIDEN_SCALES)->name, 2,
					     in, 1, &offset)
				   : NULL;
	g->when = when;
	return y;
}

/* Rows of them are those of the matrix, where these are whole. */
static bool small_parts(struct graph *g, const struct tensor *t, struct small *x)
{
	const struct stored *s = x->stored;
	const bool bytes = s->form == STORED_INT8, each = s->row_block == 1 && s->row_scale;
	const int64_t rows = s->column == 1 ? s->rows : s->columns;
	const bool whole = bytes || s->rows * s->columns / rows % 2 == 0;
	x->part[0] = part(
		g, t, bytes ? DT_I8 : DT_U8, whole ? rows : 1, stored_small_bytes(s), s->small);
	x->part[1] = s->code ? real_scales(g, t, s, each ? s->rows : 1)
			     : part(g, t, DT_F32, each ? s->rows : 1, s->scales, s->scale);
	x->part[2] = part(g, t, DT_I8, each ? s->rows : 1, s->scales, s->zero);
	return x->part[0] && x->part[1] && !x->part[2] == !s->zero;
}

static const struct small *stored(struct frozen *f, const struct tensor *t)
{
	struct graph *g = f->copy.to;
	struct small *x = &f->small[t->id];
	const int channels = f->channels[t->id];
	const bool turned = t->rank == 2 && channels == 1;
	if (x->part[0])
		return x;
	if (t->stored)
		x->stored = t->stored;
	else if (f->store == STORE_INT8)
		x->stored = store_int8(g, t, channels, turned);
	else if (is_nf4(f->store))
		x->stored = store_nf4(g, t, turned, f->store == STORE_NF4_DOUBLE);
	else
		x->part[0] = rounded(f, t);
	if (x->stored ? !small_parts(g, t, x) : !x->part[0])
		return NULL;
	x->part[0]->from_model = x->part[0]->weight = true;
	x->part[0]->why = t->why;
	x->part[0]->exact = t->stored ? NULL : t;
	x->part[0]->stored = x->stored;
	return x;
}

/* --- Which --- */

static bool is_weight(const struct tensor *t)
{
	return t->role == TR_CONSTANT && t->weight && t->dtype == DT_F32 && t->data &&
	       t->numel >= SMALLEST;
}

/* Rows of a table, in small numbers: as whole bytes with scales of their own, or one for all. */
static bool rows_are_whole(const struct frozen *f, const struct tensor *t)
{
	const struct stored *s = t->stored;
	if (!s)
		return !is_nf4(f->store) || t->dim[1] % NF4_BLOCK == 0;
	return s->rows == t->dim[0] && s->column == 1 && !s->flat &&
	       (s->form == STORED_INT8 || s->columns % 2 == 0) &&
	       (s->row_block == 1 || !s->row_scale);
}

/* Node n takes parts of its input i as they are. */
static bool takes(const struct frozen *f, const struct node *n, int i)
{
	if (f->store == STORE_INT8 || is_nf4(f->store) || n->in[i]->stored)
		return n->op->role == ROLE_LOOKUP && i == 0 && n->in[0]->rank == 2 &&
		       node_int(n, "axis", 0) == 0 && rows_are_whole(f, n->in[0]);
	return (n->op->traits & OP_ALIKE) && !(n->op->traits & OP_POINTWISE) && i == 0 &&
	       n->nout == 1 && operand_named(n->op->narrow_in, 0) &&
	       operand_named(n->op->narrow_out, 0) && n->out[0]->numel < n->in[0]->numel;
}

static bool will_narrow(const struct frozen *f, const struct tensor *t)
{
	if (!t || !f->read[t->id] || f->other[t->id])
		return false;
	if (t->stored)
		return t->role == TR_CONSTANT && t->numel >= SMALLEST;
	return is_weight(t) && f->store != STORE_AS_IS &&
	       (f->store != STORE_INT8 || f->channels[t->id] >= 0);
}

static void find(struct frozen *f, const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		for (int k = 0; k < n->nin; k++) {
			if (!n->in[k])
				continue;
			const int id = n->in[k]->id;
			const bool taken = takes(f, n, k);
			const bool can = taken || ((n->op->traits & OP_PRODUCT) &&
							  operand_named(n->op->narrow_in, k));
			if (taken) /* whatever else counts */
				f->channels[id] = 0;
			else if (f->channels[id] < 0 && n->op->channels)
				f->channels[id] = n->op->channels(n, k);
			f->read[id] = true;
			f->other[id] |= !can;
		}
	}
	for (int i = 0; i < g->noutput; i++)
		if (g->output[i])
			f->other[g->output[i]->id] = true;
}

/* --- Nodes --- */

static enum status failed(const struct frozen *f)
{
	const struct graph *g = f->copy.to;
	return g->failed != ST_OK ? g->failed : g->diag->errors ? g->diag->worst : ST_INTERNAL;
}

/* The real numbers of a tensor of t's shape. */
static struct tensor *widened(struct frozen *f, const struct node *n, struct tensor *const *small,
	const struct stored *s, const struct tensor *t)
{
	struct graph *g = f->copy.to;
	if (!s)
		return graph_copy_as(g, n->name, small[0], g->real);
	struct attr attr[STORED_ATTRS + 1] = {ATTR_IS("shape", t->rank, t->dim)};
	if (stored_attributes(g, s, attr + 1) != ST_OK)
		return NULL;
	struct tensor *x = graph_op(g, op_by_role(g->table, ROLE_WIDEN)->name, small[2] ? 3 : 2,
		small, STORED_ATTRS + 1, attr);
	if (x)
		x->name = t->name;
	return x;
}

/* Rows of a table with rows of its scales, widened. */
static enum status take_rows(struct frozen *f, const struct node *n, const struct small *x)
{
	struct graph *g = f->copy.to;
	struct stored s = *x->stored;
	struct tensor *part[3] = {NULL}, *in[2] = {NULL, f->copy.map[n->in[1]->id]};
	for (int i = 0; i < 3; i++) {
		part[i] = in[0] = x->part[i];
		if (!part[i] || (i > 0 && !s.row_scale))
			continue;
		const struct node *m = graph_op_like(g, n, in, n->nattr, n->attr, NULL);
		if (!m)
			return failed(f);
		part[i] = m->out[0];
	}
	s.rows = n->in[1]->numel;
	s.row = s.columns;
	struct tensor *y = widened(f, n, part, &s, n->out[0]);
	f->copy.map[n->out[0]->id] = y;
	return y ? ST_OK : failed(f);
}

/* The node on input k in small numbers; *done: it can. A GPU's library cannot. */
static enum status build_stored(struct frozen *f, const struct node *n, struct tensor *const *in,
	int k, const struct small *x, bool *done)
{
	struct tensor *out = NULL;
	if (!x->stored || !n->op->stored || f->copy.to->target->cuda)
		return ST_OK;
	TRY(n->op->stored(f->copy.to, n, in, k, x->stored, x->part, &out));
	if (!out)
		return ST_OK;
	*done = true;
	out->name = n->out[0]->name;
	out->is_gradient = n->out[0]->is_gradient;
	f->copy.map[n->out[0]->id] = out;
	return ST_OK;
}

/* Those that read the same weights, or none. */
static enum status carry_alternatives(struct frozen *f, const struct node *n, struct node *m)
{
	struct tensor **in;
	for (int a = 0; a < n->nalt; a++) {
		bool same = true;
		TRY(graph_copy_list(&f->copy, n->nin, n->alt[a], &in));
		for (int i = 0; i < n->nin; i++) {
			if (!will_narrow(f, n->alt[a][i]))
				continue;
			same = same && n->alt[a][i] == n->in[i];
			in[i] = m->in[i];
		}
		if (same)
			TRY(graph_alternative(f->copy.to, m, in));
	}
	return ST_OK;
}

static enum status copy_node(struct frozen *f, const struct node *n)
{
	struct graph *g = f->copy.to;
	struct tensor **in;
	struct node *m;
	bool taken = false, done = false;
	g->phase = n->phase;
	graph_copy_for(&f->copy, n);
	TRY(graph_copy_list(&f->copy, n->nin, n->in, &in));
	for (int i = 0; i < n->nin; i++) {
		if (!will_narrow(f, n->in[i]))
			continue;
		const struct small *x = stored(f, n->in[i]);
		if (!x)
			return failed(f); /* reported */
		taken = takes(f, n, i);
		if (taken && x->stored)
			return take_rows(f, n, x);
		TRY(build_stored(f, n, in, i, x, &done));
		if (done)
			return ST_OK;
		in[i] = taken ? x->part[0] : widened(f, n, x->part, x->stored, n->in[i]);
		if (!in[i])
			return failed(f);
	}
	TRY(graph_copy_node(&f->copy, n, &m));
	m->in = in;
	TRY(carry_alternatives(f, n, m));
	if (taken) {
		m->out[0]->dtype = f->type;
		f->copy.map[n->out[0]->id] = widened(f, n, m->out, NULL, NULL);
		if (!f->copy.map[n->out[0]->id])
			return failed(f);
	}
	return ST_OK;
}

bool graph_has_stored(const struct graph *g)
{
	for (int i = 0; i < g->ntensor; i++)
		if (g->tensor[i]->stored)
			return true;
	return false;
}

enum status graph_store_frozen(const struct graph *in, enum store store, struct graph **out)
{
	struct frozen f = {.store = store, .type = store == STORE_F16 ? DT_F16 : DT_BF16};
	TRY(graph_copy_begin(&f.copy, in));
	f.other = ARENA_ARRAY(in->arena, bool, in->ntensor);
	f.read = ARENA_ARRAY(in->arena, bool, in->ntensor);
	f.channels = ARENA_ARRAY(in->arena, int, in->ntensor);
	f.small = ARENA_ARRAY(in->arena, struct small, in->ntensor);
	if (!f.other || !f.read || !f.channels || !f.small)
		return diag_nomem(in->diag);
	for (int i = 0; i < in->ntensor; i++)
		f.channels[i] = -1;
	find(&f, in);
	for (int i = 0; i < in->nnode; i++)
		TRY(copy_node(&f, in->node[i]));
	TRY(graph_copy_end(&f.copy, out));
	return graph_verify(*out);
}
