/* Connectionist temporal classification (torch.nn.CTCLoss): kernels/ctc.h. */
#include <inttypes.h>

#include "ops/crossentropy/labels_op.h"

enum { X, LABEL, CONTROL };           /* the loss's inputs */
enum { DLOSS, DX, DLABEL, DCONTROL }; /* its gradient's */

/* Sizes of log-probabilities x, [T, N, C], or [N, T, C] by the option batch_first. */
struct sizes {
	int64_t steps, batch, classes, step, sample;
};

static struct sizes sizes_of(const struct tensor *x, bool batch_first)
{
	const int64_t *d = x->dim, row = d[2];
	return batch_first ? (struct sizes){d[1], d[0], row, row, d[1] * row}
			   : (struct sizes){d[0], d[1], row, d[1] * row, row};
}

static struct sizes node_sizes(const struct node *n, const struct tensor *x)
{
	return sizes_of(x, node_option(n, "batch_first") != 0);
}

/* Column 0 of the labels holds how many steps a sample has. */
static bool is_timed(const struct node *n)
{
	return node_option(n, "input_lengths") != 0;
}

static enum status ctc_target(struct graph *g, const struct tensor *y, int nattr,
	const struct attr *attr, enum dtype *type, int *rank, int64_t *dim)
{
	const struct node given = {.nattr = nattr, .attr = attr};
	char shape[200];
	if (y->rank != 3 || y->numel == 0 || !dtype_is_real(y->dtype))
		return diag_fail(g->diag, ST_INVALID, &(struct where){g->file, y->name, "tensor"},
			"it takes logarithms of probabilities, [steps, samples, classes], or with "
			"ctc:batch_first=1 [samples, steps, classes]",
			"is no output for the loss ctc: its shape is %s",
			tensor_shape_text(y, shape));
	const struct sizes s = sizes_of(y, node_float(&given, "batch_first", 0) != 0);
	const int64_t room = (int64_t)node_float(&given, "target_length", 0);
	*type = DT_I64;
	*rank = 2;
	dim[0] = s.batch;
	dim[1] = (room > 0 ? room : s.steps) + (node_float(&given, "input_lengths", 0) != 0);
	return ST_OK;
}

/* Doubles of a worker: states of `rows` steps. */
static bool states_bytes(int64_t rows, int64_t room, int64_t *bytes)
{
	return size_mul(room, 2, bytes) && size_add(*bytes, 1, bytes) &&
	       size_mul(*bytes, rows, bytes) && size_mul(*bytes, (int64_t)sizeof(double), bytes);
}

static enum status ctc_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[X], *label = n->in[LABEL];
	int64_t bytes;
	if (x->rank != 3 || x->numel == 0 || !dtype_is_real(x->dtype) || label->dtype != DT_I64 ||
		label->rank != 2)
		return node_fail(g, n, NULL, "takes log-probabilities [T, N, C] and labels [N, S]");
	const struct sizes s = node_sizes(n, x);
	if (label->dim[0] != s.batch || label->dim[1] < 1 + is_timed(n))
		return node_fail(g, n, NULL, "has labels of %" PRId64 " samples for %" PRId64,
			label->dim[0], s.batch);
	if (node_option(n, "blank") >= (double)s.classes)
		return node_fail(g, n, NULL, "blank is %g, of %" PRId64 " classes",
			node_option(n, "blank"), s.classes);
	if (!states_bytes(s.steps + 1, label->dim[1], &bytes) ||
		!size_mul(bytes, g->target->threads, &bytes))
		return node_fail(g, n, NULL, "is too large");
	return data_output(g, n, 0, x->dtype, 0, NULL);
}

static int64_t own_bytes(const struct node *n, const struct tensor *label)
{
	const bool grad = n->out[0]->rank > 0;
	int64_t bytes = 0;
	states_bytes(grad ? node_sizes(n, n->in[DX]).steps + 1 : 1, label->dim[1], &bytes);
	return bytes; /* which ctc_infer has seen to fit */
}

static int64_t ctc_workspace(const struct node *n, const struct target *t)
{
	return n->in[LABEL]->dim[0] * (int64_t)sizeof(double) +
	       t->threads * own_bytes(n, n->in[LABEL]);
}

static int64_t grad_workspace(const struct node *n, const struct target *t)
{
	return t->threads * own_bytes(n, n->in[DLABEL]);
}

/* A state of a step costs three exponentials and a logarithm; the gradient's three times that. */
static struct op_cost ctc_cost(const struct node *n)
{
	const bool grad = n->out[0]->rank > 0;
	const struct tensor *x = n->in[grad ? DX : X], *label = n->in[grad ? DLABEL : LABEL];
	const struct sizes s = node_sizes(n, x);
	const double states = (double)s.steps * (double)s.batch * (2 * (double)label->dim[1] + 1);
	return (struct op_cost){(grad ? 240 : 80) * states,
		(double)tensor_bytes(x) * (grad ? 2 : 1) + (double)tensor_bytes(label) +
			(grad ? 32 * states : 0)};
}

