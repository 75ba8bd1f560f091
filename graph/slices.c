/* A region's nodes, slice by slice. */
#include "graph/slices.h"

#include <inttypes.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

struct slicing {
	const struct graph_apart *a;
	const struct graph_region *r;
	struct graph_copy whole; /* a->whole to the new graph */
	struct graph_copy part;  /* a->part to it: the slice that is being built */
	struct tensor ***slice;  /* by tensor: those that stand for it in each slice; NULL: none */
};

static bool inside(const struct slicing *s, const struct tensor *t)
{
	return t->maker && t->maker->id >= s->r->from && t->maker->id < s->r->to;
}

static struct node *add(struct slicing *s, enum op_role role, int nin, struct tensor *const *in,
	int nout, const struct attr *attr)
{
	struct graph *g = s->whole.to;
	struct node *n = NULL;
	const enum status st = graph_node(g, op_by_role(g->table, role)->name, g->scope, nin, in,
		nout, attr != NULL, attr, NULL, &n);
	if (st != ST_OK && g->failed == ST_OK)
		g->failed = st;
	return n;
}

/* What slices [from, from + n) read of x: views, whose gradients meet in a binary tree, the left
 * side of n the most that are fewer and a power of two. */
static enum status share(
	struct slicing *s, struct tensor *x, int64_t from, int64_t n, struct tensor **slice)
{
	int64_t left = 1;
	if (n == 1) {
		slice[from] = x;
		return ST_OK;
	}
	while (2 * left < n)
		left *= 2;
	for (int side = 0; side < 2; side++) {
		struct node *view = add(s, ROLE_IDENTITY, 1, &x, 1, NULL);
		if (!view)
			return s->whole.to->failed;
		TRY(share(
			s, view->out[0], side ? from + left : from, side ? n - left : left, slice));
	}
	return ST_OK;
}

/* Its rows, slice by slice. */
static enum status cut(struct slicing *s, struct tensor *x, struct tensor **slice)
{
	const struct attr axis = ATTR_I("axis", 0);
	struct node *n = add(s, ROLE_SPLIT, 1, &x, (int)s->r->slices, &axis);
	for (int64_t i = 0; n && i < s->r->slices; i++)
		slice[i] = n->out[i];
	return s->whole.to->failed;
}

/* A constant of the slice's own shape. */
static enum status small_constant(
	struct slicing *s, const struct tensor *part, struct tensor **slice)
{
	struct tensor *x = graph_constant(
		s->whole.to, part->name, part->dtype, part->rank, part->dim, part->data);
	for (int64_t i = 0; x && i < s->r->slices; i++)
		slice[i] = x;
	return x ? ST_OK : diag_nomem(s->whole.to->diag);
}

/* What the region reads from outside. */
static enum status enter(struct slicing *s, const struct tensor *t)
{
	struct graph *g = s->whole.to;
	if (s->slice[t->id])
		return ST_OK;
	struct tensor *x = s->whole.map[t->id];
	struct tensor **slice = ARENA_ARRAY(g->arena, struct tensor *, s->r->slices);
	if (!slice)
		return diag_nomem(g->diag);
	s->slice[t->id] = slice;
	g->scope = t->name;
	if (t->role == TR_CONSTANT && s->a->axis[t->id] != AXIS_NONE)
		return small_constant(s, s->a->part->tensor[t->id], slice);
	if (s->a->axis[t->id] == 0)
		return cut(s, x, slice);
	if (dtype_is_real(t->dtype) && t->role != TR_CONSTANT && t->role != TR_BUFFER)
		return share(s, x, 0, s->r->slices, slice);
	for (int64_t i = 0; i < s->r->slices; i++)
		slice[i] = x;
	return ST_OK;
}

/* Nodes of no sample run once, before all slices. */
static bool is_sliced(const struct slicing *s, const struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && s->a->axis[n->out[k]->id] != AXIS_NONE)
			return true;
	return false;
}

static enum status enter_all(struct slicing *s)
{
	const struct graph *whole = s->a->whole;
	struct node *copied;
	for (int i = s->r->from; i < s->r->to; i++)
		if (!is_sliced(s, whole->node[i]))
			TRY(graph_copy_node(&s->whole, whole->node[i], &copied));
	for (int i = s->r->from; i < s->r->to; i++) {
		const struct node *n = whole->node[i];
		for (int k = 0; is_sliced(s, n) && k < n->nin; k++)
			if (n->in[k] && (!inside(s, n->in[k]) || !is_sliced(s, n->in[k]->maker)))
				TRY(enter(s, n->in[k]));
	}
	return s->whole.to->failed;
}

