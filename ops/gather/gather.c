/* Picking slices of a tensor by a list of indices (embedding tables, exporters' shape arithmetic),
 * and adding gradients back into their places. */
#include <inttypes.h>

#include "graph/op_adapter.h"
#include "ops/dora_op.h"
#include "ops/gather/gather_op.h"

static struct picks picks_of(
	const struct node *n, int rank, const int64_t *dim, const struct tensor *indices)
{
	int axis = (int)node_int(n, "axis", 0);
	struct picks p = {1, dim[axis], 1, indices->numel, node_int(n, "padding_idx", NO_PADDING)};
	for (int i = 0; i < axis; i++)
		p.outer *= dim[i];
	for (int i = axis + 1; i < rank; i++)
		p.inner *= dim[i];
	return p;
}

/* Attribute padding_idx, PyTorch's: importers give it, from what the file notes or --padding-idx.
 */
static enum status padding_settle(struct graph *g, const struct node *n, int64_t size, int64_t *out)
{
	const int64_t given = node_int(n, "padding_idx", INT64_MIN);
	*out = NO_PADDING;
	if (given == INT64_MIN)
		return ST_OK;
	*out = given < 0 ? given + size : given;
	if (*out < 0 || *out >= size)
		return node_fail(g, n, NULL,
			"its padding index %" PRId64 " is not a row of '%s', which has %" PRId64,
			given, n->in[0]->name, size);
	return ST_OK;
}

static enum status gather_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *at = n->in[1];
	int axis, rank = 0;
	int64_t dim[2 * RANK_MAX];
	TRY(node_axis(g, n, node_int(n, "axis", 0), x->rank, &axis));
	if (at->dtype != DT_I64)
		return node_fail(g, n, NULL, "the indices ('%s') are not integers", at->name);
	for (int i = 0; i < x->rank; i++) {
		if (i != axis)
			dim[rank++] = x->dim[i];
		for (int k = 0; i == axis && k < at->rank; k++)
			dim[rank++] = at->dim[k];
	}
	for (int64_t i = 0; at->role == TR_CONSTANT && i < at->numel; i++) {
		int64_t v = tensor_int(at, i);
		if (v < -x->dim[axis] || v >= x->dim[axis])
			return node_fail(g, n, NULL,
				"index %" PRId64 " is out of range for axis %d of size %" PRId64, v,
				axis, x->dim[axis]);
	}
	int64_t padding;
	TRY(padding_settle(g, n, x->dim[axis], &padding));
	const struct attr attr[] = {ATTR_I("axis", axis), ATTR_I("padding_idx", padding)};
	TRY(data_settle(g, n, 2, padding == NO_PADDING ? 1 : 2, attr));
	return data_output(g, n, 0, x->dtype, rank, dim);
}

static enum status gather_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *x = n->in[0], *at = n->in[1];
	struct picks p = picks_of(n, x->rank, x->dim, at);
	size_t row = (size_t)(p.inner * dtype_bytes(x->dtype));
	char *to = out[0];
	for (int64_t o = 0; o < p.outer; o++)
		for (int64_t m = 0; m < p.count; m++, to += row) {
			int64_t v = tensor_int(at, m);
			v = o * p.size + (v < 0 ? v + p.size : v);
			memcpy(to, (const char *)x->data + (size_t)v * row, row);
		}
	return ST_OK;
}

/* One known index is a slice. */
static enum status gather_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct tensor *at = n->in[1];
	int64_t axis = node_int(n, "axis", 0);
	if (at->role != TR_CONSTANT || at->numel != 1)
		return data_lower_same(g, n, in, out);
	int64_t start = tensor_int(at, 0);
	start += start < 0 ? in[0]->dim[axis] : 0;
	int64_t end = start + 1;
	const struct attr attr[] = {data_ints(g, "starts", 1, &start),
		data_ints(g, "ends", 1, &end), data_ints(g, "axes", 1, &axis)};
	struct tensor *slice = graph_op(g, "Slice", 1, in, 3, attr);
	if (start == node_int(n, "padding_idx", NO_PADDING))
		slice = OP1(g, op_by_role(g->table, ROLE_STOP)->name, slice);
	out[0] = graph_reshape(g, slice, n->out[0]->rank, n->out[0]->dim);
	return g->failed;
}

/* An adapter of an embedding: rows of A [r, rows] turned, times B [columns, r] turned. It begins
 * the other way round than others: A as zeros. PEFT has no dropout here. */
