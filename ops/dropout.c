/* Dropout. It is active in training where the file says so: by its third input, or, before opset
 * 12, which has no such input, by being there at all. --dropout NODE=P has the last word. The mask
 * is drawn again wherever it is needed, from the seed, the step, the node and the element; its
 * gradient is the same operation on dy. */

#include "codegen/call.h"
#include "ops/data.h"
#include "ops/dropout_op.h"

static enum status ratio_of(struct graph *g, const struct node *n, double *out)
{
	*out = node_float(n, "ratio", 0.5);
	if (node_input(n, 1)) {
		if (n->in[1]->role != TR_CONSTANT || n->in[1]->numel != 1)
			return node_fail(g, n, NULL, "its ratio is not a constant");
		*out = tensor_real(n->in[1], 0);
	}
	if (!(*out >= 0 && *out < 1))
		return node_fail(g, n, NULL, "its ratio is %g, not in [0, 1)", *out);
	return ST_OK;
}

static enum status dropout_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	struct dropout *p = ARENA_NEW(g->arena, struct dropout);
	if (!p)
		return diag_nomem(g->diag);
	TRY(ratio_of(g, n, &p->ratio));
	const struct tensor *training = node_input(n, 2);
	bool known = training && training->role == TR_CONSTANT && training->numel == 1;
	p->silent = g->opset >= 12 && !training && g->silent_trains;
	p->active = g->opset < 12 || p->silent ||
		    (training && (!known || tensor_real(training, 0) != 0));
	p->key = (int)node_int(n, "key", g->nnode);
	p->all = x->numel;
	n->param = p;
	TRY(data_output(g, n, 0, x->dtype, x->rank, x->dim));
	return n->nout > 1 ? data_output(g, n, 1, DT_BOOL, x->rank, x->dim) : ST_OK;
}

const struct dropout *dropout_of(const struct node *n)
{
	return n->param;
}

void dropout_settle(
	const char *name, const struct dropout *given, const struct lower_options *o, double *ratio)
{
	bool said = false;
	*ratio = given->ratio;
	for (int i = 0; i < o->nratio; i++)
		if (name_fits(o->ratio[i].pattern, name)) {
			*ratio = o->ratio[i].ratio;
			said = true;
		}
	const bool drops = o->mode != LOWER_EVAL && !o->dropout_off && *ratio > 0;
	if (drops && !said && (given->silent || !given->active))
		lower_tell(o, given->silent ? TOLD_SILENT : TOLD_IDLE, name, *ratio);
	if (!drops || !(said || given->active))
		*ratio = 0;
}

/* The mask where nothing is dropped. */
static struct tensor *all_kept(struct graph *g, const struct node *n)
{
	const struct tensor *x = n->in[0];
	bool *kept = ARENA_ARRAY(g->arena, bool, x->numel);
	for (int64_t i = 0; kept && i < x->numel; i++)
		kept[i] = true;
	return kept ? graph_constant(g, n->out[1]->name, DT_BOOL, x->rank, x->dim, kept) : NULL;
}

static enum status dropout_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	const struct dropout *given = n->param;
	struct dropout *p = ARENA_NEW(g->arena, struct dropout);
	if (!p)
		return diag_nomem(g->diag);
	*p = *given;
	p->place = node_int(n, "slice", 0) * n->in[0]->numel;
	p->all = node_int(n, "slices", 1) * n->in[0]->numel;
	dropout_settle(n->name, given, o, &p->ratio);
	out[0] = in[0];
	if (p->ratio == 0 && n->nout > 1 && n->out[1]) {
		out[1] = all_kept(g, n);
		return out[1] ? ST_OK : diag_nomem(g->diag);
	}
	if (p->ratio == 0)
		return ST_OK;
	out[0] = graph_param_op(
		g, "stint.Dropout", 2, (struct tensor *[]){in[0], graph_control(g)}, 0, NULL, p);
	return g->failed;
}

/* Random numbers are drawn four at a time, by an element's place in the whole batch. */
static bool dropout_apart(const struct node *n, int axis, const struct lower_options *o)
{
	const struct dropout *p = n->param;
	return o->dropout_off || (!p->active && !o->nratio) ||
	       (axis == 0 && n->in[0]->numel % 4 == 0);
}

static enum status masked_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = graph_param_op(
		g, "stint.Dropout", 2, (struct tensor *[]){dy[0], n->in[1]}, 0, NULL, n->param);
	return g->failed;
}

