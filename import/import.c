/* import_onnx: the stages in order. */
#include <inttypes.h>
#include <string.h>

#include "base/held.h"
#include "graph/pass.h"
#include "import/import_parts.h"

enum { OPSET_MIN = 7, OPSET_MAX = 25 };

enum status check_opset(struct importer *im, int64_t opset, const char *function)
{
	const struct where w = {.file = im->m.path, .node = function};
	const int oldest = im->o->opset_min ? im->o->opset_min : OPSET_MIN;
	if (opset == 0)
		return diag_fail(im->d, ST_INVALID, &w, NULL, "says no opset version");
	if (opset < oldest || opset > OPSET_MAX)
		return diag_fail(im->d, ST_INVALID, &w,
			"export it with an opset from 11 to 25, or convert it with "
			"onnx.version_converter",
			"is written for opset %" PRId64 "; opsets %d to %d are supported", opset,
			oldest, OPSET_MAX);
	return ST_OK;
}

static enum status import_output(
	struct importer *im, const char *name, struct names *seen, struct tensor **out)
{
	const struct where w = {im->m.path, name, "output"};
	struct value v;
	void **before = names_at(seen, name);
	if (!before)
		return diag_nomem(im->d);
	if (*before)
		return diag_fail(im->d, ST_INVALID, &w, NULL, "stands twice among the outputs");
	if (!scope_get(&im->top, name, &v))
		return diag_fail(im->d, ST_INVALID, &w, NULL, "is made by nothing");
	if (v.kind != VALUE_TENSOR)
		return diag_fail(im->d, ST_INVALID, &w,
			"sequences and optional values may be made and used inside the model",
			"is no tensor");
	*before = *out = v.tensor;
	if (!strcmp(v.tensor->name, name))
		return ST_OK;
	/* a branch or a function may hand on what has a name already */
	im->g->scope = name;
	*out = graph_reshape(im->g, v.tensor, v.tensor->rank, v.tensor->dim);
	im->g->scope = NULL;
	if (!*out)
		return im->g->failed;
	(*out)->name = name;
	return ST_OK;
}

static enum status import_outputs(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	struct graph *g = im->g;
	struct names seen = {.arena = im->m.arena};
	if (!p->n_output)
		return diag_fail(im->d, ST_INVALID, &(struct where){.file = im->m.path}, NULL,
			"has no output");
	const int more = list_length(im->o->output);
	g->output = ARENA_ARRAY(im->m.arena, struct tensor *, p->n_output + (size_t)more);
	if (!g->output)
		return diag_nomem(im->d);
	for (size_t i = 0; i < p->n_output; i++) {
		struct tensor *t;
		if (output_left_out(im, text_of(p->output[i]->name)))
			continue;
		TRY(import_output(im, text_of(p->output[i]->name), &seen, &t));
		TRY(head_check(im, text_of(p->output[i]->name), t));
		const Onnx__TensorShapeProto *shape = input_shape(p->output[i]);
		if (im->o->unbound && shape && (int)shape->n_dim == t->rank)
			TRY(dims_axes(im, shape, true, t));
		g->output[g->noutput++] = t;
	}
	/* a name that no node makes is told by who wants it */
	for (int i = 0; i < more; i++) {
		struct value v;
		if (!names_get(&seen, im->o->output[i]) &&
			scope_get(&im->top, im->o->output[i], &v) && v.kind == VALUE_TENSOR &&
			v.tensor->maker)
			TRY(import_output(im, im->o->output[i], &seen, &g->output[g->noutput++]));
	}
	return g->noutput || im->o->unbound ? ST_OK : left_out_fail(im);
}

/* Models of other domains' operators alone need not say ONNX's opset. */
static bool needs_opset(const Onnx__ModelProto *p)
{
	bool other = false;
	for (size_t i = 0; i < p->graph->n_node; i++) {
		if (!*domain_of(p->graph->node[i]))
			return true;
		other = true;
	}
	return !other;
}

