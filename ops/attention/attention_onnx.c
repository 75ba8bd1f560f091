/* ONNX's Attention (opset 23; 24 has shorter masks and nonpad_kv_seqlen, 25 windows), brought to
 * stint.Attention. Its fourth output, the scores themselves, is spelled out where it is used. */
#include "ops/attention/attention_match.h"

enum { ONNX_Q, ONNX_K, ONNX_V, ONNX_MASK, ONNX_PAST_K, ONNX_PAST_V, ONNX_NONPAD };
enum { ONNX_Y, ONNX_PRESENT_K, ONNX_PRESENT_V, ONNX_SCORES };

struct shape {
	int64_t batch, heads, kv, tq, tk, past, d, dv; /* tk: with the past */
	bool flat;                                     /* three axes, [B,T,heads * D] */
	double scale;
};

static struct tensor *input(const struct node *n, struct tensor *const *in, int k)
{
	return k < n->nin ? in[k] : NULL;
}

static enum status read_flat(struct graph *g, const struct node *n, struct shape *s)
{
	const struct tensor *q = n->in[ONNX_Q], *k = n->in[ONNX_K], *v = n->in[ONNX_V];
	s->heads = node_int(n, "q_num_heads", 0);
	s->kv = node_int(n, "kv_num_heads", 0);
	if (s->heads < 1 || s->kv < 1)
		return node_fail(
			g, n, NULL, "inputs of three axes need q_num_heads and kv_num_heads");
	if (q->dim[2] % s->heads || k->dim[2] % s->kv || v->dim[2] % s->kv)
		return node_fail(g, n, NULL, "the heads do not divide the last axis");
	s->d = q->dim[2] / s->heads;
	s->dv = v->dim[2] / s->kv;
	s->tq = q->dim[1];
	s->tk = k->dim[1];
	return ST_OK;
}

static enum status read_shape(struct graph *g, const struct node *n, struct shape *s)
{
	const struct tensor *q = n->in[ONNX_Q], *k = n->in[ONNX_K], *v = n->in[ONNX_V];
	const struct tensor *past = input(n, n->in, ONNX_PAST_K);
	*s = (struct shape){.batch = q->rank ? q->dim[0] : 0, .flat = q->rank == 3};
	if (q->rank < 3 || q->rank > 4 || k->rank != q->rank || v->rank != q->rank)
		return node_fail(g, n, NULL, "Q, K and V must all have three or all four axes");
	if (!past != !input(n, n->in, ONNX_PAST_V))
		return node_fail(g, n, NULL, "past_key and past_value go together");
	if (past && (past->rank != 4 || input(n, n->in, ONNX_NONPAD)))
		return node_fail(
			g, n, NULL, "past_key must have four axes, and excludes nonpad_kv_seqlen");
	if (s->flat) {
		TRY(read_flat(g, n, s));
	} else {
		s->heads = q->dim[1];
		s->kv = k->dim[1];
		s->tq = q->dim[2];
		s->tk = k->dim[2];
		s->d = q->dim[3];
		s->dv = v->dim[3];
	}
	s->past = past ? past->dim[2] : 0;
	if (!size_add(s->tk, s->past, &s->tk))
		return node_fail(g, n, NULL, "the keys overflow");
	s->scale = node_float(n, "scale", s->d > 0 ? 1 / sqrt((double)s->d) : 1);
	return ST_OK;
}

enum status attention_onnx_infer(struct graph *g, struct node *n)
{
	struct shape *s = ARENA_NEW(g->arena, struct shape);
	if (!s)
		return diag_nomem(g->diag);
	TRY(read_shape(g, n, s));
	n->param = s;
	const int64_t flat[3] = {s->batch, s->tq, s->heads * s->dv};
	const int64_t y[4] = {s->batch, s->heads, s->tq, s->dv};
	const int64_t k[4] = {s->batch, s->kv, s->tk, s->d}, v[4] = {s->batch, s->kv, s->tk, s->dv};
	const int64_t scores[4] = {s->batch, s->heads, s->tq, s->tk};
	TRY(data_output(g, n, ONNX_Y, g->real, s->flat ? 3 : 4, s->flat ? flat : y));
	if (n->nout > ONNX_PRESENT_K)
		TRY(data_output(g, n, ONNX_PRESENT_K, g->real, 4, k));
	if (n->nout > ONNX_PRESENT_V)
		TRY(data_output(g, n, ONNX_PRESENT_V, g->real, 4, v));
	return n->nout > ONNX_SCORES ? data_output(g, n, ONNX_SCORES, g->real, 4, scores) : ST_OK;
}

