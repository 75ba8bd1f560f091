/* MatMul and Gemm. Both become stint.MatMul: one product, or a batch of them, with transposes as
 * flags, so that no gradient needs a transposed copy. Whole numbers become stint.IntMatMul. */
#include "codegen/call.h"
#include "graph/op_adapter.h"
#include "ops/dora_op.h"
#include "ops/product/gemm_op.h"
#include "ops/target_op.h"

/* An operand before its matrices were transposed: *t says so. */
static struct tensor *stored(struct tensor *x, bool *t)
{
	const struct node *n = x ? x->maker : NULL;
	while (n && (n->op->traits & (OP_VIEW | OP_STOP)) == OP_VIEW &&
		tensor_same_shape(x, n->in[0]))
		n = n->in[0]->maker;
	if (!node_is(n, "Transpose"))
		return x;
	const int64_t *perm = node_attr(n, "perm")->ints;
	int last = x->rank - 1;
	if (last < 1 || perm[last] != last - 1 || perm[last - 1] != last)
		return x;
	for (int i = 0; i < last - 1; i++)
		if (perm[i] != i)
			return x;
	*t = !*t;
	return n->in[0];
}

static struct tensor *product_op(
	struct graph *g, struct tensor *a, struct tensor *b, struct tensor *bias, bool ta, bool tb)
{
	a = stored(a, &ta);
	b = stored(b, &tb);
	const struct attr attr[2] = {ATTR_I("transA", ta), ATTR_I("transB", tb)};
	struct tensor *in[3] = {a, b, bias};
	return graph_op(g, "stint.MatMul", bias ? 3 : 2, in, 2, attr);
}

static enum dtype product_type(const struct graph *g, const struct tensor *a)
{
	return dtype_is_real(a->dtype) ? g->real : a->dtype;
}

static enum status product_infer(struct graph *g, struct node *n)
{
	const struct tensor *a = n->in[0], *b = n->in[1], *bias = node_input(n, PRODUCT_BIAS);
	struct product *p = ARENA_NEW(g->arena, struct product);
	if (!p)
		return diag_nomem(g->diag);
	p->ta = node_int(n, "transA", 0) != 0;
	p->tb = node_int(n, "transB", 0) != 0;
	if (a->rank < 2 || a->rank > 3 || b->rank < 2 || b->rank > 3)
		return node_fail(g, n, NULL, "operands must have rank 2 or 3");
	p->sa = a->rank == 3;
	p->sb = b->rank == 3;
	const int64_t *da = a->dim + p->sa, *db = b->dim + p->sb;
	p->m = da[p->ta];
	p->k = da[!p->ta];
	p->n = db[!p->tb];
	p->batch = p->sa ? a->dim[0] : p->sb ? b->dim[0] : 1;
	if (db[p->tb] != p->k || (p->sb && b->dim[0] != p->batch))
		return node_fail(g, n, NULL, "shapes of the operands do not match");
	if (bias && (bias->rank != 1 || bias->dim[0] != p->n))
		return node_fail(
			g, n, NULL, "the bias must have the shape [%lld]", (long long)p->n);
	n->param = p;
	const bool batched = p->sa || p->sb;
	const int64_t dim[3] = {p->batch, p->m, p->n};
	n->out[0] = graph_tensor(g, NULL, product_type(g, a), batched ? 3 : 2, dim + !batched);
	if (!n->out[0])
		return ST_INVALID;
	const struct tensor *added = node_input(n, PRODUCT_ADDED);
	return added && (bias || !tensor_same_shape(added, n->out[0]))
		       ? node_fail(g, n, NULL, "what is added must have the result's shape")
		       : ST_OK;
}

