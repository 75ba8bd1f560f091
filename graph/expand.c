/* Nodes that come to other nodes: calling a record's hook, and what the hooks share. */
#include <inttypes.h>

#include "graph/expansion.h"
#include "graph/op.h"

static enum status check_inputs(const struct expansion *x)
{
	const struct op_def *op = x->node->op;
	TRY(node_counts(x->g, x->node));
	/* what is a node of tensors otherwise hands lists and nothing on */
	for (int i = 0; i < op->min_in && !op->infer; i++)
		if (x->in[i].kind == VALUE_NONE)
			return node_fail(x->g, x->node, NULL,
				"required input %d is missing, or an optional value that is empty",
				i);
	return ST_OK;
}

enum status graph_expand(struct graph *g, const struct op_def *op, const char *name, int nin,
	const struct value *in, int nout, struct value *out, int nattr, const struct attr *attr,
	int64_t *left)
{
	struct node n = {.name = name, .op = op, .nin = nin, .nout = nout, .nattr = nattr};
	n.in = ARENA_ARRAY(g->arena, struct tensor *, nin);
	if (!n.in)
		return diag_nomem(g->diag);
	for (int i = 0; i < nin; i++)
		n.in[i] = in[i].kind == VALUE_TENSOR ? in[i].tensor : NULL;
	n.attr = attr;
	struct expansion x = {
		.g = g, .node = &n, .nin = nin, .nout = nout, .in = in, .out = out, .left = left};
	const char *scope = g->scope;
	TRY(check_inputs(&x));
	if (nout == 0)
		return ST_OK;
	g->scope = name;
	enum status st = op->expand(&x);
	g->scope = scope;
	if (st == ST_OK)
		st = g->failed;
	return st;
}

static enum status too_many(const struct expansion *x)
{
	return node_fail(x->g, x->node,
		"functions are inlined and loops unrolled; fewer turns, or a smaller model",
		"comes to more nodes than stint builds");
}

enum status expansion_reserve(const struct expansion *x, int64_t times, int64_t size)
{
	int64_t total;
	return size_mul(times, size, &total) && total <= *x->left ? ST_OK : too_many(x);
}

enum status expansion_spend(const struct expansion *x, int64_t nodes)
{
	if (nodes > *x->left)
		return too_many(x);
	*x->left -= nodes;
	return ST_OK;
}

const struct body *expansion_body(const struct expansion *x, const char *attribute)
{
	const struct attr *a = node_attr(x->node, attribute);
	if (a && a->kind == ATTR_BODY)
		return a->body;
	node_fail(x->g, x->node, NULL, "attribute '%s' is missing or holds no graph", attribute);
	return NULL;
}

enum status expansion_known(
	const struct expansion *x, int i, const char *what, const struct tensor **out)
{
	const struct tensor *t = x->in[i].kind == VALUE_TENSOR ? x->in[i].tensor : NULL;
	if (!t || t->role != TR_CONSTANT || t->numel != 1)
		return node_fail(x->g, x->node, graph_unknown_hint(x->g, t),
			"%s '%s' is not known at compile time", what, t ? t->name : "");
	*out = t;
	return ST_OK;
}
