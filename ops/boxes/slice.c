/* Parts of a tensor: Slice, and its gradient. */
#include <inttypes.h>

#include "graph/blocking.h"
#include "ops/boxes/boxes_op.h"

/* What is cut out of a tensor, per axis: len elements from `start`, `step` apart. */
struct cut {
	int64_t start[RANK_MAX], step[RANK_MAX], len[RANK_MAX];
};

/* ONNX's rules: negative positions count from the end, positions beyond it are clamped. */
static void cut_axis(struct cut *c, int k, int64_t dim, int64_t start, int64_t end, int64_t step)
{
	int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
	start = start < 0 ? start + dim : start;
	end = end < 0 ? end + dim : end;
	start = start < 0 ? 0 : start > high ? high : start;
	end = end < low ? low : end > high ? high : end;
	/* no step goes further than the axis is long: keeps the sums from overflowing */
	step = step > dim + 1 ? dim + 1 : step < -dim - 1 ? -dim - 1 : step;
	int64_t span = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
	c->start[k] = start;
	c->step[k] = step;
	c->len[k] = span <= 0 ? 0 : (span + by - 1) / by;
}

/* From the lists starts, ends, axes, steps: attributes, or inputs `input`... */
static enum status cut_read(struct graph *g, const struct node *n, int input, int rank,
	const int64_t *dim, struct cut *c)
{
	int ns, ne, na, nt;
	const int64_t *starts, *ends, *axes, *steps;
	bool seen[RANK_MAX] = {false};
	TRY(node_ints(g, n, "starts", input, &ns, &starts));
	TRY(node_ints(g, n, "ends", input < 0 ? -1 : input + 1, &ne, &ends));
	TRY(node_ints(g, n, "axes", input < 0 ? -1 : input + 2, &na, &axes));
	TRY(node_ints(g, n, "steps", input < 0 ? -1 : input + 3, &nt, &steps));
	if (!starts || !ends || ns != ne || (axes && na != ns) || (steps && nt != ns) || ns > rank)
		return node_fail(g, n, NULL, "starts, ends, axes and steps do not fit together");
	for (int k = 0; k < rank; k++)
		cut_axis(c, k, dim[k], 0, dim[k], 1);
	for (int i = 0; i < ns; i++) {
		int k;
		TRY(node_axis(g, n, axes ? axes[i] : i, rank, &k));
		if (seen[k] || (steps && steps[i] == 0))
			return node_fail(g, n, NULL, "axis %d is listed twice or has step 0", k);
		seen[k] = true;
		cut_axis(c, k, dim[k], starts[i], ends[i], steps ? steps[i] : 1);
	}
	return ST_OK;
}

/* The cut as a node's attributes start, step, len; read back by cut_of. */
static void cut_attrs(struct graph *g, int rank, const struct cut *c, struct attr attr[3])
{
	attr[0] = data_ints(g, "cut_start", rank, c->start);
	attr[1] = data_ints(g, "cut_step", rank, c->step);
	attr[2] = data_ints(g, "cut_len", rank, c->len);
}

static bool cut_of(const struct node *n, struct cut *c)
{
	const struct attr *start = node_attr(n, "cut_start"), *step = node_attr(n, "cut_step"),
			  *len = node_attr(n, "cut_len");
	if (!start || !step || !len)
		return false;
	memcpy(c->start, start->ints, (size_t)start->n * sizeof(int64_t));
	memcpy(c->step, step->ints, (size_t)step->n * sizeof(int64_t));
	memcpy(c->len, len->ints, (size_t)len->n * sizeof(int64_t));
	return true;
}