/* y = A B. Of a as stored: dA = dy B^T, or, transposed, dA^T = B dy^T; the same for b. */
static enum status product_grad(struct graph *g, const struct node *n, struct tensor *const *dys,
	const bool *want, struct tensor **dx)
{
	const struct product *p = n->param;
	struct tensor *a = n->in[0], *b = n->in[1], *dy = dys[0];
	if (want[0]) {
		struct tensor *d = p->ta ? product_op(g, b, dy, NULL, p->tb, true)
					 : product_op(g, dy, b, NULL, false, !p->tb);
		dx[0] = graph_unbroadcast(g, d, a);
	}
	if (want[1] && p->sa && !p->sb && !p->ta) {
		/* The sum over the batch is part of the product's own. */
		struct tensor *rows = graph_reshape(g, a, 2, (int64_t[]){p->batch * p->m, p->k});
		struct tensor *drows = graph_reshape(g, dy, 2, (int64_t[]){p->batch * p->m, p->n});
		dx[1] = p->tb ? product_op(g, drows, rows, NULL, true, false)
			      : product_op(g, rows, drows, NULL, true, false);
	} else if (want[1]) {
		struct tensor *d = p->tb ? product_op(g, dy, a, NULL, true, p->ta)
					 : product_op(g, a, dy, NULL, !p->ta, false);
		dx[1] = graph_unbroadcast(g, d, b);
	}
	if (n->nin > PRODUCT_BIAS && want[PRODUCT_BIAS])
		dx[PRODUCT_BIAS] = graph_unbroadcast(g, dy, n->in[PRODUCT_BIAS]);
	if (n->nin > PRODUCT_ADDED && want[PRODUCT_ADDED])
		dx[PRODUCT_ADDED] = dy;
	return g->failed;
}

/* All of the graph's real type. */
static bool product_is_whole(const struct node *n)
{
	bool whole = !dtype_is_narrow(n->out[0]->dtype);
	for (int i = 0; i < n->nin; i++)
		whole &= !n->in[i] || n->in[i]->dtype == n->out[0]->dtype;
	return whole;
}

/* One term a sum. */
static bool product_outer(const struct node *n, int *column, int *row)
{
	const struct product *p = n->param;
	*column = 0;
	*row = 1;
	return p->batch == 1 && p->k == 1 && !node_input(n, PRODUCT_BIAS) &&
	       !node_input(n, PRODUCT_ADDED) && product_is_whole(n);
}

/* One row, or one column without a bias: a vector times a matrix, which has a text of its own. */
static bool product_is_matvec(const struct node *n, struct matvec *v)
{
	const struct product *p = n->param;
	const bool bias = node_input(n, PRODUCT_BIAS);
	const bool row = p->m == 1, column = p->n == 1 && !bias;
	if (p->batch != 1 || p->k < 2 || (!row && !column) || !product_is_whole(n) ||
		node_input(n, PRODUCT_ADDED))
		return false;
	*v = row ? (struct matvec){p->n, p->k, p->tb, 0, 1, bias ? PRODUCT_BIAS : -1}
		 : (struct matvec){p->m, p->k, !p->ta, 1, 0, -1};
	return true;
}

static enum stint_product_extra product_extra(const struct node *n)
{
	return node_input(n, PRODUCT_BIAS)    ? STINT_PRODUCT_BIAS
	       : node_input(n, PRODUCT_ADDED) ? STINT_PRODUCT_ADD
					      : STINT_PRODUCT_PLAIN;
}

/* A vector times a matrix adds nothing, nor does a product that is an outer one: updates make it
 * themselves. */
static bool product_adds(const struct graph *g, const struct node *n)
{
	(void)g;
	const struct product *p = n->param;
	struct matvec v;
	return !node_input(n, PRODUCT_BIAS) && p->k > 1 && !product_is_matvec(n, &v);
}

static bool product_library(const struct node *n, int way, struct lib_call *call)
{
	const struct product *p = n->param;
	struct matvec v;
	if (way > 0 || n->out[0]->dtype == DT_F64 || n->out[0]->numel == 0 || p->k == 0)
		return false;
	*call = (struct lib_call){.call = {.kind = STINT_CALL_PRODUCT,
					  .types = product_types(n),
					  .product = {.batch = p->batch,
						  .m = p->m,
						  .n = p->n,
						  .k = p->k,
						  .t0 = p->ta,
						  .t1 = p->tb,
						  .each0 = p->sa,
						  .each1 = p->sb,
						  .extra = product_extra(n)}},
		.speed = 1};
	call->slow = product_is_matvec(n, &v); /* it has a text of its own */
	return true;
}

static int64_t product_workspace(const struct node *n, const struct target *t)
{
	struct matvec v;
	if (product_is_matvec(n, &v))
		return 0;
	return product_scratch(n, t) * t->threads;
}

