/* A graph as a planner's problem: views disappear into their sources, nodes become ops, and the
 * tensors that live over steps become residents, in one order for training and evaluation. */
#include "bridge/from_graph.h"
#include "bridge/by_name.h"
#include "bridge/loop_plans.h"
#include "graph/cost.h"
#include "graph/loop.h"
#include "planner/problem/transfer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "planner/problem/roofline.h"

enum { PAIRS_MAX = 16 };

struct builder {
	struct arena *a;
	const struct graph *g;
	struct problem *p;
	struct tensor **tensor;        /* by problem tensor */
	struct node **node;            /* by op */
	int *index;                    /* by graph tensor id */
	bool *used;                    /* by graph tensor id: a storage that the step needs */
	bool *claimed;                 /* by resident: a tensor of this graph has it */
	bool *written;                 /* by graph tensor id: an update makes a new version of it */
	struct by_name tensors, names; /* residents by their tensor's name, and by their own */
	struct kernel_keys *keys;
	const struct roofline *roofline;
};

static bool is_view(const struct node *n)
{
	return (n->op->traits & OP_VIEW) != 0;
}

static bool is_resident(const struct tensor *t)
{
	return t->role != TR_VALUE;
}

/* --- Which storages the step needs --- */

static void mark_used(struct builder *b)
{
	const struct graph *g = b->g;
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		if (is_view(n))
			continue;
		for (int c = 0; c < node_choices(n); c++) {
			struct node v = node_choice(n, c);
			for (int k = 0; k < v.nin; k++)
				if (v.in[k])
					b->used[tensor_storage(v.in[k])->id] = true;
		}
		if (n->when)
			b->used[n->when->id] = true;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				b->used[n->out[k]->id] = true;
	}
	for (int i = 0; i < g->noutput; i++)
		if (g->output[i])
			b->used[tensor_storage(g->output[i])->id] = true;
	for (int i = 0; graph_told(g, i); i++)
		b->used[tensor_storage(graph_told(g, i))->id] = true;
	for (int i = 0; i < g->ntensor; i++)
		if (g->tensor[i]->role == TR_INPUT || g->tensor[i]->role == TR_CONTROL)
			b->used[i] = true;
}

static void mark_written(struct builder *b)
{
	const struct graph *g = b->g;
	for (int i = 0; i < g->nnode; i++) {
		struct op_pair pair[PAIRS_MAX];
		const struct node *n = g->node[i];
		const int npair = n->op->traits & OP_UPDATE ? node_pairs(n, pair, PAIRS_MAX) : 0;
		for (int k = 0; k < npair; k++)
			if (n->in[pair[k].in])
				b->written[tensor_storage(n->in[pair[k].in])->id] = true;
	}
}

/* --- Residents --- */

/* Whether it is read where a microcontroller's program has its value, and takes no memory. */
static bool stays_in_value(const struct builder *b, const struct tensor *t)
{
	return b->g->target->bare && is_resident(t) && t->data && !b->written[t->id];
}

static enum tensor_kind resident_kind(const struct tensor *t)
{
	switch (t->role) {
	case TR_INPUT:
	case TR_CONTROL:
		return TK_INPUT;
	case TR_BUFFER:
	case TR_STATE:
	case TR_SUMS:
		return TK_STATE;
	default:
		return TK_PARAMETER;
	}
}

/* The same tensor in the graphs of training and evaluation, which were made from one model. */
static bool same_resident(const struct tensor *x, const struct tensor *y)
{
	if (x->role != y->role || x->dtype != y->dtype || !tensor_same_shape(x, y) ||
		strcmp(x->name, y->name) != 0)
		return false;
	return x->role != TR_CONSTANT || x->data == y->data ||
	       memcmp(x->data, y->data, (size_t)tensor_bytes(x)) == 0;
}

static int add_tensor(
	struct builder *b, struct tensor *t, const char *name, enum tensor_kind kind, int64_t bytes)
{
	int i = b->p->ntensor++;
	b->p->tensor[i] = (struct problem_tensor){
		.id = i, .name = name, .bytes = bytes, .kind = kind, .producer = -1};
	b->tensor[i] = t;
	return i;
}

