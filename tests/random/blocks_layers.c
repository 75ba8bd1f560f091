/* Blocks that are layers of networks: dense, attention, recurrent, convolution, pooling, norms. */
#include <math.h>
#include <string.h>

#include "tests/random/random.h"

struct wire add_projection(struct generator *g, struct wire x, int64_t m)
{
	const struct wire shape = SHAPE(x.dim[x.rank - 1], m);
	struct wire y = x;
	y.dim[y.rank - 1] = m;
	struct wire w = add_weight(g, 0, 1 / sqrt((double)shape.dim[0]), &shape);
	return add_node(g, "MatMul", &y, format(g, "%s,%s", x.name, w.name));
}

static struct wire block_dense(struct generator *g, struct wire x)
{
	const int64_t m = draw_range(g, 2, 20);
	const struct wire bias = SHAPE(m);
	if (wire_count(&x) / x.dim[x.rank - 1] * m > ELEMENTS_MAX || x.dim[x.rank - 1] > 200)
		return x;
	struct wire y = add_projection(g, x, m);
	return draw_chance(g, 0.7) ? add_two(g, "Add", y, add_bias(g, 0.3, &bias)) : y;
}

static struct wire block_gemm(struct generator *g, struct wire x)
{
	const int64_t k = x.dim[1], m = draw_range(g, 2, 20), flip = draw_below(g, 2);
	const struct wire shape = SHAPE(flip ? m : k, flip ? k : m), bias = SHAPE(m);
	struct wire y = SHAPE(x.dim[0], m);
	if (k > 200 || wire_count(&y) > ELEMENTS_MAX)
		return x;
	struct wire w = add_weight(g, 0, 1 / sqrt((double)k), &shape);
	struct wire b = add_bias(g, 0.3, &bias);
	y = add_node(g, "Gemm", &y, format(g, "%s,%s,%s", x.name, w.name, b.name));
	add_int(g, "transB", flip);
	if (draw_chance(g, 0.3))
		add_float(g, "alpha", 0.75);
	if (draw_chance(g, 0.3))
		add_float(g, "beta", 1.5);
	return y;
}

/* --- Attention --- */

/* [b, s, h*d] to [b, h, s, d]; `turned`: [b, h, d, s]. */
static struct wire heads(struct generator *g, struct wire x, int64_t h, bool turned)
{
	const int64_t s = x.dim[1], d = x.dim[2] / h;
	const int64_t straight[] = {0, 2, 1, 3}, turn[] = {0, 2, 3, 1};
	const struct wire split = SHAPE(x.dim[0], s, h, d);
	const struct wire to = SHAPE(x.dim[0], h, turned ? d : s, turned ? s : d);
	struct wire y = add_reshape(g, x, &split);
	y = add_node(g, "Transpose", &to, y.name);
	add_ints(g, "perm", 4, turned ? turn : straight);
	return y;
}

/* A mask over [s, s]: what each may look at, as summands or truths. */
static struct wire mask_for(struct generator *g, int64_t s, bool truth)
{
	const struct wire shape = SHAPE(s, s);
	struct wire m = add_constant(g, 0, 1, &shape);
	if (!truth)
		return m;
	struct wire y = add_two(g, "Greater", m, add_scalar(g, -3));
	return y;
}

