/* Optimizers with PyTorch's names, defaults and formulas (the algorithm boxes of torch.optim.SGD,
 * Adam and AdamW in PyTorch's documentation). An update reads (parameter, gradient, lr, control,
 * states) and writes the parameter and the states in place; control[1] counts the steps done
 * before. */
#include <inttypes.h>
#include <math.h>

#include "ops/data.h"

enum { PARAM, GRAD, LR, CONTROL, STATE0, STATE1 };

static enum status update_infer(struct graph *g, struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		TRY(data_output(
			g, n, k, n->in[PARAM]->dtype, n->in[PARAM]->rank, n->in[PARAM]->dim));
	return ST_OK;
}

/* As torch.optim.SGD refuses it. */
static enum status sgd_infer(struct graph *g, struct node *n)
{
	const double momentum = node_option(n, "momentum");
	if (node_option(n, "nesterov") != 0 && (momentum <= 0 || node_option(n, "dampening") != 0))
		return node_fail(g, n, NULL, "nesterov needs a momentum and zero dampening");
	return update_infer(g, n);
}

static double option_of(int nattr, const struct attr *attr, const char *name)
{
	const struct node n = {.nattr = nattr, .attr = attr};
	return node_float(&n, name, 0);
}

static int sgd_states(int nattr, const struct attr *attr)
{
	return option_of(nattr, attr, "momentum") != 0;
}

static int two_states(int nattr, const struct attr *attr)
{
	(void)nattr;
	(void)attr;
	return 2;
}

/* Opens the loop over elements with `g` the gradient plus decay * parameter. */
static void open_loop(struct emit *e, const struct node *n, double decay)
{
	char buf[40];
	emit_parallel(e, (double)n->out[0]->numel * 4, 1);
	emit(e, "\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", n->out[0]->numel);
	if (decay != 0)
		emit(e, "\t\treal g = x1[i] + %s * x0[i];\n", emit_real(e, decay, buf));
	else
		emit(e, "\t\treal g = x1[i];\n");
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
	open_loop(e, n, node_option(n, "weight_decay"));
	if (momentum != 0) {
		emit(e, "\t\treal v = keep * x4[i] + take * g;\n\t\ty1[i] = v;\n");
		emit(e, node_option(n, "nesterov") != 0 ? "\t\tg += %s * v;\n" : "\t\tg = v;\n", m);
	}
	emit(e, "\t\ty0[i] = x0[i] - lr * g;\n\t}\n");
	return ST_OK;
}

static enum status adam_emit(struct emit *e, const struct node *n)
{
	bool decoupled = strstr(n->op->name, "AdamW") != NULL;
	double b1 = node_option(n, "beta1"), b2 = node_option(n, "beta2"),
	       decay = node_option(n, "weight_decay");
	char s1[40], s2[40], t1[40], t2[40], eps[40];
	emit(e, "\tconst double t = (double)x3[1] + 1;\n");
	emit(e, "\tconst real step = (real)((double)x2[0] / (1 - pow(%.17g, t)));\n", b1);
	emit(e, "\tconst real root = (real)sqrt(1 - pow(%.17g, t));\n", b2);
	if (decoupled)
		emit(e, "\tconst real keep = (real)(1 - (double)x2[0] * %.17g);\n", decay);
	open_loop(e, n, decoupled ? 0 : decay);
	emit(e, "\t\treal m = %s * x4[i] + %s * g;\n", emit_real(e, b1, s1),
		emit_real(e, 1 - b1, t1));
	emit(e, "\t\treal v = %s * x5[i] + %s * g * g;\n", emit_real(e, b2, s2),
		emit_real(e, 1 - b2, t2));
	emit(e, "\t\ty1[i] = m;\n\t\ty2[i] = v;\n");
	emit(e, "\t\ty0[i] = %sx0[i] - step * m / (SQRT(v) / root + %s);\n\t}\n",
		decoupled ? "keep * " : "", emit_real(e, node_option(n, "eps"), eps));
	return ST_OK;
}

/* --- Clipping: torch.nn.utils.clip_grad_norm_ --- */

static enum status clip_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, g->real, 0, NULL);
}

/* Elements summed in single precision before the sum goes on in double: the parts are the same
 * whatever the threads. */
enum { CLIP_PART = 1024 };

static int64_t clip_parts(const struct tensor *x)
{
	return (x->numel + CLIP_PART - 1) / CLIP_PART;
}

static int64_t clip_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	int64_t parts = 0;
	for (int k = 0; k < n->nin; k++)
		parts += clip_parts(n->in[k]);
	return parts * (int64_t)sizeof(double);
}

