/* Which pointwise nodes are fused.
 *
 * A node is inlined when its value need not be stored: its readers make it in their own loops,
 * element by element, with the same operations and so the same bits. This must never cost memory
 * under any plan, so a value is inlined only
 *
 *	into all its readers (INLINE_ALL), pointwise ones of the same shape, of either phase, when
 *	what they read instead is no more than the value: at most its bytes in inputs that are not
 *	there anyway. Then those bytes stand in memory where the value would. A value of several
 *	readers must be cheap to make;
 *
 *	or into its only reader (INLINE_ONE), of the same phase, when this adds nothing large of its
 *	own: then the reader's value, no larger, takes its place from the start, and the fused node
 *	runs where the first of the two ran.
 *
 * Adding two large values before a third is multiplied in stays a node: the sum is smaller than
 * both. Inputs of a sixteenth of the value and less (a number per channel) are not counted.
 * Residents are always there; but one that an update overwrites cannot be read behind it.
 *
 * A node that can be run in several ways may inline in each; it is not inlined itself. A way that
 * reads what is no more is dropped where the node's own inputs name the value that took its place.
 *
 * Before all this, updates take in gradients that are outer products (fuse_update.c). */
#include <string.h>

#include "graph/fuse.h"
#include "graph/fused.h"
#include "graph/graph_parts.h"
#include "graph/pass.h"

enum { READERS_MAX = 4, SMALL = 16 };
/* Operations an element that several readers may repeat. */
static const double CHEAP = 8;

bool fuse_can(const struct node *n)
{
	const struct op_def *op = n->op;
	return (op->traits & OP_POINTWISE) && !(op->traits & (OP_ONCE | OP_UPDATE | OP_CHECKED)) &&
	       !op->emit_c && !op->library && op->npair == 0 && op->role != ROLE_FUSED &&
	       n->nout == 1 && n->nin <= POINTWISE_INPUTS && n->nalt < FUSED_WAYS && node_expr(n);
}

static bool can_join(const struct node *n, const struct tensor *t)
{
	return fuse_can(n) && n->when == t->maker->when && tensor_same_shape(n->out[0], t);
}

/* A way may read what is inlined into the node's own inputs, or into all readers. */
struct node *fuse_maker(const struct fuse *f, const struct node *reader, const struct tensor *t)
{
	if (!t || !t->maker || f->mode[t->maker->id] == INLINE_NOT || !can_join(reader, t))
		return NULL;
	if (f->mode[t->maker->id] == INLINE_ALL)
		return t->maker;
	for (int k = 0; k < reader->nin; k++)
		if (reader->in[k] == t)
			return t->maker;
	return NULL;
}

/* --- What is known beforehand --- */

static void each_read(struct fuse *f, int *last, bool count)
{
	const struct graph *g = f->g;
	int list = 0;
	for (int i = 0; i < g->nnode; i++)
		for (int w = 0; w <= g->node[i]->nalt; w++) {
			struct tensor **in = w ? g->node[i]->alt[w - 1] : g->node[i]->in;
			list++;
			for (int k = 0; k < g->node[i]->nin; k++) {
				if (!in[k] || last[in[k]->id] == list)
					continue; /* it reads it twice */
				last[in[k]->id] = list;
				if (count)
					f->first[in[k]->id + 1]++;
				else
					f->reader[f->first[in[k]->id]++] = (struct fuse_reader){
						i, w};
			}
		}
}

static enum status find_readers(struct fuse *f)
{
	struct arena *a = f->g->arena;
	const int n = f->g->ntensor;
	int *last = ARENA_ARRAY(a, int, n);
	f->first = ARENA_ARRAY(a, int, n + 2);
	if (!last || !f->first)
		return diag_nomem(f->g->diag);
	each_read(f, last, true);
	for (int i = 0; i < n; i++)
		f->first[i + 1] += f->first[i];
	f->reader = ARENA_ARRAY(a, struct fuse_reader, f->first[n]);
	if (!f->reader)
		return diag_nomem(f->g->diag);
	memset(last, 0, (size_t)n * sizeof *last);
	each_read(f, last, false);
	memmove(f->first + 1, f->first, (size_t)n * sizeof *f->first);
	f->first[0] = 0;
	return ST_OK;
}

static void find_updates(struct fuse *f)
{
	const struct graph *g = f->g;
	for (int t = 0; t < g->ntensor; t++)
		f->updated[t] = g->nnode;
	for (int i = g->nnode - 1; i >= 0; i--) {
		const struct node *n = g->node[i];
		for (int k = 0; (n->op->traits & (OP_ONCE | OP_UPDATE)) && k < n->nin; k++) {
			const struct tensor *t = n->in[k] ? tensor_storage(n->in[k]) : NULL;
			if (t && (t->role == TR_PARAMETER || t->role == TR_BUFFER ||
					 t->role == TR_STATE || t->role == TR_SUMS))
				f->updated[t->id] = i;
		}
	}
}

