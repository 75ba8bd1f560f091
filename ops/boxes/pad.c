/* Pad: a tensor with a margin of a constant, or of what lies within it, repeated: then an axis is a
 * table of places and the gradient adds up (ops/resample/resample_op.h). Negative pads cut.
 * CenterCropPad. */
#include "graph/blocking.h"
#include "ops/boxes/boxes_op.h"
#include "ops/resample/resample_op.h"

#include <inttypes.h>

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

static const char *const mode_name[] = {"constant", "reflect", "edge", "wrap", NULL};

static enum status pad_mode(struct graph *g, const struct node *n, enum pad_mode *mode)
{
	int k;
	TRY(data_word(g, n, "mode", mode_name[PAD_CONSTANT], mode_name, &k));
	*mode = (enum pad_mode)k;
	return ST_OK;
}

/* From the attribute or input `pads` (opset 1 called it `paddings`), for all axes or those listed.
 */
static enum status pad_read(struct graph *g, const struct node *n, int64_t *before, int64_t *after)
{
	const struct tensor *x = n->in[0];
	int np, na;
	const int64_t *pads, *axes;
	TRY(node_ints(g, n, node_attr(n, "paddings") ? "paddings" : "pads", 1, &np, &pads));
	TRY(node_ints(g, n, "axes", 3, &na, &axes));
	int count = axes ? na : x->rank;
	if ((!pads && count > 0) || np != 2 * count || count > x->rank)
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

/* Where it leaves the axis alone. */
static bool pad_apart(const struct node *n, int axis, const struct lower_options *o)
{
	int64_t before[RANK_MAX] = {0}, after[RANK_MAX] = {0};
	(void)o;
	return axis >= 0 && pad_read(NULL, n, before, after) == ST_OK && before[axis] == 0 &&
	       after[axis] == 0;
}

static enum status pad_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *v = node_input(n, 2);
	int64_t pads[2 * RANK_MAX] = {0}, dim[RANK_MAX], after[RANK_MAX] = {0};
	enum pad_mode mode;
	if (v && (v->role != TR_CONSTANT || v->numel != 1))
		return node_fail(g, n, NULL, "the value to pad with is not a constant scalar");
	TRY(pad_mode(g, n, &mode));
	TRY(pad_read(g, n, pads, after));
	for (int k = 0; k < x->rank; k++) {
		pads[x->rank + k] = after[k];
		dim[k] = x->dim[k] + pads[k] + after[k];
		if (mode != PAD_CONSTANT && dim[k] > 0 &&
			x->dim[k] + (pads[k] < 0 ? pads[k] : 0) + (after[k] < 0 ? after[k] : 0) < 1)
			return node_fail(g, n, NULL, "axis %d has nothing to repeat", k);
	}
	const struct attr attr[] = {data_ints(g, "pads", 2 * x->rank, pads),
		ATTR_F("value", v ? tensor_real(v, 0) : node_float(n, "value", 0)),
		{.name = "mode", .kind = ATTR_STRING, .s = mode_name[mode]}};
	TRY(data_settle(g, n, 1, 3, attr));
	return data_output(g, n, 0, x->dtype, x->rank, dim);
}

/* --- Constant: the input in the middle --- */

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
		b.dim[k] = x->dim[k] + (before < 0 ? before : 0) + (after < 0 ? after : 0);
	}
	return b;
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
		dx[0] = graph_op(g, n->op->name, 1, dy, 1, &attr);
	return g->failed;
}

static enum status pad_block(struct blocking *b)
{
	const struct node *n = b->n;
	const struct tensor *x = n->in[0];
	const int64_t *pads = node_attr(n, "pads")->ints;
	const int r = x->rank;
	int64_t more[2 * RANK_MAX] = {0}, unit;
	const int axis = blocking_axis(b, r, &unit);
	if (!blocking_has(b, 0) || !blocking_fits(b, n->out[0]) || pads[1] % unit ||
		pads[r + 1] % unit)
		return ST_OK;
	for (int i = 0; i < r; i++) {
		const int to = i == 1 ? axis : i;
		more[to] = pads[i] / (i == 1 ? unit : 1);
		more[r + 1 + to] = pads[r + i] / (i == 1 ? unit : 1);
	}
	const struct attr attr[] = {data_ints(b->g, "pads", 2 * (r + 1), more),
		ATTR_F("value", node_float(n, "value", 0)),
		{.name = "mode", .kind = ATTR_STRING, .s = mode_name[PAD_CONSTANT]}};
	struct tensor *in = blocking_blocked(b, 0);
	in = graph_op(b->g, n->op->name, 1, &in, 3, attr);
	blocking_give(b, 0, in, true);
	return b->g->failed;
}

