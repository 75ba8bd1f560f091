/* More optimizers with PyTorch's names, defaults and formulas (the algorithm boxes of
 * torch.optim.Adagrad, Adadelta, RMSprop, Adamax, NAdam and RAdam in PyTorch's documentation), and
 * Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2), with the
 * defaults of its authors' code. */
#include <math.h>

#include "ops/update.h"

static enum status close_loop(struct emit *e, const struct node *n, const char *update)
{
	emit(e, "\t\ty0[i] = p - %s;\n", update);
	update_close(e, n);
	return ST_OK;
}

/* A constant by the name of its option, and what is left of 1. */
static void emit_option(struct emit *e, const struct node *n, const char *name)
{
	update_constant(e, name, node_option(n, name));
}

static void emit_beta(struct emit *e, const struct node *n, const char *name, const char *rest)
{
	emit_option(e, n, name);
	update_constant(e, rest, 1 - node_option(n, name));
}

static void open_decayed(struct emit *e, const struct node *n)
{
	update_open(e, n, node_option(n, "weight_decay"),
		node_option(n, "decoupled_weight_decay") != 0);
}

/* --- Adagrad --- */

static int adagrad_states(int nattr, const struct attr *attr, struct op_state *out)
{
	(void)nattr, (void)attr;
	out[0] = (struct op_state){.name = "sum"};
	return 1;
}

static enum status adagrad_emit(struct emit *e, const struct node *n)
{
	const double start = node_option(n, "initial_accumulator_value");
	char buf[40];
	emit(e, "\tconst real lr = (real)((double)x2[0] / (1 + (double)x3[1] * %.17g));\n",
		node_option(n, "lr_decay"));
	if (start != 0)
		emit(e, "\tconst real start = x3[1] == 0 ? %s : 0;\n", emit_real(e, start, buf));
	emit_option(e, n, "eps");
	open_decayed(e, n);
	emit(e, "\t\tconst real sum = x4[i] %s+ g * g;\n\t\ty1[i] = sum;\n",
		start != 0 ? "+ start " : "");
	return close_loop(e, n, "lr * g / (SQRT(sum) + eps)");
}

/* --- Adadelta --- */

static int adadelta_states(int nattr, const struct attr *attr, struct op_state *out)
{
	(void)nattr, (void)attr;
	out[0] = (struct op_state){.name = "square_avg"};
	out[1] = (struct op_state){.name = "acc_delta"};
	return 2;
}

static enum status adadelta_emit(struct emit *e, const struct node *n)
{
	emit(e, "\tconst real lr = x2[0];\n");
	emit_beta(e, n, "rho", "rest");
	emit_option(e, n, "eps");
	open_decayed(e, n);
	emit(e, "\t\tconst real v = rho * x4[i] + rest * g * g;\n");
	emit(e, "\t\tconst real d = SQRT(x5[i] + eps) / SQRT(v + eps) * g;\n");
	emit(e, "\t\ty1[i] = v;\n\t\ty2[i] = rho * x5[i] + rest * d * d;\n");
	return close_loop(e, n, "lr * d");
}

/* --- RMSprop --- */

static int rmsprop_states(int nattr, const struct attr *attr, struct op_state *out)
{
	int n = 0;
	out[n++] = (struct op_state){.name = "square_avg"};
	if (update_option(nattr, attr, "momentum", 0) != 0)
		out[n++] = (struct op_state){.name = "momentum_buffer"};
	if (update_option(nattr, attr, "centered", 0) != 0)
		out[n++] = (struct op_state){.name = "grad_avg"};
	return n;
}

static enum status rmsprop_emit(struct emit *e, const struct node *n)
{
	const bool momentum = node_option(n, "momentum") != 0;
	const bool centered = node_option(n, "centered") != 0;
	emit(e, "\tconst real lr = x2[0];\n");
	emit_beta(e, n, "alpha", "rest");
	emit_option(e, n, "eps");
	if (momentum)
		emit_option(e, n, "momentum");
	open_decayed(e, n);
	emit(e, "\t\tconst real v = alpha * x4[i] + rest * g * g;\n\t\ty1[i] = v;\n");
	if (centered) {
		emit(e, "\t\tconst real m = alpha * x%d[i] + rest * g;\n", momentum ? 6 : 5);
		emit(e, "\t\ty%d[i] = m;\n", momentum ? 3 : 2);
	}
	emit(e, "\t\tconst real d = g / (SQRT(%s) + eps);\n", centered ? "v - m * m" : "v");
	if (!momentum)
		return close_loop(e, n, "lr * d");
	emit(e, "\t\tconst real b = momentum * x5[i] + d;\n\t\ty2[i] = b;\n");
	return close_loop(e, n, "lr * b");
}

