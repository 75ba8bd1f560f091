/* LSTM, GRU and RNN of ONNX: attributes, shapes, their lowering, and the gradients as graphs. */
#include "ops/recurrent/recurrent_op.h"

static struct recurrent *copy_of(struct graph *g, const struct recurrent *p)
{
	return arena_memdup(g->arena, p, 1, sizeof *p);
}

static bool is_integer(const struct tensor *t)
{
	return t->dtype == DT_I64;
}

/* --- The ONNX operators --- */

/* Input i of n, where present, is real (or, `integer`, a list of lengths) and has shape `dim`. */
static enum status check_input(struct graph *g, const struct node *n, int i, const char *name,
	bool integer, int rank, const int64_t *dim)
{
	const struct tensor *x = node_input(n, i);
	char is[200], want[200];
	if (!x)
		return ST_OK;
	struct tensor like = {.rank = rank};
	memcpy(like.dim, dim, (size_t)rank * sizeof *dim);
	if (integer ? !is_integer(x) : !dtype_is_real(x->dtype))
		return node_fail(
			g, n, NULL, "input %s must hold %s", name, integer ? "integers" : "reals");
	bool projected = i == 6 && x->rank == rank && x->dim[rank - 1] > dim[rank - 1];
	if (!tensor_same_shape(x, &like))
		return node_fail(g, n,
			projected ? "ONNX's LSTM has no projection: a file cannot hold PyTorch's "
				    "proj_size"
				  : NULL,
			"input %s has shape %s, not %s", name, tensor_shape_text(x, is),
			tensor_shape_text(&like, want));
	return ST_OK;
}

static enum status check_inputs(struct graph *g, const struct node *n, const struct recurrent *p)
{
	const int64_t d = p->directions, h = p->hidden, wide = p->gates * h;
	const int64_t state[3] = {p->batch_first ? p->batch : d, p->batch_first ? d : p->batch, h};
	TRY(check_input(g, n, F_XW, "X", false, 3, n->in[0]->dim));
	TRY(check_input(g, n, 1, "W", false, 3, (int64_t[]){d, wide, p->inputs}));
	TRY(check_input(g, n, 2, "R", false, 3, (int64_t[]){d, wide, h}));
	TRY(check_input(g, n, 3, "B", false, 2, (int64_t[]){d, 2 * wide}));
	TRY(check_input(g, n, 4, "sequence_lens", true, 1, &p->batch));
	TRY(check_input(g, n, 5, "initial_h", false, 3, state));
	TRY(check_input(g, n, 6, "initial_c", false, 3, state));
	return check_input(g, n, 7, "P", false, 2, (int64_t[]){d, 3 * h});
}

/* Everything that is multiplied later (rows, gates, bytes of workspace) stays within range. */
static bool fits(const struct recurrent *p)
{
	const int64_t factor[] = {p->directions, p->steps, p->batch, p->gates, p->hidden};
	int64_t all = 64 * (int64_t)sizeof(double);
	for (int i = 0; i < 5; i++)
		if (!size_mul(all, factor[i] > 0 ? factor[i] : 1, &all))
			return false;
	return true;
}

static enum status read_direction(struct graph *g, const struct node *n, struct recurrent *p)
{
	const char *direction = node_string(n, "direction", "forward");
	p->directions = !strcmp(direction, "bidirectional") ? 2 : 1;
	p->reverse = !strcmp(direction, "reverse");
	if (p->directions == 1 && !p->reverse && strcmp(direction, "forward") != 0)
		return node_fail(g, n, NULL,
			"direction is '%s'; forward, reverse and bidirectional are known",
			direction);
	return ST_OK;
}