static enum status pad_emit(struct emit *e, const struct node *n)
{
	const struct box b = pad_box(n);
	return box_inset_call(e, n, &b, node_float(n, "value", 0));
}

static enum status pad_cuda_emit(struct emit *e, const struct node *n)
{
	const struct box b = pad_box(n);
	return node_float(n, "value", 0) == 0 ? box_cuda_inset(e, n, &b) : pad_emit(e, n);
}

/* --- The others: an axis is a table of places --- */

/* What element i of the padded axis shows, where `size` elements begin at `before`. */
static int64_t pad_place(enum pad_mode mode, int64_t i, int64_t before, int64_t size)
{
	int64_t at = i - before;
	if (mode == PAD_EDGE)
		return at < 0 ? 0 : at < size ? at : size - 1;
	/* repeated, or there and back again without showing the ends twice */
	const int64_t period = mode == PAD_WRAP ? size : size > 1 ? 2 * size - 2 : 1;
	at %= period;
	at += at < 0 ? period : 0;
	return at < size ? at : period - at;
}

/* Axis k's places; pads that cut come first. */
static void pad_places(const struct node *n, enum pad_mode mode, int k, int64_t *at)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const int64_t *pads = node_attr(n, "pads")->ints;
	const int64_t before = pads[k], after = pads[x->rank + k];
	const int64_t first = before < 0 ? -before : 0;
	const int64_t size = x->dim[k] - first + (after < 0 ? after : 0);
	for (int64_t i = 0; i < y->dim[k]; i++)
		at[i] = first + pad_place(mode, i, before > 0 ? before : 0, size);
}

static enum status pad_fold_places(
	struct graph *g, const struct node *n, enum pad_mode mode, void *out)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const size_t size = (size_t)dtype_bytes(y->dtype);
	int64_t *at[RANK_MAX], stride[RANK_MAX], i[RANK_MAX] = {0};
	box_strides(x->rank, x->dim, stride);
	for (int k = 0; k < x->rank; k++) {
		at[k] = ARENA_ARRAY(g->arena, int64_t, y->dim[k]);
		if (!at[k])
			return diag_nomem(g->diag);
		pad_places(n, mode, k, at[k]);
	}
	for (int64_t e = 0; e < y->numel; e++) {
		int64_t from = 0;
		for (int k = 0; k < x->rank; k++)
			from += at[k][i[k]] * stride[k];
		memcpy((char *)out + (size_t)e * size, (const char *)x->data + (size_t)from * size,
			size);
		for (int k = x->rank - 1; k >= 0 && ++i[k] == y->dim[k]; k--)
			i[k] = 0;
	}
	return ST_OK;
}

static enum status pad_axis(
	struct graph *g, const struct node *n, enum pad_mode mode, int k, struct resample_axis *a)
{
	const int64_t in = n->in[0]->dim[k], out = n->out[0]->dim[k];
	const int64_t *pads = node_attr(n, "pads")->ints;
	*a = resample_same(in);
	if (pads[k] == 0 && pads[n->in[0]->rank + k] == 0)
		return ST_OK;
	int64_t *at = ARENA_ARRAY(g->arena, int64_t, out);
	if (!at)
		return diag_nomem(g->diag);
	TRY(resample_begin(g, n, in, out, out, a));
	pad_places(n, mode, k, at);
	for (int64_t i = 0; i < out; i++) {
		resample_term(a, at[i], 1);
		resample_row(a);
	}
	resample_end(a);
	return ST_OK;
}

/* Exporters write pads for sizes that need none. */
static bool pads_nothing(const struct node *n)
{
	const struct attr *pads = node_attr(n, "pads");
	for (int i = 0; i < pads->n; i++)
		if (pads->ints[i] != 0)
			return false;
	return true;
}

static enum status pad_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	struct resample r = {.rank = n->in[0]->rank};
	enum pad_mode mode;
	(void)o;
	if (pads_nothing(n))
		return data_lower_to_view(g, n, in, out);
	TRY(pad_mode(g, n, &mode));
	if (mode == PAD_CONSTANT || n->out[0]->numel == 0)
		return data_lower_same(g, n, in, out);
	for (int k = 0; k < r.rank; k++)
		TRY(pad_axis(g, n, mode, k, &r.axis[k]));
	out[0] = resample_build(g, in[0], &r, n->nattr, n->attr);
	return g->failed;
}