#define SIZE_FIELDS(n, x, label)                                                                   \
	CALL_FIELDS({"steps", ARG_INT(node_sizes(n, x).steps)},                                    \
		{"batch", ARG_INT(node_sizes(n, x).batch)},                                        \
		{"classes", ARG_INT(node_sizes(n, x).classes)},                                    \
		{"room", ARG_INT((label)->dim[1] - is_timed(n))},                                  \
		{"step", ARG_INT(node_sizes(n, x).step)},                                          \
		{"sample", ARG_INT(node_sizes(n, x).sample)},                                      \
		{"blank", ARG_INT((int64_t)node_option(n, "blank"))},                              \
		{"zero_infinity", ARG_INT(node_option(n, "zero_infinity") != 0)},                  \
		{"timed", ARG_INT(is_timed(n))})

static struct call_arg mean_of(const struct node *n)
{
	const int reduction = (int)node_option(n, "reduction");
	return ARG_NAME(reduction == MEAN  ? "CTC_MEAN"
			: reduction == SUM ? "CTC_SUM"
					   : "CTC_SHARE");
}

static enum status ctc_emit(struct emit *e, const struct node *n)
{
	const struct call_struct c = {"struct ctc", "c", SIZE_FIELDS(n, n->in[X], n->in[LABEL])};
	const int64_t batch = n->in[LABEL]->dim[0];
	TRY(call_kernel(
		e, &(struct kernel_call){.file = "ctc.h",
			   .function = "check_ctc",
			   .once = true,
			   .checked = true,
			   .args = CALL_ARGS(ARG_X(LABEL), ARG_X(CONTROL), ARG_STRUCT(&c))}));
	TRY(call_kernel(
		e, &(struct kernel_call){.file = "ctc.h",
			   .function = "ctc_losses",
			   .turns = batch,
			   .work = ctc_cost(n).flops,
			   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(X), ARG_X(LABEL), ARG_X(CONTROL),
				   ARG_OWN(batch * (int64_t)sizeof(double),
					   own_bytes(n, n->in[LABEL])),
				   ARG_STRUCT(&c), mean_of(n))}));
	return call_kernel(e, &(struct kernel_call){.file = "ctc.h",
				      .function = "ctc_join",
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_X(CONTROL),
					      ARG_STRUCT(&c), mean_of(n))});
}

static enum status ctc_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[X] = graph_op(g, "stint.CtcGrad", 4,
		(struct tensor *[]){dy[0], n->in[X], n->in[LABEL], n->in[CONTROL]}, n->nattr,
		n->attr);
	return g->failed;
}

static enum status like_scores(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[DX]->dtype, n->in[DX]->rank, n->in[DX]->dim);
}

static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct call_struct c = {"struct ctc", "c", SIZE_FIELDS(n, n->in[DX], n->in[DLABEL])};
	return call_kernel(
		e, &(struct kernel_call){.file = "ctc.h",
			   .function = "ctc_grad",
			   .turns = n->in[DLABEL]->dim[0],
			   .work = ctc_cost(n).flops,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(DLOSS), ARG_X(DX), ARG_X(DLABEL),
				   ARG_X(DCONTROL), ARG_OWN(0, own_bytes(n, n->in[DLABEL])),
				   ARG_STRUCT(&c), mean_of(n))});
}

/* In micro-batches the samples' losses, each divided by its labels, are summed, and divided by the
 * whole batch's samples. */
static enum status ctc_build(struct graph *g, const struct op_def *op, const struct loss_inputs *in,
	struct tensor **loss)
{
	const struct node given = {.op = op, .nattr = in->nattr, .attr = in->attr};
	const struct loss_node node = {.nin = 3,
		.in = {in->output[0], in->target, in->control},
		.count = loss_count(g, in, in->whole->dim[0], 1),
		.summed = node_option(&given, "reduction") == SUM ? "sum" : "share"};
	TRY(g->failed);
	return loss_node(g, op, &node, in, loss);
}

static const struct op_option options[] = {{.name = "blank", .high = 1e9},
	{.name = "zero_infinity", .high = 1}, {.name = "batch_first", .high = 1},
	{.name = "target_length", .high = 1e9}, {.name = "input_lengths", .high = 1},
	{.name = "reduction", .high = SUM, .words = "mean sum share"}, {.name = NULL}};

#define ALL_ROWS " =[0,0,1000000,0]"

/* clang-format off */
const struct op_def ops_ctc[] = {
	{.name = "stint.Ctc", .min_in = 3, .traits = OP_CHECKED, .infer = ctc_infer, .cost = ctc_cost,
		.workspace = ctc_workspace, .workspace_cuda = ctc_workspace, .emit_c = ctc_emit, .grad = ctc_rule, 
		.loss = &(const struct op_loss){"ctc", .target = ctc_target, .build = ctc_build}, .option = options,
		.example = EXAMPLES({.in = "7,a,4 a,3:i64<4" ALL_ROWS}, {.in = "4,9,5 4,3:i64<5 =[0,0,3,0]", .attr = "batch_first=1 reduction=sum"},
			{.in = "6,4,3 4,2:i64<3" ALL_ROWS, .attr = "blank=2 reduction=share"},
			{.in = "2,5,3 5,3:i64<3" ALL_ROWS, .attr = "zero_infinity=1"}, {.in = "1,5,3 5,1:i64<3" ALL_ROWS},
			{.in = "6,2,9 2,5:i64<7" ALL_ROWS, .attr = "input_lengths=1"})},
	{.name = "stint.CtcGrad", .min_in = 4, .infer = like_scores, .cost = ctc_cost,
		.workspace = grad_workspace, .workspace_cuda = grad_workspace, .emit_c = grad_emit, .option = options},
	{0},
};
/* clang-format on */
