/* Reductions of known inputs, in double precision or whole numbers. */
#include "ops/reduce/reduce_op.h"

struct reduce_shape reduce_shape_of(const struct node *n)
{
	const struct tensor *x = n->in[0];
	const struct attr *axes = node_attr(n, "axes");
	struct reduce_shape s = {.count = 1};
	int64_t stride = 1;
	struct reduce_group back[RANK_MAX];
	int m = 0;
	for (int i = x->rank - 1; i >= 0; i--) {
		bool reduced = false;
		for (int k = 0; k < axes->n; k++)
			reduced |= axes->ints[k] == i;
		if (reduced)
			s.count *= x->dim[i];
		if (x->dim[i] != 1 && m && back[m - 1].reduced == reduced)
			back[m - 1].dim *= x->dim[i];
		else if (x->dim[i] != 1)
			back[m++] = (struct reduce_group){x->dim[i], stride, reduced};
		stride *= x->dim[i];
	}
	for (int i = 0; i < m; i++)
		s.group[i] = back[m - 1 - i];
	s.n = m;
	return s;
}

/* Where element e of the input goes in the output. */
static int64_t place(const struct reduce_shape *s, int64_t e)
{
	int64_t at = 0;
	for (int k = 0; k < s->n; k++)
		if (!s->group[k].reduced)
			at = at * s->group[k].dim + e / s->group[k].stride % s->group[k].dim;
	return at;
}

static double term_real(enum reduce_term term, double x, double other)
{
	switch (term) {
	case TERM_SELF:
		return x;
	case TERM_ABSOLUTE:
		return fabs(x);
	case TERM_SQUARE:
		return x * x;
	case TERM_EXP:
		return exp(x - other);
	case TERM_EQUAL:
		return x == other;
	case TERM_ZERO:
		return x == 0;
	case TERM_NONZERO:
		return x == 0 ? 1 : x;
	}
	return x;
}

static double join_real(enum reduce_join join, double sum, double v)
{
	switch (join) {
	case JOIN_SUM:
		return sum + v;
	case JOIN_PRODUCT:
		return sum * v;
	case JOIN_MAX:
		return v > sum || v != v ? v : sum;
	case JOIN_MIN:
		return v < sum || v != v ? v : sum;
	}
	return sum;
}

static enum status fold_real(struct graph *g, const struct node *n, void *const *out)
{
	static const double start[] = {0, 1, -INFINITY, INFINITY};
	const struct tensor *x = n->in[0], *y = n->out[0];
	const struct reduce_kind *k = reduce_kind_of(n);
	const struct reduce_shape s = reduce_shape_of(n);
	double *sum = ARENA_ARRAY(g->arena, double, y->numel);
	if (!sum)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < y->numel; i++)
		sum[i] = start[k->join];
	for (int64_t e = 0; e < x->numel; e++) {
		int64_t at = place(&s, e);
		double other = reduce_has_other(k) ? tensor_real(n->in[1], at) : 0;
		sum[at] = join_real(k->join, sum[at], term_real(k->term, tensor_real(x, e), other));
	}
	for (int64_t i = 0; i < y->numel; i++) {
		double v = k->mean && s.count ? sum[i] / (double)s.count : sum[i];
		value_set(y->dtype, out[0], i, k->root ? sqrt(v) : v);
	}
	return ST_OK;
}

/* Whole numbers, exactly; sums and products wrap round as in NumPy. */
static int64_t join_whole(enum reduce_join join, int64_t sum, int64_t v)
{
	switch (join) {
	case JOIN_SUM:
		return (int64_t)((uint64_t)sum + (uint64_t)v);
	case JOIN_PRODUCT:
		return (int64_t)((uint64_t)sum * (uint64_t)v);
	case JOIN_MAX:
		return v > sum ? v : sum;
	case JOIN_MIN:
		return v < sum ? v : sum;
	}
	return sum;
}

static enum status fold_whole(struct graph *g, const struct node *n, void *const *out)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const struct reduce_kind *k = reduce_kind_of(n);
	const struct reduce_shape s = reduce_shape_of(n);
	const int64_t start[] = {
		0, 1, x->dtype == DT_BOOL ? 0 : INT64_MIN, x->dtype == DT_BOOL ? 1 : INT64_MAX};
	int64_t *sum = ARENA_ARRAY(g->arena, int64_t, y->numel);
	if (!sum)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < y->numel; i++)
		sum[i] = start[k->join];
	for (int64_t e = 0; e < x->numel; e++) {
		int64_t at = place(&s, e), v = tensor_int(x, e);
		if (k->term == TERM_SQUARE)
			v = join_whole(JOIN_PRODUCT, v, v);
		else if (k->term == TERM_ABSOLUTE)
			v = v < 0 ? (int64_t)(0 - (uint64_t)v) : v;
		sum[at] = join_whole(k->join, sum[at], v);
	}
	for (int64_t i = 0; i < y->numel; i++) {
		int64_t v = k->mean && s.count ? sum[i] / s.count : sum[i];
		v = k->root ? real_to_int(sqrt((double)v)) : v;
		if (y->dtype == DT_BOOL)
			((unsigned char *)out[0])[i] = v != 0;
		else
			((int64_t *)out[0])[i] = v;
	}
	return ST_OK;
}

enum status reduce_fold(struct graph *g, const struct node *n, void *const *out)
{
	return dtype_is_real(n->in[0]->dtype) ? fold_real(g, n, out) : fold_whole(g, n, out);
}

enum status reduce_log_fold(struct graph *g, const struct node *n, void *const *out)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const struct reduce_shape s = reduce_shape_of(n);
	const bool exponential = n->op->variant == LOG_SUM_EXP;
	double *top = ARENA_ARRAY(g->arena, double, y->numel);
	double *sum = ARENA_ARRAY(g->arena, double, y->numel);
	if (!sum || !top)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < y->numel; i++)
		top[i] = exponential ? -INFINITY : 0;
	for (int64_t e = 0; exponential && e < x->numel; e++)
		top[place(&s, e)] = fmax(top[place(&s, e)], tensor_real(x, e));
	for (int64_t e = 0; e < x->numel; e++) {
		int64_t at = place(&s, e);
		double v = tensor_real(x, e);
		top[at] = isfinite(top[at]) ? top[at] : 0;
		sum[at] += exponential ? exp(v - top[at]) : v;
	}
	for (int64_t i = 0; i < y->numel; i++)
		value_set(y->dtype, out[0], i, log(sum[i]) + (isfinite(top[i]) ? top[i] : 0));
	return ST_OK;
}