static enum status begin(struct fuse *f)
{
	const struct graph *g = f->g;
	struct arena *a = g->arena;
	f->kept = ARENA_ARRAY(a, bool, g->ntensor);
	f->updated = ARENA_ARRAY(a, int, g->ntensor);
	f->mode = ARENA_ARRAY(a, enum inlined, g->nnode);
	f->ninput = ARENA_ARRAY(a, int, g->nnode);
	f->nstage = ARENA_ARRAY(a, int, g->nnode);
	f->place = ARENA_ARRAY(a, int, g->nnode);
	f->work = ARENA_ARRAY(a, double, g->nnode);
	if (!f->kept || !f->updated || !f->mode || !f->ninput || !f->nstage || !f->place ||
		!f->work)
		return diag_nomem(g->diag);
	TRY(find_readers(f));
	find_updates(f);
	for (int i = 0; i < g->noutput; i++)
		if (g->output[i])
			f->kept[g->output[i]->id] = true;
	for (int i = 0; graph_told(g, i); i++)
		f->kept[graph_told(g, i)->id] = true;
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		f->ninput[i] = n->nin;
		f->nstage[i] = 1;
		f->place[i] = i;
		if (fuse_can(n) && n->out[0]->numel > 0)
			f->work[i] = node_cost(n).flops / (double)n->out[0]->numel;
	}
	return ST_OK;
}

/* --- What a node with all that is inlined into it reads --- */

struct reads {
	int n;
	const struct tensor *storage[FUSED_INPUTS];
};

static void add_reads(const struct fuse *f, const struct node *n, struct reads *r)
{
	for (int k = 0; k < n->nin; k++) {
		struct tensor *t = n->in[k];
		const struct node *maker = fuse_maker(f, n, t);
		if (maker) {
			add_reads(f, maker, r);
			continue;
		}
		const struct tensor *s = t ? tensor_storage(t) : NULL;
		int i = 0;
		while (i < r->n && r->storage[i] != s)
			i++;
		if (s && i == r->n && r->n < FUSED_INPUTS) /* ninput says that there is room */
			r->storage[r->n++] = s;
	}
}

static bool reads_itself(const struct fuse *f, const struct node *n, const struct tensor *storage)
{
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && !fuse_maker(f, n, n->in[k]) && tensor_storage(n->in[k]) == storage)
			return true;
	return false;
}

/* It is somewhere only as long as somebody reads it: made by a node, or for a body's turn. */
static bool is_value(const struct tensor *storage)
{
	return storage->role == TR_VALUE || (storage->outside && !storage->around);
}

static bool is_large(const struct tensor *storage, const struct tensor *t)
{
	return is_value(storage) && tensor_bytes(storage) > tensor_bytes(t) / SMALL;
}

/* Bytes that a reader of `t` needs instead, beyond what it reads anyway; a reader of NULL: all. */
static int64_t bytes_instead(const struct fuse *f, const struct reads *r, const struct tensor *t,
	const struct node *reader)
{
	int64_t sum = 0;
	for (int i = 0; i < r->n; i++)
		if (is_large(r->storage[i], t) &&
			!(reader && reads_itself(f, reader, r->storage[i])))
			sum += tensor_bytes(r->storage[i]);
	return sum;
}

/* --- The two rules --- */

/* What n's inputs add to c's: they replace one, but for a c with several ways. */
static int inputs_more(const struct fuse *f, const struct node *n, const struct node *c)
{
	return f->ninput[n->id] - (c->nalt == 0);
}

/* Room in node c for one more operand's making, and no update in the way. */
static bool has_room(
	const struct fuse *f, const struct node *n, const struct reads *r, const struct node *c)
{
	for (int i = 0; i < r->n; i++)
		if (f->updated[r->storage[i]->id] <= c->id)
			return false;
	return f->nstage[c->id] + f->nstage[n->id] <= FUSED_STAGES &&
	       f->ninput[c->id] + inputs_more(f, n, c) <= FUSED_INPUTS;
}

/* The node that alone reads t by its own inputs; NULL: none, or several. */
static const struct node *only_reader(const struct fuse *f, const struct tensor *t)
{
	const struct node *one = NULL;
	for (int i = f->first[t->id]; i < f->first[t->id + 1]; i++) {
		if (f->reader[i].way > 0)
			continue;
		if (one)
			return NULL;
		one = f->g->node[f->reader[i].node];
	}
	return one;
}

/* Way `w` of node m reads t. Can it go, since m's own inputs have `instead` there? */
static bool can_drop(
	const struct node *m, int w, const struct tensor *t, const struct tensor *instead)
{
	for (int k = 0; k < m->nin; k++)
		if (m->alt[w - 1][k] == t && m->in[k] != instead)
			return false;
	return true;
}