/* --- Relatives of Adam --- */

static int moment_states(int nattr, const struct attr *attr, struct op_state *out)
{
	(void)nattr, (void)attr;
	out[0] = (struct op_state){.name = "exp_avg"};
	out[1] = (struct op_state){.name = "exp_avg_sq"};
	return 2;
}

static int adamax_states(int nattr, const struct attr *attr, struct op_state *out)
{
	int count = moment_states(nattr, attr, out);
	out[1].name = "exp_inf";
	return count;
}

static void emit_time(struct emit *e)
{
	emit(e, "\tconst double t = (double)x3[1] + 1;\n");
}

static enum status adamax_emit(struct emit *e, const struct node *n)
{
	emit_time(e);
	update_scalar(e, n, "real", "step", "(real)((double)x2[0] / (1 - pow(%.17g, t)))",
		node_option(n, "beta1"));
	update_scalars_end(e, n);
	emit_beta(e, n, "beta1", "rest1");
	emit_option(e, n, "beta2");
	emit_option(e, n, "eps");
	open_decayed(e, n);
	emit(e, "\t\tconst real m = beta1 * x4[i] + rest1 * g;\n");
	emit(e, "\t\tconst real old = beta2 * x5[i], now = FABS(g) + eps;\n"
		"\t\tconst real u = old > now || old != old ? old : now;\n");
	emit(e, "\t\ty1[i] = m;\n\t\ty2[i] = u;\n");
	return close_loop(e, n, "step * m / u");
}

static void emit_moments(struct emit *e, const struct node *n)
{
	open_decayed(e, n);
	emit(e, "\t\tconst real m = beta1 * x4[i] + rest1 * g;\n");
	emit(e, "\t\tconst real v = beta2 * x5[i] + rest2 * g * g;\n");
	emit(e, "\t\ty1[i] = m;\n\t\ty2[i] = v;\n");
}

static int nadam_states(int nattr, const struct attr *attr, struct op_state *out)
{
	moment_states(nattr, attr, out);
	out[2] = (struct op_state){.name = "mu_product", .scalar = true};
	return 3;
}

static void emit_mu(
	struct emit *e, const struct node *n, const char *name, double b1, int next, double decay)
{
	update_scalar(e, n, "double", name, "%.17g * (1 - 0.5 * pow(0.96, (t + %d) * %.17g))", b1,
		next, decay);
}

/* mu_product is that of mu_1 to mu_t. */
static enum status nadam_emit(struct emit *e, const struct node *n)
{
	const double b1 = node_option(n, "beta1"), decay = node_option(n, "momentum_decay");
	emit_time(e);
	emit(e, "\tconst double lr = (double)x2[0];\n");
	for (int next = 0; next < 2; next++)
		emit_mu(e, n, next ? "mu_next" : "mu", b1, next, decay);
	update_scalar(e, n, "double", "product", "x3[1] == 0 ? mu : (double)x6[0] * mu");
	update_scalar(e, n, "real", "step_g", "(real)(lr * (1 - mu) / (1 - product))");
	update_scalar(e, n, "real", "step_m", "(real)(lr * mu_next / (1 - product * mu_next))");
	update_scalar(
		e, n, "real", "root", "(real)sqrt(1 - pow(%.17g, t))", node_option(n, "beta2"));
	update_scalars_end(e, n);
	emit_beta(e, n, "beta1", "rest1");
	emit_beta(e, n, "beta2", "rest2");
	emit_option(e, n, "eps");
	if (!e->g->target->cuda)
		emit(e, "\ty3[0] = (real)product;\n");
	emit_moments(e, n);
	close_loop(e, n, "(step_g * g + step_m * m) / (SQRT(v) / root + eps)");
	if (e->g->target->cuda) { /* once no block reads it any more */
		emit_stage(e);
		emit_launch(e, 1, 32);
		emit(e, "\tif (x3[3] || threadIdx.x != 0)\n\t\treturn;\n");
		emit_time(e);
		emit_mu(e, n, "mu", b1, 0, decay);
		emit(e, "\ty3[0] = (real)(x3[1] == 0 ? mu : (double)x6[0] * mu);\n");
	}
	return ST_OK;
}

