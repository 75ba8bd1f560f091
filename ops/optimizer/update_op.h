/* Shared by the optimizers. An update reads (parameter, gradient, lr, control, states) and writes
 * the parameter and the states in place; control[1] counts the steps done before; control[3]: leave
 * all as it is. Without a gradient it reads a column and a row at the end, whose outer product the
 * gradient is. */
#ifndef STINT_OPS_UPDATE_OP_H
#define STINT_OPS_UPDATE_OP_H

#include "codegen/call.h"
#include "graph/op_optimizer.h"
#include "ops/data.h"

enum { PARAM, GRAD, LR, CONTROL, STATE0, STATE1, STATE2, STATE3, STATE4 };

enum status update_infer(struct graph *g, struct node *n);
/* The lines of the record's rule, and the average. */
enum status update_emit(struct emit *e, const struct node *n);
/* The parameter's average, if the node keeps one, of what the kernels before have made of it. */
enum status update_average(struct emit *e, const struct node *n);
/* A matrix of inputs by outputs, as ONNX's MatMul reads it, where PyTorch has outputs by inputs. */
bool update_is_turned(const struct graph *g, const struct tensor *param);
/* The update of a parameter that is not for `op`: AdamW's, with op's betas, decay, and option
 * `eps`. */
enum status update_as_adamw(
	struct graph *g, const struct op_def *op, const struct update_of *u, const char *eps);

#define OPTIONS(...) ((const struct op_option[]){__VA_ARGS__, {.name = NULL}})
#define STATES(...) ((const struct op_state[]){__VA_ARGS__, {.name = NULL}})
#define ONCE(...)                                                                                  \
	.once = (const struct op_line[])                                                           \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			.name = NULL                                                               \
		}                                                                                  \
	}
#define EACH(...)                                                                                  \
	.each = (const struct op_line[])                                                           \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			.name = NULL                                                               \
		}                                                                                  \
	}

/* Options with the ranges that PyTorch takes; its betas lie in [0, 1). */
/* clang-format off */
#define POSITIVE(which, v) {.name = which, .value = v, .high = HUGE_VAL}
#define SWITCH(which, v) {.name = which, .value = v, .high = 1}
#define BETA(which, v) {.name = which, .value = v, .high = 0x1.fffffffffffffp-1}
#define BETAS(b1, b2) BETA("beta1", b1), BETA("beta2", b2)
#define RATE(v) POSITIVE("lr", v)
#define EPS(v) POSITIVE("eps", v)
#define DECAY(v) POSITIVE("weight_decay", v)
#define DECOUPLED SWITCH("decoupled_weight_decay", 0)
#define MAXIMIZE SWITCH("maximize", 0)

/* Adam's (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015): the moments, and by
 * how much they are too small so far. */
#define MOMENTS {.name = "exp_avg"}, {.name = "exp_avg_sq"}
#define MOMENT_LINES                                                                               \
	{"exp_avg", "beta1 * exp_avg + (1 - beta1) * g"},                                          \
	{"exp_avg_sq", "beta2 * exp_avg_sq + (1 - beta2) * g * g"}
#define MOMENT_BIAS                                                                                \
	{"rate", "lr / (1 - POWER(beta1, t))"}, {"root", "SQRT(1 - POWER(beta2, t))"}
/* clang-format on */

/* A record of one node, with the fields of struct op_optimizer `...`. The parameter and the states
 * are overwritten. */
#define UPDATE(ours, trait, infers, emits, options, of, ...)                                       \
	.name = ours, .optimizer = &(const struct op_optimizer){of, __VA_ARGS__}, .min_in = 4,     \
	.max_in = 6 + OP_STATES, .min_out = 1, .max_out = 1 + OP_STATES,                           \
	.traits = OP_UPDATE | (trait), .infer = infers, .emit_c = emits, .option = options
#define UPDATE_PAIRS                                                                               \
	.npair = 1 + OP_STATES,                                                                    \
	.pair = {{0, PARAM}, {1, STATE0}, {2, STATE1}, {3, STATE2}, {4, STATE3}, {5, STATE4}}

/* One that a rule says: its name, what it is called on the command line, how many operations an
 * element takes, its options, states, and lines. */
#define RULE(ours, trait, infers, emits, spec, works, options, states, ...)                        \
	{                                                                                          \
		UPDATE(ours, trait, infers, emits, options, spec, states, __VA_ARGS__),            \
			.work = works, UPDATE_PAIRS                                                \
	}
#define OPTIMIZER(ours, ...) RULE(ours, OP_BY_ELEMENT, update_infer, update_emit, __VA_ARGS__)
/* One that looks at the whole parameter, with a hook that says so, or builds other nodes. */
#define WHOLE_UPDATE(ours, spec, infers, emits, options, states, built, ...)                       \
	{                                                                                          \
		UPDATE(ours, 0, infers, emits, options, spec, states, .build = built),             \
			UPDATE_PAIRS, __VA_ARGS__                                                  \
	}

#endif