static bool into_all(const struct fuse *f, const struct node *n, const struct reads *r)
{
	const struct tensor *t = n->out[0];
	const struct node *one = only_reader(f, t);
	int own = 0;
	for (int i = f->first[t->id]; i < f->first[t->id + 1]; i++) {
		const struct node *m = f->g->node[f->reader[i].node];
		const int way = f->reader[i].way;
		own += way == 0;
		if (way > 0 && one && !can_join(m, t) && can_drop(m, way, t, one->out[0]))
			continue;
		if (!can_join(m, t) || !has_room(f, n, r, m) ||
			bytes_instead(f, r, t, m) > tensor_bytes(t))
			return false;
	}
	return own == 1 || (own > 1 && own <= READERS_MAX && f->work[n->id] <= CHEAP);
}

/* The reader's other inputs are there when n runs, and none is large. */
static bool adds_nothing(
	const struct fuse *f, const struct node *n, const struct reads *r, const struct node *c)
{
	const struct tensor *t = n->out[0];
	for (int k = 0; k < c->nin; k++) {
		const struct tensor *s = c->in[k] ? tensor_storage(c->in[k]) : t;
		int i = 0;
		if (s->role == TR_VALUE && c->in[k] && c->in[k] != s && s != t &&
			f->place[c->in[k]->maker->id] >= f->place[n->id])
			return false; /* a view that is made later */
		while (i < r->n && r->storage[i] != s)
			i++;
		if (c->in[k] == t || s == t || i < r->n || !is_value(s))
			continue;
		if (is_large(s, t) || fuse_maker(f, c, c->in[k]) ||
			(s->maker && f->place[s->maker->id] >= f->place[n->id]) ||
			(c->in[k]->maker && f->place[c->in[k]->maker->id] >= f->place[n->id]))
			return false;
	}
	return true;
}

static bool into_one(const struct fuse *f, const struct node *n, const struct reads *r)
{
	const struct tensor *t = n->out[0];
	const struct node *c = only_reader(f, t);
	if (!c || c->phase != n->phase || c->nalt || !can_join(c, t) || !has_room(f, n, r, c) ||
		tensor_bytes(c->out[0]) > tensor_bytes(t) || !adds_nothing(f, n, r, c))
		return false;
	for (int i = f->first[t->id]; i < f->first[t->id + 1]; i++)
		if (f->reader[i].way > 0 &&
			!can_drop(f->g->node[f->reader[i].node], f->reader[i].way, t, c->out[0]))
			return false;
	return true;
}

static void decide(struct fuse *f, struct node *n)
{
	const struct tensor *t = n->out[0];
	struct reads r = {0};
	if (!fuse_can(n) || n->nalt || f->kept[t->id] || t->numel == 0)
		return;
	add_reads(f, n, &r);
	if (into_all(f, n, &r))
		f->mode[n->id] = INLINE_ALL;
	else if (into_one(f, n, &r))
		f->mode[n->id] = INLINE_ONE;
	else
		return;
	for (int i = f->first[t->id]; i < f->first[t->id + 1]; i++) {
		const struct node *m = f->g->node[f->reader[i].node];
		if (!fuse_maker(f, m, t))
			continue;
		f->nstage[m->id] += f->nstage[n->id];
		f->ninput[m->id] += inputs_more(f, n, m);
		f->work[m->id] += f->work[n->id];
	}
	if (f->mode[n->id] == INLINE_ONE)
		f->place[only_reader(f, t)->id] = f->place[n->id];
}

static bool views_resident(const struct node *n)
{
	return (n->op->traits & OP_VIEW) && tensor_storage(n->out[0])->role != TR_VALUE;
}

/* The nodes that are left, where they run; views of residents first, as they are there for any. */
static enum status rebuild(struct fuse *f)
{
	struct graph *g = f->g;
	struct node **at = ARENA_ARRAY(g->arena, struct node *, g->nnode);
	if (!at)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->nnode; i++)
		if (f->mode[i] == INLINE_NOT)
			TRY(fuse_group(f, g->node[i], &at[f->place[i]]));
	int kept = 0;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < g->nnode; i++)
			if (at[i] && views_resident(at[i]) == (pass == 0)) {
				if (pass == 0)
					at[i]->when = NULL; /* which may be made later */
				g->node[kept++] = at[i];
			}
	graph_relist(g, kept, g->node);
	return graph_verify(g);
}

static enum status decide_all(struct fuse *f)
{
	TRY(begin(f));
	for (int i = 0; i < f->g->nnode; i++)
		decide(f, f->g->node[i]);
	return ST_OK;
}

enum status graph_fuse(struct graph *g)
{
	struct fuse f = {.g = g};
	TRY(fuse_updates(g));
	if (!op_by_role(g->table, ROLE_FUSED))
		return ST_OK;
	TRY(decide_all(&f));
	return rebuild(&f);
}

enum status graph_never_stored(struct graph *g, bool *never)
{
	struct fuse f = {.g = g};
	if (!op_by_role(g->table, ROLE_FUSED))
		return ST_OK;
	TRY(decide_all(&f));
	for (int i = 0; i < g->nnode; i++)
		if (f.mode[i] == INLINE_ALL)
			never[g->node[i]->out[0]->id] = true;
	return ST_OK;
}
