/* Softmax and LogSoftmax: along one axis since opset 13, over a flattened tail before. */
#include <inttypes.h>

#include "ops/data.h"
#include "ops/lanes.h"

/* x as [rows, n, inner], normalised along n. */
struct span {
	int64_t rows, n, inner;
};

static bool is_log(const struct node *n)
{
	return strstr(n->op->name, "Log") != NULL;
}

static bool is_old(const struct node *n)
{
	return n->op->until == 13;
}

static enum status softmax_infer(struct graph *g, struct node *n)
{
	int axis;
	struct tensor *x = n->in[0];
	TRY(node_axis(g, n, node_int(n, "axis", is_old(n) ? 1 : -1), x->rank ? x->rank : 1, &axis));
	struct span *s = ARENA_NEW(g->arena, struct span);
	if (!s)
		return diag_nomem(g->diag);
	*s = (struct span){1, 1, 1};
	for (int i = 0; i < x->rank; i++)
		*(i < axis ? &s->rows : i == axis || is_old(n) ? &s->n : &s->inner) *= x->dim[i];
	n->param = s;
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

static enum status softmax_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct span *s = n->param;
	const struct tensor *x = n->in[0];
	for (int64_t r = 0; r < s->rows * s->inner; r++) {
		int64_t at = r / s->inner * s->n * s->inner + r % s->inner;
		double top = -INFINITY, sum = 0;
		for (int64_t i = 0; i < s->n; i++)
			top = fmax(top, tensor_real(x, at + i * s->inner));
		for (int64_t i = 0; i < s->n; i++)
			sum += exp(tensor_real(x, at + i * s->inner) - top);
		for (int64_t i = 0; i < s->n; i++) {
			double z = tensor_real(x, at + i * s->inner) - top;
			value_set(x->dtype, out[0], at + i * s->inner,
				is_log(n) ? z - log(sum) : exp(z) / sum);
		}
	}
	return ST_OK;
}

/* --- Rows of neighbouring elements --- */

static void open_rows(struct emit *e, const struct span *s)
{
	emit_parallel(e, (double)(s->rows * s->n) * 8, 1);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", s->rows);
	emit(e, "\t\tconst int64_t at = r * %" PRId64 ";\n", s->n);
}

static void each(struct emit *e, const struct span *s, const char *statement)
{
	emit(e, "\t\tfor (int64_t i = at; i < at + %" PRId64 "; i++)\n\t\t\t%s\n", s->n, statement);
}

static void softmax_rows(struct emit *e, const struct node *n, const struct span *s)
{
	emit_helper(e, "max_lanes", max_lanes);
	open_rows(e, s);
	emit(e, "\t\tconst real top = max_lanes(x0 + at, %" PRId64 ");\n", s->n);
	if (is_log(n)) {
		emit_helper(e, "exp_lanes", exp_lanes);
		emit(e, "\t\tconst real sum = LOG(exp_lanes(x0 + at, top, %" PRId64 "));\n", s->n);
		each(e, s, "y0[i] = (x0[i] - top) - sum;");
	} else {
		each(e, s, "y0[i] = EXP(x0[i] - top);");
		emit(e, "\t\tconst real scale = 1 / sum_lanes(y0 + at, %" PRId64 ");\n", s->n);
		each(e, s, "y0[i] *= scale;");
	}
	emit(e, "\t}\n");
}

/* --- Elements `inner` apart: 64 neighbouring rows at a time --- */

static void open_columns(struct emit *e, const struct span *s)
{
	emit_parallel(e, (double)(s->rows * s->n * s->inner) * 8, 2);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++)\n", s->rows);
	emit(e, "\tfor (int64_t c = 0; c < %" PRId64 "; c += 64) {\n", s->inner);
	emit(e, "\t\tconst int64_t at = r * %" PRId64 " + c", s->n * s->inner);
	emit(e, ", width = MIN(%" PRId64 " - c, 64);\n", s->inner);
}

/* For every element: `k` its row, `i` its place. */
static void each_column(struct emit *e, const struct span *s, const char *statement)
{
	emit(e, "\t\tfor (int64_t j = 0; j < %" PRId64 "; j++)\n", s->n);
	emit(e, "\t\t\tfor (int64_t k = 0; k < width; k++) {\n");
	emit(e, "\t\t\t\tconst int64_t i = at + j * %" PRId64 " + k;\n", s->inner);
	emit(e, "\t\t\t\t%s\n\t\t\t}\n", statement);
}