static int add_resident(
	struct builder *b, struct tensor *t, const char *name, enum tensor_kind kind, int64_t bytes)
{
	const int i = add_tensor(b, t, name, kind, bytes);
	by_name_add(&b->tensors, t->name, i);
	by_name_add(&b->names, name, i);
	return i;
}

/* Residents are found by name at run time: "" and repeated names (constants made by the compiler)
 * get a number. */
static const char *resident_name(struct builder *b, const struct tensor *t)
{
	const char *base = *t->name ? t->name : "constant";
	const char *name = base;
	for (int suffix = 2;; suffix++) {
		bool taken = false;
		for (int i = by_name_first(&b->names, name); i >= 0 && !taken; i = b->names.next[i])
			taken = strcmp(b->p->tensor[i].name, name) == 0;
		if (!taken)
			return name;
		name = arena_printf(b->a, "%s#%d", base, suffix);
		if (!name)
			return NULL;
	}
}

/* The resident that is `t`, known from the other graph or (equal constants are one) from this; -1:
 * none yet. */
static int find_resident(const struct builder *b, const struct tensor *t)
{
	for (int i = by_name_first(&b->tensors, t->name); i >= 0; i = b->tensors.next[i])
		if (same_resident(b->tensor[i], t) && (t->role == TR_CONSTANT || !b->claimed[i]))
			return i;
	return -1;
}

static void add_known_residents(struct builder *b, const struct graph_problem *known)
{
	for (int i = 0; i < known->problem->ntensor; i++) {
		const struct problem_tensor *t = &known->problem->tensor[i];
		if (tensor_kind_resident(t->kind))
			add_resident(b, known->tensor[i], t->name, t->kind, t->bytes);
	}
}

static enum status add_residents(struct builder *b, const struct graph_problem *known)
{
	static const enum tensor_role order[] = {TR_INPUT, TR_CONTROL, TR_PARAMETER, TR_CONSTANT,
		TR_BUFFER, TR_STATE, TR_SUMS, TR_ELSEWHERE};
	if (known)
		add_known_residents(b, known);
	for (size_t r = 0; r < sizeof order / sizeof *order; r++)
		for (int k = 0; k < b->g->ntensor; k++) {
			struct tensor *t = b->g->tensor[k];
			if (t->role != order[r] || !b->used[k])
				continue;
			int i = find_resident(b, t);
			if (i < 0) {
				const char *name = resident_name(b, t);
				if (!name)
					return ST_INTERNAL;
				i = add_resident(b, t, name, resident_kind(t), 0);
			}
			if (!t->away && !t->outside &&
				!stays_in_value(b, t)) /* in one graph it may be written */
				b->p->tensor[i].bytes = tensor_next(b->g, t) + tensor_bytes(t);
			b->tensor[i] = t;
			b->claimed[i] = true;
			b->index[k] = i;
		}
	return ST_OK;
}

/* --- Ops --- */

/* Bytes between memory and a file. */
static int64_t bytes_moved(const struct node *n)
{
	return n->op->role == ROLE_FETCH   ? tensor_bytes(n->out[0])
	       : n->op->role == ROLE_STORE ? tensor_bytes(n->in[1])
					   : 0;
}

/* What others have of it. */
static int64_t bytes_of_others(const struct node *n)
{
	return n->op->role == ROLE_FETCH_PIECES ? tensor_bytes(n->out[0]) - tensor_bytes(n->in[0])
						: 0;
}

/* All of it counts: what is moved beside kernels costs less. */
static double move_cost(const struct graph *g, const struct node *n)
{
	static const double microseconds_per_request = 100;
	if (n->op->role == ROLE_FETCH_PIECES)
		return (double)(g->ranks - 1) * g->target->latency +
		       (double)bytes_of_others(n) / g->target->link;
	const struct target *t = g->target;
	const double rate = n->op->role == ROLE_STORE ? t->disk_writes : t->disk_reads;
	return microseconds_per_request + (double)bytes_moved(n) / rate;
}

