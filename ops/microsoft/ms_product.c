/* ONNX Runtime's products: with transposes, an activation, an addend, channels last. */
#include "graph/op_adapter.h"
#include "ops/microsoft/ms.h"

/* --- What is done to a result --- */

/* An activation, and the numbers that it needs by the names of ONNX's attributes. */
struct activation {
	const char *op;
	int n;
	const char *option[2];
};

static const struct activation *activation_named(const char *name)
{
	static const struct activation all[] = {{"Relu", 0, {0}}, {"Tanh", 0, {0}},
		{"Sigmoid", 0, {0}}, {"Softplus", 0, {0}}, {"Softsign", 0, {0}},
		{"HardSwish", 0, {0}}, {"LeakyRelu", 1, {"alpha"}}, {"Elu", 1, {"alpha"}},
		{"Celu", 1, {"alpha"}}, {"ThresholdedRelu", 1, {"alpha"}},
		{"Clip", 2, {"min", "max"}}, {"HardSigmoid", 2, {"alpha", "beta"}},
		{"Selu", 2, {"alpha", "gamma"}}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i].op, name))
			return &all[i];
	return NULL;
}

/* Number k of the activation: of the list activation_params, or by a name of its own. */
static bool activation_number(
	const struct expansion *x, const struct activation *a, int k, struct attr *out)
{
	const struct attr *list = node_attr(x->node, "activation_params");
	const char *name = arena_printf(x->g->arena, "activation_%s", a->option[k]);
	const struct attr *own = name ? node_attr(x->node, name) : NULL;
	const bool listed = list && list->kind == ATTR_FLOATS && k < list->n;
	if (!listed && (!own || own->kind != ATTR_FLOAT))
		return false;
	*out = ATTR_F(a->option[k], listed ? list->floats[k] : own->f);
	return true;
}

static enum status give_activated(struct expansion *x, struct tensor *t)
{
	const char *name = node_string(x->node, "activation", "");
	const struct activation *a = activation_named(name);
	struct attr attr[2];
	if (!*name)
		return ms_give(x, 0, t);
	if (!a)
		return node_fail(x->g, x->node, "export the model without ONNX Runtime's fusions",
			"its activation '%s' is not known", name);
	for (int k = 0; k < a->n; k++)
		if (!activation_number(x, a, k, &attr[k]))
			return node_fail(x->g, x->node, NULL, "its activation %s lacks its %s",
				name, a->option[k]);
	return ms_give(x, 0, graph_op(x->g, a->op, 1, &t, a->n, attr));
}

/* The node of ONNX's on these inputs, with all the attributes that are not the activation's. */
static struct tensor *plain(
	const struct expansion *x, const char *op, int nin, struct tensor *const *in)
{
	const struct node *n = x->node;
	struct attr *attr = ARENA_ARRAY(x->g->arena, struct attr, n->nattr);
	int nattr = 0;
	if (!attr) {
		x->g->failed = diag_nomem(x->g->diag);
		return NULL;
	}
	for (int i = 0; i < n->nattr; i++)
		if (strncmp(n->attr[i].name, "activation", strlen("activation")) != 0)
			attr[nattr++] = n->attr[i];
	struct node *m = ms_node(x, op, nin, in, 1, nattr, attr);
	return m ? m->out[0] : NULL;
}

/* --- FusedGemm(a, b [, c]), FusedConv(x, w [, bias, addend]), NhwcConv(x, w [, bias]) --- */

static enum status gemm_expand(struct expansion *x)
{
	TRY(ms_check(x));
	return give_activated(x, plain(x, "Gemm", x->nin, x->node->in));
}

static enum status conv_expand(struct expansion *x)
{
	struct tensor *const *in = x->node->in, *bias = node_input(x->node, 2);
	TRY(ms_check(x));
	struct tensor *y = plain(x, "Conv", bias ? 3 : 2, in), *addend = node_input(x->node, 3);
	return give_activated(x, y && addend ? OP2(x->g, "Add", y, addend) : y);
}

/* The filters are [M, kH, kW, C / group], as ONNX Runtime's tools write them and its kernel reads,
 * whatever its schema says. */
static enum status nhwc_expand(struct expansion *x)
{
	struct tensor *const *in = x->node->in, *bias = node_input(x->node, 2);
	TRY(ms_check(x));
	if (in[0]->rank < 3 || in[1]->rank != in[0]->rank)
		return node_fail(x->g, x->node, NULL,
			"x and the filters must have as many axes, three or more");
	struct tensor *first[] = {
		ms_channels_first(x->g, in[0]), ms_channels_first(x->g, in[1]), bias};
	return ms_give(x, 0, ms_channels_last(x->g, plain(x, "Conv", bias ? 3 : 2, first)));
}

