/* Joining and splitting: each is a few boxes copied (ops/data.h), on the host for constants and as
 * C text for the step. */
#include <inttypes.h>

#include "graph/blocking.h"
#include "ops/boxes/boxes_op.h"

/* --- Concat and Split: parts of one tensor along an axis --- */

/* The copy between `part`, which lies at `at` along `axis` of `whole`, and `whole`. */
static struct box part_box(
	const struct tensor *part, const struct tensor *whole, int axis, int64_t at, bool join)
{
	int64_t ps[RANK_MAX], ws[RANK_MAX];
	struct box b = {.rank = part->rank};
	box_strides(part->rank, part->dim, ps);
	box_strides(whole->rank, whole->dim, ws);
	for (int i = 0; i < part->rank; i++) {
		b.dim[i] = part->dim[i];
		b.xs[i] = join ? ps[i] : ws[i];
		b.ys[i] = join ? ws[i] : ps[i];
	}
	*(join ? &b.yoff : &b.xoff) = at * ws[axis];
	return b;
}

static int settled_axis(const struct node *n)
{
	return (int)node_int(n, "axis", 0);
}

static enum status concat_infer(struct graph *g, struct node *n)
{
	int axis, rank = n->in[0] ? n->in[0]->rank : 0;
	int64_t dim[RANK_MAX] = {0}, sum = 0;
	TRY(node_axis(g, n, node_int(n, "axis", 1), rank, &axis));
	for (int i = 0; i < n->nin; i++) {
		const struct tensor *x = n->in[i];
		if (!x)
			return node_fail(g, n, NULL, "input %d is missing", i);
		if (x->rank != rank || x->dtype != n->in[0]->dtype)
			return node_fail(g, n, NULL,
				"input %d ('%s') has another rank or element type than input 0", i,
				x->name);
		for (int k = 0; k < rank; k++)
			if (k != axis && x->dim[k] != n->in[0]->dim[k]) {
				char a[200], b[200];
				return node_fail(g, n, "only the joined axis may differ",
					"inputs %s and %s differ at axis %d",
					tensor_shape_text(n->in[0], a), tensor_shape_text(x, b), k);
			}
		if (!size_add(sum, x->dim[axis], &sum))
			return node_fail(g, n, NULL, "axis %d overflows", axis);
	}
	memcpy(dim, n->in[0]->dim, sizeof dim);
	dim[axis] = sum;
	const struct attr attr = ATTR_I("axis", axis);
	TRY(data_settle(g, n, n->nin, 1, &attr));
	return data_output(g, n, 0, n->in[0]->dtype, rank, dim);
}

static enum status concat_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	int64_t at = 0;
	for (int i = 0; i < n->nin; i++) {
		const struct box b = part_box(n->in[i], n->out[0], settled_axis(n), at, true);
		box_run(&b, (size_t)dtype_bytes(n->out[0]->dtype), out[0], n->in[i]->data);
		at += n->in[i]->dim[settled_axis(n)];
	}
	return ST_OK;
}

/* Bytes of input i that lie together in the output. */
static int64_t part_bytes(const struct node *n, int i)
{
	int64_t bytes = dtype_bytes(n->out[0]->dtype);
	for (int k = settled_axis(n); k < n->out[0]->rank; k++)
		bytes *= n->in[i]->dim[k];
	return bytes;
}

/* Many parts of some length: one loop over the output, rather than one over each. */
static bool concat_in_rows(const struct node *n)
{
	enum { PARTS = 4, BYTES = 256 };
	for (int i = 0; i < n->nin; i++)
		if (part_bytes(n, i) < BYTES)
			return false;
	return n->nin >= PARTS;
}

static enum status concat_emit_rows(struct emit *e, const struct node *n)
{
	enum { PIECE = 65536 }; /* JOIN_PIECE */
	struct call_arg *part = ARENA_ARRAY(e->g->arena, struct call_arg, 3 * n->nin);
	int64_t row = 0;
	if (!part)
		return diag_nomem(e->g->diag);
	for (int i = 0; i < n->nin; i++) {
		part[3 * i] = ARG_X(i);
		part[3 * i + 1] = ARG_SIZE(row);
		part[3 * i + 2] = ARG_SIZE(part_bytes(n, i));
		row += part_bytes(n, i);
	}
	const struct call_table parts = {"struct join_part", "part", n->nin, 3, part};
	return call_kernel(
		e, &(struct kernel_call){.file = "join.h",
			   .function = "join_rows",
			   .turns = tensor_bytes(n->out[0]) / row * ((row + PIECE - 1) / PIECE),
			   .work = (double)n->out[0]->numel,
			   .args = CALL_ARGS(
				   ARG_Y(0), ARG_SIZE(row), ARG_TABLE(&parts), ARG_INT(n->nin))});
}

