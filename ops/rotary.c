/* Rotary position embedding (Su et al., "RoFormer", 2021): pairs of a token's values are turned by
 * angles that grow with its position.
 *
 * stint.Rotary(x, cos, sin), x [A,B,C,D], of which the first R = `dim` values of each row take part
 * (0: all). With halves (x1, x2), or even and odd values where `interleaved`:
 *
 *	y1 = cos1 x1 - sin1 x2,  y2 = sin2 x1 + cos2 x2;  the rest of the row is copied.
 *
 * cos and sin broadcast to [A,B,C,R], or to [A,B,C,R/2], which both halves share. `inverse` takes
 * the transposed matrix: its gradient. */
#include "codegen/call.h"
#include "ops/match.h"

struct rotary {
	int64_t dim[4], turned; /* of x; values that take part */
	int64_t width;          /* of cos and sin: turned or half of it */
	int64_t stride[2][3];   /* of cos and sin along x's first axes; 0: broadcast */
	bool interleaved, inverse;
};

static enum status read_angles(struct graph *g, const struct node *n, int k, struct rotary *p)
{
	const struct tensor *t = n->in[k];
	int64_t stride = t->rank ? t->dim[t->rank - 1] : 0;
	bool fits = t->rank >= 1 && t->rank <= 4 && dtype_is_real(t->dtype) &&
		    (k == 1 || stride == p->width);
	if (fits)
		p->width = stride;
	for (int i = 2, a = t->rank - 2; fits && a >= 0; i--, a--) {
		fits = t->dim[a] == 1 || t->dim[a] == p->dim[i];
		p->stride[k - 1][i] = t->dim[a] == 1 ? 0 : stride;
		stride *= t->dim[a];
	}
	if (fits && (p->width == p->turned || 2 * p->width == p->turned))
		return ST_OK;
	char a[200], b[200];
	return node_fail(g, n, NULL, "the angles' %s do not fit x %s", tensor_shape_text(t, a),
		tensor_shape_text(n->in[0], b));
}

static enum status rotary_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	struct rotary *p = ARENA_NEW(g->arena, struct rotary);
	if (!p)
		return diag_nomem(g->diag);
	if (x->rank != 4 || !dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "x must be real and have four axes");
	memcpy(p->dim, x->dim, sizeof p->dim);
	p->turned = node_int(n, "dim", 0) ? node_int(n, "dim", 0) : x->dim[3];
	p->interleaved = node_int(n, "interleaved", 0) != 0;
	p->inverse = node_int(n, "inverse", 0) != 0;
	if (p->turned < 0 || p->turned > x->dim[3] || p->turned % 2)
		return node_fail(g, n, NULL, "%lld of %lld values cannot be turned in pairs",
			(long long)p->turned, (long long)x->dim[3]);
	TRY(read_angles(g, n, 1, p));
	TRY(read_angles(g, n, 2, p));
	n->param = p;
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

/* The two values of pair k in a row, and the two of its angles. */
static void pair_at(const struct rotary *p, int64_t k, int64_t at[2], int64_t angle[2])
{
	const int64_t half = p->turned / 2;
	at[0] = p->interleaved ? 2 * k : k;
	at[1] = p->interleaved ? 2 * k + 1 : k + half;
	angle[0] = p->width == half ? k : at[0];
	angle[1] = p->width == half ? k : at[1];
}

static void fold_row(const struct node *n, int64_t row, const int64_t at[2], void *out)
{
	const struct rotary *p = n->param;
	const enum dtype t = n->out[0]->dtype;
	const int64_t base = row * p->dim[3];
	for (int64_t k = 0; k < p->turned / 2; k++) {
		int64_t v[2], angle[2];
		double x[2], c[2], s[2];
		pair_at(p, k, v, angle);
		for (int i = 0; i < 2; i++) {
			x[i] = tensor_real(n->in[0], base + v[i]);
			c[i] = tensor_real(n->in[1], at[0] + angle[i]);
			s[i] = tensor_real(n->in[2], at[1] + angle[i]);
		}
		value_set(t, out, base + v[0], c[0] * x[0] + (p->inverse ? s[1] : -s[0]) * x[1]);
		value_set(t, out, base + v[1], c[1] * x[1] + (p->inverse ? -s[0] : s[1]) * x[0]);
	}
	for (int64_t k = p->turned; k < p->dim[3]; k++)
		value_set(t, out, base + k, tensor_real(n->in[0], base + k));
}

