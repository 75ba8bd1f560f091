/* The loss of log-probabilities (torch.nn.NLLLoss), and ONNX's operators SoftmaxCrossEntropyLoss
 * and NegativeLogLikelihoodLoss, which come to it and to cross-entropy. */
#include <inttypes.h>

#include "ops/crossentropy/labels_op.h"
#include "ops/match.h"

enum { X, LABEL, CONTROL, WEIGHT };
enum { DLOSS, DLABEL, DCONTROL, DW }; /* the gradient's; the scores' sizes are an attribute */

static enum status nll_infer(struct graph *g, struct node *n)
{
	return label_infer(g, n, label_axis(n->in[X], node_option(n, "axis")), n->in[LABEL],
		node_input(n, WEIGHT));
}

static int64_t nll_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return n->in[LABEL]->numel * 8;
}

/* A number of every row is read, with its label. */
static struct op_cost nll_cost(const struct node *n)
{
	const double rows = (double)n->in[LABEL]->numel;
	return (struct op_cost){2 * rows, 72 * rows};
}

static enum status nll_rows(struct emit *e, const struct node *n, const struct label_call *c)
{
	const int64_t rows = label_count(&c->v);
	(void)n;
	return call_kernel(e, &(struct kernel_call){.file = "nll.h",
				      .function = "nll_rows",
				      .turns = rows,
				      .work = (double)rows * 4,
				      .args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(X), ARG_X(LABEL),
					      label_arg(c->in.control), label_arg(c->in.weight),
					      ARG_STRUCT(&c->targets))});
}

static void nll_label_call(struct label_call *c, const struct node *n)
{
	label_call(c, n, n->in[X],
		(struct label_inputs){LABEL, label_input(n, CONTROL), label_input(n, WEIGHT)});
}

static enum status nll_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	nll_label_call(&c, n);
	return label_losses(e, n, &c, nll_rows);
}

static enum status nll_cuda_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	nll_label_call(&c, n);
	return label_cuda_losses(e, n, &c, nll_rows);
}

static enum status nll_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct tensor *x = n->in[X];
	struct attr *attr = ARENA_ARRAY(g->arena, struct attr, n->nattr + 1);
	if (!attr)
		return diag_nomem(g->diag);
	if (n->nin > WEIGHT && want[WEIGHT])
		return node_fail(
			g, n, "freeze them with --freeze", "has no gradient of its class weights");
	if (n->nattr)
		memcpy(attr, n->attr, (size_t)n->nattr * sizeof *attr);
	attr[n->nattr] = data_ints(g, "sizes", x->rank, x->dim);
	dx[X] = graph_op(g, "stint.NllGrad", 4,
		(struct tensor *[]){
			dy[0], n->in[LABEL], node_input(n, CONTROL), node_input(n, WEIGHT)},
		n->nattr + 1, attr);
	return g->failed;
}

static enum status nll_grad_infer(struct graph *g, struct node *n)
{
	int rank;
	const int64_t *dim;
	TRY(node_ints(g, n, "sizes", -1, &rank, &dim));
	return data_output(g, n, 0, n->in[DLOSS]->dtype, rank, dim);
}

static void grad_label_call(struct label_call *c, const struct node *n)
{
	label_call(c, n, n->out[0],
		(struct label_inputs){DLABEL, label_input(n, DCONTROL), label_input(n, DW)});
}

static enum status nll_grad(
	struct emit *e, const struct node *n, const struct label_call *c, struct call_arg counted)
{
	return call_kernel(e, &(struct kernel_call){.file = "nll.h",
				      .function = "nll_grad",
				      .turns = c->v.rows * c->v.classes,
				      .work = (double)n->out[0]->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(DLOSS), ARG_X(DLABEL),
					      label_arg(c->in.control), label_arg(c->in.weight),
					      ARG_STRUCT(&c->targets), label_how(n), counted)});
}

static enum status nll_grad_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	grad_label_call(&c, n);
	return nll_grad(e, n, &c, ARG_NULL);
}

static enum status nll_grad_cuda_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	grad_label_call(&c, n);
	label_tensors(&c);
	TRY(label_cuda_count(e, n, &c));
	return nll_grad(e, n, &c, label_counted(n, &c));
}

/* --- ONNX's operators --- */

static bool is_scores(const struct node *n)
{
	return n->op->name[0] == 'S';
}

static enum status onnx_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *label = n->in[1];
	bool fits = x->rank >= 2 && label->rank == x->rank - 1 && label->dtype == DT_I64;
	for (int i = 0; fits && i < label->rank; i++)
		fits = label->dim[i] == x->dim[i ? i + 1 : 0];
	if (!fits) {
		char a[200], b[200];
		return node_fail(g, n, NULL, "labels of shape %s for scores of shape %s",
			tensor_shape_text(label, a), tensor_shape_text(x, b));
	}
	TRY(label_infer(g, n, label_axis(x, 1), label, node_input(n, 2)));
	return n->nout > 1 ? data_output(g, n, 1, x->dtype, x->rank, x->dim) : ST_OK;
}

