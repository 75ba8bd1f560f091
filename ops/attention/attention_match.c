/* Attention that is spelled out: a product of queries and keys, scaled and masked, a softmax over
 * the keys, and a product with the values, as PyTorch's exporters and people write it. Any size is
 * recognised: what is saved, the matrix of scores, is never smaller than what is computed twice in
 * its place. A dropout of the probabilities becomes part of it. */
#include "ops/attention/attention_match.h"
#include "ops/dropout_op.h"

/* Where(IsNaN(p), 0, p): rows without keys are zeros. Returns p. */
static struct tensor *without_nan(struct tensor *t, enum empty_row *empty)
{
	const struct node *where = t->maker;
	const struct node *nan = node_is(where, "Where") ? where->in[0]->maker : NULL;
	double v;
	if (!node_is(nan, "IsNaN") || !match_uniform(where->in[1], &v) || v != 0 ||
		match_source(nan->in[0]) != match_source(where->in[2]) ||
		!tensor_same_shape(where->in[2], where->out[0]))
		return t;
	*empty = EMPTY_NAN_ZERO;
	return match_source(where->in[2]);
}

static bool is_softmax(const struct node *n)
{
	if (!node_is(n, "Softmax"))
		return false;
	const int rank = n->in[0]->rank;
	const int64_t axis = node_int(n, "axis", n->op->until == 13 ? 1 : -1);
	return rank > 0 && (axis == -1 || axis == rank - 1);
}

/* What a match is made of. */
struct parts {
	struct scores scores;
	const struct node *dropout; /* of the probabilities; NULL: none */
	enum empty_row empty;
	struct tensor *q, *kt, *v; /* as the products read them */
	int rank;
	int64_t batch, heads, tq, tk, d, dv;
	struct view_read sq, sk, sv;
	struct mask mask;
};

static int64_t product(int n, const int64_t *v)
{
	int64_t p = 1;
	for (int i = 0; i < n; i++)
		p *= v[i];
	return p;
}

/* The leading axes of all operands are the same: nothing broadcasts. */
static bool read_sizes(const struct node *n, struct parts *p)
{
	p->q = p->scores.product->in[0];
	p->kt = p->scores.product->in[1];
	p->v = n->in[1];
	const int r = p->rank = n->out[0]->rank;
	if (r < 2 || p->q->rank != r || p->kt->rank != r || p->v->rank != r ||
		!tensor_same_shape(p->scores.product->out[0], n->in[0]) ||
		memcmp(p->q->dim, p->kt->dim, (size_t)(r - 2) * sizeof p->q->dim[0]) != 0 ||
		memcmp(p->q->dim, p->v->dim, (size_t)(r - 2) * sizeof p->q->dim[0]) != 0)
		return false;
	p->batch = r > 3 ? product(r - 3, p->q->dim) : r == 3 ? p->q->dim[0] : 1;
	p->heads = r > 3 ? p->q->dim[r - 3] : 1;
	p->tq = p->q->dim[r - 2];
	p->d = p->q->dim[r - 1];
	p->tk = p->v->dim[r - 2];
	p->dv = p->v->dim[r - 1];
	return n->out[0]->numel > 0 && p->tk > 0 && p->d > 0;
}

static struct view view_of(const struct parts *p, struct tensor *t, int axis)
{
	static const int rows[AXES] = {AXIS_BATCH, AXIS_HEAD, AXIS_TOKEN, AXIS_WIDTH};
	static const int columns[AXES] = {AXIS_BATCH, AXIS_HEAD, AXIS_WIDTH, AXIS_TOKEN};
	const int64_t size[AXES] = {p->batch, p->heads, axis == ATTENTION_Q ? p->tq : p->tk,
		axis == ATTENTION_V ? p->dv : p->d};
	return view_begin(t, size, axis == ATTENTION_K ? columns : rows);
}

/* Batch and head in one axis, as bmm wants them: told apart by how q was made. */
static void part_heads(struct parts *p)
{
	if (p->rank != 3)
		return;
	struct view v = view_of(p, p->q, ATTENTION_Q);
	while (view_back(&v, true))
		if (v.count[AXIS_BATCH] == 2) {
			p->heads = v.atom[AXIS_BATCH][1].n;
			p->batch /= p->heads;
			return;
		}
}

/* k as its rows are stored; where that is nowhere, they are made. */
static bool find_keys(struct graph *g, struct parts *p)
{
	if (view_find(view_of(p, p->kt, ATTENTION_K), true, true, &p->sk))
		return true;
	int64_t perm[RANK_MAX];
	for (int i = 0; i < p->rank; i++)
		perm[i] = i < p->rank - 2 ? i : 2 * p->rank - 3 - i;
	const struct attr attr = data_ints(g, "perm", p->rank, perm);
	struct tensor *k = graph_op(g, "Transpose", 1, &p->kt, 1, &attr);
	if (!k)
		return false;
	const int64_t dim[AXES] = {p->batch, p->heads, p->tk, p->d};
	p->sk = (struct view_read){.base = k, .group = 1, .scale = 1};
	memcpy(p->sk.dim, dim, sizeof dim);
	return true;
}

