/* The backward pass of a loop that is one node: bodies that are one turn's vector-Jacobian product,
 * run from the last turn to the first. A body holds the turn's forward nodes once more, so that of
 * each turn its carries alone are kept.
 *
 * The bits are those of the turns one behind the other. There, a gradient's sum goes from turn to
 * turn: first what reads the tensor behind the loop, then the last turn's part, and so on; a
 * carry's begins with what was collected of it; what no gradient reaches has none. So sums are
 * handed from run to run, and turns that find other gradients than those before have a body of
 * their own: the last one as a rule, and the first. */
#include <string.h>

#include "graph/loop_backward.h"
#include "graph/pass.h"

/* What has a gradient between two runs: carries, and sums. */
struct reached {
	bool *carry; /* [ncarry] */
	bool *sum;   /* [nin] */
};

/* --- What is asked for --- */

/* Carries that a turn makes of what is asked for are, too. */
static enum status find_wants(struct backward *b)
{
	const struct graph *f = b->body->graph;
	bool *wants = ARENA_ARRAY(b->g->arena, bool, f->ntensor);
	b->wants = arena_memdup(b->g->arena, b->want, (size_t)b->n->nin, sizeof *b->want);
	if (!wants || !b->wants)
		return diag_nomem(b->g->diag);
	for (bool more = true; more;) {
		more = false;
		for (int i = 0; i < f->ninput; i++)
			wants[f->input[i]->id] = b->wants[i];
		graph_mark_wanted(f, wants);
		for (int i = 0; i < b->l->ncarry; i++)
			if (wants[f->output[i]->id] && !b->wants[i])
				more = b->wants[i] = true;
	}
	return ST_OK;
}

/* --- One body --- */

struct making {
	struct backward *b;
	struct graph_copy copy;
	struct graph *g; /* the body's */
	bool first, last;
	const struct reached *have;
	struct loop_body out;
	int ngiven;
	struct tensor **from, **given;
};

static struct tensor *add_input(struct making *m, const struct tensor *like, struct loop_place p)
{
	struct graph *g = m->g;
	g->phase = NODE_BACKWARD;
	m->out.in[g->ninput] = p;
	struct tensor *x = loop_add_input(g, like);
	g->phase = NODE_FORWARD;
	return x;
}

/* The gradient of tensor `of` of the loop's body, as far as it is known, is at p. */
static enum status give(struct making *m, const struct tensor *of, struct loop_place p)
{
	struct tensor *x = m->copy.map[of->id];
	if (!dtype_is_real(of->dtype))
		return ST_OK;
	m->from[m->ngiven] = x;
	m->given[m->ngiven] = add_input(m, of, p);
	return m->given[m->ngiven++] ? ST_OK : m->g->failed;
}

/* What the gradient of collected output k is in this turn, or, for a carry before it, in the turn
 * before. */
static struct loop_place collected_at(const struct backward *b, int k, int shift)
{
	const int i = b->l->ncarry + k;
	return (struct loop_place){.kind = LOOP_SLICE,
		.k = b->at_dy + i,
		.backwards = b->body->out[i].backwards,
		.shift = shift};
}

/* The carry that output k of the body is, too; -1: none. */
static int carry_collected(const struct backward *b, int k)
{
	const struct graph *f = b->body->graph;
	for (int i = 0; i < b->l->ncarry; i++)
		if (f->output[i] == f->output[b->l->ncarry + k])
			return i;
	return -1;
}

/* Gradients of what the turn gives. A collected carry's are in the sum that comes from the turn
 * behind. */
static enum status give_outputs(struct making *m)
{
	const struct backward *b = m->b;
	const struct graph *f = b->body->graph;
	const int nc = b->l->ncarry;
	for (int i = 0; i < nc; i++)
		if (m->have->carry[i])
			TRY(give(m, f->output[i],
				m->first ? (struct loop_place){.kind = LOOP_SAME, .k = b->at_dy + i}
					 : (struct loop_place){.kind = LOOP_GRADIENT, .k = i}));
	for (int k = b->ncollect - 1; k >= 0; k--)
		if (b->dy[nc + k] && (m->first || carry_collected(b, k) < 0))
			TRY(give(m, f->output[nc + k], collected_at(b, k, 0)));
	return ST_OK;
}

