/* Reverse-mode differentiation over the records' gradient rules. A rule builds nodes, so what the
 * backward pass keeps is what its nodes read. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

struct autodiff {
	struct graph *g;
	int nforward;           /* nodes before the backward pass */
	int ntensor;            /* tensors before it */
	bool *wants;            /* by tensor id: one that is asked for lies behind it */
	bool *reaches;          /* by tensor id: one whose gradient is given depends on it */
	struct branch_sum *sum; /* by tensor id: so far */
	int *first;             /* by tensor id: the first node that reads it on the way there */
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
			if (n->in[k]) {
				ad->reaches[n->in[k]->id] = true;
				ad->first[n->in[k]->id] = i;
			}
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

/* Add one contribution to the gradient of input k. The order of the calls, and so of the sum, is
 * the graph's. */
static enum status contribute(struct autodiff *ad, const struct node *n, int k, struct tensor *dx)
{
	struct graph *g = ad->g;
	const struct tensor *x = n->in[k];
	if (!tensor_same_shape(x, dx) || x->dtype != dx->dtype) {
		char a[200], b[200];
		const struct where w = {.file = g->file, .node = n->name, .op = n->op->name};
		return diag_fail(g->diag, ST_INTERNAL, &w, "this is a bug in stint",
			"its gradient rule gave %s for an input of shape %s",
			tensor_shape_text(dx, a), tensor_shape_text(x, b));
	}
	const struct branch_sum part = {dx, branch_of_choice(n, k)};
	if (!(n->op->traits & OP_SUMS))
		return branch_add(g, &ad->sum[x->id], part);
	ad->sum[x->id] = part;
	return ST_OK;
}

/* What the rule of node n is given: its outputs' gradients, and in dx, if it adds to them itself,
 * the sums so far. */
static enum status sums_before(
	struct autodiff *ad, const struct node *n, struct tensor **dy, struct tensor **dx)
{
	struct graph *g = ad->g;
	for (int k = 0; k < n->nout; k++)
		dy[k] = n->out[k] ? branch_leave(g, ad->sum[n->out[k]->id], n->when) : NULL;
	for (int k = 0; n->op->traits & OP_SUMS && k < n->nin; k++)
		if (n->in[k] && ad->wants[n->in[k]->id])
			dx[k] = branch_leave(g, ad->sum[n->in[k]->id], n->when);
	return g->failed;
}

static enum status differentiate(struct autodiff *ad, const struct node *n)
{
	struct graph *g = ad->g;
	struct tensor **dy = ARENA_ARRAY(g->arena, struct tensor *, n->nout);
	struct tensor **dx = ARENA_ARRAY(g->arena, struct tensor *, n->nin);
	bool *want = ARENA_ARRAY(g->arena, bool, n->nin), any_dy = false, any_want = false;
	if (!dy || !dx || !want)
		return diag_nomem(g->diag);
	for (int k = 0; k < n->nout; k++)
		any_dy |= n->out[k] && ad->sum[n->out[k]->id].value;
	for (int k = 0; k < n->nin; k++) {
		want[k] = n->in[k] && ad->wants[n->in[k]->id];
		any_want |= want[k];
	}
	if (!any_dy || !any_want || (n->op->traits & OP_STOP))
		return ST_OK;
	if (!n->op->grad)
		return no_rule(ad, n);
	g->scope = n->name;
	g->when = n->when;
	TRY(sums_before(ad, n, dy, dx));
	TRY(n->op->grad(g, n, dy, want, dx));
	if (g->failed != ST_OK)
		return g->failed;
	for (int k = 0; k < n->nin; k++)
		if (want[k] && dx[k])
			TRY(contribute(ad, n, k, dx[k]));
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

/* Of a parameter that nobody before node n reads, the gradient is complete: its update need not
 * wait. */
static enum status complete(struct autodiff *ad, const struct node *n)
{
	struct graph *g = ad->g;
	for (int k = 0; k < n->nin; k++) {
		const struct tensor *x = n->in[k];
		if (!x || x->role != TR_PARAMETER || ad->first[x->id] != n->id)
			continue;
		struct branch_sum *sum = &ad->sum[x->id];
		*sum = (struct branch_sum){branch_leave(g, *sum, NULL), NULL};
	}
	return g->failed;
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
		if (st == ST_OK)
			st = complete(ad, n);
		if (st == ST_INTERNAL || g->failed != ST_OK)
			return st;
		if (st != ST_OK) /* go on, to report every operator without a gradient */
			worst = st;
	}
	return worst;
}