static double cost_of(
	const struct roofline *r, bool cuda, const struct node *n, const struct lib_call *library)
{
	const struct loop *l = node_loop(n);
	if (l) /* planned already */
		return l->planned->cost;
	const struct op_cost c = node_cost(n);
	const bool narrow = n->nin > 0 && n->in[0] && dtype_is_narrow(n->in[0]->dtype);
	double compute;
	if (library) /* the CPU's has fast products in bf16 alone */
		compute = c.flops / library->speed /
			  (narrow && (r->fp16 || n->in[0]->dtype == DT_BF16) ? r->narrow_products
									     : r->products);
	else
		compute = c.flops /
			  (narrow && n->op->traits & OP_OWN_PRODUCT ? r->own_narrow : r->plain);
	const double traffic = c.bytes / r->bytes;
	const double launches = cuda && !library && n->op->launches ? n->op->launches(n) : 1;
	return launches * r->launch + (compute > traffic ? compute : traffic);
}

/* The problem tensors behind `t`, and behind `when`, which may be NULL, each once, in order of
 * first appearance. */
static int *storages_of(
	struct builder *b, int n, struct tensor *const *t, struct tensor *when, int *count)
{
	int *list = ARENA_ARRAY(b->a, int, n + 1);
	*count = 0;
	for (int k = 0; list && k <= n; k++) {
		struct tensor *one = k < n ? t[k] : when;
		if (!one)
			continue;
		int x = b->index[tensor_storage(one)->id], i = 0;
		while (i < *count && list[i] != x)
			i++;
		if (i == *count)
			list[(*count)++] = x;
	}
	return list;
}

static bool has_pair(const struct op_pair *pair, int npair, int out, int in)
{
	for (int i = 0; i < npair; i++)
		if (pair[i].out == out && pair[i].in == in)
			return true;
	return false;
}

/* Whatever way the node is run, every input that reads storage `t` may be overwritten by `out`. */
static bool pair_holds(const struct node *n, int out, const struct tensor *t)
{
	for (int c = 0; c < node_choices(n); c++) {
		struct node v = node_choice(n, c);
		struct op_pair pair[PAIRS_MAX];
		int npair = node_pairs(&v, pair, PAIRS_MAX);
		for (int k = 0; k < v.nin; k++)
			if (v.in[k] && tensor_storage(v.in[k]) == t &&
				!has_pair(pair, npair, out, k))
				return false;
	}
	return true;
}

static enum status add_pairs(struct builder *b, const struct node *n, struct problem_op *op)
{
	struct op_pair pair[PAIRS_MAX];
	int npair = node_pairs(n, pair, PAIRS_MAX);
	bool update = (n->op->traits & OP_UPDATE) != 0;
	struct problem_pair *list = ARENA_ARRAY(b->a, struct problem_pair, npair);
	if (!list)
		return ST_INTERNAL;
	for (int i = 0; i < npair; i++) {
		struct tensor *out = n->out[pair[i].out], *in = tensor_storage(n->in[pair[i].in]);
		/* A smaller element type would be stored over elements not yet read. */
		if (out->dtype != in->dtype || out->numel > in->numel)
			continue;
		if (is_resident(in) ? !update : !pair_holds(n, pair[i].out, in))
			continue;
		struct problem_pair x = {b->index[out->id], b->index[in->id]};
		bool listed = false;
		for (int k = 0; k < op->npair && !listed; k++)
			listed = list[k].out == x.out && list[k].in == x.in;
		if (listed)
			continue;
		list[op->npair++] = x;
		/* The new version of a resident is what the next step finds in its place. */
		if (update && is_resident(in)) {
			b->p->tensor[x.out].kind = TK_OUTPUT;
			b->p->tensor[x.out].keep = true;
		}
	}
	op->pair = list;
	return ST_OK;
}

static enum status add_choices(struct builder *b, const struct node *n, struct problem_op *op)
{
	struct problem_choice *choice = ARENA_ARRAY(b->a, struct problem_choice, node_choices(n));
	if (!choice)
		return ST_INTERNAL;
	for (int c = 0; c < node_choices(n); c++) {
		struct node v = node_choice(n, c);
		struct lib_call call;
		int64_t bytes;
		bool library = node_uses_library(b->g, &v, &call, &bytes);
		choice[c].cost = choice[c].roofline = node_moves(n)
							      ? move_cost(b->g, n)
							      : cost_of(b->roofline,
									b->g->target->cuda, &v,
									library ? &call : NULL);
		choice[c].kernel = kernel_key(b->keys, &v, library ? &call : NULL);
		choice[c].workspace = node_workspace(b->g, &v);
		choice[c].in = storages_of(b, v.nin, v.in, v.when, &choice[c].nin);
		choice[c].out = storages_of(b, v.nout, v.out, NULL, &choice[c].nout);
		if (!choice[c].in || !choice[c].out || !choice[c].kernel)
			return ST_INTERNAL;
	}
	op->nchoice = node_choices(n);
	op->has_choices = op->nchoice > 1;
	op->choice = choice;
	return ST_OK;
}

