/* LSTM, GRU and RNN as calls (kernels/recurrent.h). */
#include <stdio.h>

#include "ops/boxes.h"
#include "ops/gemm.h"
#include "ops/recurrent_op.h"

bool recurrent_has(const struct node *n, int input)
{
	return n->nin > input && n->in[input];
}

/* --- Workspace: packed weights, then for each thread its rows and a packed operand --- */

/* Samples in a block: as many blocks as threads, but no less than a tile's rows are worth. */
static int64_t block_rows(const struct recurrent *p, int threads)
{
	const int64_t blocks = div_up(threads, p->directions);
	return min64(p->batch, round_up(div_up(p->batch, blocks), 4));
}

/* A matrix of k rows, n columns, packed. */
static int64_t packed_elements(int64_t k, int64_t n)
{
	return round_up(n, GEMM_COL_UNIT) * k;
}

/* GRU without linear_before_reset has a product of its own for the hidden gate. */
bool recurrent_split(const struct recurrent *p)
{
	return p->cell == CELL_GRU && !p->reset_after;
}

int64_t recurrent_second(const struct recurrent *p, bool grad)
{
	return grad ? packed_elements(2 * p->hidden, p->hidden)
		    : packed_elements(p->hidden, 2 * p->hidden);
}

int64_t recurrent_state_row(const struct recurrent *p)
{
	return p->batch_first ? p->directions * p->hidden : p->hidden;
}

static int64_t weight_elements(const struct recurrent *p, bool grad)
{
	const int64_t h = p->hidden, first = recurrent_split(p) ? 2 * h : p->gates * h;
	const int64_t rest = p->gates * h - first;
	if (grad)
		return packed_elements(first, h) + packed_elements(rest, h);
	return packed_elements(h, first) + packed_elements(h, rest);
}

/* Elements of a block's buffers: z, one more like it for GRU, and three rows. */
static int64_t buffer_elements(const struct recurrent *p, int64_t rows)
{
	return (p->cell == CELL_GRU ? 2 : 1) * rows * p->gates * p->hidden + 3 * p->hidden;
}

static int64_t thread_elements(const struct recurrent *p, int64_t rows, bool grad)
{
	const int64_t terms = min64(GEMM_KC, grad ? p->gates * p->hidden : p->hidden);
	const int64_t packed = round_up(min64(rows, GEMM_MC), GEMM_ROW_UNIT) * terms;
	return round_up(buffer_elements(p, rows) + packed, 16);
}

static int64_t workspace(const struct node *n, const struct target *t, bool grad)
{
	const struct recurrent *p = n->param;
	const int64_t weights = p->directions * weight_elements(p, grad);
	return (round_up(weights, 16) +
		       t->threads * thread_elements(p, block_rows(p, t->threads), grad)) *
	       dtype_bytes(n->in[D_R]->dtype);
}

int64_t recurrent_workspace(const struct node *n, const struct target *t)
{
	if (recurrent_cuda_fits(t, n->param))
		return recurrent_cuda_workspace(n);
	return workspace(n, t, false);
}

int64_t recurrent_grad_workspace(const struct node *n, const struct target *t)
{
	if (recurrent_cuda_fits(t, n->param))
		return recurrent_grad_cuda_workspace(n);
	return workspace(n, t, true);
}

/* --- Calls --- */

/* Fields of the kernels' struct recurrent: at most so many, with those of activations. */
enum { FIELDS = 17 + 2 * 3 * 3 };

static struct call_struct struct_of(
	struct emit *e, const struct node *n, bool grad, struct call_field field[FIELDS])
{
	const struct recurrent *p = n->param;
	const int64_t rows = block_rows(p, e->g->target->threads), h = p->hidden;
	const int64_t buffers = buffer_elements(p, rows);
	int count = 0;
	field[count++] = (struct call_field){"steps.directions", ARG_INT(p->directions)};
	field[count++] = (struct call_field){"steps.steps", ARG_SIZE(p->steps)};
	field[count++] = (struct call_field){"steps.batch", ARG_SIZE(p->batch)};
	field[count++] = (struct call_field){"steps.hidden", ARG_SIZE(h)};
	field[count++] = (struct call_field){"steps.batch_first", ARG_INT(p->batch_first)};
	field[count++] = (struct call_field){"steps.reverse", ARG_INT(p->reverse)};
	field[count++] = (struct call_field){"gates", ARG_INT(p->gates)};
	field[count++] = (struct call_field){"reset_after", ARG_INT(p->reset_after)};
	field[count++] = (struct call_field){"input_forget", ARG_INT(p->input_forget)};
	field[count++] = (struct call_field){"clip", ARG_REAL(p->clip)};
	field[count++] = (struct call_field){"rows", ARG_SIZE(rows)};
	field[count++] = (struct call_field){"weights", ARG_SIZE(weight_elements(p, grad))};
	field[count++] = (struct call_field){
		"second", ARG_SIZE(recurrent_split(p) ? recurrent_second(p, grad) : 0)};
	field[count++] = (struct call_field){"spare", ARG_SIZE(buffers - 3 * h)};
	field[count++] = (struct call_field){"packed", ARG_SIZE(buffers)};
	for (int d = 0; d < p->directions; d++)
		for (int k = 0; k < 3 && p->act[d][k].kind; k++)
			count += activation_fields(e, &p->act[d][k], d, k, field + count);
	field[count] = (struct call_field){.name = NULL};
	return (struct call_struct){"struct recurrent", "p", field};
}

