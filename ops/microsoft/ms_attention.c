/* ONNX Runtime's attention: Attention, MultiHeadAttention, GroupQueryAttention and RotaryEmbedding,
 * brought to ONNX's. Which queries see which keys is as its CPU kernels have it. */
#include <inttypes.h>

#include "ops/microsoft/ms_attention.h"

const char ms_no_cache[] =
	"export the model without a cache (use_cache=False), or with a past of no tokens";

/* --- What they share --- */

struct tensor *ms_heads_first(struct graph *g, struct tensor *t, int64_t heads)
{
	static const int64_t perm[] = {0, 2, 1, 3};
	if (!t)
		return NULL;
	const int64_t dim[] = {t->dim[0], t->dim[1], heads, t->dim[2] / heads};
	return ms_transpose(g, graph_reshape(g, t, 4, dim), perm);
}

struct tensor *ms_heads_last(struct graph *g, struct tensor *t)
{
	static const int64_t perm[] = {0, 2, 1, 3};
	if (!t)
		return NULL;
	const int64_t dim[] = {t->dim[0], t->dim[2], t->dim[1] * t->dim[3]};
	return graph_reshape(g, ms_transpose(g, t, perm), 3, dim);
}

struct tensor *ms_counting(struct graph *g, int64_t n)
{
	int64_t *v = graph_known(g, NULL, n, sizeof *v);
	for (int64_t i = 0; v && i < n; i++)
		v[i] = i;
	return v ? graph_constant(g, "", DT_I64, 1, &n, v) : NULL;
}

/* A number for each sample, so that it broadcasts to what has `rank` axes. */
static struct tensor *by_sample(struct graph *g, struct tensor *t, int rank)
{
	int64_t dim[RANK_MAX] = {t ? t->numel : 1, 1, 1, 1};
	return t ? graph_reshape(g, t, rank, dim) : NULL;
}

enum status ms_parts(
	struct expansion *x, struct tensor *t, int n, const int64_t *size, struct tensor ***out)
{
	int64_t sum = 0;
	if (!t)
		return x->g->failed;
	for (int i = 0; i < n; i++)
		if (size[i] < 0 || !size_add(sum, size[i], &sum))
			return node_fail(x->g, x->node, NULL, "its hidden sizes are no sizes");
	if (t->rank < 1 || t->dim[t->rank - 1] != sum)
		return node_fail(x->g, x->node, NULL,
			"the last axis of '%s' is not as long as its %d parts, %" PRId64, t->name,
			n, sum);
	return unroll_cut(x, t, t->rank - 1, n, size, false, out);
}

double ms_scale(const struct node *n)
{
	return node_float(n, "scale", 0);
}

struct node *ms_attend(struct expansion *x, const struct attend *a, int nout)
{
	struct tensor *in[] = {a->q, a->k, a->v, a->mask, a->past_k, a->past_v, a->end};
	struct attr attr[] = {ATTR_I("is_causal", a->causal), ATTR_I("left_window_size", a->left),
		ATTR_I("qk_matmul_output_mode", a->scores), ATTR_F("softcap", a->softcap),
		ATTR_I("q_num_heads", a->heads), ATTR_I("kv_num_heads", a->kv), {0}};
	int nattr = 6, nin = 7;
	while (!in[nin - 1] && nin > 3)
		nin--;
	if (!a->q || !a->k || !a->v)
		return NULL;
	if (ms_scale(x->node) != 0)
		attr[nattr++] = ATTR_F("scale", ms_scale(x->node));
	return ms_node(x, "Attention", nin, in, nout, nattr, attr);
}

/* Where `seen`, 0, else `value`. */
static struct tensor *added_where(struct graph *g, struct tensor *seen, double value)
{
	return OP3(g, "Where", seen, graph_scalar(g, 0), graph_scalar(g, value));
}

struct tensor *ms_keys_between(
	struct graph *g, int64_t count, struct tensor *start, struct tensor *end)
{
	struct tensor *key = ms_counting(g, count);
	struct tensor *seen = OP2(g, "Less", key, by_sample(g, end, 4));
	return start ? OP2(g, "And", seen, OP2(g, "GreaterOrEqual", key, by_sample(g, start, 4)))
		     : seen;
}

/* What input `k`, the mask of padding, adds to the scores [B,heads,S,T] where a key does not count:
 * mask_filter_value. *out NULL: nothing. */
