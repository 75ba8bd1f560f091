/* Optimizers with PyTorch's names, defaults and formulas (the algorithm boxes of torch.optim.SGD,
 * Adam and AdamW in PyTorch's documentation; what it writes as steps of its own is done in one pass
 * over the elements). */
#include <math.h>

#include "ops/optimizer/update_op.h"

enum status update_infer(struct graph *g, struct node *n)
{
	for (int k = 0; k < n->nout; k++) {
		const struct tensor *x = k ? n->in[CONTROL + k] : n->in[PARAM];
		TRY(data_output(g, n, k, x->dtype, x->rank, x->dim));
	}
	return ST_OK;
}

enum { COLUMN = -2, ROW = -1 }; /* from the last input on */

/* The average is the last state, and made of what the update has made of the parameter. */
enum status update_average(struct emit *e, const struct node *n)
{
	const struct attr *decay = node_attr(n, OP_AVERAGE);
	const int last = n->nout - 1;
	if (!decay)
		return ST_OK;
	return call_kernel(
		e, &(struct kernel_call){.file = "ema.h",
			   .function = "ema",
			   .turns = n->out[0]->numel,
			   .work = (double)n->out[0]->numel * 2,
			   .args = CALL_ARGS(ARG_Y(last), ARG_Y(0), ARG_X(STATE0 + last - 1),
				   ARG_X(CONTROL), ARG_DOUBLE(decay->f))});
}

/* By the parameter, so that no plan and no other parameter has a part in it. */
static struct call_arg state_key(const struct node *n)
{
	const struct tensor *state = node_input(n, STATE0);
	return state && dtype_is_narrow(state->dtype) ? ARG_SIZE(name_hash(state->name)) : ARG_NONE;
}

struct call_struct update_struct(
	const struct node *n, bool decoupled, struct call_field field[UPDATE_FIELDS])
{
	field[0] = (struct call_field){"maximize", ARG_INT(node_option(n, "maximize") != 0)};
	field[1] = (struct call_field){"decoupled", ARG_INT(decoupled)};
	field[2] = (struct call_field){"decay", ARG_DOUBLE(node_option(n, "weight_decay"))};
	field[3] = (struct call_field){"key", state_key(n)};
	field[4] = (struct call_field){.name = NULL};
	return (struct call_struct){"struct update", "u", field};
}

/* The node's states that are no single number: ARG_NULL for one that it has not. */
static int state_args(const struct node *n, bool output, struct call_arg *args)
{
	int count = 0, k = 0;
	for (const struct op_state *s = n->op->optimizer->state; s->name; s++) {
		const bool there = node_has_state(n, s);
		if (s->shape != STATE_NUMBER)
			args[count++] = !there   ? ARG_NULL
					: output ? ARG_Y(1 + k)
						 : ARG_X(STATE0 + k);
		k += there;
	}
	return count;
}

enum status update_call(struct emit *e, const struct node *n, const struct update_kernel *k)
{
	const struct tensor *y = n->out[0], *row = n->in[n->nin + ROW];
	struct call_field field[UPDATE_FIELDS];
	const struct call_struct update = update_struct(n, k->decoupled, field);
	struct call_arg args[2 * OP_STATES + 13];
	int count = 0;
	args[count++] = ARG_Y(0);
	count += state_args(n, true, args + count);
	args[count++] = ARG_X(PARAM);
	args[count++] = n->in[GRAD] ? ARG_X(GRAD) : ARG_NULL;
	args[count++] = n->in[GRAD] ? ARG_NULL : ARG_X(n->nin + COLUMN);
	args[count++] = n->in[GRAD] ? ARG_NULL : ARG_X(n->nin + ROW);
	args[count++] = ARG_SIZE(n->in[GRAD] ? y->numel : row->numel);
	args[count++] = ARG_X(LR);
	args[count++] = ARG_X(CONTROL);
	count += state_args(n, false, args + count);
	args[count++] = ARG_STRUCT(&update);
	if (k->option)
		args[count++] = ARG_STRUCT(k->option);
	if (k->before)
		args[count++] = ARG_NAME(k->before->name);
	args[count] = CALL_ARG(.kind = CALL_END);
	TRY(call_kernel(e, &(struct kernel_call){.file = k->file,
				   .function = k->function,
				   .before = k->before,
				   .turns = k->block ? div_up(y->numel, k->block) : y->numel,
				   .work = (double)y->numel * 4,
				   .args = args}));
	return update_average(e, n);
}

