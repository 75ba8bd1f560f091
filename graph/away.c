/* What lasts over steps and is not in memory: --offload disk.
 *
 * A parameter, a weight that is not trained or an optimizer's state may lie in a file. In the graph
 * it stays what it was, a tensor that lasts over steps, but it takes no memory (tensor.away), and
 * two operators alone read it: one makes of it a value like any other, which dies after its last
 * reader, and may be made again (ROLE_FETCH); one takes its next value there (ROLE_STORE). That is
 * all: the planner decides which values wait in memory and which are fetched again, as it does for
 * whatever can be computed again, and knows no file.
 *
 * Order. The store is an update of the tensor, so all fetches stand before it, in this list
 * (graph_order's rule) and in every plan (the rule for what overwrites residents, which the
 * independent checker knows). An update reads values of its own, fetched when its gradient is
 * there: nothing else reads these, so that it can always run in their place.
 *
 * Pieces. A large update of elements goes piece by piece, so that it holds its gradient and a piece
 * of everything else. Of what it updates each piece has a tensor of no elements that stands for it
 * in the order (TR_ELSEWHERE): the piece's store updates that one, and all that fetches the piece,
 * or all of the tensor, reads it. */
#include "graph/graph_parts.h"
#include "graph/pass.h"

enum { PAIRS_MAX = 16, PIECES = 16, PIECE_LEAST = 16 /* tensors that just go */, INPUTS = 32 };

struct away {
	struct fetching f;      /* its home: the tensor in the file */
	struct tensor *behind;  /* what is to be there before a fetch; NULL: nothing */
	struct tensor ***piece; /* by old id: what stands for its pieces; NULL: it has none */
	int *pieces;            /* by old id: how many */
};

/* What a compiler reads (shapes, tables of numbers) is no weight. */
static bool goes(const struct fetching *f, const struct tensor *t)
{
	const struct graph *g = f->copy.from;
	return (t->role == TR_PARAMETER || t->role == TR_STATE ||
		       (t->role == TR_CONSTANT && t->weight)) &&
	       t != g->loss_scale && tensor_bytes(t) >= g->target->away;
}

/* --- Pieces --- */

/* Elements [from, from + count) of a tensor; count 0: all of it. */
struct span {
	int64_t from, count;
};

/* Piece k of so many: whole cache lines, but for the last. */
static struct span piece_span(const struct tensor *t, int pieces, int k)
{
	enum { LINE = 64 };
	const int64_t size = ((t->numel + pieces - 1) / pieces + LINE - 1) / LINE * LINE;
	const int64_t from = size * k, left = t->numel - from;
	return (struct span){from, left < size ? left : size};
}

/* How many pieces tensor t makes; below 2: it goes whole. */
static int pieces_of(const struct graph *g, const struct tensor *t)
{
	const int64_t n = tensor_bytes(t) / (PIECE_LEAST * g->target->away);
	const int pieces = n > PIECES ? PIECES : (int)n;
	return pieces > 1 && piece_span(t, pieces, pieces - 1).count > 0 ? pieces : 1;
}

static bool is_read(const struct graph *g, const struct node *of)
{
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k] && g->node[i]->in[k]->maker == of)
				return true;
	return false;
}

/* An update, element by element, of tensors that are in the file and nothing else; and what it
 * makes nobody reads. */
static bool in_pieces(const struct away *a, const struct graph *g, const struct node *n)
{
	struct op_pair pair[PAIRS_MAX];
	if (!(n->op->traits & OP_BY_ELEMENT) || n->phase != NODE_UPDATE || n->nin > INPUTS ||
		n->nalt || !n->in[1] || !a->f.home[n->in[0]->id] || pieces_of(g, n->in[0]) < 2)
		return false;
	const int npair = node_pairs(n, pair, PAIRS_MAX);
	for (int k = 0; k < npair; k++) {
		const struct tensor *t = n->in[pair[k].in];
		if (!a->f.home[t->id] || t->numel != n->in[0]->numel || t->dtype != g->real)
			return false;
	}
	return n->in[1]->numel == n->in[0]->numel && !is_read(g, n);
}

