/* Adam-mini (Zhang et al., "Adam-mini: Use Fewer Learning Rates To Gain More", 2024, algorithm 1),
 * with the defaults of its authors' code: of a matrix one second moment for each output, which a
 * row is, or a column. The authors' code goes by parameters' names, and has one for each head of
 * queries and keys, and for a whole norm; here each row has its own, which is finer, and what is no
 * matrix is AdamW's. */
#include <math.h>

#include "ops/optimizer/update_op.h"

enum { ROWS, COLUMNS };

static enum status mini_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[PARAM];
	const bool turned = n->op->variant == COLUMNS;
	const struct call_struct option = {"struct adam_mini", "o",
		CALL_FIELDS({"beta2", ARG_REAL(node_option(n, "beta2"))},
			{"rest2", ARG_REAL(1 - node_option(n, "beta2"))},
			{"rows", ARG_SIZE(x->dim[0])}, {"columns", ARG_SIZE(x->dim[1])},
			{"turned", ARG_INT(turned)})};
	TRY(call_kernel(e, &(struct kernel_call){.file = "adam_mini.h",
				   .function = "adam_mini_means",
				   .turns = x->dim[turned],
				   .work = (double)x->numel * 2,
				   .args = CALL_ARGS(ARG_Y(2), ARG_X(GRAD), ARG_X(CONTROL),
					   ARG_X(STATE1), ARG_STRUCT(&option))}));
	return update_emit(e, n);
}

static enum status mini_build(struct graph *g, const struct op_def *op, const struct update_of *u)
{
	static const char turned[] = "stint.AdamMiniColumnsUpdate";
	struct node *n;
	if (u->param->rank != 2 || u->param->numel == 0)
		return update_as_adamw(g, op, u, "eps");
	if (update_is_turned(g, u->param))
		op = op_index_find(g->index, turned, g->opset);
	return graph_update(g, op, u, &n);
}

/* vmean is of one output */
#define MINI(ours, spec, which, shaped, built)                                                     \
	{                                                                                          \
		UPDATE(ours, 0, update_infer, mini_emit,                                           \
			OPTIONS(RATE(1e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY(0)), spec,         \
			STATES({.name = "exp_avg"}, {.name = "vmean", .shape = shaped}),           \
			ONCE(MOMENT_BIAS),                                                         \
			EACH({"exp_avg", "lerp_real(exp_avg, g, 1 - beta1)"},                      \
				{"p", "p - rate * exp_avg / (SQRT(vmean) / root + eps)"}),         \
			.decoupled = true, .build = built),                                        \
			.work = 30, .variant = which, UPDATE_PAIRS                                 \
	}

const struct op_def ops_adammini[] = {
	MINI("stint.AdamMiniUpdate", "adam-mini", ROWS, STATE_ROWS, mini_build),
	MINI("stint.AdamMiniColumnsUpdate", NULL, COLUMNS, STATE_COLUMNS, NULL),
	{0},
};