/* Sums so far of what the turn reads. */
static enum status give_inputs(struct making *m)
{
	const struct backward *b = m->b;
	const struct graph *f = b->body->graph;
	const int nc = b->l->ncarry;
	for (int i = 0; i < b->n->nin; i++) {
		const bool carry = b->body->in[i].kind == LOOP_CARRY;
		struct loop_place p = {.kind = LOOP_SAME, .k = b->at_sums + i};
		if (!b->wants[i] || (carry ? !m->last || !b->sums[i] : !m->have->sum[i]))
			continue;
		if (!carry && !m->first)
			p = (struct loop_place){.kind = LOOP_SAME, .k = i, .output = true};
		TRY(give(m, f->input[i], p));
	}
	for (int k = b->ncollect - 1; k >= 0 && !m->last; k--) {
		const int i = carry_collected(b, k);
		if (i >= 0 && b->dy[nc + k] && b->wants[i])
			TRY(give(m, f->input[i], collected_at(b, k, -1)));
	}
	return ST_OK;
}

/* The last of the node's inputs that is the same tensor as input i, slices aside. */
static int same_input(const struct backward *b, int i)
{
	int last = i;
	for (int k = i + 1; k < b->n->nin && b->body->in[i].kind != LOOP_SLICE; k++)
		if (b->n->in[k] == b->n->in[i] && b->body->in[k].kind != LOOP_SLICE)
			last = k;
	return last;
}

static enum status begin_body(struct making *m)
{
	const struct backward *b = m->b;
	const struct graph *f = b->body->graph;
	const int most = f->ninput + 2 * f->noutput + b->n->nin + 1;
	TRY(graph_copy_begin(&m->copy, f));
	struct graph *g = m->g = m->copy.to;
	struct tensor **map = m->copy.map;
	g->input = ARENA_ARRAY(g->arena, struct tensor *, most);
	if (!g->input)
		return diag_nomem(g->diag);
	for (int i = 0; i < f->ninput; i++)
		g->input[g->ninput++] = map[f->input[i]->id];
	for (int i = 0; i < b->l->ncarry && m->last; i++) /* what the first turn reads */
		map[f->input[i]->id] = map[f->input[same_input(b, i)]->id];
	for (int i = 0; i < f->nnode; i++) {
		struct node *n;
		TRY(graph_copy_node(&m->copy, f->node[i], &n));
	}
	g->output = ARENA_ARRAY(g->arena, struct tensor *, f->ninput + 1);
	m->out = (struct loop_body){.graph = g,
		.in = ARENA_ARRAY(g->arena, struct loop_place, most),
		.out = ARENA_ARRAY(g->arena, struct loop_place, f->ninput + 1)};
	m->from = ARENA_ARRAY(g->arena, struct tensor *, most);
	m->given = ARENA_ARRAY(g->arena, struct tensor *, most);
	if (!g->output || !m->out.in || !m->out.out || !m->from || !m->given)
		return diag_nomem(g->diag);
	for (int i = 0; i < f->ninput; i++)
		m->out.in[i] = b->body->in[i];
	return ST_OK;
}

/* The gradient of the turn's input i goes on. */
static void take_gradient(struct making *m, int i, struct tensor *found, struct reached *next)
{
	const struct loop_place *in = &m->b->body->in[i];
	struct loop_place p = {.kind = LOOP_SAME, .k = i, .output = true};
	if (in->kind == LOOP_CARRY) {
		next->carry[i] = true;
		p = m->last ? p : (struct loop_place){.kind = LOOP_GRADIENT, .k = i};
	} else if (in->kind == LOOP_SLICE) {
		p.kind = LOOP_SLICE;
		p.backwards = in->backwards;
	} else {
		next->sum[i] = true;
	}
	/* the sum so far is there already */
	if (found->role == TR_INPUT && p.kind == LOOP_SAME && !m->first && in->kind == LOOP_SAME)
		return;
	m->out.out[m->g->noutput] = p;
	m->g->output[m->g->noutput++] = found;
}

