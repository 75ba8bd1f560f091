/* The calls of the normalisations' kernels (norm.h): kernels/norm.h, norm_grad.h, norm_scale.h. */
#include "codegen/call.h"
#include "ops/norm/channel_cuda.h"
#include "ops/norm/norm_cuda.h"

/* Rows longer than this are summed in double precision. The other two are kernels/norm_parts.h's.
 */
enum { LONG_ROW = 4096, PART_ROWS = 128, COLUMNS = 64 };

static bool is_long(const struct norm *p)
{
	return norm_width(p) > LONG_ROW;
}

/* No loop over channels is needed. */
static bool is_flat(const struct norm *p, bool affine)
{
	return p->inner == 1 || !affine;
}

/* A sum of elements of t is made in double. */
static struct call_arg is_wide(const struct norm *p, const struct tensor *t)
{
	return ARG_INT(is_long(p) || dtype_is_narrow(t->dtype));
}

static const struct call_arg none = {.kind = CALL_NAME, .name = "(real *)0"};

static struct call_arg input(bool there, int k)
{
	return there ? ARG_X(k) : none;
}

/* No elements: the outputs from number k on, if there are any, are zeros. */
static enum status emit_zeros(struct emit *e, const struct node *n, int k)
{
	if (k == n->nout)
		return call_kernel(e, &(struct kernel_call){.turns = 0});
	for (; k < n->nout; k++)
		TRY(call_kernel(e, &(struct kernel_call){.file = "norm_parts.h",
					   .function = "norm_zeros",
					   .turns = n->out[k]->numel,
					   .args = CALL_ARGS(ARG_Y(k))}));
	return ST_OK;
}

enum status norm_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const bool scale = node_input(n, NORM_SCALE), bias = node_input(n, NORM_BIAS);
	const bool flat = is_flat(p, scale || bias);
	if (n->out[0]->numel == 0)
		return emit_zeros(e, n, 1);
	return call_kernel(e,
		&(struct kernel_call){.file = "norm.h",
			.function = flat ? "norm_rows" : "norm_channels",
			.ntype = 2,
			.type = {n->in[NORM_X], n->out[0]},
			.turns = p->rows,
			.work = (double)(p->rows * norm_width(p)) * 4,
			.args = CALL_ARGS(ARG_Y(0), p->centred ? ARG_Y(1) : none,
				ARG_Y(p->centred ? 2 : 1), ARG_X(NORM_X), input(scale, NORM_SCALE),
				input(bias, NORM_BIAS), ARG_SIZE(p->groups),
				ARG_SIZE(flat ? norm_width(p) : p->channels),
				ARG_IF(!flat, ARG_SIZE(p->inner)), is_wide(p, n->in[NORM_X]),
				ARG_INT(is_long(p)), ARG_DOUBLE(p->epsilon))});
}

enum status norm_grad_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const bool scale = node_input(n, 4), flat = is_flat(p, scale);
	if (n->out[0]->numel == 0)
		return emit_zeros(e, n, 1);
	return call_kernel(
		e, &(struct kernel_call){.file = "norm_grad.h",
			   .function = flat ? "norm_grad_rows" : "norm_grad_channels",
			   .ntype = 3,
			   .type = {n->in[0], n->in[1], n->out[0]},
			   .turns = p->rows,
			   .work = (double)(p->rows * norm_width(p)) * 6,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), input(p->centred, 2),
				   ARG_X(3), input(scale, 4), ARG_SIZE(p->groups),
				   ARG_SIZE(flat ? norm_width(p) : p->channels),
				   flat ? is_wide(p, n->in[0]) : ARG_SIZE(p->inner),
				   ARG_IF(flat, ARG_INT(is_long(p))))});
}

/* --- The gradients of x, scale and bias at once: rows are read once --- */

int64_t norm_all_workspace(const struct node *n, const struct target *t)
{
	const struct norm *p = n->param;
	(void)t;
	return div_up(p->rows, PART_ROWS) * p->channels * (p->centred ? 2 : 1) *
	       dtype_bytes(n->out[1]->dtype);
}

enum status norm_all_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const int64_t c = p->channels, parts = div_up(p->rows, PART_ROWS);
	if (n->out[0]->numel == 0)
		return emit_zeros(e, n, 1);
	TRY(call_kernel(
		e, &(struct kernel_call){.file = "norm_grad.h",
			   .function = "norm_grad_all",
			   .ntype = 3,
			   .type = {n->in[0], n->in[1], n->out[0]},
			   .turns = parts,
			   .work = (double)(p->rows * c) * 10,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), input(p->centred, 2),
				   ARG_X(3), ARG_X(4), ARG_SCRATCH(0), ARG_SIZE(p->rows),
				   ARG_SIZE(c), is_wide(p, n->in[0]), ARG_INT(is_long(p)))}));
	return call_kernel(e, &(struct kernel_call){.file = "norm_parts.h",
				      .function = "norm_parts_sums",
				      .turns = c,
				      .work = (double)(parts * c * (p->centred ? 2 : 1)),
				      .args = CALL_ARGS(ARG_Y(1), p->centred ? ARG_Y(2) : none,
					      ARG_SCRATCH(0), ARG_SIZE(parts), ARG_SIZE(c))});
}

/* --- The gradients of scale and bias --- */

enum status norm_scale_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const bool columns = p->inner == 1;
	if (n->out[0]->numel == 0 || p->rows == 0)
		return emit_zeros(e, n, 0);
	return call_kernel(e,
		&(struct kernel_call){.file = "norm_scale.h",
			.function = columns ? "norm_scale_columns" : "norm_scale_planes",
			.ntype = 2,
			.type = {n->in[0], n->in[1]},
			.turns = p->groups * (columns ? div_up(p->channels, COLUMNS) : p->channels),
			.work = (double)(p->rows * norm_width(p)) * 4,
			.args = CALL_ARGS(ARG_Y(0), p->centred ? ARG_Y(1) : none, ARG_X(0),
				ARG_X(1), input(p->centred, 2), ARG_X(3),
				ARG_SIZE(p->rows / p->groups), ARG_SIZE(p->groups),
				ARG_SIZE(p->channels), ARG_IF(!columns, ARG_SIZE(p->inner)))});
}
