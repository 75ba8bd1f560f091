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
#include <inttypes.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

struct pieces {
	struct graph_copy copy; /* its map: to the value that was fetched, once one was */
	struct tensor **home;   /* by old id: this process's piece; NULL: it is whole */
	bool *held;             /* by old node: an update, until what it was followed by comes */
	int64_t least;          /* bytes of what goes */
};

static bool goes(const struct pieces *p, const struct tensor *t)
{
	const bool is_weight = t->role == TR_PARAMETER ? t->dtype == p->copy.to->real
						       : t->role == TR_CONSTANT && t->weight;
	return is_weight && tensor_bytes(t) >= p->least;
}

static enum status find(struct pieces *p, const struct graph *g)
{
	for (int i = 0; i < g->noutput; i++) {
		const struct tensor *t = g->output[i] ? tensor_storage(g->output[i]) : NULL;
		if (t && !t->maker && goes(p, t))
			return diag_fail(g->diag, ST_USAGE,
				&(struct where){.file = g->file, .node = t->name},
				"--shard state: each process has all of the parameters",
				"is an output of the model as it is, and cannot be in pieces");
	}
	for (int i = 0; i < g->ntensor; i++) {
		const struct tensor *t = g->tensor[i];
		if (t->maker || !p->copy.map[i] || !goes(p, t))
			continue;
		struct tensor *x = p->copy.map[i];
		x->piece_of = t;
		x->rank = 1;
		x->dim[0] = x->numel = t->numel / g->ranks + (t->numel % g->ranks != 0);
		p->home[i] = x;
		p->copy.map[i] = NULL;
	}
	return ST_OK;
}

/* Makes the map know old tensor t, if it is in pieces and was not fetched, or is a view of one. */
static enum status fetch(struct pieces *p, const struct tensor *t)
{
	struct graph *g = p->copy.to;
	struct node *n;
	if (!t || p->copy.map[t->id])
		return ST_OK;
	if (!p->home[t->id]) {
		TRY(fetch(p, t->maker->in[0]));
		return graph_copy_node(&p->copy, t->maker, &n);
	}
	TRY(graph_node(g, op_by_role(g->table, ROLE_FETCH_PIECES)->name, t->name, 1,
		&p->home[t->id], 1, 0, NULL, NULL, &n));
	p->copy.map[t->id] = n->out[0];
	return ST_OK;
}

/* Another shape of what is in pieces: made when somebody reads it. */
static bool is_view(const struct pieces *p, const struct node *n)
{
	return (n->op->traits & OP_VIEW) && p->home[tensor_storage(n->in[0])->id];
}

/* A fetch runs in every micro-batch: some reader may. */
static enum status copy_reader(struct pieces *p, const struct node *n)
{
	struct tensor **in;
	struct node *m;
	p->copy.to->phase = n->phase == NODE_UPDATE ? NODE_BACKWARD : n->phase;
	for (int k = 0; k < n->nin; k++) {
		TRY(fetch(p, n->in[k]));
		for (int w = 0; w < n->nalt; w++)
			TRY(fetch(p, n->alt[w][k]));
	}
	TRY(graph_copy_node(&p->copy, n, &m));
	for (int w = 0; w < n->nalt; w++) {
		TRY(graph_copy_list(&p->copy, n->nin, n->alt[w], &in));
		TRY(graph_alternative(p->copy.to, m, in));
	}
	return ST_OK;
}

/* The piece that n takes of a parameter, or hands out over one, is what lasts. */
static const struct tensor *whole_of(const struct pieces *p, const struct node *n)
{
	const bool pieces = n->op->role == ROLE_OWN_PIECE || n->op->role == ROLE_GATHER_PIECES;
	return pieces && p->home[n->in[0]->id] ? n->in[0] : NULL;
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
	if (is_view(p, n) || p->held[n->id])
		return ST_OK;
	if (!whole)
		return copy_reader(p, n);
	if (n->op->role == ROLE_OWN_PIECE)
		p->copy.map[n->out[0]->id] = p->home[whole->id];
	return n->op->role == ROLE_OWN_PIECE ? ST_OK : copy_reader(p, n->in[1]->maker);
}

enum status graph_share_parameters(const struct graph *in, int64_t least, struct graph **out)
{
	struct pieces p = {.least = least};
	TRY(graph_copy_begin(&p.copy, in));
	p.home = ARENA_ARRAY(in->arena, struct tensor *, in->ntensor);
	p.held = ARENA_ARRAY(in->arena, bool, in->nnode);
	if (!p.home || !p.held)
		return diag_nomem(in->diag);
	TRY(find(&p, in));
	hold_updates(&p, in);
	for (int i = 0; i < in->nnode; i++)
		TRY(copy(&p, in->node[i]));
	TRY(graph_copy_end(&p.copy, out));
	return graph_verify(*out);
}
