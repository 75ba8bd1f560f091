/* Cross-entropy, by PyTorch's formulas (torch.nn.CrossEntropyLoss): from scores of classes to the
 * loss in one kernel, against labels or probabilities. Of each row its log-sum-exp is kept, from
 * which the gradient is made. Sums run in double over per-row values, in row order, so that threads
 * do not matter. */
#include "ops/crossentropy/crossentropy_emit.h"
#include "ops/crossentropy/crossentropy_op.h"
#include "ops/crossentropy/labels_op.h"

bool crossentropy_is_soft(const struct tensor *target)
{
	return dtype_is_real(target->dtype);
}

static enum status entropy_target(struct graph *g, const struct tensor *y, int nattr,
	const struct attr *attr, enum dtype *type, int *rank, int64_t *dim)
{
	const struct node given = {.nattr = nattr, .attr = attr};
	TRY(label_target(g, y, nattr, attr, type, rank, dim));
	if (strcmp(node_string(&given, "target", ""), "probabilities") != 0)
		return ST_OK;
	return same_target(g, y, nattr, attr, type, rank, dim);
}

static enum status entropy_infer(struct graph *g, struct node *n)
{
	const int axis = label_axis(n->in[X], node_option(n, "axis"));
	TRY(label_infer(g, n, axis, n->in[TARGET], node_input(n, WEIGHT)));
	int64_t rows = n->in[X]->numel / n->in[X]->dim[axis];
	return n->nout > 1 ? data_output(g, n, 1, n->in[X]->dtype, 1, &rows) : ST_OK;
}

/* An exponential counts as 20 operations. */
static struct op_cost entropy_cost(const struct node *n)
{
	double elements = 0;
	struct op_cost c = {0, (double)tensor_bytes(n->out[0])};
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		c.bytes += (double)tensor_bytes(n->in[i]);
		elements = fmax(elements, (double)n->in[i]->numel);
	}
	c.flops = 25 * elements;
	return c;
}

/* A row's loss, in double. */
static int64_t entropy_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	const struct label_view v = label_view(n, n->in[X]);
	return label_count(&v) * 8;
}

/* As kernels/softmax_columns.h has it. */
enum { COLUMNS = 64 };

struct call_arg crossentropy_lse(const struct node *n)
{
	return n->nout > 1 && n->out[1] ? ARG_Y(1) : ARG_NULL;
}

static enum status entropy_rows(struct emit *e, const struct node *n, const struct label_call *c)
{
	const bool soft = c->in.label < 0, rows = c->v.inner == 1;
	return call_kernel(
		e, &(struct kernel_call){.file = "crossentropy.h",
			   .function = soft ? rows ? "entropy_aimed_rows" : "entropy_aimed_columns"
				       : rows ? "entropy_label_rows"
					      : "entropy_label_columns",
			   .ntype = 1,
			   .type = {n->in[X]},
			   .turns = c->v.rows * div_up(c->v.inner, COLUMNS),
			   .work = (double)n->in[X]->numel * 8,
			   .args = CALL_ARGS(ARG_SCRATCH(0), crossentropy_lse(n), ARG_X(X),
				   ARG_X(TARGET), label_arg(c->in.control), label_arg(c->in.weight),
				   ARG_STRUCT(&c->targets))});
}

static void entropy_label_call(struct label_call *c, const struct node *n)
{
	label_call(c, n, n->in[X],
		(struct label_inputs){crossentropy_is_soft(n->in[TARGET]) ? -1 : TARGET,
			label_input(n, CONTROL), label_input(n, WEIGHT)});
}

static enum status entropy_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	entropy_label_call(&c, n);
	return label_losses(e, n, &c, entropy_rows);
}

static enum status entropy_cuda_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	entropy_label_call(&c, n);
	return label_cuda_losses(e, n, &c, crossentropy_cuda_rows);
}

/* --- The gradient --- */

/* x in a shape with one row: a number a row, to be broadcast along the classes. */
static struct tensor *along_classes(
	struct graph *g, const struct node *n, struct tensor *rows, const struct tensor *x)
{
	int64_t dim[RANK_MAX];
	memcpy(dim, x->dim, sizeof dim);
	dim[label_axis(x, node_option(n, "axis"))] = 1;
	return graph_reshape(g, rows, x->rank, dim);
}

/* Probabilities that are computed: only in nodes that stand for a spelled-out form. */
static struct tensor *target_gradient(
	struct graph *g, const struct node *n, struct tensor *dloss, struct tensor *lse)
{
	struct tensor *x = n->in[X];
	if (label_reduction(n) != NONE || node_option(n, "label_smoothing") != 0 ||
		node_input(n, WEIGHT)) {
		node_fail(g, n, NULL, "has no gradient of the probabilities that it aims at");
		g->failed = ST_INVALID;
		return NULL;
	}
	return OP2(g, "Mul", along_classes(g, n, dloss, x),
		OP2(g, "Sub", along_classes(g, n, lse, x), x));
}

