/* GridSample: elements of x at the places that a grid gives, between -1 and 1 across each axis. Its
 * rules, and which slope a place outside has, are PyTorch's grid_sample. A location's terms are
 * worked out once for a chunk of locations and then used for every channel. */
#include <inttypes.h>

#include "ops/boxes/boxes_op.h"

struct grid {
	int axes;
	int mode, padding; /* as in kernels/grid_sample.h */
	bool align;
	int64_t batch, channels, size[3]; /* of x; missing axes come first */
	int64_t plane, count;             /* elements of a plane of x, of y */
};

enum { SAMPLE, GRAD_X, GRAD_GRID }; /* variants */
/* As in kernels/grid_sample.h. */
enum { NEAREST, LINEAR, CUBIC };
enum { CHUNK = 32 };
/* Channels whose gradient is added up together. */
enum { CHANNELS = 8 };

static enum status read_modes(struct graph *g, const struct node *n, struct grid *p)
{
	/* the second three are opset 16's */
	static const char *const modes[] = {
		"nearest", "linear", "cubic", "nearest", "bilinear", "bicubic", NULL};
	static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
	TRY(data_word(g, n, "mode", "linear", modes, &p->mode));
	TRY(data_word(g, n, "padding_mode", "zeros", paddings, &p->padding));
	p->mode %= 3;
	p->align = node_int(n, "align_corners", 0) != 0;
	return ST_OK;
}

static enum status sample_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *at = n->in[1];
	struct grid *p = ARENA_NEW(g->arena, struct grid);
	char sx[200], sg[200];
	if (!p)
		return diag_nomem(g->diag);
	p->axes = x->rank - 2;
	if (x->rank < 3 || x->rank > 5 || at->rank != x->rank || at->dim[0] != x->dim[0] ||
		at->dim[at->rank - 1] != p->axes || !dtype_is_real(x->dtype) ||
		!dtype_is_real(at->dtype))
		return node_fail(g, n, NULL, "cannot sample %s with the grid %s",
			tensor_shape_text(x, sx), tensor_shape_text(at, sg));
	TRY(read_modes(g, n, p));
	int64_t dim[RANK_MAX] = {x->dim[0], x->dim[1]};
	p->batch = x->dim[0];
	p->channels = x->dim[1];
	p->plane = p->count = p->size[0] = p->size[1] = 1;
	for (int a = 0; a < p->axes; a++) {
		p->size[3 - p->axes + a] = x->dim[2 + a];
		dim[2 + a] = at->dim[1 + a];
		p->plane *= x->dim[2 + a];
		p->count *= dim[2 + a];
		if (x->dim[2 + a] < 1)
			return node_fail(g, n, NULL, "cannot sample %s", tensor_shape_text(x, sx));
	}
	if (p->plane > INT32_MAX)
		return node_fail(
			g, n, NULL, "a plane of %" PRId64 " elements is too large", p->plane);
	n->param = p;
	return data_output(g, n, 0, g->real, x->rank, dim);
}

/* The gradient nodes take the forward node's parameters. */
static enum status grad_x_infer(struct graph *g, struct node *n)
{
	const struct grid *p = n->param;
	int64_t dim[RANK_MAX] = {p->batch, p->channels};
	memcpy(dim + 2, p->size + 3 - p->axes, (size_t)p->axes * sizeof *dim);
	return data_output(g, n, 0, g->real, 2 + p->axes, dim);
}

static enum status grad_grid_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, g->real, n->in[2]->rank, n->in[2]->dim);
}

static enum status sample_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct tensor *x[] = {dy[0], n->in[1]}, *grid[] = {dy[0], n->in[0], n->in[1]};
	if (want[0]) {
		dx[0] = graph_param_op(
			g, "stint.GridSampleGradX", 2, x, n->nattr, n->attr, n->param);
	}
	if (want[1]) {
		dx[1] = graph_param_op(
			g, "stint.GridSampleGradGrid", 3, grid, n->nattr, n->attr, n->param);
	}
	return g->failed;
}

static double terms_of(const struct grid *p)
{
	const double each = p->mode == NEAREST ? 1 : p->mode == LINEAR ? 2 : 4;
	return pow(each, p->axes);
}

/* Some 20 operations to place a location, and for every term of every channel a product and a sum,
 * with their addresses. */
static struct op_cost sample_cost(const struct node *n)
{
	const struct grid *p = n->param;
	const double terms = terms_of(p) * (n->nin > 2 ? p->axes : 1);
	return (struct op_cost){(double)p->batch * (double)p->count *
					(20.0 * p->axes + 4 * terms * (double)p->channels),
		node_bytes(n)};
}

