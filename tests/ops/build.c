/* From an example to C sources. */
#include <string.h>

#include "compile/graphs.h"
#include "compile/target.h"
#include "graph/expansion.h"
#include "runtime/stint_lib.h"
#include "tests/ops/ops_test.h"

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)hint;
	if (level == DIAG_ERROR)
		case_error(user, "%s%s%s", w && w->node ? w->node : "", w && w->node ? ": " : "",
			message);
}

/* A loss as the command line adds it: with a target that is given, not computed. One that a model
 * holds has no control input. */
static bool takes_target(const struct test_case *c)
{
	return c->op->loss && c->nin > 2;
}

/* The graph's tensor for input k: with `known`, a constant. */
static struct tensor *input_tensor(
	struct test_case *c, struct graph *g, const char *scope, int k, bool known)
{
	const struct example_input *v = &c->in[k];
	if (v->kind == VALUE_ABSENT)
		return NULL;
	bool real = v->kind == VALUE_REAL || (v->kind == VALUE_KNOWN && !v->integer);
	enum dtype t = real ? g->real : v->kind == VALUE_BOOL ? DT_BOOL : DT_I64;
	char *data = arena_alloc(c->arena, (size_t)v->numel, (size_t)dtype_bytes(t));
	struct tensor *x = graph_tensor(
		g, arena_printf(c->arena, "%sx%d", scope, k), t, v->rank, v->dim);
	if (!data || !x)
		return NULL;
	for (int64_t i = 0; i < v->numel; i++)
		value_set(t, data, i, v->v[i]);
	x->data = data;
	bool target = takes_target(c) && k > 0;
	x->role = known || v->kind == VALUE_KNOWN ? TR_CONSTANT
		  : real && !target && !v->data   ? TR_PARAMETER
						  : TR_INPUT;
	return x;
}

static const char *role_name(const struct graph *g, enum op_role role)
{
	return op_by_role(g->table, role)->name;
}

/* One more output, of one more parameter: so that examples of views have a step to run, and those
 * without a gradient a backward pass to go through, in which they must not appear. */
static enum status add_extra(struct test_case *c, struct graph *g)
{
	double *two = ARENA_NEW(c->arena, double);
	struct tensor *p = graph_tensor(g, "extra", g->real, 0, NULL);
	if (!p || !two)
		return ST_INTERNAL;
	value_set(g->real, two, 0, 2);
	p->role = TR_PARAMETER;
	p->data = two;
	g->output[g->noutput] = OP2(g, role_name(g, ROLE_MUL), p, graph_scalar(g, 3));
	if (g->output[g->noutput])
		g->output[g->noutput++]->name = "extra output";
	return g->failed;
}

/* A record that only stands for others: their outputs, as those of a node in no graph. */
static enum status expanded(
	struct test_case *c, struct graph *g, struct tensor *const *in, struct node **node)
{
	struct value given[CASE_INPUTS], out[CASE_OUTPUTS] = {0};
	struct node *n = *node = ARENA_NEW(c->arena, struct node);
	int64_t left = 1000;
	if (!n)
		return ST_INTERNAL;
	*n = (struct node){.op = c->op, .nout = c->example->nout ? c->example->nout : 1};
	n->out = ARENA_ARRAY(c->arena, struct tensor *, n->nout);
	for (int k = 0; k < c->nin; k++)
		given[k] = (struct value){in[k] ? VALUE_TENSOR : VALUE_NONE, .tensor = in[k]};
	if (!n->out || n->nout > CASE_OUTPUTS)
		return ST_INTERNAL;
	TRY(graph_expand(
		g, c->op, "example", c->nin, given, n->nout, out, c->nattr, c->attr, &left));
	for (int k = 0; k < n->nout; k++)
		n->out[k] = out[k].tensor;
	return ST_OK;
}

enum status case_node(struct test_case *c, struct graph *g, const char *scope, bool known,
	struct tensor **inputs, struct node **node)
{
	struct tensor *in[CASE_INPUTS];
	for (int k = 0; k < c->nin; k++) {
		in[k] = input_tensor(c, g, scope, k, known);
		if (in[k] && in[k]->role == TR_INPUT)
			inputs[g->ninput++] = in[k];
	}
	g->input = inputs;
	g->opset = c->op->until ? c->op->until - 1 : OPSET_LATEST;
	TRY(c->op->expand && !c->op->infer
			? expanded(c, g, in, node)
			: graph_node(g, c->op->name, "example", c->nin, in, c->example->nout,
				  c->nattr, c->attr, NULL, node));
	g->opset = OPSET_LATEST;
	for (int k = 0; k < (*node)->nout; k++)
		if ((*node)->out[k])
			(*node)->out[k]->name = arena_printf(c->arena, "%sy%d", scope, k);
	return ST_OK;
}