static enum status gather_adapt(
	struct adapting *x, const struct node *n, struct tensor *const *in, struct tensor **out)
{
	struct graph *g = adapting_graph(x);
	const struct tensor *w = n->in[0];
	const int64_t r = adapting_rank(x), axes = n->in[1]->rank;
	int64_t perm[RANK_MAX] = {0};
	if (w->rank != 2 || node_int(n, "axis", 0) != 0 || axes >= RANK_MAX)
		return node_fail(
			g, n, NULL, "--lora: '%s' is no table of rows that it picks", w->name);
	for (int64_t i = 0; i < axes; i++)
		perm[i] = i + 1;
	struct tensor *a = adapting_parameter(
		x, "lora_embedding_A", 2, (int64_t[]){r, w->dim[0]}, ADAPTER_ZEROS, 0);
	struct tensor *b = adapting_parameter(
		x, "lora_embedding_B", 2, (int64_t[]){w->dim[1], r}, ADAPTER_NORMAL, 0);
	const int64_t padding = node_int(n, "padding_idx", NO_PADDING);
	const struct attr pick[] = {ATTR_I("axis", 1), ATTR_I("padding_idx", padding)};
	const struct attr turn = data_ints(g, "perm", (int)axes + 1, perm);
	struct tensor *low = graph_op(
		g, "Gather", 2, (struct tensor *[]){a, in[1]}, padding == NO_PADDING ? 1 : 2, pick);
	low = graph_op(g, "Transpose", 1, &low, 1, &turn);
	*out = OP2(g, "MatMul", adapting_scaled(x, low), OP1(g, "Transpose", b));
	if (adapting_lengths(x) && g->failed == ST_OK)
		*out = dora_added(x, &(struct dora){.a = a,
					     .b = b,
					     .a_on_weight = OP2(g, "MatMul", a, in[0]),
					     .base = n->out[0],
					     .delta = *out,
					     .rank = 1,
					     .dim = &w->dim[1]});
	return g->failed;
}

static enum status gather_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct tensor *x = n->in[0];
	const int64_t padding = node_int(n, "padding_idx", NO_PADDING);
	const struct attr attr[] = {ATTR_I("axis", node_int(n, "axis", 0)),
		data_ints(g, "shape", x->rank, x->dim), ATTR_I("padding_idx", padding)};
	if (want[0])
		dx[0] = graph_op(g, "stint.GatherGrad", 2, (struct tensor *[]){dy[0], n->in[1]},
			padding == NO_PADDING ? 2 : 3, attr);
	return g->failed;
}

struct op_cost gather_cost(const struct node *n)
{
	return (struct op_cost){
		0, 2 * (double)tensor_bytes(n->out[0]) + (double)tensor_bytes(n->in[1])};
}

/* All indices first: a thread cannot leave a loop. The gradient checks as well: no plan is bound to
 * run it after the node it belongs to. */
static enum status check_call(struct emit *e, const struct node *n, const struct picks *p)
{
	if (n->in[1]->role == TR_CONSTANT || p->count == 0)
		return ST_OK;
	return call_kernel(
		e, &(struct kernel_call){.file = "gather_grad.h",
			   .function = "check_indices",
			   .once = true,
			   .checked = true,
			   .args = CALL_ARGS(ARG_X(1), ARG_SIZE(p->count), ARG_SIZE(p->size))});
}

static enum status gather_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	const struct picks p = picks_of(n, x->rank, x->dim, n->in[1]);
	const int64_t elements = n->out[0]->numel;
	TRY(check_call(e, n, &p));
	return call_kernel(
		e, &(struct kernel_call){.file = "gather.h",
			   .function = "gather",
			   .ntype = 1,
			   .type = {x},
			   .turns = elements ? p.outer * p.count : 0,
			   .work = (double)elements,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(p.size),
				   ARG_SIZE(p.count), ARG_SIZE(p.inner))});
}

static enum status gather_cuda_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	const struct picks p = picks_of(n, x->rank, x->dim, n->in[1]);
	return n->out[0]->numel > 0 ? gather_cuda_call(e, n, &p) : gather_emit(e, n);
}

/* --- stint.GatherGrad(dy, indices): zeros of attribute `shape`, dy's slices added in, but those of
 * the padding --- */

static enum status scatter_infer(struct graph *g, struct node *n)
{
	int rank, axis;
	const int64_t *dim;
	int64_t numel = 1;
	TRY(node_ints(g, n, "shape", -1, &rank, &dim));
	if (!dim || rank > RANK_MAX)
		return node_fail(g, n, NULL, "has no shape");
	TRY(node_axis(g, n, node_int(n, "axis", 0), rank, &axis));
	for (int i = 0; i < rank; i++)
		if (i != axis && !size_mul(numel, dim[i], &numel))
			return node_fail(g, n, NULL, "the shape overflows");
	if (!size_mul(numel, n->in[1]->numel, &numel) || numel != n->in[0]->numel)
		return node_fail(g, n, NULL, "shape, indices and gradient do not fit together");
	return data_output(g, n, 0, n->in[0]->dtype, rank, dim);
}