/* Some 20 operations an element for the random numbers. */
static struct op_cost masked_cost(const struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const double k = (double)y->numel;
	return (struct op_cost){
		20 * k, k * (double)(dtype_bytes(x->dtype) + dtype_bytes(y->dtype))};
}

/* By turns of so many elements. */
static enum status masked_call(
	struct emit *e, const struct node *n, struct kernel_call call, int turn)
{
	const struct dropout *p = n->param;
	const int64_t count = n->out[0]->numel;
	call.function = "dropout";
	call.turns = div_up(count, turn);
	call.work = 16 * (double)count;
	call.args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(p->key), ARG_SIZE(count),
		ARG_SHARD(e, 1), ARG_SIZE(p->all), ARG_SIZE(p->place),
		ARG_INT(dropout_keep_from(p->ratio)), ARG_REAL(1 / (1 - p->ratio)));
	return call_kernel(e, &call);
}

static enum status masked_emit(struct emit *e, const struct node *n)
{
	return masked_call(e, n,
		(struct kernel_call){
			.file = "dropout.h", .ntype = 2, .type = {n->in[0], n->out[0]}},
		128);
}

static enum status masked_cuda_emit(struct emit *e, const struct node *n)
{
	return masked_call(e, n,
		(struct kernel_call){.file = "dropout.cuh",
			.nconstant = 1,
			.constant = {n->out[0]->numel % 4 == 0}},
		4);
}

/* --- Spelled out: x * (Cast(Less(uniform, keep)) / keep), as PyTorch's exporters write dropout of
 * whole channels, of paths, and dropout that they took apart --- */

static const struct node *made_by(const struct tensor *t, const char *op)
{
	return t->maker && !strncmp(t->maker->op->name, op, strlen(op)) ? t->maker : NULL;
}

/* t is the quotient. */
static bool is_noise(const struct tensor *t)
{
	const struct node *div = made_by(t, "Div");
	const struct node *cast = div ? made_by(div->in[0], "Cast") : NULL; /* or CastLike */
	const struct node *less = cast ? made_by(cast->in[0], "Less") : NULL;
	const struct node *drawn = less ? made_by(less->in[0], "RandomUniform") : NULL;
	if (!drawn || node_float(drawn, "low", 0) != 0 || node_float(drawn, "high", 1) != 1)
		return false;
	const struct tensor *p = less->in[1], *q = div->in[1];
	return p->role == TR_CONSTANT && q->role == TR_CONSTANT && p->numel == 1 && q->numel == 1 &&
	       dtype_is_real(div->out[0]->dtype) &&
	       fabs(tensor_real(p, 0) - tensor_real(q, 0)) <= 1e-6 * tensor_real(p, 0);
}

static enum status spelled_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	if (!node_is(n, "Mul"))
		return ST_OK;
	for (int i = 0; i < 2; i++)
		if (is_noise(n->in[i]) && tensor_same_shape(n->in[1 - i], n->out[0])) {
			*replace = OP2(g, "stint.DropoutBy", n->in[1 - i], n->in[i]);
			return g->failed;
		}
	return ST_OK;
}

/* A multiplication in training, nothing in evaluation. */
static enum status spelled_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)n;
	out[0] = o->mode == LOWER_EVAL || o->dropout_off
			 ? in[0]
			 : OP2(g, op_by_role(g->table, ROLE_MUL)->name, in[0], in[1]);
	return g->failed;
}

const struct op_def ops_dropout[] = {
	{.name = "Dropout",
		.traits = OP_PLACED,
		.role = ROLE_DROPOUT,
		.apart = APART_BROADCAST,
		.apart_if = dropout_apart,
		.known = 6,
		.since = 7,
		.min_in = 1,
		.max_in = 3,
		.min_out = 1,
		.max_out = 2,
		.infer = dropout_infer,
		.lower = dropout_lower,
		.example = EXAMPLES({.in = "a,B =f0.3 =1"}, {.in = "4,33 =f0.5 =1"},
			{.in = "256 =f0.9 =1"}, {.in = "4,33 =f0.5"}, {.in = "4,33 =f0.5 =0"})},
	{.name = "stint.Dropout",
		.min_in = 2,
		.infer = data_infer_like,
		.grad = masked_rule,
		.cost = masked_cost,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = masked_emit,
		.emit_cuda = masked_cuda_emit,
		.npair = 1,
		.pair = {{0, 0}}},
	{.name = "stint.DropoutBy",
		.apart = APART_PLACED,
		.min_in = 2,
		.infer = data_infer_like,
		.match = spelled_match,
		.lower = spelled_lower},
	{0},
};
