/* A plan resolved: for each step the node as it is run, the kernel it calls and the buffers it
 * reads and writes; for each buffer the name of its offset. */
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"
#include "graph/op_optimizer.h"

static bool same_place(const struct plan_buffer *a, const struct plan_buffer *b)
{
	return a->offset == b->offset && a->bytes > 0 && b->bytes > 0;
}

int buffer_at(const struct schedule *s, int t, int step)
{
	for (int b = s->head[t]; b >= 0; b = s->next[b])
		if (s->plan->buffer[b].first_step <= step && step <= s->plan->buffer[b].last_step)
			return b;
	return -1;
}

int buffer_at_end(const struct schedule *s, const struct tensor *t)
{
	int last = -1;
	for (int b = s->head[s->gp->index[t->id]]; b >= 0; b = s->next[b])
		if (last < 0 || s->plan->buffer[b].last_step > s->plan->buffer[last].last_step)
			last = b;
	return last;
}

static void chain_lifetimes(struct schedule *s)
{
	for (int i = 0; i < s->gp->problem->ntensor; i++)
		s->head[i] = -1;
	for (int step = 0; step < s->plan->nstep; step++)
		s->workspace[step] = -1;
	for (int b = s->plan->nbuffer - 1; b >= 0; b--) {
		int t = s->plan->buffer[b].tensor;
		if (t < 0) /* a run's own: it lives for its step */
			s->workspace[s->plan->buffer[b].first_step] = b;
		s->next[b] = t < 0 ? -1 : s->head[t];
		if (t >= 0)
			s->head[t] = b;
	}
}

/* The resident that buffer b's tensor is the new version of; -1: none. */
static int resident_replaced(const struct schedule *s, int b)
{
	const struct problem *p = s->gp->problem;
	const struct problem_tensor *t = &p->tensor[s->plan->buffer[b].tensor];
	if (t->producer < 0 || p->op[t->producer].phase != PHASE_UPDATE)
		return -1;
	const struct problem_op *op = &p->op[t->producer];
	for (int i = 0; i < op->npair; i++) {
		int r = op->pair[i].in;
		if (&p->tensor[op->pair[i].out] == t && tensor_kind_resident(p->tensor[r].kind) &&
			same_place(&s->plan->buffer[b], &s->plan->buffer[s->head[r]]))
			return r;
	}
	return -1;
}

static const char *place_name(struct kernels *ks, const struct schedule *s, int b)
{
	const struct plan_buffer *x = &s->plan->buffer[b];
	if (x->tensor < 0)
		return arena_printf(ks->arena, "%cW%03d", s->letter, x->first_step + 1);
	if (tensor_kind_resident(s->gp->problem->tensor[x->tensor].kind))
		return arena_printf(ks->arena, "R%03d", x->tensor);
	int replaced = resident_replaced(s, b);
	if (replaced >= 0)
		return arena_printf(ks->arena, "R%03d", replaced);
	int life = 1;
	for (int i = s->head[x->tensor]; i != b; i = s->next[i])
		life++;
	return life == 1 ? arena_printf(ks->arena, "%c%03d", s->letter, x->tensor)
			 : arena_printf(ks->arena, "%c%03d_%d", s->letter, x->tensor, life);
}

static enum status name_places(struct kernels *ks, struct schedule *s)
{
	for (int b = 0; b < s->plan->nbuffer; b++) {
		int t = s->plan->buffer[b].tensor;
		bool resident = t >= 0 && tensor_kind_resident(s->gp->problem->tensor[t].kind);
		s->place[b].name = place_name(ks, s, b);
		if (!s->place[b].name)
			return diag_nomem(ks->diag);
		s->place[b].define = resident || s->place[b].name[0] != 'R';
	}
	return ST_OK;
}

/* --- Steps --- */

static enum status missing(struct kernels *ks, const struct node *n, const char *what, int step)
{
	const struct where w = {.node = n->name, .op = n->op->name};
	return diag_fail(
		ks->diag, ST_INTERNAL, &w, NULL, "step %d has no place for %s", step, what);
}

/* The problem's tensor that stands for tensor t of the graph in the op of this call: itself, or
 * what an op that repeats t's producer makes. */
static int stands_for(const struct problem *p, const int *list, int n, int t)
{
	for (int i = 0; i < n; i++)
		if (list[i] == t)
			return t;
	for (int i = 0; i < n; i++)
		if (problem_original(p, list[i]) == t)
			return list[i];
	return t;
}

