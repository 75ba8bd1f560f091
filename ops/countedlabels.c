/* stint.CountedLabels(labels [, control]): the labels in a row, those that do not count as
 * ignore_index, and how many count: for a loss that is made in chunks (crossentropy_split.c). */
#include <inttypes.h>

#include "ops/labels.h"
#include "ops/rows.h"

static enum status counted_infer(struct graph *g, struct node *n)
{
	const struct tensor *label = n->in[0];
	if (label->rank == 0 || label->dtype != DT_I64)
		return node_fail(g, n, NULL, "labels must be whole numbers with a batch axis");
	TRY(data_output(g, n, 0, DT_I64, 1, &label->numel));
	return data_output(g, n, 1, g->real, 0, NULL);
}

/* Label r of `rows` that are valid: to y0, and counted. */
static void emit_counted(struct emit *e, int64_t ignored)
{
	emit(e, "\t\tconst int64_t label = r < rows ? x0[r] : %" PRId64 ";\n", ignored);
	emit(e, "\t\ty0[r] = label;\n\t\tn += label != %" PRId64 ";\n\t}\n", ignored);
}

/* One block. */
static void emit_counted_cuda(struct emit *e, int64_t all, int64_t ignored)
{
	block_sums_helper(e);
	emit_launch(e, 1, 256);
	emit(e, "\t__shared__ int part[BLOCK_WARPS];\n\tint n = 0;\n");
	emit(e, "\tfor (int64_t r = threadIdx.x; r < %" PRId64 "; r += 256) {\n", all);
	emit_counted(e, ignored);
	emit(e, "\tn = block_sum(n, part);\n\tif (threadIdx.x == 0)\n\t\ty1[0] = (real)n;\n");
}

static enum status counted_emit(struct emit *e, const struct node *n)
{
	const struct tensor *label = n->in[0];
	const int64_t batch = label->dim[0] > 0 ? label->dim[0] : 1;
	const int64_t ignored = (int64_t)node_option(n, "ignore_index");
	emit_valid(e, label->dim[0], n->nin > 1 && n->in[1] ? "x1" : NULL);
	emit(e, "\tconst int64_t rows = valid * %" PRId64 ";\n", label->numel / batch);
	if (e->g->target->cuda) {
		emit_counted_cuda(e, label->numel, ignored);
		return ST_OK;
	}
	emit(e, "\tint64_t n = 0;\n\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", label->numel);
	emit_counted(e, ignored);
	emit(e, "\ty1[0] = (real)n;\n");
	return ST_OK;
}

static const struct op_option options[] = {{.name = "ignore_index", .value = -100}, {.name = NULL}};

const struct op_def ops_countedlabels[] = {
	{.name = "stint.CountedLabels",
		.min_in = 1,
		.max_in = 2,
		.min_out = 2,
		.max_out = 2,
		.traits = OP_STOP,
		.option = options,
		.infer = counted_infer,
		.emit_c = counted_emit,
		.example = EXAMPLES({.in = "4,3:i64<5 =[0,0,3,0]", .attr = "ignore_index=2"},
			{.in = "7:i64<3", .attr = "ignore_index=1"},
			{.in = "600:i64<9 =[0,0,599,0]"})},
	{0},
};
