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
/* The kernel of n: kernels/FILE's function, which takes all outputs, then the parameter, gradient,
 * lr, control and states, `u`, `o` and, if there is one, what is worked out before. States are the
 * record's in their order, NULL where the node has it not; those that are one number are left out.
 */
struct update_kernel {
	const char *file, *function;
	const struct call_struct *option; /* its own, "o" */
	const struct call_value *before;
	bool decoupled; /* the decay is */
	int64_t block; /* a turn is so many elements, and `n` is how many there are; 0: it is one */
};
enum status update_call(struct emit *e, const struct node *n, const struct update_kernel *k);
/* The same with Adam's options, `struct adam`, and what depends on the step alone. */
enum status update_adam(struct emit *e, const struct node *n, struct update_kernel k);

/* The parameter's average, if the node keeps one, of what the kernels before have made of it. */
enum status update_average(struct emit *e, const struct node *n);
/* `u`, which holds no longer than `field`. */
enum { UPDATE_FIELDS = 5 };
struct call_struct update_struct(
	const struct node *n, bool decoupled, struct call_field field[UPDATE_FIELDS]);

/* A matrix of inputs by outputs, as ONNX's MatMul reads it, where PyTorch has outputs by inputs. */
bool update_is_turned(const struct graph *g, const struct tensor *param);

/* The update of a parameter that is not for `op`: AdamW's, with op's betas, decay, and option
 * `eps`. */
enum status update_as_adamw(
	struct graph *g, const struct op_def *op, const struct update_of *u, const char *eps);

/* Fields of a kernel's options, by the node's. */
#define UPDATE_FIELD(n, name)                                                                      \
	{                                                                                          \
#name, ARG_REAL(node_option(n, #name))                                             \
	}
#define UPDATE_WIDE(n, name)                                                                       \
	{                                                                                          \
#name "_wide", ARG_DOUBLE(node_option(n, #name))                                   \
	}
#define UPDATE_REST(n, field, name)                                                                \
	{                                                                                          \
		field, ARG_REAL(1 - node_option(n, name))                                          \
	}
#define UPDATE_BETAS(n)                                                                            \
	UPDATE_FIELD(n, beta1), UPDATE_REST(n, "rest1", "beta1"), UPDATE_FIELD(n, beta2),          \
		UPDATE_REST(n, "rest2", "beta2")

/* The ranges that PyTorch takes; its betas lie in [0, 1). */
/* clang-format off */
#define OPT_POSITIVE(which, v) {.name = which, .value = v, .high = HUGE_VAL}
#define OPT_LR(v) OPT_POSITIVE("lr", v)
#define OPT_BETA(which, v) {.name = which, .value = v, .high = 0x1.fffffffffffffp-1}
#define OPT_SWITCH(which) {.name = which, .high = 1}
/* clang-format on */
#define OPTIONS(...) ((const struct op_option[]){__VA_ARGS__, {.name = NULL}})
#define STATES(...) ((const struct op_state[]){__VA_ARGS__, {.name = NULL}})
#define MOMENTS                                                                                    \
	{.name = "exp_avg"},                                                                       \
	{                                                                                          \
		.name = "exp_avg_sq"                                                               \
	}

/* The parameter and the states are overwritten. */
#define UPDATE_OF(ours, spec, trait, shape, of, built, emits, options, ...)                        \
	{                                                                                          \
		.name = ours, .optimizer = &(const struct op_optimizer){spec, of, built},          \
		.min_in = 4, .max_in = 6 + OP_STATES, .min_out = 1, .max_out = 1 + OP_STATES,      \
		.traits = OP_UPDATE | (trait), .infer = shape, .emit_c = emits, .option = options, \
		__VA_ARGS__                                                                        \
	}
#define UPDATE_PAIRS                                                                               \
	.npair = 1 + OP_STATES,                                                                    \
	.pair = {{0, PARAM}, {1, STATE0}, {2, STATE1}, {3, STATE2}, {4, STATE3}, {5, STATE4}}
#define UPDATE(ours, spec, shape, of, emits, ...)                                                  \
	UPDATE_OF(ours, spec, OP_BY_ELEMENT, shape, of, NULL, emits, __VA_ARGS__, UPDATE_PAIRS)
#define WHOLE_UPDATE(ours, spec, shape, of, built, emits, ...)                                     \
	UPDATE_OF(ours, spec, 0, shape, of, built, emits, __VA_ARGS__, UPDATE_PAIRS)

#endif