/* Locations are placed in chunks, the gradients of x's channels added up in blocks of so many. A
 * GPU has the threads for each location, or plane, to go by itself. */
static enum status sample_emit(struct emit *e, const struct node *n)
{
	static const char *const function[] = {
		"grid_sample", "grid_sample_grad_x", "grid_sample_grad_grid"};
	const struct grid *p = n->param;
	const bool adds = n->op->variant == GRAD_X;
	const int64_t chunk = call_piece(e, CHUNK), block = call_piece(e, CHANNELS);
	const struct call_struct shape = {"struct grid_shape", "s",
		CALL_FIELDS({"axes", ARG_INT(p->axes)}, {"mode", ARG_INT(p->mode)},
			{"padding", ARG_INT(p->padding)}, {"align", ARG_INT(p->align)},
			{"size", ARG_SIZES(3, p->size)}, {"channels", ARG_SIZE(p->channels)},
			{"count", ARG_SIZE(p->count)}, {"block", ARG_INT(block)})};
	if (adds)
		TRY(fill_call(e, n, 0, ARG_REAL(0)));
	return call_kernel(e, &(struct kernel_call){.file = "grid_sample.h",
				      .function = function[n->op->variant],
				      .turns = p->batch * (adds ? div_up(p->channels, block)
								: div_up(p->count, chunk)),
				      .work = sample_cost(n).flops,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1),
					      ARG_IF(n->nin > 2, ARG_X(2)), ARG_STRUCT(&shape))});
}

/* --- AffineGrid: the places of an image's elements, times theta --- */

static enum status affine_infer(struct graph *g, struct node *n)
{
	const struct tensor *theta = n->in[0];
	int len;
	const int64_t *size;
	TRY(node_ints(g, n, "size", 1, &len, &size));
	const int axes = len - 2;
	if (!size || axes < 2 || axes > 3 || theta->rank != 3 || theta->dim[0] != size[0] ||
		theta->dim[1] != axes || theta->dim[2] != axes + 1)
		return node_fail(g, n, NULL, "theta and size do not fit together");
	int64_t dim[5] = {size[0]};
	memcpy(dim + 1, size + 2, (size_t)axes * sizeof *dim);
	dim[1 + axes] = axes;
	const struct attr attr[] = {data_ints(g, "size", len, size),
		ATTR_I("align_corners", node_int(n, "align_corners", 0))};
	TRY(data_settle(g, n, 1, 2, attr));
	return data_output(g, n, 0, g->real, 2 + axes, dim);
}

/* Rows (x, y, 1) or (x, y, z, 1) of all places; NULL after a message. */
static struct tensor *places(struct graph *g, int axes, const int64_t *size, bool align)
{
	int64_t dim[2] = {1, axes + 1};
	for (int a = 0; a < axes; a++)
		if (!size_mul(dim[0], size[a], &dim[0]) || dim[0] > INT32_MAX)
			return NULL;
	void *data = graph_known(g, NULL, dim[0] * dim[1], dtype_bytes(g->real));
	for (int64_t i = 0; data && i < dim[0]; i++) {
		int64_t rest = i;
		for (int a = axes - 1; a >= 0; a--) {
			const double n = (double)size[a], at = (double)(rest % size[a]);
			const double v = !align  ? (2 * at + 1) / n - 1
					 : n > 1 ? 2 * at / (n - 1) - 1
						 : 0;
			value_set(g->real, data, i * dim[1] + axes - 1 - a, v);
			rest /= size[a];
		}
		value_set(g->real, data, i * dim[1] + axes, 1);
	}
	return data ? graph_constant(g, "", g->real, 2, dim, data) : NULL;
}

static enum status affine_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const struct attr *size = node_attr(n, "size");
	const struct attr turned = ATTR_I("transB", 1);
	(void)o;
	struct tensor *at = places(
		g, size->n - 2, size->ints + 2, node_int(n, "align_corners", 0) != 0);
	if (!at)
		return g->failed != ST_OK ? g->failed
					  : node_fail(g, n, NULL, "its grid is too large");
	struct tensor *rows = graph_op(
		g, "stint.MatMul", 2, (struct tensor *[]){at, in[0]}, 1, &turned);
	out[0] = rows ? graph_reshape(g, rows, n->out[0]->rank, n->out[0]->dim) : NULL;
	return g->failed;
}

