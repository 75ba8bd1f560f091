/* A head for other outputs: --replace-head. The last product before the output gets a weight and a
 * bias of another size, in the file in memory, so that all that is made of the model has them.
 *
 * Of what lies between the product and the output nothing is known here: where it wants as many
 * outputs as there were, that is told when its shapes are worked out. */
#include <inttypes.h>
#include <string.h>

#include "base/init.h"
#include "graph/op_adapter.h"
#include "import/ties.h"

typedef Onnx__GraphProto Graph;

struct head {
	struct importer *im;
	Graph *graph;
	struct names maker, initializer; /* by tensor's name */
	Node *node;                      /* the product */
	Tensor *other;                   /* the weight of another, as near as it; NULL */
	const Node *inner;               /* nearer than it, a node whose bodies may have products */
	const Node *odd; /* or one that has weights, and none that could be another size */
	const struct op_def *op;
	Tensor *weight, *bias; /* bias: NULL where it has none */
	int axis, bias_axis;   /* which counts outputs */
	int behind;            /* axes of what it makes behind the one that does */
	int64_t outputs;       /* so far */
};

static enum status bad(
	struct head *h, const char *name, const char *op, const char *hint, const char *what)
{
	return diag_fail(h->im->d, ST_INVALID, &(struct where){h->im->m.path, name, op}, hint,
		"--replace-head: %s", what);
}

static enum status fill(struct head *h)
{
	for (size_t i = 0; i < h->graph->n_initializer; i++) {
		void **at = names_at(&h->initializer, text_of(h->graph->initializer[i]->name));
		if (!at)
			return diag_nomem(h->im->d);
		*at = h->graph->initializer[i];
	}
	for (size_t i = 0; i < h->graph->n_node; i++)
		for (size_t k = 0; k < h->graph->node[i]->n_output; k++) {
			const char *name = text_of(h->graph->node[i]->output[k]);
			if (!*name) /* not wanted; what is not given is called so, too */
				continue;
			void **at = names_at(&h->maker, name);
			if (!at)
				return diag_nomem(h->im->d);
			*at = h->graph->node[i];
		}
	return ST_OK;
}

static const struct op_def *record(const struct head *h, const Node *n)
{
	return record_of(h->im, n, h->im->top.opset);
}

static bool only_passes(const struct op_def *op)
{
	return op->role == ROLE_IDENTITY || op->role == ROLE_CAST;
}

/* The initializer behind a name, maybe transposed or of another type; NULL: it is computed. */
static Tensor *behind(const struct head *h, const char *name, bool *turned)
{
	for (size_t steps = 0; steps <= h->graph->n_node; steps++) {
		Tensor *t = names_get(&h->initializer, name);
		const Node *n = t ? NULL : names_get(&h->maker, name);
		const struct op_def *op = n && n->n_input ? record(h, n) : NULL;
		if (t || !op || (op->role != ROLE_TRANSPOSE && !only_passes(op)))
			return t;
		*turned ^= op->role == ROLE_TRANSPOSE;
		name = text_of(n->input[0]);
	}
	return NULL;
}

/* The name of a Constant node that is no weight (constant_weights.c); NULL: it is none. */
static const char *constant_behind(const struct head *h, const char *name)
{
	const Node *n = names_get(&h->maker, name);
	const struct op_def *op = n ? record(h, n) : NULL;
	return op && op->role == ROLE_CONSTANT ? name : NULL;
}

/* A product with what may be a weight of as many outputs as one likes. */
static bool is_product(const struct op_def *op)
{
	return op_adapter(op) == ADAPTER_LINEAR || op_adapter(op) == ADAPTER_CONV || op->counts;
}

/* The inputs of product n that may be its weight: from *first on; their end. */
static int weights_end(const struct op_def *op, const Node *n, int *first)
{
	*first = op->counts ? 0 : op->adapter->weight;
	const int end = op->counts ? (int)n->n_input : op->adapter->weight + 1;
	return end < (int)n->n_input ? end : (int)n->n_input;
}

/* Whether an equation tells that. One of more letters than ever make sense tells nothing. */
static bool equation_counts(
	const Node *n, const struct op_def *op, int k, int rank, int *axis, int *behind)
{
	char text[256] = "";
	for (size_t i = 0; i < n->n_attribute; i++) {
		const Onnx__AttributeProto *a = n->attribute[i];
		if (strcmp(text_of(a->name), op->equation) != 0)
			continue;
		if (a->s.len >= sizeof text)
			return false;
		if (a->s.len)
			memcpy(text, a->s.data, a->s.len);
		text[a->s.len] = 0;
	}
	return op->counts(text, k, rank, axis, behind);
}

