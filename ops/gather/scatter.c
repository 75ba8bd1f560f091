/* Putting elements or rows in the places that indices tell: ScatterElements, ScatterND,
 * TensorScatter. What meets in one place is combined in the order of the updates, whatever the
 * number of threads. */
#include <inttypes.h>

#include "ops/gather/walk_op.h"

enum how { PUT_SET, PUT_ADD, PUT_MUL, PUT_MAX, PUT_MIN };

/* False: no such way. */
static bool find_how(const struct node *n, enum how *how)
{
	static const char *const names[] = {"none", "add", "mul", "max", "min"};
	const char *s = node_string(n, "reduction", "none");
	int i = 0;
	while (i < 5 && strcmp(s, names[i]) != 0)
		i++;
	*how = i < 5 ? (enum how)i : PUT_SET;
	return i < 5;
}

static enum how how_of(const struct node *n)
{
	enum how how;
	find_how(n, &how);
	return how;
}

static enum status put_output(struct graph *g, struct node *n, const struct walk *w)
{
	const struct tensor *x = n->in[0], *u = n->in[2];
	enum how how;
	if (!w)
		return g->failed != ST_OK ? g->failed : ST_INVALID;
	if (!find_how(n, &how))
		return node_fail(g, n, NULL, "reduction '%s' is not supported",
			node_string(n, "reduction", "none"));
	struct tensor want = {.rank = w->list_rank};
	memcpy(want.dim, w->list_dim, sizeof want.dim);
	if (u->dtype != x->dtype || !tensor_same_shape(u, &want)) {
		char a[200], b[200];
		return node_fail(g, n, NULL,
			"the updates ('%s', %s) must have the data's element type and the shape %s",
			u->name, tensor_shape_text(u, a), tensor_shape_text(&want, b));
	}
	n->param = w;
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

static enum status elements_infer(struct graph *g, struct node *n)
{
	return put_output(g, n, walk_elements(g, n, n->in[0], n->in[1], node_int(n, "axis", 0)));
}

static enum status rows_infer(struct graph *g, struct node *n)
{
	return put_output(g, n, walk_rows(g, n, n->in[0], n->in[1], 0));
}

/* stint.Put has its walk from the node it belongs to. */
static enum status put_infer(struct graph *g, struct node *n)
{
	return put_output(g, n, n->param);
}

static int64_t combined_ints(enum how how, int64_t a, int64_t b)
{
	switch (how) {
	case PUT_SET:
		return b;
	case PUT_ADD:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case PUT_MUL:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case PUT_MAX:
		return a > b ? a : b;
	case PUT_MIN:
		break;
	}
	return a < b ? a : b;
}

static double combined(enum how how, double a, double b)
{
	switch (how) {
	case PUT_SET:
		return b;
	case PUT_ADD:
		return a + b;
	case PUT_MUL:
		return a * b;
	case PUT_MAX:
		return b > a || isnan(b) ? b : a;
	case PUT_MIN:
		break;
	}
	return b < a || isnan(b) ? b : a;
}

static enum status put_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct walk *w = n->param;
	struct tensor y = *n->out[0];
	enum how how = how_of(n);
	y.data = out[0];
	memcpy(out[0], n->in[0]->data, (size_t)tensor_bytes(n->in[0]));
	for (int64_t t = 0; t < walk_total(w); t++) {
		int64_t at, k;
		walk_place(w, n->in[1], t, &at, &k);
		if (y.dtype == DT_I64)
			((int64_t *)out[0])[at] = combined_ints(
				how, tensor_int(&y, at), tensor_int(n->in[2], k));
		else
			value_set(y.dtype, out[0], at,
				combined(how, tensor_real(&y, at), tensor_real(n->in[2], k)));
	}
	return ST_OK;
}

/* --- Gradients --- */

/* A node of the same walk; its attributes tell the walk and what it does. */
static struct node *same_walk(struct graph *g, const struct node *n, const char *op, int nin,
	struct tensor *const *in, const char *reduction)
{
	const struct attr attr[] = {
		{.name = "reduction", .kind = ATTR_STRING, .s = reduction},
		ATTR_I("axis", node_int(n, "axis", 0)),
		ATTR_I("batch_dims", node_int(n, "batch_dims", 0)),
	};
	return graph_op_node(g, op, nin, in, 3, attr, n->param);
}

static struct tensor *pick(struct graph *g, const struct node *n, struct tensor *x)
{
	struct tensor *in[] = {x, n->in[1]};
	struct node *m = same_walk(g, n, "stint.Pick", 2, in, "none");
	return m ? m->out[0] : NULL;
}