static enum status find_buffers(
	struct kernels *ks, const struct schedule *s, struct call *c, int step)
{
	const struct node *n = &c->node;
	const struct problem *p = s->gp->problem;
	const struct problem_choice *w = &p->op[c->op].choice[s->plan->step[step].choice];
	c->in = ARENA_ARRAY(ks->arena, int, n->nin);
	c->out = ARENA_ARRAY(ks->arena, int, n->nout);
	if (!c->in || !c->out)
		return diag_nomem(ks->diag);
	for (int k = 0; k < n->nin; k++) {
		int t = n->in[k] ? stands_for(p, w->in, w->nin, s->gp->index[n->in[k]->id]) : -1;
		c->in[k] = t >= 0 ? buffer_at(s, t, step) : -1;
		if (n->in[k] && c->in[k] < 0)
			return missing(ks, n, n->in[k]->name, step);
	}
	for (int k = 0; k < n->nout; k++) {
		int t = n->out[k] ? stands_for(p, w->out, w->nout, s->gp->index[n->out[k]->id])
				  : -1;
		c->out[k] = t >= 0 ? buffer_at(s, t, step) : -1;
		if (n->out[k] && c->out[k] < 0)
			return missing(ks, n, n->out[k]->name, step);
	}
	c->workspace = s->workspace[step];
	const int when = n->when ? stands_for(p, w->in, w->nin, s->gp->index[n->when->id]) : -1;
	c->when = when >= 0 ? buffer_at(s, when, step) : -1;
	if (n->when && c->when < 0)
		return missing(ks, n, n->when->name, step);
	return ST_OK;
}

static enum status find_kernel(struct kernels *ks, const struct schedule *s, struct call *c)
{
	const struct node *n = &c->node;
	int *in_place = ARENA_ARRAY(ks->arena, int, n->nin);
	if (!in_place)
		return diag_nomem(ks->diag);
	for (int i = 0; i < n->nin; i++) {
		in_place[i] = -1;
		for (int k = 0; k < n->nout && c->in[i] >= 0; k++)
			if (c->out[k] >= 0 && (same_place(&s->plan->buffer[c->in[i]],
						       &s->plan->buffer[c->out[k]]) ||
						      n->out[k]->over == tensor_storage(n->in[i])))
				in_place[i] = k;
	}
	return kernel_find(ks, s->gp->graph, n, in_place, &c->kernel);
}

/* An update of a piece: of its gradient all is looked at, before the first. */
static bool is_of_piece(const struct node *n)
{
	return (n->op->traits & OP_UPDATE) && n->nin > 1 && n->in[1] && n->in[1]->maker &&
	       n->in[1]->maker->op->role == ROLE_PIECE;
}

bool hands_on(const struct node *n)
{
	return n->op->role == ROLE_GATHER_PIECES || n->op->role == ROLE_STORE ||
	       n->op->role == ROLE_UPDATE_END || is_of_piece(n);
}

/* What `stint run` wants the finished gradient of: the parameter that this node updates, or a piece
 * of; or that, or the input, whose gradient it keeps. */
static int parameter_updated(const struct schedule *s, const struct node *n)
{
	const bool keeps = n->op->role == ROLE_KEEP_GRADIENT;
	bool update = (keeps || n->op->traits & OP_UPDATE) && n->phase == NODE_UPDATE;
	if (n->op->role == ROLE_PIECE)
		return node_int(n, "from", 0) ? -1 : s->gp->index[n->in[1]->id];
	if (!update || hands_on(n) || n->nin < 2 || !n->in[0] ||
		(!n->in[1] && !op_optimizer(n->op)))
		return -1;
	struct tensor *t = tensor_storage(n->in[0]);
	if (t->maker && (t->maker->op->role == ROLE_OWN_PIECE || t->maker->op->role == ROLE_FETCH))
		t = tensor_storage(t->maker->in[0]);
	return t->role == TR_PARAMETER || keeps ? s->gp->index[t->id] : -1;
}

static enum status resolve_step(struct kernels *ks, struct schedule *s, int step, int *first)
{
	const struct plan_step *ps = &s->plan->step[step];
	struct call *c = &s->call[step];
	const struct node *n = s->gp->node[ps->op];
	c->node = node_choice(n, ps->choice);
	c->op = ps->op;
	int repeats = s->gp->problem->op[ps->op].repeats;
	c->run = ps->run + (repeats > 0);
	if (first[ps->op] < 0)
		first[ps->op] = repeats ? first[repeats - 1] : step;
	c->first = first[ps->op];
	c->updates = parameter_updated(s, &c->node);
	if (node_transfers(&c->node) || node_moves(&c->node)) {
		c->run = 0;
		c->kernel = -1;
		return find_buffers(ks, s, c, step);
	}
	TRY(find_buffers(ks, s, c, step));
	return find_kernel(ks, s, c);
}

