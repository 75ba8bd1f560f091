/* What depends on all gradients at once: clipping by their norm, and the scale of the loss. */
#include <inttypes.h>
#include <math.h>

#include "ops/data.h"
#include "ops/lanes.h"
#include "ops/rows.h"

/* Gradients are summed in parts of so many elements, each in a tree of lanes: the parts are the
 * same whatever the threads. */
enum { PART = 1024 };
/* CUDA: a warp's parts, in so many blocks. */
enum { WARP_PART = 8192, MOST_BLOCKS = 2048 };

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

/* The parts of input k into part[at ...]. */
static int64_t part_emit(
	struct emit *e, const struct tensor *x, int k, int64_t at, const char *function, bool twice)
{
	const int64_t parts = parts_of(x), last = x->numel - (parts - 1) * PART;
	const char *place = parts > 1 ? emit_text(e, "x%d + p * %d, ", k, PART)
				      : emit_text(e, "x%d, ", k);
	if (parts > 1)
		emit_loops(e, (double)x->numel * 2, 1, &(struct emit_loop){"p", parts, 1});
	emit(e, "%s\tpart[%" PRId64 "%s] = (double)%s(%s%s", parts > 1 ? "\n\t" : "", at,
		parts > 1 ? " + p" : "", function, place, twice ? place : "");
	if (parts > 1 && last < PART)
		emit(e, "p < %" PRId64 " ? %d : %" PRId64 ");\n", parts - 1, PART, last);
	else
		emit(e, "%" PRId64 ");\n", last);
	return parts;
}

static const char warp_parts[] =
	"/* Parts of 8192 of x, a warp each: the sums of squares, or else 0 or NaN, which all that "
	"is "
	"not finite gives. All\n * gradients' parts are dealt out as one list, in which these are "
	"from `at` on. */\n"
	"template <bool SQUARES>\n"
	"static __device__ __forceinline__ void warp_parts(const real *x, int64_t n, double *part, "
	"int64_t at)\n"
	"{\n"
	"\tconst int64_t warps = THREADS / 32, lane = threadIdx.x % 32;\n"
	"\tfor (int64_t p = (THREAD / 32 + warps - at % warps) % warps; p * 8192 < n; p += warps) "
	"{\n"
	"\t\tconst int64_t end = MIN(p * 8192 + 8192, n);\n"
	"\t\treal sum = 0;\n"
	"\t\tfor (int64_t i = p * 8192 + lane; i < end; i += 32)\n"
	"\t\t\tsum += x[i] * (SQUARES ? x[i] : 0);\n"
	"\t\tconst double all = warp_sum((double)sum);\n"
	"\t\tif (lane == 0)\n"
	"\t\t\tpart[at + p] = all;\n"
	"\t}\n"
	"}\n";

/* "double total", in each thread of one block, whose first writes the results. */
static void parts_emit_cuda(struct emit *e, const struct node *n, int first, bool squares)
{
	int64_t at = 0;
	block_sums_helper(e);
	emit_helper(e, "warp_parts", warp_parts);
	emit(e, "\tdouble *const part = ws;\n");
	for (int k = first; k < n->nin; k++) {
		emit(e, "\twarp_parts<%s>(x%d, %" PRId64 ", part, %" PRId64 ");\n",
			squares ? "true" : "false", k, n->in[k]->numel, at);
		at += (n->in[k]->numel + WARP_PART - 1) / WARP_PART;
	}
	emit_launch(e, at < 8 * MOST_BLOCKS ? (at + 7) / 8 : MOST_BLOCKS, 256);
	emit_stage(e);
	emit_launch(e, 1, 256);
	emit(e, "\t__shared__ double wides[BLOCK_WARPS];\n");
	emit(e, "\tconst double *const part = ws;\n\tdouble total = 0;\n");
	emit(e, "\tfor (int64_t p = threadIdx.x; p < %" PRId64 "; p += 256)\n", at);
	emit(e, "\t\ttotal += part[p];\n\ttotal = block_sum(total, wides);\n");
	emit(e, "\tif (threadIdx.x != 0)\n\t\treturn;\n");
}