/* A graph of the one node, and with it unless all is known the extra one. */
static enum status example_graph(struct test_case *c, struct diag *d, const struct target *target,
	enum dtype real, bool known, struct graph **out, struct node **node)
{
	struct graph *g = graph_new(c->arena, d, "example", ops_table(), target, real);
	struct tensor **inputs = ARENA_ARRAY(c->arena, struct tensor *, CASE_INPUTS);
	if (!g || !inputs)
		return ST_INTERNAL;
	TRY(case_node(c, g, "", known, inputs, node));
	if ((*node)->nout >= CASE_OUTPUTS)
		return diag_fail(d, ST_INTERNAL, NULL, NULL, "more outputs than the test holds");
	g->output = ARENA_ARRAY(c->arena, struct tensor *, (*node)->nout + 1); /* the extra one */
	if (!g->output)
		return ST_INTERNAL;
	for (int k = 0; k < (*node)->nout; k++)
		if ((*node)->out[k])
			g->output[g->noutput++] = (*node)->out[k];
	*out = g;
	return known ? ST_OK : add_extra(c, g);
}

/* What fold makes of the same inputs, in double precision. */
enum status case_reference(struct test_case *c, struct diag *d, const struct target *t)
{
	struct graph *g;
	struct node *n;
	TRY(example_graph(c, d, t, DT_F64, true, &g, &n));
	for (int k = 0; k < g->noutput; k++) {
		const struct tensor *y = g->output[k];
		if (y->role != TR_CONSTANT)
			continue;
		c->reference[k] = ARENA_ARRAY(c->arena, double, y->numel);
		for (int64_t i = 0; i < y->numel; i++)
			c->reference[k][i] = tensor_real(y, i);
	}
	return ST_OK;
}

struct tensor *case_weighted_sum(struct test_case *c, struct graph *g, struct tensor *y, int k)
{
	char *data = arena_alloc(c->arena, (size_t)y->numel, (size_t)dtype_bytes(g->real));
	int64_t axes[RANK_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
	const struct attr attr[] = {
		ATTR_IS("axes", y->rank, arena_memdup(c->arena, axes, RANK_MAX, sizeof *axes)),
		ATTR_I("keepdims", 0)};
	if (!data)
		return NULL;
	for (int64_t i = 0; i < y->numel; i++)
		value_set(g->real, data, i,
			0.25 + (double)(float)case_draw((uint64_t)k + 100, (uint64_t)i));
	struct tensor *w = graph_constant(g, "weights", g->real, y->rank, y->dim, data);
	struct tensor *sum = OP2(g, role_name(g, ROLE_MUL), y, w);
	return y->rank ? graph_op(g, role_name(g, ROLE_REDUCE_SUM), 1, &sum, 2, attr) : sum;
}

static enum status attach_loss(void *user, struct graph *g)
{
	struct test_case *c = user;
	g->scope = "loss";
	for (int k = g->noutput - 1; k >= 0; k--) {
		struct tensor *y = g->output[k];
		/* a loss's other outputs are for its own gradient */
		if (takes_target(c) && k > 0 && k < g->noutput - 1)
			continue;
		if (!dtype_is_real(y->dtype) || y->role != TR_VALUE)
			continue;
		y = case_weighted_sum(c, g, y, k);
		g->loss = g->loss ? OP2(g, role_name(g, ROLE_ADD), g->loss, y) : y;
	}
	g->scope = NULL;
	return g->failed;
}

static bool is_narrow(enum variant_kind kind)
{
	return kind == VAR_NARROW || kind == VAR_ROUNDED || kind == VAR_CUDA_NARROW;
}

/* Library calls go the least usual way: what other tests do not do. */
static void take_last_way(struct graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		struct node *n = g->node[i];
		if (n->nway > 1)
			n->way[0] = n->way[n->nway - 1];
		n->nway = n->nway > 0;
	}
}