static void softmax_columns(struct emit *e, const struct node *n, const struct span *s)
{
	open_columns(e, s);
	emit(e, "\t\treal top[64], sum[64] = {0};\n");
	emit(e, "\t\tfor (int64_t k = 0; k < width; k++)\n\t\t\ttop[k] = x0[at + k];\n");
	each_column(e, s, "top[k] = MAX(x0[i], top[k]);");
	if (is_log(n)) {
		each_column(e, s, "sum[k] += EXP(x0[i] - top[k]);");
		emit(e, "\t\tfor (int64_t k = 0; k < width; k++)\n\t\t\tsum[k] = LOG(sum[k]);\n");
		each_column(e, s, "y0[i] = (x0[i] - top[k]) - sum[k];");
	} else {
		each_column(e, s, "sum[k] += y0[i] = EXP(x0[i] - top[k]);");
		emit(e, "\t\tfor (int64_t k = 0; k < width; k++)\n\t\t\tsum[k] = 1 / sum[k];\n");
		each_column(e, s, "y0[i] *= sum[k];");
	}
	emit(e, "\t}\n");
}

static enum status softmax_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	if (n->in[0]->numel == 0)
		return ST_OK;
	if (s->inner == 1)
		softmax_rows(e, n, s);
	else
		softmax_columns(e, n, s);
	return ST_OK;
}

/* The forward node's param gives the rows. */
static enum status softmax_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct node *m = graph_op_node(g, is_log(n) ? "stint.LogSoftmaxGrad" : "stint.SoftmaxGrad",
		2, (struct tensor *[]){dy[0], n->out[0]}, 0, NULL, n->param);
	dx[0] = m ? m->out[0] : NULL;
	return g->failed;
}

static enum status grad_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
}

/* softmax: y (dy − Σ dy y); log-softmax: dy − exp(y) Σ dy */
static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	bool log = is_log(n);
	if (n->in[0]->numel == 0)
		return ST_OK;
	if (s->inner == 1) {
		open_rows(e, s);
		emit(e, "\t\tconst real sum = ");
		emit(e, log ? "sum_lanes(x0 + at" : "dot_lanes(x0 + at, x1 + at");
		emit(e, ", %" PRId64 ");\n", s->n);
		each(e, s,
			log ? "y0[i] = x0[i] - EXP(x1[i]) * sum;"
			    : "y0[i] = x1[i] * (x0[i] - sum);");
	} else {
		open_columns(e, s);
		emit(e, "\t\treal sum[64] = {0};\n");
		each_column(e, s, log ? "sum[k] += x0[i];" : "sum[k] += x0[i] * x1[i];");
		each_column(e, s,
			log ? "y0[i] = x0[i] - EXP(x1[i]) * sum[k];"
			    : "y0[i] = x1[i] * (x0[i] - sum[k]);");
	}
	emit(e, "\t}\n");
	return ST_OK;
}

#define SPANS                                                                                      \
	EXAMPLES({.in = "3,5"}, {.in = "2,37,4", .attr = "axis=1"},                                \
		{.in = "2,3,19", .attr = "axis=-1"}, {.in = "7"},                                  \
		{.in = "3,5,70", .attr = "axis=1", .low = -9, .high = 9})
#define SOFTMAX(onnx, ...)                                                                         \
	{                                                                                          \
		.name = onnx, .min_in = 1, .max_in = 1, .infer = softmax_infer,                    \
		.fold = softmax_fold, .emit_c = softmax_emit, .grad = softmax_rule, .npair = 1,    \
		.pair = {{0, 0}}, __VA_ARGS__                                                      \
	}
#define GRADIENT(ours)                                                                             \
	{                                                                                          \
		.name = ours, .min_in = 2, .max_in = 2, .infer = grad_infer, .emit_c = grad_emit,  \
		.npair = 2, .pair = {                                                              \
			{0, 0},                                                                    \
			{0, 1}                                                                     \
		}                                                                                  \
	}

const struct op_def ops_softmax[] = {
	SOFTMAX("Softmax", .since = 13, .example = SPANS),
	SOFTMAX("LogSoftmax", .since = 13, .example = SPANS),
	SOFTMAX("Softmax", .since = 1, .until = 13),
	SOFTMAX("LogSoftmax", .since = 1, .until = 13),
	GRADIENT("stint.SoftmaxGrad"),
	GRADIENT("stint.LogSoftmaxGrad"),
	{0},
};