static enum status padding_mask(
	struct expansion *x, int k, const int64_t size[3], struct tensor **out)
{
	struct graph *g = x->g;
	struct tensor *m = node_input(x->node, k), *seen = NULL, **part = NULL;
	const int64_t b = size[0], s = size[1], t = size[2];
	*out = NULL;
	if (!m || (m->rank == 2 && (m->dim[0] == 1 || m->dim[0] == b) && m->dim[1] == 1 && t != 1))
		return ST_OK; /* a place that is kept: all count */
	if (m->rank == 1 && m->dim[0] == b) {
		seen = ms_keys_between(g, t, NULL, m);
	} else if (m->rank == 1 && (m->dim[0] == 2 * b || m->dim[0] == 3 * b + 2)) {
		const bool ranges = m->dim[0] == 2 * b;
		TRY(unroll_cut(x, m, 0, 2, (int64_t[]){b, m->dim[0] - b}, false, &part));
		seen = ms_keys_between(g, t, ranges ? part[1] : NULL, part[0]);
	} else if ((m->rank == 2 && m->dim[0] == b && m->dim[1] == t) ||
		   (m->rank == 3 && m->dim[0] == b && m->dim[1] == s && m->dim[2] == t)) {
		const int64_t dim[] = {b, 1, m->rank == 3 ? s : 1, t};
		seen = OP2(g, "Greater", graph_reshape(g, m, 4, dim), unroll_int(g, 0));
	} else {
		char shape[200];
		return node_fail(g, x->node, "export the mask as [batch, keys]",
			"its mask %s is not of the forms that are known for %" PRId64
			" samples, %" PRId64 " queries and %" PRId64 " keys",
			tensor_shape_text(m, shape), b, s, t);
	}
	*out = added_where(g, seen, node_float(x->node, "mask_filter_value", -10000));
	return g->failed;
}

enum status ms_refuse(const struct expansion *x, const char *hint, const char *what)
{
	return node_fail(x->g, x->node, hint, "%s is not supported", what);
}

enum status ms_heads(const struct expansion *x, const char *name, int64_t *out)
{
	*out = node_int(x->node, name, 0);
	return *out > 0 ? ST_OK : node_fail(x->g, x->node, NULL, "has no attribute %s", name);
}

/* --- Attention(x, weights, bias, mask, past, addend, past length) -> y, present --- */

enum { A_X, A_WEIGHTS, A_BIAS, A_MASK, A_PAST, A_ADDEND, A_LENGTH };

static void hidden_sizes(const struct node *n, int64_t all, int64_t size[3])
{
	const struct attr *given = node_attr(n, "qkv_hidden_sizes");
	const bool listed = given && given->kind == ATTR_INTS && given->n == 3;
	for (int i = 0; i < 3; i++)
		size[i] = listed ? given->ints[i] : all / 3;
}

static enum status self_expand(struct expansion *x)
{
	struct graph *g = x->g;
	struct tensor *const *in = x->node->in, **part, **past = NULL, *padding;
	struct attend a = {.left = -1, .causal = node_int(x->node, "unidirectional", 0) != 0};
	int64_t size[3];
	TRY(ms_check(x));
	TRY(ms_heads(x, "num_heads", &a.heads));
	a.kv = a.heads;
	if (node_int(x->node, "do_rotary", 0))
		return ms_refuse(x, "export with RotaryEmbedding and MultiHeadAttention",
			"a rotation inside of it (do_rotary)");
	if (node_int(x->node, "past_present_share_buffer", 0) || node_input(x->node, A_LENGTH))
		return ms_refuse(x, ms_no_cache, "a past in a buffer of its own");
	if (in[A_X]->rank != 3 || in[A_WEIGHTS]->rank != 2)
		return node_fail(g, x->node, NULL, "x must have three axes, the weights two");
	hidden_sizes(x->node, in[A_WEIGHTS]->dim[1], size);
	struct tensor *all = ms_sum(
		g, OP2(g, "MatMul", in[A_X], in[A_WEIGHTS]), node_input(x->node, A_BIAS));
	TRY(ms_parts(x, all, 3, size, &part));
	struct tensor *stack = node_input(x->node, A_PAST);
	if (stack && (stack->rank != 5 || stack->dim[0] != 2))
		return node_fail(g, x->node, NULL, "its past is not [2,batch,heads,tokens,width]");
	const int64_t tokens = in[A_X]->dim[1], before = stack ? stack->dim[3] : 0;
	if (before > 0) {
		TRY(unroll_cut(x, stack, 0, 2, (int64_t[]){1, 1}, true, &past));
		a.past_k = past[0];
		a.past_v = past[1];
	}
	const int64_t scores[] = {in[A_X]->dim[0], tokens, tokens + before};
	TRY(padding_mask(x, A_MASK, scores, &padding));
	a.mask = ms_sum(g, node_input(x->node, A_ADDEND), padding);
	a.q = part[0];
	a.k = part[1];
	a.v = part[2];
	struct node *n = ms_attend(x, &a, x->nout > 1 ? 3 : 1);
	if (!n)
		return g->failed;
	if (x->nout > 1) {
		struct tensor *present;
		TRY(unroll_join(x, 2, n->out + 1, 0, true, &present));
		TRY(ms_give(x, 1, present));
	}
	return ms_give(x, 0, n->out[0]);
}

