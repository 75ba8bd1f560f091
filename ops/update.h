/* Shared by the optimizers. An update reads (parameter, gradient, lr, control, states) and writes
 * the parameter and the states in place; control[1] counts the steps done before; control[3]: leave
 * all as it is. Without a gradient it reads a column and a row at the end, whose outer product the
 * gradient is. */
#ifndef STINT_OPS_UPDATE_H
#define STINT_OPS_UPDATE_H

#include "ops/data.h"

enum { PARAM, GRAD, LR, CONTROL, STATE0, STATE1, STATE2 };

enum status update_infer(struct graph *g, struct node *n);
/* An option among those given; `def` where it is not. */
double update_option(int nattr, const struct attr *attr, const char *name, double def);

/* A constant of the C text: "const real NAME = 0.1f;". */
void update_constant(struct emit *e, const char *name, double v);
/* A number that a step computes once: "const real NAME = TEXT;". In CUDA a block's first thread
 * does, for all of its threads: update_scalars_end comes behind the last of them. */
void update_scalar(struct emit *e, const struct node *n, const char *type, const char *name,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void update_scalars_end(struct emit *e, const struct node *n);
/* Opens the loop over elements i with `p` the parameter and `g` the gradient, of which `maximize`
 * takes the negative, plus `decay` times the parameter. A decoupled decay (Loshchilov and Hutter,
 * "Decoupled Weight Decay Regularization", 2019) shrinks `p` by lr times it instead. */
void update_open(struct emit *e, const struct node *n, double decay, bool decoupled);
/* Ends it. */
void update_close(struct emit *e, const struct node *n);

/* The ranges that PyTorch takes; its betas lie in [0, 1). */
/* clang-format off */
#define OPT_POSITIVE(which, v) {.name = which, .value = v, .high = HUGE_VAL}
#define OPT_LR(v) OPT_POSITIVE("lr", v)
#define OPT_BETA(which, v) {.name = which, .value = v, .high = 0x1.fffffffffffffp-1}
#define OPT_SWITCH(which) {.name = which, .high = 1}
/* clang-format on */
#define OPTIONS(...) ((const struct op_option[]){__VA_ARGS__, {.name = NULL}})

#define UPDATE(ours, spec, shape, of, emits, options, ...)                                         \
	{                                                                                          \
		.name = ours, .optimizer = spec, .min_in = 4, .max_in = 6 + OP_STATES,             \
		.min_out = 1, .max_out = 1 + OP_STATES, .traits = OP_UPDATE, .infer = shape,       \
		.states = of, .emit_c = emits, .option = options, .npair = 1 + OP_STATES,          \
		.pair = {{0, PARAM}, {1, STATE0}, {2, STATE1}, {3, STATE2}}, __VA_ARGS__           \
	}

#endif