/* --- Masks --- */

static struct tensor *transpose(struct graph *g, struct tensor *x)
{
	const int64_t perm[4] = {0, 2, 1, 3};
	const struct attr attr = data_ints(g, "perm", 4, perm);
	return graph_op(g, "Transpose", 1, &x, 1, &attr);
}

/* 0, 1, ... n - 1 in the shape `dim` of four axes. */
static struct tensor *counting(struct graph *g, int64_t n, const int64_t dim[4])
{
	int64_t *v = graph_known(g, NULL, n, sizeof *v);
	for (int64_t i = 0; v && i < n; i++)
		v[i] = i;
	return v ? graph_constant(g, "stint.positions", DT_I64, 4, dim, v) : NULL;
}

/* `mask`, whose last axis is shorter than the keys, with the rest masked out. */
static struct tensor *padded(struct graph *g, struct tensor *mask, int64_t tk)
{
	const struct attr axis = ATTR_I("axis", mask->rank - 1);
	int64_t dim[RANK_MAX], count = 1;
	memcpy(dim, mask->dim, sizeof dim);
	dim[mask->rank - 1] = tk - mask->dim[mask->rank - 1];
	for (int i = 0; i < mask->rank; i++)
		if (!size_mul(count, dim[i], &count))
			count = INT64_MAX;
	char *v = graph_known(g, NULL, count, dtype_bytes(mask->dtype));
	for (int64_t i = 0; v && i < count && mask->dtype != DT_BOOL; i++)
		value_set(mask->dtype, v, i, -INFINITY);
	struct tensor *rest = v ? graph_constant(g, "stint.masked", mask->dtype, mask->rank, dim, v)
				: NULL;
	return rest ? graph_op(g, "Concat", 2, (struct tensor *[]){mask, rest}, 1, &axis) : NULL;
}

/* How far the query's position lies from its number, and which keys, relative to its position, it
 * may see; -1: no bound. */
struct window {
	int64_t left, right;
};

static struct window window_of(const struct node *n)
{
	struct window w = {
		node_int(n, "left_window_size", -1), node_int(n, "right_window_size", -1)};
	if (node_int(n, "is_causal", 0))
		w.right = 0;
	return w;
}

static struct tensor *both(struct graph *g, struct tensor *a, struct tensor *b)
{
	return a && b ? OP2(g, "And", a, b) : a ? a : b;
}

/* Keys before the end of each batch's data, and within the window around positions that are
 * counted from that end. */
static struct tensor *nonpad_mask(
	struct graph *g, const struct node *n, const struct shape *s, struct tensor *nonpad)
{
	const struct window w = window_of(n);
	const int64_t rows[4] = {1, 1, s->tq, 1}, cols[4] = {1, 1, 1, s->tk};
	struct tensor *end = graph_reshape(g, nonpad, 4, (int64_t[]){s->batch, 1, 1, 1});
	struct tensor *key = counting(g, s->tk, cols);
	struct tensor *allow = OP2(g, "Less", key, end);
	struct tensor *at = OP2(
		g, "Add", counting(g, s->tq, rows), OP2(g, "Sub", end, graph_ints(g, 1, &s->tq)));
	if (w.right >= 0)
		allow = both(g, allow,
			OP2(g, "LessOrEqual", key, OP2(g, "Add", at, graph_ints(g, 1, &w.right))));
	if (w.left >= 0)
		allow = both(g, allow,
			OP2(g, "GreaterOrEqual", key,
				OP2(g, "Sub", at, graph_ints(g, 1, &w.left))));
	return allow;
}

