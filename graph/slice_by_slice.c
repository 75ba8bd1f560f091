/* Split and Concat along the first axis, of graphs that run in slices: a node that takes or gives
 * all parts at once would have them all live. */
#include "graph/graph_parts.h"
#include "graph/slices.h"

/* A Concat whose parts are joined as they come. */
struct joining {
	const struct node *node; /* of the graph before */
	struct tensor *sum;      /* what has come so far; NULL: nothing */
	int left;                /* parts to come */
};

struct parting {
	struct graph_copy c;
	/* By tensor of the graph before: which Concat waits for it, and from which row on it stands
	 * there. */
	struct joining **joining;
	int64_t *row;
};

static bool is_first_axis(const struct node *n, enum op_role role)
{
	return n->op->role == role && node_int(n, "axis", 0) == 0;
}

static bool is_split(const struct tensor *t)
{
	return t->maker && is_first_axis(t->maker, ROLE_SPLIT);
}

/* All parts are made by nodes, one each, and no other Concat waits for them. */
static bool can_join(const struct parting *p, const struct node *n)
{
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i]->maker || p->joining[n->in[i]->id] || is_split(n->in[i]))
			return false;
		for (int k = 0; k < i; k++)
			if (n->in[k] == n->in[i])
				return false;
	}
	return n->nin > 1;
}

static enum status find_joins(struct parting *p)
{
	const struct graph *g = p->c.from;
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		int64_t row = 0;
		if (!is_first_axis(n, ROLE_CONCAT) || !can_join(p, n))
			continue;
		struct joining *j = ARENA_NEW(p->c.to->arena, struct joining);
		if (!j)
			return diag_nomem(g->diag);
		*j = (struct joining){.node = n, .left = n->nin};
		for (int k = 0; k < n->nin; k++) {
			p->joining[n->in[k]->id] = j;
			p->row[n->in[k]->id] = row;
			row += n->in[k]->dim[0];
		}
	}
	return ST_OK;
}

static struct tensor *role_op(struct graph *g, enum op_role role, int nin, struct tensor *const *in,
	int nattr, const struct attr *attr)
{
	return graph_op(g, op_by_role(g->table, role)->name, nin, in, nattr, attr);
}

/* `t` of the graph before is there. */
static enum status arrived(struct parting *p, const struct tensor *t)
{
	struct graph *g = p->c.to;
	struct joining *j = p->joining[t->id];
	if (!j)
		return ST_OK;
	const struct tensor *whole = j->node->out[0];
	const struct attr attr[] = {ATTR_I("at", p->row[t->id]), ATTR_I("rows", whole->dim[0])};
	g->phase = j->node->phase;
	g->scope = j->node->name;
	j->sum = role_op(g, ROLE_JOIN, j->sum ? 2 : 1, (struct tensor *[]){p->c.map[t->id], j->sum},
		2, attr);
	if (!j->sum)
		return g->failed;
	j->sum->is_gradient = whole->is_gradient;
	if (--j->left)
		return ST_OK;
	j->sum->name = whole->name;
	p->c.map[whole->id] = j->sum;
	return arrived(p, whole);
}

/* A part of a Split, right before it is read. */
static enum status take(struct parting *p, const struct tensor *t)
{
	struct graph *g = p->c.to;
	const struct node *n = t->maker;
	int64_t bound[2] = {0, 0}, axis = 0, k = 0;
	for (; n->out[k] != t; k++)
		bound[0] += n->out[k] ? n->out[k]->dim[0] : 0;
	bound[1] = bound[0] + t->dim[0];
	const int64_t *list = arena_memdup(g->arena, bound, 2, sizeof *bound);
	const int64_t *axes = arena_memdup(g->arena, &axis, 1, sizeof axis);
	if (!list || !axes)
		return diag_nomem(g->diag);
	const struct attr attr[] = {
		ATTR_IS("starts", 1, list), ATTR_IS("ends", 1, list + 1), ATTR_IS("axes", 1, axes)};
	g->phase = n->phase;
	g->scope = n->name;
	struct tensor *part = role_op(g, ROLE_SLICE, 1, &p->c.map[n->in[0]->id], 3, attr);
	if (!part)
		return g->failed;
	part->name = t->name;
	part->is_gradient = t->is_gradient;
	p->c.map[t->id] = part;
	return ST_OK;
}

/* A Split's outputs are all there, or it is made whole. */
static bool can_take(const struct node *n)
{
	bool all = n->nout > 1;
	for (int k = 0; k < n->nout; k++)
		all &= n->out[k] != NULL;
	return all;
}

static enum status rebuild(struct parting *p, const struct node *n)
{
	struct node *m;
	if (is_first_axis(n, ROLE_SPLIT) && can_take(n))
		return ST_OK; /* part by part, when they are read */
	if (n->nout == 1 && p->c.map[n->out[0]->id])
		return ST_OK; /* joined */
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !p->c.map[n->in[i]->id])
			TRY(take(p, n->in[i]));
	TRY(graph_copy_node(&p->c, n, &m));
	for (int a = 0; a < n->nalt; a++) {
		struct tensor **in;
		for (int i = 0; i < n->nin; i++)
			if (n->alt[a][i] && !p->c.map[n->alt[a][i]->id])
				TRY(take(p, n->alt[a][i]));
		TRY(graph_copy_list(&p->c, n->nin, n->alt[a], &in));
		TRY(graph_alternative(p->c.to, m, in));
	}
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			TRY(arrived(p, n->out[k]));
	return ST_OK;
}

enum status graph_slice_by_slice(const struct graph *in, struct graph **out)
{
	struct parting p;
	TRY(graph_copy_begin(&p.c, in));
	p.joining = ARENA_ARRAY(in->arena, struct joining *, in->ntensor);
	p.row = ARENA_ARRAY(in->arena, int64_t, in->ntensor);
	if (!p.joining || !p.row)
		return diag_nomem(in->diag);
	TRY(find_joins(&p));
	for (int i = 0; i < in->nnode; i++)
		TRY(rebuild(&p, in->node[i]));
	for (int i = 0; i < in->noutput; i++)
		if (in->output[i] && !p.c.map[in->output[i]->id])
			TRY(take(&p, in->output[i]));
	return graph_copy_end(&p.c, out);
}
