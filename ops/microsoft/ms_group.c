/* ONNX Runtime's GroupQueryAttention(q, k, v, past k, past v, lengths, total, cos, sin, positions,
 * addend, sinks, ...) -> y, present k, present v, scores: heads of q share those of k and v, and
 * each sample has a length, lengths[b] + 1, tokens of the past included.
 *
 * A first prompt, `total` queries, begins at position 0 whatever its past; queries that follow are
 * the last of their sample's tokens, and what is new is put into the past there. */
#include <inttypes.h>

#include "ops/attention/attention_op.h"
#include "ops/microsoft/ms_attention.h"

enum { Q, K, V, PAST_K, PAST_V, LENGTHS, TOTAL, COSINES, SINES, PLACES, ADDEND, SINKS };
enum { SCALE_K = 12, SCALE_V, NORM_Q, NORM_K, COUNTS };

struct group {
	struct attend a;
	int64_t batch, tokens, width; /* of q: samples, queries, values of a head */
	int64_t room;                 /* keys that present has room for */
	bool prompt;
	struct tensor *end, *start; /* [B]: of each sample's tokens; of its queries */
};

/* --- What is asked for --- */

static enum status check_asked(const struct expansion *x)
{
	static const char *const quant[] = {"k_quant_type", "v_quant_type"};
	const struct node *n = x->node;
	TRY(ms_need(x, 1u << Q | 1u << LENGTHS | 1u << TOTAL));
	for (int i = 0; i < 2; i++)
		if (strcmp(node_string(n, quant[i], "NONE"), "NONE") != 0 ||
			node_input(n, SCALE_K + i))
			return ms_refuse(x, ms_no_cache, "a past in whole numbers");
	if (node_int(n, "sliding_window_cache", 0))
		return ms_refuse(x, ms_no_cache, "a past of a window's size");
	if (node_input(n, COUNTS))
		return ms_refuse(x, "leave query_seqlens away: lengths (seqlens_k) are enough",
			"a number of queries of each sample");
	return ST_OK;
}

/* q, k and v, which may be one tensor. */
static enum status read_parts(struct expansion *x, struct group *r)
{
	struct tensor *q = x->node->in[Q], *k = node_input(x->node, K), *v = node_input(x->node, V);
	const int64_t heads = r->a.heads, kv = r->a.kv;
	struct tensor **part;
	int64_t all = heads;
	if (q->rank != 3 || !k != !v || (k && (k->rank != 3 || v->rank != 3)) || heads % kv ||
		(!k && (!size_mul(2, kv, &all) || !size_add(all, heads, &all))))
		return node_fail(x->g, x->node, NULL,
			"q, k and v must have three axes, or q alone be all, and kv_num_heads "
			"divide num_heads");
	r->batch = q->dim[0];
	r->tokens = q->dim[1];
	r->width = q->dim[2] / all;
	if (!k) {
		TRY(ms_parts(x, q, 3, (int64_t[]){heads * r->width, kv * r->width, kv * r->width},
			&part));
		q = part[0];
		k = part[1];
		v = part[2];
	}
	if (q->dim[2] % heads || k->dim[2] != kv * r->width || v->dim[2] % kv ||
		k->dim[1] != r->tokens || v->dim[1] != r->tokens)
		return node_fail(x->g, x->node, NULL,
			"its heads do not divide the last axes, or k and v are not of as many "
			"tokens as q");
	r->a.q = q;
	r->a.k = k;
	r->a.v = v;
	return ST_OK;
}

/* How the queries lie among the keys. */
static enum status read_places(struct expansion *x, struct group *r)
{
	struct graph *g = x->g;
	const struct tensor *total = x->node->in[TOTAL], *past = node_input(x->node, PAST_K);
	struct tensor *lengths = x->node->in[LENGTHS];
	const bool known = total->role == TR_CONSTANT && total->data && total->numel == 1;
	const int64_t one = 1;
	if (past && (past->rank != 4 || past->dim[1] != r->a.kv || past->dim[3] != r->width ||
			    !node_input(x->node, PAST_V)))
		return node_fail(g, x->node, NULL,
			"its past is not two tensors [batch,heads,tokens,width] of k's heads");
	if (lengths->numel != r->batch)
		return node_fail(g, x->node, NULL,
			"'%s' has no length for each of %" PRId64 " samples", lengths->name,
			r->batch);
	const int64_t before = past ? past->dim[2] : 0;
	if (!known && before > 0)
		return node_fail(g, x->node, ms_no_cache,
			"how many tokens there are in all, '%s', is not known at compile time",
			total->name);
	const int64_t all = known ? tensor_int(total, 0) : r->tokens;
	r->prompt = all == r->tokens;
	r->room = max64(before, all);
	if (all < r->tokens || (all > r->tokens && all > before && all - before != r->tokens))
		return node_fail(g, x->node, NULL,
			"%" PRId64 " tokens in all are not those of q, %" PRId64
			", and of the past, %" PRId64,
			all, r->tokens, before);
	r->end = OP2(g, "Add", graph_reshape(g, lengths, 1, &r->batch), graph_ints(g, 1, &one));
	r->start = r->end ? OP2(g, "Sub", r->end, graph_ints(g, 1, &r->tokens)) : NULL;
	return g->failed;
}

