/* LSTM, GRU and RNN as calls (kernels/recurrent.h). */
#include "ops/boxes/boxes_op.h"
#include "ops/product/gemm_op.h"
#include "ops/recurrent/recurrent_op.h"

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

/* Where a second packed matrix begins. */
static int64_t second_matrix(const struct recurrent *p, bool grad)
{
	return grad ? packed_elements(2 * p->hidden, p->hidden)
		    : packed_elements(p->hidden, 2 * p->hidden);
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
	return workspace(n, t, false);
}

int64_t recurrent_grad_workspace(const struct node *n, const struct target *t)
{
	return workspace(n, t, true);
}

/* --- Calls --- */

struct call_struct recurrent_steps(const struct recurrent *p, struct call_field field[STEPS_FIELDS])
{
	const struct call_field all[STEPS_FIELDS] = {{"directions", ARG_INT(p->directions)},
		{"steps", ARG_SIZE(p->steps)}, {"batch", ARG_SIZE(p->batch)},
		{"hidden", ARG_SIZE(p->hidden)}, {"batch_first", ARG_INT(p->batch_first)},
		{"reverse", ARG_INT(p->reverse)}, {.name = NULL}};
	memcpy(field, all, sizeof all);
	return (struct call_struct){"struct steps", "steps", field};
}

static struct call_arg output(const struct node *n, int k)
{
	return k < n->nout && n->out[k] ? ARG_Y(k) : ARG_NULL;
}

void recurrent_net(const struct node *n, bool grad, struct recurrent_call *c)
{
	const struct recurrent *p = n->param;
	const bool lstm = p->cell == CELL_LSTM;
	const struct call_field cell[] = {{"gates", ARG_INT(p->gates)},
		{"reset_after", ARG_INT(p->reset_after)},
		{"input_forget", ARG_INT(p->input_forget)}, {"clip", ARG_REAL(p->clip)},
		{.name = NULL}};
	const struct call_arg forward[] = {output(n, F_Y), ARG_Y(F_YH),
		lstm ? ARG_Y(F_YC) : ARG_NULL, output(n, F_GATES), output(n, F_AUX), ARG_X(F_XW),
		ARG_X_OR_NULL(n, F_B), ARG_X_OR_NULL(n, F_LEN), ARG_X_OR_NULL(n, F_H0),
		ARG_X_OR_NULL(n, F_C0), ARG_X_OR_NULL(n, F_P), CALL_ARG(.kind = CALL_END)};
	const struct call_arg back[] = {ARG_Y(D_DXW), ARG_Y(D_DH0), lstm ? ARG_Y(D_DC0) : ARG_NULL,
		ARG_X(D_GATES), ARG_X_OR_NULL(n, D_DY), ARG_X_OR_NULL(n, D_DYH),
		lstm ? ARG_X_OR_NULL(n, D_DYC) : ARG_NULL, ARG_X_OR_NULL(n, D_LEN),
		ARG_X_OR_NULL(n, D_AUX), ARG_X_OR_NULL(n, D_H0), ARG_X_OR_NULL(n, D_C0),
		ARG_X_OR_NULL(n, D_P), ARG_X_OR_NULL(n, D_Y), CALL_ARG(.kind = CALL_END)};
	c->steps = recurrent_steps(p, c->step_field);
	memcpy(c->cell_field, cell, sizeof cell);
	c->cell = (struct call_struct){"struct recurrent_cell", "cell", c->cell_field};
	c->act = activation_table(p, c->act_value);
	c->argc = 0;
	c->args[c->argc++] = ARG_STRUCT(&c->steps);
	c->args[c->argc++] = ARG_STRUCT(&c->cell);
	c->args[c->argc++] = ARG_TABLE(&c->act);
	memcpy(c->tensors, grad ? back : forward, grad ? sizeof back : sizeof forward);
}

void recurrent_add(struct recurrent_call *c, const struct call_arg *args)
{
	for (; args->kind != CALL_END; args++)
		c->args[c->argc++] = *args;
	c->args[c->argc] = CALL_ARG(.kind = CALL_END);
}

