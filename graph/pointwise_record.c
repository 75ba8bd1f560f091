/* Pointwise records: shapes by broadcasting, constants through the record's reference function. */
#include "graph/graph_parts.h"

enum { POINTWISE_OPTIONS = 8 };

enum status pointwise_infer(struct graph *g, struct node *n)
{
	if (n->nin > POINTWISE_INPUTS)
		return node_fail(g, n, NULL, "has %d inputs; pointwise operators take at most %d",
			n->nin, (int)POINTWISE_INPUTS);
	enum dtype type = DT_BOOL;
	int rank = 0;
	int64_t dim[RANK_MAX] = {0};
	for (int i = 0; i < n->nin; i++) {
		const struct tensor *x = n->in[i];
		TRY(node_broadcast(g, n, rank, dim, x->rank, x->dim, &rank, dim));
		if (x->dtype != DT_BOOL && type == DT_BOOL)
			type = x->dtype;
	}
	if (n->op->traits & OP_BOOL)
		type = DT_BOOL;
	if (n->op->int_expr && !node_expr(n))
		return node_fail(g, n, NULL, "works on whole numbers");
	n->out[0] = graph_tensor(g, "", type, rank, dim);
	return n->out[0] ? ST_OK : g->failed;
}

/* Distance in elements between neighbours of input x along each axis of the output (0: broadcast).
 */
static void input_strides(const struct tensor *x, const struct tensor *out, int64_t *stride)
{
	int64_t step = 1;
	for (int i = out->rank - 1, k = x->rank - 1; i >= 0; i--, k--) {
		bool spread = k < 0 || x->dim[k] == 1;
		stride[i] = spread ? 0 : step;
		if (k >= 0)
			step *= x->dim[k];
	}
}

/* Element `e` of the output, from the elements at[] of the inputs. */
static void fold_element(const struct node *n, const double *option, const int64_t *at, int64_t e,
	bool whole, void *data)
{
	const struct tensor *out = n->out[0];
	if (whole) {
		int64_t in[POINTWISE_INPUTS] = {0};
		for (int i = 0; i < n->nin; i++)
			in[i] = tensor_int(n->in[i], at[i]);
		int64_t v = n->op->int_ref(in);
		if (out->dtype == DT_I64)
			((int64_t *)data)[e] = v;
		else
			value_set(out->dtype, data, e, (double)v);
		return;
	}
	double in[POINTWISE_INPUTS] = {0};
	for (int i = 0; i < n->nin; i++)
		in[i] = tensor_real(n->in[i], at[i]);
	value_set(out->dtype, data, e, n->op->ref(in, option));
}

void pointwise_fold(const struct node *n, void *data)
{
	const struct tensor *out = n->out[0];
	int64_t stride[POINTWISE_INPUTS][RANK_MAX], at[POINTWISE_INPUTS] = {0},
						    index[RANK_MAX] = {0};
	double option[POINTWISE_OPTIONS] = {0};
	bool whole = n->op->int_expr && node_expr(n) == n->op->int_expr;
	for (int i = 0; n->op->option && n->op->option[i].name && i < POINTWISE_OPTIONS; i++)
		option[i] = node_option(n, n->op->option[i].name);
	for (int i = 0; i < n->nin; i++)
		input_strides(n->in[i], out, stride[i]);
	for (int64_t e = 0; e < out->numel; e++) {
		fold_element(n, option, at, e, whole, data);
		for (int k = out->rank - 1; k >= 0; k--) {
			bool wrap = ++index[k] == out->dim[k];
			for (int i = 0; i < n->nin; i++)
				at[i] += wrap ? -stride[i][k] * (out->dim[k] - 1) : stride[i][k];
			if (!wrap)
				break;
			index[k] = 0;
		}
	}
}