static enum status concat_boxes(struct emit *e, const struct node *n)
{
	int64_t at = 0;
	struct box_copy *copy = ARENA_ARRAY(e->g->arena, struct box_copy, n->nin);
	if (!copy)
		return diag_nomem(e->g->diag);
	for (int i = 0; i < n->nin; i++) {
		copy[i] = (struct box_copy){
			part_box(n->in[i], n->out[0], settled_axis(n), at, true), ARG_Y(0),
			ARG_X(i)};
		at += n->in[i]->dim[settled_axis(n)];
	}
	return boxes_call(e, n->nin, copy, n->out[0]);
}

static enum status concat_emit(struct emit *e, const struct node *n)
{
	return concat_in_rows(n) ? concat_emit_rows(e, n) : concat_boxes(e, n);
}

static enum status concat_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	int64_t at = 0, axis = settled_axis(n);
	for (int i = 0; i < n->nin; i++) {
		int64_t end = at + n->in[i]->dim[axis];
		const struct attr attr[] = {data_ints(g, "starts", 1, &at),
			data_ints(g, "ends", 1, &end), data_ints(g, "axes", 1, &axis)};
		if (want[i])
			dx[i] = graph_op(g, "Slice", 1, dy, 3, attr);
		at = end;
	}
	return g->failed;
}

/* One input alone, or beside empty ones, is a view. */
static enum status concat_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i]->numel == n->out[0]->numel)
			return data_lower_to_view(g, n, &in[i], out);
	return ST_OK;
}

/* Along the channels whole blocks are joined. */
static enum status concat_block(struct blocking *b)
{
	const struct node *n = b->n;
	int64_t unit;
	bool fit = true, any = false;
	for (int i = 0; i < n->nin; i++) {
		fit &= blocking_fits(b, n->in[i]);
		any |= blocking_has(b, i);
	}
	struct tensor **in = ARENA_ARRAY(b->g->arena, struct tensor *, n->nin);
	if (!in)
		return diag_nomem(b->g->diag);
	if (!fit || !any)
		return ST_OK;
	for (int i = 0; i < n->nin; i++)
		in[i] = blocking_blocked(b, i);
	const int channels = blocking_axis(b, n->out[0]->rank, &unit);
	const struct attr axis = ATTR_I("axis", settled_axis(n) == 1 ? channels : settled_axis(n));
	struct node *m = graph_op_like(b->g, n, in, 1, &axis, NULL);
	if (m)
		blocking_give(b, 0, m->out[0], true);
	return b->g->failed;
}

/* Sizes of the parts: as listed, or equal with a smaller last one (opset 18's num_outputs). */
static enum status split_sizes(struct graph *g, const struct node *n, int axis, int64_t *size)
{
	int len;
	const int64_t *v;
	int64_t total = n->in[0]->dim[axis], left = total, parts = n->nout;
	TRY(node_ints(g, n, "split", 1, &len, &v));
	if (v && len != n->nout)
		return node_fail(
			g, n, NULL, "has %d outputs, but the split lists %d", n->nout, len);
	if (node_int(n, "num_outputs", parts) != parts)
		return node_fail(g, n, NULL, "has %d outputs, but num_outputs says %" PRId64,
			n->nout, node_int(n, "num_outputs", parts));
	if (!v && !node_attr(n, "num_outputs") && total % parts)
		return node_fail(g, n, NULL,
			"axis %d of size %" PRId64 " does not split into %d equal parts", axis,
			total, n->nout);
	int64_t each = (total + parts - 1) / parts;
	bool fits = true;
	for (int k = 0; k < n->nout && fits; k++) {
		size[k] = v ? v[k] : left < each ? left : each;
		fits = size[k] >= 0 && size[k] <= left;
		left -= fits ? size[k] : 0;
	}
	if (!fits || left != 0)
		return node_fail(g, n, NULL, "the parts do not add up to axis %d of size %" PRId64,
			axis, total);
	return ST_OK;
}

static enum status split_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int axis;
	int64_t dim[RANK_MAX], *size = ARENA_ARRAY(g->arena, int64_t, n->nout);
	if (!size)
		return diag_nomem(g->diag);
	TRY(node_axis(g, n, node_int(n, "axis", 0), x->rank, &axis));
	TRY(split_sizes(g, n, axis, size));
	const struct attr attr[] = {ATTR_I("axis", axis), ATTR_IS("split", n->nout, size)};
	TRY(data_settle(g, n, 1, 2, attr));
	memcpy(dim, x->dim, sizeof dim);
	for (int k = 0; k < n->nout; k++) {
		dim[axis] = size[k];
		TRY(data_output(g, n, k, x->dtype, x->rank, dim));
	}
	return ST_OK;
}

