/* What exporters write between the product of queries and keys and the softmax: scalings, a soft
 * cap, masks. */
#include "ops/attention/attention_match.h"

bool match_uniform(const struct tensor *t, double *v)
{
	if (t->role != TR_CONSTANT || t->numel < 1 || !dtype_is_real(t->dtype))
		return false;
	*v = tensor_real(t, 0);
	for (int64_t i = 1; i < t->numel; i++)
		if (tensor_real(t, i) != *v)
			return false;
	return true;
}

/* --- Reading --- */

static bool read_from(struct graph *g, struct tensor *t, struct scores *s, int depth);

static bool add_term(struct scores *s, struct tensor *t, bool negate)
{
	/* the terms are added after the scaling, so they come first on the way back */
	if (s->nterm == MATCH_TERMS || s->scale != 1 || s->softcap != 0 || s->head_scale)
		return false;
	s->term[s->nterm++] = (struct term){t, negate};
	return true;
}

static bool read_add(struct graph *g, const struct node *n, struct scores *s, int depth)
{
	for (int i = 0; i < 2; i++) {
		struct scores copy = *s;
		if (tensor_same_shape(n->in[i], n->out[0]) &&
			add_term(&copy, n->in[1 - i], false) &&
			read_from(g, n->in[i], &copy, depth)) {
			*s = copy;
			return true;
		}
	}
	return false;
}

/* Every row of a known condition has a value that is `wanted`. */
static bool rows_have(const struct tensor *c, bool wanted)
{
	const int64_t row = c->rank ? c->dim[c->rank - 1] : 1;
	if (c->role != TR_CONSTANT)
		return false;
	for (int64_t i = 0; i < c->numel; i += row) {
		bool any = false;
		for (int64_t j = 0; j < row && !any; j++)
			any = (tensor_int(c, i + j) != 0) == wanted;
		if (!any)
			return false;
	}
	return true;
}

/* Where(c, score, v): -infinity is a mask. So is a number far below any score, where every row is
 * known to keep a score: its exponential is 0. A row of such numbers alone would be uniform. */
static bool read_where(struct graph *g, const struct node *n, struct scores *s, int depth)
{
	for (int i = 1; i < 3; i++) {
		double v;
		const bool negate = i == 2; /* the score stands where c is false */
		if (!tensor_same_shape(n->in[i], n->out[0]) || !match_uniform(n->in[3 - i], &v))
			continue;
		if (v == -INFINITY || (v <= -1e8 && rows_have(n->in[0], !negate)))
			return add_term(s, n->in[0], negate) && read_from(g, n->in[i], s, depth);
	}
	return false;
}

/* Tanh(x / cap), times cap: x. */
static struct tensor *capped(const struct tensor *t, double cap)
{
	const struct node *tanh = t->maker;
	if (!node_is(tanh, "Tanh"))
		return NULL;
	const struct node *n = tanh->in[0]->maker;
	double v;
	if (!n || !tensor_same_shape(n->in[0], n->out[0]))
		return NULL;
	if (node_is(n, "Div") && match_uniform(n->in[1], &v) && v == cap)
		return n->in[0];
	if (node_is(n, "Mul") && match_uniform(n->in[1], &v) && fabs(v * cap - 1) < 1e-6)
		return n->in[0];
	return NULL;
}

/* A factor for each head, or batch and head: t has the last two axes 1. */
static bool is_head_scale(const struct tensor *t)
{
	return t->numel == 1 ||
	       (t->rank >= 2 && t->dim[t->rank - 1] == 1 && t->dim[t->rank - 2] == 1);
}

