/* What depends on all gradients at once: clipping by their norm, and the scale of the loss. */
#include <math.h>

#include "codegen/call.h"
#include "graph/op_optimizer.h"
#include "ops/data.h"

/* Gradients are summed in parts of so many elements, each in a tree of lanes: the parts are the
 * same whatever the threads. */
enum { PART = 1024 };
/* CUDA: a warp's parts, in so many blocks. */
enum { WARP_PART = 8192, MOST_BLOCKS = 2048, BLOCK = 256 };

static int64_t parts_of(const struct tensor *x)
{
	return (x->numel + PART - 1) / PART;
}

/* A double for each part of the gradients, which are the inputs from `first` on. */
static int64_t parts_workspace(const struct node *n, int first)
{
	int64_t parts = 0;
	for (int k = first; k < n->nin; k++)
		parts += parts_of(n->in[k]);
	return parts * (int64_t)sizeof(double);
}

static int64_t warp_parts_of(const struct tensor *x)
{
	return div_up(x->numel, WARP_PART);
}

/* What `function` makes of the parts of the inputs from `first` on, into scratch: so many. */
static enum status parts_call(
	struct emit *e, const struct node *n, int first, const char *function, int64_t *parts)
{
	*parts = 0;
	for (int k = first; k < n->nin; k++) {
		const struct tensor *x = n->in[k];
		if (x->numel == 0)
			continue;
		TRY(call_kernel(
			e, &(struct kernel_call){.file = "gradients.h",
				   .function = function,
				   .turns = parts_of(x),
				   .work = (double)x->numel * 2,
				   .args = CALL_ARGS(ARG_SCRATCH(*parts * (int64_t)sizeof(double)),
					   ARG_X(k), ARG_SIZE(x->numel))}));
		*parts += parts_of(x);
	}
	return ST_OK;
}

/* The same on a GPU, of all in one launch. */
static enum status parts_cuda(
	struct emit *e, const struct node *n, int first, bool squares, int64_t *parts)
{
	int64_t all = 0;
	for (int k = first; k < n->nin; k++)
		all += warp_parts_of(n->in[k]);
	*parts = 0;
	for (int k = first; k < n->nin; k++) {
		TRY(call_kernel(
			e, &(struct kernel_call){.file = "gradients.cuh",
				   .function = "warp_parts",
				   .tasks = all == 0 ? 1 : min64(div_up(all, 8), MOST_BLOCKS),
				   .threads = BLOCK,
				   .along = k > first,
				   .nconstant = 1,
				   .constant = {squares},
				   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(k),
					   ARG_SIZE(n->in[k]->numel), ARG_SIZE(*parts))}));
		*parts += warp_parts_of(n->in[k]);
	}
	return ST_OK;
}

static struct op_cost parts_cost(const struct node *n)
{
	struct op_cost c = {0, 0};
	for (int k = 0; k < n->nin; k++) {
		c.flops += 2 * (double)n->in[k]->numel;
		c.bytes += (double)tensor_bytes(n->in[k]);
	}
	return c;
}

/* --- Clipping: torch.nn.utils.clip_grad_norm_ --- */

static enum status clip_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, g->real, 0, NULL);
}

static int64_t clip_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return parts_workspace(n, 0);
}

static enum status clip_emit(struct emit *e, const struct node *n)
{
	int64_t parts;
	TRY(parts_call(e, n, 0, "square_parts", &parts));
	return call_kernel(e, &(struct kernel_call){.file = "gradients.h",
				      .function = "clip_scale",
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_SIZE(parts),
					      ARG_DOUBLE(node_float(n, "max_norm", 1)))});
}

static enum status clip_cuda_emit(struct emit *e, const struct node *n)
{
	int64_t parts;
	TRY(parts_cuda(e, n, 0, true, &parts));
	return call_kernel(e, &(struct kernel_call){.file = "gradients.cuh",
				      .function = "clip_scale",
				      .tasks = 1,
				      .threads = BLOCK,
				      .shared = {"gradient_wides"},
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_SIZE(parts),
					      ARG_DOUBLE(node_float(n, "max_norm", 1)))});
}

static enum status clip_fold(struct graph *g, const struct node *n, void *const *out)
{
	double total = 0;
	for (int k = 0; k < n->nin; k++)
		for (int64_t i = 0; i < n->in[k]->numel; i++)
			total += tensor_real(n->in[k], i) * tensor_real(n->in[k], i);
	const double scale = node_float(n, "max_norm", 1) / (sqrt(total) + 1e-6);
	value_set(g->real, out[0], 0, scale > 1 ? 1 : scale);
	return ST_OK;
}

