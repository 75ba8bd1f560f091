/* Optimizers with PyTorch's names, defaults and formulas (the algorithm boxes of torch.optim.SGD,
 * Adam and AdamW in PyTorch's documentation; what it writes as steps of its own is done in one pass
 * over the elements). */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "ops/update.h"

enum status update_infer(struct graph *g, struct node *n)
{
	for (int k = 0; k < n->nout; k++) {
		const struct tensor *x = k ? n->in[CONTROL + k] : n->in[PARAM];
		TRY(data_output(g, n, k, x->dtype, x->rank, x->dim));
	}
	return ST_OK;
}

double update_option(int nattr, const struct attr *attr, const char *name, double def)
{
	const struct node n = {.nattr = nattr, .attr = attr};
	return node_float(&n, name, def);
}

void update_constant(struct emit *e, const char *name, double v)
{
	char buf[40];
	emit(e, "\tconst real %s = %s;\n", name, emit_real(e, v, buf));
}

/* Large enough for a launch of its own (codegen/updates.c). */
static bool has_shared(const struct emit *e, const struct node *n)
{
	return e->g->target->cuda && n->out[0]->numel > (int64_t)1 << 20;
}

void update_scalar(struct emit *e, const struct node *n, const char *type, const char *name,
	const char *fmt, ...)
{
	va_list ap;
	if (has_shared(e, n))
		emit(e, "\t__shared__ %s %s;\n\tif (threadIdx.x == 0)\n\t\t%s = ", type, name,
			name);
	else
		emit(e, "\tconst %s %s = ", type, name);
	va_start(ap, fmt);
	text_vadd(&e->out, fmt, ap);
	va_end(ap);
	emit(e, ";\n");
}

/* Powers take a block longer than its elements: no more blocks than keep a device busy. */
enum { BUSY_BLOCKS = 2048, BLOCK_THREADS = 256 };

void update_scalars_end(struct emit *e, const struct node *n)
{
	if (has_shared(e, n))
		emit(e, "\t__syncthreads();\n");
}

static void emit_update_launch(struct emit *e, const struct node *n)
{
	const int64_t size = n->out[0]->numel;
	const int64_t blocks = (size + BLOCK_THREADS - 1) / BLOCK_THREADS;
	if (has_shared(e, n))
		emit_launch(e, blocks < BUSY_BLOCKS ? blocks : BUSY_BLOCKS, BLOCK_THREADS);
}

/* The loop over elements i; inside, `gradient` is the gradient's. */
static void open_loop(struct emit *e, const struct node *n, char gradient[static 32])
{
	const int64_t size = n->out[0]->numel;
	const double work = (double)size * 4;
	if (n->in[GRAD]) {
		const struct emit_loop loop = {"i", size, 1};
		strcpy(gradient, "x1[i]");
		emit_loop_each(e, work, false, &loop);
		emit(e, " {\n");
		return;
	}
	const struct emit_loop row = {"r", n->in[n->nin - 2]->numel, 1};
	const struct emit_loop column = {"j", n->in[n->nin - 1]->numel, 1};
	snprintf(gradient, 32, "(0 + left * x%d[j])", n->nin - 1); /* as a sum: never -0 */
	if (e->g->target->cuda) {
		emit_loops(e, work, 2, (const struct emit_loop[]){row, column});
		emit(e, " {\n\t\tconst real left = x%d[r];\n", n->nin - 2);
		emit(e, "\t\tconst int64_t i = r * %" PRId64 " + j;\n", column.end);
		return;
	}
	emit_loops(e, work, 1, &row);
	emit(e, " {\n\t\tconst real left = x%d[r];\n", n->nin - 2);
	emit_loop_each(e, work, true, &column);
	emit(e, " {\n\t\tconst int64_t i = r * %" PRId64 " + j;\n", column.end);
}

void update_open(struct emit *e, const struct node *n, double decay, bool decoupled)
{
	const char *minus = node_option(n, "maximize") != 0 ? "-" : "";
	char buf[40], gradient[32];
	if (n->in[CONTROL]->role == TR_VALUE || e->g->target->cuda)
		emit(e, "\tif (x3[3])\n\t\treturn; /* %s */\n",
			e->g->target->cuda ? "an index is out of range, or a gradient not finite"
					   : "some gradient is not finite");
	if (decay != 0 && decoupled)
		emit(e, "\tconst real keep = (real)(1 - (double)x2[0] * %.17g);\n", decay);
	emit_update_launch(e, n);
	open_loop(e, n, gradient);
	emit(e, "\t\tconst real p = %sx0[i];\n", decay != 0 && decoupled ? "keep * " : "");
	if (decay != 0 && !decoupled)
		emit(e, "\t\tconst real g = %s%s + %s * p;\n", minus, gradient,
			emit_real(e, decay, buf));
	else
		emit(e, "\t\tconst real g = %s%s;\n", minus, gradient);
}

