/* Reverse-mode differentiation over the records' gradient rules. A rule builds nodes, so what the
 * backward pass keeps is what its nodes read. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

struct autodiff {
	struct graph *g;
	int nforward;         /* nodes before the backward pass */
	int ntensor;          /* tensors before it */
	bool *wants;          /* by tensor id: one that is asked for lies behind it */
	bool *reaches;        /* by tensor id: one whose gradient is given depends on it */
	struct tensor **grad; /* by tensor id: the sum so far; NULL: none yet */
};

void graph_mark_wanted(const struct graph *g, bool *wanted)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		bool any = false;
		for (int k = 0; k < n->nin; k++)
			any |= n->in[k] && wanted[n->in[k]->id];
		if (!any || (n->op->traits & OP_STOP))
			continue;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && dtype_is_real(n->out[k]->dtype))
				wanted[n->out[k]->id] = true;
	}
}

/* Those whose gradients are given have been marked. */
static void mark_reaches(struct autodiff *ad)
{
	const struct graph *g = ad->g;
	for (int i = ad->nforward - 1; i >= 0; i--) {
		const struct node *n = g->node[i];
		bool any = false;
		for (int k = 0; k < n->nout; k++)
			any |= n->out[k] && ad->reaches[n->out[k]->id];
		for (int k = 0; any && k < n->nin; k++)
			if (n->in[k])
				ad->reaches[n->in[k]->id] = true;
	}
}

static const struct tensor *wanted_input(const struct autodiff *ad, const struct node *n)
{
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && ad->wants[n->in[k]->id])
			return n->in[k];
	return NULL;
}

/* A way from a parameter to node `n`, for the message: "'fc.weight', by 'fc', 'act'". */
static const char *way_to(const struct autodiff *ad, const struct node *n)
{
	enum { NODES_TOLD = 8 };
	struct arena *a = ad->g->arena;
	const struct tensor *t = wanted_input(ad, n);
	const char *way = "", *last = n->name;
	int told = 0;
	for (const struct tensor *next; t->maker; t = next) {
		next = wanted_input(ad, t->maker);
		if (!next)
			break;
		if (strcmp(t->maker->name, last) != 0 && told++ <= NODES_TOLD && way)
			way = told > NODES_TOLD ? arena_printf(a, "..., %s", way)
						: arena_printf(a, "'%s'%s%s", t->maker->name,
							  *way ? ", " : "", way);
		last = t->maker->name;
	}
	return !way ? t->name : arena_printf(a, "'%s'%s%s", t->name, *way ? ", by " : "", way);
}

static enum status no_rule(const struct autodiff *ad, const struct node *n)
{
	const char *way = way_to(ad, n);
	if (!way)
		return diag_nomem(ad->g->diag);
	return node_fail(ad->g, n,
		arena_printf(ad->g->arena,
			"--stop-gradient '%s' lets no gradient pass there; --freeze keeps the "
			"parameter as it is",
			n->name),
		"has no gradient, and lies between the loss and parameter %s", way);
}

/* Add one contribution to the gradient of x. The order of the calls, and so of the sum, is the
 * graph's. */
static enum status contribute(
	struct autodiff *ad, const struct node *n, const struct tensor *x, struct tensor *dx)
{
	struct graph *g = ad->g;
	if (!tensor_same_shape(x, dx) || x->dtype != dx->dtype) {
		char a[200], b[200];
		const struct where w = {.file = g->file, .node = n->name, .op = n->op->name};
		return diag_fail(g->diag, ST_INTERNAL, &w, "this is a bug in stint",
			"its gradient rule gave %s for an input of shape %s",
			tensor_shape_text(dx, a), tensor_shape_text(x, b));
	}
	struct tensor **sum = &ad->grad[x->id];
	if (!*sum)
		*sum = dx;
	else if (!(*sum = OP2(g, op_by_role(g->table, ROLE_ADD)->name, *sum, dx)))
		return g->failed;
	return ST_OK;
}

static enum status differentiate(struct autodiff *ad, const struct node *n)
{
	struct graph *g = ad->g;
	struct tensor **dy = ARENA_ARRAY(g->arena, struct tensor *, n->nout);
	struct tensor **dx = ARENA_ARRAY(g->arena, struct tensor *, n->nin);
	bool *want = ARENA_ARRAY(g->arena, bool, n->nin), any_dy = false, any_want = false;
	if (!dy || !dx || !want)
		return diag_nomem(g->diag);
	for (int k = 0; k < n->nout; k++) {
		dy[k] = n->out[k] ? ad->grad[n->out[k]->id] : NULL;
		any_dy |= dy[k] != NULL;
	}
	for (int k = 0; k < n->nin; k++) {
		want[k] = n->in[k] && ad->wants[n->in[k]->id];
		any_want |= want[k];
	}
	if (!any_dy || !any_want || (n->op->traits & OP_STOP))
		return ST_OK;
	if (!n->op->grad)
		return no_rule(ad, n);
	const bool sums = (n->op->traits & OP_SUMS) != 0;
	for (int k = 0; sums && k < n->nin; k++)
		dx[k] = want[k] ? ad->grad[n->in[k]->id] : NULL;
	g->scope = n->name;
	TRY(n->op->grad(g, n, dy, want, dx));
	if (g->failed != ST_OK)
		return g->failed;
	for (int k = 0; k < n->nin; k++)
		if (want[k] && dx[k] && sums)
			ad->grad[n->in[k]->id] = dx[k];
		else if (want[k] && dx[k])
			TRY(contribute(ad, n, n->in[k], dx[k]));
	return ST_OK;
}

