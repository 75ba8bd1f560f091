/* Picking elements or rows by a tensor of indices: GatherElements, GatherND. Their gradient puts dy
 * back, adding up (ops/gather/scatter.c). */
#include "ops/gather/gather_op.h"
#include "ops/gather/walk_op.h"

static enum status pick_output(struct graph *g, struct node *n, const struct walk *w)
{
	if (!w)
		return g->failed != ST_OK ? g->failed : ST_INVALID;
	n->param = w;
	return data_output(g, n, 0, n->in[0]->dtype, w->list_rank, w->list_dim);
}

static enum status elements_infer(struct graph *g, struct node *n)
{
	return pick_output(g, n, walk_elements(g, n, n->in[0], n->in[1], node_int(n, "axis", 0)));
}

static enum status rows_infer(struct graph *g, struct node *n)
{
	return pick_output(g, n, walk_rows(g, n, n->in[0], n->in[1], node_int(n, "batch_dims", 0)));
}

/* stint.Pick has its walk from the node it belongs to. */
static enum status pick_infer(struct graph *g, struct node *n)
{
	return pick_output(g, n, n->param);
}

static enum status pick_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct walk *w = n->param;
	const size_t size = (size_t)dtype_bytes(n->in[0]->dtype);
	for (int64_t t = 0; t < walk_total(w); t++) {
		int64_t at, k;
		walk_place(w, n->in[1], t, &at, &k);
		memcpy((char *)out[0] + (size_t)k * size,
			(const char *)n->in[0]->data + (size_t)at * size, size);
	}
	return ST_OK;
}

static enum status pick_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct walk *w = n->param;
	const struct attr shape = data_ints(g, "shape", w->data_rank, w->data_dim);
	/* the attributes tell the walk; those of GatherElements and GatherND differ in name */
	const struct attr attr[] = {
		{.name = "reduction", .kind = ATTR_STRING, .s = "add"},
		ATTR_I("axis", node_int(n, "axis", 0)),
		ATTR_I("batch_dims", node_int(n, "batch_dims", 0)),
	};
	if (!want[0])
		return ST_OK;
	struct tensor *in[] = {graph_op(g, "stint.Zeros", 0, NULL, 1, &shape), n->in[1], dy[0]};
	dx[0] = graph_param_op(g, "stint.Put", 3, in, 3, attr, w);
	return g->failed;
}

static enum status pick_emit(struct emit *e, const struct node *n)
{
	const struct walk *w = n->param;
	const int64_t piece = call_piece(e, n->out[0]->numel);
	struct call_field field[WALK_FIELDS];
	const struct call_struct walk = walk_struct(w, field);
	TRY(walk_check_call(e, n, w, 1));
	return call_kernel(e, &(struct kernel_call){.file = "pick.h",
				      .function = "pick",
				      .ntype = 1,
				      .type = {n->in[0]},
				      .turns = walk_turns(w, true, piece),
				      .work = 4 * (double)walk_total(w),
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1),
					      ARG_STRUCT(&walk), ARG_SIZE(piece))});
}

#define PICK(onnx, ...)                                                                            \
	{                                                                                          \
		.name = onnx, .min_in = 2, .traits = OP_CHECKED, .fold = pick_fold,                \
		.grad = pick_grad, .cost = gather_cost, .emit_c = pick_emit, __VA_ARGS__           \
	}

/* clang-format off */
const struct op_def ops_gathernd[] = {
	PICK("GatherElements", .since = 11, .infer = elements_infer,
		.example = EXAMPLES({.in = "a,b,c a,b,c:i64<2", .attr = "axis=2"},
			{.in = "a,6,c a,d,c:i64<6", .attr = "axis=-2"},
			{.in = "5,70 3,69:i64<5"}, {.in = "7 4:i64<7"},
			{.in = "4,3,5,2 3,2,4,1:i64<5", .attr = "axis=2"},
			{.in = "5 =[-1,0,-5,4,4]"}, {.in = "6:i64<9 =[-1,2]"},
			{.in = "4,3:bool 2,3:i64<4"})),
	PICK("GatherND", .since = 11, .infer = rows_infer,
		.example = EXAMPLES({.in = "4,a,5 b,2:i64<2"}, {.in = "4,a,b c,d,1:i64<4"},
			{.in = "a,5,6,b a,c,2:i64<5", .attr = "batch_dims=1"},
			{.in = "2,3,4 2,3,1:i64<4", .attr = "batch_dims=2"},
			{.in = "4,5,3 2,3:i64<3"}, {.in = "5,70 4,1:i64<5"},
			{.in = "5 2,1:i64<5", .attr = "batch_dims=0"},
			{.in = "4,2:i64<9 2,3,1:i64<4"}, {.in = "4,2:bool 3,2:i64<2"})),
	/* (data, indices): the picks of a node whose walk it is given */
	PICK("stint.Pick", .infer = pick_infer),
	{.name = NULL},
};
/* clang-format on */
