/* Loops that are one node: their bodies as graphs of their own. */
#include "graph/loop.h"

#include <inttypes.h>
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"
#include "kernels/revolve.h"
#include "kernels/which_body.h"

struct loop *loop_copy(struct arena *a, const struct loop *l, int nbody)
{
	struct loop *x = arena_memdup(a, l, 1, sizeof *l);
	struct loop_body *body = ARENA_ARRAY(a, struct loop_body, nbody);
	int *kept = ARENA_ARRAY(a, int, l->ncarry);
	if (!x || !body || !kept || !(x->planned = ARENA_NEW(a, struct loop_planned)))
		return NULL;
	for (int i = 0; i < l->ncarry; i++)
		kept[i] = l->kept ? l->kept[i] : -1;
	x->kept = kept;
	for (int i = 0; i < nbody && i < l->nbody; i++)
		body[i] = l->body[i];
	x->body = body;
	x->nbody = nbody;
	return x;
}

int64_t loop_runs(const struct loop *l, int b)
{
	int64_t runs = 0;
	if (b == l->advance) /* those of Revolve that the loop itself has not made */
		return revolve_forward(l->turns, l->slots) - (l->turns - 1);
	for (int64_t r = 0; r < l->turns; r++)
		runs += which_body(r == l->turns - 1, r, l->lead, l->cycle, l->last, l->ran >= 0) ==
			b;
	return runs;
}

const int64_t *loop_places(struct arena *a, const struct loop *l, int64_t *n)
{
	int64_t *at = ARENA_ARRAY(a, int64_t, l->slots + 1), turn = 0;
	*n = 0;
	if (!at)
		return NULL;
	for (int64_t used = 0; l->turns - turn > 1 && used < l->slots; used++) {
		turn += revolve_next(l->turns - turn, l->slots - used);
		at[(*n)++] = turn;
	}
	if (turn < l->turns - 1)
		at[(*n)++] = l->turns - 1;
	return at;
}

const char *loop_keeps(struct arena *a, const struct loop *l)
{
	return l->slots == LOOP_SLOTS_INSIDE ? "values inside turns"
	       : l->slots == LOOP_SLOTS_ALL  ? "carries after each turn"
					     : arena_printf(a, "carries in %" PRId64 " place%s",
						       l->slots + 1, l->slots ? "s" : "");
}

static bool is_carry(const struct loop_place *p, int k)
{
	return (p->kind == LOOP_CARRY || p->kind == LOOP_GRADIENT) && p->k == k;
}

/* In any body, a tensor of carry k's shape. */
static const struct tensor *carry_tensor(const struct loop *l, int k)
{
	for (int i = 0; i < l->nbody; i++) {
		const struct loop_body *b = &l->body[i];
		for (int j = 0; j < b->graph->ninput; j++)
			if (is_carry(&b->in[j], k))
				return b->graph->input[j];
		for (int j = 0; j < b->graph->noutput; j++)
			if (is_carry(&b->out[j], k))
				return b->graph->output[j];
	}
	return NULL;
}

int64_t loop_carry_bytes(const struct loop *l, int carry)
{
	const struct tensor *t = carry_tensor(l, carry);
	return t ? tensor_bytes(t) : 0;
}

struct tensor *loop_operand(const struct node *n, const struct loop_place *p)
{
	return p->output ? n->out[p->k] : n->in[p->k];
}

/* --- Scratch --- */

int64_t loop_aligned(int64_t bytes)
{
	return (bytes + LOOP_ALIGNED - 1) / LOOP_ALIGNED * LOOP_ALIGNED;
}

static bool has_gradient(const struct loop *l, int carry)
{
	for (int b = 0; b < l->nbody; b++)
		for (int i = 0; i < l->body[b].graph->noutput; i++)
			if (l->body[b].out[i].kind == LOOP_GRADIENT && l->body[b].out[i].k == carry)
				return true;
	return false;
}

/* The largest sum that is made beside its place. */
static int64_t sum_bytes(const struct loop *l)
{
	int64_t most = 0;
	for (int b = 0; b < l->nbody; b++)
		for (int i = 0; i < l->body[b].graph->noutput; i++) {
			const struct tensor *t = l->body[b].graph->output[i];
			if (loop_makes_sum(&l->body[b], i) && !t->over && tensor_bytes(t) > most)
				most = tensor_bytes(t);
		}
	return most;
}