/* Which slice a node of it is, for those that want to know. */
static enum status place(const struct slicing *s, int64_t number, struct node *n)
{
	struct attr *attr = ARENA_ARRAY(s->whole.to->arena, struct attr, n->nattr + 2);
	if (!attr)
		return diag_nomem(s->whole.to->diag);
	for (int i = 0; i < n->nattr; i++)
		attr[i] = n->attr[i];
	attr[n->nattr++] = ATTR_I("slice", number);
	attr[n->nattr++] = ATTR_I("slices", s->r->slices);
	n->attr = attr;
	return ST_OK;
}

static enum status build_slice(struct slicing *s, int64_t number)
{
	const struct graph *part = s->a->part;
	for (int i = 0; i < part->ntensor; i++)
		s->part.map[i] = s->slice[i] ? s->slice[i][number] : NULL;
	for (int i = s->r->from; i < s->r->to; i++) {
		struct node *n;
		if (!is_sliced(s, s->a->whole->node[i]))
			continue;
		TRY(graph_copy_node(&s->part, part->node[i], &n));
		if (n->op->traits & OP_PLACED)
			TRY(place(s, number, n));
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && !(n->out[k]->name = arena_printf(part->arena,
						   "%s/%" PRId64, n->out[k]->name, number)))
				return diag_nomem(part->diag);
	}
	return ST_OK;
}

/* Who reads `t` behind the region, or has it as an output. */
static bool leaves(const struct slicing *s, const struct tensor *t)
{
	const struct graph *g = s->a->whole;
	for (int i = s->r->to; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k] == t)
				return true;
	for (int i = 0; i < g->noutput; i++)
		if (g->output[i] == t)
			return true;
	return false;
}

/* Lists, by tensor of the whole, of what leaves: one of a slice each. */
static enum status leave_lists(struct slicing *s, struct tensor ***list)
{
	for (int i = s->r->from; i < s->r->to; i++) {
		const struct node *n = s->a->whole->node[i];
		for (int k = 0; is_sliced(s, n) && k < n->nout; k++)
			if (n->out[k] && leaves(s, n->out[k]) &&
				!(list[n->out[k]->id] = ARENA_ARRAY(
					  s->whole.to->arena, struct tensor *, s->r->slices)))
				return diag_nomem(s->whole.to->diag);
	}
	return ST_OK;
}

static enum status join(struct slicing *s, const struct tensor *t, struct tensor *const *slice)
{
	const struct attr axis = ATTR_I("axis", 0);
	s->whole.to->scope = t->name;
	struct node *n = add(s, ROLE_CONCAT, (int)s->r->slices, slice, 1, &axis);
	if (!n)
		return s->whole.to->failed;
	n->out[0]->name = t->name;
	s->whole.map[t->id] = n->out[0];
	return ST_OK;
}

static enum status build_region(struct slicing *s)
{
	const struct graph *whole = s->a->whole;
	struct tensor ***leaving = ARENA_ARRAY(whole->arena, struct tensor **, whole->ntensor);
	if (!leaving)
		return diag_nomem(whole->diag);
	TRY(enter_all(s));
	TRY(leave_lists(s, leaving));
	for (int64_t number = 0; number < s->r->slices; number++) {
		TRY(build_slice(s, number));
		for (int i = 0; i < whole->ntensor; i++)
			if (leaving[i])
				leaving[i][number] = s->part.map[i];
	}
	for (int i = 0; i < whole->ntensor; i++)
		if (leaving[i])
			TRY(join(s, whole->tensor[i], leaving[i]));
	return ST_OK;
}

enum status graph_slice(
	const struct graph_apart *a, const struct graph_region *r, struct graph **out)
{
	struct slicing s = {.a = a, .r = r};
	struct node *copied;
	TRY(graph_copy_begin(&s.whole, a->whole));
	s.whole.to->sliced = true;
	s.part = (struct graph_copy){.from = a->part, .to = s.whole.to};
	s.part.map = ARENA_ARRAY(a->whole->arena, struct tensor *, a->part->ntensor);
	s.slice = ARENA_ARRAY(a->whole->arena, struct tensor **, a->whole->ntensor);
	if (!s.part.map || !s.slice)
		return diag_nomem(a->whole->diag);
	for (int i = 0; i < a->whole->nnode; i++) {
		if (i == r->from)
			TRY(build_region(&s));
		if (i < r->from || i >= r->to)
			TRY(graph_copy_node(&s.whole, a->whole->node[i], &copied));
	}
	return graph_copy_end(&s.whole, out);
}
