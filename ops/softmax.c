/* Softmax and LogSoftmax: along one axis since opset 13, over a flattened tail before. */
#include <inttypes.h>

#include "ops/gemm.h"
#include "ops/lanes.h"
#include "ops/softmax.h"

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
				softmax_is_log(n) ? z - log(sum) : exp(z) / sum);
		}
	}
	return ST_OK;
}

/* Columns that are worked on together where neighbours along the axis are `inner` apart. */
enum { COLUMNS = 64 };

/* The exponentials stand in y before their sum divides them; where y is stored narrower, in scratch
 * of each thread: so many of them. */
static int64_t terms_of(const struct node *n)
{
	const struct span *s = n->param;
	if (softmax_is_log(n) || n->out[0]->numel == 0 || !dtype_is_narrow(n->out[0]->dtype))
		return 0;
	return round_up(s->inner == 1 ? s->n : s->n * COLUMNS, 16);
}

static int64_t softmax_workspace(const struct node *n, const struct target *t)
{
	return t->cuda ? 0 : terms_of(n) * (int64_t)sizeof(float) * t->threads;
}

/* Opens the loop over rows, or over blocks of columns, with pointers to their first elements.
 * Returns where its body begins, for close_rows. */
static size_t open_rows(struct emit *e, const struct span *s, int n, const char *const *pointer)
{
	const bool rows = s->inner == 1;
	const struct emit_loop loop[] = {{"r", s->rows, 1}, {"i0", s->inner, COLUMNS}};
	emit_loops(e, (double)(s->rows * s->n * s->inner) * 8, rows ? 1 : 2, loop);
	emit(e, " {\n");
	const size_t body = e->out.len;
	if (rows) {
		emit(e, "\t\tconst int64_t at = r * %" PRId64 ";\n", s->n);
	} else {
		emit(e, "\t\tconst int64_t at = r * %" PRId64 " + i0;\n", s->n * s->inner);
		emit(e, "\t\tconst int64_t width = MIN(%" PRId64 " - i0, %d);\n", s->inner,
			COLUMNS);
	}
	for (int i = 0; i < n; i++)
		emit(e, "\t\t%s + at;\n", pointer[i]);
	return body;
}

static void close_rows(struct emit *e, const struct span *s, size_t body)
{
	emit(e, "\t}\n");
	emit_deeper(e, body, s->inner != 1);
}

/* "const real *x = x0": where t's elements begin. */
static const char *pointer_to(
	struct emit *e, const struct tensor *t, const char *name, const char *from)
{
	return emit_text(
		e, "%s%s *%s = %s", *from == 'x' ? "const " : "", emit_type(t), name, from);
}

/* A statement for every element: @ stands for its index, # for that of its column, $ for its place
 * in scratch. */
static void each(struct emit *e, const struct span *s, const char *statement)
{
	const bool rows = s->inner == 1;
	emit(e, "\t\tfor (int64_t %s = 0; %s < %" PRId64 "; %s++)\n", rows ? "i" : "c",
		rows ? "i" : "c", s->n, rows ? "i" : "c");
	emit(e, rows ? "\t\t\t" : "\t\t\tfor (int64_t i = 0; i < width; i++)\n\t\t\t\t");
	for (const char *p = statement; *p; p++)
		if (*p == '$' && !rows)
			emit(e, "[c * %d + i]", COLUMNS);
		else if (*p == '@' && !rows)
			emit(e, "[c * %" PRId64 " + i]", s->inner);
		else if (strchr("@#$", *p))
			emit(e, rows && *p == '#' ? "" : "[i]");
		else
			emit(e, "%c", *p);
	emit(e, "\n");
}

/* The largest value of each row or column, and Σ exp(x − top); softmax leaves the terms in `term`.
 */