/* The node's mask in the kernel's form; NULL: none. */
static struct tensor *mask_of(
	struct graph *g, const struct node *n, const struct shape *s, struct tensor *const *in)
{
	struct tensor *mask = input(n, in, ONNX_MASK), *nonpad = input(n, in, ONNX_NONPAD);
	/* before opset 24, a last axis of 1 can only broadcast */
	if (mask && mask->rank > 0 && mask->dim[mask->rank - 1] < s->tk &&
		!(n->op->until == 24 && mask->dim[mask->rank - 1] == 1))
		mask = padded(g, mask, s->tk);
	if (!nonpad)
		return mask;
	struct tensor *allow = nonpad_mask(g, n, s, nonpad);
	if (!mask || mask->dtype == DT_BOOL)
		return both(g, mask, allow);
	return OP3(g, "Where", allow, mask, graph_scalar(g, -INFINITY));
}

/* --- The scores, where they are asked for --- */

/* x of [B,G,T,D] with every head repeated, so that there are `heads`: [B * heads,T,D]. */
static struct tensor *all_heads(struct graph *g, struct tensor *x, const struct shape *s)
{
	const int64_t group = s->heads / s->kv, t = x->dim[2], d = x->dim[3];
	if (group > 1) {
		x = graph_reshape(g, x, 5, (int64_t[]){s->batch, s->kv, 1, t, d});
		x = OP2(g, "Expand", x,
			graph_ints(g, 5, (int64_t[]){s->batch, s->kv, group, t, d}));
	}
	return graph_reshape(g, x, 3, (int64_t[]){s->batch * s->heads, t, d});
}

/* Which keys a query sees by its number alone; NULL: all. */
static struct tensor *band(struct graph *g, const struct node *att)
{
	const struct attention *p = att->param;
	const int64_t dim[2] = {p->tq, p->tk};
	if (p->lower <= -p->tq && p->upper >= p->tk)
		return NULL;
	unsigned char *v = graph_known(g, att, p->tq * p->tk, 1);
	for (int64_t i = 0; v && i < p->tq * p->tk; i++) {
		const int64_t ahead = i % p->tk - i / p->tk;
		v[i] = ahead >= p->lower && ahead <= p->upper;
	}
	return v ? graph_constant(g, "stint.band", DT_BOOL, 2, dim, v) : NULL;
}

/* Mode 0: products; 1: after the cap; 2: with the mask; 3: probabilities. */
static struct tensor *scores_of(struct graph *g, const struct node *n, const struct shape *s,
	struct tensor *q, struct tensor *k, const struct node *att)
{
	const int64_t mode = node_int(n, "qk_matmul_output_mode", 0);
	const struct attention *p = att->param;
	const struct attr trans = ATTR_I("transB", 1);
	struct tensor *low = graph_scalar(g, -INFINITY), *see = band(g, att);
	struct tensor *mask = node_input(att, IN_MASK);
	q = graph_reshape(g, q, 3, (int64_t[]){s->batch * s->heads, s->tq, s->d});
	q = OP2(g, "Mul", q, graph_scalar(g, s->scale));
	k = all_heads(g, k, s);
	struct tensor *x = graph_op(g, "stint.MatMul", 2, (struct tensor *[]){q, k}, 1, &trans);
	x = graph_reshape(g, x, 4, (int64_t[]){s->batch, s->heads, s->tq, s->tk});
	if (mode >= 1 && p->softcap > 0) {
		struct tensor *cap = graph_scalar(g, p->softcap);
		x = OP2(g, "Mul", OP1(g, "Tanh", OP2(g, "Div", x, cap)), cap);
	}
	if (mode >= 2 && mask && p->mask_bool)
		x = OP3(g, "Where", mask, x, low);
	else if (mode >= 2 && mask)
		x = OP2(g, "Add", x, mask);
	if (mode >= 2 && see)
		x = OP3(g, "Where", see, x, low);
	if (mode < 3)
		return x;
	struct tensor *lse = graph_reshape(
		g, att->out[1], 4, (int64_t[]){s->batch, s->heads, s->tq, 1});
	return OP1(g, "Exp", OP2(g, "Sub", x, lse));
}

