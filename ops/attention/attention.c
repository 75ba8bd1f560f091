/* Scaled-dot-product attention: the operator that the kernels belong to, its gradient, and its
 * evaluation on the host. attention_op.h says what it computes. */
#include "ops/attention/attention_match.h"
#include "ops/boxes/boxes_op.h"
#include "ops/dropout_op.h"

/* --- Shapes --- */

const int attention_axes[LAYOUT_COUNT][3] = {
	{0, 1, 2}, {0, 2, 1}, {1, 2, 0}, {1, 0, 2}, {2, 1, 0}, {2, 0, 1}};

/* Sizes and strides of batch, head and token of tensor `t`. */
static void read_tensor(
	const struct tensor *t, enum attention_layout layout, int64_t size[3], int64_t stride[3])
{
	int64_t strides[RANK_MAX];
	box_strides(t->rank, t->dim, strides);
	for (int i = 0; i < 3; i++) {
		size[i] = t->dim[attention_axes[layout][i]];
		stride[i] = strides[attention_axes[layout][i]];
	}
}

static enum status read_mask(struct graph *g, const struct node *n, struct attention *p)
{
	const struct tensor *m = node_input(n, IN_MASK);
	const int64_t full[4] = {p->batch, p->heads, p->tq, p->tk};
	int64_t stride = 1;
	for (int i = 0; i < 4; i++)
		p->mask_dim[i] = 1;
	if (!m)
		return ST_OK;
	p->masked = true;
	p->mask_bool = m->dtype == DT_BOOL;
	bool fits = m->rank <= 4 && (p->mask_bool || m->dtype == g->real);
	for (int i = 3, k = m->rank - 1; fits && k >= 0; i--, k--) {
		p->mask_dim[i] = m->dim[k];
		p->mask_stride[i] = m->dim[k] == 1 ? 0 : stride;
		stride *= m->dim[k];
		fits = m->dim[k] == 1 || m->dim[k] == full[i] ||
		       (i == 0 && m->dim[k] > 0 && p->batch % m->dim[k] == 0);
	}
	if (fits)
		return ST_OK;
	char text[200];
	return node_fail(g, n, NULL, "the mask %s does not broadcast to the scores",
		tensor_shape_text(m, text));
}

static enum status read_layout(struct graph *g, const struct node *n, struct attention *p)
{
	const struct attr *layout = node_attr(n, "layout");
	if (layout && (layout->n != ATTENTION_TENSORS || !layout->ints))
		return node_fail(g, n, NULL, "layout must list four numbers");
	for (int i = 0; layout && i < ATTENTION_TENSORS; i++) {
		if (layout->ints[i] < 0 || layout->ints[i] >= LAYOUT_COUNT)
			return node_fail(g, n, NULL, "no layout has this number");
		p->layout[i] = (enum attention_layout)layout->ints[i];
	}
	return ST_OK;
}

static int64_t bound(const struct node *n, const char *name, int64_t none)
{
	const int64_t v = node_int(n, name, none);
	return none < 0 ? (v < none ? none : v) : (v > none ? none : v);
}

static enum status read_shapes(struct graph *g, const struct node *n, struct attention *p)
{
	const struct tensor *q = n->in[IN_Q], *k = n->in[IN_K], *v = n->in[IN_V];
	int64_t sq[3], sk[3], sv[3];
	if (q->rank != 4 || k->rank != 4 || v->rank != 4 || !dtype_is_real(q->dtype) ||
		!dtype_is_real(k->dtype) || !dtype_is_real(v->dtype))
		return node_fail(g, n, NULL, "q, k and v must be real and have four axes");
	read_tensor(q, p->layout[ATTENTION_Q], sq, p->stride[ATTENTION_Q]);
	read_tensor(k, p->layout[ATTENTION_K], sk, p->stride[ATTENTION_K]);
	read_tensor(v, p->layout[ATTENTION_V], sv, p->stride[ATTENTION_V]);
	p->batch = sq[AXIS_BATCH];
	p->heads = sq[AXIS_HEAD];
	p->tq = sq[AXIS_TOKEN];
	p->tk = sk[AXIS_TOKEN];
	p->d = q->dim[AXIS_WIDTH];
	p->dv = v->dim[AXIS_WIDTH];
	p->group = sk[AXIS_HEAD] > 0 ? p->heads / sk[AXIS_HEAD] : 1;
	if (sk[AXIS_BATCH] != p->batch || memcmp(sk, sv, sizeof sk) != 0 ||
		k->dim[AXIS_WIDTH] != p->d || p->group < 1 ||
		p->group * sk[AXIS_HEAD] != p->heads) {
		char a[200], b[200], c[200];
		return node_fail(g, n, NULL, "q %s, k %s and v %s do not fit together",
			tensor_shape_text(q, a), tensor_shape_text(k, b), tensor_shape_text(v, c));
	}
	return ST_OK;
}