/* The copy between `part`, dense, and the cut of `whole`. */
static struct box cut_box(
	const struct cut *c, const struct tensor *part, const struct tensor *whole, bool from_whole)
{
	int64_t ws[RANK_MAX], ps[RANK_MAX], off = 0;
	struct box b = {.rank = whole->rank};
	box_strides(whole->rank, whole->dim, ws);
	box_strides(part->rank, part->dim, ps);
	for (int k = 0; k < whole->rank; k++) {
		b.dim[k] = c->len[k];
		off += c->start[k] * ws[k];
		b.xs[k] = from_whole ? c->step[k] * ws[k] : ps[k];
		b.ys[k] = from_whole ? ps[k] : c->step[k] * ws[k];
		/* y is written forwards: an axis cut backwards is copied from its other end */
		if (b.ys[k] < 0) {
			off += (c->len[k] - 1) * b.ys[k];
			b.ys[k] = -b.ys[k];
			b.xoff += (c->len[k] - 1) * b.xs[k];
			b.xs[k] = -b.xs[k];
		}
	}
	*(from_whole ? &b.xoff : &b.yoff) += off;
	return b;
}

/* --- Slice --- */

static struct box slice_box(const struct node *n)
{
	struct cut c;
	cut_of(n, &c);
	return cut_box(&c, n->out[0], n->in[0], true);
}

static enum status slice_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	struct cut c;
	struct attr attr[3];
	if (!cut_of(n, &c))
		TRY(cut_read(g, n, 1, x->rank, x->dim, &c));
	cut_attrs(g, x->rank, &c, attr);
	TRY(data_settle(g, n, 1, 3, attr));
	TRY(data_output(g, n, 0, x->dtype, x->rank, c.len));
	return box_settle(g, n, slice_box(n));
}

static enum status slice_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	struct cut c;
	cut_of(n, &c);
	bool whole = tensor_same_shape(n->in[0], n->out[0]);
	for (int k = 0; k < n->in[0]->rank; k++)
		whole &= c.step[k] > 0 || c.len[k] <= 1;
	return whole ? data_lower_to_view(g, n, in, out) : data_lower_same(g, n, in, out);
}

static enum status slice_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct tensor *x = n->in[0];
	struct attr attr[4];
	struct cut c;
	if (!want[0])
		return ST_OK;
	cut_of(n, &c);
	cut_attrs(g, x->rank, &c, attr);
	attr[3] = data_ints(g, "shape", x->rank, x->dim);
	dx[0] = graph_op(g, "stint.SliceGrad", 1, dy, 4, attr);
	return g->failed;
}

/* The same cut of the blocked form of `whole`, where it takes whole blocks in their order. */
static bool cut_block(const struct blocking *b, const struct tensor *whole, struct cut *c)
{
	const int rank = whole->rank;
	int64_t unit;
	const int axis = blocking_axis(b, rank, &unit);
	cut_of(b->n, c);
	if (axis == 1 && (c->step[1] != 1 || c->start[1] % unit || c->len[1] % unit))
		return false;
	const int64_t start = c->start[1] / unit, step = c->step[1], len = c->len[1] / unit;
	c->start[1] = c->start[rank] = 0;
	c->step[1] = c->step[rank] = 1;
	c->len[1] = whole->dim[1] / blocking_channels(b, whole);
	c->len[rank] = blocking_channels(b, whole);
	c->start[axis] = start;
	c->step[axis] = step;
	c->len[axis] = len;
	return true;
}

static enum status slice_block(struct blocking *b)
{
	const struct tensor *x = b->n->in[0];
	struct cut c;
	struct attr attr[3];
	if (!blocking_has(b, 0) || !cut_block(b, x, &c))
		return ST_OK;
	cut_attrs(b->g, x->rank + 1, &c, attr);
	struct tensor *in = blocking_blocked(b, 0);
	in = graph_op(b->g, "Slice", 1, &in, 3, attr);
	blocking_give(b, 0, in, true);
	return b->g->failed;
}

/* --- stint.SliceGrad: zeros of attribute `shape`, with the input in the place of the cut --- */

static enum status slice_grad_infer(struct graph *g, struct node *n)
{
	struct cut c;
	struct attr attr[4];
	int rank;
	const int64_t *dim;
	TRY(node_ints(g, n, "shape", -1, &rank, &dim));
	if (!dim || rank != n->in[0]->rank)
		return node_fail(g, n, NULL, "has no shape of the input's rank");
	if (!cut_of(n, &c))
		TRY(cut_read(g, n, -1, rank, dim, &c));
	for (int k = 0; k < rank; k++)
		if (c.len[k] != n->in[0]->dim[k])
			return node_fail(
				g, n, NULL, "the cut does not fit the input at axis %d", k);
	cut_attrs(g, rank, &c, attr);
	attr[3] = data_ints(g, "shape", rank, dim);
	TRY(data_settle(g, n, 1, 4, attr));
	return data_output(g, n, 0, n->in[0]->dtype, rank, dim);
}

