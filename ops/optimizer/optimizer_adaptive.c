/* More optimizers with PyTorch's names, defaults and formulas (the algorithm boxes of
 * torch.optim.Adagrad, Adadelta, RMSprop, Adamax, NAdam and RAdam in PyTorch's documentation), and
 * Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2), with the
 * defaults of its authors' code. */
#include <math.h>

#include "ops/optimizer/update_op.h"

/* --- Adagrad --- */

static enum status adagrad_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct adagrad", "o",
		CALL_FIELDS({"lr_decay", ARG_DOUBLE(node_option(n, "lr_decay"))},
			{"start", ARG_REAL(node_option(n, "initial_accumulator_value"))},
			UPDATE_FIELD(n, eps))};
	return update_call(e, n,
		&(struct update_kernel){
			.file = "adagrad.h", .function = "adagrad", .option = &option});
}

/* --- Adadelta --- */

static enum status adadelta_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct adadelta", "o",
		CALL_FIELDS(
			UPDATE_FIELD(n, rho), UPDATE_REST(n, "rest", "rho"), UPDATE_FIELD(n, eps))};
	return update_call(e, n,
		&(struct update_kernel){
			.file = "adadelta.h", .function = "adadelta", .option = &option});
}

/* --- RMSprop --- */

static enum status rmsprop_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct rmsprop", "o",
		CALL_FIELDS(UPDATE_FIELD(n, alpha), UPDATE_REST(n, "rest", "alpha"),
			UPDATE_FIELD(n, eps), UPDATE_FIELD(n, momentum))};
	return update_call(e, n,
		&(struct update_kernel){
			.file = "rmsprop.h", .function = "rmsprop", .option = &option});
}

/* --- Relatives of Adam --- */

static enum status adamax_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct adamax", "o",
		CALL_FIELDS(UPDATE_WIDE(n, beta1), UPDATE_FIELD(n, beta1),
			UPDATE_REST(n, "rest1", "beta1"), UPDATE_FIELD(n, beta2),
			UPDATE_FIELD(n, eps))};
	const struct call_value rate = {"real", "rate", "adamax_rate",
		CALL_ARGS(ARG_X(LR), ARG_X(CONTROL), ARG_STRUCT(&option))};
	return update_call(e, n,
		&(struct update_kernel){.file = "adamax.h",
			.function = "adamax",
			.option = &option,
			.before = &rate});
}

/* mu_product is that of mu_1 to mu_t. */
static enum status nadam_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct nadam", "o",
		CALL_FIELDS(UPDATE_WIDE(n, beta1), UPDATE_WIDE(n, beta2),
			{"momentum_decay", ARG_DOUBLE(node_option(n, "momentum_decay"))},
			UPDATE_BETAS(n), UPDATE_FIELD(n, eps))};
	const struct call_value rate = {"struct nadam_rates", "rate", "nadam_rates",
		CALL_ARGS(ARG_X(LR), ARG_X(CONTROL), ARG_X(STATE2), ARG_STRUCT(&option))};
	TRY(update_call(e, n,
		&(struct update_kernel){.file = "nadam.h",
			.function = "nadam",
			.option = &option,
			.before = &rate,
			.decoupled = node_option(n, "decoupled_weight_decay") != 0}));
	return call_kernel(e, &(struct kernel_call){.file = "nadam.h",
				      .function = "nadam_advance",
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(3), ARG_X(CONTROL), ARG_X(STATE2),
					      ARG_STRUCT(&option))});
}

static enum status radam_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct radam", "o",
		CALL_FIELDS(UPDATE_WIDE(n, beta1), UPDATE_WIDE(n, beta2), UPDATE_BETAS(n),
			UPDATE_FIELD(n, eps))};
	const struct call_value rate = {"struct radam_rates", "rate", "radam_rates",
		CALL_ARGS(ARG_X(LR), ARG_X(CONTROL), ARG_STRUCT(&option))};
	return update_call(e, n,
		&(struct update_kernel){.file = "radam.h",
			.function = "radam",
			.option = &option,
			.before = &rate,
			.decoupled = node_option(n, "decoupled_weight_decay") != 0});
}

/* --- Lion --- */

static enum status lion_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct lion", "o", CALL_FIELDS(UPDATE_BETAS(n))};
	return update_call(e, n,
		&(struct update_kernel){.file = "lion.h",
			.function = "lion",
			.option = &option,
			.decoupled = true});
}

#define DECAY OPT_POSITIVE("weight_decay", 0)
#define MAXIMIZE OPT_SWITCH("maximize")
#define DECOUPLED OPT_SWITCH("decoupled_weight_decay")
#define EPS(v) OPT_POSITIVE("eps", v)
#define BETAS(b1, b2) OPT_BETA("beta1", b1), OPT_BETA("beta2", b2)

const struct op_def ops_adaptive[] = {
	UPDATE("stint.AdagradUpdate", "adagrad", update_infer, STATES({.name = "sum"}),
		adagrad_emit,
		OPTIONS(OPT_LR(1e-2), OPT_POSITIVE("lr_decay", 0), DECAY,
			OPT_POSITIVE("initial_accumulator_value", 0), EPS(1e-10), MAXIMIZE),
		.work = 30),
	UPDATE("stint.AdadeltaUpdate", "adadelta", update_infer,
		STATES({.name = "square_avg"}, {.name = "acc_delta"}), adadelta_emit,
		OPTIONS(OPT_LR(1), {.name = "rho", .value = 0.9, .high = 1}, EPS(1e-6), DECAY,
			MAXIMIZE),
		.work = 60),
	UPDATE("stint.RmspropUpdate", "rmsprop", update_infer,
		STATES({.name = "square_avg"}, {.name = "momentum_buffer", .with = "momentum"},
			{.name = "grad_avg", .with = "centered"}),
		rmsprop_emit,
		OPTIONS(OPT_LR(1e-2), OPT_POSITIVE("alpha", 0.99), EPS(1e-8), DECAY,
			OPT_POSITIVE("momentum", 0), OPT_SWITCH("centered"), MAXIMIZE),
		.work = 40),
	UPDATE("stint.AdamaxUpdate", "adamax", update_infer,
		STATES({.name = "exp_avg"}, {.name = "exp_inf"}), adamax_emit,
		OPTIONS(OPT_LR(2e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY, MAXIMIZE), .work = 30),
	UPDATE("stint.NAdamUpdate", "nadam", update_infer,
		STATES(MOMENTS, {.name = "mu_product", .shape = STATE_NUMBER}), nadam_emit,
		OPTIONS(OPT_LR(2e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY,
			OPT_POSITIVE("momentum_decay", 4e-3), DECOUPLED, MAXIMIZE),
		.work = 60),
	UPDATE("stint.RAdamUpdate", "radam", update_infer, STATES(MOMENTS), radam_emit,
		OPTIONS(OPT_LR(1e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY, DECOUPLED, MAXIMIZE),
		.work = 60),
	UPDATE("stint.LionUpdate", "lion", update_infer, STATES({.name = "exp_avg"}), lion_emit,
		OPTIONS(OPT_LR(1e-4), BETAS(0.9, 0.99), DECAY, MAXIMIZE)),
	{0},
};