/* Of parts of one tensor. */
static enum status read_places(struct graph *g, const struct node *n, struct attention *p)
{
	static const char *const names[] = {"place_q", "place_k", "place_v"};
	const int64_t *size = node_attr(n, "sizes")->ints;
	p->packed = true;
	p->batch = size[0];
	p->heads = size[1];
	p->group = size[1] / size[2];
	p->tq = size[3];
	p->tk = size[4];
	p->d = size[5];
	p->dv = size[6];
	for (int i = 0; i < ATTENTION_OUT; i++) {
		const struct attr *place = node_attr(n, names[i]);
		if (!place || place->n != PLACE || n->in[i] != n->in[0])
			return node_fail(g, n, NULL, "its parts are not told");
		p->offset[i] = place->ints[0];
		memcpy(p->stride[i], place->ints + 1, sizeof p->stride[i]);
	}
	return ST_OK;
}

static enum status attention_infer(struct graph *g, struct node *n)
{
	const struct attr *sizes = node_attr(n, "sizes");
	struct attention *p = ARENA_NEW(g->arena, struct attention);
	if (!p)
		return diag_nomem(g->diag);
	TRY(read_layout(g, n, p));
	if (sizes && sizes->n == SIZES)
		TRY(read_places(g, n, p));
	else
		TRY(read_shapes(g, n, p));
	TRY(read_mask(g, n, p));
	p->scale = node_float(n, "scale", 1);
	p->softcap = node_float(n, "softcap", 0);
	p->lower = bound(n, "lower", -p->tq);
	p->upper = bound(n, "upper", p->tk);
	p->empty = (enum empty_row)node_int(n, "empty", EMPTY_NAN);
	p->ratio = node_input(n, IN_CONTROL) ? node_float(n, "ratio", 0) : 0;
	p->noise = node_int(n, "noise", 0);
	const enum attention_layout layout = p->layout[ATTENTION_OUT];
	const int64_t rows[3] = {p->batch, p->heads, p->tq};
	int64_t dim[4], size[3];
	for (int i = 0; i < 3; i++)
		dim[attention_axes[layout][i]] = rows[i];
	dim[AXIS_WIDTH] = p->dv;
	TRY(data_output(g, n, 0, g->real, 4, dim));
	read_tensor(n->out[0], layout, size, p->stride[ATTENTION_OUT]);
	n->param = p;
	return data_output(g, n, 1, g->real, 3, rows);
}

/* --- On the host, as the formula says --- */

static double score(const struct node *n, int64_t b, int64_t h, int64_t i, int64_t j)
{
	const struct attention *p = n->param;
	const int64_t *q = p->stride[ATTENTION_Q], *k = p->stride[ATTENTION_K], *m = p->mask_stride;
	const int64_t qat = p->offset[IN_Q] + b * q[0] + h * q[1] + i * q[2];
	const int64_t kat = p->offset[IN_K] + b * k[0] + h / p->group * k[1] + j * k[2];
	const int64_t mat = b % p->mask_dim[0] * m[0] + h * m[1] + i * m[2] + j * m[3];
	double s = 0;
	if (j - i < p->lower || j - i > p->upper)
		return -INFINITY;
	for (int64_t c = 0; c < p->d; c++)
		s += tensor_real(n->in[IN_Q], qat + c) * tensor_real(n->in[IN_K], kat + c);
	s *= p->scale;
	if (p->softcap > 0)
		s = p->softcap * tanh(s / p->softcap);
	if (p->masked && p->mask_bool)
		return tensor_int(n->in[IN_MASK], mat) ? s : -INFINITY;
	return p->masked ? s + tensor_real(n->in[IN_MASK], mat) : s;
}

