/* A product of a vector and a matrix in plain C (kernels/matvec.h). */
#include "codegen/call.h"
#include "ops/product/gemm_op.h"

enum status matvec_emit(struct emit *e, const struct matvec *v)
{
	/* threads share the matrix's rows, four at a time, or its columns */
	const int64_t block = max64(64, round_up(div_up(v->n, e->g->target->threads), 16));
	const int64_t width = v->transposed ? 4 : min64(block, v->n);
	return call_kernel(
		e, &(struct kernel_call){.file = "matvec.h",
			   .function = v->transposed ? "matvec_dots" : "matvec_rows",
			   .turns = v->n ? div_up(v->n, width) : 0,
			   .work = 2.0 * (double)v->n * (double)v->k,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(v->x), ARG_X(v->w),
				   v->bias < 0 ? ARG_NULL : ARG_X(v->bias), ARG_SIZE(v->n),
				   ARG_SIZE(v->k), ARG_IF(!v->transposed, ARG_SIZE(width)))});
}
