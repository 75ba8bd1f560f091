/* Random numbers: drawn anew each step, from the seed, the step, the node and the element (as
 * dropout's, kernels/philox.h), so that a recomputation draws what it drew before. The
 * attribute `seed` is ignored: the run's own seed decides, else every step would draw the same. No
 * gradient passes, and nothing is ever folded. */
#include <inttypes.h>

#include "codegen/call.h"
#include "ops/data.h"

/* What to draw: of a node in the model, handed on to the nodes it is lowered to. */
struct draw {
	int key;     /* the node's number in the model */
	double a, b; /* mean and scale, or low and high */
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
};

enum { UNIFORM, NORMAL }; /* variants */

static bool is_normal(const struct node *n)
{
	return n->op->variant == NORMAL;
}

/* The output's type: the attribute's, or else `other`. */
static enum status type_of(
	struct graph *g, const struct node *n, enum dtype other, enum dtype *type)
{
	const struct attr *a = node_attr(n, "dtype");
	*type = other;
	if (a && !data_element_type(a->i, g->real, type))
		return node_fail(g, n, NULL, "element type %" PRId64 " is not supported", a->i);
	return ST_OK;
}

static enum status random_infer(struct graph *g, struct node *n)
{
	struct draw *p = ARENA_NEW(g->arena, struct draw);
	const int64_t *dim = n->nin ? n->in[0]->dim : NULL;
	int rank = n->nin ? n->in[0]->rank : 0;
	if (!p)
		return diag_nomem(g->diag);
	TRY(type_of(g, n, n->nin ? n->in[0]->dtype : g->real, &p->type));
	if (!dtype_is_real(p->type))
		return node_fail(g, n, NULL, "only real numbers can be drawn");
	if (!n->nin)
		TRY(node_ints(g, n, "shape", -1, &rank, &dim));
	if (!n->nin && (!node_attr(n, "shape") || rank > RANK_MAX))
		return node_fail(g, n, NULL, "has no shape, or one of more than %d axes", RANK_MAX);
	p->key = g->nnode;
	p->a = is_normal(n) ? node_float(n, "mean", 0) : node_float(n, "low", 0);
	p->b = is_normal(n) ? node_float(n, "scale", 1) : node_float(n, "high", 1);
	if (!isfinite(p->a) || !isfinite(p->b))
		return node_fail(g, n, NULL, "its range or scale is not finite");
	p->rank = rank;
	for (int i = 0; i < rank; i++)
		p->dim[i] = dim[i];
	n->param = p;
	/* an input gave its shape alone: it is the operator without one from here on */
	const struct op_def *op = op_index_find(
		g->index, is_normal(n) ? "RandomNormal" : "RandomUniform", 1);
	n->op = op ? op : n->op;
	const struct attr attr[] = {data_ints(g, "shape", rank, p->dim), ATTR_I("dtype", 1),
		ATTR_F(is_normal(n) ? "mean" : "low", p->a),
		ATTR_F(is_normal(n) ? "scale" : "high", p->b)};
	TRY(data_settle(g, n, 0, 4, attr));
	return data_output(g, n, 0, p->type, rank, p->dim);
}

static enum status random_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)in, (void)o;
	out[0] = graph_param_op(g, is_normal(n) ? "stint.RandomNormal" : "stint.RandomUniform", 1,
		(struct tensor *[]){graph_control(g)}, 0, NULL, n->param);
	return g->failed;
}

static enum status drawn_infer(struct graph *g, struct node *n)
{
	const struct draw *p = n->param;
	return data_output(g, n, 0, p->type, p->rank, p->dim);
}

static struct op_cost drawn_cost(const struct node *n)
{
	double k = (double)n->out[0]->numel;
	return (struct op_cost){(is_normal(n) ? 60 : 20) * k, (double)tensor_bytes(n->out[0])};
}

/* --- Kernels: kernels/random.h, 128 elements a turn --- */

static enum status draw(struct emit *e, const char *function, const struct node *n,
	struct call_arg a, struct call_arg b)
{
	const struct draw *p = n->param;
	const int64_t count = n->out[0]->numel;
	return call_kernel(e, &(struct kernel_call){.file = "random.h",
				      .function = function,
				      .turns = div_up(count, 128),
				      .work = (is_normal(n) ? 60 : 16) * (double)count,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(p->key),
					      ARG_SIZE(count), ARG_SHARD(e, 0), a, b)});
}

