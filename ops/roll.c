/* Tensors rolled along their axes and cut into windows (Liu et al., "Swin Transformer"), in one
 * copy.
 *
 * stint.Roll(x): x, of shape `dim`, is rolled, r[i] = x[(i + shift) mod dim]; r is seen in the
 * shape `parts`, in which every axis of it is one or several; and these are moved as Transpose does
 * by `perm`. `inverse`: from what that makes back to x. Each is the other's gradient.
 *
 * Exporters write a roll along one axis as two slices, joined the other way round; rolls along
 * several follow one another, and windows are a Reshape and a Transpose. Also recognised are every
 * second element, and the others, along axes, joined along another: one Transpose. */
#include "ops/boxes/boxes_op.h"
#include "ops/match.h"

struct roll {
	int rank, n; /* axes of x; parts */
	bool inverse;
	int64_t dim[RANK_MAX], shift[RANK_MAX]; /* shift: in [0, dim) */
	int64_t part[RANK_MAX];
	int perm[RANK_MAX];
	int axis[RANK_MAX]; /* of each part: of x */
	/* Distance, in elements, between neighbours of part k in x, and among its axis' places. */
	int64_t stride[RANK_MAX], place[RANK_MAX];
};

/* Which axis of `dim` each part belongs to; false where parts do not make up the axes. */
static bool assign_parts(struct roll *p)
{
	int k = 0;
	for (int a = 0; a < p->rank; a++) {
		int64_t size = 1;
		for (; k < p->n && (size < p->dim[a] || a == p->rank - 1); k++) {
			size *= p->part[k];
			p->axis[k] = a;
		}
		if (size != p->dim[a])
			return false;
	}
	return k == p->n;
}

static void set_strides(struct roll *p)
{
	int64_t x[RANK_MAX];
	box_strides(p->rank, p->dim, x);
	for (int k = p->n - 1; k >= 0; k--) {
		const bool last = k == p->n - 1 || p->axis[k + 1] != p->axis[k];
		p->place[k] = last ? 1 : p->place[k + 1] * p->part[k + 1];
		p->stride[k] = p->place[k] * x[p->axis[k]];
	}
}

static enum status roll_read(struct graph *g, const struct node *n, struct roll *p)
{
	const struct attr *dim = node_attr(n, "dim"), *shift = node_attr(n, "shift");
	const struct attr *parts = node_attr(n, "parts"), *perm = node_attr(n, "perm");
	bool fits = dim && shift && parts && perm && dim->n == shift->n && parts->n == perm->n &&
		    dim->n >= 1 && dim->n <= RANK_MAX && parts->n <= RANK_MAX;
	bool seen[RANK_MAX] = {false};
	*p = (struct roll){.inverse = node_int(n, "inverse", 0) != 0};
	if (!fits)
		return node_fail(g, n, NULL, "its attributes do not fit together");
	p->rank = dim->n;
	p->n = parts->n;
	for (int i = 0; i < p->rank; i++) {
		p->dim[i] = dim->ints[i];
		p->shift[i] = shift->ints[i];
		fits &= p->shift[i] >= 0 && (p->shift[i] == 0 || p->shift[i] < p->dim[i]);
	}
	for (int k = 0; k < p->n; k++) {
		const int64_t to = perm->ints[k];
		p->part[k] = parts->ints[k];
		fits &= to >= 0 && to < p->n && !seen[to];
		p->perm[k] = fits ? (int)to : 0;
		seen[p->perm[k]] = true;
	}
	if (!fits || !assign_parts(p))
		return node_fail(g, n, NULL, "its attributes do not fit together");
	set_strides(p);
	return ST_OK;
}

static enum status roll_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	struct roll *p = ARENA_NEW(g->arena, struct roll);
	int64_t window[RANK_MAX];
	if (!p)
		return diag_nomem(g->diag);
	TRY(roll_read(g, n, p));
	for (int k = 0; k < p->n; k++)
		window[k] = p->part[p->perm[k]];
	const int rank = p->inverse ? p->n : p->rank;
	const int64_t *dim = p->inverse ? window : p->dim;
	if (x->rank != rank || memcmp(x->dim, dim, (size_t)rank * sizeof *dim) != 0)
		return node_fail(g, n, NULL, "its attributes do not fit the input");
	n->param = p;
	return data_output(
		g, n, 0, x->dtype, p->inverse ? p->rank : p->n, p->inverse ? p->dim : window);
}