/* Which axis of initializer t, input k of product n, counts outputs, and how many lie behind it. */
static bool counting_axis(
	const Node *n, const struct op_def *op, int k, const Tensor *t, int *axis, int *behind)
{
	const int rank = (int)t->n_dims;
	if (op->counts)
		return equation_counts(n, op, k, rank, axis, behind);
	const bool told = op->bias.input || (op->bias.turned && rank == 2);
	*axis = told ? bias_axis(&op->bias, n) : rank - 1;
	*behind = op_adapter(op) == ADAPTER_CONV ? rank - 2 : 0;
	return true;
}

/* Whether input k of product n is a weight; then n is the head, or another as near as that. */
static bool take_weight(struct head *h, Node *n, const struct op_def *op, int k)
{
	bool turned = false;
	int axis, behind_it;
	Tensor *t = behind(h, text_of(n->input[k]), &turned);
	if (!t || t->n_dims < 2 || (turned && t->n_dims != 2) ||
		!counting_axis(n, op, k, t, &axis, &behind_it))
		return false;
	axis = turned ? 1 - axis : axis;
	if (h->node) {
		if (t != h->weight && t->dims[axis] == h->outputs)
			h->other = t;
		return true;
	}
	h->node = n;
	h->op = op;
	h->weight = t;
	h->axis = axis;
	h->behind = behind_it;
	h->outputs = t->dims[axis];
	return true;
}

/* The same of all its inputs. */
static bool take_product(struct head *h, Node *n, const char **constant)
{
	const struct op_def *op = record(h, n);
	bool taken = false;
	int k, end = op && is_product(op) ? weights_end(op, n, &k) : 0;
	for (k = end ? k : 0; k < end; k++) {
		const char *value = constant_behind(h, text_of(n->input[k]));
		taken |= take_weight(h, n, op, k);
		*constant = value ? value : *constant;
	}
	return taken;
}

static bool has_bodies(const Node *n)
{
	for (size_t i = 0; i < n->n_attribute; i++)
		if (n->attribute[i]->g)
			return true;
	return false;
}

/* What was found, or why it is none. */
static enum status found(struct head *h, const char *output)
{
	struct arena *a = h->im->m.arena;
	if (!h->node && h->inner)
		return bad(h, text_of(h->inner->name), text_of(h->inner->op_type),
			"a head around it, or a model without that node: export one for the case "
			"that is wanted",
			"the output is made in its bodies, which are left as they are");
	if (!h->node && h->odd)
		return bad(h, text_of(h->odd->name), text_of(h->odd->op_type),
			"a MatMul, Gemm or Conv that reads its weight, an initializer, as its "
			"second input, or an Einsum that has one axis of it in its output; a head "
			"around it, or a model exported so",
			"its weights are the nearest to the output, and are computed of others, or "
			"stand where those of no head can");
	if (!h->node)
		return bad(h, output, "output",
			"a MatMul, Gemm, Conv or Einsum whose weight is an initializer",
			"no product with a weight leads to it");
	if (!h->other)
		return ST_OK;
	const char *which = arena_printf(a,
		"'%s' and '%s' are as near to it and have as many outputs: which is the head the "
		"file does not tell",
		text_of(h->weight->name), text_of(h->other->name));
	return which ? bad(h, output, "output",
			       "--loss LOSS:output=NAME, with what one of them makes, tells; or "
			       "export the model with the outputs that are wanted",
			       which)
		     : diag_nomem(h->im->d);
}

/* What node n reads is looked at next, each maker once: a node may have several outputs. */
static enum status enter(
	struct head *h, const Node *n, struct names *seen, const char **queue, size_t *end)
{
	for (size_t k = 0; k < n->n_input; k++) {
		const char *name = text_of(n->input[k]);
		Node *before = names_get(&h->maker, name);
		if (!before || !before->n_output)
			continue;
		void **at = names_at(seen, text_of(before->output[0]));
		if (!at)
			return diag_nomem(h->im->d);
		if (*at)
			continue;
		*at = before;
		queue[(*end)++] = name;
	}
	return ST_OK;
}