static enum status make_body(struct making *m, struct reached *next)
{
	struct backward *b = m->b;
	const struct graph *f = b->body->graph;
	struct arena *a = b->g->arena;
	int nto = 0, *which = ARENA_ARRAY(a, int, f->ninput);
	struct tensor **to = ARENA_ARRAY(a, struct tensor *, f->ninput);
	struct tensor **found = ARENA_ARRAY(a, struct tensor *, f->ninput);
	if (!which || !to || !found)
		return diag_nomem(b->g->diag);
	TRY(begin_body(m));
	TRY(give_outputs(m));
	TRY(give_inputs(m));
	for (int i = 0; i < f->ninput; i++) {
		const bool none = b->body->in[i].kind == LOOP_CARRY && m->last && !b->want[i];
		if (!b->wants[i] || none)
			continue;
		which[nto] = i;
		to[nto++] = m->g->input[i];
	}
	const struct gradients_of of = {.nfrom = m->ngiven,
		.from = m->from,
		.given = m->given,
		.nto = nto,
		.to = to,
		.found = found};
	TRY(graph_gradients(m->g, &of));
	for (int i = 0; i < nto; i++)
		if (found[i])
			take_gradient(m, which[i], found[i], next);
	return ST_OK;
}

/* --- All of them --- */

static enum status reached_new(struct backward *b, struct reached *x)
{
	x->carry = ARENA_ARRAY(b->g->arena, bool, b->l->ncarry + 1);
	x->sum = ARENA_ARRAY(b->g->arena, bool, b->n->nin + 1);
	return x->carry && x->sum ? ST_OK : diag_nomem(b->g->diag);
}

static bool same_reached(const struct backward *b, const struct reached *x, const struct reached *y)
{
	return !memcmp(x->carry, y->carry, (size_t)b->l->ncarry) &&
	       !memcmp(x->sum, y->sum, (size_t)b->n->nin);
}

/* The first run, the last one, or another, from what has a gradient before it. */
static enum status add_body(
	struct backward *b, bool first, bool last, const struct reached *have, struct reached *next)
{
	struct making m = {.b = b, .first = first, .last = last, .have = have};
	TRY(reached_new(b, next));
	for (int i = 0; i < b->n->nin; i++)
		next->sum[i] = have->sum[i];
	TRY(make_body(&m, next));
	const int n = b->out->nbody++;
	struct loop_body *body = ARENA_ARRAY(b->g->arena, struct loop_body, n + 1);
	struct tensor ***map = ARENA_ARRAY(b->g->arena, struct tensor **, n + 1);
	if (!body || !map)
		return diag_nomem(b->g->diag);
	if (n) {
		memcpy(body, b->out->body, (size_t)n * sizeof *body);
		memcpy(map, b->map, (size_t)n * sizeof *map);
	}
	body[n] = m.out;
	map[n] = m.copy.map;
	b->out->body = body;
	b->map = map;
	return ST_OK;
}

/* Data end the loop: any run may be the last one. */
static enum status add_lasts(struct backward *b, const struct reached *have)
{
	const int n = b->out->lead + b->out->cycle;
	b->end = ARENA_ARRAY(b->g->arena, struct reached, n);
	if (!b->end)
		return diag_nomem(b->g->diag);
	for (int k = 0; k < n; k++)
		TRY(add_body(b, k == 0, true, &have[k], &b->end[k]));
	return ST_OK;
}

/* Bodies until one run finds what an earlier one did, and the last run's. */
static enum status add_bodies(struct backward *b)
{
	struct loop *out = b->out;
	const int64_t turns = b->l->turns;
	struct reached *have = ARENA_ARRAY(b->g->arena, struct reached, turns + 1);
	if (!have)
		return diag_nomem(b->g->diag);
	TRY(reached_new(b, &have[0]));
	for (int i = 0; i < b->l->ncarry; i++)
		have[0].carry[i] = b->dy[i] != NULL;
	for (int i = 0; i < b->n->nin; i++)
		have[0].sum[i] = b->body->in[i].kind == LOOP_SAME && b->sums[i];
	int64_t r = 0, same = -1;
	for (; r < turns - 1 && same < 0; r++) {
		TRY(add_body(b, r == 0, false, &have[r], &have[r + 1]));
		for (int64_t k = 1; k <= r && same < 0; k++)
			if (same_reached(b, &have[k], &have[r + 1]))
				same = k;
	}
	out->lead = (int)(same < 0 ? r : same);
	out->cycle = same < 0 ? 1 : (int)(r - same);
	/* what the last run finds: that of one of the cycle's */
	const int64_t at = same < 0 ? r : same + (turns - 1 - same) % out->cycle;
	struct reached end;
	out->last = out->nbody;
	return b->l->ran < 0 ? add_body(b, turns == 1, true, &have[at], &end) : add_lasts(b, have);
}