bool loop_makes_sum(const struct loop_body *b, int k)
{
	return loop_sum_before(b, k) >= 0;
}

int loop_sum_before(const struct loop_body *b, int k)
{
	for (int i = 0; b->out[k].kind == LOOP_SAME && i < b->graph->ninput; i++)
		if (b->in[i].kind == LOOP_SAME && b->in[i].output && b->in[i].k == b->out[k].k)
			return i;
	return -1;
}

static int64_t take_place(struct loop_scratch *s, int64_t bytes, bool *fits)
{
	const int64_t place = s->bytes;
	*fits &= size_add(place, loop_aligned(bytes), &s->bytes);
	return place;
}

/* Carry k between turns. Where it is kept in places, one more does, in turn with that which it goes
 * to; going forward again, a gradient has that where its own gradient is not at the time. */
static void take_spare(
	struct loop_scratch *s, const struct node *n, const struct loop *l, int k, bool *fits)
{
	const bool back = n->op->role == ROLE_LOOP_GRADIENT;
	const int64_t bytes = loop_carry_bytes(l, k);
	struct loop_two *spare = &s->spare[k];
	if (l->kept[k] < 0 ? back : l->slots < 0)
		return;
	if (back && s->gradient[k].at[0] >= 0) {
		*spare = s->gradient[k];
		return;
	}
	spare->at[0] = spare->at[1] = take_place(s, bytes, fits);
	if (l->kept[k] < 0)
		spare->at[1] = take_place(s, bytes, fits);
}

static void take_places(
	struct loop_scratch *s, const struct node *n, const struct loop *l, int k, bool *fits)
{
	const int64_t bytes = loop_carry_bytes(l, k);
	for (int i = 0; i < 2; i++) {
		s->spare[k].at[i] = s->gradient[k].at[i] = -1;
		if (bytes && has_gradient(l, k))
			s->gradient[k].at[i] = take_place(s, bytes, fits);
	}
	if (bytes)
		take_spare(s, n, l, k, fits);
}

enum status loop_scratch_find(struct graph *g, const struct node *n, struct loop_scratch *out)
{
	const struct loop *l = node_loop(n);
	bool fits = true;
	*out = (struct loop_scratch){.spare = ARENA_ARRAY(g->arena, struct loop_two, l->ncarry),
		.gradient = ARENA_ARRAY(g->arena, struct loop_two, l->ncarry),
		.sum = -1,
		.bytes = loop_aligned(l->planned->arena)};
	if (!out->spare || !out->gradient)
		return diag_nomem(g->diag);
	for (int i = 0; i < l->ncarry; i++)
		take_places(out, n, l, i, &fits);
	const int64_t sum = sum_bytes(l);
	if (sum)
		out->sum = take_place(out, sum, &fits);
	return fits ? ST_OK : node_fail(g, n, NULL, "needs more scratch than can be counted");
}

/* --- Taking a body out of a graph --- */

void loop_forget(struct graph *g, int node, int tensor)
{
	int n = tensor;
	g->nnode = node;
	for (int i = tensor; i < g->ntensor; i++) {
		struct tensor *t = g->tensor[i];
		if (t->role == TR_VALUE) /* others may be met again: the file's constants */
			continue;
		t->id = n;
		g->tensor[n++] = t;
	}
	g->ntensor = n;
}

struct tensor *loop_add_input(struct graph *g, const struct tensor *like)
{
	struct tensor *x = graph_tensor(g, like->name, like->dtype, like->rank, like->dim);
	if (!x)
		return NULL;
	x->role = TR_INPUT;
	x->outside = true;
	return g->input[g->ninput++] = x;
}

static struct tensor *add_input(struct graph_copy *c, const struct tensor *t)
{
	return c->map[t->id] = loop_add_input(c->to, t);
}

/* Tensors that the nodes read and none of them makes. */
static enum status take_from_around(struct graph_copy *c, struct loop_nodes *what, struct tensor *t)
{
	if (!t || c->map[t->id])
		return ST_OK;
	if (t->role == TR_CONSTANT)
		return graph_copy_tensor(c, t) ? ST_OK : c->to->failed;
	what->around[what->naround++] = t;
	struct tensor *x = add_input(c, t);
	return x && (x->around = true) ? ST_OK : c->to->failed;
}

