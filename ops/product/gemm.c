/* How matrix products of kernels/gemm.h are cut into blocks, and the scratch of each. */
#include "ops/product/gemm_op.h"

struct gemm_split gemm_split(int64_t batch, int64_t m, int64_t n, const struct target *target)
{
	/* Packing an element costs about as much as this many of its products. */
	enum { PACK = 16, MOST = 64 };
	const int64_t t = target->threads;
	struct gemm_split best = {m, n};
	double best_cost = INFINITY;
	if (target->bare) /* nothing is packed, and there is one thread */
		return best;
	for (int64_t pm = 1; pm <= min64(div_up(m, GEMM_ROW_UNIT), min64(MOST, 4 * t)); pm++)
		for (int64_t pn = 1; pn <= min64(div_up(n, GEMM_COL_UNIT), min64(MOST, 4 * t));
			pn++) {
			const int64_t mb = round_up(div_up(m, pm), GEMM_ROW_UNIT);
			const int64_t nb = round_up(div_up(n, pn), GEMM_COL_UNIT);
			const int64_t blocks = batch * div_up(m, mb) * div_up(n, nb);
			const double rows = (double)min64(mb, m), cols = (double)min64(nb, n);
			const double cost = (double)div_up(blocks, t) *
					    (rows * cols +
						    PACK * (rows * (double)div_up(nb, GEMM_NC) +
								   cols));
			if (cost < best_cost) {
				best_cost = cost;
				best = (struct gemm_split){mb, nb};
			}
		}
	return best;
}

int64_t gemm_block_elements(int64_t mb, int64_t nb, int64_t k, const struct target *t)
{
	const int64_t rows = round_up(min64(mb, GEMM_MC), GEMM_ROW_UNIT);
	const int64_t cols = round_up(min64(nb, GEMM_NC), GEMM_COL_UNIT);
	return t->bare ? 0 : round_up((rows + cols) * min64(k, GEMM_KC), 16);
}

struct op_cost product_cost(const struct node *n)
{
	const struct product *p = n->param;
	return (struct op_cost){
		2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k, node_bytes(n)};
}

int64_t product_scratch(const struct node *n, const struct target *t)
{
	const struct product *p = n->param;
	const struct gemm_split s = gemm_split(p->batch, p->m, p->n, t);
	return gemm_block_elements(s.mb, s.nb, p->k, t) * dtype_bytes(n->out[0]->dtype);
}