static enum status read_node(struct graph *g, const struct node *n, struct recurrent *p)
{
	static const int64_t gates[] = {4, 3, 1};
	const struct tensor *x = n->in[0], *r = n->in[2];
	if (x->rank != 3 || r->rank != 3 || x->dim[2] < 1 || r->dim[2] < 1)
		return node_fail(
			g, n, NULL, "X and R must have three axes, of which the last is not empty");
	p->cell = (enum recurrent_cell)n->op->variant;
	p->gates = gates[p->cell];
	p->batch_first = node_int(n, "layout", 0) != 0;
	p->steps = x->dim[p->batch_first];
	p->batch = x->dim[!p->batch_first];
	p->inputs = x->dim[2];
	p->hidden = r->dim[2];
	p->reset_after = p->cell == CELL_GRU && node_int(n, "linear_before_reset", 0) != 0;
	p->input_forget = p->cell == CELL_LSTM && node_int(n, "input_forget", 0) != 0;
	p->clip = node_float(n, "clip", 0);
	if (node_attr(n, "clip") && !(p->clip > 0))
		return node_fail(g, n, NULL, "clip is %g, not positive", p->clip);
	if (node_int(n, "hidden_size", p->hidden) != p->hidden)
		return node_fail(g, n, NULL, "hidden_size is %" PRId64 ", but R is for %" PRId64,
			node_int(n, "hidden_size", 0), p->hidden);
	TRY(read_direction(g, n, p));
	TRY(recurrent_activations(g, n, p));
	if (!fits(p))
		return node_fail(g, n, NULL, "its sizes are out of range");
	return check_inputs(g, n, p);
}

/* Y, and the last states. */
static enum status output(struct graph *g, struct node *n, int k, const struct recurrent *p)
{
	const int64_t d = p->directions, b = p->batch, t = p->steps, h = p->hidden;
	if (k > 0)
		return data_output(g, n, k, g->real, 3,
			p->batch_first ? (int64_t[]){b, d, h} : (int64_t[]){d, b, h});
	return data_output(g, n, k, g->real, 4,
		p->batch_first ? (int64_t[]){b, t, d, h} : (int64_t[]){t, d, b, h});
}

static enum status onnx_infer(struct graph *g, struct node *n)
{
	struct recurrent *p = ARENA_NEW(g->arena, struct recurrent);
	if (!p)
		return diag_nomem(g->diag);
	TRY(read_node(g, n, p));
	n->param = p;
	for (int k = 0; k < n->nout; k++)
		TRY(output(g, n, k, p));
	return ST_OK;
}

/* XW = X Wᵀ, for one direction as [rows, gates]. */
static struct tensor *input_product(
	struct graph *g, const struct recurrent *p, struct tensor *x, struct tensor *w)
{
	const struct attr attr[2] = {ATTR_I("transA", 0), ATTR_I("transB", 1)};
	x = graph_reshape(g, x, 2, (int64_t[]){p->steps * p->batch, p->inputs});
	if (p->directions == 1)
		w = graph_reshape(g, w, 2, (int64_t[]){p->gates * p->hidden, p->inputs});
	return graph_op(g, "stint.MatMul", 2, (struct tensor *[]){x, w}, 2, attr);
}

static enum status onnx_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	static const char *const kernel[] = {"stint.Lstm", "stint.Gru", "stint.Rnn"};
	struct recurrent *p = copy_of(g, n->param);
	if (!p)
		return diag_nomem(g->diag);
	p->keep = o->mode == LOWER_TRAIN;
	struct tensor *to[F_INPUTS] = {input_product(g, p, in[0], in[1])};
	for (int i = 2; i < n->nin; i++)
		to[i - 1] = in[i];
	struct node *m = graph_op_node(g, kernel[p->cell], F_INPUTS, to, 0, NULL, p);
	for (int k = 0; m && k < n->nout; k++)
		out[k] = m->out[k];
	return g->failed;
}

/* --- The kernels --- */

static enum status cell_infer(struct graph *g, struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t rows = p->steps * p->batch;
	TRY(output(g, n, F_Y, p));
	TRY(output(g, n, F_YH, p));
	if (p->cell == CELL_LSTM)
		TRY(output(g, n, F_YC, p));
	if (p->keep && p->cell != CELL_RNN)
		TRY(data_output(g, n, F_GATES, g->real, n->in[F_XW]->rank, n->in[F_XW]->dim));
	if (p->keep && (p->cell == CELL_LSTM || p->reset_after))
		TRY(data_output(
			g, n, F_AUX, g->real, 3, (int64_t[]){p->directions, rows, p->hidden}));
	return ST_OK;
}

