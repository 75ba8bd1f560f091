/* What is chosen by values: Compress by a condition, NonZero, Unique. The sizes of their outputs
 * follow from values, so these have to be known at compile time. */
#include <inttypes.h>
#include <stdlib.h>

#include "ops/data.h"

static enum status data_dependent(struct graph *g, const struct node *n, const struct tensor *t)
{
	return node_fail(g, n,
		"choose with Where or a product with the mask, which keep the shape; TopK and "
		"GatherElements pick a fixed number of elements",
		"the size of its output depends on the values of '%s', which are not known at "
		"compile time",
		t->name);
}

/* --- Compress --- */

static enum status compress_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *keep = n->in[1];
	const struct attr *flat = node_attr(n, "axis");
	int axis = 0, rank = flat ? x->rank : 1;
	int64_t dim[RANK_MAX] = {x->numel}, count = 0;
	if (keep->role != TR_CONSTANT)
		return data_dependent(g, n, keep);
	if (flat) {
		TRY(node_axis(g, n, flat->i, x->rank, &axis));
		memcpy(dim, x->dim, sizeof dim);
	}
	if (keep->rank != 1 || keep->numel > dim[axis])
		return node_fail(g, n, NULL, "the condition has another length than axis %d", axis);
	int64_t *picks = ARENA_ARRAY(g->arena, int64_t, keep->numel);
	if (!picks)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < keep->numel; i++)
		if (tensor_real(keep, i) != 0)
			picks[count++] = i;
	dim[axis] = count;
	n->param = graph_ints(g, (int)count, picks);
	return n->param ? data_output(g, n, 0, x->dtype, rank, dim) : g->failed;
}

/* Its picks are one Gather. */
static enum status compress_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct tensor *picks = n->param;
	const struct attr axis = ATTR_I("axis", node_int(n, "axis", 0));
	struct tensor *x = in[0];
	if (!node_attr(n, "axis"))
		x = graph_reshape(g, x, 1, &in[0]->numel);
	out[0] = graph_op(g, "Gather", 2,
		(struct tensor *[]){x, graph_ints(g, (int)picks->numel, picks->data)}, 1, &axis);
	return g->failed;
}

static enum status compress_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *x = n->in[0], *picks = n->param;
	const bool flat = !node_attr(n, "axis");
	int64_t axis = node_int(n, "axis", 0), inner = 1, size = x->numel;
	char *to = out[0];
	if (!flat) {
		axis += axis < 0 ? x->rank : 0;
		size = x->dim[axis];
		for (int i = (int)axis + 1; i < x->rank; i++)
			inner *= x->dim[i];
	}
	size_t row = (size_t)(inner * dtype_bytes(x->dtype));
	for (int64_t o = 0; x->numel && o < x->numel / (size * inner); o++)
		for (int64_t m = 0; m < picks->numel; m++, to += row)
			memcpy(to,
				(const char *)x->data +
					(size_t)(o * size + tensor_int(picks, m)) * row,
				row);
	return ST_OK;
}

/* --- NonZero --- */

static enum status nonzero_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t count = 0, k = 0;
	if (x->role != TR_CONSTANT)
		return data_dependent(g, n, x);
	for (int64_t i = 0; i < x->numel; i++)
		count += tensor_real(x, i) != 0;
	const int64_t rows = x->rank ? x->rank : 1;
	int64_t *at = graph_known(g, n, rows * count, sizeof *at);
	if (!at)
		return g->failed;
	for (int64_t i = 0; i < x->numel; i++) {
		int64_t rest = i;
		if (tensor_real(x, i) == 0)
			continue;
		for (int d = x->rank - 1; d >= 0; d--) {
			at[d * count + k] = rest % x->dim[d];
			rest /= x->dim[d];
		}
		k++;
	}
	n->out[0] = graph_constant(g, "", DT_I64, 2, (int64_t[]){rows, count}, at);
	return n->out[0] ? ST_OK : g->failed;
}

/* --- Unique --- */

/* Item i of n: the elements [.., i, ..] of data seen as [outer, n, inner]. */
struct items {
	const struct tensor *x;
	int64_t outer, n, inner;
};
struct item {
	const struct items *of;
	int64_t i;
};

static int compare_values(const struct item *a, const struct item *b)
{
	const struct items *s = a->of;
	for (int64_t o = 0; o < s->outer; o++)
		for (int64_t j = 0; j < s->inner; j++) {
			int64_t p = (o * s->n + a->i) * s->inner + j;
			int64_t q = (o * s->n + b->i) * s->inner + j;
			int64_t u = tensor_int(s->x, p), v = tensor_int(s->x, q);
			double ru = tensor_real(s->x, p), rv = tensor_real(s->x, q);
			if (s->x->dtype == DT_I64 ? u != v : ru != rv)
				return (s->x->dtype == DT_I64 ? u < v : ru < rv) ? -1 : 1;
		}
	return 0;
}

static int by_place(const void *x, const void *y)
{
	const struct item *a = x, *b = y;
	return (a->i > b->i) - (a->i < b->i);
}

static int by_value(const void *x, const void *y)
{
	int c = compare_values(x, y);
	return c ? c : by_place(x, y);
}

