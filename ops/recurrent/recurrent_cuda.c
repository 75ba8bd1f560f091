/* Recurrent nets on a GPU (kernels/recurrent.cuh): how one step is given to blocks. */
#include "ops/product/gemm_op.h"
#include "ops/recurrent/recurrent_op.h"
#include "ops/rows.h"

/* --- Tiles --- */

enum { THREADS = 256, DEVICE = 128 /* blocks that keep a device busy */ };

struct tile {
	int64_t rows, cols, chunk, units; /* samples, columns of the product, terms at once, hidden
					   * units */
	int64_t row_tiles, unit_tiles, tasks;
};

static struct tile tile_of(const struct recurrent *p, int64_t rows, int64_t cols, int64_t gates)
{
	struct tile t = {.rows = rows, .cols = cols, .units = cols / gates};
	t.chunk = rows + cols > 80 ? 64 : 128;
	t.row_tiles = div_up(p->batch, rows);
	t.unit_tiles = div_up(p->hidden, t.units);
	t.tasks = p->directions * t.row_tiles * t.unit_tiles;
	return t;
}

/* What a multiprocessor does for one term: numbers that come through its cache, about 10 in a
 * clock, and products, 64. By shapes alone: which tile it is decides the order of sums. */
static double tile_cost(const struct tile *t)
{
	return (double)div_up(t->tasks, DEVICE) *
	       (6.4 * (double)(t->rows + t->cols) + (double)(t->rows * t->cols));
}

static struct tile best_tile(const struct recurrent *p, int64_t gates)
{
	struct tile best = tile_of(p, 8, 16, gates);
	for (int64_t rows = 8; rows <= 64; rows *= 2)
		for (int64_t cols = 16; cols <= 64; cols *= 2) {
			const struct tile t = tile_of(p, rows, cols, gates);
			if (tile_cost(&t) < tile_cost(&best))
				best = t;
		}
	return best;
}

/* --- Launches --- */

/* The product of one launch: rows of `terms` numbers times rows [from, from + gates H) of R, or,
 * in gradients, times rows [from, from + terms) as they lie; and what comes of it. */
struct launch {
	const char *step;
	int64_t from, gates, terms;
};

static enum status launch_call(
	struct emit *e, const struct node *n, bool grad, const struct launch *x)
{
	const struct recurrent *p = n->param;
	const struct tile t = best_tile(p, x->gates);
	const bool scratch = grad ? p->reset_after : recurrent_split(p);
	struct recurrent_call c;
	const struct call_struct shape = {"struct", "shape",
		CALL_FIELDS({"terms", ARG_INT(x->terms)}, {"width", ARG_INT(p->hidden)},
			{"rows", ARG_INT(t.rows)}, {"cols", ARG_INT(t.cols)},
			{"chunk", ARG_INT(t.chunk)}, {"gates", ARG_INT(x->gates)},
			{"units", ARG_INT(t.units)}, {"across", ARG_INT(grad)},
			{"from", ARG_INT(x->from)}, {"row_tiles", ARG_INT(t.row_tiles)},
			{"unit_tiles", ARG_INT(t.unit_tiles)}, {"tasks", ARG_INT(t.tasks)})};
	recurrent_net(n, grad, &c);
	recurrent_add(
		&c, CALL_ARGS(ARG_NAME(x->step), ARG_X(D_R), scratch ? ARG_SCRATCH(0) : ARG_NULL));
	recurrent_add(&c, c.tensors);
	return call_kernel(
		e, &(struct kernel_call){.file = grad ? "recurrent_grad.cuh" : "recurrent.cuh",
			   .function = grad ? "recurrent_backward" : "recurrent_forward",
			   .tasks = t.tasks,
			   .threads = THREADS,
			   .traits = &shape,
			   .shared = {"recurrent_room<shape>"},
			   .repeat = p->steps + grad,
			   .args = c.args});
}

int64_t recurrent_cuda_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	const struct recurrent *p = n->param;
	if (!recurrent_split(p))
		return 0;
	return p->directions * p->batch * p->hidden * (p->keep ? 1 : 2) * (int64_t)sizeof(float);
}

enum status recurrent_cuda_emit(struct emit *e, const struct node *n)
{
	static const char *const step[] = {"lstm_step()", "gru_step()", "rnn_step()"};
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	if (!recurrent_has_turns(p))
		return recurrent_emit(e, n);
	TRY(recurrent_lengths(e, n));
	if (!recurrent_split(p))
		return launch_call(e, n, false,
			&(struct launch){step[p->cell], .gates = p->gates, .terms = h});
	TRY(launch_call(e, n, false, &(struct launch){"gru_gates()", .gates = 2, .terms = h}));
	return launch_call(e, n, false,
		&(struct launch){"gru_hidden()", .from = 2 * h, .gates = 1, .terms = h});
}

int64_t recurrent_grad_cuda_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	const struct recurrent *p = n->param;
	if (!p->reset_after)
		return 0;
	return 2 * p->directions * p->batch * 3 * p->hidden * (int64_t)sizeof(float);
}

enum status recurrent_grad_cuda_emit(struct emit *e, const struct node *n)
{
	static const char *const step[] = {"lstm_back()", "gru_back()", "rnn_back()"};
	const struct recurrent *p = n->param;
	const int64_t h = p->hidden;
	if (!recurrent_has_turns(p))
		return recurrent_grad_emit(e, n);
	if (!recurrent_split(p))
		return launch_call(e, n, true,
			&(struct launch){step[p->cell], .gates = 1, .terms = p->gates * h});
	TRY(launch_call(
		e, n, true, &(struct launch){"gru_gates_back()", .gates = 1, .terms = 2 * h}));
	return launch_call(e, n, true,
		&(struct launch){"gru_reset_back()", .from = 2 * h, .gates = 1, .terms = h});
}
