/* No update (--optimizer none): the gradient stays where it is until the next step, for whoever
 * updates by rules of its own. The same is done for an input (--input-gradient). */
#include "ops/optimizer/update_op.h"

static enum status kept_infer(struct graph *g, struct node *n)
{
	TRY(data_infer_like_second(g, n));
	n->out[0]->is_gradient = true;
	return ST_OK;
}

static enum status kept_build(struct graph *g, const struct op_def *op, const struct update_of *u)
{
	struct node *n;
	struct tensor *in[] = {u->read[PARAM], u->read[GRAD]};
	return graph_node(g, op->name, u->param->name, 2, in, 1, 0, NULL, NULL, &n);
}

/* Nothing is moved, but of gradients that two parameters have in common. */
static struct op_cost kept_cost(const struct node *n)
{
	(void)n;
	return (struct op_cost){0, 0};
}

static enum status kept_emit(struct emit *e, const struct node *n)
{
	return call_kernel(e, &(struct kernel_call){.file = "kept.h",
				      .function = "kept_gradient",
				      .ntype = 1,
				      .type = {n->out[0]},
				      .turns = n->out[0]->numel,
				      .work = (double)n->out[0]->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(GRAD))});
}

const struct op_def ops_none[] = {
	{.name = "stint.KeepGradient",
		.role = ROLE_KEEP_GRADIENT,
		.optimizer = &(const struct op_optimizer){.name = "none",
			.state = (const struct op_state[]){{.name = NULL}},
			.build = kept_build},
		.min_in = 2,
		.traits = OP_ONCE, /* a gradient may be a parameter, or known: it is not overwritten
				    */
		.infer = kept_infer,
		.cost = kept_cost,
		.npair = 1,
		.pair = {{0, GRAD}},
		.emit_c = kept_emit},
	{0},
};