static struct box slice_grad_box(const struct node *n)
{
	struct cut c;
	cut_of(n, &c);
	return cut_box(&c, n->in[0], n->out[0], false);
}

static enum status slice_grad_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct box b = slice_grad_box(n);
	memset(out[0], 0, (size_t)tensor_bytes(n->out[0]));
	box_run(&b, (size_t)dtype_bytes(n->in[0]->dtype), out[0], n->in[0]->data);
	return ST_OK;
}

static enum status slice_grad_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct attr attr[3];
	struct cut c;
	if (!want[0])
		return ST_OK;
	cut_of(n, &c);
	cut_attrs(g, n->in[0]->rank, &c, attr);
	dx[0] = graph_op(g, "Slice", 1, dy, 3, attr);
	return g->failed;
}

static enum status slice_grad_block(struct blocking *b)
{
	const struct tensor *y = b->n->out[0];
	const int rank = y->rank;
	int64_t dim[RANK_MAX];
	struct cut c;
	struct attr attr[4];
	if (!blocking_has(b, 0) || !blocking_fits(b, y) || !cut_block(b, y, &c))
		return ST_OK;
	(void)blocking_shape(b, y, dim);
	cut_attrs(b->g, rank + 1, &c, attr);
	attr[3] = data_ints(b->g, "shape", rank + 1, dim);
	struct tensor *in = blocking_blocked(b, 0);
	struct node *m = graph_op_like(b->g, b->n, &in, 4, attr, NULL);
	if (m)
		blocking_give(b, 0, m->out[0], true);
	return b->g->failed;
}

static enum status slice_grad_emit(struct emit *e, const struct node *n)
{
	const struct box b = slice_grad_box(n);
	return box_inset_call(e, n, &b, 0);
}

static enum status slice_grad_cuda_emit(struct emit *e, const struct node *n)
{
	const struct box b = slice_grad_box(n);
	return box_cuda_inset(e, n, &b);
}

const struct op_def ops_slice[] = {
	{.name = "Slice",
		.apart = APART_UNCUT,
		.role = ROLE_SLICE,
		.since = 1,
		.min_in = 1,
		.max_in = 5,
		.infer = slice_infer,
		.fold = box_fold,
		.lower = slice_lower,
		.block = slice_block,
		.grad = slice_grad,
		.cost = data_move_cost,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = box_emit,
		.example = EXAMPLES({.in = "5,6 =[1,2] =[4,-1]"},
			{.in = "5,6,3 =[-1] =[-100] =[1] =[-2]"},
			{.in = "4,9 =[1] =[1000] =[-1] =[3]"}, {.in = "4,9 =[0] =[9] =[1]"},
			{.in = "=[1,2,3,4] =[3] =[1]"}, {.in = "9:i64<5 =[2] =[7]"},
			{.in = "2,8,5 =[3] =[4] =[1]"},
			{.in = "a,B,C =[-1,1] =[-9,4] =[1,2] =[-2,1]"},
			{.in = "2,5:bool =[1] =[4] =[1]"},
			{.in = "6,4,5 =[4,3] =[0,-9] =[0,2] =[-2,-1]"})},
	{.name = "stint.SliceGrad",
		.min_in = 1,
		.infer = slice_grad_infer,
		.block = slice_grad_block,
		.fold = slice_grad_fold,
		.grad = slice_grad_grad,
		.cost = data_move_cost,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = slice_grad_emit,
		.emit_cuda = slice_grad_cuda_emit,
		.example = EXAMPLES({.in = "2,3", .attr = "shape=2,9 starts=1 ends=4 axes=1"},
			{.in = "2,4", .attr = "shape=2,9 starts=8 ends=1 axes=1 steps=-2"})},
	{.name = NULL},
};