static enum status pad_fold(struct graph *g, const struct node *n, void *const *out)
{
	const struct tensor *y = n->out[0];
	enum pad_mode mode;
	TRY(pad_mode(g, n, &mode));
	if (mode != PAD_CONSTANT)
		return pad_fold_places(g, n, mode, out[0]);
	const struct box b = pad_box(n);
	for (int64_t i = 0; i < y->numel; i++)
		value_set(y->dtype, out[0], i, node_float(n, "value", 0));
	box_run(&b, (size_t)dtype_bytes(y->dtype), out[0], n->in[0]->data);
	return ST_OK;
}

/* --- CenterCropPad: pads of either sign --- */

static enum status center_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int count, na;
	const int64_t *size, *axes;
	int64_t dim[RANK_MAX], pads[2 * RANK_MAX] = {0};
	TRY(node_ints(g, n, "shape", 1, &count, &size));
	TRY(node_ints(g, n, "axes", -1, &na, &axes));
	if (!size || count != (axes ? na : x->rank) || count > x->rank)
		return node_fail(g, n, NULL, "shape must list a size for each axis");
	memcpy(dim, x->dim, sizeof dim);
	for (int i = 0; i < count; i++) {
		int k;
		TRY(node_axis(g, n, axes ? axes[i] : i, x->rank, &k));
		if (size[i] < 0 || pads[k] || pads[x->rank + k])
			return node_fail(g, n, NULL, "axis %d is listed twice or has no size", k);
		dim[k] = size[i];
		/* the odd one is at the end */
		const int64_t more = dim[k] - x->dim[k];
		pads[k] = more / 2;
		pads[x->rank + k] = more - pads[k];
	}
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

static const struct op_example center_examples[] = {
	{.in = "a,b,C =[D,3,c]"},
	{.in = "7,6,5 =[4,9]", .attr = "axes=0,-1"},
	{.in = "7,6,5 =[4,3]", .attr = "axes=1,0"},
	{0},
};

static const struct op_example pad_examples[] = {
	{.in = "2,3 =[1,0,2,1]"},
	{.in = "2,5 =[1,-1,-1,0] =f0.5"},
	{.in = "2,3,4 =[1,2] - =[-1]", .attr = "mode=constant"},
	{.in = "a,b,C =[0,a,b,0,c,d] =f2"},
	{.in = "a,b,C,D =[0,0,2,c,0,0,d,3]", .attr = "mode=edge"},
	{.in = "a,b,C,D =[0,0,2,1,0,0,3,4]", .attr = "mode=reflect"},
	{.in = "a,b,C,D =[0,0,2,c,0,0,d,3]", .attr = "mode=wrap"},
	{.in = "2,4,5 =[4,-1] - =[-2]", .attr = "mode=edge"},
	{.in = "2,4,5 =[-1,2,3,-2] - =[1,2]", .attr = "mode=reflect"},
	{.in = "2,4,5 =[-1,2,3,-2] - =[2,1]", .attr = "mode=wrap"},
	{.in = "2,3 =[7,0,9,0]", .attr = "mode=reflect"}, /* there and back more than once */
	{.in = "2,3 =[7,0,9,0]", .attr = "mode=wrap"},
	{.in = "1,3 =[2,1,1,1]", .attr = "mode=reflect"},
	{.in = "2,1,3 =[0,2,1,0,1,0]", .attr = "mode=edge"},
	{.in = "2,3,4 =[0,0,0,0,0,0]", .attr = "mode=reflect"},
	{.in = "3,4:i64<9 =[1,0,0,2] =3"},
	{.in = "3,4:i64<9 =[1,0,0,2]", .attr = "mode=edge"},
	{.in = "2,3,2,3,2 =[0,1,1,0,1,0,1,1,2,1]", .attr = "mode=wrap"},
	{0},
};

const struct op_def ops_pad[] = {
	{.name = "Pad",
		.apart = APART_PASSES,
		.apart_if = pad_apart,
		.since = 1,
		.min_in = 1,
		.max_in = 4,
		.infer = pad_infer,
		.fold = pad_fold,
		.lower = pad_lower,
		.block = pad_block,
		.grad = pad_grad,
		.cost = data_move_cost,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = pad_emit,
		.emit_cuda = pad_cuda_emit,
		.example = pad_examples},
	{.name = "CenterCropPad",
		.since = 18,
		.min_in = 2,
		.infer = center_infer,
		.fold = data_fold_lowered,
		.lower = center_lower,
		.example = center_examples},
	{.name = NULL},
};
