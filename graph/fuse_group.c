/* The node that takes the place of a pointwise node and of what is inlined into it. */
#include <string.h>

#include "graph/fuse.h"
#include "graph/fused.h"
#include "graph/graph_parts.h"

struct group {
	const struct fuse *f;
	const struct node *root;
	int nway;
	struct tensor *const *way[FUSED_WAYS]; /* root's inputs in each */
	int nslot;
	struct tensor *slot[FUSED_WAYS][FUSED_INPUTS]; /* NULL: not read that way */
	bool own[FUSED_INPUTS];                        /* of one operand that differs by way */
	int nstage;
	struct fused_stage stage[FUSED_STAGES];
};

/* The slot of tensor t, which is read in the ways of `mask`; -1: no room. */
static int shared_slot(struct group *x, struct tensor *t, unsigned mask)
{
	int s = 0;
	for (; s < x->nslot; s++) {
		bool here = !x->own[s];
		for (int w = 0; w < x->nway; w++)
			here = here && (!x->slot[w][s] || x->slot[w][s] == t);
		if (here)
			break;
	}
	if (s == FUSED_INPUTS)
		return -1;
	x->nslot += s == x->nslot;
	for (int w = 0; w < x->nway; w++)
		if (mask >> w & 1)
			x->slot[w][s] = t;
	return s;
}

static int visit(struct group *x, const struct node *n, unsigned mask);

/* An operand of the root that is not the same in every way. */
static bool differing(struct group *x, int k, struct fused_operand *o)
{
	const int s = x->nslot;
	const struct node *maker = NULL;
	unsigned made = 0;
	if (s == FUSED_INPUTS)
		return false;
	x->own[x->nslot++] = true;
	for (int w = 0; w < x->nway; w++) {
		const struct node *m = fuse_maker(x->f, x->root, x->way[w][k]);
		maker = m ? m : maker;
		made |= m ? 1u << w : 0;
		x->slot[w][s] = m ? NULL : x->way[w][k];
	}
	*o = (struct fused_operand){s, maker ? visit(x, maker, made) : -1};
	return !maker || o->stage >= 0;
}

static bool operand(
	struct group *x, const struct node *n, int k, unsigned mask, struct fused_operand *o)
{
	struct tensor *t = n->in[k];
	for (int w = 1; n == x->root && w < x->nway; w++)
		if (x->way[w][k] != t)
			return differing(x, k, o);
	*o = (struct fused_operand){-1, -1};
	if (!t)
		return true;
	const struct node *maker = fuse_maker(x->f, n, t);
	if (maker)
		return (o->stage = visit(x, maker, mask)) >= 0;
	return (o->slot = shared_slot(x, t, mask)) >= 0;
}

/* The stage of node n, needed in the ways of `mask`; -1: no room. */
static int visit(struct group *x, const struct node *n, unsigned mask)
{
	struct fused_stage s = {.node = n};
	for (int k = 0; k < n->nin; k++)
		if (!operand(x, n, k, mask, &s.in[k]))
			return -1;
	for (int q = 0; q < x->nstage; q++)
		if (x->stage[q].node == n)
			return q;
	if (x->nstage == FUSED_STAGES)
		return -1;
	x->stage[x->nstage] = s;
	return x->nstage++;
}

/* Way `in` of n reads a value that is made nowhere, or makes one operand another way than those
 * before it do. */
static bool is_lost(const struct group *x, const struct node *n, struct tensor *const *in)
{
	for (int k = 0; k < n->nin; k++) {
		const struct node *maker = fuse_maker(x->f, n, in[k]);
		if (!maker && in[k] && in[k]->maker && x->f->mode[in[k]->maker->id] != INLINE_NOT)
			return true;
		for (int w = 0; maker && w < x->nway; w++) {
			const struct node *m = fuse_maker(x->f, n, x->way[w][k]);
			if (m && m != maker)
				return true;
		}
	}
	return false;
}

/* Without the ways that are lost. */
static enum status trim(const struct group *x, struct node *n)
{
	struct graph *g = x->f->g;
	struct tensor ***alt = ARENA_ARRAY(g->arena, struct tensor **, n->nalt);
	int kept = 0;
	if (!alt)
		return diag_nomem(g->diag);
	for (int a = 0; a < n->nalt; a++)
		if (!is_lost(x, n, n->alt[a]))
			alt[kept++] = n->alt[a];
	n->alt = alt;
	n->nalt = kept;
	return ST_OK;
}

static struct fused *save(struct graph *g, const struct group *x)
{
	struct fused *p = ARENA_NEW(g->arena, struct fused);
	struct fused_stage *stage = arena_memdup(
		g->arena, x->stage, (size_t)x->nstage, sizeof *stage);
	if (!p || !stage)
		return NULL;
	*p = (struct fused){x->nstage, stage};
	return p;
}

static enum status make(const struct group *x, struct node *n, struct node **out)
{
	struct graph *g = x->f->g;
	struct node *m = graph_node_blank(
		g, op_by_role(g->table, ROLE_FUSED), n->name, x->nslot, x->slot[0], 1);
	if (!m || !(m->param = save(g, x)))
		return diag_nomem(g->diag);
	m->id = n->id; /* by which its readers find how it is made */
	m->phase = n->phase;
	m->last = n->last;
	m->when = n->when;
	m->out[0] = n->out[0];
	m->out[0]->maker = m;
	for (int w = 1; w < x->nway; w++)
		TRY(graph_alternative(g, m, x->slot[w]));
	*out = m;
	return ST_OK;
}

enum status fuse_group(const struct fuse *f, struct node *n, struct node **out)
{
	struct group x = {.f = f, .root = n, .nway = 1, .way = {n->in}};
	bool fused = false;
	*out = n;
	if (n->nalt)
		TRY(trim(&x, n));
	for (int a = 0; a < n->nalt && a + 1 < FUSED_WAYS; a++)
		if (!is_lost(&x, n, n->alt[a]))
			x.way[x.nway++] = n->alt[a];
	for (int w = 0; w < x.nway; w++)
		for (int k = 0; k < n->nin; k++)
			fused |= fuse_maker(f, n, x.way[w][k]) != NULL;
	if (!fused)
		return ST_OK;
	if (visit(&x, n, (1u << x.nway) - 1) < 0) { /* counted before: there is room */
		const struct where w = {.file = f->g->file, .node = n->name, .op = n->op->name};
		return diag_fail(f->g->diag, ST_INTERNAL, &w, "this is a bug in stint",
			"no room for what is fused into it");
	}
	return make(&x, n, out);
}