static enum status uniform_emit(struct emit *e, const struct node *n)
{
	const struct draw *p = n->param;
	return draw(e, "random_uniform", n, ARG_REAL(p->a), ARG_REAL(p->b - p->a));
}

static enum status normal_emit(struct emit *e, const struct node *n)
{
	const struct draw *p = n->param;
	return draw(e, "random_normal", n, ARG_DOUBLE(p->a), ARG_DOUBLE(p->b));
}

/* --- Bernoulli: 1 with the probability that the input gives --- */

static enum status bernoulli_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	struct draw *p = ARENA_NEW(g->arena, struct draw);
	if (!p)
		return diag_nomem(g->diag);
	if (!dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "its probabilities are not real numbers");
	TRY(type_of(g, n, x->dtype, &p->type));
	p->key = g->nnode;
	n->param = p;
	return data_output(g, n, 0, p->type, x->rank, x->dim);
}

static enum status bernoulli_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	out[0] = graph_param_op(g, "stint.Bernoulli", 2,
		(struct tensor *[]){in[0], graph_control(g)}, 0, NULL, n->param);
	return g->failed;
}

static enum status tossed_infer(struct graph *g, struct node *n)
{
	const struct draw *p = n->param;
	return data_output(g, n, 0, p->type, n->in[0]->rank, n->in[0]->dim);
}

static enum status tossed_emit(struct emit *e, const struct node *n)
{
	const struct draw *p = n->param;
	const int64_t count = n->out[0]->numel;
	return call_kernel(e, &(struct kernel_call){.file = "bernoulli.h",
				      .function = "bernoulli",
				      .ntype = 1,
				      .type = {n->out[0]},
				      .turns = div_up(count, 128),
				      .work = 16 * (double)count,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1),
					      ARG_SIZE(p->key), ARG_SIZE(count), ARG_SHARD(e, 1))});
}

#define DRAWN(ours, text)                                                                          \
	{                                                                                          \
		.name = ours, .min_in = 1, .traits = OP_STOP, .infer = drawn_infer,                \
		.cost = drawn_cost, .emit_c = text                                                 \
	}
#define RANDOM(onnx, which, inputs, ...)                                                           \
	{                                                                                          \
		.name = onnx, .apart = APART_PLACED, .variant = which, .since = 1,                 \
		.min_in = inputs, .traits = OP_STOP | OP_DRAWS, .infer = random_infer,             \
		.lower = random_lower, .example = EXAMPLES(__VA_ARGS__)                            \
	}

const struct op_def ops_random[] = {
	RANDOM("RandomNormal", NORMAL, 0, {.in = "", .attr = "shape=a,B,40"},
		{.in = "", .attr = "shape=128 mean=-3.0 scale=0.1"}),
	RANDOM("RandomNormalLike", NORMAL, 1, {.in = "a,B,40"}, {.in = "()", .attr = "scale=2.0"},
		{.in = "3,43:i64<9", .attr = "dtype=1 mean=0.5"}),
	RANDOM("RandomUniform", UNIFORM, 0, {.in = "", .attr = "shape=a,B,40"},
		{.in = "", .attr = "shape=128 low=-3.0 high=-1.5"}),
	RANDOM("RandomUniformLike", UNIFORM, 1, {.in = "a,B,40"}, {.in = "()", .attr = "high=2.0"},
		{.in = "3,43:bool", .attr = "dtype=11 low=-1.0"}),
	{.name = "Bernoulli",
		.apart = APART_PLACED,
		.since = 15,
		.min_in = 1,
		.traits = OP_STOP | OP_DRAWS,
		.infer = bernoulli_infer,
		.lower = bernoulli_lower,
		.example = EXAMPLES({.in = "a,B,40", .low = 0, .high = 1},
			{.in = "3,43", .attr = "dtype=7", .low = 0, .high = 1},
			{.in = "3,43", .attr = "dtype=9", .low = 0, .high = 1})},
	DRAWN("stint.RandomNormal", normal_emit),
	DRAWN("stint.RandomUniform", uniform_emit),
	{.name = "stint.Bernoulli",
		.min_in = 2,
		.traits = OP_STOP,
		.infer = tossed_infer,
		.cost = drawn_cost,
		.emit_c = tossed_emit},
	{0},
};
