/* Small kernels of the recurrent operators' gradients (kernels/recurrent_parts.h): what the
 * products for dR and dP read. */
#include "codegen/call.h"
#include "ops/product/gemm_op.h"
#include "ops/recurrent/recurrent_op.h"

/* A tensor [directions, rows, width]. */
static enum status rows_output(struct graph *g, struct node *n, int64_t width)
{
	const struct recurrent *p = n->param;
	const int64_t dim[3] = {p->directions, p->steps * p->batch, width};
	return data_output(g, n, 0, g->real, 3, dim);
}

/* --- stint.RecurrentPrev(Y, h0?, lengths?): the state that each step began with --- */

enum status recurrent_prev_infer(struct graph *g, struct node *n)
{
	return rows_output(g, n, ((const struct recurrent *)n->param)->hidden);
}

/* Rows of `width` elements by pieces: a GPU's threads go by elements. */
static enum status rows_call(struct emit *e, const struct node *n, const char *function,
	int64_t rows, int64_t width, struct call_arg *args, int count)
{
	const int64_t piece = call_piece(e, width);
	args[count++] = ARG_SIZE(piece);
	args[count] = CALL_ARG(.kind = CALL_END);
	return call_kernel(e, &(struct kernel_call){.file = "recurrent_parts.h",
				      .function = function,
				      .turns = rows * div_up(width, piece),
				      .work = (double)n->out[0]->numel,
				      .args = args});
}

enum status recurrent_prev_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	struct call_field field[STEPS_FIELDS];
	const struct call_struct steps = recurrent_steps(p, field);
	struct call_arg args[8] = {
		ARG_Y(0), ARG_X(0), ARG_X_OR_NULL(n, 1), ARG_X_OR_NULL(n, 2), ARG_STRUCT(&steps)};
	return rows_call(e, n, "recurrent_prev", n->out[0]->numel / p->hidden, p->hidden, args, 5);
}

/* --- GRU: one gate's part of rows times r. stint.GruResetPrev(prev, gates): r prev, what the
 * hidden gate's weights saw. stint.GruResetGrad(dXW, gates): with linear_before_reset, the gradient
 * of what the recurrent product gave. --- */

enum status gru_part_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, g->real, n->in[0]->rank, n->in[0]->dim);
}

enum status gru_reset_prev_emit(struct emit *e, const struct node *n)
{
	const int64_t h = ((const struct recurrent *)n->param)->hidden;
	struct call_arg args[8] = {ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(h)};
	return rows_call(e, n, "gru_reset_prev", n->out[0]->numel / h, h, args, 4);
}

enum status gru_reset_grad_emit(struct emit *e, const struct node *n)
{
	const int64_t h = ((const struct recurrent *)n->param)->hidden;
	struct call_arg args[8] = {ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(h)};
	return rows_call(e, n, "gru_reset_grad", n->out[0]->numel / (3 * h), h, args, 4);
}

/* --- stint.LstmPeepholeGrad(dXW, cells, c0?, lengths?): sums over all steps of a gate's gradient
 * times the cell that it saw --- */

/* Hidden units that one thread sums up; on a GPU, rows that it does, where there are no more than
 * PEEPHOLE_PARTS times as many. */
enum { PEEPHOLE_PIECE = 64, PEEPHOLE_ROWS = 64, PEEPHOLE_PARTS = 256 };

enum status recurrent_peephole_infer(struct graph *g, struct node *n)
{
	const struct recurrent *p = n->param;
	return data_output(g, n, 0, g->real, 2, (int64_t[]){p->directions, 3 * p->hidden});
}

static int64_t part_rows(const struct recurrent *p)
{
	return max64(PEEPHOLE_ROWS, div_up(p->steps * p->batch, PEEPHOLE_PARTS));
}

int64_t recurrent_peephole_cuda_workspace(const struct node *n, const struct target *t)
{
	const struct recurrent *p = n->param;
	(void)t;
	return div_up(p->steps * p->batch, part_rows(p)) * n->out[0]->numel *
	       (int64_t)sizeof(float);
}

enum status recurrent_peephole_cuda_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	struct call_field field[STEPS_FIELDS];
	const struct call_struct steps = recurrent_steps(p, field);
	const int64_t each = part_rows(p), parts = div_up(p->steps * p->batch, each);
	TRY(call_kernel(e,
		&(struct kernel_call){.file = "recurrent_parts.h",
			.function = "peephole_parts",
			.turns = parts * p->directions * p->hidden,
			.args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), ARG_X(1), ARG_X_OR_NULL(n, 2),
				ARG_X_OR_NULL(n, 3), ARG_STRUCT(&steps), ARG_SIZE(each))}));
	return call_kernel(e, &(struct kernel_call){.file = "recurrent_parts.h",
				      .function = "peephole_join",
				      .turns = n->out[0]->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_SIZE(parts),
					      ARG_SIZE(n->out[0]->numel))});
}

enum status recurrent_peephole_emit(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	struct call_field field[STEPS_FIELDS];
	const struct call_struct steps = recurrent_steps(p, field);
	return call_kernel(
		e, &(struct kernel_call){.file = "recurrent_parts.h",
			   .function = "peephole_grad",
			   .turns = p->directions * div_up(p->hidden, PEEPHOLE_PIECE),
			   .work = 6.0 * (double)n->in[1]->numel,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X_OR_NULL(n, 2),
				   ARG_X_OR_NULL(n, 3), ARG_STRUCT(&steps))});
}
