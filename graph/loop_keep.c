/* What a loop that is one node keeps for its backward pass: carries, after each turn or in slots;
 * and values inside turns, in the place of nodes that would make them again. */
#include <string.h>

#include "graph/loop_backward.h"
#include "graph/pass.h"

/* --- What is kept between turns --- */

static bool body_reads(const struct loop_body *x, enum loop_place_kind kind, int k)
{
	const bool *needed = graph_needed(x->graph);
	for (int i = 0; needed && i < x->graph->ninput; i++)
		if (x->in[i].kind == kind && x->in[i].k == k && needed[x->graph->input[i]->id])
			return true;
	return !needed;
}

bool loop_reads(const struct loop *l, enum loop_place_kind kind, int k)
{
	for (int i = 0; i < l->nbody; i++)
		if (body_reads(&l->body[i], kind, k))
			return true;
	return false;
}

/* A turn forward, for the carries that somebody reads. */
enum status loop_add_advance(struct backward *b)
{
	struct loop *l = b->out;
	const struct graph *f = b->body->graph;
	struct loop_body *body = ARENA_ARRAY(b->g->arena, struct loop_body, l->nbody + 1);
	struct graph_copy c;
	if (!body)
		return diag_nomem(b->g->diag);
	memcpy(body, l->body, (size_t)l->nbody * sizeof *body);
	TRY(graph_copy_begin(&c, f));
	for (int i = 0; i < f->nnode; i++) {
		struct node *n;
		TRY(graph_copy_node(&c, f->node[i], &n));
	}
	struct graph *g;
	TRY(graph_copy_end(&c, &g));
	g->noutput = l->ncarry;
	l->advance = l->nbody;
	body[l->nbody++] = (struct loop_body){.graph = g, .in = b->body->in, .out = b->body->out};
	l->body = body;
	for (bool fewer = true; fewer;) {
		fewer = false;
		struct loop_body *x = &body[l->advance];
		struct loop_place *out = ARENA_ARRAY(g->arena, struct loop_place, g->noutput + 1);
		if (!out)
			return diag_nomem(b->g->diag);
		int n = 0;
		for (int k = 0; k < g->noutput; k++) {
			if (!loop_reads(l, LOOP_CARRY, x->out[k].k)) {
				fewer = true;
				continue;
			}
			out[n] = x->out[k];
			g->output[n++] = g->output[k];
		}
		g->noutput = n;
		x->out = out;
		TRY(graph_prune(g));
	}
	return ST_OK;
}

/* The operands of the two nodes: outputs that the loop gets, inputs that the gradient has for them.
 */
struct keeping {
	int nout, nin;
	struct tensor **out, **in;
};

/* t, so many times, is output nout of the loop and input nin of the gradient. */
static struct tensor *keep(
	struct backward *b, struct keeping *x, const struct tensor *t, int64_t times)
{
	struct graph *g = b->g;
	int64_t dim[2] = {times, t->numel};
	g->phase = NODE_FORWARD;
	struct tensor *kept = graph_tensor(g, t->name, t->dtype, 2, dim);
	g->phase = NODE_BACKWARD;
	if (kept)
		kept->maker = g->node[b->n->id];
	x->out[x->nout++] = kept;
	return x->in[x->nin++] = kept;
}

/* The output that collects carry i as it would be kept; -1: none. */
static int collected_output(const struct backward *b, int i)
{
	for (int k = b->l->ncarry; b->out->slots < 0 && k < b->body->graph->noutput; k++)
		if (loop_collected_carry(b->body, k) == i)
			return k;
	return -1;
}

