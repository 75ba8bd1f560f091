/* RoiAlign: boxes of an image, each pooled to the same number of bins, from samples between its
 * elements. As in torchvision, no gradient goes into the boxes. The rules are those of ONNX's
 * reference implementation (onnx/reference/ops/op_roi_align.py): mode max takes the largest of a
 * sample's weighted elements. */
#include "ops/boxes/boxes_op.h"

struct align {
	int64_t batch, channels, height, width; /* of x */
	int64_t boxes, bins_y, bins_x, samples; /* samples along a bin's side; 0: by its size */
	double scale;
	bool half, max;
};

enum { FORWARD, GRADIENT }; /* variants */
enum { CHANNELS = 8 };      /* as many as are placed together */

static enum status align_read(struct graph *g, const struct node *n, struct align *p)
{
	const struct tensor *x = n->in[0], *box = n->in[1], *at = n->in[2];
	const bool old = n->op->until == 16;
	const char *shift = node_string(
		n, "coordinate_transformation_mode", old ? "output_half_pixel" : "half_pixel");
	const char *mode = node_string(n, "mode", "avg");
	if (x->rank != 4 || box->rank != 2 || box->dim[1] != 4 || at->rank != 1 ||
		at->dim[0] != box->dim[0] || at->dtype != DT_I64 || !dtype_is_real(x->dtype) ||
		!dtype_is_real(box->dtype) || x->dim[2] < 1 || x->dim[3] < 1)
		return node_fail(g, n, NULL, "x, boxes and batch_indices do not fit together");
	p->half = strcmp(shift, "half_pixel") == 0;
	p->max = strcmp(mode, "max") == 0;
	if ((!p->half && strcmp(shift, "output_half_pixel") != 0) ||
		(!p->max && strcmp(mode, "avg") != 0))
		return node_fail(g, n, NULL, "unknown mode '%s' or '%s'", mode, shift);
	p->batch = x->dim[0];
	p->channels = x->dim[1];
	p->height = x->dim[2];
	p->width = x->dim[3];
	p->boxes = box->dim[0];
	p->bins_y = node_int(n, "output_height", 1);
	p->bins_x = node_int(n, "output_width", 1);
	p->samples = node_int(n, "sampling_ratio", 0);
	p->scale = node_float(n, "spatial_scale", 1);
	if (p->bins_y < 1 || p->bins_x < 1 || p->samples < 0 || p->samples > 1024)
		return node_fail(g, n, NULL, "its sizes are not positive");
	return ST_OK;
}

static enum status align_infer(struct graph *g, struct node *n)
{
	struct align *p = ARENA_NEW(g->arena, struct align);
	if (!p)
		return diag_nomem(g->diag);
	TRY(align_read(g, n, p));
	n->param = p;
	const int64_t dim[4] = {p->boxes, p->channels, p->bins_y, p->bins_x};
	return data_output(g, n, 0, g->real, 4, dim);
}

static enum status align_grad_infer(struct graph *g, struct node *n)
{
	const struct align *p = n->param;
	const int64_t dim[4] = {p->batch, p->channels, p->height, p->width};
	return data_output(g, n, 0, g->real, 4, dim);
}

static enum status align_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct align *p = n->param;
	/* the largest is looked for again */
	struct tensor *in[] = {dy[0], n->in[1], n->in[2], p->max ? n->in[0] : NULL};
	if (!want[0])
		return ST_OK;
	dx[0] = graph_param_op(g, "stint.RoiAlignGrad", p->max ? 4 : 3, in, n->nattr, n->attr, p);
	return g->failed;
}

/* Four products and their addresses a sample; of samples whose number is not known, four. */
static struct op_cost align_cost(const struct node *n)
{
	const struct align *p = n->param;
	const double each = p->samples ? (double)(p->samples * p->samples) : 4;
	return (struct op_cost){
		16 * each * (double)(p->boxes * p->channels * p->bins_y * p->bins_x),
		node_bytes(n)};
}