/* Where in x an element of the windows is; i: its place in them, by axis. */
static int64_t place_of(const struct roll *p, const int64_t *i)
{
	int64_t at[RANK_MAX] = {0}, stride[RANK_MAX], sum = 0;
	for (int k = 0; k < p->n; k++)
		at[p->axis[p->perm[k]]] += i[k] * p->place[p->perm[k]];
	box_strides(p->rank, p->dim, stride);
	for (int a = 0; a < p->rank; a++)
		sum += (at[a] + p->shift[a]) % p->dim[a] * stride[a];
	return sum;
}

static enum status roll_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct roll *p = n->param;
	const size_t size = (size_t)dtype_bytes(n->out[0]->dtype);
	int64_t i[RANK_MAX] = {0};
	for (int64_t e = 0; e < n->out[0]->numel; e++) {
		const size_t at = (size_t)place_of(p, i) * size, here = (size_t)e * size;
		memcpy((char *)out[0] + (p->inverse ? at : here),
			(const char *)n->in[0]->data + (p->inverse ? here : at), size);
		for (int k = p->n - 1; k >= 0 && ++i[k] == p->part[p->perm[k]]; k--)
			i[k] = 0;
	}
	return ST_OK;
}

/* --- The record's other hooks --- */

static struct tensor *roll_op(struct graph *g, struct tensor *x, const struct roll *p)
{
	int64_t perm[RANK_MAX];
	for (int k = 0; k < p->n; k++)
		perm[k] = p->perm[k];
	const struct attr attr[] = {data_ints(g, "dim", p->rank, p->dim),
		data_ints(g, "shift", p->rank, p->shift), data_ints(g, "parts", p->n, p->part),
		data_ints(g, "perm", p->n, perm), ATTR_I("inverse", p->inverse)};
	for (int i = 0; i < 4; i++)
		if (!attr[i].ints)
			g->failed = diag_nomem(g->diag);
	return graph_op(g, "stint.Roll", 1, &x, 5, attr);
}

static enum status roll_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct roll p = *(const struct roll *)n->param;
	p.inverse = !p.inverse;
	if (want[0])
		dx[0] = roll_op(g, dy[0], &p);
	return g->failed;
}

/* The last axes of the windows that stand in x as they stand in the windows: from which on. */
static int first_in_place(const struct roll *p)
{
	int t = p->n;
	for (int k = p->n - 1; k >= 0 && p->perm[k] == k && p->shift[p->axis[k]] == 0; k--)
		if (k == 0 || p->axis[k - 1] != p->axis[k])
			t = k;
	return t;
}

static enum status roll_emit(struct emit *e, const struct node *n)
{
	const struct roll *p = n->param;
	const int parts = first_in_place(p);
	int64_t dim[RANK_MAX], axis[RANK_MAX], place[RANK_MAX], stride[RANK_MAX], row = 1, rows = 1;
	box_strides(p->rank, p->dim, stride);
	for (int k = parts; k < p->n; k++)
		row *= p->part[k];
	for (int k = 0; k < parts; k++) {
		dim[k] = p->part[p->perm[k]];
		axis[k] = p->axis[p->perm[k]];
		place[k] = p->place[p->perm[k]];
		rows *= dim[k];
	}
	const struct call_arg none = {.kind = CALL_NONE};
	const struct call_struct roll = {"struct roll", "r",
		CALL_FIELDS({"parts", ARG_INT(parts)}, {"axes", ARG_INT(p->rank)},
			{"row", ARG_SIZE(row)}, {"dim", parts ? ARG_SIZES(parts, dim) : none},
			{"axis", parts ? ARG_INTS(parts, axis) : none},
			{"place", parts ? ARG_SIZES(parts, place) : none},
			{"shift", ARG_SIZES(p->rank, p->shift)},
			{"size", ARG_SIZES(p->rank, p->dim)},
			{"stride", ARG_SIZES(p->rank, stride)})};
	const int64_t piece = call_piece(e, row);
	return call_kernel(e, &(struct kernel_call){.file = "roll.h",
				      .function = "roll",
				      .ntype = 1,
				      .type = {n->out[0]},
				      .turns = n->out[0]->numel ? rows * div_up(row, piece) : 0,
				      .work = (double)n->out[0]->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_STRUCT(&roll),
					      ARG_INT(p->inverse), ARG_SIZE(piece))});
}

/* --- Recognition --- */

/* `t` before what leaves it as it is. */
static struct tensor *unchanged(struct tensor *t)
{
	for (;;) {
		t = match_source(t);
		const struct node *n = t->maker;
		const bool cut = node_is(n, "Slice");
		const struct attr *kept = !n    ? NULL
					  : cut ? node_attr(n, "cut_step")
						: node_attr(n, "pads");
		if (!kept || !(cut || node_is(n, "Pad")) || !tensor_same_shape(t, n->in[0]))
			return t;
		for (int i = 0; i < kept->n; i++)
			if (kept->ints[i] != (cut ? 1 : 0))
				return t;
		t = n->in[0];
	}
}