static struct tensor *put(struct graph *g, const struct node *n, struct tensor *x, struct tensor *u,
	const char *reduction)
{
	struct tensor *in[] = {x, n->in[1], u};
	struct node *m = same_walk(g, n, "stint.Put", 3, in, reduction);
	return m ? m->out[0] : NULL;
}

/* As PyTorch shares a gradient out among equals: dy over the number of operands that gave the
 * result. */
static enum status put_extreme_grad(struct graph *g, const struct node *n, struct tensor *dy,
	const bool *want, struct tensor **dx)
{
	const struct attr real = ATTR_I("to", 1);
	struct tensor *x = n->in[0], *u = n->in[2], *y = n->out[0];
	struct tensor *mine = OP2(g, "Equal", x, y);
	struct tensor *theirs = OP2(g, "Equal", u, pick(g, n, y));
	mine = graph_op(g, "Cast", 1, &mine, 1, &real);
	theirs = graph_op(g, "Cast", 1, &theirs, 1, &real);
	struct tensor *share = OP2(g, "Div", dy, put(g, n, mine, theirs, "add"));
	if (want[0])
		dx[0] = OP2(g, "Mul", share, mine);
	if (want[2])
		dx[2] = OP2(g, "Mul", pick(g, n, share), theirs);
	return g->failed;
}

static enum status put_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const enum how how = how_of(n);
	struct node *m;
	if (how == PUT_MAX || how == PUT_MIN)
		return put_extreme_grad(g, n, dy[0], want, dx);
	if (how == PUT_ADD) {
		dx[0] = want[0] ? dy[0] : NULL;
		dx[2] = want[2] ? pick(g, n, dy[0]) : NULL;
		return g->failed;
	}
	if (how == PUT_MUL)
		m = same_walk(g, n, "stint.PutMulGrad", 4,
			(struct tensor *[]){dy[0], n->in[1], n->in[0], n->in[2]}, "mul");
	else
		m = same_walk(
			g, n, "stint.PutGrad", 2, (struct tensor *[]){dy[0], n->in[1]}, "none");
	dx[0] = m && want[0] ? m->out[0] : NULL;
	dx[2] = m && want[2] ? m->out[1] : NULL;
	return g->failed;
}

/* Gradients of data and updates: outputs 0 and 1. */
static enum status put_grad_infer(struct graph *g, struct node *n)
{
	const struct walk *w = n->param;
	if (!w)
		return node_fail(g, n, NULL, "stands alone");
	TRY(data_output(g, n, 0, n->in[0]->dtype, w->data_rank, w->data_dim));
	return n->nout < 2 ? ST_OK
			   : data_output(g, n, 1, n->in[0]->dtype, w->list_rank, w->list_dim);
}

/* --- Recognition --- */

static bool is_zeros(const struct tensor *t)
{
	if (t->role != TR_CONSTANT || !dtype_is_real(t->dtype))
		return false;
	for (int64_t i = 0; i < t->numel; i++)
		if (tensor_real(t, i) != 0)
			return false;
	return true;
}

/* The older exporter writes index_add, scatter_add and accumulating index_put as x + (updates put
 * into zeros), which loses updates that meet. ONNX leaves open what becomes of those, so that
 * adding all of them up is as right, and what was meant. */
static enum status put_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	static const char *const names[] = {"ScatterND", "ScatterElements", "Scatter"};
	if (!node_is(n, "Add"))
		return ST_OK;
	for (int i = 0; i < 2; i++) {
		const struct node *m = n->in[i]->maker;
		int k = 0;
		while (m && k < 3 && !node_is(m, names[k]))
			k++;
		if (!m || k == 3 || how_of(m) != PUT_SET || !is_zeros(m->in[0]) ||
			!tensor_same_shape(n->in[1 - i], m->in[0]))
			continue;
		const struct attr attr[] = {{.name = "reduction", .kind = ATTR_STRING, .s = "add"},
			ATTR_I("axis", node_int(m, "axis", 0))};
		*replace = graph_op(g, names[k > 0], 3,
			(struct tensor *[]){n->in[1 - i], m->in[1], m->in[2]}, k > 0 ? 2 : 1, attr);
		return g->failed;
	}
	return ST_OK;
}

/* --- Calls --- */

/* All elements of input k. */
static enum status copy_input(struct emit *e, const struct node *n, int k, struct call_arg to)
{
	const struct box_copy all = {
		{.rank = 1, .dim = {n->in[k]->numel}, .xs = {1}, .ys = {1}}, to, ARG_X(k)};
	return boxes_call(e, 1, &all, n->in[k]);
}

/* Output 0 becomes input 0. */
static enum status copy_data(struct emit *e, const struct node *n)
{
	return e->in_place[0] == 0 ? ST_OK : copy_input(e, n, 0, ARG_Y(0));
}

