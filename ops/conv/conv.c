/* Conv over 1 to 3 spatial axes, with groups, and its gradients. Plain C: a blocked matrix product
 * whose second operand is gathered while it is packed; few channels a group: direct loops. */
#include "graph/op_adapter.h"
#include "ops/conv/conv_op.h"

#include "ops/dora_op.h"
#include "ops/product/gemm_op.h"
#include "ops/target_op.h"

static enum status conv_read(struct graph *g, struct node *n, struct conv *p)
{
	const struct tensor *x = n->in[0], *w = n->in[1];
	char sx[200], sw[200];
	tensor_shape_text(x, sx);
	tensor_shape_text(w, sw);
	if (x->rank != w->rank || x->rank < 3 || x->rank > 5 || !dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "cannot convolve %s with the weight %s", sx, sw);
	TRY(window_read(g, n, w->dim + 2, &p->w));
	p->n = x->dim[0];
	p->c = x->dim[1];
	p->k = w->dim[0];
	p->groups = node_int(n, "group", 1);
	if (p->groups < 1 || p->groups > p->k || p->c != p->groups * w->dim[1] ||
		p->k % p->groups != 0)
		return node_fail(g, n, NULL, "cannot convolve %s with the weight %s in %lld groups",
			sx, sw, (long long)p->groups);
	p->cg = w->dim[1];
	p->kg = p->k / p->groups;
	const struct tensor *b = node_input(n, 2);
	if (b && (b->rank != 1 || b->dim[0] != p->k))
		return node_fail(
			g, n, NULL, "the bias must have the shape [%lld]", (long long)p->k);
	return ST_OK;
}

/* Output 0 is an image of so many channels. */
static enum status conv_image(
	struct graph *g, struct node *n, const int64_t *size, int64_t channels, int64_t block)
{
	const struct conv *p = n->param;
	int64_t dim[RANK_MAX] = {p->n, block ? channels / block : channels};
	const int axes = p->w.axes;
	memcpy(dim + 2, size + 3 - axes, (size_t)axes * sizeof *dim);
	dim[2 + axes] = block;
	n->out[0] = graph_tensor(g, NULL, g->real, 2 + axes + (block > 0), dim);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static enum status conv_infer(struct graph *g, struct node *n)
{
	struct conv *read = n->param ? NULL : ARENA_NEW(g->arena, struct conv);
	const struct conv *p = n->param ? n->param : read;
	if (!p)
		return diag_nomem(g->diag);
	if (read)
		TRY(conv_read(g, n, read));
	n->param = p;
	return conv_image(g, n, p->w.out, p->k, p->last ? p->k : p->yblock);
}

/* The gradient nodes take the forward node's parameters. */
static enum status grad_x_infer(struct graph *g, struct node *n)
{
	const struct conv *p = n->param;
	return conv_image(g, n, p->w.size, p->c, p->last ? p->c : p->xblock);
}

static enum status grad_w_infer(struct graph *g, struct node *n)
{
	const struct conv *p = n->param;
	const int axes = p->w.axes;
	int64_t dim[6] = {p->k, p->last ? 1 : p->cg};
	memcpy(dim + 2, p->w.kernel + 3 - axes, (size_t)axes * sizeof *dim);
	dim[2 + axes] = p->cg;
	n->out[0] = graph_tensor(g, NULL, g->real, 2 + axes + p->last, dim);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static struct tensor *grad_op(
	struct graph *g, const char *name, struct tensor *a, struct tensor *b, const struct conv *p)
{
	return graph_param_op(g, name, 2, (struct tensor *[]){a, b}, 0, NULL, p);
}

static enum status conv_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct conv *p = n->param;
	if (want[0])
		dx[0] = grad_op(g, "stint.ConvGradX", dy[0], n->in[1], p);
	if (want[1])
		dx[1] = grad_op(g, "stint.ConvGradW", n->in[0], dy[0], p);
	if (n->nin > 2 && want[2]) {
		const int64_t column[4] = {p->k, 1, 1, 1};
		struct tensor *like = graph_reshape(g, n->in[2], 1 + p->w.axes, column);
		struct tensor *sum = like ? graph_unbroadcast(g, dy[0], like) : NULL;
		dx[2] = sum ? graph_reshape(g, sum, 1, column) : NULL;
	}
	return g->failed;
}

static bool one_element(const struct window *w, int i)
{
	return w->size[i] == 1 && w->kernel[i] == 1 && w->out[i] == 1 && w->before[i] == 0 &&
	       w->after[i] == 0;
}

static void axis_move(const struct window *w, int from, struct window *out, int to)
{
	out->kernel[to] = w->kernel[from];
	out->stride[to] = w->stride[from];
	out->dilation[to] = w->dilation[from];
	out->before[to] = w->before[from];
	out->after[to] = w->after[from];
	out->size[to] = w->size[from];
	out->out[to] = w->out[from];
}

/* The same in memory with the longest run last, as kernels want it: [N, C, 512, 1], as some
 * exporters write what has one axis, is [N, C, 1, 512]. False where nothing changes. */
static bool window_turn(const struct window *w, struct window *out)
{
	int last = 2;
	while (last > 3 - w->axes && one_element(w, last))
		last--;
	if (last == 2 || one_element(w, last))
		return false;
	*out = *w;
	for (int i = 0; i < 3; i++)
		axis_move(w, i, out, (i + 2 - last) % 3);
	return true;
}

static struct tensor *with_axes(
	struct graph *g, struct tensor *t, const struct window *w, const int64_t *size)
{
	int64_t dim[RANK_MAX] = {t->dim[0], t->dim[1]};
	memcpy(dim + 2, size + 3 - w->axes, (size_t)w->axes * sizeof *dim);
	return graph_reshape(g, t, t->rank, dim);
}

static enum status conv_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const struct conv *p = n->param;
	const bool with_bias = n->nin > 2 && in[2], adds = target_adds_conv_bias(g->target);
	const int64_t column[4] = {p->k, 1, 1, 1};
	struct window w;
	(void)o;
	const bool turns = window_turn(&p->w, &w);
	if (!turns && (adds || !with_bias))
		return ST_OK;
	struct tensor *operand[3] = {in[0], in[1], with_bias ? in[2] : NULL};
	if (turns) {
		struct conv *turned = arena_memdup(g->arena, p, 1, sizeof *p);
		if (!turned)
			return diag_nomem(g->diag);
		turned->w = w;
		p = turned;
		operand[0] = with_axes(g, in[0], &w, w.size);
		operand[1] = with_axes(g, in[1], &w, w.kernel);
		if (!operand[0] || !operand[1])
			return g->failed;
	}
	struct node *m = graph_op_node(
		g, "Conv", adds && with_bias ? 3 : 2, operand, n->nattr, n->attr, p);
	struct tensor *y = m ? m->out[0] : NULL;
	if (y && turns)
		y = graph_reshape(g, y, n->out[0]->rank, n->out[0]->dim);
	if (y && with_bias && !adds) {
		struct tensor *bias = graph_reshape(g, in[2], 1 + p->w.axes, column);
		y = bias ? OP2(g, "Add", y, bias) : NULL;
	}
	out[0] = y;
	return g->failed;
}