static enum status entropy_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct tensor *dloss = dy[0];
	if (!dloss) {
		int64_t *none = ARENA_ARRAY(g->arena, int64_t, n->out[0]->numel);
		dloss = none ? graph_constant(g, "stint.none", g->real, n->out[0]->rank,
				       n->out[0]->dim, none)
			     : NULL;
		if (!dloss)
			return diag_nomem(g->diag);
	}
	if (n->nin > WEIGHT && want[WEIGHT])
		return node_fail(
			g, n, "freeze them with --freeze", "has no gradient of its class weights");
	struct tensor *in[] = {dloss, n->in[X], n->out[1], n->in[TARGET], node_input(n, CONTROL),
		node_input(n, WEIGHT), dy[1]};
	if (want[X])
		dx[X] = graph_op(g, "stint.CrossEntropyGrad", 7, in, n->nattr, n->attr);
	if (want[TARGET] && crossentropy_is_soft(n->in[TARGET]))
		dx[TARGET] = target_gradient(g, n, dloss, n->out[1]);
	return g->failed;
}

static enum status like_scores(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[DX]->dtype, n->in[DX]->rank, n->in[DX]->dim);
}

static void grad_label_call(struct label_call *c, const struct node *n)
{
	label_call(c, n, n->in[DX],
		(struct label_inputs){crossentropy_is_soft(n->in[DTARGET]) ? -1 : DTARGET,
			label_input(n, DCONTROL), label_input(n, DW)});
}

static enum status entropy_grad_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	grad_label_call(&c, n);
	const bool soft = c.in.label < 0, rows = c.v.inner == 1;
	return call_kernel(
		e, &(struct kernel_call){.file = "crossentropy_grad.h",
			   .function = soft   ? "entropy_aimed_grad"
				       : rows ? "entropy_label_grad_rows"
					      : "entropy_label_grad_columns",
			   .ntype = 2,
			   .type = {n->in[DX], n->out[0]},
			   .turns = soft   ? c.v.rows * div_up(c.v.inner, COLUMNS)
				    : rows ? c.v.rows
					   : c.v.rows * c.v.classes,
			   .work = (double)n->in[DX]->numel * 8,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(DX), ARG_IF(soft, ARG_X(DTARGET)),
				   ARG_X(DLOSS), ARG_X(LSE), ARG_X_OR_NULL(n, DLSE),
				   ARG_IF(!soft, ARG_X(DTARGET)), label_arg(c.in.control),
				   label_arg(c.in.weight), ARG_STRUCT(&c.targets), label_how(n))});
}

static enum status entropy_grad_cuda_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	grad_label_call(&c, n);
	label_tensors(&c);
	TRY(label_cuda_count(e, n, &c));
	return crossentropy_grad_cuda(e, n, &c);
}

static int64_t grad_cuda_workspace(const struct node *n, const struct target *t)
{
	return crossentropy_is_soft(n->in[DTARGET]) ? 0 : label_cuda_workspace(n, t);
}

/* --- Both in one, on a GPU: scores are read once --- */

/* Of labels that are no more than that, of classes that are neighbours. */
static enum status entropy_join(
	struct graph *g, const struct node *n, const struct node *first, struct node **both)
{
	struct tensor *x = n->in[DX];
	if (!g->target->cuda || !node_is(first, "stint.CrossEntropy") || first->in[X] != x ||
		crossentropy_is_soft(n->in[DTARGET]) || node_input(n, DW) || node_input(n, DLSE) ||
		label_view(n, x).inner != 1)
		return ST_OK;
	*both = graph_op_node(g, "stint.CrossEntropyBoth", BOTH_CONTROL + 1,
		(struct tensor *[]){x, n->in[DTARGET], n->in[DLOSS], node_input(n, DCONTROL)},
		n->nattr, n->attr, NULL);
	return g->failed;
}

static enum status both_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[X];
	TRY(label_infer(g, n, label_axis(x, node_option(n, "axis")), n->in[TARGET], NULL));
	return data_output(g, n, 1, x->dtype, x->rank, x->dim);
}

/* Of narrow scores an element takes some 18 instructions (crossentropy.cuh). */
static struct op_cost both_cost(const struct node *n)
{
	const struct tensor *x = n->in[X];
	const double again = crossentropy_reads_again(n) ? (double)tensor_bytes(x) : 0;
	return (struct op_cost){
		(dtype_is_narrow(x->dtype) ? 18 : 50) * (double)x->numel, node_bytes(n) + again};
}

static int64_t both_workspace(const struct node *n, const struct target *t)
{
	return entropy_workspace(n, t) + label_cuda_workspace(n, t);
}

