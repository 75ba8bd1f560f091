/* An operand of attention in a model's graph, seen through the views, transposes, expansions and
 * scalings that exporters put before it: the tensor behind them is read in the order that it is
 * stored in. */
#include "ops/attention/attention_match.h"
#include "ops/boxes/boxes_op.h"

/* t as [batch, head, token, width] in the order of axes `order`. */
struct view view_begin(struct tensor *t, const int64_t size[AXES], const int order[AXES])
{
	struct view v = {.base = t, .scale = 1};
	int64_t stride = 1;
	for (int i = AXES - 1; i >= 0; i--) {
		const int axis = order[i];
		v.size[axis] = size[axis];
		if (size[axis] != 1)
			v.atom[axis][v.count[axis]++] = (struct atom){size[axis], stride};
		stride *= size[axis];
	}
	return v;
}

/* Follow an atom, which walks over a dense tensor of shape ydim, into one where the axes have the
 * strides xs: appended to `out`, inner first. */
static bool follow(struct atom a, int rank, const int64_t *ydim, const int64_t *xs, int *n,
	struct atom out[VIEW_ATOMS])
{
	int64_t ys = 1;
	for (int j = rank - 1; j >= 0 && a.n > 1; ys *= ydim[j--]) {
		if (a.stride >= ys * ydim[j])
			continue;
		const int64_t step = a.stride / ys;
		if (a.stride % ys || ydim[j] % step || *n == VIEW_ATOMS)
			return false;
		const int64_t room = ydim[j] / step, take = min64(a.n, room);
		if (a.n % take)
			return false;
		out[(*n)++] = (struct atom){take, xs[j] * step};
		a = (struct atom){a.n / take, ys * ydim[j]};
	}
	return a.n == 1;
}

/* The view in terms of the input of a node that moves axes: ydim and xs as above. */
static bool view_through(struct view *v, int rank, const int64_t *ydim, const int64_t *xs)
{
	int64_t offset = 0;
	for (int j = rank - 1; j >= 0; v->offset /= ydim[j--])
		offset += v->offset % ydim[j] * xs[j];
	v->offset = offset;
	for (int axis = 0; axis < AXES; axis++) {
		struct atom inner_first[VIEW_ATOMS];
		int n = 0, kept = 0;
		for (int i = v->count[axis] - 1; i >= 0; i--) {
			const struct atom a = v->atom[axis][i];
			if (a.stride == 0 && n < VIEW_ATOMS)
				inner_first[n++] = a;
			else if (!follow(a, rank, ydim, xs, &n, inner_first))
				return false;
		}
		for (int i = n - 1; i >= 0; i--) {
			const struct atom a = inner_first[i];
			struct atom *last = kept ? &v->atom[axis][kept - 1] : NULL;
			if (last && last->stride == a.n * a.stride)
				*last = (struct atom){last->n * a.n, a.stride};
			else
				v->atom[axis][kept++] = a;
		}
		v->count[axis] = kept;
	}
	return true;
}

/* Through the transpose `n`, from its output to its input, or (`forward`) the other way. */
bool view_transpose(struct view *v, const struct node *n, bool forward)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const int64_t *perm = node_attr(n, "perm")->ints;
	int64_t from[RANK_MAX], strides[RANK_MAX];
	box_strides(x->rank, forward ? y->dim : x->dim, strides);
	for (int i = 0; i < x->rank; i++)
		from[forward ? perm[i] : i] = strides[forward ? i : perm[i]];
	return view_through(v, x->rank, forward ? x->dim : y->dim, from);
}

static bool through_expand(struct view *v, const struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const int lead = y->rank - x->rank;
	int64_t strides[RANK_MAX], from[RANK_MAX];
	box_strides(x->rank, x->dim, strides);
	for (int i = 0; i < y->rank; i++)
		from[i] = i < lead || x->dim[i - lead] != y->dim[i] ? 0 : strides[i - lead];
	return view_through(v, y->rank, y->dim, from);
}

/* A tile that repeats axes of size 1 only. */
static bool is_expanding_tile(const struct node *n)
{
	if (!node_is(n, "Tile"))
		return false;
	for (int i = 0; i < n->in[0]->rank; i++)
		if (n->in[0]->dim[i] != 1 && n->in[0]->dim[i] != n->out[0]->dim[i])
			return false;
	return true;
}