static enum status onnx_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct attr attr[] = {ATTR_I("axis", 1),
		ATTR_I("ignore_index", node_int(n, "ignore_index", IGNORE_NOTHING)),
		{.name = "reduction",
			.kind = ATTR_STRING,
			.s = node_string(n, "reduction", "mean")}};
	struct node *m = graph_op_node(g, is_scores(n) ? "stint.CrossEntropy" : "stint.Nll",
		n->nin > 2 ? 4 : 2,
		(struct tensor *[]){in[0], in[1], NULL, n->nin > 2 ? in[2] : NULL}, 3, attr, NULL);
	if (!m)
		return g->failed;
	out[0] = m->out[0];
	if (n->nout > 1 && n->out[1]) {
		int64_t dim[RANK_MAX];
		memcpy(dim, in[0]->dim, sizeof dim);
		dim[1] = 1;
		out[1] = OP2(g, "Sub", in[0], graph_reshape(g, m->out[1], in[0]->rank, dim));
	}
	return g->failed;
}

/* NegativeLogLikelihoodLoss(LogSoftmax(x)): as one. */
static enum status onnx_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	if (!node_is(n, "NegativeLogLikelihoodLoss"))
		return ST_OK;
	struct tensor *in[] = {match_log_softmax(n->in[0], 1), n->in[1], node_input(n, 2)};
	if (in[0])
		*replace = graph_op(g, "SoftmaxCrossEntropyLoss", n->nin, in, n->nattr, n->attr);
	return g->failed;
}

static const struct op_option options[] = {{.name = "ignore_index", .value = -100},
	{.name = "axis", .value = AXIS_AUTO}, WEIGHTS_LIST("weight"), REDUCTION, {.name = NULL}};
static const struct op_option onnx_options[] = {
	{.name = "reduction", .words = "mean sum none"}, {.name = NULL}};

#define ALL_ROWS "=[0,0,1000000,0]"
#define WEIGHTS "=f[0.5,2.0,1.5]"

/* The class weights are settings: input 2. */
#define ONNX(onnx, ...)                                                                            \
	{                                                                                          \
		.name = onnx, .since = 12, .min_in = 2, .max_in = 3, .known = 1 << 2,              \
		.infer = onnx_infer, .lower = onnx_lower, .option = onnx_options, __VA_ARGS__      \
	}

/* clang-format off */
const struct op_def ops_nll[] = {
	{.name = "stint.Nll", .min_in = 2, .max_in = 4, .traits = OP_CHECKED, .infer = nll_infer,
		.workspace = nll_workspace, .cost = nll_cost, .emit_c = nll_emit, .emit_cuda = nll_cuda_emit, .workspace_cuda = nll_workspace, .grad = nll_rule,
		.loss = &(const struct op_loss){"nll", .unwanted = GIVES_SOFTMAX, .instead = "cross-entropy", .target = label_target, .build = label_build}, .option = options,
		.example = EXAMPLES({.in = "a,B a:i64<5 " ALL_ROWS}, {.in = "3,50 3:i64<50 =[0,0,2,0]"},
			{.in = "2,3,70 2,70:i64<3 =[0,0,1,0]", .attr = "axis=1 ignore_index=0"},
			{.in = "4,3 4:i64<3 =[0,0,3,0] " WEIGHTS, .attr = "reduction=sum ignore_index=2"},
			{.in = "a,3,b,c a,b,c:i64<3 - " WEIGHTS, .attr = "reduction=none"},
			{.in = "a,3 a:i64<3 - " WEIGHTS})},
	{.name = "stint.NllGrad", .min_in = 2, .max_in = 4, .infer = nll_grad_infer, .emit_c = nll_grad_emit,
		.emit_cuda = nll_grad_cuda_emit, .workspace_cuda = label_cuda_workspace, .option = options},
	ONNX("SoftmaxCrossEntropyLoss", .min_out = 1, .max_out = 2, .match = onnx_match,
		.example = EXAMPLES({.in = "a,B a:i64<5"}, {.in = "a,3,b a,b:i64<3 " WEIGHTS, .nout = 2},
			{.in = "5,3 5:i64<3 " WEIGHTS, .attr = "ignore_index=1 reduction=sum", .nout = 2},
			{.in = "2,3,2,3 2,2,3:i64<3", .attr = "ignore_index=0 reduction=none", .nout = 2})),
	ONNX("NegativeLogLikelihoodLoss",
		.example = EXAMPLES({.in = "a,B a:i64<5"}, {.in = "a,3,b a,b:i64<3 " WEIGHTS},
			{.in = "5,3 5:i64<3 " WEIGHTS, .attr = "ignore_index=1 reduction=sum"},
			{.in = "2,3,2,3 2,2,3:i64<3", .attr = "ignore_index=0 reduction=none"})),
	{0},
};
/* clang-format on */