/* Single precision has its channels in blocks wherever a record knows them. */
static enum status graphs_of(struct test_case *c, enum variant_kind kind, const struct graph *in,
	struct graph **train, struct graph **eval)
{
	struct optimizer_spec sgd;
	const struct graph_options o = {.optimizer = &sgd,
		.everywhere = true,
		.narrow = is_narrow(kind) ? DT_BF16 : DT_F32,
		.narrow_flags = NARROW_EVERYWHERE | (kind == VAR_ROUNDED ? NARROW_CONVERT : 0),
		.attach = attach_loss,
		.user = c};
	struct variant *v = &c->variant[kind];
	TRY(optimizer_parse(c->arena, ops_table(), "sgd:lr=0.5", &sgd, in->diag));
	TRY(graphs_train(in, &o, train));
	TRY(graphs_forward(in, &o, LOWER_EVAL, eval));
	take_last_way(*train);
	take_last_way(*eval);
	v->noutput = (*eval)->noutput;
	for (int k = 0; k < v->noutput; k++)
		v->output_known[k] = (*eval)->output[k]->role == TR_CONSTANT;
	return ST_OK;
}

static bool uses_library(const struct graph *g)
{
	struct lib_call call;
	int64_t bytes;
	for (int i = 0; i < g->nnode; i++)
		if (node_uses_library(g, g->node[i], &call, &bytes))
			return true;
	return false;
}

/* Some record says itself what it does with narrow values. */
static bool knows_narrow(const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->op->narrow_in | g->node[i]->op->narrow_out)
			return true;
	return false;
}

/* Products, whose library sums narrow operands in an order of its own. */
static bool has_products(const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->op->traits & OP_PRODUCT)
			return true;
	return false;
}

static enum status build_variant(struct test_case *c, struct diag *d, enum variant_kind kind,
	struct target *target, const char *folder)
{
	struct variant *v = &c->variant[kind];
	enum dtype real = kind == VAR_DOUBLE || kind == VAR_TIGHT ? DT_F64 : DT_F32;
	struct graph *imported, *train, *eval;
	struct node *n;
	TRY(example_graph(c, d, target, real, false, &imported, &n));
	TRY(graphs_of(c, kind, imported, &train, &eval));
	if (kind == VAR_LIBRARY && !uses_library(train) && !uses_library(eval))
		return ST_OK;
	if (is_narrow(kind) && !knows_narrow(train) && !knows_narrow(eval))
		return ST_OK;
	TRY(step_write(c->arena, d, v->symbol, train, eval, kind == VAR_TIGHT, folder, &v->train,
		&v->eval));
	v->same_sums = !has_products(train) && !has_products(eval);
	v->built = true;
	return ST_OK;
}

static bool is_wanted(int kind, bool cuda)
{
	return kind == VAR_DOUBLE || kind == VAR_ROUNDED || variant_is_cuda(kind) == cuda;
}

void case_target(const struct op_def *op, enum variant_kind v, struct target *target)
{
	const bool library = v == VAR_LIBRARY || is_narrow(v) || variant_is_cuda((int)v);
	/* not where exact values would go through transpositions, which are narrow
	 * everywhere here alone */
	const bool last = v == VAR_CUDA_NARROW && op && !(op->traits & OP_EXACT);
	*target = (struct target){.cuda = variant_is_cuda((int)v),
		.portable = !library,
		.threads = 2,
		.block = last              ? BLOCK_ALL
			 : v == VAR_CUDA   ? 0
			 : library         ? stint_lib_block()
			 : v == VAR_SINGLE ? 2
					   : 0,
		.math = MATH_FREE,
		.library_workspace = library ? target_library_workspace : NULL,
		.user = target};
}

/* A record that evaluates on the host must do so on its own examples, or nothing is compared. */
static bool is_unreferenced(const struct test_case *c)
{
	bool found = false;
	for (int k = 0; k < CASE_OUTPUTS; k++)
		found |= c->reference[k] != NULL;
	return !found && (c->op->fold || (c->op->traits & (OP_POINTWISE | OP_VIEW)));
}

void case_build(struct test_case *c, int index, const char *folder, bool cuda)
{
	struct diag d = {.put = put, .user = c};
	for (int v = 0; v < VAR_COUNT && !*c->error; v++) {
		struct target *target = ARENA_NEW(c->arena, struct target);
		if (!target)
			return;
		if (!is_wanted(v, cuda))
			continue;
		case_target(c->op, (enum variant_kind)v, target);
		if (v == VAR_DOUBLE &&
			(case_reference(c, &d, target) != ST_OK || is_unreferenced(c)))
			case_error(c, "no reference");
		snprintf(c->variant[v].symbol, sizeof c->variant[v].symbol, "case%d_%d", index, v);
		if (build_variant(c, &d, (enum variant_kind)v, target, folder) != ST_OK)
			case_error(c, "failed without a message");
	}
}
