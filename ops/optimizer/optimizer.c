/* What the optimizers share (update_op.h). */
#include "ops/optimizer/update_op.h"

enum status update_infer(struct graph *g, struct node *n)
{
	for (int k = 0; k < n->nout; k++) {
		const struct tensor *x = k ? n->in[CONTROL + k] : n->in[PARAM];
		TRY(data_output(g, n, k, x->dtype, x->rank, x->dim));
	}
	return ST_OK;
}

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

enum status update_emit(struct emit *e, const struct node *n)
{
	TRY(emit_update(e, n));
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
