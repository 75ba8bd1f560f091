/* What rules build graph with: chains of calls that carry a failure along. */
#include <string.h>

#include "graph/op.h"
#include "runtime/stint_tree.h"

static struct node *fail(struct graph *g, enum status st)
{
	if (g->failed == ST_OK)
		g->failed = st;
	return NULL;
}

struct node *graph_op_node(struct graph *g, const char *op, int nin, struct tensor *const *in,
	int nattr, const struct attr *attr, const void *param)
{
	if (g->failed != ST_OK)
		return NULL;
	const struct op_def *def = op_index_find(g->index, op, OPSET_LATEST);
	for (int i = 0; def && i < def->min_in && i < nin; i++)
		if (!in[i])
			return fail(g, diag_fail(g->diag, ST_INTERNAL, NULL, NULL,
					       "%s built with a missing input", op));
	int opset = g->opset;
	g->opset = OPSET_LATEST;
	struct node *n = NULL;
	enum status st = graph_node(
		g, op, NULL, nin, in, def ? def->max_out : 0, nattr, attr, param, &n);
	g->opset = opset;
	return st == ST_OK ? n : fail(g, st);
}

struct tensor *graph_param_op(struct graph *g, const char *op, int nin, struct tensor *const *in,
	int nattr, const struct attr *attr, const void *param)
{
	struct node *n = graph_op_node(g, op, nin, in, nattr, attr, param);
	return n ? n->out[0] : NULL;
}

struct tensor *graph_op(struct graph *g, const char *op, int nin, struct tensor *const *in,
	int nattr, const struct attr *attr)
{
	return graph_param_op(g, op, nin, in, nattr, attr, NULL);
}

enum status graph_alternative(struct graph *g, struct node *n, struct tensor *const *in)
{
	struct tensor ***alt = ARENA_ARRAY(g->arena, struct tensor **, n->nalt + 1);
	struct tensor **copy = arena_memdup(g->arena, in, (size_t)n->nin, sizeof *in);
	if (!alt || !copy)
		return g->failed = diag_nomem(g->diag);
	if (n->nalt)
		memcpy(alt, n->alt, (size_t)n->nalt * sizeof *alt);
	alt[n->nalt++] = copy;
	n->alt = alt;
	return ST_OK;
}

struct tensor *graph_reshape(struct graph *g, struct tensor *x, int rank, const int64_t *dim)
{
	if (!x || g->failed != ST_OK)
		return NULL;
	const struct op_def *op = op_by_role(g->table, ROLE_RESHAPE);
	/* ONNX's Reshape reads 0 as "as it was": write sizes of 0 with allowzero */
	const struct attr allowzero = ATTR_I("allowzero", 1);
	struct tensor *in[] = {x, graph_ints(g, rank, dim)};
	return graph_op(g, op->name, 2, in, 1, &allowzero);
}

struct tensor *graph_unbroadcast(struct graph *g, struct tensor *dy, const struct tensor *like)
{
	if (!dy || g->failed != ST_OK)
		return NULL;
	if (tensor_same_shape(dy, like))
		return dy;
	int64_t axes[RANK_MAX];
	int n = 0, lead = dy->rank - like->rank;
	for (int i = 0; i < dy->rank; i++)
		if (dy->dim[i] != 1 && (i < lead || like->dim[i - lead] == 1))
			axes[n++] = i;
	if (n) {
		const struct attr attr[] = {
			ATTR_IS("axes", n, arena_memdup(g->arena, axes, (size_t)n, sizeof *axes)),
			ATTR_I("keepdims", 0)};
		const struct op_def *op = op_by_role(g->table, ROLE_REDUCE_SUM);
		dy = graph_op(g, op->name, 1, &dy, 2, attr);
	}
	return dy && !tensor_same_shape(dy, like) ? graph_reshape(g, dy, like->rank, like->dim)
						  : dy;
}

static struct tensor *control_tensor(struct graph *g, const char *name, enum dtype t, int64_t n)
{
	struct tensor *x = graph_tensor(g, name, t, 1, &n);
	if (x) {
		x->role = TR_CONTROL;
		x->is_gradient = false;
	}
	return x;
}

struct tensor *graph_control(struct graph *g)
{
	if (!g->control)
		g->control = control_tensor(
			g, "stint.control", DT_I64, g->shards ? STINT_CONTROLS : 4);
	return g->control;
}

int64_t graph_rows(const struct graph *g)
{
	for (int i = 0; i < g->ntensor; i++)
		if (g->tensor[i]->role == TR_INPUT && g->tensor[i]->rank > 0)
			return g->tensor[i]->dim[0] / (g->shards ? g->shards : 1);
	return 0;
}

struct tensor *graph_lr(struct graph *g)
{
	if (!g->lr)
		g->lr = control_tensor(g, "stint.lr", g->real, 1);
	return g->lr;
}