static struct wire attention_spelled(
	struct generator *g, struct wire q, struct wire k, struct wire v, int64_t h)
{
	const int64_t s = q.dim[1], d = q.dim[2] / h;
	const int64_t back[] = {0, 2, 1, 3};
	const struct wire whole = q, scores = SHAPE(q.dim[0], h, s, s);
	const struct wire apart = SHAPE(q.dim[0], h, s, d), together = SHAPE(q.dim[0], s, h, d);
	q = heads(g, q, h, false);
	k = heads(g, k, h, true);
	v = heads(g, v, h, false);
	struct wire p = add_node(g, "MatMul", &scores, format(g, "%s,%s", q.name, k.name));
	p = draw_chance(g, 0.5) ? add_two(g, "Div", p, add_scalar(g, sqrt((double)d)))
				: add_two(g, "Mul", p, add_scalar(g, 1 / sqrt((double)d)));
	if (draw_chance(g, 0.5))
		p = add_two(g, "Add", p, mask_for(g, s, false));
	p = add_same(g, "Softmax", p);
	add_int(g, "axis", -1);
	struct wire y = add_node(g, "MatMul", &apart, format(g, "%s,%s", p.name, v.name));
	y = add_node(g, "Transpose", &together, y.name);
	add_ints(g, "perm", 4, back);
	return add_reshape(g, y, &whole);
}

static struct wire attention_fused(
	struct generator *g, struct wire q, struct wire k, struct wire v, int64_t h)
{
	const char *mask = "";
	if (draw_chance(g, 0.5))
		mask = format(g, ",%s", mask_for(g, q.dim[1], draw_chance(g, 0.5)).name);
	struct wire y = add_node(
		g, "Attention", &q, format(g, "%s,%s,%s%s", q.name, k.name, v.name, mask));
	add_int(g, "q_num_heads", h);
	add_int(g, "kv_num_heads", h);
	if (!*mask && draw_chance(g, 0.5))
		add_int(g, "is_causal", 1);
	if (draw_chance(g, 0.3))
		add_float(g, "softcap", 2);
	return y;
}

static struct wire block_attention(struct generator *g, struct wire x)
{
	const int64_t h = draw_range(g, 1, 3), m = h * draw_range(g, 2, 5);
	if (x.dim[0] * x.dim[1] * m > ELEMENTS_MAX || x.dim[2] > 100 ||
		x.dim[0] * h * x.dim[1] * x.dim[1] > 2 * ELEMENTS_MAX)
		return x;
	struct wire q = add_projection(g, x, m), k = add_projection(g, x, m),
		    v = add_projection(g, x, m), y;
	if (g->opset >= 23 && draw_chance(g, 0.6))
		y = attention_fused(g, q, k, v, h);
	else
		y = attention_spelled(g, q, k, v, h);
	y = add_projection(g, y, x.dim[2]);
	return draw_chance(g, 0.7) ? add_two(g, "Add", x, y) : y;
}

/* --- Recurrent: [t, n, d] --- */

static struct wire block_recurrent(struct generator *g, struct wire x)
{
	static const char *const kinds[] = {"LSTM", "GRU", "RNN"}, *const ways[] = {"forward",
									   "reverse",
									   "bidirectional"};
	const char *kind = DRAW_NAME(g, kinds), *way = DRAW_NAME(g, ways);
	const int64_t t = x.dim[0], n = x.dim[1], d = x.dim[2], h = draw_range(g, 2, 6);
	const int64_t gates = *kind == 'L' ? 4 : *kind == 'G' ? 3 : 1, dir = *way == 'b' ? 2 : 1;
	const int64_t perm[] = {0, 2, 1, 3};
	if (d > 60 || t > 12 || t * n * dir * h > ELEMENTS_MAX)
		return x;
	const struct wire ws = SHAPE(dir, gates * h, d), rs = SHAPE(dir, gates * h, h);
	const struct wire bs = SHAPE(dir, 2 * gates * h), ys = SHAPE(t, dir, n, h);
	const struct wire turned = SHAPE(t, n, dir, h), flat = SHAPE(t, n, dir * h);
	struct wire w = add_weight(g, 0, 1 / sqrt((double)d), &ws);
	struct wire r = add_weight(g, 0, 0.5, &rs), b = add_bias(g, 0.2, &bs);
	struct wire y = add_node(
		g, kind, &ys, format(g, "%s,%s,%s,%s", x.name, w.name, r.name, b.name));
	add_int(g, "hidden_size", h);
	add_text(g, "direction", way);
	if (*kind == 'G')
		add_int(g, "linear_before_reset", draw_below(g, 2));
	y = add_node(g, "Transpose", &turned, y.name);
	add_ints(g, "perm", 4, perm);
	return add_reshape(g, y, &flat);
}