static enum status add_op(struct builder *b, struct node *n)
{
	static const enum phase phase[] = {PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE};
	int i = b->p->nop++;
	struct problem_op *op = &b->p->op[i];
	b->node[i] = n;
	*op = (struct problem_op){.id = i,
		.name = n->name,
		.phase = n->op->traits & OP_UPDATE ? PHASE_UPDATE : phase[n->phase],
		.recomputable = !(n->op->traits & (OP_ONCE | OP_UPDATE)) && n->phase != NODE_UPDATE,
		.from_disk = n->op->role == ROLE_FETCH ? bytes_moved(n) : 0,
		.to_disk = n->op->role == ROLE_STORE ? bytes_moved(n) : 0,
		.from_ranks = bytes_of_others(n),
		.when = n->when ? 1 + b->index[n->when->id] : 0,
		.waits = (n->op->traits & OP_WAITS) != 0};
	if (node_moves(n))
		op->name = arena_printf(b->a, "%s %s", op->to_disk ? "store" : "fetch", n->name);
	if (node_loop(n))
		op->loop = loop_told(b->a, n);
	if (!op->name || (node_loop(n) && !op->loop))
		return ST_INTERNAL;
	for (int k = 0; k < n->nout; k++) {
		struct tensor *t = n->out[k];
		if (!t)
			continue;
		int x = add_tensor(b, t, t->name, t->is_gradient ? TK_GRADIENT : TK_ACTIVATION,
			t->outside ? 0 : tensor_next(b->g, t) + tensor_bytes(t));
		b->p->tensor[x].producer = i;
		b->p->tensor[x].keep = n->op->role == ROLE_KEEP_GRADIENT;
		b->index[t->id] = x;
	}
	TRY(add_choices(b, n, op));
	return add_pairs(b, n, op);
}

static void keep(struct builder *b, struct tensor *t)
{
	struct problem_tensor *x = &b->p->tensor[b->index[tensor_storage(t)->id]];
	x->keep = true;
	if (!tensor_kind_resident(x->kind))
		x->kind = TK_OUTPUT;
}

static bool allocate(struct builder *b, int extra)
{
	const struct graph *g = b->g;
	int nop = 0;
	for (int i = 0; i < g->nnode; i++)
		nop += !is_view(g->node[i]);
	b->p->tensor = ARENA_ARRAY(b->a, struct problem_tensor, g->ntensor + extra);
	b->p->op = ARENA_ARRAY(b->a, struct problem_op, nop);
	b->tensor = ARENA_ARRAY(b->a, struct tensor *, g->ntensor + extra);
	b->node = ARENA_ARRAY(b->a, struct node *, nop);
	b->index = ARENA_ARRAY(b->a, int, g->ntensor);
	b->used = ARENA_ARRAY(b->a, bool, g->ntensor);
	b->written = ARENA_ARRAY(b->a, bool, g->ntensor);
	b->claimed = ARENA_ARRAY(b->a, bool, g->ntensor + extra);
	b->keys = kernel_keys_new(b->a, g);
	if (!b->p->tensor || !b->p->op || !b->tensor || !b->node || !b->index || !b->used ||
		!b->claimed || !b->written || !b->keys ||
		!by_name_begin(b->a, &b->tensors, g->ntensor + extra) ||
		!by_name_begin(b->a, &b->names, g->ntensor + extra))
		return false;
	for (int i = 0; i < g->ntensor; i++)
		b->index[i] = -1;
	return true;
}

