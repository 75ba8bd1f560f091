/* Blocks: the nodes of the model, of a function, of a graph in an attribute. Each is checked and
 * ordered once and built as often as it is called. */
#include <string.h>

#include "import/import_parts.h"

static const char **names_of(struct importer *im, size_t n, Onnx__ValueInfoProto *const *list)
{
	const char **out = ARENA_ARRAY(im->m.arena, const char *, n);
	for (size_t i = 0; out && i < n; i++)
		out[i] = text_of(list[i]->name);
	return out;
}

static enum status block_of_graph(struct importer *im, const char *what, bool inner,
	const Onnx__GraphProto *g, struct block **out)
{
	struct block *b = *out = ARENA_NEW(im->m.arena, struct block);
	if (!b || g->n_node > INT32_MAX / 2 || g->n_input > INT32_MAX || g->n_output > INT32_MAX)
		return diag_nomem(im->d);
	*b = (struct block){.what = what,
		.graph = g,
		.inner = inner,
		.n = (int)g->n_node,
		.nin = (int)g->n_input,
		.nout = (int)g->n_output,
		.node = g->node,
		.in = names_of(im, g->n_input, g->input),
		.out = names_of(im, g->n_output, g->output)};
	return b->in && b->out ? ST_OK : diag_nomem(im->d);
}

enum status block_main(struct importer *im, struct block **out)
{
	return block_of_graph(im, NULL, false, im->m.proto->graph, out);
}

enum status block_function(struct importer *im, struct function *f)
{
	const Onnx__FunctionProto *p = f->proto;
	if (p->n_node > INT32_MAX / 2 || p->n_input > INT32_MAX || p->n_output > INT32_MAX)
		return diag_nomem(im->d);
	f->block = (struct block){.what = f->name,
		.n = (int)p->n_node,
		.nin = (int)p->n_input,
		.nout = (int)p->n_output,
		.node = p->node,
		.in = (const char **)p->input,
		.out = (const char **)p->output};
	return ST_OK;
}

enum status block_ready(struct importer *im, const struct scope *s, struct block *b)
{
	if (b->checked)
		return ST_OK;
	TRY(order_nodes(im, b));
	TRY(check_operators(im, b, s->opset));
	b->checked = true;
	return ST_OK;
}

/* --- Sizes --- */

static bool add(int64_t *size, int64_t more)
{
	*size = *size > INT64_MAX - more ? INT64_MAX : *size + more;
	return *size < INT64_MAX;
}

/* Nodes, what they call and what their bodies hold; INT64_MAX: too many to count. */
static enum status nodes_size(struct importer *im, Onnx__NodeProto *const *node, size_t n,
	int opset, int depth, int64_t *size)
{
	for (size_t i = 0; i < n; i++) {
		const Onnx__NodeProto *p = node[i];
		struct function *f = record_of(im, p, opset) ? NULL : function_of(im, p);
		if (f)
			TRY(function_size(im, f, depth + 1));
		add(size, f ? 1 + f->block.size : 1);
		for (size_t k = 0; k < p->n_attribute; k++) {
			const Onnx__GraphProto *g = p->attribute[k]->g;
			if (g)
				TRY(nodes_size(im, g->node, g->n_node, opset, depth, size));
		}
	}
	return ST_OK;
}

enum status function_size(struct importer *im, struct function *f, int depth)
{
	const struct where w = {im->m.path, f->name, "function"};
	if (f->state == FUNCTION_DONE)
		return ST_OK;
	if (f->state == FUNCTION_OPEN)
		return diag_fail(im->d, ST_INVALID, &w, NULL, "calls itself");
	if (depth > DEPTH_MAX)
		return diag_fail(im->d, ST_INVALID, &w, NULL,
			"is called inside more than %d other functions", DEPTH_MAX);
	f->state = FUNCTION_OPEN;
	f->block.size = 0;
	TRY(nodes_size(im, f->block.node, (size_t)f->block.n, f->opset, depth, &f->block.size));
	if (f->block.size == INT64_MAX)
		f->block.size--; /* and one more does not overflow */
	f->state = FUNCTION_DONE;
	return ST_OK;
}

/* --- Building --- */