static enum status cell_grad_infer(struct graph *g, struct node *n)
{
	const struct recurrent *p = n->param;
	const int64_t dim[3] = {p->directions, p->steps * p->batch, p->gates * p->hidden};
	const bool one = p->directions == 1; /* as XW */
	TRY(data_output(g, n, D_DXW, g->real, one ? 2 : 3, dim + one));
	TRY(output(g, n, D_DH0, p));
	return p->cell == CELL_LSTM ? output(g, n, D_DC0, p) : ST_OK;
}

/* The recurrent product, and what is done to a gate: some 30 operations. */
static struct op_cost cell_cost(const struct node *n)
{
	const struct recurrent *p = n->param;
	const double gates = (double)(p->directions * p->steps * p->batch * p->gates * p->hidden);
	return (struct op_cost){gates * (2 * (double)p->hidden + 30), node_bytes(n)};
}

/* A launch for each step on a GPU; a second one for GRU's reset state. */
static double cell_launches(const struct node *n)
{
	const struct recurrent *p = n->param;
	return (double)(p->steps + 1) * (recurrent_split(p) ? 2 : 1);
}

/* --- Gradients --- */

static struct tensor *param_op(
	struct graph *g, const char *op, int nin, struct tensor *const *in, const void *param)
{
	return graph_param_op(g, op, nin, in, 0, NULL, param);
}

/* Σ over all rows of aᵀ b: [directions, rows, m], [directions, rows, n] → [directions, m, n]. */
static struct tensor *rows_product(struct graph *g, struct tensor *a, struct tensor *b)
{
	const struct attr attr[2] = {ATTR_I("transA", 1), ATTR_I("transB", 0)};
	return graph_op(g, "stint.MatMul", 2, (struct tensor *[]){a, b}, 2, attr);
}

/* Columns [from, to) of the last of three axes. */
static struct tensor *columns(struct graph *g, struct tensor *x, int64_t from, int64_t to)
{
	struct tensor *in[4] = {x, graph_ints(g, 1, &from), graph_ints(g, 1, &to),
		graph_ints(g, 1, (int64_t[]){2})};
	return graph_op(g, "Slice", 4, in, 0, NULL);
}

/* dB: the same sum for both halves, unless `recurrent` is another gradient. */
static struct tensor *bias_grad(struct graph *g, struct tensor *dxw, struct tensor *recurrent)
{
	const struct attr last = ATTR_I("axis", 1);
	struct tensor *sum[2];
	for (int i = 0; i < 2; i++) {
		const struct attr attr[] = {
			data_ints(g, "axes", 1, (int64_t[]){1}), ATTR_I("keepdims", 0)};
		sum[i] = i && recurrent == dxw
				 ? sum[0]
				 : graph_op(g, "ReduceSum", 1, i ? &recurrent : &dxw, 2, attr);
	}
	return graph_op(g, "Concat", 2, sum, 1, &last);
}

/* dR of GRU whose hidden gate saw r h: two products. */
static struct tensor *reset_weight_grad(
	struct graph *g, const struct node *n, struct tensor *dxw, struct tensor *prev)
{
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	const struct attr middle = ATTR_I("axis", 1);
	struct tensor *reset = param_op(
		g, "stint.GruResetPrev", 2, (struct tensor *[]){prev, n->out[F_GATES]}, p);
	struct tensor *part[2] = {rows_product(g, columns(g, dxw, 0, 2 * h), prev),
		rows_product(g, columns(g, dxw, 2 * h, 3 * h), reset)};
	return graph_op(g, "Concat", 2, part, 1, &middle);
}