/* --- MultiHeadAttention(q, k, v, bias, mask, addend, past k, past v, ...) -> y, present k,
 * present v, scores --- */

enum { M_Q, M_K, M_V, M_BIAS, M_MASK, M_ADDEND, M_PAST_K, M_PAST_V, M_LENGTH, M_BEAMS };

/* [B,T,heads,n,D] as n tensors [B,T,heads * D]. */
static enum status unpack(
	struct expansion *x, struct tensor *t, int n, int64_t heads, struct tensor **out)
{
	struct tensor **part;
	if (t->dim[2] != heads || t->dim[3] != n)
		return node_fail(x->g, x->node, NULL, "'%s' is not [batch,tokens,heads,%d,width]",
			t->name, n);
	const int64_t dim[] = {t->dim[0], t->dim[1], heads * t->dim[4]};
	TRY(unroll_cut(x, t, 3, n, (int64_t[]){1, 1, 1}, true, &part));
	for (int i = 0; i < n; i++)
		out[i] = part[i] ? graph_reshape(x->g, part[i], 3, dim) : NULL;
	return x->g->failed;
}

/* q, k and v of three axes; or k and v of four, heads first. */
static enum status separate(struct expansion *x, struct attend *a)
{
	struct tensor *part[3] = {
		x->node->in[M_Q], node_input(x->node, M_K), node_input(x->node, M_V)};
	if (part[0]->rank == 5 && !part[1] && !part[2])
		TRY(unpack(x, part[0], 3, a->heads, part));
	else if (part[0]->rank == 3 && part[1] && part[1]->rank == 5 && !part[2])
		TRY(unpack(x, part[1], 2, a->heads, part + 1));
	const int rank = part[1] ? part[1]->rank : 0;
	if (!part[1] || !part[2] || part[0]->rank != 3 || part[2]->rank != rank ||
		(rank != 3 && rank != 4))
		return node_fail(x->g, x->node, NULL,
			"q must be [batch,tokens,width], k and v too or "
			"[batch,heads,tokens,width]; "
			"or they are packed in tensors of five axes");
	if (part[0]->dim[2] % a->heads || (rank == 3 && part[2]->dim[2] % a->heads))
		return node_fail(x->g, x->node, NULL, "the heads do not divide the last axis");
	a->q = part[0];
	a->k = part[1];
	a->v = part[2];
	return ST_OK;
}

/* The bias of what projects to q, k and v; k and v that stand heads first have theirs. */
static enum status add_bias(struct expansion *x, struct attend *a)
{
	struct tensor *bias = node_input(x->node, M_BIAS), **part;
	if (!bias)
		return ST_OK;
	const bool flat = a->k->rank == 3;
	const int64_t width = a->q->dim[2],
		      wide = flat ? a->v->dim[2] : a->v->dim[1] * a->v->dim[3];
	TRY(ms_parts(x, bias, 3, (int64_t[]){width, width, wide}, &part));
	a->q = OP2(x->g, "Add", a->q, part[0]);
	if (flat) {
		a->k = OP2(x->g, "Add", a->k, part[1]);
		a->v = OP2(x->g, "Add", a->v, part[2]);
	}
	return x->g->failed;
}

static enum status multi_expand(struct expansion *x)
{
	enum { MASKED = 2 };
	struct graph *g = x->g;
	struct attend a = {.left = -1, .causal = node_int(x->node, "unidirectional", 0) != 0};
	struct tensor *padding, *past = node_input(x->node, M_PAST_K);
	TRY(ms_check(x));
	TRY(ms_heads(x, "num_heads", &a.heads));
	a.kv = a.heads;
	a.scores = MASKED;
	if (node_input(x->node, M_LENGTH) || node_input(x->node, M_BEAMS))
		return ms_refuse(
			x, ms_no_cache, "a past in a buffer of its own, or of several beams");
	TRY(separate(x, &a));
	TRY(add_bias(x, &a));
	const bool flat = a.k->rank == 3;
	const int64_t before = past && past->rank == 4 ? past->dim[2] : 0;
	const int64_t keys = a.k->dim[flat ? 1 : 2] + before;
	if (past && (past->rank != 4 || !node_input(x->node, M_PAST_V) || !flat))
		return node_fail(g, x->node, NULL,
			"its past is not two tensors [batch,heads,tokens,width] beside k and v of "
			"three axes");
	if (a.causal && before == 0 && a.q->dim[1] < keys)
		return ms_refuse(x, "give the mask as the addend of the scores (attention_bias)",
			"unidirectional with fewer queries than keys, and no past,");
	const int64_t scores[] = {a.q->dim[0], a.q->dim[1], keys};
	TRY(padding_mask(x, M_MASK, scores, &padding));
	a.mask = ms_sum(g, node_input(x->node, M_ADDEND), padding);
	a.past_k = before ? past : NULL;
	a.past_v = before ? node_input(x->node, M_PAST_V) : NULL;
	if (!flat)
		a.q = ms_heads_first(g, a.q, a.heads);
	struct node *n = ms_attend(x, &a, x->nout);
	if (!n)
		return g->failed;
	for (int k = 1; k < x->nout; k++)
		TRY(ms_give(x, k, n->out[k]));
	return ms_give(x, 0, flat ? n->out[0] : ms_heads_last(g, n->out[0]));
}