/* One row of the output, from its scores s. */
static void fold_row(
	const struct node *n, int64_t b, int64_t h, int64_t i, double *s, void *const *out)
{
	const struct attention *p = n->param;
	const int64_t *v = p->stride[ATTENTION_V], *o = p->stride[ATTENTION_OUT];
	const enum dtype t = n->out[0]->dtype;
	double top = -INFINITY, sum = 0;
	for (int64_t j = 0; j < p->tk; j++)
		top = fmax(top, s[j] = score(n, b, h, i, j));
	for (int64_t j = 0; j < p->tk; j++)
		sum += s[j] = exp(s[j] - (top > -INFINITY ? top : 0));
	const bool none = p->empty == EMPTY_ZERO       ? sum == 0
			  : p->empty == EMPTY_NAN_ZERO ? !(sum > 0)
						       : false;
	for (int64_t c = 0; c < p->dv; c++) {
		double y = 0;
		for (int64_t j = 0; j < p->tk; j++)
			y += s[j] *
			     tensor_real(n->in[IN_V], p->offset[IN_V] + b * v[0] +
							      h / p->group * v[1] + j * v[2] + c);
		value_set(t, out[0], b * o[0] + h * o[1] + i * o[2] + c, none ? 0 : y / sum);
	}
	value_set(t, out[1], (b * p->heads + h) * p->tq + i, none ? 0 : top + log(sum));
}

static enum status attention_fold(struct graph *g, const struct node *n, void *const *out)
{
	const struct attention *p = n->param;
	double *s = ARENA_ARRAY(g->arena, double, p->tk);
	if (!s)
		return diag_nomem(g->diag);
	for (int64_t b = 0; b < p->batch; b++)
		for (int64_t h = 0; h < p->heads; h++)
			for (int64_t i = 0; i < p->tq; i++)
				fold_row(n, b, h, i, s, out);
	return ST_OK;
}

/* --- What becomes of the dropout --- */

static bool is_dropout_attr(const char *name)
{
	static const char *const list[] = {"ratio", "active", "silent", "noise", "dropout"};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

enum status attention_lower_parts(
	struct graph *g, struct tensor **in, struct attr *attr, int *nattr)
{
	static const int64_t none[ATTENTION_TENSORS] = {0};
	const int64_t *layout = none;
	for (int i = 0; i < *nattr; i++)
		if (!strcmp(attr[i].name, "layout"))
			layout = attr[i].ints;
	struct tensor *base = attention_pack(g, in, layout, attr + *nattr);
	if (!base)
		return g->failed;
	in[IN_Q] = in[IN_K] = in[IN_V] = base;
	*nattr += PACK_ATTRS;
	return g->failed;
}

static enum status attention_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const struct dropout given = {.ratio = node_float(n, "ratio", 0),
		.active = node_int(n, "active", 0) != 0,
		.silent = node_int(n, "silent", 0) != 0,
		.key = (int)node_int(n, "noise", 0)};
	struct tensor *list[] = {
		in[IN_Q], in[IN_K], in[IN_V], n->nin > IN_MASK ? in[IN_MASK] : NULL, NULL};
	struct attr *attr = ARENA_ARRAY(g->arena, struct attr, n->nattr + 2 + PACK_ATTRS);
	int nattr = 0, nin = list[IN_MASK] ? 4 : 3;
	double ratio = 0;
	if (!attr)
		return diag_nomem(g->diag);
	if (node_attr(n, "ratio"))
		dropout_settle(node_string(n, "dropout", n->name), &given, o, &ratio);
	for (int i = 0; i < n->nattr; i++)
		if (!is_dropout_attr(n->attr[i].name))
			attr[nattr++] = n->attr[i];
	if (ratio > 0) {
		attr[nattr++] = ATTR_F("ratio", ratio);
		attr[nattr++] = ATTR_I("noise", given.key);
		list[IN_CONTROL] = graph_control(g);
		nin = IN_CONTROL + 1;
	}
	TRY(attention_lower_parts(g, list, attr, &nattr));
	struct node *m = graph_op_node(g, "stint.Attention", nin, list, nattr, attr, NULL);
	out[0] = m ? m->out[0] : NULL;
	out[1] = m ? m->out[1] : NULL;
	return g->failed;
}