static enum status clip_emit(struct emit *e, const struct node *n)
{
	int64_t at = 0;
	emit(e, "\tdouble *part = ws, total = 0;\n");
	for (int k = 0; k < n->nin; k++) {
		const int64_t len = n->in[k]->numel, parts = clip_parts(n->in[k]);
		emit_parallel(e, (double)len * 2, 1);
		emit(e, "\tfor (int64_t p = 0; p < %" PRId64 "; p++)\n", parts);
		emit(e, "\t\tpart[%" PRId64 " + p] = (double)dot_lanes(", at);
		emit(e, "x%d + p * %d, x%d + p * %d,\n", k, CLIP_PART, k, CLIP_PART);
		if (len % CLIP_PART)
			emit(e, "\t\t\tp < %" PRId64 " ? %d : %" PRId64 ");\n", parts - 1,
				CLIP_PART, len % CLIP_PART);
		else
			emit(e, "\t\t\t%d);\n", CLIP_PART);
		at += parts;
	}
	emit(e, "\tfor (int64_t p = 0; p < %" PRId64 "; p++)\n\t\ttotal += part[p];\n", at);
	emit(e, "\tconst double scale = %.17g / (sqrt(total) + 1e-6);\n",
		node_float(n, "max_norm", 1));
	emit(e, "\ty0[0] = scale > 1 ? 1 : (real)scale; /* NaN stays NaN */\n");
	return ST_OK;
}

static enum status clip_fold(struct graph *g, const struct node *n, void *const *out)
{
	double total = 0;
	for (int k = 0; k < n->nin; k++)
		for (int64_t i = 0; i < n->in[k]->numel; i++)
			total += tensor_real(n->in[k], i) * tensor_real(n->in[k], i);
	const double scale = node_float(n, "max_norm", 1) / (sqrt(total) + 1e-6);
	value_set(g->real, out[0], 0, scale > 1 ? 1 : scale);
	return ST_OK;
}

static struct op_cost clip_cost(const struct node *n)
{
	struct op_cost c = {0, 0};
	for (int k = 0; k < n->nin; k++) {
		c.flops += 2 * (double)n->in[k]->numel;
		c.bytes += (double)tensor_bytes(n->in[k]);
	}
	return c;
}

/* The ranges that PyTorch takes; its betas lie in [0, 1). */
#define BELOW_1 0x1.fffffffffffffp-1
static const struct op_option sgd_options[] = {{"lr", 1e-3, 0, HUGE_VAL},
	{"momentum", 0, 0, HUGE_VAL}, {"dampening", 0, 0, 0}, {"weight_decay", 0, 0, HUGE_VAL},
	{"nesterov", 0, 0, 1}, {.name = NULL}};
static const struct op_option adam_options[] = {{"lr", 1e-3, 0, HUGE_VAL},
	{"beta1", 0.9, 0, BELOW_1}, {"beta2", 0.999, 0, BELOW_1}, {"eps", 1e-8, 0, HUGE_VAL},
	{"weight_decay", 0, 0, HUGE_VAL}, {.name = NULL}};
static const struct op_option adamw_options[] = {{"lr", 1e-3, 0, HUGE_VAL},
	{"beta1", 0.9, 0, BELOW_1}, {"beta2", 0.999, 0, BELOW_1}, {"eps", 1e-8, 0, HUGE_VAL},
	{"weight_decay", 0.01, 0, HUGE_VAL}, {.name = NULL}};

#define UPDATE(ours, spec, shape, states, options, ...)                                            \
	{                                                                                          \
		.name = ours, .optimizer = spec, .min_in = 4, .max_in = 6, .min_out = 1,           \
		.max_out = 3, .traits = OP_UPDATE, .infer = shape, .state_count = states,          \
		.option = options, .npair = 3, .pair = {{0, PARAM}, {1, STATE0}, {2, STATE1}},     \
		__VA_ARGS__                                                                        \
	}

const struct op_def ops_optimizer[] = {
	UPDATE("stint.SgdUpdate", "sgd", sgd_infer, sgd_states, sgd_options, .emit_c = sgd_emit,
		.state_name = {"momentum_buffer"}),
	UPDATE("stint.AdamUpdate", "adam", update_infer, two_states, adam_options,
		.emit_c = adam_emit, .work = 60, .state_name = {"exp_avg", "exp_avg_sq"}),
	UPDATE("stint.AdamWUpdate", "adamw", update_infer, two_states, adamw_options,
		.emit_c = adam_emit, .work = 60, .state_name = {"exp_avg", "exp_avg_sq"}),
	{.name = "stint.ClipScale",
		.role = ROLE_CLIP_SCALE,
		.min_in = 1,
		.max_in = -1,
		.traits = OP_STOP,
		.infer = clip_infer,
		.fold = clip_fold,
		.cost = clip_cost,
		.workspace = clip_workspace,
		.emit_c = clip_emit,
		/* no gradient: the tolerance leaves only the output to be compared */
		.example = EXAMPLES(
			{.in = "3,5 700,3 ()", .attr = "max_norm=0.5", .tolerance = 1e6},
			{.in = "2,512", .attr = "max_norm=1000.0"})},
	{0},
};