/* Whether what node `before` makes depends on no input of the model. */
static enum status is_fixed(struct head *h, const Node *before, bool *fixed)
{
	struct arena *a = h->im->m.arena;
	struct names seen = {.arena = a};
	const char **queue = ARENA_ARRAY(a, const char *, h->graph->n_node + 1);
	size_t end = 0;
	if (!queue)
		return diag_nomem(h->im->d);
	*fixed = true;
	for (size_t first = 0; before && *fixed; first++) {
		for (size_t k = 0; k < before->n_input; k++) {
			const char *name = text_of(before->input[k]);
			*fixed &= !*name || names_get(&h->maker, name) ||
				  names_get(&h->initializer, name);
		}
		*fixed &= !has_bodies(before); /* what these read is not looked at */
		TRY(enter(h, before, &seen, queue, &end));
		before = first < end ? names_get(&h->maker, queue[first]) : NULL;
	}
	return ST_OK;
}

/* Node n, which is no head, has weights all the same: what lies before it is none either. */
static enum status note_odd(struct head *h, const Node *n)
{
	const struct op_def *op = record(h, n);
	bool turned = false, odd = false;
	if (!op || h->odd)
		return ST_OK;
	int first, end = is_product(op) ? weights_end(op, n, &first) : 0;
	for (int k = 0; k < (int)n->n_input && k < 32 && !odd; k++) {
		const char *name = text_of(n->input[k]);
		const Node *before = names_get(&h->maker, name);
		const Tensor *t = behind(h, name, &turned);
		if (k < end && k >= first && !t && before)
			TRY(is_fixed(h, before, &odd));
		else
			odd = t && (end ? k < end
					: !op->adapter && t->n_dims > 1 && op->weights >> k & 1 &&
							   !(op->traits & OP_POINTWISE));
	}
	h->odd = odd ? n : NULL;
	return ST_OK;
}

/* From the output back, the nearest first; all that are as near are looked at. */
static enum status find_product(struct head *h, const char *output)
{
	struct arena *a = h->im->m.arena;
	struct names seen = {.arena = a};
	const char **queue = ARENA_ARRAY(a, const char *, h->graph->n_node + 1);
	size_t first = 0, end = 0, level = 1;
	if (!queue)
		return diag_nomem(h->im->d);
	queue[end++] = output;
	while (first < end) {
		if (first == level) { /* all at one distance are done */
			if (h->node || h->inner || h->odd)
				break;
			level = end;
		}
		Node *n = names_get(&h->maker, queue[first++]);
		const char *constant = NULL;
		if (!n || take_product(h, n, &constant))
			continue;
		if (constant)
			return bad(h, constant, "constant",
				"--train NAME, of it and of what else is to be trained, makes a "
				"weight of it",
				"the last product's weight is a Constant node");
		TRY(note_odd(h, n));
		if (has_bodies(n))
			h->inner = n;
		else
			TRY(enter(h, n, &seen, queue, &end));
	}
	return found(h, output);
}

/* As many inputs of nodes read it. */
static int readers(const struct head *h, const char *name, Node **one)
{
	int n = 0;
	for (size_t i = 0; i < h->graph->n_node; i++)
		for (size_t k = 0; k < h->graph->node[i]->n_input; k++)
			if (!strcmp(text_of(h->graph->node[i]->input[k]), name)) {
				*one = h->graph->node[i];
				n++;
			}
	return n;
}

/* Inputs of nodes that read initializer t, or what only passes or turns it. */
static int all_readers(const struct head *h, const Tensor *t)
{
	int n = 0;
	for (size_t i = 0; i < h->graph->n_node; i++) {
		const Node *node = h->graph->node[i];
		const struct op_def *op = record(h, node);
		const bool same = op && (op->role == ROLE_TRANSPOSE || only_passes(op));
		for (size_t k = 0; !same && k < node->n_input; k++) {
			bool turned;
			n += behind(h, text_of(node->input[k]), &turned) == t;
		}
	}
	return n;
}

/* It holds one number for each output, along the axis that counts them, with so many behind it. */
static bool counts_outputs(const struct head *h, const Tensor *t, int behind, int *axis)
{
	struct diag quiet = {0};
	int64_t dim[RANK_MAX], numel;
	int rank;
	if (tensor_shape(&h->im->m, t, &rank, dim, &numel, &quiet) != ST_OK || numel != h->outputs)
		return false;
	*axis = rank - 1 - behind;
	return *axis >= 0 && dim[*axis] == h->outputs;
}

/* The one node that reads what the product makes, maybe in another type; NULL: there are more. */
static const Node *next_of(const struct head *h)
{
	Node *next = h->node;
	const struct op_def *op = NULL;
	for (size_t i = 0; i < h->graph->n_node && (!i || (op && only_passes(op))); i++) {
		if (!next->n_output || readers(h, text_of(next->output[0]), &next) != 1)
			return NULL;
		op = record(h, next);
	}
	return next;
}

