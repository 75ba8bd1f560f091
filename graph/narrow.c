/* Values stored in a narrower type than kernels compute in: --precision bf16 and fp16.
 *
 * Products round their operands to the narrow type wherever these come from, and their results are
 * stored in it; what is made of narrow values, element by element, is narrow too, so that nearly
 * all that the backward pass reads is. Sums over many elements (statistics, losses), the model's
 * outputs in evaluation, and gradients of parameters up to the last product or sum before them stay
 * real, and so do parameters and optimizer state: a weight is rounded for its products in each step
 * anew.
 *
 * The graph is copied. A record that does not read or write the narrow type (op.h) works on real
 * copies, made and dropped around it. The copies are nodes like any other: they are fused, and the
 * planner may run them again. A real result of a product whose library gives it in its operands'
 * type only is made so and widened. A product whose library does not know the narrow type, or that
 * is plain C, reads operands that were rounded and widened again: the same step on any machine, but
 * for the order of its sums. */
#include "graph/graph_parts.h"
#include "graph/pass.h"

struct narrow {
	struct graph_copy copy; /* map: the value as it is stored */
	enum dtype type;
	bool everywhere, convert; /* pass.h */
	/* By old id. */
	bool *real;   /* to stay so */
	bool *narrow; /* stored narrow */
	/* The narrow copy of a real value; the real copy of a narrow one, or of a rounded. For the
	 * forward pass, and for the rest, lest it be kept: but of a value, which would be kept for
	 * it, one is enough. */
	struct tensor **rounded[2], **widened[2];
};

/* --- What stays real --- */

static bool is_elementwise(const struct node *n)
{
	return (n->op->traits & (OP_POINTWISE | OP_VIEW | OP_ALIKE)) != 0;
}

static bool reaches_real(const struct narrow *l, const struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && l->real[n->out[k]->id])
			return true;
	return false;
}

static void keep_real(struct narrow *l, struct tensor *t)
{
	l->real[t->id] = l->real[tensor_storage(t)->id] = true;
}

static void find_real(struct narrow *l, const struct graph *g, bool outputs_too)
{
	for (int i = 0; i < g->noutput && !outputs_too; i++)
		if (g->output[i])
			keep_real(l, g->output[i]);
	for (int i = 0; graph_told(g, i); i++)
		keep_real(l, graph_told(g, i));
	for (int i = g->nnode - 1; i >= 0; i--) {
		const struct node *n = g->node[i];
		const bool passes = n->phase == NODE_BACKWARD && is_elementwise(n) &&
				    reaches_real(l, n);
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && n->in[k]->role == TR_VALUE &&
				(n->phase == NODE_UPDATE || passes || n->op->traits & OP_WAITS))
				keep_real(l, n->in[k]);
	}
}

/* --- What is narrow --- */

static bool plain_pointwise(const struct op_def *op)
{
	return (op->traits & OP_POINTWISE) && !op->emit_c && !op->library;
}

static bool knows(const struct op_def *op, unsigned bits, int k)
{
	return plain_pointwise(op) || operand_named(bits, k);
}

/* Whether the text writes output k of node n, a narrow value, as such. */
static bool writes_narrow(const struct narrow *l, const struct node *n, int k)
{
	const bool cuda = l->copy.to->target->cuda && k < 32 && n->op->narrow_out_cuda >> k & 1;
	return !l->convert && (cuda || knows(n->op, n->op->narrow_out, k));
}

/* Known values stay real, but as operands of a product or beside what is moved. */
static bool reads_real(const struct node *n, int i)
{
	return n->in[i] && dtype_is_real(n->in[i]->dtype) &&
	       (n->in[i]->role != TR_CONSTANT || n->op->traits & (OP_PRODUCT | OP_ALIKE));
}

/* Some input is narrow, and no larger than `most` elements (-1: of any size). */
static bool has_narrow(const struct narrow *l, const struct node *n, bool everywhere, int64_t most)
{
	for (int i = 0; i < n->nin; i++)
		if (reads_real(n, i) && (everywhere || l->narrow[n->in[i]->id]) &&
			(most < 0 || n->in[i]->numel <= most))
			return true;
	return false;
}

/* OP_ALIKE: some operand is narrow, and no result has to be real. */
static bool all_narrow(const struct narrow *l, const struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && knows(n->op, n->op->narrow_out, k) &&
			(l->real[n->out[k]->id] || n->out[k]->role != TR_VALUE))
			return false;
	for (int i = 0; i < n->nin; i++)
		if (reads_real(n, i) && knows(n->op, n->op->narrow_in, i) &&
			(l->everywhere || l->narrow[n->in[i]->id]))
			return true;
	return false;
}

