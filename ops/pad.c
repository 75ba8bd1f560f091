/* A tensor within a larger one: Pad, whose negative sizes cut, and CenterCropPad. Filling with a
 * constant is a copy; the other modes repeat elements of the input, which is picking them axis by
 * axis (Gather). */
#include <inttypes.h>

#include "ops/data.h"

static bool is_constant(const struct node *n)
{
	return !strcmp(node_string(n, "mode", "constant"), "constant");
}

static enum status pad_read(struct graph *g, const struct node *n, int64_t *before, int64_t *after)
{
	const struct tensor *x = n->in[0];
	int np, na;
	const int64_t *pads, *axes;
	TRY(node_ints(g, n, "pads", 1, &np, &pads));
	TRY(node_ints(g, n, "axes", 3, &na, &axes));
	int count = axes ? na : x->rank;
	if (!pads || np != 2 * count || count > x->rank)
		return node_fail(g, n, NULL, "pads must list two sizes for each axis");
	for (int i = 0; i < count; i++) {
		int k;
		TRY(node_axis(g, n, axes ? axes[i] : i, x->rank, &k));
		before[k] = pads[i];
		after[k] = pads[count + i];
		int64_t sum = x->dim[k];
		if (__builtin_add_overflow(sum, before[k], &sum) ||
			__builtin_add_overflow(sum, after[k], &sum) || sum < 0 ||
			before[k] < -x->dim[k] || after[k] < -x->dim[k])
			return node_fail(g, n, NULL, "pads of axis %d are invalid", k);
	}
	return ST_OK;
}

/* The elements of an axis that are left after cutting. */
static int64_t left_of(int64_t dim, int64_t before, int64_t after)
{
	return dim + (before < 0 ? before : 0) + (after < 0 ? after : 0);
}

static enum status check_mode(
	struct graph *g, const struct node *n, const char *mode, const int64_t *pads)
{
	const struct tensor *x = n->in[0];
	if (!strcmp(mode, "constant"))
		return ST_OK;
	if (strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
		return node_fail(g, n, NULL, "mode '%s' is not supported", mode);
	for (int k = 0; k < x->rank; k++) {
		int64_t before = pads[k], after = pads[x->rank + k];
		if ((before > 0 || after > 0) && left_of(x->dim[k], before, after) <= 0)
			return node_fail(g, n, NULL, "axis %d has no element to pad it with", k);
	}
	return ST_OK;
}

static enum status pad_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *v = n->nin > 2 ? n->in[2] : NULL;
	const char *mode = node_string(n, "mode", "constant");
	int64_t pads[2 * RANK_MAX] = {0}, dim[RANK_MAX], after[RANK_MAX] = {0};
	if (v && (v->role != TR_CONSTANT || v->numel != 1))
		return node_fail(g, n, NULL, "the value to pad with is not a constant scalar");
	TRY(pad_read(g, n, pads, after));
	for (int k = 0; k < x->rank; k++) {
		pads[x->rank + k] = after[k];
		dim[k] = x->dim[k] + pads[k] + after[k];
	}
	TRY(check_mode(g, n, mode, pads));
	struct attr attr[] = {data_ints(g, "pads", 2 * x->rank, pads),
		ATTR_F("value", v ? tensor_real(v, 0) : node_float(n, "value", 0)),
		{.name = "mode", .kind = ATTR_STRING, .s = mode}};
	if (!dtype_is_real(x->dtype))
		attr[1] = ATTR_I("value", v ? tensor_int(v, 0) : node_int(n, "value", 0));
	TRY(data_settle(g, n, 1, 3, attr));
	return data_output(g, n, 0, x->dtype, x->rank, dim);
}

static struct box pad_box(const struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const int64_t *pads = node_attr(n, "pads")->ints;
	struct box b = {.rank = x->rank};
	box_strides(x->rank, x->dim, b.xs);
	box_strides(y->rank, y->dim, b.ys);
	for (int k = 0; k < x->rank; k++) {
		int64_t before = pads[k], after = pads[x->rank + k];
		b.xoff += (before < 0 ? -before : 0) * b.xs[k];
		b.yoff += (before > 0 ? before : 0) * b.ys[k];
		b.dim[k] = left_of(x->dim[k], before, after);
	}
	return b;
}

