/* Buffers that a model replaces as it trains: what PyTorch does by writing to a registered buffer
 * in the forward pass (the vectors of spectral_norm, averages, counters). */
#include "graph/pass.h"
#include "ops/data.h"

enum { BUFFER, VALUE };

POINTWISE(replaced, b)

/* The buffer after the step. In the model: says that the value replaces it. */
static enum status replaced_infer(struct graph *g, struct node *n)
{
	const struct tensor *buffer = n->in[BUFFER];
	if (!tensor_same_shape(buffer, n->in[VALUE]) || buffer->dtype != n->in[VALUE]->dtype)
		return node_fail(g, n, NULL, "'%s' is not of the shape and type of buffer '%s'",
			n->in[VALUE]->name, buffer->name);
	return data_output(g, n, 0, buffer->dtype, buffer->rank, buffer->dim);
}

/* Once a step: of micro-batches the last. Evaluation leaves it as it is. */
static enum status buffer_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)n;
	out[0] = in[BUFFER];
	if (o->mode == LOWER_EVAL)
		return ST_OK;
	const enum node_phase phase = g->phase;
	g->phase = NODE_UPDATE;
	g->last = g->shards_differ;
	struct tensor *list[] = {in[BUFFER], in[VALUE]};
	out[0] = graph_op(g, "stint.BufferUpdate", 2, list, 0, NULL);
	g->last = false;
	g->phase = phase;
	return g->failed;
}

const struct op_def ops_buffer[] = {
	{.name = "stint.Buffer",
		.role = ROLE_BUFFER,
		.min_in = 2,
		.traits = OP_ONCE | OP_STOP,
		.infer = replaced_infer,
		.lower = buffer_lower},
	{.name = "stint.BufferUpdate",
		.min_in = 2,
		.traits = OP_POINTWISE | OP_UPDATE | OP_ONCE | OP_STOP,
		.expr = replaced_expr,
		.ref = replaced_ref,
		.infer = replaced_infer,
		.npair = 1,
		.pair = {{0, BUFFER}}},
	{0},
};
