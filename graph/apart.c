/* Which axis of a tensor counts samples is seen where the same model is imported for two sizes of a
 * batch: it is as many times as long. Whether a node treats samples apart along it is said by its
 * record (enum op_apart). */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/slices.h"

/* --- The same nodes --- */

static bool same_tensor(const struct tensor *a, const struct tensor *b)
{
	return !a == !b && (!a || (a->id == b->id && a->role == b->role && a->dtype == b->dtype));
}

static bool same_node(const struct node *a, const struct node *b)
{
	bool same = a->op == b->op && a->nin == b->nin && a->nout == b->nout &&
		    same_tensor(a->when, b->when);
	for (int i = 0; same && i < a->nin; i++)
		same = same_tensor(a->in[i], b->in[i]);
	for (int k = 0; same && k < a->nout; k++)
		same = same_tensor(a->out[k], b->out[k]);
	return same;
}

static bool same_graph(const struct graph *a, const struct graph *b)
{
	bool same = a->nnode == b->nnode && a->ntensor == b->ntensor;
	for (int i = 0; same && i < a->nnode; i++)
		same = same_node(a->node[i], b->node[i]);
	return same;
}

static bool same_attr(const struct attr *a, const struct attr *b)
{
	if (a == b)
		return true;
	if (strcmp(a->name, b->name) != 0 || a->kind != b->kind)
		return false;
	switch (a->kind) {
	case ATTR_INT:
		return a->i == b->i;
	case ATTR_FLOAT:
		return a->f == b->f;
	case ATTR_STRING:
		return strcmp(a->s, b->s) == 0;
	case ATTR_INTS:
		return a->n == b->n &&
		       (!a->n || !memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints));
	default:
		return false;
	}
}

/* Lists of a number for each axis, of which `axis` is another one's in a slice. */
static bool same_beside(const struct attr *a, const struct attr *b, int axis)
{
	bool same = !strcmp(a->name, b->name) && a->kind == ATTR_INTS && b->kind == ATTR_INTS &&
		    a->n == b->n;
	for (int k = 0; same && k < a->n; k++)
		same = k == axis || a->ints[k] == b->ints[k];
	return same;
}

/* A view's shape, and what Expand expands to, are the batch's; so is how long it is uncut. */
static bool same_settings(const struct node *a, const struct node *b, int axis)
{
	bool same = a->nattr == b->nattr;
	if (a->op->apart == APART_SHAPE || a->op->apart == APART_BROADCAST)
		return true;
	for (int i = 0; same && i < a->nattr; i++)
		same = same_attr(&a->attr[i], &b->attr[i]) ||
		       (a->op->apart == APART_UNCUT && same_beside(&a->attr[i], &b->attr[i], axis));
	return same;
}

/* Input k says no more than what output 0's shape does. */
static bool is_shape(const struct node *n, int k)
{
	const struct tensor *t = n->in[k];
	const enum op_apart apart = n->op->apart;
	return k > 0 && t && t->role == TR_CONSTANT && t->dtype == DT_I64 &&
	       (apart == APART_SHAPE || apart == APART_UNCUT ||
		       (apart == APART_FIRST && n->op->known >> k & 1) ||
		       (apart == APART_BROADCAST && dtype_is_real(n->in[0]->dtype)));
}

/* --- Axes --- */

int apart_axis(const struct tensor *whole, const struct tensor *part, int64_t slices)
{
	int axis = AXIS_NONE;
	if (whole->rank != part->rank)
		return AXIS_MIXED;
	for (int k = 0; k < whole->rank; k++) {
		if (whole->dim[k] == part->dim[k])
			continue;
		if (axis != AXIS_NONE || whole->dim[k] != part->dim[k] * slices)
			return AXIS_MIXED;
		axis = k;
	}
	return axis;
}

/* A constant of no axis has the same values; one that counts samples, the same in every slice. */
static bool same_values(
	const struct tensor *whole, const struct tensor *part, int axis, int64_t slices)
{
	const char *values = whole->data;
	const size_t bytes = (size_t)tensor_bytes(part);
	if (whole->role != TR_CONSTANT || !values || !part->data || bytes == 0)
		return true;
	if (axis > 0)
		return false;
	for (int64_t s = 0; s < (axis == 0 ? slices : 1); s++)
		if (memcmp(values + (size_t)s * bytes, part->data, bytes) != 0)
			return false;
	return true;
}

static void find_axes(struct graph_apart *a)
{
	const struct graph *whole = a->whole, *part = a->part;
	for (int i = 0; i < whole->ntensor; i++) {
		const struct tensor *t = whole->tensor[i], *p = part->tensor[i];
		a->axis[i] = apart_axis(t, p, a->slices);
		if (a->axis[i] >= AXIS_NONE && !same_values(t, p, a->axis[i], a->slices))
			a->axis[i] = AXIS_MIXED;
	}
}

/* --- Nodes --- */

struct axes {
	const struct node *n;
	const int *axis; /* by tensor */
	int in, out;     /* of input 0 and output 0 */
	int inputs;      /* that have one */
};

