/* Control flow: If, Loop, Scan, SequenceMap. What decides is known when a model is compiled (or the
 * model is refused), so that a branch is the nodes of one graph and a loop those of its body, once
 * for each turn. */
#include <inttypes.h>
#include <stdio.h>

#include "graph/loop.h"
#include "ops/by_data.h"
#include "ops/kept_loop.h"
#include "ops/unroll.h"

static enum status build_branch(
	const struct expansion *x, bool holds, struct tensor *when, struct value *out)
{
	const struct body *b = expansion_body(x, holds ? "then_branch" : "else_branch");
	struct tensor *const around = x->g->when;
	if (!b)
		return ST_INVALID;
	x->g->when = when;
	const enum status st = b->build(b, holds ? "then" : "else", 0, NULL, x->nout, out);
	x->g->when = around;
	return st;
}

/* Output k, by what the branches give. */
static enum status choose(
	const struct expansion *x, int k, struct tensor *when, const struct value *of[2])
{
	const struct value *one = &of[0][k], *other = &of[1][k];
	if (one->kind != VALUE_TENSOR || other->kind != VALUE_TENSOR)
		return node_fail(x->g, x->node,
			"the condition is not known when compiling, and a step works on tensors",
			"output %d of its branches is a sequence or an optional value", k);
	struct tensor *in[] = {NULL, one->tensor, other->tensor};
	char shape[2][200];
	if (in[1]->dtype != in[2]->dtype || !tensor_same_shape(in[1], in[2]))
		return node_fail(x->g, x->node,
			"where data decide, both branches give one type and one shape: pad the "
			"smaller",
			"its output %d is %s%s in then_branch and %s%s in else_branch", k,
			dtype_name(in[1]->dtype), tensor_shape_text(in[1], shape[0]),
			dtype_name(in[2]->dtype), tensor_shape_text(in[2], shape[1]));
	x->out[k].kind = VALUE_TENSOR;
	return by_data_choose(x, when, in[1], in[2], &x->out[k].tensor);
}

/* The condition depends on data: both branches, of which a step runs the one that it says. */
static enum status if_decided_by_data(const struct expansion *x, struct tensor *condition)
{
	static const char *const word[] = {"then", "else"};
	struct value *out = ARENA_ARRAY(x->g->arena, struct value, 2 * x->nout);
	const struct node *n;
	if (!out)
		return diag_nomem(x->g->diag);
	TRY(by_data_branch(x, condition, word, &n));
	for (int k = 0; k < 2; k++)
		TRY(build_branch(x, k == 0, n->out[k], out + k * x->nout));
	const struct value *of[] = {out, out + x->nout};
	for (int k = 0; k < x->nout; k++)
		TRY(choose(x, k, n->out[0], of));
	return ST_OK;
}

static enum status if_expand(struct expansion *x)
{
	struct tensor *condition = x->in[0].kind == VALUE_TENSOR ? x->in[0].tensor : NULL;
	if (!condition || (condition->role == TR_CONSTANT && condition->numel != 1))
		return node_fail(x->g, x->node, NULL, "its condition is not one BOOL");
	return condition->role != TR_CONSTANT
		       ? if_decided_by_data(x, condition)
		       : build_branch(x, tensor_real(condition, 0) != 0, x->g->when, x->out);
}

/* --- What loops share: values that go around, tensors that are collected --- */

struct unroll {
	struct expansion *x;
	const struct body *body;
	int lead;               /* inputs of the body before the values that go around */
	int nvalue;             /* values that go around */
	int nscan;              /* outputs that are collected */
	int64_t turns;          /* so far */
	int64_t most;           /* of a Loop; INT64_MAX: not said */
	struct tensor *holds;   /* where data end it: whether the next turn runs; NULL: it does */
	struct value *in, *out; /* the body's */
	struct collected {
		struct tensor **item;
		int64_t cap;
	} * scan;
};