static int64_t modulo(int64_t a, int64_t n)
{
	return a % n < 0 ? a % n + n : a % n;
}

/* Which of n elements stands at place i, counted from the first of them: as NumPy's pad does it. */
static int64_t source(const struct node *n, int64_t i, int64_t size)
{
	const char mode = node_string(n, "mode", "constant")[0];
	if (mode == 'e')
		return i < 0 ? 0 : i < size ? i : size - 1;
	if (mode == 'w')
		return modulo(i, size);
	if (size == 1)
		return 0;
	int64_t r = modulo(i, 2 * (size - 1));
	return r < size ? r : 2 * (size - 1) - r;
}

/* The element of the input's axis k for place i of the output's. */
static int64_t source_on(const struct node *n, int k, int64_t i)
{
	const struct tensor *x = n->in[0];
	const int64_t *pads = node_attr(n, "pads")->ints;
	int64_t before = pads[k], after = pads[x->rank + k], cut = before < 0 ? -before : 0;
	int64_t first = before > 0 ? before : 0;
	return cut + source(n, i - first, left_of(x->dim[k], before, after));
}

static enum status pad_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *x = n->in[0], *y = n->out[0];
	const size_t size = (size_t)dtype_bytes(y->dtype);
	const struct box b = pad_box(n);
	for (int64_t i = 0; i < y->numel; i++) {
		int64_t rest = i, from = 0;
		if (y->dtype == DT_I64)
			((int64_t *)out[0])[i] = node_int(n, "value", 0);
		else
			value_set(y->dtype, out[0], i, node_float(n, "value", 0));
		for (int k = y->rank - 1; k >= 0 && !is_constant(n); k--) {
			from += source_on(n, k, rest % y->dim[k]) * b.xs[k];
			rest /= y->dim[k];
		}
		if (!is_constant(n))
			memcpy((char *)out[0] + (size_t)i * size,
				(const char *)x->data + (size_t)from * size, size);
	}
	if (is_constant(n))
		box_run(&b, size, out[0], x->data);
	return ST_OK;
}

/* Axis k picked as the mode says. */
static struct tensor *picked(struct graph *g, const struct node *n, struct tensor *x, int k)
{
	int64_t size = n->out[0]->dim[k];
	int64_t *at = ARENA_ARRAY(g->arena, int64_t, size);
	const struct attr axis = ATTR_I("axis", k);
	if (!at) {
		diag_nomem(g->diag);
		return NULL;
	}
	for (int64_t i = 0; i < size; i++)
		at[i] = source_on(n, k, i);
	struct tensor *list = graph_constant(g, "places", DT_I64, 1, &size, at);
	return graph_op(g, "Gather", 2, (struct tensor *[]){x, list}, 1, &axis);
}

static enum status pad_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	if (tensor_same_shape(n->in[0], n->out[0]) && is_constant(n)) {
		bool moved = false;
		for (int k = 0; k < n->in[0]->rank; k++)
			moved |= node_attr(n, "pads")->ints[k] != 0;
		return moved ? data_lower_same(g, n, in, out) : data_lower_to_view(g, n, in, out);
	}
	if (is_constant(n))
		return data_lower_same(g, n, in, out);
	/* the last axis first: the others then copy whole rows */
	out[0] = in[0];
	for (int k = n->in[0]->rank - 1; k >= 0 && out[0]; k--) {
		const int64_t *pads = node_attr(n, "pads")->ints;
		if (pads[k] || pads[n->in[0]->rank + k])
			out[0] = picked(g, n, out[0], k);
	}
	return out[0] ? g->failed : g->failed != ST_OK ? g->failed : ST_INTERNAL;
}

/* Padding the other way round cuts. */
static enum status pad_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct attr *pads = node_attr(n, "pads");
	int64_t back[2 * RANK_MAX];
	for (int i = 0; i < pads->n; i++)
		back[i] = -pads->ints[i];
	const struct attr attr = data_ints(g, "pads", pads->n, back);
	if (want[0])
		dx[0] = graph_op(g, "Pad", 1, dy, 1, &attr);
	return g->failed;
}

