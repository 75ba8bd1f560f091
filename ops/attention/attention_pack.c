/* Queries, keys and values that are parts of one tensor, as one product with all their weights
 * makes them: attention reads the parts where they lie, and its gradient writes one tensor. Without
 * it, every step would cut the tensor and join its gradient. */
#include "ops/attention/attention_match.h"

enum { OPERANDS = 3 };

static struct view view_of(struct tensor *t, int64_t layout)
{
	const int *at = attention_axes[layout];
	int64_t size[AXES];
	int order[AXES] = {[AXIS_WIDTH] = AXIS_WIDTH};
	for (int i = 0; i < 3; i++) {
		size[i] = t->dim[at[i]];
		order[at[i]] = i;
	}
	size[AXIS_WIDTH] = t->dim[AXIS_WIDTH];
	return view_begin(t, size, order);
}

/* The view in terms of `base`, if it leads there. */
static bool reach(struct view *v, const struct tensor *base)
{
	while (v->base != base)
		if (!view_back(v, false))
			return false;
	return true;
}

/* One stride for each of batch, head and token, and a dense width: `place` is the offset and those
 * strides. */
static bool place_of(const struct view *v, int64_t place[PLACE])
{
	place[0] = v->offset;
	for (int axis = 0; axis < AXES; axis++) {
		if (v->count[axis] > 1 || (v->count[axis] == 1 && v->atom[axis][0].stride == 0))
			return false;
		if (axis < AXIS_WIDTH)
			place[1 + axis] = v->count[axis] ? v->atom[axis][0].stride : 0;
	}
	return v->size[AXIS_WIDTH] == 1 || v->atom[AXIS_WIDTH][0].stride == 1;
}

/* All that `base` holds is in the three: different places of it, as many as it has. */
static bool share(const struct view *v, const struct tensor *base, int64_t place[OPERANDS][PLACE])
{
	int64_t numel = 0;
	for (int i = 0; i < OPERANDS; i++) {
		struct view x = v[i];
		const int64_t *n = x.size;
		if (!reach(&x, base) || !place_of(&x, place[i]))
			return false;
		for (int k = 0; k < i; k++)
			if (place[k][0] == place[i][0])
				return false;
		numel += n[AXIS_BATCH] * n[AXIS_HEAD] * n[AXIS_TOKEN] * n[AXIS_WIDTH];
	}
	return numel == base->numel;
}

struct tensor *attention_pack(struct graph *g, struct tensor *const *in, const int64_t *layout,
	struct attr attr[PACK_ATTRS])
{
	static const char *const names[OPERANDS] = {"place_q", "place_k", "place_v"};
	struct tensor *found = NULL;
	struct view v[OPERANDS];
	int64_t place[OPERANDS][PLACE], best[OPERANDS][PLACE];
	for (int i = 0; i < OPERANDS; i++)
		v[i] = view_of(in[i], layout[i]);
	for (struct view q = v[0]; view_back(&q, false);)
		if (share(v, q.base, place)) {
			found = q.base;
			memcpy(best, place, sizeof best);
		}
	if (!found)
		return NULL;
	const int64_t size[SIZES] = {v[0].size[AXIS_BATCH], v[0].size[AXIS_HEAD],
		v[1].size[AXIS_HEAD], v[0].size[AXIS_TOKEN], v[1].size[AXIS_TOKEN],
		v[0].size[AXIS_WIDTH], v[2].size[AXIS_WIDTH]};
	for (int i = 0; i < OPERANDS; i++)
		attr[i] = data_ints(g, names[i], PLACE, best[i]);
	attr[OPERANDS] = data_ints(g, "sizes", SIZES, size);
	return found;
}