static enum status unroll_begin(struct unroll *u, int condition)
{
	struct graph *g = u->x->g;
	u->nscan = u->body->nout - condition - u->nvalue;
	if (u->nscan < 0 || u->nvalue < 0 || u->x->nout > u->nvalue + u->nscan)
		return node_fail(g, u->x->node, NULL,
			"its body has %d inputs and %d outputs, which does not fit the node's",
			u->body->nin, u->body->nout);
	u->in = ARENA_ARRAY(g->arena, struct value, u->body->nin);
	u->out = ARENA_ARRAY(g->arena, struct value, u->body->nout);
	u->scan = ARENA_ARRAY(g->arena, struct collected, u->nscan);
	return u->in && u->out && u->scan ? ST_OK : diag_nomem(g->diag);
}

static enum status collect(struct unroll *u, int k, const struct value *v)
{
	struct graph *g = u->x->g;
	struct collected *c = &u->scan[k];
	if (v->kind != VALUE_TENSOR)
		return node_fail(g, u->x->node, NULL,
			"output %d of its body is collected, but is no tensor", k);
	if (u->turns == c->cap) {
		int64_t wider = c->cap ? 2 * c->cap : 16;
		struct tensor **item = ARENA_ARRAY(g->arena, struct tensor *, wider);
		if (!item)
			return diag_nomem(g->diag);
		if (c->cap)
			memcpy(item, c->item, (size_t)c->cap * sizeof *item);
		*c = (struct collected){item, wider};
	}
	c->item[u->turns] = v->tensor;
	return ST_OK;
}

/* One turn; the body's first `condition` outputs are left to the caller. */
static enum status unroll_turn(struct unroll *u, int condition)
{
	char label[24];
	snprintf(label, sizeof label, "%" PRId64, u->turns);
	TRY(u->body->build(u->body, label, u->body->nin, u->in, u->body->nout, u->out));
	for (int i = 0; i < u->nvalue; i++)
		u->in[u->lead + i] = u->out[condition + i];
	for (int k = 0; k < u->nscan; k++)
		TRY(collect(u, k, &u->out[condition + u->nvalue + k]));
	u->turns++;
	return ST_OK;
}

/* What a loop of no turns has collected: the file must say its shape. */
static enum status collected_nothing(
	struct unroll *u, int condition, int k, int axis, struct tensor **out)
{
	struct graph *g = u->x->g;
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX + 1];
	const void *data = arena_alloc(g->arena, 1, 1);
	if (!u->body->declared(u->body, condition + u->nvalue + k, &type, &rank, dim) ||
		rank == RANK_MAX || axis > rank)
		return node_fail(g, u->x->node, "state the shape of the body's output",
			"makes no turn, and the shape of what it would collect is not known");
	memmove(dim + axis + 1, dim + axis, (size_t)(rank - axis) * sizeof *dim);
	dim[axis] = 0;
	*out = data ? graph_constant(g, "", type, rank + 1, dim, data) : NULL;
	return *out ? ST_OK : g->failed != ST_OK ? g->failed : diag_nomem(g->diag);
}

/* Collected tensor k, stacked along an axis of its own. */
static enum status unroll_collected(
	struct unroll *u, int condition, int k, int64_t axis, bool backwards, struct value *out)
{
	struct tensor **item = u->scan[k].item;
	int at;
	*out = (struct value){.kind = VALUE_TENSOR};
	if (u->turns == 0)
		return collected_nothing(u, condition, k, axis > 0 ? (int)axis : 0, &out->tensor);
	TRY(unroll_axis(u->x, axis, item[0]->rank + 1, &at));
	for (int64_t i = 0, j = u->turns - 1; backwards && i < j; i++, j--) {
		struct tensor *t = item[i];
		item[i] = item[j];
		item[j] = t;
	}
	return unroll_join(u->x, (int)u->turns, item, at, true, &out->tensor);
}

/* --- Loop --- */

/* Data say whether the next turn runs: c. All that there may be are in the graph. */
static enum status end_by_data(struct unroll *u, struct tensor *c)
{
	struct expansion *x = u->x;
	if (u->most == INT64_MAX)
		return node_fail(x->g, x->node,
			"give it a trip count, its first input: the most turns that there may be",
			"data say when it ends ('%s'), and nothing how many turns there may be",
			c->name);
	if (u->nscan > 0)
		return node_fail(x->g, x->node,
			"let a tensor for the most turns go around, and write each turn's row "
			"into it",
			"data say when it ends ('%s'), and so how long what it collects is",
			c->name);
	u->holds = c;
	return expansion_reserve(x, u->most > u->turns ? u->most - u->turns : 0, u->body->size + 3);
}

