#include "tests/codegen/tiny.h"
#include "graph/cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/emit.h"
#include "graph/pass.h"

/* --- Operators --- */

static const struct op_option scale_options[] = {{.name = "alpha", .value = 2}, {.name = NULL}};

static enum status infer_pick(struct graph *g, struct node *n)
{
	n->out[0] = graph_tensor(g, "", n->in[0]->dtype, 1, n->in[1]->dim);
	return n->out[0] ? ST_OK : g->failed;
}

static enum status emit_pick(struct emit *e, const struct node *n)
{
	emit_given(e, n,
		emit_text(e,
			"\tfor (int64_t i = 0; i < %d; i++) {\n"
			"\t\tif (x1[i] < 0 || x1[i] >= %d)\n"
			"\t\t\treturn BAD_INDEX(x1[i]);\n"
			"\t\ty0[i] = x0[x1[i]];\n\t}\n",
			(int)n->out[0]->numel, (int)n->in[0]->numel));
	return ST_OK;
}

static enum status infer_total(struct graph *g, struct node *n)
{
	n->out[0] = graph_tensor(g, "", g->real, 0, NULL);
	return n->out[0] ? ST_OK : g->failed;
}

static enum status emit_total(struct emit *e, const struct node *n)
{
	emit_helper(e, "twice", "/* x + x. */\nstatic real twice(real x)\n{\n\treturn x + x;\n}\n");
	emit_given(
		e, n, emit_text(e, "\ty0[0] = twice(sum_lanes(x0, %d));\n", (int)n->in[0]->numel));
	return ST_OK;
}

static enum status infer_columns(struct graph *g, struct node *n)
{
	n->out[0] = graph_tensor(g, "", g->real, 1, n->in[0]->dim + 1);
	return n->out[0] ? ST_OK : g->failed;
}

static bool library_columns(const struct node *n, int way, struct lib_call *call)
{
	const int64_t *dim = n->in[0]->dim;
	*call = (struct lib_call){
		.call = {.product = {.batch = 1, .m = 1, .n = dim[1], .k = dim[0]}}, .speed = 1};
	return way == 0;
}

static int64_t library_workspace(void *user, const struct lib_call *call)
{
	(void)user;
	return 8 * call->call.product.n;
}

static int64_t workspace_columns(const struct node *n, const struct target *t)
{
	(void)t;
	return tensor_bytes(n->out[0]);
}

static enum status emit_columns(struct emit *e, const struct node *n)
{
	int rows = (int)n->in[0]->dim[0], columns = (int)n->in[0]->dim[1];
	emit_given(e, n,
		emit_text(e,
			"\treal *sum = ws;\n\tfor (int64_t j = 0; j < %d; j++)\n\t\tsum[j] = 0;\n"
			"\tfor (int64_t i = 0; i < %d; i++)\n\t\tfor (int64_t j = 0; j < %d; j++)\n"
			"\t\t\tsum[j] += x0[i * %d + j];\n"
			"\tfor (int64_t j = 0; j < %d; j++)\n\t\ty0[j] = sum[j];\n",
			columns, rows, columns, columns, columns));
	return ST_OK;
}