static bool drop_gradient(struct loop_body *x, int carry)
{
	struct graph *g = x->graph;
	const int had = g->noutput;
	int n = 0;
	for (int k = 0; k < had; k++) {
		if (x->out[k].kind == LOOP_GRADIENT && x->out[k].k == carry)
			continue;
		x->out[n] = x->out[k];
		g->output[n++] = g->output[k];
	}
	g->noutput = n;
	return n < had;
}

/* No run reads the gradient of a carry that turns make of what has none, but for the first turn's:
 * it need not be made, nor what it alone is made of. */
static enum status drop_unread(struct loop *l)
{
	for (bool fewer = true; fewer;) {
		fewer = false;
		for (int k = 0; k < l->nbody; k++)
			TRY(graph_prune(l->body[k].graph));
		for (int i = 0; i < l->ncarry; i++)
			for (int k = 0; !loop_reads(l, LOOP_GRADIENT, i) && k < l->nbody; k++)
				fewer |= drop_gradient(&l->body[k], i);
	}
	return ST_OK;
}

/* --- The node --- */

static bool gives_here(const struct loop_body *x, int i)
{
	for (int k = 0; k < x->graph->noutput; k++)
		if (x->out[k].output && x->out[k].k == i)
			return true;
	return false;
}

/* The gradient of the node's input i is zeros, or its slice of this turn is. */
static enum status add_zeros(struct backward *b, struct loop_body *x, int i)
{
	struct graph *g = x->graph;
	const struct tensor *t = b->body->graph->input[i];
	const struct loop_place *in = &b->body->in[i];
	const char *expand = op_by_role(g->table, ROLE_EXPAND)->name;
	g->phase = NODE_BACKWARD;
	struct tensor *zeros = OP2(g, expand, graph_scalar(g, 0), graph_ints(g, t->rank, t->dim));
	g->phase = NODE_FORWARD;
	if (!zeros)
		return g->failed;
	x->out[g->noutput] = (struct loop_place){
		.kind = in->kind == LOOP_SLICE ? LOOP_SLICE : LOOP_SAME,
		.k = i,
		.output = true,
		.backwards = in->backwards};
	g->output[g->noutput++] = zeros;
	return ST_OK;
}

/* Whether some turn gives the gradient of input i. */
static bool gives(const struct loop *l, int i)
{
	for (int k = 0; k < l->nbody; k++)
		if (gives_here(&l->body[k], i))
			return true;
	return false;
}

/* Slices of a scanned input that some turn has no gradient for are zeros there; and where data end
 * the loop, so is the gradient of what no turn so far has given one. */
static enum status fill_up(struct backward *b, int i)
{
	struct loop *l = b->out;
	const bool slices = b->body->in[i].kind == LOOP_SLICE;
	const int from = slices || !b->end ? 0 : l->last;
	const int to = slices || b->end ? l->nbody : 0;
	for (int k = from; k < to; k++)
		if (k != l->advance && !gives_here(&l->body[k], i) &&
			(slices || !b->end[k - l->last].sum[i]))
			TRY(add_zeros(b, &l->body[k], i));
	return ST_OK;
}

/* Sums with the loop's part, for each tensor that the loop reads: what is read as a whole, then
 * slices, the last one's first. */