/* What an adapter adds, with trained lengths: of outputs' channels, whose rows of weights A reads
 * as a convolution of theirs. */
static struct tensor *conv_dora(struct adapting *x, const struct node *n, struct tensor *const *in,
	struct tensor *dropped, struct dora *of)
{
	struct graph *g = adapting_graph(x);
	const struct conv *p = n->param;
	const int64_t r = adapting_rank(x), flat[2] = {r, p->cg * p->w.taps};
	const int64_t on[2] = {r, p->k}, up[2] = {p->k, r};
	int64_t channels[RANK_MAX] = {1, p->k, 1, 1, 1};
	struct tensor *weight[] = {dropped, in[1]}, *low[] = {of->a, in[1]};
	of->base = n->out[0];
	if (dropped != in[0])
		of->base = graph_op(g, "Conv", 2, weight, n->nattr, n->attr);
	else if (node_input(n, 2))
		of->base = OP2(
			g, "Sub", of->base, graph_reshape(g, in[2], n->out[0]->rank, channels));
	of->a_on_weight = graph_reshape(g, graph_op(g, "Conv", 2, low, 0, NULL), 2, on);
	of->a = graph_reshape(g, of->a, 2, flat);
	of->b = graph_reshape(g, of->b, 2, up);
	of->rank = n->out[0]->rank;
	of->dim = channels;
	return g->failed == ST_OK ? dora_added(x, of) : NULL;
}