static const struct op_example old_examples[] = {
	{.in = "a,b,c,d a,e,f,2", .attr = "mode=bilinear"},
	{.in = "2,2,4,5 2,3,4,2", .attr = "mode=bicubic align_corners=1"},
	{.in = "2,2,4,5 2,3,4,2", .attr = "mode=nearest"},
	{0},
};

static const struct op_example sample_examples[] = {
	{.in = "a,b,c,d a,e,f,2", .low = -1.3, .high = 1.3},
	{.in = "a,b,c,d a,e,f,2", .attr = "mode=cubic", .low = -1.3, .high = 1.3},
	{.in = "2,3,4,5 2,3,4,2", .attr = "align_corners=1", .low = -1.3, .high = 1.3},
	{.in = "2,3,4,5 2,3,4,2", .attr = "padding_mode=border", .low = -1.8, .high = 1.8},
	{.in = "2,3,4,5 2,3,4,2",
		.attr = "padding_mode=border align_corners=1",
		.low = -1.8,
		.high = 1.8},
	{.in = "2,3,4,3 2,5,4,2", .attr = "padding_mode=reflection", .low = -4, .high = 4},
	{.in = "2,3,4,3 2,5,4,2",
		.attr = "padding_mode=reflection align_corners=1",
		.low = -4,
		.high = 4},
	{.in = "2,3,4,3 2,5,4,2", .attr = "mode=nearest", .low = -1.5, .high = 1.5},
	{.in = "2,3,4,3 2,5,4,2", .attr = "mode=nearest padding_mode=border", .low = -2, .high = 2},
	{.in = "2,3,4,3 2,5,4,2",
		.attr = "mode=nearest padding_mode=reflection align_corners=1",
		.low = -4,
		.high = 4},
	{.in = "2,3,4,3 2,5,4,2", .attr = "mode=cubic padding_mode=border", .low = -2, .high = 2},
	{.in = "2,3,4,3 2,5,4,2",
		.attr = "mode=cubic padding_mode=reflection",
		.low = -3,
		.high = 3},
	{.in = "2,3,4,3 2,5,4,2",
		.attr = "mode=cubic align_corners=1 padding_mode=reflection",
		.low = -3,
		.high = 3},
	{.in = "a,b,c,d,e a,2,3,f,3", .low = -1.3, .high = 1.3},
	{.in = "2,2,3,4,3 2,2,3,2,3",
		.attr = "mode=nearest padding_mode=border",
		.low = -1.5,
		.high = 1.5},
	{.in = "2,2,3,4,3 2,2,3,2,3", .attr = "mode=cubic", .low = -1.2, .high = 1.2},
	{.in = "2,3,6 2,5,1", .low = -1.3, .high = 1.3},
	{.in = "2,3,1,1 2,2,3,2", .attr = "padding_mode=reflection align_corners=1"},
	{.in = "1,11,9,9 1,11,9,2"}, /* more than a chunk, and than one thread's channels */
	{0},
};

static const struct op_example affine_examples[] = {
	{.in = "2,2,3 =[2,3,4,5]"},
	{.in = "2,2,3 =[2,3,4,5]", .attr = "align_corners=1"},
	{.in = "2,2,3 =[2,3,1,5]", .attr = "align_corners=1"},
	{.in = "2,3,4 =[2,3,2,4,3]"},
	{.in = "a,3,4 =[a,3,c,d,e]", .attr = "align_corners=1"},
	{.in = "a,2,3 =[a,1,c,d]"},
	{0},
};

#define GRID_SAMPLE(...)                                                                           \
	{                                                                                          \
		.name = "GridSample", .apart = APART_FIRST, .min_in = 2, .infer = sample_infer,    \
		.grad = sample_grad, .cost = sample_cost, .emit_c = sample_emit, __VA_ARGS__       \
	}

const struct op_def ops_gridsample[] = {
	GRID_SAMPLE(.since = 16, .until = 20, .example = old_examples),
	GRID_SAMPLE(.since = 20, .example = sample_examples),
	{.name = "AffineGrid",
		.since = 20,
		.min_in = 2,
		.infer = affine_infer,
		.lower = affine_lower,
		.example = affine_examples},
	{.name = "stint.GridSampleGradX",
		.variant = GRAD_X,
		.min_in = 2,
		.infer = grad_x_infer,
		.cost = sample_cost,
		.emit_c = sample_emit},
	{.name = "stint.GridSampleGradGrid",
		.variant = GRAD_GRID,
		.min_in = 3,
		.infer = grad_grid_infer,
		.cost = sample_cost,
		.emit_c = sample_emit},
	{.name = NULL},
};