/* --- What is done to q and k --- */

/* Each head by its root mean square, before it is turned. */
static struct tensor *normed(struct expansion *x, struct group *r, struct tensor *t, int64_t heads,
	int weight, const char *epsilon)
{
	const double e = node_float(x->node, epsilon, node_float(x->node, "qk_norm_epsilon", 1e-6));
	const struct attr attr = ATTR_F("epsilon", e);
	struct tensor *by = node_input(x->node, weight);
	const int64_t flat[] = {r->batch, r->tokens, heads * r->width};
	const int64_t dim[] = {r->batch, r->tokens, heads, r->width};
	if (!by || !t)
		return t;
	t = graph_op(x->g, "RMSNormalization", 2,
		(struct tensor *[]){graph_reshape(x->g, t, 4, dim), by}, 1, &attr);
	return t ? graph_reshape(x->g, t, 3, flat) : NULL;
}

/* Positions of the queries: [B,S] or [1,S]. Of those of a prompt the first number counts. */
static struct tensor *places(struct expansion *x, struct group *r)
{
	struct graph *g = x->g;
	struct tensor *given = node_input(x->node, PLACES);
	const int64_t zero = 0, one = 1;
	if (!r->prompt && given)
		return given;
	if (!r->prompt) {
		struct tensor *start = graph_reshape(g, r->start, 2, (int64_t[]){r->batch, 1});
		return start ? OP2(g, "Add", start, ms_counting(g, r->tokens)) : NULL;
	}
	struct tensor *first = given ? graph_reshape(g, given, 1, &given->numel) : NULL;
	if (first)
		first = graph_op(g, "Slice", 3,
			(struct tensor *[]){first, graph_ints(g, 1, &zero), graph_ints(g, 1, &one)},
			0, NULL);
	else if (!given)
		first = graph_ints(g, 1, &zero);
	return first ? ms_from(g, first, r->tokens) : NULL;
}

static enum status turn(struct expansion *x, struct group *r)
{
	struct tensor *const table[] = {node_input(x->node, COSINES), node_input(x->node, SINES)};
	const bool interleaved = node_int(x->node, "rotary_interleaved", 0) != 0;
	r->a.q = normed(x, r, r->a.q, r->a.heads, NORM_Q, "q_norm_epsilon");
	r->a.k = normed(x, r, r->a.k, r->a.kv, NORM_K, "k_norm_epsilon");
	if (!node_int(x->node, "do_rotary", 0))
		return x->g->failed;
	if (!table[0] || !table[1] || table[0]->rank != 2 || table[1]->rank != 2)
		return node_fail(x->g, x->node, NULL,
			"do_rotary needs tables of angles of two axes, cos_cache and sin_cache");
	struct tensor *place = places(x, r);
	const int64_t turned = 2 * table[0]->dim[1];
	r->a.q = ms_rotated(x, r->a.q, r->a.heads, turned, interleaved, place, table);
	r->a.k = ms_rotated(x, r->a.k, r->a.kv, turned, interleaved, place, table);
	return x->g->failed;
}

/* --- The past --- */

