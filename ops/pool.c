/* MaxPool and AveragePool over 1 to 3 spatial axes, their gradients, and the global pools. Planes
 * are independent; within one, rows of windows are taken tap by tap, so that loops run along the
 * last axis. */
#include <stdio.h>

#include "ops/window.h"

struct pool {
	struct window w;
	int64_t batch, channels;
	bool pad_counts; /* AveragePool: count_include_pad */
};

static enum status pool_infer(struct graph *g, struct node *n)
{
	struct pool *p = ARENA_NEW(g->arena, struct pool);
	if (!p)
		return diag_nomem(g->diag);
	TRY(window_read(g, n, NULL, &p->w));
	if (p->w.plane > INT32_MAX)
		return node_fail(
			g, n, NULL, "a plane of %lld elements is too large", (long long)p->w.plane);
	p->batch = n->in[0]->dim[0];
	p->channels = n->in[0]->dim[1];
	p->pad_counts = node_int(n, "count_include_pad", 0) != 0;
	n->param = p;
	n->out[0] = window_output(g, &p->w, p->batch, p->channels);
	return n->out[0] ? ST_OK : ST_INVALID;
}

/* The gradient nodes take the forward node's parameters. */
static enum status pool_grad_infer(struct graph *g, struct node *n)
{
	const struct pool *p = n->param;
	n->out[0] = window_input(g, &p->w, p->batch, p->channels);
	return n->out[0] ? ST_OK : ST_INVALID;
}

/* A comparison or sum and its addresses: some 8 operations a tap, with a gradient (which looks for
 * the maximum again) 18. */
static struct op_cost pool_cost(const struct node *n)
{
	const struct pool *p = n->param;
	struct op_cost c = {(double)(p->batch * p->channels) * (double)p->w.out_plane *
				    (n->nin > 1 ? 18 : 8) * (double)p->w.taps,
		(double)tensor_bytes(n->out[0])};
	for (int i = 0; i < n->nin; i++)
		c.bytes += (double)tensor_bytes(n->in[i]);
	return c;
}

static enum status max_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (!want[0])
		return ST_OK;
	struct tensor *in[2] = {dy[0], n->in[0]};
	struct node *d = graph_op_node(g, "stint.MaxPoolGrad", 2, in, 0, NULL, n->param);
	dx[0] = d ? d->out[0] : NULL;
	return g->failed;
}

static enum status average_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (!want[0])
		return ST_OK;
	struct node *d = graph_op_node(g, "stint.AveragePoolGrad", 1, dy, 0, NULL, n->param);
	dx[0] = d ? d->out[0] : NULL;
	return g->failed;
}

/* --- C text --- */

/* clang-format off */
static const char max_text[] =
"/* y = the largest of each window of a plane; a NaN stays one. */\n"
"static inline void max_pool(const struct window *w, const real *restrict x, real *restrict y)\n"
"{\n"
"	const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2], s = w->stride[2];\n"
"	for (int64_t a = 0; a < w->out[0]; a++)\n"
"		for (int64_t b = 0; b < w->out[1]; b++, y += w->out[2]) {\n"
"			for (int64_t i = 0; i < w->out[2]; i++)\n"
"				y[i] = -INFINITY;\n"
"			for (int64_t t = 0; t < taps; t++) {\n"
"				int64_t at, lo, hi;\n"
"				if (!window_row(w, a, b, t, &at, &lo, &hi))\n"
"					continue;\n"
"				for (int64_t i = lo; i < hi; i++) {\n"
"					const real v = x[at + i * s];\n"
"					y[i] = v > y[i] || v != v ? v : y[i];\n"
"				}\n"
"			}\n"
"		}\n"
"}\n";