static struct call_arg optional(const struct node *n, int input)
{
	return recurrent_has(n, input) ? ARG_X(input) : ARG_NULL;
}

static struct call_arg output(const struct node *n, int k)
{
	return k < n->nout && n->out[k] ? ARG_Y(k) : ARG_NULL;
}

/* Weights packed once, then blocks of samples that threads take through time. */
static enum status walk_call(struct emit *e, const struct node *n, bool grad, const char *function,
	const char *step, const struct call_arg *tensors)
{
	const struct recurrent *p = n->param;
	struct call_field field[FIELDS];
	const struct call_struct s = struct_of(e, n, grad, field);
	const int64_t h = p->hidden, first = recurrent_split(p) ? 2 * h : p->gates * h;
	const int64_t size = dtype_bytes(n->in[D_R]->dtype);
	const int64_t rows = block_rows(p, e->g->target->threads);
	const int64_t weights = round_up(p->directions * weight_elements(p, grad), 16) * size;
	const char *file = grad ? "recurrent_grad.h" : "recurrent.h";
	struct call_arg args[24] = {ARG_STRUCT(&s), ARG_NAME(step)};
	int count = 2;
	for (int part = 0; part < (recurrent_split(p) ? 2 : 1); part++)
		TRY(call_kernel(
			e, &(struct kernel_call){.file = file,
				   .function = "recurrent_pack",
				   .once = true,
				   .args = CALL_ARGS(ARG_STRUCT(&s), ARG_SCRATCH(0), ARG_X(F_R),
					   ARG_INT(!grad), ARG_SIZE(part ? first : 0),
					   ARG_SIZE(part ? h : first),
					   ARG_SIZE(part ? recurrent_second(p, grad) : 0))}));
	for (; tensors->kind != CALL_END; tensors++)
		args[count++] = *tensors;
	args[count++] = ARG_SCRATCH(0);
	args[count++] = ARG_OWN(weights, thread_elements(p, rows, grad) * size);
	args[count] = CALL_ARG(.kind = CALL_END);
	return call_kernel(e,
		&(struct kernel_call){.file = file,
			.function = function,
			.turns = p->directions * div_up(p->batch, rows),
			.work = 2.0 * (double)(p->steps * p->directions * p->batch * p->gates * h) *
				(double)(h + 10),
			.args = args});
}

/* Without steps, or samples, a state is what it began with. */
static enum status state_call(struct emit *e, const struct node *n, int out, int in)
{
	const struct tensor *y = n->out[out];
	const struct box_copy all = {
		{.rank = 1, .dim = {y->numel}, .xs = {1}, .ys = {1}}, ARG_Y(out), ARG_X(in)};
	return recurrent_has(n, in) ? boxes_call(e, 1, &all, y)
				    : fill_call(e, n, out, fill_value(y, 0));
}

static enum status states_call(struct emit *e, const struct node *n, int h, int h0, int c, int c0)
{
	const struct recurrent *p = n->param;
	TRY(state_call(e, n, h, h0));
	return p->cell == CELL_LSTM ? state_call(e, n, c, c0) : ST_OK;
}

static bool has_turns(const struct recurrent *p)
{
	return p->steps > 0 && p->batch > 0;
}