/* Behind views too. */
static const struct node *behind_views(struct tensor *t)
{
	t = unchanged(t);
	while (t->maker && (t->maker->op->traits & (OP_VIEW | OP_STOP)) == OP_VIEW)
		t = unchanged(t->maker->in[0]);
	return t->maker;
}

/* Part `t` of a tensor, as slices after one another cut it out: of which tensor, from where on and
 * in which steps. */
static struct tensor *part_of(struct tensor *t, int64_t *start, int64_t *step)
{
	const struct tensor *part = t = unchanged(t);
	for (int a = 0; a < part->rank; a++) {
		start[a] = 0;
		step[a] = 1;
	}
	for (const struct node *n; (n = t->maker) && node_is(n, "Slice"); t = unchanged(n->in[0])) {
		const int64_t *from = node_attr(n, "cut_start")->ints;
		const int64_t *by = node_attr(n, "cut_step")->ints;
		for (int a = 0; a < part->rank; a++) {
			start[a] = from[a] + by[a] * start[a];
			step[a] *= by[a];
		}
	}
	return t;
}

/* The shift along axis `a` that joins two parts of x to a roll of it; 0: they do not. */
static int64_t halves(const struct node *join, int a, struct tensor **x)
{
	int64_t start[2][RANK_MAX], step[2][RANK_MAX];
	const struct tensor *y = join->out[0];
	*x = part_of(join->in[0], start[0], step[0]);
	if (part_of(join->in[1], start[1], step[1]) != *x || !tensor_same_shape(*x, y))
		return 0;
	for (int i = 0; i < y->rank; i++)
		if (step[0][i] != 1 || step[1][i] != 1 ||
			(i != a && (start[0][i] != 0 || start[1][i] != 0)))
			return 0;
	return start[1][a] == 0 && join->in[1]->dim[a] == start[0][a] ? start[0][a] : 0;
}

static int64_t modulo(int64_t v, int64_t n)
{
	return (v % n + n) % n;
}

/* Of x, by nothing yet; its parts are its axes, in their places. */
static struct roll whole_roll(const struct tensor *x)
{
	struct roll p = {.rank = x->rank, .n = x->rank};
	memcpy(p.dim, x->dim, sizeof p.dim);
	memcpy(p.part, x->dim, sizeof p.part);
	for (int i = 0; i < p.n; i++)
		p.perm[i] = i;
	return p;
}

/* x rolled by `shift` along `axis`, as one copy with what made x. */
static struct tensor *rolled(struct graph *g, struct tensor *x, int axis, int64_t shift)
{
	const struct node *before = x->maker, *move = behind_views(x);
	struct roll p;
	if (node_is(before, "stint.Roll")) {
		p = *(const struct roll *)before->param;
		if (p.inverse || tensor_same_shape(before->in[0], x)) {
			p.shift[axis] = modulo(
				p.shift[axis] + (p.inverse ? -shift : shift), p.dim[axis]);
			return roll_op(g, before->in[0], &p);
		}
	}
	if (node_is(move, "Transpose")) {
		const int64_t *perm = node_attr(move, "perm")->ints;
		p = whole_roll(x);
		p.n = move->out[0]->rank;
		memcpy(p.part, move->out[0]->dim, sizeof p.part);
		for (int i = 0; i < p.n; i++)
			p.perm[perm[i]] = i;
		p.inverse = true;
		p.shift[axis] = modulo(-shift, p.dim[axis]);
		if (assign_parts(&p))
			return roll_op(g, move->in[0], &p);
	}
	p = whole_roll(x);
	p.shift[axis] = shift;
	return roll_op(g, x, &p);
}

/* A roll, seen in parts and moved. */
static enum status match_windows(struct graph *g, const struct node *n, struct tensor **replace)
{
	const struct tensor *x = n->in[0];
	const struct node *roll = behind_views(n->in[0]);
	const int64_t *perm = node_attr(n, "perm")->ints;
	if (!node_is(roll, "stint.Roll") || !tensor_same_shape(roll->in[0], roll->out[0]))
		return ST_OK;
	struct roll p = *(const struct roll *)roll->param;
	for (int k = 0; k < p.n; k++)
		if (p.perm[k] != k)
			return ST_OK;
	p.n = x->rank;
	memcpy(p.part, x->dim, sizeof p.part);
	for (int i = 0; i < p.n; i++)
		p.perm[i] = (int)perm[i];
	if (!p.inverse && assign_parts(&p))
		*replace = roll_op(g, roll->in[0], &p);
	return g->failed;
}

/* --- Every second element and the others, joined --- */