static enum status radam_emit(struct emit *e, const struct node *n)
{
	const double b1 = node_option(n, "beta1"), b2 = node_option(n, "beta2");
	const double top = 2 / (1 - b2) - 1;
	emit_time(e);
	update_scalar(e, n, "double", "power", "pow(%.17g, t)", b2);
	update_scalar(e, n, "double", "rho", "%.17g - 2 * t * power / (1 - power)", top);
	update_scalar(e, n, "double", "rect",
		"rho > 5 ? sqrt((rho - 4) * (rho - 2) * %.17g\n"
		"\t\t/ (%.17g * rho)) * sqrt(1 - power) : 0",
		top, (top - 4) * (top - 2));
	update_scalar(e, n, "double", "lr", "(double)x2[0] / (1 - pow(%.17g, t))", b1);
	update_scalars_end(e, n);
	emit(e, "\tconst real plain = rho > 5 ? 0 : (real)lr, step = (real)(lr * rect);\n");
	emit_beta(e, n, "beta1", "rest1");
	emit_beta(e, n, "beta2", "rest2");
	emit_option(e, n, "eps");
	emit_moments(e, n);
	emit(e, "\t\tconst real d = step / (SQRT(v) + eps);\n");
	return close_loop(e, n, "m * (rho > 5 ? d : plain)");
}

/* --- Lion --- */

static int lion_states(int nattr, const struct attr *attr, struct op_state *out)
{
	return moment_states(nattr, attr, out) - 1;
}

static enum status lion_emit(struct emit *e, const struct node *n)
{
	emit(e, "\tconst real lr = x2[0];\n");
	emit_beta(e, n, "beta1", "rest1");
	emit_beta(e, n, "beta2", "rest2");
	update_open(e, n, node_option(n, "weight_decay"), true);
	emit(e, "\t\tconst real c = beta1 * x4[i] + rest1 * g;\n");
	emit(e, "\t\ty1[i] = beta2 * x4[i] + rest2 * g;\n");
	/* NaN moves the parameter, whose momentum it is from now on: its sign is NaN, as JAX has it
	 */
	return close_loop(e, n, "lr * (c == c ? (real)((c > 0) - (c < 0)) : c)");
}

#define DECAY OPT_POSITIVE("weight_decay", 0)
#define MAXIMIZE OPT_SWITCH("maximize")
#define DECOUPLED OPT_SWITCH("decoupled_weight_decay")
#define EPS(v) OPT_POSITIVE("eps", v)
#define BETAS(b1, b2) OPT_BETA("beta1", b1), OPT_BETA("beta2", b2)

const struct op_def ops_adaptive[] = {
	UPDATE("stint.AdagradUpdate", "adagrad", update_infer, adagrad_states, adagrad_emit,
		OPTIONS(OPT_LR(1e-2), OPT_POSITIVE("lr_decay", 0), DECAY,
			OPT_POSITIVE("initial_accumulator_value", 0), EPS(1e-10), MAXIMIZE),
		.work = 30),
	UPDATE("stint.AdadeltaUpdate", "adadelta", update_infer, adadelta_states, adadelta_emit,
		OPTIONS(OPT_LR(1), {.name = "rho", .value = 0.9, .high = 1}, EPS(1e-6), DECAY,
			MAXIMIZE),
		.work = 60),
	UPDATE("stint.RmspropUpdate", "rmsprop", update_infer, rmsprop_states, rmsprop_emit,
		OPTIONS(OPT_LR(1e-2), OPT_POSITIVE("alpha", 0.99), EPS(1e-8), DECAY,
			OPT_POSITIVE("momentum", 0), OPT_SWITCH("centered"), MAXIMIZE),
		.work = 40),
	UPDATE("stint.AdamaxUpdate", "adamax", update_infer, adamax_states, adamax_emit,
		OPTIONS(OPT_LR(2e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY, MAXIMIZE), .work = 30),
	UPDATE("stint.NAdamUpdate", "nadam", update_infer, nadam_states, nadam_emit,
		OPTIONS(OPT_LR(2e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY,
			OPT_POSITIVE("momentum_decay", 4e-3), DECOUPLED, MAXIMIZE),
		.work = 60),
	UPDATE("stint.RAdamUpdate", "radam", update_infer, moment_states, radam_emit,
		OPTIONS(OPT_LR(1e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY, DECOUPLED, MAXIMIZE),
		.work = 60),
	UPDATE("stint.LionUpdate", "lion", update_infer, lion_states, lion_emit,
		OPTIONS(OPT_LR(1e-4), BETAS(0.9, 0.99), DECAY, MAXIMIZE)),
	{0},
};
