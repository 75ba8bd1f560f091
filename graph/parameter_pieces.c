/* Parameters of which each process has a piece: --shard parameters, ZeRO's third stage (Rajbhandari
 * et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020, section 5).
 *
 * What lasts over steps of a large parameter is this process's piece, a vector as its optimizer
 * states are; and so it is of a weight that is not trained, in whatever type it is stored. Who
 * reads the parameter reads what a node has brought together of the pieces (ROLE_FETCH_PIECES): a
 * value like any other, which dies after its last reader and may be made again, so that the planner
 * says what stays whole between the passes and what is fetched a second time.
 *
 * An update took a piece already (graph/attach.c). Its copy of that is the parameter itself now,
 * which it overwrites, and nothing is handed out at the step's end. It stands where that was:
 * behind all that reads the parameter, so that each of these may fetch. */
#include "graph/graph_parts.h"
#include "graph/pass.h"

struct pieces {
	struct fetching f; /* its home: this process's piece */
	bool *held;        /* by old node: an update, until what it was followed by comes */
	int64_t least;     /* bytes of what goes */
};

static bool goes(const struct fetching *f, const struct tensor *t)
{
	const struct pieces *p = (const struct pieces *)(const void *)f;
	const bool is_weight = t->role == TR_PARAMETER ? t->dtype == f->copy.to->real
						       : t->role == TR_CONSTANT && t->weight;
	return is_weight && tensor_bytes(t) >= p->least;
}

static struct tensor *fetch(struct fetching *f, const struct tensor *t)
{
	struct graph *g = f->copy.to;
	struct node *n;
	return graph_node(g, op_by_role(g->table, ROLE_FETCH_PIECES)->name, t->name, 1,
		       &f->home[t->id], 1, 0, NULL, NULL, &n) == ST_OK
		       ? n->out[0]
		       : NULL;
}

/* What lasts of them is a vector of the largest piece's size. */
static void cut(struct pieces *p, const struct graph *g)
{
	for (int i = 0; i < g->ntensor; i++) {
		struct tensor *x = p->f.home[i];
		const struct tensor *t = g->tensor[i];
		if (!x)
			continue;
		x->piece_of = t;
		x->rank = 1;
		x->dim[0] = x->numel = t->numel / g->ranks + (t->numel % g->ranks != 0);
	}
}

/* The piece that n takes of a parameter, or hands out over one, is what lasts. */
static const struct tensor *whole_of(const struct pieces *p, const struct node *n)
{
	const bool pieces = n->op->role == ROLE_OWN_PIECE || n->op->role == ROLE_GATHER_PIECES;
	return pieces && p->f.home[n->in[0]->id] ? n->in[0] : NULL;
}

static void hold_updates(struct pieces *p, const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->op->role == ROLE_GATHER_PIECES && whole_of(p, g->node[i]))
			p->held[g->node[i]->in[1]->maker->id] = true;
}

static enum status copy(struct pieces *p, const struct node *n)
{
	const struct tensor *whole = whole_of(p, n);
	if (fetching_is_view(&p->f, n) || p->held[n->id])
		return ST_OK;
	if (!whole)
		return fetching_reader(&p->f, n);
	if (n->op->role == ROLE_OWN_PIECE)
		p->f.copy.map[n->out[0]->id] = p->f.home[whole->id];
	return n->op->role == ROLE_OWN_PIECE ? ST_OK : fetching_reader(&p->f, n->in[1]->maker);
}

enum status graph_share_parameters(const struct graph *in, int64_t least, struct graph **out)
{
	struct pieces p = {.f.fetch = fetch, .least = least};
	TRY(fetching_begin(&p.f, in));
	p.held = ARENA_ARRAY(in->arena, bool, in->nnode);
	if (!p.held)
		return diag_nomem(in->diag);
	TRY(fetching_find(
		&p.f, goes, "pieces", "--shard state: each process has all of the parameters"));
	cut(&p, in);
	hold_updates(&p, in);
	for (int i = 0; i < in->nnode; i++)
		TRY(copy(&p, in->node[i]));
	TRY(graph_copy_end(&p.f.copy, out));
	return graph_verify(*out);
}