static enum status make_pieces(struct away *a, const struct tensor *t, int pieces)
{
	struct graph *g = a->f.copy.to;
	const int64_t none = 0;
	struct tensor **piece = ARENA_ARRAY(g->arena, struct tensor *, pieces);
	if (!piece)
		return diag_nomem(g->diag);
	for (int k = 0; k < pieces; k++) {
		const char *name = arena_printf(g->arena, "%s, piece %d", t->name, k + 1);
		if (!name)
			return diag_nomem(g->diag);
		piece[k] = graph_tensor(g, name, t->dtype, 1, &none);
		if (!piece[k])
			return g->diag->worst;
		piece[k]->role = TR_ELSEWHERE;
	}
	a->piece[t->id] = piece;
	a->pieces[t->id] = pieces;
	return ST_OK;
}

static enum status find_pieces(struct away *a, const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		struct op_pair pair[PAIRS_MAX];
		if (!in_pieces(a, g, n))
			continue;
		const int npair = node_pairs(n, pair, PAIRS_MAX);
		for (int k = 0; k < npair; k++)
			TRY(make_pieces(a, n->in[pair[k].in], pieces_of(g, n->in[0])));
	}
	return ST_OK;
}

/* --- Nodes --- */

static struct tensor *append(
	struct away *a, enum op_role role, int nin, struct tensor *const *in, struct span span)
{
	struct graph *g = a->f.copy.to;
	const struct attr attr[] = {ATTR_I("from", span.from), ATTR_I("count", span.count)};
	struct node *n;
	if (graph_node(g, op_by_role(g->table, role)->name, in[0]->name, nin, in, 0,
		    span.count ? 2 : 0, attr, NULL, &n) != ST_OK)
		return NULL;
	return n->out[0];
}

static const struct span whole = {0, 0};

static struct tensor *fetch(struct fetching *f, const struct tensor *t)
{
	struct away *a = (struct away *)(void *)f;
	const int pieces = a->pieces[t->id];
	struct tensor *in[2 + PIECES] = {f->home[t->id], a->behind};
	for (int k = 0; k < pieces; k++)
		in[2 + k] = a->piece[t->id][k];
	return append(a, ROLE_FETCH, pieces ? 2 + pieces : a->behind ? 2 : 1, in, whole);
}

/* t, or what it is a view of, is in the file. */
static bool stored(const struct away *a, const struct tensor *t)
{
	return t && a->f.home[tensor_storage((struct tensor *)t)->id];
}

/* The input that is made last: the gradient, or what a gradient is made of. */
static struct tensor *last_made(const struct away *a, const struct node *n)
{
	const struct tensor *last = NULL;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && n->in[k]->maker && (!last || last->maker->id < n->in[k]->maker->id))
			last = n->in[k];
	return last ? a->f.copy.map[last->id] : NULL;
}

/* What it reads is fetched for it alone, and what it makes stored. */
static enum status copy_update(struct away *a, const struct node *n)
{
	struct graph *g = a->f.copy.to;
	struct tensor **before;
	struct op_pair pair[PAIRS_MAX];
	struct node *m;
	const int npair = node_pairs(n, pair, PAIRS_MAX);
	TRY(graph_copy_list(&a->f.copy, n->nin, n->in, &before));
	g->phase = NODE_UPDATE;
	g->last = n->last;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && a->f.home[n->in[k]->id])
			a->f.copy.map[n->in[k]->id] = NULL;
	a->behind = last_made(a, n);
	for (int k = 0; k < n->nin; k++)
		TRY(fetching_input(&a->f, n->in[k]));
	a->behind = NULL;
	TRY(fetching_node(&a->f, n, &m));
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && a->f.home[n->in[k]->id])
			a->f.copy.map[n->in[k]->id] = before[k];
	for (int k = 0; k < npair; k++) {
		const struct tensor *t = n->in[pair[k].in];
		if (!stored(a, t))
			continue;
		if (!a->f.home[t->id])
			return node_fail(g, n, "this is a bug in stint", "updates a view of '%s'",
				tensor_storage((struct tensor *)t)->name);
		if (!append(a, ROLE_STORE, 2,
			    (struct tensor *[]){a->f.home[t->id], m->out[pair[k].out]}, whole))
			return g->failed;
	}
	g->last = false;
	return ST_OK;
}