static enum status put_call(struct emit *e, const struct node *n, const char *way,
	struct call_arg data, struct call_arg list, struct call_arg of)
{
	enum { PIECE = 32 }; /* two cache lines of floats */
	const struct walk *w = n->param;
	const int64_t piece = call_piece(e, PIECE);
	struct call_field field[WALK_FIELDS];
	const struct call_struct walk = walk_struct(w, field);
	return call_kernel(e, &(struct kernel_call){.file = "put.h",
				      .function = "put",
				      .ntype = 1,
				      .type = {n->in[0]},
				      .turns = walk_turns(w, false, piece),
				      .work = 4 * (double)walk_total(w),
				      .args = CALL_ARGS(data, list, of, ARG_X(1), ARG_STRUCT(&walk),
					      ARG_NAME(way), ARG_INT(piece))});
}

static enum status put_emit(struct emit *e, const struct node *n)
{
	static const char *const ways[] = {"PUT_SET", "PUT_ADD", "PUT_MUL", "PUT_MAX", "PUT_MIN"};
	static const char *const on_bools[] = {
		"PUT_SET", "PUT_MAX", "PUT_MIN", "PUT_MAX", "PUT_MIN"};
	const bool bools = n->out[0]->dtype == DT_BOOL;
	TRY(walk_check_call(e, n, n->param, 1));
	TRY(copy_data(e, n));
	return put_call(e, n, (bools ? on_bools : ways)[how_of(n)], ARG_Y(0), ARG_NULL, ARG_X(2));
}

static enum status put_grad_emit(struct emit *e, const struct node *n)
{
	TRY(walk_check_call(e, n, n->param, 1));
	TRY(copy_data(e, n));
	return put_call(e, n, "PUT_TAKE", ARG_Y(0), ARG_Y(1), ARG_NULL);
}

static enum status put_mul_grad_emit(struct emit *e, const struct node *n)
{
	TRY(walk_check_call(e, n, n->param, 1));
	TRY(copy_data(e, n));
	TRY(copy_input(e, n, 2, ARG_SCRATCH(0)));
	TRY(put_call(e, n, "PUT_BEFORE", ARG_SCRATCH(0), ARG_Y(1), ARG_X(3)));
	return put_call(e, n, "PUT_AFTER", ARG_Y(0), ARG_Y(1), ARG_X(3));
}

static int64_t put_mul_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return tensor_bytes(n->in[2]);
}

/* --- TensorScatter: a block of updates into a cache, from a place of each batch on --- */

static enum status cache_read(struct graph *g, const struct node *n, int *axis)
{
	const struct tensor *x = n->in[0], *u = n->in[1], *at = node_input(n, 2);
	const char *mode = node_string(n, "mode", "linear");
	TRY(node_axis(g, n, node_int(n, "axis", -2), x->rank, axis));
	bool fits = *axis > 0 && u->rank == x->rank && u->dtype == x->dtype;
	for (int i = 0; fits && i < x->rank; i++)
		fits = i == *axis ? u->dim[i] <= x->dim[i] : u->dim[i] == x->dim[i];
	if (!fits)
		return node_fail(g, n, NULL, "cache and update do not fit together");
	if (at && (at->dtype != DT_I64 || at->rank != 1 || at->dim[0] != x->dim[0]))
		return node_fail(
			g, n, NULL, "write_indices must hold an integer for each batch entry");
	if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
		return node_fail(g, n, NULL, "mode '%s' is not supported", mode);
	return ST_OK;
}

static enum status cache_infer(struct graph *g, struct node *n)
{
	int axis;
	TRY(cache_read(g, n, &axis));
	return data_output(g, n, 0, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
}

static enum status cache_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	int axis;
	(void)o;
	TRY(cache_read(g, n, &axis));
	const struct tensor *x = n->in[0], *u = n->in[1];
	int64_t count = u->dim[axis], batch = x->dim[0];
	int64_t *place = ARENA_ARRAY(g->arena, int64_t, count * batch);
	if (!place)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < count * batch; i++)
		place[i] = i % (count ? count : 1);
	struct tensor *at = graph_constant(
		g, "places", DT_I64, 2, (int64_t[]){batch, count}, place);
	if (n->nin > 2 && in[2])
		at = OP2(g, "Add", graph_reshape(g, in[2], 2, (int64_t[]){batch, 1}), at);
	if (!strcmp(node_string(n, "mode", "linear"), "circular"))
		at = OP2(g, "stint.FloorMod", at, graph_ints(g, 1, &x->dim[axis]));
	const struct walk *w = at ? walk_along(g, n, x, at, u, axis) : NULL;
	const struct attr attr[] = {
		{.name = "reduction", .kind = ATTR_STRING, .s = "none"}, ATTR_I("axis", axis)};
	if (!w)
		return g->failed != ST_OK ? g->failed : ST_INVALID;
	out[0] = graph_param_op(
		g, "stint.Put", 3, (struct tensor *[]){in[0], at, in[1]}, 2, attr, w);
	return g->failed;
}