/* Carries that are read, after each turn or in slots. */
static enum status keep_carries(struct backward *b, struct loop *of, struct keeping *x)
{
	struct loop *l = b->out;
	/* behind the slots: before the last turn */
	const int64_t places = l->slots < 0 ? l->turns : l->slots + 1;
	for (int i = 0; i < l->ncarry; i++) {
		const int collected = collected_output(b, i);
		const bool read = loop_reads(l, LOOP_CARRY, i) || b->after[i];
		of->kept[i] = l->kept[i] = -1;
		if (!read) {
			x->in[x->nin++] = NULL;
			continue;
		}
		l->kept[i] = x->nin;
		of->kept[i] = collected < 0 ? x->nout : collected;
		if (collected >= 0)
			x->in[x->nin++] = b->n->out[collected];
		else if (!keep(b, x, b->body->graph->output[i], places))
			return b->g->failed;
	}
	return ST_OK;
}

/* Values inside the turns. */
static enum status keep_inside(struct backward *b, struct loop *of, struct keeping *x)
{
	const struct graph *f = b->body->graph;
	struct loop_body *body = &of->body[0];
	const int most = f->noutput + b->ninside;
	struct tensor **output = ARENA_ARRAY(b->g->arena, struct tensor *, most);
	struct loop_place *out = ARENA_ARRAY(b->g->arena, struct loop_place, most);
	if (!output || !out)
		return diag_nomem(b->g->diag);
	memcpy(output, f->output, (size_t)f->noutput * sizeof *output);
	memcpy(out, body->out, (size_t)f->noutput * sizeof *out);
	for (int i = 0; i < b->ninside; i++) {
		output[f->noutput + i] = b->inside[i];
		out[f->noutput + i] = (struct loop_place){
			.kind = LOOP_SLICE, .k = x->nout, .output = true};
		if (!keep(b, x, b->inside[i], b->l->turns))
			return b->g->failed;
	}
	body->graph->output = output;
	body->graph->noutput = most;
	body->out = out;
	return ST_OK;
}

/* What the loop gives besides, and the gradient reads: in[0] is its first input for a carry that is
 * kept, in[inside] for a value. */
enum status loop_keep_all(struct backward *b, struct tensor **in)
{
	struct graph *g = b->g;
	struct node *n = g->node[b->n->id];
	const int most = b->l->ncarry + b->ninside;
	struct keeping x = {.nout = n->nout, .nin = n->nin, .in = in};
	struct loop *of = loop_copy(g->arena, b->l, b->l->nbody);
	x.out = ARENA_ARRAY(g->arena, struct tensor *, n->nout + most);
	if (!x.out || !of)
		return diag_nomem(g->diag);
	memcpy(x.out, n->out, (size_t)n->nout * sizeof *x.out);
	of->slots = b->out->slots;
	TRY(keep_carries(b, of, &x));
	x.nin = b->at_inside;
	TRY(keep_inside(b, of, &x));
	n->param = of;
	n->out = x.out;
	n->nout = x.nout;
	return ST_OK;
}

/* --- Values that are kept, in the place of nodes that would make them again --- */

/* Tensor t of the gradient's body x becomes an input of it. */
static enum status cut(
	struct backward *b, struct loop_body *x, struct tensor *t, struct loop_place p)
{
	struct graph *g = x->graph;
	struct tensor *other = graph_tensor(g, t->name, t->dtype, t->rank, t->dim);
	struct tensor **input = ARENA_ARRAY(g->arena, struct tensor *, g->ninput + 1);
	struct loop_place *in = ARENA_ARRAY(g->arena, struct loop_place, g->ninput + 1);
	if (!other || !input || !in)
		return other ? diag_nomem(b->g->diag) : g->failed;
	struct node *n = t->maker;
	for (int k = 0; k < n->nout; k++)
		n->out[k] = n->out[k] == t ? other : n->out[k];
	other->maker = n;
	t->maker = NULL;
	t->role = TR_INPUT;
	t->outside = true;
	memcpy(input, g->input, (size_t)g->ninput * sizeof *input);
	memcpy(in, x->in, (size_t)g->ninput * sizeof *in);
	input[g->ninput] = t;
	in[g->ninput++] = p;
	g->input = input;
	x->in = in;
	return ST_OK;
}

