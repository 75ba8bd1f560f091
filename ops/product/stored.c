/* Weights in small numbers with scales (struct stored): made real, or read so by products. */
#include "codegen/call.h"
#include "ops/data.h"
#include "ops/product/gemm_op.h"

/* struct stored (kernels/stored.h). */
#define STORED_FIELDS(s, form_of)                                                                  \
	CALL_FIELDS({"form", form_of}, {"middle", ARG_INT((s)->middle)},                           \
		{"row", ARG_INT((s)->row)}, {"column", ARG_INT((s)->column)},                      \
		{"row_block", ARG_INT((s)->row_block)}, {"row_scale", ARG_INT((s)->row_scale)},    \
		{"column_block", ARG_INT((s)->column_block)},                                      \
		{"column_scale", ARG_INT((s)->column_scale)}, {"flat", ARG_INT((s)->flat)})

static struct call_arg form_arg(enum stored_form form)
{
	return form == STORED_INT8   ? ARG_NAME("STORED_INT8")
	       : form == STORED_INT4 ? ARG_NAME("STORED_INT4")
				     : ARG_NAME("STORED_NF4");
}

/* --- stint.Widen(small, scales [, zeros]) --- */

static enum status widen_infer(struct graph *g, struct node *n)
{
	int rank;
	const int64_t *dim;
	TRY(node_ints(g, n, "shape", -1, &rank, &dim));
	return data_output(g, n, 0, g->real, rank, dim);
}

static enum status widen_emit(struct emit *e, const struct node *n)
{
	struct stored s;
	stored_of(n, &s);
	const struct call_struct of = {
		"struct stored", "stored", STORED_FIELDS(&s, form_arg(s.form))};
	return call_kernel(e, &(struct kernel_call){.file = "stored.h",
				      .function = "stored_widen",
				      .turns = s.columns ? s.rows : 0,
				      .work = 2 * (double)n->out[0]->numel,
				      .args = CALL_ARGS(ARG_STRUCT(&of), ARG_SIZE(s.columns),
					      ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X_OR_NULL(n, 2))});
}

/* In packs of as many neighbours as 16 bytes hold and divide a row. */
static enum status widen_emit_cuda(struct emit *e, const struct node *n)
{
	enum { THREADS = 256, PACK_BYTES = 16 };
	struct stored s;
	stored_of(n, &s);
	const struct call_struct of = {"struct", "how", STORED_FIELDS(&s, ARG_INT(s.form))};
	int64_t pack = PACK_BYTES / dtype_bytes(n->out[0]->dtype);
	while (s.columns % pack)
		pack /= 2;
	return call_kernel(
		e, &(struct kernel_call){.file = "stored.cuh",
			   .function = "stored_widen_packs",
			   .traits = &of,
			   .nconstant = 1,
			   .constant = {pack},
			   .shared = {"widen_room"},
			   .tasks = div_up(n->out[0]->numel, pack * THREADS),
			   .threads = THREADS,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X_OR_NULL(n, 2),
				   ARG_SIZE(s.columns), ARG_SIZE(n->out[0]->numel))});
}

/* --- stint.WidenScales(codes, coarse) --- */

static enum status scales_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, g->real, n->in[0]->rank, n->in[0]->dim);
}

static enum status scales_emit(struct emit *e, const struct node *n)
{
	const int64_t count = n->out[0]->numel;
	return call_kernel(e, &(struct kernel_call){.file = "stored_scales.h",
				      .function = "stored_scales",
				      .turns = count,
				      .work = 2 * (double)count,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1),
					      ARG_REAL(node_float(n, "offset", 0)))});
}

/* --- stint.MatMulStored(a, small, scales, zeros, bias): the last two may be absent; as
 * stint.MatMul, the matrix on the right [k, n] of small numbers --- */