/* "double total", the sum of what `function` makes of each part and its length; `twice`: of the
 * part and itself. */
static void parts_emit(
	struct emit *e, const struct node *n, int first, const char *function, bool twice)
{
	int64_t at = 0;
	if (e->g->target->cuda) {
		parts_emit_cuda(e, n, first, twice);
		return;
	}
	emit(e, "\tdouble *part = ws, total = 0;\n");
	for (int k = first; k < n->nin; k++)
		if (n->in[k]->numel > 0)
			at += part_emit(e, n->in[k], k, at, function, twice);
	emit(e, "\tfor (int64_t p = 0; p < %" PRId64 "; p++)\n\t\ttotal += part[p];\n", at);
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
	parts_emit(e, n, 0, "dot_lanes", true);
	emit(e, "\tconst double scale = %.17g / (sqrt(total) + 1e-6);\n",
		node_float(n, "max_norm", 1));
	emit(e, "\ty0[0] = scale > 1 ? 1 : (real)scale; /* NaN stays NaN */\n");
	return ST_OK;
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
#define SCALE "\tconst real scale = x0[0] == 0 ? 65536 : x0[0];\n"

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
	emit(e, SCALE "\ty0[0] = scale;\n\ty1[0] = 1 / scale;\n");
	return ST_OK;
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

#define ZERO_TERM(i) "x[" i "] * 0"
static const char zero_lanes[] = "/* 0; NaN where one of n numbers is not finite. */\n"
				 "static real @name(const real *x, int64_t n)\n{\n" LANES_BODY(
					 "real", ZERO_TERM) "}\n";

static enum status check_emit(struct emit *e, const struct node *n)
{
	if (!e->g->target->cuda)
		emit_helper_on(e, "zero_lanes", zero_lanes, 0, NULL);
	parts_emit(e, n, CHECK_GRADIENTS, "zero_lanes", false);
	emit(e, "\ty0[0] = x1[0];\n\ty0[1] = x1[1] - (int64_t)x0[2];\n\ty0[2] = x1[2];\n");
	emit(e, "\ty0[3] = %stotal != 0; /* not finite */\n",
		e->g->target->cuda ? "x1[3] != 0 || " : "");
	return ST_OK;
}

static enum status scale_update_infer(struct graph *g, struct node *n)
{
	TRY(scale_state(g, n));
	return data_output(g, n, 0, g->real, 1, n->in[0]->dim);
}

static enum status scale_update_emit(struct emit *e, const struct node *n)
{
	(void)n;
	emit(e, SCALE "\tconst real good = x0[1] + 1, skipped = x0[2];\n");
	emit(e, "\tconst int bad = x1[3] != 0, grows = good >= 2000;\n");
	emit(e, "\tconst real other = bad ? scale / 2 : grows ? scale * 2 : scale;\n");
	emit(e, "\ty0[0] = other <= 0x1p127f ? other : scale;\n");
	emit(e, "\ty0[1] = bad || grows ? 0 : good;\n\ty0[2] = skipped + (real)bad;\n");
	return ST_OK;
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
		/* no gradient: the tolerance leaves only the output to be compared */
		.example = EXAMPLES(
			{.in = "3,5 700,3 ()", .attr = "max_norm=0.5", .tolerance = 1e6},
			{.in = "2,512", .attr = "max_norm=1000.0"})},
	{.name = "stint.LossScale",
		.role = ROLE_LOSS_SCALE,
		.min_in = 1,
		.max_in = 1,
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
		.emit_c = check_emit},
	{.name = "stint.LossScaleUpdate",
		.role = ROLE_LOSS_SCALE_UPDATE,
		.min_in = 2,
		.max_in = 2,
		.traits = OP_UPDATE,
		.infer = scale_update_infer,
		.emit_c = scale_update_emit,
		.npair = 1,
		.pair = {{0, 0}}},
	{0},
};