static const char max_grad_text[] =
"/* dx = dy at the first of the largest elements of each window, summed where windows overlap. */\n"
"static inline void max_pool_grad(const struct window *w, const real *restrict x, const real *restrict dy, real *restrict dx)\n"
"{\n"
"	enum { CHUNK = 64 };\n"
"	const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2], s = w->stride[2];\n"
"	for (int64_t i = 0; i < w->size[0] * w->size[1] * w->size[2]; i++)\n"
"		dx[i] = 0;\n"
"	for (int64_t a = 0; a < w->out[0]; a++)\n"
"		for (int64_t b = 0; b < w->out[1]; b++, dy += w->out[2])\n"
"			for (int64_t c = 0; c < w->out[2]; c += CHUNK) {\n"
"				const int64_t end = w->out[2] - c < CHUNK ? w->out[2] : c + CHUNK;\n"
"				real most[CHUNK];\n"
"				int32_t where[CHUNK];\n"
"				for (int i = 0; i < CHUNK; i++) {\n"
"					most[i] = -INFINITY;\n"
"					where[i] = -1;\n"
"				}\n"
"				for (int64_t t = 0; t < taps; t++) {\n"
"					int64_t at, lo, hi;\n"
"					if (!window_row(w, a, b, t, &at, &lo, &hi))\n"
"						continue;\n"
"					lo = lo > c ? lo : c;\n"
"					hi = hi < end ? hi : end;\n"
"					for (int64_t i = lo; i < hi; i++) {\n"
"						const real v = x[at + i * s];\n"
"						const int more = v > most[i - c] || v != v || where[i - c] < 0;\n"
"						most[i - c] = more ? v : most[i - c];\n"
"						where[i - c] = more ? (int32_t)(at + i * s) : where[i - c];\n"
"					}\n"
"				}\n"
"				for (int64_t i = c; i < end; i++)\n"
"					if (where[i - c] >= 0)\n"
"						dx[where[i - c]] += dy[i];\n"
"			}\n"
"}\n";

static const char count_text[] =
"/* How many elements window i sees along an axis; with `pad`, padding counts. */\n"
"static inline int64_t window_count(const struct window *w, int axis, int64_t i, int pad)\n"
"{\n"
"	const int64_t first = i * w->stride[axis] - w->before[axis], d = w->dilation[axis];\n"
"	const int64_t end = w->size[axis] + (pad ? w->after[axis] : 0);\n"
"	int64_t n = 0;\n"
"	for (int64_t t = 0; t < w->kernel[axis]; t++)\n"
"		n += (pad || first + t * d >= 0) && first + t * d < end;\n"
"	return n > 0 ? n : 1;\n"
"}\n";

static const char average_text[] =
"/* y = the mean of each window of a plane. */\n"
"static inline void average_pool(const struct window *w, int pad, const real *restrict x, real *restrict y)\n"
"{\n"
"	const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2], s = w->stride[2];\n"
"	for (int64_t a = 0; a < w->out[0]; a++)\n"
"		for (int64_t b = 0; b < w->out[1]; b++, y += w->out[2]) {\n"
"			const int64_t count = window_count(w, 0, a, pad) * window_count(w, 1, b, pad);\n"
"			for (int64_t i = 0; i < w->out[2]; i++)\n"
"				y[i] = 0;\n"
"			for (int64_t t = 0; t < taps; t++) {\n"
"				int64_t at, lo, hi;\n"
"				if (window_row(w, a, b, t, &at, &lo, &hi))\n"
"					for (int64_t i = lo; i < hi; i++)\n"
"						y[i] += x[at + i * s];\n"
"			}\n"
"			for (int64_t i = 0; i < w->out[2]; i++)\n"
"				y[i] /= (real)(count * window_count(w, 2, i, pad));\n"
"		}\n"
"}\n";

static const char average_grad_text[] =
"/* dx = each window's dy shared out over its elements. */\n"
"static inline void average_pool_grad(const struct window *w, int pad, const real *restrict dy, real *restrict dx)\n"
"{\n"
"	enum { CHUNK = 64 };\n"
"	const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2], s = w->stride[2];\n"
"	for (int64_t i = 0; i < w->size[0] * w->size[1] * w->size[2]; i++)\n"
"		dx[i] = 0;\n"
"	for (int64_t a = 0; a < w->out[0]; a++)\n"
"		for (int64_t b = 0; b < w->out[1]; b++, dy += w->out[2])\n"
"			for (int64_t c = 0; c < w->out[2]; c += CHUNK) {\n"
"				const int64_t count = window_count(w, 0, a, pad) * window_count(w, 1, b, pad);\n"
"				const int64_t end = w->out[2] - c < CHUNK ? w->out[2] : c + CHUNK;\n"
"				real share[CHUNK];\n"
"				for (int64_t i = c; i < end; i++)\n"
"					share[i - c] = dy[i] / (real)(count * window_count(w, 2, i, pad));\n"
"				for (int64_t t = 0; t < taps; t++) {\n"
"					int64_t at, lo, hi;\n"
"					if (!window_row(w, a, b, t, &at, &lo, &hi))\n"
"						continue;\n"
"					lo = lo > c ? lo : c;\n"
"					hi = hi < end ? hi : end;\n"
"					for (int64_t i = lo; i < hi; i++)\n"
"						dx[at + i * s] += share[i - c];\n"
"				}\n"
"			}\n"
"}\n";
/* clang-format on */

