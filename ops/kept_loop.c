/* Loops that stay one node: made of ONNX's where their turns are alike, else they are unrolled
 * (control.c). */
#include "ops/kept_loop.h"

#include "graph/loop.h"
#include "graph/pass.h"
#include "ops/unroll.h"

/* --- Trying to --- */

bool kept_loop_wanted(const struct expansion *x, int64_t turns)
{
	return x->g->loop_turns > 0 && turns >= x->g->loop_turns && turns > 1 && !x->g->when;
}

/* What the body is built on, and what it comes to. */
struct attempt {
	struct kept_loop *k;
	bool ends_early; /* data say when */
	struct loop_nodes nodes;
	struct tensor **in, **out;
	struct value *body_in, *body_out;
};

static struct tensor *place_for(struct graph *g, const struct tensor *like, bool slice)
{
	return graph_tensor(g, like->name, like->dtype, like->rank - slice, like->dim + slice);
}

/* 0, 1, 2, ... */
static struct tensor *numbers(struct graph *g, int64_t turns)
{
	int64_t *v = graph_known(g, NULL, turns, sizeof *v);
	for (int64_t t = 0; v && t < turns; t++)
		v[t] = t;
	return v ? graph_constant(g, "turn", DT_I64, 1, &turns, v) : NULL;
}

static bool allocate(struct attempt *a)
{
	const struct kept_loop *k = a->k;
	struct arena *arena = k->x->g->arena;
	a->in = ARENA_ARRAY(arena, struct tensor *, k->ncarry + k->nscan + 1);
	a->out = ARENA_ARRAY(arena, struct tensor *, k->ncarry + k->ncollect + 1);
	a->body_in = ARENA_ARRAY(arena, struct value, k->body->nin);
	a->body_out = ARENA_ARRAY(arena, struct value, k->body->nout);
	return a->in && a->out && a->body_in && a->body_out;
}

/* Carries, scanned slices, and the turn's number where the body has it. */
static enum status set_inputs(struct attempt *a)
{
	const struct kept_loop *k = a->k;
	struct graph *g = k->x->g;
	struct loop_nodes *n = &a->nodes;
	for (int i = 0; i < k->ncarry; i++)
		a->in[n->nin++] = place_for(g, k->carry[i].tensor, false);
	for (int i = 0; i < k->nscan; i++)
		a->in[n->nin++] = place_for(g, k->scan[i], true);
	if (k->lead)
		a->in[n->nin++] = graph_tensor(g, "turn", DT_I64, 0, NULL);
	if (g->failed != ST_OK)
		return g->failed;
	for (int i = 0; i < k->ncarry + k->nscan; i++)
		a->body_in[k->lead + i] = (struct value){.kind = VALUE_TENSOR, .tensor = a->in[i]};
	if (k->lead) {
		struct tensor *yes = unroll_bool(g, true);
		a->body_in[0] = (struct value){.kind = VALUE_TENSOR, .tensor = a->in[n->nin - 1]};
		a->body_in[1] = (struct value){.kind = VALUE_TENSOR, .tensor = yes};
	}
	return g->failed;
}

/* --- What can be kept --- */

/* A node whose turns are alike whatever else is done to the graph: it draws no random numbers,
 * which are keyed by its place; it keeps no statistics; its layout is nobody's choice. */
static bool node_can_stay(const struct graph *g, const struct node *n)
{
	const struct op_def *op = n->op;
	if (op->traits & (OP_ONCE | OP_UPDATE | OP_COUNTED | OP_DRAWS))
		return false;
	if (op->role == ROLE_DROPOUT || op->role == ROLE_BUFFER || op->role == ROLE_LOOP ||
		op->role == ROLE_BRANCH)
		return false;
	if (g->target->block && g->real == DT_F32 && op->library && op->block)
		return false;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && n->in[k]->stored)
			return false;
	return true;
}

/* A carry that the body makes anew, in the same shape, and no other carry is. */
static bool carry_can_stay(const struct attempt *a, int i)
{
	const struct tensor *t = a->out[i], *was = a->in[i];
	if (t->dtype != was->dtype || !tensor_same_shape(t, was))
		return false;
	if (!dtype_is_real(t->dtype) || t->role == TR_CONSTANT)
		return true;
	const struct tensor *s = tensor_storage(a->out[i]);
	for (int k = 0; k < i; k++)
		if (tensor_storage(a->out[k]) == s)
			return false;
	for (int k = 0; k < a->k->ncarry; k++)
		if (s == a->in[k])
			return false;
	return s->id >= a->nodes.tensor;
}

/* It goes on after each turn, or data say whether it does, one BOOL: what would be collected then
 * has no length that is known. */