static enum status infer_same(struct graph *g, struct node *n)
{
	n->out[0] = graph_tensor(g, "", n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
	return n->out[0] ? ST_OK : g->failed;
}

static enum status infer_flat(struct graph *g, struct node *n)
{
	n->out[0] = graph_tensor(g, "", n->in[0]->dtype, 1, &n->in[0]->numel);
	return n->out[0] ? ST_OK : g->failed;
}

static enum status emit_descend(struct emit *e, const struct node *n)
{
	emit_given(e, n,
		emit_text(e,
			"\tfor (int64_t i = 0; i < %d; i++)\n\t\ty0[i] = x0[i] - x2[0] * x1[i];\n",
			(int)n->out[0]->numel));
	return ST_OK;
}

static const struct op_def tiny_ops[] = {
	{.name = "t.mul", .min_in = 2, .max_in = 2, .traits = OP_POINTWISE, .expr = "a * b"},
	{.name = "t.scale",
		.min_in = 1,
		.max_in = 1,
		.traits = OP_POINTWISE,
		.expr = "MAX(alpha * a + R(0.5), 0)",
		.option = scale_options},
	{.name = "t.above",
		.min_in = 2,
		.max_in = 2,
		.traits = OP_POINTWISE | OP_BOOL,
		.expr = "a > b"},
	{.name = "t.where", .min_in = 3, .max_in = 3, .traits = OP_POINTWISE, .expr = "a ? b : c"},
	{.name = "t.flat", .min_in = 1, .max_in = 1, .traits = OP_VIEW, .infer = infer_flat},
	{.name = "t.pick",
		.min_in = 2,
		.max_in = 2,
		.traits = OP_CHECKED,
		.infer = infer_pick,
		.emit_c = emit_pick},
	{.name = "t.total", .min_in = 1, .max_in = 1, .infer = infer_total, .emit_c = emit_total},
	{.name = "t.columns",
		.min_in = 1,
		.max_in = 1,
		.infer = infer_columns,
		.library = library_columns,
		.workspace = workspace_columns,
		.emit_c = emit_columns},
	{.name = "t.descend",
		.min_in = 3,
		.max_in = 3,
		.traits = OP_UPDATE,
		.infer = infer_same,
		.npair = 1,
		.pair = {{0, 0}},
		.emit_c = emit_descend},
	{.name = NULL}};

static const struct op_def *const families[] = {tiny_ops};
static const struct op_table table = {1, families};

/* --- The model --- */

static struct tensor *source(struct tiny *t, struct graph *g, const struct tiny_options *o,
	const char *name, enum dtype type, enum tensor_role role, int rank, const int64_t *dim)
{
	struct tensor *x = graph_tensor(
		g, arena_printf(t->arena, "%s%s", o->prefix, name), type, rank, dim);
	x->role = role;
	return x;
}

static struct tensor *node(struct tiny *t, struct graph *g, const struct tiny_options *o,
	const char *op, const char *name, int nin, struct tensor *const *in)
{
	struct node *n;
	const char *full = arena_printf(t->arena, "%s%s", o->prefix, name);
	if (graph_node(g, op, full, nin, in, 1, 0, NULL, NULL, &n) != ST_OK)
		return NULL;
	return n->out[0];
}

#define IN(...)                                                                                    \
	(int)(sizeof((struct tensor *[]){__VA_ARGS__}) / sizeof(struct tensor *)),                 \
		(struct tensor *[])                                                                \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* h = x * w; s = scale(h); p = pick(flat(s), index); loss = 2 sum(p). In training, then, made up:
 * q = where(x > s, x, h) * s, dw = columns(q), w -= lr dw. */
static struct graph *model(struct tiny *t, const struct tiny_options *o, bool train)
{
	struct graph *g = graph_new(t->arena, &t->diag, "tiny.onnx", &table, &t->target, o->real);
	const int64_t x_dim[] = {4, 8}, w_dim[] = {8}, index_dim[] = {5}, one[] = {1};
	struct tensor *x = source(t, g, o, "x", o->real, TR_INPUT, 2, x_dim);
	struct tensor *index = source(t, g, o, "index", DT_I64, TR_INPUT, 1, index_dim);
	struct tensor *w = source(t, g, o, "w", o->real, TR_PARAMETER, 1, w_dim);
	g->ninput = 2;
	g->input = arena_memdup(t->arena, (struct tensor *[]){x, index}, 2, sizeof x);
	struct tensor *h = node(t, g, o, "t.mul", "mul", IN(x, w));
	struct tensor *s = node(t, g, o, "t.scale", "scale", IN(h));
	struct tensor *flat = node(t, g, o, "t.flat", "flat", IN(s));
	struct tensor *p = node(t, g, o, "t.pick", "pick", IN(flat, index));
	g->loss = node(t, g, o, "t.total", "total", IN(p));
	const struct loss_term term = {.value = g->loss};
	g->nterm = 1;
	g->term = arena_memdup(t->arena, &term, 1, sizeof term);
	g->noutput = 1;
	g->output = arena_memdup(t->arena, &p, 1, sizeof p);
	if (!train)
		return g;
	g->lr = source(t, g, o, "lr", o->real, TR_CONTROL, 1, one);
	g->phase = NODE_BACKWARD;
	struct tensor *above = node(t, g, o, "t.above", "above", IN(x, s));
	struct tensor *which = node(t, g, o, "t.where", "where", IN(above, x, h));
	/* the same values from either of two tensors, for the test's sake */
	graph_alternative(g, which->maker, (struct tensor *[]){above, x, h});
	struct tensor *q = node(t, g, o, "t.mul", "product", IN(which, s));
	struct tensor *dw = node(t, g, o, "t.columns", "columns", IN(q));
	g->phase = NODE_UPDATE;
	struct tensor *next = node(t, g, o, "t.descend", "w", IN(w, dw, g->lr));
	next->name = w->name;
	return g;
}

/* --- A plan in the graph's order: every lifetime from its maker to its last reader --- */

static bool reads(const struct problem_op *op, int choice, int tensor)
{
	for (int i = 0; i < op->choice[choice].nin; i++)
		if (op->choice[choice].in[i] == tensor)
			return true;
	return false;
}

/* The input of step `s` in whose bytes output `tensor` may start; -1: none. */
static int taken_over(const struct problem *p, const struct plan *plan, int s, int tensor, bool all)
{
	const struct problem_op *op = &p->op[plan->step[s].op];
	for (int i = 0; i < op->npair; i++) {
		if (op->pair[i].out != tensor)
			continue;
		if (!all && op->phase != PHASE_UPDATE)
			continue;
		for (int b = 0; b < plan->nbuffer; b++)
			if (plan->buffer[b].tensor == op->pair[i].in &&
				plan->buffer[b].first_step <= s && plan->buffer[b].last_step == s)
				return b;
	}
	return -1;
}

static int last_use(const struct problem *p, const struct plan *plan, int tensor, int first)
{
	int last = first;
	for (int s = first + 1; s < plan->nstep; s++) {
		const struct problem_op *op = &p->op[plan->step[s].op];
		if (reads(op, plan->step[s].choice, tensor))
			last = s;
		if (p->tensor[tensor].producer == plan->step[s].op)
			return last; /* made anew */
	}
	return p->tensor[tensor].keep ? plan->nstep - 1 : last;
}

static void place(struct plan *plan, int tensor, int op, int64_t bytes, int first, int last, int on)
{
	int64_t offset = on >= 0 ? plan->buffer[on].offset : plan->arena_bytes;
	plan->buffer[plan->nbuffer++] = (struct plan_buffer){
		tensor, op, offset, bytes, first, last};
	if (on < 0)
		plan->arena_bytes += (bytes + 63) / 64 * 64;
}

static bool updated(const struct problem *p, const struct plan *plan, int tensor, int *step)
{
	for (*step = 0; *step < plan->nstep; ++*step) {
		const struct problem_op *op = &p->op[plan->step[*step].op];
		for (int i = 0; i < op->npair; i++)
			if (op->pair[i].in == tensor)
				return true;
	}
	return false;
}

static struct plan *make_plan(struct tiny *t, const struct graph_problem *gp,
	const struct tiny_options *o, int nstep, const struct plan_step *step)
{
	const struct problem *p = gp->problem;
	struct plan *plan = ARENA_NEW(t->arena, struct plan);
	plan->graph = p->name;
	plan->budget_bytes = 4096;
	plan->feasible = true;
	plan->nstep = nstep;
	plan->step = arena_memdup(t->arena, step, (size_t)nstep, sizeof *step);
	plan->buffer = ARENA_ARRAY(t->arena, struct plan_buffer, p->ntensor + 4 * nstep);
	for (int i = 0; i < p->ntensor && p->tensor[i].producer < 0; i++) {
		int end;
		if (!updated(p, plan, i, &end))
			end = nstep - 1;
		place(plan, i, -1, p->tensor[i].bytes, 0, end, -1);
	}
	for (int s = 0; s < nstep; s++) {
		const struct problem_op *op = &p->op[plan->step[s].op];
		const struct problem_choice *c = &op->choice[plan->step[s].choice];
		for (int i = 0; i < c->nout; i++)
			place(plan, c->out[i], -1, p->tensor[c->out[i]].bytes, s,
				last_use(p, plan, c->out[i], s),
				taken_over(p, plan, s, c->out[i], o->in_place));
		if (c->workspace > 0)
			place(plan, -1, plan->step[s].op, c->workspace, s, s, -1);
	}
	plan->peak_bytes = plan->arena_bytes;
	return plan;
}

/* --- Everything --- */

static void show(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)level, (void)hint;
	fprintf(stderr, "%s: %s\n", w->node ? w->node : "-", message);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

enum status tiny_make(struct tiny *t, const struct tiny_options *o)
{
	static const struct loss_spec total = {
		.text = "output:total", .name = "total", .weight = 1};
	static const struct loss_list losses = {1, &total};
	*t = (struct tiny){.arena = arena_new(), .diag = {.put = show}};
	t->target = (struct target){.portable = true, .threads = o->threads};
	if (o->library) {
		t->target.portable = false;
		t->target.library_workspace = library_workspace;
	}
	t->train = model(t, o, true);
	t->eval = model(t, o, false);
	TRY(problem_from_graph(t->arena, t->train, "tiny", false, NULL, &t->train_problem));
	TRY(problem_from_graph(
		t->arena, t->eval, "tiny", true, &t->train_problem, &t->eval_problem));
	int alt = o->alternative;
	/* mul scale pick total | above where product columns | descend */
	const struct plan_step once[] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {4, 0, 0},
		{5, alt, 0}, {6, 0, 0}, {7, 0, 0}, {8, 0, 0}};
	const struct plan_step again[] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {0, 0, 1},
		{1, 0, 1}, {4, 0, 0}, {0, 0, 2}, {5, alt, 0}, {6, 0, 0}, {7, 0, 0}, {8, 0, 0}};
	t->train_plan = o->recompute ? make_plan(t, &t->train_problem, o, 12, again)
				     : make_plan(t, &t->train_problem, o, 9, once);
	t->eval_plan = make_plan(t, &t->eval_problem, o, 4, once);
	t->in = (struct codegen_input){.name = "tiny",
		.library_identity = o->library ? "the test's library" : NULL,
		.model_file = arena_printf(t->arena, "%stiny.onnx", o->prefix),
		.train = t->train_problem,
		.eval = t->eval_problem,
		.train_plan = t->train_plan,
		.eval_plan = t->eval_plan,
		.arena_bytes = larger(t->train_plan->arena_bytes, t->eval_plan->arena_bytes),
		.losses = &losses,
		.isa_flags = "",
		.debug_arena = o->debug_arena};
	return ST_OK;
}

void tiny_free(struct tiny *t)
{
	arena_free(t->arena);
}