static bool find_operands(struct graph *g, struct parts *p)
{
	if (p->scores.head_scale)
		p->q = OP2(g, "Mul", p->q, p->scores.head_scale);
	if (!p->q || p->q->rank != p->rank)
		return false;
	part_heads(p);
	return view_find(view_of(p, p->q, ATTENTION_Q), true, false, &p->sq) && find_keys(g, p) &&
	       view_find(view_of(p, p->v, ATTENTION_V), false, true, &p->sv) &&
	       p->sk.group == p->sv.group;
}

static struct tensor *build(struct graph *g, const struct parts *p)
{
	const int64_t layout[ATTENTION_TENSORS] = {
		p->sq.layout, p->sk.layout, p->sv.layout, LAYOUT_BHT};
	struct attr attr[11] = {ATTR_F("scale", p->scores.scale * p->sq.scale * p->sk.scale),
		ATTR_F("softcap", p->scores.softcap), ATTR_I("empty", p->empty),
		data_ints(g, "layout", ATTENTION_TENSORS, layout)};
	int nattr = 4;
	if (p->mask.bounded) {
		attr[nattr++] = ATTR_I("lower", p->mask.lower);
		attr[nattr++] = ATTR_I("upper", p->mask.upper);
	}
	if (p->dropout) {
		const struct dropout *d = dropout_of(p->dropout);
		attr[nattr++] = ATTR_F("ratio", d->ratio);
		attr[nattr++] = ATTR_I("active", d->active);
		attr[nattr++] = ATTR_I("silent", d->silent);
		attr[nattr++] = ATTR_I("noise", d->key);
		attr[nattr++] = (struct attr){
			.name = "dropout", .kind = ATTR_STRING, .s = p->dropout->name};
	}
	struct tensor *in[4] = {graph_reshape(g, p->sq.base, AXES, p->sq.dim),
		graph_reshape(g, p->sk.base, AXES, p->sk.dim),
		graph_reshape(g, p->sv.base, AXES, p->sv.dim), p->mask.t};
	return graph_op(g, "stint.Attention", p->mask.t ? 4 : 3, in, nattr, attr);
}

static enum status match_product(struct graph *g, const struct node *n, struct tensor **replace)
{
	struct parts p = {.empty = EMPTY_NAN};
	struct tensor *t = match_source(n->in[0]);
	if (node_is(t->maker, "Dropout") && t == t->maker->out[0]) {
		p.dropout = t->maker;
		t = match_source(t->maker->in[0]);
	}
	t = without_nan(t, &p.empty);
	if (!is_softmax(t->maker) || !scores_read(g, t->maker->in[0], &p.scores) ||
		!read_sizes(n, &p) || !find_operands(g, &p))
		return g->failed;
	const int64_t size[4] = {p.batch, p.heads, p.tq, p.tk};
	if (!scores_mask(g, &p.scores, size, &p.mask))
		return g->failed;
	t = build(g, &p);
	*replace = t ? graph_reshape(g, t, p.rank, n->out[0]->dim) : NULL;
	return g->failed;
}

/* The output of one that was recognised, transposed: it can be stored so. */
static enum status match_transpose(struct graph *g, const struct node *n, struct tensor **replace)
{
	static const int order[AXES] = {AXIS_BATCH, AXIS_HEAD, AXIS_TOKEN, AXIS_WIDTH};
	const struct tensor *x = match_source(n->in[0]);
	while (x->maker && (x->maker->op->traits & OP_VIEW))
		x = match_source(x->maker->in[0]);
	const struct node *att = x->maker;
	if (!node_is(att, "stint.Attention") || x != att->out[0])
		return ST_OK;
	const struct attention *p = att->param;
	const int64_t size[AXES] = {p->batch, p->heads, p->tq, p->dv};
	struct view v = view_begin(n->out[0], size, order);
	struct view_read s;
	if (p->layout[ATTENTION_OUT] != LAYOUT_BHT || !view_transpose(&v, n, true) ||
		!view_settle(&v, &s) || s.layout == LAYOUT_BHT || s.group != 1)
		return ST_OK;
	int64_t layout[ATTENTION_TENSORS];
	struct attr *attr = ARENA_ARRAY(g->arena, struct attr, att->nattr);
	if (!attr)
		return diag_nomem(g->diag);
	for (int i = 0; i < ATTENTION_TENSORS; i++)
		layout[i] = i == ATTENTION_OUT ? s.layout : p->layout[i];
	for (int i = 0; i < att->nattr; i++)
		attr[i] = strcmp(att->attr[i].name, "layout") != 0
				  ? att->attr[i]
				  : data_ints(g, "layout", ATTENTION_TENSORS, layout);
	struct node *m = graph_op_node(
		g, "stint.Attention", att->nin, att->in, att->nattr, attr, NULL);
	*replace = m ? graph_reshape(g, m->out[0], n->out[0]->rank, n->out[0]->dim) : NULL;
	return g->failed;
}

enum status attention_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	if (node_is(n, "MatMul"))
		return match_product(g, n, replace);
	if (node_is(n, "Transpose"))
		return match_transpose(g, n, replace);
	return ST_OK;
}