/* What is not in the arena, one behind the other. */
static enum status find_file(struct kernels *ks, struct schedule *s)
{
	enum { PAGE = 4096 };
	s->file = ARENA_ARRAY(ks->arena, int64_t, s->nresident + 1);
	if (!s->file)
		return diag_nomem(ks->diag);
	for (int i = 0; i < s->nresident; i++) {
		const struct tensor *x = s->gp->tensor[i];
		s->file[i] = x->away ? s->file_bytes : -1;
		if (x->away)
			s->file_bytes += (tensor_bytes(x) + PAGE - 1) / PAGE * PAGE;
	}
	return ST_OK;
}

static enum status find_uses(struct kernels *ks, struct schedule *s)
{
	s->trained = ARENA_ARRAY(ks->arena, bool, s->nresident + 1);
	s->keeper = ARENA_ARRAY(ks->arena, const struct call *, s->nresident + 1);
	s->by_shards = ARENA_ARRAY(ks->arena, bool, s->nresident + 1);
	bool *otherwise = ARENA_ARRAY(ks->arena, bool, s->nresident + 1);
	if (!s->trained || !s->keeper || !s->by_shards || !otherwise)
		return diag_nomem(ks->diag);
	for (int step = 0; step < s->plan->nstep; step++) {
		const struct node *n = &s->call[step].node;
		const int updates = s->call[step].updates;
		if (updates >= 0)
			s->trained[updates] = s->gp->tensor[updates]->role == TR_PARAMETER;
		if (updates >= 0 && n->op->role == ROLE_KEEP_GRADIENT) {
			s->nkept += !s->keeper[updates];
			s->keeper[updates] = &s->call[step];
		}
		for (int k = n->op->role == ROLE_KEEP_GRADIENT; k < n->nin; k++) {
			const int r = n->in[k] ? s->gp->index[tensor_storage(n->in[k])->id] : -1;
			if (r >= 0 && r < s->nresident)
				(n->op->role == ROLE_SHARD && k == 0 ? s->by_shards
								     : otherwise)[r] = true;
		}
	}
	for (int i = 0; i < s->nresident; i++)
		s->by_shards[i] = s->by_shards[i] && !otherwise[i];
	return ST_OK;
}

static void find_outputs(struct schedule *s)
{
	const struct graph *g = s->gp->graph;
	for (int i = 0; i < g->noutput; i++) {
		const struct tensor *t = g->output[i] ? tensor_storage(g->output[i]) : NULL;
		s->output_step[i] = t ? -1 : OUTPUT_NEVER;
		for (int step = s->plan->nstep - 1; t && step >= 0; step--)
			for (int k = 0; k < s->call[step].node.nout; k++)
				if (s->call[step].node.out[k] == t)
					s->output_step[i] = step;
	}
}

enum status schedule_make(struct kernels *ks, const struct graph_problem *gp,
	const struct plan *plan, bool train, bool debug, struct schedule *out)
{
	struct schedule s = {.gp = gp, .plan = plan, .at_once = debug};
	s.title = train ? "training" : "evaluation";
	s.function = train ? "step_train" : "step_eval";
	s.letter = train ? 'T' : 'E';
	for (int i = 0; i < gp->problem->ntensor; i++)
		s.nresident += tensor_kind_resident(gp->problem->tensor[i].kind);
	s.place = ARENA_ARRAY(ks->arena, struct place, plan->nbuffer);
	s.call = ARENA_ARRAY(ks->arena, struct call, plan->nstep);
	s.output_step = ARENA_ARRAY(ks->arena, int, gp->graph->noutput);
	s.head = ARENA_ARRAY(ks->arena, int, gp->problem->ntensor);
	s.next = ARENA_ARRAY(ks->arena, int, plan->nbuffer);
	s.workspace = ARENA_ARRAY(ks->arena, int, plan->nstep);
	int *first = ARENA_ARRAY(ks->arena, int, gp->problem->nop);
	if (!s.workspace || !s.place || !s.call || !s.output_step || !s.head || !s.next || !first)
		return diag_nomem(ks->diag);
	chain_lifetimes(&s);
	TRY(find_file(ks, &s));
	TRY(name_places(ks, &s));
	for (int i = 0; i < gp->problem->nop; i++)
		first[i] = -1;
	for (int step = 0; step < plan->nstep; step++)
		TRY(resolve_step(ks, &s, step, first));
	find_outputs(&s);
	TRY(find_uses(ks, &s));
	TRY(copies_find(ks->arena, &s, ks->diag));
	*out = s;
	return ST_OK;
}
