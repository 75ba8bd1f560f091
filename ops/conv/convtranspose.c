/* ConvTranspose: the gradient of a convolution's input, run forward. Its input is that
 * convolution's output, and its own gradients are that convolution and its weight's gradient. */
#include "ops/conv/conv_op.h"

static enum status transpose_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *w = n->in[1], *b = node_input(n, 2);
	struct conv *p = ARENA_NEW(g->arena, struct conv);
	char sx[200], sw[200];
	if (!p)
		return diag_nomem(g->diag);
	tensor_shape_text(x, sx);
	tensor_shape_text(w, sw);
	if (x->rank != w->rank || x->rank < 3 || x->rank > 5 || !dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "cannot convolve %s with the weight %s", sx, sw);
	TRY(window_read_transposed(g, n, w->dim + 2, &p->w));
	p->groups = node_int(n, "group", 1);
	p->n = x->dim[0];
	p->k = x->dim[1];
	p->cg = w->dim[1];
	if (p->groups < 1 || p->k != w->dim[0] || p->k % p->groups != 0 ||
		!size_mul(p->groups, p->cg, &p->c))
		return node_fail(g, n, NULL, "cannot convolve %s with the weight %s in %lld groups",
			sx, sw, (long long)p->groups);
	p->kg = p->k / p->groups;
	if (b && (b->rank != 1 || b->dim[0] != p->c))
		return node_fail(
			g, n, NULL, "the bias must have the shape [%lld]", (long long)p->c);
	n->param = p;
	n->out[0] = window_input(g, &p->w, p->n, p->c);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static enum status transpose_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const struct conv *p = n->param;
	const int64_t column[4] = {p->c, 1, 1, 1};
	(void)o;
	out[0] = graph_param_op(g, "stint.ConvGradX", 2, in, n->nattr, n->attr, p);
	if (n->nin > 2 && in[2] && out[0])
		out[0] = OP2(g, "Add", out[0], graph_reshape(g, in[2], 1 + p->w.axes, column));
	return g->failed;
}

static const struct op_example transpose_examples[] = {
	{.in = "a,b,c,d b,e,3,2"},
	{.in = "a,b,c,d b,e,3,2 e", .attr = "strides=2,3 pads=1,0,0,1 output_padding=1,2"},
	{.in = "2,3,4,5 3,4,3,3 4", .attr = "strides=2,2 pads=1,1,1,1 output_padding=1,1"},
	{.in = "2,3,4,5 3,2,2,2", .attr = "strides=2,2"},
	{.in = "2,12,4,5 12,10,4,4 10", .attr = "strides=2,2 pads=1,1,1,1"},
	{.in = "2,3,4,5 3,2,3,3", .attr = "dilations=2,3 pads=2,1,0,3"},
	{.in = "2,3,4,5 3,2,2,2", .attr = "dilations=3,3 output_padding=1,2"},
	{.in = "2,4,4,3 4,3,3,3 6", .attr = "group=2 strides=2,1"},
	{.in = "2,4,4,3 4,1,3,3 4", .attr = "group=4 strides=2,2 pads=1,1,1,1"},
	{.in = "2,3,4,4 3,2,3,3", .attr = "auto_pad=SAME_UPPER strides=2,2"},
	{.in = "2,3,4,4 3,2,3,3", .attr = "auto_pad=SAME_LOWER strides=2,2"},
	{.in = "2,3,4,4 3,2,2,1", .attr = "auto_pad=SAME_LOWER strides=3,2"},
	{.in = "2,3,4,4 3,2,3,3", .attr = "auto_pad=VALID strides=2,2"},
	{.in = "2,3,4,4 3,2,3,3", .attr = "strides=3,2 output_shape=10,8"},
	{.in = "2,3,4,4 3,2,3,3", .attr = "strides=3,2 output_shape=2,2,15,10"},
	{.in = "2,3,4,4 3,2,3,3",
		.attr = "strides=3,2 output_shape=10,8 output_padding=1,1 auto_pad=SAME_UPPER"},
	{.in = "a,b,C b,c,4 c", .attr = "strides=2 pads=1,1"},
	{.in = "2,4,5 4,2,4", .attr = "strides=3 group=2 output_padding=2"},
	{.in = "a,b,3,2,c b,d,2,3,2 d",
		.attr = "strides=2,1,2 pads=1,1,0,0,1,1 output_padding=1,0,1"},
	{.in = "1,2,3,3,3 2,1,2,2,2", .attr = "group=2 strides=2,2,2"},
	{.in = "2,16,3,4,3 16,16,2,3,2 16", .attr = "strides=2,1,2 pads=0,1,0,0,1,0"},
	{.in = "2,3,4,4 3,5,1,1 5"},
	{.in = "2,3,4,4 3,5,1,1", .attr = "strides=2,2"},
	{0},
};

const struct op_def ops_convtranspose[] = {
	{.name = "ConvTranspose",
		.apart = APART_FIRST,
		.weights = 6,
		.bias = {.input = 2, .axis = 1, .times = "group"},
		.since = 1,
		.min_in = 2,
		.max_in = 3,
		.infer = transpose_infer,
		.lower = transpose_lower,
		.example = transpose_examples},
	{.name = NULL},
};