/* Parts of whole blocks. */
static enum status split_block(struct blocking *b)
{
	const struct node *n = b->n;
	const int axis = settled_axis(n);
	int64_t unit;
	const int channels = blocking_axis(b, n->in[0]->rank, &unit);
	bool fit = blocking_has(b, 0);
	int64_t *size = ARENA_ARRAY(b->g->arena, int64_t, n->nout);
	if (!size)
		return diag_nomem(b->g->diag);
	for (int k = 0; k < n->nout; k++) {
		fit &= n->out[k] && blocking_fits(b, n->out[k]);
		size[k] = n->out[k] ? n->out[k]->dim[axis] / (axis == 1 ? unit : 1) : 0;
	}
	if (!fit)
		return ST_OK;
	const struct attr attr[] = {
		ATTR_I("axis", axis == 1 ? channels : axis), ATTR_IS("split", n->nout, size)};
	struct tensor *in = blocking_blocked(b, 0);
	struct node *m = graph_op_like(b->g, n, &in, 2, attr, NULL);
	for (int k = 0; m && k < n->nout; k++)
		blocking_give(b, k, m->out[k], true);
	return b->g->failed;
}

static enum status split_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	int64_t at = 0;
	for (int k = 0; k < n->nout; k++) {
		const struct box b = part_box(n->out[k], n->in[0], settled_axis(n), at, false);
		box_run(&b, (size_t)dtype_bytes(n->in[0]->dtype), out[k], n->in[0]->data);
		at += n->out[k]->dim[settled_axis(n)];
	}
	return ST_OK;
}

static enum status split_emit(struct emit *e, const struct node *n)
{
	int64_t at = 0;
	struct box_copy *copy = ARENA_ARRAY(e->g->arena, struct box_copy, n->nout);
	if (!copy)
		return diag_nomem(e->g->diag);
	for (int k = 0; k < n->nout; k++) {
		copy[k] = (struct box_copy){
			part_box(n->out[k], n->in[0], settled_axis(n), at, false), ARG_Y(k),
			ARG_X(0)};
		at += n->out[k]->dim[settled_axis(n)];
	}
	return boxes_call(e, n->nout, copy, n->in[0]);
}

static enum status split_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct attr axis = ATTR_I("axis", settled_axis(n));
	struct tensor **part = ARENA_ARRAY(g->arena, struct tensor *, n->nout);
	if (!want[0])
		return ST_OK;
	if (!part)
		return diag_nomem(g->diag);
	for (int k = 0; k < n->nout; k++) {
		const struct attr shape = data_ints(g, "shape", n->out[k]->rank, n->out[k]->dim);
		part[k] = dy[k] ? dy[k] : graph_op(g, "stint.Zeros", 0, NULL, 1, &shape);
	}
	dx[0] = graph_op(g, "Concat", n->nout, part, 1, &axis);
	return g->failed;
}

static struct op_cost split_cost(const struct node *n)
{
	return (struct op_cost){0, 2 * (double)tensor_bytes(n->in[0])};
}

const struct op_def ops_move[] = {
	{.name = "Concat",
		.apart = APART_BESIDE,
		.role = ROLE_CONCAT,
		.since = 4,
		.min_in = 1,
		.max_in = -1,
		.infer = concat_infer,
		.lower = concat_lower,
		.block = concat_block,
		.fold = concat_fold,
		.grad = concat_grad,
		.cost = data_move_cost,
		.traits = OP_ALIKE,
		.narrow_in = ALL_OPERANDS,
		.narrow_out = 1,
		.emit_c = concat_emit,
		.emit_cuda = concat_boxes,
		.example = EXAMPLES({.in = "2,3,4 2,5,4 2,1,4", .attr = "axis=1"},
			{.in = "a,b,c a,d,c", .attr = "axis=1"},
			{.in = "3:bool 2:bool", .attr = "axis=0"},
			{.in = "3,4 2,4", .attr = "axis=-2"}, {.in = "3,4 3,1", .attr = "axis=-1"},
			{.in = "3,4", .attr = "axis=0"},
			{.in = "2,32,4 2,64,4 2,16,4 2,40,4 2,17,4", .attr = "axis=1"},
			{.in = "=[5,6,7] =[] =[8]", .attr = "axis=0"},
			{.in = "6:i64<3 2:i64<5", .attr = "axis=0"})},
	{.name = "Split",
		.apart = APART_BESIDE,
		.role = ROLE_SPLIT,
		.since = 2,
		.min_in = 1,
		.max_in = 2,
		.min_out = 1,
		.max_out = -1,
		.infer = split_infer,
		.block = split_block,
		.fold = split_fold,
		.grad = split_grad,
		.cost = split_cost,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = ALL_OPERANDS,
		.emit_c = split_emit,
		.example = EXAMPLES({.in = "2,9,4", .attr = "axis=1", .nout = 3},
			{.in = "a,B,b", .attr = "axis=1 num_outputs=2", .nout = 2},
			{.in = "5:i64<9 =[2,3]", .nout = 2}, {.in = "5:bool =[2,0,3]", .nout = 3},
			{.in = "2,6 =[1,2,3]", .attr = "axis=-1", .nout = 3},
			{.in = "7,2", .attr = "num_outputs=3", .nout = 3},
			{.in = "5,3", .attr = "split=4,1", .nout = 2})},
	{.name = NULL},
};
