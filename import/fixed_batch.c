/* A batch that the exporter fixed: --batch makes it another one where samples are treated apart
 * (graph/free_batch.h). */
#include "graph/free_batch.h"

#include <inttypes.h>

#include "import/import_parts.h"

void batch_read(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	im->rows = im->o->batch;
	for (size_t i = 0; i < p->n_input && im->o->batch; i++) {
		const Onnx__ValueInfoProto *v = p->input[i];
		const Onnx__TensorShapeProto *shape = input_shape(v);
		if (!shape || shape->n_dim == 0 || names_get(im->top.tensor, text_of(v->name)) ||
			fix_of(im->o, text_of(v->name)))
			continue;
		const Onnx__TensorShapeProto__Dimension *dim = shape->dim[0];
		im->batched = text_of(v->name);
		if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
			dim->dim_value > 0 && dim->dim_value <= INT32_MAX)
			im->rows = im->fixed = dim->dim_value;
		else if (im->one_row)
			im->rows = im->fixed = 1;
		if (im->fixed) /* each node is looked at, and made anew */
			im->g->loop_turns = 0;
		return;
	}
}

static enum status depends(const struct importer *im, const struct graph_mixed *why)
{
	const struct where w = {im->m.path, im->batched, "input"};
	struct arena *a = im->m.arena;
	const char *hint = fixed_hint(im, im->fixed);
	const char *what =
		why->tensor
			? arena_printf(a, ", and '%s' does not count samples along its first axis",
				  why->tensor->name)
		: why->node ? arena_printf(a, ", and node '%s' (%s) depends on it", why->node->name,
				      why->node->op->name)
			    : "";
	return !hint || !what
		       ? diag_nomem(im->d)
		       : diag_fail(im->d, ST_INVALID, &w, hint,
				 "axis 0 is fixed at %" PRId64 ", but --batch says %" PRId64 "%s",
				 im->fixed, im->o->batch, what);
}

enum status batch_free(struct importer *im)
{
	struct graph *freed;
	struct graph_mixed why = {0};
	if (!im->fixed)
		return ST_OK;
	im->g->opset = im->top.opset;
	TRY(graph_free_batch(im->g, im->fixed, im->o->batch, &freed, &why));
	if (!freed && im->fixed != im->o->batch)
		return depends(im, &why);
	if (freed)
		im->g = freed;
	if (freed && im->fixed != im->o->batch)
		diag_note(im->d, &(struct where){im->m.path, im->batched, "input"}, NULL,
			"%sthe batch of %" PRId64 " that the exporter fixed is free: each node "
			"treats samples apart",
			im->one_row ? "nodes compute with one sample, whatever axis 0 is called: "
				    : "",
			im->fixed);
	return ST_OK;
}