static enum status rotary_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct rotary *p = n->param;
	for (int64_t row = 0; row < p->dim[0] * p->dim[1] * p->dim[2]; row++) {
		const int64_t i[3] = {
			row / p->dim[2] / p->dim[1], row / p->dim[2] % p->dim[1], row % p->dim[2]};
		int64_t at[2] = {0, 0};
		for (int k = 0; k < 2; k++)
			for (int a = 0; a < 3; a++)
				at[k] += i[a] * p->stride[k][a];
		fold_row(n, row, at, out[0]);
	}
	return ST_OK;
}

/* A turn is one of so many parts of a row. */
static enum status rotary_emit(struct emit *e, const struct node *n)
{
	const struct rotary *p = n->param;
	const struct tensor *x = n->in[0], *y = n->out[0];
	const int64_t pairs = p->turned / 2, parts = div_up(pairs, call_piece(e, pairs));
	const struct call_struct shape = {"struct rotary_shape", "r",
		CALL_FIELDS({"rows", ARG_SIZES(2, p->dim + 1)}, {"length", ARG_SIZE(p->dim[3])},
			{"pairs", ARG_SIZE(pairs)}, {"cos", ARG_SIZES(3, p->stride[0])},
			{"sin", ARG_SIZES(3, p->stride[1])},
			{"interleaved", ARG_INT(p->interleaved)},
			{"shared", ARG_INT(p->width != p->turned)},
			{"inverse", ARG_INT(p->inverse)})};
	return call_kernel(e, &(struct kernel_call){.file = "rotary.h",
				      .function = "rotary",
				      .ntype = 2,
				      .type = {x, y},
				      .turns = y->numel ? y->numel / p->dim[3] * parts : 0,
				      .work = 6 * (double)y->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X(2),
					      ARG_STRUCT(&shape), ARG_INT(parts))});
}

/* --- The gradient --- */

static struct tensor *turn(struct graph *g, const struct rotary *p, struct tensor *x,
	struct tensor *c, struct tensor *s, bool inverse)
{
	const struct attr attr[] = {ATTR_I("dim", p->turned), ATTR_I("interleaved", p->interleaved),
		ATTR_I("inverse", inverse)};
	return graph_op(g, "stint.Rotary", 3, (struct tensor *[]){x, c, s}, 3, attr);
}

/* The gradient of cos or sin: t, of x's shape, summed over what shares a value. */
static struct tensor *angle_grad(
	struct graph *g, const struct rotary *p, struct tensor *t, const struct tensor *angle)
{
	int64_t start = 0, axis = 3;
	const struct attr slice[] = {data_ints(g, "starts", 1, &start),
		data_ints(g, "ends", 1, &p->turned), data_ints(g, "axes", 1, &axis)};
	if (p->turned < p->dim[3])
		t = graph_op(g, "Slice", 1, &t, 3, slice);
	if (p->width != p->turned) {
		const int64_t pair = p->interleaved ? 4 : 3;
		const int64_t dim[5] = {p->dim[0], p->dim[1], p->dim[2],
			p->interleaved ? p->width : 2, p->interleaved ? 2 : p->width};
		const struct attr sum[] = {data_ints(g, "axes", 1, &pair), ATTR_I("keepdims", 0)};
		t = graph_reshape(g, t, 5, dim);
		t = graph_op(g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, &t, 2, sum);
	}
	return t ? graph_unbroadcast(g, t, angle) : NULL;
}

static enum status rotary_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct rotary *p = n->param;
	struct tensor *x = n->in[0];
	if (p->inverse && (want[1] || want[2]))
		return node_fail(g, n, NULL, "its angles have no gradient");
	if (want[0])
		dx[0] = turn(g, p, dy[0], n->in[1], n->in[2], !p->inverse);
	if (want[1])
		dx[1] = angle_grad(g, p, OP2(g, "Mul", dy[0], x), n->in[1]);
	if (want[2]) {
		/* by a quarter: what sin is multiplied with */
		const int64_t width = p->turned;
		const struct attr shape = data_ints(g, "shape", 1, &width);
		struct tensor *zero = graph_op(g, "stint.Zeros", 0, NULL, 1, &shape);
		struct tensor *one = zero ? OP2(g, "Add", zero, graph_scalar(g, 1)) : NULL;
		struct tensor *t = turn(g, p, x, zero, one, false);
		dx[2] = angle_grad(g, p, OP2(g, "Mul", dy[0], t), n->in[2]);
	}
	return g->failed;
}

