/* Frozen weights stored in a narrower type than products compute in: --frozen-precision.
 *
 * A constant of the model's that products alone read, or what takes rows of a table, is rounded
 * once, here, and stands in the arena in the narrow type. Each product reads a copy in the real
 * type that is made right before it: a node like any other, which the planner places, so that of
 * all wide copies those of the products at work are there and no others; the backward pass makes
 * its own. A library that knows products of narrow operands reads the constant itself, under
 * --precision of the same type (graph/narrow.c). Rows of a table are widened after they were taken.
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
	enum dtype type;
	bool *other; /* by old id: something reads it that cannot do with less */
	bool *read;
	struct tensor **narrow; /* by old id: as it is stored; NULL */
};

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

static struct tensor *stored(struct frozen *f, const struct tensor *t)
{
	struct graph *g = f->copy.to;
	if (f->narrow[t->id])
		return f->narrow[t->id];
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
	struct tensor *x = graph_constant(g, t->name, f->type, t->rank, t->dim, data);
	if (x) {
		x->from_model = x->weight = true;
		x->why = t->why;
		x->exact = t;
	}
	return f->narrow[t->id] = x;
}

/* --- Which --- */

/* Node n takes parts of its input i as they are. */
static bool takes(const struct node *n, int i)
{
	return (n->op->traits & OP_ALIKE) && !(n->op->traits & OP_POINTWISE) && i == 0 &&
	       n->nout == 1 && operand_named(n->op->narrow_in, 0) &&
	       operand_named(n->op->narrow_out, 0) && n->out[0]->numel < n->in[0]->numel;
}

static bool is_weight(const struct tensor *t)
{
	return t->role == TR_CONSTANT && t->weight && t->dtype == DT_F32 && t->data &&
	       t->numel >= SMALLEST;
}

static bool will_narrow(const struct frozen *f, const struct tensor *t)
{
	return t && is_weight(t) && f->read[t->id] && !f->other[t->id];
}

static void find(struct frozen *f, const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		for (int k = 0; k < n->nin; k++) {
			if (!n->in[k])
				continue;
			const bool can = takes(n, k) || ((n->op->traits & OP_PRODUCT) &&
								operand_named(n->op->narrow_in, k));
			f->read[n->in[k]->id] = true;
			f->other[n->in[k]->id] |= !can;
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

static struct tensor *widened(struct frozen *f, const struct node *n, struct tensor *x)
{
	return graph_copy_as(f->copy.to, n->name, x, f->copy.to->real);
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
	struct tensor **in = ARENA_ARRAY(g->arena, struct tensor *, n->nin);
	struct node *m;
	bool taken = false;
	if (!in)
		return diag_nomem(g->diag);
	g->phase = n->phase;
	for (int i = 0; i < n->nin; i++) {
		in[i] = n->in[i] ? f->copy.map[n->in[i]->id] : NULL;
		if (!will_narrow(f, n->in[i]))
			continue;
		in[i] = stored(f, n->in[i]);
		taken = takes(n, i);
		if (in[i] && !taken)
			in[i] = widened(f, n, in[i]);
		if (!in[i])
			return failed(f); /* reported */
	}
	TRY(graph_copy_node(&f->copy, n, &m));
	m->in = in;
	TRY(carry_alternatives(f, n, m));
	if (taken) {
		m->out[0]->dtype = f->type;
		f->copy.map[n->out[0]->id] = widened(f, n, m->out[0]);
		if (!f->copy.map[n->out[0]->id])
			return failed(f);
	}
	return ST_OK;
}

enum status graph_store_frozen(const struct graph *in, enum dtype type, struct graph **out)
{
	struct frozen f = {.type = type};
	TRY(graph_copy_begin(&f.copy, in));
	f.other = ARENA_ARRAY(in->arena, bool, in->ntensor);
	f.read = ARENA_ARRAY(in->arena, bool, in->ntensor);
	f.narrow = ARENA_ARRAY(in->arena, struct tensor *, in->ntensor);
	if (!f.other || !f.read || !f.narrow)
		return diag_nomem(in->diag);
	find(&f, in);
	for (int i = 0; i < in->nnode; i++)
		TRY(copy_node(&f, in->node[i]));
	TRY(graph_copy_end(&f.copy, out));
	return graph_verify(*out);
}