/* The node that walks back through time. */
static struct node *walk_back(struct graph *g, const struct node *n, struct tensor *const *dy)
{
	static const char *const kernel[] = {"stint.LstmGrad", "stint.GruGrad", "stint.RnnGrad"};
	const struct recurrent *p = n->param;
	struct tensor *in[D_INPUTS] = {
		[D_GATES] = n->out[p->cell == CELL_RNN ? F_Y : F_GATES],
		[D_R] = n->in[F_R],
		[D_DY] = dy[F_Y],
		[D_DYH] = dy[F_YH],
		[D_DYC] = dy[F_YC],
		[D_LEN] = n->in[F_LEN],
		[D_AUX] = n->out[F_AUX],
		[D_H0] = p->cell == CELL_GRU ? n->in[F_H0] : NULL,
		[D_C0] = n->in[F_C0],
		[D_P] = n->in[F_P],
		[D_Y] = p->cell == CELL_GRU ? n->out[F_Y] : NULL,
	};
	return graph_op_node(g, kernel[p->cell], D_INPUTS, in, 0, NULL, p);
}

static enum status cell_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct recurrent *p = n->param;
	const int64_t rows[3] = {p->directions, p->steps * p->batch, p->gates * p->hidden};
	struct node *m = walk_back(g, n, dy);
	if (!m)
		return g->failed;
	dx[F_XW] = m->out[D_DXW];
	dx[F_H0] = m->out[D_DH0];
	dx[F_C0] = m->out[D_DC0];
	struct tensor *dxw = graph_reshape(g, m->out[D_DXW], 3, rows), *recurrent = dxw;
	struct tensor *prev_in[3] = {n->out[F_Y], n->in[F_H0], n->in[F_LEN]};
	if (p->reset_after && (want[F_R] || want[F_B]))
		recurrent = param_op(
			g, "stint.GruResetGrad", 2, (struct tensor *[]){dxw, n->out[F_GATES]}, p);
	if (want[F_R]) {
		struct tensor *prev = param_op(g, "stint.RecurrentPrev", 3, prev_in, p);
		dx[F_R] = p->cell == CELL_GRU && !p->reset_after
				  ? reset_weight_grad(g, n, dxw, prev)
				  : rows_product(g, recurrent, prev);
	}
	if (want[F_B])
		dx[F_B] = bias_grad(g, dxw, recurrent);
	if (want[F_P])
		dx[F_P] = param_op(g, "stint.LstmPeepholeGrad", 4,
			(struct tensor *[]){dxw, n->out[F_AUX], n->in[F_C0], n->in[F_LEN]}, p);
	return g->failed;
}

/* --- Records --- */