/* Where the first axis is the batch, and nothing is dropped. */
static bool attention_apart(const struct node *n, int axis, const struct lower_options *o)
{
	const struct attention *p = n->param;
	bool apart = axis == 0 && (o->dropout_off || !node_attr(n, "ratio") ||
					  (!node_int(n, "active", 0) && !o->nratio));
	for (int i = 0; i < ATTENTION_TENSORS; i++)
		apart &= attention_axes[p->layout[i]][AXIS_BATCH] == 0;
	return apart;
}

/* --- The gradient --- */

static struct tensor *zeros_like(struct graph *g, const struct tensor *t)
{
	const struct attr shape = data_ints(g, "shape", t->rank, t->dim);
	return graph_op(g, "stint.Zeros", 0, NULL, 1, &shape);
}

static enum status attention_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct tensor *mask = node_input(n, IN_MASK);
	struct tensor *control = node_input(n, IN_CONTROL);
	const int nin = dy[1]     ? GRAD_DLSE + 1
			: control ? GRAD_CONTROL + 1
			: mask    ? GRAD_MASK + 1
				  : GRAD_MASK;
	struct tensor *in[] = {dy[0] ? dy[0] : zeros_like(g, n->out[0]), n->in[IN_Q], n->in[IN_K],
		n->in[IN_V], n->out[0], n->out[1], mask, control, dy[1]};
	const struct attention *p = n->param;
	const int parts = attention_parts(p);
	const bool any = want[IN_Q] || (!p->packed && (want[IN_K] || want[IN_V]));
	const bool dmask = mask && want[IN_MASK], both = any && dmask && attention_joins(g, p);
	struct tensor *to_mask = NULL;
	struct node *m = NULL;
	if (any && graph_node(g, p->packed ? "stint.AttentionGradParts" : "stint.AttentionGrad",
			   NULL, nin, in, parts + both, 0, NULL, n->param, &m) != ST_OK)
		return g->failed = ST_INVALID;
	for (int i = 0; m && i < parts; i++)
		dx[i] = want[i] ? m->out[i] : NULL;
	if (both)
		to_mask = m->out[parts];
	else if (dmask &&
		 (m = graph_op_node(g, "stint.AttentionGradMask", nin, in, 0, NULL, n->param)))
		to_mask = m->out[0];
	if (to_mask && (to_mask = graph_unbroadcast(g, to_mask, mask)))
		dx[IN_MASK] = graph_reshape(g, to_mask, mask->rank, mask->dim);
	return g->failed;
}

/* Summed over the batches and heads that share a mask; the caller sums over tokens. */
static enum status mask_output(struct graph *g, struct node *n, int k)
{
	const struct attention *p = n->param;
	const int64_t dim[4] = {p->mask_dim[0], p->mask_dim[1], p->tq, p->tk};
	return data_output(g, n, k, n->in[GRAD_DY]->dtype, 4, dim);
}

static enum status grad_infer(struct graph *g, struct node *n)
{
	const int parts = attention_parts(n->param);
	for (int k = 0; k < n->nout && k < parts; k++) {
		const struct tensor *x = n->in[GRAD_Q + k];
		TRY(data_output(g, n, k, x->dtype, x->rank, x->dim));
	}
	return n->nout > parts ? mask_output(g, n, parts) : ST_OK;
}