static enum status give(struct autodiff *ad, struct tensor *x, struct tensor *gradient)
{
	ad->reaches[x->id] = true;
	return branch_add(ad->g, &ad->sum[x->id], (struct branch_sum){.value = gradient});
}

enum status graph_gradients(struct graph *g, const struct gradients_of *of)
{
	struct autodiff ad = {.g = g, .nforward = g->nnode, .ntensor = g->ntensor};
	ad.wants = ARENA_ARRAY(g->arena, bool, g->ntensor);
	ad.reaches = ARENA_ARRAY(g->arena, bool, g->ntensor);
	ad.sum = ARENA_ARRAY(g->arena, struct branch_sum, g->ntensor);
	ad.first = ARENA_ARRAY(g->arena, int, g->ntensor);
	struct tensor **sum = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor);
	if (!ad.wants || !ad.reaches || !ad.sum || !ad.first || !sum)
		return diag_nomem(g->diag);
	g->phase = NODE_BACKWARD;
	for (int i = 0; i < of->nto; i++)
		ad.wants[of->to[i]->id] = true;
	graph_mark_wanted(g, ad.wants);
	for (int i = 0; i < of->nfrom; i++)
		TRY(give(&ad, of->from[i], of->given[i]));
	mark_reaches(&ad);
	TRY(backward(&ad));
	g->when = NULL;
	for (int i = 0; i < of->nto; i++) { /* what is no parameter nobody has completed yet */
		struct branch_sum *of_it = &ad.sum[of->to[i]->id];
		*of_it = (struct branch_sum){branch_leave(g, *of_it, NULL), NULL};
	}
	g->phase = NODE_FORWARD;
	g->scope = NULL;
	for (int i = 0; i < ad.ntensor; i++)
		sum[i] = ad.sum[i].value;
	TRY(graph_join(g, sum, ad.ntensor));
	for (int i = 0; i < of->nto; i++)
		of->found[i] = sum[of->to[i]->id];
	return ST_OK;
}

/* A way leads from one of these to the loss. */
static bool is_trained(const struct graph *g, int n, struct tensor *const *to)
{
	bool *ways = ARENA_ARRAY(g->arena, bool, g->ntensor);
	if (!ways)
		return true;
	for (int i = 0; i < n; i++)
		ways[to[i]->id] = dtype_is_real(to[i]->dtype);
	graph_mark_wanted(g, ways);
	return ways[g->loss->id];
}

enum status graph_autodiff(struct graph *g, const char *hint, const struct kept_inputs *inputs,
	int *nparam, struct tensor ***param, struct tensor ***grad)
{
	const int ninput = inputs ? inputs->n : 0;
	struct tensor *one;
	*nparam = 0;
	*param = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor);
	*grad = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor);
	if (!*param || !*grad)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->ntensor; i++)
		if (g->tensor[i]->role == TR_PARAMETER)
			(*param)[(*nparam)++] = g->tensor[i];
	for (int i = 0; i < ninput; i++)
		(*param)[*nparam + i] = inputs->rows[i];
	if (!is_trained(g, *nparam + ninput, *param)) {
		const struct where w = {.file = g->file, .node = g->loss->name};
		return diag_fail(g->diag, ST_INVALID, &w, hint,
			"the loss depends on no trainable parameter");
	}
	g->phase = NODE_BACKWARD;
	TRY(loss_gradient(g, &one));
	const struct gradients_of of = {.nfrom = 1,
		.from = &g->loss,
		.given = &one,
		.nto = *nparam + ninput,
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