static enum status copy_nodes(struct graph_copy *c, struct loop_nodes *what)
{
	struct graph *g = c->to;
	for (int i = 0; i < what->nin; i++)
		if (!add_input(c, what->in[i]))
			return g->failed;
	for (int i = what->node; i < c->from->nnode; i++) {
		struct node *n = c->from->node[i], *copied;
		for (int k = 0; k < n->nin; k++)
			TRY(take_from_around(c, what, n->in[k]));
		TRY(graph_copy_node(c, n, &copied));
	}
	for (int k = 0; k < what->nout; k++) {
		TRY(take_from_around(c, what, what->out[k]));
		g->output[g->noutput++] = c->map[what->out[k]->id];
	}
	return g->failed;
}

enum status loop_take_body(struct graph *g, struct loop_nodes *what, struct graph **body)
{
	struct graph *b = graph_new(g->arena, g->diag, g->file, g->table, g->target, g->real);
	struct graph_copy c = {.from = g, .to = b};
	const int most = g->ntensor;
	c.map = ARENA_ARRAY(g->arena, struct tensor *, most);
	what->around = ARENA_ARRAY(g->arena, struct tensor *, most);
	what->naround = 0;
	if (!b || !c.map || !what->around)
		return diag_nomem(g->diag);
	b->straight_through = g->straight_through;
	b->silent_trains = g->silent_trains;
	b->input = ARENA_ARRAY(g->arena, struct tensor *, most);
	b->output = ARENA_ARRAY(g->arena, struct tensor *, what->nout);
	if (!b->input || !b->output)
		return diag_nomem(g->diag);
	TRY(copy_nodes(&c, what));
	loop_forget(g, what->node, what->tensor);
	*body = b;
	return graph_prune(b);
}

/* --- Settling: what stands around a body as it will run --- */

/* Whether a node of the body makes t, and nobody else among the outputs before k has it. */
static bool has_own_maker(const struct graph *g, int k)
{
	const struct tensor *t = g->output[k];
	if (!t->maker || (t->maker->op->traits & OP_VIEW))
		return false;
	for (int i = 0; i < k; i++)
		if (tensor_storage(g->output[i]) == tensor_storage(g->output[k]))
			return false;
	return true;
}

/* What is collected of a carry is where that is kept after each turn. */
static enum status settle_collected(struct graph *g, struct node *n)
{
	struct loop *l = node_loop(n);
	struct loop_body *b = &l->body[0];
	struct graph *x = b->graph;
	struct loop_place *out = ARENA_ARRAY(g->arena, struct loop_place, x->noutput);
	int noutput = 0;
	if (!out)
		return diag_nomem(g->diag);
	for (int k = 0; k < x->noutput; k++) {
		const int carry = loop_collected_carry(b, k);
		if (carry >= 0 && l->slots < 0 && l->kept[carry] < 0)
			l->kept[carry] = b->out[k].k;
		if (carry >= 0 && l->slots < 0 && l->kept[carry] == b->out[k].k)
			continue;
		out[noutput] = b->out[k];
		x->output[noutput++] = x->output[k];
	}
	x->noutput = noutput;
	b->out = out;
	return ST_OK;
}

int loop_collected_carry(const struct loop_body *b, int k)
{
	if (b->out[k].kind != LOOP_SLICE || b->out[k].backwards)
		return -1;
	for (int i = 0; i < b->graph->noutput; i++)
		if (b->out[i].kind == LOOP_CARRY && b->graph->output[i] == b->graph->output[k])
			return b->out[i].k;
	return -1;
}

static enum status settle_outputs(struct graph *g)
{
	for (int k = 0; k < g->noutput; k++) {
		struct tensor *t = g->output[k];
		if (!has_own_maker(g, k)) {
			g->phase = t->is_gradient ? NODE_BACKWARD : NODE_FORWARD;
			t = graph_copy_as(g, t->name, t, t->dtype);
			if (!t)
				return g->failed;
			g->output[k] = t;
		}
		t->outside = true;
	}
	g->phase = NODE_FORWARD;
	return ST_OK;
}

