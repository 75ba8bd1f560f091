/* Optimizers that are rules, by PyTorch's names and defaults, and with the formulas of the
 * algorithm boxes of torch.optim in PyTorch's documentation where no paper is named. */
#include <math.h>

#include "ops/optimizer/update_op.h"

/* As torch.optim.SGD refuses it. */
static enum status sgd_infer(struct graph *g, struct node *n)
{
	const double momentum = node_option(n, "momentum");
	if (node_option(n, "nesterov") != 0 && (momentum <= 0 || node_option(n, "dampening") != 0))
		return node_fail(g, n, NULL, "nesterov needs a momentum and zero dampening");
	return update_infer(g, n);
}

#define ADAM(ours, spec, decay, ...)                                                               \
	OPTIMIZER(ours, spec, 60,                                                                  \
		OPTIONS(RATE(1e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY(decay),                    \
			SWITCH("amsgrad", 0), MAXIMIZE),                                           \
		STATES(MOMENTS, {.name = "max_exp_avg_sq", .with = "amsgrad"}), ONCE(MOMENT_BIAS), \
		EACH(MOMENT_LINES, {"max_exp_avg_sq", "MAX(max_exp_avg_sq, exp_avg_sq)"},          \
			{"p", "p - rate * exp_avg / "                                              \
			      "(SQRT(amsgrad ? max_exp_avg_sq : exp_avg_sq) / root + eps)"}),      \
		__VA_ARGS__)
#define MU(t) "beta1 * (1 - 0.5 * EXP(" t " * momentum_decay * -0.04082199452025517))"

/* clang-format off */
const struct op_def ops_rules[] = {
	RULE("stint.SgdUpdate", OP_BY_ELEMENT, sgd_infer, update_emit, "sgd", 0,
		OPTIONS(RATE(1e-3), POSITIVE("momentum", 0), {.name = "dampening"}, DECAY(0), SWITCH("nesterov", 0), MAXIMIZE),
		STATES({.name = "momentum_buffer", .with = "momentum"}),
		ONCE({"rate", "lr"}, {"keep", "t == 1 ? 0 : momentum"}, {"take", "t == 1 ? 1 : 1 - dampening"}),
		EACH({"momentum_buffer", "keep * momentum_buffer + take * g"},
			{"step", "momentum ? nesterov ? g + momentum * momentum_buffer : momentum_buffer : g"},
			{"p", "p - rate * step"})),

	ADAM("stint.AdamUpdate", "adam", 0, .decoupled = false),

	/* Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019 */
	ADAM("stint.AdamWUpdate", "adamw", 0.01, .decoupled = true),

	OPTIMIZER("stint.AdagradUpdate", "adagrad", 30,
		OPTIONS(RATE(1e-2), POSITIVE("lr_decay", 0), DECAY(0), POSITIVE("initial_accumulator_value", 0), EPS(1e-10),
			MAXIMIZE),
		STATES({.name = "sum"}),
		ONCE({"rate", "lr / (1 + (t - 1) * lr_decay)"}, {"start", "t == 1 ? initial_accumulator_value : 0"}),
		EACH({"sum", "sum + start + g * g"},
			{"p", "p - rate * g / (SQRT(sum) + eps)"})),

	OPTIMIZER("stint.AdadeltaUpdate", "adadelta", 60,
		OPTIONS(RATE(1), {.name = "rho", .value = 0.9, .high = 1}, EPS(1e-6), DECAY(0), MAXIMIZE),
		STATES({.name = "square_avg"}, {.name = "acc_delta"}),
		ONCE({"rate", "lr"}),
		EACH({"square_avg", "rho * square_avg + (1 - rho) * g * g"},
			{"delta", "SQRT(acc_delta + eps) / SQRT(square_avg + eps) * g"},
			{"acc_delta", "rho * acc_delta + (1 - rho) * delta * delta"},
			{"p", "p - rate * delta"})),

	OPTIMIZER("stint.RmspropUpdate", "rmsprop", 40,
		OPTIONS(RATE(1e-2), POSITIVE("alpha", 0.99), EPS(1e-8), DECAY(0), POSITIVE("momentum", 0), SWITCH("centered", 0),
			MAXIMIZE),
		STATES({.name = "square_avg"}, {.name = "momentum_buffer", .with = "momentum"},
			{.name = "grad_avg", .with = "centered"}),
		ONCE({"rate", "lr"}),
		EACH({"square_avg", "alpha * square_avg + (1 - alpha) * g * g"},
			{"grad_avg", "alpha * grad_avg + (1 - alpha) * g"},
			{"step", "g / (SQRT(centered ? square_avg - grad_avg * grad_avg : square_avg) + eps)"},
			{"momentum_buffer", "momentum * momentum_buffer + step"},
			{"p", "p - rate * (momentum ? momentum_buffer : step)"})),

	/* a NaN stays in exp_inf */
	OPTIMIZER("stint.AdamaxUpdate", "adamax", 30,
		OPTIONS(RATE(2e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY(0), MAXIMIZE),
		STATES({.name = "exp_avg"}, {.name = "exp_inf"}),
		ONCE({"rate", "lr / (1 - POWER(beta1, t))"}),
		EACH({"exp_avg", "beta1 * exp_avg + (1 - beta1) * g"},
			{"faded", "beta2 * exp_inf"},
			{"size", "FABS(g) + eps"},
			{"exp_inf", "faded > size || faded != faded ? faded : size"},
			{"p", "p - rate * exp_avg / exp_inf"})),

	/* mu_product is that of mu_1 to mu_t; -0.0408... is log 0.96 */
	OPTIMIZER("stint.NAdamUpdate", "nadam", 60,
		OPTIONS(RATE(2e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY(0), POSITIVE("momentum_decay", 4e-3), DECOUPLED, MAXIMIZE),
		STATES(MOMENTS, {.name = "mu_product", .shape = STATE_NUMBER}),
		ONCE({"mu", MU("t")},
			{"next", MU("(t + 1)")},
			{"mu_product", "t == 1 ? mu : mu_product * mu"},
			{"by_g", "lr * (1 - mu) / (1 - mu_product)"},
			{"by_avg", "lr * next / (1 - mu_product * next)"},
			{"root", "SQRT(1 - POWER(beta2, t))"}),
		EACH(MOMENT_LINES,
			{"p", "p - (by_g * g + by_avg * exp_avg) / (SQRT(exp_avg_sq) / root + eps)"})),

	/* until the variance's estimate can be trusted, steps are plain momentum's */
	OPTIMIZER("stint.RAdamUpdate", "radam", 60,
		OPTIONS(RATE(1e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY(0), DECOUPLED, MAXIMIZE),
		STATES(MOMENTS),
		ONCE({"power", "POWER(beta2, t)"},
			{"top", "2 / (1 - beta2) - 1"},
			{"rho", "top - 2 * t * power / (1 - power)"},
			{"part", "(rho - 4) * (rho - 2) * top / ((top - 4) * (top - 2) * rho)"},
			{"rate", "lr / (1 - POWER(beta1, t))"},
			{"trusted", "rho > 5"},
			{"adaptive", "rho > 5 ? rate * (SQRT(part) * SQRT(1 - power)) : 0"},
			{"plain", "rate"}),
		EACH(MOMENT_LINES,
			{"p", "p - exp_avg * (trusted != 0 ? adaptive / (SQRT(exp_avg_sq) + eps) : plain)"})),

	/* Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2, with its authors' defaults. NaN
	 * moves the parameter, whose momentum it is from now on: its sign is NaN, as JAX has it */
	OPTIMIZER("stint.LionUpdate", "lion", 0,
		OPTIONS(RATE(1e-4), BETAS(0.9, 0.99), DECAY(0), MAXIMIZE),
		STATES({.name = "exp_avg"}),
		ONCE({"rate", "lr"}),
		EACH({"c", "beta1 * exp_avg + (1 - beta1) * g"},
			{"exp_avg", "beta2 * exp_avg + (1 - beta2) * g"},
			{"p", "p - rate * (c == c ? R((c > 0) - (c < 0)) : c)"}),
		.decoupled = true),

	/* ax, the average of the parameter from step t0 on, is a state beside it */
	OPTIMIZER("stint.AsgdUpdate", "asgd", 30,
		OPTIONS(RATE(1e-2), {.name = "lambd", .value = 1e-4}, {.name = "alpha", .value = 0.75}, {.name = "t0", .value = 1e6},
			DECAY(0), MAXIMIZE),
		STATES({.name = "ax"}, {.name = "eta", .shape = STATE_NUMBER}),
		ONCE({"rate", "t == 1 ? lr : eta"},
			{"keep", "1 - lambd * rate"},
			{"mu", "t - 1 - t0 > 1 ? 1 / (t - 1 - t0) : 1"},
			{"eta", "lr / EXP(alpha * LOG(1 + lambd * lr * t))"}),
		EACH({"p", "keep * p - rate * g"},
			{"ax", "mu == 1 ? p : ax + mu * (p - ax)"})),

	/* Xie et al., "Adan: Adaptive Nesterov Momentum Algorithm for Faster Optimizing Deep Models", 2022, algorithm 1, with
	 * its authors' defaults; the decay is implicit */
	OPTIMIZER("stint.AdanUpdate", "adan", 90,
		OPTIONS(RATE(1e-3), BETAS(0.98, 0.92), BETA("beta3", 0.99), EPS(1e-8), DECAY(0)),
		STATES({.name = "exp_avg"}, {.name = "exp_avg_diff"}, {.name = "exp_avg_sq"}, {.name = "pre_grad"}),
		ONCE({"seen", "t > 1"}, {"root", "SQRT(1 - POWER(beta3, t))"}, {"decay", "1 + lr * weight_decay"},
			{"by_avg", "lr / (1 - POWER(beta1, t))"}, {"by_diff", "lr * beta2 / (1 - POWER(beta2, t))"}),
		EACH({"diff", "seen * (g - pre_grad)"}, {"ahead", "g + beta2 * diff"},
			{"exp_avg", "beta1 * exp_avg + (1 - beta1) * g"},
			{"exp_avg_diff", "beta2 * exp_avg_diff + (1 - beta2) * diff"},
			{"exp_avg_sq", "beta3 * exp_avg_sq + (1 - beta3) * ahead * ahead"},
			{"pre_grad", "g"},
			{"p", "(p - (by_avg * exp_avg + by_diff * exp_avg_diff) / (SQRT(exp_avg_sq) / root + eps)) / decay"})),
	{0},
};
/* clang-format on */
