/* Adafactor with PyTorch's names, defaults and formula (torch.optim.Adafactor's algorithm box): the
 * squares of a matrix's gradients are known by the means of its rows and columns. */
#include <float.h>
#include <math.h>

#include "ops/optimizer/update_op.h"

/* Parts of a vector. */
enum { PART = 1024 };

/* Its last two axes are rows and columns; those before count matrices. */
struct shape {
	int64_t matrices, rows, columns, parts;
	bool vector;
};

static struct shape shape_of(const struct node *n)
{
	const struct tensor *x = n->in[PARAM];
	struct shape s = {.matrices = 1, .rows = 1, .columns = PART, .vector = x->rank < 2};
	if (s.vector) {
		s.parts = div_up(x->numel, PART);
		s.rows = s.parts;
		return s;
	}
	s.rows = x->dim[x->rank - 2];
	s.columns = x->dim[x->rank - 1];
	s.matrices = x->numel == 0 ? 0 : x->numel / s.rows / s.columns;
	s.parts = s.matrices * s.rows;
	return s;
}

static enum status adafactor_infer(struct graph *g, struct node *n)
{
	TRY(data_output(g, n, 0, n->in[PARAM]->dtype, n->in[PARAM]->rank, n->in[PARAM]->dim));
	for (int k = 1; k < n->nout; k++) {
		const struct tensor *state = n->in[CONTROL + k];
		TRY(data_output(g, n, k, state->dtype, state->rank, state->dim));
	}
	return ST_OK;
}

/* Scratch: the means of matrices' rows, the parts' sums, the rate. */
static int64_t means_bytes(const struct shape *s)
{
	return s->vector ? 0 : div_up(s->matrices, 8) * 8 * (int64_t)sizeof(double);
}

static int64_t parts_bytes(const struct shape *s)
{
	return 2 * s->parts * (int64_t)sizeof(double);
}

static int64_t adafactor_workspace(const struct node *n, const struct target *t)
{
	const struct shape s = shape_of(n);
	(void)t;
	return means_bytes(&s) + parts_bytes(&s) + (int64_t)sizeof(double);
}

static struct op_cost adafactor_cost(const struct node *n)
{
	const double numel = (double)n->in[PARAM]->numel;
	const double size = (double)dtype_bytes(n->in[PARAM]->dtype);
	return (struct op_cost){40 * numel, 7 * numel * size};
}

/* How the squares are known, as arguments. */
struct known {
	struct call_arg row, column, mean, square;
};

static enum status call_means(struct emit *e, const struct node *n, const struct shape *s,
	const struct call_struct *shape, const struct call_struct *option)
{
	const double work = (double)n->in[PARAM]->numel * 2;
	if (s->vector)
		return call_kernel(
			e, &(struct kernel_call){.file = "adafactor.h",
				   .function = "adafactor_squares",
				   .turns = n->in[PARAM]->numel,
				   .work = work,
				   .args = CALL_ARGS(ARG_Y(1), ARG_X(GRAD), ARG_X(CONTROL),
					   ARG_X(STATE0), ARG_STRUCT(option))});
	TRY(call_kernel(e, &(struct kernel_call){.file = "adafactor.h",
				   .function = "adafactor_rows",
				   .turns = s->parts,
				   .work = work,
				   .args = CALL_ARGS(ARG_Y(1), ARG_X(GRAD), ARG_X(CONTROL),
					   ARG_X(STATE0), ARG_STRUCT(shape), ARG_STRUCT(option))}));
	TRY(call_kernel(e, &(struct kernel_call){.file = "adafactor.h",
				   .function = "adafactor_columns",
				   .turns = s->matrices * s->columns,
				   .work = work,
				   .args = CALL_ARGS(ARG_Y(2), ARG_X(GRAD), ARG_X(CONTROL),
					   ARG_X(STATE1), ARG_STRUCT(shape), ARG_STRUCT(option))}));
	return call_kernel(
		e, &(struct kernel_call){.file = "adafactor.h",
			   .function = "adafactor_means",
			   .turns = s->matrices,
			   .work = (double)s->parts,
			   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_Y(1), ARG_STRUCT(shape))});
}