static enum status product_emit(struct emit *e, const struct node *n)
{
	const struct product *p = n->param;
	struct matvec v;
	if (product_is_matvec(n, &v))
		return matvec_emit(e, &v);
	const struct gemm_split s = gemm_split(p->batch, p->m, p->n, e->g->target);
	const struct call_struct shape = {"struct matmul_shape", "shape", MATMUL_FIELDS(p, s)};
	const int64_t scratch = product_scratch(n, e->g->target);
	return call_kernel(
		e, &(struct kernel_call){.file = "matmul.h",
			   .function = "matmul_blocks",
			   .turns = n->out[0]->numel == 0
					    ? 0
					    : p->batch * div_up(p->m, s.mb) * div_up(p->n, s.nb),
			   .work = product_cost(n).flops,
			   .args = CALL_ARGS(ARG_STRUCT(&shape), ARG_Y(0), ARG_X(0), ARG_X(1),
				   ARG_X_OR_NULL(n, PRODUCT_BIAS), ARG_X_OR_NULL(n, PRODUCT_ADDED),
				   scratch ? ARG_OWN(0, scratch) : ARG_NULL)});
}

/* --- The same on whole numbers, modulo 2^64; no gradient passes. --- */

static enum status whole_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct product *p = n->param;
	const int64_t *a = n->in[0]->data, *b = n->in[1]->data;
	int64_t *y = out[0];
	for (int64_t i = 0; i < n->out[0]->numel; i++) {
		const int64_t column = i % p->n, row = i / p->n % p->m, batch = i / p->n / p->m;
		const int64_t *x = a + ((p->sa ? batch * p->m : 0) + row) * p->k;
		const int64_t *w = b + (p->sb ? batch * p->k * p->n : 0) + column;
		uint64_t sum = 0;
		for (int64_t k = 0; k < p->k; k++)
			sum += (uint64_t)x[k] * (uint64_t)w[k * p->n];
		y[i] = (int64_t)sum;
	}
	return ST_OK;
}

static enum status whole_emit(struct emit *e, const struct node *n)
{
	const struct product *p = n->param;
	const struct gemm_split one = {1, 1};
	const struct call_struct shape = {"struct matmul_shape", "shape", MATMUL_FIELDS(p, one)};
	return call_kernel(
		e, &(struct kernel_call){.file = "matmul.h",
			   .function = "matmul_whole",
			   .turns = n->out[0]->numel,
			   .work = product_cost(n).flops,
			   .args = CALL_ARGS(ARG_STRUCT(&shape), ARG_Y(0), ARG_X(0), ARG_X(1))});
}

/* --- MatMul: NumPy's rules, brought to the form above. --- */

/* Shape of a @ b, and of its batch axes alone. */
struct matmul_shape {
	int64_t m, n, k;
	int rank, nbatch, na, nb; /* of the result; batch axes of the result, a, b */
	int64_t dim[RANK_MAX], batch[RANK_MAX];
};

static enum status matmul_shape(struct graph *g, const struct node *n, const struct tensor *a,
	const struct tensor *b, struct matmul_shape *s)
{
	if (a->rank < 1 || b->rank < 1)
		return node_fail(g, n, NULL, "operands must have at least one axis");
	if (dtype_is_real(a->dtype) != dtype_is_real(b->dtype) || a->dtype == DT_BOOL ||
		b->dtype == DT_BOOL)
		return node_fail(g, n, NULL,
			"only real matrices, or those of whole numbers, can be multiplied");
	s->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
	s->k = a->dim[a->rank - 1];
	s->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
	const int64_t kb = b->rank > 1 ? b->dim[b->rank - 2] : b->dim[0];
	if (kb != s->k) {
		char ta[200], tb[200];
		return node_fail(g, n, NULL, "cannot multiply %s by %s", tensor_shape_text(a, ta),
			tensor_shape_text(b, tb));
	}
	s->na = a->rank > 2 ? a->rank - 2 : 0;
	s->nb = b->rank > 2 ? b->rank - 2 : 0;
	TRY(node_broadcast(g, n, s->na, a->dim, s->nb, b->dim, &s->nbatch, s->batch));
	s->rank = s->nbatch;
	memcpy(s->dim, s->batch, sizeof s->dim);
	if (a->rank > 1)
		s->dim[s->rank++] = s->m;
	if (b->rank > 1)
		s->dim[s->rank++] = s->n;
	return ST_OK;
}