/* An adapter: A, a convolution like the node's to r channels, then B, one of 1 x 1. */
static enum status conv_adapt(
	struct adapting *x, const struct node *n, struct tensor *const *in, struct tensor **out)
{
	struct graph *g = adapting_graph(x);
	const struct conv *p = n->param;
	int64_t a[RANK_MAX], b[RANK_MAX] = {p->k, adapting_rank(x), 1, 1, 1};
	if (p->groups != 1)
		return node_fail(g, n, "let the pattern leave it out",
			"--lora: its weight '%s' is one of groups, which no adapter can be merged "
			"into",
			n->in[1]->name);
	memcpy(a, n->in[1]->dim, sizeof a);
	a[0] = adapting_rank(x);
	struct tensor *down = adapting_parameter(
		x, "lora_A.weight", n->in[1]->rank, a, ADAPTER_UNIFORM, p->cg * p->w.taps);
	struct tensor *up = adapting_parameter(
		x, "lora_B.weight", n->in[1]->rank, b, ADAPTER_ZEROS, 0);
	struct tensor *dropped = adapting_dropped(x, in[0]);
	struct tensor *low = graph_op(
		g, "Conv", 2, (struct tensor *[]){dropped, down}, n->nattr, n->attr);
	*out = OP2(g, "Conv", adapting_scaled(x, low), up);
	if (adapting_lengths(x) && g->failed == ST_OK)
		*out = conv_dora(
			x, n, in, dropped, &(struct dora){.a = down, .b = up, .delta = *out});
	return g->failed;
}

/* Of a transposed convolution, which is what ConvGradX computes. */
static enum status grad_x_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = grad_op(g, "Conv", dy[0], n->in[1], n->param);
	if (want[1])
		dx[1] = grad_op(g, "stint.ConvGradW", dy[0], n->in[0], n->param);
	return g->failed;
}

static struct op_cost conv_cost(const struct node *n)
{
	const struct conv *p = n->param;
	return (struct op_cost){
		2.0 * (double)(p->n * p->w.out_plane) * (double)p->k * (double)(p->cg * p->w.taps),
		node_bytes(n)};
}

/* --- The library. --- */

/* Direct; Winograd's; the same on each half of the batch, in half the scratch. */
enum way {
	DIRECT = STINT_CONV_DIRECT,
	WINOGRAD = STINT_CONV_WINOGRAD,
	HALVES = STINT_CONV_HALVES,
	WAYS
};
static const char *const way_name[] = {NULL, "Winograd", "Winograd in halves"};

/* Winograd's F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
 * section 4) against direct convolution: so many times as fast, a rule made from what
 * tests/bench/ways.c measured. It needs many tiles at once, and works on whole ones. */
static double winograd_speed(const struct conv *p, enum conv_pass pass, int64_t images)
{
	const int64_t channels = min64(p->c, p->k);
	const int64_t tiles = images * div_up(p->w.out[1], 4) * div_up(p->w.out[2], 4);
	const double used = (double)(images * p->w.out_plane) / (double)(16 * max64(tiles, 1));
	const double most = channels >= 256 ? 2.6 : channels >= 64 ? 2.25 : 1.8;
	if (channels < 32 || tiles < 24)
		return 0.9;
	const double speed = tiles >= 256  ? most
			     : tiles >= 96 ? fmin(most, 2.2)
			     : tiles >= 48 ? fmin(most, 1.9)
					   : fmin(most, 1.5);
	return speed * used * (pass == CONV_GRAD_W ? 0.95 : 1);
}

static bool winograd_does(const struct conv *p)
{
	const struct window *w = &p->w;
	return w->axes == 2 && p->groups == 1 && w->kernel[1] == 3 && w->kernel[2] == 3 &&
	       w->stride[1] == 1 && w->stride[2] == 1 && w->dilation[1] == 1 && w->dilation[2] == 1;
}

static struct stint_convolution conv_numbers(const struct conv *p, bool bias, int way)
{
	const struct window *w = &p->w;
	struct stint_convolution c = {.axes = w->axes > 2 ? 3 : 2,
		.n = p->n,
		.c = p->c,
		.k = p->k,
		.groups = p->groups,
		.bias = bias,
		.x_blocked = p->xblock > 0,
		.y_blocked = p->yblock > 0,
		.last = p->last,
		.way = (enum stint_conv_way)way};
	for (int i = 0; i < c.axes; i++) {
		const int a = 3 - c.axes + i;
		c.size[i] = w->size[a];
		c.kernel[i] = w->kernel[a];
		c.stride[i] = w->stride[a];
		c.dilation[i] = w->dilation[a];
		c.before[i] = w->before[a];
		c.out[i] = w->out[a];
	}
	return c;
}