bool update_is_turned(const struct graph *g, const struct tensor *param)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		if (n->phase == NODE_FORWARD && node_is(n, "stint.MatMul") &&
			tensor_storage(n->in[1]) == param)
			return node_int(n, "transB", 0) == 0;
	}
	return false;
}

enum status update_as_adamw(
	struct graph *g, const struct op_def *op, const struct update_of *u, const char *eps)
{
	const struct node given = {.op = op, .nattr = u->nattr, .attr = u->attr};
	struct update_of other = *u;
	struct attr attr[5] = {ATTR_F("beta1", node_option(&given, "beta1")),
		ATTR_F("beta2", node_option(&given, "beta2")),
		ATTR_F("eps", node_option(&given, eps)),
		ATTR_F("weight_decay", node_option(&given, "weight_decay"))};
	struct node *n;
	if (u->averaged)
		attr[4] = *node_attr(&given, OP_AVERAGE);
	other.nattr = u->averaged ? 5 : 4;
	other.attr = attr;
	return graph_update(g, op_by_optimizer(g->table, "adamw"), &other, &n);
}

/* --- SGD --- */

/* As torch.optim.SGD refuses it. */
static enum status sgd_infer(struct graph *g, struct node *n)
{
	const double momentum = node_option(n, "momentum");
	if (node_option(n, "nesterov") != 0 && (momentum <= 0 || node_option(n, "dampening") != 0))
		return node_fail(g, n, NULL, "nesterov needs a momentum and zero dampening");
	return update_infer(g, n);
}

static enum status sgd_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct sgd", "o",
		CALL_FIELDS(UPDATE_FIELD(n, momentum), UPDATE_REST(n, "take", "dampening"),
			{"nesterov", ARG_INT(node_option(n, "nesterov") != 0)})};
	return update_call(e, n,
		&(struct update_kernel){.file = "sgd.h", .function = "sgd", .option = &option});
}

/* --- Adam, AdamW --- */

enum { ADAM, ADAMW };

enum status update_adam(struct emit *e, const struct node *n, struct update_kernel k)
{
	const struct call_struct option = {"struct adam", "o",
		CALL_FIELDS(UPDATE_WIDE(n, beta1), UPDATE_WIDE(n, beta2), UPDATE_BETAS(n),
			UPDATE_FIELD(n, eps))};
	const struct call_value bias = {"struct adam_bias", "bias", "adam_bias",
		CALL_ARGS(ARG_X(LR), ARG_X(CONTROL), ARG_STRUCT(&option))};
	k.option = &option;
	k.before = &bias;
	return update_call(e, n, &k);
}

static enum status adam_emit(struct emit *e, const struct node *n)
{
	return update_adam(e, n,
		(struct update_kernel){.file = "adam.h",
			.function = "adam",
			.decoupled = n->op->variant == ADAMW});
}

static const struct op_option sgd_options[] = {OPT_LR(1e-3), OPT_POSITIVE("momentum", 0),
	{.name = "dampening"}, OPT_POSITIVE("weight_decay", 0), OPT_SWITCH("nesterov"),
	OPT_SWITCH("maximize"), {.name = NULL}};
#define ADAM_OPTIONS(decay)                                                                        \
	OPTIONS(OPT_LR(1e-3), OPT_BETA("beta1", 0.9), OPT_BETA("beta2", 0.999),                    \
		OPT_POSITIVE("eps", 1e-8), OPT_POSITIVE("weight_decay", decay),                    \
		OPT_SWITCH("amsgrad"), OPT_SWITCH("maximize"))
#define ADAM_STATES STATES(MOMENTS, {.name = "max_exp_avg_sq", .with = "amsgrad"})

const struct op_def ops_optimizer[] = {
	UPDATE("stint.SgdUpdate", "sgd", sgd_infer,
		STATES({.name = "momentum_buffer", .with = "momentum"}), sgd_emit, sgd_options),
	UPDATE("stint.AdamUpdate", "adam", update_infer, ADAM_STATES, adam_emit, ADAM_OPTIONS(0),
		.work = 60, .variant = ADAM),
	UPDATE("stint.AdamWUpdate", "adamw", update_infer, ADAM_STATES, adam_emit,
		ADAM_OPTIONS(0.01), .work = 60, .variant = ADAMW),
	{0},
};