static enum status add_sums(struct backward *b, const struct node *d, struct tensor **dx)
{
	struct graph *g = b->g;
	const struct node *n = b->n;
	const char *add = op_by_role(g->table, ROLE_ADD)->name;
	for (int pass = 0; pass < 2; pass++)
		for (int i = n->nin - 1; i >= 0; i--) {
			const bool slices = b->body->in[i].kind == LOOP_SLICE;
			struct tensor *part = d->out[i];
			if (!part || slices != (pass == 1))
				continue;
			if (slices && dx[i] && !(part = OP2(g, add, dx[i], part)))
				return g->failed;
			for (int k = 0; k < n->nin; k++)
				dx[k] = n->in[k] == n->in[i] ? part : dx[k];
		}
	return ST_OK;
}

/* For people, and for tables of measured times. */
static enum status describe(struct graph *g, struct node *d)
{
	const struct loop *l = node_loop(d);
	struct attr *attr = ARENA_ARRAY(g->arena, struct attr, 2);
	const char *keeps = loop_keeps(g->arena, l);
	if (!attr || !keeps)
		return diag_nomem(g->diag);
	attr[0] = ATTR_I("turns", l->turns);
	attr[1] = (struct attr){.name = "keeps", .kind = ATTR_STRING, .s = keeps};
	d->attr = attr;
	d->nattr = 2;
	return ST_OK;
}

static enum status make_node(struct backward *b, struct tensor **dx)
{
	struct graph *g = b->g;
	const struct node *n = b->n;
	struct loop *l = b->out;
	const int kept = b->at_inside + b->ninside, nin = kept + (b->l->ran >= 0), nc = l->ncarry;
	struct tensor **in = ARENA_ARRAY(g->arena, struct tensor *, nin);
	if (!in)
		return diag_nomem(g->diag);
	memcpy(in, n->in, (size_t)n->nin * sizeof *in);
	memcpy(in + b->at_dy, b->dy, (size_t)(nc + b->ncollect) * sizeof *in);
	memcpy(in + b->at_sums, b->sums, (size_t)n->nin * sizeof *in);
	TRY(loop_keep_all(b, in));
	l->go = -1;
	if (b->l->ran >= 0)
		in[l->ran = kept] = n->out[b->l->ran];
	struct node *d = graph_node_blank(
		g, op_by_role(g->table, ROLE_LOOP_GRADIENT), n->name, nin, in, n->nin);
	if (!d)
		return diag_nomem(g->diag);
	l->inside = b->at_inside;
	l->ninside = b->ninside;
	d->param = l;
	TRY(describe(g, d));
	for (int i = 0; i < n->nin; i++) {
		const struct tensor *x = n->in[i];
		if (!b->want[i] || !gives(l, i))
			continue;
		TRY(fill_up(b, i));
		d->out[i] = graph_tensor(g, x->name, x->dtype, x->rank, x->dim);
		if (!d->out[i])
			return g->failed;
	}
	TRY(graph_append(g, d));
	return add_sums(b, d, dx);
}

enum status loop_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct loop *l = node_loop(n);
	struct backward b = {.g = g,
		.n = n,
		.l = l,
		.body = &l->body[0],
		.dy = dy,
		.sums = arena_memdup(g->arena, dx, (size_t)n->nin, sizeof *dx),
		.want = arena_memdup(g->arena, want, (size_t)n->nin, sizeof *want),
		.ncollect = l->body[0].graph->noutput - l->ncarry - (l->go >= 0)};
	struct loop *out = loop_copy(g->arena, l, 0);
	if (!b.sums || !b.want || !out)
		return diag_nomem(g->diag);
	for (int i = 0; i < n->nin; i++) {
		const bool again = same_input(&b, i) != i;
		if (again || b.body->in[i].kind == LOOP_SLICE)
			b.sums[i] = NULL;
		b.want[i] &= !again;
	}
	b.out = out;
	out->slots = l->asks;
	b.at_dy = n->nin + l->ncarry;
	b.at_sums = b.at_dy + l->ncarry + b.ncollect;
	b.at_inside = b.at_sums + n->nin;
	TRY(find_wants(&b));
	TRY(add_bodies(&b));
	TRY(drop_unread(out));
	if (out->slots >= l->turns - 1)
		out->slots = LOOP_SLOTS_ALL;
	TRY(loop_cut_bodies(&b));
	if (out->slots >= 0)
		TRY(loop_add_advance(&b));
	return make_node(&b, dx);
}
