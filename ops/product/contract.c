/* Einsum brought down to transpositions, reshapes, sums and batched matrix products, whose
 * gradients are its own. Operands meet two by two, the cheapest pair first. */
#include "ops/product/einsum_op.h"

static bool same(const struct term *a, const struct term *b)
{
	return a->n == b->n && memcmp(a->label, b->label, (size_t)a->n * sizeof *a->label) == 0;
}

static void append(struct term *t, const struct term *more)
{
	for (int i = 0; i < more->n && t->n < RANK_MAX; i++)
		t->label[t->n++] = more->label[i];
}

/* A tensor and what its axes are. */
struct part {
	struct tensor *t;
	struct term l;
};

struct work {
	struct graph *g;
	const struct node *node;
	const struct equation *q;
	int n;
	struct part *part;
};

static int64_t elements(const struct work *w, const struct term *t)
{
	int64_t p = 1;
	for (int i = 0; i < t->n; i++)
		if (!size_mul(p, w->q->size[t->label[i]], &p))
			return INT64_MAX; /* no shape: what is made of it is refused */
	return p;
}

/* `p` with its axes in the order of `to`. */
static struct tensor *arranged(struct work *w, const struct part *p, const struct term *to)
{
	int64_t perm[RANK_MAX] = {0};
	if (same(&p->l, to))
		return p->t;
	for (int i = 0; i < to->n; i++)
		for (int k = 0; k < p->l.n; k++)
			if (p->l.label[k] == to->label[i])
				perm[i] = k;
	const struct attr attr = data_ints(w->g, "perm", to->n, perm);
	return graph_op(w->g, "Transpose", 1, &p->t, 1, &attr);
}

static struct tensor *shaped(struct work *w, struct tensor *t, const struct term *l)
{
	int64_t dim[RANK_MAX];
	for (int i = 0; i < l->n; i++)
		dim[i] = w->q->size[l->label[i]];
	return graph_reshape(w->g, t, l->n, dim);
}

/* Axes of size 1 go: what they stand for is as well left out. */
static void drop_ones(struct work *w, struct part *p)
{
	struct term l = {0};
	int64_t dim[RANK_MAX];
	for (int i = 0; i < p->l.n; i++)
		if (p->t->dim[i] != 1) {
			dim[l.n] = p->t->dim[i];
			l.label[l.n++] = p->l.label[i];
		}
	if (l.n != p->l.n)
		p->t = graph_reshape(w->g, p->t, l.n, dim);
	p->l = l;
}

/* Axes i and k of one label, size n, become their diagonal: as one axis of size n * n, every
 * (n + 1)-st element of it. */
static void take_diagonal(struct work *w, struct part *p, int i, int k)
{
	struct term l = {0};
	int64_t perm[RANK_MAX], dim[RANK_MAX], n = p->t->dim[i], start = 0, end = n * n;
	int64_t step = n + 1, axis = p->l.n - 2;
	for (int m = 0; m < p->l.n; m++)
		if (m != i && m != k) {
			dim[l.n] = p->t->dim[m];
			perm[l.n] = m;
			l.label[l.n++] = p->l.label[m];
		}
	perm[l.n] = i;
	perm[l.n + 1] = k;
	dim[l.n] = n * n;
	l.label[l.n++] = p->l.label[i];
	const struct attr order = data_ints(w->g, "perm", l.n + 1, perm);
	const struct attr cut[] = {data_ints(w->g, "starts", 1, &start),
		data_ints(w->g, "ends", 1, &end), data_ints(w->g, "axes", 1, &axis),
		data_ints(w->g, "steps", 1, &step)};
	p->t = graph_op(w->g, "Transpose", 1, &p->t, 1, &order);
	p->t = graph_reshape(w->g, p->t, l.n, dim);
	p->t = graph_op(w->g, "Slice", 1, &p->t, 4, cut);
	p->l = l;
}

static void take_diagonals(struct work *w, struct part *p)
{
	for (int i = 0; p->t && i < p->l.n; i++)
		for (int k = i + 1; p->t && k < p->l.n; k++)
			if (p->l.label[i] == p->l.label[k]) {
				take_diagonal(w, p, i, k);
				i = -1; /* from the start */
				break;
			}
}

static void sum_over(struct work *w, struct part *p, const struct term *gone)
{
	struct term l = {0};
	int64_t axes[RANK_MAX] = {0};
	int count = 0;
	for (int i = 0; i < p->l.n; i++)
		if (term_has(gone, p->l.label[i]))
			axes[count++] = i;
		else
			l.label[l.n++] = p->l.label[i];
	const struct attr attr[] = {data_ints(w->g, "axes", count, axes), ATTR_I("keepdims", 0)};
	if (count)
		p->t = graph_op(
			w->g, op_by_role(w->g->table, ROLE_REDUCE_SUM)->name, 1, &p->t, 2, attr);
	p->l = l;
}