static bool condition_can_stay(struct attempt *a)
{
	const struct kept_loop *k = a->k;
	struct tensor *c = k->condition ? a->body_out[0].tensor : NULL;
	if (!c)
		return true;
	a->ends_early = c->role != TR_CONSTANT;
	a->out[k->ncarry + k->ncollect] = c;
	if (c->numel != 1 || c->dtype != DT_BOOL)
		return false;
	return a->ends_early ? k->ncollect == 0 : tensor_real(c, 0) != 0;
}

static bool can_stay(struct attempt *a)
{
	const struct kept_loop *k = a->k;
	const struct graph *g = k->x->g;
	for (int i = 0; i < k->body->nout; i++)
		if (a->body_out[i].kind != VALUE_TENSOR)
			return false;
	if (!condition_can_stay(a))
		return false;
	for (int i = 0; i < k->ncarry + k->ncollect; i++)
		a->out[i] = a->body_out[k->condition + i].tensor;
	for (int i = 0; i < k->ncarry; i++)
		if (!carry_can_stay(a, i))
			return false;
	for (int i = k->ncarry; i < k->ncarry + k->ncollect; i++)
		if (a->out[i]->rank == RANK_MAX)
			return false;
	for (int i = a->nodes.node; i < g->nnode; i++)
		if (!node_can_stay(g, g->node[i]))
			return false;
	return true;
}

/* Builds the body once, without a word: where that fails, unrolling may do, or tells why not. */
static enum status try_body(struct attempt *a, bool *done)
{
	const struct kept_loop *k = a->k;
	struct graph *g = k->x->g;
	const struct diag outer = *g->diag;
	const int64_t turns = g->loop_turns, left = *k->x->left;
	const char *scope = g->scope;
	g->diag->put = NULL;
	g->loop_turns = 0; /* a loop in it is unrolled */
	enum status st = k->body->build(
		k->body, "turn", k->body->nin, a->body_in, k->body->nout, a->body_out);
	if (st == ST_OK)
		st = g->failed;
	const bool nomem = g->diag->out_of_memory;
	*g->diag = outer;
	g->diag->out_of_memory = nomem;
	g->loop_turns = turns;
	g->scope = scope;
	g->failed = ST_OK;
	*done = st == ST_OK && can_stay(a);
	if (!*done)
		*k->x->left = left;
	return nomem ? ST_INTERNAL : ST_OK;
}

/* --- The node --- */

static struct loop *loop_new(const struct attempt *a, struct graph *body)
{
	const struct kept_loop *k = a->k;
	struct arena *arena = body->arena;
	const struct loop plain = {.turns = k->turns,
		.slots = LOOP_SLOTS_ALL,
		.asks = LOOP_SLOTS_INSIDE,
		.ncarry = k->ncarry,
		.cycle = 1,
		.last = -1,
		.advance = -1,
		.go = a->ends_early ? k->ncarry : -1,
		.ran = a->ends_early ? k->ncarry + 1 : -1};
	struct loop *l = loop_copy(arena, &plain, 1);
	struct loop_place *in = ARENA_ARRAY(arena, struct loop_place, body->ninput);
	struct loop_place *out = ARENA_ARRAY(arena, struct loop_place, body->noutput);
	if (!l || !in || !out)
		return NULL;
	const int nc = k->ncarry, nslice = nc + k->nscan;
	for (int i = 0; i < body->ninput; i++) {
		in[i] = (struct loop_place){.kind = LOOP_SAME, .k = i};
		if (i < nc)
			in[i].kind = LOOP_CARRY;
		else if (i < nslice + (k->lead > 0))
			in[i].kind = LOOP_SLICE;
		in[i].backwards = i >= nc && i < nslice && k->scan_backwards[i - nc];
	}
	for (int i = 0; i < body->noutput; i++)
		out[i] = i < nc ? (struct loop_place){.kind = LOOP_CARRY, .k = i}
			 : i == l->go
				 ? (struct loop_place){.kind = LOOP_SAME, .k = i, .output = true}
				 : (struct loop_place){.kind = LOOP_SLICE,
					   .k = i,
					   .output = true,
					   .backwards = k->collect_backwards &&
							k->collect_backwards[i - nc]};
	l->body[0] = (struct loop_body){.graph = body, .in = in, .out = out};
	return l;
}