/* Which carry value t of the loop's body is after the turn; -1: none. */
static int carry_after(const struct backward *b, const struct tensor *t)
{
	for (int i = 0; i < b->l->ncarry; i++)
		if (b->body->graph->output[i] == t)
			return i;
	return -1;
}

/* Of one body of the gradient, while it is cut. */
struct cutting {
	bool once;         /* it runs once: nothing is kept for it alone */
	const bool *never; /* by tensor: fusion stores it nowhere, as where turns are unrolled */
	bool *again;       /* by node: of the forward pass, and made again */
};

/* Where value `of` of the loop's body, t of this one, is kept; false: nowhere. */
static bool kept_at(struct backward *b, const struct cutting *c, const struct tensor *t,
	struct tensor *of, struct loop_place *p)
{
	const int carry = of ? carry_after(b, of) : -1;
	int i = 0;
	if (carry >= 0 && (b->after[carry] || !c->once)) {
		*p = (struct loop_place){.kind = LOOP_SLICE, .k = b->n->nin + carry};
		return b->after[carry] = true;
	}
	if (!of || carry >= 0 || b->out->slots != LOOP_SLOTS_INSIDE || c->never[t->id])
		return false;
	while (i < b->ninside && b->inside[i] != of)
		i++;
	if (i == b->ninside && c->once)
		return false;
	b->inside[i] = of;
	b->ninside = i == b->ninside ? i + 1 : b->ninside;
	*p = (struct loop_place){.kind = LOOP_SLICE, .k = b->at_inside + i};
	return true;
}

/* The tensor of the loop's body that t of gradient's body k is; NULL: of none. */
static struct tensor *original(const struct backward *b, int k, const struct tensor *t)
{
	const struct graph *f = b->body->graph;
	for (int i = 0; i < f->ntensor; i++)
		if (b->map[k][i] == t)
			return f->tensor[i];
	return NULL;
}

/* What node n of gradient's body k reads of the turn's own values: they are kept, or made again of
 * others. */
static enum status cut_reads(struct backward *b, int k, const struct node *n, struct cutting *c)
{
	for (int j = 0; j < n->nin; j++) {
		struct tensor *t = n->in[j] ? tensor_storage(n->in[j]) : NULL;
		struct loop_place p;
		if (!t || !t->maker || t->maker->phase != NODE_FORWARD)
			continue;
		if (kept_at(b, c, t, original(b, k, t), &p))
			TRY(cut(b, &b->out->body[k], t, p));
		else
			c->again[t->maker->id] = b->out->slots == LOOP_SLOTS_INSIDE;
	}
	return ST_OK;
}

static enum status cut_body(struct backward *b, int k, bool once)
{
	struct graph *g = b->out->body[k].graph;
	bool *never = ARENA_ARRAY(g->arena, bool, g->ntensor + 1);
	struct cutting c = {.once = once, .never = never};
	c.again = ARENA_ARRAY(g->arena, bool, g->nnode + 1);
	if (!never || !c.again)
		return diag_nomem(g->diag);
	TRY(graph_never_stored(g, never));
	for (int i = g->nnode - 1; i >= 0; i--)
		if (g->node[i]->phase == NODE_BACKWARD || c.again[i])
			TRY(cut_reads(b, k, g->node[i], &c));
	return graph_prune(g);
}

/* Few turns have a body of their own. */
static bool runs_once(const struct loop *l, int k)
{
	return 2 * l->nbody <= l->turns && loop_runs(l, k) < 2;
}

enum status loop_cut_bodies(struct backward *b)
{
	const struct loop *l = b->out;
	b->inside = ARENA_ARRAY(b->g->arena, struct tensor *, b->body->graph->ntensor + 1);
	b->after = ARENA_ARRAY(b->g->arena, bool, b->l->ncarry + 1);
	if (!b->inside || !b->after)
		return diag_nomem(b->g->diag);
	for (int once = 0; once < 2; once++)
		for (int k = 0; k < l->nbody && l->slots < 0; k++)
			if (runs_once(l, k) == once)
				TRY(cut_body(b, k, once));
	return ST_OK;
}