/* The first items of their kinds, `kinds` of them in order, and the kind of each item. */
static enum status find_kinds(struct graph *g, const struct node *n, const struct items *s,
	struct item **first, int64_t *kinds, int64_t **kind)
{
	TRY(graph_known_work(g, n, 8 * (double)s->x->numel * log2((double)s->n + 2)));
	struct item *all = ARENA_ARRAY(g->arena, struct item, s->n);
	int64_t *kind_of_first = ARENA_ARRAY(g->arena, int64_t, s->n);
	*first = ARENA_ARRAY(g->arena, struct item, s->n);
	*kind = ARENA_ARRAY(g->arena, int64_t, s->n);
	if (!all || !kind_of_first || !*first || !*kind)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < s->n; i++)
		all[i] = (struct item){s, i};
	qsort(all, (size_t)s->n, sizeof *all, by_value);
	*kinds = 0;
	for (int64_t i = 0; i < s->n; i++) {
		if (i == 0 || compare_values(&all[i - 1], &all[i]) != 0)
			(*first)[(*kinds)++] = all[i];
		(*kind)[all[i].i] = (*first)[*kinds - 1].i; /* for now: its first item */
	}
	if (!node_int(n, "sorted", 1))
		qsort(*first, (size_t)*kinds, sizeof **first, by_place);
	for (int64_t k = 0; k < *kinds; k++)
		kind_of_first[(*first)[k].i] = k;
	for (int64_t i = 0; i < s->n; i++)
		(*kind)[i] = kind_of_first[(*kind)[i]];
	return ST_OK;
}

static enum status int_output(
	struct graph *g, struct node *n, int k, int64_t count, const int64_t *v)
{
	if (k < n->nout)
		n->out[k] = graph_constant(g, "", DT_I64, 1, &count, v);
	return k >= n->nout || n->out[k] ? ST_OK : g->failed;
}

static enum status unique_values(
	struct graph *g, struct node *n, const struct items *s, const struct item *first, int64_t m)
{
	const struct tensor *x = n->in[0];
	const struct attr *a = node_attr(n, "axis");
	const size_t row = (size_t)(s->inner * dtype_bytes(x->dtype));
	int64_t dim[RANK_MAX];
	memcpy(dim, x->dim, sizeof dim);
	dim[a ? (a->i < 0 ? a->i + x->rank : a->i) : 0] = m;
	char *data = arena_alloc(g->arena, (size_t)(s->outer * m), row);
	if (!data)
		return diag_nomem(g->diag);
	for (int64_t o = 0; o < s->outer; o++)
		for (int64_t k = 0; k < m; k++)
			memcpy(data + (size_t)(o * m + k) * row,
				(const char *)x->data + (size_t)(o * s->n + first[k].i) * row, row);
	n->out[0] = graph_constant(g, "", x->dtype, a ? x->rank : 1, dim, data);
	return n->out[0] ? ST_OK : g->failed;
}

static enum status unique_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	const struct attr *a = node_attr(n, "axis");
	struct items s = {x, 1, x->numel, 1};
	struct item *first;
	int axis;
	int64_t kinds = 0, *kind;
	if (x->role != TR_CONSTANT)
		return data_dependent(g, n, x);
	if (a) {
		TRY(node_axis(g, n, a->i, x->rank, &axis));
		s.n = x->dim[axis];
		for (int i = 0; i < x->rank; i++)
			*(i < axis ? &s.outer : &s.inner) *= i == axis ? 1 : x->dim[i];
	}
	TRY(find_kinds(g, n, &s, &first, &kinds, &kind));
	TRY(unique_values(g, n, &s, first, kinds));
	int64_t *place = ARENA_ARRAY(g->arena, int64_t, kinds);
	int64_t *count = ARENA_ARRAY(g->arena, int64_t, kinds);
	if (!place || !count)
		return diag_nomem(g->diag);
	for (int64_t k = 0; k < kinds; k++)
		place[k] = first[k].i;
	for (int64_t i = 0; i < s.n; i++)
		count[kind[i]]++;
	TRY(int_output(g, n, 1, kinds, place));
	TRY(int_output(g, n, 2, s.n, kind));
	return int_output(g, n, 3, kinds, count);
}

const struct op_def ops_select[] = {
	{.name = "Compress",
		.since = 9,
		.min_in = 2,
		.infer = compress_infer,
		.fold = compress_fold,
		.lower = compress_lower,
		.example = EXAMPLES({.in = "a,4,b =[1,0,0,1]", .attr = "axis=1"},
			{.in = "3,4 =[0,1,0,1,1]"}, {.in = "3,4 =[0,1]", .attr = "axis=-2"},
			{.in = "3,4 =[0,0]", .attr = "axis=0"}, {.in = "4:i64<9 =[0,1,1]"})},
	{.name = "NonZero",
		.since = 9,
		.min_in = 1,
		.traits = OP_STOP,
		.infer = nonzero_infer,
		.example = EXAMPLES({.in = "=[3,0,0,4]"}, {.in = "=[0]"})},
	{.name = "Unique",
		.since = 11,
		.min_in = 1,
		.min_out = 1,
		.max_out = 4,
		.traits = OP_STOP,
		.infer = unique_infer,
		.example = EXAMPLES({.in = "=[2,1,1,3,4,3]", .nout = 4},
			{.in = "=[2,1,1,3,4,3]", .attr = "sorted=0", .nout = 4})},
	{.name = NULL},
};
