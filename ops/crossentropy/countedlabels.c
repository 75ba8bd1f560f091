/* stint.CountedLabels(labels [, control, weights]): the labels in a row, those that do not count as
 * ignore_index, and how many count, or the sum of their classes' weights: for a loss that is made
 * in chunks (crossentropy_chunk.c), or, of a `whole` batch's labels, in micro-batches. */
#include "ops/crossentropy/labels_op.h"

enum { LABELS, CONTROL, WEIGHT };

static enum status counted_infer(struct graph *g, struct node *n)
{
	const struct tensor *label = n->in[LABELS];
	if (label->rank == 0 || label->dtype != DT_I64)
		return node_fail(g, n, NULL, "labels must be whole numbers with a batch axis");
	TRY(data_output(g, n, 0, DT_I64, 1, &label->numel));
	return data_output(g, n, 1, g->real, 0, NULL);
}

static void counted_label_call(struct label_call *c, const struct node *n)
{
	const struct tensor *label = n->in[LABELS];
	const int weight = label_input(n, WEIGHT);
	*c = (struct label_call){.v = {.batch = label->dim[0] > 0 ? label->dim[0] : 1,
					 .classes = weight < 0 ? 0 : n->in[weight]->numel},
		.in = {-1, label_input(n, CONTROL), weight}};
	label_numbers(c, label->numel, (int64_t)node_option(n, "ignore_index"), 0, false);
	c->field[LABEL_WHOLE].value = ARG_INT(node_int(n, "whole", 0));
}

static enum status counted_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	counted_label_call(&c, n);
	return call_kernel(e, &(struct kernel_call){.file = "countedlabels.h",
				      .function = "counted_labels",
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(LABELS),
					      label_arg(c.in.control), label_arg(c.in.weight),
					      ARG_STRUCT(&c.targets))});
}

static enum status counted_cuda_emit(struct emit *e, const struct node *n)
{
	struct label_call c;
	counted_label_call(&c, n);
	label_tensors(&c);
	return call_kernel(e, &(struct kernel_call){.file = "labels.cuh",
				      .function = "counted_labels",
				      .tasks = 1,
				      .threads = 256,
				      .shared = {"label_parts"},
				      .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(LABELS),
					      ARG_STRUCT(&c.targets))});
}

static const struct op_option options[] = {{.name = "ignore_index", .value = -100}, {.name = NULL}};

const struct op_def ops_countedlabels[] = {
	{.name = "stint.CountedLabels",
		.min_in = 1,
		.max_in = 3,
		.min_out = 2,
		.max_out = 2,
		.traits = OP_STOP,
		.option = options,
		.infer = counted_infer,
		.emit_c = counted_emit,
		.emit_cuda = counted_cuda_emit,
		.example = EXAMPLES({.in = "4,3:i64<5 =[0,0,3,0]", .attr = "ignore_index=2"},
			{.in = "4,3:i64<5 =[0,0,3,0] =f[0.5,2.0,1.5,0.25,3.0]",
				.attr = "ignore_index=2"},
			{.in = "7:i64<3", .attr = "ignore_index=1"},
			{.in = "600:i64<9 =[0,0,599,0]"})},
	{0},
};
