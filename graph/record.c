/* The operator table, and what a record says of a node under the graph's target. */
#include <string.h>

#include "graph/cost.h"
#include "graph/expr.h"
#include "graph/fused.h"
#include "graph/op_loss.h"
#include "graph/op_optimizer.h"

#define FOR_EACH_RECORD(t, r)                                                                      \
	for (int f_ = 0; f_ < (t)->nfamily; f_++)                                                  \
		for (const struct op_def *r = (t)->family[f_]; r->name; r++)

/* Records by a hash of their names: chains, in the table's order. */
struct op_index {
	unsigned mask;
	struct op_chain {
		const struct op_def *op;
		const struct op_chain *next;
	} * *slot;
};

unsigned name_hash(const char *s)
{
	unsigned h = 2166136261u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h ^ h >> 15;
}

struct op_index *op_index_new(struct arena *a, const struct op_table *t)
{
	unsigned n = 0, size = 16;
	FOR_EACH_RECORD(t, r)
	n++;
	while (size < 2 * n)
		size *= 2;
	struct op_index *x = ARENA_NEW(a, struct op_index);
	struct op_chain *all = ARENA_ARRAY(a, struct op_chain, n);
	if (!x || !all || !(x->slot = ARENA_ARRAY(a, struct op_chain *, size)))
		return NULL;
	x->mask = size - 1;
	FOR_EACH_RECORD(t, r)
	(all++)->op = r;
	for (; n; n--) { /* from the last one: each goes before those that follow it */
		struct op_chain *c = --all, **head = &x->slot[name_hash(c->op->name) & x->mask];
		c->next = *head;
		*head = c;
	}
	return x;
}

const struct op_def *op_index_find(const struct op_index *x, const char *name, int opset)
{
	for (const struct op_chain *c = x->slot[name_hash(name) & x->mask]; c; c = c->next)
		if (c->op->since <= opset && (c->op->until == 0 || opset < c->op->until) &&
			!c->op->instead && !strcmp(c->op->name, name))
			return c->op;
	return NULL;
}

const char *op_index_instead(const struct op_index *x, const char *name)
{
	for (const struct op_chain *c = x->slot[name_hash(name) & x->mask]; c; c = c->next)
		if (c->op->instead && !strcmp(c->op->name, name))
			return c->op->instead;
	return NULL;
}

const struct op_def *op_by_role(const struct op_table *t, enum op_role role)
{
	FOR_EACH_RECORD(t, r)
	if (r->role == role && r->until == 0)
		return r;
	return NULL;
}

const struct op_def *op_by_loss(const struct op_table *t, const char *loss)
{
	FOR_EACH_RECORD(t, r)
	if (op_loss(r) && !strcmp(op_loss(r), loss))
		return r;
	return NULL;
}

const struct op_def *op_by_optimizer(const struct op_table *t, const char *optimizer)
{
	FOR_EACH_RECORD(t, r)
	if (op_optimizer(r) && !strcmp(op_optimizer(r), optimizer))
		return r;
	return NULL;
}

const char *node_expr(const struct node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && dtype_is_real(n->in[i]->dtype))
			return n->op->expr;
	return n->op->int_expr ? n->op->int_expr : n->op->expr;
}

const struct fused *node_fused(const struct node *n)
{
	return n->op->role == ROLE_FUSED ? n->param : NULL;
}

void fused_live(const struct node *n, const struct fused *f, bool *live)
{
	for (int q = 0; q < f->nstage; q++)
		live[q] = q == f->nstage - 1;
	for (int q = f->nstage - 1; q >= 0; q--)
		for (int k = 0; live[q] && k < f->stage[q].node->nin; k++) {
			struct fused_operand o = f->stage[q].in[k];
			if (o.stage >= 0 && !fused_reads_slot(n, o))
				live[o.stage] = true;
		}
}

void node_title(const struct node *n, struct text *out)
{
	const struct fused *f = node_fused(n);
	const char *between = ": ";
	bool live[FUSED_STAGES];
	text_puts(out, n->op->name);
	if (!f)
		return;
	fused_live(n, f, live);
	for (int q = 0; q < f->nstage; q++) {
		const char *name = f->stage[q].node->op->name;
		if (live[q])
			text_add(out, "%s%s", between,
				!strncmp(name, "stint.", 6) ? name + 6 : name);
		between = live[q] ? ", " : between;
	}
}