static enum status matmul_infer(struct graph *g, struct node *n)
{
	struct matmul_shape s;
	TRY(matmul_shape(g, n, n->in[0], n->in[1], &s));
	n->out[0] = graph_tensor(g, NULL, product_type(g, n->in[0]), s.rank, s.dim);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static int64_t product_of(int n, const int64_t *v)
{
	int64_t p = 1;
	for (int i = 0; i < n; i++)
		p *= v[i];
	return p;
}

/* `x` with `n` batch axes before its r by c matrices as [batch, r, c], or as [r, c] where it has
 * one matrix for all; in between, it is expanded. */
static struct tensor *matmul_operand(struct graph *g, struct tensor *x, int n, int64_t r, int64_t c,
	const struct matmul_shape *s)
{
	const int64_t all = product_of(s->nbatch, s->batch), own = product_of(n, x->dim);
	if (own == 1)
		return graph_reshape(g, x, 2, (int64_t[]){r, c});
	if (own != all) {
		int64_t dim[RANK_MAX];
		memcpy(dim, s->batch, sizeof dim);
		dim[s->nbatch] = r;
		dim[s->nbatch + 1] = c;
		x = OP2(g, "Expand", x, graph_ints(g, s->nbatch + 2, dim));
	}
	return x ? graph_reshape(g, x, 3, (int64_t[]){all, r, c}) : NULL;
}

static enum status matmul_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	struct matmul_shape s;
	TRY(matmul_shape(g, n, in[0], in[1], &s));
	struct tensor *a, *b = matmul_operand(g, in[1], s.nb, s.k, s.n, &s);
	if (b && b->rank == 2) /* one matrix for all rows of a */
		a = graph_reshape(
			g, in[0], 2, (int64_t[]){product_of(s.na, in[0]->dim) * s.m, s.k});
	else
		a = matmul_operand(g, in[0], s.na, s.m, s.k, &s);
	struct tensor *y = a && !dtype_is_real(a->dtype) ? OP2(g, "stint.IntMatMul", a, b)
							 : product_op(g, a, b, NULL, false, false);
	out[0] = y ? graph_reshape(g, y, s.rank, s.dim) : NULL;
	return g->failed;
}

/* --- Gemm: alpha A B + beta C. --- */

static enum status gemm_infer(struct graph *g, struct node *n)
{
	const struct tensor *a = n->in[0], *b = n->in[1];
	const bool ta = node_int(n, "transA", 0) != 0, tb = node_int(n, "transB", 0) != 0;
	if (a->rank != 2 || b->rank != 2 || a->dim[!ta] != b->dim[tb]) {
		char sa[200], sb[200];
		return node_fail(g, n, NULL, "cannot multiply %s%s by %s%s",
			tensor_shape_text(a, sa), ta ? " transposed" : "", tensor_shape_text(b, sb),
			tb ? " transposed" : "");
	}
	if (!dtype_is_real(a->dtype) || !dtype_is_real(b->dtype))
		return node_fail(g, n, NULL, "only real matrices can be multiplied");
	const int64_t dim[2] = {a->dim[ta], b->dim[!tb]};
	if (node_input(n, 2)) {
		int rank;
		int64_t both[RANK_MAX];
		TRY(node_broadcast(g, n, 2, dim, n->in[2]->rank, n->in[2]->dim, &rank, both));
		if (rank != 2 || both[0] != dim[0] || both[1] != dim[1])
			return node_fail(g, n, NULL, "C does not broadcast to the product's shape");
	}
	n->out[0] = graph_tensor(g, NULL, g->real, 2, dim);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static struct tensor *gemm_scaled(struct graph *g, struct tensor *x, double factor)
{
	return factor == 1 ? x : OP2(g, "Mul", x, graph_scalar(g, factor));
}

static enum status gemm_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const bool ta = node_int(n, "transA", 0) != 0, tb = node_int(n, "transB", 0) != 0;
	const double alpha = node_float(n, "alpha", 1), beta = node_float(n, "beta", 1);
	const int64_t cols = n->out[0]->dim[1];
	struct tensor *c = n->nin > 2 && in[2] && beta != 0 ? gemm_scaled(g, in[2], beta) : NULL;
	if (c && target_adds_product_bias(g->target) && alpha == 1 && c->numel == cols &&
		c->rank > 0 && c->dim[c->rank - 1] == cols) {
		c = graph_reshape(g, c, 1, &cols);
		out[0] = product_op(g, in[0], in[1], c, ta, tb);
		return g->failed;
	}
	struct tensor *y = gemm_scaled(g, product_op(g, in[0], in[1], NULL, ta, tb), alpha);
	out[0] = c ? OP2(g, "Add", y, c) : y;
	return g->failed;
}