static enum status mask_infer(struct graph *g, struct node *n)
{
	return mask_output(g, n, 0);
}

/* --- Cost --- */

/* Pairs of query and key that see each other, of one head. */
static double pairs_seen(const struct attention *p)
{
	double sum = 0;
	for (int64_t i = 0; i < p->tq; i++) {
		const int64_t from = i + p->lower > 0 ? i + p->lower : 0;
		const int64_t to = i + p->upper < p->tk ? i + p->upper + 1 : p->tk;
		sum += to > from ? (double)(to - from) : 0;
	}
	return sum;
}

/* `qk` products over the width of q and `pv` over that of v; an exponential counts as 20. */
static struct op_cost cost_of(const struct node *n, int qk, int pv)
{
	const struct attention *p = n->param;
	const double pairs = pairs_seen(p) * (double)(p->batch * p->heads);
	const double width = qk * (double)p->d + pv * (double)p->dv;
	struct op_cost c = {
		pairs * (2 * width + 30 + (p->softcap > 0 ? 40 : 0) + (p->ratio > 0 ? 20 : 0)), 0};
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && (i == 0 || n->in[i] != n->in[i - 1]))
			c.bytes += (double)tensor_bytes(n->in[i]);
	for (int k = 0; k < n->nout; k++)
		c.bytes += (double)tensor_bytes(n->out[k]);
	return c;
}

static struct op_cost attention_cost(const struct node *n)
{
	return cost_of(n, 1, 1);
}

static struct op_cost grad_cost(const struct node *n)
{
	return cost_of(n, 3, 2);
}

static const struct op_example attention_examples[] = {
	{.in = "1,2,3,8 1,2,130,8 1,2,130,5", .low = -3, .high = 3},
	{.in = "1,1,270,4 1,1,100,4 1,1,100,3", .attr = "upper=0"},
	{.in = "2,6,4,5 2,2,6,5 2,2,6,3", .attr = "upper=2 scale=0.7"},
	{.in = "1,2,40,4 1,60,2,4 1,2,60,4", .attr = "upper=3 lower=-2 layout=0,1,0,1"},
	{.in = "5,1,2,4 3,2,1,4 2,1,3,3", .attr = "layout=2,4,3,5"},
	{.in = "2,3,5,4 2,3,7,4 2,3,7,6 2,3,5,7", .attr = "scale=0.5"},
	{.in = "2,3,5,4 2,3,7,4 2,3,7,6 5,7", .attr = "softcap=0.8", .low = -2, .high = 2},
	{.in = "2,3,5,4 2,3,7,4 2,3,7,6 2,1,1,7"},
	{.in = "1,3,5,4 1,3,7,4 1,3,7,6 1,3,5,1"},
	{.in = "6,2,5,4 6,2,7,4 6,2,7,6 3,1,5,7", .attr = "upper=1"},
	{.in = "2,2,5,4 2,1,7,4 2,1,7,6 2,1,5,7:bool", .attr = "empty=1"},
	{.in = "2,2,9,4 2,2,2,4 2,2,2,6 9,2:bool", .attr = "empty=1 softcap=1.5"},
	{.in = "1,2,6,4 1,2,5,4 1,2,5,6", .attr = "upper=-3 empty=2"},
	{.in = "2,2,3,4 2,1,7,4 2,1,7,3 3,7", .attr = "ratio=0.3 active=1 noise=5 softcap=2.0"},
	{.in = "1,1,2,300 1,1,5,300 1,1,5,280", .attr = "scale=0.05"},
	{0},
};