static void emit_top_and_sum(struct emit *e, const struct node *n, const char *term)
{
	const struct span *s = n->param;
	const struct tensor *x = n->in[0];
	const char *value = emit_value(e, x, "x@");
	if (s->inner == 1) {
		const char *most = emit_helper_on(e, "max_lanes", max_lanes, 1, &x);
		emit(e, "\t\tconst real top = %s(x, %" PRId64 ");\n", most, s->n);
		if (softmax_is_log(n)) {
			const char *sums = emit_helper_on(e, "exp_lanes", exp_lanes, 1, &x);
			emit(e, "\t\tconst real sum = LOG(%s(x, top, %" PRId64 "));\n", sums, s->n);
			return;
		}
		each(e, s, emit_text(e, "%s = EXP(%s - top);", term, value));
		emit(e, "\t\tconst real sum = sum_lanes(%.1s, %" PRId64 ");\n", term, s->n);
		return;
	}
	emit(e, "\t\treal top[%d], sum[%d] = {0};\n", COLUMNS, COLUMNS);
	emit(e, "\t\tfor (int64_t i = 0; i < width; i++)\n\t\t\ttop[i] = %s;\n",
		emit_value(e, x, "x[i]"));
	each(e, s, emit_text(e, "top# = MAX(%s, top#);", value));
	if (!softmax_is_log(n))
		each(e, s, emit_text(e, "%s = EXP(%s - top#);", term, value));
	each(e, s,
		softmax_is_log(n) ? emit_text(e, "sum# += EXP(%s - top#);", value)
				  : emit_text(e, "sum# += %s;", term));
	if (softmax_is_log(n))
		emit(e, "\t\tfor (int64_t i = 0; i < width; i++)\n\t\t\tsum[i] = LOG(sum[i]);\n");
}

static void emit_nothing(struct emit *e)
{
	emit(e, "\t(void)y0; /* no elements */\n");
}

static enum status softmax_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	if (n->out[0]->numel == 0) {
		emit_nothing(e);
		return ST_OK;
	}
	if (e->g->target->cuda)
		return softmax_cuda_emit(e, n);
	const struct tensor *x = n->in[0], *y = n->out[0];
	const int64_t terms = terms_of(n);
	if (terms > 0)
		gemm_emit_thread(e);
	const size_t body = open_rows(e, s, 2,
		(const char *const[]){pointer_to(e, x, "x", "x0"), pointer_to(e, y, "y", "y0")});
	if (terms > 0)
		emit(e, "\t\treal *t = (real *)ws + thread_index() * %" PRId64 ";\n", terms);
	emit_top_and_sum(e, n, terms > 0 ? "t$" : "y@");
	const char *log = emit_text(e, "%s - top# - sum#", emit_value(e, x, "x@"));
	if (softmax_is_log(n))
		each(e, s, emit_text(e, "y@ = %s;", emit_stored(e, y, log)));
	else if (terms > 0)
		each(e, s, emit_text(e, "y@ = %s;", emit_stored(e, y, "t$ / sum#")));
	else
		each(e, s, "y@ /= sum#;");
	close_rows(e, s, body);
	return ST_OK;
}

/* An exponential counts as 20 operations. */
static struct op_cost softmax_cost(const struct node *n)
{
	return (struct op_cost){25 * (double)n->out[0]->numel, node_bytes(n)};
}

/* The forward node's param gives the rows. */
static enum status softmax_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct node *m = graph_op_node(g,
		softmax_is_log(n) ? "stint.LogSoftmaxGrad" : "stint.SoftmaxGrad", 2,
		(struct tensor *[]){dy[0], n->out[0]}, 0, NULL, n->param);
	dx[0] = m ? m->out[0] : NULL;
	return g->failed;
}

static enum status grad_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
}

/* Σ dy y, as dot_lanes has it of reals. */
#define PRODUCT_TERM(i) "@value0(x[" i "]) * @value1(y[" i "])"
static const char dot_lanes_of[] =
	"/* The inner product of n numbers, in a fixed tree of 16 lanes. */\n"
	"static real @name(const @0 *x, const @1 *y, int64_t n)\n{\n" LANES_BODY(
		"real", PRODUCT_TERM) "}\n";