/* 1, or the loss's scale. */
static enum status loss_gradient(struct graph *g, struct tensor **out)
{
	const struct tensor *loss = g->loss;
	if (g->loss_scale) {
		g->scope = "loss-scale";
		struct tensor *scale = OP1(
			g, op_by_role(g->table, ROLE_LOSS_SCALE)->name, g->loss_scale);
		g->loss_unscale = scale ? scale->maker->out[1] : NULL;
		*out = scale ? graph_reshape(g, scale, loss->rank, loss->dim) : NULL;
		return g->failed;
	}
	void *one = arena_alloc(g->arena, 1, (size_t)dtype_bytes(g->real));
	if (!one)
		return diag_nomem(g->diag);
	value_set(g->real, one, 0, 1);
	*out = graph_constant(g, "stint.one", g->real, loss->rank, loss->dim, one);
	return *out ? ST_OK : g->failed;
}

static enum status backward(struct autodiff *ad)
{
	struct graph *g = ad->g;
	enum status worst = ST_OK;
	for (int i = ad->nforward - 1; i >= 0; i--) {
		const struct node *n = g->node[i];
		bool on_path = false;
		for (int k = 0; k < n->nout; k++)
			on_path |= n->out[k] && ad->reaches[n->out[k]->id];
		if (!on_path)
			continue;
		enum status st = differentiate(ad, n);
		if (st == ST_INTERNAL || g->failed != ST_OK)
			return st;
		if (st != ST_OK) /* go on, to report every operator without a gradient */
			worst = st;
	}
	return worst;
}

static enum status give(struct autodiff *ad, struct tensor *x, struct tensor *gradient)
{
	struct tensor **sum = &ad->grad[x->id];
	ad->reaches[x->id] = true;
	*sum = *sum ? OP2(ad->g, op_by_role(ad->g->table, ROLE_ADD)->name, *sum, gradient)
		    : gradient;
	return *sum ? ST_OK : ad->g->failed;
}

enum status graph_gradients(struct graph *g, const struct gradients_of *of)
{
	struct autodiff ad = {.g = g, .nforward = g->nnode, .ntensor = g->ntensor};
	ad.wants = ARENA_ARRAY(g->arena, bool, g->ntensor);
	ad.reaches = ARENA_ARRAY(g->arena, bool, g->ntensor);
	ad.grad = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor);
	if (!ad.wants || !ad.reaches || !ad.grad)
		return diag_nomem(g->diag);
	g->phase = NODE_BACKWARD;
	for (int i = 0; i < of->nto; i++)
		ad.wants[of->to[i]->id] = true;
	graph_mark_wanted(g, ad.wants);
	for (int i = 0; i < of->nfrom; i++)
		TRY(give(&ad, of->from[i], of->given[i]));
	mark_reaches(&ad);
	TRY(backward(&ad));
	g->phase = NODE_FORWARD;
	g->scope = NULL;
	TRY(graph_join(g, ad.grad, ad.ntensor));
	for (int i = 0; i < of->nto; i++)
		of->found[i] = ad.grad[of->to[i]->id];
	return ST_OK;
}

/* A way leads from a parameter to the loss. */
static bool is_trained(const struct graph *g)
{
	bool *ways = ARENA_ARRAY(g->arena, bool, g->ntensor);
	if (!ways)
		return true;
	for (int i = 0; i < g->ntensor; i++)
		ways[i] = g->tensor[i]->role == TR_PARAMETER && dtype_is_real(g->tensor[i]->dtype);
	graph_mark_wanted(g, ways);
	return ways[g->loss->id];
}

enum status graph_autodiff(struct graph *g, const char *hint, int *nparam, struct tensor ***param,
	struct tensor ***grad)
{
	struct tensor *one;
	*nparam = 0;
	*param = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor);
	*grad = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor);
	if (!*param || !*grad)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->ntensor; i++)
		if (g->tensor[i]->role == TR_PARAMETER)
			(*param)[(*nparam)++] = g->tensor[i];
	if (!is_trained(g)) {
		const struct where w = {.file = g->file, .node = g->loss->name};
		return diag_fail(g->diag, ST_INVALID, &w, hint,
			"the loss depends on no trainable parameter");
	}
	g->phase = NODE_BACKWARD;
	TRY(loss_gradient(g, &one));
	const struct gradients_of of = {.nfrom = 1,
		.from = &g->loss,
		.given = &one,
		.nto = *nparam,
		.to = *param,
		.found = *grad};
	return graph_gradients(g, &of);
}

bool *graph_ways_back(const struct graph *g)
{
	bool *passes = ARENA_ARRAY(g->arena, bool, g->ntensor);
	for (int i = 0; passes && i < g->noutput; i++)
		passes[g->output[i]->id] = dtype_is_real(g->output[i]->dtype);
	for (int i = g->nnode - 1; passes && i >= 0; i--) {
		const struct node *n = g->node[i];
		bool any = false;
		for (int k = 0; k < n->nout; k++)
			any |= n->out[k] && passes[n->out[k]->id];
		/* what is lowered becomes other nodes: a cast between reals is none */
		any &= !(n->op->traits & OP_STOP) || n->op->lower;
		for (int k = 0; any && k < n->nin; k++)
			if (n->in[k] && dtype_is_real(n->in[k]->dtype))
				passes[n->in[k]->id] = true;
	}
	return passes;
}