static bool read_scale(struct graph *g, const struct node *n, struct scores *s, int depth)
{
	const bool div = node_is(n, "Div");
	for (int i = 0; i < (div ? 1 : 2); i++) {
		struct tensor *x = n->in[i], *factor = n->in[1 - i], *inner;
		struct scores copy = *s;
		double v;
		const bool known = match_uniform(factor, &v);
		if (!tensor_same_shape(x, n->out[0]))
			continue;
		if (known && !div && s->scale == 1 && s->softcap == 0 && !s->head_scale && v > 0 &&
			(inner = capped(x, v))) {
			copy.softcap = v;
			x = inner;
		} else if (known) {
			copy.scale = div ? s->scale / v : s->scale * v;
		} else if (!div && !s->head_scale && is_head_scale(factor)) {
			copy.head_scale = factor;
		} else {
			continue;
		}
		if (read_from(g, x, &copy, depth)) {
			*s = copy;
			return true;
		}
	}
	return false;
}

/* Windows of images (Liu et al., "Swin Transformer"): the batch axis is split in two for the sum
 * with a mask for each window, and joined again. */
static bool read_windows(struct graph *g, const struct node *n, struct scores *s, int depth)
{
	const struct tensor *t = n->out[0], *apart = n->in[0];
	const struct node *add = apart->maker;
	if (!node_is(add, "Add") || t->rank != 4 || apart->rank != 5 ||
		memcmp(t->dim + 1, apart->dim + 2, 3 * sizeof t->dim[0]) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		const struct node *split = add->in[i]->maker;
		struct tensor *m = add->in[1 - i];
		int64_t dim[4] = {1, 1, 1, 1};
		if (!split || !(split->op->traits & OP_VIEW) ||
			!tensor_same_shape(split->in[0], t) ||
			!tensor_same_shape(split->out[0], apart) ||
			(m->rank == 5 && m->dim[0] != 1) || m->rank > 5)
			continue;
		const int lead = m->rank == 5;
		for (int k = 3, a = m->rank - 1; a >= lead; k--, a--)
			dim[k] = m->dim[a];
		m = graph_reshape(g, m, 4, dim);
		return m && add_term(s, m, false) && read_from(g, split->in[0], s, depth);
	}
	return false;
}

static bool read_from(struct graph *g, struct tensor *t, struct scores *s, int depth)
{
	t = match_source(t);
	const struct node *n = t->maker;
	if (!n || depth == 0)
		return false;
	const char *op = n->op->name;
	if (!strcmp(op, "MatMul")) {
		s->product = n;
		return true;
	}
	if (!strcmp(op, "Add"))
		return read_add(g, n, s, depth - 1);
	if (!strcmp(op, "Where"))
		return read_where(g, n, s, depth - 1);
	if (!strcmp(op, "Mul") || !strcmp(op, "Div"))
		return read_scale(g, n, s, depth - 1);
	return (n->op->traits & OP_VIEW) && read_windows(g, n, s, depth - 1);
}

bool scores_read(struct graph *g, struct tensor *t, struct scores *s)
{
	*s = (struct scores){.scale = 1};
	return read_from(g, t, s, 12);
}

/* --- Masks --- */

/* A term of the scores' shape [leading axes..., queries, keys] in four axes. */
static struct tensor *four_axes(struct graph *g, struct tensor *t, int rank, const int64_t size[4])
{
	int64_t dim[4] = {1, 1, 1, 1}, lead = 1;
	const int batch = rank - 3; /* leading axes that are one batch axis here */
	for (int k = 3, a = t->rank - 1; a >= 0 && k > 0; k--, a--)
		dim[k] = t->dim[a];
	if (rank == 3) { /* [batch and head, queries, keys] */
		if (dim[1] != 1) {
			dim[0] = size[0];
			dim[1] = size[1];
		}
		return graph_reshape(g, t, 4, dim);
	}
	for (int a = 0; a < t->rank - 3; a++) {
		/* of several batch axes the inner ones may be there and the outer ones not */
		if (batch > 1 && lead > 1 && t->dim[a] == 1)
			return NULL;
		lead *= t->dim[a];
	}
	if (size[0] % max64(lead, 1))
		return NULL;
	dim[0] = lead;
	return graph_reshape(g, t, 4, dim);
}