/* --- RotaryEmbedding(x, positions, cos, sin) --- */

struct tensor *ms_rotated(struct expansion *x, struct tensor *t, int64_t heads, int64_t turned,
	bool interleaved, struct tensor *place, struct tensor *const table[2])
{
	const struct attr attr[] = {ATTR_I("num_heads", heads),
		ATTR_I("rotary_embedding_dim", turned), ATTR_I("interleaved", interleaved)};
	struct tensor *in[3] = {t};
	for (int i = 0; i < 2; i++)
		in[1 + i] = place ? OP2(x->g, "Gather", table[i], place) : NULL;
	return t && in[1] && in[2] ? graph_op(x->g, "RotaryEmbedding", 3, in, 3, attr) : NULL;
}

struct tensor *ms_from(struct graph *g, struct tensor *first, int64_t count)
{
	struct tensor *one = graph_reshape(g, first, 1, (int64_t[]){1});
	struct tensor *all = one ? OP2(g, "Add", one, ms_counting(g, count)) : NULL;
	return all ? graph_reshape(g, all, 2, (int64_t[]){1, count}) : NULL;
}

static enum status rotary_expand(struct expansion *x)
{
	struct graph *g = x->g;
	struct tensor *const *in = x->node->in, *place = in[1];
	int64_t heads = node_int(x->node, "num_heads", 0);
	TRY(ms_check(x));
	if ((in[0]->rank != 3 && in[0]->rank != 4) || in[2]->rank != 2 || in[3]->rank != 2)
		return node_fail(g, x->node, NULL,
			"x must have three or four axes, the tables of angles two");
	const int64_t width = 2 * in[2]->dim[1], tokens = in[0]->dim[in[0]->rank - 2];
	if (in[0]->rank == 3 && heads == 0 && width > 0)
		heads = in[0]->dim[2] / width;
	if (place->rank < 2 && place->numel == 1)
		place = ms_from(g, place, tokens);
	return ms_give(x, 0,
		ms_rotated(x, in[0], heads, node_int(x->node, "rotary_embedding_dim", 0),
			node_int(x->node, "interleaved", 0) != 0, place, in + 2));
}

/* clang-format off */
const struct op_def ops_ms_attention[] = {
	{.name = "com.microsoft.Attention", .since = 1, .min_in = 2, .max_in = 7, .max_out = 2, .weights = 6, .expand = self_expand,
		.example = EXAMPLES({.in = "2,3,5 5,12 12 2,3:i64<2", .attr = "num_heads=2"},
			{.in = "1,3,4 4,14 14", .attr = "num_heads=2 qkv_hidden_sizes=4,4,6 unidirectional=1 scale=0.3"},
			{.in = "2,3,4 4,12 - =[3,5] 2,2,2,2,2 1,2,3,5", .attr = "num_heads=2 mask_filter_value=-2.0", .nout = 2})},
	{.name = "com.microsoft.MultiHeadAttention", .since = 1, .min_in = 1, .max_in = 10, .max_out = 4, .weights = 8, .expand = multi_expand,
		.example = EXAMPLES({.in = "2,3,4 2,5,4 2,5,6 14 =[5,3]", .attr = "num_heads=2"},
			{.in = "2,3,2,3,4 - - 24", .attr = "num_heads=2 unidirectional=1"},
			{.in = "2,3,4 2,5,2,2,2", .attr = "num_heads=2 scale=0.3"},
			{.in = "2,3,4 2,2,5,2 2,2,5,3 14 2,5:i64<2", .attr = "num_heads=2 mask_filter_value=-1.5"},
			{.in = "2,3,4 2,3,4 2,3,4 - - 1,1,3,5 2,2,2,2 2,2,2,2", .attr = "num_heads=2", .nout = 4})},
	{.name = "com.microsoft.RotaryEmbedding", .since = 1, .min_in = 4, .known = 12, .expand = rotary_expand,
		.example = EXAMPLES({.in = "2,3,5,4 2,5:i64<9 9,2 9,2"}, {.in = "2,5,8 1:i64<4 9,2 9,2", .attr = "interleaved=1"},
			{.in = "2,3,12 2,3:i64<9 9,2 9,2", .attr = "num_heads=2 rotary_embedding_dim=4"})},
	{0},
};
/* clang-format on */