static bool conv_call(
	const struct node *n, enum conv_pass pass, bool bias, int way, struct lib_call *call)
{
	const struct conv *p = n->param;
	const int types = product_types(n);
	if (n->out[0]->dtype == DT_F64 || p->n < 1 || p->cg < 1)
		return false;
	if (way > DIRECT &&
		(way >= WAYS || types || !winograd_does(p) || (way == HALVES && p->n % 2)))
		return false;
	*call = (struct lib_call){.call = {.kind = (enum stint_call_kind)pass,
					  .types = types,
					  .conv = conv_numbers(p, bias, way)},
		.name = way_name[way],
		.rough = way != DIRECT};
	call->speed = way == DIRECT     ? 1
		      : way == WINOGRAD ? winograd_speed(p, pass, p->n)
					: 0.97 * winograd_speed(p, pass, p->n / 2);
	return true;
}

static bool conv_library(const struct node *n, int way, struct lib_call *call)
{
	return conv_call(n, CONV_FORWARD, node_input(n, 2), way, call);
}

static bool grad_x_library(const struct node *n, int way, struct lib_call *call)
{
	const struct conv *p = n->param;
	if (!conv_call(n, CONV_GRAD_X, false, way, call))
		return false;
	/* Its blocks of 16 channels would be mostly padding: plain C takes a third of the time. */
	call->slow = p->groups == 1 && (p->k < 8 || p->c < 2);
	return true;
}

static bool grad_w_library(const struct node *n, int way, struct lib_call *call)
{
	return conv_call(n, CONV_GRAD_W, false, way, call);
}

/* --- Plain C. --- */

static struct conv_job job_of(const struct node *n, enum conv_pass pass, const struct target *t)
{
	return conv_job_of(n->param, pass, dtype_bytes(n->out[0]->dtype), t);
}

static int64_t job_workspace(const struct node *n, const struct target *t, enum conv_pass pass)
{
	return job_of(n, pass, t).bytes * t->threads;
}

static double job_work(const struct node *n)
{
	return conv_cost(n).flops;
}

/* What its kernel may write beside its output. */
static struct call_arg conv_scratch(const struct conv_job *j)
{
	return j->bytes > 0 ? ARG_OWN(0, j->bytes) : ARG_NULL;
}

/* A kernel's `struct conv_shape`, as an argument. */
#define SHAPE_STRUCT(as, p, j)                                                                     \
	{                                                                                          \
		"struct conv_shape", as,                                                           \
			CALL_FIELDS({"images", ARG_INT((p)->n)}, {"channels", ARG_INT((p)->c)},    \
				{"filters", ARG_INT((p)->k)}, {"groups", ARG_INT((p)->groups)},    \
				{"rows", ARG_INT((j)->rows)}, {"columns", ARG_INT((j)->columns)},  \
				{"lines", ARG_INT((j)->lines)}, {"turn", ARG_INT((j)->turn)},      \
				{"boxes", ARG_INT((j)->boxes)})                                    \
	}

static enum status conv_emit(struct emit *e, const struct node *n)
{
	const struct conv *p = n->param;
	const bool bias = node_input(n, 2);
	const struct conv_job j = job_of(n, CONV_FORWARD, e->g->target);
	const struct call_struct window = WINDOW_STRUCT("w", &j.w);
	const struct call_struct shape = SHAPE_STRUCT("shape", p, &j);
	const bool lean = j.pointwise && e->g->target->bare;
	return call_kernel(e,
		&(struct kernel_call){.file = j.direct ? "conv_direct.h"
					      : lean   ? "conv_pointwise.h"
						       : "conv_forward.h",
			.function = j.direct ? "conv_forward_direct"
				    : lean   ? "conv_pointwise"
					     : "conv_forward",
			.turns = j.turns,
			.work = job_work(n),
			.args = CALL_ARGS(lean ? ARG_INT(p->w.plane) : ARG_STRUCT(&window),
				ARG_STRUCT(&shape), ARG_Y(0), ARG_X(0), ARG_X(1),
				bias ? ARG_X(2) : ARG_NULL, ARG_IF(!j.direct, conv_scratch(&j)))});
}

