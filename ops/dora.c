/* DoRA (Liu et al., "DoRA: Weight-Decomposed Low-Rank Adaptation", 2024, arXiv 2402.09353): the
 * rows of W + s B A, one for each output, get trained lengths. */
#include "graph/op_adapter.h"
#include "ops/dora_op.h"

/* Row i is as long as the root of |W_i|^2 + 2 s B_i (A W_i^T) + s^2 B_i (A A^T) B_i^T: no matrix of
 * W's size is made. Nothing trains through it, as the paper proposes (4.3). */
static struct tensor *lengths(struct adapting *x, const struct dora *of, struct tensor *squares)
{
	struct graph *g = adapting_graph(x);
	const double s = adapting_scale(x);
	const struct attr keep = ATTR_I("keepdims", 0);
	struct tensor *mixed = OP2(g, "Mul", of->b, OP1(g, "Transpose", of->a_on_weight));
	struct tensor *gram = OP2(g, "MatMul", of->a, OP1(g, "Transpose", of->a));
	struct tensor *own = OP2(g, "Mul", of->b, OP2(g, "MatMul", of->b, gram));
	struct tensor *both = OP2(g, "Add", OP2(g, "Mul", mixed, graph_scalar(g, 2 * s)),
		OP2(g, "Mul", own, graph_scalar(g, s * s)));
	struct tensor *sum = graph_op(g, "ReduceSum", 2,
		(struct tensor *[]){both, graph_ints(g, 1, &(int64_t){1})}, 1, &keep);
	sum = graph_reshape(g, OP2(g, "Add", squares, sum), of->rank, of->dim);
	return OP1(g, "stint.StopGradient", OP1(g, "Sqrt", sum));
}

struct tensor *dora_added(struct adapting *x, const struct dora *of)
{
	struct graph *g = adapting_graph(x);
	struct tensor *squares;
	struct tensor *trained = of->b ? adapting_rows(x, of->rank, of->dim, &squares) : NULL;
	if (!trained)
		return NULL;
	struct tensor *factor = OP2(g, "Div", trained, lengths(x, of, squares));
	struct tensor *more = OP2(g, "Sub", factor, graph_scalar(g, 1));
	return OP2(g, "Add", OP2(g, "Mul", of->base, more), OP2(g, "Mul", of->delta, factor));
}