static enum status loop_begin(struct unroll *u, bool *go)
{
	struct expansion *x = u->x;
	const struct tensor *t;
	u->most = INT64_MAX;
	*go = true;
	u->body = expansion_body(x, "body");
	if (!u->body)
		return ST_INVALID;
	u->lead = 2;
	u->nvalue = u->body->nin - 2;
	TRY(unroll_begin(u, 1));
	if (x->nin > u->body->nin)
		return node_fail(
			x->g, x->node, NULL, "has %d inputs, its body %d", x->nin, u->body->nin);
	if (x->nin > 0 && x->in[0].kind != VALUE_NONE) {
		TRY(expansion_known(x, 0, "the trip count", &t));
		u->most = tensor_int(t, 0);
	}
	if (x->nin > 1 && x->in[1].kind == VALUE_TENSOR && x->in[1].tensor->role != TR_CONSTANT) {
		TRY(end_by_data(u, x->in[1].tensor));
	} else if (x->nin > 1 && x->in[1].kind != VALUE_NONE) {
		TRY(expansion_known(x, 1, "the condition", &t));
		*go = tensor_real(t, 0) != 0;
	}
	for (int i = 2; i < x->nin; i++)
		u->in[i] = x->in[i];
	return ST_OK;
}

/* The next turn hands on, in the place of what it makes, what went into it, where it did not run.
 */
static enum status choose_values(struct unroll *u, struct tensor *when, const struct value *before)
{
	struct expansion *x = u->x;
	char shape[2][200];
	for (int i = 0; i < u->nvalue; i++) {
		struct value *v = &u->in[u->lead + i];
		if (v->kind != VALUE_TENSOR || before[i].kind != VALUE_TENSOR)
			return node_fail(x->g, x->node, NULL,
				"data end it, and value %d that goes around is no tensor", i);
		struct tensor *one = v->tensor, *other = before[i].tensor;
		if (one->dtype != other->dtype || !tensor_same_shape(one, other))
			return node_fail(x->g, x->node,
				"where data end a loop, what goes around keeps its type and its "
				"shape: pad it",
				"value %d that goes around is %s%s before turn %" PRId64
				" and %s%s after it",
				i, dtype_name(other->dtype), tensor_shape_text(other, shape[0]),
				u->turns, dtype_name(one->dtype), tensor_shape_text(one, shape[1]));
		TRY(by_data_choose(x, when, one, other, &v->tensor));
	}
	return ST_OK;
}

/* A turn that runs where u->holds. */
static enum status turn_by_data(struct unroll *u)
{
	static const char *const word[] = {"on", "ended"};
	struct graph *g = u->x->g;
	struct tensor *const around = g->when;
	struct value *before = arena_memdup(
		g->arena, u->in + u->lead, (size_t)u->nvalue, sizeof *before);
	const struct node *branch;
	if (!before)
		return diag_nomem(g->diag);
	TRY(by_data_branch(u->x, u->holds, word, &branch));
	g->when = branch->out[0];
	const enum status st = unroll_turn(u, 1);
	g->when = around;
	TRY(st);
	TRY(choose_values(u, branch->out[0], before));
	const struct value *c = &u->out[0];
	if (c->kind != VALUE_TENSOR || c->tensor->role == TR_CONSTANT)
		return ST_OK;
	struct tensor *no = unroll_bool(g, false);
	return no ? by_data_choose(u->x, branch->out[0], c->tensor, no, &u->holds) : g->failed;
}