static bool is_at(const struct axes *x, const struct tensor *t, int axis)
{
	return !t || x->axis[t->id] == AXIS_NONE || x->axis[t->id] == axis;
}

static bool apart_first(const struct axes *x)
{
	bool apart = x->in == 0 && x->out == 0 && x->n->in[0]->dim[0] == x->n->out[0]->dim[0];
	for (int i = 0; i < x->n->nin; i++)
		apart &= is_shape(x->n, i) || is_at(x, x->n->in[i], 0);
	return apart;
}

static bool apart_broadcast(const struct axes *x)
{
	bool apart = true;
	for (int i = 0; i < x->n->nin; i++)
		if (x->n->in[i] && !is_shape(x->n, i))
			apart &= is_at(
				x, x->n->in[i], x->out - x->n->out[0]->rank + x->n->in[i]->rank);
	return apart;
}

static int64_t before(const struct tensor *t, int axis)
{
	int64_t n = 1;
	for (int k = 0; k < axis; k++)
		n *= t->dim[k];
	return n;
}

static bool apart_shape(const struct axes *x)
{
	return x->in >= 0 && before(x->n->in[0], x->in) == before(x->n->out[0], x->out);
}

static int named_axis(const struct axes *x)
{
	const int64_t axis = node_int(x->n, "axis", 1);
	return (int)(axis < 0 ? axis + x->n->in[0]->rank : axis);
}

static bool apart_beside(const struct axes *x)
{
	bool apart = x->in >= 0 && x->in != named_axis(x);
	for (int i = 0; i < x->n->nin; i++)
		apart &= x->axis[x->n->in[i]->id] == x->in;
	for (int k = 0; k < x->n->nout; k++)
		apart &= is_at(x, x->n->out[k], x->in);
	return apart;
}

static bool apart_uncut(const struct axes *x)
{
	const struct attr *step = node_attr(x->n, "cut_step");
	return step && x->in >= 0 && x->in == x->out && step->ints[x->in] == 1 &&
	       x->n->in[0]->dim[x->in] == x->n->out[0]->dim[x->out];
}

/* Along a sum both would have it; along rows or columns one has; else both, as they broadcast. */
static bool apart_product(const struct axes *x)
{
	return x->inputs == 1 || (x->out < x->n->out[0]->rank - 2 && apart_broadcast(x));
}

static bool by_rule(const struct axes *x)
{
	const struct op_def *op = x->n->op;
	switch (op->apart) {
	case APART_FIRST:
		return apart_first(x);
	case APART_BROADCAST:
		return apart_broadcast(x);
	case APART_SHAPE:
		return apart_shape(x);
	case APART_PASSES:
		return x->inputs == 1;
	case APART_BEFORE:
		return x->in >= 0 && x->inputs == 1 && x->in == x->out && x->in < named_axis(x);
	case APART_BESIDE:
		return apart_beside(x);
	case APART_UNCUT:
		return apart_uncut(x);
	case APART_PRODUCT:
		return apart_product(x);
	case APART_NEVER:
		return (op->traits & OP_POINTWISE) && apart_broadcast(x);
	case APART_PLACED:
	case APART_SECOND:
		return false;
	}
	return false;
}

/* By tensor: one past the last node that reads it; nnode + 1 of an output. */
static int *last_readers(const struct graph *g)
{
	int *last = ARENA_ARRAY(g->arena, int, g->ntensor);
	for (int i = 0; last && i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k])
				last[g->node[i]->in[k]->id] = i + 1;
	for (int i = 0; last && i < g->noutput; i++)
		last[g->output[i]->id] = g->nnode + 1;
	return last;
}

bool apart_node(const struct graph_apart *a, int i)
{
	const struct node *n = a->whole->node[i];
	struct axes x = {.n = n, .axis = a->axis, .in = AXIS_NONE, .out = AXIS_NONE};
	int outputs = 0, alone = 0;
	for (int k = 0; k < n->nin; k++) {
		if (!n->in[k] || is_shape(n, k))
			continue;
		if (a->axis[n->in[k]->id] == AXIS_MIXED)
			return false;
		x.inputs += a->axis[n->in[k]->id] != AXIS_NONE;
	}
	for (int k = 0; k < n->nout; k++) {
		if (n->out[k] && a->axis[n->out[k]->id] == AXIS_MIXED)
			return false;
		if (n->out[k] && (k == 0 || a->last[n->out[k]->id])) { /* that anyone reads */
			alone += a->axis[n->out[k]->id] == AXIS_NONE;
			outputs++;
		}
	}
	if (n->nin && n->in[0])
		x.in = a->axis[n->in[0]->id];
	if (n->out[0])
		x.out = a->axis[n->out[0]->id];
	if (alone == outputs) /* it has to do with no samples, or with all */
		return x.inputs == 0 && !(n->op->traits & (OP_UPDATE | OP_ONCE));
	return alone == 0 && x.out >= 0 && same_settings(n, a->part->node[i], x.in) &&
	       by_rule(&x) &&
	       (!n->op->apart_if || n->op->apart_if(a->part->node[i], x.in, a->lower));
}