/* --- ONNX's operator --- */

static enum status onnx_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	const int64_t heads = node_int(n, "num_heads", 0);
	if (x->rank != 3 && x->rank != 4)
		return node_fail(g, n, NULL, "x must have three or four axes");
	if (x->rank == 3 && (heads < 1 || x->dim[2] % heads))
		return node_fail(g, n, NULL, "x of three axes needs num_heads, dividing the last");
	if (n->in[1]->rank != n->in[2]->rank || n->in[1]->rank != (node_input(n, 3) ? 2 : 3))
		return node_fail(g, n, NULL,
			"cos_cache and sin_cache must have two axes with position_ids, three "
			"without");
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

static enum status onnx_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	struct tensor *x = in[0], *angle[2];
	const bool flat = x->rank == 3;
	const int64_t heads = node_int(n, "num_heads", 0);
	if (flat)
		x = graph_reshape(
			g, x, 4, (int64_t[]){x->dim[0], x->dim[1], heads, x->dim[2] / heads});
	for (int i = 0; i < 2; i++) {
		struct tensor *t = in[1 + i];
		if (n->nin > 3 && in[3])
			t = OP2(g, "Gather", t, in[3]);
		if (!t)
			return g->failed;
		const int64_t dim[4] = {
			t->dim[0], flat ? t->dim[1] : 1, flat ? 1 : t->dim[1], t->dim[2]};
		angle[i] = graph_reshape(g, t, 4, dim);
	}
	const struct attr attr[] = {ATTR_I("dim", node_int(n, "rotary_embedding_dim", 0)),
		ATTR_I("interleaved", node_int(n, "interleaved", 0))};
	struct tensor *y = graph_op(
		g, "stint.Rotary", 3, (struct tensor *[]){x, angle[0], angle[1]}, 2, attr);
	out[0] = y ? graph_reshape(g, y, n->out[0]->rank, n->out[0]->dim) : NULL;
	return g->failed;
}

/* --- Recognition: x cos + (−x2, x1) sin, x1 and x2 the halves of x's last axis --- */

/* t is half `which` of x. */
static bool is_half(const struct tensor *t, const struct tensor *x, int which)
{
	const struct node *n = match_source((struct tensor *)(uintptr_t)t)->maker;
	const int last = x->rank - 1;
	if (!n || match_source(n->in[0]) != x || x->dim[last] % 2)
		return false;
	const int64_t half = x->dim[last] / 2;
	if (node_is(n, "Split"))
		return n->nout == 2 && node_int(n, "axis", 0) == last && n->out[which] &&
		       match_source((struct tensor *)(uintptr_t)t) == n->out[which] &&
		       n->out[which]->dim[last] == half;
	const struct attr *start = node_attr(n, "cut_start"), *step = node_attr(n, "cut_step");
	if (!node_is(n, "Slice") || !start || !step)
		return false;
	for (int i = 0; i < last; i++)
		if (n->out[0]->dim[i] != x->dim[i] || step->ints[i] != 1)
			return false;
	return step->ints[last] == 1 && start->ints[last] == which * half &&
	       n->out[0]->dim[last] == half;
}

/* t = (−x2, x1) along the last axis: returns x. */
static struct tensor *turned_of(const struct tensor *t)
{
	const struct node *join = match_node(t, "Concat");
	const struct node *neg = join && join->nin == 2 ? match_node(join->in[0], "Neg") : NULL;
	if (!neg || node_int(join, "axis", 0) != join->out[0]->rank - 1)
		return NULL;
	const struct node *cut = match_source(join->in[1])->maker;
	struct tensor *x = cut && cut->nin > 0 && cut->in[0] ? match_source(cut->in[0]) : NULL;
	return x && tensor_same_shape(x, join->out[0]) && is_half(join->in[1], x, 0) &&
			       is_half(neg->in[0], x, 1)
		       ? x
		       : NULL;
}

/* The other factor of the product t of something of x's shape. */
static struct tensor *factor_of(const struct node *mul, int other, const struct tensor *x)
{
	struct tensor *t = mul->in[other];
	return t->rank >= 1 && t->rank <= x->rank && t->dim[t->rank - 1] == x->dim[x->rank - 1] &&
			       tensor_same_shape(mul->out[0], x)
		       ? t
		       : NULL;
}