static enum status grad_x_emit(struct emit *e, const struct node *n)
{
	const struct conv *p = n->param;
	const struct conv_job j = job_of(n, CONV_GRAD_X, e->g->target);
	const struct call_struct window = WINDOW_STRUCT("w", &j.w);
	const struct call_struct shape = SHAPE_STRUCT("shape", p, &j);
	const bool lean = j.pointwise && e->g->target->bare;
	return call_kernel(
		e, &(struct kernel_call){.file = j.direct ? "conv_direct.h"
						 : lean   ? "conv_pointwise.h"
							  : "conv_grad_x.h",
			   .function = j.direct ? "conv_grad_x_direct"
				       : lean   ? "conv_pointwise_grad_x"
						: "conv_grad_x",
			   .turns = j.turns,
			   .work = job_work(n),
			   .args = CALL_ARGS(lean ? ARG_INT(p->w.plane) : ARG_STRUCT(&window),
				   ARG_STRUCT(&shape), ARG_Y(0), ARG_X(0), ARG_X(1),
				   ARG_IF(!j.direct, conv_scratch(&j)))});
}

static enum status grad_w_emit(struct emit *e, const struct node *n)
{
	const struct conv *p = n->param;
	const struct conv_job j = job_of(n, CONV_GRAD_W, e->g->target);
	const struct call_struct window = WINDOW_STRUCT("w", &j.w);
	const struct call_struct shape = SHAPE_STRUCT("shape", p, &j);
	return call_kernel(e, &(struct kernel_call){.file = j.lanes    ? "conv_depth.h"
							    : j.direct ? "conv_direct.h"
								       : "conv_grad_w.h",
				      .function = j.lanes    ? "conv_grad_w_depth"
						  : j.direct ? "conv_grad_w_direct"
							     : "conv_grad_w",
				      .turns = j.turns,
				      .work = job_work(n),
				      .args = CALL_ARGS(ARG_STRUCT(&window), ARG_STRUCT(&shape),
					      ARG_Y(0), ARG_X(0), ARG_X(1),
					      ARG_IF(j.lanes || !j.direct, conv_scratch(&j)))});
}

/* --- For a GPU whose library has none: a turn is an element. --- */

static enum status plain_cuda(
	struct emit *e, const struct node *n, const char *function, struct call_arg last)
{
	const struct conv *p = n->param;
	const struct conv_job none = {0};
	const struct call_struct window = WINDOW_STRUCT("w", &p->w);
	const struct call_struct shape = SHAPE_STRUCT("shape", p, &none);
	return call_kernel(e, &(struct kernel_call){.file = "conv_plain.h",
				      .function = function,
				      .turns = n->out[0]->numel,
				      .work = job_work(n),
				      .args = CALL_ARGS(ARG_STRUCT(&window), ARG_STRUCT(&shape),
					      ARG_Y(0), ARG_X(0), ARG_X(1), last)});
}

static enum status conv_cuda_emit(struct emit *e, const struct node *n)
{
	return plain_cuda(e, n, "conv_plain", node_input(n, 2) ? ARG_X(2) : ARG_NULL);
}

static enum status grad_x_cuda_emit(struct emit *e, const struct node *n)
{
	return plain_cuda(e, n, "conv_plain_grad_x", ARG_NONE);
}

static enum status grad_w_cuda_emit(struct emit *e, const struct node *n)
{
	return plain_cuda(e, n, "conv_plain_grad_w", ARG_NONE);
}

static int64_t conv_workspace(const struct node *n, const struct target *t)
{
	return job_workspace(n, t, CONV_FORWARD);
}

static int64_t grad_x_workspace(const struct node *n, const struct target *t)
{
	return job_workspace(n, t, CONV_GRAD_X);
}

static int64_t grad_w_workspace(const struct node *n, const struct target *t)
{
	return job_workspace(n, t, CONV_GRAD_W);
}

