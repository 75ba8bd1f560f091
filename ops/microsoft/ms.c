#include "ops/microsoft/ms.h"

enum status ms_check(const struct expansion *x)
{
	for (int i = 0; i < x->nin; i++)
		if (x->in[i].kind == VALUE_LIST)
			return node_fail(x->g, x->node, NULL, "input %d is a sequence", i);
	return ST_OK;
}

enum status ms_need(const struct expansion *x, unsigned need)
{
	TRY(ms_check(x));
	for (int i = 0; i < op_max_in(x->node->op); i++)
		if (need >> i & 1 && !node_input(x->node, i))
			return node_fail(x->g, x->node, NULL, "required input %d is missing", i);
	return ST_OK;
}

enum status ms_give(struct expansion *x, int k, struct tensor *t)
{
	if (k < x->nout && t)
		x->out[k] = (struct value){.kind = VALUE_TENSOR, .tensor = t};
	return x->g->failed;
}

struct node *ms_node(const struct expansion *x, const char *op, int nin, struct tensor *const *in,
	int nout, int nattr, const struct attr *attr)
{
	struct graph *g = x->g;
	struct node *n = NULL;
	const int opset = g->opset;
	if (g->failed != ST_OK)
		return NULL;
	g->opset = OPSET_LATEST;
	g->failed = graph_node(g, op, NULL, nin, in, nout, nattr, attr, NULL, &n);
	g->opset = opset;
	return g->failed == ST_OK ? n : NULL;
}

struct tensor *ms_transpose(struct graph *g, struct tensor *t, const int64_t *perm)
{
	const struct attr attr = data_ints(g, "perm", t ? t->rank : 0, perm);
	return t ? graph_op(g, "Transpose", 1, &t, 1, &attr) : NULL;
}

struct tensor *ms_sum(struct graph *g, struct tensor *a, struct tensor *b)
{
	return a && b ? OP2(g, "Add", a, b) : a ? a : b;
}

/* The axis `from` in the place `to`. */
static struct tensor *moved(struct graph *g, struct tensor *t, int from, int to)
{
	int64_t perm[RANK_MAX];
	for (int i = 0, k = 0; t && i < t->rank; i++) {
		k += k == from;
		perm[i] = i == to ? from : k++;
	}
	return ms_transpose(g, t, perm);
}

struct tensor *ms_channels_first(struct graph *g, struct tensor *t)
{
	return t ? moved(g, t, t->rank - 1, 1) : NULL;
}

struct tensor *ms_channels_last(struct graph *g, struct tensor *t)
{
	return t ? moved(g, t, 1, t->rank - 1) : NULL;
}