/* A label that the output or a part other than a and b has. */
static bool needed(const struct work *w, int label, int a, int b)
{
	bool need = term_has(&w->q->out, label);
	for (int k = 0; k < w->n; k++)
		need |= k != a && k != b && term_has(&w->part[k].l, label);
	return need;
}

/* The labels of a pair of parts by what becomes of them. */
struct groups {
	struct term batch, sum, a, b; /* in both and kept, in both and summed, in one */
};

static struct groups grouped(const struct work *w, int a, int b, bool order_of_b)
{
	struct groups s = {0};
	const struct term *la = &w->part[a].l, *lb = &w->part[b].l;
	const struct term *first = order_of_b ? lb : la;
	for (int i = 0; i < first->n; i++) {
		int label = first->label[i];
		struct term one = {1, {label}};
		if (term_has(la, label) && term_has(lb, label))
			append(needed(w, label, a, b) ? &s.batch : &s.sum, &one);
	}
	for (int i = 0; i < la->n; i++)
		if (!term_has(lb, la->label[i]))
			append(&s.a, &(struct term){1, {la->label[i]}});
	for (int i = 0; i < lb->n; i++)
		if (!term_has(la, lb->label[i]))
			append(&s.b, &(struct term){1, {lb->label[i]}});
	return s;
}

static struct term joined(
	const struct term *first, const struct term *second, const struct term *third)
{
	struct term t = *first;
	append(&t, second);
	append(&t, third);
	return t;
}

static enum status too_many(const struct work *w)
{
	return w->g->failed = node_fail(w->g, w->node, NULL,
		       "equation '%s': an intermediate result has more than %d axes", w->q->text,
		       RANK_MAX);
}

/* Element by element: b in the order of a's labels, its own after them; then the sums. */
static enum status multiply(struct work *w, int a, int b, const struct groups *s)
{
	if (w->part[b].t->numel > w->part[a].t->numel) {
		const struct groups swapped = {s->batch, s->sum, s->b, s->a};
		if (w->part[a].l.n + s->b.n <= RANK_MAX)
			return multiply(w, b, a, &swapped);
	}
	struct part *pa = &w->part[a], *pb = &w->part[b];
	struct term order = {0};
	int64_t dim_a[RANK_MAX], dim_b[RANK_MAX];
	int rank = pa->l.n + s->b.n;
	if (rank > RANK_MAX)
		return too_many(w);
	for (int i = 0; i < rank; i++) {
		int label = i < pa->l.n ? pa->l.label[i] : s->b.label[i - pa->l.n];
		const bool in_b = term_has(&pb->l, label);
		if (in_b)
			order.label[order.n++] = label;
		dim_a[i] = i < pa->l.n ? w->q->size[label] : 1;
		dim_b[i] = in_b ? w->q->size[label] : 1;
	}
	struct tensor *x = graph_reshape(w->g, pa->t, rank, dim_a);
	struct tensor *y = graph_reshape(w->g, arranged(w, pb, &order), rank, dim_b);
	pa->t = OP2(w->g, op_by_role(w->g->table, ROLE_MUL)->name, x, y);
	append(&pa->l, &s->b);
	sum_over(w, pa, &s->sum);
	/* the result stands in the place of both */
	w->part[a < b ? a : b] = *pa;
	return w->g->failed;
}

/* A way to write a pair as matrix products. */
struct plan {
	int a, b;
	struct groups s;
	struct term la, lb, result; /* the operands' axes in order */
	bool ta, tb;                /* stored transposed */
	int64_t moved;              /* elements that have to be transposed */
};

static struct plan planned(const struct work *w, int a, int b, bool order_of_b)
{
	struct plan p = {.a = a, .b = b, .s = grouped(w, a, b, order_of_b)};
	const struct term *la = &w->part[a].l, *lb = &w->part[b].l;
	const struct term at = joined(&p.s.batch, &p.s.sum, &p.s.a);
	const struct term bt = joined(&p.s.batch, &p.s.b, &p.s.sum);
	p.la = joined(&p.s.batch, &p.s.a, &p.s.sum);
	p.lb = joined(&p.s.batch, &p.s.sum, &p.s.b);
	p.result = joined(&p.s.batch, &p.s.a, &p.s.b);
	p.ta = !same(la, &p.la) && same(la, &at);
	p.tb = !same(lb, &p.lb) && same(lb, &bt);
	if (p.ta)
		p.la = at;
	if (p.tb)
		p.lb = bt;
	p.moved += same(la, &p.la) ? 0 : elements(w, la);
	p.moved += same(lb, &p.lb) ? 0 : elements(w, lb);
	if (w->n == 2) { /* the last pair: the output is next */
		struct term want = {0};
		for (int i = 0; i < w->q->out.n; i++)
			if (term_has(&p.result, w->q->out.label[i]))
				want.label[want.n++] = w->q->out.label[i];
		p.moved += same(&want, &p.result) ? 0 : elements(w, &p.result);
	}
	return p;
}