/* clang-format off */
#define LSTM(more) "5,3,4 1,20,4 1,20,5" more
static const struct op_example lstm_examples[] = {
	{.in = "a,b,c 1,4d,c 1,4d,d 1,8d", .nout = 3},
	{.in = "a,b,c 2,4d,c 2,4d,d 2,8d b:i64<3 2,b,d 2,b,d 2,3d", .attr = "direction=bidirectional", .nout = 3},
	{.in = LSTM(""), .nout = 1},
	{.in = LSTM(""), .attr = "direction=reverse hidden_size=5", .nout = 2},
	{.in = LSTM(" 1,40 - - -"), .attr = "input_forget=1", .nout = 3},
	{.in = LSTM(" 1,40 - 1,3,5 1,3,5 1,15"), .attr = "input_forget=1 clip=0.4", .nout = 3},
	{.in = LSTM(" - 3:i64<6 1,3,5 1,3,5"), .attr = "direction=reverse", .nout = 3},
	{.in = LSTM(" - - - - 1,15"), .attr = "clip=0.3", .nout = 3},
	/* more rows than one sum of the peepholes has */
	{.in = "9,8,2 1,12,2 1,12,3 - - - - 1,9", .nout = 3},
	{.in = "3,5,4 1,20,4 1,20,5 1,40 3:i64<6 3,1,5 3,1,5", .attr = "layout=1", .nout = 3},
	{.in = "3,5,4 2,20,4 2,20,5 2,40 3:i64<6 3,2,5 3,2,5 2,15", .attr = "layout=1 direction=bidirectional", .nout = 3},
	{.in = LSTM(""), .attr = "activations=HardSigmoid,Softsign,Softplus activation_alpha=0.3 activation_beta=0.4", .nout = 3},
	{.in = "4,3,4 2,20,4 2,20,5 2,40", .attr = "direction=bidirectional activations=Sigmoid,Affine,Elu,HardSigmoid,ScaledTanh,LeakyRelu "
		"activation_alpha=0.9,0.8,0.25,0.7,0.1 activation_beta=0.1,0.45,1.2 clip=0.5", .nout = 3},
	{.in = "4,13,9 1,148,9 1,148,37 1,296", .nout = 3},
	{.in = "1,1,3 2,4,3 2,4,1 2,8", .attr = "direction=bidirectional", .nout = 3},
	{0},
};
#define GRU(more) "5,3,4 1,15,4 1,15,5" more
#define GRUS(attributes) \
	{.in = "a,b,c 1,3d,c 1,3d,d 1,6d", .attr = attributes, .nout = 2}, \
	{.in = "a,b,c 2,3d,c 2,3d,d 2,6d b:i64<3 2,b,d", .attr = attributes " direction=bidirectional", .nout = 2}, \
	{.in = GRU(""), .attr = attributes, .nout = 1}, \
	{.in = GRU(" - 3:i64<6 1,3,5"), .attr = attributes " direction=reverse hidden_size=5", .nout = 2}, \
	{.in = GRU(" 1,30"), .attr = attributes " clip=0.3", .nout = 2}, \
	{.in = "3,5,4 2,15,4 2,15,5 2,30 3:i64<6 3,2,5", .attr = attributes " layout=1 direction=bidirectional", .nout = 2}, \
	{.in = "4,3,4 2,15,4 2,15,5 2,30", .attr = attributes " direction=bidirectional activations=Sigmoid,Affine,HardSigmoid,ScaledTanh " \
		"activation_alpha=0.9,0.25,0.7 activation_beta=0.1,0.45,1.2 clip=0.5", .nout = 2}, \
	{.in = "4,13,9 1,111,9 1,111,37 1,222", .attr = attributes, .nout = 2}
static const struct op_example gru_examples[] = {
	GRUS("linear_before_reset=0"),
	GRUS("linear_before_reset=1"),
	{0},
};
#define RNN(more) "5,3,4 1,5,4 1,5,5" more
static const struct op_example rnn_examples[] = {
	{.in = "a,b,c 1,d,c 1,d,d 1,2d", .nout = 2},
	{.in = "a,b,c 2,d,c 2,d,d 2,2d b:i64<3 2,b,d", .attr = "direction=bidirectional", .nout = 2},
	{.in = RNN(""), .nout = 1},
	{.in = RNN(" - 3:i64<6 1,3,5"), .attr = "direction=reverse hidden_size=5", .nout = 2},
	{.in = "3,5,4 2,5,4 2,5,5 2,10 3:i64<6 3,2,5", .attr = "layout=1 direction=bidirectional", .nout = 2},
	{.in = RNN(" 1,10"), .attr = "activations=Relu,Relu clip=0.7", .nout = 2},
	{.in = RNN(" 1,10"), .attr = "activations=LeakyRelu", .nout = 2},
	{.in = RNN(" 1,10"), .attr = "activations=ThresholdedRelu activation_alpha=-0.5", .nout = 2},
	{.in = RNN(" 1,10"), .attr = "activations=Elu activation_alpha=0.6 clip=0.8", .nout = 2},
	{.in = RNN(" 1,10"), .attr = "activations=Softplus clip=0.8", .nout = 2},
	{.in = "4,3,4 2,5,4 2,5,5 2,10", .attr = "direction=bidirectional activations=Softsign,Sigmoid", .nout = 2},
	{.in = "4,13,9 1,37,9 1,37,37 1,74", .nout = 2},
	/* more terms and more rows than are packed at once */
	{.in = "2,3,4 1,260,4 1,260,260", .low = -0.1, .high = 0.1, .nout = 2},
	{.in = "2,200,3 1,4,3 1,4,4 1,8", .attr = "direction=reverse", .nout = 2},
	/* larger tiles (recurrent_cuda.c) */
	{.in = "2,264,1 1,64,1 1,64,64", .low = -0.3, .high = 0.3, .nout = 2},
	{0},
};