/* A text that is no expression calls nothing here; emit_pointwise reports it. */
static double expr_work(const struct node *n)
{
	const char *expr = node_expr(n);
	struct expr x;
	const bool calls = expr && expr_parse(&x, expr, n->op->option);
	return (n->op->work > 0 ? n->op->work : 1) + (calls ? 20 * expr_slow_calls(&x) : 0);
}

/* Operations an element of the output. */
static double work_of(const struct node *n)
{
	const struct fused *f = node_fused(n);
	bool live[FUSED_STAGES];
	double work = 0;
	if (!f)
		return expr_work(n);
	fused_live(n, f, live);
	for (int q = 0; q < f->nstage; q++)
		work += live[q] ? expr_work(f->stage[q].node) : 0;
	return work;
}

double node_bytes(const struct node *n)
{
	double bytes = 0;
	for (int i = 0; i < n->nin; i++)
		bytes += n->in[i] ? (double)tensor_bytes(n->in[i]) : 0;
	for (int k = 0; k < n->nout; k++)
		bytes += n->out[k] ? (double)tensor_bytes(n->out[k]) : 0;
	return bytes;
}

struct op_cost node_cost(const struct node *n)
{
	if (n->op->traits & OP_VIEW)
		return (struct op_cost){0, 0};
	if (n->op->cost)
		return n->op->cost(n);
	struct op_cost c = {0, node_bytes(n)};
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			c.flops += (k ? 1 : work_of(n)) * (double)n->out[k]->numel;
	return c;
}

/* A CPU's library knows no F16. */
static bool has_half(const struct node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && n->in[i]->dtype == DT_F16)
			return true;
	return n->out[0] && n->out[0]->dtype == DT_F16;
}

/* The call of one way, and its scratch bytes; -1: there is none. */
static int64_t library_way(
	const struct graph *g, const struct node *n, int way, struct lib_call *call)
{
	const struct target *t = g->target;
	if (t->portable || !t->library_workspace || !n->op->library || g->real != DT_F32 ||
		(has_half(n) && !t->cuda))
		return -1;
	*call = (struct lib_call){0};
	if (!n->op->library(n, way, call) || (call->slow && !t->cuda))
		return -1;
	return t->library_workspace(t->user, call);
}

bool node_uses_library(
	const struct graph *g, const struct node *n, struct lib_call *call, int64_t *workspace)
{
	const int64_t bytes = library_way(g, n, n->nway ? n->way[0] : 0, call);
	if (bytes < 0)
		return false;
	*workspace = bytes;
	return true;
}

int node_choices(const struct node *n)
{
	return (1 + n->nalt) * (n->nway ? n->nway : 1);
}

struct node node_choice(const struct node *n, int choice)
{
	struct node v = *n;
	const int ways = n->nway ? n->nway : 1;
	if (choice >= ways)
		v.in = n->alt[choice / ways - 1];
	if (n->nway) {
		v.nway = 1;
		v.way[0] = n->way[choice % ways];
	}
	return v;
}

int64_t node_workspace(const struct graph *g, const struct node *n)
{
	struct lib_call call;
	int64_t bytes;
	if (node_uses_library(g, n, &call, &bytes))
		return bytes;
	const bool cuda = g->target->cuda && n->op->emit_cuda;
	int64_t (*const hook)(const struct node *n,
		const struct target *t) = cuda ? n->op->workspace_cuda : n->op->workspace;
	return hook ? hook(n, g->target) : 0;
}

static bool pair_fits(const struct node *n, struct op_pair p)
{
	return p.out < n->nout && p.in < n->nin && n->out[p.out] && n->in[p.in] &&
	       n->in[p.in]->role != TR_CONSTANT && n->in[p.in]->dtype == n->out[p.out]->dtype;
}

int node_pairs(const struct node *n, struct op_pair *out, int max)
{
	int count = 0;
	if ((n->op->traits & OP_POINTWISE) && n->op->npair == 0) {
		for (int i = 0; i < n->nin && count < max; i++)
			if (pair_fits(n, (struct op_pair){0, i}) &&
				tensor_same_shape(n->in[i], n->out[0]))
				out[count++] = (struct op_pair){0, i};
		return count;
	}
	for (int i = 0; i < n->op->npair && count < max; i++)
		if (pair_fits(n, n->op->pair[i]))
			out[count++] = n->op->pair[i];
	return count;
}
