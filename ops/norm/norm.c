/* Normalisations of rows (norm_op.h): what their records share. */
#include "ops/norm/norm_op.h"

#include <inttypes.h>

enum status norm_outputs(
	struct graph *g, struct node *n, const struct norm *p, int rank, const int64_t *dim)
{
	const struct tensor *x = n->in[NORM_X];
	if (!dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "its input '%s' is not real", x->name);
	struct norm *param = ARENA_NEW(g->arena, struct norm);
	if (!param)
		return diag_nomem(g->diag);
	*param = *p;
	n->param = param;
	TRY(data_output(g, n, 0, x->dtype, x->rank, x->dim));
	for (int k = 1; k < n->nout; k++)
		TRY(data_output(g, n, k, x->dtype, rank, dim));
	return ST_OK;
}

/* The element of `t`, broadcast to x's shape, that belongs to element e of x. */
static int64_t broadcast_place(const struct tensor *t, const struct tensor *x, int64_t e)
{
	int64_t at = 0, step = 1;
	for (int i = x->rank - 1, k = t->rank - 1; k >= 0 && i >= 0; i--, k--) {
		if (t->dim[k] != 1)
			at += e % x->dim[i] * step;
		e /= x->dim[i];
		step *= t->dim[k];
	}
	return at;
}

/* Of a scale or bias: one value a channel, or fewer, broadcast, where there is one group and a
 * channel for each element. */
static double affine(const struct node *n, const struct norm *p, int input, int64_t e, double none)
{
	const struct tensor *t = node_input(n, input);
	if (!t)
		return none;
	if (t->numel != p->groups * p->channels)
		return tensor_real(t, broadcast_place(t, n->in[NORM_X], e));
	return tensor_real(t, e / p->inner % (p->groups * p->channels));
}

enum status norm_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct norm *p = n->param;
	const struct tensor *x = n->in[NORM_X];
	const int64_t w = p->channels * p->inner;
	for (int64_t r = 0; r < p->rows; r++) {
		double mean = 0, squares = 0;
		for (int64_t i = 0; p->centred && i < w; i++)
			mean += tensor_real(x, r * w + i) / (double)w;
		for (int64_t i = 0; i < w; i++) {
			double d = tensor_real(x, r * w + i) - mean;
			squares += d * d / (double)w;
		}
		double invstd = 1 / sqrt(squares + p->epsilon);
		for (int64_t e = r * w; e < (r + 1) * w; e++)
			value_set(x->dtype, out[0], e,
				(tensor_real(x, e) - mean) * invstd *
						affine(n, p, NORM_SCALE, e, 1) +
					affine(n, p, NORM_BIAS, e, 0));
		if (n->nout > 1 && out[1])
			value_set(x->dtype, out[1], r, p->centred ? mean : invstd);
		if (n->nout > 2 && out[2])
			value_set(x->dtype, out[2], r, invstd);
	}
	return ST_OK;
}

/* --- Gradients --- */

enum status norm_scale_infer(struct graph *g, struct node *n)
{
	const struct norm *p = n->param;
	int64_t all = p->groups * p->channels;
	for (int k = 0; k < n->nout; k++)
		TRY(data_output(g, n, k, n->in[0]->dtype, 1, &all));
	return ST_OK;
}

enum status norm_all_infer(struct graph *g, struct node *n)
{
	const struct norm *p = n->param;
	TRY(data_infer_like(g, n));
	for (int k = 1; k < n->nout; k++)
		TRY(data_output(g, n, k, n->in[0]->dtype, 1, &p->channels));
	return ST_OK;
}

static struct node *gradient_node(
	struct graph *g, const struct node *n, const char *suffix, struct tensor *dy, int nin)
{
	const struct norm *p = n->param;
	const char *op = arena_printf(g->arena, "%s%s", n->op->name, suffix);
	struct tensor *in[5] = {dy, n->in[NORM_X], p->centred ? n->out[1] : NULL,
		n->out[p->centred ? 2 : 1], node_input(n, NORM_SCALE)};
	if (!op) {
		g->failed = diag_nomem(g->diag);
		return NULL;
	}
	return graph_op_node(g, op, in[4] ? nin : 4, in, 0, NULL, n->param);
}

/* What reaches x through the mean (dm) and the inverse deviation (di), as [rows, width]: dm/w − di
 * invstd³ (x − mean)/w. */
static struct tensor *through_statistics(
	struct graph *g, const struct node *n, struct tensor *dm, struct tensor *di)
{
	const struct norm *p = n->param;
	const int64_t row[] = {p->rows, 1}, all[] = {p->rows, p->channels * p->inner};
	struct tensor *x = n->in[NORM_X], *sum = NULL;
	double w = (double)all[1];
	if (dm)
		sum = OP2(g, "Mul", graph_reshape(g, dm, 2, row), graph_scalar(g, 1 / w));
	if (di) {
		struct tensor *invstd = n->out[p->centred ? 2 : 1],
			      *d = graph_reshape(g, x, 2, all);
		struct tensor *cube = OP2(g, "Mul", OP2(g, "Mul", invstd, invstd), invstd);
		struct tensor *k = OP2(g, "Mul", OP2(g, "Mul", di, graph_scalar(g, -1 / w)), cube);
		if (p->centred)
			d = OP2(g, "Sub", d, graph_reshape(g, n->out[1], 2, row));
		d = OP2(g, "Mul", d, graph_reshape(g, k, 2, row));
		sum = sum ? OP2(g, "Add", d, sum) : d;
	} else if (dm) {
		sum = OP2(g, "Expand", sum, graph_ints(g, 2, all));
	}
	return sum ? graph_reshape(g, sum, x->rank, x->dim) : NULL;
}

enum status norm_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct norm *p = n->param;
	bool scale = node_input(n, NORM_SCALE) && want[NORM_SCALE],
	     bias = node_input(n, NORM_BIAS) && want[NORM_BIAS];
	/* one node for all, where each element has a channel */
	const bool all = dy[0] && want[NORM_X] && scale && p->groups == 1 && p->inner == 1;
	struct node *both = all ? gradient_node(g, n, "GradAll", dy[0], 5) : NULL;
	if (want[NORM_X]) {
		struct node *m = all ? both : dy[0] ? gradient_node(g, n, "Grad", dy[0], 5) : NULL;
		struct tensor *more = through_statistics(
			g, n, p->centred ? dy[1] : NULL, dy[p->centred ? 2 : 1]);
		dx[NORM_X] = m ? m->out[0] : more;
		if (m && more)
			dx[NORM_X] = OP2(g, "Add", m->out[0], more);
	}
	if (dy[0] && (scale || bias)) {
		struct node *m = all ? both : gradient_node(g, n, "GradScale", dy[0], 4);
		if (m && scale)
			dx[NORM_SCALE] = graph_reshape(
				g, m->out[all], n->in[NORM_SCALE]->rank, n->in[NORM_SCALE]->dim);
		if (m && bias)
			dx[NORM_BIAS] = graph_reshape(
				g, m->out[1 + all], n->in[NORM_BIAS]->rank, n->in[NORM_BIAS]->dim);
	}
	return g->failed;
}