static enum status make_node(struct attempt *a, struct graph *body)
{
	const struct kept_loop *k = a->k;
	struct graph *g = k->x->g;
	struct loop *l = loop_new(a, body);
	struct tensor **in = ARENA_ARRAY(g->arena, struct tensor *, body->ninput);
	struct node *n;
	int nin = 0;
	if (!l || !in)
		return diag_nomem(g->diag);
	for (int i = 0; i < k->ncarry; i++)
		in[nin++] = k->carry[i].tensor;
	for (int i = 0; i < k->nscan; i++)
		in[nin++] = k->scan[i];
	if (k->lead)
		in[nin++] = numbers(g, k->turns);
	for (int i = 0; i < a->nodes.naround; i++)
		in[nin++] = a->nodes.around[i];
	if (g->failed != ST_OK)
		return g->failed;
	const struct attr turns = ATTR_I("turns", k->turns);
	TRY(graph_node(g, op_by_role(g->table, ROLE_LOOP)->name, k->x->node->name, nin, in,
		k->ncarry + k->ncollect + 2 * a->ends_early, 1, &turns, l, &n));
	for (int i = 0; i < k->ncarry + k->ncollect; i++)
		k->out[i] = n->out[i];
	return ST_OK;
}

enum status kept_loop_make(struct kept_loop *k, bool *done)
{
	struct graph *g = k->x->g;
	struct attempt a = {.k = k, .nodes = {.node = g->nnode, .tensor = g->ntensor}};
	struct graph *body;
	*done = false;
	if (k->ncarry + k->ncollect == 0)
		return ST_OK;
	for (int i = 0; i < k->ncarry; i++)
		if (k->carry[i].kind != VALUE_TENSOR)
			return ST_OK;
	if (!allocate(&a))
		return diag_nomem(g->diag);
	TRY(set_inputs(&a));
	TRY(try_body(&a, done));
	if (!*done) {
		loop_forget(g, a.nodes.node, a.nodes.tensor);
		return ST_OK;
	}
	a.nodes.in = a.in;
	a.nodes.out = a.out;
	a.nodes.nout = k->ncarry + k->ncollect + a.ends_early;
	TRY(loop_take_body(g, &a.nodes, &body));
	return make_node(&a, body);
}

/* --- The records --- */

static enum status loop_infer(struct graph *g, struct node *n)
{
	const struct loop *l = node_loop(n);
	if (!l)
		return node_fail(g, n, NULL, "is made of loops, not by models");
	const struct graph *body = l->body[0].graph;
	if (l->ran >= 0)
		TRY(data_output(g, n, l->ran, DT_I64, 0, NULL));
	for (int k = 0; k < body->noutput; k++) {
		const struct tensor *t = body->output[k];
		int64_t dim[RANK_MAX + 1] = {l->turns};
		if (k < l->ncarry || k == l->go) {
			TRY(data_output(g, n, k, t->dtype, t->rank, t->dim));
			continue;
		}
		memcpy(dim + 1, t->dim, (size_t)t->rank * sizeof *dim);
		TRY(data_output(g, n, k, t->dtype, t->rank + 1, dim));
	}
	return ST_OK;
}

static enum status loop_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const struct loop *of = node_loop(n);
	struct loop *l = loop_copy(g->arena, of, 1);
	struct node *made;
	if (!l)
		return diag_nomem(g->diag);
	TRY(graph_lower(of->body[0].graph, o, &l->body[0].graph));
	TRY(graph_node(g, n->op->name, n->name, n->nin, in, n->nout, n->nattr, n->attr, l, &made));
	memcpy(out, made->out, (size_t)n->nout * sizeof *out);
	return ST_OK;
}

static enum status gradient_infer(struct graph *g, struct node *n)
{
	return node_fail(g, n, NULL, "is made by a gradient, not by models");
}

static int64_t loop_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return node_loop(n)->planned->workspace;
}

/* Of one turn. */
static struct op_cost body_cost(const struct graph *body)
{
	struct op_cost sum = {0, 0};
	for (int i = 0; i < body->nnode; i++) {
		const struct op_cost c = node_cost(body->node[i]);
		sum.flops += c.flops;
		sum.bytes += c.bytes;
	}
	return sum;
}

/* Of all turns: what their bodies' nodes come to. */
static struct op_cost loop_cost(const struct node *n)
{
	const struct loop *l = node_loop(n);
	struct op_cost sum = {0, 0};
	for (int b = 0; b < l->nbody; b++) {
		const struct op_cost c = body_cost(l->body[b].graph);
		const double runs = (double)loop_runs(l, b);
		sum.flops += runs * c.flops;
		sum.bytes += runs * c.bytes;
	}
	return sum;
}

const struct op_def ops_kept_loop[] = {
	{.name = "stint.Loop",
		.role = ROLE_LOOP,
		.traits = OP_SUMS,
		.max_in = -1,
		.max_out = -1,
		.infer = loop_infer,
		.lower = loop_lower,
		.grad = loop_grad,
		.workspace = loop_workspace,
		.cost = loop_cost},
	{.name = "stint.LoopGradient",
		.role = ROLE_LOOP_GRADIENT,
		.traits = OP_ONCE,
		.max_in = -1,
		.max_out = -1,
		.infer = gradient_infer,
		.workspace = loop_workspace,
		.cost = loop_cost},
	{.name = NULL},
};