/* --- Adapters: x A^T B^T, A [r, in] and B [out, r] as PEFT has them. --- */

/* What a node computes: rows by a weight; `plain`, where no bias was added. */
struct adapted {
	struct tensor *rows, *weight, *plain;
	bool turned; /* the weight's first axis is its outputs */
};

static struct tensor *by_weight(struct graph *g, struct tensor *rows, const struct adapted *of)
{
	const struct attr turned = ATTR_I("transB", 1);
	return of->turned
		       ? graph_op(g, "Gemm", 2, (struct tensor *[]){rows, of->weight}, 1, &turned)
		       : OP2(g, "MatMul", rows, of->weight);
}

static enum status product_adapt(
	struct adapting *x, const struct adapted *of, struct tensor **delta)
{
	struct graph *g = adapting_graph(x);
	const int64_t r = adapting_rank(x);
	const int64_t in = of->weight->dim[of->turned], out = of->weight->dim[!of->turned];
	struct tensor *a = adapting_parameter(
		x, "lora_A.weight", 2, (int64_t[]){r, in}, ADAPTER_UNIFORM, in);
	struct tensor *b = adapting_parameter(
		x, "lora_B.weight", 2, (int64_t[]){out, r}, ADAPTER_ZEROS, 0);
	struct tensor *rows = adapting_dropped(x, of->rows);
	struct tensor *low = OP2(g, "MatMul", rows, OP1(g, "Transpose", a));
	*delta = OP2(g, "MatMul", adapting_scaled(x, low), OP1(g, "Transpose", b));
	if (!adapting_lengths(x) || g->failed != ST_OK)
		return g->failed;
	const struct dora of_rows = {.a = a,
		.b = b,
		.a_on_weight = by_weight(g, a, of),
		.base = rows == of->rows ? of->plain : by_weight(g, rows, of),
		.delta = *delta,
		.rank = 1,
		.dim = &out};
	*delta = dora_added(x, &of_rows);
	return g->failed;
}

static enum status matmul_adapt(
	struct adapting *x, const struct node *n, struct tensor *const *in, struct tensor **out)
{
	const struct tensor *w = in[1];
	if (w->rank != 2)
		return node_fail(adapting_graph(x), n, NULL,
			"--lora: its weight '%s' is no matrix: it has %d axes", w->name, w->rank);
	return product_adapt(x, &(struct adapted){in[0], in[1], n->out[0], false}, out);
}

static enum status gemm_adapt(
	struct adapting *x, const struct node *n, struct tensor *const *in, struct tensor **out)
{
	struct graph *g = adapting_graph(x);
	const double alpha = node_float(n, "alpha", 1), beta = node_float(n, "beta", 1);
	const bool tb = node_int(n, "transB", 0) != 0;
	struct tensor *bias = n->nin > 2 ? in[2] : NULL, *plain = n->out[0];
	if (tb)
		adapting_turn(x);
	if (adapting_lengths(x) && bias)
		plain = OP2(g, "Sub", plain, gemm_scaled(g, bias, beta));
	if (adapting_lengths(x) && alpha != 1)
		return node_fail(g, n, NULL, "--lora: dora beside a factor (alpha) of %g", alpha);
	struct tensor *rows = node_int(n, "transA", 0) ? OP1(g, "Transpose", in[0]) : in[0];
	TRY(product_adapt(x, &(struct adapted){rows, in[1], plain, tb}, out));
	*out = gemm_scaled(g, *out, alpha);
	return g->failed;
}