static enum status loop_turn(struct unroll *u, bool *go)
{
	struct expansion *x = u->x;
	struct tensor *turn = unroll_int(x->g, u->turns), *yes = unroll_bool(x->g, true);
	if (!turn || !yes)
		return x->g->failed;
	u->in[0] = (struct value){.kind = VALUE_TENSOR, .tensor = turn};
	u->in[1] = (struct value){.kind = VALUE_TENSOR, .tensor = yes};
	struct tensor *const held = u->holds;
	TRY(held ? turn_by_data(u) : unroll_turn(u, 1));
	struct tensor *t = u->out[0].kind == VALUE_TENSOR ? u->out[0].tensor : NULL;
	if (!t || t->numel != 1 || t->dtype != DT_BOOL)
		return node_fail(x->g, x->node, NULL,
			"what says after turn %" PRId64 " whether it goes on is not one BOOL",
			u->turns);
	if (t->role != TR_CONSTANT)
		return held || u->turns == u->most ? ST_OK : end_by_data(u, t);
	*go = tensor_real(t, 0) != 0;
	return ST_OK;
}

/* Values of a node, from tensors. */
static void set_values(struct value *out, int n, struct tensor *const *t)
{
	for (int k = 0; k < n; k++)
		out[k] = (struct value){.kind = VALUE_TENSOR, .tensor = t[k]};
}

/* The loop as one node, where it is to be one and can. */
static enum status loop_keep(struct unroll *u, int64_t turns, bool *done)
{
	struct expansion *x = u->x;
	struct kept_loop k = {.x = x,
		.body = u->body,
		.turns = turns,
		.lead = 2,
		.condition = 1,
		.ncarry = u->nvalue,
		.ncollect = u->nscan,
		.carry = u->in + 2,
		.out = ARENA_ARRAY(x->g->arena, struct tensor *, u->nvalue + u->nscan)};
	if (!k.out)
		return diag_nomem(x->g->diag);
	TRY(kept_loop_make(&k, done));
	if (*done)
		set_values(x->out, x->nout, k.out);
	return ST_OK;
}

static enum status loop_expand(struct expansion *x)
{
	struct unroll u = {.x = x};
	bool go, done = false;
	TRY(loop_begin(&u, &go));
	if (go && !u.holds && u.most != INT64_MAX && kept_loop_wanted(x, u.most))
		TRY(loop_keep(&u, u.most, &done));
	if (done)
		return ST_OK;
	if (u.most != INT64_MAX && (x->nin < 2 || x->in[1].kind == VALUE_NONE))
		TRY(expansion_reserve(x, u.most > 0 ? u.most : 0, u.body->size));
	while (go && u.turns < u.most)
		TRY(loop_turn(&u, &go));
	for (int k = 0; k < x->nout; k++)
		if (k < u.nvalue)
			x->out[k] = u.in[2 + k];
		else
			TRY(unroll_collected(&u, 1, k - u.nvalue, 0, false, &x->out[k]));
	return ST_OK;
}

/* --- Scan --- */

/* Entry i of a list attribute; 0 where there is no list. */
static enum status listed(const struct expansion *x, const char *name, int i, int n, int64_t *out)
{
	const struct attr *a = node_attr(x->node, name);
	*out = 0;
	if (!a)
		return ST_OK;
	if (a->kind != ATTR_INTS || a->n != n)
		return node_fail(
			x->g, x->node, NULL, "attribute '%s' must list %d numbers", name, n);
	*out = a->ints[i];
	return ST_OK;
}

struct scan {
	struct unroll u;
	int n; /* scanned inputs */
	int64_t turns;
	int *axis;
	bool *backwards;
};

/* Input i of the scanned ones: its axis, direction and length. */
static enum status scan_input(struct scan *s, int i)
{
	struct expansion *x = s->u.x;
	const struct value *v = &x->in[s->u.nvalue + i];
	int64_t axis, direction;
	if (v->kind != VALUE_TENSOR)
		return node_fail(x->g, x->node, NULL, "input %d is no tensor", s->u.nvalue + i);
	TRY(listed(x, "scan_input_axes", i, s->n, &axis));
	TRY(listed(x, "scan_input_directions", i, s->n, &direction));
	TRY(unroll_axis(x, axis, v->tensor->rank, &s->axis[i]));
	const int64_t length = v->tensor->dim[s->axis[i]];
	if (i > 0 && length != s->turns)
		return node_fail(x->g, x->node, NULL,
			"its scanned inputs have different lengths, %" PRId64 " and %" PRId64,
			s->turns, length);
	s->turns = length;
	s->backwards[i] = direction != 0;
	return ST_OK;
}