/* Through a node whose output is a part of its input: v is a view of the k-th output. */
static bool through_part(struct view *v, const struct node *n)
{
	const struct tensor *x = n->in[0], *y = v->base;
	int64_t xs[RANK_MAX], start = 0;
	box_strides(x->rank, x->dim, xs);
	if (node_is(n, "Slice")) {
		const int64_t *from = node_attr(n, "cut_start")->ints;
		const int64_t *step = node_attr(n, "cut_step")->ints;
		for (int j = 0; j < x->rank; j++) {
			start += from[j] * xs[j];
			if (step[j] != 1)
				return false;
		}
	} else {
		const int64_t axis = node_int(n, "axis", 0);
		for (int k = 0; k < n->nout && n->out[k] != y; k++)
			start += n->out[k]->dim[axis] * xs[axis];
	}
	if (!view_through(v, x->rank, y->dim, xs))
		return false;
	v->offset += start;
	return true;
}

/* One stride an axis, or none where the size is 1. */
static int64_t stride_of(const struct view *v, int axis)
{
	return v->count[axis] ? v->atom[axis][0].stride : 0;
}

/* Heads that share a stored one become *group; false when the view cannot be told as one of the
 * layouts. */
bool view_settle(const struct view *v, struct view_read *out)
{
	struct view s = *v;
	struct atom *head = s.atom[AXIS_HEAD];
	int *heads = &s.count[AXIS_HEAD];
	out->base = v->base;
	out->group = 1;
	if (*heads > 0 && head[*heads - 1].stride == 0)
		out->group = head[--*heads].n;
	for (int axis = 0; axis < AXES; axis++)
		if (s.count[axis] > 1 || (s.count[axis] == 1 && s.atom[axis][0].stride == 0))
			return false;
	const int64_t size[AXES] = {v->size[AXIS_BATCH], v->size[AXIS_HEAD] / out->group,
		v->size[AXIS_TOKEN], v->size[AXIS_WIDTH]};
	if (size[AXIS_WIDTH] > 1 && stride_of(&s, AXIS_WIDTH) != 1)
		return false;
	for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
		bool fits = true;
		int64_t strides[AXES];
		for (int i = 0; i < 3; i++)
			out->dim[attention_axes[layout][i]] = size[i];
		out->dim[AXIS_WIDTH] = size[AXIS_WIDTH];
		box_strides(AXES, out->dim, strides);
		for (int i = 0; i < 3; i++)
			fits = fits && (size[i] == 1 || stride_of(&s, i) ==
								strides[attention_axes[layout][i]]);
		out->layout = (enum attention_layout)layout;
		if (fits && v->offset == 0 && v->base->numel == strides[0] * out->dim[0])
			return true;
	}
	return false;
}

/* Scalings may be taken out of q and k, not of v. */
static bool through_scale(struct view *v, const struct node *n)
{
	const bool div = node_is(n, "Div");
	double factor;
	for (int i = 0; i < (div ? 1 : 2); i++)
		if (match_uniform(n->in[1 - i], &factor) && n->in[i]->numel == n->out[0]->numel) {
			v->scale = div ? v->scale / factor : v->scale * factor;
			v->base = n->in[i];
			return true;
		}
	return false;
}

bool view_back(struct view *v, bool scaled)
{
	v->base = match_source(v->base);
	const struct node *n = v->base->maker;
	if (!n)
		return false;
	const char *op = n->op->name;
	if (scaled && (!strcmp(op, "Mul") || !strcmp(op, "Div")))
		return through_scale(v, n);
	const bool same = (n->op->traits & OP_VIEW) != 0;
	const bool expand = !strcmp(op, "Expand") || is_expanding_tile(n);
	const bool part = !strcmp(op, "Slice") || !strcmp(op, "Split");
	if (!same && !expand && !part && strcmp(op, "Transpose") != 0)
		return false;
	if (part && !through_part(v, n))
		return false;
	if (!strcmp(op, "Transpose") && !view_transpose(v, n, false))
		return false;
	if (expand && !through_expand(v, n))
		return false;
	v->base = n->in[0];
	return true;
}

bool view_find(struct view v, bool scaled, bool grouped, struct view_read *out)
{
	bool found = false;
	do {
		struct view_read s = {.scale = v.scale};
		if (view_settle(&v, &s) && (grouped || s.group == 1)) {
			*out = s;
			out->scale = v.scale;
			found = true;
		}
	} while (view_back(&v, scaled));
	return found;
}