static bool is_narrow(const struct narrow *l, const struct node *n, int k)
{
	const struct tensor *t = n->out[k];
	if (!t || t->role != TR_VALUE || !dtype_is_real(t->dtype) || l->real[t->id] ||
		n->phase == NODE_UPDATE || (n->op->traits & OP_EXACT))
		return false;
	if (n->op->traits & OP_VIEW)
		return l->narrow[n->in[0]->id];
	if (!knows(n->op, n->op->narrow_out, k))
		return !(n->op->traits & OP_PRODUCT) && has_narrow(l, n, false, t->numel);
	if (n->op->traits & OP_PRODUCT)
		return true;
	return n->op->traits & OP_ALIKE ? all_narrow(l, n) : has_narrow(l, n, l->everywhere, -1);
}

/* --- The other form of a value --- */

/* Another form of a value is there whenever it is, whoever asks for it first. */
static struct tensor *when_made(const struct narrow *l, const struct tensor *old)
{
	const struct tensor *when = old->maker ? old->maker->when : NULL;
	return when ? l->copy.map[when->id] : NULL;
}

static struct tensor *copy_as(
	struct narrow *l, const struct tensor *old, struct tensor *x, enum dtype t)
{
	struct graph *g = l->copy.to;
	g->when = when_made(l, old);
	struct tensor *y = graph_copy_as(g, old->maker ? old->maker->name : old->name, x, t);
	g->when = NULL;
	if (y)
		y->is_gradient = old->is_gradient;
	return y;
}

/* Made by what only moves, and makes more than it reads: a pad. */
static bool is_grown(const struct narrow *l, const struct tensor *t)
{
	const struct node *n = t->maker;
	return !l->convert && n && (n->op->traits & OP_ALIKE) && n->nin == 1 && n->nout == 1 &&
	       knows(n->op, n->op->narrow_in, 0) && writes_narrow(l, n, 0) &&
	       t->numel > n->in[0]->numel;
}

/* Made of small numbers by a text that writes the narrow type. */
static bool is_of_small(const struct narrow *l, const struct tensor *t)
{
	return t->maker && t->maker->op->role == ROLE_WIDEN && writes_narrow(l, t->maker, 0);
}

static struct tensor *narrowed(struct narrow *l, const struct tensor *old);

/* By the same node, in the narrow type: rounded as it is made, or, what grows, before it is moved,
 * which are the same bits. */
static struct tensor *made_narrow(struct narrow *l, const struct tensor *old)
{
	const struct node *n = old->maker;
	const bool small = n->op->role == ROLE_WIDEN;
	struct tensor *in[3] = {NULL};
	for (int i = 0; i < n->nin; i++) {
		in[i] = small ? l->copy.map[n->in[i]->id] : narrowed(l, n->in[i]);
		if (!in[i])
			return NULL;
	}
	l->copy.to->when = when_made(l, old);
	const struct node *m = graph_op_like(l->copy.to, n, in, n->nattr, n->attr, n->param);
	l->copy.to->when = NULL;
	if (!m)
		return NULL;
	m->out[0]->dtype = l->type;
	m->out[0]->is_gradient = old->is_gradient;
	return m->out[0];
}

static struct tensor *narrowed(struct narrow *l, const struct tensor *old)
{
	const bool later = old->role != TR_VALUE && l->copy.to->phase != NODE_FORWARD;
	struct tensor *x = l->copy.map[old->id], **slot = &l->rounded[later][old->id];
	if (x->dtype == l->type)
		return x;
	const struct node *wide = x->maker; /* of a constant that is stored so (frozen.c) */
	if (wide && wide->op == op_by_role(l->copy.to->table, ROLE_COPY) &&
		wide->in[0]->role == TR_CONSTANT && wide->in[0]->dtype == l->type)
		return wide->in[0];
	if (!*slot)
		*slot = is_grown(l, old) || is_of_small(l, old) ? made_narrow(l, old)
								: copy_as(l, old, x, l->type);
	return *slot;
}

static struct tensor *widened(struct narrow *l, const struct tensor *old)
{
	struct tensor *x = narrowed(l, old); /* rounded, wherever it comes from */
	struct tensor **slot = &l->widened[l->copy.to->phase != NODE_FORWARD][old->id];
	return *slot || !x ? *slot : (*slot = copy_as(l, old, x, l->copy.to->real));
}

/* --- Nodes --- */

enum form { AS_IT_IS, NARROW, REAL };

/* How node n reads input i. `library`: of a product, that the library does it on narrow operands.
 */
static enum form form_of(const struct narrow *l, const struct node *n, int i, bool library)
{
	const struct op_def *op = n->op;
	const bool is = l->narrow[n->in[i]->id];
	if (op->traits & OP_VIEW)
		return AS_IT_IS;
	if (!knows(op, op->narrow_in, i))
		return is ? REAL : AS_IT_IS;
	if (op->traits & OP_PRODUCT)
		return library ? NARROW : REAL;
	if ((op->traits & OP_ALIKE) && !all_narrow(l, n))
		return is ? REAL : AS_IT_IS;
	const bool asked = l->everywhere && !plain_pointwise(op);
	if (l->convert)
		return is || asked ? REAL : AS_IT_IS;
	return asked || (op->traits & OP_ALIKE) ? NARROW : AS_IT_IS;
}