enum status problem_from_graph(struct arena *a, const struct graph *g, const char *name,
	bool keep_outputs, const struct graph_problem *residents_of, struct graph_problem *out)
{
	struct builder b = {.a = a,
		.g = g,
		.p = ARENA_NEW(a, struct problem),
		.roofline = roofline_of(g->target->arch)};
	assert(b.roofline);
	if (!b.p || !allocate(&b, residents_of ? residents_of->problem->ntensor : 0))
		return diag_nomem(g->diag);
	b.p->name = name;
	b.p->costs = g->target->arch ? arena_printf(a, "roofline of sm_%d", g->target->arch)
				     : "roofline";
	mark_used(&b);
	mark_written(&b);
	enum status st = add_residents(&b, residents_of);
	for (int i = 0; st == ST_OK && i < g->nnode; i++)
		if (!is_view(g->node[i]))
			st = add_op(&b, g->node[i]);
	if (st != ST_OK) /* nothing else can fail here */
		return diag_nomem(g->diag);
	for (int i = 0; graph_told(g, i); i++)
		keep(&b, graph_told(g, i));
	for (int i = 0; keep_outputs && i < g->noutput; i++)
		keep(&b, g->output[i]);
	/* A view has the place of its source. */
	for (int i = 0; i < g->ntensor; i++)
		if (b.index[i] < 0)
			b.index[i] = b.index[tensor_storage(g->tensor[i])->id];
	*out = (struct graph_problem){g, b.p, b.tensor, b.node, b.index};
	return ST_OK;
}

int residents_of(const struct graph_problem *gp)
{
	int n = 0;
	while (n < gp->problem->ntensor && tensor_kind_resident(gp->problem->tensor[n].kind))
		n++;
	return n;
}

int64_t shards_of_process(const struct graph *g)
{
	const int64_t shards = g->shards ? g->shards : 1;
	return g->ranks ? shards / g->ranks + (shards % g->ranks != 0) : shards;
}

enum status graph_problem_shards(struct arena *a, struct graph_problem *out, struct diag *d)
{
	const struct problem *p = out->problem;
	const int64_t times = shards_of_process(out->graph);
	for (int i = 0; i < p->nop; i++) {
		struct problem_op *op = &p->op[i];
		if (out->node[i]->last)
			continue;
		struct problem_choice *choice = arena_memdup(
			a, op->choice, (size_t)op->nchoice, sizeof *choice);
		if (!choice)
			return diag_nomem(d);
		for (int c = 0; c < op->nchoice; c++)
			choice[c].cost *= (double)times;
		op->from_disk *= times;
		op->from_ranks *= times;
		op->choice = choice;
	}
	return ST_OK;
}

enum status graph_problem_again(struct arena *a, struct graph_problem *out,
	const char *const *pattern, const char *file, struct diag *d)
{
	struct problem *p = out->problem;
	int *was, ntensor = p->ntensor;
	TRY(insist_again(a, p, pattern, file, &was, d));
	if (!was)
		return ST_OK;
	struct node **node = ARENA_ARRAY(a, struct node *, p->nop);
	struct tensor **tensor = ARENA_ARRAY(a, struct tensor *, p->ntensor);
	if (!node || !tensor)
		return diag_nomem(d);
	for (int o = 0; o < p->nop; o++)
		node[o] = out->node[was[o]];
	for (int t = 0; t < p->ntensor; t++)
		tensor[t] = out->tensor[t < ntensor ? t : problem_original(p, t)];
	out->node = node;
	out->tensor = tensor;
	return ST_OK;
}

/* --- Transfers --- */

static const struct op_def to_host = {.name = "to the host", .min_in = 1};
static const struct op_def from_host = {.name = "from the host", .min_in = 1};

bool node_transfers(const struct node *n)
{
	return n->op == &to_host || n->op == &from_host;
}

static struct node *transfer_node(
	struct arena *a, struct tensor *t, struct tensor *token, bool away)
{
	struct node *n = ARENA_NEW(a, struct node);
	if (!n || !(n->in = ARENA_ARRAY(a, struct tensor *, 1)) ||
		!(n->out = ARENA_ARRAY(a, struct tensor *, 1)))
		return NULL;
	n->id = -1;
	n->name = t->maker ? t->maker->name : t->name;
	n->op = away ? &to_host : &from_host;
	n->phase = away ? NODE_FORWARD : NODE_BACKWARD;
	n->nin = n->nout = 1;
	n->in[0] = away ? t : token;
	n->out[0] = away ? token : t;
	return n;
}