static enum status product_infer(struct graph *g, struct node *n)
{
	const struct tensor *a = n->in[0];
	struct product *p = ARENA_NEW(g->arena, struct product);
	struct stored s;
	if (!p)
		return diag_nomem(g->diag);
	stored_of(n, &s);
	p->ta = node_int(n, "transA", 0) != 0;
	p->sa = a->rank == 3;
	p->batch = p->sa ? a->dim[0] : 1;
	p->m = a->dim[p->sa + p->ta];
	p->k = s.rows;
	p->n = s.columns;
	n->param = p;
	const int64_t dim[3] = {p->batch, p->m, p->n};
	n->out[0] = graph_tensor(g, NULL, g->real, a->rank, dim + !p->sa);
	return n->out[0] ? ST_OK : ST_INVALID;
}

/* With the numbers made real, for each of the rows of blocks anew. */
static struct op_cost stored_cost(const struct node *n)
{
	enum { WIDEN = 4, ROWS = 256 };
	const struct product *p = n->param;
	struct op_cost c = product_cost(n);
	c.flops += (double)WIDEN * (double)p->batch * (double)div_up(p->m, ROWS) * (double)p->k *
		   (double)p->n;
	return c;
}

static int64_t stored_workspace(const struct node *n, const struct target *t)
{
	return product_scratch(n, t) * t->threads;
}

static enum status stored_emit(struct emit *e, const struct node *n)
{
	const struct product *p = n->param;
	const struct gemm_split split = gemm_split(p->batch, p->m, p->n, e->g->target);
	struct stored s;
	stored_of(n, &s);
	const struct call_struct shape = {"struct matmul_shape", "shape", MATMUL_FIELDS(p, split)};
	const struct call_struct of = {
		"struct stored", "stored", STORED_FIELDS(&s, form_arg(s.form))};
	const int64_t turns = p->batch * div_up(p->m, split.mb) * div_up(p->n, split.nb);
	return call_kernel(e,
		&(struct kernel_call){.file = "matmul_stored.h",
			.function = "matmul_stored",
			.turns = n->out[0]->numel ? turns : 0,
			.work = product_cost(n).flops,
			.args = CALL_ARGS(ARG_STRUCT(&shape), ARG_STRUCT(&of), ARG_Y(0), ARG_X(0),
				ARG_X(1), ARG_X(2), ARG_X_OR_NULL(n, 3), ARG_X_OR_NULL(n, 4),
				ARG_OWN(0, product_scratch(n, e->g->target)))});
}

/* Of stint.MatMul(a, b): what a product sums over are a's columns and b's rows. */
int product_channels(const struct node *n, int k)
{
	const struct product *p = n->param;
	const int last = n->in[k]->rank - 1;
	return k > 1 ? -1 : k == 1 ? last - p->tb : last - !p->ta;
}

enum status product_stored(struct graph *g, const struct node *n, struct tensor *const *in, int k,
	const struct stored *s, struct tensor *const *small, struct tensor **out)
{
	const struct product *p = n->param;
	const struct stored b = p->tb ? stored_turned(s) : *s;
	if (k != 1 || p->sb || s->rows != n->in[1]->dim[0] || p->k == 0 ||
		dtype_is_narrow(n->out[0]->dtype))
		return ST_OK;
	struct attr attr[STORED_ATTRS + 1] = {ATTR_I("transA", p->ta)};
	TRY(stored_attributes(g, &b, attr + 1));
	struct tensor *with[5] = {in[0], small[0], small[1], small[2], n->nin > 2 ? in[2] : NULL};
	*out = graph_op(g, "stint.MatMulStored",
		with[4]   ? 5
		: with[3] ? 4
			  : 3,
		with, STORED_ATTRS + 1, attr);
	return g->failed;
}

const struct op_def ops_stored[] = {
	{.name = "stint.Widen",
		.role = ROLE_WIDEN,
		.min_in = 2,
		.max_in = 3,
		.infer = widen_infer,
		.work = 2,
		.narrow_out_cuda = 1,
		.emit_c = widen_emit,
		.emit_cuda = widen_emit_cuda},
	{.name = "stint.WidenScales",
		.role = ROLE_WIDEN_SCALES,
		.min_in = 2,
		.infer = scales_infer,
		.work = 2,
		.emit_c = scales_emit},
	{.name = "stint.MatMulStored",
		.min_in = 3,
		.max_in = 5,
		.infer = product_infer,
		.cost = stored_cost,
		.workspace = stored_workspace,
		.emit_c = stored_emit},
	{.name = NULL},
};
