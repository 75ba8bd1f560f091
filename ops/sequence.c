/* Sequences and optional values: lists of tensors whose lengths and positions are known when a
 * model is compiled, so that nothing of them is left. */
#include <inttypes.h>

#include "ops/unroll.h"

/* A position in input `i`, in [0, n], or `otherwise` where it is not given. */
static enum status position(struct expansion *x, int i, int n, int otherwise, int *out)
{
	const struct tensor *t;
	*out = otherwise;
	if (i >= x->nin || x->in[i].kind == VALUE_NONE)
		return ST_OK;
	TRY(expansion_known(x, i, "the position", &t));
	int64_t at = tensor_int(t, 0), list = x->in[0].n;
	if (at < -list || at > n)
		return node_fail(x->g, x->node, NULL,
			"position %" PRId64 " lies outside a sequence of %d", at, x->in[0].n);
	*out = (int)(at < 0 ? at + list : at);
	return ST_OK;
}

static enum status empty_expand(struct expansion *x)
{
	return unroll_list(x, 0, NULL, &x->out[0]);
}

static enum status construct_expand(struct expansion *x)
{
	for (int i = 0; i < x->nin; i++)
		if (!x->node->in[i])
			return node_fail(x->g, x->node, NULL, "input %d is no tensor", i);
	return unroll_list(x, x->nin, x->node->in, &x->out[0]);
}

static enum status insert_expand(struct expansion *x)
{
	const struct value *list = &x->in[0];
	int at;
	TRY(unroll_input(x, 0));
	TRY(position(x, 2, list->n, list->n, &at));
	if (!x->node->in[1] || list->n == INT32_MAX)
		return node_fail(x->g, x->node, NULL, "input 1 is no tensor");
	struct tensor **item = ARENA_ARRAY(x->g->arena, struct tensor *, list->n + 1);
	if (!item)
		return diag_nomem(x->g->diag);
	for (int i = 0; i <= list->n; i++)
		item[i] = i == at ? x->node->in[1] : list->item[i - (i > at)];
	return unroll_list(x, list->n + 1, item, &x->out[0]);
}

static enum status erase_expand(struct expansion *x)
{
	const struct value *list = &x->in[0];
	int at;
	TRY(unroll_input(x, 0));
	TRY(position(x, 1, list->n - 1, list->n - 1, &at));
	if (at < 0)
		return node_fail(x->g, x->node, NULL, "erases from an empty sequence");
	struct tensor **item = ARENA_ARRAY(x->g->arena, struct tensor *, list->n);
	if (!item)
		return diag_nomem(x->g->diag);
	for (int i = 0; i < list->n - 1; i++)
		item[i] = list->item[i + (i >= at)];
	return unroll_list(x, list->n - 1, item, &x->out[0]);
}

static enum status at_expand(struct expansion *x)
{
	int at;
	TRY(unroll_input(x, 0));
	TRY(position(x, 1, x->in[0].n - 1, 0, &at));
	x->out[0] = (struct value){.kind = VALUE_TENSOR, .tensor = x->in[0].item[at]};
	return ST_OK;
}

static enum status length_expand(struct expansion *x)
{
	TRY(unroll_input(x, 0));
	x->out[0] = (struct value){.kind = VALUE_TENSOR, .tensor = unroll_int(x->g, x->in[0].n)};
	return x->g->failed;
}

static enum status join_expand(struct expansion *x)
{
	const struct value *list = &x->in[0];
	const struct attr *axis = node_attr(x->node, "axis");
	bool stack = node_int(x->node, "new_axis", 0) != 0;
	int at;
	TRY(unroll_input(x, 0));
	if (!axis || list->n == 0)
		return node_fail(x->g, x->node, NULL, "%s",
			axis ? "joins an empty sequence" : "has no axis");
	TRY(unroll_axis(x, axis->i, list->item[0]->rank + stack, &at));
	x->out[0].kind = VALUE_TENSOR;
	return unroll_join(x, list->n, list->item, at, stack, &x->out[0].tensor);
}

/* The sizes of the pieces: as listed, or all alike, the last one what is left. */
static enum status piece_sizes(struct expansion *x, int64_t whole, int *n, const int64_t **out)
{
	const struct tensor *split = x->nin > 1 ? x->node->in[1] : NULL;
	int64_t each = 1;
	if (split && (split->role != TR_CONSTANT || split->rank > 1 || split->dtype != DT_I64))
		return node_fail(x->g, x->node, graph_unknown_hint(x->g, split),
			"the sizes of the pieces are not known at compile time");
	if (split && split->rank == 1) {
		TRY(expansion_reserve(x, split->numel, 1));
		*n = (int)split->numel;
		*out = split->data;
		return ST_OK;
	}
	if (split)
		each = tensor_int(split, 0);
	if (each < 1)
		return node_fail(x->g, x->node, NULL, "pieces of size %" PRId64, each);
	int64_t count = whole / each + (whole % each != 0);
	TRY(expansion_reserve(x, count, 1));
	int64_t *size = ARENA_ARRAY(x->g->arena, int64_t, count);
	if (!size)
		return diag_nomem(x->g->diag);
	for (int64_t i = 0; i < count; i++)
		size[i] = i < count - 1 ? each : whole - i * each;
	*n = (int)count;
	*out = size;
	return ST_OK;
}

static enum status split_expand(struct expansion *x)
{
	struct tensor *whole = x->node->in[0], **part;
	int at, n = 0;
	const int64_t *size = NULL;
	if (!whole)
		return node_fail(x->g, x->node, NULL, "input 0 is no tensor");
	TRY(unroll_axis(x, node_int(x->node, "axis", 0), whole->rank, &at));
	TRY(piece_sizes(x, whole->dim[at], &n, &size));
	/* keepdims counts only where no sizes are given */
	bool squeeze = x->nin < 2 && node_int(x->node, "keepdims", 1) == 0;
	TRY(unroll_cut(x, whole, at, n, size, squeeze, &part));
	return unroll_list(x, n, part, &x->out[0]);
}

/* --- Optional values --- */

static enum status optional_expand(struct expansion *x)
{
	x->out[0] = x->nin ? x->in[0] : (struct value){.kind = VALUE_NONE};
	return ST_OK;
}

static enum status has_element_expand(struct expansion *x)
{
	bool has = x->nin > 0 && x->in[0].kind != VALUE_NONE;
	x->out[0] = (struct value){.kind = VALUE_TENSOR, .tensor = unroll_bool(x->g, has)};
	return x->g->failed;
}

#define SEQUENCE(op, first, low, high, hook)                                                       \
	{                                                                                          \
		.name = op, .since = first, .min_in = low, .max_in = high, .expand = hook          \
	}

const struct op_def ops_sequence[] = {
	SEQUENCE("SequenceEmpty", 11, 0, 0, empty_expand),
	SEQUENCE("SequenceConstruct", 11, 1, -1, construct_expand),
	SEQUENCE("SequenceInsert", 11, 2, 3, insert_expand),
	SEQUENCE("SequenceErase", 11, 1, 2, erase_expand),
	SEQUENCE("SequenceAt", 11, 2, 2, at_expand),
	SEQUENCE("SequenceLength", 11, 1, 1, length_expand),
	SEQUENCE("ConcatFromSequence", 11, 1, 1, join_expand),
	SEQUENCE("SplitToSequence", 11, 1, 2, split_expand),
	SEQUENCE("Optional", 15, 0, 1, optional_expand),
	SEQUENCE("OptionalGetElement", 15, 1, 1, optional_expand),
	SEQUENCE("OptionalHasElement", 15, 0, 1, has_element_expand),
	{.name = NULL},
};