/* --- FusedMatMul(a, b): alpha times the product. transBatch brings the first axis before the last;
 * trans then swaps the last two. --- */

static bool asks(const struct expansion *x, const char *what, int input)
{
	const char *name = arena_printf(x->g->arena, "%s%c", what, 'A' + input);
	return name && node_int(x->node, name, 0) != 0;
}

static struct tensor *turned(struct expansion *x, int input)
{
	struct tensor *t = x->node->in[input];
	const int last = t->rank - 1;
	const bool batch = asks(x, "transBatch", input), swap = asks(x, "trans", input);
	int64_t perm[RANK_MAX];
	if (last < 1 || (!batch && !swap)) /* a vector has nothing to turn */
		return t;
	for (int i = 0; i < last; i++)
		perm[i] = batch ? (i + 1) % last : i;
	perm[last] = last;
	if (swap) {
		perm[last] = perm[last - 1];
		perm[last - 1] = last;
	}
	return ms_transpose(x->g, t, perm);
}

static enum status matmul_expand(struct expansion *x)
{
	struct graph *g = x->g;
	struct tensor *const *in = x->node->in;
	const double alpha = node_float(x->node, "alpha", 1);
	TRY(ms_check(x));
	for (int i = 0; i < 2; i++)
		if (asks(x, "transBatch", i) && (in[i]->rank < 3 || in[0]->rank != in[1]->rank))
			return node_fail(g, x->node, NULL,
				"transBatch wants inputs of as many axes, three or more");
	struct tensor *y = OP2(g, "MatMul", turned(x, 0), turned(x, 1));
	return ms_give(x, 0, y && alpha != 1 ? OP2(g, "Mul", y, graph_scalar(g, alpha)) : y);
}

/* clang-format off */
#define MATMUL(onnx, ...)                                                                          \
	{.name = onnx, .since = 1, .min_in = 2, .weights = 2, .expand = matmul_expand,             \
		.bias = {.axis = 1, .turned = "transB"}, .adapter = &(const struct op_adapter){ADAPTER_LINEAR, .weight = 1},   \
		.example = EXAMPLES(__VA_ARGS__)}

const struct op_def ops_ms_product[] = {
	MATMUL("com.microsoft.FusedMatMul", {.in = "2,3,4 5,4", .attr = "alpha=0.5 transB=1"}, {.in = "4 4,5", .attr = "transA=1"},
		{.in = "5,2,3,4 2,3,5,6", .attr = "transA=1 transBatchA=1"}, {.in = "2,3,4,5 6,2,3,5", .attr = "transB=1 transBatchB=1"}),
	MATMUL("com.microsoft.TransposeMatMul", {.in = "3,4 5,4", .attr = "alpha=0.5 transB=1"}), /* its older name */
	{.name = "com.microsoft.FusedGemm", .since = 1, .min_in = 2, .max_in = 3, .weights = 6, .expand = gemm_expand,
		.bias = {.input = 2, .axis = 1, .turned = "transB"}, .adapter = &(const struct op_adapter){ADAPTER_LINEAR, .weight = 1},
		.example = EXAMPLES({.in = "3,4 5,4 5", .attr = "activation=Tanh transB=1"},
			{.in = "3,4 4,5", .attr = "activation=LeakyRelu activation_alpha=0.3 alpha=0.5"},
			{.in = "3,4 4,5 1,5", .attr = "activation=HardSigmoid activation_alpha=0.3 activation_beta=0.4 beta=0.5"})},
	{.name = "com.microsoft.FusedConv", .since = 1, .min_in = 2, .max_in = 4, .weights = 6, .expand = conv_expand,
		.bias = {.input = 2, .axis = 0}, .adapter = &(const struct op_adapter){ADAPTER_CONV, .weight = 1},
		.example = EXAMPLES({.in = "2,3,5,5 4,3,3,3 4", .attr = "activation=Sigmoid pads=1,1,1,1"},
			{.in = "2,3,5,5 4,3,3,3 - 2,4,3,3", .attr = "activation=Tanh"}, {.in = "2,3,7 4,3,3", .attr = "strides=2"},
			{.in = "1,2,4,4 2,1,2,2 2", .attr = "activation=Clip activation_params=-0.6,0.7 group=2"})},
	{.name = "com.microsoft.NhwcConv", .since = 1, .min_in = 2, .max_in = 3, .weights = 6, .expand = nhwc_expand, .bias = {.input = 2, .axis = 0},
		.example = EXAMPLES({.in = "2,5,6,3 4,3,2,3 4", .attr = "pads=1,0,1,1 strides=2,1"}, {.in = "1,4,4,4 4,2,2,2", .attr = "group=2"})},
	{0},
};
/* clang-format on */