/* An input of the product, or what is added to it. */
static void find_bias(struct head *h)
{
	const int input = h->op->bias.input;
	bool turned = false;
	if (input && (int)h->node->n_input > input)
		h->bias = behind(h, text_of(h->node->input[input]), &turned);
	if (h->bias && !counts_outputs(h, h->bias, 0, &h->bias_axis))
		h->bias = NULL; /* of one number, for all */
	const Node *add = h->bias ? NULL : next_of(h);
	const struct op_def *op = add ? record(h, add) : NULL;
	for (size_t k = 0; op && op->role == ROLE_ADD && k < add->n_input; k++) {
		turned = false;
		Tensor *t = behind(h, text_of(add->input[k]), &turned);
		if (t && !turned && counts_outputs(h, t, h->behind, &h->bias_axis))
			h->bias = t;
	}
}

/* As numbers. */
static enum status old_values(struct head *h, const Tensor *t, const double **out)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	const void *v;
	TRY(tensor_values(&h->im->m, t, DT_F64, &type, &rank, dim, &v, h->im->d));
	*out = v;
	return ST_OK;
}

/* Older files have the initializers among the inputs, with their shapes. */
static void set_input(const struct head *h, const Tensor *t, int axis)
{
	for (size_t i = 0; i < h->graph->n_input; i++) {
		const Onnx__TensorShapeProto *shape = input_shape(h->graph->input[i]);
		if (shape && (size_t)axis < shape->n_dim &&
			!strcmp(text_of(h->graph->input[i]->name), text_of(t->name)))
			shape->dim[axis]->dim_value = h->im->o->head;
	}
}

static enum status resize(struct head *h, Tensor *t, int axis, int64_t fan_in)
{
	const struct import_options *o = h->im->o;
	struct arena *a = h->im->m.arena;
	const uint64_t stream = init_stream(text_of(t->name));
	const double *old = NULL;
	int64_t dim[RANK_MAX], outer = 1, inner = 1, size, bytes;
	int rank;
	const int width = element_width(t->data_type);
	if (!tensor_is_real(t))
		return bad(h, t->name, "tensor", "convert the model to float",
			"the head's numbers are not real ones");
	if (all_readers(h, t) != 1)
		return bad(h, t->name, "tensor",
			"a head of its own: --untie NAME, or export the model anew",
			"another node reads it, too");
	TRY(tensor_shape(&h->im->m, t, &rank, dim, &size, h->im->d));
	if (o->head_keeps)
		TRY(old_values(h, t, &old));
	for (int i = 0; i < rank; i++)
		*(i < axis ? &outer : &inner) *= i == axis ? 1 : dim[i];
	dim[axis] = o->head;
	int64_t *dims = arena_memdup(a, dim, (size_t)rank, sizeof *dim);
	if (!size_mul(outer, inner, &size) || !size_mul(size, o->head, &size) ||
		!size_mul(size, width, &bytes) || bytes > PROTOBUF_MOST)
		return bad(h, t->name, "tensor", NULL, "it would be over 2 GiB");
	unsigned char *v = ARENA_ARRAY(a, unsigned char, bytes);
	if (!dims || !v)
		return diag_nomem(h->im->d);
	for (int64_t i = 0; i < size; i++) {
		const int64_t k = i / inner % o->head;
		const double value =
			old && k < h->outputs
				? old[(i / inner / o->head * h->outputs + k) * inner + i % inner]
				: (float)init_kaiming(stream, i, fan_in);
		real_put(t->data_type, v + i * width, value);
	}
	t->dims = dims;
	set_input(h, t, axis);
	tensor_set_raw(t, v, (size_t)bytes);
	return ST_OK;
}

/* What is made of the head has its outputs along the axis that the product has them. */
static void set_axis(const struct head *h, Onnx__ValueInfoProto *v, const char *output)
{
	const Onnx__TensorShapeProto *shape = input_shape(v);
	if (!shape || shape->n_dim < 2)
		return;
	const int axis = (int)shape->n_dim - 1 - h->behind;
	const Onnx__TensorShapeProto__Dimension *d = axis < 0 ? NULL : shape->dim[axis];
	if (!d || d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
		d->dim_value != h->outputs)
		return;
	shape->dim[axis]->dim_value = h->im->o->head;
	if (strcmp(text_of(v->name), output) != 0)
		return;
	h->im->headed = output;
	h->im->headed_axis = axis;
}

