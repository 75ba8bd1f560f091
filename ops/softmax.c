/* Softmax and LogSoftmax: along one axis since opset 13, over a flattened tail before. */
#include <inttypes.h>
#include <stdio.h>

#include "ops/data.h"

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

/* Opens a loop over rows with `x` (and `dy`, `y`) at the row; elements are `inner` apart. */
static void open_rows(struct emit *e, const struct span *s, const char *const *names,
	const char *const *args, int n)
{
	emit_parallel(e, (double)(s->rows * s->n * s->inner) * 8, 1);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", s->rows * s->inner);
	if (s->inner == 1)
		emit(e, "\t\tint64_t at = r * %" PRId64 ";\n", s->n);
	else
		emit(e, "\t\tint64_t at = r / %" PRId64 " * %" PRId64 " + r %% %" PRId64 ";\n",
			s->inner, s->n * s->inner, s->inner);
	for (int i = 0; i < n; i++)
		emit(e, "\t\t%sreal *%s = %s + at;\n", args[i][0] == 'x' ? "const " : "", names[i],
			args[i]);
}

/* "i" or "i * inner" */
static const char *index_text(const struct span *s, char buf[static 40])
{
	if (s->inner == 1)
		return "i";
	snprintf(buf, 40, "i * %" PRId64, s->inner);
	return buf;
}

static enum status softmax_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	char buf[40];
	const char *i = index_text(s, buf);
	open_rows(e, s, (const char *const[]){"x", "y"}, (const char *const[]){"x0", "y0"}, 2);
	emit(e, "\t\treal top = x[0], sum = 0;\n");
	emit(e, "\t\tfor (int64_t i = 1; i < %" PRId64 "; i++)\n\t\t\ttop = MAX(x[%s], top);\n",
		s->n, i);
	if (is_log(n)) {
		emit(e,
			"\t\tfor (int64_t i = 0; i < %" PRId64
			"; i++)\n\t\t\tsum += EXP(x[%s] - top);\n",
			s->n, i);
		emit(e, "\t\tsum = top + LOG(sum);\n");
		emit(e,
			"\t\tfor (int64_t i = 0; i < %" PRId64
			"; i++)\n\t\t\ty[%s] = x[%s] - sum;\n\t}\n",
			s->n, i, i);
		return ST_OK;
	}
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n\t\t\ty[%s] = EXP(x[%s] - top);\n",
		s->n, i, i);
	if (s->inner == 1)
		emit(e, "\t\tsum = sum_lanes(y, %" PRId64 ");\n", s->n);
	else
		emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n\t\t\tsum += y[%s];\n",
			s->n, i);
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n\t\t\ty[%s] /= sum;\n\t}\n", s->n,
		i);
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
	char buf[40];
	const char *i = index_text(s, buf);
	open_rows(e, s, (const char *const[]){"dy", "y", "dx"},
		(const char *const[]){"x0", "x1", "y0"}, 3);
	if (s->inner == 1)
		emit(e,
			is_log(n) ? "\t\treal sum = sum_lanes(dy, %" PRId64 ");\n"
				  : "\t\treal sum = dot_lanes(dy, y, %" PRId64 ");\n",
			s->n);
	else if (is_log(n))
		emit(e,
			"\t\treal sum = 0;\n\t\tfor (int64_t i = 0; i < %" PRId64
			"; i++)\n\t\t\tsum += dy[%s];\n",
			s->n, i);
	else
		emit(e,
			"\t\treal sum = 0;\n\t\tfor (int64_t i = 0; i < %" PRId64
			"; i++)\n\t\t\tsum += dy[%s] * y[%s];\n",
			s->n, i, i);
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n", s->n);
	if (is_log(n))
		emit(e, "\t\t\tdx[%s] = dy[%s] - EXP(y[%s]) * sum;\n\t}\n", i, i, i);
	else
		emit(e, "\t\t\tdx[%s] = y[%s] * (dy[%s] - sum);\n\t}\n", i, i, i);
	return ST_OK;
}

#define SPANS                                                                                      \
	EXAMPLES({.in = "3,5"}, {.in = "2,37,4", .attr = "axis=1"},                                \
		{.in = "2,3,19", .attr = "axis=-1"}, {.in = "7"})
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
