/* Whether samples that do not count, with which a batch is filled up, change what comes of those
 * that do: only where a node takes samples together (graph/apart.c). In a region of slices a sample
 * has to be a part of its axis; here it need only be known where its elements are. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/loop.h"
#include "graph/slices.h"

struct filling {
	struct graph_apart a; /* its axes are our own */
	int64_t batch;
	/* By tensor that has an axis: so many times it counts through all samples. A reshape of [T,
	 * N] to [T N] makes it T. */
	int64_t *times;
};

/* A constant has the same values for every sample. */
static bool repeats(const struct tensor *whole, const struct tensor *part, int axis, int64_t slices)
{
	const char *w = whole->data, *p = part->data;
	int64_t before = 1;
	for (int k = 0; k < axis; k++)
		before *= whole->dim[k];
	const size_t bytes = (size_t)(tensor_bytes(part) / before);
	bool same = w && p;
	for (int64_t i = 0; same && bytes && i < before * slices; i++)
		same = memcmp(w + (size_t)i * bytes, p + (size_t)(i / slices) * bytes, bytes) == 0;
	return same;
}

static enum status filling_begin(struct filling *l, const struct graph_apart *a, int64_t batch)
{
	const struct graph *g = a->whole;
	*l = (struct filling){.a = *a, .batch = batch};
	l->a.axis = arena_memdup(g->arena, a->axis, (size_t)g->ntensor, sizeof *a->axis);
	l->times = ARENA_ARRAY(g->arena, int64_t, g->ntensor);
	if (!l->a.axis || !l->times)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->ntensor; i++) {
		const struct tensor *t = g->tensor[i], *part = a->part->tensor[i];
		const int axis = apart_axis(t, part, a->slices);
		l->times[i] = 1;
		if (l->a.axis[i] == AXIS_MIXED && axis > 0 && t->role == TR_CONSTANT &&
			repeats(t, part, axis, a->slices))
			l->a.axis[i] = axis;
	}
	return ST_OK;
}

/* The axis of a tensor; AXIS_NONE: it has none, or is not there. */
static int axis_of(const struct filling *l, const struct tensor *t)
{
	return t ? l->a.axis[t->id] : AXIS_NONE;
}

/* None of its rows is of two samples. */
static bool whole_rows(const struct filling *l, const struct tensor *t)
{
	const int axis = axis_of(l, t);
	return axis < 0 || (l->batch > 0 && t->dim[axis] % (l->batch * l->times[t->id]) == 0);
}

/* How many elements stand before the first sample. */
static int64_t elements_before(const struct filling *l, const struct tensor *t)
{
	int64_t n = l->times[t->id];
	for (int k = 0; k < axis_of(l, t); k++)
		n *= t->dim[k];
	return n;
}

static bool view_apart(struct filling *l, const struct node *n)
{
	struct tensor *x = n->in[0], *y = n->out[0];
	if (axis_of(l, x) < 0 || axis_of(l, y) < 0)
		return axis_of(l, x) == AXIS_NONE && axis_of(l, y) == AXIS_NONE;
	const int64_t wanted = elements_before(l, x), has = elements_before(l, y);
	l->times[y->id] = has ? wanted / has : 0;
	return has && wanted % has == 0 && l->times[y->id] > 0;
}

static bool all_at(const struct filling *l, int n, struct tensor *const *t, int axis)
{
	bool at = true;
	for (int i = 0; i < n; i++)
		at &= axis_of(l, t[i]) == AXIS_NONE || axis_of(l, t[i]) == axis;
	return at;
}

static bool apart_here(const struct filling *l, int i, int64_t times)
{
	const struct node *n = l->a.whole->node[i];
	const int axis = axis_of(l, n->out[0]);
	const bool together = n->op->traits & OP_COUNTED;
	if (together || (n->op->traits & OP_PLACED) || n->op->apart == APART_PLACED)
		return axis >= AXIS_NONE && all_at(l, n->nin, n->in, axis) &&
		       all_at(l, n->nout, n->out, axis) && (!together || (axis == 0 && times == 1));
	if (n->op->apart == APART_SECOND)
		return axis_of(l, n->in[0]) == 1 && times == 1;
	return apart_node(&l->a, i);
}

/* --- A loop that is one node: all of its body's nodes are --- */

/* A body's tensor t has samples where operand x of the loop's node has them, which is slices of it
 * or all of it. As an input of the body it gets the operand's times; as an output it gives them. */