/* Angles in x's axes as angles in those of the tensor that `perm` made x of; NULL when that moves
 * elements. */
static struct tensor *angles_before(struct graph *g, struct tensor *t, const int64_t *perm)
{
	int64_t dim[4] = {1, 1, 1, 1}, before[4];
	int64_t last = -1;
	for (int k = 3, a = t->rank - 1; a >= 0; k--, a--)
		dim[k] = t->dim[a];
	for (int i = 0; i < 4; i++) {
		if (dim[i] != 1 && perm[i] < last)
			return NULL;
		last = dim[i] != 1 ? perm[i] : last;
		before[perm[i]] = dim[i];
	}
	return graph_reshape(g, t, 4, before);
}

/* A transpose before it is done after it, so that attention reads what is stored. */
static struct tensor *build(struct graph *g, struct tensor *x, struct tensor *c, struct tensor *s)
{
	const struct node *move = match_node(x, "Transpose");
	const struct attr *perm = move ? node_attr(move, "perm") : NULL;
	if (perm && x->rank == 4 && perm->ints[3] == 3) {
		struct tensor *cb = angles_before(g, c, perm->ints);
		struct tensor *sb = angles_before(g, s, perm->ints);
		if (cb && sb) {
			struct tensor *y = OP3(g, "stint.Rotary", move->in[0], cb, sb);
			return graph_op(g, "Transpose", 1, &y, 1, perm);
		}
	}
	if (x->rank == 4)
		return OP3(g, "stint.Rotary", x, c, s);
	const int64_t dim[4] = {
		1, x->rank > 2 ? x->dim[0] : 1, x->dim[x->rank - 2], x->dim[x->rank - 1]};
	struct tensor *y = OP3(g, "stint.Rotary", graph_reshape(g, x, 4, dim), c, s);
	return y ? graph_reshape(g, y, x->rank, x->dim) : NULL;
}

static enum status rotary_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	if (!node_is(n, "Add"))
		return ST_OK;
	for (int i = 0; i < 4; i++) {
		const struct node *second = match_node(n->in[i % 2], "Mul");
		const struct node *first = match_node(n->in[1 - i % 2], "Mul");
		struct tensor *x = second ? turned_of(second->in[i / 2]) : NULL;
		if (!x || !first || x->rank < 2 || x->rank > 4)
			continue;
		const int at = match_source(first->in[0]) == x ? 0 : 1;
		struct tensor *c = factor_of(first, 1 - at, x);
		struct tensor *s = factor_of(second, 1 - i / 2, x);
		if (match_source(first->in[at]) != x || !c || !s)
			continue;
		*replace = build(g, x, c, s);
		return g->failed;
	}
	return ST_OK;
}

/* clang-format off */
const struct op_def ops_rotary[] = {
	{.name = "RotaryEmbedding", .since = 23, .min_in = 3, .max_in = 4, .infer = onnx_infer, .lower = onnx_lower,
		.example = EXAMPLES({.in = "2,3,5,6 9,3 9,3 2,5:i64<9"}, {.in = "2,5,18 2,5,3 2,5,3", .attr = "num_heads=3"},
			{.in = "2,3,5,6 2,5,2 2,5,2", .attr = "rotary_embedding_dim=4 interleaved=1"},
			{.in = "2,5,12 9,2 9,2 2,5:i64<9", .attr = "num_heads=2 rotary_embedding_dim=4"})},
	{.name = "stint.Rotary", .min_in = 3, .infer = rotary_infer, .fold = rotary_fold,
		.grad = rotary_rule, .match = rotary_match, .emit_c = rotary_emit, .work = 3, .narrow_in = 1, .narrow_out = 1, .npair = 1, .pair = {{0, 0}},
		.example = EXAMPLES({.in = "2,3,5,6 5,6 5,6"}, {.in = "a,b,c,4 a,1,c,2 a,1,c,2"},
			{.in = "2,3,5,6 3,1,6 2,1,5,6", .attr = "interleaved=1"},
			{.in = "2,3,5,7 2,3,5,2 2", .attr = "dim=4"},
			{.in = "2,3,5,7 5,2 1,2", .attr = "dim=4 interleaved=1"})},
	{0},
};
/* clang-format on */