static enum status scan_begin(struct scan *s)
{
	struct expansion *x = s->u.x;
	struct unroll *u = &s->u;
	u->body = expansion_body(x, "body");
	if (!u->body)
		return ST_INVALID;
	u->nvalue = x->nin - s->n;
	if (s->n < 1 || s->n > x->nin || u->body->nin != x->nin)
		return node_fail(x->g, x->node, NULL,
			"has %d inputs and num_scan_inputs=%d, its body %d inputs", x->nin, s->n,
			u->body->nin);
	TRY(unroll_begin(u, 0));
	s->axis = ARENA_ARRAY(x->g->arena, int, s->n);
	s->backwards = ARENA_ARRAY(x->g->arena, bool, s->n);
	if (!s->axis || !s->backwards)
		return diag_nomem(x->g->diag);
	for (int i = 0; i < s->n; i++)
		TRY(scan_input(s, i));
	for (int i = 0; i < u->nvalue; i++)
		u->in[i] = x->in[i];
	return ST_OK;
}

/* Input i's slices. */
static enum status scan_cut(struct scan *s, int i, struct tensor ***out)
{
	struct expansion *x = s->u.x;
	int64_t *ones = ARENA_ARRAY(x->g->arena, int64_t, s->turns);
	TRY(expansion_reserve(x, s->turns, s->u.body->size + 1));
	if (!ones)
		return diag_nomem(x->g->diag);
	for (int64_t k = 0; k < s->turns; k++)
		ones[k] = 1;
	return unroll_cut(
		x, x->in[s->u.nvalue + i].tensor, s->axis[i], (int)s->turns, ones, true, out);
}

static enum status scan_output(struct unroll *u, int k)
{
	int64_t axis, direction;
	TRY(listed(u->x, "scan_output_axes", k, u->nscan, &axis));
	TRY(listed(u->x, "scan_output_directions", k, u->nscan, &direction));
	return unroll_collected(u, 0, k, axis, direction != 0, &u->x->out[u->nvalue + k]);
}

/* x with axis `from` in the place `to`. */
static struct tensor *move_axis(struct expansion *x, struct tensor *t, int from, int to)
{
	int64_t perm[RANK_MAX];
	int n = 0;
	if (from == to || !t)
		return t;
	for (int i = 0; i < t->rank; i++)
		if (i != from)
			perm[n++] = i;
	memmove(perm + to + 1, perm + to, (size_t)(n - to) * sizeof *perm);
	perm[to] = from;
	const struct attr attr = data_ints(x->g, "perm", t->rank, perm);
	return graph_op(x->g, op_by_role(x->g->table, ROLE_TRANSPOSE)->name, 1, &t, 1, &attr);
}

/* As loop_keep. */
static enum status scan_keep(struct scan *s, bool *done)
{
	struct unroll *u = &s->u;
	struct expansion *x = u->x;
	struct arena *a = x->g->arena;
	const int node = x->g->nnode, tensor = x->g->ntensor, nout = u->nvalue + u->nscan;
	struct kept_loop k = {.x = x,
		.body = u->body,
		.turns = s->turns,
		.ncarry = u->nvalue,
		.nscan = s->n,
		.ncollect = u->nscan,
		.carry = u->in,
		.scan_backwards = s->backwards};
	bool *backwards = ARENA_ARRAY(a, bool, u->nscan);
	k.scan = ARENA_ARRAY(a, struct tensor *, s->n);
	k.out = ARENA_ARRAY(a, struct tensor *, nout);
	if (!k.scan || !k.out || !backwards)
		return diag_nomem(x->g->diag);
	for (int i = 0; i < u->nscan; i++) {
		int64_t direction;
		TRY(listed(x, "scan_output_directions", i, u->nscan, &direction));
		backwards[i] = direction != 0;
	}
	k.collect_backwards = backwards;
	for (int i = 0; i < s->n; i++)
		k.scan[i] = move_axis(x, x->in[u->nvalue + i].tensor, s->axis[i], 0);
	TRY(x->g->failed);
	TRY(kept_loop_make(&k, done));
	if (!*done) {
		loop_forget(x->g, node, tensor);
		return ST_OK;
	}
	for (int i = 0; i < u->nscan; i++) {
		struct tensor **t = &k.out[u->nvalue + i];
		int64_t axis;
		int at;
		TRY(listed(x, "scan_output_axes", i, u->nscan, &axis));
		TRY(unroll_axis(x, axis, (*t)->rank, &at));
		*t = move_axis(x, *t, 0, at);
	}
	TRY(x->g->failed);
	set_values(x->out, x->nout, k.out);
	return ST_OK;
}