static enum status call_step(struct emit *e, const struct node *n, const struct shape *s,
	const struct call_struct *shape, const struct call_struct *option)
{
	const double work = (double)n->in[PARAM]->numel * 40;
	const int64_t parts = means_bytes(s), rate = parts + parts_bytes(s);
	const struct known k = {.row = s->vector ? ARG_NULL : ARG_Y(1),
		.column = s->vector ? ARG_NULL : ARG_Y(2),
		.mean = s->vector ? ARG_NULL : ARG_SCRATCH(0),
		.square = s->vector ? ARG_Y(1) : ARG_NULL};
	TRY(call_kernel(e, &(struct kernel_call){.file = "adafactor.h",
				   .function = "adafactor_parts",
				   .turns = s->parts,
				   .work = work,
				   .args = CALL_ARGS(ARG_SCRATCH(parts), ARG_X(PARAM), ARG_X(GRAD),
					   k.row, k.column, k.mean, k.square, ARG_STRUCT(shape),
					   ARG_STRUCT(option))}));
	TRY(call_kernel(e, &(struct kernel_call){.file = "adafactor.h",
				   .function = "adafactor_rate",
				   .once = true,
				   .args = CALL_ARGS(ARG_SCRATCH(rate), ARG_SCRATCH(parts),
					   ARG_SIZE(s->parts), ARG_X(LR), ARG_X(CONTROL),
					   ARG_STRUCT(shape), ARG_STRUCT(option))}));
	return call_kernel(
		e, &(struct kernel_call){.file = "adafactor.h",
			   .function = "adafactor_step",
			   .turns = s->parts,
			   .work = work,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(PARAM), ARG_X(GRAD), k.row, k.column,
				   k.mean, k.square, ARG_SCRATCH(rate), ARG_X(LR), ARG_X(CONTROL),
				   ARG_STRUCT(shape), ARG_STRUCT(option))});
}

/* PyTorch's None: the type's epsilon. */
static double first_eps(const struct node *n)
{
	const double eps = node_option(n, "eps1");
	return eps >= 0 ? eps : n->in[PARAM]->dtype == DT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
}

static enum status adafactor_emit(struct emit *e, const struct node *n)
{
	const struct shape s = shape_of(n);
	const struct call_struct shape = {"struct adafactor_shape", "shape",
		CALL_FIELDS({"n", ARG_SIZE(n->in[PARAM]->numel)}, {"rows", ARG_SIZE(s.rows)},
			{"columns", ARG_SIZE(s.columns)})};
	const struct call_struct option = {"struct adafactor", "o",
		CALL_FIELDS({"beta2_decay", ARG_DOUBLE(node_option(n, "beta2_decay"))},
			{"eps2", ARG_DOUBLE(node_option(n, "eps2"))},
			{"d", ARG_DOUBLE(node_option(n, "d"))},
			{"decay", ARG_DOUBLE(node_option(n, "weight_decay"))},
			{"maximize", ARG_INT(node_option(n, "maximize") != 0)},
			{"eps1", ARG_REAL(first_eps(n))})};
	TRY(call_means(e, n, &s, &shape, &option));
	TRY(call_step(e, n, &s, &shape, &option));
	return update_average(e, n);
}

/* A vector has a state of its own shape. */
static enum status adafactor_build(
	struct graph *g, const struct op_def *op, const struct update_of *u)
{
	static const char vector[] = "stint.AdafactorVectorUpdate";
	struct node *n;
	return graph_update(
		g, u->read[0]->rank < 2 ? op_index_find(g->index, vector, g->opset) : op, u, &n);
}

/* clang-format off */
#define ADAFACTOR_OPTIONS                                                                          \
	OPTIONS(RATE(1e-2), {.name = "beta2_decay", .value = -0.8, .low = -HUGE_VAL},              \
		{.name = "eps1", .value = -1, .low = 0, .high = HUGE_VAL}, POSITIVE("eps2", 1e-3), \
		{.name = "d", .value = 1, .low = 1, .high = HUGE_VAL}, DECAY(0), MAXIMIZE)
/* clang-format on */

const struct op_def ops_adafactor[] = {
	WHOLE_UPDATE("stint.AdafactorUpdate", "adafactor", adafactor_infer, adafactor_emit,
		ADAFACTOR_OPTIONS,
		STATES({.name = "row_var", .shape = STATE_ROWS},
			{.name = "col_var", .shape = STATE_COLUMNS}),
		adafactor_build, .cost = adafactor_cost, .workspace = adafactor_workspace),
	WHOLE_UPDATE("stint.AdafactorVectorUpdate", NULL, adafactor_infer, adafactor_emit,
		ADAFACTOR_OPTIONS, STATES({.name = "variance", .exact = true}), NULL,
		.cost = adafactor_cost, .workspace = adafactor_workspace),
	{0},
};