/* Weights packed once, then blocks of samples that threads take through time. */
static enum status walk_call(
	struct emit *e, const struct node *n, bool grad, const char *function, const char *step)
{
	const struct recurrent *p = n->param;
	struct recurrent_call c;
	const int64_t h = p->hidden, first = recurrent_split(p) ? 2 * h : p->gates * h;
	const int64_t size = dtype_bytes(n->in[D_R]->dtype), second = second_matrix(p, grad);
	const int64_t rows = block_rows(p, e->g->target->threads);
	const int64_t each = weight_elements(p, grad), buffers = buffer_elements(p, rows);
	const int64_t weights = round_up(p->directions * each, 16) * size;
	const char *file = grad ? "recurrent_grad.h" : "recurrent.h";
	const struct call_struct blocks = {"struct recurrent_blocks", "blocks",
		CALL_FIELDS({"rows", ARG_SIZE(rows)}, {"weights", ARG_SIZE(each)},
			{"second", ARG_SIZE(recurrent_split(p) ? second : 0)},
			{"spare", ARG_SIZE(buffers - 3 * h)}, {"packed", ARG_SIZE(buffers)})};
	recurrent_net(n, grad, &c);
	for (int part = 0; part < (recurrent_split(p) ? 2 : 1); part++)
		TRY(call_kernel(e,
			&(struct kernel_call){.file = file,
				.function = "recurrent_pack",
				.once = true,
				.args = CALL_ARGS(ARG_STRUCT(&c.steps), ARG_STRUCT(&c.cell),
					ARG_STRUCT(&blocks), ARG_SCRATCH(0), ARG_X(F_R),
					ARG_INT(!grad), ARG_SIZE(part ? first : 0),
					ARG_SIZE(part ? h : first), ARG_SIZE(part ? second : 0))}));
	recurrent_add(&c, CALL_ARGS(ARG_STRUCT(&blocks), ARG_NAME(step)));
	recurrent_add(&c, c.tensors);
	recurrent_add(&c,
		CALL_ARGS(ARG_SCRATCH(0), ARG_OWN(weights, thread_elements(p, rows, grad) * size)));
	return call_kernel(e,
		&(struct kernel_call){.file = file,
			.function = function,
			.turns = p->directions * div_up(p->batch, rows),
			.work = 2.0 * (double)(p->steps * p->directions * p->batch * p->gates * h) *
				(double)(h + 10),
			.args = c.args});
}

/* Without steps, or samples, a state is what it began with. */
static enum status state_call(struct emit *e, const struct node *n, int out, int in)
{
	const struct tensor *y = n->out[out];
	const struct box_copy all = {
		{.rank = 1, .dim = {y->numel}, .xs = {1}, .ys = {1}}, ARG_Y(out), ARG_X(in)};
	return node_input(n, in) ? boxes_call(e, 1, &all, y)
				 : fill_call(e, n, out, fill_value(y, 0));
}

static enum status states_call(struct emit *e, const struct node *n, int h, int h0, int c, int c0)
{
	const struct recurrent *p = n->param;
	TRY(state_call(e, n, h, h0));
	return p->cell == CELL_LSTM ? state_call(e, n, c, c0) : ST_OK;
}

bool recurrent_has_turns(const struct recurrent *p)
{
	return p->steps > 0 && p->batch > 0;
}

enum status recurrent_lengths(struct emit *e, const struct node *n)
{
	const struct recurrent *p = n->param;
	if (!node_input(n, F_LEN))
		return ST_OK;
	return call_kernel(e,
		&(struct kernel_call){.file = "lengths.h",
			.function = "check_lengths",
			.once = true,
			.checked = true,
			.args = CALL_ARGS(ARG_X(F_LEN), ARG_SIZE(p->batch), ARG_SIZE(p->steps))});
}

enum status recurrent_emit(struct emit *e, const struct node *n)
{
	static const char *const step[] = {"lstm_step", "gru_step", "rnn_step"};
	const struct recurrent *p = n->param;
	TRY(recurrent_lengths(e, n));
	if (!recurrent_has_turns(p))
		return states_call(e, n, F_YH, F_H0, F_YC, F_C0);
	return walk_call(e, n, false, "recurrent_walk", step[p->cell]);
}

enum status recurrent_grad_emit(struct emit *e, const struct node *n)
{
	static const char *const step[] = {"lstm_back", "gru_back", "rnn_back"};
	const struct recurrent *p = n->param;
	if (!recurrent_has_turns(p))
		return states_call(e, n, D_DH0, D_DYH, D_DC0, D_DYC);
	return walk_call(e, n, true, "recurrent_walk_back", step[p->cell]);
}