static enum status pad_emit(struct emit *e, const struct node *n)
{
	const struct tensor *y = n->out[0];
	const struct box b = pad_box(n);
	double value = node_float(n, "value", 0);
	char buf[40];
	bool covered = true;
	for (int k = 0; k < b.rank; k++)
		covered &= b.dim[k] == y->dim[k];
	if (!covered && value == 0)
		zero_emit(e, y->numel, "y0");
	else if (!covered) {
		emit_parallel(e, (double)y->numel, 1);
		emit(e, "\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n", y->numel);
		if (y->dtype == DT_I64)
			emit(e, "\t\ty0[i] = %" PRId64 ";\n", node_int(n, "value", 0));
		else if (y->dtype == DT_BOOL)
			emit(e, "\t\ty0[i] = 1;\n");
		else
			emit(e, "\t\ty0[i] = %s;\n", emit_real(e, value, buf));
	}
	box_emit(e, &b, emit_type(y), "y0", "x0");
	return ST_OK;
}

/* --- CenterCropPad: a Pad of the same size on both sides --- */

static enum status center_pads(struct graph *g, const struct node *n, int64_t *pads)
{
	const struct tensor *x = n->in[0];
	int len, na;
	const int64_t *size, *axes;
	TRY(node_ints(g, n, "shape", 1, &len, &size));
	TRY(node_ints(g, n, "axes", -1, &na, &axes));
	if (!size || len != (axes ? na : x->rank))
		return node_fail(g, n, NULL, "needs a size for each axis");
	for (int i = 0; i < len; i++) {
		int k;
		TRY(node_axis(g, n, axes ? axes[i] : i, x->rank, &k));
		if (size[i] < 0)
			return node_fail(g, n, NULL, "size %" PRId64 " is negative", size[i]);
		pads[k] = (size[i] - x->dim[k]) / 2;
		pads[x->rank + k] = size[i] - x->dim[k] - pads[k];
	}
	return ST_OK;
}

static enum status center_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t pads[2 * RANK_MAX] = {0}, dim[RANK_MAX];
	TRY(center_pads(g, n, pads));
	for (int k = 0; k < x->rank; k++)
		dim[k] = x->dim[k] + pads[k] + pads[x->rank + k];
	const struct attr attr = data_ints(g, "pads", 2 * x->rank, pads);
	TRY(data_settle(g, n, 1, 1, &attr));
	return data_output(g, n, 0, x->dtype, x->rank, dim);
}

static enum status center_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	out[0] = graph_op(g, "Pad", 1, in, n->nattr, n->attr);
	return g->failed;
}

const struct op_def ops_pad[] = {
	{.name = "Pad",
		.since = 2,
		.min_in = 1,
		.max_in = 4,
		.infer = pad_infer,
		.fold = pad_fold,
		.lower = pad_lower,
		.grad = pad_grad,
		.cost = data_move_cost,
		.emit_c = pad_emit,
		.example = EXAMPLES({.in = "a,b =[1,0,2,1]"}, {.in = "2,5 =[1,-1,-1,0] =f0.5"},
			{.in = "2,3,4 =[1,2] - =[-1]", .attr = "mode=constant"},
			{.in = "a,b,C,D =[0,0,2,1,0,0,3,4]", .attr = "mode=reflect"},
			{.in = "a,b,c =[0,3,1,1,0,2]", .attr = "mode=edge"},
			{.in = "a,b,c =[0,3,1,1,0,2]", .attr = "mode=wrap"},
			{.in = "2,3 =[7,5] - =[1]", .attr = "mode=reflect"},
			{.in = "2,7 =[-2,3] - =[1]", .attr = "mode=reflect"},
			{.in = "2,1 =[0,2,1,0]", .attr = "mode=reflect"},
			{.in = "2,3:i64<9 =[1,0,2,1] =123456789012"},
			{.in = "2,3:i64<9 =[1,0,2,1]", .attr = "mode=wrap"},
			{.in = "2,3:bool =[1,0,2,1] =1"}, {.in = "2,3:bool =[1,0,2,1]"})},
	{.name = "CenterCropPad",
		.since = 18,
		.min_in = 1,
		.max_in = 2,
		.infer = center_infer,
		.fold = data_fold_lowered,
		.lower = center_lower,
		.example = EXAMPLES({.in = "5,6,3 =[4,9,3]"}, {.in = "5,6 =[8]", .attr = "axes=-1"},
			{.in = "a,B =[4,4]"})},
	{.name = NULL},
};