static enum status both_cuda_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	label_call(
		&c, n, n->in[X], (struct label_inputs){TARGET, label_input(n, BOTH_CONTROL), -1});
	c.count_at = entropy_workspace(n, e->g->target);
	label_tensors(&c);
	TRY(label_cuda_count(e, n, &c));
	return label_cuda_losses(e, n, &c, crossentropy_both_cuda);
}

static const struct op_option options[] = {{.name = "label_smoothing", .high = 1},
	{.name = "ignore_index", .value = -100}, {.name = "axis", .value = AXIS_AUTO},
	WEIGHTS_LIST("weight"), REDUCTION, {.name = "target", .words = "labels probabilities"},
	{.name = "chunk", .low = 0, .high = 1e9}, {.name = NULL}};

#define ALL_ROWS "=[0,0,1000000,0]"

/* clang-format off */
const struct op_def ops_crossentropy[] = {
	{.name = "stint.CrossEntropy", .min_in = 2, .max_in = 4, .min_out = 2, .max_out = 2,
		.traits = OP_CHECKED, .narrow_in = 1 << X, .infer = entropy_infer, .workspace = entropy_workspace, .cost = entropy_cost,
		.emit_c = entropy_emit, .emit_cuda = entropy_cuda_emit, .workspace_cuda = entropy_workspace, .grad = entropy_rule, .match = crossentropy_match, .chunk = crossentropy_chunk,
		.loss = &(const struct op_loss){"cross-entropy", .unwanted = GIVES_SOFTMAX, .target = entropy_target, .build = label_build}, .option = options,
		.example = EXAMPLES({.in = "a,B a:i64<5 " ALL_ROWS}, {.in = "3,50 3:i64<50 =[0,0,2,0]", .low = -8, .high = 8},
			{.in = "2,3,70 2,70:i64<3 =[0,0,1,0]", .attr = "axis=1 label_smoothing=0.1 ignore_index=0"},
			{.in = "4,6 4:i64<6 " ALL_ROWS, .attr = "label_smoothing=0.2 ignore_index=2.0"},
			{.in = "2,5,3,4 2,3,4:i64<5 " ALL_ROWS}, {.in = "2,3,6 2,3:i64<6 " ALL_ROWS},
			{.in = "4,6 4:i64<6 =[0,0,3,0]", .attr = "reduction=sum label_smoothing=0.2 ignore_index=2"},
			{.in = "5,3 5:i64<3 - =f[0.5,2.0,1.5]", .attr = "ignore_index=1"},
			{.in = "5,3 5:i64<3 - =f[0.5,2.0,1.5]", .attr = "label_smoothing=0.3 reduction=sum"},
			{.in = "2,3,70 2,70:i64<3 =[0,0,1,0] =f[0.5,2.0,1.5]", .attr = "axis=1 label_smoothing=0.1"},
			{.in = "a,3,c a,c:i64<3 - =f[0.5,2.0,1.5]", .attr = "axis=1 reduction=none"},
			{.in = "a,B a:i64<7 - -", .attr = "reduction=none lenient=1"},
			{.in = "a,B a,B " ALL_ROWS, .attr = "target=probabilities"},
			{.in = "4,3 4,3 =[0,0,3,0] =f[0.5,2.0,1.5]", .attr = "label_smoothing=0.3 reduction=sum"},
			{.in = "2,3,70 2,3,70 =[0,0,1,0] =f[0.5,2.0,1.5]", .attr = "axis=1 label_smoothing=0.1"},
			{.in = "a,b,C a,b,C", .attr = "axis=1 reduction=none"},
			{.in = "a,B a,B", .attr = "reduction=none"}, {.in = "a,B a:i64<5", .attr = "reduction=none"},
			{.in = "a,B a:i64<5 " ALL_ROWS, .attr = "label_smoothing=0.1", .nout = 2},
			{.in = "9,1100 9:i64<1100 =[0,0,7,0]", .low = -8, .high = 8}, {.in = "3,1031 3:i64<1031", .attr = "reduction=sum label_smoothing=0.1 ignore_index=1"},
			{.in = "2,33000 2:i64<33000"})},
	{.name = "stint.CrossEntropyGrad", .min_in = 4, .max_in = 7, .infer = like_scores, .npair = 1,
		.pair = {{0, DX}}, .narrow_in = 1 << DX, .narrow_out = 1, .emit_c = entropy_grad_emit, .emit_cuda = entropy_grad_cuda_emit, .workspace_cuda = grad_cuda_workspace, .cost = entropy_cost, .join = entropy_join, .joins = LSE, .option = options},
	{.name = "stint.CrossEntropyBoth", .min_in = 3, .max_in = 4, .min_out = 2, .max_out = 2, .traits = OP_CHECKED, .infer = both_infer, .npair = 1,
		.pair = {{1, X}}, .narrow_in = 1 << X, .narrow_out = 1 << 1, .emit_cuda = both_cuda_emit, .workspace_cuda = both_workspace, .cost = both_cost, .option = options},
	{0},
};
/* clang-format on */
