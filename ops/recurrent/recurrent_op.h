/* LSTM, GRU and RNN share everything but the step itself. Private to ops/.
 *
 * ONNX's operators are lowered to one matrix product over all steps, XW = X Wᵀ, and one kernel that
 * walks through time with the recurrent weights packed once. Its outputs hold what the gradient
 * reads; gradients of the weights are products over all steps again.
 *
 * stint.Lstm, stint.Gru, stint.Rnn:
 *	inputs	XW, R, B?, lengths?, h0?, c0?, P?
 *	outputs	Y, Y_h, Y_c (LSTM), gates as activated (not RNN: they are Y), aux: the cells (LSTM)
 *		or the hidden gate's recurrent part (GRU with linear_before_reset)
 * stint.LstmGrad, stint.GruGrad, stint.RnnGrad:
 *	inputs	gates (RNN: Y), R, dY?, dY_h?, dY_c?, lengths?, aux?, h0?, c0?, P?, Y (GRU)
 *	outputs	dXW, dh0, dc0 (LSTM)
 *
 * XW, gates and aux are [directions, rows, ...] with a row for each step and sample in X's order.
 */
#ifndef STINT_OPS_RECURRENT_OP_H
#define STINT_OPS_RECURRENT_OP_H

#include <inttypes.h>

#include "codegen/call.h"
#include "ops/data.h"

enum recurrent_cell { CELL_LSTM, CELL_GRU, CELL_RNN };

/* Inputs and outputs of the forward and of the gradient kernels. */
enum { F_XW, F_R, F_B, F_LEN, F_H0, F_C0, F_P, F_INPUTS };
enum { F_Y, F_YH, F_YC, F_GATES, F_AUX, F_OUTPUTS };
enum { D_GATES, D_R, D_DY, D_DYH, D_DYC, D_LEN, D_AUX, D_H0, D_C0, D_P, D_Y, D_INPUTS };
enum { D_DXW, D_DH0, D_DC0, D_OUTPUTS };

struct activation {
	const struct activation_kind *kind;
	double option[2]; /* alpha, beta */
};

struct recurrent {
	enum recurrent_cell cell;
	int64_t gates, steps, batch, inputs, hidden, directions;
	bool batch_first;  /* layout 1 */
	bool reverse;      /* the only direction runs from the end */
	bool reset_after;  /* GRU: linear_before_reset */
	bool input_forget; /* LSTM: the forget gate is 1 - the input gate */
	bool keep;         /* make what the gradient reads */
	double clip;       /* of what goes into an activation; 0: none */
	struct activation act[2][3];
};

/* --- recurrent_act.c: activation functions --- */

/* Activation functions of n's attributes into p->act. */
enum status recurrent_activations(struct graph *g, const struct node *n, struct recurrent *p);
double activation_value(const struct activation *a, double x);
/* The kernels' struct activation, three of each direction, as a table. */
enum { ACTIVATION_VALUES = 2 * 3 * 3 };
struct call_table activation_table(
	const struct recurrent *p, struct call_arg value[ACTIVATION_VALUES]);

/* --- recurrent_emit.c: calls of kernels --- */

/* GRU without linear_before_reset: two products in each step. */
bool recurrent_split(const struct recurrent *p);
int64_t recurrent_workspace(const struct node *n, const struct target *t);
int64_t recurrent_grad_workspace(const struct node *n, const struct target *t);
/* Without steps, or samples, a state is what it began with. */
bool recurrent_has_turns(const struct recurrent *p);
/* They are within the steps, where there are lengths. */
enum status recurrent_lengths(struct emit *e, const struct node *n);
enum status recurrent_emit(struct emit *e, const struct node *n);
enum status recurrent_grad_emit(struct emit *e, const struct node *n);

/* struct steps, of kernels/. */
enum { STEPS_FIELDS = 7 };
struct call_struct recurrent_steps(
	const struct recurrent *p, struct call_field field[STEPS_FIELDS]);

/* The arguments that all kernels of a net begin with: steps, cell, activations; and its tensors.
 * It points into itself: fill it where it stays. */
struct recurrent_call {
	struct call_field step_field[STEPS_FIELDS], cell_field[5];
	struct call_arg act_value[ACTIVATION_VALUES];
	struct call_struct steps, cell;
	struct call_table act;
	struct call_arg tensors[14], args[24];
	int argc;
};
void recurrent_net(const struct node *n, bool grad, struct recurrent_call *c);
void recurrent_add(struct recurrent_call *c, const struct call_arg *args);

/* --- recurrent_cuda.c: on a GPU --- */

enum status recurrent_cuda_emit(struct emit *e, const struct node *n);
enum status recurrent_grad_cuda_emit(struct emit *e, const struct node *n);
int64_t recurrent_cuda_workspace(const struct node *n, const struct target *t);
int64_t recurrent_grad_cuda_workspace(const struct node *n, const struct target *t);

/* --- recurrent_parts.c: small kernels of the gradients --- */

enum status recurrent_prev_infer(struct graph *g, struct node *n);
enum status recurrent_prev_emit(struct emit *e, const struct node *n);
enum status recurrent_peephole_infer(struct graph *g, struct node *n);
enum status recurrent_peephole_emit(struct emit *e, const struct node *n);
enum status recurrent_peephole_cuda_emit(struct emit *e, const struct node *n);
int64_t recurrent_peephole_cuda_workspace(const struct node *n, const struct target *t);
enum status gru_part_infer(struct graph *g, struct node *n);
enum status gru_reset_prev_emit(struct emit *e, const struct node *n);
enum status gru_reset_grad_emit(struct emit *e, const struct node *n);

/* --- recurrent_fold.c: the definition, in double precision --- */

enum status recurrent_fold(struct graph *g, const struct node *n, void *const *out);

#endif