/* --- Convolution and pooling: [n, c, l] and [n, c, h, w] --- */

static struct wire block_conv(struct generator *g, struct wire x)
{
	const int dims = x.rank - 2;
	int64_t groups = draw_chance(g, 0.3) ? x.dim[1] : 1;
	if (x.dim[1] % 2 == 0 && draw_chance(g, 0.3))
		groups = 2;
	/* 16 channels can stand in blocks */
	const int64_t m = groups == 1 && draw_chance(g, 0.4)
				  ? 16
				  : groups * draw_range(g, 1, groups > 2 ? 2 : 6);
	const int64_t stride = draw_chance(g, 0.3) ? 2 : 1, dilation = draw_chance(g, 0.2) ? 2 : 1;
	const int64_t k = draw_chance(g, 0.3) ? 1 : 3, pad = draw_below(g, k);
	int64_t kernel[3] = {k, k, k}, s[3] = {stride, stride, stride}, pads[6];
	int64_t by[3] = {dilation, dilation, dilation};
	struct wire y = x, w = {.rank = x.rank, .dim = {m, x.dim[1] / groups, k, k, k}};
	const struct wire bias = SHAPE(m);
	y.dim[1] = m;
	for (int i = 0; i < dims; i++) {
		int64_t room = x.dim[2 + i] + 2 * pad - dilation * (k - 1) - 1;
		if (room < 0)
			return x;
		pads[i] = pads[dims + i] = pad;
		y.dim[2 + i] = room / stride + 1;
	}
	if (wire_count(&y) > ELEMENTS_MAX || x.dim[1] > 30)
		return x;
	w = add_weight(g, 0, 1 / sqrt((double)wire_count(&w) / (double)m), &w);
	struct wire b = add_bias(g, 0.2, &bias);
	y = add_node(g, "Conv", &y, format(g, "%s,%s,%s", x.name, w.name, b.name));
	add_int(g, "group", groups);
	add_ints(g, "kernel_shape", dims, kernel);
	add_ints(g, "strides", dims, s);
	add_ints(g, "dilations", dims, by);
	add_ints(g, "pads", 2 * dims, pads);
	return y;
}

static struct wire block_transposed(struct generator *g, struct wire x)
{
	const int dims = x.rank - 2;
	const int64_t m = draw_range(g, 1, 4), stride = draw_range(g, 1, 2),
		      k = draw_range(g, 2, 3);
	int64_t s[3] = {stride, stride, stride}, pads[6] = {0};
	struct wire y = x, w = {.rank = x.rank, .dim = {x.dim[1], m, k, k, k}};
	y.dim[1] = m;
	for (int i = 0; i < dims; i++) {
		pads[i] = pads[dims + i] = draw_below(g, 2);
		y.dim[2 + i] = (x.dim[2 + i] - 1) * stride + k - 2 * pads[i];
		if (y.dim[2 + i] < 1)
			return x;
	}
	if (wire_count(&y) > ELEMENTS_MAX || x.dim[1] > 30)
		return x;
	w = add_weight(g, 0, 0.4, &w);
	y = add_node(g, "ConvTranspose", &y, format(g, "%s,%s", x.name, w.name));
	add_ints(g, "strides", dims, s);
	add_ints(g, "pads", 2 * dims, pads);
	return y;
}