/* What is new of k or v in the past, with room for all keys: [B,G,room,D]. */
static struct tensor *present(struct expansion *x, struct group *r, struct tensor *t, int past)
{
	struct graph *g = x->g;
	struct tensor *all = node_input(x->node, past), *fresh = ms_heads_first(g, t, r->a.kv);
	const struct attr axis = ATTR_I("axis", 2);
	if (!all || all->rank != 4 || !fresh || r->room == r->tokens)
		return fresh;
	if (all->dim[2] < r->room) {
		const int64_t dim[] = {
			all->dim[0], all->dim[1], r->room - all->dim[2], all->dim[3]};
		struct tensor *zero = OP2(g, "Expand", graph_scalar(g, 0), graph_ints(g, 4, dim));
		all = zero ? graph_op(g, "Concat", 2, (struct tensor *[]){all, zero}, 1, &axis)
			   : NULL;
	}
	return all ? graph_op(g, "TensorScatter", r->prompt ? 2 : 3,
			     (struct tensor *[]){all, fresh, r->start}, 1, &axis)
		   : NULL;
}

/* q, k and v heads first, k and v in the past; outputs 1 and 2. */
static enum status join_past(struct expansion *x, struct group *r)
{
	struct tensor *k = present(x, r, r->a.k, PAST_K), *v = present(x, r, r->a.v, PAST_V);
	TRY(x->g->failed);
	TRY(ms_give(x, 1, k));
	TRY(ms_give(x, 2, v));
	if (r->room == r->tokens)
		return ST_OK;
	r->a.q = ms_heads_first(x->g, r->a.q, r->a.heads);
	r->a.k = k;
	r->a.v = v;
	return x->g->failed;
}

/* --- The attention --- */

/* Keys of a prompt that count, with what is added to scores. */
static enum status prompt_mask(struct expansion *x, struct group *r)
{
	struct graph *g = x->g;
	struct tensor *live = ms_keys_between(g, r->room, NULL, r->end);
	struct tensor *addend = node_input(x->node, ADDEND), *low = graph_scalar(g, -INFINITY);
	if (addend && live && addend->rank > 0 && addend->dim[addend->rank - 1] < r->room)
		live = ms_keys_between(g, addend->dim[addend->rank - 1], NULL, r->end);
	r->a.mask = addend && live ? OP3(g, "Where", live, addend, low) : live;
	return g->failed;
}

/* Each sink stands among a query's keys, with a score of its own and nothing to give: what the
 * others have is exp(l) / (exp(l) + exp(sink)) of the result without it, l the logarithm of the sum
 * of exponentials. [B,S,heads * D] */
static struct tensor *with_sinks(struct expansion *x, struct group *r)
{
	static const int64_t layout[ATTENTION_TENSORS] = {
		LAYOUT_BTH, LAYOUT_BTH, LAYOUT_BTH, LAYOUT_BTH};
	static const int64_t perm[] = {0, 2, 1};
	struct graph *g = x->g;
	struct tensor *sink = node_input(x->node, SINKS),
		      *q[] = {r->a.q, r->a.k, r->a.v, r->a.mask};
	const int64_t kv = r->a.kv, heads = r->a.heads, wide = r->a.v->dim[2] / kv;
	const double scale = ms_scale(x->node);
	struct attr attr[6] = {data_ints(g, "layout", ATTENTION_TENSORS, layout),
		ATTR_I("empty", EMPTY_ZERO), ATTR_F("softcap", r->a.softcap),
		ATTR_F("scale", scale != 0 ? scale : 1 / sqrt((double)r->width))};
	int nattr = 4;
	const int64_t axes[][4] = {{r->batch, r->tokens, heads, r->width},
		{r->batch, r->tokens, kv, r->width}, {r->batch, r->tokens, kv, wide}};
	if (r->a.causal)
		attr[nattr++] = ATTR_I("upper", 0);
	if (r->a.left >= 0)
		attr[nattr++] = ATTR_I("lower", -r->a.left);
	for (int i = 0; i < 3; i++)
		q[i] = graph_reshape(g, q[i], 4, axes[i]);
	struct node *n = graph_op_node(g, "stint.Attention", q[3] ? 4 : 3, q, nattr, attr, NULL);
	if (!n)
		return NULL;
	struct tensor *sum = graph_reshape(
		g, n->out[1], 3, (int64_t[]){r->batch, heads, r->tokens});
	if (sink)
		sum = OP2(g, "Sub", sum, graph_reshape(g, sink, 2, (int64_t[]){sink->numel, 1}));
	struct tensor *share = ms_transpose(g, OP1(g, "Sigmoid", sum), perm);
	if (!share)
		return NULL;
	struct tensor *y = OP2(g, "Mul", n->out[0],
		graph_reshape(g, share, 4, (int64_t[]){r->batch, r->tokens, heads, 1}));
	return y ? graph_reshape(g, y, 3, (int64_t[]){r->batch, r->tokens, heads * wide}) : NULL;
}