enum status recurrent_emit(struct emit *e, const struct node *n)
{
	static const char *const step[] = {"lstm_step", "gru_step", "rnn_step"};
	const struct recurrent *p = n->param;
	if (recurrent_cuda_fits(e->g->target, p))
		return recurrent_cuda_emit(e, n);
	const bool lstm = p->cell == CELL_LSTM;
	if (recurrent_has(n, F_LEN))
		TRY(call_kernel(e, &(struct kernel_call){.file = "lengths.h",
					   .function = "check_lengths",
					   .once = true,
					   .checked = true,
					   .args = CALL_ARGS(ARG_X(F_LEN), ARG_SIZE(p->batch),
						   ARG_SIZE(p->steps))}));
	if (!has_turns(p))
		return states_call(e, n, F_YH, F_H0, F_YC, F_C0);
	return walk_call(e, n, false, "recurrent_walk", step[p->cell],
		CALL_ARGS(output(n, F_Y), ARG_Y(F_YH), lstm ? ARG_Y(F_YC) : ARG_NULL,
			output(n, F_GATES), output(n, F_AUX), ARG_X(F_XW), optional(n, F_B),
			optional(n, F_LEN), optional(n, F_H0), optional(n, F_C0),
			optional(n, F_P)));
}

enum status recurrent_grad_emit(struct emit *e, const struct node *n)
{
	static const char *const step[] = {"lstm_back", "gru_back", "rnn_back"};
	const struct recurrent *p = n->param;
	if (recurrent_cuda_fits(e->g->target, p))
		return recurrent_grad_cuda_emit(e, n);
	const bool lstm = p->cell == CELL_LSTM;
	if (!has_turns(p))
		return states_call(e, n, D_DH0, D_DYH, D_DC0, D_DYC);
	return walk_call(e, n, true, "recurrent_walk_back", step[p->cell],
		CALL_ARGS(ARG_Y(D_DXW), ARG_Y(D_DH0), lstm ? ARG_Y(D_DC0) : ARG_NULL,
			ARG_X(D_GATES), optional(n, D_DY), optional(n, D_DYH),
			lstm ? optional(n, D_DYC) : ARG_NULL, optional(n, D_LEN),
			optional(n, D_AUX), optional(n, D_H0), optional(n, D_C0), optional(n, D_P),
			optional(n, D_Y)));
}

/* --- What CUDA's text asks --- */

/* The length of sample b's sequence. A GPU's kernels go on after one that is out of range, which
 * the step tells at its end: they stay within their memory. */
const char *recurrent_length(struct emit *e, const struct recurrent *p, int lengths)
{
	if (!e->g->target->cuda)
		return emit_text(e, "x%d[b]", lengths);
	return emit_text(e, "MIN(MAX(x%d[b], 0), %" PRId64 ")", lengths, p->steps);
}

void recurrent_sample(
	struct emit *e, const struct node *n, int lengths, bool finished, const char *tabs)
{
	const struct recurrent *p = n->param;
	const bool known = !recurrent_has(n, lengths);
	char back[64];
	if (known)
		snprintf(back, sizeof back, "%" PRId64 " - s", p->steps - 1);
	else
		snprintf(back, sizeof back, "s < len ? len - 1 - s : s");
	if (!known && (finished || p->reverse || p->directions == 2))
		emit(e, "%sconst int64_t len = %s;\n", tabs, recurrent_length(e, p, lengths));
	if (p->directions == 2)
		emit(e,
			known ? "%sconst int64_t t = d ? %s : s;\n"
			      : "%sconst int64_t t = d && %s;\n",
			tabs, back);
	else
		emit(e, "%sconst int64_t t = %s;\n", tabs, p->reverse ? back : "s");
}

/* The step before t in the direction's order. */
const char *recurrent_before(const struct recurrent *p)
{
	return p->directions == 2 ? "(d ? t + 1 : t - 1)" : p->reverse ? "(t + 1)" : "(t - 1)";
}

const char *recurrent_place(
	const struct recurrent *p, const char *t, int64_t width, char out[static 160])
{
	if (p->batch_first)
		snprintf(out, 160, "(d * %" PRId64 " + b * %" PRId64 " + %s) * %" PRId64,
			p->steps * p->batch, p->steps, t, width);
	else
		snprintf(out, 160, "(d * %" PRId64 " + %s * %" PRId64 " + b) * %" PRId64,
			p->steps * p->batch, t, p->batch, width);
	return out;
}

const char *recurrent_place_state(const struct recurrent *p, char out[static 160])
{
	if (p->batch_first)
		snprintf(out, 160, "(b * %" PRId64 " + d) * %" PRId64, p->directions, p->hidden);
	else
		snprintf(out, 160, "(d * %" PRId64 " + b) * %" PRId64, p->batch, p->hidden);
	return out;
}

const char *recurrent_place_y(const struct recurrent *p, const char *t, char out[static 160])
{
	if (p->batch_first)
		snprintf(out, 160, "((b * %" PRId64 " + %s) * %" PRId64 " + d) * %" PRId64,
			p->steps, t, p->directions, p->hidden);
	else
		snprintf(out, 160, "((%s * %" PRId64 " + d) * %" PRId64 " + b) * %" PRId64, t,
			p->directions, p->batch, p->hidden);
	return out;
}