static struct wire block_pool(struct generator *g, struct wire x)
{
	const int dims = x.rank - 2;
	const int64_t k = draw_range(g, 2, 3), stride = draw_range(g, 1, 2), pad = draw_below(g, 2);
	int64_t kernel[3] = {k, k, k}, s[3] = {stride, stride, stride}, pads[6];
	bool max = draw_chance(g, 0.5);
	struct wire y = x;
	if (draw_chance(g, 0.15)) {
		for (int i = 0; i < dims; i++)
			y.dim[2 + i] = 1;
		return add_node(g, max ? "GlobalMaxPool" : "GlobalAveragePool", &y, x.name);
	}
	for (int i = 0; i < dims; i++) {
		if (x.dim[2 + i] + 2 * pad < k)
			return x;
		pads[i] = pads[dims + i] = pad;
		y.dim[2 + i] = (x.dim[2 + i] + 2 * pad - k) / stride + 1;
	}
	y = add_node(g, max ? "MaxPool" : "AveragePool", &y, x.name);
	add_ints(g, "kernel_shape", dims, kernel);
	add_ints(g, "strides", dims, s);
	add_ints(g, "pads", 2 * dims, pads);
	if (!max)
		add_int(g, "count_include_pad", draw_below(g, 2));
	return y;
}

static struct wire block_resize(struct generator *g, struct wire x)
{
	static const char *const modes[] = {"nearest", "linear", "cubic"};
	static const char *const ways[] = {"half_pixel", "asymmetric", "align_corners"};
	const char *mode = DRAW_NAME(g, modes);
	int64_t size[4] = {x.dim[0], x.dim[1], x.dim[2], x.dim[3]};
	struct wire y = x;
	for (int i = 2; i < 4; i++)
		y.dim[i] = size[i] = x.dim[i] + draw_range(g, -1, x.dim[i]);
	if (size[2] < 2 || size[3] < 2 || x.dim[2] < 2 || x.dim[3] < 2 ||
		wire_count(&y) > ELEMENTS_MAX)
		return x;
	y = add_node(g, "Resize", &y, format(g, "%s,,,%s", x.name, add_numbers(g, 4, size)));
	add_text(g, "mode", mode);
	add_text(g, "coordinate_transformation_mode", DRAW_NAME(g, ways));
	return y;
}

static struct wire block_depth(struct generator *g, struct wire x)
{
	struct wire y = x;
	bool down = draw_chance(g, 0.5);
	if (down ? x.dim[2] % 2 || x.dim[3] % 2 : x.dim[1] % 4)
		return x;
	y.dim[1] = down ? x.dim[1] * 4 : x.dim[1] / 4;
	y.dim[2] = down ? x.dim[2] / 2 : x.dim[2] * 2;
	y.dim[3] = down ? x.dim[3] / 2 : x.dim[3] * 2;
	y = add_node(g, down ? "SpaceToDepth" : "DepthToSpace", &y, x.name);
	add_int(g, "blocksize", 2);
	if (!down && draw_chance(g, 0.5))
		add_text(g, "mode", "CRD");
	return y;
}

/* [n, c, h, w] to [n, h*w, c] */
static struct wire block_tokens(struct generator *g, struct wire x)
{
	const int64_t area = x.dim[2] * x.dim[3], perm[] = {0, 2, 1};
	const struct wire flat = SHAPE(x.dim[0], x.dim[1], area);
	const struct wire y = SHAPE(x.dim[0], area, x.dim[1]);
	x = add_reshape(g, x, &flat);
	x = add_node(g, "Transpose", &y, x.name);
	add_ints(g, "perm", 3, perm);
	return x;
}

/* --- Values made of parameters alone --- */

/* A learned vector [1, n]; sometimes a view of one that is stored otherwise. */
static struct wire add_query(struct generator *g, int64_t n)
{
	const struct wire row = SHAPE(1, n), column = SHAPE(n, 1), flat = SHAPE(n);
	const int64_t way = draw_below(g, 3);
	struct wire q = add_weight(g, 0, 0.7, way == 0 ? &row : way == 1 ? &flat : &column);
	if (way == 1)
		return add_reshape(g, q, &row);
	return way == 0 ? q : add_node(g, "Transpose", &row, q.name);
}