/* --- The lowering --- */

/* K or V as [B,G,T,D], the past before it. */
static struct tensor *present(
	struct graph *g, const struct shape *s, struct tensor *x, struct tensor *past)
{
	const struct attr axis = ATTR_I("axis", 2);
	if (s->flat)
		x = transpose(g, x);
	return past ? graph_op(g, "Concat", 2, (struct tensor *[]){past, x}, 1, &axis) : x;
}

static struct tensor *heads_apart(
	struct graph *g, const struct shape *s, struct tensor *x, int64_t heads)
{
	if (!s->flat)
		return x;
	const int64_t dim[4] = {s->batch, x->dim[1], heads, x->dim[2] / heads};
	return graph_reshape(g, x, 4, dim);
}

static struct node *kernel(struct graph *g, const struct node *n, const struct shape *s,
	struct tensor *const *qkv, struct tensor *mask, bool kv_flat)
{
	const struct window w = window_of(n);
	const int64_t q_layout = s->flat ? LAYOUT_BTH : LAYOUT_BHT;
	const int64_t kv_layout = kv_flat ? LAYOUT_BTH : LAYOUT_BHT;
	const int64_t layout[ATTENTION_TENSORS] = {q_layout, kv_layout, kv_layout, q_layout};
	struct attr attr[6 + PACK_ATTRS] = {ATTR_F("scale", s->scale),
		ATTR_F("softcap", node_float(n, "softcap", 0)), ATTR_I("empty", EMPTY_ZERO),
		data_ints(g, "layout", ATTENTION_TENSORS, layout)};
	int nattr = 4;
	/* with nonpad_kv_seqlen they are part of the mask */
	if (w.right >= 0 && !input(n, n->in, ONNX_NONPAD))
		attr[nattr++] = ATTR_I("upper", s->past + w.right);
	if (w.left >= 0 && !input(n, n->in, ONNX_NONPAD))
		attr[nattr++] = ATTR_I("lower", s->past - w.left);
	struct tensor *in[4] = {qkv[0], qkv[1], qkv[2], mask};
	if (attention_lower_parts(g, in, attr, &nattr) != ST_OK)
		return NULL;
	return graph_op_node(g, "stint.Attention", mask ? 4 : 3, in, nattr, attr, NULL);
}

enum status attention_onnx_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct shape *s = n->param;
	struct tensor *q = heads_apart(g, s, in[ONNX_Q], s->heads);
	struct tensor *k = heads_apart(g, s, in[ONNX_K], s->kv);
	struct tensor *v = heads_apart(g, s, in[ONNX_V], s->kv);
	struct tensor *pk = NULL, *pv = NULL;
	const bool joined = input(n, in, ONNX_PAST_K) != NULL;
	if (joined || n->nout > ONNX_PRESENT_K) {
		pk = present(g, s, k, input(n, in, ONNX_PAST_K));
		pv = present(g, s, v, input(n, in, ONNX_PAST_V));
	}
	struct tensor *qkv[3] = {q, joined ? pk : k, joined ? pv : v};
	struct node *att = kernel(g, n, s, qkv, mask_of(g, n, s, in), s->flat && !joined);
	if (!att)
		return g->failed;
	out[ONNX_Y] = s->flat ? graph_reshape(g, att->out[0], 3, n->out[0]->dim) : att->out[0];
	if (n->nout > ONNX_PRESENT_K)
		out[ONNX_PRESENT_K] = pk;
	if (n->nout > ONNX_PRESENT_V)
		out[ONNX_PRESENT_V] = pv;
	if (n->nout > ONNX_SCORES)
		out[ONNX_SCORES] = scores_of(g, n, s, s->flat ? transpose(g, q) : q, pk, att);
	return g->failed;
}