static enum status scan_unroll(struct scan *s)
{
	struct unroll *u = &s->u;
	struct expansion *x = u->x;
	struct tensor ***slice = ARENA_ARRAY(x->g->arena, struct tensor **, s->n);
	if (!slice)
		return diag_nomem(x->g->diag);
	for (int i = 0; i < s->n; i++)
		TRY(scan_cut(s, i, &slice[i]));
	for (int64_t t = 0; t < s->turns; t++) {
		for (int i = 0; i < s->n; i++)
			u->in[u->nvalue + i] = (struct value){.kind = VALUE_TENSOR,
				.tensor = slice[i][s->backwards[i] ? s->turns - 1 - t : t]};
		TRY(unroll_turn(u, 0));
	}
	for (int k = 0; k < x->nout && k < u->nvalue; k++)
		x->out[k] = u->in[k];
	for (int k = 0; u->nvalue + k < x->nout; k++)
		TRY(scan_output(u, k));
	return ST_OK;
}

static enum status scan_expand(struct expansion *x)
{
	struct scan s = {.u = {.x = x}};
	bool done = false;
	const int64_t count = node_int(x->node, "num_scan_inputs", 0);
	s.n = count < 0 || count > x->nin ? -1 : (int)count;
	TRY(scan_begin(&s));
	if (kept_loop_wanted(x, s.turns))
		TRY(scan_keep(&s, &done));
	return done ? ST_OK : scan_unroll(&s);
}

/* --- SequenceMap --- */

static enum status map_expand(struct expansion *x)
{
	struct unroll u = {.x = x, .body = expansion_body(x, "body")};
	TRY(unroll_input(x, 0));
	if (!u.body)
		return ST_INVALID;
	if (u.body->nin != x->nin)
		return node_fail(
			x->g, x->node, NULL, "has %d inputs, its body %d", x->nin, u.body->nin);
	TRY(unroll_begin(&u, 0));
	TRY(expansion_reserve(x, x->in[0].n, u.body->size + 1));
	for (int t = 0; t < x->in[0].n; t++) {
		for (int i = 0; i < x->nin; i++) {
			u.in[i] = x->in[i];
			if (x->in[i].kind != VALUE_LIST)
				continue;
			if (x->in[i].n != x->in[0].n)
				return node_fail(x->g, x->node, NULL,
					"its sequences have different lengths, %d and %d",
					x->in[0].n, x->in[i].n);
			u.in[i] = (struct value){.kind = VALUE_TENSOR, .tensor = x->in[i].item[t]};
		}
		TRY(unroll_turn(&u, 0));
	}
	for (int k = 0; k < x->nout; k++)
		TRY(unroll_list(x, (int)u.turns, u.scan[k].item, &x->out[k]));
	return ST_OK;
}

const struct op_def ops_control[] = {
	{.name = "If", .since = 1, .min_in = 1, .max_out = -1, .expand = if_expand},
	{.name = "Loop",
		.since = 1,
		.min_in = 0,
		.max_in = -1,
		.max_out = -1,
		.expand = loop_expand},
	{.name = "Scan",
		.since = 9,
		.min_in = 1,
		.max_in = -1,
		.max_out = -1,
		.expand = scan_expand},
	{.name = "SequenceMap",
		.since = 17,
		.min_in = 1,
		.max_in = -1,
		.max_out = -1,
		.expand = map_expand},
	{.name = NULL},
};