/* As matrices [batch, m, k] and [batch, k, n], or as stored transposed. */
static enum status matrix_product(struct work *w, const struct plan *p)
{
	const int64_t batch = elements(w, &p->s.batch), m = elements(w, &p->s.a);
	const int64_t n = elements(w, &p->s.b), k = elements(w, &p->s.sum);
	const int64_t da[] = {batch, p->ta ? k : m, p->ta ? m : k};
	const int64_t db[] = {batch, p->tb ? n : k, p->tb ? k : n};
	const bool one = p->s.batch.n == 0;
	const struct attr attr[] = {ATTR_I("transA", p->ta), ATTR_I("transB", p->tb)};
	if (p->s.batch.n + p->s.a.n + p->s.b.n > RANK_MAX)
		return too_many(w);
	struct tensor *in[] = {
		arranged(w, &w->part[p->a], &p->la), arranged(w, &w->part[p->b], &p->lb)};
	in[0] = graph_reshape(w->g, in[0], one ? 2 : 3, da + one);
	in[1] = graph_reshape(w->g, in[1], one ? 2 : 3, db + one);
	struct part *to = &w->part[p->a < p->b ? p->a : p->b];
	to->t = graph_op(w->g, "stint.MatMul", 2, in, 2, attr);
	to->t = shaped(w, to->t, &p->result);
	to->l = p->result;
	return w->g->failed;
}

/* Parts a and b become one. */
static enum status contract(struct work *w, int a, int b)
{
	struct groups s = grouped(w, a, b, false);
	const bool dots = elements(w, &s.a) == 1 && elements(w, &s.b) == 1;
	if (s.sum.n == 0 || dots || w->node->in[0]->dtype == DT_I64) {
		TRY(multiply(w, a, b, &s));
	} else {
		struct plan best = planned(w, a, b, false);
		for (int i = 1; i < 4; i++) {
			const struct plan p = planned(
				w, i & 2 ? b : a, i & 2 ? a : b, (i & 1) != 0);
			if (p.moved < best.moved)
				best = p;
		}
		TRY(matrix_product(w, &best));
	}
	int gone = a < b ? b : a;
	for (int k = gone + 1; k < w->n; k++)
		w->part[k - 1] = w->part[k];
	w->n--;
	return ST_OK;
}

/* The pair of parts with the fewest products; the first of equals. */
static void next_pair(const struct work *w, int *a, int *b)
{
	double least = INFINITY;
	for (int i = 0; i < w->n; i++)
		for (int k = i + 1; k < w->n; k++) {
			double products = (double)elements(w, &w->part[i].l);
			for (int m = 0; m < w->part[k].l.n; m++)
				if (!term_has(&w->part[i].l, w->part[k].l.label[m]))
					products *= (double)w->q->size[w->part[k].l.label[m]];
			if (products < least) {
				least = products;
				*a = i;
				*b = k;
			}
		}
}

/* Diagonals, and the sums over labels that nothing else has. */
static void prepare(struct work *w, int k)
{
	struct term gone = {0};
	if (w->part[k].t)
		take_diagonals(w, &w->part[k]);
	for (int i = 0; i < w->part[k].l.n; i++)
		if (!needed(w, w->part[k].l.label[i], k, k))
			append(&gone, &(struct term){1, {w->part[k].l.label[i]}});
	if (w->part[k].t)
		sum_over(w, &w->part[k], &gone);
}

enum status einsum_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	struct work w = {g, n, n->param, n->nin, ARENA_ARRAY(g->arena, struct part, n->nin)};
	struct term order = {0};
	if (!w.part)
		return diag_nomem(g->diag);
	for (int k = 0; k < n->nin; k++)
		w.part[k] = (struct part){in[k], w.q->in[k]};
	for (int k = 0; k < n->nin && g->failed == ST_OK; k++)
		drop_ones(&w, &w.part[k]);
	for (int k = 0; k < n->nin && g->failed == ST_OK; k++)
		prepare(&w, k);
	while (w.n > 1 && g->failed == ST_OK) {
		int a = 0, b = 1;
		next_pair(&w, &a, &b);
		TRY(contract(&w, a, b));
	}
	if (g->failed != ST_OK)
		return g->failed;
	for (int i = 0; i < w.q->out.n; i++)
		if (term_has(&w.part[0].l, w.q->out.label[i]))
			order.label[order.n++] = w.q->out.label[i];
	out[0] = arranged(&w, &w.part[0], &order);
	out[0] = graph_reshape(g, out[0], n->out[0]->rank, n->out[0]->dim);
	return g->failed;
}
