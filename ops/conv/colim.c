/* Col2Im: columns, one for each window over an image, added up into the image; and the columns of
 * an image, its gradient. */
#include <inttypes.h>

#include "ops/data.h"
#include "ops/window_op.h"

/* The parameter of both: the image is [planes of n, w.size], the columns [planes, w.taps,
 * w.out_plane]. */
struct columns {
	struct window w;
	int64_t batch, channels;
};

static enum status image_read(struct graph *g, struct node *n, struct columns *p)
{
	const struct tensor *x = n->in[0];
	int axes, nblock;
	const int64_t *size, *block;
	TRY(node_ints(g, n, "image_shape", 1, &axes, &size));
	TRY(node_ints(g, n, "block_shape", 2, &nblock, &block));
	if (!size || !block || axes != nblock || x->rank != 3 || !dtype_is_real(x->dtype))
		return node_fail(
			g, n, NULL, "needs real data [N, C, L], image_shape and block_shape");
	for (int a = 0; a < axes; a++)
		if (size[a] < 1 || block[a] < 1)
			return node_fail(g, n, NULL, "axis %d of image or block is empty", a);
	TRY(window_read_sized(g, n, axes, size, block, &p->w));
	p->batch = x->dim[0];
	p->channels = x->dim[1] / p->w.taps;
	if (x->dim[1] % p->w.taps != 0 || x->dim[2] != p->w.out_plane) {
		char shape[200];
		return node_fail(g, n, NULL,
			"the columns %s are not [N, C * %" PRId64 ", %" PRId64 "]",
			tensor_shape_text(x, shape), p->w.taps, p->w.out_plane);
	}
	return ST_OK;
}

static enum status image_infer(struct graph *g, struct node *n)
{
	struct columns *read = n->param ? NULL : ARENA_NEW(g->arena, struct columns);
	const struct columns *p = n->param ? n->param : read;
	if (!p)
		return diag_nomem(g->diag);
	if (read)
		TRY(image_read(g, n, read));
	n->param = p;
	n->nin = 1;
	n->out[0] = window_input(g, &p->w, p->batch, p->channels);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static enum status columns_infer(struct graph *g, struct node *n)
{
	const struct columns *p = n->param;
	const int64_t dim[3] = {p->batch, p->channels * p->w.taps, p->w.out_plane};
	return data_output(g, n, 0, g->real, 3, dim);
}

static enum status grad_op(struct graph *g, const struct node *n, const char *op,
	struct tensor *const *dy, const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_param_op(g, op, 1, dy, n->nattr, n->attr, n->param);
	return g->failed;
}

static enum status image_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	return grad_op(g, n, "stint.Im2Col", dy, want, dx);
}

static enum status columns_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	return grad_op(g, n, "Col2Im", dy, want, dx);
}

/* A sum and its addresses for each element of the columns. */
static struct op_cost columns_cost(const struct node *n)
{
	const struct columns *p = n->param;
	return (struct op_cost){
		4.0 * (double)(p->batch * p->channels * p->w.taps) * (double)p->w.out_plane,
		(double)tensor_bytes(n->in[0]) + (double)tensor_bytes(n->out[0])};
}

static enum status call_planes(struct emit *e, const struct node *n, const char *function)
{
	const struct columns *p = n->param;
	const struct call_struct window = WINDOW_STRUCT("w", &p->w);
	return call_kernel(e, &(struct kernel_call){.file = "col2im.h",
				      .function = function,
				      .turns = p->batch * p->channels,
				      .work = columns_cost(n).flops,
				      .args = CALL_ARGS(ARG_STRUCT(&window), ARG_Y(0), ARG_X(0))});
}

static enum status image_emit(struct emit *e, const struct node *n)
{
	return call_planes(e, n, "col2im");
}

static enum status columns_emit(struct emit *e, const struct node *n)
{
	return call_planes(e, n, "im2col");
}

static const struct op_example image_examples[] = {
	{.in = "a,2b,24 =[5,6] =[2,1]"},
	{.in = "2,12,12 =[5,5] =[2,3]"},
	{.in = "2,12,9 =[5,6] =[3,2]", .attr = "strides=2,2 pads=1,1,1,0"},
	{.in = "2,4,9 =[6,6] =[2,2]", .attr = "dilations=3,3"},
	{.in = "2,6,5 =[8] =[3]", .attr = "strides=2 pads=1,2"},
	{.in = "2,8,12 =[3,4,3] =[2,2,2]"},
	{0},
};

const struct op_def ops_colim[] = {
	{.name = "Col2Im",
		.since = 18,
		.min_in = 1,
		.max_in = 3,
		.infer = image_infer,
		.grad = image_grad,
		.cost = columns_cost,
		.emit_c = image_emit,
		.example = image_examples},
	{.name = "stint.Im2Col",
		.min_in = 1,
		.infer = columns_infer,
		.grad = columns_grad,
		.cost = columns_cost,
		.emit_c = columns_emit},
	{.name = NULL},
};