static const struct op_example conv_examples[] = {
	{.in = "a,b,C,D c,b,3,3"},
	{.in = "2,3,5,5 4,3,3,3 4", .attr = "pads=1,1,1,1"},
	{.in = "a,b,C,D c,b,3,2 c", .attr = "pads=1,0,2,1 strides=2,1"},
	{.in = "1,4,8,7 4,4,3,3", .attr = "strides=2,3 dilations=2,1 pads=2,1,2,1"},
	{.in = "a,2b,C,D 2c,b,3,3 2c", .attr = "group=2 pads=1,1,1,1"},
	{.in = "2,6,5,5 9,2,2,2", .attr = "group=3 strides=2,2"},
	{.in = "a,b,C,D b,1,3,3 b", .attr = "group=b pads=1,1,1,1"},
	{.in = "2,4,7,7 8,1,3,3", .attr = "group=4 pads=1,1,1,1 strides=2,2"},
	{.in = "2,4,6,6 4,1,3,3", .attr = "group=4 pads=2,2,2,2 dilations=2,2"},
	{.in = "2,3,4,4 6,3,1,1 6"},
	{.in = "2,3,5,5 6,3,1,1", .attr = "strides=2,2"},
	{.in = "2,8,4,4 6,4,1,1", .attr = "group=2"},
	{.in = "2,3,6,7 4,3,3,4", .attr = "auto_pad=SAME_UPPER strides=2,2"},
	{.in = "2,3,6,7 4,3,2,4", .attr = "auto_pad=SAME_LOWER strides=1,2"},
	{.in = "2,3,6,7 4,3,2,4", .attr = "auto_pad=VALID"},
	{.in = "a,b,C d,b,3 d", .attr = "pads=2,1 strides=2"},
	{.in = "2,4,9 4,2,4", .attr = "group=2 dilations=2 pads=3,3"},
	{.in = "2,3,19,1 4,3,5,1 4", .attr = "pads=2,0,1,0 strides=2,1"},
	{.in = "1,2,1,17,1 3,2,1,3,1"},
	{.in = "1,3,4,5,4 3,3,2,3,2 3", .attr = "pads=1,1,0,0,1,1 strides=2,1,2"},
	{.in = "1,2,3,4,4 2,1,2,2,2", .attr = "group=2"},
	{.in = "2,16,4,5,6 16,16,3,3,2 16", .attr = "pads=1,1,0,1,0,1 strides=1,2,1"},
	{.in = "2,16,5,4,6 16,1,3,3,3", .attr = "group=16 pads=1,1,1,1,1,1"},
	{.in = "3,48,9,11 48,1,3,2", .attr = "group=48 strides=2,3 dilations=2,1 pads=2,0,1,1"},
	{.in = "a,b,3,C,D c,b,2,3,3 c", .attr = "pads=1,0,1,0,1,1 dilations=1,2,1"},
	{.in = "1,3,4,4 3,3,1,1", .attr = "strides=3,3 pads=1,1,1,1"},
	{.in = "2,20,17,19 33,20,3,3 33", .attr = "pads=1,1,1,1"},
	{.in = "2,16,9,8 32,16,3,3 32", .attr = "pads=1,1,1,1"},
	{.in = "3,32,6,7 16,32,3,3", .attr = "pads=1,0,1,2"},
	{.in = "2,32,5,6 32,1,3,3 32", .attr = "group=32 pads=1,1,1,1 strides=2,1"},
	{.in = "2,16,7,6 10,16,1,1 10"},
	{0},
};

static int conv_channels(const struct node *n, int k)
{
	(void)n;
	return k == 1 ? 0 : -1;
}

const struct op_def ops_conv[] = {
	{.name = "Conv",
		.apart = APART_FIRST,
		.weights = 6,
		.bias = {.input = 2, .axis = 0},
		.since = 1,
		.min_in = 2,
		.max_in = 3,
		.infer = conv_infer,
		.traits = OP_PRODUCT,
		.narrow_in = 3,
		.narrow_out = 1,
		.channels = conv_channels,
		.lower = conv_lower,
		.adapter = &(const struct op_adapter){ADAPTER_CONV, 1, conv_adapt},
		.grad = conv_grad,
		.cost = conv_cost,
		.block = conv_forward_block,
		.library = conv_library,
		.workspace = conv_workspace,
		.emit_c = conv_emit,
		.emit_cuda = conv_cuda_emit,
		.example = conv_examples},
	{.name = "stint.ConvGradX",
		.min_in = 2,
		.infer = grad_x_infer,
		.traits = OP_PRODUCT,
		.narrow_in = 3,
		.narrow_out = 1,
		.grad = grad_x_grad,
		.cost = conv_cost,
		.block = conv_grad_x_block,
		.library = grad_x_library,
		.workspace = grad_x_workspace,
		.emit_c = grad_x_emit,
		.emit_cuda = grad_x_cuda_emit},
	{.name = "stint.ConvGradW",
		.min_in = 2,
		.infer = grad_w_infer,
		.traits = OP_PRODUCT,
		.narrow_in = 3,
		.narrow_out = 1,
		.cost = conv_cost,
		.block = conv_grad_w_block,
		.library = grad_w_library,
		.workspace = grad_w_workspace,
		.emit_c = grad_w_emit,
		.emit_cuda = grad_w_cuda_emit},
	{0},
};