static bool same_samples(struct filling *l, struct filling *inside, const struct tensor *x,
	const struct tensor *t, bool slices, bool output)
{
	const int axis = axis_of(l, x), in = axis_of(inside, t);
	if (axis < 0 || in < 0)
		return axis == in;
	if (output)
		l->times[x->id] = inside->times[t->id];
	else
		inside->times[t->id] = l->times[x->id];
	return axis == in + slices;
}

static bool keeps_apart(struct filling *l, int i);

static bool body_apart(struct filling *l, const struct node *n, struct filling *inside)
{
	const struct loop_body *b = &node_loop(n)->body[0];
	const struct graph *g = b->graph;
	bool apart = true;
	for (int k = 0; k < g->ninput; k++)
		apart = apart && same_samples(l, inside, n->in[k], g->input[k],
					 b->in[k].kind == LOOP_SLICE, false);
	for (int i = 0; i < g->nnode && apart; i++)
		apart = keeps_apart(inside, i);
	for (int k = 0; k < g->noutput; k++)
		apart = apart && same_samples(l, inside, n->out[k], g->output[k],
					 b->out[k].kind == LOOP_SLICE, true);
	for (int k = 0; k < node_loop(n)->ncarry; k++)
		apart = apart && (axis_of(l, n->in[k]) < 0 ||
					 l->times[n->in[k]->id] == l->times[n->out[k]->id]);
	return apart;
}

static bool loop_apart(struct filling *l, int i)
{
	const struct node *n = l->a.whole->node[i];
	const struct loop *whole = node_loop(n), *part = node_loop(l->a.part->node[i]);
	struct filling inside;
	struct graph_apart a;
	return whole->turns == part->turns &&
	       graph_apart(whole->body[0].graph, part->body[0].graph, l->a.slices, l->a.lower,
		       &a) == ST_OK &&
	       a.alike && filling_begin(&inside, &a, l->batch) == ST_OK &&
	       body_apart(l, n, &inside);
}

/* The node keeps samples that do not count to themselves; where its outputs have them is noted. */
static bool keeps_apart(struct filling *l, int i)
{
	if (node_loop(l->a.whole->node[i]))
		return loop_apart(l, i);
	const struct node *n = l->a.whole->node[i];
	int64_t times = 0;
	bool apart = true;
	for (int k = 0; k < n->nin; k++) {
		if (axis_of(l, n->in[k]) < 0)
			continue;
		apart &= whole_rows(l, n->in[k]);
		apart &= !times || times == l->times[n->in[k]->id];
		times = l->times[n->in[k]->id];
	}
	times = times ? times : 1;
	if (n->op->apart == APART_SHAPE) {
		apart = apart && view_apart(l, n);
	} else {
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				l->times[n->out[k]->id] = times;
		apart = apart && apart_here(l, i, times);
	}
	for (int k = 0; k < n->nout; k++)
		apart = apart && whole_rows(l, n->out[k]);
	return apart;
}

bool graph_node_makes(const struct node *n, const bool *needed)
{
	bool made = false;
	for (int k = 0; k < n->nout; k++)
		made |= n->out[k] && needed[n->out[k]->id];
	return made;
}

bool *graph_behind(const struct graph *g, int noutput, struct tensor *const *output)
{
	bool *needed = ARENA_ARRAY(g->arena, bool, g->ntensor);
	for (int i = 0; needed && i < noutput; i++)
		needed[output[i]->id] = true;
	for (int i = g->nnode - 1; needed && i >= 0; i--) {
		const struct node *n = g->node[i];
		const bool made = graph_node_makes(n, needed);
		for (int k = 0; made && k < n->nin; k++)
			if (n->in[k])
				needed[n->in[k]->id] = true;
		if (made && n->when)
			needed[n->when->id] = true;
	}
	return needed;
}

enum status graph_mixed(const struct graph_apart *a, int noutput, struct tensor *const *output,
	struct graph_mixed *out)
{
	const struct graph *g = a->whole;
	const bool *needed = graph_behind(g, noutput, output);
	struct filling l;
	*out = (struct graph_mixed){0};
	TRY(filling_begin(&l, a, graph_rows(g)));
	if (!needed)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->ninput; i++) {
		const struct tensor *x = g->input[i];
		if (needed[x->id] && x->rank > 0 && (axis_of(&l, x) != 0 || !whole_rows(&l, x)))
			out->tensor = x;
	}
	for (int i = 0; i < g->nnode && !out->tensor && !out->node; i++)
		if (graph_node_makes(g->node[i], needed) && !keeps_apart(&l, i))
			out->node = g->node[i];
	for (int i = 0; i < noutput && !out->tensor && !out->node; i++)
		if (axis_of(&l, output[i]) >= 0 && l.times[output[i]->id] != 1)
			out->tensor = output[i];
	return ST_OK;
}