enum status graph_apart(const struct graph *whole, const struct graph *part, int64_t slices,
	const struct lower_options *lower, struct graph_apart *out)
{
	*out = (struct graph_apart){.whole = whole, .part = part, .slices = slices, .lower = lower};
	out->last = last_readers(whole);
	out->node = ARENA_ARRAY(whole->arena, bool, whole->nnode);
	out->axis = ARENA_ARRAY(whole->arena, int, whole->ntensor);
	if (!out->node || !out->axis || !out->last)
		return diag_nomem(whole->diag);
	out->alike = same_graph(whole, part);
	if (!out->alike)
		return ST_OK;
	find_axes(out);
	for (int i = 0; i < whole->nnode; i++)
		out->node[i] = !whole->node[i]->when && apart_node(out, i);
	return ST_OK;
}

/* --- Regions --- */

/* Of tensors that count samples and are made by node i; views have none. */
static int64_t made_bytes(const struct graph_apart *a, int i)
{
	const struct node *n = a->whole->node[i];
	int64_t bytes = 0;
	for (int k = 0; k < n->nout && !(n->op->traits & OP_VIEW); k++)
		if (n->out[k] && a->axis[n->out[k]->id] >= 0)
			bytes += tensor_bytes(n->out[k]);
	return bytes;
}

/* Bytes that cross the border behind node `to` - 1 of nodes [from, to); -1: what crosses cannot be
 * cut there. */
static int64_t border(const struct graph_apart *a, const int *last, int from, int to)
{
	int64_t bytes = 0;
	for (int i = from; i < to; i++) {
		const struct node *n = a->whole->node[i];
		for (int k = 0; k < n->nout; k++) {
			const struct tensor *t = n->out[k];
			if (!t || last[t->id] <= to || a->axis[t->id] == AXIS_NONE)
				continue;
			if (a->axis[t->id] != 0)
				return -1;
			bytes += tensor_bytes(t);
		}
	}
	return bytes;
}

/* What node i reads from before node `from` can be cut. */
static bool can_enter(const struct graph_apart *a, int from, int i)
{
	const struct node *n = a->whole->node[i];
	for (int k = 0; k < n->nin; k++) {
		const struct tensor *t = n->in[k];
		if (t && (!t->maker || t->maker->id < from) && a->axis[t->id] > 0)
			return false;
	}
	return true;
}

/* The nodes in a row that make most, up to where what crosses can be cut. */
static void longest_run(const struct graph_apart *a, const int *last, int *from, int *to)
{
	int64_t most = 0, bytes = 0;
	for (int i = 0, begin = 0; i < a->whole->nnode; i++) {
		if (!a->node[i] || !can_enter(a, begin, i)) {
			begin = i + 1;
			bytes = 0;
			continue;
		}
		bytes += made_bytes(a, i);
		if (bytes == 0 || bytes < most || (bytes == most && *from != begin) ||
			border(a, last, begin, i + 1) <= 0)
			continue;
		most = bytes;
		*from = begin;
		*to = i + 1;
	}
}

/* How much of all that the nodes make lies before an end, at least, for the next region to be worth
 * a look. */
static const double SHARE[REGIONS_MAX - 1] = {0.25, 0.5, 0.75, 0.95};

enum status graph_regions(const struct graph_apart *a, struct graph_region out[REGIONS_MAX], int *n)
{
	const int *last = last_readers(a->whole);
	int from = 0, to = 0;
	int64_t widest = 0;
	double all = 0, made = 0;
	*n = 0;
	if (!last)
		return diag_nomem(a->whole->diag);
	longest_run(a, last, &from, &to);
	for (int i = from; i < to; i++)
		all += (double)made_bytes(a, i);
	for (int end = from + 1; end <= to; end++) {
		const int64_t bytes = border(a, last, from, end);
		made += (double)made_bytes(a, end - 1);
		widest = bytes > widest ? bytes : widest;
		if (bytes < 0)
			continue;
		const bool narrow = *n < REGIONS_MAX - 1 && bytes > 0 && bytes <= widest / 2 &&
				    made >= SHARE[*n] * all;
		if (!narrow && end != to)
			continue;
		out[(*n)++] = (struct graph_region){from, end, a->slices};
		widest = bytes;
	}
	return ST_OK;
}

bool graph_region_until(const struct graph_apart *a, const char *node, struct graph_region *out)
{
	const int *last = last_readers(a->whole);
	int from = 0, to = 0, end = 0;
	if (!last)
		return false;
	longest_run(a, last, &from, &to);
	for (int i = from; i < to; i++)
		if (strcmp(a->whole->node[i]->name, node) == 0)
			end = i + 1;
	*out = (struct graph_region){from, end, a->slices};
	return end && border(a, last, from, end) > 0;
}

const char *graph_region_end(const struct graph_apart *a, const struct graph_region *r)
{
	return a->whole->node[r->to - 1]->name;
}