/* Output 3: with the softmax, or before it, zeros where a key is not seen. */
static enum status give_scores(struct expansion *x, struct tensor *t, bool after)
{
	struct graph *g = x->g;
	struct tensor *unseen = t && !after ? OP2(g, "Equal", t, graph_scalar(g, -INFINITY)) : NULL;
	return ms_give(x, 3, unseen ? OP3(g, "Where", unseen, graph_scalar(g, 0), t) : t);
}

static enum status group_expand(struct expansion *x)
{
	enum { BEFORE = 1, AFTER, MASKED = 2, PROBABILITIES };
	struct graph *g = x->g;
	const int64_t window = node_int(x->node, "local_window_size", -1);
	const int64_t scores = node_int(x->node, "qk_output", 0);
	const bool asked = x->nout > 3 && scores != 0;
	struct group r = {.a = {.left = window > 0 ? window - 1 : -1,
				  .causal = node_int(x->node, "causal", 1) != 0,
				  .scores = scores == AFTER ? PROBABILITIES : MASKED,
				  .softcap = node_float(x->node, "softcap", 0)}};
	TRY(check_asked(x));
	TRY(ms_heads(x, "num_heads", &r.a.heads));
	TRY(ms_heads(x, "kv_num_heads", &r.a.kv));
	TRY(read_parts(x, &r));
	TRY(read_places(x, &r));
	TRY(turn(x, &r));
	TRY(join_past(x, &r));
	if (r.prompt) {
		TRY(prompt_mask(x, &r));
	} else {
		r.a.end = r.end;
		r.a.mask = node_input(x->node, ADDEND);
	}
	if (node_input(x->node, SINKS) || node_int(x->node, "smooth_softmax", 0)) {
		if (!r.prompt || r.room != r.tokens || asked)
			return ms_refuse(x, ms_no_cache,
				"a sink (head_sink, smooth_softmax) beside a past, or with scores "
				"as an output,");
		return ms_give(x, 0, with_sinks(x, &r));
	}
	struct node *n = ms_attend(x, &r.a, asked ? 4 : 1);
	if (!n)
		return g->failed;
	if (asked)
		TRY(give_scores(x, n->out[3], scores == AFTER));
	return ms_give(x, 0, r.room != r.tokens ? ms_heads_last(g, n->out[0]) : n->out[0]);
}

/* clang-format off */
const struct op_def ops_ms_group[] = {
	{.name = "com.microsoft.GroupQueryAttention", .since = 1, .min_in = 1, .max_in = 17, .max_out = 4, .weights = 51200, .known = 384,
		.expand = group_expand,
		.example = EXAMPLES(
			{.in = "2,3,16 2,3,8 2,3,8 - - =[2,2] =3 9,2 9,2", .attr = "num_heads=4 kv_num_heads=2 do_rotary=1", .nout = 3},
			{.in = "2,4,16 - - - - =[2,3] =4 9,1 9,1 2,4:i64<3 1,2,4,4",
				.attr = "num_heads=2 kv_num_heads=1 do_rotary=1 rotary_interleaved=1 local_window_size=2 softcap=0.7"},
			{.in = "2,3,8 2,3,4 2,3,4 - - =[2,1] =3 - - - - 4", .attr = "num_heads=4 kv_num_heads=2 scale=0.6"},
			{.in = "2,3,8 2,3,4 2,3,4 - - =[2,1] =3 - - - 2,4,3,3", .attr = "num_heads=4 kv_num_heads=2 smooth_softmax=1 causal=0"},
			{.in = "2,3,8 2,3,4 2,3,4 - - =[2,2] =3 - - - - - - - 2 2", .attr = "num_heads=4 kv_num_heads=2 qk_output=2", .nout = 4},
			{.in = "2,1,8 2,1,4 2,1,4 2,2,3,2 2,2,3,2 =[3,2] =4 9,1 9,1", .attr = "num_heads=4 kv_num_heads=2 do_rotary=1", .nout = 3},
			{.in = "2,2,4 2,2,4 2,2,4 2,2,5,2 2,2,5,2 =[1,1] =2", .attr = "num_heads=2 kv_num_heads=2 qk_output=1", .nout = 4})},
	{0},
};
/* clang-format on */