/* The loop over planes around one call. */
static void emit_planes(struct emit *e, const struct node *n, const char *call)
{
	const struct pool *p = n->param;
	window_emit(e, &p->w, "s");
	emit_parallel(e, pool_cost(n).flops, 1);
	emit(e, "\tfor (int64_t p = 0; p < %lld; p++)\n", (long long)(p->batch * p->channels));
	emit(e, "\t\t%s;\n", call);
}

static enum status max_emit(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	char call[160];
	window_emit_row(e);
	emit_helper(e, "max_pool", max_text);
	snprintf(call, sizeof call, "max_pool(&s, x0 + p * %lld, y0 + p * %lld)",
		(long long)p->w.plane, (long long)p->w.out_plane);
	emit_planes(e, n, call);
	return ST_OK;
}

static enum status max_grad_emit(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const long long d = p->w.plane, o = p->w.out_plane;
	char call[160];
	window_emit_row(e);
	emit_helper(e, "max_pool_grad", max_grad_text);
	snprintf(call, sizeof call,
		"max_pool_grad(&s, x1 + p * %lld, x0 + p * %lld, y0 + p * %lld)", d, o, d);
	emit_planes(e, n, call);
	return ST_OK;
}

static enum status average_emit(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	char call[160];
	window_emit_row(e);
	emit_helper(e, "window_count", count_text);
	emit_helper(e, "average_pool", average_text);
	snprintf(call, sizeof call, "average_pool(&s, %d, x0 + p * %lld, y0 + p * %lld)",
		p->pad_counts, (long long)p->w.plane, (long long)p->w.out_plane);
	emit_planes(e, n, call);
	return ST_OK;
}

static enum status average_grad_emit(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	char call[160];
	window_emit_row(e);
	emit_helper(e, "window_count", count_text);
	emit_helper(e, "average_pool_grad", average_grad_text);
	snprintf(call, sizeof call, "average_pool_grad(&s, %d, x0 + p * %lld, y0 + p * %lld)",
		p->pad_counts, (long long)p->w.out_plane, (long long)p->w.plane);
	emit_planes(e, n, call);
	return ST_OK;
}

/* --- Global pools: one window of everything. --- */

static enum status global_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	if (x->rank < 3 || !dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "needs real data with spatial axes");
	int64_t dim[RANK_MAX] = {x->dim[0], x->dim[1], 1, 1, 1, 1, 1, 1};
	for (int i = 2; i < x->rank; i++)
		if (x->dim[i] < 1)
			return node_fail(g, n, NULL, "spatial axis %d is empty", i);
	n->out[0] = graph_tensor(g, NULL, g->real, x->rank, dim);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static int64_t global_count(const struct node *n)
{
	int64_t count = 1;
	for (int i = 2; i < n->in[0]->rank; i++)
		count *= n->in[0]->dim[i];
	return count;
}

static enum status global_average_grad(struct graph *g, const struct node *n,
	struct tensor *const *dy, const bool *want, struct tensor **dx)
{
	if (!want[0])
		return ST_OK;
	struct tensor *share = OP2(g, "Mul", dy[0], graph_scalar(g, 1.0 / (double)global_count(n)));
	dx[0] = OP2(g, "Expand", share, graph_ints(g, n->in[0]->rank, n->in[0]->dim));
	return g->failed;
}

static enum status global_average_emit(struct emit *e, const struct node *n)
{
	const long long count = global_count(n);
	char literal[40];
	emit_parallel(e, (double)n->in[0]->numel, 1);
	emit(e, "\tfor (int64_t p = 0; p < %lld; p++)\n", (long long)n->out[0]->numel);
	emit(e, "\t\ty0[p] = sum_lanes(x0 + p * %lld, %lld) / %s;\n", count, count,
		emit_real(e, (double)count, literal));
	return ST_OK;
}