enum cell { CELL_SEEN, CELL_MASKED, CELL_OTHER };

static enum cell cell_at(const struct term *t, int64_t i)
{
	if (t->t->dtype == DT_BOOL)
		return (tensor_int(t->t, i) != 0) != t->negate ? CELL_SEEN : CELL_MASKED;
	const double v = tensor_real(t->t, i);
	return v == 0 ? CELL_SEEN : v <= -1e30 ? CELL_MASKED : CELL_OTHER;
}

/* A known term that masks all but a band around the diagonal, the same for all heads, of which
 * every row has a part. (A
 * number below -1e30 leaves nothing of any score it is added to.) */
static bool is_band(const struct term *t, const int64_t size[4], struct mask *m)
{
	const int64_t tq = size[2], tk = size[3];
	int64_t lower = -tq, upper = tk;
	const int r = t->t->rank;
	if (t->t->role != TR_CONSTANT || r < 2 || t->t->dim[r - 2] != tq || t->t->dim[r - 1] != tk)
		return false;
	for (int64_t i = 0; i < tq; i++) {
		int64_t first = 0, last = tk - 1;
		while (first < tk && cell_at(t, i * tk + first) != CELL_SEEN)
			first++;
		while (last > first && cell_at(t, i * tk + last) != CELL_SEEN)
			last--;
		if (first == tk)
			return false;
		lower = first > 0 ? max64(lower, first - i) : lower;
		upper = last < tk - 1 ? min64(upper, last - i) : upper;
	}
	for (int64_t i = 0; i < t->t->numel; i++) {
		const int64_t ahead = i % tk - i / tk % tq;
		if (cell_at(t, i) != (ahead >= lower && ahead <= upper ? CELL_SEEN : CELL_MASKED))
			return false;
	}
	*m = (struct mask){.lower = lower, .upper = upper, .bounded = true};
	return true;
}

/* Where(c, 0, -infinity), added, is a condition. */
static struct term as_condition(struct term t)
{
	const struct node *n = t.t->maker;
	double yes, no;
	if (t.t->dtype == DT_BOOL || !node_is(n, "Where") || !match_uniform(n->in[1], &yes) ||
		!match_uniform(n->in[2], &no))
		return t;
	if (yes == 0 && no == -INFINITY)
		return (struct term){n->in[0], false};
	if (yes == -INFINITY && no == 0)
		return (struct term){n->in[0], true};
	return t;
}

/* a and b of four axes have a common shape. */
static bool meet(const struct tensor *a, const struct tensor *b)
{
	for (int i = 0; i < 4; i++)
		if (a->dim[i] != b->dim[i] && a->dim[i] != 1 && b->dim[i] != 1)
			return false;
	return true;
}

bool scores_mask(struct graph *g, const struct scores *s, const int64_t size[4], struct mask *m)
{
	struct tensor *real = NULL, *boolean = NULL;
	*m = (struct mask){0};
	for (int i = 0; i < s->nterm; i++) {
		const struct term t = as_condition(s->term[i]);
		if (!m->bounded && is_band(&t, size, m))
			continue;
		struct tensor *x = four_axes(g, t.t, s->product->out[0]->rank, size);
		if (x && t.negate)
			x = OP1(g, "Not", x);
		struct tensor **sum = x && x->dtype == DT_BOOL ? &boolean : &real;
		if (!x || (*sum && !meet(*sum, x)))
			return false;
		*sum = !*sum ? x : OP2(g, sum == &real ? "Add" : "And", *sum, x);
		if (!*sum)
			return false;
	}
	if (real && boolean && !meet(real, boolean))
		return false;
	m->t = real && boolean ? OP3(g, "Where", boolean, real, graph_scalar(g, -INFINITY))
	       : real          ? real
			       : boolean;
	return g->failed == ST_OK;
}