enum { JOINED = 16 };

struct phases {
	int rank, count, naxis;
	int axis[RANK_MAX]; /* along which every `step` is taken; the first joined goes on along [0]
			     */
	int64_t step[RANK_MAX], start[JOINED][RANK_MAX];
	struct tensor *x;
};

/* Part k starts at digit k / stride of each axis, the axes in some order. */
static bool order_axes(struct phases *p)
{
	int64_t stride = 1;
	while (stride < p->count) {
		int found = -1;
		for (int a = 0; a < p->rank; a++)
			if (p->start[stride][a] == 1 && p->step[a] > 1)
				found = a;
		if (found < 0)
			return false;
		p->axis[p->naxis++] = found;
		for (int k = 0; k < p->count; k++)
			if (p->start[k][found] != k / stride % p->step[found])
				return false;
		stride *= p->step[found];
	}
	return stride == p->count;
}

static bool read_phases(const struct node *n, struct phases *p)
{
	p->count = n->nin;
	p->rank = n->out[0]->rank;
	for (int k = 0; k < p->count; k++) {
		int64_t step[RANK_MAX];
		struct tensor *x = part_of(n->in[k], p->start[k], step);
		if (k == 0) {
			p->x = x;
			memcpy(p->step, step, sizeof step);
		}
		for (int a = 0; a < p->rank; a++)
			if (x != p->x || step[a] != p->step[a] || step[a] < 1 ||
				p->start[k][a] >= step[a] || x->dim[a] % step[a] ||
				n->in[k]->dim[a] != x->dim[a] / step[a])
				return false;
	}
	int64_t all = 1;
	for (int a = 0; a < p->rank; a++)
		all *= p->step[a];
	return all == p->count && order_axes(p);
}

/* One reshape and one transpose. */
static enum status match_phases(
	struct graph *g, const struct node *n, int axis, struct tensor **replace)
{
	struct phases p = {0};
	int64_t dim[2 * RANK_MAX], perm[2 * RANK_MAX];
	int rank = 0, to = 0, whole[RANK_MAX], digit[RANK_MAX];
	if (n->nin > JOINED || !read_phases(n, &p))
		return ST_OK;
	for (int a = 0; a < p.rank; a++) {
		whole[a] = rank;
		dim[rank++] = p.x->dim[a] / p.step[a];
		digit[a] = rank;
		if (p.step[a] > 1)
			dim[rank++] = p.step[a];
	}
	if (rank > RANK_MAX)
		return ST_OK;
	for (int a = 0; a < p.rank; a++) {
		for (int i = p.naxis - 1; a == axis && i >= 0; i--)
			perm[to++] = digit[p.axis[i]];
		perm[to++] = whole[a];
	}
	const struct attr attr = data_ints(g, "perm", rank, perm);
	struct tensor *t = graph_reshape(g, p.x, rank, dim);
	t = graph_op(g, "Transpose", 1, &t, 1, &attr);
	*replace = t ? graph_reshape(g, t, n->out[0]->rank, n->out[0]->dim) : NULL;
	return g->failed;
}

static enum status roll_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	if (node_is(n, "Transpose"))
		return match_windows(g, n, replace);
	if (!node_is(n, "Concat") || n->nin < 2 || n->out[0]->numel == 0)
		return ST_OK;
	const int axis = (int)node_int(n, "axis", 0);
	struct tensor *x;
	const int64_t shift = n->nin == 2 ? halves(n, axis, &x) : 0;
	if (shift == 0)
		return match_phases(g, n, axis, replace);
	*replace = rolled(g, x, axis, shift);
	return g->failed;
}

const struct op_def ops_roll[] = {
	{.name = "stint.Roll",
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.min_in = 1,
		.infer = roll_infer,
		.fold = roll_fold,
		.match = roll_match,
		.grad = roll_grad,
		.cost = data_move_cost,
		.emit_c = roll_emit,
		.example = EXAMPLES({.in = "5", .attr = "dim=5 shift=2 parts=5 perm=0"},
			{.in = "2,6,4,3",
				.attr = "dim=2,6,4,3 shift=0,1,3,0 parts=2,3,2,2,2,3 "
					"perm=0,1,3,2,4,5"},
			{.in = "2,3,2,2,2,3",
				.attr = "dim=2,6,4,3 shift=0,1,3,0 parts=2,3,2,2,2,3 "
					"perm=0,1,3,2,4,5 inverse=1"},
			{.in = "3,4", .attr = "dim=3,4 shift=1,2 parts=3,4 perm=1,0"},
			{.in = "3,4:bool", .attr = "dim=3,4 shift=2,0 parts=3,4 perm=0,1"})},
	{.name = NULL},
};