static enum status global_max_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const int rank = in[0]->rank;
	int64_t flat[3] = {in[0]->dim[0], in[0]->dim[1], global_count(n)};
	const struct attr whole = ATTR_IS("kernel_shape", 1, &flat[2]);
	struct tensor *x = graph_reshape(g, in[0], 3, flat);
	struct tensor *y = graph_op(g, "MaxPool", 1, &x, 1, &whole);
	out[0] = y ? graph_reshape(g, y, rank, n->out[0]->dim) : NULL;
	return g->failed;
}

static const struct op_example max_examples[] = {
	{.in = "2,3,6,6", .attr = "kernel_shape=2,2 strides=2,2"},
	{.in = "2,3,7,5", .attr = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"},
	{.in = "2,2,7,6", .attr = "kernel_shape=3,2 strides=2,2 ceil_mode=1"},
	{.in = "2,2,8,9", .attr = "kernel_shape=2,3 dilations=2,2 pads=0,1,1,0"},
	{.in = "2,2,7,8", .attr = "kernel_shape=3,3 strides=2,3 auto_pad=SAME_UPPER"},
	{.in = "2,2,7,8", .attr = "kernel_shape=2,3 strides=2,3 auto_pad=SAME_LOWER"},
	{.in = "2,3,9", .attr = "kernel_shape=3 strides=2 pads=1,0"},
	{.in = "1,2,4,5,6", .attr = "kernel_shape=2,2,3 strides=2,1,2 pads=1,0,1,0,1,1"},
	{.in = "1,2,3,150", .attr = "kernel_shape=2,3 pads=0,1,0,1"},
	{0},
};

static const struct op_example average_examples[] = {
	{.in = "2,3,6,6", .attr = "kernel_shape=2,2 strides=2,2"},
	{.in = "2,3,7,5", .attr = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"},
	{.in = "2,3,7,5", .attr = "kernel_shape=3,3 strides=2,2 pads=1,0,1,1 count_include_pad=1"},
	{.in = "2,2,7,6", .attr = "kernel_shape=3,2 strides=2,2 ceil_mode=1"},
	{.in = "2,2,8,6",
		.attr = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 ceil_mode=1 "
			"count_include_pad=1"},
	{.in = "2,2,8,9", .attr = "kernel_shape=2,3 dilations=2,2 pads=0,1,1,0"},
	{.in = "2,2,7,8", .attr = "kernel_shape=3,3 strides=2,3 auto_pad=SAME_UPPER"},
	{.in = "2,3,9", .attr = "kernel_shape=3 strides=2 pads=1,0"},
	{.in = "1,2,4,5,6", .attr = "kernel_shape=2,2,3 strides=2,1,2 pads=1,0,1,0,1,1"},
	{.in = "1,2,3,150", .attr = "kernel_shape=2,3 pads=0,1,0,1"},
	{0},
};

static const struct op_example global_examples[] = {
	{.in = "2,3,5,7"},
	{.in = "2,3,19"},
	{.in = "1,2,3,4,2"},
	{0},
};

const struct op_def ops_pool[] = {
	{.name = "MaxPool",
		.since = 1,
		.min_in = 1,
		.max_in = 1,
		.infer = pool_infer,
		.grad = max_grad,
		.cost = pool_cost,
		.emit_c = max_emit,
		.example = max_examples},
	{.name = "AveragePool",
		.since = 1,
		.min_in = 1,
		.max_in = 1,
		.infer = pool_infer,
		.grad = average_grad,
		.cost = pool_cost,
		.emit_c = average_emit,
		.example = average_examples},
	{.name = "GlobalAveragePool",
		.since = 1,
		.min_in = 1,
		.max_in = 1,
		.infer = global_infer,
		.grad = global_average_grad,
		.emit_c = global_average_emit,
		.example = global_examples},
	{.name = "GlobalMaxPool",
		.since = 1,
		.min_in = 1,
		.max_in = 1,
		.infer = global_infer,
		.lower = global_max_lower,
		.example = global_examples},
	{.name = "stint.MaxPoolGrad",
		.min_in = 2,
		.max_in = 2,
		.infer = pool_grad_infer,
		.cost = pool_cost,
		.emit_c = max_grad_emit},
	{.name = "stint.AveragePoolGrad",
		.min_in = 1,
		.max_in = 1,
		.infer = pool_grad_infer,
		.cost = pool_cost,
		.emit_c = average_grad_emit},
	{0},
};