void update_close(struct emit *e, const struct node *n)
{
	emit(e, n->in[GRAD] || e->g->target->cuda ? "\t}\n" : "\t\t}\n\t}\n");
}

/* --- SGD --- */

/* As torch.optim.SGD refuses it. */
static enum status sgd_infer(struct graph *g, struct node *n)
{
	const double momentum = node_option(n, "momentum");
	if (node_option(n, "nesterov") != 0 && (momentum <= 0 || node_option(n, "dampening") != 0))
		return node_fail(g, n, NULL, "nesterov needs a momentum and zero dampening");
	return update_infer(g, n);
}

static int sgd_states(int nattr, const struct attr *attr, struct op_state *out)
{
	out[0] = (struct op_state){.name = "momentum_buffer"};
	return update_option(nattr, attr, "momentum", 0) != 0;
}

static enum status sgd_emit(struct emit *e, const struct node *n)
{
	char m[40], d[40];
	double momentum = node_option(n, "momentum");
	emit(e, "\tconst real lr = x2[0];\n");
	if (momentum != 0)
		emit(e, "\tconst real keep = x3[1] == 0 ? 0 : %s, take = x3[1] == 0 ? 1 : %s;\n",
			emit_real(e, momentum, m),
			emit_real(e, 1 - node_option(n, "dampening"), d));
	update_open(e, n, node_option(n, "weight_decay"), false);
	if (momentum != 0)
		emit(e, "\t\tconst real v = keep * x4[i] + take * g;\n\t\ty1[i] = v;\n");
	if (momentum != 0 && node_option(n, "nesterov") != 0)
		emit(e, "\t\ty0[i] = p - lr * (g + %s * v);\n", m);
	else
		emit(e, "\t\ty0[i] = p - lr * %s;\n", momentum != 0 ? "v" : "g");
	update_close(e, n);
	return ST_OK;
}

/* --- Adam, AdamW --- */

static int adam_states(int nattr, const struct attr *attr, struct op_state *out)
{
	out[0] = (struct op_state){.name = "exp_avg"};
	out[1] = (struct op_state){.name = "exp_avg_sq"};
	out[2] = (struct op_state){.name = "max_exp_avg_sq"};
	return update_option(nattr, attr, "amsgrad", 0) != 0 ? 3 : 2;
}

static enum status adam_emit(struct emit *e, const struct node *n)
{
	const bool amsgrad = node_option(n, "amsgrad") != 0;
	const double b1 = node_option(n, "beta1"), b2 = node_option(n, "beta2");
	emit(e, "\tconst double t = (double)x3[1] + 1;\n");
	update_scalar(e, n, "real", "step", "(real)((double)x2[0] / (1 - pow(%.17g, t)))", b1);
	update_scalar(e, n, "real", "root", "(real)sqrt(1 - pow(%.17g, t))", b2);
	update_scalars_end(e, n);
	update_constant(e, "beta1", b1);
	update_constant(e, "rest1", 1 - b1);
	update_constant(e, "beta2", b2);
	update_constant(e, "rest2", 1 - b2);
	update_constant(e, "eps", node_option(n, "eps"));
	update_open(e, n, node_option(n, "weight_decay"), strstr(n->op->name, "AdamW") != NULL);
	emit(e, "\t\tconst real m = beta1 * x4[i] + rest1 * g;\n");
	emit(e, "\t\tconst real v = beta2 * x5[i] + rest2 * g * g;\n");
	emit(e, "\t\ty1[i] = m;\n\t\ty2[i] = v;\n");
	if (amsgrad)
		emit(e, "\t\tconst real top = MAX(x6[i], v);\n\t\ty3[i] = top;\n");
	emit(e, "\t\ty0[i] = p - step * m / (SQRT(%s) / root + eps);\n", amsgrad ? "top" : "v");
	update_close(e, n);
	return ST_OK;
}

static const struct op_option sgd_options[] = {OPT_LR(1e-3), OPT_POSITIVE("momentum", 0),
	{.name = "dampening"}, OPT_POSITIVE("weight_decay", 0), OPT_SWITCH("nesterov"),
	OPT_SWITCH("maximize"), {.name = NULL}};
#define ADAM(decay)                                                                                \
	OPTIONS(OPT_LR(1e-3), OPT_BETA("beta1", 0.9), OPT_BETA("beta2", 0.999),                    \
		OPT_POSITIVE("eps", 1e-8), OPT_POSITIVE("weight_decay", decay),                    \
		OPT_SWITCH("amsgrad"), OPT_SWITCH("maximize"))

const struct op_def ops_optimizer[] = {
	UPDATE("stint.SgdUpdate", "sgd", sgd_infer, sgd_states, sgd_emit, sgd_options),
	UPDATE("stint.AdamUpdate", "adam", update_infer, adam_states, adam_emit, ADAM(0),
		.work = 60),
	UPDATE("stint.AdamWUpdate", "adamw", update_infer, adam_states, adam_emit, ADAM(0.01),
		.work = 60),
	{0},
};