static enum status forward(
	struct emit *e, const struct node *n, const struct call_struct *shape, int64_t block)
{
	const struct align *p = n->param;
	TRY(call_kernel(
		e, &(struct kernel_call){.file = "roi_align.h",
			   .function = "roi_check",
			   .once = true,
			   .checked = true,
			   .args = CALL_ARGS(ARG_X(2), ARG_SIZE(p->boxes), ARG_SIZE(p->batch))}));
	return call_kernel(
		e, &(struct kernel_call){.file = "roi_align.h",
			   .function = "roi_align",
			   .turns = p->boxes * div_up(p->channels, block) * p->bins_y * p->bins_x,
			   .work = align_cost(n).flops,
			   .args = CALL_ARGS(
				   ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X(2), ARG_STRUCT(shape))});
}

static enum status backward(
	struct emit *e, const struct node *n, const struct call_struct *shape, int64_t block)
{
	const struct align *p = n->param;
	TRY(fill_call(e, n, 0, ARG_REAL(0)));
	return call_kernel(e, &(struct kernel_call){.file = "roi_align.h",
				      .function = "roi_align_grad",
				      .turns = p->batch * div_up(p->channels, block),
				      .work = align_cost(n).flops,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X(2),
					      p->max ? ARG_X(3) : ARG_NULL, ARG_STRUCT(shape))});
}

/* So many channels are taken through all samples together; a GPU has the threads for each to go by
 * itself. */
static enum status align_emit(struct emit *e, const struct node *n)
{
	const struct align *p = n->param;
	const int64_t block = call_piece(e, CHANNELS);
	const struct call_struct shape = {"struct roi_shape", "s",
		CALL_FIELDS({"images", ARG_SIZE(p->batch)}, {"channels", ARG_SIZE(p->channels)},
			{"height", ARG_SIZE(p->height)}, {"width", ARG_SIZE(p->width)},
			{"boxes", ARG_SIZE(p->boxes)}, {"bins_y", ARG_SIZE(p->bins_y)},
			{"bins_x", ARG_SIZE(p->bins_x)}, {"samples", ARG_INT(p->samples)},
			{"block", ARG_INT(block)}, {"scale", ARG_REAL(p->scale)},
			{"shift", ARG_REAL(p->half ? 0.5 : 0)}, {"max", ARG_INT(p->max)})};
	return n->op->variant == GRADIENT ? backward(e, n, &shape, block)
					  : forward(e, n, &shape, block);
}

static const struct op_example old_examples[] = {
	{.in = "2,3,7,6 4,4:data 4:i64<2",
		.attr = "output_height=2 output_width=3 sampling_ratio=2",
		.low = 0,
		.high = 6},
	{0},
};

static const struct op_example align_examples[] = {
	{.in = "a,b,C,D e,4:data e:i64<2",
		.attr = "output_height=2 output_width=3 sampling_ratio=2",
		.low = 0,
		.high = 6},
	{.in = "2,3,7,6 4,4:data 4:i64<2",
		.attr = "output_height=2 output_width=2",
		.low = 0,
		.high = 7},
	{.in = "2,9,5,6 3,4:data 3:i64<2",
		.attr = "output_height=2 output_width=2 spatial_scale=0.5 "
			"coordinate_transformation_mode=output_half_pixel",
		.low = 0,
		.high = 12},
	{.in = "2,3,7,6 4,4:data 4:i64<2",
		.attr = "output_height=2 output_width=2 sampling_ratio=2 mode=max",
		.low = 0,
		.high = 6},
	{0},
};

#define ROI_ALIGN(...)                                                                             \
	{                                                                                          \
		.name = "RoiAlign", .min_in = 3, .traits = OP_CHECKED, .infer = align_infer,       \
		.grad = align_grad, .cost = align_cost, .emit_c = align_emit, __VA_ARGS__          \
	}

const struct op_def ops_roialign[] = {
	ROI_ALIGN(.since = 10, .until = 16, .example = old_examples),
	ROI_ALIGN(.since = 16, .example = align_examples),
	{.name = "stint.RoiAlignGrad",
		.variant = GRADIENT,
		.min_in = 3,
		.max_in = 4,
		.infer = align_grad_infer,
		.cost = align_cost,
		.emit_c = align_emit},
	{.name = NULL},
};
