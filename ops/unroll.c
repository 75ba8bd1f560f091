/* Cutting and joining tensors for what is unrolled. */
#include <inttypes.h>

#include "ops/unroll.h"

enum status unroll_axis(const struct expansion *x, int64_t axis, int rank, int *out)
{
	return node_axis(x->g, x->node, axis, rank, out);
}

enum status unroll_input(const struct expansion *x, int i)
{
	return x->in[i].kind == VALUE_LIST
		       ? ST_OK
		       : node_fail(x->g, x->node, NULL, "input %d is no sequence", i);
}

static struct tensor *known_scalar(struct graph *g, enum dtype t, int64_t v)
{
	void *data = arena_alloc(g->arena, 1, sizeof v);
	if (!data) {
		g->failed = diag_nomem(g->diag);
		return NULL;
	}
	if (t == DT_I64)
		*(int64_t *)data = v;
	else
		value_set(t, data, 0, (double)v);
	return graph_constant(g, "", t, 0, NULL, data);
}

struct tensor *unroll_int(struct graph *g, int64_t v)
{
	return known_scalar(g, DT_I64, v);
}

struct tensor *unroll_bool(struct graph *g, bool v)
{
	return known_scalar(g, DT_BOOL, v);
}

/* x without its axis of size 1. */
static struct tensor *without_axis(struct graph *g, struct tensor *x, int axis)
{
	int64_t dim[RANK_MAX];
	int rank = 0;
	for (int i = 0; i < x->rank; i++)
		if (i != axis)
			dim[rank++] = x->dim[i];
	return graph_reshape(g, x, rank, dim);
}

enum status unroll_cut(struct expansion *x, struct tensor *whole, int axis, int n,
	const int64_t *size, bool squeeze, struct tensor ***out)
{
	struct graph *g = x->g;
	struct tensor **part = *out = ARENA_ARRAY(g->arena, struct tensor *, n);
	TRY(expansion_spend(x, n));
	if (!part)
		return diag_nomem(g->diag);
	if (n == 1 && size[0] == whole->dim[axis])
		part[0] = whole;
	else if (n) {
		struct node *split;
		struct tensor *in[] = {whole, graph_ints(g, n, size)};
		const struct attr attr = ATTR_I("axis", axis);
		int opset = g->opset;
		if (!in[1])
			return g->failed;
		g->opset = OPSET_LATEST;
		enum status st = graph_node(g, "Split", NULL, 2, in, n, 1, &attr, NULL, &split);
		g->opset = opset;
		TRY(st);
		memcpy(part, split->out, (size_t)n * sizeof *part);
	}
	for (int i = 0; squeeze && i < n; i++)
		part[i] = without_axis(g, part[i], axis);
	return g->failed;
}

enum status unroll_join(struct expansion *x, int n, struct tensor *const *part, int axis,
	bool stack, struct tensor **out)
{
	struct graph *g = x->g;
	struct tensor **one = ARENA_ARRAY(g->arena, struct tensor *, n);
	TRY(expansion_spend(x, n));
	if (!one)
		return diag_nomem(g->diag);
	for (int i = 0; i < n; i++) {
		int64_t dim[RANK_MAX + 1];
		one[i] = part[i];
		if (!stack)
			continue;
		if (axis > part[i]->rank || part[i]->rank == RANK_MAX)
			return node_fail(g, x->node, NULL, "what it joins has %d axes, axis is %d",
				part[i]->rank, axis);
		for (int k = 0; k <= part[i]->rank; k++)
			dim[k] = k == axis ? 1 : part[i]->dim[k - (k > axis)];
		one[i] = graph_reshape(g, part[i], part[i]->rank + 1, dim);
	}
	const struct attr attr = ATTR_I("axis", axis);
	*out = n == 1 ? one[0] : graph_op(g, "Concat", n, one, 1, &attr);
	return g->failed;
}

enum status unroll_list(struct expansion *x, int n, struct tensor *const *item, struct value *out)
{
	enum { POINTERS_A_NODE = 64 };
	TRY(expansion_spend(x, n / POINTERS_A_NODE));
	*out = (struct value){.kind = VALUE_LIST, .n = n};
	out->item = arena_memdup(x->g->arena, item, (size_t)n, sizeof *item);
	return out->item ? ST_OK : diag_nomem(x->g->diag);
}
