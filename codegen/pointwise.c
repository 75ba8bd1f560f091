/* The loop nest of an OP_POINTWISE node, made from its one expression.
 *
 * Axes along which every input either advances like one array or stays put are merged first, as
 * NumPy's coalescing does: equal shapes become one flat loop, a bias over [N, C, H, W] becomes
 * three, and the innermost loop is as long as the shapes allow, so that it vectorises. */
#include "codegen/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"

struct nest {
	int rank;
	int64_t dim[RANK_MAX];
	int64_t out[RANK_MAX]; /* distance between neighbours of the output, in elements */
	int64_t in[POINTWISE_INPUTS][RANK_MAX]; /* of each input; 0: the same element again */
};

static void strides_of(const struct tensor *x, const struct tensor *out, int64_t *stride)
{
	int64_t step = 1;
	for (int i = out->rank - 1, k = x->rank - 1; i >= 0; i--, k--) {
		stride[i] = k < 0 || x->dim[k] == 1 ? 0 : step;
		step *= k < 0 ? 1 : x->dim[k];
	}
}

/* Axis `inner` goes on where the axis before it, `outer`, leaves off: in the output and in every
 * input. */
static bool merges(const struct nest *n, int nin, int outer, const int64_t *inner_in, int64_t dim)
{
	for (int i = 0; i < nin; i++)
		if (n->in[i][outer] != inner_in[i] * dim)
			return false;
	return true;
}

static struct nest coalesce(const struct node *n)
{
	const struct tensor *out = n->out[0];
	int64_t stride[POINTWISE_INPUTS][RANK_MAX] = {0}, out_stride[RANK_MAX];
	struct nest nest = {0};
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			strides_of(n->in[i], out, stride[i]);
	strides_of(out, out, out_stride);
	for (int d = 0; d < out->rank; d++) {
		if (out->dim[d] == 1)
			continue;
		int64_t in[POINTWISE_INPUTS];
		for (int i = 0; i < n->nin; i++)
			in[i] = stride[i][d];
		bool merge = nest.rank > 0 && merges(&nest, n->nin, nest.rank - 1, in, out->dim[d]);
		int to = merge ? nest.rank - 1 : nest.rank++;
		nest.dim[to] = (merge ? nest.dim[to] : 1) * out->dim[d];
		nest.out[to] = out_stride[d];
		for (int i = 0; i < n->nin; i++)
			nest.in[i][to] = in[i];
	}
	return nest;
}

/* About how many additions one evaluation of the expression is worth. */
static double work_of(const char *expr)
{
	static const char *const slow[] = {"EXP", "LOG", "LOG1P", "POW", "TANH", "ERF", "SIN",
		"COS", "TAN", "SINH", "COSH", "ASIN", "ACOS", "ATAN", "ASINH", "ACOSH", "ATANH",
		"FMOD"};
	double work = 1;
	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
		if (text_mentions(expr, slow[i]))
			work += 20;
	return work;
}

static void index_name(const struct nest *nest, int d, char name[static 16])
{
	if (nest->rank == 1)
		strcpy(name, "i");
	else
		snprintf(name, 16, "i%d", d);
}

static void emit_index(struct emit *e, const struct nest *nest, const int64_t *stride)
{
	const char *plus = "";
	char name[16];
	for (int d = 0; d < nest->rank; d++) {
		if (stride[d] == 0)
			continue;
		index_name(nest, d, name);
		emit(e, "%s%s", plus, name);
		if (stride[d] != 1)
			emit(e, " * %" PRId64, stride[d]);
		plus = " + ";
	}
	if (!*plus)
		emit(e, "0");
}

static bool stays_put(const struct nest *nest, int input)
{
	for (int d = 0; d < nest->rank; d++)
		if (nest->in[input][d] != 0)
			return false;
	return true;
}

/* "const real a = x0[i];" for the inputs that move (or those that do not). */
static void emit_inputs(
	struct emit *e, const struct node *n, const struct nest *nest, bool moving, int tabs)
{
	for (int i = 0; i < n->nin; i++) {
		const char word[] = {(char)('a' + i), 0};
		if (!n->in[i] || stays_put(nest, i) == moving || !text_mentions(node_expr(n), word))
			continue;
		emit(e, "%.*sconst %s %s = x%d[", tabs, "\t\t\t\t\t\t\t\t\t\t", emit_type(n->in[i]),
			word, i);
		emit_index(e, nest, nest->in[i]);
		emit(e, "];\n");
	}
}

/* The outer loops are shared among threads when there are enough of them, else the innermost. */
static int parallel_levels(const struct emit *e, const struct nest *nest)
{
	int64_t outer = 1;
	for (int d = 0; d + 1 < nest->rank; d++)
		outer *= nest->dim[d];
	return outer >= 4 * (int64_t)e->g->target->threads ? nest->rank - 1 : 0;
}

enum status emit_pointwise(struct emit *e, const struct node *n)
{
	static const char tabs[] = "\t\t\t\t\t\t\t\t\t\t";
	const struct nest nest = coalesce(n);
	const char *expr = node_expr(n);
	char buf[40];
	for (const struct op_option *o = n->op->option; o && o->name; o++)
		if (text_mentions(expr, o->name))
			emit(e, "\tconst real %s = %s;\n", o->name,
				emit_real(e, node_option(n, o->name), buf));
	emit_inputs(e, n, &nest, false, 1);
	int levels = parallel_levels(e, &nest);
	double work = (double)n->out[0]->numel * work_of(expr);
	for (int d = 0; d < nest.rank; d++) {
		char name[16];
		index_name(&nest, d, name);
		bool innermost = d == nest.rank - 1;
		if (levels > 0 ? d == 0 : innermost)
			emit_parallel(e, work, levels);
		emit(e, "%.*sfor (int64_t %s = 0; %s < %" PRId64 "; %s++)%s\n", d + 1, tabs, name,
			name, nest.dim[d], name, innermost ? " {" : "");
	}
	emit_inputs(e, n, &nest, true, nest.rank + 1);
	emit(e, "%.*sy0[", nest.rank + 1, tabs);
	emit_index(e, &nest, nest.out);
	emit(e, "] = %s;\n", expr);
	if (nest.rank > 0)
		emit(e, "%.*s}\n", nest.rank, tabs);
	return e->out.failed ? diag_nomem(e->g->diag) : ST_OK;
}