/* Piece k of what update n reads at i: fetched, of its gradient copied, or what it is. */
static struct tensor *piece_read(
	struct away *a, const struct node *n, int i, int k, struct tensor *behind)
{
	const struct tensor *t = n->in[i], *parameter = n->in[0];
	const struct span span = piece_span(parameter, a->pieces[parameter->id], k);
	if (i == 1)
		return append(a, ROLE_PIECE, 2,
			(struct tensor *[]){a->f.copy.map[t->id], a->f.home[parameter->id]}, span);
	if (!t || !a->f.home[t->id])
		return t ? a->f.copy.map[t->id] : NULL;
	return append(a, ROLE_FETCH, 3,
		(struct tensor *[]){a->f.home[t->id], behind, a->piece[t->id][k]}, span);
}

static enum status update_piece(struct away *a, const struct node *n, int k)
{
	struct graph *g = a->f.copy.to;
	struct tensor *in[INPUTS], *behind = last_made(a, n);
	struct op_pair pair[PAIRS_MAX];
	const int npair = node_pairs(n, pair, PAIRS_MAX);
	const struct span span = piece_span(n->in[0], a->pieces[n->in[0]->id], k);
	for (int i = 0; i < n->nin; i++) {
		in[i] = piece_read(a, n, i, k, behind);
		if (n->in[i] && !in[i])
			return g->failed != ST_OK ? g->failed : g->diag->worst;
	}
	const struct node *m = graph_op_like(g, n, in, n->nattr, n->attr, n->param);
	if (!m)
		return g->failed;
	for (int i = 0; i < npair; i++) {
		const int id = n->in[pair[i].in]->id;
		if (!append(a, ROLE_STORE, 3,
			    (struct tensor *[]){
				    a->piece[id][k], m->out[pair[i].out], a->f.home[id]},
			    span))
			return g->failed;
	}
	return ST_OK;
}

static enum status copy_in_pieces(struct away *a, const struct node *n)
{
	struct graph *g = a->f.copy.to;
	g->phase = NODE_UPDATE;
	g->last = n->last;
	g->scope = n->name;
	for (int k = 0; k < a->pieces[n->in[0]->id]; k++)
		TRY(update_piece(a, n, k));
	g->last = false;
	return ST_OK;
}

/* It overwrites what is in the file. */
static bool updates(const struct away *a, const struct node *n)
{
	struct op_pair pair[PAIRS_MAX];
	const int npair = n->op->traits & OP_UPDATE ? node_pairs(n, pair, PAIRS_MAX) : 0;
	for (int k = 0; k < npair; k++)
		if (stored(a, n->in[pair[k].in]))
			return true;
	return false;
}

enum status graph_put_away(const struct graph *in, struct graph **out)
{
	struct away a = {.f.fetch = fetch};
	TRY(fetching_begin(&a.f, in));
	a.piece = ARENA_ARRAY(in->arena, struct tensor **, in->ntensor);
	a.pieces = ARENA_ARRAY(in->arena, int, in->ntensor);
	if (!a.piece || !a.pieces)
		return diag_nomem(in->diag);
	TRY(fetching_find(&a.f, goes, "a file",
		"--offload disk:FOLDER:RATE:SIZE takes what has SIZE or more"));
	for (int i = 0; i < in->ntensor; i++)
		if (a.f.home[i])
			a.f.home[i]->away = true;
	TRY(find_pieces(&a, in));
	for (int i = 0; i < in->nnode; i++) {
		const struct node *n = in->node[i];
		if (fetching_is_view(&a.f, n))
			continue;
		TRY(!updates(&a, n)            ? fetching_reader(&a.f, n)
			: in_pieces(&a, in, n) ? copy_in_pieces(&a, n)
					       : copy_update(&a, n));
	}
	TRY(graph_copy_end(&a.f.copy, out));
	return graph_verify(*out);
}