static struct tensor *make_token(struct arena *a, int id, const char *name)
{
	struct tensor *t = ARENA_NEW(a, struct tensor);
	if (t)
		*t = (struct tensor){.id = id, .name = name, .dtype = DT_BOOL, .rank = 1};
	return t;
}

enum status graph_problem_transfers(
	struct arena *a, struct graph_problem *out, int64_t least, double link, struct diag *d)
{
	struct problem *p = out->problem;
	const int ntensor = p->ntensor, nop = p->nop, known = out->graph->ntensor;
	TRY(transfers_add(a, p, least, link, d));
	struct node **node = ARENA_ARRAY(a, struct node *, p->nop);
	struct tensor **tensor = ARENA_ARRAY(a, struct tensor *, p->ntensor);
	int *index = ARENA_ARRAY(a, int, (int64_t)known + p->ntensor - ntensor);
	if (!node || !tensor || !index)
		return diag_nomem(d);
	memcpy(node, out->node, (size_t)nop * sizeof *node);
	memcpy(tensor, out->tensor, (size_t)ntensor * sizeof *tensor);
	memcpy(index, out->index, (size_t)known * sizeof *index);
	for (int t = ntensor; t < p->ntensor; t++) {
		const int id = known + t - ntensor, o = p->tensor[t].producer;
		index[id] = t;
		tensor[t] = make_token(a, id, p->tensor[t].name);
		struct tensor *moved = tensor[p->op[o].offloads - 1];
		if (!tensor[t] || !(node[o] = transfer_node(a, moved, tensor[t], true)) ||
			!(node[o + 1] = transfer_node(a, moved, tensor[t], false)))
			return diag_nomem(d);
	}
	out->node = node;
	out->tensor = tensor;
	out->index = index;
	return ST_OK;
}

/* --- Several lengths --- */

static bool has_resident(const struct graph *g, const struct tensor *x)
{
	for (int i = 0; g && i < g->ntensor; i++)
		if (is_resident(g->tensor[i]) && same_resident(x, g->tensor[i]))
			return true;
	return false;
}

/* The residents of `longest`, of which those that neither graph has are nobody's. */
static enum status keep_places(struct arena *a, const struct graph_problem *longest,
	const struct graph *train, const struct graph *eval, struct graph_problem *out)
{
	const int n = residents_of(longest);
	struct problem *p = ARENA_NEW(a, struct problem);
	struct tensor **tensor = ARENA_ARRAY(a, struct tensor *, n);
	if (!p || !tensor || !(p->tensor = ARENA_ARRAY(a, struct problem_tensor, n)))
		return diag_nomem(eval->diag);
	for (int i = 0; i < n; i++) {
		struct tensor *x = longest->tensor[i];
		struct problem_tensor t = longest->problem->tensor[i];
		if (!has_resident(train, x) && !has_resident(eval, x)) {
			struct tensor *other = ARENA_NEW(a, struct tensor);
			if (!other)
				return diag_nomem(eval->diag);
			*other = *x;
			other->role = TR_ELSEWHERE;
			other->data = NULL;
			x = other;
			if (!(t.name = arena_printf(a, "elsewhere/%s", t.name)))
				return diag_nomem(eval->diag);
		}
		tensor[i] = x;
		p->tensor[i] = t;
	}
	p->ntensor = n;
	*out = (struct graph_problem){.problem = p, .tensor = tensor};
	return ST_OK;
}

enum status problems_from_graphs(struct arena *a, const char *name, const struct graph *train,
	const struct graph *eval, const struct graph_problem *longest,
	struct graph_problem *train_problem, struct graph_problem *eval_problem)
{
	struct graph_problem kept;
	if (longest)
		TRY(keep_places(a, longest, train, eval, &kept));
	TRY(problem_from_graph(a, eval, name, true, longest ? &kept : NULL, eval_problem));
	if (!train)
		return ST_OK;
	/* the evaluation's residents that training does not read have their place in both */
	TRY(problem_from_graph(a, train, name, false, eval_problem, train_problem));
	return problem_from_graph(a, eval, name, true, train_problem, eval_problem);
}