static const struct op_example onnx_examples[] = {
	{.in = "a,b,c,d a,b,C,d a,b,C,e"},
	{.in = "2,5,8 2,5,4 2,5,6", .attr = "q_num_heads=4 kv_num_heads=2 is_causal=1 scale=0.3"},
	{.in = "2,2,3,4 2,1,4,4 2,1,4,3 2,2,3,6 2,1,2,4 2,1,2,3", .attr = "is_causal=1", .nout = 3},
	{.in = "2,3,8 2,4,4 2,4,3 - 2,1,2,4 2,1,2,3",
		.attr = "q_num_heads=2 kv_num_heads=1",
		.nout = 4},
	{.in = "2,2,3,4 2,1,4,4 2,1,4,3", .attr = "softcap=0.7 qk_matmul_output_mode=1", .nout = 4},
	{.in = "2,2,3,4 2,2,4,4 2,2,4,3 2,1,3,4",
		.attr = "softcap=0.7 qk_matmul_output_mode=2",
		.nout = 4},
	{.in = "1,2,3,4 1,2,3,4 1,2,3,5 3,3",
		.attr = "is_causal=1 qk_matmul_output_mode=3",
		.nout = 4},
	{.in = "2,2,3,4 2,2,5,4 2,2,5,3 3,4 - - 2:i64<4", .attr = "is_causal=1"},
	{.in = "2,2,3,4 2,2,5,4 2,2,5,3 3,4:bool - - 2:i64<6",
		.attr = "left_window_size=1 right_window_size=1"},
	{.in = "2,2,6,4 2,2,6,4 2,2,6,3", .attr = "left_window_size=2 is_causal=1"},
	{0},
};
/* opset 23: a mask's last axis of 1 broadcasts */
static const struct op_example onnx23_examples[] = {
	{.in = "2,2,3,4 2,2,5,4 2,2,5,3 2,1,3,1"},
	{0},
};

/* clang-format off */
const struct op_def ops_attention[] = {
	{.name = "Attention", .apart = APART_FIRST, .since = 24, .min_in = 3, .max_in = 7, .min_out = 1, .max_out = 4,
		.infer = attention_onnx_infer, .lower = attention_onnx_lower, .example = onnx_examples},
	{.name = "Attention", .apart = APART_FIRST, .since = 23, .until = 24, .min_in = 3, .max_in = 6, .min_out = 1, .max_out = 4,
		.infer = attention_onnx_infer, .lower = attention_onnx_lower, .example = onnx23_examples},
	{.name = "stint.Attention", .apart = APART_FIRST, .apart_if = attention_apart, .traits = OP_ALIKE | OP_OWN_PRODUCT, .narrow_in = 7, .narrow_out = 1, .min_in = 3, .max_in = 5, .min_out = 2, .max_out = 2, .infer = attention_infer,
		.fold = attention_fold, .grad = attention_rule, .cost = attention_cost, .match = attention_match, .lower = attention_lower,
		.workspace = attention_workspace, .emit_c = attention_emit,
		.emit_cuda = attention_cuda_emit, .example = attention_examples},
	{.name = "stint.AttentionGrad", .traits = OP_ALIKE | OP_OWN_PRODUCT, .narrow_in = 31, .narrow_out_cuda = 7, .min_in = 6, .max_in = 9, .min_out = 3, .max_out = 4, .infer = grad_infer,
		.cost = grad_cost, .workspace = attention_grad_workspace, .emit_c = attention_grad_emit,
		.emit_cuda = attention_grad_cuda_emit, .workspace_cuda = attention_tensor_workspace},
	{.name = "stint.AttentionGradParts", .traits = OP_ALIKE | OP_OWN_PRODUCT, .narrow_in = 31, .narrow_out_cuda = 1, .min_in = 6, .max_in = 9, .min_out = 1, .max_out = 2, .infer = grad_infer,
		.cost = grad_cost, .workspace = attention_grad_workspace, .emit_c = attention_grad_emit,
		.emit_cuda = attention_grad_cuda_emit, .workspace_cuda = attention_tensor_workspace},
	{.name = "stint.AttentionGradMask", .traits = OP_ALIKE | OP_OWN_PRODUCT, .narrow_in = 31, .min_in = 7, .max_in = 9, .infer = mask_infer,
		.cost = attention_cost, .workspace = attention_grad_workspace, .emit_c = attention_mask_emit,
		.emit_cuda = attention_mask_cuda_emit},
	{0},
};
/* clang-format on */