/* What the body reads and does not make is in the step around it. */
static struct tensor *from_around(struct graph *g, const struct tensor *t)
{
	if (t->role == TR_CONSTANT) {
		struct tensor *x = graph_constant(g, t->name, t->dtype, t->rank, t->dim, t->data);
		if (x) {
			x->from_model = t->from_model;
			x->weight = t->weight;
		}
		return x;
	}
	return t->rank && t->dtype == DT_I64 ? graph_control(g) : graph_lr(g);
}

static enum status add_operand(struct graph *g, struct node *n, struct tensor *t, int *k)
{
	for (*k = 0; *k < n->nin; ++*k)
		if (n->in[*k] && t->role == TR_CONSTANT && n->in[*k]->role == TR_CONSTANT &&
			n->in[*k]->data == t->data && n->in[*k]->dtype == t->dtype &&
			tensor_same_shape(n->in[*k], t))
			return ST_OK;
	struct tensor **in = ARENA_ARRAY(g->arena, struct tensor *, n->nin + 1);
	struct tensor *x = from_around(g, t);
	if (!in || !x)
		return x ? diag_nomem(g->diag) : g->failed;
	memcpy(in, n->in, (size_t)n->nin * sizeof *in);
	in[*k] = x;
	n->in = in;
	n->nin++;
	return ST_OK;
}

/* Tensors that nobody reads any more are no operands. */
static enum status settle_inputs(struct graph *g, struct node *n, struct loop_body *b)
{
	struct graph *x = b->graph;
	const bool *needed = graph_needed(x);
	struct tensor **input = ARENA_ARRAY(g->arena, struct tensor *, x->ntensor);
	struct loop_place *in = ARENA_ARRAY(g->arena, struct loop_place, x->ntensor);
	int nin = 0;
	if (!needed || !input || !in)
		return diag_nomem(g->diag);
	for (int i = 0; i < x->ninput; i++)
		if (needed[x->input[i]->id]) {
			in[nin] = b->in[i];
			input[nin++] = x->input[i];
		}
	for (int i = 0; i < x->ntensor; i++) {
		struct tensor *t = x->tensor[i];
		if (!needed[i] || (t->role != TR_CONSTANT && t->role != TR_CONTROL))
			continue;
		in[nin] = (struct loop_place){.kind = LOOP_SAME};
		TRY(add_operand(g, n, t, &in[nin].k));
		t->role = TR_INPUT;
		t->data = NULL;
		t->outside = true;
		input[nin++] = t;
	}
	x->input = input;
	x->ninput = nin;
	x->control = x->lr = NULL;
	b->in = in;
	return ST_OK;
}

/* Operands that no body needs are absent, so that they need not be kept. */
static enum status drop_operands(struct graph *g, struct node *n)
{
	const struct loop *l = node_loop(n);
	bool *used = ARENA_ARRAY(g->arena, bool, n->nin + 1);
	if (!used)
		return diag_nomem(g->diag);
	for (int b = 0; b < l->nbody; b++) {
		const struct loop_body *x = &l->body[b];
		for (int i = 0; i < x->graph->ninput; i++) {
			const struct loop_place *p = &x->in[i];
			if (!p->output && p->kind <= LOOP_SLICE)
				used[p->k] = true;
			if (p->kind != LOOP_CARRY)
				continue;
			used[p->k] = true;
			if (n->op->role == ROLE_LOOP_GRADIENT && l->kept[p->k] >= 0)
				used[l->kept[p->k]] = true;
		}
	}
	if (n->op->role == ROLE_LOOP_GRADIENT && l->ran >= 0)
		used[l->ran] = true;
	for (int k = 0; k < n->nin; k++)
		n->in[k] = used[k] ? n->in[k] : NULL;
	return ST_OK;
}

enum status loop_settle(struct graph *g, struct node *n)
{
	struct loop *l = node_loop(n);
	if (n->op->role == ROLE_LOOP)
		TRY(settle_collected(g, n));
	for (int b = 0; b < l->nbody; b++) {
		TRY(settle_outputs(l->body[b].graph));
		TRY(settle_inputs(g, n, &l->body[b]));
		TRY(graph_verify(l->body[b].graph));
	}
	return drop_operands(g, n);
}
