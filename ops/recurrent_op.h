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
/* Fields of the kernels' struct recurrent for activation k of direction d: how many. */
int activation_fields(
	struct emit *e, const struct activation *a, int d, int k, struct call_field field[3]);
/* Apply activation k (of direction d, where they differ) to `count` reals at `at`, after clipping:
 * a statement indented by `tabs`. */
void emit_activation(struct emit *e, const struct recurrent *p, int k, const char *tabs,
	const char *count, const char *at);
/* Multiply `count` reals at `at` by the slope of activation k, whose value is at `value`. */
void emit_slope(struct emit *e, const struct recurrent *p, int k, const char *tabs,
	const char *count, const char *value, const char *at);
/* Where clipping needs it: what the slopes of activations 0..n compare with. */
void emit_edges(struct emit *e, const struct recurrent *p, int n, const char *tabs);

/* --- recurrent_emit.c: calls of kernels, and words of CUDA's texts --- */

int64_t recurrent_workspace(const struct node *n, const struct target *t);
int64_t recurrent_grad_workspace(const struct node *n, const struct target *t);
bool recurrent_has(const struct node *n, int input);
const char *recurrent_length(struct emit *e, const struct recurrent *p, int lengths);
/* Where step `t` of sample b lies: in XW, gates, aux (rows of `width`), and in Y. */
const char *recurrent_place(
	const struct recurrent *p, const char *t, int64_t width, char out[static 160]);
const char *recurrent_place_y(const struct recurrent *p, const char *t, char out[static 160]);
/* Where the state of sample b in direction d lies. */
const char *recurrent_place_state(const struct recurrent *p, char out[static 160]);
/* Sample b's length len, where it is not the number of steps and `finished` or t needs it, and t,
 * the step at place s. */
void recurrent_sample(
	struct emit *e, const struct node *n, int lengths, bool finished, const char *tabs);
/* The step before t in the direction's order. */
const char *recurrent_before(const struct recurrent *p);
/* Elements from a state's row to the next sample's; where a second packed matrix begins (GRU
 * without linear_before_reset). */
int64_t recurrent_state_row(const struct recurrent *p);
int64_t recurrent_second(const struct recurrent *p, bool grad);
bool recurrent_split(const struct recurrent *p);

enum status recurrent_emit(struct emit *e, const struct node *n);
enum status recurrent_grad_emit(struct emit *e, const struct node *n);

/* --- recurrent_cuda.c, recurrent_cuda_cell.c: on a GPU --- */

/* There are steps and samples, and the target is a GPU: then the texts below are what
 * recurrent_emit and recurrent_grad_emit write. */
bool recurrent_cuda_fits(const struct target *t, const struct recurrent *p);
enum status recurrent_cuda_emit(struct emit *e, const struct node *n);
enum status recurrent_grad_cuda_emit(struct emit *e, const struct node *n);
int64_t recurrent_cuda_workspace(const struct node *n);
int64_t recurrent_grad_cuda_workspace(const struct node *n);

/* --- recurrent_parts.c: small kernels of the gradients --- */

enum status recurrent_prev_infer(struct graph *g, struct node *n);
enum status recurrent_prev_emit(struct emit *e, const struct node *n);
enum status recurrent_peephole_infer(struct graph *g, struct node *n);
enum status recurrent_peephole_emit(struct emit *e, const struct node *n);
int64_t recurrent_peephole_workspace(const struct node *n, const struct target *t);
enum status gru_part_infer(struct graph *g, struct node *n);
enum status gru_reset_prev_emit(struct emit *e, const struct node *n);
enum status gru_reset_grad_emit(struct emit *e, const struct node *n);

/* --- recurrent_fold.c: the definition, in double precision --- */

enum status recurrent_fold(struct graph *g, const struct node *n, void *const *out);

#endif