static const struct op_example product_examples[] = {
	{.in = "a,B B,c"},
	{.in = "a,b c,a c", .attr = "transA=1 transB=1"},
	{.in = "a,b,c a,c,D"},
	{.in = "2,4,3 2,5,4", .attr = "transA=1 transB=1"},
	{.in = "3,4 2,4,5"},
	{.in = "2,3,4 5,4 5", .attr = "transB=1"},
	{.in = "2,4,3 4,5", .attr = "transA=1"},
	{.in = "37,300 300,70 70"},
	{.in = "1,300 70,300 70", .attr = "transB=1"},
	{.in = "1,B B,c"},
	{.in = "1,300 300,170 170"},
	{.in = "300,70 300,1", .attr = "transA=1"},
	{.in = "71,33 33,1"},
	{.in = "a,B B,c - a,c"},
	{.in = "2,4,3 2,3,5 - 2,4,5"},
	{.in = "65,70 70,300 - 65,300"},
	{0},
};

static const struct op_example whole_examples[] = {
	{.in = "a,B:i64<9 B,c:i64<9"},
	{.in = "2,3,4:i64<9 2,4,5:i64<9"},
	{.in = "3,4:i64<9 2,4,5:i64<9"},
	{.in = "2,3,4:i64<9 4,5:i64<9"},
	{0},
};

static const struct op_example matmul_examples[] = {
	{.in = "a,B B,c"},
	{.in = "4 4"},
	{.in = "4 4,5"},
	{.in = "3,4 4"},
	{.in = "2,3,4 4,5"},
	{.in = "2,3,4 4"},
	{.in = "4 2,4,5"},
	{.in = "3,4 2,4,5"},
	{.in = "2,3,4,5 2,3,5,2"},
	{.in = "a,1,b,C d,C,e"},
	{.in = "1,3,4 2,4,3"},
	{.in = "65,33 33,41"},
	{.in = "2,3,4:i64<9 1,4,5:i64<9"},
	{.in = "4:i64<9 4,5:i64<9"},
	{0},
};

static const struct op_example gemm_examples[] = {
	{.in = "a,B B,c"},
	{.in = "3,4 5,4 5", .attr = "transB=1"},
	{.in = "a,b a,c b,c", .attr = "transA=1"},
	{.in = "4,3 5,4 3,1", .attr = "transA=1 transB=1 alpha=0.5 beta=2.0"},
	{.in = "3,4 4,5 ()", .attr = "beta=0.5"},
	{.in = "3,4 4,5 1,5", .attr = "beta=0.5"},
	{.in = "3,4 4,1 1"},
	{.in = "3,4 4,5 1"},
	{.in = "3,4 4,5 5", .attr = "beta=0.0"},
	{0},
};

const struct op_def ops_matmul[] = {
	{.name = "MatMul",
		.apart = APART_PRODUCT,
		.weights = 2,
		.since = 1,
		.min_in = 2,
		.infer = matmul_infer,
		.lower = matmul_lower,
		.adapter = &(const struct op_adapter){ADAPTER_LINEAR, 1, matmul_adapt},
		.example = matmul_examples},
	{.name = "Gemm",
		.apart = APART_FIRST,
		.weights = 6,
		.bias = {.input = 2, .axis = 1, .turned = "transB"},
		.since = 7,
		.min_in = 2,
		.max_in = 3,
		.infer = gemm_infer,
		.lower = gemm_lower,
		.adapter = &(const struct op_adapter){ADAPTER_LINEAR, 1, gemm_adapt},
		.example = gemm_examples},
	{.name = "stint.MatMul",
		.min_in = 2,
		.max_in = 4,
		.npair = 1,
		.pair = {{0, PRODUCT_ADDED}},
		.addend = PRODUCT_ADDED,
		.adds = product_adds,
		.infer = product_infer,
		.traits = OP_PRODUCT,
		.narrow_in = 3,
		.narrow_out = 1,
		.grad = product_grad,
		.channels = product_channels,
		.stored = product_stored,
		.outer = product_outer,
		.cost = product_cost,
		.library = product_library,
		.workspace = product_workspace,
		.emit_c = product_emit,
		.example = product_examples},
	{.name = "stint.IntMatMul",
		.min_in = 2,
		.traits = OP_STOP,
		.infer = product_infer,
		.fold = whole_fold,
		.cost = product_cost,
		.emit_c = whole_emit,
		.example = whole_examples},
	{0},
};