static enum status bind_inputs(struct importer *im, const struct scope *s, const struct block *b,
	int nin, const struct value *in)
{
	static const struct value none = {.kind = VALUE_NONE};
	for (int i = 0; i < b->nin; i++)
		TRY(scope_set(im, s, b->in[i], i < nin ? &in[i] : &none));
	return ST_OK;
}

static enum status build(struct importer *im, struct block *b, const struct scope *s, int nin,
	const struct value *in, int nout, struct value *out)
{
	TRY(block_ready(im, s, b));
	if (b->graph)
		TRY(import_initializers(im, s, b->graph));
	TRY(bind_inputs(im, s, b, nin, in));
	for (int i = 0; i < b->n; i++)
		TRY(import_node(im, s, b, b->order[i]));
	for (int k = 0; k < nout; k++)
		if (!scope_get(s, b->out[k], &out[k]))
			return diag_fail(im->d, ST_INVALID,
				&(struct where){im->m.path, b->what, NULL}, NULL,
				"its output '%s' is made by nothing", b->out[k]);
	return ST_OK;
}

enum status block_build(struct importer *im, struct block *b, const struct scope *around, int nin,
	const struct value *in, int nout, struct value *out)
{
	const struct where w = {.file = im->m.path, .node = b->what};
	if (im->depth == DEPTH_MAX)
		return diag_fail(im->d, ST_INVALID, &w, NULL,
			"functions and bodies are nested more than %d deep", DEPTH_MAX);
	struct scope s = *around;
	int depth = ++im->depth;
	s.tensor = &im->tensor[depth];
	s.other = &im->other[depth];
	s.tensor->arena = s.other->arena = im->m.arena;
	names_clear(s.tensor);
	names_clear(s.other);
	enum status st = expansion_count(im, &w, strlen(s.prefix));
	if (st == ST_OK)
		st = build(im, b, &s, nin, in, nout, out);
	im->depth--;
	return st;
}

/* --- Bodies --- */

struct closure {
	struct body body; /* first */
	struct importer *im;
	const struct scope *scope;
	struct block *block;
};

static enum status closure_build(const struct body *body, const char *label, int nin,
	const struct value *in, int nout, struct value *out)
{
	const struct closure *c = (const struct closure *)body;
	struct importer *im = c->im;
	const char *node = im->g->scope; /* the one that is being expanded */
	const struct where w = {.file = im->m.path, .node = node};
	if (nin != body->nin || nout > body->nout)
		return diag_fail(im->d, ST_INVALID, &w, NULL,
			"the graph in '%s' has %d inputs and %d outputs; there it needs %d and %d",
			c->block->what, body->nin, body->nout, nin, nout);
	const char *prefix = arena_printf(im->m.arena, "%s/%s/", node, label);
	if (!prefix)
		return diag_nomem(im->d);
	const struct scope s = scope_inside(c->scope, prefix);
	enum status st = block_build(im, c->block, &s, nin, in, nout, out);
	im->g->scope = node;
	return st;
}

static bool closure_declared(
	const struct body *body, int k, enum dtype *type, int *rank, int64_t *dim)
{
	const struct closure *c = (const struct closure *)body;
	const Onnx__ValueInfoProto *v = c->block->graph->output[k];
	const Onnx__TensorShapeProto *shape = input_shape(v);
	if (!shape || shape->n_dim > RANK_MAX ||
		!element_type(v->type->tensor_type->elem_type, c->im->g->real, type))
		return false;
	*rank = (int)shape->n_dim;
	for (int i = 0; i < *rank; i++) {
		const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
		if (d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
			return false;
		dim[i] = d->dim_value;
	}
	return true;
}

enum status block_body(struct importer *im, const struct scope *s, const Onnx__AttributeProto *a,
	const struct body **out)
{
	struct closure *c = ARENA_NEW(im->m.arena, struct closure);
	void **known = memo_at(&im->block, a->g);
	if (!c || !known)
		return diag_nomem(im->d);
	if (!*known) {
		struct block *b;
		TRY(block_of_graph(im, text_of(a->name), true, a->g, &b));
		TRY(nodes_size(im, b->node, (size_t)b->n, s->opset, 0, &b->size));
		*known = b;
	}
	*c = (struct closure){.im = im, .scope = s, .block = *known};
	c->body = (struct body){.nin = c->block->nin,
		.nout = c->block->nout,
		.size = c->block->size,
		.build = closure_build,
		.declared = closure_declared};
	*out = &c->body;
	return ST_OK;
}