/* W, R, B and P are weights. */
#define ONNX(onnx, which, inputs, outputs, examples) \
	{ \
		.name = onnx, .apart = APART_SECOND, .variant = which, .weights = 2 + 4 + 8 + 128, .since = 7, .min_in = 3, .max_in = inputs, .min_out = 1, .max_out = outputs, \
		.traits = OP_CHECKED, .infer = onnx_infer, .fold = recurrent_fold, .lower = onnx_lower, \
		.cost = cell_cost, .example = examples \
	}
#define CELL(ours) \
	{ \
		.name = ours, .min_in = 2, .max_in = F_INPUTS, .min_out = F_OUTPUTS, .max_out = F_OUTPUTS, \
		.traits = OP_CHECKED, .infer = cell_infer, .grad = cell_rule, .cost = cell_cost, \
		.launches = cell_launches, .workspace = recurrent_workspace, .emit_c = recurrent_emit, .emit_cuda = recurrent_cuda_emit, .workspace_cuda = recurrent_cuda_workspace, .npair = 1, .pair = {{F_GATES, F_XW}} \
	}
#define GRADIENT(ours, ...) \
	{ \
		.name = ours, .min_in = 2, .max_in = D_INPUTS, .min_out = D_OUTPUTS, .max_out = D_OUTPUTS, \
		.infer = cell_grad_infer, .cost = cell_cost, .launches = cell_launches, .workspace = recurrent_grad_workspace, \
		.emit_c = recurrent_grad_emit, .emit_cuda = recurrent_grad_cuda_emit, .workspace_cuda = recurrent_grad_cuda_workspace, __VA_ARGS__ \
	}
#define PART(ours, least, most, infer_hook, emit_hook, ...) \
	{ \
		.name = ours, .min_in = least, .max_in = most, .infer = infer_hook, .emit_c = emit_hook, __VA_ARGS__ \
	}
const struct op_def ops_lstm[] = {
	ONNX("LSTM", CELL_LSTM, 8, 3, lstm_examples),
	CELL("stint.Lstm"),
	GRADIENT("stint.LstmGrad", .npair = 1, .pair = {{D_DXW, D_GATES}}),
	PART("stint.LstmPeepholeGrad", 2, 4, recurrent_peephole_infer, recurrent_peephole_emit,
		.emit_cuda = recurrent_peephole_cuda_emit, .workspace_cuda = recurrent_peephole_cuda_workspace),
	PART("stint.RecurrentPrev", 1, 3, recurrent_prev_infer, recurrent_prev_emit),
	{0},
};
const struct op_def ops_gru[] = {
	ONNX("GRU", CELL_GRU, 6, 2, gru_examples),
	CELL("stint.Gru"),
	GRADIENT("stint.GruGrad", .npair = 1, .pair = {{D_DXW, D_GATES}}),
	PART("stint.GruResetPrev", 2, 2, gru_part_infer, gru_reset_prev_emit, .npair = 1, .pair = {{0, 0}}),
	PART("stint.GruResetGrad", 2, 2, gru_part_infer, gru_reset_grad_emit, .npair = 1, .pair = {{0, 0}}),
	{0},
};
const struct op_def ops_rnn[] = {
	ONNX("RNN", CELL_RNN, 6, 2, rnn_examples),
	CELL("stint.Rnn"),
	GRADIENT("stint.RnnGrad"),
	{0},
};
/* clang-format on */