/* "sum_lanes(dy", "dot_lanes(dy, y", by the types of both. */
static const char *row_sum(struct emit *e, bool log, const struct tensor *const *dy_y)
{
	if (log)
		return emit_text(e, "%s(dy", real_sum(e, dy_y[0]));
	if (!dtype_is_narrow(dy_y[0]->dtype) && !dtype_is_narrow(dy_y[1]->dtype))
		return "dot_lanes(dy, y";
	return emit_text(e, "%s(dy, y", emit_helper_on(e, "dot_lanes_of", dot_lanes_of, 2, dy_y));
}

/* softmax: y (dy − Σ dy y); log-softmax: dy − exp(y) Σ dy */
static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	const bool log = softmax_is_log(n);
	if (n->out[0]->numel == 0) {
		emit_nothing(e);
		return ST_OK;
	}
	if (e->g->target->cuda)
		return softmax_grad_cuda_emit(e, n);
	const size_t body = open_rows(e, s, 3,
		(const char *const[]){pointer_to(e, n->in[0], "dy", "x0"),
			pointer_to(e, n->in[1], "y", "x1"), pointer_to(e, n->out[0], "dx", "y0")});
	const char *dy = emit_value(e, n->in[0], "dy@"), *y = emit_value(e, n->in[1], "y@");
	if (s->inner == 1) {
		const struct tensor *const dy_y[] = {n->in[0], n->in[1]};
		emit(e, "\t\tconst real sum = %s, %" PRId64 ");\n", row_sum(e, log, dy_y), s->n);
	} else {
		emit(e, "\t\treal sum[%d] = {0};\n", COLUMNS);
		each(e, s,
			log ? emit_text(e, "sum# += %s;", dy)
			    : emit_text(e, "sum# += %s * %s;", dy, y));
	}
	const char *dx = log ? emit_text(e, "%s - EXP(%s) * sum#", dy, y)
			     : emit_text(e, "%s * (%s - sum#)", y, dy);
	each(e, s, emit_text(e, "dx@ = %s;", emit_stored(e, n->out[0], dx)));
	close_rows(e, s, body);
	return ST_OK;
}

#define SPANS                                                                                      \
	EXAMPLES({.in = "a,B"}, {.in = "a,B,c", .attr = "axis=1"},                                 \
		{.in = "2,3,19", .attr = "axis=-1"}, {.in = "7"},                                  \
		{.in = "3,5,70", .attr = "axis=0", .low = -20, .high = 20})
#define FLATTENED                                                                                  \
	EXAMPLES({.in = "3,5"}, {.in = "a,b,C"}, {.in = "2,3,4,5", .attr = "axis=2"},              \
		{.in = "2,3,4", .attr = "axis=-3"})
#define SOFTMAX(onnx, ...)                                                                         \
	{                                                                                          \
		.name = onnx, .min_in = 1, .max_in = 1, .infer = softmax_infer,                    \
		.fold = softmax_fold, .emit_c = softmax_emit, .grad = softmax_rule,                \
		.cost = softmax_cost, .workspace = softmax_workspace, .npair = 1,                  \
		.pair = {{0, 0}}, .narrow_in = 1, .narrow_out = 1, __VA_ARGS__                     \
	}
#define GRADIENT(ours, ...)                                                                        \
	{                                                                                          \
		.name = ours, .min_in = 2, .max_in = 2, .infer = grad_infer, .emit_c = grad_emit,  \
		.npair = 2, .pair = {{0, 0}, {0, 1}}, .narrow_in = 3, .narrow_out = 1, __VA_ARGS__ \
	}

/* clang-format off */
const struct op_def ops_softmax[] = {
	SOFTMAX("Softmax", .since = 13, .example = SPANS),
	SOFTMAX("LogSoftmax", .since = 13, .example = SPANS),
	SOFTMAX("Softmax", .since = 1, .until = 13, .example = FLATTENED),
	SOFTMAX("LogSoftmax", .since = 1, .until = 13, .example = FLATTENED),
	GRADIENT("stint.SoftmaxGrad"),
	GRADIENT("stint.LogSoftmaxGrad", .cost = softmax_cost),
	{0},
};
/* clang-format on */
