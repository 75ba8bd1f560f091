/* Cross-entropy on a GPU: which of kernels/crossentropy.cuh does a node, and by how many threads.
 */
#include "ops/crossentropy/crossentropy_emit.h"
#include "ops/rows.h"

enum status crossentropy_cuda_rows(struct emit *e, const struct node *n, const struct label_call *c)
{
	const struct label_view *v = &c->v;
	const bool rows = v->inner == 1;
	const int64_t count = label_count(v);
	const struct rows_shape shape = rows_shape_of(v->rows, v->classes, n->in[X]);
	const int groups = columns_groups(count, v->classes);
	return call_kernel(
		e, &(struct kernel_call){.file = "crossentropy.cuh",
			   .function = rows ? "entropy_rows" : "entropy_columns",
			   .tasks = rows ? rows_tasks(count, shape) : columns_tasks(count, groups),
			   .threads = ROWS_THREADS,
			   .shared = {rows ? "row_parts" : "column_parts",
				   rows ? "wide_row_parts" : "wide_column_parts"},
			   .nconstant = rows ? 2 : 1,
			   .constant = {rows ? shape.threads : groups, shape.pack},
			   .args = CALL_ARGS(ARG_SCRATCH(0), crossentropy_lse(n), ARG_X(X),
				   c->in.label < 0 ? ARG_X(TARGET) : ARG_NULL,
				   ARG_STRUCT(&c->targets))});
}

static enum status labels_grad(struct emit *e, const struct node *n, const struct label_call *c)
{
	const struct label_view *v = &c->v;
	const bool rows = v->inner == 1;
	struct rows_shape shape = rows_shape_of(v->rows, v->classes, n->in[DX]);
	if (c->in.weight >= 0) /* they have no room for numbers outside of a row */
		shape.pack = 1;
	return call_kernel(
		e, &(struct kernel_call){.file = "crossentropy.cuh",
			   .function = rows ? "entropy_grad_rows" : "entropy_grad_elements",
			   .tasks = rows ? rows_tasks(v->rows, shape)
					 : div_up(n->in[DX]->numel, ROWS_THREADS),
			   .threads = ROWS_THREADS,
			   .nconstant = rows ? 2 : 0,
			   .constant = {shape.threads, shape.pack},
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(DX), ARG_X(DLOSS), ARG_X(LSE),
				   ARG_X_OR_NULL(n, DLSE), ARG_STRUCT(&c->targets), label_how(n),
				   label_counted(n, c))});
}

/* Packs of a row that each of its threads keeps in registers, of which it has 128; 0: they are too
 * many. */
static int packs_kept(const struct label_view *v, struct rows_shape shape, const struct tensor *x)
{
	enum { BYTES_MOST = 104 * 4 };
	const int64_t ahead = v->classes % shape.pack ? shape.pack - 1 : 0; /* of a row's begin */
	const int64_t packs = div_up(v->classes + ahead, shape.threads * shape.pack);
	return packs * shape.pack * dtype_bytes(x->dtype) <= BYTES_MOST ? (int)packs : 0;
}

bool crossentropy_reads_again(const struct node *n)
{
	const struct label_view v = label_view(n, n->in[X]);
	return packs_kept(&v, rows_shape_of(v.rows, v.classes, n->in[X]), n->in[X]) == 0;
}

enum status crossentropy_both_cuda(struct emit *e, const struct node *n, const struct label_call *c)
{
	const struct rows_shape shape = rows_shape_of(c->v.rows, c->v.classes, n->in[X]);
	return call_kernel(e,
		&(struct kernel_call){.file = "crossentropy.cuh",
			.function = "entropy_both_rows",
			.tasks = rows_tasks(c->v.rows, shape),
			.threads = ROWS_THREADS,
			.resident = 2,
			.shared = {"score_parts", "wide_row_parts"},
			.nconstant = 4,
			.constant = {shape.threads, shape.pack, packs_kept(&c->v, shape, n->in[X]),
				c->v.classes % shape.pack == 0},
			.args = CALL_ARGS(ARG_SCRATCH(0), ARG_Y(1), ARG_X(X), ARG_X(BOTH_DLOSS),
				ARG_STRUCT(&c->targets), label_how(n), label_counted(n, c))});
}

enum status crossentropy_grad_cuda(struct emit *e, const struct node *n, const struct label_call *c)
{
	const struct label_view *v = &c->v;
	const bool rows = v->inner == 1;
	const int64_t count = label_count(v);
	const struct rows_shape shape = rows_shape_of(v->rows, v->classes, n->in[DX]);
	const int groups = columns_groups(count, v->classes);
	if (c->in.label >= 0)
		return labels_grad(e, n, c);
	return call_kernel(e,
		&(struct kernel_call){.file = "crossentropy.cuh",
			.function = rows ? "entropy_aimed_grad_rows" : "entropy_aimed_grad_columns",
			.tasks = rows ? rows_tasks(count, shape) : columns_tasks(count, groups),
			.threads = ROWS_THREADS,
			.shared = {rows ? "row_parts" : "column_parts"},
			.nconstant = 1,
			.constant = {rows ? shape.threads : groups},
			.args = CALL_ARGS(ARG_Y(0), ARG_X(DX), ARG_X(DTARGET), ARG_X(DLOSS),
				ARG_X(LSE), ARG_X_OR_NULL(n, DLSE), ARG_STRUCT(&c->targets),
				label_how(n))});
}