/* --- Dynamic loss scaling: torch.amp.GradScaler, with its defaults ---
 *
 * Small gradients are lost where values have the range of F16. So the loss's gradient is not 1 but
 * a scale, the parameters' gradients are divided by it, and where some is not finite, no parameter
 * is updated and the scale is halved. After 2000 updates in a row it is doubled.
 *
 * The state is [scale, updates since it changed, steps skipped]; a scale of 0, as states start,
 * stands for 65536. */
enum { STATE_NUMBERS = 3 };

static enum status scale_state(struct graph *g, const struct node *n)
{
	if (n->in[0]->rank != 1 || n->in[0]->dim[0] != STATE_NUMBERS)
		return node_fail(g, n, NULL, "its state has three numbers");
	return ST_OK;
}

/* The scale, and what to multiply gradients by. */
static enum status scale_infer(struct graph *g, struct node *n)
{
	TRY(scale_state(g, n));
	TRY(data_output(g, n, 0, g->real, 0, NULL));
	return data_output(g, n, 1, g->real, 0, NULL);
}

static enum status scale_emit(struct emit *e, const struct node *n)
{
	(void)n;
	return call_kernel(e, &(struct kernel_call){.file = "gradients.h",
				      .function = "gradient_scales",
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(0))});
}

/* (state, control, gradients...): control for the updates. Its step count leaves out the steps
 * skipped, and its last number says that this one is. */
enum { CHECK_STATE, CHECK_CONTROL, CHECK_GRADIENTS };

static enum status check_infer(struct graph *g, struct node *n)
{
	TRY(scale_state(g, n));
	const struct tensor *control = n->in[CHECK_CONTROL];
	return data_output(g, n, 0, DT_I64, control->rank, control->dim);
}

static int64_t check_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return parts_workspace(n, CHECK_GRADIENTS);
}

static enum status check_emit(struct emit *e, const struct node *n)
{
	int64_t parts;
	TRY(parts_call(e, n, CHECK_GRADIENTS, "zero_parts", &parts));
	return call_kernel(
		e, &(struct kernel_call){.file = "gradients.h",
			   .function = "check_gradients",
			   .once = true,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(CHECK_STATE), ARG_X(CHECK_CONTROL),
				   ARG_SCRATCH(0), ARG_SIZE(parts))});
}

static enum status check_cuda_emit(struct emit *e, const struct node *n)
{
	int64_t parts;
	TRY(parts_cuda(e, n, CHECK_GRADIENTS, false, &parts));
	return call_kernel(
		e, &(struct kernel_call){.file = "gradients.cuh",
			   .function = "check_gradients",
			   .tasks = 1,
			   .threads = BLOCK,
			   .shared = {"gradient_wides"},
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(CHECK_STATE), ARG_X(CHECK_CONTROL),
				   ARG_SCRATCH(0), ARG_SIZE(parts))});
}

static enum status scale_update_infer(struct graph *g, struct node *n)
{
	TRY(scale_state(g, n));
	return data_output(g, n, 0, g->real, 1, n->in[0]->dim);
}

static enum status scale_update_emit(struct emit *e, const struct node *n)
{
	(void)n;
	return call_kernel(e, &(struct kernel_call){.file = "gradients.h",
				      .function = "update_scale",
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1))});
}

const struct op_def ops_gradients[] = {
	{.name = "stint.ClipScale",
		.role = ROLE_CLIP_SCALE,
		.min_in = 1,
		.max_in = -1,
		.traits = OP_STOP,
		.infer = clip_infer,
		.fold = clip_fold,
		.cost = parts_cost,
		.workspace = clip_workspace,
		.emit_c = clip_emit,
		.emit_cuda = clip_cuda_emit,
		.workspace_cuda = clip_workspace,
		/* no gradient: the tolerance leaves only the output to be compared */
		.example = EXAMPLES(
			{.in = "3,5 700,3 ()", .attr = "max_norm=0.5", .tolerance = 1e6},
			{.in = "2,512", .attr = "max_norm=1000.0"})},
	{.name = "stint.LossScale",
		.role = ROLE_LOSS_SCALE,
		.min_in = 1,
		.min_out = 2,
		.max_out = 2,
		.infer = scale_infer,
		.emit_c = scale_emit},
	{.name = "stint.LossScaleCheck",
		.role = ROLE_LOSS_SCALE_CHECK,
		.min_in = CHECK_GRADIENTS + 1,
		.max_in = -1,
		.infer = check_infer,
		.cost = parts_cost,
		.workspace = check_workspace,
		.emit_c = check_emit,
		.emit_cuda = check_cuda_emit,
		.workspace_cuda = check_workspace},
	{.name = "stint.LossScaleUpdate",
		.role = ROLE_LOSS_SCALE_UPDATE,
		.min_in = 2,
		.traits = OP_UPDATE,
		.infer = scale_update_infer,
		.emit_c = scale_update_emit,
		.npair = 1,
		.pair = {{0, 0}}},
	{0},
};
