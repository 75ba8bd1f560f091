/* Softmax, log-softmax and their gradients on a GPU: which of kernels/softmax.cuh does a node, and
 * by how many threads. */
#include "ops/rows.h"
#include "ops/softmax/softmax_op.h"

/* `wide`: of the tensors that are read, the one with the larger elements. */
static enum status call(struct emit *e, const struct node *n, const char *rows_function,
	const char *columns_function, const struct tensor *wide)
{
	const struct span *s = n->param;
	const bool rows = s->inner == 1, grad = n->nin > 1;
	const struct rows_shape shape = rows_shape_of(s->rows, s->n, wide);
	const int groups = columns_groups(s->rows * s->inner, s->n);
	return call_kernel(e,
		&(struct kernel_call){.file = "softmax.cuh",
			.function = rows ? rows_function : columns_function,
			.tasks = n->out[0]->numel == 0 ? 0
				 : rows                ? rows_tasks(s->rows, shape)
						       : columns_tasks(s->rows * s->inner, groups),
			.threads = ROWS_THREADS,
			.shared = {rows ? "row_parts" : "column_parts"},
			.nconstant = rows ? 3 : 2,
			.constant = {softmax_is_log(n), rows ? shape.threads : groups, shape.pack},
			.args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_IF(grad, ARG_X(1)),
				ARG_SIZE(s->rows), ARG_SIZE(s->n),
				ARG_IF(!rows, ARG_SIZE(s->inner)))});
}

enum status softmax_cuda_emit(struct emit *e, const struct node *n)
{
	return call(e, n, "softmax_rows", "softmax_columns", n->in[0]);
}

enum status softmax_grad_cuda_emit(struct emit *e, const struct node *n)
{
	const bool first = tensor_bytes(n->in[0]) >= tensor_bytes(n->in[1]);
	return call(e, n, "softmax_grad_rows", "softmax_grad_columns", n->in[first ? 0 : 1]);
}