static enum status scatter_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *y = n->out[0], *at = n->in[1], *dy = n->in[0];
	struct picks p = picks_of(n, y->rank, y->dim, at);
	memset(out[0], 0, (size_t)tensor_bytes(y));
	for (int64_t i = 0; i < dy->numel; i++) {
		int64_t j = i % p.inner, m = i / p.inner % p.count, o = i / p.inner / p.count;
		int64_t v = tensor_int(at, m);
		v = v < 0 ? v + p.size : v;
		if (v == p.padding)
			continue;
		v = (o * p.size + v) * p.inner + j;
		struct tensor sum = *y;
		sum.data = out[0];
		value_set(y->dtype, out[0], v, tensor_real(&sum, v) + tensor_real(dy, i));
	}
	return ST_OK;
}

static enum status scatter_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct attr axis = ATTR_I("axis", node_int(n, "axis", 0));
	if (!want[0])
		return ST_OK;
	struct tensor *t = graph_op(g, "Gather", 2, (struct tensor *[]){dy[0], n->in[1]}, 1, &axis);
	const struct picks p = picks_of(n, n->out[0]->rank, n->out[0]->dim, n->in[1]);
	if (p.padding != NO_PADDING) {
		const int64_t same[] = {p.padding, p.padding - p.size};
		struct tensor *at = graph_reshape(g, n->in[1], 2, (int64_t[]){p.count, 1});
		struct tensor *is = OP2(g, "Or", OP2(g, "Equal", at, graph_ints(g, 1, &same[0])),
			OP2(g, "Equal", at, graph_ints(g, 1, &same[1])));
		t = graph_reshape(g, t, 3, (int64_t[]){p.outer, p.count, p.inner});
		t = OP3(g, "Where", is, graph_scalar(g, 0), t);
	}
	dx[0] = graph_reshape(g, t, n->in[0]->rank, n->in[0]->dim);
	return g->failed;
}

static struct picks scatter_picks(const struct node *n)
{
	return picks_of(n, n->out[0]->rank, n->out[0]->dim, n->in[1]);
}

static int64_t scatter_workspace(const struct node *n, const struct target *t)
{
	const struct picks p = scatter_picks(n);
	(void)t;
	return n->in[0]->numel > 0 ? scatter_cuda_workspace(&p) : 0;
}

static enum status scatter_emit(struct emit *e, const struct node *n)
{
	enum { PIECE = 64 }; /* GATHER_PIECE */
	const struct picks p = scatter_picks(n);
	TRY(check_call(e, n, &p));
	TRY(fill_call(e, n, 0, fill_value(n->out[0], 0)));
	if (n->in[0]->numel == 0)
		return ST_OK;
	return call_kernel(
		e, &(struct kernel_call){.file = "gather_grad.h",
			   .function = "gather_grad",
			   .turns = p.outer * div_up(p.inner, PIECE),
			   .work = (double)n->in[0]->numel,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(p.size),
				   ARG_SIZE(p.count), ARG_SIZE(p.inner), ARG_INT(p.padding))});
}

static enum status scatter_cuda_emit(struct emit *e, const struct node *n)
{
	const struct picks p = scatter_picks(n);
	return n->in[0]->numel > 0 ? scatter_cuda_call(e, n, &p) : scatter_emit(e, n);
}

const struct op_def ops_gather[] = {
	{.name = "Gather",
		.apart = APART_PASSES,
		.since = 1,
		.min_in = 2,
		.traits = OP_ALIKE | OP_CHECKED,
		.role = ROLE_LOOKUP,
		.infer = gather_infer,
		.fold = gather_fold,
		.lower = gather_lower,
		.adapter = &(const struct op_adapter){ADAPTER_EMBEDDING, 0, gather_adapt},
		.grad = gather_grad,
		.cost = gather_cost,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = gather_emit,
		.emit_cuda = gather_cuda_emit,
		.example = EXAMPLES({.in = "10,70 3,4:i64<10"},
			{.in = "a,5,b c,d:i64<5", .attr = "axis=1"},
			{.in = "4,6 2,2:i64<6", .attr = "axis=-1"}, {.in = "5,3 =[1,-1,0,1]"},
			{.in = "2,5,3 =-2", .attr = "axis=1"}, {.in = "5,3 =[4]"},
			{.in = "7:i64<9 3:i64<7"}, {.in = "7:bool 3:i64<7"})},
	{.name = "stint.GatherGrad",
		.min_in = 2,
		.traits = OP_CHECKED,
		.infer = scatter_infer,
		.fold = scatter_fold,
		.grad = scatter_grad,
		.workspace_cuda = scatter_workspace,
		.emit_c = scatter_emit,
		.emit_cuda = scatter_cuda_emit,
		.example = EXAMPLES({.in = "9,70 9:i64<4", .attr = "shape=4,70"},
			{.in = "2,6,3 2,3:i64<4", .attr = "axis=1 shape=2,4,3"},
			{.in = "9,70 9:i64<4", .attr = "shape=4,70 padding_idx=1"},
			{.in = "2,5,3 =[-1,0,3,1,-4]", .attr = "axis=1 shape=2,4,3 padding_idx=3"},
			{.in = "2100,3 2100:i64<5", .attr = "shape=5,3 padding_idx=0"})},
	{.name = NULL},
};