static enum status read_inputs(
	struct narrow *l, const struct node *n, bool library, struct tensor **in)
{
	for (int i = 0; i < n->nin; i++) {
		in[i] = n->in[i] ? l->copy.map[n->in[i]->id] : NULL;
		if (!reads_real(n, i))
			continue;
		const enum form form = form_of(l, n, i, library);
		if (form == NARROW)
			in[i] = narrowed(l, n->in[i]);
		else if (form == REAL)
			in[i] = widened(l, n->in[i]);
		if (!in[i])
			return ST_INTERNAL; /* reported */
	}
	return ST_OK;
}

/* Does the library know the product on narrow operands, with a result that is stored so? */
static bool library_does(struct narrow *l, const struct node *n, bool narrow_result)
{
	struct lib_call call;
	int64_t workspace;
	struct tensor in[3], *list[3], out = *n->out[0], *result = &out;
	struct node v = *n;
	if (n->nin > 3)
		return false;
	for (int i = 0; i < n->nin; i++) {
		list[i] = NULL;
		if (!n->in[i])
			continue;
		in[i] = *n->in[i];
		in[i].dtype = knows(n->op, n->op->narrow_in, i) ? l->type : in[i].dtype;
		list[i] = &in[i];
	}
	out.dtype = narrow_result ? l->type : out.dtype;
	v.in = list;
	v.out = &result;
	return node_uses_library(l->copy.to, &v, &call, &workspace);
}

/* Alternatives whose values are stored as the inputs are. */
static enum status carry_alternatives(struct narrow *l, const struct node *n, struct node *m)
{
	struct tensor **in;
	for (int a = 0; a < n->nalt; a++) {
		bool same = true;
		TRY(graph_copy_list(&l->copy, n->nin, n->alt[a], &in));
		for (int i = 0; i < n->nin; i++)
			same = same && (!in[i] || !m->in[i] || in[i]->dtype == m->in[i]->dtype) &&
			       (!in[i]) == (!m->in[i]);
		if (same)
			TRY(graph_alternative(l->copy.to, m, in));
	}
	return ST_OK;
}

static enum status copy_node(struct narrow *l, const struct node *n)
{
	struct graph *g = l->copy.to;
	struct node *m;
	struct tensor **in = ARENA_ARRAY(g->arena, struct tensor *, n->nin);
	if (!in)
		return diag_nomem(g->diag);
	g->phase = n->phase;
	g->last = n->last;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			l->narrow[n->out[k]->id] = is_narrow(l, n, k);
	const bool product = (n->op->traits & OP_PRODUCT) != 0;
	const bool asks = product && !l->convert;
	const bool library = asks && library_does(l, n, l->narrow[n->out[0]->id]);
	/* one that gives a real result in the narrow type only: it is widened */
	const bool rounds = asks && !library && !l->narrow[n->out[0]->id] &&
			    n->out[0]->role == TR_VALUE && library_does(l, n, true);
	TRY(read_inputs(l, n, library || rounds, in));
	TRY(graph_copy_node(&l->copy, n, &m));
	m->in = in;
	if (n->op->traits & OP_VIEW)
		m->out[0]->dtype = in[0]->dtype;
	if (rounds) {
		m->out[0]->dtype = l->type;
		l->copy.map[n->out[0]->id] = copy_as(l, n->out[0], m->out[0], g->real);
		if (!l->copy.map[n->out[0]->id])
			return ST_INTERNAL;
	}
	for (int k = 0; k < n->nout && !(n->op->traits & OP_VIEW); k++) {
		const struct tensor *old = n->out[k];
		if (!old || !l->narrow[old->id])
			continue;
		if (product ? library : writes_narrow(l, n, k))
			m->out[k]->dtype = l->type;
		else if (!(l->copy.map[old->id] = copy_as(l, old, m->out[k], l->type)))
			return ST_INTERNAL;
	}
	return n->nalt ? carry_alternatives(l, n, m) : ST_OK;
}

enum status graph_narrow(
	const struct graph *in, enum dtype type, unsigned flags, struct graph **out)
{
	struct narrow l = {.type = type,
		.everywhere = (flags & NARROW_EVERYWHERE) != 0,
		.convert = (flags & NARROW_CONVERT) != 0};
	struct arena *a = in->arena;
	const int n = in->ntensor;
	TRY(graph_copy_begin(&l.copy, in));
	l.real = ARENA_ARRAY(a, bool, n);
	l.narrow = ARENA_ARRAY(a, bool, n);
	for (int w = 0; w < 2; w++) {
		l.rounded[w] = ARENA_ARRAY(a, struct tensor *, n);
		l.widened[w] = ARENA_ARRAY(a, struct tensor *, n);
		if (!l.rounded[w] || !l.widened[w])
			return diag_nomem(in->diag);
	}
	if (!l.real || !l.narrow)
		return diag_nomem(in->diag);
	find_real(&l, in, (flags & NARROW_OUTPUTS) != 0);
	for (int i = 0; i < in->nnode; i++)
		TRY(copy_node(&l, in->node[i]));
	l.copy.to->last = false;
	TRY(graph_copy_end(&l.copy, out));
	return graph_verify(*out);
}