/* It is trained, whatever else is: numbers that were drawn say nothing. */
static enum status train(struct head *h, const Tensor *t)
{
	struct importer *im = h->im;
	void **at = t ? names_at(&im->head, text_of(t->name)) : NULL;
	if (t && !at)
		return diag_nomem(im->d);
	if (!t)
		return ST_OK;
	*at = h->node;
	if (!name_matches(im->o->freeze_pattern, text_of(t->name)))
		return ST_OK;
	return diag_fail(im->d, ST_USAGE, &(struct where){im->m.path, text_of(t->name), "tensor"},
		arena_printf(im->m.arena,
			"leave it out of --freeze; --train '%s' alone freezes all others",
			text_of(t->name)),
		"--freeze would leave the new head as it was drawn");
}

/* Shapes that the file notes: of the outputs that come of the head; of what lies between, none. */
static enum status set_shapes(struct head *h, const char *output)
{
	struct names made = {.arena = h->im->m.arena};
	void **at = names_at(&made, text_of(h->weight->name));
	void **bias = h->bias ? names_at(&made, text_of(h->bias->name)) : at;
	if (!at || !bias)
		return diag_nomem(h->im->d);
	*at = *bias = h->node;
	for (size_t i = 0; i < h->graph->n_node; i++) { /* in an order in which they can be run */
		Node *n = h->graph->node[i];
		bool reads = false;
		for (size_t k = 0; k < n->n_input; k++)
			reads |= names_get(&made, text_of(n->input[k])) != NULL;
		for (size_t k = 0; reads && k < n->n_output; k++) {
			const char *name = text_of(n->output[k]);
			if (!*name)
				continue;
			if (!(at = names_at(&made, name)))
				return diag_nomem(h->im->d);
			*at = n;
		}
	}
	for (size_t i = 0; i < h->graph->n_output; i++)
		if (names_get(&made, text_of(h->graph->output[i]->name)))
			set_axis(h, h->graph->output[i], output);
	size_t n = 0;
	for (size_t i = 0; i < h->graph->n_value_info; i++)
		if (!names_get(&made, text_of(h->graph->value_info[i]->name)))
			h->graph->value_info[n++] = h->graph->value_info[i];
	h->graph->n_value_info = n;
	return ST_OK;
}

static void tell(const struct head *h)
{
	const struct import_options *o = h->im->o;
	const int64_t kept = !o->head_keeps ? 0 : h->outputs < o->head ? h->outputs : o->head;
	struct text more = {0};
	if (h->bias)
		text_add(&more, ", and so has '%s'", text_of(h->bias->name));
	if (kept)
		text_add(&more, "; the first %" PRId64 " are as they were", kept);
	diag_note(h->im->d, &(struct where){h->im->m.path, text_of(h->weight->name), "tensor"},
		NULL, "has %" PRId64 " outputs now (before: %" PRId64 ")%s", o->head, h->outputs,
		more.s ? more.s : "");
	text_free(&more);
}

enum status head_rewrite(struct importer *im)
{
	struct head h = {.im = im,
		.graph = im->m.proto->graph,
		.maker.arena = im->m.arena,
		.initializer.arena = im->m.arena};
	im->head.arena = im->m.arena;
	if (!im->o->head)
		return ST_OK;
	if (!h.graph->n_output)
		return ST_OK; /* which is reported */
	TRY(fill(&h));
	const char *output = im->o->output ? im->o->output[0] : NULL;
	if (!output)
		output = text_of(h.graph->output[0]->name);
	TRY(find_product(&h, output));
	find_bias(&h);
	int rank;
	int64_t dim[RANK_MAX], numel;
	TRY(tensor_shape(&im->m, h.weight, &rank, dim, &numel, im->d));
	if (numel == 0 || !h.node->n_output)
		return bad(&h, h.weight->name, "tensor", NULL, "it is empty");
	TRY(resize(&h, h.weight, h.axis, numel / h.outputs));
	if (h.bias)
		TRY(resize(&h, h.bias, h.bias_axis, numel / h.outputs));
	im->resized = text_of(h.weight->name);
	TRY(train(&h, h.weight));
	TRY(train(&h, h.bias));
	TRY(set_shapes(&h, output));
	tell(&h);
	return ST_OK;
}

/* A sum with what has as many as before, or a reshaping to so many, may go through all the same. */
enum status head_check(const struct importer *im, const char *name, const struct tensor *t)
{
	char shape[200];
	if (!im->headed || strcmp(name, im->headed) != 0 ||
		(im->headed_axis < t->rank && t->dim[im->headed_axis] == im->o->head))
		return ST_OK;
	return diag_fail(im->d, ST_INVALID, &(struct where){im->m.path, name, "output"},
		"what lies behind the head wants as many as there were: export the model anew",
		"--replace-head %" PRId64 ": has the shape %s", im->o->head,
		tensor_shape_text(t, shape));
}