enum status initializers_rewrite(struct importer *im)
{
	TRY(signature_read(im));
	TRY(calls_read(im));
	TRY(constants_rewrite(im));
	TRY(biases_rewrite(im));
	TRY(ties_rewrite(im));
	TRY(folded_rewrite(im));
	return head_rewrite(im);
}

static enum status import_graph(struct importer *im)
{
	const Onnx__ModelProto *p = im->m.proto;
	struct block *b;
	int64_t opset = opset_of(p->opset_import, p->n_opset_import);
	if (!opset && !needs_opset(p))
		opset = OPSET_MAX;
	TRY(check_opset(im, opset, NULL));
	im->top.opset = (int)opset;
	TRY(layers_rewrite(im));
	TRY(initializers_rewrite(im));
	im->g->resized = im->resized;
	TRY(functions_read(im));
	TRY(block_main(im, &b));
	TRY(block_ready(im, &im->top, b));
	TRY(replaced_read(im));
	TRY(import_values(im));
	for (int i = 0; i < b->n; i++)
		TRY(import_or_leave(im, b, b->order[i]));
	TRY(replaced_build(im));
	TRY(import_outputs(im));
	left_out_tell(im);
	TRY(note_suspects(im));
	TRY(warn_of_left_out(im));
	TRY(batch_free(im));
	im->g->opset = OPSET_LATEST;
	return graph_verify(im->g);
}

/* What import_onnx is given. */
struct asked {
	struct arena *a;
	const char *path;
	const struct import_options *o;
	const struct op_table *table;
	const struct target *target;
	enum dtype real;
};

/* `one_row`: the nodes are made for a batch of 1, whatever the inputs' first axis is called.
 * *sized: it is --batch that sizes that axis. */
static enum status import_as(
	const struct asked *x, bool one_row, struct diag *d, struct graph **out, bool *sized)
{
	struct arena *a = x->a;
	const struct import_options *o = x->o;
	struct importer *im = ARENA_NEW(a, struct importer);
	if (!im)
		return diag_nomem(d);
	im->o = o;
	im->d = d;
	im->table = x->table;
	im->one_row = one_row;
	im->limit = im->left = o->expansion ? o->expansion : EXPANSION_MAX;
	im->dim.arena = im->block.arena = im->constant.arena = a;
	im->top = (struct scope){.tensor = &im->tensor[0], .other = &im->other[0], .prefix = ""};
	im->use.arena = im->left_out.arena = a;
	im->left_end = &im->left_first;
	im->tensor[0].arena = im->other[0].arena = a;
	TRY(model_read(a, x->path, &im->m, d));
	if (o->guess && !(im->m.absent = absent_new(a)))
		return diag_nomem(d);
	im->g = graph_new(a, d, x->path, x->table, x->target, x->real);
	if (!im->g)
		return ST_INTERNAL;
	im->g->straight_through = o->qat != 0;
	im->g->loop_turns = o->loop_turns;
	im->g->silent_trains = !strcmp(text_of(im->m.proto->producer_name), "pytorch");
	im->index = im->g->index;
	const enum status st = import_graph(im);
	*sized = im->batched && !im->fixed;
	if (st == ST_OK)
		*out = im->g;
	return st;
}

/* An example of one row makes PyTorch's exporter put a 1 into nodes, whatever it then calls the
 * axis: such a file works for one row alone, and is read as one whose batch is fixed at 1. */
enum status import_onnx(struct arena *a, const char *path, const struct import_options *o,
	const struct op_table *table, const struct target *target, enum dtype real, struct diag *d,
	struct graph **out)
{
	const struct asked x = {a, path, o, table, target, real};
	struct held as_called, one_row;
	bool sized = false;
	held_begin(&as_called, a);
	const enum status st = import_as(&x, false, &as_called.diag, out, &sized);
	if (st == ST_INVALID && sized && o->batch > 1) {
		held_begin(&one_row, a);
		if (import_as(&x, true, &one_row.diag, out, &sized) == ST_OK) {
			held_tell(&one_row, d);
			(*out)->diag = d;
			return ST_OK;
		}
	}
	held_tell(&as_called, d);
	if (st == ST_OK)
		(*out)->diag = d;
	return st;
}
