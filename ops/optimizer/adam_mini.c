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
		CALL_FIELDS(UPDATE_WIDE(n, beta1), UPDATE_WIDE(n, beta2), UPDATE_BETAS(n),
			UPDATE_FIELD(n, eps), {"rows", ARG_SIZE(x->dim[0])},
			{"columns", ARG_SIZE(x->dim[1])}, {"turned", ARG_INT(turned)})};
	const struct call_value bias = {"struct adam_bias", "bias", "adam_mini_bias",
		CALL_ARGS(ARG_X(LR), ARG_X(CONTROL), ARG_STRUCT(&option))};
	TRY(call_kernel(e, &(struct kernel_call){.file = "adam_mini.h",
				   .function = "adam_mini_means",
				   .turns = x->dim[turned],
				   .work = (double)x->numel * 2,
				   .args = CALL_ARGS(ARG_Y(2), ARG_X(GRAD), ARG_X(CONTROL),
					   ARG_X(STATE1), ARG_STRUCT(&option))}));
	return update_call(e, n,
		&(struct update_kernel){.file = "adam_mini.h",
			.function = "adam_mini",
			.option = &option,
			.before = &bias,
			.decoupled = true});
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

#define MINI_OPTIONS                                                                               \
	OPTIONS(OPT_LR(1e-3), OPT_BETA("beta1", 0.9), OPT_BETA("beta2", 0.999),                    \
		OPT_POSITIVE("eps", 1e-8), OPT_POSITIVE("weight_decay", 0))

const struct op_def ops_adammini[] = {
	WHOLE_UPDATE("stint.AdamMiniUpdate", "adam-mini", update_infer,
		STATES({.name = "exp_avg"}, {.name = "vmean", .shape = STATE_ROWS}), mini_build,
		mini_emit, MINI_OPTIONS, .work = 30, .variant = ROWS),
	WHOLE_UPDATE("stint.AdamMiniColumnsUpdate", NULL, update_infer,
		STATES({.name = "exp_avg"}, {.name = "vmean", .shape = STATE_COLUMNS}), NULL,
		mini_emit, MINI_OPTIONS, .work = 30, .variant = COLUMNS),
	{0},
};