#define PUT(onnx, ...)                                                                             \
	{                                                                                          \
		.name = onnx, .min_in = 3, .traits = OP_CHECKED | OP_EXACT, .fold = put_fold,      \
		.grad = put_grad, .npair = 1, .pair = {{0, 0}}, .emit_c = put_emit, __VA_ARGS__    \
	}

/* clang-format off */
#define ELEMENTS                                                                                   \
	{.in = "a,b,c a,b,c:i64<2 a,b,c", .attr = "axis=2"},                                       \
	{.in = "5,70 3,69:i64<5 3,69"}, {.in = "7 4:i64<7 4"},                                     \
	{.in = "4,3,5,2 3,2,4,1:i64<5 3,2,4,1", .attr = "axis=-2"},                                \
	{.in = "5 =[-1,0,-4] 3"}, {.in = "6:i64<9 =[-1,2] =[7,8]"},                                \
	{.in = "4,3:bool 2,3:i64<4 2,3:bool"}

const struct op_def ops_scatter[] = {
	PUT("Scatter", .since = 9, .until = 11, .infer = elements_infer,
		.example = EXAMPLES(ELEMENTS)),
	PUT("ScatterElements", .since = 11, .infer = elements_infer,
		.example = EXAMPLES(ELEMENTS,
			{.in = "a,b,c a,d,c:i64<2 a,d,c", .attr = "axis=1 reduction=add"},
			{.in = "a,b d,b:i64<2 d,b", .attr = "reduction=mul"},
			{.in = "a,b,c a,b,d:i64<2 a,b,d", .attr = "axis=2 reduction=max"},
			{.in = "a,b,c a,b,d:i64<2 a,b,d", .attr = "axis=2 reduction=min"},
			{.in = "4,90 6,90:i64<4 6,90", .attr = "reduction=add"},
			{.in = "3,40 5,33:i64<3 5,33", .attr = "reduction=mul"},
			{.in = "6:i64<9 =[-1,2,2] =[7,8,1]", .attr = "reduction=add"},
			{.in = "6:i64<9 =[-1,2,2] =[7,8,1]", .attr = "reduction=mul"},
			{.in = "6:i64<9 =[-1,2,2] =[7,8,1]", .attr = "reduction=max"},
			{.in = "6:i64<9 =[-1,2,2] =[7,8,1]", .attr = "reduction=min"})),
	PUT("ScatterND", .since = 11, .infer = rows_infer,
		.example = EXAMPLES({.in = "4,a,5 b,2:i64<2 b,5"},
			{.in = "4,a,b c,d,1:i64<4 c,d,a,b", .attr = "reduction=add"},
			{.in = "4,a c,1:i64<4 c,a", .attr = "reduction=mul"},
			{.in = "4,a c,1:i64<4 c,a", .attr = "reduction=max"},
			{.in = "4,a c,1:i64<4 c,a", .attr = "reduction=min"},
			{.in = "4,5,3 7,3:i64<3 7", .attr = "reduction=add"},
			{.in = "5,70 4,1:i64<5 4,70"}, {.in = "3 2,1:i64<3 2"},
			{.in = "3:i64<9 =[1] =3"}, {.in = "4,2:bool 3,2:i64<2 3:bool"})),
	{.name = "TensorScatter",
		.since = 24,
		.min_in = 2,
		.max_in = 3,
		.infer = cache_infer,
		.fold = data_fold_lowered,
		.lower = cache_lower,
		.example = EXAMPLES({.in = "a,b,6,c a,b,2,c a:i64<5"},
			{.in = "a,5,c a,3,c a:i64<99", .attr = "mode=circular axis=1"},
			{.in = "2,3,4 2,3,2", .attr = "axis=-1"})},
	/* (data, indices, updates): as a node whose walk it is given */
	PUT("stint.Put", .infer = put_infer, .match = put_match),
	/* (dy, indices) */
	{.name = "stint.PutGrad",
		.min_in = 2,
		.min_out = 2,
		.max_out = 2,
		.traits = OP_CHECKED,
		.infer = put_grad_infer,
		.npair = 1,
		.pair = {{0, 0}},
		.emit_c = put_grad_emit},
	/* (dy, indices, data, updates) */
	{.name = "stint.PutMulGrad",
		.min_in = 4,
		.min_out = 2,
		.max_out = 2,
		.traits = OP_CHECKED,
		.infer = put_grad_infer,
		.npair = 1,
		.pair = {{0, 0}},
		.workspace = put_mul_workspace,
		.emit_c = put_mul_grad_emit},
	{.name = NULL},
};
/* clang-format on */