/* Products of parameters: a query through one layer or two, a matrix of rank 1, a number times
 * another. Their gradients are outer products with parameters in them. */
static struct wire block_learned(struct generator *g, struct wire x)
{
	const int64_t d = x.dim[x.rank - 1], n = draw_range(g, 1, 4);
	const struct wire square = SHAPE(n, n), wide = SHAPE(n, d),
			  rows = SHAPE(x.dim[x.rank - 2], 1);
	const struct wire matrix = SHAPE(rows.dim[0], d), query = SHAPE(1, n), row = SHAPE(1, d);
	struct wire y, w;
	if (draw_chance(g, 0.3)) {
		struct wire p = add_weight(g, 0, 0.7, &rows);
		y = add_node(
			g, "MatMul", &matrix, format(g, "%s,%s", p.name, add_query(g, d).name));
		return add_two(g, draw_chance(g, 0.5) ? "Add" : "Mul", x, y);
	}
	y = add_query(g, n);
	for (int i = (int)draw_below(g, 3); i > 0; i--) {
		w = add_weight(g, 0, 0.7, &square);
		y = add_node(g, draw_chance(g, 0.5) ? "Gemm" : "MatMul", &query,
			format(g, "%s,%s", y.name, w.name));
		if (draw_chance(g, 0.3))
			y = add_activation(g, y);
	}
	w = add_weight(g, 0, 0.7, &wide);
	y = add_node(g, "Gemm", &row, format(g, "%s,%s", y.name, w.name));
	return add_two(g, draw_chance(g, 0.5) ? "Add" : "Mul", x, y);
}

/* --- Norms --- */

static struct wire block_norm(struct generator *g, struct wire x)
{
	const int64_t c = x.dim[1], inner = wire_count(&x) / x.dim[0] / c;
	const struct wire by_channel = SHAPE(c);
	int64_t way = draw_below(g, 4);
	if (inner < 4 || (way == 1 && g->opset < 21))
		return x;
	struct wire s = add_gain(g, 0.2, &by_channel), b = add_bias(g, 0.2, &by_channel);
	const char *in = format(g, "%s,%s,%s", x.name, s.name, b.name);
	struct wire y;
	if (way == 0) {
		y = add_node(g, "InstanceNormalization", &x, in);
	} else if (way == 1) {
		y = add_node(g, "GroupNormalization", &x, in);
		add_int(g, "num_groups", c % 2 ? 1 : 2);
	} else {
		struct wire mean = add_constant(g, 0, 0.1, &by_channel);
		struct wire variance = add_constant(g, 1, 0.05, &by_channel);
		y = add_node(g, "BatchNormalization", &x,
			format(g, "%s,%s,%s", in, mean.name, variance.name));
	}
	add_float(g, "epsilon", draw_chance(g, 0.5) ? 1e-5 : 1e-2);
	return y;
}

static struct wire block_lp(struct generator *g, struct wire x)
{
	const int axis = (int)draw_below(g, x.rank);
	if (x.dim[axis] < 3)
		return x;
	struct wire y = add_same(g, "LpNormalization", x);
	add_int(g, "axis", axis);
	add_int(g, "p", draw_range(g, 1, 2));
	return y;
}

const struct block_def blocks_layers[] = {
	{block_dense, 2, 5, 6},
	{block_gemm, 2, 2, 6},
	{block_attention, 3, 3, 8},
	{block_recurrent, 3, 3, 4},
	{block_conv, 3, 4, 10},
	{block_transposed, 3, 4, 3},
	{block_pool, 3, 4, 4},
	{block_resize, 4, 4, 3},
	{block_depth, 4, 4, 2},
	{block_tokens, 4, 4, 2},
	{block_learned, 2, 4, 4},
	{block_norm, 3, 4, 6},
	{block_lp, 2, 5, 1},
	{.make = NULL},
};
